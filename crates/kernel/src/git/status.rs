//! What is changed, as `git status` says it.

use std::path::PathBuf;

use fluffy_base::{Excerpt, ProjectPath};

use super::run::{Call, Command};
use super::{Git, GitError, GitPath};

/// The most files that are listed.
const MAX_LISTED: usize = 2000;

/// The state of a project against its last commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitStatus {
    /// The branch; nothing if `HEAD` is a commit.
    pub branch: Option<String>,
    /// The branch that it follows.
    pub upstream: Option<String>,
    /// Commits that the one and the other has alone.
    pub ahead_behind: Option<(u64, u64)>,
    /// Whether there is no commit yet.
    pub is_unborn: bool,
    /// What is changed, in git's order.
    pub changed: Vec<Changed>,
    /// How many changed files are left out because the policy denies reading them.
    pub hidden: usize,
    /// How many more changed files there are than are listed.
    pub more: usize,
    /// Whether git had more to say than is taken; then there are more changes than are counted.
    pub cut: bool,
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The file.
    pub path: GitPath,
    /// What the index has against the last commit.
    pub staged: FileState,
    /// What the file has against the index.
    pub unstaged: FileState,
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// Nothing.
    Unchanged,
    /// Other contents, or another mode.
    Modified,
    /// A file became a link, or the other way round.
    TypeChanged,
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// It has another name.
    Renamed,
    /// It is a copy.
    Copied,
    /// It is in conflict.
    Unmerged,
    /// Git does not know it.
    Untracked,
}

impl Git {
    /// The state of the project with these layers. What `hidden` says yes to is counted and not named.
    pub fn status(
        &self,
        layers: &[PathBuf],
        hidden: &dyn Fn(&ProjectPath) -> bool,
    ) -> Result<GitStatus, GitError> {
        let shown = self.shared()?;
        let filters = self.settings()?.filters();
        let mut call = Call::new("tell its status", Command::Git, layers).args([
            "status",
            "--porcelain=v2",
            "-z",
            "--branch",
            "--untracked-files=all",
            "--ignored=no",
            "--no-renames",
            "--ignore-submodules=dirty",
        ]);
        (call.shown, call.filters) = (shown, &filters);
        let out = self.must(call)?.out;
        let mut status = parse(&out.bytes, hidden)?;
        status.cut = out.cut;
        Ok(status)
    }
}

impl FileState {
    fn of(letter: u8) -> Option<Self> {
        Some(match letter {
            b'.' => Self::Unchanged,
            b'M' => Self::Modified,
            b'T' => Self::TypeChanged,
            b'A' => Self::Added,
            b'D' => Self::Deleted,
            b'R' => Self::Renamed,
            b'C' => Self::Copied,
            b'U' => Self::Unmerged,
            _unknown => return None,
        })
    }

    /// Git's letter for it.
    pub fn letter(self) -> char {
        match self {
            Self::Unchanged => '.',
            Self::Modified => 'M',
            Self::TypeChanged => 'T',
            Self::Added => 'A',
            Self::Deleted => 'D',
            Self::Renamed => 'R',
            Self::Copied => 'C',
            Self::Unmerged => 'U',
            Self::Untracked => '?',
        }
    }
}

fn parse(bytes: &[u8], hidden: &dyn Fn(&ProjectPath) -> bool) -> Result<GitStatus, GitError> {
    let mut status = GitStatus::default();
    // What is not ended by a NUL was cut off.
    let end = bytes.iter().rposition(|byte| *byte == 0).unwrap_or_default();
    let mut records = bytes.get(..end).unwrap_or_default().split(|byte| *byte == 0);
    while let Some(record) = records.next() {
        let (states, fields) = match record {
            [] => continue,
            [b'#', b' ', header @ ..] => {
                status.header(&String::from_utf8_lossy(header));
                continue;
            }
            [b'?', b' ', path @ ..] => {
                let states = (FileState::Unchanged, FileState::Untracked);
                status.list(GitPath::of(path), states, hidden);
                continue;
            }
            [b'1', b' ', rest @ ..] => (rest, 7),
            [b'u', b' ', rest @ ..] => (rest, 9),
            [b'2', b' ', rest @ ..] => {
                // The name that it had follows by itself.
                let _was = records.next();
                (rest, 8)
            }
            _unknown => return Err(GitError::Answer("a line of its status")),
        };
        let wrong = || GitError::Answer("a file of its status");
        let path = states.splitn(fields + 1, |byte| *byte == b' ').nth(fields).ok_or_else(wrong)?;
        let [staged, unstaged, ..] = states else { return Err(wrong()) };
        let staged = FileState::of(*staged).ok_or_else(wrong)?;
        let unstaged = FileState::of(*unstaged).ok_or_else(wrong)?;
        status.list(GitPath::of(path), (staged, unstaged), hidden);
    }
    Ok(status)
}

impl GitStatus {
    fn header(&mut self, line: &str) {
        let shown = |text: &str| Excerpt::new(text, 200).to_string();
        match line.split_once(' ') {
            Some(("branch.oid", id)) => self.is_unborn = id == "(initial)",
            Some(("branch.head", name)) if name != "(detached)" => self.branch = Some(shown(name)),
            Some(("branch.upstream", name)) => self.upstream = Some(shown(name)),
            Some(("branch.ab", counts)) => {
                let counts = counts.strip_prefix('+').and_then(|text| text.split_once(" -"));
                self.ahead_behind = counts
                    .and_then(|(ahead, behind)| Some((ahead.parse().ok()?, behind.parse().ok()?)));
            }
            _other => {}
        }
    }

    fn list(
        &mut self,
        path: GitPath,
        (staged, unstaged): (FileState, FileState),
        hidden: &dyn Fn(&ProjectPath) -> bool,
    ) {
        if path.known().is_some_and(hidden) {
            self.hidden += 1;
        } else if self.changed.len() == MAX_LISTED {
            self.more += 1;
        } else {
            self.changed.push(Changed { path, staged, unstaged });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_kind_of_line_is_understood() {
        let text = "# branch.oid (initial)\0# branch.head a\x1bb\0# branch.upstream o/m\0# branch.ab +1 -2\0\
            1 .M N... 100644 100644 100644 aa bb with space\0\
            2 R. N... 100644 100644 100644 aa bb R100 new\0old\0\
            u UU N... 1 2 3 4 aa bb cc both\0? ../odd\0? secret\0! x";
        let status = parse(text.as_bytes(), &|path| path.as_str() == "secret").unwrap();
        assert_eq!(status.branch.as_deref(), Some("a\\u{1b}b"));
        assert_eq!((status.is_unborn, status.ahead_behind, status.hidden), (true, Some((1, 2)), 1));
        let lines: Vec<String> = status
            .changed
            .iter()
            .map(|one| format!("{}{} {}", one.staged.letter(), one.unstaged.letter(), one.path))
            .collect();
        assert_eq!(lines, [".M with space", "R. new", "UU both", ".? ../odd"]);
        assert!(matches!(status.changed[3].path, GitPath::Odd(_)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), line in "[12u?#!] [ MRUA.]{0,30}\0") {
            let _any = parse(&bytes, &|_| false);
            let _any = parse(line.as_bytes(), &|_| true);
        }
    }
}
