//! A plugin of each template, in a fresh directory: made, installed and called as its first lines say.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::lab::{Lab, sdk, succeeds};

/// Makes a plugin of a template; where it is, and the tool that it has.
fn begun(lab: &Lab, language: &str) -> (PathBuf, String) {
    let name = format!("my-{language}");
    let dir = lab.user.project.path("fresh").join(&name);
    let at = dir.to_str().unwrap();
    let args = ["new", &name, "--language", language, "--dir", at, "--json"];
    let made = lab.done(&args).json_lines().remove(0);
    assert_eq!(made["dir"], at);
    let again = lab.plugin(&args);
    assert!(again.code != 0 && again.err.contains("exists already"), "{}", again.err);
    (dir, format!("my_{language}.greet"))
}

fn greets(lab: &Lab, dir: &Path, tool: &str) {
    lab.install(dir);
    assert_eq!(lab.call(tool, &json!({ "name": "Ada" })), json!({ "greeting": "Hello, Ada!" }));
    let wrong = lab.plugin(&["call", tool, "--input", "{\"nam\":1}"]);
    assert!(wrong.code != 0 && wrong.out.contains("name"), "{}{}", wrong.out, wrong.err);
}

#[test]
fn plg_3_a_plugin_of_the_python_template_works_at_the_first_try() {
    let lab = Lab::new();
    let (dir, tool) = begun(&lab, "python");
    greets(&lab, &dir, &tool);
}

#[test]
fn plg_3_a_plugin_of_the_typescript_template_works_at_the_first_try() {
    let lab = Lab::new();
    let (dir, tool) = begun(&lab, "typescript");
    greets(&lab, &dir, &tool);
}

/// A plugin of the template whose manifest names Deno.
fn for_deno(lab: &Lab) -> (PathBuf, String) {
    let (dir, tool) = begun(lab, "typescript");
    let manifest = dir.join("plugin.yaml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    assert!(text.contains("runtime: node\n"), "{text}");
    std::fs::write(&manifest, text.replace("runtime: node\n", "runtime: deno\n")).unwrap();
    (dir, tool)
}

#[test]
fn plg_3_the_same_files_run_on_deno() {
    let Some(lab) = Lab::with_deno("bin") else { return };
    let (dir, tool) = for_deno(&lab);
    greets(&lab, &dir, &tool);
}

#[test]
fn plg_3_a_runtime_that_no_sandbox_sees_is_not_there() {
    // The programs of a directory that is called like this are nobody's toolchain.
    let Some(lab) = Lab::with_deno("elsewhere") else { return };
    let (dir, _) = for_deno(&lab);
    let answer = lab.plugin(&["install", dir.to_str().unwrap()]);
    assert_eq!(answer.code, 3, "{}{}", answer.out, answer.err);
    assert!(answer.err.contains("deno"), "{}", answer.err);
}

#[test]
fn slow_plg_3_plugins_in_rust_are_built_from_the_template_and_the_example_and_work() {
    let lab = Lab::new();
    let (dir, tool) = begun(&lab, "rust");
    let example = lab.user.project.path("lines");
    succeeds(Command::new("cp").arg("-r").arg(sdk().join("rust/examples/lines")).arg(&example));
    // What both need is built once.
    let shared = lab.user.project.path("built");
    for plugin in [&dir, &example] {
        std::fs::create_dir_all(&shared).unwrap();
        let _none = std::fs::remove_dir_all(plugin.join("target"));
        std::os::unix::fs::symlink(&shared, plugin.join("target")).unwrap();
        let mut build = Command::new(plugin.join("build"));
        build.arg("--offline").env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
        succeeds(&mut build);
    }
    greets(&lab, &dir, &tool);
    lab.user.write("src/a.py", "one\n\ntwo\n");
    lab.install(&example);
    let counted = lab.call("lines.count", &json!({}));
    let kinds = json!([{ "kind": "py", "files": 1, "lines": 3, "blank": 1 }]);
    assert_eq!(counted, json!({ "kinds": kinds, "lines": 3 }));
}
