//! A command line as data: programs with their words, joined by pipes, `&&`, `||` and `;`.
//!
//! A line such as `npm ci && npm test 2>&1 | tail` is parsed in the kernel's process, its programs are judged one by one, and what was
//! judged is handed as JSON to `fluffy pipeline-host`, which runs the programs in one sandbox.
//!
//! **Invariant.** No shell reads the line. What the parser does not understand to the end is refused, so that what is judged is what
//! runs.

mod expand;
mod host;
mod parse;
mod pattern;

use fluffy_base::ProjectPath;
use serde::{Deserialize, Serialize};

pub(crate) use self::host::PipelineOrder;
pub use self::host::pipeline_host;
pub use self::parse::{LineError, MAX_LINE_BYTES, parse_line};
use self::pattern::PatternPart;

/// The most programs of one line.
pub(crate) const MAX_PROGRAMS: usize = 64;

/// A command line that was understood.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandScript {
    /// Where it starts, from the project's root; the root itself where nothing is said.
    pub cwd: Option<ProjectPath>,
    /// The pipelines in order.
    pub steps: Vec<ScriptStep>,
}

/// One pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptStep {
    /// When it runs, by the exit code before it.
    pub when: RunWhen,
    /// Whether its exit code is turned around: `!`.
    pub negated: bool,
    /// Its programs; each reads what the one before it prints.
    pub programs: Vec<ProgramCall>,
}

/// When a pipeline runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunWhen {
    /// Whatever came before it: `;`.
    Always,
    /// After exit code 0: `&&`.
    Success,
    /// After another exit code: `||`.
    Failure,
}

/// One program of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramCall {
    /// Variables that it is given.
    pub variables: Vec<(String, String)>,
    /// Its name.
    pub program: String,
    /// Its arguments.
    pub args: Vec<ScriptWord>,
    /// What becomes of its streams, in order.
    pub redirections: Vec<Redirection>,
}

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptWord {
    /// This text.
    Text(String),
    /// The files that match; the pattern itself where none does.
    Files(Vec<PatternPart>),
}

/// What becomes of one stream of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redirection {
    /// The stream: 0, 1 or 2.
    pub stream: u8,
    /// Where it leads.
    pub target: RedirectTarget,
}

/// Where a stream leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedirectTarget {
    /// It reads this file.
    Read(FileTarget),
    /// It writes this file anew.
    Write(FileTarget),
    /// It writes to the end of this file.
    Append(FileTarget),
    /// It reads this text.
    Text(String),
    /// It leads where this stream leads.
    Same(u8),
}

/// A file that a stream may lead to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileTarget {
    /// `/dev/null`.
    Null,
    /// A file below `/tmp`, which goes with the sandbox.
    Temporary(ProjectPath),
    /// A file of the project.
    Project(ProjectPath),
}

/// The variables that a line may name.
pub(crate) struct LineVariables<'a> {
    /// Those that every command is given.
    known: &'a [(&'a str, &'a str)],
    /// Those that the line itself has set.
    set: Vec<(String, String)>,
}

impl<'a> LineVariables<'a> {
    fn new(known: &'a [(&'a str, &'a str)]) -> Self {
        Self { known, set: Vec::new() }
    }

    fn get(&self, name: &str) -> Option<&str> {
        let set = self.set.iter().rev().find(|(set, _)| set == name).map(|(_, value)| &**value);
        set.or_else(|| self.known.iter().find(|(known, _)| *known == name).map(|(_, value)| *value))
    }
}

impl CommandScript {
    /// The programs in the order in which they stand.
    pub fn programs(&self) -> impl Iterator<Item = &ProgramCall> {
        self.steps.iter().flat_map(|step| &step.programs)
    }

    /// The files of the project that streams are written to.
    pub fn written(&self) -> impl Iterator<Item = &ProjectPath> {
        let targets = self.programs().flat_map(|program| &program.redirections);
        targets.filter_map(|redirection| match &redirection.target {
            RedirectTarget::Write(FileTarget::Project(path))
            | RedirectTarget::Append(FileTarget::Project(path)) => Some(path),
            RedirectTarget::Write(FileTarget::Null | FileTarget::Temporary(_))
            | RedirectTarget::Append(FileTarget::Null | FileTarget::Temporary(_))
            | RedirectTarget::Read(_)
            | RedirectTarget::Text(_)
            | RedirectTarget::Same(_) => None,
        })
    }

    /// The one program with its arguments, where the line is nothing more than that: it needs nobody to run it.
    pub(crate) fn plain(&self) -> Option<(&str, Vec<String>)> {
        let [ScriptStep { when: RunWhen::Always, negated: false, programs }] =
            self.steps.as_slice()
        else {
            return None;
        };
        let [ProgramCall { variables, program, args, redirections }] = programs.as_slice() else {
            return None;
        };
        if !variables.is_empty() || !redirections.is_empty() {
            return None;
        }
        let texts = args.iter().map(|word| match word {
            ScriptWord::Text(text) => Some(text.clone()),
            ScriptWord::Files(_) => None,
        });
        Some((program, texts.collect::<Option<_>>()?))
    }
}

impl ProgramCall {
    /// Its name and arguments as rules see them; a pattern of files stands as it was written.
    pub fn words(&self) -> Vec<String> {
        std::iter::once(self.program.clone())
            .chain(self.args.iter().map(ScriptWord::shown))
            .collect()
    }
}

impl ScriptWord {
    /// The argument as it was written, without quotes.
    pub fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Files(parts) => pattern::shown(parts),
        }
    }
}

#[cfg(test)]
mod tests;
