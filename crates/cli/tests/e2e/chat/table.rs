//! Where conversations are held.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fluffy_base::Message;
use fluffy_forge::Shipped;
use fluffy_kernel::{Client, ClientOptions};
use serde_json::{Value, json};

use crate::processes::{bytes, personal};
use crate::program::Answer;
use crate::skill::lab::Forge;

pub(super) const PATIENCE: Duration = Duration::from_secs(60);

impl Forge {
    /// A project in which these of the shipped skills are trusted.
    pub(super) fn with_shipped(names: &[&str]) -> Self {
        let forge = Self::new();
        for name in names {
            let shipped = Shipped::find(name).unwrap();
            let spec = forge.user.project.path("spec.yaml");
            let builder = forge.user.project.path("builder.jsonl");
            std::fs::write(&spec, shipped.spec).unwrap();
            std::fs::write(&builder, shipped.transcript).unwrap();
            forge.done(&["propose", "--file", spec.to_str().unwrap()]);
            let builder = format!("transcript:{}", builder.display());
            forge.done(&["build", name, "--builder", &builder]);
            forge.done(&["verify", name]);
            let answer = forge.agreeing(&["skill", "promote", name]);
            assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
        }
        forge
    }

    /// One turn.
    pub(super) fn chat(&self, args: &[&str]) -> Answer {
        let mut all = vec!["chat"];
        all.extend(args);
        Answer::of(self.command(&all).stdin(Stdio::null()).output().unwrap())
    }

    /// One turn, as programs see it: what came before the reply, the reply, and the exit code.
    #[track_caller]
    pub(super) fn chat_json(&self, args: &[&str]) -> (Vec<Value>, Value, i32) {
        let mut all = vec!["--json"];
        all.extend(args);
        let answer = self.chat(&all);
        let mut lines = answer.json_lines();
        let last = lines.pop().unwrap_or_else(|| panic!("{args:?}: {}", answer.err));
        assert_eq!((&last["type"], &last["v"]), (&json!("chat.reply"), &json!(1)), "{last:#}");
        assert_eq!(last["code"], answer.code);
        (lines, last, answer.code)
    }

    /// Says one thing; what is shown and the exit code.
    #[track_caller]
    pub(super) fn says(&self, args: &[&str], code: i32, words: &str) {
        let answer = self.chat(args);
        let all = format!("{}{}", answer.out, answer.err);
        assert_eq!(answer.code, code, "{args:?}: {all}");
        assert!(all.contains(words), "`{words}` in {all}");
    }

    /// A transcript of a model that says these things.
    pub(super) fn model(&self, turns: &[Value]) -> String {
        format!("replay:{}", self.user.transcript(turns).display())
    }

    /// What the ledger has of an event.
    pub(super) fn entries(&self, event: &str) -> Vec<Value> {
        let args = ["audit", "log", "--json", "--event", event];
        let output = self.command(&args).stdin(Stdio::null()).output().unwrap();
        Answer::of(output).json_lines()
    }
}

/// A kernel that stays, without a bootstrap.
pub(super) struct Served {
    child: Child,
    pub(super) socket: PathBuf,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _dead = self.child.kill();
        let _status = self.child.wait();
    }
}

pub(super) fn served(forge: &Forge) -> Served {
    let socket = forge.user.project.state().join("fluffy/run/test.sock");
    let like = forge.command(&["kernel", "serve", "--idle", "60", "--socket"]);
    let mut command = Command::new(like.get_program());
    command.args(like.get_args()).arg(&socket).current_dir(forge.root()).env_clear();
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    Served { child, socket }
}

pub(super) fn connected(socket: &std::path::Path) -> Client {
    let begun = std::time::Instant::now();
    loop {
        let options = ClientOptions { name: "test".to_owned(), token: None, patience: PATIENCE };
        match Client::connect(socket, options) {
            Ok((client, _)) => return client,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
        std::thread::yield_now();
    }
}

/// A turn as a client submits it.
pub(super) fn submission(forge: &Forge, work: &Value) -> Value {
    let like = forge.command(&[]);
    let given = |wanted: &str| {
        like.get_envs().find(|(name, _)| *name == wanted).and_then(|(_, value)| value)
    };
    let home = PathBuf::from(given("HOME").unwrap());
    let settings = home.join(".config/fluffy");
    let cache = PathBuf::from(given("XDG_CACHE_HOME").unwrap()).join("fluffy");
    let tools = std::fs::canonicalize(&cache).ok().and_then(|it| fluffy_forge::locate(&it).ok());
    let tools = tools.map(|tools| tools.shown).unwrap_or_default();
    let tools: Vec<_> = tools.iter().map(|path| bytes(path.as_os_str())).collect();
    json!({
        "work": { "chat": work },
        "driver": null,
        "handed": { "secrets": [], "gateway": null, "proxy": null },
        "surroundings": {
            "personal": personal(&settings), "path": given("PATH").map(bytes), "home": bytes(home.as_os_str()),
            "settings_in": bytes(settings.as_os_str()), "cache": bytes(cache.as_os_str()), "tools": tools,
            "sandboxes": [],
            "git_identity": { "author_name": null, "author_email": null, "committer_name": null,
                "committer_email": null, "email": null },
            "settings": [],
        },
    })
}

pub(super) fn say(text: &str, answers: Option<&str>) -> Value {
    json!({ "say": { "text": text, "answers": answers, "confirmed": false, "verbose": false, "mode": "strict",
        "access": "write", "pins": [], "no_model": null } })
}

/// Has a turn done; the reply.
#[track_caller]
pub(super) fn turn(client: &Client, submission: Value) -> Value {
    client.call("task.submit", submission, PATIENCE).unwrap();
    loop {
        match client.receive(Some(PATIENCE)).unwrap() {
            Some(Message::Event { method, params }) if method == "task.complete" => {
                return params["end"]["chat"].clone();
            }
            Some(Message::Event { method, params }) => assert_ne!(method, "task.error", "{params}"),
            Some(_) => {}
            None => panic!("no reply"),
        }
    }
}
