//! Rules that no policy file can lift.
//!
//! They keep the judge out of reach of the judged: the policy, the ledger and its keys, the program
//! itself, and the repository's own machinery. Paths are compared by what a careless disk would make
//! of them: `.Fluffy`, `.FLUFFY.` and `.ﬂuffy` are `.fluffy` here.

use fluffy_base::ProjectPath;

use crate::facts::Facts;
use crate::rule::{Rule, quoted};
use crate::verdict::{Layer, Reason, Reasons, Verdict};

/// A part of the system that lies in the project and is kept from requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The policy and everything else in `.fluffy/`. May be read.
    Policy,
    /// What git keeps for itself, its hooks among it. May be read.
    Repository,
    /// The program that starts the kernel. May be read.
    Bootstrap,
    /// The kernel's own program. May be read.
    Kernel,
    /// The ledger with its keys.
    Ledger,
    /// Sessions and everything else that the kernel remembers.
    State,
}

/// The built-in rules, of which there are never more than ten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltIn {
    /// Folded paths with what lies there.
    kept: Vec<(String, Part)>,
}

/// The call that replaces the policy.
const UPDATE: &str = "policy.update";
/// The rule that a person has to agree to it.
const UPDATE_RULE: &str = "builtin.policy-update";

impl Part {
    /// Every part.
    pub const ALL: [Self; 6] =
        [Self::Policy, Self::Repository, Self::Bootstrap, Self::Kernel, Self::Ledger, Self::State];

    /// The name of the rule that protects it.
    pub const fn rule(self) -> &'static str {
        match self {
            Self::Policy => "builtin.policy-files",
            Self::Repository => "builtin.repository",
            Self::Bootstrap => "builtin.bootstrap",
            Self::Kernel => "builtin.kernel",
            Self::Ledger => "builtin.ledger",
            Self::State => "builtin.state",
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Self::Policy => "the policy",
            Self::Repository => "git's own files",
            Self::Bootstrap => "the program that starts the kernel",
            Self::Kernel => "the kernel's program",
            Self::Ledger => "the ledger",
            Self::State => "the kernel's state",
        }
    }

    const fn may_be_read(self) -> bool {
        match self {
            Self::Policy | Self::Repository | Self::Bootstrap | Self::Kernel => true,
            Self::Ledger | Self::State => false,
        }
    }

    const fn hint(self) -> &'static str {
        match self {
            Self::Policy => "propose the change to the user, who runs `fluffy policy update FILE`",
            Self::Repository => "use the git tools, or leave it to the user",
            Self::Bootstrap | Self::Kernel | Self::Ledger | Self::State => {
                "leave it alone; `fluffy audit log` shows the user what is recorded"
            }
        }
    }
}

impl BuiltIn {
    /// The names of all built-in rules.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Part::ALL.into_iter().map(Part::rule).chain([UPDATE_RULE])
    }

    /// The rules for a project in which, besides the policy and the repository, these parts lie.
    pub fn new(inside: impl IntoIterator<Item = (ProjectPath, Part)>) -> Self {
        let always = [(".fluffy", Part::Policy), (".git", Part::Repository)];
        let always = always.map(|(path, part)| (path.to_owned(), part));
        let inside = inside.into_iter().map(|(path, part)| (path.folded().into_owned(), part));
        Self { kept: always.into_iter().chain(inside).collect() }
    }

    fn objections(&self, facts: &Facts<'_>) -> impl Iterator<Item = Reason> {
        let changes = facts.subject.changes;
        facts.subject.paths.iter().flat_map(move |path| {
            let place = path.folded();
            // Who removes or replaces a folder changes what lies in it.
            let touched = self.kept.iter().filter(move |(kept, _)| {
                lies_at(&place, kept) || (changes && lies_at(kept, &place))
            });
            touched.filter(move |(_, part)| changes || !part.may_be_read()).map(|(_, part)| {
                let text = format!(
                    "`{}` is part of {} or holds it, which no request may {} ({})",
                    quoted(path.as_str()),
                    part.noun(),
                    if part.may_be_read() { "change" } else { "touch" },
                    part.rule(),
                );
                Reason::new(Layer::BuiltIn, part.rule(), &text).with_hint(part.hint())
            })
        })
    }
}

impl Rule for BuiltIn {
    fn name(&self) -> &str {
        "builtin"
    }

    fn layer(&self) -> Layer {
        Layer::BuiltIn
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        if let Some(reasons) = Reasons::collect(self.objections(facts)) {
            return Verdict::Deny(reasons);
        }
        if facts.tool() == Some(UPDATE) {
            let text = "a person has to agree to every change of the policy";
            return Verdict::review(Reason::new(Layer::BuiltIn, UPDATE_RULE, text));
        }
        Verdict::Pass
    }
}

/// Whether a place is a kept one, lies in it, or beside it as a database's log does.
fn lies_at(place: &str, kept: &str) -> bool {
    match place.strip_prefix(kept) {
        Some("") => true,
        Some(rest) => rest.starts_with('/') || (kept.ends_with(".db") && rest.starts_with('-')),
        None => false,
    }
}
