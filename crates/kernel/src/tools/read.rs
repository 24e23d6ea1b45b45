//! `fs.read`: the text of a file, a window of lines at a time.
//!
//! **Invariant.** However large the file, what is held is one block and what is shown.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use fluffy_base::{Excerpt, Hasher, Json, ProjectPath};
use serde_json::{Value, json};

use super::near::near;
use super::reading::Reading;
use super::{Views, arguments};
use crate::{Failure, Found, ToolError, ToolSpec, TreeError, View};

/// How much text is shown; with the mark for what is not, less than 50 KB.
const MAX_TEXT: usize = 50_000;

/// Counting the lines of a larger file takes too long.
const MAX_FILE: u64 = 256 * 1024 * 1024;

const BLOCK: usize = 64 * 1024;

/// Reads a file of the view.
pub struct FsRead {
    views: Arc<dyn Views>,
}

impl FsRead {
    /// On these files.
    pub fn new(views: Arc<dyn Views>) -> Self {
        Self { views }
    }

    fn refusal(&self, view: &View, path: &ProjectPath, error: &TreeError) -> Failure {
        match error {
            TreeError::Missing(_) => {
                ToolError(format!("{error}{}", self.advice(view, path))).into()
            }
            TreeError::NotAFile(_) if matches!(view.look(path), Ok(Some(Found::Directory))) => {
                ToolError(format!("`{path}` is a directory; fs.list lists it")).into()
            }
            other => arguments::told(other),
        }
    }

    /// What may have been meant. Only what the policy lets the model read is told.
    fn advice(&self, view: &View, path: &ProjectPath) -> String {
        let parent = path.parent();
        let Ok(listing) = view.list(parent.as_ref()) else {
            return parent.map_or_else(String::new, |parent| format!(", nor does `{parent}`"));
        };
        let entries = listing.entries.iter();
        let told = entries.filter(|e| e.found == Found::Directory || self.views.may_read(&e.path));
        let near = near(path.file_name(), told.map(|entry| entry.path.file_name()));
        let near: Vec<_> = near.iter().map(|name| format!("`{name}`")).collect();
        let place = parent.as_ref().map_or("the root", ProjectPath::as_str);
        if near.is_empty() {
            String::new()
        } else {
            format!("; in {} there is {}", Excerpt::new(place, 200), near.join(", "))
        }
    }
}

impl Reading for FsRead {
    fn spec(&self) -> ToolSpec {
        let properties = json!({
            "path": {"type": "string"},
            "offset": {"type": "integer", "description": "first line, from 1"},
            "limit": {"type": "integer", "description": "number of lines"},
        });
        arguments::reading(
            "fs.read",
            "Reads a text file, at most 50 KB at once",
            properties,
            &["path"],
        )
    }

    fn read(&self, params: &Json) -> Result<Value, Failure> {
        let path = arguments::directory(params)?;
        let path =
            path.ok_or_else(|| ToolError("the root is a directory; fs.list lists it".to_owned()))?;
        let first = arguments::number(params, "offset")?.unwrap_or(1);
        let limit = arguments::number(params, "limit")?.unwrap_or(u64::MAX);
        let view = self.views.view();
        let refused = |error: TreeError| self.refusal(&view, &path, &error);
        let failed = |source| arguments::told(&TreeError::Io { path: path.to_string(), source });
        let changed = || arguments::told(&TreeError::Changed(path.clone()));
        let file = view.open(&path).map_err(refused)?;
        let before = Stamp::of(&file).map_err(failed)?;
        let large =
            || ToolError(format!("`{path}` is larger than 256 MB; search.grep finds lines in it"));
        if before.bytes > MAX_FILE {
            return Err(large().into());
        }
        let mut window = Window::new(first, limit);
        let answer = match window.scan(&file).map_err(failed)? {
            Kind::Text => window.answer(&path)?,
            Kind::Binary => {
                let (bytes, digest) = hash(&file).map_err(failed)?;
                json!({"path": path, "binary": true, "bytes": bytes, "sha256": digest})
            }
            Kind::Large => return Err(large().into()),
        };
        // Half of one file and half of another is a file that never was.
        if Stamp::of(&file).map_err(failed)? == before { Ok(answer) } else { Err(changed()) }
    }
}

/// By what a file is known to be as it was: also one that was removed or replaced has another.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(file: &File) -> io::Result<Self> {
        let stat = file.metadata()?;
        Ok(Self {
            bytes: stat.len(),
            written: (stat.mtime(), stat.mtime_nsec()),
            changed: (stat.ctime(), stat.ctime_nsec()),
        })
    }
}

enum Kind {
    Text,
    Binary,
    Large,
}

/// The lines that are shown, while the file goes by.
struct Window {
    first: u64,
    /// The first line that is not wanted any more.
    end: u64,
    text: String,
    /// Where in the text the present line begins.
    line_start: usize,
    /// The present line, from 1.
    line: u64,
    /// Whether the present line has anything in it.
    open: bool,
    bytes: u64,
    full: Option<Full>,
}

/// Why no more is shown.
#[derive(Clone, Copy)]
enum Full {
    /// This line and those after it do not fit.
    Before(u64),
    /// This line alone is too long.
    Inside(u64),
}

impl Window {
    fn new(first: u64, limit: u64) -> Self {
        let end = first.saturating_add(limit);
        let text = String::new();
        Self { first, end, text, line_start: 0, line: 1, open: false, bytes: 0, full: None }
    }

    /// Reads a file to its end.
    fn scan(&mut self, mut file: &File) -> io::Result<Kind> {
        let mut block = vec![0; BLOCK];
        // The beginning of a character whose end is in the next block.
        let mut begun = 0;
        loop {
            let read = file.read(block.get_mut(begun..).unwrap_or_default())?;
            self.bytes += read as u64;
            if read == 0 {
                return Ok(if begun == 0 { Kind::Text } else { Kind::Binary });
            }
            if self.bytes > MAX_FILE {
                return Ok(Kind::Large);
            }
            let filled = block.get(..begun + read).unwrap_or_default();
            let whole = match str::from_utf8(filled) {
                Ok(_) => filled.len(),
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                Err(_) => return Ok(Kind::Binary),
            };
            let text = str::from_utf8(filled.get(..whole).unwrap_or_default()).unwrap_or_default();
            if text.contains('\0') {
                return Ok(Kind::Binary);
            }
            self.take(text);
            begun = filled.len() - whole;
            block.copy_within(whole..whole + begun, 0);
        }
    }

    fn take(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            if (self.first..self.end).contains(&self.line) && self.full.is_none() {
                self.keep(piece);
            }
            self.open = !piece.ends_with('\n');
            if !self.open {
                self.line += 1;
                self.line_start = self.text.len();
            }
        }
    }

    fn keep(&mut self, piece: &str) {
        let room = MAX_TEXT.saturating_sub(self.text.len());
        if piece.len() <= room {
            self.text.push_str(piece);
        } else if self.line_start > 0 {
            self.text.truncate(self.line_start);
            self.full = Some(Full::Before(self.line));
        } else {
            self.text.push_str(piece.get(..piece.floor_char_boundary(room)).unwrap_or_default());
            self.full = Some(Full::Inside(self.line));
        }
    }

    fn answer(self, path: &ProjectPath) -> Result<Value, ToolError> {
        let total = if self.open { self.line } else { self.line - 1 };
        let first = self.first;
        if first > total.max(1) {
            return Err(ToolError(format!("`{path}` has {total} lines; there is no line {first}")));
        }
        let (last, mark) = match self.full {
            None => (total.min(self.end - 1), String::new()),
            Some(Full::Before(line)) => {
                let last = line - 1;
                (
                    last,
                    format!(
                        "[truncated: lines {first} to {last} of {total}; go on with offset {line}]"
                    ),
                )
            }
            Some(Full::Inside(line)) => {
                let next = if line < total {
                    format!("; go on with offset {}", line + 1)
                } else {
                    String::new()
                };
                (line, format!("\n[truncated: line {line} of {total} is cut{next}]"))
            }
        };
        Ok(json!({
            "path": path,
            "content": self.text + &mark,
            "first_line": first,
            "last_line": last,
            "total_lines": total,
            "bytes": self.bytes,
            "truncated": self.full.is_some(),
        }))
    }
}

/// The size and hash of a file.
fn hash(mut file: &File) -> io::Result<(u64, String)> {
    file.seek(SeekFrom::Start(0))?;
    // It may grow meanwhile.
    let mut file = file.take(MAX_FILE);
    let mut hasher = Hasher::default();
    let mut block = vec![0; BLOCK];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            return Ok((bytes, hasher.finish().to_string()));
        }
        bytes += read as u64;
        hasher.update(block.get(..read).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make the files they read")]

    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_file_that_grows_while_it_is_read_is_seen_to_have_changed() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("a");
        std::fs::write(&at, "one").unwrap();
        let file = File::open(&at).unwrap();
        let before = Stamp::of(&file).unwrap();
        assert_eq!(Stamp::of(&file).unwrap(), before);
        let mut writer = std::fs::OpenOptions::new().append(true).open(&at).unwrap();
        writer.write_all(b" more").unwrap();
        assert_ne!(Stamp::of(&file).unwrap(), before);
    }
}
