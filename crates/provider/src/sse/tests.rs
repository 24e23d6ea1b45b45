//! However a stream is cut, its events are the same.

use std::path::Path;

use proptest::prelude::*;

use super::*;

/// The events of a stream that comes in these pieces.
fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<SseEvent> {
    let (mut decoder, mut events) = (SseDecoder::default(), Vec::new());
    for piece in pieces {
        decoder.take(piece, &mut events).unwrap();
    }
    events
}

fn event(kind: &str, data: &str) -> SseEvent {
    SseEvent { kind: kind.to_owned(), data: data.to_owned() }
}

#[test]
fn the_examples_of_the_standard_are_read_as_it_says() {
    for (stream, expected) in [
        ("data: YHOO\ndata: +2\ndata: 10\n\n", vec![event("", "YHOO\n+2\n10")]),
        (
            ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
            vec![event("", "first event"), event("", "second event"), event("", " third event")],
        ),
        ("data\n\ndata\ndata\n\ndata:", vec![event("", ""), event("", "\n")]),
        ("data:test\n\ndata: test\n\n", vec![event("", "test"), event("", "test")]),
        (
            "event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\n",
            vec![event("add", "73857293"), event("remove", "2153")],
        ),
    ] {
        assert_eq!(events([stream.as_bytes()]), expected, "{stream:?}");
    }
}

#[test]
fn lines_end_in_any_of_three_ways_and_in_a_mixture() {
    let expected = vec![event("a", "1\n2"), event("", "3")];
    for stream in [
        "event:a\ndata:1\ndata:2\n\ndata:3\n\n",
        "event:a\r\ndata:1\r\ndata:2\r\n\r\ndata:3\r\n\r\n",
        "event:a\rdata:1\rdata:2\r\rdata:3\r\r",
        "event:a\rdata:1\ndata:2\r\n\rdata:3\n\r\n",
        "\u{feff}event:a\ndata:1\ndata:2\n\n: a comment\n\ndata:3\n\n",
    ] {
        assert_eq!(events([stream.as_bytes()]), expected, "{stream:?}");
    }
}

#[test]
fn a_byte_order_mark_is_one_at_the_beginning_only() {
    let stream = "\u{feff}data: 1\n\n\u{feff}data: 2\n\ndata: 3\n\n";
    assert_eq!(events([stream.as_bytes()]), [event("", "1"), event("", "3")]);
}

#[test]
fn a_kind_without_data_is_no_event_and_sticks_to_no_other() {
    assert_eq!(events([b"event: ping\n\ndata: 1\n\n".as_slice()]), [event("", "1")]);
}

#[test]
fn what_the_end_cuts_off_is_no_event() {
    for stream in ["data: 1", "data: 1\n", "data: 1\r\n", "event: a\ndata: 1\n"] {
        let (mut decoder, mut events) = (SseDecoder::default(), Vec::new());
        decoder.take(stream.as_bytes(), &mut events).unwrap();
        assert!(events.is_empty() && !decoder.is_between_events(), "{stream:?}");
    }
    let mut decoder = SseDecoder::default();
    decoder.take(b"data: 1\n\n: bye\n", &mut Vec::new()).unwrap();
    assert!(decoder.is_between_events());
}

#[test]
fn an_event_of_any_length_is_refused_in_bounded_memory() {
    for piece in [
        b"data: xxxxxxxx".repeat(4_096),
        [b"data: ".as_slice(), &[b'x'; 4_096], b"\n"].concat(),
        vec![b'x'; 65_536],
    ] {
        let (mut decoder, mut events) = (SseDecoder::default(), Vec::new());
        let mut fed = 0;
        let error = loop {
            match decoder.take(&piece, &mut events) {
                Ok(()) => fed += piece.len(),
                Err(error) => break error,
            }
            assert!(fed < 8 * MAX_EVENT_BYTES, "nobody stopped it");
        };
        assert!(matches!(error, ProviderError::Malformed(_)), "{error}");
        assert!(decoder.line.len() + decoder.event.data.len() <= MAX_EVENT_BYTES);
    }
}

/// Every recorded stream, cut in two at every byte. A piece that begins at the cut reaches a few events further:
/// where it leaves the decoder as single bytes do, the rest is the same as well.
#[test]
fn every_recording_gives_the_same_events_however_it_is_cut() {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let mut seen = 0;
    for file in std::fs::read_dir(recordings).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "sse") {
            continue;
        }
        seen += 1;
        let bytes = std::fs::read(&path).unwrap();
        // What single bytes make of it: the decoder before each byte, and how many events there were.
        let (mut decoder, mut whole) = (SseDecoder::default(), Vec::new());
        let mut states = vec![(decoder.clone(), 0)];
        for byte in &bytes {
            decoder.take(&[*byte], &mut whole).unwrap();
            states.push((decoder.clone(), whole.len()));
        }
        assert_eq!(events([bytes.as_slice()]), whole, "{path:?}");
        for (at, (before, count)) in states.iter().enumerate() {
            for further in [2, 200] {
                let to = bytes.len().min(at + further);
                let (mut decoder, mut events) = (before.clone(), Vec::new());
                decoder.take(&bytes[at..to], &mut events).unwrap();
                let (expected, total) = &states[to];
                assert!(decoder == *expected, "{path:?} from {at} to {to}");
                assert!(events == whole[*count..*total], "{path:?} from {at} to {to}");
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

proptest! {
    #[test]
    fn any_stream_gives_the_same_events_however_it_is_cut(
        parts in prop::collection::vec(prop::sample::select(vec![
            "data", ": ", ":", " ", "\n", "\r", "\r\n", "\n\n", "event", "ä", "\u{1f9c7}", "\u{feff}", "x",
            "id: 1", "retry: 5",
        ]), 0..40),
        mut cuts in prop::collection::vec(0_usize..200, 0..10),
    ) {
        let stream = parts.concat().into_bytes();
        cuts.retain(|at| *at <= stream.len());
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|two| &stream[two[0]..two[1]]);
        prop_assert_eq!(events(pieces), events([stream.as_slice()]));
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(events(bytes.chunks(1)), events([bytes.as_slice()]));
    }
}
