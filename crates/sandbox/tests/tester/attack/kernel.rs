//! Calls that concern the whole machine, or parts of the kernel that have a history.
//!
//! **Invariant.** No call here could act, even where nothing stops it: magic numbers are wrong, addresses
//! bad, flags unknown.

use super::Report;
use crate::sys::{Arg, call, descriptor};

pub(super) const ATTACKS: &[(&str, super::Attack)] = &[
    ("io-uring", io_uring),
    ("bpf", bpf),
    ("perf", perf),
    ("userfaultfd", userfaultfd),
    ("fanotify", fanotify),
    ("keys", keys),
    ("kexec", kexec),
    ("modules", modules),
    ("reboot", reboot),
    ("swap", swap),
    ("clock", clock),
    ("host-name", host_name),
    ("accounting", accounting),
    ("kernel-log", kernel_log),
    ("ports", ports),
    ("placement", placement),
];

fn io_uring(_args: &[&str], report: &mut Report) {
    let ring = descriptor(call!(libc::SYS_io_uring_setup, 1, &mut [0_u8; 120]));
    report.tried("setup", ring);
    report.tried("enter", call!(libc::SYS_io_uring_enter, -1, 0, 0, 0, Arg::Null, 0));
    report.tried("register", call!(libc::SYS_io_uring_register, -1, 0, Arg::Null, 0));
}

fn bpf(_args: &[&str], report: &mut Report) {
    // Looks into map -1: the one kind of command that the kernel lets everybody try.
    let mut command = [0_u8; 32];
    command[..4].copy_from_slice(&(-1_i32).to_ne_bytes());
    report.tried("look into a map", call!(libc::SYS_bpf, 1, &command, 32));
}

fn perf(_args: &[&str], report: &mut Report) {
    // Software, processor clock, this process, user space only.
    let mut event = [0_u8; 112];
    event[0] = 1;
    event[4] = 112;
    event[40] = 0b0110_0001;
    let watch = call!(libc::SYS_perf_event_open, &event, 0, -1, -1, 0);
    report.tried("watch itself", descriptor(watch));
}

fn userfaultfd(_args: &[&str], report: &mut Report) {
    report.tried("user mode only", descriptor(call!(libc::SYS_userfaultfd, 1)));
}

fn fanotify(_args: &[&str], report: &mut Report) {
    report.tried("by file number", descriptor(call!(libc::SYS_fanotify_init, 0x200, 0)));
}

fn keys(_args: &[&str], report: &mut Report) {
    // The process's own keyring is -2, the session's -3.
    report.tried("add", call!(libc::SYS_add_key, c"user", c"fluffy", b"x", 1, -2));
    report.tried("session's keyring", call!(libc::SYS_keyctl, 0, -3, 0));
    report.tried("request", call!(libc::SYS_request_key, c"user", c"fluffy", Arg::Null, -2));
}

fn kexec(_args: &[&str], report: &mut Report) {
    // A flag that does not exist, and no image.
    report.tried("load", call!(libc::SYS_kexec_load, 0, 0, Arg::Null, 1 << 30));
    report.tried("load a file", call!(libc::SYS_kexec_file_load, -1, -1, 0, Arg::Null, 1 << 30));
}

fn modules(_args: &[&str], report: &mut Report) {
    report.tried("load", call!(libc::SYS_init_module, Arg::Null, 0, Arg::Null));
    report.tried("load a file", call!(libc::SYS_finit_module, -1, Arg::Null, 0));
    report.tried("unload", call!(libc::SYS_delete_module, Arg::Bad, 0));
}

fn reboot(_args: &[&str], report: &mut Report) {
    // Without the two magic numbers nothing can happen.
    report.tried("without the magic", call!(libc::SYS_reboot, 1, 2, 0, Arg::Null));
}

fn swap(_args: &[&str], report: &mut Report) {
    report.tried("on, with unknown flags", call!(libc::SYS_swapon, Arg::Bad, 1 << 30));
    report.tried("off, nothing", call!(libc::SYS_swapoff, Arg::Bad));
}

fn clock(_args: &[&str], report: &mut Report) {
    report.tried("set, to no time", call!(libc::SYS_clock_settime, 0, Arg::Bad));
    report.tried("set as of old, to no time", call!(libc::SYS_settimeofday, Arg::Bad, Arg::Null));
    report.tried("adjust, by nothing", call!(libc::SYS_adjtimex, Arg::Bad));
    report.tried("adjust one, by nothing", call!(libc::SYS_clock_adjtime, 0, Arg::Bad));
}

fn host_name(_args: &[&str], report: &mut Report) {
    report.tried("name", call!(libc::SYS_sethostname, b"attacked", 8));
    report.tried("domain", call!(libc::SYS_setdomainname, b"attacked", 8));
}

fn accounting(_args: &[&str], report: &mut Report) {
    report.tried("of processes", call!(libc::SYS_acct, Arg::Bad));
    report.tried("of disk", call!(libc::SYS_quotactl, 0xff, Arg::Null, 0, Arg::Null));
}

fn kernel_log(_args: &[&str], report: &mut Report) {
    // Asks how large the log is.
    report.tried("size", call!(libc::SYS_syslog, 10, Arg::Null, 0));
    report.tried("terminal", call!(libc::SYS_vhangup));
}

fn ports(_args: &[&str], report: &mut Report) {
    #[cfg(target_arch = "x86_64")]
    {
        report.tried("a level that is none", call!(libc::SYS_iopl, 9));
        report.tried("a range that is none", call!(libc::SYS_ioperm, u64::MAX, 1, 0));
    }
    #[cfg(not(target_arch = "x86_64"))]
    report.said("none", "none on this machine");
}

/// Places memory and processes.
fn placement(_args: &[&str], report: &mut Report) {
    report
        .tried("move pages", call!(libc::SYS_move_pages, 0, 0, Arg::Null, Arg::Null, Arg::Null, 0));
    report.tried("memory policy", call!(libc::SYS_set_mempolicy, 0, Arg::Null, 0));
}
