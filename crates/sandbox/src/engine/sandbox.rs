//! One container, seen from the kernel: how it is made, started and taken away.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Gid, Uid};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{PidfdFlags, pidfd_open};

use crate::config::{Changes, Config};
use crate::job::{Job, Watcher};
use crate::life::{Lived, Make};
use crate::native::cgroup::{Group, Groups, Used};
use crate::native::control::{self, Message, Order};
use crate::native::sandbox::{fill_volume, lost, on_disk, own_pipes, own_volume, streams};
use crate::native::spec::Owner;
use crate::native::supervise::{Running, Supervisor, serve};
use crate::native::{lock, outside, system};
use crate::runtime::{Failure, RuntimeError};
use crate::tree::remove_tree;

use super::Shared;
use super::error::ApiError;
use super::hold::Held;
use super::plan::{self, Desk};
use super::words::{self, Container};

/// How long the first process of a container that was started may take to answer.
const ANSWER: Duration = Duration::from_secs(60);
/// How often is looked whether it can still answer.
const LOOK: Duration = Duration::from_millis(250);

/// What a container is made with.
pub(super) struct EngineMake {
    shared: Arc<Shared>,
    name: String,
    made: Mutex<Made>,
    group: Arc<OnceLock<Group>>,
}

/// What has to be taken away.
#[derive(Default)]
struct Made {
    container: Option<String>,
    volumes: Vec<String>,
    directory: Option<PathBuf>,
}

/// A sandbox that does not run yet.
pub(super) fn create(shared: Arc<Shared>, config: Config, job: Job) -> Lived<EngineMake> {
    let name = shared.instance.next_name();
    let (made, group) = (Mutex::default(), Arc::default());
    Lived::new(name.clone(), EngineMake { shared, name, made, group }, config, job)
}

impl Make for EngineMake {
    fn begin(
        &self,
        config: &Config,
        job: Job,
        watcher: Arc<dyn Watcher>,
    ) -> Result<Supervisor, RuntimeError> {
        let owner = self.shared.owner(config)?;
        // Before anything runs that could write to it.
        if config.volume().is_some_and(|volume| !volume.serve()) {
            return Err(lost("a volume serves one sandbox only"));
        }
        own_volume(config, owner)?;
        let (directory, door, proxy) = self.furnish(config, owner)?;
        let inner = self.shared.inner(config, &job);
        let program = job.program.to_string_lossy().into_owned();
        let (stdio, streams) = streams(job)?;
        own_pipes(&stdio, &streams, owner)?;
        let id = self.make(config, owner, &directory)?;
        let api = &self.shared.api;
        api.start(&id).map_err(api.cannot("start a container"))?;
        let socket = self.answered(&door, &id)?;
        drop(door);
        let first = self.first(&socket)?;
        let told = control::send(&socket, &Order::Built(Box::new(inner)), &stdio);
        told.map_err(outside("the first process cannot be told what to do"))?;
        drop(stdio);
        let listeners = stood(&socket)?.into_iter().chain(proxy.map(OwnedFd::from)).collect();
        let hold = Held {
            api: Arc::clone(api),
            id,
            first,
            control: socket.try_clone().map_err(outside("a socket cannot be copied"))?,
            group: Arc::clone(&self.group),
            freezes: self.shared.freezes(),
        };
        let running = Running::new(Box::new(hold), socket);
        let running = Arc::new(running.map_err(outside("the sandbox cannot be watched"))?);
        fill_volume(config, None)?;
        Ok(Supervisor {
            running,
            streams,
            program,
            limits: *config.limits(),
            disk: on_disk(config)?,
            proxy: serve(config, listeners, &watcher)
                .map_err(outside("the sandbox's proxy cannot be started"))?,
            watcher,
        })
    }

    fn used(&self) -> Used {
        self.group.get().map(Group::usage).unwrap_or_default()
    }

    fn remove(&self) {
        // What cannot be removed now is swept up with the next start.
        let mut made = lock(&self.made);
        let api = &self.shared.api;
        if made.container.as_ref().is_none_or(|id| api.remove(id).is_ok()) {
            made.container = None;
            made.volumes.retain(|volume| api.remove_volume(volume).is_err());
        }
        if made.container.is_some() || !made.volumes.is_empty() {
            self.shared.instance.leave();
        }
        if let Some(directory) = made.directory.take() {
            let _left = remove_tree(&directory);
        }
    }
}

impl EngineMake {
    /// A directory for what the container is shown of the kernel's: the sockets, and who its user is.
    fn furnish(
        &self,
        config: &Config,
        owner: Owner,
    ) -> Result<(PathBuf, UnixListener, Option<UnixListener>), RuntimeError> {
        let directory = self.shared.instance.desk(&self.name);
        let directory = directory.map_err(outside("a directory cannot be made"))?;
        lock(&self.made).directory = Some(directory.clone());
        let door = listen(&directory.join("control.sock"))?;
        let proxy = config.network().allowed().map(|_| listen(&directory.join("proxy.sock")));
        let home = crate::native::plan::home(config).display().to_string();
        let Owner { uid, gid, .. } = self.shared.inside(owner);
        let files = [
            (
                "passwd",
                format!(
                    "fluffy:x:{uid}:{gid}::{home}:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
                ),
            ),
            ("group", format!("fluffy:x:{gid}:\nnogroup:x:65534:\n")),
        ];
        for (name, text) in files {
            note(&directory.join(name), text.as_bytes())?;
        }
        Ok((directory, door, proxy.transpose()?))
    }

    /// Makes the container.
    fn make(
        &self,
        config: &Config,
        owner: Owner,
        directory: &Path,
    ) -> Result<String, RuntimeError> {
        let shared = &self.shared;
        let image = shared.image.digest()?;
        let libraries = shared.instance.directory().join("lib");
        let program = &shared.options.program;
        let desk = Desk { directory, program, libraries: &libraries };
        let mounts = plan::mounts(config, &desk, shared.shown_system())?;
        if owner.privileged && config.parts().is_some() {
            // The places of parts in the volume were made by whoever we are.
            give(config, owner)?;
        }
        let container = Container {
            name: &self.name,
            instance: shared.instance.name(),
            image: &image,
            user: shared.user(owner),
            limits: config.limits(),
            mounts: &mounts,
            entry: &shared.entry,
            seccomp: (&shared.seccomp, &shared.seccomp_file),
            selinux: shared.selinux,
        };
        let api = &shared.api;
        let (volumes, body) =
            words::say(api.kind(), &container).map_err(api.cannot("be told of a container"))?;
        for volume in &volumes {
            let name = volume["Name"].as_str().unwrap_or_default().to_owned();
            lock(&self.made).volumes.push(name);
            api.create_volume(volume).map_err(api.cannot("make a volume"))?;
        }
        let id = api.create(&self.name, &body).map_err(api.cannot("make a container"))?;
        lock(&self.made).container = Some(id.clone());
        Ok(id)
    }

    /// Waits until the first process of a container speaks, or has ended.
    fn answered(&self, door: &UnixListener, id: &str) -> Result<UnixStream, RuntimeError> {
        let api = &self.shared.api;
        let until = now() + ANSWER;
        let look = Timespec::try_from(LOOK).ok();
        while now() < until {
            let mut fds = [PollFd::new(door, PollFlags::IN)];
            match poll(&mut fds, look.as_ref()) {
                Ok(count) if count > 0 => {
                    let (socket, _) =
                        door.accept().map_err(outside("a socket cannot be accepted"))?;
                    return Ok(socket);
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(outside("a socket cannot be watched")(error.into())),
            }
            let state = api.inspect(id).map_err(api.cannot("tell how a container is"))?;
            if !state.running {
                let error = ApiError::Ended { code: state.exit_code, said: state.error };
                return Err(api.cannot("run the first process of a sandbox")(error).into());
            }
        }
        Err(lost("the first process of the container does not answer"))
    }

    /// Who speaks there: not the host's root; and where it can be seen, a handle on it and its groups.
    fn first(&self, socket: &UnixStream) -> Result<Option<(u32, OwnedFd)>, RuntimeError> {
        let peer = socket_peercred(socket);
        let peer = peer.map_err(|error| outside("it cannot be seen who speaks")(error.into()))?;
        if peer.uid.is_root() {
            let step = "checking the user: it would be the host's root".to_owned();
            let source = std::io::Error::from_raw_os_error(libc::EPERM);
            return Err(RuntimeError::Setup(Failure { step, source }));
        }
        socket.set_read_timeout(Some(ANSWER)).map_err(outside("a socket cannot be set"))?;
        let pid = peer.pid.as_raw_nonzero().get();
        let Ok(pidfd) = pidfd_open(peer.pid, PidfdFlags::empty()) else { return Ok(None) };
        let Ok(pid) = u32::try_from(pid) else { return Ok(None) };
        if let Ok(group) = Groups::of_process(pid) {
            let _once = self.group.set(group);
        }
        Ok(Some((pid, pidfd)))
    }
}

/// Waits until the sandbox stands: the proxy's listeners in its network, if it has one.
fn stood(socket: &UnixStream) -> Result<Vec<OwnedFd>, RuntimeError> {
    match control::receive(socket) {
        Ok(Some((Message::Ready { .. }, listeners))) => {
            socket.set_read_timeout(None).map_err(outside("a socket cannot be set"))?;
            Ok(listeners)
        }
        Ok(Some((Message::Failed { step, errno }, _))) => {
            let source = std::io::Error::from_raw_os_error(errno);
            Err(RuntimeError::Setup(Failure { step, source }))
        }
        Ok(_) => Err(lost("the sandbox ended while it was set up")),
        Err(error) => Err(outside("the sandbox does not answer while it is set up")(error)),
    }
}

/// A socket in a directory that nobody else enters, for whoever it is shown to.
fn listen(at: &Path) -> Result<UnixListener, RuntimeError> {
    let listener = UnixListener::bind(at).map_err(outside("a socket cannot be made"))?;
    std::fs::set_permissions(at, Permissions::from_mode(0o666))
        .map_err(outside("a socket cannot be opened to the sandbox"))?;
    Ok(listener)
}

/// A file for the container to read.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that writes what a container is shown"
)]
pub(super) fn note(at: &Path, bytes: &[u8]) -> Result<(), RuntimeError> {
    let written = std::fs::File::create(at).and_then(|mut file| file.write_all(bytes));
    let open = written.and_then(|()| std::fs::set_permissions(at, Permissions::from_mode(0o644)));
    open.map_err(outside("a file for the sandbox cannot be written"))
}

/// Gives the directories of a fresh volume to the user that stands behind the sandbox.
fn give(config: &Config, owner: Owner) -> Result<(), RuntimeError> {
    let Some(volume) = config.volume().and_then(|volume| volume.directory()) else { return Ok(()) };
    let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
    let mut pending = vec![volume.join("upper"), volume.join("work")];
    while let Some(directory) = pending.pop() {
        let given = rustix::fs::chown(&directory, Some(uid), Some(gid)).map_err(Into::into);
        let entries = given.and_then(|()| std::fs::read_dir(&directory));
        let entries = entries.map_err(outside("a volume cannot be given to the sandbox"))?;
        pending.extend(entries.flatten().map(|entry| entry.path()));
    }
    Ok(())
}

/// Why a workspace cannot be changed by a container, if it cannot.
pub(super) fn owned_by_root(config: &Config, owner: Owner) -> bool {
    let overlay = |space: &crate::config::Workspace| matches!(space.changes, Changes::Overlay(_));
    owner.privileged
        && owner.uid == system::reserved().uid
        && config.workspace().is_some_and(overlay)
}

#[expect(clippy::disallowed_methods, reason = "deadlines of containers are real time")]
fn now() -> Instant {
    Instant::now()
}
