//! Anthropic's messages, on what Anthropic sent.

mod answers;
mod requests;

pub(crate) use requests::any_request;

use fluffy_provider::{Protocol, StopReason, StreamEvent};
use proptest::prelude::*;

use crate::recorded::{
    Recording, asking, check_cuts, check_damaged, check_truncations, decode, recordings, shown,
};

const HERE: Protocol = Protocol::Anthropic;

fn streams() -> Vec<Recording> {
    let streams = recordings(&["--anthropic-"]);
    assert!(streams.len() >= 15, "{}", streams.len());
    streams
}

#[test]
fn every_recorded_stream_says_what_it_says() {
    for recording in streams() {
        let (said, end) = decode(HERE, &asking("m"), [recording.stream.as_slice()]);
        assert_eq!(end, Ok(()), "{}", recording.name);
        insta::assert_snapshot!(recording.name, shown(&said));
    }
}

#[test]
fn every_recorded_stream_cut_anywhere_says_the_same() {
    streams().iter().for_each(|recording| check_cuts(HERE, recording));
}

#[test]
fn a_stream_that_ends_too_early_is_no_turn() {
    streams().iter().for_each(|recording| check_truncations(HERE, recording));
}

#[test]
fn what_comes_behind_the_end_changes_nothing() {
    for recording in streams() {
        let twice = [recording.stream.as_slice(), b"\n\n", recording.stream.as_slice()];
        let (said, end) = decode(HERE, &asking("m"), twice);
        assert_eq!(end, Ok(()));
        assert_eq!(said, decode(HERE, &asking("m"), [recording.stream.as_slice()]).0);
    }
}

#[test]
fn a_stop_is_the_last_piece() {
    for recording in streams() {
        let (said, _) = decode(HERE, &asking("m"), [recording.stream.as_slice()]);
        let stops = said.iter().filter(|piece| matches!(piece, StreamEvent::Stop(_))).count();
        assert_eq!(stops, 1, "{}", recording.name);
        let calls = said.iter().any(|piece| matches!(piece, StreamEvent::CallStarted { .. }));
        let waits = said.last() == Some(&StreamEvent::Stop(StopReason::Calls));
        assert_eq!(calls, waits, "{}", recording.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_damaged_stream_is_read_without_harm(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        lost in any::<prop::sample::Index>(),
        length in 0_usize..200,
    ) {
        let streams = streams();
        let mut stream = which.get(&streams).stream.clone();
        for (at, byte) in &changes {
            let at = at.index(stream.len());
            stream[at] = *byte;
        }
        let lost = lost.index(stream.len());
        stream.drain(lost..(lost + length).min(stream.len()));
        check_damaged(HERE, &stream);
    }
}
