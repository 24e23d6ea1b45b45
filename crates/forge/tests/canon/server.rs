//! A server that stands for every host there is: a proxy of the person's that opens tunnels to nobody but itself.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use fluffy_kernel::Upstream;

/// What it was asked: for which host, and with which head of a request.
pub(crate) type Heard = (String, String);

/// A server on this machine that answers in turn and remembers what it was asked.
pub(crate) struct Server {
    port: u16,
    answers: Arc<Mutex<Vec<String>>>,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Server {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (answers, heard) = (Arc::default(), Arc::default());
        let server = Self { port, answers, heard };
        let (answers, heard) = (Arc::clone(&server.answers), Arc::clone(&server.heard));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, &answers, &heard);
            }
        });
        server
    }

    /// It, as the proxy that the person has to use.
    pub(crate) fn upstream(&self) -> Arc<Upstream> {
        Arc::new(Upstream::new(&format!("127.0.0.1:{}", self.port), None).unwrap())
    }

    /// Has it answer so, in this order.
    pub(crate) fn answers(&self, answers: &[String]) {
        *self.answers.lock().unwrap() = answers.iter().rev().cloned().collect();
        self.heard.lock().unwrap().clear();
    }

    /// What it was asked since then.
    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, answers: &Mutex<Vec<String>>, heard: &Mutex<Vec<Heard>>) {
    let tunnel = head(&mut stream);
    let host = tunnel.split(' ').nth(1).unwrap_or_default().to_owned();
    if stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").is_err() {
        return;
    }
    let request = head(&mut stream);
    heard.lock().unwrap().push((host, request));
    let answer = answers.lock().unwrap().pop();
    let answer = answer.unwrap_or_else(|| response("500 Nothing Left", "", "null"));
    // Whoever has heard enough hangs up.
    let _ = stream.write_all(answer.as_bytes());
}

fn head(stream: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && head.len() < 1 << 16 {
        match stream.read(&mut byte) {
            Ok(1) => head.extend_from_slice(&byte),
            Ok(_) | Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// An answer with a status, more lines of the head, and a body.
pub(crate) fn response(status: &str, more: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}
