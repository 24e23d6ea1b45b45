//! The names of the seccomp profiles.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which system calls a sandbox may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Computing, reading files and talking over Unix sockets; threads, but no other process and no
    /// internet socket. For the policy host and for providers.
    Strict,
    /// What compilers, interpreters and test runners need, internet sockets included: the network
    /// namespace holds nothing but its own loopback.
    Standard,
    /// The same for a sandbox whose loopback leads to the proxy.
    StandardNet,
}

impl Profile {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Strict, Self::Standard, Self::StandardNet];

    /// The name in configuration and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Standard => "standard",
            Self::StandardNet => "standard-net",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
