//! A directory with all that a bootstrap touches, and a report that acts on what it is told.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fluffy_boot::{Boot, Machine, Runtime, Trouble, run_on};

/// The program that plays the kernel.
const TESTER: &str = env!("CARGO_BIN_EXE_boot-tester");

/// A directory of its own, gone with it.
pub(crate) struct Scene {
    pub(crate) dir: PathBuf,
}

/// What came of a bootstrap.
pub(crate) struct Outcome {
    pub(crate) code: u8,
    pub(crate) lines: Vec<String>,
}

impl Outcome {
    /// The last line, as trouble.
    #[track_caller]
    pub(crate) fn trouble(&self) -> Trouble {
        let trouble = Trouble::from_line(self.lines.last().unwrap()).unwrap();
        assert_eq!(trouble.code, self.code);
        trouble
    }
}

impl Scene {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let name = format!("fluffy-boot-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(dir.join("machine")).unwrap();
        fs::write(dir.join("lives"), "").unwrap();
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// A file of the made-up machine.
    pub(crate) fn setting(&self, file: &str, text: &str) -> &Self {
        let file = self.path("machine").join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        self
    }

    /// A machine that forbids nothing it was not told to, whose clock moves by a second at every reading.
    pub(crate) fn machine(&self) -> Machine {
        let now = Cell::new(0);
        self.machine_by(move || {
            now.set(now.get() + 1);
            Duration::from_secs(now.get())
        })
    }

    pub(crate) fn machine_by(&self, clock: impl Fn() -> Duration + 'static) -> Machine {
        Machine {
            root: self.path("machine"),
            path: OsString::from("/usr/local/bin:/usr/bin"),
            system: "linux".to_owned(),
            user: 1000,
            clock: Box::new(clock),
        }
    }

    /// A kernel that lives these lives, one after the other, the last one again and again.
    pub(crate) fn boot(&self, lives: &[&str]) -> Boot {
        let words = ["live".into(), self.path("socket").into(), self.path("lives").into()];
        Boot {
            program: TESTER.into(),
            arguments: words.into_iter().chain(lives.iter().map(OsString::from)).collect(),
            socket: self.path("socket"),
            log: self.path("log"),
            patience: Duration::from_secs(3600),
            runtime: Runtime::Native,
        }
    }

    /// Runs it; `on_ready` is called with the number of times that a kernel was ready.
    pub(crate) fn run_by(
        &self,
        machine: &Machine,
        boot: &Boot,
        on_ready: impl FnMut(usize),
    ) -> Outcome {
        let mut report = Report { lines: Vec::new(), ready: 0, on_ready };
        let code = run_on(machine, boot, &mut report);
        for process in self.processes() {
            let process = Path::new("/proc").join(process);
            assert!(!process.exists(), "{} was left behind", process.display());
        }
        Outcome { code, lines: report.lines }
    }

    /// Runs these lives, and tells each kernel that is ready what comes next in `messages`.
    pub(crate) fn run(&self, lives: &[&str], messages: &[&str]) -> Outcome {
        self.run_by(&self.machine(), &self.boot(lives), |ready| {
            say(&self.path("socket"), messages.get(ready - 1).unwrap());
        })
    }

    /// A bootstrap in a process of its own, on this machine; its report is its output.
    pub(crate) fn start(&self, lives: &[&str]) -> Child {
        let mut command = Command::new(TESTER);
        command.arg("boot").arg("--socket").arg(self.path("socket"));
        command.arg("--log").arg(self.path("log")).arg("--").arg(TESTER);
        command.args(self.boot(lives).arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Process and group of every life so far.
    pub(crate) fn lives(&self) -> Vec<(String, String)> {
        let lives = fs::read_to_string(self.path("lives")).unwrap_or_default();
        let words = lives.lines().map(|life| life.split_once(' ').unwrap());
        words.map(|(process, group)| (process.to_owned(), group.to_owned())).collect()
    }

    fn processes(&self) -> Vec<String> {
        self.lives().into_iter().map(|(process, _)| process).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // A kernel whose bootstrap was killed may still be ending, and leave something meanwhile.
        let _ = (0..100).find(|_| fs::remove_dir_all(&self.dir).is_ok());
    }
}

/// Sends one message to whoever listens there.
#[track_caller]
pub(crate) fn say(socket: &Path, message: &str) -> UnixStream {
    let mut stream = UnixStream::connect(socket).unwrap();
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    stream.write_all(&[&length, message.as_bytes()].concat()).unwrap();
    stream
}

/// Acts when a kernel is ready, and then cannot be written any more.
struct Report<F> {
    lines: Vec<String>,
    ready: usize,
    on_ready: F,
}

impl<F: FnMut(usize)> Write for Report<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = std::str::from_utf8(bytes).unwrap().strip_suffix('\n').unwrap();
        self.lines.push(line.to_owned());
        if line.starts_with(r#"{"ready":true,"#) {
            self.ready += 1;
            (self.on_ready)(self.ready);
        }
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
