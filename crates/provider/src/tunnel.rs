//! The way out of the sandbox: the proxy's Unix socket, on which a tunnel to the provider's host is asked for.
//!
//! **Invariant.** Nothing here waits beyond the moment it was told, whatever the other side does: also a peer
//! that sends one byte at a time.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{BaseUrl, ProviderError};

/// Opens a connection to the proxy.
pub type Dial = Arc<dyn Fn() -> io::Result<UnixStream> + Send + Sync>;

/// The longest head of the proxy's answer, and the most of its words.
const MAX_ANSWER_BYTES: usize = 16 << 10;

/// Bytes to and from a host, with a moment by which they must have moved.
#[derive(Debug)]
pub(crate) struct Tunnel {
    socket: UnixStream,
    until: Instant,
}

impl Tunnel {
    /// Asks the proxy for a tunnel to the host of an address.
    pub(crate) fn open(dial: &Dial, url: &BaseUrl, until: Instant) -> Result<Self, ProviderError> {
        let failed = |error: io::Error| {
            ProviderError::Network(format!("the proxy does not answer: {error}"))
        };
        let mut tunnel = Self { socket: dial().map_err(failed)?, until };
        let authority = url.authority();
        let ask = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
        tunnel.write_all(ask.as_bytes()).map_err(failed)?;
        let head = tunnel.head().map_err(failed)?;
        match status(&head) {
            Some(200) => Ok(tunnel),
            Some(status) => {
                let mut words = Vec::new();
                // However much of it comes: the status says enough.
                let _cut = (&mut tunnel).take(MAX_ANSWER_BYTES as u64).read_to_end(&mut words);
                Err(refused(status, &words, url))
            }
            None => Err(ProviderError::Network("the proxy's answer makes no sense".to_owned())),
        }
    }

    /// From now on, bytes must have moved by then.
    pub(crate) fn wait_until(&mut self, until: Instant) {
        self.until = until;
    }

    /// Whether nothing has come and the other side has not hung up.
    pub(crate) fn is_quiet(&self) -> bool {
        use rustix::net::{RecvFlags, recv};
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        matches!(recv(&self.socket, &mut [0_u8; 1], flags), Err(rustix::io::Errno::AGAIN))
    }

    /// The head of the proxy's answer, and no byte behind it: that is the host's.
    fn head(&mut self) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() >= MAX_ANSWER_BYTES || self.read(&mut byte)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            head.extend_from_slice(&byte);
        }
        Ok(head)
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Tunnel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(self.left()?))?;
        self.socket.read(buffer).map_err(late)
    }
}

impl Write for Tunnel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(self.left()?))?;
        self.socket.write(bytes).map_err(late)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A socket's time-out says "not now".
fn late(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

fn status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?.strip_prefix("HTTP/1.")?;
    line.split(' ').nth(1)?.parse().ok()
}

/// What the proxy's refusal means: a rule stays, a host that could not be reached may come back.
fn refused(status: u16, words: &[u8], url: &BaseUrl) -> ProviderError {
    let words = String::from_utf8_lossy(words);
    // Behind the first line it says how to change the project's policy, which has no part in this.
    let why = words.lines().next().unwrap_or_default().trim();
    let why = if why.is_empty() { format!("it answers {status}") } else { why.to_owned() };
    match status {
        500.. if is_local(url.host()) => ProviderError::Network(format!(
            "{why}; `{}` is on this machine: is the server running?",
            url.authority()
        )),
        500.. => ProviderError::Network(why),
        _ => ProviderError::Blocked(why),
    }
}

/// Whether a host is this machine itself.
fn is_local(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[expect(clippy::disallowed_methods, reason = "the one place that measures a provider's patience")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The end of a wait; one beyond all reckoning is a day.
pub(crate) fn after(ms: u64) -> Instant {
    let now = now();
    now.checked_add(Duration::from_millis(ms.min(86_400_000))).unwrap_or(now)
}
