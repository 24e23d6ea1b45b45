//! Diffs against the real git.

use std::process::Command;

use super::*;

fn git(scene: &Scene, args: &[&str]) -> String {
    let run = Command::new("git")
        .args(args)
        .current_dir(scene.project())
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", scene.dir.path())
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success(), "{args:?}: {err}");
    String::from_utf8(run.stdout).unwrap()
}

/// Only the texts and whether they can be executed.
fn contents(scene: &Scene) -> BTreeMap<PathBuf, (bool, Vec<u8>)> {
    let all = snapshot(&scene.project()).into_iter();
    let files = all.filter(|(_, (mode, ..))| mode & 0o170_000 == 0o100_000);
    files.map(|(path, (mode, _, _, text))| (path, (mode & 0o100 != 0, text))).collect()
}

/// The diff applies with git and gives what is staged; both count the same lines.
fn check(before: &[(&str, &str)], words: &[&str]) -> String {
    let scene = Scene::new(before);
    let mut staging = scene.staging();
    stage(&mut staging, words);
    let diff = staging.diff().unwrap();
    let file = scene.dir.path().join("patch");
    fs::write(&file, diff.patch()).unwrap();
    let counted = git(&scene, &["apply", "--numstat", file.to_str().unwrap()]);
    let (mut added, mut removed) = (0, 0);
    for line in counted.lines() {
        let mut numbers = line.split('\t').map(|word| word.parse::<u64>().unwrap_or_default());
        added += numbers.next().unwrap();
        removed += numbers.next().unwrap();
    }
    assert_eq!((diff.added(), diff.removed()), (added, removed), "{}", diff.text());
    git(&scene, &["apply", "--whitespace=nowarn", file.to_str().unwrap()]);
    for (path, staged) in staging.files().iter() {
        let at = scene.project().join(path.as_str());
        match staged {
            Staged::Deleted => assert!(!at.is_file(), "{path}"),
            Staged::File(stored) => {
                let (executable, text) = &contents(&scene)[&at];
                assert_eq!(*executable, stored.executable, "{path}");
                assert_eq!(*text, staging.blobs().get(&stored).unwrap(), "{path}");
            }
        }
    }
    diff.text().into_owned()
}

const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

#[test]
fn a_diff_applies_with_git_and_gives_what_is_staged() {
    let text = check(&[("a", TEN)], &["+a=1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n"]);
    let expected = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -2,9 +2,10 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n 10\n+11\n";
    assert_eq!(text, expected);
    check(&[("a", TEN)], &["+a=0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n"]);
    check(&[("a", "1\n")], &["+a="]);
    check(&[("a", "")], &["+a=1\n"]);
    check(&[], &["+a=1\n2\n", "+empty=", "+d/e/run=x:\n"]);
    check(&[("a", TEN), ("d/e", "x:\n"), ("none", "")], &["-a", "-d/e", "-none"]);
}

#[test]
fn line_ends_of_every_kind_come_through() {
    check(&[("a", "1\n2")], &["+a=1\n2\n"]);
    check(&[("a", "1\n2\n")], &["+a=1\n2"]);
    check(&[("a", "1\n2")], &["+a=one\n2"]);
    check(&[("a", "1\n2")], &["+a=1\n2\n3"]);
    check(&[("a", "1\r\n2\r\n")], &["+a=1\r\ntwo\r\n3\r\n"]);
    check(&[("a", "1\r\n2\r\n")], &["+a=1\n2\n"]);
    check(&[("a", "1\r2\r3")], &["+a=1\r2\rthree"]);
    check(&[], &["+a=no end", "+b=\n\n\n"]);
}

#[test]
fn modes_swaps_and_odd_names_come_through() {
    check(&[("run", "x:\n")], &["+run=y\n"]);
    check(
        &[("with space", TEN), ("q\"uote", "1\n"), ("ünï", "1\n")],
        &["+with space=1\n", "+q\"uote=2\n", "+ünï=2\n", "+new \"one\" here=3\n"],
    );
    check(&[("f", "1\n"), ("d/x", "2\n")], &["+f/g=3\n", "+d=4\n"]);
    let scene = Scene::new(&[("run", "echo\n")]);
    let mut staging = scene.staging();
    let stored = staging.blobs().put(b"echo\n", true).unwrap();
    let step = staging.prepare("r", &[Produced::File(path("run"), stored)]).unwrap().unwrap();
    staging.promote(step).unwrap();
    let expected = "diff --git a/run b/run\nold mode 100644\nnew mode 100755\n";
    assert_eq!(staging.diff().unwrap().text(), expected);
}

#[test]
fn what_is_not_shown_is_counted_all_the_same() {
    let scene = Scene::new(&[("bin", "\0old")]);
    let mut staging = scene.staging();
    let long = format!("+one-line.js={}", "x".repeat(100_000));
    let many = format!("+many={}", "y\n".repeat(900_000));
    let bin = format!("+bin=\0{}", "z".repeat(1_600));
    stage(&mut staging, &[&long, &many, &bin]);
    let diff = staging.diff().unwrap();
    let sizes: Vec<_> = diff
        .files()
        .iter()
        .map(|file| (file.path.as_str(), file.opaque, file.added, file.size))
        .collect();
    assert_eq!(
        sizes,
        [("bin", true, 1, 13), ("many", false, 900_000, 900_000), ("one-line.js", false, 1, 625)]
    );
    assert!(!diff.is_whole());
    assert!(diff.patch().len() < (1 << 20) + 100);
    assert!(diff.text().ends_with("+y\n[the rest is not shown]\n"));
    assert!(
        diff.text().starts_with("diff --git a/bin b/bin\nBinary files a/bin and b/bin differ\n")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_two_texts_give_a_diff_that_applies(
        old in "([a-d]\r?\n){0,30}[ab]?",
        new in "([a-d]\r?\n){0,30}[ab]?",
    ) {
        prop_assume!(old != new);
        check(&[("a", &old)], &[&format!("+a={new}")]);
    }
}
