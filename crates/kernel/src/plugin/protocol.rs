//! What the kernel and a plugin say to each other: the messages of [`fluffy_base::Message`], one a frame.
//!
//! ```text
//! plugin ► {"type":"request","id":1,"method":"handshake","params":{"plugin_name":…,"plugin_version":…,"syscall_api_version":1}}
//! kernel ► {"type":"response","id":1,"result":{"kernel_version":…,"supported_api_versions":[1,1],"negotiated_api_version":1,…}}
//! kernel ► {"type":"request","id":1,"method":"tool.call","params":{"tool":…,"arguments":{…},"session_mode":…}}
//! plugin ► {"type":"response","id":1,"result":{…}}            or "error":{"code":…,"message":…,"retryable":…}
//! ```
//!
//! **Invariant.** What a plugin says is a stranger's: bounded, strict JSON of one form, the answer to what was asked, or
//! nothing.

use fluffy_base::{Excerpt, Fault, FaultCode, Message, encode_frame};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Manifest;

/// The version of what is said between the kernel and plugins; the one before it is served as well. There is no version 0.
pub const PLUGIN_API: u32 = 1;

/// The oldest version that is still served.
pub const PLUGIN_API_OLDEST: u32 = oldest(PLUGIN_API);

/// The largest frame, either way.
pub(super) const MAX_FRAME: usize = 4 << 20;

/// The version before this one, if there is one.
const fn oldest(current: u32) -> u32 {
    if current > 1 { current - 1 } else { 1 }
}

/// What a plugin says first.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    plugin_name: String,
    plugin_version: String,
    syscall_api_version: u32,
}

/// A handshake, answered.
pub(super) struct Handshake {
    /// The request's number.
    pub(super) id: u64,
    /// The version that both speak, or why it is refused.
    pub(super) agreed: Result<u32, Fault>,
}

/// Reads the first message of the plugin with this manifest. The error says why it is none.
pub(super) fn handshake(payload: &[u8], manifest: &Manifest) -> Result<Handshake, String> {
    let message = Message::parse(payload).map_err(|fault| fault.message)?;
    let Message::Request { id, method, params } = message else {
        return Err("its first message is no request".to_owned());
    };
    if method != "handshake" {
        let shown = Excerpt::new(&method, 60);
        return Err(format!("its first message is `{shown}` and not `handshake`"));
    }
    let hello: Hello = serde_json::from_value(params).map_err(|error| {
        format!("its handshake cannot be read: {}", Excerpt::new(&error.to_string(), 200))
    })?;
    Ok(Handshake { id, agreed: hello.agreed(manifest, PLUGIN_API) })
}

impl Hello {
    fn agreed(&self, manifest: &Manifest, current: u32) -> Result<u32, Fault> {
        if self.plugin_name != manifest.name.as_str() || self.plugin_version != manifest.version {
            let shown = format!("{} {}", self.plugin_name, self.plugin_version);
            let text = format!(
                "it calls itself `{}`, and what was installed is `{} {}`",
                Excerpt::new(&shown, 100),
                manifest.name,
                manifest.version
            );
            return Err(Fault::new(FaultCode::Denied, &text));
        }
        negotiate(self.syscall_api_version, current)
    }
}

/// The version that both speak: the plugin's own, where this kernel still serves it.
pub(super) fn negotiate(wanted: u32, current: u32) -> Result<u32, Fault> {
    let oldest = oldest(current);
    let fix = if wanted < oldest {
        "update the plugin"
    } else if wanted > current {
        "update fluffy"
    } else {
        return Ok(wanted);
    };
    let text = format!("it speaks version {wanted}, and this kernel {oldest} to {current}: {fix}");
    Err(Fault::new(FaultCode::Version, &text))
}

/// The kernel's answer to a handshake that it accepts.
pub(super) fn welcome(id: u64, api: u32, told: Value) -> Message {
    let mut result = json!({
        "kernel_version": env!("CARGO_PKG_VERSION"),
        "supported_api_versions": [PLUGIN_API_OLDEST, PLUGIN_API],
        "negotiated_api_version": api,
    });
    if let (Value::Object(result), Value::Object(told)) = (&mut result, told) {
        result.extend(told);
    }
    Message::Response { id, outcome: Ok(result) }
}

/// A call of a tool.
pub(super) fn call(id: u64, tool: &str, arguments: &Value, mode: Option<&str>) -> Message {
    let params = json!({ "tool": tool, "arguments": arguments, "session_mode": mode });
    Message::Request { id, method: "tool.call".to_owned(), params }
}

/// A message as a frame; the error says that it is too long for one.
pub(super) fn frame(message: &Message) -> Result<Vec<u8>, String> {
    encode_frame(&message.to_bytes(), MAX_FRAME).map_err(|error| error.to_string())
}

/// What a plugin answered to the call of this number. The error says why it is no answer.
pub(super) fn answer(payload: &[u8], id: u64) -> Result<Result<Value, Fault>, String> {
    match Message::parse(payload).map_err(|fault| fault.message)? {
        Message::Response { id: answered, outcome } if answered == id => Ok(outcome),
        Message::Response { id: answered, .. } => {
            Err(format!("it answered call {answered}, and call {id} was made"))
        }
        Message::Request { .. } | Message::Event { .. } => {
            Err("it sent something else than an answer".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipc_3_the_current_version_and_the_one_before_are_spoken_and_no_other() {
        for (wanted, current, spoken) in [
            (1, 1, true),
            (0, 1, false),
            (2, 1, false),
            (3, 3, true),
            (2, 3, true),
            (1, 3, false),
            (4, 3, false),
        ] {
            assert_eq!(negotiate(wanted, current).is_ok(), spoken, "{wanted} of {current}");
        }
        let old = negotiate(1, 3).unwrap_err();
        assert_eq!(old.code, FaultCode::Version);
        assert_eq!(old.message, "it speaks version 1, and this kernel 2 to 3: update the plugin");
        let new = negotiate(4, 3).unwrap_err();
        assert_eq!(new.message, "it speaks version 4, and this kernel 2 to 3: update fluffy");
        assert!(!new.retryable);
    }

    #[test]
    fn an_answer_is_the_answer_to_what_was_asked_or_nothing() {
        for text in [
            "",
            "null",
            "[]",
            r#"{"type":"response","id":8,"result":{}}"#,
            r#"{"type":"response","id":7}"#,
            r#"{"type":"response","id":7,"result":{},"error":{}}"#,
            r#"{"type":"request","id":7,"method":"fs.read","params":{}}"#,
            r#"{"type":"event","method":"x","params":{}}"#,
            r#"{"type":"response","id":7,"result":{"x":1},"result":2}"#,
            r#"{"type":"response","id":7,"error":"no"}"#,
        ] {
            assert!(answer(text.as_bytes(), 7).is_err(), "{text}");
        }
        answer(&[0xff], 7).unwrap_err();
        let fine = answer(br#"{"type":"response","id":7,"result":{"n":1}}"#, 7);
        assert_eq!(fine, Ok(Ok(json!({ "n": 1 }))));
    }
}
