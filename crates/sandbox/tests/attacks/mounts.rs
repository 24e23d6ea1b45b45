//! Leaving the file tree.

use crate::case::attack;

#[test]
fn attack_23_nothing_can_be_mounted() {
    attack("mount")
        .args(["/tmp"])
        .row("memory", "EPERM", "ok")
        .row("processes", "EPERM", "ok")
        .row("the root again", "EPERM", "ok")
        .row("the root writable", "EPERM", "ok")
        .row("the root shared", "EPERM", "ok")
        .check();
}

#[test]
fn attack_24_nothing_can_be_unmounted() {
    attack("unmount").args(["processes=/proc"]).row("processes", "EPERM", "ok").check();
}

#[test]
fn attack_25_the_newer_calls_mount_nothing_either() {
    attack("new-mounts")
        .row("fsopen", "EPERM", "ok")
        .row("fspick", "EPERM", "*")
        .row("fsmount", "EPERM", "EBADF")
        .row("fsconfig", "EPERM", "*")
        .row("open_tree", "EPERM", "ok")
        .row("move_mount", "EPERM", "*")
        .row("mount_setattr", "EPERM", "ok")
        .check();
}

#[test]
fn attack_26_the_root_cannot_be_exchanged() {
    attack("pivot-root").args(["{scene}/project/.."]).row("pivot_root", "EPERM", "ok").check();
}

#[test]
fn attack_27_a_root_below_is_no_way_out() {
    attack("chroot")
        .args(["{project}", "{home}/.ssh/id_ed25519"])
        .row("chroot", "EPERM", "ok")
        .row("chroot to the top", "EPERM", "ok")
        .row("the canary", "ENOENT|EACCES", "ok")
        .steals()
        .check();
}

#[test]
fn attack_28_doors_of_other_processes_lead_nowhere() {
    attack("proc-root")
        .args(["{home}/.ssh/id_ed25519"])
        .row("root of the first process", "EACCES|ENOENT|EPERM", "ok")
        .row("root of the parent", "EACCES|ENOENT|EPERM", "ok")
        .row("own root", "ENOENT|EACCES", "ok")
        .row("up from here", "ENOENT|EACCES", "ok")
        .row("directory of the first process", "EACCES|ENOENT|EPERM", "ok")
        .steals()
        .check();
}
