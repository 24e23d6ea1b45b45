//! The kernel's own confinement, in which the sandboxes of its jobs nest.
//!
//! ```text
//! host ── fluffy kernel serve ── enter ──► namespaces, locked mounts, no privileges, seccomp
//!                                            │ project, state, cache, runtime directory: read-write
//!                                            │ home, sockets, other users: not there; the rest: read-only
//!                                            └── sandbox-init ──► sandboxes, in copies of what is left
//! ```
//!
//! There is no Landlock here: sandboxes have their own. Rules on files would forbid every mount, and with them sandboxes;
//! and under a domain without such rules Linux still denies whoever adds some to move or link a file into another
//! directory (`LANDLOCK_ACCESS_FS_REFER`, denied by each layer that does not grant it). No job could build anything.
//!
//! **Invariant.** [`enter`] gives [`Entered`] only if a check under all of it found everything in force. After an error
//! the process is neither free nor confined, and can only end.
//!
//! **Invariant.** Nobody here is root, inside or outside, nor has a privilege. Whoever makes a user namespace from here
//! gets copies of these mounts that are locked: what is read-only stays so, what is covered stays covered.

mod check;
mod inside;
mod layout;
mod mounts;
mod users;

use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

use crate::runtime::RuntimeError;

use super::init::Broken;
use super::seccomp;
use super::sys;
use super::system;
use super::why;

pub use self::inside::enter_container;
use self::layout::Layout;
use self::users::Form;

/// What the kernel needs of the machine. Everything that is to be written exists already; links in the paths are
/// followed once, at the beginning, but for those of `shown`.
#[derive(Debug, Clone, Default)]
pub struct L1Options {
    /// The project: read-write.
    pub project: PathBuf,
    /// Directories that the kernel writes to: state, cache, its own part of the runtime directory.
    pub writable: Vec<PathBuf>,
    /// Directories in those for what sandboxes write. Where root starts the kernel they are given to its user: a job could
    /// otherwise leave a program that runs as root.
    pub volumes: Vec<PathBuf>,
    /// The home directory, which is replaced by an empty one. Nothing if the user has none.
    pub home: Option<PathBuf>,
    /// What is shown of hidden places, read-only: toolchains, directories of programs, settings. What is a link, or
    /// holds something secret, is passed over.
    pub shown: Vec<PathBuf>,
    /// The kernel's own program, which sets its sandboxes up.
    pub program: PathBuf,
    /// Descriptors that may be open beside the three standard ones.
    pub keep: Vec<RawFd>,
}

/// What holds after [`enter`], for people and for the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entered {
    /// The user, here and outside: never 0.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The namespaces that are this process's own.
    pub namespaces: Vec<&'static str>,
    /// What can be written, of this machine's files.
    pub writable: Vec<PathBuf>,
    /// What was covered.
    pub hidden: Vec<PathBuf>,
    /// What was to be shown and is not, and why.
    pub passed_over: Vec<(PathBuf, &'static str)>,
    /// What is weaker than it could be, each a sentence.
    pub notes: Vec<String>,
}

impl fmt::Display for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { uid, namespaces, hidden, .. } = self;
        write!(
            f,
            "user {uid}, own {} namespaces, {} places hidden",
            namespaces.join(", "),
            hidden.len()
        )
    }
}

/// Why the kernel cannot be confined.
#[derive(Debug, thiserror::Error)]
pub enum L1Error {
    /// Other threads would stay outside.
    #[error("the kernel can be confined only while it has one thread, and it has {0}")]
    Threads(String),
    /// It would be a way around the mounts.
    #[error("descriptor {fd} is open and leads to `{}`", target.display())]
    Open {
        /// Which.
        fd: RawFd,
        /// To what.
        target: PathBuf,
    },
    /// A path that is needed cannot be used.
    #[error("`{}` cannot be used as {what}", path.display())]
    Path {
        /// What it is needed for.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// With it, what must be hidden would be shown.
    #[error("{what} `{}` holds `{}`, which the kernel must not see", path.display(), holds.display())]
    Holds {
        /// What the path is.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// What is in it.
        holds: PathBuf,
    },
    /// The path is part of the operating system.
    #[error("{what} `{}` is a part of the operating system", path.display())]
    System {
        /// What the path is.
        what: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// Only a part of the kernel's own directories is given away.
    #[error("volumes in `{}` do not lie in a directory of the kernel's", .0.display())]
    Volumes(PathBuf),
    /// Files cannot be shown as another user's.
    #[error("the file system of `{}` cannot translate owners, which running as root needs", path.display())]
    Owners {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The machine forbids it, or a step failed.
    #[error(transparent)]
    Machine(#[from] RuntimeError),
    /// Not everything is in force.
    #[error("the kernel is not confined: {0}")]
    Check(String),
}

impl L1Error {
    /// What the user can do about it.
    pub fn fix(&self) -> Option<String> {
        Some(match self {
            Self::Holds { .. } | Self::System { .. } => {
                "work in a directory of its own, such as `~/project`".to_owned()
            }
            Self::Owners { .. } => {
                "run fluffy as an ordinary user, or move the directory to ext4, xfs, btrfs or (since \
                 Linux 6.3) tmpfs"
                    .to_owned()
            }
            Self::Machine(RuntimeError::Unavailable { fix, .. }) => fix.clone(),
            Self::Path { .. }
            | Self::Volumes(_)
            | Self::Threads(_)
            | Self::Open { .. }
            | Self::Machine(_)
            | Self::Check(_) => return None,
        })
    }
}

/// Closes every descriptor that this process inherited but the three standard ones and these: an open directory is a way
/// around every mount. To be called first in `main`, before anything is opened.
pub fn close_inherited(keep: &[RawFd]) -> Result<(), L1Error> {
    let closed = sys::close_inherited_but(keep);
    closed.map_err(|source| {
        RuntimeError::Io { what: "inherited descriptors cannot be closed", source }.into()
    })
}

/// Confines this process and all that it will start, for good. It has one thread, and nothing open but what it names.
pub fn enter(options: &L1Options) -> Result<Entered, L1Error> {
    check::alone(&options.keep)?;
    let layout = Layout::of(options)?;
    let outside = check::Outside::look().map_err(|broken| explained(broken, &options.program))?;
    let form = Form::find().map_err(|broken| explained(broken, &options.program))?;
    if form == Form::RootAlone {
        return Err(why::root_alone().into());
    }
    let (uid, gid) = form.ids();
    let (writable, notes) = match users::leave(form, &layout) {
        Ok(left) => left,
        Err(users::Failed::Step(broken)) => return Err(explained(broken, &options.program)),
        Err(users::Failed::Owners { path, source }) => {
            return Err(L1Error::Owners { path, source });
        }
    };
    give_up().map_err(|broken| explained(broken, &options.program))?;
    outside.is_left(&layout, &writable, uid)?;
    Ok(Entered {
        uid,
        gid,
        namespaces: check::NAMESPACES.to_vec(),
        writable,
        hidden: layout.covers.iter().map(|cover| cover.at.clone()).collect(),
        passed_over: layout.passed_over,
        notes,
    })
}

/// What of `shown` the kernel will see. What is passed over for it is nothing for its sandboxes either, whoever makes them.
pub fn shown(options: &L1Options) -> Result<Vec<PathBuf>, L1Error> {
    let layout = Layout::of(options)?;
    let is_seen = |path: &&PathBuf| layout.passed_over.iter().all(|(other, _)| other != *path);
    Ok(options.shown.iter().filter(is_seen).cloned().collect())
}

/// Gives up new privileges and every system call that neither the kernel nor a sandbox in it needs.
fn give_up() -> Result<(), Broken> {
    use super::init::Step as _;
    rustix::thread::set_no_new_privs(true).step("giving up new privileges")?;
    let hidden = rustix::process::DumpableBehavior::NotDumpable;
    rustix::process::set_dumpable_behavior(hidden).step("hiding the kernel's memory")?;
    let filter = seccomp::compile_kernel().map_err(io::Error::other);
    let filter = filter.step("compiling the filter of system calls")?;
    seccomp::install(&filter).map_err(io::Error::other).step("filtering system calls")
}

/// An error of a step, with its remedy if it is the machine that forbids it.
fn explained(broken: Broken, program: &Path) -> L1Error {
    match broken.error.raw_os_error() {
        Some(errno) => why::explain(broken.step, errno, program).into(),
        None => {
            let failure = crate::runtime::Failure { step: broken.step, source: broken.error };
            RuntimeError::Setup(failure).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_several_threads_is_not_confined() {
        // Every test has one beside the first.
        assert!(matches!(enter(&L1Options::default()), Err(L1Error::Threads(_))));
    }

    #[test]
    fn what_holds_is_said_in_one_line() {
        let entered = Entered {
            uid: 1000,
            gid: 1000,
            namespaces: vec!["mnt", "user"],
            writable: Vec::new(),
            hidden: vec!["/home".into()],
            passed_over: Vec::new(),
            notes: Vec::new(),
        };
        let said = "user 1000, own mnt, user namespaces, 1 places hidden";
        assert_eq!(entered.to_string(), said);
    }
}
