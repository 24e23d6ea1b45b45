//! Whatever step of the set-up fails, the job does not run and nothing is left.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fluffy_base::{ByteSize, Span};
use fluffy_sandbox::{
    Changes, Config, End, Job, Limit, Limits, Native, NativeOptions, Runtime as _, RuntimeError,
    Store, Stream, Template, Watcher, Workspace,
};
use fluffy_testkit::mounts::{is_apart, mount_small};

use crate::counted::{Counted, Place};
use crate::kernel::open;

/// Whether a job printed anything.
#[derive(Default)]
struct Ran(AtomicBool);

impl Watcher for Ran {
    fn printed(&self, _stream: Stream, _bytes: &[u8]) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a job that must not come to run, and says why it did not.
#[track_caller]
fn fails(native: &Native, config: Config, place: &Place) -> RuntimeError {
    let job = Job::new("sh").args(["-c", "echo ran", place.token()]);
    fails_with(native, config, job, place)
}

#[track_caller]
fn fails_with(native: &Native, config: Config, job: Job, place: &Place) -> RuntimeError {
    let ran = Arc::new(Ran::default());
    let watcher: Arc<dyn Watcher> = Arc::<Ran>::clone(&ran);
    let error = match native.run(config, job, watcher) {
        Ok(outcome) => panic!("it ran: {outcome:?}"),
        Err(error) => error,
    };
    assert!(!ran.0.load(Ordering::Relaxed), "the job printed something");
    assert_eq!(place.processes(), Vec::<String>::new());
    error
}

fn executor() -> Config {
    Config::of(Template::CodeExecutor)
}

fn over(place: &Place, native: &Native, store: Store) -> Config {
    let workspace = Workspace::overlay(&place.project(), native.volume(store).unwrap());
    executor().with_workspace(workspace).unwrap()
}

/// Every directory that a volume on disk has.
fn volumes(place: &Place) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for instance in place.files() {
        let entries = fs::read_dir(instance).unwrap().flatten().map(|entry| entry.path());
        found.extend(entries.filter(|path| path.is_dir()));
    }
    found
}

#[test]
fn case_57_a_step_that_fails_is_named_and_nothing_is_left() {
    let place = Place::new();
    let native = open(&place.state());
    native.run(executor(), Job::new("true"), Arc::new(())).unwrap();
    let instances: Vec<String> =
        place.files().iter().map(|file| file.rsplit('/').next().unwrap().to_owned()).collect();
    let before = Counted::now(&instances);
    let lacking = place.path().join("lacking");
    let workspace = |layers: Vec<PathBuf>, at: &Path| {
        let changes = Changes::Overlay(native.volume(Store::Memory).unwrap());
        executor().with_workspace(Workspace { at: at.to_owned(), layers, changes }).unwrap()
    };
    let project = place.project();
    let mut steps = Vec::new();
    let mut named = |error: RuntimeError| match error {
        RuntimeError::Setup(failure) => steps.push(failure.step),
        other => panic!("it is not a step of the set-up: {other:?}"),
    };
    named(fails(&native, workspace(vec![lacking.clone()], &project), &place));
    named(fails(&native, workspace(vec![project.join("file")], &project), &place));
    named(fails(&native, workspace(vec![], &project), &place));
    named(fails(&native, executor().showing(&lacking).unwrap(), &place));
    let long = PathBuf::from(format!("/{}", "x".repeat(300)));
    named(fails(&native, executor().with_home(&long).unwrap(), &place));
    let nested = Path::new("/usr/bin/true/below");
    named(fails(&native, executor().with_home(nested).unwrap(), &place));
    let gone = over(&place, &native, Store::Disk);
    volumes(&place).iter().for_each(|volume| fs::remove_dir_all(volume).unwrap());
    drop(native.run(gone, Job::new("true"), Arc::new(())).unwrap_err());
    for name in ["upper", "work"] {
        let broken = over(&place, &native, Store::Disk);
        for volume in volumes(&place) {
            fs::remove_dir(volume.join(name)).unwrap();
            fs::write(volume.join(name), "a file").unwrap();
        }
        drop(fails(&native, broken, &place));
    }
    let mut tiny = Template::CodeExecutor.limits();
    tiny.disk = fluffy_base::ByteSize::from_bytes(0);
    tiny.files = 0;
    // No space at all is no limit to a file system in memory; the job may run, and must be confined.
    drop(native.run(executor().narrowed_to(tiny), Job::new("true"), Arc::new(())));
    assert_eq!(Counted::now(&instances), before);
    assert!(steps.iter().all(|step| !step.is_empty()), "{steps:?}");
    drop(native);
    assert_eq!(place.files(), Vec::<String>::new());
}

#[test]
fn case_57_commands_that_cannot_be_are_refused() {
    let place = Place::new();
    let native = open(&place.state());
    let huge = "x".repeat(200_000);
    let many: Vec<String> = (0..100).map(|_| "x".repeat(100_000)).collect();
    let mut elsewhere = Job::new("true");
    elsewhere.cwd = Some("/lacking".into());
    let mut relative = Job::new("true");
    relative.cwd = Some("lacking".into());
    let jobs = [
        Job::new(""),
        Job::new("lacking"),
        Job::new("/lacking"),
        Job::new("/"),
        Job::new("/dev/null"),
        Job::new("/proc/1/exe"),
        Job::new("/etc/passwd"),
        Job::new("a\0b"),
        Job::new("true").args(["a\0b"]),
        Job::new("true").env("A", "a\0b"),
        Job::new("true").args([&huge]),
        Job::new("true").args(&many),
        elsewhere,
        relative,
    ];
    for job in jobs {
        let named = format!("{:.60}", format!("{:?} {:?}", job.program, job.cwd));
        let error = fails_with(&native, executor(), job, &place);
        let right = matches!(error, RuntimeError::Program { .. } | RuntimeError::Setup(_));
        assert!(right, "{named}: {error:?}");
    }
}

#[test]
fn case_57_a_driver_without_its_program_or_directory_does_not_open() {
    let place = Place::new();
    let options = |program: &str, state: PathBuf| NativeOptions {
        program: program.into(),
        state,
        path: Vec::new(),
        env: Vec::new(),
    };
    let tester = env!("CARGO_BIN_EXE_sandbox-tester");
    let file = place.project().join("file");
    for state in [file.clone(), file.join("below"), "/proc/state".into(), "/dev/null".into()] {
        let opened = Native::open(options(tester, state.clone()));
        assert!(opened.is_err(), "{}", state.display());
    }
    // A program that is something else runs no job.
    for program in ["/lacking", "/bin/true", "/bin/false", "/bin/cat", "/dev/null"] {
        let Ok(native) = Native::open(options(program, place.state())) else { continue };
        fails(&native, executor(), &place);
        assert!(native.ping().is_err(), "{program}");
    }
    assert_eq!(place.files(), Vec::<String>::new());
}

/// A pipe has an end when nobody can write to it any more; a job may see to it that somebody always could.
#[test]
fn a_job_that_sends_its_own_output_away_holds_nobody_up() {
    let place = Place::new();
    let native = open(&place.state());
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let program = "import array, socket, sys\n\
                   away = socket.socket(fileno=1)\n\
                   fds = array.array('i', [2]).tobytes()\n\
                   away.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])\n\
                   print('last words', file=sys.stderr)\n\
                   away.detach()";
    let mut job = Job::new("/usr/bin/python3").args(["-c", program]);
    job.stdout = fluffy_sandbox::Output::To(theirs.into());
    let outcome = native.run(executor(), job, Arc::new(())).unwrap();
    assert!(outcome.is_success(), "{outcome:?}");
    assert_eq!(outcome.stderr.bytes, b"last words\n");
    // Nobody has read it until now, so the pipe was open all the time.
    drop(ours);
}

/// Whoever is told that there is something to read may find that the job was quicker.
#[test]
fn a_job_that_is_quicker_to_read_its_own_output_ends_by_its_deadline() {
    let place = Place::new();
    let native = open(&place.state());
    let program = "import os, threading, time\n\
                   mine = os.open('/proc/self/fd/1', os.O_RDONLY | os.O_NONBLOCK)\n\
                   def steal():\n\
                   \x20   while True:\n\
                   \x20       try: os.read(mine, 100)\n\
                   \x20       except BlockingIOError: pass\n\
                   threading.Thread(target=steal, daemon=True).start()\n\
                   for _ in range(100):\n\
                   \x20   os.write(1, b'x')\n\
                   \x20   time.sleep(0.001)\n\
                   time.sleep(1000)";
    for _ in 0..5 {
        let mut limits = Template::CodeExecutor.limits();
        limits.duration = Some(fluffy_base::Span::from_ms(800));
        let job = Job::new("/usr/bin/python3").args(["-c", program]);
        let outcome = native.run(executor().narrowed_to(limits), job, Arc::new(())).unwrap();
        let expected = fluffy_sandbox::End::Limit(fluffy_sandbox::Limit::Duration);
        assert_eq!(outcome.end, expected, "{outcome:?}");
    }
}

/// Where descriptors run out, jobs fail and nothing is left; with enough of them they run.
#[test]
fn case_57_without_descriptors_no_job_runs() {
    const LIMIT: &str = "FLUFFY_ENDURANCE_DESCRIPTORS";
    if let Ok(limit) = std::env::var(LIMIT) {
        return run_with_few(limit.parse().unwrap());
    }
    let mut ran = 0;
    for limit in 4..40_u64 {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "faults::case_57_without_descriptors_no_job_runs", "--nocapture"])
            .env(LIMIT, limit.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{limit}: {text} {}",
            String::from_utf8_lossy(&output.stderr)
        );
        ran += usize::from(text.contains("a job ran"));
    }
    assert!(ran > 0 && ran < 36, "{ran}");
}

fn run_with_few(limit: u64) {
    let place = Place::new();
    let native = open(&place.state());
    let config = over(&place, &native, Store::Disk);
    let own = u64::try_from(fs::read_dir("/proc/self/fd").unwrap().count()).unwrap();
    let few = rustix::process::Rlimit { current: Some(own + limit - 4), maximum: Some(20_000) };
    let before = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    rustix::process::setrlimit(rustix::process::Resource::Nofile, few).unwrap();
    let job = Job::new("sh").args(["-c", "echo ran", place.token()]);
    let outcome = native.run(config, job, Arc::new(()));
    rustix::process::setrlimit(rustix::process::Resource::Nofile, before).unwrap();
    if let Ok(outcome) = outcome {
        assert!(outcome.is_success() && outcome.stdout.bytes == b"ran\n", "{outcome:?}");
        println!("a job ran");
    }
    assert_eq!(place.processes(), Vec::<String>::new());
    drop(native);
    assert_eq!(place.files(), Vec::<String>::new());
}

/// Where processes run out, jobs fail and nothing is left.
#[test]
fn case_57_without_processes_no_job_runs() {
    const LIMIT: &str = "FLUFFY_ENDURANCE_PROCESSES";
    if std::env::var_os(LIMIT).is_some() {
        let place = Place::new();
        let native = open(&place.state());
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(rustix::process::Resource::Nproc, none).unwrap();
        fails(&native, executor(), &place);
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // Root is above this limit, so somebody else tries; who must be able to read this program.
    let dir = tempfile::Builder::new().prefix("fluffy-faults-").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = dir.path().join("endurance");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let output = Command::new(copy)
        .args(["--exact", "faults::case_57_without_processes_no_job_runs", "--nocapture"])
        .env(LIMIT, "1")
        .current_dir("/")
        .uid(65_533)
        .gid(65_533)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {text}", String::from_utf8_lossy(&output.stdout));
}

/// Nobody can weigh files without a name, which are in no directory: where little room is left for everybody, their job
/// ends.
#[test]
fn sbx_5_files_without_a_name_do_not_take_the_last_room() {
    let name = "faults::sbx_5_files_without_a_name_do_not_take_the_last_room";
    if !rustix::process::geteuid().is_root() || !is_apart(name) {
        return;
    }
    let place = Place::new();
    fs::create_dir_all(place.state()).unwrap();
    mount_small(&place.state(), 0);
    let native = open(&place.state());
    let limits = Limits {
        disk: ByteSize::from_bytes(8 << 20),
        duration: Some(Span::from_ms(60_000)),
        ..Template::CodeExecutor.limits()
    };
    let run = |script: &str| {
        let workspace = Workspace::overlay(&place.project(), native.volume(Store::Disk).unwrap());
        let config = executor().narrowed_to(limits).with_workspace(workspace).unwrap();
        native
            .run(config, Job::new("bash").args(["-c", script, place.token()]), Arc::new(()))
            .unwrap()
    };
    let taken = |each: &str| {
        format!(
            "set -e; exec 3>a 4>b 5>c; rm a b c
             for to in 3 4 5; do head -c {each} /dev/zero >&$to; done
             [ ! -e stay ] || sleep 60"
        )
    };
    let little = run(&taken("2M"));
    assert_eq!(little.end, End::Exited(0), "{little:?}");
    let much = run(&format!("touch stay; {}", taken("6M")));
    assert_eq!(much.end, End::Limit(Limit::Disk), "{much:?}");
}
