//! Rights, users, namespaces, other processes.

use crate::case::{Case, attack};

#[test]
fn attack_37_there_are_no_rights_to_use() {
    attack("rights")
        .row("CapInh", "none", "some")
        .row("CapPrm", "none", "some")
        .row("CapEff", "none", "some")
        .row("CapBnd", "none", "some")
        .row("CapAmb", "none", "some")
        .row("NoNewPrivs", "1", "0")
        .row("Seccomp", "2", "0")
        .sandbox(|drive| drive.unruly = true)
        .control(|control| control.unruly = true)
        .check();
}

#[test]
fn attack_38_rights_cannot_be_taken() {
    attack("capset").row("the right to administer", "EPERM", "ok").check();
}

#[test]
fn attack_39_nobody_becomes_another_user() {
    attack("other-users")
        .row("user 0", "EPERM|EINVAL", "ok")
        .row("group 0", "EPERM|EINVAL", "ok")
        .row("file user 0", "EPERM", "ok")
        .check();
}

/// A row for each kind of namespace.
fn namespaces(case: Case, inside: &'static str) -> Case {
    ["user", "mount", "network", "process", "host name", "memory sharing", "control group"]
        .into_iter()
        .fold(case, |case, kind| case.row(kind, inside, "ok"))
}

#[test]
fn attack_40_unshare_gives_no_namespace() {
    namespaces(attack("unshare"), "EPERM").check();
}

#[test]
fn attack_41_clone_gives_no_namespace() {
    namespaces(attack("clone"), "EPERM").check();
}

#[test]
fn attack_42_clone3_is_not_there() {
    // Not EPERM: programs then use the older call, whose flags a filter can see.
    namespaces(attack("clone3"), "ENOSYS").check();
}

#[test]
fn attack_43_namespaces_of_others_cannot_be_entered() {
    attack("setns")
        .row("enter net", "EACCES|EPERM|ENOENT", "ok")
        .row("enter uts", "EACCES|EPERM|ENOENT", "ok")
        .row("enter mnt", "EACCES|EPERM|ENOENT", "ok")
        .row("enter its own", "EPERM", "ok")
        .check();
}

#[test]
fn attack_44_processes_cannot_be_traced() {
    attack("ptrace")
        .row("the first process", "EPERM", "ok")
        .row("a child", "EPERM", "ok")
        .row("by its parent", "EPERM", "ok")
        .check();
}

#[test]
fn attack_45_memory_and_descriptors_of_the_first_process_are_out_of_reach() {
    attack("foreign-memory")
        .row("read by call", "EPERM", "ok")
        .row("write by call", "EPERM", "ok")
        .row("open its memory", "EACCES|EPERM", "ok")
        .row("take a descriptor", "EPERM", "ok")
        .row("its descriptors", "EACCES|EPERM", "ok")
        .row("compare with it", "EPERM", "ok")
        .check();
}

#[test]
fn attack_46_signals_do_not_leave_the_job() {
    attack("signal-out")
        .row(
            "a signal to the first process",
            "EPERM|no scopes in this kernel",
            "ok|no scopes in this kernel",
        )
        .check();
}

#[test]
fn attack_47_who_watches_over_the_job_cannot_be_killed() {
    attack("kill-parent")
        .row("the attacker", "is still there", "is still there")
        .control(|control| control.mortal_parent = true)
        .stopped(|_, seen| assert_eq!(seen.end, "exited with code 0"))
        .works(|_, seen| assert_eq!(seen.victim, "ended by signal 9", "dead probe"))
        .check();
}

#[test]
fn attack_48_processes_of_the_host_cannot_be_killed() {
    attack("kill-others")
        .args(["stranger={victim}"])
        .row("stranger", "ESRCH", "ok")
        .row("the attacker", "is still there", "is still there")
        .with_victim()
        .works(|_, seen| assert_eq!(seen.victim, "ended by signal 9", "dead probe"))
        .check();
}

#[test]
#[cfg(target_arch = "x86_64")]
fn attack_49_the_gate_of_32_bits_is_shut() {
    // A kernel that was built without it refuses by itself, with another signal.
    attack("old-gate").row("the gate of 32 bits", "SIGSYS", "ok|signal 11").check();
}

#[test]
#[cfg(target_arch = "x86_64")]
fn attack_50_second_numbers_of_calls_are_no_way_past_the_filter() {
    attack("second-numbers")
        .row("ptrace", "ENOSYS", "EHWPOISON")
        .row("unshare", "ENOSYS", "EHWPOISON")
        .row("process id", "ENOSYS", "EHWPOISON")
        .control(|control| {
            control.watched = ["x32 ptrace", "x32 unshare", "x32 getpid"].map(Into::into).into()
        })
        // The engine's own filter is stricter.
        .ends_on_engines("ended by signal 31")
        .check();
}

#[test]
fn attack_51_memory_stays_hard_to_attack() {
    attack("personality")
        .row("memory to execute", "EPERM", "ok")
        .row("memory to execute, mixed", "EPERM", "ok")
        .row("memory at address 0", "EPERM", "ok")
        .check();
}

#[test]
fn attack_52_a_filter_cannot_be_loosened_or_taken_over() {
    attack("loosen")
        .row("unshare after that", "EPERM", "ok")
        .row("judge its own calls", "EPERM", "ok")
        .check();
}

#[test]
fn attack_53_a_guest_that_only_computes_starts_nobody_and_speaks_to_nobody() {
    attack("guest")
        .row("a process", "EPERM", "ok")
        .row("an internet socket", "EPERM", "ok")
        .row("a directory", "EPERM", "ok")
        .row("an inode that changes", "EPERM", "ok")
        .sandbox(|drive| drive.template = Some("ai-provider".into()))
        .check();
}
