//! Reads the rules of a policy file: the section `capabilities`.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;
use std::sync::Arc;

use fluffy_base::{ByteSize, normalised};

use crate::calls::{SIDE_EFFECTS, canonical_call};
use crate::capability::{Action, Capability, Constraints, Example, Expected};
use crate::condition::{Commands, Condition, Syscalls};
use crate::glob::Glob;
use crate::rule::quoted;
use crate::verdict::{Layer, Place, Reason, Source};
use crate::yaml::{Field, Problem};

/// Keys of a condition, in the order of [`read_condition`].
const CONDITION: [&str; 8] = [
    "syscall",
    "path_glob",
    "caller_tag",
    "actor",
    "session_mode",
    "workflow_state",
    "command",
    "side_effect",
];

/// How many rules a file may have.
const MAX_RULES: usize = 10_000;

/// How many different calls and groups of calls its rules may name.
const MAX_CALLS: usize = 1_000;

/// How often they may name one, all rules and exceptions together.
const MAX_CALLS_NAMED: usize = 100_000;

/// How many parts all globs of a file may have, braces expanded.
const MAX_GLOB_PARTS: usize = 1_000_000;

/// The same when each glob is counted once for every call that its rule applies to, as the index
/// files it.
const MAX_FILED_PARTS: usize = 4_000_000;

/// How many examples a file may have.
const MAX_EXAMPLES: usize = 10_000;

/// What was read of a file so far. A proposed policy is read before anybody has looked at it, so that
/// reading has to be cheap whoever wrote it.
#[derive(Debug, Default)]
pub(super) struct Counted {
    calls: usize,
    glob_parts: usize,
    examples: usize,
}

/// The modes of a session.
const MODES: [&str; 3] = ["strict", "explore", "debug"];

/// The states of the test-first workflow.
const STATES: [&str; 9] = [
    "idle",
    "planning",
    "test_writing",
    "code_writing",
    "validating",
    "reviewing",
    "committing",
    "exploring",
    "retroactive_testing",
];

/// What is wrong with an empty list, other than of globs.
const POINTLESS: &str = "a condition that nothing meets makes the rule pointless";

/// Reads all rules; `file` is what messages call the file.
pub(super) fn read(file: &Arc<str>, field: &Field<'_>) -> Result<Vec<Capability>, Problem> {
    let items = field.items("a list of rules")?;
    if items.len() > MAX_RULES {
        return Err(field.invalid(&format!("a policy has at most {MAX_RULES} rules")));
    }
    let mut counted = Counted::default();
    let mut names: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    let mut rules = Vec::with_capacity(items.len());
    for item in items {
        let rule = read_rule(file, &item, &mut counted)?;
        if let Some(first) = names.insert(rule.source.rule().into(), item.place().0) {
            let why = format!("the rule of line {first} has this name; names tell rules apart");
            let name = item.member("name").unwrap_or(item);
            return Err(name.invalid(&why));
        }
        rules.push(rule);
    }
    check_filed(field, &rules)?;
    Ok(rules)
}

/// Refuses what would fill the index: each rule for a group of calls or for all is filed under every
/// call that is named.
fn check_filed(field: &Field<'_>, rules: &[Capability]) -> Result<(), Problem> {
    let calls: BTreeSet<_> =
        rules.iter().flat_map(|rule| rule.condition.syscalls.iter().flatten()).collect();
    if calls.len() > MAX_CALLS {
        return Err(field.invalid(&format!("rules name at most {MAX_CALLS} different calls")));
    }
    let filed = |rule: &Capability| {
        let own = rule.condition.syscalls.as_deref().unwrap_or_default();
        let wide = own.iter().any(|call| !matches!(call, Syscalls::Named(_)));
        let times = if wide { calls.len() + 1 } else { own.len() };
        rule.condition.glob_parts().saturating_mul(times)
    };
    let parts = rules.iter().map(filed).fold(0, usize::saturating_add);
    if parts > MAX_FILED_PARTS {
        let why = "too many globs in rules for many calls; name fewer calls, or use fewer globs";
        return Err(field.invalid(&why));
    }
    Ok(())
}

fn read_rule(
    file: &Arc<str>,
    field: &Field<'_>,
    counted: &mut Counted,
) -> Result<Capability, Problem> {
    let [name, matched, action, constraints, reason, except, allows, denies] = field.fields([
        "name",
        "match",
        "action",
        "constraints",
        "reason",
        "except",
        "allows",
        "denies",
    ])?;
    let name = name.ok_or_else(|| field.missing("name", "every rule has a name"))?;
    let place = Place { file: Arc::clone(file), line: field.place().0 };
    let source = Source::new(Layer::Yaml, rule_name(&name)?).at(place);
    let action =
        action.ok_or_else(|| field.missing("action", "allow, deny, require_review or pass"))?;
    let action = read_action(&action)?;
    let matched = matched.ok_or_else(|| field.missing("match", "when the rule applies"))?;
    let condition = read_condition(&matched, action.objects(), action.objects(), counted)?;
    if condition.syscalls.is_none() {
        return Err(matched.missing("syscall", "the calls it applies to; `\"*\"` means every call"));
    }
    let except = match &except {
        Some(list) => list
            .items("a list of conditions, such as `- { path_glob: [\"tests/**\"] }`")?
            .iter()
            .map(|item| read_exception(item, action, counted))
            .collect::<Result<_, _>>()?,
        None => Vec::new(),
    };
    let constraints = constraints.map(|field| read_constraints(&field, action)).transpose()?;
    let reason = reason.map(|field| read_reason(&field)).transpose()?;
    let mut examples = read_examples(allows.as_ref(), &condition, Expected::Allows)?;
    examples.extend(read_examples(denies.as_ref(), &condition, Expected::Denies)?);
    counted.examples += examples.len();
    if counted.examples > MAX_EXAMPLES {
        return Err(field.invalid(&format!("a policy has at most {MAX_EXAMPLES} examples")));
    }
    let objection = objection(&source, action, reason.as_deref(), &except);
    let constraints = constraints.unwrap_or_default();
    Ok(Capability {
        source,
        column: field.place().1,
        action,
        condition,
        except,
        constraints,
        reason,
        objection,
        examples,
    })
}

fn rule_name<'a>(field: &Field<'a>) -> Result<&'a str, Problem> {
    let name = field.text()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 100 || !name.chars().all(plain) {
        let why = "a rule's name has 1 to 100 letters, digits, `-`, `_` or `.`";
        return Err(field.invalid(&why));
    }
    if name.starts_with("builtin.") {
        return Err(field.invalid(&"names that begin with `builtin.` are the kernel's own"));
    }
    Ok(name)
}

fn read_action(field: &Field<'_>) -> Result<Action, Problem> {
    let text = field.text()?;
    let known = Action::ALL.into_iter().find(|action| action.name() == text);
    known.ok_or_else(|| field.invalid(&"an action is allow, deny, require_review or pass"))
}

fn read_exception(
    field: &Field<'_>,
    action: Action,
    counted: &mut Counted,
) -> Result<Condition, Problem> {
    // An exception to an objection lets through, so a program counts as it is written; an exception
    // to a permission takes away.
    let condition = read_condition(field, true, !action.objects(), counted)?;
    if condition == Condition::default() {
        return Err(field.invalid(&"an empty exception would lift the rule altogether"));
    }
    Ok(condition)
}

/// Reads a condition of a rule; `careless` is whether paths are read carelessly as well, `any_folder`
/// that of [`Commands`].
fn read_condition(
    field: &Field<'_>,
    careless: bool,
    any_folder: bool,
    counted: &mut Counted,
) -> Result<Condition, Problem> {
    let [syscalls, paths, tags, actors, modes, states, commands, effects] =
        field.fields(CONDITION)?;
    let names = |field: Option<Field<'_>>| field.map(|field| read_names(&field)).transpose();
    let paths = paths.map(|field| read_globs(&field, counted)).transpose()?;
    let folded = |globs: &Vec<Glob>| globs.iter().map(Glob::folded).collect();
    Ok(Condition {
        syscalls: syscalls.map(|field| read_syscalls(&field, counted)).transpose()?,
        careless: paths.as_ref().filter(|_| careless).map(folded),
        paths,
        caller_tags: names(tags)?,
        actors: names(actors)?,
        modes: modes.map(|field| read_known(&field, &MODES)).transpose()?,
        workflow_states: states.map(|field| read_known(&field, &STATES)).transpose()?,
        commands: commands.map(|field| read_commands(&field, any_folder)).transpose()?,
        side_effects: effects.map(|field| read_known(&field, &SIDE_EFFECTS)).transpose()?,
    })
}

fn read_syscalls(field: &Field<'_>, counted: &mut Counted) -> Result<Vec<Syscalls>, Problem> {
    let items = field.one_or_more()?;
    if items.is_empty() {
        return Err(field.invalid(&"a rule for no call never applies"));
    }
    counted.calls = counted.calls.saturating_add(items.len());
    if counted.calls > MAX_CALLS_NAMED {
        return Err(field.invalid(&"the calls that the file names are too many by now"));
    }
    let mut seen = BTreeSet::new();
    let new = items.iter().filter(|(_, text)| seen.insert(*text));
    new.map(|(item, text)| read_syscall(item, text)).collect()
}

fn read_syscall(field: &Field<'_>, text: &str) -> Result<Syscalls, Problem> {
    let plain = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    if text == "*" {
        return Ok(Syscalls::Every);
    }
    match text.strip_suffix(".*") {
        Some(group) if group.split('.').all(plain) => Ok(Syscalls::Group(format!("{group}."))),
        None if text.split('.').all(plain) => Ok(Syscalls::Named(canonical_call(text).to_owned())),
        Some(_) | None => {
            Err(field.invalid(&"a call is a name such as `fs.write`, a group `fs.*`, or `*`"))
        }
    }
}

/// Globs; an empty list is possible and matches nothing, which is warned of.
pub(super) fn read_globs(field: &Field<'_>, counted: &mut Counted) -> Result<Vec<Glob>, Problem> {
    let items = field.one_or_more()?;
    let mut globs = Vec::with_capacity(items.len());
    for (item, text) in items {
        let glob = Glob::parse(text).map_err(|error| item.invalid(&error))?;
        counted.glob_parts = counted.glob_parts.saturating_add(glob.parts());
        if counted.glob_parts > MAX_GLOB_PARTS {
            return Err(item.invalid(&"the globs of the file are too many by now"));
        }
        globs.push(glob);
    }
    Ok(globs)
}

fn read_names(field: &Field<'_>) -> Result<BTreeSet<String>, Problem> {
    let items = field.one_or_more()?;
    if items.is_empty() {
        return Err(field.invalid(&POINTLESS));
    }
    let name = |(item, text): &(Field<'_>, &str)| {
        if text.trim() != *text || fluffy_base::is_blank(text) || text.contains('*') {
            return Err(
                item.invalid(&"names are compared exactly, without `*` and white space around")
            );
        }
        Ok(normalised(text).into_owned())
    };
    items.iter().map(name).collect()
}

/// Names of a closed set: one that is misspelt would never be met, and its rule protect nothing.
fn read_known(field: &Field<'_>, known: &[&str]) -> Result<BTreeSet<String>, Problem> {
    let items = field.one_or_more()?;
    if items.is_empty() {
        return Err(field.invalid(&POINTLESS));
    }
    let name = |(item, text): &(Field<'_>, &str)| {
        if known.contains(text) {
            Ok((*text).to_owned())
        } else {
            Err(item.invalid(&format!("expected one of {}", known.join(", "))))
        }
    };
    items.iter().map(name).collect()
}

fn read_commands(field: &Field<'_>, any_folder: bool) -> Result<Commands, Problem> {
    let items = field.one_or_more()?;
    if items.is_empty() {
        return Err(field.invalid(&POINTLESS));
    }
    let words = |(item, text): &(Field<'_>, &str)| {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() || text.contains(['*', '"', '\'', '|', ';', '&', '$', '`']) {
            let why =
                "a command is its first words, such as `cargo test`, without quotes or patterns";
            return Err(item.invalid(&why));
        }
        Ok(words)
    };
    Ok(Commands { words: items.iter().map(words).collect::<Result<_, _>>()?, any_folder })
}

fn read_constraints(field: &Field<'_>, action: Action) -> Result<Constraints, Problem> {
    let [sandbox, token, size] =
        field.fields(["require_sandbox", "require_capability_token", "max_file_size"])?;
    match action {
        Action::Allow | Action::RequireReview => {}
        Action::Deny | Action::Pass => {
            return Err(field.invalid(&"only a rule that lets something through can constrain it"));
        }
    }
    let sandbox = sandbox.map(|field| read_sandbox(&field)).transpose()?;
    let token = token.map(|field| field.flag()).transpose()?;
    Ok(Constraints {
        require_sandbox: sandbox.unwrap_or(false),
        require_capability_token: token.unwrap_or(false),
        max_file_size: size.map(|field| read_size(&field)).transpose()?,
    })
}

fn read_sandbox(field: &Field<'_>) -> Result<bool, Problem> {
    match field.text()? {
        "L2" => Ok(true),
        _ => Err(field.invalid(&"the only sandbox that can be demanded is `L2`")),
    }
}

fn read_size(field: &Field<'_>) -> Result<ByteSize, Problem> {
    let text = field.quantity("a size, such as `100KiB` or a number of bytes")?;
    ByteSize::from_str(&text).map_err(|error| field.invalid(&error))
}

fn read_reason(field: &Field<'_>) -> Result<String, Problem> {
    let text = field.text()?;
    if fluffy_base::is_blank(text) || text.chars().count() > 500 {
        return Err(field.invalid(&"a reason has 1 to 500 characters that can be seen"));
    }
    Ok(text.trim().to_owned())
}

fn read_examples(
    field: Option<&Field<'_>>,
    condition: &Condition,
    expected: Expected,
) -> Result<Vec<Example>, Problem> {
    let Some(field) = field else { return Ok(Vec::new()) };
    let items = field.items("a list of paths or of `{ syscall, path }`")?;
    items.iter().map(|item| read_example(item, condition, expected)).collect()
}

fn read_example(
    field: &Field<'_>,
    condition: &Condition,
    expected: Expected,
) -> Result<Example, Problem> {
    let own = condition.syscalls.iter().flatten().find_map(|syscalls| match syscalls {
        Syscalls::Named(name) => Some(name.clone()),
        Syscalls::Every | Syscalls::Group(_) => None,
    });
    let (line, column) = field.place();
    let (syscall, path) = if field.is_text() {
        (None, Some(field.text()?.to_owned()))
    } else {
        let [syscall, path] = field.fields(["syscall", "path"])?;
        let text = |field: Option<Field<'_>>| {
            field.map(|field| field.text().map(str::to_owned)).transpose()
        };
        (text(syscall)?, text(path)?)
    };
    let syscall = syscall.or(own).ok_or_else(|| {
        field.missing("syscall", "the rule names no single call that the example could be of")
    })?;
    Ok(Example { syscall, path, expected, line, column })
}

/// What the rule says when it objects: its reason, itself, and what it makes an exception of.
fn objection(
    source: &Source,
    action: Action,
    reason: Option<&str>,
    except: &[Condition],
) -> Reason {
    let plain = match action {
        Action::RequireReview => "a person has to agree",
        Action::Deny | Action::Allow | Action::Pass => "it is denied",
    };
    let text = format!("{} ({source})", quoted(reason.unwrap_or(plain)));
    let reason = Reason::of(source.clone(), &text);
    let globs: Vec<_> = except
        .iter()
        .filter_map(|except| except.paths.as_ref())
        .flatten()
        .take(4)
        .map(|glob| format!("`{}`", quoted(glob.text())))
        .collect();
    if globs.is_empty() {
        reason
    } else {
        reason.with_hint(&format!("the rule excepts {}", globs.join(", ")))
    }
}
