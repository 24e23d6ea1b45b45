//! The engine against an evaluator of a few lines that shares nothing with it but the words.
//!
//! Rule sets and requests are drawn with a fixed seed from a small vocabulary, so that rules meet
//! requests often; the rules are written as YAML and read as a user's would be.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use fluffy_policy::{Found, Isolation, PolicyFile, Strength, Verdict, decide};

use crate::judging::{Call, call, explained, policy};

const CALLS: [&str; 6] = ["fs.read", "fs.write", "fs.deep.x", "git.diff", "echo", "other"];
const CALL_PATTERNS: [&str; 7] =
    ["fs.read", "fs.write", "fs.*", "fs.deep.*", "git.diff", "*", "echo"];
const GLOBS: [&str; 10] = [
    "**",
    "src/**",
    "src/*.rs",
    "*.rs",
    ".env",
    "/.env",
    "**/gen/**",
    "docs/*",
    "Src/**",
    "src/gen",
];
const PATHS: [&str; 9] = [
    "src/a.rs",
    "src/gen/b.rs",
    ".env",
    "src/.env",
    "docs/x",
    "docs/x/y",
    "Src/A.rs",
    "src/gen",
    "DOCS/.ENV",
];
const TAGS: [&str; 3] = ["core_plugin", "trusted_write", "third_party"];
const ACTORS: [&str; 2] = ["model", "user"];
const ACTIONS: [&str; 6] = ["allow", "allow", "allow", "deny", "require_review", "pass"];

/// Numbers that look random and are the same every time (splitmix64).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    fn some<T: Copy>(&mut self, items: &[T], most: usize) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| self.of(items)).collect()
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

// --- rules, as they are drawn and written --------------------------------------------------------------

#[derive(Clone, Default)]
struct Condition {
    calls: Option<Vec<&'static str>>,
    globs: Option<Vec<&'static str>>,
    tags: Option<Vec<&'static str>>,
    actor: Option<&'static str>,
}

#[derive(Clone)]
struct Rule {
    name: String,
    action: &'static str,
    condition: Condition,
    except: Vec<Condition>,
    sandbox: bool,
    token: bool,
    size: Option<u64>,
}

fn draw_condition(draw: &mut Draw, calls: bool) -> Condition {
    let list = |mut items: Vec<&'static str>, one: &'static str| {
        items.push(one);
        items
    };
    Condition {
        calls: calls.then(|| list(draw.some(&CALL_PATTERNS, 2), draw.of(&CALL_PATTERNS))),
        globs: (!draw.one_in(3)).then(|| {
            if draw.one_in(20) { Vec::new() } else { list(draw.some(&GLOBS, 2), draw.of(&GLOBS)) }
        }),
        tags: draw.one_in(5).then(|| list(draw.some(&TAGS, 1), draw.of(&TAGS))),
        actor: draw.one_in(5).then(|| draw.of(&ACTORS)),
    }
}

fn draw_rule(draw: &mut Draw, name: String, actions: &[&'static str]) -> Rule {
    let action = draw.of(actions);
    let lets = matches!(action, "allow" | "require_review");
    let condition = draw_condition(draw, true);
    let mut except = Vec::new();
    for _ in 0..draw.below(3).saturating_sub(1) {
        let calls = draw.one_in(4);
        let mut drawn = draw_condition(draw, calls);
        if drawn.calls.is_none() && drawn.tags.is_none() && drawn.actor.is_none() {
            drawn.globs.get_or_insert(vec!["src/**"]);
        }
        except.push(drawn);
    }
    Rule {
        name,
        action,
        condition,
        except,
        sandbox: lets && draw.one_in(8),
        token: lets && draw.one_in(10),
        size: (lets && draw.one_in(8)).then_some(100),
    }
}

fn draw_rules(draw: &mut Draw) -> Vec<Rule> {
    (0..draw.below(13)).map(|n| draw_rule(draw, format!("rule-{n:02}"), &ACTIONS)).collect()
}

fn written(rules: &[Rule]) -> String {
    let list = |items: &[&str]| {
        let quoted: Vec<_> = items.iter().map(|item| format!("'{item}'")).collect();
        format!("[{}]", quoted.join(", "))
    };
    let condition = |it: &Condition| {
        let keys = [
            it.calls.as_ref().map(|calls| format!("syscall: {}", list(calls))),
            it.globs.as_ref().map(|globs| format!("path_glob: {}", list(globs))),
            it.tags.as_ref().map(|tags| format!("caller_tag: {}", list(tags))),
            it.actor.map(|actor| format!("actor: {actor}")),
        ];
        format!("{{ {} }}", keys.into_iter().flatten().collect::<Vec<_>>().join(", "))
    };
    if rules.is_empty() {
        return " []".to_owned();
    }
    rules.iter().fold(String::new(), |mut text, rule| {
        write!(text, "\n  - name: {}\n    match: {}", rule.name, condition(&rule.condition))
            .unwrap();
        write!(text, "\n    action: {}", rule.action).unwrap();
        let constraints = [
            rule.sandbox.then(|| "require_sandbox: L2".to_owned()),
            rule.token.then(|| "require_capability_token: true".to_owned()),
            rule.size.map(|size| format!("max_file_size: {size}")),
        ];
        let constraints: Vec<_> = constraints.into_iter().flatten().collect();
        if !constraints.is_empty() {
            write!(text, "\n    constraints: {{ {} }}", constraints.join(", ")).unwrap();
        }
        if !rule.except.is_empty() {
            text += "\n    except:";
            rule.except.iter().for_each(|it| write!(text, "\n      - {}", condition(it)).unwrap());
        }
        text
    })
}

fn draw_call(draw: &mut Draw) -> Call {
    let mut paths = draw.some(&PATHS, 3);
    if draw.one_in(6) {
        paths.push(".");
    }
    let mut call = call(draw.of(&CALLS), &paths).by(draw.of(&ACTORS));
    call.caller.tags = draw.some(&TAGS, 2).into_iter().map(str::to_owned).collect();
    call.caller.wants_token = draw.one_in(3);
    call.subject.isolation = draw.of(&[Isolation::Kernel, Isolation::Sandbox]);
    call.subject.file_bytes = draw.of(&[None, Some(100), Some(101)]);
    call
}

// --- the naive evaluator -------------------------------------------------------------------------------

/// Segment by segment, every way that stars could go.
fn glob_matches(glob: &str, path: &str) -> bool {
    let rooted = if glob.contains('/') { glob.to_owned() } else { format!("**/{glob}") };
    let glob: Vec<_> = rooted.trim_start_matches('/').split('/').collect();
    segments_match(&glob, &path.split('/').collect::<Vec<_>>())
}

/// The same from a table: there are few globs and few paths.
fn matches(glob: &str, path: &str, small: bool) -> bool {
    static TABLE: std::sync::LazyLock<Vec<[bool; 2]>> = std::sync::LazyLock::new(|| {
        let pairs = GLOBS.iter().flat_map(|glob| PATHS.iter().map(move |path| (*glob, *path)));
        pairs
            .map(|(glob, path)| {
                let small = glob_matches(&glob.to_lowercase(), &path.to_lowercase());
                [glob_matches(glob, path), small]
            })
            .collect()
    });
    let row = GLOBS.iter().position(|it| *it == glob).unwrap();
    let column = PATHS.iter().position(|it| *it == path).unwrap();
    TABLE[row * PATHS.len() + column][usize::from(small)]
}

fn segments_match(glob: &[&str], path: &[&str]) -> bool {
    match (glob, path) {
        ([], []) => true,
        (["**", rest @ ..], _) => {
            (0..=path.len()).any(|skipped| segments_match(rest, &path[skipped..]))
        }
        ([segment, rest @ ..], [name, names @ ..]) => {
            let fits = match segment.split_once('*') {
                None => segment == name,
                Some((start, end)) => {
                    name.len() >= start.len() + end.len()
                        && name.starts_with(start)
                        && name.ends_with(end)
                }
            };
            fits && segments_match(rest, names)
        }
        ([], _) | (_, []) => false,
    }
}

#[derive(Clone, Copy)]
enum Place<'a> {
    Nothing,
    Root,
    Path(&'a str),
}

fn holds(condition: &Condition, call: &Call, place: Place<'_>, small: bool) -> bool {
    let tool = &call.request.tool_call.as_ref().unwrap().name;
    let calls = condition.calls.as_ref().is_none_or(|patterns| {
        patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => tool.starts_with(start),
            None => pattern == tool,
        })
    });
    let globs = condition.globs.as_ref().is_none_or(|globs| match place {
        Place::Nothing => false,
        Place::Root => globs.contains(&"**"),
        Place::Path(path) => globs.iter().any(|glob| matches(glob, path, small)),
    });
    let tags = condition
        .tags
        .as_ref()
        .is_none_or(|tags| tags.iter().any(|tag| call.caller.tags.contains(*tag)));
    calls && globs && tags && condition.actor.is_none_or(|actor| actor == call.request.actor)
}

fn applies(rule: &Rule, call: &Call, place: Place<'_>, small: bool) -> bool {
    let readings: &[bool] = match rule.action {
        "allow" if matches!(place, Place::Path(_)) => &[false, true],
        _ => &[small],
    };
    let excepted = |except| readings.iter().any(|small| holds(except, call, place, *small));
    holds(&rule.condition, call, place, small) && !rule.except.iter().any(excepted)
}

/// What one rule says to one place.
fn said(rule: &Rule, call: &Call, place: Place<'_>) -> Strength {
    let objects = matches!(rule.action, "deny" | "require_review");
    let is_path = matches!(place, Place::Path(_));
    let careless = objects && is_path && applies(rule, call, place, true);
    if !careless && !applies(rule, call, place, false) {
        return Strength::Pass;
    }
    let unmet = (rule.sandbox && call.subject.isolation == Isolation::Kernel)
        || (rule.token && !call.caller.wants_token)
        || rule.size.is_some_and(|most| call.subject.file_bytes.is_some_and(|size| size > most));
    match rule.action {
        "deny" => Strength::Deny,
        "pass" => Strength::Pass,
        _ if unmet => Strength::Deny,
        "allow" => Strength::Allow,
        _ => Strength::Review,
    }
}

/// What is decided, and which rules are named for it.
fn expected(rules: &[Rule], call: &Call) -> (Strength, BTreeSet<String>) {
    let mut places: Vec<_> =
        call.subject.paths.iter().map(|path| Place::Path(path.as_str())).collect();
    if call.subject.root {
        places.push(Place::Root);
    }
    if places.is_empty() {
        places.push(Place::Nothing);
    }
    let of_place = |place: &Place<'_>| {
        rules.iter().map(|rule| said(rule, call, *place)).max().unwrap_or(Strength::Pass)
    };
    let strengths: Vec<_> = places.iter().map(of_place).collect();
    let decided = if strengths.contains(&Strength::Deny) {
        Strength::Deny
    } else if strengths.contains(&Strength::Pass) {
        return (Strength::Deny, BTreeSet::from(["default".to_owned()]));
    } else {
        strengths.into_iter().max().unwrap()
    };
    let names = rules
        .iter()
        .filter(|rule| places.iter().any(|place| said(rule, call, *place) == decided))
        .map(|rule| rule.name.clone());
    let names = if decided == Strength::Allow {
        names.min().into_iter().collect()
    } else {
        names.collect()
    };
    (decided, names)
}

// --- properties ----------------------------------------------------------------------------------------

fn judged(policy: &PolicyFile, call: &Call) -> Verdict {
    let own = policy.rules();
    decide(own.iter().map(|rule| &**rule), &call.facts()).verdict
}

fn told(verdict: &Verdict) -> (Strength, BTreeSet<String>) {
    let names = match verdict.reasons() {
        Some(reasons) => reasons.iter().map(|reason| reason.rule().to_owned()).collect(),
        None => verdict.source().iter().map(|source| source.rule().to_owned()).collect(),
    };
    (verdict.strength(), names)
}

fn shown(rules: &[Rule], call: &Call) -> String {
    format!("{}\n{:?} {:?} {:?}", written(rules), call.request, call.subject, call.caller)
}

#[test]
fn a_hundred_thousand_requests_are_decided_as_the_naive_evaluator_decides_them() {
    let draw = &mut Draw(1);
    let calls: Vec<_> = (0..5_000).map(|_| draw_call(draw)).collect();
    let mut seen = std::collections::BTreeMap::<_, usize>::new();
    for _ in 0..500 {
        let rules = draw_rules(draw);
        let policy = policy(&written(&rules));
        let own = policy.rules();
        for _ in 0..200 {
            let call = &calls[draw.below(calls.len())];
            let verdict = decide(own.iter().map(|rule| &**rule), &call.facts()).verdict;
            let expected = expected(&rules, call);
            assert_eq!(told(&verdict), expected, "{}", shown(&rules, call));
            *seen.entry(expected.0).or_default() += 1;
        }
    }
    assert!(seen.values().all(|times| *times > 5_000), "too few of a kind: {seen:?}");
}

#[test]
fn the_index_and_the_rules_asked_one_by_one_agree() {
    let draw = &mut Draw(2);
    for _ in 0..150 {
        let rules = draw_rules(draw);
        let policy = policy(&written(&rules));
        for _ in 0..30 {
            let call = draw_call(draw);
            let explained = explained(&policy, &[], &call);
            let mut of_target = std::collections::BTreeMap::<_, Strength>::new();
            for look in &explained.looks {
                let strength = match &look.found {
                    Found::Applies(verdict) => verdict.strength(),
                    Found::Differs(_) | Found::Excepted => Strength::Pass,
                };
                let seen = of_target.entry(&look.target).or_insert(Strength::Pass);
                *seen = strength.max(*seen);
            }
            let strengths: Vec<_> = of_target.into_values().collect();
            let one_by_one = if strengths.contains(&Strength::Deny) {
                Strength::Deny
            } else if strengths.contains(&Strength::Pass) || strengths.is_empty() {
                Strength::Pass
            } else {
                strengths.into_iter().max().unwrap()
            };
            let by_index =
                explained.opinions.iter().find(|said| said.rule == "capabilities").unwrap();
            assert_eq!(by_index.verdict.strength(), one_by_one, "{}", shown(&rules, &call));
        }
    }
}

#[test]
fn the_order_in_a_file_changes_neither_verdict_nor_reasons_nor_digest() {
    let draw = &mut Draw(3);
    // Lines are part of the reasons, and naturally differ.
    let without_lines = |verdict: &Verdict| {
        let texts: Vec<_> = verdict
            .to_string()
            .split("policy.yaml:")
            .map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned())
            .collect();
        texts.concat()
    };
    for _ in 0..150 {
        let rules = draw_rules(draw);
        let mut shuffled = rules.clone();
        draw.shuffle(&mut shuffled);
        for rule in &mut shuffled {
            draw.shuffle(&mut rule.except);
            rule.condition.globs.iter_mut().for_each(|globs| draw.shuffle(globs));
        }
        let (one, other) = (policy(&written(&rules)), policy(&written(&shuffled)));
        assert_eq!(one.digest(), other.digest(), "{}", written(&rules));
        for _ in 0..30 {
            let call = draw_call(draw);
            let (one, other) = (judged(&one, &call), judged(&other, &call));
            assert_eq!(told(&one), told(&other), "{}", shown(&rules, &call));
            assert_eq!(without_lines(&one), without_lines(&other));
        }
    }
}

/// How far a verdict lets a call go.
fn openness(verdict: &Verdict) -> u8 {
    match verdict.strength() {
        Strength::Pass | Strength::Deny => 0,
        Strength::Review => 1,
        Strength::Allow => 2,
    }
}

/// Draws rule sets, adds one rule of these actions, and hands over what was and what is decided.
fn with_one_more(seed: u64, actions: &[&'static str], check: fn(&Verdict, &Verdict) -> bool) {
    let draw = &mut Draw(seed);
    for _ in 0..150 {
        let rules = draw_rules(draw);
        let mut more = rules.clone();
        let at = draw.below(rules.len() + 1);
        more.insert(at, draw_rule(draw, "one-more".to_owned(), actions));
        let (before, after) = (policy(&written(&rules)), policy(&written(&more)));
        for _ in 0..40 {
            let call = draw_call(draw);
            let (before, after) = (judged(&before, &call), judged(&after, &call));
            assert!(check(&before, &after), "{before} -> {after}: {}", shown(&more, &call));
        }
    }
}

#[test]
fn adding_a_deny_never_widens() {
    with_one_more(4, &["deny"], |before, after| openness(after) <= openness(before));
}

#[test]
fn adding_any_rule_but_an_allow_never_makes_a_call_allowed() {
    with_one_more(5, &["deny", "require_review", "pass"], |before, after| {
        openness(after) < 2 || openness(before) == 2
    });
}

#[test]
fn adding_a_pass_changes_nothing() {
    with_one_more(6, &["pass"], |before, after| told(before) == told(after));
}
