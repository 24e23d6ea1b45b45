//! Ordinary clients that know of the proxy by its usual variables alone.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use fluffy_sandbox::proxy::{Decision, Ending, Refusal};

use crate::packages;
use crate::scene::{Host, Scene, hello};

const ALLOWED: &[&str] = &["pkg.test"];

/// A client with nothing of this machine's settings but what it needs to start.
fn client(scene: &Scene, program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().current_dir(scene.dir.path()).stdin(Stdio::null());
    for kept in ["PATH", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "PYENV_ROOT", "PYENV_VERSION"] {
        command.envs(std::env::var_os(kept).map(|value| (kept, value)));
    }
    // Shims of version managers find what they stand for by the home directory.
    let home = std::env::var_os("HOME").unwrap_or_default();
    if std::env::var_os("RUSTUP_HOME").is_none() {
        command.env("RUSTUP_HOME", Path::new(&home).join(".rustup"));
    }
    command.env("HOME", scene.dir.path());
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"] {
        command.env(name, format!("http://{}", scene.at));
    }
    command
}

fn run(command: &mut Command) -> Output {
    let program = command.get_program().to_owned();
    match command.output() {
        Ok(output) => output,
        Err(error) => panic!("{program:?} is needed for this test: {error}"),
    }
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}\n{}", output.status, text(&output.stdout), text(&output.stderr))
}

/// The client has what it asked for, and the host saw nothing but requests for itself.
fn assert_served(scene: &Scene, output: &Output) {
    assert!(output.status.success(), "{}", said(output));
    let seen = scene.host.seen();
    assert!(!seen.is_empty());
    for head in &seen {
        assert!(head.contains("\r\nHost: pkg.test\r\n"), "{head}");
    }
    let records = scene.wait(2 * seen.len());
    assert!(records.iter().all(|record| record.host == "pkg.test"), "{records:?}");
}

/// The client failed, every request is recorded as refused, and the host saw nothing.
fn assert_refused(scene: &Scene, output: &Output) {
    assert!(!output.status.success(), "{}", said(output));
    let decisions = scene.decisions(1);
    let refused = Decision::Refused(Refusal::Unlisted);
    assert!(decisions.iter().all(|decision| *decision == refused), "{decisions:?}");
    assert_eq!(scene.host.seen(), [""; 0]);
}

/// A proxy that lets nothing on this list through, though it is there.
fn elsewhere() -> Scene {
    Scene::with(&["other.test"], packages::host(), |_| ())
}

fn home() -> Scene {
    Scene::with(ALLOWED, packages::host(), |_| ())
}

fn curl(scene: &Scene) -> Command {
    let mut curl = client(scene, "curl");
    curl.args(["--silent", "--show-error", "--fail-with-body", "--max-time", "60"]);
    curl
}

#[test]
fn curl_fetches_a_page() {
    let scene = Scene::new(ALLOWED);
    let output = run(curl(&scene).arg("http://pkg.test/page"));
    assert_served(&scene, &output);
    assert_eq!(output.stdout, b"hello\n");
}

#[test]
fn curl_is_told_why_and_what_to_do() {
    let scene = Scene::new(ALLOWED);
    let output = run(curl(&scene).arg("http://evil.test/"));
    assert_refused(&scene, &output);
    let said = said(&output);
    assert!(said.contains("list `evil.test` under `network_whitelist`"), "{said}");
    let output = run(curl(&scene).arg("https://evil.test/"));
    assert_refused(&scene, &output);
}

#[test]
fn curl_uploads_by_length_and_in_chunks() {
    for headers in [&[][..], &["--header", "Transfer-Encoding: chunked"]] {
        let answers = |head: &str, mut stream: std::net::TcpStream| {
            use std::io::{Read as _, Write as _};
            let end: &[u8] = if head.contains("chunked") { b"0\r\n\r\n" } else { b"x" };
            if head.contains("100-continue") {
                stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
            }
            let (mut body, mut byte) = (Vec::new(), [0]);
            while !body.ends_with(end) && stream.read(&mut byte).unwrap() == 1 {
                body.push(byte[0]);
            }
            hello(head, stream);
        };
        let scene = Scene::with(ALLOWED, Host::new(answers), |_| ());
        let mut curl = curl(&scene);
        curl.args(headers).args(["--header", "Expect: 100-continue", "--data", "12345x"]);
        let output = run(curl.arg("http://pkg.test/upload"));
        assert_served(&scene, &output);
        assert_eq!(output.stdout, b"hello\n");
    }
}

fn pip(scene: &Scene) -> Command {
    let mut pip = client(scene, "python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-cache-dir", "--retries", "0"]);
    pip.args(["--disable-pip-version-check", "--root-user-action", "ignore"]);
    pip.args(["--index-url", "http://pkg.test/simple/", "--trusted-host", "pkg.test"]);
    pip.args(["--target", "there", "tinypkg"]).env("PIP_CONFIG_FILE", "/dev/null");
    pip
}

#[test]
fn pip_installs_a_package() {
    let scene = home();
    let output = run(&mut pip(&scene));
    assert_served(&scene, &output);
    let module = scene.dir.path().join("there/tinypkg.py");
    assert_eq!(std::fs::read_to_string(module).unwrap(), "word = 'from pip'\n");
}

#[test]
fn pip_is_refused_what_is_not_listed() {
    let scene = elsewhere();
    let output = run(&mut pip(&scene));
    assert_refused(&scene, &output);
}

fn npm(scene: &Scene) -> Command {
    let mut npm = client(scene, "npm");
    npm.args(["install", "tinypkg", "--registry", "http://pkg.test/", "--prefix", "there"]);
    npm.args(["--no-audit", "--no-fund", "--no-update-notifier", "--fetch-retries", "0"]);
    npm
}

#[test]
fn npm_installs_a_package() {
    let scene = home();
    let output = run(&mut npm(&scene));
    assert_served(&scene, &output);
    let module = scene.dir.path().join("there/node_modules/tinypkg/index.js");
    assert_eq!(std::fs::read_to_string(module).unwrap(), "module.exports = 'from npm'\n");
}

#[test]
fn npm_is_refused_what_is_not_listed() {
    let scene = elsewhere();
    let output = run(&mut npm(&scene));
    assert_refused(&scene, &output);
}

fn cargo(scene: &Scene) -> Command {
    let dir = scene.dir.path();
    std::fs::create_dir(dir.join("src")).unwrap();
    std::fs::write(dir.join("src/lib.rs"), "pub use tinypkg::WORD;\n").unwrap();
    let manifest = "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
                    [dependencies]\ntinypkg = { version = \"1\", registry = \"near\" }\n";
    std::fs::write(dir.join("Cargo.toml"), manifest).unwrap();
    let mut cargo = client(scene, "cargo");
    cargo.args(["fetch", "--quiet"]).env("CARGO_HOME", dir.join("cargo"));
    cargo.env("CARGO_REGISTRIES_NEAR_INDEX", "sparse+http://pkg.test/index/");
    cargo.env("CARGO_NET_RETRY", "0");
    cargo
}

#[test]
fn cargo_fetches_a_crate() {
    let scene = home();
    let output = run(&mut cargo(&scene));
    assert_served(&scene, &output);
    let lock = std::fs::read_to_string(scene.dir.path().join("Cargo.lock")).unwrap();
    assert!(lock.contains("sparse+http://pkg.test/index/"), "{lock}");
    let heads = scene.host.seen().concat();
    assert!(heads.contains("GET /crates/tinypkg/1.0.0.crate "), "{heads}");
}

#[test]
fn cargo_is_refused_what_is_not_listed() {
    let scene = elsewhere();
    let output = run(&mut cargo(&scene));
    assert_refused(&scene, &output);
}

/// A host that speaks TLS.
struct Secure {
    child: Child,
    address: SocketAddr,
}

const SECURE: &str = r#"
import http.server, ssl, sys
class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"hello in private\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print("127.0.0.1:%d" % server.server_port, flush=True)
server.serve_forever()
"#;

impl Secure {
    fn new(dir: &Path) -> Self {
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
        openssl.args(["-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2"]);
        openssl.args(["-subj", "/CN=pkg.test", "-addext", "subjectAltName=DNS:pkg.test"]);
        let made = run(openssl.current_dir(dir));
        assert!(made.status.success(), "{}", said(&made));
        let mut child = Command::new("python3")
            .args(["-c", SECURE])
            .current_dir(dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, address: line.trim().parse().unwrap() }
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn tls_goes_through_a_tunnel_untouched() {
    let keys = tempfile::tempdir().unwrap();
    let secure = Secure::new(keys.path());
    let address = secure.address.to_string();
    let scene = Scene::with(&["pkg.test", &address], Host::new(hello), |_| ());
    scene.table.set("pkg.test", &[&[&address]]);
    let certificate = keys.path().join("cert.pem");
    let output = run(curl(&scene).arg("--cacert").arg(&certificate).arg("https://pkg.test/"));
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(output.stdout, b"hello in private\n");
    let records = scene.wait(2);
    assert_eq!((&*records[0].method, records[0].port), ("CONNECT", Some(443)));
    assert_eq!(records[1].server_name.as_deref(), Some("pkg.test"));
    assert_eq!(records[1].decision, Decision::Closed(Ending::Complete));

    let python = "import ssl, sys, urllib.request\n\
                  context = ssl.create_default_context(cafile=sys.argv[1])\n\
                  print(urllib.request.urlopen('https://pkg.test/', context=context).read())";
    let output = run(client(&scene, "python3").args(["-c", python]).arg(&certificate));
    assert!(said(&output).contains("hello in private"), "{}", said(&output));
}

#[test]
fn tls_for_another_host_does_not_go_through_the_tunnel() {
    let keys = tempfile::tempdir().unwrap();
    let secure = Secure::new(keys.path());
    let address = secure.address.to_string();
    let scene = Scene::with(&["pkg.test", &address], Host::new(hello), |_| ());
    scene.table.set("pkg.test", &[&[&address]]);
    let mut curl = curl(&scene);
    curl.args(["--insecure", "--connect-to", "evil.test:443:pkg.test:443", "https://evil.test/"]);
    let output = run(&mut curl);
    assert!(!output.status.success() && output.stdout.is_empty(), "{}", said(&output));
    let records = scene.wait(2);
    assert_eq!(records[1].decision, Decision::Refused(Refusal::ServerName));
    assert_eq!((records[1].up, records[1].server_name.as_deref()), (0, Some("evil.test")));
}
