//! The job's process, from fork to exec: gives up everything, checks that it is gone, becomes the program.
//!
//! A guest of this program is not executed: the process is that program already, and starting it again would take
//! longer than what the guest does. It has given up the same, under the same filter, and has no descriptor but the
//! three standard ones. What executing would take away beside them is a copy of what `sandbox-init` knows: the plans of
//! sandboxes.
//!
//! The order matters: what needs a privilege comes before the privilege is given up, Landlock before the
//! system calls are filtered, and the check last, under all of it.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::control::{self, Message};
use super::init::{Broken, Step, report};
use super::processors;
use super::seccomp;
use super::spec::{Bytes, Command, Inner, Rlimits};
use super::sys;

/// The newest Landlock that is asked for; an older kernel gives what it has.
const LANDLOCK: ABI = ABI::V6;

/// Something that this program does in a sandbox, instead of another program.
#[derive(Debug, Clone, Copy)]
pub struct Guest {
    /// The argument that names it.
    pub name: &'static str,
    /// All that it does: it reads the standard input, writes the standard output, flushes that, and gives its exit
    /// code. It must be memory-safe code that asks neither for arguments nor for the environment.
    pub run: fn() -> u8,
}

/// Becomes the program, or tells why not.
pub(super) fn run(
    socket: &UnixStream,
    inner: &Inner,
    stdio: [OwnedFd; 3],
    guests: &[Guest],
) -> ExitCode {
    let become_job = || match known(&inner.command, guests) {
        Some(guest) => Err(sys::end_as(guest.run)).step("closing descriptors"),
        None => become_program(&inner.command),
    };
    match confine(inner, stdio).and_then(|()| become_job()) {
        Ok(error) => {
            let message = Message::NoProgram { errno: error.raw_os_error().unwrap_or(0) };
            // If the kernel is gone, nobody wants to know.
            let _gone = control::send(socket, &message, &[]);
            ExitCode::FAILURE
        }
        Err(broken) => report(socket, &broken),
    }
}

/// The guest that a command names, if it is here.
fn known<'a>(command: &Command, guests: &'a [Guest]) -> Option<&'a Guest> {
    let [name] = command.args.as_slice() else { return None };
    guests.iter().find(|guest| command.guest && guest.name.as_bytes() == name.as_bytes())
}

fn confine(inner: &Inner, stdio: [OwnedFd; 3]) -> Result<(), Broken> {
    rustix::process::setsid().step("starting a session")?;
    let [stdin, stdout, stderr] = stdio;
    rustix::stdio::dup2_stdin(stdin).step("connecting the standard input")?;
    rustix::stdio::dup2_stdout(stdout).step("connecting the standard output")?;
    rustix::stdio::dup2_stderr(stderr).step("connecting the standard error")?;
    rustix::process::chdir(inner.command.cwd.as_path()).step("entering the working directory")?;
    limit(inner.rlimits).step("setting limits")?;
    processors::stay_on(inner.rlimits.processors);
    sys::fresh_signals().step("resetting signals")?;
    outside_is_left(&inner.outside)?;
    give_up_capabilities().step("giving up capabilities")?;
    rustix::thread::set_no_new_privs(true).step("giving up new privileges")?;
    sys::close_on_exec().step("closing descriptors")?;
    restrict(inner)?;
    let filter = seccomp::compile(inner.profile).map_err(io::Error::other);
    let filter = filter.step("compiling the filter of system calls")?;
    seccomp::install(&filter).map_err(io::Error::other).step("filtering system calls")?;
    all_is_given_up()
}

fn limit(limits: Rlimits) -> io::Result<()> {
    let set = |resource, value| {
        setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })
    };
    set(Resource::Core, 0)?;
    set(Resource::Nofile, limits.open_files)?;
    set(Resource::Fsize, limits.file_bytes)?;
    set(Resource::Memlock, 64 << 10)?;
    set(Resource::Msgqueue, 800 << 10)?;
    for (resource, value) in [(Resource::Nproc, limits.processes), (Resource::Data, limits.data)] {
        if let Some(value) = value {
            set(resource, value)?;
        }
    }
    Ok(())
}

pub(super) fn give_up_capabilities() -> io::Result<()> {
    sys::empty_bounding_set()?;
    give_up_sets()
}

/// Gives up what this process has, after what it could ever have.
pub(super) fn give_up_sets() -> io::Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// Lets the job read everything that is mounted and write only where it may.
fn restrict(inner: &Inner) -> Result<(), Broken> {
    if !inner.landlock {
        return Ok(());
    }
    let read = AccessFs::from_read(LANDLOCK);
    let all = AccessFs::from_all(LANDLOCK);
    let make = || -> Result<_, Box<dyn std::error::Error + Send + Sync>> {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .scope(Scope::from_all(LANDLOCK))?
            .create()?
            .add_rule(PathBeneath::new(PathFd::new("/")?, read))?;
        for path in &inner.writable {
            rules = rules.add_rule(PathBeneath::new(PathFd::new(path.as_path())?, all))?;
        }
        Ok(rules.restrict_self()?.ruleset)
    };
    let status = make().map_err(io::Error::other).step("restricting files with Landlock")?;
    if status == RulesetStatus::NotEnforced {
        let error = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
        return Err(Broken { step: "restricting files with Landlock".into(), error });
    }
    Ok(())
}

/// Refuses to go on in a namespace of the kernel's.
fn outside_is_left(outside: &[(String, Bytes)]) -> Result<(), Broken> {
    for (name, theirs) in outside {
        let step = format!("checking the {name} namespace");
        let ours = std::fs::read_link(format!("/proc/self/ns/{name}")).step(&step)?;
        if ours.as_os_str() == theirs.0 {
            return Err(Broken { step, error: io::Error::from_raw_os_error(libc::EPERM) });
        }
    }
    Ok(())
}

/// Refuses to go on with anything that should be gone.
pub(super) fn all_is_given_up() -> Result<(), Broken> {
    const GONE: &str = "0000000000000000";
    let wanted = [
        ("CapInh:", GONE),
        ("CapPrm:", GONE),
        ("CapEff:", GONE),
        ("CapBnd:", GONE),
        ("CapAmb:", GONE),
        ("NoNewPrivs:", "1"),
        ("Seccomp:", "2"),
    ];
    let status = std::fs::read_to_string("/proc/self/status").step("checking the confinement")?;
    for (name, value) in wanted {
        let found = status.lines().find_map(|line| line.strip_prefix(name));
        if found.map(str::trim) != Some(value) {
            let step = format!("checking the confinement ({name} {})", found.unwrap_or("lacking"));
            return Err(Broken { step, error: io::Error::from_raw_os_error(libc::EPERM) });
        }
    }
    Ok(())
}

/// Executes the program: as it is named if that is a path, else the first of that name.
fn become_program(command: &Command) -> Result<io::Error, Broken> {
    let text =
        |bytes: &[u8]| CString::new(bytes).map_err(io::Error::from).step("reading the command");
    let mut args = vec![text(command.program.as_bytes())?];
    for arg in &command.args {
        args.push(text(arg.as_bytes())?);
    }
    let env: Result<Vec<_>, _> = command.env.iter().map(|pair| text(pair.as_bytes())).collect();
    let env = env?;
    let program = command.program.as_path();
    if program.as_os_str().as_bytes().contains(&b'/') {
        return Ok(sys::exec(&text(command.program.as_bytes())?, &args, &env));
    }
    let mut last = io::Error::from_raw_os_error(libc::ENOENT);
    for directory in &command.path {
        let candidate = Path::new(directory.as_path()).join(program);
        let error = sys::exec(&text(candidate.as_os_str().as_bytes())?, &args, &env);
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => {}
            // Something is there, but not to be run; a later directory may have better.
            Some(libc::EACCES) => last = error,
            _ => return Ok(error),
        }
    }
    Ok(last)
}
