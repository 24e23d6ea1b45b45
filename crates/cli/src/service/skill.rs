//! What a person does about skills, carried out in the kernel's process: each step and each run is a request to a kernel.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fluffy_base::{Digest, Json, Secret, Span};
use fluffy_forge::build::{ProgramBuilder, TIME, Transcript};
use fluffy_forge::steps::{AgentCoder, AgentOptions, Craft, StepError, Wanted, Workbench};
use fluffy_forge::{Chain, Proposal, RunOrder, Shelf, SkillName};
use fluffy_kernel::{Kernel, KernelConfig};
use serde_json::Value;

use super::run::Run;
use crate::drive::Scene;
use crate::explain::CliError;
use crate::forge::{Answer, Chained, Forge, Ran, Rebuilt, Replayed, of_chain};
use crate::settings::Settings;
use crate::wire::{BuilderSource, Driver, SkillWork};

/// Carries it out; what became of it.
pub(super) fn carry_out(
    work: SkillWork,
    driver: Option<Driver>,
    scene: &Scene<'_>,
    run: &Run,
) -> Result<Answer, CliError> {
    let mut handed = scene.take_handed();
    let keys = match &work {
        SkillWork::Build { .. } => std::mem::take(&mut handed.secrets),
        _other => Vec::new(),
    };
    let forge = Forge::open(scene, handed)?;
    if matches!(work, SkillWork::Rebuild) {
        return rebuild(&forge.shelf);
    }
    let bench = bench(&work, &forge)?;
    let (lab, stopped) = (Arc::clone(&forge.lab), Arc::new(AtomicBool::new(false)));
    let stops = Arc::clone(&stopped);
    run.stop.calls(move |_| {
        stops.store(true, Ordering::SeqCst);
        lab.close();
    });
    let kernel = boot(&run_by(&work, &forge.shelf), bench.as_ref(), &forge, scene, run)?;
    let agent = agent(bench, driver, scene, stopped)?;
    let answer = Hand { forge: &forge, kernel: &kernel, scene }.do_it(work, keys, agent);
    close(kernel)?;
    answer
}

/// A kernel for steps and runs, which whoever watches the run can halt.
pub(super) fn boot(
    skills: &[SkillName],
    bench: Option<&Arc<Workbench>>,
    forge: &Forge,
    scene: &Scene<'_>,
    run: &Run,
) -> Result<Arc<Kernel>, CliError> {
    let kernel = Arc::new(Kernel::boot(config(skills, bench, forge, scene)?)?);
    scene.place.witness().attend(&kernel);
    let halting = Arc::downgrade(&kernel);
    run.halted_by(Arc::new(move |reason: &str| match halting.upgrade() {
        Some(kernel) => kernel.halt(reason).map(|entry| entry.seq).map_err(|it| it.to_string()),
        None => Err("it has come to its end".to_owned()),
    }));
    Ok(kernel)
}

/// Ends it in order.
pub(super) fn close(kernel: Arc<Kernel>) -> Result<(), CliError> {
    Ok(Kernel::end_shared(kernel)?)
}

/// Where our own loop works, if it is to build.
fn bench(work: &SkillWork, forge: &Forge) -> Result<Option<Arc<Workbench>>, CliError> {
    let SkillWork::Build { name, builder: BuilderSource::Agent, .. } = work else {
        return Ok(None);
    };
    Ok(Some(Workbench::new(&forge.steps, named(name)?)?))
}

/// Our own loop with its model, ready to be asked, if it is to build.
fn agent(
    bench: Option<Arc<Workbench>>,
    driver: Option<Driver>,
    scene: &Scene<'_>,
    stopped: Arc<AtomicBool>,
) -> Result<Option<(Arc<Workbench>, AgentOptions)>, CliError> {
    let Some(bench) = bench else { return Ok(None) };
    let Driver { model, caps } = driver.ok_or(CliError::NoProvider)?;
    let provider = model.open(scene.place, &scene.runtime, 0)?.provider;
    let options = AgentOptions { provider, caps: caps.of_loop(), time: TIME, stopped };
    Ok(Some((bench, options)))
}

/// A kernel that knows the steps, the tools of whoever builds, and the skills that are to be run.
fn config(
    skills: &[SkillName],
    bench: Option<&Arc<Workbench>>,
    forge: &Forge,
    scene: &Scene<'_>,
) -> Result<KernelConfig, CliError> {
    let settings = Settings::load(scene.place, scene.environment)?;
    let mut config = crate::commands::kernel(scene.place, &settings, None)?;
    config.reviewer = Some(Box::new(Arc::clone(&scene.reviewer)));
    for tool in forge.steps.tools() {
        config.registry.register(Box::new(tool))?;
    }
    for tool in bench.into_iter().flat_map(|bench| bench.tools()) {
        config.registry.register(tool)?;
    }
    for name in skills {
        // One that cannot be used is not known to the kernel, which refuses and records the call.
        if let Ok(tool) = forge.runs.tool(name) {
            config.registry.register(Box::new(tool))?;
        }
    }
    Ok(config)
}

/// The skills that a piece of work runs, each once.
fn run_by(work: &SkillWork, shelf: &Shelf) -> Vec<SkillName> {
    let named = |name: &str| SkillName::parse(name).ok();
    let mut names: Vec<SkillName> = match work {
        SkillWork::Run { name, .. } => named(name).into_iter().collect(),
        SkillWork::Chain { chain, .. } => {
            let steps = chain.get("steps").and_then(Value::as_array).into_iter().flatten();
            let skills = steps.filter_map(|step| step.get("skill").and_then(Value::as_str));
            skills.filter_map(named).collect()
        }
        SkillWork::Replay { execution } => {
            shelf.execution(execution).ok().map(|run| run.name).into_iter().collect()
        }
        _other => Vec::new(),
    };
    names.sort_unstable();
    names.dedup();
    names
}

fn rebuild(shelf: &Shelf) -> Result<Answer, CliError> {
    shelf.rebuild_tables()?;
    shelf.rebuild_registry()?;
    Ok(Answer::Rebuilt(Rebuilt { skills: shelf.skills()?.len() }))
}

/// Whoever does it.
pub(super) struct Hand<'a> {
    pub(super) forge: &'a Forge,
    pub(super) kernel: &'a Arc<Kernel>,
    pub(super) scene: &'a Scene<'a>,
}

impl Hand<'_> {
    fn do_it(
        &self,
        work: SkillWork,
        keys: Vec<(String, Secret)>,
        agent: Option<(Arc<Workbench>, AgentOptions)>,
    ) -> Result<Answer, CliError> {
        self.forge.steps.settle()?;
        let wanted = match work {
            SkillWork::Propose { spec } => Wanted::Propose { spec: Box::new(proposal(spec)?) },
            SkillWork::Build { name, builder, time_ms } => {
                let name = named(&name)?;
                let craft = match agent {
                    Some((bench, options)) => self.agent(bench, options, time_ms),
                    None => craft(builder, time_ms, keys)?,
                };
                self.prepare(&name)?;
                Wanted::Build { name, craft }
            }
            SkillWork::Install { name } => return self.install(&name),
            SkillWork::Verify { name } => Wanted::Verify { name: named(&name)? },
            SkillWork::Research { name, hint, advise } => {
                Wanted::Research { name: named(&name)?, build: None, hint, advise }
            }
            SkillWork::Promote { name } => {
                Wanted::Promote { name: named(&name)?, verification: String::new() }
            }
            SkillWork::Revoke { name, why } => Wanted::Revoke { name: named(&name)?, why },
            SkillWork::Run { name, input } => return self.run(named(&name)?, input),
            SkillWork::Chain { chain, input } => return self.chain(chain, input),
            SkillWork::Replay { execution } => {
                let replayed = self.forge.runs.replay(self.kernel, &execution)?;
                return Ok(Answer::Replayed(Box::new(Replayed::of(replayed))));
            }
            SkillWork::Rebuild => return rebuild(&self.forge.shelf),
        };
        Ok(Answer::Step(self.forge.steps.take(self.kernel, wanted)?))
    }

    /// Our own loop as a builder.
    fn agent(&self, bench: Arc<Workbench>, options: AgentOptions, time_ms: Option<u64>) -> Craft {
        let time = time_ms.map_or(options.time, Span::from_ms);
        let options = AgentOptions { time, ..options };
        let coder = AgentCoder::new(bench, Arc::clone(self.kernel), options);
        Craft::Coder { name: coder.name(), coder: Box::new(coder) }
    }

    /// What comes before another attempt: the last one is looked into, and a person agrees where that is wanted.
    pub(super) fn prepare(&self, name: &SkillName) -> Result<(), CliError> {
        let Forge { steps, shelf, .. } = self.forge;
        let looked_into = |shelf: &Shelf| -> Result<bool, CliError> {
            let failed = fluffy_forge::findings(name, shelf).map_err(StepError::from)?.is_some();
            let skill = shelf.skill(name)?;
            Ok(!failed || skill.last_build().is_some_and(|build| !build.research.is_empty()))
        };
        if !looked_into(shelf)? {
            let (name, build, hint) = (name.clone(), None, None);
            steps.take(self.kernel, Wanted::Research { name, build, hint, advise: false })?;
        }
        if shelf.skill(name)?.awaits().next().is_some() {
            let name = name.clone();
            steps.take(self.kernel, Wanted::Retry { name, build: String::new() })?;
        }
        Ok(())
    }

    fn run(&self, name: SkillName, input: Value) -> Result<Answer, CliError> {
        // Why it cannot be run is said in the forge's words; that it was wanted is recorded all the same.
        let unusable = self.forge.runs.tool(&name).err();
        let input = Json::new(input).map_err(CliError::Json)?;
        let ran = self.forge.runs.run(self.kernel, RunOrder::new(name, input));
        match unusable {
            Some(error) => Err(error.into()),
            None => Ok(Answer::Ran(Ran::of(ran?))),
        }
    }

    fn chain(&self, chain: Value, input: Value) -> Result<Answer, CliError> {
        let wrong = |error: serde_json::Error| CliError::Settings {
            file: "the chain".to_owned(),
            problem: error.to_string(),
        };
        let chain: Chain = serde_json::from_value(chain).map_err(wrong)?;
        let input = Json::new(input).map_err(CliError::Json)?;
        let ran = self.forge.runs.chain(self.kernel, &chain, &input);
        let ran = ran.map_err(|error| CliError::Told(of_chain(&error)))?;
        Ok(Answer::Chained(Chained::of(ran)))
    }
}

/// Who builds, from what the client says.
fn craft(
    builder: BuilderSource,
    time_ms: Option<u64>,
    keys: Vec<(String, Secret)>,
) -> Result<Craft, CliError> {
    let program = match builder {
        BuilderSource::Claude { at } => ProgramBuilder { program: at, ..ProgramBuilder::claude() },
        BuilderSource::Codex { at } => ProgramBuilder { program: at, ..ProgramBuilder::codex() },
        BuilderSource::Agent => return Err(CliError::NoProvider),
        BuilderSource::Command { argv, hosts, keys } => {
            let wrong = |error: fluffy_forge::build::BuilderError| CliError::Settings {
                file: "forge.builder_command".to_owned(),
                problem: error.to_string(),
            };
            let command = ProgramBuilder::command(&argv).map_err(wrong)?;
            ProgramBuilder { hosts, keys, ..command }
        }
        BuilderSource::Transcript { file, text } => {
            let wrong = |error: fluffy_forge::build::TranscriptError| CliError::Settings {
                file: file.display().to_string(),
                problem: fluffy_kernel::causes(&error),
            };
            let transcript = Transcript::parse(&text).map_err(wrong)?;
            let sha256 = Digest::of(text.as_bytes());
            let shown = file.file_name().map(|name| name.to_string_lossy().into_owned());
            let name = format!("transcript:{}", shown.unwrap_or_default());
            return Ok(Craft::Transcript { name, transcript, sha256 });
        }
    };
    let time = time_ms.map_or(program.time, Span::from_ms);
    Ok(Craft::Program { program: ProgramBuilder { time, ..program }, keys })
}

fn named(name: &str) -> Result<SkillName, CliError> {
    let wanted = |error: fluffy_forge::NameError| CliError::Value {
        given: fluffy_base::Excerpt::new(name, 80).to_string(),
        wanted: format!("the name of a skill: {error}"),
    };
    SkillName::parse(name).map_err(wanted)
}

fn proposal(spec: Value) -> Result<Proposal, CliError> {
    let wrong = |error: serde_json::Error| CliError::Settings {
        file: "the proposal".to_owned(),
        problem: error.to_string(),
    };
    serde_json::from_value(spec).map_err(wrong)
}
