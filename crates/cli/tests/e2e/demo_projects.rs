//! The demo's projects, played by hand in a sandbox: red before the code, green after it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::program::{Answer, User};

/// One language of the demo.
struct Demo {
    user: User,
    language: &'static str,
    /// What runs all tests.
    test: Vec<String>,
    /// What of this machine the tests need to see.
    shown: Vec<PathBuf>,
}

impl Demo {
    fn new(language: &'static str, test: &[&str]) -> Self {
        let user = User::new();
        let from = shipped(language).join("project");
        for file in files(&from) {
            let text = std::fs::read_to_string(from.join(&file)).unwrap();
            user.write(file.to_str().unwrap(), &text);
        }
        let test = test.iter().map(|word| (*word).to_owned()).collect();
        Self { user, language, test, shown: Vec::new() }
    }

    fn run(&self) -> Answer {
        let mut args = vec!["sandbox".to_owned(), "run".to_owned()];
        for path in &self.shown {
            args.extend(["--show".to_owned(), path.display().to_string()]);
        }
        args.push("--".to_owned());
        args.extend(self.test.iter().cloned());
        let mut command = self.user.command(&args);
        // The user's own toolchains, as `fluffy demo` would use them.
        command.env("HOME", std::env::var_os("HOME").unwrap_or_default());
        Answer::of(command.stdin(Stdio::null()).output().unwrap())
    }

    /// Plays the transcript: what is denied is not done, runs of tests are red and then green.
    fn play(&self) {
        assert_eq!(self.run().code, 0, "the project is green before the task");
        let text =
            std::fs::read_to_string(shipped(self.language).join("transcript.jsonl")).unwrap();
        let turns: Vec<Value> =
            text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut runs = Vec::new();
        for (at, turn) in turns.iter().enumerate() {
            let next = turns.get(at + 1).and_then(|next| next.pointer("/expect/0/decision"));
            let is_denied = next.and_then(Value::as_str) == Some("denied");
            for call in turn.get("tool_calls").unwrap().as_array().unwrap() {
                let of = |name: &str| call.pointer(name).and_then(Value::as_str);
                match of("/name").unwrap() {
                    "fs.write" if !is_denied => {
                        let (path, content) = (of("/arguments/path"), of("/arguments/content"));
                        self.user.write(path.unwrap(), content.unwrap());
                    }
                    "test.run" => runs.push(self.run()),
                    _ => {}
                }
            }
        }
        let said: Vec<_> = runs.iter().map(|run| format!("{}{}", run.out, run.err)).collect();
        let codes: Vec<_> = runs.iter().map(|run| run.code == 0).collect();
        assert_eq!(codes, [false, true], "{said:#?}");
    }
}

fn shipped(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(language)
}

/// Every file below a directory, by its path from there.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in std::fs::read_dir(next).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.push(path.strip_prefix(dir).unwrap().to_owned());
            }
        }
    }
    found
}

#[test]
fn the_javascript_demo_is_red_before_the_code_and_green_after_it() {
    Demo::new("javascript", &["node", "--test"]).play();
}

#[test]
fn the_rust_demo_is_red_before_the_code_and_green_after_it() {
    Demo::new("rust", &["cargo", "test", "--offline", "--quiet", "--no-fail-fast"]).play();
}

#[test]
fn the_python_demo_is_red_before_the_code_and_green_after_it() {
    // The environment that `scripts/test` makes.
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/py");
    let place = std::fs::canonicalize(&place);
    let place = place.expect("pytest: run scripts/test once, which makes target/tools/py");
    let python = place.join("bin/python").display().to_string();
    let demo = Demo::new("python", &[&python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    Demo { shown: vec![place], ..demo }.play();
}
