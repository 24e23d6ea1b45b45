//! `fluffy doctor`: what this machine offers and what is missing.

use std::path::{Path, PathBuf};

use fluffy_base::Excerpt;
use fluffy_ledger::{Segment, Storage, StorageLevel};
use fluffy_sandbox::{Engine, EngineKind, Health, ImageChoice, Job, Runtime};
use serde_json::json;

use crate::args::DoctorArgs;
use crate::client::Link;
use crate::driver::{self, Driver, DriverError, listening as listening_of};
use crate::environment::Environment;
use crate::explain::{CliError, DONE, FAILED};
use crate::output::{Output, Tone};
use crate::place::Place;
use crate::providers::{listening, offer};
use crate::settings::{Origin, Settings};

/// How much of what a kernel printed is read.
const MAX_LOG: u64 = 64 << 10;

/// One thing that was looked at.
struct Finding {
    name: &'static str,
    state: State,
    text: String,
}

/// How it was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// There, and fine.
    Fine,
    /// Not there; something that comes later will want it.
    Absent,
    /// Wrong: commands will fail.
    Wrong,
}

pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    args: &DoctorArgs,
    output: &mut Output,
) -> Result<u8, CliError> {
    let mut findings = vec![kernel_version(), landlock(), seccomp(), cgroups()];
    findings.extend(drivers(place, environment));
    for program in ["git", "python3"] {
        findings.push(program_found(program, environment));
    }
    findings.extend(listening().into_iter().map(|built_in| Finding {
        name: "model server",
        state: State::Fine,
        text: offer(built_in),
    }));
    findings.push(kernel_process(place, environment));
    findings.push(key(place));
    findings.push(ledger(place));
    findings.push(storage(place, environment));
    let wrong = findings.iter().any(|finding| finding.state == State::Wrong);
    if args.json {
        let list: Vec<_> = findings
            .iter()
            .map(|f| json!({ "name": f.name, "state": f.state.word(), "text": f.text }))
            .collect();
        output.line(json!({ "ok": !wrong, "findings": list }))?;
    } else {
        output.line(format!("Project  {}", place.project().display()))?;
        for finding in &findings {
            let word = output.paint(finding.state.tone(), &format!("{:6}", finding.state.word()));
            output.line(format!("{word}  {:<16}  {}", finding.name, finding.text))?;
        }
    }
    Ok(if wrong { FAILED } else { DONE })
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Absent => "absent",
            Self::Wrong => "WRONG",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Fine => Tone::Good,
            Self::Absent => Tone::Quiet,
            Self::Wrong => Tone::Bad,
        }
    }
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn kernel_version() -> Finding {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned());
    Finding { name: "kernel", state: State::Fine, text: format!("Linux {release}") }
}

/// Makes a sandbox with every driver there is, and says which is used and why: trying tells more than any setting.
fn drivers(place: &Place, environment: &Environment) -> Vec<Finding> {
    let used = place.engine().map(|chosen| chosen.engine);
    let why = match Settings::of_person(environment) {
        Err(_) => "your settings cannot be read".to_owned(),
        Ok(settings) => match settings.effective("sandbox.runtime") {
            Some(found) if found.origin != Origin::Default => format!("{} says so", found.origin),
            _ => "nobody chose another, and nothing has to be installed for it".to_owned(),
        },
    };
    let name = used.map_or("native", EngineKind::name);
    let root = used.is_some() && rustix::process::geteuid().is_root();
    let but =
        if root { "; not for tasks, which root can have by the native driver alone" } else { "" };
    let text = format!("{name} ({why}{but}; change it: fluffy config set sandbox.runtime …)");
    let mut findings = vec![Finding { name: "sandboxes by", state: State::Fine, text }];
    findings.extend(native(place, environment, used.is_none()));
    for engine in EngineKind::ALL {
        findings.extend(container_engine(place, environment, engine, used == Some(engine)));
    }
    findings
}

fn native(place: &Place, environment: &Environment, used: bool) -> Vec<Finding> {
    let opened = place
        .driver(environment, None, ImageChoice::Base)
        .and_then(|driver| Ok(driver.open()?))
        .and_then(|runtime| tried(&*runtime, "in namespaces"));
    found("native", opened, used)
}

fn container_engine(
    place: &Place,
    environment: &Environment,
    engine: EngineKind,
    used: bool,
) -> Vec<Finding> {
    let chosen = listening_of(engine, environment);
    if !used && !chosen.sockets.iter().any(|socket| socket.exists()) {
        let looked: Vec<_> = chosen.sockets.iter().map(|it| it.display().to_string()).collect();
        let text = format!("nobody listens at {}", looked.join(", "));
        return vec![Finding { name: engine.name(), state: State::Absent, text }];
    }
    let image = match Settings::load(place, environment).and_then(|it| driver::image(&it)) {
        Ok(image) => image,
        Err(error) => return found(engine.name(), Err(error), used),
    };
    let opened = place.driver(environment, Some(chosen), image).and_then(|driver| match driver {
        Driver::Engine(options) => {
            let engine = Engine::open(options)?;
            let digest = engine.image_prepared()?;
            let about = engine.about();
            let rights = if about.rootless { "rootless" } else { "rootful" };
            let text = format!(
                "{}, {rights}, control groups of version {}, image {}",
                about.version,
                about.cgroups,
                Excerpt::new(&digest, 19)
            );
            tried(&engine, &text)
        }
        Driver::Native(_) => Err(DriverError::NoEngine.into()),
    });
    found(engine.name(), opened, used)
}

/// Makes two sandboxes, and tells how long the second took: what the first had to be prepared for is there then.
fn tried(runtime: &dyn Runtime, what: &str) -> Result<(String, Vec<String>), CliError> {
    match runtime.ping()? {
        Health::Pending { reason, .. } => Ok((reason, Vec::new())),
        Health::Ready { notes } => {
            let begin = now();
            let config = fluffy_sandbox::Config::of(fluffy_sandbox::Template::CodeExecutor);
            runtime.run(config, Job::new("true"), std::sync::Arc::new(()))?;
            let took = begin.elapsed().as_millis();
            Ok((format!("{what}: one was made, ran `true` and was taken away in {took} ms"), notes))
        }
    }
}

/// A driver that is not used may well be out of order.
fn found(
    name: &'static str,
    tried: Result<(String, Vec<String>), CliError>,
    used: bool,
) -> Vec<Finding> {
    match tried {
        Ok((text, notes)) => {
            let notes = notes.into_iter().map(|text| Finding { name, state: State::Absent, text });
            std::iter::once(Finding { name, state: State::Fine, text }).chain(notes).collect()
        }
        Err(error) => {
            let explained = error.explained();
            let text = format!("{}; {}; fix: {}", explained.what, explained.why, explained.fix);
            let state = if used { State::Wrong } else { State::Absent };
            vec![Finding { name, state, text }]
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a sandbox takes is real time")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

fn landlock() -> Finding {
    let (state, text) = match crate::landlock::abi() {
        Some(version) => (State::Fine, format!("ABI {version}")),
        None => (State::Absent, "not offered by this kernel; boot with lsm=landlock,…".to_owned()),
    };
    Finding { name: "landlock", state, text }
}

fn seccomp() -> Finding {
    let actions = read("/proc/sys/kernel/seccomp/actions_avail");
    let state = if actions.is_some() { State::Fine } else { State::Absent };
    let text = actions.unwrap_or_else(|| "not offered by this kernel".to_owned());
    Finding { name: "seccomp", state, text }
}

fn cgroups() -> Finding {
    let v2 = read("/sys/fs/cgroup/cgroup.controllers");
    let v1 = Path::new("/sys/fs/cgroup/memory").exists();
    let (state, text) = match (v2, v1) {
        (Some(controllers), _) => (State::Fine, format!("version 2: {controllers}")),
        (None, true) => (State::Fine, "version 1".to_owned()),
        (None, false) => (State::Absent, "none mounted under /sys/fs/cgroup".to_owned()),
    };
    Finding { name: "cgroups", state, text }
}

fn program_found(name: &'static str, environment: &Environment) -> Finding {
    let paths = environment.path.iter().flat_map(std::env::split_paths);
    let found = paths.map(|dir: PathBuf| dir.join(name)).find(|path| path.is_file());
    match found {
        Some(path) => Finding { name, state: State::Fine, text: path.display().to_string() },
        None => Finding { name, state: State::Absent, text: "not on PATH".to_owned() },
    }
}

fn key(place: &Place) -> Finding {
    let name = "signing key";
    match place.existing_key() {
        Ok(Some(key)) => {
            Finding { name, state: State::Fine, text: key.verifying_key().to_string() }
        }
        Ok(None) => {
            let text = "none yet; made with the first request".to_owned();
            Finding { name, state: State::Absent, text }
        }
        Err(error) => Finding { name, state: State::Wrong, text: error.explained().why },
    }
}

fn storage(place: &Place, environment: &Environment) -> Finding {
    let name = "ledger storage";
    let storage = Settings::load(place, environment)
        .and_then(|settings| Ok(Storage::of(&place.layout(), &super::retention(&settings))?));
    match storage {
        Ok(storage) => {
            let (state, advice) = match storage.level() {
                StorageLevel::Fine => (State::Fine, ""),
                StorageLevel::Warning => (State::Absent, "; it fills up"),
                StorageLevel::Critical => {
                    (State::Absent, "; nearly full: past 100 % the oldest archive is deleted")
                }
            };
            Finding { name, state, text: format!("{}{advice}", super::storage_text(&storage)) }
        }
        Err(error) => Finding { name, state: State::Wrong, text: error.to_string() },
    }
}

/// The process that works for the project, or what the last one said.
fn kernel_process(place: &Place, environment: &Environment) -> Finding {
    let name = "kernel process";
    let found = |state, text: String| Finding { name, state, text };
    match Link::new(place, environment).existing() {
        Ok(Some(_)) => found(State::Fine, "works for this project, confined".to_owned()),
        Ok(None) => {
            let said = super::read_bounded(&place.kernel_log(), MAX_LOG).unwrap_or_default();
            let said = String::from_utf8_lossy(&said).into_owned();
            let last = said.lines().rfind(|line| !line.trim().is_empty());
            let last = last.map(|line| format!("; the last one said: {}", Excerpt::new(line, 300)));
            let text = "none; started with the next task".to_owned() + &last.unwrap_or_default();
            found(State::Fine, text)
        }
        Err(error) => {
            let explained = error.explained();
            found(State::Wrong, format!("{}: {}", explained.what, explained.why))
        }
    }
}

fn ledger(place: &Place) -> Finding {
    let name = "ledger";
    match Segment::active(&place.layout()) {
        Ok(None) => {
            let text = "none yet; made with the first request".to_owned();
            Finding { name, state: State::Absent, text }
        }
        Ok(Some(segment)) => {
            let (size, path) = (segment.size(), segment.path().display());
            Finding { name, state: State::Fine, text: format!("{size} entries in {path}") }
        }
        Err(error) => {
            let text = format!("{error}; see: fluffy audit verify");
            Finding { name, state: State::Wrong, text }
        }
    }
}
