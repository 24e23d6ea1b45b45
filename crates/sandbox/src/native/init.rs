//! `fluffy sandbox-init`: starts the first process of each sandbox.
//!
//! It has one thread, stays as long as the kernel that started it, and is told everything over one socket: a
//! process that is there already and small is split much more quickly than a program is started. Each first
//! process is a child of the kernel's and not of this process, which only sees to it that none outlives the
//! kernel.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use fluffy_base::Excerpt;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};

use super::control::{self, Message, Order};
use super::first;
use super::mounts::Taken;
use super::owners;
use super::payload::Guest;
use super::spec::{Owner, Spec};
use super::sys::{self, Side};
use super::system::outside_id;

/// The number of the job's user and group inside.
pub(super) const INSIDE: u32 = 1000;

/// How much of a step's name is told.
const SHOWN_CHARS: usize = 500;

/// A step of the set-up that failed.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) step: String,
    pub(super) error: io::Error,
}

/// Names the step that an error belongs to.
pub(super) trait Step<T> {
    fn step(self, step: &str) -> Result<T, Broken>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, step: &str) -> Result<T, Broken> {
        self.map_err(|error| Broken { step: step.to_owned(), error: error.into() })
    }
}

/// What goes with a specification.
pub(super) struct Gear {
    /// Standard input, output and error of the job.
    pub(super) stdio: [OwnedFd; 3],
    /// Shows the host's root as the sandbox's user, where the kernel is root.
    pub(super) owners: Option<OwnedFd>,
    /// The directory of the sandbox's control group of version 2.
    pub(super) unified: Option<OwnedFd>,
    /// The `tasks` of its control groups of version 1.
    pub(super) tasks: Vec<OwnedFd>,
}

/// Sets sandboxes up, as the kernel at the other end of the standard input says, until that ends. The guests of this
/// program are not executed, because the process that is to become one is this program already. Every other job is.
pub fn sandbox_init(guests: &[Guest]) -> ExitCode {
    if sys::close_inherited().is_err() {
        return ExitCode::FAILURE;
    }
    let orders = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    let (Ok(orders), Ok(null)) = (orders, File::open("/dev/null")) else {
        return ExitCode::FAILURE;
    };
    // What is typed at the kernel's terminal is not for this process. It fails only if that is so already.
    let _own = rustix::process::setsid();
    // From here on the first descriptor is nobody's: what is split off must not hold the orders.
    if rustix::stdio::dup2_stdin(&null).is_err() {
        return ExitCode::FAILURE;
    }
    let mut made = Made::default();
    loop {
        let (order, mut fds) = match control::receive(&orders) {
            Ok(Some((order, fds))) if !fds.is_empty() => (order, fds.into_iter()),
            Ok(None) => {
                made.end();
                return ExitCode::SUCCESS;
            }
            Ok(Some(_)) | Err(_) => return ExitCode::FAILURE,
        };
        let Some(socket) = fds.next().map(UnixStream::from) else { return ExitCode::FAILURE };
        match obey(&socket, order, fds.collect()) {
            Ok(Side::Parent(first)) => made.remember(first),
            Ok(Side::Child(part)) => {
                drop((orders, made));
                return part.play(&socket, guests);
            }
            Err(broken) => {
                report(&socket, &broken);
            }
        }
    }
}

/// Where the first process of a sandbox that an engine built finds the kernel.
pub(crate) const CONTROL: &str = "/run/fluffy/control.sock";

/// Becomes the first process of a sandbox that an engine built around this process: the kernel says over a socket what
/// is to run, and how it is confined beyond what the engine does.
pub fn sandbox_entry(guests: &[Guest]) -> ExitCode {
    if sys::close_inherited().is_err() {
        return ExitCode::FAILURE;
    }
    let Ok(socket) = UnixStream::connect(CONTROL) else { return ExitCode::FAILURE };
    match control::receive(&socket) {
        Ok(Some((Order::Built(inner), fds))) => match <[OwnedFd; 3]>::try_from(fds) {
            Ok(stdio) => first::run_in_built(&socket, &inner, stdio, guests),
            Err(_) => ExitCode::FAILURE,
        },
        _ => ExitCode::FAILURE,
    }
}

/// The first processes that were made and may still live.
///
/// Each ends by itself when the kernel does, except while it is halted: it cannot notice then.
#[derive(Default)]
struct Made(Vec<OwnedFd>);

impl Made {
    /// Remembers one more, and forgets those that have ended.
    fn remember(&mut self, first: Option<OwnedFd>) {
        let mut fds: Vec<_> = self.0.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        if poll(&mut fds, Some(&Timespec::default())).is_ok() {
            let mut lives: Vec<bool> = fds.iter().map(|fd| fd.revents().is_empty()).collect();
            lives.reverse();
            self.0.retain(|_| lives.pop().unwrap_or(true));
        }
        self.0.extend(first);
    }

    /// Kills them: the kernel is gone.
    fn end(&self) {
        for first in &self.0 {
            // Most have noticed by themselves.
            let _gone = pidfd_send_signal(first, Signal::KILL);
        }
    }
}

/// Tells the kernel what failed; gives the code to end with.
pub(super) fn report(socket: &UnixStream, broken: &Broken) -> ExitCode {
    let errno = broken.error.raw_os_error().unwrap_or(0);
    let step = match errno {
        0 => format!("{} ({})", broken.step, broken.error),
        _ => broken.step.clone(),
    };
    // It may name a path of any length, and a message has a limit.
    let step = Excerpt::new(&step, SHOWN_CHARS).to_string();
    // If the kernel is gone, nobody wants to know.
    let _gone = control::send(socket, &Message::Failed { step, errno }, &[]);
    ExitCode::FAILURE
}

/// What a process that was split off does for the rest of its life: be the first process of a sandbox, once the pipe
/// says that it may.
struct Part {
    spec: Box<Spec>,
    gear: Gear,
    taken: Option<Taken>,
    wait: OwnedFd,
}

impl Part {
    fn play(self, socket: &UnixStream, guests: &[Guest]) -> ExitCode {
        let Self { spec, mut gear, taken, wait } = self;
        for tasks in gear.tasks.drain(..) {
            if let Err(broken) =
                File::from(tasks).write_all(b"0").step("entering the control group")
            {
                report(socket, &broken);
                return ExitCode::FAILURE;
            }
        }
        // Nothing comes if the process above died or failed: then nothing is to be done.
        if File::from(wait).read_exact(&mut [0]).is_err() {
            return ExitCode::FAILURE;
        }
        first::run(socket, &spec, gear, taken, guests)
    }
}

/// Carries an order out. Gives the first process, if it made one that goes on.
fn obey(
    socket: &UnixStream,
    order: Order,
    fds: Vec<OwnedFd>,
) -> Result<Side<Option<OwnedFd>, Part>, Broken> {
    let spec = match order {
        Order::Sandbox(spec) => spec,
        Order::Owners(owner) => {
            let made = owners::make((0, 0), owner)?;
            control::send(socket, &Message::Owners, &[made]).step("handing the namespace over")?;
            return Ok(Side::Parent(None));
        }
        Order::Built(_) => {
            let error = io::ErrorKind::InvalidInput.into();
            return Err(Broken { step: "reading the order".into(), error });
        }
    };
    let gear = Gear::of(&spec, fds)?;
    let mut taken = None;
    if spec.owner.privileged {
        rustix::thread::set_thread_groups(&[]).step("leaving the groups of the kernel")?;
        taken = Some(Taken::take(&spec, gear.owners.as_ref())?);
    }
    let (wait, go) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).step("a pipe")?;
    let group = gear.unified.as_ref().map(|group| group.as_fd());
    match sys::clone_first(group).step("making the namespaces")? {
        Side::Parent(child) => {
            let pid = child.pid;
            let cloned = Message::Cloned { pid };
            let step = "reporting the first process";
            let first = child.pidfd.try_clone().step(step)?;
            control::send(socket, &cloned, &[child.pidfd]).step(step)?;
            // If this fails, the child is never released and ends.
            map_owner(pid, spec.owner)?;
            File::from(go).write_all(&[1]).step("releasing the first process")?;
            Ok(Side::Parent(Some(first)))
        }
        Side::Child(()) => Ok(Side::Child(Part { spec, gear, taken, wait })),
    }
}

/// Lets the sandbox's one user and group stand for one of the host's, which is never root.
fn map_owner(pid: u32, owner: Owner) -> Result<(), Broken> {
    let step = "checking the user: it would be the host's root";
    let users = std::fs::read_to_string("/proc/self/uid_map").step(step)?;
    let is_root = outside_id(&users, owner.uid) == Some(0);
    if is_root || (owner.privileged && owner.gid == 0) {
        return Err(Broken { step: step.into(), error: io::Error::from_raw_os_error(libc::EPERM) });
    }
    let lines = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{INSIDE} {} 1", owner.uid)),
        ("gid_map", format!("{INSIDE} {} 1", owner.gid)),
    ];
    for (name, line) in lines {
        let path = format!("/proc/{pid}/{name}");
        let file = File::options().write(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .step(&format!("writing {name}"))?;
    }
    Ok(())
}

impl Gear {
    /// Sorts what came with a specification.
    fn of(spec: &Spec, fds: Vec<OwnedFd>) -> Result<Self, Broken> {
        let lacking = || Broken {
            step: "reading the descriptors".into(),
            error: io::ErrorKind::UnexpectedEof.into(),
        };
        let mut fds = fds.into_iter();
        let mut next = || fds.next().ok_or_else(lacking);
        let stdio = [next()?, next()?, next()?];
        let owners = if spec.shows_owners() { Some(next()?) } else { None };
        let unified = if spec.unified { Some(next()?) } else { None };
        Ok(Self { stdio, owners, unified, tasks: fds.collect() })
    }
}
