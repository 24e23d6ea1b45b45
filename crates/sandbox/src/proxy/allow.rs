//! The hosts that a sandbox may reach.
//!
//! An entry is what `network_whitelist` in a policy holds, `pypi.org` or `*.pypi.org`; and beyond that, for
//! hosts that the kernel lists itself, an address or a port as in `[::1]:8080`. Without a port it means 80
//! and 443.
//!
//! **Invariant.** An empty list lets nothing through, and no entry lets a metadata service through.

use std::net::SocketAddr;

use super::address::{self, Reachable};
use super::host::{self, Host, HostError};

/// The hosts that a sandbox may reach. None, unless it is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    entries: Vec<Entry>,
    /// Whether a listed name may lead to an address that is not public.
    private: bool,
}

/// Why a text is no entry of a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllowError {
    /// It names no host.
    #[error("`{entry}` names no host")]
    Host {
        /// The text, shortened.
        entry: String,
        /// Why not.
        source: HostError,
    },
    /// It is spelled differently from how hosts are compared.
    #[error("`{entry}` is written `{plain}`")]
    Spelling {
        /// The text.
        entry: String,
        /// How it should be.
        plain: String,
    },
    /// `*.` stands before what is not a name with a dot in it: `*.com` would be half of the world.
    #[error("`{entry}` is too wide: `*.` stands before a name of at least two parts")]
    Wide {
        /// The text.
        entry: String,
    },
    /// It names a service that hands out a machine's credentials.
    #[error("`{entry}` hands out this machine's credentials and is never reached from a sandbox")]
    Metadata {
        /// The text.
        entry: String,
    },
}

/// What a list says of a host and port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listed {
    /// It is listed.
    Exactly,
    /// It is below a listed name.
    Below,
    /// It is listed, but not with this port.
    OtherPort,
    /// It is not.
    Not,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    whom: Whom,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Whom {
    Host(Host),
    /// Names that end in this one, which begins with a dot.
    Below(String),
}

impl AllowList {
    /// Reads a list; one bad entry makes it none.
    pub fn parse<T: AsRef<str>>(entries: impl IntoIterator<Item = T>) -> Result<Self, AllowError> {
        let entries = entries.into_iter().map(|entry| Entry::parse(entry.as_ref()));
        Ok(Self { entries: entries.collect::<Result<_, _>>()?, private: false })
    }

    /// The same where the user's own settings name the hosts: a mirror of their company has a private address. Services
    /// that hand out a machine's credentials stay out of reach.
    #[must_use]
    pub fn trusting_private(self) -> Self {
        Self { private: true, ..self }
    }

    /// Whether a listed name may lead to an address that is not public.
    pub(super) fn trusts_private(&self) -> bool {
        self.private
    }

    /// Whether nothing is listed.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What it says of a host and port.
    pub(super) fn judge(&self, host: &Host, port: u16) -> Listed {
        let judged = self.entries.iter().filter_map(|entry| entry.judge(host, port));
        judged.max_by_key(|listed| listed.strength()).unwrap_or(Listed::Not)
    }

    /// Whether this very address is listed with this port.
    pub(super) fn lists(&self, address: SocketAddr) -> bool {
        let host = Host::Address(address.ip().to_canonical());
        self.judge(&host, address.port()) == Listed::Exactly
    }
}

impl Listed {
    fn strength(self) -> u8 {
        match self {
            Self::Not => 0,
            Self::OtherPort => 1,
            Self::Below => 2,
            Self::Exactly => 3,
        }
    }
}

impl Entry {
    fn parse(entry: &str) -> Result<Self, AllowError> {
        let shown = || super::record::shown(entry.as_bytes());
        let (name, below) = match entry.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (entry, false),
        };
        let (host, port) =
            host::authority(name).map_err(|source| AllowError::Host { entry: shown(), source })?;
        let (written, _) = host::split_port(name);
        if !is_plain(written, &host) {
            return Err(AllowError::Spelling { entry: shown(), plain: host.to_string() });
        }
        if is_metadata(&host) {
            return Err(AllowError::Metadata { entry: shown() });
        }
        let whom = match host {
            Host::Name(name) if below && name.contains('.') => Whom::Below(format!(".{name}")),
            host if !below => Whom::Host(host),
            Host::Name(_) | Host::Address(_) => return Err(AllowError::Wide { entry: shown() }),
        };
        Ok(Self { whom, port })
    }

    fn judge(&self, host: &Host, port: u16) -> Option<Listed> {
        let listed = match (&self.whom, host) {
            (Whom::Host(listed), host) if listed == host => Listed::Exactly,
            (Whom::Below(suffix), Host::Name(name)) if is_below(name, suffix) => Listed::Below,
            (Whom::Host(_) | Whom::Below(_), Host::Name(_) | Host::Address(_)) => return None,
        };
        let meant = match self.port {
            Some(meant) => meant == port,
            None => matches!(port, 80 | 443),
        };
        Some(if meant { listed } else { Listed::OtherPort })
    }
}

fn is_below(name: &str, suffix: &str) -> bool {
    name.len() > suffix.len() && name.ends_with(suffix)
}

/// An address in brackets may be written in any way that means it.
fn is_plain(written: &str, host: &Host) -> bool {
    written.starts_with('[') || written == host.to_string()
}

pub(super) fn is_metadata(host: &Host) -> bool {
    match host {
        Host::Name(name) => address::is_metadata_name(name),
        Host::Address(address) => address::reachable(*address) == Reachable::Metadata,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(entries: &[&str], asked: &str, meant: Listed) {
        let list = AllowList::parse(entries).unwrap();
        let (host, port) = host::authority(asked).unwrap();
        assert_eq!(list.judge(&host, port.unwrap()), meant, "{asked} in {entries:?}");
    }

    #[test]
    fn a_name_is_itself_on_the_two_usual_ports() {
        check(&["github.com"], "github.com:443", Listed::Exactly);
        check(&["github.com"], "github.com:80", Listed::Exactly);
        check(&["github.com"], "GITHUB.com.:443", Listed::Exactly);
        check(&["github.com"], "github.com:22", Listed::OtherPort);
        check(&["github.com"], "api.github.com:443", Listed::Not);
        check(&["github.com"], "evil-github.com:443", Listed::Not);
        check(&["github.com"], "github.com.evil.example:443", Listed::Not);
        check(&["github.com"], "com:443", Listed::Not);
        check(&["localhost"], "localhost:80", Listed::Exactly);
    }

    #[test]
    fn a_star_stands_for_names_below_and_not_for_the_name_itself() {
        check(&["*.github.com"], "api.github.com:443", Listed::Below);
        check(&["*.github.com"], "a.b.github.com:443", Listed::Below);
        check(&["*.github.com"], "github.com:443", Listed::Not);
        check(&["*.github.com"], "evil-github.com:443", Listed::Not);
        check(&["*.github.com"], "api.github.com:22", Listed::OtherPort);
        check(&["*.github.com:22"], "api.github.com:22", Listed::Below);
        check(&["*.github.com", "api.github.com"], "api.github.com:443", Listed::Exactly);
    }

    #[test]
    fn a_port_is_that_port_alone() {
        check(&["db.example:5432"], "db.example:5432", Listed::Exactly);
        check(&["db.example:5432"], "db.example:443", Listed::OtherPort);
        check(&["db.example:5432", "db.example"], "db.example:443", Listed::Exactly);
    }

    #[test]
    fn an_address_is_itself_however_it_is_written() {
        check(&["10.0.0.5"], "10.0.0.5:443", Listed::Exactly);
        check(&["10.0.0.5"], "[::ffff:10.0.0.5]:443", Listed::Exactly);
        check(&["[::ffff:10.0.0.5]:8080"], "10.0.0.5:8080", Listed::Exactly);
        check(&["[::1]:8080"], "[0:0::1]:8080", Listed::Exactly);
        check(&["[::1]:8080"], "[::1]:80", Listed::OtherPort);
        check(&["10.0.0.5"], "10.0.0.50:443", Listed::Not);
    }

    #[test]
    fn an_empty_list_lists_nothing() {
        check(&[], "github.com:443", Listed::Not);
        check(&[], "1.1.1.1:443", Listed::Not);
        assert!(AllowList::default().is_empty());
    }

    fn refuse(entry: &str, why: &str) {
        let error = AllowList::parse([entry]).unwrap_err();
        assert!(error.to_string().contains(why), "{entry}: {error}");
    }

    #[test]
    fn a_bad_entry_is_an_error() {
        for entry in
            ["", "*", "*.", "*.*.com", "a b", "https://github.com", "github.com/x", "a@b.c"]
        {
            refuse(entry, "names no host");
        }
        for entry in ["2130706433", "127.1", "github.com:0", "github.com:", "[::1", "mün.example"]
        {
            refuse(entry, "names no host");
        }
        refuse("*.com", "too wide");
        refuse("*.10.0.0.5", "too wide");
        refuse("*.[::1]", "too wide");
        refuse("GitHub.com", "is written `github.com`");
        refuse("github.com.", "is written `github.com`");
    }

    #[test]
    fn a_metadata_service_cannot_be_listed() {
        for entry in ["169.254.169.254", "metadata.google.internal", "[fd00:ec2::254]:80"] {
            refuse(entry, "credentials");
        }
        refuse("[::ffff:169.254.169.254]", "credentials");
        refuse("[64:ff9b::a9fe:a9fe]", "credentials");
    }
}
