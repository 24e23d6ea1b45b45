//! What kernel and clients say to each other: one frame, one message, one JSON object.
//!
//! ```text
//! {"type":"request",  "id":7, "method":"health.ping", "params":{}}
//! {"type":"response", "id":7, "result":{"pong":true}}
//! {"type":"response", "id":7, "error":{"code":"busy","message":"…","retryable":true}}
//! {"type":"event",            "method":"session.event", "params":{}}
//! ```
//!
//! **Invariant.** Whatever the bytes, [`Message::parse`] gives a message or a [`Fault`]: no panic, no deep
//! recursion, no more than [`MAX_VALUES`] values in memory.
//!
//! **Invariant.** `Debug` of a message shows what it is about and nothing of what it carries.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::json::parse_bounded;

/// The version of what is said. A kernel also serves the one before it; there is no version 0.
pub const API_VERSION: u32 = 1;

/// The oldest version that is still served.
pub const OLDEST_API_VERSION: u32 = if API_VERSION > 1 { API_VERSION - 1 } else { 1 };

/// How many values (of any kind, members included) one message may hold. Bounds what a small text can cost in memory.
pub const MAX_VALUES: usize = 100_000;

/// The longest name of a method.
const MAX_METHOD_BYTES: usize = 100;

/// The longest text of a fault; a longer one is cut.
const MAX_FAULT_CHARS: usize = 2_000;

/// The largest id: every JSON number up to it is exact.
const MAX_ID: u64 = (1 << 53) - 1;

/// One frame's content.
#[derive(Clone, PartialEq)]
pub enum Message {
    /// Wants an answer with the same id. Either side may ask; ids are the asker's, up to 2^53 − 1.
    Request {
        /// Names the answer.
        id: u64,
        /// What is wanted.
        method: String,
        /// With what; an object, a list or nothing.
        params: Value,
    },
    /// The answer to a request.
    Response {
        /// The request's.
        id: u64,
        /// What became of it.
        outcome: Result<Value, Fault>,
    },
    /// Told, not asked: nobody answers.
    Event {
        /// What happened.
        method: String,
        /// To what.
        params: Value,
    },
}

impl Message {
    /// Reads the content of a frame.
    pub fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let value = parse_bounded(bytes, MAX_VALUES)
            .map_err(|error| Fault::new(FaultCode::Malformed, &error.to_string()))?;
        let Value::Object(members) = value else {
            return Err(malformed("a message is an object"));
        };
        Members(members).message()
    }

    /// The content of the frame, in one spelling for one message. It is understood by [`Message::parse`] where the values
    /// keep the rules of [`crate::Json`]: no integer beyond 2^53 − 1, not too deep.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Texts and trees of values always have a JSON text; only a writer that fails could fail here.
        serde_json::to_vec(&self.written()).unwrap_or_default()
    }

    /// What it is about: the method of a request or an event.
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Request { method, .. } | Self::Event { method, .. } => Some(method),
            Self::Response { .. } => None,
        }
    }

    fn written(&self) -> Written<'_> {
        match self {
            Self::Request { id, method, params } => {
                let (id, method, params) = (Some(*id), Some(method.as_str()), Some(params));
                Written { id, method, params, ..Written::of("request") }
            }
            Self::Response { id, outcome: Ok(result) } => {
                Written { id: Some(*id), result: Some(result), ..Written::of("response") }
            }
            Self::Response { id, outcome: Err(fault) } => {
                Written { id: Some(*id), error: Some(fault.to_value()), ..Written::of("response") }
            }
            Self::Event { method, params } => {
                Written { method: Some(method), params: Some(params), ..Written::of("event") }
            }
        }
    }
}

/// A message as it is written, without a copy of what it carries.
#[derive(Serialize)]
struct Written<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

impl Written<'_> {
    fn of(r#type: &'static str) -> Self {
        Self { r#type, id: None, method: None, params: None, result: None, error: None }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request { id, method, .. } => write!(f, "Request {id} {method:?}"),
            Self::Response { id, outcome: Ok(_) } => write!(f, "Response {id} ok"),
            Self::Response { id, outcome: Err(fault) } => write!(f, "Response {id} {fault:?}"),
            Self::Event { method, .. } => write!(f, "Event {method:?}"),
        }
    }
}

/// Why something was not done, for programs and people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// For programs.
    pub code: FaultCode,
    /// For people: lower case, no full stop, nothing that a terminal would obey.
    pub message: String,
    /// Whether the same again may succeed.
    pub retryable: bool,
}

impl Fault {
    /// A fault, retryable as its code usually is.
    pub fn new(code: FaultCode, message: &str) -> Self {
        let retryable = code.is_retryable();
        let message = crate::Excerpt::new(message, MAX_FAULT_CHARS).to_string();
        Self { code, message, retryable }
    }

    /// As it stands in a message.
    pub fn to_value(&self) -> Value {
        json!({ "code": self.code.as_str(), "message": self.message, "retryable": self.retryable })
    }

    /// Reads what [`Fault::to_value`] gives.
    pub fn from_value(value: Value) -> Result<Self, Fault> {
        let Value::Object(members) = value else {
            return Err(malformed("`error` is an object"));
        };
        let mut members = Members(members);
        let code = FaultCode::named(&members.text("code")?)?;
        let message = members.text("message")?;
        let retryable = match members.0.remove("retryable") {
            Some(Value::Bool(retryable)) => retryable,
            _ => return Err(malformed("`retryable` is true or false")),
        };
        members.finish()?;
        Ok(Self { retryable, ..Self::new(code, &message) })
    }
}

/// The kinds of faults; on the wire a word with underscores.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FaultCode {
    /// No message: not UTF-8, not JSON, not of the agreed form.
    Malformed,
    /// A frame over the limit.
    TooLarge,
    /// There is no such method.
    UnknownMethod,
    /// The method is not called like this.
    BadParams,
    /// The first message must be `hello`.
    NoHandshake,
    /// The two have no version in common.
    Version,
    /// Another user, or another's token or session.
    NotYours,
    /// Too much is going on.
    Busy,
    /// There is no such thing.
    NotFound,
    /// A rule or a person said no.
    Denied,
    /// The peer does not read what it is sent, or does not finish what it sends.
    TooSlow,
    /// The kernel is ending.
    Stopping,
    /// The fault is the kernel's.
    Internal,
    /// A word of a newer peer's.
    Other(String),
}

/// Every code with its word.
const WORDS: [(FaultCode, &str); 13] = [
    (FaultCode::Malformed, "malformed"),
    (FaultCode::TooLarge, "too_large"),
    (FaultCode::UnknownMethod, "unknown_method"),
    (FaultCode::BadParams, "bad_params"),
    (FaultCode::NoHandshake, "no_handshake"),
    (FaultCode::Version, "version"),
    (FaultCode::NotYours, "not_yours"),
    (FaultCode::Busy, "busy"),
    (FaultCode::NotFound, "not_found"),
    (FaultCode::Denied, "denied"),
    (FaultCode::TooSlow, "too_slow"),
    (FaultCode::Stopping, "stopping"),
    (FaultCode::Internal, "internal"),
];

impl FaultCode {
    /// The word on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::UnknownMethod => "unknown_method",
            Self::BadParams => "bad_params",
            Self::NoHandshake => "no_handshake",
            Self::Version => "version",
            Self::NotYours => "not_yours",
            Self::Busy => "busy",
            Self::NotFound => "not_found",
            Self::Denied => "denied",
            Self::TooSlow => "too_slow",
            Self::Stopping => "stopping",
            Self::Internal => "internal",
            Self::Other(word) => word,
        }
    }

    /// Whether the same again may succeed, by and large.
    fn is_retryable(&self) -> bool {
        matches!(self, Self::Busy | Self::TooSlow | Self::Stopping)
    }

    fn named(word: &str) -> Result<Self, Fault> {
        if let Some((code, _)) = WORDS.iter().find(|(_, known)| *known == word) {
            return Ok(code.clone());
        }
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if (1..=64).contains(&word.len()) && word.chars().all(plain) {
            return Ok(Self::Other(word.to_owned()));
        }
        Err(malformed("`code` is a word of lower case letters"))
    }
}

/// The members of an object that have not been read yet.
struct Members(Map<String, Value>);

impl Members {
    fn message(mut self) -> Result<Message, Fault> {
        let message = match self.text("type")?.as_str() {
            "request" => {
                Message::Request { id: self.id()?, method: self.method()?, params: self.params()? }
            }
            "response" => Message::Response { id: self.id()?, outcome: self.outcome()? },
            "event" => Message::Event { method: self.method()?, params: self.params()? },
            _ => return Err(malformed("`type` is `request`, `response` or `event`")),
        };
        self.finish()?;
        Ok(message)
    }

    fn text(&mut self, name: &str) -> Result<String, Fault> {
        match self.0.remove(name) {
            Some(Value::String(text)) => Ok(text),
            _ => Err(malformed(&format!("`{name}` is a text"))),
        }
    }

    fn id(&mut self) -> Result<u64, Fault> {
        let id = self.0.remove("id").and_then(|id| id.as_u64());
        id.filter(|id| *id <= MAX_ID)
            .ok_or_else(|| malformed("`id` is a number from 0 to 2^53 - 1"))
    }

    fn method(&mut self) -> Result<String, Fault> {
        let method = self.text("method")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if (1..=MAX_METHOD_BYTES).contains(&method.len()) && method.chars().all(plain) {
            Ok(method)
        } else {
            Err(malformed("`method` is a short name of letters, digits, `.`, `_` and `-`"))
        }
    }

    fn params(&mut self) -> Result<Value, Fault> {
        match self.0.remove("params") {
            Some(params @ (Value::Object(_) | Value::Array(_) | Value::Null)) => Ok(params),
            None => Ok(Value::Null),
            Some(_) => Err(malformed("`params` is an object or a list")),
        }
    }

    fn outcome(&mut self) -> Result<Result<Value, Fault>, Fault> {
        match (self.0.remove("result"), self.0.remove("error")) {
            (Some(result), None) => Ok(Ok(result)),
            (None, Some(error)) => Ok(Err(Fault::from_value(error)?)),
            _ => Err(malformed("a response has either `result` or `error`")),
        }
    }

    fn finish(self) -> Result<(), Fault> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => {
                let name = crate::Excerpt::new(name, 40);
                Err(malformed(&format!("`{name}` does not belong here")))
            }
        }
    }
}

fn malformed(problem: &str) -> Fault {
    Fault::new(FaultCode::Malformed, problem)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refusal(text: &str) -> String {
        let fault = Message::parse(text.as_bytes()).unwrap_err();
        assert_eq!(fault.code, FaultCode::Malformed, "{text}");
        fault.message
    }

    fn same(message: &Message) {
        assert_eq!(Message::parse(&message.to_bytes()).as_ref(), Ok(message));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let method = "health.ping".to_owned();
        same(&Message::Request { id: MAX_ID, method: method.clone(), params: json!({ "a": [1] }) });
        same(&Message::Event { method, params: Value::Null });
        same(&Message::Response { id: 0, outcome: Ok(Value::Null) });
        for (code, word) in WORDS {
            assert_eq!(code.as_str(), word);
            same(&Message::Response { id: 1, outcome: Err(Fault::new(code, "no")) });
        }
    }

    #[test]
    fn a_newer_peers_code_stays_readable() {
        let text = br#"{"type":"response","id":1,"error":{"code":"out_of_cheese","message":"m","retryable":true}}"#;
        let Ok(Message::Response { outcome: Err(fault), .. }) = Message::parse(text) else {
            panic!("it is a response");
        };
        assert_eq!((fault.code.as_str(), fault.retryable), ("out_of_cheese", true));
    }

    #[test]
    fn lesson_l18_null_and_everything_else_that_is_no_message_is_refused() {
        for text in ["null", "0", "-1", "[]", "\"request\"", "true", "{}", "", " ", "{", "nul"] {
            refusal(text);
        }
        assert_eq!(refusal("null"), "a message is an object");
    }

    #[test]
    fn wrong_types_and_members_are_refused() {
        let request = |rest: &str| refusal(&format!("{{\"type\":\"request\",{rest}}}"));
        assert!(request(r#""id":-1,"method":"m""#).starts_with("`id`"));
        assert!(request(r#""id":1.5,"method":"m""#).starts_with("`id`"));
        assert!(request(r#""id":"1","method":"m""#).starts_with("`id`"));
        assert!(request(r#""id":1e300,"method":"m""#).starts_with("`id`"));
        assert!(request(r#""id":null,"method":"m""#).starts_with("`id`"));
        assert!(request(r#""id":1,"method":7"#).starts_with("`method`"));
        assert!(request(r#""id":1,"method":"""#).starts_with("`method`"));
        assert!(request(r#""id":1,"method":"a b""#).starts_with("`method`"));
        assert!(request(r#""id":1,"method":"m","params":7"#).starts_with("`params`"));
        assert_eq!(request(r#""id":1,"method":"m","x":7"#), "`x` does not belong here");
        assert_eq!(request(r#""id":1,"method":"m","result":7"#), "`result` does not belong here");
        assert!(request(r#""id":1,"id":1,"method":"m""#).contains("stands twice"));
        assert!(refusal(r#"{"type":"response","id":1}"#).contains("either"));
        assert!(refusal(r#"{"type":"response","id":1,"result":1,"error":1}"#).contains("either"));
        assert!(refusal(r#"{"type":"response","id":1,"error":null}"#).starts_with("`error`"));
        assert!(refusal(r#"{"type":"gossip"}"#).starts_with("`type`"));
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let fault = Message::parse(b"{\"type\":\"\xff\"}").unwrap_err();
        assert!(fault.message.contains("UTF-8"), "{fault}");
    }

    #[test]
    fn ten_thousand_levels_are_refused() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = open.repeat(10_000) + "1" + &close.repeat(10_000);
            assert!(refusal(&deep).contains("nested deeper"));
            let inside = format!("{{\"type\":\"event\",\"method\":\"m\",\"params\":{deep}}}");
            assert!(refusal(&inside).contains("nested deeper"));
        }
    }

    #[test]
    fn a_message_of_too_many_values_is_refused() {
        let list = "0,".repeat(MAX_VALUES) + "0";
        assert!(refusal(&format!("[{list}]")).contains("values"));
        let fits = "0,".repeat(MAX_VALUES / 2) + "0";
        let fits = format!("{{\"type\":\"event\",\"method\":\"m\",\"params\":[{fits}]}}");
        assert!(Message::parse(fits.as_bytes()).is_ok());
    }

    #[test]
    fn nothing_prints_what_a_message_carries() {
        let params = json!({ "key": "hunter2" });
        let request = Message::Request { id: 1, method: "m".to_owned(), params: params.clone() };
        let response = Message::Response { id: 1, outcome: Ok(params.clone()) };
        let event = Message::Event { method: "m".to_owned(), params };
        let shown = format!("{request:?} {response:#?} {event:?}");
        assert_eq!(shown, "Request 1 \"m\" Response 1 ok Event \"m\"");
    }

    #[test]
    fn a_terminal_obeys_nothing_in_a_fault() {
        let fault = Fault::new(FaultCode::Other("x".to_owned()), "\u{1b}[2J");
        assert_eq!(fault.message, "\\u{1b}[2J");
        let name = refusal("{\"type\":\"event\",\"method\":\"m\",\"\\u001b[2J\":1}");
        assert_eq!(name, "`\\u{1b}[2J` does not belong here");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Message::parse(&bytes);
        }

        #[test]
        fn what_is_understood_is_written_and_understood_again(
            id in any::<u64>(), method in "[a-z.]{0,9}", rest in "[\\[\\]{}\",:a-z0-9]{0,40}",
        ) {
            let text = format!("{{\"type\":\"request\",\"id\":{id},\"method\":\"{method}\",\"params\":{rest}}}");
            if let Ok(message) = Message::parse(text.as_bytes()) {
                prop_assert_eq!(Message::parse(&message.to_bytes()), Ok(message));
            }
        }
    }
}
