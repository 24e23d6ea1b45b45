//! The files of control groups: a word written, a number read, a change waited for.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};

/// Writes one setting.
#[expect(clippy::disallowed_methods, reason = "the one place that writes to control groups")]
pub(super) fn set(path: &Path, value: &str) -> io::Result<()> {
    fs::write(path, value)
}

/// A file that holds one number.
pub(super) fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// A number behind its name in a file of such lines.
pub(super) fn entry(path: &Path, name: &str) -> Option<u64> {
    value_of(&fs::read_to_string(path).ok()?, name)
}

/// Waits until an entry of a file of events has this value; whether it came to that within about as many
/// milliseconds. The kernel tells whoever polls that such a file has changed, but of changes within ten
/// milliseconds only at their end; for a job that is killed early that is long, so that it is read every
/// millisecond as well.
pub(super) fn wait_for_entry(path: &Path, name: &str, value: u64, patience: u32) -> bool {
    let Ok(file) = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
        return false;
    };
    (0..patience).any(|round| {
        if round > 0 {
            wait(&mut [PollFd::new(&file, PollFlags::PRI)], 1);
        }
        read_entry(&file, name) == Some(value)
    })
}

/// Lets a moment pass. Only for what version 1 tells nobody.
pub(super) fn moment() {
    wait(&mut [], 1);
}

/// Waits for one of these, at most so many milliseconds. Who called looks for itself what came of it.
pub(super) fn wait(fds: &mut [PollFd<'_>], milliseconds: u32) {
    let limit = Timespec {
        tv_sec: i64::from(milliseconds / 1000),
        tv_nsec: i64::from(milliseconds % 1000).saturating_mul(1_000_000),
    };
    let _ready = poll(fds, Some(&limit));
}

fn read_entry(file: &OwnedFd, name: &str) -> Option<u64> {
    let mut bytes = [0_u8; 4096];
    let length = rustix::io::pread(file, &mut bytes, 0).ok()?;
    value_of(std::str::from_utf8(bytes.get(..length)?).ok()?, name)
}

fn value_of(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(' ')?;
        if key == name { value.trim().parse().ok() } else { None }
    })
}
