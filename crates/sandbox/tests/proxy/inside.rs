//! Ordinary clients inside a sandbox, which find the proxy by the variables that every sandbox sets.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use fluffy_sandbox::proxy::{AllowList, Decision, Record, Refusal};
use fluffy_sandbox::{
    Config, Job, Native, NativeOptions, Network, Outcome, Runtime as _, Store, Template, Watcher,
    Workspace,
};
use tempfile::TempDir;

use crate::packages;
use crate::scene::Host;

#[derive(Default)]
struct Heard(Mutex<Vec<Record>>);

impl Watcher for Heard {
    fn proxied(&self, record: &Record) {
        self.0.lock().unwrap().push(record.clone());
    }
}

/// A sandbox with a project, and a host on this machine's loopback.
struct Inside {
    host: Host,
    project: TempDir,
}

impl Inside {
    fn new() -> Self {
        let project = tempfile::Builder::new().prefix("fluffy-inside-").tempdir_in("/var/tmp");
        Self { host: packages::host(), project: project.unwrap() }
    }

    /// Runs a shell line in which `$HOST` is the host; what it leaves is thrown away.
    fn run(&self, allowed: &[String], line: &str) -> (Outcome, Vec<Record>) {
        let home = PathBuf::from(std::env::var_os("HOME").unwrap());
        let native = Native::open(NativeOptions {
            program: env!("CARGO_BIN_EXE_sandbox-tester").into(),
            state: Path::new(env!("CARGO_TARGET_TMPDIR")).join("inside-sandboxes"),
            path: std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect(),
            env: [("PYENV_ROOT", ".pyenv"), ("RUSTUP_HOME", ".rustup")]
                .map(|(name, part)| (OsString::from(name), home.join(part).into_os_string()))
                .into(),
        });
        let native = native.unwrap();
        let volume = native.volume(Store::Memory).unwrap();
        let allowed = Network::Restricted(Arc::new(AllowList::parse(allowed).unwrap()));
        let mut config = Config::of(Template::IntegrationTest)
            .with_network(allowed)
            .and_then(|config| config.with_home(&home))
            .and_then(|config| {
                config.with_workspace(Workspace::overlay(self.project.path(), volume))
            })
            .unwrap();
        for part in [".cargo/bin", ".rustup", ".pyenv", ".nvm"] {
            if home.join(part).is_dir() {
                config = config.showing(&home.join(part)).unwrap();
            }
        }
        let heard = Arc::new(Heard::default());
        let job = Job::new("sh")
            .args(["-c", line])
            .env("HOST", self.host.address.to_string())
            .env("CARGO_HOME", self.project.path().join("cargo"));
        let outcome = native.run(config, job, Arc::<Heard>::clone(&heard)).unwrap();
        let records = heard.0.lock().unwrap().clone();
        (outcome, records)
    }

    /// The line succeeds where the host is listed; where another is, it fails, is recorded, and does not arrive.
    #[track_caller]
    fn check(&self, line: &str) {
        let said = |outcome: &Outcome| {
            let (out, err) = (&outcome.stdout.bytes, &outcome.stderr.bytes);
            format!("{}\n{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
        };
        let (refused, records) = self.run(&["example.org".to_owned()], line);
        assert!(!refused.is_success(), "{}", said(&refused));
        assert!(!records.is_empty());
        let unlisted = |record: &Record| record.decision == Decision::Refused(Refusal::Unlisted);
        assert!(records.iter().all(unlisted), "{records:?}");
        assert_eq!(self.host.seen(), [""; 0]);
        let (served, records) = self.run(&[self.host.address.to_string()], line);
        assert!(served.is_success(), "{}", said(&served));
        assert!(records.iter().any(|record| record.decision == Decision::Passed), "{records:?}");
        assert!(!self.host.seen().is_empty());
    }
}

#[test]
fn curl_inside_a_sandbox_reaches_listed_hosts_only() {
    Inside::new().check("curl -sS --fail \"http://$HOST/simple/tinypkg/\" | grep -q tinypkg");
}

#[test]
fn curl_inside_a_sandbox_speaks_over_the_unix_socket_as_well() {
    // As a guest without internet sockets would.
    Inside::new().check(
        "unset http_proxy HTTP_PROXY;
         python3 - <<'END'
import os, socket
proxy = socket.socket(socket.AF_UNIX)
proxy.connect(os.environ['FLUFFY_PROXY'])
host = os.environ['HOST']
proxy.sendall(f'GET http://{host}/simple/tinypkg/ HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n'.encode())
answer = b''
while piece := proxy.recv(65536):
    answer += piece
raise SystemExit(0 if b' 200 ' in answer.split(b'\\r\\n')[0] and b'tinypkg' in answer else 1)
END",
    );
}

#[test]
fn pip_inside_a_sandbox_installs_from_listed_hosts_only() {
    // A version manager's shim would note the installation in the home directory, which is read-only.
    Inside::new().check(
        "$(pyenv which python3 2>/dev/null || command -v python3) -m pip install --quiet --no-cache-dir --retries 0 --disable-pip-version-check \
         --index-url \"http://$HOST/simple/\" --target there tinypkg && grep -q 'from pip' there/tinypkg.py",
    );
}

#[test]
fn npm_inside_a_sandbox_installs_from_listed_hosts_only() {
    Inside::new().check(
        "npm install tinypkg --registry \"http://$HOST/\" --prefix there --no-audit --no-fund \
         --no-update-notifier --fetch-retries 0 && grep -q 'from npm' there/node_modules/tinypkg/index.js",
    );
}

#[test]
fn cargo_inside_a_sandbox_builds_with_a_crate_of_listed_hosts_only() {
    let inside = Inside::new();
    let manifest = "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
                    [dependencies]\ntinypkg = { version = \"1\", registry = \"near\" }\n";
    std::fs::write(inside.project.path().join("Cargo.toml"), manifest).unwrap();
    std::fs::create_dir(inside.project.path().join("src")).unwrap();
    let program = "fn main() { assert_eq!(tinypkg::WORD, \"from cargo\"); }\n";
    std::fs::write(inside.project.path().join("src/main.rs"), program).unwrap();
    inside.check(
        "export CARGO_REGISTRIES_NEAR_INDEX=\"sparse+http://$HOST/index/\" CARGO_NET_RETRY=0
         cargo run --quiet",
    );
}
