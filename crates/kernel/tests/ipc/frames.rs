//! Bytes that are no message, before and after the handshake. After each of them a good client is answered.

use fluffy_base::{FaultCode, Message};
use fluffy_kernel::{Client, ServerOptions};
use serde_json::json;
use std::time::Duration;

use crate::lab::{LONG, Lab, Told, hello, request};

/// Sends bytes as a stranger and as one who has shaken hands; both are hung up on for the same reason.
fn check(bytes: &[u8], code: FaultCode) {
    let lab = Lab::new();
    let good = lab.client();
    for mut peer in [lab.raw(), lab.known()] {
        peer.write(bytes);
        assert_eq!(peer.farewell().code, code, "{:?}", &bytes[..bytes.len().min(40)]);
        answered(&good);
    }
}

fn check_payload(payload: impl AsRef<[u8]>) {
    let payload = payload.as_ref();
    let frame = fluffy_base::encode_frame(payload, usize::MAX).unwrap();
    check(&frame, FaultCode::Malformed);
}

fn answered(good: &Client) {
    assert_eq!(good.call("echo", json!(["good"]), LONG).unwrap(), json!(["good"]));
}

#[test]
fn lesson_l18_the_four_bytes_null_as_a_frame_are_refused() {
    check_payload("null");
}

#[test]
fn lesson_l18_an_empty_frame_is_refused() {
    check(&[0; 4], FaultCode::Malformed);
}

#[test]
fn lesson_l18_huge_and_negative_lengths_are_refused_at_the_header() {
    for length in [u32::MAX, (-1_i32).cast_unsigned(), i32::MIN.cast_unsigned(), (32 << 20) + 1] {
        check(&length.to_be_bytes(), FaultCode::TooLarge);
    }
}

#[test]
fn what_is_no_text_or_no_json_is_refused() {
    for payload in
        [b"\xff\xfe".as_slice(), b"\xed\xa0\x80", b"{", b"{}{}", b"nul", b"{'a':1}", b"\0"]
    {
        check_payload(payload);
    }
}

#[test]
fn ten_thousand_levels_are_refused() {
    check_payload("[".repeat(10_000));
    check_payload("{\"a\":".repeat(10_000));
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    check_payload(format!("{{\"type\":\"event\",\"method\":\"m\",\"params\":{deep}}}"));
}

#[test]
fn values_of_the_wrong_type_are_refused() {
    for payload in [
        "0",
        "-1",
        "[]",
        "true",
        "\"hello\"",
        "{}",
        r#"{"type":1}"#,
        r#"{"type":"request","id":-1,"method":"echo"}"#,
        r#"{"type":"request","id":18446744073709551616,"method":"echo"}"#,
        r#"{"type":"request","id":1,"method":null}"#,
        r#"{"type":"request","id":1,"method":"echo","params":1}"#,
        r#"{"type":"request","id":1,"method":"echo","token":"x"}"#,
        r#"{"type":"request","id":1,"id":2,"method":"echo"}"#,
        r#"{"type":"response","id":1}"#,
    ] {
        check_payload(payload);
    }
}

#[test]
fn a_text_that_would_become_gigabytes_is_refused() {
    check_payload(format!("[{}0]", "0,".repeat(30_000)));
    let lab = Lab::new();
    let (good, mut peer) = (lab.client(), lab.known());
    peer.frame(format!("[{}0]", "{\"\":0},".repeat(4 << 20)).as_bytes());
    assert_eq!(peer.farewell().code, FaultCode::Malformed);
    answered(&good);
}

#[test]
fn a_truncated_frame_is_dropped_with_its_sender() {
    let lab = Lab::new();
    let good = lab.client();
    for cut in [1, 3, 4, 5, 40] {
        let mut peer = lab.known();
        let frame = fluffy_base::encode_frame(&hello(None).to_bytes(), usize::MAX).unwrap();
        peer.write(&frame[..cut]);
        drop(peer);
        lab.told(|told| matches!(told, Told::Left(_)).then_some(()));
        answered(&good);
    }
    assert_eq!(lab.peers(), 1);
}

#[test]
fn whoever_never_finishes_a_frame_is_hung_up_on() {
    let patience = Duration::from_millis(30);
    let lab = Lab::with(ServerOptions { patience, ..ServerOptions::default() });
    let (good, mut peer) = (lab.client(), lab.known());
    peer.write(&[0, 0, 1, 0, b'{']);
    assert_eq!(peer.farewell().code, FaultCode::TooSlow);
    answered(&good);
}

#[test]
fn whoever_never_says_hello_is_hung_up_on() {
    let handshake = Duration::from_millis(30);
    let lab = Lab::with(ServerOptions { handshake, ..ServerOptions::default() });
    let mut peer = lab.raw();
    assert_eq!(peer.farewell().code, FaultCode::NoHandshake);
    let mut peer = lab.raw();
    while peer.ask(1, "health.ping", json!({})) && peer.next().is_some() {}
}

#[test]
fn a_ping_is_answered_without_a_handshake() {
    let lab = Lab::new();
    for mut peer in [lab.raw(), lab.known()] {
        peer.ask(7, "health.ping", json!({}));
        let Some(Message::Response { id: 7, outcome: Ok(pong) }) = peer.next() else {
            panic!("there is no pong");
        };
        assert_eq!((&pong["pong"], &pong["api"]), (&json!(true), &json!([1, 1])));
    }
}

#[test]
fn before_the_handshake_nothing_reaches_the_service() {
    let lab = Lab::new();
    for message in [
        request(1, "echo", json!({})),
        Message::Event { method: "echo".to_owned(), params: json!({}) },
        Message::Response { id: 1, outcome: Ok(json!({})) },
    ] {
        let mut peer = lab.raw();
        peer.frame(&message.to_bytes());
        assert_eq!(peer.farewell().code, FaultCode::NoHandshake);
    }
    let mut peer = lab.raw();
    peer.ask(1, "echo", json!({}));
    assert!(matches!(peer.next(), Some(Message::Response { id: 1, outcome: Err(_) })));
    let _good = lab.client();
    assert!(matches!(lab.told(Some), Told::Joined(peer) if peer.name() == "test"));
}

#[test]
fn a_frame_may_be_large_only_after_the_handshake() {
    let lab = Lab::new();
    let large = json!({ "text": "x".repeat(64 << 10) });
    let mut stranger = lab.raw();
    stranger.ask(1, "hello", large.clone());
    assert_eq!(stranger.farewell().code, FaultCode::TooLarge);
    assert_eq!(lab.client().call("echo", large.clone(), LONG).unwrap(), large);
}

#[test]
fn versions_that_do_not_meet_are_refused_in_words() {
    let lab = Lab::new();
    let mut peer = lab.raw();
    peer.ask(3, "hello", json!({ "api": [2, 3], "name": "newer" }));
    let Some(Message::Response { id: 3, outcome: Err(fault) }) = peer.next() else {
        panic!("there is no answer");
    };
    assert_eq!(fault.code, FaultCode::Version);
    assert!(fault.message.contains("2 to 3") && fault.message.contains("1 to 1"), "{fault}");
    assert_eq!(peer.farewell(), fault);
}

#[test]
fn a_replayed_hello_ends_the_connection() {
    let lab = Lab::new();
    let mut peer = lab.known();
    peer.frame(&hello(None).to_bytes());
    assert_eq!(peer.farewell().code, FaultCode::BadParams);
}

#[test]
fn a_byte_by_byte_sender_is_understood_and_holds_up_nobody() {
    let lab = Lab::new();
    let (good, mut peer) = (lab.client(), lab.raw());
    for message in [hello(None), request(1, "echo", json!({ "slow": true }))] {
        for byte in fluffy_base::encode_frame(&message.to_bytes(), usize::MAX).unwrap() {
            peer.write(&[byte]);
            answered(&good);
        }
        assert!(matches!(peer.next(), Some(Message::Response { outcome: Ok(_), .. })));
    }
}

#[test]
fn many_messages_in_one_write_are_all_answered_in_order() {
    let lab = Lab::new();
    let mut peer = lab.known();
    let frames: Vec<u8> = (0..500)
        .flat_map(|id| {
            let size = if id % 7 == 0 { 20_000 } else { 10 };
            let message = request(id, "echo", json!({ "text": "x".repeat(size) }));
            fluffy_base::encode_frame(&message.to_bytes(), usize::MAX).unwrap()
        })
        .collect();
    let mut writer = crate::lab::Raw::over(peer.socket.try_clone().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(move || writer.write(&frames));
        for wanted in 0..500 {
            let answer = peer.next();
            assert!(
                matches!(answer, Some(Message::Response { id, .. }) if id == wanted),
                "{answer:?}"
            );
        }
    });
}
