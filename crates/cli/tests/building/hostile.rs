//! Builders that want more than to build.

use std::fs;

use fluffy_forge::build::Builder;

use crate::scene::{HONEST, Scene, failure, is_violation, names, script_builder};

#[test]
fn every_change_elsewhere_fails_the_build_by_name() {
    let scene = Scene::new();
    for (script, reasons) in [
        ("echo x >> .fluffy/policy.yaml", &["`.fluffy/policy.yaml` was written"][..]),
        ("rm -r src", &["`src/main.py` was removed"]),
        ("chmod +x src/main.py", &["`src/main.py` was written"]),
        ("chmod +x .fluffy/skills/write_note.py", &["write_note.py` was made executable"]),
        ("mkfifo pipe", &["`pipe` is not taken: it is a named pipe"]),
        ("ln .fluffy/skills/write_note.py other", &["`other` is not taken: it has 2 names"]),
        ("echo x > conftest.py", &["`conftest.py` was written"]),
        ("echo x > .fluffy/skills/tests/conftest.py", &["tests/conftest.py` was written"]),
        ("mv src lib", &["`src/main.py` was removed", "`lib/main.py` was written"]),
        ("rm .fluffy/skills/write_note.py", &["write_note.py` was not written"]),
        ("echo x > \"$(printf 'a\\nb')\"", &["is not taken"]),
        ("echo x > \"$(printf 'a\\377')\"", &["is not taken"]),
        ("truncate -s 1G big", &["`big` is not taken"]),
        ("truncate -s 2M .fluffy/skills/write_note.py", &["larger than a file of a skill"]),
        ("i=0; while [ $i -lt 3000 ]; do : > f$i; i=$((i+1)); done", &["more"]),
    ] {
        is_violation(&scene.script(&format!("{HONEST} {script}")), reasons);
    }
    assert_eq!(names(&scene.at("project")), [".fluffy", "src"]);
    assert_eq!(fs::read_to_string(scene.at("project/.fluffy/policy.yaml")).unwrap(), "rules: []\n");
    assert!(scene.is_swept());
}

#[test]
fn keys_are_masked_in_the_log_and_refused_in_files() {
    let scene = Scene::new();
    let built = scene.script(&format!(
        "{HONEST} echo \"key $BUILDER_KEY\"; echo ghp_abcdefghijklmnopqrstuvwxyz0123456789 >&2; env"
    ));
    assert_eq!(failure(&built), None);
    let log = scene.log(&built);
    assert!(log.contains("key ***"), "{log}");
    for secret in ["correct-horse", "qrstuvwxyz0123456789"] {
        assert!(!log.contains(secret), "{log}");
    }
    let leak = "echo \"KEY = '$BUILDER_KEY'\" >> .fluffy/skills/write_note.py";
    is_violation(&scene.script(&format!("{HONEST} {leak}")), &["holds a key"]);
}

#[test]
fn a_builder_sees_neither_the_hosts_home_nor_the_project_nor_other_variables() {
    let scene = Scene::new();
    let built = scene.script(&format!(
        "{HONEST} ls -A {home}; cat {home}/id_rsa; ls {project}; ls {builds}; env | cut -d= -f1",
        home = scene.at("home").display(),
        project = scene.at("project").display(),
        builds = scene.at("builds").display(),
    ));
    assert_eq!(failure(&built), None);
    let log = scene.log(&built);
    assert!(!log.contains("PRIVATE") && !log.contains("main.py\n"), "{log}");
    assert_eq!(log.matches("No such file").count(), 3, "{log}");
    assert!(log.contains("BUILDER_KEY") && !log.contains("CARGO"), "{log}");
}

#[test]
fn what_a_builder_starts_and_leaves_behind_dies_with_it() {
    let scene = Scene::new();
    let mark = scene.at("mark").display().to_string();
    let stay = format!("setsid sh -c 'while :; do : {mark}; done' >/dev/null 2>&1 &");
    let built = scene.script(&format!("{HONEST} {stay} {stay} true"));
    assert_eq!(failure(&built), None);
    let alive = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let line = fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        String::from_utf8_lossy(&line).contains(&mark).then_some(())
    });
    assert_eq!(alive.count(), 0);
}

#[test]
fn another_host_than_the_builders_own_is_refused_and_told() {
    let scene = Scene::new();
    let ask = "python3 -c 'import urllib.request; \
        urllib.request.urlopen(\"http://elsewhere.example/\", timeout=5)' 2>&1 | tail -1;";
    let mut builder = script_builder(&format!("{HONEST} {ask} true"));
    builder.hosts = vec!["api.example".to_owned()];
    let built = scene.build(&Builder::Program(builder)).unwrap();
    assert_eq!(failure(&built), None);
    let log = scene.log(&built);
    assert!(log.contains("- elsewhere.example:80: refused"), "{log}");
    let none = scene.script(&format!("{HONEST} {ask} true"));
    assert!(!scene.log(&none).contains("Asked of the network"));
}
