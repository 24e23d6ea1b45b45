//! Whole tasks in sandboxes of an engine, by a kernel that is confined and has no way to the engine but its gate.

use std::os::unix::fs::{chown, symlink};
use std::process::Stdio;

use serde_json::json;

use super::NOBODY;
use super::worker::{Worker, eventually};
use crate::plugin::lab::sdk;
use crate::program::Answer;
use crate::skill::lab::{NAME, SKILL, SKILL_FILE, TEST_FILE, TESTS, builder, spec};
use crate::task::lab::{Run, call, say};

#[test]
fn engine_sbx_9_slow_a_task_goes_from_a_failing_test_to_a_commit_in_sandboxes_of_each_engine() {
    for worker in Worker::each() {
        let lab = &worker.lab;
        let mut turns = lab.good_turns();
        let look = json!({"command": "cat", "args": ["/proc/1/cmdline"]});
        turns.insert(0, say("", &[call("shell.run", look)]));
        let run = worker.work(&turns);
        run.assert_done();
        let (test, text) = lab.language.test();
        assert_eq!(lab.user.read(test), text);
        assert_eq!(lab.user.read("sums.js"), lab.language.solution());
        assert_eq!(lab.git(&["status", "--porcelain"]), "");
        let log = lab.git(&["log", "-1", "--format=%an %s"]);
        assert_eq!(log.trim(), "Ada add double");
        let heard = lab.heard(&run);
        assert!(heard.contains("sandbox-entry"), "it ran in a container of ours: {heard}");
        let verified = worker.run(&["audit", "verify"]);
        assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
        images_are_recorded(&worker);
        worker.leaves_nothing();
    }
}

#[test]
fn engine_sbx_1_a_plugin_answers_from_a_sandbox_of_each_engine() {
    for worker in Worker::each() {
        worker.lab.user.write("src/a.py", "# HACK: write it\n");
        let todo = sdk().join("python/examples/todo");
        let asked = worker.typing(&["plugin", "install", todo.to_str().unwrap()], "y\n");
        assert_eq!(asked.code, 0, "{}{}", asked.out, asked.err);
        let called = worker.run(&["plugin", "call", "todo.find", "--json"]);
        assert_eq!(called.code, 0, "{}{}", called.out, called.err);
        let found = &called.json_lines()[0]["output"]["found"][0];
        assert_eq!((&found["path"], &found["line"]), (&json!("src/a.py"), &json!(1)));
        worker.leaves_nothing();
    }
}

#[test]
fn engine_slow_sbx_1_a_skill_is_verified_and_runs_in_sandboxes_of_each_engine() {
    // Tools of their own: those of whoever runs the tests may be made of a Python that is nobody else's.
    let tools = tempfile::tempdir().unwrap();
    if rustix::process::geteuid().is_root() {
        chown(tools.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    for worker in Worker::each() {
        let user = &worker.lab.user;
        symlink(tools.path(), user.project.path("home/.cache")).unwrap();
        let (spec, builder) =
            (spec(user), builder(user, &[&[(SKILL_FILE, SKILL), (TEST_FILE, TESTS)]]));
        let input = r#"{"title":"one","text":"hello"}"#;
        for args in [
            &["doctor", "--install"][..],
            &["propose", "--file", &spec],
            &["build", NAME, "--builder", &builder],
            &["verify", NAME],
        ] {
            let done = worker.run(&[&["skill"], args].concat());
            assert_eq!(done.code, 0, "{args:?}: {}{}", done.out, done.err);
        }
        let trusted = worker.typing(&["skill", "promote", NAME], "y\n");
        assert_eq!(trusted.code, 0, "{}{}", trusted.out, trusted.err);
        let ran = worker.run(&["skill", "run", NAME, "--input", input]);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        assert_eq!(user.read("notes/one.md"), "hello");
        images_are_recorded(&worker);
        worker.leaves_nothing();
    }
}

/// Of every sandbox it is in the ledger which image it was made of, by its digest, and people see it.
fn images_are_recorded(worker: &Worker) {
    let built = worker.run(&["image", "build"]);
    let digest = built.out.trim();
    assert!(digest.starts_with("sha256:"), "{}{}", built.out, built.err);
    let log = ["audit", "log", "--event", "sandbox_created"];
    let made = worker.run(&[&log[..], &["--json"]].concat()).json_lines();
    assert!(made.len() > 3, "{made:?}");
    for entry in made {
        let said = &entry["detail"]["metadata"];
        assert_eq!(said["driver"], worker.engine.name(), "{entry}");
        assert_eq!(said["image_digest"], digest, "{entry}");
        assert!(said["image"].as_str().unwrap().starts_with("localhost/fluffy-base:"), "{entry}");
    }
    let shown = worker.run(&log).out;
    let line = format!("a sandbox is made by {} of {}", worker.engine, &digest[..19]);
    assert!(shown.lines().all(|shown| shown.contains(&line)), "{shown}");
}

#[test]
fn engine_sbx_9_slow_a_kernel_that_is_killed_takes_its_gate_and_containers_along_and_the_task_goes_on()
 {
    for worker in Worker::each() {
        let child = worker.task(&worker.lab.good_turns());
        let child = { child }.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        eventually("there is a container", || !worker.containers().is_empty());
        let (gates, doors) = (worker.processes("kernel gate"), worker.doors());
        assert_eq!((gates.len(), doors.len()), (1, 1), "one kernel has one gate");
        // The bootstrap has the same words, and is no kernel.
        assert!(worker.kill("kernel serve --idle", &["\0boot\0"]), "its kernel is there");
        eventually("its gate is gone", || {
            !worker.processes("kernel gate").contains(&gates[0]) && !doors[0].exists()
        });
        let run = Run::of(Answer::of(child.wait_with_output().unwrap()));
        run.assert_done();
        assert_eq!(worker.lab.user.read("sums.js"), worker.lab.language.solution());
        worker.leaves_nothing();
    }
}

#[test]
fn engine_sbx_9_a_kernel_that_would_see_the_engines_socket_does_not_start() {
    for mut worker in Worker::each() {
        let seen = worker.lab.root().join("engine.sock");
        symlink(&worker.socket, &seen).unwrap();
        worker.socket = seen;
        let run = worker.work(&worker.lab.good_turns());
        assert_eq!(run.code, 4, "{}", run.told());
        assert!(run.told().contains("would see the engine's socket"), "{}", run.told());
    }
}
