//! A key as a person gives it: typed where nobody sees it, or piped.

use std::io::{self, BufRead, IsTerminal as _, Read as _, Write as _};

use fluffy_base::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::{KeysError, MAX_KEY};

/// Reads a key from the standard input. At a terminal it is asked for, and what is typed is not shown.
pub(crate) fn read_key(prompt: &str) -> Result<Secret, KeysError> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        let mut text = String::with_capacity(MAX_KEY + 64);
        stdin
            .lock()
            .take(MAX_KEY as u64 + 16)
            .read_to_string(&mut text)
            .map_err(KeysError::Input)?;
        return super::checked(Secret::new(text));
    }
    let quiet = Quiet::begin()?;
    write!(io::stderr(), "{prompt}").map_err(KeysError::Input)?;
    io::stderr().flush().map_err(KeysError::Input)?;
    let line = line(&mut stdin.lock());
    drop(quiet);
    writeln!(io::stderr()).map_err(KeysError::Input)?;
    super::checked(Secret::new(line?))
}

/// A line typed by hand, key by key: Ctrl-C and Ctrl-D break it off, Ctrl-U begins again.
fn line(input: &mut impl BufRead) -> Result<String, KeysError> {
    let mut line = Vec::with_capacity(MAX_KEY + 64);
    let mut bytes = input.bytes();
    while let Some(byte) = bytes.next().transpose().map_err(KeysError::Input)? {
        match byte {
            b'\r' | b'\n' => return String::from_utf8(line).map_err(|_| KeysError::Character),
            3 | 4 => return Err(KeysError::Cancelled),
            8 | 127 => drop(line.pop()),
            21 => line.clear(),
            _ if line.len() > MAX_KEY => return Err(KeysError::Long),
            _ => line.push(byte),
        }
    }
    Err(KeysError::Cancelled)
}

/// A terminal that shows nothing and sends no signals, until this is dropped: a signal would leave it so.
struct Quiet(Termios);

impl Quiet {
    fn begin() -> Result<Self, KeysError> {
        let failed = |error: rustix::io::Errno| KeysError::Input(error.into());
        let before = tcgetattr(io::stdin()).map_err(failed)?;
        let mut quiet = before.clone();
        quiet.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        // Now, and without throwing away what was typed already.
        tcsetattr(io::stdin(), OptionalActions::Now, &quiet).map_err(failed)?;
        Ok(Self(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // What can be done about a terminal that is gone?
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_can_be_corrected_and_broken_off() {
        let typed = |mut text: &[u8]| line(&mut text).ok();
        assert_eq!(typed(b"sk-1\n").as_deref(), Some("sk-1"));
        assert_eq!(typed(b"sk-x\x7f1\r").as_deref(), Some("sk-1"));
        assert_eq!(typed(b"wrong\x15sk-1\nmore").as_deref(), Some("sk-1"));
        for broken_off in [&b"sk-1\x03\n"[..], b"sk-1\x04", b"sk-1", b""] {
            assert_eq!(typed(broken_off), None);
        }
    }
}
