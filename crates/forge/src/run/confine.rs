//! What a skill gets by its class: from the proposal in the ledger, and from nobody else.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fluffy_base::{ByteSize, ProjectPath, Span};
use fluffy_kernel::{Folders, Limits, Talk};

use super::frame::MAX_FRAME;
use crate::{Proposal, SideEffect, base};

/// How much a run may use.
const LIMITS: Limits = Limits {
    memory: ByteSize::from_bytes(512 << 20),
    cpu: 1_000,
    processes: 64,
    duration: Some(Span::from_ms(30_000)),
    captured: ByteSize::from_bytes(256 << 10),
    disk: ByteSize::from_bytes(64 << 20),
    files: 10_000,
    open_files: 256,
};

/// What a class of skills is given of what its proposal lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant<'a> {
    /// Folders that it sees.
    pub(super) reads: &'a [ProjectPath],
    /// Folders that it changes.
    pub(super) writes: &'a [ProjectPath],
    /// Hosts that it reaches.
    pub(super) hosts: &'a [String],
    /// Secrets that it is told.
    pub(super) secrets: &'a [String],
}

impl<'a> Grant<'a> {
    /// What this proposal's class allows of it. What is listed beyond that is not given.
    pub(super) fn of(proposal: &'a Proposal) -> Self {
        let (reads, none) = (proposal.reads.as_slice(), Self::nothing());
        let (hosts, secrets) = (proposal.hosts.as_slice(), proposal.secrets.as_slice());
        match proposal.side_effect {
            SideEffect::ReadOnly => Self { reads, ..none },
            SideEffect::FileWrite => Self { reads, writes: &proposal.writes, ..none },
            SideEffect::Network => Self { reads, hosts, ..none },
            SideEffect::SecretRead | SideEffect::Money | SideEffect::Messaging => {
                Self { reads, hosts, secrets, ..none }
            }
        }
    }

    const fn nothing() -> Self {
        Self { reads: &[], writes: &[], hosts: &[], secrets: &[] }
    }

    /// The folders as a sandbox shows them: each once, in the widest right, and only those that are there.
    pub(super) fn folders(&self, is_there: impl Fn(&ProjectPath) -> bool) -> Folders {
        let holds = |outer: &[ProjectPath], path: &ProjectPath| {
            outer.iter().any(|outer| path != outer && path.starts_with(outer))
        };
        let writes = self.writes.iter().filter(|path| !holds(self.writes, path));
        let reads = self.reads.iter().filter(|path| {
            !holds(self.reads, path)
                && !holds(self.writes, path)
                && !self.writes.contains(path)
                && is_there(path)
        });
        let (mut seen, mut changed): (Vec<_>, Vec<_>) =
            (reads.cloned().collect(), writes.cloned().collect());
        for list in [&mut seen, &mut changed] {
            list.sort_unstable();
            list.dedup();
        }
        Folders { seen, changed, hidden: Vec::new() }
    }

    /// The job: our own runner, given as a word and not as a file.
    pub(super) fn talk(&self, python: &Path, folders: Folders, scratch: PathBuf) -> Talk {
        let runner = String::from_utf8_lossy(base().runner).into_owned();
        let words = ["-I", "-S", "-B", "-c"].map(OsString::from).into_iter();
        Talk {
            program: python.to_owned(),
            args: words.chain([OsString::from(runner)]).collect(),
            env: vec![("TZ".to_owned(), "UTC0".to_owned())],
            folders,
            shown: Vec::new(),
            scratch,
            hosts: self.hosts.to_vec(),
            limits: LIMITS,
            frame_bytes: MAX_FRAME,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn proposal(class: &str) -> Proposal {
        serde_json::from_value(json!({
            "name": "x", "description": "x", "input": {}, "output": {}, "side_effect": class,
            "reads": ["docs", "notes/old", "gone"], "writes": ["notes", "notes/daily"],
            "hosts": ["example.org"], "secrets": ["TOKEN"],
        }))
        .unwrap()
    }

    #[test]
    fn a_class_gives_what_it_says_and_nothing_else() {
        for (class, writes, hosts, secrets) in [
            ("READ_ONLY", 0, 0, 0),
            ("FILE_WRITE", 2, 0, 0),
            ("NETWORK", 0, 1, 0),
            ("SECRET_READ", 0, 1, 1),
            ("MONEY", 0, 1, 1),
            ("MESSAGING", 0, 1, 1),
        ] {
            let proposal = proposal(class);
            let grant = Grant::of(&proposal);
            let given = (grant.writes.len(), grant.hosts.len(), grant.secrets.len());
            assert_eq!(given, (writes, hosts, secrets), "{class}");
            assert_eq!(grant.reads.len(), 3);
        }
    }

    #[test]
    fn a_folder_in_another_is_shown_once_in_the_wider_right() {
        let proposal = proposal("FILE_WRITE");
        let folders = Grant::of(&proposal).folders(|path| path.as_str() != "gone");
        let names = |list: &[ProjectPath]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(&folders.seen), ["docs"]);
        assert_eq!(names(&folders.changed), ["notes"]);
    }
}
