//! The terminal while the conversation has it: every key comes at once, and it is given back as it was.
//!
//! **Invariant.** Whatever ends the program in an orderly way, a panic included, gives the terminal back.

use std::io::{self, Write as _};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

const PASTE_ON: &str = "\x1b[?2004h";
/// Everything that is ever switched, switched back.
const RESTORED: &str = "\x1b[?2026l\x1b[?2004l\x1b[?7h\x1b[?25h";
const PAGED: &str = "\x1b[?1049h\x1b[H";
const NOT_PAGED: &str = "\x1b[?1049l";

/// The terminal, taken.
pub(crate) struct Tty {
    is_paged: bool,
}

impl Tty {
    /// Takes it.
    pub(crate) fn enter() -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        let tty = Self { is_paged: false };
        tty.take()?;
        Ok(tty)
    }

    /// Takes it again, after something else had it.
    pub(crate) fn take(&self) -> io::Result<()> {
        enable_raw_mode()?;
        write(PASTE_ON)
    }

    /// Gives it back.
    pub(crate) fn give_back(&mut self) {
        if std::mem::take(&mut self.is_paged) {
            let _gone = write(NOT_PAGED);
        }
        restore();
    }

    /// Shows the pager's screen, or the conversation's.
    pub(crate) fn page(&mut self, paged: bool) -> io::Result<()> {
        if std::mem::replace(&mut self.is_paged, paged) == paged {
            return Ok(());
        }
        write(if paged { PAGED } else { NOT_PAGED })
    }

    /// Stops the program until it is told to go on.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        self.give_back();
        rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
        self.take()
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Writes to the terminal, at once.
pub(crate) fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn restore() {
    let _gone = write(RESTORED);
    let _gone = disable_raw_mode();
}
