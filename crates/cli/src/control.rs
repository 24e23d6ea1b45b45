//! How another terminal halts a running kernel: one frame to its socket, one frame back.
//!
//! The socket is in a directory that only the user can enter, and the other end must be the same
//! user or root.

use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fluffy_base::{FrameDecoder, encode_frame};
use fluffy_kernel::Kernel;
use serde::{Deserialize, Serialize};

/// A halt is a short sentence.
const FRAME_LIMIT: usize = 64 << 10;
/// Who does not speak for so long is hung up on.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is asked of a running kernel.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HaltRequest {
    halt: String,
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HaltAnswer {
    /// Number of the halt's entry.
    pub(crate) entry: Option<u64>,
    /// Why there is none.
    pub(crate) error: Option<String>,
}

/// Listens for halts until the process ends. Errors concern one peer and never the kernel.
pub(crate) fn listen(socket: &Path, kernel: &Arc<Kernel>) -> io::Result<()> {
    remove_stale(socket)?;
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600))?;
    let kernel = Arc::downgrade(kernel);
    std::thread::Builder::new().name("control".to_owned()).spawn(move || {
        for peer in listener.incoming() {
            let Some(kernel) = kernel.upgrade() else { return };
            // A peer that breaks off has no answer to wait for.
            let _ = peer.and_then(|peer| serve(peer, &kernel));
        }
    })?;
    Ok(())
}

/// Asks the kernel behind a socket to halt. `None` where nobody listens.
pub(crate) fn ask_to_halt(socket: &Path, reason: &str) -> io::Result<Option<HaltAnswer>> {
    let mut stream = match UnixStream::connect(socket) {
        Ok(stream) => stream,
        Err(error) => {
            return match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(error),
            };
        }
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    send(&mut stream, &HaltRequest { halt: reason.to_owned() })?;
    receive(&mut stream).map(Some)
}

/// A socket that a killed kernel left behind. The ledger's lock, which we hold, says it is stale.
#[expect(clippy::disallowed_methods, reason = "the one place that removes a stale socket")]
fn remove_stale(socket: &Path) -> io::Result<()> {
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn serve(mut peer: UnixStream, kernel: &Kernel) -> io::Result<()> {
    peer.set_read_timeout(Some(PATIENCE))?;
    peer.set_write_timeout(Some(PATIENCE))?;
    let who = rustix::net::sockopt::socket_peercred(&peer)?;
    if who.uid != rustix::process::geteuid() && !who.uid.is_root() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let request: HaltRequest = receive(&mut peer)?;
    let answer = match kernel.halt(&request.halt) {
        Ok(appended) => HaltAnswer { entry: Some(appended.seq), error: None },
        Err(error) => HaltAnswer { entry: None, error: Some(error.to_string()) },
    };
    send(&mut peer, &answer)
}

fn send(stream: &mut UnixStream, message: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let frame = encode_frame(&text, FRAME_LIMIT).map_err(io::Error::other)?;
    stream.write_all(&frame)
}

fn receive<T: for<'a> Deserialize<'a>>(stream: &mut UnixStream) -> io::Result<T> {
    let mut decoder = FrameDecoder::new(FRAME_LIMIT);
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer)?;
        let mut input = buffer.get(..read).unwrap_or_default();
        if let Some(frame) = decoder.next_frame(&mut input).map_err(io::Error::other)? {
            return Ok(serde_json::from_slice(&frame)?);
        }
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
