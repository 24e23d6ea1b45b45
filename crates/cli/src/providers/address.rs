//! Where a provider may be: sealed, or near. And who is in between.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use fluffy_base::Secret;
use fluffy_provider::{BaseUrl, UrlError};
use serde::Deserialize;

/// The address of a provider: `https://`, or `http://` at an address of this machine or of a private network.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Address(BaseUrl);

/// Why a text is no address of a provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    #[error("`{0}` is no address: {1}")]
    Url(String, UrlError),
    #[error(
        "`{0}` would send the key and your code in the clear: use `https://`; `http://` is for `localhost` and for \
         addresses of a private network, such as `http://192.168.1.2:8000/v1`"
    )]
    Plain(String),
}

/// A proxy of the user's, through which providers are reached.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Secret")]
pub(crate) struct ProxyUrl {
    /// Its host: a name, or an address.
    pub(crate) host: String,
    /// Its port.
    pub(crate) port: u16,
    /// `user:password`, if it wants that.
    pub(crate) login: Option<Secret>,
}

/// Why a text is no proxy. It does not repeat the text, which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProxyError {
    #[error("the proxy's address is wrong: {0}")]
    Url(UrlError),
    #[error("a proxy is spoken to in plain HTTP: write `http://host:port`")]
    Sealed,
    #[error("a proxy's address ends with its port")]
    Path,
    #[error("the proxy's user and password have a character that cannot be sent")]
    Login,
}

impl Address {
    /// What paths are put behind.
    pub(crate) fn url(&self) -> &BaseUrl {
        &self.0
    }

    /// Whether it is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        is_loopback(self.0.host())
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let url: BaseUrl =
            text.parse().map_err(|error| AddressError::Url(text.to_owned(), error))?;
        if url.is_https() || is_near(url.host()) {
            return Ok(Self(url));
        }
        Err(AddressError::Plain(url.to_string()))
    }
}

impl TryFrom<String> for Address {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl TryFrom<Secret> for ProxyUrl {
    type Error = ProxyError;

    fn try_from(text: Secret) -> Result<Self, ProxyError> {
        Self::parse(text.expose())
    }
}

impl ProxyUrl {
    /// Reads `[http://][user:password@]host:port`.
    pub(crate) fn parse(text: &str) -> Result<Self, ProxyError> {
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some(_) => return Err(ProxyError::Sealed),
            None => text,
        };
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, rest),
        };
        if login.is_some_and(|login| !login.chars().all(|c| c.is_ascii_graphic())) {
            return Err(ProxyError::Login);
        }
        let url: BaseUrl = format!("http://{place}").parse().map_err(ProxyError::Url)?;
        if !url.path().is_empty() {
            return Err(ProxyError::Path);
        }
        let login = login.map(|login| Secret::new(unescaped(login)));
        Ok(Self { host: url.host().to_owned(), port: url.port(), login })
    }
}

/// Whether a host is reached without a proxy, by a list of names: each stands for itself and for what ends with
/// it; `*` for all.
pub(crate) fn is_direct(host: &str, list: &[String]) -> bool {
    let named = |name: &String| {
        let name = name.trim().trim_start_matches('.').to_ascii_lowercase();
        let below = || host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.'));
        !name.is_empty() && (name == "*" || host == name || below())
    };
    is_loopback(host) || list.iter().any(named)
}

/// Percent escapes of a login, undone; what is none stays.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let escape = more.get(..2).filter(|_| *first == b'%');
        let byte = escape
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { more.get(2..).unwrap_or_default() } else { more };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether a host is this machine.
fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || address(host).is_some_and(|it| it.is_loopback())
}

/// Whether a host is this machine, or an address that no packet from outside reaches. Of a name nobody knows
/// where it leads.
fn is_near(host: &str) -> bool {
    if is_loopback(host) {
        return true;
    }
    match address(host) {
        Some(IpAddr::V4(it)) => it.is_private() || it.is_link_local() || is_shared(it),
        Some(IpAddr::V6(it)) => it.is_unique_local() || it.is_unicast_link_local(),
        None => false,
    }
}

/// Whether an address is of the range that networks of one operator share (100.64.0.0/10).
fn is_shared(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    first == 100 && second & 0xc0 == 64
}

/// The address that a host is, one of version 4 in the clothes of version 6 as itself.
fn address(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match bare {
        Some(text) => text.parse::<Ipv6Addr>().ok().map(|address| address.to_canonical()),
        None => host.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_for_this_machine_and_private_networks_alone() {
        for near in [
            "http://localhost:11434/v1",
            "http://api.localhost",
            "http://127.0.0.1:8080",
            "http://[::1]:8080",
            "http://10.0.0.7",
            "http://172.31.0.1",
            "http://192.168.1.2:8000/v1",
            "http://100.100.1.1",
            "http://[fd00::1]",
            "http://[::ffff:10.0.0.1]",
            "https://api.openai.com/v1",
            "https://8.8.8.8",
        ] {
            assert!(near.parse::<Address>().is_ok(), "{near}");
        }
        for far in [
            "http://api.openai.com/v1",
            "http://8.8.8.8",
            "http://172.32.0.1",
            "http://100.128.0.1",
            "http://[2001:db8::1]",
            "http://[::ffff:8.8.8.8]",
            "http://127.0.0.1.evil.org",
            "http://localhost.evil.org",
            "http://127.1",
            "http://2130706433",
            "http://gpu",
            "http://0.0.0.0",
        ] {
            let error = far.parse::<Address>().unwrap_err();
            assert!(matches!(error, AddressError::Plain(_)), "{far}: {error}");
        }
    }

    #[test]
    fn a_proxy_has_host_port_and_perhaps_a_login_that_is_not_shown() {
        let proxy = ProxyUrl::parse("http://ada:pa%3Ass%40@proxy.example.org:3128").unwrap();
        assert_eq!((proxy.host.as_str(), proxy.port), ("proxy.example.org", 3128));
        assert_eq!(proxy.login.as_ref().unwrap().expose(), "ada:pa:ss@");
        assert!(!format!("{proxy:?}").contains("pa:ss"));
        let plain = ProxyUrl::parse("10.0.0.1:8080").unwrap();
        assert_eq!((plain.host.as_str(), plain.port), ("10.0.0.1", 8080));
        assert!(plain.login.is_none());
        for (text, error) in [
            ("https://proxy:3128", ProxyError::Sealed),
            ("socks5://proxy:1080", ProxyError::Sealed),
            ("http://proxy:3128/path", ProxyError::Path),
            ("http://proxy:0", ProxyError::Url(UrlError::Port("0".to_owned()))),
            ("http://a b@proxy:3128", ProxyError::Login),
        ] {
            assert_eq!(ProxyUrl::parse(text).unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn this_machine_and_listed_names_are_reached_directly() {
        let list = ["example.org".to_owned(), ".corp".to_owned(), "10.0.0.5".to_owned()];
        for direct in [
            "localhost",
            "127.0.0.1",
            "[::1]",
            "example.org",
            "a.example.org",
            "x.corp",
            "10.0.0.5",
        ] {
            assert!(is_direct(direct, &list), "{direct}");
        }
        for through in ["notexample.org", "example.org.evil", "api.openai.com", "10.0.0.50"] {
            assert!(!is_direct(through, &list), "{through}");
        }
        assert!(is_direct("api.openai.com", &["*".to_owned()]));
        assert!(!is_direct("api.openai.com", &[String::new(), " ".to_owned()]));
    }
}
