//! Forks of sessions, and sessions that are put away: what is gone on with, and what stays as it is.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use fluffy_base::VirtualClock;
use fluffy_kernel::{Kernel, KernelConfig, Registry, StoredSession};
use fluffy_ledger::{Layout, SigningKey};
use fluffy_policy::PolicyFile;
use serde_json::{Value, json};

use super::lab::{Lab, Language, say, write};
use super::resume::resumed;
use crate::program::Answer;

/// What a command of `fluffy session` answers, with the toolchains of the user.
fn session(lab: &Lab, args: &[&str]) -> Answer {
    let mut all = vec!["session"];
    all.extend(args);
    let path = lab.command(&[], &lab.good_turns());
    let path = path.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
    let mut command = lab.user.command(&all);
    command.env("HOME", std::env::var_os("HOME").unwrap()).env("PATH", path);
    Answer::of(command.stdin(Stdio::null()).output().unwrap())
}

#[track_caller]
fn done(lab: &Lab, args: &[&str]) -> String {
    let answer = session(lab, args);
    assert_eq!(answer.code, 0, "{args:?}: {}{}", answer.out, answer.err);
    answer.out
}

fn listed(lab: &Lab, args: &[&str]) -> Vec<Value> {
    let mut all = vec!["list", "--json"];
    all.extend(args);
    done(lab, &all).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn shown(lab: &Lab, id: &str) -> Value {
    serde_json::from_str(&done(lab, &["show", id, "--json"])).unwrap()
}

fn forked(lab: &Lab, args: &[&str]) -> String {
    let mut all = vec!["fork"];
    all.extend(args);
    let told = done(lab, &all);
    told.split_whitespace().nth(1).unwrap().to_owned()
}

#[track_caller]
fn verified(lab: &Lab) {
    let verified = lab.user.run(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
}

fn database(lab: &Lab, segment: u32) -> PathBuf {
    lab.user.ledger_dir().join(format!("ledger/{segment:04}.db"))
}

#[test]
fn cli_5_a_fork_goes_on_from_the_middle_and_the_old_session_stays_as_it_is() {
    let lab = Lab::new(Language::Python);
    let mut turns = lab.good_turns();
    turns.truncate(3);
    turns.push(say("Wrong code.", &[write("sums.py", &lab.language.wrong_solution())]));
    lab.run(&[], &turns).assert_not_done(1);
    let old = listed(&lab, &[])[0]["id"].as_str().unwrap().to_owned();
    let before = shown(&lab, &old);
    assert_eq!(before["steps"].as_array().unwrap().len(), 2);

    let fork = forked(&lab, &[&old, "--at", "turn:3"]);
    assert_ne!(fork, old);
    let forked_one = shown(&lab, &fork);
    assert_eq!(forked_one["turns"], 3);
    assert_eq!(forked_one["forked_from"]["session"], old.as_str());
    assert_eq!(forked_one["task"], before["task"]);
    assert_eq!(forked_one["steps"].as_array().unwrap().len(), 1, "{forked_one}");
    let mut after = shown(&lab, &old);
    assert_eq!(after["forks"], json!([fork.as_str()]));
    after["forks"] = json!([]);
    assert_eq!(after, before);

    // The last session is the fork, and it ends well, while the old one keeps its wrong step.
    let answer = resumed(&lab);
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    assert_eq!(lab.user.read("sums.py"), lab.language.solution());
    let database = database(&lab, 1);
    let stored = StoredSession::read(&database, &old).unwrap();
    assert_eq!((stored.turns.len(), stored.done()), (4, None));
    assert_eq!(stored.open_steps().count(), 2);
    verified(&lab);
}

#[test]
fn a_fork_at_a_step_has_no_step_after_it_and_one_that_never_was_is_refused() {
    let lab = Lab::new(Language::Python);
    let mut turns = lab.good_turns();
    turns.truncate(1);
    // Two steps of one turn.
    let (test, text) = lab.language.test();
    turns.push(say("Two tests.", &[write(test, text), write("test_more.py", text)]));
    lab.run(&[], &turns).assert_not_done(1);
    let old = listed(&lab, &[])[0]["id"].as_str().unwrap().to_owned();
    let fork = forked(&lab, &[&old, "--at", "1"]);
    let steps = shown(&lab, &fork)["steps"].clone();
    assert_eq!(steps.as_array().unwrap().len(), 1, "{steps}");
    let whole = forked(&lab, &[&old]);
    assert_eq!(shown(&lab, &whole)["steps"].as_array().unwrap().len(), 2);
    let diff = |id: &str| done(&lab, &["diff", id]);
    assert_eq!(diff(&whole), diff(&old));
    // The calls ran at the same time, so either of them may be the first step.
    let only = diff(&fork);
    assert_eq!([test, "test_more.py"].iter().filter(|name| only.contains(**name)).count(), 1);
    // Contents are the fork's own.
    done(&lab, &["rm", &old]);
    assert!(diff(&whole).contains("test_more.py"));
    for odd in ["step:9", "turn:9", "never"] {
        let answer = session(&lab, &["fork", &whole, "--at", odd]);
        assert_eq!(answer.code, 2, "{odd}: {}{}", answer.out, answer.err);
    }
    verified(&lab);
}

#[test]
fn cli_5_a_session_that_was_cut_off_by_damage_goes_on_as_a_fork_of_what_is_left() {
    let lab = Lab::new(Language::Python);
    let mut turns = lab.good_turns();
    turns.truncate(3);
    lab.run(&[], &turns).assert_not_done(1);
    let old = listed(&lab, &[])[0]["id"].as_str().unwrap().to_owned();
    // The answer to the third turn is forged.
    let connection = rusqlite::Connection::open(database(&lab, 1)).unwrap();
    let last: i64 = connection
        .query_row(
            "SELECT max(seq) FROM entries WHERE instr(detail, '\"session_entry\":\"answered\"')",
            [],
            |row| row.get(0),
        )
        .unwrap();
    connection.execute("UPDATE entries SET input = x'00' WHERE seq = ?1", [last]).unwrap();
    connection.close().unwrap();

    let refused = resumed(&lab);
    assert_eq!(refused.code, 6, "{}", refused.out);
    assert!(refused.out.contains(&format!("entry {last}:")), "{}", refused.out);
    assert!(refused.out.contains(&format!("fork {old} --at turn:2")), "{}", refused.out);
    // Its fix works: what lies before is proved, and the damage is set aside by the kernel that starts.
    let fork = forked(&lab, &[&old, "--at", "turn:2"]);
    assert!(database(&lab, 2).exists());
    let told = shown(&lab, &fork);
    assert_eq!((&told["turns"], &told["forked_from"]["session"]), (&json!(2), &json!(old)));
    // What is left of the old one is listed, is not gone on with, and can be forked.
    let list = listed(&lab, &[]);
    let cut = list.iter().find(|session| session["id"] == old.as_str()).unwrap();
    assert_eq!(cut["state"], "cut off", "{cut}");
    let refused = session(&lab, &["resume", &old]);
    assert_eq!(refused.code, 6, "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("session fork"), "{}", refused.err);
    let again = forked(&lab, &[&old]);
    assert_eq!(shown(&lab, &again)["turns"], 3);
    let answer = resumed(&lab);
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    assert_eq!(lab.user.read("sums.py"), lab.language.solution());
}

/// Starts and ends a kernel of the project so many days from now.
fn kernel_in(lab: &Lab, days: u64) {
    let dir = lab.user.ledger_dir();
    let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
    let state = lab.user.project.state().join("fluffy");
    let layout = Layout::new(&dir, state.join("checkpoints").join(format!("{name}.note")));
    let key = SigningKey::load(&state.join("keys").join(format!("{name}.key"))).unwrap().unwrap();
    let policy = PolicyFile::parse("policy.yaml", "version: 1\n").unwrap();
    let registry = Registry::with_builtins().unwrap();
    let mut config = KernelConfig::new(policy, registry, layout, key);
    let now = fluffy_base::Clock::now_ms(&fluffy_base::SystemClock);
    config.clock = Arc::new(VirtualClock::new(now + days * 86_400_000, 1));
    config.sessions = Some(dir.join("sessions"));
    Kernel::boot(config).unwrap().close().unwrap();
}

#[test]
fn cli_5_a_session_is_archived_after_thirty_days_and_resumed_from_there_to_the_byte() {
    let lab = Lab::new(Language::Python);
    let mut turns = lab.good_turns();
    turns.truncate(3);
    lab.run(&[], &turns).assert_not_done(1);
    let id = listed(&lab, &[])[0]["id"].as_str().unwrap().to_owned();
    let files = lab.user.ledger_dir().join("sessions").join(&id);
    let archive = lab.user.ledger_dir().join(format!("session-archive/{id}.tar"));
    kernel_in(&lab, 29);
    assert!(files.exists() && !archive.exists());
    // Looked for once a day.
    kernel_in(&lab, 29);
    assert_eq!(listed(&lab, &[]).len(), 1);
    kernel_in(&lab, 31);
    assert!(!files.exists() && archive.exists());
    verified(&lab);
    assert_eq!(listed(&lab, &[]), Vec::<Value>::new());
    let all = listed(&lab, &["--all"]);
    assert!(all[0]["archived_ms"].as_u64().is_some(), "{all:?}");
    assert!(shown(&lab, &id)["archived_ms"].as_u64().is_some());
    // Anybody can open it.
    let names = std::process::Command::new("tar").arg("-tf").arg(&archive).output().unwrap();
    assert!(names.status.success() && names.stdout.starts_with(b"blobs/"), "{names:?}");

    // A changed archive is told, and nothing is sent.
    let whole = std::fs::read(&archive).unwrap();
    let mut forged = whole.clone();
    forged[600] ^= 1;
    std::fs::write(&archive, &forged).unwrap();
    let refused = resumed(&lab);
    assert_eq!(refused.code, 6, "{}", refused.out);
    assert!(refused.out.contains("was changed on disk"), "{}", refused.out);
    std::fs::remove_file(&archive).unwrap();
    assert_eq!(resumed(&lab).code, 6);
    std::fs::write(&archive, &whole).unwrap();

    // A fork needs nothing but the archive, which stays.
    let fork = forked(&lab, &[&id]);
    assert!(done(&lab, &["diff", &fork]).contains("test_double.py"));
    assert!(archive.exists() && !files.exists());
    done(&lab, &["rm", &fork]);
    let provider = format!("replay:{}", lab.user.project.path("transcript.jsonl").display());
    lab.transcript(&lab.good_turns());
    done(&lab, &["resume", &id, "--provider", &provider]);
    assert_eq!(lab.user.read("sums.py"), lab.language.solution());
    assert!(!archive.exists());
    assert_eq!(shown(&lab, &id)["archived_ms"], Value::Null);
    verified(&lab);
}

#[test]
fn the_last_session_is_resumed_by_name_of_being_the_last() {
    let lab = Lab::new(Language::Python);
    let mut turns = lab.good_turns();
    turns.truncate(3);
    lab.run(&[], &turns).assert_not_done(1);
    let provider = format!("replay:{}", lab.transcript(&lab.good_turns()).display());
    done(&lab, &["resume", "--last", "--provider", &provider]);
    assert_eq!(lab.user.read("sums.py"), lab.language.solution());
    let both = session(&lab, &["resume", "--last", "some"]);
    assert_eq!(both.code, 2, "{}", both.err);
}
