//! Runs rule files: module and input in, answer out.
//!
//! Every evaluation has an engine of its own, which is thrown away afterwards: what one evaluation does
//! to globals, prototypes or itself, no later one can see. Making an engine takes longer than using it,
//! so [`Engine::prepare`] is apart from [`Prepared::evaluate`] and may be done in idle time.
//!
//! **Invariant.** The answer is a function of the rule's text and the input: clock and randomness come
//! from the input, and the first limit is a count of the engine's steps. Time is the second limit, for
//! steps that take long.
//!
//! **Invariant.** There are no files, network, processes, timers, compilers or other modules in the
//! engine; nothing waits.

use std::cell::Cell;
use std::rc::Rc;

use fluffy_base::Digest;
use rquickjs::context::intrinsic;
use rquickjs::promise::PromiseState;
use rquickjs::{
    CatchResultExt as _, CaughtError, Context, Ctx, Function, Module, Object, Persistent, Runtime,
    Type, Value,
};

use super::answer::{RuleAnswer, cut};
use super::bytecode::Bytecode;
use super::source::{RuleProblem, javascript};

/// How many steps an evaluation may take, in units of [`STEPS_PER_POLL`]. A step is a call or a turn of
/// a loop. Ordinary code makes a million in some 25 ms on an idle machine.
const MAX_POLLS: u32 = 100;

/// How many steps the engine takes between two polls.
const STEPS_PER_POLL: u32 = 10_000;

/// How long an evaluation may take.
pub const MAX_EVALUATION_MS: u64 = 100;

/// How much memory an engine may take.
pub const MAX_ENGINE_BYTES: usize = 32 << 20;

/// How deep an engine's stack may grow.
const MAX_STACK_BYTES: usize = 256 << 10;

/// Milliseconds of a clock that only goes forward.
pub type Stopwatch = fn() -> u64;

/// What a rule has. No `Eval`, so nothing can be compiled; no typed arrays, so no shared memory; no
/// weak references, which would show when memory is collected; no proxies, so an answer is what it is.
type RuleParts = (
    intrinsic::Date,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::MapSet,
    intrinsic::Promise,
);

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a rule engine: {0}")]
pub struct EngineError(String);

/// Compiles rule files and makes engines for them.
pub struct Engine {
    prelude: Bytecode,
    stopwatch: Stopwatch,
}

/// A rule file that was compiled and has run once without complaint.
pub struct LoadedRule {
    file: String,
    code: Bytecode,
}

/// An engine with one rule in it, good for one evaluation. The order of the fields is the order in
/// which they are dropped: values before the engine they live in.
pub struct Prepared {
    file: String,
    judge: Persistent<Function<'static>>,
    begin: Persistent<Function<'static>>,
    context: Context,
    meter: Rc<Meter>,
}

/// What is left of an engine after its one evaluation; there is nothing to do with it but to drop it.
pub struct UsedEngine {
    _context: Context,
}

impl Engine {
    /// An engine whose evaluations are timed by `stopwatch`.
    pub fn new(stopwatch: Stopwatch) -> Result<Self, EngineError> {
        let prelude = include_str!("prelude.js");
        let compiled = compiler(|ctx| {
            Bytecode::compile(ctx, "prelude", prelude)
                .catch(ctx)
                .map_err(|error| told("prelude", &error))
        });
        let prelude =
            compiled.map_err(|error| EngineError(error.to_string()))?.map_err(EngineError)?;
        Ok(Self { prelude, stopwatch })
    }

    /// Checks, compiles and tries out a rule file; `name` is its name without `.ts`.
    pub fn load(&self, name: &str, typescript: &str) -> Result<LoadedRule, RuleProblem> {
        let plain = javascript(typescript)?;
        let file = format!("{name}.ts");
        let compiled = compiler(|ctx| {
            Bytecode::compile(ctx, &file, &plain).catch(ctx).map_err(|error| problem(&file, &error))
        });
        let code = compiled.map_err(|error| {
            RuleProblem::at("", 0, &error.to_string(), "make the rule smaller")
        })??;
        let rule = LoadedRule { file, code };
        self.prepare(&rule)?;
        Ok(rule)
    }

    /// An engine that has run the rule's top level and waits for a request.
    pub fn prepare(&self, rule: &LoadedRule) -> Result<Prepared, RuleProblem> {
        let meter = Rc::new(Meter::new(self.stopwatch));
        let failed = |error: rquickjs::Error| {
            RuleProblem::at("", 0, &error.to_string(), "make the rule smaller")
        };
        let runtime = limited_runtime(&meter).map_err(failed)?;
        let context = Context::custom::<RuleParts>(&runtime).map_err(failed)?;
        meter.start();
        let functions = context.with(|ctx| {
            let begin = instantiated(&ctx, self.prelude, "prelude")?;
            let judge = instantiated(&ctx, rule.code, &rule.file)?;
            Ok((Persistent::save(&ctx, begin), Persistent::save(&ctx, judge)))
        });
        match (functions, meter.stop.get()) {
            (Ok((begin, judge)), None) => {
                Ok(Prepared { file: rule.file.clone(), judge, begin, context, meter })
            }
            (_, Some(stop)) => {
                let problem = format!("the top level of the rule {}", stop.words());
                Err(RuleProblem::new(1, 1, &problem, "do the work in the function, and less of it"))
            }
            (Err(problem), None) => Err(problem),
        }
    }
}

impl Prepared {
    /// The rule's answer to the request that `input` describes.
    pub fn evaluate(self, input: &str) -> RuleAnswer {
        let (answer, _used) = self.evaluate_keeping(input);
        answer
    }

    /// The same, with what is left of the engine: taking it down takes longer than the evaluation, and
    /// whoever waits for the answer need not wait for that.
    pub fn evaluate_keeping(self, input: &str) -> (RuleAnswer, UsedEngine) {
        let Self { file, judge, begin, context, meter } = self;
        meter.start();
        let answer = context.with(|ctx| {
            let asked = asked(&ctx, input, begin, judge).and_then(|value| answer(&ctx, &value));
            asked.unwrap_or_else(|failure| match failure {
                Failure::Engine(error) => {
                    let caught = CaughtError::from_error(&ctx, error);
                    RuleAnswer::failed(format!("threw {}", told(&file, &caught)))
                }
                Failure::Answer(why) => RuleAnswer::failed(why),
            })
        });
        let answer = match meter.stop.get() {
            Some(stop) => RuleAnswer::failed(stop.words()),
            None => answer,
        };
        (answer, UsedEngine { _context: context })
    }
}

/// Why there is no answer.
enum Failure {
    Engine(rquickjs::Error),
    Answer(String),
}

impl From<rquickjs::Error> for Failure {
    fn from(error: rquickjs::Error) -> Self {
        Self::Engine(error)
    }
}

/// Which limit ended an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Steps,
    Time,
}

impl Stop {
    fn words(self) -> String {
        match self {
            Self::Steps => format!("took more than {} steps", MAX_POLLS * STEPS_PER_POLL),
            Self::Time => format!("took more than {MAX_EVALUATION_MS} ms"),
        }
    }
}

/// Counts steps and time. Once stopped, an engine stays stopped.
struct Meter {
    stopwatch: Stopwatch,
    polls: Cell<u32>,
    since: Cell<u64>,
    stop: Cell<Option<Stop>>,
}

impl Meter {
    fn new(stopwatch: Stopwatch) -> Self {
        let (polls, since, stop) = (Cell::new(0), Cell::new(0), Cell::new(None));
        Self { stopwatch, polls, since, stop }
    }

    fn start(&self) {
        self.polls.set(0);
        self.since.set((self.stopwatch)());
    }

    /// Whether the engine must stop.
    fn poll(&self) -> bool {
        self.polls.set(self.polls.get().saturating_add(1));
        if self.stop.get().is_none() {
            let taken = (self.stopwatch)().saturating_sub(self.since.get());
            if self.polls.get() > MAX_POLLS {
                self.stop.set(Some(Stop::Steps));
            } else if taken > MAX_EVALUATION_MS {
                self.stop.set(Some(Stop::Time));
            }
        }
        self.stop.get().is_some()
    }
}

/// Works in an engine that can compile and runs nothing.
fn compiler<T>(work: impl FnOnce(&Ctx<'_>) -> T) -> rquickjs::Result<T> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(MAX_ENGINE_BYTES);
    runtime.set_max_stack_size(MAX_STACK_BYTES);
    let context = Context::custom::<(intrinsic::Eval, RuleParts)>(&runtime)?;
    Ok(context.with(|ctx| work(&ctx)))
}

fn limited_runtime(meter: &Rc<Meter>) -> rquickjs::Result<Runtime> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(MAX_ENGINE_BYTES);
    runtime.set_max_stack_size(MAX_STACK_BYTES);
    let meter = Rc::clone(meter);
    runtime.set_interrupt_handler(Some(Box::new(move || meter.poll())));
    Ok(runtime)
}

/// The default export of a module whose top level has run to its end.
fn instantiated<'js>(
    ctx: &Ctx<'js>,
    code: Bytecode,
    file: &str,
) -> Result<Function<'js>, RuleProblem> {
    let run = || -> rquickjs::Result<_> {
        let (module, done) = code.load(ctx)?.eval()?;
        if done.state() == PromiseState::Rejected {
            done.result::<()>().unwrap_or(Ok(()))?;
        }
        Ok((module, done.state()))
    };
    let (module, state) = run().catch(ctx).map_err(|error| problem(file, &error))?;
    if state != PromiseState::Resolved {
        let fix = "take `await` out of the top level";
        return Err(RuleProblem::new(1, 1, "the top level of the rule waits", fix));
    }
    default_export(&module).catch(ctx).map_err(|error| problem(file, &error))
}

fn default_export<'js, T>(module: &Module<'js, T>) -> rquickjs::Result<Function<'js>> {
    module.namespace()?.get("default")
}

fn asked<'js>(
    ctx: &Ctx<'js>,
    input: &str,
    begin: Persistent<Function<'static>>,
    judge: Persistent<Function<'static>>,
) -> Result<Value<'js>, Failure> {
    let request = ctx.json_parse(input)?;
    let time = request
        .as_object()
        .and_then(|request| request.get::<_, f64>("ts_ms").ok())
        .ok_or_else(|| Failure::Answer("was given a request without a time".to_owned()))?;
    let [a, b, c, d] = seed(input);
    begin.restore(ctx)?.call::<_, ()>((time, a, b, c, d))?;
    Ok(judge.restore(ctx)?.call((request,))?)
}

/// Four numbers from the digest of the input.
fn seed(input: &str) -> [i32; 4] {
    let digest = Digest::of(input.as_bytes());
    let mut out = [0; 4];
    for (number, bytes) in out.iter_mut().zip(digest.as_bytes().chunks_exact(4)) {
        *number = bytes.try_into().map_or(0, i32::from_be_bytes);
    }
    out
}

/// Reads what a rule returned; every member is read once.
fn answer(ctx: &Ctx<'_>, value: &Value<'_>) -> Result<RuleAnswer, Failure> {
    let object = match value.type_of() {
        Type::Object => value.as_object(),
        _other => None,
    };
    let Some(object) = object else {
        let kind = value.type_of().as_str();
        return Err(Failure::Answer(format!("returned `{kind}` instead of an answer")));
    };
    // Own members only: what a rule did to prototypes is no answer.
    let (mut action, mut reason) = (None, None);
    for key in object.keys::<String>() {
        match key?.as_str() {
            "action" => action = member(ctx, object, "action")?,
            "reason" => reason = member(ctx, object, "reason")?,
            other => {
                let why = format!("returned an answer with the unknown member `{}`", shown(other));
                return Err(Failure::Answer(why));
            }
        }
    }
    let given = |reason: Option<String>, of: &str| match reason {
        Some(text) if !fluffy_base::is_blank(&text) => Ok(cut(&text)),
        _ => Err(Failure::Answer(format!("returned `{of}` without a reason"))),
    };
    match action.as_deref() {
        Some("pass") => Ok(RuleAnswer::Pass),
        Some("allow") => Ok(RuleAnswer::Allow),
        Some("require_review") => Ok(RuleAnswer::RequireReview(given(reason, "require_review")?)),
        Some("deny") => Ok(RuleAnswer::Deny(given(reason, "deny")?)),
        Some(other) => {
            Err(Failure::Answer(format!("returned the unknown action `{}`", shown(other))))
        }
        None => Err(Failure::Answer("returned an answer without an action".to_owned())),
    }
}

/// A member that is a text or absent.
fn member(ctx: &Ctx<'_>, object: &Object<'_>, name: &str) -> Result<Option<String>, Failure> {
    let value: Value<'_> = object.get(name)?;
    if value.is_undefined() {
        return Ok(None);
    }
    let not_text = || Failure::Answer(format!("returned an answer whose `{name}` is not a text"));
    let text = value.as_string().ok_or_else(not_text)?.to_string();
    text.map(Some).map_err(|_lone_surrogate| {
        ctx.catch();
        not_text()
    })
}

fn problem(file: &str, error: &CaughtError<'_>) -> RuleProblem {
    let (line, column) = place(file, error).unwrap_or((1, 1));
    RuleProblem::new(line, column, &words(error), "make the file run to its end by itself")
}

/// An exception in words, with its place in the rule file.
fn told(file: &str, error: &CaughtError<'_>) -> String {
    match place(file, error) {
        Some((line, column)) => format!("`{}` at {file}:{line}:{column}", words(error)),
        None => format!("`{}`", words(error)),
    }
}

fn words(error: &CaughtError<'_>) -> String {
    let text = match error {
        CaughtError::Error(error) => error.to_string(),
        CaughtError::Exception(exception) => {
            let name = exception.get::<_, String>("name").unwrap_or_else(|_| "Error".to_owned());
            format!("{name}: {}", exception.message().unwrap_or_default())
        }
        CaughtError::Value(value) => match value.as_string().map(rquickjs::String::to_string) {
            Some(Ok(text)) => text,
            _ => format!("a value of type {}", value.type_of().as_str()),
        },
    };
    shown(&text)
}

/// The first place in `file` that the exception's stack names.
fn place(file: &str, error: &CaughtError<'_>) -> Option<(u32, u32)> {
    let CaughtError::Exception(exception) = error else { return None };
    let stack = exception.stack()?;
    let (_, rest) = stack.split_once(&format!("{file}:"))?;
    let mut numbers = rest.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The beginning of a stranger's text inside a sentence of ours.
fn shown(text: &str) -> String {
    fluffy_base::Excerpt::new(text, 200).to_string()
}
