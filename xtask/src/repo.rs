//! A snapshot of the repository's files, and what a check can say about one of them.
//!
//! Checks are functions of a [`Repo`], so their own tests give them a small one made of literals.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Files above this size are kept by name only; nobody writes that much by hand.
const LARGEST_TEXT: u64 = 4 << 20;

/// Folders that hold what tools leave behind, beside those that `.gitignore` names.
const LEFT_OUT: &[&str] = &[".git", "target", "__pycache__", "node_modules", ".venv"];

/// The files of the repository; names are relative to its root and use `/`.
#[derive(Debug)]
pub struct Repo {
    root: PathBuf,
    files: BTreeMap<String, Option<String>>,
}

impl Repo {
    /// Reads the repository that this program was built from.
    ///
    /// # Errors
    ///
    /// When a folder or a file cannot be read.
    pub fn here() -> io::Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self::read(manifest.parent().unwrap_or(manifest))
    }

    fn read(root: &Path) -> io::Result<Self> {
        let mut repo = Self { root: root.to_owned(), files: BTreeMap::new() };
        let left_out = left_out(root);
        repo.read_folder(root, "", &left_out)?;
        Ok(repo)
    }

    /// A repository made of these files.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(name, text)| ((*name).into(), Some((*text).into())));
        Self { root: PathBuf::new(), files: files.collect() }
    }

    /// Where the repository lies, for commands that must run in it.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The text of a file; `None` when it is not there or is not text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.files.get(name)?.as_deref()
    }

    /// Whether there is a file or a folder of this name; the empty name is the root.
    pub(crate) fn has(&self, name: &str) -> bool {
        let folder = format!("{name}/");
        name.is_empty()
            || self.files.contains_key(name)
            || self
                .files
                .range(folder.clone()..)
                .next()
                .is_some_and(|(f, _)| f.starts_with(&folder))
    }

    /// The names of all files, text or not.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// All text files with their names.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(name, text)| Some((name.as_str(), text.as_deref()?)))
    }

    fn read_folder(
        &mut self,
        path: &Path,
        name: &str,
        left_out: &BTreeSet<String>,
    ) -> io::Result<()> {
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            let own = entry.file_name().to_string_lossy().into_owned();
            let full = if name.is_empty() { own.clone() } else { format!("{name}/{own}") };
            let kind = entry.file_type()?;
            if left_out.contains(&own) || entry.path().join("CACHEDIR.TAG").exists() {
                continue;
            } else if kind.is_dir() {
                self.read_folder(&entry.path(), &full, left_out)?;
            } else {
                let readable = kind.is_file() && entry.metadata()?.len() <= LARGEST_TEXT;
                let bytes = if readable { Some(std::fs::read(entry.path())?) } else { None };
                self.files.insert(full, bytes.and_then(|bytes| String::from_utf8(bytes).ok()));
            }
        }
        Ok(())
    }
}

/// What the walk leaves out: the known names, and those `.gitignore` gives without a wildcard.
fn left_out(root: &Path) -> BTreeSet<String> {
    let ignored = std::fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
    let plain = ignored.lines().map(|line| line.trim().trim_matches('/'));
    plain
        .filter(|line| !line.is_empty() && !line.contains(['*', '?', '[', '!', '#', '/']))
        .chain(LEFT_OUT.iter().copied())
        .map(str::to_owned)
        .collect()
}

/// One thing that breaks a rule, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    file: String,
    line: Option<usize>,
    text: String,
}

impl Finding {
    /// Something about a whole file, or about its absence.
    pub(crate) fn file(file: &str, text: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, text: text.into() }
    }

    /// Something about one line, counted from 1.
    pub(crate) fn line(file: &str, line: usize, text: impl Into<String>) -> Self {
        Self { file: file.into(), line: Some(line), text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.text),
            None => write!(f, "{}: {}", self.file, self.text),
        }
    }
}

/// The findings as lines of text, for the tests of the checks.
#[cfg(test)]
pub(crate) fn lines(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(Finding::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_there_when_a_file_lies_in_it() {
        let repo = Repo::of(&[("docs/a.md", ""), ("docs.md", "")]);
        assert!(repo.has("docs") && repo.has("docs/a.md") && repo.has(""));
        assert!(!repo.has("doc") && !repo.has("docs/a"));
    }

    #[test]
    fn a_finding_names_file_and_line() {
        assert_eq!(Finding::line("a.rs", 3, "is wrong").to_string(), "a.rs:3: is wrong");
        assert_eq!(Finding::file("a.rs", "is missing").to_string(), "a.rs: is missing");
    }
}
