//! What a vendor's server looks at in every request, by its own rules and none of the adapters'.

use std::collections::BTreeSet;

use fluffy_testkit::server::Asked;
use serde_json::{Value, json};

use super::script::Line;
use super::vendor::Vendor;

/// What the person asked for.
pub(crate) const TASK: &str = "add a function that doubles";

/// Headers that a request may have beside the one with the key.
const HEADERS: [&str; 8] = [
    "accept",
    "accept-encoding",
    "anthropic-version",
    "content-length",
    "content-type",
    "host",
    "user-agent",
    "x-team",
];

/// What stands in a request, one after the other.
#[derive(Debug)]
enum Told {
    Person(String),
    Turn(Vec<Value>),
    /// Which call, and what came of it.
    Results(Vec<(Value, String)>),
}

/// A request as its vendor sees it.
pub(crate) struct Hearing<'a> {
    pub(crate) vendor: Vendor,
    pub(crate) key: &'a str,
    pub(crate) lines: &'a [Line],
}

/// Why a request is not as it should be.
pub(crate) type Wrong = String;

impl Hearing<'_> {
    /// The turn that is asked for. `foreign` tells, by the number of turns up to now, how many were another's.
    pub(crate) fn turn(
        &self,
        asked: &Asked,
        foreign: impl FnOnce(usize) -> usize,
    ) -> Result<usize, Wrong> {
        self.head(asked)?;
        let text = std::str::from_utf8(&asked.body).map_err(|error| error.to_string())?;
        let body: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        for part in ["image_url", "input_image", "inlineData", "\"image\"", self.key] {
            same(text.contains(part), false, part)?;
        }
        self.body(&body)?;
        let told = self.conversation(&body);
        let turns = told.iter().filter(|told| matches!(told, Told::Turn(_))).count();
        let foreign = foreign(turns);
        let own = self.vendor.protocol();
        let others = text.matches("SEAL+").count();
        same(text.matches(&format!("SEAL+{own}/")).count(), others, "another's seals")?;
        self.walk(&told, foreign)?;
        if turns >= self.lines.len() {
            return Err(format!("turn {turns} was never to be asked for"));
        }
        Ok(turns)
    }

    fn head(&self, asked: &Asked) -> Result<(), Wrong> {
        let mut lines = asked.head.lines();
        let line = format!("POST {} HTTP/1.1", self.vendor.path());
        same(lines.next(), Some(line.as_str()), "the line")?;
        let (key, before) = self.vendor.key_header();
        let mut names = BTreeSet::new();
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            let name = name.to_ascii_lowercase();
            let is_key = name == key;
            same(is_key || HEADERS.contains(&name.as_str()), true, &name)?;
            same(value.contains(self.key), is_key, &name)?;
            same(names.insert(name.clone()), true, &name)?;
        }
        same(asked.header(key), Some(format!("{before}{}", self.key).as_str()), key)?;
        same(asked.header("content-type"), Some("application/json"), "content-type")?;
        same(asked.header("x-team"), Some("tools"), "the user's own header")?;
        let version = (self.vendor == Vendor::Messages).then_some("2023-06-01");
        same(asked.header("anthropic-version"), version, "anthropic-version")
    }

    /// All but the conversation.
    fn body(&self, body: &Value) -> Result<(), Wrong> {
        let v = self.vendor;
        if v != Vendor::Gemini {
            same(&body["model"], &json!(v.model()), "model")?;
            same(&body["stream"], &json!(true), "stream")?;
        }
        let system = match v {
            Vendor::Chat => named(&body["messages"][0], "developer"),
            Vendor::Compatible => named(&body["messages"][0], "system"),
            Vendor::Responses => &body["instructions"],
            Vendor::Messages => &body["system"][0]["text"],
            Vendor::Gemini => &body["systemInstruction"]["parts"][0]["text"],
        };
        same(system.as_str().unwrap_or_default().contains("You are fluffy"), true, "system")?;
        let most = match v {
            Vendor::Chat => &body["max_completion_tokens"],
            Vendor::Compatible | Vendor::Messages => &body["max_tokens"],
            Vendor::Responses => &body["max_output_tokens"],
            Vendor::Gemini => &body["generationConfig"]["maxOutputTokens"],
        };
        same(most.as_u64().unwrap_or_default() > 0, true, "the longest answer")?;
        match v {
            Vendor::Chat | Vendor::Compatible => {
                let wanted = json!({"include_usage": true});
                same(&body["stream_options"], &wanted, "stream_options")?;
            }
            Vendor::Responses => {
                same(&body["store"], &json!(false), "store")?;
                same(&body["include"], &json!(["reasoning.encrypted_content"]), "include")?;
            }
            Vendor::Messages | Vendor::Gemini => {}
        }
        self.tools(body)
    }

    fn tools(&self, body: &Value) -> Result<(), Wrong> {
        let tools = match self.vendor {
            Vendor::Gemini => &body["tools"][0]["functionDeclarations"],
            _ => &body["tools"],
        };
        let mut names = BTreeSet::new();
        for tool in tools.as_array().ok_or("no tools")? {
            let (tool, schema) = match self.vendor {
                Vendor::Chat | Vendor::Compatible => (&tool["function"], "parameters"),
                Vendor::Responses => (tool, "parameters"),
                Vendor::Messages => (tool, "input_schema"),
                Vendor::Gemini => (tool, "parametersJsonSchema"),
            };
            let name = tool["name"].as_str().ok_or("a tool without a name")?;
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            same(name.len() <= 64 && name.chars().all(plain), true, name)?;
            same(&tool[schema]["type"], &json!("object"), name)?;
            same(names.insert(name), true, name)?;
        }
        for (name, _) in self.lines.iter().flat_map(|line| &line.calls) {
            same(names.contains(name), true, name)?;
        }
        Ok(())
    }

    fn conversation(&self, body: &Value) -> Vec<Told> {
        let mut told = Vec::new();
        match self.vendor {
            Vendor::Chat | Vendor::Compatible => {
                list(&body["messages"]).iter().skip(1).for_each(|message| chat(&mut told, message));
            }
            Vendor::Responses => {
                list(&body["input"]).iter().for_each(|item| response(&mut told, item));
            }
            Vendor::Messages => {
                list(&body["messages"]).iter().for_each(|message| messages(&mut told, message));
            }
            Vendor::Gemini => {
                list(&body["contents"]).iter().for_each(|content| gemini(&mut told, content));
            }
        }
        told
    }

    /// Every turn is as it was said, and every call in it is answered once and in its order.
    fn walk(&self, told: &[Told], foreign: usize) -> Result<(), Wrong> {
        let Some(Told::Person(task)) = told.first() else {
            return Err("the person does not speak first".to_owned());
        };
        same(task.contains(TASK), true, "the task")?;
        let mut number = 0;
        let mut rest = told.iter().peekable();
        while let Some(one) = rest.next() {
            let said = match one {
                Told::Person(_) => continue,
                Told::Results(_) => return Err(format!("results of nothing: {one:?}")),
                Told::Turn(said) => said,
            };
            let line = self.lines.get(number).ok_or("more turns than were said")?;
            if number < foreign {
                self.foreign(said, line)?;
            } else {
                let returned = plain(self.vendor, &self.vendor.returned(number, line));
                same(&plain(self.vendor, said), &returned, &format!("turn {number}"))?;
            }
            let Some(Told::Results(results)) = rest.next() else {
                return Err(format!("turn {number} is not answered"));
            };
            let ids: Vec<&Value> = results.iter().map(|(id, _)| id).collect();
            let calls = calls(self.vendor, said);
            same(&ids, &calls.iter().map(|(id, _, _)| id).collect(), "the ids of results")?;
            if let Some((_, empty)) = results.iter().find(|(_, content)| content.trim().is_empty())
            {
                return Err(format!("turn {number}: a result says nothing: {empty:?}"));
            }
            if number == 0 {
                same(results[0].1.contains("add"), true, "the file that was read")?;
            }
            number += 1;
        }
        Ok(())
    }

    /// A turn that another vendor's model said: its words and calls, and nothing that only that one understands.
    fn foreign(&self, said: &[Value], line: &Line) -> Result<(), Wrong> {
        let calls = calls(self.vendor, said);
        let made: Vec<(&str, &Value)> =
            calls.iter().map(|(_, name, arguments)| (name.as_str(), arguments)).collect();
        let asked: Vec<(&str, &Value)> =
            line.calls.iter().map(|(name, arguments)| (*name, arguments)).collect();
        same(&made, &asked, "another's calls")?;
        let ids: BTreeSet<String> = calls.iter().map(|(id, _, _)| id.to_string()).collect();
        let has_ids = self.vendor != Vendor::Gemini;
        same(!has_ids || ids.len() == calls.len(), true, "ids that differ")?;
        let text = json!(said).to_string();
        same(text.contains(&line.thought), false, "another's thoughts")?;
        let words = json!(line.text).to_string();
        let words = words.trim_matches('"');
        same(text.contains(words), true, "another's words")
    }
}

fn named<'a>(message: &'a Value, role: &str) -> &'a Value {
    if message["role"] == role { &message["content"] } else { &Value::Null }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| text(&part["text"])).collect(),
        other => other.to_string(),
    }
}

fn result(told: &mut Vec<Told>, id: &Value, content: String) {
    match told.last_mut() {
        Some(Told::Results(results)) => results.push((id.clone(), content)),
        _ => told.push(Told::Results(vec![(id.clone(), content)])),
    }
}

fn chat(told: &mut Vec<Told>, message: &Value) {
    match message["role"].as_str() {
        Some("user") => told.push(Told::Person(text(&message["content"]))),
        Some("tool") => result(told, &message["tool_call_id"], text(&message["content"])),
        _ => told.push(Told::Turn(vec![message.clone()])),
    }
}

fn response(told: &mut Vec<Told>, item: &Value) {
    match item["type"].as_str() {
        Some("message") if item["role"] == "user" => {
            told.push(Told::Person(text(&item["content"])));
        }
        Some("function_call_output") => result(told, &item["call_id"], text(&item["output"])),
        _ => match told.last_mut() {
            Some(Told::Turn(items)) => items.push(item.clone()),
            _ => told.push(Told::Turn(vec![item.clone()])),
        },
    }
}

fn messages(told: &mut Vec<Told>, message: &Value) {
    if message["role"] == "assistant" {
        return told.push(Told::Turn(list(&message["content"]).to_vec()));
    }
    for block in list(&message["content"]) {
        match block["type"].as_str() {
            Some("tool_result") => result(told, &block["tool_use_id"], text(&block["content"])),
            _ => told.push(Told::Person(text(&block["text"]))),
        }
    }
}

fn gemini(told: &mut Vec<Told>, content: &Value) {
    if content["role"] == "model" {
        return told.push(Told::Turn(list(&content["parts"]).to_vec()));
    }
    for part in list(&content["parts"]) {
        match &part["functionResponse"] {
            Value::Null => told.push(Told::Person(text(&part["text"]))),
            response => {
                let of = json!([response["name"], response["id"]]);
                let said = &response["response"];
                let said = if said["error"].is_null() { &said["output"] } else { &said["error"] };
                result(told, &of, text(said));
            }
        }
    }
}

/// The calls of a turn: the id as results have it, the name, the arguments.
fn calls(vendor: Vendor, said: &[Value]) -> Vec<(Value, String, Value)> {
    let parsed = |arguments: &Value| serde_json::from_str(arguments.as_str().unwrap()).unwrap();
    let calls = said.iter().flat_map(|item| match vendor {
        Vendor::Chat | Vendor::Compatible => list(&item["tool_calls"]).to_vec(),
        _ => vec![item.clone()],
    });
    let calls = calls.filter_map(|call| match vendor {
        Vendor::Chat | Vendor::Compatible => {
            let function = &call["function"];
            Some((call["id"].clone(), text(&function["name"]), parsed(&function["arguments"])))
        }
        Vendor::Responses => (call["type"] == "function_call")
            .then(|| (call["call_id"].clone(), text(&call["name"]), parsed(&call["arguments"]))),
        Vendor::Messages => (call["type"] == "tool_use")
            .then(|| (call["id"].clone(), text(&call["name"]), call["input"].clone())),
        Vendor::Gemini => call.get("functionCall").map(|call| {
            (json!([call["name"], call["id"]]), text(&call["name"]), call["args"].clone())
        }),
    });
    calls.collect()
}

/// A turn without what may be said in more than one way.
fn plain(vendor: Vendor, said: &[Value]) -> Vec<Value> {
    let mut plain: Vec<Value> = Vec::new();
    for item in said {
        let mut item = item.clone();
        if let Some(members) = item.as_object_mut() {
            members.remove("cache_control");
            if vendor == Vendor::Responses && members["type"] == "function_call" {
                members.remove("status");
            }
            members.retain(|_, member| !member.is_null());
        }
        let is_text = |item: &Value| {
            vendor == Vendor::Gemini
                && item["text"].is_string()
                && item["thoughtSignature"].is_null()
        };
        match plain.last_mut() {
            Some(last) if is_text(last) && is_text(&item) => {
                last["text"] = json!(text(&last["text"]) + &text(&item["text"]));
            }
            _ => plain.push(item),
        }
    }
    plain
}

fn same<T: PartialEq + std::fmt::Debug>(found: T, expected: T, what: &str) -> Result<(), Wrong> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}:\n found    {found:?}\n expected {expected:?}"))
}
