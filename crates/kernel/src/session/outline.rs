//! What the model is shown of the project before it asks: its files in a few lines, and its own notes.

use std::collections::BTreeSet;

use fluffy_base::ProjectPath;

use super::Session;
use crate::tools::Views as _;

/// How deep files are listed.
const DEPTH: usize = 3;
/// How many lines there are at most.
const LINES: usize = 200;
/// What a project's notes to models are called.
const NOTES: &str = "AGENTS.md";
/// How many such files are read.
const MAX_NOTES: usize = 5;
/// How much of each.
const NOTE_BYTES: u64 = 64 << 10;

/// What the model is shown of the project before it asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// The files as lines, a few levels deep: what lies deeper is told by its directory.
    pub lines: Vec<String>,
    /// The project's own notes to models with their paths, the nearest to the files last.
    pub notes: Vec<(String, String)>,
}

impl Session {
    /// What the model is shown of the project, from one look at all of it.
    pub fn outline(&self) -> Outline {
        let files = self.readable();
        Outline { lines: lines(&files), notes: self.notes(&files) }
    }

    fn notes(&self, files: &[ProjectPath]) -> Vec<(String, String)> {
        let mut notes: Vec<_> = files.iter().filter(|file| file.file_name() == NOTES).collect();
        notes.sort_by_key(|note| note.components().count());
        let view = self.view();
        let read = |note: &&ProjectPath| {
            let bytes = view.read(note, NOTE_BYTES).ok()?;
            Some((note.to_string(), String::from_utf8_lossy(&bytes).into_owned()))
        };
        notes.iter().take(MAX_NOTES).filter_map(read).collect()
    }

    /// How often the project's files were changed by the session: what was told of them is old after it.
    pub fn changes(&self) -> u64 {
        let inside = self.desk.look();
        let last = inside.staging.steps().last().map_or(0, |step| step.number);
        last + inside.progress.merged.len() as u64
    }

    /// What the model may read, as far as git does not ignore it.
    fn readable(&self) -> Vec<ProjectPath> {
        let mut files = self.view().walk(None).map(|walked| walked.files).unwrap_or_default();
        files.retain(|file| self.desk.may_read(file));
        files
    }
}

fn lines(files: &[ProjectPath]) -> Vec<String> {
    let mut lines = BTreeSet::new();
    for file in files {
        let parts: Vec<&str> = file.components().collect();
        let line = match parts.get(..DEPTH) {
            Some(first) if parts.len() > DEPTH => format!("{}/", first.join("/")),
            _whole => file.to_string(),
        };
        lines.insert(line);
    }
    let more = lines.len().saturating_sub(LINES);
    let mut lines: Vec<String> = lines.into_iter().take(LINES).collect();
    if let (true, Some(last)) = (more > 0, lines.last_mut()) {
        *last = format!("… and {} more", more + 1);
    }
    lines
}
