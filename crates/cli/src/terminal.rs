//! The person at the terminal, who is asked where a rule wants one.
//!
//! **Invariant.** Whoever is not at a terminal agrees to nothing, except by what was typed with the
//! command; and no option stands for a phrase that nobody typed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal as _, Write as _};

use fluffy_base::sanitised;
use fluffy_kernel::{Question, Review, Reviewer, Scope};

use crate::lines::{Line, read_line};

/// The longest answer that is read.
const MAX_ANSWER: usize = 1000;
/// The terminal of whoever started the program, whatever its standard streams are.
const CONTROLLING: &str = "/dev/tty";

/// The person at the terminal, and what they said beforehand.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// Whether a simple yes was given with the command.
    pub(crate) yes: bool,
    /// The phrase that was given with the command.
    pub(crate) phrase: Option<String>,
}

impl Reviewer for Terminal {
    fn review(&self, question: &Question<'_>) -> Review {
        let answered = show(question).and_then(|()| match question.phrase {
            Some(phrase) => self.ask_for(phrase),
            None => self.ask(),
        });
        // What cannot be shown or read was not agreed to.
        answered.unwrap_or_else(|error| refused_by(&format!("the terminal ({error})")))
    }
}

impl Terminal {
    fn ask(&self) -> io::Result<Review> {
        if self.yes {
            return Ok(agreed("the user, with --yes", None));
        }
        match answer("Agree? [y/N] ")? {
            None => {
                tell("Nobody can be asked: run it at a terminal, or agree with --yes")?;
                Ok(nobody())
            }
            Some(text) if is_yes(&text) => Ok(agreed("the user, at the terminal", None)),
            Some(_) => Ok(refused()),
        }
    }

    fn ask_for(&self, phrase: &str) -> io::Result<Review> {
        if let Some(given) = &self.phrase {
            return Ok(agreed("the user, with --phrase", Some(given.clone())));
        }
        match answer(&format!("To agree, type `{phrase}`: "))? {
            None => {
                tell(&format!("To agree, run it again with: --phrase \"{phrase}\""))?;
                Ok(nobody())
            }
            Some(text) if text.is_empty() => Ok(refused()),
            Some(text) => Ok(agreed("the user, at the terminal", Some(text))),
        }
    }
}

/// A yes of this person, to this and nothing more.
pub(crate) fn agreed(by: &str, phrase: Option<String>) -> Review {
    Review::Approved { by: by.to_owned(), phrase, scope: Scope::Once }
}

/// A no of theirs.
pub(crate) fn refused_by(by: &str) -> Review {
    Review::Refused { by: by.to_owned(), words: None }
}

/// Nobody is at a terminal.
pub(crate) fn nobody() -> Review {
    refused_by("the program, as nobody can be asked,")
}

/// A no of the person at the terminal.
pub(crate) fn refused() -> Review {
    refused_by("the user")
}

fn show(question: &Question<'_>) -> io::Result<()> {
    let call = question.request.tool_call.as_ref().map_or("nothing", |call| &call.name);
    tell(&format!("{} asks for {call}: {}", question.request.actor, question.request.intent))?;
    for reason in question.reasons.iter() {
        tell(&format!("  {}", reason.text()))?;
    }
    // A note may be a change with lines of its own.
    let lines = question.notes.iter().flat_map(|note| note.lines());
    lines.into_iter().try_for_each(|line| tell(&format!("  {}", sanitised(line))))
}

fn tell(text: &str) -> io::Result<()> {
    writeln!(io::stderr(), "{text}")
}

/// Whether an answer is a clear yes.
pub(crate) fn is_yes(text: &str) -> bool {
    matches!(text, "y" | "Y" | "yes" | "Yes")
}

/// What is typed in answer; nothing where nobody is at a terminal.
pub(crate) fn answer(prompt: &str) -> io::Result<Option<String>> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return typed(prompt, &mut stdin.lock()).map(Some);
    }
    match behind() {
        Some(terminal) => typed(prompt, &mut BufReader::new(terminal)).map(Some),
        None => Ok(None),
    }
}

/// The terminal that the program was started from, where its input comes from elsewhere: asked only if what is
/// shown can be seen there.
fn behind() -> Option<File> {
    io::stderr().is_terminal().then(|| File::open(CONTROLLING).ok()).flatten()
}

fn typed(prompt: &str, from: &mut impl BufRead) -> io::Result<String> {
    write!(io::stderr(), "{prompt}")?;
    io::stderr().flush()?;
    match read_line(from, MAX_ANSWER)? {
        Line::Text(text) => Ok(String::from_utf8_lossy(&text).trim().to_owned()),
        Line::TooLong(_) | Line::End => Ok(String::new()),
    }
}
