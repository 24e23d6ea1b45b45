//! Which files git leaves alone, by the project's own word: `.gitignore` in every directory, as the view shows
//! it, and `.git/info/exclude`.
//!
//! Neither the user's own ignore file nor directories above the project are asked, so that the same project
//! gives the same answer to everybody. A file of the session's is ignored like any other: what it wrote to
//! `target/` is not what a search is about. Ignoring is a convenience and protects nothing.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use fluffy_base::ProjectPath;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::{Found, View};

/// A larger ignore file is not obeyed.
const MAX_BYTES: u64 = 64 * 1024;

/// How many bytes of patterns with wildcards in the middle are obeyed, in all ignore files that count in a
/// directory. Names and endings are looked up; these are compared with every path, and whoever writes the
/// ignore files must not decide how long a walk takes.
const MAX_WILD: usize = 8 * 1024;

/// The ignore files that count in a directory, the nearest first.
#[derive(Debug)]
pub(super) struct Ignored {
    patterns: Gitignore,
    /// Bytes of a path before what is relative to the patterns' directory.
    prefix: usize,
    /// Bytes of costly patterns, here and above.
    wild: usize,
    above: Option<Arc<Ignored>>,
}

/// Which names that matter here a directory has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Names {
    /// `.git`: a repository begins here, and ignore files above it do not count.
    pub(super) git: bool,
    /// `.gitignore`
    pub(super) gitignore: bool,
}

impl Ignored {
    /// Whether a file or directory is ignored. What lies in an ignored directory is not asked for.
    pub(super) fn ignores(&self, path: &ProjectPath, is_directory: bool) -> bool {
        let mut level = Some(self);
        while let Some(Self { patterns, prefix, above, wild: _ }) = level {
            let relative = path.as_str().get(*prefix..).unwrap_or_default();
            match patterns.matched(relative, is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => level = above.as_deref(),
            }
        }
        false
    }
}

impl View {
    /// Tells what git ignores, asked path by path. What could be a directory counts as one.
    pub(crate) fn ignoring(&self) -> impl Fn(&ProjectPath) -> bool + '_ {
        let known: RefCell<HashMap<Option<ProjectPath>, Option<Arc<Ignored>>>> = RefCell::default();
        move |path| {
            let mut known = known.borrow_mut();
            let above = known.entry(path.parent()).or_insert_with(|| self.ignored_above(path));
            above.as_ref().is_some_and(|ignored| ignored.ignores(path, true))
        }
    }

    /// What is ignored in a directory, given what is ignored in the one above.
    pub(super) fn ignored_in(
        &self,
        directory: Option<&ProjectPath>,
        above: Option<Arc<Ignored>>,
        names: Names,
    ) -> Option<Arc<Ignored>> {
        let mut ignored = above;
        if names.git {
            ignored = self.ignored_by(directory, ".git/info/exclude", None);
        }
        if names.gitignore {
            ignored = self.ignored_by(directory, ".gitignore", ignored);
        }
        ignored
    }

    /// What is ignored beneath the directories above this one, and in itself before its own files are asked.
    pub(super) fn ignored_above(&self, directory: &ProjectPath) -> Option<Arc<Ignored>> {
        let mut way: Vec<_> =
            std::iter::successors(directory.parent(), ProjectPath::parent).map(Some).collect();
        way.push(None);
        way.into_iter().rev().fold(None, |above, directory| {
            let directory = directory.as_ref();
            let look =
                |name| inside(directory, name).and_then(|path| self.look(&path).ok().flatten());
            let gitignore = matches!(look(".gitignore"), Some(Found::File { .. }));
            let names = Names { git: look(".git").is_some(), gitignore };
            self.ignored_in(directory, above, names)
        })
    }

    fn ignored_by(
        &self,
        directory: Option<&ProjectPath>,
        name: &str,
        above: Option<Arc<Ignored>>,
    ) -> Option<Arc<Ignored>> {
        let bytes = inside(directory, name).and_then(|path| self.read(&path, MAX_BYTES).ok());
        let mut wild = above.as_ref().map_or(0, |above| above.wild);
        let Some(patterns) = bytes.and_then(|bytes| patterns(&bytes, &mut wild)) else {
            return above;
        };
        let prefix = directory.map_or(0, |path| path.as_str().len() + 1);
        Some(Arc::new(Ignored { patterns, prefix, wild, above }))
    }
}

/// The patterns of an ignore file, up to the first line that is no text. A line that is no pattern is passed
/// over, as git does.
fn patterns(bytes: &[u8], wild: &mut usize) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new("");
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(line) = str::from_utf8(line) else { break };
        let line = line.strip_suffix('\r').unwrap_or(line);
        if is_wild(line) {
            *wild += line.len();
            if *wild > MAX_WILD {
                continue;
            }
        }
        // An error is about this line alone.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|patterns| !patterns.is_empty())
}

/// Whether a line is more than a name, a path or an ending like `*.log`.
fn is_wild(line: &str) -> bool {
    let line = line.trim_start_matches('!');
    !line.starts_with('#')
        && line.strip_prefix("*.").unwrap_or(line).contains(['*', '?', '[', '{', '\\'])
}

fn inside(directory: Option<&ProjectPath>, name: &str) -> Option<ProjectPath> {
    match directory {
        None => ProjectPath::parse(name).ok(),
        Some(directory) => directory.join(name).ok(),
    }
}
