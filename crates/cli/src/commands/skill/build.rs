//! `fluffy skill build`: who writes a skill, with what keys, and for how long.

use std::path::{Path, PathBuf};

use fluffy_base::{Excerpt, Secret, Span};
use fluffy_forge::build::ProgramBuilder;

use super::{Desk, Order, given, known};
use crate::args::BuildArgs;
use crate::builders;
use crate::commands::run::Caps;
use crate::environment::{Environment, variable};
use crate::explain::{CliError, Explained, USAGE};
use crate::interrupt::Stop;
use crate::keys::{Keys, Sources};
use crate::output::Output;
use crate::providers::{Catalogue, Choice, SetupError};
use crate::settings::Settings;
use crate::wire::{BuilderSource, Driver, Handed, SkillWork};

/// Our own loop, as a person names it.
const AGENT: &str = "agent";

/// Keys by the names of their variables.
type Named = Vec<(String, Secret)>;

pub(super) fn run(desk: &Desk<'_>, args: &BuildArgs, output: &mut Output) -> Result<u8, CliError> {
    let environment = desk.environment;
    let settings = Settings::load(desk.place, environment)?;
    let name = known(&args.name)?.to_string();
    let builder = match &args.builder {
        Some(builder) => builder.clone(),
        // Whoever names a provider means the builder that has one.
        None if args.provider.is_some() => AGENT.to_owned(),
        None => settings.text("forge.builder").unwrap_or("claude").to_owned(),
    };
    let is_agent = builder == AGENT;
    if !is_agent && (args.provider.is_some() || args.model.is_some()) {
        return Err(CliError::Told(Explained {
            what: format!("the builder `{}` takes no model", Excerpt::new(&builder, 80)),
            why: "--provider and --model are for the builder `agent`".to_owned(),
            fix: "leave them out, or say --builder agent".to_owned(),
            code: USAGE,
        }));
    }
    let (builder, secrets, host) = chosen(&builder, &settings, environment)?;
    let time_ms = match &args.timeout {
        Some(text) => Some(time(text)?),
        None => settings.number("forge.build_timeout_ms"),
    };
    let catalogue = host.as_ref().map(|_| Catalogue::of(environment)).transpose()?;
    let proxy = catalogue.zip(host).and_then(|(catalogue, host)| catalogue.via(&host));
    let handed = Handed { secrets, proxy, ..Handed::default() };
    let driver = is_agent.then(|| driver(args, settings, environment)).transpose()?;
    let order = Order { work: SkillWork::Build { name, builder, time_ms }, driver, handed };
    desk.answer_until(&Stop::listen()?, order, args.manner, output)
}

/// The model that our own loop asks, and where it has to stop.
fn driver(
    args: &BuildArgs,
    settings: Settings,
    environment: &Environment,
) -> Result<Driver, CliError> {
    let choice = Choice::typed(args.provider.as_deref(), args.model.as_deref())?;
    let model = choice.settle(environment)?;
    Ok(Driver { model, caps: Caps::of(&args.caps, settings)? })
}

fn time(text: &str) -> Result<u64, CliError> {
    let span: Option<Span> = text.parse().ok();
    let wanted = || "a time from 1s to 60m, such as `90s`".to_owned();
    let fits = span.map(Span::ms).filter(|ms| (1_000..=3_600_000).contains(ms));
    fits.ok_or_else(|| CliError::Value { given: text.to_owned(), wanted: wanted() })
}

/// Who builds, with their keys, and the first host that they reach.
fn chosen(
    builder: &str,
    settings: &Settings,
    environment: &Environment,
) -> Result<(BuilderSource, Named, Option<String>), CliError> {
    if let Some(path) = builder.strip_prefix("transcript:") {
        let file = PathBuf::from(path);
        let text = given::text_of(Path::new(path))?;
        return Ok((BuilderSource::Transcript { file, text }, Vec::new(), None));
    }
    if builder == AGENT {
        return Ok((BuilderSource::Agent, Vec::new(), None));
    }
    let program = match builder {
        "claude" => ProgramBuilder::claude(),
        "codex" => ProgramBuilder::codex(),
        "command" => command(settings)?,
        _other => return Err(unknown(builder)),
    };
    let path = builders::search_path(environment);
    let (at, _shown) = program.locate(&path).map_err(|error| missing(&error, builder))?;
    let at = at.into_os_string().into_string();
    let at = at.map_err(|path| CliError::NotText(path.into()))?;
    let provider = match builder {
        "claude" => Some("anthropic"),
        "codex" => Some("openai"),
        _other => None,
    };
    let keys = keys(&program, provider, environment)?;
    if keys.is_empty() && !program.keys.is_empty() {
        return Err(CliError::Told(Explained {
            what: format!("there is no key for the builder `{builder}`"),
            why: format!("none of the variables {} is set", program.keys.join(", ")),
            fix: match provider {
                Some(provider) => format!("set one, or keep the key: fluffy auth set {provider}"),
                None => "set one of them".to_owned(),
            },
            code: USAGE,
        }));
    }
    let host = program.hosts.first().cloned();
    let source = match builder {
        "claude" => BuilderSource::Claude { at },
        "codex" => BuilderSource::Codex { at },
        _command => {
            let ProgramBuilder { args, hosts, keys, .. } = program;
            let argv = std::iter::once(at).chain(args).collect();
            BuilderSource::Command { argv, hosts, keys }
        }
    };
    Ok((source, keys, host.map(|host| host.split(':').next().unwrap_or(&host).to_owned())))
}

fn command(settings: &Settings) -> Result<ProgramBuilder, CliError> {
    let list = |name: &str| settings.list(name).map(<[String]>::to_vec).unwrap_or_default();
    let (argv, hosts) = (list("forge.builder_command"), list("forge.builder_hosts"));
    let keys = list("forge.builder_keys");
    let program = ProgramBuilder::command(&argv).map_err(|error| {
        CliError::Told(Explained {
            what: "the builder `command` cannot be used".to_owned(),
            why: error.to_string(),
            fix: "say which: fluffy config set forge.builder_command '[PROGRAM, ARGUMENT]'"
                .to_owned(),
            code: USAGE,
        })
    })?;
    Ok(ProgramBuilder { hosts, keys, ..program })
}

/// The keys of a builder: each variable that is set, or else what is kept of its provider.
fn keys(
    program: &ProgramBuilder,
    provider: Option<&str>,
    environment: &Environment,
) -> Result<Named, CliError> {
    let set = program.keys.iter().filter_map(|name| Some((name.clone(), variable(name)?)));
    let set: Named = set.collect();
    let (Some(provider), Some(name), true) = (provider, program.keys.first(), set.is_empty())
    else {
        return Ok(set);
    };
    let sources = Sources { variables: Vec::new(), stored: true };
    let found = Keys::of(environment)?.find(provider, &sources).map_err(SetupError::from)?;
    Ok(found.map(|(key, _)| (name.clone(), key)).into_iter().collect())
}

fn unknown(builder: &str) -> CliError {
    CliError::Value {
        given: Excerpt::new(builder, 80).to_string(),
        wanted: "a builder: `claude`, `codex`, `agent`, `command` or `transcript:FILE`".to_owned(),
    }
}

fn missing(error: &fluffy_forge::build::BuilderError, builder: &str) -> CliError {
    CliError::Told(Explained {
        what: error.to_string(),
        why: format!("the builder `{builder}` is a program of yours, in a sandbox"),
        fix: "install it, or choose another: fluffy skill build NAME --builder agent".to_owned(),
        code: USAGE,
    })
}
