//! Guests, which have a seat while they are spoken with.

use std::sync::Arc;
use std::time::Duration;

use fluffy_kernel::schedule::{Limits, Stage};
use fluffy_kernel::{Guest, GuestFailure, Telling};
use fluffy_sandbox::{Job, Template};

use crate::scene::{Scene, run};

const LONG: Duration = Duration::from_secs(60);

fn guest(scene: &Scene, template: Template) -> Guest {
    let config = scene.config(template);
    Guest::start(&*scene.runtime, config, Job::new("cat"), 1 << 10, Telling::now(&Arc::default()))
        .unwrap()
}

fn says(guest: &mut Guest, text: &[u8]) {
    let frame = fluffy_base::encode_frame(text, 1 << 10).unwrap();
    assert_eq!(guest.send(&frame, LONG), Ok(frame.len()));
    assert_eq!(guest.receive(LONG).unwrap().as_deref(), Some(text));
}

#[test]
fn a_guest_has_a_seat_while_it_is_engaged_and_none_while_it_waits() {
    let scene = Scene::new(Limits { global: 1, ..Limits::default() });
    let mut first = guest(&scene, Template::AiProvider);
    let mut second = guest(&scene, Template::AiProvider);
    assert_eq!(scene.scheduler.tasks(), []);
    assert_eq!(first.engage(LONG), Ok(true));
    assert_eq!(first.engage(LONG), Ok(true));
    assert_eq!(second.engage(Duration::from_millis(1)), Ok(false));
    assert_eq!(second.engage(Duration::from_millis(1)), Ok(false));
    assert_eq!(scene.scheduler.tasks().len(), 2);
    says(&mut first, b"one");
    first.rest();
    assert_eq!(second.engage(LONG), Ok(true));
    says(&mut second, b"two");
    drop(second);
    assert_eq!(first.engage(LONG), Ok(true));
    says(&mut first, b"three");
    first.rest();
    assert_eq!(scene.scheduler.tasks(), []);
}

#[test]
fn a_guest_that_is_paused_answers_when_it_goes_on() {
    let scene = Scene::new(Limits { global: 1, ..Limits::default() });
    let mut guest = guest(&scene, Template::CodeExecutor);
    assert_eq!(guest.engage(LONG), Ok(true));
    let decided = run(&scene.policy("decided"));
    scene.wait_until(|tasks| tasks.iter().any(|task| task.stage == Stage::Paused));
    let frame = fluffy_base::encode_frame(b"one", 1 << 10).unwrap();
    assert_eq!(guest.send(&frame, LONG), Ok(frame.len()));
    assert_eq!(guest.receive(Duration::from_millis(50)), Ok(None));
    scene.let_go("decided");
    assert!(decided.join().unwrap().unwrap().is_success());
    assert_eq!(guest.receive(LONG).unwrap().as_deref(), Some(&b"one"[..]));
    guest.rest();
    assert_eq!(scene.scheduler.tasks(), []);
}

#[test]
fn a_guest_that_had_answered_when_it_was_paused_does_not_stay_paused() {
    let scene = Scene::new(Limits { global: 1, ..Limits::default() });
    let mut guest = guest(&scene, Template::CodeExecutor);
    assert_eq!(guest.engage(LONG), Ok(true));
    says(&mut guest, b"one");
    let decided = run(&scene.policy("decided"));
    scene.wait_until(|tasks| tasks.iter().any(|task| task.stage == Stage::Paused));
    guest.rest();
    scene.let_go("decided");
    assert!(decided.join().unwrap().unwrap().is_success());
    assert_eq!(guest.engage(LONG), Ok(true));
    says(&mut guest, b"two");
}

#[test]
fn a_guest_that_is_ended_for_want_of_memory_is_found_dead() {
    let scene = Scene::new(Limits::default());
    let mut guest = guest(&scene, Template::CodeExecutor);
    assert_eq!(guest.engage(LONG), Ok(true));
    scene.memory_is_at(95);
    assert_eq!(guest.receive(LONG), Err(GuestFailure::Died));
    drop(guest);
    assert_eq!(scene.scheduler.tasks(), []);
}
