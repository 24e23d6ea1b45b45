//! The commands that begin with a slash: one table gives the parser, the completion, `/help` and the manual.

use std::fmt::Write as _;

use fluffy_base::Excerpt;
use fluffy_policy::yaml::nearest;

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Strict,
    Explore,
    Debug,
    Status,
    Budget,
    Approve,
    Reject,
    Pin,
    Cancel,
    Verbose,
    Help,
    Undo,
    Diff,
    Skills,
    Plugins,
    Cost,
    Grants,
    Sessions,
    /// What the conversation itself answers.
    Conversation,
    New,
    Clear,
    Quit,
}

/// What stands behind a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    Words,
    Path,
}

/// One command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Slash {
    pub(crate) verb: Verb,
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
    /// What stands behind it, for people.
    argument: &'static str,
    pub(crate) help: &'static str,
}

const fn plain(verb: Verb, name: &'static str, help: &'static str) -> Slash {
    Slash { verb, name, takes: Takes::Nothing, argument: "", help }
}

/// All of them, in the order in which they are listed.
pub(crate) const COMMANDS: &[Slash] = &[
    plain(Verb::Strict, "strict", "tests first; for the session and what follows"),
    plain(Verb::Explore, "explore", "code without tests first, paid for by the coverage budget"),
    plain(Verb::Debug, "debug", "code without tests, for looking into something; is reviewed"),
    plain(Verb::Status, "status", "where the session stands, what it has done, who drives it"),
    plain(Verb::Budget, "budget", "the coverage budget of the session"),
    plain(Verb::Cost, "cost", "what this session and this conversation used"),
    plain(Verb::Approve, "approve", "agree to what is asked, once"),
    Slash {
        verb: Verb::Reject,
        name: "reject",
        takes: Takes::Words,
        argument: "[WORDS]",
        help: "refuse what is asked; the words are for the model",
    },
    Slash {
        verb: Verb::Pin,
        name: "pin",
        takes: Takes::Path,
        argument: "[PATH]",
        help: "keep a file before the model's eyes from the next message on; without a path, list them",
    },
    Slash {
        verb: Verb::Grants,
        name: "grants",
        takes: Takes::Words,
        argument: "[NUMBER]",
        help: "what you agreed to for the whole session; with a number, take that one back",
    },
    plain(Verb::Diff, "diff", "page through what the session would change"),
    plain(Verb::Undo, "undo", "take the session's last step back"),
    plain(Verb::Cancel, "cancel", "end what is under way; messages that wait are given up"),
    plain(Verb::Skills, "skills", "the project's skills"),
    plain(Verb::Plugins, "plugins", "the project's plugins"),
    plain(Verb::Conversation, "anchors", "what \"that\" and \"it\" can mean now"),
    plain(Verb::Conversation, "history", "what was said and done in this conversation"),
    plain(Verb::Sessions, "sessions", "the project's last sessions"),
    plain(
        Verb::Verbose,
        "verbose",
        "show more, or less again: tokens of every turn, entries of the ledger",
    ),
    plain(
        Verb::New,
        "new",
        "forget what was said and leave the session behind; the next message begins another",
    ),
    plain(Verb::Clear, "clear", "clear the screen"),
    plain(Verb::Help, "help", "this list, and the keys"),
    plain(Verb::Quit, "quit", "leave; what is under way is ended"),
];

/// Keys, as people call them.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; while something is under way, the message waits for its end"),
    ("Alt-Enter, Ctrl-J, \\ Enter", "a new line"),
    ("Tab", "complete a command, a path after @, or a skill"),
    ("Up, Down", "earlier messages; in a text of many lines, the line above or below"),
    ("Ctrl-R", "search earlier messages"),
    ("Ctrl-A, Ctrl-E", "to the beginning or the end of the line"),
    ("Alt-B, Alt-F", "a word back or on"),
    ("Ctrl-W, Ctrl-U, Ctrl-K", "cut the word before, to the beginning, to the end"),
    ("Ctrl-Y, Ctrl-_", "put back what was cut; take an edit back"),
    ("Ctrl-L", "clear the screen"),
    ("Ctrl-C", "end what is under way, or clear the line; twice: leave"),
    ("Ctrl-D", "on an empty line: leave"),
    ("Ctrl-Z", "suspend"),
];

/// A line that begins with a slash, understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Typed<'a> {
    pub(crate) verb: Verb,
    pub(crate) argument: &'a str,
}

/// Why it was not understood, with what to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Misread {
    pub(crate) why: String,
    pub(crate) fix: String,
}

/// Whether a line is meant as a command: a path such as `/etc/hosts is wrong` is not.
pub(crate) fn is_command(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    first.strip_prefix('/').is_some_and(|name| !name.contains('/') && !line.contains('\n'))
}

/// What a line says.
pub(crate) fn parse(line: &str) -> Result<Typed<'_>, Misread> {
    let line = line.trim();
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let (name, argument) = (name.strip_prefix('/').unwrap_or(name), argument.trim());
    let Some(slash) = COMMANDS.iter().find(|slash| slash.name == name) else {
        let names: Vec<&str> = COMMANDS.iter().map(|slash| slash.name).collect();
        let near = nearest(name, &names);
        let fix = match near {
            Some(near) => format!("did you mean /{near}? /help lists all commands"),
            None => "/help lists all commands".to_owned(),
        };
        return Err(Misread {
            why: format!("there is no command `/{}`", Excerpt::new(name, 40)),
            fix,
        });
    };
    if slash.takes == Takes::Nothing && !argument.is_empty() {
        let why = format!("/{name} takes nothing behind it");
        return Err(Misread { why, fix: format!("type /{name} alone") });
    }
    Ok(Typed { verb: slash.verb, argument })
}

impl Slash {
    /// How it is typed.
    pub(crate) fn usage(&self) -> String {
        format!("/{} {}", self.name, self.argument).trim_end().to_owned()
    }
}

/// The table for `fluffy --help` and the manual page.
pub(crate) fn manual() -> String {
    let mut text = "At a terminal, `fluffy` without a task is a conversation. What begins with a slash is a command:\n".to_owned();
    for slash in COMMANDS {
        // Writing to a string does not fail.
        let _ok = write!(text, "\n  {:<16} {}", slash.usage(), slash.help);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cli_1_every_command_is_parsed_by_the_name_it_is_listed_under() {
        for slash in COMMANDS {
            let typed = format!("  /{} ", slash.name);
            assert_eq!(parse(&typed).map(|typed| typed.verb), Ok(slash.verb));
            assert!(manual().contains(&slash.usage()) && !slash.help.is_empty());
        }
        let asked = [
            "strict", "explore", "debug", "status", "budget", "approve", "reject", "pin", "cancel",
            "verbose", "help", "undo", "diff", "skills", "cost", "grants", "new", "quit",
        ];
        for name in asked {
            assert!(COMMANDS.iter().any(|slash| slash.name == name), "{name}");
        }
    }

    #[test]
    fn cli_1_an_unknown_command_is_answered_with_the_nearest() {
        let misread = parse("/stauts").unwrap_err();
        assert_eq!(misread.fix, "did you mean /status? /help lists all commands");
        let misread = parse("/x\u{1b}[2J").unwrap_err();
        assert!(!misread.why.contains('\u{1b}'), "{}", misread.why);
        assert!(parse("/undo 3").is_err());
        assert_eq!(parse("/reject not like this").unwrap().argument, "not like this");
    }

    #[test]
    fn a_path_at_the_beginning_of_a_message_is_no_command() {
        assert!(is_command("/help") && is_command("/nonsense now"));
        assert!(
            !is_command("/etc/hosts is wrong") && !is_command("a /help") && !is_command("/a\nb")
        );
    }

    #[test]
    fn the_page_for_people_has_every_command_and_key() {
        let page = include_str!("../../../../docs/interactive.md");
        for slash in COMMANDS {
            let row = format!("| `{}` | {} |", slash.usage(), slash.help);
            assert!(page.contains(&row), "missing: {row}");
        }
        for (key, help) in KEYS {
            let row = format!("| {key} | {help} |");
            assert!(page.contains(&row), "missing: {row}");
        }
    }
}
