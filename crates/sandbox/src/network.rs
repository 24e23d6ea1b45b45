//! What a sandbox can reach.

use std::sync::Arc;

use crate::proxy::AllowList;

/// The network of a sandbox. It always has a network namespace of its own with nothing but loopback.
#[derive(Debug, Clone, Default)]
pub enum Network {
    /// Nothing beyond its own loopback.
    #[default]
    None,
    /// The proxy, which passes on requests to these hosts.
    Restricted(Arc<AllowList>),
}
