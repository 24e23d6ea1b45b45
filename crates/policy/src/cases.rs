//! Cases beside a policy: calls as an author imagines them, each with what the policy must say.
//!
//! **Invariant.** A file of cases is understood completely or not at all, as a policy is.
//!
//! **Invariant.** A case is judged by the rules that it is given and by nothing else, so the same case
//! comes out the same for the author and for the kernel.

use std::collections::{BTreeMap, BTreeSet};

use fluffy_base::{Excerpt, Json, KernelRequest, KernelState, PathError, ProjectPath, normalised};

use crate::calls::shape_of;
use crate::facts::{Caller, Facts, Isolation, Subject};
use crate::file::MAX_POLICY_BYTES;
use crate::rule::{Decided, Rule, decide};
use crate::verdict::{Layer, Reason, Strength, Verdict};
use crate::yaml::{self, Field, PolicyError, PolicyProblem, Problem};

/// Who asks where nobody is named.
pub const SAMPLE_ACTOR: &str = "model";

/// A call as the author of a policy imagines it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampleCall {
    /// The call's name.
    pub syscall: String,
    /// The paths it names, as they would be written; `.` is the project's root.
    pub paths: Vec<String>,
    /// Who asks.
    pub actor: String,
    /// Tags of who asks.
    pub tags: BTreeSet<String>,
    /// The session's mode.
    pub mode: Option<String>,
    /// State of the test-first workflow.
    pub workflow_state: Option<String>,
    /// The command it would run, word by word.
    pub command: Option<Vec<String>>,
}

/// A call with what the policy must say to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// What the author calls it.
    pub name: String,
    /// The line in which it begins, from 1.
    pub line: u64,
    /// The call.
    pub call: SampleCall,
    /// What must be decided: allow, review or deny.
    pub expected: Strength,
    /// The rule that must decide, where that is said.
    pub rule: Option<String>,
}

/// Reads cases; `name` is what errors call the file.
pub fn read_cases(name: &str, text: &str) -> Result<Vec<Case>, PolicyError> {
    read(text).map_err(|Problem { line, column, what: problem }| {
        let file = Excerpt::new(name, 200).to_string();
        PolicyError { file, line, column, problem }
    })
}

impl SampleCall {
    /// The request that such a call would be.
    pub fn request(&self) -> KernelRequest {
        let (actor, call) = (normalised(&self.actor), normalised(&self.syscall));
        KernelRequest::call("sample", &actor, "sample", &call, Json::empty_object())
    }

    /// What it acts on, by the shape of the tool. Of a tool that is none of ours the worst is
    /// assumed: that it changes what it names.
    pub fn subject(&self) -> Result<Subject, PathError> {
        let shape = shape_of(&self.syscall);
        let mut subject = Subject {
            isolation: shape.map_or(Isolation::Sandbox, |shape| shape.isolation),
            changes: shape.is_none_or(|shape| shape.changes),
            root: self.paths.is_empty() && shape.is_some_and(|shape| shape.root_by_default),
            command: self.command.clone(),
            ..Subject::default()
        };
        for text in &self.paths {
            match ProjectPath::parse(text) {
                Ok(path) => subject.paths.push(path),
                Err(PathError::Root) => subject.root = true,
                Err(error) => return Err(error),
            }
        }
        subject.paths.sort_unstable();
        subject.paths.dedup();
        Ok(subject)
    }

    /// Who would ask.
    pub fn caller(&self) -> Caller {
        Caller {
            tags: self.tags.clone(),
            mode: self.mode.clone(),
            workflow_state: self.workflow_state.clone(),
            ..Caller::default()
        }
    }

    /// What these rules decide. A path that names no file of the project is refused, as the kernel
    /// refuses it before any rule is asked.
    pub fn decide<'r>(&self, rules: impl Iterator<Item = &'r dyn Rule> + Clone) -> Decided {
        match self.subject() {
            Err(error) => refused_path(&error),
            Ok(subject) => {
                let (request, caller) = (self.request(), self.caller());
                let facts = Facts::new(&request, KernelState::Idle).about(&subject).by(&caller);
                decide(rules, &facts)
            }
        }
    }
}

impl Case {
    /// Why what these rules decide is not what the case says; nothing if it is.
    pub fn failure<'r>(&self, rules: impl Iterator<Item = &'r dyn Rule> + Clone) -> Option<String> {
        let verdict = self.call.decide(rules).verdict;
        let found = verdict.source().map_or("nobody", |source| source.rule());
        if verdict.strength() != self.expected {
            let told = match &verdict {
                Verdict::Allow(source) => format!("allow ({source})"),
                Verdict::Pass | Verdict::Review(_) | Verdict::Deny(_) => verdict.to_string(),
            };
            return Some(format!("expected {}, the rules say {told}", self.expected.name()));
        }
        match &self.rule {
            Some(rule) if rule != found => {
                let word = self.expected.name();
                Some(format!("expected {word} by rule `{rule}`, it is by rule `{found}`"))
            }
            Some(_) | None => None,
        }
    }
}

/// The denial of a call whose path names no file of the project.
pub fn refused_path(error: &PathError) -> Decided {
    let reason = Reason::new(Layer::Validation, "paths", &error.to_string());
    Decided { verdict: Verdict::deny(reason), instead: None }
}

fn read(text: &str) -> Result<Vec<Case>, Problem> {
    if text.len() > MAX_POLICY_BYTES {
        let what = PolicyProblem::TooLarge { bytes: text.len(), max: MAX_POLICY_BYTES };
        return Err(Problem { line: 1, column: 1, what });
    }
    let root = yaml::parse(text)?;
    let [cases] = root.root().fields(["cases"])?;
    let cases = cases.ok_or_else(|| root.root().missing("cases", "a list of cases"))?;
    let mut names = BTreeMap::new();
    let mut read = Vec::new();
    for item in cases.items("a list of cases, such as `- { name, syscall, path, expect }`")? {
        let case = read_case(&item)?;
        if let Some(first) = names.insert(case.name.clone(), case.line) {
            let why = format!("the case of line {first} has this name; names tell cases apart");
            return Err(item.missing("name", &why));
        }
        read.push(case);
    }
    Ok(read)
}

fn read_case(field: &Field<'_>) -> Result<Case, Problem> {
    let [name, syscall, path, paths, actor, tags, mode, state, command, expect, rule] = field
        .fields([
            "name",
            "syscall",
            "path",
            "paths",
            "actor",
            "tags",
            "mode",
            "workflow_state",
            "command",
            "expect",
            "rule",
        ])?;
    let name = name.ok_or_else(|| field.missing("name", "every case has a name"))?;
    let syscall = syscall.ok_or_else(|| field.missing("syscall", "the call, as `fs.write`"))?;
    let expect = expect.ok_or_else(|| field.missing("expect", "allow, review or deny"))?;
    let paths = match (path, paths) {
        (Some(_), Some(paths)) => return Err(paths.invalid(&"`path` is there already")),
        (None, Some(paths)) => texts(&paths.texts()?),
        (Some(path), None) => vec![path.text()?.to_owned()],
        (None, None) => Vec::new(),
    };
    let tags = tags.map(|tags| tags.one_or_more()).transpose()?.unwrap_or_default();
    let call = SampleCall {
        syscall: visible(&syscall)?,
        paths,
        actor: optional(actor)?.unwrap_or_else(|| SAMPLE_ACTOR.to_owned()),
        tags: texts(&tags).into_iter().collect(),
        mode: optional(mode)?,
        workflow_state: optional(state)?,
        command: optional(command)?
            .map(|text| text.split_whitespace().map(str::to_owned).collect()),
    };
    let line = field.place().0;
    let (name, expected) = (visible(&name)?, read_expected(&expect)?);
    Ok(Case { name, line, call, expected, rule: optional(rule)? })
}

fn read_expected(field: &Field<'_>) -> Result<Strength, Problem> {
    match field.text()? {
        "allow" => Ok(Strength::Allow),
        "review" => Ok(Strength::Review),
        "deny" => Ok(Strength::Deny),
        _ => Err(field.invalid(&"a case expects allow, review or deny")),
    }
}

fn visible(field: &Field<'_>) -> Result<String, Problem> {
    let text = field.text()?;
    if fluffy_base::is_blank(text) {
        return Err(field.invalid(&"there is nothing to be seen"));
    }
    Ok(text.to_owned())
}

fn optional(field: Option<Field<'_>>) -> Result<Option<String>, Problem> {
    field.map(|field| visible(&field)).transpose()
}

fn texts(items: &[(Field<'_>, &str)]) -> Vec<String> {
    items.iter().map(|(_, text)| (*text).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BuiltIn, DEFAULT_POLICY, PolicyFile};

    fn outcome(case: &str) -> Option<String> {
        let policy = PolicyFile::parse("policy.yaml", DEFAULT_POLICY).unwrap();
        let mut rules = policy.rules();
        rules.push(Box::new(BuiltIn::new([])));
        let cases = read_cases("t.yaml", &format!("cases:\n  - {{ name: a, {case} }}\n")).unwrap();
        cases[0].failure(rules.iter().map(|rule| &**rule))
    }

    fn refusal(text: &str) -> String {
        read_cases("t.yaml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_case_says_what_was_expected_and_what_the_rules_say() {
        for good in [
            "syscall: fs.write, path: src/a.rs, expect: allow",
            "syscall: fs.write, path: src/a.rs, expect: allow, rule: change-project",
            "syscall: fs.write, path: Cargo.toml, expect: review",
            "syscall: fs.write, paths: [src/a.rs, .env], expect: deny, rule: secrets",
            "syscall: fs.read, path: ../x, expect: deny, rule: paths",
            "syscall: fs.read, path: x, actor: nobody, expect: deny",
            "syscall: fs.list, path: ., expect: allow",
            "syscall: search.grep, expect: allow",
            "syscall: plugin.tool, path: .fluffy/policy.yaml, expect: deny, rule: builtin.policy-files",
            "syscall: shell.run, command: cargo test, expect: allow",
            "syscall: policy.update, actor: user, expect: review, rule: builtin.policy-update",
        ] {
            assert_eq!(outcome(good), None, "{good}");
        }
        let told = outcome("syscall: fs.write, path: .env, expect: allow").unwrap();
        assert!(told.starts_with("expected allow, the rules say deny: The file"), "{told}");
        let told = outcome("syscall: echo, expect: allow, rule: other").unwrap();
        assert_eq!(told, "expected allow by rule `other`, it is by rule `plain-tools`");
    }

    #[test]
    fn what_is_no_case_is_refused_with_its_place() {
        for (text, expected) in [
            ("cases: 1\n", "t.yaml:1:8: `cases` must be a list of cases"),
            ("case: []\n", "t.yaml:1:1: unknown key `case`: did you mean `cases`?"),
            ("{}\n", "`cases` is missing"),
            ("cases:\n  - { name: a, syscall: x }\n", "t.yaml:2:5: `cases[0].expect` is missing"),
            ("cases:\n  - { name: a, expect: deny }\n", "`cases[0].syscall` is missing"),
            ("cases:\n  - { syscall: a, expect: deny }\n", "`cases[0].name` is missing"),
            (
                "cases:\n  - { name: a, syscall: x, expect: pass }\n",
                "a case expects allow, review or deny",
            ),
            ("cases:\n  - { name: a, syscal: x }\n", "t.yaml:2:16: unknown key `cases[0].syscal`"),
            (
                "cases:\n  - { name: a, syscall: x, path: a, paths: [b], expect: deny }\n",
                "`path` is there already",
            ),
            (
                "cases:\n  - { name: a, syscall: x, expect: deny }\n  - { name: a, syscall: x, expect: deny }\n",
                "t.yaml:3:5: `cases[1].name` is missing: the case of line 2 has this name",
            ),
            ("cases:\n  - { name: ' ', syscall: x, expect: deny }\n", "nothing to be seen"),
            ("cases: [\n", "t.yaml:"),
        ] {
            let told = refusal(text);
            assert!(told.contains(expected), "{told}");
        }
    }
}
