//! Servers that are slow, broken, false or prying.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use fluffy_provider::{Dial, Endpoint, Patience, ProviderError, StreamEvent};
use fluffy_testkit::server::{Identity, Peer, Server, Then, answer, begin_stream, chunk};

use super::scene::{
    ENDS, KEY, PATIENT, SHORT, at, endpoint, hurried, pieces, remote, says, stream, through, turn,
};

/// Sends a byte now and then, until nobody takes it any more.
fn drip(peer: &mut dyn Peer, bytes: &[u8]) {
    let (_nobody, never) = mpsc::channel::<()>();
    for byte in bytes.iter().cycle() {
        if peer.write_all(&[*byte]).and_then(|()| peer.flush()).is_err() {
            return;
        }
        let _waited = never.recv_timeout(Duration::from_millis(40));
    }
}

#[test]
fn a_server_that_never_answers_is_left() {
    let server = Server::start(Identity::Proper, |_, peer| {
        peer.wait_for_end();
        Then::Close
    });
    assert_eq!(turn(&hurried(&server)).unwrap_err(), ProviderError::TimedOut { waited_ms: 300 });
}

#[test]
fn a_server_that_falls_silent_in_the_middle_is_left() {
    let server = Server::start(Identity::Proper, |_, peer| {
        begin_stream(peer);
        chunk(peer, &says("a"));
        peer.wait_for_end();
        Then::Close
    });
    let (pieces, end) = pieces(&hurried(&server));
    assert_eq!(pieces, [StreamEvent::Text("a".to_owned())]);
    assert_eq!(end.unwrap_err(), ProviderError::TimedOut { waited_ms: 200 });
}

#[test]
fn comments_keep_a_thinking_server_company() {
    let server = Server::start(Identity::Proper, |_, peer| {
        let (_nobody, never) = mpsc::channel::<()>();
        begin_stream(peer);
        for _ in 0..25 {
            chunk(peer, ": thinking\n\n");
            let _waited = never.recv_timeout(Duration::from_millis(40));
        }
        chunk(peer, &says("done"));
        chunk(peer, ENDS);
        chunk(peer, "");
        Then::Keep
    });
    let usual = endpoint(&server, "https://localhost:PORT/v1");
    let patience = Patience { idle_ms: 900, ..SHORT };
    let patience = Patience { first_byte_ms: 30_000, ..patience };
    assert_eq!(turn(&remote(Endpoint { patience, ..usual })).unwrap().text, "done");
}

#[test]
fn comments_alone_are_not_listened_to_for_ever() {
    let server = Server::start(Identity::Plain, |_, peer| {
        begin_stream(peer);
        while chunk(peer, ": thinking\n\n") {}
        Then::Close
    });
    let usual = endpoint(&server, "http://localhost:PORT/v1");
    let patience = Patience { idle_ms: 50, ..PATIENT };
    let error = turn(&remote(Endpoint { patience, ..usual })).unwrap_err();
    assert_eq!(error, ProviderError::TimedOut { waited_ms: 1_500 });
}

#[test]
fn a_head_that_comes_byte_by_byte_has_its_time() {
    let server = Server::start(Identity::Proper, |_, peer| {
        drip(peer, b"HTTP/1.1 200 OK\r\nx: y\r\nx: y");
        Then::Close
    });
    assert_eq!(turn(&hurried(&server)).unwrap_err(), ProviderError::TimedOut { waited_ms: 300 });
}

#[test]
fn an_event_that_comes_byte_by_byte_and_never_ends_has_its_time() {
    let server = Server::start(Identity::Proper, |_, peer| {
        peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").unwrap();
        drip(peer, b"x");
        Then::Close
    });
    assert_eq!(turn(&hurried(&server)).unwrap_err(), ProviderError::TimedOut { waited_ms: 800 });
}

#[test]
fn a_refusal_that_comes_byte_by_byte_is_one_by_its_status() {
    let server = Server::start(Identity::Proper, |_, peer| {
        peer.write_all(b"HTTP/1.1 500 Broken\r\nContent-Length: 99999\r\n\r\n").unwrap();
        drip(peer, b"x\n");
        Then::Close
    });
    assert!(matches!(turn(&hurried(&server)).unwrap_err(), ProviderError::Overloaded { .. }));
}

#[test]
fn whoever_does_not_greet_back_is_left() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = Server::start(Identity::Proper, |_, _| Then::Close);
    let usual = endpoint(&server, &format!("https://localhost:{port}"));
    let patience = Patience { connect_ms: 300, ..SHORT };
    let error = turn(&remote(Endpoint { patience, ..usual })).unwrap_err();
    assert!(
        matches!(&error, ProviderError::Network(text) if text.contains("did not greet back in time")),
        "{error}"
    );
}

#[test]
fn a_connection_that_is_reset_in_a_call_is_no_turn() {
    let begun = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"1\",\"function\":\
                 {\"name\":\"fs_read\",\"arguments\":\"{\\\"path\\\":\"}}]}}]}\n\n";
    for identity in [Identity::Proper, Identity::Plain] {
        let (told, heard) = mpsc::channel::<()>();
        let heard = std::sync::Mutex::new(heard);
        let server = Server::start(identity, move |_, peer| {
            begin_stream(peer);
            chunk(peer, begun);
            // Not before it has been read: a reset takes back what was not.
            heard.lock().unwrap().recv().unwrap();
            Then::Reset
        });
        let url = if identity == Identity::Plain { "http" } else { "https" };
        let remote = remote(endpoint(&server, &format!("{url}://localhost:PORT/v1")));
        let (pieces, end) = {
            use fluffy_provider::Provider as _;
            let mut pieces = Vec::new();
            let end = remote.turn(&super::scene::request(), &mut |piece| {
                if piece != StreamEvent::Waiting {
                    pieces.push(piece);
                    let _once = told.send(());
                }
                std::ops::ControlFlow::Continue(())
            });
            (pieces, end)
        };
        assert!(matches!(pieces[0], StreamEvent::CallStarted { .. }), "{pieces:?}");
        assert!(!pieces.iter().any(|piece| matches!(piece, StreamEvent::Stop(_))));
        assert!(matches!(end.unwrap_err(), ProviderError::Network(_)));
    }
}

#[test]
fn an_answer_that_is_cut_off_is_no_turn() {
    for head in ["Transfer-Encoding: chunked", "Content-Length: 9999"] {
        let server = Server::start(Identity::Proper, move |_, peer| {
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{head}\r\n\r\n");
            let body = says("cut");
            let body = if head.contains("chunked") {
                format!("{:x}\r\n{body}\r\n", body.len())
            } else {
                body
            };
            peer.write_all([head, body].concat().as_bytes()).unwrap();
            Then::Close
        });
        let (pieces, end) = pieces(&at(&server));
        assert_eq!(pieces, [StreamEvent::Text("cut".to_owned())]);
        let error = end.unwrap_err();
        assert!(
            matches!(&error, ProviderError::Network(text) if text.contains("cut off")),
            "{error}"
        );
    }
}

#[test]
fn nobody_is_followed_to_another_host() {
    let other = Server::start(Identity::Proper, |_, _| Then::Close);
    for status in [301, 302, 303, 307, 308] {
        let to = format!("https://localhost:{}/v1", other.port());
        let expected = to.clone();
        let server = Server::start(Identity::Proper, move |_, peer| {
            answer(peer, &format!("{status} Moved"), &[("Location", &to)], b"");
            Then::Keep
        });
        let error = turn(&at(&server)).unwrap_err();
        let ProviderError::Refused(text) = &error else { panic!("{error}") };
        assert!(text.contains(&expected) && text.contains("do not follow"), "{text}");
        assert_eq!(server.asked().len(), 1);
    }
    assert_eq!(other.connections(), 0);
}

#[test]
fn a_server_that_cannot_prove_who_it_is_is_told_nothing() {
    for (identity, words) in [
        (Identity::OtherName, "is for another name"),
        (Identity::Expired, "has expired"),
        (Identity::SelfSigned, "nobody who is trusted has signed"),
    ] {
        let server = Server::start(identity, |_, _| Then::Close);
        let error = turn(&at(&server)).unwrap_err();
        let ProviderError::Untrusted(text) = &error else { panic!("{identity:?}: {error}") };
        assert!(text.contains(words), "{identity:?}: {text}");
        assert!(!error.is_retryable());
        assert!(server.asked().is_empty());
    }
    // Signed well, by somebody whom nobody named.
    let server = Server::start(Identity::Proper, |_, _| Then::Close);
    let usual = endpoint(&server, "https://localhost:PORT");
    let error = turn(&remote(Endpoint { certificates: None, ..usual })).unwrap_err();
    assert!(matches!(error, ProviderError::Untrusted(_)), "{error}");
    assert!(server.asked().is_empty());
}

#[test]
fn a_server_without_tls_where_tls_is_expected_is_told_so() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _gone =
                stream.unwrap().write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let server = Server::start(Identity::Proper, |_, _| Then::Close);
    let error = turn(&remote(endpoint(&server, &format!("https://localhost:{port}")))).unwrap_err();
    assert!(
        matches!(&error, ProviderError::Malformed(text) if text.contains("does not speak TLS")),
        "{error}"
    );
}

#[test]
fn a_head_without_end_is_cut() {
    let server = Server::start(Identity::Proper, |_, peer| {
        let _gone = peer.write_all(b"HTTP/1.1 200 OK\r\n");
        while peer.write_all(b"x-more: and more of it, without an end\r\n").is_ok() {}
        Then::Close
    });
    let error = turn(&at(&server)).unwrap_err();
    assert!(matches!(&error, ProviderError::Malformed(_)), "{error}");
}

#[test]
fn an_event_without_end_is_cut() {
    let server = Server::start(Identity::Plain, |_, peer| {
        let _gone =
            peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ");
        while peer.write_all(&[b'x'; 1 << 16]).is_ok() {}
        Then::Close
    });
    let error = turn(&remote(endpoint(&server, "http://localhost:PORT"))).unwrap_err();
    assert!(
        matches!(&error, ProviderError::Malformed(text) if text.contains("an event of more than")),
        "{error}"
    );
}

#[test]
fn a_page_of_models_without_end_is_cut() {
    let server = Server::start(Identity::Plain, |_, peer| {
        let _gone = peer.write_all(b"HTTP/1.1 200 OK\r\n\r\n{\"data\":[\n");
        while peer.write_all(b"{\"id\":\"one more\"},\n".repeat(1_000).as_slice()).is_ok() {}
        Then::Close
    });
    let remote = remote(endpoint(&server, "http://localhost:PORT"));
    let error = remote.models(&mut || std::ops::ControlFlow::Continue(())).unwrap_err();
    assert!(
        matches!(&error, ProviderError::Malformed(text) if text.contains("larger than")),
        "{error}"
    );
}

#[test]
fn a_key_that_the_server_echoes_comes_out_masked_wherever_it_is_split() {
    let turns = Arc::new(AtomicUsize::new(0));
    let shared = Arc::clone(&turns);
    let server = Server::start(Identity::Proper, move |asked, peer| {
        let key = asked.header("authorization").unwrap().strip_prefix("Bearer ").unwrap();
        let (one, other) = key.split_at(shared.fetch_add(1, Ordering::SeqCst));
        let arguments = |text: &str| {
            format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"c\",\"function\":\
                 {{\"name\":\"fs_read\",\"arguments\":\"{text}\"}}}}]}}}}]}}\n\n"
            )
        };
        stream(
            peer,
            &[
                &says(&format!("your key is {one}")),
                &says(&format!("{other}!")),
                &arguments(&format!("<{one}")),
                &arguments(&format!("{other}>")),
                &ENDS.replace("stop", "tool_calls"),
            ],
        );
        Then::Keep
    });
    let remote = at(&server);
    for at in 0..=KEY.len() {
        let turn = turn(&remote).unwrap();
        assert_eq!(turn.text, "your key is ***!", "{at}");
        assert_eq!(turn.calls[0].arguments, "<***>", "{at}");
    }
}

#[test]
fn a_key_that_the_server_echoes_in_an_error_comes_out_masked() {
    for (status, kind) in
        [("401 No", "application/json"), ("500 No", "text/plain"), ("200 OK", "text/html")]
    {
        let server = Server::start(Identity::Proper, move |asked, peer| {
            let key = asked.header("authorization").unwrap();
            let body =
                format!("{{\"error\":{{\"message\":\"not with {key}\",\"code\":\"{key}\"}}}}");
            answer(peer, status, &[("Content-Type", kind)], body.as_bytes());
            Then::Keep
        });
        let error = turn(&at(&server)).unwrap_err();
        let told = format!("{error:?}");
        assert!(told.contains("not with Bearer ***") && !told.contains("0123456789"), "{told}");
    }
    let server = Server::start(Identity::Proper, move |asked, peer| {
        let key = asked.header("authorization").unwrap();
        answer(peer, "302 Found", &[("Location", &format!("https://evil.example/?k={key}"))], b"");
        Then::Keep
    });
    let told = format!("{:?}", turn(&at(&server)).unwrap_err());
    assert!(told.contains("evil.example") && !told.contains("0123456789"), "{told}");
}

#[test]
fn what_the_proxy_says_is_told_and_a_rule_is_not_tried_again() {
    let server = Server::start(Identity::Proper, |_, _| Then::Close);
    let says = |answer: &'static str| -> ProviderError {
        let dial: Dial = Arc::new(move || {
            let (ours, mut theirs) = UnixStream::pair()?;
            theirs.write_all(answer.as_bytes())?;
            theirs.shutdown(std::net::Shutdown::Write)?;
            // Held until the other side is done with it.
            std::thread::spawn(move || theirs.wait_for_end());
            Ok(ours)
        });
        turn(&through(endpoint(&server, "https://api.example"), dial)).unwrap_err()
    };
    let refused = "fluffy refused `api.example:443`: the host is not listed";
    let error = says(
        "HTTP/1.1 403 Forbidden\r\nX: y\r\n\r\nfluffy refused `api.example:443`: the host is not listed\n\
         to allow it, list it\n",
    );
    assert_eq!(error, ProviderError::Blocked(refused.to_owned()));
    assert!(!error.is_retryable());
    let error = says("HTTP/1.1 502 Bad Gateway\r\n\r\nthe name could not be looked up\n");
    assert_eq!(error, ProviderError::Network("the name could not be looked up".to_owned()));
    for nonsense in ["", "nonsense\r\n\r\n", "HTTP/1.1 OK\r\n\r\n", "HTTP/1.1 200 OK\r\n"] {
        assert!(matches!(says(nonsense), ProviderError::Network(_)), "{nonsense:?}");
    }
}

#[test]
fn a_server_of_this_machine_that_does_not_run_is_asked_about() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = Server::start(Identity::Proper, |_, _| Then::Close);
    let error =
        turn(&remote(endpoint(&server, &format!("http://localhost:{port}/v1")))).unwrap_err();
    assert!(
        matches!(&error, ProviderError::Network(text) if text.contains("is the server running?")),
        "{error}"
    );
}
