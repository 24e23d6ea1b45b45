//! Real sandboxes under a scheduler, with what is counted of them and a memory that says what it is told.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fluffy_kernel::schedule::{Limits, Memory, Scheduler, Share, Shown};
use fluffy_sandbox::{
    Captured, Config, Health, Inspection, Job, MadeOf, Native, NativeOptions, Outcome, Runtime,
    RuntimeError, Sandbox, Store, Swept, Template, Volume, Watcher,
};
use tempfile::TempDir;

pub(crate) struct Scene {
    dir: TempDir,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) count: Arc<Count>,
    memory: Arc<AtomicU8>,
}

/// How many sandboxes work and worked, by what their drivers were told.
#[derive(Debug, Default)]
pub(crate) struct Count {
    now: Mutex<usize>,
    pub(crate) most: AtomicUsize,
    pub(crate) pauses: AtomicUsize,
    pub(crate) resumes: AtomicUsize,
}

struct Told(Arc<AtomicU8>);

impl Memory for Told {
    fn used(&self) -> Share {
        Share(self.0.load(Ordering::SeqCst))
    }
}

impl Scene {
    pub(crate) fn new(limits: Limits) -> Self {
        let dir = tempfile::Builder::new().prefix("fluffy-turns-").tempdir_in("/var/tmp").unwrap();
        let native = Native::open(NativeOptions {
            program: PathBuf::from(env!("CARGO_BIN_EXE_kernel-tester")),
            state: dir.path().join("state"),
            path: Vec::new(),
            env: Vec::new(),
        });
        std::fs::create_dir(dir.path().join("shown")).unwrap();
        let memory = Arc::new(AtomicU8::new(10));
        let scheduler = Scheduler::new(limits, Box::new(Told(Arc::clone(&memory))));
        let count = Arc::new(Count::default());
        let native: Arc<dyn Runtime> = Arc::new(native.unwrap());
        let runtime =
            scheduler.over(Arc::new(Counting { runtime: native, count: Arc::clone(&count) }));
        Self { dir, scheduler, runtime, count, memory }
    }

    pub(crate) fn memory_is_at(&self, hundredths: u8) {
        self.memory.store(hundredths, Ordering::SeqCst);
    }

    pub(crate) fn config(&self, template: Template) -> Config {
        Config::of(template).staying().showing(&self.dir.path().join("shown")).unwrap()
    }

    /// A job that runs until it is let go by this name, and does that meanwhile.
    fn until(&self, name: &str, meanwhile: &str) -> Job {
        let file = self.dir.path().join("shown").join(name);
        let script = format!("echo there; until test -e \"$1\"; do {meanwhile}; done; echo done");
        let script = script.as_str();
        Job::new("sh").args(["-c", script, "sh", file.to_str().unwrap()])
    }

    pub(crate) fn let_go(&self, name: &str) {
        std::fs::write(self.dir.path().join("shown").join(name), "").unwrap();
    }

    /// A sandbox for such a job.
    pub(crate) fn executor(&self, name: &str) -> Arc<dyn Sandbox> {
        let config = self.config(Template::CodeExecutor);
        self.runtime.create(config, self.until(name, "sleep 0.02")).unwrap().into()
    }

    /// One that decisions wait for. It cannot start a process.
    pub(crate) fn policy(&self, name: &str) -> Arc<dyn Sandbox> {
        let config = self.config(Template::PolicySandbox);
        self.runtime.create(config, self.until(name, ":")).unwrap().into()
    }

    /// Waits until the tasks that have not ended are like that.
    pub(crate) fn wait_until(&self, is_so: impl Fn(&[Shown]) -> bool) -> Vec<Shown> {
        loop {
            let tasks = self.scheduler.tasks();
            if is_so(&tasks) {
                return tasks;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn is_over(&self) {
        assert_eq!(self.scheduler.tasks(), []);
        assert_eq!(*self.count.now.lock().unwrap(), 0);
    }
}

/// Starts a sandbox and waits for its end in a thread of its own.
pub(crate) fn run(
    sandbox: &Arc<dyn Sandbox>,
) -> std::thread::JoinHandle<Result<Outcome, RuntimeError>> {
    let sandbox = Arc::clone(sandbox);
    std::thread::spawn(move || sandbox.run(Arc::new(())))
}

impl Count {
    fn more(&self) {
        let mut now = self.now.lock().unwrap();
        *now += 1;
        self.most.fetch_max(*now, Ordering::SeqCst);
    }

    fn less(&self) {
        *self.now.lock().unwrap() -= 1;
    }
}

/// A runtime that counts.
struct Counting {
    runtime: Arc<dyn Runtime>,
    count: Arc<Count>,
}

struct Counted {
    sandbox: Box<dyn Sandbox>,
    count: Arc<Count>,
    works: Mutex<bool>,
}

impl Runtime for Counting {
    fn name(&self) -> &'static str {
        self.runtime.name()
    }

    fn ping(&self) -> Result<Health, RuntimeError> {
        self.runtime.ping()
    }

    fn volume(&self, store: Store) -> Result<Volume, RuntimeError> {
        self.runtime.volume(store)
    }

    fn create(&self, config: Config, job: Job) -> Result<Box<dyn Sandbox>, RuntimeError> {
        let sandbox = self.runtime.create(config, job)?;
        let count = Arc::clone(&self.count);
        Ok(Box::new(Counted { sandbox, count, works: Mutex::new(false) }))
    }

    fn made_of(&self) -> Result<Option<MadeOf>, RuntimeError> {
        self.runtime.made_of()
    }

    fn sweep(&self) -> Swept {
        self.runtime.sweep()
    }
}

impl Counted {
    fn works(&self, works: bool) {
        let mut now = self.works.lock().unwrap();
        match (*now, works) {
            (false, true) => self.count.more(),
            (true, false) => self.count.less(),
            _ => {}
        }
        *now = works;
    }
}

impl Sandbox for Counted {
    fn id(&self) -> &str {
        self.sandbox.id()
    }

    fn start(&self, watcher: Arc<dyn Watcher>) -> Result<(), RuntimeError> {
        self.works(true);
        self.sandbox.start(watcher).inspect_err(|_| self.works(false))
    }

    fn wait(&self) -> Result<Outcome, RuntimeError> {
        let outcome = self.sandbox.wait();
        self.works(false);
        outcome
    }

    fn stop(&self, grace: Duration) {
        self.sandbox.stop(grace);
    }

    fn kill(&self) {
        self.sandbox.kill();
    }

    fn pause(&self) -> Result<(), RuntimeError> {
        self.sandbox.pause()?;
        self.works(false);
        self.count.pauses.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn resume(&self) -> Result<(), RuntimeError> {
        if self.sandbox.inspect().paused {
            self.count.resumes.fetch_add(1, Ordering::SeqCst);
            self.works(true);
        }
        self.sandbox.resume()
    }

    fn inspect(&self) -> Inspection {
        self.sandbox.inspect()
    }

    fn logs(&self) -> (Captured, Captured) {
        self.sandbox.logs()
    }

    fn remove(&self) {
        self.sandbox.remove();
        self.works(false);
    }
}
