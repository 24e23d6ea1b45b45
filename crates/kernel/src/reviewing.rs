//! A request that waits for a person, and the policy that a person replaces.

use std::sync::PoisonError;

use fluffy_base::{Digest, Json, KernelReceipt, KernelRequest, ReceiptStatus};
use fluffy_ledger::EventType;
use fluffy_policy::{Trial, try_on};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::exception::Excepted;
use crate::grants::{Asked, Grant};
use crate::kernel::Waiting;
use crate::narrate::{self, bounded};
use crate::policy_store::InForce;
use crate::review::{Agreed, Approved, Refusal, ask};
use crate::{
    CallContext, Kernel, KernelError, Note, Question, Scope, ToolError, past, policy_update,
};

/// How many past decisions a new policy is tried on.
const TRIED: usize = 100;
/// The longest name of a request that the kernel makes for a person.
const MAX_NOTE: usize = 2000;

/// What a person is asked beside the request itself.
#[derive(Default)]
struct Briefing {
    notes: Vec<String>,
    phrase: Option<String>,
    scopes: Vec<Scope>,
    exception: Option<Excepted>,
}

impl Kernel {
    /// Asks the person. A yes is recorded, and the request judged again: what was agreed to is what
    /// must still be said.
    pub(crate) fn review(
        &self,
        context: &CallContext,
        waiting: Waiting,
    ) -> Result<KernelReceipt, KernelError> {
        let Waiting { request, subject, mut record, decided, reasons, policy } = waiting;
        let Some(reviewer) = &self.reviewer else {
            return self.answer_at_once(record, Answer::denied(&decided));
        };
        let asked = Asked {
            request: &request,
            subject: &subject,
            reasons: &reasons,
            policy: policy.digest,
        };
        let briefing = match self.brief(context, &asked, &policy) {
            Ok(briefing) => briefing,
            Err(why) => {
                let why = format!("nobody was asked: {why}");
                return self.answer_at_once(record, Answer::not_agreed(&decided, &why));
            }
        };
        let question = Question {
            request: &request,
            reasons: &reasons,
            notes: &briefing.notes,
            phrase: briefing.phrase.as_deref(),
            scopes: &briefing.scopes,
            exception: briefing.exception.as_ref().map(|it| it.diff.as_str()),
        };
        let agreed = ask(&**reviewer, &question, policy.digest)
            .and_then(|agreed| self.reach(&asked, agreed, briefing.exception.as_ref()));
        match agreed {
            Err(refusal) => {
                narrate::refused(&mut record.detail, &refusal);
                self.answer_at_once(record, Answer::said_no(&decided, &refusal))
            }
            Ok(Agreed { approved, scope }) => {
                self.record_approval(&asked, &approved, scope)?;
                let judged = self.judge(context, request, record, Some(approved))?;
                self.follow(judged)
            }
        }
    }

    /// What a person should know, and how far their yes may reach.
    fn brief(
        &self,
        context: &CallContext,
        asked: &Asked<'_>,
        policy: &InForce,
    ) -> Result<Briefing, String> {
        let call = asked.request.tool_call.as_ref();
        let update = call.filter(|call| call.name == policy_update::NAME);
        if let Some(call) = update {
            let trial = self.try_policy(policy, &call.params)?;
            let content = policy_update::content(&call.params).unwrap_or_default();
            let notes = policy_update::notes(&trial).into_iter();
            let notes = notes.chain(self.policy_diff(content)).collect();
            let (phrase, scopes) = (policy_update::phrase(&trial), vec![Scope::Once]);
            return Ok(Briefing { notes, phrase, scopes, exception: None });
        }
        let mut scopes = vec![Scope::Once];
        if self.grants.are_kept() && asked.grant(0, "").is_some() {
            scopes.push(Scope::Session);
        }
        let caller = self.caller(context, None, asked.request);
        let exception = self.excepted(asked, policy, &caller);
        scopes.extend(exception.as_ref().map(|_| Scope::Rule));
        Ok(Briefing { notes: self.notes(asked.request), phrase: None, scopes, exception })
    }

    /// Has a yes reach as far as it was meant to, before the call goes on.
    fn reach(
        &self,
        asked: &Asked<'_>,
        agreed: Agreed,
        exception: Option<&Excepted>,
    ) -> Result<Agreed, Refusal> {
        match agreed.scope {
            Scope::Once | Scope::Session => Ok(agreed),
            Scope::Rule => {
                let offered = exception.ok_or_else(|| "no exception was offered".to_owned())?;
                let policy = self.add_exception(asked.request, &offered.content)?;
                Ok(Agreed { approved: agreed.approved.under(policy), ..agreed })
            }
        }
    }

    /// Asks for the policy with an exception, as the person's own request; the digest of what is in force then.
    fn add_exception(&self, request: &KernelRequest, content: &str) -> Result<Digest, Refusal> {
        let params = Json::new(json!({ "content": content })).map_err(|it| it.to_string())?;
        let id = bounded(&format!("{}.exception", request.request_id), MAX_NOTE);
        let intent = "an exception for what was asked";
        let mut update = KernelRequest::call(&id, "user", intent, policy_update::NAME, params);
        update.ts_ms = i64::try_from(self.clock.now_ms()).unwrap_or(i64::MAX);
        let receipt = self.submit(update);
        match receipt.status {
            ReceiptStatus::Accepted => Ok(self.policy.in_force().digest),
            ReceiptStatus::Rejected | ReceiptStatus::Failed => {
                let why = receipt.error.unwrap_or_else(|| "it was refused".to_owned());
                Err(format!("the exception was not added: {why}").into())
            }
        }
    }

    /// Records a yes. One for the session is a grant, which counts once it is on disk.
    fn record_approval(
        &self,
        asked: &Asked<'_>,
        approved: &Approved,
        scope: Scope,
    ) -> Result<(), KernelError> {
        let number = (scope == Scope::Session).then(|| self.grants.next()).flatten();
        let grant = number.and_then(|number| asked.grant(number, approved.by()));
        let mut note = match &grant {
            Some(grant) => {
                crate::session::granted(grant).map_err(|error| KernelError::Note(error.0))?
            }
            None => Note {
                event: EventType::HumanDecision,
                intent: "a person agreed".to_owned(),
                request_id: None,
                workflow_state: None,
                metadata: Vec::new(),
                content: None,
            },
        };
        note.metadata.extend([
            ("request", asked.request.request_id.clone()),
            ("by", approved.by().to_owned()),
            ("agreed_to", approved.reasons().to_string()),
            ("scope", scope.name().to_owned()),
        ]);
        self.settle_note(self.door.hold(), note)?;
        if let Some(grant) = grant {
            self.grants.add(grant);
        }
        Ok(())
    }

    /// What a person agreed to for as long as the session lasts, and what counts under the policy in force.
    pub fn grants(&self) -> Vec<Grant> {
        self.grants.under(self.policy.in_force().digest)
    }

    /// Takes a grant back, as a person asks for: whatever is judged from now on is asked again. Whether there was one.
    pub fn revoke(&self, number: u64) -> Result<bool, KernelError> {
        // Whoever holds the door decides, and so nobody decides by it any more.
        let door = self.door.hold();
        let revoked = self.grants.revoke(number);
        if revoked {
            let note = crate::session::revoked(Some(number));
            self.settle_note(door, note.map_err(|error| KernelError::Note(error.0))?)?;
        }
        Ok(revoked)
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
        let ended = self.grants.end();
        let settled = self.settle_event(door, record);
        settled.map_err(|error| ToolError(error.to_string()))?;
        if ended {
            let note = crate::session::revoked(None)?;
            self.note(note).map_err(|error| ToolError(error.to_string()))?;
        }
        Ok(json!({ "policy": after.to_string(), "before": before.to_string() }))
    }
}
