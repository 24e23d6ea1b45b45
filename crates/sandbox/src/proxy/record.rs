//! What is remembered of every request.
//!
//! **Invariant.** Every request is recorded before a connection is made for it: one record says whether it
//! was refused, failed or passed, and one more says how a passed one ended. What a sandbox wrote is in them
//! escaped and shortened.

use std::net::SocketAddr;
use std::sync::Arc;

use serde::Serialize;

use super::host::HostError;

/// Where records go. Called from the proxy's thread: a slow one slows that sandbox, nobody else.
pub type Sink = Arc<dyn Fn(&Record) + Send + Sync>;

/// One request to the proxy, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Record {
    /// Which request of its sandbox, from 1: the two records of a passed one bear the same number.
    pub request: u64,
    /// The method; empty if none could be read.
    pub method: String,
    /// The host as it was asked for; empty if none could be read.
    pub host: String,
    /// The port that was asked for.
    pub port: Option<u16>,
    /// Where it went or would have gone.
    pub address: Option<SocketAddr>,
    /// The name in the greeting of TLS, if one was seen.
    pub server_name: Option<String>,
    /// What became of it.
    pub decision: Decision,
    /// Bytes that reached the host.
    pub up: u64,
    /// Bytes that came back.
    pub down: u64,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It may proceed. Another record follows at its end.
    Passed,
    /// It was refused; after `Passed`, because of what the sandbox sent next.
    Refused(Refusal),
    /// It was allowed, but the host could not be reached.
    Failed(Failure),
    /// It was passed on and has ended.
    Closed(Ending),
}

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// It is no request that means one thing only.
    #[error("the request is malformed: {0}")]
    Malformed(&'static str),
    /// Its host is no host.
    #[error("{0}")]
    Host(HostError),
    /// Its head has too many bytes or lines.
    #[error("the head of the request is too large")]
    TooLarge,
    /// It did not come in time.
    #[error("the request did not come in time")]
    Slow,
    /// The connection ended in the middle of it.
    #[error("the connection ended in the middle of the request")]
    Incomplete,
    /// Something other than `http://` was to be passed on.
    #[error("only `http://` is passed on; use CONNECT for anything else")]
    Scheme,
    /// The host is not listed.
    #[error("the host is not listed")]
    Unlisted,
    /// The host is listed, but not with this port.
    #[error("the host is not listed with this port")]
    Port,
    /// It is a service that hands out the machine's credentials.
    #[error("the host hands out this machine's credentials")]
    Metadata,
    /// The name leads to an address that is not public and not listed.
    #[error("the name leads to an address that is not public")]
    Private,
    /// Too many different names below listed ones: each could carry data to whoever answers for them.
    #[error("too many different names below `*.` entries were asked for")]
    Names,
    /// What came through the tunnel is not the beginning of TLS.
    #[error("only TLS may be spoken on port 443")]
    NotTls,
    /// The greeting of TLS names another host.
    #[error("the server name of TLS is not the host that was asked for")]
    ServerName,
    /// Something followed the only request of its connection.
    #[error("a second request followed on the same connection")]
    Second,
    /// There are too many connections.
    #[error("too many connections at a time")]
    Busy,
}

/// Why an allowed request did not reach its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The name is not known.
    #[error("the name could not be looked up")]
    Lookup,
    /// The host did not accept the connection.
    #[error("the host refused the connection or is unreachable")]
    Connect,
    /// It did not answer in time.
    #[error("the host did not answer in time")]
    Timeout,
    /// The proxy before it refused, with this status; 0 if it spoke no HTTP.
    #[error("the proxy that is configured does not let it through (it answers {0})")]
    Upstream(u16),
    /// It closed the connection without an answer.
    #[error("the host closed the connection without an answer")]
    Silent,
}

/// How a passed request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Both sides were done.
    Complete,
    /// One side broke off.
    Broken,
    /// Nothing came for too long.
    Idle,
    /// The proxy was stopped.
    Stopped,
}

/// What a sandbox wrote, fit for records and messages: printable, and no longer than a host name may be.
pub(super) fn shown(bytes: &[u8]) -> String {
    const LONGEST: usize = 255;
    let mut text = String::new();
    for &byte in bytes {
        let escaped = byte.escape_ascii();
        if text.len() + escaped.len() > LONGEST {
            text.push('…');
            break;
        }
        text.extend(escaped.map(char::from));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sandbox_wrote_is_shown_harmless_and_short() {
        assert_eq!(shown(b"github.com"), "github.com");
        assert_eq!(shown(b"a\r\n\0\x1b[2J"), "a\\r\\n\\x00\\x1b[2J");
        assert_eq!(shown("ü".as_bytes()), "\\xc3\\xbc");
        let long = shown(&[0; 10_000]);
        assert!(long.len() <= 258 && long.ends_with('…'), "{long}");
    }
}
