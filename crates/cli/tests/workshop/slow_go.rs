//! Projects with Go: a module in the root, of several packages, and one below.

use fluffy_base::Span;
use fluffy_workflow::{Extent, Outcome, green, red};

use crate::scene::{Ask, Scene, path};
use crate::suites::{counts, told};

const ADD_TEST: &str = "package sums

import \"testing\"

func TestAdd(t *testing.T) {
	if Add(1, 2) != 3 {
		t.Fatal(\"wrong\")
	}
}

func TestLater(t *testing.T) { t.Skip(\"not yet\") }

func TestMany(t *testing.T) {
	for _, name := range []string{\"a b\", \"c\", \"c\"} {
		t.Run(name, func(t *testing.T) {})
	}
}
";

/// A file of tests with one test.
fn test(package: &str, imports: &str, body: &str) -> String {
    format!(
        "package {package}\n\nimport \"testing\"\n{imports}\nfunc TestIt(t *testing.T) {{ {body} }}\n"
    )
}

#[test]
fn packages_go_from_a_broken_build_over_red_to_green() {
    let deep = test("deep", "", "");
    let scene = Scene::new(&[
        ("go.mod", "module example.com/sums // of numbers\n\ngo 1.19\n"),
        ("add.go", "package sums\n"),
        ("add_test.go", ADD_TEST),
        ("inner/deep/deep.go", "package deep\n\nfunc init() { panic(\"not yet\") }\n"),
        ("inner/deep/deep_test.go", &deep),
        ("untested/untested.go", "package untested\n"),
    ]);
    let written = [path("add_test.go"), path("inner/deep/deep_test.go")].into();
    let broken = scene.test();
    assert_eq!(broken.run.broken(), Some(&[path("add_test.go")].into()), "{}", broken.summary);
    assert!(broken.summary.to_string().contains("undefined: Add"), "{}", broken.summary);
    // A package that dies before its tests is red, and can be green.
    assert_eq!(broken.run.outcome("inner/deep: (package)"), Some(Outcome::Failed));
    counts(&broken, 0, 1, 0);
    let proof = red(None, &broken.run, &written).unwrap();
    scene.stage("add.go", "package sums\n\nfunc Add(a, b int) int { return a - b }\n");
    let wrong = scene.test();
    assert_eq!(wrong.run.outcome(".: TestAdd"), Some(Outcome::Failed), "{}", wrong.summary);
    assert!(wrong.summary.to_string().contains("add_test.go:7: wrong"), "{}", wrong.summary);
    green(None, Some(&proof), &wrong.run).unwrap_err();
    scene.stage("add.go", "package sums\n\nfunc Add(a, b int) int { return a + b }\n");
    scene.stage("inner/deep/deep.go", "package deep\n");
    let done = scene.test();
    let expected = [
        "Passed .: TestAdd @ add_test.go",
        "Skipped .: TestLater @ add_test.go",
        "Passed .: TestMany @ add_test.go",
        "Passed .: TestMany/a_b @ add_test.go",
        "Passed .: TestMany/c @ add_test.go",
        "Passed .: TestMany/c#01 @ add_test.go",
        "Passed inner/deep: TestIt @ inner/deep/deep_test.go",
    ];
    assert_eq!(told(&done), expected, "{}", done.summary);
    green(None, Some(&proof), &done.run).unwrap();
    // What no regular expression can be read from is looked for as it is.
    let ask = Ask { pattern: Some("TestMany/a_b|("), ..Ask::default() };
    let part = scene.test_with(&ask).unwrap();
    counts(&part, 2, 0, 0);
    assert_eq!(part.run.extent(), Extent::Part);
}

#[test]
fn a_test_that_prints_results_leaves_or_hangs_has_not_passed() {
    let module = ("svc/go.mod", "module example.com/m\n\ngo 1.19\n");
    let scene = Scene::new(&[module, ("svc/m.go", "package m\n")]);
    let print = r#"fmt.Println("--- PASS: TestIt (0.00s)\nPASS\nok  \tm\t0.001s"); fmt.Println(`{"Action":"pass","Package":"example.com/m","Test":"TestIt"}`); "#;
    for (imports, body) in [
        ("import \"fmt\"\n", format!("{print}t.Fail()")),
        ("import (\n\"fmt\"\n\"os\"\n)\n", format!("{print}os.Exit(0)")),
        ("import \"syscall\"\n", "syscall.Exit(0)".to_owned()),
        ("", "for {}".to_owned()),
    ] {
        scene.stage("svc/m_test.go", test("m", imports, &body));
        let time = if imports.is_empty() { 5_000 } else { 240_000 };
        let ask = Ask { timeout: Some(Span::from_ms(time)), ..Ask::default() };
        let tested = scene.test_with(&ask).unwrap();
        let is_bad = tested.summary.failed > 0 || tested.has_suite_without_result();
        assert!(is_bad, "{body}: {}", tested.summary);
        assert_ne!(tested.run.outcome("svc: svc: TestIt"), Some(Outcome::Passed), "{body}");
        green(None, None, &tested.run).unwrap_err();
    }
}
