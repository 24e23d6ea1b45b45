//! The repository's rules about itself.
//!
//! A rule is a [`Check`]: it looks at a [`Repo`], a snapshot of the repository's files, and returns what
//! it found. The tests in `tests/it` run every check on this repository; `cargo xtask check` runs the
//! same ones and prints what they find.
//!
//! **Invariant.** A check that cannot read or understand what it should judge reports that as a finding:
//! nothing passes because it could not be looked at.

mod conformance;
mod docs;
mod edges;
mod events;
mod headers;
mod licences;
mod manifest;
mod markdown;
mod outline;
mod references;
mod repo;
mod spdx;
mod tokens;
mod words;

pub use repo::{Finding, Repo};

/// One rule of the repository about itself.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What holds when it finds nothing.
    pub promise: &'static str,
    /// Looks at the repository; an empty answer means that the promise holds.
    pub run: fn(&Repo) -> Vec<Finding>,
}

/// Every check, in the order in which they are run.
pub const CHECKS: &[Check] = &[
    Check {
        name: "edges",
        promise: "crates know only what the design lets them know",
        run: edges::check,
    },
    Check {
        name: "headers",
        promise: "source files say what they are for, manifests share the lints",
        run: headers::check,
    },
    Check {
        name: "words",
        promise: "no unfinished work, paths of one machine or names that say nothing",
        run: words::check,
    },
    Check {
        name: "docs",
        promise: "documents exist, their links resolve, dependencies have reasons",
        run: docs::check,
    },
    Check {
        name: "events",
        promise: "the page of events is what the source says",
        run: events::check,
    },
    Check {
        name: "conformance",
        promise: "every requirement has its row, every test named there exists",
        run: conformance::check,
    },
    Check {
        name: "licences",
        promise: "every package has a licence that deny.toml allows",
        run: licences::check,
    },
];

/// The pages that follow from the source, with where they belong.
pub fn pages(repo: &Repo) -> Vec<(&'static str, String)> {
    events::written(repo).into_iter().collect()
}
