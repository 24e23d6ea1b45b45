//! A proxy of the person's own, which everything goes through that leaves a sandbox.
//!
//! It is asked for a tunnel to the host, whatever the sandbox asked for: what was checked is what it is told.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fluffy_base::Secret;

use super::head::Request;
use super::host::{self, Host, HostError};

/// The port of a proxy that names none.
const USUAL_PORT: u16 = 8080;

/// A proxy that speaks HTTP and opens tunnels.
pub struct Upstream {
    host: Host,
    port: u16,
    /// The value of the header that opens the door.
    authorization: Option<Secret>,
}

/// Why there is no such proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// It names no host.
    #[error("the proxy's address names no host")]
    Host(#[from] HostError),
    /// A user's name cannot hold a colon, and neither can hold characters that are not printed.
    #[error("the proxy's user or password holds what cannot be sent")]
    User,
}

impl Upstream {
    /// The proxy at `host` or `host:port`; user and password if it wants them.
    pub fn new(
        authority: &str,
        credentials: Option<(&str, &Secret)>,
    ) -> Result<Self, UpstreamError> {
        let (host, port) = host::authority(authority)?;
        let authorization = match credentials {
            None => None,
            Some((user, password)) => {
                let both = Secret::new(format!("{user}:{}", password.expose()));
                if user.contains(':') || both.expose().chars().any(char::is_control) {
                    return Err(UpstreamError::User);
                }
                Some(Secret::new(format!("Basic {}", STANDARD.encode(both.expose()))))
            }
        };
        Ok(Self { host, port: port.unwrap_or(USUAL_PORT), authorization })
    }

    /// Where it is.
    pub(super) fn place(&self) -> (&Host, u16) {
        (&self.host, self.port)
    }

    /// What it is asked for a request.
    pub(super) fn ask(&self, request: &Request) -> Vec<u8> {
        let Request { host, port, .. } = request;
        let mut ask = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
        if let Some(authorization) = &self.authorization {
            ask.push_str(&format!("Proxy-Authorization: {}\r\n", authorization.expose()));
        }
        ask.push_str("\r\n");
        ask.into_bytes()
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upstream({}:{})", self.host, self.port)
    }
}
