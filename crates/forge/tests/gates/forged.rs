//! From a build in the ledger to verified files in the project, and what happens when something is wrong on the way.

use std::path::PathBuf;
use std::sync::Arc;

use fluffy_base::{Span, SystemIds};
use fluffy_forge::build::{BuildOrder, Builder, CopyLimits, ProgramBuilder, Shelved, build};
use fluffy_forge::{
    BuildEnd, Gate, GateResult, Proposal, ScanRules, Shelf, ShelfOptions, SkillEntry, SkillName,
    SourceFile, Standing, VerificationError, Verified, VerifyOrder, base, check, check_invariants,
    scan, verify,
};
use fluffy_kernel::{
    Kernel, KernelConfig, KeyName, Layout, PolicyFile, Registry, SigningKey, Tree,
};
use serde_json::json;

use crate::scene::{SKILL, SKILL_PATH, Scene, TEST_PATH, TESTS, passed, proposal};

/// A scene with a kernel, its shelf, and a skill that is proposed.
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
        let shelf = Shelf::open(ShelfOptions {
            layout: layout(),
            key: key().verifying_key().clone(),
            dir: scene.at("forge"),
            project: scene.at("project"),
            base: base().digest(),
        });
        let shelf = shelf.unwrap();
        let schema = json!({ "type": "object", "additionalProperties": false });
        let spec = Proposal { input: schema.clone(), output: schema, ..proposal() };
        let name = spec.name.clone();
        shelf.propose(&kernel, spec).unwrap();
        Self { scene, kernel, shelf, name }
    }

    fn tree(&self) -> Arc<Tree> {
        Arc::new(Tree::open(&self.scene.at("project")).unwrap())
    }

    /// Has the skill built as these two files.
    fn build(&self, skill: &str, tests: &str) {
        let write = |path: &str, text: &str| format!("cat > {path} <<'END'\n{text}END\n");
        let script = "mkdir -p .fluffy/skills/tests\n".to_owned()
            + &write(SKILL_PATH, skill)
            + &write(TEST_PATH, tests);
        let argv = ["sh", "-c", &script].map(str::to_owned);
        let mut builder = ProgramBuilder::command(&argv).unwrap();
        builder.time = Span::from_ms(120_000);
        let order = BuildOrder {
            name: &self.name,
            builder: &Builder::Program(builder),
            findings: None,
            rules: &[],
            keys: &[],
            path: &["/usr/bin", "/bin"].map(PathBuf::from),
            tree: &self.tree(),
            hidden: &|_| false,
            limits: CopyLimits::default(),
            scratch: &self.scene.at("builds"),
            lab: &self.scene.lab,
            journal: &self.kernel,
            ids: &SystemIds,
        };
        let built = build(&order, &Shelved { shelf: &self.shelf, journal: &self.kernel }).unwrap();
        assert!(matches!(built.end, BuildEnd::Built { .. }), "{built:?}");
    }

    fn verify(&self) -> Result<Verified, VerificationError> {
        verify(&VerifyOrder {
            name: &self.name,
            shelf: &self.shelf,
            journal: &self.kernel,
            policy: &|files, proposal, _| scan(files, &ScanRules::default().for_proposal(proposal)),
            invariants: &check,
            lab: &self.scene.lab,
            tools: &self.scene.tools,
            scratch: &self.scene.scratch(),
            bringing: &self.scene.at("bringing"),
            tree: &self.tree(),
            ids: &SystemIds,
        })
    }

    fn standing(&self) -> Standing {
        self.shelf.skill(&self.name).unwrap().standing
    }

    fn in_project(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.scene.at("project").join(path)).ok()
    }
}

#[test]
fn for_5_what_passed_all_five_gates_is_recorded_and_only_then_in_the_project() {
    let stage = Stage::new();
    stage.build(SKILL, TESTS);
    assert_eq!((stage.standing(), stage.in_project(SKILL_PATH)), (Standing::Built, None));
    let verified = stage.verify().unwrap();
    assert!(verified.passed, "{:#?}", verified.gates);
    let brought: Vec<_> = verified.brought.iter().map(|path| path.as_str()).collect();
    assert_eq!(brought, [TEST_PATH, SKILL_PATH]);
    assert_eq!(stage.in_project(SKILL_PATH).as_deref(), Some(SKILL));
    assert_eq!(stage.in_project(TEST_PATH).as_deref(), Some(TESTS));
    let skill = stage.shelf.skill(&stage.name).unwrap();
    assert_eq!(skill.standing, Standing::Verified);
    let kept = skill.verification().unwrap();
    assert_eq!((&kept.gates, &kept.sealed), (&verified.gates, &verified.sealed));
    stage.shelf.artifacts().get(&kept.report).unwrap();
    // Once more changes nothing, and once it was promoted it is not verified again.
    let again = stage.verify().unwrap();
    assert_eq!((again.verification, again.brought), (verified.verification, Vec::new()));
    stage.shelf.promote(&stage.kernel, &stage.name, "ada").unwrap();
    assert!(matches!(stage.verify(), Err(VerificationError::Unbuilt { .. })));
}

#[test]
fn for_5_what_a_gate_refused_is_recorded_and_nothing_reaches_the_project() {
    let stage = Stage::new();
    stage.build(SKILL, &TESTS.replace("KeyError", "OSError"));
    let verified = stage.verify().unwrap();
    assert!(!verified.passed && verified.brought.is_empty());
    assert_eq!((stage.standing(), stage.in_project(SKILL_PATH)), (Standing::Built, None));
    let past = stage.shelf.history(&stage.name).unwrap();
    let SkillEntry::Verified { gates, .. } = &past.last().unwrap().entry else {
        panic!("{past:?}");
    };
    let said: Vec<_> = gates.iter().map(|result| (result.gate, result.passed)).collect();
    assert_eq!(said, Gate::ALL.map(|gate| (gate, gate != Gate::Tests)));
    // Another build may follow.
    stage.build(SKILL, TESTS);
    assert!(stage.verify().unwrap().passed);
}

#[test]
fn for_5_what_is_forbidden_and_what_was_not_proposed_is_refused_by_the_gate_that_is_there_for_it() {
    let refusing = |verified: &Verified| -> Vec<_> {
        let refuses = verified.gates.iter().filter(|result| !result.passed);
        refuses.map(|result| (result.gate, result.summary.clone())).collect()
    };
    let stage = Stage::new();
    let forbidden = SKILL.replace("import json\n", "import json\nimport subprocess\n").replace(
        "        title = str",
        "        subprocess.run([\"true\"], check=True)\n        title = str",
    );
    stage.build(&forbidden, TESTS);
    let verified = stage.verify().unwrap();
    let refused: Vec<_> = refusing(&verified).into_iter().map(|(gate, _)| gate).collect();
    assert_eq!(refused, [Gate::Tests, Gate::Policy, Gate::Invariants], "{:#?}", verified.gates);
    assert_eq!(verified.gates[2].summary, "not run: policy");
    stage.build(&SKILL.replace("FILE_WRITE", "READ_ONLY"), TESTS);
    let verified = stage.verify().unwrap();
    let refused: Vec<_> = refusing(&verified).into_iter().map(|(gate, _)| gate).collect();
    assert_eq!(refused, [Gate::Invariants], "{:#?}", verified.gates);
    assert_eq!(stage.in_project(SKILL_PATH), None);
}

#[test]
fn lesson_l25_without_a_build_there_is_nothing_to_verify_and_other_bytes_are_refused() {
    let stage = Stage::new();
    assert!(matches!(stage.verify(), Err(VerificationError::Unbuilt { .. })));
    stage.build(SKILL, TESTS);
    let skill = stage.shelf.skill(&stage.name).unwrap();
    let BuildEnd::Built { files } = &skill.last_build().unwrap().ended.as_ref().unwrap().end else {
        panic!("{skill:?}");
    };
    let kept = stage.scene.at("forge/artifacts").join(files[0].sha256.to_string());
    std::fs::write(&kept, "def test_nothing() -> None:\n    pass\n").unwrap();
    assert!(matches!(stage.verify(), Err(VerificationError::Artifact(_))));
    assert_eq!(stage.standing(), Standing::Built);
    assert_eq!(stage.in_project(SKILL_PATH), None);
}

#[test]
fn what_a_person_wrote_in_the_meantime_stays_and_the_files_are_brought_once_it_is_out_of_the_way() {
    let stage = Stage::new();
    stage.build(SKILL, TESTS);
    let mine = stage.scene.at("project").join(SKILL_PATH);
    std::fs::create_dir_all(mine.parent().unwrap()).unwrap();
    std::fs::write(&mine, "mine\n").unwrap();
    assert!(matches!(stage.verify(), Err(VerificationError::NotBrought { .. })));
    assert_eq!(stage.in_project(SKILL_PATH).as_deref(), Some("mine\n"));
    assert_eq!(stage.standing(), Standing::Verified);
    std::fs::remove_file(&mine).unwrap();
    let verified = stage.verify().unwrap();
    assert_eq!(verified.brought.len(), 2);
    assert_eq!(stage.in_project(SKILL_PATH).as_deref(), Some(SKILL));
}

#[test]
fn for_5_the_invariants_are_checked_alone_and_nothing_runs() {
    let stage = Stage::new();
    stage.build(SKILL, TESTS);
    let before = stage.shelf.history(&stage.name).unwrap().len();
    let sees = |files: &[SourceFile], proposal: &Proposal, changed: &[_]| {
        assert_eq!((files.len(), changed.len()), (2, 2));
        assert_eq!(proposal.name.as_str(), "write_note");
        GateResult { summary: "seen".to_owned(), ..passed(Gate::Invariants) }
    };
    let result = check_invariants(&stage.shelf, &stage.kernel, &stage.name, &sees).unwrap();
    assert_eq!(result.summary, "seen");
    assert_eq!(stage.shelf.history(&stage.name).unwrap().len(), before);
}
