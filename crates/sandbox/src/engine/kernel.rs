//! The kernel's own container: the other form of its confinement, for machines whose users may not make namespaces.
//!
//! ```text
//! host ── fluffy kernel serve ── contain ──► container: the kernel          project, state, cache, runtime directory: read-write
//!              │                                │ the gate's socket           toolchains, programs: read-only; nothing else is there
//!              └── the gate ◄──────────────────┘
//!                    └──► engine ──► sandboxes, which are its siblings
//! ```
//!
//! What the engine builds is what it builds for every sandbox: a read-only root, no capability, no new privileges, our
//! filter, never root. Processes and network stay the machine's, as in the native form: clients are known by their
//! numbers, and the proxy reaches the network. What that would open, [`crate::l1::enter_container`] closes from inside.
//!
//! **Invariant.** The container ends with the process that made it, and the engine takes it away when it has ended.

use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fluffy_base::Digest;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use serde_json::{Map, Value, json};

use crate::native::l1::{self, L1Options};
use crate::native::outside;
use crate::native::seccomp::json::around_the_kernel;
use crate::native::spec::{Furniture, Kind};
use crate::native::system::System;
use crate::runtime::RuntimeError;
use crate::template::Template;

use super::api::{About, Api};
use super::error::ApiError;
use super::gate::kept;
use super::image::{Image, ImageChoice};
use super::kind::EngineKind;
use super::plan::{Access, Mount, What, below};
use super::words::{self, Container, User};

/// How long the kernel may take to answer.
const ANSWER: Duration = Duration::from_secs(25);
/// How often is looked whether it can still.
const LOOK: Duration = Duration::from_millis(250);
/// Room in the kernel's temporary directory.
const TEMPORARY: u64 = 256 << 20;

/// What a container for the kernel is made of.
#[derive(Debug, Clone)]
pub struct ContainOptions {
    /// Which engine.
    pub engine: EngineKind,
    /// Where it may listen; the first that answers is used.
    pub sockets: Vec<PathBuf>,
    /// What the kernel needs of the machine.
    pub confinement: L1Options,
    /// What its program is started with.
    pub arguments: Vec<OsString>,
    /// The variables that it is given.
    pub env: Vec<(OsString, OsString)>,
    /// Where the kernel is waited for: a socket in a directory that it sees.
    pub socket: PathBuf,
    /// A directory for the seccomp profile, where the kernel cannot write.
    pub profiles: PathBuf,
}

/// A container with a kernel in it. Dropped, it is taken away.
#[derive(Debug)]
pub struct Contained {
    api: Api,
    id: String,
    line: Option<UnixStream>,
}

/// Makes the container and waits until the kernel in it speaks.
pub fn contain(options: &ContainOptions) -> Result<Contained, RuntimeError> {
    let (api, about) = super::greet(options.engine, &options.sockets)?;
    let api = Arc::new(api);
    let system = System::find().map_err(outside("the system cannot be looked at"))?;
    let image = Image::prepare(&api, ImageChoice::Base, &system)?.digest()?;
    let door = UnixListener::bind(&options.socket).map_err(outside("a socket cannot be made"))?;
    let _door = Removed(&options.socket);
    std::fs::set_permissions(&options.socket, std::fs::Permissions::from_mode(0o600))
        .map_err(outside("a socket cannot be made private"))?;
    let said = options.socket.as_os_str().as_encoded_bytes();
    let name: String = Digest::of(said).to_string().chars().take(16).collect();
    let name = format!("fluffy-kernel-{name}");
    let body = say(options, &system, &about, (&name, &image))?;
    let id = api.create(&name, &body).map_err(api.cannot("make a container for the kernel"))?;
    let api = Arc::into_inner(api);
    let api = api.ok_or(RuntimeError::State(crate::runtime::State::Failed))?;
    let mut contained = Contained { api, id, line: None };
    let (api, id) = (&contained.api, &contained.id);
    api.start(id).map_err(api.cannot("start the kernel's container"))?;
    contained.line = Some(answered(api, id, &door)?);
    Ok(contained)
}

impl Contained {
    /// The way to the kernel, which is told by its end that it is to end, and says at its own end with which code.
    pub fn line(&self) -> Option<&UnixStream> {
        self.line.as_ref()
    }

    /// Waits for the kernel's end; gives its exit code, if it said one.
    pub fn wait(&self) -> Option<u8> {
        let mut code = [0];
        let mut line = self.line.as_ref()?;
        line.read_exact(&mut code).ok()?;
        let [code] = code;
        Some(code)
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        // The engine does it too, where this process is killed.
        let _gone = self.api.remove(&self.id);
    }
}

/// A file that goes.
struct Removed<'a>(&'a Path);

impl Drop for Removed<'_> {
    #[expect(clippy::disallowed_methods, reason = "the one place that removes the kernel's door")]
    fn drop(&mut self) {
        let _left = std::fs::remove_file(self.0);
    }
}

/// The container in the engine's words: those of a sandbox, but for what a kernel is for.
fn say(
    options: &ContainOptions,
    system: &System,
    about: &About,
    (name, image): (&str, &str),
) -> Result<Value, RuntimeError> {
    let engine = options.engine;
    let cannot = |error: ApiError| super::EngineError {
        engine,
        doing: "be told of a container for the kernel",
        source: Box::new(error),
    };
    let mounts = mounts(&options.confinement, system)?;
    let profile = around_the_kernel();
    let file = kept(&options.profiles, profile.to_string().as_bytes())
        .map_err(outside("the profile of system calls cannot be written"))?;
    let user = match (about.rootless, engine) {
        (false, _) => User::Same(system.uid, system.gid),
        (true, EngineKind::Podman) => User::Kept(system.uid, system.gid),
        (true, EngineKind::Docker) => User::Owner,
    };
    let text = |part: &OsString| {
        let why = "it is not UTF-8";
        let odd = || ApiError::Path { path: part.into(), why };
        part.to_str().map(str::to_owned).ok_or_else(odd).map_err(cannot)
    };
    let program = text(&options.confinement.program.clone().into_os_string())?;
    let arguments = options.arguments.iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let entry: Vec<String> = std::iter::once(program).chain(arguments).collect();
    let container = Container {
        name,
        instance: "",
        image,
        user,
        limits: &Template::CodeExecutor.limits(),
        mounts: &mounts,
        entry: &entry,
        seccomp: (&profile, &file),
        selinux: Path::new("/sys/fs/selinux/enforce").exists(),
    };
    let (_, mut body) = words::say(engine, &container).map_err(cannot)?;
    let mut env = Vec::new();
    for (name, value) in &options.env {
        env.push((text(name)?, text(value)?));
    }
    // No label of a sandbox's: it is nothing that a gate would touch.
    let labels = json!({ "dev.fluffy.kernel": name });
    let changed = match engine {
        EngineKind::Docker => as_kernel_of_docker(&mut body, env, labels),
        EngineKind::Podman => as_kernel_of_podman(&mut body, env, labels),
    };
    debug_assert!(changed.is_some());
    Ok(body)
}

fn as_kernel_of_docker(body: &mut Value, env: Vec<(String, String)>, labels: Value) -> Option<()> {
    let env: Vec<String> = env.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    let host = body.get_mut("HostConfig")?.as_object_mut()?;
    for limit in ["Memory", "MemorySwap", "PidsLimit", "NanoCpus", "Ulimits", "OomScoreAdj"] {
        host.remove(limit);
    }
    put(host, [("NetworkMode", json!("host")), ("PidMode", json!("host"))]);
    put(host, [("AutoRemove", json!(true))]);
    let body = body.as_object_mut()?;
    put(body, [("NetworkDisabled", json!(false)), ("Env", json!(env)), ("Labels", labels)]);
    Some(())
}

fn as_kernel_of_podman(body: &mut Value, env: Vec<(String, String)>, labels: Value) -> Option<()> {
    let env: Map<String, Value> = env.into_iter().map(|(name, it)| (name, it.into())).collect();
    let body = body.as_object_mut()?;
    for limit in ["resource_limits", "oom_score_adj"] {
        body.remove(limit);
    }
    // As many open files as whoever starts it may have; without a word, Podman asks for more than it may have itself.
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let limits = body.get_mut("r_limits")?.as_array_mut()?;
    let files = limits.iter_mut().find(|limit| limit.get("type").is_some_and(|it| it == "nofile"));
    if let (Some(files), Some(most)) = (files.and_then(Value::as_object_mut), most) {
        put(files, [("soft", json!(most)), ("hard", json!(most))]);
    }
    let host = json!({ "nsmode": "host" });
    put(body, [("netns", host.clone()), ("pidns", host), ("remove", json!(true))]);
    put(body, [("env", Value::Object(env)), ("labels", labels)]);
    put(body, [("use_image_hosts", json!(false)), ("use_image_resolve_conf", json!(false))]);
    Some(())
}

fn put<const N: usize>(object: &mut Map<String, Value>, pairs: [(&str, Value); N]) {
    for (name, value) in pairs {
        object.insert(name.to_owned(), value);
    }
}

/// What the kernel sees: the system's programs, and what it is to have of the machine.
fn mounts(options: &L1Options, system: &System) -> Result<Vec<Mount>, RuntimeError> {
    let mut mounts = Vec::new();
    for piece in &system.shown {
        if let Furniture::Shown(bind) = piece
            && bind.kind != Kind::Device
        {
            let from = bind.from.as_path();
            mounts.push(shown(from, Access::Read));
            mounts.extend(below(from)?.iter().map(|path| shown(path, Access::Read)));
        }
    }
    let refused = |error: l1::L1Error| match error {
        l1::L1Error::Machine(error) => error,
        other => {
            let source = std::io::Error::other(other.to_string());
            RuntimeError::Io { what: "what the kernel is to see cannot be shown", source }
        }
    };
    let seen = l1::shown(options).map_err(refused)?;
    let written = std::iter::once(&options.project).chain(&options.writable);
    let mut own: Vec<Mount> = written.map(|path| shown(path, Access::Write)).collect();
    let list = ["/etc/passwd", "/etc/group"].map(PathBuf::from);
    let read = seen.iter().chain([&options.program]).chain(&list);
    own.extend(read.map(|path| shown(path, Access::Read)));
    own.sort_by_key(|mount| mount.at.components().count());
    for mount in own {
        // What holds it gives it already.
        let given = mounts.iter().any(|around: &Mount| {
            mount.at.starts_with(&around.at) && (writes(around) || !writes(&mount))
        });
        if !given {
            mounts.push(mount);
        }
    }
    let memory = What::Memory { bytes: TEMPORARY, files: 100_000, mode: 0o1777 };
    mounts.push(Mount { at: PathBuf::from("/tmp"), what: memory });
    mounts.sort_by_key(|mount| mount.at.components().count());
    Ok(mounts)
}

fn shown(path: &Path, access: Access) -> Mount {
    Mount { at: path.to_owned(), what: What::Shown { from: path.to_owned(), access } }
}

fn writes(mount: &Mount) -> bool {
    matches!(mount.what, What::Shown { access: Access::Write, .. })
}

/// Waits until the kernel speaks, or its container has ended.
fn answered(api: &Api, id: &str, door: &UnixListener) -> Result<UnixStream, RuntimeError> {
    let (until, look) = (now() + ANSWER, Timespec::try_from(LOOK).ok());
    while now() < until {
        let mut fds = [PollFd::new(door, PollFlags::IN)];
        match poll(&mut fds, look.as_ref()) {
            Ok(count) if count > 0 => {
                let (line, _) = door.accept().map_err(outside("a socket cannot be accepted"))?;
                let peer = socket_peercred(&line);
                let peer = peer.map_err(|it| outside("it cannot be seen who speaks")(it.into()))?;
                if peer.uid == rustix::process::geteuid() {
                    return Ok(line);
                }
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(outside("a socket cannot be watched")(error.into())),
        }
        let state = api.inspect(id).map_err(api.cannot("tell how the kernel's container is"))?;
        if !state.running {
            let error = ApiError::Ended { code: state.exit_code, said: state.error };
            return Err(api.cannot("run the kernel in a container")(error).into());
        }
    }
    Err(crate::native::sandbox::lost("the kernel in the container does not answer"))
}

#[expect(clippy::disallowed_methods, reason = "deadlines of containers are real time")]
fn now() -> Instant {
    Instant::now()
}
