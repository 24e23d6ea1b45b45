//! Images that have to be fetched first: whoever waits is told how far it is.

use std::process::{Child, Command, Stdio};

use fluffy_sandbox::EngineKind;
use fluffy_testkit::engines::{OwnEngine, is_there};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::NOBODY;
use super::registry::Registry;
use super::worker::Worker;
use crate::program::Answer;
use crate::task::lab::{Run, say};

/// For each kind an engine that has no image yet, with somebody who names one that has to be fetched.
fn each(mut test: impl FnMut(&Worker, &Registry)) {
    for engine in EngineKind::ALL {
        if !rustix::process::geteuid().is_root() || !is_there(engine) {
            continue;
        }
        let registry = Registry::start();
        let own = OwnEngine::start_beside(engine, NOBODY, Some(registry.at)).unwrap();
        let worker = Worker::new(engine, own.socket());
        test(&worker, &registry);
        worker.leaves_nothing();
    }
}

/// How far it was said to be, each time.
fn progress(run: &Run) -> Vec<u64> {
    run.all("sandbox.pending").iter().filter_map(|event| event["progress"].as_u64()).collect()
}

#[test]
fn engine_slow_sbx_10_a_task_whose_image_is_fetched_tells_how_far_it_is_and_begins_when_it_is_there()
 {
    each(|worker, registry| {
        let mut command = worker.task(&[say("Hello.", &[])]);
        command.env("FLUFFY_SANDBOX_IMAGE", registry.image());
        let run = Run::of(Answer::of(command.output().unwrap()));
        let kinds: Vec<&str> =
            run.events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        let started = kinds.iter().position(|kind| *kind == "session.started");
        let last = kinds.iter().rposition(|kind| *kind == "sandbox.pending");
        assert!(last.is_some() && last < started, "{}: {}", worker.engine, run.told());
        let far = progress(&run);
        assert!(far.len() > 2 && far.is_sorted(), "{}: {far:?} {}", worker.engine, run.told());
        assert!(far.iter().any(|far| (1..99).contains(far)), "{}: {far:?}", worker.engine);
        let what = run.all("sandbox.pending")[0]["what"].as_str().unwrap().to_owned();
        assert!(what.contains(&registry.image()) && what.contains("fetched"), "{what}");
        // It is there now, and nobody waits any more.
        let mut command = worker.task(&[say("Hello.", &[])]);
        command.env("FLUFFY_SANDBOX_IMAGE", registry.image());
        let run = Run::of(Answer::of(command.output().unwrap()));
        assert!(run.all("sandbox.pending").is_empty(), "{}", run.told());
        assert_eq!(run.all("session.started").len(), 1, "{}", run.told());
    });
}

#[test]
fn engine_slow_sbx_10_a_task_that_waits_for_its_image_can_be_cancelled() {
    each(|worker, registry| {
        let mut command = worker.task(&[say("Hello.", &[])]);
        command.env("FLUFFY_SANDBOX_IMAGE", registry.image());
        let mut child = Waiting::start(&mut command);
        child.until("sandbox.pending");
        let pid = Pid::from_child(&child.0);
        kill_process(pid, Signal::INT).unwrap();
        let answer = Answer::of(child.0.wait_with_output().unwrap());
        assert_eq!(answer.code, 130, "{}{}", answer.out, answer.err);
        assert!(!answer.out.contains("session.started"), "{}", answer.out);
        let stopped = worker.run(&["kernel", "stop"]);
        assert_eq!(stopped.code, 0, "{}", stopped.err);
    });
}

#[test]
fn engine_slow_sbx_10_whoever_waits_for_something_else_than_a_task_is_told_too() {
    each(|worker, registry| {
        let mut command = worker.command(&["plugin", "call", "no.such"]);
        command.env("FLUFFY_SANDBOX_IMAGE", registry.image());
        let answer = Answer::of(command.output().unwrap());
        assert_eq!(answer.code, 2, "{}", answer.err);
        let waiting = format!("waiting, the image `{}` is being fetched: ", registry.image());
        assert!(answer.err.lines().any(|line| line.starts_with(&waiting)), "{}", answer.err);
        assert!(answer.err.contains("none is installed"), "{}", answer.err);
    });
}

#[test]
fn engine_slow_sbx_10_an_image_is_built_with_its_progress_and_one_that_is_nowhere_is_an_error() {
    each(|worker, registry| {
        let built = |image: String| {
            let mut command = worker.command(&["image", "build"]);
            Answer::of(command.env("FLUFFY_SANDBOX_IMAGE", image).output().unwrap())
        };
        let answer = built(registry.image());
        assert_eq!(answer.code, 0, "{}", answer.err);
        assert!(answer.out.trim().starts_with("sha256:"), "{}", answer.out);
        let shown = answer.err.lines().filter(|line| line.contains(" %")).count();
        assert!(shown > 1, "{}: {}", worker.engine, answer.err);
        let answer = built(format!("{}/team/none:1", registry.at));
        assert_eq!(answer.code, 4, "{}", answer.err);
        assert!(answer.err.contains("fetch the image that is named"), "{}", answer.err);
    });
}

/// A task under way, whose events are looked at.
struct Waiting(Child);

impl Waiting {
    fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Reads events until one of this kind comes.
    fn until(&mut self, kind: &str) {
        use std::io::Read as _;
        let out = self.0.stdout.as_mut().unwrap();
        loop {
            // Byte by byte, so that what comes after stays to be read.
            let mut line = Vec::new();
            let mut byte = [0];
            while out.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
                line.push(byte[0]);
            }
            assert!(!line.is_empty(), "it ended before {kind}");
            let event: Value = serde_json::from_slice(&line).unwrap();
            if event["type"] == kind {
                return;
            }
        }
    }
}
