//! What was committed before.

use std::path::PathBuf;

use fluffy_base::Excerpt;

use super::run::{Call, Command};
use super::{Git, GitError, ObjectId};

const USUAL: u32 = 20;
const MOST: u32 = 200;
const FIELDS: usize = 5;

/// Nothing where there is no commit yet.
const SCRIPT: &str = r#"
git rev-parse -q --verify 'HEAD^{commit}' >/dev/null || exit 0
exec git log -z --no-show-signature --no-color --no-ext-diff --no-textconv --no-patch --no-decorate \
    --format='tformat:%H%x00%an%x00%ae%x00%at%x00%s' --max-count="$1" HEAD --
"#;

/// The last commits, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitLog {
    /// The commits.
    pub commits: Vec<Logged>,
}

/// One commit. Its texts are shortened, and safe to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// Its name.
    pub id: ObjectId,
    /// Whom it is by.
    pub author: String,
    /// The author's address.
    pub email: String,
    /// When it was written, in seconds since 1970.
    pub seconds: i64,
    /// The first line of its message.
    pub subject: String,
}

impl Git {
    /// The last commits: 20, or as many as are asked for, up to 200.
    pub fn log(&self, limit: Option<u32>) -> Result<GitLog, GitError> {
        let none: [PathBuf; 0] = [];
        let limit = limit.unwrap_or(USUAL).clamp(1, MOST);
        let mut call = Call::new("tell its history", Command::Script(SCRIPT), &none);
        call.shown = self.shared()?;
        let out = self.must(call.args([limit.to_string()]))?.out;
        parse(&out.bytes)
    }
}

fn parse(bytes: &[u8]) -> Result<GitLog, GitError> {
    let texts: Vec<_> = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    // Behind the last NUL is nothing, or what was cut off.
    let commits = texts.chunks_exact(FIELDS).map(|fields| {
        let [id, author, email, seconds, subject] = fields else { return None };
        let shown = |text: &str, most| Excerpt::new(text, most).to_string();
        Some(Logged {
            id: ObjectId::parse(id)?,
            author: shown(author, 100),
            email: shown(email, 100),
            seconds: seconds.parse().ok()?,
            subject: shown(subject, 200),
        })
    });
    let commits = commits.collect::<Option<_>>();
    commits.map(|commits| GitLog { commits }).ok_or(GitError::Answer("a commit of its history"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_read_and_a_strange_one_refused() {
        let id = "0".repeat(40);
        let text = format!("{id}\0A\0a@b\05\0one\x1b\0{id}\0B\0b@c\0-6\0two\0");
        let log = parse(text.as_bytes()).unwrap();
        assert_eq!(log.commits.len(), 2);
        assert_eq!((log.commits[0].subject.as_str(), log.commits[1].seconds), ("one\\u{1b}", -6));
        assert!(parse(b"").unwrap().commits.is_empty());
        assert!(parse(b"a\0b\0c\0d\0e\0").is_err());
    }
}
