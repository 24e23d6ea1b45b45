//! Red and green, held against what a model would try.

use proptest::prelude::*;

use super::*;

/// Tests as `name=passed@place`; `!file` at the end is a file that cannot be built.
fn run(text: &str) -> TestRun {
    let (text, extent) = match text.strip_prefix("part ") {
        Some(rest) => (rest, Extent::Part),
        None => (text, Extent::Whole),
    };
    let mut broken = BTreeSet::new();
    let mut cases = Vec::new();
    for word in text.split_whitespace() {
        if let Some(file) = word.strip_prefix('!') {
            broken.insert(path(file));
            continue;
        }
        let (id, rest) = word.split_once('=').unwrap();
        let (outcome, place) = match rest.split_once('@') {
            Some((outcome, place)) => (outcome, Some(path(place))),
            None => (rest, None),
        };
        let outcome = match outcome {
            "ok" => Outcome::Passed,
            "bad" => Outcome::Failed,
            "skip" => Outcome::Skipped,
            other => panic!("{other}"),
        };
        cases.push((id.to_owned(), TestCase { outcome, place }));
    }
    let run = TestRun::new(extent, cases).unwrap();
    if broken.is_empty() { run } else { run.broken_by(broken) }
}

fn path(text: &str) -> ProjectPath {
    ProjectPath::parse(text).unwrap()
}

fn check_red(before: Option<&str>, now: &str, expected: &str) {
    let written = BTreeSet::from([path("tests/new.py")]);
    let answer = red(before.map(run).as_ref(), &run(now), &written);
    let shown = match &answer {
        Ok(red) => format!("red {:?} {:?}", red.failing, red.broken.len()),
        Err(why) => why.to_string(),
    };
    assert!(shown.starts_with(expected), "{before:?} {now}: {shown}");
}

fn check_green(before: Option<&str>, at_red: &str, now: &str, expected: &str) {
    let before = before.map(run);
    let written = BTreeSet::from([path("tests/new.py")]);
    let red = red(before.as_ref(), &run(at_red), &written).unwrap();
    let shown = match green(before.as_ref(), Some(&red), &run(now)) {
        Ok(()) => "green".to_owned(),
        Err(why) => why.to_string(),
    };
    assert_eq!(shown, expected, "{at_red} -> {now}");
}

#[test]
fn a_new_test_that_fails_is_red() {
    check_red(Some("a=ok"), "a=ok b=bad", r#"red {"b"} 0"#);
    check_red(None, "a=ok b=bad@tests/new.py", r#"red {"b"} 0"#);
    check_red(Some("a=ok"), "a=bad", r#"red {"a"} 0"#);
    check_red(Some("a=ok"), "part b=bad", r#"red {"b"} 0"#);
}

#[test]
fn a_test_that_failed_before_or_elsewhere_is_not_red() {
    check_red(Some("a=bad"), "a=bad", "only tests fail that failed before");
    check_red(None, "a=bad@tests/old.py", "only tests fail that failed before");
    check_red(None, "a=bad", "only tests fail that failed before");
    check_red(Some("part x=ok"), "a=bad", "only tests fail that failed before");
}

#[test]
fn a_test_that_failed_before_is_red_in_a_file_that_the_task_writes_again() {
    check_red(Some("a=bad@tests/new.py"), "a=bad@tests/new.py", r#"red {"a"} 0"#);
    check_red(Some("!tests/new.py"), "!tests/new.py", "red {} 1");
    let (before, now) = ("a=bad@tests/new.py", "a=bad@tests/new.py b=bad@tests/new.py");
    check_red(Some(before), now, r#"red {"b"} 0"#);
}

/// What fails before the task, and what a later run without tests of the task's own is.
fn check_others(before: &str, now: &str, expected: &str) {
    let before = run(before);
    let shown = match Red::by_others(&before) {
        None => "not red".to_owned(),
        Some(red) => match green(Some(&before), Some(&red), &run(now)) {
            Ok(()) => "green".to_owned(),
            Err(why) => why.to_string(),
        },
    };
    assert!(shown.starts_with(expected), "{before:?} -> {now}: {shown}");
}

#[test]
fn tests_that_others_wrote_are_red_where_they_are_frozen() {
    for nothing in
        ["a=ok@tests/x.py", "a=bad", "a=bad@src/lib.rs", "part a=bad@tests/x.py", "!src/lib.rs"]
    {
        check_others(nothing, "", "not red");
    }
    check_others("a=bad@tests/x.py", "a=ok@tests/x.py", "green");
    check_others(
        "a=bad@tests/x.py",
        "a=bad@tests/x.py",
        "tests that were red did not run and pass: `a`",
    );
    check_others("!tests/x.py", "a=ok@tests/x.py", "green");
    check_others("!tests/x.py", "!tests/x.py", "no test ran and passed");
    check_others("!tests/x.py", "a=bad@tests/x.py", "tests fail: `a`");
    check_others("!tests/x.py", "", "no test ran and passed");
}

#[test]
fn of_several_files_that_others_wrote_some_are_finished_and_none_is_left_half_done() {
    let before = "a=bad@tests/x.py b=bad@tests/x.py c=bad@tests/y.py";
    check_others(before, "a=ok@tests/x.py b=ok@tests/x.py c=bad@tests/y.py", "green");
    let half = "a=ok@tests/x.py b=bad@tests/x.py c=ok@tests/y.py";
    check_others(before, half, "tests that were red did not run and pass: `b`");
    let none = "a=bad@tests/x.py b=bad@tests/x.py c=bad@tests/y.py";
    check_others(before, none, "tests that were red did not run and pass: `a`, `b`, `c`");
    let broken = "!tests/x.py !tests/y.py";
    check_others(broken, "a=ok@tests/x.py !tests/y.py", "green");
    check_others(broken, "a=ok@tests/x.py !tests/y.py !tests/z.py", "the build fails");
    check_others(broken, "!tests/x.py !tests/y.py", "no test ran and passed");
    check_others("!tests/x.py a=bad@tests/y.py", "b=ok@tests/x.py a=bad@tests/y.py", "green");
    check_others(
        "!tests/x.py a=bad@tests/y.py",
        "!tests/x.py a=bad@tests/y.py",
        "tests that were red",
    );
    check_others("!tests/x.py a=bad@tests/y.py", "!tests/x.py a=ok@tests/y.py", "green");
}

#[test]
fn a_file_that_could_not_be_built_before_is_excused_and_another_is_not() {
    check_green(
        Some("!tests/old.py"),
        "!tests/old.py b=bad@tests/new.py",
        "!tests/old.py b=ok@tests/new.py",
        "green",
    );
    check_green(
        Some("a=ok"),
        "a=ok b=bad",
        "a=ok b=ok !tests/old.py",
        "the build fails: `tests/old.py`",
    );
}

#[test]
fn nothing_that_fails_is_not_red() {
    check_red(Some("a=ok"), "a=ok b=ok", "no test fails");
    check_red(Some("a=ok"), "a=ok b=skip", "no test fails");
    check_red(None, "", "the run found no test");
    let none = red(None, &run("a=bad@tests/new.py"), &BTreeSet::new());
    assert_eq!(none, Err(NotRed::NoTestWritten));
}

#[test]
fn a_build_failure_is_red_only_through_a_test_file_of_the_task() {
    check_red(Some("a=ok"), "!tests/new.py", "red {} 1");
    check_red(Some("a=ok"), "!src/lib.rs", "the build fails, but in no test file");
    check_red(Some("!tests/old.py"), "!tests/old.py", "the build fails, but in no test file");
}

#[test]
fn what_was_red_has_to_pass() {
    check_green(Some("a=ok"), "a=ok b=bad", "a=ok b=ok", "green");
    check_green(Some("a=ok"), "a=ok b=bad", "a=ok b=ok c=ok", "green");
    let still = "tests that were red did not run and pass: `b`";
    check_green(Some("a=ok"), "a=ok b=bad", "a=ok b=bad", still);
    check_green(Some("a=ok"), "a=ok b=bad", "a=ok b=skip", still);
    check_green(Some("a=ok"), "a=ok b=bad", "a=ok", still);
    check_green(Some("a=ok"), "a=ok b=bad", "a=ok renamed=ok", still);
}

#[test]
fn nothing_may_get_worse() {
    check_green(Some("a=ok"), "a=ok b=bad", "a=bad b=ok", "tests fail: `a`");
    check_green(
        Some("a=ok"),
        "a=ok b=bad",
        "a=skip b=ok",
        "tests are skipped that ran before: `a`",
    );
    check_green(Some("a=ok"), "a=ok b=bad", "b=ok", "tests are gone: `a`");
    check_green(Some("a=ok d=ok"), "a=ok b=bad", "a=ok b=ok", "tests are gone: `d`");
    check_green(Some("a=skip"), "a=skip b=bad", "b=ok", "tests are gone: `a`");
    check_green(Some("a=ok"), "b=bad", "a=ok b=ok c=bad", "tests fail: `c`");
}

#[test]
fn a_failure_from_before_the_task_is_excused_only_where_it_is_known() {
    check_green(Some("a=bad"), "a=bad b=bad", "a=bad b=ok", "green");
    check_green(
        Some("a=bad"),
        "a=bad b=bad",
        "a=skip b=ok",
        "tests are skipped that ran before: `a`",
    );
    check_green(None, "a=bad b=bad@tests/new.py", "a=bad b=ok", "tests fail: `a`");
}

#[test]
fn a_part_of_the_tests_or_a_broken_build_is_never_green() {
    check_green(Some(""), "b=bad", "part b=ok", "the run covers only a part of the tests");
    check_green(Some(""), "b=bad", "b=ok !src/x.rs", "the build fails: `src/x.rs`");
}

#[test]
fn after_a_build_failure_tests_of_those_files_have_to_run_and_pass() {
    let check = |now: &str, expected: &str| {
        check_green(Some("a=ok"), "!tests/new.py", now, expected);
    };
    let not_run = "no test ran and passed of files that could not be built before: `tests/new.py`";
    check("a=ok n=ok@tests/new.py", "green");
    check("a=ok n=ok@tests", "green");
    check("a=ok@tests", not_run);
    check("a=ok n=ok", not_run);
    check("a=ok n=ok@tests/new.py m=skip@tests/new.py", "green");
    check("a=ok n=skip@tests/new.py", not_run);
}

#[test]
fn a_file_that_is_red_has_to_be_built_also_where_it_could_not_be_before() {
    let before = run("part !tests/new.py");
    let now = run("a=ok@tests/new.py !tests/new.py");
    let written = BTreeSet::from([path("tests/new.py")]);
    let red = red(Some(&before), &now, &written).unwrap();
    assert!(matches!(green(Some(&before), Some(&red), &now), Err(NotGreen::NotRun(_))));
    assert_eq!(green(Some(&before), Some(&red), &run("a=ok@tests/new.py")), Ok(()));
}

#[test]
fn a_reason_names_the_first_few() {
    let named = Named::of(["a", "b", "c", "d", "e"].into_iter());
    assert_eq!(named.to_string(), "`a`, `b`, `c` and 2 more");
}

fn any_run() -> impl Strategy<Value = TestRun> {
    let outcome = prop_oneof![Just(Outcome::Passed), Just(Outcome::Skipped), Just(Outcome::Failed)];
    let place = proptest::option::of(prop_oneof![
        Just(path("tests/new.py")),
        Just(path("tests/old.py")),
        Just(path("tests"))
    ]);
    let cases = proptest::collection::vec(("[a-e]", outcome, place), 0..6);
    let broken = proptest::option::weighted(0.2, Just(path("tests/new.py")));
    (cases, broken, any::<bool>()).prop_map(|(cases, broken, whole)| {
        let extent = if whole { Extent::Whole } else { Extent::Part };
        let case = |(id, outcome, place)| (id, TestCase { outcome, place });
        let run = TestRun::new(extent, cases.into_iter().map(case)).unwrap();
        match broken {
            Some(file) => run.broken_by([file]),
            None => run,
        }
    })
}

proptest! {
    /// The run that was red is never the run that is green.
    #[test]
    fn no_run_is_red_and_green(before in proptest::option::of(any_run()), now in any_run()) {
        let written = BTreeSet::from([path("tests/new.py")]);
        if let Ok(red) = red(before.as_ref(), &now, &written) {
            prop_assert!(green(before.as_ref(), Some(&red), &now).is_err());
        }
    }

    /// Taking any test out of a green run, or skipping it, never helps.
    #[test]
    fn a_green_run_has_passed_everything_that_was_red(
        before in proptest::option::of(any_run()),
        first in any_run(),
        now in any_run(),
    ) {
        let written = BTreeSet::from([path("tests/new.py")]);
        let Ok(red) = red(before.as_ref(), &first, &written) else { return Ok(()) };
        if green(before.as_ref(), Some(&red), &now).is_ok() {
            for id in &red.failing {
                prop_assert_eq!(now.outcome(id), Some(Outcome::Passed));
            }
            for (id, _) in first.cases() {
                prop_assert!(now.outcome(id).is_some());
            }
        }
    }
}

fn without_result(run: TestRun, suite: &str) -> TestRun {
    run.with_suites_without_result([suite.to_owned()]).unwrap()
}

#[test]
fn flo_12_suite_without_result_is_never_red() {
    let written = BTreeSet::from([path("tests/new.py")]);
    for before in [None, Some(run("a=ok")), Some(run("")), Some(without_result(run(""), "s: (x)"))]
    {
        for now in ["", "a=ok"] {
            let silent = without_result(run(now), "s: (x)");
            let error = red(before.as_ref(), &silent, &written).unwrap_err();
            assert!(matches!(error, NotRed::NoResult(_)), "{error}");
        }
    }
    // A test of the task that fails in another suite is red all the same.
    let silent = without_result(run("b=bad@tests/new.py"), "s: (x)");
    red(Some(&run("a=ok")), &silent, &written).unwrap();
}

#[test]
fn flo_12_suite_without_result_is_never_green() {
    let before = run("a=ok");
    let silent = || without_result(run("a=ok"), "s: (x)");
    assert!(matches!(green(Some(&before), None, &silent()), Err(NotGreen::NoResult(_))));
    assert!(matches!(green(None, None, &silent()), Err(NotGreen::NoResult(_))));
    // What could not be run before the task is not the task's to repair.
    assert_eq!(green(Some(&silent()), None, &silent()), Ok(()));
    let other = without_result(silent(), "t: (x)");
    assert!(matches!(green(Some(&silent()), None, &other), Err(NotGreen::NoResult(_))));
}

#[test]
fn flo_12_test_is_not_new_where_a_suite_gave_no_result_before() {
    let before = without_result(run("a=ok"), "s: (x)");
    let written = BTreeSet::from([path("tests/new.py")]);
    let error = red(Some(&before), &run("a=ok s=bad@s/old.py"), &written).unwrap_err();
    assert!(matches!(error, NotRed::OnlyOthersFail(_)), "{error}");
}
