//! When a rule of a policy file applies.
//!
//! **Invariant.** A condition is judged for one target at a time: one path, the project's root, or
//! nothing where a call names no file. What holds for a call with several targets is for whoever asks
//! to join, so that no path can hide behind another.

use std::borrow::Cow;
use std::collections::BTreeSet;

use fluffy_base::ProjectPath;

use crate::facts::Facts;
use crate::glob::Glob;

/// What a call is judged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// The call names no file.
    Nothing,
    /// The whole project.
    Root,
    /// A file or directory.
    Path(&'a ProjectPath),
}

/// How a path is read.
///
/// A rule that objects is asked for both readings, so that `.ENV` and `.env ` are no way around a
/// rule for `.env` on a disk that takes them for the same file. A rule that lets through is asked for
/// the path as it is written alone, and holds back where an exception holds in either reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// As it is written.
    Exact,
    /// As a careless disk would: the target's path and the rule's globs are both folded.
    Careless,
}

/// What must hold, all of it; what is absent holds always.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Condition {
    /// Which calls; absent only in an `except`.
    pub(crate) syscalls: Option<Vec<Syscalls>>,
    /// Which files.
    pub(crate) paths: Option<Vec<Glob>>,
    /// The same for folded paths; in rules that object, and in exceptions.
    pub(crate) careless: Option<Vec<Glob>>,
    /// One of these tags.
    pub(crate) caller_tags: Option<BTreeSet<String>>,
    /// One of these actors.
    pub(crate) actors: Option<BTreeSet<String>>,
    /// One of these modes.
    pub(crate) modes: Option<BTreeSet<String>>,
    /// One of these states of the workflow.
    pub(crate) workflow_states: Option<BTreeSet<String>>,
    /// A command that begins with these words.
    pub(crate) commands: Option<Commands>,
    /// A skill of one of these classes.
    pub(crate) side_effects: Option<BTreeSet<String>>,
}

/// Commands by their first words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commands {
    pub(crate) words: Vec<Vec<String>>,
    /// Whether the program's name alone counts, wherever it lies. Rules that object say yes, so that
    /// `/usr/bin/rm` is `rm`; rules that allow say no, so that `./cargo` is not `cargo`.
    pub(crate) any_folder: bool,
}

/// Calls by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Syscalls {
    /// Every call: `*`.
    Every,
    /// All calls of a group: `fs.*`. Holds `fs.`.
    Group(String),
    /// One call.
    Named(String),
}

impl Syscalls {
    pub(crate) fn contains(&self, syscall: &str) -> bool {
        match self {
            Self::Every => true,
            Self::Group(prefix) => syscall.starts_with(prefix.as_str()),
            Self::Named(name) => name == syscall,
        }
    }
}

impl<'a> Target<'a> {
    /// What a call has to be judged for, one by one.
    pub fn of(facts: &Facts<'a>) -> impl Iterator<Item = Target<'a>> {
        let subject = facts.subject;
        let nothing = subject.paths.is_empty() && !subject.root;
        let root = subject.root.then_some(Target::Root);
        let nothing = nothing.then_some(Target::Nothing);
        subject.paths.iter().map(Target::Path).chain(root).chain(nothing)
    }
}

impl Condition {
    /// Whether it holds for a target of a call.
    pub(crate) fn holds(&self, facts: &Facts<'_>, target: Target<'_>, reading: Reading) -> bool {
        self.difference(facts, target, reading).is_none()
    }

    /// The first key that keeps it from holding, if any does.
    pub(crate) fn difference(
        &self,
        facts: &Facts<'_>,
        target: Target<'_>,
        reading: Reading,
    ) -> Option<&'static str> {
        if !self.names_call(facts) {
            Some("syscall")
        } else if !self.names_target(target, reading) {
            Some("path_glob")
        } else {
            self.difference_beside(facts)
        }
    }

    /// How much its globs have to be compared with.
    pub(crate) fn glob_parts(&self) -> usize {
        self.paths.iter().flatten().map(Glob::parts).sum()
    }

    fn names_call(&self, facts: &Facts<'_>) -> bool {
        let Some(syscalls) = &self.syscalls else { return true };
        let name = facts.tool().unwrap_or("");
        syscalls.iter().any(|syscalls| syscalls.contains(name))
    }

    fn names_target(&self, target: Target<'_>, reading: Reading) -> bool {
        let globs = match reading {
            Reading::Exact => &self.paths,
            Reading::Careless => &self.careless,
        };
        let Some(globs) = globs else { return true };
        match target {
            Target::Nothing => false,
            Target::Root => globs.iter().any(is_everything),
            Target::Path(path) => globs.iter().any(|glob| glob.matches(path)),
        }
    }

    /// The first key that keeps it from holding, of those that have nothing to do with the call's
    /// name and target.
    pub(crate) fn difference_beside(&self, facts: &Facts<'_>) -> Option<&'static str> {
        let caller = facts.caller;
        let lacks = |wanted: &Option<BTreeSet<String>>, found: Option<&str>| {
            wanted.as_ref().is_some_and(|wanted| !found.is_some_and(|name| wanted.contains(name)))
        };
        if self.caller_tags.as_ref().is_some_and(|wanted| wanted.is_disjoint(&caller.tags)) {
            Some("caller_tag")
        } else if lacks(&self.actors, Some(facts.actor())) {
            Some("actor")
        } else if lacks(&self.modes, caller.mode.as_deref()) {
            Some("session_mode")
        } else if lacks(&self.workflow_states, caller.workflow_state.as_deref()) {
            Some("workflow_state")
        } else if !self.names_command(facts) {
            Some("command")
        } else if lacks(&self.side_effects, facts.subject.side_effect) {
            Some("side_effect")
        } else {
            None
        }
    }

    fn names_command(&self, facts: &Facts<'_>) -> bool {
        let Some(commands) = &self.commands else { return true };
        facts.subject.command.as_ref().is_some_and(|words| commands.contain(words))
    }
}

impl Commands {
    fn contain(&self, words: &[String]) -> bool {
        let Some((program, arguments)) = words.split_first() else { return false };
        let name = program.rsplit('/').next().unwrap_or(program);
        let program = if self.any_folder { name } else { program };
        self.words.iter().any(|wanted| {
            wanted
                .split_first()
                .is_some_and(|(first, rest)| first == program && arguments.starts_with(rest))
        })
    }
}

/// The path as a careless disk would read it, where that is another path.
pub(crate) fn careless(path: &ProjectPath) -> Option<ProjectPath> {
    let Cow::Owned(folded) = path.folded() else { return None };
    let whole = ProjectPath::parse(&folded).ok();
    let folded = whole.or_else(|| ProjectPath::parse(&folded_singly(path)).ok());
    folded.filter(|folded| folded != path)
}

/// A name that folds to none, such as a wide `~`, must not keep the others from being folded.
fn folded_singly(path: &ProjectPath) -> String {
    let fold = |name: &str| {
        let folded = ProjectPath::parse(name).map(|name| name.folded().into_owned());
        let valid = folded.ok().filter(|folded| ProjectPath::parse(folded).is_ok());
        valid.unwrap_or_else(|| name.to_owned())
    };
    path.components().map(fold).collect::<Vec<_>>().join("/")
}

/// Whether a glob stands for the root as well.
pub(crate) fn is_everything(glob: &Glob) -> bool {
    matches!(glob.text(), "**" | "/**")
}
