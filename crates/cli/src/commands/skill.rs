//! `fluffy skill`: the way of a skill from a proposal to trust, and its runs.
//!
//! **Invariant.** What has an effect is done by the project's kernel. What only looks does not start one.

mod build;
mod check;
mod doctor;
mod given;
mod history;
mod install;
mod list;
mod log;
mod propose;
mod render;
mod show;

pub(crate) use self::given::input;
use fluffy_base::Excerpt;
use fluffy_forge::{SkillName, Standing};

use crate::args::{
    MannerArgs, NamedArgs, ResearchArgs, RevokeArgs, RunSkillArgs, SaidArgs, SkillCommand,
};
use crate::commands::carried_out;
use crate::commands::run::said;
use crate::environment::Environment;
use crate::explain::{CliError, Explained, USAGE};
use crate::forge::{Answer, look};
use crate::interrupt::Stop;
use crate::keys::{Keys, Sources};
use crate::output::Output;
use crate::place::Place;
use crate::providers::{Catalogue, SetupError};
use crate::registries;
use crate::review::Said;
use crate::wire::{Driver, Handed, SkillWork, Submission, Surroundings, Work};

pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    command: &SkillCommand,
    output: &mut Output,
) -> Result<u8, CliError> {
    let desk = Desk { place, environment };
    match command {
        SkillCommand::List { shipped: true, json } => list::shipped(place, *json, output),
        SkillCommand::List { shipped: false, json } => list::run(place, *json, output),
        SkillCommand::Show(args) => show::run(place, args, output),
        SkillCommand::History(args) => history::run(place, args, output),
        SkillCommand::Log { skill, limit, json } => {
            log::run(place, skill.as_deref(), *limit, *json, output)
        }
        SkillCommand::CheckInvariants(args) => check::run(place, args, output),
        SkillCommand::Doctor(args) => doctor::run(&desk, args, output),
        SkillCommand::Propose(args) => propose::run(&desk, args, output),
        SkillCommand::Build(args) => build::run(&desk, args, output),
        SkillCommand::Install(args) => install::run(&desk, args, output),
        SkillCommand::Verify(NamedArgs { name, json }) => {
            let work = SkillWork::Verify { name: known(name)?.to_string() };
            desk.answer(work, Handed::default(), manner(*json), output)
        }
        SkillCommand::Promote(NamedArgs { name, json }) => {
            let work = SkillWork::Promote { name: known(name)?.to_string() };
            desk.answer(work, Handed::default(), manner(*json), output)
        }
        SkillCommand::Revoke(RevokeArgs { name, reason, json }) => {
            let work = SkillWork::Revoke { name: known(name)?.to_string(), why: reason.clone() };
            desk.answer(work, Handed::default(), manner(*json), output)
        }
        SkillCommand::Research(args) => research(&desk, args, output),
        SkillCommand::Run(RunSkillArgs { name, input, manner }) => {
            let name = known(name)?;
            let input = given::input(input)?;
            let handed = handed(place, environment, Some(std::slice::from_ref(&name)))?;
            let work = SkillWork::Run { name: name.to_string(), input };
            desk.answer(work, handed, *manner, output)
        }
        SkillCommand::Chain { file, input, manner } => {
            let (chain, names) = given::chain(file)?;
            let input = given::input(input)?;
            let handed = handed(place, environment, Some(&names))?;
            desk.answer(SkillWork::Chain { chain, input }, handed, *manner, output)
        }
        SkillCommand::Replay { execution, manner } => {
            // Which skill it was, the ledger says; of the trusted ones, each is given what it declares.
            let handed = handed(place, environment, None)?;
            let work = SkillWork::Replay { execution: execution.clone() };
            desk.answer(work, handed, *manner, output)
        }
    }
}

fn research(desk: &Desk<'_>, args: &ResearchArgs, output: &mut Output) -> Result<u8, CliError> {
    let gateway = args.advise.then(|| Catalogue::of(desk.environment)?.gateway()).transpose()?;
    let work = SkillWork::Research {
        name: known(&args.name)?.to_string(),
        hint: args.hint.clone(),
        advise: args.advise,
    };
    desk.answer(work, Handed { gateway, ..Handed::default() }, manner(args.json), output)
}

/// Where a client of the forge stands.
struct Desk<'a> {
    place: &'a Place,
    environment: &'a Environment,
}

/// What is wanted, and what it needs.
struct Order {
    work: SkillWork,
    /// The model, where our own loop builds.
    driver: Option<Driver>,
    handed: Handed,
}

impl Desk<'_> {
    /// Has the project's kernel do it, and shows what came of it.
    fn answer(
        &self,
        work: SkillWork,
        handed: Handed,
        manner: MannerArgs,
        output: &mut Output,
    ) -> Result<u8, CliError> {
        let order = Order { work, driver: None, handed };
        self.answer_until(&Stop::listen()?, order, manner, output)
    }

    /// The same, one of several after the other: whoever stops one stops all.
    fn answer_until(
        &self,
        stop: &Stop,
        order: Order,
        manner: MannerArgs,
        output: &mut Output,
    ) -> Result<u8, CliError> {
        let answer = self.carry_out(stop, order, said(manner.said))?;
        match manner.json {
            true => output.line(answer.document().map_err(std::io::Error::from)?)?,
            false => render::answer(&answer, output)?,
        }
        Ok(answer.code())
    }

    fn carry_out(&self, stop: &Stop, order: Order, said: Said) -> Result<Answer, CliError> {
        let Order { work, driver, handed } = order;
        let surroundings = Surroundings::of(self.environment);
        let work = Work::Skill(work);
        let submission = Submission { work, driver, handed, surroundings };
        carried_out((self.place, self.environment), stop, said, submission)?.skill()
    }
}

/// A command at which nothing was said beforehand.
pub(super) const fn manner(json: bool) -> MannerArgs {
    MannerArgs { json, said: SaidArgs { yes: false, no: false } }
}

/// A name of a skill.
fn known(name: &str) -> Result<SkillName, CliError> {
    SkillName::parse(name).map_err(|error| {
        CliError::Told(Explained {
            what: format!("`{}` is no name of a skill", fluffy_base::Excerpt::new(name, 80)),
            why: error.to_string(),
            fix: "see which skills there are: fluffy skill list".to_owned(),
            code: USAGE,
        })
    })
}

/// What the kernel is handed for runs of these skills, or of any that is trusted: the secrets that their proposals name, the
/// local model if they ask one, and the proxy.
pub(crate) fn handed(
    place: &Place,
    environment: &Environment,
    names: Option<&[SkillName]>,
) -> Result<Handed, CliError> {
    let registries = registries::read(environment)?;
    let mut above = place.project().ancestors().skip(1);
    let outside_of_repositories = !above.any(|directory| directory.join(".git").exists());
    let mut handed = Handed { registries, outside_of_repositories, ..Handed::default() };
    let Some(shelf) = look(place)? else { return Ok(handed) };
    let is_meant = |name: &SkillName| names.is_none_or(|names| names.contains(name));
    let listed = shelf.skills()?.into_iter();
    let trusted = listed.filter(|it| it.standing == Standing::Trusted && is_meant(&it.name));
    let (mut secrets, mut asks, mut host) = (Vec::new(), false, None);
    for listed in trusted {
        // One whose memory does not hold is told by whoever runs it.
        let Ok(skill) = shelf.skill(&listed.name) else { continue };
        let spec = skill.proposal.spec;
        secrets.extend(spec.secrets);
        asks |= spec.model;
        host = host.or_else(|| spec.hosts.into_iter().next());
    }
    secrets.sort_unstable();
    secrets.dedup();
    if asks || host.is_some() {
        let catalogue = Catalogue::of(environment)?;
        handed.gateway = asks.then(|| catalogue.gateway()).transpose()?;
        let host = host.as_deref().map(|host| host.split(':').next().unwrap_or(host));
        handed.proxy = host.and_then(|host| catalogue.via(host));
    }
    if !secrets.is_empty() {
        let keys = Keys::of(environment)?;
        for name in secrets {
            let sources = Sources { variables: vec![name.clone()], stored: true };
            let found = keys.find(&stored_as(&name), &sources).map_err(SetupError::from)?;
            handed.secrets.extend(found.map(|(secret, _)| (name, secret)));
        }
    }
    Ok(handed)
}

/// The skills that are trusted, each with what it does.
pub(crate) fn trusted(place: &Place) -> Result<Vec<(String, String)>, CliError> {
    let Some(shelf) = look(place)? else { return Ok(Vec::new()) };
    let listed = shelf.skills()?.into_iter().filter(|it| it.standing == Standing::Trusted);
    Ok(listed
        .map(|it| (it.name.to_string(), Excerpt::new(&it.description, 80).to_string()))
        .collect())
}

/// All skills, a line each.
pub(crate) fn listed(place: &Place) -> Result<Vec<String>, CliError> {
    let Some(shelf) = look(place)? else { return Ok(Vec::new()) };
    let line = |it: fluffy_forge::Listed| {
        let what = Excerpt::new(&it.description, 60);
        format!("{:<24}  {:<8}  {what}", it.name.as_str(), it.standing.name())
    };
    Ok(shelf.skills()?.into_iter().map(line).collect())
}

/// The name under which a secret is kept.
pub(crate) fn stored_as(secret: &str) -> String {
    format!("secret-{secret}")
}
