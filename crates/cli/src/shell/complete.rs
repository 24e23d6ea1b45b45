//! Completes what is typed: commands, files of the project, skills.

use std::path::Path;

use fluffy_base::sanitised;

use super::command::{COMMANDS, Takes};

/// How many files of a project are offered.
const MOST_FILES: usize = 50_000;
/// How many words are offered at once.
const MOST_WORDS: usize = 200;

/// What there is to be named.
#[derive(Debug, Clone, Default)]
pub(crate) struct Words {
    /// Files, from the project's root, sorted.
    pub(crate) files: Vec<String>,
    /// Skills with what they do.
    pub(crate) skills: Vec<(String, String)>,
}

/// What a word may become.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    /// Where the word begins.
    pub(crate) from: usize,
    /// What it may become, each with what it means.
    pub(crate) words: Vec<(String, String)>,
}

impl Words {
    /// What the word before the cursor may become.
    pub(crate) fn complete(&self, text: &str, at: usize) -> Completion {
        let before = text.get(..at).unwrap_or_default();
        let from = before.rfind(char::is_whitespace);
        let from = from.map_or(0, |at| {
            at + before.get(at..).and_then(|it| it.chars().next()).map_or(1, char::len_utf8)
        });
        let word = before.get(from..).unwrap_or_default();
        let words = if from == 0 && word.starts_with('/') {
            commands(word)
        } else if let Some(path) = word.strip_prefix('@') {
            self.paths(path, "@")
        } else if takes_path(before) {
            self.paths(word, "")
        } else {
            self.skills(word)
        };
        Completion { from, words }
    }

    fn skills(&self, word: &str) -> Vec<(String, String)> {
        if word.chars().count() < 2 {
            return Vec::new();
        }
        let fits = |(name, _): &&(String, String)| name.starts_with(word) && name != word;
        self.skills.iter().filter(fits).take(MOST_WORDS).cloned().collect()
    }

    /// Files and directories below what is typed; where there are none, files whose name begins like that.
    fn paths(&self, typed: &str, mark: &str) -> Vec<(String, String)> {
        let mut found: Vec<String> = Vec::new();
        let start = self.files.partition_point(|file| file.as_str() < typed);
        let below = self.files.iter().skip(start).take_while(|file| file.starts_with(typed));
        for file in below {
            let rest = file.get(typed.len()..).unwrap_or_default();
            let next = match rest.split_once('/') {
                Some((part, _)) => format!("{typed}{part}/"),
                None => file.clone(),
            };
            if found.last() != Some(&next) {
                found.push(next);
            }
            if found.len() >= MOST_WORDS {
                break;
            }
        }
        if found.is_empty() && !typed.is_empty() {
            let name = |file: &&String| {
                file.rsplit('/').next().is_some_and(|name| name.starts_with(typed))
            };
            found = self.files.iter().filter(name).take(MOST_WORDS).cloned().collect();
        }
        found.into_iter().map(|file| (format!("{mark}{file}"), String::new())).collect()
    }
}

fn commands(word: &str) -> Vec<(String, String)> {
    let typed = word.strip_prefix('/').unwrap_or(word);
    let fits = COMMANDS.iter().filter(|slash| slash.name.starts_with(typed));
    fits.map(|slash| (format!("/{}", slash.name), slash.help.to_owned())).collect()
}

/// Whether a file is what stands next.
fn takes_path(before: &str) -> bool {
    let name = before.split_whitespace().next().and_then(|word| word.strip_prefix('/'));
    let slash = name.and_then(|name| COMMANDS.iter().find(|slash| slash.name == name));
    slash.is_some_and(|slash| slash.takes == Takes::Path) && before.contains(char::is_whitespace)
}

/// What all of the words begin with.
pub(crate) fn common(words: &[(String, String)]) -> String {
    let Some((first, _)) = words.first() else { return String::new() };
    let mut end = first.len();
    for (word, _) in words {
        let same = first.char_indices().zip(word.chars()).take_while(|((_, a), b)| a == b);
        end = end.min(same.last().map_or(0, |((at, c), _)| at + c.len_utf8()));
    }
    first.get(..end).unwrap_or_default().to_owned()
}

/// The files of a project that git does not ignore; links are not followed, so none leads out of it.
pub(crate) fn files_of(project: &Path) -> Vec<String> {
    let walk = ignore::WalkBuilder::new(project).follow_links(false).require_git(false).build();
    let mut files = Vec::new();
    for entry in walk.flatten() {
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let path = entry.path().strip_prefix(project).ok().and_then(Path::to_str);
        // A name that would have to be written otherwise than it is cannot be typed either.
        let path =
            path.filter(|path| !path.contains(char::is_whitespace) && sanitised(path) == *path);
        files.extend(path.map(str::to_owned));
        if files.len() >= MOST_FILES {
            break;
        }
    }
    files.sort_unstable();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        let files = ["README.md", "src/lib.rs", "src/main.rs", "src/shell/mod.rs", "tests/it.rs"];
        Words {
            files: files.map(str::to_owned).to_vec(),
            skills: vec![("summarize_text".to_owned(), "shortens".to_owned())],
        }
    }

    fn offered(text: &str) -> Vec<String> {
        words().complete(text, text.len()).words.into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn commands_paths_and_skills_are_completed_where_they_stand() {
        assert_eq!(offered("/st"), ["/strict", "/status"]);
        assert_eq!(offered("look at @src/"), ["@src/lib.rs", "@src/main.rs", "@src/shell/"]);
        assert_eq!(offered("look at @ma"), ["@src/main.rs"]);
        assert_eq!(offered("/pin te"), ["tests/"]);
        assert_eq!(offered("/pin "), ["README.md", "src/", "tests/"]);
        assert_eq!(offered("run summ"), ["summarize_text"]);
        assert_eq!(offered("/undo te"), Vec::<String>::new());
        assert_eq!(offered(""), Vec::<String>::new());
        assert_eq!(common(&words().complete("@src/", 5).words), "@src/");
        assert_eq!(
            common(&[("äb".to_owned(), String::new()), ("äc".to_owned(), String::new())]),
            "ä"
        );
    }

    #[test]
    fn the_project_is_walked_as_git_sees_it_and_never_left() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let file = |path: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            drop(
                std::fs::OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .open(&path)
                    .unwrap(),
            );
            path
        };
        for path in ["src/a.rs", "target/big", "b c.txt", "d\u{1b}.txt", "e.txt"] {
            file(path);
        }
        use std::io::Write as _;
        let mut ignore = std::fs::OpenOptions::new().write(true).open(file(".gitignore")).unwrap();
        ignore.write_all(b"target/\n").unwrap();
        drop(
            std::fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(outside.path().join("secret"))
                .unwrap(),
        );
        std::os::unix::fs::symlink(outside.path(), dir.path().join("out")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), dir.path().join("link")).unwrap();
        assert_eq!(files_of(dir.path()), ["e.txt", "src/a.rs"]);
    }
}
