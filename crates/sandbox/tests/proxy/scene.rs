//! A proxy, a host behind it, and whoever asks.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use fluffy_sandbox::proxy::{
    AllowList, Decision, Listener, Options, Proxy, Record, Refusal, Resolver,
};
use tempfile::TempDir;

/// Whoever waits longer than this waits for nothing.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(60);

/// Something that changes and can be waited for.
#[derive(Debug, Default)]
pub(crate) struct Watched<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Watched<T> {
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.value.lock().unwrap());
        self.changed.notify_all();
        result
    }

    pub(crate) fn wait<R>(&self, mut enough: impl FnMut(&T) -> Option<R>) -> R {
        let mut value = self.value.lock().unwrap();
        loop {
            if let Some(result) = enough(&value) {
                return result;
            }
            let (next, waited) = self.changed.wait_timeout(value, FOR_EVER).unwrap();
            assert!(!waited.timed_out(), "what was waited for did not come");
            value = next;
        }
    }
}

/// A host that keeps what it was sent and answers what it was told to.
pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    seen: Arc<Watched<Vec<String>>>,
}

/// What a host does with a connection of which it has read the first head.
pub(crate) type Manner = dyn Fn(&str, TcpStream) + Send + Sync;

impl Host {
    pub(crate) fn new(manner: impl Fn(&str, TcpStream) + Send + Sync + 'static) -> Self {
        Self::with(Arc::new(manner))
    }

    fn with(manner: Arc<Manner>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Watched<Vec<String>>> = Arc::default();
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (manner, seen) = (Arc::clone(&manner), Arc::clone(&shared));
                let stream = stream.unwrap();
                let at = seen.change(|seen| {
                    seen.push(String::new());
                    seen.len() - 1
                });
                thread::spawn(move || serve(stream, &seen, at, &*manner));
            }
        });
        Self { address, seen }
    }

    /// What it was sent, by connection: the head, or all that came if there was none.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.change(|seen| seen.clone())
    }
}

fn serve(mut stream: TcpStream, seen: &Watched<Vec<String>>, at: usize, manner: &Manner) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        head.push(byte[0]);
        seen.change(|seen| seen[at].push(char::from(byte[0])));
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    if head.ends_with("\r\n\r\n") {
        manner(&head, stream);
    }
}

/// Answers with a plain text.
pub(crate) fn hello(_: &str, mut stream: TcpStream) {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n";
    let _gone = stream.write_all(answer.as_bytes());
    let _gone = stream.shutdown(Shutdown::Write);
}

/// Where names lead.
pub(crate) struct Table {
    /// Where all others lead.
    default: SocketAddr,
    known: Mutex<BTreeMap<String, Vec<Vec<SocketAddr>>>>,
    asked: Mutex<Vec<String>>,
}

impl Table {
    /// What a name leads to, question by question; the last answer stays.
    pub(crate) fn set(&self, name: &str, answers: &[&[&str]]) {
        let read = |texts: &&[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let answers = answers.iter().map(read).collect();
        self.known.lock().unwrap().insert(name.to_owned(), answers);
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Resolver for Table {
    fn resolve(&self, name: &str, _port: u16) -> io::Result<Vec<SocketAddr>> {
        self.asked.lock().unwrap().push(name.to_owned());
        match self.known.lock().unwrap().get_mut(name) {
            None => Ok(vec![self.default]),
            Some(answers) if answers.len() > 1 => Ok(answers.remove(0)),
            Some(answers) => Ok(answers.first().cloned().unwrap_or_default()),
        }
    }
}

/// All of it together.
pub(crate) struct Scene {
    pub(crate) proxy: Proxy,
    pub(crate) host: Host,
    pub(crate) table: Arc<Table>,
    pub(crate) at: SocketAddr,
    pub(crate) socket: PathBuf,
    records: Arc<Watched<Vec<Record>>>,
    pub(crate) dir: TempDir,
}

impl Scene {
    /// A host that says hello, behind a proxy that lets these through.
    pub(crate) fn new(allowed: &[&str]) -> Self {
        Self::with(allowed, Host::new(hello), |_| ())
    }

    pub(crate) fn with(allowed: &[&str], host: Host, change: impl FnOnce(&mut Options)) -> Self {
        // The host of the test is on loopback, which must be listed by its address.
        let own = host.address.to_string();
        let entries = allowed.iter().copied().chain((!allowed.is_empty()).then_some(&*own));
        let allow = Arc::new(AllowList::parse(entries).unwrap());
        let (known, asked) = (Mutex::default(), Mutex::default());
        let table = Arc::new(Table { default: host.address, known, asked });
        let dir = TempDir::new().unwrap();
        let socket = dir.path().join("proxy.sock");
        let unix = UnixListener::bind(&socket).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = tcp.local_addr().unwrap();
        let listeners =
            vec![Listener::new(tcp.into()).unwrap(), Listener::new(unix.into()).unwrap()];
        let mut options = Options { resolver: Arc::<Table>::clone(&table), ..Options::default() };
        change(&mut options);
        let records: Arc<Watched<Vec<Record>>> = Arc::default();
        let shared = Arc::clone(&records);
        let sink = Arc::new(move |record: &Record| {
            shared.change(|records| records.push(record.clone()));
        });
        let proxy = Proxy::serve(listeners, allow, sink, options).unwrap();
        Self { proxy, host, table, at, socket, records, dir }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(FOR_EVER)).unwrap();
        stream
    }

    pub(crate) fn connect_unix(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(FOR_EVER)).unwrap();
        stream
    }

    /// Sends bytes and gives back all that is answered.
    pub(crate) fn ask(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect();
        stream.write_all(bytes.as_ref()).unwrap();
        read_all(&mut stream)
    }

    /// Opens a tunnel.
    pub(crate) fn tunnel(&self, target: &str) -> TcpStream {
        let mut stream = self.connect();
        write!(stream, "CONNECT {target} HTTP/1.1\r\n\r\n").unwrap();
        let established = "HTTP/1.1 200 Connection established\r\n\r\n";
        let mut answer = vec![0; established.len()];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), established);
        stream
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        self.records.change(|records| records.clone())
    }

    /// Waits for this many records.
    pub(crate) fn wait(&self, count: usize) -> Vec<Record> {
        self.records.wait(|records| (records.len() >= count).then(|| records.clone()))
    }

    /// The decisions so far, once there are this many.
    pub(crate) fn decisions(&self, count: usize) -> Vec<Decision> {
        self.wait(count).iter().map(|record| record.decision).collect()
    }

    /// The only record is a refusal, and the host saw nothing.
    pub(crate) fn assert_refused(&self, refusal: Refusal) {
        assert_eq!(self.decisions(1), [Decision::Refused(refusal)]);
        assert_eq!(self.host.seen(), [""; 0]);
    }
}

/// All that comes until the other side ends, or breaks off.
pub(crate) fn read_all(stream: &mut impl io::Read) -> String {
    let mut answer = Vec::new();
    let _broken_off = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

pub(crate) fn get(url: &str, host: &str) -> String {
    format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

/// The greeting of TLS with a server name.
pub(crate) fn greeting(name: &str) -> Vec<u8> {
    let counted = |bytes: &[u8]| {
        let length = u16::try_from(bytes.len()).unwrap();
        [&length.to_be_bytes()[..], bytes].concat()
    };
    let entry = [&[0][..], &counted(name.as_bytes())].concat();
    let extension = [&[0, 0][..], &counted(&counted(&entry))].concat();
    let body = [&[3, 3][..], &[7; 32], &[0], &counted(&[19, 1]), &[1, 0], &counted(&extension)];
    let message = [&[1, 0][..], &counted(&body.concat())].concat();
    [&[22, 3, 1][..], &counted(&message)].concat()
}
