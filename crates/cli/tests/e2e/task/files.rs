//! Files that are not plain text, and what commands leave.

use serde_json::json;

use super::lab::{Lab, Language, call, complete, run_tests, say, write};

#[test]
fn strange_files_are_read_without_harm_and_left_as_they_are() {
    let lab = Lab::new(Language::Python);
    std::fs::write(lab.root().join("picture.png"), [0x89, b'P', b'N', b'G', 0, 1, 2, 255]).unwrap();
    std::fs::write(lab.root().join("latin.txt"), b"caf\xe9\n").unwrap();
    std::fs::write(lab.root().join("dos.txt"), "one\r\ntwo\r\n").unwrap();
    std::fs::write(lab.root().join("large.txt"), "0123456789abcdef\n".repeat(650_000)).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", lab.root().join("out")).unwrap();
    std::os::unix::fs::symlink("sums.py", lab.root().join("in")).unwrap();
    let before = lab.snapshot();
    let read = |path: &str| call("fs.read", json!({"path": path}));
    let names = ["picture.png", "latin.txt", "dos.txt", "large.txt", "out", "in", "gone", "."];
    let turns = [
        say("", &names.map(read)),
        say(
            "",
            &[
                call("search.grep", json!({"pattern": "root:|two"})),
                call("fs.list", json!({"path": "."})),
            ],
        ),
        say("Strange files.", &[]),
    ];
    let run = lab.run(&[], &turns);
    run.assert_done();
    let answers = run.answers("fs.read");
    let worked: Vec<bool> = answers.iter().map(|it| it["success"].as_bool().unwrap()).collect();
    assert_eq!(worked.len(), 8);
    let of = |name: &str| {
        let started = run.all("tool.started").into_iter().find(|it| it["summary"] == name).unwrap();
        let id = &started["call_id"];
        (*answers.iter().find(|it| it["call_id"] == *id).unwrap()).clone()
    };
    for name in ["picture.png", "latin.txt", "dos.txt", "large.txt"] {
        assert_eq!(of(name)["success"], true, "{name}: {}", run.told());
    }
    for name in ["out", "in", "gone"] {
        assert_eq!(of(name)["success"], false, "{name}: {}", run.told());
    }
    assert_eq!(lab.snapshot(), before);
}

#[test]
fn carriage_returns_survive_an_edit() {
    let lab = Lab::new(Language::Python);
    let (test, text) = lab.language.test();
    let dos = lab.user.read("sums.py").replace('\n', "\r\n");
    lab.user.write("sums.py", &dos);
    let edit = json!({"path": "sums.py", "old": "    return a + b\r\n", "new": "    return a + b\r\n\r\n\r\ndef double(a):\r\n    return 2 * a\r\n"});
    let turns = [
        say("Tests.", &[write(test, text)]),
        say("Red.", &[run_tests()]),
        say("Code.", &[call("fs.edit", edit)]),
        say("Green.", &[run_tests()]),
        complete(),
    ];
    lab.run(&[], &turns).assert_done();
    assert_eq!(lab.user.read("sums.py"), lab.language.solution().replace('\n', "\r\n"));
}

#[test]
fn what_a_command_makes_is_taken_where_it_may_be_written() {
    let lab = Lab::new(Language::Python);
    let before = lab.snapshot();
    let (test, text) = lab.language.test();
    let solution = lab.language.solution();
    let script = format!("open('sums.py','w').write({solution:?})");
    let shell =
        |script: &str| call("shell.run", json!({"command": "python3", "args": ["-c", script]}));
    let turns = [
        say("Too early.", &[shell(&script)]),
        say("Tests.", &[write(test, text)]),
        say("Red.", &[run_tests()]),
        say("Code.", &[shell(&script)]),
        say("Green.", &[run_tests()]),
        complete(),
    ];
    let run = lab.run(&[], &turns);
    run.assert_done();
    let commands = lab.contents(&run, "shell.run");
    assert!(commands[0]["not_taken"]["reason"].is_string(), "{}", run.told());
    assert_eq!(commands[1]["changed"], json!(["sums.py"]), "{}", run.told());
    assert_ne!(lab.snapshot(), before);
    assert_eq!(lab.user.read("sums.py"), solution);
}

#[test]
fn no_command_touches_the_project_the_home_or_git() {
    let lab = Lab::new(Language::Python);
    let before = lab.snapshot();
    let head = lab.git(&["rev-parse", "HEAD"]);
    let run_command =
        |command: &str, args: &[&str]| call("shell.run", json!({"command": command, "args": args}));
    let turns = [
        say("", &[run_command("git", &["config", "core.fsmonitor", "/tmp/x"])]),
        say("", &[run_command("touch", &[".git/hooks/pre-commit"])]),
        say("", &[run_command("git", &["commit", "--allow-empty", "-m", "mine"])]),
        say("", &[run_command("rm", &["-rf", ".fluffy", "sums.py", ".git"])]),
        say("", &[run_command("sh", &["-c", "for x in 1; do touch made; done"])]),
        say("Nothing.", &[]),
    ];
    let run = lab.run(&[], &turns);
    assert_eq!(lab.snapshot(), before, "{}", run.told());
    assert_eq!(lab.git(&["rev-parse", "HEAD"]), head);
    assert!(!lab.git(&["config", "--list"]).contains("fsmonitor"));
    assert_eq!(run.answers("shell.run").last().unwrap()["success"], false, "no shells");
}

#[test]
fn a_file_in_a_language_of_the_world_is_named_and_written() {
    let lab = Lab::new(Language::Python);
    let test = "from größe import größe\n\n\ndef test_größe():\n    assert größe() == '大きさ'\n";
    let code = "def größe():\n    return '大きさ'\n";
    let turns = [
        say("Tests.", &[write("test_größe.py", test)]),
        say("Red.", &[run_tests()]),
        say("Code.", &[write("größe.py", code)]),
        say("Green.", &[run_tests()]),
        complete(),
    ];
    lab.run(&[], &turns).assert_done();
    assert_eq!(lab.user.read("größe.py"), code);
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
}
