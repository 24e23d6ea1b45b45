//! A provider's process as the kernel has it: the real binary in the real sandbox behind the real proxy, and a
//! server with real TLS at the other end.

mod confined;
mod spoken;

#[path = "../../../src/provider_guest.rs"]
pub(crate) mod provider_guest;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use fluffy_base::{Json, Secret};
use fluffy_kernel::{Destination, EventType, ProviderHost, Told, Witness};
use fluffy_provider::{
    Assembler, Endpoint, MAX_HOST_FRAME_BYTES, Message, Model, ModelRequest, Patience, Protocol,
    Provider as _, ProviderError, Remote, ToolDefinition, Turn,
};
use fluffy_sandbox::proxy::Upstream;
use fluffy_sandbox::{Native, NativeOptions, Runtime};
use fluffy_testkit::server::{Peer, Server, begin_stream, chunk};
use provider_guest::ProviderGuests;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fluffy");

/// The key that opens the server's door.
const KEY: &str = "fk-abcdefghijklmnopqrstuvwxyz0123456789";

/// Long enough for an honest server on a busy machine.
const PATIENT: Patience = Patience { connect_ms: 30_000, first_byte_ms: 30_000, idle_ms: 30_000 };

pub(crate) fn sandboxes() -> Arc<dyn Runtime> {
    let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join("provider-host-sandboxes");
    let program = PROGRAM.into();
    Arc::new(Native::open(NativeOptions { program, state, path: vec![], env: vec![] }).unwrap())
}

/// A provider at a server, and where it may go.
struct Scene {
    endpoint: Endpoint,
    destination: Destination,
    witness: Arc<Witness>,
}

impl Scene {
    fn new(server: &Server, url: &str) -> Self {
        let url = url.replace("PORT", &server.port().to_string());
        let endpoint = Endpoint {
            provider: "scripted".to_owned(),
            protocol: Protocol::OpenaiCompatible,
            url: url.parse().unwrap(),
            version: None,
            effort: None,
            certificates: Some(server.authority.clone()),
            patience: PATIENT,
        };
        let (host, port) = (endpoint.url.host().to_owned(), endpoint.url.port());
        let destination = Destination { host, port, upstream: None };
        Self { endpoint, destination, witness: Arc::default() }
    }

    /// What the ledger would have of what was asked of the network.
    fn asked(&self) -> Vec<Told> {
        let mut told = self.witness.untold();
        told.retain(|told| told.note.event == EventType::NetworkRequest);
        told
    }

    fn through(mut self, upstream: Upstream) -> Self {
        self.destination.upstream = Some(Arc::new(upstream));
        self
    }

    fn remote(&self) -> Remote {
        let host = ProviderHost {
            runtime: sandboxes(),
            program: PROGRAM.into(),
            destination: self.destination.clone(),
            frame_bytes: MAX_HOST_FRAME_BYTES,
            witness: Arc::clone(&self.witness),
        };
        let headers = vec![("authorization".to_owned(), Secret::new(format!("Bearer {KEY}")))];
        let model = Model { name: "m".to_owned(), context_window: 100_000, ..Model::default() };
        Remote::new(Box::new(ProviderGuests(host)), self.endpoint.clone(), headers, model)
    }
}

/// What the ledger would say under a name.
fn said<'a>(told: &'a Told, name: &str) -> &'a str {
    told.note.metadata.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text)
}

fn request() -> ModelRequest {
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

fn turn(remote: &Remote) -> Result<Turn, ProviderError> {
    let mut assembler = Assembler::new();
    remote.turn(&request(), &mut |piece| {
        assembler.take(piece).unwrap();
        ControlFlow::Continue(())
    })?;
    Ok(assembler.finish()?)
}

fn says(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

const ENDS: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn stream(peer: &mut dyn Peer, parts: &[&str]) {
    begin_stream(peer);
    for part in parts {
        chunk(peer, part);
    }
    chunk(peer, "");
}
