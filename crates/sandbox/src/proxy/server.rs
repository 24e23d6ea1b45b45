//! The proxy of one sandbox: one thread that waits for all its sockets.
//!
//! Looking up a name cannot be done without waiting, so that each has a thread of its own for as long as it
//! takes, of which there are few. Such a thread opens no connection; it is the only thing that may outlive the
//! proxy, until the system's resolver gives up.
//!
//! **Invariant.** The proxy never waits for one client: whatever a client does, the others go on.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{SocketFlags, sockopt};

use super::allow::AllowList;
use super::connection::{Connection, Shared};
use super::gate::Gate;
use super::record::Sink;
use super::resolve::{Resolver, SystemResolver};
use super::upstream::Upstream;

/// How much is read at a time.
const BUFFER: usize = 64 * 1024;
/// The most clients that are leaving, beside those that are served.
const MOST_LEAVING: usize = 64;
/// The most clients that are taken in before the others are served again.
const MOST_ACCEPTED: usize = 64;
/// How long no client is taken in after the machine ran out of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(200);

/// A socket on which clients are waited for. It belongs to one sandbox, so that whoever comes is known.
#[derive(Debug)]
pub struct Listener(OwnedFd);

impl Listener {
    /// Takes a socket that listens, of TCP or of a Unix stream.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        if !sockopt::socket_acceptconn(&socket)? {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the socket does not listen"));
        }
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self(socket))
    }

    fn accept(&self) -> Accepted {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match rustix::net::accept_with(&self.0, flags) {
            Ok(client) => Accepted::Client(client),
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Accepted::NoRoom,
            Err(Errno::INVAL | Errno::BADF | Errno::NOTSOCK) => Accepted::Closed,
            // Nobody is there, or not any more.
            Err(_) => Accepted::Nobody,
        }
    }
}

/// Who came to a socket.
enum Accepted {
    Client(OwnedFd),
    Nobody,
    /// The machine has no descriptor or memory for another one now.
    NoRoom,
    /// Somebody closed the socket for all who hold it.
    Closed,
}

/// How the proxy of a sandbox is set up beyond what it lets through.
#[derive(Clone)]
pub struct Options {
    /// Who looks up names.
    pub resolver: Arc<dyn Resolver>,
    /// The most requests at a time; further ones are turned away.
    pub connections: usize,
    /// The most names that are being looked up at a time; further ones wait.
    pub lookups: usize,
    /// The most different names below `*.` entries.
    pub names: usize,
    /// How long is waited for what.
    pub times: Times,
    /// A proxy through which everything goes.
    pub upstream: Option<Arc<Upstream>>,
}

/// How long is waited for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The head of a request, from its connection on; and the greeting of TLS in a tunnel.
    pub head: Duration,
    /// A connection to the host, the lookup of its name included.
    pub connect: Duration,
    /// The next byte of either side.
    pub idle: Duration,
    /// The end of a client that was answered, or whose host has ended.
    pub leave: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            resolver: Arc::new(SystemResolver),
            connections: 64,
            lookups: 8,
            names: 256,
            times: Times::default(),
            upstream: None,
        }
    }
}

impl Default for Times {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            connect: Duration::from_secs(15),
            // Models think for minutes before they say a word.
            idle: Duration::from_secs(600),
            leave: Duration::from_secs(5),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Options");
        shown.field("connections", &self.connections).field("lookups", &self.lookups);
        shown.field("names", &self.names).field("times", &self.times).finish_non_exhaustive()
    }
}

/// The proxy of one sandbox. Dropping it stops it.
#[derive(Debug)]
pub struct Proxy {
    wake: Arc<Wake>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Serves the clients that come to these sockets, and records every request.
    pub fn serve(
        listeners: Vec<Listener>,
        allow: Arc<AllowList>,
        sink: Sink,
        options: Options,
    ) -> io::Result<Self> {
        let wake = Arc::new(Wake::new()?);
        let server = Server::new(listeners, allow, sink, options, Arc::clone(&wake));
        let builder = thread::Builder::new().name("sandbox-proxy".to_owned());
        let thread = builder.spawn(move || server.run())?;
        Ok(Self { wake, thread: Some(thread) })
    }

    /// Closes its sockets and every connection at once. When it returns, nothing more is recorded.
    pub fn stop(&mut self) {
        self.wake.stop();
        let Some(thread) = self.thread.take() else { return };
        // Whoever receives the records may stop the proxy; it cannot wait for itself.
        if thread.thread().id() != thread::current().id() {
            let _panicked = thread.join();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Wakes the server's thread.
#[derive(Debug)]
struct Wake {
    event: OwnedFd,
    stopped: AtomicBool,
}

impl Wake {
    fn new() -> io::Result<Self> {
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event, stopped: AtomicBool::new(false) })
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.ring();
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn ring(&self) {
        // It fails only if it was rung more often than can be counted: then it still rings.
        let _full = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    fn hush(&self) {
        let _silent = rustix::io::read(&self.event, &mut [0_u8; 8]);
    }
}

/// A name that was looked up, for the client of this number.
type Answer = (u64, io::Result<Vec<SocketAddr>>);

struct Server {
    listeners: Vec<Listener>,
    connections: BTreeMap<u64, Connection>,
    shared: Shared,
    options: Options,
    wake: Arc<Wake>,
    answers: (Sender<Answer>, Receiver<Answer>),
    /// Names that are being looked up.
    lookups: usize,
    /// The number of the last client.
    last: u64,
    /// Until when no client is taken in.
    paused: Option<Instant>,
}

/// What came of waiting.
struct Ready {
    listening: bool,
    connections: Vec<u64>,
}

impl Server {
    fn new(
        listeners: Vec<Listener>,
        allow: Arc<AllowList>,
        sink: Sink,
        options: Options,
        wake: Arc<Wake>,
    ) -> Self {
        let gate = Gate::new(allow, options.names);
        let upstream = options.upstream.clone();
        let shared = Shared { gate, sink, times: options.times, upstream, buffer: vec![0; BUFFER] };
        Self {
            listeners,
            connections: BTreeMap::new(),
            shared,
            options,
            wake,
            answers: mpsc::channel(),
            lookups: 0,
            last: 0,
            paused: None,
        }
    }

    fn run(mut self) {
        while !self.wake.is_stopped() {
            // What cannot be waited for is over: everything is closed.
            let Ok(ready) = self.wait() else { break };
            let now = now();
            self.wake.hush();
            self.hear(now);
            self.advance(&ready.connections, now);
            if ready.listening {
                self.accept(now);
            }
            self.expire(now);
            self.connections.retain(|_, connection| !connection.is_gone());
            self.look_up(now);
        }
        for (_, connection) in std::mem::take(&mut self.connections) {
            connection.stop(&self.shared);
        }
    }

    /// Waits until something can be done.
    fn wait(&self) -> Result<Ready, Errno> {
        let now = now();
        let deadlines = self.connections.values().map(Connection::deadline).chain(self.paused);
        let timeout = deadlines.min().map(|until| timespec(until.saturating_duration_since(now)));
        let mut sockets = vec![PollFd::new(&self.wake.event, PollFlags::IN)];
        let mut owners = vec![None];
        if self.has_room() {
            for listener in &self.listeners {
                sockets.push(PollFd::new(&listener.0, PollFlags::IN));
                owners.push(None);
            }
        }
        let listening = sockets.len();
        for (number, connection) in &self.connections {
            for (socket, flags) in connection.interests() {
                sockets.push(PollFd::from_borrowed_fd(socket, flags));
                owners.push(Some(*number));
            }
        }
        match rustix::event::poll(&mut sockets, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let is_ready = |socket: &PollFd<'_>| !socket.revents().is_empty();
        let ready = sockets.iter().zip(&owners).filter(|(socket, _)| is_ready(socket));
        let mut connections: Vec<u64> = ready.filter_map(|(_, owner)| *owner).collect();
        connections.dedup();
        let listening = sockets.get(1..listening).is_some_and(|some| some.iter().any(is_ready));
        Ok(Ready { listening, connections })
    }

    /// Takes the answers of those who look up names.
    fn hear(&mut self, now: Instant) {
        while let Ok((number, found)) = self.answers.1.try_recv() {
            self.lookups = self.lookups.saturating_sub(1);
            if let Some(connection) = self.connections.get_mut(&number) {
                connection.resolved(found, now, &self.shared);
            }
        }
    }

    fn advance(&mut self, ready: &[u64], now: Instant) {
        for number in ready {
            if let Some(connection) = self.connections.get_mut(number) {
                connection.advance(now, &mut self.shared);
            }
        }
    }

    fn expire(&mut self, now: Instant) {
        for connection in self.connections.values_mut() {
            if connection.deadline() <= now {
                connection.expire(now, &self.shared);
            }
        }
        self.paused = self.paused.filter(|until| *until > now);
    }

    /// Whether another client may be taken in. Refused ones count, too: they leave within a short time,
    /// but until then each holds a descriptor of the kernel's process.
    fn has_room(&self) -> bool {
        let most = self.options.connections.saturating_add(MOST_LEAVING);
        self.paused.is_none() && self.connections.len() < most
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..MOST_ACCEPTED {
            let mut nobody = true;
            for listener in std::mem::take(&mut self.listeners) {
                if !self.has_room() {
                    self.listeners.push(listener);
                    continue;
                }
                match listener.accept() {
                    Accepted::Client(client) => {
                        nobody = false;
                        self.take_in(client, now);
                    }
                    Accepted::Nobody => {}
                    Accepted::NoRoom => self.paused = Some(after(now, PAUSE)),
                    // It would report its end over and over.
                    Accepted::Closed => continue,
                }
                self.listeners.push(listener);
            }
            if nobody {
                return;
            }
        }
    }

    fn take_in(&mut self, client: OwnedFd, now: Instant) {
        self.last = self.last.saturating_add(1);
        let mut connection = Connection::new(client, self.last, now, &self.shared);
        let served = self.connections.values().filter(|connection| !connection.is_leaving());
        if served.count() >= self.options.connections {
            connection.turn_away(now, &self.shared);
        }
        self.connections.insert(self.last, connection);
    }

    /// Starts to look up names, as long as few are being looked up.
    fn look_up(&mut self, now: Instant) {
        for (number, connection) in &mut self.connections {
            if self.lookups >= self.options.lookups {
                return;
            }
            let Some((name, port)) = connection.wanted(&self.shared) else { continue };
            let resolver = Arc::clone(&self.options.resolver);
            let (answers, wake, number) = (self.answers.0.clone(), Arc::clone(&self.wake), *number);
            let look_up = move || {
                let found = resolver.resolve(&name, port);
                // Whoever asked may be gone.
                let _gone = answers.send((number, found));
                wake.ring();
            };
            let builder = thread::Builder::new().name("sandbox-lookup".to_owned());
            match builder.spawn(look_up) {
                Ok(_) => self.lookups += 1,
                Err(error) => connection.resolved(Err(error), now, &self.shared),
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that measures the proxy's patience")]
fn now() -> Instant {
    Instant::now()
}

/// The end of a wait; one beyond all reckoning ends at once.
pub(super) fn after(now: Instant, wait: Duration) -> Instant {
    now.checked_add(wait).unwrap_or(now)
}

fn timespec(duration: Duration) -> Timespec {
    // Within the range of any wait here; one that is not would be a day.
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(86_400),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
