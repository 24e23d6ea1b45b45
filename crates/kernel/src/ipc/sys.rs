//! Who is at the other end of a socket: two socket options.
//!
//! `rustix` reads `SO_PEERCRED` into a number that must not be zero; it is zero for a process of another
//! process namespace. `SO_PEERPIDFD` it does not know.
#![expect(unsafe_code, reason = "two socket options without a sound safe wrapper")]

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

/// Number and owner of the process that connected, as of that moment. The number is 0 where this process's
/// namespace has none for it.
pub(super) fn peer_credentials(socket: impl AsFd) -> io::Result<(u32, u32)> {
    // SAFETY: `ucred` is three integers, for which every pattern of bits is a value.
    let credentials: libc::ucred = unsafe { option(socket, libc::SO_PEERCRED) }?;
    Ok((u32::try_from(credentials.pid).unwrap_or(0), credentials.uid))
}

/// A handle on the process that connected, which no later process of the same number can take the place of.
pub(super) fn peer_process(socket: impl AsFd) -> Result<OwnedFd, NoHandle> {
    // SAFETY: a descriptor is an integer, for which every pattern of bits is a value.
    match unsafe { option::<RawFd>(socket, libc::SO_PEERPIDFD) } {
        // SAFETY: the system made this descriptor for us just now; nobody else has it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
            Err(NoHandle::NoSuchOption)
        }
        Ok(_) | Err(_) => Err(NoHandle::Gone),
    }
}

/// Why there is no handle on a process.
pub(super) enum NoHandle {
    /// The system is older than Linux 6.5.
    NoSuchOption,
    /// The process is no more, or not to be had.
    Gone,
}

/// Reads a socket option of the size of `T`.
///
/// # Safety
///
/// Every pattern of bits must be a `T`.
unsafe fn option<T>(socket: impl AsFd, name: libc::c_int) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut size = libc::socklen_t::try_from(size_of::<T>()).map_err(io::Error::other)?;
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the system writes at most `size` bytes, which is what `value` has room for; both outlive the call.
    let answer = unsafe {
        libc::getsockopt(socket, libc::SOL_SOCKET, name, value.as_mut_ptr().cast(), &raw mut size)
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed above and written since; every pattern of bits is a `T`, as the caller promises.
    Ok(unsafe { value.assume_init() })
}
