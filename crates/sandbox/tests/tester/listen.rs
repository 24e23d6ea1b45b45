//! Listeners that tell whether somebody spoke to them. No thread: the kernel completes connections and
//! keeps datagrams, and they are counted afterwards.

use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

/// One listener.
pub(crate) struct Ear {
    at: String,
    socket: Socket,
}

enum Socket {
    Tcp(TcpListener),
    Udp(UdpSocket),
    Unix(UnixListener),
}

impl Ear {
    /// Listens at `tcp:`, `udp:`, `unix:` or `abstract:` and an address.
    pub(crate) fn open(at: &str) -> io::Result<Self> {
        let (kind, address) = at.split_once(':').ok_or(io::ErrorKind::InvalidInput)?;
        let socket = match kind {
            "tcp" => Socket::Tcp(TcpListener::bind(address)?),
            "udp" => Socket::Udp(UdpSocket::bind(address)?),
            "unix" => Socket::Unix(UnixListener::bind(address)?),
            "abstract" => {
                let address = SocketAddr::from_abstract_name(address)?;
                Socket::Unix(UnixListener::bind_addr(&address)?)
            }
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        Ok(Self { at: at.to_owned(), socket })
    }

    /// Its name, if somebody spoke to it.
    pub(crate) fn heard(&self) -> Option<String> {
        let spoken = match &self.socket {
            Socket::Tcp(socket) => {
                socket.set_nonblocking(true).and_then(|()| socket.accept()).is_ok()
            }
            Socket::Udp(socket) => {
                socket.set_nonblocking(true).and_then(|()| socket.recv(&mut [0; 512])).is_ok()
            }
            Socket::Unix(socket) => {
                socket.set_nonblocking(true).and_then(|()| socket.accept()).is_ok()
            }
        };
        spoken.then(|| self.at.clone())
    }
}
