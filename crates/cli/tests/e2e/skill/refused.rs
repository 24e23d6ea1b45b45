//! What is refused, with what, why and fix, and the exit code for it.

use super::lab::{Forge, NAME, SKILL, SKILL_FILE, TEST_FILE, TESTS, spec_of};
use crate::program::Answer;

#[track_caller]
fn explained(answer: &Answer, code: i32, words: &str) {
    assert_eq!(answer.code, code, "{}{}", answer.out, answer.err);
    for part in ["ERROR: ", "Reason: ", "Fix: ", words] {
        assert!(answer.err.contains(part), "`{part}` in {}", answer.err);
    }
}

#[test]
fn lesson_l24_a_tampered_skill_does_not_run_and_the_remedy_is_told() {
    let forge = Forge::trusting();
    assert_eq!(forge.run_it().code, 0);
    forge.user.write(SKILL_FILE, &SKILL.replace("target.name", "\"stolen\""));
    let answer = forge.run_it();
    explained(&answer, 6, "put the file back as it was promoted");
    forge.user.write(SKILL_FILE, SKILL);
    assert_eq!(forge.run_it().code, 0);
    let registry = forge.user.read(".fluffy/skills/registry.yaml");
    forge.user.write(".fluffy/skills/registry.yaml", "version: 1\nskills: {}\n");
    explained(&forge.run_it(), 6, "doctor --rebuild");
    assert_eq!(forge.skill(&["doctor"]).code, 6);
    forge.done(&["doctor", "--rebuild"]);
    assert_eq!(forge.user.read(".fluffy/skills/registry.yaml"), registry);
    assert_eq!(forge.run_it().code, 0);
}

#[test]
fn lesson_l25_nothing_is_promoted_that_was_changed_since_or_never_verified() {
    let forge = Forge::new();
    forge.proposed();
    explained(&forge.agreeing(&["skill", "promote", NAME]), 1, "verify it first");
    explained(&forge.skill(&["verify", NAME]), 1, "fluffy skill build write_note");
    let builder = forge.transcript(&[&[(SKILL_FILE, SKILL), (TEST_FILE, TESTS)]]);
    forge.done(&["build", NAME, "--builder", &builder]);
    forge.done(&["verify", NAME]);
    forge.user.write(SKILL_FILE, "print('mine')\n");
    let answer = forge.agreeing(&["skill", "promote", NAME]);
    assert_eq!(answer.code, 6, "{}{}", answer.out, answer.err);
    assert_eq!(forge.standing(), "VERIFIED");
    explained(&forge.skill(&["build", NAME, "--builder", &builder]), 1, "revoke it first");
}

#[test]
fn lesson_l35_trust_is_a_persons_word_and_no_option_stands_for_it() {
    let forge = Forge::new();
    forge.verified();
    let answer = forge.skill(&["promote", NAME]);
    explained(&answer, 3, "agree at a terminal");
    assert_eq!(forge.standing(), "VERIFIED");
    let refused = crate::program::typing(forge.command(&["skill", "promote", NAME]), "n\n");
    assert_eq!(refused.code, 3);
    let mut command = forge.command(&["skill", "promote", NAME, "--json"]);
    command.env("USER", "somebody-else").env("LOGNAME", "somebody-else");
    let agreed = crate::program::typing(command, "y\n");
    assert_eq!(agreed.code, 0, "{}{}", agreed.out, agreed.err);
    assert!(!agreed.out.contains("somebody-else"), "{}", agreed.out);
}

#[test]
fn wrong_words_are_explained() {
    let forge = Forge::new();
    for name in ["../x", "X", "class", "a b", ""] {
        for command in ["show", "history", "verify", "promote", "run", "check-invariants"] {
            explained(&forge.skill(&[command, name]), 2, "is no name of a skill");
        }
    }
    for command in ["show", "history", "verify", "run", "check-invariants"] {
        explained(&forge.skill(&[command, "unknown"]), 2, "there is no skill `unknown`");
    }
    assert_eq!(forge.skill(&["list"]).out, "");
    assert_eq!(forge.skill(&["log", "--json"]).out, "");
    explained(&forge.skill(&["run", "unknown", "--input", "{"]), 2, "is not JSON");
    let mut spec = spec_of("odd");
    spec["hosts"] = serde_json::json!(["example.org"]);
    let path = forge.user.project.path("odd.json");
    std::fs::write(&path, spec.to_string()).unwrap();
    explained(&forge.skill(&["propose", "--file", path.to_str().unwrap()]), 2, "lists hosts");
    spec["naem"] = "x".into();
    std::fs::write(&path, spec.to_string()).unwrap();
    explained(&forge.skill(&["propose", "--file", path.to_str().unwrap()]), 2, "naem");
    forge.proposed();
    explained(&forge.skill(&["build", NAME, "--builder", "nobody"]), 2, "`claude`, `codex`");
    explained(&forge.skill(&["build", NAME, "--builder", "command"]), 2, "forge.builder_command");
    explained(&forge.skill(&["run", NAME]), 3, "is PROPOSED");
    explained(&forge.skill(&["replay", "run-x"]), 2, "there is no run");
    let other = Forge::new();
    explained(&other.skill(&["show", NAME]), 2, "there is no skill");
}

#[test]
fn without_tools_nothing_is_verified_and_doctor_says_how_to_get_them() {
    let forge = Forge::without_tools();
    let doctor = forge.skill(&["doctor"]);
    assert_eq!(doctor.code, 1);
    assert!(doctor.out.contains("fluffy skill doctor --install"), "{}", doctor.out);
    forge.proposed();
    let builder = forge.transcript(&[&[(SKILL_FILE, SKILL), (TEST_FILE, TESTS)]]);
    forge.done(&["build", NAME, "--builder", &builder]);
    explained(&forge.skill(&["verify", NAME]), 2, "fluffy skill doctor --install");
    assert_eq!(forge.standing(), "BUILT");
}

#[test]
fn an_input_or_output_that_was_not_proposed_is_refused() {
    let forge = Forge::trusting();
    explained(
        &forge.skill(&["run", NAME, "--input", "{\"title\":1}"]),
        2,
        "not of the proposed form",
    );
    let odd = r#"{"title":"one","text":"x","path":"/etc"}"#;
    explained(&forge.skill(&["run", NAME, "--input", odd]), 2, "not of the proposed form");
    // A name that leads out of the folder leads nowhere: what lies beside it in the sandbox is gone with it.
    let out = r#"{"title":"../out","text":"x"}"#;
    let _wherever = forge.skill(&["run", NAME, "--input", out]);
    assert!(!forge.root().join("out.md").exists());
}

#[test]
fn nobody_is_asked_to_trust_what_cannot_be_trusted_now() {
    let forge = Forge::trusting();
    let again = forge.skill(&["promote", NAME]);
    explained(&again, 1, "one that is not trusted already");
    assert!(!again.err.contains("review"), "{}", again.err);
}

#[test]
fn an_input_that_two_readers_could_understand_differently_is_refused() {
    let forge = Forge::trusting();
    for input in [r#"{"title":"a","title":"b","text":"c"}"#, "[1e400]", "{", ""] {
        explained(&forge.skill(&["run", NAME, "--input", input]), 2, "the input is not JSON");
    }
}
