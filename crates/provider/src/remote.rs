//! The kernel's side of a provider: asks a guest in its sandbox, and believes it as little as anybody.
//!
//! **Invariant.** What a guest says is read with limits and checked against the promises of a [`Provider`]. One
//! that is silent, dead or not understood is ended, and so is one whose answer is no longer wanted: with it goes
//! its connection.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fluffy_base::Secret;
use serde::{Deserialize, Serialize};

use crate::{
    EmbedRequest, Endpoint, HostAnswer, HostMessage, ModelInfo, ModelRequest, Prices, Provider,
    ProviderError, StreamEvent,
};

/// How often whoever waits is asked whether it still does.
const TICK: Duration = Duration::from_millis(200);

/// How much longer than a provider its guest may be silent.
const GRACE_MS: u64 = 10_000;

/// A guest that speaks frames. Dropping it ends it at once, and with it whatever it does.
pub trait Guest: Send {
    /// Writes what the guest takes of these bytes within the time: perhaps nothing.
    fn send(&mut self, bytes: &[u8], wait: Duration) -> Result<usize, GuestFailure>;

    /// The next frame's payload, if it comes within the time.
    fn receive(&mut self, wait: Duration) -> Result<Option<Vec<u8>>, GuestFailure>;

    /// It has answered, and waits for the next question: others may work in its place.
    fn rest(&mut self) {}
}

/// Starts guests.
pub trait Guests: Send + Sync {
    /// Starts one; the error is for people.
    fn start(&self) -> Result<Box<dyn Guest>, String>;
}

/// Why nothing can be had of a guest any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GuestFailure {
    /// Its pipes are closed.
    #[error("it died")]
    Died,
    /// It does not send frames, or too large ones.
    #[error("it does not speak as agreed")]
    Garbled,
}

/// Which model is asked, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Its name at the provider; empty where none in particular is meant.
    pub name: String,
    /// How many tokens it can see.
    pub context_window: u64,
    /// What it costs, where that is known.
    pub prices: Option<Prices>,
    /// How many tokens it answers with at most, where that is known.
    pub max_output_tokens: Option<u64>,
}

/// A provider that is asked through a guest. The guest is started with the first question and kept for the next.
pub struct Remote {
    guests: Box<dyn Guests>,
    endpoint: Endpoint,
    headers: Vec<(String, Secret)>,
    model: Model,
    /// Taken out for each question and put back after a proper answer only.
    guest: Mutex<Option<Box<dyn Guest>>>,
}

/// Whoever waits: told that nothing came, it may say that it waits no longer.
pub type Waiting<'w> = &'w mut dyn FnMut() -> ControlFlow<()>;

impl Remote {
    /// A provider at an endpoint; the headers, the key among them, go with every request.
    pub fn new(
        guests: Box<dyn Guests>,
        endpoint: Endpoint,
        headers: Vec<(String, Secret)>,
        model: Model,
    ) -> Self {
        Self { guests, endpoint, headers, model, guest: Mutex::new(None) }
    }

    /// The models that the provider lists.
    pub fn models(&self, waiting: Waiting<'_>) -> Result<Vec<ModelInfo>, ProviderError> {
        match self.ask(&HostMessage::Models, waiting)? {
            HostAnswer::Models(models) => Ok(models),
            _ => Err(nonsense("something else than models")),
        }
    }

    /// The tokens of a request, where the provider counts them.
    pub fn count(
        &self,
        request: &ModelRequest,
        waiting: Waiting<'_>,
    ) -> Result<Option<u64>, ProviderError> {
        match self.ask(&HostMessage::Count(request.clone()), waiting)? {
            HostAnswer::Counted(tokens) => Ok(tokens),
            _ => Err(nonsense("something else than a count")),
        }
    }

    /// The numbers that stand for texts, for each in their order.
    pub fn embed(
        &self,
        request: EmbedRequest,
        waiting: Waiting<'_>,
    ) -> Result<Vec<Vec<f32>>, ProviderError> {
        let texts = request.texts.len();
        match self.ask(&HostMessage::Embed(request), waiting)? {
            HostAnswer::Embedded(vectors) if vectors.len() == texts => Ok(vectors),
            _ => Err(nonsense("something else than numbers for every text")),
        }
    }

    /// Asks something that has one answer.
    fn ask(
        &self,
        message: &HostMessage,
        waiting: Waiting<'_>,
    ) -> Result<HostAnswer, ProviderError> {
        let mut exchange = self.begin(message, waiting)?;
        loop {
            match exchange.next(waiting)? {
                HostAnswer::Piece(StreamEvent::Waiting) => {}
                HostAnswer::Piece(_) | HostAnswer::Done => {
                    return Err(nonsense("a piece of a turn that nobody asked for"));
                }
                HostAnswer::Failed(error) => {
                    self.keep(exchange);
                    return Err(believable(error));
                }
                answer @ (HostAnswer::Models(_)
                | HostAnswer::Counted(_)
                | HostAnswer::Embedded(_)) => {
                    self.keep(exchange);
                    return Ok(answer);
                }
            }
        }
    }

    /// Sends a question to the guest, which is started if there is none. Until it is kept it ends with the
    /// exchange.
    fn begin(
        &self,
        message: &HostMessage,
        waiting: Waiting<'_>,
    ) -> Result<Exchange, ProviderError> {
        let frame = message.frame()?;
        let idle = self.guest.lock().unwrap_or_else(PoisonError::into_inner).take();
        let patience = self.endpoint.patience;
        let silence_ms = [patience.connect_ms, patience.first_byte_ms, patience.idle_ms, GRACE_MS];
        let silence_ms = silence_ms.into_iter().fold(0, u64::saturating_add);
        if let Some(guest) = idle {
            let mut exchange = Exchange { guest, silence_ms };
            // One that died since the last question is replaced: it has not seen this one.
            match exchange.send(&frame, waiting) {
                Ok(()) => return Ok(exchange),
                Err(ProviderError::Guest(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let guest = self.guests.start().map_err(ProviderError::Guest)?;
        let mut exchange = Exchange { guest, silence_ms };
        exchange.send(&self.opening()?, waiting)?;
        exchange.send(&frame, waiting)?;
        Ok(exchange)
    }

    fn opening(&self) -> Result<zeroize::Zeroizing<Vec<u8>>, ProviderError> {
        let copy = |(name, value): &(String, Secret)| {
            (name.clone(), Secret::new(value.expose().to_owned()))
        };
        let headers = self.headers.iter().map(copy).collect();
        let open = HostMessage::Open { endpoint: self.endpoint.clone(), headers };
        Ok(zeroize::Zeroizing::new(open.frame()?))
    }

    fn keep(&self, mut exchange: Exchange) {
        exchange.guest.rest();
        *self.guest.lock().unwrap_or_else(PoisonError::into_inner) = Some(exchange.guest);
    }
}

impl Provider for Remote {
    fn name(&self) -> &str {
        &self.endpoint.provider
    }

    fn model(&self) -> &str {
        &self.model.name
    }

    fn prices(&self) -> Option<Prices> {
        self.model.prices
    }

    fn context_window(&self) -> u64 {
        self.model.context_window
    }

    fn max_output_tokens(&self) -> Option<u64> {
        self.model.max_output_tokens
    }

    fn count(&self, request: &ModelRequest, is_wanted: Waiting<'_>) -> Option<u64> {
        // Who cannot count is not asked to: the guess stands.
        Self::count(self, request, is_wanted).ok().flatten()
    }

    fn turn(
        &self,
        request: &ModelRequest,
        sink: &mut dyn FnMut(StreamEvent) -> ControlFlow<()>,
    ) -> Result<(), ProviderError> {
        let message = HostMessage::Turn(request.clone());
        let mut exchange = self.begin(&message, &mut || sink(StreamEvent::Waiting))?;
        let mut stopped = false;
        loop {
            match exchange.next(&mut || sink(StreamEvent::Waiting))? {
                HostAnswer::Piece(piece) => {
                    let late = matches!(piece, StreamEvent::Usage(_) | StreamEvent::Waiting);
                    if stopped && !late {
                        return Err(nonsense("more after the end of the turn"));
                    }
                    stopped |= matches!(piece, StreamEvent::Stop(_));
                    if sink(piece).is_break() {
                        return Err(ProviderError::Cancelled);
                    }
                }
                HostAnswer::Done if stopped => {
                    self.keep(exchange);
                    return Ok(());
                }
                HostAnswer::Done => return Err(nonsense("a turn without its end")),
                HostAnswer::Failed(error) => {
                    self.keep(exchange);
                    return Err(believable(error));
                }
                HostAnswer::Models(_) | HostAnswer::Counted(_) | HostAnswer::Embedded(_) => {
                    return Err(nonsense("something that nobody asked for"));
                }
            }
        }
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Remote");
        shown.field("endpoint", &self.endpoint).field("model", &self.model).finish_non_exhaustive()
    }
}

/// A question that is on its way. Dropping it ends the guest.
struct Exchange {
    guest: Box<dyn Guest>,
    /// How long the guest may be silent.
    silence_ms: u64,
}

impl Exchange {
    fn send(&mut self, frame: &[u8], waiting: Waiting<'_>) -> Result<(), ProviderError> {
        let mut rest = frame;
        let mut silent = Silence::new(self.silence_ms);
        while !rest.is_empty() {
            match self.guest.send(rest, TICK).map_err(dead)? {
                0 => silent.tick(waiting)?,
                count => {
                    rest = rest.get(count..).unwrap_or_default();
                    silent = Silence::new(self.silence_ms);
                }
            }
        }
        Ok(())
    }

    fn next(&mut self, waiting: Waiting<'_>) -> Result<HostAnswer, ProviderError> {
        let mut silent = Silence::new(self.silence_ms);
        loop {
            match self.guest.receive(TICK).map_err(dead)? {
                Some(payload) => {
                    let answer = serde_json::from_slice(&payload);
                    return answer.map_err(|_| nonsense("a message that is none"));
                }
                None => silent.tick(waiting)?,
            }
        }
    }
}

/// How long nothing has come.
struct Silence {
    left_ms: u64,
    longest_ms: u64,
}

impl Silence {
    fn new(longest_ms: u64) -> Self {
        Self { left_ms: longest_ms, longest_ms }
    }

    fn tick(&mut self, waiting: Waiting<'_>) -> Result<(), ProviderError> {
        if waiting().is_break() {
            return Err(ProviderError::Cancelled);
        }
        let tick = u64::try_from(TICK.as_millis()).unwrap_or(u64::MAX);
        self.left_ms = self.left_ms.saturating_sub(tick);
        if self.left_ms == 0 {
            let text = format!("it was silent for {} ms and was ended", self.longest_ms);
            return Err(ProviderError::Guest(text));
        }
        Ok(())
    }
}

/// What a guest may say of a provider; who broke off or what a transcript holds it cannot know.
fn believable(error: ProviderError) -> ProviderError {
    match error {
        ProviderError::Cancelled
        | ProviderError::TranscriptEnded { .. }
        | ProviderError::Expectation(_)
        | ProviderError::Guest(_) => nonsense("an error that is none of its own"),
        error => error,
    }
}

fn dead(failure: GuestFailure) -> ProviderError {
    match failure {
        GuestFailure::Died => ProviderError::Guest(failure.to_string()),
        GuestFailure::Garbled => ProviderError::Malformed(format!("the guest: {failure}")),
    }
}

fn nonsense(what: &str) -> ProviderError {
    ProviderError::Malformed(format!("the provider's process sent {what}"))
}
