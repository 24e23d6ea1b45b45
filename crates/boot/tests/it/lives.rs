//! Kernels that answer, crash, take their time or never answer.

use std::cell::Cell;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use fluffy_boot::Boot;

use crate::scene::{Scene, say};

#[test]
fn boo_1_a_kernel_that_answers_is_told_ready_and_may_end_when_it_is_idle() {
    let scene = Scene::new();
    let outcome = scene.run(&["serve"], &["end 0"]);
    let [(process, group)] = scene.lives().try_into().unwrap();
    assert_eq!(outcome.lines, [format!(r#"{{"ready":true,"pid":{process}}}"#)]);
    assert_eq!((outcome.code, group), (0, process));
}

#[test]
fn boo_1_a_kernel_that_crashed_is_started_again_and_told_ready_again() {
    let scene = Scene::new();
    let outcome = scene.run(&["serve", "abort", "exit=9", "serve"], &["abort", "end 0"]);
    let lives = scene.lives();
    let ready = |life: usize| format!(r#"{{"ready":true,"pid":{}}}"#, lives[life].0);
    assert_eq!((outcome.code, lives.len()), (0, 4));
    assert_eq!(outcome.lines, [ready(0), ready(3)]);
}

#[test]
fn boo_1_three_restarts_in_five_minutes_are_enough() {
    let scene = Scene::new();
    fs::write(scene.path("words"), "one\ntwo\n").unwrap();
    let print = format!("print={},9", scene.path("words").display());
    let outcome = scene.run(&["exit=9", "abort", "exit=1", &print], &[]);
    let trouble = outcome.trouble();
    assert_eq!((outcome.code, outcome.lines.len(), scene.lives().len()), (1, 1, 4));
    assert!(trouble.what.contains("3 new starts in 5 minutes"), "{trouble:?}");
    assert!(trouble.what.contains("exit status: 9"), "{trouble:?}");
    assert_eq!(trouble.why, "one\ntwo");
    assert!(trouble.fix.contains(scene.path("log").to_str().unwrap()), "{trouble:?}");
}

#[test]
fn boo_1_crashes_of_more_than_five_minutes_ago_do_not_count() {
    let crash_every = |seconds: u32| {
        let scene = Scene::new();
        let lives = scene.path("lives");
        let machine = scene.machine_by(move || {
            let lives = fs::read_to_string(&lives).unwrap_or_default().lines().count();
            Duration::from_secs(seconds.into()) * u32::try_from(lives).unwrap()
        });
        let boot = scene.boot(&["exit=9", "exit=9", "exit=9", "exit=9", "exit=9", "serve"]);
        let outcome = scene.run_by(&machine, &boot, |_| {
            say(&boot.socket, "end 0");
        });
        (outcome.code, scene.lives().len())
    };
    assert_eq!(crash_every(99), (1, 4));
    assert_eq!(crash_every(100), (0, 6));
}

#[test]
fn boo_1_a_slow_kernel_is_waited_for() {
    let scene = Scene::new();
    let (go, readings) = (scene.path("socket.go"), Cell::new(0));
    let machine = scene.machine_by(move || {
        readings.set(readings.get() + 1);
        if readings.get() > 10 {
            let _ = UnixStream::connect(&go);
        }
        Duration::from_secs(readings.get())
    });
    let boot = scene.boot(&["wait"]);
    let outcome = scene.run_by(&machine, &boot, |_| {
        say(&boot.socket, "end 0");
    });
    assert_eq!((outcome.code, outcome.lines.len(), scene.lives().len()), (0, 1, 1));
}

/// A clock that moves by a second at every reading while somebody listens, and two seconds of patience:
/// at least one ping is heard.
#[track_caller]
fn check_never_answers(life: &str) {
    let scene = Scene::new();
    let (socket, now) = (scene.path("socket"), Cell::new(0));
    let machine = scene.machine_by(move || {
        now.set(now.get() + u64::from(UnixStream::connect(&socket).is_ok()));
        Duration::from_secs(now.get())
    });
    let boot = Boot { patience: Duration::from_secs(2), ..scene.boot(&[life]) };
    let outcome = scene.run_by(&machine, &boot, |_| ());
    assert_eq!((outcome.code, outcome.lines.len(), scene.lives().len()), (1, 1, 4));
    let trouble = outcome.trouble();
    assert!(trouble.what.contains("did not answer in 2s"), "{trouble:?}");
}

#[test]
fn boo_1_a_kernel_that_does_not_listen_is_ended_and_counts_as_crashed() {
    let scene = Scene::new();
    let boot = Boot { patience: Duration::from_secs(1), ..scene.boot(&["absent"]) };
    let outcome = scene.run_by(&scene.machine(), &boot, |_| ());
    assert!(outcome.trouble().what.contains("did not answer in 1s"));
}

#[test]
fn boo_1_a_kernel_that_never_answers_is_ended_and_counts_as_crashed() {
    check_never_answers("mute");
}

#[test]
fn boo_1_an_answer_that_is_none_counts_as_none() {
    for number in 0..5 {
        check_never_answers(&format!("babble={number}"));
    }
}

#[test]
fn a_kernel_that_ends_well_before_it_answers_is_trouble() {
    let scene = Scene::new();
    let outcome = scene.run(&["exit=0"], &[]);
    assert_eq!((outcome.code, scene.lives().len()), (1, 1));
    assert_eq!(outcome.trouble().what, "the kernel ended before it answered");
}

#[test]
fn a_kernel_that_is_not_there_is_trouble() {
    let scene = Scene::new();
    let boot = Boot { program: scene.path("nothing"), ..scene.boot(&[]) };
    let outcome = scene.run_by(&scene.machine(), &boot, |_| ());
    assert_eq!(outcome.code, 2);
    assert!(outcome.trouble().why.contains("nothing`: No such file"), "{:?}", outcome.lines);
}

#[test]
fn a_socket_that_is_a_directory_is_the_kernels_to_tell() {
    let scene = Scene::new();
    fs::create_dir(scene.path("socket")).unwrap();
    let outcome = scene.run(&["serve"], &[]);
    assert_eq!((outcome.code, scene.lives().len()), (2, 1));
    assert_eq!(outcome.trouble().what, "cannot listen");
}

#[test]
fn nothing_is_started_on_a_machine_that_cannot_run_it() {
    let scene = Scene::new();
    scene.setting("proc/sys/user/max_user_namespaces", "0\n");
    let outcome = scene.run(&["serve"], &[]);
    assert_eq!((outcome.code, scene.lives().len()), (4, 0));
    assert!(!Path::exists(&scene.path("log")));
}
