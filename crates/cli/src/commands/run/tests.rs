//! What was typed becomes a request, and how a task ends becomes a code.

use std::ffi::OsString;

use clap::Parser;
use fluffy_base::Observer;
use fluffy_sandbox::RuntimeError;

use super::*;
use crate::providers::ProviderSpec;

#[derive(Debug, Parser)]
struct Typed {
    #[command(flatten)]
    args: TaskArgs,
}

fn request(words: &[&str]) -> Result<RunRequest, CliError> {
    let words: Vec<OsString> = ["run"].iter().chain(words).map(OsString::from).collect();
    let typed = Typed::try_parse_from(words).unwrap();
    let settings = Settings::of_person(&Environment::default())?;
    RunRequest::of(&typed.args, settings, &mut tempfile::tempfile().unwrap())
}

#[test]
fn what_was_typed_is_understood() {
    let words = ["--provider", "replay:a:b.jsonl", "--read-only", "--max-cost", "1.5", "fix it"];
    let expected = RunRequest {
        task: "fix it".to_owned(),
        mode: Mode::Strict,
        access: Access::ReadOnly,
        pins: Vec::new(),
        choice: Choice { provider: Some(ProviderSpec::Replay("a:b.jsonl".into())), model: None },
        caps: Caps { turns: 50, tokens: None, cost_micros: Some(1_500_000) },
    };
    assert_eq!(request(&words).unwrap(), expected);
}

#[track_caller]
fn check_usage(words: &[&str], what: &str, fix: &str) {
    let explained = request(words).unwrap_err().explained();
    assert_eq!((explained.what.as_str(), explained.code), (what, 2));
    assert!(explained.fix.contains(fix), "{}", explained.fix);
}

#[test]
fn cli_3_wrong_input_is_told_with_reason_and_fix_and_code_2() {
    check_usage(&["--provider", "gtp:x", "a"], "there is no provider `gtp:x`", "replay:FILE");
    check_usage(&["--provider", "replay:", "a"], "there is no provider `replay:`", "replay:FILE");
    check_usage(&["--provider", "replay:x"], "the task is empty", "fluffy \"what");
    check_usage(&["--provider", "replay:x", " "], "the task is empty", "fluffy \"what");
    let what = "`a lot` is not an amount of US dollars above 0, such as `0.50`";
    check_usage(&["--provider", "replay:x", "--max-cost", "a lot", "a"], what, "fluffy help");
}

fn ending() -> Ending {
    let text = |text: &str| text.to_owned();
    Ending { what: text("it stopped"), why: text("because"), fix: text("do this") }
}

fn done() -> Outcome {
    Outcome::Completed(Done {
        summary: "it is done".to_owned(),
        files_changed: vec![],
        turns: 1,
        ledger_root: String::new(),
    })
}

#[derive(Default)]
struct Noticed(std::sync::Mutex<Vec<Event>>);

impl Observer for Noticed {
    fn notice(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

/// How a task ends.
type End<'a> = &'a dyn Fn() -> Result<Outcome, CliError>;

fn ended(outcome: impl Fn() -> Result<Outcome, CliError>) -> (u8, Vec<Event>) {
    let noticed = Noticed::default();
    let look = Look { colour: false, screen: None };
    let reviewer = TaskReviewer::new(Said::No, Box::new(AtTerminal), look);
    let watched = Watched { observer: &noticed, reviewer: &reviewer, stop: &Stop::default() };
    let code = told(watched, &|_| outcome());
    let events = std::mem::take(&mut *noticed.0.lock().unwrap());
    (code, events)
}

#[test]
fn cli_3_every_end_of_a_task_has_its_exit_code_and_is_told_once() {
    let unavailable = || {
        let (what, fix) = ("no".to_owned(), "fix".to_owned());
        CliError::Sandbox(RuntimeError::Unavailable { what, fix })
    };
    let ends: [(u8, End<'_>); 9] = [
        (0, &|| Ok(done())),
        (1, &|| Ok(Outcome::Failed(ending()))),
        (2, &|| Err(CliError::NoProvider)),
        (3, &|| Ok(Outcome::Denied(ending()))),
        (4, &|| Err(unavailable())),
        (5, &|| Ok(Outcome::ProviderFailed(ending()))),
        (6, &|| Err(CliError::Ledger(fluffy_ledger::LedgerError::Damaged("x".into())))),
        (7, &|| Ok(Outcome::CapReached(ending()))),
        (130, &|| Ok(Outcome::Cancelled)),
    ];
    for (expected, end) in ends {
        let (code, events) = ended(end);
        assert_eq!((code, events.len()), (expected, 1));
        let completed = matches!(events[0], Event::TaskCompleted { .. });
        assert_eq!(completed, code == 0, "{events:?}");
    }
}

#[test]
fn what_was_said_of_reviews_is_one_thing() {
    assert_eq!(said(SaidArgs { yes: false, no: false }), Said::Nothing);
    assert_eq!(said(SaidArgs { yes: true, no: false }), Said::Yes);
    assert_eq!(said(SaidArgs { yes: false, no: true }), Said::No);
}
