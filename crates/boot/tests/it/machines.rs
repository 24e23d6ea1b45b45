//! Made-up machines: what they lack is named, with what to do about it.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use fluffy_boot::{Machine, Runtime, Trouble};

use crate::scene::Scene;

const MAX: &str = "proc/sys/user/max_user_namespaces";
const CLONE: &str = "proc/sys/kernel/unprivileged_userns_clone";
const APPARMOR: &str = "proc/sys/kernel/apparmor_restrict_unprivileged_userns";
const LSM: &str = "sys/kernel/security/lsm";
const WSL1: &str =
    "Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com) (gcc version 5.4.0)";
const WSL2: &str = "Linux version 5.15.90.1-microsoft-standard-WSL2 (Microsoft@x) (gcc 9.3.0)";

#[track_caller]
fn check(trouble: Option<Trouble>, why: &str, fix: &str) {
    let trouble = trouble.unwrap();
    assert_eq!(trouble.code, 4);
    assert!(trouble.why.contains(why), "{trouble:?} does not say {why:?}");
    assert!(trouble.fix.contains(fix), "{trouble:?} does not say {fix:?}");
}

fn native(settings: &[(&str, &str)], user: u32) -> Option<Trouble> {
    let scene = Scene::new();
    for (file, text) in settings {
        scene.setting(file, text);
    }
    Machine { user, ..scene.machine() }.missing(Runtime::Native)
}

#[test]
fn boo_1_what_forbids_namespaces_is_named_with_its_remedy() {
    check(
        native(&[(MAX, "0\n")], 1000),
        "max_user_namespaces=0",
        "sysctl user.max_user_namespaces=",
    );
    check(native(&[(MAX, "0\n")], 0), "max_user_namespaces=0", "/etc/sysctl.d/");
    check(native(&[(CLONE, "0\n")], 1000), "unprivileged_userns_clone=0", "userns_clone=1`");
    check(native(&[("proc/version", WSL1)], 1000), "WSL 1", "wsl --set-version <name> 2");
}

#[test]
fn a_machine_that_may_do_is_let_try() {
    for (settings, user) in [
        (&[] as &[(&str, &str)], 1000),
        (&[(MAX, "63000\n"), (CLONE, "1\n"), ("proc/version", WSL2), (LSM, "capability")], 1000),
        // Reserved for root, who asks; and what a profile may allow after all.
        (&[(CLONE, "0\n")], 0),
        (&[(APPARMOR, "1\n")], 1000),
        (&[(MAX, "none"), (CLONE, "")], 1000),
    ] {
        assert_eq!(native(settings, user), None, "{settings:?}");
    }
}

#[test]
fn boo_1_systems_without_namespaces_are_told_where_to_get_them() {
    let scene = Scene::new();
    for (system, fix) in [("macos", "brew install lima"), ("windows", "wsl --install")] {
        let machine = Machine { system: system.to_owned(), ..scene.machine() };
        check(machine.missing(Runtime::Native), "made by Linux", fix);
    }
}

#[test]
fn boo_1_what_may_have_kept_the_kernel_from_making_a_sandbox_is_named() {
    let scene = Scene::new();
    let suspect = || scene.machine().suspect(Path::new("/opt/fluffy"));
    assert_eq!(suspect(), None);
    scene.setting(LSM, "lockdown,capability,landlock,yama,apparmor");
    assert_eq!(suspect(), None);
    scene.setting(LSM, "lockdown,capability,yama\n");
    check(suspect(), "without Landlock", "`lsm=landlock,lockdown,capability,yama`");
    scene.setting(APPARMOR, "1\n");
    check(suspect(), "AppArmor", "profile fluffy /opt/fluffy flags=(unconfined) { userns, }");
}

#[track_caller]
fn check_guide(release: &str, docker: &str, podman: &str) {
    let scene = Scene::new();
    scene.setting("etc/os-release", release);
    check(scene.machine().missing(Runtime::Docker), "docker, which", docker);
    check(scene.machine().missing(Runtime::Podman), "podman, which", podman);
}

#[test]
fn boo_1_an_engine_that_is_missing_comes_with_the_platforms_guide() {
    let ubuntu = "NAME=\"Ubuntu\"\nID_LIKE=debian\nID=ubuntu\nVERSION_ID=\"24.04\"\n";
    check_guide(ubuntu, "`sudo apt install docker.io`", "`sudo apt install podman`");
    check_guide("ID=debian\n", "`sudo apt install docker.io`", "`sudo apt install podman`");
    check_guide("ID=fedora\n", "`sudo dnf install moby-engine`", "`sudo dnf install podman`");
    let rocky = "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n";
    check_guide(rocky, "`sudo dnf install podman-docker`", "`sudo dnf install podman`");
    check_guide("ID=arch", "`sudo pacman -S docker`", "`sudo pacman -S podman`");
    check_guide("ID=alpine", "`doas apk add docker`", "`doas apk add podman`");
    let suse = "ID=\"opensuse-tumbleweed\"\nID_LIKE='opensuse suse'\n";
    check_guide(suse, "`sudo zypper install docker`", "`sudo zypper install podman`");
    check_guide("ID=own\nVARIANT_ID=debian\n", "your package manager: docker", "manager: podman");
    check_guide("", "your package manager", "your package manager");

    let scene = Scene::new();
    let mac = Machine { system: "macos".to_owned(), ..scene.machine() };
    check(mac.missing(Runtime::Docker), "is not installed", "`brew install --cask docker`");
    check(mac.missing(Runtime::Podman), "is not installed", "`brew install podman`");
    let windows = Machine { system: "windows".to_owned(), ..scene.machine() };
    check(windows.missing(Runtime::Podman), "is not installed", "`wsl --install -d Debian`");
}

#[test]
fn boo_1_an_engine_is_told_apart_by_whether_it_runs() {
    let scene = Scene::new();
    let missing = || scene.machine().missing(Runtime::Docker);
    fs::create_dir_all(scene.path("machine/usr/local/bin/docker")).unwrap();
    check(missing(), "is not installed", "native runtime");
    scene.setting("usr/bin/docker", "");
    check(missing(), "does not run", "systemctl start docker");
    scene.setting("run/user/1000/docker.sock", "");
    assert_eq!(missing(), None);

    scene.setting("usr/bin/podman", "").setting("run/podman/podman.sock", "");
    assert_eq!(scene.machine().missing(Runtime::Podman), None);
    // Whoever runs it need not have its command.
    let elsewhere = Machine { path: OsString::from(""), ..scene.machine() };
    assert_eq!(elsewhere.missing(Runtime::Podman), None);
    let nowhere = Machine { root: scene.path("nothing"), ..elsewhere };
    check(nowhere.missing(Runtime::Podman), "is not installed", "native");
}

#[test]
fn this_machine_can_be_looked_at() {
    let machine = Machine::here();
    assert_eq!((machine.root.to_str(), machine.system.as_str()), (Some("/"), "linux"));
    assert!((machine.clock)() <= (machine.clock)());
}
