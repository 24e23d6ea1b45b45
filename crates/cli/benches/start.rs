//! How long it takes until something is seen: client, bootstrap and kernel in their own processes, as a person starts them.
//!
//! `cargo bench --package fluffy-cli --bench start`. A start ends with the event `session.started`; the task's model says
//! one sentence.

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]
#![expect(clippy::indexing_slicing, reason = "every index is below its length")]
#![expect(
    clippy::disallowed_methods,
    reason = "the bench makes files, keeps time and starts programs"
)]
#![expect(clippy::print_stdout, reason = "a bench tells what it measured")]

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fluffy_testkit::Project;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fluffy");
const TRANSCRIPT: &str = "{\"v\":1,\"kind\":\"transcript\"}\n{\"text\":\"Nothing to do.\"}\n";
const COLD: usize = 30;
const WARM: usize = 60;

struct Scene {
    project: Project,
    home: tempfile::TempDir,
}

fn main() {
    let scene = Scene::new();
    // The first start of all makes keys and ledger.
    scene.task();
    let (mut cold, mut warm, mut version, mut bare) = (vec![], vec![], vec![], vec![]);
    for _ in 0..COLD {
        scene.stop();
        cold.push(scene.task());
    }
    for _ in 0..WARM {
        warm.push(scene.task());
        version.push(timed(&mut scene.fluffy(&["--version"])));
        bare.push(timed(Command::new("true").stdout(Stdio::null())));
    }
    let resident = scene.resident();
    scene.stop();
    report("first event, no kernel there", &mut cold);
    report("first event, with a kernel there", &mut warm);
    report("fluffy --version", &mut version);
    report("true", &mut bare);
    println!("{:<36} {:>6.1} MB", "resident, idle kernel", resident as f64 / 1024.0);
}

impl Scene {
    fn new() -> Self {
        let scene = Self { project: Project::new().unwrap(), home: tempfile::tempdir().unwrap() };
        std::fs::write(scene.home.path().join("transcript.jsonl"), TRANSCRIPT).unwrap();
        scene
    }

    fn fluffy(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .arg("-C")
            .arg(self.project.root())
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// From the start of a task to its first event; waits for its end.
    fn task(&self) -> Duration {
        let provider = format!("replay:{}", self.home.path().join("transcript.jsonl").display());
        let mut command = self.fluffy(&["run", "--json", "--provider", &provider, "say something"]);
        command.stdout(Stdio::piped());
        let start = Instant::now();
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let taken = start.elapsed();
        assert!(first.contains("session.started"), "{first}");
        lines.for_each(drop);
        child.wait().unwrap();
        taken
    }

    fn stop(&self) {
        assert!(self.fluffy(&["kernel", "stop"]).status().unwrap().success());
        // Its process ends after it said that it would.
        while self.kernel().is_some() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The kernel of this project.
    fn kernel(&self) -> Option<u32> {
        let root = self.project.root().display().to_string();
        std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            let is_kernel =
                words.contains(&b"serve".as_slice()) && !words.contains(&b"boot".as_slice());
            (is_kernel && words.contains(&root.as_bytes())).then_some(pid)
        })
    }

    /// What the idle kernel holds of the machine's memory, in KiB.
    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.kernel().unwrap()));
        let status = status.unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

fn timed(command: &mut Command) -> Duration {
    let start = Instant::now();
    assert!(command.status().unwrap().success());
    start.elapsed()
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort();
    let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1000.0;
    println!("{what:<36} {:>6.1} ms   fastest {:.1}   p90 {:.1}", at(50), at(0), at(90));
}
