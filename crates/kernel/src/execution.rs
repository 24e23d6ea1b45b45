//! Running what was permitted, and nothing else.
//!
//! **Invariant.** What has an effect is run once. What has none, and failed for a reason that may pass, is run
//! once more; both attempts are one call with one answer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fluffy_base::{Digest, Json, Waiter};
use fluffy_policy::Sanitiser;
use serde_json::Value;

use crate::arbitration::Permit;
use crate::masking::sanitised_json;
use crate::{Clerk, Effect, Failure, Registry, ToolError};

/// The largest result that is handed on.
const MAX_RESULT_BYTES: usize = 8 << 20;

/// How long it is waited before a read is tried again.
const PAUSE_MS: u64 = 100;

/// What became of a call.
pub(crate) struct Outcome {
    /// What is handed on, or why there is nothing.
    pub(crate) result: Result<Json, String>,
    /// Hash of the result as the tool gave it.
    pub(crate) original_hash: Option<Digest>,
    /// Hash of what is handed on, where masking changed it.
    pub(crate) sanitised_hash: Option<Digest>,
    /// Why a first attempt failed, where there was a second.
    pub(crate) failed_before: Option<String>,
}

/// Runs the tool that the permit names with the permit's parameters, and uses the permit up.
pub(crate) fn execute(
    permit: Permit,
    registry: &Registry,
    sanitiser: &Sanitiser,
    clerk: &dyn Clerk,
    waiter: &dyn Waiter,
) -> Outcome {
    let Some(found) = registry.find(permit.tool()) else {
        return Outcome::failed("the tool is not registered".to_owned());
    };
    // Unwind safety: a tool that panicked is reported as failed, and its value is not used again in
    // this call; what it shares with other calls it has to guard itself, as for any error.
    let run = || catch_unwind(AssertUnwindSafe(|| found.tool.attempt(permit.params(), clerk)));
    let (mut ended, mut failed_before) = (run(), None);
    if let (Effect::None, Ok(Err(Failure::Passing(error)))) = (found.effect(), &ended) {
        failed_before = Some(error.to_string());
        waiter.wait(PAUSE_MS, &|| false);
        ended = run();
    }
    let outcome = match ended {
        Err(_panic) => Outcome::failed("the tool crashed".to_owned()),
        Ok(result) => Outcome::new(permit.tool(), result.map_err(ToolError::from), sanitiser),
    };
    Outcome { failed_before, ..outcome }
}

impl Outcome {
    /// What a call gave, or why it gave nothing.
    pub(crate) fn new(tool: &str, result: Result<Value, ToolError>, sanitiser: &Sanitiser) -> Self {
        match result {
            Ok(value) => Self::of(tool, value, sanitiser),
            Err(error) => Self::failed(error.to_string()),
        }
    }

    fn failed(text: String) -> Self {
        Self { result: Err(text), original_hash: None, sanitised_hash: None, failed_before: None }
    }

    /// Hands a result on if it can be kept, without secrets and not longer than a model should read.
    fn of(tool: &str, value: Value, sanitiser: &Sanitiser) -> Self {
        let original = match Json::new(value) {
            Ok(json) => json,
            Err(error) => return Self::failed(format!("the result is unusable: {error}")),
        };
        let size = original.canonical().len();
        let original_hash = Some(Digest::of(original.canonical().as_bytes()));
        if size > MAX_RESULT_BYTES {
            let text = format!("the result has {size} bytes, more than {MAX_RESULT_BYTES}");
            return Self { original_hash, ..Self::failed(text) };
        }
        match sanitised_json(sanitiser, tool, &original) {
            None => Self {
                result: Ok(original),
                original_hash,
                sanitised_hash: None,
                failed_before: None,
            },
            Some(Ok(masked)) => {
                let sanitised_hash = Some(Digest::of(masked.canonical().as_bytes()));
                Self { result: Ok(masked), original_hash, sanitised_hash, failed_before: None }
            }
            Some(Err(error)) => {
                let text = format!("the result cannot be masked: {error}");
                Self { original_hash, ..Self::failed(text) }
            }
        }
    }
}
