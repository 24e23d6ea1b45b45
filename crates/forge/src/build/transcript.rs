//! A builder that plays back what another once wrote.
//!
//! A transcript is JSON lines: `{"v":1,"kind":"builder"}` first, then for each attempt `{"attempt":1}` and its
//! `{"write":{"path":…,"content":…}}` lines. Writes before any `attempt` line belong to the first.
//!
//! **Invariant.** A transcript is trusted no more than any other builder: what it writes is compared and judged alike.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use fluffy_base::ProjectPath;
use fluffy_kernel::{Left, LeftFile, NotTaken};
use serde::Deserialize;

use super::builder::{Coder, CoderError};

/// The version that is written and read.
const VERSION: u32 = 1;
/// The longest transcript.
const MAX_BYTES: usize = 16 << 20;
/// The most writes.
const MAX_WRITES: usize = 10_000;

/// What a builder wrote in each of its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    attempts: BTreeMap<u32, Vec<Written>>,
}

/// Plays one attempt of a transcript.
#[derive(Debug, Clone, Copy)]
pub struct TranscriptCoder<'a> {
    transcript: &'a Transcript,
    attempt: u32,
}

/// Why a text is no transcript.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    /// It does not begin as one.
    #[error("a builder's transcript begins with `{{\"v\":1,\"kind\":\"builder\"}}`")]
    Header,
    /// A line is none.
    #[error("line {line} of the builder's transcript cannot be read")]
    Line {
        /// Which, from one.
        line: usize,
        /// Why not.
        source: serde_json::Error,
    },
    /// Attempts are numbered from one, each once.
    #[error("line {0} of the builder's transcript begins an attempt out of turn")]
    Order(usize),
    /// It is too long.
    #[error("the builder's transcript has more than {MAX_BYTES} bytes or {MAX_WRITES} writes")]
    Long,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    v: u32,
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    Attempt(u32),
    Write(Written),
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    path: String,
    content: String,
}

impl Transcript {
    /// Reads a transcript.
    pub fn parse(text: &str) -> Result<Self, TranscriptError> {
        if text.len() > MAX_BYTES {
            return Err(TranscriptError::Long);
        }
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let header = lines.next().and_then(|(_, line)| serde_json::from_str::<Header>(line).ok());
        match header {
            Some(header) if header.v == VERSION && header.kind == "builder" => {}
            Some(_) | None => return Err(TranscriptError::Header),
        }
        let (mut attempts, mut current, mut writes) = (BTreeMap::new(), 1, 0);
        for (index, line) in lines {
            let number = index + 1;
            let line = serde_json::from_str(line)
                .map_err(|source| TranscriptError::Line { line: number, source })?;
            match line {
                Line::Attempt(attempt) => {
                    let expected = if attempts.is_empty() { 1 } else { current + 1 };
                    if attempt != expected {
                        return Err(TranscriptError::Order(number));
                    }
                    current = attempt;
                    attempts.insert(current, Vec::new());
                }
                Line::Write(written) => {
                    writes += 1;
                    attempts.entry(current).or_default().push(written);
                }
            }
        }
        if writes > MAX_WRITES { Err(TranscriptError::Long) } else { Ok(Self { attempts }) }
    }

    /// How many attempts it holds.
    pub fn attempts(&self) -> usize {
        self.attempts.len()
    }

    /// The builder that this attempt was.
    pub fn coder(&self, attempt: u32) -> TranscriptCoder<'_> {
        TranscriptCoder { transcript: self, attempt }
    }
}

impl Coder for TranscriptCoder<'_> {
    fn code(&self, _: &str, _: &Path, log: &mut dyn Write) -> Result<Left, CoderError> {
        let writes = self.transcript.attempts.get(&self.attempt).ok_or_else(|| {
            let (has, attempt) = (self.transcript.attempts(), self.attempt);
            CoderError::Failed(format!(
                "the transcript holds {has} attempt(s), and this is attempt {attempt}"
            ))
        })?;
        let mut files = BTreeMap::new();
        let mut left = Left::default();
        for written in writes {
            match ProjectPath::parse(&written.path) {
                // A path is taken as it is spelt, as a program that writes to it would.
                Ok(path) if path.as_str() == written.path => {
                    let _told = writeln!(log, "writes {path}, {} bytes", written.content.len());
                    files.insert(path, written.content.as_bytes());
                }
                Ok(_) => left.refused.push(refused(&written.path, "it is not written plainly")),
                Err(why) => left.refused.push(refused(&written.path, &why.to_string())),
            }
        }
        let file = |(path, bytes): (ProjectPath, &[u8])| LeftFile {
            path,
            bytes: bytes.to_vec(),
            executable: false,
        };
        left.files = files.into_iter().map(file).collect();
        Ok(left)
    }
}

fn refused(name: &str, why: &str) -> NotTaken {
    let name = fluffy_base::Excerpt::new(name, 120).to_string();
    NotTaken { name, why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "{\"v\":1,\"kind\":\"builder\"}\n";

    fn play(text: &str, attempt: u32) -> Result<Left, CoderError> {
        let transcript = Transcript::parse(&format!("{HEADER}{text}")).unwrap();
        transcript.coder(attempt).code("", Path::new("/"), &mut Vec::new())
    }

    #[test]
    fn each_attempt_writes_its_own_files_and_the_last_write_counts() {
        let text = r#"{"write":{"path":"a","content":"1"}}
            {"write":{"path":"a","content":"2"}}
            {"attempt":2}
            {"write":{"path":"b","content":"3"}}"#;
        let first = play(text, 1).unwrap();
        assert_eq!(first.files.len(), 1);
        assert_eq!(first.files[0].bytes, b"2");
        assert_eq!(play(text, 2).unwrap().files[0].path.as_str(), "b");
        let error = play(text, 3).unwrap_err().to_string();
        assert!(error.contains("holds 2 attempt(s), and this is attempt 3"), "{error}");
    }

    #[test]
    fn lesson_l31_a_path_that_leads_out_is_refused_by_name() {
        for path in ["../x", "/etc/passwd", "a/../b", "./a", "a//b", "~/x", "a\\\\b", ""] {
            let left =
                play(&format!(r#"{{"write":{{"path":"{path}","content":""}}}}"#), 1).unwrap();
            assert!(left.files.is_empty(), "{path}");
            assert_eq!(left.refused.len(), 1, "{path}");
        }
    }

    #[test]
    fn what_is_no_transcript_is_said_with_its_line() {
        for (text, why) in [
            ("", "begins with"),
            ("{\"v\":2,\"kind\":\"builder\"}", "begins with"),
            ("{\"v\":1,\"kind\":\"transcript\"}", "begins with"),
            ("{\"v\":1,\"kind\":\"builder\"}\n{\"remove\":1}", "line 2"),
            ("{\"v\":1,\"kind\":\"builder\"}\n{\"attempt\":2}", "line 2"),
            ("{\"v\":1,\"kind\":\"builder\"}\n{\"attempt\":1}\n{\"attempt\":1}", "line 3"),
        ] {
            let error = Transcript::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
