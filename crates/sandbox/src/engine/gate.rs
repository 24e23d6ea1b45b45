//! A door to an engine, for a kernel that is confined itself.
//!
//! Whoever has an engine's socket is root on the machine, so a confined kernel does not get it. It gets a socket of the
//! gate's, which stands outside and passes on the calls that the driver makes, on what bears our label and belongs to
//! this state, and nothing else.
//!
//! **Invariant.** What an engine is told of a container is said by the gate itself: what is asked for is read back, judged,
//! and said again in the driver's words. What cannot be read back is refused, so that there is no word for a
//! privilege.
//!
//! **Invariant.** What a container is shown lies where the gate was told, with no link on the way, when it is judged. It is
//! not held from there on: an engine takes a path and nothing that is open, so that a kernel that was taken over could
//! swap a directory of its own for a link in the moment before the engine mounts it, and see what the user sees.

use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use fluffy_base::Digest;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{PidfdFlags, pidfd_open};
use serde_json::{Value, json};

use crate::native::seccomp::json::around_a_job;
use crate::native::spec::Furniture;
use crate::native::system::System;
use crate::native::{lock, outside};
use crate::runtime::{RuntimeError, Swept};
use crate::template::Template;

use super::api::{self, Api, LABEL, PULL};
use super::error::{SLOW, UNREACHED};
use super::hold::has_ended;
use super::http::{Answer, Body, HttpError};
use super::image::{ImageName, REPOSITORY};
use super::kind::EngineKind;
use super::plan::{Access, What};
use super::unsay::{self, Asked};
use super::words::{self, Container, User};

/// Bytes of a request's head, and of its body.
const HEAD: usize = 64 << 10;
const BODY: usize = 4 << 20;
/// Headers in a head.
const HEADERS: usize = 64;
/// How long a kernel may take to say what it wants, and an engine to answer.
const ASKING: Duration = Duration::from_secs(30);
const ANSWERING: Duration = Duration::from_secs(120);

/// What a gate is told.
#[derive(Debug, Clone)]
pub struct GateOptions {
    /// Which engine.
    pub engine: EngineKind,
    /// Where it may listen; the first that answers is used.
    pub sockets: Vec<PathBuf>,
    /// The image that may be fetched, if one may.
    pub fetched: Option<ImageName>,
    /// Of what containers may be shown something, read-only: the project, the kernel's program, toolchains.
    pub shown: Vec<PathBuf>,
    /// The driver's directory ([`EngineOptions::state`](super::EngineOptions::state)): the only one that containers may
    /// write below.
    pub state: PathBuf,
    /// A directory for the seccomp profile, where the kernel cannot write.
    pub profiles: PathBuf,
}

/// A door to an engine.
#[derive(Debug)]
pub struct Gate {
    options: GateOptions,
    api: Api,
    rootless: bool,
    /// Of the system, what every container is shown.
    system: Vec<PathBuf>,
    seccomp: Value,
    /// The file that it lies in.
    profile: PathBuf,
    /// Who asks.
    kernel: OnceLock<OwnedFd>,
    calls: Calls,
}

/// Calls that are under way.
#[derive(Debug)]
struct Calls {
    /// How many; nothing, once no more are taken.
    under_way: Mutex<Option<usize>>,
    changed: Condvar,
}

impl Calls {
    fn open() -> Self {
        Self { under_way: Mutex::new(Some(0)), changed: Condvar::new() }
    }

    /// Whether one more is taken.
    fn begin(&self) -> bool {
        lock(&self.under_way).as_mut().map(|count| *count += 1).is_some()
    }

    fn end(&self) {
        if let Some(count) = lock(&self.under_way).as_mut() {
            *count = count.saturating_sub(1);
        }
        self.changed.notify_all();
    }

    /// Waits for their end, so long at most; takes no more then.
    fn close(&self, patience: Duration) {
        let some = |count: &mut Option<usize>| count.is_some_and(|count| count > 0);
        let waited = self.changed.wait_timeout_while(lock(&self.under_way), patience, some);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = None;
    }
}

/// Why a request is not passed on.
type Refusal = &'static str;

/// What every refusal begins with.
const REFUSED: &str = "refused by fluffy's gate";

/// What a kernel asks for.
struct Request {
    method: String,
    path: String,
    query: String,
    body: Vec<u8>,
}

impl Gate {
    /// Greets the engine, and writes the profile.
    pub fn open(options: GateOptions) -> Result<Self, RuntimeError> {
        let (api, about) = super::greet(options.engine, &options.sockets)?;
        let system = System::find().map_err(outside("the system cannot be looked at"))?;
        let shown = system.shown.iter().filter_map(|piece| match piece {
            Furniture::Shown(bind) => Some(bind.from.as_path().to_owned()),
            _ => None,
        });
        let seccomp = around_a_job();
        let profile = kept(&options.profiles, seccomp.to_string().as_bytes())
            .map_err(outside("the profile of system calls cannot be written"))?;
        let (rootless, system) = (about.rootless, shown.collect());
        let kernel = OnceLock::new();
        let calls = Calls::open();
        Ok(Self { options, api, rootless, system, seccomp, profile, kernel, calls })
    }

    /// Waits for the end of whoever asked, for some seconds: one in a container ends a moment after its maker, and is not to
    /// be left without an answer before. Then for the end of what the engine is still asked for: a container that it makes
    /// after a sweep would be nobody's.
    pub fn outlast(&self) {
        if let Some(kernel) = self.kernel.get() {
            let _ended = has_ended(kernel);
        }
        self.calls.close(ASKING);
    }

    /// Takes away what kernels of this state left that are gone.
    pub fn sweep(&self) -> Swept {
        super::take_away(&self.api, &self.options.state)
    }

    /// Answers whoever comes, each on a thread of their own, as long as the listener works.
    pub fn serve(self: &Arc<Self>, listener: &UnixListener) {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            if self.kernel.get().is_none()
                && let Ok(peer) = socket_peercred(&stream)
                && let Ok(handle) = pidfd_open(peer.pid, PidfdFlags::empty())
            {
                let _first = self.kernel.set(handle);
            }
            if !self.calls.begin() {
                return;
            }
            let gate = Arc::clone(self);
            let answering = move || {
                // Whoever does not wait for the answer does not want it.
                let _gone = gate.answer(&stream);
                gate.calls.end();
            };
            let thread = std::thread::Builder::new().name("gate".to_owned()).spawn(answering);
            if thread.is_err() {
                self.calls.end();
            }
        }
    }

    fn answer(&self, stream: &UnixStream) -> io::Result<()> {
        let mut to = stream;
        stream.set_read_timeout(Some(ASKING))?;
        stream.set_write_timeout(Some(ASKING))?;
        let mut passing = Passing { to: stream, began: false, gone: false };
        let answered = match read_request(stream) {
            Err(why) => Err((400, format!("{REFUSED}: {why}"))),
            Ok(request) => self.pass(&request, &mut passing),
        };
        if passing.began {
            return match answered {
                Ok(_) => to.write_all(b"0\r\n\r\n"),
                // The end of the chunks is missing, which the driver notices.
                Err(_) => Ok(()),
            };
        }
        let (status, head, body) = match answered {
            Ok(Answer { status, server, api, body }) => {
                (status, format!("Server: {server}\r\nApi-Version: {api}\r\n"), body)
            }
            Err((status, why)) => {
                let told = json!({ "message": why });
                (status, String::new(), told.to_string().into_bytes())
            }
        };
        let head = format!(
            "HTTP/1.1 {status} Answer\r\n{head}Content-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            body.len()
        );
        to.write_all(head.as_bytes())?;
        to.write_all(&body)
    }

    /// Passes a request on, if it is one of the driver's.
    ///
    /// What an engine says while it fetches an image is passed on as it comes.
    fn pass(&self, request: &Request, passing: &mut Passing<'_>) -> Result<Answer, (u16, String)> {
        let call = Call::of(request, self.options.fetched.as_ref()).map_err(refused)?;
        let body = match &call {
            Call::Plain => request.body.clone(),
            Call::Fetch => Vec::new(),
            Call::Import(tag) => {
                let digest = Digest::of(&request.body).to_string();
                if !digest.starts_with(tag.as_str()) {
                    return Err(refused("the image is not what its name says"));
                }
                request.body.clone()
            }
            Call::CreateVolume => self.volume(&request.body).map_err(refused)?,
            Call::CreateContainer(name) => {
                self.container(name.as_deref(), &request.body).map_err(refused)?
            }
            Call::OfContainer(id) => {
                let path = format!("/containers/{id}/json");
                self.is_ours(&path, |it| it.get("Config")?.get("Labels"))?;
                Vec::new()
            }
            Call::OfVolume(name) => {
                self.is_ours(&format!("/volumes/{name}"), |it| it.get("Labels"))?;
                Vec::new()
            }
        };
        let target = match request.query.as_str() {
            "" => request.path.clone(),
            query => format!("{}?{query}", request.path),
        };
        let sent = match &call {
            Call::Import(_) => Body::Archive(&body),
            _ if body.is_empty() => Body::Nothing,
            _ => Body::Json(&body),
        };
        let asked = (request.method.as_str(), target.as_str());
        let answer = if matches!(call, Call::Fetch) {
            let heard = &mut |status: u16, piece: &[u8]| {
                if status == 200 {
                    passing.hand_on(piece);
                }
            };
            self.api.line().call_and_hear(asked, sent, PULL, heard)
        } else {
            self.api.line().call(asked, sent, ANSWERING)
        };
        answer.map_err(unanswered)
    }

    /// Whether something bears our label, of an instance of this state.
    fn is_ours(
        &self,
        path: &str,
        labels: impl Fn(&Value) -> Option<&Value>,
    ) -> Result<(), (u16, String)> {
        let asked = ("GET", path);
        let answer = self.api.line().call(asked, Body::Nothing, ASKING);
        let answer = answer.map_err(unanswered)?;
        if answer.status == 404 {
            // What is not there is nobody's, and that is said as the engine would.
            return Err((404, "it is not there".to_owned()));
        }
        let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let instance = labels(&told).and_then(|labels| labels.get(LABEL)).and_then(Value::as_str);
        match instance {
            Some(instance) if self.is_instance(instance) => Ok(()),
            _ => Err(refused("it is not ours")),
        }
    }

    fn is_instance(&self, name: &str) -> bool {
        is_hex(name, 10) && self.options.state.join(name).is_dir()
    }

    /// A volume as it may be made: an overlay of what may be shown.
    fn volume(&self, body: &[u8]) -> Result<Vec<u8>, Refusal> {
        let body: Value = serde_json::from_slice(body).map_err(|_| "it is no JSON")?;
        let (name, instance, what) = unsay::volume(&body).ok_or("it is no volume of ours")?;
        let container = name.rsplit_once('-').map(|(container, _)| container);
        if !container.is_some_and(|container| is_name(container, &instance)) {
            return Err("its name is none of ours");
        }
        if !self.is_instance(&instance) {
            return Err("its label is not of this state");
        }
        let said = words::volume(&name, &instance, &what);
        if said.ok().as_ref() != Some(&body) {
            return Err("it asks for more than the driver does");
        }
        self.judge(&what)?;
        Ok(body.to_string().into_bytes())
    }

    /// A container as it may be made.
    fn container(&self, name: Option<&str>, body: &[u8]) -> Result<Vec<u8>, Refusal> {
        let body: Value = serde_json::from_slice(body).map_err(|_| "it is no JSON")?;
        let asked = match self.options.engine {
            EngineKind::Docker => unsay::docker(name.ok_or("it has no name")?, &body),
            EngineKind::Podman => unsay::podman(&body),
        };
        let asked = asked.ok_or("it is no container of ours")?;
        let said = self.say(&asked, &asked.profile)?;
        if said != body {
            return Err("it asks for more than the driver does");
        }
        if !is_name(&asked.name, &asked.instance) || !self.is_instance(&asked.instance) {
            return Err("its name or its label is none of ours");
        }
        if !is_hex(asked.image.strip_prefix("sha256:").unwrap_or_default(), 64) {
            return Err("it is made of a name, not of a digest");
        }
        self.user(asked.user)?;
        let most = Template::CodeExecutor.limits();
        if asked.limits.narrowed_to(most) != asked.limits {
            return Err("its limits are wider than any template's");
        }
        for mount in &asked.mounts {
            match (&mount.what, self.options.engine) {
                // Judged when it was made; nobody else's has a name like that.
                (What::Overlay { .. }, EngineKind::Docker) => {}
                (what, _) => self.judge(what)?,
            }
        }
        // The profile is the gate's own: whoever asks could write to theirs.
        Ok(self.say(&asked, &self.profile)?.to_string().into_bytes())
    }

    fn say(&self, asked: &Asked, profile: &Path) -> Result<Value, Refusal> {
        let container = Container {
            name: &asked.name,
            instance: &asked.instance,
            image: &asked.image,
            user: asked.user,
            limits: &asked.limits,
            mounts: &asked.mounts,
            entry: &asked.entry,
            seccomp: (&self.seccomp, profile),
            selinux: asked.selinux,
        };
        let said = words::say(self.options.engine, &container);
        said.map(|(_, body)| body).map_err(|_| "its paths cannot be said")
    }

    /// Nobody but who the gate works for, and never the machine's root.
    fn user(&self, user: User) -> Result<(), Refusal> {
        let own = (rustix::process::geteuid(), rustix::process::getegid().as_raw());
        let is_own = |uid: u32, gid: u32| {
            let same = own.0.is_root() || (uid, gid) == (own.0.as_raw(), own.1);
            uid != 0 && gid != 0 && same
        };
        match (user, self.rootless, self.options.engine) {
            (User::Same(uid, gid), false, _) if is_own(uid, gid) => Ok(()),
            (User::Kept(uid, gid), true, EngineKind::Podman) if is_own(uid, gid) => Ok(()),
            (User::Owner, true, EngineKind::Docker) => Ok(()),
            _ => Err("its user is not the one who asks"),
        }
    }

    /// Whether something may be mounted.
    fn judge(&self, what: &What) -> Result<(), Refusal> {
        match what {
            What::Memory { .. } => Ok(()),
            What::Shown { from, access: Access::Read } if self.is_systems(from) => Ok(()),
            What::Shown { from, access } => self.lies_right(from, *access),
            What::Overlay { layers, changes } => {
                layers.iter().try_for_each(|layer| self.lies_right(layer, Access::Read))?;
                let changes = changes.iter().flat_map(|(upper, work)| [upper, work]);
                changes.into_iter().try_for_each(|path| self.lies_right(path, Access::Write))
            }
        }
    }

    /// Whether something is shown to every container; what is mounted below does not come along by itself.
    fn is_systems(&self, path: &Path) -> bool {
        self.system.iter().any(|system| path == system)
    }

    /// Whether a path lies where something may be shown from, or written to, and no link leads there.
    fn lies_right(&self, path: &Path, access: Access) -> Result<(), Refusal> {
        let plain = path.is_absolute()
            && path.components().all(|it| matches!(it, Component::RootDir | Component::Normal(_)));
        let in_state = path.starts_with(&self.options.state) && path != self.options.state;
        let shown = self.options.shown.iter().any(|shown| path.starts_with(shown));
        let system = self.system.iter().any(|system| path.starts_with(system));
        let allowed = match access {
            Access::Read => in_state || shown || system,
            Access::Write => in_state,
        };
        if !plain || !allowed {
            return Err("a mount lies neither in the project nor in a volume of ours");
        }
        // Without `NOFOLLOW`, with which a link at the end would be opened as itself.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let found = openat2(CWD, path, flags, Mode::empty(), resolve);
        found.map(drop).map_err(|_| "a link leads to a mount, or it is not there")
    }
}

/// An answer that is passed on piece by piece.
struct Passing<'a> {
    to: &'a UnixStream,
    /// Its head is sent.
    began: bool,
    /// Whoever asked for it does not listen any more.
    gone: bool,
}

impl Passing<'_> {
    fn hand_on(&mut self, piece: &[u8]) {
        if piece.is_empty() || self.gone {
            return;
        }
        let head = "HTTP/1.1 200 Answer\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\
                    Connection: close\r\n\r\n";
        let mut bytes = if self.began { Vec::new() } else { head.as_bytes().to_vec() };
        self.began = true;
        bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
        self.gone = self.to.write_all(&bytes).is_err();
    }
}

fn refused(why: Refusal) -> (u16, String) {
    (403, format!("{REFUSED}: {why}"))
}

/// The engine does not answer; the driver knows the two numbers.
fn unanswered(error: HttpError) -> (u16, String) {
    let status = if matches!(error, HttpError::Slow(_)) { SLOW } else { UNREACHED };
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
    (status, format!("{error}{}", cause.unwrap_or_default()))
}

/// A file of these bytes in a directory, named after what it holds: others may be reading it.
#[expect(clippy::disallowed_methods, reason = "the one place that writes the gate's profile")]
pub(super) fn kept(directory: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    std::fs::create_dir_all(directory)?;
    let name: String = Digest::of(bytes).to_string().chars().take(16).collect();
    let at = directory.join(format!("seccomp-{name}.json"));
    if std::fs::read(&at).is_ok_and(|found| found == bytes) {
        return Ok(at);
    }
    let beside = at.with_extension(std::process::id().to_string());
    std::fs::write(&beside, bytes)?;
    std::fs::rename(&beside, &at)?;
    Ok(at)
}

/// A call that the driver makes.
enum Call {
    /// It says nothing of its own.
    Plain,
    /// The image that may be fetched.
    Fetch,
    /// An image of this tag.
    Import(String),
    CreateVolume,
    CreateContainer(Option<String>),
    OfContainer(String),
    OfVolume(String),
}

impl Call {
    fn of(request: &Request, fetched: Option<&ImageName>) -> Result<Self, Refusal> {
        const NOT_OURS: Refusal = "the driver makes no such call";
        let (method, query) = (request.method.as_str(), request.query.as_str());
        let path = unversioned(&request.path).ok_or(NOT_OURS)?;
        let parts: Vec<&str> = path.split('/').collect();
        match (method, parts.as_slice(), query) {
            ("GET", ["_ping"] | ["info"] | ["libpod", "info"], "") => Ok(Self::Plain),
            ("GET", ["images", name @ .., "json"], "") => {
                let named = name.join("/").parse::<ImageName>();
                named.map(|_| Self::Plain).map_err(|_| "that names no image")
            }
            ("GET", ["volumes"], filter) => filtered(filter),
            ("GET", ["containers", "json"], query) => {
                filtered(query.strip_prefix("all=true&").unwrap_or_default())
            }
            ("POST", ["images", "create"], query)
                if fetched.is_some_and(|name| query == api::fetching(&name.to_string())) =>
            {
                Ok(Self::Fetch)
            }
            ("POST", ["images", "create"], query) => {
                import(query.strip_prefix(&format!("fromSrc=-&repo={REPOSITORY}&tag=")))
            }
            ("POST", ["libpod", "images", "import"], query) => {
                import(query.strip_prefix(&format!("reference={REPOSITORY}:")))
            }
            ("POST", ["volumes", "create"], "") => Ok(Self::CreateVolume),
            ("POST", ["containers", "create"], query) => match query.strip_prefix("name=") {
                Some(name) => Ok(Self::CreateContainer(Some(name.to_owned()))),
                None => Err(NOT_OURS),
            },
            ("POST", ["libpod", "containers", "create"], "") => Ok(Self::CreateContainer(None)),
            ("POST", ["containers", id, "start" | "pause" | "unpause" | "kill" | "wait"], "")
            | ("GET", ["containers", id, "json"], "")
            | ("DELETE", ["containers", id], "force=true&v=true")
                if is_plain(id) =>
            {
                Ok(Self::OfContainer((*id).to_owned()))
            }
            ("DELETE", ["volumes", name], "force=true") if is_plain(name) => {
                Ok(Self::OfVolume((*name).to_owned()))
            }
            _ => Err(NOT_OURS),
        }
    }
}

/// A path without the version before it.
fn unversioned(path: &str) -> Option<&str> {
    let path = path.strip_prefix('/')?;
    let rest = path.strip_prefix('v').and_then(|rest| rest.split_once('/'));
    match rest {
        Some((version, rest)) if version.chars().all(|c| c.is_ascii_digit() || c == '.') => {
            Some(rest)
        }
        _ => Some(path),
    }
}

fn import(tag: Option<&str>) -> Result<Call, Refusal> {
    let tag = tag.filter(|tag| is_hex(tag, 16)).ok_or("only the base image is made")?;
    Ok(Call::Import(tag.to_owned()))
}

/// A list is of one instance's only.
fn filtered(query: &str) -> Result<Call, Refusal> {
    let instance = query
        .strip_prefix("filters=%7B%22label%22:%5B%22dev.fluffy.instance%3D")
        .and_then(|rest| rest.strip_suffix("%22%5D%7D"));
    match instance {
        Some(instance) if is_hex(instance, 10) => Ok(Call::Plain),
        _ => Err("only what bears our label is listed"),
    }
}

/// Whether this is a name or an id, and leads nowhere else.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether this is the name of a container of an instance.
fn is_name(name: &str, instance: &str) -> bool {
    let number = name.strip_prefix("fluffy-").and_then(|rest| rest.strip_prefix(instance));
    let number = number.and_then(|rest| rest.strip_prefix('-')).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn read_request(stream: &UnixStream) -> Result<Request, Refusal> {
    let mut bytes = Vec::new();
    let (mut request, length, size) = loop {
        if let Some(head) = read_head(&bytes)? {
            break head;
        }
        if bytes.len() > HEAD {
            return Err("its head is too long");
        }
        more(stream, &mut bytes)?;
    };
    if length > BODY {
        return Err("its body is too long");
    }
    let mut body = bytes.split_off(size);
    while body.len() < length {
        more(stream, &mut body)?;
    }
    if body.len() > length {
        return Err("there is more than one request");
    }
    request.body = body;
    Ok(request)
}

/// The head of a request, the length of its body, and its own.
fn read_head(bytes: &[u8]) -> Result<Option<(Request, usize, usize)>, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let parsed = head.parse(bytes).map_err(|_| "it is no request")?;
    let httparse::Status::Complete(size) = parsed else { return Ok(None) };
    let mut length = None;
    for header in head.headers.iter() {
        if header.name.eq_ignore_ascii_case("transfer-encoding")
            || header.name.eq_ignore_ascii_case("upgrade")
        {
            return Err("its length is not said");
        }
        if header.name.eq_ignore_ascii_case("content-length") {
            let said = std::str::from_utf8(header.value).ok().and_then(|it| it.parse().ok());
            if length.replace(said.ok_or("its length is none")?).is_some() {
                return Err("its length is said twice");
            }
        }
    }
    let target = head.path.ok_or("it has no target")?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let method = head.method.unwrap_or_default().to_owned();
    let (path, query) = (path.to_owned(), query.to_owned());
    let request = Request { method, path, query, body: Vec::new() };
    Ok(Some((request, length.unwrap_or(0), size)))
}

fn more(mut stream: &UnixStream, bytes: &mut Vec<u8>) -> Result<(), Refusal> {
    let mut chunk = [0; 16 << 10];
    match stream.read(&mut chunk) {
        Ok(0) | Err(_) => Err("it breaks off"),
        Ok(read) => {
            bytes.extend_from_slice(chunk.get(..read).unwrap_or_default());
            Ok(())
        }
    }
}
