//! Conversations of every kind, sound and unsound, in the normal form.

use fluffy_provider::{
    Call, CallOutcome, CallResult, Message, ModelRequest, Place, ReasoningBlock, ToolDefinition,
};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::json;

use crate::recorded::tool;

/// Any request to one of these models, whose reasoning comes from `origin` and is one of these blocks.
pub(crate) fn requests(
    models: &'static [&'static str],
    origin: &'static str,
    blocks: &'static [&'static str],
) -> impl Strategy<Value = ModelRequest> {
    let model = select(models);
    (model, words(), tools(), 16_u64..40_000).prop_flat_map(move |(model, system, tools, limit)| {
        let message = message(format!("{origin}/{model}"), blocks);
        prop::collection::vec(message, 0..8).prop_map(move |messages| ModelRequest {
            model: model.to_owned(),
            system: system.clone(),
            tools: tools.clone(),
            messages: messages.concat(),
            max_output_tokens: limit,
        })
    })
}

/// So many of them, the same each time.
pub(crate) fn some(
    count: usize,
    requests: impl Strategy<Value = ModelRequest>,
) -> Vec<ModelRequest> {
    let mut runner = TestRunner::deterministic();
    (0..count).map(|_| requests.new_tree(&mut runner).unwrap().current()).collect()
}

fn words() -> impl Strategy<Value = String> {
    select(vec!["", " ", "\n\n", "words", "two words \n", "é", "日本語 🌊 "])
        .prop_map(str::to_owned)
}

fn tools() -> impl Strategy<Value = Vec<ToolDefinition>> {
    let object = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "lines": {"type": ["integer", "null"]}},
        "required": ["path"],
        "additionalProperties": false,
    });
    let either = json!({"anyOf": [{"type": "object"}], "properties": {}});
    let all = [
        tool("fs.read", "Read a file", object),
        tool("git.status", "", json!({})),
        tool("mcp/odd name", "Odd", either),
    ];
    (0..=all.len()).prop_map(move |count| all[..count].to_vec())
}

/// One message, or a turn and its results.
fn message(origin: String, blocks: &'static [&'static str]) -> impl Strategy<Value = Vec<Message>> {
    let user = words().prop_map(|text| vec![Message::User { text }]);
    let said = (
        words(),
        prop::collection::vec(call(), 0..4),
        prop::collection::vec(block(origin, blocks), 0..3),
        prop::collection::vec(any::<bool>(), 4),
        any::<bool>(),
    );
    let turn = said.prop_map(|(text, calls, mut reasoning, answered, has_results)| {
        reasoning.sort_by_key(|block| (block.place.calls, block.place.text));
        let results: Vec<_> = calls
            .iter()
            .zip(&answered)
            .filter(|(_, is)| **is)
            .map(|(call, _)| result(call))
            .collect();
        let said = Message::Assistant { text, calls, reasoning };
        if has_results { vec![said, Message::Results { results }] } else { vec![said] }
    });
    prop_oneof![user, turn]
}

fn call() -> impl Strategy<Value = Call> {
    let name = select(vec!["fs.read", "git.status", "mcp/odd name", "never.heard_of"]);
    let arguments = select(vec!["", "{}", r#"{"path": "a", "lines": 3}"#, "[1]", "{broken", "7"]);
    let id = prop_oneof!["[a-z0-9]{8}", "[ -~]{0,12}"];
    (id, name, arguments).prop_map(|(id, name, arguments)| Call {
        id,
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    })
}

fn result(call: &Call) -> CallResult {
    let (content, outcome) = match call.arguments.len() % 3 {
        0 => ("", CallOutcome::Done),
        1 => ("it is so", CallOutcome::Done),
        _ => ("it is not so", CallOutcome::Denied),
    };
    let (call_id, tool) = (call.id.clone(), call.name.clone());
    CallResult { call_id, tool, content: content.to_owned(), outcome }
}

fn block(origin: String, blocks: &'static [&'static str]) -> impl Strategy<Value = ReasoningBlock> {
    let origin = prop_oneof![3 => Just(origin), 1 => Just("openai-chat/other/m".to_owned())];
    (origin, select(blocks), 0_usize..9, 0_usize..5).prop_map(|(origin, data, text, calls)| {
        ReasoningBlock { origin, data: data.to_owned(), place: Place { text, calls } }
    })
}
