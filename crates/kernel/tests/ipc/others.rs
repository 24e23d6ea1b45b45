//! Other processes and other users: who somebody is, the system says.

use fluffy_base::{Fault, FaultCode, Message};
use fluffy_kernel::{Client, ClientOptions, ServerOptions};
use serde_json::json;

use crate::lab::{LONG, Lab, hello, request};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

const ANOTHER_USER: [&str; 4] = ["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups"];

fn refusal(answers: &[Message]) -> Fault {
    match answers.last() {
        Some(Message::Event { params, .. }) => Fault::from_value(params.clone()).unwrap(),
        other => panic!("it was not refused: {other:?}"),
    }
}

#[test]
fn lesson_l12_another_users_process_is_hung_up_on_before_it_says_a_word() {
    if !is_root() {
        return;
    }
    let lab = Lab::open_to_all(ServerOptions::default());
    let answers =
        lab.other_process(&ANOTHER_USER, &[request(1, "health.ping", json!({})), hello(None)]);
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(refusal(&answers).code, FaultCode::NotYours);
    assert_eq!(lab.peers(), 0);
}

#[test]
fn one_more_user_can_be_let_in() {
    if !is_root() {
        return;
    }
    let options = ServerOptions { also: Some(65533), ..ServerOptions::default() };
    let lab = Lab::open_to_all(options);
    let answers = lab.other_process(&ANOTHER_USER, &[hello(None)]);
    assert!(
        matches!(answers.first(), Some(Message::Response { outcome: Ok(_), .. })),
        "{answers:?}"
    );
}

#[test]
fn lesson_l12_another_processs_token_is_refused_and_stays_its_own() {
    let lab = Lab::new();
    let (client, welcome) = lab.connect(None).unwrap();
    let stolen = hello(Some(welcome.token.expose()));
    let answers = lab.other_process(&["setsid", "--wait"], &[stolen]);
    assert!(matches!(answers.first(), Some(Message::Response { outcome: Err(_), .. })));
    assert_eq!(refusal(&answers).code, FaultCode::NotYours);
    assert!(client.call("echo", json!([]), LONG).is_ok(), "the owner is still connected");
    let (_client, again) = lab.connect(Some(welcome.token)).unwrap();
    assert_eq!(again.client, welcome.client);
}

#[test]
fn lesson_l12_a_handshake_replayed_to_the_next_kernel_is_refused() {
    let (lab, next) = (Lab::new(), Lab::new());
    let (_client, welcome) = lab.connect(None).unwrap();
    let answer = next.connect(Some(welcome.token)).map(|_| ()).unwrap_err();
    assert!(answer.to_string().contains("not yours"), "{answer}");
}

#[test]
fn lesson_l12_a_name_gives_no_rights_and_a_peer_cannot_say_that_it_has_a_terminal() {
    let lab = Lab::new();
    let without = ["setsid", "--wait"];
    let asked = request(1, "terminal", json!({ "terminal": true, "tty": "/dev/tty" }));
    let answers = lab.other_process(&without, &[hello(None), asked.clone()]);
    let outcome = Ok(json!(false));
    assert_eq!(answers.last(), Some(&Message::Response { id: 1, outcome }));
    let mut claimed = json!({ "api": [1, 1], "name": "kernel", "terminal": true });
    let answers = lab.other_process(&without, &[request(0, "hello", claimed.take()), asked]);
    assert_eq!(refusal(&answers).code, FaultCode::BadParams);
}

#[test]
fn a_process_with_a_controlling_terminal_is_seen_to_have_one() {
    let lab = Lab::new();
    let answers = lab.in_terminal(&[hello(None), request(1, "terminal", json!({}))]);
    assert_eq!(answers.last(), Some(&Message::Response { id: 1, outcome: Ok(json!(true)) }));
}

#[test]
fn a_client_trusts_no_socket_in_a_directory_that_others_can_write_to() {
    let lab = Lab::open_to_all(ServerOptions::default());
    let options = ClientOptions { name: "test".to_owned(), token: None, patience: LONG };
    let answer = Client::connect(&lab.socket(), options).map(|_| ()).unwrap_err();
    assert_eq!(answer.to_string(), "the socket is not trusted");
}
