//! From what a model wrote to answers: what can be understood goes to the bench, the rest is refused.
//!
//! **Invariant.** A call whose turn is not whole, whose name no tool can have or whose arguments are not an
//! object never reaches the bench.

use fluffy_base::{Excerpt, Json};
use fluffy_provider::{Call, CallOutcome, CallResult, Turn};

use crate::clip::{Keep, clipped, level};
use crate::conversation::is_name;
use crate::{Bench, ParsedCall};

/// How many calls of one turn are carried out.
pub const MAX_CALLS: usize = 256;

/// How much of one result the model sees: 4,000 tokens.
const MAX_RESULT_BYTES: usize = 12_000;

/// Carries out the calls of a turn. The results together have at most `room` bytes.
pub(crate) fn carry_out(bench: &dyn Bench, turn: &Turn, room: usize) -> Vec<CallResult> {
    let mut parsed = Vec::new();
    let mut results = Vec::new();
    for call in &turn.calls {
        match understand(turn, call, parsed.len()) {
            Ok(call) => parsed.push(call),
            Err(reason) => {
                bench.refused(call, &reason);
                results.push(refusal(call, reason));
            }
        }
    }
    if !parsed.is_empty() {
        results.extend(bench.call(&parsed));
    }
    let level = level(results.iter().map(|result| result.content.len()), room);
    for result in &mut results {
        let room = level.min(MAX_RESULT_BYTES);
        if result.content.len() > room {
            result.content = clipped(&result.content, room, Keep::Ends);
        }
    }
    results
}

fn understand(turn: &Turn, call: &Call, before: usize) -> Result<ParsedCall, String> {
    if !turn.stop.is_whole() {
        return Err("the answer was cut off before it was complete, so none of its calls ran: \
                    write less at a time"
            .to_owned());
    }
    if before >= MAX_CALLS {
        return Err(format!(
            "only {MAX_CALLS} calls are carried out in one turn: make this one again"
        ));
    }
    if !is_name(&call.name) {
        return Err(format!("`{}` is not the name of a tool", Excerpt::new(&call.name, 60)));
    }
    let arguments = arguments(call)?;
    Ok(ParsedCall { id: call.id.clone(), name: call.name.clone(), arguments })
}

/// The arguments of a call, which are an object; none written means none given.
pub(crate) fn arguments(call: &Call) -> Result<Json, String> {
    let text = if call.arguments.trim().is_empty() { "{}" } else { call.arguments.as_str() };
    let arguments = Json::parse(text.as_bytes())
        .map_err(|error| format!("the arguments are not valid JSON: {error}"))?;
    if arguments.as_object().is_none() {
        return Err("the arguments are not a JSON object".to_owned());
    }
    Ok(arguments)
}

fn refusal(call: &Call, content: String) -> CallResult {
    let (call_id, tool) = (call.id.clone(), call.name.clone());
    CallResult { call_id, tool, content, outcome: CallOutcome::Invalid }
}
