//! All rules of a policy file, found by the call's name and its paths.
//!
//! A decision looks at the rules that name its call and whose globs match its path, however many
//! others there are: rules are sorted by call when the file is read, and the globs of each call are
//! one matcher.
//!
//! **Invariant.** The index only finds; what a rule says is for [`Capability`] alone. The same rules
//! asked one by one give the same verdict.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::capability::{Action, Capability};
use crate::condition::{Condition, Reading, Syscalls, Target, careless, is_everything};
use crate::facts::Facts;
use crate::glob::{Glob, GlobIndex};
use crate::rule::{Rule, quoted};
use crate::verdict::{Layer, Strength, Verdict};

/// How many globs a message lists.
const SHOWN: usize = 4;

/// The seed is fixed: only the policy's author chooses what is filed.
type Map<K, V> = HashMap<K, V, FixedState>;

/// All rules of a policy file.
#[derive(Debug)]
pub struct Capabilities {
    rules: Vec<Capability>,
    /// By the call's name, for names that a rule has.
    named: Map<String, Bucket>,
    /// By a group's prefix, such as `fs.`, for other names of the group.
    groups: Map<String, Bucket>,
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
    /// For careless readings of a path.
    careless: Careless,
    near: Near,
}

/// The rules that object, for paths as a careless disk would read them.
#[derive(Debug)]
struct Careless {
    /// Rules that ask for no path and have exceptions, which may.
    anywhere: Vec<u32>,
    /// Folded globs; nothing where there is none.
    by_path: Option<GlobIndex>,
    /// Whether a path that is read in one way only can be matched by a folded glob alone.
    folds: bool,
}

/// What a call could have asked for, made once.
#[derive(Debug, Default)]
struct Near {
    /// By the first component of an allowed glob.
    by_folder: Map<String, Arc<str>>,
    otherwise: Option<Arc<str>>,
}

impl Capabilities {
    pub(crate) fn new(rules: Vec<Capability>) -> Self {
        let patterns = || rules.iter().flat_map(|rule| syscalls(&rule.condition));
        let names = patterns().filter_map(name);
        // No call has an empty name, so only rules for every call are in the last one.
        let calls: BTreeSet<&str> =
            names.chain(patterns().filter_map(prefix)).chain([""]).collect();
        let mut filed: BTreeMap<&str, Vec<(&Capability, u32)>> =
            calls.iter().map(|call| (*call, Vec::new())).collect();
        for (rule, index) in rules.iter().zip(0..) {
            for call in calls_of(&rule.condition, &calls) {
                if let Some(bucket) = filed.get_mut(call) {
                    bucket.push((rule, index));
                }
            }
        }
        let (mut named, mut groups, mut rest) = (Map::default(), Map::default(), None);
        for (call, numbered) in filed {
            let bucket = Bucket::new(&numbered, call);
            if call.is_empty() {
                rest = Some(bucket);
            } else if call.ends_with('.') {
                groups.insert(call.to_owned(), bucket);
            } else {
                named.insert(call.to_owned(), bucket);
            }
        }
        let rest = rest.unwrap_or_else(|| Bucket::new(&[], ""));
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
        let exact = self.judge_all(facts, target, Reading::Exact, [&bucket.anywhere, &found]);
        let Target::Path(path) = target else { return exact };
        if bucket.careless.is_empty() {
            return exact;
        }
        let folded = careless(path);
        if folded.is_none() && !bucket.careless.folds {
            return exact;
        }
        let path = folded.as_ref().unwrap_or(path);
        found.clear();
        if let Some(globs) = &bucket.careless.by_path {
            globs.matching(path, &mut found);
        }
        let rules = [&bucket.careless.anywhere, &found];
        exact.join(self.judge_all(facts, Target::Path(path), Reading::Careless, rules))
    }

    fn judge_all(
        &self,
        facts: &Facts<'_>,
        target: Target<'_>,
        reading: Reading,
        rules: [&Vec<u32>; 2],
    ) -> Verdict {
        let rules = rules.into_iter().flatten();
        rules
            .filter_map(|index| self.rules.get(*index as usize))
            .map(|rule| rule.judge_found(facts, target, reading))
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
    fn new(numbered: &[(&Capability, u32)], call: &str) -> Self {
        let (mut anywhere, mut at_root, mut globs) = (Vec::new(), Vec::new(), Vec::new());
        for (rule, index) in numbered {
            match &rule.condition.paths {
                None => anywhere.push(*index),
                Some(paths) => {
                    globs.extend(paths.iter().map(|glob| (*index, glob.clone())));
                    if paths.iter().any(is_everything) {
                        at_root.push(*index);
                    }
                }
            }
        }
        let allowing: Vec<_> = numbered
            .iter()
            .filter(|(rule, _)| rule.action == Action::Allow)
            .map(|(rule, _)| *rule)
            .collect();
        let near = Near::new(&shown_call(call), &allowing);
        let careless = Careless::new(numbered);
        Self { anywhere, at_root, by_path: GlobIndex::new(globs), careless, near }
    }
}

impl Careless {
    fn new(rules: &[(&Capability, u32)]) -> Self {
        let objecting = || rules.iter().filter(|(rule, _)| rule.objects());
        let globs = |condition: &Condition| condition.careless.clone().unwrap_or_default();
        let filed: Vec<_> = objecting()
            .flat_map(|(rule, index)| globs(&rule.condition).into_iter().map(|glob| (*index, glob)))
            .collect();
        let excepting = |rule: &Capability| {
            rule.condition.paths.is_none()
                && rule.except.iter().any(|except| except.paths.is_some())
        };
        let anywhere =
            objecting().filter(|(rule, _)| excepting(rule)).map(|(_, index)| *index).collect();
        let folds = objecting().any(|(rule, _)| {
            std::iter::once(&rule.condition)
                .chain(&rule.except)
                .any(|condition| condition.careless != condition.paths)
        });
        let by_path = (!filed.is_empty()).then(|| GlobIndex::new(filed));
        Self { anywhere, by_path, folds }
    }

    fn is_empty(&self) -> bool {
        self.anywhere.is_empty() && self.by_path.is_none()
    }
}

impl Near {
    fn new(call: &str, allowing: &[&Capability]) -> Self {
        let mut folders: Map<&str, Vec<(&Capability, &Glob)>> = Map::default();
        let mut all = Vec::new();
        let mut free = None;
        for rule in allowing {
            let globs = rule.condition.paths.as_deref().unwrap_or_default();
            for glob in globs {
                all.push((*rule, glob));
                let folder = glob.text().trim_start_matches('/').split('/').next().unwrap_or("");
                folders.entry(folder).or_default().push((*rule, glob));
            }
            if rule.condition.paths.is_none() {
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

/// How a bucket's calls are told: a name, a group such as `fs.*`, or `*`.
fn shown_call(call: &str) -> String {
    if call.is_empty() || call.ends_with('.') { format!("{call}*") } else { call.to_owned() }
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

/// Those of the calls that a condition names, each once.
fn calls_of<'a>(condition: &'a Condition, calls: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    let mut named = BTreeSet::new();
    for pattern in syscalls(condition) {
        match pattern {
            Syscalls::Named(name) => {
                named.insert(name.as_str());
            }
            Syscalls::Every | Syscalls::Group(_) => {
                named.extend(calls.iter().filter(|call| pattern.contains(call)));
            }
        }
    }
    named
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
