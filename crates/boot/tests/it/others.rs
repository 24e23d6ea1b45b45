//! Kernels that another bootstrap started.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::process::Child;
use std::thread;
use std::time::Duration;

use fluffy_boot::Boot;

use crate::scene::{Scene, say};

const NULL: &str = r#"{"ready":true,"pid":null}"#;

/// Answers pings, but for the first so many.
fn other(scene: &Scene, silent: usize) {
    let listener = UnixListener::bind(scene.path("socket")).unwrap();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 256]);
            if number >= silent {
                let _ = stream.write_all(b"\0\0\0\x0d{\"pong\":true}");
            }
        }
    });
}

#[test]
fn boo_1_a_kernel_that_runs_already_is_told_ready() {
    let scene = Scene::new();
    fs::write(scene.path("log"), "the other's").unwrap();
    other(&scene, 0);
    let outcome = scene.run_by(&scene.machine(), &scene.boot(&["exit=9"]), |_| ());
    assert_eq!((outcome.code, outcome.lines), (0, vec![NULL.to_owned()]));
    assert_eq!(scene.lives().len(), 0);
    assert_eq!(fs::read_to_string(scene.path("log")).unwrap(), "the other's");
}

#[test]
fn boo_1_a_kernel_that_finds_another_leaves_it_the_project() {
    let scene = Scene::new();
    other(&scene, 1);
    let outcome = scene.run_by(&scene.machine(), &scene.boot(&["exit=75"]), |_| ());
    assert_eq!((outcome.code, scene.lives().len()), (0, 1));
    assert_eq!(outcome.lines.last().unwrap(), NULL);
}

#[test]
fn a_kernel_follows_another_that_was_just_ending() {
    let scene = Scene::new();
    // Of this a third is left to the other one, in seconds of a clock that moves with every ping.
    let boot = Boot { patience: Duration::from_secs(90), ..scene.boot(&["exit=75", "serve"]) };
    let outcome = scene.run_by(&scene.machine(), &boot, |_| {
        say(&boot.socket, "end 0");
    });
    assert_eq!((outcome.code, outcome.lines.len(), scene.lives().len()), (0, 1, 2));
}

#[test]
fn bootstraps_that_start_at_once_all_find_a_kernel() {
    let scene = Scene::new();
    let mut all: Vec<Child> = (0..4).map(|_| scene.start(&["serve", "exit=75"])).collect();
    let first_line = |child: &mut Child| {
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line
    };
    let lines: Vec<String> = all.iter_mut().map(first_line).collect();
    for child in &mut all {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(lines.iter().all(|line| line.starts_with(r#"{"ready":true,"#)), "{lines:?}");
}
