//! Skills that come with the program, brought to trust in one guided step.

use serde_json::json;

use super::lab::{Forge, SKILL, SKILL_FILE};
use crate::program::typing;

#[test]
fn for_14_a_shipped_skill_is_installed_if_a_person_agrees_and_runs_at_once() {
    let forge = Forge::new();
    let listed = forge.done(&["list", "--shipped", "--json"]).json_lines();
    assert_eq!(listed.len(), 6);
    assert!(listed.iter().all(|skill| skill["standing"].is_null()), "{listed:?}");
    let answer = forge.agreeing(&["skill", "install", "write_note", "--json"]);
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    assert!(answer.err.contains("class: FILE_WRITE"), "what is trusted is shown: {}", answer.err);
    let installed = &answer.json_lines()[0];
    assert_eq!(installed["standing"], "TRUSTED", "{installed:#}");
    let steps = installed["steps"].as_array().unwrap().iter();
    let steps: Vec<_> = steps.map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["proposed", "built", "verified", "promoted"]);
    let history = forge.done(&["history", "write_note", "--json"]).json_lines();
    let kinds: Vec<_> = history.iter().map(|past| past["entry"]["kind"].clone()).collect();
    assert_eq!(kinds, ["proposed", "build_started", "build_ended", "verified", "promoted"]);
    let input = r##"{"title":"Bread","text":"Flour."}"##;
    let (ran, code) = forge.json(&["run", "write_note", "--input", input]);
    assert_eq!((&ran["output"]["note"], code), (&json!("bread.md"), 0), "{ran:#}");
    let again = forge.done(&["install", "write_note"]);
    assert!(again.out.contains("write_note is trusted already"), "{}", again.out);
    let shown = forge.done(&["list", "--shipped"]).out;
    let line = shown.lines().find(|line| line.starts_with("write_note")).unwrap();
    assert!(line.contains("TRUSTED"), "{shown}");
    assert_eq!(forge.user.run(&["audit", "verify"]).code, 0);
}

#[test]
fn for_14_without_a_persons_word_an_installed_skill_stays_verified_and_goes_on_from_there() {
    let forge = Forge::new();
    let refused = typing(forge.command(&["skill", "install", "summarize_note"]), "n\n");
    assert_eq!(refused.code, 3, "{}{}", refused.out, refused.err);
    let next = "next: fluffy skill promote summarize_note";
    assert!(refused.out.contains(next), "{}", refused.out);
    let standing = || forge.json(&["show", "summarize_note"]).0["standing"].clone();
    assert_eq!(standing(), "VERIFIED");
    let alone = forge.skill(&["install", "summarize_note", "--json"]);
    assert_eq!(alone.code, 3, "no terminal, no trust: {}{}", alone.out, alone.err);
    assert_eq!(alone.json_lines()[0]["stopped"]["code"], 3);
    let agreed = forge.agreeing(&["skill", "install", "summarize_note", "--json"]);
    let installed = &agreed.json_lines()[0];
    assert_eq!(installed["steps"].as_array().unwrap().len(), 1, "{installed:#}");
    assert_eq!(standing(), "TRUSTED");
    forge.done(&["revoke", "summarize_note"]);
    let agreed = forge.agreeing(&["skill", "install", "summarize_note"]);
    assert_eq!(agreed.code, 0, "{}{}", agreed.out, agreed.err);
    assert_eq!(standing(), "TRUSTED");
}

#[test]
fn slow_for_14_all_six_are_installed_with_one_command_and_six_answers() {
    let forge = Forge::new();
    let command = forge.command(&["skill", "install", "--all", "--json"]);
    let answer = typing(command, "y\ny\nn\ny\ny\ny\n");
    assert_eq!(answer.code, 3, "one was refused: {}{}", answer.out, answer.err);
    let standings: Vec<_> = answer.json_lines().iter().map(|it| it["standing"].clone()).collect();
    assert_eq!(
        standings,
        ["TRUSTED", "TRUSTED", "VERIFIED", "TRUSTED", "TRUSTED", "TRUSTED"],
        "the others go on"
    );
    assert_eq!(forge.done(&["list", "--json"]).json_lines().len(), 6);
}

#[test]
fn what_cannot_be_installed_is_said_before_anything_is_begun() {
    let forge = Forge::new();
    let unknown = forge.skill(&["install", "write_novel"]);
    assert_eq!(unknown.code, 2, "{}", unknown.err);
    for words in ["no skill `write_novel` comes with fluffy", "write_note", "list --shipped"] {
        assert!(unknown.err.contains(words), "{}", unknown.err);
    }
    assert_eq!(forge.skill(&["install"]).code, 2);
    assert_eq!(forge.skill(&["install", "--all", "write_note"]).code, 2);
    assert_eq!(forge.skill(&["install", "../x"]).code, 2);
    assert_eq!(forge.done(&["list", "--json"]).json_lines().len(), 0);
    // A skill of the same name that the project has of its own is left alone.
    forge.verified();
    let taken = forge.skill(&["install", "write_note"]);
    assert_eq!(taken.code, 2, "{}{}", taken.out, taken.err);
    assert!(taken.err.contains("has a skill `write_note` of its own"), "{}", taken.err);
    assert_eq!(forge.standing(), "VERIFIED");
    assert_eq!(forge.user.read(SKILL_FILE), SKILL);
}

#[test]
fn without_the_tools_of_the_gates_nothing_is_installed_or_even_proposed() {
    let forge = Forge::without_tools();
    let answer = forge.skill(&["install", "write_note"]);
    assert_eq!(answer.code, 2, "{}{}", answer.out, answer.err);
    assert!(answer.err.contains("fluffy skill doctor --install"), "{}", answer.err);
    assert_eq!(forge.skill(&["show", "write_note"]).code, 2);
}
