//! Tokens at the door: presented, checked, and issued after a decision.

use fluffy_base::{ByteSize, KernelRequest, KernelState, ProjectPath};
use fluffy_ledger::{Detail, EventType};
use fluffy_policy::{
    Caller, Checked, Decided, Facts, Glob, Grant, Layer, Peer, Reason, Source, Subject, Token,
    TokenCall, TokenError, TokenId, TokenRefusal, TokenScope, Verdict, decide,
};

use crate::answer::halted_text;
use crate::narrate::reason_text;
use crate::policy_store::InForce;
use crate::validation::normalise;
use crate::{CallContext, Kernel, KernelError, Note, Told};

/// Why no token is issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// The policy does not allow what the token is for.
    #[error("the policy does not allow what the token is for: {0}")]
    Denied(String),
    /// The call that was decided on is not within what the token would cover.
    #[error("the call that was decided on is outside of the token's scope")]
    Outside,
    /// The token would cover paths that the decision was not about and that rules may object to.
    #[error("a token for `{0}` would cover more than the rules allow as a whole: name the paths")]
    TooWide(String),
    /// The book refuses.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The kernel cannot record it.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

impl Kernel {
    /// Issues a token to a peer, if the policy allows the call that it is wanted for. Only the
    /// kernel's own process can ask; there is no request that does.
    pub fn issue_token(
        &self,
        context: &CallContext,
        peer: Peer,
        wanted_for: &KernelRequest,
        scope: TokenScope,
    ) -> Result<Token, IssueError> {
        if let Some(reason) = self.door.hold().halted() {
            return Err(IssueError::Denied(halted_text(reason)));
        }
        let policy = self.policy.in_force();
        let denied = |decided: &Decided| {
            let text = decided.verdict.reasons().map(reason_text);
            IssueError::Denied(text.unwrap_or_default())
        };
        let wanted_for = &normalise(wanted_for.clone());
        let subject = self.subject(wanted_for).map_err(|decided| denied(&decided))?;
        let caller = Caller { wants_token: true, ..self.caller(context, None, wanted_for) };
        let facts = Facts::new(wanted_for, KernelState::Idle).about(&subject).by(&caller);
        if let Some(decided) = self.arbiter.objection(&facts) {
            return Err(denied(&decided));
        }
        let decided = decide(self.arbiter.rules(&policy), &facts);
        if !matches!(decided.verdict, Verdict::Allow(_)) {
            return Err(denied(&decided));
        }
        let inside = |path| scope.paths.iter().any(|glob: &Glob| glob.matches(path));
        let same_call = facts.tool() == Some(scope.syscall.as_str());
        if !same_call || subject.root || !subject.paths.iter().all(inside) {
            return Err(IssueError::Outside);
        }
        if let Some(wide) = scope.paths.iter().find(|glob| !self.may_cover(&policy, &facts, glob)) {
            return Err(IssueError::TooWide(wide.text().to_owned()));
        }
        self.tell_expired(self.clock.now_ms());
        let id = TokenId::fresh(&*self.ids).ok_or(KernelError::NoRandomness)?;
        let syscall = scope.syscall.clone();
        let grant = Grant { policy: policy.digest, peer, scope, id };
        let token = self.policy.tokens().issue(self.clock.now_ms(), grant)?;
        self.record_token(&token, &syscall)?;
        Ok(token)
    }

    /// Whether a decision on one call is a decision on everything that the glob names: the path itself,
    /// or what the rules of the file allow as a whole. Rules in another language cannot tell.
    fn may_cover(&self, policy: &InForce, facts: &Facts<'_>, glob: &Glob) -> bool {
        let judged = |path: &ProjectPath| glob.text().trim_start_matches('/') == path.as_str();
        let anchored = glob.text().contains('/');
        if anchored && facts.subject.paths.iter().any(judged) {
            return true;
        }
        let foreign = self.arbiter.rules(policy).any(|rule| rule.layer() == Layer::Extension);
        let allowed = policy.capabilities.as_ref().zip(facts.tool());
        !foreign && allowed.is_some_and(|(rules, syscall)| rules.allow_all(syscall, glob))
    }

    fn record_token(&self, token: &Token, syscall: &str) -> Result<(), KernelError> {
        let door = self.door.hold();
        let mut record = self.event(&door, EventType::CapabilityIssued, "a token was issued");
        record.detail.capability_id = Some(name_of(token.id));
        record.detail.metadata.insert("syscall", syscall.to_owned());
        record.detail.metadata.insert("expires_ms", token.expires_ms.to_string());
        self.settle_event(door, record).map(drop)
    }

    /// Has it entered which tokens ended by themselves.
    pub(crate) fn tell_expired(&self, now_ms: u64) {
        for id in self.policy.tokens().newly_expired(now_ms) {
            let note = Note {
                event: EventType::CapabilityExpired,
                intent: "a token has expired".to_owned(),
                request_id: None,
                workflow_state: None,
                metadata: vec![("token", name_of(id))],
                content: None,
            };
            self.witness.keep(Told { ts_ms: now_ms, note, refused: None });
        }
    }

    /// The proof that a presented token covers the call. One that does not is noted and changes
    /// nothing: the call is judged by every rule.
    pub(crate) fn check_token(
        &self,
        context: &CallContext,
        policy: &InForce,
        request: &KernelRequest,
        subject: &Subject,
        detail: &mut Detail,
    ) -> Option<Checked> {
        let (presented, peer) = (context.token?, context.peer.as_ref()?);
        let call = TokenCall {
            token: presented.id,
            nonce: presented.nonce,
            syscall: &request.tool_call.as_ref()?.name,
            paths: &subject.paths,
            file_size: subject.file_bytes.map(ByteSize::from_bytes),
        };
        let now_ms = self.clock.now_ms();
        let checked = match self.policy.tokens().check(now_ms, &policy.digest, peer, &call) {
            Ok(_) if subject.root => {
                let text = "the whole project is more than any list of paths";
                detail.metadata.insert("token_refused", text.to_owned());
                None
            }
            Ok(checked) => Some(checked),
            Err(refusal) => {
                detail.metadata.insert("token_refused", refusal.to_string());
                None
            }
        };
        self.tell_expired(now_ms);
        if checked.is_some() {
            detail.capability_id = Some(name_of(presented.id));
        }
        checked
    }
}

impl Kernel {
    /// What the kernel knows of the sender, and of whoever's tool it calls.
    pub(crate) fn caller(
        &self,
        context: &CallContext,
        token: Option<&Checked>,
        request: &KernelRequest,
    ) -> Caller {
        let tags = self.registry.tags(request).iter().map(|tag| (*tag).to_owned());
        Caller {
            tags: context.tags.iter().cloned().chain(tags).collect(),
            mode: context.mode.clone(),
            workflow_state: context.workflow_state.clone(),
            token: token.map(|token| Source::new(Layer::Token, &name_of(token.token()))),
            wants_token: false,
        }
    }
}

/// The denial of a token that was spent between its check and its use.
pub(crate) fn unspent(refusal: &TokenRefusal) -> Decided {
    let reason = Reason::new(Layer::Token, "token", &refusal.to_string());
    Decided { verdict: Verdict::deny(reason), instead: None }
}

/// A name under which records know a token; it does not let anybody use it.
fn name_of(id: TokenId) -> String {
    let digest = fluffy_base::Digest::of(id.expose().as_bytes()).to_string();
    format!("token-{}", digest.get(..16).unwrap_or_default())
}
