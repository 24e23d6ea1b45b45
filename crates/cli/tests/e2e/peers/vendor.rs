//! How five vendors say a turn, and how they want to hear it again. Nothing here uses the adapters: it is what the
//! vendors' own documents say.

use serde_json::{Map, Value, json};

use super::script::Line;

/// Whose words are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vendor {
    Chat,
    Compatible,
    Responses,
    Messages,
    Gemini,
}

impl Vendor {
    pub(crate) const ALL: [Self; 5] =
        [Self::Chat, Self::Compatible, Self::Responses, Self::Messages, Self::Gemini];

    /// What the settings call the protocol.
    pub(crate) fn protocol(self) -> &'static str {
        match self {
            Self::Chat => "openai-chat",
            Self::Compatible => "openai-compatible",
            Self::Responses => "openai-responses",
            Self::Messages => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    pub(crate) fn model(self) -> &'static str {
        match self {
            Self::Chat => "gpt-peer",
            Self::Compatible => "org/peer:7b",
            Self::Responses => "o-peer",
            Self::Messages => "claude-peer",
            Self::Gemini => "gemini-3-peer",
        }
    }

    /// What stands behind host and port in the settings.
    pub(crate) fn base(self) -> &'static str {
        match self {
            Self::Chat | Self::Compatible | Self::Responses => "/v1",
            Self::Messages | Self::Gemini => "",
        }
    }

    /// Where turns are asked for.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Chat | Self::Compatible => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
            Self::Gemini => "/v1beta/models/gemini-3-peer:streamGenerateContent?alt=sse",
        }
    }

    /// The header with the key, and what stands before the key in it.
    pub(crate) fn key_header(self) -> (&'static str, &'static str) {
        match self {
            Self::Chat | Self::Compatible | Self::Responses => ("authorization", "Bearer "),
            Self::Messages => ("x-api-key", ""),
            Self::Gemini => ("x-goog-api-key", ""),
        }
    }

    /// The id that the vendor gives to a call. Gemini gives none now and then.
    pub(crate) fn id(self, turn: usize, call: usize) -> Option<String> {
        match self {
            Self::Chat => Some(format!("call_Zq{turn}x{call}")),
            Self::Compatible => Some(format!("chatcmpl-tool-{turn:08x}{call:024x}")),
            Self::Responses => Some(format!("call_r{turn}_{call}")),
            Self::Messages => Some(format!("toolu_01{turn}{call}")),
            Self::Gemini => turn.is_multiple_of(2).then(|| format!("fc-{turn}-{call}")),
        }
    }

    /// What seals the thoughts of a turn. Nobody but the vendor can have it.
    pub(crate) fn seal(self, turn: usize) -> Option<String> {
        (self != Self::Chat).then(|| format!("SEAL+{}/{turn}==", self.protocol()))
    }

    /// The turn as the bytes of its stream.
    pub(crate) fn stream(self, turn: usize, line: &Line) -> Vec<u8> {
        let (events, ends) = match self {
            Self::Chat | Self::Compatible => (self.chat(turn, line), "data: [DONE]\n\n"),
            Self::Responses => (responses(turn, line), ""),
            Self::Messages => (messages(turn, line), ""),
            Self::Gemini => (gemini(turn, line), ""),
        };
        let named = matches!(self, Self::Responses | Self::Messages);
        let mut text = ": welcome\n\n".to_owned();
        for event in &events {
            if named {
                text += &format!("event: {}\n", event["type"].as_str().unwrap());
            }
            text += &format!("data: {event}\n\n");
        }
        text += ends;
        // Google ends its lines so.
        let text = if self == Self::Gemini { text.replace('\n', "\r\n") } else { text };
        text.into_bytes()
    }

    fn chat(self, turn: usize, line: &Line) -> Vec<Value> {
        let chunk = |delta: Value, finish: Value| {
            json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": self.model(),
                "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}], "usage": null})
        };
        let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
        if self == Self::Compatible {
            let thoughts = pieces(&self.sealed_thought(turn, line), 5);
            events.extend(
                thoughts.map(|piece| chunk(json!({"reasoning_content": piece}), Value::Null)),
            );
        }
        events.extend(
            pieces(&line.text, 3).map(|piece| chunk(json!({"content": piece}), Value::Null)),
        );
        for (index, (name, arguments)) in line.calls.iter().enumerate() {
            let begun = json!({"index": index, "id": self.id(turn, index), "type": "function",
                "function": {"name": name, "arguments": ""}});
            events.push(chunk(json!({"tool_calls": [begun]}), Value::Null));
            events.extend(pieces(&arguments.to_string(), 9).map(|piece| {
                let more = json!({"index": index, "function": {"arguments": piece}});
                chunk(json!({"tool_calls": [more]}), Value::Null)
            }));
        }
        events.push(chunk(json!({}), json!("tool_calls")));
        let used = line.used;
        let mut last = chunk(json!({}), Value::Null);
        last["choices"] = json!([]);
        last["usage"] = json!({"prompt_tokens": used.input, "completion_tokens": used.output,
            "total_tokens": used.input + used.output,
            "prompt_tokens_details": {"cached_tokens": used.cached},
            "completion_tokens_details": {"reasoning_tokens": used.thoughts}});
        events.push(last);
        events
    }

    /// Thoughts that are their own seal: the protocol has none, and wants them back as they were.
    fn sealed_thought(self, turn: usize, line: &Line) -> String {
        format!("{} {}", line.thought, self.seal(turn).unwrap())
    }

    /// What the vendor wants to hear again of its own turn, in its order.
    pub(crate) fn returned(self, turn: usize, line: &Line) -> Vec<Value> {
        match self {
            Self::Chat | Self::Compatible => {
                let mut message = Map::new();
                message.insert("role".to_owned(), json!("assistant"));
                if self == Self::Compatible {
                    let thought = json!(self.sealed_thought(turn, line));
                    message.insert("reasoning_content".to_owned(), thought);
                }
                if !line.text.is_empty() {
                    message.insert("content".to_owned(), json!(line.text));
                }
                let calls = line.calls.iter().enumerate().map(|(index, (name, arguments))| {
                    json!({"id": self.id(turn, index), "type": "function",
                        "function": {"name": name, "arguments": arguments.to_string()}})
                });
                message.insert("tool_calls".to_owned(), calls.collect());
                vec![Value::Object(message)]
            }
            Self::Responses => items(turn, line),
            Self::Messages => blocks(turn, line),
            Self::Gemini => parts(turn, line, false),
        }
    }
}

/// A text in pieces of so many characters; none of nothing.
fn pieces(text: &str, count: usize) -> std::vec::IntoIter<String> {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> =
        characters.chunks(count).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}

/// A turn as the items of a response.
fn items(turn: usize, line: &Line) -> Vec<Value> {
    let vendor = Vendor::Responses;
    let mut items = vec![json!({"id": format!("rs_{turn}"), "type": "reasoning",
        "encrypted_content": vendor.seal(turn),
        "summary": [{"type": "summary_text", "text": line.thought}]})];
    if !line.text.is_empty() {
        items.push(json!({"id": format!("msg_{turn}"), "type": "message", "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": line.text, "annotations": []}]}));
    }
    for (index, (name, arguments)) in line.calls.iter().enumerate() {
        items.push(json!({"id": format!("fc_{turn}_{index}"), "type": "function_call",
            "call_id": vendor.id(turn, index), "name": name, "arguments": arguments.to_string()}));
    }
    items
}

fn responses(turn: usize, line: &Line) -> Vec<Value> {
    let mut events = Vec::new();
    let mut say = |kind: &str, mut event: Value| {
        event["type"] = json!(kind);
        event["sequence_number"] = json!(events.len());
        events.push(event);
    };
    let response = |status: &str, output: Value| {
        json!({"response": {"id": "resp_1", "object": "response", "status": status, "error": null,
            "incomplete_details": null, "model": Vendor::Responses.model(), "output": output, "usage": null}})
    };
    say("response.created", response("in_progress", json!([])));
    say("response.in_progress", response("in_progress", json!([])));
    let items = items(turn, line);
    for (index, item) in items.iter().enumerate() {
        let at = |more: Value| {
            let mut event = more;
            event["item_id"] = item["id"].clone();
            event["output_index"] = json!(index);
            event
        };
        let mut begun = item.clone();
        let kind = item["type"].as_str().unwrap();
        match kind {
            "reasoning" => {
                begun["summary"] = json!([]);
                begun["encrypted_content"] = json!("not this one yet");
            }
            "message" => {
                begun["content"] = json!([]);
                begun["status"] = json!("in_progress");
            }
            _ => {
                begun["arguments"] = json!("");
                begun["status"] = json!("in_progress");
            }
        }
        say("response.output_item.added", json!({"output_index": index, "item": begun}));
        match kind {
            "reasoning" => {
                let part = json!({"type": "summary_text", "text": ""});
                say(
                    "response.reasoning_summary_part.added",
                    at(json!({"summary_index": 0, "part": part})),
                );
                for piece in pieces(&line.thought, 6) {
                    say(
                        "response.reasoning_summary_text.delta",
                        at(json!({"summary_index": 0, "delta": piece})),
                    );
                }
                say(
                    "response.reasoning_summary_text.done",
                    at(json!({"summary_index": 0, "text": line.thought})),
                );
            }
            "message" => {
                let part = json!({"type": "output_text", "text": "", "annotations": []});
                say("response.content_part.added", at(json!({"content_index": 0, "part": part})));
                for piece in pieces(&line.text, 4) {
                    say(
                        "response.output_text.delta",
                        at(json!({"content_index": 0, "delta": piece, "logprobs": []})),
                    );
                }
                say(
                    "response.output_text.done",
                    at(json!({"content_index": 0, "text": line.text})),
                );
                say(
                    "response.content_part.done",
                    at(json!({"content_index": 0, "part": item["content"][0]})),
                );
            }
            _ => {
                let arguments = item["arguments"].as_str().unwrap();
                for piece in pieces(arguments, 11) {
                    say(
                        "response.function_call_arguments.delta",
                        at(json!({"delta": piece, "obfuscation": "xY"})),
                    );
                }
                say("response.function_call_arguments.done", at(json!({"arguments": arguments})));
            }
        }
        let mut done = item.clone();
        if kind == "function_call" {
            done["status"] = json!("completed");
        }
        say("response.output_item.done", json!({"output_index": index, "item": done}));
    }
    let mut last = response("completed", json!(items));
    let used = line.used;
    last["response"]["usage"] = json!({"input_tokens": used.input,
        "input_tokens_details": {"cached_tokens": used.cached}, "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": used.thoughts},
        "total_tokens": used.input + used.output});
    say("response.completed", last);
    events
}

/// A turn as the blocks of a message: each second one has thoughts that nobody may read.
fn blocks(turn: usize, line: &Line) -> Vec<Value> {
    let seal = Vendor::Messages.seal(turn);
    let mut blocks = vec![json!({"type": "thinking", "thinking": line.thought, "signature": seal})];
    if !turn.is_multiple_of(2) {
        let data = format!("{}hidden", seal.unwrap());
        blocks.push(json!({"type": "redacted_thinking", "data": data}));
    }
    if !line.text.is_empty() {
        blocks.push(json!({"type": "text", "text": line.text}));
    }
    for (index, (name, input)) in line.calls.iter().enumerate() {
        let id = Vendor::Messages.id(turn, index);
        blocks.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
    }
    blocks
}

fn messages(turn: usize, line: &Line) -> Vec<Value> {
    let used = line.used;
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message",
        "role": "assistant", "model": Vendor::Messages.model(), "content": [], "stop_reason": null,
        "stop_sequence": null, "usage": {"input_tokens": used.input - used.cached,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": used.cached, "output_tokens": 1}}}),
    ];
    for (index, block) in blocks(turn, line).into_iter().enumerate() {
        let delta =
            |delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
        let mut begun = block.clone();
        let mut deltas = Vec::new();
        match block["type"].as_str().unwrap() {
            "thinking" => {
                begun["thinking"] = json!("");
                begun["signature"] = json!("");
                let pieces = pieces(&text("thinking"), 7);
                deltas.extend(
                    pieces.map(|piece| json!({"type": "thinking_delta", "thinking": piece})),
                );
                deltas.push(json!({"type": "signature_delta", "signature": text("signature")}));
            }
            "text" => {
                begun["text"] = json!("");
                let pieces = pieces(&text("text"), 2);
                deltas.extend(pieces.map(|piece| json!({"type": "text_delta", "text": piece})));
            }
            "tool_use" => {
                begun["input"] = json!({});
                deltas.push(json!({"type": "input_json_delta", "partial_json": ""}));
                let input = block["input"].to_string();
                // Without arguments nothing more comes.
                let pieces = pieces(if input == "{}" { "" } else { &input }, 10);
                deltas.extend(
                    pieces.map(|piece| json!({"type": "input_json_delta", "partial_json": piece})),
                );
            }
            _ => {}
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begun}));
        events.push(json!({"type": "ping"}));
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
        "usage": {"output_tokens": used.output}}),
    );
    events.push(json!({"type": "message_stop"}));
    events
}

/// A turn as the parts of a content; the first call of it is signed.
fn parts(turn: usize, line: &Line, with_thoughts: bool) -> Vec<Value> {
    let mut parts = Vec::new();
    if with_thoughts {
        parts.push(json!({"text": line.thought, "thought": true}));
    }
    if !line.text.is_empty() {
        parts.push(json!({"text": line.text}));
    }
    for (index, (name, args)) in line.calls.iter().enumerate() {
        let mut call = json!({"name": name, "args": args});
        if let Some(id) = Vendor::Gemini.id(turn, index) {
            call["id"] = json!(id);
        }
        let mut part = json!({"functionCall": call});
        if index == 0 {
            part["thoughtSignature"] = json!(Vendor::Gemini.seal(turn));
        }
        parts.push(part);
    }
    parts
}

fn gemini(turn: usize, line: &Line) -> Vec<Value> {
    let used = line.used;
    let chunk = |parts: Value| {
        json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}],
            "usageMetadata": {"promptTokenCount": used.input + 3, "totalTokenCount": used.input + 3},
            "modelVersion": Vendor::Gemini.model(), "responseId": "r"})
    };
    let mut events = Vec::new();
    for part in parts(turn, line, true) {
        match part["text"].as_str() {
            None => events.push(chunk(json!([part]))),
            Some(text) => events.extend(pieces(text, 8).map(|piece| {
                let mut part = part.clone();
                part["text"] = json!(piece);
                chunk(json!([part]))
            })),
        }
    }
    let mut last = chunk(json!([{"text": ""}]));
    last["candidates"][0]["finishReason"] = json!("STOP");
    last["usageMetadata"] = json!({"promptTokenCount": used.input, "cachedContentTokenCount": used.cached,
        "candidatesTokenCount": used.output - used.thoughts, "thoughtsTokenCount": used.thoughts,
        "totalTokenCount": used.input + used.output});
    events.push(last);
    events
}
