//! `fluffy audit`: log, verify, export, prove, rotate-key.

use std::io::{BufRead as _, BufReader};

use rusqlite::Connection;
use serde_json::Value;

use crate::program::{User, echo, request, steady};

fn busy_user() -> User {
    let user = User::new();
    let stranger = request("r2", "mallory", "sneak", r#"{"name":"echo","params":{"text":"x"}}"#);
    user.submit(&[], &[&echo("r1", "hello"), &stranger, &echo("r3", "again")]);
    user
}

fn database(user: &User) -> Connection {
    Connection::open(user.ledger_dir().join("ledger/0001.db")).unwrap()
}

#[test]
fn the_log_shows_what_happened_newest_last() {
    let user = busy_user();
    let log = user.run(&["audit", "log"]);
    let lines: Vec<_> = log.out.lines().map(|line| line[..8].to_owned() + &line[29..]).collect();
    insta::assert_snapshot!(lines.join("\n"), @r##"
    0  ALLOW  SYSTEM        state_transition  the ledger begins
    1  ALLOW  SYSTEM        kernel_start      the kernel starts
    2  ALLOW  user          echo              say it
    3  DENY   mallory       echo              sneak  — Jurisdiction denied: Actor 'mallory' is not in allowed actors. Allowed instead: the actors model, user
    4  ALLOW  user          echo              say it
    5  ALLOW  SYSTEM        kernel_shutdown   the kernel ends
    "##);
}

#[test]
fn the_log_is_filtered_and_paged() {
    let user = busy_user();
    let count = |args: &[&str]| {
        let mut all = vec!["audit", "log", "--json"];
        all.extend(args);
        user.run(&all).json_lines().len()
    };
    assert_eq!(count(&[]), 6);
    assert_eq!(count(&["--decision", "deny"]), 1);
    assert_eq!(count(&["--actor", "user"]), 2);
    assert_eq!(count(&["--tool", "echo"]), 3);
    assert_eq!(count(&["--event", "kernel_start"]), 1);
    assert_eq!(count(&["--category", "lifecycle"]), 2);
    assert_eq!(count(&["--limit", "2"]), 2);
    assert_eq!(count(&["--limit", "10", "--offset", "4"]), 2);
    assert_eq!(count(&["--since", "1h"]), 6);
    assert_eq!(count(&["--until", "2020-01-01"]), 0);
    let session = user.run(&["audit", "log", "--json", "--limit", "1"]).json_lines();
    let session = session[0]["detail"]["session_id"].as_str().unwrap().to_owned();
    assert_eq!(count(&["--session", &session]), 6);
    assert_eq!(count(&["--session", "session-none"]), 0);
}

#[test]
fn a_wrong_filter_says_what_is_accepted() {
    let user = busy_user();
    let answer = user.run(&["audit", "log", "--event", "sycall"]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("one of syscall, tool_execute"), "{}", answer.err);
    let answer = user.run(&["audit", "log", "--since", "yesterday"]);
    assert!(answer.err.contains("is not a time"), "{}", answer.err);
}

#[test]
fn following_shows_entries_of_another_process_as_they_come() {
    let user = busy_user();
    let mut follower = user.start(&["audit", "log", "--json", "--follow", "--limit", "1"]);
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["seq"], 5);
    user.submit(&[], &[&echo("late", "news")]);
    assert_eq!(next()["request_id"], "KERNEL_START");
    assert_eq!(next()["request_id"], "late");
    follower.kill().unwrap();
    follower.wait().unwrap();
}

#[test]
fn a_changed_entry_is_found_located_and_set_aside_at_the_next_start() {
    let user = busy_user();
    database(&user).execute("UPDATE entries SET actor = 'alice' WHERE seq = 3", []).unwrap();
    let verify = user.run(&["audit", "verify"]);
    assert_eq!(verify.code, 6, "{}", verify.out);
    assert!(verify.out.contains("entry 3: the entry's hash is"), "{}", verify.out);
    let answer = user.run_with(&["kernel", "submit", "--json"], echo("r4", "on").as_bytes());
    assert_eq!(answer.code, 0);
    assert!(answer.err.contains("WARNING: the ledger was damaged: entry 3"), "{}", answer.err);
    assert_eq!(answer.json_lines()[0]["decision"], "ALLOW");
    let log = user.run(&["audit", "log", "--json", "--event", "audit_chain_break"]).json_lines();
    assert_eq!(log[0]["detail"]["metadata"]["position"], "3");
    // The snapshot of the last session goes further than the damaged file.
    assert_eq!(log[0]["detail"]["metadata"]["salvaged"], "6");
    assert_eq!(log[0]["detail"]["metadata"]["source"], "snapshot");
    assert!(user.ledger_dir().join("damaged/0001-1.db").exists());
    let verify = user.run(&["audit", "verify"]);
    assert_eq!(verify.code, 0, "{}", verify.out);
    assert!(verify.out.contains("Segment 2: intact"), "{}", verify.out);
}

#[test]
fn a_cut_tail_and_a_replaced_file_are_found() {
    let user = busy_user();
    let file = user.ledger_dir().join("ledger/0001.db");
    let old = std::fs::read(&file).unwrap();
    user.submit(&[], &[&echo("r4", "more")]);
    std::fs::write(&file, &old).unwrap();
    let verify = user.run(&["audit", "verify"]);
    assert_eq!(verify.code, 6);
    assert!(verify.out.contains("has 6 entries, but had 9"), "{}", verify.out);
    let other = busy_user();
    std::fs::copy(other.ledger_dir().join("ledger/0001.db"), &file).unwrap();
    assert_eq!(user.run(&["audit", "verify"]).code, 6);
    std::fs::remove_file(&file).unwrap();
    let verify = user.run(&["audit", "verify"]);
    assert_eq!(verify.code, 6, "{}{}", verify.out, verify.err);
}

#[test]
fn a_bundle_is_verified_anywhere_and_only_if_it_is_genuine() {
    let user = busy_user();
    let bundle = user.project.path("evidence.json");
    let bundle_text = bundle.to_str().unwrap();
    let export = user.run(&["audit", "export", "--out", bundle_text]);
    assert_eq!(export.code, 0, "{}", export.err);
    let stranger = User::new();
    let verify = stranger.run(&["audit", "verify", "--bundle", bundle_text]);
    assert_eq!(verify.code, 0, "{}", verify.out);
    let key = verify.out.split_whitespace().find(|w| w.starts_with("fluffy-ledger+")).unwrap();
    let pinned = stranger.run(&["audit", "verify", "--bundle", bundle_text, "--key", key]);
    assert_eq!(pinned.code, 0, "{}", pinned.out);
    stranger.submit(&[], &[&echo("r", "x")]);
    let doctor = stranger.run(&["doctor"]).out;
    let other = doctor.split_whitespace().find(|w| w.starts_with("fluffy-ledger+")).unwrap();
    let pinned = stranger.run(&["audit", "verify", "--bundle", bundle_text, "--key", other]);
    assert_eq!(pinned.code, 6);
    let text = std::fs::read_to_string(&bundle).unwrap();
    std::fs::write(&bundle, text.replace("\"intent\":\"sneak\"", "\"intent\":\"speak\"")).unwrap();
    let verify = stranger.run(&["audit", "verify", "--bundle", bundle_text, "--json"]);
    assert_eq!(verify.code, 6);
    assert_eq!(verify.json_lines()[0]["findings"][0]["entry"], 3);
}

#[test]
fn the_recorded_bundle_of_the_independent_system_verifies_and_is_told_to_be_unsigned() {
    let text = include_str!("../../../../tests/fixtures/kernels/strict-session.json");
    let session: Value = serde_json::from_str(text).unwrap();
    let user = User::new();
    let file = user.project.path("peer.json");
    std::fs::write(&file, session["bundle"].to_string()).unwrap();
    let verify = user.run(&["audit", "verify", "--bundle", file.to_str().unwrap()]);
    assert_eq!(verify.code, 0, "{}", verify.out);
    assert!(verify.out.contains("verified, 10 entries"), "{}", verify.out);
    assert!(verify.out.contains("signed by  nobody"), "{}", verify.out);
}

#[test]
fn details_can_be_withheld_and_the_rest_still_verifies() {
    let user = busy_user();
    let bundle = user.project.path("evidence.json");
    let bundle = bundle.to_str().unwrap();
    let export = user.run(&["audit", "export", "--out", bundle, "--redact", "ech?"]);
    assert!(export.out.contains("3 details withheld"), "{}", export.out);
    let verify = user.run(&["audit", "verify", "--bundle", bundle]);
    assert_eq!(verify.code, 0, "{}", verify.out);
    assert!(verify.out.contains("withheld   3 details"), "{}", verify.out);
    let answer = user.run(&["audit", "export", "--out", bundle, "--redact", "a[b"]);
    assert_eq!(answer.code, 2, "{}", answer.err);
}

#[test]
fn one_entry_and_one_earlier_state_are_proved_alone() {
    let user = busy_user();
    let proof = user.project.path("proof.json");
    let path = proof.to_str().unwrap();
    let hash = user.run(&["audit", "log", "--json", "--tool", "echo", "--limit", "1"]);
    let hash = hash.json_lines()[0]["entry_hash"].as_str().unwrap().to_owned();
    for what in [vec!["3"], vec![hash.as_str()], vec!["--since", "2"]] {
        let mut args = vec!["audit", "prove", "--out", path];
        args.extend(what);
        let made = user.run(&args);
        assert_eq!(made.code, 0, "{}", made.err);
        let verify = user.run(&["audit", "verify", "--proof", path]);
        assert_eq!(verify.code, 0, "{}", verify.out);
    }
    let text = std::fs::read_to_string(&proof).unwrap();
    std::fs::write(&proof, text.replace("\"old_size\":2", "\"old_size\":3")).unwrap();
    let verify = user.run(&["audit", "verify", "--proof", path]);
    assert_eq!(verify.code, 6, "{}", verify.out);
    let missing = user.run(&["audit", "prove", "99"]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("there is no entry 99"), "{}", missing.err);
    std::fs::write(&proof, "not a proof").unwrap();
    assert_eq!(user.run(&["audit", "verify", "--proof", path]).code, 2);
}

#[test]
fn a_rotated_key_goes_on_signing_and_the_old_one_vouches_for_it() {
    let user = busy_user();
    let before = user.run(&["doctor"]).out;
    let rotated = user.run(&["audit", "rotate-key"]);
    assert_eq!(rotated.code, 0, "{}", rotated.err);
    let after = user.run(&["doctor"]).out;
    assert_ne!(steady(&before, &user), steady(&after, &user));
    assert_eq!(user.run(&["audit", "verify"]).code, 0);
    let answer = user.run_with(&["kernel", "submit", "--json"], echo("r4", "on").as_bytes());
    assert_eq!(answer.err, "");
    assert_eq!(user.run(&["audit", "verify"]).code, 0);
    let log = user.run(&["audit", "log", "--json", "--event", "key_rotation"]).json_lines();
    assert_eq!(log.len(), 1);
}

/// A user whose ledger has a day of history, this many days ago.
fn user_with_history(days_ago: u64) -> User {
    use fluffy_base::{Clock as _, KernelId, KernelState, SessionId, SystemClock, VirtualClock};
    use fluffy_ledger::{Detail, EventType, Layout, Ledger, LedgerConfig, Origin, Record};
    let user = busy_user();
    let dir = user.ledger_dir();
    let (state, name) = (user.project.state().join("fluffy"), dir.file_name().unwrap().to_owned());
    let name = name.to_str().unwrap();
    let note = state.join("checkpoints").join(format!("{name}.note"));
    std::fs::remove_dir_all(&dir).unwrap();
    std::fs::remove_file(&note).unwrap();
    let key = state.join("keys").join(format!("{name}.key"));
    let then = SystemClock.now_ms() - days_ago * 86_400_000;
    let origin = Origin {
        kernel_id: KernelId::named("kernel-test").unwrap(),
        session_id: SessionId::named("session-of-old").unwrap(),
        variant: "strict",
        mode: None,
        policy_digest: None,
        engine: "0.0.0",
    };
    let mut ledger = Ledger::open(LedgerConfig {
        layout: Layout::new(dir, note),
        key: fluffy_ledger::load_or_create_key(&key, [9; 32]).unwrap(),
        origin: origin.clone(),
        clock: std::sync::Arc::new(VirtualClock::new(then, 0)),
        retention: fluffy_ledger::RetentionOptions::default(),
    })
    .unwrap();
    for n in 0..200 {
        let event = if n == 0 { EventType::KernelStart } else { EventType::Syscall };
        let from = if n == 0 { KernelState::Booting } else { KernelState::Idle };
        let detail = Detail::new(origin.clone(), event);
        ledger.append(Record::event(then, "long ago", (from, KernelState::Idle), detail)).unwrap();
    }
    ledger.close().unwrap();
    user
}

#[test]
fn aud_6_days_are_archived_and_everything_is_still_verified_proved_shown_and_exported() {
    let user = user_with_history(70);
    let rotated = user.run(&["audit", "rotate"]);
    assert_eq!(rotated.code, 0, "{}", rotated.err);
    assert!(rotated.out.starts_with("Archived entries 1 to 200 in "), "{}", rotated.out);
    assert!(rotated.out.contains(".jsonl (entry 201)\nStorage: 0 % ("), "{}", rotated.out);
    // The leaves of what leaves must stand under complete tiles: a few more entries.
    for _ in 0..3 {
        let requests: Vec<_> = (0..8).map(|_| echo("r", "x")).collect();
        user.submit(&[], &requests.iter().map(|request| &**request).collect::<Vec<_>>());
    }
    let again = user.run(&["audit", "rotate"]);
    let rows: i64 = database(&user)
        .query_row("SELECT count(*) FROM entries WHERE seq BETWEEN 1 AND 200", [], |r| r.get(0))
        .unwrap();
    assert_eq!(rows, 0, "they left: {}", again.out);
    let verified = user.run(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{}", verified.out);
    let told = "archives   1, 200 entries are no longer in the database";
    assert!(verified.out.contains(told), "{}", verified.out);
    user.run(&["audit", "prove", "7", "--out", "proof.json"]);
    assert_eq!(user.run(&["audit", "verify", "--proof", "proof.json"]).code, 0);
    let log =
        user.run(&["audit", "log", "--json", "--session", "session-of-old", "--limit", "1000"]);
    assert!(log.json_lines().len() >= 200, "{}", log.json_lines().len());
    let exported = user.run(&["audit", "export", "--session", "session-of-old", "--out", "b.json"]);
    assert_eq!(exported.code, 0, "{}", exported.err);
    assert_eq!(user.run(&["audit", "verify", "--bundle", "b.json"]).code, 0);
    let doctor = user.run(&["doctor"]);
    assert!(doctor.out.contains("ledger storage"), "{}", doctor.out);
    let archive = user.ledger_dir().join("archive");
    let file = std::fs::read_dir(archive).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("long ago", "long  go", 3)).unwrap();
    let altered = user.run(&["audit", "verify"]);
    assert_eq!(altered.code, 6, "{}", altered.out);
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(
        altered.out.contains(&format!("entry 1: archive `{name}`, line 2: ")),
        "{}",
        altered.out
    );
}
