//! Looks names up.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};

/// Something that knows the addresses of names. It may take its time: it is asked on a thread of its own.
pub trait Resolver: Send + Sync {
    /// The addresses of a name, in the order in which to try them, with the port to try.
    ///
    /// Asked once for each request: what it answers is checked, and exactly that is connected to.
    fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// The machine's own resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok((name, port).to_socket_addrs()?.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_knows_itself() {
        let found = SystemResolver.resolve("localhost", 80).unwrap();
        assert!(!found.is_empty());
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 80));
    }
}
