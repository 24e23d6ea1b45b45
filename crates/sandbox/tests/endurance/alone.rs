//! Two sandboxes at the same time do not see each other.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use fluffy_sandbox::{
    Config, Job, Native, Runtime as _, Sandbox, Store, Stream, Template, Watcher, Workspace,
};

use crate::counted::Place;
use crate::kernel::open;

/// Leaves something everywhere that somebody else could look for it, and stays.
const LEAVES: &str = r#"
import os, socket, sys, time, ctypes
token = sys.argv[1]
held = []
abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\0" + token)
abstract.listen()
tcp = socket.create_server(("127.0.0.1", 7777))
for path in ["/dev/shm/" + token, "/tmp/" + token, os.path.expanduser("~/" + token), token]:
    with open(path, "w") as file:
        file.write(token)
libc = ctypes.CDLL(None, use_errno=True)
libc.shmget(0x51515151, 4096, 0o1666)
print("there", flush=True)
sys.stdin.readline()
while True:
    time.sleep(1000)
"#;

/// Looks for all of that, and says what it found.
const LOOKS: &str = r#"
import os, socket, sys, ctypes, glob
token = sys.argv[1]
found = []
def attempt(name, action):
    try:
        action()
        found.append(name)
    except OSError:
        pass
attempt("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\0" + token))
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", 7777), 1))
for path in ["/dev/shm/" + token, "/tmp/" + token, os.path.expanduser("~/" + token), token]:
    if os.path.exists(path):
        found.append(path)
libc = ctypes.CDLL(None, use_errno=True)
if libc.shmget(0x51515151, 4096, 0) >= 0:
    found.append("shm")
me = str(os.getpid())
for path in glob.glob("/proc/[0-9]*/cmdline"):
    text = open(path, "rb").read()
    if b"LEAVES-" + token.encode() in text:
        found.append(path)
for pid in range(2, 400):
    if pid not in (os.getpid(), os.getppid()):
        attempt(f"kill {pid}", lambda: os.kill(pid, 0))
print(found)
"#;

struct Tells(Sender<()>);

impl Watcher for Tells {
    fn printed(&self, _stream: Stream, _bytes: &[u8]) {
        // Nobody listens after the first time.
        let _heard = self.0.send(());
    }
}

fn config(native: &Native, place: &Place) -> Config {
    let workspace = Workspace::overlay(&place.project(), native.volume(Store::Memory).unwrap());
    Config::of(Template::CodeExecutor).with_workspace(workspace).unwrap()
}

fn leaves(native: &Native, place: &Place) -> (Box<dyn Sandbox>, std::io::PipeWriter) {
    let (theirs, ours) = std::io::pipe().unwrap();
    let marked = format!("LEAVES-{}", place.token());
    let mut job = Job::new("/usr/bin/python3").args(["-c", LEAVES, place.token(), &marked]);
    job.stdin = fluffy_sandbox::Input::From(theirs.into());
    let sandbox = native.create(config(native, place), job).unwrap();
    let (tells, told) = channel();
    sandbox.start(Arc::new(Tells(tells))).unwrap();
    if told.recv().is_err() {
        panic!("it ended: {:?}", sandbox.wait());
    }
    (sandbox, ours)
}

fn looks(native: &Native, place: &Place) -> String {
    let job = Job::new("/usr/bin/python3").args(["-c", LOOKS, place.token()]);
    let outcome = native.run(config(native, place), job, Arc::new(())).unwrap();
    assert!(outcome.is_success(), "{}", String::from_utf8_lossy(&outcome.stderr.bytes));
    String::from_utf8_lossy(&outcome.stdout.bytes).into_owned()
}

#[test]
fn case_59_two_sandboxes_do_not_see_each_other() {
    let place = Place::new();
    let native = open(&place.state());
    let (sandbox, _stdin) = leaves(&native, &place);
    assert_eq!(looks(&native, &place), "[]\n");
    assert!(!place.processes().is_empty(), "the other was there all the time");
    sandbox.remove();
}

/// The same two programs in one sandbox find each other: what is looked for can be found.
#[test]
fn case_59_control_two_programs_in_one_sandbox_do_see_each_other() {
    let place = Place::new();
    let native = open(&place.state());
    let script = r#"python3 -c "$1" "$0" "LEAVES-$0" < <(sleep 100) | { read -r line; python3 -c "$2" "$0"; }; exit 0"#;
    let script = format!("({script}) & wait -n; exit 0");
    let job = Job::new("bash").args(["-c", &script, place.token(), LEAVES, LOOKS]);
    let mut limits = Template::CodeExecutor.limits();
    limits.duration = Some(fluffy_base::Span::from_ms(20_000));
    let job_config = config(&native, &place).narrowed_to(limits);
    let (tells, told) = channel();
    let sandbox = native.create(job_config, job).unwrap();
    sandbox.start(Arc::new(Tells(tells))).unwrap();
    told.recv().unwrap();
    let out = String::from_utf8_lossy(&sandbox.logs().0.bytes).into_owned();
    for part in ["'abstract'", "'tcp'", "'/dev/shm/", "'/tmp/", "'shm'", "/cmdline'", "'kill "] {
        assert!(out.contains(part), "{part}: {out}");
    }
}

#[test]
fn slow_case_59_fifty_sandboxes_at_once_do_not_see_each_other() {
    let place = Place::new();
    let native = open(&place.state());
    let held: Vec<_> = (0..10).map(|_| leaves(&native, &place)).collect();
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for _ in 0..10 {
                    assert_eq!(looks(&native, &place), "[]\n");
                }
            });
        }
    });
    drop(held);
    assert_eq!(place.processes(), Vec::<String>::new());
}
