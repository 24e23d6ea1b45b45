//! The first process of a sandbox: builds it, starts the job, and reaps what the job leaves.
//!
//! It is number 1 in the sandbox's process namespace: when it ends, the operating system kills everything in
//! it. It ends when the job has, and when the kernel has.
//!
//! **Invariant.** The job cannot look into this process or send it a signal that it would obey: it keeps
//! capabilities that the job lacks and is not dumpable.

use std::fs::File;
use std::io::{self, Read as _};
use std::net::TcpListener;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{
    DumpableBehavior, Gid, Pid, Uid, WaitOptions, WaitStatus, set_dumpable_behavior, wait,
};
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};

use super::control::{self, Message};
use super::init::{Broken, Gear, INSIDE, Step, report};
use super::mounts::{self, Taken};
use super::notice::Notice;
use super::payload::{self, Guest};
use super::spec::{Inner, Spec};
use super::sys::{self, Side};
use super::system::{outside_id, reserved};

/// Where the proxy is found inside, by address and by path.
pub(crate) const PROXY_PORT: u16 = 3128;
pub(crate) const PROXY_SOCKET: &str = "run/fluffy/proxy.sock";

/// The first process's whole life.
pub(super) fn run(
    socket: &UnixStream,
    spec: &Spec,
    gear: Gear,
    taken: Option<Taken>,
    guests: &[Guest],
) -> ExitCode {
    let job = || payload::run(socket, &spec.inner, gear.stdio, guests);
    match set_up(socket, spec, taken).and_then(|ended| start(socket, job, &ended, Leave::AtOnce)) {
        Ok(code) => code,
        Err(broken) => report(socket, &broken),
    }
}

/// The same in a sandbox that somebody else built, who made this process its first. The kernel learns what was used
/// before everything is given back: this process stays until it says so.
pub(super) fn run_in_built(
    socket: &UnixStream,
    inner: &Inner,
    stdio: [OwnedFd; 3],
    guests: &[Guest],
) -> ExitCode {
    let job = || payload::run(socket, inner, stdio, guests);
    match settle(socket, inner).and_then(|ended| start(socket, job, &ended, Leave::WhenTold)) {
        Ok(code) => code,
        Err(broken) => report(socket, &broken),
    }
}

/// When the first process ends after the job has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leave {
    AtOnce,
    /// When the kernel closes its end of the socket.
    WhenTold,
}

/// Makes sure that this is a sandbox, and opens the proxy's door in its network.
fn settle(socket: &UnixStream, inner: &Inner) -> Result<OwnedFd, Broken> {
    let refuse = |step: &str| {
        Err(Broken { step: step.to_owned(), error: io::Error::from_raw_os_error(libc::EPERM) })
    };
    if std::process::id() != 1 {
        return refuse("checking the first process: it is another one");
    }
    // In a namespace of an engine without rights it may be root by name; who it is outside, the kernel sees.
    let users = std::fs::read_to_string("/proc/self/uid_map").step("reading who the user is")?;
    let is_root = rustix::process::geteuid().is_root();
    if is_root && outside_id(&users, reserved().uid) == Some(reserved().uid) {
        return refuse("checking the user: it would be the host's root");
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable).step("hiding the first process")?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let mut fds: Vec<OwnedFd> = Vec::new();
    if inner.proxy {
        let inet = TcpListener::bind(("127.0.0.1", PROXY_PORT)).step("listening for the proxy")?;
        fds.push(inet.into());
    }
    control::send(socket, &Message::Ready { volume: false }, &fds)
        .step("reporting that the sandbox stands")?;
    sys::children_ended().step("listening for children")
}

/// Builds everything that the job will see. Gives a descriptor that tells of children that ended.
fn set_up(socket: &UnixStream, spec: &Spec, taken: Option<Taken>) -> Result<OwnedFd, Broken> {
    let (uid, gid) = (Uid::from_raw(INSIDE), Gid::from_raw(INSIDE));
    set_thread_res_gid(gid, gid, gid).step("becoming the sandbox's group")?;
    set_thread_res_uid(uid, uid, uid).step("becoming the sandbox's user")?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).step("hiding the first process")?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    rustix::system::sethostname(b"sandbox").step("setting the host name")?;
    loopback().step("switching the loopback device on")?;
    let taken = match taken {
        Some(taken) => taken,
        None => Taken::take(spec, None)?,
    };
    let (built, listeners) = mounts::build(spec, taken, || listeners(spec.inner.proxy))?;
    let ready = Message::Ready { volume: built.volume.is_some() };
    let fds: Vec<OwnedFd> = built.volume.into_iter().chain(listeners).collect();
    control::send(socket, &ready, &fds).step("reporting that the sandbox stands")?;
    sys::children_ended().step("listening for children")
}

fn loopback() -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sys::loopback_up(socket.as_fd())
}

/// The proxy's two doors, made inside and answered outside.
fn listeners(wanted: bool) -> Result<Vec<OwnedFd>, Broken> {
    if !wanted {
        return Ok(Vec::new());
    }
    let step = "listening for the proxy";
    let inet = TcpListener::bind(("127.0.0.1", PROXY_PORT)).step(step)?;
    let unix = UnixListener::bind(PROXY_SOCKET).step(step)?;
    rustix::fs::chmod(PROXY_SOCKET, rustix::fs::Mode::from_raw_mode(0o666)).step(step)?;
    Ok(vec![inet.into(), unix.into()])
}

fn start(
    socket: &UnixStream,
    job: impl FnOnce() -> ExitCode,
    ended: &OwnedFd,
    leave: Leave,
) -> Result<ExitCode, Broken> {
    match sys::fork().step("starting the job")? {
        Side::Child(()) => Ok(job()),
        Side::Parent(pid) => {
            // The streams are held in it, and end with the job, not with this process.
            drop(job);
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            let pid = pid.ok_or(io::ErrorKind::InvalidData).step("starting the job")?;
            Ok(reap(socket, pid, ended, leave))
        }
    }
}

/// Reaps children until the job ends, passing on signals that the kernel asks for.
fn reap(socket: &UnixStream, job: Pid, ended: &OwnedFd, leave: Leave) -> ExitCode {
    let mut notice = Notice::default();
    loop {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid == job {
                tell_end(socket, status);
                while leave == Leave::WhenTold
                    && matches!((&*socket).read(&mut [0]), Ok(read) if read > 0)
                {}
                return ExitCode::SUCCESS;
            }
        }
        if notice.is_over() {
            // If the kernel is gone, the next look at its socket says so.
            let _gone = control::send(socket, &Message::Quiet, &[]);
        }
        let mut doors = [PollFd::new(socket, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
        if poll(&mut doors, notice.patience().as_ref()).is_err() {
            continue;
        }
        let [kernel, children] = doors;
        if !children.revents().is_empty() {
            forget_signals(ended);
        }
        if !kernel.revents().is_empty() {
            let mut signal = [0];
            match (&*socket).read(&mut signal) {
                Ok(1) => match signal[0] {
                    control::PAUSE_SIGNAL => notice.give(),
                    control::RESUME_SIGNAL => notice.take_back(),
                    signal => sys::signal_all(signal.into()),
                },
                // The kernel is gone: so is the sandbox, with the end of this process.
                _ => return ExitCode::FAILURE,
            }
        }
    }
}

/// Reads the notices of ended children away; `wait` tells who they are.
fn forget_signals(ended: &OwnedFd) {
    let Ok(copy) = ended.try_clone() else { return };
    let mut file = File::from(copy);
    let mut notice = [0; 128];
    while matches!(file.read(&mut notice), Ok(read) if read > 0) {}
}

fn tell_end(socket: &UnixStream, status: WaitStatus) {
    let usage = std::fs::read_to_string("/proc/self/stat").ok().and_then(|stat| children_us(&stat));
    let message = Message::Ended {
        code: status.exit_status(),
        signal: status.terminating_signal(),
        cpu_us: usage.unwrap_or(0),
    };
    // If the kernel is gone, nobody wants to know.
    let _gone = control::send(socket, &message, &[]);
}

/// The processor time of all reaped children, out of `/proc/self/stat`.
fn children_us(stat: &str) -> Option<u64> {
    // The name may hold anything, but it ends with the last parenthesis.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(13);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    // A hundred ticks a second on every Linux.
    (user + system).checked_mul(10_000)
}
