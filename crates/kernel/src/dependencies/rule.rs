//! The section `dependencies` of the policy as a rule among rules.
//!
//! **Invariant.** It judges what was resolved from the very arguments of the call. What was not resolved is not installed.

use std::sync::Arc;

use fluffy_base::Digest;
use fluffy_policy::{Facts, Layer, Reason, Reasons, Rule, Verdict};

use crate::session::Desk;

/// The call that installs.
pub(crate) const INSTALL: &str = "deps.install";

/// Judges installations by what they resolved to.
pub(crate) struct DependencyPolicyRule(pub(crate) Arc<Desk>);

impl Rule for DependencyPolicyRule {
    fn name(&self) -> &str {
        "dependencies"
    }

    fn layer(&self) -> Layer {
        Layer::Yaml
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        if facts.tool() != Some(INSTALL) {
            return Verdict::Pass;
        }
        let reason = |layer, text: &str| Reason::new(layer, self.name(), text);
        let arguments = facts.tool_params().map(|params| Digest::of(params.canonical().as_bytes()));
        let (Some(dependencies), Some(arguments)) = (&self.0.dependencies, arguments) else {
            return Verdict::deny(reason(Layer::Workflow, "packages cannot be installed here"));
        };
        let resolution = dependencies.resolution();
        let resolution = resolution.as_ref().filter(|it| it.arguments == arguments);
        let judgement = match resolution.map(|it| &it.outcome) {
            Some(Ok(resolved)) => &resolved.judgement,
            Some(Err(why)) => {
                let hint = "do what the package manager says, or name other packages";
                return Verdict::deny(reason(Layer::Workflow, why).with_hint(hint));
            }
            None => {
                return Verdict::deny(reason(Layer::Workflow, "the packages were not resolved"));
            }
        };
        let hint =
            "change `dependencies` in .fluffy/policy.yaml if they are meant, or choose others";
        let denied = judgement.denied.iter().map(|text| reason(Layer::Yaml, text).with_hint(hint));
        if let Some(denied) = Reasons::collect(denied) {
            return Verdict::Deny(denied);
        }
        let personal = judgement.personal.iter().map(|text| reason(Layer::BuiltIn, text));
        let asked = judgement.asked.iter().map(|text| reason(Layer::Yaml, text));
        Reasons::collect(personal.chain(asked)).map_or(Verdict::Pass, Verdict::Review)
    }
}
