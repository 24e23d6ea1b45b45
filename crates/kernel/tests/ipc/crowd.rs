//! Many at once.

use fluffy_base::{FaultCode, Message};
use fluffy_kernel::ServerOptions;
use serde_json::json;

use crate::lab::{LONG, Lab, Raw};

#[test]
fn a_thousand_connections_are_all_served() {
    let lab = Lab::new();
    let good = lab.client();
    let mut peers: Vec<Raw> = (0..1_000).map(|_| lab.known()).collect();
    assert_eq!(lab.peers(), 1_001);
    for peer in &mut peers {
        peer.ask(1, "echo", json!({}));
    }
    assert!(good.call("echo", json!([]), LONG).is_ok());
    for peer in &mut peers {
        assert!(matches!(peer.next(), Some(Message::Response { id: 1, outcome: Ok(_) })));
    }
}

#[test]
fn strangers_make_room_for_those_who_come_later() {
    let lab = Lab::with(ServerOptions { connections: 50, ..ServerOptions::default() });
    let good = lab.client();
    let strangers: Vec<Raw> = (0..200).map(|_| lab.raw()).collect();
    let late = lab.client();
    assert!(late.call("echo", json!([]), LONG).is_ok());
    assert!(good.call("echo", json!([]), LONG).is_ok());
    let first = strangers.into_iter().next().map(|mut stranger| stranger.farewell());
    assert_eq!(first.map(|fault| fault.code), Some(FaultCode::Busy));
}

#[test]
fn those_who_have_shaken_hands_stay_when_it_is_full() {
    let lab = Lab::with(ServerOptions { connections: 20, ..ServerOptions::default() });
    let mut peers: Vec<Raw> = (0..20).map(|_| lab.known()).collect();
    let fault = lab.raw().farewell();
    assert_eq!((fault.code, fault.retryable), (FaultCode::Busy, true));
    for peer in &mut peers {
        peer.ask(1, "echo", json!({}));
        assert!(matches!(peer.next(), Some(Message::Response { id: 1, outcome: Ok(_) })));
    }
}

#[test]
fn whoever_has_most_of_too_much_unfinished_goes() {
    let options = ServerOptions { unfinished: 6 << 20, ..ServerOptions::default() };
    let lab = Lab::with(options);
    let good = lab.client();
    let mut peers: Vec<Raw> = (1..=3).map(|_| lab.known()).collect();
    for (peer, megabytes) in peers.iter_mut().zip([4, 1, 2]) {
        peer.write(&(32_u32 << 20).to_be_bytes());
        peer.write(&vec![b' '; megabytes << 20]);
        assert!(good.call("echo", json!([]), LONG).is_ok());
    }
    assert_eq!(peers[0].farewell().code, FaultCode::Busy);
    assert!(good.call("echo", json!({ "text": "x".repeat(1 << 20) }), LONG).is_ok());
}

#[test]
fn a_peer_with_too_many_open_requests_is_told_to_wait() {
    let lab = Lab::new();
    let mut peer = lab.known();
    for id in 0..1_000 {
        peer.ask(id, "silence", json!({}));
    }
    peer.ask(1_000, "silence", json!({}));
    let Some(Message::Response { id: 1_000, outcome: Err(fault) }) = peer.next() else {
        panic!("it was not told");
    };
    assert_eq!((fault.code, fault.retryable), (FaultCode::Busy, true));
    peer.ask(1_001, "health.ping", json!({}));
    assert!(matches!(peer.next(), Some(Message::Response { id: 1_001, outcome: Ok(_) })));
}
