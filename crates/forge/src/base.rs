//! What every skill stands on: the base class and the runner, as this program ships them.
//!
//! **Invariant.** A sandbox gets these bytes and never a file of the project: what was sealed with a skill is what runs it.

use fluffy_base::Digest;

/// The base class, as Python source.
const SKILL: &[u8] = include_bytes!("../python/fluffy_skill.py");

/// The runner, as Python source.
const RUNNER: &[u8] = include_bytes!("../python/runner.py");

/// The base class and the runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Base {
    /// The module `fluffy_skill`.
    pub skill: &'static [u8],
    /// The program that runs a skill.
    pub runner: &'static [u8],
}

/// What this program ships.
pub const fn base() -> Base {
    Base { skill: SKILL, runner: RUNNER }
}

impl Base {
    /// The name of the module that skills import.
    pub const MODULE: &'static str = "fluffy_skill";

    /// The hash of both, with their lengths, so that no byte can move from one to the other.
    pub fn digest(&self) -> Digest {
        let length = |bytes: &[u8]| (bytes.len() as u64).to_be_bytes();
        Digest::of_parts(&[&length(self.skill), self.skill, &length(self.runner), self.runner])
    }
}
