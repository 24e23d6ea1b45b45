//! The host process's whole work: takes rule files, judges requests, one at a time.
//!
//! It speaks on the two handles it is given and touches nothing else. While nobody asks, it prepares
//! engines for the next evaluations.
//!
//! **Invariant.** Every message gets one answer, and a message that is none gets an answer that says
//! so. The host ends when its input ends or is no longer made of frames.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::thread;
use std::time::Instant;

use fluffy_base::{FrameDecoder, FrameError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::answer::{RuleAnswer, cut};
use super::engine::{Engine, EngineError, LoadedRule, Prepared, UsedEngine};
use super::protocol::{HostAnswer, HostMessage, MAX_HOST_MESSAGE_BYTES, ProtocolError};

/// The stack of the thread that parses rule files. The parser recurses with the nesting of a file and
/// has no limit of its own; the engine has, far below this. Memory is taken only where it is touched.
const STACK_BYTES: usize = 512 << 20;

/// How many engines are kept ready for each rule: a burst of requests finds one each.
const READY_ENGINES: usize = 4;

/// How many used engines may wait to be taken down. One may hold as much memory as an engine may take,
/// so there are few.
const USED_ENGINES: usize = 4;

/// How long nobody must have asked before time counts as idle. Shorter than a burst's gaps would make
/// the next request of the burst wait for an engine that it does not need.
const IDLE: Timespec = Timespec { tv_sec: 0, tv_nsec: 300_000 };

/// How many rule files a host takes.
const MAX_RULES: usize = 256;

/// Why a host ended before its input did.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The engine could not be made.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Reading or writing failed.
    #[error("cannot speak to the kernel")]
    Io(#[from] io::Error),
    /// What came is not made of frames.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// An answer could not be written down.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The working thread panicked.
    #[error("the policy host failed")]
    Failed,
}

/// Serves the kernel at the other end until it hangs up.
pub fn serve(input: impl Read + AsFd + Send, output: impl Write + Send) -> Result<(), HostError> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().name("policy-host".to_owned()).stack_size(STACK_BYTES);
        let worker = worker.spawn_scoped(scope, || Host::new()?.run(input, output))?;
        worker.join().unwrap_or(Err(HostError::Failed))
    })
}

struct Host {
    engine: Engine,
    rules: Vec<Slot>,
    /// Taken down in idle time.
    used: Vec<UsedEngine>,
}

/// A rule and engines that wait for its next requests.
struct Slot {
    rule: LoadedRule,
    ready: Vec<Prepared>,
}

impl Host {
    fn new() -> Result<Self, HostError> {
        Ok(Self { engine: Engine::new(elapsed_ms)?, rules: Vec::new(), used: Vec::new() })
    }

    fn run(mut self, mut input: impl Read + AsFd, mut output: impl Write) -> Result<(), HostError> {
        let mut decoder = FrameDecoder::new(MAX_HOST_MESSAGE_BYTES);
        let mut buffer = vec![0; 64 << 10];
        loop {
            while is_idle(&input) && self.tidy_one() {}
            let count = match input.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                count => count?,
            };
            if count == 0 {
                return Ok(decoder.finish()?);
            }
            let mut bytes = buffer.get(..count).unwrap_or_default();
            while let Some(payload) = decoder.next_frame(&mut bytes)? {
                let answer = self.answer(&payload);
                output.write_all(&answer.frame()?)?;
                output.flush()?;
                self.used.truncate(USED_ENGINES);
            }
        }
    }

    fn answer(&mut self, payload: &[u8]) -> HostAnswer {
        match HostMessage::read(payload) {
            Ok(HostMessage::Load { name, text }) => self.load(&name, &text),
            Ok(HostMessage::Evaluate { rule, input }) => self.evaluate(rule, &input),
            Err(error) => HostAnswer::NotUnderstood(cut(&error.to_string())),
        }
    }

    fn load(&mut self, name: &str, text: &str) -> HostAnswer {
        if self.rules.len() >= MAX_RULES {
            return HostAnswer::NotUnderstood(format!("more than {MAX_RULES} rules"));
        }
        match self.engine.load(name, text) {
            Ok(rule) => {
                self.rules.push(Slot { rule, ready: Vec::with_capacity(READY_ENGINES) });
                HostAnswer::Loaded
            }
            Err(problem) => HostAnswer::Refused(problem),
        }
    }

    fn evaluate(&mut self, rule: usize, input: &str) -> HostAnswer {
        let Some(slot) = self.rules.get_mut(rule) else {
            return HostAnswer::NotUnderstood(format!("there is no rule {rule}"));
        };
        let prepared = match slot.ready.pop() {
            Some(prepared) => Ok(prepared),
            None => self.engine.prepare(&slot.rule),
        };
        HostAnswer::Judged(match prepared {
            Ok(prepared) => {
                let (answer, used) = prepared.evaluate_keeping(input);
                self.used.push(used);
                answer
            }
            Err(problem) => RuleAnswer::failed(format!("could not be started: {problem}")),
        })
    }

    /// Takes down a used engine, or prepares one for the rule that has the fewest; false if there is
    /// nothing to do.
    fn tidy_one(&mut self) -> bool {
        if self.used.pop().is_some() {
            return true;
        }
        let fewest = self.rules.iter_mut().min_by_key(|slot| slot.ready.len());
        let Some(slot) = fewest.filter(|slot| slot.ready.len() < READY_ENGINES) else {
            return false;
        };
        match self.engine.prepare(&slot.rule) {
            Ok(prepared) => {
                slot.ready.push(prepared);
                true
            }
            // Told to whoever asks the rule next.
            Err(_problem) => false,
        }
    }
}

/// Whether nothing has come for a while. What cannot be asked is read, which says why.
fn is_idle(input: &impl AsFd) -> bool {
    let mut handles = [PollFd::new(input, PollFlags::IN)];
    matches!(poll(&mut handles, Some(&IDLE)), Ok(0))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that times evaluations: the limit behind the count of steps"
)]
fn elapsed_ms() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let begin = BEGIN.get_or_init(Instant::now);
    u64::try_from(Instant::now().saturating_duration_since(*begin).as_millis()).unwrap_or(u64::MAX)
}
