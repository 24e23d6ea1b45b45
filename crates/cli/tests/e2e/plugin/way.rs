//! The way of a plugin on the command line.

use serde_json::json;

use super::lab::{Lab, sdk};

#[test]
fn plg_1_a_plugin_is_installed_listed_shown_called_disabled_enabled_and_removed() {
    let lab = Lab::new();
    lab.user.write("src/a.py", "# HACK: write it\n");
    let dir = sdk().join("python/examples/todo");
    let asked = lab.install(&dir).err;
    for line in ["reads of the project: src, crates, lib, app", "tool todo.find: ", "main.py is "] {
        assert!(asked.contains(line), "{line}: {asked}");
    }
    let listed = lab.done(&["list", "--json"]).json_lines();
    let names: Vec<_> = listed.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["fs", "search", "git", "test", "todo"]);
    assert_eq!(listed[0]["tags"], json!(["core_plugin", "trusted_write"]));
    assert_eq!(
        (&listed[4]["tags"], &listed[4]["stage"]),
        (&json!(["third_party"]), &json!("REGISTERED"))
    );
    assert!(lab.done(&["list"]).out.contains("todo                      REGISTERED"));
    assert!(lab.done(&["show", "todo"]).out.contains("reads    src, crates, lib, app"));
    let found = lab.call("todo.find", &json!({}));
    assert_eq!(
        found["found"],
        json!([{ "path": "src/a.py", "line": 1, "word": "HACK", "text": "write it" }])
    );
    lab.done(&["disable", "todo", "--reason", "not today"]);
    let shown = lab.done(&["show", "todo", "--json"]).json_lines().remove(0);
    assert_eq!(
        (&shown["stage"], &shown["disabled"]["why"]),
        (&json!("DISABLED"), &json!("not today"))
    );
    let disabled = lab.plugin(&["call", "todo.find"]);
    assert_eq!(disabled.code, 3, "{}", disabled.err);
    for part in ["`todo` is DISABLED: not today", "fluffy plugin enable todo"] {
        assert!(disabled.err.contains(part), "{part}: {}", disabled.err);
    }
    assert!(lab.agreed(&["enable", "todo"]).err.contains("not today"));
    lab.call("todo.find", &json!({ "words": ["NOTE"] }));
    lab.done(&["remove", "todo"]);
    let gone = lab.plugin(&["show", "todo"]);
    assert_eq!(gone.code, 2);
    assert!(
        gone.err.contains("there is no plugin `todo`") && gone.err.contains("fluffy plugin list")
    );
    let way: Vec<_> = lab.recorded();
    let loaded = ["REGISTERED", "LOADED", "ACTIVE", "UNLOADED"];
    let expected =
        [&["installed"][..], &loaded, &["disabled", "DISABLED", "enabled"], &loaded, &["removed"]];
    assert_eq!(way, expected.concat());
    assert_eq!(lab.user.run(&["audit", "verify"]).code, 0);
}

#[test]
fn a_tool_that_no_plugin_has_is_told_with_those_that_there_are() {
    let lab = Lab::new();
    // Our own tools are no plugin's.
    for (tool, there) in [("no.such", "none is installed"), ("fs.write", "none is installed")] {
        let answer = lab.plugin(&["call", tool]);
        assert_eq!(answer.code, 2, "{}", answer.err);
        assert!(answer.err.contains(there), "{}", answer.err);
    }
    lab.install(&sdk().join("python/examples/todo"));
    let answer = lab.plugin(&["call", "todo.fnd"]);
    assert_eq!(answer.code, 2, "{}", answer.err);
    assert!(answer.err.contains("there are: todo.find"), "{}", answer.err);
}

#[test]
fn plg_3_without_a_person_at_a_terminal_nothing_is_installed() {
    let lab = Lab::new();
    let dir = sdk().join("python/examples/todo");
    let answer = lab.plugin(&["install", dir.to_str().unwrap()]);
    assert_eq!(answer.code, 3, "{}{}", answer.out, answer.err);
    let answer = lab.user.run_typing(&["plugin", "install", dir.to_str().unwrap()], "n\n");
    assert_eq!(answer.code, 3, "{}{}", answer.out, answer.err);
    assert!(!lab.done(&["list"]).out.contains("todo"));
}

#[test]
fn what_is_no_plugin_is_refused_with_its_line_and_what_is_rejected_is_listed_with_its_reason() {
    let lab = Lab::new();
    let dir = lab.user.project.path("sly");
    std::fs::create_dir(&dir).unwrap();
    let install = || lab.plugin(&["install", dir.to_str().unwrap()]);
    assert!(install().err.contains("there is no `plugin.yaml`"));
    let manifest = "name: sly\nversion: \"1\"\ndescription: Sly\nruntime: python\nentry: main.py\n\
                    min_api_version: 1\ntools:\n  - { name: fs.read, description: Reads }\n";
    std::fs::write(dir.join("main.py"), "").unwrap();
    std::fs::write(dir.join("plugin.yaml"), format!("{manifest}networks: [all]\n")).unwrap();
    let answer = install();
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("plugin.yaml:9:1: unknown key `networks`"), "{}", answer.err);
    std::fs::write(dir.join("plugin.yaml"), manifest).unwrap();
    let answer = install();
    assert_eq!(answer.code, 3);
    assert!(answer.err.contains("`fs.read` is a tool of ours"), "{}", answer.err);
    let rejected = lab.done(&["list", "--rejected"]).out;
    assert!(
        rejected.contains("sly") && rejected.contains("`fs.read` is a tool of ours"),
        "{rejected}"
    );
    std::os::unix::fs::symlink("/etc/passwd", dir.join("data")).unwrap();
    assert!(install().err.contains("cannot be a file of a plugin"));
}
