//! What a good client may rely on.

use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::time::Duration;

use fluffy_base::{FaultCode, Message};
use fluffy_kernel::{CallError, ConnectError, ListenError, ReceiveError, listen};
use serde_json::json;

use crate::lab::{LONG, Lab, Told};

#[test]
fn a_call_is_answered_and_events_are_not_lost_meanwhile() {
    let lab = Lab::new();
    let client = lab.client();
    assert_eq!(
        client.call("echo", json!({ "a": [1, "é"] }), LONG).unwrap(),
        json!({ "a": [1, "é"] })
    );
    client.call("flood", json!({ "count": 1000, "text": "x" }), LONG).unwrap();
    for number in 0..1000 {
        let Some(Message::Event { params, .. }) = client.receive(Some(LONG)).unwrap() else {
            panic!("event {number} is missing");
        };
        assert_eq!(params["number"], number);
    }
    assert_eq!(client.receive(Some(Duration::ZERO)), Ok(None));
}

#[test]
fn several_threads_share_a_client() {
    let lab = Lab::new();
    let client = lab.client();
    std::thread::scope(|scope| {
        let events = scope
            .spawn(|| (0..400).filter(|_| client.receive(Some(LONG)).unwrap().is_some()).count());
        for thread in 0..4 {
            let client = &client;
            scope.spawn(move || {
                for number in 0..100 {
                    let params = json!([thread, number]);
                    assert_eq!(client.call("echo", params.clone(), LONG).unwrap(), params);
                    client.call("flood", json!({ "count": 1 }), LONG).unwrap();
                }
            });
        }
        assert_eq!(events.join().unwrap(), 400);
    });
}

#[test]
fn an_unknown_method_is_refused_and_the_connection_stays() {
    let lab = Lab::new();
    let client = lab.client();
    let Err(CallError::Fault(fault)) = client.call("no.such", json!({}), LONG) else {
        panic!("it is refused");
    };
    assert_eq!(fault.code, FaultCode::UnknownMethod);
    assert!(client.call("echo", json!([]), LONG).is_ok());
}

#[test]
fn a_client_that_comes_back_with_its_token_is_the_same_client() {
    let lab = Lab::new();
    let (first, welcome) = lab.connect(None).unwrap();
    let (second, again) = lab.connect(Some(welcome.token)).unwrap();
    assert_eq!((again.client, again.kernel), (welcome.client.clone(), welcome.kernel));
    assert!(matches!(
        first.receive(Some(LONG)),
        Err(ReceiveError::HungUp(fault)) if fault.code == FaultCode::NotYours
    ));
    assert!(second.call("echo", json!([]), LONG).is_ok());
    let order: Vec<bool> = (0..3)
        .map(|_| {
            lab.told(|told| match told {
                Told::Joined(peer) => Some((true, peer)),
                Told::Left(peer) => Some((false, peer)),
                Told::Received => None,
            })
        })
        .inspect(|(_, peer)| assert_eq!(peer.id(), welcome.client))
        .map(|(joined, _)| joined)
        .collect();
    assert_eq!(order, [true, false, true], "a client leaves before it joins again");
    assert_eq!(lab.peers(), 1);
}

#[test]
fn the_kernel_knows_the_process_behind_a_client() {
    let lab = Lab::new();
    let _client = lab.client();
    let peer = lab.told(|told| if let Told::Joined(peer) = told { Some(peer) } else { None });
    assert_eq!((peer.pid(), peer.name()), (std::process::id(), "test"));
    assert_eq!(peer.uid(), rustix::process::geteuid().as_raw());
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let terminal = stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(4).unwrap();
    assert_eq!(peer.has_terminal(), terminal != "0");
}

#[test]
fn a_server_that_stops_says_so_and_leaves_no_socket() {
    let mut lab = Lab::new();
    let client = lab.client();
    let socket = lab.socket();
    let mode = std::fs::symlink_metadata(&socket).unwrap();
    assert!(mode.file_type().is_socket());
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    assert!(matches!(listen(&socket), Err(ListenError::AlreadyRunning(_))));
    lab.server.take().unwrap().stop();
    assert!(matches!(
        client.receive(Some(LONG)),
        Err(ReceiveError::HungUp(fault)) if fault.code == FaultCode::Stopping && fault.retryable
    ));
    assert!(!socket.exists());
    assert!(matches!(lab.connect(None), Err(ConnectError::NotRunning(_))));
    lab.told(|told| matches!(told, Told::Left(_)).then_some(()));
    assert!(listen(&socket).is_ok());
}

#[test]
fn whoever_is_hung_up_on_is_told_why() {
    let lab = Lab::new();
    let client = lab.client();
    let answer = client.call("hang.up", json!({}), LONG).unwrap_err();
    assert!(
        matches!(&answer, CallError::Gone(ReceiveError::HungUp(fault)) if fault.message == "as asked"),
        "{answer}"
    );
}

#[test]
fn a_service_that_panics_loses_that_peer_alone() {
    let lab = Lab::new();
    let (client, other) = (lab.client(), lab.client());
    assert!(matches!(
        client.call("panic", json!({}), LONG),
        Err(CallError::Gone(ReceiveError::HungUp(fault))) if fault.code == FaultCode::Internal
    ));
    assert!(other.call("echo", json!([]), LONG).is_ok());
}

#[test]
fn closing_wakes_whoever_waits() {
    let lab = Lab::new();
    let client = lab.client();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.receive(None));
        client.close();
        assert_eq!(waiting.join().unwrap(), Err(ReceiveError::Closed));
    });
    lab.told(|told| matches!(told, Told::Left(_)).then_some(()));
    assert_eq!(lab.peers(), 0);
}

#[test]
fn a_message_of_many_megabytes_goes_there_and_back() {
    let lab = Lab::new();
    let client = lab.client();
    let params = json!({ "text": "x".repeat(3 << 20) });
    assert_eq!(client.call("echo", params.clone(), LONG).unwrap(), params);
    let too_large = json!({ "text": "x".repeat(33 << 20) });
    assert!(matches!(client.call("echo", too_large, LONG), Err(CallError::TooLarge(_))));
    assert!(client.call("echo", json!([]), LONG).is_ok());
}
