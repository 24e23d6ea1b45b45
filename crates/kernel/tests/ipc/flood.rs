//! Peers that do not read, peers that do not stop, and all kinds of them at once.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fluffy_base::{FrameDecoder, Message, encode_frame};
use fluffy_kernel::ServerOptions;
use serde_json::json;

use crate::lab::{LONG, Lab, Told, request};

#[test]
fn a_peer_that_never_reads_is_cut_off_when_its_queue_is_full() {
    let lab = Lab::with(ServerOptions { queue: 1 << 20, ..ServerOptions::default() });
    let good = lab.client();
    let mut peer = lab.known();
    peer.ask(1, "flood", json!({ "count": 1_000, "text": "x".repeat(4 << 10) }));
    lab.told(|told| matches!(told, Told::Left(peer) if peer.name() == "raw").then_some(()));
    assert!(good.call("echo", json!([]), LONG).is_ok());
    let read = std::iter::from_fn(|| peer.next()).count();
    assert!(read < 1_000, "what did not fit was not kept: {read}");
}

#[test]
fn a_peer_that_asks_and_never_reads_is_cut_off_in_the_end() {
    let patience = Duration::from_millis(50);
    let lab = Lab::with(ServerOptions { patience, ..ServerOptions::default() });
    let good = lab.client();
    let mut peer = lab.known();
    while peer.ask(1, "health.ping", json!({})) {}
    lab.told(|told| matches!(told, Told::Left(peer) if peer.name() == "raw").then_some(()));
    assert!(good.call("echo", json!([]), LONG).is_ok());
}

#[test]
fn a_client_that_sends_and_is_sent_much_does_not_wait_for_itself() {
    let lab = Lab::new();
    let client = lab.client();
    let text = "x".repeat(32 << 10);
    for _ in 0..4 {
        let flood = json!({ "count": 50, "text": text });
        client.send(&request(1 << 40, "flood", flood)).unwrap();
        client.send(&request(1 << 41, "echo", json!({ "text": "x".repeat(1 << 20) }))).unwrap();
    }
    assert!(client.call("echo", json!([]), LONG).is_ok());
    let (mut events, mut answers) = (0, 0);
    while let Some(message) = client.receive(Some(Duration::ZERO)).unwrap() {
        match message {
            Message::Event { .. } => events += 1,
            _ => answers += 1,
        }
    }
    assert_eq!((events, answers), (200, 8));
}

/// What hostile peers do until they are told to stop.
const HOSTILE: [fn(&Lab, &AtomicBool); 8] = [
    |lab, stop| {
        while !stop.load(Ordering::Relaxed) {
            let mut peer = lab.raw();
            peer.frame(b"null");
            peer.farewell();
        }
    },
    |lab, stop| {
        while !stop.load(Ordering::Relaxed) {
            let mut peer = lab.known();
            peer.frame("[".repeat(60_000).as_bytes());
            peer.farewell();
        }
    },
    |lab, stop| {
        while !stop.load(Ordering::Relaxed) {
            let mut peer = lab.known();
            peer.write(&(1_u32 << 20).to_be_bytes());
            peer.write(&vec![b'x'; 1 << 19]);
        }
    },
    |lab, stop| {
        let mut peer = lab.known();
        let frame = encode_frame(&request(1, "echo", json!([])).to_bytes(), 1 << 20).unwrap();
        for byte in frame.iter().cycle().take_while(|_| !stop.load(Ordering::Relaxed)) {
            peer.write(&[*byte]);
        }
    },
    |lab, stop| {
        while !stop.load(Ordering::Relaxed) {
            let mut peer = lab.known();
            peer.ask(1, "flood", json!({ "count": 2_000, "text": "x".repeat(4 << 10) }));
        }
    },
    |lab, stop| {
        while !stop.load(Ordering::Relaxed) {
            drop(lab.raw());
        }
    },
    |lab, stop| {
        while !stop.load(Ordering::Relaxed) {
            let mut peer = lab.known();
            let frames =
                encode_frame(&request(1, "no.such", json!([])).to_bytes(), 1 << 20).unwrap();
            peer.write(&frames.repeat(1_000));
        }
    },
    |lab, stop| {
        while !stop.load(Ordering::Relaxed) {
            let mut peer = lab.known();
            peer.frame(&vec![b' '; 1 << 20]);
            peer.frame(&vec![b'['; 1 << 20]);
        }
    },
];

#[test]
fn a_good_client_is_answered_whatever_all_others_do() {
    // So that those who never read do not block themselves for long.
    let patience = Duration::from_secs(1);
    let lab = Lab::with(ServerOptions { queue: 1 << 20, patience, ..ServerOptions::default() });
    let stop = AtomicBool::new(false);
    let mut answers = 0;
    std::thread::scope(|scope| {
        for hostile in HOSTILE {
            let (lab, stop) = (&lab, &stop);
            scope.spawn(move || hostile(lab, stop));
        }
        let good = lab.client();
        for number in 0..500 {
            let params = json!({ "number": number });
            answers += usize::from(good.call("echo", params.clone(), LONG) == Ok(params));
        }
        let (_second, _) = lab.connect(None).unwrap();
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(answers, 500);
}

/// The same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
}

/// A frame: mostly a message of random content, now and then one with bytes changed, cut or made up.
fn random_frame(numbers: &mut Numbers) -> Vec<u8> {
    let methods = ["echo", "health.ping", "no.such", "connection.closed"];
    let again = numbers.below(400) == 0;
    let method = if again { "hello" } else { methods[numbers.below(methods.len())] }.to_owned();
    let params = match numbers.below(4) {
        0 => json!({ "number": numbers.next() >> 11 }),
        1 => json!([[numbers.below(9)], null, "\u{1F980}"]),
        2 => json!({}),
        _ => json!(null),
    };
    let id = numbers.next() >> (11 + numbers.below(53));
    let message = match numbers.below(8) {
        0 => Message::Event { method, params },
        1 => Message::Response { id, outcome: Ok(params) },
        _ => Message::Request { id, method, params },
    };
    let mut payload = message.to_bytes();
    match numbers.below(400) {
        0 => {
            let place = numbers.below(payload.len());
            payload[place] = numbers.next().to_be_bytes()[0];
        }
        1 => payload.truncate(1 + numbers.below(payload.len())),
        2 => payload = (0..=numbers.below(60)).map(|_| numbers.next().to_be_bytes()[0]).collect(),
        _ => {}
    }
    let mut frame = encode_frame(&payload, usize::MAX).unwrap();
    if numbers.below(2_000) == 0 {
        frame[numbers.below(4)] = numbers.next().to_be_bytes()[0];
    }
    frame
}

/// Some at a time, as a busy peer would send them.
fn random_frames(numbers: &mut Numbers) -> Vec<u8> {
    let mut frames = Vec::new();
    for _ in 0..32 {
        frames.extend_from_slice(&random_frame(numbers));
    }
    frames
}

/// How many frames come until the other side hangs up.
fn count_frames(mut socket: UnixStream) -> usize {
    let mut decoder = FrameDecoder::new(usize::MAX);
    let mut buffer = vec![0; 64 << 10];
    let mut frames = 0;
    while let Ok(size) = socket.read(&mut buffer)
        && size > 0
    {
        let mut input = &buffer[..size];
        while decoder.next_frame(&mut input).unwrap().is_some() {
            frames += 1;
        }
    }
    frames
}

#[test]
fn slow_a_million_random_frames_leave_the_server_as_it_was() {
    let lab = Lab::new();
    let good = lab.client();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut answers, mut connections) = (0, 0);
    // Three of four frames are requests, so that a million frames have been looked at by then.
    while answers < 750_000 {
        connections += 1;
        let mut peer = lab.known();
        let reader = peer.socket.try_clone().unwrap();
        answers += std::thread::scope(|scope| {
            let counted = scope.spawn(move || count_frames(reader));
            while peer.write(&random_frames(&mut numbers)) {}
            counted.join().unwrap()
        });
        assert_eq!(good.call("echo", json!([connections]), LONG).unwrap(), json!([connections]));
    }
    assert!(connections > 1_000, "{connections}");
}
