//! What is let through arrives whole, both ways.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::thread;

use fluffy_sandbox::proxy::{Decision, Ending, Failure};

use crate::scene::{Host, Scene, get, read_all};

const ALLOWED: &[&str] = &["pkg.test", "raw.test:7000"];

/// Sends back what comes, until it ends.
fn echo(head: &str, mut stream: TcpStream) {
    let _gone = stream.write_all(head.as_bytes());
    let mut copy = stream.try_clone().unwrap();
    let _gone = std::io::copy(&mut stream, &mut copy);
    let _gone = stream.shutdown(Shutdown::Write);
}

/// Bytes in which a missing or moved piece shows.
fn pattern(count: usize) -> Vec<u8> {
    (0..count).map(|at| u8::try_from((at * 31 + at / 251) % 251).unwrap()).collect()
}

#[test]
fn a_plain_request_arrives_as_the_only_one_of_its_connection() {
    let scene = Scene::new(ALLOWED);
    let answer = scene.ask(
        "GET http://pkg.test/a?b HTTP/1.1\r\nHost: pkg.test\r\nProxy-Authorization: x\r\n\
         Proxy-Connection: keep-alive\r\nAccept: */*\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("hello\n"), "{answer}");
    let head = "GET /a?b HTTP/1.1\r\nHost: pkg.test\r\nAccept: */*\r\nConnection: close\r\n\r\n";
    assert_eq!(scene.host.seen(), [head]);
    let records = scene.wait(2);
    let decisions: Vec<Decision> = records.iter().map(|record| record.decision).collect();
    assert_eq!(decisions, [Decision::Passed, Decision::Closed(Ending::Complete)]);
    let last = &records[1];
    assert_eq!(
        (last.request, &*last.method, &*last.host, last.port),
        (1, "GET", "pkg.test", Some(80))
    );
    assert_eq!(last.address, Some(scene.host.address));
    assert_eq!((last.up, last.down), (head.len() as u64, answer.len() as u64));
}

#[test]
fn the_unix_socket_leads_to_the_same_proxy() {
    let scene = Scene::new(ALLOWED);
    let mut stream = scene.connect_unix();
    stream.write_all(get("http://pkg.test/", "pkg.test").as_bytes()).unwrap();
    assert!(read_all(&mut stream).ends_with("hello\n"));
}

#[test]
fn a_tunnel_carries_both_ways_and_each_side_may_end_first() {
    let scene = Scene::with(ALLOWED, Host::new(echo), |_| ());
    let mut stream = scene.tunnel("raw.test:7000");
    let sent = pattern(3 << 20);
    let mut writer = stream.try_clone().unwrap();
    let copy = sent.clone();
    let writing = thread::spawn(move || {
        writer.write_all(b"\r\n\r\n").unwrap();
        writer.write_all(&copy).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    assert_eq!(received.len(), sent.len() + 4);
    assert!(received[4..] == sent);
    let last = &scene.wait(2)[1];
    assert_eq!(last.decision, Decision::Closed(Ending::Complete));
    assert_eq!((last.up, last.down), (received.len() as u64, received.len() as u64));
}

#[test]
fn a_host_that_speaks_first_is_heard_on_other_ports_than_443() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let scene = Scene::with(&["raw.test:7000", &address.to_string()], Host::new(echo), |_| ());
    scene.table.set("raw.test", &[&[&address.to_string()]]);
    thread::spawn(move || listener.accept().unwrap().0.write_all(b"220 ready\r\n").unwrap());
    let mut stream = scene.tunnel("raw.test:7000");
    let mut banner = [0; 11];
    stream.read_exact(&mut banner).unwrap();
    assert_eq!(&banner, b"220 ready\r\n");
}

#[test]
fn a_body_arrives_by_length_and_in_chunks() {
    let answers = |head: &str, mut stream: TcpStream| {
        let mut body = vec![0; if head.contains("chunked") { 15 } else { 5 }];
        stream.read_exact(&mut body).unwrap();
        let length = body.len();
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").unwrap();
        stream.write_all(&body).unwrap();
    };
    let scene = Scene::with(ALLOWED, Host::new(answers), |_| ());
    let post = "POST http://pkg.test/ HTTP/1.1\r\nHost: pkg.test\r\n";
    let answer = scene.ask(format!("{post}Content-Length: 5\r\n\r\nhello"));
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
    let chunks = "5\r\nhello\r\n0\r\n\r\n";
    let answer = scene.ask(format!("{post}Transfer-Encoding: chunked\r\n\r\n{chunks}"));
    assert!(answer.ends_with(&format!("\r\n\r\n{chunks}")), "{answer}");
}

#[test]
fn a_large_body_arrives_and_a_large_answer_returns() {
    let count = 2 << 20;
    let answers = move |_: &str, mut stream: TcpStream| {
        let mut body = vec![0; count];
        stream.read_exact(&mut body).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        stream.write_all(&body).unwrap();
    };
    let scene = Scene::with(ALLOWED, Host::new(answers), |_| ());
    let mut stream = scene.connect();
    let body = pattern(count);
    write!(
        stream,
        "PUT http://pkg.test/ HTTP/1.1\r\nHost: pkg.test\r\nContent-Length: {count}\r\n\r\n"
    )
    .unwrap();
    stream.write_all(&body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.ends_with(&body));
}

#[test]
fn a_host_that_refuses_a_body_early_is_still_heard() {
    let answers = |_: &str, mut stream: TcpStream| {
        stream.write_all(b"HTTP/1.1 413 Too Large\r\n\r\nno").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let _rest = read_all(&mut stream);
    };
    let scene = Scene::with(ALLOWED, Host::new(answers), |_| ());
    let mut stream = scene.connect();
    stream
        .write_all(
            b"PUT http://pkg.test/ HTTP/1.1\r\nHost: pkg.test\r\nContent-Length: 9000\r\n\r\nabc",
        )
        .unwrap();
    assert_eq!(read_all(&mut stream), "HTTP/1.1 413 Too Large\r\n\r\nno");
}

#[test]
fn a_host_that_cannot_be_reached_is_a_failure_and_not_a_refusal() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let scene = Scene::with(&["pkg.test", &closed.to_string()], Host::new(echo), |_| ());
    scene.table.set("pkg.test", &[&[&closed.to_string()], &[]]);
    let answer = scene.ask(get("http://pkg.test/", "pkg.test"));
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    let answer = scene.ask(get("http://pkg.test/", "pkg.test"));
    assert!(answer.contains("could not be looked up"), "{answer}");
    let (connect, lookup) = (Decision::Failed(Failure::Connect), Decision::Failed(Failure::Lookup));
    assert_eq!(scene.decisions(3), [Decision::Passed, connect, lookup]);
}

#[test]
fn the_next_address_is_tried_where_one_refuses() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let scene =
        Scene::with(&["pkg.test", &closed.to_string()], Host::new(crate::scene::hello), |_| ());
    let good = scene.host.address.to_string();
    scene.table.set("pkg.test", &[&[&closed.to_string(), &good]]);
    assert!(scene.ask(get("http://pkg.test/", "pkg.test")).ends_with("hello\n"));
    assert_eq!(scene.wait(2)[1].address, Some(scene.host.address));
}

#[test]
fn a_host_that_hangs_up_without_an_answer_is_a_failure() {
    let scene = Scene::with(ALLOWED, Host::new(|_, stream| drop(stream)), |_| ());
    let answer = scene.ask(get("http://pkg.test/", "pkg.test"));
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert_eq!(scene.decisions(2), [Decision::Passed, Decision::Failed(Failure::Silent)]);
}
