//! What is installed, after whom was asked, and what is rejected.

use std::fs;

use fluffy_kernel::{PluginChange, PluginError, Stage as Life};

use crate::scene::{Scene, handler, manifest, named, package, python};

fn refusal(text: &str) -> String {
    package(&[("plugin.yaml", text), ("main.py", "")]).unwrap_err().to_string()
}

#[test]
fn plg_1_a_manifest_with_anything_that_it_cannot_say_is_refused_at_its_line() {
    let good = manifest("good", "");
    package(&[("plugin.yaml", &good), ("main.py", "")]).unwrap();
    for (from, to, place, words) in [
        ("runtime: python", "runtim: python", "plugin.yaml:4:1", "unknown key `runtim`"),
        ("runtime: python", "runtime: ruby", "plugin.yaml:4:10", "native, node, deno or python"),
        ("name: good", "name: Good One", "plugin.yaml:1:7", "lower-case letters"),
        ("entry: main.py", "entry: ../main.py", "plugin.yaml:5:8", "leads out of the project"),
        ("timeout_ms: 10000", "timeout_ms: 0", "plugin.yaml:10:", "a call takes 1 to"),
        ("timeout_ms: 10000", "time_out: 1", "plugin.yaml:10:", "unknown key `tools[0].time_out`"),
        (
            "type: object, prop",
            "type: array, prop",
            "plugin.yaml:11:",
            "the type of parameters is `object`",
        ),
        ("type: string", "type: strong", "plugin.yaml:11:", "it is no JSON Schema"),
        ("good.try", "try", "plugin.yaml:8:", "a tool is called GROUP.NAME"),
        ("min_api_version: 1\n", "", "plugin.yaml:1:1", "`min_api_version` is missing"),
    ] {
        assert!(good.contains(from), "{from}");
        let error = refusal(&good.replace(from, to));
        assert!(error.starts_with(place) && error.contains(words), "{to}: {error}");
    }
    for (more, words) in [
        ("reads: [src]\n", "go together"),
        ("required_capabilities: [fs.read]\n", "go together"),
        ("hosts: [example.org]\n", "go together"),
        ("sandbox_template: integration-test\n", "go together"),
        ("sandbox_template: policy-sandbox\n", "code-executor or integration-test"),
        ("author: \"a\\u001b[31mb\"\n", "control characters"),
    ] {
        let error = refusal(&manifest("good", more));
        assert!(error.contains(words), "{more}: {error}");
    }
}

#[test]
fn files_that_are_no_plugin_are_refused() {
    let good = manifest("good", "");
    assert_eq!(package(&[("main.py", "")]).unwrap_err().to_string(), "there is no `plugin.yaml`");
    let error = package(&[("plugin.yaml", &good)]).unwrap_err().to_string();
    assert_eq!(error, "the entry `main.py` is not among its files");
    let files = [("plugin.yaml", good.as_str()), ("main.py", ""), ("Main.py", "")];
    assert_eq!(package(&files).unwrap_err().to_string(), "`main.py` stands twice among its files");
    let native = good.replace("runtime: python", "runtime: native");
    assert!(refusal(&native).contains("is not executable"));
}

#[test]
fn plg_3_a_person_sees_what_a_plugin_asks_for_before_it_is_installed() {
    let mut scene = Scene::new();
    scene.agrees = false;
    let stage = scene.start();
    let asks = "author: Eve\nrequired_capabilities: [fs.read, shell.run]\nreads: [src]\n";
    let error = stage.install(python("look", asks, &handler("look", "return 1"))).unwrap_err();
    assert!(matches!(error, PluginError::Denied { .. }), "{error}");
    let asked = stage.person.asked.lock().unwrap().join("\n");
    for line in [
        "plugin: look 1.0.0: Tries something",
        "author, by its own word: Eve",
        "runs: main.py with python",
        "reads of the project: src",
        "reaches on the network: nothing",
        "needs: fs.read, shell.run",
        "changes of the project: nothing",
        "tool look.try: Tries it",
        "3 files, together ",
        "main.py is ",
    ] {
        assert!(asked.contains(line), "{line}: {asked}");
    }
    drop(stage);
    assert_eq!(scene.start().surveyed, []);
    assert!(!scene.plugin_dir().join("store").exists(), "nothing is kept of it");
}

#[test]
fn plg_1_what_the_policy_does_not_allow_is_rejected_with_reasons() {
    let mut scene = Scene::new();
    let stage = scene.start();
    for (more, words) in [
        (
            "required_capabilities: [fs.write]\n",
            "no plugin can have `fs.write` (there are: fs.read, shell.run)",
        ),
        ("required_capabilities: [net.raw]\n", "no plugin can have `net.raw`"),
        (
            "sandbox_template: integration-test\nhosts: [169.254.169.254]\n",
            "its hosts cannot be allowed",
        ),
    ] {
        let error = stage.install(python("asks", more, "")).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let node = manifest("asks", "").replace("runtime: python", "runtime: node");
    let node = package(&[("plugin.yaml", &node), ("main.py", "")]).unwrap();
    let error = stage.install(node).unwrap_err().to_string();
    assert!(error.contains("there is no `node` on this machine"), "{error}");
    stage.install(python("runs", "required_capabilities: [shell.run]\n", "")).unwrap();
    stage.close();
    assert_eq!(scene.recorded().iter().filter(|it| *it == "REJECTED").count(), 4);
    // The policy changes, and so does what can be registered.
    let allowed = "match: { syscall: [test.run, shell.run] }\n    action: allow\n    constraints: { require_sandbox: L2 }";
    assert!(scene.policy.contains(allowed));
    let denied = "match: { syscall: [test.run, shell.run] }\n    action: deny";
    scene.policy = scene.policy.replace(allowed, denied);
    let stage = scene.start();
    assert_eq!(stage.surveyed[0].stage, Life::Rejected);
    assert!(
        stage.surveyed[0].reasons[0].starts_with("it needs `shell.run`: deny"),
        "{:?}",
        stage.surveyed
    );
    assert!(
        stage
            .submit("runs.try", serde_json::json!({}))
            .error
            .unwrap()
            .contains("is not registered")
    );
}

#[test]
fn another_version_takes_the_place_of_the_one_before_and_is_shown_with_it() {
    let scene = Scene::with(python("grows", "", &handler("grows", "return 1")));
    let before = scene.start().plugins.roll().unwrap().plugins()[0].package;
    let stage = scene.start();
    stage.install(python("grows", "", &handler("grows", "return 2"))).unwrap();
    let asked = stage.person.asked.lock().unwrap().join("\n");
    assert!(asked.contains(&format!("replaces: version 1.0.0 ({before})")), "{asked}");
    stage.close();
    let stage = scene.start();
    assert_eq!(stage.call("grows.try", serde_json::json!({})), Ok(serde_json::json!(2)));
    let kept = fs::read_dir(scene.plugin_dir().join("store")).unwrap().count();
    assert_eq!(kept, 1, "the files of the one before are gone");
}

#[test]
fn what_is_removed_is_gone_and_the_ledger_remembers_it() {
    let scene = Scene::with(python("brief", "", &handler("brief", "return 1")));
    let stage = scene.start();
    let done = stage.change(PluginChange::Remove(named("brief"))).unwrap();
    assert_eq!((done.change.as_str(), done.by.as_str()), ("removed", "ada"));
    let again = stage.change(PluginChange::Remove(named("brief"))).unwrap_err();
    assert_eq!(again.to_string(), "there is no plugin `brief`");
    stage.close();
    assert_eq!(scene.start().surveyed, []);
    assert_eq!(fs::read_dir(scene.plugin_dir().join("store")).unwrap().count(), 0);
    assert_eq!(scene.recorded(), ["installed", "REGISTERED", "removed"]);
}

#[test]
fn what_lies_in_the_store_and_was_never_agreed_to_is_no_plugin() {
    let scene = Scene::with(python("real", "", &handler("real", "return 1")));
    let store = scene.plugin_dir().join("store");
    let forged = store.join("0".repeat(64));
    fs::create_dir(&forged).unwrap();
    fs::write(forged.join("plugin.yaml"), manifest("forged", "")).unwrap();
    fs::write(forged.join("main.py"), "").unwrap();
    let stage = scene.start();
    let names: Vec<_> = stage.surveyed.iter().map(|it| it.installed.name.as_str()).collect();
    assert_eq!(names, ["real"]);
}
