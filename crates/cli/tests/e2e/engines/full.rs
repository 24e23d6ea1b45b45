//! No room: a job that takes more than it may have, and a disk that is full for everybody.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use fluffy_sandbox::EngineKind;
use fluffy_testkit::engines::{OwnEngine, is_there};
use fluffy_testkit::mounts::{is_apart, mount_small};
use serde_json::{Value, json};

use super::NOBODY;
use super::failures::until_tests_ran;
use super::worker::Worker;
use crate::task::lab::{call, say};

/// Takes 5 GiB of the disk, of which 4 are allowed, and waits for what comes of it.
const TAKES_TOO_MUCH: &str = "
import os, time
os.mkdir('more')
for name in 'big', 'more/big':
    with open(name, 'wb') as big:
        os.posix_fallocate(big.fileno(), 0, 5 << 29)
time.sleep(60)
";
/// Writes more than there is room for.
const WRITES_ALL: &str = "open('big', 'wb').write(bytes(200 << 20))";

fn python(script: &str) -> Value {
    say("", &[call("shell.run", json!({"command": "python3", "args": ["-c", script]}))])
}

/// What such jobs wrote and is still there.
fn left(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let found = paths.flat_map(|path| match path.is_dir() && !path.is_symlink() {
        true => left(&path),
        false => vec![path],
    });
    found.filter(|path| path.ends_with("big")).collect()
}

#[test]
fn engine_slow_sbx_10_a_job_that_fills_its_volume_is_ended_and_the_task_goes_on() {
    for worker in Worker::each() {
        let mut turns = worker.lab.good_turns();
        turns.insert(0, python(TAKES_TOO_MUCH));
        let run = worker.work(&turns);
        run.assert_done();
        let heard = worker.lab.heard(&run);
        assert!(heard.contains("ended: the limit of disk space was reached"), "{heard}");
        assert_eq!(left(&worker.lab.user.project.state()), [] as [&Path; 0]);
        worker.leaves_nothing();
    }
}

/// Runs a test for somebody whose state has little room. What is tried is ours and the same for both engines, and Docker can
/// be had in a mount namespace as anywhere.
fn with_little_room(name: &str, test: impl Fn(&Worker)) {
    let engine = EngineKind::Docker;
    if !rustix::process::geteuid().is_root() || !is_there(engine) {
        return;
    }
    if !is_apart(&format!("engines::full::{name}")) {
        return;
    }
    // In the namespace, too, where it sees what is mounted there.
    let own = OwnEngine::start(engine, NOBODY).unwrap();
    let worker = Worker::new(engine, own.socket());
    let state = worker.lab.user.project.state();
    mount_small(&state, NOBODY);
    test(&worker);
    let verified = worker.run(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    worker.leaves_nothing();
    assert_eq!(left(&state), [] as [&Path; 0]);
}

#[test]
fn engine_slow_sbx_10_a_job_that_fills_the_disk_is_told_so_and_the_task_goes_on() {
    let name = "engine_slow_sbx_10_a_job_that_fills_the_disk_is_told_so_and_the_task_goes_on";
    with_little_room(name, |worker| {
        let mut turns = worker.lab.good_turns();
        turns.insert(0, python(WRITES_ALL));
        let run = worker.work(&turns);
        run.assert_done();
        let heard = worker.lab.heard(&run);
        assert!(heard.contains("No space left on device"), "{heard}");
    });
}

/// Takes all room that there is, also what others give back, until it is over.
fn take_all(file: &Path, over: &AtomicBool) {
    let mut taken = std::fs::File::create(file).unwrap();
    while !over.load(Ordering::Relaxed) {
        while taken.write_all(&[1; 4096]).is_ok() {}
        std::thread::yield_now();
    }
}

#[test]
fn engine_slow_sbx_10_a_disk_that_is_full_ends_the_task_and_with_room_again_it_goes_on() {
    let name =
        "engine_slow_sbx_10_a_disk_that_is_full_ends_the_task_and_with_room_again_it_goes_on";
    with_little_room(name, |worker| {
        let taken = worker.lab.user.project.state().join("taken");
        let over = AtomicBool::new(false);
        let run = std::thread::scope(|scope| {
            let run = until_tests_ran(worker.task(&worker.lab.good_turns()), || {
                scope.spawn(|| take_all(&taken, &over));
            });
            over.store(true, Ordering::Relaxed);
            run
        });
        run.assert_not_done(6);
        let failed = run.all("task.failed")[0].to_string();
        assert!(failed.contains("full") && failed.contains("session resume"), "{failed}");
        std::fs::remove_file(&taken).unwrap();
        worker.resume().assert_done();
        assert_eq!(worker.lab.user.read("sums.js"), worker.lab.language.solution());
    });
}
