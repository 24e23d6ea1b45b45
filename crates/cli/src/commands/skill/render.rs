//! What became of skills, for people.

use fluffy_forge::steps::{Built, Done, Researched, Verified};
use fluffy_forge::{BuildEnd, GateResult, Standing};
use serde_json::Value;

use crate::explain::CliError;
use crate::forge::{Answer, Installed, Ran};
use crate::inert::inert;
use crate::output::{Output, Tone};

/// How many findings of one gate are shown.
const FINDINGS: usize = 20;

/// Shows an answer.
pub(super) fn answer(answer: &Answer, output: &mut Output) -> Result<(), CliError> {
    match answer {
        Answer::Step(done) => step(done, output),
        Answer::Installed(it) => installed(it, output),
        Answer::Ran(run) => ran(run, output),
        Answer::Chained(chained) => {
            for run in &chained.steps {
                let word = if run.success { Tone::Good } else { Tone::Bad };
                let name = output.paint(word, run.skill.as_str());
                output.notice(format!("{name}  {}", run.execution));
            }
            match (&chained.stopped, &chained.output) {
                (Some(stopped), _) => {
                    let text = format!("{}: {}; {}", stopped.what, stopped.why, stopped.fix);
                    output.line(output.paint(Tone::Bad, &inert(&text)))
                }
                (None, Some(value)) => document(value, output),
                (None, None) => Ok(()),
            }
        }
        Answer::Replayed(replayed) => {
            let (tone, word) = match replayed.same {
                true => (Tone::Good, "the same as before"),
                false => (Tone::Bad, "different from before"),
            };
            let word = output.paint(tone, word);
            let (before, now) = (&replayed.before.execution, &replayed.now.execution);
            output.line(format!("{now} is {word} ({before})"))?;
            ran(&replayed.now, output)
        }
        Answer::Rebuilt(rebuilt) => {
            let text = "Tables and registry are made again from the ledger; skills";
            output.line(format!("{text}: {}", rebuilt.skills))
        }
    }
}

/// A shipped skill in few lines; where it stopped, what stopped it.
fn installed(it: &Installed, output: &mut Output) -> Result<(), CliError> {
    if let Some(done) = it.steps.last().filter(|done| !done.succeeded()) {
        return step(done, output);
    }
    let name = it.name.as_str();
    if let Some(stopped) = &it.stopped {
        let word = output.paint(Tone::Bad, "Not installed");
        let stands =
            it.standing.map_or_else(|| "not proposed".to_owned(), |it| it.name().to_owned());
        let why = [&stopped.what, &stopped.why].map(|text| inert(text).into_owned()).join(": ");
        output.line(format!("{word}: {name} is {stands}: {why}"))?;
        return match it.standing {
            Some(Standing::Verified) => next(output, "promote", name),
            _other => output.line(output.paint(Tone::Quiet, &format!("fix: {}", stopped.fix))),
        };
    }
    match it.steps.is_empty() {
        true => output.line(format!("{name} is trusted already"))?,
        false => {
            let word = output.paint(Tone::Good, "Installed");
            output.line(format!("{word} {name}: built, verified and trusted"))?;
        }
    }
    next(output, "run", name)
}

fn step(done: &Done, output: &mut Output) -> Result<(), CliError> {
    let good = |output: &Output, word: &str| output.paint(Tone::Good, word);
    match done {
        Done::Proposed(it) => {
            let word = good(output, "Proposed");
            output.line(format!("{word} {} ({}, entry {})", it.name, it.proposal, it.entry))?;
            next(output, "build", it.name.as_str())
        }
        Done::Built(it) => built(it, output),
        Done::Verified(it) => verified(it, output),
        Done::Researched(it) => researched(it, output),
        Done::RetryAgreed(it) => {
            output.line(format!("{} may be built again, says {}", it.name, it.by))
        }
        Done::Promoted(it) => {
            let word = good(output, "Trusted");
            output.line(format!("{word} {} by {} (entry {})", it.name, it.by, it.entry))?;
            next(output, "run", it.name.as_str())
        }
        Done::Revoked(it) => {
            let word = output.paint(Tone::Bad, "Revoked");
            output.line(format!("{word} {} by {} (entry {})", it.name, it.by, it.entry))
        }
    }
}

fn built(built: &Built, output: &mut Output) -> Result<(), CliError> {
    let (name, attempt) = (&built.name, built.attempt);
    match &built.end {
        BuildEnd::Built { files } => {
            let word = output.paint(Tone::Good, "Built");
            output.line(format!("{word} {name}, attempt {attempt}"))?;
            for file in files {
                output.line(format!("  {}", inert(file.path.as_str())))?;
            }
            next(output, "verify", name.as_str())
        }
        BuildEnd::Failed { kind, why } => {
            let word = output.paint(Tone::Bad, "Not built");
            output.line(format!("{word}: {name}, attempt {attempt}: {kind}: {}", inert(why)))?;
            next(output, "research", name.as_str())
        }
    }
}

fn verified(verified: &Verified, output: &mut Output) -> Result<(), CliError> {
    let (tone, word) = match verified.passed {
        true => (Tone::Good, "Verified"),
        false => (Tone::Bad, "Not verified"),
    };
    let word = output.paint(tone, word);
    output.line(format!("{word}: {} (entry {})", verified.name, verified.entry))?;
    for result in &verified.gates {
        gate(result, output)?;
    }
    for path in &verified.brought {
        output.line(format!("  now in the project: {}", inert(path.as_str())))?;
    }
    if let Some(why) = &verified.not_brought {
        let word = output.paint(Tone::Bad, "not brought into the project");
        return output.line(format!("  {word}: {}", inert(why)));
    }
    next(output, if verified.passed { "promote" } else { "research" }, verified.name.as_str())
}

/// What a gate said.
pub(super) fn gate(result: &GateResult, output: &mut Output) -> Result<(), CliError> {
    let (tone, word) = if result.passed { (Tone::Good, "ok  ") } else { (Tone::Bad, "FAIL") };
    let word = output.paint(tone, word);
    output.line(format!("  {word}  {:<10}  {}", result.gate.name(), inert(&result.summary)))?;
    for finding in result.findings.iter().take(FINDINGS) {
        let line = finding.line.map(|line| format!(":{line}")).unwrap_or_default();
        let text = format!("{}{line}: {}: {}", finding.file, finding.rule, finding.message);
        output.line(format!("        {}", inert(&text)))?;
    }
    let more = result.findings.len().saturating_sub(FINDINGS);
    if more > 0 {
        output.line(format!("        and {more} more"))?;
    }
    Ok(())
}

fn researched(it: &Researched, output: &mut Output) -> Result<(), CliError> {
    for line in it.text.lines() {
        output.line(inert(line))?;
    }
    if !it.triggers.is_empty() {
        let word = output.paint(Tone::Caution, "A person is asked before the next attempt");
        output.notice(format!("{word}: {}", it.triggers.join(", ")));
    }
    next(output, "build", it.name.as_str())
}

fn ran(run: &Ran, output: &mut Output) -> Result<(), CliError> {
    let id = output.paint(Tone::Quiet, &run.execution);
    output.notice(id);
    match (&run.output, &run.error) {
        (Some(value), _) => document(value, output),
        (None, error) => {
            let word = output.paint(Tone::Bad, "Failed");
            let why = error.as_deref().unwrap_or("it gave nothing");
            output.line(format!("{word}: {}", inert(why)))
        }
    }
}

/// A value as people read it: characters that would turn a line around are shown by their number.
fn document(value: &Value, output: &mut Output) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).map_err(std::io::Error::from)?;
    text.lines().try_for_each(|line| output.line(inert(line)))
}

fn next(output: &mut Output, command: &str, name: &str) -> Result<(), CliError> {
    let line = output.paint(Tone::Quiet, &format!("next: fluffy skill {command} {name}"));
    output.line(line)
}

/// How a standing is shown.
pub(super) const fn standing_tone(standing: Standing) -> Tone {
    match standing {
        Standing::Proposed | Standing::Built => Tone::Quiet,
        Standing::Verified => Tone::Caution,
        Standing::Trusted => Tone::Good,
        Standing::Revoked => Tone::Bad,
    }
}
