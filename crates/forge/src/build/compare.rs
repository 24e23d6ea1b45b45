//! What a builder changed: the tree that it was given against the tree that it left.
//!
//! **Invariant.** Files are compared by their bytes and by nothing that the builder could have written about them: no
//! index, no ignore file and no time. Its repository, `.git` at the top of the copy, is neither looked at nor taken.

use std::collections::{BTreeMap, BTreeSet};

use fluffy_base::{Digest, ProjectPath};
use fluffy_kernel::Left;
use serde::{Deserialize, Serialize};

use super::copy::Was;

/// The builder's own repository.
const GIT: &str = ".git";

/// The version of the form in which changes are kept.
const VERSION: u32 = 1;

/// The most changes and refusals that are kept; the builder has failed long before.
const MAX_KEPT: usize = 1_000;

/// Everything that a builder changed: the `PATCH_SUMMARY`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    /// The version of this form.
    pub v: u32,
    /// By path.
    pub changes: Vec<Change>,
    /// What cannot be a file of the project.
    pub refused: Vec<Refused>,
    /// How many changes and refusals are not listed.
    pub unlisted: usize,
}

/// One file that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Which.
    pub path: ProjectPath,
    /// What was there.
    pub before: Option<Was>,
    /// What is there.
    pub after: Option<Was>,
}

/// Something that a builder left and that is no file of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// Its path, as a terminal may show it.
    pub name: String,
    /// Why it is not taken.
    pub why: String,
}

/// What kind of change one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// A file that was not there.
    Added,
    /// Another content.
    Changed,
    /// The same content, and executable or no longer so.
    Mode,
    /// No file any more.
    Removed,
    /// The file was written again as it was.
    Same,
}

impl Change {
    /// What kind of change it is.
    pub fn kind(&self) -> ChangeKind {
        match (self.before, self.after) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Removed,
            (before, after) if before == after => ChangeKind::Same,
            (Some(before), Some(after)) if before.sha256 == after.sha256 => ChangeKind::Mode,
            (Some(_), Some(_)) => ChangeKind::Changed,
        }
    }
}

impl Patch {
    /// What the artifact holds.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec_pretty(self)
    }

    /// What an artifact holds.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        let patch: Self = serde_json::from_slice(bytes)?;
        if patch.v == VERSION {
            return Ok(patch);
        }
        Err(serde::de::Error::custom(format!("version {} is not known", patch.v)))
    }

    /// Adds those of these files that the builder wrote again as they were: writing them is what it was asked for.
    pub(super) fn with_same(
        mut self,
        paths: &[ProjectPath],
        baseline: &BTreeMap<ProjectPath, Was>,
        left: &Left,
    ) -> Self {
        for path in paths {
            let written = left.files.iter().any(|file| file.path == *path);
            let changed = self.changes.iter().any(|change| change.path == *path);
            let before = baseline.get(path).copied();
            if written && !changed && before.is_some() {
                self.changes.push(Change { path: path.clone(), before, after: before });
            }
        }
        self.changes.sort_by(|one, two| one.path.cmp(&two.path));
        self
    }

    /// What stood at a path before the build, given that it was changed.
    pub fn before(&self, path: &ProjectPath) -> Option<Option<Was>> {
        let change = self.changes.iter().find(|change| change.path == *path);
        change.map(|change| change.before)
    }
}

/// Compares what a builder left with what it was given.
pub fn compare(baseline: &BTreeMap<ProjectPath, Was>, left: &Left) -> Patch {
    let mut after: BTreeMap<&ProjectPath, Option<Was>> = BTreeMap::new();
    let removed: BTreeSet<&ProjectPath> =
        left.removed.iter().filter(|path| !is_git(path)).collect();
    let files = left.files.iter().filter(|file| !is_git(&file.path));
    let files: Vec<_> = files.collect();
    // A file takes the place of a directory that was there.
    let replaced: BTreeSet<_> = files.iter().map(|file| &file.path).chain(removed).collect();
    for path in baseline.keys() {
        let mut way = std::iter::successors(Some(path.clone()), ProjectPath::parent);
        if way.any(|part| replaced.contains(&part)) {
            after.insert(path, None);
        }
    }
    for file in files {
        let was = Was { sha256: Digest::of(&file.bytes), executable: file.executable };
        after.insert(&file.path, Some(was));
    }
    let changed = after.into_iter().filter_map(|(path, after)| {
        let before = baseline.get(path).copied();
        (before != after).then(|| Change { path: path.clone(), before, after })
    });
    let refused = left.refused.iter().filter(|refused| !is_git_name(&refused.name));
    let refused = refused.map(|it| Refused { name: it.name.clone(), why: it.why.clone() });
    let (mut changes, mut refused): (Vec<_>, Vec<_>) = (changed.collect(), refused.collect());
    let all = changes.len() + refused.len();
    changes.truncate(MAX_KEPT);
    refused.truncate(MAX_KEPT);
    let unlisted = all - changes.len() - refused.len();
    Patch { v: VERSION, changes, refused, unlisted }
}

fn is_git(path: &ProjectPath) -> bool {
    path.components().next() == Some(GIT)
}

fn is_git_name(name: &str) -> bool {
    name.split('/').next() == Some(GIT)
}

#[cfg(test)]
mod tests {
    use fluffy_kernel::{LeftFile, NotTaken};

    use super::*;

    fn path(text: &str) -> ProjectPath {
        ProjectPath::parse(text).unwrap()
    }

    fn was(text: &str) -> Was {
        Was { sha256: Digest::of(text.as_bytes()), executable: text.starts_with("x:") }
    }

    fn baseline() -> BTreeMap<ProjectPath, Was> {
        ["a", "d/b", "d/e/c", "x:run"]
            .map(|name| (path(name.trim_start_matches("x:")), was(name)))
            .into()
    }

    /// Compares after `+path=text`, `-path` and `!path` (refused).
    fn check(words: &[&str], expected: &[&str]) {
        let mut left = Left::default();
        for word in words {
            let (kind, word) = word.split_at(1);
            let (name, text) = word.split_once('=').unwrap_or((word, ""));
            match kind {
                "+" => left.files.push(LeftFile {
                    path: path(name),
                    bytes: text.as_bytes().to_vec(),
                    executable: text.starts_with("x:"),
                }),
                "-" => left.removed.push(path(name)),
                _ => left.refused.push(NotTaken { name: name.to_owned(), why: "odd".to_owned() }),
            }
        }
        let patch = compare(&baseline(), &left);
        let found = patch.changes.iter().map(|it| format!("{:?} {}", it.kind(), it.path));
        let refused = patch.refused.iter().map(|it| format!("Refused {}", it.name));
        assert_eq!(found.chain(refused).collect::<Vec<_>>(), expected, "{words:?}");
        assert_eq!(Patch::from_bytes(&patch.to_bytes().unwrap()).unwrap(), patch);
    }

    #[test]
    fn every_change_is_seen_and_nothing_else_is() {
        check(&[], &[]);
        check(&["+a=a"], &[]);
        check(&["+a=b"], &["Changed a"]);
        check(&["+run=run"], &["Changed run"]);
        check(&["+a=x:a"], &["Changed a"]);
        check(&["+n=1", "+d/n=2"], &["Added d/n", "Added n"]);
        check(&["-a"], &["Removed a"]);
        check(&["-d"], &["Removed d/b", "Removed d/e/c"]);
        check(&["-d", "+d/b=d/b"], &["Removed d/e/c"]);
        check(&["-d", "+d=file"], &["Added d", "Removed d/b", "Removed d/e/c"]);
        check(&["+d=file"], &["Added d", "Removed d/b", "Removed d/e/c"]);
        check(&["!link"], &["Refused link"]);
    }

    #[test]
    fn a_mode_alone_is_a_change() {
        let left = Left {
            files: vec![LeftFile { path: path("a"), bytes: b"a".to_vec(), executable: true }],
            ..Left::default()
        };
        assert_eq!(compare(&baseline(), &left).changes[0].kind(), ChangeKind::Mode);
    }

    #[test]
    fn lesson_l28_the_builders_repository_hides_nothing_and_is_not_looked_at() {
        check(&["+.git/config=[core]", "-.git/HEAD", "!.git/hooks/link", "!.git"], &[]);
        check(&["+d/.git/config=x", "+.gitignore=*"], &["Added .gitignore", "Added d/.git/config"]);
        check(&["!.git2"], &["Refused .git2"]);
    }

    #[test]
    fn what_a_builder_floods_us_with_is_counted() {
        let refused = NotTaken { name: "l".to_owned(), why: String::new() };
        let left = Left { refused: vec![refused; 5_000], ..Left::default() };
        let patch = compare(&baseline(), &left);
        assert_eq!((patch.refused.len(), patch.unlisted), (1_000, 4_000));
    }
}
