//! How a job ends: by its deadline, with everything it started, and when it is taken away.

use std::sync::Arc;
use std::time::Duration;

use fluffy_sandbox::harvest::Kind;
use fluffy_sandbox::{End, Job, Limit, Runtime, Sandbox, State, Store};

use super::scene::{
    Scene, Waiting, beside, content, create, ending_after, executor, over, pass_time, peek, run,
    succeeds,
};

/// Starts a process that leaves its parents, its session and its terminal, and ignores what it can.
const DAEMON: &str = r#"
(setsid sh -c 'trap "" HUP TERM INT; echo there; while :; do sleep 5; done' "$0-daemon" &)
"#;

/// Promise 3: a job ends by its deadline, whatever it does.
pub fn p3_a_job_ends_by_its_deadline_whatever_it_does(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let ways = [
        "sleep 1000",
        "while :; do :; done",
        "trap '' TERM INT HUP QUIT; while :; do sleep 1; done",
        "kill -STOP $$; sleep 1000",
        "sleep 1000 & sleep 1000 & wait",
        "exec >&- 2>&-; sleep 1000",
        "(trap '' TERM; while :; do :; done) & (kill -STOP $$) & sleep 1000",
    ];
    for way in ways {
        let outcome = run(runtime, ending_after(300), scene.script(way));
        assert_eq!(outcome.end, End::Limit(Limit::Duration), "{way}");
        assert_eq!(outcome.reached, [Limit::Duration], "{way}");
        scene.is_quiet();
    }
}

/// Promise 3: a job that reads its own output before the kernel does still ends by its deadline.
pub fn p3_a_job_that_steals_its_own_output_ends_by_its_deadline(runtime: &dyn Runtime) {
    let scene = Scene::new();
    // Once somebody else has read what was announced, whoever waits for it waits in vain.
    let script = "exec 3</proc/self/fd/1 || exit 9
        cat <&3 >/dev/null & cat <&3 >/dev/null &
        for line in $(seq 100); do echo; sleep 0.001; done
        sleep 1000";
    let outcome = run(runtime, ending_after(1500), scene.bash(script));
    assert_eq!(outcome.end, End::Limit(Limit::Duration));
    scene.is_quiet();
}

/// Promise 4: what a job leaves running ends with it.
pub fn p4_nothing_a_job_started_outlives_it(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let script = format!("{DAEMON} read line; exit 0");
    let mut waiting = Waiting::start(runtime, executor(), scene.script(&script));
    // It is there as long as the job is, so that its absence says something.
    assert!(scene.processes().iter().any(|line| line.contains("-daemon")));
    waiting.say("go\n");
    assert_eq!(waiting.outcome().end, End::Exited(0));
    scene.is_quiet();
}

/// Promise 4: nothing is left of a sandbox that is taken away while it runs, or dropped.
pub fn p4_nothing_outlives_a_sandbox_that_is_taken_away(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let script = format!("{DAEMON} trap '' TERM; while :; do :; done");
    let waiting = Waiting::start(runtime, executor(), scene.script(&script));
    assert!(!scene.processes().is_empty());
    waiting.sandbox.remove();
    scene.is_quiet();
    let waiting = Waiting::start(runtime, executor(), scene.script(&script));
    assert!(!scene.processes().is_empty());
    drop(waiting);
    scene.is_quiet();
}

/// Promise 6: a sandbox can be taken away in every state, and again.
pub fn p6_a_sandbox_can_be_taken_away_in_every_state_and_again(runtime: &dyn Runtime) {
    type Reach = fn(&dyn Runtime, &Scene) -> Box<dyn Sandbox>;
    let states: [(State, Reach); 6] = [
        (State::Creating, |runtime, scene| create(runtime, executor(), scene.script(":")).0),
        (State::Running, |runtime, scene| forever_running(runtime, scene)),
        (State::Running, |runtime, scene| {
            let sandbox = forever_running(runtime, scene);
            sandbox.pause().unwrap();
            assert!(sandbox.inspect().paused);
            sandbox
        }),
        (State::Stopping, |runtime, scene| {
            let sandbox = forever_running(runtime, scene);
            sandbox.stop(Duration::from_secs(1000));
            sandbox
        }),
        (State::Cleanup, |runtime, scene| {
            let (sandbox, _) = create(runtime, executor(), scene.script(":"));
            sandbox.start(Arc::new(())).unwrap();
            sandbox.wait().unwrap();
            sandbox
        }),
        (State::Failed, |runtime, _| {
            let (sandbox, _) = create(runtime, executor(), Job::new("no-such-program"));
            // Whether it fails at once or a moment later is the runtime's own affair.
            let failed = sandbox.start(Arc::new(())).is_err() || sandbox.wait().is_err();
            assert!(failed);
            sandbox
        }),
    ];
    for (state, reach) in states {
        let scene = Scene::new();
        let sandbox = reach(runtime, &scene);
        assert_eq!(sandbox.inspect().state, state);
        for _ in 0..3 {
            sandbox.remove();
            assert_eq!(sandbox.inspect().state, State::Destroyed, "after {state:?}");
            assert!(!sandbox.inspect().paused);
            scene.is_quiet();
        }
        assert!(sandbox.start(Arc::new(())).is_err(), "after {state:?}");
        scene.is_quiet();
    }
}

/// Promise 6: a sandbox that is taken away while it is being started does not run on.
pub fn p6_a_sandbox_that_is_taken_away_while_it_starts_does_not_run_on(runtime: &dyn Runtime) {
    let scene = Scene::new();
    for _ in 0..20 {
        let (sandbox, _stdin) = create(runtime, executor(), scene.script("sleep 1000"));
        std::thread::scope(|threads| {
            let starting = threads.spawn(|| sandbox.start(Arc::new(())));
            sandbox.remove();
            // Either way is right, as long as nothing is left.
            let _started = starting.join().unwrap();
        });
        assert_eq!(sandbox.inspect().state, State::Destroyed);
        scene.is_quiet();
    }
}

/// Promise 6: what a job wrote can be read after its sandbox is gone, as long as the volume is held.
pub fn p6_a_volume_outlives_its_sandbox(runtime: &dyn Runtime) {
    for store in [Store::Memory, Store::Disk] {
        let scene = Scene::new();
        let volume = runtime.volume(store).unwrap();
        succeeds(runtime, over(&scene, &volume), scene.script("echo new > created"));
        assert_eq!(content(&volume, Kind::Overlay), ["+created new"], "{store:?}");
    }
}

/// A job that handles the request to end gets to do so.
pub fn a_job_that_is_stopped_may_end_by_itself(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let script = "trap 'echo handled; exit 3' TERM; echo there; while :; do sleep 0.05; done";
    let waiting = Waiting::start(runtime, executor(), scene.script(script));
    waiting.sandbox.stop(Duration::from_secs(1000));
    let outcome = waiting.outcome();
    assert_eq!(outcome.end, End::Stopped);
    assert_eq!(outcome.stdout.bytes, b"there\nhandled\n");
    scene.is_quiet();
}

/// One that does not obey is killed after the grace; so is one that is halted.
pub fn a_job_that_does_not_obey_is_killed_after_the_grace(runtime: &dyn Runtime) {
    let scene = Scene::new();
    for script in ["trap '' TERM; echo there; while :; do :; done", "echo there; kill -STOP $$"] {
        let waiting = Waiting::start(runtime, executor(), scene.script(script));
        waiting.sandbox.stop(Duration::from_millis(50));
        assert_eq!(waiting.outcome().end, End::Stopped, "{script}");
        scene.is_quiet();
    }
    let waiting = Waiting::start(runtime, executor(), scene.script("echo there; sleep 1000"));
    waiting.sandbox.kill();
    assert_eq!(waiting.outcome().end, End::Stopped);
    let sandbox = forever_running(runtime, &scene);
    sandbox.pause().unwrap();
    sandbox.stop(Duration::from_millis(50));
    assert_eq!(sandbox.wait().unwrap().end, End::Stopped);
    let sandbox = forever_running(runtime, &scene);
    sandbox.pause().unwrap();
    sandbox.kill();
    assert_eq!(sandbox.wait().unwrap().end, End::Stopped);
    scene.is_quiet();
}

/// A paused job makes no progress, and goes on where it was.
pub fn a_paused_job_makes_no_progress(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let volume = runtime.volume(Store::Memory).unwrap();
    let script =
        "echo there; while :; do echo x >> /output/count; done & read line; kill $!; exit 0";
    let mut waiting = Waiting::start(runtime, beside(&scene, &volume), scene.script(script));
    let count = || peek(&volume, "count").len();
    assert!(!waiting.sandbox.inspect().paused);
    waiting.sandbox.pause().unwrap();
    waiting.sandbox.pause().unwrap();
    assert!(waiting.sandbox.inspect().paused);
    pass_time(runtime, "0.2");
    let before = count();
    pass_time(runtime, "0.3");
    assert_eq!(count(), before);
    waiting.sandbox.resume().unwrap();
    waiting.sandbox.resume().unwrap();
    assert!(!waiting.sandbox.inspect().paused);
    while count() <= before {
        std::thread::yield_now();
    }
    waiting.say("go\n");
    assert_eq!(waiting.outcome().end, End::Exited(0));
}

/// Who handles the notice of a pause saves what it has to before it stands still, and is told that it goes on.
pub fn sbx_8_a_job_is_told_of_a_pause_and_of_its_end(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let script = "trap 'echo saved; kill -STOP $$; echo again' TSTP; echo there
        while :; do sleep 0.05; done";
    let waiting = Waiting::start(runtime, executor(), scene.script(script));
    let has_printed = |text: &str| {
        let printed = waiting.sandbox.logs().0.bytes;
        String::from_utf8_lossy(&printed).contains(text)
    };
    waiting.sandbox.pause().unwrap();
    assert!(waiting.sandbox.inspect().paused);
    // It stands still: what it had not printed before, it would never print.
    while !has_printed("saved\n") {
        std::thread::yield_now();
    }
    assert!(!has_printed("again\n"));
    waiting.sandbox.resume().unwrap();
    while !has_printed("again\n") {
        std::thread::yield_now();
    }
    waiting.sandbox.kill();
    assert_eq!(waiting.outcome().stdout.bytes, b"there\nsaved\nagain\n");
    scene.is_quiet();
}

/// Who does not stop after the notice is paused all the same.
pub fn sbx_8_nobody_puts_a_pause_off_for_longer_than_its_grace(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let script = "trap 'echo heard' TSTP; echo there; while :; do sleep 0.05; done";
    let waiting = Waiting::start(runtime, executor(), scene.script(script));
    waiting.sandbox.pause().unwrap();
    assert!(waiting.sandbox.inspect().paused);
    waiting.sandbox.kill();
    assert_eq!(waiting.outcome().stdout.bytes, b"there\nheard\n");
    scene.is_quiet();
}

/// Time in a pause does not count towards the deadline.
pub fn a_pause_does_not_count_towards_the_deadline(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let script = "echo there; read line; exit 0";
    let mut waiting = Waiting::start(runtime, ending_after(2_000), scene.script(script));
    waiting.sandbox.pause().unwrap();
    pass_time(runtime, "2.5");
    waiting.sandbox.resume().unwrap();
    waiting.say("go\n");
    let outcome = waiting.outcome();
    assert_eq!(outcome.end, End::Exited(0));
    assert!(outcome.usage.wall < Duration::from_secs(2), "{:?}", outcome.usage);
    // And after the pause the deadline holds again.
    let waiting =
        Waiting::start(runtime, ending_after(500), scene.script("echo there; sleep 1000"));
    waiting.sandbox.pause().unwrap();
    waiting.sandbox.resume().unwrap();
    assert_eq!(waiting.outcome().end, End::Limit(Limit::Duration));
    scene.is_quiet();
}

fn forever_running(runtime: &dyn Runtime, scene: &Scene) -> Box<dyn Sandbox> {
    let script = "echo there; trap '' TERM; while :; do sleep 1; done";
    Waiting::start(runtime, executor(), scene.script(script)).sandbox
}
