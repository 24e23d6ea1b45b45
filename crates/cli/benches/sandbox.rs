//! What a sandbox costs, beside the ways others have: made, `true` run in it, taken away.
//!
//! `cargo bench --package fluffy-cli --bench sandbox`
//!
//! All contenders take turns in one run, so that a busy machine is busy for all of them. What is not installed is
//! left out with a word; Docker and Podman take part if `scripts/engines` prepared them. Processor time is what
//! this process and its children used; an engine's daemon is none of them, so it has no such figure.

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]
#![expect(clippy::indexing_slicing, reason = "every index is below its length")]
#![expect(clippy::print_stdout, reason = "figures are what a bench is for")]
#![expect(clippy::disallowed_methods, reason = "time and processes are what is measured")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fluffy_sandbox::{
    Config, Job, Native, NativeOptions, Runtime as _, Store, Template, Workspace,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fluffy");
const ROUNDS: usize = 300;
const SLOW_ROUNDS: usize = 20;

struct Contender {
    name: &'static str,
    rounds: usize,
    run: Box<dyn Fn() -> bool>,
    walls: Vec<Duration>,
    cpu: Duration,
}

fn main() {
    // `cargo test --benches` asks for a list of tests; there are none.
    if std::env::args().any(|arg| arg == "--list" || arg == "--test") {
        return;
    }
    let project = tempfile::tempdir().unwrap();
    std::fs::write(project.path().join("file"), "text").unwrap();
    let mut contenders = contenders(project.path());
    contenders.retain(|contender| {
        let works = (contender.run)();
        if !works {
            println!("{}: not there, or does not work here", contender.name);
        }
        works
    });
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    let mut seed = 1;
    for round in 0..ROUNDS {
        shuffle(&mut order, &mut seed);
        for &place in &order {
            let contender = &mut contenders[place];
            if round >= contender.rounds {
                continue;
            }
            let (cpu, begin) = (processor_time(), Instant::now());
            assert!((contender.run)(), "{}", contender.name);
            contender.walls.push(begin.elapsed());
            contender.cpu += processor_time().saturating_sub(cpu);
        }
    }
    println!("{:<34} {:>9} {:>9} {:>9}", "", "p50 ms", "p99 ms", "CPU ms");
    for contender in &mut contenders {
        report(contender);
    }
    parallel(project.path());
    memory(project.path());
}

/// Another order in each round: namespaces are taken apart after their process has ended, which whoever comes
/// next has to wait for.
fn shuffle(order: &mut [usize], seed: &mut u64) {
    for place in (1..order.len()).rev() {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from(*seed >> 33).unwrap() % (place + 1);
        order.swap(place, other);
    }
}

fn contenders(project: &Path) -> Vec<Contender> {
    let quick =
        |name, run| Contender { name, rounds: ROUNDS, run, walls: vec![], cpu: Duration::ZERO };
    let slow = |name, run| Contender { rounds: SLOW_ROUNDS, ..quick(name, run) };
    let shell = |line: &str| -> Box<dyn Fn() -> bool> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Box::new(move || command(&words))
    };
    let at = project.display();
    let bwrap = format!(
        "bwrap --unshare-all --die-with-parent --new-session --clearenv --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --ro-bind /etc/alternatives /etc/alternatives --proc /proc --dev /dev --tmpfs /tmp --tmpfs /home --ro-bind {at} {at} --chdir {at} true"
    );
    let engine = "run --rm --network none --read-only --cap-drop ALL --security-opt no-new-privileges --memory 1g --pids-limit 100 --cpus 1 --user 1000:1000 localhost/fluffy-bench true";
    let podman = "--runtime runc run --rm --network none --read-only --cap-drop ALL --security-opt no-new-privileges --ulimit nofile=1024:1024 --ulimit nproc=1000:1000 --user 1000:1000 localhost/fluffy-bench true";
    vec![
        quick("fork and exec", shell("true")),
        quick(
            "unshare, all namespaces",
            shell(
                "unshare --user --map-current-user --mount --pid --fork --net --ipc --uts --cgroup true",
            ),
        ),
        quick("bubblewrap, like options", shell(&bwrap)),
        quick("fluffy, read-only project", ours(project, None)),
        quick("fluffy, overlay in memory", ours(project, Some(Store::Memory))),
        quick("fluffy, overlay on disk", ours(project, Some(Store::Disk))),
        slow("docker run", shell(&format!("docker {engine}"))),
        slow("podman run", shell(&format!("podman {podman}"))),
    ]
}

fn ours(project: &Path, store: Option<Store>) -> Box<dyn Fn() -> bool> {
    let (native, project) = (native(), project.to_owned());
    Box::new(move || {
        let job = Job::new("true");
        native.run(config(&native, &project, store), job, Arc::new(())).unwrap().is_success()
    })
}

fn native() -> Native {
    let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-sandboxes");
    let program = PathBuf::from(PROGRAM);
    Native::open(NativeOptions { program, state, path: vec![], env: vec![] }).unwrap()
}

fn config(native: &Native, project: &Path, store: Option<Store>) -> Config {
    let workspace = match store {
        None => Workspace::read_only(project),
        Some(store) => Workspace::overlay(project, native.volume(store).unwrap()),
    };
    Config::of(Template::CodeExecutor).with_workspace(workspace).unwrap()
}

fn command(words: &[String]) -> bool {
    let (program, args) = words.split_first().unwrap();
    let null = Stdio::null;
    let child =
        Command::new(program).args(args).stdin(null()).stdout(null()).stderr(null()).status();
    child.is_ok_and(|status| status.success())
}

/// Processor time of this process and of the children it has waited for.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    let own = Duration::from_nanos(stat.split_whitespace().next().unwrap().parse().unwrap());
    own + children_time()
}

#[expect(unsafe_code, reason = "the time of children has no safe wrapper")]
fn children_time() -> Duration {
    // SAFETY: zeros are a valid rusage, and the call only writes to it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let micros = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
    Duration::from_micros((micros(usage.ru_utime) + micros(usage.ru_stime)).unsigned_abs())
}

fn report(contender: &mut Contender) {
    contender.walls.sort();
    let count = contender.walls.len();
    let at = |share: usize| contender.walls[(count * share / 100).min(count - 1)];
    let ms = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1000.0);
    let cpu = contender.cpu / u32::try_from(count).unwrap();
    let cpu = if contender.rounds == ROUNDS { ms(cpu) } else { "-".to_owned() };
    println!("{:<34} {:>9} {:>9} {:>9}", contender.name, ms(at(50)), ms(at(99)), cpu);
}

/// How many sandboxes a second eight at a time make.
fn parallel(project: &Path) {
    let native = native();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let config = config(&native, project, Some(Store::Memory));
                    native.run(config, Job::new("true"), Arc::new(())).unwrap();
                }
            });
        }
    });
    println!("eight at a time: {:.0} sandboxes/s", 400.0 / begin.elapsed().as_secs_f64());
}

/// What a sandbox that waits takes of memory, beside the command itself.
fn memory(project: &Path) {
    let native = native();
    let free = || {
        let info = std::fs::read_to_string("/proc/meminfo").unwrap();
        let line = info.lines().find(|line| line.starts_with("MemAvailable:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<i64>().unwrap()
    };
    let before = free();
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let config = config(&native, project, Some(Store::Memory));
            let sandbox = native.create(config, Job::new("sleep").args(["60"])).unwrap();
            sandbox.start(Arc::new(())).unwrap();
            sandbox
        })
        .collect();
    let used = before - free();
    println!("memory of a waiting sandbox, with its `sleep`: {} KiB", used / 50);
    for sandbox in &waiting {
        sandbox.remove();
    }
}
