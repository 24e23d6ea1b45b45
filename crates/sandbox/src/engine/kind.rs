//! Which engines there are, and where each listens.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// An engine that runs containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EngineKind {
    /// Docker Engine, 20.10 or later.
    Docker,
    /// Podman, 4.3 or later.
    Podman,
}

impl EngineKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Docker, Self::Podman];

    /// The name in configuration and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }

    /// The name at the beginning of a sentence.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Docker => "Docker",
            Self::Podman => "Podman",
        }
    }

    /// Where it may listen, the likeliest first: where the user says, the user's own, the machine's.
    pub fn sockets(self, host: Option<&str>, runtime_dir: Option<&Path>) -> Vec<PathBuf> {
        let said = host.and_then(|host| host.strip_prefix("unix://")).map(PathBuf::from);
        let mut sockets: Vec<PathBuf> =
            said.filter(|path| path.is_absolute()).into_iter().collect();
        let (own, machine): (&str, &[&str]) = match self {
            Self::Docker => ("docker.sock", &["/var/run/docker.sock"]),
            Self::Podman => ("podman/podman.sock", &["/run/podman/podman.sock"]),
        };
        sockets.extend(runtime_dir.map(|dir| dir.join(own)));
        sockets.extend(machine.iter().map(PathBuf::from));
        sockets
    }

    pub(super) const fn start(self) -> &'static str {
        match self {
            Self::Docker => {
                "start Docker (`sudo systemctl start docker`; https://docs.docker.com/engine/install)"
            }
            Self::Podman => {
                "start Podman's service (`systemctl --user start podman.socket`; https://podman.io/docs/installation)"
            }
        }
    }

    pub(super) const fn permission(self) -> &'static str {
        match self {
            Self::Docker => {
                "use rootless Docker, or join the group `docker`, whose members are as good as root"
            }
            Self::Podman => "use your own service (`systemctl --user start podman.socket`)",
        }
    }

    pub(super) const fn log(self) -> &'static str {
        match self {
            Self::Docker => "`journalctl -u docker`",
            Self::Podman => "`journalctl --user -u podman`",
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no engine `{0}` (there are: docker, podman)")]
pub struct UnknownEngine(String);

impl FromStr for EngineKind {
    type Err = UnknownEngine;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|engine| engine.name() == text);
        known.ok_or_else(|| UnknownEngine(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_says_comes_first_and_what_is_no_socket_is_passed_over() {
        let own = Path::new("/run/user/7");
        let docker = EngineKind::Docker.sockets(Some("unix:///srv/d.sock"), Some(own));
        let all = ["/srv/d.sock", "/run/user/7/docker.sock", "/var/run/docker.sock"];
        assert_eq!(docker, all.map(PathBuf::from));
        let podman = EngineKind::Podman.sockets(Some("tcp://10.0.0.1:2375"), None);
        assert_eq!(podman, [PathBuf::from("/run/podman/podman.sock")]);
        assert!("container".parse::<EngineKind>().is_err());
        assert_eq!("podman".parse(), Ok(EngineKind::Podman));
    }
}
