//! Streams that real providers sent, and what every adapter has to make of any of them.

use std::path::Path;

use fluffy_base::{Digest, Json};
use fluffy_provider::{
    Assembler, BaseUrl, Effort, Endpoint, ModelRequest, Patience, Protocol, ProviderError,
    SseDecoder, SseEvent, StreamEvent, ToolDefinition, Turn,
};
use serde_json::Value;

/// How many characters of a piece a snapshot shows whole.
const SHOWN: usize = 300;

/// A recorded answer, and the request that it answers where that is known.
pub(crate) struct Recording {
    pub(crate) name: String,
    pub(crate) stream: Vec<u8>,
    pub(crate) path: String,
    pub(crate) body: Option<Value>,
}

/// The recorded streams whose names hold one of these words.
pub(crate) fn recordings(words: &[&str]) -> Vec<Recording> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let mut names: Vec<_> = std::fs::read_dir(&place)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".sse") || name.ends_with(".jsonl"))
        .filter(|name| words.iter().any(|word| name.contains(word)))
        // Another protocol of Google's.
        .filter(|name| !name.contains("interactions"))
        .collect();
    names.sort();
    names.iter().map(|name| recording(&place, name)).collect()
}

fn recording(place: &Path, file: &str) -> Recording {
    let (name, kind) = file.rsplit_once('.').unwrap();
    let mut stream = std::fs::read(place.join(file)).unwrap();
    if kind == "jsonl" {
        let text = String::from_utf8(stream).unwrap();
        stream = text.lines().flat_map(|line| format!("data: {line}\n\n").into_bytes()).collect();
    }
    let request = std::fs::read(place.join(format!("{name}.request.json")));
    let request: Option<Value> = request.ok().map(|text| serde_json::from_slice(&text).unwrap());
    let path = request.as_ref().and_then(|request| request["path"].as_str());
    Recording {
        name: name.to_owned(),
        stream,
        path: path.unwrap_or_default().to_owned(),
        body: request.as_ref().map(|request| request["body"].clone()),
    }
}

pub(crate) fn endpoint(protocol: Protocol) -> Endpoint {
    let url: BaseUrl = "https://api.example.org".parse().unwrap();
    Endpoint {
        provider: "vendor".to_owned(),
        protocol,
        url,
        version: None,
        effort: None,
        certificates: None,
        patience: Patience::default(),
    }
}

pub(crate) fn thinking(protocol: Protocol, effort: Effort) -> Endpoint {
    Endpoint { effort: Some(effort), ..endpoint(protocol) }
}

/// A request that asks a model nothing yet.
pub(crate) fn asking(model: &str) -> ModelRequest {
    ModelRequest {
        model: model.to_owned(),
        system: String::new(),
        tools: Vec::new(),
        messages: Vec::new(),
        max_output_tokens: 4_096,
    }
}

pub(crate) fn tool(name: &str, summary: &str, schema: Value) -> ToolDefinition {
    let schema = Json::new(schema).unwrap();
    ToolDefinition { name: name.to_owned(), summary: summary.to_owned(), schema }
}

/// The body that an adapter writes.
pub(crate) fn body(request: &ModelRequest, endpoint: &Endpoint) -> Value {
    let ask = endpoint.protocol.adapter().turn(request, endpoint).unwrap();
    serde_json::from_slice(&ask.body.unwrap()).unwrap()
}

/// What an adapter reads in a stream that comes in these pieces, and how that ends.
pub(crate) fn decode<'a>(
    protocol: Protocol,
    request: &ModelRequest,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<StreamEvent>, Result<(), ProviderError>) {
    let mut decoder = protocol.adapter().decoder(request, &endpoint(protocol)).unwrap();
    let mut said = Vec::new();
    let (events, mut read) = events(pieces);
    for event in events {
        if let Err(error) = decoder.event(&event, &mut said) {
            return (said, Err(error));
        }
    }
    read = read.and_then(|()| decoder.end(&mut said));
    (said, read)
}

/// The events of a stream that comes in these pieces.
fn events<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<SseEvent>, Result<(), ProviderError>) {
    let (mut sse, mut events) = (SseDecoder::default(), Vec::new());
    let read = pieces.into_iter().try_for_each(|piece| sse.take(piece, &mut events));
    events.extend(sse.finish());
    (events, read)
}

/// The same for events given by their data.
pub(crate) fn decode_data(
    protocol: Protocol,
    data: &[Value],
) -> (Vec<StreamEvent>, Result<(), ProviderError>) {
    let stream: String = data.iter().map(|data| format!("data: {data}\n\n")).collect();
    decode(protocol, &asking("m"), [stream.as_bytes()])
}

pub(crate) fn turn(pieces: Vec<StreamEvent>) -> Turn {
    let mut assembler = Assembler::new();
    for piece in pieces {
        assembler.take(piece).unwrap();
    }
    assembler.finish().unwrap()
}

/// Pieces as a snapshot shows them, one a line.
pub(crate) fn shown(pieces: &[StreamEvent]) -> String {
    let line = |piece: &StreamEvent| {
        let text = serde_json::to_string(piece).unwrap();
        if text.len() <= SHOWN {
            return text;
        }
        let kept: String = text.chars().take(SHOWN).collect();
        format!("{kept}… {}", Digest::of(text.as_bytes()))
    };
    pieces.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// However a stream is cut and whatever ends its lines, the same is read. Cuts are of the bytes only: where the
/// events are the same, so is what an adapter reads in them, which is tried now and then.
pub(crate) fn check_cuts(protocol: Protocol, recording: &Recording) {
    let request = asking("m");
    let whole = decode(protocol, &request, [recording.stream.as_slice()]);
    let whole_events = events([recording.stream.as_slice()]);
    assert_eq!(whole.1, Ok(()), "{}", recording.name);
    let text = String::from_utf8(recording.stream.clone()).unwrap().replace("\r\n", "\n");
    let crlf = text.replace('\n', "\r\n");
    let cr = text.replace('\n', "\r");
    let chatty = format!("\u{feff}: hello\n\n{}", text.replace('\n', "\n: still here\n"));
    let slow = text.replace("\n\n", "\n\n:\n\n: keep-alive\n\n\n");
    let hasty = text.trim_end().to_owned();
    let variants = [(text, 1), (crlf, 1), (cr, 11), (chatty, 11), (slow, 11), (hasty, 11)];
    for (stream, step) in variants.iter().map(|(stream, step)| (stream.as_bytes(), *step)) {
        assert_eq!(events(stream.chunks(1)), whole_events, "{}", recording.name);
        for at in (0..=stream.len()).step_by(step) {
            let (first, second) = stream.split_at(at);
            assert_eq!(events([first, second]), whole_events, "{} cut at {at}", recording.name);
            if at % 473 == 0 {
                let read = decode(protocol, &request, [first, second]);
                assert_eq!(read, whole, "{} cut at {at}", recording.name);
            }
        }
    }
}

/// A stream that ends too early is an error, and says nothing that the whole does not begin with.
pub(crate) fn check_truncations(protocol: Protocol, recording: &Recording) {
    let request = asking("m");
    let (whole, _) = decode(protocol, &request, [recording.stream.as_slice()]);
    let (whole_events, _) = events([recording.stream.as_slice()]);
    let end = recording.stream.iter().rposition(|byte| !byte.is_ascii_whitespace()).unwrap();
    let mut tried = None;
    for at in 0..=end {
        let (events, _) = events([&recording.stream[..at]]);
        assert!(whole_events.starts_with(&events), "{} cut at {at}", recording.name);
        if tried.replace(events.len()) == Some(events.len()) {
            continue;
        }
        let (said, end) = decode(protocol, &request, [&recording.stream[..at]]);
        assert!(matches!(end, Err(ProviderError::Network(_))), "{} cut at {at}", recording.name);
        assert!(whole.starts_with(&said), "{} cut at {at}", recording.name);
        assert!(!said.iter().any(|piece| matches!(piece, StreamEvent::Stop(_))));
    }
}

/// Whatever is in a stream, an adapter reads it without falling over, and what it takes for whole is a turn.
pub(crate) fn check_damaged(protocol: Protocol, stream: &[u8]) {
    let (said, end) = decode(protocol, &asking("m"), [stream]);
    let mut assembler = Assembler::new();
    for piece in said {
        assembler.take(piece).unwrap();
    }
    if end.is_ok() {
        assembler.finish().unwrap();
    }
}
