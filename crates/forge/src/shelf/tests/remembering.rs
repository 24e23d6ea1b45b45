//! What is recorded is remembered, whatever becomes of tables, registry and process.

use super::*;

#[test]
fn for_9_a_skill_goes_from_proposed_to_trusted_and_back() {
    let lab = Lab::new();
    let (kernel, shelf) = (lab.kernel(), lab.shelf());
    assert_eq!(shelf.skills().unwrap(), []);
    let name = lab.bring(&shelf, &kernel, "write_note", Standing::Trusted);
    let trusted = shelf.trusted(&name).unwrap();
    assert_eq!(trusted.sealed, sealed(&name));
    assert_eq!((trusted.by.as_str(), trusted.spec.secrets), ("ada", vec!["API_TOKEN".to_owned()]));
    shelf.registry_agrees().unwrap();
    assert_eq!(read_sealed(shelf.project(), &trusted.sealed).unwrap().len(), 2);
    shelf.revoke(&kernel, &name, "ada", "a bug").unwrap();
    let error = shelf.trusted(&name).unwrap_err();
    assert!(matches!(error, ShelfError::Untrusted { standing: Standing::Revoked, .. }), "{error}");
    let kinds: Vec<_> =
        shelf.history(&name).unwrap().iter().map(|past| past.entry.kind()).collect();
    let all = ["proposed", "build_started", "build_ended", "verified", "promoted", "revoked"];
    assert_eq!(kinds, all);
    shelf.registry_agrees().unwrap();
    kernel.close().unwrap();
}

/// Everything that the tables say.
fn dump(lab: &Lab) -> String {
    let connection = Connection::open(lab.dir().join("tables.db")).unwrap();
    let mut text = String::new();
    for table in schema::DERIVED.into_iter().chain(["folded", "schema_version"]) {
        let sql = format!("SELECT * FROM {table} ORDER BY 1, 2");
        let sql = if table == "schema_version" { sql.replace(", 2", "") } else { sql };
        let mut statement = connection.prepare(&sql).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values: Vec<_> =
                (0..columns).map(|at| format!("{:?}", row.get_ref(at).unwrap())).collect();
            text.push_str(&format!("{table}: {}\n", values.join(" | ")));
        }
    }
    text
}

fn forget(lab: &Lab) {
    for name in ["tables.db", "tables.db-wal", "tables.db-shm"] {
        let removed = fs::remove_file(lab.dir().join(name));
        assert!(removed.is_ok() || name != "tables.db");
    }
}

#[test]
fn for_1_deleting_the_tables_loses_nothing() {
    let lab = Lab::new();
    let (kernel, shelf) = (lab.kernel(), lab.shelf());
    for (name, to) in [("a", Standing::Trusted), ("b", Standing::Built), ("c", Standing::Revoked)] {
        lab.bring(&shelf, &kernel, name, to);
    }
    shelf.record(&kernel, &ran(&name("a"), "run-1", None)).unwrap();
    let (before, listed) = (dump(&lab), shelf.skills().unwrap());
    drop(shelf);
    forget(&lab);
    let shelf = lab.shelf();
    assert_eq!(dump(&lab), before);
    assert_eq!(shelf.skills().unwrap(), listed);
    shelf.trusted(&name("a")).unwrap();
    shelf.registry_agrees().unwrap();
}

#[test]
fn for_1_tables_of_another_ledger_are_made_again() {
    let lab = Lab::new();
    let (kernel, shelf) = (lab.kernel(), lab.shelf());
    let name = lab.bring(&shelf, &kernel, "a", Standing::Trusted);
    let before = dump(&lab);
    for change in [
        format!("UPDATE folded SET entry_hash = '{}'", Digest::of(b"x")),
        "UPDATE folded SET seq = 100000".to_owned(),
        "UPDATE folded SET segment = 7".to_owned(),
        "DELETE FROM folded".to_owned(),
    ] {
        lab.sql(&format!("{change}; UPDATE skills SET description = 'forged'"));
        shelf.refresh().unwrap();
        assert_eq!(dump(&lab), before, "{change}");
        shelf.trusted(&name).unwrap();
    }
}

#[test]
fn for_1_a_database_of_version_1_is_migrated_with_what_it_had() {
    let lab = Lab::new();
    let (kernel, shelf) = (lab.kernel(), lab.shelf());
    let name = lab.bring(&shelf, &kernel, "a", Standing::Trusted);
    shelf.record(&kernel, &ran(&name, "run-1", None)).unwrap();
    let (before, listed) = (dump(&lab), shelf.skills().unwrap());
    drop(shelf);
    // What the first version left: its own tables with their rows, and nothing of runs.
    let newer = lab.dir().join("newer.db");
    fs::rename(lab.dir().join("tables.db"), &newer).unwrap();
    let mut old = Connection::open(lab.dir().join("tables.db")).unwrap();
    schema::migrate_to(&mut old, 1).unwrap();
    old.execute("ATTACH ?1 AS newer", [newer.to_str().unwrap()]).unwrap();
    for table in schema::DERIVED.into_iter().filter(|table| *table != "executions") {
        let sql = format!("INSERT INTO {table} SELECT * FROM newer.{table}");
        old.execute_batch(&sql).unwrap();
    }
    let kept = "INSERT INTO folded SELECT * FROM newer.folded; \
                INSERT INTO registry SELECT * FROM newer.registry; DETACH newer;";
    old.execute_batch(kept).unwrap();
    drop(old);
    let shelf = lab.shelf();
    assert_eq!(dump(&lab), before);
    assert_eq!(shelf.skills().unwrap(), listed);
    assert_eq!(shelf.log(None, 9).unwrap().len(), 1, "runs are read again");
    assert!(before.contains("schema_version: Integer(1)\nschema_version: Integer(2)"), "{before}");
}

#[test]
fn for_1_a_database_of_a_newer_version_is_refused_with_a_fix_and_left_alone() {
    let lab = Lab::new();
    let kernel = lab.kernel();
    drop(lab.shelf());
    lab.sql("INSERT INTO schema_version (version) VALUES (9)");
    let error = Shelf::open(lab.options()).unwrap_err().to_string();
    assert!(error.contains("are of version 9, and this program knows 2: update it"), "{error}");
    lab.sql("DELETE FROM schema_version WHERE version = 9");
    lab.shelf();
    kernel.close().unwrap();
}

#[test]
fn a_file_that_is_no_database_is_refused_with_a_fix() {
    let lab = Lab::new();
    let _kernel = lab.kernel();
    drop(lab.shelf());
    forget(&lab);
    fs::write(lab.dir().join("tables.db"), "no database, surely not one ".repeat(100)).unwrap();
    let error = Shelf::open(lab.options()).unwrap_err().to_string();
    assert!(error.contains("remove `tables.db` of the forge"), "{error}");
}

#[test]
fn two_shelves_see_what_either_records() {
    let lab = Lab::new();
    let kernel = lab.kernel();
    let (one, two) = (lab.shelf(), lab.shelf());
    let name = lab.bring(&one, &kernel, "a", Standing::Verified);
    two.promote(&kernel, &name, "ada").unwrap();
    one.trusted(&name).unwrap();
    one.revoke(&kernel, &name, "ada", "no").unwrap();
    assert!(two.trusted(&name).is_err());
    std::thread::scope(|scope| {
        for (at, shelf) in [&one, &two].into_iter().enumerate() {
            let kernel = &kernel;
            scope.spawn(move || {
                for number in 0..5 {
                    shelf.propose(kernel, spec(&format!("s{at}x{number}"))).unwrap();
                    shelf.skills().unwrap();
                }
            });
        }
    });
    one.refresh().unwrap();
    assert_eq!(one.skills().unwrap().len(), 11);
    assert_eq!(one.skills().unwrap(), two.skills().unwrap());
}

#[test]
fn for_2_artifacts_are_named_by_their_hash_and_never_overwritten() {
    use std::os::unix::fs::PermissionsExt as _;
    let lab = Lab::new();
    let (kernel, shelf) = (lab.kernel(), lab.shelf());
    let name = lab.bring(&shelf, &kernel, "a", Standing::Proposed);
    let skill = shelf.skill(&name).unwrap();
    let bytes = shelf.artifacts().get(&skill.proposal.artifact).unwrap();
    assert_eq!(serde_json::from_slice::<Proposal>(&bytes).unwrap(), skill.proposal.spec);
    let digest = shelf.artifacts().put(ArtifactKind::Note, b"bytes").unwrap();
    let file = lab.dir().join("artifacts").join(digest.to_string());
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(&lab.dir().join("artifacts"))), (0o600, 0o700));
    assert_eq!(shelf.artifacts().put(ArtifactKind::Note, b"bytes").unwrap(), digest);
    fs::write(&file, "other").unwrap();
    assert!(matches!(shelf.artifacts().get(&digest), Err(ArtifactError::Changed(_))));
    let put = shelf.artifacts().put(ArtifactKind::Note, b"bytes");
    assert!(matches!(put, Err(ArtifactError::Changed(_))), "it is told, and not written over");
    fs::remove_file(&file).unwrap();
    let error = shelf.artifacts().get(&digest).unwrap_err().to_string();
    assert!(error.contains(&digest.to_string()) && error.contains("missing"), "{error}");
    shelf.artifacts().put(ArtifactKind::Note, b"bytes").unwrap();
    // A link is no artifact.
    fs::rename(&file, lab.project.path("moved")).unwrap();
    std::os::unix::fs::symlink(lab.project.path("moved"), &file).unwrap();
    assert!(matches!(shelf.artifacts().get(&digest), Err(ArtifactError::Read { .. })));
    let left: Vec<_> = fs::read_dir(lab.dir().join("artifacts")).unwrap().collect();
    assert_eq!(left.len(), 2, "nothing is left beside");
    for kind in ArtifactKind::ALL {
        assert_eq!(ArtifactKind::from_name(kind.name()), Some(kind));
    }
}

/// Lets the process die at every step of `work`, and looks at what the next one finds.
fn at_every_death(to: Standing, work: impl Fn(&Shelf, &Kernel, &SkillName), after: [Standing; 2]) {
    let mut seen = Vec::new();
    for steps in 0.. {
        let lab = Lab::new();
        let (kernel, shelf) = (lab.kernel(), lab.shelf());
        let name = lab.bring(&shelf, &kernel, "a_skill", to);
        let ((), died) = files::deadly::after(steps, || work(&shelf, &kernel, &name));
        drop(shelf);
        let shelf = lab.shelf();
        let standing = shelf.skill(&name).unwrap().standing;
        assert!(after.contains(&standing), "after {steps} steps: {}", standing.name());
        assert_eq!(shelf.trusted(&name).is_ok(), standing == Standing::Trusted, "{steps}");
        shelf.registry_agrees().unwrap();
        // It can be done now, or is done.
        if standing == after[0] {
            work(&shelf, &kernel, &name);
        }
        assert_eq!(shelf.skill(&name).unwrap().standing, after[1]);
        assert_eq!(shelf.trusted(&name).is_ok(), after[1] == Standing::Trusted);
        shelf.registry_agrees().unwrap();
        let grown = dump(&lab);
        shelf.rebuild_tables().unwrap();
        assert_eq!(dump(&lab), grown);
        seen.push(standing);
        if !died {
            break;
        }
    }
    assert_eq!((seen[0], seen[seen.len() - 1]), (after[0], after[1]));
    assert!(seen.is_sorted_by_key(|standing| *standing == after[1]), "old, then new: {seen:?}");
    assert!(seen.len() > 6, "{}", seen.len());
}

#[test]
fn lesson_l35_a_death_at_any_step_of_a_promotion_leaves_the_old_or_the_new_state() {
    let work = |shelf: &Shelf, kernel: &Kernel, name: &SkillName| {
        drop(shelf.promote(kernel, name, "ada"));
    };
    at_every_death(Standing::Verified, work, [Standing::Verified, Standing::Trusted]);
}

#[test]
fn lesson_l35_a_death_at_any_step_of_a_revocation_leaves_the_old_or_the_new_state() {
    let work = |shelf: &Shelf, kernel: &Kernel, name: &SkillName| {
        drop(shelf.revoke(kernel, name, "ada", "no"));
    };
    at_every_death(Standing::Trusted, work, [Standing::Trusted, Standing::Revoked]);
}

#[test]
fn a_death_at_any_step_of_a_proposal_leaves_no_skill_or_the_skill() {
    for steps in 0.. {
        let lab = Lab::new();
        let (kernel, shelf) = (lab.kernel(), lab.shelf());
        let (_, died) = files::deadly::after(steps, || shelf.propose(&kernel, spec("a")));
        drop(shelf);
        let shelf = lab.shelf();
        match shelf.skill(&name("a")) {
            Ok(skill) => drop(shelf.artifacts().get(&skill.proposal.artifact).unwrap()),
            Err(error) => {
                assert!(matches!(error, ShelfError::Unknown(_)), "{error}");
                shelf.propose(&kernel, spec("a")).unwrap();
            }
        }
        if !died {
            assert!(steps > 5);
            break;
        }
    }
}

#[test]
fn what_the_kernel_does_not_record_has_not_happened() {
    let lab = Lab::new();
    let (kernel, shelf) = (lab.kernel(), lab.shelf());
    let name = lab.bring(&shelf, &kernel, "a", Standing::Verified);
    assert!(matches!(shelf.promote(&(), &name, "ada"), Err(ShelfError::Journal(_))));
    kernel.halt("a fire").unwrap();
    assert!(matches!(shelf.promote(&kernel, &name, "ada"), Err(ShelfError::Journal(_))));
    assert_eq!(shelf.skill(&name).unwrap().standing, Standing::Verified);
    assert!(!lab.registry().exists());
}

/// Days of work after which the ledger has deleted what was at the beginning.
fn live_on(lab: &Lab, retention: RetentionOptions) {
    for _ in 0..9 {
        let kernel = lab.kernel_with(retention);
        for _ in 0..300 {
            let note = Note {
                event: EventType::StateTransition,
                intent: "something else".to_owned(),
                request_id: None,
                workflow_state: None,
                metadata: vec![],
                content: None,
            };
            kernel.record(note).unwrap();
        }
        kernel.close().unwrap();
        lab.clock.advance(DAY_MS);
    }
}

#[test]
fn trust_outlives_the_ledgers_retention_and_is_proved_by_its_tree() {
    let lab = Lab::new();
    let retention =
        RetentionOptions { retention_days: 5, keep_days: 1, ..RetentionOptions::default() };
    let (kernel, shelf) = (lab.kernel_with(retention), lab.shelf());
    let trusted = lab.bring(&shelf, &kernel, "trusted_one", Standing::Trusted);
    let revoked = lab.bring(&shelf, &kernel, "revoked_one", Standing::Revoked);
    let seq = shelf.trusted(&trusted).unwrap().entry.seq;
    kernel.close().unwrap();
    drop(shelf);
    live_on(&lab, retention);
    let (layout, key) = (lab.layout(), lab.signing_key().verifying_key().clone());
    let gone = fluffy_kernel::proved_note(&layout, &key, EventType::Skill, seq, |_| {});
    assert_eq!(gone.unwrap(), None, "the ledger does not hold it any more");
    let check = |shelf: &Shelf| {
        assert_eq!(shelf.trusted(&trusted).unwrap().entry.seq, seq);
        shelf.trusted(&revoked).unwrap_err();
    };
    check(&lab.shelf());
    forget(&lab);
    check(&lab.shelf());
    // It goes on from there.
    let kernel = lab.kernel_with(retention);
    let shelf = lab.shelf();
    shelf.record(&kernel, &started(&revoked, 2)).unwrap();
    shelf.rebuild_tables().unwrap();
    assert_eq!(shelf.skill(&revoked).unwrap().standing, Standing::Proposed);
    check(&shelf);
    // A copy that was changed is none, and without it nobody is trusted.
    let entries = lab.dir().join("entries");
    for entry in fs::read_dir(&entries).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen("\"actor\":\"SYSTEM\"", "\"actor\":\"system\"", 1)).unwrap();
    }
    shelf.trusted(&trusted).unwrap_err();
    shelf.rebuild_tables().unwrap();
    assert!(matches!(shelf.trusted(&trusted), Err(ShelfError::Unknown(_))));
    shelf.propose(&kernel, spec("trusted_one")).unwrap();
}

#[test]
fn what_was_archived_is_read_from_the_archive() {
    let lab = Lab::new();
    let retention = RetentionOptions { keep_days: 1, ..RetentionOptions::default() };
    let (kernel, shelf) = (lab.kernel_with(retention), lab.shelf());
    let name = lab.bring(&shelf, &kernel, "a", Standing::Trusted);
    shelf.record(&kernel, &ran(&name, "run-1", None)).unwrap();
    kernel.close().unwrap();
    let before = shelf.log(None, 9).unwrap();
    drop(shelf);
    live_on(&lab, retention);
    forget(&lab);
    fs::remove_dir_all(lab.dir().join("entries")).unwrap();
    let shelf = lab.shelf();
    shelf.trusted(&name).unwrap();
    assert_eq!(shelf.log(None, 9).unwrap(), before);
    assert_eq!(shelf.execution("run-1").unwrap(), before[0]);
}

mod properties {
    use proptest::prelude::*;

    use super::super::folding::likely_entries;
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn for_1_tables_that_were_rebuilt_are_tables_that_grew(entries in likely_entries()) {
            let lab = Lab::new();
            let (kernel, shelf) = (lab.kernel(), lab.shelf());
            let mut recorded = 0;
            for entry in &entries {
                recorded += usize::from(shelf.record(&kernel, entry).is_ok());
            }
            let grown = dump(&lab);
            shelf.rebuild_tables().unwrap();
            prop_assert_eq!(&dump(&lab), &grown);
            drop(shelf);
            forget(&lab);
            let shelf = lab.shelf();
            prop_assert_eq!(&dump(&lab), &grown);
            let runs = shelf.log(None, 1000).unwrap().len();
            let steps = ["first", "second", "third"].map(|it| shelf.history(&name(it)));
            let steps: usize = steps.iter().map(|it| it.as_ref().map_or(0, Vec::len)).sum();
            prop_assert_eq!(steps + runs, recorded);
            for listed in shelf.skills().unwrap() {
                prop_assert_eq!(shelf.skill(&listed.name).unwrap().standing, listed.standing);
            }
        }
    }
}
