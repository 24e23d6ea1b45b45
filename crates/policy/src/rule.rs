//! Asks every rule and joins what they say.
//!
//! **Invariant.** There is one fold, and it asks everybody: a denial carries every objection, not
//! the first one found.
//!
//! **Invariant.** [`decide`] never answers [`Verdict::Pass`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use fluffy_base::Excerpt;

use crate::facts::{Facts, Subject};
use crate::verdict::{Layer, Reason, Reasons, Source, Verdict};

/// How much of a stranger's text a reason repeats.
const EXCERPT_CHARS: usize = 100;

/// Something that judges requests. Every implementation keeps these promises:
///
/// 1. it is a pure function of the facts: the same facts give the same verdict, at any time and in
///    any order among other rules;
/// 2. it never changes anything, neither in itself nor outside;
/// 3. what it cannot judge it denies; [`Verdict::Pass`] means "not my concern", not "I do not know";
/// 4. its reasons bear its own layer and a rule name that its author would recognise;
/// 5. `name` and `layer` are constants and never fail.
///
/// A rule that panics has broken promise 3 and is counted as a denial.
pub trait Rule: Send + Sync {
    /// What people call the rule.
    fn name(&self) -> &str;

    /// Which part of the system the rule belongs to.
    fn layer(&self) -> Layer;

    /// The rule's opinion of a request.
    fn judge(&self, facts: &Facts<'_>) -> Verdict;

    /// What the rule would allow that is near to what was asked, for whoever is told no.
    fn alternative(&self, _facts: &Facts<'_>) -> Option<Arc<str>> {
        None
    }
}

/// What one rule said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opinion {
    /// The rule's layer.
    pub layer: Layer,
    /// The rule's name.
    pub rule: String,
    /// Its verdict.
    pub verdict: Verdict,
}

/// What the rules decided together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// Never [`Verdict::Pass`].
    pub verdict: Verdict,
    /// For a denial: the nearest thing that would be allowed.
    pub instead: Option<Arc<str>>,
}

/// Whether a request may proceed: every rule's opinion joined, and silence turned into denial. Of a call that starts several programs
/// each is judged as if it were the only one: one that is denied, or of which every rule is silent, denies the call.
pub fn decide<'r>(rules: impl Iterator<Item = &'r dyn Rule> + Clone, facts: &Facts<'_>) -> Decided {
    let mut programs = facts.subject.pipeline.iter();
    let Some(first) = programs.next() else { return decide_one(rules, facts) };
    let decide_program = |words: &Vec<String>| {
        let subject =
            Subject { command: Some(words.clone()), pipeline: Vec::new(), ..facts.subject.clone() };
        decide_one(rules.clone(), &Facts { subject: &subject, ..*facts })
    };
    programs.fold(decide_program(first), |joined, words| {
        let Decided { verdict, instead } = decide_program(words);
        Decided { verdict: joined.verdict.join(verdict), instead: joined.instead.or(instead) }
    })
}

/// The same for a call that starts one program at most.
///
/// Rules in another language cost a trip to another process. They are asked last and only while
/// nobody denies: a denial stays one whatever they would say.
fn decide_one<'r>(rules: impl Iterator<Item = &'r dyn Rule> + Clone, facts: &Facts<'_>) -> Decided {
    let heard = |rule: &&dyn Rule| !skipped_by_token(rule.layer(), facts);
    let late = |rule: &&dyn Rule| rule.layer() == Layer::Extension;
    let mut verdict = fold(rules.clone().filter(heard).filter(|rule| !late(rule)), facts);
    if let Some(token) = &facts.caller.token {
        verdict = verdict.join(Verdict::Allow(token.clone()));
    }
    if !matches!(verdict, Verdict::Deny(_)) {
        verdict = verdict.join(fold(rules.clone().filter(heard).filter(late), facts));
    }
    if verdict == Verdict::Pass {
        verdict = Verdict::deny(silence(facts));
    }
    let instead = match &verdict {
        Verdict::Pass | Verdict::Allow(_) | Verdict::Review(_) => None,
        Verdict::Deny(reasons) => instead(reasons, rules, facts),
    };
    Decided { verdict, instead }
}

/// Every rule's opinion joined. [`Verdict::Pass`] means that nobody had one, which allows nothing.
pub fn fold<'r>(rules: impl Iterator<Item = &'r dyn Rule>, facts: &Facts<'_>) -> Verdict {
    rules.map(|rule| ask(rule, facts)).fold(Verdict::Pass, Verdict::join)
}

/// Whether a valid token stands for what this layer would say. It was issued after a decision of the
/// policy; built-in rules, limits and the workflow are asked all the same.
fn skipped_by_token(layer: Layer, facts: &Facts<'_>) -> bool {
    facts.caller.token.is_some() && matches!(layer, Layer::Yaml | Layer::Extension)
}

/// Every rule's opinion by itself, by layer and name: the explanation of what [`fold`] answers.
pub fn evaluate_all<'r>(
    rules: impl Iterator<Item = &'r dyn Rule>,
    facts: &Facts<'_>,
) -> Vec<Opinion> {
    let mut opinions: Vec<_> = rules
        .map(|rule| Opinion {
            layer: rule.layer(),
            rule: rule.name().to_owned(),
            verdict: ask(rule, facts),
        })
        .collect();
    // Two rules of one name are told apart by what they say, so that their order is one as well.
    opinions.sort_by_cached_key(|said| (said.layer, said.rule.clone(), said.verdict.to_string()));
    opinions
}

/// The beginning of a stranger's text, safe to stand in a reason.
pub(crate) fn quoted(text: &str) -> Excerpt<'_> {
    Excerpt::new(text, EXCERPT_CHARS)
}

/// One rule's opinion; a rule that panics denies.
fn ask(rule: &dyn Rule, facts: &Facts<'_>) -> Verdict {
    // Unwind safety: a rule is only read from, and what it was computing is thrown away.
    catch_unwind(AssertUnwindSafe(|| rule.judge(facts))).unwrap_or_else(|_panic| {
        let text = format!("rule `{}` failed to evaluate", quoted(rule.name()));
        Verdict::deny(Reason::new(rule.layer(), rule.name(), &text))
    })
}

/// Made once: most denials of a model's first tries are these.
static SILENCE: LazyLock<Source> = LazyLock::new(|| Source::new(Layer::Silence, "default"));

fn silence(facts: &Facts<'_>) -> Reason {
    let mut text = String::with_capacity(160);
    text.push_str("no rule allows actor '");
    push_quoted(&mut text, facts.actor());
    match facts.tool() {
        Some(tool) => {
            text.push_str("' to run tool '");
            push_quoted(&mut text, tool);
            text.push('\'');
        }
        None => text.push_str("' to ask without a tool"),
    }
    if let Some((first, others)) = facts.subject.paths.split_first() {
        text.push_str(" on `");
        push_quoted(&mut text, first.as_str());
        text.push_str(if others.is_empty() { "`" } else { "` and the other paths" });
    }
    Reason::of(SILENCE.clone(), &text)
}

/// Adds the beginning of a stranger's text. What is short and plain needs no more care than
/// [`Reason::of`] takes.
fn push_quoted(text: &mut String, stranger: &str) {
    if stranger.len() <= EXCERPT_CHARS && stranger.bytes().all(|b| matches!(b, b' '..=b'~')) {
        text.push_str(stranger);
    } else {
        text.push_str(&quoted(stranger).to_string());
    }
}

/// What would be allowed: as the first reason has it, or else the first rule that knows of something.
fn instead<'r>(
    reasons: &Reasons,
    mut rules: impl Iterator<Item = &'r dyn Rule>,
    facts: &Facts<'_>,
) -> Option<Arc<str>> {
    let told = reasons.iter().find_map(Reason::shared_hint);
    // A rule that has nothing to say, or fails to say it, leaves the denial as it is.
    let near = |rule: &dyn Rule| catch_unwind(AssertUnwindSafe(|| rule.alternative(facts)));
    let known = told.or_else(|| rules.find_map(|rule| near(rule).unwrap_or(None)));
    known.or_else(|| {
        let keys = match facts.tool() {
            Some(_) => "`allowed_actors` and `allowed_tools`",
            None => "`allowed_actors`",
        };
        let silent = reasons.primary().layer() == Layer::Silence;
        silent.then(|| {
            let text = "a request needs a rule that allows it, such as a jurisdiction with";
            format!("{text} {keys}").into()
        })
    })
}

#[cfg(test)]
mod tests {
    use fluffy_base::{Json, KernelRequest, KernelState};
    use proptest::prelude::*;

    use super::*;
    use crate::verdict::Strength;
    use crate::verdict::tests::any_verdict;

    /// A rule that says what it was told to say.
    struct Says(&'static str, Verdict);

    impl Rule for Says {
        fn name(&self) -> &str {
            self.0
        }

        fn layer(&self) -> Layer {
            Layer::Yaml
        }

        fn judge(&self, _facts: &Facts<'_>) -> Verdict {
            self.1.clone()
        }
    }

    struct Panics;

    impl Rule for Panics {
        fn name(&self) -> &str {
            "panics"
        }

        fn layer(&self) -> Layer {
            Layer::Extension
        }

        fn judge(&self, _facts: &Facts<'_>) -> Verdict {
            panic!("on purpose")
        }
    }

    fn call() -> KernelRequest {
        KernelRequest::call("r1", "alice", "say hi", "echo", Json::empty_object())
    }

    fn said(verdicts: Vec<Verdict>) -> Vec<Box<dyn Rule>> {
        verdicts.into_iter().map(|v| Box::new(Says("says", v)) as Box<dyn Rule>).collect()
    }

    fn each(rules: &[Box<dyn Rule>]) -> impl Iterator<Item = &dyn Rule> + Clone {
        rules.iter().map(|rule| &**rule)
    }

    fn allow() -> Verdict {
        Verdict::Allow(Source::new(Layer::Yaml, "a"))
    }

    fn asked(rules: &[Box<dyn Rule>], request: &KernelRequest) -> Verdict {
        decide(each(rules), &Facts::new(request, KernelState::Idle)).verdict
    }

    #[test]
    fn what_every_rule_passes_is_denied_and_says_what_would_be_allowed() {
        for rules in [vec![], vec![Verdict::Pass, Verdict::Pass]] {
            let verdict = asked(&said(rules), &call());
            assert_eq!(
                verdict.to_string(),
                "deny: no rule allows actor 'alice' to run tool 'echo'"
            );
        }
        let facts = call();
        let decided = decide(each(&[]), &Facts::new(&facts, KernelState::Idle));
        assert!(decided.instead.unwrap().contains("`allowed_actors` and `allowed_tools`"));
        let spoken = asked(&[], &KernelRequest::intent_only("r", "bob", "hm"));
        assert_eq!(spoken.to_string(), "deny: no rule allows actor 'bob' to ask without a tool");
    }

    #[test]
    fn a_rule_that_panics_denies_even_beside_an_allow() {
        let rules: Vec<Box<dyn Rule>> = vec![Box::new(Panics), Box::new(Says("a", allow()))];
        let verdict = asked(&rules, &call());
        assert_eq!(verdict.to_string(), "deny: rule `panics` failed to evaluate");
        assert_eq!(verdict.reasons().unwrap().primary().layer(), Layer::Extension);
    }

    #[test]
    fn an_explanation_has_every_opinion_in_order() {
        let rules: Vec<Box<dyn Rule>> = vec![
            Box::new(Panics),
            Box::new(Says("b", Verdict::Pass)),
            Box::new(Says("a", allow())),
        ];
        let request = call();
        let facts = Facts::new(&request, KernelState::Idle);
        let told: Vec<_> = evaluate_all(each(&rules), &facts)
            .into_iter()
            .map(|opinion| format!("{} {} {}", opinion.layer, opinion.rule, opinion.verdict))
            .collect();
        assert_eq!(
            told,
            [
                "yaml a allow",
                "yaml b pass",
                "extension panics deny: rule `panics` failed to evaluate"
            ]
        );
    }

    #[test]
    fn hostile_names_cannot_forge_a_message() {
        let request = KernelRequest { actor: format!("x\n{}", "y".repeat(500)), ..call() };
        let text = asked(&[], &request).to_string();
        assert!(text.contains("actor 'x\\nyyy") && text.chars().count() < 200, "{text}");
    }

    proptest! {
        #[test]
        fn the_order_of_rules_never_matters(
            (verdicts, shuffled) in prop::collection::vec(any_verdict(), 0..6)
                .prop_flat_map(|v| (Just(v.clone()), Just(v).prop_shuffle())),
        ) {
            prop_assert_eq!(asked(&said(verdicts), &call()), asked(&said(shuffled), &call()));
        }

        #[test]
        fn adding_a_deny_never_widens(
            verdicts in prop::collection::vec(any_verdict(), 0..6),
            at in any::<prop::sample::Index>(),
        ) {
            let before = asked(&said(verdicts.clone()), &call());
            let mut more = verdicts;
            let deny = Verdict::deny(Reason::new(Layer::Yaml, "d", "no"));
            more.insert(at.index(more.len() + 1), deny.clone());
            let after = asked(&said(more), &call());
            prop_assert_eq!(after.strength(), Strength::Deny);
            prop_assert!(after.strength() >= before.strength());
            prop_assert_eq!(after.clone().join(deny), after);
        }

        #[test]
        fn adding_any_rule_but_an_allow_never_widens(
            verdicts in prop::collection::vec(any_verdict(), 0..6), extra in any_verdict(),
        ) {
            prop_assume!(extra.strength() != Strength::Allow);
            let before = asked(&said(verdicts.clone()), &call()).strength();
            let mut more = verdicts;
            more.push(extra.clone());
            let after = asked(&said(more), &call()).strength();
            // Silence counts as a denial, so the first wish for review lifts it to a review.
            prop_assert!(after >= before || (after, extra.strength()) == (Strength::Review, Strength::Review));
        }

        #[test]
        fn a_decision_is_never_silent(verdicts in prop::collection::vec(any_verdict(), 0..6)) {
            prop_assert!(asked(&said(verdicts), &call()).strength() > Strength::Pass);
        }

        #[test]
        fn an_explanation_joins_to_the_decision(verdicts in prop::collection::vec(any_verdict(), 0..6)) {
            let (rules, request) = (said(verdicts), call());
            let facts = Facts::new(&request, KernelState::Idle);
            let joined = evaluate_all(each(&rules), &facts)
                .into_iter()
                .fold(Verdict::Pass, |verdict, opinion| verdict.join(opinion.verdict));
            prop_assert_eq!(joined, fold(each(&rules), &facts));
        }
    }

    /// Objects to one program, allows another, and has nothing to say of the rest.
    struct OfPrograms;

    impl Rule for OfPrograms {
        fn name(&self) -> &str {
            "programs"
        }

        fn layer(&self) -> Layer {
            Layer::Yaml
        }

        fn judge(&self, facts: &Facts<'_>) -> Verdict {
            let reason = |text: &str| Reason::new(self.layer(), self.name(), text);
            match facts.subject.command.as_deref().and_then(<[String]>::first).map(|it| &**it) {
                Some("ls") => Verdict::Allow(Source::new(self.layer(), self.name())),
                Some("curl") => Verdict::review(reason("curl")),
                Some("npm") => Verdict::review(reason("npm")),
                Some("rm") => Verdict::deny(reason("rm")),
                _other => Verdict::Pass,
            }
        }
    }

    #[test]
    fn every_program_of_a_line_is_judged() {
        let request = KernelRequest::call("r", "a", "i", "shell.run", Json::empty_object());
        let verdict = |programs: &[&str]| {
            let pipeline = programs.iter().map(|name| vec![(*name).to_owned()]).collect();
            let subject = Subject { pipeline, ..Subject::default() };
            let facts = Facts::new(&request, KernelState::Idle).about(&subject);
            decide(std::iter::once(&OfPrograms as &dyn Rule), &facts).verdict
        };
        assert!(matches!(verdict(&["ls", "ls"]), Verdict::Allow(_)));
        assert!(matches!(verdict(&["ls", "rm", "curl"]), Verdict::Deny(_)));
        assert!(matches!(verdict(&["ls", "unknown"]), Verdict::Deny(_)), "silence is denial");
        let Verdict::Review(reasons) = verdict(&["curl", "ls", "npm"]) else { panic!("a review") };
        assert_eq!(reasons.iter().count(), 2, "{reasons}");
    }
}
