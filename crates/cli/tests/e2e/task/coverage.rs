//! The coverage budget: a command of the user's own runs the tests and leaves an lcov report.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::lab::{Lab, Language, Run, call, complete, run_tests, say, write};

const BASELINE: &str = ".fluffy/coverage-baseline.json";

/// Runs every `test_*` function and writes down which lines of `sums.py` they reached.
const CHECK: &str = "\
import os, sys

sys.dont_write_bytecode = True
sys.path.insert(0, '.')
hit = set()


def trace(frame, event, arg):
    if not frame.f_code.co_filename.endswith('sums.py'):
        return None
    if event == 'line':
        hit.add(frame.f_lineno)
    return trace


def lines(code):
    yield from (line for _, _, line in code.co_lines() if line)
    for const in code.co_consts:
        if hasattr(const, 'co_lines'):
            yield from lines(const)


failed = 0
sys.settrace(trace)
for name in sorted(os.listdir('.')):
    if name.startswith('test_') and name.endswith('.py'):
        try:
            module = __import__(name[:-3])
            for test in sorted(vars(module)):
                if test.startswith('test_'):
                    getattr(module, test)()
        except Exception as error:
            print(name, repr(error), file=sys.stderr)
            failed = 1
sys.settrace(None)
with open('sums.py') as source:
    known = sorted(set(lines(compile(source.read(), 'sums.py', 'exec'))))
with open('lcov.info', 'w') as report:
    report.write('TN:\\nSF:sums.py\\n')
    for line in known:
        report.write('DA:%d,%d\\n' % (line, line in hit))
    report.write('end_of_record\\n')
sys.exit(failed)
";

/// Ten functions, of which so many are tested: each has a line that is always reached and one that a test must reach.
fn project(tested: usize) -> Lab {
    let lab = Lab::empty(Language::Rust);
    let config = "test:\n  command: [python3, check.py]\n  coverage: lcov.info\n";
    let tests: String = (0..tested).map(|n| format!("    assert sums.f{n}() == {n}\n")).collect();
    lab.user.write(".fluffy/config.yaml", config);
    lab.user.write("check.py", CHECK);
    lab.user.write("sums.py", &functions());
    lab.user.write("test_sums.py", &format!("import sums\n\n\ndef test_sums():\n{tests}"));
    lab.user.write(".gitignore", "lcov.info\n");
    lab.git(&["init", "-q", "-b", "main"]);
    lab.git(&["config", "user.name", "Ada"]);
    lab.git(&["config", "user.email", "ada@example.org"]);
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "start"]);
    lab
}

fn functions() -> String {
    (0..10).map(|n| format!("def f{n}():\n    return {n}\n")).collect()
}

fn with_double() -> String {
    functions() + "def double(a):\n    return 2 * a\n"
}

fn keeps(lab: &Lab, covered: u64, total: u64) {
    let baseline = json!({"version": 1, "covered": covered, "total": total});
    lab.user.write(BASELINE, &baseline.to_string());
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "baseline"]);
}

const TEST: &str = "import sums\n\n\ndef test_double():\n    assert sums.double(4) == 8\n";

fn measured() -> Value {
    call("test.run", json!({"coverage": true}))
}

/// Tests first, with this code, and this last run.
fn strict(test: &str, code: &str, last: Value) -> Vec<Value> {
    vec![
        say("A test.", &[write("test_double.py", test)]),
        say("Red.", &[run_tests()]),
        say("Code.", &[write("sums.py", code)]),
        say("Green.", &[last]),
        complete(),
    ]
}

fn explore() -> Vec<Value> {
    vec![say("Code.", &[write("sums.py", &with_double())]), complete()]
}

fn merged(run: &Run) -> Vec<String> {
    let files = run.all("merge.completed").into_iter().flat_map(|event| {
        event["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap())
    });
    files.map(str::to_owned).collect()
}

fn levels(run: &Run) -> Vec<&str> {
    run.all("coverage.measured").iter().map(|event| event["level"].as_str().unwrap()).collect()
}

#[test]
fn flo_5_a_strict_task_that_measured_coverage_raises_the_baseline_as_a_part_of_its_merge() {
    let lab = project(9);
    let run = lab.run(&[], &strict(TEST, &with_double(), measured()));
    run.assert_done();
    assert_eq!(merged(&run), [BASELINE, "sums.py", "test_double.py"], "{}", run.told());
    assert!(run.all("review.requested").is_empty(), "{}", run.told());
    let kept: Value = serde_json::from_str(&lab.user.read(BASELINE)).unwrap();
    assert_eq!(kept, json!({"version": 1, "covered": 21, "total": 22}));
    assert_eq!(lab.git(&["show", &format!("HEAD:{BASELINE}")]), lab.user.read(BASELINE));
    assert_eq!(lab.git(&["status", "--porcelain"]), "");
    assert_eq!(levels(&run), ["kept"], "{}", run.told());
    let log = lab.user.run(&["audit", "log", "--json", "--limit", "500"]);
    let asked = log.json_lines().into_iter().filter(|entry| {
        entry.to_string().contains("session.keep_coverage")
            && entry.to_string().contains("session.coverage")
    });
    assert!(asked.count() >= 2, "a decision and its outcome: {}", log.out);
    assert_eq!(lab.user.run(&["audit", "verify"]).code, 0);
}

#[test]
fn flo_5_the_baseline_only_rises_and_only_by_the_very_work_that_was_measured() {
    let lab = project(9);
    keeps(&lab, 19, 20);
    let before = lab.user.read(BASELINE);
    // One more function that nothing tests: lower than the baseline, and said so to the model.
    let worse = with_double() + "def more():\n    return 1\n";
    let run = lab.run(&[], &strict(TEST, &worse, measured()));
    run.assert_done();
    assert_eq!((levels(&run), lab.user.read(BASELINE)), (vec!["warned"], before));
    let heard = lab.heard(&run);
    assert!(heard.contains("coverage is 91.66 %, the project's baseline 95.00 %"), "{heard}");

    // Measured before the code was changed again: not what is merged.
    let lab = project(9);
    keeps(&lab, 10, 20);
    let before = lab.user.read(BASELINE);
    let turns = [
        say("A test.", &[write("test_double.py", TEST)]),
        say("Red, measured.", &[measured()]),
        say("Code.", &[write("sums.py", &with_double())]),
        say("Green, not measured.", &[run_tests()]),
        complete(),
    ];
    let run = lab.run(&[], &turns);
    run.assert_done();
    assert_eq!(merged(&run), ["sums.py", "test_double.py"], "{}", run.told());
    assert_eq!(lab.user.read(BASELINE), before);
}

#[test]
fn flo_5_a_baseline_of_work_that_was_rejected_does_not_come_with_other_work() {
    let lab = project(9);
    let long = with_double() + &"# a line\n".repeat(600);
    let turns = [
        say("A test.", &[write("test_double.py", TEST)]),
        say("Red.", &[run_tests()]),
        say("Code.", &[write("sums.py", &long)]),
        say("Green.", &[measured()]),
        say("Shorter.", &[write("sums.py", &with_double())]),
        say("Green, not measured.", &[run_tests()]),
        complete(),
    ];
    let run = lab.run(&["--no"], &turns);
    run.assert_done();
    assert_eq!(run.all("review.requested").len(), 1, "{}", run.told());
    let diff = run.all("review.requested")[0]["diff"].to_string();
    assert!(diff.contains(BASELINE), "what would be merged is shown: {diff}");
    assert_eq!(merged(&run), ["sums.py", "test_double.py"], "{}", run.told());
    assert!(!lab.root().join(BASELINE).exists());
}

#[test]
fn flo_5_a_model_can_neither_write_nor_ask_for_a_baseline() {
    let lab = project(9);
    keeps(&lab, 20, 20);
    let before = lab.snapshot();
    let low = json!({"version": 1, "covered": 1, "total": 100}).to_string();
    let keep = |args: Value| call("session.keep_coverage", args);
    let copy = json!({"command": "cp", "args": ["low.json", BASELINE]});
    let turns = [
        say("", &[write(BASELINE, &low), write(".FLUFFY/coverage-baseline.json", &low)]),
        say("", &[call("fs.delete", json!({"path": BASELINE}))]),
        say("", &[keep(json!({"path": BASELINE, "covered": 1, "total": 100}))]),
        say("", &[keep(json!({"path": BASELINE}))]),
        say("", &[call("shell.run", copy)]),
        say("I give up.", &[]),
    ];
    lab.user.write("low.json", &low);
    let run = lab.run(&["--mode", "explore", "--yes"], &turns);
    for tool in ["fs.write", "fs.delete", "session.keep_coverage"] {
        let answers = run.answers(tool);
        assert!(!answers.is_empty(), "{}", run.told());
        assert!(answers.iter().all(|it| it["decision"] == "denied"), "{}", run.told());
    }
    let copied = lab.contents(&run, "shell.run");
    assert!(copied.iter().all(|it| it["not_taken"]["reason"].is_string()), "{}", run.told());
    std::fs::remove_file(lab.root().join("low.json")).unwrap();
    let files = |snapshot: &BTreeMap<PathBuf, (Vec<u8>, i64, i64, u32)>| {
        let regular = snapshot.iter().filter(|(_, file)| file.3 & 0o170_000 == 0o100_000);
        regular.map(|(path, file)| (path.clone(), file.0.clone())).collect::<Vec<_>>()
    };
    assert_eq!(files(&lab.snapshot()), files(&before));
}

#[test]
fn flo_5_a_drop_of_more_than_two_points_is_told_to_the_person_and_to_the_model() {
    let lab = project(9);
    keeps(&lab, 20, 20);
    let mut turns = explore();
    turns.insert(0, say("What stands in the way?", &[write(BASELINE, "x")]));
    let run = lab.run(&["--mode", "explore", "--yes"], &turns);
    run.assert_done();
    let heard = lab.heard(&run);
    assert!(heard.contains(r#""warning":"coverage is 95.00 %"#), "the model's standing: {heard}");
    // Once of the project when the mode is asked for, and once of the work that is to be merged.
    assert_eq!(levels(&run), ["warned", "locked"], "{}", run.told());
    let told = run.all("coverage.measured")[0];
    assert_eq!((&told["covered"], &told["total"]), (&json!(19), &json!(20)));
    assert_eq!(told["baseline"], 10_000);
    let reasons = run.all("review.requested")[0]["reasons"].to_string();
    assert!(reasons.contains("coverage is 90.90 %, the project's baseline 100.00 %"), "{reasons}");
    // The same for people.
    let lab = project(9);
    keeps(&lab, 20, 20);
    let command = lab.command(&["--mode", "explore", "--yes"], &explore());
    let words: Vec<_> = command.get_args().filter(|word| *word != "--json").collect();
    let mut command = lab.user.command(&words);
    command.env("HOME", std::env::var_os("HOME").unwrap_or_default());
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    let shown = String::from_utf8(output.stderr).unwrap();
    let line = "  warning  coverage is 95.00 %, the project's baseline 100.00 %: it has fallen by more than two points";
    assert!(shown.lines().any(|it| it == line), "{shown}");
}

#[test]
fn flo_5_explore_is_locked_by_a_drop_of_more_than_five_points_until_strict_work_won_it_back() {
    let lab = project(8);
    keeps(&lab, 20, 20);
    let before = lab.snapshot();
    for mode in ["explore", "debug"] {
        let run = lab.run(&["--mode", mode, "--yes"], &explore());
        run.assert_not_done(3);
        assert_eq!(levels(&run), ["locked"], "{}", run.told());
        let why = run.all("task.failed")[0]["why"].to_string();
        assert!(mode == "debug" || why.contains("coverage is 90.00 %"), "{why}");
    }
    assert_eq!(lab.snapshot(), before);
    let won = format!("{TEST}    assert (sums.f8(), sums.f9()) == (8, 9)\n");
    lab.run(&[], &strict(&won, &with_double(), measured())).assert_done();
    let more = [say("Code.", &[write("sums.py", &(with_double() + "# done\n"))]), complete()];
    let run = lab.run(&["--mode", "explore", "--yes"], &more);
    run.assert_done();
    assert_eq!(levels(&run), ["kept", "kept"], "{}", run.told());
}

fn unfinished() -> Vec<Value> {
    vec![say("A test.", &[write("test_double.py", TEST)]), say("Red.", &[run_tests()])]
}

#[test]
fn flo_5_a_person_is_told_how_the_budget_stands() {
    let lab = project(9);
    let asked = || {
        let mut command = lab.user.command(&["session", "budget"]);
        command.env("HOME", std::env::var_os("HOME").unwrap_or_default());
        crate::program::Answer::of(command.output().unwrap())
    };
    let none = asked();
    assert!(none.code == 1 && none.err.contains("run a task"), "{}{}", none.out, none.err);
    // Work that is not finished: nobody ran its tests, and it is not merged.
    lab.run(&["--no"], &unfinished()).assert_not_done(1);
    let without = asked();
    assert_eq!(without.code, 0, "{}{}", without.out, without.err);
    assert_eq!(
        without.out,
        format!("coverage is 95.00 %; the project keeps no baseline (`{BASELINE}`)\n")
    );
    keeps(&lab, 99, 100);
    let fallen = asked().out;
    assert!(fallen.contains("95.00 %, the project's baseline 99.00 %"), "{fallen}");
    assert!(fallen.contains("more than two points"), "{fallen}");
}
