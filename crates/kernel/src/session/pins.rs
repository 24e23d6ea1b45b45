//! What the person keeps before the model's eyes: files, as they were when they were pinned.
//!
//! **Invariant.** A pin is read as the model would read it: by a request that the rules judge and the ledger has. What
//! the model may not read cannot be pinned, and what is cut is not pinned either.

use fluffy_base::{Decision, Json, ProjectPath, ReceiptStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Entry, Session, SessionError};

/// How much may be pinned in all: a quarter of what most models see.
const MAX_PINNED_BYTES: usize = 48 << 10;

/// A file that stays before the model's eyes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// Which.
    pub path: ProjectPath,
    /// What it said when it was pinned; known secrets are masked.
    pub text: String,
}

impl Session {
    /// Pins a file, by its path from the project's root. One that is pinned already stays as it was.
    pub fn pin(&self, path: &str) -> Result<(), SessionError> {
        let unfit =
            |why: String| SessionError::Pin { path: fluffy_base::sanitised(path).into(), why };
        let path = ProjectPath::parse(path).map_err(|error| unfit(error.to_string()))?;
        let pins = self.pins();
        if pins.iter().any(|pin| pin.path == path) {
            return Ok(());
        }
        let text = self.pinned_text(&path)?;
        let before: usize = pins.iter().map(|pin| pin.text.len()).sum();
        if before.saturating_add(text.len()) > MAX_PINNED_BYTES {
            return Err(unfit(format!("more than {MAX_PINNED_BYTES} bytes would be pinned")));
        }
        let pin = Pin { path, text };
        self.record(&Entry::Pinned(pin.clone()))?;
        self.desk.change().set(|inside| inside.progress.pins.push(pin));
        Ok(())
    }

    /// Pins a file no more.
    pub fn unpin(&self, path: &str) -> Result<(), SessionError> {
        let unknown = || SessionError::NotPinned(fluffy_base::sanitised(path).into());
        let path = ProjectPath::parse(path).map_err(|_| unknown())?;
        if !self.pins().iter().any(|pin| pin.path == path) {
            return Err(unknown());
        }
        self.record(&Entry::Unpinned { path: path.clone() })?;
        self.desk.change().set(|inside| inside.progress.pins.retain(|pin| pin.path != path));
        Ok(())
    }

    /// What is pinned.
    pub fn pins(&self) -> Vec<Pin> {
        self.desk.look().progress.pins.clone()
    }

    /// The whole text of a file, as the model may read it.
    fn pinned_text(&self, path: &ProjectPath) -> Result<String, SessionError> {
        let unfit = |why: &str| SessionError::Pin { path: path.to_string(), why: why.to_owned() };
        let params = Json::new(json!({ "path": path })).map_err(|e| unfit(&e.to_string()))?;
        let receipt = self.submit(&self.own_id(), "fs.read", params);
        let why = receipt.error.unwrap_or_else(|| "it was refused".to_owned());
        if receipt.decision != Decision::Allow {
            return Err(SessionError::PinDenied { path: path.to_string(), why });
        }
        let result = match (receipt.status, receipt.tool_result) {
            (ReceiptStatus::Accepted, Some(result)) => result,
            (ReceiptStatus::Accepted | ReceiptStatus::Rejected | ReceiptStatus::Failed, _) => {
                return Err(unfit(&why));
            }
        };
        let is = |name: &str| result.value().get(name).and_then(Value::as_bool) == Some(true);
        if is("binary") {
            return Err(unfit("it is no text"));
        }
        // What is too long for one read is handed on as a cut text, and no longer as an object.
        match result.value().get("content").and_then(Value::as_str) {
            Some(text) if !is("truncated") => Ok(text.to_owned()),
            Some(_) | None => Err(unfit("it is longer than a model is shown at once")),
        }
    }
}
