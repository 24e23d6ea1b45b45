//! The shelf on a real ledger, with a real kernel and real files.
#![expect(clippy::disallowed_methods, reason = "tests make, change and remove files of their own")]

mod folding;
mod lessons;
mod proposals;
mod remembering;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use fluffy_base::{Digest, KernelId, ProjectPath, SystemIds, VirtualClock};
use fluffy_kernel::{
    Kernel, KernelConfig, KeyName, Layout, PolicyFile, Registry, RetentionOptions, SessionStart,
    SigningKey,
};
use fluffy_testkit::Project;
use serde_json::json;

use super::*;
use crate::{Attempt, BuildEnd, Gate, GateResult, Pinned};

/// A day of the ledger's clock.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A project with a kernel, on which shelves are opened.
struct Lab {
    project: Project,
    clock: Arc<VirtualClock>,
}

impl Lab {
    fn new() -> Self {
        let project = Project::new().unwrap();
        Self { project, clock: Arc::new(VirtualClock::new(DAY_MS * 20_000, 1)) }
    }

    fn kernel(&self) -> Kernel {
        self.kernel_with(RetentionOptions::default())
    }

    fn kernel_with(&self, retention: RetentionOptions) -> Kernel {
        let policy =
            "version: 1\njurisdiction:\n  allowed_actors: [alice]\n  allowed_tools: ['*']\n";
        let policy = PolicyFile::parse("policy.yaml", policy).unwrap();
        let registry = Registry::with_builtins().unwrap();
        let mut config = KernelConfig::new(policy, registry, self.layout(), self.signing_key());
        config.clock = Arc::clone(&self.clock) as _;
        config.ids = Arc::new(SystemIds);
        config.kernel_id = KernelId::named("kernel-test");
        config.retention = retention;
        config.session = SessionStart::New;
        Kernel::boot(config).unwrap()
    }

    fn signing_key(&self) -> SigningKey {
        SigningKey::from_seed(KeyName::LEDGER, &[7; 32])
    }

    fn layout(&self) -> Layout {
        Layout::new(self.project.state().join("ledger"), self.project.state().join("checkpoint"))
    }

    fn dir(&self) -> PathBuf {
        self.project.state().join("forge")
    }

    fn options(&self) -> ShelfOptions {
        ShelfOptions {
            layout: self.layout(),
            key: self.signing_key().verifying_key().clone(),
            dir: self.dir(),
            project: self.project.root(),
            base: base(),
        }
    }

    fn shelf(&self) -> Shelf {
        Shelf::open(self.options()).unwrap()
    }

    fn registry(&self) -> PathBuf {
        self.project.root().join(".fluffy/skills/registry.yaml")
    }

    /// Puts a skill's files into the project, as the copy-back does.
    fn write_files(&self, name: &SkillName) {
        let root = self.project.root();
        fs::create_dir_all(root.join(".fluffy/skills/tests")).unwrap();
        fs::write(root.join(name.skill_path().unwrap().as_str()), skill_text(name)).unwrap();
        fs::write(root.join(name.test_path().unwrap().as_str()), test_text(name)).unwrap();
    }

    /// Brings a skill as far as this.
    fn bring(&self, shelf: &Shelf, kernel: &Kernel, name: &str, to: Standing) -> SkillName {
        let name = SkillName::parse(name).unwrap();
        shelf.propose(kernel, spec(name.as_str())).unwrap();
        let entries = [
            (Standing::Built, started(&name, 1)),
            (Standing::Built, built(&name, 1)),
            (Standing::Verified, verified(&name, 1)),
        ];
        for (standing, entry) in entries {
            if standing <= to {
                shelf.record(kernel, &entry).unwrap();
            }
        }
        if to >= Standing::Verified {
            self.write_files(&name);
        }
        if to >= Standing::Trusted {
            shelf.promote(kernel, &name, "ada").unwrap();
        }
        if to >= Standing::Revoked {
            shelf.revoke(kernel, &name, "ada", "not needed any more").unwrap();
        }
        name
    }

    fn sql(&self, sql: &str) {
        let connection = Connection::open(self.dir().join("tables.db")).unwrap();
        connection.execute_batch(sql).unwrap();
    }
}

fn base() -> Digest {
    Digest::of(b"the base")
}

fn name(text: &str) -> SkillName {
    SkillName::parse(text).unwrap()
}

fn path(text: &str) -> ProjectPath {
    ProjectPath::parse(text).unwrap()
}

fn spec(text: &str) -> Proposal {
    Proposal {
        name: name(text),
        description: format!("Does {text} — ü \"well\""),
        input: json!({"type": "object", "properties": {"title": {"type": "string"}}}),
        output: json!({"type": "object", "additionalProperties": false}),
        side_effect: SideEffect::SecretRead,
        reads: vec![path("notes")],
        writes: vec![],
        hosts: vec!["api.example.org:8443".to_owned()],
        secrets: vec!["API_TOKEN".to_owned()],
        model: true,
    }
}

fn skill_text(name: &SkillName) -> String {
    format!("class {}: ...\n", name.class_name())
}

fn test_text(name: &SkillName) -> String {
    format!("def test_{name}(): ...\n")
}

fn files_of(name: &SkillName) -> Vec<Pinned> {
    let pinned =
        |path: ProjectPath, text: String| Pinned { path, sha256: Digest::of(text.as_bytes()) };
    vec![
        pinned(name.test_path().unwrap(), test_text(name)),
        pinned(name.skill_path().unwrap(), skill_text(name)),
    ]
}

fn sealed(name: &SkillName) -> Sealed {
    let mut files = files_of(name);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Sealed { files, base: base() }
}

fn started(name: &SkillName, number: u32) -> SkillEntry {
    let parent = number.checked_sub(1).filter(|number| *number > 0);
    let attempt = Attempt {
        build: format!("{name}-build-{number}"),
        number,
        parent: parent.map(|number| format!("{name}-build-{number}")),
        packet: Digest::of(b"packet"),
        builder: "claude".to_owned(),
    };
    SkillEntry::BuildStarted { name: name.clone(), attempt }
}

fn ended(name: &SkillName, number: u32, end: BuildEnd) -> SkillEntry {
    let build = format!("{name}-build-{number}");
    SkillEntry::BuildEnded { name: name.clone(), build, end, log: Digest::of(b"log") }
}

fn built(name: &SkillName, number: u32) -> SkillEntry {
    ended(name, number, BuildEnd::Built { files: files_of(name) })
}

fn failed(name: &SkillName, number: u32) -> SkillEntry {
    let (kind, why) = ("TIMEOUT".to_owned(), "it took\ntoo long".to_owned());
    ended(name, number, BuildEnd::Failed { kind, why })
}

fn gates(failing: Option<Gate>) -> Vec<GateResult> {
    let result = |gate| GateResult {
        gate,
        passed: Some(gate) != failing,
        summary: "told".to_owned(),
        findings: vec![],
    };
    Gate::ALL.into_iter().map(result).collect()
}

fn verified_with(name: &SkillName, number: u32, gates: Vec<GateResult>) -> SkillEntry {
    SkillEntry::Verified {
        name: name.clone(),
        build: format!("{name}-build-{number}"),
        verification: format!("{name}-verification-{number}"),
        gates,
        sealed: sealed(name),
        report: Digest::of(b"report"),
    }
}

fn verified(name: &SkillName, number: u32) -> SkillEntry {
    verified_with(name, number, gates(None))
}

fn promoted(name: &SkillName, number: u32) -> SkillEntry {
    SkillEntry::Promoted {
        name: name.clone(),
        verification: format!("{name}-verification-{number}"),
        sealed: sealed(name),
        by: "ada".to_owned(),
    }
}

fn ran(name: &SkillName, execution: &str, parent: Option<&str>) -> SkillEntry {
    let (execution, parent) = (execution.to_owned(), parent.map(str::to_owned));
    SkillEntry::Ran { name: name.clone(), execution, parent, record: json!({"ok": true}) }
}
