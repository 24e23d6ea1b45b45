//! What a request is answered, before the ledger has confirmed it.

use fluffy_base::{Decision, Json, ReceiptStatus};
use fluffy_ledger::EventType;
use fluffy_policy::{Decided, Verdict};

use crate::execution::Outcome;
use crate::narrate::{reason_text, safe_error};
use crate::review::Refusal;

/// What entry and receipt say alike.
pub(crate) struct Answer {
    pub(crate) status: ReceiptStatus,
    pub(crate) decision: Decision,
    pub(crate) tool_result: Option<Json>,
    pub(crate) error: Option<String>,
}

impl Answer {
    /// An intent without a tool call that was allowed.
    pub(crate) fn accepted() -> Self {
        let (status, decision) = (ReceiptStatus::Accepted, Decision::Allow);
        Self { status, decision, tool_result: None, error: None }
    }

    /// What the rules refused.
    pub(crate) fn denied(decided: &Decided) -> Self {
        let text = decided.verdict.reasons().map_or_else(String::new, reason_text);
        Self::refused(match (&decided.verdict, &decided.instead) {
            (Verdict::Review(_), _) => {
                format!("{text} (a person has to review this, and none is here)")
            }
            (Verdict::Pass | Verdict::Allow(_) | Verdict::Deny(_), Some(instead)) => {
                safe_error(&format!("{text}. Allowed instead: {instead}"))
            }
            (Verdict::Pass | Verdict::Allow(_) | Verdict::Deny(_), None) => text,
        })
    }

    /// What a person did not agree to.
    pub(crate) fn not_agreed(decided: &Decided, why: &str) -> Self {
        let text = decided.verdict.reasons().map_or_else(String::new, reason_text);
        Self::refused(safe_error(&format!("{text} (reviewed: {why})")))
    }

    /// What a person refused, with what they say to whoever asked: whole, however long the reasons are.
    pub(crate) fn said_no(decided: &Decided, refusal: &Refusal) -> Self {
        let mut answer = Self::not_agreed(decided, &refusal.why);
        if let (Some(error), Some(words)) = (&mut answer.error, &refusal.words) {
            error.push_str(&format!(". The person says: {words}"));
        }
        answer
    }

    /// What is no request.
    pub(crate) fn malformed(why: &str) -> Self {
        Self::refused(safe_error(&format!("Malformed request: {why}")))
    }

    /// What came after a halt.
    pub(crate) fn halted(reason: &str) -> Self {
        Self { decision: Decision::Halt, ..Self::refused(halted_text(reason)) }
    }

    /// A call that the rules allow and the tool cannot take.
    pub(crate) fn unfit(text: &str) -> Self {
        let error = Some(failed_text(text));
        Self { status: ReceiptStatus::Failed, error, ..Self::refused(String::new()) }
    }

    /// A call that was made.
    pub(crate) fn ran(outcome: Outcome) -> Self {
        let decision = Decision::Allow;
        match outcome.result {
            Ok(json) => Self { tool_result: Some(json), ..Self::accepted() },
            Err(text) => {
                let (status, error) = (ReceiptStatus::Failed, Some(failed_text(&text)));
                Self { status, decision, tool_result: None, error }
            }
        }
    }

    /// The same answer where a halt came first: nothing is handed on. Only of an effect that was
    /// started is it said that it failed; everything else did not happen.
    pub(crate) fn overtaken(self, reason: &str, event: EventType) -> Self {
        let halted = Self::halted(reason);
        let started = self.status != ReceiptStatus::Rejected && event == EventType::ToolResult;
        if !started {
            return halted;
        }
        let text = format!("{} (while the tool was running)", halted_text(reason));
        Self { status: ReceiptStatus::Failed, error: Some(text), ..halted }
    }

    fn refused(error: String) -> Self {
        let (status, decision) = (ReceiptStatus::Rejected, Decision::Deny);
        Self { status, decision, tool_result: None, error: Some(error) }
    }
}

/// Says that the kernel is halted, and why.
pub(crate) fn halted_text(reason: &str) -> String {
    format!("Kernel is halted: {reason}")
}

fn failed_text(text: &str) -> String {
    safe_error(&format!("Tool execution failed: {text}"))
}
