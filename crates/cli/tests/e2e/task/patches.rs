//! Commands that leave patches: applied exactly or not at all, and judged like any other change.

use serde_json::{Value, json};

use super::lab::{Lab, Language, Run, call, complete, run_tests, say, write};

/// A command that may change nothing and leaves these files in `/output`.
fn leaving(files: &[(&str, &str)]) -> Value {
    let files = json!(files).to_string();
    let script = "import json, sys\nfor name, text in json.loads(sys.argv[1]):\n    open('/output/' + name, 'w').write(text)\n";
    let args = json!(["-c", script, files]);
    call("shell.run", json!({"command": "python3", "args": args, "output": "patch"}))
}

const DOUBLE: &str = "\
--- a/sums.py
+++ b/sums.py
@@ -1,2 +1,6 @@
 def add(a, b):
     return a + b
+
+
+def double(a):
+    return 2 * a
";

fn new_file(name: &str) -> String {
    format!("--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+text\n")
}

/// Tests first, then these calls, one in each turn, where code may be written.
fn coding(lab: &Lab, calls: &[Value]) -> Run {
    let (test, text) = lab.language.test();
    let mut turns = vec![say("A test.", &[write(test, text)]), say("Red.", &[run_tests()])];
    turns.extend(calls.iter().map(|call| say("A patch.", std::slice::from_ref(call))));
    lab.run(&[], &turns)
}

#[test]
fn too_5_a_patch_that_a_command_leaves_is_one_step_of_the_work() {
    let lab = Lab::new(Language::Python);
    let (test, text) = lab.language.test();
    let more =
        format!("diff --git a/doc.txt b/doc.txt\nnew file mode 100755\n{}", new_file("doc.txt"));
    let turns = [
        say("A test.", &[write(test, text)]),
        say("Red.", &[run_tests()]),
        say("Patches.", &[leaving(&[("a.patch", DOUBLE), ("b.diff", &more)])]),
        say("Green.", &[run_tests()]),
        complete(),
    ];
    let run = lab.run(&[], &turns);
    run.assert_done();
    assert_eq!(lab.user.read("sums.py"), lab.language.solution());
    assert_eq!(lab.user.read("doc.txt"), "text\n");
    let files = lab.git(&["show", "--format=", "--name-only", "HEAD"]);
    assert_eq!(files, "doc.txt\nsums.py\ntest_double.py\n");
    assert!(lab.git(&["ls-tree", "HEAD", "doc.txt"]).starts_with("100755"));
    let heard = lab.heard(&run);
    assert!(heard.contains(r#""changed":["doc.txt","sums.py"]"#), "{heard}");
    assert!(heard.contains(r#""step":2"#), "both patches are one step: {heard}");
}

#[test]
fn too_5_a_patch_fits_exactly_or_nothing_of_all_patches_is_taken() {
    let lab = Lab::new(Language::Python);
    let before = lab.snapshot();
    let other = DOUBLE.replace("return a + b", "return b + a");
    let deeper = DOUBLE.replace("-1,2 +1,6", "-2,2 +2,6");
    let link = "import os\nos.symlink('/etc/passwd', '/output/a.patch')\n";
    let linked = json!({"command": "python3", "args": ["-c", link], "output": "patch"});
    let calls = [
        leaving(&[("a.patch", &other)]),
        leaving(&[("a.patch", &deeper)]),
        leaving(&[("a.patch", DOUBLE), ("b.patch", &other)]),
        leaving(&[("a.patch", DOUBLE), ("b.patch", DOUBLE)]),
        leaving(&[("a.patch", DOUBLE), ("notes.txt", "hello")]),
        leaving(&[("a.patch", "no patch at all\n")]),
        leaving(&[("a.patch", &new_file("sums.py"))]),
        call("shell.run", linked),
    ];
    let run = coding(&lab, &calls);
    run.assert_not_done(1);
    let answers = lab.contents(&run, "shell.run");
    assert_eq!(answers.len(), calls.len());
    for answer in answers {
        assert!(answer["not_taken"]["reason"].is_string(), "{answer}");
        assert_eq!((&answer["code"], &answer["changed"]), (&json!(0), &Value::Null), "{answer}");
    }
    assert_eq!(lab.snapshot(), before);
    let staged = lab.user.run(&["session", "diff"]).out;
    assert!(staged.contains("test_double.py") && !staged.contains("sums.py"), "{staged}");
}

#[test]
fn too_5_a_patch_passes_no_check_that_a_file_would_not() {
    let lab = Lab::new(Language::Python);
    lab.user.write(".github/workflows/ci.yml", "on: push\n");
    let frozen = "--- a/test_add.py\n+++ /dev/null\n@@ -1,5 +0,0 @@\n-from sums import add\n-\n-\n-def test_adds():\n-    assert add(1, 2) == 3\n";
    for (patch, why) in [
        (frozen.to_owned(), "test_add.py"),
        (new_file("test_more.py"), "test_more.py"),
        (new_file(".fluffy/policy.yaml"), "the policy does not let"),
        (new_file(".fluffy/coverage-baseline.json"), "the policy does not let"),
        (new_file(".git/hooks/pre-commit"), "the policy does not let"),
        (new_file(".github/workflows/more.yml"), "was not agreed to"),
        (new_file("../outside"), "names no file of the project"),
        (new_file("/etc/passwd"), "names no file of the project"),
    ] {
        let run = coding(&lab, &[leaving(&[("a.patch", &patch)])]);
        let answer = &lab.contents(&run, "shell.run")[0];
        let reason = answer["not_taken"]["reason"].as_str().unwrap();
        assert!(reason.contains(why), "{why}: {reason}");
    }
}

#[test]
fn too_5_whether_a_patch_fits_tells_nothing_about_what_must_not_be_read() {
    let lab = Lab::new(Language::Python);
    lab.user.write(".env", "TOKEN=hunter2\n");
    let guess =
        |token: &str| format!("--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-TOKEN={token}\n+TOKEN=mine\n");
    let calls = ["hunter1", "hunter2"].map(|token| leaving(&[("a.patch", &guess(token))]));
    let run = coding(&lab, &calls);
    let answers = lab.contents(&run, "shell.run");
    assert_eq!(answers[0]["not_taken"], answers[1]["not_taken"], "{}", run.told());
    assert!(answers[0]["not_taken"]["reason"].is_string(), "{}", run.told());
}

#[test]
fn too_5_a_command_for_patches_changes_no_file_by_itself() {
    let lab = Lab::new(Language::Python);
    let before = lab.snapshot();
    let script = "open('sums.py', 'w').write('evil')";
    let args = json!({"command": "python3", "args": ["-c", script], "output": "patch"});
    let run = coding(&lab, &[call("shell.run", args)]);
    let heard = lab.heard(&run);
    assert!(heard.contains("Read-only file system"), "{heard}");
    assert!(!heard.contains("changed"), "{heard}");
    assert_eq!(lab.snapshot(), before);
}
