//! What patches are applied and refused, as tables.

use super::*;

/// Applies a patch to a project with these files; what comes out is written as the patches are: a sign,
/// the path, and the contents.
fn check(base: &[(&str, &str)], patch: &str) -> String {
    let read = |path: &ProjectPath| {
        let file = base.iter().find(|(name, _)| *name == path.as_str());
        Ok(file.map(|(_, content)| content.as_bytes().to_vec()))
    };
    match apply(patch.as_bytes(), ByteSize::from_bytes(1 << 10), read) {
        Ok(files) => files.iter().map(described).collect::<Vec<_>>().join("; "),
        Err(error) => match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

fn described(file: &PatchedFile) -> String {
    let PatchedFile { path, state } = file;
    match state {
        Patched::Deleted => format!("-{path}"),
        Patched::Written { content, executable } => {
            let sign = match executable {
                Some(true) => "x",
                Some(false) => "f",
                None => "=",
            };
            format!("{sign}{path} {:?}", String::from_utf8_lossy(content))
        }
    }
}

const ABC: &[(&str, &str)] = &[("f", "a\nb\nc\n")];

/// A patch of `f` with this hunk.
fn hunk(hunk: &str) -> String {
    format!("--- a/f\n+++ b/f\n{hunk}")
}

#[test]
fn a_hunk_that_fits_is_applied() {
    for (patch, after) in [
        ("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\nB\nc\n"),
        ("@@ -2 +2 @@ fn main()\n-b\n+B\n", "a\nB\nc\n"),
        ("@@ -1,0 +2,2 @@\n+x\n+y\n", "a\nx\ny\nb\nc\n"),
        ("@@ -0,0 +1 @@\n+x\n", "x\na\nb\nc\n"),
        ("@@ -3,0 +4 @@\n+d\n\\ No newline at end of file\n", "a\nb\nc\nd"),
        ("@@ -1,3 +0,0 @@\n-a\n-b\n-c\n", ""),
        ("@@ -1 +1 @@\n-a\n+A\n@@ -3 +3,2 @@\n-c\n+C\n+D\n", "A\nb\nC\nD\n"),
        ("@@ -2,2 +2,2 @@\n b\n-c\n+c\r\n", "a\nb\nc\r\n"),
    ] {
        assert_eq!(check(ABC, &hunk(patch)), format!("=f {after:?}"), "{patch}");
    }
}

#[test]
fn a_hunk_that_does_not_fit_exactly_is_refused_with_its_place() {
    for (patch, why) in [
        ("@@ -1,3 +1,3 @@\n a\n-x\n+B\n c\n", "hunk 1 of the patch does not fit `f` at line 2"),
        ("@@ -2,2 +2,2 @@\n a\n-b\n+B\n", "hunk 1 of the patch does not fit `f` at line 2"),
        (
            "@@ -1 +1 @@\n-a\n+A\n@@ -9 +9 @@\n-c\n",
            "hunk 2 of the patch does not fit `f` at line 4",
        ),
        (
            "@@ -3 +3 @@\n-c\n\\ No newline at end of file\n+d\n",
            "hunk 1 of the patch does not fit `f` at line 3",
        ),
        ("@@ -2 +2 @@\n-b\r\n+d\n", "hunk 1 of the patch does not fit `f` at line 2"),
        (
            "@@ -1 +1 @@\n-a\n+d\n\\ No newline at end of file\n",
            "hunk 1 of the patch does not fit `f` at line 2",
        ),
        (
            "@@ -18446744073709551615,0 +18446744073709551615 @@\n+d\n",
            "hunk 1 of the patch does not fit `f` at line 4",
        ),
    ] {
        assert_eq!(check(ABC, &hunk(patch)), why, "{patch}");
    }
}

#[test]
fn a_hunk_that_contradicts_itself_is_refused() {
    for (patch, why) in [
        ("", "line 2 of the patch: hunks follow the names of a file"),
        ("@@ -1,2 +1 @@\n-a\n", "line 4 of the patch: the hunk is cut off"),
        (
            "@@ -1 +1 @@\n-a\n-b\n+x\n",
            "line 5 of the patch: the hunk has other lines than its head says",
        ),
        ("@@ -1 +1 @@\n-a\n+x\n+y\n", "line 6 of the patch: this line has no place here"),
        ("@@ -1 +1 @@\n a\n", "line 4 of the patch: the hunk changes nothing"),
        ("@@ -0,0 +0,0 @@\n", "line 3 of the patch: the hunk changes nothing"),
        ("@@ -0 +0 @@\n-a\n+x\n", "line 3 of the patch: the hunk starts before line 1"),
        (
            "@@ -2 +1 @@\n-b\n+x\n",
            "line 3 of the patch: the hunk's new line number does not follow from the old one",
        ),
        (
            "@@ -2 +2 @@\n-b\n+x\n@@ -1 +1 @@\n-a\n+x\n",
            "line 6 of the patch: the hunk lies before the end of the one above it",
        ),
        (
            "@@ -1 +1 @@\n-a\n*x\n",
            "line 5 of the patch: a line in a hunk starts with ` `, `+` or `-`",
        ),
        (
            "@@ -1 +1 @\n-a\n+x\n",
            "line 3 of the patch: a hunk starts with `@@ -line,count +line,count @@`",
        ),
        (
            "@@ -1 +-1 @@\n-a\n+x\n",
            "line 3 of the patch: a hunk starts with `@@ -line,count +line,count @@`",
        ),
        (
            "@@ -99999999999999999999 +1 @@\n-a\n",
            "line 3 of the patch: a hunk starts with `@@ -line,count +line,count @@`",
        ),
        (
            "@@ -1 +1,2 @@\n-a\n+x\n\\ No newline at end of file\n+y\n",
            "line 7 of the patch: text follows a line without end",
        ),
        (
            "@@ -1 +1,2 @@\n-a\n+x\n+\n\\ No newline at end of file\n",
            "line 7 of the patch: a line without text and without end is no line",
        ),
        ("@@ -1 +1 @@\n-a\n+x", "line 5 of the patch: the patch ends in the middle of a line"),
    ] {
        assert_eq!(check(ABC, &hunk(patch)), why, "{patch}");
    }
}

#[test]
fn files_are_created_deleted_and_made_executable() {
    for (patch, after) in [
        ("--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n", "fn \"x\\n\""),
        ("diff --git a/n b/n\nnew file mode 100755\nindex 0000000..e69de29\n", "xn \"\""),
        ("diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", "xf \"a\\nb\\nc\\n\""),
        ("--- a/f\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-b\n-c\n", "-f"),
        ("diff --git \"a/\\303\\244 b\" \"b/\\303\\244 b\"\nnew file mode 100644\n", "fä b \"\""),
        ("diff --git a/n b/n b/n b/n\nnew file mode 100644\n", "fn b/n \"\""),
        ("--- /dev/null\t2024-01-01\n+++ b/x y\t\n@@ -0,0 +1 @@\n+x\n", "fx y \"x\\n\""),
    ] {
        assert_eq!(check(ABC, patch), after, "{patch}");
    }
}

#[test]
fn what_a_patch_may_not_say_is_refused_by_name() {
    let git = "diff --git a/f b/f\n";
    let unsupported = |line: usize, what: &str| {
        format!("line {line} of the patch: {what} cannot be taken from a patch")
    };
    for (patch, why) in [
        (
            "diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n".to_owned(),
            unsupported(2, "a renaming or copy"),
        ),
        (
            "diff --git a/f b/g\nrename from f\nrename to g\n".to_owned(),
            unsupported(2, "a renaming"),
        ),
        (
            "diff --git a/f b/g\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n".to_owned(),
            unsupported(1, "a file with two names"),
        ),
        ("--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n".to_owned(), unsupported(2, "a renaming")),
        (format!("{git}copy from f\n"), unsupported(2, "a copy")),
        (
            format!("{git}index 1..2 100644\nGIT binary patch\nliteral 1\n"),
            unsupported(3, "a binary change"),
        ),
        (format!("{git}Binary files a/f and b/f differ\n"), unsupported(2, "a binary change")),
        (format!("{git}new file mode 120000\n"), unsupported(2, "a symbolic link")),
        (format!("{git}index 1..2 120000\n--- a/f\n"), unsupported(2, "a symbolic link")),
        (format!("{git}new file mode 160000\n"), unsupported(2, "a submodule")),
    ] {
        assert_eq!(check(ABC, &patch), why, "{patch}");
    }
}

#[test]
fn a_head_that_contradicts_itself_is_refused() {
    let git = "diff --git a/f b/f\n";
    for (patch, why) in [
        (format!("{git}new file mode 104755\n"), "line 2 of the patch: a mode is 100644 or 100755"),
        (
            format!("{git}old mode 100644\n"),
            "line 2 of the patch: an old mode comes with a new mode",
        ),
        (
            format!("{git}new file mode 100644\ndeleted file mode 100644\n"),
            "line 3 of the patch: a file is created, deleted or changed in mode, one of these",
        ),
        (
            format!("{git}new file mode 100644\nnew file mode 100644\n"),
            "line 3 of the patch: the mode is given twice",
        ),
        (git.to_owned(), "line 1 of the patch: no change is given"),
        (
            format!("{git}new file mode 100644\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"),
            "line 4 of the patch: the names contradict the lines above them",
        ),
        (
            format!("{git}--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n"),
            "line 3 of the patch: the names contradict the lines above them",
        ),
        (
            format!("{git}--- a/f\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-b\n-c\n"),
            "line 3 of the patch: the names contradict the lines above them",
        ),
        ("From 123 Mon Sep 17\n".to_owned(), "line 1 of the patch: this line has no place here"),
        ("--- f\n+++ f\n".to_owned(), "line 1 of the patch: a name starts with `a/` or `b/`"),
        ("--- /dev/null\n+++ /dev/null\n".to_owned(), "line 2 of the patch: no file is named"),
        (
            "--- a/f\n@@ -1 +1 @@\n".to_owned(),
            "line 2 of the patch: `--- a/name` and `+++ b/name` go together",
        ),
        (
            "--- \"a/f\n+++ b/f\n".to_owned(),
            "line 1 of the patch: the quoted name is not well-formed",
        ),
    ] {
        assert_eq!(check(ABC, &patch), why, "{patch}");
    }
}

#[test]
fn a_patch_names_files_of_the_project_only() {
    for (name, why) in [
        (
            "../x",
            "line 1 of the patch names no file of the project: path `../x` leads out of the project",
        ),
        (
            "/etc/x",
            "line 1 of the patch names no file of the project: path `/etc/x` is absolute; paths are relative to the project's root",
        ),
        ("x/../y", "line 1 of the patch: the name is not in its normal form"),
        ("./x", "line 1 of the patch: the name is not in its normal form"),
        ("e\u{301}", "line 1 of the patch: the name is not in its normal form"),
        (
            "x\r",
            r"line 1 of the patch names no file of the project: path `x\r` has the invisible character U+000D",
        ),
    ] {
        let patch = format!("--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n");
        assert_eq!(check(ABC, &patch), why);
    }
    let quoted = "--- /dev/null\n+++ \"b/\\377\"\n@@ -0,0 +1 @@\n+x\n";
    assert_eq!(check(ABC, quoted), "line 1 of the patch: the name is not UTF-8");
}

#[test]
fn files_must_be_there_or_not_as_the_patch_says() {
    for (patch, why) in [
        ("--- a/n\n+++ b/n\n@@ -1 +1 @@\n-a\n+b\n", "the patch changes `n`, which does not exist"),
        ("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n", "the patch creates `f`, which exists"),
        (
            "--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n",
            "the patch deletes `f` but not all of its lines",
        ),
        (
            "diff --git a/f b/f\ndeleted file mode 100644\n",
            "the patch deletes `f` but not all of its lines",
        ),
    ] {
        assert_eq!(check(ABC, patch), why);
    }
}

#[test]
fn a_file_is_changed_once_and_none_lies_beneath_another() {
    let twice = hunk("@@ -1 +1 @@\n-a\n+b\n").repeat(2);
    assert_eq!(check(ABC, &twice), "the patch changes `f` twice");
    let new = |name: &str| format!("diff --git a/{name} b/{name}\nnew file mode 100644\n");
    let beneath = new("d/e/g") + &new("d-") + &new("d");
    assert_eq!(check(ABC, &beneath), "the patch writes `d` and a file beneath it");
    let replaced = new("f/x")
        + "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-b\n-c\n";
    assert_eq!(check(ABC, &replaced), "-f; ff/x \"\"");
}

#[test]
fn a_short_patch_cannot_ask_for_more_than_the_limit() {
    let large = "x\n".repeat(200);
    let base: Vec<(String, &str)> = (0..3).map(|n| (n.to_string(), large.as_str())).collect();
    let base: Vec<(&str, &str)> = base.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let mode = |n: usize| format!("diff --git a/{n} b/{n}\nold mode 100644\nnew mode 100755\n");
    assert!(check(&base, &(mode(0) + &mode(1))).starts_with("x0"));
    let all = mode(0) + &mode(1) + &mode(2);
    assert_eq!(check(&base, &all), "the patched files take more than 1KiB");
}

#[test]
fn an_empty_patch_changes_nothing() {
    assert_eq!(check(ABC, ""), "");
}

#[test]
fn a_base_that_cannot_be_read_ends_it() {
    let patch = hunk("@@ -1 +1 @@\n-a\n+b\n");
    let failing = |_: &ProjectPath| Err(io::Error::other("gone"));
    let error = apply(patch.as_bytes(), ByteSize::from_bytes(1), failing).unwrap_err();
    assert_eq!(error.to_string(), "`f` cannot be read to apply the patch");
}
