//! What a job may use, and that only the job that wants more pays for it.

use fluffy_base::ByteSize;
use fluffy_sandbox::{End, Limit, Runtime, Store};

use super::scene::{Scene, Waiting, beside, executor, narrowed, notes, peek, run, succeeds};

/// A job that takes more memory than it may is ended, and nobody else is.
///
/// Where the runtime says that it has no way to limit memory, there is nothing to hold it to.
pub fn a_job_with_too_much_memory_is_ended_alone(runtime: &dyn Runtime) {
    if lacks(runtime, "memory limit") {
        return;
    }
    let scene = Scene::new();
    let mut other =
        Waiting::start(runtime, executor(), scene.script("echo there; read line; exit 0"));
    let config = narrowed(|limits| limits.memory = ByteSize::from_bytes(64 << 20));
    let script = "head -c 500M /dev/zero | tail -c 500M > /dev/null";
    let outcome = run(runtime, config, scene.bash(&format!("set -o pipefail; {script}")));
    assert_eq!(outcome.end, End::Limit(Limit::Memory));
    assert_eq!(outcome.reached, [Limit::Memory]);
    assert!(outcome.usage.memory.is_none_or(|bytes| bytes <= 64 << 20), "{:?}", outcome.usage);
    // Files in memory count as well.
    let config = narrowed(|limits| limits.memory = ByteSize::from_bytes(64 << 20));
    let outcome = run(runtime, config, scene.script("head -c 500M /dev/zero > /dev/shm/file"));
    assert_ne!(outcome.end, End::Exited(0));
    other.say("go\n");
    assert_eq!(other.outcome().end, End::Exited(0));
}

/// A job that starts more processes than it may is refused them, and nobody else is.
pub fn a_job_with_too_many_processes_is_refused_more(runtime: &dyn Runtime) {
    if lacks(runtime, "limit of processes") {
        return;
    }
    let scene = Scene::new();
    let mut other =
        Waiting::start(runtime, executor(), scene.script("echo there; read line; exit 0"));
    let config = narrowed(|limits| limits.processes = 12);
    let script = "for i in $(seq 40); do sleep 100 & done; exit 1";
    let outcome = run(runtime, config, scene.script(script));
    assert_eq!(outcome.end, End::Limit(Limit::Processes));
    succeeds(runtime, executor(), scene.script("for i in $(seq 40); do sleep 0.01 & done; wait"));
    other.say("go\n");
    assert_eq!(other.outcome().end, End::Exited(0));
    scene.is_quiet();
}

/// A volume takes no more than its limit: one in memory is full then, one on disk ends the job.
pub fn a_volume_takes_no_more_than_its_limit(runtime: &dyn Runtime) {
    const LIMIT: u64 = 4 << 20;
    for store in [Store::Memory, Store::Disk] {
        let scene = Scene::new();
        let volume = runtime.volume(store).unwrap();
        let mut limits = fluffy_sandbox::Template::CodeExecutor.limits();
        limits.disk = ByteSize::from_bytes(LIMIT);
        let config = beside(&scene, &volume).narrowed_to(limits);
        let outcome = run(runtime, config, scene.script("head -c 40M /dev/zero > /output/file"));
        assert!(!outcome.is_success(), "{store:?}: {}", outcome.end);
        let size = u64::try_from(peek(&volume, "file").len()).unwrap();
        assert!(size <= LIMIT, "{store:?}: {size}");
    }
    let scene = Scene::new();
    let volume = runtime.volume(Store::Disk).unwrap();
    let mut limits = fluffy_sandbox::Template::CodeExecutor.limits();
    limits.disk = ByteSize::from_bytes(LIMIT);
    let config = beside(&scene, &volume).narrowed_to(limits);
    // Many files, none of them too large: here the volume is watched.
    let script = "i=0; while :; do i=$((i+1)); head -c 1M /dev/zero > /output/$i; done";
    let outcome = run(runtime, config, scene.script(script));
    assert_eq!(outcome.end, End::Limit(Limit::Disk));
    scene.is_quiet();
}

/// What a job used is told.
pub fn what_a_job_used_is_told(runtime: &dyn Runtime) {
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let outcome = run(runtime, executor(), fluffy_sandbox::Job::new("sh").args(["-c", script]));
    assert!(outcome.is_success());
    assert!(!outcome.usage.wall.is_zero());
    assert!(outcome.usage.cpu.is_none_or(|cpu| !cpu.is_zero()), "{:?}", outcome.usage);
}

/// Whether a runtime says that it has no way to do this.
fn lacks(runtime: &dyn Runtime, part: &str) -> bool {
    notes(runtime).iter().any(|note| note.contains(part))
}
