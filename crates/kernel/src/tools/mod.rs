//! The tools of a session, one file each.
//!
//! **Invariant.** Whatever tells more than the one path that the policy was asked about leaves out the files
//! that [`Views::may_read`] refuses, and says how many they are.

mod arguments;
mod change;
mod commands;
mod coverage;
mod deadline;
mod dependencies;
mod exists;
mod glob;
mod grep;
mod list;
mod merge;
mod near;
mod read;
mod reading;
mod repository;
mod steps;
mod testing;

use std::sync::Arc;

use fluffy_base::ProjectPath;

use crate::session::Desk;
use crate::{Registry, RegistryError, Tool, View};

pub(crate) use arguments::directory_named;
pub use exists::FsExists;
pub use glob::SearchGlob;
pub use grep::SearchGrep;
pub use list::FsList;
pub use read::FsRead;

/// What the tools of a session look at.
pub trait Views: Send + Sync {
    /// The project as the session sees it now.
    fn view(&self) -> View;

    /// Whether the policy lets the model read this file.
    fn may_read(&self, path: &ProjectPath) -> bool;
}

/// The tools that read, and change nothing.
pub fn reading_tools(views: &Arc<dyn Views>) -> Vec<Box<dyn Tool>> {
    vec![
        Box::new(FsRead::new(Arc::clone(views))),
        Box::new(FsList::new(Arc::clone(views))),
        Box::new(FsExists::new(Arc::clone(views))),
        Box::new(SearchGrep::new(Arc::clone(views))),
        Box::new(SearchGlob::new(Arc::clone(views))),
    ]
}

/// Registers every tool of a session.
pub(crate) fn register(registry: &mut Registry, desk: &Arc<Desk>) -> Result<(), RegistryError> {
    use self::change::{ChangeFile, Kind};
    use self::dependencies::{PackageStep, Packages};
    use self::repository::{Repository, Wanted};
    use self::steps::{Complete, RequestExemption, Said, SetMode};
    let views: Arc<dyn Views> = Arc::<Desk>::clone(desk);
    for tool in reading_tools(&views) {
        registry.register(tool)?;
    }
    let desk = || Arc::clone(desk);
    for kind in [Kind::Write, Kind::Edit, Kind::Delete] {
        registry.register(Box::new(ChangeFile { kind, desk: desk() }))?;
    }
    for said in [Said::Plan, Said::Tests, Said::Code, Said::Task] {
        registry.register(Box::new(Complete { said, desk: desk() }))?;
    }
    for wanted in [Wanted::Status, Wanted::Diff, Wanted::Log, Wanted::Commit] {
        registry.register(Box::new(Repository { wanted, desk: desk() }))?;
    }
    registry.register(Box::new(testing::RunTests(desk())))?;
    registry.register(Box::new(commands::RunCommand(desk())))?;
    for step in [PackageStep::Resolve, PackageStep::Install] {
        registry.register(Box::new(Packages { step, desk: desk() }))?;
    }
    registry.register(Box::new(RequestExemption(desk())))?;
    registry.register(Box::new(SetMode(desk())))?;
    registry.register(Box::new(coverage::KeepCoverage(desk())))?;
    registry.register(Box::new(merge::Merge(desk())))
}

#[cfg(test)]
mod tests;
