//! Changes that a command left in files whose writing a person has to agree to.
//!
//! Each becomes a request of its own, `fs.write` or `fs.delete` of that file with the very content that the command left, so that
//! the same rules, reviews, grants and exceptions count as for a write. The request only decides: the session takes all that the
//! command left as one step afterwards, or nothing.
//!
//! **Invariant.** A request counts as one of these only while its command waits for it, under the id that the session gave it and
//! with the parameters that the session made of the content.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fluffy_base::{Json, KernelReceipt, KernelRequest, ProjectPath, ReceiptStatus};
use fluffy_workflow::Standing;
use serde_json::json;

use super::desk::{Desk, failed};
use crate::clerk::MODEL;
use crate::files::{Found, View};
use crate::staging::unified;
use crate::tools::Views as _;
use crate::workshop::{MAX_EDIT_BYTES, Produced};
use crate::{CallContext, Clerk, ToolError};

/// A change that a person is asked about.
#[derive(Debug, Clone)]
pub(crate) struct LeftChange {
    /// The request id of the command.
    pub(crate) command: String,
    params: Json,
    notes: Vec<String>,
}

/// The changes that are being asked about, by the request that asks.
#[derive(Debug, Default)]
pub(crate) struct LeftChanges(Mutex<BTreeMap<String, LeftChange>>);

impl LeftChanges {
    /// The change that a request asks about, if it is one of these.
    pub(crate) fn find(&self, request: &str, params: &Json) -> Option<LeftChange> {
        self.all().get(request).filter(|change| change.params == *params).cloned()
    }

    /// What a person sees beside a request with these parameters.
    pub(crate) fn notes(&self, params: &Json) -> Vec<String> {
        let all = self.all();
        let asked = all.values().find(|change| change.params == *params);
        asked.map(|change| change.notes.clone()).unwrap_or_default()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, LeftChange>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    /// Asks for a change that the command of this clerk left, as its `number`th, the way a write is asked for.
    pub(crate) fn ask_for_left(
        &self,
        clerk: &dyn Clerk,
        number: usize,
        produced: &Produced,
    ) -> Result<(), ToolError> {
        let kernel = self.kernel().ok_or_else(|| ToolError("the session is over".to_owned()))?;
        let (command, path) = (clerk.request_id().to_owned(), produced.path());
        let id = format!("{command}.left.{number}");
        let (tool, change) = self.left_change(&self.view(), command, produced)?;
        let intent = format!("keep `{path}` as a command left it");
        let mut request = KernelRequest::call(&id, MODEL, &intent, tool, change.params.clone());
        request.ts_ms = i64::try_from(kernel.clock.now_ms()).unwrap_or(i64::MAX);
        let Standing { state, mode, .. } = self.look().workflow.standing();
        let context = CallContext {
            mode: Some(mode.name().to_owned()),
            workflow_state: Some(state.name().to_owned()),
            ..CallContext::default()
        };
        self.left_changes.all().insert(id.clone(), change);
        let receipt = kernel.submit_from(&context, request);
        self.left_changes.all().remove(&id);
        agreed(path, receipt)
    }

    fn left_change(
        &self,
        view: &View,
        command: String,
        produced: &Produced,
    ) -> Result<(&'static str, LeftChange), ToolError> {
        let path = produced.path();
        let unshown = |why: &str| {
            let text = format!(
                "a person has to agree to a change of `{path}`, and {why}; change it with \
                 `fs.write`, which asks, or leave it alone"
            );
            ToolError(text)
        };
        let before = match view.look(path).map_err(|error| failed(&error))? {
            Some(Found::File { executable, .. }) => {
                let bytes = view.read(path, MAX_EDIT_BYTES).map_err(|error| failed(&error));
                Some((String::from_utf8_lossy(&bytes?).into_owned(), executable))
            }
            Some(Found::Directory | Found::Link | Found::Special) | None => None,
        };
        let old = before.as_ref().map_or("", |(text, _)| text);
        let old_name = before.as_ref().map_or("/dev/null".to_owned(), |_| format!("a/{path}"));
        let (tool, params, mut notes) = match produced {
            Produced::Nothing(_) => {
                let diff = unified((&old_name, old), ("/dev/null", ""));
                ("fs.delete", json!({ "path": path.as_str() }), vec![diff])
            }
            Produced::File(_, stored) => {
                if stored.bytes > MAX_EDIT_BYTES {
                    return Err(unshown("it is too large to be shown"));
                }
                let bytes = view.blobs.get(stored).map_err(|error| failed(&error))?;
                let text = String::from_utf8(bytes).map_err(|_| unshown("it is no text"))?;
                let mut notes = vec![unified((&old_name, old), (&format!("b/{path}"), &text))];
                if stored.executable && before.as_ref().is_none_or(|(_, executable)| !executable) {
                    notes.push("the file becomes executable".to_owned());
                }
                ("fs.write", json!({ "path": path.as_str(), "content": text }), notes)
            }
        };
        notes.push("a command left this change".to_owned());
        let params = Json::new(params).map_err(|error| unshown(&error.to_string()))?;
        Ok((tool, LeftChange { command, params, notes }))
    }
}

fn agreed(path: &ProjectPath, receipt: KernelReceipt) -> Result<(), ToolError> {
    match receipt.status {
        ReceiptStatus::Accepted => Ok(()),
        ReceiptStatus::Rejected | ReceiptStatus::Failed => {
            let why = receipt.error.unwrap_or_else(|| "it was refused".to_owned());
            Err(ToolError(format!("the change of `{path}` was not agreed to: {why}")))
        }
    }
}
