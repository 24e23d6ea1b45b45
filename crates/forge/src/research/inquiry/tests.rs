//! Research on a real ledger, with a real kernel and real files.

use std::sync::Arc;

use fluffy_base::{KernelId, SystemIds, VirtualClock};
use fluffy_kernel::{
    Kernel, KernelConfig, KeyName, Layout, PolicyFile, Registry, RetentionOptions, SessionStart,
    SigningKey,
};
use fluffy_testkit::Project;

use super::*;
use crate::research::samples::{PACKET, proposal};
use crate::{
    Attempt, Finding, Gate, GatewayError, Illegal, Pinned, Sealed, ShelfOptions, Standing,
};

/// A project with a kernel and a shelf.
struct Scene {
    project: Project,
    kernel: Kernel,
    shelf: Shelf,
}

fn name() -> SkillName {
    proposal().name
}

fn key() -> SigningKey {
    SigningKey::from_seed(KeyName::LEDGER, &[7; 32])
}

fn layout(project: &Project) -> Layout {
    Layout::new(project.state().join("ledger"), project.state().join("checkpoint"))
}

fn open(project: &Project) -> Shelf {
    let options = ShelfOptions {
        layout: layout(project),
        key: key().verifying_key().clone(),
        dir: project.state().join("forge"),
        project: project.root(),
        base: Digest::of(b"the base"),
    };
    Shelf::open(options).unwrap()
}

impl Scene {
    fn new() -> Self {
        let project = Project::new().unwrap();
        let policy =
            "version: 1\njurisdiction:\n  allowed_actors: [alice]\n  allowed_tools: ['*']\n";
        let policy = PolicyFile::parse("policy.yaml", policy).unwrap();
        let registry = Registry::with_builtins().unwrap();
        let mut config = KernelConfig::new(policy, registry, layout(&project), key());
        config.clock = Arc::new(VirtualClock::new(1_700_000_000_000, 1));
        config.ids = Arc::new(SystemIds);
        config.kernel_id = KernelId::named("kernel-test");
        config.retention = RetentionOptions::default();
        config.session = SessionStart::New;
        let kernel = Kernel::boot(config).unwrap();
        let shelf = open(&project);
        shelf.propose(&kernel, proposal()).unwrap();
        Self { project, kernel, shelf }
    }

    fn record(&self, entry: &SkillEntry) -> Result<Appended, ShelfError> {
        self.shelf.record(&self.kernel, entry)
    }

    fn start(&self, number: u32) -> Result<Appended, ShelfError> {
        let id = |number: u32| format!("build-{number}");
        let packet = self.shelf.artifacts().put(ArtifactKind::BuildPacket, PACKET.as_bytes());
        let attempt = Attempt {
            build: id(number),
            number,
            parent: number.checked_sub(1).filter(|number| *number > 0).map(id),
            packet: packet.unwrap(),
            builder: "claude".to_owned(),
        };
        self.record(&SkillEntry::BuildStarted { name: name(), attempt })
    }

    fn end(&self, number: u32, end: BuildEnd, log: &str) {
        let log = self.shelf.artifacts().put(ArtifactKind::BuildLog, log.as_bytes()).unwrap();
        let build = format!("build-{number}");
        self.record(&SkillEntry::BuildEnded { name: name(), build, end, log }).unwrap();
    }

    /// An attempt whose build fails.
    fn fail(&self, number: u32, kind: &str, why: &str, log: &str) {
        self.start(number).unwrap();
        let end = BuildEnd::Failed { kind: kind.to_owned(), why: why.to_owned() };
        self.end(number, end, log);
    }

    /// An attempt that is built and fails these gates.
    fn fail_gates(&self, number: u32, failing: &[Gate]) {
        self.start(number).unwrap();
        let pinned = |path| Pinned { path, sha256: Digest::of(b"x") };
        let mut files =
            vec![pinned(name().skill_path().unwrap()), pinned(name().test_path().unwrap())];
        files.sort_by(|a, b| a.path.cmp(&b.path));
        self.end(number, BuildEnd::Built { files: files.clone() }, "All checks passed!\n");
        let result = |gate| {
            let finding = Finding {
                file: name().skill_path().unwrap(),
                line: Some(3),
                rule: "rule".to_owned(),
                message: "wrong".to_owned(),
            };
            let passed = !failing.contains(&gate);
            let findings = if passed { vec![] } else { vec![finding] };
            GateResult { gate, passed, summary: "told".to_owned(), findings }
        };
        self.record(&SkillEntry::Verified {
            name: name(),
            build: format!("build-{number}"),
            verification: format!("verification-{number}"),
            gates: Gate::ALL.into_iter().map(result).collect(),
            sealed: Sealed { files, base: Digest::of(b"the base") },
            report: Digest::of(b"report"),
        })
        .unwrap();
    }

    fn research(&self, advisor: Option<&dyn Gateway>) -> Result<Inquiry, ResearchError> {
        let name = name();
        let order = Inquire { name: &name, build: None, hint: Some("mind it"), advisor };
        research(&order, &self.shelf, &self.kernel)
    }
}

/// A model that says one thing.
struct Says(String);

impl Gateway for Says {
    fn generate(&self, _: &str) -> Result<String, GatewayError> {
        Ok(self.0.clone())
    }

    fn embed(&self, _: &[String]) -> Result<Vec<Vec<f32>>, GatewayError> {
        Err(GatewayError::Absent)
    }
}

#[test]
fn for_8_a_failed_build_is_looked_into_and_the_next_attempt_is_told() {
    let scene = Scene::new();
    scene.fail(
        1,
        "GATE_VIOLATION",
        "`policy.yaml` was written, and is no file of the skill",
        "x\n",
    );
    let before = findings(&name(), &scene.shelf).unwrap().unwrap();
    assert_eq!(before.failure, "GATE_VIOLATION");
    assert!(before.analysis.contains("| path: policy.yaml"), "{}", before.analysis);
    let found = scene.research(None).unwrap();
    assert_eq!((found.failure, found.told), (FailureKind::GateViolation, Told::Build));
    assert_eq!(
        (found.facts.paths.as_slice(), found.failed_in_a_row),
        (&["policy.yaml".to_owned()][..], 1)
    );
    assert!(found.triggers.is_empty());
    // The note is kept, the entry names it, and the next packet gets it: also after everything was opened again.
    let shelf = open(&scene.project);
    let told = findings(&name(), &shelf).unwrap().unwrap();
    assert_eq!(told.note.as_deref(), Some(found.text.as_str()));
    let skill = shelf.skill(&name()).unwrap();
    let kept = &skill.last_build().unwrap().research[0];
    assert_eq!((kept.failure.as_str(), kept.note), ("GATE_VIOLATION", found.note));
    assert!(found.text.contains("| mind it\n"));
    // Nothing demands a person: the next attempt may begin.
    scene.start(2).unwrap();
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(
        (&json["failure"], &json["advice"]),
        (&"GATE_VIOLATION".into(), &"not_asked".into())
    );
}

#[test]
fn for_8_every_failure_of_a_build_or_a_gate_is_found_with_its_kind() {
    for kind in FailureKind::ALL {
        let scene = Scene::new();
        scene.fail(1, kind.name(), "for some reason", "Found 1 error.\n");
        assert_eq!(scene.research(None).unwrap().failure, kind);
    }
    for (failing, kind) in [
        (Gate::Lint, FailureKind::VerifyLint),
        (Gate::Types, FailureKind::VerifyLint),
        (Gate::Tests, FailureKind::VerifyTest),
        (Gate::Policy, FailureKind::VerifyPolicy),
        (Gate::Invariants, FailureKind::VerifyInvariant),
    ] {
        let scene = Scene::new();
        scene.fail_gates(1, &[failing]);
        let found = scene.research(None).unwrap();
        assert_eq!((found.failure, found.told), (kind, Told::Gates));
        assert!(found.text.contains(".fluffy/skills/write_note.py"), "{}", found.text);
    }
}

#[test]
fn for_8_a_trigger_holds_the_next_attempt_back_until_a_person_agrees() {
    let scene = Scene::new();
    scene.fail_gates(1, &[Gate::Policy]);
    let found = scene.research(None).unwrap();
    assert_eq!(found.triggers, [Trigger::SecurityClass]);
    let refused = scene.start(2).unwrap_err();
    assert!(matches!(refused, ShelfError::Illegal(Illegal::Unapproved(_))), "{refused}");
    // Research without a trigger does not undo it.
    scene.research(None).unwrap();
    scene.start(2).unwrap_err();
    approve_retry(&name(), "ada", &scene.shelf, &scene.kernel).unwrap();
    scene.start(2).unwrap();
    assert_eq!(scene.shelf.skill(&name()).unwrap().standing, Standing::Proposed);
}

#[test]
fn for_8_the_third_failure_in_a_row_demands_a_person() {
    let scene = Scene::new();
    scene.fail(1, "TIMEOUT", "the builder was ended after 10m", "");
    assert!(scene.research(None).unwrap().triggers.is_empty());
    scene.fail_gates(2, &[Gate::Lint]);
    assert!(scene.research(None).unwrap().triggers.is_empty());
    // One that was interrupted counts, and is not looked into.
    scene.start(3).unwrap();
    let error = scene.research(None).unwrap_err();
    assert!(matches!(error, ResearchError::NoEnd(_)), "{error}");
    assert!(findings(&name(), &scene.shelf).unwrap().is_none());
    let end = BuildEnd::Failed { kind: "TIMEOUT".to_owned(), why: "10m".to_owned() };
    scene.end(3, end, "");
    let found = scene.research(None).unwrap();
    assert_eq!((found.failed_in_a_row, found.triggers), (3, vec![Trigger::RepeatedFailure]));
    scene.start(4).unwrap_err();
}

#[test]
fn for_8_advice_is_text_in_the_note_and_changes_nothing_else() {
    let scene = Scene::new();
    scene.fail_gates(1, &[Gate::Lint]);
    let better = PACKET.replace("- keep functions short", "- keep functions short and typed");
    let found = scene.research(Some(&Says(better.clone()))).unwrap();
    assert!(found.triggers.is_empty());
    assert_eq!(found.advice.packet(PACKET), better);
    assert!(found.text.contains("| - keep functions short and typed\n"), "{}", found.text);
    let wider = PACKET.replace("must not use the network", "may use the network");
    let found = scene.research(Some(&Says(wider))).unwrap();
    assert_eq!(found.triggers, [Trigger::PermissionWidening]);
    assert!(!found.text.contains("may use the network"), "{}", found.text);
    let found = scene.research(Some(&())).unwrap();
    assert_eq!(found.triggers, [Trigger::Ambiguous]);
    assert_eq!(found.advice.packet(PACKET), PACKET);
    assert_eq!(scene.shelf.skill(&name()).unwrap().proposal.spec, proposal());
    scene.start(2).unwrap_err();
}

#[test]
fn what_did_not_fail_or_is_not_there_is_not_looked_into() {
    let scene = Scene::new();
    assert!(matches!(scene.research(None), Err(ResearchError::NeverBuilt(_))));
    scene.fail_gates(1, &[]);
    assert!(matches!(scene.research(None), Err(ResearchError::NotFailed(_))));
    assert!(findings(&name(), &scene.shelf).unwrap().is_none());
    let scene = Scene::new();
    scene.fail(1, "TIMEOUT", "10m", "");
    let (name, hint) = (name(), "x".repeat(MAX_HINT + 1));
    let order = Inquire { name: &name, build: Some("build-9"), hint: None, advisor: None };
    let other = research(&order, &scene.shelf, &scene.kernel);
    assert!(matches!(other, Err(ResearchError::OtherBuild { .. })));
    let order = Inquire { hint: Some(&hint), build: Some("build-1"), ..order };
    let long = research(&order, &scene.shelf, &scene.kernel);
    assert!(matches!(long, Err(ResearchError::LongHint)));
    assert_eq!(skill_of_build("build-1", &scene.shelf).unwrap(), name);
    assert!(matches!(skill_of_build("build-2", &scene.shelf), Err(ResearchError::NoBuild(_))));
}

#[test]
fn evidence_that_was_changed_behind_the_ledgers_back_is_refused() {
    let scene = Scene::new();
    scene.fail(1, "TIMEOUT", "10m", "the log");
    let log =
        scene.project.state().join("forge/artifacts").join(Digest::of(b"the log").to_string());
    #[expect(clippy::disallowed_methods, reason = "a test changes what is kept")]
    std::fs::remove_file(&log).unwrap();
    assert!(matches!(scene.research(None), Err(ResearchError::Artifact(_))));
}
