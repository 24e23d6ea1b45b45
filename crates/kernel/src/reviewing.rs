//! A request that waits for a person, and the policy that a person replaces.

use std::sync::PoisonError;

use fluffy_base::{Digest, Json, KernelReceipt};
use fluffy_ledger::EventType;
use fluffy_policy::{Trial, try_on};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::kernel::Waiting;
use crate::narrate::bounded;
use crate::policy_store::InForce;
use crate::review::{Approved, ask};
use crate::{CallContext, Kernel, KernelError, Question, ToolError, past, policy_update};

/// How many past decisions a new policy is tried on.
const TRIED: usize = 100;
/// The longest text of a decision that is recorded beside it.
const MAX_NOTE: usize = 2000;

impl Kernel {
    /// Asks the person. A yes is recorded, and the request judged again: what was agreed to is what
    /// must still be said.
    pub(crate) fn review(
        &self,
        context: &CallContext,
        waiting: Waiting,
    ) -> Result<KernelReceipt, KernelError> {
        let Waiting { request, record, decided, reasons, policy } = waiting;
        let Some(reviewer) = &self.reviewer else {
            return self.answer_at_once(record, Answer::denied(&decided));
        };
        let call = request.tool_call.as_ref();
        let update = call.filter(|call| call.name == policy_update::NAME);
        let (notes, phrase) = match update.map(|call| self.try_policy(&policy, &call.params)) {
            None => (self.notes(&request), None),
            Some(Ok(trial)) => (policy_update::notes(&trial), policy_update::phrase(&trial)),
            Some(Err(why)) => {
                let why = format!("nobody was asked: {why}");
                return self.answer_at_once(record, Answer::not_agreed(&decided, &why));
            }
        };
        let (request_ref, phrase) = (&request, phrase.as_deref());
        let question = Question { request: request_ref, reasons: &reasons, notes: &notes, phrase };
        match ask(&**reviewer, &question, policy.digest) {
            Err(why) => self.answer_at_once(record, Answer::not_agreed(&decided, &why)),
            Ok(approved) => {
                self.record_approval(&request.request_id, &approved)?;
                let judged = self.judge(context, request, record, Some(approved))?;
                self.follow(judged)
            }
        }
    }

    fn record_approval(&self, request_id: &str, approved: &Approved) -> Result<(), KernelError> {
        let door = self.door.hold();
        let mut record = self.event(&door, EventType::HumanDecision, "a person agreed");
        let metadata = &mut record.detail.metadata;
        metadata.insert("request", bounded(request_id, MAX_NOTE));
        metadata.insert("by", bounded(approved.by(), MAX_NOTE));
        metadata.insert("agreed_to", bounded(&approved.reasons().to_string(), MAX_NOTE));
        self.settle_event(door, record).map(drop)
    }

    /// What the last decisions would be under the policy that a call wants to put in force.
    fn try_policy(&self, in_force: &InForce, params: &Json) -> Result<Trial, String> {
        let proposed = self.read_policy(params)?;
        let past = past::decisions(self.ledger.path(), &self.registry, TRIED)
            .map_err(|error| error.to_string())?;
        Ok(try_on(self.arbiter.rules(in_force), self.arbiter.rules(&proposed), &past))
    }

    fn read_policy(&self, params: &Json) -> Result<InForce, String> {
        let path = self.policy_path.as_ref();
        let path = path.ok_or("this kernel's policy does not lie in a file")?;
        let policy = policy_update::parse(&policy_update::shown(path), params)?;
        InForce::new(&policy, &*self.extensions)
    }

    /// Writes the policy that was agreed to, and puts it in force, if the one that it was compared
    /// with still is.
    pub(crate) fn replace_policy(
        &self,
        params: &Json,
        judged_under: Option<Digest>,
    ) -> Result<Value, ToolError> {
        // One at a time: the last that is written is the one in force.
        let _updating = self.updating.lock().unwrap_or_else(PoisonError::into_inner);
        let in_force = self.read_policy(params).map_err(ToolError)?;
        let (before, after) = (self.policy.in_force().digest, in_force.digest);
        if judged_under != Some(before) {
            let text = "another policy was put in force since this one was looked at";
            return Err(ToolError(text.to_owned()));
        }
        let path = self.policy_path.as_deref();
        let written = path.zip(policy_update::content(params));
        let (path, text) =
            written.ok_or_else(|| ToolError("there is nothing to write".to_owned()))?;
        policy_update::write(path, text).map_err(|error| {
            ToolError(format!("cannot write `{}`: {error}", policy_update::shown(path)))
        })?;
        // Whoever holds the door decides: what follows this entry was judged by the new rules.
        let door = self.door.hold();
        self.policy.replace(in_force);
        let mut record = self.event(&door, EventType::PolicyUpdate, "the policy was replaced");
        record.detail.origin.policy_digest = Some(after);
        record.detail.metadata.insert("policy_before", before.to_string());
        let settled = self.settle_event(door, record);
        settled.map_err(|error| ToolError(error.to_string()))?;
        Ok(json!({ "policy": after.to_string(), "before": before.to_string() }))
    }
}
