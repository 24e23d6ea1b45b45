//! Debug mode is offered to the person after failures in a row, and taken by nobody else.

use serde_json::{Value, json};

use super::lab::{Lab, Language, Run, call, complete, run_tests, say, write};
use crate::program::{Answer, typing};

/// A test, code that is wrong, and so many runs that fail.
fn failing(lab: &Lab, runs: usize) -> Vec<Value> {
    let (test, text) = lab.language.test();
    let mut turns = vec![
        say("A test.", &[write(test, text)]),
        say("Red.", &[run_tests()]),
        say("Code.", &[write("sums.py", &lab.language.wrong_solution())]),
    ];
    turns.extend((0..runs).map(|_| say("Again.", &[run_tests()])));
    turns
}

fn right(lab: &Lab) -> [Value; 3] {
    [
        say("Right.", &[write("sums.py", &lab.language.solution())]),
        say("Green.", &[run_tests()]),
        complete(),
    ]
}

fn run_of(answer: Answer) -> Run {
    Run { events: answer.json_lines(), code: answer.code, err: answer.err }
}

/// The questions about the mode, each with its answer.
fn offers(run: &Run) -> Vec<(String, bool)> {
    let asked = run.all("review.requested").into_iter();
    let asked = asked.filter(|it| it["action"].as_str().unwrap().starts_with("session.set_mode"));
    let answer = |id: &Value| {
        let answered = run.all("review.answered").into_iter().find(|it| it["id"] == *id);
        answered.unwrap()["approved"].as_bool().unwrap()
    };
    asked.map(|it| (it["reasons"].to_string(), answer(&it["id"]))).collect()
}

/// A command about the session of this project, with the toolchains of the user.
fn session(lab: &Lab, args: &[&str]) -> std::process::Command {
    let run = lab.command(&[], &[]);
    let path = run.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
    let mut command = lab.user.command(args);
    command.env("HOME", std::env::var_os("HOME").unwrap()).env("PATH", path);
    command
}

fn mode(lab: &Lab) -> String {
    let shown = lab.user.run(&["session", "show", "--json"]);
    shown.json_lines()[0]["mode"].as_str().unwrap().to_owned()
}

#[test]
fn flo_4_a_person_who_takes_the_offer_goes_on_in_debug_mode_and_it_is_recorded() {
    let lab = Lab::new(Language::Python);
    let mut turns = failing(&lab, 3);
    turns.push(say("Right.", &[write("sums.py", &lab.language.solution())]));
    turns.push(complete());
    let run = run_of(lab.typing(&[], &turns, "y\ny\n"));
    run.assert_done();
    let asked = offers(&run);
    assert_eq!(asked.len(), 1, "{}", run.told());
    assert!(asked[0].1 && asked[0].0.contains("a person has to agree to debug mode"));
    assert!(run.err.contains("the tests failed 3 times in a row"), "{}", run.err);
    assert!(run.states().contains(&"exploring"), "{}", run.told());
    assert!(lab.heard(&run).contains(r#""mode":"debug""#), "{}", lab.heard(&run));
    assert_eq!(mode(&lab), "debug");
    let log = lab.user.run(&["audit", "log", "--json", "--limit", "500"]).out;
    let agreed = log.lines().find(|line| line.contains("a person agreed")).unwrap_or_default();
    assert!(agreed.contains("debug mode") && agreed.contains("at the terminal"), "{log}");
    assert!(log.contains("session_mode_change"), "{log}");
}

#[test]
fn flo_4_a_no_leaves_the_work_strict_and_one_row_of_failures_is_one_offer() {
    let lab = Lab::new(Language::Python);
    let turns: Vec<_> = failing(&lab, 6).into_iter().chain(right(&lab)).collect();
    let run = run_of(lab.typing(&[], &turns, "n\n"));
    run.assert_done();
    assert_eq!(offers(&run).iter().map(|it| it.1).collect::<Vec<_>>(), [false], "{}", run.told());
    assert!(!run.states().contains(&"exploring"), "{}", run.told());
    assert_eq!((mode(&lab), lab.user.read("sums.py")), ("strict".into(), lab.language.solution()));
}

#[test]
fn flo_4_where_nobody_can_be_asked_the_offer_is_a_line_that_says_how() {
    let lab = Lab::new(Language::Python);
    for options in [&[][..], &["--yes"]] {
        let turns: Vec<_> = failing(&lab, 4).into_iter().chain(right(&lab)).collect();
        let run = lab.run(options, &turns);
        run.assert_done();
        assert_eq!(offers(&run).iter().map(|it| it.1).collect::<Vec<_>>(), [false]);
        assert!(run.err.contains("to switch later: fluffy session mode debug"), "{}", run.err);
        assert_eq!(mode(&lab), "strict");
        lab.git(&["reset", "-q", "--hard", "HEAD~1"]);
    }
    let two = lab.run(&[], &failing(&lab, 2));
    assert!(two.all("review.requested").is_empty(), "two failures are none too many");
}

#[test]
fn flo_4_a_model_that_asks_for_a_mode_is_refused_and_nobody_is_asked() {
    let lab = Lab::new(Language::Python);
    let set = |mode: &str| call("session.set_mode", json!({ "mode": mode }));
    let mut turns = vec![say("Let me.", &[set("debug"), set("explore"), set("strict")])];
    turns.extend(failing(&lab, 3));
    turns.push(say("Now.", &[set("debug")]));
    turns.push(say("So.", &[write("test_double.py", "def test_nothing():\n    pass\n")]));
    let run = lab.run(&["--yes"], &turns);
    run.assert_not_done(1);
    let answers = run.answers("session.set_mode");
    assert_eq!(answers.len(), 4, "{}", run.told());
    for answer in answers {
        assert_eq!(
            (&answer["decision"], &answer["rule"]),
            (&json!("denied"), &json!("session.tools"))
        );
    }
    assert_eq!(offers(&run).len(), 1, "only the session's own: {}", run.told());
    assert_eq!(run.answers("fs.write").last().unwrap()["decision"], "denied", "{}", run.told());
    assert_eq!(mode(&lab), "strict");
}

#[test]
fn flo_4_a_person_switches_the_mode_of_a_session_and_it_goes_on_in_it() {
    let lab = Lab::new(Language::Python);
    let turns = failing(&lab, 1);
    let rest = [say("Right.", &[write("sums.py", &lab.language.solution())]), complete()];
    lab.run(&[], &turns).assert_not_done(1);
    let mut headless = session(&lab, &["session", "mode", "debug"]);
    let refused = Answer::of(headless.stdin(std::process::Stdio::null()).output().unwrap());
    assert_eq!(refused.code, 3, "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("Nobody can be asked"), "{}", refused.err);
    assert_eq!(typing(session(&lab, &["session", "mode", "debug"]), "n\n").code, 3);
    assert_eq!(mode(&lab), "strict");
    let agreed = typing(session(&lab, &["session", "mode", "debug"]), "y\n");
    assert_eq!(agreed.code, 0, "{}{}", agreed.out, agreed.err);
    assert!(agreed.out.contains("now works in debug mode"), "{}", agreed.out);
    assert_eq!(mode(&lab), "debug");
    // Back is not possible: code was written that no test came before.
    let back = typing(session(&lab, &["session", "mode", "strict"]), "y\n");
    assert_eq!(back.code, 3, "{}{}", back.out, back.err);
    assert!(back.err.contains("code was written without tests"), "{}", back.err);
    let all: Vec<Value> = turns.into_iter().chain(rest).collect();
    let provider = format!("replay:{}", lab.transcript(&all).display());
    let resume = session(&lab, &["session", "resume", "--json", "--provider", &provider]);
    lab.transcript(&all);
    let resumed = typing(resume, "y\n");
    assert_eq!(resumed.code, 0, "{}{}", resumed.out, resumed.err);
    assert_eq!(lab.user.read("sums.py"), lab.language.solution());
}
