//! What to do about a runner or a package that is not installed, in words for the model and the person.

use std::collections::BTreeSet;

use fluffy_base::ProjectPath;
use fluffy_workflow::{Conventions, PathKind, Runner, Suite, missing_package};

use super::identity::runner;

/// What to do about a runner that is not there.
pub(super) fn install_hint(suite: &Suite) -> String {
    let fix = match suite.runner() {
        Runner::Cargo => "a person has to install Rust (https://rustup.rs)",
        Runner::Pytest => "install the package `pytest` with `deps.install`",
        Runner::Node => "a person has to install Node.js 20 or later",
        Runner::Jest => "install the package `jest` with `deps.install`",
        Runner::Vitest => "install the package `vitest` with `deps.install`",
        Runner::Go { .. } => "a person has to install Go",
        Runner::Profiled(profile) => profile.install_hint(),
        Runner::Command { .. } => {
            "install packages with `deps.install`; a person has to install programs, or set another `test.command`"
        }
    };
    format!("{fix}; sandboxes have no network ({})", runner(suite))
}

/// What to do where a build failed for a package that is not installed, and no test file is the cause.
pub(super) fn package_hint(message: &str, causes: &BTreeSet<ProjectPath>) -> Option<String> {
    let conventions = Conventions::default();
    if causes.iter().any(|file| conventions.kind(file) == PathKind::Test) {
        return None;
    }
    let package = missing_package(message)?;
    Some(format!(
        "the package `{package}` is not installed, which is no failing test: install it with `deps.install`"
    ))
}
