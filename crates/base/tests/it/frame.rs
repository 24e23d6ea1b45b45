//! Frames survive any cutting of the stream, and hostile streams end it.

use std::slice;

use fluffy_base::{FrameDecoder, FrameError, encode_frame};
use proptest::prelude::*;

const LIMIT: usize = 64;

/// The payloads of a stream that arrives in these parts, and how it ended.
fn decode<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, Result<(), FrameError>) {
    let mut decoder = FrameDecoder::new(LIMIT);
    let mut payloads = Vec::new();
    for mut part in parts {
        loop {
            match decoder.next_frame(&mut part) {
                Ok(Some(payload)) => payloads.push(payload),
                Ok(None) => break,
                Err(error) => return (payloads, Err(error)),
            }
        }
        assert!(part.is_empty(), "nothing was given although {} bytes are left", part.len());
    }
    (payloads, decoder.finish())
}

fn stream_of(payloads: &[Vec<u8>]) -> Vec<u8> {
    payloads.iter().flat_map(|payload| encode_frame(payload, LIMIT)).flatten().collect()
}

/// The stream in parts of these lengths, over and over.
fn cut<'a>(mut stream: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    for length in lengths.iter().cycle() {
        if stream.is_empty() {
            break;
        }
        let (part, rest) = stream.split_at(stream.len().min(*length));
        parts.extend([part, &[]]);
        stream = rest;
    }
    parts
}

#[test]
fn a_frame_is_its_length_big_endian_and_its_payload() {
    assert_eq!(encode_frame(b"hi", LIMIT), Ok(b"\0\0\0\x02hi".to_vec()));
    assert_eq!(encode_frame(&[7; 258], 258).unwrap()[..5], [0, 0, 1, 2, 7]);
}

#[test]
fn lesson_l18_the_four_bytes_null_are_a_payload_like_any_other() {
    let payloads = vec![b"null".to_vec(), b"null".to_vec()];
    assert_eq!(decode([stream_of(&payloads).as_slice()]), (payloads, Ok(())));
}

#[test]
fn lesson_l18_the_bare_four_bytes_null_are_a_header_over_the_limit() {
    let error = FrameError::TooLarge { size: 0x6e75_6c6c, limit: LIMIT };
    assert_eq!(decode([b"null".as_slice()]), (vec![], Err(error)));
}

#[test]
fn a_frame_at_the_limit_passes_and_one_byte_more_is_refused_at_the_header() {
    let payload = vec![7; LIMIT];
    assert_eq!(decode([stream_of(slice::from_ref(&payload)).as_slice()]), (vec![payload], Ok(())));
    let error = FrameError::TooLarge { size: LIMIT + 1, limit: LIMIT };
    assert_eq!(decode([[0, 0, 0, 65].as_slice()]), (vec![], Err(error)));
    assert_eq!(encode_frame(&[7; LIMIT + 1], LIMIT), Err(error));
    assert_eq!(error.to_string(), "frame of 65 bytes is over the limit of 64");
}

#[test]
fn an_empty_frame_is_refused_on_both_sides() {
    assert_eq!(encode_frame(b"", LIMIT), Err(FrameError::Empty));
    assert_eq!(decode([[0; 4].as_slice()]), (vec![], Err(FrameError::Empty)));
}

#[test]
fn frames_before_a_refused_one_are_delivered_and_none_after_it() {
    let good = encode_frame(b"good", LIMIT).unwrap();
    let stream = [good.as_slice(), &[0xff; 4], &good].concat();
    let error = FrameError::TooLarge { size: 0xffff_ffff, limit: LIMIT };
    assert_eq!(decode([stream.as_slice()]), (vec![b"good".to_vec()], Err(error)));

    let mut decoder = FrameDecoder::new(LIMIT);
    assert_eq!(decoder.next_frame(&mut [0xff; 4].as_slice()), Err(error));
    assert_eq!(decoder.next_frame(&mut good.as_slice()), Err(error));
    assert_eq!(decoder.next_frame(&mut [].as_slice()), Err(error));
    assert_eq!(decoder.finish(), Err(error));
}

#[test]
fn a_stream_that_ends_inside_a_frame_is_truncated_and_between_frames_it_is_not() {
    let stream = stream_of(&[b"one".to_vec(), b"two".to_vec()]);
    for end in 0..=stream.len() {
        let (payloads, ended) = decode([&stream[..end]]);
        assert_eq!(payloads.len(), end / 7);
        let expected = if end % 7 == 0 { Ok(()) } else { Err(FrameError::Truncated) };
        assert_eq!(ended, expected, "{end}");
    }
}

proptest! {
    #[test]
    fn any_cutting_of_any_frames_gives_the_same_frames(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..=LIMIT), 0..12),
        lengths in prop::collection::vec(1_usize..100, 1..8),
    ) {
        let stream = stream_of(&payloads);
        prop_assert_eq!(decode(cut(&stream, &lengths)), (payloads, Ok(())));
    }

    #[test]
    fn any_bytes_however_cut_end_in_the_same_way(
        stream in prop::collection::vec(prop_oneof![4 => Just(0), 1 => 0_u8..9, 1 => any::<u8>()], 0..300),
        lengths in prop::collection::vec(1_usize..100, 1..8),
    ) {
        prop_assert_eq!(decode(cut(&stream, &lengths)), decode([stream.as_slice()]));
    }
}
