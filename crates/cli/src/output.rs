//! The one place that writes to the terminal.

use std::io::{self, IsTerminal as _, Write};

use crate::environment::Environment;
use crate::explain::CliError;

/// Where answers and explanations go.
pub(crate) struct Output {
    out: io::BufWriter<io::Stdout>,
    err: io::Stderr,
    color: bool,
    err_color: bool,
}

/// What a piece of text means to the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Bad,
    Quiet,
    Strong,
    /// Worth a second look.
    Caution,
}

impl Output {
    pub(crate) fn new(environment: &Environment) -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        let allowed = !environment.no_color;
        let (color, err_color) = (allowed && out.is_terminal(), allowed && err.is_terminal());
        Self { out: io::BufWriter::new(out), err, color, err_color }
    }

    /// Writes a line of the answer.
    pub(crate) fn line(&mut self, text: impl std::fmt::Display) -> Result<(), CliError> {
        Ok(writeln!(self.out, "{text}")?)
    }

    /// Hands on everything written so far.
    pub(crate) fn flush(&mut self) -> Result<(), CliError> {
        Ok(self.out.flush()?)
    }

    /// The answer's writer, for what is not lines.
    pub(crate) fn raw(&mut self) -> &mut dyn Write {
        &mut self.out
    }

    /// Tells something beside the answer. It is not worth failing for if nobody can hear it.
    pub(crate) fn notice(&mut self, text: impl std::fmt::Display) {
        let _ = writeln!(self.err, "{text}");
    }

    /// A text in its tone, if the answer goes to a terminal.
    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        paint(self.color, tone, text)
    }

    /// Explains an error and gives the exit code for it. A reader who has gone away is no error.
    pub(crate) fn explain(&mut self, error: &CliError) -> u8 {
        if let CliError::Output(source) = error
            && source.kind() == io::ErrorKind::BrokenPipe
        {
            return crate::explain::DONE;
        }
        let _ = self.out.flush();
        let explained = error.explained();
        let head = paint(self.err_color, Tone::Bad, "ERROR");
        let strong = |text| paint(self.err_color, Tone::Strong, text);
        let (reason, fix) = (strong("Reason"), strong("Fix"));
        let text = format!(
            "{head}: {}\n{reason}: {}\n{fix}: {}",
            explained.what, explained.why, explained.fix
        );
        self.notice(text);
        explained.code
    }
}

/// A text in its tone, if there is colour.
pub(crate) fn paint(color: bool, tone: Tone, text: &str) -> String {
    let code = match tone {
        Tone::Good => "32",
        Tone::Bad => "31",
        Tone::Quiet => "2",
        Tone::Strong => "1",
        Tone::Caution => "33",
    };
    if color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}
