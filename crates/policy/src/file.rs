//! A policy as it is written: `policy.yaml`.
//!
//! **Invariant.** A file is understood completely or not at all. Unknown keys, duplicate keys,
//! wrong types and values without a meaning are errors with file, line and column.
//!
//! **Invariant.** Two files with the same meaning have the same digest, however they are written.

mod dependencies;
mod output;
mod rules;
mod sections;
mod skills;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::str::FromStr as _;
use std::sync::Arc;

use fluffy_base::{ByteSize, Digest, Excerpt, Json, JsonError, KernelState, ProjectPath};
use serde_json::{Value, json};

pub use self::dependencies::{AskAbout, DependencyRules, ECOSYSTEMS, PackagePattern};
pub(crate) use self::output::OutputRules;
pub use self::sections::{EXEMPTIONS, Exemption, Exemptions, NetworkWhitelist};
pub use self::skills::{SkillPattern, SkillRules};
use crate::capabilities::Capabilities;
use crate::jurisdiction::{Jurisdiction, Limits, Names, RequiredField};
use crate::rule::Rule;
use crate::sanitise::Sanitiser;
use crate::warning::{self, Warning};
use crate::yaml::{self, Field, PolicyError, PolicyProblem, Problem};
use crate::{examples, meaning};

/// The policy that holds where a project has none of its own.
pub const DEFAULT_POLICY: &str = include_str!("default_policy.yaml");

/// JSON Schema of a policy, for editors: what it refuses, [`PolicyFile::parse`] refuses as well.
pub const POLICY_SCHEMA: &str = include_str!("policy.schema.json");

/// The most that is read of a policy: 8 MiB.
pub const MAX_POLICY_BYTES: usize = 8 << 20;

/// The one version of the format.
const VERSION: u8 = 1;

/// A policy that was understood completely.
#[derive(Debug, Clone)]
pub struct PolicyFile {
    name: Arc<str>,
    jurisdiction: Jurisdiction,
    /// Absent where the file has no rules, and the jurisdiction is all there is.
    capabilities: Option<Arc<Capabilities>>,
    extensions: Vec<ProjectPath>,
    exemptions: Exemptions,
    network: NetworkWhitelist,
    output: OutputRules,
    skills: SkillRules,
    dependencies: DependencyRules,
    sanitiser: Arc<Sanitiser>,
    warnings: Vec<Warning>,
    digest: Digest,
}

impl PolicyFile {
    /// Reads a policy; `name` is what errors call it.
    pub fn parse(name: &str, text: &str) -> Result<Self, PolicyError> {
        let name: Arc<str> = Excerpt::new(name, 200).to_string().into();
        read(&name, text).map_err(|Problem { line, column, what: problem }| {
            let file = name.to_string();
            PolicyError { file, line, column, problem }
        })
    }

    /// Reads a policy from bytes that may not even be text.
    pub fn parse_bytes(name: &str, bytes: &[u8]) -> Result<Self, PolicyError> {
        let refuse = |line, column, problem| {
            let file = Excerpt::new(name, 200).to_string();
            Err(PolicyError { file, line, column, problem })
        };
        if bytes.len() > MAX_POLICY_BYTES {
            let problem = PolicyProblem::TooLarge { bytes: bytes.len(), max: MAX_POLICY_BYTES };
            return refuse(1, 1, problem);
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse(name, text),
            Err(error) => {
                let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
                let line = 1 + before.iter().filter(|byte| **byte == b'\n').count() as u64;
                let last = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
                let column = 1 + String::from_utf8_lossy(last).chars().count() as u64;
                refuse(line, column, PolicyProblem::Syntax("the file is not UTF-8 here".to_owned()))
            }
        }
    }

    /// A policy that was never written down.
    pub fn from_jurisdiction(jurisdiction: Jurisdiction) -> Result<Self, JsonError> {
        let mut policy = Self {
            name: "policy".into(),
            jurisdiction,
            capabilities: None,
            extensions: Vec::new(),
            exemptions: Exemptions::new(),
            network: NetworkWhitelist::new(),
            output: OutputRules::default(),
            skills: SkillRules::default(),
            dependencies: DependencyRules::default(),
            sanitiser: Arc::default(),
            warnings: Vec::new(),
            digest: Digest::GENESIS,
        };
        policy.digest = Digest::of(Json::new(policy.meaning())?.canonical().as_bytes());
        Ok(policy)
    }

    /// Who may ask for what.
    pub fn jurisdiction(&self) -> &Jurisdiction {
        &self.jurisdiction
    }

    /// The rules of the file, as rules. Where it has capabilities, these allow, and the jurisdiction
    /// only limits; where it has none, the jurisdiction is the whole policy.
    pub fn rules(&self) -> Vec<Box<dyn Rule>> {
        match &self.capabilities {
            None => vec![Box::new(self.jurisdiction.clone())],
            Some(capabilities) => {
                vec![
                    Box::new(Limits(self.jurisdiction.clone())),
                    Box::new(Arc::clone(capabilities)),
                ]
            }
        }
    }

    /// The capabilities, if the file has any.
    pub fn capabilities(&self) -> Option<&Arc<Capabilities>> {
        self.capabilities.as_ref()
    }

    /// Files with rules in TypeScript.
    pub fn extensions(&self) -> &[ProjectPath] {
        &self.extensions
    }

    /// What may be exempt from test-first work.
    pub fn exemptions(&self) -> &Exemptions {
        &self.exemptions
    }

    /// Hosts that sandboxes may reach.
    pub fn network(&self) -> &NetworkWhitelist {
        &self.network
    }

    /// What skills may not use beyond what is always forbidden.
    pub fn skills(&self) -> &SkillRules {
        &self.skills
    }

    /// Which packages a task may install.
    pub fn dependencies(&self) -> &DependencyRules {
        &self.dependencies
    }

    /// What of a result is masked, and how much of it is handed on.
    pub fn sanitiser(&self) -> &Arc<Sanitiser> {
        &self.sanitiser
    }

    /// What is probably not meant as it is written.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// What the file is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The digest of what the policy means: SHA-256 of its canonical JSON.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    fn meaning(&self) -> Value {
        let mut meaning =
            json!({ "jurisdiction": self.jurisdiction.meaning(), "version": VERSION });
        let mut add = |key: &str, value: Option<Value>| {
            if let (Some(members), Some(value)) = (meaning.as_object_mut(), value) {
                members.insert(key.to_owned(), value);
            }
        };
        add("capabilities", self.capabilities.as_deref().map(meaning::of_rules));
        let paths: BTreeSet<_> = self.extensions.iter().map(ProjectPath::as_str).collect();
        add("extensions", (!paths.is_empty()).then(|| json!(paths)));
        add("tdd_exemptions", meaning::of_exemptions(&self.exemptions));
        let output =
            (self.output != OutputRules::default()).then(|| meaning::of_output(&self.output));
        add("output", output);
        let skills =
            (self.skills != SkillRules::default()).then(|| meaning::of_skills(&self.skills));
        add("skills", skills);
        let dependencies = (self.dependencies != DependencyRules::default())
            .then(|| meaning::of_dependencies(&self.dependencies));
        add("dependencies", dependencies);
        add("network_whitelist", (!self.network.is_empty()).then(|| json!(self.network)));
        meaning
    }
}

fn read(name: &Arc<str>, text: &str) -> Result<PolicyFile, Problem> {
    if text.len() > MAX_POLICY_BYTES {
        let what = PolicyProblem::TooLarge { bytes: text.len(), max: MAX_POLICY_BYTES };
        return Err(Problem { line: 1, column: 1, what });
    }
    let root = yaml::parse(text)?;
    let [
        version,
        jurisdiction,
        capabilities,
        extensions,
        exemptions,
        network,
        output,
        skills,
        dependencies,
    ] = root.root().fields([
        "version",
        "jurisdiction",
        "capabilities",
        "extensions",
        "tdd_exemptions",
        "network_whitelist",
        "output",
        "skills",
        "dependencies",
    ])?;
    if let Some(version) = version {
        check_version(&version)?;
    }
    let jurisdiction = read_or(jurisdiction, Jurisdiction::default(), read_jurisdiction)?;
    let output = read_or(output, OutputRules::default(), output::read)?;
    let sanitiser = output.sanitiser().map_err(|error| root.root().invalid(&error))?;
    let rules = capabilities.map(|field| rules::read(name, &field)).transpose()?;
    let mut policy = PolicyFile {
        name: Arc::clone(name),
        jurisdiction,
        warnings: rules.as_deref().map(warning::of_rules).unwrap_or_default(),
        capabilities: rules.map(|rules| Arc::new(Capabilities::new(rules))),
        extensions: read_or(extensions, Vec::new(), sections::read_extensions)?,
        exemptions: read_or(exemptions, Exemptions::new(), sections::read_exemptions)?,
        network: read_or(network, NetworkWhitelist::new(), sections::read_network)?,
        output,
        skills: read_or(skills, SkillRules::default(), skills::read)?,
        dependencies: read_or(dependencies, DependencyRules::default(), dependencies::read)?,
        sanitiser: Arc::new(sanitiser),
        digest: Digest::GENESIS,
    };
    if let Some(capabilities) = &policy.capabilities {
        examples::check(capabilities)?;
    }
    let meaning = Json::new(policy.meaning()).map_err(|error| root.root().invalid(&error))?;
    policy.digest = Digest::of(meaning.canonical().as_bytes());
    Ok(policy)
}

fn check_version(field: &Field<'_>) -> Result<(), Problem> {
    let expected = format!("the number {VERSION}");
    if field.integer(&expected)? == i128::from(VERSION) {
        Ok(())
    } else {
        Err(field.invalid(&format!("this program knows version {VERSION} only")))
    }
}

fn read_jurisdiction(field: &Field<'_>) -> Result<Jurisdiction, Problem> {
    let [actors, tools, states, fields, param_bytes, intent_length] = field.fields([
        "allowed_actors",
        "allowed_tools",
        "allowed_states",
        "required_fields",
        "max_param_bytes",
        "max_intent_length",
    ])?;
    let absent = Jurisdiction::default();
    Ok(Jurisdiction {
        allowed_actors: read_or(actors, absent.allowed_actors, read_names)?,
        allowed_tools: read_or(tools, absent.allowed_tools, read_names)?,
        allowed_states: read_or(states, absent.allowed_states, read_states)?,
        required_fields: read_or(fields, absent.required_fields, read_fields)?,
        max_param_bytes: read_or(param_bytes, absent.max_param_bytes, read_bytes)?,
        max_intent_length: intent_length.map(|field| read_length(&field)).transpose()?,
    })
}

fn read_or<T>(
    field: Option<Field<'_>>,
    absent: T,
    read: fn(&Field<'_>) -> Result<T, Problem>,
) -> Result<T, Problem> {
    field.map_or(Ok(absent), |field| read(&field))
}

fn read_names(field: &Field<'_>) -> Result<Names, Problem> {
    let items = field.texts()?;
    Names::only(items.iter().map(|(_, text)| *text)).map_err(|error| {
        // The list is refused as a whole; the error stands at the item that is to blame alone.
        let culprit = items.iter().find(|(_, text)| Names::only([*text]) == Err(error));
        culprit.map_or(field, |(item, _)| item).invalid(&error)
    })
}

fn read_states(field: &Field<'_>) -> Result<Vec<KernelState>, Problem> {
    let known = KernelState::ALL.map(KernelState::name).join(", ");
    let state = |(item, text): (Field<'_>, &str)| {
        KernelState::from_name(text)
            .ok_or_else(|| item.invalid(&format!("a state is one of {known}")))
    };
    field.texts()?.into_iter().map(state).collect()
}

fn read_fields(field: &Field<'_>) -> Result<BTreeSet<RequiredField>, Problem> {
    let required = |(item, text): (Field<'_>, &str)| {
        RequiredField::from_str(text).map_err(|error| item.invalid(&error))
    };
    field.texts()?.into_iter().map(required).collect()
}

fn read_bytes(field: &Field<'_>) -> Result<u64, Problem> {
    let text = field.quantity("a size, such as `64KiB` or a number of bytes")?;
    ByteSize::from_str(&text).map(|size| size.bytes()).map_err(|error| field.invalid(&error))
}

fn read_length(field: &Field<'_>) -> Result<usize, Problem> {
    let expected = "a number of characters";
    let length = field.integer(expected)?;
    usize::try_from(length)
        .ok()
        .and_then(NonZeroUsize::new)
        .map(NonZeroUsize::get)
        .ok_or_else(|| field.invalid(&format!("it is {expected}, from 1")))
}

#[cfg(test)]
mod tests;
