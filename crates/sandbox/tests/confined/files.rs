//! Which files there are.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use crate::scene::{NOBODY, Scene, User, answer, is_root};
use crate::spec::{Drive, Report};

#[test]
fn sbx_9_secrets_of_the_home_are_hidden_and_what_is_shown_is_there() {
    for user in User::all() {
        let scene = Scene::new(user);
        let hidden = [
            "home/.ssh/id_ed25519",
            "home/.ssh",
            "home/.aws/credentials",
            "home/.bash_history",
            "home/.cargo/credentials.toml",
            "home/sibling/.env",
        ];
        let shown =
            ["home/.cargo/bin/tool", "home/.gitconfig", "home/state/ledger", "project/src/main.rs"];
        let pairs: Vec<String> = hidden
            .iter()
            .chain(&shown)
            .map(|name| format!("{name}={}", scene.text(name)))
            .collect();
        let mut args = vec!["read"];
        args.extend(pairs.iter().map(String::as_str));
        let report = scene.attack(&args);
        for name in hidden {
            assert_eq!(answer(&report, name), "ENOENT", "{user:?} {name}");
            let control = scene.control(&format!("ls {0} && cat {0}/* {0}", scene.text(name)));
            assert!(!control.stdout.is_empty(), "{name} is there for whoever is not confined");
        }
        for name in shown {
            assert_eq!(answer(&report, name), "ok", "{user:?} {name}");
        }
        assert!(!report.found.concat().contains("secret"));
    }
}

#[test]
fn sbx_9_project_and_state_are_written_as_their_owner_and_nothing_else_is() {
    for user in User::all() {
        let scene = Scene::new(user);
        let places = [
            ("project", scene.text("project")),
            ("state", scene.text("state")),
            ("own part of the home", scene.text("home/state")),
            ("temporary files", "/tmp".to_owned()),
            ("home", scene.text("home")),
            ("shown", scene.text("home/.cargo/bin")),
            ("outside", scene.text("outside")),
            ("beside", scene.text("")),
            ("root", "/".to_owned()),
            ("runtime", "/run".to_owned()),
            ("devices", "/dev".to_owned()),
        ];
        let pairs: Vec<String> =
            places.iter().map(|(label, path)| format!("{label}={path}")).collect();
        let mut args = vec!["create-in"];
        args.extend(pairs.iter().map(String::as_str));
        let report = scene.attack(&args);
        for (number, (label, _)) in places.iter().enumerate() {
            let expected = if number < 4 { "ok" } else { "EROFS" };
            assert_eq!(answer(&report, label), expected, "{user:?} {label}");
        }
        for name in ["project", "state", "home/state"] {
            let made = fs::metadata(scene.path(name).join("fluffy-attack")).unwrap();
            assert_eq!((made.uid(), made.gid()), (user.id(), user.id()), "{name}");
        }
        assert!(!std::path::Path::new("/tmp/fluffy-attack").exists());
        let control = scene.control(&format!("touch {}/x", scene.text("outside")));
        assert!(control.status.success(), "whoever is not confined can write there");
    }
}

#[test]
fn sbx_9_a_secret_among_what_is_shown_is_passed_over() {
    for user in User::all() {
        let scene = Scene::new(user);
        let mut confine = scene.confine(&[]);
        confine.shown =
            vec![scene.path("home/.ssh"), scene.path("home/.cargo"), scene.path("home")];
        let ran = scene.run_with(&confine, "");
        ran.must_succeed();
        assert_eq!(ran.confined.passed_over, confine.shown);
    }
}

#[test]
fn sbx_9_whoever_holds_a_directory_open_is_not_confined() {
    for user in User::all() {
        let scene = Scene::new(user);
        let mut confine = scene.confine(&[]);
        confine.leaked = vec![scene.path("home/.ssh")];
        let ran = scene.run_with(&confine, "");
        assert!(!ran.success);
        assert!(ran.confined.error.unwrap().contains("is open and leads to"));
    }
}

#[test]
fn sbx_9_a_home_as_project_is_refused() {
    let scene = Scene::new(User::Same);
    let mut confine = scene.confine(&[]);
    confine.project = scene.path("home");
    let ran = scene.run_with(&confine, "");
    assert!(ran.confined.error.unwrap().contains("which the kernel must not see"));
}

#[test]
fn sbx_9_what_lies_among_temporary_files_is_put_back_and_the_rest_is_not_there() {
    for user in User::all() {
        let scene = Scene::below("/tmp", user);
        let report = scene.attack(&[
            "create-in",
            &format!("project={}", scene.text("project")),
            &format!("outside={}", scene.text("outside")),
        ]);
        assert_eq!((answer(&report, "project"), answer(&report, "outside")), ("ok", "ENOENT"));
        assert!(scene.path("project/fluffy-attack").exists());
    }
}

#[test]
fn sbx_9_root_works_on_somebodys_project_and_its_files_stay_theirs() {
    if !is_root() {
        return;
    }
    // Files that only their owner may read or change, in a project that is not root's.
    let mut scene = Scene::new(User::Nobody);
    scene.user = User::Same;
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(scene.path("project/src/main.rs"), private).unwrap();
    let main = scene.text("project/src/main.rs");
    let report = scene.attack(&["append-to", &format!("main={main}")]);
    assert_eq!(answer(&report, "main"), "ok");
    let report = scene.attack(&["create-in", &format!("project={}", scene.text("project"))]);
    assert_eq!(answer(&report, "project"), "ok");
    for name in ["project/src/main.rs", "project/fluffy-attack"] {
        let found = fs::metadata(scene.path(name)).unwrap();
        assert_eq!((found.uid(), found.gid()), (NOBODY, NOBODY), "{name}");
    }
    for on_disk in [false, true] {
        let attack = vec!["append-to".to_owned(), format!("main={main}")];
        let seen = scene.drive(Drive { attack, on_disk, ..Drive::default() });
        assert_eq!(seen.changes, ["directory src", "file src/main.rs"], "{seen:?}");
    }
}

#[test]
fn sbx_9_a_client_is_seen_as_who_it_is() {
    for user in User::all() {
        let scene = Scene::new(user);
        let path = scene.path("state/kernel.sock");
        let confine =
            scene.confine(&[&scene.text("bin/tester"), "attack", "peer", path.to_str().unwrap()]);
        let (child, _) = scene.start(&confine, Stdio::null());
        let client = loop {
            if let Ok(client) = UnixStream::connect(&path) {
                break client;
            }
            std::thread::yield_now();
        };
        let output = child.wait_with_output().unwrap();
        drop(client);
        let text = String::from_utf8(output.stdout).unwrap();
        let report: Report = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(answer(&report, "process"), std::process::id().to_string());
        // A kernel of somebody else's sees root, too, as nobody whom it knows.
        let seen = if user == User::Nobody { 65_534 } else { user.id() };
        assert_eq!(answer(&report, "user"), seen.to_string());
    }
}
