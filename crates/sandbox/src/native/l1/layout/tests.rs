//! What is shown and what is refused, on made-up homes.

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// A home with secrets, a project and a toolchain, outside of what is covered anyway.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("fluffy-l1-").tempdir_in("/var/tmp").unwrap();
        let home = Self(dir);
        for name in ["me/.ssh", "me/project/src", "me/.cargo/bin", "me/.state", "me/tools/bin"] {
            fs::create_dir_all(home.path(name)).unwrap();
        }
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn options(&self) -> L1Options {
        L1Options {
            project: self.path("me/project"),
            writable: vec![self.path("me/.state")],
            home: Some(self.path("me")),
            program: std::env::current_exe().unwrap(),
            ..L1Options::default()
        }
    }

    fn showing(&self, name: &str) -> Layout {
        Layout::of(&L1Options { shown: vec![self.path(name)], ..self.options() }).unwrap()
    }
}

fn has(layout: &Layout, path: &Path) -> Option<Access> {
    layout.places.iter().find(|place| place.path == path).map(|place| place.access)
}

#[test]
fn the_project_and_the_kernels_directories_are_put_back_for_writing() {
    let home = Home::new();
    let layout = Layout::of(&home.options()).unwrap();
    assert_eq!(has(&layout, &home.path("me/project")), Some(Access::Write));
    assert_eq!(has(&layout, &home.path("me/.state")), Some(Access::Write));
    assert!(layout.covers.iter().any(|cover| cover.at == home.path("me")));
    assert!(layout.is_covered(&home.path("me/.ssh/id_ed25519")));
    assert!(!layout.places.iter().any(|place| home.path("me/.ssh").starts_with(&place.path)));
}

#[test]
fn toolchains_are_put_back_for_reading() {
    let home = Home::new();
    assert_eq!(
        has(&home.showing("me/.cargo/bin"), &home.path("me/.cargo/bin")),
        Some(Access::Read)
    );
}

#[test]
fn what_is_or_holds_or_lies_in_a_secret_is_passed_over() {
    let home = Home::new();
    fs::create_dir(home.path("me/.ssh/inner")).unwrap();
    #[expect(clippy::disallowed_methods, reason = "the test makes a secret")]
    fs::write(home.path("me/.cargo/credentials.toml"), "token").unwrap();
    for name in ["me", "me/.ssh", "me/.ssh/inner", "me/.cargo", ""] {
        let layout = home.showing(name);
        assert_eq!(layout.places.len(), home.showing("me/gone").places.len(), "{name}");
        // What holds the whole home is not covered, and seen as it is: with the home covered.
        assert_eq!(layout.passed_over.len(), usize::from(!name.is_empty()), "{name}");
    }
}

#[test]
fn a_link_is_passed_over_wherever_it_leads() {
    let home = Home::new();
    symlink(home.path("me/.ssh"), home.path("me/bin")).unwrap();
    symlink(home.path("me/tools"), home.path("me/same")).unwrap();
    for name in ["me/bin", "me/same/bin"] {
        assert_eq!(home.showing(name).passed_over.len(), 1, "{name}");
    }
}

#[test]
fn a_home_that_is_a_link_is_followed_and_covered_where_it_lies() {
    let home = Home::new();
    symlink(home.path("me"), home.path("alias")).unwrap();
    let options = L1Options {
        home: Some(home.path("alias")),
        shown: vec![home.path("alias/tools/bin")],
        ..home.options()
    };
    let layout = Layout::of(&options).unwrap();
    assert_eq!(layout.home, Some(home.path("me")));
    assert_eq!(has(&layout, &home.path("me/tools/bin")), Some(Access::Read));
    assert_eq!(layout.passed_over, []);
}

#[test]
fn a_project_that_is_the_home_or_holds_it_or_is_the_system_is_refused() {
    let home = Home::new();
    let with = |project: PathBuf| Layout::of(&L1Options { project, ..home.options() });
    assert!(matches!(with(home.path("me")), Err(L1Error::Holds { .. })));
    assert!(matches!(with(home.0.path().to_owned()), Err(L1Error::Holds { .. })));
    assert!(matches!(with("/".into()), Err(L1Error::Holds { .. })));
    assert!(matches!(with("/tmp".into()), Err(L1Error::Holds { .. })));
    assert!(matches!(with("/usr".into()), Err(L1Error::System { .. })));
    assert!(matches!(with("/proc/self".into()), Err(L1Error::System { .. })));
    assert!(matches!(with(home.path("gone")), Err(L1Error::Path { .. })));
}

#[test]
fn a_directory_of_the_kernels_that_holds_secrets_is_refused() {
    let home = Home::new();
    fs::create_dir_all(home.path("me/.config/gh")).unwrap();
    let options = L1Options { writable: vec![home.path("me/.config")], ..home.options() };
    assert!(matches!(Layout::of(&options), Err(L1Error::Holds { .. })));
}

#[test]
fn what_lies_in_the_project_is_not_put_into_place_twice() {
    let home = Home::new();
    fs::create_dir(home.path("me/project/state")).unwrap();
    let options = L1Options {
        writable: vec![home.path("me/project/state")],
        shown: vec![home.path("me/project/src")],
        ..home.options()
    };
    let layout = Layout::of(&options).unwrap();
    let inside = layout.places.iter().filter(|it| it.path.starts_with(home.path("me/project")));
    assert_eq!(inside.count(), 1);
    // But what is to be written in something that is only read is.
    let options = L1Options {
        project: home.path("me/tools/bin"),
        shown: vec![home.path("me/tools")],
        ..home.options()
    };
    let layout = Layout::of(&options).unwrap();
    assert_eq!(has(&layout, &home.path("me/tools")), Some(Access::Read));
    assert_eq!(has(&layout, &home.path("me/tools/bin")), Some(Access::Write));
}

#[test]
fn a_home_that_is_the_root_is_refused_and_one_that_is_not_there_is_none() {
    let home = Home::new();
    let with = |path: &str| Layout::of(&L1Options { home: Some(path.into()), ..home.options() });
    assert!(matches!(with("/"), Err(L1Error::System { .. })));
    assert_eq!(with("/nonexistent").unwrap().home, None);
}

#[test]
fn volumes_have_a_mount_of_their_own_in_what_the_kernel_writes() {
    let home = Home::new();
    fs::create_dir(home.path("me/.state/sandboxes")).unwrap();
    let with = |name: &str| L1Options { volumes: vec![home.path(name)], ..home.options() };
    let layout = Layout::of(&with("me/.state/sandboxes")).unwrap();
    assert_eq!(has(&layout, &home.path("me/.state/sandboxes")), Some(Access::Own));
    for name in ["me/.state", "me/project", "me/project/src", "me/tools"] {
        assert!(matches!(Layout::of(&with(name)), Err(L1Error::Volumes(_))), "{name}");
    }
}
