//! The session's changes as a text that people review and `git apply` takes.
//!
//! **Invariant.** The size of a change is never told too small: long lines count as many, and what is not
//! shown is counted all the same.

use std::borrow::Cow;
use std::ops::Range;

use fluffy_base::ProjectPath;

use crate::files::{Blobs, Staged, Stored};

use super::lines::{Edit, edits, lines};
use super::{Base, Staging, StagingError};

/// Lines around a change that are shown with it.
const CONTEXT: usize = 3;

/// Contents over this size are told apart, not compared line by line.
const COMPARED: u64 = 4 << 20;

/// No more text than this.
const LONGEST: usize = 1 << 20;

/// Where git looks for a NUL to know a file that is no text.
const SNIFFED: usize = 8_000;

/// What a person reads at once: a longer line counts as several.
const LINE: u64 = 160;

/// What the session changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    patch: Vec<u8>,
    files: Vec<FileDiff>,
    whole: bool,
}

/// What the session changed in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// Which.
    pub path: ProjectPath,
    /// What became of it.
    pub kind: FileKind,
    /// Lines that came.
    pub added: u64,
    /// Lines that went.
    pub removed: u64,
    /// Whether its lines are not shown, because it is no text or too large.
    pub opaque: bool,
    /// How much there is to review, in lines of ordinary length.
    pub size: u64,
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// It is new.
    Added,
    /// Its contents changed, or whether it can be executed.
    Modified,
    /// It is gone.
    Deleted,
}

impl Diff {
    /// The patch: what `git apply` takes, if it [is whole](Self::is_whole) and no file is opaque.
    pub fn patch(&self) -> &[u8] {
        &self.patch
    }

    /// The patch to be shown.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.patch)
    }

    /// Each file, in the order of their paths.
    pub fn files(&self) -> &[FileDiff] {
        &self.files
    }

    /// Whether the patch was not cut off for its length.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Lines that came, of all files.
    pub fn added(&self) -> u64 {
        self.files.iter().map(|file| file.added).sum()
    }

    /// Lines that went, of all files.
    pub fn removed(&self) -> u64 {
        self.files.iter().map(|file| file.removed).sum()
    }

    /// How much there is to review, in lines of ordinary length: what a threshold is held against. A
    /// program in a single line has one line to add, and is not small.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }
}

impl Staging {
    /// What is staged against what the project had.
    pub fn diff(&self) -> Result<Diff, StagingError> {
        let changes = self.files.iter().map(|(path, staged)| {
            let new = match staged {
                Staged::File(stored) => Some(stored),
                Staged::Deleted => None,
            };
            (path, self.bases.get(path).and_then(Base::file), new)
        });
        Diff::between(changes, &self.blobs)
    }
}

impl Diff {
    /// What became of each file: its path, what it was and what it is.
    pub(crate) fn between<'a>(
        changes: impl Iterator<Item = (&'a ProjectPath, Option<Stored>, Option<Stored>)>,
        blobs: &Blobs,
    ) -> Result<Self, StagingError> {
        let mut diff = Self { patch: Vec::new(), files: Vec::new(), whole: true };
        for (path, old, new) in changes {
            diff.add(path, old, new, blobs)?;
        }
        Ok(diff)
    }

    fn add(
        &mut self,
        path: &ProjectPath,
        old: Option<Stored>,
        new: Option<Stored>,
        blobs: &Blobs,
    ) -> Result<(), StagingError> {
        let kind = match (old, new) {
            (None, None) => return Ok(()),
            (None, Some(_)) => FileKind::Added,
            (Some(_), Some(_)) => FileKind::Modified,
            (Some(_), None) => FileKind::Deleted,
        };
        let content = |stored: Option<Stored>| stored.map_or(Ok(Vec::new()), |s| blobs.get(&s));
        let (before, after) = (content(old)?, content(new)?);
        let same = before == after;
        let large = [old, new].iter().flatten().any(|stored| stored.bytes > COMPARED);
        let opaque = !same && (large || is_binary(&before) || is_binary(&after));
        let mut text = Unified { out: head(path, old, new), ..Unified::default() };
        if opaque {
            text.opaque(path, &before, &after, kind);
        } else if !same {
            text.names(path, kind);
            text.hunks(&lines(&before), &lines(&after));
        }
        let Unified { out, added, removed, size } = text;
        self.files.push(FileDiff { path: path.clone(), kind, added, removed, opaque, size });
        self.show(&out);
        Ok(())
    }

    fn show(&mut self, text: &[u8]) {
        let room = LONGEST.saturating_sub(self.patch.len());
        if !self.whole || text.len() <= room {
            if self.whole {
                self.patch.extend_from_slice(text);
            }
            return;
        }
        self.whole = false;
        let shown = text.get(..room).unwrap_or_default();
        let end = shown.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.patch.extend_from_slice(shown.get(..end).unwrap_or_default());
        self.patch.extend_from_slice(b"[the rest is not shown]\n");
    }
}

/// What differs between two texts, in the form of `git diff`; the names are what they are called.
pub(crate) fn unified((old_name, old): (&str, &str), (new_name, new): (&str, &str)) -> String {
    let mut text = Unified::default();
    text.line(&format!("--- {old_name}"));
    text.line(&format!("+++ {new_name}"));
    text.hunks(&lines(old.as_bytes()), &lines(new.as_bytes()));
    String::from_utf8_lossy(&text.out).into_owned()
}

/// One file's part of a patch while it is written.
#[derive(Default)]
struct Unified {
    out: Vec<u8>,
    added: u64,
    removed: u64,
    size: u64,
}

impl Unified {
    fn line(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(b'\n');
    }

    fn names(&mut self, path: &ProjectPath, kind: FileKind) {
        // A name with a space ends with a tab, or tools would take what follows it for a date.
        let tab = if path.as_str().contains(' ') { "\t" } else { "" };
        let (old, new) =
            (format!("{}{tab}", named("a", path)), format!("{}{tab}", named("b", path)));
        let nothing = "/dev/null".to_owned();
        let (old, new) = match kind {
            FileKind::Added => (nothing, new),
            FileKind::Modified => (old, new),
            FileKind::Deleted => (old, nothing),
        };
        self.line(&format!("--- {old}"));
        self.line(&format!("+++ {new}"));
    }

    fn opaque(&mut self, path: &ProjectPath, before: &[u8], after: &[u8], kind: FileKind) {
        let nothing = || "/dev/null".to_owned();
        let (old, new) = match kind {
            FileKind::Added => (nothing(), named("b", path)),
            FileKind::Modified => (named("a", path), named("b", path)),
            FileKind::Deleted => (named("a", path), nothing()),
        };
        self.line(&format!("Binary files {old} and {new} differ"));
        let count = |text: &[u8]| text.split_inclusive(|byte| *byte == b'\n').count() as u64;
        (self.removed, self.added) = (count(before), count(after));
        // At least what its lines would weigh, however they are cut.
        let bytes = (before.len() as u64).saturating_add(after.len() as u64);
        self.size = self.removed.saturating_add(self.added).saturating_add(bytes.div_ceil(LINE));
    }

    fn hunks(&mut self, old: &[&[u8]], new: &[&[u8]]) {
        let edits = edits(old, new);
        let near = |pair: &[Edit]| match pair {
            [one, next] => next.old.start - one.old.end > 2 * CONTEXT,
            _ => false,
        };
        let mut from = 0;
        for until in 1..=edits.len() {
            let ends = edits.get(until - 1..=until).is_none_or(near);
            if ends && let Some(group) = edits.get(from..until) {
                self.hunk(group, old, new);
                from = until;
            }
        }
    }

    fn hunk(&mut self, group: &[Edit], old: &[&[u8]], new: &[&[u8]]) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
        let lead = first.old.start.min(CONTEXT);
        let tail = (old.len() - last.old.end).min(CONTEXT);
        let span = |first: &Range<usize>, last: &Range<usize>| {
            let (start, end) = (first.start - lead, last.end + tail);
            match end - start {
                0 => format!("{start},0"),
                1 => format!("{}", start + 1),
                count => format!("{},{count}", start + 1),
            }
        };
        self.line(&format!(
            "@@ -{} +{} @@",
            span(&first.old, &last.old),
            span(&first.new, &last.new)
        ));
        let mut at = first.old.start - lead;
        for edit in group {
            self.lines(b' ', old, at..edit.old.start);
            self.lines(b'-', old, edit.old.clone());
            self.lines(b'+', new, edit.new.clone());
            at = edit.old.end;
        }
        self.lines(b' ', old, at..at + tail);
    }

    fn lines(&mut self, sign: u8, lines: &[&[u8]], range: Range<usize>) {
        for line in lines.get(range).unwrap_or_default() {
            // A text that cannot be shown any more is still counted.
            if self.out.len() <= LONGEST {
                self.out.push(sign);
                self.out.extend_from_slice(line);
                if !line.ends_with(b"\n") {
                    self.out.extend_from_slice(b"\n\\ No newline at end of file\n");
                }
            }
            match sign {
                b'+' => self.added += 1,
                b'-' => self.removed += 1,
                _ => continue,
            }
            self.size = self.size.saturating_add((line.len() as u64).div_ceil(LINE).max(1));
        }
    }
}

/// The lines before the texts: what kind of change it is.
fn head(path: &ProjectPath, old: Option<Stored>, new: Option<Stored>) -> Vec<u8> {
    let mode = |stored: Stored| if stored.executable { "100755" } else { "100644" };
    let mut head = format!("diff --git {} {}\n", named("a", path), named("b", path));
    match (old, new) {
        (None, Some(new)) => head.push_str(&format!("new file mode {}\n", mode(new))),
        (Some(old), None) => head.push_str(&format!("deleted file mode {}\n", mode(old))),
        (Some(old), Some(new)) if old.executable != new.executable => {
            head.push_str(&format!("old mode {}\nnew mode {}\n", mode(old), mode(new)));
        }
        (Some(_), Some(_)) | (None, None) => {}
    }
    head.into_bytes()
}

/// A name as git writes it. Paths have no control characters and no back slashes.
fn named(side: &str, path: &ProjectPath) -> String {
    if path.as_str().contains('"') {
        return format!("\"{side}/{}\"", path.as_str().replace('"', "\\\""));
    }
    format!("{side}/{path}")
}

pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes.get(..SNIFFED).unwrap_or(bytes).contains(&0)
}
