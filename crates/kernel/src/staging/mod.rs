//! What the session made of the project, in numbered steps.
//!
//! [`Staging::prepare`] turns what a job produced into a [`Step`]; the session writes the step to the ledger
//! and only then calls [`Staging::promote`]. The ledger is the truth: memory and the layer directory are
//! projections, and [`Staging::restore`] rebuilds both from steps and kept contents.
//!
//! ```text
//! session's directory ── blobs/        contents by hash: of every step, and of what the project had
//!                     ── layer/<name>/ one state as a lower layer for sandboxes
//!                     ── merge.log     how far a merge has come (see `merge`)
//! ```
//!
//! **Invariant.** Nothing here writes to the project.
//!
//! **Invariant.** A path stands below no staged file, and no path leads through a link.

mod below;
mod diff;
mod layer;
mod lines;
mod prepare;
mod step;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fluffy_base::{ByteSize, ProjectPath};

use crate::files::{BlobError, Blobs, Staged, StagedFiles, Tree, TreeError, View};
use crate::workshop::Produced;

pub use below::BelowError;
pub(crate) use below::files_below;
pub use diff::{Diff, FileDiff, FileKind};
pub(crate) use diff::{is_binary, unified};
pub use layer::Layer;
pub(crate) use lines::{Edit, edits, lines};
pub(crate) use prepare::read;
pub use step::{Base, Step, StepChange};

/// Where layers for one job are made, in the session's directory. What a killed kernel left there is taken away.
pub(crate) const SCRATCH: &str = "scratch";

/// The session's changes to the project.
#[derive(Debug)]
pub struct Staging {
    dir: PathBuf,
    tree: Arc<Tree>,
    blobs: Arc<Blobs>,
    /// Those of this cycle that were not taken back.
    steps: Vec<Step>,
    files: StagedFiles,
    bases: BTreeMap<ProjectPath, Base>,
    layer: Arc<Layer>,
    /// The greatest number that a step ever had.
    last: u64,
    /// The number after which this cycle began.
    begun: u64,
}

/// Why the session's files cannot be changed, or not like that.
#[derive(Debug, thiserror::Error)]
pub enum StagingError {
    /// A path of the project cannot be looked at.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A content cannot be kept or had.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// Where a file must go, there is something that is none.
    #[error("`{0}` is not a regular file in the project, and is neither changed nor removed")]
    NotAFile(ProjectPath),
    /// A file was to take the place of a directory that has to stay.
    #[error("the directory `{path}` cannot give way to a file")]
    Directory {
        /// The directory.
        path: ProjectPath,
        /// Why not.
        source: BelowError,
    },
    /// A file and something below it.
    #[error("`{file}` cannot be a file while `{below}` is one")]
    Nested {
        /// The file.
        file: ProjectPath,
        /// What would lie below it.
        below: ProjectPath,
    },
    /// The version control's own directory.
    #[error("`{0}` belongs to the version control system")]
    Reserved(ProjectPath),
    /// The project's file is larger than is kept.
    #[error("`{path}` has more than {limit}")]
    TooLarge {
        /// Which.
        path: ProjectPath,
        /// The limit.
        limit: ByteSize,
    },
    /// A content has another size than was said.
    #[error("the content of `{0}` has another size than its record says")]
    Size(ProjectPath),
    /// The project's file cannot be read.
    #[error("`{path}` cannot be read")]
    Read {
        /// Which.
        path: ProjectPath,
        /// Why not.
        source: io::Error,
    },
    /// A layer for sandboxes cannot be made.
    #[error("the layer `{}` cannot be made", path.display())]
    Layer {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A step does not follow the last one, or other changes came between.
    #[error("step {0} was not made of the present state of the session's files")]
    Stale(u64),
    /// No such step.
    #[error("there is no step {0} to go back to")]
    Unknown(u64),
}

impl Staging {
    /// The changes of a session that has none yet. `dir` is the session's own directory; whatever layers an
    /// earlier run left there are taken away.
    pub fn open(dir: &Path, tree: Arc<Tree>) -> Result<Self, StagingError> {
        Self::restore(dir, tree, [])
    }

    /// The changes of a session after these steps, which are those of the present cycle that were not
    /// taken back, in their order.
    pub fn restore(
        dir: &Path,
        tree: Arc<Tree>,
        steps: impl IntoIterator<Item = Step>,
    ) -> Result<Self, StagingError> {
        let blobs = Arc::new(Blobs::open(&dir.join("blobs"))?);
        let top = dir.join("layer");
        let failed = |source| StagingError::Layer { path: top.clone(), source };
        layer::remove(&top).map_err(failed)?;
        layer::remove(&dir.join(SCRATCH)).map_err(failed)?;
        // Made as private as what holds the contents.
        Blobs::open(&top)?;
        let mut state = State::default();
        for step in steps {
            state.add(step)?;
        }
        let files = StagedFiles(Arc::new(state.files));
        let layer = Layer::make(&top, files.clone(), None, &tree, &blobs)?;
        Ok(Self {
            dir: dir.to_owned(),
            tree,
            blobs,
            files,
            bases: state.bases,
            layer: Arc::new(layer),
            last: state.steps.last().map_or(0, |step| step.number),
            begun: 0,
            steps: state.steps,
        })
    }

    /// Numbers go on after this one, which an earlier cycle of the session reached.
    pub fn continue_after(&mut self, number: u64) {
        self.last = self.last.max(number);
        if self.steps.is_empty() {
            self.begun = self.last;
        }
    }

    /// The contents of the session.
    pub fn blobs(&self) -> &Arc<Blobs> {
        &self.blobs
    }

    /// The project.
    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// The session's own directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The project as the session sees it now.
    pub fn view(&self) -> View {
        View::new(Arc::clone(&self.tree), Arc::clone(&self.blobs), self.files.clone())
    }

    /// Everything that is staged.
    pub fn files(&self) -> StagedFiles {
        self.files.clone()
    }

    /// The same as a directory to be laid over the project. Whoever runs a sandbox on it holds it until
    /// the sandbox is gone.
    pub fn layer(&self) -> Arc<Layer> {
        Arc::clone(&self.layer)
    }

    /// The steps of this cycle that were not taken back.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What the project had at a staged path.
    pub fn base(&self, path: &ProjectPath) -> Option<Base> {
        self.bases.get(path).copied()
    }

    /// The step that what a job produced would be; nothing if the session sees it all already.
    pub fn prepare(
        &self,
        origin: &str,
        produced: &[Produced],
    ) -> Result<Option<Step>, StagingError> {
        let changes = prepare::changes(self, produced)?;
        if changes.is_empty() {
            return Ok(None);
        }
        let number = self.last.saturating_add(1);
        Ok(Some(Step { number, origin: origin.to_owned(), changes }))
    }

    /// Makes a step that is in the ledger part of what the session sees. On an error, nothing is changed.
    pub fn promote(&mut self, step: Step) -> Result<(), StagingError> {
        if step.number <= self.last {
            return Err(StagingError::Stale(step.number));
        }
        let mut state = self.state();
        state.add(step)?;
        let last = state.steps.last().map_or(&[][..], |step| &step.changes);
        let one = if let [one] = last { Some(one.clone()) } else { None };
        self.turn_into(state, one.as_ref())?;
        self.last = self.steps.last().map_or(self.last, |step| step.number);
        Ok(())
    }

    /// Goes back to what the session saw after this step; 0 is before the first.
    pub fn rewind_to(&mut self, number: u64) -> Result<(), StagingError> {
        let known = self.steps.iter().any(|step| step.number == number);
        if !known && number != 0 && number != self.begun {
            return Err(StagingError::Unknown(number));
        }
        let mut state = State::default();
        for step in self.steps.iter().filter(|step| step.number <= number) {
            state.add(step.clone())?;
        }
        self.turn_into(state, None)
    }

    /// Begins a new cycle with nothing staged, because a merge took everything.
    pub fn clear(&mut self) -> Result<(), StagingError> {
        self.turn_into(State::default(), None)?;
        self.begun = self.last;
        Ok(())
    }

    fn state(&self) -> State {
        State {
            steps: self.steps.clone(),
            files: BTreeMap::clone(&self.files.0),
            bases: self.bases.clone(),
        }
    }

    /// Takes another state, which differs by this change alone if it is given.
    fn turn_into(&mut self, state: State, one: Option<&StepChange>) -> Result<(), StagingError> {
        let files = StagedFiles(Arc::new(state.files));
        let alone = Arc::get_mut(&mut self.layer).zip(one);
        let taken =
            alone.is_some_and(|(layer, one)| layer.take(one, &files, &self.tree, &self.blobs));
        if !taken {
            let (top, last) = (self.dir.join("layer"), Some(&*self.layer));
            let layer = Layer::make(&top, files.clone(), last, &self.tree, &self.blobs)?;
            self.layer = Arc::new(layer);
        }
        self.files = files;
        self.bases = state.bases;
        self.steps = state.steps;
        Ok(())
    }
}

/// The fold over steps.
#[derive(Default)]
struct State {
    steps: Vec<Step>,
    files: BTreeMap<ProjectPath, Staged>,
    bases: BTreeMap<ProjectPath, Base>,
}

impl State {
    fn add(&mut self, step: Step) -> Result<(), StagingError> {
        let stale = || StagingError::Stale(step.number);
        if self.steps.last().is_some_and(|last| last.number >= step.number) {
            return Err(stale());
        }
        for change in &step.changes {
            let base = self.bases.get(&change.path);
            let same = base.is_none_or(|base| *base == change.base);
            if self.files.get(&change.path).copied() != change.before || !same {
                return Err(stale());
            }
            match change.after {
                Some(staged) => {
                    self.files.insert(change.path.clone(), staged);
                    self.bases.insert(change.path.clone(), change.base);
                }
                None => {
                    self.files.remove(&change.path);
                    self.bases.remove(&change.path);
                }
            }
        }
        self.steps.push(step);
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests play the user, who writes files and runs git")]
pub(crate) mod tests;
