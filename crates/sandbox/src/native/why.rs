//! Says why no sandbox can be made on this machine, and what to do about it.
//!
//! The trying comes first, in [`super::sandbox`]; this reads the machine's settings to explain what came back.

use std::io;
use std::path::Path;

use crate::runtime::{Failure, RuntimeError};

/// Settings that forbid user namespaces.
struct Settings {
    max: Option<u64>,
    unprivileged: Option<u64>,
    apparmor: Option<u64>,
    wsl1: bool,
}

impl Settings {
    fn read() -> Self {
        let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse().ok();
        let version = std::fs::read_to_string("/proc/version").unwrap_or_default();
        Self {
            max: number("/proc/sys/user/max_user_namespaces"),
            unprivileged: number("/proc/sys/kernel/unprivileged_userns_clone"),
            apparmor: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
            wsl1: version.contains("Microsoft") && !version.contains("WSL2"),
        }
    }
}

/// An error of the set-up: with its remedy if it is the machine that forbids sandboxes.
pub(super) fn explain(step: String, errno: i32, program: &Path) -> RuntimeError {
    let source = io::Error::from_raw_os_error(errno);
    match diagnose(&step, errno, &Settings::read(), program) {
        Some((what, fix)) => RuntimeError::Unavailable { what, fix },
        None => RuntimeError::Setup(Failure { step, source }),
    }
}

/// Nobody but the host's root could stand behind a sandbox.
pub(super) fn root_alone() -> RuntimeError {
    RuntimeError::Unavailable {
        what: "this process is root in a user namespace that has no other users".to_owned(),
        fix: "run fluffy as an ordinary user, or give the namespace more users".to_owned(),
    }
}

fn diagnose(
    step: &str,
    errno: i32,
    settings: &Settings,
    program: &Path,
) -> Option<(String, String)> {
    let making = step == "making the namespaces";
    let mapping =
        step.starts_with("writing ") && step.ends_with("_map") || step == "writing setgroups";
    let capable = ["switching the loopback device on", "making the mounts private"].contains(&step);
    let answer = |what: &str, fix: &str| Some((what.to_owned(), fix.to_owned()));
    if making && settings.wsl1 {
        return answer(
            "WSL 1 has no namespaces",
            "convert the distribution to WSL 2: `wsl --set-version <name> 2`",
        );
    }
    if making && (errno == libc::ENOSPC || settings.max == Some(0)) {
        return answer(
            "user namespaces are switched off (user.max_user_namespaces)",
            "allow them: `sudo sysctl user.max_user_namespaces=15000`, and write that line to /etc/sysctl.d/ to keep it",
        );
    }
    if making && settings.unprivileged == Some(0) {
        return answer(
            "user namespaces are reserved for root (kernel.unprivileged_userns_clone=0)",
            "allow them: `sudo sysctl kernel.unprivileged_userns_clone=1`, and write that line to /etc/sysctl.d/ to keep it",
        );
    }
    let refused = matches!(errno, libc::EPERM | libc::EACCES);
    if refused && (making || mapping || capable) && settings.apparmor == Some(1) {
        let program = program.display();
        return Some((
            "AppArmor takes the rights in user namespaces away (kernel.apparmor_restrict_unprivileged_userns=1)".to_owned(),
            format!(
                "give this one program the right: write `abi <abi/4.0>, profile fluffy {program} flags=(unconfined) {{ userns, }}` to /etc/apparmor.d/fluffy and run `sudo apparmor_parser -r /etc/apparmor.d/fluffy`"
            ),
        ));
    }
    if making && matches!(errno, libc::ENOSYS | libc::EPERM | libc::EINVAL) {
        return answer(
            "this process may not make user namespaces: it is probably inside a container or a chroot that forbids it",
            "run fluffy on the host, or start the container with a seccomp profile that allows `clone` and `unshare` with namespaces",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Settings =
        Settings { max: Some(1000), unprivileged: None, apparmor: None, wsl1: false };

    #[track_caller]
    fn check(step: &str, errno: i32, settings: &Settings, expected: &str) {
        let found = diagnose(step, errno, settings, Path::new("/usr/bin/fluffy"));
        let (what, fix) = found.unwrap_or_default();
        assert!(what.contains(expected), "{what:?} does not say {expected:?}");
        assert_eq!(what.is_empty(), fix.is_empty());
    }

    #[test]
    fn each_way_of_forbidding_namespaces_is_named_with_its_remedy() {
        let making = "making the namespaces";
        check(making, libc::ENOSPC, &FREE, "max_user_namespaces");
        check(making, libc::EPERM, &Settings { max: Some(0), ..FREE }, "max_user_namespaces");
        check(
            making,
            libc::EPERM,
            &Settings { unprivileged: Some(0), ..FREE },
            "unprivileged_userns_clone",
        );
        check(making, libc::EPERM, &FREE, "inside a container");
        check(making, libc::ENOSYS, &FREE, "inside a container");
        check(making, libc::EINVAL, &Settings { wsl1: true, ..FREE }, "WSL 1");
        let ubuntu = Settings { apparmor: Some(1), ..FREE };
        for step in ["writing uid_map", "writing setgroups", "switching the loopback device on"] {
            check(step, libc::EPERM, &ubuntu, "AppArmor");
            check(step, libc::EACCES, &ubuntu, "AppArmor");
        }
    }

    #[test]
    fn a_failure_with_another_cause_is_not_blamed_on_the_machine() {
        assert_eq!(diagnose("placing a layer", libc::EPERM, &FREE, Path::new("/x")), None);
        assert_eq!(diagnose("writing uid_map", libc::EIO, &FREE, Path::new("/x")), None);
    }
}
