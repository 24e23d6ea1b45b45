//! What builders of every kind are given, and what is kept of their work.

use fluffy_base::{Digest, Span};
use fluffy_forge::build::{Builder, ProgramBuilder, Transcript, patch_of};
use fluffy_forge::{BuildEnd, SkillEntry};

use crate::scene::{HONEST, SKILL, Scene, TEST, failure, is_violation, names, script_builder};

#[test]
fn for_3_a_builder_gets_the_frozen_packet_and_what_it_writes_is_kept_and_not_in_the_project() {
    let scene = Scene::new();
    let built = scene.script(&format!("sha256sum; pwd; {HONEST}"));
    let BuildEnd::Built { files } = &built.end else { panic!("{:?}", built.end) };
    let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, [TEST, SKILL]);
    assert_eq!(files[1].sha256, Digest::of(b"skill\n"));
    assert!(scene.shelf.artifacts.borrow().contains_key(&files[1].sha256));
    assert_eq!(names(&scene.at("project/.fluffy")), ["policy.yaml"]);
    let entries = scene.shelf.entries.borrow();
    let [SkillEntry::BuildStarted { attempt, .. }, SkillEntry::BuildEnded { log, .. }] =
        &entries[..]
    else {
        panic!("{entries:?}")
    };
    assert_eq!(*log, built.log);
    let text = scene.log(&built);
    assert!(text.contains(&format!("{}  -\n", attempt.packet)), "{text}");
    assert!(text.contains("\n/fluffy-build\n"), "{text}");
    let patch = patch_of(&scene.shelf, &built.log).unwrap();
    assert_eq!(patch.changes.len(), 2);
    assert!(scene.is_swept());
}

#[test]
fn a_second_attempt_names_the_first_as_its_parent() {
    let scene = Scene::new();
    let first = scene.script("exit 3");
    assert_eq!(failure(&first), Some(("BUILD_ERROR", "the builder exited with code 3")));
    let second = scene.script(HONEST);
    assert_eq!((failure(&second), second.number), (None, 2));
    let entries = scene.shelf.entries.borrow();
    let SkillEntry::BuildStarted { attempt, .. } = &entries[2] else { panic!("{entries:?}") };
    assert_eq!(attempt.parent.as_deref(), Some(first.build.as_str()));
}

#[test]
fn files_that_a_builder_leaves_as_they_are_belong_to_the_build() {
    let scene = Scene::new();
    scene.write(SKILL, "old\n");
    scene.write(TEST, "old test\n");
    scene.write(".fluffy/skills/support/settings.py", "shared\n");
    let built = scene.script("echo new > .fluffy/skills/write_note.py");
    let BuildEnd::Built { files } = &built.end else { panic!("{:?}", built.end) };
    let hashes: Vec<_> = files.iter().map(|file| file.sha256).collect();
    assert_eq!(hashes, ["shared\n", "old test\n", "new\n"].map(|text| Digest::of(text.as_bytes())));
    is_violation(&scene.script("true"), &["neither the skill nor its tests were changed"]);
}

#[test]
fn a_transcript_is_judged_as_any_builder_is() {
    let scene = Scene::new();
    let text = format!(
        "{{\"v\":1,\"kind\":\"builder\"}}\n\
         {{\"write\":{{\"path\":\"{SKILL}\",\"content\":\"s\"}}}}\n\
         {{\"write\":{{\"path\":\"../out\",\"content\":\"s\"}}}}\n\
         {{\"attempt\":2}}\n\
         {{\"write\":{{\"path\":\"{SKILL}\",\"content\":\"s\"}}}}\n\
         {{\"write\":{{\"path\":\"{TEST}\",\"content\":\"t\"}}}}\n"
    );
    let transcript = Transcript::parse(&text).unwrap();
    let play = |attempt| {
        let coder = transcript.coder(attempt);
        let name = "transcript".to_owned();
        scene.build(&Builder::Coder { name, coder: &coder }).unwrap()
    };
    is_violation(&play(1), &["`../out` is not taken", "test_write_note.py` was not written"]);
    assert_eq!(failure(&play(2)), None);
    let (kind, why) = play(3).end.failed();
    assert_eq!(kind, "BUILD_ERROR");
    assert!(why.contains("holds 2 attempt(s)"), "{why}");
    assert!(!scene.at("out").exists());
}

#[test]
fn a_program_that_is_not_there_or_has_no_key_is_a_failed_build_in_words() {
    let scene = Scene::new();
    let missing = ProgramBuilder::command(&["no-such-program".to_owned()]).unwrap();
    let built = scene.build(&Builder::Program(missing)).unwrap();
    let (kind, why) = failure(&built).unwrap();
    assert_eq!(kind, "BUILD_ERROR");
    assert!(why.contains("`no-such-program` is not installed"), "{why}");
    let mut keyless = script_builder(HONEST);
    keyless.keys = vec!["OTHER_KEY".to_owned()];
    let built = scene.build(&Builder::Program(keyless)).unwrap();
    assert!(failure(&built).unwrap().1.contains("OTHER_KEY"), "{built:?}");
}

#[test]
fn a_builder_that_takes_too_long_is_ended() {
    let scene = Scene::new();
    let mut slow = script_builder(&format!("{HONEST} while :; do :; done"));
    slow.time = Span::from_ms(1_000);
    let built = scene.build(&Builder::Program(slow)).unwrap();
    assert_eq!(failure(&built).unwrap().0, "TIMEOUT", "{built:?}");
    assert!(scene.is_swept());
}

/// How a build failed.
trait Failed {
    fn failed(&self) -> (String, String);
}

impl Failed for BuildEnd {
    fn failed(&self) -> (String, String) {
        match self {
            Self::Built { .. } => panic!("it was built"),
            Self::Failed { kind, why } => (kind.clone(), why.clone()),
        }
    }
}
