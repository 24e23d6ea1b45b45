//! Jobs, which have a seat from their start to their end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fluffy_kernel::schedule::{Limits, Shown, Stage};
use fluffy_kernel::{Errand, Lab, LabError, WorkshopError, WorkshopOptions};
use fluffy_sandbox::{End, RuntimeError};

use crate::scene::{Scene, run};

const SEATS: usize = 4;

fn few(global: usize) -> Limits {
    Limits { global, code_executor: global, ..Limits::default() }
}

fn are(tasks: &[Shown], stage: Stage) -> usize {
    tasks.iter().filter(|task| task.stage == stage).count()
}

#[test]
fn fifty_sandboxes_with_pauses_in_the_middle_all_end_and_never_more_work_than_may() {
    const COUNT: usize = 50;
    let scene = Scene::new(few(SEATS));
    let all: Vec<_> = (0..COUNT).map(|_| scene.executor("go")).collect();
    let running: Vec<_> = all.iter().map(run).collect();
    scene.wait_until(|tasks| tasks.len() == COUNT && are(tasks, Stage::Running) == SEATS);
    for round in 0..3 {
        let decisive = scene.policy(&format!("decided {round}"));
        let decided = run(&decisive);
        let is_let_in = |task: &Shown| task.priority.level() == 1 && task.stage == Stage::Running;
        let tasks = scene.wait_until(|tasks| tasks.iter().any(is_let_in));
        assert_eq!((are(&tasks, Stage::Running), are(&tasks, Stage::Paused)), (SEATS, 1));
        scene.let_go(&format!("decided {round}"));
        assert!(decided.join().unwrap().unwrap().is_success());
        scene.wait_until(|tasks| are(tasks, Stage::Paused) == 0);
    }
    scene.let_go("go");
    for (at, ended) in running.into_iter().enumerate() {
        let outcome = ended.join().unwrap().unwrap();
        assert_eq!(outcome.end, End::Exited(0), "{at}");
        assert_eq!(outcome.stdout.bytes, b"there\ndone\n", "{at}");
    }
    assert_eq!(scene.count.most.load(Ordering::SeqCst), SEATS);
    assert_eq!(scene.count.pauses.load(Ordering::SeqCst), 3);
    assert_eq!(scene.count.resumes.load(Ordering::SeqCst), 3);
    scene.is_over();
}

#[test]
fn sch_1_what_waits_is_listed_with_what_it_waits_for() {
    let scene = Scene::new(Limits { global: 3, code_executor: 1, ..Limits::default() });
    let (first, second) = (scene.executor("go"), scene.executor("go"));
    let first = run(&first);
    scene.wait_until(|tasks| tasks.len() == 1);
    let second = run(&second);
    let tasks = scene.wait_until(|tasks| tasks.len() == 2);
    assert_eq!(tasks[0].waits, None);
    assert_eq!(tasks[1].waits.as_deref(), Some("for a seat: 1 of code-executor work"));
    assert_eq!((tasks[1].name.as_str(), tasks[1].priority.level()), ("sh", 3));
    scene.let_go("go");
    assert!(first.join().unwrap().unwrap().is_success());
    assert!(second.join().unwrap().unwrap().is_success());
    scene.is_over();
}

#[test]
fn what_is_killed_or_taken_away_while_it_waits_never_starts() {
    let scene = Scene::new(few(1));
    let first = scene.executor("go");
    let running = run(&first);
    scene.wait_until(|tasks| are(tasks, Stage::Running) == 1);
    for taken_away in [false, true] {
        let second = scene.executor("go");
        let waiting = run(&second);
        scene.wait_until(|tasks| are(tasks, Stage::Queued) == 1);
        if taken_away {
            second.remove()
        } else {
            second.kill()
        }
        let outcome = waiting.join().unwrap();
        assert!(matches!(outcome, Err(RuntimeError::State(_))), "{outcome:?}");
        assert_eq!(second.logs().0.bytes, b"");
        assert_eq!(scene.scheduler.tasks().len(), 1);
    }
    first.kill();
    assert_eq!(running.join().unwrap().unwrap().end, End::Stopped);
    scene.is_over();
}

#[test]
fn a_program_that_is_not_there_gives_its_seat_back() {
    let scene = Scene::new(few(1));
    let config = scene.config(fluffy_sandbox::Template::CodeExecutor);
    let job = fluffy_sandbox::Job::new("no-such-program");
    let sandbox = scene.runtime.create(config, job).unwrap();
    assert!(matches!(sandbox.run(Arc::new(())), Err(RuntimeError::Program { .. })));
    scene.is_over();
    scene.let_go("go");
    assert!(scene.executor("go").run(Arc::new(())).unwrap().is_success());
}

#[test]
fn what_is_ended_while_it_is_paused_ends_and_gives_its_place_back() {
    let scene = Scene::new(few(1));
    let (first, decisive) = (scene.executor("never"), scene.policy("decided"));
    let running = run(&first);
    scene.wait_until(|tasks| are(tasks, Stage::Running) == 1);
    let decided = run(&decisive);
    scene.wait_until(|tasks| are(tasks, Stage::Paused) == 1);
    first.kill();
    assert_eq!(running.join().unwrap().unwrap().end, End::Stopped);
    scene.let_go("decided");
    assert!(decided.join().unwrap().unwrap().is_success());
    scene.is_over();
}

/// A journal that takes everything.
struct Silent;

impl fluffy_kernel::Journal for Silent {
    fn record(
        &self,
        _note: fluffy_kernel::Note,
    ) -> Result<fluffy_ledger::Appended, fluffy_kernel::ToolError> {
        Ok(fluffy_ledger::Appended { seq: 1, entry_hash: fluffy_base::Digest::of(b"entry") })
    }
}

#[test]
fn cancelling_ends_what_works_and_what_waits() {
    let scene = Scene::new(few(1));
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let lab = Arc::new(Lab::new(WorkshopOptions {
        runtime: Arc::clone(&scene.runtime),
        project: dir.path().to_owned(),
        home: None,
        shown: Vec::new(),
        program: "/bin/true".into(),
    }));
    let errands: Vec<_> = (0..3)
        .map(|_| {
            let (lab, layers) = (Arc::clone(&lab), vec![dir.path().to_owned()]);
            std::thread::spawn(move || {
                lab.run(Errand::new("sleep", "/work", layers).args(["1000"]), &Silent)
            })
        })
        .collect();
    scene.wait_until(|tasks| tasks.len() == 3 && are(tasks, Stage::Queued) == 2);
    lab.close();
    for errand in errands {
        let ended = errand.join().unwrap();
        let is_cancelled = matches!(ended, Err(LabError::Workshop(WorkshopError::Cancelled)));
        assert!(is_cancelled, "{ended:?}");
    }
    scene.is_over();
}
