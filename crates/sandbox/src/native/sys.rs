//! The system calls that have no safe wrapper.
//!
//! They are made by `sandbox-init`, which has one thread: that is why a process may go on after
//! [`clone_first`] and [`fork`] without executing another program.
#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

/// A process that was just split in two.
pub(super) enum Side<P, C = ()> {
    /// The one that split, with what it knows of the other.
    Parent(P),
    /// The new one, with what it is to do.
    Child(C),
}

/// The child that [`clone_first`] made.
pub(super) struct First {
    /// Its number as its parent's parent sees it.
    pub(super) pid: u32,
    /// A handle on it.
    pub(super) pidfd: OwnedFd,
}

/// The namespaces of every sandbox.
const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Splits this process; the child is the first process of all new namespaces, born into a control group if one is
/// given. Its parent is this process's parent, which waits for it: this process only prepares it.
pub(super) fn clone_first(group: Option<BorrowedFd<'_>>) -> io::Result<Side<First>> {
    /// As the kernel's headers have it; the C library has it as a number that does not fit its own type.
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    let mut pidfd: RawFd = -1;
    // The flags are small and positive.
    let flags = u64::from((NAMESPACES | libc::CLONE_PARENT | libc::CLONE_PIDFD).unsigned_abs());
    let mut args = libc::clone_args {
        flags: flags | if group.is_some() { CLONE_INTO_CGROUP } else { 0 },
        pidfd: (&raw mut pidfd) as u64,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: 0,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: group.map_or(0, |group| u64::from(group.as_raw_fd().unsigned_abs())),
    };
    // SAFETY: without CLONE_VM the child gets a copy of the memory, as with fork(2); this process has one
    // thread, so no lock is held by a thread that the child lacks. `args` and `pidfd` outlive the call.
    let answer =
        unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<libc::clone_args>()) };
    match u32::try_from(answer) {
        Err(_) => Err(io::Error::last_os_error()),
        Ok(0) => Ok(Side::Child(())),
        // SAFETY: the kernel stored a fresh descriptor there, which nobody else owns.
        Ok(pid) => Ok(Side::Parent(First { pid, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })),
    }
}

/// Splits this process.
pub(super) fn fork() -> io::Result<Side<u32>> {
    // SAFETY: this process has one thread, so the child may do whatever this one may.
    match u32::try_from(unsafe { libc::fork() }) {
        Err(_) => Err(io::Error::last_os_error()),
        Ok(0) => Ok(Side::Child(())),
        Ok(pid) => Ok(Side::Parent(pid)),
    }
}

/// Moves this process into namespaces of its own.
pub(super) fn leave(namespaces: libc::c_int) -> io::Result<()> {
    // SAFETY: new namespaces change no descriptor and no memory of this process.
    done(unsafe { libc::unshare(namespaces) }.into())
}

/// Ends a process that was split off and has nothing to clean up.
pub(super) fn end(code: libc::c_int) -> ! {
    // SAFETY: takes a number and does not return; what the other side registered is not run here.
    unsafe { libc::_exit(code) }
}

/// What a mount is made: flags to set, and the user namespace that translates its owners.
pub(super) fn set_mount(
    tree: BorrowedFd<'_>,
    set: u64,
    owners: Option<BorrowedFd<'_>>,
    deep: bool,
) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: set | if owners.is_some() { libc::MOUNT_ATTR_IDMAP } else { 0 },
        attr_clr: 0,
        propagation: 0,
        userns_fd: owners.map_or(0, |owners| u64::from(owners.as_raw_fd().unsigned_abs())),
    };
    set_attributes(tree, &attributes, deep)
}

/// What a mount is made: flags to set, and flags to clear.
pub(super) fn change_mount(
    tree: BorrowedFd<'_>,
    set: u64,
    clear: u64,
    deep: bool,
) -> io::Result<()> {
    let attributes =
        libc::mount_attr { attr_set: set, attr_clr: clear, propagation: 0, userns_fd: 0 };
    set_attributes(tree, &attributes, deep)
}

fn set_attributes(
    tree: BorrowedFd<'_>,
    attributes: &libc::mount_attr,
    deep: bool,
) -> io::Result<()> {
    let flags = libc::AT_EMPTY_PATH | if deep { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a string of ours, and `attributes` is as long as said and only read.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            std::ptr::from_ref(attributes),
            size_of::<libc::mount_attr>(),
        )
    };
    done(answer)
}

/// Makes every descriptor above the three standard ones close when a program is executed.
pub(super) fn close_on_exec() -> io::Result<()> {
    // SAFETY: only marks descriptors; nothing is closed here.
    done(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) })
}

/// Closes what this program inherited beside the three standard descriptors. Called first of all, while
/// nothing here owns a descriptor.
pub(super) fn close_inherited() -> io::Result<()> {
    // SAFETY: nothing has been opened yet, so no owner loses its descriptor.
    done(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) })
}

/// Closes what this program inherited beside the three standard descriptors and these. Called first of all, while
/// nothing here owns another descriptor.
pub(super) fn close_inherited_but(keep: &[RawFd]) -> io::Result<()> {
    let mut keep: Vec<u32> = keep.iter().filter_map(|fd| u32::try_from(*fd).ok()).collect();
    keep.sort_unstable();
    let mut first = 3;
    for fd in keep.into_iter().chain([u32::MAX]) {
        if first < fd {
            // SAFETY: nothing but what is kept has been opened yet, so no owner loses its descriptor.
            done(unsafe { libc::syscall(libc::SYS_close_range, first, fd.saturating_sub(1), 0) })?;
        }
        first = first.max(fd.saturating_add(1));
    }
    Ok(())
}

/// Switches the loopback device of this network namespace on.
pub(super) fn loopback_up(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: an ifreq of zeros is valid: an empty name and no flags.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes_with_nul()) {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    // SAFETY: SIOCGIFFLAGS and SIOCSIFFLAGS take an ifreq, which outlives the calls; writing a field of
    // the union is safe, and the first call wrote `ifru_flags`, which is what is read.
    unsafe {
        done(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request).into())?;
        // The flag is 1.
        request.ifr_ifru.ifru_flags |= 1;
        done(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw mut request).into())
    }
}

/// Blocks SIGCHLD and gives a descriptor that becomes readable when a child has ended.
pub(super) fn children_ended() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before it is used; the descriptor is fresh.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        done(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()).into())?;
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        done(fd.into())?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Puts every signal back to what a fresh program expects: none blocked, none ignored.
pub(super) fn fresh_signals() -> io::Result<()> {
    // SAFETY: the set is initialised before use; SIG_DFL is always a valid handler. Signals that cannot be
    // set (KILL, STOP, the two of the C library) answer an error, which is right to pass over.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        done(libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()).into())
    }
}

/// Sends a signal to every process of this namespace but the first.
pub(super) fn signal_all(signal: libc::c_int) {
    // SAFETY: takes numbers only. In a process namespace of its own, `-1` reaches nothing outside.
    unsafe { libc::kill(-1, signal) };
}

/// Takes all capabilities out of the bounding set.
pub(super) fn empty_bounding_set() -> io::Result<()> {
    for capability in 0..=63 {
        // What an engine took out already, nobody has the right to take out once more.
        // SAFETY: takes numbers only.
        match unsafe { libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0) } {
            0 => continue,
            1 => {}
            // Past the last one that this kernel has.
            _ => return Ok(()),
        }
        // SAFETY: takes numbers only.
        let answer = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        done(answer.into())?;
    }
    Ok(())
}

/// Becomes a program. Returns only if that fails.
pub(super) fn exec(program: &CStr, args: &[CString], env: &[CString]) -> io::Error {
    let ended = |texts: &[CString]| -> Vec<*const libc::c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (args, env) = (ended(args), ended(env));
    // SAFETY: both lists end with null and point to strings that outlive the call.
    unsafe { libc::execve(program.as_ptr(), args.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// Becomes a guest of this very program, which has the three standard descriptors and nothing else. Returns only if
/// the others cannot be closed, and then none of them is.
pub(super) fn end_as(guest: fn() -> u8) -> io::Error {
    // SAFETY: whoever owns one of these descriptors never runs again, because this process ends below.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
    if let Err(error) = done(closed) {
        return error;
    }
    // The code of a program that panicked.
    let code = std::panic::catch_unwind(guest).unwrap_or(101);
    // SAFETY: takes a number and does not return; nothing is left to be flushed.
    unsafe { libc::_exit(code.into()) }
}

fn done(answer: libc::c_long) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
