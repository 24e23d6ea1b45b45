//! Writing where nothing may be written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use super::{Report, pairs};
use crate::sys::{Arg, call, text};

pub(super) const ATTACKS: &[(&str, super::Attack)] = &[
    ("create-in", create_in),
    ("append-to", append_to),
    ("edit-project", edit_project),
    ("own-links", own_links),
    ("hard-links", hard_links),
    ("overwrite-self", overwrite_self),
    ("reopen", reopen),
    ("first-program", first_program),
    ("reopen-writable", reopen_writable),
    ("rewrite", rewrite),
    ("open-for-writing", open_for_writing),
    ("device-list", device_list),
    ("device-nodes", device_nodes),
    ("whiteouts", whiteouts),
    ("overlay-marks", overlay_marks),
    ("handles", handles),
    ("set-user-id", set_user_id),
    ("effective-user", effective_user),
    ("file-capabilities", file_capabilities),
];

/// Makes a file in each directory.
fn create_in(args: &[&str], report: &mut Report) {
    for (label, directory) in pairs(args) {
        let path = Path::new(directory).join("fluffy-attack");
        report.tried(label, File::create_new(path).and_then(|mut file| file.write_all(b"x")));
    }
}

/// Adds a line to each file.
fn append_to(args: &[&str], report: &mut Report) {
    for (label, path) in pairs(args) {
        report.tried(label, append(path));
    }
}

fn append(path: impl AsRef<Path>) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(path)?.write_all(b"attacked\n")
}

/// Changes, removes, moves and adds files of the project, among them those that programs obey.
fn edit_project(args: &[&str], report: &mut Report) {
    let project = Path::new(args[0]);
    report.tried("change", fs::write(project.join("src/main.rs"), "attacked"));
    report.tried("remove", fs::remove_file(project.join("README.md")));
    report.tried("move", fs::rename(project.join("Cargo.toml"), project.join("moved.toml")));
    report.tried("mode", fs::set_permissions(project.join("build.sh"), mode(0o777)));
    let hook = project.join(".git/hooks/post-checkout");
    report.tried("hook", fs::write(hook, "#!/bin/sh\nattack\n"));
    report.tried("git configuration", append(project.join(".git/config")));
    report.tried("environment file", fs::write(project.join(".envrc"), "attack\n"));
}

fn mode(bits: u32) -> fs::Permissions {
    fs::Permissions::from_mode(bits)
}

/// Makes links that lead out, and writes through them.
fn own_links(args: &[&str], report: &mut Report) {
    let (project, target) = (Path::new(args[0]), Path::new(args[1]));
    report.tried("make a link", symlink(target, project.join("absolute")));
    report.tried("write through it", append(project.join("absolute")));
    let upwards =
        format!("{}{}", "../".repeat(40), target.display().to_string().trim_start_matches('/'));
    report.tried("make a link upwards", symlink(upwards, project.join("upwards")));
    report.tried("write through that", append(project.join("upwards")));
    report.tried("link to a directory", symlink(target.parent().unwrap(), project.join("folder")));
    report.tried("create through it", File::create_new(project.join("folder/new")));
}

/// Links files from outside into the project, and writes to the link.
fn hard_links(args: &[&str], report: &mut Report) {
    let project = Path::new(args[0]);
    for (label, path) in pairs(&args[1..]) {
        let link = project.join(label);
        let linked = fs::hard_link(path, &link).and_then(|()| append(&link));
        report.tried(label, linked);
    }
}

/// Holds on to its own program, becomes another, and writes to the first when nobody runs it.
fn overwrite_self(args: &[&str], report: &mut Report) {
    let held = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open("/proc/self/exe");
    let Some(held) = report.tried("hold", held) else { return };
    let fd = held.as_raw_fd();
    // Must stay open in what comes next.
    call!(libc::SYS_fcntl, fd, libc::F_SETFD, 0).unwrap();
    let error = Command::new(args[0]).args(["attack", "reopen", &fd.to_string()]).exec();
    report.tried::<()>("become another", Err(error));
}

/// The second half of the above.
fn reopen(args: &[&str], report: &mut Report) {
    report.tried("write to the held program", append(format!("/proc/self/fd/{}", args[0])));
}

/// The program of the sandbox's first process.
fn first_program(_args: &[&str], report: &mut Report) {
    report.tried("where it lies", fs::read_link("/proc/1/exe"));
    report.tried("read it", File::open("/proc/1/exe"));
    let held = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open("/proc/1/exe");
    report.tried("hold it", held);
}

/// Opens a file to read, and that descriptor again to write.
fn reopen_writable(args: &[&str], report: &mut Report) {
    for (label, path) in pairs(args) {
        let again =
            File::open(path).and_then(|file| append(format!("/proc/self/fd/{}", file.as_raw_fd())));
        report.tried(label, again);
        let truncated = call!(libc::SYS_truncate, &text(path), 1);
        report.tried(&format!("cut {label}"), truncated);
        let dated = call!(libc::SYS_utimensat, libc::AT_FDCWD, &text(path), Arg::Null, 0);
        report.tried(&format!("date {label}"), dated);
    }
}

/// Writes back what a setting holds: harmless wherever it works.
fn rewrite(args: &[&str], report: &mut Report) {
    for (label, path) in pairs(args) {
        let written = OpenOptions::new().write(true).open(path).and_then(|mut setting| {
            let now = fs::read(path)?;
            setting.write_all(&now)
        });
        report.tried(label, written);
    }
}

/// Opens for writing and writes nothing: one byte into some of these ends the machine.
fn open_for_writing(args: &[&str], report: &mut Report) {
    for (label, path) in pairs(args) {
        report.tried(label, OpenOptions::new().write(true).open(path));
    }
}

/// What there is in `/dev` beyond what every program may have.
fn device_list(_args: &[&str], report: &mut Report) {
    const HARMLESS: [&str; 13] = [
        "null", "zero", "full", "random", "urandom", "fd", "stdin", "stdout", "stderr", "pts",
        "ptmx", "shm", "tty",
    ];
    let mut names: Vec<String> = fs::read_dir("/dev")
        .map(|all| {
            all.flatten().map(|one| one.file_name().to_string_lossy().into_owned()).collect()
        })
        .unwrap_or_default();
    names.retain(|name| !HARMLESS.contains(&name.as_str()));
    names.sort();
    report.said(
        "beyond the harmless",
        if names.is_empty() { "nothing".into() } else { names.join(" ") },
    );
}

/// Makes device nodes.
fn device_nodes(args: &[&str], report: &mut Report) {
    let directory = Path::new(args[0]);
    for (label, kind, device) in [
        ("memory", libc::S_IFCHR, libc::makedev(1, 1)),
        ("null", libc::S_IFCHR, libc::makedev(1, 3)),
        ("disk", libc::S_IFBLK, libc::makedev(254, 0)),
    ] {
        let path = text(directory.join(label));
        report.tried(label, call!(libc::SYS_mknodat, libc::AT_FDCWD, &path, kind | 0o666, device));
    }
}

/// Forges the mark by which an overlay knows a removed file; a named pipe beside it is nobody's harm.
fn whiteouts(args: &[&str], report: &mut Report) {
    let directory = Path::new(args[0]);
    let mut node = |label: &str, kind: u32| {
        let path = text(directory.join(label));
        report.tried(label, call!(libc::SYS_mknodat, libc::AT_FDCWD, &path, kind | 0o666, 0));
    };
    node("whiteout", libc::S_IFCHR);
    node("pipe", libc::S_IFIFO);
    let (from, to) = (text(directory.join("pipe")), text(directory.join("moved")));
    let flags = libc::RENAME_WHITEOUT;
    let at = libc::AT_FDCWD;
    report.tried("move leaving one", call!(libc::SYS_renameat2, at, &from, at, &to, flags));
}

/// Forges the marks by which an overlay knows a directory that hides the lower one.
fn overlay_marks(args: &[&str], report: &mut Report) {
    let directory = Path::new(args[0]).join("marked");
    report.tried("make a directory", fs::create_dir(&directory));
    let path = text(&directory);
    for name in [c"user.overlay.opaque", c"user.overlay.redirect"] {
        let set = call!(libc::SYS_setxattr, &path, name, b"y", 1, 0);
        report.tried(name.to_str().unwrap(), set);
    }
}

/// Opens files by number instead of by path.
fn handles(args: &[&str], report: &mut Report) {
    let mut handle = [0_u8; 136];
    handle[0] = 128;
    let mut mount = [0_u8; 8];
    let path = text(args[0]);
    let at = libc::AT_FDCWD;
    report.tried(
        "number of a file",
        call!(libc::SYS_name_to_handle_at, at, &path, &mut handle, &mut mount, 0),
    );
    // A handle of no length: the kernel says so before it asks who wants to know.
    report.tried("open by number", call!(libc::SYS_open_by_handle_at, at, &[0_u8; 136], 0));
}

/// Runs a program that belongs to another user and says to run as that user.
fn set_user_id(args: &[&str], report: &mut Report) {
    let own = Path::new(args[1]).join("planted");
    report.tried("copy", fs::copy("/proc/self/exe", &own));
    report.tried("mark", fs::set_permissions(&own, mode(0o6755)));
    report.said("run it", euid_of(&own));
    report.said("run one of another user", euid_of(Path::new(args[0])));
}

fn euid_of(program: &Path) -> String {
    let output = Command::new(program).args(["attack", "effective-user"]).output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return crate::sys::name(&error),
    };
    let report: Report = serde_json::from_slice(&output.stdout).unwrap_or_default();
    report.tries.first().map_or_else(|| "no answer".to_owned(), |(_, answer)| answer.clone())
}

/// Whether this process has another user's rights.
fn effective_user(_args: &[&str], report: &mut Report) {
    let (uid, euid) = (rustix::process::getuid(), rustix::process::geteuid());
    report.said("user", if uid == euid { "same" } else { "another" });
}

/// Gives a program rights of its own.
fn file_capabilities(args: &[&str], report: &mut Report) {
    let own = Path::new(args[0]).join("capable");
    report.tried("make a program", fs::write(&own, "x"));
    // Version 2, effective, CAP_DAC_READ_SEARCH.
    let mut rights = [0_u8; 20];
    rights[0] = 1;
    rights[3] = 2;
    rights[4] = 4;
    let set = call!(libc::SYS_setxattr, &text(&own), c"security.capability", &rights, 20, 0);
    report.tried("give it rights", set);
}
