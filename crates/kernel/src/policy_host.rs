//! The kernel's side of the policy host: a process that runs the project's rule files.
//!
//! [`PolicyHost::start`] starts it in a sandbox, hands it the rule files and gives one [`Rule`] for each. The
//! host sees no project, no network and nothing of the kernel's environment; it cannot start a process. What
//! it says over its two pipes is read with limits on size and time.
//!
//! **Invariant.** Without a proper answer in time there is a denial that says so (L22): a host that is
//! away, late, dead or not understood never abstains.
//!
//! **Invariant.** A host that failed is killed before anything else is asked; an answer is never taken
//! for another question's. A new one is started with the next question, at once the first times and
//! then after a pause that grows, during which every question is a denial. Nothing here sleeps.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fluffy_base::ProjectPath;
use fluffy_policy::{
    ExtensionInput, Facts, HostAnswer, HostMessage, Layer, MAX_EVALUATION_MS,
    MAX_HOST_ANSWER_BYTES, Place, Reason, Rule, RuleAnswer, RuleProblem, Source, Verdict,
};
use fluffy_sandbox::{Config, Job, Runtime, RuntimeError, Template};

use crate::guest::{Guest, GuestError, GuestFailure, now};
use crate::witness::{Telling, Witness};

/// How long an answer may take: the evaluation, the making of an engine for it, and the way there and
/// back on a busy machine. The host keeps its own limits; this one is for a host that hangs, and a host
/// that is merely starved of time should not be taken for one.
const ANSWER_LIMIT: Duration = Duration::from_millis(2 * MAX_EVALUATION_MS + 800);

/// How long a question waits for its turn, where other sandboxes are at work. The kernel's door is held meanwhile.
const TURN_LIMIT: Duration = Duration::from_secs(2);

/// How long a host may take to start and load all rule files.
const START_LIMIT: Duration = Duration::from_secs(5);

/// So many failures in a row are followed by an immediate new start.
const FREE_FAILURES: u32 = 3;

/// The first pause, doubled with each further failure.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The longest name of a rule.
const MAX_NAME_CHARS: usize = 100;

/// A file with one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFile {
    /// Its name without `.ts`: letters, digits, `-` and `_`.
    pub name: String,
    /// What messages call the file.
    pub path: String,
    /// Its TypeScript.
    pub text: String,
}

/// Why rule files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyHostError {
    /// A name that is none.
    #[error("`{0}` cannot be the name of a rule: use letters, digits, `-` and `_`")]
    Name(String),
    /// Two files of one name.
    #[error("there are two rules called `{0}`")]
    Twice(String),
    /// The file is no rule.
    #[error("{file}:{problem}")]
    Refused {
        /// The file.
        file: String,
        /// What is wrong with it, and where.
        problem: RuleProblem,
    },
    /// The process did not start.
    #[error("the policy host cannot be started")]
    Start(#[from] RuntimeError),
    /// There is no way to speak to it.
    #[error("the policy host cannot be given pipes")]
    Pipes(#[source] io::Error),
    /// Nobody would remember it.
    #[error("the policy host cannot be recorded, and is not started: {0}")]
    Untold(String),
    /// The process failed over a file.
    #[error("the policy host failed while it loaded `{file}`: {why}")]
    Load {
        /// The file.
        file: String,
        /// How.
        why: String,
    },
}

/// The process with the rule files, in its sandbox. Dropping it ends the process.
pub struct PolicyHost {
    stage: Stage,
    files: Vec<RuleFile>,
    state: Mutex<State>,
}

/// What a host is started with.
struct Stage {
    runtime: Arc<dyn Runtime>,
    program: PathBuf,
    witness: Arc<Witness>,
}

/// Whether there is a process, and how often it failed lately.
#[derive(Default)]
struct State {
    /// Taken out for each exchange and put back after a proper answer only.
    process: Option<Process>,
    failures: u32,
    not_before: Option<Instant>,
}

impl PolicyHost {
    /// Starts `program` as the policy host (`program policy-host`) in a sandbox and loads the files.
    pub fn start(
        runtime: Arc<dyn Runtime>,
        program: &Path,
        files: Vec<RuleFile>,
        witness: Arc<Witness>,
    ) -> Result<Arc<Self>, PolicyHostError> {
        check_names(&files)?;
        let stage = Stage { runtime, program: program.to_owned(), witness };
        let process = Process::start(&stage, &files)?;
        let state = Mutex::new(State { process: Some(process), ..State::default() });
        Ok(Arc::new(Self { stage, files, state }))
    }

    /// One rule for each file, in the order of the files.
    pub fn rules(self: &Arc<Self>) -> Vec<Box<dyn Rule>> {
        let rule = |(place, file): (usize, &RuleFile)| {
            let written = Place { file: file.path.as_str().into(), line: 1 };
            let source = Source::new(Layer::Extension, &file.name).at(written);
            Box::new(HostedRule { host: Arc::clone(self), place, source }) as Box<dyn Rule>
        };
        self.files.iter().enumerate().map(rule).collect()
    }

    /// The number of the sandbox's first process, while there is one.
    pub fn pid(&self) -> Option<u32> {
        self.state().process.as_ref()?.guest.pid()
    }

    /// Asks a rule; the error says what became of the host.
    fn ask(&self, rule: usize, input: String) -> Result<RuleAnswer, String> {
        let message = HostMessage::Evaluate { rule, input };
        let frame = message.frame().map_err(|error| format!("cannot be asked: {error}"))?;
        let mut state = self.state();
        let mut process = match state.process.take() {
            Some(process) => process,
            None => self.start_again(&mut state)?,
        };
        if process.guest.engage(TURN_LIMIT) == Ok(false) {
            state.process = Some(process);
            return Err("was not let in, as other sandboxes are at work".to_owned());
        }
        let answered = process.exchange(&frame, now() + ANSWER_LIMIT);
        process.guest.rest();
        let why = match answered {
            Ok(HostAnswer::Judged(answer)) => {
                *state = State { process: Some(process), ..State::default() };
                return Ok(answer);
            }
            Ok(HostAnswer::NotUnderstood(words)) => format!("did not understand: {words}"),
            Ok(HostAnswer::Loaded | HostAnswer::Refused(_)) => "answered nonsense".to_owned(),
            Err(failure) => failure.to_string(),
        };
        drop(process);
        state.failed();
        Err(format!("{why}; it was ended"))
    }

    fn start_again(&self, state: &mut State) -> Result<Process, String> {
        if state.not_before.is_some_and(|until| now() < until) {
            return Err(format!("is away after {} failures in a row", state.failures));
        }
        Process::start(&self.stage, &self.files).map_err(|error| {
            state.failed();
            format!("is away and cannot be started again: {error}")
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked had taken the process out: there is none, which is a state like any other.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
        let doublings = self.failures.checked_sub(FREE_FAILURES).filter(|over| *over > 0);
        self.not_before = doublings.map(|over| now() + pause(over));
    }
}

/// How long to stay away after so many failures too many.
fn pause(over: u32) -> Duration {
    let factor = 1_u32.checked_shl(over.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE)
}

/// One rule file, judged in the host.
struct HostedRule {
    host: Arc<PolicyHost>,
    place: usize,
    source: Source,
}

impl Rule for HostedRule {
    fn name(&self) -> &str {
        self.source.rule()
    }

    fn layer(&self) -> Layer {
        Layer::Extension
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        match self.host.ask(self.place, input(facts).canonical()) {
            Ok(answer) => answer.verdict(&self.source),
            Err(why) => {
                let text = format!("it was not evaluated: the policy host {why} ({})", self.source);
                let hint =
                    "the host is started again by itself; a rule that keeps failing must be mended";
                Verdict::deny(Reason::of(self.source.clone(), &text).with_hint(hint))
            }
        }
    }
}

/// What rule files are told: the one place that knows where each member comes from.
fn input<'a>(facts: &Facts<'a>) -> ExtensionInput<'a> {
    let root = facts.subject.root.then_some(".");
    ExtensionInput {
        syscall: facts.tool(),
        paths: facts.subject.paths.iter().map(ProjectPath::as_str).chain(root).collect(),
        actor: facts.actor(),
        caller_tags: facts.caller.tags.iter().map(String::as_str).collect(),
        intent: facts.intent(),
        session_mode: facts.caller.mode.as_deref(),
        workflow_state: facts.caller.workflow_state.as_deref(),
        params: facts.tool_params(),
        request_id: &facts.request.request_id,
        ts_ms: facts.request.ts_ms,
    }
}

/// A running host.
struct Process {
    guest: Guest,
}

impl Process {
    fn start(stage: &Stage, files: &[RuleFile]) -> Result<Self, PolicyHostError> {
        let mut process = Self::spawn(stage)?;
        // Whoever is not let in is late, which the first file's answer says.
        let _engaged = process.guest.engage(START_LIMIT);
        let deadline = now() + START_LIMIT;
        for file in files {
            let (name, text) = (file.name.clone(), file.text.clone());
            let file = file.path.clone();
            let failed = |why: String| PolicyHostError::Load { file: file.clone(), why };
            let frame = HostMessage::Load { name, text }.frame();
            let frame = frame.map_err(|error| failed(error.to_string()))?;
            match process.exchange(&frame, deadline) {
                Ok(HostAnswer::Loaded) => {}
                Ok(HostAnswer::Refused(problem)) => {
                    return Err(PolicyHostError::Refused { file, problem });
                }
                Ok(HostAnswer::NotUnderstood(words)) => return Err(failed(words)),
                Ok(HostAnswer::Judged(_)) => return Err(failed("answered nonsense".to_owned())),
                Err(failure) => return Err(failed(format!("it {failure}"))),
            }
        }
        process.guest.rest();
        Ok(process)
    }

    /// No files but the system's and the program's, no network, no other process; its answers have their
    /// own deadline each.
    fn spawn(Stage { runtime, program, witness }: &Stage) -> Result<Self, PolicyHostError> {
        // The engine's local time is the machine's otherwise, and decisions would not replay.
        let job = Job::new(program).args(["policy-host"]).env("TZ", "UTC0");
        let config = Config::of(Template::PolicySandbox).staying().showing(program);
        let config = config.map_err(RuntimeError::from)?;
        // The kernel's door may be held: it is asking.
        let telling = Telling::later(witness);
        let guest = Guest::start(&**runtime, config, job, MAX_HOST_ANSWER_BYTES, telling)?;
        Ok(Self { guest })
    }

    /// Sends a frame and waits for the answer, until `deadline`.
    fn exchange(&mut self, frame: &[u8], deadline: Instant) -> Result<HostAnswer, GuestFailure> {
        let payload = self.guest.exchange(frame, deadline)?;
        HostAnswer::read(&payload).map_err(|_| GuestFailure::Garbled)
    }
}

fn check_names(files: &[RuleFile]) -> Result<(), PolicyHostError> {
    for (place, RuleFile { name, .. }) in files.iter().enumerate() {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(plain) {
            let shown = fluffy_base::Excerpt::new(name, MAX_NAME_CHARS).to_string();
            return Err(PolicyHostError::Name(shown));
        }
        if files.iter().take(place).any(|other| other.name == *name) {
            return Err(PolicyHostError::Twice(name.clone()));
        }
    }
    Ok(())
}

impl From<GuestError> for PolicyHostError {
    fn from(error: GuestError) -> Self {
        match error {
            GuestError::Start(error) => Self::Start(error),
            GuestError::Pipes(error) => Self::Pipes(error),
            GuestError::Untold(why) => Self::Untold(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use fluffy_base::{KernelRequest, KernelState};
    use fluffy_policy::Subject;
    use fluffy_sandbox::{Health, MadeOf, Sandbox, Store, Swept, Volume};

    use super::*;

    fn file(name: &str) -> RuleFile {
        RuleFile { name: name.to_owned(), path: format!("{name}.ts"), text: String::new() }
    }

    /// A machine on which no sandbox can be made.
    struct Nowhere;

    impl Runtime for Nowhere {
        fn name(&self) -> &'static str {
            "nowhere"
        }

        fn ping(&self) -> Result<Health, RuntimeError> {
            Err(Self::unavailable())
        }

        fn volume(&self, _: Store) -> Result<Volume, RuntimeError> {
            Err(Self::unavailable())
        }

        fn create(&self, _: Config, _: Job) -> Result<Box<dyn Sandbox>, RuntimeError> {
            Err(Self::unavailable())
        }

        fn made_of(&self) -> Result<Option<MadeOf>, RuntimeError> {
            Ok(None)
        }

        fn sweep(&self) -> Swept {
            Swept::default()
        }
    }

    impl Nowhere {
        fn unavailable() -> RuntimeError {
            RuntimeError::Unavailable { what: "it is nowhere".into(), fix: "go somewhere".into() }
        }
    }

    fn refusal(files: &[&str]) -> String {
        let files = files.iter().map(|name| file(name)).collect();
        let host =
            PolicyHost::start(Arc::new(Nowhere), Path::new("/bin/false"), files, Arc::default());
        host.map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn a_name_is_plain_and_once() {
        for name in ["", "a.b", "a/b", "ä", "a b", &"x".repeat(101)] {
            assert!(refusal(&[name]).contains("cannot be the name of a rule"), "{name}");
        }
        assert_eq!(refusal(&["a", "b", "a"]), "there are two rules called `a`");
    }

    #[test]
    fn without_a_sandbox_there_is_no_host() {
        assert_eq!(refusal(&["a"]), "the policy host cannot be started");
    }

    #[test]
    fn lesson_l22_a_host_that_stays_away_denies_at_once() {
        let away = State { process: None, failures: 4, not_before: Some(now() + START_LIMIT * 99) };
        let host = PolicyHost {
            stage: Stage {
                runtime: Arc::new(Nowhere),
                program: "no-such-program".into(),
                witness: Arc::default(),
            },
            files: vec![file("locks")],
            state: Mutex::new(away),
        };
        let host = Arc::new(host);
        let request = KernelRequest::intent_only("r", "a", "i");
        let facts = Facts::new(&request, KernelState::Idle);
        let denied = |words: &str| {
            let verdict = host.rules().first().unwrap().judge(&facts).to_string();
            let expected = "deny: it was not evaluated: the policy host is away ";
            assert_eq!(verdict, format!("{expected}{words} (rule `locks`, locks.ts:1)"));
        };
        denied("after 4 failures in a row");
        host.state().not_before = None;
        denied("and cannot be started again: the policy host cannot be started");
        assert_eq!(host.state().failures, 5);
        assert_eq!(host.pid(), None);
    }

    #[test]
    fn a_rule_file_is_told_every_target_of_a_call() {
        let request = KernelRequest::intent_only("r", "a", "i");
        let subject = Subject {
            paths: vec![ProjectPath::parse("src/a.rs").unwrap()],
            root: true,
            ..Subject::default()
        };
        let facts = Facts::new(&request, KernelState::Idle).about(&subject);
        assert_eq!(input(&facts).paths, ["src/a.rs", "."]);
    }

    #[test]
    fn pauses_grow_to_a_bound() {
        let pauses: Vec<_> = [1, 2, 3, 6, 7, 99].map(|over| pause(over).as_millis()).to_vec();
        assert_eq!(pauses, [250, 500, 1000, 8000, 10000, 10000]);
        let mut state = State::default();
        for _ in 0..FREE_FAILURES {
            state.failed();
            assert!(state.not_before.is_none());
        }
        state.failed();
        assert!(state.not_before.is_some());
    }
}
