//! Parses large frames beside the server's thread, which would be away for too long otherwise.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use fluffy_base::Message;

use super::line::Shared;

/// A thread that parses what it is given, one after the other; dropping it ends it.
///
/// What waits is bounded by whoever gives it: one frame for each connection, and all of them within the limit on
/// unfinished frames.
pub(super) struct Parser {
    frames: Option<Sender<(u64, Vec<u8>)>>,
    thread: Option<JoinHandle<()>>,
}

impl Parser {
    pub(super) fn start(shared: Arc<Shared>) -> io::Result<Self> {
        let (frames, arrived) = channel::<(u64, Vec<u8>)>();
        let parse = move || {
            for (connection, bytes) in arrived {
                let message = Message::parse(&bytes);
                drop(bytes);
                shared.note(|notes| notes.parsed.push((connection, message)));
            }
        };
        let thread = std::thread::Builder::new().name("ipc-parser".to_owned()).spawn(parse)?;
        Ok(Self { frames: Some(frames), thread: Some(thread) })
    }

    /// Parses a frame; what it is arrives as a note.
    pub(super) fn parse(&self, connection: u64, frame: Vec<u8>) {
        if let Some(frames) = &self.frames {
            // The thread lives as long as this value.
            let _gone = frames.send((connection, frame));
        }
    }
}

impl Drop for Parser {
    fn drop(&mut self) {
        self.frames = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}
