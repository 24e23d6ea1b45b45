//! What `sandbox-init` is told: every mount, every limit and the command, as data.
//!
//! The kernel decides all of it ([`super::plan`]); the processes that set a sandbox up carry it out in order
//! and add nothing of their own.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::profile::Profile;

/// A sandbox and its command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// The user and group of the host that stand behind the sandbox's own.
    pub(crate) owner: Owner,
    /// How large the one file system in memory is that holds the root, `/tmp` and the home.
    pub(crate) scratch: Scratch,
    /// What the root is furnished with, in order: what holds others comes before them.
    pub(crate) furniture: Vec<Furniture>,
    /// The workspace, or the parts of it that are seen: what holds others comes before them.
    pub(crate) spaces: Vec<Space>,
    /// Whether the directory of a control group of version 2 comes along, to be born into.
    pub(crate) unified: bool,
    /// What the job is confined by once all of that stands.
    pub(crate) inner: Inner,
}

/// What a job is confined by in a sandbox that stands, whoever built it; and its command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Inner {
    /// Whether listeners for the proxy are made.
    pub(crate) proxy: bool,
    pub(crate) profile: Profile,
    /// Whether this machine has Landlock; then a sandbox without it is a failure.
    pub(crate) landlock: bool,
    /// The namespaces of the kernel, as `/proc/self/ns` names them: the job must be in none of them.
    pub(crate) outside: Vec<(String, Bytes)>,
    /// Where Landlock lets the job write.
    pub(crate) writable: Vec<Bytes>,
    pub(crate) rlimits: Rlimits,
    pub(crate) command: Command,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Owner {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Whether the maps are written by root, who may choose; and mounts taken by root, who sees all.
    pub(crate) privileged: bool,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Scratch {
    pub(crate) bytes: u64,
    pub(crate) files: u64,
}

/// A path of the host, shown read-only at a path of the sandbox. Paths of the sandbox are relative to its
/// root, without a leading slash.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Bind {
    pub(crate) from: Bytes,
    pub(crate) to: Bytes,
    pub(crate) kind: Kind,
    /// Whether what is mounted below comes along.
    pub(crate) deep: bool,
    /// Whether the host's root is shown as the sandbox's user.
    pub(crate) owners: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Directory,
    File,
    /// A device node: the one kind of mount where devices work.
    Device,
}

/// Something made in the root before it becomes read-only.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Furniture {
    /// A directory.
    Directory(Bytes),
    /// A file with these bytes.
    File(Bytes, Bytes),
    /// A link (what it says, where it stands).
    Link(Bytes, Bytes),
    /// A writable directory out of the scratch space, with its mode.
    Private(Bytes, u32),
    /// Something of the host, read-only.
    Shown(Bind),
    /// The processes of the sandbox, read-only, with these parts covered.
    Proc(Bytes, Vec<Masked>),
    /// Terminals of the sandbox's own.
    Terminals(Bytes),
}

/// A part of the processes' directory that concerns the host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Masked {
    pub(crate) name: Bytes,
    pub(crate) directory: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Space {
    pub(crate) at: Bytes,
    /// The folder of the layers that it is; empty where it is all of them.
    pub(crate) within: Bytes,
    /// Lowest first.
    pub(crate) layers: Vec<Bind>,
    pub(crate) changes: SpaceChanges,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum SpaceChanges {
    Refused,
    /// A writable `/output`.
    Output(Upper),
    /// A writable workspace.
    Overlay(Upper),
}

/// Where changes lie.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Upper {
    /// In the scratch space.
    Memory,
    /// In a directory of the host's, which holds `upper` and `work`.
    Disk(Bytes),
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Rlimits {
    pub(crate) open_files: u64,
    pub(crate) file_bytes: u64,
    /// Only where no control group limits them.
    pub(crate) processes: Option<u64>,
    /// Memory per process; only where no control group limits all of them together.
    pub(crate) data: Option<u64>,
    /// How many processors the job sees.
    pub(crate) processors: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Command {
    pub(crate) program: Bytes,
    pub(crate) args: Vec<Bytes>,
    /// Whether it is a guest of this program, which need not be executed if it is known here.
    pub(crate) guest: bool,
    /// `NAME=value`.
    pub(crate) env: Vec<Bytes>,
    /// The directories that a program without slash is looked for in.
    pub(crate) path: Vec<Bytes>,
    pub(crate) cwd: Bytes,
}

impl Spec {
    /// Whether something shows the host's root as the sandbox's user.
    pub(crate) fn shows_owners(&self) -> bool {
        let shown = self.furniture.iter().filter_map(|piece| match piece {
            Furniture::Shown(bind) => Some(bind),
            _ => None,
        });
        let layers = self.spaces.iter().flat_map(|space| &space.layers);
        shown.chain(layers).any(|bind| bind.owners)
    }
}

impl Space {
    /// The directory of the host's that takes changes, if they go to disk.
    pub(crate) fn disk(&self) -> Option<&Path> {
        match &self.changes {
            SpaceChanges::Output(Upper::Disk(path)) | SpaceChanges::Overlay(Upper::Disk(path)) => {
                Some(path.as_path())
            }
            _ => None,
        }
    }
}

/// Bytes of the operating system's: a path, an argument. Text in JSON where they are UTF-8.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) OsString);

impl Bytes {
    pub(crate) fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl<T: AsRef<OsStr> + ?Sized> From<&T> for Bytes {
    fn from(text: &T) -> Self {
        Self(text.as_ref().to_owned())
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => serializer.serialize_bytes(self.as_bytes()),
        }
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of bytes")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Bytes, E> {
                Ok(Bytes(text.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Bytes, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = list.next_element()? {
                    bytes.push(byte);
                }
                Ok(Bytes(OsString::from_vec(bytes)))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_survive_the_way_to_the_other_process() {
        for bytes in [&b"plain"[..], b"", b"\xff\xfe/\n", "ü\u{1f600}".as_bytes()] {
            let sent = Bytes(OsString::from_vec(bytes.to_vec()));
            let text = serde_json::to_vec(&sent).unwrap();
            assert_eq!(serde_json::from_slice::<Bytes>(&text).unwrap(), sent);
        }
    }
}
