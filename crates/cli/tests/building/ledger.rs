//! Builds on a real shelf: a kernel's ledger says what was built and what may follow.

use std::fs;
use std::sync::Arc;

use fluffy_base::{Digest, ProjectPath};
use fluffy_forge::build::{
    BringError, BuildError, Builder, Findings, Shelved, Shelving as _, bring,
};
use fluffy_forge::{
    ArtifactKind, BuildEnd, Gate, GateResult, Sealed, Shelf, ShelfOptions, SkillEntry, SkillName,
    Standing,
};
use fluffy_kernel::{
    Kernel, KernelConfig, KeyName, Layout, PolicyFile, Registry, SigningKey, Tree,
};

use crate::scene::{HONEST, SKILL, Scene, TEST, failure, script_builder};
use crate::shelf::proposal;

/// A scene with a kernel and its shelf.
struct Stage {
    scene: Scene,
    kernel: Kernel,
    shelf: Shelf,
    name: SkillName,
}

impl Stage {
    fn new() -> Self {
        let scene = Scene::new();
        let key = || SigningKey::from_seed(KeyName::LEDGER, &[7; 32]);
        let layout = || Layout::new(scene.at("ledger"), scene.at("checkpoint"));
        let policy =
            "version: 1\njurisdiction:\n  allowed_actors: [alice]\n  allowed_tools: ['*']\n";
        let policy = PolicyFile::parse("policy.yaml", policy).unwrap();
        let registry = Registry::with_builtins().unwrap();
        let kernel = Kernel::boot(KernelConfig::new(policy, registry, layout(), key())).unwrap();
        let options = ShelfOptions {
            layout: layout(),
            key: key().verifying_key().clone(),
            dir: scene.at("forge"),
            project: scene.at("project"),
            base: Digest::of(b"base"),
        };
        let shelf = Shelf::open(options).unwrap();
        let name = SkillName::parse("write_note").unwrap();
        shelf.propose(&kernel, proposal(&name)).unwrap();
        Self { scene, kernel, shelf, name }
    }

    fn shelved(&self) -> Shelved<'_> {
        Shelved { shelf: &self.shelf, journal: &self.kernel }
    }

    fn build(
        &self,
        script: &str,
        findings: Option<&Findings>,
    ) -> Result<fluffy_forge::build::Built, BuildError> {
        let builder = Builder::Program(script_builder(script));
        self.scene.build_on(&self.shelved(), &self.kernel, &builder, findings)
    }

    fn standing(&self) -> Standing {
        self.shelf.skill(&self.name).unwrap().standing
    }

    fn record(&self, entry: &SkillEntry) {
        self.shelf.record(&self.kernel, entry).unwrap();
    }

    fn verify(&self, build: &fluffy_forge::build::Built) {
        let BuildEnd::Built { files } = &build.end else { panic!("{build:?}") };
        let gates = Gate::ALL.map(|gate| GateResult {
            gate,
            passed: true,
            summary: "fine".to_owned(),
            findings: Vec::new(),
        });
        self.record(&SkillEntry::Verified {
            name: self.name.clone(),
            build: build.build.clone(),
            verification: "v1".to_owned(),
            gates: gates.to_vec(),
            sealed: Sealed { files: files.clone(), base: Digest::of(b"base") },
            report: Digest::of(b"report"),
        });
    }

    fn bring(&self) -> Result<Vec<ProjectPath>, BringError> {
        let tree = Arc::new(Tree::open(&self.scene.at("project")).unwrap());
        let skill = self.shelf.skill(&self.name).unwrap();
        bring(&self.shelved(), &skill, &tree, &self.scene.at("forge/copy-back"))
    }
}

#[test]
fn for_9_only_what_was_verified_reaches_the_project_and_then_it_is_not_built_again() {
    let stage = Stage::new();
    let built = stage.build(HONEST, None).unwrap();
    assert_eq!((failure(&built), stage.standing()), (None, Standing::Built));
    assert!(matches!(stage.bring(), Err(BringError::Unverified(_))));
    let again = stage.build(HONEST, None).unwrap();
    assert_eq!((again.number, stage.standing()), (2, Standing::Built));
    stage.verify(&again);
    let brought: Vec<_> = stage.bring().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(brought, [TEST, SKILL]);
    let at = stage.scene.at("project").join(SKILL);
    assert_eq!(fs::read_to_string(&at).unwrap(), "skill\n");
    assert!(stage.bring().unwrap().is_empty());
    let error = stage.build(HONEST, None).unwrap_err().to_string();
    assert!(error.contains("VERIFIED") && error.contains("revoke"), "{error}");
}

#[test]
fn for_9_after_a_failure_that_asks_for_a_person_nothing_is_built_before_one_agreed() {
    let stage = Stage::new();
    let first = stage.build("exit 1", None).unwrap();
    assert_eq!(stage.standing(), Standing::Proposed);
    let note = stage.shelved().keep(ArtifactKind::ResearchNote, b"note").unwrap();
    stage.record(&SkillEntry::Researched {
        name: stage.name.clone(),
        build: first.build.clone(),
        failure: "BUILD_ERROR".to_owned(),
        triggers: vec!["ambiguous".to_owned()],
        note,
    });
    let error = stage.build(HONEST, None).unwrap_err().to_string();
    assert!(error.contains("a person must agree"), "{error}");
    stage.record(&SkillEntry::RetryApproved {
        name: stage.name.clone(),
        build: first.build.clone(),
        by: "ada".to_owned(),
    });
    let findings = Findings {
        failure: "BUILD_ERROR".to_owned(),
        analysis: "it exited with code 1".to_owned(),
        ..Findings::default()
    };
    let second = stage.build(&format!("cat; {HONEST}"), Some(&findings)).unwrap();
    assert_eq!((failure(&second), second.number), (None, 2));
    let log = String::from_utf8(stage.shelved().artifact(&second.log).unwrap()).unwrap();
    assert!(log.contains("it exited with code 1"), "{log}");
    let skill = stage.shelf.skill(&stage.name).unwrap();
    let parent = skill.last_build().unwrap().attempt.parent.clone();
    assert_eq!(parent, Some(first.build));
}

#[test]
fn a_build_that_never_ended_does_not_stand_in_the_way_of_the_next() {
    let stage = Stage::new();
    let next = stage.shelved().next(&stage.name).unwrap();
    stage.record(&SkillEntry::BuildStarted {
        name: stage.name.clone(),
        attempt: fluffy_forge::Attempt {
            build: "killed".to_owned(),
            number: next.number,
            parent: None,
            packet: Digest::of(b"packet"),
            builder: "claude".to_owned(),
        },
    });
    let built = stage.build(HONEST, None).unwrap();
    assert_eq!((failure(&built), built.number, stage.standing()), (None, 2, Standing::Built));
}
