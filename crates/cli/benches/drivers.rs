//! What the same sandbox costs on each driver, and where the time goes: made, `true` run in it, taken away.
//!
//! `./scripts/engines && cargo bench --package fluffy-cli --bench drivers`
//!
//! All drivers take turns in one run. An engine is reached through a door that measures how long each of its calls takes;
//! what is left of a start is ours: the plan, the first process, and confining the job. An engine that
//! `scripts/engines` did not start is left out with a word.

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]
#![expect(clippy::indexing_slicing, reason = "every index is below its length")]
#![expect(clippy::print_stdout, reason = "figures are what a bench is for")]
#![expect(clippy::disallowed_methods, reason = "time is what is measured")]

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fluffy_sandbox::{
    Config, Engine, EngineKind, EngineOptions, Gate, GateOptions, ImageChoice, Job, Native,
    NativeOptions, Runtime, Store, Template, Workspace,
};
use fluffy_testkit::engines::{is_there, socket};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fluffy");
const ROUNDS: usize = 30;
/// Whoever works on the project, where root runs this.
const SOMEBODY: u32 = 1000;

/// How long each call of an engine took.
type Calls = Arc<Mutex<BTreeMap<String, Vec<Duration>>>>;

struct Contender {
    name: String,
    runtime: Box<dyn Runtime>,
    calls: Option<Calls>,
    /// Until its job runs, until that has ended, until nothing is left.
    spans: [Vec<Duration>; 3],
}

fn main() {
    // `cargo test --benches` asks for a list of tests; there are none.
    if std::env::args().any(|arg| arg == "--list" || arg == "--test") {
        return;
    }
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let project = place.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("file"), "text").unwrap();
    if rustix::process::geteuid().is_root() {
        chown(&project, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    }
    let mut contenders = contenders(place.path());
    for contender in &mut contenders {
        // Warm for all alike.
        round(contender, &project);
        contender.spans = Default::default();
        if let Some(calls) = &contender.calls {
            calls.lock().unwrap().clear();
        }
    }
    for number in 0..ROUNDS {
        let count = contenders.len();
        for place in 0..count {
            round(&mut contenders[(place + number) % count], &project);
        }
    }
    println!(
        "{:<28} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "median ms", "started", "ran", "removed", "whole", "whole p90"
    );
    for contender in &mut contenders {
        report(contender);
    }
    for contender in &contenders {
        breakdown(contender);
    }
}

fn contenders(place: &Path) -> Vec<Contender> {
    let (program, state) = (PathBuf::from(PROGRAM), place.join("native"));
    let native = Native::open(NativeOptions { program, state, path: vec![], env: vec![] }).unwrap();
    let spans = Default::default;
    let runtime = Box::new(native);
    let mut all =
        vec![Contender { name: "native".to_owned(), runtime, calls: None, spans: spans() }];
    for engine in EngineKind::ALL.into_iter().filter(|engine| is_there(*engine)) {
        for through in [false, true] {
            let name = format!("{engine}{}", if through { ", through the gate" } else { "" });
            let calls = Calls::default();
            let timed = place.join(format!("{engine}-{through}.sock"));
            let state = place.join(format!("{engine}-{through}"));
            door(&timed, socket(engine), Arc::clone(&calls));
            let socket = if through { gate(engine, timed, place, &state) } else { timed };
            let runtime = Engine::open(EngineOptions {
                engine,
                sockets: vec![socket],
                image: ImageChoice::Base,
                program: PROGRAM.into(),
                state,
                path: vec![],
                env: vec![],
            });
            let runtime = Box::new(runtime.unwrap());
            runtime.image_prepared().unwrap();
            all.push(Contender { name, runtime, calls: Some(calls), spans: spans() });
        }
    }
    all
}

/// A gate as a task's kernel has it.
fn gate(engine: EngineKind, upstream: PathBuf, place: &Path, state: &Path) -> PathBuf {
    let gate = Gate::open(GateOptions {
        engine,
        sockets: vec![upstream],
        fetched: None,
        shown: vec![place.join("project"), PROGRAM.into()],
        state: state.to_owned(),
        profiles: place.join("profiles"),
    });
    let (gate, at) = (Arc::new(gate.unwrap()), place.join(format!("{engine}.gate")));
    let listener = UnixListener::bind(&at).unwrap();
    std::thread::spawn(move || gate.serve(&listener));
    at
}

/// Passes calls on, and remembers how long each took.
fn door(at: &Path, to: PathBuf, calls: Calls) {
    let listener = UnixListener::bind(at).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (to, calls) = (to.clone(), Arc::clone(&calls));
            std::thread::spawn(move || {
                let _gone = pass(stream, &to, &calls);
            });
        }
    });
}

fn pass(mut asks: UnixStream, to: &Path, calls: &Calls) -> io::Result<()> {
    let begin = Instant::now();
    let mut engine = UnixStream::connect(to)?;
    let mut head = vec![0; 16 << 10];
    let read = asks.read(&mut head)?;
    head.truncate(read);
    engine.write_all(&head)?;
    let (mut rest, mut on) = (asks.try_clone()?, engine.try_clone()?);
    std::thread::spawn(move || io::copy(&mut rest, &mut on));
    io::copy(&mut engine, &mut asks)?;
    asks.shutdown(Shutdown::Both)?;
    let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
    calls.lock().unwrap().entry(named(&line)).or_default().push(begin.elapsed());
    Ok(())
}

/// A call without version, names and filters.
fn named(line: &str) -> String {
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    let parts = path.split('/').filter(|part| {
        let version = part.starts_with('v') && part.contains('.');
        let name = part.len() > 20 || part.starts_with("fluffy-");
        !part.is_empty() && !version && !name && *part != "libpod"
    });
    format!("{method} {}", parts.collect::<Vec<_>>().join(" "))
}

fn round(contender: &mut Contender, project: &Path) {
    let runtime = &contender.runtime;
    let begin = Instant::now();
    let volume = runtime.volume(Store::Disk).unwrap();
    let workspace = Workspace::overlay(project, volume);
    let config = Config::of(Template::CodeExecutor).with_workspace(workspace).unwrap();
    let sandbox = runtime.create(config, Job::new("true")).unwrap();
    sandbox.start(Arc::new(())).unwrap();
    let started = begin.elapsed();
    assert!(sandbox.wait().unwrap().is_success(), "{}", contender.name);
    let ran = begin.elapsed();
    sandbox.remove();
    let removed = begin.elapsed();
    for (spans, span) in contender.spans.iter_mut().zip([started, ran - started, removed - ran]) {
        spans.push(span);
    }
}

fn at(spans: &mut [Duration], share: usize) -> f64 {
    spans.sort();
    spans[(spans.len() * share / 100).min(spans.len() - 1)].as_secs_f64() * 1000.0
}

fn report(contender: &mut Contender) {
    let [started, ran, removed] = &contender.spans;
    let parts = started.iter().zip(ran).zip(removed);
    let mut whole: Vec<Duration> = parts.map(|((a, b), c)| *a + *b + *c).collect();
    let [started, ran, removed] = &mut contender.spans;
    println!(
        "{:<28} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9.1}",
        contender.name,
        at(started, 50),
        at(ran, 50),
        at(removed, 50),
        at(&mut whole, 50),
        at(&mut whole, 90),
    );
}

/// How much of it each of the engine's calls takes.
fn breakdown(contender: &Contender) {
    let Some(calls) = &contender.calls else { return };
    println!("\n{}: calls of the engine, median ms (for each sandbox)", contender.name);
    for (name, spans) in calls.lock().unwrap().iter_mut() {
        let each = spans.len() as f64 / ROUNDS as f64;
        println!("  {name:<34} {:>8.1}  (x {each:.1})", at(spans, 50));
    }
}
