//! The way of a skill, and everything that is told of it.

use serde_json::{Value, json};

use super::lab::{Forge, NAME, SKILL, SKILL_FILE, TEST_FILE, TESTS};

#[test]
fn for_9_a_skill_is_proposed_built_verified_promoted_and_run_and_every_command_speaks_json() {
    let forge = Forge::new();
    let schema = |name: &str| {
        json!({ "type": "object", "properties": { name: { "type": "string" } },
            "required": [name] })
        .to_string()
    };
    let input = json!({ "type": "object", "properties": { "title": { "type": "string" },
        "text": { "type": "string" } }, "required": ["title", "text"] })
    .to_string();
    let (proposed, _) = forge.json(&[
        "propose",
        "--name",
        NAME,
        "--description",
        "Writes a note into the vault.",
        "--side-effect",
        "file_write",
        "--writes",
        "notes",
        "--input-schema",
        &input,
        "--output-schema",
        &schema("written"),
    ]);
    assert_eq!((&proposed["step"], &proposed["name"]), (&json!("proposed"), &json!(NAME)));
    assert_eq!(forge.standing(), "PROPOSED");
    let builder = forge.transcript(&[&[(SKILL_FILE, SKILL), (TEST_FILE, TESTS)]]);
    let (built, _) = forge.json(&["build", NAME, "--builder", &builder]);
    assert_eq!(built["end"]["built"]["files"].as_array().unwrap().len(), 2);
    assert_eq!(forge.standing(), "BUILT");
    assert!(!forge.root().join(SKILL_FILE).exists(), "nothing is in the project before the gates");
    assert!(forge.json(&["check-invariants", NAME]).0["passed"].as_bool().unwrap());
    let (verified, _) = forge.json(&["verify", NAME]);
    assert_eq!(verified["passed"], true, "{verified:#}");
    assert_eq!(forge.user.read(SKILL_FILE), SKILL);
    assert_eq!(forge.standing(), "VERIFIED");
    let promoted = forge.agreeing(&["skill", "promote", NAME, "--json"]);
    let promoted: Value = serde_json::from_str(&promoted.out).unwrap();
    assert_eq!(promoted["step"], "promoted");
    assert_eq!(forge.standing(), "TRUSTED");
    let registry = forge.user.read(".fluffy/skills/registry.yaml");
    assert!(registry.contains("  write_note:\n"), "{registry}");
    runs(&forge);
}

/// Runs it in every way, and looks at what is told of that.
fn runs(forge: &Forge) {
    let given = r#"{"title":"one","text":"hello"}"#;
    let (ran, code) = forge.json(&["run", NAME, "--input", given]);
    assert_eq!((&ran["output"], code), (&json!({ "written": "one.md" }), 0), "{ran:#}");
    assert_eq!(forge.user.read("notes/one.md"), "hello");
    let input = forge.user.project.path("input.json");
    std::fs::write(&input, given).unwrap();
    forge.done(&["run", NAME, "--input", &format!("@{}", input.display())]);
    let execution = ran["execution"].as_str().unwrap();
    let (replayed, code) = forge.json(&["replay", execution]);
    assert_eq!((&replayed["same"], code), (&json!(true), 0));
    let chain = forge.user.project.path("chain.yaml");
    let steps = "steps:\n- skill: write_note\n  input: {title: $input.t, text: two}\n- skill: write_note\n  input: \
                 {title: three, text: $prev.written}\n";
    std::fs::write(&chain, steps).unwrap();
    let (chained, code) =
        forge.json(&["chain", chain.to_str().unwrap(), "--input", r#"{"t":"x"}"#]);
    assert_eq!((chained["steps"].as_array().unwrap().len(), code), (2, 0), "{chained:#}");
    assert_eq!(forge.user.read("notes/three.md"), "x.md");
    let listed = forge.done(&["list", "--json"]).json_lines();
    assert_eq!((listed.len(), &listed[0]["standing"]), (1, &json!("TRUSTED")));
    let log = forge.done(&["log", "--skill", NAME, "--json"]).json_lines();
    assert_eq!(log.len(), 5);
    assert_eq!(log[4]["parent"], log[3]["execution"], "a step of a chain follows the one before");
    let history = forge.done(&["history", NAME, "--json"]).json_lines();
    let kinds: Vec<_> =
        history.iter().map(|past| past["entry"]["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["proposed", "build_started", "build_ended", "verified", "promoted"]);
    let (doctor, code) = forge.json(&["doctor"]);
    assert_eq!((&doctor["ok"], code), (&json!(true), 0), "{doctor:#}");
    for (args, words) in [
        (&["list"][..], NAME),
        (&["show", NAME], "Stands      TRUSTED"),
        (&["history", NAME], "all five gates passed"),
        (&["log"], NAME),
        (&["doctor"], "ok       registry"),
    ] {
        let text = forge.done(args).out;
        assert!(text.contains(words), "{args:?}: {text}");
    }
    let verify = forge.user.run(&["audit", "verify"]);
    assert_eq!(verify.code, 0, "{}{}", verify.out, verify.err);
    let (revoked, _) = forge.json(&["revoke", NAME, "--reason", "enough"]);
    assert_eq!((&revoked["step"], &revoked["why"]), (&json!("revoked"), &json!("enough")));
    let refused = forge.run_it();
    assert_eq!(refused.code, 3, "{}", refused.err);
    assert!(refused.err.contains("is REVOKED"), "{}", refused.err);
}

#[test]
fn for_8_a_failed_attempt_is_looked_into_and_the_next_one_is_told() {
    let forge = Forge::new();
    forge.proposed();
    let wrong = SKILL.replace("return {\"written\": target.name}", "return {\"written\": 1}");
    let builder = forge.transcript(&[
        &[(SKILL_FILE, &wrong), (TEST_FILE, TESTS)],
        &[(SKILL_FILE, SKILL), (TEST_FILE, TESTS)],
    ]);
    forge.done(&["build", NAME, "--builder", &builder]);
    let (verified, code) = forge.json(&["verify", NAME]);
    assert_eq!((&verified["passed"], code), (&json!(false), 1), "a failed verification exits 1");
    assert!(!forge.root().join(SKILL_FILE).exists());
    let (researched, code) = forge.json(&["research", NAME, "--hint", "the name, not a number"]);
    assert_eq!((&researched["failure"], code), (&json!("VERIFY_TEST"), 0), "{researched:#}");
    assert_eq!(researched["triggers"], json!([]));
    let (built, _) = forge.json(&["build", NAME, "--builder", &builder]);
    assert_eq!(built["attempt"], 2);
    forge.done(&["verify", NAME]);
    let (shown, _) = forge.json(&["show", NAME]);
    let parent = &shown["builds"][1]["attempt"]["parent"];
    assert_eq!(parent, &shown["builds"][0]["attempt"]["build"]);
}

#[test]
fn for_8_code_that_is_forbidden_is_tried_again_only_if_a_person_agrees() {
    let forge = Forge::new();
    forge.proposed();
    let wrong = SKILL.replace("from fluffy_skill", "import subprocess\n\nfrom fluffy_skill");
    let builder = forge.transcript(&[
        &[(SKILL_FILE, &wrong), (TEST_FILE, TESTS)],
        &[(SKILL_FILE, SKILL), (TEST_FILE, TESTS)],
    ]);
    forge.done(&["build", NAME, "--builder", &builder]);
    let (verified, code) = forge.json(&["verify", NAME]);
    assert_eq!(code, 1);
    let gates = verified["gates"].as_array().unwrap();
    let policy = gates.iter().find(|gate| gate["gate"] == "policy").unwrap();
    assert_eq!(policy["passed"], false);
    let refused = forge.skill(&["build", NAME, "--builder", &builder, "--yes"]);
    assert_eq!(refused.code, 3, "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("SECURITY_CLASS"), "{}", refused.err);
    let agreed = forge.agreeing(&["skill", "build", NAME, "--builder", &builder]);
    assert_eq!(agreed.code, 0, "{}{}", agreed.out, agreed.err);
    let history = forge.done(&["history", NAME]).out;
    assert!(history.contains("retry_approved"), "{history}");
}

#[test]
fn for_3_any_program_builds_in_a_copy_with_nothing_but_its_packet() {
    let forge = Forge::new();
    forge.proposed();
    forge.user.write(".env", "TOKEN=not-for-builders\n");
    let script = format!(
        "import os,sys\npacket=sys.stdin.read()\nassert 'write_note' in packet\nassert not os.path.exists('.env')\n\
         os.makedirs('.fluffy/skills/tests',exist_ok=True)\nopen('{SKILL_FILE}','w').write({SKILL:?})\n\
         open('{TEST_FILE}','w').write({TESTS:?})\n"
    );
    let argv = json!(["/usr/bin/python3", "-c", script]).to_string();
    let mut command = forge.command(&["skill", "build", NAME, "--builder", "command", "--json"]);
    let output = command.env("FLUFFY_FORGE_BUILDER_COMMAND", argv).output().unwrap();
    let told = format!("{output:?}");
    assert_eq!(output.status.code(), Some(0), "{told}");
    forge.done(&["verify", NAME]);
}

#[test]
fn for_3_a_builder_that_lies_in_a_directory_of_the_users_is_found_and_seen_behind_the_walls() {
    use std::os::unix::fs::PermissionsExt as _;
    let forge = Forge::new();
    forge.proposed();
    let place = forge.user.project.path("own tools");
    std::fs::create_dir_all(&place).unwrap();
    let script = format!(
        "#!/bin/sh\ncat > /dev/null\nmkdir -p .fluffy/skills/tests\ncat > {SKILL_FILE} <<'EOF'\n{SKILL}EOF\ncat > {TEST_FILE} <<'EOF'\n{TESTS}EOF\n"
    );
    let program = place.join("my-builder");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(&program, forge.user.project.path("linked-builder")).unwrap();
    let path = format!("{}:/usr/bin:/bin", forge.user.project.path("").display());
    let mut command = forge.command(&["skill", "build", NAME, "--builder", "command", "--json"]);
    command.env("PATH", path).env("FLUFFY_FORGE_BUILDER_COMMAND", "[linked-builder]");
    let answer = crate::program::Answer::of(command.output().unwrap());
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    assert_eq!(forge.standing(), "BUILT");
}
