//! `fluffy boot`: starts the kernel of a project and keeps it alive.

use std::io::{self, Write as _};

/// Does; gives the exit code.
pub(crate) fn run() -> u8 {
    crate::interrupt::let_through();
    // No terminal's end is the kernel's. Whoever leads a group already stays in its session.
    let _leads = rustix::process::setsid();
    let boot = match fluffy_boot::parse(std::env::args_os().skip(2)) {
        Ok(boot) => boot,
        Err(trouble) => {
            // Whether anybody reads it is all the same.
            let _read = writeln!(io::stdout(), "{}", trouble.to_line());
            return trouble.code;
        }
    };
    fluffy_boot::run(&boot, &mut io::stdout())
}
