//! What a recorded task looks like: at a terminal, in a log and as lines for programs.

use fluffy_base::VirtualClock;
use unicode_width::UnicodeWidthStr as _;

use super::*;
use crate::render::{JsonLines, Screen};

/// Keeps what is written.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

const LOG: Look = Look { colour: false, screen: None };
const SCREEN: Look = Look { colour: true, screen: Some(Screen::Columns(64)) };
const SLIM: Look = Look { colour: false, screen: Some(Screen::Columns(24)) };

fn usage(input_tokens: u64, output_tokens: u64) -> Event {
    let (cached_tokens, cost_usd) = (None, Some(fluffy_base::Usd::from_micros(10 * input_tokens)));
    Event::Usage { input_tokens, output_tokens, cached_tokens, cost_usd }
}

/// A watched task: what shows it, and what it wrote.
struct Watched {
    people: People,
    clock: Arc<VirtualClock>,
    progress: Kept,
    answer: Kept,
}

fn watch(look: Look) -> Watched {
    let (progress, answer) = (Kept::default(), Kept::default());
    let clock = Arc::new(VirtualClock::new(0, 0));
    let people = People::new(Parts {
        progress: Box::new(progress.clone()),
        answer: Box::new(answer.clone()),
        look,
        clock: clock.clone(),
    });
    Watched { people, clock, progress, answer }
}

fn shown(look: Look, events: Vec<Event>) -> (String, String) {
    let watched = watch(look);
    for event in events {
        watched.clock.advance(100);
        watched.people.notice(event);
    }
    (watched.progress.text(), watched.answer.text())
}

fn text(text: &str) -> Event {
    Event::TextDelta { text: text.to_owned() }
}

fn started(call: &str, tool: &str, summary: &str) -> Event {
    Event::ToolStarted {
        call_id: call.to_owned(),
        tool: tool.to_owned(),
        summary: summary.to_owned(),
    }
}

fn finished(call: &str, tool: &str, summary: &str) -> Event {
    Event::ToolFinished {
        call_id: call.to_owned(),
        tool: tool.to_owned(),
        decision: "allowed".to_owned(),
        rule: None,
        reason: None,
        success: true,
        duration_ms: 12,
        summary: summary.to_owned(),
        error: None,
        entry: None,
    }
}

fn denied(call: &str, tool: &str, rule: &str, reason: &str) -> Event {
    Event::ToolFinished {
        call_id: call.to_owned(),
        tool: tool.to_owned(),
        decision: "denied".to_owned(),
        rule: Some(rule.to_owned()),
        reason: Some(reason.to_owned()),
        success: false,
        duration_ms: 0,
        summary: String::new(),
        error: None,
        entry: Some("0f".repeat(32)),
    }
}

fn tests(passed: usize, failed: &[&str]) -> Event {
    let ids_failed: Vec<_> = failed.iter().map(|id| (*id).to_owned()).collect();
    let not_run = Vec::new();
    Event::TestsFinished { passed, failed: failed.len(), skipped: 0, ids_failed, not_run }
}

fn state(to: &str) -> Event {
    Event::StateChanged { from: String::new(), to: to.to_owned() }
}

#[test]
fn whoever_waits_for_a_busy_provider_is_told_why() {
    let retry = Event::ProviderRetry {
        what: "the provider is overloaded: \u{1b}[2Jbusy".to_owned(),
        wait_ms: 1_560,
        attempt: 2,
        discarded: true,
    };
    let (progress, _) = shown(LOG, vec![text("so "), retry]);
    let told = "the answer broke off and does not count; asked again in 1.5 s (attempt 2)";
    assert!(progress.contains(told), "{progress}");
    assert!(!progress.contains('\u{1b}'), "{progress}");
}

/// A whole task.
fn task() -> Vec<Event> {
    let reason = "Workflow denied: `src/text.js` is not writable in `test_writing` (strict mode): no test \
                  of this task has failed yet. Allowed instead: write a test and run it with `test.run`";
    vec![
        Event::SessionStarted {
            session_id: "session-4f0c2a1177aa4a4b9f670123456789ab".to_owned(),
            mode: "strict".to_owned(),
            provider: "replay".to_owned(),
            model: "demo".to_owned(),
            policy: "ab".repeat(32),
            notes: vec!["AGENTS.md".to_owned()],
        },
        state("planning"),
        text("I will look at the function "),
        text("and at its test first, to see what is expected of it so far."),
        started("1", "fs.read", "src/text.js"),
        started("2", "fs.read", "tests/text.test.js"),
        finished("2", "fs.read", "9 lines"),
        finished("1", "fs.read", "4 lines"),
        usage(900, 80),
        state("test_writing"),
        text("The cause is plain.\n"),
        started("3", "fs.write", "src/text.js"),
        denied("3", "fs.write", "workflow.writable", reason),
        started("4", "test.run", ""),
        tests(1, &["tests/edges.test.js > runs of marks", "tests/edges.test.js > 日本語"]),
        finished("4", "test.run", "1 suite"),
        state("code_writing"),
        Event::MergeCompleted {
            files: vec![
                MergedFile { path: "tests/edges.test.js".to_owned(), change: "added".to_owned() },
                MergedFile { path: "src/text.js".to_owned(), change: "modified".to_owned() },
            ],
            commit: Some("1a2b3c4".to_owned()),
        },
        usage(1100, 40),
        Event::TaskCompleted {
            summary: "slug() keeps letters and digits, joined by single hyphens.".to_owned(),
            files_changed: vec!["tests/edges.test.js".to_owned(), "src/text.js".to_owned()],
            turns: 8,
            ledger_root: "c0ffee".repeat(10),
        },
    ]
}

#[test]
fn cli_2_a_task_in_a_log_is_plain_and_its_answer_stands_alone() {
    let (progress, answer) = shown(LOG, task());
    assert_eq!(answer, "slug() keeps letters and digits, joined by single hyphens.\n");
    assert!(!progress.contains('\u{1b}'));
    insta::assert_snapshot!(progress);
}

#[test]
fn cli_2_a_task_at_a_terminal_has_marks_colours_and_timings_and_fits_the_screen() {
    let (progress, _) = shown(SCREEN, task());
    insta::assert_snapshot!(progress.replace('\u{1b}', "␛"));
    let (progress, _) = shown(Look { colour: false, ..SCREEN }, task());
    assert!(!progress.contains('\u{1b}'), "no colours where they are not wanted");
    check_fits(&progress, 64);
}

/// That every line fits a screen but the last, which is there to be copied.
#[track_caller]
fn check_fits(progress: &str, width: usize) {
    let mut running = progress.lines().filter(|line| !line.contains("ledger root"));
    assert!(running.all(|line| line.width() < width), "{progress}");
}

#[test]
fn a_narrow_terminal_does_not_break_lines() {
    let (progress, _) = shown(SLIM, task());
    check_fits(&progress, 24);
}

#[test]
fn cli_2_events_for_programs_are_counted_from_one_and_end_with_the_end() {
    let out = Kept::default();
    let clock = Arc::new(VirtualClock::new(1_000, 10));
    let lines = JsonLines::new(Box::new(out.clone()), clock);
    task().into_iter().for_each(|event| lines.notice(event));
    assert!(lines.failure().is_none());
    insta::assert_snapshot!(out.text());
    for (at, line) in out.text().lines().enumerate() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["seq"], at + 1);
        assert_eq!(value["v"], 1);
    }
}

/// What a hostile model or project would have a terminal do.
const HOSTILE: &str = "a\u{1b}[2J\u{1b}]52;c;eA==\u{7}\u{9b}31m\u{8}\rb\u{202e}c\n\u{7f}d";

fn hostile() -> Vec<Event> {
    vec![
        Event::SessionStarted {
            session_id: HOSTILE.to_owned(),
            mode: HOSTILE.to_owned(),
            provider: HOSTILE.to_owned(),
            model: HOSTILE.to_owned(),
            policy: HOSTILE.to_owned(),
            notes: vec![HOSTILE.to_owned()],
        },
        state(HOSTILE),
        text(HOSTILE),
        started(HOSTILE, HOSTILE, HOSTILE),
        finished(HOSTILE, HOSTILE, HOSTILE),
        denied(HOSTILE, HOSTILE, HOSTILE, HOSTILE),
        tests(1, &[HOSTILE]),
        Event::ReviewRequested {
            id: HOSTILE.to_owned(),
            action: HOSTILE.to_owned(),
            reasons: vec![HOSTILE.to_owned()],
            diff: Some(HOSTILE.to_owned()),
        },
        Event::ReviewAnswered {
            id: HOSTILE.to_owned(),
            approved: true,
            by: HOSTILE.to_owned(),
            scope: None,
            words: None,
        },
        Event::MergeCompleted {
            files: vec![MergedFile { path: HOSTILE.to_owned(), change: "added".to_owned() }],
            commit: Some(HOSTILE.to_owned()),
        },
        Event::TaskFailed {
            what: HOSTILE.to_owned(),
            why: HOSTILE.to_owned(),
            fix: HOSTILE.to_owned(),
        },
        Event::TaskCompleted {
            summary: HOSTILE.to_owned(),
            files_changed: vec![HOSTILE.to_owned()],
            turns: 1,
            ledger_root: HOSTILE.to_owned(),
        },
    ]
}

#[test]
fn nothing_hostile_reaches_a_terminal_from_any_event() {
    let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    for look in [LOG, SLIM, Look { colour: false, ..SCREEN }] {
        let (progress, answer) = shown(look, hostile());
        assert!(!progress.contains(obeyed), "{progress:?}");
        assert!(!answer.contains(obeyed), "{answer:?}");
    }
    let out = Kept::default();
    let lines = JsonLines::new(Box::new(out.clone()), Arc::new(VirtualClock::new(0, 0)));
    hostile().into_iter().for_each(|event| lines.notice(event));
    assert!(!out.text().contains(obeyed), "{:?}", out.text());
    let first = out.text();
    let value: serde_json::Value = serde_json::from_str(first.lines().nth(2).unwrap()).unwrap();
    assert_eq!(value["text"], HOSTILE, "programs get what was said");
}

#[test]
fn a_huge_text_in_one_event_is_cut_before_it_is_looked_at() {
    let huge = "x\u{1b}".repeat(1 << 20);
    let (progress, _) =
        shown(SCREEN, vec![started("1", &huge, &huge), finished("1", &huge, &huge)]);
    assert!(progress.len() < 1000);
}

#[test]
fn cli_2_whoever_waits_for_more_than_a_second_sees_what_for_and_the_line_goes_away_again() {
    let watched = watch(Look { colour: false, screen: Some(Screen::Columns(60)) });
    watched.people.notice(started("1", "test.run", "all"));
    watched.clock.advance(999);
    watched.people.tick();
    assert_eq!(watched.progress.text(), "");
    watched.clock.advance(1501);
    watched.people.tick();
    assert_eq!(watched.progress.text(), "\r\u{1b}[K  ⠴ test.run all  2 s");
    watched.people.notice(finished("1", "test.run", ""));
    assert!(watched.progress.text().ends_with("\r\u{1b}[K  ✓ test.run   all  12 ms\n"));
    watched.people.notice(over());
    let before = watched.progress.text();
    watched.clock.advance(10_000);
    watched.people.tick();
    assert_eq!(watched.progress.text(), before, "nothing turns once it is over");
}

/// The end of a task.
fn over() -> Event {
    Event::TaskFailed { what: "x".to_owned(), why: "y".to_owned(), fix: "z".to_owned() }
}

#[test]
fn a_status_below_half_a_line_of_text_brings_the_cursor_back() {
    let watched = watch(Look { colour: false, screen: Some(Screen::Columns(60)) });
    watched.people.notice(text("half a"));
    watched.clock.advance(1000);
    watched.people.tick();
    watched.people.notice(text(" line\n"));
    let expected =
        "half a\n\u{1b}[K  ⠋ waiting for the model  1 s\r\u{1b}[K\u{1b}[A\u{1b}[7G line\n";
    assert_eq!(watched.progress.text(), expected);
}

#[test]
fn there_is_no_status_line_in_a_log() {
    let watched = watch(LOG);
    watched.people.notice(started("1", "test.run", "all"));
    watched.clock.advance(10_000);
    watched.people.tick();
    assert_eq!(watched.progress.text(), "");
}

#[test]
fn nothing_is_written_over_a_question() {
    let watched = watch(SCREEN);
    let asked = Event::ReviewRequested {
        id: "review-1".to_owned(),
        action: "fs.write".to_owned(),
        reasons: vec![],
        diff: None,
    };
    watched.people.notice(asked);
    watched.people.notice(text("meanwhile"));
    watched.clock.advance(5000);
    watched.people.tick();
    assert_eq!(watched.progress.text(), "");
    let answered = Event::ReviewAnswered {
        id: "review-1".to_owned(),
        approved: true,
        by: "the user, at the terminal".to_owned(),
        scope: None,
        words: None,
    };
    watched.people.notice(answered);
    let text = watched.progress.text();
    assert!(text.contains("meanwhile") && text.contains("agreed: the user"), "{text}");
    let huge = Event::ReviewRequested {
        id: "review-2".to_owned(),
        action: String::new(),
        reasons: vec![],
        diff: None,
    };
    watched.people.notice(huge);
    for _ in 0..300 {
        watched.people.notice(Event::TextDelta { text: "word ".repeat(1000) });
    }
    assert!(watched.progress.text().len() > 1 << 20, "what waits is bounded");
}

#[test]
fn a_reader_who_has_gone_away_does_not_stop_the_task() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let lines = JsonLines::new(Box::new(Gone), Arc::new(VirtualClock::new(0, 0)));
    task().into_iter().for_each(|event| lines.notice(event));
    assert_eq!(lines.failure().unwrap().kind(), io::ErrorKind::BrokenPipe);
}
