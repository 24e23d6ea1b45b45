//! What tests run as the first process of a sandbox, or as another process that talks to a kernel. Never shipped.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(ipc), Some(socket)) if ipc == "ipc" => match relay(socket.as_ref()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        _ => fluffy_sandbox::sandbox_init(&[]),
    }
}

/// Sends standard input to a socket and gives out what is answered until the other side hangs up.
fn relay(socket: &std::path::Path) -> io::Result<()> {
    let mut socket = UnixStream::connect(socket)?;
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input)?;
    // Whoever is hung up on at once cannot say it all, and is still told why.
    let _ = socket.write_all(&input);
    let _ = socket.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    io::stdout().write_all(&answer)
}
