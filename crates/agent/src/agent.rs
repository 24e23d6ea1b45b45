//! The loop: prompt, stream, calls, results, and again, until the task is at its end.

use std::ops::ControlFlow;

use fluffy_base::{Event, Observer, Usd, Waiter};
use fluffy_provider::{
    CallOutcome, CallResult, ModelRequest, Provider, ProviderError, StopReason, ToolDefinition,
    Turn, Usage,
};

use crate::caps::Meter;
use crate::estimate::{Estimate, request_bytes};
use crate::listen::{Heard, listen};
use crate::notes::Notes;
use crate::prompt::{MAX_FIRST_REQUEST_BYTES, MAX_SYSTEM_BYTES, Prompt, prompt};
use crate::{
    Bench, Cap, Caps, Conversation, Ended, Outcome, Spent, TaskStatus, calls, retry, summary, tools,
};

/// How often in a row a model that asks for nothing is told what is missing.
pub const MAX_NUDGES: u32 = 3;

/// How often in a row calls that cannot be understood may be tried again.
pub const MAX_INVALID: u32 = 3;

/// Tokens that are kept free for the answer.
const RESERVED: u64 = 4_000;

/// The longest answer that is asked for.
const LONGEST_OUTPUT: u64 = 16_000;

/// How often a conversation that is too long for the provider is made shorter.
const SHORTENED: u32 = 3;

/// Works on tasks: asks a provider, carries what it wants to a bench, tells an observer.
#[derive(Clone, Copy)]
pub struct Agent<'a> {
    /// Where the work is done.
    pub bench: &'a dyn Bench,
    /// Who is asked.
    pub provider: &'a dyn Provider,
    /// Who watches. Told what the model says and uses; what becomes of calls the bench tells.
    pub observer: &'a dyn Observer,
    /// What waits before a provider is asked again.
    pub waiter: &'a dyn Waiter,
    /// How much the task may use.
    pub caps: Caps,
    /// What an interrupted run of the same task has used.
    pub spent: Spent,
}

/// One run.
struct Run<'a> {
    agent: Agent<'a>,
    conversation: &'a mut Conversation,
    meter: Meter,
    estimate: Estimate,
    nudges: u32,
    invalid: u32,
}

impl Agent<'_> {
    /// Works on a task until it ends. The task's words are said in the conversation; none are where an
    /// interrupted run goes on.
    pub fn run(&self, conversation: &mut Conversation, task: Option<&str>) -> Ended {
        if let Some(task) = task {
            conversation.say(task.to_owned());
        }
        let meter = Meter::new(self.caps, self.provider.prices(), self.spent);
        let estimate = Estimate::new();
        let mut run = Run { agent: *self, conversation, meter, estimate, nudges: 0, invalid: 0 };
        let outcome = loop {
            if let Err(outcome) = run.step() {
                break outcome;
            }
        };
        Ended { outcome, spent: run.meter.spent() }
    }
}

impl Run<'_> {
    /// One turn; an error is the end.
    fn step(&mut self) -> Result<(), Outcome> {
        // What is done is done, even if someone cancelled it a moment later.
        if let Some(end) = self.end_of(self.agent.bench.status()) {
            return Err(end);
        }
        self.check_cancelled()?;
        self.meter.allows_turn().map_err(Outcome::CapReached)?;
        let mut turn = match self.ask() {
            Err(Outcome::Provider(ProviderError::TranscriptEnded { .. })) => {
                return Err(self.transcript_ended());
            }
            asked => asked?,
        };
        self.meter.count_turn();
        self.conversation.name_calls(&mut turn.calls);
        self.agent.bench.turn(&turn).map_err(Outcome::Bench)?;
        self.check_cancelled()?;
        if turn.stop == StopReason::Refusal {
            return Err(Outcome::Provider(ProviderError::Filtered(turn.text)));
        }
        if turn.calls.is_empty() { self.without_calls(turn) } else { self.with_calls(turn) }
    }

    /// Asks until there is a turn: again when the provider is busy, shorter when it was too much.
    fn ask(&mut self) -> Result<Turn, Outcome> {
        let (mut attempt, mut shortened) = (0, 0);
        loop {
            let request = self.request()?;
            let agent = self.agent;
            let heard =
                listen(agent.provider, agent.bench, Some(agent.observer), &request, self.estimate);
            self.charge(&heard, &request);
            let error = match heard.turn {
                Ok(turn) => return Ok(turn),
                Err(error) => error,
            };
            self.check_cancelled()?;
            let too_long = matches!(error, ProviderError::ContextTooLong(_));
            if too_long && !heard.began && shortened < SHORTENED {
                shortened += 1;
                self.estimate.tighten();
                continue;
            }
            let chance = agent.waiter.chance();
            // Nothing of a half turn was carried out or kept: it can begin anew.
            let pause = retry::pause(attempt, &error, chance);
            let Some(pause) = pause else { return Err(Outcome::Provider(error)) };
            attempt += 1;
            agent.observer.notice(Event::ProviderRetry {
                what: error.to_string(),
                wait_ms: pause,
                attempt,
                discarded: heard.began,
            });
            agent.waiter.wait(pause, &|| agent.bench.is_cancelled());
            self.check_cancelled()?;
        }
    }

    /// The next request, within the window and the caps.
    fn request(&mut self) -> Result<ModelRequest, Outcome> {
        let bench = self.agent.bench;
        if let Some(pins) = bench.pins() {
            self.conversation.set_pins(pins);
        }
        let tools = tools::fitted(bench.tools());
        let used: usize = tools.iter().map(ToolDefinition::bytes).sum();
        let used = used.saturating_add(self.conversation.person_bytes());
        let elsewhere =
            MAX_FIRST_REQUEST_BYTES.saturating_sub(used.saturating_add(MAX_SYSTEM_BYTES));
        let notes = Notes::new(&bench.rules());
        let Prompt { system, before } =
            prompt(bench.manual(), &bench.state(), &bench.tree(), &notes, elsewhere);
        let mut request = ModelRequest {
            model: self.agent.provider.model().to_owned(),
            system,
            tools,
            messages: Vec::new(),
            max_output_tokens: 0,
        };
        let fixed = request_bytes(&request).saturating_add(before.len());
        self.fit(self.room().saturating_sub(self.estimate.tokens(fixed)))?;
        request.messages = self.conversation.messages(&before);
        let input = self.estimate.tokens(request_bytes(&request));
        let wanted = self.agent.provider.context_window().saturating_sub(input);
        let most = self.longest();
        let wanted = wanted.clamp(self.reserved().min(most), most);
        request.max_output_tokens =
            self.affordable(&request, wanted).map_err(Outcome::CapReached)?;
        Ok(request)
    }

    /// How long the answer may be within the caps. Where a guess comes near one, the provider counts, if it can.
    fn affordable(&mut self, request: &ModelRequest, wanted: u64) -> Result<u64, Cap> {
        let input = self.estimate.tokens(request_bytes(request));
        let guessed = self.meter.allows_output(input, wanted);
        if guessed == Ok(wanted) {
            return guessed;
        }
        let bench = self.agent.bench;
        let mut is_wanted = || match bench.is_cancelled() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let counted = self.agent.provider.count(request, &mut is_wanted);
        let Some(counted) = counted else { return guessed };
        self.estimate.learn(request, counted);
        self.meter.allows_output(self.estimate.tokens(request_bytes(request)), wanted)
    }

    /// Makes the conversation fit. What was left out is summarised by the model where it can be asked; the
    /// facts are there in any case.
    fn fit(&mut self, room: u64) -> Result<(), Outcome> {
        let before = self.conversation.summary().map(str::to_owned);
        let left_out = self.conversation.fit(room, self.estimate);
        let Agent { provider, bench, .. } = self.agent;
        if left_out.is_empty() || !provider.can_summarise() {
            return Ok(());
        }
        let record = self.estimate.bytes(self.room() / 2);
        let mut request = summary::request(provider.model(), before.as_deref(), &left_out, record);
        let input = self.estimate.tokens(request_bytes(&request));
        let wanted = self.longest().min(summary::MAX_SUMMARY_TOKENS);
        let Ok(output) = self.meter.allows_output(input, wanted) else {
            return Ok(());
        };
        request.max_output_tokens = output;
        let heard = listen(provider, bench, None, &request, self.estimate);
        self.charge(&heard, &request);
        self.check_cancelled()?;
        if let Ok(turn) = heard.turn {
            self.conversation.summarise(turn.text);
        }
        Ok(())
    }

    fn with_calls(&mut self, turn: Turn) -> Result<(), Outcome> {
        let state = self.agent.bench.state().state;
        let room = self.estimate.bytes(self.room() / 2);
        let results = calls::carry_out(self.agent.bench, &turn, room);
        let any = |wanted| results.iter().any(|result: &CallResult| result.outcome == wanted);
        let understood = any(CallOutcome::Done) || !any(CallOutcome::Invalid);
        let last = results.iter().rev().find(|result| result.outcome == CallOutcome::Invalid);
        let why = last.map(|result| result.content.clone()).unwrap_or_default();
        self.conversation.add(&state, turn, results);
        self.nudges = 0;
        self.invalid = if understood { 0 } else { self.invalid + 1 };
        if self.invalid > MAX_INVALID {
            return Err(Outcome::failed(
                "the model keeps making calls that cannot be understood",
                &why,
                "run it again, or choose another model with `-m`",
            ));
        }
        Ok(())
    }

    fn without_calls(&mut self, turn: Turn) -> Result<(), Outcome> {
        let state = self.agent.bench.state().state;
        let (stop, text) = (turn.stop, turn.text.clone());
        self.conversation.add(&state, turn, Vec::new());
        let missing = match stop {
            // Interrupted by the provider; the same conversation lets it go on.
            StopReason::Pause => return Ok(()),
            StopReason::Length => "your answer was cut off: it was too long".to_owned(),
            StopReason::MalformedCall => "your call could not be understood".to_owned(),
            StopReason::End | StopReason::Calls | StopReason::Refusal => {
                let status = self.finish(&text)?;
                match status {
                    TaskStatus::Working { missing } => missing,
                    TaskStatus::Done { .. } | TaskStatus::Failed(_) => {
                        return self.end_of(status).map_or(Ok(()), Err);
                    }
                }
            }
        };
        self.nudge(&missing)
    }

    fn nudge(&mut self, missing: &str) -> Result<(), Outcome> {
        self.nudges += 1;
        if self.nudges > MAX_NUDGES {
            return Err(Outcome::failed(
                "the model stopped before the task was done",
                or(missing, "the task is not done"),
                "run it again with more precise words, or choose another model with `-m`",
            ));
        }
        let missing = or(missing, "it was not brought to its end");
        self.conversation.prompt(format!(
            "The task is not done: {missing}. Go on by calling tools; when everything is done, call \
             task.complete."
        ));
        Ok(())
    }

    /// A recorded conversation has no more turns: what it has reached counts.
    fn transcript_ended(&mut self) -> Outcome {
        match self.finish("") {
            Err(outcome) => outcome,
            Ok(TaskStatus::Working { missing }) => Outcome::failed(
                "the transcript ended before the task was done",
                or(&missing, "the task is not done"),
                "record the conversation to its end",
            ),
            Ok(TaskStatus::Done { summary }) => self.completed(summary),
            Ok(TaskStatus::Failed(failure)) => Outcome::Failed(failure),
        }
    }

    /// Brings the work to its end. What is not done because nobody wants it any more was cancelled, and did not fail.
    fn finish(&self, text: &str) -> Result<TaskStatus, Outcome> {
        match self.agent.bench.finish(text) {
            Ok(done @ TaskStatus::Done { .. }) => Ok(done),
            _other if self.agent.bench.is_cancelled() => Err(Outcome::Cancelled),
            Ok(status) => Ok(status),
            Err(error) => Err(Outcome::Bench(error)),
        }
    }

    /// How it ends with this status, if it does.
    fn end_of(&self, status: TaskStatus) -> Option<Outcome> {
        match status {
            TaskStatus::Working { .. } => None,
            TaskStatus::Done { summary } => Some(self.completed(summary)),
            TaskStatus::Failed(failure) => Some(Outcome::Failed(failure)),
        }
    }

    fn completed(&self, summary: String) -> Outcome {
        Outcome::Completed { summary, turns: self.meter.spent().turns }
    }

    fn check_cancelled(&self) -> Result<(), Outcome> {
        if self.agent.bench.is_cancelled() { Err(Outcome::Cancelled) } else { Ok(()) }
    }

    /// Counts what an answer used, whatever became of it; a request that was turned away used nothing.
    fn charge(&mut self, heard: &Heard, request: &ModelRequest) {
        if !heard.paid {
            return;
        }
        let Usage { input, output, cached, .. } = heard.usage;
        self.meter.charge(heard.usage);
        let cost = self.agent.provider.prices().map(|prices| prices.cost(&heard.usage));
        self.agent.observer.notice(Event::Usage {
            input_tokens: input,
            output_tokens: output,
            cached_tokens: Some(cached).filter(|cached| *cached > 0),
            cost_usd: cost.map(Usd::from_micros),
        });
        if heard.counted {
            self.estimate.learn(request, input);
        }
    }

    /// The longest answer that can be asked for.
    fn longest(&self) -> u64 {
        self.agent.provider.max_output_tokens().unwrap_or(LONGEST_OUTPUT).min(LONGEST_OUTPUT)
    }

    /// Tokens for everything that is sent.
    fn room(&self) -> u64 {
        self.agent.provider.context_window().saturating_sub(self.reserved())
    }

    /// Tokens for the answer: less than usual where the window is small.
    fn reserved(&self) -> u64 {
        RESERVED.min(self.agent.provider.context_window() / 4)
    }
}

fn or<'a>(text: &'a str, instead: &'a str) -> &'a str {
    if text.trim().is_empty() { instead } else { text }
}
