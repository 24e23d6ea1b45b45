//! The failure canon: a real defect, what is made of it, and a second attempt that is trusted.

use fluffy_base::Span;
use fluffy_forge::build::{BuildError, Builder, Built, Next, Shelved, Shelving, ShelvingError};
use fluffy_forge::{
    ArtifactKind, BuildEnd, FailureKind, Gate, Inquiry, SkillEntry, SkillName, Standing, Told,
    Trigger, approve_retry,
};
use serde_json::json;

use crate::scene::{Scene, program, transcript};
use crate::subjects::{SKILL, TESTS, files, proposal, script};

const TIME: Span = Span::from_ms(60_000);

/// What the first attempt is, what is said of it, and what stands in the note.
struct Case<'a> {
    failure: FailureKind,
    told: Told,
    triggers: &'a [Trigger],
    /// Words that the note has, and with it the next packet.
    noted: &'a [&'a str],
}

/// A skill whose first attempt a program makes.
fn built_badly(script: &str, time: Span, case: &Case<'_>) -> Inquiry {
    let scene = Scene::new();
    let name = scene.propose(proposal());
    let first = scene.build(&name, &program(script, time)).unwrap();
    let BuildEnd::Failed { kind, .. } = &first.end else { panic!("{first:?}") };
    assert_eq!(kind, case.failure.name());
    assert!(scene.verify(&name).is_err(), "there is nothing to verify");
    tried_again(scene, &name, &first, case)
}

/// A skill whose first attempt these files are, and which these gates do not let through.
fn refused(skill: &str, tests: &str, gates: &[Gate], case: &Case<'_>) -> Inquiry {
    let scene = Scene::new();
    let name = scene.propose(proposal());
    let played = transcript(&[&files(skill, tests)]);
    let first = scene.play(&name, &played).unwrap();
    assert!(matches!(first.end, BuildEnd::Built { .. }), "{first:?}");
    let verified = scene.verify(&name).unwrap();
    assert!(!verified.passed && verified.brought.is_empty());
    let refusing: Vec<_> =
        verified.gates.iter().filter(|it| !it.passed).map(|it| it.gate).collect();
    assert_eq!(refusing, gates, "{:#?}", verified.gates);
    assert_eq!(scene.standing(&name), Standing::Built);
    assert!(scene.shelf.promote(&scene, &name, "ada").is_err());
    tried_again(scene, &name, &first, case)
}

/// From a failed attempt to a trusted skill that runs.
fn tried_again(mut scene: Scene, name: &SkillName, first: &Built, case: &Case<'_>) -> Inquiry {
    assert!(!scene.project(".fluffy/skills/greet.py").exists());
    let inquiry = scene.research(name);
    assert_eq!((inquiry.failure, inquiry.told), (case.failure, case.told));
    assert_eq!((&inquiry.build, inquiry.attempt), (&first.build, 1));
    assert_eq!(inquiry.triggers, case.triggers);
    let note = scene.shelf.artifacts().get(&inquiry.note).unwrap();
    assert_eq!(note, inquiry.text.as_bytes());
    for words in case.noted {
        assert!(inquiry.text.contains(words), "{words}\n{}", inquiry.text);
    }
    let good = program(&script(&files(SKILL, TESTS)), TIME);
    if !case.triggers.is_empty() {
        let before = scene.shelf.history(name).unwrap().len();
        let held = scene.build(name, &good).unwrap_err();
        assert!(matches!(held, BuildError::Shelf(_)), "{held}");
        assert!(held.to_string().contains("person"), "{held}");
        assert_eq!(scene.shelf.history(name).unwrap().len(), before, "nothing was begun");
        approve_retry(name, "ada", &scene.shelf, &scene).unwrap();
    }
    let second = scene.build(name, &good).unwrap();
    assert!(matches!(second.end, BuildEnd::Built { .. }), "{second:?}");
    let skill = scene.shelf.skill(name).unwrap();
    let attempt = &skill.last_build().unwrap().attempt;
    assert_eq!((attempt.number, attempt.parent.as_ref()), (2, Some(&first.build)));
    let packet = scene.shelf.artifacts().get(&attempt.packet).unwrap();
    let packet = String::from_utf8(packet).unwrap();
    for words in case.noted.iter().chain([&case.failure.name()]) {
        assert!(packet.contains(words), "{words}\n{packet}");
    }
    let verified = scene.verify(name).unwrap();
    assert!(verified.passed, "{:#?}", verified.gates);
    assert_eq!(scene.standing(name), Standing::Verified);
    scene.promote(name);
    scene.start();
    assert_eq!(scene.gives("greet", json!({"who": "Ann"})), json!({"text": "Hello, Ann!"}));
    inquiry
}

#[test]
fn for_8_gate_violation_a_file_elsewhere_is_named_and_the_next_attempt_is_trusted() {
    let bad = script(&files(SKILL, TESTS)) + "echo 'changed = 1' >> src/main.py\n";
    let inquiry = built_badly(
        &bad,
        TIME,
        &Case {
            failure: FailureKind::GateViolation,
            told: Told::Build,
            triggers: &[],
            noted: &["src/main.py"],
        },
    );
    assert_eq!(inquiry.facts.paths, ["src/main.py"]);
}

#[test]
fn for_8_timeout_a_builder_that_does_not_end_is_ended_and_the_next_attempt_is_trusted() {
    built_badly(
        "sleep 600",
        Span::from_ms(1_000),
        &Case {
            failure: FailureKind::Timeout,
            told: Told::Build,
            triggers: &[],
            noted: &["in time"],
        },
    );
}

#[test]
fn for_8_build_error_a_builder_that_fails_says_how_and_the_next_attempt_is_trusted() {
    let inquiry = built_badly(
        "echo 'no credit left' >&2; exit 3",
        TIME,
        &Case {
            failure: FailureKind::BuildError,
            told: Told::Build,
            triggers: &[],
            noted: &["code 3"],
        },
    );
    assert_eq!(inquiry.facts.exit_code, Some(3));
}

#[test]
fn for_8_verify_lint_what_ruff_finds_is_named_and_the_next_attempt_is_trusted() {
    let skill = SKILL.replace("from fluffy_skill", "import math\n\nfrom fluffy_skill");
    let case = Case {
        failure: FailureKind::VerifyLint,
        told: Told::Gates,
        triggers: &[],
        noted: &["F401", "math"],
    };
    let inquiry = refused(&skill, TESTS, &[Gate::Lint], &case);
    assert_eq!((inquiry.facts.faults[0].gate, inquiry.facts.faults[0].line), (Gate::Lint, Some(3)));
}

#[test]
fn for_8_verify_lint_what_mypy_finds_is_named_and_the_next_attempt_is_trusted() {
    let skill = SKILL.replace("str(input[\"who\"]).strip()", "input[\"who\"].strip()");
    let case = Case {
        failure: FailureKind::VerifyLint,
        told: Told::Gates,
        triggers: &[],
        noted: &["types", "greet.py"],
    };
    let inquiry = refused(&skill, TESTS, &[Gate::Types], &case);
    assert_eq!(inquiry.facts.faults[0].rule, "attr-defined");
}

#[test]
fn for_8_verify_test_a_test_that_fails_is_named_and_the_next_attempt_is_trusted() {
    let skill = SKILL.replace("Hello, {who}!", "Hello {who}");
    let case = Case {
        failure: FailureKind::VerifyTest,
        told: Told::Gates,
        triggers: &[],
        noted: &["test_somebody_is_greeted_by_name"],
    };
    refused(&skill, TESTS, &[Gate::Tests], &case);
}

#[test]
fn for_8_verify_policy_what_is_forbidden_waits_for_a_person_and_the_next_attempt_is_trusted() {
    let skill =
        SKILL.replace("from fluffy_skill", "import subprocess\n\nfrom fluffy_skill").replace(
            "return {\"text\"",
            "subprocess.run([\"true\"], check=True)\n        return {\"text\"",
        );
    let case = Case {
        failure: FailureKind::VerifyPolicy,
        told: Told::Gates,
        triggers: &[Trigger::SecurityClass],
        noted: &["subprocess", "forbidden_import"],
    };
    // What may not be used is not run either, and stands on what no skill stands on.
    refused(&skill, TESTS, &[Gate::Tests, Gate::Policy, Gate::Invariants], &case);
}

#[test]
fn for_8_verify_invariant_another_class_waits_for_a_person_and_the_next_attempt_is_trusted() {
    let skill = SKILL.replace("READ_ONLY", "FILE_WRITE");
    let case = Case {
        failure: FailureKind::VerifyInvariant,
        told: Told::Gates,
        triggers: &[Trigger::SecurityClass],
        noted: &["side_effect_class"],
    };
    refused(&skill, TESTS, &[Gate::Invariants], &case);
}

/// Another version of this program, which has more kinds of failure.
struct Newer<'a>(Shelved<'a>);

impl Shelving for Newer<'_> {
    fn next(&self, name: &SkillName) -> Result<Next, ShelvingError> {
        self.0.next(name)
    }

    fn keep(&self, kind: ArtifactKind, bytes: &[u8]) -> Result<fluffy_base::Digest, ShelvingError> {
        self.0.keep(kind, bytes)
    }

    fn artifact(&self, digest: &fluffy_base::Digest) -> Result<Vec<u8>, ShelvingError> {
        self.0.artifact(digest)
    }

    fn record(&self, mut entry: SkillEntry) -> Result<(), ShelvingError> {
        if let SkillEntry::BuildEnded { end: BuildEnd::Failed { kind, .. }, .. } = &mut entry {
            *kind = "OUT_OF_CREDIT".to_owned();
        }
        self.0.record(entry)
    }
}

#[test]
fn for_8_unknown_what_nobody_can_name_waits_for_a_person_and_the_next_attempt_is_trusted() {
    let scene = Scene::new();
    let name = scene.propose(proposal());
    let newer = Newer(Shelved { shelf: &scene.shelf, journal: &scene });
    let bad: Builder<'_> = program("exit 7", TIME);
    let first = scene.build_on(&name, &bad, &newer).unwrap();
    let case = Case {
        failure: FailureKind::Unknown,
        told: Told::Build,
        triggers: &[Trigger::Ambiguous],
        noted: &["not known"],
    };
    tried_again(scene, &name, &first, &case);
}

#[test]
fn for_8_three_failures_in_a_row_wait_for_a_person() {
    let scene = Scene::new();
    let name = scene.propose(proposal());
    for number in 1..=3 {
        let built = scene.build(&name, &program("exit 1", TIME)).unwrap();
        assert_eq!(built.number, number);
        let expected: &[Trigger] = if number < 3 { &[] } else { &[Trigger::RepeatedFailure] };
        assert_eq!(scene.research(&name).triggers, expected);
    }
    assert!(scene.build(&name, &program("exit 1", TIME)).is_err());
    approve_retry(&name, "ada", &scene.shelf, &scene).unwrap();
    let built = scene.build(&name, &program(&script(&files(SKILL, TESTS)), TIME)).unwrap();
    assert!(matches!(built.end, BuildEnd::Built { .. }) && built.number == 4, "{built:?}");
}
