//! Sandboxes inside the confined kernel. That all their promises hold there is tried with the contract, and that all
//! attacks on them fail there with the battery of attacks.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Stdio;

use crate::confined::Confine;
use crate::scene::{Scene, User, is_root};
use crate::spec::{Drive, Report};

#[test]
fn sbx_9_a_job_runs_in_a_sandbox_of_the_confined_kernel() {
    for user in User::all() {
        for on_disk in [false, true] {
            let scene = Scene::new(user);
            let attack = ["create-in".to_owned(), format!("project={}", scene.text("project"))];
            let seen = scene.drive(Drive { attack: attack.into(), on_disk, ..Drive::default() });
            assert_eq!(seen.error, None, "{user:?}");
            assert_eq!(seen.end, "exited with code 0", "{}", seen.stderr);
            assert_eq!(seen.changes, ["file fluffy-attack"]);
            assert!(!scene.path("project/fluffy-attack").exists());
        }
    }
}

#[test]
fn sbx_9_git_commits_in_a_sandbox_of_the_confined_kernel() {
    for user in User::all() {
        let scene = Scene::new(user);
        let script = scene.path("bin/commit");
        let text = "#!/bin/sh -e\ngit init -q . && git add -A\n\
                    git -c user.name=a -c user.email=a@b.invalid commit -q -m first\ngit log --format=%s\n";
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let seen = scene.drive(Drive { program: Some(script), ..Drive::default() });
        assert_eq!(seen.stdout, "first\n", "{user:?}: {seen:?}");
        assert!(!scene.path("project/.git").exists());
    }
}

#[test]
fn sbx_9_a_job_moves_and_links_files_between_directories_inside_the_confined_kernel() {
    for user in User::all() {
        for on_disk in [false, true] {
            let scene = Scene::new(user);
            let attack = vec!["work".to_owned(), scene.text("project")];
            let seen = scene.drive(Drive { attack, on_disk, ..Drive::default() });
            let report: Report =
                serde_json::from_str(&seen.stdout).unwrap_or_else(|_| panic!("{seen:?}"));
            assert_eq!(report.tries.len(), 14, "{report:?}");
            for (what, answer) in &report.tries {
                assert_eq!(answer, "ok", "{user:?}, on disk: {on_disk}: {what}");
            }
            let moved = ["file to/directory/file", "file to/linked", "file to/moved"];
            for change in moved {
                assert!(seen.changes.iter().any(|seen| seen == change), "{change}: {seen:?}");
            }
        }
    }
}

#[test]
fn sbx_9_cargo_builds_and_runs_a_crate_inside_the_confined_kernel() {
    for user in User::all() {
        for on_disk in [false, true] {
            let scene = Scene::new(user);
            let file = |name: &str, text: &str| fs::write(scene.path(name), text).unwrap();
            file(
                "project/Cargo.toml",
                "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
            );
            file("project/src/lib.rs", "pub fn add(a: u32, b: u32) -> u32 {\n    a + b\n}\n");
            file(
                "project/src/main.rs",
                "fn main() {\n    println!(\"{}\", small::add(40, 2));\n}\n",
            );
            scene.toolchain("bin/toolchain");
            let script = format!(
                "#!/bin/sh -e\nexport PATH={}:$PATH CARGO_HOME=/tmp/cargo CARGO_NET_OFFLINE=true\n\
                 cargo run -q\n",
                scene.text("bin/toolchain/bin")
            );
            file("bin/build", &script);
            let program = scene.path("bin/build");
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            let seen = scene.drive(Drive { program: Some(program), on_disk, ..Drive::default() });
            assert_eq!(seen.stdout, "42\n", "{user:?}, on disk: {on_disk}: {seen:?}");
            assert!(seen.changes.iter().any(|change| change == "file target/debug/small"));
            assert!(!scene.path("project/target").exists());
        }
    }
}

#[test]
fn sbx_9_a_program_that_a_job_marks_to_run_as_its_owner_is_never_roots() {
    for user in User::all() {
        let scene = Scene::new(user);
        let confine = scene.confine(&[&scene.text("bin/tester"), "drive"]);
        let owners = marked_by_a_job(&scene, &confine);
        assert_eq!(owners.len(), 1, "{user:?}");
        assert_ne!(owners, [0], "{user:?}");
    }
    if is_root() {
        // It would be, in a directory that is not given to the kernel's user.
        let scene = Scene::new(User::Same);
        let mut confine = scene.confine(&[&scene.text("bin/tester"), "drive"]);
        confine.volumes.clear();
        assert_eq!(marked_by_a_job(&scene, &confine), [0]);
    }
}

/// Who owns, on disk, the program that a job has marked.
fn marked_by_a_job(scene: &Scene, confine: &Confine) -> Vec<u32> {
    let script = scene.path("bin/mark");
    let text = "#!/bin/sh -e\ncp /bin/true marked\nchmod 4755 marked\necho done\nexec sleep 1000\n";
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let drive = Drive {
        scene: scene.path(""),
        program: Some(script),
        on_disk: true,
        announced: true,
        ..Drive::default()
    };
    let (mut child, _) = scene.start(confine, Stdio::piped());
    let line = format!("{}\n", serde_json::to_string(&drive).unwrap());
    child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "announced"));
    let owners = marked(&scene.path("state"));
    // Its sandbox ends with it.
    child.kill().unwrap();
    child.wait().unwrap();
    owners
}

/// Who owns the files here that ask to run as their owner.
fn marked(directory: &Path) -> Vec<u32> {
    let mut owners = Vec::new();
    // What comes and goes meanwhile is none.
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(found) = entry.path().symlink_metadata() else { continue };
        if found.is_dir() {
            owners.extend(marked(&entry.path()));
        } else if found.mode() & 0o4000 != 0 {
            owners.push(found.uid());
        }
    }
    owners
}

#[test]
fn sbx_9_root_is_refused_where_owners_cannot_be_translated() {
    if !is_root() {
        return;
    }
    let scene = Scene::new(User::Same);
    fs::write(scene.path("spec"), serde_json::to_vec(&scene.confine(&[])).unwrap()).unwrap();
    // In a mount namespace of its own, where the project lies on a file system that translates nobody.
    let (project, tester, spec) =
        (scene.text("project"), scene.text("bin/tester"), scene.text("spec"));
    let script = format!("mount -t ramfs none {project} && exec {tester} confine {spec}");
    let output =
        User::Same.command("/usr/bin/unshare").args(["--mount", "sh", "-c", &script]).output();
    let said = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(said.contains("cannot translate owners"), "{said}");
    assert!(said.contains(&project), "{said}");
}
