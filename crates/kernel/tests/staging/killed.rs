//! A merge that is killed for good, again and again, by the system.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use fluffy_kernel::{Outcome, Plan, Recovered, Tree, carry_out, recover};

use crate::scene::{Scene, stage};

/// Names the directory for the child that is killed; a run without it is not a child.
const DIRECTORY: &str = "FLUFFY_TEST_KILLED_MERGE";

const FILES: usize = 60;

fn before() -> Vec<String> {
    (0..FILES).map(|n| format!("d{}/f{n}=old {n}", n % 7)).collect()
}

fn after() -> Vec<String> {
    (0..FILES)
        .map(|n| match n % 3 {
            0 => format!("+d{}/f{n}=new {n}", n % 7),
            1 => format!("-d{}/f{n}", n % 7),
            _ => format!("+new{n}/deep/f=made {n}"),
        })
        .collect()
}

fn words(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
}

#[test]
fn child_merges_until_it_is_killed() {
    let Some(top) = std::env::var_os(DIRECTORY) else { return };
    let scene = Scene { top: PathBuf::from(top) };
    let mut staging = scene.staging();
    stage(&mut staging, &words(&after()));
    let plan = Plan::of(&staging).unwrap();
    println!("\nready");
    let merged = carry_out(&plan, staging.tree(), &scene.session()).unwrap();
    println!("merged {}", merged.files.len());
}

/// How far a merge has come, as far as others can see.
fn waiting(scene: &Scene) -> usize {
    let mut count = 0;
    let mut pending = vec![scene.project()];
    while let Some(directory) = pending.pop() {
        // What was there a moment ago may be gone.
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let at = entry.path();
            if at.extension().is_some_and(|end| end == "tmp") {
                count += 1;
            } else if at.is_dir() {
                pending.push(at);
            }
        }
    }
    count
}

fn is_decided(scene: &Scene) -> bool {
    let log = std::fs::read(scene.session().join("merge.log")).unwrap_or_default();
    log.split(|byte| *byte == b'\n').any(|line| line == b"decided")
}

/// Kills a merge once it has come this far, or is over.
fn kill_when(scene: &Scene, come: &dyn Fn(&Scene) -> bool) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::child_merges_until_it_is_killed", "--nocapture"])
        .env(DIRECTORY, &scene.top)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while line != "ready\n" {
        line.clear();
        assert_ne!(out.read_line(&mut line).unwrap(), 0, "the child did not get ready");
    }
    while child.try_wait().unwrap().is_none() && !come(scene) {}
    child.kill().unwrap();
    child.wait().unwrap();
}

fn check_new(now: &BTreeMap<String, (bool, Vec<u8>)>) {
    for n in 0..FILES {
        let text = |name: String| now.get(&name).map(|(_, text)| text.clone());
        let old = text(format!("d{}/f{n}", n % 7));
        match n % 3 {
            0 => assert_eq!(old, Some(format!("new {n}").into_bytes())),
            1 => assert_eq!(old, None),
            _ => {
                assert_eq!(old, Some(format!("old {n}").into_bytes()));
                let made = text(format!("new{n}/deep/f"));
                assert_eq!(made, Some(format!("made {n}").into_bytes()));
            }
        }
    }
    assert_eq!(now.len(), FILES);
}

#[test]
fn a_merge_that_is_killed_at_any_moment_ends_in_the_old_or_the_new_tree() {
    let moments: [&dyn Fn(&Scene) -> bool; 8] = [
        &|_| true,
        &|scene| waiting(scene) > 0,
        &|scene| waiting(scene) > 10,
        &|scene| waiting(scene) > 30,
        &is_decided,
        &|scene| is_decided(scene) && waiting(scene) < 35,
        &|scene| is_decided(scene) && waiting(scene) < 15,
        &|scene| is_decided(scene) && waiting(scene) == 0,
    ];
    let mut ends = BTreeSet::new();
    for come in moments {
        let dir = tempfile::tempdir().unwrap();
        let scene = Scene::new(dir.path(), &words(&before()));
        let old = scene.files();
        kill_when(&scene, come);
        let tree = Tree::open(&scene.project()).unwrap();
        let recovered = recover(&tree, &scene.session()).unwrap();
        let now = scene.files();
        if let Recovered::Finished(merged) = &recovered {
            assert!(merged.files.iter().all(|file| file.outcome != Outcome::Left));
        }
        ends.insert(if now == old { "old" } else { "new" });
        if now != old {
            check_new(&now);
        }
        assert_eq!(recover(&tree, &scene.session()).unwrap(), Recovered::Nothing);
    }
    assert_eq!(ends, BTreeSet::from(["new", "old"]));
}
