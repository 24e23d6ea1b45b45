//! The server as its owner sees it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use fluffy_base::{IdSource, Message, SystemIds};

use super::line::{Limits, Shared};
use super::peer::Peer;
use super::socket::Listener;
use super::switchboard::Switchboard;

/// What clients talk to. Called on the server's one thread: every method returns at once and never blocks. For one
/// connection `joined` comes first and `left` last; a client that connects again has left before it joins.
pub trait Service: Send + Sync {
    /// A client has shaken hands.
    fn joined(&self, peer: &Peer);

    /// A client said something other than `hello` and `health.ping`.
    fn received(&self, peer: &Peer, message: Message);

    /// A client is gone or was hung up on.
    fn left(&self, peer: &Peer);
}

/// What peers may cost.
#[derive(Clone)]
pub struct ServerOptions {
    /// One more user who may connect, besides the one the server runs as.
    pub also: Option<u32>,
    /// The largest frame before the handshake, in bytes.
    pub first_frame: usize,
    /// The largest frame after it.
    pub frame: usize,
    /// How many connections there may be. Beyond it, who has not shaken hands goes first.
    pub connections: usize,
    /// How many bytes of large unfinished frames there may be in all; whoever has most of them goes.
    pub unfinished: usize,
    /// How many bytes may wait for one peer.
    pub queue: usize,
    /// How many bytes may wait for all peers before everyone's share becomes small.
    pub all_queues: usize,
    /// How long a peer may take to shake hands.
    pub handshake: Duration,
    /// How long a peer may take to finish a frame.
    pub patience: Duration,
    /// How long a peer may leave unread what waits for it, as long as its queue has room.
    pub unread: Duration,
    /// Where ids and tokens come from.
    pub ids: Arc<dyn IdSource>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            also: None,
            first_frame: 64 << 10,
            frame: 32 << 20,
            connections: 1_024,
            unfinished: 128 << 20,
            queue: 16 << 20,
            all_queues: 128 << 20,
            handshake: Duration::from_secs(5),
            patience: Duration::from_secs(30),
            unread: Duration::from_secs(30),
            ids: Arc::new(SystemIds),
        }
    }
}

/// A running server. Dropping it stops it.
pub struct Server {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves those who connect to `listener`, which is what [`super::listen`] gives or any listening socket.
    pub fn start(
        listener: impl Into<Listener>,
        service: Arc<dyn Service>,
        options: ServerOptions,
    ) -> io::Result<Self> {
        let limits =
            Limits { frame: options.frame, queue: options.queue, all_queues: options.all_queues };
        let shared = Arc::new(Shared::new(limits)?);
        let switchboard = Switchboard::new(listener.into(), service, options, Arc::clone(&shared))?;
        let thread = std::thread::Builder::new()
            .name("ipc-server".to_owned())
            .spawn(move || switchboard.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// How many clients have shaken hands and are still there.
    pub fn peers(&self) -> usize {
        self.shared.peers.load(Ordering::Relaxed)
    }

    /// Tells everyone that it is over, hangs up and ends the thread. Nobody is waited for longer than a second.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.note(|notes| notes.stop = true);
        if let Some(thread) = self.thread.take()
            // A service that drops its own server would wait for itself.
            && thread.thread().id() != std::thread::current().id()
        {
            let _panicked = thread.join();
        }
    }
}
