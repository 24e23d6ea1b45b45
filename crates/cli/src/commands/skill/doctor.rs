//! `fluffy skill doctor`: what the forge needs and has, and how to get the rest.

use std::path::PathBuf;
use std::process::Command;

use fluffy_base::Excerpt;
use fluffy_forge::{InstallStep, Standing, ToolsError, install, locate};
use serde::Serialize;

use super::{Desk, manner};
use crate::args::SkillDoctorArgs;
use crate::explain::{CliError, DAMAGED, DONE, Explained, FAILED};
use crate::forge::{look, program};
use crate::output::{Output, Tone};
use crate::settings::Settings;
use crate::wire::{Handed, SkillWork};

/// How much of what an installer says is told.
const SAID: usize = 2_000;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    name: String,
    state: State,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Fine,
    /// It is not there, and something else may do.
    Absent,
    /// It is not there, and nothing can be verified without.
    Missing,
    Wrong,
}

pub(super) fn run(
    desk: &Desk<'_>,
    args: &SkillDoctorArgs,
    output: &mut Output,
) -> Result<u8, CliError> {
    if args.install {
        installed(desk, output)?;
    }
    if args.rebuild {
        return desk.answer(SkillWork::Rebuild, Handed::default(), manner(args.json), output);
    }
    let mut findings = vec![tools(desk)];
    findings.extend(builders(desk)?);
    findings.push(gateway(desk)?);
    findings.extend(state(desk));
    let code = findings.iter().map(|finding| match finding.state {
        State::Fine | State::Absent => DONE,
        State::Missing => FAILED,
        State::Wrong => DAMAGED,
    });
    let code = code.max().unwrap_or(DONE);
    if args.json {
        let document = serde_json::json!({ "ok": code == DONE, "findings": findings });
        output.line(document)?;
        return Ok(code);
    }
    for Finding { name, state, text } in findings {
        let (tone, word) = match state {
            State::Fine => (Tone::Good, "ok     "),
            State::Absent => (Tone::Caution, "absent "),
            State::Missing => (Tone::Bad, "missing"),
            State::Wrong => (Tone::Bad, "wrong  "),
        };
        let word = output.paint(tone, word);
        output.line(format!("{word}  {name:<14}  {}", crate::inert::inert(&text)))?;
    }
    Ok(code)
}

fn found(name: &str, state: State, text: impl Into<String>) -> Finding {
    Finding { name: name.to_owned(), state, text: text.into() }
}

fn tools(desk: &Desk<'_>) -> Finding {
    let name = "gates";
    match desk.place.cache().map(|cache| locate(&cache)) {
        Err(error) => found(name, State::Missing, error.to_string()),
        Ok(Ok(tools)) => {
            let (major, minor) = tools.version;
            let text = format!("Python {major}.{minor} with ruff, mypy and pytest, as pinned");
            found(name, State::Fine, text)
        }
        Ok(Err(error)) => found(name, State::Missing, format!("{error}; fix: {}", error.fix())),
    }
}

fn builders(desk: &Desk<'_>) -> Result<Vec<Finding>, CliError> {
    let settings = Settings::load(desk.place, desk.environment)?;
    let mut findings = Vec::new();
    for name in ["claude", "codex"] {
        let at = program(name, desk.environment);
        let (state, text) = match at {
            Some(path) => (State::Fine, path.display().to_string()),
            None => (State::Absent, "not on PATH; install it, or use another builder".to_owned()),
        };
        findings.push(found(&format!("builder {name}"), state, text));
    }
    let (state, text) = match settings.list("forge.builder_command") {
        Some(argv) => (State::Fine, Excerpt::new(&argv.join(" "), 200).to_string()),
        None => (State::Absent, "none; set forge.builder_command to have one".to_owned()),
    };
    findings.push(found("builder command", state, text));
    Ok(findings)
}

fn gateway(desk: &Desk<'_>) -> Result<Finding, CliError> {
    let settings = Settings::of_person(desk.environment)?;
    let text = |name: &str| settings.text(name).unwrap_or_default().to_owned();
    let (url, model) = (text("forge.gateway.url"), text("forge.gateway.model"));
    Ok(found("local model", State::Fine, format!("{model} at {url}, asked when it is needed")))
}

/// The forge's memory, its registry, and the folders of trusted skills.
fn state(desk: &Desk<'_>) -> Vec<Finding> {
    let wrong = |name: &str, error: CliError| {
        let Explained { what, why, fix, .. } = error.explained();
        found(name, State::Wrong, format!("{what}; {why}; fix: {fix}"))
    };
    let shelf = match look(desk.place) {
        Ok(None) => return vec![found("skills", State::Fine, "none yet")],
        Ok(Some(shelf)) => shelf,
        Err(error) => return vec![wrong("skills", error)],
    };
    let listed = match shelf.skills() {
        Ok(listed) => listed,
        Err(error) => return vec![wrong("skills", error.into())],
    };
    let trusted: Vec<_> =
        listed.iter().filter(|listed| listed.standing == Standing::Trusted).collect();
    let text = format!("{}, of which {} are trusted", listed.len(), trusted.len());
    let mut findings = vec![found("skills", State::Fine, text)];
    findings.push(match shelf.registry_agrees() {
        Ok(()) => found("registry", State::Fine, "says what the ledger says"),
        Err(error) => wrong("registry", error.into()),
    });
    for listed in trusted {
        match shelf.skill(&listed.name) {
            Err(error) => findings.push(wrong(listed.name.as_str(), error.into())),
            Ok(skill) => {
                let spec = skill.proposal.spec;
                let folders = spec.reads.iter().chain(&spec.writes);
                let gone =
                    folders.filter(|path| !desk.place.project().join(path.as_str()).is_dir());
                findings.extend(gone.map(|path| {
                    let text = format!("the folder `{path}` is not there yet");
                    found(listed.name.as_str(), State::Absent, text)
                }));
            }
        }
    }
    findings
}

fn installed(desk: &Desk<'_>, output: &mut Output) -> Result<(), CliError> {
    let cache = desk.place.cache()?;
    let python = program("python3", desk.environment);
    let python = python.unwrap_or_else(|| PathBuf::from("/usr/bin/python3"));
    output.notice("Installing ruff, mypy and pytest, of pinned versions, into your cache …");
    let installed = install(&cache, &python, &mut run_step);
    installed.map(drop).map_err(|error: ToolsError| {
        CliError::Told(Explained {
            what: "the tools that check skills are not installed".to_owned(),
            why: Excerpt::new(&fluffy_kernel::causes(&error), SAID).to_string(),
            fix: error.fix().to_owned(),
            code: FAILED,
        })
    })
}

/// Runs a step of the installer's, as the person who asked for it.
#[expect(clippy::disallowed_methods, reason = "the one place that starts the installer's steps")]
fn run_step(step: &InstallStep) -> Result<String, String> {
    let ran = Command::new(&step.program)
        .args(&step.args)
        .current_dir(&step.dir)
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match ran.status.success() {
        true => Ok(text(&ran.stdout)),
        false => Err(format!("{}{}", text(&ran.stdout), text(&ran.stderr))),
    }
}
