//! What gives way when memory is short.

use std::sync::Arc;

use fluffy_kernel::schedule::{Limits, Stage};
use fluffy_sandbox::{Input, Job, RuntimeError, Start, Template};

use crate::scene::{Scene, run};

#[test]
fn sch_5_at_eighty_hundredths_nothing_new_starts_beside_what_works() {
    let scene = Scene::new(Limits::default());
    let first = run(&scene.executor("first"));
    scene.wait_until(|tasks| tasks.len() == 1);
    scene.memory_is_at(85);
    while scene.scheduler.memory().0 != 85 {
        std::thread::yield_now();
    }
    let second = run(&scene.executor("second"));
    let tasks = scene.wait_until(|tasks| tasks.len() == 2);
    assert_eq!(tasks[1].stage, Stage::Queued);
    assert_eq!(tasks[1].waits.as_deref(), Some("for memory: 85 % is used"));
    scene.memory_is_at(50);
    scene.wait_until(|tasks| tasks.iter().all(|task| task.stage == Stage::Running));
    scene.let_go("first");
    scene.let_go("second");
    assert!(first.join().unwrap().unwrap().is_success());
    assert!(second.join().unwrap().unwrap().is_success());
    scene.is_over();
}

#[test]
fn sch_5_at_ninety_hundredths_what_works_is_ended_with_its_reason_and_decisions_are_not() {
    let scene = Scene::new(Limits::default());
    let (job, decisive) = (run(&scene.executor("never")), run(&scene.policy("decided")));
    scene.wait_until(|tasks| tasks.iter().filter(|it| it.stage == Stage::Running).count() == 2);
    scene.memory_is_at(91);
    match job.join().unwrap() {
        Err(RuntimeError::GaveWay(why)) => assert_eq!(why, "ended as memory is at 91 %"),
        other => panic!("{other:?}"),
    }
    scene.let_go("decided");
    assert!(decisive.join().unwrap().unwrap().is_success());
    scene.is_over();
}

#[test]
fn sch_4_what_is_more_urgent_ends_what_is_less_where_memory_is_short() {
    let scene = Scene::new(Limits { global: 1, ..Limits::default() });
    let job = run(&scene.executor("never"));
    scene.wait_until(|tasks| tasks.len() == 1);
    scene.memory_is_at(82);
    while scene.scheduler.memory().0 != 82 {
        std::thread::yield_now();
    }
    scene.let_go("decided");
    assert!(scene.policy("decided").run(Arc::new(())).unwrap().is_success());
    match job.join().unwrap() {
        Err(RuntimeError::GaveWay(why)) => {
            let expected = "ended for task 2, which is more urgent, as memory is at 82 %";
            assert_eq!(why, expected);
        }
        other => panic!("{other:?}"),
    }
    scene.is_over();
}

#[test]
fn sch_5_what_waits_for_memory_that_stays_spent_is_given_up() {
    let scene = Scene::new(Limits { patience_ms: 300, ..Limits::default() });
    scene.memory_is_at(95);
    match scene.executor("go").run(Arc::new(())) {
        Err(RuntimeError::GaveWay(why)) => assert_eq!(why, "not started: memory stays at 95 %"),
        other => panic!("{other:?}"),
    }
    scene.is_over();
}

#[test]
fn sch_5_guests_that_stand_ready_are_let_go_when_memory_is_short_and_none_is_made() {
    let scene = Scene::new(Limits::default());
    let ready = || {
        let (theirs, ours) = std::io::pipe().unwrap();
        let mut job = Job::new("cat");
        (job.start, job.stdin) = (Start::Guest, Input::From(theirs.into()));
        let config = scene.config(Template::CodeExecutor);
        (scene.runtime.create(config, job).unwrap(), ours)
    };
    let (guest, _order) = ready();
    guest.start(Arc::new(())).unwrap();
    assert_eq!(scene.scheduler.tasks(), []);
    scene.memory_is_at(80);
    let working = run(&scene.executor("go"));
    assert_eq!(guest.wait().unwrap().end, fluffy_sandbox::End::Stopped);
    let (late, _order) = ready();
    assert!(matches!(late.start(Arc::new(())), Err(RuntimeError::GaveWay(_))));
    scene.let_go("go");
    assert!(working.join().unwrap().unwrap().is_success());
}
