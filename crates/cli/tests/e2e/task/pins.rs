//! Pinned files: read under the rules, and before the model's eyes to the end.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use fluffy_agent::{Agent, Caps, Conversation, Outcome, SessionBench, Spent};
use fluffy_base::{SessionId, SystemWaiter};
use fluffy_kernel::{
    CommitOptions, GitOptions, KernelConfig, Registry, Session, SessionConfig, WorkshopOptions,
};
use fluffy_ledger::{Layout, load_or_create_key};
use fluffy_policy::{DEFAULT_POLICY, PolicyFile};
use fluffy_provider::{
    Message, ModelRequest, Prices, Provider, ProviderError, Replay, StreamEvent,
};
use fluffy_sandbox::{Native, NativeOptions};
use fluffy_workflow::{Access, Conventions, Mode};
use serde_json::{Value, json};

use super::lab::{Lab, Language, call, complete, say};

const PINNED: &str = "Pinned by the person:\nsums.py\ndef add(a, b):\n    return a + b\n";

/// A transcript that remembers what it was asked, with a small window.
struct Witness {
    replay: Replay,
    asked: Mutex<Vec<ModelRequest>>,
}

impl Provider for Witness {
    fn name(&self) -> &str {
        self.replay.name()
    }

    fn model(&self) -> &str {
        self.replay.model()
    }

    fn prices(&self) -> Option<Prices> {
        None
    }

    fn context_window(&self) -> u64 {
        24_000
    }

    fn can_summarise(&self) -> bool {
        false
    }

    fn turn(
        &self,
        request: &ModelRequest,
        sink: &mut dyn FnMut(StreamEvent) -> ControlFlow<()>,
    ) -> Result<(), ProviderError> {
        self.asked.lock().unwrap().push(request.clone());
        self.replay.turn(request, sink)
    }
}

pub(super) fn config(lab: &Lab) -> SessionConfig {
    let program = env!("CARGO_BIN_EXE_fluffy");
    let state = lab.user.project.state();
    let runtime = Native::open(NativeOptions {
        program: program.into(),
        state: state.join("sandboxes"),
        path: Vec::new(),
        env: Vec::new(),
    });
    let key = load_or_create_key(&state.join("key"), [7; 32]).unwrap();
    let layout = Layout::new(state.join("ledger"), state.join("note"));
    let policy = PolicyFile::parse("the shipped policy", DEFAULT_POLICY).unwrap();
    let registry = Registry::with_builtins().unwrap();
    SessionConfig {
        kernel: KernelConfig::new(policy, registry, layout, key),
        workshop: WorkshopOptions {
            runtime: Arc::new(runtime.unwrap()),
            project: lab.root(),
            home: None,
            shown: Vec::new(),
            program: program.into(),
        },
        sessions: state.join("sessions"),
        conventions: Conventions::default(),
        test_command: None,
        test_coverage: None,
        dependencies: None,
        new_repository: false,
        git: GitOptions::default(),
        commits: CommitOptions::default(),
        limits: fluffy_kernel::JobLimits::default(),
        observer: Arc::new(()),
    }
}

/// Has a model read on for so many turns, and gives what it was shown in each of them.
fn driven(
    bench: &SessionBench<'_>,
    mut conversation: Conversation,
    replay: Replay,
    (task, turns): (Option<&str>, u64),
) -> (Vec<ModelRequest>, Outcome) {
    let provider = Witness { replay, asked: Mutex::default() };
    let agent = Agent {
        bench,
        provider: &provider,
        observer: &(),
        waiter: &SystemWaiter,
        caps: Caps { turns, ..Caps::default() },
        spent: Spent::default(),
    };
    let ended = agent.run(&mut conversation, task);
    (provider.asked.into_inner().unwrap(), ended.outcome)
}

fn is_pinned(request: &ModelRequest) -> bool {
    let first = request.messages.iter().find_map(|message| match message {
        Message::User { text } => Some(text),
        Message::Assistant { .. } | Message::Results { .. } => None,
    });
    first.is_some_and(|text| text == PINNED)
}

#[test]
fn ai_4_a_pin_stays_verbatim_over_summaries_and_over_a_restart() {
    let lab = Lab::new(Language::Python);
    lab.user.write("long.txt", &"some words that fill the window\n".repeat(300));
    let read = say("Reading.", &[call("fs.read", json!({"path": "long.txt"}))]);
    let turns: Vec<Value> = std::iter::repeat_n(read, 20).chain([complete()]).collect();
    let session = Session::begin(config(&lab), "explain it", Mode::Strict, Access::Write).unwrap();
    session.pin("./sums.py").unwrap();
    session.pin("sums.py").unwrap();
    session.start().unwrap();
    // What is pinned is the file as it was, whatever becomes of it.
    lab.user.write("sums.py", "changed\n");
    let bench = SessionBench::new(&session);
    let replay = || Replay::open(&lab.transcript(&turns)).unwrap();
    let said = (Some("explain it"), 12);
    let (asked, _) = driven(&bench, bench.conversation(), replay(), said);
    assert_eq!(asked.len(), 12);
    let summarised = |request: &ModelRequest| {
        let mut users = request.messages.iter().filter_map(|message| match message {
            Message::User { text } => Some(text),
            Message::Assistant { .. } | Message::Results { .. } => None,
        });
        users.any(|text| text.starts_with("Summary of earlier turns"))
    };
    assert!(asked.iter().any(summarised), "the window was never full");
    assert!(asked.iter().all(is_pinned), "{:?}", asked.last().unwrap().messages.first());
    let id = session.id().to_string();
    session.close().unwrap();

    let (session, stored) = Session::resume(config(&lab), SessionId::named(&id).unwrap()).unwrap();
    assert_eq!(stored.pins().len(), 1, "a pin is a pin, however often it is asked for");
    let bench = SessionBench::new(&session);
    let resumed = bench.resume(&stored).unwrap();
    let replay = replay().skip(stored.turns.len());
    let (asked, outcome) = driven(&bench, resumed.conversation, replay, (None, 50));
    assert!(!asked.is_empty() && asked.iter().all(is_pinned));
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
}

#[test]
fn ai_4_a_pin_is_a_read_that_the_rules_judge_and_the_ledger_has() {
    let lab = Lab::new(Language::Python);
    let run = lab.run(&["--pin", "sums.py", "--pin", "test_add.py"], &lab.good_turns());
    run.assert_done();
    let shown = run.all("session.started")[0]["notes"].to_string();
    assert_eq!(shown, r#"["sums.py","test_add.py"]"#);
    let told = lab.user.run(&["session", "show", "--json"]);
    assert_eq!(told.json_lines()[0]["pins"], json!(["sums.py", "test_add.py"]));
    let log = lab.user.run(&["audit", "log", "--json", "--limit", "500"]).out;
    let reads = log.lines().filter(|line| line.contains("fs.read sums.py")).count();
    assert!(reads >= 1 && log.contains("a file is pinned"), "{log}");
}

#[test]
fn ai_4_what_cannot_or_may_not_be_pinned_ends_the_task_before_it_begins() {
    let lab = Lab::new(Language::Python);
    lab.user.write(".env", "TOKEN=hunter2\n");
    lab.user.write("long.txt", &"words\n".repeat(20_000));
    std::fs::write(lab.root().join("image.png"), [0_u8, 159, 146, 150]).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", lab.root().join("link")).unwrap();
    for n in 0..6 {
        lab.user.write(&format!("part{n}.txt"), &"0123456789abcde\n".repeat(600));
    }
    let before = lab.snapshot();
    let parts: Vec<String> = (0..6).map(|n| format!("part{n}.txt")).collect();
    let all: Vec<&str> = parts.iter().flat_map(|part| ["--pin", part]).collect();
    for (options, code, why) in [
        (
            &["--pin", "gone.py"][..],
            2,
            "`gone.py` cannot be pinned: Tool execution failed: `gone.py` does not exist",
        ),
        (&["--pin", "image.png"], 2, "it is no text"),
        (&["--pin", "long.txt"], 2, "longer than a model is shown at once"),
        (&["--pin", "../x"], 2, "leads out of the project"),
        (&["--pin", "."], 2, "cannot be pinned"),
        (&["--pin", "link"], 2, "symbolic link"),
        (&all, 2, "bytes would be pinned"),
        (&["--pin", "sums.py", "--pin", ".env"], 3, "`.env` may not be pinned"),
        (&["--yes", "--pin", "./.env"], 3, "`.env` may not be pinned"),
    ] {
        let run = lab.run(options, &lab.good_turns());
        run.assert_not_done(code);
        let failed = run.all("task.failed")[0];
        assert!(failed["what"].as_str().unwrap().contains(why), "{why}: {failed}");
        assert!(!run.told().contains("hunter2"), "{}", run.told());
    }
    assert_eq!(lab.snapshot(), before);
}
