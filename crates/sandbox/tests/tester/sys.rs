//! System calls as an attacker makes them: by number, past every wrapper that would refuse first.
#![expect(
    unsafe_code,
    reason = "attacks are raw system calls; no safe wrapper offers most of them"
)]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// One argument of a system call.
pub(crate) enum Arg<'a> {
    /// A number.
    Number(i64),
    /// A text.
    Text(&'a CStr),
    /// Bytes that the kernel reads.
    Bytes(&'a [u8]),
    /// Bytes that the kernel may write.
    Into(&'a mut [u8]),
    /// No address.
    Null,
    /// An address that nothing lies at.
    Bad,
}

impl From<i32> for Arg<'_> {
    fn from(number: i32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u32> for Arg<'_> {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<i64> for Arg<'_> {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<u64> for Arg<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number.cast_signed())
    }
}

impl<'a> From<&'a CStr> for Arg<'a> {
    fn from(text: &'a CStr) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a CString> for Arg<'a> {
    fn from(text: &'a CString) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8]> for Arg<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Arg<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a mut [u8]> for Arg<'a> {
    fn from(bytes: &'a mut [u8]) -> Self {
        Self::Into(bytes)
    }
}

impl<'a, const N: usize> From<&'a mut [u8; N]> for Arg<'a> {
    fn from(bytes: &'a mut [u8; N]) -> Self {
        Self::Into(bytes)
    }
}

impl Arg<'_> {
    fn word(&mut self) -> i64 {
        match self {
            Self::Number(number) => *number,
            Self::Text(text) => text.as_ptr() as i64,
            Self::Bytes(bytes) => bytes.as_ptr() as i64,
            Self::Into(bytes) => bytes.as_mut_ptr() as i64,
            Self::Null => 0,
            Self::Bad => 8,
        }
    }
}

/// Makes a system call; arguments that are left out are 0.
macro_rules! call {
    ($number:expr $(, $arg:expr)* $(,)?) => {
        $crate::sys::raw($number, &mut [$($crate::sys::Arg::from($arg)),*])
    };
}
pub(crate) use call;

/// The system call behind `call!`.
pub(crate) fn raw(number: i64, args: &mut [Arg<'_>]) -> io::Result<i64> {
    let mut words = [0_i64; 6];
    for (word, arg) in words.iter_mut().zip(args) {
        *word = arg.word();
    }
    let [a, b, c, d, e, f] = words;
    // SAFETY: the kernel writes only to buffers that an argument, or a structure an argument points to,
    // names, and all of them outlive the call. Calls that change the process itself (fork, clone) have
    // functions of their own below.
    let answer = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// A path as the kernel takes it.
pub(crate) fn text(path: impl AsRef<Path>) -> CString {
    CString::new(path.as_ref().as_os_str().as_bytes()).expect("paths of tests hold no NUL")
}

/// A descriptor that a system call answered.
pub(crate) fn descriptor(answer: io::Result<i64>) -> io::Result<OwnedFd> {
    let number = i32::try_from(answer?).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor for us, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A process that runs `child` and ends with what it returns.
pub(crate) fn fork(child: impl FnOnce() -> i32) -> io::Result<i32> {
    // SAFETY: this program has one thread, so the child may do whatever the parent may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let code = child();
            // SAFETY: ends the child without running what the parent registered.
            unsafe { libc::_exit(code) }
        }
        pid => Ok(pid),
    }
}

/// A process made with these flags, which ends at once.
pub(crate) fn clone(flags: u64) -> io::Result<i64> {
    // SAFETY: without a stack and without shared memory this is a fork; the child ends at once.
    let answer = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    ended_if_child(answer)
}

/// The same by the newer call.
pub(crate) fn clone3(flags: u64) -> io::Result<i64> {
    let mut words = [0_u64; 11];
    words[0] = flags;
    words[4] = libc::SIGCHLD as u64;
    // SAFETY: without a stack and without shared memory this is a fork; the child ends at once.
    let answer =
        unsafe { libc::syscall(libc::SYS_clone3, words.as_ptr(), std::mem::size_of_val(&words)) };
    ended_if_child(answer)
}

fn ended_if_child(answer: i64) -> io::Result<i64> {
    match answer {
        // SAFETY: ends the child without running what the parent registered.
        0 => unsafe { libc::_exit(0) },
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(pid),
    }
}

/// Asks for the process id through the 32-bit gate, which filters for 64 bits do not see.
#[cfg(target_arch = "x86_64")]
pub(crate) fn pid_by_the_old_gate() -> i64 {
    let mut answer: i64 = 20;
    // SAFETY: getpid has number 20 there, takes nothing and writes nothing; the gate may clobber the
    // upper registers.
    unsafe {
        std::arch::asm!("int 0x80", inout("rax") answer, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    answer
}

/// Makes a stream of this process lead somewhere else.
pub(crate) fn redirect(to: &impl std::os::fd::AsRawFd, stream: i32) {
    call!(libc::SYS_dup3, to.as_raw_fd(), stream, 0).expect("streams can be redirected");
}

/// Waits for a signal.
pub(crate) fn pause() {
    // SAFETY: takes nothing and touches no memory.
    let _interrupted = unsafe { libc::pause() };
}

/// From now on this signal does nothing.
pub(crate) fn ignore(signal: i32) {
    // SAFETY: no handler is installed, only the fixed action `ignore`.
    let _before = unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Whether a signal is ignored.
pub(crate) fn is_ignored(signal: i32) -> bool {
    // SAFETY: the structure is plain data, and the call only fills it.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut now) == 0
            && now.sa_sigaction == libc::SIG_IGN
    }
}

/// A soft and a hard limit.
pub(crate) fn limit(resource: u32) -> (u64, u64) {
    let mut words = [0_u8; 16];
    call!(libc::SYS_prlimit64, 0, resource, Arg::Null, &mut words).expect("limits can be read");
    let (soft, hard) = words.split_at(8);
    (number(soft), number(hard))
}

/// Sets a soft and a hard limit.
pub(crate) fn set_limit(resource: u32, soft: u64, hard: u64) -> io::Result<i64> {
    let mut words = [0_u8; 16];
    words[..8].copy_from_slice(&soft.to_ne_bytes());
    words[8..].copy_from_slice(&hard.to_ne_bytes());
    call!(libc::SYS_prlimit64, 0, resource, &words, Arg::Null)
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().expect("eight bytes"))
}

/// A terminal of our own: the side that types, and the side that programs see.
pub(crate) fn terminal() -> io::Result<(File, File)> {
    const TIOCGPTPEER: u64 = 0x5441;
    let typist = File::options().read(true).write(true).open("/dev/ptmx")?;
    let fd = typist.as_raw_fd();
    call!(libc::SYS_ioctl, fd, libc::TIOCSPTLCK, &0_i32.to_ne_bytes())?;
    let flags = libc::O_RDWR | libc::O_NOCTTY;
    let screen = descriptor(call!(libc::SYS_ioctl, fd, TIOCGPTPEER, flags))?;
    Ok((typist, File::from(screen)))
}

/// The name of an error, as manuals have it.
pub(crate) fn name(error: &io::Error) -> String {
    let Some(code) = error.raw_os_error() else { return format!("{:?}", error.kind()) };
    let known = NAMES.iter().find(|(known, _)| *known == code);
    known.map_or_else(|| format!("errno {code}"), |(_, name)| (*name).to_owned())
}

macro_rules! names {
    ($($name:ident)*) => { &[$((libc::$name, stringify!($name))),*] };
}

const NAMES: &[(i32, &str)] = names!(
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST EXDEV
    ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC EROFS EMLINK EPIPE ENOSYS
    ELOOP ENODATA EPROTO EOVERFLOW EUSERS ENOTSOCK EDESTADDRREQ EPROTONOSUPPORT ESOCKTNOSUPPORT
    EOPNOTSUPP EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH ECONNREFUSED ETIMEDOUT
    EHOSTUNREACH EINPROGRESS ENOKEY EDQUOT EHWPOISON ENAMETOOLONG EPROTOTYPE ENOTEMPTY
);
