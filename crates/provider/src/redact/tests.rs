//! No secret comes out whole, however it is cut; nothing else is lost.

use proptest::prelude::*;

use super::*;
use crate::StopReason;

const KEY: &str = "sk-live-0123456789abcdef";

fn redactor(headers: &[(&str, &str)]) -> Redactor {
    let header =
        |(name, value): &(&str, &str)| ((*name).to_owned(), Secret::new((*value).to_owned()));
    Redactor::of(&headers.iter().map(header).collect::<Vec<_>>())
}

fn bearer() -> Redactor {
    redactor(&[("authorization", &format!("Bearer {KEY}"))])
}

/// What comes out of these pieces, each kind for itself.
fn out(pieces: Vec<StreamEvent>) -> (String, String, String) {
    let (mut redactor, mut out) = (bearer(), Vec::new());
    for piece in pieces {
        redactor.take(piece, &mut out);
    }
    redactor.take(StreamEvent::Stop(StopReason::End), &mut out);
    let (mut text, mut thoughts, mut arguments) = (String::new(), String::new(), String::new());
    for piece in out {
        match piece {
            StreamEvent::Text(piece) => text.push_str(&piece),
            StreamEvent::Reasoning(piece) => thoughts.push_str(&piece),
            StreamEvent::CallArguments { fragment, .. } => arguments.push_str(&fragment),
            _ => {}
        }
    }
    (text, thoughts, arguments)
}

fn text(piece: &str) -> StreamEvent {
    StreamEvent::Text(piece.to_owned())
}

fn arguments(index: u32, piece: &str) -> StreamEvent {
    StreamEvent::CallArguments { index, fragment: piece.to_owned() }
}

#[test]
fn a_key_split_anywhere_does_not_come_out() {
    for at in 0..=KEY.len() {
        let (one, other) = KEY.split_at(at);
        let (one, other) = (format!("it is {one}"), format!("{other}, you know"));
        let thought = |piece: &str| StreamEvent::Reasoning(piece.to_owned());
        let expected = "it is ***, you know".to_owned();
        assert_eq!(out(vec![text(&one), text(&other)]).0, expected, "{at}");
        assert_eq!(out(vec![thought(&one), thought(&other)]).1, expected, "{at}");
        let interleaved = vec![arguments(0, &one), arguments(1, "x"), arguments(0, &other)];
        assert!(!out(interleaved).2.contains("0123"), "{at}");
    }
    let byte_by_byte = KEY.chars().map(|c| text(&c.to_string())).collect();
    assert_eq!(out(byte_by_byte).0, "***");
}

#[test]
fn what_only_begins_like_a_key_comes_out_in_its_place() {
    let (mut redactor, mut out) = (bearer(), Vec::new());
    redactor.take(text("all the tests"), &mut out);
    let call =
        StreamEvent::CallStarted { index: 0, id: "1".to_owned(), name: "fs.read".to_owned() };
    redactor.take(call.clone(), &mut out);
    assert_eq!(out, [text("all the test"), text("s"), call]);
    out.clear();
    redactor.take(text("a sk-live"), &mut out);
    redactor.take(StreamEvent::Reasoning(String::new()), &mut out);
    redactor.take(text(" show"), &mut out);
    assert_eq!(out, [text("a "), text("sk-live show")]);
}

#[test]
fn a_stream_that_ends_in_the_middle_of_the_key_gives_little_of_it_away() {
    for at in 1..KEY.len() {
        let (shown, ..) = out(vec![text(&format!("it is {}", &KEY[..at]))]);
        assert!(shown == "it is ***" || at < KEY.len() / 2, "{shown}");
    }
}

#[test]
fn the_key_is_masked_in_ids_names_blocks_and_errors() {
    let (mut redactor, mut out) = (bearer(), Vec::new());
    redactor.take(
        StreamEvent::CallStarted { index: 0, id: KEY.to_owned(), name: format!("a{KEY}") },
        &mut out,
    );
    redactor.take(
        StreamEvent::ReasoningBlock { origin: "o".to_owned(), data: format!("[{KEY}]") },
        &mut out,
    );
    assert!(!format!("{out:?}").contains("0123"), "{out:?}");
    let failed = HostAnswer::Failed(ProviderError::BadKey(format!("no such key: {KEY}{KEY}!")));
    let clean = HostAnswer::Failed(ProviderError::BadKey("no such key: ******!".to_owned()));
    assert_eq!(redactor.answer(failed), clean);
}

#[test]
fn only_what_is_a_secret_is_masked() {
    let redactor = redactor(&[
        ("authorization", "Bearer ollama"),
        ("x-title", "fluffy-waffle-for-all"),
        ("http-referer", "https://example.org/abc123def456"),
        ("x-team", "a1b2c3d4e5f6a7b8"),
        ("x-api-key", "letters-only-key"),
    ]);
    let said = "ollama Bearer fluffy-waffle-for-all https://example.org/abc123def456";
    assert_eq!(redactor.masked(said), said);
    assert_eq!(redactor.masked("a1b2c3d4e5f6a7b8 letters-only-key"), "*** ***");
}

proptest! {
    #[test]
    fn pieces_come_out_as_the_whole_would(
        parts in prop::collection::vec(prop::sample::select(vec![
            "s", "sk", "sk-live-", "sk-live-0123456789", "0123456789abcdef", "abcdef", KEY, "ä", " ",
        ]), 0..12),
        cuts in prop::collection::vec(0_usize..400, 0..12),
    ) {
        let whole = parts.concat();
        let mut cuts: Vec<usize> =
            cuts.into_iter().filter(|at| whole.is_char_boundary(*at)).chain([0, whole.len()]).collect();
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|two| text(&whole[two[0]..two[1]])).collect();
        let (shown, ..) = out(pieces);
        let masked = bearer().masked(&whole);
        let cut = shown.strip_suffix(MASK).is_some_and(|shown| masked.starts_with(shown));
        prop_assert!(shown == masked || cut, "{} {}", shown, masked);
        prop_assert!(!shown.contains(KEY));
    }
}
