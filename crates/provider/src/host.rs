//! The provider's process: reads messages of the kernel, speaks with the provider, answers.
//!
//! It is the only place where a provider's bytes are read, and the only one outside of the kernel's process that
//! holds the key.
//!
//! **Invariant.** What goes out holds no secret that came in.

use std::io::{self, Read, Write};

use fluffy_base::{FrameDecoder, Secret};
use zeroize::{Zeroize as _, Zeroizing};

use crate::http::{Http, Reply};
use crate::redact::Redactor;
use crate::tunnel::{Dial, after, now};
use crate::{
    Answer, Ask, Decoder, EmbedRequest, Endpoint, HostAnswer, HostMessage, MAX_HOST_FRAME_BYTES,
    MAX_TURN_BYTES, ModelInfo, ModelRequest, ProviderError, SseDecoder, SseEvent, StreamEvent,
    refusal,
};

/// How much is read at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// How much of an answer that is no success is read.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// How much of a page that is no answer is told.
const SAID_CHARS: usize = 2_000;

/// How large a page of a list of models, or a count, may be.
const MAX_PAGE_BYTES: usize = 8 << 20;

/// How many times longer than silence a provider may send what says nothing, such as comments. Models think for
/// long; for ever they do not.
const NOTHING_FACTOR: u64 = 30;

/// How many pages of a list are read, and how many models they may have.
const MAX_PAGES: usize = 50;
const MAX_MODELS: usize = 10_000;

/// Answers messages until there are no more. `dial` opens a connection to the proxy.
pub fn serve(mut input: impl Read, mut output: impl Write, dial: Dial) -> io::Result<()> {
    let mut decoder = FrameDecoder::new(MAX_HOST_FRAME_BYTES);
    let mut buffer = Zeroizing::new(vec![0; BUFFER_BYTES]);
    let mut host = None;
    loop {
        let count = input.read(&mut buffer)?;
        if count == 0 {
            return decoder.finish().map_err(io::Error::other);
        }
        let mut bytes = buffer.get(..count).unwrap_or_default();
        while let Some(payload) = decoder.next_frame(&mut bytes).map_err(io::Error::other)? {
            answer(&mut host, payload, &dial, &mut output)?;
        }
    }
}

fn answer(
    host: &mut Option<Result<Host, ProviderError>>,
    mut payload: Vec<u8>,
    dial: &Dial,
    output: &mut impl Write,
) -> io::Result<()> {
    let message = serde_json::from_slice(&payload);
    payload.zeroize();
    drop(payload);
    // Its words would be those of the message, and that may be the key.
    let message = message.map_err(|_| io::Error::other("a message that is none"))?;
    let host = match (message, host) {
        (HostMessage::Open { endpoint, headers }, host) => {
            *host = Some(Host::new(endpoint, headers, dial));
            return Ok(());
        }
        (_, None) => return Err(io::Error::other("nothing was opened")),
        (message, Some(Ok(host))) => return host.answer(message, output),
        (_, Some(Err(error))) => error.clone(),
    };
    write(&HostAnswer::Failed(host), output)
}

/// One endpoint with its key.
struct Host {
    endpoint: Endpoint,
    http: Http,
    headers: Vec<(String, Secret)>,
}

impl Host {
    fn new(
        endpoint: Endpoint,
        headers: Vec<(String, Secret)>,
        dial: &Dial,
    ) -> Result<Self, ProviderError> {
        let http = Http::new(&endpoint, &headers, Dial::clone(dial))?;
        Ok(Self { endpoint, http, headers })
    }

    fn answer(&self, message: HostMessage, output: &mut impl Write) -> io::Result<()> {
        let mut redactor = Redactor::of(&self.headers);
        let answered = match message {
            HostMessage::Open { .. } => return Ok(()),
            HostMessage::Turn(request) => match self.turn(&request, &mut redactor, output) {
                Ok(()) => Ok(HostAnswer::Done),
                Err(Broken::Provider(error)) => {
                    let mut held = Vec::new();
                    redactor.end(&mut held);
                    for piece in held {
                        write(&HostAnswer::Piece(piece), output)?;
                    }
                    Err(error)
                }
                // The kernel is gone, and with it whoever wants to know.
                Err(Broken::Kernel(error)) => return Err(error),
            },
            HostMessage::Models => self.models(output)?.map(HostAnswer::Models),
            HostMessage::Count(request) => self.count(&request).map(HostAnswer::Counted),
            HostMessage::Embed(request) => self.embed(&request).map(HostAnswer::Embedded),
        };
        write(&redactor.answer(answered.unwrap_or_else(HostAnswer::Failed)), output)
    }

    fn turn(
        &self,
        request: &ModelRequest,
        redactor: &mut Redactor,
        output: &mut impl Write,
    ) -> Result<(), Broken> {
        let adapter = self.endpoint.protocol.adapter();
        let mut decoder = adapter.decoder(request, &self.endpoint)?;
        let mut reply = self.send(adapter.turn(request, &self.endpoint)?)?;
        if let Some(whole) = not_streamed(&mut reply)? {
            let mut pieces = at_once(&mut *decoder, whole)?;
            return send_pieces(&mut pieces, redactor, output);
        }
        let mut sse = SseDecoder::default();
        let mut buffer = vec![0; BUFFER_BYTES];
        let (mut events, mut pieces) = (Vec::new(), Vec::new());
        let nothing_ms = self.endpoint.patience.idle_ms.saturating_mul(NOTHING_FACTOR);
        let mut until = after(nothing_ms);
        loop {
            let count = reply.read(&mut buffer)?;
            let read = sse.take(buffer.get(..count).unwrap_or_default(), &mut events);
            if count == 0 {
                events.extend(sse.finish());
            }
            let mut understood = Ok(());
            for event in events.drain(..) {
                understood = understood.and_then(|()| decoder.event(&event, &mut pieces));
            }
            if count == 0 {
                understood = understood.and_then(|()| decoder.end(&mut pieces));
            }
            if !pieces.is_empty() {
                until = after(nothing_ms);
            }
            // What came before a mistake was said all the same.
            send_pieces(&mut pieces, redactor, output)?;
            understood?;
            read?;
            if count == 0 {
                return Ok(());
            }
            if now() > until {
                return Err(ProviderError::TimedOut { waited_ms: nothing_ms }.into());
            }
        }
    }

    fn models(&self, output: &mut impl Write) -> io::Result<Result<Vec<ModelInfo>, ProviderError>> {
        let adapter = self.endpoint.protocol.adapter();
        let mut models: Vec<ModelInfo> = Vec::new();
        let mut after: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let ask = adapter.models(&self.endpoint, after.as_deref());
            let page = match self.whole(ask).and_then(|body| adapter.models_in(&body)) {
                Ok(page) => page,
                Err(error) => return Ok(Err(error)),
            };
            models.extend(page.models);
            models.truncate(MAX_MODELS);
            if page.next.is_none() || page.next == after || models.len() == MAX_MODELS {
                break;
            }
            after = page.next;
            write(&HostAnswer::Piece(StreamEvent::Waiting), output)?;
        }
        Ok(Ok(models))
    }

    fn count(&self, request: &ModelRequest) -> Result<Option<u64>, ProviderError> {
        let adapter = self.endpoint.protocol.adapter();
        let Some(ask) = adapter.count(request, &self.endpoint)? else { return Ok(None) };
        Ok(Some(adapter.counted(&self.whole(ask)?)?))
    }

    fn embed(&self, request: &EmbedRequest) -> Result<Vec<Vec<f32>>, ProviderError> {
        let adapter = self.endpoint.protocol.adapter();
        let ask = adapter.embed(request, &self.endpoint)?;
        adapter.embedded(&self.whole(ask)?, request.texts.len())
    }

    /// The whole body of an answer that is a success.
    fn whole(&self, ask: Ask) -> Result<Vec<u8>, ProviderError> {
        let (body, is_all) = self.send(ask)?.read_whole(MAX_PAGE_BYTES)?;
        if is_all {
            return Ok(body);
        }
        Err(ProviderError::Malformed(format!("the answer is larger than {MAX_PAGE_BYTES} bytes")))
    }

    /// An answer that is a success.
    fn send(&self, ask: Ask) -> Result<Reply, ProviderError> {
        let reply = self.http.send(&ask)?;
        if (200..300).contains(&reply.status) {
            return Ok(reply);
        }
        let answer: Answer = reply.into_answer(MAX_REFUSAL_BYTES);
        let error = self.endpoint.protocol.adapter().refusal(&answer);
        Err(refusal::heeding(error, &answer))
    }
}

/// Why a turn ended early.
enum Broken {
    Provider(ProviderError),
    Kernel(io::Error),
}

impl From<ProviderError> for Broken {
    fn from(error: ProviderError) -> Self {
        Self::Provider(error)
    }
}

/// The whole answer of a server that was asked for a stream and does not stream. A page is no answer at all.
fn not_streamed(reply: &mut Reply) -> Result<Option<String>, ProviderError> {
    let kind = reply.header("content-type").unwrap_or_default().to_ascii_lowercase();
    let is_page = kind.starts_with("text/html");
    if !is_page && !kind.contains("json") {
        return Ok(None);
    }
    let (body, is_all) = reply.read_whole(MAX_TURN_BYTES)?;
    let body = String::from_utf8_lossy(&body).into_owned();
    if is_page || !is_all { Err(no_stream(&body)) } else { Ok(Some(body)) }
}

/// The pieces of a turn that came in one. Of a document that holds none, what it says is shown.
fn at_once(decoder: &mut dyn Decoder, whole: String) -> Result<Vec<StreamEvent>, ProviderError> {
    let event = SseEvent { kind: String::new(), data: whole };
    let mut pieces = Vec::new();
    let read = decoder.event(&event, &mut pieces).and_then(|()| decoder.end(&mut pieces));
    match read {
        Err(_) if pieces.is_empty() => Err(no_stream(&event.data)),
        Ok(()) | Err(_) => read.map(|()| pieces),
    }
}

fn no_stream(body: &str) -> ProviderError {
    let body: String = body.chars().take(SAID_CHARS).collect();
    ProviderError::Malformed(format!("a stream was asked for and this came: {body}"))
}

/// Sends what there is; something, in any case, so that the kernel sees that something came.
fn send_pieces(
    pieces: &mut Vec<StreamEvent>,
    redactor: &mut Redactor,
    output: &mut impl Write,
) -> Result<(), Broken> {
    let mut clean = Vec::new();
    for piece in pieces.drain(..) {
        redactor.take(piece, &mut clean);
    }
    if clean.is_empty() {
        clean.push(StreamEvent::Waiting);
    }
    let mut frames = Vec::new();
    for piece in clean {
        frames.extend(HostAnswer::Piece(piece).frame()?);
    }
    output.write_all(&frames).and_then(|()| output.flush()).map_err(Broken::Kernel)
}

fn write(answer: &HostAnswer, output: &mut impl Write) -> io::Result<()> {
    let frame = answer.frame().map_err(io::Error::other)?;
    output.write_all(&frame)?;
    output.flush()
}
