//! Reads the head of a request, and writes the one that is passed on.
//!
//! **Invariant.** What is passed on says one thing to every reader: one host, one length of the body, no
//! header that is between the sandbox and the proxy alone. Whatever could be read in two ways is refused.

use httparse::{EMPTY_HEADER, Header};

use super::body::Body;
use super::host::{self, Host, HostError};
use super::record::{Refusal, shown};

/// The longest head, its empty line included.
pub(super) const LONGEST_HEAD: usize = 16 * 1024;
/// The most header lines.
pub(super) const MOST_HEADERS: usize = 100;

/// Headers that are between two neighbours, and those that the proxy writes itself.
const NOT_PASSED: [&str; 13] = [
    "connection",
    "content-length",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Collects bytes until a head is complete.
#[derive(Debug, Default)]
pub(super) struct Gather {
    bytes: Vec<u8>,
    /// How many have been looked at.
    seen: usize,
}

/// What the bytes so far are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Gathered {
    /// The beginning of a head.
    More,
    /// A head, and what came behind it.
    Head(Vec<u8>, Vec<u8>),
    /// No head.
    Refused(Refusal),
}

impl Gather {
    /// Adds bytes as they come. However they are cut, the answer is the same.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Gathered {
        self.bytes.extend_from_slice(bytes);
        while let Some(&byte) = self.bytes.get(self.seen) {
            let before = self.seen.checked_sub(1).and_then(|at| self.bytes.get(at));
            if (before == Some(&b'\r')) != (byte == b'\n') {
                return Gathered::Refused(Refusal::Malformed("a line does not end in CR LF"));
            }
            self.seen += 1;
            if self.bytes.get(..self.seen).is_some_and(|head| head.ends_with(b"\r\n\r\n")) {
                let rest = self.bytes.split_off(self.seen);
                return Gathered::Head(std::mem::take(&mut self.bytes), rest);
            }
            if self.seen >= LONGEST_HEAD {
                return Gathered::Refused(Refusal::TooLarge);
            }
        }
        Gathered::More
    }

    /// Whether anything came at all.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What came so far.
    pub(super) fn so_far(&self) -> &[u8] {
        &self.bytes
    }
}

/// What a request asks for, as it is shown to people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) host: String,
    pub(super) port: Option<u16>,
}

/// A request that means one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) kind: Kind,
}

/// What is to be done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Bytes are carried both ways.
    Tunnel,
    /// This head is sent, then a body.
    Forward { head: Vec<u8>, body: Body },
}

/// Reads a complete head. What it asks for is told also when it is refused.
pub(super) fn read(head: &[u8]) -> (Asked, Result<Request, Refusal>) {
    let mut asked = sketch(head);
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let request = parse(head, &mut headers).and_then(|line| {
        let target = Target::read(line.method, line.target);
        if let Ok(target) = &target {
            asked.host = shown(target.written.as_bytes());
            asked.port = Some(target.port);
        }
        line.interpret(target?)
    });
    (asked, request)
}

/// Method and target of what may not even be a request.
pub(super) fn sketch(head: &[u8]) -> Asked {
    let line = head.split(|&byte| byte == b'\r' || byte == b'\n').next().unwrap_or_default();
    let mut words = line.splitn(2, |&byte| byte == b' ');
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    let target = target.split(|&byte| byte == b' ').next().unwrap_or_default();
    Asked { method: shown(method), host: shown(target), port: None }
}

/// The parts of a head.
struct Parts<'h> {
    method: &'h str,
    target: &'h str,
    minor: u8,
    headers: &'h [Header<'h>],
}

fn parse<'h>(head: &'h [u8], headers: &'h mut [Header<'h>]) -> Result<Parts<'h>, Refusal> {
    const WRONG: Refusal = Refusal::Malformed("it is no request of HTTP/1.0 or HTTP/1.1");
    if head.starts_with(b"\r") {
        return Err(WRONG);
    }
    let mut request = httparse::Request::new(headers);
    match request.parse(head) {
        Ok(httparse::Status::Complete(length)) if length == head.len() => {}
        Ok(_) => return Err(WRONG),
        Err(httparse::Error::TooManyHeaders) => return Err(Refusal::TooLarge),
        Err(httparse::Error::HeaderName | httparse::Error::HeaderValue) => {
            return Err(Refusal::Malformed("a header"));
        }
        Err(_) => return Err(WRONG),
    }
    let (method, target, minor) = (request.method, request.path, request.version);
    let method = method.ok_or(WRONG)?;
    let target = target.filter(|target| target.bytes().all(|byte| byte.is_ascii_graphic()));
    let target = target.ok_or(Refusal::Malformed("its target"))?;
    Ok(Parts { method, target, minor: minor.ok_or(WRONG)?, headers: request.headers })
}

/// Whom a request is for.
struct Target<'h> {
    host: Host,
    port: u16,
    /// The host as it was written.
    written: &'h str,
    /// Path and query; nothing for a tunnel.
    path: Option<&'h str>,
}

impl<'h> Target<'h> {
    fn read(method: &str, target: &'h str) -> Result<Self, Refusal> {
        if method == "CONNECT" {
            let (host, port) = host::authority(target).map_err(Refusal::Host)?;
            let port = port.ok_or(Refusal::Host(HostError::Port))?;
            return Ok(Self { host, port, written: host::split_port(target).0, path: None });
        }
        let Some((scheme, rest)) = target.split_once("://") else {
            return Err(Refusal::Malformed("a proxy is asked for `http://host/path`"));
        };
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(Refusal::Scheme);
        }
        if rest.contains('#') {
            return Err(Refusal::Malformed("its target holds a `#`"));
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(Refusal::Malformed("its target holds a user name"));
        }
        let (host, port) = host::authority(authority).map_err(Refusal::Host)?;
        let written = host::split_port(authority).0;
        Ok(Self { host, port: port.unwrap_or(80), written, path: Some(path) })
    }
}

impl Parts<'_> {
    fn interpret(&self, target: Target<'_>) -> Result<Request, Refusal> {
        self.check_host(&target)?;
        let body = self.body()?;
        let Target { host, port, path, .. } = target;
        let kind = match path {
            None if body == Body::NONE => Kind::Tunnel,
            None => return Err(Refusal::Malformed("CONNECT has no body")),
            Some(path) => Kind::Forward { head: self.rewritten(&host, port, path, &body)?, body },
        };
        Ok(Request { host, port, kind })
    }

    /// The only header of a name.
    fn single(&self, name: &str) -> Result<Option<&str>, Refusal> {
        let mut all = self.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        let first = all.next();
        if all.next().is_some() {
            return Err(Refusal::Malformed("a header that may come once comes twice"));
        }
        let Some(header) = first else { return Ok(None) };
        let text = std::str::from_utf8(header.value);
        text.map(Some).map_err(|_| Refusal::Malformed("a header"))
    }

    /// The `Host` header says what the target says, or is not there where it need not be.
    fn check_host(&self, target: &Target<'_>) -> Result<(), Refusal> {
        const DIFFERS: Refusal = Refusal::Malformed("its `Host` header is not its target");
        let Some(value) = self.single("host")? else {
            let needed = target.path.is_some() && self.minor == 1;
            return if needed {
                Err(Refusal::Malformed("it has no `Host` header"))
            } else {
                Ok(())
            };
        };
        let (host, port) = host::authority(value).map_err(|_| DIFFERS)?;
        // Clients leave a tunnel's port out, some only if it is 443.
        let usual = if target.path.is_some() { 80 } else { target.port };
        let same = host == target.host && port.unwrap_or(usual) == target.port;
        if same { Ok(()) } else { Err(DIFFERS) }
    }

    fn body(&self) -> Result<Body, Refusal> {
        let length = self.single("content-length")?;
        let coding = self.single("transfer-encoding")?;
        match (length, coding) {
            (None, None) => Ok(Body::NONE),
            (Some(length), None) => {
                // `parse` alone would take a sign.
                let plain = length.bytes().all(|byte| byte.is_ascii_digit());
                let length = length.parse().ok().filter(|_| plain);
                length.map(Body::Length).ok_or(Refusal::Malformed("its `Content-Length`"))
            }
            (None, Some(coding)) if self.minor == 1 && coding.eq_ignore_ascii_case("chunked") => {
                Ok(Body::CHUNKED)
            }
            (None, Some(_)) => Err(Refusal::Malformed("its `Transfer-Encoding`")),
            (Some(_), Some(_)) => {
                Err(Refusal::Malformed("it has a `Content-Length` and a `Transfer-Encoding`"))
            }
        }
    }

    /// The head that is passed on.
    fn rewritten(
        &self,
        host: &Host,
        port: u16,
        path: &str,
        body: &Body,
    ) -> Result<Vec<u8>, Refusal> {
        let named = self.named_by_connection()?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mut head = format!("{} {slash}{path} HTTP/1.{}\r\n", self.method, self.minor);
        head.push_str(&match port {
            80 => format!("Host: {host}\r\n"),
            port => format!("Host: {host}:{port}\r\n"),
        });
        match body {
            Body::Chunked(_) => head.push_str("Transfer-Encoding: chunked\r\n"),
            Body::Length(_) if self.single("content-length")?.is_none() => {}
            Body::Length(length) => head.push_str(&format!("Content-Length: {length}\r\n")),
        }
        let mut head = head.into_bytes();
        let dropped = |name: &str| {
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            NOT_PASSED.into_iter().any(is) || named.iter().any(|other| is(other))
        };
        for header in self.headers.iter().filter(|header| !dropped(header.name)) {
            head.extend_from_slice(header.name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(header.value);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"Connection: close\r\n\r\n");
        Ok(head)
    }

    /// Headers that `Connection` declares to be between two neighbours.
    fn named_by_connection(&self) -> Result<Vec<&str>, Refusal> {
        let mut named = Vec::new();
        let all =
            self.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("connection"));
        for header in all {
            let text = std::str::from_utf8(header.value);
            let text = text.map_err(|_| Refusal::Malformed("its `Connection` header"))?;
            named.extend(text.split(',').map(|name| name.trim_matches([' ', '\t'])));
        }
        Ok(named)
    }
}

#[cfg(test)]
mod tests;
