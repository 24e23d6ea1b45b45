//! A lab, a directory that errands look at, and what was remembered of their sandboxes.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fluffy_base::{Digest, Span};
use fluffy_kernel::{
    Errand, Errands, Journal, Keeps, Lab, LabError, Left, Limits, Note, ToolError, WorkshopOptions,
};
use fluffy_ledger::{Appended, EventType};
use fluffy_sandbox::{Native, NativeOptions, Template};
use tempfile::TempDir;

/// A directory with `a`, `b` and `d/c`, and a lab beside it.
pub(crate) struct Scene {
    dir: TempDir,
    pub(crate) lab: Lab,
    pub(crate) journal: Remembering,
}

/// Remembers what it is told; nothing, if it is told to refuse.
#[derive(Default)]
pub(crate) struct Remembering {
    pub(crate) notes: RefCell<Vec<EventType>>,
    pub(crate) refuses: bool,
}

impl Journal for Remembering {
    fn record(&self, note: Note) -> Result<Appended, ToolError> {
        if self.refuses {
            return Err(ToolError("the disk is full".to_owned()));
        }
        self.notes.borrow_mut().push(note.event);
        let hash = Digest::of(b"entry");
        Ok(Appended { seq: self.notes.borrow().len() as u64, entry_hash: hash })
    }
}

impl Scene {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("fluffy-lab-").tempdir_in("/var/tmp").unwrap();
        for name in ["files/d", "home", "project"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        for name in ["files/a", "files/b", "files/d/c", "project/secret"] {
            fs::write(dir.path().join(name), format!("{name}\n")).unwrap();
        }
        let program = PathBuf::from(env!("CARGO_BIN_EXE_kernel-tester"));
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
        Self { dir, lab, journal: Remembering::default() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A script that looks at the files as `/work`.
    pub(crate) fn errand(&self, script: &str) -> Errand {
        let mut errand = Errand::new("sh", "/work", vec![self.path("files")]);
        errand = errand.args(["-c", script]);
        errand.limits =
            Limits { duration: Some(Span::from_ms(60_000)), ..Template::CodeExecutor.limits() };
        errand
    }

    pub(crate) fn run(&self, errand: Errand) -> Result<Errands, LabError> {
        self.lab.run(errand, &self.journal)
    }

    /// What a script left that may change its files.
    pub(crate) fn left(&self, script: &str) -> Left {
        let errand = Errand { keeps: Keeps::Overlay, ..self.errand(script) };
        self.run(errand).unwrap().left.unwrap()
    }

    /// What a script that keeps nothing printed.
    pub(crate) fn printed(&self, script: &str) -> String {
        text(&self.run(self.errand(script)).unwrap())
    }
}

pub(crate) fn text(errands: &Errands) -> String {
    String::from_utf8(errands.stdout.bytes.clone()).unwrap()
}

pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
