//! What a rule file is told about a request.
//!
//! **Invariant.** The text is RFC 8785 JSON: the same request always gives the same bytes, which seed
//! the rule's randomness.

use std::fmt::Write as _;

use fluffy_base::Json;

/// The members of `PolicyRequest` in `policy.d.ts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionInput<'a> {
    /// The tool to run, if any.
    pub syscall: Option<&'a str>,
    /// The files the request is about, relative to the project.
    pub paths: Vec<&'a str>,
    /// Who asks.
    pub actor: &'a str,
    /// What the caller is trusted with.
    pub caller_tags: Vec<&'a str>,
    /// What for, in words.
    pub intent: &'a str,
    /// The session's mode, if there is a session.
    pub session_mode: Option<&'a str>,
    /// Where the test-first workflow stands, if there is one.
    pub workflow_state: Option<&'a str>,
    /// The tool's parameters, if a tool is to run.
    pub params: Option<&'a Json>,
    /// The request's id.
    pub request_id: &'a str,
    /// The request's time in milliseconds since the epoch.
    pub ts_ms: i64,
}

impl ExtensionInput<'_> {
    /// The RFC 8785 text. Written by hand in the order of the names: it is made for every rule.
    pub fn canonical(&self) -> String {
        let params = self.params.map_or("null", Json::canonical);
        let mut out = String::with_capacity(300 + params.len());
        push_text(&mut out, "{\"actor\":", Some(self.actor));
        push_list(&mut out, ",\"caller_tags\":", &self.caller_tags);
        push_text(&mut out, ",\"intent\":", Some(self.intent));
        out.push_str(",\"params\":");
        out.push_str(params);
        push_list(&mut out, ",\"paths\":", &self.paths);
        push_text(&mut out, ",\"request_id\":", Some(self.request_id));
        push_text(&mut out, ",\"session_mode\":", self.session_mode);
        push_text(&mut out, ",\"syscall\":", self.syscall);
        // Writing to a `String` does not fail.
        let _written = write!(out, ",\"ts_ms\":{}", self.ts_ms);
        push_text(&mut out, ",\"workflow_state\":", self.workflow_state);
        out.push('}');
        out
    }
}

fn push_text(out: &mut String, key: &str, text: Option<&str>) {
    out.push_str(key);
    match text {
        None => out.push_str("null"),
        Some(text) => push_quoted(out, text),
    }
}

fn push_list(out: &mut String, key: &str, texts: &[&str]) {
    out.push_str(key);
    out.push('[');
    for (place, text) in texts.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        push_quoted(out, text);
    }
    out.push(']');
}

/// The text as a JSON string: what JSON demands is escaped, in its shortest form, and nothing else.
fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' => {
                let _written = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_text_is_what_the_general_encoder_would_write(
            words in prop::collection::vec(any::<String>(), 6), ts_ms in 0..=(1_i64 << 53) - 1,
        ) {
            let params = Json::new(serde_json::json!({ "z": words[0], "a": [1.5, null] })).unwrap();
            let input = ExtensionInput {
                syscall: Some(&words[1]),
                paths: vec![&words[2], &words[3]],
                actor: &words[4],
                caller_tags: vec![],
                intent: &words[5],
                session_mode: None,
                workflow_state: Some("code_writing"),
                params: Some(&params),
                request_id: &words[0],
                ts_ms,
            };
            let text = input.canonical();
            let parsed = Json::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(parsed.canonical(), text);
        }
    }
}
