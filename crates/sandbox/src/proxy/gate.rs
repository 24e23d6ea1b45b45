//! Decides which requests of one sandbox may proceed.
//!
//! **Invariant.** A name that is not listed is never looked up, and an address that was not checked is
//! never connected to.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use super::address::{self, Reachable};
use super::allow::{self, AllowList, Listed};
use super::host::Host;
use super::record::Refusal;

/// The most addresses of one name that are tried.
const MOST_ADDRESSES: usize = 16;

/// What one sandbox may reach, and what it has asked for.
#[derive(Debug)]
pub(super) struct Gate {
    allow: Arc<AllowList>,
    /// Names below `*.` entries that were asked for.
    names: BTreeSet<String>,
    most_names: usize,
}

impl Gate {
    /// A gate that lets through what is listed, and of the names below `*.` entries so many.
    pub(super) fn new(allow: Arc<AllowList>, most_names: usize) -> Self {
        Self { allow, names: BTreeSet::new(), most_names }
    }

    /// Whether a host may be looked up.
    pub(super) fn admit(&mut self, host: &Host, port: u16) -> Result<(), Refusal> {
        if allow::is_metadata(host) {
            return Err(Refusal::Metadata);
        }
        match self.allow.judge(host, port) {
            Listed::Exactly => Ok(()),
            Listed::Below => self.count(host),
            Listed::OtherPort => Err(Refusal::Port),
            Listed::Not => Err(Refusal::Unlisted),
        }
    }

    /// Checks the addresses that a name was found to have.
    ///
    /// One that may not be reached refuses them all: a public address beside a private one is how a name
    /// is turned against those who check only the first, and an honest host of that kind can be listed by
    /// its address.
    pub(super) fn check(&self, found: &[SocketAddr]) -> Result<Vec<SocketAddr>, Refusal> {
        let mut checked = Vec::new();
        for address in found {
            let address = SocketAddr::new(address.ip().to_canonical(), address.port());
            match address::reachable(address.ip()) {
                Reachable::Public => {}
                Reachable::Private if self.allow.lists(address) || self.allow.trusts_private() => {}
                Reachable::Private => return Err(Refusal::Private),
                Reachable::Metadata => return Err(Refusal::Metadata),
            }
            checked.push(address);
        }
        checked.dedup();
        checked.truncate(MOST_ADDRESSES);
        Ok(checked)
    }

    fn count(&mut self, host: &Host) -> Result<(), Refusal> {
        let name = host.to_string();
        if self.names.contains(&name) {
            return Ok(());
        }
        if self.names.len() >= self.most_names {
            return Err(Refusal::Names);
        }
        self.names.insert(name);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::host;

    fn gate(entries: &[&str]) -> Gate {
        Gate::new(Arc::new(AllowList::parse(entries).unwrap()), 3)
    }

    fn admit(gate: &mut Gate, asked: &str) -> Result<(), Refusal> {
        let (host, port) = host::authority(asked).unwrap();
        gate.admit(&host, port.unwrap())
    }

    #[test]
    fn only_what_is_listed_is_looked_up() {
        let mut gate = gate(&["a.example", "*.google.internal", "10.0.0.5"]);
        assert_eq!(admit(&mut gate, "a.example:443"), Ok(()));
        assert_eq!(admit(&mut gate, "a.example:22"), Err(Refusal::Port));
        assert_eq!(admit(&mut gate, "b.example:443"), Err(Refusal::Unlisted));
        assert_eq!(admit(&mut gate, "1.1.1.1:443"), Err(Refusal::Unlisted));
        assert_eq!(admit(&mut gate, "10.0.0.5:443"), Ok(()));
        assert_eq!(admit(&mut gate, "metadata.google.internal:80"), Err(Refusal::Metadata));
        assert_eq!(admit(&mut gate, "169.254.169.254:80"), Err(Refusal::Metadata));
        assert_eq!(admit(&mut gate, "[::ffff:a9fe:a9fe]:80"), Err(Refusal::Metadata));
    }

    #[test]
    fn names_below_a_star_are_counted() {
        let mut gate = gate(&["*.a.example", "x.a.example"]);
        for name in ["1", "2", "3", "x", "2", "1"] {
            assert_eq!(admit(&mut gate, &format!("{name}.a.example:443")), Ok(()), "{name}");
        }
        assert_eq!(admit(&mut gate, "4.a.example:443"), Err(Refusal::Names));
        assert_eq!(admit(&mut gate, "3.a.example:443"), Ok(()));
        assert_eq!(admit(&mut gate, "x.a.example:443"), Ok(()));
    }

    fn check(entries: &[&str], found: &[&str]) -> Result<Vec<String>, Refusal> {
        let found: Vec<SocketAddr> = found.iter().map(|text| text.parse().unwrap()).collect();
        let checked = gate(entries).check(&found)?;
        Ok(checked.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn an_address_that_is_not_public_must_be_listed_itself() {
        let public = ["1.1.1.1:443", "[2606:4700::1]:443"];
        assert_eq!(check(&[], &public).unwrap(), public);
        assert_eq!(check(&[], &["127.0.0.1:443"]), Err(Refusal::Private));
        assert_eq!(check(&["127.0.0.1"], &["127.0.0.1:443"]).unwrap(), ["127.0.0.1:443"]);
        assert_eq!(check(&["127.0.0.1:8080"], &["127.0.0.1:443"]), Err(Refusal::Private));
        assert_eq!(check(&["127.0.0.1"], &["[::ffff:127.0.0.1]:80"]).unwrap(), ["127.0.0.1:80"]);
        assert_eq!(check(&["*.a.example"], &["10.1.2.3:443"]), Err(Refusal::Private));
    }

    #[test]
    fn trusted_names_lead_to_private_addresses_and_not_to_metadata() {
        let allow = AllowList::parse(["mirror.example"]).unwrap().trusting_private();
        let mut gate = Gate::new(Arc::new(allow), 3);
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(admit(&mut gate, "other.example:443"), Err(Refusal::Unlisted));
        assert_eq!(gate.check(&[address("10.0.0.1:443")]), Ok(vec![address("10.0.0.1:443")]));
        assert_eq!(gate.check(&[address("169.254.169.254:80")]), Err(Refusal::Metadata));
    }

    #[test]
    fn one_bad_address_refuses_the_name() {
        assert_eq!(check(&[], &["1.1.1.1:443", "10.0.0.1:443"]), Err(Refusal::Private));
        assert_eq!(check(&[], &["1.1.1.1:80", "169.254.169.254:80"]), Err(Refusal::Metadata));
        assert_eq!(check(&[], &["[64:ff9b::a9fe:a9fe]:80"]), Err(Refusal::Metadata));
    }
}
