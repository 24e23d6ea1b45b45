//! Other processes, other users, other namespaces.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;

use super::leaks::status;
use super::{Report, pairs};
use crate::sys::{self, Arg, call, descriptor};

pub(super) const ATTACKS: &[(&str, super::Attack)] = &[
    ("rights", rights),
    ("other-users", other_users),
    ("unshare", unshare),
    ("clone", clone),
    ("clone3", clone3),
    ("setns", setns),
    ("ptrace", ptrace),
    ("foreign-memory", foreign_memory),
    ("kill-parent", kill_parent),
    ("kill-others", kill_others),
    ("old-gate", old_gate),
    ("guest", guest),
    ("second-numbers", second_numbers),
    ("personality", personality),
    ("loosen", loosen),
    ("capset", capset),
    ("signal-out", signal_out),
];

const NAMESPACES: [(&str, i32); 7] = [
    ("user", libc::CLONE_NEWUSER),
    ("mount", libc::CLONE_NEWNS),
    ("network", libc::CLONE_NEWNET),
    ("process", libc::CLONE_NEWPID),
    ("host name", libc::CLONE_NEWUTS),
    ("memory sharing", libc::CLONE_NEWIPC),
    ("control group", libc::CLONE_NEWCGROUP),
];

/// What this process is allowed.
fn rights(_args: &[&str], report: &mut Report) {
    for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        let none = status(name).bytes().all(|digit| digit == b'0');
        report.said(name, if none { "none" } else { "some" });
    }
    report.said("NoNewPrivs", status("NoNewPrivs"));
    report.said("Seccomp", status("Seccomp"));
}

/// Reaches out of its Landlock domain, which is the one layer that stops this.
fn signal_out(_args: &[&str], report: &mut Report) {
    // Asks for the version.
    let version = call!(libc::SYS_landlock_create_ruleset, Arg::Null, 0, 1).unwrap_or(0);
    if version < 6 {
        report.said("a signal to the first process", "no scopes in this kernel");
        return;
    }
    // Signal 0 does nothing.
    report.tried("a signal to the first process", call!(libc::SYS_kill, 1, 0));
}

/// Gives itself every right.
fn capset(_args: &[&str], report: &mut Report) {
    // Version 3, this process.
    let mut header = [0_u8; 8];
    header[..4].copy_from_slice(&0x2008_0522_u32.to_ne_bytes());
    let mut rights = [0_u8; 24];
    rights[0..4].copy_from_slice(&(1_u32 << 21).to_ne_bytes());
    rights[4..8].copy_from_slice(&(1_u32 << 21).to_ne_bytes());
    report.tried("the right to administer", call!(libc::SYS_capset, &header, &rights));
}

/// Becomes another user.
fn other_users(_args: &[&str], report: &mut Report) {
    report.tried("user 0", call!(libc::SYS_setresuid, 0, 0, 0));
    report.tried("group 0", call!(libc::SYS_setresgid, 0, 0, 0));
    report.tried("file user 0", {
        // Answers the user before; whether it worked shows when asked again.
        call!(libc::SYS_setfsuid, 0).and_then(|_| match call!(libc::SYS_setfsuid, -1) {
            Ok(0) => Ok(()),
            Ok(_) => Err(io::Error::from_raw_os_error(libc::EPERM)),
            Err(error) => Err(error),
        })
    });
}

/// Namespaces of its own, in which it would be root.
fn unshare(_args: &[&str], report: &mut Report) {
    for (label, flag) in NAMESPACES {
        let code = sys::fork(|| match call!(libc::SYS_unshare, flag) {
            Ok(_) => 0,
            Err(error) => error.raw_os_error().unwrap_or(255),
        });
        report.tried(label, code.and_then(ended));
    }
}

fn ended(pid: i32) -> io::Result<()> {
    match wait(pid) {
        Ended::Code(0) => Ok(()),
        Ended::Code(code) => Err(io::Error::from_raw_os_error(code)),
        Ended::Signal(signal) => Err(io::Error::other(format!("signal {signal}"))),
    }
}

enum Ended {
    Code(i32),
    Signal(i32),
}

fn wait(pid: i32) -> Ended {
    let pid = rustix::process::Pid::from_raw(pid);
    let (_, status) = rustix::process::waitpid(pid, rustix::process::WaitOptions::empty())
        .unwrap()
        .expect("waited without a limit");
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ended::Code(code),
        (_, signal) => Ended::Signal(signal.unwrap_or(0)),
    }
}

/// The same while making a process.
fn clone(_args: &[&str], report: &mut Report) {
    for (label, flag) in NAMESPACES {
        let flags = u64::from(flag.cast_unsigned() | libc::SIGCHLD.cast_unsigned());
        report.tried(label, sys::clone(flags));
    }
}

/// The same by the newer call, whose flags no filter can see.
fn clone3(_args: &[&str], report: &mut Report) {
    for (label, flag) in NAMESPACES {
        report.tried(label, sys::clone3(u64::from(flag.cast_unsigned())));
    }
}

/// Enters namespaces of others.
fn setns(_args: &[&str], report: &mut Report) {
    for kind in ["net", "uts", "mnt"] {
        let door = File::open(format!("/proc/1/ns/{kind}"));
        let entered = door.and_then(|door| call!(libc::SYS_setns, door.as_raw_fd(), 0));
        report.tried(&format!("enter {kind}"), entered);
    }
    let own = File::open("/proc/self/ns/uts").unwrap();
    report.tried("enter its own", call!(libc::SYS_setns, own.as_raw_fd(), 0));
}

/// Takes over processes.
fn ptrace(_args: &[&str], report: &mut Report) {
    report.tried("the first process", call!(libc::SYS_ptrace, libc::PTRACE_SEIZE, 1, 0, 0));
    let child = sys::fork(|| {
        sys::pause();
        0
    })
    .unwrap();
    report.tried("a child", call!(libc::SYS_ptrace, libc::PTRACE_ATTACH, child, 0, 0));
    call!(libc::SYS_kill, child, libc::SIGKILL).unwrap();
    let asked = sys::fork(|| match call!(libc::SYS_ptrace, libc::PTRACE_TRACEME, 0, 0, 0) {
        Ok(_) => 0,
        Err(error) => error.raw_os_error().unwrap_or(255),
    });
    report.tried("by its parent", asked.and_then(ended));
}

/// Reads and writes memory of the first process, and takes its descriptors.
fn foreign_memory(_args: &[&str], report: &mut Report) {
    static HERE: [u8; 8] = *b"whatever";
    let mut taken = [0_u8; 8];
    let mut local = [0_u8; 16];
    local[..8].copy_from_slice(&(taken.as_mut_ptr() as u64).to_ne_bytes());
    local[8] = 8;
    let mut remote = local;
    remote[..8].copy_from_slice(&(HERE.as_ptr() as u64).to_ne_bytes());
    report.tried("read by call", call!(libc::SYS_process_vm_readv, 1, &local, 1, &remote, 1, 0));
    // Writes nothing, to nowhere.
    report.tried("write by call", call!(libc::SYS_process_vm_writev, 1, &local, 0, &remote, 0, 0));
    report.tried("open its memory", File::options().read(true).write(true).open("/proc/1/mem"));
    let first = descriptor(call!(libc::SYS_pidfd_open, 1, 0));
    let stolen =
        first.and_then(|first| descriptor(call!(libc::SYS_pidfd_getfd, first.as_raw_fd(), 0, 0)));
    report.tried("take a descriptor", stolen);
    report.tried("its descriptors", fs::read_dir("/proc/1/fd"));
    report.tried("compare with it", call!(libc::SYS_kcmp, std::process::id(), 1, 1, 0, 0));
}

/// Kills what watches over it.
fn kill_parent(_args: &[&str], report: &mut Report) {
    let parent = rustix::process::getppid().map_or(1, |parent| parent.as_raw_nonzero().get());
    // Whether the calls are refused or do nothing is the same to us: what counts is who is left.
    for signal in [libc::SIGSTOP, libc::SIGTERM, libc::SIGKILL] {
        let _answer = call!(libc::SYS_kill, 1, signal);
        let _answer = call!(libc::SYS_kill, parent, signal);
    }
    report.said("the attacker", "is still there");
}

/// Kills everybody else.
fn kill_others(args: &[&str], report: &mut Report) {
    for (label, pid) in pairs(args) {
        let pid: i32 = pid.parse().unwrap();
        report.tried(label, call!(libc::SYS_kill, pid, libc::SIGKILL));
    }
    let _answer = call!(libc::SYS_kill, -1, libc::SIGKILL);
    report.said("the attacker", "is still there");
}

/// Goes past a filter for 64-bit calls.
fn old_gate(_args: &[&str], report: &mut Report) {
    #[cfg(target_arch = "x86_64")]
    {
        let child = sys::fork(|| i32::from(sys::pid_by_the_old_gate() <= 0)).unwrap();
        let answer = match wait(child) {
            Ended::Code(0) => "ok".to_owned(),
            Ended::Code(_) => "refused".to_owned(),
            Ended::Signal(signal) if signal == libc::SIGSYS => "SIGSYS".to_owned(),
            Ended::Signal(signal) => format!("signal {signal}"),
        };
        report.said("the gate of 32 bits", answer);
    }
    #[cfg(not(target_arch = "x86_64"))]
    report.said("the gate of 32 bits", "none on this machine");
}

/// What a guest that only computes has no use for.
fn guest(_args: &[&str], report: &mut Report) {
    report.tried("a process", sys::fork(|| 0).and_then(ended));
    report.tried("an internet socket", descriptor(call!(libc::SYS_socket, libc::AF_INET, 1, 0)));
    report.tried("a directory", fs::create_dir("/tmp/made"));
    report
        .tried("an inode that changes", call!(libc::SYS_fchmodat, libc::AT_FDCWD, c"/tmp", 0o777));
}

/// Uses the numbers of x32, in which every call has a second one.
fn second_numbers(_args: &[&str], report: &mut Report) {
    report.tried("ptrace", call!(0x4000_0000 + 521, libc::PTRACE_TRACEME, 0, 0, 0));
    report.tried("unshare", call!(0x4000_0000 + libc::SYS_unshare, libc::CLONE_NEWUSER));
    report.tried("process id", call!(0x4000_0000 + libc::SYS_getpid));
}

/// Turns off what makes memory hard to attack.
fn personality(_args: &[&str], report: &mut Report) {
    report.tried("memory to execute", call!(libc::SYS_personality, libc::READ_IMPLIES_EXEC));
    let mixed = libc::READ_IMPLIES_EXEC | libc::ADDR_NO_RANDOMIZE;
    report.tried("memory to execute, mixed", call!(libc::SYS_personality, mixed));
    report.tried("memory at address 0", call!(libc::SYS_personality, libc::MMAP_PAGE_ZERO));
}

/// Takes its own fetters off.
fn loosen(_args: &[&str], report: &mut Report) {
    // A filter that allows everything: it is added to those there are and replaces none.
    let allow: [u8; 8] = [0x06, 0, 0, 0, 0, 0, 0xff, 0x7f];
    let mut program = [0_u8; 16];
    program[0] = 1;
    program[8..].copy_from_slice(&(allow.as_ptr() as u64).to_ne_bytes());
    let _added = call!(libc::SYS_prctl, libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    let _added = call!(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &program);
    report.tried("unshare after that", call!(libc::SYS_unshare, libc::CLONE_NEWUTS));
    let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let judge = call!(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, listener, &program);
    report.tried("judge its own calls", descriptor(judge));
}
