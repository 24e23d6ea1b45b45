//! What a skill gets, by its class.

use std::fs;

use fluffy_base::Json;
use fluffy_forge::{Chain, Comparison, RunError};
use serde_json::json;

use crate::scene::{Scene, skill};

#[test]
fn for_11_a_skill_that_reads_sees_its_folders_and_gives_what_was_proposed() {
    let body = r#"
root = self.folder("notes")
names = sorted(path.name for path in root.iterdir())
return {"text": (root / "one.md").read_text(), "names": names, "asked": input["text"]}
"#;
    let stage = Scene::probe("READ_ONLY", body).start();
    let given = stage.gives(json!({"text": "odd \u{0}\u{1b}[31m\u{202e} [bold] é 🦀"}));
    assert_eq!(given["text"], "# One\n");
    assert_eq!(given["names"], json!(["one.md"]));
    assert_eq!(given["asked"], "odd \u{0}\u{1b}[31m\u{202e} [bold] é 🦀");
    assert_eq!(stage.asked(), Vec::<String>::new());
}

#[test]
fn what_the_policy_keeps_from_being_read_is_not_there_for_a_skill_either() {
    let body = r#"
root = self.folder("notes")
names = sorted(str(path.relative_to(root)) for path in root.rglob("*"))
return {"names": names, "token": (root / ".env").exists()}
"#;
    for class in ["READ_ONLY", "FILE_WRITE"] {
        let scene = Scene::probe(class, body);
        fs::create_dir_all(scene.file("notes/secrets/deep")).unwrap();
        fs::create_dir_all(scene.file("notes/daily")).unwrap();
        for name in [".env", "tls.pem", "secrets/deep/one.md", "daily/id_rsa", "daily/two.md"] {
            fs::write(scene.file("notes").join(name), "hidden?\n").unwrap();
        }
        let stage = scene.start();
        let given = stage.gives(json!({}));
        let names = given["names"].as_array().unwrap();
        for seen in ["daily", "daily/two.md", "one.md"] {
            assert!(names.contains(&json!(seen)), "{class}: {names:?}");
        }
        for hidden in [".env", "tls.pem", "secrets/deep/one.md", "daily/id_rsa"] {
            assert!(!names.contains(&json!(hidden)), "{class}: {names:?}");
        }
        assert_eq!(given["token"], false);
        assert_eq!(fs::read_to_string(scene.file("notes/.env")).unwrap(), "hidden?\n");
        let left = fs::read_dir(scene.dir().join("state/forge/sight")).unwrap();
        assert_eq!(left.count(), 0, "what hid them is gone");
    }
}

#[test]
fn a_hidden_file_is_not_replaced_by_a_skill_that_cannot_see_it() {
    let body = r#"
(self.folder("notes") / ".env").write_text("mine now\n")
return {}
"#;
    let scene = Scene::probe("FILE_WRITE", body);
    fs::write(scene.file("notes/.env"), "TOKEN=1\n").unwrap();
    let stage = scene.start();
    assert!(stage.fails().contains("the rules keep `notes/.env` from being changed"));
    assert_eq!(fs::read_to_string(scene.file("notes/.env")).unwrap(), "TOKEN=1\n");
}

#[test]
fn a_folder_with_a_name_that_no_rule_can_judge_is_not_shown() {
    use std::os::unix::ffi::OsStrExt as _;
    let scene = Scene::probe("READ_ONLY", "return {}");
    let odd = std::ffi::OsStr::from_bytes(b"odd-\xff.md");
    fs::write(scene.file("notes").join(odd), "x").unwrap();
    let stage = scene.start();
    let refused = stage.run("probe", json!({})).unwrap_err().to_string();
    assert!(refused.contains("no rule can judge"), "{refused}");
}

#[test]
fn for_11_input_is_checked_before_anything_starts_and_output_before_anything_is_told() {
    let mut scene = Scene::new();
    let source = skill("probe", "READ_ONLY", "return {\"count\": input[\"text\"], \"more\": 1}");
    let input = json!({"type": "object", "properties": {"text": {}}, "required": ["text"]});
    let output = json!({
        "type": "object", "properties": {"count": {"type": "integer"}, "more": {}}, "required": ["count"],
        "additionalProperties": false,
    });
    let proposal =
        json!({"name": "probe", "side_effect": "READ_ONLY", "input": input, "output": output});
    scene.add(proposal, &source);
    let stage = scene.start();
    for wrong in [json!({}), json!({"text": 1, "hosts": ["evil.example"]}), json!({"x": 1})] {
        let refused = stage.run("probe", wrong).unwrap_err();
        // The kernel checks the tool's schema before it runs anything.
        assert!(matches!(refused, RunError::Input(_)), "{refused}");
    }
    assert_eq!(stage.shelf.log(None, 10).unwrap(), []);
    assert_eq!(stage.gives(json!({"text": 3})), json!({"count": 3, "more": 1}));
    let finished = stage.run("probe", json!({"text": "secret-word"})).unwrap();
    let why = finished.record.error.unwrap().to_string();
    assert!(why.contains("not of the proposed form") && why.contains("/count"), "{why}");
    assert!(!why.contains("secret-word"), "{why}");
    assert_eq!(finished.output, None);
}

#[test]
fn for_11_a_skill_that_writes_changes_its_folders_after_it_succeeded() {
    let body = r#"
root = self.folder("notes")
(root / "daily").mkdir(exist_ok=True)
(root / "daily" / "a.md").write_text("new\n")
(root / "one.md").write_text("changed\n")
(root / "gone.md").unlink(missing_ok=True)
return {}
"#;
    let scene = Scene::probe("FILE_WRITE", body);
    fs::write(scene.file("notes/gone.md"), "x").unwrap();
    let stage = scene.start();
    let finished = stage.run("probe", json!({})).unwrap();
    assert_eq!(finished.record.error, None, "{}", finished.record.printed);
    let files: Vec<_> = finished.record.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(files, ["notes/daily/a.md", "notes/gone.md", "notes/one.md"]);
    assert_eq!(fs::read_to_string(scene.file("notes/daily/a.md")).unwrap(), "new\n");
    assert_eq!(fs::read_to_string(scene.file("notes/one.md")).unwrap(), "changed\n");
    assert!(!scene.file("notes/gone.md").exists());
    assert_eq!(fs::read_dir(scene.file("notes")).unwrap().count(), 2, "nothing is left beside");
    assert!(stage.asked().is_empty(), "whoever types it has agreed");
    stage.run_for("model", "probe", json!({})).unwrap();
    assert!(stage.asked()[0].contains("writes: notes"), "{:?}", stage.asked());
}

#[test]
fn a_run_that_fails_changes_nothing() {
    let body = r#"
root = self.folder("new/folder")
(root / "a.md").write_text("new\n")
(self.folder("notes") / "one.md").write_text("changed\n")
raise ValueError("after all")
"#;
    let mut scene = Scene::new();
    let proposal =
        json!({"name": "probe", "side_effect": "FILE_WRITE", "writes": ["notes", "new/folder"]});
    scene.add(proposal, &skill("probe", "FILE_WRITE", body));
    let stage = scene.start();
    assert_eq!(stage.fails(), "ValueError: after all (probe, line 13)");
    assert_eq!(fs::read_to_string(scene.file("notes/one.md")).unwrap(), "# One\n");
    assert!(!scene.file("new").exists());
}

#[test]
fn a_folder_that_is_not_there_yet_is_made_by_what_is_written_to_it() {
    let body = r#"
(self.folder("journal/daily") / "a.md").write_text("x")
return {}
"#;
    let mut scene = Scene::new();
    let proposal =
        json!({"name": "probe", "side_effect": "FILE_WRITE", "writes": ["journal/daily"]});
    scene.add(proposal, &skill("probe", "FILE_WRITE", body));
    let stage = scene.start();
    stage.gives(json!({}));
    assert_eq!(fs::read_to_string(scene.file("journal/daily/a.md")).unwrap(), "x");
}

#[test]
fn a_person_who_says_no_keeps_a_skill_from_running() {
    let mut scene =
        Scene::probe("FILE_WRITE", "(self.folder(\"notes\") / \"x\").write_text(\"x\")\nreturn {}");
    scene.agrees = false;
    let stage = scene.start();
    let refused = stage.run_for("model", "probe", json!({})).unwrap_err();
    assert!(matches!(refused, RunError::Denied { .. }), "{refused}");
    assert!(!scene.file("notes/x").exists());
    assert_eq!(stage.shelf.log(None, 10).unwrap(), []);
}

#[test]
fn money_and_messages_ask_a_person_whatever_the_policy_allows() {
    for class in ["MONEY", "MESSAGING"] {
        let mut scene = Scene::probe(class, "return {}");
        scene.policy =
            "version: 1\njurisdiction: { allowed_actors: ['*'], allowed_tools: ['*'] }\n\
            capabilities:\n  - { name: all, match: { syscall: '*' }, action: allow }\n"
                .to_owned();
        let stage = scene.start();
        stage.gives(json!({}));
        stage.gives(json!({}));
        let asked = stage.asked();
        assert_eq!(asked.len(), 2, "{class}: {asked:?}");
        assert!(asked[0].contains("builtin.person"), "{asked:?}");
    }
}

#[test]
fn a_skill_asks_the_model_through_the_kernel_if_it_was_promised_one() {
    let body = r#"
from fluffy_skill import ModelUnavailable
try:
    return {"said": self.model.generate("abc"), "vectors": self.model.embed(["a", "bcd"])}
except ModelUnavailable as error:
    return {"unavailable": str(error)}
"#;
    let mut scene = Scene::new();
    let source = skill("probe", "READ_ONLY", body);
    scene.add(json!({"name": "probe", "side_effect": "READ_ONLY", "model": true}), &source);
    let given = scene.start().gives(json!({}));
    assert_eq!(given, json!({"said": "cba", "vectors": [[1, 1], [3, 1]]}));
    let given = Scene::probe("READ_ONLY", body).start().gives(json!({}));
    assert_eq!(given, json!({"unavailable": "this skill has no model"}));
}

#[test]
fn support_modules_are_part_of_the_skill() {
    let mut scene = Scene::new();
    let body = "from support.settings import WORD\nreturn {\"word\": WORD}";
    scene.add(
        json!({"name": "probe", "side_effect": "READ_ONLY"}),
        &skill("probe", "READ_ONLY", body),
    );
    scene.support("settings", "WORD = \"shared\"\n");
    assert_eq!(scene.start().gives(json!({})), json!({"word": "shared"}));
}

#[test]
fn a_chain_hands_values_on_and_stops_at_the_first_failure() {
    let mut scene = Scene::new();
    let schema = json!({"type": "object", "properties": {"value": {}}, "required": ["value"]});
    for (name, body) in [
        ("double", "return {\"items\": [{\"n\": input[\"value\"] * 2}]}"),
        ("refuse", "raise RuntimeError(\"no\")"),
    ] {
        let proposal = json!({"name": name, "side_effect": "READ_ONLY", "input": schema});
        scene.add(proposal, &skill(name, "READ_ONLY", body));
    }
    let stage = scene.start();
    let chain = |steps| serde_json::from_value::<Chain>(json!({ "steps": steps })).unwrap();
    let input = Json::new(json!({"n": 3})).unwrap();
    let double = |from: &str| json!({"skill": "double", "input": {"value": from}});
    let refuse = json!({"skill": "refuse", "input": {"value": 1}});
    let ran = stage.runs.chain(
        &stage.kernel,
        &chain(json!([
            double("$input.n"),
            double("$prev.items.0.n"),
            double("$steps.0.items.0.n")
        ])),
        &input,
    );
    let ran = ran.unwrap();
    assert!(ran.stopped.is_none(), "{:?}", ran.stopped);
    let given =
        |at: usize| ran.finished[at].output.as_ref().unwrap().value()["items"][0]["n"].clone();
    assert_eq!([given(0), given(1), given(2)], [json!(6), json!(12), json!(12)]);
    assert_eq!(ran.finished[2].record.parent.as_ref(), Some(&ran.finished[1].record.execution));
    let lineage = stage.shelf.lineage(&ran.finished[2].record.execution).unwrap();
    assert_eq!(lineage.len(), 3);

    let steps = json!([double("$input.n"), refuse, double("$input.n")]);
    let ran = stage.runs.chain(&stage.kernel, &chain(steps), &input).unwrap();
    assert_eq!(ran.finished.len(), 2);
    let stopped = ran.stopped.unwrap().to_string();
    assert!(stopped.contains("step 1 (`refuse`) failed: RuntimeError: no"), "{stopped}");

    let before = stage.shelf.log(None, 100).unwrap().len();
    for wrong in
        [json!([double("$input.n"), {"skill": "unknown"}]), json!([double("$prev.n")]), json!([])]
    {
        stage.runs.chain(&stage.kernel, &chain(wrong), &input).unwrap_err();
    }
    assert_eq!(stage.shelf.log(None, 100).unwrap().len(), before, "nothing of them ran");
}

#[test]
fn a_replay_runs_what_the_ledger_has_and_compares() {
    let body = "path = self.folder(\"notes\") / \"one.md\"\nreturn {\"text\": path.read_text() + str(input.get(\"text\"))}";
    let scene = Scene::probe("READ_ONLY", body);
    let stage = scene.start();
    let first = stage.run("probe", json!({"text": "x".repeat(20_000)})).unwrap();
    assert_eq!(first.record.input.value, None, "what is long is an artifact");
    let again = stage.runs.replay(&stage.kernel, &first.record.execution).unwrap();
    assert_eq!(again.comparison, Comparison::Same);
    assert_eq!(again.now.record.parent, Some(first.record.execution.clone()));
    assert_eq!(again.now.record.input, first.record.input);
    fs::write(scene.file("notes/one.md"), "other\n").unwrap();
    let again = stage.runs.replay(&stage.kernel, &first.record.execution).unwrap();
    assert_eq!(again.comparison, Comparison::Different);
}

#[test]
fn a_folder_to_write_may_lie_in_one_to_read() {
    let body = r#"
(self.folder("notes/daily") / "a.md").write_text((self.folder("notes") / "one.md").read_text())
try:
    (self.folder("notes") / "one.md").write_text("x")
except OSError as error:
    return {"refused": True}
return {}
"#;
    let mut scene = Scene::new();
    let proposal = json!({"name": "probe", "side_effect": "FILE_WRITE", "writes": ["notes/daily"]});
    scene.add(proposal, &skill("probe", "FILE_WRITE", body));
    let stage = scene.start();
    assert_eq!(stage.gives(json!({})), json!({"refused": true}));
    assert_eq!(fs::read_to_string(scene.file("notes/daily/a.md")).unwrap(), "# One\n");
    assert_eq!(fs::read_to_string(scene.file("notes/one.md")).unwrap(), "# One\n");
}
