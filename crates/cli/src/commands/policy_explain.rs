//! `fluffy policy explain`: why a request is decided as it is.

use std::io::Read as _;
use std::path::Path;

use fluffy_base::{KernelRequest, KernelState, normalised};
use fluffy_policy::{
    Caller, Explanation, Facts, SAMPLE_ACTOR, SampleCall, Subject, Verdict, explain, refused_path,
    shape_of,
};

use crate::args::ExplainArgs;
use crate::explain::{CliError, DONE};
use crate::explanation::{Told, as_json, show};
use crate::output::Output;
use crate::place::Place;
use crate::policy_source::PolicySource;

/// The longest request that is read.
const MAX_REQUEST_BYTES: u64 = 16 << 20;

/// What is to be explained.
struct Asked {
    request: KernelRequest,
    /// What it acts on, or the words in which it is refused because that cannot be known.
    subject: Result<Subject, Verdict>,
    caller: Caller,
}

pub(crate) fn run(place: &Place, args: &ExplainArgs, output: &mut Output) -> Result<u8, CliError> {
    let source = PolicySource::find(place, args.policy.as_deref())?;
    let asked = match &args.request {
        Some(path) => from_json(path, args)?,
        None => from_words(args),
    };
    let rules = source.rules(place)?;
    let rules = rules.iter().map(|rule| &**rule);
    let nothing = Subject::default();
    let subject = asked.subject.as_ref().unwrap_or(&nothing);
    let facts = Facts::new(&asked.request, KernelState::Idle).about(subject).by(&asked.caller);
    let explanation = match &asked.subject {
        Ok(_) => explain(rules, source.policy.capabilities(), &facts),
        // No rule is asked about a call whose files cannot be known.
        Err(verdict) => Explanation {
            decided: fluffy_policy::Decided { verdict: verdict.clone(), instead: None },
            opinions: Vec::new(),
            looks: Vec::new(),
        },
    };
    let told = Told {
        policy: source.policy.name(),
        facts: &facts,
        explanation: &explanation,
        notes: notes(facts.tool()),
    };
    if args.json {
        output.line(as_json(&told))?
    } else {
        show(&told, output)?
    }
    Ok(DONE)
}

/// What an explanation cannot take into account.
fn notes(tool: Option<&str>) -> Vec<String> {
    match tool {
        Some(tool) if shape_of(tool).is_none() => vec![format!(
            "`{}` is no tool of ours: which of its arguments are paths is not known here, and the \
             kernel denies it unless a plugin registers it",
            fluffy_base::Excerpt::new(tool, 100)
        )],
        Some(_) | None => Vec::new(),
    }
}

fn from_words(args: &ExplainArgs) -> Asked {
    let words = |text: &String| text.split_whitespace().map(str::to_owned).collect();
    let call = SampleCall {
        syscall: args.syscall.clone().unwrap_or_default(),
        paths: args.paths.clone(),
        actor: args.actor.clone().unwrap_or_else(|| SAMPLE_ACTOR.to_owned()),
        command: args.command.as_ref().map(words),
        ..SampleCall::default()
    };
    let subject = call.subject().map_err(|error| refused_path(&error).verdict);
    Asked { request: call.request(), subject, caller: caller(args) }
}

fn from_json(path: &Path, args: &ExplainArgs) -> Result<Asked, CliError> {
    let text = if path == Path::new("-") {
        let mut text = Vec::new();
        let failed =
            |source| CliError::File { action: "read", path: "the standard input".into(), source };
        std::io::stdin().lock().take(MAX_REQUEST_BYTES).read_to_end(&mut text).map_err(failed)?;
        text
    } else {
        super::read_bounded(path, MAX_REQUEST_BYTES)?
    };
    let mut request = KernelRequest::parse(&text)?;
    request.actor = normalised(&request.actor).into_owned();
    if let Some(call) = &mut request.tool_call {
        call.name = normalised(&call.name).into_owned();
    }
    let subject = match &request.tool_call {
        Some(call) => shape_of(&call.name).map(|shape| shape.subject(&call.params)),
        None => None,
    };
    let subject = subject.transpose().map(Option::unwrap_or_default).map_err(|error| {
        let layer = fluffy_policy::Layer::Validation;
        Verdict::deny(fluffy_policy::Reason::new(layer, "paths", &error.to_string()))
    });
    Ok(Asked { request, subject, caller: caller(args) })
}

fn caller(args: &ExplainArgs) -> Caller {
    Caller {
        tags: args.tag.iter().cloned().collect(),
        mode: args.mode.clone(),
        workflow_state: args.state.clone(),
        ..Caller::default()
    }
}
