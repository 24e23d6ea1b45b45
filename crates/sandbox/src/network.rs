//! What a sandbox can reach.

use std::sync::Arc;

use crate::proxy::{AllowList, Upstream};

/// The network of a sandbox. It always has a network namespace of its own with nothing but loopback.
#[derive(Debug, Clone, Default)]
pub enum Network {
    /// Nothing beyond its own loopback.
    #[default]
    None,
    /// The proxy, which passes on requests to these hosts.
    Restricted(Arc<AllowList>),
    /// The same through another proxy, which the person has to use: it looks names up, and what they lead to is
    /// its business.
    Relayed(Arc<AllowList>, Arc<Upstream>),
}

impl Network {
    /// The hosts that can be reached, if any can.
    pub fn allowed(&self) -> Option<&Arc<AllowList>> {
        match self {
            Self::None => None,
            Self::Restricted(allowed) | Self::Relayed(allowed, _) => Some(allowed),
        }
    }

    /// The proxy behind the proxy.
    pub fn upstream(&self) -> Option<&Arc<Upstream>> {
        match self {
            Self::None | Self::Restricted(_) => None,
            Self::Relayed(_, upstream) => Some(upstream),
        }
    }
}
