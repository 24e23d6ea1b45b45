//! A kernel in a container of its own that was taken over: what it gets, and what it would get without the last layer.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use fluffy_sandbox::l1::L1Options;
use fluffy_sandbox::{ContainOptions, EngineKind, contain};
use fluffy_testkit::engines::socket;

use crate::engine::ordinarily;

/// What an attacker got, by what it tried.
fn attacked(kind: EngineKind, place: &Path, how: &str) -> BTreeMap<String, String> {
    let project = place.join(format!("project-{how}"));
    let (home, run) = (place.join("home"), place.join("run"));
    let line = run.join(format!("{how}.line"));
    std::fs::create_dir_all(&project).unwrap();
    std::fs::create_dir_all(&home).unwrap();
    std::fs::create_dir_all(&run).unwrap();
    std::fs::write(home.join("secret"), "secret").unwrap();
    let arguments = vec![
        "contained".into(),
        line.clone().into(),
        how.into(),
        project.clone().into(),
        home.join("secret").into(),
        socket(kind).into(),
    ];
    let contained = contain(&ContainOptions {
        engine: kind,
        sockets: vec![socket(kind)],
        confinement: L1Options {
            project,
            writable: vec![run],
            home: Some(home),
            program: place.join("sandbox-tester"),
            ..L1Options::default()
        },
        arguments,
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        socket: line,
        profiles: place.join("profiles"),
    });
    let contained = contained.unwrap_or_else(|error| panic!("{error:?}"));
    let mut said = String::new();
    contained.line().unwrap().read_to_string(&mut said).unwrap();
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{how}: {error}: {said}"))
}

fn kernel(kind: EngineKind, place: &Path) {
    let got = attacked(kind, place, "confined");
    let refused =
        ["permission denied", "entity not found", "read-only filesystem or storage medium"];
    let allowed = ["the mark of a file that is gone", "a file of the project, moved"];
    for (what, result) in &got {
        if allowed.contains(&what.as_str()) {
            assert_eq!(result, "done", "{what}: the kernel needs it");
        } else {
            assert!(refused.contains(&result.as_str()), "{what}: {result}");
        }
    }
    assert!(got.len() > 12, "{got:?}");
    // What closes these is the last layer alone.
    let free = attacked(kind, place, "free");
    for what in
        ["the maker's root", "the maker's variables", "the maker's files", "a signal to the maker"]
    {
        assert_eq!(free.get(what).map(String::as_str), Some("done"), "{what}: {free:?}");
    }
}

#[test]
fn sbx_9_a_kernel_in_a_container_of_docker_reaches_nothing_outside_also_when_it_is_taken_over() {
    let name = "contained::sbx_9_a_kernel_in_a_container_of_docker_reaches_nothing_outside_also_when_it_is_taken_over";
    ordinarily(EngineKind::Docker, name, |place| kernel(EngineKind::Docker, place));
}

#[test]
fn sbx_9_a_kernel_in_a_container_of_podman_reaches_nothing_outside_also_when_it_is_taken_over() {
    let name = "contained::sbx_9_a_kernel_in_a_container_of_podman_reaches_nothing_outside_also_when_it_is_taken_over";
    ordinarily(EngineKind::Podman, name, |place| kernel(EngineKind::Podman, place));
}
