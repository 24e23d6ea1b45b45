//! What plugins do that do what they should.

use std::sync::Arc;
use std::time::Duration;

use fluffy_kernel::schedule::Stage as At;
use fluffy_kernel::{Guest, Package, PluginChange, Stage as Life, Telling};
use fluffy_sandbox::{Config, Job, Template};
use serde_json::json;

use crate::scene::{Scene, handler, named, python};

const READS: &str = "required_capabilities: [fs.read]\nreads: [src]\n";

fn echo() -> Package {
    python(
        "echo_it",
        "",
        &handler("echo_it", "return {'text': arguments['text'], 'mode': context.session_mode}"),
    )
}

#[test]
fn plg_1_a_plugin_is_installed_registered_loaded_at_its_first_call_and_unloaded() {
    let scene = Scene::with(echo());
    let stage = scene.start();
    assert_eq!(stage.surveyed[0].stage, Life::Registered);
    assert_eq!(scene.recorded(), ["installed", "REGISTERED"]);
    for text in ["one", "two"] {
        let given = stage.call("echo_it.try", json!({ "text": text })).unwrap();
        assert_eq!(given, json!({ "text": text, "mode": null }));
    }
    stage.close();
    assert_eq!(scene.recorded(), ["installed", "REGISTERED", "LOADED", "ACTIVE", "UNLOADED"]);
}

#[test]
fn plg_2_a_plugin_sees_the_folders_it_asks_for_without_what_the_rules_keep() {
    let body = "names = context.list_dir('src')\n\
                text = context.read_file('src/main.py')\n\
                seen = {name: os.path.exists(os.path.join(context.project, name)) for name in ('private', 'src/.env')}\n\
                return {'names': names, 'text': text, 'seen': seen, 'there': context.file_exists('src/main.py')}";
    let scene = Scene::with(python("look", READS, &handler("look", body)));
    let given = scene.start().call("look.try", json!({})).unwrap();
    assert_eq!(given["names"], json!(["main.py"]));
    assert_eq!(given["text"], "# says hello\nprint('hi')\n");
    assert_eq!(given["seen"], json!({ "private": false, "src/.env": false }));
    assert_eq!(given["there"], true);
}

#[test]
fn a_file_that_is_kept_from_the_model_and_appears_later_is_not_seen_either() {
    let scene =
        Scene::with(python("look", READS, &handler("look", "return context.list_dir('src')")));
    let stage = scene.start();
    assert_eq!(stage.call("look.try", json!({})), Ok(json!(["main.py"])));
    std::fs::write(scene.dir.path().join("project/src/new.py"), "").unwrap();
    std::fs::write(scene.dir.path().join("project/src/id_rsa"), "key").unwrap();
    assert_eq!(stage.call("look.try", json!({})), Ok(json!(["main.py", "new.py"])));
}

#[test]
fn what_a_plugin_writes_is_its_own_and_no_file_of_the_project() {
    let body = "context.write_file('src/out.txt', 'mine')\n\
                try:\n    open(os.path.join(context.project, 'src/main.py'), 'w')\n\
                except OSError as error:\n    return {'own': context.read_file('src/out.txt'), 'refused': True}\n\
                return {}";
    let scene = Scene::with(python("writes", READS, &handler("writes", body)));
    let given = scene.start().call("writes.try", json!({})).unwrap();
    assert_eq!(given, json!({ "own": "mine", "refused": true }));
    assert!(!scene.dir.path().join("project/src/out.txt").exists());
}

#[test]
fn programs_are_run_as_words_where_the_manifest_asks_for_it() {
    let body = "return context.run(['echo', '$HOME;', 'x']).stdout";
    let asks = "required_capabilities: [shell.run]\n";
    let scene = Scene::with(python("runs", asks, &handler("runs", body)));
    assert_eq!(scene.start().call("runs.try", json!({})), Ok(json!("$HOME; x\n")));
    let scene = Scene::with(python("runs", "", &handler("runs", body)));
    let why = scene.start().fails("runs.try");
    assert!(why.contains("its manifest does not ask for `shell.run`"), "{why}");
}

#[test]
fn an_error_of_a_tool_is_an_answer_and_the_plugin_goes_on() {
    let body = "if arguments.get('text') == 'bad':\n    raise ToolError('that is bad')\n\
                if arguments.get('text') == 'worse':\n    return 1 / 0\n\
                print('words for people')\n\
                return 'fine'";
    let scene = Scene::with(python("odd", "", &handler("odd", body)));
    let stage = scene.start();
    let call = |text: &str| stage.call("odd.try", json!({ "text": text }));
    assert!(call("bad").unwrap_err().ends_with("plugin odd: that is bad"));
    assert!(call("worse").unwrap_err().contains("ZeroDivisionError"));
    assert_eq!(call("good"), Ok(json!("fine")));
    assert_eq!(scene.recorded(), ["installed", "REGISTERED", "LOADED", "ACTIVE"]);
}

#[test]
fn pol_5_rules_know_the_tools_of_plugins_by_the_tag_that_the_kernel_gives() {
    let scene = Scene::with(echo());
    let receipt = scene.start().submit("echo_it.try", json!({ "text": "x" }));
    assert_eq!(receipt.rule.as_deref(), Some("plugins-that-read"));
    let mut strict = scene;
    strict.policy = strict.policy.replace(
        "match: { syscall: \"*\", caller_tag: third_party, side_effect: READ_ONLY }\n    action: allow\n    constraints: { require_sandbox: L2 }",
        "match: { syscall: \"*\", caller_tag: third_party }\n    action: deny",
    );
    let stage = strict.start();
    let receipt = stage.submit("echo_it.try", json!({ "text": "x" }));
    assert_eq!(receipt.decision, fluffy_base::Decision::Deny);
    assert_eq!(stage.submit("echo", json!({ "text": "x" })).decision, fluffy_base::Decision::Allow);
}

#[test]
fn what_a_killed_kernel_left_of_a_running_plugin_is_removed_by_the_next() {
    let scene = Scene::with(echo());
    let left = scene.plugin_dir().join("run/echo_it-1-1");
    std::fs::create_dir_all(&left).unwrap();
    let stage = scene.start();
    assert!(!left.exists());
    stage.call("echo_it.try", json!({ "text": "x" })).unwrap();
    let running = || std::fs::read_dir(scene.plugin_dir().join("run")).unwrap().count();
    assert_eq!(running(), 1);
    stage.plugins.unload(&stage.kernel);
    assert_eq!(running(), 0);
}

#[test]
fn pol_5_a_tag_of_a_plugin_is_recorded_with_its_calls() {
    let scene = Scene::with(echo());
    let stage = scene.start();
    stage.call("echo_it.try", json!({ "text": "x" })).unwrap();
    stage.call("echo", json!({ "text": "x" })).unwrap();
    stage.close();
    assert_eq!(scene.tags_of("echo_it.try"), Some(r#"["third_party"]"#.to_owned()));
    assert_eq!(scene.tags_of("echo"), None);
}

#[test]
fn a_plugin_that_a_person_disabled_is_not_there_until_it_is_enabled() {
    let scene = Scene::with(echo());
    let name = || named("echo_it");
    let why = "not today".to_owned();
    scene.start().change(PluginChange::Disable { name: name(), why }).unwrap();
    let stage = scene.start();
    assert_eq!(stage.surveyed[0].stage, Life::Disabled);
    assert_eq!(stage.surveyed[0].reasons, ["not today (by ada)"]);
    let receipt = stage.submit("echo_it.try", json!({ "text": "x" }));
    assert!(receipt.error.unwrap().contains("is not registered"));
    stage.change(PluginChange::Enable(name())).unwrap();
    assert_eq!(stage.person.asked.lock().unwrap().as_slice(), ["disabled by ada: not today"]);
    stage.close();
    assert_eq!(scene.start().surveyed[0].stage, Life::Registered);
}

#[test]
fn plg_2_a_plugin_works_when_it_is_its_turn_and_takes_no_seat_while_it_waits_for_calls() {
    let scene = Scene::with(echo());
    let stage = scene.start();
    let call = || stage.call("echo_it.try", json!({ "text": "one" })).unwrap();
    call();
    assert_eq!(stage.scheduler.tasks(), [], "it is loaded, and nobody speaks with it");
    let config = Config::of(Template::CodeExecutor).staying();
    let other =
        Guest::start(&*stage.runtime, config, Job::new("cat"), 64, Telling::now(&Arc::default()));
    let mut other = other.unwrap();
    assert_eq!(other.engage(Duration::from_secs(60)), Ok(true));
    std::thread::scope(|scope| {
        let called = scope.spawn(call);
        while !stage.scheduler.tasks().iter().any(|task| task.stage == At::Queued) {
            assert!(!called.is_finished(), "it was called while another had the only seat");
            std::thread::yield_now();
        }
        other.rest();
        assert_eq!(called.join().unwrap()["text"], "one");
    });
    assert_eq!(stage.scheduler.tasks(), []);
}
