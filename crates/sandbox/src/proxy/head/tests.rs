//! Heads that are passed on, and heads that are not.

use super::*;

fn request(head: &str) -> Result<Request, Refusal> {
    read(head.replace('\n', "\r\n").as_bytes()).1
}

/// The head that is passed on, with plain line ends.
fn passed(head: &str) -> String {
    match request(head).map(|request| request.kind) {
        Ok(Kind::Forward { head, .. }) => String::from_utf8(head).unwrap().replace("\r\n", "\n"),
        other => format!("{other:?}"),
    }
}

fn refused(head: &str) -> String {
    match request(head) {
        Err(refusal) => refusal.to_string(),
        Ok(request) => format!("{request:?}"),
    }
}

#[test]
fn a_tunnel_is_asked_for_by_host_and_port() {
    let asked = request("CONNECT GitHub.com:443 HTTP/1.1\nHost: github.com:443\n\n").unwrap();
    assert_eq!(asked.host, Host::Name("github.com".to_owned()));
    assert_eq!((asked.port, asked.kind), (443, Kind::Tunnel));
    for head in [
        "CONNECT a.b:443 HTTP/1.0\n\n",
        "CONNECT a.b:443 HTTP/1.1\nHost: a.b\nProxy-Connection: keep-alive\n\n",
        "CONNECT a.b:443 HTTP/1.1\nContent-Length: 0\n\n",
    ] {
        assert_eq!(request(head).unwrap().kind, Kind::Tunnel, "{head}");
    }
}

#[test]
fn a_plain_request_is_passed_on_in_its_short_form_without_what_is_ours() {
    let head = "POST http://Example.com:8080/a?b=c HTTP/1.1\nHost: example.com:8080\nAccept: */*\n\
                Connection: keep-alive, X-Mine\nX-Mine: 1\nProxy-Authorization: Basic xyz\n\
                Proxy-Connection: Keep-Alive\nTE: trailers\nUpgrade: h2c\nKeep-Alive: 5\n\
                content-length: 3\nX-Yours: 2\n\n";
    assert_eq!(
        passed(head),
        "POST /a?b=c HTTP/1.1\nHost: example.com:8080\nContent-Length: 3\nAccept: */*\n\
         X-Yours: 2\nConnection: close\n\n"
    );
}

#[test]
fn path_version_and_coding_are_kept() {
    assert_eq!(
        passed("GET http://a.b HTTP/1.0\n\n"),
        "GET / HTTP/1.0\nHost: a.b\nConnection: close\n\n"
    );
    assert_eq!(
        passed("PUT HTTP://a.b?x HTTP/1.1\nHost: A.B.:80\nTransfer-Encoding: Chunked\n\n"),
        "PUT /?x HTTP/1.1\nHost: a.b\nTransfer-Encoding: chunked\nConnection: close\n\n"
    );
    assert_eq!(
        passed(
            "GET http://a.b//c.d/ HTTP/1.1\nHost: a.b\nConnection: host, content-length\nContent-Length: 0\n\n"
        ),
        "GET //c.d/ HTTP/1.1\nHost: a.b\nContent-Length: 0\nConnection: close\n\n"
    );
}

#[test]
fn a_head_that_could_be_read_in_two_ways_is_refused() {
    let get = "GET http://a.b/ HTTP/1.1\nHost: a.b\n";
    for (lines, why) in [
        ("Content-Length: 3\nContent-Length: 3\n", "comes twice"),
        ("Content-Length: 3\nTransfer-Encoding: chunked\n", "and a `Transfer-Encoding`"),
        ("Transfer-Encoding: chunked\nTransfer-Encoding: chunked\n", "comes twice"),
        ("Transfer-Encoding: gzip, chunked\n", "its `Transfer-Encoding`"),
        ("Transfer-Encoding: identity\n", "its `Transfer-Encoding`"),
        ("Transfer-Encoding: xchunked\n", "its `Transfer-Encoding`"),
        ("Content-Length: +3\n", "its `Content-Length`"),
        ("Content-Length: 3, 3\n", "its `Content-Length`"),
        ("Content-Length: 0x3\n", "its `Content-Length`"),
        ("Content-Length: -1\n", "its `Content-Length`"),
        ("Content-Length: \n", "its `Content-Length`"),
        ("Content-Length: 99999999999999999999\n", "its `Content-Length`"),
        ("Content-Length : 3\n", "a header"),
        (" Content-Length: 3\n", "a header"),
        ("X: 1\n  folded\n", "a header"),
        ("X\n", "a header"),
        (": x\n", "a header"),
        ("X: a\0b\n", "a header"),
        ("X Y: 1\n", "a header"),
        ("Host: a.b\n", "comes twice"),
    ] {
        let said = refused(&format!("{get}{lines}\n"));
        assert!(said.contains(why), "{lines:?}: {said}");
    }
    assert!(
        refused("POST http://a.b/ HTTP/1.0\nTransfer-Encoding: chunked\n\n").contains("Encoding")
    );
}

#[test]
fn a_host_header_that_differs_is_refused() {
    for head in [
        "GET http://a.b/ HTTP/1.1\nHost: c.d\n\n",
        "GET http://a.b/ HTTP/1.1\nHost: a.b:8080\n\n",
        "GET http://a.b:8080/ HTTP/1.1\nHost: a.b\n\n",
        "GET http://a.b/ HTTP/1.1\nHost: \n\n",
        "GET http://a.b/ HTTP/1.1\nHost: a.b, c.d\n\n",
        "CONNECT a.b:443 HTTP/1.1\nHost: c.d:443\n\n",
        "CONNECT a.b:443 HTTP/1.1\nHost: a.b:22\n\n",
    ] {
        assert_eq!(
            refused(head),
            "the request is malformed: its `Host` header is not its target",
            "{head}"
        );
    }
    assert!(refused("GET http://a.b/ HTTP/1.1\n\n").contains("no `Host`"));
}

#[test]
fn a_target_that_is_not_a_host_is_refused() {
    for (line, why) in [
        ("GET https://a.b/ HTTP/1.1", "use CONNECT"),
        ("GET ftp://a.b/ HTTP/1.1", "use CONNECT"),
        ("GET /path HTTP/1.1", "`http://host/path`"),
        ("OPTIONS * HTTP/1.1", "`http://host/path`"),
        ("connect a.b:443 HTTP/1.1", "`http://host/path`"),
        ("CONNECT a.b HTTP/1.1", "a port"),
        ("CONNECT a.b:0 HTTP/1.1", "a port"),
        ("CONNECT http://a.b:443 HTTP/1.1", "a port"),
        ("CONNECT a.b:443/x HTTP/1.1", "a port"),
        ("CONNECT user@a.b:443 HTTP/1.1", "letters, digits"),
        ("CONNECT :443 HTTP/1.1", "empty"),
        ("CONNECT a..b:443 HTTP/1.1", "a part of the host"),
        ("CONNECT 127.1:443 HTTP/1.1", "an address is written"),
        ("GET http://user:pw@a.b/ HTTP/1.1", "user name"),
        ("GET http://a.b\\@c.d/ HTTP/1.1", "user name"),
        ("GET http://a.b\\c.d/ HTTP/1.1", "letters, digits"),
        ("GET http://a.b/#c HTTP/1.1", "`#`"),
        ("GET http://a.b#@c.d/ HTTP/1.1", "`#`"),
        ("GET http:///x HTTP/1.1", "empty"),
        ("GET http://a%2eb/ HTTP/1.1", "letters, digits"),
        ("GET http://a.b/\u{fc} HTTP/1.1", "malformed"),
        ("GET http://a.b/ HTTP/2.0", "HTTP/1.0 or HTTP/1.1"),
        ("GET http://a.b/  HTTP/1.1", "malformed"),
        ("GET  http://a.b/ HTTP/1.1", "malformed"),
        ("GET\thttp://a.b/ HTTP/1.1", "malformed"),
        ("G(T http://a.b/ HTTP/1.1", "malformed"),
        ("CONNECT a.b\0.c:443 HTTP/1.1", "malformed"),
        ("PRI * HTTP/2.0", "malformed"),
    ] {
        let said = refused(&format!("{line}\nHost: a.b\n\n"));
        assert!(said.contains(why), "{line}: {said}");
    }
}

#[test]
fn what_was_asked_is_told_also_when_it_is_refused() {
    let asked = |head: &str| {
        let (asked, request) = read(head.replace('\n', "\r\n").as_bytes());
        format!("{} {} {:?} {}", asked.method, asked.host, asked.port, request.is_ok())
    };
    assert_eq!(asked("CONNECT A.b:443 HTTP/1.1\nHost: c\n\n"), "CONNECT A.b Some(443) false");
    assert_eq!(asked("CONNECT a\0b:443 HTTP/1.1\n\n"), "CONNECT a\\x00b:443 None false");
    assert_eq!(asked("GET http://a.b/x HTTP/1.0\n\n"), "GET a.b Some(80) true");
    assert_eq!(asked("\u{1b}[2J\n\n"), "\\x1b[2J  None false");
}

#[test]
fn a_head_with_too_many_lines_or_bytes_is_refused() {
    let lines =
        |count: usize| format!("GET http://a.b/ HTTP/1.1\nHost: a.b\n{}\n", "X: y\n".repeat(count));
    assert!(request(&lines(MOST_HEADERS - 1)).is_ok());
    assert_eq!(request(&lines(MOST_HEADERS)), Err(Refusal::TooLarge));
    let mut gather = Gather::default();
    assert_eq!(gather.push(&vec![b'a'; LONGEST_HEAD - 1]), Gathered::More);
    assert_eq!(gather.push(b"a"), Gathered::Refused(Refusal::TooLarge));
}

#[test]
fn a_line_that_does_not_end_in_both_signs_is_refused_at_once() {
    for head in ["GET / HTTP/1.1\n", "\n", "GET / HTTP/1.1\rX", "\r\r", "a\r\n\n"] {
        let refused = Gathered::Refused(Refusal::Malformed("a line does not end in CR LF"));
        assert_eq!(Gather::default().push(head.as_bytes()), refused, "{head:?}");
    }
}

fn gather<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Gathered {
    let mut gather = Gather::default();
    let mut last = Gathered::More;
    let mut late = Vec::new();
    for part in parts {
        if last == Gathered::More {
            last = gather.push(part);
        } else {
            late.extend_from_slice(part);
        }
    }
    if let Gathered::Head(_, rest) = &mut last {
        rest.extend(late);
    }
    last
}

proptest::proptest! {
    #[test]
    fn any_split_of_the_bytes_gives_the_same_head(
        text in "(GET|CONNECT) [a-z:/.]{0,12} HTTP/1.1(\r\n|\n|\r){1}([a-zA-Z]: [a-z]{0,4}\r\n){0,4}(\r\n)?[a-z\r\n]{0,9}",
        size in 1_usize..20,
    ) {
        let whole = gather([text.as_bytes()]);
        proptest::prop_assert_eq!(&gather(text.as_bytes().chunks(size)), &whole);
        proptest::prop_assert_eq!(&gather(text.as_bytes().chunks(1)), &whole);
    }

    #[test]
    fn reading_a_head_never_panics(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        let _read = read(&bytes);
        let _gathered = Gather::default().push(&bytes);
    }

    #[test]
    fn what_is_passed_on_is_a_head_that_reads_the_same(
        method in "[A-Z!#]{1,7}",
        path in "(/[a-z%?]{0,8})?",
        headers in proptest::collection::vec(("[A-Za-z-]{1,12}", "[ -~]{0,12}"), 0..6),
    ) {
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!("{method} http://a.b{path} HTTP/1.1\r\nHost: a.b\r\n{lines}\r\n");
        if let Ok(Request { kind: Kind::Forward { head, .. }, .. }) = read(head.as_bytes()).1 {
            let mut headers = [EMPTY_HEADER; MOST_HEADERS + 4];
            let mut again = httparse::Request::new(&mut headers);
            let read = again.parse(&head).unwrap();
            proptest::prop_assert_eq!(read, httparse::Status::Complete(head.len()));
            let of = |wanted: &str| {
                again.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(wanted)).count()
            };
            proptest::prop_assert_eq!((of("host"), of("connection")), (1, 1));
            proptest::prop_assert!(of("content-length") + of("transfer-encoding") <= 1);
        }
    }
}
