//! Greetings as they come, cut in pieces, and broken.

use super::*;

fn counted(bytes: &[u8]) -> Vec<u8> {
    let mut all = u16::try_from(bytes.len()).unwrap().to_be_bytes().to_vec();
    all.extend_from_slice(bytes);
    all
}

fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &counted(data)].concat()
}

fn names(entries: &[(u8, &str)]) -> Vec<u8> {
    let list: Vec<u8> = entries
        .iter()
        .flat_map(|(kind, name)| [vec![*kind], counted(name.as_bytes())].concat())
        .collect();
    extension(0, &counted(&list))
}

/// The message of a greeting with these extensions.
fn message(extensions: &[Vec<u8>]) -> Vec<u8> {
    let body = [
        &[3, 3][..],
        &[7; 32],
        &[0],
        &counted(&[0x13, 0x01]),
        &[1, 0],
        &counted(&extensions.concat()),
    ]
    .concat();
    [&[1, 0][..], &counted(&body)].concat()
}

/// The records that carry a message, in pieces of this size.
fn records(message: &[u8], size: usize) -> Vec<u8> {
    message.chunks(size).flat_map(|piece| [&[22, 3, 1][..], &counted(piece)].concat()).collect()
}

fn greet(host: &str, port: u16, parts: &[&[u8]]) -> String {
    let mut greeting = Greeting::new(Host::parse(host).unwrap(), port);
    let mut name = None;
    for part in parts {
        match greeting.push(part, &mut name) {
            Ok(Greeted::More) => {}
            Ok(Greeted::Pass(bytes)) => {
                return format!("{} {}", bytes.len(), name.unwrap_or_default());
            }
            Err(refusal) => return format!("{refusal:?} {}", name.unwrap_or_default()),
        }
    }
    "More".to_owned()
}

#[test]
fn a_greeting_that_names_the_host_is_passed_on_whole() {
    let bytes = records(&message(&[extension(10, &[1]), names(&[(0, "a.example")])]), 400);
    let all = format!("{} a.example", bytes.len());
    assert_eq!(greet("a.example", 443, &[&bytes]), all);
    assert_eq!(greet("A.example.", 8443, &[&bytes]), all);
    let address = records(&message(&[names(&[(0, "::1")])]), 400);
    assert_eq!(greet("[::1]", 443, &[&address]), format!("{} ::1", address.len()));
}

#[test]
fn a_greeting_that_names_another_host_is_refused() {
    for name in ["b.example", "a.example.b", "xa.example", "", "a.example\0", "a.example@b"] {
        let bytes = records(&message(&[names(&[(0, name)])]), 400);
        for port in [443, 8443] {
            let said = greet("a.example", port, &[&bytes]);
            assert!(said.starts_with("ServerName"), "{name:?}: {said}");
        }
    }
    let bytes = records(&message(&[names(&[(0, "a.example")])]), 400);
    assert_eq!(greet("10.0.0.1", 443, &[&bytes]), "ServerName a.example");
}

#[test]
fn a_greeting_without_a_name_is_passed_on() {
    let bytes = records(&message(&[extension(10, &[1])]), 400);
    assert_eq!(greet("a.example", 443, &[&bytes]), format!("{} ", bytes.len()));
}

#[test]
fn a_greeting_in_pieces_is_one() {
    for size in [1, 2, 3, 50] {
        let bytes = records(&message(&[names(&[(0, "b.example")])]), size);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(greet("a.example", 443, &single), "ServerName b.example", "{size}");
    }
}

#[test]
fn a_greeting_that_is_broken_is_refused_on_any_port() {
    let good = message(&[names(&[(0, "a.example")])]);
    let twice = message(&[names(&[(0, "a.example")]), names(&[(0, "a.example")])]);
    let two = message(&[names(&[(0, "a.example"), (0, "b.example")])]);
    let kind = message(&[names(&[(1, "a.example")])]);
    let mut longer = good.clone();
    longer[3] -= 1;
    let mut finished = good.clone();
    finished[0] = 20;
    let mut huge = good.clone();
    huge[1] = 1;
    for (what, bytes) in [
        ("named twice", records(&twice, 400)),
        ("two names", records(&two, 400)),
        ("another kind of name", records(&kind, 400)),
        ("a wrong length", records(&longer, 400)),
        ("another message", records(&finished, 400)),
        ("a huge message", records(&huge, 400)),
        ("an empty record", vec![22, 3, 1, 0, 0]),
        ("a long record", vec![22, 3, 1, 0xff, 0xff]),
        ("another version", vec![22, 2, 1, 0, 9]),
        ("an alert between", [&records(&good, 10)[..15], &[21, 3, 1, 0, 2, 1, 0]].concat()),
    ] {
        for port in [443, 22] {
            assert_eq!(greet("a.example", port, &[&bytes]), "NotTls ", "{what}");
        }
    }
}

#[test]
fn what_is_not_tls_passes_on_other_ports_only() {
    for bytes in [&b"GET / HTTP/1.1\r\n"[..], b"SSH-2.0-x\r\n", &[0x80, 0x2e, 1, 3, 1]] {
        assert_eq!(greet("a.example", 443, &[bytes]), "NotTls ");
        assert_eq!(greet("a.example", 22, &[bytes]), format!("{} ", bytes.len()));
    }
}

#[test]
fn a_greeting_without_end_is_refused() {
    let padding = vec![extension(21, &[0; 16_000])];
    let bytes = records(&message(&padding), 1);
    assert_eq!(greet("a.example", 443, &[&bytes]), "NotTls ");
}

proptest::proptest! {
    #[test]
    fn looking_never_panics_and_any_split_gives_the_same(
        noise in proptest::collection::vec((0_usize..120, proptest::num::u8::ANY), 0..4),
        size in 1_usize..60,
        cut in 1_usize..130,
    ) {
        let mut bytes = records(&message(&[names(&[(0, "a.example")])]), size);
        for (at, byte) in noise {
            let length = bytes.len();
            bytes[at % length] = byte;
        }
        let parts: Vec<&[u8]> = bytes.chunks(cut).collect();
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let verdict = |said: String| said.split(' ').next().map(|word| word.parse::<usize>().is_err().then(|| word.to_owned())).unwrap();
        let whole = verdict(greet("a.example", 443, &[&bytes]));
        proptest::prop_assert_eq!(verdict(greet("a.example", 443, &parts)), whole.clone());
        proptest::prop_assert_eq!(verdict(greet("a.example", 443, &single)), whole);
    }
}
