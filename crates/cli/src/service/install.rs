//! Installs a skill that comes with the program. It goes the way of every other skill, one request after the other, from
//! wherever an earlier attempt left it.

use fluffy_forge::steps::{Craft, Done, StepError, Wanted};
use fluffy_forge::{SHIPPED, ShelfError, Shipped, Skill, SkillName, Standing, locate};

use super::skill::Hand;
use crate::explain::{CliError, Explained, USAGE};
use crate::forge::{Answer, Installed};

impl Hand<'_> {
    /// Takes a shipped skill to trust, or as far as it gets.
    pub(super) fn install(&self, name: &str) -> Result<Answer, CliError> {
        let shipped = Shipped::find(name).ok_or_else(|| unknown(name))?;
        // Nothing is begun that cannot be brought to its end.
        locate(&self.scene.place.cache()?).map_err(StepError::from)?;
        let spec = shipped.proposal().map_err(StepError::from)?;
        let name = spec.name.clone();
        let before = match self.forge.shelf.skill(&name) {
            Ok(skill) if skill.proposal.spec != spec => return Err(another(&skill)),
            Ok(skill) if is_anothers(&skill) => return Err(another(&skill)),
            Ok(skill) => Some(skill.standing),
            Err(ShelfError::Unknown(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let mut steps = Vec::new();
        let taken = self.each_step(before, shipped, spec, &mut steps);
        let stopped = taken.err().map(|error| error.explained());
        let standing = self.forge.shelf.skill(&name).ok().map(|skill| skill.standing);
        Ok(Answer::Installed(Installed { name, standing, steps, stopped }))
    }

    /// Every step that is missing, until one does not end well.
    fn each_step(
        &self,
        before: Option<Standing>,
        shipped: &'static Shipped,
        spec: fluffy_forge::Proposal,
        steps: &mut Vec<Done>,
    ) -> Result<(), CliError> {
        let name = spec.name.clone();
        let mut take = |wanted| -> Result<bool, CliError> {
            let done = self.forge.steps.take(self.kernel, wanted)?;
            let well = done.succeeded();
            steps.push(done);
            Ok(well)
        };
        let (is_verified, is_trusted) = match before {
            None => {
                take(Wanted::Propose { spec: Box::new(spec) })?;
                (false, false)
            }
            Some(Standing::Proposed | Standing::Built | Standing::Revoked) => (false, false),
            Some(Standing::Verified) => (true, false),
            Some(Standing::Trusted) => (true, true),
        };
        if !is_verified {
            self.prepare(&name)?;
            let build = Wanted::Build { name: name.clone(), craft: Craft::Shipped(shipped) };
            if !take(build)? || !take(Wanted::Verify { name: name.clone() })? {
                return Ok(());
            }
        }
        if !is_trusted {
            take(Wanted::Promote { name, verification: String::new() })?;
        }
        Ok(())
    }
}

/// Whether what would be trusted was built by somebody else.
fn is_anothers(skill: &Skill) -> bool {
    let waits = skill.standing == Standing::Verified;
    waits && skill.last_build().is_some_and(|build| build.attempt.builder != SHIPPED)
}

fn unknown(name: &str) -> CliError {
    let names: Vec<_> = fluffy_forge::shipped().iter().map(|skill| skill.name).collect();
    CliError::Told(Explained {
        what: format!("no skill `{}` comes with fluffy", fluffy_base::Excerpt::new(name, 80)),
        why: format!("there are {}", names.join(", ")),
        fix: "see what they do: fluffy skill list --shipped".to_owned(),
        code: USAGE,
    })
}

fn another(skill: &Skill) -> CliError {
    let name: &SkillName = &skill.name;
    CliError::Told(Explained {
        what: format!("this project has a skill `{name}` of its own"),
        why: format!("it is {}, and not the one that comes with fluffy", skill.standing.name()),
        fix: format!("look at it: fluffy skill show {name}"),
        code: USAGE,
    })
}
