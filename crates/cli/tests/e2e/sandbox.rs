//! `fluffy sandbox run` as a person uses it.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::program::{Answer, User};

fn user() -> User {
    let user = User::new();
    std::fs::write(user.project.root().join("kept.txt"), "as it was").unwrap();
    user
}

fn sandboxed(user: &User, options: &[&str], command: &[&str]) -> Answer {
    user.run(&[&["sandbox", "run"], options, &["--"], command].concat())
}

#[test]
fn what_a_command_prints_and_its_code_are_passed_on() {
    let user = user();
    let answer = sandboxed(&user, &[], &["sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!((&*answer.out, &*answer.err, answer.code), ("out\n", "err\n", 7));
    let answer = sandboxed(&user, &[], &["sh", "-c", "kill -9 $$"]);
    assert_eq!(answer.code, 137);
    let answer = user.run_with(&["sandbox", "run", "--", "wc", "-c"], &[b'x'; 100_000]);
    assert_eq!(answer.out.trim(), "100000");
}

#[test]
fn changes_are_listed_and_the_project_is_left_as_it_is() {
    let user = user();
    let script = "rm kept.txt; mkdir d; echo new > d/made; ln -s / way-out; mkfifo pipe";
    let answer = sandboxed(&user, &[], &["sh", "-c", script]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    for line in [
        "changed in the sandbox, not in the project:",
        "  - kept.txt",
        "  + d/made (4 bytes)",
        "  ! way-out: it is a symbolic link, and links are not taken",
        "  ! pipe: it is a named pipe",
    ] {
        assert!(answer.err.lines().any(|found| found == line), "{line}: {}", answer.err);
    }
    let names: Vec<_> = std::fs::read_dir(user.project.root()).unwrap().flatten().collect();
    assert_eq!(names.len(), 1);
    assert_eq!(std::fs::read(user.project.root().join("kept.txt")).unwrap(), b"as it was");
}

#[test]
fn changes_are_saved_where_nothing_is_yet() {
    let user = user();
    let saved = user.project.path("saved");
    let save = ["--save", saved.to_str().unwrap()];
    let write = ["sh", "-c", "mkdir -p a/b; echo text > a/b/c; ln -s /etc/passwd a/link"];
    assert_eq!(sandboxed(&user, &save, &write).code, 0);
    assert_eq!(std::fs::read(saved.join("a/b/c")).unwrap(), b"text\n");
    assert!(std::fs::symlink_metadata(saved.join("a/link")).is_err());
    let again = sandboxed(&user, &save, &write);
    assert_eq!(again.code, 2);
    assert!(again.err.contains("exists already"), "{}", again.err);
}

#[test]
fn a_limit_ends_the_command_with_its_name_and_code_124() {
    let user = user();
    let answer = sandboxed(&user, &["--time", "200ms"], &["sleep", "100"]);
    assert_eq!(answer.code, 124);
    assert_eq!(answer.err, "fluffy: the time limit was reached, and the sandbox was ended\n");
}

#[test]
fn limits_are_narrowed_and_never_widened() {
    let user = user();
    let asked = ["--template", "policy-sandbox", "--time", "1h"];
    let answer = sandboxed(&user, &asked, &["sleep", "100"]);
    assert_eq!(answer.code, 124, "{}", answer.err);
}

#[test]
fn what_cannot_be_done_is_said_with_a_fix() {
    let user = user();
    for (options, command, code, words) in [
        (&[][..], "no-such-program", 1, "`no-such-program` cannot be run in the sandbox"),
        (&["--net", "restricted"], "true", 2, "sandbox template `code-executor` has no network"),
        (&["--template", "docker"], "true", 2, "there is no sandbox template `docker`"),
        (&["--show", "/no/such"], "true", 1, "cannot show `/no/such`"),
        (&["--show", "/proc/1"], "true", 2, "that part of a sandbox is its own"),
        (&["--memory", "lots"], "true", 2, "lots"),
        (&["--template", "integration-test", "--allow", "http://x"], "true", 2, "http://x"),
    ] {
        let answer = sandboxed(&user, options, &[command]);
        assert_eq!(answer.code, code, "{options:?}: {}", answer.err);
        assert!(answer.err.contains(words), "{options:?}: {}", answer.err);
    }
    assert_eq!(user.run(&["sandbox", "run"]).code, 2);
}

#[test]
fn a_host_that_is_not_listed_is_refused_aloud() {
    let user = user();
    let options = ["--template", "integration-test", "--allow", "example.org"];
    let get = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "http://example.com/"];
    let answer = sandboxed(&user, &options, &get);
    assert_eq!(answer.out, "403");
    assert_eq!(answer.err, "fluffy: refused example.com:80: the host is not listed\n");
}

#[test]
fn nothing_printed_reaches_a_terminal_as_a_command_to_it() {
    let user = user();
    let hostile = r"printf '\033]0;title\007\033[2Jred\033[31m\302\233'; printf '\r\n'";
    std::fs::write(user.project.root().join("hostile"), hostile).unwrap();
    // `script` gives the program a terminal to print to.
    let typed = format!("{} sandbox run -- sh hostile", env!("CARGO_BIN_EXE_fluffy"));
    let mut command = Command::new("script");
    command.args(["-qec", &typed, "/dev/null"]).stdin(Stdio::null());
    command.current_dir(user.project.root()).env("XDG_STATE_HOME", user.project.state());
    let answer = Answer::of(command.output().unwrap());
    assert!(!answer.out.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{:?}", answer.out);
    assert!(answer.out.contains("^[]0;title^G^[[2Jred^[[31m?"), "{:?}", answer.out);
}

#[test]
fn the_home_directory_is_empty_but_for_toolchains() {
    let user = user();
    for dir in [".ssh", ".cargo/bin", ".aws"] {
        std::fs::create_dir_all(user.project.path(dir)).unwrap();
        std::fs::write(user.project.path(dir).join("file"), "text").unwrap();
    }
    std::fs::write(user.project.path(".cargo/credentials.toml"), "secret").unwrap();
    let list = ["sh", "-c", "cd; find . -name '*' -type f -not -path './project/*'"];
    assert_eq!(sandboxed(&user, &[], &list).out, "./.cargo/bin/file\n");
}

#[test]
fn whoever_interrupts_it_leaves_nothing_behind() {
    let user = user();
    let script = "echo started; trap '' INT TERM; sleep 1000 & wait";
    let mut command = user.command(&["sandbox", "run", "--", "bash", "-c", script]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let left = user.project.state().join("fluffy/sandboxes");
    assert_eq!(std::fs::read_dir(left).unwrap().count(), 0);
}

/// Forbids namespaces in the one it is run in.
const FORBID: &str = "echo 0 > /proc/sys/user/max_user_namespaces;";

/// An ordinary user, who is root in a namespace of theirs, runs this there.
fn in_a_namespace(user: &User, before: &str, args: &str) -> Answer {
    let program = user.project.path("fluffy");
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_fluffy")).arg(&program).status();
    assert!(copied.unwrap().success());
    let script = format!("{before} exec \"$0\" {args}");
    let mut command = Command::new("unshare");
    command.args(["-Ur", "sh", "-c", &script]).arg(&program);
    command.current_dir(user.project.root()).env_clear().stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", user.project.path("")).env("XDG_STATE_HOME", user.project.state());
    if rustix::process::geteuid().is_root() {
        let given = Command::new("chown").args(["-R", "65533"]).arg(user.project.path("")).status();
        assert!(given.unwrap().success());
        command.uid(65_533).gid(65_533);
    }
    Answer::of(command.output().unwrap())
}

#[test]
fn sandboxes_are_made_inside_a_users_namespace() {
    let answer = in_a_namespace(&user(), "", "sandbox run -- true");
    assert_eq!(answer.code, 0, "{}", answer.err);
}

#[test]
fn where_namespaces_are_forbidden_the_setting_and_the_remedy_are_named() {
    let answer = in_a_namespace(&user(), FORBID, "sandbox run -- true");
    assert_eq!(answer.code, 4);
    for words in [
        "user namespaces are switched off (user.max_user_namespaces)",
        "nothing runs outside of a sandbox, so nothing was run",
        "sudo sysctl user.max_user_namespaces=15000",
    ] {
        assert!(answer.err.contains(words), "{words}: {}", answer.err);
    }
}

#[test]
fn rule_files_are_not_run_without_a_sandbox() {
    let user = user();
    user.write(
        ".fluffy/policy.yaml",
        "jurisdiction: { allowed_actors: [user] }\nextensions: [.fluffy/rules/any.ts]\n",
    );
    user.write(".fluffy/rules/any.ts", "export default () => ({ action: 'pass' });\n");
    let answer = in_a_namespace(&user, FORBID, "policy check");
    assert_ne!(answer.code, 0);
    assert!(answer.err.contains("sudo sysctl user.max_user_namespaces=15000"), "{}", answer.err);
}

#[test]
fn root_that_stands_for_nobody_else_is_not_mapped_into_a_sandbox() {
    if !rustix::process::geteuid().is_root() {
        // Only root can make a namespace in which root alone is mapped.
        return;
    }
    let user = user();
    let mut command = Command::new("unshare");
    command.args(["-Ur", env!("CARGO_BIN_EXE_fluffy"), "sandbox", "run", "--", "true"]);
    command.current_dir(user.project.root()).env("XDG_STATE_HOME", user.project.state());
    let answer = Answer::of(command.stdin(Stdio::null()).output().unwrap());
    assert_eq!(answer.code, 4);
    assert!(answer.err.contains("root in a user namespace that has no other users"));
}
