//! The forge's gateway as it is asked in earnest: the real binary in the real sandbox behind the real proxy, and a
//! server on this machine at the other end, which answers with what real servers answered.

#[path = "../../../src/gateway.rs"]
mod local;

use std::path::Path;
use std::sync::Arc;

use fluffy_base::{Clock, SystemClock, VirtualClock};
use fluffy_forge::{
    Advice, Classified, Facts, FailureKind, Gateway as _, GatewayError, MAX_PROMPT_CHARS, Proposal,
    Question, SideEffect, SkillName, Told, Unusable, advise, triggers,
};
use fluffy_kernel::{Destination, ProviderHost};
use fluffy_provider::{Endpoint, MAX_HOST_FRAME_BYTES, Model, Patience, Protocol, Remote};
use fluffy_testkit::server::{
    Asked, Identity, Peer, Server, Then, answer, begin_stream, chunk, chunk_of_bytes,
};
use local::LocalGateway;
use serde_json::{Value, json};

use super::provider_host::{provider_guest::ProviderGuests, sandboxes};

/// Long enough for an honest server on a busy machine.
const PATIENT_MS: u64 = 30_000;

/// A gateway at a port of this machine.
fn at(port: u16, timeout_ms: u64, clock: Box<dyn Clock>) -> LocalGateway {
    let patience =
        Patience { connect_ms: timeout_ms, first_byte_ms: timeout_ms, idle_ms: timeout_ms };
    let endpoint = Endpoint {
        provider: "gateway".to_owned(),
        protocol: Protocol::OpenaiCompatible,
        url: format!("http://localhost:{port}/v1").parse().unwrap(),
        version: None,
        effort: None,
        certificates: None,
        patience,
    };
    let host = ProviderHost {
        runtime: sandboxes(),
        program: env!("CARGO_BIN_EXE_fluffy").into(),
        destination: Destination { host: "localhost".to_owned(), port, upstream: None },
        frame_bytes: MAX_HOST_FRAME_BYTES,
        witness: Arc::default(),
    };
    let model = Model { name: "gpt-oss-20b".to_owned(), ..Model::default() };
    let remote = Remote::new(Box::new(ProviderGuests(host)), endpoint, Vec::new(), model);
    LocalGateway::new(remote, timeout_ms, clock)
}

fn patient(server: &Server) -> LocalGateway {
    at(server.port(), PATIENT_MS, Box::new(SystemClock))
}

/// A server without TLS that answers every request like this.
fn serving(manner: impl Fn(&Asked, &mut dyn Peer) -> Then + Send + Sync + 'static) -> Server {
    Server::start(Identity::Plain, manner)
}

fn says(text: &str) -> String {
    let event = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    format!("data: {event}\n\n")
}

const ENDS: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// A server that says one thing, streamed.
pub(crate) fn saying(text: &str) -> Server {
    let events = says(text);
    serving(move |_, peer| {
        begin_stream(peer);
        chunk(peer, &events);
        chunk(peer, ENDS);
        chunk(peer, "");
        Then::Keep
    })
}

/// What a real server once answered.
fn recorded(name: &str) -> Vec<u8> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../provider/tests/recordings");
    std::fs::read(dir.join(name)).unwrap()
}

fn body(asked: &Asked) -> Value {
    serde_json::from_slice(&asked.body).unwrap()
}

#[test]
fn for_8_a_gateway_is_asked_for_text_and_sent_no_key() {
    let server = saying("Hello");
    let gateway = patient(&server);
    assert_eq!(gateway.generate("say hello").unwrap(), "Hello");
    assert_eq!(gateway.generate("again").unwrap(), "Hello");
    assert_eq!(server.connections(), 1);
    let asked = &server.asked()[0];
    assert!(asked.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", asked.head);
    assert_eq!(asked.header("authorization"), None);
    let body = body(asked);
    assert_eq!(body["model"], "gpt-oss-20b");
    assert_eq!(body["messages"], json!([{"role": "user", "content": "say hello"}]));
    assert!(body.get("tools").is_none());
}

#[test]
fn for_8_a_server_that_does_not_stream_is_understood() {
    let whole = json!({"object": "chat.completion", "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "whole"}}
    ]});
    let server = serving(move |_, peer| {
        answer(
            peer,
            "200 OK",
            &[("Content-Type", "application/json")],
            whole.to_string().as_bytes(),
        );
        Then::Keep
    });
    assert_eq!(patient(&server).generate("x").unwrap(), "whole");
}

#[test]
fn for_14_texts_become_numbers() {
    let server = serving(|asked, peer| {
        let texts = body(asked)["input"].as_array().unwrap().len();
        let data: Vec<_> = (0..texts)
            .rev()
            .map(|index| json!({"object": "embedding", "index": index, "embedding": [index, 0.5]}))
            .collect();
        let page = json!({"object": "list", "data": data}).to_string();
        answer(peer, "200 OK", &[("Content-Type", "application/json")], page.as_bytes());
        Then::Keep
    });
    let gateway = patient(&server);
    let texts = ["a".to_owned(), "b".to_owned()];
    assert_eq!(gateway.embed(&texts).unwrap(), [[0.0, 0.5], [1.0, 0.5]]);
    assert!(gateway.embed(&[]).unwrap().is_empty());
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].head.starts_with("POST /v1/embeddings HTTP/1.1\r\n"));
    assert_eq!(body(&asked[0])["input"], json!(texts));
}

#[test]
fn for_8_what_is_too_long_is_not_sent() {
    let server = saying("x");
    let gateway = patient(&server);
    let long = "é".repeat(MAX_PROMPT_CHARS + 1);
    assert!(matches!(gateway.generate(&long), Err(GatewayError::TooMuch { .. })));
    assert!(matches!(gateway.embed(&[long]), Err(GatewayError::TooMuch { .. })));
    assert_eq!(server.connections(), 0);
}

#[test]
fn for_8_a_gateway_that_is_not_there_says_so() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let gateway = at(port, PATIENT_MS, Box::new(SystemClock));
    assert!(matches!(gateway.generate("x"), Err(GatewayError::Unreachable(_))));
    assert!(matches!(gateway.embed(&["x".to_owned()]), Err(GatewayError::Unreachable(_))));
}

#[test]
fn for_8_a_server_that_says_nothing_is_late() {
    let server = serving(|_, peer| {
        peer.wait_for_end();
        Then::Close
    });
    let gateway = at(server.port(), 300, Box::new(SystemClock));
    assert!(matches!(gateway.generate("x"), Err(GatewayError::Late { .. })));
    assert!(matches!(gateway.embed(&["x".to_owned()]), Err(GatewayError::Late { .. })));
}

#[test]
fn for_8_a_server_that_never_comes_to_an_end_is_hung_up_on() {
    let server = serving(|_, peer| {
        begin_stream(peer);
        while chunk(peer, &says("more ")) {}
        Then::Close
    });
    // A second goes by whenever somebody looks at the clock.
    let gateway = at(server.port(), PATIENT_MS, Box::new(VirtualClock::new(0, 1_000)));
    assert_eq!(gateway.generate("x"), Err(GatewayError::Late { waited_ms: PATIENT_MS }));
    server.wait_for_ends(1);
    // However much time there is: it is too long at last.
    let gateway = at(server.port(), PATIENT_MS, Box::new(VirtualClock::new(0, 0)));
    assert!(matches!(gateway.generate("x"), Err(GatewayError::AnswerTooLong { .. })));
}

#[test]
fn for_8_what_is_no_answer_is_none() {
    let refused = |name: &str| {
        let body = recorded(name);
        serving(move |_, peer| {
            answer(peer, "401 Unauthorized", &[("Content-Type", "application/json")], &body);
            Then::Keep
        })
    };
    let server = refused("rig--llamacpp-error_matrix-missing_api_key_is_401.0.json");
    assert!(matches!(patient(&server).generate("x"), Err(GatewayError::Declined(_))));
    for (status, kind, page) in [
        ("500 Oops", "text/plain", "out of memory"),
        ("404 Not Found", "application/json", "{\"error\":{\"message\":\"no such model\"}}"),
    ] {
        let server = serving(move |_, peer| {
            answer(peer, status, &[("Content-Type", kind)], page.as_bytes());
            Then::Keep
        });
        let gateway = patient(&server);
        let error = gateway.generate("x").unwrap_err();
        assert!(matches!(error, GatewayError::Declined(_)), "{status}: {error:?}");
        let error = gateway.embed(&["x".to_owned()]).unwrap_err();
        assert!(matches!(error, GatewayError::Declined(_)), "{status}: {error:?}");
    }
    for page in ["<html>hello</html>", "{}", "[1,2]", "nothing", "\u{0}"] {
        for kind in ["text/html", "application/json", "text/event-stream"] {
            let server = serving(move |_, peer| {
                answer(peer, "200 OK", &[("Content-Type", kind)], page.as_bytes());
                Then::Keep
            });
            let gateway = patient(&server);
            gateway.generate("x").unwrap_err();
            gateway.embed(&["x".to_owned()]).unwrap_err();
        }
    }
}

#[test]
fn for_8_an_answer_that_is_empty_cut_or_no_text_is_none() {
    assert_eq!(patient(&saying(" \n")).generate("x"), Err(GatewayError::Empty));
    let calls = recorded(
        "rig--llamacpp-streaming_tools-raw_stream_surfaces_two_distinct_tool_calls_before_text.0.sse",
    );
    let cut =
        recorded("rig--llamacpp-truncation_matrix-streaming_tool_call_cut_mid_arguments.0.sse");
    let odd = [
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\xff\"}}]}\n\n",
        ENDS.as_bytes(),
    ]
    .concat();
    for bytes in [calls, cut, odd] {
        let server = serving(move |_, peer| {
            begin_stream(peer);
            chunk_of_bytes(peer, &bytes);
            chunk(peer, "");
            Then::Keep
        });
        let said = patient(&server).generate("x");
        assert!(matches!(said, Err(GatewayError::Garbled(_))), "{said:?}");
    }
    let half = says("half");
    let server = serving(move |_, peer| {
        begin_stream(peer);
        chunk(peer, &half);
        Then::Reset
    });
    patient(&server).generate("x").unwrap_err();
}

/// What comes of asking a server for advice.
fn advised(gateway: &LocalGateway) -> Advice {
    let schema = json!({"type": "object", "additionalProperties": false});
    let proposal = Proposal {
        name: SkillName::parse("write_note").unwrap(),
        description: "Writes a note".to_owned(),
        input: schema.clone(),
        output: schema,
        side_effect: SideEffect::ReadOnly,
        reads: Vec::new(),
        writes: Vec::new(),
        hosts: Vec::new(),
        secrets: Vec::new(),
        model: false,
    };
    let classified = Classified { kind: FailureKind::VerifyTest, told: Told::Gates };
    let facts = Facts::default();
    let question =
        Question { proposal: &proposal, packet: PACKET, classified, facts: &facts, hint: None };
    let advice = advise(&question, gateway);
    let fired = triggers(classified, 1, &advice);
    assert_eq!(fired.is_empty(), matches!(advice, Advice::Given { .. }), "{fired:?}");
    advice
}

const PACKET: &str =
    "# Build `write_note`\n\nClass: READ_ONLY. It must not use the network.\n\n- be short\n";

#[test]
fn for_8_advice_of_a_real_server_is_used_refused_or_done_without() {
    let better = PACKET.replace("- be short", "- be short and test the empty title");
    let advice = advised(&patient(&saying(&better)));
    assert_eq!(advice.packet(PACKET), better);
    let wider = PACKET.replace("must not use", "may use");
    assert!(matches!(advised(&patient(&saying(&wider))), Advice::Widens { .. }));
    let busy = serving(|_, peer| {
        answer(peer, "503 Busy", &[], b"");
        Then::Keep
    });
    let advice = advised(&patient(&busy));
    assert!(matches!(advice, Advice::Unusable(Unusable::Gateway(_))), "{advice:?}");
    assert_eq!(advice.packet(PACKET), PACKET);
}
