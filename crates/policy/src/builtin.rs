//! Rules that no policy file can lift.
//!
//! They keep the judge out of reach of the judged: the policy, the ledger and its keys, the program
//! itself, and the repository's own machinery. Paths are compared by what a careless disk would make
//! of them: `.Fluffy`, `.FLUFFY.` and `.ﬂuffy` are `.fluffy` here.

use std::borrow::Cow;

use fluffy_base::ProjectPath;

use crate::calls::ALWAYS_ASKED;
use crate::condition::careless;
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

/// Git's own directory: the project's, and that of any repository within it, whose hooks and
/// configuration run programs just as well.
const GIT: &str = ".git";

/// The call that replaces the policy.
const UPDATE: &str = "policy.update";
/// The rule that a person has to agree to it.
const UPDATE_RULE: &str = "builtin.policy-update";
/// The rule that a person has to agree where money moves, somebody is written to, or a skill is trusted.
const PERSON_RULE: &str = "builtin.person";
/// The steps of a skill's way, which are the user's alone.
const FORGE: &str = "forge.";
/// The rule that they are.
const FORGE_RULE: &str = "builtin.forge";
/// What is done about plugins, which is the user's alone.
const PLUGIN: &str = "plugin.";
/// The rule that it is.
const PLUGIN_RULE: &str = "builtin.plugin";
/// Those of both that a person has to agree to, with what they do.
const AGREED: [(&str, &str); 4] = [
    ("forge.promote", "a person has to agree before a skill is trusted"),
    ("forge.retry", "a person has to look at the failure before the skill is built again"),
    ("plugin.install", "a person has to agree to what a plugin asks for before it is installed"),
    ("plugin.enable", "a person has to agree before a plugin runs again that was disabled"),
];

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

    fn objection(self, path: &str, how: &str) -> Reason {
        let text = format!(
            "`{}` {how} {}, which no request may {} ({})",
            quoted(path),
            self.noun(),
            if self.may_be_read() { "change" } else { "touch" },
            self.rule(),
        );
        Reason::new(Layer::BuiltIn, self.rule(), &text).with_hint(self.hint())
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
        Part::ALL.into_iter().map(Part::rule).chain([
            UPDATE_RULE,
            PERSON_RULE,
            FORGE_RULE,
            PLUGIN_RULE,
        ])
    }

    /// The rules for a project in which, besides the policy and the repository, these parts lie.
    pub fn new(inside: impl IntoIterator<Item = (ProjectPath, Part)>) -> Self {
        let always = [(".fluffy", Part::Policy), (GIT, Part::Repository)];
        let always = always.map(|(path, part)| (path.to_owned(), part));
        let inside = inside.into_iter().map(|(path, part)| (path.folded().into_owned(), part));
        Self { kept: always.into_iter().chain(inside).collect() }
    }

    fn objections(&self, facts: &Facts<'_>) -> impl Iterator<Item = Reason> {
        let (changes, root) = (facts.subject.changes, facts.subject.root);
        let of_root = (changes && root).then(|| Part::Policy.objection(".", "holds"));
        let of_path = move |path: &ProjectPath| {
            let folded = path.folded();
            let read = match &folded {
                Cow::Borrowed(_) => None,
                Cow::Owned(_) => careless(path),
            };
            let read = read.as_ref().map(ProjectPath::as_str);
            let places = || std::iter::once(&*folded).chain(read);
            let touched = |(kept, part): &(String, Part)| {
                if !changes && part.may_be_read() {
                    None
                } else if places().any(|place| lies_at(place, kept)) {
                    Some(part.objection(path.as_str(), "belongs to"))
                } else if changes && places().any(|place| lies_at(kept, place)) {
                    Some(part.objection(path.as_str(), "holds"))
                } else {
                    None
                }
            };
            // Most paths have not even the letters, which is quicker to see.
            let nested = |place: &str| {
                place.contains("/.git") && place.split('/').skip(1).any(|name| name == GIT)
            };
            let nested = changes && places().any(nested);
            let nested = nested.then(|| Part::Repository.objection(path.as_str(), "belongs to"));
            self.kept.iter().filter_map(touched).chain(nested).collect::<Vec<_>>()
        };
        facts.subject.paths.iter().flat_map(of_path).chain(of_root)
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
        if let Some(verdict) = of_user(facts) {
            return verdict;
        }
        if let Some(class) = facts.subject.side_effect.filter(|it| ALWAYS_ASKED.contains(it)) {
            let text = format!("a person has to agree to every run of a skill of class {class}");
            return Verdict::review(Reason::new(Layer::BuiltIn, PERSON_RULE, &text));
        }
        Verdict::Pass
    }
}

/// What is said of a step of a skill's or a plugin's way: a model proposes, builds, installs and trusts nothing.
fn of_user(facts: &Facts<'_>) -> Option<Verdict> {
    let tool = facts.tool()?;
    let (rule, text, hint) = if tool.starts_with(FORGE) {
        let hint = "propose it to the user, who runs `fluffy skill`";
        (FORGE_RULE, "the steps of a skill's way are the user's alone", hint)
    } else if tool.starts_with(PLUGIN) {
        let hint = "propose it to the user, who runs `fluffy plugin`";
        (PLUGIN_RULE, "what is done about plugins is the user's alone", hint)
    } else {
        return None;
    };
    if facts.actor() != "user" {
        return Some(Verdict::deny(Reason::new(Layer::BuiltIn, rule, text).with_hint(hint)));
    }
    let (_, text) = AGREED.iter().find(|(name, _)| *name == tool)?;
    Some(Verdict::review(Reason::new(Layer::BuiltIn, PERSON_RULE, text)))
}

/// Whether a place is a kept one, lies in it, or beside it as a database's log does.
fn lies_at(place: &str, kept: &str) -> bool {
    match place.strip_prefix(kept) {
        Some("") => true,
        Some(rest) => {
            let log = matches!(rest, "-wal" | "-shm" | "-journal");
            rest.starts_with('/') || log || (kept.ends_with(".db") && rest.starts_with('-'))
        }
        None => false,
    }
}
