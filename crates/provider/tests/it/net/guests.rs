//! Guests that die, hang, lie or are not wanted any more.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fluffy_base::Secret;
use fluffy_provider::{
    Endpoint, Guest, GuestFailure, Guests, HostAnswer, Model, Patience, Protocol, Provider as _,
    ProviderError, Remote, StopReason, StreamEvent,
};

use super::scene::{pieces, request};

/// What a guest does when it is listened to.
#[derive(Clone)]
enum Does {
    Says(HostAnswer),
    Sends(&'static [u8]),
    Nothing,
    Dies,
    Garbles,
}

/// Guests that do what is written, one after the other; how many were started, ended, and what they were sent.
#[derive(Clone, Default)]
struct Scripted {
    scripts: Arc<Mutex<VecDeque<Vec<Does>>>>,
    started: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
}

struct Actor {
    script: VecDeque<Does>,
    scene: Scripted,
}

impl Guests for Scripted {
    fn start(&self) -> Result<Box<dyn Guest>, String> {
        let script = self.scripts.lock().unwrap().pop_front().ok_or("no sandbox for it")?;
        self.started.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(Actor { script: script.into(), scene: self.clone() }))
    }
}

impl Guest for Actor {
    fn send(&mut self, bytes: &[u8], _: Duration) -> Result<usize, GuestFailure> {
        if let Some(Does::Dies) = self.script.front() {
            return Err(GuestFailure::Died);
        }
        self.scene.sent.lock().unwrap().push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn receive(&mut self, _: Duration) -> Result<Option<Vec<u8>>, GuestFailure> {
        match self.script.pop_front() {
            Some(Does::Says(answer)) => Ok(Some(serde_json::to_vec(&answer).unwrap())),
            Some(Does::Sends(bytes)) => Ok(Some(bytes.to_vec())),
            Some(Does::Nothing) => {
                self.script.push_front(Does::Nothing);
                Ok(None)
            }
            Some(Does::Garbles) => Err(GuestFailure::Garbled),
            Some(Does::Dies) | None => Err(GuestFailure::Died),
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.scene.ended.fetch_add(1, Ordering::SeqCst);
    }
}

fn scene(scripts: &[&[Does]]) -> (Remote, Scripted) {
    let scene = Scripted::default();
    scene.scripts.lock().unwrap().extend(scripts.iter().map(|script| script.to_vec()));
    let endpoint = Endpoint {
        provider: "scripted".to_owned(),
        protocol: Protocol::OpenaiCompatible,
        url: "https://api.example".parse().unwrap(),
        version: None,
        effort: None,
        certificates: None,
        patience: Patience::default(),
    };
    let headers = vec![("authorization".to_owned(), Secret::new("the key".to_owned()))];
    let model = Model { name: "m".to_owned(), context_window: 1, ..Model::default() };
    (Remote::new(Box::new(scene.clone()), endpoint, headers, model), scene)
}

fn text(text: &str) -> Does {
    Does::Says(HostAnswer::Piece(StreamEvent::Text(text.to_owned())))
}

fn stops() -> Does {
    Does::Says(HostAnswer::Piece(StreamEvent::Stop(StopReason::End)))
}

fn done() -> Does {
    Does::Says(HostAnswer::Done)
}

impl Scripted {
    fn guests(&self) -> (usize, usize) {
        (self.started.load(Ordering::SeqCst), self.ended.load(Ordering::SeqCst))
    }
}

#[test]
fn a_guest_is_kept_and_told_the_key_once() {
    let (remote, scene) = scene(&[&[text("a"), stops(), done(), text("b"), stops(), done()]]);
    assert_eq!(pieces(&remote).1, Ok(()));
    assert_eq!(pieces(&remote).1, Ok(()));
    assert_eq!(scene.guests(), (1, 0));
    let sent = scene.sent.lock().unwrap();
    let with_key = sent.iter().filter(|frame| String::from_utf8_lossy(frame).contains("the key"));
    assert_eq!((with_key.count(), sent.len()), (1, 3));
    assert!(!format!("{remote:?}").contains("the key"));
    drop(remote);
    drop(sent);
    assert_eq!(scene.guests(), (1, 1));
}

#[test]
fn a_guest_that_dies_is_an_error_and_the_next_turn_has_another() {
    let (remote, scene) = scene(&[
        &[text("a"), Does::Dies],
        &[text("b"), stops(), done(), Does::Dies],
        &[stops(), done()],
    ]);
    let (before, end) = pieces(&remote);
    assert_eq!(before.len(), 1);
    assert_eq!(end, Err(ProviderError::Guest("it died".to_owned())));
    assert_eq!(scene.guests(), (1, 1));
    assert_eq!(pieces(&remote).1, Ok(()));
    // This one died between two turns: nobody notices.
    assert_eq!(pieces(&remote).1, Ok(()));
    assert_eq!(scene.guests(), (3, 2));
    drop(remote);
    assert_eq!(scene.guests(), (3, 3));
}

#[test]
fn a_guest_that_cannot_be_started_is_an_error() {
    let (remote, _) = scene(&[]);
    let error = pieces(&remote).1.unwrap_err();
    assert_eq!(error, ProviderError::Guest("no sandbox for it".to_owned()));
}

#[test]
fn a_guest_that_hangs_is_ended_and_whoever_waits_is_asked_meanwhile() {
    let (remote, scene) = scene(&[&[text("a"), Does::Nothing]]);
    let mut waited = 0;
    let end = remote.turn(&request(), &mut |piece| {
        waited += usize::from(piece == StreamEvent::Waiting);
        ControlFlow::Continue(())
    });
    // As long as all that it may wait for, and some more.
    assert_eq!(waited, (10_000 + 120_000 + 120_000 + 10_000) / 200);
    let error = end.unwrap_err();
    assert!(matches!(&error, ProviderError::Guest(text) if text.contains("was ended")), "{error}");
    assert_eq!(scene.guests(), (1, 1));
}

#[test]
fn who_does_not_want_the_answer_any_more_ends_the_guest() {
    for script in [vec![text("a"), text("b"), stops(), done()], vec![Does::Nothing]] {
        let (remote, scene) = scene(&[&script]);
        let end = remote.turn(&request(), &mut |_| ControlFlow::Break(()));
        assert_eq!(end, Err(ProviderError::Cancelled));
        assert_eq!(scene.guests(), (1, 1));
    }
}

#[test]
fn a_guest_that_lies_is_ended_and_not_believed() {
    let failed = |error| Does::Says(HostAnswer::Failed(error));
    for script in [
        vec![text("a"), done()],
        vec![stops(), text("b")],
        vec![stops(), stops(), done()],
        vec![Does::Says(HostAnswer::Models(vec![]))],
        vec![Does::Says(HostAnswer::Counted(None))],
        vec![Does::Sends(b"nonsense")],
        vec![Does::Sends(b"{\"piece\":{\"text\":\"a\"},\"done\":1}")],
        vec![Does::Garbles],
    ] {
        let (remote, scene) = scene(&[&script]);
        let error = pieces(&remote).1.unwrap_err();
        assert!(matches!(error, ProviderError::Malformed(_)), "{error}");
        assert!(!error.is_retryable());
        assert_eq!(scene.guests(), (1, 1));
    }
    for error in [ProviderError::Cancelled, ProviderError::Expectation("so".to_owned())] {
        let (remote, _) = scene(&[&[failed(error)]]);
        assert!(matches!(pieces(&remote).1, Err(ProviderError::Malformed(_))));
    }
    let (remote, scene) = scene(&[&[text("a")]]);
    let error = remote.models(&mut || ControlFlow::Continue(())).unwrap_err();
    assert!(matches!(error, ProviderError::Malformed(_)), "{error}");
    assert_eq!(scene.guests(), (1, 1));
}

#[test]
fn a_provider_that_fails_leaves_its_guest_alone() {
    let bad = ProviderError::BadKey("no".to_owned());
    let (remote, scene) =
        scene(&[&[Does::Says(HostAnswer::Failed(bad.clone())), text("a"), stops(), done()]]);
    assert_eq!(pieces(&remote).1, Err(bad));
    assert_eq!(pieces(&remote).1, Ok(()));
    assert_eq!(scene.guests(), (1, 0));
}
