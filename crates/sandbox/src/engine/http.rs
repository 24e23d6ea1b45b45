//! HTTP/1.1 over a Unix socket: as much of it as an engine's API takes.
//!
//! One request for each connection, on the calling thread, with a deadline for the whole of it: an engine that hangs
//! holds up one caller for a known time and nobody else.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::error::SLOW;

/// Bytes of a head.
const HEAD: usize = 64 << 10;
/// Headers in it.
const HEADERS: usize = 64;
/// Bytes of a body: lists of containers and descriptions of one are far below.
const BODY: usize = 16 << 20;

/// How long an engine is waited for that was waited for in vain before.
const AGAIN: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    /// Nobody is there.
    #[error("nobody answers at `{}`", socket.display())]
    Connect {
        /// Where.
        socket: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It takes too long.
    #[error("there is no answer within {} s", .0.as_secs_f32())]
    Slow(Duration),
    /// It broke off.
    #[error("the connection broke off")]
    Broken(#[source] io::Error),
    /// It is no HTTP, or too much of it.
    #[error("the answer makes no sense: {0}")]
    Odd(&'static str),
}

/// What is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Body<'a> {
    Nothing,
    Json(&'a [u8]),
    Archive(&'a [u8]),
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Who answers, and the version of the API that it speaks, where it says so.
    pub(crate) server: String,
    pub(crate) api: String,
    pub(crate) body: Vec<u8>,
}

/// A head, and how long it is.
struct Head {
    status: u16,
    length: Length,
    server: String,
    api: String,
    size: usize,
}

/// Is told the status of an answer, and each piece of its body as it comes.
pub(crate) type Heard<'a> = dyn FnMut(u16, &[u8]) + 'a;

/// The way to whoever listens at a socket.
#[derive(Debug)]
pub(crate) struct Line {
    socket: PathBuf,
    /// Whether the last answer did not come in time.
    stalled: AtomicBool,
}

impl Line {
    pub(crate) fn to(socket: &Path) -> Self {
        Self { socket: socket.to_owned(), stalled: AtomicBool::new(false) }
    }

    /// Sends a request and reads the whole answer.
    pub(crate) fn call(
        &self,
        asked: (&str, &str),
        body: Body<'_>,
        patience: Duration,
    ) -> Result<Answer, HttpError> {
        self.call_and_hear(asked, body, patience, &mut |_, _| ())
    }

    /// The same, for an answer that takes its time: what comes is told while it comes.
    ///
    /// Whoever was waited for in vain is not waited for as long again: taking away what is left takes several calls.
    pub(crate) fn call_and_hear(
        &self,
        asked: (&str, &str),
        body: Body<'_>,
        patience: Duration,
        heard: &mut Heard<'_>,
    ) -> Result<Answer, HttpError> {
        let patience = match self.stalled.load(Ordering::Relaxed) {
            true => patience.min(AGAIN),
            false => patience,
        };
        let answer = call(&self.socket, asked, body, patience, heard);
        let stalled = match &answer {
            Ok(answer) => answer.status == SLOW,
            Err(error) => matches!(error, HttpError::Slow(_)),
        };
        self.stalled.store(stalled, Ordering::Relaxed);
        answer
    }
}

fn call(
    socket: &Path,
    (method, target): (&str, &str),
    body: Body<'_>,
    patience: Duration,
    heard: &mut Heard<'_>,
) -> Result<Answer, HttpError> {
    let connect = |source| HttpError::Connect { socket: socket.to_owned(), source };
    let mut stream = Timed {
        stream: UnixStream::connect(socket).map_err(connect)?,
        until: now() + patience,
        patience,
    };
    let (kind, bytes) = match body {
        Body::Nothing => ("application/json", &[][..]),
        Body::Json(bytes) => ("application/json", bytes),
        Body::Archive(bytes) => ("application/x-tar", bytes),
    };
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: engine\r\nConnection: close\r\nContent-Type: {kind}\r\n\
         Content-Length: {}\r\n\r\n",
        bytes.len()
    );
    stream.send(head.as_bytes())?;
    stream.send(bytes)?;
    read_answer(&mut stream, heard)
}

/// A connection with an end.
struct Timed {
    stream: UnixStream,
    until: Instant,
    patience: Duration,
}

impl Timed {
    fn send(&mut self, mut bytes: &[u8]) -> Result<(), HttpError> {
        while !bytes.is_empty() {
            let left = self.left()?;
            self.stream.set_write_timeout(Some(left)).map_err(HttpError::Broken)?;
            match self.stream.write(bytes) {
                Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
                Err(error) => self.passes(error)?,
            }
        }
        Ok(())
    }

    /// Reads on; false at the end.
    fn more(&mut self, into: &mut Vec<u8>) -> Result<bool, HttpError> {
        let mut chunk = [0; 16 << 10];
        loop {
            let left = self.left()?;
            self.stream.set_read_timeout(Some(left)).map_err(HttpError::Broken)?;
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(false),
                Ok(read) => {
                    into.extend_from_slice(chunk.get(..read).unwrap_or_default());
                    return Ok(true);
                }
                Err(error) => self.passes(error)?,
            }
        }
    }

    fn left(&self) -> Result<Duration, HttpError> {
        let left = self.until.saturating_duration_since(now());
        if left.is_zero() { Err(HttpError::Slow(self.patience)) } else { Ok(left) }
    }

    /// Whether an error is one to try again after.
    fn passes(&self, error: io::Error) -> Result<(), HttpError> {
        match error.kind() {
            io::ErrorKind::Interrupted => Ok(()),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Err(HttpError::Slow(self.patience))
            }
            _ => Err(HttpError::Broken(error)),
        }
    }
}

/// How a body ends.
enum Length {
    Known(usize),
    Chunked,
    /// With the connection.
    Open,
}

fn read_answer(stream: &mut Timed, heard: &mut Heard<'_>) -> Result<Answer, HttpError> {
    let mut bytes = Vec::new();
    let (head, rest) = loop {
        match head(&bytes)? {
            // What only announces the answer.
            Some(head) if (100..200).contains(&head.status) => {
                bytes.drain(..head.size);
            }
            Some(head) => {
                let rest = bytes.split_off(head.size);
                break (head, rest);
            }
            None if bytes.len() > HEAD => return Err(HttpError::Odd("its head is too long")),
            None => more(stream, &mut bytes)?,
        }
    };
    let Head { status, length, server, api, .. } = head;
    let heard = &mut |piece: &[u8]| heard(status, piece);
    let body = match length {
        _ if status == 204 || status == 304 => Vec::new(),
        Length::Known(size) => known(stream, rest, size, heard)?,
        Length::Chunked => chunked(stream, rest, heard)?,
        Length::Open => open_ended(stream, rest, heard)?,
    };
    Ok(Answer { status, server, api, body })
}

/// The head, if it is whole.
fn head(bytes: &[u8]) -> Result<Option<Head>, HttpError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(bytes).map_err(|_| HttpError::Odd("its head is none"))?;
    let httparse::Status::Complete(size) = parsed else { return Ok(None) };
    let status = response.code.ok_or(HttpError::Odd("it has no status"))?;
    let value = |name: &str| {
        let mut all = response.headers.iter().filter(|it| it.name.eq_ignore_ascii_case(name));
        all.next().and_then(|it| std::str::from_utf8(it.value).ok())
    };
    let length = match (value("transfer-encoding"), value("content-length")) {
        (Some(coding), _) if coding.eq_ignore_ascii_case("chunked") => Length::Chunked,
        (Some(_), _) => return Err(HttpError::Odd("its coding is not known")),
        (None, Some(size)) => {
            Length::Known(size.trim().parse().map_err(|_| HttpError::Odd("its length is none"))?)
        }
        (None, None) => Length::Open,
    };
    let said = |name: &str| value(name).unwrap_or_default().to_owned();
    let (server, api) = (said("server"), said("api-version"));
    Ok(Some(Head { status, length, server, api, size }))
}

fn known(
    stream: &mut Timed,
    mut body: Vec<u8>,
    size: usize,
    heard: &mut impl FnMut(&[u8]),
) -> Result<Vec<u8>, HttpError> {
    if size > BODY {
        return Err(HttpError::Odd("its body is too long"));
    }
    while body.len() < size {
        if !stream.more(&mut body)? {
            return Err(HttpError::Broken(io::ErrorKind::UnexpectedEof.into()));
        }
    }
    body.truncate(size);
    heard(&body);
    Ok(body)
}

fn open_ended(
    stream: &mut Timed,
    mut body: Vec<u8>,
    heard: &mut impl FnMut(&[u8]),
) -> Result<Vec<u8>, HttpError> {
    let mut told = 0;
    loop {
        heard(body.get(told..).unwrap_or_default());
        told = body.len();
        if !stream.more(&mut body)? {
            return Ok(body);
        }
        if body.len() > BODY {
            return Err(HttpError::Odd("its body is too long"));
        }
    }
}

fn chunked(
    stream: &mut Timed,
    mut raw: Vec<u8>,
    heard: &mut impl FnMut(&[u8]),
) -> Result<Vec<u8>, HttpError> {
    let odd = || HttpError::Odd("its chunks are none");
    let mut body = Vec::new();
    loop {
        let (start, size) = loop {
            match httparse::parse_chunk_size(&raw) {
                Ok(httparse::Status::Complete(found)) => break found,
                Ok(httparse::Status::Partial) if raw.len() <= HEAD => more(stream, &mut raw)?,
                Ok(httparse::Status::Partial) | Err(_) => return Err(odd()),
            }
        };
        let size = usize::try_from(size).map_err(|_| odd())?;
        if size == 0 {
            return Ok(body);
        }
        if size > BODY || body.len() + size > BODY {
            return Err(HttpError::Odd("its body is too long"));
        }
        let end = start + size;
        while raw.len() < end + 2 {
            more(stream, &mut raw)?;
        }
        let piece = raw.get(start..end).ok_or_else(odd)?;
        heard(piece);
        body.extend_from_slice(piece);
        if raw.get(end..end + 2) != Some(b"\r\n") {
            return Err(odd());
        }
        raw.drain(..end + 2);
    }
}

fn more(stream: &mut Timed, raw: &mut Vec<u8>) -> Result<(), HttpError> {
    if stream.more(raw)? {
        Ok(())
    } else {
        Err(HttpError::Broken(io::ErrorKind::UnexpectedEof.into()))
    }
}

#[expect(clippy::disallowed_methods, reason = "deadlines of engines are real time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// What comes of an answer of these bytes, sent piece by piece; nothing more is said if it is held open.
    fn answered(pieces: &'static [&'static [u8]], held: bool) -> Result<Answer, HttpError> {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("engine.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 1024];
            let read = stream.read(&mut asked).unwrap();
            for piece in pieces {
                // The client may have turned away.
                let _gone = stream.write_all(piece);
            }
            while held && !matches!(stream.read(&mut asked), Ok(0) | Err(_)) {}
            String::from_utf8_lossy(asked.get(..read).unwrap()).into_owned()
        });
        let patience = if held { Duration::from_millis(50) } else { Duration::from_secs(60) };
        let answer = Line::to(&socket).call(("GET", "/info"), Body::Nothing, patience);
        assert!(server.join().unwrap().starts_with("GET /info HTTP/1.1\r\nHost: engine\r\n"));
        answer
    }

    #[test]
    fn a_body_ends_with_its_length_with_its_last_chunk_or_with_the_connection() {
        let body = |pieces| answered(pieces, false).map(|answer| (answer.status, answer.body));
        let whole = Ok((200, b"hello".to_vec()));
        let same = |one: Result<(u16, Vec<u8>), HttpError>| one.map_err(|error| error.to_string());
        assert_eq!(
            same(body(&[b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", b"lo and more"])),
            whole
        );
        const CHUNKS: &[&[u8]] = &[
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r",
            b"\n3;a=b\r\nllo\r\n0\r\n\r\n",
        ];
        assert_eq!(same(body(CHUNKS)), whole);
        assert_eq!(same(body(&[b"HTTP/1.0 200 OK\r\n\r\n", b"hello"])), whole);
        assert_eq!(
            same(body(&[b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 204 No\r\n\r\n"])),
            Ok((204, Vec::new()))
        );
    }

    #[test]
    fn what_is_no_answer_is_an_error_and_never_waits_for_ever() {
        let odd: [&'static [&'static [u8]]; 7] = [
            &[b""],
            &[b"SSH-2.0-OpenSSH\r\n\r\n"],
            &[b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello"],
            &[b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nhello"],
            &[b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"],
            &[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"],
            &[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n"],
        ];
        for pieces in odd {
            let answer = answered(pieces, false);
            assert!(matches!(answer, Err(HttpError::Odd(_) | HttpError::Broken(_))), "{answer:?}");
        }
        let answer = answered(&[b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello"], true);
        assert!(matches!(answer, Err(HttpError::Slow(_))), "{answer:?}");
    }

    #[test]
    fn where_nobody_listens_that_is_said() {
        let socket = Path::new("/nonexistent/engine.sock");
        let answer = Line::to(socket).call(("GET", "/"), Body::Nothing, Duration::from_secs(1));
        assert!(matches!(answer, Err(HttpError::Connect { .. })), "{answer:?}");
    }
}
