//! A client's end of the connection.
//!
//! There is no thread: whoever waits for something reads from the socket, hands out what comes and tells the others.
//! While it sends and the kernel does not read, it reads as well, so the two never wait for each other.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fluffy_base::{
    API_VERSION, Fault, FaultCode, FrameError, Message, OLDEST_API_VERSION, encode_frame,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
    connect, recv, send, shutdown, socket_with,
};
use serde_json::Value;

use super::HELLO;
use super::handshake::{Hello, Token, Welcome};
use super::inbox::{Inbox, Reader};
use super::server::ServerOptions;
use super::socket::{ListenError, address, parts, private_directory};
use crate::guest::now;

/// How long a sender waits before it looks whether it should read as well.
const SLICE: Duration = Duration::from_millis(20);

/// How long an answer is looked for before the thread that waits for it goes to sleep. Most answers come sooner, and waking
/// a thread can take longer than that.
const EAGER: Duration = Duration::from_micros(100);

/// The longest that connecting takes.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// How a client connects.
#[derive(Debug)]
pub struct ClientOptions {
    /// What it calls itself.
    pub name: String,
    /// Brings it back as the client it was.
    pub token: Option<Token>,
    /// How long connecting, and sending any one message, may take.
    pub patience: Duration,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody listens there.
    #[error("no kernel listens on `{0}`")]
    NotRunning(PathBuf),
    /// The place of the socket is not private, so that anybody could listen there.
    #[error("the socket is not trusted")]
    Place(#[source] ListenError),
    /// The kernel does not want this client.
    #[error("the kernel refused: {0}")]
    Refused(Fault),
    /// Nothing was answered in time.
    #[error("the kernel did not answer in time")]
    Late,
    /// What answered does not speak as agreed.
    #[error("what listens on `{0}` is no kernel that this client understands")]
    Stranger(PathBuf),
    /// The connection ended before it began.
    #[error("the connection was lost")]
    Lost(#[source] ReceiveError),
    /// The system said no.
    #[error("cannot connect to `{path}`")]
    System {
        /// The socket.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

/// Why nothing more can be received: the connection is over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    /// The kernel hung up and said why.
    #[error("the kernel hung up: {0}")]
    HungUp(Fault),
    /// The connection ended without a word, as when the kernel dies.
    #[error("the connection to the kernel ended")]
    Closed,
    /// What came is no message.
    #[error("the kernel was not understood: {0}")]
    Garbled(Fault),
    /// More came than was taken.
    #[error("more events came than were taken")]
    Overrun,
}

/// Why a call or a message came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The kernel's answer is no.
    #[error("{0}")]
    Fault(Fault),
    /// There was no answer in time; it may still come, and what was asked may be done.
    #[error("the kernel did not answer in time")]
    Late,
    /// The message is larger than a frame may be; it was not sent.
    #[error("{0}")]
    TooLarge(FrameError),
    /// The connection is over.
    #[error(transparent)]
    Gone(#[from] ReceiveError),
}

/// A connection to a kernel, usable from several threads at once.
pub struct Client {
    socket: UnixStream,
    /// Held while a frame is written, so that frames stay whole.
    sending: Mutex<()>,
    inbox: Mutex<Inbox>,
    /// Something came, or nobody reads any more.
    changed: Condvar,
    next: AtomicU64,
    limit: usize,
    patience: Duration,
}

impl Client {
    /// Connects and shakes hands.
    pub fn connect(path: &Path, options: ClientOptions) -> Result<(Self, Welcome), ConnectError> {
        let begun = now();
        let limit = ServerOptions::default().frame;
        let client = Self {
            socket: open(path, options.patience)?,
            sending: Mutex::new(()),
            inbox: Mutex::new(Inbox::new(limit)),
            changed: Condvar::new(),
            next: AtomicU64::new(1),
            limit,
            patience: options.patience,
        };
        let api = (OLDEST_API_VERSION, API_VERSION);
        let hello = Hello { api, name: options.name, token: options.token };
        let left = options.patience.saturating_sub(now().saturating_duration_since(begun));
        let answer = client.call(HELLO, hello.to_params(), left).map_err(|error| match error {
            CallError::Fault(fault) | CallError::Gone(ReceiveError::HungUp(fault)) => {
                ConnectError::Refused(fault)
            }
            CallError::Late => ConnectError::Late,
            CallError::TooLarge(_) | CallError::Gone(ReceiveError::Garbled(_)) => {
                ConnectError::Stranger(path.to_owned())
            }
            CallError::Gone(lost) => ConnectError::Lost(lost),
        })?;
        let welcome = Welcome::from_result(answer);
        Ok((client, welcome.ok_or_else(|| ConnectError::Stranger(path.to_owned()))?))
    }

    /// Asks and waits for the answer. Events that come meanwhile are kept for [`Client::receive`].
    pub fn call(&self, method: &str, params: Value, timeout: Duration) -> Result<Value, CallError> {
        let deadline = later(timeout);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.inbox().expect(id);
        let request = Message::Request { id, method: method.to_owned(), params };
        let answer = self
            .write(&request, deadline)
            .map(|()| self.watch())
            .and_then(|()| self.wait(deadline, |inbox| inbox.take_answer(id)))
            .and_then(|answer| answer.ok_or(CallError::Late));
        if answer.is_err() {
            self.inbox().give_up(id);
        }
        answer?.map_err(CallError::Fault)
    }

    /// Sends a message. Ids of requests sent this way should be far from those that [`Client::call`] counts up from 1.
    pub fn send(&self, message: &Message) -> Result<(), CallError> {
        self.write(message, later(self.patience))
    }

    /// The next event, request, or answer that no call waits for; nothing when the time is up. Without a time it waits
    /// until the connection ends.
    pub fn receive(&self, timeout: Option<Duration>) -> Result<Option<Message>, ReceiveError> {
        let deadline = timeout.and_then(later);
        match self.wait(deadline, Inbox::take) {
            Ok(message) => Ok(message),
            Err(CallError::Gone(error)) => Err(error),
            // Waiting fails in no other way.
            Err(_) => Err(ReceiveError::Closed),
        }
    }

    /// Hangs up. Whoever waits is told; what was received before can still be taken.
    pub fn close(&self) {
        let _not_connected = shutdown(&self.socket, Shutdown::Both);
        self.inbox().end(ReceiveError::Closed);
        self.changed.notify_all();
    }

    /// Looks for an answer before the thread goes to sleep, letting others run meanwhile.
    fn watch(&self) {
        let end = later(EAGER);
        while self.poll(PollFlags::IN, Some(Duration::ZERO)).is_empty()
            && left(end) != Some(Duration::ZERO)
        {
            std::thread::yield_now();
        }
    }

    /// Waits until `take` finds something; nothing when the time is up.
    fn wait<T>(
        &self,
        deadline: Option<Instant>,
        mut take: impl FnMut(&mut Inbox) -> Option<T>,
    ) -> Result<Option<T>, CallError> {
        let mut inbox = self.inbox();
        loop {
            if let Some(found) = take(&mut inbox) {
                return Ok(Some(found));
            }
            if let Some(end) = inbox.ended() {
                return Err(end.into());
            }
            let left = left(deadline);
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            inbox = match inbox.reader.take() {
                Some(reader) => {
                    drop(inbox);
                    self.read(reader, PollFlags::IN, left)
                }
                None => self.wait_for_reader(inbox, left),
            };
        }
    }

    fn wait_for_reader<'a>(
        &self,
        inbox: MutexGuard<'a, Inbox>,
        left: Option<Duration>,
    ) -> MutexGuard<'a, Inbox> {
        match left {
            Some(left) => {
                let (inbox, _) =
                    self.changed.wait_timeout(inbox, left).unwrap_or_else(PoisonError::into_inner);
                inbox
            }
            None => self.changed.wait(inbox).unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Waits for the socket, reads once and hands out what came. Whoever calls this has taken the reader.
    fn read(
        &self,
        mut reader: Reader,
        wanted: PollFlags,
        left: Option<Duration>,
    ) -> MutexGuard<'_, Inbox> {
        let came = self.poll(wanted, left).intersects(!PollFlags::OUT);
        let read = if came { self.receive_some(&mut reader) } else { Ok(Vec::new()) };
        let mut inbox = self.inbox();
        inbox.reader = Some(reader);
        match read {
            Ok(messages) => {
                for (message, bytes) in messages {
                    inbox.deliver(message, bytes);
                }
            }
            Err(end) => inbox.end(end),
        }
        self.changed.notify_all();
        inbox
    }

    fn receive_some(
        &self,
        Reader { decoder, buffer }: &mut Reader,
    ) -> Result<Vec<(Message, usize)>, ReceiveError> {
        let size = match recv(&self.socket, buffer.as_mut_slice(), RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Err(ReceiveError::Closed),
            Ok((_, size)) => size,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(Vec::new()),
            Err(_) => return Err(ReceiveError::Closed),
        };
        let mut input = buffer.get(..size).unwrap_or_default();
        let mut messages = Vec::new();
        let garbled = |error: FrameError| {
            ReceiveError::Garbled(Fault::new(FaultCode::Malformed, &error.to_string()))
        };
        while let Some(frame) = decoder.next_frame(&mut input).map_err(garbled)? {
            let message = Message::parse(&frame).map_err(ReceiveError::Garbled)?;
            messages.push((message, frame.len()));
        }
        Ok(messages)
    }

    fn write(&self, message: &Message, deadline: Option<Instant>) -> Result<(), CallError> {
        let frame = encode_frame(&message.to_bytes(), self.limit).map_err(CallError::TooLarge)?;
        let _whole = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = frame.as_slice();
        while !rest.is_empty() {
            match send(&self.socket, rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if left(deadline) != Some(Duration::ZERO) => {
                    self.make_room(left(deadline))?;
                }
                Err(Errno::AGAIN) if rest.len() == frame.len() => return Err(CallError::Late),
                // Half a frame is sent, or nobody reads: what follows could not be understood.
                Err(error) => return Err(self.lost(error)),
            }
        }
        Ok(())
    }

    /// Waits until more can be written, and reads meanwhile unless another thread does.
    fn make_room(&self, left: Option<Duration>) -> Result<(), CallError> {
        let mut inbox = self.inbox();
        if let Some(end) = inbox.ended() {
            return Err(end.into());
        }
        match inbox.reader.take() {
            Some(reader) => {
                drop(inbox);
                drop(self.read(reader, PollFlags::IN | PollFlags::OUT, left));
            }
            None => {
                drop(inbox);
                self.poll(PollFlags::OUT, Some(left.unwrap_or(SLICE).min(SLICE)));
            }
        }
        Ok(())
    }

    /// The connection is lost while writing. The kernel's last words may have come: they say more than the error.
    fn lost(&self, error: Errno) -> CallError {
        let last_words = if error == Errno::AGAIN {
            None
        } else {
            self.wait(later(SLICE), |_| None::<()>).err()
        };
        self.close();
        last_words.unwrap_or(CallError::Gone(ReceiveError::Closed))
    }

    fn poll(&self, wanted: PollFlags, left: Option<Duration>) -> PollFlags {
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let mut sockets = [PollFd::new(&self.socket, wanted)];
        // An interrupted wait is one in which nothing happened.
        let _interrupted = poll(&mut sockets, timeout.as_ref());
        let [socket] = &sockets;
        socket.revents()
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The moment after so long; nothing where no clock goes that far.
fn later(time: Duration) -> Option<Instant> {
    now().checked_add(time)
}

/// How long it is until then.
fn left(deadline: Option<Instant>) -> Option<Duration> {
    deadline.map(|deadline| deadline.saturating_duration_since(now()))
}

/// A connected socket, whose directory is this user's own.
fn open(path: &Path, patience: Duration) -> Result<UnixStream, ConnectError> {
    let (parent, name) = parts(path).map_err(ConnectError::Place)?;
    let directory = private_directory(parent).map_err(|error| match error {
        ListenError::System { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            ConnectError::NotRunning(path.to_owned())
        }
        error => ConnectError::Place(error),
    })?;
    let attempt = || -> rustix::io::Result<UnixStream> {
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // Bounds connecting, which waits when many do.
        set_socket_timeout(&socket, Timeout::Send, Some(patience.clamp(SLICE, LONGEST)))?;
        connect(&socket, &SocketAddrUnix::new(address(&directory, name))?)?;
        Ok(socket.into())
    };
    attempt().map_err(|error| match error {
        Errno::NOENT | Errno::CONNREFUSED => ConnectError::NotRunning(path.to_owned()),
        Errno::AGAIN => ConnectError::Late,
        error => ConnectError::System { path: path.to_owned(), source: error.into() },
    })
}
