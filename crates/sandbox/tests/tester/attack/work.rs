//! No attack: what compilers, package managers and editors do with files all day, and must be able to do.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use super::Report;
use crate::sys::{Arg, call, descriptor, text};

pub(super) const ATTACKS: &[(&str, super::Attack)] = &[("work", work)];

/// Works in a directory that has a file `src/main.rs`, which was there before.
fn work(args: &[&str], report: &mut Report) {
    let top = Path::new(args[0]);
    let (from, to) = (top.join("from"), top.join("to"));
    for directory in [&from, &to] {
        fs::create_dir(directory).unwrap();
    }
    moves(top, &from, &to, report);
    links(top, &from, &to, report);
    report.tried("file without a name", nameless(&from, &to));
    report.tried("lock", File::create(to.join("lock")).and_then(|file| file.lock()));
    report.tried("shared memory", shared(&to.join("mapped")));
    report.tried("program", program(&from.join("program"), &to.join("program")));
    report.tried("socket", socket(&to.join("socket")));
    report.tried("pipe", pipe(&to.join("pipe")));
    let dated = File::create(to.join("dated"));
    report.tried("dates", dated.and_then(|file| file.set_modified(SystemTime::UNIX_EPOCH)));
}

fn moves(top: &Path, from: &Path, to: &Path, report: &mut Report) {
    fs::write(from.join("new"), "new").unwrap();
    report.tried("move", fs::rename(from.join("new"), to.join("moved")));
    fs::write(from.join("other"), "other").unwrap();
    report.tried("move over another", fs::rename(from.join("other"), to.join("moved")));
    fs::create_dir(from.join("directory")).unwrap();
    fs::write(from.join("directory/file"), "file").unwrap();
    report.tried("move a directory", fs::rename(from.join("directory"), to.join("directory")));
    for name in ["one", "two"] {
        fs::write(top.join(name), name).unwrap();
    }
    let (one, two) = (text(top.join("one")), text(top.join("two")));
    let at = libc::AT_FDCWD;
    let swapped = call!(libc::SYS_renameat2, at, &one, at, &two, libc::RENAME_EXCHANGE);
    report.tried("swap", swapped);
}

fn links(top: &Path, from: &Path, to: &Path, report: &mut Report) {
    fs::write(from.join("linked"), "linked").unwrap();
    report.tried("link", fs::hard_link(from.join("linked"), to.join("linked")));
    let old = top.join("src/main.rs");
    report.tried("link to an old file", fs::hard_link(&old, to.join("main.rs")));
    report.tried("move an old file", fs::rename(&old, to.join("old.rs")));
}

/// Makes a file that has no name yet, and gives it one elsewhere.
fn nameless(from: &Path, to: &Path) -> io::Result<i64> {
    let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC;
    let file = descriptor(call!(libc::SYS_openat, libc::AT_FDCWD, &text(from), flags, 0o600))?;
    let held = text(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let (at, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    call!(libc::SYS_linkat, at, &held, at, &text(to.join("named")), follow)
}

/// Writes to a file through memory that is shared with it.
fn shared(path: &Path) -> io::Result<()> {
    fs::write(path, "....")?;
    let file = File::options().read(true).write(true).open(path)?;
    let may = libc::PROT_READ | libc::PROT_WRITE;
    let fd = file.as_raw_fd();
    let at = call!(libc::SYS_mmap, Arg::Null, 4, may, libc::MAP_SHARED, fd, 0)?;
    // Linux writes there what it reads.
    let zeros = File::open("/dev/zero")?;
    call!(libc::SYS_read, zeros.as_raw_fd(), at, 4)?;
    if fs::read(path)? == [0; 4] { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Makes a program elsewhere, moves it into place and runs it.
fn program(made: &Path, to: &Path) -> io::Result<()> {
    fs::write(made, "#!/bin/sh\nexit 7\n")?;
    fs::set_permissions(made, fs::Permissions::from_mode(0o755))?;
    fs::rename(made, to)?;
    let ended = Command::new(to).status()?;
    if ended.code() == Some(7) { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

fn socket(path: &Path) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    let mut here = UnixStream::connect(path)?;
    here.write_all(b"x")?;
    listener.accept()?.0.read_exact(&mut [0])?;
    fs::remove_file(path)
}

fn pipe(path: &Path) -> io::Result<()> {
    let at = libc::AT_FDCWD;
    call!(libc::SYS_mknodat, at, &text(path), libc::S_IFIFO | 0o600, 0)?;
    let mut both = File::options().read(true).write(true).open(path)?;
    both.write_all(b"x")?;
    both.read_exact(&mut [0])?;
    fs::remove_file(path)
}
