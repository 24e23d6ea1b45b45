//! `fluffy demo`: a bug in a small project, taken from a failing test to a merged commit by a recorded
//! model, through everything that stands between a model and a project; then proved, and a forgery found.

mod ground;
mod language;
pub(crate) mod proof;

use fluffy_ledger::verify_segments;
use fluffy_workflow::{Access, Mode};

use self::ground::Ground;
use self::language::Language;
use crate::args::DemoArgs;
use crate::client::Link;
use crate::commands::run::{Caps, Manner, RunRequest, Stage, drive, watched};
use crate::environment::Environment;
use crate::explain::{CliError, DONE, FAILED};
use crate::interrupt::Stop;
use crate::output::{Output, Tone};
use crate::place::Place;
use crate::providers::{Choice, ProviderSpec};
use crate::review::Said;

/// What the recorded model was asked.
const TASK: &str = "slug(\"Rock & Roll!\") gives \"rock-&-roll!\". It should give \"rock-roll\": only \
                    letters and digits, single hyphens between words, none at the ends.";
/// What the forger changes in the evidence, and into what.
const FORGED: (&str, &str) = ("\"decision\":\"DENY\"", "\"decision\":\"ALLOW\"");

/// Shows it; gives the exit code.
pub(crate) fn run(
    environment: &Environment,
    args: &DemoArgs,
    output: &mut Output,
    stop: &Stop,
) -> Result<u8, CliError> {
    let ground = Ground::fresh(environment)?;
    let place = Place::of(Some(&ground.project), environment)?;
    let language = Language::find(args.language, &place, environment)?;
    ground.lay(language)?;
    let has_git = ground.commit(&place, environment)?;
    introduce(language, &ground, has_git, output)?;
    let manner = Manner { json: false, said: Said::Yes, stage: Stage::Stdout };
    let code = watched(manner, environment, stop, &|watched| {
        drive(&request(&ground), &place, environment, watched)
    })?;
    // Nobody comes back to this project's kernel.
    Link::new(&place, environment).stop()?;
    if code != DONE {
        return Ok(code);
    }
    let proved = prove(&place, &ground, output)?;
    look_around(&ground, has_git, environment, output)?;
    Ok(if proved { DONE } else { FAILED })
}

fn request(ground: &Ground) -> RunRequest {
    RunRequest {
        task: TASK.to_owned(),
        mode: Mode::Strict,
        access: Access::Write,
        pins: Vec::new(),
        choice: Choice {
            provider: Some(ProviderSpec::Replay(ground.transcript.clone())),
            model: None,
        },
        caps: Caps { turns: 50, tokens: None, cost_micros: None },
    }
}

fn introduce(
    language: Language,
    ground: &Ground,
    has_git: bool,
    output: &mut Output,
) -> Result<(), CliError> {
    let kind = if has_git { "project, committed" } else { "project without git" };
    output.line(format!("A small {} {kind}: {}", language.name(), ground.project.display()))?;
    output.line("A recorded model works on it; everything else is real.")?;
    proof::heading(output, "1. The task")?;
    output.line(format!("  {TASK}"))?;
    output.line("")?;
    output.flush()
}

fn prove(place: &Place, ground: &Ground, output: &mut Output) -> Result<bool, CliError> {
    proof::heading(
        output,
        "2. The ledger is verified: every hash, the tree, the signed checkpoint",
    )?;
    let key = place.key()?;
    let segments = verify_segments(&place.layout(), Some(key.verifying_key()))?;
    let intact = segments.iter().all(|segment| segment.findings().next().is_none());
    let entries: u64 = segments.iter().map(|segment| segment.bytes.entries).sum();
    proof::verdict(output, intact, &format!("{entries} entries"))?;
    let exported = proof::Forgery {
        bundle: &ground.evidence,
        change: FORGED,
        told: "In a copy of the evidence the refusal is turned into a permission",
        numbers: (3, 4),
    };
    Ok(exported.show(place, output)? && intact)
}

fn look_around(
    ground: &Ground,
    has_git: bool,
    environment: &Environment,
    output: &mut Output,
) -> Result<(), CliError> {
    let (program, project) = (&environment.program, ground.project.display());
    output.line("")?;
    let mut hints = vec![
        ("What happened", format!("{program} -C {project} audit log")),
        ("The evidence", format!("{program} audit verify --bundle {}", ground.evidence.display())),
        ("What it may do", format!("{program} -C {project} policy show")),
    ];
    if has_git {
        hints.insert(0, ("The commit", format!("git -C {project} show")));
    }
    for (name, command) in hints {
        let name = output.paint(Tone::Quiet, &format!("{name:<15}"));
        output.line(format!("{name} {command}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
