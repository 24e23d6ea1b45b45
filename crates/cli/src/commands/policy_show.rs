//! `fluffy policy show`: what is in force, and where it comes from.

use fluffy_policy::{BuiltIn, PolicyFile, RuleSummary};
use serde_json::{Value, json};

use crate::args::ShowArgs;
use crate::explain::{CliError, DONE};
use crate::output::{Output, Tone};
use crate::place::Place;
use crate::policy_source::{PolicyHome, PolicySource};

pub(crate) fn run(place: &Place, args: &ShowArgs, output: &mut Output) -> Result<u8, CliError> {
    let source = PolicySource::find(place, None)?;
    if args.json {
        output.line(as_json(&source))?;
    } else {
        show(&source, output)?;
    }
    Ok(DONE)
}

fn show(source: &PolicySource, output: &mut Output) -> Result<(), CliError> {
    let policy = &source.policy;
    let rules = summaries(policy);
    output.line(format!("Policy   {}", policy.name()))?;
    output.line(format!("Digest   {}", policy.digest()))?;
    output.line(format!("Rules    {} of the file, {} built-in", rules.len(), built_in().len()))?;
    heading(output, "Built-in rules, which no policy lifts")?;
    for name in built_in() {
        output.line(format!("  {name}"))?;
    }
    heading(output, "Rules of the file")?;
    let width = rules.iter().map(|rule| rule.source.rule().len()).max().unwrap_or(0);
    for rule in &rules {
        let line = rule.source.place().map_or(0, |place| place.line);
        let globs = rule.globs.as_ref().map_or_else(String::new, |globs| globs.join(" "));
        let except = match rule.exceptions {
            0 => String::new(),
            some => format!("  ({some} except)"),
        };
        output.line(format!(
            "  {:<width$}  {:<14}  {}  {globs}{except}  line {line}",
            rule.source.rule(),
            rule.action.name(),
            rule.calls.join(" "),
        ))?;
    }
    if rules.is_empty() {
        output.line("  none: the jurisdiction alone decides")?;
    }
    show_sections(policy, output)
}

fn show_sections(policy: &PolicyFile, output: &mut Output) -> Result<(), CliError> {
    heading(output, "Extensions")?;
    for path in policy.extensions() {
        output.line(format!("  {path}"))?;
    }
    heading(output, "Exemptions from test-first work")?;
    for (category, exemption) in policy.exemptions() {
        let globs: Vec<_> = exemption.paths.iter().map(|glob| glob.text()).collect();
        let types = if exemption.type_only { "  (types only)" } else { "" };
        output.line(format!("  {category:<14}  {}{types}", globs.join(" ")))?;
    }
    heading(output, "Network")?;
    for (group, hosts) in policy.network() {
        output.line(format!("  {group}  {}", hosts.join(" ")))?;
    }
    if policy.network().is_empty() {
        output.line("  no host may be reached")?;
    }
    Ok(())
}

fn as_json(source: &PolicySource) -> Value {
    let policy = &source.policy;
    let rule = |rule: RuleSummary| {
        json!({
            "name": rule.source.rule(),
            "action": rule.action.name(),
            "calls": rule.calls,
            "path_globs": rule.globs,
            "exceptions": rule.exceptions,
            "line": rule.source.place().map(|place| place.line),
        })
    };
    let exemptions = policy.exemptions().iter().map(|(category, exemption)| {
        let globs: Vec<_> = exemption.paths.iter().map(|glob| glob.text()).collect();
        let told = json!({ "path_globs": globs, "type_only": exemption.type_only });
        ((*category).to_owned(), told)
    });
    let extensions: Vec<_> = policy.extensions().iter().map(ToString::to_string).collect();
    json!({
        "from": match source.from {
            PolicyHome::Project | PolicyHome::Named => "file",
            PolicyHome::Shipped => "shipped",
        },
        "file": policy.name(),
        "digest": policy.digest().to_string(),
        "built_in": built_in(),
        "rules": summaries(policy).into_iter().map(rule).collect::<Vec<_>>(),
        "extensions": extensions,
        "tdd_exemptions": Value::Object(exemptions.collect()),
        "network_whitelist": policy.network(),
    })
}

fn heading(output: &mut Output, text: &str) -> Result<(), CliError> {
    output.line("")?;
    output.line(output.paint(Tone::Strong, text))
}

fn built_in() -> Vec<&'static str> {
    BuiltIn::names().collect()
}

fn summaries(policy: &PolicyFile) -> Vec<RuleSummary> {
    policy.capabilities().map(|rules| rules.summaries().collect()).unwrap_or_default()
}
