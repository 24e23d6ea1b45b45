//! What a rule thinks of a request, and how opinions become one.
//!
//! **Invariant.** [`Verdict::join`] is associative, commutative and idempotent: neither the verdict
//! nor its reasons depend on the order in which rules are asked.
//!
//! **Invariant.** Whoever denies or asks for review says why: [`Reasons`] is never empty.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use fluffy_base::sanitised;

/// The answer of a rule, or of many joined.
///
/// In order of strength; [`Verdict::join`] keeps the stronger of two. Joining is associative,
/// commutative and idempotent, which is why rules may be evaluated in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// No opinion.
    Pass,
    /// May proceed, unless someone objects. Of several who allow, the first is named.
    Allow(Source),
    /// May proceed once a person has agreed.
    Review(Reasons),
    /// May not proceed.
    Deny(Reasons),
}

/// A verdict without its reasons, in the order in which one beats another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    /// Of [`Verdict::Pass`].
    Pass,
    /// Of [`Verdict::Allow`].
    Allow,
    /// Of [`Verdict::Review`].
    Review,
    /// Of [`Verdict::Deny`].
    Deny,
}

/// Which part of the system a rule belongs to, in the order in which reasons are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// The request's structure.
    Validation,
    /// Whether the request says clearly what it wants.
    Ambiguity,
    /// Who may ask for what, within which limits.
    Jurisdiction,
    /// What the kernel's variant demands in addition.
    Variant,
    /// The test-first workflow.
    Workflow,
    /// Rules that no policy file can lift.
    BuiltIn,
    /// A capability token that the kernel issued.
    Token,
    /// Rules of a policy file.
    Yaml,
    /// Rules written in a programming language.
    Extension,
    /// Nobody's rule: that no rule allowed the request.
    Silence,
}

/// A rule, and where it is written.
///
/// Ordered by layer, name and place. Cheap to clone: it is part of every decision.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    layer: Layer,
    rule: Arc<str>,
    place: Option<Place>,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file, as people call it.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u64,
}

/// Why a rule does not simply let a request proceed.
///
/// Ordered by layer, rule and text. Its texts are safe to show: one line, control characters
/// escaped, known secrets masked, whatever they were made from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason {
    source: Source,
    text: Arc<str>,
    hint: Option<Arc<str>>,
}

/// One reason or more, each once, in the order of [`Reason`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reasons {
    /// Smaller than all of `rest`.
    primary: Reason,
    rest: BTreeSet<Reason>,
}

impl Verdict {
    /// A denial for one reason.
    pub fn deny(reason: Reason) -> Self {
        Self::Deny(reason.into())
    }

    /// A wish for review for one reason.
    pub fn review(reason: Reason) -> Self {
        Self::Review(reason.into())
    }

    /// The stronger of two verdicts; of two equally strong ones, the reasons of both.
    pub fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Deny(a), Self::Deny(b)) => Self::Deny(a.union(b)),
            (Self::Review(a), Self::Review(b)) => Self::Review(a.union(b)),
            (Self::Allow(a), Self::Allow(b)) => Self::Allow(a.min(b)),
            (a, b) if a.strength() < b.strength() => b,
            (a, _weaker_or_same) => a,
        }
    }

    /// Which of two verdicts wins.
    pub fn strength(&self) -> Strength {
        match self {
            Self::Pass => Strength::Pass,
            Self::Allow(_) => Strength::Allow,
            Self::Review(_) => Strength::Review,
            Self::Deny(_) => Strength::Deny,
        }
    }

    /// The rule that the verdict is recorded under: the first, by layer and name, of those that gave
    /// it its strength.
    pub fn source(&self) -> Option<&Source> {
        match self {
            Self::Pass => None,
            Self::Allow(source) => Some(source),
            Self::Review(reasons) | Self::Deny(reasons) => Some(reasons.primary().source()),
        }
    }

    /// Why, where the verdict is a review or a denial.
    pub fn reasons(&self) -> Option<&Reasons> {
        match self {
            Self::Pass | Self::Allow(_) => None,
            Self::Review(reasons) | Self::Deny(reasons) => Some(reasons),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.strength().name())?;
        match self.reasons() {
            Some(reasons) => write!(f, ": {reasons}"),
            None => Ok(()),
        }
    }
}

impl Strength {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Allow => "allow",
            Self::Review => "review",
            Self::Deny => "deny",
        }
    }
}

impl Layer {
    /// Every layer, in order.
    pub const ALL: [Self; 10] = [
        Self::Validation,
        Self::Ambiguity,
        Self::Jurisdiction,
        Self::Variant,
        Self::Workflow,
        Self::BuiltIn,
        Self::Token,
        Self::Yaml,
        Self::Extension,
        Self::Silence,
    ];

    /// The word for it, as it stands in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Validation => "validation",
            Self::Ambiguity => "ambiguity",
            Self::Jurisdiction => "jurisdiction",
            Self::Variant => "variant",
            Self::Workflow => "workflow",
            Self::BuiltIn => "built_in",
            Self::Token => "token",
            Self::Yaml => "yaml",
            Self::Extension => "extension",
            Self::Silence => "silence",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Source {
    /// The rule `rule` of a layer. Its name is made safe to show.
    pub fn new(layer: Layer, rule: &str) -> Self {
        Self { layer, rule: shared(rule), place: None }
    }

    /// The same rule, with the place where it is written.
    #[must_use]
    pub fn at(self, place: Place) -> Self {
        Self { place: Some(place), ..self }
    }

    /// Which part of the system it belongs to.
    pub fn layer(&self) -> Layer {
        self.layer
    }

    /// Its name.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Where it is written, if it is.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "rule `{}`, {place}", self.rule),
            None => write!(f, "rule `{}`", self.rule),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl Reason {
    /// A reason of the rule `rule`. Long texts of strangers are the caller's to cut.
    pub fn new(layer: Layer, rule: &str, text: &str) -> Self {
        Self::of(Source::new(layer, rule), text)
    }

    /// A reason of a rule that is known already.
    pub fn of(source: Source, text: &str) -> Self {
        Self { source, text: shared(text), hint: None }
    }

    /// The same reason, saying also what would be allowed.
    #[must_use]
    pub fn with_hint(self, hint: &str) -> Self {
        Self { hint: Some(shared(hint)), ..self }
    }

    /// Which part of the system objects.
    pub fn layer(&self) -> Layer {
        self.source.layer
    }

    /// The name of the rule that objects.
    pub fn rule(&self) -> &str {
        &self.source.rule
    }

    /// The rule that objects.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Why it objects.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What would be allowed instead, where the rule knows it.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub(crate) fn shared_hint(&self) -> Option<Arc<str>> {
        self.hint.clone()
    }
}

/// A text that is safe to show, made once and shared by every decision that repeats it.
fn shared(text: &str) -> Arc<str> {
    Arc::from(&*sanitised(text))
}

impl Reasons {
    /// The reason to tell where there is room for one: the first in order.
    pub fn primary(&self) -> &Reason {
        &self.primary
    }

    /// All reasons, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Reason> {
        std::iter::once(&self.primary).chain(&self.rest)
    }

    /// The reasons of both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        let (mut low, high) =
            if self.primary <= other.primary { (self, other) } else { (other, self) };
        if high.primary != low.primary {
            low.rest.insert(high.primary);
        }
        low.rest.extend(high.rest);
        low
    }

    /// The reasons in `reasons`, if there are any.
    pub fn collect(reasons: impl IntoIterator<Item = Reason>) -> Option<Self> {
        reasons.into_iter().map(Self::from).reduce(Self::union)
    }
}

impl From<Reason> for Reasons {
    fn from(primary: Reason) -> Self {
        Self { primary, rest: BTreeSet::new() }
    }
}

/// The texts, joined with `; `. Hints are not part of it.
impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.primary.text)?;
        self.rest.iter().try_for_each(|reason| write!(f, "; {}", reason.text))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_reason() -> impl Strategy<Value = Reason> {
        (prop::sample::select(&Layer::ALL[..]), "[ab]", "[xy]{0,2}", any::<bool>()).prop_map(
            |(layer, rule, text, hinted)| {
                let reason = Reason::new(layer, &rule, &text);
                if hinted { reason.with_hint("try") } else { reason }
            },
        )
    }

    fn any_reasons() -> impl Strategy<Value = Reasons> {
        prop::collection::vec(any_reason(), 1..4).prop_map(|r| Reasons::collect(r).unwrap())
    }

    pub(crate) fn any_verdict() -> impl Strategy<Value = Verdict> {
        prop_oneof![
            Just(Verdict::Pass),
            ("[ab]", prop::sample::select(&Layer::ALL[..]))
                .prop_map(|(rule, layer)| Verdict::Allow(Source::new(layer, &rule))),
            any_reasons().prop_map(Verdict::Review),
            any_reasons().prop_map(Verdict::Deny),
        ]
    }

    #[test]
    fn the_stronger_of_two_verdicts_wins() {
        let review = Verdict::review(Reason::new(Layer::Yaml, "r", "look"));
        let deny = Verdict::deny(Reason::new(Layer::Yaml, "d", "no"));
        let allow = Verdict::Allow(Source::new(Layer::Yaml, "a"));
        let earlier = Verdict::Allow(Source::new(Layer::BuiltIn, "z"));
        assert_eq!(Verdict::Pass.join(allow.clone()), allow);
        assert_eq!(allow.clone().join(earlier.clone()), earlier);
        assert_eq!(allow.join(review.clone()), review);
        assert_eq!(review.join(deny.clone()), deny);
    }

    #[test]
    fn reasons_are_told_in_one_order_and_once() {
        let reasons = Reasons::collect([
            Reason::new(Layer::Extension, "a", "last"),
            Reason::new(Layer::Jurisdiction, "b", "third"),
            Reason::new(Layer::Jurisdiction, "a", "second"),
            Reason::new(Layer::Jurisdiction, "a", "first"),
            Reason::new(Layer::Jurisdiction, "a", "first"),
        ])
        .unwrap();
        assert_eq!(reasons.to_string(), "first; second; third; last");
        assert_eq!(reasons.primary().text(), "first");
        assert_eq!(Verdict::Deny(reasons).to_string(), "deny: first; second; third; last");
        assert_eq!(Reasons::collect([]), None);
    }

    #[test]
    fn a_reason_is_safe_to_show_whatever_it_was_made_from() {
        let reason = Reason::new(Layer::Yaml, "a\nb", "x\u{1b}[2J").with_hint("\u{202e}y");
        assert_eq!(reason.rule(), "a\\nb");
        assert_eq!(reason.text(), "x\\u{1b}[2J");
        assert_eq!(reason.hint(), Some("\\u{202e}y"));
    }

    #[test]
    fn layers_are_listed_in_their_order_and_named_apart() {
        assert!(Layer::ALL.is_sorted());
        let names: BTreeSet<_> = Layer::ALL.iter().map(|layer| layer.name()).collect();
        assert_eq!(names.len(), Layer::ALL.len());
    }

    proptest! {
        #[test]
        fn join_is_a_semilattice(a in any_verdict(), b in any_verdict(), c in any_verdict()) {
            prop_assert_eq!(a.clone().join(a.clone()), a.clone());
            prop_assert_eq!(a.clone().join(b.clone()), b.clone().join(a.clone()));
            let left = a.clone().join(b.clone()).join(c.clone());
            prop_assert_eq!(left, a.clone().join(b.join(c)));
            prop_assert_eq!(Verdict::Pass.join(a.clone()), a);
        }

        #[test]
        fn joining_never_weakens(a in any_verdict(), b in any_verdict()) {
            let strongest = a.strength().max(b.strength());
            prop_assert_eq!(a.join(b).strength(), strongest);
        }

        #[test]
        fn reasons_are_a_sorted_set(reasons in prop::collection::vec(any_reason(), 1..8)) {
            let set: BTreeSet<_> = reasons.iter().cloned().collect();
            let collected = Reasons::collect(reasons).unwrap();
            prop_assert!(collected.iter().eq(&set));
        }
    }
}
