//! The way of a skill as calls of the kernel: propose, build, verify, research, agree to a retry, promote, revoke.
//!
//! ```text
//! Wanted ── Kernel::submit ── rules, a person ── decision on disk ── StepTool ── Steps::perform ── Done
//! ```
//!
//! **Invariant.** There is one way to take a step: a request that the kernel allowed. A step does what its request says;
//! what no request can hold (keys, a transcript) is handed over beside it and is what the request says it is.
//!
//! **Invariant.** Who agreed is whoever the system says that this process works for, and never a word of a caller.

mod agent;
mod done;
mod error;
mod tool;
mod verify;
mod wanted;
mod workbench;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fluffy_base::{Clock, Decision, IdSource, Json, KernelRequest, ProjectPath, Secret};
use fluffy_kernel::{CallContext, Clerk, Kernel, Lab, May, Tree};
use serde_json::Value;

pub use self::agent::{AgentCoder, AgentOptions};
pub use self::done::{Built, Done, Promoted, Proposed, Researched, RetryAgreed, Revoked, Verified};
pub use self::error::StepError;
pub use self::tool::StepTool;
pub use self::wanted::{Craft, Wanted};
pub use self::workbench::Workbench;
use crate::build::{self, BuildOrder, Builder, CopyLimits, Shelved};
use crate::{
    Gateway, Inquire, Proposal, SHIPPED, ScanRules, Shelf, SkillName, Standing, approve_retry,
    findings, read_sealed, research,
};

/// The attempt of a shipped transcript that counts: there is one.
const SHIPPED_ATTEMPT: u32 = 1;

/// What steps need.
pub struct StepOptions {
    /// Where skills stand.
    pub shelf: Arc<Shelf>,
    /// Where builders and gates run; its project is the one whose skills these are.
    pub lab: Arc<Lab>,
    /// The local model that advises.
    pub gateway: Arc<dyn Gateway>,
    /// What the project forbids its skills beyond what is always forbidden.
    pub rules: ScanRules,
    /// The user's cache of this program, with the tools that check skills.
    pub cache: PathBuf,
    /// The forge's own directory in the project's state.
    pub dir: PathBuf,
    /// Where programs of builders are looked for.
    pub path: Vec<PathBuf>,
    /// Whom this process works for, by the system's word.
    pub person: String,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where ids come from.
    pub ids: Arc<dyn IdSource>,
}

/// Takes the steps of a project's skills.
pub struct Steps {
    options: StepOptions,
    /// Steps that are under way, by the request that they are.
    places: Mutex<BTreeMap<String, Place>>,
}

/// What is known of a step that is under way.
struct Place {
    wanted: Option<Wanted>,
    done: Option<Result<Done, StepError>>,
}

impl Steps {
    /// The steps of a project.
    pub fn new(options: StepOptions) -> Arc<Self> {
        Arc::new(Self { options, places: Mutex::default() })
    }

    /// Every step as a tool of the kernel's.
    pub fn tools(self: &Arc<Self>) -> Vec<StepTool> {
        tool::all(self)
    }

    /// Has the kernel take a step. One that ended badly is done, too; an error is a step that was not taken.
    pub fn take(&self, kernel: &Kernel, wanted: Wanted) -> Result<Done, StepError> {
        let wanted = wanted.settled(&self.options.shelf)?;
        let id = format!("step-{}", self.fresh()?);
        let (tool, intent) = (wanted.tool(), wanted.intent());
        let params = Json::new(wanted.params()).map_err(StepError::Json)?;
        let mut request = KernelRequest::call(&id, "user", &intent, tool, params);
        request.ts_ms = i64::try_from(self.options.clock.now_ms()).unwrap_or(i64::MAX);
        self.places().insert(id.clone(), Place { wanted: Some(wanted), done: None });
        let receipt = kernel.submit_from(&CallContext::default(), request);
        let place = self.places().remove(&id);
        match (receipt.decision, place.and_then(|place| place.done)) {
            (Decision::Allow, Some(done)) => done,
            (Decision::Allow, None) => Err(StepError::NotTaken(receipt.error.unwrap_or_default())),
            (Decision::Deny | Decision::Halt, _) => Err(StepError::Denied {
                reason: receipt.error.unwrap_or_default(),
                rule: receipt.rule,
            }),
        }
    }

    /// Finishes what a process that died left half done: verified files that are not in the project yet. What a person
    /// changed meanwhile stays, and is told by the step that needs it.
    pub fn settle(&self) -> Result<(), StepError> {
        let tree = self.tree()?;
        // Nobody is told: whoever needs the files looks again.
        let _told = build::settle(&tree, &self.copies());
        for listed in self.options.shelf.skills()? {
            if listed.standing == Standing::Verified {
                let _told = self.bring(&listed.name, &tree, &());
            }
        }
        Ok(())
    }

    /// Takes a step that was allowed.
    fn perform(&self, wanted: Wanted, params: &Json, clerk: &dyn Clerk) -> Result<Done, StepError> {
        if wanted.params() != *params.value() {
            return Err(StepError::Another);
        }
        let (shelf, person) = (&*self.options.shelf, &*self.options.person);
        match wanted {
            Wanted::Propose { spec } => self.propose(*spec, clerk),
            Wanted::Build { name, craft } => self.build(name, &craft, clerk),
            Wanted::Verify { name } => self.verify(name, clerk),
            Wanted::Research { name, build, hint, advise } => {
                let advisor = advise.then_some(&*self.options.gateway);
                let (build, hint) = (build.as_deref(), hint.as_deref());
                let order = Inquire { name: &name, build, hint, advisor };
                Ok(Done::Researched(Researched::of(research(&order, shelf, clerk)?)))
            }
            Wanted::Retry { name, build } => {
                let entry = approve_retry(&name, person, shelf, clerk)?.seq;
                Ok(Done::RetryAgreed(RetryAgreed { name, build, by: person.to_owned(), entry }))
            }
            Wanted::Promote { name, verification } => self.promote(name, &verification, clerk),
            Wanted::Revoke { name, why } => {
                let entry = shelf.revoke(clerk, &name, person, &why)?.seq;
                Ok(Done::Revoked(Revoked { name, by: person.to_owned(), why, entry }))
            }
        }
    }

    fn propose(&self, spec: Proposal, clerk: &dyn Clerk) -> Result<Done, StepError> {
        let name = spec.name.clone();
        let entry = self.options.shelf.propose(clerk, spec)?.seq;
        let proposal = self.options.shelf.skill(&name)?.proposal;
        let (id, artifact) = (proposal.id, proposal.artifact);
        Ok(Done::Proposed(Proposed { name, proposal: id, spec: proposal.spec, artifact, entry }))
    }

    fn build(&self, name: SkillName, craft: &Craft, clerk: &dyn Clerk) -> Result<Done, StepError> {
        let StepOptions { shelf, lab, path, ids, .. } = &self.options;
        let skill = shelf.skill(&name)?;
        let findings = findings(&name, shelf)?;
        let looked_into = skill.last_build().is_some_and(|build| !build.research.is_empty());
        if findings.is_some() && !looked_into {
            return Err(StepError::Unresearched(name));
        }
        let (player, shipped);
        let (builder, keys): (_, &[(String, Secret)]) = match craft {
            Craft::Program { program, keys } => (Builder::Program(program.clone()), keys),
            Craft::Coder { name, coder } => {
                (Builder::Coder { name: name.clone(), coder: &**coder }, &[])
            }
            Craft::Transcript { name, transcript, .. } => {
                player = transcript.coder(skill.next_attempt());
                (Builder::Coder { name: name.clone(), coder: &player }, &[])
            }
            Craft::Shipped(skill) => {
                shipped = skill.transcript()?;
                // Whichever attempt it is, what is shipped is the same.
                player = shipped.coder(SHIPPED_ATTEMPT);
                (Builder::Coder { name: SHIPPED.to_owned(), coder: &player }, &[])
            }
        };
        let hidden = |path: &ProjectPath| clerk.may("fs.read", path) != May::Yes;
        let order = BuildOrder {
            name: &name,
            builder: &builder,
            findings: findings.as_ref(),
            rules: &self.told_rules(),
            keys,
            path,
            tree: &self.tree()?,
            hidden: &hidden,
            limits: CopyLimits::default(),
            scratch: &self.options.dir.join("builds"),
            lab,
            journal: clerk,
            ids: &**ids,
        };
        let built = build::build(&order, &Shelved { shelf, journal: clerk })?;
        Ok(Done::Built(Built::of(name, built)))
    }

    /// Trusts what the person was shown, and nothing that was verified since.
    fn promote(
        &self,
        name: SkillName,
        verification: &str,
        clerk: &dyn Clerk,
    ) -> Result<Done, StepError> {
        let (shelf, person) = (&self.options.shelf, &*self.options.person);
        let skill = shelf.skill(&name)?;
        if let Some(verified) = skill.verification() {
            if verified.id != verification {
                return Err(StepError::Another);
            }
            if read_sealed(shelf.project(), &verified.sealed).is_err() {
                // A process may have died before they were all in the project.
                self.bring(&name, &self.tree()?, clerk)?;
            }
        }
        let entry = shelf.promote(clerk, &name, person)?.seq;
        let sealed = shelf.trusted(&name)?.sealed;
        let (verification, by) = (verification.to_owned(), person.to_owned());
        Ok(Done::Promoted(Promoted { name, verification, by, sealed, entry }))
    }

    /// What the project forbids beyond the packet's own words, a line each.
    fn told_rules(&self) -> Vec<String> {
        let rules = &self.options.rules;
        let imports = rules.forbidden_imports.iter().map(|it| format!("no import of `{it}`"));
        let calls = rules.forbidden_calls.iter().map(|it| format!("no use of `{it}`"));
        let patterns = rules.patterns.iter().map(|it| format!("{}: {}", it.name(), it.why()));
        imports.chain(calls).chain(patterns).collect()
    }

    fn tree(&self) -> Result<Arc<Tree>, StepError> {
        let opened = Tree::open(self.options.shelf.project());
        opened.map(Arc::new).map_err(StepError::Project)
    }

    fn copies(&self) -> PathBuf {
        self.options.dir.join("copy-back")
    }

    fn fresh(&self) -> Result<String, StepError> {
        let bytes = self.options.ids.fresh().ok_or(StepError::NoRandomness)?;
        Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<String, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was ordered by a request; once.
    fn ordered(&self, request: &str) -> Option<Wanted> {
        self.places().get_mut(request).and_then(|place| place.wanted.take())
    }

    /// Leaves what came of a request for whoever ordered it; gives the short of it.
    fn leave(&self, request: &str, done: Result<Done, StepError>) -> Result<Value, String> {
        let told = match &done {
            Ok(done) => Ok(done.short()),
            Err(error) => Err(fluffy_kernel::causes(error)),
        };
        if let Some(place) = self.places().get_mut(request) {
            place.done = Some(done);
        }
        told
    }
}
