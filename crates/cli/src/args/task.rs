//! What was typed behind `fluffy run`, or behind `fluffy` itself as a task.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args as ClapArgs, Command as ClapCommand, ValueEnum};
use fluffy_workflow::Mode;

/// What `fluffy run --help` says below the options: an interface, as scripts rely on the codes.
const EXIT_CODES: &str = "\
Exit codes:
  0    the task is done
  1    the task did not reach done
  2    wrong usage or configuration
  3    denied, or rejected in a review
  4    no sandbox runtime
  5    the provider failed
  6    ledger or state damaged
  7    a cap on turns, tokens or cost was reached
  130  cancelled

Progress goes to the standard error, the answer to the standard output.";

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct TaskArgs {
    /// How strictly to work: strict, the default, writes tests first; explore and debug may write code without
    #[arg(long, value_enum)]
    pub(crate) mode: Option<ModeName>,
    /// Read and explain; nothing is written
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Keep a file before the model's eyes to the end, by its path from the project's root; may be repeated
    #[arg(long = "pin", value_name = "PATH")]
    pub(crate) pins: Vec<String>,
    /// Who provides the model: a provider such as `anthropic`, or `replay:FILE` for a recorded transcript
    #[arg(long, value_name = "P")]
    pub(crate) provider: Option<String>,
    /// The provider's model
    #[arg(short, long)]
    pub(crate) model: Option<String>,
    /// Events as JSON lines on the standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write the final answer to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) said: SaidArgs,
    #[command(flatten)]
    pub(crate) caps: CapArgs,
    /// What is to be done; `-`, or nothing where input is piped, reads it from the standard input
    pub(crate) task: Option<String>,
}

/// What is said of reviews before any is asked.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct SaidArgs {
    /// Agree to every review; what demands a person still does
    #[arg(long, conflicts_with = "no")]
    pub(crate) yes: bool,
    /// Refuse every review
    #[arg(long)]
    pub(crate) no: bool,
}

/// Where a task has to stop, finished or not.
#[derive(Debug, ClapArgs)]
pub(crate) struct CapArgs {
    /// At most so many turns of the model; 50 where no setting says otherwise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_turns: Option<u64>,
    /// At most so many tokens, sent and received together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// At most this cost in US dollars, such as `0.50`
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DemoArgs {
    /// In which language; without it, the first whose tests can run here
    #[arg(long, value_enum)]
    pub(crate) language: Option<LanguageName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LanguageName {
    Javascript,
    Python,
    Rust,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeName {
    Strict,
    Explore,
    Debug,
}

impl ModeName {
    /// The mode of the workflow.
    pub(crate) fn mode(self) -> Mode {
        match self {
            Self::Strict => Mode::Strict,
            Self::Explore => Mode::Explore,
            Self::Debug => Mode::Debug,
        }
    }
}

/// The command line with `run` in its place where a task was given to the program itself.
///
/// A task is known by its white space, by letters that no command has, or by an option that only `run`
/// has. One plain word is read as the name of a command: mistyped, it would otherwise start a task that
/// nobody wanted.
pub(crate) fn with_run(words: Vec<OsString>) -> Vec<OsString> {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        match word.to_str() {
            Some("-C" | "--project") => at += 2,
            Some(text) if is_project(text) => at += 1,
            Some("-h" | "--help" | "-V" | "--version") => return words,
            _ if is_task(word) => break,
            _ => return words,
        }
    }
    if at >= words.len() {
        return words;
    }
    let mut words = words;
    words.insert(at, "run".into());
    words
}

/// Whether nothing was typed but which project is meant.
pub(crate) fn is_bare(words: &[OsString]) -> bool {
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        match word.to_str() {
            Some("-C" | "--project") => drop(rest.next()),
            Some(text) if is_project(text) => {}
            _ => return false,
        }
    }
    true
}

impl TaskArgs {
    /// Whether there is no task, and nothing that only a task has a use for.
    pub(crate) fn is_talk(&self) -> bool {
        let said = self.said.yes || self.said.no;
        self.task.is_none() && !self.json && self.out.is_none() && !said
    }
}

/// Whether a word names the project in one piece.
fn is_project(word: &str) -> bool {
    word.starts_with("--project=") || (word.starts_with("-C") && word.len() > 2)
}

fn is_task(word: &OsStr) -> bool {
    let bytes = word.as_encoded_bytes();
    let foreign = |byte: &u8| byte.is_ascii_whitespace() || !byte.is_ascii();
    bytes.starts_with(b"-") || bytes.trim_ascii().iter().any(foreign)
}

/// An error about a word that is no command, saying also how a task is given.
pub(crate) fn with_tip(
    mut error: clap::Error,
    words: &[OsString],
    command: &ClapCommand,
) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    // Below a command of ours the word is that command's business.
    let typed = words.iter().skip(1).position(|typed| typed == word.as_str());
    let names: Vec<&str> = command.get_subcommands().map(ClapCommand::get_name).collect();
    let mut before = words.iter().skip(1).take(typed.unwrap_or_default());
    if before.any(|word| names.iter().any(|name| word == name)) {
        return error;
    }
    let rest = words.len().saturating_sub(typed.unwrap_or_default() + 2);
    let tip = match rest {
        0 => format!("a task of one word is given as: fluffy run {word}"),
        _ => "a task is given in quotes: fluffy \"what is to be done\"".to_owned(),
    };
    let mut tips = match error.get(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips.clone(),
        _ => Vec::new(),
    };
    tips.push(StyledStr::from(tip));
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    error
}

#[cfg(test)]
mod tests {
    use clap::{Parser, Subcommand};

    use super::*;
    use crate::args::SessionCommand;

    /// The commands as a person types them.
    #[derive(Debug, Parser)]
    #[command(name = "fluffy")]
    struct Line {
        #[arg(short = 'C', long = "project", global = true)]
        project: Option<PathBuf>,
        #[command(subcommand)]
        command: Typed,
    }

    #[derive(Debug, Subcommand)]
    enum Typed {
        Run(Box<TaskArgs>),
        Demo,
        #[command(subcommand)]
        Session(SessionCommand),
    }

    fn parse(words: &[&str]) -> Result<Line, String> {
        use clap::CommandFactory as _;
        let words: Vec<OsString> = ["fluffy"].iter().chain(words).map(OsString::from).collect();
        let words = with_run(words);
        Line::try_parse_from(&words)
            .map_err(|error| with_tip(error, &words, &Line::command()).to_string())
    }

    fn task(words: &[&str]) -> TaskArgs {
        match parse(words).unwrap().command {
            Typed::Run(run) => *run,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_task_given_to_the_program_itself_is_run() {
        assert_eq!(task(&["add error handling"]).task.as_deref(), Some("add error handling"));
        assert_eq!(task(&["-C", "dir", "add it"]).task.as_deref(), Some("add it"));
        assert_eq!(task(&["--project=dir", "add it"]).task.as_deref(), Some("add it"));
        assert_eq!(task(&["-Cdir", "add it", "--json"]).task.as_deref(), Some("add it"));
        let explored = task(&["--mode", "explore", "fix"]);
        assert_eq!(
            (explored.task.as_deref(), explored.mode),
            (Some("fix"), Some(ModeName::Explore))
        );
        assert_eq!(task(&["run", "fix"]).task.as_deref(), Some("fix"));
        assert_eq!(task(&["-"]).task.as_deref(), Some("-"));
        assert_eq!(task(&["修复测试"]).task.as_deref(), Some("修复测试"));
        assert_eq!(task(&["run"]).task, None);
    }

    #[test]
    fn a_mistyped_command_starts_no_task() {
        let error = parse(&["dmeo"]).unwrap_err();
        assert!(error.contains("a similar subcommand exists: 'demo'"), "{error}");
        assert!(error.contains("a task of one word is given as: fluffy run dmeo"), "{error}");
        let error = parse(&["fix", "the", "tests"]).unwrap_err();
        assert!(
            error.contains("a task is given in quotes: fluffy \"what is to be done\""),
            "{error}"
        );
        let error = parse(&["session", "lits"]).unwrap_err();
        assert!(!error.contains("a task"), "{error}");
        assert!(parse(&["demo "]).is_err());
        assert!(matches!(parse(&["demo"]).unwrap().command, Typed::Demo));
    }

    #[test]
    fn every_option_of_a_run_is_understood() {
        let words = [
            "run",
            "--mode",
            "debug",
            "--read-only",
            "--provider",
            "replay:a.jsonl",
            "--pin",
            "src/lib.rs",
            "--pin",
            "README.md",
            "-m",
            "big",
            "--json",
            "-o",
            "answer.md",
            "--yes",
            "--max-turns",
            "3",
            "--max-tokens",
            "1000",
            "--max-cost",
            "0.5",
            "do it",
        ];
        let args = task(&words);
        assert!(args.read_only && args.json && args.said.yes && !args.said.no);
        assert_eq!((args.caps.max_turns, args.caps.max_tokens), (Some(3), Some(1000)));
        assert_eq!(args.out, Some(PathBuf::from("answer.md")));
        assert_eq!(args.model.as_deref(), Some("big"));
        assert_eq!(args.pins, ["src/lib.rs", "README.md"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for words in [
            &["run", "--yes", "--no", "x"][..],
            &["run", "--mode", "free", "x"],
            &["run", "--max-turns", "0", "x"],
            &["run", "--max-tokens", "-1", "x"],
            &["run", "two", "tasks"],
        ] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn the_help_of_a_run_tells_every_exit_code() {
        let help = parse(&["run", "--help"]).unwrap_err();
        for code in ["0 ", "1 ", "2 ", "3 ", "4 ", "5 ", "6 ", "7 ", "130 "] {
            assert!(help.lines().any(|line| line.trim_start().starts_with(code)), "{code}: {help}");
        }
    }

    #[test]
    fn sessions_are_named_or_the_last_one_is_meant() {
        let session = |words: &[&str]| match parse(words).unwrap().command {
            Typed::Session(command) => command,
            other => panic!("{other:?}"),
        };
        assert!(matches!(session(&["session", "show"]), SessionCommand::Show { id: None, .. }));
        let rewind = session(&["session", "rewind", "4", "abc"]);
        assert!(matches!(rewind, SessionCommand::Rewind { step: 4, id: Some(_) }));
        assert!(parse(&["session", "rm"]).is_err());
        assert!(parse(&["session", "export"]).is_err());
        assert!(parse(&["session", "rewind", "x"]).is_err());
    }
}
