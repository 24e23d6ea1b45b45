//! Calls whose pieces come one after another, as OpenAI's protocols send them.
//!
//! **Invariant.** A call is handed out when its name is known, and from then on every piece of its arguments, each
//! once. What repeats the whole of them adds what is missing and nothing else.

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::{MAX_TURN_CALLS, ProviderError, StreamEvent};

/// The calls of one turn.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls(Vec<OpenCall>);

#[derive(Debug, Default)]
struct OpenCall {
    index: Option<u64>,
    id: String,
    /// Whether its name came, and it was handed out.
    begun: bool,
    arguments: String,
}

impl OpenCalls {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the name of each is known.
    pub(crate) fn all_begun(&self) -> bool {
        self.0.iter().all(|call| call.begun)
    }

    /// Which call a piece belongs to; a new one if none. Servers leave out numbers and ids, give every piece a
    /// new id, or all calls one number.
    pub(crate) fn place(&mut self, index: Option<u64>, id: &str, name: &str) -> usize {
        let last = self.0.len().checked_sub(1);
        let with_id = || self.0.iter().rposition(|call| call.id == id && !id.is_empty());
        let known = match index {
            Some(_) => self.0.iter().rposition(|call| call.index == index),
            None if name.is_empty() => with_id().or(last),
            None => with_id(),
        };
        let is_other = |at: &usize| {
            let Some(call) = self.0.get(*at).filter(|_| !name.is_empty()) else { return false };
            let is_whole = || serde_json::from_str::<IgnoredAny>(&call.arguments).is_ok();
            if id.is_empty() { is_whole() } else { !call.id.is_empty() && call.id != id }
        };
        known.filter(|at| !is_other(at)).unwrap_or_else(|| self.open(index))
    }

    /// A new call.
    pub(crate) fn open(&mut self, index: Option<u64>) -> usize {
        self.0.push(OpenCall { index, ..OpenCall::default() });
        self.0.len() - 1
    }

    /// Takes a piece of a call: what was left empty is not known yet.
    pub(crate) fn extend(
        &mut self,
        at: usize,
        (id, name): (&str, &str),
        fragment: &str,
        pieces: &mut Vec<StreamEvent>,
    ) -> Result<(), ProviderError> {
        let index = u32::try_from(at).ok().filter(|_| at < MAX_TURN_CALLS);
        let (Some(index), Some(call)) = (index, self.0.get_mut(at)) else {
            return Err(ProviderError::Malformed("the turn has too many calls".to_owned()));
        };
        call.arguments.push_str(fragment);
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        let fragment = if call.begun {
            fragment
        } else if name.is_empty() {
            return Ok(());
        } else {
            call.begun = true;
            let (id, name) = (call.id.clone(), name.to_owned());
            pieces.push(StreamEvent::CallStarted { index, id, name });
            &call.arguments
        };
        if !fragment.is_empty() {
            pieces.push(StreamEvent::CallArguments { index, fragment: fragment.to_owned() });
        }
        Ok(())
    }

    /// Takes a call as a whole: what did not come of its arguments is added. Others than those that came are a
    /// contradiction.
    pub(crate) fn complete(
        &mut self,
        at: usize,
        named: (&str, &str),
        whole: &str,
        pieces: &mut Vec<StreamEvent>,
    ) -> Result<(), ProviderError> {
        let came = self.0.get(at).map(|call| call.arguments.as_str()).unwrap_or_default();
        let value = |text| serde_json::from_str::<Value>(text).ok();
        let rest = match whole.strip_prefix(came) {
            Some(rest) => rest.to_owned(),
            None if whole.is_empty() || value(whole).is_some_and(|v| Some(v) == value(came)) => {
                String::new()
            }
            None => {
                let said = "a call has other arguments at its end than came before";
                return Err(ProviderError::Malformed(said.to_owned()));
            }
        };
        self.extend(at, named, &rest, pieces)
    }
}
