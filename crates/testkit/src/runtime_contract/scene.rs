//! What a job is tried on: a project beside things that it must not reach, and ways to look at it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{PipeWriter, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use fluffy_base::Span;
use fluffy_sandbox::harvest::{Change, HarvestLimits, Kind, harvest};
use fluffy_sandbox::proxy::Record;
use fluffy_sandbox::{
    Config, Health, Input, Job, Limits, Outcome, Runtime, RuntimeError, Sandbox, Stream, Template,
    Volume, Watcher, Workspace,
};
use tempfile::TempDir;

/// A project, a home with a secret and another project; gone when dropped.
pub(super) struct Scene {
    dir: TempDir,
    token: String,
}

impl Scene {
    pub(super) fn new() -> Self {
        // Not in `/tmp`, of which every sandbox has its own: hidden by that alone, a secret proves little.
        let dir =
            tempfile::Builder::new().prefix("fluffy-contract-").tempdir_in("/var/tmp").unwrap();
        let name = dir.path().file_name().unwrap().to_str().unwrap();
        let scene = Self { token: format!("token-{name}"), dir };
        for (path, text) in [
            ("project/kept", "kept\n"),
            ("project/changed", "before\n"),
            ("project/deleted", "soon gone\n"),
            ("project/folder/inner", "inner\n"),
            ("sibling/file", "of somebody else\n"),
            ("home/.profile", "# nothing\n"),
        ] {
            scene.write(path, text);
        }
        scene.write("home/.ssh/id_ed25519", &scene.secret());
        scene
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// A word that no other process on this machine has among its arguments.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn secret(&self) -> String {
        format!("secret-of-{}", self.token)
    }

    /// Everything on the host that a job could wish to change.
    pub(super) fn tree(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        tree(self.dir.path())
    }

    /// Processes of the host whose arguments hold the token, this one left out.
    pub(super) fn processes(&self) -> Vec<String> {
        let own = std::process::id().to_string();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().into_string().ok());
        numbers
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && *name != own)
            .filter_map(|name| fs::read(format!("/proc/{name}/cmdline")).ok())
            .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
            .filter(|line| line.contains(&self.token))
            .collect()
    }

    #[track_caller]
    pub(super) fn is_quiet(&self) {
        assert_eq!(self.processes(), Vec::<String>::new(), "processes were left");
    }

    /// A job that runs a script with the token among its arguments.
    pub(super) fn script(&self, script: &str) -> Job {
        Job::new("sh").args(["-c", script, self.token()])
    }

    /// The same for `bash`.
    pub(super) fn bash(&self, script: &str) -> Job {
        Job::new("bash").args(["-c", script, self.token()])
    }
}

/// Files with their modes and contents, and links with what they say.
fn tree(top: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut found = BTreeMap::new();
    let mut pending = vec![top.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_dir() {
                pending.push(path.clone());
                Vec::new()
            } else if metadata.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else {
                fs::read(&path).unwrap()
            };
            found.insert(path, (metadata.mode(), content));
        }
    }
    found
}

/// What a runtime gives when nobody narrows it.
pub(super) fn executor() -> Config {
    Config::of(Template::CodeExecutor)
}

/// The usual limits with a change.
pub(super) fn narrowed(change: impl FnOnce(&mut Limits)) -> Config {
    let mut limits = Template::CodeExecutor.limits();
    change(&mut limits);
    executor().narrowed_to(limits)
}

/// A configuration whose job may run this long.
pub(super) fn ending_after(ms: u64) -> Config {
    narrowed(|limits| limits.duration = Some(Span::from_ms(ms)))
}

/// A configuration whose job may change the project, in a layer of its own.
pub(super) fn over(scene: &Scene, volume: &Volume) -> Config {
    executor().with_workspace(Workspace::overlay(&scene.project(), volume.clone())).unwrap()
}

/// A configuration whose job may read the project and write to `/output`.
pub(super) fn beside(scene: &Scene, volume: &Volume) -> Config {
    executor().with_workspace(Workspace::with_output(&scene.project(), volume.clone())).unwrap()
}

#[track_caller]
pub(super) fn run(runtime: &dyn Runtime, config: Config, job: Job) -> Outcome {
    match runtime.run(config, job, Arc::new(())) {
        Ok(outcome) => outcome,
        Err(error) => panic!("it does not run: {}", chain(&error)),
    }
}

#[track_caller]
pub(super) fn succeeds(runtime: &dyn Runtime, config: Config, job: Job) -> String {
    let outcome = run(runtime, config, job);
    let (out, err) = (text(&outcome.stdout.bytes), text(&outcome.stderr.bytes));
    assert!(outcome.is_success(), "{}\n{out}\n{err}", outcome.end);
    out
}

/// Lets real time pass, by waiting for a job in a sandbox of its own.
pub(super) fn pass_time(runtime: &dyn Runtime, seconds: &str) {
    assert!(run(runtime, executor(), Job::new("sleep").args([seconds])).is_success());
}

/// What could not be done, with its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a runtime says it lacks.
pub(super) fn notes(runtime: &dyn Runtime) -> Vec<String> {
    match runtime.ping() {
        Ok(Health::Ready { notes }) => notes,
        Ok(Health::Pending { reason, .. }) => panic!("it is not ready: {reason}"),
        Err(error) => panic!("it cannot run: {}", chain(&error)),
    }
}

/// What lies in a volume: `+name` for what was written, with its text, and `-name` for what was deleted.
pub(super) fn content(volume: &Volume, kind: Kind) -> Vec<String> {
    let top = volume.content().expect("the volume was used");
    let harvest = harvest(top, kind, &HarvestLimits::default(), &|_| false).unwrap();
    assert!(harvest.refused().is_empty(), "{:?}", harvest.refused());
    let lines = harvest.changes().iter().map(|change| match change {
        Change::Write(file) => {
            format!("+{} {}", file.path(), text(&harvest.read(file).unwrap()).trim_end())
        }
        Change::Delete(path) => format!("-{path}"),
        Change::Replace(path) => format!("!{path}"),
    });
    lines.collect()
}

/// A file in a volume as it is now, while the job runs.
pub(super) fn peek(volume: &Volume, name: &str) -> Vec<u8> {
    let top = volume.content().expect("the volume was used").as_raw_fd();
    fs::read(format!("/proc/self/fd/{top}/{name}")).unwrap_or_default()
}

/// What happened while a job ran, as it happened.
#[derive(Clone)]
pub(super) struct Seen {
    printed: Sender<Vec<u8>>,
    records: Arc<Mutex<Vec<Record>>>,
}

impl Seen {
    pub(super) fn new() -> (Self, Receiver<Vec<u8>>) {
        let (printed, receiver) = channel();
        (Self { printed, records: Arc::default() }, receiver)
    }

    pub(super) fn records(&self) -> Vec<Record> {
        self.records.lock().unwrap().clone()
    }
}

impl Watcher for Seen {
    fn printed(&self, _stream: Stream, bytes: &[u8]) {
        // Nobody has to listen.
        let _heard = self.printed.send(bytes.to_vec());
    }

    fn proxied(&self, record: &Record) {
        self.records.lock().unwrap().push(record.clone());
    }
}

/// A job that runs until it is told to end: it has printed its first line.
pub(super) struct Waiting {
    pub(super) sandbox: Box<dyn Sandbox>,
    pub(super) printed: Receiver<Vec<u8>>,
    stdin: Option<PipeWriter>,
}

impl Waiting {
    /// Starts a script, which is to print something once it is where it should be, and may read a line.
    pub(super) fn start(runtime: &dyn Runtime, config: Config, job: Job) -> Self {
        let (sandbox, stdin) = create(runtime, config, job);
        let (seen, printed) = Seen::new();
        if let Err(error) = sandbox.start(Arc::new(seen)) {
            panic!("it does not start: {}", chain(&error));
        }
        if printed.recv().is_err() {
            panic!("it ended without a word: {:?}", sandbox.wait());
        }
        Self { sandbox, printed, stdin: Some(stdin) }
    }

    /// Gives the job a line to read, and the end of its input.
    pub(super) fn say(&mut self, line: &str) {
        let mut stdin = self.stdin.take().expect("it was not told before");
        stdin.write_all(line.as_bytes()).unwrap();
    }

    #[track_caller]
    pub(super) fn outcome(&self) -> Outcome {
        self.sandbox.wait().unwrap()
    }
}

/// A sandbox that was not started, and what its job will read from.
pub(super) fn create(
    runtime: &dyn Runtime,
    config: Config,
    mut job: Job,
) -> (Box<dyn Sandbox>, PipeWriter) {
    let (theirs, ours) = std::io::pipe().unwrap();
    job.stdin = Input::From(theirs.into());
    match runtime.create(config, job) {
        Ok(sandbox) => (sandbox, ours),
        Err(error) => panic!("it cannot be made: {}", chain(&error)),
    }
}

#[track_caller]
pub(super) fn refused(answer: Result<Outcome, RuntimeError>) -> RuntimeError {
    match answer {
        Ok(outcome) => panic!("it ran: {} {}", outcome.end, text(&outcome.stderr.bytes)),
        Err(error) => error,
    }
}
