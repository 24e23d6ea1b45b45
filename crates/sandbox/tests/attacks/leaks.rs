//! Secrets of the host, and what was left open.

use crate::case::attack;

#[test]
fn attack_29_secrets_of_the_home_cannot_be_read() {
    attack("read")
        .args([
            "key={home}/.ssh/id_ed25519",
            "cloud={home}/.aws/credentials",
            "sibling={sibling}/.env",
            "link={project}/folder-link/.aws/credentials",
        ])
        .row("key", "ENOENT|EACCES", "ok")
        .row("cloud", "ENOENT|EACCES", "ok")
        .row("sibling", "ENOENT|EACCES", "ok")
        .row("link", "ENOENT|EACCES", "ok")
        .steals()
        .check();
}

#[test]
fn attack_30_secrets_of_the_system_cannot_be_read() {
    let paths = [
        "shadow=/etc/shadow",
        "sudo=/etc/sudoers",
        "machine=/etc/machine-id",
        "keys=/etc/ssh/ssh_host_ed25519_key",
        "root=/root",
        "spool=/var/spool",
        "log=/var/log",
        "runtime=/run/user",
    ];
    let mut case = attack("read").args(paths);
    for (what, _) in paths.map(|path| path.split_once('=').unwrap()) {
        case = case.row(what, "ENOENT|EACCES", "ok");
    }
    case.control(|control| {
        control.blank = ["/etc", "/root", "/run"].map(Into::into).into();
        control.planted = [
            "/etc/shadow",
            "/etc/sudoers",
            "/etc/machine-id",
            "/etc/ssh/ssh_host_ed25519_key",
            "/run/user/1000/bus",
        ]
        .map(Into::into)
        .into();
    })
    .check();
}

#[test]
fn attack_31_the_caller_s_environment_is_not_passed_on() {
    attack("environment")
        .row("the caller's variables", "none", "DOCKER_HOST FAKE_API_KEY SSH_AUTH_SOCK")
        .steals()
        .check();
}

#[test]
fn attack_32_environments_of_other_processes_cannot_be_read() {
    attack("environments")
        .row("readable", "none", "some")
        .row("of the first process", "EACCES|EPERM", "ok")
        .row("memory map of the first process", "EACCES|EPERM", "ok")
        .steals()
        .check();
}

#[test]
fn attack_33_descriptors_that_were_left_open_are_closed() {
    attack("descriptors")
        .row("beyond the streams", "none", "*")
        .sandbox(|drive| {
            drive.leaked = vec!["{home}/.ssh/id_ed25519".into(), "/".into(), "{home}".into()]
        })
        .control(|control| {
            control.leaked = vec!["{home}/.ssh/id_ed25519".into(), "/".into(), "{home}".into()]
        })
        .steals()
        .check();
}

#[test]
fn attack_34_signals_masks_and_limits_are_not_inherited() {
    attack("surroundings")
        .row("ignored signals", "none", "*")
        .row("blocked signals", "0000000000000000", "*")
        .row("umask", "0022|0077|0027", "*")
        .row("raise a hard limit", "EPERM", "EHWPOISON")
        .row("core dumps", "none", "*")
        .sandbox(|drive| drive.unruly = true)
        .control(|control| {
            control.unruly = true;
            control.watched = vec!["setrlimit".into()];
        })
        .check();
}

#[test]
fn attack_35_what_the_kernel_tells_about_the_machine_is_covered() {
    attack("told-by-the-kernel")
        .args(["/proc/interrupts"])
        .row("/proc/interrupts", "nothing", "something")
        .check();
}

#[test]
fn attack_36_processes_of_the_host_cannot_be_seen() {
    attack("process-list")
        .args(["{victim}"])
        .row("the stranger", "not seen", "seen")
        .with_victim()
        .check();
}
