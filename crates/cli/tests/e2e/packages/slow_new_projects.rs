//! From an empty directory to a running program in one task, with the real registries.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::registry::{install, shell};
use crate::program::{Answer, User};
use crate::task::lab::{Run, call, run_tests, say, with_pytest, write};

/// Runs a task with these turns in an empty directory, with the home of whoever runs the tests: its toolchains and registries.
fn create(user: &User, task: &str, turns: &[Value]) -> Run {
    let provider = format!("replay:{}", user.transcript(turns).display());
    let mut command = user.command(&["run", "--json", "--yes", "--provider", &provider, task]);
    for (name, value) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if !name.starts_with("FLUFFY") && !name.starts_with("XDG") {
            command.env(name, value);
        }
    }
    command.env("PATH", with_pytest()).env("XDG_STATE_HOME", user.project.state());
    Run::of(Answer::of(command.stdin(Stdio::null()).output().unwrap()))
}

fn done(summary: &str) -> Value {
    say("", &[call("task.complete", json!({ "summary": summary }))])
}

fn tracked(user: &User) -> String {
    let output =
        Command::new("git").args(["ls-files"]).current_dir(user.project.root()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn dep_6_express_app_as_models_do_it() {
    let user = User::new();
    let test = "const test = require('node:test');\nconst assert = require('node:assert');\nconst { once } = require('node:events');\nconst app = require('../src/app');\n\ntest('says hello', async () => {\n  const server = app.listen(0);\n  await once(server, 'listening');\n  const answer = await fetch(`http://127.0.0.1:${server.address().port}/`);\n  assert.equal(await answer.text(), 'Hello World!');\n  server.close();\n});\n";
    let code = "const express = require('express');\n\nconst app = express();\napp.get('/', (request, response) => response.send('Hello World!'));\n\nif (require.main === module) app.listen(process.env.PORT || 3000);\nmodule.exports = app;\n";
    let run = create(
        &user,
        "Create a Hello World Express app",
        &[
            say("", &[shell("npm", &["init", "-y"])]),
            say("", &[shell("bash", &["-c", "npm install express"])]),
            say("", &[write("src/app.js", code)]),
            say("", &[write("test/app.test.js", test), run_tests()]),
            say("", &[write("src/app.js", code), run_tests()]),
            done("Create a Hello World Express app"),
        ],
    );
    run.assert_done();
    assert!(run.all("review.requested").len() <= 1, "{}", run.told());
    assert!(!tracked(&user).contains("node_modules"));
    let script = "const app = require('./src/app'); const s = app.listen(0, async () => { const r = await fetch(`http://127.0.0.1:${s.address().port}/`); console.log(await r.text()); s.close(); });";
    let answered = Command::new("node")
        .args(["-e", script])
        .current_dir(user.project.root())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&answered.stdout), "Hello World!\n", "{}", run.told());
}

#[test]
fn dep_6_flask_app_with_pytest() {
    let user = User::new();
    let test = "from app import app\n\n\ndef test_hello():\n    assert app.test_client().get('/').text == 'Hello'\n";
    let code = "from flask import Flask\n\napp = Flask(__name__)\n\n\n@app.get('/')\ndef hello():\n    return 'Hello'\n";
    let run = create(
        &user,
        "Create a Hello World Flask app",
        &[
            say("", &[shell("python3", &["-m", "venv", ".venv"])]),
            say("", &[shell(".venv/bin/pip", &["install", "flask", "pytest"])]),
            say("", &[write("tests/test_app.py", test), run_tests()]),
            say("", &[write("app.py", code), run_tests()]),
            done("Create a Hello World Flask app"),
        ],
    );
    run.assert_done();
    let on_host = Command::new(user.project.root().join(".venv/bin/python3"))
        .args(["-c", "from app import app; print(app.test_client().get('/').text)"])
        .current_dir(user.project.root())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&on_host.stdout), "Hello\n", "{}", run.told());
    assert!(!tracked(&user).contains(".venv"));
}

#[test]
fn dep_6_crate_with_a_dependency() {
    let user = User::new();
    let name = user.project.root().file_name().unwrap().to_string_lossy().replace(['-', '.'], "_");
    let test =
        format!("#[test]\nfn says_hello() {{\n    assert_eq!({name}::hello(), \"42\");\n}}\n");
    let code = "pub fn hello() -> String {\n    itoa::Buffer::new().format(42).to_owned()\n}\n";
    let run = create(
        &user,
        "Create a crate that formats",
        &[
            say("", &[install(json!({"add": ["itoa@1"], "manager": "cargo"}))]),
            say("", &[write("tests/hello.rs", &test), run_tests()]),
            say("", &[write("src/lib.rs", code), run_tests()]),
            done("Create a crate that formats"),
        ],
    );
    run.assert_done();
    assert!(user.read("Cargo.lock").contains("name = \"itoa\""));
    let kept = user.run(&["env", "list", "--json"]).json_lines();
    let folders: Vec<_> = kept.iter().filter_map(|kept| kept["folder"].as_str()).collect();
    // One build of the dependencies serves the red run and the green one.
    assert_eq!(folders, [".fluffy-env/cargo", "target"], "{}", run.told());
}

#[test]
fn dep_6_typescript_project_with_vitest() {
    let user = User::new();
    let test = "import { expect, test } from 'vitest';\nimport { hello } from '../src/hello';\n\ntest('says hello', () => {\n  expect(hello('you')).toBe('Hello, you');\n});\n";
    let code = "export function hello(name: string): string {\n  return `Hello, ${name}`;\n}\n";
    let run = create(
        &user,
        "Create a TypeScript project with vitest",
        &[
            say("", &[shell("npm", &["init", "-y"])]),
            say("", &[shell("npm", &["install", "-D", "typescript", "vitest@3"])]),
            say("", &[write("test/hello.test.ts", test), run_tests()]),
            say("", &[write("src/hello.ts", code), run_tests()]),
            done("Create a TypeScript project with vitest"),
        ],
    );
    run.assert_done();
    assert!(user.read("package.json").contains("\"vitest\""));
}

#[test]
fn dep_6_go_server_from_the_standard_library() {
    let user = User::new();
    let test = "package main\n\nimport (\n\t\"io\"\n\t\"net/http/httptest\"\n\t\"testing\"\n)\n\nfunc TestHello(t *testing.T) {\n\trecorder := httptest.NewRecorder()\n\thello(recorder, httptest.NewRequest(\"GET\", \"/\", nil))\n\tbody, _ := io.ReadAll(recorder.Body)\n\tif string(body) != \"Hello\" {\n\t\tt.Fatal(string(body))\n\t}\n}\n";
    let code = "package main\n\nimport (\n\t\"fmt\"\n\t\"net/http\"\n)\n\nfunc hello(w http.ResponseWriter, r *http.Request) {\n\tfmt.Fprint(w, \"Hello\")\n}\n\nfunc main() {\n\thttp.HandleFunc(\"/\", hello)\n\thttp.ListenAndServe(\":8080\", nil)\n}\n";
    let run = create(
        &user,
        "Create a Go HTTP server",
        &[
            say("", &[write("go.mod", "module hello\n\ngo 1.19\n")]),
            say("", &[write("main_test.go", test), run_tests()]),
            say("", &[write("main.go", code), run_tests()]),
            done("Create a Go HTTP server"),
        ],
    );
    run.assert_done();
    assert_eq!(tracked(&user), "go.mod\nmain.go\nmain_test.go\n");
}
