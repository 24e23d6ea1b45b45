//! What is going to be done: a function of what is wanted and of the skills that are trusted.
//!
//! **Invariant.** The same words, anchors and skills give the same plan with the same digest. Every step names a trusted
//! skill, what it may do comes from its proposal, and an input that is known beforehand fits its schema.

use fluffy_base::{Digest, Json};
use fluffy_forge::{Chain, SideEffect, SkillName, Step as ChainStep, check_input};
use serde_json::{Map, Value, json};

use crate::resolve::Bound;
use crate::skill::Known;

/// The most steps of one message.
pub const MAX_STEPS: usize = 4;

/// Who found out what was wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The words themselves say it.
    Words,
    /// A model read it out of them.
    Model,
}

/// Steps that are done one after another.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The steps, the first first.
    pub steps: Vec<Step>,
    /// Who found it out.
    pub origin: Origin,
}

/// One skill that is run.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Which.
    pub skill: SkillName,
    /// What it is given, by name.
    pub input: Vec<(String, Slot)>,
    /// What running it can do.
    pub effect: SideEffect,
    /// By which promotion it is trusted.
    pub promotion: Digest,
    /// What it can touch, in words.
    pub touches: Vec<String>,
}

/// A value of a step's input.
#[derive(Debug, Clone, PartialEq)]
pub enum Slot {
    /// This.
    Value(Value),
    /// What the step before gives there.
    Before(String),
}

/// Why nothing is planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanError {
    /// A skill is not trusted.
    NotTrusted(SkillName),
    /// What it would be given is not what it takes.
    Input {
        /// Which skill.
        skill: SkillName,
        /// Why not.
        why: String,
    },
    /// There are too many steps, or none.
    Steps(usize),
}

/// Plans.
pub fn plan(wanted: Vec<Bound>, known: &[Known], origin: Origin) -> Result<Plan, PlanError> {
    if wanted.is_empty() || wanted.len() > MAX_STEPS {
        return Err(PlanError::Steps(wanted.len()));
    }
    let step = |Bound { skill, input }| {
        let found = known.iter().find(|known| *known.name() == skill);
        let Some(found) = found else { return Err(PlanError::NotTrusted(skill)) };
        let step = Step {
            skill,
            input,
            effect: found.effect(),
            promotion: found.promotion,
            touches: touches(found),
        };
        step.check(found)?;
        Ok(step)
    };
    let steps = wanted.into_iter().map(step).collect::<Result<_, _>>()?;
    Ok(Plan { steps, origin })
}

impl Plan {
    /// Whether a person has to agree before it is done.
    pub fn asks(&self) -> bool {
        self.steps.iter().any(|step| match step.effect {
            SideEffect::ReadOnly => false,
            SideEffect::FileWrite
            | SideEffect::Network
            | SideEffect::SecretRead
            | SideEffect::Money
            | SideEffect::Messaging => true,
        })
    }

    /// One hash for all of it: skills, what they are given, what they may do, and as what they are trusted.
    pub fn digest(&self) -> Digest {
        let steps: Vec<Value> = self.steps.iter().map(Step::value).collect();
        // Values that were checked when they were made have a canonical text; what has none is hashed as it is written.
        let value = Value::Array(steps);
        let text = match Json::new(value.clone()) {
            Ok(json) => json.canonical().to_owned(),
            Err(_) => value.to_string(),
        };
        Digest::of(text.as_bytes())
    }

    /// The same for the forge's runner.
    pub fn chain(&self) -> Chain {
        let step = |step: &Step| ChainStep {
            skill: step.skill.clone(),
            input: step.input.iter().map(|(name, slot)| (name.clone(), slot.named())).collect(),
        };
        Chain { steps: self.steps.iter().map(step).collect() }
    }

    /// The same with the skills as they are trusted now; nothing where one is not any more.
    pub(crate) fn as_trusted_now(&self, known: &[Known]) -> Option<Self> {
        let bound = |step: &Step| Bound { skill: step.skill.clone(), input: step.input.clone() };
        plan(self.steps.iter().map(bound).collect(), known, self.origin).ok()
    }
}

impl Step {
    fn value(&self) -> Value {
        let input: Vec<Value> = self
            .input
            .iter()
            .map(|(name, slot)| match slot {
                Slot::Value(value) => json!([name, { "value": value }]),
                Slot::Before(way) => json!([name, { "before": way }]),
            })
            .collect();
        json!({
            "skill": self.skill.as_str(),
            "input": input,
            "effect": self.effect.name(),
            "promotion": self.promotion.to_string(),
        })
    }

    fn check(&self, known: &Known) -> Result<(), PlanError> {
        let misfit = |why: String| PlanError::Input { skill: self.skill.clone(), why };
        let mut members = Map::new();
        for (name, slot) in &self.input {
            let Slot::Value(value) = slot else { return Ok(()) };
            members.insert(name.clone(), value.clone());
        }
        let input = Json::new(members.into()).map_err(|error| misfit(error.to_string()))?;
        check_input(&known.spec, &input).map_err(|error| misfit(error.to_string()))
    }
}

impl Slot {
    /// As a chain names it: a plain text keeps its `$`.
    fn named(&self) -> Value {
        match self {
            Self::Value(value) => escaped(value),
            Self::Before(way) => format!("$prev.{way}").into(),
        }
    }
}

/// A value in which no text names another value.
fn escaped(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with('$') => format!("${text}").into(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        Value::Array(items) => items.iter().map(escaped).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), escaped(value)));
            Value::Object(members.collect())
        }
    }
}

/// What a skill can touch, from its proposal.
fn touches(known: &Known) -> Vec<String> {
    let spec = &known.spec;
    let paths = |paths: &[fluffy_base::ProjectPath]| {
        paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let lists = match spec.side_effect {
        SideEffect::ReadOnly => vec![("reads", paths(&spec.reads))],
        SideEffect::FileWrite => vec![("changes files in", paths(&spec.writes))],
        SideEffect::Network => vec![("talks to", spec.hosts.join(", "))],
        SideEffect::SecretRead | SideEffect::Money | SideEffect::Messaging => {
            vec![("talks to", spec.hosts.join(", ")), ("is given", spec.secrets.join(", "))]
        }
    };
    let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
    lists.map(|(what, list)| format!("{what} {list}")).collect()
}
