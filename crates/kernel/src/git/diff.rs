//! What is changed, line by line.
//!
//! **Invariant.** A file that the policy denies to read, or whose name no rule could judge, is left out whole.

use std::path::PathBuf;

use fluffy_base::ProjectPath;

use super::run::{Call, Command};
use super::{Git, GitError, GitPath};

/// The most text that is given.
const MAX_BYTES: usize = 50 << 10;

/// Against the last commit, or against nothing where there is none.
const SCRIPT: &str = r#"
base=$(git rev-parse -q --verify 'HEAD^{commit}') || base=$(git hash-object -t tree /dev/null)
exec git diff --no-ext-diff --no-textconv --no-color --no-renames --no-relative --full-index \
    --ignore-submodules=dirty --submodule=short --src-prefix=a/ --dst-prefix=b/ -p "$base" -- "$@"
"#;

/// What a project's files have against the last commit, as a patch. Files that git does not know are not in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitDiff {
    /// The patch.
    pub text: String,
    /// The files in it.
    pub files: Vec<ProjectPath>,
    /// How many files are left out because the policy denies reading them.
    pub hidden: usize,
    /// Files that are left out because no request can name them, escaped.
    pub odd: Vec<String>,
    /// Whether there is more than is given.
    pub cut: bool,
}

impl Git {
    /// The changes of the project with these layers, all or those of a file or directory.
    pub fn diff(
        &self,
        layers: &[PathBuf],
        path: Option<&ProjectPath>,
        hidden: &dyn Fn(&ProjectPath) -> bool,
    ) -> Result<GitDiff, GitError> {
        let shown = self.shared()?;
        let filters = self.settings()?.filters();
        let mut call = Call::new("compare files", Command::Script(SCRIPT), layers);
        call = call.args(path.map(ProjectPath::as_str));
        (call.shown, call.filters) = (shown, &filters);
        let out = self.must(call)?.out;
        let mut diff = sections(&out.bytes, hidden);
        diff.cut |= out.cut;
        Ok(diff)
    }
}

/// Takes a patch apart. Every line of a file's contents begins with a space, a sign or a back slash, so a header can
/// only be git's.
fn sections(bytes: &[u8], hidden: &dyn Fn(&ProjectPath) -> bool) -> GitDiff {
    let mut diff = GitDiff::default();
    let mut shows = false;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if let Some(names) = line.strip_prefix(b"diff --git ") {
            shows = diff.begin(names.strip_suffix(b"\n").unwrap_or(names), hidden);
        }
        if !shows || diff.cut {
            continue;
        }
        let text = String::from_utf8_lossy(line);
        if diff.text.len() + text.len() > MAX_BYTES {
            diff.cut = true;
        } else {
            diff.text.push_str(&text);
        }
    }
    diff
}

impl GitDiff {
    /// Begins a file; says whether it is shown.
    fn begin(&mut self, names: &[u8], hidden: &dyn Fn(&ProjectPath) -> bool) -> bool {
        match name_of(names).as_deref().map(GitPath::of) {
            Some(GitPath::Known(path)) if hidden(&path) => self.hidden += 1,
            Some(GitPath::Known(path)) => {
                if !self.cut {
                    self.files.push(path);
                }
                return true;
            }
            Some(GitPath::Odd(name)) => self.odd.push(name),
            None => self.odd.push(super::escaped(names)),
        }
        self.odd.truncate(100);
        false
    }
}

/// The one name that a header holds twice, since nothing is taken for renamed: `a/NAME b/NAME`, or both in quotes.
fn name_of(names: &[u8]) -> Option<Vec<u8>> {
    let half = names.len().checked_sub(1)? / 2;
    let (first, second) = (names.get(..half)?, names.get(half + 1..)?);
    if names.get(half) != Some(&b' ') {
        return None;
    }
    let (first, second) = (unquoted(first)?, unquoted(second)?);
    let (first, second) = (first.strip_prefix(b"a/")?, second.strip_prefix(b"b/")?);
    (first == second).then(|| first.to_vec())
}

/// A name as git quotes it: escapes as in C, bytes in octal.
fn unquoted(name: &[u8]) -> Option<Vec<u8>> {
    let Some(inner) = name.strip_prefix(b"\"") else { return Some(name.to_vec()) };
    let mut rest = inner.strip_suffix(b"\"")?;
    let mut out = Vec::with_capacity(rest.len());
    loop {
        rest = match rest {
            [] => return Some(out),
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                after
            }
            [b'\\', letter, after @ ..] => {
                out.push(match letter {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => b'\r',
                    b'"' | b'\\' => *letter,
                    _unknown => return None,
                });
                after
            }
            [b'"' | b'\\', ..] => return None,
            [byte, after @ ..] => {
                out.push(*byte);
                after
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_read_out_of_headers() {
        let name =
            |text: &str| name_of(text.as_bytes()).map(|name| String::from_utf8(name).unwrap());
        assert_eq!(name("a/x b/x").as_deref(), Some("x"));
        assert_eq!(name("a/a b/b b/a b/b").as_deref(), Some("a b/b"));
        assert_eq!(name(r#""a/\303\251\t" "b/\303\251\t""#).as_deref(), Some("é\t"));
        for wrong in ["", "a/x", "a/x b/y", r#""a/\9" "b/\9""#, r#""a/x" b/x"#] {
            assert_eq!(name(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_hidden_file_is_left_out_whole_and_contents_begin_no_file() {
        let patch = "diff --git a/.env b/.env\n--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-KEY=1\n+diff --git a/x b/x\n\
            diff --git a/src b/src\n@@ -1 +1 @@\n+two\ndiff --git \"a/\\001\" \"b/\\001\"\n+odd\n";
        let diff = sections(patch.as_bytes(), &|path| path.as_str() == ".env");
        assert_eq!(diff.text, "diff --git a/src b/src\n@@ -1 +1 @@\n+two\n");
        assert_eq!((diff.hidden, diff.files.len(), diff.odd.len(), diff.cut), (1, 1, 1, false));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), names in "diff --git [ab/\" \\\\0-9]{0,20}\n") {
            let _any = sections(&bytes, &|_| false);
            let _any = sections(names.as_bytes(), &|_| false);
        }
    }
}
