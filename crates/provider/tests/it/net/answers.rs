//! Honest servers: what they are sent, and what becomes of what they answer.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use fluffy_provider::{EmbedRequest, Endpoint, Protocol, ProviderError, StopReason};
use fluffy_testkit::server::{Identity, Server, Then, answer};

use super::scene::{ENDS, KEY, at, endpoint, pieces, remote, request, says, stream, turn};

#[test]
fn a_turn_comes_over_tls_and_its_connection_is_kept_for_the_next() {
    let server = Server::start(Identity::Proper, |_, peer| {
        stream(peer, &[": hello\n\n", &says("Hel"), &says("lo"), ENDS]);
        Then::Keep
    });
    let remote = at(&server);
    for _ in 0..3 {
        let turn = turn(&remote).unwrap();
        assert_eq!((turn.text.as_str(), turn.stop), ("Hello", StopReason::End));
    }
    assert_eq!((server.connections(), server.asked().len()), (1, 3));
    let asked = &server.asked()[0];
    assert!(asked.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", asked.head);
    let host = format!("localhost:{}", server.port());
    for (name, value) in [
        ("host", host.as_str()),
        ("authorization", &format!("Bearer {KEY}")),
        ("content-type", "application/json"),
        ("accept-encoding", "identity"),
    ] {
        assert_eq!(asked.header(name), Some(value), "{name}");
    }
    let body: serde_json::Value = serde_json::from_slice(&asked.body).unwrap();
    assert_eq!((&body["model"], &body["stream"]), (&"m".into(), &true.into()));
}

#[test]
fn a_connection_that_the_server_closed_meanwhile_is_not_used_again() {
    let server = Server::start(Identity::Proper, |_, peer| {
        stream(peer, &[&says("a"), ENDS]);
        Then::Close
    });
    let remote = at(&server);
    for count in 1..4 {
        assert_eq!(turn(&remote).unwrap().text, "a");
        server.wait_for_ends(count);
    }
    assert_eq!(server.connections(), 3);
}

#[test]
fn a_connection_that_ends_when_it_is_used_again_costs_nothing() {
    let asked = AtomicUsize::new(0);
    let server = Server::start(Identity::Proper, move |_, peer| {
        if asked.fetch_add(1, Ordering::Relaxed) == 1 {
            return Then::Reset;
        }
        stream(peer, &[&says("a"), ENDS]);
        Then::Keep
    });
    let remote = at(&server);
    for _ in 0..3 {
        assert_eq!(turn(&remote).unwrap().text, "a");
    }
    assert_eq!((server.connections(), server.asked().len()), (2, 4));
}

#[test]
fn a_server_of_this_machine_is_asked_without_tls() {
    let server = Server::start(Identity::Plain, |_, peer| {
        stream(peer, &[&says("plain"), ENDS]);
        Then::Keep
    });
    let remote = remote(endpoint(&server, "http://127.0.0.1:PORT"));
    assert_eq!(turn(&remote).unwrap().text, "plain");
    assert_eq!(turn(&remote).unwrap().text, "plain");
    assert_eq!(server.connections(), 1);
}

#[test]
fn an_answer_may_end_with_its_connection() {
    let server = Server::start(Identity::Proper, |_, peer| {
        let head = "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        peer.write_all([head, &says("old"), ENDS].concat().as_bytes()).unwrap();
        Then::Close
    });
    assert_eq!(turn(&at(&server)).unwrap().text, "old");
}

#[test]
fn a_megabyte_of_text_arrives_whole() {
    let part = "wörds and words ".repeat(64);
    let parts: Vec<String> = (0..1_024).map(|_| says(&part)).collect();
    let server = Server::start(Identity::Proper, move |_, peer| {
        let mut parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        parts.push(ENDS);
        stream(peer, &parts);
        Then::Keep
    });
    let turn = turn(&at(&server)).unwrap();
    assert_eq!(turn.text.len(), 1_024 * 64 * "wörds and words ".len());
    assert!(turn.text.len() > 1 << 20);
}

#[test]
fn calls_arrive_as_the_model_made_them_however_odd() {
    let call = |index: u32, name: &str, arguments: &str| {
        let arguments = serde_json::to_string(arguments).unwrap();
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"id\":\"same\",\
             \"type\":\"function\",\"function\":{{\"name\":\"{name}\",\"arguments\":{arguments}}}}}]}}}}]}}\n\n"
        )
    };
    let calls = [call(0, "fs_read", "{\"path\": nonsense"), call(1, "no_such_tool", "")];
    let ends = ENDS.replace("stop", "tool_calls");
    let server = Server::start(Identity::Proper, move |_, peer| {
        stream(peer, &[&calls[0], &calls[1], &ends]);
        Then::Keep
    });
    let turn = turn(&at(&server)).unwrap();
    let calls: Vec<_> =
        turn.calls.iter().map(|c| (c.name.as_str(), c.arguments.as_str())).collect();
    assert_eq!(calls, [("fs.read", "{\"path\": nonsense"), ("no_such_tool", "")]);
}

#[test]
fn an_answer_without_a_word_is_no_turn() {
    let server = Server::start(Identity::Proper, |_, peer| {
        stream(peer, &[": nothing\n\n"]);
        Then::Keep
    });
    let (pieces, end) = pieces(&at(&server));
    assert!(pieces.is_empty() && end.is_err(), "{pieces:?} {end:?}");
}

#[test]
fn a_server_that_does_not_stream_is_understood_all_the_same() {
    let whole = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"at once"},"finish_reason":"stop"}]}"#;
    let server = Server::start(Identity::Proper, move |_, peer| {
        answer(peer, "200 OK", &[("Content-Type", "application/json")], whole.as_bytes());
        Then::Keep
    });
    let turn = turn(&at(&server)).unwrap();
    assert_eq!((turn.text.as_str(), turn.stop), ("at once", StopReason::End));
}

#[test]
fn what_is_no_stream_is_shown_for_what_it_is() {
    for kind in ["text/html; charset=utf-8", "application/json"] {
        let server = Server::start(Identity::Proper, move |_, peer| {
            answer(peer, "200 OK", &[("Content-Type", kind)], b"please log in");
            Then::Keep
        });
        let error = turn(&at(&server)).unwrap_err();
        assert!(matches!(&error, ProviderError::Malformed(text) if text.contains("please log in")));
    }
}

#[test]
fn a_status_says_what_is_wrong_and_when_to_ask_again() {
    let server = Server::start(Identity::Proper, |asked, peer| {
        let told = asked.head.split(' ').nth(1).unwrap().split('/').nth(1).unwrap().to_owned();
        let mut told = told.split(',');
        let status = told.next().unwrap();
        let header = told.next().and_then(|header| header.split_once('='));
        answer(
            peer,
            &format!("{status} Told"),
            header.as_slice(),
            b"{\"error\":{\"message\":\"so\"}}",
        );
        Then::Keep
    });
    let ask = |path: &str| {
        turn(&remote(endpoint(&server, &format!("https://localhost:PORT/{path}")))).unwrap_err()
    };
    let limited =
        |wait| ProviderError::RateLimited { message: "so".to_owned(), retry_after_ms: wait };
    let busy = |wait| ProviderError::Overloaded { message: "so".to_owned(), retry_after_ms: wait };
    assert_eq!(ask("429"), limited(None));
    assert_eq!(ask("429,retry-after=7"), limited(Some(7_000)));
    assert_eq!(ask("429,retry-after-ms=70"), limited(Some(70)));
    assert_eq!(ask("429,x-should-retry=false"), limited(Some(u64::MAX)));
    assert_eq!(ask("500"), busy(None));
    assert_eq!(ask("529,retry-after=1.5"), busy(Some(1_500)));
    assert_eq!(ask("503,x-should-retry=false"), busy(Some(u64::MAX)));
    assert!(matches!(ask("401"), ProviderError::BadKey(_)));
    assert!(!ask("400").is_retryable());
}

#[test]
fn models_are_listed_and_what_cannot_be_counted_is_not() {
    let server = Server::start(Identity::Proper, |asked, peer| {
        assert!(asked.head.starts_with("GET /v1/models"), "{}", asked.head);
        answer(peer, "200 OK", &[], br#"{"object":"list","data":[{"id":"one"},{"id":"two"}]}"#);
        Then::Keep
    });
    let remote = at(&server);
    let mut waiting = || ControlFlow::Continue(());
    let models = remote.models(&mut waiting).unwrap();
    assert_eq!(models.iter().map(|model| model.id.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(remote.count(&request(), &mut waiting).unwrap(), None);
    assert_eq!(server.connections(), 1);
}

#[test]
fn certificates_that_are_none_are_told_before_anything_is_sent() {
    let server = Server::start(Identity::Proper, |_, _| Then::Close);
    for pem in ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let usual = endpoint(&server, "https://localhost:PORT");
        let error =
            turn(&remote(Endpoint { certificates: Some(pem.to_owned()), ..usual })).unwrap_err();
        assert!(
            matches!(&error, ProviderError::Untrusted(text) if text.contains("configured certificates")),
            "{error}"
        );
    }
    assert_eq!(server.connections(), 0);
}

fn embed(remote: &fluffy_provider::Remote) -> Result<Vec<Vec<f32>>, ProviderError> {
    let texts = vec!["one".to_owned(), "two".to_owned()];
    let request = EmbedRequest { model: "m".to_owned(), texts };
    remote.embed(request, &mut || ControlFlow::Continue(()))
}

#[test]
fn numbers_for_texts_come_the_same_way_and_turns_go_on_behind_them() {
    let server = Server::start(Identity::Proper, |asked, peer| {
        if asked.head.starts_with("POST /v1/chat/completions ") {
            stream(peer, &[&says("a"), ENDS]);
            return Then::Keep;
        }
        assert!(asked.head.starts_with("POST /v1/embeddings HTTP/1.1\r\n"), "{}", asked.head);
        let body: serde_json::Value = serde_json::from_slice(&asked.body).unwrap();
        assert_eq!(body["input"], serde_json::json!(["one", "two"]));
        assert_eq!((&body["model"], &body["encoding_format"]), (&"m".into(), &"float".into()));
        let page = r#"{"data": [{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]}]}"#;
        answer(peer, "200 OK", &[("Content-Type", "application/json")], page.as_bytes());
        Then::Keep
    });
    let remote = at(&server);
    assert_eq!(embed(&remote).unwrap(), [[1.0], [2.0]]);
    assert_eq!(turn(&remote).unwrap().text, "a");
    assert_eq!(embed(&remote).unwrap(), [[1.0], [2.0]]);
    assert_eq!(server.connections(), 1);
}

#[test]
fn numbers_for_texts_that_did_not_come_are_an_error() {
    let server = Server::start(Identity::Proper, |_, peer| {
        answer(peer, "200 OK", &[("Content-Type", "application/json")], b"{\"data\": []}");
        Then::Keep
    });
    assert!(matches!(embed(&at(&server)), Err(ProviderError::Malformed(_))));
    let endpoint = endpoint(&server, "https://localhost:PORT/v1");
    let other = remote(Endpoint { protocol: Protocol::Anthropic, ..endpoint });
    assert!(matches!(embed(&other), Err(ProviderError::Refused(_))));
    let refused = Server::start(Identity::Proper, |_, peer| {
        answer(peer, "500 Oops", &[], KEY.as_bytes());
        Then::Keep
    });
    let error = embed(&at(&refused)).unwrap_err().to_string();
    assert!(!error.contains(KEY), "{error}");
}
