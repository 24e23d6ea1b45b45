//! Whole sessions over every protocol, against servers that nobody wrote with our adapters: real TLS, the real proxy,
//! the real sandbox, and every request looked at by whoever is asked.

mod aimock;
mod hearing;
mod real_model;
mod script;
mod sessions;
mod vendor;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use fluffy_testkit::server::{
    Asked, Identity, Peer, Server, Then, answer, begin_stream, chunk, chunk_of_bytes,
};
use serde_json::{Value, json};

use crate::program::Answer;
use crate::task::lab::Lab;
use hearing::{Hearing, TASK};
use script::{Line, lines};
use vendor::Vendor;

/// The key of a vendor; it is nowhere else on the machine.
fn key(vendor: Vendor) -> String {
    // Put together, so that the test's own program does not hold it in one piece.
    format!("wk-{}-{:x}-THEKEY", vendor.protocol(), std::process::id())
}

/// A vendor's server.
struct Scripted {
    vendor: Vendor,
    server: Server,
    notes: Arc<Notes>,
}

/// What a server has noticed.
#[derive(Default)]
struct Notes {
    /// The turns that it gave.
    given: Mutex<Vec<usize>>,
    /// What was wrong with requests, or with the machine.
    wrong: Mutex<Vec<String>>,
    /// How many turns of the conversation are another vendor's: known with the first request.
    foreign: Mutex<Option<usize>>,
}

impl Scripted {
    /// Begins conversations, or goes on with those that another vendor's model began.
    fn start(vendor: Vendor, lines: Vec<Line>, goes_on: bool) -> Self {
        let notes = Arc::<Notes>::default();
        if !goes_on {
            *notes.foreign.lock().unwrap() = Some(0);
        }
        let (told, key) = (Arc::clone(&notes), key(vendor));
        let server = Server::start(Identity::Proper, move |asked, peer| {
            serve(&Hearing { vendor, key: &key, lines: &lines }, &told, asked, peer)
        });
        Self { vendor, server, notes }
    }

    fn address(&self) -> Address {
        let (port, base) = (self.server.port(), self.vendor.base());
        let url = format!("https://localhost:{port}{base}");
        let authority = Some(self.server.authority.clone());
        Address { vendor: self.vendor, url, authority }
    }

    /// What was given, if nothing was wrong.
    fn given(&self) -> Vec<usize> {
        let wrong = self.notes.wrong.lock().unwrap();
        assert!(wrong.is_empty(), "{:?}: {}", self.vendor, wrong.join("\n\n"));
        self.notes.given.lock().unwrap().clone()
    }

    /// How many turns were given, when those who asked are gone: the last request may still have been on its way.
    fn given_at_last(&self) -> usize {
        self.server.wait_for_ends(self.server.connections());
        self.given().len()
    }
}

fn serve(hearing: &Hearing<'_>, notes: &Notes, asked: &Asked, peer: &mut dyn Peer) -> Then {
    let foreign = |turns| *notes.foreign.lock().unwrap().get_or_insert(turns);
    match hearing.turn(asked, foreign) {
        Ok(turn) => {
            notes.given.lock().unwrap().push(turn);
            notes.wrong.lock().unwrap().extend(key_holders(hearing.key));
            begin_stream(peer);
            awkward(peer, &hearing.vendor.stream(turn, &hearing.lines[turn]));
            chunk(peer, "");
        }
        Err(wrong) => {
            let body = String::from_utf8_lossy(&asked.body);
            notes.wrong.lock().unwrap().push(format!("{wrong}\n{}{body}", asked.head));
            let said = json!({"error": {"message": wrong, "type": "invalid_request_error"}});
            answer(peer, "400 Bad Request", &[], said.to_string().as_bytes());
        }
    }
    Then::Keep
}

/// Writes a stream in pieces that end in the middle of everything: of lines, of characters, of words of JSON.
fn awkward(peer: &mut dyn Peer, stream: &[u8]) {
    let sizes = [1, 2, 3, 5, 7, 11, 59, 113, 389, 1_021];
    let (mut rest, mut sizes) = (stream, sizes.into_iter().cycle());
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(sizes.next().unwrap().min(rest.len()));
        chunk_of_bytes(peer, piece);
        rest = behind;
    }
}

/// Processes that have the key in an argument or in their environment, but for the one that the person gave it to.
fn key_holders(key: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let (line, environment) = (read("cmdline"), read("environ"));
        let holds = |bytes: &[u8]| bytes.windows(key.len()).any(|part| part == key.as_bytes());
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        let is_command = matches!(words.get(1), Some(&(b"run" | b"session")));
        if holds(&line) || (holds(&environment) && !is_command) {
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            found.push(format!("the key is with {:?}: {line}", entry.file_name()));
        }
    }
    found
}

/// Where a vendor is asked.
struct Address {
    vendor: Vendor,
    url: String,
    /// Whose word is taken for who the server is.
    authority: Option<String>,
}

/// A project, and a person whose settings name these servers.
struct Scene {
    lab: Lab,
    vendors: Vec<Vendor>,
}

impl Scene {
    fn new(lab: Lab, addresses: &[Address]) -> Self {
        let vendors = addresses.iter().map(|address| address.vendor).collect();
        let scene = Self { lab, vendors };
        let place = scene.settings();
        fs::create_dir_all(&place).unwrap();
        let mut text = "providers:\n".to_owned();
        for Address { vendor, url, authority } in addresses {
            let (name, model) = (vendor.protocol(), vendor.model());
            text += &format!(
                "  peer-{name}:\n    protocol: {name}\n    url: {url}\n    \
                 model: {model}\n    key: env:{}\n    headers: {{x-team: tools}}\n    \
                 context_window: 200000\n    prices: {{input: 2, cached: 0.5, output: 10}}\n",
                variable(*vendor)
            );
            if let Some(authority) = authority {
                text += &format!("    certificates: {name}.pem\n");
                fs::write(place.join(format!("{name}.pem")), authority).unwrap();
            }
        }
        fs::write(place.join("config.yaml"), text).unwrap();
        scene
    }

    fn settings(&self) -> PathBuf {
        self.lab.user.project.path("config/fluffy")
    }

    /// A command of the person, who has all the keys.
    fn command(&self, args: &[&str]) -> Command {
        let like = self.lab.command(&[], &[]);
        let mut command = self.lab.user.command(args);
        for (name, value) in like.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.env("XDG_CONFIG_HOME", self.lab.user.project.path("config"));
        for vendor in &self.vendors {
            command.env(variable(*vendor), key(*vendor));
        }
        command
    }

    fn answer(&self, args: &[&str]) -> Answer {
        Answer::of(self.command(args).stdin(Stdio::null()).output().unwrap())
    }

    /// The arguments that begin the task with a vendor.
    fn task(vendor: Vendor) -> [String; 5] {
        let provider = format!("peer-{}", vendor.protocol());
        ["run", "--json", "--provider", &provider, TASK].map(str::to_owned)
    }

    /// Fails unless the project is as the task wants it, and the ledger proves it.
    fn check_done(&self, answer: &Answer) -> Vec<Value> {
        let told = format!("{}{}", answer.out, answer.err);
        assert_eq!(answer.code, 0, "{told}");
        let events = answer.json_lines();
        assert_eq!(events.last().unwrap()["type"], "task.completed", "{told}");
        let lab = &self.lab;
        let (test, text) = lab.language.test();
        assert_eq!(lab.user.read(test), text);
        assert_eq!(lab.user.read(lab.language.source()), lab.language.solution());
        assert_eq!(lab.git(&["status", "--porcelain"]), "");
        assert_eq!(lab.git(&["rev-list", "--count", "HEAD"]).trim(), "2");
        assert!(lab.git(&["log", "-1", "--format=%B"]).contains("Fluffy-Checkpoint: "));
        let verified = lab.user.run(&["audit", "verify"]);
        assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
        self.check_secret(answer);
        events
    }

    /// The key is in no file below the person's directories, in nothing that was printed, in no export.
    fn check_secret(&self, answer: &Answer) {
        let lab = &self.lab;
        let bundle = lab.user.project.path("bundle.json");
        let exported = lab.user.run(&["audit", "export", "--out", bundle.to_str().unwrap()]);
        assert_eq!(exported.code, 0, "{}", exported.err);
        let verified = lab.user.run(&["audit", "verify", "--bundle", bundle.to_str().unwrap()]);
        assert_eq!(verified.code, 0, "{}", verified.err);
        let transcript = lab.user.run(&["session", "export", "--transcript"]);
        for vendor in &self.vendors {
            let key = key(*vendor);
            for text in [&answer.out, &answer.err, &transcript.out, &exported.out] {
                assert!(!text.contains(&key), "{text}");
            }
            let kept = Command::new("grep")
                .args(["-rlaF", &key])
                .arg(lab.user.project.path(""))
                .output()
                .unwrap();
            assert_eq!(String::from_utf8_lossy(&kept.stdout), "");
        }
    }

    /// What the session's turns hold, as the ledger has them.
    fn recorded(&self, events: &[Value]) -> String {
        let database = self.lab.user.ledger_dir().join("ledger/0001.db");
        let id = events[0]["session_id"].as_str().unwrap();
        let session = fluffy_kernel::StoredSession::read(&database, id).unwrap();
        session.turns.iter().map(|turn| turn.turn.to_string()).collect()
    }
}

fn variable(vendor: Vendor) -> String {
    format!("PEER_{}", vendor.protocol().replace('-', "_").to_uppercase())
}
