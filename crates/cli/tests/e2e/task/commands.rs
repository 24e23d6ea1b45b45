//! What is answered of a command, and what becomes of the files that it leaves.

use serde_json::{Value, json};

use super::lab::{Lab, Language, Run, call, complete, run_tests, say, write};

fn python(script: &str) -> Value {
    call("shell.run", json!({"command": "python3", "args": ["-c", script]}))
}

/// Tests first, then these calls, one in each turn, then code that passes.
fn turns_with(lab: &Lab, calls: &[Value]) -> Vec<Value> {
    let (test, text) = lab.language.test();
    let mut turns = vec![say("A test.", &[write(test, text)]), say("Red.", &[run_tests()])];
    turns.extend(calls.iter().map(|call| say("A command.", std::slice::from_ref(call))));
    let code = write(lab.language.source(), &lab.language.solution());
    turns.extend([say("Code.", &[code]), say("Green.", &[run_tests()]), complete()]);
    turns
}

/// A command that changes a file which a person looks at.
fn adds_a_package() -> Value {
    python("print('added'); open('requirements.txt', 'a').write('left-pad\\n')")
}

mod output {
    use super::*;

    #[test]
    fn stays_when_files_are_refused() {
        let lab = Lab::new(Language::Python);
        let script = "import sys; print('to out'); print('to err', file=sys.stderr); \
                      open('.fluffy-x', 'w').write('x'); import os; os.makedirs('.fluffy'); \
                      open('.fluffy/policy.yaml', 'w').write('x'); sys.exit(3)";
        let run = lab.run(&[], &turns_with(&lab, &[python(script)]));
        run.assert_done();
        let answer = &lab.contents(&run, "shell.run")[0];
        assert_eq!((&answer["stdout"], &answer["code"]), (&json!("to out\n"), &json!(3)));
        assert_eq!(answer["stderr"], "to err\n");
        let not_taken = &answer["not_taken"];
        assert_eq!(
            not_taken["reason"], "the policy does not let `.fluffy/policy.yaml` be changed",
            "{answer}"
        );
        assert_eq!(not_taken["files"], json!([".fluffy-x", ".fluffy/policy.yaml"]));
        assert!(!lab.root().join(".fluffy-x").exists(), "all or nothing");
        let finished = run.answers("shell.run")[0];
        assert_eq!(finished["summary"], "exited with code 3; its files were not taken");
    }

    #[test]
    fn names_what_is_thrown_away() {
        let lab = Lab::new(Language::Python);
        let script = "import os\nfor d in ['node_modules/a', '__pycache__']:\n    \
                      os.makedirs(d)\n    open(d + '/x', 'w').write('x')\nopen('kept.txt', 'w').write('x')";
        let run = lab.run(&[], &turns_with(&lab, &[python(script)]));
        run.assert_done();
        let answer = &lab.contents(&run, "shell.run")[0];
        assert_eq!(answer["thrown_away"], json!(["__pycache__", "node_modules"]), "{answer}");
        assert!(answer["hint"].as_str().unwrap().contains("deps.install"), "{answer}");
        assert_eq!(answer["changed"], json!(["kept.txt"]));
        assert!(!lab.root().join("node_modules").exists());
    }
}

mod review {
    use super::*;

    /// The reviews that asked about a file, and what of the change they showed.
    fn asked(run: &Run) -> Vec<String> {
        let asked = run.all("review.requested").into_iter();
        asked.map(|it| it["diff"].as_str().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn shows_the_change_and_takes_it_after_a_yes() {
        let lab = Lab::new(Language::Python);
        lab.user.write("requirements.txt", "flask\n");
        lab.git(&["add", "-A"]);
        lab.git(&["commit", "-q", "-m", "packages"]);
        let run = lab.run(&["--yes"], &turns_with(&lab, &[adds_a_package()]));
        run.assert_done();
        assert!(asked(&run)[0].contains("+left-pad"), "{}", run.told());
        assert!(asked(&run)[0].contains("--- a/requirements.txt"), "{}", run.told());
        let answer = &lab.contents(&run, "shell.run")[0];
        assert_eq!(answer["changed"], json!(["requirements.txt"]), "{answer}");
        assert_eq!(lab.user.read("requirements.txt"), "flask\nleft-pad\n");
        let log = lab.user.run(&["audit", "log", "--json"]).out;
        assert!(log.contains("keep `requirements.txt` as a command left it"), "{log}");
    }

    #[test]
    fn refused_leaves_the_files_out_and_keeps_the_output() {
        let lab = Lab::new(Language::Python);
        let both = python(
            "print('added'); open('requirements.txt', 'a').write('x'); open('a.txt', 'w').write('')",
        );
        let run = lab.run(&["--no"], &turns_with(&lab, &[both]));
        run.assert_done();
        let answer = &lab.contents(&run, "shell.run")[0];
        assert_eq!(answer["stdout"], "added\n");
        let reason = answer["not_taken"]["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("the change of `requirements.txt` was not agreed to"),
            "{reason}"
        );
        for name in ["requirements.txt", "a.txt"] {
            assert!(!lab.root().join(name).exists(), "{name}");
        }
    }

    #[test]
    fn for_the_session_counts_for_commands_and_writes() {
        let lab = Lab::new(Language::Python);
        let later = write("requirements.txt", "left-pad\nright-pad\n");
        let turns = turns_with(&lab, &[adds_a_package(), adds_a_package(), later]);
        let run = Run::of(lab.typing(&[], &turns, "s\ny\n"));
        run.assert_done();
        let questions = run.all("review.requested").into_iter();
        let of_file = questions.filter(|it| it["action"].to_string().contains("requirements.txt"));
        assert_eq!(of_file.count(), 1, "{}", run.told());
        assert_eq!(lab.user.read("requirements.txt"), "left-pad\nright-pad\n");
    }

    #[test]
    fn can_become_a_rule() {
        let lab = Lab::new(Language::Python);
        let run = Run::of(lab.typing(&[], &turns_with(&lab, &[adds_a_package()]), "r\ny\n"));
        run.assert_done();
        let policy = lab.user.read(".fluffy/policy.yaml");
        assert!(policy.contains("requirements.txt"), "{policy}");
        assert_eq!(lab.user.read("requirements.txt"), "left-pad\n");
    }

    #[test]
    fn asks_nobody_about_what_cannot_be_taken() {
        let lab = Lab::new(Language::Python);
        let tests = "open('requirements.txt', 'w').write('x'); open('test_add.py', 'w').write('')";
        let bytes = "open('requirements.txt', 'wb').write(bytes([255, 254]))";
        let run = lab.run(&["--yes"], &turns_with(&lab, &[python(tests), python(bytes)]));
        run.assert_done();
        assert!(asked(&run).is_empty(), "{}", run.told());
        let answers = lab.contents(&run, "shell.run");
        let reason = |at: usize| answers[at]["not_taken"]["reason"].as_str().unwrap().to_owned();
        assert!(reason(0).contains("test_add.py"), "{}", reason(0));
        assert!(reason(1).contains("it is no text"), "{}", reason(1));
    }
}

mod lines {
    use super::*;

    fn line(text: &str) -> Value {
        call("shell.run", json!({ "command": text }))
    }

    /// The answers to these lines, where code may be written.
    fn answers(lab: &Lab, options: &[&str], lines: &[Value]) -> (Run, Vec<Value>) {
        let run = lab.run(options, &turns_with(lab, lines));
        run.assert_done();
        let contents = lab.contents(&run, "shell.run");
        assert_eq!(contents.len(), lines.len(), "{}", run.told());
        (run, contents)
    }

    #[test]
    fn run_as_bash_would() {
        let lab = Lab::new(Language::Python);
        let bash = |args: [&str; 2]| call("shell.run", json!({"command": "bash", "args": args}));
        let lines = [
            line("printf 'b\\na\\n' | sort > sorted.txt && cat sorted.txt; false || echo after"),
            bash(["-lc", "mkdir -p d && cd d; pwd"]),
            line("cd sub && echo no"),
            line(
                "A='x y'; B=1 python3 -c 'import os, sys; print(os.environ[\"B\"], sys.argv[1:])' \"$A\" *.txt",
            ),
            line("no-such-program | cat; ! true"),
            line("no-such-program && echo no"),
            line("yes | head -n 2; cat <<'E' >> sorted.txt\nc $HOME\nE"),
            line("cat < sorted.txt 2>&1 | tail -n 1; sh_is=not; exit_is=not; false"),
        ];
        let (_run, told) = answers(&lab, &[], &lines);
        let out = |at: usize| told[at]["stdout"].as_str().unwrap_or_default().to_owned();
        assert_eq!(
            (out(0).as_str(), &told[0]["code"]),
            ("a\nb\nafter\n", &json!(0)),
            "{}",
            told[0]
        );
        assert_eq!(told[0]["changed"], json!(["sorted.txt"]));
        assert!(told[1]["reason"].to_string().contains("`cd`"), "{}", told[1]);
        assert!(told[2]["reason"].to_string().contains("`sub` does not exist"), "{}", told[2]);
        assert_eq!(out(3), "1 ['x y', './sorted.txt']\n", "{}", told[3]);
        assert_eq!(told[4]["code"], 1, "{}", told[4]);
        assert_eq!(told[5]["code"], 127, "{}", told[5]);
        let missing = "fluffy: `no-such-program`: command not found\n";
        assert_eq!(told[5]["stderr"], missing, "{}", told[5]);
        assert_eq!(out(6), "y\ny\n", "{}", told[6]);
        assert!(told[7]["reason"].to_string().contains("setting a variable"), "{}", told[7]);
        assert_eq!(lab.user.read("sorted.txt"), "a\nb\nc $HOME\n");
    }

    #[test]
    fn every_program_is_judged_and_recorded() {
        let lab = Lab::new(Language::Python);
        let rules = "  - { name: no-rm, match: { syscall: shell.run, command: [rm] }, action: deny, reason: rm is not run }
  - { name: see-echo, match: { syscall: shell.run, command: [echo] }, action: require_review, reason: see echo }
  - { name: see-date, match: { syscall: shell.run, command: [date] }, action: require_review, reason: see date }
";
        let shipped = include_str!("../../../../policy/src/default_policy.yaml");
        let policy = shipped.replacen("capabilities:\n", &format!("capabilities:\n{rules}"), 1);
        lab.user.write(".fluffy/policy.yaml", &policy);
        let lines = [
            line("touch made.txt && rm -f made.txt"),
            line("R=rm; touch made.txt; $R -f made.txt"),
            line("echo a | cat && date > /dev/null"),
            line("true && cat sums.py | head -n 1"),
        ];
        let (run, told) = answers(&lab, &["--yes"], &lines);
        for denied in &told[..2] {
            assert!(denied["reason"].to_string().contains("rm is not run"), "{denied}");
        }
        let reviews = run.all("review.requested");
        let reasons = reviews[0]["reasons"].to_string();
        assert!(reasons.contains("see echo") && reasons.contains("see date"), "{reasons}");
        assert!(reasons.contains("runs `echo a`"), "{reasons}");
        assert_eq!(told[2]["stdout"], "a\n", "{}", told[2]);
        assert!(!lab.root().join("made.txt").exists());
        let log = lab.user.run(&["audit", "log", "--json", "--event", "command_program"]).out;
        for program in ["`echo a`", "`cat`", "`date`", "`true`", "`cat sums.py`", "`head -n 1`"] {
            assert!(log.contains(&format!("a command line starts {program}")), "{program}: {log}");
        }
        assert!(!log.contains("touch") && !log.contains("`rm"), "{log}");
    }

    #[test]
    fn lead_nowhere_else() {
        let lab = Lab::new(Language::Python);
        let lines = [
            line("echo x > .git/hooks/pre-commit"),
            line("echo x > .fluffy/policy.yaml"),
            line("echo x > ../outside"),
            line("X=sh; $X -c 'touch made.txt'"),
            line("bash -c 'touch made.txt'"),
            line("echo 'touch made.txt' | sh"),
            line("env s? -c x"),
            line("touch made.txt; echo $(id)"),
            line(&"true | ".repeat(10_000)),
        ];
        let (_run, told) = answers(&lab, &["--yes"], &lines);
        for (at, why) in [
            (0, "the policy does not let"),
            (1, "the policy does not let"),
            (2, "a stream cannot lead to"),
            (3, "is a shell"),
            (4, "is a shell"),
            (5, "is a shell"),
            (6, "name the files"),
            (7, "the output of a command"),
            (8, "more than 16384 bytes"),
        ] {
            assert!(told[at]["reason"].to_string().contains(why), "{why}: {}", told[at]);
        }
        assert!(!lab.root().join("made.txt").exists());
        assert!(!lab.root().join(".git/hooks/pre-commit").exists());
    }
}

mod hosts {
    use super::*;

    /// Asks the proxy for a tunnel to a host, and prints how the answer begins.
    const ASK: &str = "import os, socket, sys
proxy = os.environ.get('http_proxy')
if not proxy: sys.exit('no network')
host, port = proxy.removeprefix('http://').rstrip('/').split(':')
s = socket.create_connection((host, int(port)))
place = sys.argv[1]
s.sendall(f'CONNECT {place} HTTP/1.1\\r\\nHost: {place}\\r\\n\\r\\n'.encode())
print(s.recv(12).decode())";

    fn ask(place: &str, hosts: &Value) -> Value {
        let args = ["-c", &ASK.replace("\\\\", "\\"), place];
        call("shell.run", json!({"command": "python3", "args": args, "hosts": hosts}))
    }

    fn lab() -> Lab {
        let lab = Lab::new(Language::Python);
        let shipped = include_str!("../../../../policy/src/default_policy.yaml");
        let lines = shipped.lines().filter(|line| !line.starts_with("network_whitelist"));
        let listed = lines.collect::<Vec<_>>().join("\n")
            + "\nnetwork_whitelist: { api: [api.example.invalid] }\n";
        lab.user.write(".fluffy/policy.yaml", &listed);
        lab
    }

    #[test]
    fn listed_are_reached_and_recorded() {
        let lab = lab();
        let listed = json!(["api.example.invalid"]);
        let calls = [
            ask("api.example.invalid:443", &listed),
            ask("other.example.invalid:443", &listed),
            ask("127.0.0.1:80", &listed),
            call("shell.run", json!({"command": "python3", "args": ["-c", ASK, "x:1"]})),
        ];
        let run = lab.run(&["--no"], &turns_with(&lab, &calls));
        run.assert_done();
        let told = lab.contents(&run, "shell.run");
        assert!(told[0]["stdout"].as_str().unwrap().contains("HTTP/1.1 5"), "{}", told[0]);
        for refused in &told[1..3] {
            assert_eq!(refused["stdout"], "HTTP/1.1 403\n", "{refused}");
        }
        assert!(told[3]["stderr"].to_string().contains("no network"), "{}", told[3]);
        let log = lab.user.run(&["audit", "log", "--json", "--event", "network_request"]).out;
        for host in ["api.example.invalid", "other.example.invalid", "127.0.0.1"] {
            assert!(log.contains(host), "{host}: {log}");
        }
    }

    #[test]
    fn others_need_a_person_each_time() {
        let lab = lab();
        let other = json!(["other.example.invalid"]);
        let turns = turns_with(&lab, &[ask("other.example.invalid:443", &other)]);
        let run = lab.run(&["--yes"], &turns);
        run.assert_done();
        let told = lab.contents(&run, "shell.run");
        let reason = told[0]["reason"].to_string();
        assert!(reason.contains("`network_whitelist` does not list"), "{reason}");
        let address = ask("127.0.0.1:80", &json!(["127.0.0.1"]));
        let run = lab.run(&["--yes"], &turns_with(&lab, &[address]));
        let told = lab.contents(&run, "shell.run");
        assert!(told[0]["reason"].to_string().contains("addresses are not reached"), "{}", told[0]);
    }
}

mod limits {
    use super::*;

    fn sleep(seconds: &str, more: Value) -> Value {
        let mut call = call("shell.run", json!({"command": "sleep", "args": [seconds]}));
        if let (Some(own), Value::Object(more)) = (call["arguments"].as_object_mut(), more) {
            own.extend(more);
        }
        call
    }

    #[test]
    fn of_the_user_hold_and_are_named() {
        let lab = Lab::new(Language::Python);
        let turns =
            turns_with(&lab, &[sleep("20", json!({})), sleep("20", json!({"timeout_ms": 300}))]);
        let mut command = lab.command(&[], &turns);
        command.env("FLUFFY_LIMITS_COMMAND_TIME_SECONDS", "1");
        let run = Run::of(crate::program::Answer::of(command.output().unwrap()));
        run.assert_done();
        let told = lab.contents(&run, "shell.run");
        assert_eq!(told[0]["end"], "ended: the time limit was reached", "{}", told[0]);
        let hint = told[0]["limits_hint"].to_string();
        assert!(hint.contains("`limits.command.time_seconds` is 1; 2 is likely enough"), "{hint}");
        let hint = told[1]["limits_hint"].to_string();
        assert!(hint.contains("`timeout_ms` is 300; 600 is"), "{hint}");
    }

    #[test]
    fn of_the_user_give_more_than_the_template() {
        let lab = Lab::new(Language::Python);
        let take = "x = bytearray(1300 << 20); x[::4096] = b'x' * len(x[::4096]); print('enough')";
        let run_with = |memory: &str| {
            let mut command = lab.command(&[], &turns_with(&lab, &[python(take)]));
            command.env("FLUFFY_LIMITS_COMMAND_MEMORY_MIB", memory);
            let run = Run::of(crate::program::Answer::of(command.output().unwrap()));
            lab.contents(&run, "shell.run")[0].clone()
        };
        assert_eq!(run_with("2048")["stdout"], "enough\n");
        let ended = run_with("1024");
        assert_ne!(ended["stdout"], "enough\n");
        let hint = ended["limits_hint"].to_string();
        assert!(hint.contains("`limits.command.memory_mib` is 1024; 2048 is"), "{ended}");
    }

    #[test]
    fn of_a_project_only_narrow() {
        let lab = Lab::new(Language::Python);
        lab.user.write(".fluffy/config.yaml", "limits:\n  command:\n    time_seconds: 1\n");
        let run = lab.run(&[], &turns_with(&lab, &[sleep("20", json!({}))]));
        let told = lab.contents(&run, "shell.run");
        assert_eq!(told[0]["end"], "ended: the time limit was reached", "{}", told[0]);
        lab.user.write(".fluffy/config.yaml", "limits:\n  command:\n    time_seconds: 80000\n");
        let said = lab.user.run(&["config", "get", "limits.command.time_seconds"]);
        assert!(
            said.out.contains("300") && !said.out.contains("80000"),
            "{} {}",
            said.out,
            said.err
        );
    }
}
