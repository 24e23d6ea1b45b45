//! Asks the gates about a skill's last build, and brings into the project what they let through.

use std::sync::Arc;

use fluffy_base::ProjectPath;
use fluffy_kernel::{Appended, Clerk, Journal, Note, ToolError, Tree};

use super::{Done, StepError, Steps, Verified};
use crate::build::{Shelved, bring};
use crate::{SkillName, VerificationError, VerifyOrder, check, locate, scan, verify};

/// The clerk for several threads at once.
pub(super) struct Told<'a>(pub(super) &'a dyn Clerk);

impl Journal for Told<'_> {
    fn record(&self, note: Note) -> Result<Appended, ToolError> {
        self.0.record(note)
    }
}

impl Steps {
    pub(super) fn verify(&self, name: SkillName, clerk: &dyn Clerk) -> Result<Done, StepError> {
        let shelf = &*self.options.shelf;
        let rules = &self.options.rules;
        let ended = verify(&VerifyOrder {
            name: &name,
            shelf,
            journal: &Told(clerk),
            policy: &|files, proposal, _| scan(files, &rules.for_proposal(proposal)),
            invariants: &|files, proposal, changed| check(files, proposal, changed),
            lab: &self.options.lab,
            tools: &locate(&self.options.cache)?,
            scratch: &self.options.dir.join("gates"),
            bringing: &self.copies(),
            tree: &self.tree()?,
            ids: &*self.options.ids,
        });
        let (verified, not_brought) = match ended {
            Ok(verified) => (verified, None),
            Err(VerificationError::NotBrought { name, source }) => {
                let skill = shelf.skill(&name)?;
                let known = skill.verification().ok_or(StepError::Another)?;
                (crate::Verified::of(known), Some(fluffy_kernel::causes(&*source)))
            }
            Err(error) => return Err(error.into()),
        };
        let crate::Verified { verification, build, report, entry, gates, sealed, passed, brought } =
            verified;
        Ok(Done::Verified(Verified {
            name,
            verification,
            build,
            passed,
            gates,
            sealed,
            report,
            brought,
            not_brought,
            entry,
        }))
    }

    /// Brings the verified files into the project; what is there already is done.
    pub(super) fn bring(
        &self,
        name: &SkillName,
        tree: &Arc<Tree>,
        journal: &dyn Journal,
    ) -> Result<Vec<ProjectPath>, StepError> {
        let shelf = &*self.options.shelf;
        let skill = shelf.skill(name)?;
        Ok(bring(&Shelved { shelf, journal }, &skill, tree, &self.copies())?)
    }
}
