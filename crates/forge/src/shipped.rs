//! Skills that come with this program: as proposals and as what a builder wrote for them, never as trusted code.
//!
//! **Invariant.** A shipped skill goes the way of every other: proposed, built (by its transcript), verified, promoted by a
//! person. Nothing here is run by itself.

use crate::Proposal;
use crate::build::{Transcript, TranscriptError};

/// Who built a skill that comes with this program, as the ledger has it.
pub const SHIPPED: &str = "shipped";

/// A skill that comes with this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shipped {
    /// What it is called.
    pub name: &'static str,
    /// Its proposal, as YAML.
    pub spec: &'static str,
    /// The transcript of its builder, as JSON lines.
    pub transcript: &'static str,
}

/// Why a shipped skill cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ShippedError {
    /// Its proposal is none.
    #[error("the proposal of the shipped skill `{name}` cannot be read: {why}")]
    Spec {
        /// Which skill.
        name: &'static str,
        /// Why not.
        why: String,
    },
    /// Its transcript is none.
    #[error("the builder's transcript of the shipped skill `{name}` cannot be read")]
    Transcript {
        /// Which skill.
        name: &'static str,
        /// Why not.
        source: TranscriptError,
    },
}

macro_rules! shipped {
    ($name:literal) => {
        Shipped {
            name: $name,
            spec: include_str!(concat!("../skills/", $name, "/spec.yaml")),
            transcript: include_str!(concat!("../skills/", $name, "/builder.jsonl")),
        }
    };
}

/// The skills that come with this program, by name.
const ALL: [Shipped; 6] = [
    shipped!("create_daily_note"),
    shipped!("http_get_json"),
    shipped!("read_notes_by_tag"),
    shipped!("search_notes"),
    shipped!("summarize_note"),
    shipped!("write_note"),
];

/// The skills that come with this program, by name.
pub const fn shipped() -> &'static [Shipped] {
    &ALL
}

impl Shipped {
    /// The one of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|skill| skill.name == name)
    }

    /// Its proposal.
    pub fn proposal(&self) -> Result<Proposal, ShippedError> {
        serde_saphyr::from_str(self.spec)
            .map_err(|error| ShippedError::Spec { name: self.name, why: error.to_string() })
    }

    /// What its builder wrote.
    pub fn transcript(&self) -> Result<Transcript, ShippedError> {
        Transcript::parse(self.transcript)
            .map_err(|source| ShippedError::Transcript { name: self.name, source })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fluffy_base::ProjectPath;

    use super::*;
    use crate::build::Coder as _;
    use crate::{ScanRules, SideEffect, SourceFile, check, scan};

    fn files(skill: &Shipped) -> Vec<SourceFile> {
        let transcript = skill.transcript().unwrap();
        let left = transcript.coder(1).code("", Path::new("/"), &mut Vec::new()).unwrap();
        assert_eq!(left.refused.len(), 0, "{}", skill.name);
        let files = left.files.into_iter();
        files.map(|file| SourceFile { path: file.path, bytes: file.bytes }).collect()
    }

    #[test]
    fn for_14_six_skills_are_shipped_each_as_a_proposal_that_can_be_made() {
        let names: Vec<_> = shipped().iter().map(|skill| skill.name).collect();
        assert_eq!(names.len(), 6);
        assert!(names.is_sorted());
        for skill in shipped() {
            let proposal = skill.proposal().unwrap();
            assert_eq!(proposal.name.as_str(), skill.name);
            // What is recorded is what was written: nothing had to be closed.
            assert_eq!(proposal.clone().checked().unwrap(), proposal);
            assert_eq!(Shipped::find(skill.name), Some(skill));
        }
        assert_eq!(Shipped::find("other"), None);
    }

    #[test]
    fn for_14_what_is_shipped_reads_as_what_was_proposed() {
        for skill in shipped() {
            let (proposal, files) = (skill.proposal().unwrap(), files(skill));
            let changed: Vec<ProjectPath> = files.iter().map(|file| file.path.clone()).collect();
            let policy = scan(&files, &ScanRules::default().for_proposal(&proposal));
            assert!(policy.passed, "{}: {:#?}", skill.name, policy.findings);
            let invariants = check(&files, &proposal, &changed);
            assert!(invariants.passed, "{}: {:#?}", skill.name, invariants.findings);
        }
    }

    #[test]
    fn a_transcript_holds_the_sources_beside_it() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("skills");
        for skill in shipped() {
            let beside = root.join(skill.name);
            let files = files(skill);
            assert_eq!(files.len(), 2, "{}", skill.name);
            for file in files {
                let source = std::fs::read(beside.join(file.path.file_name())).unwrap();
                assert!(file.bytes == source, "{}: run scripts/skill-transcripts", file.path);
            }
        }
    }

    #[test]
    fn lesson_l32_where_a_shipped_skill_may_go_stands_in_its_proposal_and_in_no_input() {
        for skill in shipped() {
            let proposal = skill.proposal().unwrap();
            let reaches = !proposal.hosts.is_empty() || !proposal.secrets.is_empty();
            assert_eq!(reaches, skill.name == "http_get_json");
            let input = proposal.input.to_string();
            for word in ["host", "url", "secret", "token", "header"] {
                assert!(!input.contains(&format!("\"{word}")), "{}: {word}", skill.name);
            }
            let writes = proposal.side_effect == SideEffect::FileWrite;
            assert_eq!(writes, !proposal.writes.is_empty());
        }
    }
}
