//! What the kernel and the processes of a sandbox's set-up say to each other.
//!
//! Orders go to `sandbox-init` over the Unix socket that it has as its standard input. With each goes another
//! socket, over which the answer to that order comes: messages come out, and bytes go in, each a signal for every
//! process of the sandbox, or one of the two that tell of a pause. As long as that socket is open on the kernel's side, the sandbox lives: its first
//! process ends when the kernel does.
//!
//! **Invariant.** The job has neither socket: they are closed when the program is executed, or before a guest begins.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::spec::{Inner, Owner, Spec};

/// No more descriptors than this go with one message.
const MAX_FDS: usize = 16;

/// The sandbox is about to be paused: whoever handles `SIGTSTP` gets it, and time to save what it has to. No signal has
/// this number.
pub(crate) const PAUSE_SIGNAL: u8 = 128;

/// The pause is over: whoever was told of it gets `SIGCONT`.
pub(crate) const RESUME_SIGNAL: u8 = 129;

/// So long a pause is put off for those that have to save something.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// What `sandbox-init` is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Set a sandbox up.
    Sandbox(Box<Spec>),
    /// Run a job in the sandbox that stands around this process.
    Built(Box<Inner>),
    /// Make the namespace in which the host's root is this owner.
    Owners(Owner),
}

/// What comes out of a sandbox that is being set up or runs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// The namespace of owners, which comes along.
    Owners,
    /// The first process exists; its descriptor comes along.
    Cloned { pid: u32 },
    /// Everything is set up: with it come the volume's top directory and the proxy's listeners.
    Ready { volume: bool },
    /// A step failed; the job did not run.
    Failed { step: String, errno: i32 },
    /// The program could not be executed.
    NoProgram { errno: i32 },
    /// Whoever was told of a pause has saved what it had to, or had a second for it.
    Quiet,
    /// The job ended.
    Ended { code: Option<i32>, signal: Option<i32>, cpu_us: u64 },
}

/// What goes over these sockets: one value at a time, its length before it, descriptors with it.
pub(crate) trait Sent: Serialize + DeserializeOwned {
    /// The most bytes of one.
    const LIMIT: u32;
}

impl Sent for Order {
    /// What is longer is none: arguments and environment have limits of their own.
    const LIMIT: u32 = 64 << 20;
}

impl Sent for Message {
    const LIMIT: u32 = 4096;
}

/// Sends a value with its descriptors.
pub(crate) fn send<T: Sent>(socket: &UnixStream, value: &T, fds: &[OwnedFd]) -> io::Result<()> {
    let bytes = serde_json::to_vec(value)?;
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= T::LIMIT);
    let length = length.ok_or_else(|| io::Error::from(io::ErrorKind::ArgumentListTooLong))?;
    send_with(socket, &[&length.to_be_bytes()[..], &bytes].concat(), fds)
}

/// The next value with its descriptors; nothing when the other side is gone.
pub(crate) fn receive<T: Sent>(socket: &UnixStream) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut length = [0; 4];
    let (read, fds) = receive_with(socket, &mut length)?;
    if read == 0 {
        return Ok(None);
    }
    let (_, rest) = length.split_at_mut_checked(read).unwrap_or_default();
    (&*socket).read_exact(rest)?;
    let length = u32::from_be_bytes(length);
    if length > T::LIMIT {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    (&*socket).read_exact(&mut bytes)?;
    Ok(Some((serde_json::from_slice(&bytes)?, fds)))
}

fn send_with(socket: &UnixStream, bytes: &[u8], fds: &[OwnedFd]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::ErrorKind::ArgumentListTooLong.into());
    }
    let sent = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    let (_, rest) = bytes.split_at_checked(sent).unwrap_or_default();
    (&*socket).write_all(rest)
}

fn receive_with(socket: &UnixStream, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        let into = &mut [IoSliceMut::new(bytes)];
        match recvmsg(socket, into, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    if got.flags.contains(ReturnFlags::CTRUNC) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(list) = message {
            fds.extend(list);
        }
    }
    Ok((got.bytes, fds))
}
