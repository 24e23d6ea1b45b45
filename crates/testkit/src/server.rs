//! A server of HTTP with real TLS that does what a test tells it to: also what no honest server does.

#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test fails by panicking")]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Whoever waits longer than this waits for nothing.
pub const FOR_EVER: Duration = Duration::from_secs(60);

/// Who the server says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// `localhost` and `127.0.0.1`, signed by its [`Server::authority`].
    Proper,
    /// Somebody else, signed by the same.
    OtherName,
    /// The right one, until last year.
    Expired,
    /// The right one, signed by itself.
    SelfSigned,
    /// Nobody: it speaks no TLS.
    Plain,
}

/// A request that came.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// On which connection, from 0.
    pub connection: usize,
    /// The line and the headers.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Asked {
    /// A header by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// What becomes of a connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The next request may come on it.
    Keep,
    /// It is closed.
    Close,
    /// It is torn down.
    Reset,
}

/// The other end of a connection.
pub trait Peer: Read + Write {
    /// Waits until the other side has hung up.
    fn wait_for_end(&mut self) {
        let mut buffer = [0; 1024];
        while self.read(&mut buffer).unwrap_or(0) > 0 {}
    }
}

impl<T: Read + Write> Peer for T {}

/// Answers a request.
pub type Manner = dyn Fn(&Asked, &mut dyn Peer) -> Then + Send + Sync;

/// A server on this machine's own address. It lives as long as the test.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// The certificate of whoever signed its own, as PEM.
    pub authority: String,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    asked: Vec<Asked>,
    /// Connections that were opened, and those that are over.
    opened: usize,
    over: usize,
}

impl Server {
    /// Starts one.
    pub fn start(
        identity: Identity,
        manner: impl Fn(&Asked, &mut dyn Peer) -> Then + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tls, authority) = sealed(identity);
        let (seen, manner): (Arc<Seen>, Arc<Manner>) = (Arc::default(), Arc::new(manner));
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, manner, tls) = (Arc::clone(&shared), Arc::clone(&manner), tls.clone());
                let number = seen.change(|state| {
                    state.opened += 1;
                    state.opened - 1
                });
                let stream = stream.unwrap();
                thread::spawn(move || {
                    talk(stream, number, tls, &seen, &*manner);
                    seen.change(|state| state.over += 1);
                });
            }
        });
        Self { address, authority, seen }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The requests that came.
    pub fn asked(&self) -> Vec<Asked> {
        self.seen.state.lock().unwrap().asked.clone()
    }

    /// How many connections were opened.
    pub fn connections(&self) -> usize {
        self.seen.state.lock().unwrap().opened
    }

    /// Waits until so many connections are over.
    pub fn wait_for_ends(&self, count: usize) {
        self.seen.wait(|state| state.over >= count);
    }

    /// Waits until so many requests have come.
    pub fn wait_for_requests(&self, count: usize) {
        self.seen.wait(|state| state.asked.len() >= count);
    }
}

impl Seen {
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
        result
    }

    fn wait(&self, enough: impl Fn(&State) -> bool) {
        let state = self.state.lock().unwrap();
        let (_state, waited) =
            self.changed.wait_timeout_while(state, FOR_EVER, |state| !enough(state)).unwrap();
        assert!(!waited.timed_out(), "what was waited for did not come");
    }
}

/// The server's side of TLS, and the certificate of whoever signed.
fn sealed(identity: Identity) -> (Option<Arc<ServerConfig>>, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let names = match identity {
        Identity::OtherName => vec!["other.example".to_owned()],
        _ => vec!["localhost".to_owned(), "127.0.0.1".to_owned()],
    };
    let mut params = CertificateParams::new(names).unwrap();
    if identity == Identity::Expired {
        params.not_after = rcgen::date_time_ymd(2025, 1, 1);
    }
    let key = KeyPair::generate().unwrap();
    let certificate = match identity {
        Identity::SelfSigned => params.self_signed(&key).unwrap(),
        _ => params.signed_by(&key, &authority).unwrap(),
    };
    let chain = vec![CertificateDer::from(certificate.der().to_vec())];
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    ((identity != Identity::Plain).then(|| Arc::new(config)), authority.pem())
}

fn talk(
    stream: TcpStream,
    number: usize,
    tls: Option<Arc<ServerConfig>>,
    seen: &Seen,
    manner: &Manner,
) {
    stream.set_nodelay(true).unwrap();
    let socket = stream.try_clone().unwrap();
    let then = match tls {
        None => converse(&mut { stream }, number, seen, manner),
        Some(config) => {
            let connection = ServerConnection::new(config).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            let then = converse(&mut stream, number, seen, manner);
            if then == Then::Close {
                stream.conn.send_close_notify();
                let _gone = stream.flush();
            }
            then
        }
    };
    if then == Then::Reset {
        let _gone = rustix::net::sockopt::set_socket_linger(&socket, Some(Duration::ZERO));
    }
}

fn converse(stream: &mut dyn Peer, number: usize, seen: &Seen, manner: &Manner) -> Then {
    loop {
        let Ok(asked) = request(stream, number) else { return Then::Close };
        seen.change(|state| state.asked.push(asked.clone()));
        match manner(&asked, stream) {
            Then::Keep => {}
            then => return then,
        }
    }
}

fn request(stream: &mut dyn Peer, connection: usize) -> io::Result<Asked> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let mut asked = Asked { connection, head, body: Vec::new() };
    let length = asked.header("content-length").map_or(0, |length| length.parse().unwrap());
    asked.body = vec![0; length];
    stream.read_exact(&mut asked.body)?;
    Ok(asked)
}

/// Writes a head and a body of known length.
pub fn answer(peer: &mut dyn Peer, status: &str, headers: &[(&str, &str)], body: &[u8]) {
    let mut head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let _gone = peer.write_all(&[head.as_bytes(), b"\r\n", body].concat());
    let _gone = peer.flush();
}

/// Begins an answer that streams events, in chunks.
pub fn begin_stream(peer: &mut dyn Peer) {
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let _gone = peer.write_all(head.as_bytes());
    let _gone = peer.flush();
}

/// Writes a chunk; whether it could be. An empty one is the end.
pub fn chunk(peer: &mut dyn Peer, text: &str) -> bool {
    chunk_of_bytes(peer, text.as_bytes())
}

/// The same for a piece of a text that ends in the middle of a character.
pub fn chunk_of_bytes(peer: &mut dyn Peer, bytes: &[u8]) -> bool {
    let size = format!("{:x}\r\n", bytes.len());
    let chunk = [size.as_bytes(), bytes, b"\r\n"].concat();
    peer.write_all(&chunk).and_then(|()| peer.flush()).is_ok()
}
