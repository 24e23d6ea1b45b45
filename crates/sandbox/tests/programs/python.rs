//! Python, with pytest, SQLite and terminals of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::scene::{Scene, is_the_systems};

const SERVED: &str = r#"
import http.server
import multiprocessing
import socket
import subprocess
import sys
import threading
import urllib.request


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


def test_a_server_in_a_thread_answers():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with urllib.request.urlopen(f"http://localhost:{server.server_port}/") as answer:
            assert answer.read() == b"hello"
    finally:
        server.shutdown()
        thread.join()


def test_localhost_speaks_version_six():
    server = socket.create_server(("::1", 0), family=socket.AF_INET6)
    client = socket.create_connection(server.getsockname()[:2])
    server.accept()[0].sendall(b"hi")
    assert client.recv(2) == b"hi"


def test_processes_share_work():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(abs, [-1, -2, -3]) == [1, 2, 3]


def test_another_python_is_started(tmp_path):
    (tmp_path / "said").write_text(subprocess.check_output([sys.executable, "-c", "print(7)"], text=True))
    assert (tmp_path / "said").read_text() == "7\n"
"#;

/// A virtual environment that `scripts/test` makes, with pytest in it.
fn environment() -> PathBuf {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/py");
    match place.canonicalize() {
        Ok(place) => place,
        Err(error) => panic!("{}: {error}; `./scripts/test quick` makes it", place.display()),
    }
}

/// Where the interpreter of an environment has its own files.
fn base(environment: &Path) -> PathBuf {
    let python = environment.join("bin/python");
    let asked = Command::new(python).args(["-c", "import sys; print(sys.base_prefix)"]).output();
    PathBuf::from(String::from_utf8(asked.unwrap().stdout).unwrap().trim())
}

#[test]
fn pytest_passes_with_servers_processes_and_threads() {
    let environment = environment();
    let files = [("test_served.py", SERVED)];
    let mut scene = Scene::with_path(&files, vec![environment.join("bin")]).showing(&environment);
    let base = base(&environment);
    if !is_the_systems(&base) {
        scene = scene.showing(base);
    }
    let done = scene.works("pytest -q 2>&1");
    assert!(done.out.contains("4 passed"), "{}", done.out);
    assert!(done.changes().iter().any(|name| name.starts_with("__pycache__/")));
}

#[test]
fn sqlite_keeps_a_write_ahead_log() {
    let program = r#"
import sqlite3, subprocess, sys
one = sqlite3.connect("data.db")
assert one.execute("pragma journal_mode = wal").fetchone() == ("wal",)
one.execute("create table t (x)")
with one:
    one.executemany("insert into t values (?)", [(i,) for i in range(1000)])
count = "import sqlite3; print(sqlite3.connect('data.db').execute('select sum(x) from t').fetchone()[0])"
print(subprocess.check_output([sys.executable, "-c", count], text=True), end="")
"#;
    for scene in [Scene::new(&[("wal.py", program)]), Scene::new(&[("wal.py", program)]).on_disk()]
    {
        let done = scene.works("/usr/bin/python3 wal.py");
        assert_eq!(done.out, "499500\n");
        assert!(done.changes().contains(&"data.db".to_owned()));
    }
}

#[test]
fn a_terminal_can_be_made() {
    let program = r#"
import os, pty
pid, terminal = pty.fork()
if pid == 0:
    os.execvp("sh", ["sh", "-c", "test -t 0 && test -t 1 && stty size && tty && read line && echo got $line"])
os.write(terminal, b"something\n")
text = b""
while True:
    try:
        chunk = os.read(terminal, 1024)
    except OSError:
        break
    text += chunk
print(text.decode().replace("\r", ""), end="")
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;
    let done = Scene::new(&[("terminal.py", program)]).works("/usr/bin/python3 terminal.py");
    for part in ["/dev/pts/", "got something\n", "\n0\n"] {
        assert!(done.out.contains(part), "{:?}", done.out);
    }
}
