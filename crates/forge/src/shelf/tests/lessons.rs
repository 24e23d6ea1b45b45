//! What went wrong elsewhere, and cannot here.

use std::os::unix::fs::symlink;

use super::*;

#[track_caller]
fn refused(shelf: &Shelf, name: &SkillName, told: &str) {
    let error = shelf.trusted(name).unwrap_err().to_string();
    assert!(error.contains(told), "`{error}` does not say `{told}`");
}

#[test]
fn lesson_l24_a_registry_that_was_edited_refuses_and_is_written_again_from_the_ledger() {
    let lab = Lab::new();
    let (kernel, shelf) = (lab.kernel(), lab.shelf());
    let name = lab.bring(&shelf, &kernel, "write_note", Standing::Trusted);
    let other = lab.bring(&shelf, &kernel, "other", Standing::Trusted);
    let text = fs::read_to_string(lab.registry()).unwrap();
    let hash = Digest::of(skill_text(&name).as_bytes()).to_string();
    let line = text.lines().find(|line| line.contains(&hash)).unwrap();
    let at = text.find("  write_note:").unwrap();
    let edits = [
        ("a hash was deleted", text.replace(&format!("{line}\n"), "")),
        ("a hash was changed", text.replace(&hash, &Digest::of(b"evil").to_string())),
        ("the entry was deleted", text[..at].to_owned()),
        ("a host was added", text.replace("\"api.example.org:8443\"", "\"a.org\",\"b.org\"")),
        ("a secret was dropped", text.replace("required_secrets: [\"API_TOKEN\"]", "")),
        ("the skill is there twice", format!("{text}{}", &text[at..])),
        ("another head", text.replace("version: 1", "version: 2")),
        ("nothing is left", String::new()),
    ];
    for (what, edited) in edits {
        fs::write(lab.registry(), &edited).unwrap();
        refused(&shelf, &name, "skill doctor --rebuild");
        shelf.registry_agrees().unwrap_err();
        assert_eq!(
            fs::read_to_string(lab.registry()).unwrap(),
            edited,
            "{what}: it is left as it is"
        );
    }
    fs::remove_file(lab.registry()).unwrap();
    refused(&shelf, &name, "is missing");
    symlink(lab.project.path("elsewhere"), lab.registry()).unwrap();
    fs::write(lab.project.path("elsewhere"), &text).unwrap();
    refused(&shelf, &name, "cannot be read");
    shelf.rebuild_registry().unwrap();
    assert_eq!(fs::read_to_string(lab.registry()).unwrap(), text);
    assert!(!lab.registry().symlink_metadata().unwrap().is_symlink());
    shelf.trusted(&name).unwrap();
    shelf.trusted(&other).unwrap();
    shelf.registry_agrees().unwrap();
}

#[test]
fn lesson_l24_the_registry_is_yaml_that_says_what_was_promoted() {
    let lab = Lab::new();
    let (kernel, shelf) = (lab.kernel(), lab.shelf());
    let name = lab.bring(&shelf, &kernel, "write_note", Standing::Trusted);
    let trusted = shelf.trusted(&name).unwrap();
    let text = fs::read_to_string(lab.registry()).unwrap();
    let told: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    let skill = &told["skills"]["write_note"];
    assert_eq!(skill["description"], json!(trusted.spec.description));
    assert_eq!(skill["required_secrets"], json!(["API_TOKEN"]));
    assert_eq!(skill["hosts"], json!(["api.example.org:8443"]));
    assert_eq!(skill["side_effect"], json!("SECRET_READ"));
    assert_eq!(skill["input"], trusted.spec.input);
    assert_eq!(skill["approved_by"], json!("ada"));
    assert_eq!(skill["entry"], json!(trusted.entry.seq));
    assert_eq!(skill["entry_hash"], json!(trusted.entry.entry_hash));
    for file in &trusted.sealed.files {
        assert_eq!(skill["files"][file.path.as_str()], json!(file.sha256));
    }
    assert!(text.is_ascii(), "nothing invisible");
}

#[test]
fn lesson_l24_the_ledger_is_asked_and_not_the_tables() {
    let lab = Lab::new();
    let (kernel, shelf) = (lab.kernel(), lab.shelf());
    let revoked = lab.bring(&shelf, &kernel, "revoked_one", Standing::Revoked);
    let verified = lab.bring(&shelf, &kernel, "verified_one", Standing::Verified);
    let trusted = lab.bring(&shelf, &kernel, "trusted_one", Standing::Trusted);
    let copy = fs::read(lab.dir().join("tables.db")).unwrap();
    let is_trusted = "UPDATE skills SET standing = 'TRUSTED'; UPDATE states SET state = \
        replace(replace(state, '\"REVOKED\"', '\"TRUSTED\"'), '\"VERIFIED\"', '\"TRUSTED\"');";
    for attack in [
        is_trusted.to_owned(),
        format!("{is_trusted} DELETE FROM entries WHERE kind = 'revoked';"),
        format!("{is_trusted} UPDATE entries SET name = 'other' WHERE kind = 'revoked';"),
        "UPDATE entries SET kind = 'ran' WHERE kind = 'revoked'".to_owned(),
        "UPDATE entries SET seq = seq + 1000 WHERE kind = 'revoked'".to_owned(),
        "DELETE FROM entries".to_owned(),
        "DELETE FROM entries WHERE seq = (SELECT max(seq) FROM entries)".to_owned(),
        "UPDATE entries SET entry_hash = (SELECT entry_hash FROM folded)".to_owned(),
        "UPDATE folded SET base = chain; DELETE FROM entries".to_owned(),
        "INSERT INTO entries (seq, entry_hash, ts_ms, name, kind, counts, content) SELECT \
         9999, entry_hash, ts_ms, 'verified_one', 'promoted', 1, content FROM entries \
         WHERE kind = 'promoted' LIMIT 1"
            .to_owned(),
    ] {
        lab.sql(&attack);
        shelf.trusted(&revoked).unwrap_err();
        shelf.trusted(&verified).unwrap_err();
        let error = shelf.promote(&kernel, &revoked, "eve");
        assert!(error.is_err(), "{attack}");
        // What is made again from the ledger is right again.
        shelf.rebuild_tables().unwrap();
        shelf.trusted(&trusted).unwrap();
        shelf.trusted(&revoked).unwrap_err();
        assert_eq!(shelf.skill(&verified).unwrap().standing, Standing::Verified);
    }
    // Tables of an earlier moment, before the revocation was known: they catch up.
    drop(shelf);
    fs::write(lab.dir().join("tables.db"), copy).unwrap();
    lab.shelf().trusted(&trusted).unwrap();
}

#[test]
fn lesson_l24_an_entry_that_was_changed_in_the_ledger_refuses_everything() {
    let lab = Lab::new();
    let (kernel, shelf) = (lab.kernel(), lab.shelf());
    let name = lab.bring(&shelf, &kernel, "write_note", Standing::Trusted);
    kernel.close().unwrap();
    let seq = shelf.trusted(&name).unwrap().entry.seq;
    let ledger = Connection::open(lab.layout().segment(1)).unwrap();
    let sql = format!("UPDATE entries SET input = CAST(input || x'20' AS BLOB) WHERE seq = {seq}");
    ledger.execute_batch(&sql).unwrap();
    drop(ledger);
    refused(&shelf, &name, "the ledger is not what was recorded");
    fs::remove_file(lab.dir().join("tables.db")).unwrap();
    Shelf::open(lab.options()).unwrap_err();
}

#[test]
fn lesson_l25_a_file_that_changed_between_verification_and_promotion_is_not_promoted() {
    let lab = Lab::new();
    let (kernel, shelf) = (lab.kernel(), lab.shelf());
    let name = lab.bring(&shelf, &kernel, "write_note", Standing::Verified);
    let file = lab.project.root().join(name.skill_path().unwrap().as_str());
    let test = lab.project.root().join(name.test_path().unwrap().as_str());
    let promote = || shelf.promote(&kernel, &name, "ada");
    for (path, original) in [(&file, skill_text(&name)), (&test, test_text(&name))] {
        fs::write(path, "import os\n").unwrap();
        let error = promote().unwrap_err().to_string();
        assert!(error.contains("was changed since it was verified"), "{error}");
        fs::remove_file(path).unwrap();
        assert!(matches!(promote(), Err(ShelfError::Seal(_))));
        // The same bytes behind a link are not the file.
        fs::write(lab.project.path("same"), &original).unwrap();
        symlink(lab.project.path("same"), path).unwrap();
        assert!(matches!(promote(), Err(ShelfError::Seal(_))));
        fs::remove_file(path).unwrap();
        fs::write(path, original).unwrap();
    }
    assert_eq!(shelf.skill(&name).unwrap().standing, Standing::Verified);
    promote().unwrap();
    let error = promote().unwrap_err().to_string();
    assert!(error.contains("is TRUSTED: a promotion needs"), "{error}");
}

#[test]
fn lesson_l24_a_skill_that_was_verified_on_another_base_does_not_run() {
    let lab = Lab::new();
    let (kernel, shelf) = (lab.kernel(), lab.shelf());
    let name = lab.bring(&shelf, &kernel, "write_note", Standing::Trusted);
    let next = lab.bring(&shelf, &kernel, "next", Standing::Verified);
    drop(shelf);
    let shelf = Shelf::open(ShelfOptions { base: Digest::of(b"new"), ..lab.options() }).unwrap();
    refused(&shelf, &name, "another version of the skills' base");
    assert!(matches!(shelf.promote(&kernel, &next, "ada"), Err(ShelfError::OtherBase(_))));
}

#[test]
fn lesson_l31_a_stored_name_cannot_lead_anywhere_else() {
    let entry = started(&name("a_skill"), 1);
    let text = serde_json::to_string(&entry).unwrap();
    serde_json::from_str::<SkillEntry>(&text).unwrap();
    for evil in ["../../evil", "a/b", "/etc/passwd", "a.b", "A", "", "conftest"] {
        let forged = text.replace("\"name\":\"a_skill\"", &format!("\"name\":\"{evil}\""));
        assert_ne!(forged, text);
        serde_json::from_str::<SkillEntry>(&forged).unwrap_err();
    }
    let lab = Lab::new();
    let (kernel, shelf) = (lab.kernel(), lab.shelf());
    lab.bring(&shelf, &kernel, "write_note", Standing::Proposed);
    lab.sql("UPDATE skills SET name = '../evil'");
    assert!(matches!(shelf.skills(), Err(ShelfError::Damaged(_))));
}

#[test]
fn lesson_l34_a_forged_run_is_found_and_parents_come_to_an_end() {
    let lab = Lab::new();
    let (kernel, shelf) = (lab.kernel(), lab.shelf());
    let name = lab.bring(&shelf, &kernel, "write_note", Standing::Trusted);
    shelf.record(&kernel, &ran(&name, "run-1", None)).unwrap();
    shelf.record(&kernel, &ran(&name, "run-2", Some("run-1"))).unwrap();
    shelf.record(&kernel, &ran(&name, "run-3", Some("run-2"))).unwrap();
    for (entry, why) in [
        (ran(&name, "run-4", Some("run-4")), "its own parent"),
        (ran(&name, "run-4", Some("run-9")), "a parent that never ran"),
        (ran(&name, "run-1", Some("run-3")), "an id that is taken, for a circle"),
    ] {
        assert!(shelf.record(&kernel, &entry).is_err(), "{why}");
    }
    let ids = |runs: Vec<Execution>| runs.into_iter().map(|run| run.id).collect::<Vec<_>>();
    assert_eq!(ids(shelf.lineage("run-3").unwrap()), ["run-3", "run-2", "run-1"]);
    assert_eq!(ids(shelf.log(None, 2).unwrap()), ["run-3", "run-2"]);
    assert_eq!(ids(shelf.log(Some(&name), 9).unwrap()).len(), 3);
    // Lines that nobody ran: a new one, one that names another's entry, one whose record was changed.
    lab.sql(
        "INSERT INTO executions (id, seq, ts_ms, name, parent, record) VALUES \
         ('forged', 99999, 1, 'write_note', NULL, '{}'); \
         UPDATE executions SET record = '{\"ok\":false}', parent = 'run-3' WHERE id = 'run-1';",
    );
    let error = shelf.execution("forged").unwrap_err();
    assert!(matches!(error, ShelfError::NoExecution(_)), "{error}");
    assert_eq!(shelf.execution("run-1").unwrap().record, json!({"ok": true}));
    assert_eq!(ids(shelf.lineage("run-3").unwrap()).len(), 3, "a circle in the tables is none");
    lab.sql("UPDATE executions SET seq = 1 WHERE id = 'forged'");
    shelf.execution("forged").unwrap_err();
    let seq = shelf.execution("run-2").unwrap().seq;
    lab.sql(&format!("DELETE FROM executions WHERE id = 'run-2'; UPDATE executions SET seq = {seq} WHERE id = 'forged'"));
    assert!(matches!(shelf.execution("forged"), Err(ShelfError::Strange(_))));
}

#[test]
fn lesson_l35_order_is_the_ledgers_and_the_approver_is_who_approved() {
    let lab = Lab::new();
    let kernel = lab.kernel();
    let shelf = lab.shelf();
    let name = lab.bring(&shelf, &kernel, "write_note", Standing::Verified);
    shelf.promote(&kernel, &name, "grace").unwrap();
    assert_eq!(shelf.trusted(&name).unwrap().by, "grace");
    assert_eq!(shelf.skills().unwrap()[0].approved_by.as_deref(), Some("grace"));
    shelf.revoke(&kernel, &name, "ada", "a bug").unwrap();
    // All at one time, and the rows in any order: the numbers decide.
    lab.sql("UPDATE entries SET ts_ms = 1000 - seq");
    let kinds: Vec<_> = shelf.history(&name).unwrap().iter().map(|it| it.entry.kind()).collect();
    assert_eq!(kinds.last(), Some(&"revoked"));
    assert_eq!(shelf.skill(&name).unwrap().standing, Standing::Revoked);
    for nobody in ["", "a\nb", "a\u{7}"] {
        let name = lab.bring(&shelf, &kernel, &format!("n{}", nobody.len()), Standing::Verified);
        assert!(matches!(shelf.promote(&kernel, &name, nobody), Err(ShelfError::Illegal(_))));
    }
}
