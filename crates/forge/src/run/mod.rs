//! Runs trusted skills.
//!
//! ```text
//! RunOrder ── Kernel::submit ── rules, a person ── decision on disk ── SkillTool ── Runs::perform
//!                                                                                       │
//!    trusted in the ledger ── files as sealed ── input of the schema ── sandbox by class ┤
//!                                                                                       ▼
//!            ExecutionRecord in the ledger ◄── files taken over ◄── output of the schema
//! ```
//!
//! **Invariant.** There is one way to run a skill: a request that the kernel allowed. Orders, replays and chains make such
//! requests, as the model does.
//!
//! **Invariant.** Nothing of a run is handed on before its record is in the ledger.

mod chain;
mod confine;
mod frame;
mod order;
mod record;
mod replay;
mod schema;
mod takeover;
mod tool;
mod trust;
mod veil;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fluffy_base::{Clock, Excerpt, IdSource, Json, ProjectPath, Secret};
use fluffy_kernel::{
    Clerk, Conversation, End, Errands, GuestFailure, Lab, LabError, Left, May, Tree, causes,
    hidden_in,
};
use serde_json::Value;

pub use self::chain::{Chain, ChainError, ChainRun, Step};
use self::confine::Grant;
pub use self::frame::Raised;
use self::frame::{Said, Told};
use self::order::Place;
pub use self::order::RunOrder;
pub use self::record::{ChangedFile, ExecutionRecord, KeepError, Kept, RunFailure};
pub use self::replay::{Comparison, Replayed};
pub use self::schema::check_input;
use self::takeover::{NewFolders, Takeover};
pub use self::tool::SkillTool;
pub use self::trust::TrustError;
use self::veil::Veil;
use crate::gateway::{answer_fits, prompt_fits, texts_fit, vectors_fit};
use crate::{Gateway, Proposal, Shelf, ShelfError, SkillEntry, SkillName, Trusted};

/// How often a run may ask the model.
const MAX_ASKED: usize = 16;

/// How much of what a run printed is kept.
const MAX_PRINTED: usize = 2_000;

/// What runs need.
pub struct RunOptions {
    /// Which skills are trusted, and where runs are recorded.
    pub shelf: Arc<Shelf>,
    /// Where they run; its project is the one whose folders they see.
    pub lab: Arc<Lab>,
    /// The local model, for skills that were promised one.
    pub gateway: Arc<dyn Gateway>,
    /// Where secrets come from.
    pub secrets: Arc<dyn Secrets>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where ids come from.
    pub ids: Arc<dyn IdSource>,
    /// The interpreter, as sandboxes see it.
    pub python: PathBuf,
}

/// Somewhere secrets are kept, by their names.
pub trait Secrets: Send + Sync {
    /// The secret of this name, if there is one.
    fn secret(&self, name: &str) -> Option<Secret>;
}

/// No secrets at all.
impl Secrets for () {
    fn secret(&self, _: &str) -> Option<Secret> {
        None
    }
}

/// Runs the trusted skills of a project.
pub struct Runs {
    options: RunOptions,
    /// Orders that are under way, by the request that they are.
    places: Mutex<BTreeMap<String, Place>>,
}

/// A run that is recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// What the ledger has of it.
    pub record: ExecutionRecord,
    /// What it gave, without secrets; nothing of one that failed.
    pub output: Option<Json>,
}

/// Why a skill was not run, or nothing is known of a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It is not trusted, or the forge's memory cannot answer.
    #[error(transparent)]
    Shelf(#[from] ShelfError),
    /// It is not what was trusted.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The rules or a person said no.
    #[error("it was not allowed: {reason}")]
    Denied {
        /// Why.
        reason: String,
        /// The rule that decided.
        rule: Option<String>,
    },
    /// The input is not what the proposal says.
    #[error("the input is not of the proposed form: {0}")]
    Input(String),
    /// The proposal's own schema cannot be used.
    #[error("the {which} schema of skill `{name}` cannot be used: {why}")]
    Schema {
        /// The skill.
        name: SkillName,
        /// `input` or `output`.
        which: &'static str,
        /// Why not.
        why: String,
    },
    /// A secret is not there.
    #[error("the secret `{0}` is not set")]
    NoSecret(String),
    /// A folder cannot be shown.
    #[error("the folders of the skill cannot be shown: {0}")]
    Folder(String),
    /// It cannot be started.
    #[error("the skill's sandbox cannot be used")]
    Lab(#[from] LabError),
    /// A value of a record cannot be kept, or is lost.
    #[error("the record of the run cannot be used")]
    Record(#[from] KeepError),
    /// A record is of another form.
    #[error("the record of run `{0}` cannot be read")]
    Unreadable(String, #[source] serde_json::Error),
    /// The machine gives no randomness.
    #[error("there is no randomness for an id")]
    NoRandomness,
    /// What it was given is not known any more.
    #[error("run `{0}` cannot be replayed: its input held a secret, which is not kept")]
    Masked(String),
    /// The kernel allowed it and did not run it.
    #[error("the kernel did not run it: {0}")]
    NotRun(String),
}

impl RunError {
    /// What to do about it.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Shelf(_) => "`fluffy skill show` tells where the skill stands",
            Self::Trust(error) => error.fix(),
            Self::Denied { .. } => {
                "a rule of `.fluffy/policy.yaml` for `skill.NAME` can allow it; `fluffy policy explain` tells why not"
            }
            Self::Input(_) => "`fluffy skill show` tells what it takes",
            Self::Schema { .. } => "revoke the skill and propose it again",
            Self::NoSecret(_) => {
                "set the variable of that name, or keep it: `fluffy auth set secret:NAME`"
            }
            Self::Folder(_) => "make them plain directories of the project",
            Self::Lab(_) => "`fluffy doctor` tells whether sandboxes can be made",
            Self::Record(_) | Self::Unreadable(..) => {
                "`fluffy skill doctor` looks at the forge's state"
            }
            Self::NoRandomness | Self::NotRun(_) => "try again",
            Self::Masked(_) => "run the skill with its input again",
        }
    }
}

/// How a run went, before it is recorded.
struct Went {
    output: Result<Json, RunFailure>,
    files: Vec<ChangedFile>,
    printed: Vec<u8>,
    sandbox: String,
}

impl Runs {
    /// The runs of a project.
    pub fn new(options: RunOptions) -> Arc<Self> {
        Arc::new(Self { options, places: Mutex::default() })
    }

    /// Runs a skill whose call was allowed as one of this proposal, and records it.
    fn perform(
        &self,
        judged: &Proposal,
        input: &Json,
        clerk: &dyn Clerk,
    ) -> Result<Finished, RunError> {
        let trusted = self.options.shelf.trusted(&judged.name)?;
        if trusted.spec != *judged {
            return Err(TrustError::Promoted(judged.name.clone()).into());
        }
        schema::check_input(&trusted.spec, input)?;
        let secrets = self.secrets_of(&trusted.spec)?;
        let veil = Veil::new(secrets.values());
        let execution = self.fresh("run")?;
        let started_ms = self.options.clock.now_ms();
        let went = self.attempt(&trusted, input, &secrets, (&execution, started_ms), clerk)?;
        self.record(&trusted, input, &veil, (execution, started_ms), went, clerk)
    }

    fn attempt(
        &self,
        trusted: &Trusted,
        input: &Json,
        secrets: &BTreeMap<&str, Secret>,
        (execution, started_ms): (&str, u64),
        clerk: &dyn Clerk,
    ) -> Result<Went, RunError> {
        let (spec, project) = (&trusted.spec, self.options.lab.project());
        let tree = Tree::open(project).map_err(|error| RunError::Folder(error.to_string()))?;
        let tree = Arc::new(tree);
        let modules = trust::modules(&tree, &spec.name, &trusted.sealed)?;
        let grant = Grant::of(spec);
        check_reads(&tree, grant.reads, clerk)?;
        let mut folders = grant.folders(|path| matches!(tree.look(path), Ok(Some(_))));
        let scratch = self.options.shelf.scratch();
        folders.hidden = hidden_in(&tree, &folders, &scratch, clerk).map_err(RunError::Folder)?;
        let made = NewFolders::make(project, &folders.changed).map_err(RunError::Folder)?;
        let listed = grant.reads.iter().chain(grant.writes);
        let place = |path: &ProjectPath| {
            (path.to_string(), project.join(path.as_str()).to_string_lossy().into_owned())
        };
        let told = Told {
            modules,
            module: spec.name.as_str(),
            class: spec.name.class_name(),
            input: input.value(),
            folders: listed.map(place).collect(),
            secrets: secrets.iter().map(|(name, secret)| (*name, secret.expose())).collect(),
            hosts: grant.hosts,
            model: spec.model,
        };
        let veil = Veil::new(secrets.values());
        let changed = folders.changed.clone();
        let talk = grant.talk(&self.options.python, folders, scratch);
        let ran = self
            .options
            .lab
            .converse(talk, clerk, |conversation| self.speak(conversation, &told, &veil));
        let (said, errands) = match ran {
            Ok(ran) => ran,
            Err(error) => {
                made.clear();
                return Err(error.into());
            }
        };
        let output = result(said, &errands).and_then(|output| schema::check_output(spec, output));
        let takeover = Takeover { project, folders: &changed, started_ms, execution, clerk };
        let (output, files) = taken(output, errands.left.as_ref(), &takeover);
        made.clear();
        Ok(Went { output, files, printed: errands.stderr.bytes, sandbox: errands.sandbox })
    }

    /// Says what is to be done, answers questions, and hears what came of it.
    fn speak(
        &self,
        conversation: &mut Conversation,
        told: &Told<'_>,
        veil: &Veil,
    ) -> Result<Json, Spoken> {
        let order = serde_json::to_vec(told).map_err(|error| Spoken::garbled(&error))?;
        conversation.say(&order)?;
        for _asked in 0..=MAX_ASKED {
            let said = conversation.hear()?;
            let answer = match Said::read(&said).map_err(|why| Spoken::garbled(&why))? {
                Said::Output(output) => return Ok(output),
                Said::Raised(raised) => return Err(RunFailure::Raised { raised }.into()),
                Said::Generate(_) | Said::Embed(_) if !told.model => {
                    Err("this skill has no model".to_owned())
                }
                Said::Generate(prompt) => self.generate(&veil.text(&prompt)),
                Said::Embed(texts) => {
                    self.embed(&texts.iter().map(|text| veil.text(text)).collect::<Vec<_>>())
                }
            };
            conversation.say(&frame::answer(answer))?;
        }
        Err(Spoken::garbled(&format_args!("it asked the model more than {MAX_ASKED} times")))
    }

    fn generate(&self, prompt: &str) -> Result<Value, String> {
        let asked = prompt_fits(prompt)
            .and_then(|()| self.options.gateway.generate(prompt))
            .and_then(answer_fits);
        asked.map(Value::from).map_err(|error| error.to_string())
    }

    fn embed(&self, texts: &[String]) -> Result<Value, String> {
        let asked = texts_fit(texts)
            .and_then(|()| self.options.gateway.embed(texts))
            .and_then(|vectors| vectors_fit(vectors, texts.len()));
        asked.map(|vectors| serde_json::json!(vectors)).map_err(|error| error.to_string())
    }

    fn record(
        &self,
        trusted: &Trusted,
        input: &Json,
        veil: &Veil,
        (execution, started_ms): (String, u64),
        went: Went,
        clerk: &dyn Clerk,
    ) -> Result<Finished, RunError> {
        let Self { options, .. } = self;
        let artifacts = options.shelf.artifacts();
        let (kept, _) = Kept::new(input.value(), veil, artifacts)?;
        let (output, error) = match went.output {
            Ok(output) => (Some(Kept::new(output.value(), veil, artifacts)?), None),
            Err(failure) => (None, Some(failure.veiled(veil))),
        };
        let (output, handed) = output.unzip();
        let ended_ms = options.clock.now_ms();
        let record = ExecutionRecord {
            execution: execution.clone(),
            skill: trusted.spec.name.clone(),
            parent: self.parent_of(clerk.request_id()),
            request: clerk.request_id().to_owned(),
            side_effect: trusted.spec.side_effect,
            sealed: record::sealed_digest(&trusted.sealed),
            input: kept,
            output,
            files: went.files,
            success: error.is_none(),
            error,
            printed: printed(&went.printed, veil),
            sandbox: went.sandbox,
            started_ms,
            ended_ms,
            duration_ms: ended_ms.saturating_sub(started_ms),
        };
        let told = serde_json::to_value(&record);
        let told = told.map_err(|error| RunError::Unreadable(execution.clone(), error))?;
        let (name, parent) = (record.skill.clone(), record.parent.clone());
        let entry = SkillEntry::Ran { name, execution, parent, record: told };
        options.shelf.record(clerk, &entry)?;
        Ok(Finished { record, output: handed })
    }

    fn secrets_of<'a>(&self, spec: &'a Proposal) -> Result<BTreeMap<&'a str, Secret>, RunError> {
        let find = |name: &'a String| {
            let secret = self.options.secrets.secret(name);
            secret.map(|it| (name.as_str(), it)).ok_or_else(|| RunError::NoSecret(name.clone()))
        };
        Grant::of(spec).secrets.iter().map(find).collect()
    }

    fn fresh(&self, prefix: &str) -> Result<String, RunError> {
        let bytes = self.options.ids.fresh().ok_or(RunError::NoRandomness)?;
        Ok(format!("{prefix}-{:032x}", u128::from_be_bytes(bytes)))
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<String, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a conversation gave no output.
enum Spoken {
    Failed(RunFailure),
    Guest(GuestFailure),
}

impl Spoken {
    fn garbled(why: &dyn std::fmt::Display) -> Self {
        let why = Excerpt::new(&why.to_string(), 500).to_string();
        Self::Failed(RunFailure::Garbled { why })
    }
}

impl From<RunFailure> for Spoken {
    fn from(failure: RunFailure) -> Self {
        Self::Failed(failure)
    }
}

impl From<GuestFailure> for Spoken {
    fn from(failure: GuestFailure) -> Self {
        Self::Guest(failure)
    }
}

/// What came of a conversation, with what is known of its end.
fn result(said: Result<Json, Spoken>, errands: &Errands) -> Result<Json, RunFailure> {
    let failure = match said {
        Ok(output) => return Ok(output),
        Err(Spoken::Failed(failure)) => return Err(failure),
        Err(Spoken::Guest(failure)) => failure,
    };
    // What it died of is seen by who watches its limits, perhaps after its pipes were closed.
    let reached = errands.reached.first().filter(|_| failure == GuestFailure::Died);
    if let Some(limit) = reached {
        return Err(RunFailure::Limit { limit: limit.to_string() });
    }
    Err(match (failure, &errands.end) {
        (_, End::Limit(limit)) => RunFailure::Limit { limit: limit.to_string() },
        (GuestFailure::Late, _) => RunFailure::Late,
        (GuestFailure::Garbled, _) => {
            RunFailure::Garbled { why: "it is no message, or too large a one".to_owned() }
        }
        (GuestFailure::Died, end) => RunFailure::NoResult { end: end.to_string() },
    })
}

/// Takes what a run wrote, if it did what it should.
fn taken(
    output: Result<Json, RunFailure>,
    left: Option<&Left>,
    takeover: &Takeover<'_>,
) -> (Result<Json, RunFailure>, Vec<ChangedFile>) {
    match (output, left) {
        (Ok(output), Some(left)) => match takeover.take(left) {
            Ok(files) => (Ok(output), files),
            Err((failure, files)) => (Err(failure), files),
        },
        (output, _) => (output, Vec::new()),
    }
}

/// Folders that the rules keep from the model are kept from skills.
fn check_reads(tree: &Tree, reads: &[ProjectPath], clerk: &dyn Clerk) -> Result<(), RunError> {
    for path in reads {
        if clerk.may("fs.list", path) == May::No {
            return Err(RunError::Folder(format!("the rules keep `{path}` from being read")));
        }
        tree.look(path).map_err(|error| RunError::Folder(causes(&error)))?;
    }
    Ok(())
}

/// The end of what a run printed, as text.
fn printed(bytes: &[u8], veil: &Veil) -> String {
    let text = veil.text(&String::from_utf8_lossy(bytes));
    let from = text.char_indices().rev().nth(MAX_PRINTED - 1).map_or(0, |(at, _)| at);
    text.get(from..).unwrap_or_default().to_owned()
}
