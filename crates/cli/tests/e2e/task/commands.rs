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
