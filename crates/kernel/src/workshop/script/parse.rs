//! From the text of a command line to its programs.
//!
//! **Invariant.** The text is a stranger's. Its length and the depth to which it can nest are bounded before the parser sees it, and the
//! parser runs on a stack of its own: no text ends the kernel's process.

use std::path::Path;

use brush_parser::ast::{
    AndOr, AndOrList, Assignment, AssignmentName, AssignmentValue, Command,
    CommandPrefixOrSuffixItem as Item, CompoundListItem, IoFileRedirectKind, IoFileRedirectTarget,
    IoHereDocument, IoRedirect, Pipeline, SeparatorOperator, SimpleCommand, Word,
};
use brush_parser::{ParserOptions, Token, parse_tokens, uncached_tokenize_str};
use fluffy_base::{Excerpt, PathError, ProjectPath};

use super::expand::{expand_text, expand_word};
use super::{
    CommandScript, FileTarget, LineVariables, MAX_PROGRAMS, ProgramCall, RedirectTarget,
    Redirection, RunWhen, ScriptStep, ScriptWord,
};
use crate::workshop::sight::ENVIRONMENT;

/// The longest command line.
pub const MAX_LINE_BYTES: usize = 16 << 10;

/// The most characters and words that open something, wherever they stand: what can nest is among them.
const MAX_OPENINGS: usize = 256;

/// Enough for a text of so many openings.
const STACK_BYTES: usize = 64 << 20;

/// Words that open a construct which can nest.
const OPENING_WORDS: [&str; 11] =
    ["if", "while", "until", "for", "case", "select", "function", "coproc", "time", "!", "[["];

/// Parts of a shell that are no programs, with what would work.
const SHELL_BUILTINS: [(&str, &str); 33] = [
    (".", IN_A_SCRIPT),
    (":", "use `true`"),
    ("alias", IN_A_SCRIPT),
    ("bg", IN_A_SCRIPT),
    ("builtin", IN_A_SCRIPT),
    ("cd", "put `cd FOLDER` at the beginning of the line, or give the folder as `cwd`"),
    ("command", "name the program alone"),
    ("declare", AS_VARIABLE),
    ("disown", IN_A_SCRIPT),
    ("eval", "write the command itself"),
    ("exec", "name the program alone"),
    ("exit", "use `false` or `true`"),
    ("export", AS_VARIABLE),
    ("fg", IN_A_SCRIPT),
    ("getopts", IN_A_SCRIPT),
    ("hash", IN_A_SCRIPT),
    ("jobs", IN_A_SCRIPT),
    ("let", IN_A_SCRIPT),
    ("local", AS_VARIABLE),
    ("popd", "give the folder as `cwd`"),
    ("pushd", "give the folder as `cwd`"),
    ("read", IN_A_SCRIPT),
    ("readonly", AS_VARIABLE),
    ("return", IN_A_SCRIPT),
    (
        "set",
        "leave it out and join the programs with `&&`: the line then stops at the first failure",
    ),
    ("shift", IN_A_SCRIPT),
    ("source", IN_A_SCRIPT),
    ("trap", IN_A_SCRIPT),
    ("type", "use `which`"),
    ("ulimit", "limits are settings of the user (`limits.command.…`)"),
    ("umask", IN_A_SCRIPT),
    ("unset", IN_A_SCRIPT),
    ("wait", IN_A_SCRIPT),
];
const AS_VARIABLE: &str = "write `NAME=value program …`";
const IN_A_SCRIPT: &str =
    "make one call for each step, or write a program (in Python, JavaScript, …) and run that";

/// Why a command line is not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It is too long.
    #[error(
        "the command line has more than {MAX_LINE_BYTES} bytes; write a program to a file and run that"
    )]
    Long,
    /// It holds a NUL.
    #[error("the command line holds a NUL")]
    Nul,
    /// It could nest too deeply.
    #[error(
        "the command line has more than {MAX_OPENINGS} brackets and words that open something; write a program to a file and run that"
    )]
    Nested,
    /// It has too many programs.
    #[error("the command line has more than {MAX_PROGRAMS} programs; make several calls")]
    Programs,
    /// It is no command line.
    #[error("the command line cannot be read: a quote, a bracket or an operator is left open")]
    Unreadable,
    /// Nothing would run.
    #[error("the command line names no program")]
    NoProgram,
    /// Something that only a shell can do.
    #[error("{what} is not supported, because no shell runs the line; {instead}")]
    Unsupported {
        /// What was found.
        what: String,
        /// What would work.
        instead: String,
    },
    /// A variable without a value.
    #[error(
        "`${0}` has no value here; set it at the beginning of the line (`NAME=value; …`), or put the word into single quotes"
    )]
    Variable(String),
    /// A variable that decides which program runs.
    #[error("`{0}` decides which program runs and cannot be set; name the program with its folder")]
    Search(String),
    /// A stream cannot lead there.
    #[error(
        "a stream cannot lead to `{target}`: {why}; files of the project, of `/tmp` and `/dev/null` can be named"
    )]
    Target {
        /// The file.
        target: String,
        /// What is wrong with it.
        why: String,
    },
}

impl LineError {
    pub(super) fn unsupported(what: &str, instead: &str) -> Self {
        Self::Unsupported { what: what.to_owned(), instead: instead.to_owned() }
    }
}

/// Understands a command line that starts in `cwd` of the project at `root`.
pub fn parse_line(
    text: &str,
    cwd: Option<&ProjectPath>,
    root: &Path,
) -> Result<CommandScript, LineError> {
    check_size(text)?;
    std::thread::scope(|scope| {
        let parse = || LineParser::new(cwd, root).parse(text);
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, parse);
        let parsed = thread.map_err(|_| LineError::Unreadable)?.join();
        // A parser that panicked has understood nothing.
        parsed.unwrap_or(Err(LineError::Unreadable))
    })
}

fn check_size(text: &str) -> Result<(), LineError> {
    if text.len() > MAX_LINE_BYTES {
        return Err(LineError::Long);
    }
    if text.contains('\0') {
        return Err(LineError::Nul);
    }
    let brackets = text.bytes().filter(|byte| b"({[`".contains(byte)).count();
    let words = text.split(|c: char| c.is_whitespace() || ";|&()".contains(c));
    let words = words.filter(|word| OPENING_WORDS.contains(word)).count();
    if brackets + words > MAX_OPENINGS {
        return Err(LineError::Nested);
    }
    Ok(())
}

struct LineParser<'a> {
    root: &'a Path,
    variables: LineVariables<'static>,
    script: CommandScript,
    programs: usize,
}

impl<'a> LineParser<'a> {
    fn new(cwd: Option<&ProjectPath>, root: &'a Path) -> Self {
        let script = CommandScript { cwd: cwd.cloned(), steps: Vec::new() };
        Self { root, variables: LineVariables::new(&ENVIRONMENT), script, programs: 0 }
    }

    fn parse(mut self, text: &str) -> Result<CommandScript, LineError> {
        let unreadable = |_| LineError::Unreadable;
        let tokens = uncached_tokenize_str(text, &brush_parser::TokenizerOptions::default());
        let tokens = tokens.map_err(unreadable)?;
        // What can be nested is refused here: the parser takes exponential time for brackets in brackets.
        let is_bracket = |token: &&Token| match token {
            Token::Operator(text, _) => text.contains(['(', ')']),
            Token::Word(..) => false,
        };
        if tokens.iter().any(|token| is_bracket(&token)) {
            return Err(compound());
        }
        let program = parse_tokens(&tokens, &ParserOptions::default());
        let program = program.map_err(|_| LineError::Unreadable)?;
        for CompoundListItem(list, separator) in
            program.complete_commands.iter().flat_map(|list| &list.0)
        {
            if matches!(separator, SeparatorOperator::Async) {
                let instead = "a command ends before its answer is given: leave the `&` out";
                return Err(LineError::unsupported("a command in the background (`&`)", instead));
            }
            self.add_list(list)?;
        }
        if self.script.steps.is_empty() { Err(LineError::NoProgram) } else { Ok(self.script) }
    }

    fn add_list(&mut self, list: &AndOrList) -> Result<(), LineError> {
        let joined = list.additional.iter().map(|next| match next {
            AndOr::And(pipeline) => (RunWhen::Success, pipeline),
            AndOr::Or(pipeline) => (RunWhen::Failure, pipeline),
        });
        let mut when = RunWhen::Always;
        let mut before_or = joined.clone().map(|(when, _)| when == RunWhen::Failure);
        for (joint, pipeline) in std::iter::once((RunWhen::Always, &list.first)).chain(joined) {
            let before_or = before_or.next().unwrap_or(false);
            if joint != RunWhen::Always && !self.script.steps.is_empty() {
                when = joint;
            }
            if self.script.steps.is_empty() && !before_or && self.add_setting(pipeline)? {
                continue;
            }
            let step = self.step(when, pipeline)?;
            self.script.steps.push(step);
        }
        Ok(())
    }

    /// Takes variables and `cd` at the beginning of the line; whether this was one of them.
    fn add_setting(&mut self, pipeline: &Pipeline) -> Result<bool, LineError> {
        let Pipeline { timed: None, bang: false, seq } = pipeline else { return Ok(false) };
        let [Command::Simple(simple)] = seq.as_slice() else { return Ok(false) };
        let SimpleCommand { prefix, word_or_name, suffix } = simple;
        let Some(name) = word_or_name else {
            let items = prefix.iter().flat_map(|prefix| &prefix.0);
            for item in items {
                let Item::AssignmentWord(assignment, _) = item else { return Ok(false) };
                let set = self.assignment(assignment)?;
                self.variables.set.push(set);
            }
            return Ok(true);
        };
        if name.value != "cd" || prefix.is_some() {
            return Ok(false);
        }
        let items = suffix.as_ref().map_or(&[][..], |suffix| suffix.0.as_slice());
        let [Item::Word(folder)] = items else { return Ok(false) };
        let folder = expand_text(folder, &self.variables, "a pattern as the folder of `cd`")?;
        self.script.cwd = self.folder(&folder)?;
        Ok(true)
    }

    fn step(&mut self, when: RunWhen, pipeline: &Pipeline) -> Result<ScriptStep, LineError> {
        if pipeline.timed.is_some() {
            return Err(LineError::unsupported("`time`", "leave it out"));
        }
        let mut programs = Vec::new();
        for command in &pipeline.seq {
            self.programs += 1;
            if self.programs > MAX_PROGRAMS {
                return Err(LineError::Programs);
            }
            let Command::Simple(simple) = command else {
                return Err(compound());
            };
            programs.push(self.program(simple)?);
        }
        if programs.is_empty() {
            return Err(LineError::NoProgram);
        }
        Ok(ScriptStep { when, negated: pipeline.bang, programs })
    }

    fn program(&self, simple: &SimpleCommand) -> Result<ProgramCall, LineError> {
        let Some(name) = &simple.word_or_name else {
            let what = "setting a variable or a stream without a program";
            let instead = "set variables at the beginning of the line, or before a program";
            return Err(LineError::unsupported(what, instead));
        };
        let program = expand_text(name, &self.variables, "a pattern as the name of a program")?;
        if let Some((name, instead)) = SHELL_BUILTINS.iter().find(|(name, _)| *name == program) {
            let what = format!("`{name}`, which is a part of a shell and no program,");
            return Err(LineError::unsupported(&what, instead));
        }
        if OPENING_WORDS.contains(&program.as_str()) {
            return Err(compound());
        }
        if program.trim().is_empty() {
            return Err(LineError::NoProgram);
        }
        let (variables, args, redirections) = Default::default();
        let mut call = ProgramCall { variables, program, args, redirections };
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                Item::AssignmentWord(assignment, _) => {
                    call.variables.push(self.assignment(assignment)?);
                }
                other => self.add_item(&mut call, other)?,
            }
        }
        let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
        for item in suffix {
            self.add_item(&mut call, item)?;
        }
        Ok(call)
    }

    fn add_item(&self, call: &mut ProgramCall, item: &Item) -> Result<(), LineError> {
        match item {
            Item::Word(word) | Item::AssignmentWord(_, word) => {
                let word = expand_word(word, &self.variables)?;
                if let Some(ScriptWord::Files(parts)) = &word {
                    self.check_pattern(&super::pattern::shown(parts))?;
                }
                call.args.extend(word);
            }
            Item::IoRedirect(redirect) => call.redirections.extend(self.redirections(redirect)?),
            Item::ProcessSubstitution(..) => return Err(process_substitution()),
        }
        Ok(())
    }

    /// Patterns find files of the project alone.
    fn check_pattern(&self, pattern: &str) -> Result<(), LineError> {
        if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
            let what = "a pattern of files outside the folder";
            return Err(LineError::unsupported(what, "name the files, or start in their folder"));
        }
        Ok(())
    }

    fn assignment(&self, assignment: &Assignment) -> Result<(String, String), LineError> {
        let (AssignmentName::VariableName(name), AssignmentValue::Scalar(value), false) =
            (&assignment.name, &assignment.value, assignment.append)
        else {
            return Err(LineError::unsupported("an array or `+=`", "write the words out"));
        };
        if name == "PATH" || name.starts_with("LD_") {
            return Err(LineError::Search(Excerpt::new(name, 40).to_string()));
        }
        let value = expand_word(value, &self.variables)?;
        Ok((name.clone(), value.map(|word| word.shown()).unwrap_or_default()))
    }

    fn redirections(&self, redirect: &IoRedirect) -> Result<Vec<Redirection>, LineError> {
        let stream = |given: &Option<i32>, usual: u8| match given {
            None => Ok(usual),
            Some(number) => {
                let number = u8::try_from(*number).ok().filter(|number| *number <= 2);
                let instead = "use the streams 0, 1 and 2";
                number.ok_or_else(|| LineError::unsupported("a stream above 2", instead))
            }
        };
        let one = |stream: u8, target: RedirectTarget| vec![Redirection { stream, target }];
        Ok(match redirect {
            IoRedirect::OutputAndError(word, append) => {
                let file = self.file(word)?;
                let target = if *append {
                    RedirectTarget::Append(file)
                } else {
                    RedirectTarget::Write(file)
                };
                let both = Redirection { stream: 2, target: RedirectTarget::Same(1) };
                vec![Redirection { stream: 1, target }, both]
            }
            IoRedirect::HereString(given, word) => {
                let what = "a pattern as the text of `<<<`";
                let text = expand_text(word, &self.variables, what)? + "\n";
                one(stream(given, 0)?, RedirectTarget::Text(text))
            }
            IoRedirect::HereDocument(given, document) => {
                one(stream(given, 0)?, RedirectTarget::Text(here_document(document)?))
            }
            IoRedirect::File(given, kind, target) => {
                let usual = match kind {
                    IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput => 0,
                    IoFileRedirectKind::Write
                    | IoFileRedirectKind::Append
                    | IoFileRedirectKind::ReadAndWrite
                    | IoFileRedirectKind::Clobber
                    | IoFileRedirectKind::DuplicateOutput => 1,
                };
                one(stream(given, usual)?, self.redirect_target(kind, target)?)
            }
        })
    }

    fn redirect_target(
        &self,
        kind: &IoFileRedirectKind,
        target: &IoFileRedirectTarget,
    ) -> Result<RedirectTarget, LineError> {
        use {IoFileRedirectKind as Kind, IoFileRedirectTarget as Target};
        Ok(match (kind, target) {
            (_, Target::ProcessSubstitution(..)) => return Err(process_substitution()),
            (Kind::Read, Target::Filename(word)) => RedirectTarget::Read(self.file(word)?),
            (Kind::Write | Kind::Clobber, Target::Filename(word)) => {
                RedirectTarget::Write(self.file(word)?)
            }
            (Kind::Append, Target::Filename(word)) => RedirectTarget::Append(self.file(word)?),
            (Kind::DuplicateOutput, Target::Fd(1)) => RedirectTarget::Same(1),
            (Kind::DuplicateOutput, Target::Fd(2)) => RedirectTarget::Same(2),
            (Kind::DuplicateOutput, Target::Duplicate(word)) if word.value == "1" => {
                RedirectTarget::Same(1)
            }
            (Kind::DuplicateOutput, Target::Duplicate(word)) if word.value == "2" => {
                RedirectTarget::Same(2)
            }
            (
                Kind::Read
                | Kind::Write
                | Kind::Append
                | Kind::ReadAndWrite
                | Kind::Clobber
                | Kind::DuplicateInput
                | Kind::DuplicateOutput,
                Target::Filename(_) | Target::Fd(_) | Target::Duplicate(_),
            ) => {
                let what = "this redirection";
                let instead = "use `>`, `>>`, `<`, `2>&1`, `>&2` or `&>`";
                return Err(LineError::unsupported(what, instead));
            }
        })
    }

    /// The file that a stream leads to.
    fn file(&self, word: &Word) -> Result<FileTarget, LineError> {
        let text = expand_text(word, &self.variables, "a pattern as the file of a stream")?;
        if text == "/dev/null" {
            return Ok(FileTarget::Null);
        }
        let refuse = |why: PathError| LineError::Target {
            target: Excerpt::new(&text, 80).to_string(),
            why: why.to_string(),
        };
        if let Some(below) = text.strip_prefix("/tmp/") {
            return ProjectPath::parse(below).map(FileTarget::Temporary).map_err(refuse);
        }
        ProjectPath::parse(&self.path_below_root(&text)).map(FileTarget::Project).map_err(refuse)
    }

    /// The folder that `cd` leads to; nothing for the project's root.
    fn folder(&self, text: &str) -> Result<Option<ProjectPath>, LineError> {
        match ProjectPath::parse(&self.path_below_root(text)) {
            Ok(path) => Ok(Some(path)),
            Err(PathError::Root) => Ok(None),
            Err(why) => {
                let what = format!("`cd {}`", Excerpt::new(text, 80));
                let instead = format!("name a folder of the project ({why})");
                Err(LineError::unsupported(&what, &instead))
            }
        }
    }

    /// A path from the project's root, as far as that can be said.
    fn path_below_root(&self, text: &str) -> String {
        let path = Path::new(text);
        match (path.strip_prefix(self.root), &self.script.cwd) {
            (Ok(below), _) if path.is_absolute() => match below.to_str() {
                Some("") => ".".to_owned(),
                Some(below) => below.to_owned(),
                None => text.to_owned(),
            },
            (_, Some(cwd)) if !path.is_absolute() => format!("{cwd}/{text}"),
            (_, _) => text.to_owned(),
        }
    }
}

/// The text of a here-document in which nothing is expanded.
fn here_document(document: &IoHereDocument) -> Result<String, LineError> {
    let text = &document.doc.value;
    if document.requires_expansion && text.contains(['$', '`', '\\']) {
        let what = "an expansion in a here-document";
        return Err(LineError::unsupported(what, "quote its delimiter: `<<'EOF'`"));
    }
    if !document.remove_tabs {
        return Ok(text.clone());
    }
    Ok(text.split_inclusive('\n').map(|line| line.trim_start_matches('\t')).collect())
}

fn compound() -> LineError {
    let what = "a loop, a condition, a group, a subshell, a function or another bracket";
    LineError::unsupported(what, IN_A_SCRIPT)
}

fn process_substitution() -> LineError {
    let instead = "write to a file below `/tmp` first, or use a pipe";
    LineError::unsupported("a process as a file (`<(…)`, `>(…)`)", instead)
}
