//! Patterns of files in a command line: `*` and `?`, expanded where the programs run.
//!
//! **Invariant.** A name that a pattern matched in the directory itself begins with `./`: a file that is called `-rf` or like a command of
//! a program is never taken for an option or a command.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The most files that one pattern stands for.
const MAX_FILES: usize = 4_096;

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatternPart {
    /// This text; `/` separates folders.
    Text(String),
    /// Any text without `/`: `*`.
    AnyText,
    /// Any one character but `/`: `?`.
    AnyCharacter,
}

/// One character of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Is(char),
    AnyText,
    AnyCharacter,
}

/// The pattern as it was written.
pub(super) fn shown(parts: &[PatternPart]) -> String {
    let text = |part: &PatternPart| match part {
        PatternPart::Text(text) => text.clone(),
        PatternPart::AnyText => "*".to_owned(),
        PatternPart::AnyCharacter => "?".to_owned(),
    };
    parts.iter().map(text).collect()
}

/// The files below `top` that match, in order; the pattern itself where none does.
pub(super) fn expand(parts: &[PatternPart], top: &Path) -> Result<Vec<String>, String> {
    let mut found = vec![String::new()];
    for folder in folders(parts) {
        let mut next = Vec::new();
        for before in &found {
            step(&folder, before, top, &mut next);
            if next.len() > MAX_FILES {
                return Err(format!("`{}` stands for more than {MAX_FILES} files", shown(parts)));
            }
        }
        found = next;
    }
    found.sort_unstable();
    if found.is_empty() { Ok(vec![shown(parts)]) } else { Ok(found) }
}

/// What one part of the path adds to the paths that were found so far.
fn step(folder: &[Mark], before: &str, top: &Path, next: &mut Vec<String>) {
    let joined = |name: &str| match (before, folder.contains(&Mark::AnyText)) {
        ("", false) if !folder.contains(&Mark::AnyCharacter) => name.to_owned(),
        ("", _) => format!("./{name}"),
        (before, _) => format!("{before}/{name}"),
    };
    let plain: Option<String> = folder
        .iter()
        .map(|mark| match mark {
            Mark::Is(character) => Some(*character),
            Mark::AnyText | Mark::AnyCharacter => None,
        })
        .collect();
    if let Some(name) = plain {
        let path = joined(&name);
        if top.join(&path).symlink_metadata().is_ok() {
            next.push(path);
        }
        return;
    }
    let directory: PathBuf = top.join(before);
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let hidden = folder.first() == Some(&Mark::Is('.'));
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Ok(name) = std::str::from_utf8(name.as_bytes()) else { continue };
        if (hidden || !name.starts_with('.')) && matches(folder, name) {
            next.push(joined(name));
        }
        if next.len() > MAX_FILES {
            return;
        }
    }
}

/// The pattern folder by folder.
fn folders(parts: &[PatternPart]) -> Vec<Vec<Mark>> {
    let mut folders = vec![Vec::new()];
    let mut push = |mark: Mark| match (mark, folders.last_mut()) {
        (Mark::Is('/'), _) => folders.push(Vec::new()),
        (mark, Some(last)) => last.push(mark),
        (_, None) => {}
    };
    for part in parts {
        match part {
            PatternPart::Text(text) => text.chars().map(Mark::Is).for_each(&mut push),
            PatternPart::AnyText => push(Mark::AnyText),
            PatternPart::AnyCharacter => push(Mark::AnyCharacter),
        }
    }
    folders.retain(|folder| !folder.is_empty());
    folders
}

/// Whether a name matches; goes back to the last `*` alone, so that it takes no more than the product of both lengths.
fn matches(pattern: &[Mark], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut in_name) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(character) = name.get(in_name) {
        match pattern.get(at) {
            Some(Mark::AnyText) => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(Mark::AnyCharacter) => {
                at += 1;
                in_name += 1;
            }
            Some(Mark::Is(wanted)) if wanted == character => {
                at += 1;
                in_name += 1;
            }
            Some(Mark::Is(_)) | None => match star {
                Some((star_at, from)) => {
                    star = Some((star_at, from + 1));
                    at = star_at + 1;
                    in_name = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(at).all(|mark| *mark == Mark::AnyText)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(text: &str) -> Vec<PatternPart> {
        let part = |character: char| match character {
            '*' => PatternPart::AnyText,
            '?' => PatternPart::AnyCharacter,
            other => PatternPart::Text(other.to_string()),
        };
        text.chars().map(part).collect()
    }

    #[test]
    fn names_match_as_in_a_shell() {
        let matches = |pattern: &str, name: &str| matches(&folders(&marks(pattern))[0], name);
        for (pattern, name) in [("*", "a"), ("*.rs", "x.rs"), ("a?c", "abc"), ("a*b*c", "axbxbc")] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("?", ""), ("*.rs", "x.rsx"), ("a?c", "ac"), ("a", "ab")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
        let stars = "*a".repeat(40);
        assert!(!matches(&stars, &"a".repeat(39)));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the files that patterns are to find")]
    fn matched_names_are_never_options_or_hidden() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("src")).unwrap();
        for name in ["-rf", "push", ".env", "src/a.rs", "src/b.rs"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let expand = |pattern: &str| expand(&marks(pattern), dir.path()).unwrap();
        assert_eq!(expand("*"), ["./-rf", "./push", "./src"]);
        assert_eq!(expand("pus?"), ["./push"]);
        assert_eq!(expand("src/*.rs"), ["src/a.rs", "src/b.rs"]);
        assert_eq!(expand(".e*"), ["./.env"]);
        assert_eq!(expand("*.py"), ["*.py"]);
        assert_eq!(expand("*/a.rs"), ["./src/a.rs"]);
    }
}
