//! What a hostile job tries, judged by what arrives at the host.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::time::Duration;

use fluffy_sandbox::proxy::{Decision, Ending, HostError, Refusal, Times};

use crate::scene::{FOR_EVER, Host, Scene, get, greeting, hello, read_all};

const ALLOWED: &[&str] = &["pkg.test", "*.wild.test"];

/// A request is answered with this status, recorded as this refusal, and does not arrive.
fn refused(request: impl AsRef<[u8]>, status: u16, refusal: Refusal) {
    let scene = Scene::new(ALLOWED);
    let answer = scene.ask(&request);
    let shown = String::from_utf8_lossy(request.as_ref());
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{shown}\n{answer}");
    scene.assert_refused(refusal);
    assert_eq!(scene.table.asked(), [""; 0], "{shown}");
}

fn connect(target: &str) -> String {
    format!("CONNECT {target} HTTP/1.1\r\n\r\n")
}

#[test]
fn case_45_a_host_that_is_not_listed_is_not_even_looked_up() {
    for target in [
        "evil.test:443",
        "evil-pkg.test:443",
        "pkg.test.evil.test:443",
        "wild.test:443",
        "evilwild.test:443",
        "xn--pkg-xyz.test:443",
        "localhost:80",
        "127.0.0.2:80",
        "[::1]:80",
        "[::ffff:127.0.0.2]:80",
        "1.1.1.1:443",
        "0.0.0.0:80",
        "[::]:80",
    ] {
        refused(connect(target), 403, Refusal::Unlisted);
        let url = format!("http://{target}/");
        refused(get(&url, target), 403, Refusal::Unlisted);
    }
}

#[test]
fn case_45_another_port_is_refused() {
    refused(connect("pkg.test:22"), 403, Refusal::Port);
    // The test's own host is listed by its address and port.
    refused(connect("127.0.0.1:1"), 403, Refusal::Port);
    refused(connect("[::ffff:127.0.0.1]:1"), 403, Refusal::Port);
    refused(connect("a.wild.test:25"), 403, Refusal::Port);
    refused(get("http://pkg.test:8080/", "pkg.test:8080"), 403, Refusal::Port);
}

#[test]
fn case_45_a_host_in_disguise_is_refused() {
    for (target, error) in [
        ("2130706433:80", HostError::Number),
        ("0177.0.0.1:80", HostError::Number),
        ("0x7f.1:80", HostError::Number),
        ("0x7f000001:80", HostError::Number),
        ("127.1:80", HostError::Number),
        ("[::1%lo]:80", HostError::Number),
        ("user@pkg.test:443", HostError::Character),
        ("pkg.test%00.evil.test:443", HostError::Character),
        ("pkg.test..:443", HostError::Label),
        ("pkg..test:443", HostError::Label),
        (".pkg.test:443", HostError::Label),
        ("pkg.test", HostError::Port),
        ("pkg.test:443:443", HostError::Port),
        ("pkg.test:0", HostError::Port),
        ("pkg.test:+443", HostError::Port),
        ("pkg.test:65979", HostError::Port),
    ] {
        refused(connect(target), 400, Refusal::Host(error));
    }
    let head = Refusal::Malformed("it is no request of HTTP/1.0 or HTTP/1.1");
    refused("CONNECT pkg.test\0.evil.test:443 HTTP/1.1\r\n\r\n", 400, head);
    refused("CONNECT pkg.test :443 HTTP/1.1\r\n\r\n", 400, head);
    let user = Refusal::Malformed("its target holds a user name");
    refused(get("http://pkg.test@evil.test/", "evil.test"), 400, user);
    refused(get("http://evil.test\\@pkg.test/", "pkg.test"), 400, user);
    refused(connect("münchen.wild.test:443"), 400, Refusal::Malformed("its target"));
}

#[test]
fn case_45_a_listed_host_is_the_same_in_every_honest_spelling() {
    for target in ["pkg.test:80", "PKG.Test:80", "pkg.test.:80", "a.b.wild.test:80"] {
        let scene = Scene::new(ALLOWED);
        let answer = scene.ask(get(&format!("http://{target}/"), target));
        assert!(answer.ends_with("hello\n"), "{target}: {answer}");
        let seen = scene.host.seen();
        assert_eq!(seen.len(), 1);
        let host = target.trim_end_matches(":80").trim_end_matches('.').to_lowercase();
        assert!(seen[0].contains(&format!("\r\nHost: {host}\r\n")), "{seen:?}");
    }
}

#[test]
fn case_45_an_empty_list_lets_nothing_through() {
    for request in [connect("pkg.test:443"), get("http://pkg.test/", "pkg.test")] {
        let scene = Scene::new(&[]);
        assert!(scene.ask(request).starts_with("HTTP/1.1 403 "));
        scene.assert_refused(Refusal::Unlisted);
    }
}

#[test]
fn case_45_a_name_that_leads_to_a_private_address_is_refused() {
    for address in [
        "127.0.0.1:80",
        "10.0.0.1:80",
        "192.168.1.1:80",
        "100.64.0.1:80",
        "[::1]:80",
        "[::ffff:10.0.0.1]:80",
        "[fd00::1]:80",
        "[64:ff9b::a00:1]:80",
        "0.0.0.0:80",
    ] {
        let scene = Scene::new(ALLOWED);
        scene.table.set("pkg.test", &[&[address]]);
        let answer = scene.ask(get("http://pkg.test/", "pkg.test"));
        assert!(answer.contains("not public"), "{address}: {answer}");
        scene.assert_refused(Refusal::Private);
        assert_eq!(scene.records()[0].address, Some(address.parse().unwrap()));
    }
}

#[test]
fn case_41_metadata_is_never_reached() {
    let scene = Scene::new(&["pkg.test", "*.google.internal"]);
    for address in ["169.254.169.254:80", "[fd00:ec2::254]:80", "100.100.100.200:80"] {
        scene.table.set("pkg.test", &[&[address]]);
        assert!(scene.ask(get("http://pkg.test/", "pkg.test")).starts_with("HTTP/1.1 403 "));
    }
    for host in ["metadata.google.internal", "169.254.169.254", "[::ffff:169.254.169.254]"] {
        assert!(scene.ask(get(&format!("http://{host}/"), host)).starts_with("HTTP/1.1 403 "));
    }
    assert_eq!(scene.decisions(6), [Decision::Refused(Refusal::Metadata); 6]);
    assert_eq!(scene.host.seen(), [""; 0]);
}

#[test]
fn case_45_a_name_is_looked_up_once_and_what_was_checked_is_connected_to() {
    let scene = Scene::new(ALLOWED);
    let good = scene.host.address.to_string();
    // A second lookup for the same request would give the wrong address.
    scene.table.set("pkg.test", &[&[&good], &["127.0.0.1:1"]]);
    assert!(scene.ask(get("http://pkg.test/", "pkg.test")).ends_with("hello\n"));
    assert_eq!(scene.table.asked(), ["pkg.test"]);
    // And the next request is checked anew.
    assert!(scene.ask(get("http://pkg.test/", "pkg.test")).starts_with("HTTP/1.1 403 "));
    let closed = Decision::Closed(Ending::Complete);
    let refused = Decision::Refused(Refusal::Private);
    assert_eq!(scene.decisions(3), [Decision::Passed, closed, refused]);
}

#[test]
fn case_45_a_private_address_behind_a_public_one_is_refused() {
    let scene = Scene::new(ALLOWED);
    scene.table.set("pkg.test", &[&["1.1.1.1:80", "10.0.0.1:80"]]);
    assert!(scene.ask(get("http://pkg.test/", "pkg.test")).starts_with("HTTP/1.1 403 "));
    scene.assert_refused(Refusal::Private);
}

#[test]
fn case_45_a_redirect_is_handed_back_and_not_followed() {
    let host = Host::new(|_, mut stream| {
        let to = "HTTP/1.1 302 Found\r\nLocation: http://evil.test/\r\nConnection: close\r\n\r\n";
        stream.write_all(to.as_bytes()).unwrap();
    });
    let scene = Scene::with(ALLOWED, host, |_| ());
    let answer = scene.ask(get("http://pkg.test/", "pkg.test"));
    assert!(answer.contains("Location: http://evil.test/"), "{answer}");
    assert_eq!(scene.host.seen().len(), 1);
    assert_eq!(scene.table.asked(), ["pkg.test"]);
}

#[test]
fn case_45_a_tunnel_to_one_host_cannot_greet_another() {
    let scene = Scene::new(ALLOWED);
    let mut stream = scene.tunnel("pkg.test:443");
    stream.write_all(&greeting("evil.test")).unwrap();
    let mut alert = Vec::new();
    stream.read_to_end(&mut alert).unwrap();
    assert_eq!(alert, [21, 3, 3, 0, 2, 2, 49]);
    let records = scene.wait(2);
    assert_eq!(records[1].decision, Decision::Refused(Refusal::ServerName));
    assert_eq!(records[1].server_name.as_deref(), Some("evil.test"));
    assert_eq!((records[1].up, records[1].down), (0, 0));
    assert!(scene.host.seen().concat().is_empty());
}

#[test]
fn case_45_a_tunnel_on_port_443_carries_nothing_but_tls() {
    let scene = Scene::new(ALLOWED);
    let mut stream = scene.tunnel("pkg.test:443");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n").unwrap();
    assert_eq!(read_all(&mut stream), "");
    assert_eq!(scene.decisions(2)[1], Decision::Refused(Refusal::NotTls));
    // What comes together with the request is no exception.
    let early = format!("{}SSH-2.0-evil\r\n", connect("pkg.test:443"));
    assert!(scene.ask(early).ends_with("established\r\n\r\n"));
    assert_eq!(scene.decisions(4)[3], Decision::Refused(Refusal::NotTls));
    assert!(scene.host.seen().concat().is_empty());
}

#[test]
fn a_greeting_of_the_same_host_passes_in_any_number_of_pieces() {
    let scene = Scene::new(ALLOWED);
    let mut stream = scene.tunnel("PKG.test:443");
    for byte in greeting("pkg.test") {
        stream.write_all(&[byte]).unwrap();
    }
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(read_all(&mut stream).ends_with("hello\n"));
    drop(stream);
    let records = scene.wait(2);
    assert_eq!(records[1].server_name.as_deref(), Some("pkg.test"));
    assert_eq!(records[1].up, greeting("pkg.test").len() as u64 + 18);
}

#[test]
fn case_45_a_host_header_that_differs_is_refused() {
    let differs = Refusal::Malformed("its `Host` header is not its target");
    refused(get("http://pkg.test/", "evil.test"), 400, differs);
    refused(get("http://pkg.test/", "pkg.test:22"), 400, differs);
    refused("CONNECT pkg.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", 400, differs);
    let twice = Refusal::Malformed("a header that may come once comes twice");
    refused(get("http://pkg.test/", "pkg.test\r\nHost: evil.test"), 400, twice);
}

#[test]
fn case_45_a_head_that_hides_a_second_request_is_refused() {
    let post = |lines: &str| {
        format!("POST http://pkg.test/ HTTP/1.1\r\nHost: pkg.test\r\n{lines}\r\n0\r\n\r\n")
    };
    let header = Refusal::Malformed("a header");
    let line = Refusal::Malformed("a line does not end in CR LF");
    for (lines, refusal) in [
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            Refusal::Malformed("it has a `Content-Length` and a `Transfer-Encoding`"),
        ),
        (
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            Refusal::Malformed("a header that may come once comes twice"),
        ),
        ("Transfer-Encoding: xchunked\r\n", Refusal::Malformed("its `Transfer-Encoding`")),
        ("Transfer-Encoding : chunked\r\n", header),
        ("X: 1\r\n Transfer-Encoding: chunked\r\n", header),
        ("X: 1\nTransfer-Encoding: chunked\r\n", line),
        ("X: 1\rTransfer-Encoding: chunked\r\n", line),
    ] {
        refused(post(lines), 400, refusal);
    }
    refused(get("https://pkg.test/", "pkg.test"), 400, Refusal::Scheme);
}

#[test]
fn case_45_a_second_request_on_the_same_connection_does_not_arrive() {
    let evil = get("http://evil.test/stolen", "evil.test");
    for first in [
        get("http://pkg.test/", "pkg.test"),
        "POST http://pkg.test/ HTTP/1.1\r\nHost: pkg.test\r\nContent-Length: 3\r\n\r\nabc"
            .to_owned(),
        "POST http://pkg.test/ HTTP/1.1\r\nHost: pkg.test\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\nabc\r\n0\r\n\r\n"
            .to_owned(),
    ] {
        let scene = Scene::new(ALLOWED);
        let _answer = scene.ask(format!("{first}{evil}"));
        assert_eq!(scene.decisions(2), [Decision::Passed, Decision::Refused(Refusal::Second)]);
        assert!(!scene.host.seen().concat().contains("stolen"), "{first}");
    }
}

#[test]
fn a_body_whose_chunks_are_wrong_is_cut_off_there() {
    let scene = Scene::with(ALLOWED, Host::new(|_, _| ()), |_| ());
    let answer = scene.ask(
        "POST http://pkg.test/ HTTP/1.1\r\nHost: pkg.test\r\nTransfer-Encoding: chunked\r\n\r\n\
         3;x=\r\nGET http://evil.test/ HTTP/1.1\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let wrong = Refusal::Malformed("a chunk of the body");
    assert_eq!(scene.decisions(2), [Decision::Passed, Decision::Refused(wrong)]);
}

#[test]
fn case_45_a_flood_of_headers_is_refused() {
    let lines = "X: y\r\n".repeat(200);
    let many = format!("GET http://pkg.test/ HTTP/1.1\r\nHost: pkg.test\r\n{lines}\r\n");
    refused(many, 431, Refusal::TooLarge);
    let long = format!("GET http://pkg.test/{} HTTP/1.1\r\n", "a".repeat(1 << 20));
    refused(long, 431, Refusal::TooLarge);
}

#[test]
fn case_45_a_head_that_comes_too_slowly_is_refused() {
    let head = Duration::from_millis(100);
    let scene = Scene::with(ALLOWED, Host::new(hello), |options| {
        options.times = Times { head, ..options.times };
    });
    let answer = scene.ask("GET http://pkg.test/ HTTP/1.1\r\nHost: pkg");
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    scene.assert_refused(Refusal::Slow);
    assert_eq!(scene.records()[0].method, "GET");
    // A tunnel on port 443 must be greeted within the same time.
    let mut stream = scene.tunnel("pkg.test:443");
    assert_eq!(read_all(&mut stream), "");
    assert_eq!(scene.decisions(3)[2], Decision::Refused(Refusal::Slow));
}

#[test]
fn a_request_that_breaks_off_is_recorded() {
    let scene = Scene::new(ALLOWED);
    let mut stream = scene.connect();
    stream.write_all(b"GET http://pkg.test/ HT").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let _answer = read_all(&mut stream);
    scene.assert_refused(Refusal::Incomplete);
}

#[test]
fn case_42_names_below_a_star_cannot_carry_much_out() {
    let scene = Scene::with(ALLOWED, Host::new(hello), |options| options.names = 3);
    for name in ["one", "two", "three", "two"] {
        let host = format!("{name}.wild.test");
        assert!(scene.ask(get(&format!("http://{host}/"), &host)).ends_with("hello\n"));
    }
    let answer = scene.ask(get("http://four.wild.test/", "four.wild.test"));
    assert!(answer.contains("too many different names"), "{answer}");
    assert_eq!(scene.table.asked().len(), 4);
    assert_eq!(scene.decisions(9)[8], Decision::Refused(Refusal::Names));
}

#[test]
fn case_47_descriptors_sent_along_are_dropped() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
    use std::mem::MaybeUninit;
    use std::os::fd::AsFd as _;

    let scene = Scene::new(ALLOWED);
    for _ in 0..2 {
        let mut stream = scene.connect_unix();
        let (mut kept, sent) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut attached = SendAncillaryBuffer::new(&mut space);
        let descriptors = [sent.as_fd()];
        assert!(attached.push(SendAncillaryMessage::ScmRights(&descriptors)));
        let bytes = [std::io::IoSlice::new(b"GET http://pkg.test/ HTTP/1.1\r\n")];
        rustix::net::sendmsg(&stream, &bytes, &mut attached, SendFlags::empty()).unwrap();
        drop(sent);
        // The end comes once nobody holds the other side: while the connection is still open.
        kept.set_read_timeout(Some(FOR_EVER)).unwrap();
        assert_eq!(kept.read(&mut [0]).unwrap(), 0);
        stream.write_all(b"Host: pkg.test\r\n\r\n").unwrap();
        assert!(read_all(&mut stream).ends_with("hello\n"));
    }
}

#[test]
fn an_answer_names_the_host_harmlessly() {
    let scene = Scene::new(ALLOWED);
    let answer = scene.ask("CONNECT \x1b[2J\u{7} HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let bad = |letter: char| letter.is_control() && !"\r\n".contains(letter);
    assert!(!answer.contains(bad), "{answer:?}");
    assert_eq!(scene.wait(1)[0].host, "\\x1b[2J\\x07");
}
