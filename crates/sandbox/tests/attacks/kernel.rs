//! The machine itself, and parts of the kernel with a history.
//!
//! Where no machine should ever carry a call out, the control shows either the kernel's own answer to
//! senseless arguments, which is another than the filter's, or that a filter planted in its way
//! (`EHWPOISON`) sees the call.

use crate::case::attack;

#[test]
fn attack_54_io_uring() {
    attack("io-uring")
        .row("setup", "EPERM|ENOSYS", "ok")
        .row("enter", "EPERM|ENOSYS", "EBADF")
        .row("register", "EPERM|ENOSYS", "*")
        .check();
}

#[test]
fn attack_55_bpf() {
    attack("bpf").row("look into a map", "EPERM", "EBADF").check();
}

#[test]
fn attack_56_perf_events() {
    attack("perf").row("watch itself", "EPERM", "ok").check();
}

#[test]
fn attack_57_user_faults() {
    attack("userfaultfd").row("user mode only", "EPERM", "ok").check();
}

#[test]
fn attack_58_fanotify() {
    attack("fanotify").row("by file number", "EPERM", "ok").check();
}

#[test]
fn attack_59_keyrings() {
    attack("keys")
        .row("add", "EPERM", "ok")
        .row("session's keyring", "EPERM", "ok|ENOKEY")
        .row("request", "EPERM", "ok")
        .check();
}

#[test]
fn attack_60_kexec() {
    attack("kexec")
        .row("load", "EPERM", "EHWPOISON")
        .row("load a file", "EPERM", "EHWPOISON")
        .control(|control| {
            control.watched = ["kexec_load", "kexec_file_load"].map(Into::into).into()
        })
        .check();
}

#[test]
fn attack_61_modules() {
    attack("modules")
        .row("load", "EPERM", "EHWPOISON")
        .row("load a file", "EPERM", "EHWPOISON")
        .row("unload", "EPERM", "EHWPOISON")
        .control(|control| {
            control.watched =
                ["init_module", "finit_module", "delete_module"].map(Into::into).into();
        })
        .check();
}

#[test]
fn attack_62_reboot() {
    attack("reboot").row("without the magic", "EPERM", "EINVAL").check();
}

#[test]
fn attack_63_swap() {
    attack("swap")
        .row("on, with unknown flags", "EPERM", "EINVAL")
        .row("off, nothing", "EPERM", "EHWPOISON")
        .control(|control| control.watched = vec!["swapoff".into()])
        .check();
}

#[test]
fn attack_64_the_clock() {
    attack("clock")
        .row("set, to no time", "EPERM", "EFAULT")
        .row("set as of old, to no time", "EPERM", "EFAULT")
        .row("adjust, by nothing", "EPERM", "EFAULT")
        .row("adjust one, by nothing", "EPERM", "EFAULT")
        .check();
}

#[test]
fn attack_65_the_host_s_name() {
    attack("host-name").row("name", "EPERM", "ok").row("domain", "EPERM", "ok").check();
}

#[test]
fn attack_66_accounting_and_quotas() {
    attack("accounting")
        .row("of processes", "EPERM", "EHWPOISON")
        .row("of disk", "EPERM", "EINVAL")
        .control(|control| control.watched = vec!["acct".into()])
        .check();
}

#[test]
fn attack_67_the_kernel_s_log_and_everybody_s_terminal() {
    attack("kernel-log")
        .row("size", "EPERM", "EHWPOISON")
        .row("terminal", "EPERM", "EHWPOISON")
        .control(|control| control.watched = ["syslog", "vhangup"].map(Into::into).into())
        .check();
}

#[test]
#[cfg(target_arch = "x86_64")]
fn attack_68_ports_of_devices() {
    attack("ports")
        .row("a level that is none", "EPERM", "EHWPOISON")
        .row("a range that is none", "EPERM", "EHWPOISON")
        .control(|control| control.watched = ["iopl", "ioperm"].map(Into::into).into())
        .check();
}

#[test]
fn attack_69_placement_of_memory() {
    attack("placement")
        .row("move pages", "EPERM", "ok")
        .row("memory policy", "EPERM", "ok")
        .check();
}
