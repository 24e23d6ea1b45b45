//! What is read from recorded runs.

use fluffy_workflow::{Report, ResultsError, Run, Suite, TestResult, read};

use crate::fixtures::{ROOT, outline, path, recorded, suites};

fn report(case: &str) -> Report {
    recorded(case).read().unwrap_or_else(|error| panic!("{case}: {error}"))
}

fn check(case: &str, green: bool, expected: &str) {
    let report = report(case);
    assert_eq!(outline(&report), expected.trim(), "{case}");
    assert_eq!(report.is_green(), green, "{case}");
}

fn contradicts(case: &str, why: &str) {
    match recorded(case).read() {
        Err(ResultsError::Contradiction(found)) => assert!(found.contains(why), "{found}"),
        other => panic!("{case}: {other:?}"),
    }
}

fn message(case: &str, name: &str) -> String {
    let report = report(case);
    let (_, outcome) = report.tests().iter().find(|(id, _)| id.name() == name).unwrap();
    match outcome {
        TestResult::Failed { message } => message.clone(),
        other => panic!("{other:?}"),
    }
}

const ALPHA: &str = "
+ rust/alpha/src/lib.rs: alpha-pkg tests::adds
+ rust/alpha/src/lib.rs: alpha-pkg tests::overflows
o rust/alpha/src/lib.rs: alpha-pkg tests::slow
+ rust/alpha/src/lib.rs: doc add #1
+ rust/alpha/src/lib.rs: doc add #2
+ rust/alpha/src/lib.rs: doc add #3
+ rust/alpha/src/lib.rs: doc add #4
+ rust/alpha/tests/it.rs: alpha-pkg::it inner::works
";

#[test]
fn cargo_tests_of_two_binaries_with_one_name_are_told_apart() {
    check("cargo-passing", true, &format!("{ALPHA}+ rust/beta/tests/it.rs: beta-pkg::it works"));
}

#[test]
fn what_a_failing_rust_test_prints_is_its_message_and_no_result() {
    let beta = "- rust/beta/tests/it.rs: beta-pkg::it fails
+ rust/beta/tests/it.rs: beta-pkg::it works";
    check("cargo-failing", false, &format!("{ALPHA}{beta}"));
    let said = message("cargo-failing", "beta-pkg::it fails");
    assert!(said.contains("one is two") && said.contains("test result: ok. 9 passed"), "{said}");
}

#[test]
fn what_is_around_tests_has_ended_if_one_of_them_passed() {
    let ended = |case: &str| {
        let names = report(case).ended().iter().map(ToString::to_string).collect::<Vec<_>>();
        names.join(", ")
    };
    assert_eq!(ended("go-passing"), "go: (package)");
    assert!(ended("jest-passing").contains("test.js: (file)"));
    assert!(ended("node-passing").contains("test.js: (file)"));
    // A binary that dies has not.
    assert!(!ended("cargo-abort").contains("beta-pkg::it"), "{}", ended("cargo-abort"));
    assert!(ended("cargo-passing").contains("beta-pkg::it (end)"));
}

#[test]
fn a_go_package_that_dies_beside_one_that_is_not_built_has_failed() {
    let suite = recorded("go-build").suite;
    let events = "FAIL\texample.com/project/sub [build failed]\n{\"Action\":\"output\",\"Package\":\"example.com/project\",\"Output\":\"panic: no\\n\"}\n{\"Action\":\"fail\",\"Package\":\"example.com/project\"}\n";
    // Since Go 1.24 the package that is not built has events as well.
    let later = "{\"Action\":\"output\",\"Package\":\"example.com/project/sub\",\"Output\":\"FAIL\\texample.com/project/sub [build failed]\\n\"}\n{\"Action\":\"fail\",\"Package\":\"example.com/project/sub\",\"FailedBuild\":\"x\"}\n";
    for stdout in [events.to_owned(), format!("{events}{later}")] {
        let run = Run {
            stdout: stdout.as_bytes(),
            stderr: b"",
            exit: Some(1),
            report: None,
            reports: &[],
            root: ROOT,
        };
        let report = read(&suite, &run).unwrap();
        let names: Vec<_> = report.tests().keys().map(ToString::to_string).collect();
        assert_eq!(names, ["go: (package)"]);
        assert!(report.build().is_some());
    }
}

#[test]
fn a_rust_test_binary_that_dies_has_failed() {
    let report = report("cargo-abort");
    assert!(!report.is_green());
    assert!(outline(&report).contains("- rust/beta/tests/it.rs: beta-pkg::it (end)"));
}

#[test]
fn a_rust_error_names_its_file_and_is_no_test_failure() {
    check("cargo-build", false, "build: rust/beta/tests/it.rs");
    assert!(report("cargo-build").build().unwrap().message.contains("cannot find function"));
    assert!(report("cargo-manifest").build().unwrap().files.is_empty());
    assert!(report("cargo-manifest").build().unwrap().message.contains("failed to load manifest"));
}

#[test]
fn a_rust_run_with_coverage_names_the_same_tests() {
    let (plain, covered) = (report("cargo-passing"), report("cargo-coverage"));
    assert!(covered.is_green());
    // Stable Rust measures no doctests.
    let plain = plain.tests().keys().filter(|id| !id.name().starts_with("doc "));
    assert!(covered.tests().keys().eq(plain));
}

#[test]
fn a_rust_run_of_one_pattern_reports_only_what_ran() {
    check("cargo-filtered", true, "+ rust/alpha/src/lib.rs: alpha-pkg tests::adds");
}

#[test]
fn a_print_that_looks_like_a_rust_result_is_a_contradiction() {
    contradicts("cargo-hostile", "test `fails` has two results");
    contradicts("cargo-forged-block", "more blocks of tests than binaries");
}

#[test]
fn pytest_tests_are_named_by_file_and_class() {
    let calc = "
+ py/tests/test_calc.py: TestMore::test_many[1]
+ py/tests/test_calc.py: TestMore::test_many[2]
+ py/tests/test_calc.py: test_adds
o py/tests/test_calc.py: test_expected
o py/tests/test_calc.py: test_later";
    check("pytest-passing", true, calc);
    let bad = "
- py/tests/test_bad.py: test_both
- py/tests/test_bad.py: test_setup
- py/tests/test_bad.py: test_teardown
- py/tests/test_bad.py: test_wrong";
    check("pytest-failing", false, &format!("{bad}{calc}"));
    assert!(message("pytest-failing", "test_wrong").contains("<one> & ]]> two"));
}

#[test]
fn a_python_file_that_cannot_be_imported_is_a_build_failure() {
    check("pytest-build", false, "build: py/tests/test_bad.py");
    assert!(report("pytest-build").build().unwrap().message.contains("missing_module"));
}

#[test]
fn a_pytest_that_finds_nothing_is_not_green() {
    check("pytest-none", false, "");
}

#[test]
fn a_runner_that_is_left_early_with_code_0_has_no_report() {
    for case in ["pytest-hostile", "jest-hostile"] {
        let found = recorded(case).read();
        assert!(matches!(found, Err(ResultsError::NoReport { exit: 0, .. })), "{case}: {found:?}");
    }
}

const NODE_CALC: &str = "
+ node/calc.test.js: adds
o node/calc.test.js: more > later
+ node/calc.test.js: more > nested # name
o node/calc.test.js: more > some day";

#[test]
fn node_tests_are_the_same_on_every_version_of_node() {
    check("node-passing", true, NODE_CALC);
    let bad = "
- node/bad.test.js: group > deep
- node/bad.test.js: hooked
- node/bad.test.js: hooked > never
+ node/bad.test.js: outer
+ node/bad.test.js: outer > inner
- node/bad.test.js: wrong";
    for case in ["node-failing", "node18-failing", "node22-failing"] {
        check(case, false, &format!("{bad}{NODE_CALC}"));
    }
    assert_eq!(message("node-failing", "wrong"), "1 == 2");
}

#[test]
fn a_file_that_node_cannot_parse_is_a_build_failure() {
    for case in ["node-build", "node22-build"] {
        check(case, false, &format!("{NODE_CALC}\nbuild: node/bad.test.js"));
    }
}

#[test]
fn a_node_test_that_exits_with_code_0_has_not_passed() {
    let report = report("node-hostile");
    assert!(outline(&report).starts_with("o node/bad.test.js: (file)\n"));
    assert!(!report.tests().keys().any(|id| id.name() == "wrong"));
}

#[test]
fn go_tests_are_named_by_the_directory_of_their_package() {
    let add = "
+ go: TestAdd
o go: TestLater
+ go: TestTable
+ go: TestTable/one_case
+ go: TestTable/two";
    check("go-passing", true, add);
    check("go-failing", false, &format!("{add}\n- go/sub: TestPanic\n- go/sub: TestWrong"));
    assert!(message("go-failing", "TestPanic").contains("boom"));
    check("go-build", false, &format!("{add}\nbuild: go/sub/sub_test.go"));
    assert!(report("go-build").build().unwrap().message.contains("undefined: missing"));
}

#[test]
fn a_print_that_looks_like_a_go_result_is_a_contradiction() {
    contradicts("go-hostile", "two results");
}

#[test]
fn a_newer_go_tells_failed_builds_as_events() {
    // After the documentation of `go help buildjson`, Go 1.24.
    let mut run = recorded("go-build");
    run.stderr.clear();
    run.stdout = br#"{"ImportPath":"example.com/project/sub","Action":"build-output","Output":"sub/sub_test.go:3:32: undefined: missing\n"}
{"ImportPath":"example.com/project/sub","Action":"build-fail"}
{"Action":"start","Package":"example.com/project/sub"}
{"Action":"output","Package":"example.com/project/sub","Output":"FAIL\texample.com/project/sub [build failed]\n"}
{"Action":"fail","Package":"example.com/project/sub","Elapsed":0,"FailedBuild":"example.com/project/sub"}
"#
    .to_vec();
    assert_eq!(outline(&run.read().unwrap()), "build: go/sub/sub_test.go");
}

#[test]
fn jest_and_vitest_report_alike() {
    for runner in ["jest", "vitest"] {
        let calc = format!(
            "
+ {runner}/calc.test.js: adds
o {runner}/calc.test.js: more > later
+ {runner}/calc.test.js: more > nested
o {runner}/calc.test.js: more > some day"
        );
        check(&format!("{runner}-passing"), true, &calc);
        let bad = format!("- {runner}/bad.test.js: wrong{calc}");
        check(&format!("{runner}-failing"), false, &bad);
        let build = format!("{calc}\nbuild: {runner}/bad.test.js");
        check(&format!("{runner}-build"), false, &build);
    }
    assert!(message("vitest-hostile", "wrong").contains("process.exit unexpectedly called"));
}

#[test]
fn a_configured_command_is_one_test_by_its_exit_code() {
    let suite = Suite::configured(vec!["make".to_owned(), "check".to_owned()]);
    let run =
        |exit| Run { stdout: b"", stderr: b"no\n", exit, report: None, reports: &[], root: ROOT };
    let passed = read(&suite, &run(Some(0))).unwrap();
    assert_eq!((outline(&passed).as_str(), passed.is_green()), ("+ .: make check", true));
    let failed = read(&suite, &run(Some(2))).unwrap();
    assert_eq!((outline(&failed).as_str(), failed.is_green()), ("- .: make check", false));
    assert_eq!(read(&suite, &run(None)), Err(ResultsError::Ended));
}

#[test]
fn a_report_and_an_exit_code_that_disagree_are_a_contradiction() {
    for case in ["pytest-passing", "node-passing", "jest-passing", "vitest-passing", "go-passing"] {
        let mut run = recorded(case);
        run.exit = 1;
        let found = run.read();
        assert!(matches!(found, Err(ResultsError::Contradiction(_))), "{case}: {found:?}");
    }
    for case in ["pytest-failing", "node-failing", "jest-build", "go-failing", "cargo-build"] {
        let mut run = recorded(case);
        run.exit = 0;
        let found = run.read();
        assert!(matches!(found, Err(ResultsError::Contradiction(_))), "{case}: {found:?}");
    }
}

#[test]
fn a_junit_report_that_declares_entities_is_refused() {
    let mut run = recorded("pytest-passing");
    run.report = Some(
        b"<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><testsuites><testsuite tests=\"1\"><testcase name=\"&x;\"/></testsuite></testsuites>"
            .to_vec(),
    );
    assert!(matches!(run.read(), Err(ResultsError::Malformed(_))));
}

#[test]
fn a_report_that_would_take_quadratic_time_is_refused() {
    let attributes: String = (0..200_000).map(|n| format!(" a{n} = ''")).collect();
    let mut run = recorded("pytest-passing");
    run.report = Some(format!("<testsuites><testsuite{attributes}/></testsuites>").into_bytes());
    let found = run.read();
    assert!(matches!(&found, Err(ResultsError::Malformed(why)) if why.contains("attributes")));
    let mut run = recorded("cargo-failing");
    let name = "test t";
    let tests: String = (0..50_000).map(|n| format!("{name}{n} ... FAILED\n")).collect();
    let sums = "test result: FAILED. 0 passed; 1 failed;\n".repeat(50_000);
    let head = "{\"reason\":\"build-finished\",\"success\":true}\nrunning 50000 tests\n";
    run.stdout = format!("{head}{tests}failures:\n{sums}").into_bytes();
    assert!(run.read().is_err());
}

#[test]
fn a_deeply_nested_report_is_an_answer_and_no_crash() {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(50_000), close.repeat(50_000));
    let mut run = recorded("pytest-passing");
    run.report = Some(deep("<testsuite>", "</testsuite>").into_bytes());
    assert!(!run.read().is_ok_and(|report| report.is_green()));
    let mut run = recorded("jest-passing");
    run.report = Some(deep("[", "]").into_bytes());
    assert!(run.read().is_err());
}

#[test]
fn a_test_may_come_from_its_file_or_a_module_of_its_target() {
    let report = report("cargo-passing");
    let from = |file: &str| {
        let file = path(file);
        report.tests().keys().filter(|id| id.may_come_from(&file)).count()
    };
    assert_eq!(from("rust/beta/tests/it.rs"), 1);
    assert_eq!(from("rust/alpha/tests/inner.rs"), 1);
    assert_eq!(from("rust/alpha/src/tests/mod.rs"), 3);
    assert_eq!(from("rust/alpha/src/other.rs"), 0);
    assert_eq!(from("rust/gamma/tests/it.rs"), 0);
    let report = self::report("go-passing");
    let from = |file| report.tests().keys().filter(|id| id.may_come_from(&path(file))).count();
    assert_eq!(from("go/calc_test.go"), 5);
    assert_eq!(from("go/sub/sub_test.go"), 0);
}

fn only_suite(files: &[(&str, &str)]) -> Suite {
    let mut found = suites(files);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn scattered(
    suite: &Suite,
    exit: i32,
    stdout: &str,
    reports: &[&str],
) -> Result<Report, ResultsError> {
    let reports: Vec<Vec<u8>> = reports.iter().map(|text| text.as_bytes().to_vec()).collect();
    let (stdout, exit) = (stdout.as_bytes(), Some(exit));
    read(suite, &Run { stdout, stderr: b"", exit, report: None, reports: &reports, root: ROOT })
}

const TRX: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><TestRun xmlns=\"http://microsoft.com/schemas/VisualStudio/TeamTest/2010\"><Results><UnitTestResult testId=\"1\" testName=\"Shop.SumTests.Adds(a: 1)\" outcome=\"Passed\"/><UnitTestResult testId=\"2\" testName=\"Shop.SumTests.Fails\" outcome=\"Failed\"><Output><ErrorInfo><Message>Assert.Equal() Failure</Message></ErrorInfo></Output></UnitTestResult><UnitTestResult testId=\"3\" testName=\"Later\" outcome=\"NotExecuted\"/></Results><TestDefinitions><UnitTest id=\"1\"><TestMethod className=\"Shop.SumTests\"/></UnitTest><UnitTest id=\"2\"><TestMethod className=\"Shop.SumTests\"/></UnitTest><UnitTest id=\"3\"><TestMethod className=\"Shop.SumTests, Shop\"/></UnitTest></TestDefinitions></TestRun>";

#[test]
fn dep_7_dotnet_tests_are_named_by_class() {
    let suite = only_suite(&[("Shop.sln", "")]);
    let report = scattered(&suite, 1, "", &[TRX]).unwrap();
    let expected = "+ Shop.SumTests: Adds(a: 1)\n- Shop.SumTests: Fails\no Shop.SumTests: Later";
    assert_eq!(outline(&report), expected);
    // The code and the report have to agree, and an unknown outcome is no pass.
    scattered(&suite, 0, "", &[TRX]).unwrap_err();
    scattered(&suite, 1, "", &[&TRX.replace("Failed", "Splendid")]).unwrap_err();
    let built =
        "/tmp/project/Shop.Tests/SumTests.cs(3,5): error CS0103: The name 'Twice' does not exist\n";
    let report = scattered(&suite, 1, built, &[]).unwrap();
    assert!(report.build().unwrap().files.contains(&path("Shop.Tests/SumTests.cs")));
}

#[test]
fn dep_7_reports_of_modules_are_one_report() {
    let suite = only_suite(&[("pom.xml", "")]);
    let module = |name: &str| {
        format!(
            "<testsuite tests='1' failures='0' errors='0'><testcase classname='com.{name}' name='adds'/></testsuite>"
        )
    };
    let report = scattered(&suite, 0, "", &[&module("A"), &module("B")]).unwrap();
    assert_eq!(outline(&report), "+ com.A: adds\n+ com.B: adds");
    let broken = "[ERROR] /tmp/project/core/src/test/java/ATest.java:[3,5] cannot find symbol\n";
    let report = scattered(&suite, 1, broken, &[&module("B")]).unwrap();
    assert!(report.build().unwrap().files.contains(&path("core/src/test/java/ATest.java")));
    assert!(scattered(&suite, 1, "[ERROR] Could not resolve dependencies for x\n", &[]).is_err());
    assert!(scattered(&suite, 1, "", &["<testsuite", "<x/>"]).is_err());
}

#[test]
fn dep_7_rspec_file_that_cannot_be_loaded_is_a_build_failure() {
    let suite = only_suite(&[("spec/a_spec.rb", "")]);
    let text = r#"{"messages":["\nAn error occurred while loading ./spec/a_spec.rb.\nFailure/Error: require 'nope'\n"],"examples":[],"summary":{"example_count":0,"failure_count":0,"errors_outside_of_examples_count":1}}"#;
    let run = Run {
        stdout: b"",
        stderr: b"",
        exit: Some(1),
        report: Some(text.as_bytes()),
        reports: &[],
        root: ROOT,
    };
    let report = read(&suite, &run).unwrap();
    assert!(report.build().unwrap().files.contains(&path("spec/a_spec.rb")));
    let counted = text.replace("\"example_count\":0", "\"example_count\":1");
    assert!(read(&suite, &Run { report: Some(counted.as_bytes()), ..run }).is_err());
}

#[test]
fn flo_12_missing_go_module_or_linker_names_no_file() {
    let suite = only_suite(&[("go.mod", "module example.com/m\n")]);
    let broken = |stderr: &str| {
        let stderr = stderr.as_bytes();
        let run =
            Run { stdout: b"", stderr, exit: Some(1), report: None, reports: &[], root: ROOT };
        read(&suite, &run).unwrap().build().unwrap().files.clone()
    };
    let missing = "a_test.go:4:2: no required module provides package github.com/x/y; to add it:\n";
    assert!(broken(missing).is_empty());
    assert!(broken("a_test.go:4:2: undefined: twice\n").contains(&path("a_test.go")));
    let suite = only_suite(&[("Cargo.toml", "[package]")]);
    let message = |text: &str| {
        format!(
            r#"{{"reason":"compiler-message","target":{{"kind":["test"],"name":"a","src_path":"/tmp/project/tests/a.rs"}},"message":{{"level":"error","message":"{text}","spans":[]}}}}
{{"reason":"build-finished","success":false}}
"#
        )
    };
    let broken = |text: &str| {
        let report = scattered(&suite, 101, &message(text), &[]).unwrap();
        report.build().unwrap().files.clone()
    };
    assert!(broken("linker `cc` not found").is_empty());
    assert!(broken("linking with `cc` failed: cannot find -lpq").is_empty());
    assert!(broken("linking with `cc` failed: undefined").contains(&path("tests/a.rs")));
}
