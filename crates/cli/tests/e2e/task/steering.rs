//! What a person does to a session beyond beginning it: a yes that reaches further, a no with words, and more to do.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use rusqlite::{Connection, OpenFlags};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::lab::{Lab, Language, Run, complete, run_tests, say, write};
use crate::program::{Answer, kill_working, typing, working};

/// A file that a person looks at first.
const LOOKED_AT: &str = "requirements.txt";

/// The task, in which a file that a person looks at is written twice.
fn writing_twice(lab: &Lab) -> Vec<Value> {
    let (test, text) = lab.language.test();
    let code = write("sums.py", &lab.language.solution());
    vec![
        say("A test.", &[write(test, text)]),
        say("Red.", &[run_tests()]),
        say("Code.", &[code, write(LOOKED_AT, "a\n")]),
        say("More.", &[write(LOOKED_AT, "a\nb\n")]),
        say("Green.", &[run_tests()]),
        complete(),
    ]
}

/// The questions about writing that file, each with its answer.
fn questions(run: &Run) -> Vec<Value> {
    let asked = run.all("review.requested").into_iter();
    let asked = asked.filter(|it| it["action"].as_str().unwrap().starts_with("fs.write"));
    let answers = run.all("review.answered");
    let answer = |it: &Value| answers.iter().find(|answer| answer["id"] == it["id"]).unwrap();
    asked.map(|it| (*answer(it)).clone()).collect()
}

/// A command about the session of this project, with the toolchains of the user.
fn session(lab: &Lab, args: &[&str]) -> Command {
    let run = lab.command(&[], &lab.good_turns());
    let path = run.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
    let mut command = lab.user.command(args);
    command.env("HOME", std::env::var_os("HOME").unwrap()).env("PATH", path);
    command
}

fn asked(lab: &Lab, args: &[&str]) -> Answer {
    Answer::of(session(lab, args).stdin(Stdio::null()).output().unwrap())
}

/// Says something more, with a model that goes on in these turns.
fn saying(lab: &Lab, turns: &[Value], text: &str) -> Command {
    let mut command = session(lab, &[]);
    let provider = format!("replay:{}", lab.transcript(turns).display());
    command.args(["session", "say", "--last", "--json", "--provider", &provider, text]);
    command
}

#[test]
fn cli_5_a_yes_for_the_session_is_asked_once_listed_and_revoked() {
    let lab = Lab::new(Language::Python);
    let run = Run::of(lab.typing(&[], &writing_twice(&lab), "s\ny\n"));
    run.assert_done();
    let questions = questions(&run);
    assert_eq!(questions.len(), 1, "{}", run.told());
    assert_eq!(questions[0]["scope"], "session", "{}", run.told());
    assert_eq!(lab.user.read(LOOKED_AT), "a\nb\n");
    let listed = asked(&lab, &["session", "grants", "--json"]).json_lines();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!((&listed[0]["tool"], &listed[0]["target"]), (&json!("fs.write"), &json!(LOOKED_AT)));
    assert_eq!(listed[0]["rules"], json!(["review-build-and-delivery"]));
    let status = asked(&lab, &["session", "status", "--json"]).json_lines().remove(0);
    assert_eq!((&status["state"], &status["mode"]), (&json!("done"), &json!("strict")), "{status}");
    assert_eq!((&status["turns"], &status["under_way"]), (&json!(6), &json!(false)), "{status}");
    assert_eq!(asked(&lab, &["session", "grants", "--revoke", "7"]).code, 2);
    let revoked = asked(&lab, &["session", "grants", "--revoke", "1"]);
    assert_eq!(revoked.code, 0, "{}{}", revoked.out, revoked.err);
    assert_eq!(asked(&lab, &["session", "grants", "--json"]).out, "");
    let log = lab.user.run(&["audit", "log", "--json", "--limit", "500"]).out;
    assert!(log.contains("a person agreed for the session") && log.contains("a grant is revoked"));
    assert_eq!(lab.user.run(&["audit", "verify"]).code, 0);
}

#[test]
fn cli_5_a_no_with_words_tells_the_model_what_to_do_instead() {
    let lab = Lab::new(Language::Python);
    let run =
        Run::of(lab.typing(&[], &writing_twice(&lab), "m\nno new packages\u{1b}[2J here\nn\n"));
    run.assert_done();
    let heard = lab.heard(&run);
    assert!(heard.contains("The person says: no new packages"), "{heard}");
    assert!(!heard.contains('\u{1b}'));
    let words = questions(&run)[0]["words"].as_str().unwrap().to_owned();
    assert!(words.starts_with("no new packages"), "{words}");
    assert!(!lab.root().join(LOOKED_AT).exists());
}

#[test]
fn pol_10_a_yes_as_a_rule_writes_the_exception_that_was_shown_and_the_call_goes_on() {
    let lab = Lab::new(Language::Python);
    let run = Run::of(lab.typing(&[], &writing_twice(&lab), "r\ny\n"));
    run.assert_done();
    assert_eq!(questions(&run).len(), 1, "{}", run.told());
    let updated = run.all("review.requested").into_iter();
    let mut updated =
        updated.filter(|it| it["action"].as_str().unwrap().starts_with("policy.update"));
    let diff = updated.next().unwrap()["diff"].as_str().unwrap().to_owned();
    let line = "      - { syscall: fs.write, actor: model, path_glob: [\"/requirements.txt\"] }";
    assert!(diff.contains(&format!("+    except:\n+{line}\n")), "{diff}");
    let policy = lab.user.read(".fluffy/policy.yaml");
    assert_eq!(
        policy.replace(&format!("    except:\n{line}\n"), ""),
        fluffy_policy::DEFAULT_POLICY
    );
    assert_eq!(lab.user.read(LOOKED_AT), "a\nb\n");
    let refused = Lab::new(Language::Python);
    let run = Run::of(refused.typing(&[], &writing_twice(&refused), "r\nn\nn\n"));
    run.assert_done();
    assert!(!refused.root().join(".fluffy/policy.yaml").exists());
    assert!(!refused.root().join(LOOKED_AT).exists());
}

/// The turns of a second piece of work.
fn more(lab: &Lab) -> Vec<Value> {
    let test = "from sums import triple\n\n\ndef test_triples():\n    assert triple(4) == 12\n";
    let code = lab.language.solution() + "\n\ndef triple(a):\n    return 3 * a\n";
    vec![
        say("A test.", &[write("test_triple.py", test)]),
        say("Red.", &[run_tests()]),
        say("Code.", &[write("sums.py", &code)]),
        say("Green.", &[run_tests()]),
        complete(),
    ]
}

#[test]
fn ipc_2_a_session_that_is_done_goes_on_with_what_the_person_says_next() {
    let lab = Lab::new(Language::Python);
    lab.run(&[], &lab.good_turns()).assert_done();
    let turns = [lab.good_turns(), more(&lab)].concat();
    let text = "now one that triples";
    let mut said = saying(&lab, &turns, text);
    // What is allowed is counted for each message.
    let run =
        Run::of(Answer::of(said.args(["--max-turns", "5"]).stdin(Stdio::null()).output().unwrap()));
    run.assert_done();
    let done = run.all("task.completed")[0];
    assert_eq!(done["files_changed"], json!(["sums.py", "test_triple.py"]), "{done}");
    assert!(lab.user.read("sums.py").contains("def triple"));
    assert_eq!(lab.git(&["rev-list", "--count", "HEAD"]).trim(), "3");
    let shown = asked(&lab, &["session", "show", "--json"]).json_lines().remove(0);
    assert_eq!((&shown["turns"], &shown["state"]), (&json!(11), &json!("done")), "{shown}");
    assert_eq!(shown["messages"][0]["text"], text);
    assert_eq!(asked(&lab, &["session", "list", "--json"]).json_lines().len(), 1);
    let page = asked(&lab, &["session", "export", "--markdown"]).out;
    assert!(page.contains("## The person says") && page.contains(text), "{page}");
    let exported = asked(&lab, &["session", "export", "--transcript"]).out;
    let lines: Vec<Value> =
        exported.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lab.user.run(&["audit", "verify"]).code, 0);
    let again = Lab::new(Language::Python);
    again.run(&[], &lines).assert_done();
    let run = saying(&again, &lines, text).stdin(Stdio::null()).output().unwrap();
    Run::of(Answer::of(run)).assert_done();
    assert_eq!(again.user.read("sums.py"), lab.user.read("sums.py"));
}

#[test]
fn ipc_2_a_message_survives_the_kernel_and_whoever_said_it() {
    let lab = Lab::new(Language::Python);
    lab.run(&[], &lab.good_turns()).assert_done();
    let turns = [lab.good_turns(), more(&lab)].concat();
    let mut child = saying(&lab, &turns, "now one that triples")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let Ok(event) = serde_json::from_str::<Value>(&line.unwrap()) else { break };
        if event["type"] == "state.changed" && event["to"] == "code_writing" {
            kill_working(&lab.user);
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(!lab.user.read("sums.py").contains("triple"));
    let provider = format!("replay:{}", lab.transcript(&turns).display());
    let mut resume = session(&lab, &["session", "resume", "--json", "--provider", &provider]);
    lab.transcript(&turns);
    let run = Run::of(Answer::of(resume.stdin(Stdio::null()).output().unwrap()));
    run.assert_done();
    assert!(lab.user.read("sums.py").contains("def triple"));
    let shown = asked(&lab, &["session", "show", "--json"]).json_lines().remove(0);
    assert_eq!(shown["messages"].as_array().unwrap().len(), 1, "{shown}");
}

#[test]
fn cli_5_a_grant_lasts_for_what_is_said_next_and_no_fork_has_it() {
    let lab = Lab::new(Language::Python);
    Run::of(lab.typing(&[], &writing_twice(&lab), "s\ny\n")).assert_done();
    let again = [
        say("A test.", &[write("test_more.py", "def test_more():\n    assert False\n")]),
        say("Red.", &[run_tests()]),
        say("Once more.", &[write(LOOKED_AT, "c\n")]),
        say("That is all.", &[]),
    ];
    let turns = [writing_twice(&lab), again.to_vec()].concat();
    let run = Run::of(typing(saying(&lab, &turns, "one more package"), "n\n"));
    assert!(questions(&run).is_empty(), "{}", run.told());
    let writes = run.answers("fs.write");
    assert_eq!(writes.last().unwrap()["decision"], "allowed", "{}", run.told());
    let forked = asked(&lab, &["session", "fork"]);
    assert_eq!(forked.code, 0, "{}", forked.err);
    let id = asked(&lab, &["session", "list", "--json"]).json_lines()[0]["id"].clone();
    let of_fork = asked(&lab, &["session", "grants", id.as_str().unwrap(), "--json"]);
    assert_eq!((of_fork.code, of_fork.out.as_str()), (0, ""), "{}", of_fork.err);
}

/// Kills what works for the project as soon as a grant is in its ledger, and most often before what was granted is done.
fn kill_once_granted(lab: &Lab, is_over: &dyn Fn() -> bool) {
    let granted = || -> rusqlite::Result<bool> {
        let database = lab.user.ledger_dir().join("ledger/0001.db");
        let ledger = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let kernels = working(&lab.user);
        for _ in 0..100 {
            let entry = r#"instr(detail, CAST('"session_entry":"granted"' AS BLOB)) > 0"#;
            let entry = format!("SELECT count(*) FROM entries WHERE {entry}");
            if ledger.query_row(&entry, [], |row| row.get::<_, i64>(0))? > 0 {
                kernels.into_iter().filter_map(Pid::from_raw).for_each(|pid| {
                    let _gone = kill_process(pid, Signal::KILL);
                });
                return Ok(true);
            }
        }
        Ok(false)
    };
    let projects = lab.user.project.state().join("fluffy/projects");
    let is_there = || std::fs::read_dir(&projects).is_ok_and(|mut dirs| dirs.next().is_some());
    // The ledger may not be there yet, or be in the making.
    while !(is_over() || is_there() && granted().unwrap_or(false)) {
        std::thread::yield_now();
    }
}

#[test]
fn aud_3_a_kernel_killed_between_a_persons_yes_and_what_it_is_for_knows_of_it() {
    for _ in 0..5 {
        let lab = Lab::new(Language::Python);
        let run = std::thread::scope(|scope| {
            // Whoever is asked about the merge again, because the kernel was killed late, says yes again.
            let run = scope.spawn(|| Run::of(lab.typing(&[], &writing_twice(&lab), "s\ny\ny\n")));
            kill_once_granted(&lab, &|| run.is_finished());
            run.join().unwrap()
        });
        run.assert_done();
        assert_eq!(questions(&run).len(), 1, "nobody is asked again: {}", run.told());
        assert_eq!(lab.user.read(LOOKED_AT), "a\nb\n");
        assert_eq!(asked(&lab, &["session", "grants", "--json"]).json_lines().len(), 1);
        assert_eq!(lab.user.run(&["audit", "verify"]).code, 0);
    }
}

#[test]
fn cli_1_what_is_said_to_nobody_or_says_nothing_is_refused_with_its_reason() {
    let lab = Lab::new(Language::Python);
    let provider = format!("replay:{}", lab.transcript(&[]).display());
    let said = |words: &[&str]| {
        let args = [&["session", "say", "--provider", provider.as_str()], words].concat();
        lab.user.run(&args)
    };
    for words in [&["more"][..], &["--last", "a", "b"]] {
        let answer = said(words);
        assert_eq!(answer.code, 2, "{words:?}: {}{}", answer.out, answer.err);
        assert!(answer.err.contains("it is not clear what is said"), "{}", answer.err);
    }
    // There is no session yet.
    for words in [&["--last", "more"][..], &["no-such-session", "more"]] {
        let answer = said(words);
        assert!(answer.code != 0 && answer.err.contains("Fix:"), "{words:?}: {}", answer.err);
    }
}
