//! Where a sandbox is in its life, and what may be asked of it there.

use std::sync::Arc;
use std::time::Duration;

use fluffy_sandbox::{End, Health, Job, Runtime, RuntimeError, Sandbox, State};

use super::scene::{Scene, Waiting, create, executor};

/// A sandbox goes through its states in order, and `inspect` tells them.
pub fn a_sandbox_goes_through_its_states_in_order(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let script = "trap '' TERM; echo there; read line; while :; do :; done";
    let (sandbox, stdin) = create(runtime, executor(), scene.script(script));
    let state = |sandbox: &dyn Sandbox| sandbox.inspect().state;
    assert_eq!(state(&*sandbox), State::Creating);
    drop((sandbox, stdin));
    let waiting = Waiting::start(runtime, executor(), scene.script(script));
    let sandbox = &*waiting.sandbox;
    assert_eq!(state(sandbox), State::Running);
    let inspection = sandbox.inspect();
    assert!(inspection.processes.is_none_or(|count| count >= 1), "{inspection:?}");
    assert!(inspection.memory.is_none_or(|bytes| bytes > 0), "{inspection:?}");
    sandbox.stop(Duration::from_secs(1000));
    assert_eq!(state(sandbox), State::Stopping);
    sandbox.kill();
    assert_eq!(sandbox.wait().unwrap().end, End::Stopped);
    assert_eq!(state(sandbox), State::Cleanup);
    sandbox.remove();
    assert_eq!(state(sandbox), State::Destroyed);
}

/// What a state does not allow is refused with its name.
pub fn what_a_state_does_not_allow_is_refused(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let (sandbox, _stdin) = create(runtime, executor(), scene.script(":"));
    refused_in(State::Creating, sandbox.wait());
    refused_in(State::Creating, sandbox.pause());
    refused_in(State::Creating, sandbox.resume());
    sandbox.stop(Duration::ZERO);
    sandbox.kill();
    assert_eq!(sandbox.inspect().state, State::Creating);
    let mut waiting = Waiting::start(runtime, executor(), scene.script("echo there; read line"));
    refused_in(State::Running, waiting.sandbox.start(Arc::new(())));
    waiting.say("go\n");
    let outcome = waiting.outcome();
    assert_eq!(outcome.end, End::Exited(0));
    assert_eq!(waiting.outcome(), outcome, "it can be asked again");
    refused_in(State::Cleanup, waiting.sandbox.pause());
    refused_in(State::Cleanup, waiting.sandbox.start(Arc::new(())));
    waiting.sandbox.stop(Duration::ZERO);
    waiting.sandbox.kill();
    assert_eq!(waiting.sandbox.inspect().state, State::Cleanup);
    waiting.sandbox.remove();
    refused_in(State::Destroyed, waiting.sandbox.start(Arc::new(())));
    refused_in(State::Destroyed, waiting.sandbox.pause());
}

/// A job that could not be run leaves a sandbox that has failed, and stays so.
pub fn a_sandbox_whose_job_could_not_run_has_failed(runtime: &dyn Runtime) {
    let (sandbox, _stdin) = create(runtime, executor(), Job::new("no-such-program"));
    let started = sandbox.start(Arc::new(()));
    assert!(started.is_err() || sandbox.wait().is_err());
    assert_eq!(sandbox.inspect().state, State::Failed);
    refused_in(State::Failed, sandbox.wait());
    refused_in(State::Failed, sandbox.pause());
    refused_in(State::Failed, sandbox.start(Arc::new(())));
}

/// A runtime says whether it is ready, and runs jobs at once when it is.
pub fn a_runtime_that_is_ready_runs_jobs_at_once(runtime: &dyn Runtime) {
    assert!(!runtime.name().is_empty());
    for _ in 0..2 {
        match runtime.ping().unwrap() {
            Health::Ready { notes } => {
                assert!(notes.iter().all(|note| !note.is_empty()), "{notes:?}");
                assert!(
                    runtime.run(executor(), Job::new("true"), Arc::new(())).unwrap().is_success()
                );
            }
            Health::Pending { reason, progress } => {
                assert!(!reason.is_empty() && progress.is_none_or(|hundredths| hundredths <= 100));
            }
        }
    }
}

/// Every sandbox has a name of its own.
pub fn every_sandbox_has_a_name_of_its_own(runtime: &dyn Runtime) {
    let sandboxes: Vec<_> =
        (0..5).map(|_| runtime.create(executor(), Job::new("true")).unwrap()).collect();
    let mut names: Vec<&str> = sandboxes.iter().map(|sandbox| sandbox.id()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 5);
}

/// Several may wait for the same end.
pub fn several_may_wait_for_one_end(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let mut waiting =
        Waiting::start(runtime, executor(), scene.script("echo there; read line; exit 4"));
    let sandbox: Arc<dyn Sandbox> = Arc::from(waiting.sandbox);
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let sandbox = Arc::clone(&sandbox);
            std::thread::spawn(move || sandbox.wait().unwrap().end)
        })
        .collect();
    waiting.sandbox = runtime.create(executor(), Job::new("true")).unwrap();
    waiting.say("go\n");
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap(), End::Exited(4));
    }
}

#[track_caller]
fn refused_in<T: std::fmt::Debug>(state: State, answer: Result<T, RuntimeError>) {
    match answer {
        Err(RuntimeError::State(named)) => assert_eq!(named, state),
        other => panic!("{state:?} allows it: {other:?}"),
    }
}
