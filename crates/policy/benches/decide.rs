//! What a decision costs: verdict, reason, source and what would be allowed instead.
//!
//! `cargo bench --package fluffy-policy --bench decide`
//!
//! All rules are for the call that is asked about, half of them allow and half deny. The requests go
//! round over the rules, so that neither the branch predictor nor the caches know what comes next.
//! Beside `cedar-policy`: `benches/cedar/`.

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use fluffy_base::{Digest, Json, KernelRequest, KernelState, ProjectPath, SeededIds};
use fluffy_policy::{
    BuiltIn, Caller, ContainerId, DEFAULT_TOKEN_TTL, Decided, Facts, Glob, Grant, Isolation, Layer,
    PastDecision, Peer, PolicyFile, Rule, Source, Strength, Subject, TokenBook, TokenCall, TokenId,
    TokenScope, decide, try_on,
};

const RULES: [usize; 4] = [10, 100, 1_000, 10_000];
const REQUESTS: usize = 1_024;
const CALL: &str = "fs.write";
const NOW: u64 = 1_794_780_160_000;

fn main() {
    divan::main();
}

/// How all rules of a set are written; `N` is the rule's number.
#[derive(Clone, Copy)]
enum Shape {
    /// `dirN/**`
    Below,
    /// `dirN/**/*.json`
    BelowExtension,
}

/// What the answer is.
#[derive(Clone, Copy)]
enum Answer {
    Allowed,
    DeniedByRule,
    DeniedBySilence,
}

#[derive(Clone, Copy)]
struct Case(Shape, usize, Answer);

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(shape, rules, answer) = self;
        let shape = match shape {
            Shape::Below => "dirN/**",
            Shape::BelowExtension => "dirN/**/*.json",
        };
        let answer = match answer {
            Answer::Allowed => "allowed",
            Answer::DeniedByRule => "denied by a rule",
            Answer::DeniedBySilence => "denied by silence",
        };
        write!(f, "{answer}, {shape}, {rules:>5}")
    }
}

fn cases() -> impl Iterator<Item = Case> {
    let answers = [Answer::Allowed, Answer::DeniedByRule, Answer::DeniedBySilence];
    answers.into_iter().flat_map(|answer| {
        [Shape::Below, Shape::BelowExtension]
            .into_iter()
            .flat_map(move |shape| RULES.map(|rules| Case(shape, rules, answer)))
    })
}

/// Even rules allow, odd ones deny.
fn policy(shape: Shape, rules: usize) -> PolicyFile {
    let rule = |n: usize| {
        let glob = match shape {
            Shape::Below => format!("dir{n}/**"),
            Shape::BelowExtension => format!("dir{n}/**/*.json"),
        };
        let action = if n.is_multiple_of(2) { "allow" } else { "deny" };
        format!(
            "  - name: r{n}\n    match: {{ syscall: {CALL}, path_glob: ['{glob}'] }}\n    action: {action}\n"
        )
    };
    let rules: String = (0..rules).map(rule).collect();
    let heard = "jurisdiction: { allowed_actors: [model], allowed_tools: ['*'] }";
    PolicyFile::parse("policy.yaml", &format!("{heard}\ncapabilities:\n{rules}")).unwrap()
}

fn request() -> KernelRequest {
    KernelRequest::call("r", "model", "write a file", CALL, Json::empty_object())
}

fn subject(path: &str) -> Subject {
    Subject {
        paths: vec![ProjectPath::parse(path).unwrap()],
        changes: true,
        isolation: Isolation::Sandbox,
        ..Subject::default()
    }
}

/// Subjects whose answer is the case's, going round over its rules.
fn subjects(Case(_, rules, answer): Case) -> Vec<Subject> {
    let path = |n: usize| {
        let even = n.wrapping_mul(7_919) % rules / 2 * 2;
        match answer {
            Answer::Allowed => format!("dir{even}/src/part/file{n}.json"),
            Answer::DeniedByRule => format!("dir{}/src/part/file{n}.json", even + 1),
            Answer::DeniedBySilence => format!("elsewhere{even}/src/part/file{n}.json"),
        }
    };
    (0..REQUESTS).map(|n| subject(&path(n))).collect()
}

fn rules(policy: &PolicyFile) -> Vec<Box<dyn Rule>> {
    let built_in: Box<dyn Rule> = Box::new(BuiltIn::new([]));
    std::iter::once(built_in).chain(policy.rules()).collect()
}

fn ask(rules: &[Box<dyn Rule>], facts: &Facts<'_>) -> Decided {
    decide(rules.iter().map(|rule| &**rule), facts)
}

#[divan::bench(args = cases(), sample_count = 200, sample_size = 256)]
fn decision(bencher: Bencher<'_, '_>, case: Case) {
    let (rules, request) = (rules(&policy(case.0, case.1)), request());
    let subjects = subjects(case);
    let mut round = subjects.iter().cycle();
    let wanted = match case.2 {
        Answer::Allowed => Strength::Allow,
        Answer::DeniedByRule | Answer::DeniedBySilence => Strength::Deny,
    };
    for subject in &subjects {
        let facts = Facts::new(&request, KernelState::Idle).about(subject);
        assert_eq!(ask(&rules, &facts).verdict.strength(), wanted);
    }
    bencher.bench_local(|| {
        let facts = Facts::new(&request, KernelState::Idle).about(round.next().unwrap());
        ask(&rules, black_box(&facts))
    });
}

/// Check, decide, spend: what a call with a token costs, whatever the number of rules.
#[divan::bench(args = [10, 10_000], sample_count = 200, sample_size = 256)]
fn with_token(bencher: Bencher<'_, '_>, count: usize) {
    let policy = policy(Shape::Below, count);
    let (rules, request) = (rules(&policy), request());
    let subjects = subjects(Case(Shape::Below, count, Answer::Allowed));
    let peer =
        Peer { container: ContainerId::parse("box").unwrap(), pid: NonZeroU32::new(7).unwrap() };
    let id = TokenId::fresh(&SeededIds::new(1)).unwrap();
    let scope = TokenScope {
        syscall: CALL.to_owned(),
        paths: vec![Glob::parse("**").unwrap()],
        max_ops: NonZeroU32::MAX,
        ttl: DEFAULT_TOKEN_TTL,
        max_file_size: None,
    };
    let mut book = TokenBook::default();
    let digest: Digest = policy.digest();
    book.issue(NOW, Grant { policy: digest, peer: peer.clone(), scope, id }).unwrap();
    let caller = Caller {
        token: Some(Source::new(Layer::Token, "token-0123456789abcdef")),
        ..Caller::default()
    };
    let (mut round, mut nonce) = (subjects.iter().cycle(), 0);
    bencher.bench_local(|| {
        let subject = round.next().unwrap();
        nonce += 1;
        let call = TokenCall {
            token: id,
            nonce: NonZeroU64::new(nonce).unwrap(),
            syscall: CALL,
            paths: &subject.paths,
            file_size: None,
        };
        let checked = book.check(NOW, &digest, &peer, &call).unwrap();
        let facts = Facts::new(&request, KernelState::Idle).about(subject).by(&caller);
        let decided = ask(&rules, black_box(&facts));
        book.spend(checked).unwrap();
        decided
    });
}

/// 10,000 past decisions under two policies of 1,000 rules each, of which one lacks a rule.
#[divan::bench(sample_count = 20)]
fn trial(bencher: Bencher<'_, '_>) {
    let (old, new) = (policy(Shape::Below, 1_000), policy(Shape::Below, 999));
    let (old, new) = (rules(&old), rules(&new));
    let answers = [Answer::Allowed, Answer::DeniedByRule, Answer::DeniedBySilence];
    let subjects = answers.map(|answer| subjects(Case(Shape::Below, 1_000, answer))).concat();
    let past: Vec<_> = (0..10_000)
        .zip(subjects.into_iter().cycle())
        .map(|(seq, subject)| PastDecision {
            seq,
            request: request(),
            subject,
            caller: Caller::default(),
        })
        .collect();
    let each = |rules: &'static [Box<dyn Rule>]| rules.iter().map(|rule| &**rule);
    let (old, new): (&'static [_], &'static [_]) = (old.leak(), new.leak());
    bencher
        .counter(ItemsCount::new(past.len()))
        .bench_local(|| try_on(each(old), each(new), black_box(&past)));
}

/// Reading a policy, with its index, warnings and digest.
#[divan::bench(args = [100, 1_000, 10_000], sample_count = 5)]
fn load(bencher: Bencher<'_, '_>, count: usize) {
    bencher.bench_local(|| policy(Shape::BelowExtension, count));
}
