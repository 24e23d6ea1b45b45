//! Patches against git: what `git diff` writes is applied, and what we apply, `git apply` applies the
//! same way.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use fluffy_base::{ByteSize, ProjectPath};
use fluffy_sandbox::harvest::patch::{PatchError, Patched, PatchedFile, apply};
use proptest::prelude::*;
use tempfile::TempDir;

/// A project: contents and whether they can be executed.
type Files = BTreeMap<String, (Vec<u8>, bool)>;

fn git(project: &Path, args: &[&str], stdin: &[u8]) -> Output {
    let mut child = Command::new("git")
        .args([
            "-c",
            "core.autocrlf=false",
            "-c",
            "diff.renames=false",
            "-c",
            "init.defaultBranch=m",
        ])
        .args(args)
        .current_dir(project)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // A git that has seen enough closes its end; that is its right.
        scope.spawn(move || input.write_all(stdin).ok());
        child.wait_with_output().unwrap()
    })
}

fn git_text(project: &Path, args: &[&str]) -> Vec<u8> {
    let output = git(project, args, b"");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn store(project: &Path, files: &Files) {
    for (name, (content, executable)) in files {
        let path = project.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        let mode = if *executable { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
}

fn tree(project: &Path, files: &Files) -> String {
    for name in fs::read_dir(project).unwrap().map(|entry| entry.unwrap().path()) {
        if name.is_dir() && !name.ends_with(".git") {
            fs::remove_dir_all(name).unwrap();
        } else if !name.is_dir() {
            fs::remove_file(name).unwrap();
        }
    }
    store(project, files);
    git_text(project, &["add", "-A", "-f"]);
    String::from_utf8(git_text(project, &["write-tree"])).unwrap().trim().to_owned()
}

fn diff(old: &Files, new: &Files, options: &[&str]) -> Vec<u8> {
    let project = tempfile::tempdir().unwrap();
    git_text(project.path(), &["init", "-q"]);
    let (old, new) = (tree(project.path(), old), tree(project.path(), new));
    let mut args = vec!["diff", "--text"];
    args.extend(options);
    args.extend([old.as_str(), new.as_str()]);
    git_text(project.path(), &args)
}

fn applied(base: &Files, patch: &[u8]) -> Result<Files, PatchError> {
    let read = |path: &ProjectPath| Ok(base.get(path.as_str()).map(|(content, _)| content.clone()));
    let patched = apply(patch, ByteSize::from_bytes(1 << 30), read)?;
    let mut files = base.clone();
    for PatchedFile { path, state } in patched {
        let was = files.remove(path.as_str());
        if let Patched::Written { content, executable } = state {
            let executable = executable.unwrap_or_else(|| was.unwrap().1);
            files.insert(path.as_str().to_owned(), (content, executable));
        }
    }
    Ok(files)
}

/// What `git apply` makes of it.
fn applied_by_git(base: &Files, patch: &[u8]) -> Option<Files> {
    let project: TempDir = tempfile::tempdir().unwrap();
    store(project.path(), base);
    let args = ["apply", "--unidiff-zero", "--whitespace=nowarn", "-"];
    if !git(project.path(), &args, patch).status.success() {
        return None;
    }
    let mut files = Files::new();
    let mut directories = vec![project.path().to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                directories.push(entry);
                continue;
            }
            let name = entry.strip_prefix(project.path()).unwrap().to_str().unwrap().to_owned();
            let executable = entry.metadata().unwrap().permissions().mode() & 0o100 != 0;
            files.insert(name, (fs::read(&entry).unwrap(), executable));
        }
    }
    Some(files)
}

/// Few different lines, so that hunks are ambiguous; ends of all kinds.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let line = prop::sample::select(vec![
        "a\n",
        "b\n",
        "\n",
        "a\r\n",
        " \n",
        "-a\n",
        "+b\n",
        "--- a/x\n",
        "@@ -1 +1 @@\n",
        "\\ no\n",
        "\r\n",
        "ä\n",
        "\u{0}\n",
    ]);
    let end = prop::sample::select(vec!["", "", "", "a", "\r", "-", "no end"]);
    let binary = prop::collection::vec(any::<u8>(), 0..30);
    let lines = (prop::collection::vec(line, 0..20), end)
        .prop_map(|(lines, end)| (lines.concat() + end).into_bytes());
    prop_oneof![8 => lines, 1 => binary]
}

fn files() -> impl Strategy<Value = Files> {
    let names = prop::sample::select(vec!["f", "g h", "d/e", "d/ö", "x b/x", "q\"uote"]);
    let file = (content(), any::<bool>());
    prop::collection::btree_map(names.prop_map(str::to_owned), file, 0..5)
}

fn changed(old: &Files, seed: &[(usize, u8)]) -> Files {
    let mut new = old.clone();
    for (content, _) in new.values_mut() {
        let mut lines: Vec<Vec<u8>> =
            content.split_inclusive(|b| *b == b'\n').map(Into::into).collect();
        for (at, what) in seed {
            let at = at % (lines.len() + 1);
            match what % 3 {
                0 => lines.insert(at.min(lines.len()), b"inserted\n".to_vec()),
                1 if at < lines.len() => drop(lines.remove(at)),
                _ => {}
            }
        }
        *content = lines.concat();
    }
    new
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_git_diff_writes_is_applied(old in files(), new in files(), context in 0..4_u8) {
        let patch = diff(&old, &new, &[&format!("-U{context}")]);
        prop_assert_eq!(applied(&old, &patch).unwrap(), new, "{}", String::from_utf8_lossy(&patch));
    }

    #[test]
    fn small_changes_to_long_files_are_applied(
        old in files(),
        seed in prop::collection::vec((any::<usize>(), any::<u8>()), 1..6),
    ) {
        let new = changed(&old, &seed);
        let patch = diff(&old, &new, &[]);
        prop_assert_eq!(applied(&old, &patch).unwrap(), new, "{}", String::from_utf8_lossy(&patch));
    }

    #[test]
    fn what_we_apply_git_applies_the_same_way(
        old in files(),
        new in files(),
        damage in prop::collection::vec((any::<usize>(), any::<u8>(), 0..4_u8), 1..3),
    ) {
        let mut patch = diff(&old, &new, &[]);
        for (at, byte, what) in damage {
            let at = at % patch.len().max(1);
            match what {
                _ if patch.is_empty() => patch.push(byte),
                0 => patch[at] = byte,
                1 => drop(patch.remove(at)),
                2 => patch.insert(at, byte),
                // A whole line gone.
                _ => {
                    let start = patch[..at].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
                    let end = patch[at..].iter().position(|b| *b == b'\n').map_or(patch.len(), |end| at + end + 1);
                    patch.drain(start..end);
                }
            }
        }
        if let Ok(ours) = applied(&old, &patch) && !patch.is_empty() {
            let theirs = applied_by_git(&old, &patch);
            prop_assert_eq!(Some(ours), theirs, "{}", String::from_utf8_lossy(&patch));
        }
    }

    #[test]
    fn no_text_makes_applying_panic(text in prop::collection::vec(any::<u8>(), 0..200), lines in "((diff --git |--- |[+]{3} |@@ -|[ +-]|index |new file mode |old mode )[ab/01,+ @\"\\\\]{0,12}\n){0,8}") {
        for text in [text.as_slice(), lines.as_bytes()] {
            let _ = apply(text, ByteSize::from_bytes(100), |_| Ok(Some(b"a\nb\n".to_vec())));
        }
    }
}

fn one(name: &str, content: &[u8], executable: bool) -> Files {
    Files::from([(name.to_owned(), (content.to_vec(), executable))])
}

#[test]
fn git_renames_copies_and_binary_patches_are_refused() {
    let content = b"line\n".repeat(20);
    let rename = diff(&one("a", &content, false), &one("b", &content, false), &["-M"]);
    let error = applied(&one("a", &content, false), &rename).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 2 of the patch: a renaming or copy cannot be taken from a patch"
    );
    let binary = diff(&one("a", b"\0old", false), &one("a", b"\0new", false), &["--no-text"]);
    let error = applied(&one("a", b"\0old", false), &binary).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 3 of the patch: a binary change cannot be taken from a patch"
    );
    let binary =
        diff(&one("a", b"\0old", false), &one("a", b"\0new", false), &["--no-text", "--binary"]);
    let error = applied(&one("a", b"\0old", false), &binary).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 3 of the patch: a binary change cannot be taken from a patch"
    );
}

#[test]
fn a_patch_that_git_would_move_to_another_line_is_refused() {
    let old = one("f", b"a\nb\nc\nd\ne\nf\ng\n", false);
    let new = one("f", b"a\nb\nc\nD\ne\nf\ng\n", false);
    let patch = diff(&old, &new, &[]);
    let moved = one("f", b"new\na\nb\nc\nd\ne\nf\ng\n", false);
    assert!(applied_by_git(&moved, &patch).is_some());
    let error = applied(&moved, &patch).unwrap_err();
    assert_eq!(error.to_string(), "hunk 1 of the patch does not fit `f` at line 1");
}

#[test]
fn only_the_mode_may_change() {
    let (old, new) = (one("f", b"x\n", false), one("f", b"x\n", true));
    assert_eq!(applied(&old, &diff(&old, &new, &[])).unwrap(), new);
    assert_eq!(applied(&new, &diff(&new, &old, &[])).unwrap(), old);
}
