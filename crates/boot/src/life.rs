//! One life of a kernel: its process, its log, its answer.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;
use std::{sync::mpsc, thread};

use crate::Boot;

const PING: &[u8] = br#"{"id":1,"type":"request","method":"health.ping","params":{}}"#;
const PONG: &[u8] = br#""pong":true"#;
/// How long a ping waits for its answer, and the next one at most for its turn.
const ANSWER_TIME: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// A running kernel. Dropped, it is ended.
pub(crate) struct Life {
    pub(crate) child: Child,
    /// Held open: its end tells the kernel that nobody watches over it any more.
    _stdin: Option<ChildStdin>,
    log: File,
}

impl Life {
    /// Starts the kernel in a process group of its own, which a terminal's signals do not reach.
    #[expect(clippy::disallowed_methods, reason = "the one place that starts the kernel")]
    pub(crate) fn begin(boot: &Boot) -> Result<Self, String> {
        let at = |path: &Path, error| format!("`{}`: {error}", path.display());
        let (log, out, err) = new_log(&boot.log).map_err(|error| at(&boot.log, error))?;
        let mut command = Command::new(&boot.program);
        command.args(&boot.arguments).stdin(Stdio::piped()).stdout(out).stderr(err);
        let spawned = command.process_group(0).spawn();
        let mut child = spawned.map_err(|error| at(&boot.program, error))?;
        // Taken, since `Child::wait` would close it.
        Ok(Self { _stdin: child.stdin.take(), child, log })
    }

    /// The last lines of its log: 20 at most, from the last 8 KiB.
    pub(crate) fn last_words(&self) -> String {
        let length = self.log.metadata().map_or(0, |log| log.len());
        let mut bytes = vec![0; 8 << 10];
        let read = self.log.read_at(&mut bytes, length.saturating_sub(8 << 10));
        bytes.truncate(read.unwrap_or(0));
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.trim_end().rmatch_indices('\n').nth(19);
        text.get(lines.map_or(0, |(end, _)| end + 1)..).unwrap_or_default().trim_end().to_owned()
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A new log, for its owner alone, thrice. What is there and not a plain file is an error, links too.
#[expect(clippy::disallowed_methods, reason = "the one place that moves the kernel's log")]
fn new_log(path: &Path) -> io::Result<(File, File, File)> {
    let attempt = || {
        if path.symlink_metadata().is_ok_and(|found| found.is_file()) {
            fs::rename(path, path.with_added_extension("1"))?;
        }
        OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)
    };
    // Again, where another bootstrap made or moved one in between.
    let log = attempt().or_else(|_| attempt()).or_else(|_| attempt())?;
    Ok((log.try_clone()?, log.try_clone()?, log))
}

/// Pings until there is an answer, or `over` is true after a ping that had none.
pub(crate) fn is_answered(socket: &Path, over: &mut dyn FnMut() -> bool) -> bool {
    let mut pause = Duration::from_millis(5);
    loop {
        let ((tell, told), path) = (mpsc::channel(), socket.to_owned());
        // A connection hangs where nobody accepts it. Then this thread does, until the listener ends.
        let _ = thread::Builder::new().spawn(move || tell.send(ping(&path)));
        let answered = matches!(told.recv_timeout(ANSWER_TIME), Ok(Ok(true)));
        if answered || over() {
            return answered;
        }
        thread::park_timeout(pause);
        // By a quarter, so that a quick kernel is noticed soon.
        pause = (pause + pause / 4).min(LONGEST_PAUSE);
    }
}

/// Frames are a length of four bytes, big-endian, and so many bytes.
fn ping(socket: &Path) -> io::Result<bool> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_TIME))?;
    stream.write_all(&[&(PING.len() as u32).to_be_bytes(), PING].concat())?;
    let (mut length, mut answer) = ([0; 4], Vec::new());
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length).min(64 << 10);
    stream.take(length.into()).read_to_end(&mut answer)?;
    Ok(answer.windows(PONG.len()).any(|part| part == PONG))
}
