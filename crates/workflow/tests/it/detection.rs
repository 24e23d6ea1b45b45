//! Which suites a project has, and how they are called.

use std::collections::BTreeSet;

use fluffy_base::ProjectPath;
use fluffy_workflow::{CoverageFormat, Pattern, PatternError, Runner, Suite, missing_manifest};

use crate::fixtures::suites;

fn outline(suites: &[Suite]) -> Vec<String> {
    let line = |suite: &Suite| {
        let root = suite.root().map_or(".", |root| root.as_str());
        match suite.runner() {
            Runner::Go { module } => format!("go {module} {root}"),
            Runner::Command { argv } => format!("`{}` {root}", argv.join(" ")),
            Runner::Profiled(profile) => format!("{} {root}", profile.name()),
            known => format!("{known:?} {root}").to_lowercase(),
        }
    };
    suites.iter().map(line).collect()
}

fn check(files: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(outline(&suites(files)), expected, "{files:?}");
}

fn only(files: &[(&str, &str)]) -> Suite {
    let mut found = suites(files);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn a_workspace_runs_its_packages_and_not_what_it_excludes() {
    let workspace = "[workspace]\nmembers = [\"crates/*\"]\nexclude = [\"tools\"]\n";
    let files = [
        ("Cargo.toml", workspace),
        ("crates/a/Cargo.toml", "[package]"),
        ("tools/gen/Cargo.toml", "[package]"),
        ("target/package/x/Cargo.toml", "[package]"),
    ];
    check(&files, &["cargo .", "cargo tools/gen"]);
    check(&[("a/Cargo.toml", "[package]"), ("b/Cargo.toml", "[package]")], &["cargo a", "cargo b"]);
}

#[test]
fn a_package_json_is_understood_by_its_test_script() {
    let script = |script: &str| format!(r#"{{"scripts":{{"test":"{script}"}}}}"#);
    check(&[("package.json", &script("jest --ci"))], &["jest ."]);
    check(&[("package.json", &script("vitest run"))], &["vitest ."]);
    check(&[("web/package.json", &script("node --test"))], &["node web"]);
    check(&[("package.json", &script("node test.js"))], &["node ."]);
    check(&[("package.json", &script("mocha"))], &["`npm test` ."]);
    check(&[("package.json", &script("tsc && jest"))], &["`npm test` ."]);
    check(&[("package.json", r#"{"devDependencies":{"vitest":"3"}}"#)], &["vitest ."]);
    check(&[("package.json", "{}"), ("a.test.js", "")], &["node ."]);
    check(&[("package.json", "{}"), ("a.js", "")], &[]);
    check(&[("node_modules/x/package.json", &script("jest"))], &[]);
}

#[test]
fn a_rust_test_waits_for_the_manifest_of_its_package() {
    let path = |text: &str| ProjectPath::parse(text).unwrap();
    let files: BTreeSet<_> = ["Cargo.toml", "a/Cargo.toml"].map(path).into();
    let check = |test: &str, expected: Option<&str>| {
        assert_eq!(missing_manifest(&path(test), &files), expected.map(path), "{test}");
    };
    check("tests/x.rs", None);
    check("a/tests/x.rs", None);
    check("b/tests/x.rs", Some("b/Cargo.toml"));
    check("b/tests/it/main.rs", Some("b/Cargo.toml"));
    check("b/tests/it/more.rs", None);
    check("b/tests/x.json", None);
    check("tests/data/tests/x.rs", None);
    check("x_test.py", None);
}

#[test]
fn the_patterns_of_a_script_are_the_files_they_stand_for() {
    let argv = |script: &str| {
        let package = format!(r#"{{"scripts":{{"test":"{script}"}}}}"#);
        let files = [("a.spec.js", ""), ("deep/b.spec.js", ""), ("package.json", &package)];
        only(&files).all("/r").argv.split_off(5)
    };
    assert_eq!(argv("node --test *.spec.js"), ["./a.spec.js"]);
    assert_eq!(argv("node --test './**/*.spec.js'"), ["./a.spec.js", "./deep/b.spec.js"]);
    assert_eq!(argv("node --test none/*.js"), ["none/*.js"]);
}

#[test]
fn files_of_tests_for_node_need_no_manifest_and_are_named_where_it_would_miss_them() {
    check(&[("a.test.mjs", ""), ("lib/b.js", "")], &["node ."]);
    check(&[("a.test.js", ""), ("web/package.json", "{}")], &[]);
    let argv = only(&[("a.spec.js", ""), ("lib/b.test.js", "")]).all("/reports").argv;
    assert_eq!(argv[argv.len() - 2..], ["./a.spec.js", "./lib/b.test.js"]);
    for name in ["test.js", "test-a.js", "a-test.mjs", "lib/a_test.cjs", "test/a.js"] {
        check(&[(name, ""), ("a.js", "")], &["node ."]);
    }
    let argv = only(&[("src/__tests__/a.js", ""), ("src/a.js", "")]).all("/reports").argv;
    assert_eq!(argv.last().unwrap(), "./src/__tests__/a.js");
    let argv = only(&[("tests/a.js", ""), ("tests/data/b.js", "")]).all("/reports").argv;
    assert_eq!(argv.last().unwrap(), "./tests/a.js");
    let argv = only(&[("-e.test.js", "")]).all("/reports").argv;
    assert!(!argv.iter().any(|word| word.contains("-e.")), "{argv:?}");
}

#[test]
fn pytest_is_found_by_configuration_or_by_files() {
    check(&[("pytest.ini", "")], &["pytest ."]);
    check(&[("pyproject.toml", "[tool.pytest.ini_options]\n")], &["pytest ."]);
    check(&[("setup.cfg", "[tool:pytest]\n")], &["pytest ."]);
    check(&[("tox.ini", "[pytest]\n")], &["pytest ."]);
    check(&[("tests/test_a.py", ""), ("tests/deep/test_b.py", "")], &["pytest ."]);
    check(&[("pyproject.toml", "[project]\n"), ("src/p/a_test.py", "")], &["pytest ."]);
    check(&[("pyproject.toml", "[project]\n"), ("src/a.py", "")], &[]);
}

#[test]
fn a_repository_of_many_languages_has_many_suites() {
    let files = [
        ("Cargo.toml", "[package]\nname = \"a\"\n"),
        ("package.json", r#"{"scripts":{"test":"jest"}}"#),
        ("service/go.mod", "module example.com/service\n\ngo 1.22\n"),
        ("tools/tests/test_x.py", ""),
    ];
    let expected = ["cargo .", "jest .", "go example.com/service service", "pytest tools"];
    check(&files, &expected);
    assert_eq!(suites(&files)[2].reason(), "go.mod in `service`");
}

#[test]
fn commands_write_reports_where_they_are_told() {
    let jest = only(&[("package.json", r#"{"scripts":{"test":"jest"}}"#)]);
    let call = jest.all("/r");
    assert_eq!(
        call.argv.join(" "),
        "npx --no-install jest --ci --json --workerIdleMemoryLimit=512MB --maxWorkers=2 \
         --outputFile=/r/report.json"
    );
    assert_eq!(call.report.as_deref(), Some("/r/report.json"));
    let (format, file) = jest.with_coverage("/r").unwrap().coverage.unwrap();
    assert_eq!((format, file.as_str()), (CoverageFormat::Istanbul, "/r/coverage-final.json"));
    let node = only(&[("package.json", r#"{"scripts":{"test":"node --import tsx --test t/"}}"#)]);
    let call = node.all("/r");
    assert_eq!(
        call.argv.join(" "),
        "node --test --require=/r/node_reporter.cjs --test-reporter=/r/node_reporter.cjs \
         --test-reporter-destination=/r/report.jsonl --import tsx t/"
    );
    assert_eq!(call.support.unwrap().name, "node_reporter.cjs");
    let cargo = only(&[("Cargo.toml", "[package]")]).with_coverage("/r").unwrap();
    assert_eq!(
        cargo.argv.join(" "),
        "cargo llvm-cov test --workspace --no-fail-fast --color=never --message-format=json \
         --output-path=/r/coverage.json --json"
    );
    assert!(Suite::configured(vec!["make".to_owned()]).with_coverage("/r").is_none());
}

#[test]
fn a_pattern_stands_where_no_option_is_read() {
    let pattern = Pattern::parse("adds").unwrap();
    let last = |files: &[(&str, &str)]| {
        let argv = only(files).matching(&pattern, "/r").unwrap().argv;
        argv[argv.len() - 2..].join(" ")
    };
    assert_eq!(last(&[("Cargo.toml", "[package]")]), "-- adds");
    assert_eq!(last(&[("pytest.ini", "")]), "--junitxml=/r/report.xml -k=adds");
    assert_eq!(last(&[("go.mod", "module m")]), "-run=adds ./...");
    assert!(Suite::configured(vec![]).matching(&pattern, "/r").is_none());
}

#[test]
fn every_pattern_is_one_that_runners_can_read() {
    let jest = only(&[("package.json", r#"{"scripts":{"test":"jest"}}"#)]);
    let node = only(&[("package.json", r#"{"scripts":{"test":"node --test"}}"#)]);
    let go = only(&[("go.mod", "module m // of ours\n")]);
    let read = |suite: &Suite, text: &str| {
        let argv = suite.matching(&Pattern::parse(text).unwrap(), "/r").unwrap().argv;
        let word = argv.iter().find(|it| it.contains("attern=") || it.contains("-run="));
        word.unwrap().split_once('=').unwrap().1.to_owned()
    };
    for (text, expected) in [
        ("adds", "adds"),
        ("^TestAdd$|Sub", "^TestAdd$|Sub"),
        ("sums > adds", "sums.*adds"),
        ("Test.*Add", "Test.*Add"),
        ("(", r"\("),
        ("a.b[1] costs $5 **", r"a\.b\[1\] costs \$5 \*\*"),
        ("|^$|+?{2}\\", r"|^$|\+\?\{2\}\\"),
    ] {
        assert_eq!(read(&jest, text), expected);
        assert_eq!(read(&go, text), expected);
    }
    assert_eq!(read(&go, "TestMany/a_b"), "TestMany/a_b");
    // Between slashes node would look for flags.
    assert_eq!(read(&node, "/a/zz"), r"\/a\/zz");
    assert_eq!(*go.runner(), Runner::Go { module: "m".to_owned() });
}

#[test]
fn a_pattern_that_is_an_option_is_refused() {
    let refused = |text: &str| Pattern::parse(text).unwrap_err();
    assert_eq!(refused("--nocapture"), PatternError::Option("--nocapture".to_owned()));
    assert_eq!(refused("  "), PatternError::Empty);
    assert!(matches!(refused(" -x"), PatternError::Option(_)));
    assert!(matches!(refused("a\nb"), PatternError::Control(_)));
    assert_eq!(refused(&"a".repeat(501)), PatternError::Long);
}

#[test]
fn dep_7_runners_of_the_table_are_found_by_their_customs() {
    check(&[("pom.xml", ""), ("core/pom.xml", ""), ("core/src/A.java", "")], &["Maven ."]);
    check(&[("settings.gradle.kts", ""), ("app/build.gradle.kts", "")], &["Gradle ."]);
    check(&[("Shop.sln", ""), ("Shop.Tests/Shop.Tests.csproj", "")], &["dotnet test ."]);
    check(&[("src/Shop.csproj", "")], &["dotnet test src"]);
    let cmake = "project(a C)\nEnable_Testing ( )\nadd_subdirectory(sub)\n";
    check(&[("CMakeLists.txt", cmake), ("sub/CMakeLists.txt", "enable_testing()")], &["CTest ."]);
    check(&[("CMakeLists.txt", "project(a C)")], &[]);
    check(&[("spec/a_spec.rb", "")], &["RSpec ."]);
    check(&[("gem/test/a_test.rb", ""), ("gem/test/helper.rb", "")], &["minitest gem"]);
    check(&[("test/a_test.rb", ""), ("config.ru", ""), ("Rakefile", "")], &[]);
    check(&[("phpunit.xml.dist", "")], &["PHPUnit ."]);
    check(&[("tests/Unit/ATest.php", "")], &["PHPUnit ."]);
    let manage = "os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'a.settings')";
    check(&[("manage.py", manage), ("a/tests.py", "")], &["Django ."]);
    check(&[("manage.py", manage), ("pytest.ini", "[pytest]")], &["pytest ."]);
}

#[test]
fn dep_7_unittest_is_chosen_where_no_test_asks_for_pytest() {
    let test =
        "import unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n";
    check(&[("tests/test_a.py", test)], &["unittest ."]);
    check(&[("tests/test_a.py", test), ("requirements.txt", "pytest==8\n")], &["pytest ."]);
    check(&[("tests/test_a.py", test), ("conftest.py", "")], &["pytest ."]);
    let function = "def test_b():\n    assert True\n";
    check(&[("tests/test_a.py", test), ("tests/test_b.py", function)], &["pytest ."]);
    let both = "import pytest, unittest\n";
    check(&[("tests/test_a.py", both)], &["pytest ."]);
}

#[test]
fn dep_7_make_is_used_where_nothing_else_is_known() {
    check(&[("Makefile", "all:\ncheck: all\n\t./run\n")], &["`make check` ."]);
    check(&[("Makefile", "test:\n\t./run\n")], &["`make test` ."]);
    check(&[("Makefile", "test := x\ntests-all:\n")], &[]);
    check(&[("Makefile", "test:\n\tcargo test\n"), ("Cargo.toml", "[package]")], &["cargo ."]);
}

#[test]
fn dep_7_bundler_shows_a_runner_its_locked_packages() {
    let locked = only(&[("spec/a_spec.rb", ""), ("Gemfile.lock", "")]).all("/r").argv;
    assert_eq!(&locked[..3], ["bundle", "exec", "rspec"]);
    assert_eq!(only(&[("spec/a_spec.rb", ""), ("Gemfile", "")]).all("/r").argv[0], "rspec");
}
