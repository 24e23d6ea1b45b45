//! Host names and addresses as requests and lists spell them.
//!
//! **Invariant.** A [`Host`] has one spelling: lower case, no dot at the end, an address as a number and
//! never as a name that some resolver would read as one. Two hosts are the same if and only if they are
//! equal.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Serialize;

/// The longest name that the domain name system carries.
const LONGEST_NAME: usize = 253;
/// The longest part of a name between two dots.
const LONGEST_LABEL: usize = 63;

/// Whom a request asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Host {
    /// A name to look up.
    Name(String),
    /// An address; one of version 4 that is written as one of version 6 is of version 4.
    Address(IpAddr),
}

/// Why a text names no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum HostError {
    /// There is none.
    #[error("the host is empty")]
    Empty,
    /// It holds letters beyond ASCII.
    #[error("a host with letters beyond ASCII must be written in its `xn--` form")]
    NotAscii,
    /// It holds something that no name holds, such as a NUL, a space or an `@`.
    #[error("a host holds letters, digits, `-`, `_` and `.` only")]
    Character,
    /// A part between dots is empty, too long, or begins or ends with `-`.
    #[error("a part of the host is empty, too long, or begins or ends with `-`")]
    Label,
    /// The whole is too long.
    #[error("the host is longer than 253 characters")]
    Long,
    /// It looks like an address and is not one in its usual form.
    #[error("an address is written as `192.0.2.1` or `[2001:db8::1]`, in no other form")]
    Number,
    /// The port is not a number from 1 to 65535.
    #[error("a port is a number from 1 to 65535")]
    Port,
}

impl Host {
    /// Reads a host, with its brackets if it is an address of version 6.
    pub(super) fn parse(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if !text.is_ascii() {
            return Err(HostError::NotAscii);
        }
        if let Some(rest) = text.strip_prefix('[') {
            let inner = rest.strip_suffix(']').ok_or(HostError::Number)?;
            let address: Ipv6Addr = inner.parse().map_err(|_| HostError::Number)?;
            return Ok(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        let lower = text.to_ascii_lowercase();
        let name = lower.strip_suffix('.').unwrap_or(&lower);
        if !name.bytes().all(is_of_name) {
            return Err(HostError::Character);
        }
        if name.len() > LONGEST_NAME {
            return Err(HostError::Long);
        }
        if !name.split('.').all(is_label) {
            return Err(HostError::Label);
        }
        if !ends_in_number(name) {
            return Ok(Self::Name(name.to_owned()));
        }
        let address: Ipv4Addr = name.parse().map_err(|_| HostError::Number)?;
        Ok(Self::Address(IpAddr::V4(address)))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Reads `host` or `host:port`.
pub(super) fn authority(text: &str) -> Result<(Host, Option<u16>), HostError> {
    let (host, port) = split_port(text);
    let host = Host::parse(host)?;
    Ok((host, port.map(read_port).transpose()?))
}

/// Cuts `host:port` in two. The colons of an address in brackets are its own.
pub(super) fn split_port(text: &str) -> (&str, Option<&str>) {
    let after = text.rfind(']').unwrap_or(0);
    let colon = text.get(after..).and_then(|tail| tail.find(':')).map(|at| at + after);
    match colon.and_then(|at| text.split_at_checked(at)) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => (text, None),
    }
}

fn read_port(text: &str) -> Result<u16, HostError> {
    // `parse` alone would take a sign.
    let digits = text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let port = if digits { text.parse().unwrap_or(0) } else { 0 };
    if port == 0 { Err(HostError::Port) } else { Ok(port) }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.')
}

fn is_label(label: &str) -> bool {
    (1..=LONGEST_LABEL).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
}

/// Whether some resolver would read the name as an address: `2130706433`, `0x7f.1`, `127.1`.
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let hex = last.strip_prefix("0x");
    last.bytes().all(|byte| byte.is_ascii_digit())
        || hex.is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, meant: &str) {
        let read = authority(text).map(|(host, port)| match port {
            Some(port) => format!("{host}:{port}"),
            None => host.to_string(),
        });
        let read = read.unwrap_or_else(|error| format!("{error:?}"));
        assert_eq!(read, meant, "{text:?}");
    }

    #[test]
    fn a_host_has_one_spelling() {
        check("github.com", "github.com");
        check("GitHub.COM", "github.com");
        check("github.com.", "github.com");
        check("github.com:443", "github.com:443");
        check("my_bucket.s3.example", "my_bucket.s3.example");
        check("xn--mnchen-3ya.example", "xn--mnchen-3ya.example");
        check("127.0.0.1:80", "127.0.0.1:80");
        check("127.0.0.1.", "127.0.0.1");
        check("[::1]:8080", "[::1]:8080");
        check("[0:0:0:0:0:0:0:1]", "[::1]");
        check("[::ffff:127.0.0.1]:80", "127.0.0.1:80");
        check("[::ffff:7f00:1]", "127.0.0.1");
    }

    #[test]
    fn what_names_no_host_is_refused() {
        check("", "Empty");
        check(":443", "Empty");
        check("münchen.example", "NotAscii");
        check("github.com\0.evil.example", "Character");
        check("github.com@evil.example", "Character");
        check("user:pass@evil.example", "Port");
        check("github.com%00", "Character");
        check("github.com\\.evil.example", "Character");
        check("git hub.com", "Character");
        check("*.github.com", "Character");
        check("github..com", "Label");
        check(".github.com", "Label");
        check("github.com..", "Label");
        check(".", "Label");
        check("-github.com", "Label");
        check("github-.com", "Label");
        check(&"a".repeat(64), "Label");
        check(&"a.".repeat(127), "a.".repeat(127).trim_end_matches('.'));
        check(&"ab.".repeat(85), "Long");
    }

    #[test]
    fn an_address_in_an_unusual_form_is_refused() {
        for text in [
            "2130706433",
            "0177.0.0.1",
            "0x7f.1",
            "0x7f000001",
            "127.1",
            "127.0.1",
            "0",
            "1.2.3.4.5",
            "256.1.1.1",
            "127.0.0.01",
            "foo.1",
            "foo.0x",
            "1.2.3.4.0xff",
            "[127.0.0.1]",
            "[::1",
            "[fe80::1%eth0]",
            "[fe80::1%25eth0]",
            "[]",
            "[::g]",
            "[::1]x",
        ] {
            check(text, "Number");
        }
        check("::1", "Empty");
        check("fe80::1:80", "Port");
    }

    #[test]
    fn a_port_is_a_plain_number() {
        for port in
            ["", "0", "00", "+80", "-1", "65536", "443x", " 443", "99999999999", "0x50", "1e2"]
        {
            check(&format!("github.com:{port}"), "Port");
        }
        check("github.com:65535", "github.com:65535");
        check("github.com:00443", "github.com:443");
        check("github.com:443:443", "Port");
        check("[::1]:", "Port");
    }

    proptest::proptest! {
        #[test]
        fn reading_a_host_never_panics_and_its_spelling_is_stable(text in "\\PC{0,40}|[0-9a-fx.:\\[\\]]{0,20}") {
            if let Ok((host, _)) = authority(&text) {
                proptest::prop_assert_eq!(Host::parse(&host.to_string()), Ok(host));
            }
        }
    }
}
