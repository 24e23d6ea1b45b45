//! Another proxy before the host: it is told what was checked, and nothing else gets to it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use fluffy_base::Secret;
use fluffy_sandbox::proxy::{Decision, Ending, Failure, Refusal, Upstream, UpstreamError};

use crate::scene::{Host, Scene, get, read_all};

const ALLOWED: &[&str] = &["pkg.test", "*.wide.test", "raw.test:7000", "10.0.0.5:7000"];

/// Everything goes through the host of the test, which does this with a connection.
fn behind(manner: impl Fn(&str, TcpStream) + Send + Sync + 'static) -> Scene {
    let password = Secret::new("open sesame".to_owned());
    let proxy = Upstream::new("up.test:3128", Some(("me", &password))).unwrap();
    Scene::with(ALLOWED, Host::new(manner), |options| options.upstream = Some(Arc::new(proxy)))
}

/// Lets it through and is the host at once: says a word first, then sends back what comes.
fn open(_: &str, mut stream: TcpStream) {
    stream.write_all(b"HTTP/1.1 200 Fine\r\nVia: up\r\n\r\nfirst ").unwrap();
    let mut copy = stream.try_clone().unwrap();
    let _gone = std::io::copy(&mut stream, &mut copy);
}

#[test]
fn a_tunnel_goes_through_and_no_byte_of_the_host_is_lost() {
    let scene = behind(open);
    for target in ["raw.test:7000", "10.0.0.5:7000"] {
        let mut stream = scene.tunnel(target);
        stream.write_all(b"second").unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"first second");
    }
    let ask = |target| {
        format!(
            "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: Basic bWU6b3BlbiBzZXNhbWU=\r\n\r\n"
        )
    };
    assert_eq!(scene.host.seen(), [ask("raw.test:7000"), ask("10.0.0.5:7000")]);
    assert_eq!(scene.table.asked(), ["up.test", "up.test"], "no other name is looked up here");
}

#[test]
fn a_plain_request_goes_through_a_tunnel_as_well() {
    let scene = behind(|_, mut stream| {
        stream.write_all(b"HTTP/1.1 200 Fine\r\n\r\n").unwrap();
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"GET /x HTTP/1.1\r\nHost: pkg.test\r\n"));
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
    });
    let answer = scene.ask(get("http://pkg.test/x", "pkg.test"));
    assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
    assert!(scene.host.seen()[0].starts_with("CONNECT pkg.test:80 HTTP/1.1\r\n"));
}

#[test]
fn what_is_not_listed_never_gets_to_the_other_proxy() {
    let scene = behind(open);
    for (target, refusal) in [
        ("evil.test:443", Refusal::Unlisted),
        ("pkg.test:22", Refusal::Port),
        ("10.0.0.6:7000", Refusal::Unlisted),
        ("127.0.0.1:7000", Refusal::Port),
        ("up.test:3128", Refusal::Unlisted),
        ("169.254.169.254:80", Refusal::Metadata),
        ("metadata.google.internal:80", Refusal::Metadata),
    ] {
        let answer = scene.ask(format!("CONNECT {target} HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403 "), "{target}: {answer}");
        assert_eq!(
            scene.records().last().unwrap().decision,
            Decision::Refused(refusal),
            "{target}"
        );
    }
    assert_eq!(scene.host.seen(), [""; 0]);
    assert!(scene.table.asked().is_empty());
}

#[test]
fn whatever_the_other_proxy_answers_is_not_taken_for_the_host() {
    for (answer, status, failure) in [
        ("HTTP/1.1 407 Who\r\n\r\nevil", "403", 407),
        ("HTTP/1.1 403 No\r\n\r\n", "403", 403),
        ("HTTP/1.1 503 Later\r\n\r\n", "502", 503),
        ("HTTP/1.1 OK\r\n\r\n", "502", 0),
        ("SSH-2.0-evil 200\r\n\r\n", "502", 0),
        ("HTTP/1.1 200 cut off\r\n", "502", 0),
        ("", "502", 0),
    ] {
        let scene = behind(move |_, mut stream| stream.write_all(answer.as_bytes()).unwrap());
        let told = scene.ask("CONNECT raw.test:7000 HTTP/1.1\r\n\r\n");
        assert!(told.starts_with(&format!("HTTP/1.1 {status} ")), "{answer:?}: {told}");
        assert!(!told.contains("evil") && !told.contains("sesame"), "{told}");
        let expected = [Decision::Passed, Decision::Failed(Failure::Upstream(failure))];
        assert_eq!(scene.decisions(2), expected, "{answer:?}");
    }
    // An answer without end.
    let scene = behind(|_, mut stream| while stream.write_all(&[b'x'; 4096]).is_ok() {});
    assert!(scene.ask("CONNECT raw.test:7000 HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 502 "));
}

#[test]
fn another_proxy_that_says_nothing_is_not_waited_for() {
    let password = Secret::new(String::new());
    let proxy = Upstream::new("up.test", Some(("me", &password))).unwrap();
    let silent = Host::new(|_, mut stream| drop(read_all(&mut stream)));
    let scene = Scene::with(ALLOWED, silent, |options| {
        options.upstream = Some(Arc::new(proxy));
        options.times.connect = std::time::Duration::from_millis(200);
    });
    let told = scene.ask("CONNECT raw.test:7000 HTTP/1.1\r\n\r\n");
    assert!(told.starts_with("HTTP/1.1 504 "), "{told}");
    assert_eq!(scene.decisions(2), [Decision::Passed, Decision::Failed(Failure::Timeout)]);
}

#[test]
fn stopping_hangs_up_on_the_other_proxy() {
    let (told, heard) = std::sync::mpsc::channel();
    let told = std::sync::Mutex::new(told);
    let mut scene = behind(move |_, mut stream| {
        read_all(&mut stream);
        told.lock().unwrap().send(()).unwrap();
    });
    let mut stream = scene.connect();
    stream.write_all(b"CONNECT raw.test:7000 HTTP/1.1\r\n\r\n").unwrap();
    scene.wait(1);
    scene.proxy.stop();
    assert_eq!(scene.decisions(2)[1], Decision::Closed(Ending::Stopped));
    // Whether it had been reached by then or not, nothing is left open.
    drop(stream);
    if scene.host.seen().iter().any(|head| head.ends_with("\r\n\r\n")) {
        heard.recv_timeout(crate::scene::FOR_EVER).unwrap();
    }
}

#[test]
fn what_names_no_proxy_is_refused_and_nothing_shows_a_password() {
    let secret = Secret::new("pass".to_owned());
    for authority in ["", "up test", "http://up.test:80", "up.test:0", "me@up.test"] {
        assert!(
            matches!(Upstream::new(authority, None), Err(UpstreamError::Host(_))),
            "{authority}"
        );
    }
    for user in ["a:b", "a\r\nHost: evil"] {
        let refused = Upstream::new("up.test", Some((user, &secret))).map(|_| ());
        assert_eq!(refused, Err(UpstreamError::User));
    }
    let proxy = Upstream::new("[::1]:3128", Some(("me", &secret))).unwrap();
    assert_eq!(format!("{proxy:?}"), "Upstream([::1]:3128)");
}
