//! The user's session bus: a socket, a greeting, calls and their answers.
//!
//! **Invariant.** Whoever is at the other end, everything together takes no longer than the time that was given.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fluffy_base::Clock;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::wire::{self, Call, HEAD, Kind, WireError};

/// The longest line of the greeting.
const MAX_LINE: usize = 512;

/// Why the bus did not answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum BusError {
    #[error("the session bus cannot be reached")]
    Unreachable(#[source] io::Error),
    #[error("the session bus did not answer in time")]
    TimedOut,
    #[error("the session bus does not know us")]
    Unknown,
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("`{0}`")]
    Refused(String),
}

/// A connection to the bus.
pub(super) struct Bus {
    stream: UnixStream,
    clock: Arc<dyn Clock>,
    deadline_ms: u64,
    serial: u32,
}

impl Bus {
    /// Connects, and is done with everything within `patience_ms`.
    pub(super) fn connect(
        place: &BusPlace,
        clock: Arc<dyn Clock>,
        patience_ms: u64,
    ) -> Result<Self, BusError> {
        let stream = place.connect()?;
        let deadline_ms = clock.now_ms().saturating_add(patience_ms);
        let mut bus = Self { stream, clock, deadline_ms, serial: 0 };
        bus.greet()?;
        let hello = Call {
            destination: "org.freedesktop.DBus",
            path: "/org/freedesktop/DBus",
            interface: "org.freedesktop.DBus",
            member: "Hello",
            signature: "",
            body: &[],
        };
        bus.call(&hello)?;
        Ok(bus)
    }

    /// Calls a method; gives the values that it answers with.
    pub(super) fn call(&mut self, call: &Call<'_>) -> Result<Vec<u8>, BusError> {
        self.serial = self.serial.wrapping_add(1).max(1);
        let serial = self.serial;
        self.write(&call.message(serial))?;
        loop {
            let mut head = [0; HEAD];
            self.read(&mut head)?;
            let (rest, body) = wire::lengths(&head)?;
            let mut message = head.to_vec();
            message.resize(HEAD + rest, 0);
            self.read(message.get_mut(HEAD..).unwrap_or_default())?;
            let body = message.split_off(message.len().saturating_sub(body));
            match wire::kind(&message)? {
                Kind::Return(answered) if answered == serial => return Ok(body),
                Kind::Error(answered, name) if answered == serial => {
                    return Err(BusError::Refused(name));
                }
                Kind::Return(_) | Kind::Error(..) | Kind::Other => {}
            }
        }
    }

    /// Says who we are; the socket proves it.
    fn greet(&mut self) -> Result<(), BusError> {
        let user = rustix::process::geteuid().as_raw().to_string();
        let user: String = user.bytes().map(|byte| format!("{byte:02x}")).collect();
        self.write(format!("\0AUTH EXTERNAL {user}\r\n").as_bytes())?;
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            self.read(&mut byte)?;
            line.extend(byte);
            if line.len() > MAX_LINE {
                return Err(BusError::Unknown);
            }
        }
        if !line.starts_with(b"OK ") {
            return Err(BusError::Unknown);
        }
        self.write(b"BEGIN\r\n")
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), BusError> {
        let left = self.left()?;
        self.stream.set_write_timeout(Some(left)).map_err(BusError::Unreachable)?;
        self.stream.write_all(bytes).map_err(late)
    }

    fn read(&mut self, mut bytes: &mut [u8]) -> Result<(), BusError> {
        while !bytes.is_empty() {
            let left = self.left()?;
            self.stream.set_read_timeout(Some(left)).map_err(BusError::Unreachable)?;
            match self.stream.read(bytes) {
                Ok(0) => return Err(BusError::Unreachable(io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => bytes = bytes.get_mut(read..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(late(error)),
            }
        }
        Ok(())
    }

    fn left(&self) -> Result<Duration, BusError> {
        match self.deadline_ms.saturating_sub(self.clock.now_ms()) {
            0 => Err(BusError::TimedOut),
            left => Ok(Duration::from_millis(left)),
        }
    }
}

/// Where the bus is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BusPlace {
    /// A socket among the files.
    Path(PathBuf),
    /// A socket with a name of its own.
    Abstract(Vec<u8>),
}

impl BusPlace {
    /// The first place of an address such as `unix:path=/run/user/1000/bus,guid=…` that is a socket of this
    /// machine.
    pub(super) fn of_address(address: &str) -> Option<Self> {
        address.split(';').find_map(|one| {
            let mut pairs =
                one.strip_prefix("unix:")?.split(',').filter_map(|it| it.split_once('='));
            pairs.find_map(|(name, value)| match name {
                "path" => {
                    Some(Self::Path(PathBuf::from(String::from_utf8(unescaped(value)?).ok()?)))
                }
                "abstract" => Some(Self::Abstract(unescaped(value)?)),
                _ => None,
            })
        })
    }

    /// The usual place in a user's runtime directory, if there is anything.
    pub(super) fn usual(runtime_dir: &Path) -> Option<Self> {
        let path = runtime_dir.join("bus");
        path.exists().then_some(Self::Path(path))
    }

    /// Without waiting: a bus that takes no connections is none.
    fn connect(&self) -> Result<UnixStream, BusError> {
        let failed = |error: rustix::io::Errno| BusError::Unreachable(error.into());
        let address = match self {
            Self::Path(path) => SocketAddrUnix::new(path.as_path()),
            Self::Abstract(name) => SocketAddrUnix::new_abstract_name(name),
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let socket = socket.map_err(failed)?;
        rustix::net::connect(&socket, &address.map_err(failed)?).map_err(failed)?;
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false).map_err(BusError::Unreachable)?;
        Ok(stream)
    }
}

/// Bytes of an address, in which `%2f` is a slash.
fn unescaped(value: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digits = [bytes.next()?, bytes.next()?];
        out.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    Some(out)
}

fn late(error: io::Error) -> BusError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => BusError::TimedOut,
        _ => BusError::Unreachable(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_that_says_nothing_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bus");
        // Nobody accepts: the connection stands, and nothing comes.
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let bus = Bus::connect(&BusPlace::Path(path), Arc::new(fluffy_base::SystemClock), 20);
        assert!(matches!(bus, Err(BusError::TimedOut)));
        let gone = BusPlace::Path(dir.path().join("gone"));
        let bus = Bus::connect(&gone, Arc::new(fluffy_base::SystemClock), 20);
        assert!(matches!(bus, Err(BusError::Unreachable(_))));
    }

    #[test]
    fn the_bus_is_where_its_address_says() {
        let path = |path: &str| Some(BusPlace::Path(path.into()));
        let of = BusPlace::of_address;
        assert_eq!(of("unix:path=/run/user/1000/bus"), path("/run/user/1000/bus"));
        assert_eq!(of("unix:guid=1,path=/tmp/a%20b;tcp:host=x"), path("/tmp/a b"));
        assert_eq!(of("tcp:host=x;unix:path=/b"), path("/b"));
        assert_eq!(
            of("unix:abstract=/tmp/dbus-x"),
            Some(BusPlace::Abstract(b"/tmp/dbus-x".to_vec()))
        );
        for nothing in ["", "unix:", "unix:dir=/tmp", "tcp:host=x", "unix:path=%zz", "autolaunch:"]
        {
            assert_eq!(of(nothing), None, "{nothing}");
        }
    }
}
