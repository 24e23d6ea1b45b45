//! Client, bootstrap, kernel and sandboxes are processes of their own: whichever is killed, nothing is lost; and no
//! client gets more from the kernel than its socket says it may.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use fluffy_base::{Clock as _, Digest, FaultCode, Message, SystemClock};
use fluffy_kernel::{CallError, Client, ClientOptions};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::models::{KEY, Server, settings};
use crate::program::{Answer, working};
use crate::task::lab::{Lab, Language, complete, say, write};
use crate::task::resume::resumed;

const PATIENCE: Duration = Duration::from_secs(30);

/// Whom it hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Client,
    Kernel,
    Bootstrap,
    Sandbox,
    Provider,
}

const VICTIMS: [Victim; 5] =
    [Victim::Kernel, Victim::Client, Victim::Sandbox, Victim::Bootstrap, Victim::Provider];

/// When it hits whom.
#[derive(Debug, Clone, Copy)]
struct Moment {
    victim: Victim,
    /// After so many events …
    events: usize,
    /// … and so long.
    pause: Duration,
}

impl Moment {
    /// The moment of this number, among those of a seed.
    fn of(seed: u64, number: usize) -> Self {
        let hash = Digest::of(format!("{seed} {number}").as_bytes()).to_string();
        let part = |at: usize| usize::from_str_radix(&hash[at..at + 8], 16).unwrap();
        let pause = Duration::from_micros(part(8) as u64 % 12_000);
        Self { victim: VICTIMS[number % VICTIMS.len()], events: part(0) % 34, pause }
    }
}

fn words(pid: i32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).into_owned()
}

/// The children of all threads of a process, the youngest last.
fn children(of: i32) -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{of}/task")) else { return Vec::new() };
    let texts =
        threads.filter_map(|it| std::fs::read_to_string(it.ok()?.path().join("children")).ok());
    let texts: Vec<String> = texts.collect();
    let all = texts.iter().flat_map(|text| text.split_whitespace());
    let mut all: Vec<i32> = all.filter_map(|pid| pid.parse().ok()).collect();
    all.sort_unstable();
    all
}

fn kill(pid: i32) {
    let _gone = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
}

/// Kills one of the processes that work for a lab; whether it was there.
fn strike(lab: &Lab, victim: Victim, client: &mut Child) -> bool {
    let all = working(&lab.user);
    let kernel = all.iter().find(|pid| !words(**pid).contains("\0boot\0"));
    let bootstrap = all.iter().find(|pid| words(**pid).contains("\0boot\0"));
    let hit = match victim {
        Victim::Client => {
            client.kill().unwrap();
            return true;
        }
        Victim::Kernel => kernel.copied(),
        Victim::Bootstrap => bootstrap.copied(),
        Victim::Sandbox => kernel.and_then(|kernel| children(*kernel).last().copied()),
        Victim::Provider => kernel.and_then(|kernel| {
            let all = children(*kernel).into_iter();
            let mut all = all.flat_map(|child| [vec![child], children(child)].concat());
            all.find(|pid| words(*pid).contains("\0provider-host\0"))
        }),
    };
    hit.into_iter().for_each(kill);
    hit.is_some()
}

/// Waits until nothing works for a lab any more.
#[track_caller]
fn all_gone(lab: &Lab) {
    let begun = std::time::Instant::now();
    while !working(&lab.user).is_empty() {
        assert!(
            begun.elapsed() < 2 * PATIENCE,
            "{:?}",
            working(&lab.user).into_iter().map(words).collect::<Vec<_>>()
        );
        std::thread::yield_now();
    }
}

/// The command of a task. Where the model's process is to be hit, the model is a server's; elsewhere it is a transcript.
fn command(lab: &Lab, victim: Victim) -> Command {
    if victim != Victim::Provider {
        return lab.command(&[], &lab.good_turns());
    }
    served_by(lab, &Server::remembering(lab.good_turns()))
}

fn served_by(lab: &Lab, server: &Server) -> Command {
    let mut command = lab.user.command(&["run", "--json", "--yes", "add a function that doubles"]);
    for (name, value) in lab.command(&[], &[]).get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.env("XDG_CONFIG_HOME", settings(&lab.user, server, "")).env("WORK_KEY", KEY);
    command
}

/// Kills at a moment; gives the entries that the client was told of, how it ended, and whether the victim was there.
fn struck(lab: &Lab, moment: Moment) -> (BTreeSet<String>, Option<i32>, bool) {
    let mut command = command(lab, moment.victim);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut entries, mut hit) = (BTreeSet::new(), false);
    for (at, line) in BufReader::new(child.stdout.take().unwrap()).lines().enumerate() {
        let Ok(event) = serde_json::from_str::<Value>(&line.unwrap_or_default()) else { break };
        entries.extend(event["entry"].as_str().map(str::to_owned));
        if at == moment.events {
            // Anywhere between two events, and not only where they are told.
            std::thread::park_timeout(moment.pause);
            hit = strike(lab, moment.victim, &mut child);
        }
    }
    (entries, child.wait().unwrap().code(), hit)
}

/// Kills at these moments, and looks at what is left each time. Every victim was met at least once.
fn survives(moments: impl Iterator<Item = Moment>) {
    let mut met = Vec::new();
    for moment in moments {
        let told = format!("{moment:?}");
        let lab = Lab::new(Language::JavaScript);
        let before = lab.snapshot();
        let (entries, code, hit) = struck(&lab, moment);
        met.extend(hit.then_some(moment.victim));
        let solution = lab.language.solution();
        if lab.user.read("sums.js") != solution {
            assert_eq!(lab.snapshot(), before, "{told}: neither old nor new");
            // The model's process is started again, and asked again: nobody has to do anything.
            assert_ne!(moment.victim, Victim::Provider, "{told}: the client ended with {code:?}");
            // A client that is killed before anything is begun leaves nothing to go on with.
            if code != Some(0) && !lab.user.run(&["session", "list"]).out.is_empty() {
                let answer = resumed(&lab);
                let told = format!("{told}: {}{}", answer.out, answer.err);
                let done = lab.user.read("sums.js") == solution;
                assert!(done || lab.snapshot() == before, "{told}");
                // A recorded model does not try again what a killed sandbox did not do; and a kernel whose client is gone
                // may have finished by itself, so that there is nothing to go on with.
                assert!(done || moment.victim == Victim::Sandbox && answer.code == 1, "{told}");
            }
        }
        all_gone(&lab);
        let verified = lab.user.run(&["audit", "verify"]);
        let begun = !verified.err.contains("has no ledger yet");
        assert!(!begun || verified.code == 0, "{told}: {}{}", verified.out, verified.err);
        let log = lab.user.run(&["audit", "log", "--json", "--limit", "10000"]).out;
        for entry in entries {
            assert!(log.contains(&entry), "{told}: {entry} was told and is not there");
        }
    }
    assert!(VICTIMS.iter().all(|victim| met.contains(victim)), "{met:?}");
}

#[test]
fn rec_1_whichever_process_is_killed_the_session_goes_on_and_nothing_is_lost() {
    // With this seed, both moments of the model's process lie between its first turn and its last.
    survives((0..10).map(|number| Moment::of(4, number)));
}

#[test]
fn rec_1_a_model_that_is_killed_in_the_middle_of_a_sentence_is_asked_again() {
    let lab = Lab::new(Language::JavaScript);
    let mut command = served_by(&lab, &Server::half_silent(lab.good_turns()));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut hit, mut told) = (false, Vec::new());
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if event["type"] == "text.delta" && !hit {
            hit = strike(&lab, Victim::Provider, &mut child);
            assert!(hit, "its process is there while it speaks");
        }
        told.extend((event["type"] == "provider.retry").then(|| event["discarded"].clone()));
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(told, [true]);
    assert_eq!(lab.user.read("sums.js"), lab.language.solution());
    all_gone(&lab);
}

#[test]
fn slow_rec_1_whichever_process_is_killed_at_many_moments_nothing_is_lost() {
    let moments = std::env::var("FLUFFY_TEST_MOMENTS").ok().and_then(|text| text.parse().ok());
    // Other ones each time; what failed is told with its moment.
    let seed = SystemClock.now_ms();
    survives((0..moments.unwrap_or(20)).map(|number| Moment::of(seed, number)));
}

/// A kernel for a lab, without a bootstrap.
struct Served {
    child: Child,
    socket: PathBuf,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _dead = self.child.kill();
        let _status = self.child.wait();
    }
}

/// Starts one as the bootstrap does.
fn served(lab: &Lab) -> Served {
    let socket = lab.user.project.state().join("fluffy/run/test.sock");
    let like = lab.command(&[], &[]);
    let mut command = Command::new(like.get_program());
    command.args(["kernel", "serve", "--idle", "60", "--socket"]).arg(&socket);
    command.current_dir(lab.root()).env_clear();
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    Served { child, socket }
}

fn connected(socket: &Path) -> Client {
    let begun = std::time::Instant::now();
    loop {
        let options = ClientOptions { name: "test".to_owned(), token: None, patience: PATIENCE };
        match Client::connect(socket, options) {
            Ok((client, _)) => return client,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
        std::thread::yield_now();
    }
}

pub(crate) fn bytes(text: &std::ffi::OsStr) -> String {
    base64::engine::general_purpose::STANDARD.encode(text.as_encoded_bytes())
}

/// Work of a model that says this, as a client submits it.
fn submission(lab: &Lab, mode: &str) -> Value {
    let like = lab.command(&[], &[]);
    let given = |wanted: &str| {
        like.get_envs().find(|(name, _)| *name == wanted).and_then(|(_, value)| value).map(bytes)
    };
    let home = given("HOME").unwrap();
    let settings = base64::engine::general_purpose::STANDARD.decode(&home).unwrap();
    let settings = PathBuf::from(String::from_utf8(settings).unwrap()).join(".config/fluffy");
    let cache = settings.parent().unwrap().parent().unwrap().join(".cache/fluffy");
    let tools = fluffy_forge::locate(&cache).map(|tools| tools.shown).unwrap_or_default();
    let tools: Vec<_> = tools.iter().map(|path| bytes(path.as_os_str())).collect();
    json!({
        "work": { "begin": { "task": "double", "mode": mode, "access": "write", "pins": [] } },
        "driver": {
            "model": { "replay": { "file": "/transcript" } },
            "caps": { "turns": 50, "tokens": null, "cost_micros": null },
        },
        "handed": { "secrets": [], "gateway": null, "proxy": null },
        "surroundings": {
            "personal": personal(&settings), "path": given("PATH"), "home": home,
            "settings_in": bytes(settings.as_os_str()), "cache": bytes(cache.as_os_str()), "tools": tools,
            "sandboxes": [],
            "git_identity": { "author_name": null, "author_email": null, "committer_name": null,
                "committer_email": null, "email": null },
            "settings": [],
        },
    })
}

/// Which files the user's settings are.
pub(crate) fn personal(settings: &Path) -> Vec<Value> {
    use std::os::unix::fs::MetadataExt as _;
    let home = settings.parent().unwrap().parent().unwrap();
    let git = [".gitconfig", ".config/git/config", ".config/git/ignore"].map(|it| home.join(it));
    let all = git.into_iter().chain([settings.join("config.yaml")]);
    let identity = |path: PathBuf| match std::fs::metadata(path) {
        Ok(at) => json!([at.dev(), at.ino(), at.mtime(), at.mtime_nsec(), at.size()]),
        Err(_) => Value::Null,
    };
    all.map(identity).collect()
}

fn begin(client: &Client, lab: &Lab, mode: &str, turns: &[Value]) -> Value {
    let path = lab.transcript(turns);
    let text = std::fs::read_to_string(path).unwrap();
    client.call("task.part", json!({ "text": text }), PATIENCE).unwrap();
    client.call("task.submit", submission(lab, mode), PATIENCE).unwrap()
}

/// The next event with this method.
#[track_caller]
fn next(client: &Client, wanted: &str) -> Value {
    loop {
        match client.receive(Some(PATIENCE)).unwrap() {
            Some(Message::Event { method, params }) if method == wanted => return params,
            Some(Message::Event { method, params }) => {
                assert_ne!(method, "task.error", "{params}");
                assert!(method != "task.complete", "{params}");
            }
            Some(_) => {}
            None => panic!("{wanted} did not come"),
        }
    }
}

#[track_caller]
fn refused(client: &Client, method: &str, params: Value, code: FaultCode) {
    match client.call(method, params, PATIENCE) {
        Err(CallError::Fault(fault)) => assert_eq!(fault.code, code, "{method}: {fault}"),
        other => panic!("{method}: {other:?}"),
    }
}

fn explored(lab: &Lab) -> [Value; 2] {
    [say("Code.", &[write("sums.js", &lab.language.solution())]), complete()]
}

#[test]
fn lesson_l12_no_client_approves_cancels_or_drives_what_another_one_drives() {
    let lab = Lab::new(Language::JavaScript);
    let kernel = served(&lab);
    let (driver, other) = (connected(&kernel.socket), connected(&kernel.socket));
    let joined = begin(&driver, &lab, "explore", &explored(&lab));
    let asked = next(&driver, "review.request");
    let yes = json!({ "how": "beforehand", "yes": true });
    let answer = |reply: Value| json!({ "run": joined["run"], "id": asked["id"], "reply": reply });
    refused(&other, "review.response", answer(yes.clone()), FaultCode::NotYours);
    refused(&other, "task.cancel", json!({}), FaultCode::NotYours);
    refused(&other, "task.submit", submission(&lab, "strict"), FaultCode::Busy);
    let steer = |act: Value| json!({ "run": joined["run"], "act": act });
    for act in [json!({ "revoke": 1 }), json!({ "mode": "debug" }), json!({ "pin": "sums.js" })] {
        refused(&other, "session.steer", steer(act), FaultCode::NotYours);
    }
    // Everybody may see where it stands, and that disturbs nobody.
    let status = other.call("session.status", json!({ "session": null }), PATIENCE).unwrap();
    assert_eq!((&status["drives"], &status["under_way"]), (&json!(false), &json!(true)));
    assert_eq!(status["review"]["id"], asked["id"], "{status}");
    driver.call("session.steer", steer(json!({ "pin": "sums.js" })), PATIENCE).unwrap();
    refused(&driver, "session.steer", steer(json!("undo")), FaultCode::Busy);
    refused(&driver, "session.steer", steer(json!({ "revoke": 1 })), FaultCode::Denied);
    let another = json!({ "run": 99, "act": "diff" });
    refused(&driver, "session.steer", another, FaultCode::NotFound);
    let status = driver.call("session.status", json!({ "session": null }), PATIENCE).unwrap();
    assert_eq!((&status["drives"], &status["pins"]), (&json!(true), &json!(["sums.js"])));
    let attach = json!({ "session": null, "run": null, "after": 0, "drive": true });
    let watching = other.call("session.attach", attach, PATIENCE).unwrap();
    assert_eq!(watching["drives"], false);
    // It is told everything, and asked nothing.
    assert_eq!(next(&other, "task.stream")["event"]["type"], "session.started");
    refused(&other, "review.response", answer(yes), FaultCode::NotYours);
    let no = answer(json!({ "how": "beforehand", "yes": false }));
    driver.call("review.response", no, PATIENCE).unwrap();
    assert_eq!(next_end(&other), next_end(&driver));
    assert!(!lab.user.read("sums.js").contains("double"));
}

/// How a run ended, for whoever watches.
fn next_end(client: &Client) -> Value {
    loop {
        match client.receive(Some(PATIENCE)).unwrap() {
            Some(Message::Event { method, params }) if method == "task.complete" => return params,
            Some(_) => {}
            None => panic!("it did not end"),
        }
    }
}

#[test]
fn lesson_l12_saying_that_a_person_agreed_is_not_a_person() {
    let lab = Lab::new(Language::JavaScript);
    let kernel = served(&lab);
    let client = connected(&kernel.socket);
    let joined = begin(&client, &lab, "debug", &explored(&lab));
    let asked = next(&client, "review.request");
    // Debug is a person's to grant: what was said with a command does not do.
    let yes = json!({ "how": "beforehand", "yes": true });
    let answer = json!({ "run": joined["run"], "id": asked["id"], "reply": yes });
    client.call("review.response", answer, PATIENCE).unwrap();
    let end = next_end(&client);
    assert!(end["end"]["task"]["denied"].is_object(), "{end}");
    assert!(!lab.user.read("sums.js").contains("double"));
    // There are no words for what only the kernel does.
    for method in ["token.issue", "policy.load", "policy.update", "session.mode", "session.approve"]
    {
        refused(&client, method, json!({}), FaultCode::UnknownMethod);
    }
    refused(&client, "review.response", json!({ "run": 1 }), FaultCode::BadParams);
    let late = json!({ "run": 1, "id": "review-1", "reply": { "how": "typed", "yes": true, "phrase": null } });
    refused(&client, "review.response", late, FaultCode::NotFound);
}

#[test]
fn a_second_client_watches_what_the_first_drives_to_the_same_end() {
    let lab = Lab::new(Language::JavaScript);
    let mut command = lab.command(&[], &lab.good_turns());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("session.started"));
    let mut attach = lab.user.command(&["session", "attach", "--json"]);
    attach.env("HOME", std::env::var_os("HOME").unwrap());
    let watched = Answer::of(attach.stdin(Stdio::null()).output().unwrap());
    let first: Vec<Value> =
        lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert!(child.wait().unwrap().success());
    assert_eq!(watched.code, 0, "{}{}", watched.out, watched.err);
    let kinds = |events: &[Value]| {
        let kinds = events.iter().map(|event| event["type"].as_str().unwrap().to_owned());
        kinds.filter(|kind| kind != "session.started").collect::<Vec<_>>()
    };
    assert_eq!(kinds(&watched.json_lines()), kinds(&first));
    let nothing = lab.user.run(&["session", "attach"]);
    assert_eq!(nothing.code, 1, "{}{}", nothing.out, nothing.err);
}

#[test]
fn the_kernel_has_no_secret_of_the_clients_environment_and_none_of_its_files() {
    let lab = Lab::new(Language::JavaScript);
    let mut command = lab.command(&[], &lab.good_turns());
    command.env("OPENAI_API_KEY", "sk-not-for-the-kernel").env("AWS_SECRET_ACCESS_KEY", "nor-this");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("session.started"));
    let pids = working(&lab.user);
    assert_eq!(pids.len(), 2, "a bootstrap and a kernel");
    for pid in pids {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let environment = String::from_utf8_lossy(&environment).into_owned();
        assert!(!environment.contains("not-for-the-kernel"), "{environment}");
        assert!(!environment.contains("nor-this"), "{environment}");
    }
    lines.for_each(drop);
    assert!(child.wait().unwrap().success());
    all_gone(&lab);
}

#[test]
fn a_kernel_that_is_still_there_works_by_the_settings_of_the_moment() {
    let lab = Lab::new(Language::JavaScript);
    let settings = lab.user.project.path("config/fluffy");
    std::fs::create_dir_all(&settings).unwrap();
    let run = |turns: &[Value]| {
        let mut command = lab.command(&[], turns);
        command.env("XDG_CONFIG_HOME", lab.user.project.path("config"));
        command.env("FLUFFY_KERNEL_IDLE_SECONDS", "600");
        let answer = Answer::of(command.stdin(Stdio::null()).output().unwrap());
        assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    };
    run(&[say("Hello.", &[])]);
    let first = working(&lab.user);
    assert_eq!(first.len(), 2, "a bootstrap and a kernel stay");
    run(&[say("Hello again.", &[])]);
    assert_eq!(working(&lab.user), first, "the same ones");
    let text = "commit:\n  author: Grace <grace@example.org>\n";
    std::fs::write(settings.join("config.yaml"), text).unwrap();
    run(&lab.good_turns());
    assert_eq!(lab.git(&["log", "-1", "--format=%an"]).trim(), "Grace");
    let stopped = lab.user.run(&["kernel", "stop"]);
    assert_eq!((stopped.code, stopped.out.as_str()), (0, "The kernel ends.\n"), "{}", stopped.err);
    all_gone(&lab);
    let none = lab.user.run(&["kernel", "stop"]);
    assert_eq!(none.out, "No kernel works for this project.\n");
}
