//! What it costs to ask the kernel something, beside a bare socket with the same bytes in the same run; and what a
//! good client waits for while others misbehave.
//!
//! `cargo bench --package fluffy-kernel --bench ipc`

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use divan::Bencher;
use fluffy_base::{Message, encode_frame};
use fluffy_kernel::{Client, ClientOptions, Peer, Server, ServerOptions, Service, listen};
use serde_json::{Value, json};
use tempfile::TempDir;

fn main() {
    divan::main();
}

const LONG: Duration = Duration::from_secs(60);

/// Answers every request with what it was sent.
struct Echo;

impl Service for Echo {
    fn joined(&self, _: &Peer) {}

    fn received(&self, peer: &Peer, message: Message) {
        if let Message::Request { id, params, .. } = message {
            let _gone = peer.answer(id, Ok(params));
        }
    }

    fn left(&self, _: &Peer) {}
}

/// A server, a good client and perhaps others.
struct Place {
    client: Client,
    stop: Arc<AtomicBool>,
    others: Vec<JoinHandle<()>>,
    server: Option<Server>,
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let socket = dir.path().join("run/s");
        let listener = listen(&socket).unwrap();
        let server = Server::start(listener, Arc::new(Echo), ServerOptions::default()).unwrap();
        let options = ClientOptions { name: "good".to_owned(), token: None, patience: LONG };
        let (client, _) = Client::connect(&socket, options).unwrap();
        Self { client, stop: Arc::default(), others: Vec::new(), server: Some(server), dir }
    }

    /// Lets others do something again and again.
    fn beside(mut self, count: usize, act: fn(&Path)) -> Self {
        for _ in 0..count {
            let (stop, socket) = (Arc::clone(&self.stop), self.dir.path().join("run/s"));
            self.others.push(std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    act(&socket);
                }
            }));
        }
        self
    }

    fn ping(&self) -> Value {
        self.client.call("health.ping", json!({}), LONG).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.server = None;
        for other in self.others.drain(..) {
            other.join().unwrap();
        }
    }
}

fn frame(method: &str, params: Value) -> Vec<u8> {
    let message = Message::Request { id: 1, method: method.to_owned(), params };
    encode_frame(&message.to_bytes(), usize::MAX).unwrap()
}

fn known(socket: &Path) -> Option<UnixStream> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.write_all(&frame("hello", json!({ "api": [1, 1], "name": "other" }))).ok()?;
    Some(stream)
}

/// Frames that are fine, as many as fit, never reading the answers.
fn flood(socket: &Path) {
    let Some(mut stream) = known(socket) else { return };
    let frames = frame("echo", json!({ "text": "x".repeat(200) })).repeat(200);
    let _ = stream.set_write_timeout(Some(Duration::from_millis(50)));
    while stream.write_all(&frames).is_ok() {}
}

/// Frames that cost most to parse.
fn numbers(socket: &Path) {
    let Some(mut stream) = known(socket) else { return };
    let list = format!("[{}0]", "0,".repeat(3_500));
    let frames = encode_frame(list.as_bytes(), usize::MAX).unwrap();
    while stream.write_all(&frames).is_ok() {}
}

/// The largest frame there may be.
fn largest(socket: &Path) {
    let Some(mut stream) = known(socket) else { return };
    let _ = stream.write_all(&frame("none", json!({ "text": "x".repeat((32 << 20) - 100) })));
    let mut byte = [0];
    while stream.read(&mut byte).is_ok_and(|size| size > 0) {}
}

/// As much as a service call of 200 bytes has.
fn params() -> Value {
    json!({ "text": "x".repeat(120) })
}

fn bare(bencher: Bencher<'_, '_>, bytes: &[u8]) {
    let (mut here, mut there) = UnixStream::pair().unwrap();
    let size = bytes.len();
    let echo = std::thread::spawn(move || {
        let mut buffer = vec![0; size];
        while there.read_exact(&mut buffer).is_ok() && there.write_all(&buffer).is_ok() {}
    });
    let mut buffer = vec![0; size];
    bencher.bench_local(|| {
        here.write_all(bytes).unwrap();
        here.read_exact(&mut buffer).unwrap();
    });
    drop(here);
    echo.join().unwrap();
}

#[divan::bench(sample_count = 2000, sample_size = 10)]
fn bare_socket_with_the_bytes_of_a_ping(bencher: Bencher<'_, '_>) {
    bare(bencher, &frame("health.ping", json!({})));
}

#[divan::bench(sample_count = 2000, sample_size = 10)]
fn bare_socket_with_200_bytes(bencher: Bencher<'_, '_>) {
    bare(bencher, &frame("service.echo", params()));
}

#[divan::bench(sample_count = 2000, sample_size = 10)]
fn ping(bencher: Bencher<'_, '_>) {
    let place = Place::new();
    bencher.bench_local(|| place.ping());
}

#[divan::bench(sample_count = 2000, sample_size = 10)]
fn service_call_of_200_bytes(bencher: Bencher<'_, '_>) {
    let place = Place::new();
    bencher.bench_local(|| place.client.call("service.echo", params(), LONG).unwrap());
}

#[divan::bench(sample_count = 2000, sample_size = 1)]
fn ping_while_100_flood(bencher: Bencher<'_, '_>) {
    let place = Place::new().beside(100, flood);
    bencher.bench_local(|| place.ping());
}

#[divan::bench(sample_count = 2000, sample_size = 1)]
fn ping_while_100_send_what_costs_most(bencher: Bencher<'_, '_>) {
    let place = Place::new().beside(100, numbers);
    bencher.bench_local(|| place.ping());
}

#[divan::bench(sample_count = 500, sample_size = 1)]
fn ping_while_2_send_frames_of_32_mib(bencher: Bencher<'_, '_>) {
    let place = Place::new().beside(2, largest);
    bencher.bench_local(|| place.ping());
}
