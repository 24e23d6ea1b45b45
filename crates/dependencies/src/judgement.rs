//! Holds resolved packages against the policy.
//!
//! **Invariant.** What decides is what was resolved: names, versions and origins of the lock file, not the words of the request.

use std::collections::BTreeMap;

use fluffy_policy::{AskAbout, DependencyRules, PackagePattern};

use crate::package::{PackageOrigin, ResolvedPackage};
use crate::profile::Manager;
use crate::similar::similar_to;

/// How many packages a reason names.
const NAMED: usize = 8;

/// How many packages a review lists.
const LISTED: usize = 200;

/// Milliseconds of a day.
const DAY: u64 = 86_400_000;

/// What the policy makes of packages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Why they are not installed.
    pub denied: Vec<String>,
    /// Why only a person at a terminal can agree.
    pub personal: Vec<String>,
    /// Why a person is asked.
    pub asked: Vec<String>,
    /// What a person should see, line by line.
    pub notes: Vec<String>,
}

/// What became of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageChange {
    /// It was not there before.
    Added(ResolvedPackage),
    /// It was there in other versions.
    Changed {
        /// Those versions.
        from: Vec<String>,
        /// As it is now.
        to: ResolvedPackage,
    },
    /// It is not there any more.
    Removed(ResolvedPackage),
}

/// What two lock files differ in, by name.
pub fn package_changes(
    before: &[ResolvedPackage],
    after: &[ResolvedPackage],
) -> Vec<PackageChange> {
    let mut known: BTreeMap<&str, Vec<&ResolvedPackage>> = BTreeMap::new();
    for package in before {
        known.entry(&package.name).or_default().push(package);
    }
    let mut changes = Vec::new();
    for package in after {
        match known.get(package.name.as_str()) {
            None => changes.push(PackageChange::Added(package.clone())),
            Some(versions) if versions.iter().any(|it| it.version == package.version) => {}
            Some(versions) => {
                let from = versions.iter().map(|it| it.version.clone()).collect();
                changes.push(PackageChange::Changed { from, to: package.clone() });
            }
        }
    }
    let gone = before.iter().filter(|old| !after.iter().any(|new| new.name == old.name));
    changes.extend(gone.cloned().map(PackageChange::Removed));
    changes
}

/// Hosts of Go modules that are known to hold code of many people. Asking for a module of any other host makes the public
/// mirror ask that host, which could be told something by the very name.
const MODULE_HOSTS: [&str; 14] = [
    "github.com",
    "gitlab.com",
    "bitbucket.org",
    "codeberg.org",
    "golang.org",
    "google.golang.org",
    "cloud.google.com",
    "gopkg.in",
    "go.uber.org",
    "go.opentelemetry.io",
    "k8s.io",
    "sigs.k8s.io",
    "honnef.co",
    "mvdan.cc",
];

/// Go modules of hosts that are not known, among those that a request or a manifest names. They are not even looked up unless
/// the policy allows them by name.
pub fn unknown_modules(names: &[String], rules: &DependencyRules) -> Vec<String> {
    let is_known = |name: &String| {
        let host = name.split('/').next().unwrap_or_default();
        MODULE_HOSTS.contains(&host)
            || rules.allow.iter().any(|pattern| pattern.matches("go", name))
    };
    names.iter().filter(|name| !is_known(name)).cloned().collect()
}

/// The modules that a `go.mod` names: required, replaced and excluded ones.
pub fn named_modules(manifest: &str) -> Vec<String> {
    let lines = manifest.lines().map(|line| line.split("//").next().unwrap_or_default());
    let words = lines
        .filter(|line| !line.trim_start().starts_with("module"))
        .flat_map(str::split_whitespace);
    let is_module = |word: &&str| {
        word.split('/').next().is_some_and(|host| host.contains('.'))
            && word.contains('/')
            && !word.starts_with('.')
    };
    words.filter(is_module).map(str::to_owned).collect()
}

/// Judges packages. `hosts` are the registries of the user's settings; `agreed` tells what a person agreed to in this session.
pub fn judge(
    manager: Manager,
    before: &[ResolvedPackage],
    packages: &[ResolvedPackage],
    rules: &DependencyRules,
    hosts: &[String],
    agreed: &dyn Fn(&ResolvedPackage) -> bool,
    now_ms: u64,
) -> Judgement {
    let ecosystem = manager.ecosystem();
    let means = |patterns: &[PackagePattern], name: &str| {
        patterns.iter().any(|pattern| pattern.matches(ecosystem, name))
    };
    let mut judgement = Judgement::default();
    let mut unknown = Vec::new();
    for package in packages {
        let id = package.id();
        if means(&rules.deny, &package.name) {
            judgement.denied.push(format!("`{id}` is denied by `dependencies.deny`"));
        }
        judgement.denied.extend(foreign(manager, package, hosts));
        if agreed(package) || means(&rules.allow, &package.name) {
            continue;
        }
        unknown.push(package);
        check_age(package, rules, now_ms, &mut judgement);
        check_licence(package, rules, &mut judgement);
        let added = !before.iter().any(|old| old.name == package.name);
        if let (true, true, Some(known)) =
            (package.direct, added, similar_to(ecosystem, &package.name))
        {
            judgement.personal.push(format!(
                "`{}` is named almost like the well-known `{known}`; if it is meant, put it into `dependencies.allow`",
                package.name
            ));
        }
    }
    if let Some(most) = rules.max_new.filter(|most| unknown.len() as u64 > *most) {
        let count = unknown.len();
        judgement.denied.push(format!(
            "{count} new packages are more than `dependencies.max_new`, which is {most}"
        ));
    }
    let named = match rules.ask {
        AskAbout::New => unknown.clone(),
        AskAbout::Always => packages.iter().collect(),
        AskAbout::Nothing => Vec::new(),
    };
    if !named.is_empty() {
        judgement.asked.push(format!(
            "{} would be installed: {}",
            counted(named.len()),
            listed(&named)
        ));
    }
    judgement.notes = notes(before, packages, rules, ecosystem, now_ms);
    judgement
}

fn counted(count: usize) -> String {
    if count == 1 { "1 package".to_owned() } else { format!("{count} packages") }
}

/// The packages that the project asks for itself come first.
fn listed(packages: &[&ResolvedPackage]) -> String {
    let mut sorted: Vec<_> = packages.iter().collect();
    sorted.sort_by_key(|package| !package.direct);
    let names: Vec<String> = sorted.iter().take(NAMED).map(|package| package.id()).collect();
    let more = packages.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

fn foreign(manager: Manager, package: &ResolvedPackage, hosts: &[String]) -> Option<String> {
    let id = package.id();
    match &package.origin {
        PackageOrigin::Registry => None,
        PackageOrigin::Host(host) => {
            let bare = host.strip_suffix(":443").unwrap_or(host);
            let known = hosts.iter().any(|it| it == host || it == bare);
            let usual = manager.default_registries().contains(&bare);
            (!known && !usual).then(|| {
                format!("`{id}` comes from `{host}`, which is no registry of your own settings")
            })
        }
        PackageOrigin::Elsewhere(place) => {
            Some(format!("`{id}` does not come from a registry: {place}"))
        }
    }
}

fn check_age(
    package: &ResolvedPackage,
    rules: &DependencyRules,
    now_ms: u64,
    judgement: &mut Judgement,
) {
    let Some(least) = rules.min_age else { return };
    let id = package.id();
    match package.published_ms {
        Some(published) if now_ms.saturating_sub(published) < least.ms() => {
            judgement.denied.push(format!(
                "`{id}` was published less than {least} ago (`dependencies.min_age`)"
            ));
        }
        Some(_) => {}
        None => judgement
            .asked
            .push(format!("the age of `{id}` is not known, and `dependencies.min_age` is set")),
    }
}

fn check_licence(package: &ResolvedPackage, rules: &DependencyRules, judgement: &mut Judgement) {
    if rules.licences.is_empty() {
        return;
    }
    let id = package.id();
    match &package.licence {
        Some(licence) if is_licensed(licence, &rules.licences) => {}
        Some(licence) => judgement.denied.push(format!(
            "`{id}` has the licence `{licence}`, which is not in `dependencies.licences`"
        )),
        None => judgement.asked.push(format!(
            "the licence of `{id}` is not known, and `dependencies.licences` is set"
        )),
    }
}

/// Whether an SPDX expression can be met with these licences. What is no expression is met by none.
fn is_licensed(expression: &str, known: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest, known, 0) == Some(true) && rest.is_empty()
}

/// How deep parentheses of a licence may go.
const MAX_PARENTHESES: usize = 8;

/// One or more parts with `OR` between them.
fn any_of(words: &mut &[&str], known: &[String], depth: usize) -> Option<bool> {
    let mut met = all_of(words, known, depth)?;
    while let [first, rest @ ..] = *words
        && first.eq_ignore_ascii_case("or")
    {
        *words = rest;
        met |= all_of(words, known, depth)?;
    }
    Some(met)
}

/// One or more parts with `AND` between them.
fn all_of(words: &mut &[&str], known: &[String], depth: usize) -> Option<bool> {
    let mut met = one_of(words, known, depth)?;
    while let [first, rest @ ..] = *words
        && first.eq_ignore_ascii_case("and")
    {
        *words = rest;
        met &= one_of(words, known, depth)?;
    }
    Some(met)
}

/// A licence, perhaps with an exception, or an expression in parentheses.
fn one_of(words: &mut &[&str], known: &[String], depth: usize) -> Option<bool> {
    match *words {
        ["(", rest @ ..] if depth < MAX_PARENTHESES => {
            *words = rest;
            let met = any_of(words, known, depth + 1)?;
            let [")", rest @ ..] = *words else { return None };
            *words = rest;
            Some(met)
        }
        ["(" | ")", ..] | [] => None,
        [name, rest @ ..] => {
            *words = rest;
            if let [with, _exception, rest @ ..] = *words
                && with.eq_ignore_ascii_case("with")
            {
                *words = rest;
            }
            Some(known.iter().any(|it| it.eq_ignore_ascii_case(name)))
        }
    }
}

/// What a person sees: each package that is new or changed, with what is known of it.
fn notes(
    before: &[ResolvedPackage],
    packages: &[ResolvedPackage],
    rules: &DependencyRules,
    ecosystem: &str,
    now_ms: u64,
) -> Vec<String> {
    let mut changes = package_changes(before, packages);
    let is_direct = |change: &PackageChange| match change {
        PackageChange::Added(it)
        | PackageChange::Changed { to: it, .. }
        | PackageChange::Removed(it) => it.direct,
    };
    changes.sort_by_key(|change| !is_direct(change));
    let line = |change: &PackageChange| match change {
        PackageChange::Added(package) => {
            format!("+ {}", described(package, rules, ecosystem, now_ms))
        }
        PackageChange::Changed { from, to } => {
            format!("~ {} (was {})", described(to, rules, ecosystem, now_ms), from.join(", "))
        }
        PackageChange::Removed(package) => format!("- {}", package.id()),
    };
    let mut notes: Vec<String> = changes.iter().take(LISTED).map(line).collect();
    if let Some(more) = changes.len().checked_sub(LISTED).filter(|more| *more > 0) {
        notes.push(format!("and {more} more"));
    }
    if changes.is_empty() {
        notes.push(format!("{}, as the lock file says", counted(packages.len())));
    }
    notes
}

fn described(
    package: &ResolvedPackage,
    rules: &DependencyRules,
    ecosystem: &str,
    now_ms: u64,
) -> String {
    let mut parts = vec![package.id()];
    parts.push(if package.direct { "direct" } else { "transitive" }.to_owned());
    if let PackageOrigin::Host(host) = &package.origin {
        parts.push(host.clone());
    }
    parts.extend(package.licence.clone());
    if let Some(published) = package.published_ms {
        let days = now_ms.saturating_sub(published) / DAY;
        parts.push(if days == 0 {
            "published today".to_owned()
        } else {
            format!("{days} days old")
        });
    }
    if package.scripts {
        let runs = rules.scripts.iter().any(|pattern| pattern.matches(ecosystem, &package.name));
        parts.push(match (ecosystem, runs) {
            ("cargo", _) => "has a build script".to_owned(),
            (_, true) => "its install script runs, without network".to_owned(),
            (_, false) => "its install script does not run".to_owned(),
        });
    }
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fluffy_policy::PolicyFile;

    const NOW: u64 = 1_700_000_000_000;

    fn package(name: &str, version: &str) -> ResolvedPackage {
        ResolvedPackage {
            direct: true,
            ..ResolvedPackage::new(name, version, PackageOrigin::Registry)
        }
    }

    fn judged(packages: &[ResolvedPackage], policy: &str) -> Judgement {
        let policy = PolicyFile::parse("p", policy).unwrap();
        judge(Manager::Npm, &[], packages, policy.dependencies(), &[], &|_| false, NOW)
    }

    #[test]
    fn new_packages_are_asked_about_once() {
        let packages = [package("express", "5.0.0")];
        let judgement = judged(&packages, "{}");
        assert_eq!(judgement.asked, ["1 package would be installed: express@5.0.0"]);
        assert_eq!(judgement.notes, ["+ express@5.0.0 · direct"]);
        let rules = DependencyRules::default();
        let agreed = |package: &ResolvedPackage| package.id() == "express@5.0.0";
        let again = judge(Manager::Npm, &packages, &packages, &rules, &[], &agreed, NOW);
        assert_eq!(again.asked, Vec::<String>::new());
        assert_eq!(
            judged(&packages, "dependencies: { allow: [express] }").asked,
            Vec::<String>::new()
        );
        assert_eq!(judged(&packages, "dependencies: { ask: never }").asked, Vec::<String>::new());
    }

    #[test]
    fn denied_foreign_young_and_unlicensed_packages_are_denied() {
        let denied = |package: ResolvedPackage, policy: &str| judged(&[package], policy).denied;
        assert!(
            denied(package("a", "1"), "dependencies: { deny: [a] }")[0]
                .contains("dependencies.deny")
        );
        let elsewhere = ResolvedPackage {
            origin: PackageOrigin::Elsewhere("git+ssh://x".to_owned()),
            ..package("a", "1")
        };
        assert!(
            denied(elsewhere, "dependencies: { allow: [a] }")[0]
                .contains("not come from a registry")
        );
        let other = ResolvedPackage {
            origin: PackageOrigin::Host("evil.example".to_owned()),
            ..package("a", "1")
        };
        assert!(denied(other, "dependencies: { ask: never }")[0].contains("`evil.example`"));
        let young = ResolvedPackage { published_ms: Some(NOW - DAY), ..package("a", "1") };
        assert!(denied(young, "dependencies: { min_age: 48h }")[0].contains("less than 48h ago"));
        let licence =
            |text: &str| ResolvedPackage { licence: Some(text.to_owned()), ..package("a", "1") };
        let policy = "dependencies: { licences: [MIT, Apache-2.0] }";
        assert!(denied(licence("GPL-3.0"), policy)[0].contains("GPL-3.0"));
        assert!(denied(licence("MIT AND GPL-3.0"), policy)[0].contains("GPL-3.0"));
        for fine in ["MIT", "(MIT OR GPL-3.0)", "MIT/Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
        {
            assert_eq!(denied(licence(fine), policy), Vec::<String>::new(), "{fine}");
        }
        assert!(denied(package("a", "1"), "dependencies: { max_new: 0 }")[0].contains("max_new"));
    }

    #[test]
    fn what_is_not_known_needs_a_person() {
        let policy = "dependencies: { ask: never, min_age: 48h, licences: [MIT] }";
        assert_eq!(judged(&[package("a", "1")], policy).asked.len(), 2);
    }

    #[test]
    fn lookalikes_need_a_person_at_a_terminal() {
        assert!(judged(&[package("expres", "1")], "{}").personal[0].contains("`express`"));
        assert_eq!(judged(&[package("express", "1")], "{}").personal, Vec::<String>::new());
        assert_eq!(
            judged(&[package("expres", "1")], "dependencies: { allow: [expres] }").personal,
            Vec::<String>::new()
        );
    }

    #[test]
    fn modules_of_unknown_hosts_are_not_looked_up() {
        let manifest = "module example.com/own\n\ngo 1.22\n\nrequire (\n\tgithub.com/a/b v1.0.0\n\tevil.example/secret v1.0.0 // indirect\n)\n\
                        replace github.com/a/b => other.example/b v1.0.0\nreplace x => ../x\n";
        let names = named_modules(manifest);
        assert_eq!(
            names,
            ["github.com/a/b", "evil.example/secret", "github.com/a/b", "other.example/b"]
        );
        let rules = |text: &str| PolicyFile::parse("p", text).unwrap().dependencies().clone();
        assert_eq!(
            unknown_modules(&names, &rules("{}")),
            ["evil.example/secret", "other.example/b"]
        );
        let allowed =
            rules("dependencies: { allow: [\"go:evil.example/*\", \"go:other.example/b\"] }");
        assert_eq!(unknown_modules(&names, &allowed), Vec::<String>::new());
    }

    #[test]
    fn changes_are_told_by_name() {
        let before = [package("a", "1"), package("b", "1")];
        let after = [package("a", "2"), package("c", "1")];
        let policy = DependencyRules::default();
        let judgement = judge(Manager::Npm, &before, &after, &policy, &[], &|_| false, NOW);
        assert_eq!(judgement.notes, ["~ a@2 · direct (was 1)", "+ c@1 · direct", "- b@1"]);
    }
}
