//! An attacker that has taken over a kernel in a container, and says what it got.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fluffy_sandbox::l1::{L1Options, enter_container};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::net::sockopt::socket_peercred;
use rustix::process::test_kill_process;

use crate::sys::call;

/// `LINE HOW PROJECT SECRET ENGINE`: confines itself unless HOW is `free`, tries, and answers on the line with what came of
/// each attempt.
pub(crate) fn run(args: &[String]) -> ExitCode {
    let [line, how, project, secret, engine] = args else { panic!("five words") };
    let mut line = UnixStream::connect(line).expect("somebody waits");
    let maker = socket_peercred(&line).unwrap().pid;
    let project = PathBuf::from(project);
    if how != "free" {
        let options = L1Options {
            project: project.clone(),
            program: std::env::current_exe().unwrap(),
            keep: vec![line.as_raw_fd()],
            ..L1Options::default()
        };
        let neighbour = maker.as_raw_nonzero().get().unsigned_abs();
        if let Err(error) = enter_container(&options, neighbour) {
            panic!("not confined: {error}");
        }
    }
    let of_maker = |part: &str| PathBuf::from(format!("/proc/{}/{part}", maker.as_raw_nonzero()));
    let make = |kind: FileType, name: &str| {
        mknodat(CWD, project.join(name), kind, Mode::from_raw_mode(0o600), 0)
    };
    let device = rustix::fs::makedev(1, 3);
    let disk = mknodat(CWD, project.join("null"), FileType::CharacterDevice, Mode::empty(), device);
    let moved = || {
        fs::create_dir(project.join("to"))?;
        fs::write(project.join("from"), "x")?;
        fs::rename(project.join("from"), project.join("to/here"))
    };
    let mut got = BTreeMap::new();
    let mut tried = |what: &str, result: io::Result<()>| {
        let said = result.map_or_else(|error| error.kind().to_string(), |()| "done".to_owned());
        got.insert(what.to_owned(), said);
    };
    tried("the maker's root", File::open(of_maker("root")).map(drop));
    tried("the maker's variables", fs::read(of_maker("environ")).map(drop));
    tried("the maker's memory", File::open(of_maker("mem")).map(drop));
    tried("the maker's files", fs::read_link(of_maker("fd/0")).map(drop));
    tried("the maker's directory", fs::read_dir(of_maker("cwd")).map(drop));
    tried("a signal to the maker", test_kill_process(maker).map_err(Into::into));
    tried("a secret of the home", fs::read(secret).map(drop));
    tried("the engine's socket", UnixStream::connect(engine).map(drop));
    for place in ["/", "/usr", "/etc", "/run", "/proc/sys/kernel"] {
        tried(place, File::create(Path::new(place).join("evil")).map(drop));
    }
    tried("a namespace", call!(libc::SYS_unshare, libc::CLONE_NEWUSER).map(drop));
    tried("a device", disk.map_err(Into::into));
    tried("a disk", make(FileType::BlockDevice, "disk").map_err(Into::into));
    tried(
        "the mark of a file that is gone",
        make(FileType::CharacterDevice, "gone").map_err(Into::into),
    );
    tried("a file of the project, moved", moved());
    line.write_all(&serde_json::to_vec(&got).unwrap()).unwrap();
    ExitCode::SUCCESS
}
