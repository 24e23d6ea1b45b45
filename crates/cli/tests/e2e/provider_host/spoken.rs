//! What is said with a provider, from the kernel's side to the server and back.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::thread;

use fluffy_base::Secret;
use fluffy_kernel::{EventType, Told};
use fluffy_provider::{Endpoint, Patience, Provider as _, ProviderError, StreamEvent};
use fluffy_sandbox::proxy::{Refusal, Upstream};
use fluffy_testkit::server::{Identity, Server, Then, answer, begin_stream, chunk};

use super::{ENDS, KEY, Scene, request, said, says, stream, turn};

#[test]
fn a_turn_goes_the_whole_way_and_the_connection_is_kept() {
    let server = Server::start(Identity::Proper, |_, peer| {
        stream(peer, &[&says("Hel"), &says("lo"), ENDS]);
        Then::Keep
    });
    for url in ["https://localhost:PORT/v1", "https://127.0.0.1:PORT/v1"] {
        let scene = Scene::new(&server, url);
        let remote = scene.remote();
        let before = server.connections();
        for _ in 0..3 {
            assert_eq!(turn(&remote).unwrap().text, "Hello");
        }
        assert_eq!(server.connections(), before + 1, "{url}");
        drop(remote);
        let asked = scene.asked();
        let [passed, closed] = asked.as_slice() else { panic!("{asked:?}") };
        assert_eq!(said(passed, "became"), "passed");
        assert!(said(closed, "became").starts_with("closed"), "{asked:?}");
        assert_eq!(said(closed, "port"), server.port().to_string());
        assert!(!said(closed, "bytes_up").is_empty() && !said(closed, "bytes_down").is_empty());
        let events: Vec<_> = scene.witness.untold().iter().map(|told| told.note.event).collect();
        assert_eq!(events.first(), Some(&EventType::SandboxCreated));
        assert_eq!(events.last(), Some(&EventType::SandboxDestroyed));
    }
    assert_eq!(server.asked()[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
}

#[test]
fn a_server_of_this_machine_is_asked_without_tls() {
    let server = Server::start(Identity::Plain, |_, peer| {
        stream(peer, &[&says("plain"), ENDS]);
        Then::Keep
    });
    for url in ["http://localhost:PORT/v1", "http://127.0.0.1:PORT"] {
        assert_eq!(turn(&Scene::new(&server, url).remote()).unwrap().text, "plain");
    }
}

#[test]
fn a_server_that_does_not_run_and_a_name_that_is_none_are_told_apart() {
    let server = Server::start(Identity::Plain, |_, _| Then::Close);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let told = |url: &str| turn(&Scene::new(&server, url).remote()).unwrap_err();
    let error = told(&format!("http://127.0.0.1:{port}/v1"));
    let ProviderError::Network(text) = &error else { panic!("{error}") };
    assert!(
        text.contains("refused the connection") && text.contains("is the server running?"),
        "{text}"
    );
    let error = told("https://no-such-host.invalid");
    let ProviderError::Network(text) = &error else { panic!("{error}") };
    assert!(text.contains("could not be looked up"), "{text}");
}

#[test]
fn the_battery_gives_errors_and_the_same_provider_answers_on() {
    let moods = Arc::new(Mutex::new(""));
    let mood = Arc::clone(&moods);
    let server = Server::start(Identity::Proper, move |asked, peer| {
        let mood = *mood.lock().unwrap();
        match mood {
            "busy" => answer(peer, "429 Slow", &[("retry-after", "2")], b"{}"),
            "broken" => answer(peer, "500 Broken", &[], b"oh"),
            "overloaded" => answer(peer, "529 Overloaded", &[], b"{}"),
            "elsewhere" => {
                answer(peer, "307 Elsewhere", &[("location", "https://evil.example/")], b"");
            }
            "echo" => {
                let key = asked.header("authorization").unwrap();
                answer(peer, "401 No", &[], format!("what is {key}?").as_bytes());
            }
            "reset" => {
                begin_stream(peer);
                chunk(peer, &says("half"));
                return Then::Reset;
            }
            "silent" => {
                peer.wait_for_end();
                return Then::Close;
            }
            "empty" => stream(peer, &[]),
            _ => stream(peer, &[&says("good"), ENDS]),
        }
        Then::Keep
    });
    let mut scene = Scene::new(&server, "https://localhost:PORT/v1");
    let patience = Patience { first_byte_ms: 3_000, ..super::PATIENT };
    scene.endpoint = Endpoint { patience, ..scene.endpoint };
    let remote = scene.remote();
    for (name, expected) in [
        ("busy", "asks to slow down"),
        ("broken", "is overloaded"),
        ("overloaded", "is overloaded"),
        ("elsewhere", "sends us to `https://evil.example/`"),
        ("echo", "what is Bearer ***?"),
        ("reset", "could not be reached"),
        ("silent", "said nothing for 3000 ms"),
        ("empty", ""),
    ] {
        *moods.lock().unwrap() = name;
        let error = turn(&remote).unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
        assert!(!error.contains("abcdef"), "{name}: {error}");
        *moods.lock().unwrap() = "good";
        assert_eq!(turn(&remote).unwrap().text, "good", "after {name}");
    }
}

#[test]
fn who_cannot_prove_who_it_is_is_told_nothing() {
    for (identity, words) in [
        (Identity::OtherName, "is for another name"),
        (Identity::Expired, "has expired"),
        (Identity::SelfSigned, "nobody who is trusted"),
    ] {
        let server = Server::start(identity, |_, _| Then::Close);
        let error = turn(&Scene::new(&server, "https://localhost:PORT").remote()).unwrap_err();
        assert!(
            matches!(&error, ProviderError::Untrusted(text) if text.contains(words)),
            "{error}"
        );
        assert!(server.asked().is_empty());
    }
}

#[test]
fn an_answer_that_is_not_wanted_any_more_is_hung_up_on_at_once() {
    let server = Server::start(Identity::Proper, |_, peer| {
        begin_stream(peer);
        chunk(peer, &says("a"));
        peer.wait_for_end();
        Then::Close
    });
    let remote = Scene::new(&server, "https://localhost:PORT/v1").remote();
    let end = remote.turn(&request(), &mut |piece| match piece {
        StreamEvent::Text(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    assert_eq!(end, Err(ProviderError::Cancelled));
    // The server sees it while the provider is still there.
    server.wait_for_ends(1);
    // Also one that has not said a word yet.
    let end = remote.turn(&request(), &mut |_| {
        if server.asked().len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(end, Err(ProviderError::Cancelled));
    server.wait_for_ends(2);
}

/// A proxy of the person's own: what it was asked, and whether it lets that through.
fn upstream(opens: bool) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let shared = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut client, mut head, mut byte) = (stream.unwrap(), Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).unwrap() == 1 {
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap();
            shared.lock().unwrap().push(head.clone());
            if !opens {
                client.write_all(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n").unwrap();
                continue;
            }
            let target = head.split(' ').nth(1).unwrap();
            // It alone knows where the name leads.
            let target =
                target.replace("provider.example", "127.0.0.1").replace("localhost", "127.0.0.1");
            let mut host = TcpStream::connect(target).unwrap();
            client.write_all(b"HTTP/1.1 200 OK\r\nVia: somebody\r\n\r\n").unwrap();
            let (mut up, mut down) = (client.try_clone().unwrap(), host.try_clone().unwrap());
            thread::spawn(move || {
                let _gone = io::copy(&mut up, &mut down);
                let _gone = down.shutdown(Shutdown::Write);
            });
            thread::spawn(move || {
                let _gone = io::copy(&mut host, &mut client);
                let _gone = client.shutdown(Shutdown::Write);
            });
        }
    });
    (address, asked)
}

#[test]
fn a_proxy_of_the_person_is_gone_through_and_looks_the_name_up() {
    let server = Server::start(Identity::Plain, |_, peer| {
        stream(peer, &[&says("far"), ENDS]);
        Then::Keep
    });
    let (address, asked) = upstream(true);
    let password = Secret::new("pass word:1".to_owned());
    let proxy = || Upstream::new(&address, Some(("me", &password))).unwrap();
    for host in ["provider.example", "127.0.0.1", "localhost"] {
        let scene = Scene::new(&server, &format!("http://{host}:PORT/v1")).through(proxy());
        assert_eq!(turn(&scene.remote()).unwrap().text, "far", "{host}");
        let head = asked.lock().unwrap().pop().unwrap();
        assert!(
            head.starts_with(&format!("CONNECT {host}:{} HTTP/1.1\r\n", server.port())),
            "{head}"
        );
        assert!(head.contains("\r\nProxy-Authorization: Basic bWU6cGFzcyB3b3JkOjE=\r\n"), "{head}");
    }
    assert!(!format!("{:?}", proxy()).contains("pass"));
    // With TLS as well: the proxy sees a name and sealed bytes.
    let server = Server::start(Identity::Proper, |_, peer| {
        stream(peer, &[&says("sealed"), ENDS]);
        Then::Keep
    });
    let scene = Scene::new(&server, "https://localhost:PORT/v1").through(proxy());
    assert_eq!(turn(&scene.remote()).unwrap().text, "sealed");
}

#[test]
fn a_proxy_of_the_person_that_refuses_or_is_away_is_told() {
    let server = Server::start(Identity::Plain, |_, _| Then::Close);
    let (address, _) = upstream(false);
    let url = "https://provider.example";
    let scene = Scene::new(&server, url).through(Upstream::new(&address, None).unwrap());
    let error = turn(&scene.remote()).unwrap_err();
    assert!(
        matches!(&error, ProviderError::Blocked(text) if text.contains("it answers 407")),
        "{error}"
    );
    let failed = |told: &Told| said(told, "became").starts_with("failed: the proxy");
    assert!(scene.asked().iter().any(failed), "{:?}", scene.asked());
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let away = Upstream::new(&format!("127.0.0.1:{port}"), None).unwrap();
    let error = turn(&Scene::new(&server, url).through(away).remote()).unwrap_err();
    assert!(matches!(error, ProviderError::Network(_)), "{error}");
}

#[test]
fn nothing_but_the_configured_host_and_port_is_reached() {
    let server = Server::start(Identity::Proper, |_, peer| {
        stream(peer, &[&says("a"), ENDS]);
        Then::Keep
    });
    let other = Server::start(Identity::Proper, |_, _| Then::Close);
    // The guest is told to go elsewhere than its sandbox was made for.
    for url in [
        format!("https://localhost:{}", other.port()),
        format!("https://127.0.0.1:{}", other.port()),
        "https://127.0.0.1:PORT".to_owned(),
        "https://example.org".to_owned(),
        "http://169.254.169.254".to_owned(),
    ] {
        let mut scene = Scene::new(&server, &url);
        scene.destination = Scene::new(&server, "https://[::1]:PORT").destination;
        let error = turn(&scene.remote()).unwrap_err();
        assert!(matches!(&error, ProviderError::Blocked(_)), "{url}: {error}");
        let asked = scene.asked();
        let reasons =
            [Refusal::Unlisted, Refusal::Port, Refusal::Metadata].map(|it| it.to_string());
        let refused = |told: &Told| told.refused.as_ref().is_some_and(|why| reasons.contains(why));
        assert!(!asked.is_empty() && asked.iter().all(refused), "{asked:?}");
    }
    assert_eq!((server.connections(), other.connections()), (0, 0));
}
