//! What the model asks for, and what it is told.

use fluffy_base::{Decision, Excerpt, Json, KernelReceipt, ReceiptStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One call of the model.
#[derive(Debug, Clone)]
pub struct ModelCall {
    /// The model's own name for the call.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Json,
}

/// What a call is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallAnswer {
    /// The model's own name for the call.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Whether it was allowed.
    pub allowed: bool,
    /// Whether it did what was asked.
    pub success: bool,
    /// What the model is told, as JSON.
    pub content: Value,
}

impl CallAnswer {
    /// The answer by a receipt. What is not available says so in a form that a program can read: the tool,
    /// the reason, where the work stands and what can be done there.
    pub(crate) fn of(
        call: &ModelCall,
        receipt: &KernelReceipt,
        standing: impl FnOnce() -> Value,
    ) -> Self {
        let allowed = receipt.decision == Decision::Allow;
        let success = receipt.status == ReceiptStatus::Accepted;
        let error = receipt.error.as_deref().unwrap_or("it was refused");
        let content = match (&receipt.tool_result, success, allowed) {
            (Some(result), true, _) => result.value().clone(),
            (None, true, _) => json!({ "ok": true }),
            (_, false, true) => json!({ "error": "failed", "reason": error }),
            (_, false, false) => json!({
                "error": "unavailable",
                "tool": Excerpt::new(&call.tool, 100).to_string(),
                "rule": receipt.rule,
                "reason": error,
                "standing": standing(),
            }),
        };
        Self { id: call.id.clone(), tool: call.tool.clone(), allowed, success, content }
    }

    /// What was decided, in one word: `allowed`, `denied` or `failed`.
    pub fn decision(&self) -> &'static str {
        match (self.allowed, self.success) {
            (true, true) => "allowed",
            (true, false) => "failed",
            (false, _) => "denied",
        }
    }
}
