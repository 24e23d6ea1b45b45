//! Real programs under the filters, as they are installed: a filter that cannot run them is worth nothing.
//!
//! A program that the machine does not have is passed over.
#![expect(unsafe_code, reason = "the filter is installed between fork and exec")]

use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;

use tempfile::TempDir;

use super::*;

/// A command that will run under the filter of a profile.
fn under(profile: Profile, program: impl AsRef<OsStr>) -> Command {
    let filter = compile(profile).unwrap();
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    // SAFETY: the two system calls of the installation are all that happens between fork and exec.
    unsafe {
        command.pre_exec(move || install(&filter).map_err(|_| std::io::ErrorKind::Other.into()))
    };
    command
}

fn missing(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    found.map_or(true, |output| !output.status.success())
}

#[track_caller]
fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{status}\n{out}\n{err}");
    out.into_owned()
}

#[track_caller]
fn shell(script: &str, here: &Path) -> String {
    succeed(under(Profile::Standard, "sh").args(["-euc", script]).current_dir(here))
}

/// The interpreter itself, for there may be a script of that name that finds it.
fn python() -> Option<PathBuf> {
    if missing("python3") {
        return None;
    }
    let found = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    Some(PathBuf::from(String::from_utf8(found.unwrap().stdout).unwrap().trim()))
}

#[track_caller]
fn python_prints(profile: Profile, script: &str, expected: &str) {
    let here = TempDir::new().unwrap();
    if let Some(python) = python() {
        let args = ["-I", "-c", script];
        let printed = succeed(under(profile, python).args(args).current_dir(here.path()));
        assert_eq!(printed.trim(), expected);
    }
}

#[test]
fn a_shell_runs_pipes_and_jobs() {
    let here = TempDir::new().unwrap();
    let printed = shell(
        "mkdir a; cd a; echo one >b; ln b c; ln -s b d; chmod 600 b; touch -d @0 b; mv c e; rm e
         (echo two; cat b) | sort | tr '\\n' ' '; sleep 0 & wait; kill -0 $$; rm -r ../a",
        here.path(),
    );
    assert_eq!(printed, "one two ");
}

#[test]
fn make_runs_jobs_and_fifos_can_be_made() {
    if missing("make") || missing("gcc") {
        return;
    }
    let here = TempDir::new().unwrap();
    let rules = "all: a b c\n%: %.c\n\t+@$(MAKE) -s -f inner OF=$@\n";
    fs::write(here.path().join("Makefile"), rules).unwrap();
    fs::write(here.path().join("inner"), "all:\n\t@gcc -O1 -o $(OF) $(OF).c\n").unwrap();
    for name in ["a", "b", "c"] {
        let source = format!("#include <stdio.h>\nint main(void) {{ puts(\"{name}\"); }}\n");
        fs::write(here.path().join(format!("{name}.c")), source).unwrap();
    }
    let script = "make -s -j4; ./a; ./b; ./c; mkfifo f; test -p f; (echo through >f & cat f)";
    assert_eq!(shell(script, here.path()), "a\nb\nc\nthrough\n");
}

#[test]
fn git_makes_a_commit() {
    if missing("git") {
        return;
    }
    let here = TempDir::new().unwrap();
    let script = "export HOME=$PWD GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a
         export GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_NOSYSTEM=1
         git init -q project; cd project; echo one >file; git add .; git commit -qm 'One'
         git checkout -qb other; echo two >file; git commit -qam 'Two'; git gc -q; git log --format=%s";
    assert_eq!(shell(script, here.path()), "Two\nOne\n");
}

#[test]
fn cargo_builds_and_tests_a_crate() {
    if missing("cargo") {
        return;
    }
    let here = TempDir::new().unwrap();
    let source = "fn main() { println!(\"built\") }
        #[test] fn listens() { std::net::TcpListener::bind(\"127.0.0.1:0\").unwrap(); }";
    fs::create_dir(here.path().join("src")).unwrap();
    fs::write(here.path().join("src/main.rs"), source).unwrap();
    let manifest = "[package]\nname = \"hello\"\nedition = \"2024\"\n[workspace]\n";
    fs::write(here.path().join("Cargo.toml"), manifest).unwrap();
    let script = "export CARGO_TARGET_DIR=$PWD/target; cargo -q run --offline
         cargo -q test --offline >log 2>&1 || { cat log; exit 1; }";
    assert_eq!(shell(script, here.path()), "built\n");
}

#[test]
fn node_runs_workers_children_and_servers() {
    if missing("node") {
        return;
    }
    let script = "const { Worker } = require('worker_threads'), net = require('net');
        const { execSync } = require('child_process'), fs = require('fs');
        new Worker('require(\"worker_threads\").parentPort.postMessage(1)', { eval: true })
          .on('message', () => {
            const child = execSync('echo child').toString().trim();
            const server = net.createServer(peer => peer.end('served')).listen(0, '127.0.0.1', () =>
              net.connect(server.address().port, '127.0.0.1').on('data', data => {
                console.log(child, data.toString(), fs.readdirSync('/').length > 0);
                server.close();
              }));
          });";
    let printed = succeed(under(Profile::Standard, "node").args(["-e", script]));
    assert_eq!(printed, "child served true\n");
}

#[test]
fn java_starts() {
    if missing("java") {
        return;
    }
    succeed(under(Profile::Standard, "java").arg("--version"));
}

#[test]
fn python_runs_threads_children_and_event_loops() {
    let script = "
import asyncio, multiprocessing, subprocess, threading, os, socket
seen = []
threads = [threading.Thread(target=seen.append, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
def square(n): return n * n
with multiprocessing.get_context('fork').Pool(2) as pool: squares = pool.map(square, range(4))
async def served():
    async def answer(reader, writer):
        writer.write(await reader.readline()); await writer.drain(); writer.close()
    server = await asyncio.start_server(answer, '127.0.0.1', 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b'hello\\n'); line = await reader.readline()
    child = await asyncio.create_subprocess_exec('cat', '/dev/null'); await child.wait()
    return line.decode().strip()
print(sorted(seen), squares, asyncio.run(served()), subprocess.check_output(['echo', 'child']).decode().strip())
print(os.memfd_create('m') > 2)";
    python_prints(Profile::Standard, script, "[0, 1, 2, 3] [0, 1, 4, 9] hello child\nTrue");
}

#[test]
fn a_program_has_a_terminal_of_its_own() {
    let script = "
import pty, os, sys
status = pty.spawn(['sh', '-c', 'test -t 0 && tty >/dev/null && echo terminal'])
sys.exit(status)";
    python_prints(Profile::Standard, script, "terminal");
}

#[test]
fn sqlite_writes_ahead() {
    let script = "
import sqlite3, os
one = sqlite3.connect('db'); print(one.execute('pragma journal_mode=wal').fetchone()[0])
one.execute('create table t(a)'); one.execute('insert into t values (1)'); one.commit()
print(sqlite3.connect('db').execute('select a from t').fetchone()[0], os.path.exists('db-wal'))";
    python_prints(Profile::Standard, script, "wal\n1 True");
}

#[test]
fn strict_runs_an_interpreter() {
    python_prints(Profile::Strict, "print(sum(range(10)))", "45");
    let script = "
import threading, subprocess, socket
t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()
def refused(what):
    try: what()
    except PermissionError: return True
print(refused(lambda: subprocess.run(['true'])), refused(socket.socket))
a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))";
    python_prints(Profile::Strict, script, "thread\nTrue True\nb'x'");
}

#[test]
fn strict_runs_static_and_dynamic_programs() {
    if missing("gcc") {
        return;
    }
    let here = TempDir::new().unwrap();
    let source = "#include <stdio.h>\n#include <pthread.h>\n#include <signal.h>\n#include <errno.h>
        #include <unistd.h>\n#include <sys/stat.h>
        static void *run(void *x) { return x; }\nstatic volatile int caught;
        static void on(int s) { caught = s; }
        int main(void) { pthread_t t; void *r; int n = 7;
          if (pthread_create(&t, 0, run, &n) || pthread_join(t, &r) || r != &n) return 1;
          signal(SIGUSR1, on); raise(SIGUSR1); if (caught != SIGUSR1) return 2;
          if (fork() != -1 || errno != EPERM) return 3;
          if (mkdir(\"x\", 0700) != -1 || errno != EPERM) return 4;
          puts(\"done\"); return 0; }";
    fs::write(here.path().join("p.c"), source).unwrap();
    for how in ["-pthread", "-static"] {
        let mut gcc = Command::new("gcc");
        succeed(gcc.args([how, "-pthread", "-o", "p", "p.c"]).current_dir(here.path()));
        assert_eq!(succeed(&mut under(Profile::Strict, here.path().join("p"))), "done\n");
    }
}

/// What a guest does. Run under `strict` by the test below.
#[test]
#[ignore = "runs under the filter that another test installs"]
fn a_guest_computes() {
    let (send, receive) = mpsc::channel();
    for number in 0..4 {
        let send = send.clone();
        thread::spawn(move || send.send(number * number));
    }
    drop(send);
    assert_eq!(receive.iter().sum::<u32>(), 14);
    let (mut one, mut two) = UnixStream::pair().unwrap();
    one.write_all(b"frame").unwrap();
    drop(one);
    let mut text = String::new();
    two.read_to_string(&mut text).unwrap();
    assert_eq!(text, "frame");
    assert!(fs::read_to_string("/proc/self/status").unwrap().contains("Seccomp:\t2"));
    let refused = |result: std::io::Result<()>| {
        assert_eq!(result.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
    };
    refused(Command::new("true").status().map(drop));
    refused(std::net::TcpListener::bind("127.0.0.1:0").map(drop));
    refused(fs::create_dir("made"));
}

#[test]
fn strict_runs_a_guest_with_threads() {
    let itself = std::env::current_exe().unwrap();
    let test = "native::seccomp::tests::programs::a_guest_computes";
    let here = TempDir::new().unwrap();
    let mut guest = under(Profile::Strict, itself);
    let printed = succeed(guest.args([test, "--exact", "--ignored"]).current_dir(here.path()));
    assert!(printed.contains("1 passed"), "{printed}");
}
