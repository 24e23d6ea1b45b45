//! A run that a person orders: a request like any other, and who waits for what comes of it.

use fluffy_base::{Decision, Json, KernelRequest};
use fluffy_kernel::{CallContext, Kernel};

use super::{Finished, RunError, Runs, schema};
use crate::SkillName;

/// What is to be run.
#[derive(Debug, Clone)]
pub struct RunOrder {
    /// Which skill.
    pub name: SkillName,
    /// With what.
    pub input: Json,
    /// The run that it follows.
    pub parent: Option<String>,
    /// Who asks, as requests name them.
    pub actor: String,
    /// Who asks, as the kernel knows them.
    pub context: CallContext,
}

/// What is known of an order that is under way.
pub(super) struct Place {
    parent: Option<String>,
    finished: Option<Result<Finished, RunError>>,
}

impl RunOrder {
    /// A run that the person asks for.
    pub fn new(name: SkillName, input: Json) -> Self {
        let (actor, context) = ("user".to_owned(), CallContext::default());
        Self { name, input, parent: None, actor, context }
    }
}

impl Runs {
    /// Has the kernel run a skill that it knows as a tool. A run that failed is finished, too; an error is a run that
    /// was not, or is not recorded.
    pub fn run(&self, kernel: &Kernel, order: RunOrder) -> Result<Finished, RunError> {
        if let Some(parent) = &order.parent {
            self.options.shelf.execution(parent)?;
        }
        let id = self.fresh("skill")?;
        let (tool, intent) = (order.name.tool_name(), format!("run skill {}", order.name));
        let input = order.input.clone();
        let mut request = KernelRequest::call(&id, &order.actor, &intent, &tool, input);
        request.ts_ms = i64::try_from(self.options.clock.now_ms()).unwrap_or(i64::MAX);
        self.places().insert(id.clone(), Place { parent: order.parent, finished: None });
        let receipt = kernel.submit_from(&order.context, request);
        let place = self.places().remove(&id);
        match (receipt.decision, place.and_then(|place| place.finished)) {
            (Decision::Allow, Some(finished)) => finished,
            (Decision::Allow, None) => Err(RunError::NotRun(receipt.error.unwrap_or_default())),
            (Decision::Deny | Decision::Halt, _) => {
                let (reason, rule) = (receipt.error.unwrap_or_default(), receipt.rule);
                Err(self
                    .misfit(&order.name, &order.input)
                    .unwrap_or(RunError::Denied { reason, rule }))
            }
        }
    }

    /// What is wrong with an input: the kernel refuses it before any rule is asked, and that is no denial.
    fn misfit(&self, name: &SkillName, input: &Json) -> Option<RunError> {
        let trusted = self.options.shelf.trusted(name).ok()?;
        schema::check_input(&trusted.spec, input).err()
    }

    /// The run that the run of a request follows.
    pub(super) fn parent_of(&self, request: &str) -> Option<String> {
        self.places().get(request).and_then(|place| place.parent.clone())
    }

    /// Leaves what came of a request for whoever ordered it; gives it back if nobody did.
    pub(super) fn leave(
        &self,
        request: &str,
        finished: Result<Finished, RunError>,
    ) -> Option<Result<Finished, RunError>> {
        match self.places().get_mut(request) {
            Some(place) => {
                place.finished = Some(finished);
                None
            }
            None => Some(finished),
        }
    }
}
