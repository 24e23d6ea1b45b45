//! Lessons of systems before this one, each as a test.

use std::fs;
use std::os::unix::fs::symlink;

use fluffy_forge::{RunError, SkillName, TrustError};
use serde_json::json;

use crate::scene::{Scene, skill};

const MARK: &str = "import os\nos.system(\"true\")\n";

#[test]
fn lesson_l24_a_file_that_was_changed_does_not_run_and_the_error_names_both_hashes() {
    let scene = Scene::probe(
        "FILE_WRITE",
        "(self.folder(\"notes\") / \"ran\").write_text(\"\")\nreturn {}",
    );
    let stage = scene.start();
    for path in [".fluffy/skills/probe.py", ".fluffy/skills/tests/test_probe.py"] {
        let at = scene.file(path);
        let before = fs::read_to_string(&at).unwrap();
        fs::write(&at, format!("{MARK}{before}")).unwrap();
        let error = stage.run("probe", json!({})).unwrap_err();
        let RunError::Trust(TrustError::Changed { file, sealed, found }) = &error else {
            panic!("{error}")
        };
        assert_eq!(file.as_str(), path);
        assert_ne!(sealed, found);
        assert!(error.to_string().contains(&sealed.to_string()), "{error}");
        assert!(error.fix().contains("revoke"), "{}", error.fix());
        fs::write(&at, before).unwrap();
    }
    assert!(!scene.file("notes/ran").exists());
    stage.gives(json!({}));
    assert!(scene.file("notes/ran").exists());
}

#[test]
fn lesson_l24_a_link_in_place_of_the_file_does_not_run() {
    let scene = Scene::probe("READ_ONLY", "return {}");
    let stage = scene.start();
    let (at, elsewhere) = (scene.file(".fluffy/skills/probe.py"), scene.dir().join("probe.py"));
    fs::rename(&at, &elsewhere).unwrap();
    symlink(&elsewhere, &at).unwrap();
    let error = stage.run("probe", json!({})).unwrap_err();
    assert!(matches!(error, RunError::Trust(TrustError::Unreadable { .. })), "{error}");
}

#[test]
fn lesson_l24_poisoned_bytecode_and_modules_beside_the_skill_are_not_seen() {
    let body = "import json\nfrom support.settings import WORD\nreturn {\"word\": WORD, \"json\": json.dumps(1)}";
    let mut scene = Scene::new();
    scene.add(
        json!({"name": "probe", "side_effect": "READ_ONLY"}),
        &skill("probe", "READ_ONLY", body),
    );
    scene.support("settings", "WORD = \"sealed\"\n");
    let stage = scene.start();
    let poison = "raise RuntimeError(\"poison\")\n";
    for path in [
        ".fluffy/skills/json.py",
        ".fluffy/skills/fluffy_skill.py",
        ".fluffy/skills/sitecustomize.py",
        ".fluffy/skills/support/__init__.py",
        ".fluffy/skills/__pycache__/probe.cpython-311.pyc",
        ".fluffy/skills/support/__pycache__/settings.cpython-311.pyc",
        "notes/json.py",
        "notes/fluffy_skill.py",
    ] {
        let at = scene.file(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, poison).unwrap();
    }
    assert_eq!(stage.gives(json!({})), json!({"word": "sealed", "json": "1"}));
    // A support module that was not sealed is none.
    let mut scene = Scene::new();
    let body = "from support.gateway import ask\nreturn {}";
    scene.add(
        json!({"name": "probe", "side_effect": "READ_ONLY"}),
        &skill("probe", "READ_ONLY", body),
    );
    let stage = scene.start();
    fs::create_dir_all(scene.file(".fluffy/skills/support")).unwrap();
    fs::write(scene.file(".fluffy/skills/support/gateway.py"), "ask = 1\n").unwrap();
    assert!(stage.fails().starts_with("ModuleNotFoundError"), "{}", stage.fails());
}

#[test]
fn lesson_l24_the_ledger_is_asked_and_not_the_registry() {
    let scene = Scene::probe("READ_ONLY", "return {}");
    let stage = scene.start();
    let registry = scene.file(".fluffy/skills/registry.yaml");
    let text = fs::read_to_string(&registry).unwrap();
    let sha = text.lines().find(|line| line.contains("skills/probe.py")).unwrap().to_owned();
    for forged in [
        // The hash is gone, or another one.
        text.replace(&format!("{sha}\n"), ""),
        text.replace(&sha, &sha.replace(|c: char| c.is_ascii_digit(), "0")),
    ] {
        fs::write(&registry, forged).unwrap();
        let refused = stage.run("probe", json!({})).unwrap_err();
        assert!(matches!(refused, RunError::Shelf(_)), "{refused}");
    }
    fs::write(&registry, &text).unwrap();
    stage.gives(json!({}));
    // What is revoked does not run, whatever lies in the project.
    let name = SkillName::parse("probe").unwrap();
    stage.shelf.revoke(&stage.kernel, &name, "ada", "no more").unwrap();
    fs::write(&registry, &text).unwrap();
    let refused = stage.run("probe", json!({})).unwrap_err();
    assert!(matches!(refused, RunError::Shelf(_)), "{refused}");
}

#[test]
fn lesson_l31_links_out_of_a_folder_lead_nowhere_and_are_not_taken() {
    // A link in the folder, made by somebody before.
    let body = "(self.folder(\"notes\") / \"link\").write_text(\"breach\")\nreturn {}";
    let scene = Scene::probe("FILE_WRITE", body);
    symlink(scene.dir().join("outside"), scene.file("notes/link")).unwrap();
    let why = scene.start().fails();
    assert!(
        why.contains("FileNotFoundError")
            || why.contains("Permission")
            || why.contains("Read-only"),
        "{why}"
    );
    assert_eq!(fs::read_to_string(scene.dir().join("outside")).unwrap(), "of somebody else\n");
    // A link that the skill makes, and a file in the place of a link.
    for body in [
        "(self.folder(\"notes\") / \"new\").symlink_to(\"/etc/passwd\")\nreturn {}",
        "path = self.folder(\"notes\") / \"link\"\npath.unlink()\npath.write_text(\"x\")\nreturn {}",
        "(self.folder(\"notes\") / \"dir\").symlink_to(\"../src\")\n((self.folder(\"notes\") / \"dir\") / \"x\").write_text(\"x\")\nreturn {}",
    ] {
        let scene = Scene::probe("FILE_WRITE", body);
        symlink(scene.dir().join("outside"), scene.file("notes/link")).unwrap();
        let why = scene.start().fails();
        assert!(why.contains("not taken") || why.contains("Error"), "{why}");
        assert!(fs::symlink_metadata(scene.file("notes/link")).unwrap().is_symlink());
        assert!(!scene.file("notes/new").exists() && !scene.file("src/x").exists());
    }
    // A folder that is itself a link.
    let mut scene = Scene::new();
    let proposal =
        json!({"name": "probe", "side_effect": "FILE_WRITE", "writes": ["linked"], "reads": []});
    scene.add(proposal, &skill("probe", "FILE_WRITE", "return {}"));
    let stage = scene.start();
    symlink(scene.dir().join("state"), scene.file("linked")).unwrap();
    let refused = stage.run("probe", json!({})).unwrap_err();
    assert!(matches!(refused, RunError::Folder(_)), "{refused}");
}

#[test]
fn lesson_l33_the_record_is_in_the_ledger_before_anything_is_told() {
    let odd = "\u{0}\u{7f}\u{85}\u{2028}\u{202e}\u{feff}[red]{x}\"\\\n🦀";
    let scene = Scene::probe(
        "FILE_WRITE",
        "(self.folder(\"notes\") / \"a\").write_text(\"x\")\nreturn {\"text\": input[\"text\"]}",
    );
    let stage = scene.start();
    let finished = stage.run("probe", json!({"text": odd})).unwrap();
    let found = stage.shelf.execution(&finished.record.execution).unwrap();
    let stored: fluffy_forge::ExecutionRecord = serde_json::from_value(found.record).unwrap();
    assert_eq!(stored, finished.record);
    assert_eq!(stored.output.unwrap().value.unwrap()["text"], odd);
    assert_eq!(stored.files[0].path.as_str(), "notes/a");
    let told = serde_json::to_string(&finished.record).unwrap();
    assert_eq!(
        serde_json::from_str::<fluffy_forge::ExecutionRecord>(&told).unwrap(),
        finished.record
    );
    // What cannot be recorded is not told: the kernel has halted.
    stage.kernel.halt("enough").unwrap();
    stage.run("probe", json!({"text": "x"})).unwrap_err();
}

#[test]
fn lesson_l34_a_forged_line_cannot_be_replayed_and_a_replay_is_judged_again() {
    let scene =
        Scene::probe("FILE_WRITE", "(self.folder(\"notes\") / \"a\").write_text(\"x\")\nreturn {}");
    let stage = scene.start();
    let first = stage.run("probe", json!({"text": "honest"})).unwrap();
    stage.runs.replay(&stage.kernel, "run-00000000000000000000000000000000").unwrap_err();
    let again = stage.runs.replay(&stage.kernel, &first.record.execution).unwrap();
    assert_ne!(again.now.record.request, first.record.request, "a request of its own");
    // The tables are no proof: a line that was changed is as if it were not, and one that was added is none.
    let tables = rusqlite::Connection::open(scene.dir().join("state/forge/tables.db")).unwrap();
    let id = &first.record.execution;
    let forged = "UPDATE executions SET record = replace(record, 'honest', 'forged') WHERE id = ?1";
    assert_eq!(tables.execute(forged, [id]).unwrap(), 1);
    let added = "INSERT INTO executions SELECT 'run-forged', seq + 100000, ts_ms, name, parent, record FROM executions WHERE id = ?1";
    assert_eq!(tables.execute(added, [id]).unwrap(), 1);
    match stage.runs.execution(id) {
        Ok(found) => assert_eq!(found, first.record, "the ledger's word"),
        Err(refused) => assert!(matches!(refused, RunError::Shelf(_)), "{refused}"),
    }
    stage.runs.replay(&stage.kernel, "run-forged").unwrap_err();
    drop(tables);
    // A parent that never ran is none.
    let order = fluffy_forge::RunOrder {
        parent: Some("run-of-nobody".to_owned()),
        ..fluffy_forge::RunOrder::new(
            SkillName::parse("probe").unwrap(),
            fluffy_base::Json::new(json!({})).unwrap(),
        )
    };
    let refused = stage.runs.run(&stage.kernel, order).unwrap_err();
    assert!(matches!(refused, RunError::Shelf(_)), "{refused}");
}
