//! Typing into the terminal of whoever started the sandbox.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd as _;

use super::Report;
use crate::sys::{self, call};

pub(super) const ATTACKS: &[(&str, super::Attack)] =
    &[("type", type_command), ("terminal-calls", terminal_calls)];

/// Types a command into every terminal it can find.
fn type_command(_args: &[&str], report: &mut Report) {
    for (label, fd) in [("standard input", 0), ("standard error", 2)] {
        let typed = b"echo attacked\n"
            .iter()
            .try_for_each(|key| call!(libc::SYS_ioctl, fd, libc::TIOCSTI, &[*key]).map(drop));
        report.tried(label, typed);
    }
    let terminals: Vec<i32> = (0..3)
        .filter(|fd| call!(libc::SYS_ioctl, *fd, libc::TCGETS, &mut [0_u8; 64]).is_ok())
        .collect();
    report.said("streams that are terminals", format!("{terminals:?}"));
    let own = OpenOptions::new().read(true).write(true).open("/dev/tty");
    report.tried("the controlling terminal", own);
}

/// Calls by which programs take over terminals and consoles.
fn terminal_calls(_args: &[&str], report: &mut Report) {
    let Ok((_typist, screen)) = sys::terminal() else {
        report.said("a terminal of its own", "none");
        return;
    };
    let fd = screen.as_raw_fd();
    report.said("a terminal of its own", "ok");
    // A subcommand that does not exist: nothing could come of it.
    report.tried("TIOCLINUX", call!(libc::SYS_ioctl, fd, libc::TIOCLINUX, &[0xff_u8]));
    // It hangs up when this ends, before the report is written.
    sys::ignore(libc::SIGHUP);
    // One may type only into the terminal of one's own session.
    let _already_ours = call!(libc::SYS_setsid);
    call!(libc::SYS_ioctl, fd, libc::TIOCSCTTY, 0).unwrap();
    report.tried("TIOCSTI", call!(libc::SYS_ioctl, fd, libc::TIOCSTI, b"x"));
    // The kernel compares 32 bits of the command; a filter that compares 64 misses this one.
    let hidden = libc::TIOCSTI | (1 << 32);
    report.tried("TIOCSTI with a high bit", call!(libc::SYS_ioctl, fd, hidden, b"x"));
}
