//! What rules mean, as a value that does not depend on how they are written: the policy's digest is
//! made from it. Names and reasons are part of it, lines are not.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::capabilities::Capabilities;
use crate::capability::Capability;
use crate::condition::{Condition, Syscalls};
use crate::file::{DependencyRules, Exemptions, OutputRules, PackagePattern, SkillRules};
use crate::glob::Glob;
use crate::sanitise::ResultLimit;

/// The rules by name: their order means nothing.
pub(crate) fn of_rules(capabilities: &Capabilities) -> Value {
    let mut rules: Vec<_> = capabilities.rules().iter().collect();
    rules.sort_by_key(|rule| rule.source.rule());
    rules.into_iter().map(of_rule).collect()
}

/// The exemptions by category, if there are any.
pub(crate) fn of_exemptions(exemptions: &Exemptions) -> Option<Value> {
    let of = |exemption: &crate::file::Exemption| json!({ "path_glob": of_globs(&exemption.paths), "type_only": exemption.type_only });
    let members = exemptions.iter().map(|(name, exemption)| ((*name).to_owned(), of(exemption)));
    (!exemptions.is_empty()).then(|| Value::Object(members.collect()))
}

fn of_rule(rule: &Capability) -> Value {
    let constraints = &rule.constraints;
    let mut except: Vec<_> = rule.except.iter().map(of_condition).collect();
    except.sort_by_cached_key(Value::to_string);
    except.dedup();
    json!({
        "name": rule.source.rule(),
        "action": rule.action.name(),
        "match": of_condition(&rule.condition),
        "except": except,
        "reason": rule.reason,
        "require_sandbox": constraints.require_sandbox,
        "require_capability_token": constraints.require_capability_token,
        "max_file_size": constraints.max_file_size.map(|size| size.bytes().to_string()),
    })
}

fn of_condition(condition: &Condition) -> Value {
    let calls = condition.syscalls.as_ref().map(|calls| {
        let names: BTreeSet<_> = calls.iter().map(of_syscalls).collect();
        names
    });
    let commands = condition.commands.as_ref();
    let mut meaning = json!({
        "syscall": calls,
        "path_glob": condition.paths.as_deref().map(of_globs),
        "caller_tag": condition.caller_tags,
        "actor": condition.actors,
        "session_mode": condition.modes,
        "workflow_state": condition.workflow_states,
        "command": commands.map(|commands| commands.words.iter().collect::<BTreeSet<_>>()),
    });
    // Only where it is said: a policy without skills means what it always meant.
    if let (Value::Object(members), Some(classes)) = (&mut meaning, &condition.side_effects) {
        members.insert("side_effect".to_owned(), json!(classes));
    }
    meaning
}

fn of_globs(globs: &[Glob]) -> BTreeSet<&str> {
    globs.iter().map(Glob::text).collect()
}

pub(crate) fn of_syscalls(syscalls: &Syscalls) -> String {
    match syscalls {
        Syscalls::Every => "*".to_owned(),
        Syscalls::Group(prefix) => format!("{prefix}*"),
        Syscalls::Named(name) => name.clone(),
    }
}

/// What is masked and cut in results.
pub(crate) fn of_skills(skills: &SkillRules) -> Value {
    let imports: BTreeSet<_> = skills.forbidden_imports.iter().collect();
    let calls: BTreeSet<_> = skills.forbidden_calls.iter().collect();
    let patterns: BTreeSet<_> =
        skills.patterns.iter().map(|it| [&it.name, &it.pattern, &it.why]).collect();
    json!({ "forbidden_imports": imports, "forbidden_calls": calls, "patterns": patterns })
}

pub(crate) fn of_dependencies(rules: &DependencyRules) -> Value {
    let texts = |patterns: &[PackagePattern]| -> BTreeSet<String> {
        patterns.iter().map(|pattern| pattern.text().to_owned()).collect()
    };
    json!({
        "ask": rules.ask.name(),
        "allow": texts(&rules.allow),
        "deny": texts(&rules.deny),
        "scripts": texts(&rules.scripts),
        "min_age_ms": rules.min_age.map(|age| age.ms()),
        "licences": rules.licences.iter().collect::<BTreeSet<_>>(),
        "max_new": rules.max_new,
    })
}

pub(crate) fn of_output(output: &OutputRules) -> Value {
    let limit = |limit: &ResultLimit| json!({ "keep": limit.keep.name(), "tokens": limit.tokens });
    let tools = output.limits.tools.iter().map(|(tool, of)| (tool.clone(), limit(of)));
    let secrets: BTreeSet<_> = output.secrets.iter().map(|s| [&s.name, &s.regex]).collect();
    json!({
        "others": limit(&output.limits.others),
        "tools": Value::Object(tools.collect()),
        "secrets": secrets,
    })
}
