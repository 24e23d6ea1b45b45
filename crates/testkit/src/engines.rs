//! The engines that `scripts/engines` starts for tests.
#![expect(
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests ask their surroundings, and stop where these lack what they must have"
)]

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fluffy_sandbox::EngineKind;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Where `scripts/engines` keeps what it starts.
const PLACE: &str = "/tmp/fluffy-engines";

/// The file, in the place of an engine of one's own, that says whom it trusts without TLS.
const REGISTRIES: &str = "registries.conf";

/// Where an engine listens that was started for tests.
pub fn socket(kind: EngineKind) -> PathBuf {
    Path::new(PLACE).join(format!("{kind}.sock"))
}

/// Where a Podman listens that has no right itself, if it is there; it is of the user 65533.
///
/// # Panics
///
/// When it has to be there and is not.
pub fn rootless() -> Option<PathBuf> {
    let socket = Path::new(PLACE).join("rootless.sock");
    listens("rootless podman", &socket).then_some(socket)
}

/// Whether it is there. Where tests must not be left out (`CI`, `FLUFFY_ENGINES=required`), it has to be.
///
/// # Panics
///
/// When it has to be there and is not.
pub fn is_there(kind: EngineKind) -> bool {
    listens(kind.name(), &socket(kind))
}

fn listens(name: &str, socket: &Path) -> bool {
    let there = UnixStream::connect(socket).is_ok();
    let said =
        |name: &str| std::env::var(name).is_ok_and(|value| !value.is_empty() && value != "0");
    if !there && (said("CI") || said("FLUFFY_ENGINES")) {
        panic!("no {name} listens at {}: run ./scripts/engines", socket.display());
    }
    if !there {
        eprintln!("skipped: no engine ({name}); ./scripts/engines starts one");
    }
    there
}

/// An engine that one test has for itself, to kill and to start again. Only root can have one.
#[derive(Debug)]
pub struct OwnEngine {
    kind: EngineKind,
    dir: TempDir,
    process: Option<Child>,
}

impl OwnEngine {
    /// Starts one; its socket is for this group.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub fn start(kind: EngineKind, group: u32) -> io::Result<Self> {
        Self::start_beside(kind, group, None)
    }

    /// The same, which fetches images from a server on this machine that speaks no TLS.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub fn start_beside(
        kind: EngineKind,
        group: u32,
        registry: Option<SocketAddr>,
    ) -> io::Result<Self> {
        // Sockets of its own lie below, whose paths must be short.
        let dir = tempfile::Builder::new().prefix("fl-eng-").tempdir_in("/tmp")?;
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755))?;
        let trusted =
            registry.map(|at| format!("[[registry]]\nlocation = \"{at}\"\ninsecure = true\n"));
        std::fs::write(dir.path().join(REGISTRIES), trusted.unwrap_or_default())?;
        let mut own = Self { kind, dir, process: None };
        own.again(group)?;
        Ok(own)
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("engine.sock")
    }

    /// It does not get on, or does again.
    ///
    /// # Errors
    ///
    /// When it is not there.
    pub fn stall(&self, stalled: bool) -> io::Result<()> {
        let process = self.process.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let signal = if stalled { Signal::STOP } else { Signal::CONT };
        Ok(kill_process(Pid::from_child(process), signal)?)
    }

    /// Kills it, as if it had crashed.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _gone = process.kill();
            let _reaped = process.wait();
        }
    }

    /// Starts it again, with what it had, and waits until it answers.
    ///
    /// # Errors
    ///
    /// When it does not.
    pub fn again(&mut self, group: u32) -> io::Result<()> {
        let (socket, at) = (self.socket(), self.dir.path());
        let _stale = std::fs::remove_file(&socket);
        // Where nobody reaps what it started and left, their numbers would be taken for them.
        for stale in ["pid", "x/containerd/containerd.pid"] {
            let _stale = std::fs::remove_file(at.join(stale));
        }
        let log = std::fs::File::create(at.join("log"))?;
        let mut command = match self.kind {
            EngineKind::Docker => {
                let mut command = Command::new("dockerd");
                command.arg("-H").arg(format!("unix://{}", socket.display()));
                command
                    .arg("--data-root")
                    .arg(at.join("data"))
                    .arg("--exec-root")
                    .arg(at.join("x"));
                command.arg("--pidfile").arg(at.join("pid"));
                command.args(["--storage-driver=vfs", "--iptables=false", "--ip6tables=false"]);
                command.arg("--bridge=none");
                command
            }
            EngineKind::Podman => {
                let mut command = Command::new("podman");
                // Docker trusts what listens on this machine without being told.
                command.env("CONTAINERS_REGISTRIES_CONF", at.join(REGISTRIES));
                command.arg("--root").arg(at.join("data")).arg("--runroot").arg(at.join("x"));
                command.args(["--storage-driver", "vfs", "--runtime", "runc"]);
                command.args(["--cgroup-manager", "cgroupfs", "system", "service", "-t", "0"]);
                command.arg(format!("unix://{}", socket.display()));
                command
            }
        };
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.process = Some(command.spawn()?);
        for _ in 0..600 {
            if answers(&socket).unwrap_or(false) {
                std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o660))?;
                return chown(&socket, Some(0), Some(group));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let said = std::fs::read_to_string(at.join("log")).unwrap_or_default();
        Err(io::Error::other(format!("{} does not answer: {said}", self.kind)))
    }
}

/// Whether an engine listens there that is ready: one that is starting takes connections and says nothing.
fn answers(socket: &Path) -> io::Result<bool> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"GET /_ping HTTP/1.0\r\nHost: engine\r\n\r\n")?;
    let mut said = [0; 12];
    stream.read_exact(&mut said)?;
    Ok(said.ends_with(b" 200"))
}

impl Drop for OwnEngine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let said = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            eprintln!("what {} said:\n{said}", self.kind);
        }
        // One that was killed left what it had started, and is the one to take it away.
        if self.process.is_none() {
            let _failed = self.again(0);
        }
        if let Some(process) = &mut self.process {
            // In order, so that what it had mounted and started goes with it.
            let id = process.id().to_string();
            let _asked = Command::new("kill").args(["-TERM", &id]).status();
            let _reaped = process.wait();
        }
        // What is still mounted is not to be removed through.
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let top = self.dir.path().display().to_string();
        let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
        let mut points: Vec<&str> = points.filter(|point| point.starts_with(&top)).collect();
        points.sort_unstable();
        for point in points.iter().rev() {
            let _gone = Command::new("umount").arg(point).status();
        }
    }
}
