//! `fluffy man`: the manual, made of the same tables as the parser.

use std::fmt::Write as _;
use std::path::Path;

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory as _};

use crate::args::{Args, ManArgs};
use crate::explain::{CliError, DONE, EXIT_CODES};
use crate::output::Output;

/// What stands before the commands in the page for people.
const BEFORE: &str = "\
# Commands

<!-- Written by `fluffy man --markdown`; change what `crates/cli/src/args` says and write it again. -->

`fluffy COMMAND --help` says the same in the terminal, `fluffy man --dir DIR` writes a manual page for each.

";

/// Writes one page, all of them, or the page for people.
pub(crate) fn run(args: &ManArgs, output: &mut Output) -> Result<u8, CliError> {
    match &args.dir {
        Some(dir) => write_all(dir, output)?,
        None if args.markdown => output.raw().write_all(page().as_bytes())?,
        None => render(Args::command(), output.raw())?,
    }
    Ok(DONE)
}

#[expect(clippy::disallowed_methods, reason = "the one place that writes manual pages")]
fn write_all(dir: &Path, output: &mut Output) -> Result<(), CliError> {
    let failed = |action, path: &Path| {
        let path = path.to_owned();
        move |source| CliError::File { action, path, source }
    };
    std::fs::create_dir_all(dir).map_err(failed("make", dir))?;
    let mut commands = Vec::new();
    collect(built(), &mut commands);
    for command in commands {
        let path = dir.join(format!("{}.1", whole(&command)));
        let mut text = Vec::new();
        render(command, &mut text)?;
        std::fs::write(&path, text).map_err(failed("write", &path))?;
        output.line(path.display())?;
    }
    Ok(())
}

/// The commands with everything that clap adds to them.
fn built() -> Command {
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    command
}

/// A command and all below it.
fn collect(command: Command, into: &mut Vec<Command>) {
    let below: Vec<Command> = shown(&command).cloned().collect();
    into.push(command);
    below.into_iter().for_each(|command| collect(command, into));
}

/// A command's name with those of the commands above it, as its page is called.
fn whole(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set())
}

/// One manual page.
fn render(command: Command, to: &mut dyn std::io::Write) -> std::io::Result<()> {
    let man = clap_mangen::Man::new(command);
    man.render(to)?;
    writeln!(to, ".SH \"EXIT STATUS\"")?;
    EXIT_CODES.iter().try_for_each(|(code, meaning)| writeln!(to, ".TP\n{code}\n{meaning}"))
}

/// The page for people.
pub(crate) fn page() -> String {
    let mut page = BEFORE.to_owned();
    let root = built();
    page += "## `fluffy`\n\n";
    describe(&root, &mut page);
    for command in shown(&root) {
        section(command, "fluffy", &mut page);
    }
    page += "## Exit codes\n\n| code | meaning |\n|---|---|\n";
    for (code, meaning) in EXIT_CODES {
        line(&mut page, format_args!("| {code} | {meaning} |"));
    }
    page
}

fn section(command: &Command, above: &str, page: &mut String) {
    let name = format!("{above} {}", command.get_name());
    let depth = "#".repeat(name.split(' ').count().min(4));
    line(page, format_args!("{depth} `{name}`\n"));
    describe(command, page);
    for command in shown(command) {
        section(command, &name, page);
    }
}

/// What a command is for, how it is written, and what it takes.
fn describe(command: &Command, page: &mut String) {
    let about = command.get_long_about().or_else(|| command.get_about());
    line(page, format_args!("{}.\n", about.map(plain).unwrap_or_default().trim_end_matches('.')));
    let usage = plain(&command.clone().render_usage());
    line(page, format_args!("```text\n{}\n```\n", usage.trim_start_matches("Usage: ")));
    let taken: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && arg.get_id() != "help" && !is_inherited(command, arg))
        .collect();
    if taken.is_empty() {
        return;
    }
    *page += "| argument | |\n|---|---|\n";
    for arg in taken {
        let help = arg.get_long_help().or_else(|| arg.get_help()).map(plain).unwrap_or_default();
        let help = help.replace('\n', " ").replace('|', "\\|");
        line(page, format_args!("| `{}` | {help}{} |", written(arg), accepted(arg)));
    }
    page.push('\n');
}

/// Whether an argument of every command was said at the top already.
fn is_inherited(command: &Command, arg: &Arg) -> bool {
    arg.is_global_set() && command.get_name() != "fluffy"
}

/// How an argument is typed.
fn written(arg: &Arg) -> String {
    let long = arg.get_long().map(|long| format!("--{long}"));
    let short = arg.get_short().map(|short| format!("-{short}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let takes = arg.get_action().takes_values();
    let value = arg.get_value_names().unwrap_or_default().join(" ");
    match (names.is_empty(), takes) {
        (true, _) => value,
        (false, true) => format!("{} {value}", names.join(", ")),
        (false, false) => names.join(", "),
    }
}

/// The values that are accepted, and which is taken without a word.
fn accepted(arg: &Arg) -> String {
    if !arg.get_action().takes_values() {
        return String::new();
    }
    let values: Vec<String> =
        arg.get_possible_values().iter().map(|it| format!("`{}`", it.get_name())).collect();
    let defaults: Vec<_> = arg.get_default_values().iter().map(|it| it.to_string_lossy()).collect();
    let mut text = String::new();
    if !values.is_empty() {
        text += &format!(": {}", values.join(", "));
    }
    if !defaults.is_empty() {
        text += &format!("; without it `{}`", defaults.join(" "));
    }
    text
}

fn plain(text: &StyledStr) -> String {
    text.to_string()
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ok = writeln!(page, "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cli_1_the_page_of_commands_is_what_the_parser_takes() {
        let written = include_str!("../../../../docs/commands.md");
        assert!(
            written == page(),
            "write it again: cargo run -p fluffy-cli -- man --markdown > docs/commands.md"
        );
    }

    #[test]
    fn cli_1_every_command_has_a_manual_page_and_hidden_ones_have_none() {
        let mut commands = Vec::new();
        collect(built(), &mut commands);
        let names: Vec<&str> = commands.iter().map(whole).collect();
        for name in ["fluffy", "fluffy-run", "fluffy-session-resume", "fluffy-audit-verify"] {
            assert!(names.contains(&name), "{name} is not among {names:?}");
        }
        assert!(!names.iter().any(|name| name.contains("boot") || name.contains("-host")));
        let mut text = Vec::new();
        let run = commands.into_iter().find(|it| whole(it) == "fluffy-run").unwrap();
        render(run, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(".TH fluffy-run 1"), "{text}");
        assert!(text.contains("EXIT STATUS") && text.contains("\n130\ncancelled"), "{text}");
    }
}
