//! A project, a home with a key in it, a lab, and builders that are shell scripts.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fluffy_base::{Digest, Secret, Span, SystemIds};
use fluffy_forge::build::{
    BuildError, BuildOrder, Builder, Built, CopyLimits, Findings, ProgramBuilder, Shelving, build,
};
use fluffy_forge::{BuildEnd, SkillName};
use fluffy_kernel::{Journal, Lab, Note, ToolError, Tree, WorkshopOptions};
use fluffy_ledger::Appended;
use fluffy_sandbox::{Native, NativeOptions};
use tempfile::TempDir;

use crate::shelf::MemoryShelf;

pub(crate) const SKILL: &str = ".fluffy/skills/write_note.py";
pub(crate) const TEST: &str = ".fluffy/skills/tests/test_write_note.py";

/// Writes what a builder has to write.
pub(crate) const HONEST: &str = "mkdir -p .fluffy/skills/tests; \
    echo skill > .fluffy/skills/write_note.py; \
    echo test > .fluffy/skills/tests/test_write_note.py; ";

pub(crate) struct Scene {
    dir: TempDir,
    lab: Lab,
    pub(crate) shelf: MemoryShelf,
    notes: Notes,
}

/// Counts what is told.
#[derive(Default)]
struct Notes(RefCell<u64>);

impl Journal for Notes {
    fn record(&self, _: Note) -> Result<Appended, ToolError> {
        *self.0.borrow_mut() += 1;
        Ok(Appended { seq: *self.0.borrow(), entry_hash: Digest::of(b"entry") })
    }
}

impl Scene {
    pub(crate) fn new() -> Self {
        let dir =
            tempfile::Builder::new().prefix("fluffy-building-").tempdir_in("/var/tmp").unwrap();
        for name in ["project/src", "project/.fluffy", "home"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("home/id_rsa"), "PRIVATE KEY").unwrap();
        fs::write(dir.path().join("project/src/main.py"), "print('main')\n").unwrap();
        fs::write(dir.path().join("project/.fluffy/policy.yaml"), "rules: []\n").unwrap();
        let program = PathBuf::from(env!("CARGO_BIN_EXE_fluffy"));
        let native = Native::open(NativeOptions {
            program: program.clone(),
            state: dir.path().join("state"),
            path: Vec::new(),
            env: Vec::new(),
        });
        let lab = Lab::new(WorkshopOptions {
            runtime: Arc::new(native.unwrap()),
            project: dir.path().join("project"),
            home: Some(dir.path().join("home")),
            shown: Vec::new(),
            program,
        });
        Self { dir, lab, shelf: MemoryShelf::default(), notes: Notes::default() }
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let at = self.at("project").join(name);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, text).unwrap();
    }

    /// Has the skill built by a script, which has a key and no network.
    pub(crate) fn script(&self, script: &str) -> Built {
        self.build(&Builder::Program(script_builder(script))).unwrap()
    }

    pub(crate) fn build(&self, builder: &Builder<'_>) -> Result<Built, BuildError> {
        self.build_on(&self.shelf, &self.notes, builder, None)
    }

    pub(crate) fn build_on(
        &self,
        shelf: &dyn Shelving,
        journal: &dyn Journal,
        builder: &Builder<'_>,
        findings: Option<&Findings>,
    ) -> Result<Built, BuildError> {
        let tree = Arc::new(Tree::open(&self.at("project")).unwrap());
        let path = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
        let order = BuildOrder {
            name: &SkillName::parse("write_note").unwrap(),
            builder,
            findings,
            rules: &[],
            keys: &[("BUILDER_KEY".to_owned(), Secret::new("correct-horse-battery".to_owned()))],
            path: &path,
            tree: &tree,
            hidden: &|_| false,
            limits: CopyLimits::default(),
            scratch: &self.at("builds"),
            lab: &self.lab,
            journal,
            ids: &SystemIds,
        };
        build(&order, shelf)
    }

    pub(crate) fn log(&self, built: &Built) -> String {
        String::from_utf8(self.shelf.artifacts.borrow()[&built.log].clone()).unwrap()
    }

    /// Nothing of a build is left but what is kept.
    pub(crate) fn is_swept(&self) -> bool {
        names(&self.at("builds")) == ["lock"]
    }
}

pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(crate) fn script_builder(script: &str) -> ProgramBuilder {
    let argv = ["sh", "-c", script].map(str::to_owned);
    let mut builder = ProgramBuilder::command(&argv).unwrap();
    builder.keys = vec!["BUILDER_KEY".to_owned()];
    builder.time = Span::from_ms(120_000);
    builder
}

/// The kind of failure and its reason; nothing of a build that succeeded.
pub(crate) fn failure(built: &Built) -> Option<(&str, &str)> {
    match &built.end {
        BuildEnd::Built { .. } => None,
        BuildEnd::Failed { kind, why } => Some((kind, why)),
    }
}

/// Fails unless the build was refused for all of these reasons.
pub(crate) fn is_violation(built: &Built, reasons: &[&str]) {
    let (kind, why) = failure(built).unwrap();
    assert_eq!(kind, "GATE_VIOLATION", "{why}");
    for reason in reasons {
        assert!(why.contains(reason), "{reason}: {why}");
    }
}
