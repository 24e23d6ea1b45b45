//! How long the five gates take, and the three tools by hand on the same files in the same run.
//!
//! By hand: ruff, mypy and pytest one after another, unconfined, with the caches that they make for themselves: as a
//! person runs them again and again. The order of the two changes from round to round.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench writes files, runs programs, takes the time and prints it"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use fluffy_base::{Digest, ProjectPath, SystemIds};
use fluffy_forge::{
    Gate, GateResult, Inspected, Proposal, SideEffect, SkillName, SourceFile, Tools, base, inspect,
    locate,
};
use fluffy_kernel::{Appended, Journal, Lab, Note, ToolError, WorkshopOptions};
use serde_json::json;

const ROUNDS: usize = 11;

const SKILL: &str = include_str!("verify/write_note.py");
const TESTS: &str = include_str!("verify/test_write_note.py");

struct Forgetting;

impl Journal for Forgetting {
    fn record(&self, _: Note) -> Result<Appended, ToolError> {
        Ok(Appended { seq: 0, entry_hash: Digest::of(b"") })
    }
}

fn main() {
    // Whoever runs benches as tests wants to know that they start, which takes tools.
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    let dir = tempfile::Builder::new().prefix("fluffy-bench-").tempdir_in("/var/tmp").unwrap();
    let tools = locate(&fluffy_testkit::skill_tools());
    let tools = tools.expect("run scripts/test once, which makes target/tools/skills");
    let lab = lab(dir.path());
    let by_hand = dir.path().join("by-hand");
    lay_out(&by_hand);
    run_by_hand(&tools, &by_hand);
    let mut gates = Vec::new();
    let mut hand = Vec::new();
    for round in 0..ROUNDS {
        if round % 2 == 0 {
            gates.push(timed(|| run_gates(&tools, &lab, dir.path())));
        }
        hand.push(timed(|| run_by_hand(&tools, &by_hand)));
        if round % 2 == 1 {
            gates.push(timed(|| run_gates(&tools, &lab, dir.path())));
        }
    }
    let (gates, hand) = (median(gates), median(hand));
    println!("five gates          {:>7.1} ms", ms(gates));
    println!("three tools by hand {:>7.1} ms", ms(hand));
    println!("ratio               {:>7.2}", ms(gates) / ms(hand));
}

fn lab(dir: &Path) -> Lab {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_forge-tester"));
    let runtime = fluffy_testkit::native(&program, &dir.join("state")).unwrap();
    let (project, home) = (dir.join("project"), dir.join("home"));
    for dir in [&project, &home] {
        std::fs::create_dir(dir).unwrap();
    }
    Lab::new(WorkshopOptions { runtime, project, home: Some(home), shown: Vec::new(), program })
}

fn files() -> Vec<SourceFile> {
    let file = |path: &str, text: &str| SourceFile {
        path: ProjectPath::parse(path).unwrap(),
        bytes: text.as_bytes().to_vec(),
    };
    vec![
        file(".fluffy/skills/write_note.py", SKILL),
        file(".fluffy/skills/tests/test_write_note.py", TESTS),
    ]
}

fn run_gates(tools: &Tools, lab: &Lab, dir: &Path) {
    let passes =
        |gate| GateResult { gate, passed: true, summary: String::new(), findings: Vec::new() };
    let proposal = Proposal {
        name: SkillName::parse("write_note").unwrap(),
        description: "Writes a note.".to_owned(),
        input: json!({}),
        output: json!({}),
        side_effect: SideEffect::FileWrite,
        reads: Vec::new(),
        writes: Vec::new(),
        hosts: Vec::new(),
        secrets: Vec::new(),
        model: false,
    };
    let judgement = inspect(&Inspected {
        proposal: &proposal,
        files: &files(),
        policy: &|_| passes(Gate::Policy),
        invariants: &|_| passes(Gate::Invariants),
        lab,
        tools,
        scratch: &dir.join("scratch"),
        ids: &SystemIds,
        journal: &Forgetting,
        most: None,
    });
    assert!(judgement.unwrap().passed());
}

fn lay_out(dir: &Path) {
    for file in files() {
        let path = dir.join(file.path.as_str());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, file.bytes).unwrap();
    }
    std::fs::write(dir.join(".fluffy/skills/fluffy_skill.py"), base().skill).unwrap();
}

fn run_by_hand(tools: &Tools, dir: &Path) {
    let skills = dir.join(".fluffy/skills");
    let run = |program: &Path, args: &[&str]| {
        let ran = Command::new(program).args(args).current_dir(&skills).output().unwrap();
        assert!(ran.status.success(), "{args:?} {}", String::from_utf8_lossy(&ran.stdout));
    };
    run(&tools.ruff, &["check", "--select=E4,E7,E9,F,W,B,PLE", "."]);
    run(&tools.python, &["-m", "mypy", "--strict", "write_note.py", "tests/test_write_note.py"]);
    run(&tools.python, &["-m", "pytest", "-q", "tests"]);
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
