//! Pieces become a turn: none is lost, none is doubled, nothing is guessed.

use fluffy_provider::{
    Assembler, MAX_TURN_BYTES, MAX_TURN_CALLS, StopReason, StreamEvent, StreamFault, Turn, Usage,
};
use proptest::prelude::*;

fn assemble(events: Vec<StreamEvent>) -> Result<Turn, StreamFault> {
    let mut assembler = Assembler::new();
    for event in events {
        assembler.take(event)?;
    }
    assembler.finish()
}

fn started(index: u32) -> StreamEvent {
    StreamEvent::CallStarted { index, id: format!("id{index}"), name: "fs.read".to_owned() }
}

fn fragment(index: u32, text: &str) -> StreamEvent {
    StreamEvent::CallArguments { index, fragment: text.to_owned() }
}

fn text(text: &str) -> StreamEvent {
    StreamEvent::Text(text.to_owned())
}

const STOP: StreamEvent = StreamEvent::Stop(StopReason::End);

#[test]
fn interleaved_calls_keep_their_own_arguments() {
    let turn = assemble(vec![
        text("a"),
        started(7),
        fragment(7, "{\"p\":"),
        started(2),
        fragment(2, "{}"),
        StreamEvent::Waiting,
        fragment(7, "1}"),
        StreamEvent::Stop(StopReason::Calls),
    ])
    .unwrap();
    let calls: Vec<_> = turn.calls.iter().map(|c| (c.id.as_str(), c.arguments.as_str())).collect();
    assert_eq!(calls, [("id7", "{\"p\":1}"), ("id2", "{}")]);
}

#[test]
fn a_sealed_block_knows_its_place() {
    let block = || StreamEvent::ReasoningBlock { origin: "x".to_owned(), data: "s".to_owned() };
    let turn = assemble(vec![block(), text("é"), block(), started(0), block(), STOP]).unwrap();
    let places: Vec<_> = turn.reasoning.iter().map(|b| (b.place.text, b.place.calls)).collect();
    assert_eq!(places, [(0, 0), (2, 0), (2, 1)]);
}

#[test]
fn reports_of_usage_are_joined_and_not_summed() {
    let usage = |input, output| StreamEvent::Usage(Usage { input, output, ..Usage::default() });
    let turn = assemble(vec![usage(9, 1), usage(9, 4), STOP, usage(0, 5)]).unwrap();
    assert_eq!(turn.usage, Some(Usage { input: 9, output: 5, ..Usage::default() }));
    assert_eq!(assemble(vec![STOP]).unwrap().usage, None);
    let absurd = assemble(vec![usage(u64::MAX, 0), STOP]).unwrap();
    assert!(absurd.usage.unwrap().input < 1 << 53);
}

#[test]
fn what_contradicts_itself_is_no_turn() {
    let check = |events, fault| assert_eq!(assemble(events), Err(fault));
    check(vec![started(1), started(1), STOP], StreamFault::CallTwice(1));
    check(vec![fragment(3, "{}"), STOP], StreamFault::UnknownCall(3));
    check(vec![text("a")], StreamFault::Unfinished);
    check(vec![STOP, text("a")], StreamFault::AfterStop);
    check(vec![STOP, STOP], StreamFault::AfterStop);
    check(vec![STOP, started(0)], StreamFault::AfterStop);
}

#[test]
fn an_endless_stream_ends() {
    let piece = "x".repeat(1 << 20);
    let mut events: Vec<_> = (0..=MAX_TURN_BYTES >> 20).map(|_| text(&piece)).collect();
    events.push(STOP);
    assert_eq!(assemble(events), Err(StreamFault::TooLarge));
    let calls = (0..=u32::try_from(MAX_TURN_CALLS).unwrap()).map(started).collect();
    assert_eq!(assemble(calls), Err(StreamFault::TooManyCalls));
    let empty = StreamEvent::ReasoningBlock { origin: String::new(), data: String::new() };
    let blocks = std::iter::repeat_n(empty, MAX_TURN_BYTES / 64 + 1).collect();
    assert_eq!(assemble(blocks), Err(StreamFault::TooLarge));
}

/// One piece, its calls among three.
fn piece() -> impl Strategy<Value = (u32, String)> {
    (0_u32..5, "\\PC{0,8}")
}

proptest! {
    #[test]
    fn no_piece_is_lost_or_doubled(pieces in prop::collection::vec(piece(), 0..60)) {
        let mut events: Vec<_> = (0..3).map(started).collect();
        let mut expected = vec![String::new(); 5];
        for (kind, piece) in &pieces {
            expected[usize::try_from(*kind).unwrap()].push_str(piece);
            events.push(match kind {
                3 => StreamEvent::Text(piece.clone()),
                4 => StreamEvent::Reasoning(piece.clone()),
                index => fragment(*index, piece),
            });
        }
        events.push(STOP);
        let turn = assemble(events).unwrap();
        let mut found: Vec<_> = turn.calls.into_iter().map(|call| call.arguments).collect();
        found.extend([turn.text, turn.thoughts]);
        prop_assert_eq!(found, expected);
    }
}
