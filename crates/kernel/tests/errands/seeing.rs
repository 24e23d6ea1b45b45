//! What an errand sees, and what ends it.

use fluffy_base::{ByteSize, Span};
use fluffy_kernel::{
    End, Errand, Journal, Keeps, LabError, Limit, Limits, Note, ToolError, WorkshopError,
};
use fluffy_ledger::{Appended, EventType};

use crate::scene::{Remembering, Scene, read, text};

#[test]
fn an_errand_starts_among_its_files_and_cannot_change_them() {
    let scene = Scene::new();
    let printed =
        scene.printed("pwd; cat a d/c; echo x > a || echo refused; touch n || echo again");
    assert_eq!(printed, "/work\nfiles/a\nfiles/d/c\nrefused\nagain\n");
    let ran = scene.run(scene.errand("true")).unwrap();
    assert_eq!((ran.end, ran.left), (End::Exited(0), None));
}

#[test]
fn changes_that_are_kept_briefly_are_seen_by_the_errand_alone() {
    let scene = Scene::new();
    let script = "echo x > a && cat a && rm -r d && test ! -e d && echo gone";
    let errand = Errand { keeps: Keeps::Briefly, ..scene.errand(script) };
    let ran = scene.run(errand).unwrap();
    assert_eq!((text(&ran).as_str(), &ran.left), ("x\ngone\n", &None));
    assert_eq!(read(&scene.path("files/a")), "files/a\n");
}

#[test]
fn an_errand_sees_neither_the_project_nor_the_place_of_its_layers() {
    let scene = Scene::new();
    let places = ["project", "files", "state"].map(|name| scene.path(name));
    let script: Vec<_> =
        places.iter().map(|place| format!("test -e {} && echo seen", place.display())).collect();
    assert_eq!(scene.printed(&format!("{}; true", script.join("; "))), "");
}

#[test]
fn later_layers_hide_earlier_ones_and_more_is_shown_at_its_own_place() {
    let scene = Scene::new();
    let over = scene.path("over");
    std::fs::create_dir(&over).unwrap();
    std::fs::write(over.join("a"), "over\n").unwrap();
    let mut errand = scene.errand("cat a b; cat \"$1\"/secret");
    errand = errand.args(["sh"]).args([scene.path("project")]);
    errand.layers.push(over);
    errand.shown.push(scene.path("project"));
    assert_eq!(text(&scene.run(errand).unwrap()), "over\nfiles/b\nproject/secret\n");
}

#[test]
fn an_errand_has_the_variables_and_the_input_that_it_is_given() {
    let scene = Scene::new();
    let mut errand = scene.errand("echo $ONE; cat; env | cut -d= -f1 | sort");
    errand.env.push(("ONE".to_owned(), "1".to_owned()));
    errand.stdin = b"input\n".to_vec();
    let printed = text(&scene.run(errand).unwrap());
    let words: Vec<_> = printed.lines().collect();
    assert_eq!(words[..2], ["1", "input"]);
    let names = "FLUFFY_SANDBOX HOME LANG LOGNAME ONE PATH PWD TERM TMPDIR USER";
    assert_eq!(words[2..].join(" "), names);
    assert_eq!(scene.printed("cat; echo end"), "end\n");
}

#[test]
fn without_hosts_there_is_no_network_and_with_hosts_only_the_listed() {
    let scene = Scene::new();
    let probe =
        "import socket; s = socket.socket(); s.settimeout(5); print(s.connect_ex(('1.1.1.1', 53)))";
    let mut errand = Errand::new("/usr/bin/python3", "/work", vec![scene.path("files")]);
    errand = errand.args(["-c", probe]);
    assert_ne!(text(&scene.run(errand).unwrap()).trim(), "0");

    let ask = "import os, socket
host, port = os.environ['http_proxy'].removeprefix('http://').rstrip('/').split(':')
s = socket.create_connection((host, int(port)))
s.sendall(b'CONNECT other.example:443 HTTP/1.1\\r\\nHost: other.example:443\\r\\n\\r\\n')
print(s.recv(12).decode())";
    let mut errand = Errand::new("/usr/bin/python3", "/work", vec![scene.path("files")]);
    errand = errand.args(["-c", ask]);
    errand.hosts.push("api.example:443".to_owned());
    let ran = scene.run(errand).unwrap();
    assert_eq!(text(&ran).trim(), "HTTP/1.1 403");
    assert_eq!(ran.asked[0].host, "other.example");
    assert!(ran.asked[0].refused.is_some());

    let mut errand = scene.errand("true");
    errand.hosts.push("169.254.169.254".to_owned());
    assert!(matches!(scene.run(errand), Err(LabError::Hosts(_))));
}

#[test]
fn an_errand_ends_by_its_limits() {
    let scene = Scene::new();
    let mut errand = scene.errand("while :; do :; done");
    errand.limits = Limits { duration: Some(Span::from_ms(300)), ..errand.limits };
    assert_eq!(scene.run(errand).unwrap().end, End::Limit(Limit::Duration));

    let mut errand = scene.errand("yes | head -c 5000000");
    errand.limits = Limits { captured: ByteSize::from_bytes(1_000), ..errand.limits };
    let ran = scene.run(errand).unwrap();
    assert!(ran.stdout.cut && ran.stdout.bytes.len() <= 1_000);
}

#[test]
fn an_errand_that_cannot_be_recorded_does_not_run() {
    let mut scene = Scene::new();
    scene.run(scene.errand("true")).unwrap();
    let told = scene.journal.notes.take();
    assert_eq!(told, [EventType::SandboxCreated, EventType::SandboxDestroyed]);
    scene.journal = Remembering { refuses: true, ..Remembering::default() };
    let errand = Errand { keeps: Keeps::Overlay, ..scene.errand("echo x > a") };
    let refused = scene.run(errand);
    assert!(matches!(refused, Err(LabError::Workshop(WorkshopError::Untold(_)))), "{refused:?}");
    assert_eq!(read(&scene.path("files/a")), "files/a\n");
}

#[test]
fn an_errand_with_nothing_to_look_at_is_refused() {
    let scene = Scene::new();
    let errand = Errand { layers: Vec::new(), ..scene.errand("true") };
    assert!(matches!(scene.run(errand), Err(LabError::NoLayer(_))));
}

/// Says when a sandbox is made.
struct Telling(std::sync::mpsc::Sender<()>);

impl Journal for Telling {
    fn record(&self, note: Note) -> Result<Appended, ToolError> {
        if note.event == EventType::SandboxCreated {
            self.0.send(()).unwrap();
        }
        Remembering::default().record(note)
    }
}

#[test]
fn closing_ends_what_runs_and_lets_nothing_start() {
    let scene = Scene::new();
    let (lab, errand) = (&scene.lab, scene.errand("while :; do :; done"));
    let (made, wait) = std::sync::mpsc::channel();
    let ended = std::thread::scope(|scope| {
        let running = scope.spawn(move || lab.run(errand, &Telling(made)));
        wait.recv().unwrap();
        lab.close();
        running.join().unwrap()
    });
    assert!(matches!(ended, Err(LabError::Workshop(WorkshopError::Cancelled))), "{ended:?}");
    let after = scene.run(scene.errand("true"));
    assert!(matches!(after, Err(LabError::Workshop(WorkshopError::Cancelled))), "{after:?}");
}
