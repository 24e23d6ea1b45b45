//! What was typed before: walked through, searched, and kept for the next time.
//!
//! **Invariant.** No key of a known service is kept, and the file is the user's alone.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use fluffy_base::masked;

/// How many messages are kept.
const MOST: usize = 1000;
/// The longest message that is kept, in bytes.
const LONGEST: usize = 64 << 10;
/// How large the file may grow before it is written anew, in bytes.
const MAX_FILE: u64 = 4 << 20;

/// What was typed before.
#[derive(Debug, Default)]
pub(crate) struct History {
    entries: Vec<String>,
    file: Option<PathBuf>,
    /// Which of them is shown, and what was typed before it was.
    at: Option<usize>,
    draft: String,
}

impl History {
    /// What a file holds. What cannot be read is not remembered: a shell without memory is better than none.
    pub(crate) fn load(file: PathBuf) -> Self {
        let entries = read(&file).unwrap_or_default();
        Self { entries, file: Some(file), ..Self::default() }
    }

    /// Remembers a message. One that begins with a blank is not remembered.
    pub(crate) fn push(&mut self, text: &str) {
        self.at = None;
        let kept = masked(text).into_owned();
        let is_wanted = !kept.trim().is_empty() && !text.starts_with(' ') && kept.len() <= LONGEST;
        if !is_wanted || self.entries.last() == Some(&kept) {
            return;
        }
        if let Some(file) = &self.file {
            // Not worth failing for: it is remembered as long as the program runs.
            let _kept = append(file, &kept);
        }
        self.entries.push(kept);
        if self.entries.len() > MOST {
            self.entries.remove(0);
        }
    }

    /// The message before the one that is shown; `typed` comes back at the end.
    pub(crate) fn older(&mut self, typed: &str) -> Option<&str> {
        let at = match self.at {
            None => {
                typed.clone_into(&mut self.draft);
                self.entries.len().checked_sub(1)?
            }
            Some(at) => at.checked_sub(1)?,
        };
        self.at = Some(at);
        self.entries.get(at).map(String::as_str)
    }

    /// The message behind the one that is shown, and at last what was typed.
    pub(crate) fn newer(&mut self) -> Option<&str> {
        let at = self.at? + 1;
        if at >= self.entries.len() {
            self.at = None;
            return Some(&self.draft);
        }
        self.at = Some(at);
        self.entries.get(at).map(String::as_str)
    }

    /// Something else is typed now.
    pub(crate) fn rest(&mut self) {
        self.at = None;
    }

    /// The newest message with this text in it, before a place; small letters stand for both.
    pub(crate) fn find(&self, wanted: &str, before: usize) -> Option<(usize, &str)> {
        if wanted.is_empty() {
            return None;
        }
        let any_case = !wanted.contains(char::is_uppercase);
        let has = |text: &str| match any_case {
            true => text.to_lowercase().contains(wanted),
            false => text.contains(wanted),
        };
        let entries = self.entries.iter().enumerate().take(before).rev();
        entries.map(|(at, text)| (at, text.as_str())).find(|(_, text)| has(text))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

fn read(path: &Path) -> io::Result<Vec<String>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(MAX_FILE)))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut bytes)?;
    let lines = bytes.split(|byte| *byte == b'\n');
    // Half a line, and what somebody else wrote, are left out.
    let entries: Vec<String> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let first = entries.len().saturating_sub(MOST);
    let entries: Vec<String> = entries.into_iter().skip(first).collect();
    if size > MAX_FILE {
        let mut file = opened(path, true)?;
        entries.iter().try_for_each(|entry| write_entry(&mut file, entry))?;
    }
    Ok(entries)
}

fn append(path: &Path, entry: &str) -> io::Result<()> {
    write_entry(&mut opened(path, false)?, entry)
}

fn opened(path: &Path, anew: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600);
    if anew { options.write(true).truncate(true) } else { options.append(true) }.open(path)
}

fn write_entry(file: &mut File, entry: &str) -> io::Result<()> {
    let mut line = serde_json::to_string(entry)?;
    line.push('\n');
    file.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn earlier_messages_come_back_and_so_does_what_was_typed() {
        let mut history = History::default();
        ["one", "two\nlines", "two\nlines"].iter().for_each(|text| history.push(text));
        assert_eq!(history.older("draft"), Some("two\nlines"));
        assert_eq!(history.older(""), Some("one"));
        assert_eq!(history.older(""), None);
        assert_eq!(history.newer(), Some("two\nlines"));
        assert_eq!(history.newer(), Some("draft"));
        assert_eq!(history.newer(), None);
    }

    #[test]
    fn the_file_is_private_and_holds_no_keys() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history");
        let mut history = History::load(path.clone());
        let key = format!("sk-ant-api03-{}", "a1B2".repeat(24));
        history.push(&format!("use {key} please"));
        history.push(" not kept");
        history.push("kept");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&key) && !text.contains("not kept"), "{text}");
        let mut again = History::load(path.clone());
        assert_eq!(again.older(""), Some("kept"));
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"\xff\xfe no line of ours\n{}\n").unwrap();
        assert_eq!(History::load(path).len(), 2);
    }

    #[test]
    fn messages_are_searched_from_the_newest() {
        let mut history = History::default();
        ["fix Parser", "write docs", "fix lexer"].iter().for_each(|text| history.push(text));
        let (at, text) = history.find("fix", history.len()).unwrap();
        assert_eq!(text, "fix lexer");
        assert_eq!(history.find("fix", at).unwrap().1, "fix Parser");
        assert_eq!(history.find("parser", 3).unwrap().1, "fix Parser");
        assert_eq!(history.find("Lexer", 3), None);
        assert_eq!(history.find("", 3), None);
    }
}
