//! Real protocols to a server that a test scripts: what is sent, what it costs, who sees the key.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::program::{Answer, User};
use crate::task::lab::{Lab, Language, call, run_tests, say};

pub(crate) const KEY: &str = "wk-0123456789abcdef-THEKEY";

/// What the server was sent.
#[derive(Debug, Clone)]
struct Sent {
    line: String,
    key: Option<String>,
    body: String,
}

/// A server that speaks chat completions on this machine, in the clear.
pub(crate) struct Server {
    port: u16,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Server {
    /// Gives these turns, one after the other; then it is overloaded, which no retry changes.
    fn new(turns: Vec<Value>) -> Self {
        let mut turns = turns.into_iter();
        Self::giving(move |_| turns.next())
    }

    /// Gives the turn that comes next in the conversation it is sent, however often it is asked.
    pub(crate) fn remembering(turns: Vec<Value>) -> Self {
        Self::giving(move |asked| next_of(&turns, asked))
    }

    /// The same, but of the first answer only the first words come, for as long as anybody waits for more.
    pub(crate) fn half_silent(turns: Vec<Value>) -> Self {
        let mut asked_before = false;
        Self::giving(move |asked| {
            let mut turn = next_of(&turns, asked)?;
            turn["half"] = json!(!std::mem::replace(&mut asked_before, true));
            Some(turn)
        })
    }

    fn giving(mut next: impl FnMut(&Value) -> Option<Value> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&sent);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), &told, &mut next);
            }
        });
        Self { port, sent }
    }

    fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    /// The requests for turns.
    fn asked(&self) -> Vec<Value> {
        let posted = self.sent().into_iter().filter(|sent| sent.line.starts_with("POST"));
        posted.map(|sent| serde_json::from_str(&sent.body).unwrap()).collect()
    }
}

/// The turn that comes next in a conversation.
fn next_of(turns: &[Value], asked: &Value) -> Option<Value> {
    let had = asked["messages"].as_array().unwrap().iter();
    turns.get(had.filter(|message| message["role"] == "assistant").count()).cloned()
}

fn serve(
    stream: TcpStream,
    told: &Mutex<Vec<Sent>>,
    next: &mut dyn FnMut(&Value) -> Option<Value>,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    let mut head = Vec::new();
    for line in reader.by_ref().lines() {
        match line {
            Ok(line) if !line.is_empty() => head.push(line),
            _ => break,
        }
    }
    let header = |name: &str| {
        let mut found = head.iter().filter_map(|line| line.split_once(':'));
        found
            .find(|(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
    };
    let length = header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    if head.is_empty() || reader.read_exact(&mut body).is_err() {
        return;
    }
    let line = head[0].clone();
    let body = String::from_utf8(body).unwrap();
    let key = header("authorization");
    let asked = serde_json::from_str(&body).unwrap_or_default();
    told.lock().unwrap().push(Sent { line: line.clone(), key: key.clone(), body });
    let mut half = false;
    let (status, kind, answer) = if key.as_deref() != Some(&format!("Bearer {KEY}")) {
        // Some servers repeat what they were sent.
        let message = format!("no such key: {}", key.unwrap_or_default());
        let error = json!({"error": {"message": message, "type": "invalid_request_error", "code": "invalid_api_key"}});
        ("401 Unauthorized", "application/json", error.to_string())
    } else if line.starts_with("GET /v1/models ") {
        let models = json!({"object": "list", "data": [{"id": "tiny", "object": "model"}, {"id": "big", "object": "model"}]});
        ("200 OK", "application/json", models.to_string())
    } else if let Some(turn) = next(&asked) {
        half = turn["half"] == true;
        ("200 OK", "text/event-stream", streamed(&turn))
    } else {
        (
            "400 Bad Request",
            "application/json",
            json!({"error": {"message": "no more"}}).to_string(),
        )
    };
    let length = answer.len();
    let first = answer.split_once("\n\n").map_or(0, |(first, _)| first.len() + 2);
    let said = if half { &answer[..first] } else { &answer };
    let _gone = write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{said}",
    );
    if half {
        let _gone = reader.read(&mut [0]);
    }
}

/// A turn of a transcript as chunks of chat completions.
fn streamed(turn: &Value) -> String {
    let calls = turn["tool_calls"].as_array().unwrap().iter().enumerate().map(|(index, call)| {
        json!({"index": index, "id": format!("call_{index}"), "type": "function", "function": {
            "name": call["name"].as_str().unwrap().replace('.', "_"),
            "arguments": call["arguments"].to_string(),
        }})
    });
    let delta = json!({"role": "assistant", "content": turn["text"], "tool_calls": calls.collect::<Vec<_>>()});
    let chunk = |choices: Value| json!({"id": "c", "object": "chat.completion.chunk", "model": "big", "choices": choices});
    let mut last = chunk(json!([]));
    last["usage"] = json!({"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100,
        "prompt_tokens_details": {"cached_tokens": 400}});
    let parts = [
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}])),
        chunk(json!([{"index": 0, "delta": {}, "finish_reason": "tool_calls"}])),
        last,
    ];
    let events: String = parts.iter().map(|part| format!("data: {part}\n\n")).collect();
    format!("{events}data: [DONE]\n\n")
}

/// Settings with one provider: the server, with a key and prices.
pub(crate) fn settings(user: &User, server: &Server, more: &str) -> std::path::PathBuf {
    let home = user.project.path("config");
    let dir = home.join("fluffy");
    std::fs::create_dir_all(&dir).unwrap();
    let text = format!(
        "provider: work\nproviders:\n  work:\n    protocol: openai-compatible\n    url: http://127.0.0.1:{}/v1\n    \
         model: big\n    key: env:WORK_KEY\n    prices: {{input: 2, cached: 0.5, output: 10}}\n{more}",
        server.port
    );
    std::fs::write(dir.join("config.yaml"), text).unwrap();
    home
}

fn answered(mut command: Command, config: &Path) -> Answer {
    command.env("XDG_CONFIG_HOME", config).env("WORK_KEY", KEY).env("ANTHROPIC_API_KEY", KEY);
    Answer::of(command.stdin(Stdio::null()).output().unwrap())
}

/// A task in a Python project, without naming a provider.
fn task(lab: &Lab, config: &Path, options: &[&str]) -> Answer {
    let mut args = vec!["run"];
    args.extend(options);
    args.push("add a function that doubles");
    let like = lab.command(&[], &[]);
    let mut command = lab.user.command(&args);
    for (name, value) in like.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    answered(command, config)
}

#[test]
fn cha_6_models_are_listed_through_the_sandbox_and_the_key_is_tested() {
    let (user, server) = (User::new(), Server::new(vec![]));
    let config = settings(&user, &server, "");
    let models = answered(user.command(&["models"]), &config);
    assert_eq!(models.code, 0, "{}", models.err);
    let lines: Vec<&str> = models.out.lines().collect();
    assert!(lines[0].starts_with("tiny ") && lines[1].starts_with("big "), "{}", models.out);
    assert!(lines[1].contains("$2.00 in, $10.00 out for a million tokens"), "{}", models.out);
    let json = answered(user.command(&["models", "work", "--json"]), &config).json_lines();
    assert_eq!(
        (&json[1]["id"], &json[1]["usd_per_million"]["cached"]),
        (&"big".into(), &"0.50".into())
    );
    let test = answered(user.command(&["auth", "test", "work"]), &config);
    assert!(test.code == 0 && test.out.contains("models: 2"), "{}{}", test.out, test.err);
    for sent in server.sent() {
        assert_eq!(sent.key.as_deref(), Some(&*format!("Bearer {KEY}")));
        assert!(sent.line.starts_with("GET /v1/models "), "{}", sent.line);
    }
}

#[test]
fn cha_6_a_server_that_is_not_there_is_a_failure_of_the_provider_with_what_to_do() {
    let user = User::new();
    let server = Server::new(vec![]);
    let config = settings(&user, &Server { port: 1, sent: server.sent }, "");
    let models = answered(user.command(&["models"]), &config);
    assert_eq!(models.code, 5, "{}{}", models.out, models.err);
    for part in ["ERROR: ", "Reason: ", "Fix: "] {
        assert!(models.err.contains(part), "{}", models.err);
    }
    assert!(!models.err.contains("THEKEY"), "{}", models.err);
}

#[test]
fn cha_6_a_wrong_key_is_told_with_what_to_do_and_not_shown() {
    let (user, server) = (User::new(), Server::new(vec![]));
    let config = settings(&user, &server, "");
    let mut command = user.command(&["auth", "test", "work"]);
    command.env("XDG_CONFIG_HOME", &config).env("WORK_KEY", "wk-wrong-4711-wrong");
    let answer = Answer::of(command.stdin(Stdio::null()).output().unwrap());
    assert_eq!(answer.code, 5, "{}{}", answer.out, answer.err);
    assert!(answer.err.contains("the provider refused the key"), "{}", answer.err);
    assert!(answer.err.contains("set the provider's key again"), "{}", answer.err);
    assert!(!answer.err.contains("4711"), "{}", answer.err);
}

#[test]
fn cha_6_a_server_that_says_nothing_is_given_up_after_the_time_in_the_settings() {
    let user = User::new();
    // Connections stand, and nobody ever answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = Server { port, sent: Arc::default() };
    let config = settings(&user, &server, "    timeouts: {first_byte: 200ms}\n");
    let answer = answered(user.command(&["models"]), &config);
    assert_eq!(answer.code, 5, "{}{}", answer.out, answer.err);
    assert!(answer.err.contains("said nothing for 200 ms"), "{}", answer.err);
}

#[test]
fn cha_6_what_a_model_is_sent_fits_into_the_window_of_the_settings() {
    let lab = Lab::new(Language::Python);
    lab.user.write("large.txt", &"all work and no play\n".repeat(2_000));
    let read = || say("", &[call("fs.read", json!({"path": "large.txt"}))]);
    let server = Server::new(vec![read(), read(), read(), read()]);
    let config =
        settings(&lab.user, &server, "    context_window: 9000\n    max_output_tokens: 500\n");
    task(&lab, &config, &["--json"]);
    let sent: Vec<_> =
        server.sent().into_iter().filter(|sent| sent.line.starts_with("POST")).collect();
    assert!(sent.len() >= 4, "{}", sent.len());
    for sent in sent {
        let body: Value = serde_json::from_str(&sent.body).unwrap();
        assert!(body["max_tokens"].as_u64().unwrap() <= 500, "{}", body["max_tokens"]);
        // A guess is six bytes a token at most; the file alone is 42 KB.
        assert!(sent.body.len() < 9_000 * 6, "{}", sent.body.len());
    }
}

#[test]
fn ai_4_a_task_driven_by_a_server_costs_what_its_tokens_cost() {
    let lab = Lab::new(Language::Python);
    let server = Server::new(lab.good_turns());
    let config = settings(&lab.user, &server, "");
    let run = task(&lab, &config, &["--json"]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert_eq!(lab.user.read("sums.py"), lab.language.solution());
    let events = run.json_lines();
    let usage: Vec<_> = events.iter().filter(|event| event["type"] == "usage").collect();
    // 600 at 2 dollars a million, 400 cached at 0.5, 100 received at 10.
    assert_eq!(
        (&usage[0]["cost_usd"], &usage[0]["cached_tokens"]),
        (&"0.0024".into(), &400.into())
    );
    let started = events.iter().find(|event| event["type"] == "session.started").unwrap();
    assert_eq!((&started["provider"], &started["model"]), (&"work".into(), &"big".into()));
    let show = lab.user.run(&["session", "show"]);
    assert!(show.out.contains("work big"), "{}", show.out);
    assert!(show.out.contains("6000 tokens in (2400 cached), 600 out, $0.0144"), "{}", show.out);
    let json = lab.user.run(&["session", "show", "--json"]).json_lines();
    assert_eq!(
        (&json[0]["cost_usd"], &json[0]["usage"]["input_tokens"]),
        (&"0.0144".into(), &6000.into())
    );
    for asked in server.asked() {
        assert_eq!((&asked["model"], &asked["stream"]), (&"big".into(), &true.into()));
    }
}

#[test]
fn tokens_and_cost_are_shown_to_people_in_one_quiet_line_a_turn() {
    let lab = Lab::new(Language::Python);
    let server = Server::new(lab.good_turns());
    let config = settings(&lab.user, &server, "");
    let run = task(&lab, &config, &[]);
    assert_eq!(run.code, 0, "{}", run.err);
    let line = "1000 tokens in (400 cached), 100 out · $0.0024";
    assert_eq!(run.err.matches(line).count(), 6, "{}", run.err);
    assert!(run.err.contains("6000 tokens in (2400 cached), 600 out · $0.0144"), "{}", run.err);
}

#[test]
fn a_cap_on_cost_stops_before_the_call_that_would_pass_it_and_resume_goes_on_with_the_same_model() {
    let lab = Lab::new(Language::Python);
    let server = Server::new(lab.good_turns());
    let config = settings(&lab.user, &server, "");
    let run = task(&lab, &config, &["--json", "--max-cost", "0.015"]);
    assert_eq!(run.code, 7, "{}{}", run.out, run.err);
    let events = run.json_lines();
    let spent: f64 = events
        .iter()
        .filter_map(|event| event["cost_usd"].as_str())
        .map(|cost| cost.parse::<f64>().unwrap())
        .sum();
    assert!(spent <= 0.015, "{spent}");
    let asked = server.asked().len();
    assert!(asked < lab.good_turns().len(), "{asked}");
    let failed = events.last().unwrap();
    assert!(failed["why"].as_str().unwrap().contains("the cap of $0.015"), "{failed}");
    // Without naming provider or model: both are of the session.
    std::fs::write(
        config.join("fluffy/config.yaml"),
        std::fs::read_to_string(config.join("fluffy/config.yaml"))
            .unwrap()
            .replace("provider: work\n", "")
            .replace("model: big", "model: other"),
    )
    .unwrap();
    let like = lab.command(&[], &[]);
    let mut command = lab.user.command(&["session", "resume", "--json", "--max-cost", "5"]);
    for (name, value) in like.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let resumed = answered(command, &config);
    assert_eq!(resumed.code, 0, "{}{}", resumed.out, resumed.err);
    assert!(server.asked().iter().all(|asked| asked["model"] == "big"));
    assert_eq!(lab.user.read("sums.py"), lab.language.solution());
}

/// Prints the environment, and looks for the key in every process and file that can be seen.
const SEARCH: &str = "\
import os, pathlib
key = 'THE' + 'KEY'
print('ENV', sorted(os.environ))
found = []
for name in ('environ', 'cmdline', 'maps', 'root', 'cwd', 'fd'):
    for path in pathlib.Path('/proc').glob('[0-9]*/' + name):
        try:
            text = path.read_bytes() if path.is_file() else str(sorted(os.listdir(path))).encode()
        except OSError as error:
            continue
        if key.encode() in text:
            found.append(str(path))
told = f'VALUES {any(key in value for value in os.environ.values())} FOUND {found}'
print(told)
";

#[test]
fn no_process_of_a_session_ever_sees_a_key() {
    let lab = Lab::new(Language::Python);
    let search = format!(
        "def test_looks():\n    scope = {{}}\n    exec({SEARCH:?}, scope)\n    assert False, scope['told']\n"
    );
    let turns = vec![
        say("", &[call("shell.run", json!({"command": "python3", "args": ["-c", SEARCH]}))]),
        say("", &[call("fs.write", json!({"path": "test_double.py", "content": search}))]),
        say("", &[run_tests()]),
    ];
    let server = Server::new(turns);
    let config = settings(&lab.user, &server, "");
    let run = task(&lab, &config, &["--json"]);
    let asked = server.asked();
    assert!(asked.len() >= 4, "{}{}", run.out, run.err);
    let last = asked.last().unwrap().to_string();
    assert!(last.contains("VALUES False FOUND []"), "{last}");
    assert!(last.contains("ENV ["), "{last}");
    assert_eq!(last.matches("VALUES False FOUND []").count(), 2, "{last}");
    for text in [last.as_str(), &run.out, &run.err] {
        assert!(!text.contains("THEKEY"), "{text}");
    }
    let kept = Command::new("grep")
        .args(["-rl", "THEKEY"])
        .arg(lab.user.project.path(""))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&kept.stdout), "");
}

#[test]
fn a_model_on_the_own_machine_costs_nothing_whatever_the_cap() {
    let lab = Lab::new(Language::Python);
    let server = Server::new(lab.good_turns());
    let config = settings(&lab.user, &server, "");
    let file = config.join("fluffy/config.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let free = text.replace("    prices: {input: 2, cached: 0.5, output: 10}\n", "");
    assert_ne!(text, free);
    std::fs::write(&file, free).unwrap();
    let models = answered(lab.user.command(&["models"]), &config);
    assert!(models.out.lines().all(|line| line.ends_with("free")), "{}", models.out);
    let run = task(&lab, &config, &["--max-cost", "0.000001"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.contains("· $0.00"), "{}", run.err);
}
