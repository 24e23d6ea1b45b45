//! Where a rule wants a person: asked, heard, recorded; and tokens, which spare no such question.

use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::{Arc, Mutex};

use fluffy_base::{KernelReceipt, KernelRequest, ProjectPath, Span, VirtualClock};
use fluffy_kernel::{
    CallContext, Effect, IssueError, Kernel, KernelConfig, Presented, Question, Review, Reviewer,
    Scope, Tool, ToolError, ToolSpec,
};
use fluffy_policy::{
    ContainerId, DEFAULT_TOKEN_TTL, Glob, Isolation, Part, Peer, Shape, TokenId, TokenScope,
    shape_of,
};
use serde_json::{Value, json};

use crate::lab::{ALLOWED, DENIED, Lab, Reach, Runs, UNFIT, call, detail, ends, error};

/// Alice writes to `src`, and to `docs` with a token; deletions are reviewed, secrets are denied.
const RULES: &str = "
version: 1
jurisdiction: { allowed_actors: [alice], allowed_tools: ['*'] }
capabilities:
  - { name: write, match: { syscall: fs.write, path_glob: ['src/**'] }, action: allow }
  - { name: docs, match: { syscall: fs.write, path_glob: ['docs/**'] }, action: allow, constraints: { require_capability_token: true } }
  - { name: look-first, match: { syscall: fs.delete, path_glob: ['src/**'] }, action: require_review, reason: deleting is final }
  - { name: no-secrets, match: { syscall: fs.*, path_glob: ['src/secrets/**'] }, action: deny }
";

/// A tool by the shape of one of ours that counts its runs.
struct Shaped {
    name: &'static str,
    runs: Runs,
}

impl Tool for Shaped {
    fn spec(&self) -> ToolSpec {
        let shape = shape_of(self.name).map_or(Shape::PLAIN, |shape| *shape);
        let schema = json!({
            "type": "object",
            "properties": { "path": { "type": "string" }, "content": { "type": "string" } },
            "required": ["path"],
            "additionalProperties": false,
        });
        let (name, summary) = (self.name.into(), "counts".into());
        ToolSpec { name, summary, schema, effect: Effect::Some, shape }
    }

    fn run(&self, _: &fluffy_base::Json, _: &dyn fluffy_kernel::Clerk) -> Result<Value, ToolError> {
        Ok(json!(self.runs.add()))
    }
}

/// Answers what it was told to answer, and remembers what it was asked.
#[derive(Clone)]
pub(crate) struct Person {
    pub(crate) says: fn(&Question<'_>) -> Review,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

impl Person {
    pub(crate) fn new(says: fn(&Question<'_>) -> Review) -> Self {
        Self { says, asked: Arc::default() }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Reviewer for Person {
    fn review(&self, question: &Question<'_>) -> Review {
        let mut text = question.reasons.to_string();
        for note in question.notes {
            text += &format!("\n{note}");
        }
        self.asked.lock().unwrap().push(text);
        (self.says)(question)
    }
}

pub(crate) fn yes(question: &Question<'_>) -> Review {
    Review::Approved {
        by: "zoe".to_owned(),
        phrase: question.phrase.map(str::to_owned),
        scope: Scope::Once,
    }
}

pub(crate) fn plain_yes(_: &Question<'_>) -> Review {
    Review::Approved { by: "zoe".to_owned(), phrase: None, scope: Scope::Once }
}

pub(crate) fn no(_: &Question<'_>) -> Review {
    Review::Refused { by: "zoe".to_owned(), words: None }
}

fn config(lab: &Lab, runs: &Runs) -> KernelConfig {
    let mut config = lab.config_with(RULES, vec![]);
    for name in ["fs.write", "fs.delete"] {
        config.registry.register(Box::new(Shaped { name, runs: runs.clone() })).unwrap();
    }
    config.kept = vec![(ProjectPath::parse("docs/state").unwrap(), Part::State)];
    config
}

fn write(id: &str, path: &str) -> KernelRequest {
    call(id, "fs.write", &format!(r#"{{"path":"{path}","content":"x"}}"#))
}

fn delete(id: &str) -> KernelRequest {
    call(id, "fs.delete", r#"{"path":"src/a.rs"}"#)
}

fn events(lab: &Lab) -> Vec<String> {
    lab.entries().iter().map(|record| detail(record).event.into_owned()).collect()
}

#[test]
fn nobody_there_is_a_refusal() {
    let (lab, runs) = (Lab::new(), Runs::default());
    let kernel = Kernel::boot(config(&lab, &runs)).unwrap();
    let receipt = kernel.submit(delete("r"));
    assert_eq!((ends(&receipt), runs.count()), (DENIED, 0));
    assert!(error(&receipt).contains("deleting is final"), "{receipt:?}");
    assert!(error(&receipt).contains("a person has to review this, and none is here"));
}

#[test]
fn a_yes_is_recorded_before_the_call_runs_and_a_no_runs_nothing() {
    for (says, outcome, ran) in [(yes as fn(&Question<'_>) -> Review, ALLOWED, 1), (no, DENIED, 0)]
    {
        let (lab, runs, person) = (Lab::new(), Runs::default(), Person::new(says));
        let mut config = config(&lab, &runs);
        config.reviewer = Some(Box::new(person.clone()));
        let kernel = Kernel::boot(config).unwrap();
        let receipt = kernel.submit(delete("r"));
        assert_eq!((ends(&receipt), runs.count()), (outcome, ran), "{receipt:?}");
        assert_eq!(person.asked().len(), 1);
        assert!(person.asked()[0].starts_with("deleting is final (rule `look-first`"));
        kernel.close().unwrap();
        let told = events(&lab);
        if ran == 1 {
            let at = |event: &str| told.iter().position(|told| told == event).unwrap();
            assert!(at("human_decision") < at("tool_execute"), "{told:?}");
            assert!(at("tool_execute") < at("tool_result"), "{told:?}");
            let entries = lab.entries();
            let allowed = detail(&entries[at("tool_execute")]);
            assert_eq!(allowed.policy_decision.as_deref(), Some("review_required"));
            assert_eq!((allowed.deny_reason, &*allowed.metadata["approved_by"]), (None, "zoe"));
        } else {
            assert!(error(&receipt).contains("(reviewed: zoe refused)"), "{receipt:?}");
            assert!(!told.contains(&"tool_execute".to_owned()));
        }
        lab.verify();
    }
}

#[test]
fn what_is_denied_or_allowed_is_asked_of_nobody() {
    let (lab, runs, person) = (Lab::new(), Runs::default(), Person::new(yes));
    let mut config = config(&lab, &runs);
    config.reviewer = Some(Box::new(person.clone()));
    let kernel = Kernel::boot(config).unwrap();
    assert_eq!(ends(&kernel.submit(write("r1", "src/a.rs"))), ALLOWED);
    assert_eq!(ends(&kernel.submit(write("r2", "src/secrets/a"))), DENIED);
    assert_eq!(ends(&kernel.submit(write("r3", "docs/a"))), DENIED);
    assert_eq!(person.asked(), Vec::<String>::new());
}

#[test]
fn a_person_who_panics_has_agreed_to_nothing() {
    let (lab, runs) = (Lab::new(), Runs::default());
    let mut config = config(&lab, &runs);
    config.reviewer = Some(Box::new(Person::new(|_| panic!("on purpose"))));
    let kernel = Kernel::boot(config).unwrap();
    let receipt = kernel.submit(delete("r"));
    assert_eq!((ends(&receipt), runs.count()), (DENIED, 0));
    assert!(error(&receipt).contains("could not be asked"), "{receipt:?}");
}

/// Replaces the policy while the person looks at the first question.
struct Meddler {
    reach: Reach,
    policy: String,
}

impl Reviewer for Meddler {
    fn review(&self, question: &Question<'_>) -> Review {
        let tool = question.request.tool_call.as_ref().map(|call| call.name.as_str());
        if tool != Some("policy.update") {
            let params = json!({ "content": self.policy }).to_string();
            let receipt = self.reach.kernel().submit(call("meddle", "policy.update", &params));
            assert_eq!(ends(&receipt), ALLOWED, "{receipt:?}");
        }
        yes(question)
    }
}

#[test]
fn what_was_agreed_to_must_still_be_said_when_it_runs() {
    let stricter = RULES.replace("deleting is final", "deleting is very final");
    let denying = RULES.replace("action: require_review", "action: deny");
    for policy in [stricter, denying] {
        let (lab, runs, reach) = (Lab::new(), Runs::default(), Reach::default());
        let mut config = config(&lab, &runs);
        config.policy_path = Some(lab.file("policy.yaml"));
        config.reviewer = Some(Box::new(Meddler { reach: reach.clone(), policy }));
        let kernel = reach.connect(Kernel::boot(config).unwrap());
        let receipt = kernel.submit(delete("r"));
        assert_eq!((ends(&receipt), runs.count()), (DENIED, 0), "{receipt:?}");
        drop(kernel);
        lab.verify();
    }
}

// --- tokens at the door -------------------------------------------------------------------------

fn peer(pid: u32) -> Peer {
    Peer { container: ContainerId::parse("c1").unwrap(), pid: NonZeroU32::new(pid).unwrap() }
}

fn scope(glob: &str, max_ops: u32) -> TokenScope {
    TokenScope {
        syscall: "fs.write".to_owned(),
        paths: vec![Glob::parse(glob).unwrap()],
        max_ops: NonZeroU32::new(max_ops).unwrap(),
        ttl: DEFAULT_TOKEN_TTL,
        max_file_size: None,
    }
}

fn showing(id: TokenId, nonce: u64, pid: u32) -> CallContext {
    let token = Presented { id, nonce: NonZeroU64::new(nonce).unwrap() };
    CallContext { peer: Some(peer(pid)), token: Some(token), ..CallContext::default() }
}

struct Desk {
    lab: Lab,
    runs: Runs,
    kernel: Kernel,
    token: TokenId,
}

impl Desk {
    /// A kernel that has issued a token for two writes to `docs` to process 7.
    fn new() -> Self {
        Self::with_clock(VirtualClock::new(1_000, 5))
    }

    fn with_clock(clock: VirtualClock) -> Self {
        let (lab, runs) = (Lab::new(), Runs::default());
        let mut config = config(&lab, &runs);
        config.clock = Arc::new(clock);
        let kernel = Kernel::boot(config).unwrap();
        let context = CallContext::default();
        let wanted = write("w", "docs/a");
        let token = kernel.issue_token(&context, peer(7), &wanted, scope("docs/**", 2)).unwrap();
        Self { lab, runs, kernel, token: token.id }
    }

    fn ask(&self, nonce: u64, pid: u32, request: KernelRequest) -> KernelReceipt {
        self.kernel.submit_from(&showing(self.token, nonce, pid), request)
    }

    fn refused_token(&self) -> Option<String> {
        let last = self.lab.last();
        detail(&last).metadata.get("token_refused").map(ToString::to_string)
    }
}

#[test]
fn case_08_a_valid_token_stands_for_the_rules_of_the_file() {
    let desk = Desk::new();
    let receipt = desk.ask(1, 7, write("r", "docs/a.md"));
    assert_eq!(ends(&receipt), ALLOWED, "{receipt:?}");
    assert!(receipt.rule.unwrap().starts_with("token-"));
    let without = desk.kernel.submit(write("r", "docs/a.md"));
    assert_eq!(ends(&without), DENIED);
}

#[test]
fn aud_1_a_token_that_expired_is_told_once_in_the_ledger() {
    let desk = Desk::with_clock(VirtualClock::new(1_000, 60_000));
    for _ in 0..2 {
        desk.ask(1, 7, write("r", "docs/a.md"));
        assert_eq!(desk.refused_token().as_deref(), Some("the token has expired"));
    }
    desk.kernel.close().unwrap();
    let events = desk.lab.entries();
    let expired =
        |record: &&fluffy_ledger::StoredRecord| detail(record).event == "capability_expired";
    let told: Vec<_> = events.iter().filter(expired).collect();
    let [told] = told.as_slice() else { panic!("{told:?}") };
    assert!(detail(told).metadata["token"].starts_with("token-"));
    desk.lab.verify();
}

#[test]
fn case_07_no_token_stands_for_a_built_in_rule() {
    let desk = Desk::new();
    for path in [".fluffy/policy.yaml", ".git/hooks/x", "docs/state/ledger.db"] {
        let receipt = desk.ask(1, 7, write("r", path));
        assert_eq!(ends(&receipt), DENIED, "{path}");
        assert!(receipt.rule.unwrap().starts_with("builtin."), "{path}");
    }
    // Nor for the jurisdiction; and none of these attempts took anything from the holder.
    let mut stranger = write("r", "docs/a");
    stranger.actor = "mallory".to_owned();
    assert_eq!(ends(&desk.ask(1, 7, stranger)), DENIED);
    assert_eq!(ends(&desk.ask(1, 7, write("r", "docs/a"))), ALLOWED);
    assert_eq!(desk.runs.count(), 1);
}

#[test]
fn lesson_l11_a_failed_attempt_burns_nothing_of_the_holders() {
    let desk = Desk::new();
    assert_eq!(ends(&desk.ask(9, 8, write("r", "docs/a"))), DENIED);
    assert_eq!(desk.refused_token().unwrap(), "the token belongs to another process");
    let unfit = call("r", "fs.write", r#"{"path":"docs/a","content":"x","more":1}"#);
    assert_eq!(ends(&desk.ask(9, 7, unfit)), UNFIT);
    assert_eq!(ends(&desk.ask(9, 7, call("r", "fs.write", r#"{"path":"../a"}"#))), DENIED);
    for nonce in [1, 2] {
        assert_eq!(ends(&desk.ask(nonce, 7, write("r", "docs/a"))), ALLOWED, "{nonce}");
    }
    assert_eq!(ends(&desk.ask(3, 7, write("r", "docs/a"))), DENIED);
    assert_eq!(desk.refused_token().unwrap(), "the token's operations are used up");
}

#[test]
fn a_token_that_does_not_hold_leaves_the_call_to_the_rules() {
    let desk = Desk::new();
    assert_eq!(ends(&desk.ask(5, 7, write("r", "docs/a"))), ALLOWED);
    for (path, outcome) in [("docs/a", DENIED), ("src/a.rs", ALLOWED)] {
        let receipt = desk.ask(5, 7, write("r", path));
        assert_eq!(ends(&receipt), outcome, "{path}");
        if outcome == DENIED {
            assert!(desk.refused_token().unwrap().contains("nonce 5 was used already"));
        }
    }
    // The clock moves by a minute with every look at it.
    let late = Desk::with_clock(VirtualClock::new(1_000, 60_000));
    assert_eq!(ends(&late.ask(1, 7, write("r", "docs/a"))), DENIED);
    assert_eq!(late.refused_token().unwrap(), "the token has expired");
    assert_eq!(ends(&late.ask(1, 7, write("r", "src/a.rs"))), ALLOWED);
}

#[test]
fn lesson_l12_a_token_is_issued_only_for_what_the_rules_allow() {
    let (lab, runs) = (Lab::new(), Runs::default());
    let kernel = Kernel::boot(config(&lab, &runs)).unwrap();
    let context = CallContext::default();
    let issue = |request: &KernelRequest, glob: &str| {
        kernel.issue_token(&context, peer(7), request, scope(glob, 1)).map(drop)
    };
    let mut stranger = write("w", "src/a.rs");
    stranger.actor = "mallory".to_owned();
    let blank = KernelRequest { intent: String::new(), ..write("w", "src/a.rs") };
    for request in [
        write("w", "etc/a"),
        write("w", "src/secrets/a"),
        write("w", ".fluffy/policy.yaml"),
        write("w", "../a"),
        delete("w"),
        stranger,
        blank,
        call("w", "policy.update", r#"{"content":""}"#),
        call("w", "token.issue", "{}"),
    ] {
        let refused = issue(&request, "**");
        assert!(matches!(refused, Err(IssueError::Denied(_))), "{request:?}: {refused:?}");
    }
    let outside = issue(&write("w", "src/a.rs"), "docs/**");
    assert!(matches!(outside, Err(IssueError::Outside)), "{outside:?}");
    // `src` as a whole is not allowed: there are secrets in it.
    for wide in ["**", "src/**", "*.rs"] {
        let refused = issue(&write("w", "src/a.rs"), wide);
        assert!(matches!(refused, Err(IssueError::TooWide(_))), "{wide}: {refused:?}");
    }
    assert!(issue(&write("w", "src/a.rs"), "src/a.rs").is_ok());
    assert!(issue(&write("w", "docs/a"), "docs/**").is_ok());
    kernel.halt("enough").unwrap();
    assert!(matches!(issue(&write("w", "docs/a"), "docs/**"), Err(IssueError::Denied(_))));
    let long = TokenScope { ttl: Span::from_ms(0), ..scope("src/**", 1) };
    let refused = kernel.issue_token(&context, peer(7), &write("w", "src/a.rs"), long);
    assert!(refused.is_err());
}

#[test]
fn what_is_known_of_the_sender_is_recorded_with_the_decision() {
    let (lab, runs) = (Lab::new(), Runs::default());
    let kernel = Kernel::boot(config(&lab, &runs)).unwrap();
    let context = CallContext {
        tags: BTreeSet::from(["core_plugin".to_owned()]),
        mode: Some("code".to_owned()),
        workflow_state: Some("planning".to_owned()),
        ..CallContext::default()
    };
    kernel.submit_from(&context, write("r", "src/a.rs"));
    let last = lab.last();
    let told = detail(&last);
    assert_eq!(told.workflow_state.as_deref(), Some("planning"));
    assert_eq!(told.metadata["session_mode"], "code");
    assert_eq!(told.metadata["caller_tags"], r#"["core_plugin"]"#);
}

#[test]
fn lesson_l21_no_argument_of_a_call_changes_where_it_runs_or_what_a_rule_demands() {
    let sandboxed = RULES.replace(
        "path_glob: ['src/**'] }, action: allow }",
        "path_glob: ['src/**'] }, action: allow, constraints: { require_sandbox: L2 } }",
    );
    let (lab, runs) = (Lab::new(), Runs::default());
    let boot = |shape: Shape| {
        let mut config = lab.config_with(&sandboxed, vec![]);
        let tool = Declared { shape, runs: runs.clone() };
        config.registry.register(Box::new(tool)).unwrap();
        Kernel::boot(config).unwrap()
    };
    let inside = *shape_of("fs.write").unwrap();
    let kernel = boot(inside);
    assert_eq!(ends(&kernel.submit(write("r1", "src/a.rs"))), ALLOWED);
    kernel.close().unwrap();
    // The same tool declared to run in the kernel: nothing that a request says makes up for it.
    let kernel = boot(Shape { isolation: Isolation::Kernel, ..inside });
    for more in
        ["", r#","isolation":"sandbox""#, r#","sandbox":"L2""#, r#","require_sandbox":"L2""#]
    {
        let params = format!(r#"{{"path":"src/a.rs","content":"x"{more}}}"#);
        let receipt = kernel.submit(call("r2", "fs.write", &params));
        assert_eq!(ends(&receipt), DENIED, "{more}");
        assert!(error(&receipt).contains("`require_sandbox` demands"), "{receipt:?}");
    }
    assert_eq!(runs.count(), 1);
}

/// `fs.write` with a shape of the test's own.
struct Declared {
    shape: Shape,
    runs: Runs,
}

impl Tool for Declared {
    fn spec(&self) -> ToolSpec {
        let usual = Shaped { name: "fs.write", runs: self.runs.clone() };
        ToolSpec { shape: self.shape, ..usual.spec() }
    }

    fn run(&self, _: &fluffy_base::Json, _: &dyn fluffy_kernel::Clerk) -> Result<Value, ToolError> {
        Ok(json!(self.runs.add()))
    }
}
