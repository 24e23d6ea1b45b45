//! All rules of a policy file, found by the call's name and its paths.
//!
//! A decision looks at the rules that name its call and whose globs match its path, however many
//! others there are: rules are sorted by call when the file is read, and the globs of each call are
//! one matcher.
//!
//! **Invariant.** The index only finds; what a rule says is for [`Capability`] alone. The same rules
//! asked one by one give the same verdict.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::capability::{Action, Capability};
use crate::condition::{Condition, Syscalls, Target, is_everything};
use crate::facts::Facts;
use crate::glob::{Glob, GlobIndex};
use crate::rule::{Rule, quoted};
use crate::verdict::{Layer, Strength, Verdict};

/// How many globs a message lists.
const SHOWN: usize = 4;

/// All rules of a policy file.
#[derive(Debug)]
pub struct Capabilities {
    rules: Vec<Capability>,
    /// By the call's name, for names that a rule has.
    named: HashMap<String, Bucket>,
    /// By a group's prefix, such as `fs.`, for other names of the group.
    groups: HashMap<String, Bucket>,
    /// For every other name.
    rest: Bucket,
}

/// The rules that can apply to one call.
#[derive(Debug)]
struct Bucket {
    /// Rules that ask for no path.
    anywhere: Vec<u32>,
    /// Rules whose globs stand for the root as well.
    at_root: Vec<u32>,
    by_path: GlobIndex,
    near: Near,
}

/// What a call could have asked for, made once.
#[derive(Debug, Default)]
struct Near {
    /// By the first component of an allowed glob.
    by_folder: HashMap<String, Arc<str>>,
    otherwise: Option<Arc<str>>,
}

impl Capabilities {
    pub(crate) fn new(rules: Vec<Capability>) -> Self {
        let patterns = || rules.iter().flat_map(|rule| syscalls(&rule.condition));
        let names: BTreeSet<_> = patterns().filter_map(name).collect();
        let prefixes: BTreeSet<_> = patterns().filter_map(prefix).collect();
        let bucket = |call: &str| Bucket::new(&rules, call);
        let named = names.iter().map(|name| ((*name).to_owned(), bucket(name))).collect();
        let groups = prefixes.iter().map(|group| ((*group).to_owned(), bucket(group))).collect();
        // No call has an empty name, so only rules for every call are in the last one.
        let rest = bucket("");
        Self { named, groups, rest, rules }
    }

    /// The rules, in the order in which they are written.
    pub(crate) fn rules(&self) -> &[Capability] {
        &self.rules
    }

    fn bucket(&self, syscall: &str) -> &Bucket {
        if let Some(bucket) = self.named.get(syscall) {
            return bucket;
        }
        // The longest group counts: what is said of wider ones is in it.
        let ends = syscall.rmatch_indices('.').map(|(at, _)| at + 1);
        let prefixes = ends.filter_map(|end| syscall.get(..end));
        prefixes.filter_map(|group| self.groups.get(group)).next().unwrap_or(&self.rest)
    }

    fn judge_target(&self, facts: &Facts<'_>, bucket: &Bucket, target: Target<'_>) -> Verdict {
        let mut found = Vec::new();
        match target {
            Target::Nothing => {}
            Target::Root => found.extend_from_slice(&bucket.at_root),
            Target::Path(path) => bucket.by_path.matching(path, &mut found),
        }
        let rules = bucket.anywhere.iter().chain(&found);
        rules
            .filter_map(|index| self.rules.get(*index as usize))
            .map(|rule| rule.judge_found(facts, target))
            .fold(Verdict::Pass, Verdict::join)
    }
}

impl Rule for Arc<Capabilities> {
    fn name(&self) -> &str {
        "capabilities"
    }

    fn layer(&self) -> Layer {
        Layer::Yaml
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        let Some(syscall) = facts.tool() else { return Verdict::Pass };
        let bucket = self.bucket(syscall);
        let targets = Target::of(facts);
        targets
            .map(|target| self.judge_target(facts, bucket, target))
            .reduce(together)
            .unwrap_or(Verdict::Pass)
    }

    fn alternative(&self, facts: &Facts<'_>) -> Option<Arc<str>> {
        let bucket = self.bucket(facts.tool()?);
        let folder = facts.subject.paths.first().and_then(|path| path.components().next());
        let near = folder.and_then(|folder| bucket.near.by_folder.get(folder));
        near.or(bucket.near.otherwise.as_ref()).cloned()
    }
}

/// What holds for a call of several targets: what is denied for one is denied, and what nobody allows
/// for one is not allowed.
pub(crate) fn together(a: Verdict, b: Verdict) -> Verdict {
    match (a.strength(), b.strength()) {
        (Strength::Deny, _) | (_, Strength::Deny) => a.join(b),
        (Strength::Pass, _) | (_, Strength::Pass) => Verdict::Pass,
        (Strength::Review | Strength::Allow, Strength::Review | Strength::Allow) => a.join(b),
    }
}

impl Bucket {
    /// The rules that can apply to a call; for a prefix such as `fs.`, to calls of that group which
    /// no rule names.
    fn new(rules: &[Capability], call: &str) -> Self {
        let numbered = rules
            .iter()
            .zip(0..)
            .filter(|(rule, _)| syscalls(&rule.condition).any(|syscalls| syscalls.contains(call)));
        let (mut anywhere, mut at_root) = (Vec::new(), Vec::new());
        let (mut globs, mut allowing) = (Vec::new(), Vec::new());
        for (rule, index) in numbered {
            match &rule.condition.paths {
                None => anywhere.push(index),
                Some(paths) => {
                    globs.extend(paths.iter().map(|glob| (index, glob.clone())));
                    if paths.iter().any(is_everything) {
                        at_root.push(index);
                    }
                }
            }
            if rule.action == Action::Allow {
                allowing.push(rule);
            }
        }
        let near = Near::new(call, &allowing);
        Self { anywhere, at_root, by_path: GlobIndex::new(globs), near }
    }
}

impl Near {
    fn new(call: &str, allowing: &[&Capability]) -> Self {
        let mut folders: HashMap<&str, Vec<(&Capability, &Glob)>> = HashMap::new();
        let mut all = Vec::new();
        let mut free = None;
        for rule in allowing {
            let globs = rule.condition.paths.as_deref().unwrap_or_default();
            for glob in globs {
                all.push((*rule, glob));
                let folder = glob.text().trim_start_matches('/').split('/').next().unwrap_or("");
                folders.entry(folder).or_default().push((*rule, glob));
            }
            if globs.is_empty() {
                free.get_or_insert(*rule);
            }
        }
        let list = |globs: &[(&Capability, &Glob)]| Arc::from(listed(call, globs));
        let by_folder =
            folders.iter().map(|(folder, globs)| ((*folder).to_owned(), list(globs))).collect();
        let otherwise = match free {
            Some(rule) => Some(Arc::from(format!("`{call}` on other terms ({})", rule.source))),
            None => (!all.is_empty()).then(|| list(&all)),
        };
        Self { by_folder, otherwise }
    }
}

/// "`fs.write` on `src/**` (rule `x`, policy.yaml:3), `tests/**` (…) and 7 more".
fn listed(call: &str, globs: &[(&Capability, &Glob)]) -> String {
    let shown: Vec<_> = globs
        .iter()
        .take(SHOWN)
        .map(|(rule, glob)| format!("`{}` ({})", quoted(glob.text()), rule.source))
        .collect();
    let more = match globs.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("`{call}` on {}{more}", shown.join(", "))
}

fn syscalls(condition: &Condition) -> impl Iterator<Item = &Syscalls> {
    condition.syscalls.iter().flatten()
}

fn name(syscalls: &Syscalls) -> Option<&str> {
    match syscalls {
        Syscalls::Named(name) => Some(name),
        Syscalls::Every | Syscalls::Group(_) => None,
    }
}

fn prefix(syscalls: &Syscalls) -> Option<&str> {
    match syscalls {
        Syscalls::Group(prefix) => Some(prefix),
        Syscalls::Every | Syscalls::Named(_) => None,
    }
}
