//! A server on a socket in a temporary directory, and peers that write what they like.

use std::fs::{File, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fluffy_base::{Fault, FaultCode, FrameDecoder, Message, encode_frame};
use fluffy_kernel::{
    Client, ClientOptions, ConnectError, Listener, Peer, Server, ServerOptions, Service, Token,
    Welcome, listen,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than anything takes that works.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// What the service was told.
#[derive(Debug)]
pub(crate) enum Told {
    Joined(Peer),
    Received,
    Left(Peer),
}

/// Echoes `echo`, sends `params.count` events on `flood`, never answers `silence`; most of the rest is unknown
/// to it.
struct Echo {
    told: Mutex<Sender<Told>>,
}

impl Echo {
    fn tell(&self, told: Told) {
        let _nobody_listens = self.told.lock().unwrap().send(told);
    }
}

impl Service for Echo {
    fn joined(&self, peer: &Peer) {
        self.tell(Told::Joined(peer.clone()));
    }

    fn received(&self, peer: &Peer, message: Message) {
        let Message::Request { id, method, params } = message else {
            return self.tell(Told::Received);
        };
        let outcome = match method.as_str() {
            "echo" => Ok(params),
            "flood" => {
                for number in 0..params["count"].as_u64().unwrap() {
                    let params = json!({ "number": number, "text": params["text"] });
                    let event = Message::Event { method: "drop".to_owned(), params };
                    if peer.send(event).is_err() {
                        return;
                    }
                }
                Ok(Value::Null)
            }
            "terminal" => Ok(json!(peer.has_terminal())),
            "silence" => return,
            "panic" => panic!("as asked"),
            "hang.up" => return peer.hang_up(Fault::new(FaultCode::Denied, "as asked")),
            _ => Err(Fault::new(FaultCode::UnknownMethod, "there is no such method")),
        };
        let _gone = peer.answer(id, outcome);
    }

    fn left(&self, peer: &Peer) {
        self.tell(Told::Left(peer.clone()));
    }
}

pub(crate) struct Lab {
    pub(crate) server: Option<Server>,
    told: Mutex<Receiver<Told>>,
    dir: TempDir,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self::with(ServerOptions::default())
    }

    pub(crate) fn with(options: ServerOptions) -> Self {
        let dir = TempDir::new().unwrap();
        let listener = listen(&dir.path().join("run/kernel.sock")).unwrap();
        Self::on(listener, dir, options)
    }

    fn on(listener: impl Into<Listener>, dir: TempDir, options: ServerOptions) -> Self {
        let (sender, told) = channel();
        let service = Arc::new(Echo { told: Mutex::new(sender) });
        let server = Some(Server::start(listener, service, options).unwrap());
        Self { server, told: Mutex::new(told), dir }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("run/kernel.sock")
    }

    pub(crate) fn peers(&self) -> usize {
        self.server.as_ref().unwrap().peers()
    }

    pub(crate) fn client(&self) -> Client {
        self.connect(None).unwrap().0
    }

    pub(crate) fn connect(&self, token: Option<Token>) -> Result<(Client, Welcome), ConnectError> {
        let options = ClientOptions { name: "test".to_owned(), token, patience: LONG };
        Client::connect(&self.socket(), options)
    }

    pub(crate) fn raw(&self) -> Raw {
        Raw::connect(&self.socket())
    }

    /// A server that anybody on the machine can reach.
    pub(crate) fn open_to_all(options: ServerOptions) -> Self {
        let dir = TempDir::new().unwrap();
        let run = dir.path().join("run");
        std::fs::create_dir(&run).unwrap();
        let listener = UnixListener::bind(run.join("kernel.sock")).unwrap();
        for path in [dir.path(), &run, &run.join("kernel.sock")] {
            std::fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        }
        Self::on(listener, dir, options)
    }

    /// A raw peer that has shaken hands.
    pub(crate) fn known(&self) -> Raw {
        let mut raw = self.raw();
        raw.ask(0, "hello", json!({ "api": [1, 1], "name": "raw" }));
        assert!(matches!(raw.next(), Some(Message::Response { outcome: Ok(_), .. })));
        raw
    }

    /// Sends frames from another process, started as `program` says, and gives what is answered.
    pub(crate) fn other_process(&self, program: &[&str], messages: &[Message]) -> Vec<Message> {
        let tester = self.dir.path().join("tester");
        // Where another user can reach it.
        std::fs::copy(env!("CARGO_BIN_EXE_kernel-tester"), &tester).unwrap();
        let socket = self.socket();
        let tester = [tester.to_str().unwrap(), "ipc", socket.to_str().unwrap()];
        let words: Vec<&str> = program.iter().chain(&tester).copied().collect();
        self.run(&words, messages)
    }

    /// The same from a process with a controlling terminal.
    pub(crate) fn in_terminal(&self, messages: &[Message]) -> Vec<Message> {
        let (tester, socket) = (env!("CARGO_BIN_EXE_kernel-tester"), self.socket());
        let (input, output) = (self.dir.path().join("input"), self.dir.path().join("output"));
        let mut bytes = File::create_new(&input).unwrap();
        for message in messages {
            bytes.write_all(&encode_frame(&message.to_bytes(), usize::MAX).unwrap()).unwrap();
        }
        let [socket, input, output] = [&socket, &input, &output].map(|path| path.display());
        let command = format!("{tester} ipc {socket} <{input} >{output}");
        self.run(&["script", "-qec", &command, "/dev/null"], &[]);
        read_frames(&std::fs::read(self.dir.path().join("output")).unwrap())
    }

    fn run(&self, words: &[&str], messages: &[Message]) -> Vec<Message> {
        let mut process = start(words);
        let mut input = process.stdin.take().unwrap();
        for message in messages {
            input.write_all(&encode_frame(&message.to_bytes(), usize::MAX).unwrap()).unwrap();
        }
        drop(input);
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        read_frames(&output.stdout)
    }

    /// Waits until the service is told something that fits.
    pub(crate) fn told<T>(&self, mut fits: impl FnMut(Told) -> Option<T>) -> T {
        loop {
            if let Some(found) = fits(self.told.lock().unwrap().recv_timeout(LONG).unwrap()) {
                return found;
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place where these tests start a process")]
fn start(words: &[&str]) -> Child {
    Command::new(words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn read_frames(mut bytes: &[u8]) -> Vec<Message> {
    let mut decoder = FrameDecoder::new(usize::MAX);
    std::iter::from_fn(|| decoder.next_frame(&mut bytes).unwrap())
        .map(|frame| Message::parse(&frame).unwrap())
        .collect()
}

pub(crate) fn request(id: u64, method: &str, params: Value) -> Message {
    Message::Request { id, method: method.to_owned(), params }
}

/// The first words of a client, with the token of a former connection.
pub(crate) fn hello(token: Option<&str>) -> Message {
    let mut params = json!({ "api": [1, 1], "name": "other" });
    if let Some(token) = token {
        params["token"] = json!(token);
    }
    request(0, "hello", params)
}

/// A peer that writes what it likes.
pub(crate) struct Raw {
    pub(crate) socket: UnixStream,
    decoder: FrameDecoder,
    input: Vec<u8>,
}

impl Raw {
    pub(crate) fn connect(path: &Path) -> Self {
        Self::over(UnixStream::connect(path).unwrap())
    }

    pub(crate) fn over(socket: UnixStream) -> Self {
        socket.set_read_timeout(Some(LONG)).unwrap();
        socket.set_write_timeout(Some(LONG)).unwrap();
        Self { socket, decoder: FrameDecoder::new(64 << 20), input: Vec::new() }
    }

    /// Writes bytes as they are; that the server may have hung up is for the reader to find out.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> bool {
        self.socket.write_all(bytes).is_ok()
    }

    pub(crate) fn frame(&mut self, payload: &[u8]) -> bool {
        self.write(&encode_frame(payload, usize::MAX).unwrap())
    }

    pub(crate) fn ask(&mut self, id: u64, method: &str, params: Value) -> bool {
        self.frame(&request(id, method, params).to_bytes())
    }

    /// The next message; nothing at the end.
    pub(crate) fn next(&mut self) -> Option<Message> {
        loop {
            let mut input = self.input.as_slice();
            let frame = self.decoder.next_frame(&mut input).unwrap();
            self.input = input.to_vec();
            if let Some(frame) = frame {
                return Some(Message::parse(&frame).unwrap());
            }
            let mut buffer = vec![0; 64 << 10];
            match self.socket.read(&mut buffer) {
                Ok(0) => return None,
                Ok(size) => self.input = buffer[..size].to_vec(),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("nothing came: {error}"),
            }
        }
    }

    /// Why the server hung up; whatever comes before is passed over.
    pub(crate) fn farewell(&mut self) -> Fault {
        let mut last = None;
        while let Some(message) = self.next() {
            last = Some(message);
        }
        match last {
            Some(Message::Event { method, params }) if method == "connection.closed" => {
                Fault::from_value(params).unwrap()
            }
            other => panic!("hung up on with {other:?}"),
        }
    }
}
