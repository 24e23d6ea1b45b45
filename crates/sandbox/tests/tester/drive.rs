//! Drives a sandbox as the user it runs as, and says what became of the attack in it.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use fluffy_base::{ByteSize, Span};
use fluffy_sandbox::{
    Config, Engine, EngineOptions, ImageChoice, Job, Limits, Native, NativeOptions, Outcome,
    Runtime, RuntimeError, Store, Stream, Template, Volume, Watcher, Workspace,
};

use crate::control::{inherited, take_terminal, unruly, waiting};
use crate::spec::{Drive, Narrow, Seen};
use crate::sys;

/// Runs an attack in a sandbox and prints what was seen.
pub(crate) fn run(drive: Drive) {
    let terminal = drive.terminal.then(|| sys::terminal().expect("a terminal"));
    if let Some((_, screen)) = &terminal {
        take_terminal(screen);
    }
    let _leaked: Vec<OwnedFd> = drive.leaked.iter().map(|path| inherited(path)).collect();
    if drive.unruly {
        unruly();
    }
    let mut seen = attacked(&drive)
        .unwrap_or_else(|error| Seen { error: Some(chain(&error)), ..Seen::default() });
    if let Some((_, screen)) = &terminal {
        seen.typed = waiting(screen);
    }
    // Closed before the end, it would hang up on this process.
    std::mem::forget(terminal);
    println!("{}", serde_json::to_string(&seen).unwrap());
}

pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}

fn attacked(drive: &Drive) -> Result<Seen, RuntimeError> {
    let tester = drive.scene.join("bin/tester");
    let runtime = open(drive, &tester)?;
    let runtime = &*runtime;
    let mut other = None;
    if let Some(attack) = &drive.beside {
        let (config, _) = config(runtime, drive)?;
        let sandbox = runtime.create(config, job(&tester, attack))?;
        let (said, first) = channel();
        sandbox.start(Arc::new(Tells(said)))?;
        first.recv().expect("the other attack speaks");
        other = Some(sandbox);
    }
    let (config, volume) = config(runtime, drive)?;
    let program = drive.program.as_deref().unwrap_or(&tester);
    let watcher: Arc<dyn Watcher> =
        if drive.announced { Arc::new(Announces) } else { Arc::new(()) };
    let outcome = runtime.run(config, job(program, &drive.attack), watcher)?;
    drop(other);
    Ok(told(&outcome, &volume))
}

/// The driver that makes the sandbox.
fn open(drive: &Drive, tester: &Path) -> Result<Box<dyn Runtime>, RuntimeError> {
    let (program, state) = (tester.to_owned(), drive.scene.join("state/sandboxes"));
    let (path, env) = (Vec::new(), Vec::new());
    let Some((engine, socket)) = &drive.engine else {
        return Ok(Box::new(Native::open(NativeOptions { program, state, path, env })?));
    };
    let engine = Engine::open(EngineOptions {
        engine: engine.parse().expect("an engine"),
        sockets: vec![socket.clone()],
        image: ImageChoice::Base,
        program,
        state,
        path,
        env,
    })?;
    engine.image_prepared()?;
    Ok(Box::new(engine))
}

fn config(runtime: &dyn Runtime, drive: &Drive) -> Result<(Config, Volume), RuntimeError> {
    let volume = runtime.volume(if drive.on_disk { Store::Disk } else { Store::Memory })?;
    let bin = drive.scene.join("bin");
    if let Some(template) = &drive.template {
        let template: Template = template.parse().expect("a template");
        return Ok((Config::of(template).showing(&bin)?, volume));
    }
    let project = drive.scene.join("project");
    let config = Config::of(Template::CodeExecutor)
        .narrowed_to(narrowed(&drive.limits))
        .with_workspace(Workspace::overlay(&project, volume.clone()))?
        .showing(&bin)?;
    Ok((config, volume))
}

fn narrowed(narrow: &Narrow) -> Limits {
    let usual = Template::CodeExecutor.limits();
    Limits {
        memory: narrow.memory.map_or(usual.memory, ByteSize::from_bytes),
        cpu: usual.cpu,
        processes: narrow.processes.unwrap_or(usual.processes),
        duration: narrow.duration.map(Span::from_ms).or(usual.duration),
        captured: narrow.captured.map_or(usual.captured, ByteSize::from_bytes),
        disk: narrow.disk.map_or(usual.disk, ByteSize::from_bytes),
        files: narrow.files.unwrap_or(usual.files),
        open_files: narrow.open_files.unwrap_or(usual.open_files),
    }
}

fn job(program: &Path, attack: &[String]) -> Job {
    Job::new(program).args(["attack"]).args(attack)
}

/// Says when a job has printed something.
struct Tells(Sender<()>);

impl Watcher for Tells {
    fn printed(&self, _stream: Stream, _bytes: &[u8]) {
        // Nobody listens any more after the first time.
        let _told = self.0.send(());
    }
}

/// Says so to whoever started this process.
struct Announces;

impl Watcher for Announces {
    fn printed(&self, _stream: Stream, _bytes: &[u8]) {
        println!("announced");
    }
}

fn told(outcome: &Outcome, volume: &Volume) -> Seen {
    let mut changes = Vec::new();
    if let Some(content) = volume.content() {
        list(content, &mut changes);
    }
    Seen {
        end: outcome.end.to_string(),
        reached: outcome.reached.iter().map(ToString::to_string).collect(),
        stdout: String::from_utf8_lossy(&outcome.stdout.bytes).into_owned(),
        stderr: String::from_utf8_lossy(&outcome.stderr.bytes).into_owned(),
        cut: outcome.stdout.cut || outcome.stderr.cut,
        changes,
        ..Seen::default()
    }
}

/// Kinds and names of what lies in a volume.
fn list(content: BorrowedFd<'_>, changes: &mut Vec<String>) {
    let top = PathBuf::from(format!("/proc/self/fd/{}", content.as_raw_fd()));
    let mut pending = vec![top.clone()];
    while let Some(directory) = pending.pop() {
        let entries = match fs::read_dir(&directory) {
            // It was listed itself.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
            other => other.unwrap(),
        };
        for entry in entries {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let kind = metadata.file_type();
            let name = if kind.is_dir() {
                pending.push(path.clone());
                let marked = rustix::fs::lgetxattr(&path, "user.overlay.opaque", &mut [0_u8; 8]);
                if marked.is_ok() { "opaque directory" } else { "directory" }
            } else if kind.is_file() {
                "file"
            } else if kind.is_symlink() {
                "link"
            } else if kind.is_char_device() && metadata.rdev() == 0 {
                "whiteout"
            } else if kind.is_fifo() {
                "pipe"
            } else {
                "device"
            };
            changes.push(format!("{name} {}", path.strip_prefix(&top).unwrap().display()));
        }
    }
    changes.sort();
}
