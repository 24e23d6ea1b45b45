//! A bootstrap that is killed leaves no kernel behind, and one that nobody listens to goes on.

use std::io::{BufRead as _, BufReader, Read as _};

use crate::scene::{Scene, say};

const PING: &str = r#"{"id":1,"type":"request","method":"health.ping","params":{}}"#;

#[test]
fn boo_1_the_kernel_of_a_killed_bootstrap_ends() {
    let scene = Scene::new();
    let mut boot = scene.start(&["serve"]);
    let mut line = String::new();
    BufReader::new(boot.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with(r#"{"ready":true,"pid":"#), "{line}");
    let answered = || {
        let mut stream = say(&scene.path("socket"), PING);
        let mut length = [0; 4];
        stream.read_exact(&mut length).unwrap();
        stream.read_exact(&mut vec![0; u32::from_be_bytes(length).try_into().unwrap()]).unwrap();
        stream
    };
    // Its input is held open while it is waited for, or it would have ended.
    (0..100).for_each(|_| drop(answered()));
    let mut held = answered();
    boot.kill().unwrap();
    boot.wait().unwrap();
    assert_eq!(held.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_bootstrap_whose_report_nobody_reads_goes_on() {
    let scene = Scene::new();
    let mut boot = scene.start(&["once"]);
    drop(boot.stdout.take());
    assert_eq!(boot.wait().unwrap().code(), Some(0));
    assert_eq!(scene.lives().len(), 1);
}
