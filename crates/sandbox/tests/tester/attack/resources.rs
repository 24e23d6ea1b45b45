//! Using up the machine, and staying.
//!
//! **Invariant.** Everything is counted and small: where nothing limits an attack it ends by itself.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::{Report, pairs};
use crate::sys::{self, call};

pub(super) const ATTACKS: &[(&str, super::Attack)] = &[
    ("fork", fork),
    ("threads", threads),
    ("memory", memory),
    ("memory-of-many", memory_of_many),
    ("memory-files", memory_files),
    ("fill", fill),
    ("fill-and-stay", fill_and_stay),
    ("fill-closed", fill_closed),
    ("fill-deep", fill_deep),
    ("many-files", many_files),
    ("one-large-file", one_large_file),
    ("open-files", open_files),
    ("flood", flood),
    ("stay", stay),
    ("stop-itself", stop_itself),
    ("daemon", daemon),
    ("wait", wait),
];

/// Processes, all alive at once.
fn fork(args: &[&str], report: &mut Report) {
    let count: usize = args[0].parse().unwrap();
    let mut children = Vec::new();
    let mut result = Ok(());
    for _ in 0..count {
        match sys::fork(stays) {
            Ok(child) => children.push(child),
            Err(error) => {
                result = Err(error);
                break;
            }
        }
    }
    report.tried("as many processes", result);
    for child in children {
        let _gone = call!(libc::SYS_kill, child, libc::SIGKILL);
    }
}

fn stays() -> i32 {
    loop {
        sys::pause();
    }
}

/// The same with threads.
fn threads(args: &[&str], report: &mut Report) {
    let count: usize = args[0].parse().unwrap();
    let mut result = Ok(());
    for _ in 0..count {
        if let Err(error) = std::thread::Builder::new().stack_size(16 << 10).spawn(stays) {
            result = Err(error);
            break;
        }
    }
    report.tried("as many threads", result);
}

/// Memory, all of it touched.
fn memory(args: &[&str], report: &mut Report) {
    report.tried("as much memory", take(args[0].parse().unwrap()));
}

fn take(mebibytes: usize) -> io::Result<Vec<Vec<u8>>> {
    let mut taken = Vec::new();
    for _ in 0..mebibytes {
        let mut chunk = Vec::new();
        let room = chunk.try_reserve_exact(1 << 20);
        room.map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
        chunk.resize(1 << 20, 1_u8);
        taken.push(chunk);
    }
    Ok(taken)
}

/// Memory of many processes, each of which takes little.
fn memory_of_many(args: &[&str], report: &mut Report) {
    let (count, each): (usize, usize) = (args[0].parse().unwrap(), args[1].parse().unwrap());
    let mut result = Ok(());
    let mut children = Vec::new();
    let (mut answers, mut answer) = io::pipe().unwrap();
    for _ in 0..count {
        let started = sys::fork(|| {
            let taken = take(each);
            let _said = answer.write_all(if taken.is_ok() { b"y" } else { b"n" });
            // So that the end is seen when all others have answered or were killed.
            let _closed = call!(libc::SYS_close, answer.as_raw_fd());
            stays()
        });
        match started {
            Ok(child) => children.push(child),
            Err(error) => result = Err(error),
        }
    }
    drop(answer);
    for _ in 0..count {
        let mut one = [0_u8];
        if io::Read::read_exact(&mut answers, &mut one).is_err() || one != *b"y" {
            result = Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
    }
    report.tried("as much together", result);
    for child in children {
        let _gone = call!(libc::SYS_kill, child, libc::SIGKILL);
    }
}

/// The same in files that have no name and lie on no disk.
fn memory_files(args: &[&str], report: &mut Report) {
    let (count, each): (usize, usize) = (args[0].parse().unwrap(), args[1].parse().unwrap());
    let chunk = vec![1_u8; 1 << 20];
    let files: io::Result<Vec<File>> = (0..count)
        .map(|_| {
            let mut file = File::from(sys::descriptor(call!(libc::SYS_memfd_create, c"bomb", 0))?);
            (0..each).try_for_each(|_| file.write_all(&chunk)).map(|()| file)
        })
        .collect();
    report.tried("as much together", files);
}

/// As many mebibytes into a file in each directory, in turn.
fn fill(args: &[&str], report: &mut Report) {
    let mebibytes: usize = args[0].parse().unwrap();
    for (label, directory) in pairs(&args[1..]) {
        let path = Path::new(directory).join("filled");
        let filled = File::create(&path).and_then(|mut file| {
            let chunk = vec![1_u8; 1 << 20];
            (0..mebibytes).try_for_each(|_| file.write_all(&chunk))
        });
        report.tried(label, filled);
        let _gone = fs::remove_file(path);
    }
}

/// As many files of one mebibyte, each of which is small enough; then stays, as below.
fn fill_and_stay(args: &[&str], report: &mut Report) {
    fill_with(Path::new(args[1]), args, report);
}

/// The same from inside a directory that nobody may enter any more.
fn fill_closed(args: &[&str], report: &mut Report) {
    let closed = Path::new(args[1]).join("closed");
    fs::create_dir_all(closed.join("inner")).unwrap();
    std::env::set_current_dir(closed.join("inner")).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    fill_with(Path::new("."), args, report);
}

/// The same deeper than most would look.
fn fill_deep(args: &[&str], report: &mut Report) {
    std::env::set_current_dir(args[1]).unwrap();
    for _ in 0..300 {
        fs::create_dir("d").unwrap();
        std::env::set_current_dir("d").unwrap();
    }
    fill_with(Path::new("."), args, report);
}

fn fill_with(directory: &Path, args: &[&str], report: &mut Report) {
    let count: usize = args[0].parse().unwrap();
    let chunk = vec![1_u8; 1 << 20];
    let filled =
        (0..count).try_for_each(|number| fs::write(directory.join(number.to_string()), &chunk));
    report.tried("as much together", filled);
    stay(args, report);
}

/// As many files in each directory, in turn.
fn many_files(args: &[&str], report: &mut Report) {
    let count: usize = args[0].parse().unwrap();
    let last = pairs(&args[1..]).last().copied();
    for (label, directory) in pairs(&args[1..]) {
        let stays = last == Some((label, directory));
        let directory = Path::new(directory).join("many");
        let made = fs::create_dir(&directory).and_then(|()| {
            (0..count)
                .try_for_each(|number| File::create(directory.join(number.to_string())).map(drop))
        });
        let stays = stays && made.is_ok();
        report.tried(label, made);
        if stays {
            // Whoever weighs a disk looks at it now and then.
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
        let _gone = fs::remove_dir_all(directory);
    }
}

/// A file that is large and holds nothing.
fn one_large_file(args: &[&str], report: &mut Report) {
    sys::ignore(libc::SIGXFSZ);
    for (label, directory) in pairs(args) {
        let path = Path::new(directory).join("large");
        // All blocks of 64 MiB are asked for at once.
        let made = File::create(&path)
            .and_then(|file| call!(libc::SYS_fallocate, file.as_raw_fd(), 0, 0, 64 << 20));
        report.tried(label, made);
        let _gone = fs::remove_file(path);
    }
}

/// As many open files.
fn open_files(args: &[&str], report: &mut Report) {
    let count: usize = args[0].parse().unwrap();
    let (_, hard) = sys::limit(libc::RLIMIT_NOFILE);
    let _raised = sys::set_limit(libc::RLIMIT_NOFILE, hard, hard);
    let open: io::Result<Vec<File>> = (0..count).map(|_| File::open("/dev/null")).collect();
    report.tried("as many open files", open);
}

/// As many mebibytes of output, without an end of line, to both streams.
fn flood(args: &[&str], report: &mut Report) {
    let mebibytes: usize = args[0].parse().unwrap();
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..mebibytes {
        let _cut = io::stdout().write_all(&chunk);
        let _cut = io::stderr().write_all(&chunk);
    }
    println!();
    report.said("printed", "all");
}

/// Ignores every request to end. Whoever writes a byte to its input is told that it is still there.
fn stay(_args: &[&str], report: &mut Report) {
    for signal in
        [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGXCPU, libc::SIGUSR1]
    {
        sys::ignore(signal);
    }
    println!("staying");
    if io::Read::read_exact(&mut io::stdin(), &mut [0]).is_ok() {
        report.said("the attacker", "is still there");
        return;
    }
    stays();
}

/// Stops itself, so that no signal but two reaches it.
fn stop_itself(_args: &[&str], report: &mut Report) {
    println!("stopping");
    call!(libc::SYS_kill, std::process::id(), libc::SIGSTOP).unwrap();
    report.said("the attacker", "goes on");
}

/// Leaves a process behind that belongs to nobody and has a session of its own.
fn daemon(_args: &[&str], report: &mut Report) {
    let child = sys::fork(|| {
        let _session = call!(libc::SYS_setsid);
        sys::ignore(libc::SIGHUP);
        sys::ignore(libc::SIGTERM);
        // One that holds on to the streams, and one that lets go of them.
        let _grandchild = sys::fork(stays);
        let _grandchild = sys::fork(|| {
            for fd in 0..3 {
                let _closed = call!(libc::SYS_close, fd);
            }
            stays()
        });
        0
    });
    let left = child.and_then(|child| {
        let pid = rustix::process::Pid::from_raw(child);
        Ok(rustix::process::waitpid(pid, rustix::process::WaitOptions::empty())?)
    });
    report.tried("leave a process", left);
}

/// Says that it is there, and stays.
fn wait(_args: &[&str], _report: &mut Report) {
    println!("waiting");
    stays();
}
