//! One link of the chain, field for field what the independent verifier hashes.

use fluffy_base::{Decision, Digest, KernelState};

use crate::encode::{Form, digest, integer, optional, string};

/// One link of the chain, borrowed from wherever it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryView<'a> {
    /// Id of the request, or the name of an event of the kernel's own.
    pub request_id: &'a str,
    /// Who asked.
    pub actor: &'a str,
    /// What for.
    pub intent: &'a str,
    /// ALLOW, DENY or HALT.
    pub decision: &'a str,
    /// The kernel's state before.
    pub state_from: &'a str,
    /// The kernel's state after.
    pub state_to: &'a str,
    /// When, in milliseconds since the epoch.
    pub ts_ms: u64,
    /// The tool that was asked for.
    pub tool_name: Option<&'a str>,
    /// Hash of its parameters' canonical text.
    pub params_hash: Option<Digest>,
    /// Hash of the entry's detail.
    pub evidence_hash: Option<Digest>,
    /// Why it was refused or failed.
    pub error: Option<&'a str>,
}

/// One link of the chain, as exported in a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Number in the ledger, from 0.
    pub seq: u64,
    /// Hash of the entry before, or 64 zeros.
    pub prev_hash: Digest,
    /// Hash of this entry.
    pub entry_hash: Digest,
    /// When, in milliseconds since the epoch.
    pub ts_ms: u64,
    /// Id of the request, or the name of an event of the kernel's own.
    pub request_id: String,
    /// Who asked.
    pub actor: String,
    /// What for.
    pub intent: String,
    /// What was decided.
    pub decision: Decision,
    /// The kernel's state before.
    pub state_from: KernelState,
    /// The kernel's state after.
    pub state_to: KernelState,
    /// The tool that was asked for.
    pub tool_name: Option<String>,
    /// Hash of its parameters' canonical text.
    pub params_hash: Option<Digest>,
    /// Hash of the entry's detail.
    pub evidence_hash: Option<Digest>,
    /// Why it was refused or failed.
    pub error: Option<String>,
}

impl AuditEntry {
    /// The hashed fields.
    pub fn view(&self) -> EntryView<'_> {
        EntryView {
            request_id: &self.request_id,
            actor: &self.actor,
            intent: &self.intent,
            decision: self.decision.name(),
            state_from: self.state_from.name(),
            state_to: self.state_to.name(),
            ts_ms: self.ts_ms,
            tool_name: self.tool_name.as_deref(),
            params_hash: self.params_hash,
            evidence_hash: self.evidence_hash,
            error: self.error.as_deref(),
        }
    }
}

impl EntryView<'_> {
    /// `sha256(prev_hash + ":" + canonical(entry))`, using `scratch` for the text.
    pub fn hash(&self, prev: &Digest, scratch: &mut Vec<u8>) -> Digest {
        scratch.clear();
        self.encode_after(prev, scratch);
        Digest::of(scratch)
    }

    /// Appends the text under the hash.
    pub(crate) fn encode_after(&self, prev: &Digest, out: &mut Vec<u8>) {
        out.extend_from_slice(&prev.hex());
        out.push(b':');
        self.encode(out);
    }

    /// The same with zeros where the hash of the detail belongs; gives the place. For details whose
    /// hashes are computed later, many together.
    pub(crate) fn encode_ahead(&self, prev: &Digest, out: &mut Vec<u8>) -> usize {
        out.extend_from_slice(&prev.hex());
        out.push(b':');
        self.encode_before_evidence(out);
        let place = out.len() + 1;
        digest(out, Some(&Digest::GENESIS));
        self.encode_after_evidence(out);
        place
    }

    /// Appends the canonical text: sorted keys, no white space, ASCII. The permit fields belong to
    /// the formula and are always null here.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        self.encode_before_evidence(out);
        digest(out, self.evidence_hash.as_ref());
        self.encode_after_evidence(out);
    }

    fn encode_before_evidence(&self, out: &mut Vec<u8>) {
        member(out, b"{\"actor\":", self.actor);
        member(out, b",\"decision\":", self.decision);
        out.extend_from_slice(b",\"error\":");
        optional(out, self.error, Form::Ascii);
        out.extend_from_slice(b",\"evidence_hash\":");
    }

    fn encode_after_evidence(&self, out: &mut Vec<u8>) {
        member(out, b",\"intent\":", self.intent);
        out.extend_from_slice(b",\"params_hash\":");
        digest(out, self.params_hash.as_ref());
        out.extend_from_slice(
            b",\"permit_denial_reasons\":null,\"permit_digest\":null,\"permit_issuer\":null,\
              \"permit_max_executions\":null,\"permit_nonce\":null,\"permit_subject\":null,\
              \"permit_verification\":null,\"proposal_hash\":null",
        );
        member(out, b",\"request_id\":", self.request_id);
        member(out, b",\"state_from\":", self.state_from);
        member(out, b",\"state_to\":", self.state_to);
        out.extend_from_slice(b",\"tool_name\":");
        optional(out, self.tool_name, Form::Ascii);
        out.extend_from_slice(b",\"ts_ms\":");
        integer(out, self.ts_ms);
        out.push(b'}');
    }
}

fn member(out: &mut Vec<u8>, key: &[u8], value: &str) {
    out.extend_from_slice(key);
    string(out, value, Form::Ascii);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// The formula once more, from a general encoder: serde_json's sorted map, then ASCII.
    fn general(view: &EntryView<'_>) -> String {
        let hash = |d: Option<Digest>| d.map_or(Value::Null, |d| json!(d.to_string()));
        let value = json!({
            "request_id": view.request_id, "actor": view.actor, "intent": view.intent,
            "decision": view.decision, "state_from": view.state_from, "state_to": view.state_to,
            "ts_ms": view.ts_ms, "tool_name": view.tool_name,
            "params_hash": hash(view.params_hash), "evidence_hash": hash(view.evidence_hash),
            "error": view.error, "permit_digest": null, "permit_verification": null,
            "permit_denial_reasons": null, "proposal_hash": null, "permit_nonce": null,
            "permit_issuer": null, "permit_subject": null, "permit_max_executions": null,
        });
        let mut ascii = String::new();
        for c in value.to_string().chars() {
            if c.is_ascii() && c != '\u{7f}' {
                ascii.push(c);
            } else {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    ascii += &format!("\\u{unit:04x}");
                }
            }
        }
        ascii
    }

    proptest! {
        #[test]
        fn the_hand_written_text_is_the_canonical_one(
            actor in any::<String>(), intent in any::<String>(), error in any::<Option<String>>(),
            tool in any::<Option<String>>(), ts_ms in any::<u64>(), hashed in any::<bool>(),
        ) {
            let hash = hashed.then(|| Digest::of(actor.as_bytes()));
            let view = EntryView {
                request_id: &intent, actor: &actor, intent: &intent, decision: "ALLOW",
                state_from: "IDLE", state_to: "HALTED", ts_ms, tool_name: tool.as_deref(),
                params_hash: hash, evidence_hash: hash, error: error.as_deref(),
            };
            let mut out = Vec::new();
            view.encode(&mut out);
            prop_assert_eq!(String::from_utf8(out.clone()).unwrap(), general(&view));
            let mut ahead = b"before".to_vec();
            let prev = Digest::of(b"prev");
            let place = view.encode_ahead(&prev, &mut ahead);
            if let Some(evidence) = view.evidence_hash {
                ahead[place..place + 64].copy_from_slice(&evidence.hex());
                prop_assert_eq!(Digest::of(&ahead[6..]), view.hash(&prev, &mut out));
            }
        }
    }

    #[test]
    fn lesson_l20_no_two_entries_share_a_preimage_by_moving_a_separator() {
        fn hash(actor: &str, intent: &str) -> Digest {
            let view = EntryView {
                request_id: "r",
                actor,
                intent,
                decision: "ALLOW",
                state_from: "IDLE",
                state_to: "IDLE",
                ts_ms: 1,
                tool_name: None,
                params_hash: None,
                evidence_hash: None,
                error: None,
            };
            view.hash(&Digest::GENESIS, &mut Vec::new())
        }
        for separator in ["|", ":", "\",\"", "\\"] {
            let (a, b) = (format!("a{separator}"), format!("{separator}b"));
            assert_ne!(hash(&a, "b"), hash("a", &b));
        }
    }
}
