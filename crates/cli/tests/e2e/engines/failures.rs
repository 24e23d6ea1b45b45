//! What goes wrong with an engine ends a task with words that help, leaves nothing behind, and the task goes on afterwards.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use fluffy_sandbox::EngineKind;
use fluffy_testkit::engines::{OwnEngine, is_there};
use serde_json::Value;

use super::NOBODY;
use super::worker::{Worker, eventually};
use crate::program::Answer;
use crate::task::lab::{Run, complete, run_tests, say, write};

/// What root alone can have: an engine for one test.
fn own(engine: EngineKind) -> Option<OwnEngine> {
    let may = rustix::process::geteuid().is_root() && is_there(engine);
    may.then(|| OwnEngine::start(engine, NOBODY).unwrap())
}

#[test]
fn engine_slow_one_that_is_killed_in_mid_run_ends_the_task_and_after_its_return_the_task_goes_on() {
    for engine in EngineKind::ALL {
        let Some(mut own) = own(engine) else { continue };
        let worker = Worker::new(engine, own.socket());
        let language = worker.lab.language;
        let (test, text) = language.test();
        let code = write(language.source(), &language.solution());
        let turns = [
            say("A test.", &[write(test, text)]),
            say("It must fail.", &[run_tests()]),
            // Tried in vain, and then again by whoever is told so.
            say("Now the code.", std::slice::from_ref(&code)),
            say("Once more.", &[code]),
            say("It must pass.", &[run_tests()]),
            complete(),
        ];
        let run = until_tests_ran(worker.task(&turns), || own.kill());
        run.assert_not_done(1);
        let failed = run.all("task.failed")[0].to_string();
        assert!(failed.contains("no sandbox can be made any more"), "{failed}");
        assert!(failed.contains(engine.title()) && failed.contains("session resume"), "{failed}");
        assert!(failed.contains("start "), "it says how to start the engine: {failed}");
        assert_eq!(run.all("tests.finished").len(), 1, "the model was not asked on and on");

        own.again(NOBODY).unwrap();
        worker.resume().assert_done();
        assert_eq!(worker.lab.user.read("sums.js"), language.solution());
        let verified = worker.run(&["audit", "verify"]);
        assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
        worker.leaves_nothing();
    }
}

#[test]
fn engine_slow_one_that_stalls_in_mid_run_ends_the_task_in_time_and_after_that_the_task_goes_on() {
    // The deadline of a call is a minute, and the same for both.
    let Some(own) = own(EngineKind::Docker) else { return };
    let worker = Worker::new(EngineKind::Docker, own.socket());
    let task = worker.task(&worker.lab.good_turns());
    let run = until_tests_ran(task, || own.stall(true).unwrap());
    own.stall(false).unwrap();
    run.assert_not_done(1);
    let failed = run.all("task.failed")[0].to_string();
    assert!(failed.contains("no answer within"), "{failed}");
    assert!(failed.contains("session resume"), "{failed}");
    worker.resume().assert_done();
    assert_eq!(worker.lab.user.read("sums.js"), worker.lab.language.solution());
    worker.leaves_nothing();
}

/// Has a task done, and something happen as soon as its tests ran for the first time.
pub(super) fn until_tests_ran(mut task: Command, mut happens: impl FnMut()) -> Run {
    let mut child = task.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut events = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if event["type"] == "tests.finished" {
            happens();
        }
        events.push(event);
    }
    let Answer { err, code, .. } = Answer::of(child.wait_with_output().unwrap());
    Run { events, code, err }
}

#[test]
fn engine_an_image_that_is_not_there_ends_a_task_before_it_begins() {
    for worker in Worker::each() {
        let named = "sandbox:\n  image: example.invalid/no/such:1\n";
        worker.lab.user.write(".fluffy/config.yaml", named);
        let run = worker.work(&worker.lab.good_turns());
        assert_eq!(run.code, 4, "{}", run.told());
        assert!(run.told().contains("No such image"), "{}", run.told());
        assert!(run.told().contains("pull the image"), "{}", run.told());
        worker.leaves_nothing();
    }
}

#[test]
fn engine_one_whose_socket_is_forbidden_or_that_is_not_there_ends_a_task_before_it_begins() {
    for mut worker in Worker::each() {
        let forbidden = worker.lab.user.project.path("forbidden.sock");
        let _held = UnixListener::bind(&forbidden).unwrap();
        std::fs::set_permissions(&forbidden, std::fs::Permissions::from_mode(0o000)).unwrap();
        let absent = worker.lab.user.project.path("absent.sock");
        let cases = [
            (
                forbidden,
                "Permission denied",
                if worker.engine == EngineKind::Docker { "group" } else { "your own service" },
            ),
            (absent, "nobody answers at", "start "),
        ];
        for (socket, why, fix) in cases {
            worker.socket = socket;
            let run = worker.work(&worker.lab.good_turns());
            assert_eq!(run.code, 4, "{}", run.told());
            for part in [why, fix, "cannot be used"] {
                assert!(run.told().contains(part), "{part}: {}", run.told());
            }
            eventually("no kernel is there without a gate", || {
                worker.processes("kernel").is_empty()
            });
        }
    }
}

#[test]
fn engine_slow_one_that_does_not_answer_ends_a_task_before_it_begins() {
    // It is the same for both: nobody says a word.
    let Some(mut worker) = Worker::each().next() else { return };
    let silent = worker.lab.user.project.path("silent.sock");
    let _held = UnixListener::bind(&silent).unwrap();
    if rustix::process::geteuid().is_root() {
        chown(&silent, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    worker.socket = silent;
    let run = worker.work(&worker.lab.good_turns());
    assert_eq!(run.code, 4, "{}", run.told());
    assert!(run.told().contains("no answer within 10 s"), "{}", run.told());
    assert!(run.told().contains("see what holds it up"), "{}", run.told());
}
