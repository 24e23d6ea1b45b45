//! What the other modules share: a policy from a few lines, a call, and what is decided.

use std::collections::BTreeSet;

use fluffy_base::{Json, KernelRequest, KernelState, ProjectPath};
use fluffy_policy::{
    BuiltIn, Caller, Decided, Explanation, Facts, Isolation, Layer, PolicyFile, Reason, Rule,
    Source, Strength, Subject, Verdict, decide, explain, shape_of,
};

/// The jurisdiction under which rules alone decide.
const HEARD: &str = "jurisdiction: { allowed_actors: ['*'], allowed_tools: ['*'] }\n";

/// The policy of these rules, in which everybody is heard.
#[track_caller]
pub(crate) fn policy(rules: &str) -> PolicyFile {
    let text = format!("{HEARD}capabilities:{rules}");
    PolicyFile::parse("policy.yaml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Rules with names `r0`, `r1`, …, each given as `action: match` with the match in flow style and
/// further keys after a `;`.
#[track_caller]
pub(crate) fn rules(lines: &[&str]) -> PolicyFile {
    let rule = |(index, line): (usize, &&str)| {
        let (action, rest) = line.split_once(": ").unwrap();
        let (matched, more) = rest.split_once(';').unwrap_or((rest, ""));
        let more: String = more
            .split(';')
            .filter(|key| !key.is_empty())
            .fold(String::new(), |text, key| text + "\n    " + key.trim());
        format!("\n  - name: r{index}\n    match: {matched}\n    action: {action}{more}")
    };
    let text: String = lines.iter().enumerate().map(rule).collect();
    if text.is_empty() { policy(" []") } else { policy(&text) }
}

/// A call, with what the kernel would know of it.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) request: KernelRequest,
    pub(crate) subject: Subject,
    pub(crate) caller: Caller,
}

/// A call of a tool of ours on these paths; `.` is the root.
pub(crate) fn call(tool: &str, paths: &[&str]) -> Call {
    let shape = shape_of(tool);
    let subject = Subject {
        paths: paths
            .iter()
            .filter(|path| **path != ".")
            .map(|path| ProjectPath::parse(path).unwrap())
            .collect(),
        root: paths.contains(&"."),
        changes: shape.is_some_and(|shape| shape.changes),
        isolation: shape.map_or(Isolation::Sandbox, |shape| shape.isolation),
        ..Subject::default()
    };
    let request = KernelRequest::call("r", "model", "work", tool, Json::empty_object());
    Call { request, subject, caller: Caller::default() }
}

impl Call {
    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts::new(&self.request, KernelState::Idle).about(&self.subject).by(&self.caller)
    }

    pub(crate) fn tagged(mut self, tag: &str) -> Self {
        self.caller.tags = BTreeSet::from([tag.to_owned()]);
        self
    }

    pub(crate) fn with_token(mut self) -> Self {
        self.caller.token = Some(Source::new(Layer::Token, "token-1"));
        self
    }

    pub(crate) fn by(mut self, actor: &str) -> Self {
        self.request.actor = actor.to_owned();
        self
    }

    pub(crate) fn command(mut self, words: &[&str]) -> Self {
        self.subject.command = Some(words.iter().map(|word| (*word).to_owned()).collect());
        self
    }

    pub(crate) fn bytes(mut self, bytes: u64) -> Self {
        self.subject.file_bytes = Some(bytes);
        self
    }
}

/// A rule of any layer that says what it was told to say, and counts how often it was asked.
pub(crate) struct Says {
    pub(crate) layer: Layer,
    pub(crate) verdict: fn(Layer) -> Verdict,
    pub(crate) asked: std::sync::atomic::AtomicUsize,
}

impl Says {
    pub(crate) fn new(layer: Layer, verdict: fn(Layer) -> Verdict) -> Self {
        Self { layer, verdict, asked: 0.into() }
    }

    pub(crate) fn times(&self) -> usize {
        self.asked.load(std::sync::atomic::Ordering::SeqCst)
    }
}

impl Rule for Says {
    fn name(&self) -> &str {
        "says"
    }

    fn layer(&self) -> Layer {
        self.layer
    }

    fn judge(&self, _facts: &Facts<'_>) -> Verdict {
        self.asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        (self.verdict)(self.layer)
    }
}

pub(crate) fn allows(layer: Layer) -> Verdict {
    Verdict::Allow(Source::new(layer, "says"))
}

pub(crate) fn denies(layer: Layer) -> Verdict {
    Verdict::deny(Reason::new(layer, "says", "it says no"))
}

pub(crate) fn panics(_layer: Layer) -> Verdict {
    panic!("on purpose")
}

/// What the file's rules decide with the built-in ones and some more.
pub(crate) fn decided(policy: &PolicyFile, more: &[&dyn Rule], call: &Call) -> Decided {
    let (built_in, own) = (BuiltIn::new([]), policy.rules());
    decide(every(&built_in, &own, more), &call.facts())
}

pub(crate) fn explained(policy: &PolicyFile, more: &[&dyn Rule], call: &Call) -> Explanation {
    let (built_in, own) = (BuiltIn::new([]), policy.rules());
    explain(every(&built_in, &own, more), policy.capabilities(), &call.facts())
}

fn every<'a>(
    built_in: &'a BuiltIn,
    own: &'a [Box<dyn Rule>],
    more: &'a [&'a dyn Rule],
) -> impl Iterator<Item = &'a dyn Rule> + Clone {
    let built_in: &dyn Rule = built_in;
    std::iter::once(built_in).chain(own.iter().map(|rule| &**rule)).chain(more.iter().copied())
}

/// The word for what a policy decides.
pub(crate) fn word(policy: &PolicyFile, call: &Call) -> &'static str {
    decided(policy, &[], call).verdict.strength().name()
}

/// What rules decide on a call.
#[track_caller]
pub(crate) fn check(lines: &[&str], call: &Call, expected: &str) {
    let decided = decided(&rules(lines), &[], call);
    assert_eq!(decided.verdict.strength().name(), expected, "{lines:?}: {}", decided.verdict);
}

/// The rules that a verdict is recorded with.
pub(crate) fn named(verdict: &Verdict) -> Vec<String> {
    match verdict.reasons() {
        Some(reasons) => reasons.iter().map(|reason| reason.rule().to_owned()).collect(),
        None => verdict.source().iter().map(|source| source.rule().to_owned()).collect(),
    }
}

/// Whether a decision lets a call through, with or without a person.
pub(crate) fn lets_through(verdict: &Verdict) -> bool {
    match verdict.strength() {
        Strength::Allow | Strength::Review => true,
        Strength::Pass | Strength::Deny => false,
    }
}
