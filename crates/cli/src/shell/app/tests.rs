//! The conversation without a terminal and without a kernel: what keys and events lead to.

use std::sync::mpsc::{Receiver, channel};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use fluffy_base::VirtualClock;
use fluffy_kernel::Scope;

use super::*;
use crate::commands::run::{Done, Ending, Outcome};
use crate::shell::surface::{Screen as Drawn, bare};
use crate::wire::{Bytes, ChatWork};

struct Scene {
    app: App,
    clock: Arc<VirtualClock>,
    drawn: Drawn,
    terminal: vt100::Parser,
    effects: Vec<Effect>,
}

impl Scene {
    fn new() -> Self {
        Self::of_size(60, 20)
    }

    fn of_size(width: u16, height: u16) -> Self {
        let clock = Arc::new(VirtualClock::new(1_000_000, 0));
        let app = App::new(Setup {
            size: (width.into(), height.into()),
            colour: false,
            mode: Mode::Strict,
            access: Access::Write,
            pins: Vec::new(),
            history: History::default(),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
        });
        let terminal = vt100::Parser::new(height, width, 0);
        Self { app, clock, drawn: Drawn::default(), terminal, effects: Vec::new() }
    }

    fn on(&mut self, message: Message) {
        let effects = self.app.on(message);
        self.effects.extend(effects);
        self.draw();
    }

    fn draw(&mut self) {
        self.app.refresh();
        let text = self.app.stage.draw(&mut self.drawn);
        self.terminal.process(text.as_bytes());
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        self.on(Message::Input(Input::Key(KeyEvent::new(code, modifiers))));
    }

    fn key(&mut self, c: char) {
        self.press(KeyCode::Char(c), KeyModifiers::NONE);
    }

    fn control(&mut self, c: char) {
        self.press(KeyCode::Char(c), KeyModifiers::CONTROL);
    }

    fn typed(&mut self, text: &str) {
        text.chars().for_each(|c| self.key(c));
    }

    fn sent(&mut self, text: &str) {
        self.typed(text);
        self.press(KeyCode::Enter, KeyModifiers::NONE);
    }

    fn told(&mut self, event: Event) {
        self.on(Message::Told(event));
    }

    fn begun(&mut self) {
        self.sent("fix it");
        self.told(Event::SessionStarted {
            session_id: "session-0123456789abcdef".to_owned(),
            mode: "strict".to_owned(),
            provider: "replay".to_owned(),
            model: String::new(),
            policy: String::new(),
            notes: Vec::new(),
        });
        self.effects.clear();
    }

    fn asked(&mut self, scopes: Vec<Scope>, phrase: Option<&str>) -> Receiver<Reply> {
        let (reply, answer) = channel();
        let asked = Asked {
            action: "fs.write Cargo.toml: write".to_owned(),
            reasons: vec!["Cargo.toml builds the project (rule `builds`)".to_owned()],
            notes: Vec::new(),
            given: String::new(),
            diff: Some("--- Cargo.toml\n+++ Cargo.toml\n+evil\u{1b}[2J\n".to_owned()),
            beforehand: true,
            phrase: phrase.map(str::to_owned),
            scopes,
            exception: None,
        };
        self.on(Message::Asked(Box::new(asked), reply));
        answer
    }

    fn text(&self) -> String {
        self.terminal.screen().contents().trim_end().to_owned()
    }
}

/// What the conversation asks before it does something.
fn confirm() -> Message {
    let reply = serde_json::json!({
        "kind": "confirm", "text": "Shall I run `mail`?", "streamed": false, "verbose": false,
        "pending": {"id": "p1", "expires_ms": 1, "digest": "d", "steps": []},
        "task": null, "session": null, "failure": null,
        "trace": {"intent": "skill", "understood_by": null, "odd": null, "resolved": [], "plan": [],
            "records": [], "anchors": []},
    });
    Message::Ended(Ok(Box::new(End::Chat(Box::new(serde_json::from_value(reply).unwrap())))))
}

#[test]
fn a_yes_that_was_typed_before_the_question_came_confirms_nothing() {
    let confirms = |effect: &Effect| match effect {
        Effect::Turn(ChatWork::Confirm { .. }) => true,
        Effect::Turn(ChatWork::Say(say)) => say.answers.is_some(),
        _ => false,
    };
    let mut scene = Scene::new();
    scene.begun();
    scene.sent("yes");
    scene.on(confirm());
    assert!(scene.effects.is_empty(), "what waits goes on waiting: {:?}", scene.effects);
    scene.sent("yes");
    assert!(!scene.effects.iter().any(confirms), "{:?}", scene.effects);
    let mut scene = Scene::new();
    scene.begun();
    scene.on(confirm());
    scene.key('y');
    assert!(scene.effects.is_empty());
    scene.control('u');
    scene.clock.advance(SEEN_MS);
    assert!(scene.text().contains("? agree?  y yes · n no"), "{}", scene.text());
    scene.key('y');
    let pending = "p1".to_owned();
    assert_eq!(scene.effects, [Effect::Turn(ChatWork::Confirm { pending })]);
}

fn done(summary: &str) -> Message {
    let done = Done {
        summary: summary.to_owned(),
        files_changed: vec!["a.rs".to_owned()],
        turns: 2,
        ledger_root: "root".to_owned(),
    };
    Message::Ended(Ok(Box::new(End::Task(Outcome::Completed(done)))))
}

fn said(effect: &Effect) -> Option<&str> {
    match effect {
        Effect::Turn(ChatWork::Say(say)) => Some(&say.text),
        _ => None,
    }
}

#[test]
fn cli_2_a_task_is_seen_from_the_message_to_its_end() {
    let mut scene = Scene::new();
    scene.begun();
    scene.told(Event::TextDelta { text: "I write a **test** fir".to_owned() });
    scene.told(Event::TextDelta { text: "st.\n".to_owned() });
    scene.told(Event::StateChanged { from: "idle".to_owned(), to: "test_writing".to_owned() });
    scene.told(Event::ToolStarted {
        call_id: "1".to_owned(),
        tool: "fs.write".to_owned(),
        summary: "tests/a.rs".to_owned(),
    });
    scene.typed("meanwhile");
    scene.clock.advance(3000);
    scene.on(Message::Resumed);
    insta::assert_snapshot!(scene.text(), @"
    > fix it

    │ fluffy  strict mode, replay, session 01234567

      I write a test first.

    │ → writing tests: code comes after a failing test

    ⠋ fs.write tests/a.rs  3 s  Ctrl-C ends it
    > meanwhile
    strict mode · test writing
    ");
    scene.on(done("Fixed **it**."));
    insta::assert_snapshot!(scene.text(), @"
    > fix it

    │ fluffy  strict mode, replay, session 01234567

      I write a test first.

    │ → writing tests: code comes after a failing test

      Fixed it.

    │ ✓ done  1 file · 2 turns · 3.0 s

    > meanwhile
    strict mode · idle
    ");
}

#[test]
fn a_message_that_is_sent_while_something_is_under_way_waits_for_its_end() {
    let mut scene = Scene::new();
    scene.begun();
    scene.sent("and then this");
    assert!(scene.effects.is_empty() && scene.text().contains("waits: and then this"));
    scene.on(done("First."));
    assert_eq!(scene.effects.iter().filter_map(said).collect::<Vec<_>>(), ["and then this"]);
    assert!(!scene.text().contains("waits:"));
}

#[test]
fn cli_2_single_keys_answer_a_question_that_was_seen() {
    for (key, expected) in [
        ('y', Reply::yes(Scope::Once)),
        ('s', Reply::yes(Scope::Session)),
        ('r', Reply::yes(Scope::Rule)),
        ('n', Reply::no(None)),
    ] {
        let mut scene = Scene::new();
        scene.begun();
        let answer = scene.asked(vec![Scope::Once, Scope::Session, Scope::Rule], None);
        assert!(scene.text().contains("? agree?  y once · s for this session · r as a"));
        scene.clock.advance(SEEN_MS);
        scene.key(key);
        assert_eq!(answer.try_recv(), Ok(expected));
        assert!(!scene.text().contains("? agree"));
    }
}

#[test]
fn what_is_not_offered_is_no_answer() {
    let mut scene = Scene::new();
    scene.begun();
    let answer = scene.asked(vec![Scope::Once], None);
    scene.clock.advance(SEEN_MS);
    scene.key('s');
    assert!(answer.try_recv().is_err());
    assert_eq!(scene.app.stage.editor.text(), "s");
}

#[test]
fn whoever_types_when_a_question_comes_agrees_to_nothing() {
    let mut scene = Scene::new();
    scene.begun();
    scene.typed("wa");
    let answer = scene.asked(vec![Scope::Once], None);
    scene.clock.advance(SEEN_MS);
    scene.typed("y");
    assert!(answer.try_recv().is_err());
    assert!(scene.text().contains("/approve or /reject"));
    let mut scene = Scene::new();
    scene.begun();
    let answer = scene.asked(vec![Scope::Once], None);
    scene.typed("yes, it is");
    assert!(answer.try_recv().is_err(), "it was typed before the question could be read");
    scene.control('u');
    scene.clock.advance(SEEN_MS);
    scene.on(Message::Input(Input::Paste("y".to_owned())));
    assert!(answer.try_recv().is_err(), "what is pasted is no key");
    scene.control('u');
    scene.sent("/approve");
    assert_eq!(answer.try_recv(), Ok(Reply::yes(Scope::Once)));
}

#[test]
fn a_no_may_have_words_and_a_phrase_is_typed() {
    let mut scene = Scene::new();
    scene.begun();
    let answer = scene.asked(vec![Scope::Once], None);
    scene.clock.advance(SEEN_MS);
    scene.key('m');
    scene.typed("y");
    scene.press(KeyCode::Esc, KeyModifiers::NONE);
    assert!(answer.try_recv().is_err());
    scene.control('u');
    scene.key('m');
    scene.sent("use the old name");
    assert_eq!(answer.try_recv(), Ok(Reply::no(Some("use the old name".to_owned()))));
    let answer = scene.asked(vec![Scope::Once], Some("delete all"));
    scene.clock.advance(SEEN_MS);
    scene.key('y');
    assert!(answer.try_recv().is_err());
    scene.control('u');
    scene.sent("/approve");
    assert!(answer.try_recv().is_err(), "no command stands for a phrase");
    scene.sent("delete all");
    let phrase = Some("delete all".to_owned());
    assert_eq!(
        answer.try_recv(),
        Ok(Reply::Typed { yes: true, phrase, scope: Scope::Once, words: None })
    );
    let answer = scene.asked(vec![Scope::Once], None);
    scene.sent("/reject not like this");
    assert_eq!(answer.try_recv(), Ok(Reply::no(Some("not like this".to_owned()))));
    scene.sent("/approve");
    assert!(scene.text().contains("no question is open"));
}

#[test]
fn ctrl_c_clears_the_line_then_ends_the_work_then_leaves() {
    let mut scene = Scene::new();
    scene.begun();
    let answer = scene.asked(vec![Scope::Once], None);
    scene.typed("text");
    scene.control('c');
    assert!(scene.app.stage.editor.is_empty() && scene.effects.is_empty());
    scene.control('c');
    assert_eq!(scene.effects, [Effect::Cancel]);
    assert!(answer.recv().is_err(), "who asked is told that nobody answers");
    assert!(scene.text().contains("Ctrl-C again leaves"));
    scene.control('c');
    assert_eq!(scene.effects.last(), Some(&Effect::Leave));
    let mut scene = Scene::new();
    scene.control('c');
    scene.clock.advance(TWICE_MS + 1);
    scene.control('c');
    assert!(scene.effects.is_empty(), "slowly is not twice");
    scene.control('d');
    assert_eq!(scene.effects, [Effect::Leave]);
}

#[test]
fn keys_edit_complete_and_bring_earlier_messages_back() {
    let mut scene = Scene::new();
    let files = vec!["src/lib.rs".to_owned(), "src/main.rs".to_owned()];
    scene.on(Message::Words(Words { files, skills: Vec::new() }));
    scene.typed("look at @sr");
    scene.press(KeyCode::Tab, KeyModifiers::NONE);
    assert_eq!(scene.app.stage.editor.text(), "look at @src/");
    scene.press(KeyCode::Tab, KeyModifiers::NONE);
    scene.press(KeyCode::Tab, KeyModifiers::NONE);
    scene.press(KeyCode::Tab, KeyModifiers::NONE);
    assert_eq!(scene.app.stage.editor.text(), "look at @src/main.rs");
    scene.press(KeyCode::Enter, KeyModifiers::ALT);
    scene.typed("two \\");
    scene.press(KeyCode::Enter, KeyModifiers::NONE);
    scene.typed("three");
    scene.press(KeyCode::Enter, KeyModifiers::NONE);
    let message = "look at @src/main.rs\ntwo \nthree";
    assert_eq!(scene.effects.iter().filter_map(said).collect::<Vec<_>>(), [message]);
    scene.typed("draft");
    scene.press(KeyCode::Up, KeyModifiers::NONE);
    assert_eq!(scene.app.stage.editor.text(), message);
    scene.press(KeyCode::Down, KeyModifiers::NONE);
    assert_eq!(scene.app.stage.editor.text(), "draft");
    scene.control('r');
    scene.typed("two");
    assert!(scene.text().contains("search: two"), "{}", scene.text());
    scene.press(KeyCode::Enter, KeyModifiers::NONE);
    assert_eq!(scene.app.stage.editor.text(), message, "what was found is looked at first");
    scene.control('r');
    scene.press(KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!(scene.app.stage.editor.text(), message);
}

#[test]
fn cli_1_commands_are_offered_while_they_are_typed_and_wrong_ones_are_explained() {
    let mut scene = Scene::new();
    scene.typed("/st");
    insta::assert_snapshot!(scene.text(), @"
    > /st
      /strict  tests first; for the session and what follows
      /status  where the session stands, what it has done, who…
    ");
    scene.control('u');
    scene.sent("/stats");
    assert!(scene.text().contains("did you mean /status?"), "{}", scene.text());
    scene.sent("/undo");
    assert!(scene.text().contains("there is no session yet"));
    scene.sent("/pin ../../etc/passwd");
    assert!(scene.text().contains("it is not pinned"), "{}", scene.text());
    scene.sent("/pin src/lib.rs");
    assert!(scene.text().contains("1 pinned"));
    assert!(scene.effects.is_empty());
    scene.sent("/explore");
    scene.sent("go");
    match scene.effects.as_slice() {
        [Effect::Turn(ChatWork::Say(say))] => {
            assert_eq!(
                (say.mode, say.pins.as_slice()),
                (Mode::Explore, &["src/lib.rs".to_owned()][..])
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn cli_1_commands_reach_the_session_whether_it_runs_or_not() {
    let mut scene = Scene::new();
    scene.begun();
    scene.sent("/explore");
    scene.sent("/grants 3");
    scene.sent("/diff");
    let steered = [Act::Mode(Mode::Explore), Act::Revoke(3), Act::Diff].map(Effect::Steer);
    assert_eq!(scene.effects, steered);
    scene.sent("/undo");
    assert!(scene.text().contains("something is under way"));
    scene.effects.clear();
    scene.on(done("Done."));
    scene.sent("/undo");
    let session = Some("session-0123456789abcdef".to_owned());
    assert_eq!(scene.effects, [Effect::Act { session, act: Act::Undo }]);
    let shown = Bytes(b"step 2 is taken back\n".to_vec());
    scene.on(Message::Ended(Ok(Box::new(End::Done(shown)))));
    assert!(scene.text().contains("│ step 2 is taken back"));
}

#[test]
fn cli_1_what_is_done_while_the_person_leaves_is_told_and_nothing_is_sent_after_it() {
    let mut scene = Scene::new();
    scene.begun();
    scene.sent("and the next");
    let Message::Ended(Ok(end)) = done("Both are fixed.") else { panic!("it has ended") };
    assert!(!end.is_cancelled());
    scene.app.last(end);
    scene.draw();
    assert!(scene.text().contains("Both are fixed."), "{}", scene.text());
    assert!(!scene.text().contains("and the next"), "{}", scene.text());
    assert!(scene.app.on(Message::Resumed).is_empty());
    assert!(End::Task(Outcome::Cancelled).is_cancelled());
    assert!(End::Error(crate::explain::Explained::cancelled()).is_cancelled());
}

#[test]
fn an_error_is_told_with_its_reason_and_a_way_out() {
    let mut scene = Scene::new();
    scene.begun();
    let ending = Ending {
        what: "the task failed".to_owned(),
        why: "a\u{1b}]0;title\u{7} hostile reason".to_owned(),
        fix: "try again".to_owned(),
    };
    scene.on(Message::Ended(Ok(Box::new(End::Task(Outcome::Failed(ending))))));
    assert!(scene.text().contains("│ ERROR: the task failed"), "{}", scene.text());
    assert!(scene.text().contains("│ Fix: try again"));
    let ending = Ending {
        what: "it failed".to_owned(),
        why: "for a reason that is a good deal longer than the screen is wide".to_owned(),
        fix: "read it to its end".to_owned(),
    };
    scene.on(Message::Ended(Ok(Box::new(End::Task(Outcome::Failed(ending))))));
    assert!(
        scene.text().contains("a good deal longer than\n│   the screen is wide"),
        "{}",
        scene.text()
    );
    scene.on(Message::Ended(Err(CliError::NoProvider)));
    assert!(scene.text().contains("│ ERROR:") && scene.text().contains("│ Fix:"));
}

#[test]
fn cli_2_nothing_hostile_in_events_questions_and_file_names_acts() {
    let hostile = "\x1b]52;c;ZXZpbA==\x07\x1b]0;t\x07\x1b[2J\x1b[1;1H\u{9b}2J\x1b[201~\0\u{202e}x\u{200b}\r> y\n│ fake";
    let mut scene = Scene::new();
    scene.begun();
    let text = || hostile.to_owned();
    for event in [
        Event::TextDelta { text: text() },
        Event::ToolStarted { call_id: text(), tool: text(), summary: text() },
        Event::ToolFinished {
            call_id: text(),
            tool: text(),
            decision: "denied".to_owned(),
            rule: Some(text()),
            reason: Some(text()),
            success: false,
            duration_ms: 1,
            summary: text(),
            error: Some(text()),
            entry: Some(text()),
        },
        Event::StateChanged { from: text(), to: text() },
        Event::TestsFinished {
            passed: 1,
            failed: 1,
            skipped: 0,
            ids_failed: vec![text()],
            not_run: vec![text()],
        },
        Event::ProviderRetry { what: text(), wait_ms: 1, attempt: 1, discarded: false },
        Event::SandboxPending { what: text(), progress: Some(40) },
        Event::MergeCompleted {
            files: vec![fluffy_base::MergedFile { path: text(), change: "added".to_owned() }],
            commit: Some(text()),
        },
    ] {
        scene.told(event);
    }
    drop(scene.asked(vec![Scope::Once], Some(hostile)));
    scene.on(done(hostile));
    scene.on(Message::Found(Ok(vec![text()])));
    scene.app.stage.editor.insert(hostile);
    scene.app.refresh();
    let mut drawn = Drawn::default();
    let bytes = scene.app.stage.draw(&mut drawn);
    assert!(!bytes.contains(['\u{7}', '\0', '\u{9b}', '\u{202e}', '\u{200b}']));
    for row in bare(&scene.text()).lines() {
        assert!(!row.starts_with("> y") && !row.starts_with("│ fake"), "{row}");
    }
}

#[test]
fn a_long_change_opens_in_the_pager_and_goes_away_again() {
    let mut scene = Scene::new();
    scene.begun();
    let answer = scene.asked(vec![Scope::Once], None);
    scene.clock.advance(SEEN_MS);
    scene.key('d');
    let rows = scene.app.pager.as_ref().unwrap().rows().join("\n");
    assert!(rows.contains("+evil\\u{1b}[2J"), "{rows}");
    scene.key('y');
    assert!(answer.try_recv().is_err(), "in the pager a key is the pager's");
    scene.key('q');
    assert!(scene.app.pager.is_none());
    scene.key('n');
    assert_eq!(answer.try_recv(), Ok(Reply::no(None)));
}
