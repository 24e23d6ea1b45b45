//! The surroundings of a control run: the attack with the layer that stops it switched off.
//!
//! Everything happens in namespaces of its own (users, mounts, processes, network, host name, memory
//! sharing, control groups), as a user who is nobody outside, with the whole file system read-only but
//! for the scene. There is no filter, no Landlock and no limit, and the attacker has every capability of
//! its own namespaces.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, waitpid};

use crate::listen::Ear;
use crate::spec::{Control, Seen};
use crate::sys::{self, Arg, call, descriptor, text};

/// Runs an attack in such surroundings and prints what was seen.
pub(crate) fn run(control: Control) {
    assert!(!rustix::process::geteuid().is_root(), "controls never run as root");
    alone(&control);
    let first = sys::fork(|| {
        die_with_parent();
        let seen = surroundings(&control);
        println!("{}", serde_json::to_string(&seen).unwrap());
        0
    });
    let status = wait(first.unwrap());
    assert_eq!(status.exit_status(), Some(0), "the control's surroundings could not be made");
}

/// Leaves every namespace of the host.
fn alone(control: &Control) {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let all = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWCGROUP;
    call!(libc::SYS_unshare, all).expect("namespaces");
    if control.second_user {
        // Only somebody with more rights may map a second user: whoever started this does, and says so.
        println!("unshared");
        io::stdin().read_exact(&mut [0]).expect("a map");
        return;
    }
    fs::write("/proc/self/setgroups", "deny").unwrap();
    fs::write("/proc/self/uid_map", format!("0 {uid} 1")).unwrap();
    fs::write("/proc/self/gid_map", format!("0 {gid} 1")).unwrap();
}

fn die_with_parent() {
    call!(libc::SYS_prctl, libc::PR_SET_PDEATHSIG, libc::SIGKILL).unwrap();
}

/// The first process of the namespace: lays everything out, runs the attack, and looks around.
fn surroundings(control: &Control) -> Seen {
    lay_out(control).expect("mounts");
    call!(libc::SYS_sethostname, b"control", 7).unwrap();
    raise_loopback(&control.addresses).expect("loopback");
    let ears: Vec<Ear> = control
        .listening
        .iter()
        .map(|at| Ear::open(at).unwrap_or_else(|error| panic!("{at}: {error}")))
        .collect();
    let _leaked: Vec<OwnedFd> = control.leaked.iter().map(|path| inherited(path)).collect();
    if control.unruly {
        unruly();
    }
    if let Some(beside) = &control.beside {
        start_beside(beside);
    }
    let victim = control.victim.then(|| sys::fork(forever).unwrap());
    let mut seen = attacked(control, victim);
    seen.heard = ears.iter().filter_map(Ear::heard).collect();
    if let Some(victim) = victim {
        seen.victim = fate(victim);
    }
    let left = rustix::process::wait(WaitOptions::NOHANG);
    seen.survivors = matches!(left, Ok(None));
    seen
}

fn lay_out(control: &Control) -> io::Result<()> {
    let none = c"none";
    let private = libc::MS_REC | libc::MS_PRIVATE;
    call!(libc::SYS_mount, none, c"/", Arg::Null, private, Arg::Null)?;
    let scene = text(&control.scene);
    call!(libc::SYS_mount, &scene, &scene, Arg::Null, libc::MS_BIND, Arg::Null)?;
    attributes(c"/", libc::AT_RECURSIVE.cast_unsigned(), libc::MOUNT_ATTR_RDONLY, 0)?;
    attributes(&scene, 0, 0, libc::MOUNT_ATTR_RDONLY)?;
    call!(libc::SYS_mount, c"proc", c"/proc", c"proc", 0, Arg::Null)?;
    for path in [c"/tmp", c"/dev/shm"] {
        call!(libc::SYS_mount, none, path, c"tmpfs", 0, c"size=256m")?;
    }
    for path in &control.blank {
        call!(libc::SYS_mount, none, &text(path), c"tmpfs", 0, c"size=16m")?;
    }
    for path in &control.planted {
        fs::create_dir_all(path.parent().unwrap())?;
        fs::write(path, "planted")?;
    }
    for (path, by) in &control.covered {
        call!(libc::SYS_mount, &text(by), &text(path), Arg::Null, libc::MS_BIND, Arg::Null)?;
    }
    Ok(())
}

fn attributes(path: &std::ffi::CStr, flags: u32, set: u64, clear: u64) -> io::Result<i64> {
    let mut words = [0_u8; 32];
    words[..8].copy_from_slice(&set.to_ne_bytes());
    words[8..16].copy_from_slice(&clear.to_ne_bytes());
    call!(libc::SYS_mount_setattr, libc::AT_FDCWD, path, flags, &words, 32)
}

/// Brings the loopback device up and gives it further addresses.
fn raise_loopback(addresses: &[String]) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let fd = socket.as_raw_fd();
    let request = |name: &str| {
        let mut request = [0_u8; 40];
        request[..name.len()].copy_from_slice(name.as_bytes());
        request
    };
    let up = |name: &str| {
        let mut request = request(name);
        request[16] = 0x41; // IFF_UP | IFF_RUNNING
        call!(libc::SYS_ioctl, fd, libc::SIOCSIFFLAGS, &request)
    };
    up("lo")?;
    for (number, address) in addresses.iter().enumerate() {
        let address: IpAddr = address.parse().map_err(io::Error::other)?;
        let address = match address {
            IpAddr::V4(address) => address,
            IpAddr::V6(address) => {
                // The address, the length of its prefix, and the number of the loopback device.
                let mut request = [0_u8; 24];
                request[..16].copy_from_slice(&address.octets());
                request[16] = 128;
                request[20] = 1;
                let socket = UdpSocket::bind("[::]:0")?;
                call!(libc::SYS_ioctl, socket.as_raw_fd(), libc::SIOCSIFADDR, &request)?;
                // The kernel takes it into use a moment later.
                while UdpSocket::bind((address, 0)).is_err() {
                    std::thread::yield_now();
                }
                continue;
            }
        };
        let alias = format!("lo:{number}");
        let mut request = request(&alias);
        request[16] = 2; // AF_INET
        request[20..24].copy_from_slice(&address.octets());
        call!(libc::SYS_ioctl, fd, libc::SIOCSIFADDR, &request)?;
        up(&alias)?;
    }
    Ok(())
}

/// A descriptor that stays open across an exec, as one that somebody forgot.
pub(crate) fn inherited(path: &std::path::Path) -> OwnedFd {
    let flags = if path.is_dir() { libc::O_DIRECTORY } else { 0 };
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).unwrap();
    // Far up, where nothing else is.
    let fd = descriptor(call!(libc::SYS_fcntl, file.as_raw_fd(), libc::F_DUPFD, 100)).unwrap();
    assert_eq!(call!(libc::SYS_fcntl, fd.as_raw_fd(), libc::F_GETFD).unwrap(), 0, "inheritable");
    fd
}

/// Surroundings that a careful program does not pass on.
pub(crate) fn unruly() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        sys::ignore(signal);
    }
    // Blocks SIGUSR1.
    let set = (1_u64 << (libc::SIGUSR1 - 1)).to_ne_bytes();
    call!(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, &set, Arg::Null, 8).unwrap();
    call!(libc::SYS_umask, 0).unwrap();
    let (_, hard) = sys::limit(libc::RLIMIT_CORE);
    sys::set_limit(libc::RLIMIT_CORE, hard, hard).unwrap();
    let _has_none_to_pass_on = heirlooms();
}

/// Makes the right to administer networks one that children inherit.
fn heirlooms() -> io::Result<i64> {
    let mut header = [0_u8; 8];
    header[..4].copy_from_slice(&0x2008_0522_u32.to_ne_bytes());
    let mut rights = [0_u8; 24];
    call!(libc::SYS_capget, &header, &mut rights)?;
    // Effective, permitted, inheritable, in words of 32 bits.
    rights[9] |= 1 << 4;
    call!(libc::SYS_capset, &header, &rights)?;
    call!(libc::SYS_prctl, libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, 12, 0, 0)
}

/// Runs an attack beside, until it has printed something.
fn start_beside(attack: &[String]) {
    let (mut said, saying) = io::pipe().unwrap();
    sys::fork(|| {
        sys::redirect(&saying, 1);
        crate::attack::perform(attack);
        0
    })
    .unwrap();
    drop(saying);
    said.read_exact(&mut [0]).expect("the other attack speaks");
}

fn forever() -> i32 {
    loop {
        sys::pause();
    }
}

/// Runs the attack and says how it ended and what it printed.
fn attacked(control: &Control, victim: Option<i32>) -> Seen {
    let mut seen = Seen::default();
    let (printed, complained) = (paper(), paper());
    let (input, poke) = io::pipe().unwrap();
    let terminal = control.terminal.then(|| sys::terminal().expect("a terminal"));
    let attacker = || {
        sys::redirect(&printed, 1);
        sys::redirect(&complained, 2);
        sys::redirect(&input, 0);
        if let Some((_, screen)) = &terminal {
            take_terminal(screen);
        }
        attack(control, victim)
    };
    if control.mortal_parent {
        let parent = sys::fork(|| {
            let child = sys::fork(attacker).unwrap();
            wait(child).exit_status().unwrap_or(1)
        });
        let parent = parent.unwrap();
        seen.victim = end(wait(parent));
        // The attacker is ours now, unless its parent reaped it with its last breath.
        if let Ok(Some((_, status))) = rustix::process::wait(WaitOptions::empty()) {
            seen.end = end(status);
        }
    } else {
        let pid = sys::fork(attacker).unwrap();
        if control.poked {
            poked(pid, poke, &printed);
        }
        let options = WaitOptions::UNTRACED;
        let (_, status) = waitpid(Pid::from_raw(pid), options).unwrap().unwrap();
        seen.end = end(status);
    }
    seen.stdout = content(printed);
    seen.stderr = content(complained);
    if let Some((_, screen)) = &terminal {
        seen.typed = waiting(screen);
    }
    seen
}

/// Something to print to.
fn paper() -> File {
    descriptor(call!(libc::SYS_memfd_create, c"paper", 0)).unwrap().into()
}

fn content(mut paper: File) -> String {
    paper.rewind().unwrap();
    let mut bytes = Vec::new();
    paper.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The attacker itself.
fn attack(control: &Control, victim: Option<i32>) -> i32 {
    watch(&control.watched);
    let victim = victim.map_or_else(String::new, |victim| victim.to_string());
    let attack: Vec<String> =
        control.attack.iter().map(|arg| arg.replace("{victim}", &victim)).collect();
    if control.second_user {
        call!(libc::SYS_setresgid, 1, 1, 1).unwrap();
        call!(libc::SYS_setresuid, 1, 1, 1).unwrap();
    }
    if let Some(program) = &control.program {
        let error = Command::new(program).arg("attack").args(&attack).exec();
        panic!("{}: {error}", program.display());
    }
    if control.confined_to_scene {
        call!(libc::SYS_chroot, &text(&control.scene)).unwrap();
    }
    crate::attack::perform(&attack);
    io::stdout().flush().unwrap();
    0
}

/// Has a filter answer these calls, so that it is seen that they are made.
fn watch(calls: &[String]) {
    use seccompiler::{SeccompAction, SeccompFilter, TargetArch, apply_filter};
    if calls.is_empty() {
        return;
    }
    let rules: BTreeMap<i64, Vec<seccompiler::SeccompRule>> =
        calls.iter().map(|name| (number(name), Vec::new())).collect();
    let arch = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    let mark = SeccompAction::Errno(libc::EHWPOISON.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, mark, arch).unwrap();
    apply_filter(&seccompiler::BpfProgram::try_from(filter).unwrap()).unwrap();
}

fn number(name: &str) -> i64 {
    match name {
        "acct" => libc::SYS_acct,
        "delete_module" => libc::SYS_delete_module,
        "finit_module" => libc::SYS_finit_module,
        "init_module" => libc::SYS_init_module,
        "kexec_file_load" => libc::SYS_kexec_file_load,
        "kexec_load" => libc::SYS_kexec_load,
        "mknodat" => libc::SYS_mknodat,
        "setrlimit" => libc::SYS_setrlimit,
        "swapoff" => libc::SYS_swapoff,
        "syslog" => libc::SYS_syslog,
        "vhangup" => libc::SYS_vhangup,
        #[cfg(target_arch = "x86_64")]
        "iopl" => libc::SYS_iopl,
        #[cfg(target_arch = "x86_64")]
        "ioperm" => libc::SYS_ioperm,
        #[cfg(target_arch = "x86_64")]
        "x32 getpid" => 0x4000_0000 + libc::SYS_getpid,
        #[cfg(target_arch = "x86_64")]
        "x32 ptrace" => 0x4000_0000 + 521,
        #[cfg(target_arch = "x86_64")]
        "x32 unshare" => 0x4000_0000 + libc::SYS_unshare,
        _ => panic!("`{name}` is not watched anywhere yet"),
    }
}

/// Makes a terminal this process's own, and its input and error stream.
pub(crate) fn take_terminal(screen: &File) {
    call!(libc::SYS_setsid).unwrap();
    call!(libc::SYS_ioctl, screen.as_raw_fd(), libc::TIOCSCTTY, 0).unwrap();
    sys::redirect(screen, 0);
    sys::redirect(screen, 2);
}

/// What was typed into a terminal and not read.
pub(crate) fn waiting(screen: &File) -> String {
    let mut count = [0_u8; 4];
    call!(libc::SYS_ioctl, screen.as_raw_fd(), libc::FIONREAD, &mut count).unwrap();
    let mut typed = vec![0; usize::try_from(u32::from_ne_bytes(count)).unwrap()];
    if !typed.is_empty() {
        let mut screen = screen;
        let length = screen.read(&mut typed).unwrap();
        typed.truncate(length);
    }
    String::from_utf8_lossy(&typed).into_owned()
}

/// Asks the attacker to end in every way but one, then whether it is still there.
fn poked(pid: i32, mut poke: io::PipeWriter, printed: &File) {
    // It says that it is ready once it ignores the signals.
    while printed.metadata().unwrap().len() == 0 {
        std::thread::yield_now();
    }
    let pid = Pid::from_raw(pid).unwrap();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        rustix::process::kill_process(pid, signal).unwrap();
    }
    poke.write_all(b"x").unwrap();
}

/// What became of a process that an attack was to kill.
fn fate(pid: i32) -> String {
    // If the attack did not, this ends it, by another signal.
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    end(wait(pid))
}

fn end(status: WaitStatus) -> String {
    if let Some(code) = status.exit_status() {
        format!("exited with code {code}")
    } else if let Some(signal) = status.terminating_signal() {
        format!("ended by signal {signal}")
    } else {
        "stopped".to_owned()
    }
}

fn wait(pid: i32) -> WaitStatus {
    waitpid(Pid::from_raw(pid), WaitOptions::empty()).unwrap().unwrap().1
}
