//! What real servers sent: the pieces of a turn, however the stream is cut.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use fluffy_provider::{Answer, ModelRequest, Protocol, ProviderError, SseEvent};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;

use super::requests::normal;
use super::{assembled, events, heard, request};

/// An answer of a real server.
pub(crate) struct Recording {
    pub(crate) name: String,
    pub(crate) protocol: Protocol,
    pub(crate) status: u16,
    pub(crate) bytes: Vec<u8>,
    /// What was asked.
    pub(crate) asked: Option<Value>,
}

impl Recording {
    pub(crate) fn request(&self) -> ModelRequest {
        self.asked.as_ref().map_or_else(|| request(vec![], vec![]), normal)
    }

    /// The events in it. What is no stream of events is one event, whatever is in it.
    pub(crate) fn events(&self) -> Vec<SseEvent> {
        let event = |data: &str| SseEvent { kind: String::new(), data: data.to_owned() };
        let text = || std::str::from_utf8(&self.bytes).unwrap();
        match self.name.rsplit('.').next() {
            Some("sse") => events([self.bytes.as_slice()]),
            Some("jsonl") => text().lines().map(event).collect(),
            _ => vec![event(text())],
        }
    }
}

fn place() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings")
}

/// Every recording of a server that speaks like OpenAI.
pub(crate) fn recordings() -> Vec<Recording> {
    let manifest = fs::read(place().join("MANIFEST.json")).unwrap();
    let manifest: Vec<Value> = serde_json::from_slice(&manifest).unwrap();
    let recordings = manifest.iter().filter_map(|entry| {
        let name = entry["file"].as_str().unwrap().to_owned();
        let stem = name.rsplit_once('.').unwrap().0;
        let asked = fs::read(place().join(format!("{stem}.request.json"))).ok();
        let asked: Option<Value> = asked.map(|asked| serde_json::from_slice(&asked).unwrap());
        let path = asked.as_ref().map_or("/responses", |asked| asked["path"].as_str().unwrap());
        let protocol = match name.split("--").nth(1)?.split('-').next()? {
            "openai" if path.ends_with("/responses") => Protocol::OpenaiResponses,
            "openai" => Protocol::OpenaiChat,
            "llamacpp" | "ollama" => Protocol::OpenaiCompatible,
            _ => return None,
        };
        let status = u16::try_from(entry["status"].as_u64().unwrap()).unwrap();
        let bytes = fs::read(place().join(&name)).unwrap();
        let asked = asked.map(|asked| asked["body"].clone());
        Some(Recording { name, protocol, status, bytes, asked })
    });
    recordings.collect()
}

pub(crate) fn recording(part: &str) -> Recording {
    let mut found = recordings().into_iter().filter(|recording| recording.name.contains(part));
    let recording = found.next().unwrap();
    assert!(found.next().is_none(), "{part}");
    recording
}

#[test]
fn ai_2_every_recorded_answer_gives_its_normal_pieces() {
    let recordings = recordings();
    assert!(recordings.len() >= 17, "{}", recordings.len());
    for recording in &recordings {
        let mut text = String::new();
        let ended = if recording.status == 200 {
            let heard = heard(recording.protocol, &recording.request(), &recording.events());
            for piece in heard.0 {
                writeln!(text, "{}", serde_json::to_string(&piece).unwrap()).unwrap();
            }
            heard.1
        } else {
            let (status, body) = (recording.status, recording.bytes.clone());
            let answer = Answer { status, body, ..Answer::default() };
            Err(recording.protocol.adapter().refusal(&answer))
        };
        if let Err(error) = ended {
            writeln!(text, "{error:?}\n{error}").unwrap();
        }
        insta::assert_snapshot!(recording.name.as_str(), text);
    }
}

fn streams() -> Vec<Recording> {
    recordings().into_iter().filter(|recording| recording.name.ends_with(".sse")).collect()
}

#[test]
fn ai_2_every_recorded_stream_cut_at_any_byte_gives_the_same_events() {
    for recording in streams() {
        let text = std::str::from_utf8(&recording.bytes).unwrap();
        let blocks: Vec<&str> = text.split_inclusive("\n\n").collect();
        // A cut concerns the event that it is in, and those beside it.
        for window in blocks.windows(3.min(blocks.len())) {
            let window = window.concat();
            let whole = events([window.as_bytes()]);
            assert!(!whole.is_empty());
            for cut in 0..=window.len() {
                let (one, other) = window.as_bytes().split_at(cut);
                assert_eq!(events([one, other]), whole, "{} at {cut}", recording.name);
            }
        }
    }
}

#[test]
fn ai_2_every_recorded_stream_byte_by_byte_with_other_line_ends_gives_the_same_pieces() {
    for recording in streams() {
        let request = recording.request();
        let whole = heard(recording.protocol, &request, &recording.events());
        let text = String::from_utf8(recording.bytes.clone()).unwrap();
        for stream in [
            text.clone(),
            text.replace('\n', "\r\n"),
            text.replace('\n', "\r"),
            format!("\u{feff}: ping\n\n{}", text.replace("\n\n", "\n: ping\n\n: ping\n\n")),
        ] {
            let bytes = events(stream.as_bytes().chunks(1));
            assert_eq!(heard(recording.protocol, &request, &bytes), whole, "{}", recording.name);
        }
    }
}

#[test]
fn ai_2_a_stream_that_ends_early_is_an_error_or_was_whole_already() {
    for recording in streams() {
        let (request, all) = (recording.request(), recording.events());
        let (pieces, ended) = heard(recording.protocol, &request, &all);
        ended.unwrap();
        let whole = assembled(pieces);
        for end in 0..all.len() {
            let (pieces, ended) = heard(recording.protocol, &request, &all[..end]);
            match ended {
                Err(error) => assert!(matches!(error, ProviderError::Network(_)), "{error:?}"),
                Ok(()) => {
                    let turn = assembled(pieces);
                    assert_eq!((&turn.text, &turn.calls), (&whole.text, &whole.calls));
                    assert_eq!(turn.stop, whole.stop, "{}", recording.name);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn ai_2_every_recorded_stream_cut_anywhere_gives_the_same_pieces(
        which: Index,
        cuts in proptest::collection::vec(any::<Index>(), 0..40),
    ) {
        let streams = streams();
        let recording = which.get(&streams);
        let mut cuts: Vec<usize> =
            cuts.iter().map(|cut| cut.index(recording.bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut rest = recording.bytes.as_slice();
        for cut in cuts {
            let (piece, behind) = rest.split_at(cut - (recording.bytes.len() - rest.len()));
            pieces.push(piece);
            rest = behind;
        }
        pieces.push(rest);
        let request = recording.request();
        prop_assert_eq!(
            heard(recording.protocol, &request, &events(pieces)),
            heard(recording.protocol, &request, &recording.events())
        );
    }
}
