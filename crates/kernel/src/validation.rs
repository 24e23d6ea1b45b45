//! Structure and ambiguity: is this a request that can be judged at all?

use std::borrow::Cow;

use fluffy_base::{KernelRequest, is_blank, masked, normalised};
use fluffy_policy::{Facts, Layer, Reason, Rule, Verdict, canonical_call};

use crate::Ambiguity;

/// The longest id, actor or tool name, in characters.
pub(crate) const MAX_NAME: usize = 256;

/// The request as it is judged, run and recorded: names in Unicode's composed form, known secrets in
/// the intent masked, because an entry's fields can never be taken back. The id is the sender's own
/// and stays as it is.
pub(crate) fn normalise(mut request: KernelRequest) -> KernelRequest {
    replace(&mut request.actor, normalised);
    replace(&mut request.intent, normalised);
    replace(&mut request.intent, masked);
    if let Some(call) = &mut request.tool_call {
        replace(&mut call.name, normalised);
        replace(&mut call.name, |name| match canonical_call(name) {
            same if same == name => Cow::Borrowed(name),
            other => Cow::Owned(other.to_owned()),
        });
    }
    request
}

/// Changes a text in place; one that is as it should be is not copied.
fn replace(text: &mut String, change: impl Fn(&str) -> Cow<'_, str>) {
    if let Cow::Owned(changed) = change(text) {
        *text = changed;
    }
}

/// The parts that every request has.
pub(crate) struct Structure;

impl Rule for Structure {
    fn name(&self) -> &str {
        "structure"
    }

    fn layer(&self) -> Layer {
        Layer::Validation
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        let request = facts.request;
        let names = [("request_id", &request.request_id), ("actor", &request.actor)];
        let mut problems = Vec::new();
        for (field, value) in names {
            if is_blank(value) {
                problems.push(format!("{field} is required"));
            } else if value.chars().nth(MAX_NAME).is_some() {
                problems.push(format!("{field} has more than {MAX_NAME} characters"));
            } else if value.chars().any(char::is_control) {
                problems.push(format!("{field} has control characters"));
            }
        }
        if request.ts_ms < 0 {
            problems.push("ts_ms must be non-negative".to_owned());
        }
        denial(self, problems)
    }
}

impl Rule for Ambiguity {
    fn name(&self) -> &str {
        "ambiguity"
    }

    fn layer(&self) -> Layer {
        Layer::Ambiguity
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        let mut problems = Vec::new();
        let spoken_for = self.blank_intent_with_tool && facts.tool().is_some();
        if is_blank(facts.intent()) && !spoken_for {
            problems.push("Empty intent is ambiguous".to_owned());
        }
        if facts.intent().chars().nth(self.max_intent_length).is_some() {
            let max = self.max_intent_length;
            problems.push(format!("Intent exceeds maximum length of {max}"));
        }
        if facts.tool().is_some_and(is_blank) {
            problems.push("Tool call with an empty name is ambiguous".to_owned());
        }
        let not_object = |json: &fluffy_base::Json| json.as_object().is_none();
        if facts.tool_params().is_some_and(not_object) {
            problems.push("Tool params must be an object".to_owned());
        }
        if facts.params().is_some_and(not_object) {
            problems.push("Params must be an object".to_owned());
        }
        denial(self, problems)
    }
}

fn denial(rule: &dyn Rule, problems: Vec<String>) -> Verdict {
    let reason = |text: String| Verdict::deny(Reason::new(rule.layer(), rule.name(), &text));
    problems.into_iter().map(reason).fold(Verdict::Pass, Verdict::join)
}
