//! The door to an engine for a confined kernel: the driver gets through, and nothing else does.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use fluffy_sandbox::harvest::{HarvestLimits, Kind, harvest};
use fluffy_sandbox::{
    Config, Engine, EngineKind, Gate, GateOptions, Job, Runtime as _, Sandbox, Store, Template,
    Workspace,
};
use fluffy_testkit::engines::socket;
use serde_json::{Value, json};

use crate::engine::{open, options, ordinarily};

/// The head of a request, and its body.
type Call = (String, Vec<u8>);

/// A gate, and a place of which containers may be shown the project.
struct Scene {
    kind: EngineKind,
    place: PathBuf,
    gate: PathBuf,
}

impl Scene {
    fn new(kind: EngineKind, place: &Path) -> Self {
        let project = place.join("project");
        std::fs::create_dir(&project).unwrap();
        std::fs::write(project.join("kept"), "kept\n").unwrap();
        std::fs::create_dir(place.join("secret")).unwrap();
        std::os::unix::fs::symlink(place.join("secret"), project.join("link")).unwrap();
        let gate = Gate::open(GateOptions {
            engine: kind,
            sockets: vec![socket(kind)],
            fetched: Some("localhost/no/such:1".parse().unwrap()),
            shown: vec![project, place.join("sandbox-tester")],
            state: place.join("state"),
            profiles: place.join("profiles"),
        });
        let gate = Arc::new(gate.unwrap());
        let at = place.join("gate.sock");
        let listener = UnixListener::bind(&at).unwrap();
        std::thread::spawn(move || gate.serve(&listener));
        Self { kind, place: place.to_owned(), gate: at }
    }

    /// Everything that a driver asks for on the way of a job that changes the project.
    fn asked(&self) -> (Vec<Call>, (Box<dyn Sandbox>, Engine)) {
        let at = self.place.join("recorded.sock");
        let recorded = record(&at, &self.gate);
        let engine = open(options(self.kind, at, &self.place));
        let volume = engine.volume(Store::Disk).unwrap();
        let project = self.place.join("project");
        let config = Config::of(Template::CodeExecutor)
            .with_workspace(Workspace::overlay(&project, volume.clone()))
            .unwrap();
        let sandbox = engine
            .create(config, Job::new("sh").args(["-c", "cat kept; echo new > made"]))
            .unwrap();
        let outcome = sandbox.run(Arc::new(())).unwrap();
        assert!(outcome.is_success(), "{outcome:?}");
        assert_eq!(outcome.stdout.bytes, b"kept\n");
        let found =
            harvest(volume.content().unwrap(), Kind::Overlay, &HarvestLimits::default(), &|_| {
                false
            });
        assert_eq!(found.unwrap().changes().len(), 1);
        assert!(!project.join("made").exists());
        // Its container goes, and all that it was shown stays: what is asked for in its name is judged on its own.
        let gone = format!("DELETE /v1.41/containers/{}?force=true&v=true", sandbox.id());
        assert!(self.ask(&gone, b"").0 < 300);
        let asked = recorded.lock().unwrap().clone();
        (asked, (sandbox, engine))
    }

    /// The answer of the gate.
    fn ask(&self, head: &str, body: &[u8]) -> (u16, String) {
        ask(&self.gate, head, body)
    }

    /// Makes a container and takes it away: without that, no refusal would mean anything.
    #[track_caller]
    fn grants(&self, line: &str, body: &Value) {
        let (status, said) = self.ask(line, body.to_string().as_bytes());
        assert_eq!(status, 201, "{said} {body}");
        let id = said.split("\"Id\":\"").nth(1).unwrap().split('"').next().unwrap();
        let gone = format!("DELETE /v1.41/containers/{id}?force=true&v=true");
        assert!(self.ask(&gone, b"").0 < 300);
    }

    #[track_caller]
    fn refuses(&self, head: &str, body: &Value) {
        let (status, said) = self.ask(head, body.to_string().as_bytes());
        assert_eq!(status, 403, "{head}: {said} {body}");
        assert!(said.contains("refused by fluffy's gate"), "{said}");
    }
}

/// Passes on what it hears, and remembers it.
fn record(at: &Path, to: &Path) -> Arc<Mutex<Vec<Call>>> {
    let listener = UnixListener::bind(at).unwrap();
    let (heard, to) = (Arc::<Mutex<Vec<_>>>::default(), to.to_owned());
    let told = Arc::clone(&heard);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (head, body) = request(&mut stream);
            told.lock().unwrap().push((head.clone(), body.clone()));
            let to = to.clone();
            std::thread::spawn(move || {
                let mut on = UnixStream::connect(to).unwrap();
                on.write_all(format!("{head}\r\n\r\n").as_bytes()).unwrap();
                on.write_all(&body).unwrap();
                let _gone = io::copy(&mut on, &mut stream);
                let _gone = stream.shutdown(Shutdown::Both);
            });
        }
    });
    heard
}

/// The head of a request, without the blank line, and its body.
fn request(stream: &mut UnixStream) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap().trim_end().to_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    (head, body)
}

/// What somebody answers to the first line of a request and its body.
fn ask(socket: &Path, line: &str, body: &[u8]) -> (u16, String) {
    let mut stream = UnixStream::connect(socket).unwrap();
    let head = format!(
        "{line} HTTP/1.1\r\nHost: engine\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    let _cut = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no answer to {line}: {text}")), text)
}

/// The first line of the call that makes a container, and its body.
fn creation(asked: &[Call]) -> (String, Value) {
    let made = asked.iter().find(|(head, _)| head.contains("containers/create")).unwrap();
    let line = made.0.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
    (line, serde_json::from_slice(&made.1).unwrap())
}

/// Changes that each make a container more than ours, as paths into its body.
fn temptations(kind: EngineKind) -> Vec<(&'static str, Value)> {
    match kind {
        EngineKind::Docker => of_docker(),
        EngineKind::Podman => of_podman(),
    }
}

fn of_docker() -> Vec<(&'static str, Value)> {
    let bind = |source: &str| {
        json!({
            "Type": "bind", "Source": source, "Target": "/host", "ReadOnly": true,
            "BindOptions": { "Propagation": "private", "NonRecursive": true },
        })
    };
    vec![
        ("/HostConfig/Privileged", json!(true)),
        ("/HostConfig/Binds", json!(["/:/host"])),
        ("/HostConfig/Mounts/-", bind("/")),
        ("/HostConfig/Mounts/-", bind("/etc")),
        ("/HostConfig/Mounts/-", bind("/run")),
        ("/HostConfig/CapAdd", json!(["SYS_ADMIN"])),
        ("/HostConfig/CapDrop", json!([])),
        ("/HostConfig/PidMode", json!("host")),
        ("/HostConfig/IpcMode", json!("host")),
        ("/HostConfig/NetworkMode", json!("host")),
        ("/HostConfig/UsernsMode", json!("host")),
        ("/HostConfig/CgroupnsMode", json!("host")),
        ("/HostConfig/ReadonlyRootfs", json!(false)),
        ("/HostConfig/MaskedPaths", json!([])),
        ("/HostConfig/SecurityOpt", json!(["seccomp=unconfined"])),
        (
            "/HostConfig/Devices",
            json!([{ "PathOnHost": "/dev/kmsg", "PathInContainer": "/dev/kmsg" }]),
        ),
        ("/HostConfig/DeviceCgroupRules", json!(["a *:* rwm"])),
        ("/HostConfig/VolumesFrom", json!(["somebody"])),
        ("/HostConfig/RestartPolicy", json!({ "Name": "always" })),
        ("/HostConfig/Memory", json!(1_u64 << 40)),
        ("/HostConfig/PidsLimit", json!(1_000_000)),
        ("/HostConfig/Runtime", json!("other")),
        ("/User", json!("0:0")),
        ("/User", json!("0:65533")),
        ("/User", json!("1234:1234")),
        ("/User", json!("65533:42")),
        ("/Labels/dev.fluffy.instance", json!("0123456789")),
        ("/Image", json!("docker.io/library/debian")),
    ]
}

fn of_podman() -> Vec<(&'static str, Value)> {
    let mounted = |source: &str, access: &str| {
        json!({
            "destination": "/host", "type": "bind", "source": source,
            "options": ["bind", access, "nosuid", "nodev", "private"],
        })
    };
    vec![
        ("/privileged", json!(true)),
        ("/mounts/-", mounted("/", "ro")),
        ("/mounts/-", mounted("/etc", "ro")),
        ("/mounts/-", mounted("/run", "rw")),
        ("/volumes", json!([{ "Name": "somebody", "Dest": "/host" }])),
        ("/cap_add", json!(["SYS_ADMIN"])),
        ("/cap_drop", json!([])),
        ("/no_new_privileges", json!(false)),
        ("/pidns", json!({ "nsmode": "host" })),
        ("/netns", json!({ "nsmode": "host" })),
        ("/ipcns", json!({ "nsmode": "host" })),
        ("/userns", json!({ "nsmode": "host" })),
        ("/read_only_filesystem", json!(false)),
        ("/unmask", json!(["ALL"])),
        ("/devices", json!([{ "path": "/dev/kmsg" }])),
        ("/oci_runtime", json!("/tmp/runtime")),
        ("/rootfs", json!("/")),
        ("/resource_limits/memory/limit", json!(1_u64 << 40)),
        ("/user", json!("0:0")),
        ("/user", json!("1234:1234")),
        ("/user", json!("65533:42")),
        ("/labels/dev.fluffy.instance", json!("0123456789")),
        ("/image", json!("docker.io/library/debian")),
    ]
}

/// A body with a value put in.
fn with(body: &Value, path: &str, value: Value) -> Value {
    let (above, name) = path.rsplit_once('/').unwrap();
    let mut body = body.clone();
    match body.pointer_mut(above).unwrap() {
        Value::Array(list) => list.push(value),
        Value::Object(map) => drop(map.insert(name.to_owned(), value)),
        other => panic!("{path}: {other}"),
    }
    body
}

fn gate(kind: EngineKind, place: &Path) {
    let scene = Scene::new(kind, place);
    let (asked, held) = scene.asked();
    let (line, body) = creation(&asked);
    scene.grants(&line, &body);
    for (path, value) in temptations(kind) {
        scene.refuses(&line, &with(&body, path, value));
    }
    mounts_are_judged(&scene, &line, &body);
    foreign_ones_are_not_reached(&scene);
    other_calls_are_not_passed(&scene);
    drop(held);
    let left = std::fs::read_dir(place.join("state")).unwrap().count();
    assert_eq!(left, 0, "all of it could be taken away through the gate");
}

/// What is mounted lies in the project or in a volume of ours, and no link leads to it.
fn mounts_are_judged(scene: &Scene, line: &str, body: &Value) {
    let project = scene.place.join("project");
    for (from, refused) in [
        (scene.place.join("secret"), true),
        (project.join("link"), true),
        (project.join("link/below"), true),
        (project.join("../secret"), true),
        (PathBuf::from("/proc/self/root"), true),
        (scene.place.join("state"), true),
        (project, false),
    ] {
        let from = from.to_str().unwrap();
        let body = match scene.kind {
            EngineKind::Docker => with(
                body,
                "/HostConfig/Mounts/-",
                json!({
                    "Type": "bind", "Source": from, "Target": "/mnt", "ReadOnly": true,
                    "BindOptions": { "Propagation": "private", "NonRecursive": true },
                }),
            ),
            EngineKind::Podman => with(
                body,
                "/mounts/-",
                json!({
                    "destination": "/mnt", "type": "bind", "source": from,
                    "options": ["bind", "ro", "nosuid", "nodev", "private"],
                }),
            ),
        };
        if refused {
            scene.refuses(line, &body);
        } else {
            scene.grants(line, &body);
        }
    }
    if scene.kind == EngineKind::Docker {
        let state = scene.place.join("state");
        let instance = body.pointer("/Labels/dev.fluffy.instance").unwrap().as_str().unwrap();
        for lower in ["/", "/etc", scene.place.to_str().unwrap()] {
            let options = format!("nosuid,nodev,lowerdir={lower},ro,userxattr");
            scene.refuses(
                "POST /v1.41/volumes/create",
                &json!({
                    "Name": format!("fluffy-{instance}-9-0"), "Driver": "local",
                    "Labels": { "dev.fluffy.instance": instance },
                    "DriverOpts": { "type": "overlay", "device": "overlay", "o": options },
                }),
            );
        }
        scene.refuses(
            "POST /v1.41/volumes/create",
            &json!({
                "Name": format!("fluffy-{instance}-9-0"), "Driver": "local",
                "Labels": { "dev.fluffy.instance": instance },
                "DriverOpts": { "type": "none", "device": state.to_str().unwrap(), "o": "bind" },
            }),
        );
    }
}

/// A container of somebody else's is neither looked at nor touched.
fn foreign_ones_are_not_reached(scene: &Scene) {
    let upstream = socket(scene.kind);
    let (_, images) = ask(&upstream, "GET /v1.41/images/json", b"");
    let image = images.split("\"Id\":\"").nth(1).unwrap().split('"').next().unwrap();
    let name =
        format!("foreign-{}", scene.place.parent().unwrap().file_name().unwrap().to_str().unwrap());
    let body = json!({ "Image": image, "Cmd": ["true"], "Labels": { "dev.fluffy.instance": "fedcba9876" } });
    let made = format!("POST /v1.41/containers/create?name={name}");
    let (status, said) = ask(&upstream, &made, body.to_string().as_bytes());
    assert_eq!(status, 201, "{said}");
    for call in [
        format!("GET /v1.41/containers/{name}/json"),
        format!("POST /v1.41/containers/{name}/start"),
        format!("POST /v1.41/containers/{name}/kill"),
        format!("POST /v1.41/containers/{name}/pause"),
        format!("POST /v1.41/containers/{name}/exec"),
        format!("DELETE /v1.41/containers/{name}?force=true&v=true"),
    ] {
        scene.refuses(&call, &json!({ "Cmd": ["sh"] }));
    }
    let (status, _) = ask(&upstream, &format!("GET /v1.41/containers/{name}/json"), b"");
    assert_eq!(status, 200, "it is there still");
    ask(&upstream, &format!("DELETE /v1.41/containers/{name}?force=true"), b"");
}

/// What the driver never asks for is not passed on.
fn other_calls_are_not_passed(scene: &Scene) {
    for call in [
        "GET /v1.41/containers/json",
        "GET /v1.41/containers/json?all=true",
        "GET /v1.41/containers/json?all=true&filters=%7B%7D",
        "GET /v1.41/volumes",
        "GET /v1.41/images/json",
        "GET /v1.41/images/../containers/json",
        "GET /v1.41/events",
        "GET /v1.41/secrets",
        "POST /v1.41/build",
        "POST /v1.41/commit?container=x",
        "POST /v1.41/containers/prune",
        "POST /v1.41/images/create?fromImage=docker.io/library/debian",
        "POST /v1.41/images/create?fromImage=localhost/no/such:1&repo=x",
        "POST /v1.41/images/create?fromSrc=-&repo=debian&tag=12",
        "POST /v1.41/images/create?fromSrc=-&repo=localhost/fluffy-base&tag=0123456789abcdef",
        "POST /v1.41/networks/create",
        "POST /v1.41/plugins/pull",
        "POST /v1.41/swarm/init",
        "POST /v1.41/session",
        "DELETE /v1.41/images/localhost/fluffy-base",
        "POST /v4.0.0/libpod/play/kube",
        "POST /v4.0.0/libpod/containers/x/checkpoint",
        "PUT /v1.41/containers/x/archive?path=/",
        "GET /v1.41/_ping?x=y",
        "GET //_ping",
    ] {
        scene.refuses(call, &json!({}));
    }
    // The one image that may be fetched; that there is none, the engine says.
    let (status, said) = scene.ask("POST /v1.41/images/create?fromImage=localhost/no/such:1", b"");
    assert!(status != 403 && !said.contains("fluffy's gate"), "{said}");
    // Two requests in one, of which the second would be seen by nobody.
    let twice = "GET /_ping HTTP/1.1\r\nHost: e\r\n\r\nPOST /v1.41/containers/prune HTTP/1.1\r\nHost: e\r\n\r\n";
    let mut stream = UnixStream::connect(&scene.gate).unwrap();
    stream.write_all(twice.as_bytes()).unwrap();
    let mut answer = String::new();
    let _cut = stream.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
}

#[test]
fn sbx_9_docker_is_reached_through_the_gate_by_the_driver_and_by_nothing_else() {
    let name = "gate::sbx_9_docker_is_reached_through_the_gate_by_the_driver_and_by_nothing_else";
    ordinarily(EngineKind::Docker, name, |place| gate(EngineKind::Docker, place));
}

#[test]
fn sbx_9_podman_is_reached_through_the_gate_by_the_driver_and_by_nothing_else() {
    let name = "gate::sbx_9_podman_is_reached_through_the_gate_by_the_driver_and_by_nothing_else";
    ordinarily(EngineKind::Podman, name, |place| gate(EngineKind::Podman, place));
}
