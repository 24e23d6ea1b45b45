//! A guest in a thread, a proxy of a few lines, and a server behind them.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fluffy_base::{FrameDecoder, Json, Secret};
use fluffy_provider::{
    Assembler, Dial, Endpoint, Guest, GuestFailure, Guests, MAX_HOST_FRAME_BYTES, Message, Model,
    ModelRequest, Patience, Protocol, Provider as _, ProviderError, Remote, StreamEvent,
    ToolDefinition, Turn, serve,
};
use fluffy_testkit::server::{Peer, Server, begin_stream, chunk};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The key that opens the server's door.
pub(crate) const KEY: &str = "fk-0123456789abcdefghijklmnopqrstuvwxyz";

/// Long enough for an honest server on a busy machine.
pub(crate) const PATIENT: Patience =
    Patience { connect_ms: 30_000, first_byte_ms: 30_000, idle_ms: 30_000 };

/// So short that a test can wait for it.
pub(crate) const SHORT: Patience =
    Patience { connect_ms: 30_000, first_byte_ms: 300, idle_ms: 200 };

/// An endpoint at a server.
pub(crate) fn endpoint(server: &Server, url: &str) -> Endpoint {
    Endpoint {
        provider: "scripted".to_owned(),
        protocol: Protocol::OpenaiCompatible,
        url: url.replace("PORT", &server.port().to_string()).parse().unwrap(),
        version: None,
        effort: None,
        certificates: Some(server.authority.clone()),
        patience: PATIENT,
    }
}

/// A provider at an endpoint, through the proxy here.
pub(crate) fn remote(endpoint: Endpoint) -> Remote {
    let dial: Dial = Arc::new(proxy);
    through(endpoint, dial)
}

/// A provider at an endpoint, through this way.
pub(crate) fn through(endpoint: Endpoint, dial: Dial) -> Remote {
    let headers = vec![("authorization".to_owned(), Secret::new(format!("Bearer {KEY}")))];
    let model = Model { name: "m".to_owned(), context_window: 100_000, ..Model::default() };
    Remote::new(Box::new(Threads(dial)), endpoint, headers, model)
}

/// The usual provider at a server that speaks TLS.
pub(crate) fn at(server: &Server) -> Remote {
    remote(endpoint(server, "https://localhost:PORT/v1"))
}

/// The same with little patience.
pub(crate) fn hurried(server: &Server) -> Remote {
    let endpoint = endpoint(server, "https://localhost:PORT/v1");
    remote(Endpoint { patience: SHORT, ..endpoint })
}

pub(crate) fn request() -> ModelRequest {
    ModelRequest {
        model: "m".to_owned(),
        system: "be brief".to_owned(),
        tools: vec![ToolDefinition {
            name: "fs.read".to_owned(),
            summary: "Read a file".to_owned(),
            schema: Json::empty_object(),
        }],
        messages: vec![Message::User { text: "hello".to_owned() }],
        max_output_tokens: 100,
    }
}

/// The next turn.
pub(crate) fn turn(remote: &Remote) -> Result<Turn, ProviderError> {
    let mut assembler = Assembler::new();
    let mut fault = None;
    remote.turn(&request(), &mut |piece| match assembler.take(piece) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            fault = Some(error);
            ControlFlow::Break(())
        }
    })?;
    assert_eq!(fault, None);
    Ok(assembler.finish()?)
}

/// The pieces of the next turn as far as they come, and its end.
pub(crate) fn pieces(remote: &Remote) -> (Vec<StreamEvent>, Result<(), ProviderError>) {
    let mut pieces = Vec::new();
    let end = remote.turn(&request(), &mut |piece| {
        if piece != StreamEvent::Waiting {
            pieces.push(piece);
        }
        ControlFlow::Continue(())
    });
    (pieces, end)
}

/// A chunk of an answer with these words.
pub(crate) fn says(text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}}}}]}}\n\n")
}

/// The last chunks of an answer.
pub(crate) const ENDS: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Streams a whole answer.
pub(crate) fn stream(peer: &mut dyn Peer, parts: &[&str]) {
    begin_stream(peer);
    for part in parts {
        chunk(peer, part);
    }
    chunk(peer, "");
}

/// Opens tunnels to wherever it is asked to.
pub(crate) fn proxy() -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    thread::spawn(move || tunnel(theirs));
    Ok(ours)
}

fn tunnel(mut client: UnixStream) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let target = head.strip_prefix("CONNECT ").unwrap().split(' ').next().unwrap();
    let Ok(mut host) = TcpStream::connect(target.replace("localhost", "127.0.0.1")) else {
        let words = "fluffy let it through, but the host refused the connection\nmore\n";
        let _gone = client.write_all(format!("HTTP/1.1 502 Bad Gateway\r\n\r\n{words}").as_bytes());
        return;
    };
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
    let (mut up, mut down) = (client.try_clone().unwrap(), host.try_clone().unwrap());
    thread::spawn(move || {
        let _gone = io::copy(&mut up, &mut down);
        let _gone = down.shutdown(Shutdown::Write);
    });
    let ended = io::copy(&mut host, &mut client);
    let how = if ended.is_ok() { Shutdown::Write } else { Shutdown::Both };
    let _gone = client.shutdown(how);
}

/// Guests that are threads.
pub(crate) struct Threads(pub(crate) Dial);

struct Thread {
    to: PipeWriter,
    from: PipeReader,
    decoder: FrameDecoder,
    unread: Vec<u8>,
}

impl Guests for Threads {
    fn start(&self) -> Result<Box<dyn Guest>, String> {
        let ((input, to), (from, output)) = (io::pipe().unwrap(), io::pipe().unwrap());
        let dial = Dial::clone(&self.0);
        thread::spawn(move || serve(input, output, dial));
        let decoder = FrameDecoder::new(MAX_HOST_FRAME_BYTES);
        Ok(Box::new(Thread { to, from, decoder, unread: Vec::new() }))
    }
}

impl Guest for Thread {
    fn send(&mut self, bytes: &[u8], _: Duration) -> Result<usize, GuestFailure> {
        self.to.write(bytes).map_err(|_| GuestFailure::Died)
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Vec<u8>>, GuestFailure> {
        loop {
            let mut bytes = self.unread.as_slice();
            let payload = self.decoder.next_frame(&mut bytes);
            self.unread = bytes.to_vec();
            if let Some(payload) = payload.map_err(|_| GuestFailure::Garbled)? {
                return Ok(Some(payload));
            }
            let limit = Timespec::try_from(wait).unwrap();
            if poll(&mut [PollFd::new(&self.from, PollFlags::IN)], Some(&limit)) == Ok(0) {
                return Ok(None);
            }
            let mut buffer = vec![0; 1 << 16];
            match self.from.read(&mut buffer).unwrap_or(0) {
                0 => return Err(GuestFailure::Died),
                count => self.unread.extend_from_slice(&buffer[..count]),
            }
        }
    }
}
