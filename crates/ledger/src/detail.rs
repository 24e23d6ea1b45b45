//! What an entry knows beyond its link: the detail, whose hash the link carries.
//!
//! **Invariant.** A detail is encoded once, in RFC 8785 form with integers only; those bytes are
//! hashed, stored and exported. The sequence number, the kernel's id and the variant are inside, so
//! none of them can be relabelled.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fluffy_base::{Digest, KernelId, SessionId};
use serde::{Deserialize, Deserializer};

use crate::EventType;
use crate::encode::{Form, digest, integer, string};

/// Version of the detail's form, in every detail.
pub const DETAIL_VERSION: u64 = 1;

/// The largest integer that is exact in RFC 8785; larger ones are recorded as this one.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// How the policy answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyDecision {
    /// A rule allowed it.
    Allowed,
    /// A rule, or the absence of one, denied it.
    Denied,
    /// A person has to decide.
    ReviewRequired,
    /// A capability token allowed it.
    AllowedByToken,
}

/// Who wrote an entry and under which rules: the same for all entries of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The kernel.
    pub kernel_id: KernelId,
    /// Its session.
    pub session_id: SessionId,
    /// Its variant.
    pub variant: &'static str,
    /// The session's mode, once there are modes to choose from.
    pub mode: Option<&'static str>,
    /// Digest of the policy in force.
    pub policy_digest: Option<Digest>,
    /// Version of the program that decided.
    pub engine: &'static str,
}

/// What an entry knows beyond its link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    /// Who wrote it.
    pub origin: Origin,
    /// What happened.
    pub event: EventType,
    /// State of the workflow.
    pub workflow_state: Option<String>,
    /// How the policy answered.
    pub policy_decision: Option<PolicyDecision>,
    /// The rule that decided.
    pub rule: Option<String>,
    /// The capability token that was used.
    pub capability_id: Option<String>,
    /// Why it was denied.
    pub deny_reason: Option<String>,
    /// What went in, at most 500 characters, sanitised.
    pub input_summary: Option<String>,
    /// What came out, at most 500 characters, sanitised.
    pub output_summary: Option<String>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// The sandbox it ran in.
    pub sandbox_id: Option<String>,
    /// Hash of what the tool returned, before sanitising.
    pub result_hash: Option<Digest>,
    /// Hash of what was handed on, where sanitising changed it.
    pub sanitised_hash: Option<Digest>,
    /// For a result: number of the entry that allowed it.
    pub decision_seq: Option<u64>,
    /// Anything else; names are chosen in the code, never by a request.
    pub metadata: BTreeMap<&'static str, String>,
}

/// A detail as read back from its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "field for field the names of `Detail` and `Origin`")]
pub struct DetailView<'a> {
    #[serde(default, borrow, deserialize_with = "text")]
    pub capability_id: Option<Cow<'a, str>>,
    #[serde(default)]
    pub decision_seq: Option<u64>,
    #[serde(default, borrow, deserialize_with = "text")]
    pub deny_reason: Option<Cow<'a, str>>,
    #[serde(default)]
    pub duration_ms: Option<u64>,
    #[serde(borrow)]
    pub engine: Cow<'a, str>,
    #[serde(borrow)]
    pub event: Cow<'a, str>,
    #[serde(default)]
    pub input_blob: Option<Digest>,
    #[serde(default, borrow, deserialize_with = "text")]
    pub input_summary: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub kernel_id: Cow<'a, str>,
    #[serde(default, borrow)]
    pub metadata: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    #[serde(default, borrow, deserialize_with = "text")]
    pub mode: Option<Cow<'a, str>>,
    #[serde(default, borrow, deserialize_with = "text")]
    pub output_summary: Option<Cow<'a, str>>,
    #[serde(default, borrow, deserialize_with = "text")]
    pub policy_decision: Option<Cow<'a, str>>,
    #[serde(default)]
    pub policy_digest: Option<Digest>,
    #[serde(default)]
    pub result_hash: Option<Digest>,
    #[serde(default, borrow, deserialize_with = "text")]
    pub rule: Option<Cow<'a, str>>,
    #[serde(default, borrow, deserialize_with = "text")]
    pub sandbox_id: Option<Cow<'a, str>>,
    #[serde(default)]
    pub sanitised_hash: Option<Digest>,
    pub seq: u64,
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    pub v: u64,
    #[serde(borrow)]
    pub variant: Cow<'a, str>,
    #[serde(default, borrow, deserialize_with = "text")]
    pub workflow_state: Option<Cow<'a, str>>,
}

/// A text that is borrowed from the bytes unless an escape forbids it; inside an `Option`, serde would
/// copy every one.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    Ok(Option::<Text<'de>>::deserialize(from)?.map(|text| text.0))
}

impl PolicyDecision {
    /// The name that stands in the ledger.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::ReviewRequired => "review_required",
            Self::AllowedByToken => "allowed_by_token",
        }
    }
}

impl Detail {
    /// A detail that says only what happened.
    pub fn new(origin: Origin, event: EventType) -> Self {
        Self {
            origin,
            event,
            workflow_state: None,
            policy_decision: None,
            rule: None,
            capability_id: None,
            deny_reason: None,
            input_summary: None,
            output_summary: None,
            duration_ms: None,
            sandbox_id: None,
            result_hash: None,
            sanitised_hash: None,
            decision_seq: None,
            metadata: BTreeMap::new(),
        }
    }

    /// The bytes that are hashed and kept. Absent fields are left out.
    pub(crate) fn encode(&self, seq: u64, input_blob: Option<&Digest>) -> Vec<u8> {
        let mut object = Object { out: Vec::with_capacity(768) };
        let origin = &self.origin;
        object.text("capability_id", self.capability_id.as_deref());
        object.number("decision_seq", self.decision_seq);
        object.text("deny_reason", self.deny_reason.as_deref());
        object.number("duration_ms", self.duration_ms);
        object.text("engine", Some(origin.engine));
        object.text("event", Some(self.event.name()));
        object.digest("input_blob", input_blob);
        object.text("input_summary", self.input_summary.as_deref());
        object.text("kernel_id", Some(origin.kernel_id.as_str()));
        object.map("metadata", &self.metadata);
        object.text("mode", origin.mode);
        object.text("output_summary", self.output_summary.as_deref());
        object.text("policy_decision", self.policy_decision.map(PolicyDecision::name));
        object.digest("policy_digest", origin.policy_digest.as_ref());
        object.digest("result_hash", self.result_hash.as_ref());
        object.text("rule", self.rule.as_deref());
        object.text("sandbox_id", self.sandbox_id.as_deref());
        object.digest("sanitised_hash", self.sanitised_hash.as_ref());
        object.number("seq", Some(seq));
        object.text("session_id", Some(origin.session_id.as_str()));
        object.number("v", Some(DETAIL_VERSION));
        object.text("variant", Some(origin.variant));
        object.text("workflow_state", self.workflow_state.as_deref());
        object.finish()
    }
}

impl<'a> DetailView<'a> {
    /// The kernel that a detail's bytes name, if they are a detail.
    pub(crate) fn kernel_in(bytes: &[u8]) -> Option<KernelId> {
        DetailView::parse(bytes).ok().and_then(|detail| KernelId::named(&detail.kernel_id))
    }

    /// Reads a detail from the bytes that were kept.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}

/// An object whose members come in canonical order.
struct Object {
    out: Vec<u8>,
}

impl Object {
    fn key(&mut self, name: &str) {
        self.out.push(if self.out.is_empty() { b'{' } else { b',' });
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn text(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.key(name);
            string(&mut self.out, value, Form::Utf8);
        }
    }

    fn number(&mut self, name: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.key(name);
            integer(&mut self.out, value.min(MAX_INTEGER));
        }
    }

    fn digest(&mut self, name: &str, value: Option<&Digest>) {
        if value.is_some() {
            self.key(name);
            digest(&mut self.out, value);
        }
    }

    fn map(&mut self, name: &str, members: &BTreeMap<&'static str, String>) {
        if members.is_empty() {
            return;
        }
        self.key(name);
        let mut inner = Self { out: Vec::new() };
        for (key, value) in members {
            inner.text(key, Some(value));
        }
        self.out.extend_from_slice(&inner.finish());
    }

    fn finish(mut self) -> Vec<u8> {
        if self.out.is_empty() {
            self.out.push(b'{');
        }
        self.out.push(b'}');
        self.out
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use fluffy_base::SeededIds;
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn origin() -> Origin {
        Origin {
            kernel_id: KernelId::named("kernel-test").unwrap(),
            session_id: SessionId::fresh(&SeededIds::new(1)).unwrap(),
            variant: "strict",
            mode: None,
            policy_digest: Some(Digest::of(b"policy")),
            engine: "0.0.0",
        }
    }

    proptest! {
        #[test]
        fn the_hand_ordered_detail_is_canonical_and_reads_back(
            reason in any::<Option<String>>(), summary in any::<Option<String>>(),
            number in any::<Option<u32>>(), value in any::<String>(), hashed in any::<bool>(),
        ) {
            let mut detail = Detail::new(origin(), EventType::Syscall);
            let hash = hashed.then(|| Digest::of(value.as_bytes()));
            detail.deny_reason = reason.clone();
            detail.input_summary = summary.clone();
            detail.output_summary = summary;
            detail.duration_ms = number.map(u64::from);
            detail.decision_seq = number.map(u64::from);
            detail.capability_id = reason.clone();
            detail.rule = reason.clone();
            detail.sandbox_id = reason.clone();
            detail.workflow_state = reason;
            detail.result_hash = hash;
            detail.sanitised_hash = hash;
            detail.policy_decision = hashed.then_some(PolicyDecision::Denied);
            if hashed {
                detail.metadata.insert("segment", value.clone());
                detail.metadata.insert("kept", value);
            }
            let bytes = detail.encode(7, hash.as_ref());
            let general: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            let canonical = serde_json_canonicalizer::to_vec(&general).unwrap();
            prop_assert_eq!(String::from_utf8(bytes.clone()), String::from_utf8(canonical));
            let view = DetailView::parse(&bytes).unwrap();
            prop_assert_eq!(view.seq, 7);
            prop_assert_eq!(view.deny_reason.as_deref(), detail.deny_reason.as_deref());
        }
    }
}
