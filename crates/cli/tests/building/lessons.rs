//! What other forges got wrong.

use std::fs;
use std::os::unix::fs::symlink;

use crate::scene::{HONEST, SKILL, Scene, TEST, failure, is_violation, names};

#[test]
fn lesson_l28_nothing_of_the_builders_repository_runs_or_hides_anything() {
    let scene = Scene::new();
    let built = scene.script(&format!(
        "{HONEST} set -e; git -c user.name=a -c user.email=a@b add -A; \
         git -c user.name=a -c user.email=a@b commit -qm base; \
         git update-index --assume-unchanged src/main.py; echo evil >> src/main.py; \
         mkdir -p .git/info .git/hooks; echo '*' > .git/info/exclude; touch ignored.log; \
         printf '#!/bin/sh\\ntouch {marker}\\n' > .git/run; chmod +x .git/run; \
         cp .git/run .git/hooks/post-index-change; \
         git config core.fsmonitor \"$PWD/.git/run\"; ln -s /etc .git/link; \
         git status --porcelain 2>/dev/null || true",
        marker = scene.at("ran").display()
    ));
    is_violation(&built, &["`src/main.py` was written", "`ignored.log` was written"]);
    assert!(!failure(&built).unwrap().1.contains(".git"), "{built:?}");
    assert!(!scene.at("ran").exists());
    let log = scene.log(&built);
    assert!(!log.contains("not a git repository"), "{log}");
}

#[test]
fn lesson_l29_neither_links_nor_keys_nor_secrets_reach_the_builder() {
    let scene = Scene::new();
    for name in [".ENV", ".npmrc", "config/secrets.yaml", "deploy.pem", "data.sqlite3"] {
        scene.write(name, "HIDDEN-VALUE");
    }
    let (project, key) = (scene.at("project"), scene.at("home/id_rsa"));
    symlink(&key, project.join("notes.txt")).unwrap();
    symlink(scene.at("home"), project.join("src/home")).unwrap();
    fs::hard_link(&key, project.join("plain.txt")).unwrap();
    let built = scene
        .script(&format!("find . -path ./.git -prune -o -print; cat $(find . -type f); {HONEST}"));
    assert_eq!(failure(&built), None);
    let log = scene.log(&built);
    assert!(!log.contains("HIDDEN-VALUE") && !log.contains("PRIVATE KEY"), "{log}");
    let printed = log.split("## Standard output").nth(1).unwrap();
    assert!(printed.contains("./src/main.py"), "{printed}");
    for name in ["ENV", "npmrc", "secrets", "pem", "sqlite", "notes.txt", "home", "plain"] {
        assert!(!printed.contains(name), "{name}: {printed}");
    }
    for line in ["- `.ENV`: it is called as secrets are", "- `notes.txt`: it is a symbolic link"] {
        assert!(log.contains(line), "{log}");
    }
}

#[test]
fn lesson_l31_a_builder_cannot_write_through_links() {
    let scene = Scene::new();
    let home = scene.at("home");
    let built = scene.script(&format!(
        "{HONEST} rm .fluffy/skills/write_note.py; ln -s {0}/out .fluffy/skills/write_note.py; \
         echo x > .fluffy/skills/write_note.py; ln -s {0} out; echo x > out/y; true",
        home.display()
    ));
    is_violation(
        &built,
        &["write_note.py` is not taken: it is a symbolic link", "`out` is not taken"],
    );
    assert_eq!(names(&home), ["id_rsa"]);
    for name in [SKILL, TEST] {
        assert!(!scene.at("project").join(name).exists());
    }
}
