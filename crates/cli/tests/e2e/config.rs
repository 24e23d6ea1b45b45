//! Settings as people have them: files, variables, arguments, and the commands that read and change them.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::program::{Answer, User, typing};
use crate::task::lab::{Lab, Language, Run, call, complete, run_tests, say, write};

const OWN: &str = ".fluffy/config.yaml";

/// The user's own file, which may not be there.
fn own_file(user: &User) -> PathBuf {
    user.project.path("config/fluffy/config.yaml")
}

fn write_own(user: &User, text: &str) {
    let path = own_file(user);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn command(user: &User, args: &[&str]) -> Command {
    let mut command = user.command(args);
    command.env("XDG_CONFIG_HOME", user.project.path("config"));
    command
}

fn config(user: &User, args: &[&str]) -> Answer {
    let mut all = vec!["config"];
    all.extend(args);
    Answer::of(command(user, &all).stdin(Stdio::null()).output().unwrap())
}

/// Runs a task with these turns, variables and options; the user's own settings are beside the project.
fn task(lab: &Lab, options: &[&str], variables: &[(&str, &str)], turns: &[Value]) -> Run {
    let mut command = lab.command(options, turns);
    command.env("XDG_CONFIG_HOME", lab.user.project.path("config")).envs(variables.iter().copied());
    Run::of(Answer::of(command.stdin(Stdio::null()).output().unwrap()))
}

fn in_json(answer: &Answer) -> Value {
    assert_eq!(answer.code, 0, "{}", answer.err);
    answer.json_lines()[0].clone()
}

#[test]
fn cli_4_get_tells_a_value_and_where_it_comes_from() {
    let user = User::new();
    assert_eq!(config(&user, &["get", "max_turns", "--origin"]).out, "50\tdefault\n");
    write_own(&user, "# mine\nmax_turns: 40\nproxy: http://ada:sk-4711@proxy:1\n");
    let found = in_json(&config(&user, &["get", "max_turns", "--json"]));
    let file = own_file(&user).display().to_string();
    let origin = json!({"layer": "user", "file": file, "line": 2});
    assert_eq!(found, json!({"key": "max_turns", "value": 40, "origin": origin}));
    user.write(OWN, "max_turns: 30\n");
    let told = config(&user, &["get", "max_turns", "--origin"]).out;
    assert_eq!(told, "30\tproject .fluffy/config.yaml:1\n");
    user.write(OWN, "max_turns: 45\n");
    let told = config(&user, &["get", "max_turns", "--origin"]).out;
    assert_eq!(told, format!("40\tuser {file}:2, overruling project .fluffy/config.yaml:1: 45\n"));
    let mut asked = command(&user, &["config", "get", "max_turns", "--origin"]);
    let told = Answer::of(asked.env("FLUFFY_MAX_TURNS", "35").output().unwrap());
    assert_eq!(told.out, "35\tenvironment FLUFFY_MAX_TURNS\n");
    let listed = config(&user, &["list", "--origin"]);
    assert!(listed.out.contains("proxy = http://***@proxy:1"), "{}", listed.out);
    for args in [&["list", "--json"][..], &["list", "--origin"], &["get", "proxy"]] {
        let told = config(&user, args);
        assert!(told.code == 0 && !told.out.contains("4711"), "{}{}", told.out, told.err);
    }
    let absent = config(&user, &["get", "max_cost"]);
    assert_eq!((absent.code, absent.out.as_str()), (1, ""), "{}", absent.err);
    let unknown = config(&user, &["get", "max_trun"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("did you mean `max_turns`?"), "{}", unknown.err);
}

#[test]
fn cli_4_set_and_unset_keep_comments_order_rights_and_links() {
    let user = User::new();
    let set = |args: &[&str]| {
        let answer = config(&user, args);
        assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
        answer.out
    };
    let told = set(&["set", "max_turns", "40"]);
    assert!(told.starts_with("max_turns = 40  (user "), "{told}");
    let mode = |path: &PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&own_file(&user)), 0o600);
    set(&["set", "test.command", "[make, \"a b\"]"]);
    assert_eq!(user.read(OWN), "test:\n  command: [make, \"a b\"]\n");
    // Kept elsewhere, with comments and rights of its own.
    let real = user.project.path("dotfiles.yaml");
    std::fs::write(
        &real,
        "# top\nmax_turns: 1 # few\n\nproviders:\n  work:\n    # where\n    url: https://a\n",
    )
    .unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::remove_file(own_file(&user)).unwrap();
    symlink(&real, own_file(&user)).unwrap();
    set(&["set", "max_turns", "2"]);
    set(&["set", "providers.work.context_window", "1000"]);
    set(&["set", "commit.author", "Ada <ada@example.org>"]);
    set(&["unset", "max_turns"]);
    let text = "# top\n\nproviders:\n  work:\n    context_window: 1000\n    # where\n    url: https://a\n\
                commit:\n  author: \"Ada <ada@example.org>\"\n";
    assert_eq!(std::fs::read_to_string(&real).unwrap(), text);
    assert_eq!(mode(&real), 0o640);
    assert!(own_file(&user).is_symlink());
    // What somebody stronger says is told.
    user.write(OWN, "commit: {author: Bob <b@b.c>}\n");
    let answer = config(&user, &["set", "commit.author", "Eve <e@e.c>"]);
    assert!(answer.out.contains("Bob") && answer.err.contains("not what"), "{}", answer.err);
}

#[test]
fn cli_4_what_cannot_be_set_changes_nothing_and_is_told() {
    let user = User::new();
    user.write(OWN, "test: {command: [make]}\n");
    write_own(&user, "mode: strict\n");
    for (args, code, part) in [
        (&["set", "max_turns", "many"][..], 2, "`many` is not a number from 1"),
        (&["set", "max_turns", "-1"], 2, "is not a number"),
        (&["set", "mode", "yolo"], 2, "`yolo` is not `strict`, `explore` or `debug`"),
        (&["set", "nothing", "1"], 2, "there is no setting `nothing`"),
        (&["set", "--in-project", "provider", "evil"], 2, "never by a project"),
        (&["set", "--in-project", "ledger.retention_days", "1"], 2, "never by a project"),
        (&["set", "--in-project", "sandbox.runtime", "native"], 2, "never by a project"),
        (&["set", "--user", "test.command", "[x]"], 2, "is said by a project"),
        (&["set", "proxy", "http://ada:sk-4711@proxy:1"], 2, "by hand"),
        (&["set", "providers.a.headers.x-token", "sk-4711"], 2, "by hand"),
        (&["set", "providers.a.key", "sk-4711"], 2, "fluffy auth set"),
        (&["set", "providers.a.url", "http://evil.example.org"], 2, "in the clear"),
        (&["set", "providers.A!.url", "https://a"], 2, "no name of a provider"),
        (&["set", "test.coverage", "a.info"], 1, "`test: {coverage: a.info}`"),
        (&["unset", "test.command"], 1, "by hand"),
    ] {
        let answer = config(&user, args);
        assert_eq!(answer.code, code, "{args:?}: {}{}", answer.out, answer.err);
        assert!(answer.err.contains(part), "{args:?}: {}", answer.err);
        assert!(!answer.err.contains("4711"), "{}", answer.err);
        assert_eq!(user.read(OWN), "test: {command: [make]}\n");
        assert_eq!(std::fs::read_to_string(own_file(&user)).unwrap(), "mode: strict\n");
    }
    let beside = std::fs::read_dir(own_file(&user).parent().unwrap()).unwrap().count();
    assert_eq!(beside, 1, "nothing is left beside the file");
    // Through a link of the project nothing is written.
    std::fs::remove_file(user.project.root().join(OWN)).unwrap();
    let elsewhere = user.write("elsewhere.yaml", "");
    symlink(&elsewhere, user.project.root().join(OWN)).unwrap();
    let answer = config(&user, &["set", "--in-project", "mode", "debug"]);
    assert!(answer.err.contains("is a symbolic link"), "{}", answer.err);
    assert_eq!(user.read("elsewhere.yaml"), "");
}

#[test]
fn cli_4_wrong_files_and_variables_end_every_command_with_code_2() {
    let user = User::new();
    let commands = [
        &["config", "list"][..],
        &["run", "--provider", "replay:x", "a task"],
        &["config", "get", "mode"],
    ];
    for text in ["mode: [\n".to_owned(), "mod: strict\n".to_owned(), "#".repeat(10 << 20)] {
        user.write(OWN, &text);
        for args in commands {
            let answer = Answer::of(command(&user, args).stdin(Stdio::null()).output().unwrap());
            assert_eq!(answer.code, 2, "{args:?}: {}", answer.err);
            for part in ["ERROR: `.fluffy/config.yaml` cannot be used", "Reason: ", "Fix: "] {
                assert!(answer.err.contains(part), "{}", answer.err);
            }
        }
    }
    user.write(OWN, "");
    for args in commands {
        let mut asked = command(&user, args);
        let answer = asked.env("FLUFFY_MAX_COST", "lots").stdin(Stdio::null()).output().unwrap();
        let answer = Answer::of(answer);
        assert_eq!(answer.code, 2, "{args:?}: {}", answer.err);
        assert!(answer.err.contains("`FLUFFY_MAX_COST`"), "{}", answer.err);
    }
}

#[test]
fn cli_4_caps_of_every_layer_stop_a_task() {
    let lab = Lab::new(Language::Python);
    let turns = lab.good_turns();
    write_own(&lab.user, "max_turns: 2\n");
    task(&lab, &[], &[], &turns).assert_not_done(7);
    // The project cannot raise it.
    lab.user.write(OWN, "max_turns: 40\n");
    task(&lab, &[], &[], &turns).assert_not_done(7);
    write_own(&lab.user, "");
    lab.user.write(OWN, "max_tokens: 20\n");
    task(&lab, &[], &[], &turns).assert_not_done(7);
    task(&lab, &[], &[("FLUFFY_MAX_TOKENS", "30")], &turns).assert_not_done(7);
    let many = [("FLUFFY_MAX_TOKENS", "100000")];
    task(&lab, &["--max-turns", "2"], &many, &turns).assert_not_done(7);
    task(&lab, &[], &many, &turns).assert_done();
}

#[test]
fn cli_4_a_mode_is_judged_the_same_whoever_says_it() {
    let lab = Lab::new(Language::Python);
    let turns = [
        say("Code.", &[write("sums.py", &lab.language.solution())]),
        say("Run.", &[run_tests()]),
        complete(),
    ];
    let before = lab.snapshot();
    // Debug needs a person, whether it is an argument, a variable or a file.
    for option in [&[][..], &["--yes"]] {
        let run = task(&lab, option, &[("FLUFFY_MODE", "debug")], &turns);
        assert_eq!(run.code, 3, "{}", run.told());
        write_own(&lab.user, "mode: debug\n");
        assert_eq!(task(&lab, option, &[], &turns).code, 3);
        std::fs::remove_file(own_file(&lab.user)).unwrap();
    }
    assert_eq!(lab.snapshot(), before);
    for mode in ["debug", "explore"] {
        lab.user.write(OWN, &format!("mode: {mode}\n"));
        let before = lab.snapshot();
        let mut asked = lab.command(&["--yes"], &turns);
        asked.env("XDG_CONFIG_HOME", lab.user.project.path("config"));
        let answer = Answer::of(asked.stdin(Stdio::null()).output().unwrap());
        assert_eq!(answer.code, 3, "{}{}", answer.out, answer.err);
        assert!(answer.err.contains("`--yes` was not said to that"), "{}", answer.err);
        assert_eq!(lab.snapshot(), before, "{mode}");
    }
    // What the user says of it goes before what the project wants.
    write_own(&lab.user, "mode: strict\n");
    let run = task(&lab, &["--yes"], &[], &turns);
    assert_eq!(run.answers("fs.write")[0]["decision"], "denied", "{}", run.told());
    // A person who is shown what the project's mode let happen may agree to it.
    std::fs::remove_file(own_file(&lab.user)).unwrap();
    let mut asked = lab.command(&[], &turns);
    asked.env("XDG_CONFIG_HOME", lab.user.project.path("config"));
    let answer = typing(asked, "y\ny\n");
    assert_eq!(answer.code, 0, "{}{}", answer.out, answer.err);
    assert!(answer.out.contains("\"mode\":\"explore\""), "{}", answer.out);
}

#[test]
fn cli_4_a_provider_of_the_environment_is_asked() {
    let lab = Lab::new(Language::Python);
    let transcript = lab.transcript(&[say("Hello.", &[])]);
    let mut asked = command(&lab.user, &["run", "say hello"]);
    asked.env("FLUFFY_PROVIDER", format!("replay:{}", transcript.display()));
    let answer = Answer::of(asked.stdin(Stdio::null()).output().unwrap());
    assert_eq!((answer.code, answer.out.as_str()), (0, "Hello.\n"), "{}", answer.err);
    let mut asked = command(&lab.user, &["run", "--provider", "replay:nowhere", "say hello"]);
    asked.env("FLUFFY_PROVIDER", format!("replay:{}", transcript.display()));
    let answer = Answer::of(asked.stdin(Stdio::null()).output().unwrap());
    assert_eq!(answer.code, 2, "{}", answer.err);
}

#[test]
fn lesson_l12_a_model_cannot_change_the_settings_it_works_under() {
    let lab = Lab::new(Language::Python);
    let program = env!("CARGO_BIN_EXE_fluffy");
    lab.user.write(OWN, "# ours\n");
    let attempts = [
        call("fs.write", json!({"path": OWN, "content": "mode: debug\n"})),
        call("fs.write", json!({"path": ".Fluffy/config.yaml", "content": "mode: debug\n"})),
        call("fs.edit", json!({"path": OWN, "old": "# ours", "new": "mode: debug"})),
        call("fs.delete", json!({"path": OWN})),
        call(
            "shell.run",
            json!({"command": "sh", "args": ["-c", "echo mode: debug > .fluffy/config.yaml"]}),
        ),
        call(
            "shell.run",
            json!({"command": program, "args": ["config", "set", "--in-project", "mode", "debug"]}),
        ),
        call("shell.run", json!({"command": "ln", "args": ["-sf", "../sums.py", OWN]})),
    ];
    let turns: Vec<Value> = attempts.into_iter().map(|attempt| say("", &[attempt])).collect();
    let run = task(&lab, &["--mode", "explore", "--yes"], &[], &turns);
    assert_ne!(run.code, 0, "{}", run.told());
    for denied in run.answers("fs.write") {
        assert_eq!(denied["decision"], "denied", "{}", run.told());
    }
    assert_eq!(lab.user.read(OWN), "# ours\n");
    assert!(!lab.user.project.root().join(OWN).is_symlink());
}

#[test]
fn cli_4_settings_that_are_a_link_into_the_project_are_protected_where_they_lie() {
    let user = User::new();
    let real = user.write("dotfiles/fluffy.yaml", "");
    write_own(&user, "");
    std::fs::remove_file(own_file(&user)).unwrap();
    symlink(real, own_file(&user)).unwrap();
    let explain = |path: &str| {
        let args = ["policy", "explain", "fs.write", path, "--json"];
        let answer = command(&user, &args).stdin(Stdio::null()).output().unwrap();
        Answer::of(answer).json_lines()[0]["decision"].clone()
    };
    assert_eq!(explain("dotfiles/fluffy.yaml"), "deny");
    assert_eq!(explain("dotfiles/other.yaml"), "allow");
    assert_eq!(explain(OWN), "deny");
}

#[test]
fn cli_4_path_and_list_tell_where_everything_is() {
    let user = User::new();
    let paths = in_json(&config(&user, &["path", "--json"]));
    assert_eq!(paths["user"], own_file(&user).display().to_string());
    assert_eq!(paths["project"], user.project.root().join(OWN).display().to_string());
    let told = config(&user, &["path"]).out;
    assert_eq!(told.matches("(not there)").count(), 2, "{told}");
    let mut list = command(&user, &["config", "list", "--all", "--json"]);
    let list = list.env_remove("FLUFFY_KERNEL_IDLE_SECONDS").stdin(Stdio::null()).output();
    let all = Answer::of(list.unwrap()).json_lines();
    let of = |key: &str| all.iter().find(|found| found["key"] == key).unwrap().clone();
    assert_eq!(of("kernel.idle_seconds")["value"], 600);
    assert_eq!(of("ledger.retention_days")["value"], 90);
    assert_eq!(of("ledger.max_size_mib")["value"], 1024);
    assert_eq!(of("sandbox.runtime")["value"], "native");
    assert_eq!(of("max_cost"), json!({"key": "max_cost", "value": null, "origin": null}));
}
