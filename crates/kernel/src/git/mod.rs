//! Git, in sandboxes: what changed, what was done before, and a commit that no hook can abuse.
//!
//! ```text
//! status, diff, log ── git, in a sandbox that changes nothing ──► parsed, bounded, hidden files left out
//!
//! commit ── settings ── survey ── tree and commit ── index ──► checked ── store
//!             │            │            │              │                    │ objects, branch, index
//!             └────────────┴─ sandboxes ┴──────────────┘                    ▼
//!                             that run git and nothing else            the project's .git
//! ```
//!
//! Git itself runs in sandboxes only. Of what it leaves there, a commit takes new objects that are what their names
//! say, and an index; the kernel writes them ([`store`]), moves the branch and ignores all else that lies in the
//! sandbox's `.git`. Hooks of the repository run in sandboxes of their own, whose changes are thrown away.
//!
//! **Invariant.** No program that a repository's configuration or files name runs where a commit is made. Where hooks
//! run, nothing is taken but their verdict and, of `commit-msg`, a text.

mod commit;
mod diff;
mod hooks;
mod identity;
mod init;
mod log;
mod message;
mod object;
mod repository;
mod run;
mod settings;
mod status;
mod store;
mod tracked;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use fluffy_base::{Excerpt, ProjectPath, sanitised};
use fluffy_sandbox::harvest::{HarvestError, ReadError};
use rustix::io::Errno;

use crate::workshop::{Workshop, WorkshopError};

pub(crate) use self::init::init_repository;
pub use commit::{Commit, Committed, Recorded};
pub use diff::GitDiff;
pub use hooks::{Hook, HookAnswer, HookPolicy};
pub use identity::{Identity, IdentityOverrides};
pub use log::{GitLog, Logged};
pub use message::{Message, MessageError, Trailer};
pub use object::{ObjectError, ObjectId};
pub use status::{Changed, FileState, GitStatus};

/// How much of a program's words is kept in an error.
const WORDS: usize = 2000;
/// The most files that are committed at once.
const MAX_PATHS: usize = 10_000;

/// What git needs to know about the user.
#[derive(Debug, Clone, Default)]
pub struct GitOptions {
    /// The program; where nothing is said, the system's.
    pub program: Option<PathBuf>,
    /// The user's home directory, for `.gitconfig`.
    pub home: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME`, for `git/config`; where nothing is said, `.config` in the home directory.
    pub config_home: Option<PathBuf>,
}

/// The project's repository, as a session uses it.
pub struct Git {
    workshop: Arc<Workshop>,
    options: GitOptions,
    program: PathBuf,
}

/// A file as git names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitPath {
    /// A file of the project.
    Known(ProjectPath),
    /// A name that no request can spell, escaped.
    Odd(String),
}

/// Why git did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The project has no repository.
    #[error("the project is not a git repository")]
    NotARepository,
    /// The repository lies outside of the project.
    #[error("the project's `.git` leads to a repository that lies elsewhere")]
    Elsewhere,
    /// A kind of repository that is not written to.
    #[error("the project's repository cannot be committed to: {0}")]
    Unsupported(&'static str),
    /// Somebody is in the middle of something.
    #[error("{0} is under way in the project's repository")]
    UnderWay(&'static str),
    /// A lock is there.
    #[error("the lock `{0}` is there")]
    Locked(String),
    /// Somebody else changed the repository meanwhile.
    #[error("{0} of the project's repository changed while the commit was made")]
    Moved(&'static str),
    /// There is no git.
    #[error("there is no `git` on this machine")]
    NoGit,
    /// Git failed.
    #[error("git failed to {what} ({ended}): {output}")]
    Failed {
        /// What it was to do.
        what: &'static str,
        /// How it ended.
        ended: String,
        /// What it said, shortened and safe to show.
        output: String,
    },
    /// Git said something that cannot be understood.
    #[error("what git says cannot be understood: {0}")]
    Answer(&'static str),
    /// There are too many files, settings or changes.
    #[error("there are too many {0}")]
    TooMany(&'static str),
    /// A file is kept through a program.
    #[error("`{path}` is kept through the filter `{driver}`, and filters are not run")]
    Filtered {
        /// The file.
        path: ProjectPath,
        /// The filter.
        driver: String,
    },
    /// A file of a repository's own.
    #[error("`{0}` is part of a repository's own directory, and cannot be committed")]
    OwnFile(ProjectPath),
    /// The commit would hold something that nobody asked for.
    #[error("the commit would change `{0}`, which is none of its files")]
    Unexpected(String),
    /// The repository has hooks, and the policy commits to none that has.
    #[error("the repository has hooks ({0}), and the policy does not commit to one that has")]
    Hooks(String),
    /// Hooks are configured that no sandbox sees.
    #[error("the repository's hooks are configured to lie in `{0}`, outside of the project")]
    HooksElsewhere(String),
    /// The message is none.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// An object is not what it should be.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// What the sandbox left cannot be taken.
    #[error("what git left cannot be taken")]
    Harvest(#[from] HarvestError),
    /// What the sandbox left cannot be read.
    #[error("what git left cannot be read")]
    Read(#[from] ReadError),
    /// The sandbox could not be had.
    #[error(transparent)]
    Workshop(#[from] WorkshopError),
    /// The operating system refused.
    #[error("`{what}` in the project's repository cannot be read or written")]
    Io {
        /// What.
        what: String,
        /// Why not.
        source: io::Error,
    },
}

impl Git {
    /// The repository of the project that this workshop works on.
    pub fn new(workshop: Arc<Workshop>, options: GitOptions) -> Self {
        let program = options.program.clone().unwrap_or_else(run::installed);
        Self { workshop, options, program }
    }
}

impl GitError {
    /// What the user can do about it.
    pub fn fix(&self) -> Option<&'static str> {
        match self {
            Self::NotARepository => Some("run `git init` if the project should have a history"),
            Self::Elsewhere => Some(
                "this is a linked worktree or a submodule: commit there yourself, or work in the main worktree",
            ),
            Self::Unsupported(_) | Self::Filtered { .. } => Some("commit these files yourself"),
            Self::UnderWay(_) => Some("finish or abort it first (`git status` says how)"),
            Self::Locked(_) => {
                Some("another git works on it; if none does, one was killed: remove the lock")
            }
            Self::Moved(_) => Some("nothing was committed; try again"),
            Self::NoGit => Some("install git"),
            Self::Hooks(_) | Self::HooksElsewhere(_) => {
                Some("commit yourself, or let the policy skip hooks")
            }
            Self::Message(_) => Some("write a message of a few lines"),
            Self::Failed { .. }
            | Self::Answer(_)
            | Self::TooMany(_)
            | Self::Unexpected(_)
            | Self::OwnFile(_)
            | Self::Object(_)
            | Self::Harvest(_)
            | Self::Read(_)
            | Self::Workshop(_)
            | Self::Io { .. } => None,
        }
    }

    fn io(what: &str, errno: Errno) -> Self {
        Self::Io { what: what.to_owned(), source: errno.into() }
    }
}

impl GitPath {
    /// The file that these bytes name.
    fn of(bytes: &[u8]) -> Self {
        let known = str::from_utf8(bytes)
            .ok()
            .and_then(|text| ProjectPath::parse(text).ok().filter(|path| path.as_str() == text));
        known.map_or_else(|| Self::Odd(escaped(bytes)), Self::Known)
    }

    /// The file, if a request can name it.
    pub fn known(&self) -> Option<&ProjectPath> {
        match self {
            Self::Known(path) => Some(path),
            Self::Odd(_) => None,
        }
    }
}

impl std::fmt::Display for GitPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Known(path) => f.write_str(path.as_str()),
            Self::Odd(name) => f.write_str(name),
        }
    }
}

/// A name on one line that no terminal obeys.
fn escaped(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        shown.push_str(&sanitised(chunk.valid()));
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    Excerpt::new(&shown, 300).to_string()
}

/// What a program printed: text on lines, nothing else, and the end of it where it is long.
fn words(bytes: &[u8], most: usize) -> String {
    let start = bytes.len().saturating_sub(most);
    let text = String::from_utf8_lossy(bytes.get(start..).unwrap_or_default());
    let shown = |line: &str| line.split('\t').map(sanitised).collect::<Vec<_>>().join("\t");
    let lines: Vec<_> = text.trim().lines().map(shown).collect();
    let cut = if start > 0 { "…" } else { "" };
    format!("{cut}{}", lines.join("\n"))
}
