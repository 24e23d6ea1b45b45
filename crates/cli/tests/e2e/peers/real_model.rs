//! A real model behind llama.cpp's own server: too small to be judged, real enough for protocol, sandbox and kernel.
//!
//! `scripts/real-model` installs both and runs these tests.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{Address, Scene, Vendor, key};
use crate::program::Answer;
use crate::task::lab::{Lab, Language};

/// The server, while it runs.
struct RealModel {
    process: Child,
    address: String,
}

impl RealModel {
    /// Starts it with a window of so many tokens.
    fn start(vendor: Vendor, window: u32) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = root.join("../../target/tools/model/bin/python");
        assert!(python.exists(), "no model at {}: run scripts/real-model", python.display());
        let mut process = Command::new(python)
            .arg(root.join("tests/peers/model.py"))
            .args([key(vendor), window.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let address = lines.find_map(|line| {
            let line = line.unwrap();
            Some(line.split_once("listening on ")?.1.trim().to_owned())
        });
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address: address.unwrap() }
    }

    fn address(&self, vendor: Vendor) -> Address {
        let url = format!("{}{}", self.address, vendor.base());
        Address { vendor, url, authority: None }
    }
}

impl Drop for RealModel {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _gone = self.process.wait();
    }
}

/// Settings in which the model sees so many tokens.
fn scene(model: &RealModel, vendor: Vendor, window: u32) -> Scene {
    let scene = Scene::new(Lab::new(Language::Python), &[model.address(vendor)]);
    let file = scene.settings().join("config.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let name = format!("model: {}", vendor.model());
    let text = text.replace("context_window: 200000", &format!("context_window: {window}"));
    let text = text.replace(&name, "model: smollm2\n    max_output_tokens: 160");
    std::fs::write(&file, text).unwrap();
    scene
}

/// Where what happened is kept for whoever wants to see it.
fn told(vendor: Vendor) -> PathBuf {
    let name = format!("real-model-{}.jsonl", vendor.protocol());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn check(vendor: Vendor) {
    let model = RealModel::start(vendor, 8192);
    let scene = scene(&model, vendor, 8192);
    let before = scene.lab.snapshot();
    let provider = format!("peer-{}", vendor.protocol());
    let task = "add a function `double` to sums.py, with a test";
    let args = ["run", "--json", "--yes", "--max-turns", "2", "--provider", &provider, task];
    let answer = scene.answer(&args);
    std::fs::write(told(vendor), &answer.out).unwrap();
    let said = format!("{}{}", answer.out, answer.err);
    assert!(matches!(answer.code, 0 | 1 | 5 | 7), "{said}");
    let events = answer.json_lines();
    let used: Vec<&Value> = events.iter().filter(|event| event["type"] == "usage").collect();
    assert!(!used.is_empty(), "the model was never asked: {said}");
    for event in &used {
        assert!(event["input_tokens"].as_u64().unwrap() > 1_000, "{event}");
        assert!(event["output_tokens"].as_u64().unwrap() > 0, "{event}");
    }
    let end = events.last().unwrap()["type"].as_str().unwrap();
    assert_eq!(end == "task.completed", answer.code == 0, "{said}");
    let merged = events.iter().any(|event| event["type"] == "merge.completed");
    if !merged {
        assert_eq!(scene.lab.snapshot(), before, "{said}");
    }
    let verified = scene.lab.user.run(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    scene.check_secret(&answer);
}

#[test]
#[ignore = "needs a model: scripts/real-model"]
fn real_model_over_chat_completions() {
    check(Vendor::Compatible);
}

#[test]
#[ignore = "needs a model: scripts/real-model"]
fn real_model_over_responses() {
    check(Vendor::Responses);
}

#[test]
#[ignore = "needs a model: scripts/real-model"]
fn real_model_over_messages() {
    check(Vendor::Messages);
}

#[test]
#[ignore = "needs a model: scripts/real-model"]
fn real_model_is_listed_and_its_refusals_are_understood() {
    for vendor in [Vendor::Compatible, Vendor::Responses, Vendor::Messages] {
        check_refusals(vendor);
    }
}

fn check_refusals(vendor: Vendor) {
    let model = RealModel::start(vendor, 1024);
    let scene = scene(&model, vendor, 8192);
    let provider = format!("peer-{}", vendor.protocol());
    let models = scene.answer(&["models", &provider, "--json"]);
    assert_eq!(models.code, 0, "{}", models.err);
    assert_eq!(models.json_lines()[0]["id"], "smollm2", "{}", models.out);

    // The server has less room than the settings say.
    let long = scene.answer(&["run", "--json", "--provider", &provider, "say hello"]);
    let failed = long.json_lines().pop().unwrap();
    assert_eq!((long.code, &failed["type"]), (5, &"task.failed".into()), "{}", long.out);
    let what = failed["what"].as_str().unwrap();
    assert!(what.starts_with("the conversation is too long for the model: "), "{what}");

    let mut command = scene.command(&["models", &provider]);
    command.env(super::variable(vendor), "wk-wrong-0123456789");
    let refused = Answer::of(command.stdin(Stdio::null()).output().unwrap());
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("refused the key"), "{}", refused.err);
}
