//! The kernel's side of a provider's process: where it runs, and what it can reach.
//!
//! It sees no project, nothing of the kernel's environment, and of the network the one host and port that it was
//! configured for, through the proxy. What is said with it is none of the kernel's business: it is handed out as a
//! [`Guest`] to whoever speaks the provider's protocol.

use std::path::PathBuf;
use std::sync::Arc;

use fluffy_sandbox::proxy::{AllowError, AllowList, Upstream};
use fluffy_sandbox::{Config, Job, Network, Runtime, RuntimeError, Template};

use crate::guest::{Guest, GuestError};
use crate::witness::{Telling, Witness};

/// How a provider's process is started.
pub struct ProviderHost {
    /// What makes its sandbox.
    pub runtime: Arc<dyn Runtime>,
    /// The program that becomes it (`program provider-host`).
    pub program: PathBuf,
    /// What it may reach.
    pub destination: Destination,
    /// How many bytes its frames have at most.
    pub frame_bytes: usize,
    /// Who sees what becomes of it, and what it asks of the network.
    pub witness: Arc<Witness>,
}

/// The one place that a provider's process may reach.
#[derive(Debug, Clone)]
pub struct Destination {
    /// A name, or an address; one of version 6 in brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The proxy of the person, if there is one to go through.
    pub upstream: Option<Arc<Upstream>>,
}

/// Why a provider's process could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ProviderHostError {
    /// The host cannot be reached from a sandbox.
    #[error("the provider's host cannot be allowed")]
    Host(#[from] AllowError),
    /// It could not be started.
    #[error("the provider's process cannot be started")]
    Start(#[from] GuestError),
}

impl ProviderHost {
    /// Starts one.
    pub fn start(&self) -> Result<Guest, ProviderHostError> {
        let network = self.destination.network()?;
        let config = || Config::of(Template::AiProvider).staying().showing(&self.program);
        let config = config().and_then(|config| config.with_network(network));
        let config = config.map_err(|error| GuestError::Start(RuntimeError::from(error)))?;
        let job = Job::new(&self.program).args(["provider-host"]);
        let telling = Telling::now(&self.witness);
        Ok(Guest::start(&*self.runtime, config, job, self.frame_bytes, telling)?)
    }
}

impl Destination {
    /// That host and port alone. An address that is not public is reached because the person wrote that very
    /// address; `localhost` is written for the two that it means everywhere.
    fn network(&self) -> Result<Network, AllowError> {
        let Self { host, port, upstream } = self;
        let mut entries = vec![format!("{host}:{port}")];
        if host == "localhost" {
            entries.extend([format!("127.0.0.1:{port}"), format!("[::1]:{port}")]);
        }
        let allowed = Arc::new(AllowList::parse(entries)?);
        Ok(match upstream {
            Some(upstream) => Network::Relayed(allowed, Arc::clone(upstream)),
            None => Network::Restricted(allowed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(host: &str) -> Result<Arc<AllowList>, AllowError> {
        let destination = Destination { host: host.to_owned(), port: 8443, upstream: None };
        Ok(Arc::clone(destination.network()?.allowed().unwrap()))
    }

    #[test]
    fn a_provider_reaches_one_host_and_port() {
        let listed = |entries: &[&str]| Arc::new(AllowList::parse(entries).unwrap());
        assert_eq!(allowed("api.example").unwrap(), listed(&["api.example:8443"]));
        assert_eq!(allowed("10.0.0.5").unwrap(), listed(&["10.0.0.5:8443"]));
        assert_eq!(allowed("[::1]").unwrap(), listed(&["[::1]:8443"]));
        let here = ["localhost:8443", "127.0.0.1:8443", "[::1]:8443"];
        assert_eq!(allowed("localhost").unwrap(), listed(&here));
    }

    #[test]
    fn what_hands_out_credentials_is_no_provider() {
        assert!(allowed("169.254.169.254").is_err());
        assert!(allowed("metadata.google.internal").is_err());
        assert!(allowed("2130706433").is_err());
    }
}
