//! The verifier in `tests/independent`, written in Python from the text of the design alone.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fluffy_ledger::{Signer, verify_bundle};
use fluffy_testkit::Project;

use crate::peer;
use crate::support::{Dice, OURS, Parts, Session, at_every_size, json, lines};

fn python(script: &str, arguments: &[PathBuf]) -> Output {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/independent");
    Command::new("python3").arg("-B").arg(dir.join(script)).args(arguments).output().unwrap()
}

/// What the independent verifier says of each bundle.
fn says(bundles: &[Vec<u8>]) -> Vec<String> {
    let paths = write(&Project::new().unwrap(), bundles, |paths| {
        let said = String::from_utf8(python("verify_bundle.py", paths).stdout).unwrap();
        said.lines().map(|line| line.split_once(": ").unwrap().1.to_owned()).collect::<Vec<_>>()
    });
    assert_eq!(paths.len(), bundles.len());
    paths
}

fn write<T>(project: &Project, bundles: &[Vec<u8>], then: impl FnOnce(&[PathBuf]) -> T) -> T {
    let path = |(number, bundle): (usize, &Vec<u8>)| {
        let path = project.path(format!("{number}.json"));
        std::fs::write(&path, bundle).unwrap();
        path
    };
    let paths: Vec<_> = bundles.iter().enumerate().map(path).collect();
    then(&paths)
}

/// The same in the words of ours.
fn ours(bundle: &[u8]) -> (String, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bundle).unwrap();
    let check = verify_bundle(file.path(), None).unwrap();
    let verdict = match (check.findings.is_empty(), &check.signer) {
        (true, Signer::Key(_)) => format!("ok {} entries", check.entries),
        (true, Signer::Nobody) => format!("ok {} entries, unsigned", check.entries),
        (false, _) => "not ok".to_owned(),
    };
    (verdict, lines(&check.findings))
}

/// Both verifiers say the same of every bundle; gives how many of them hold.
fn agree(bundles: &[Vec<u8>]) -> usize {
    let mut good = 0;
    for (number, (said, bundle)) in says(bundles).iter().zip(bundles).enumerate() {
        let (verdict, found) = ours(bundle);
        let theirs = if said.starts_with("ok ") { said } else { "not ok" };
        assert_eq!(theirs, verdict, "bundle {number}: they say {said}, we say {found}");
        good += usize::from(verdict != "not ok");
    }
    good
}

#[test]
fn slow_the_tests_of_the_independent_verifier_pass() {
    let output = python("test_verify_bundle.py", &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn slow_our_bundle_is_accepted_by_the_independent_verifier() {
    let project = Project::new().unwrap();
    let good =
        write(&project, &[Session::of(40).bundle()], |path| python("verify_bundle.py", path));
    assert_eq!(String::from_utf8_lossy(&good.stdout), "ok 40 entries\n");
    assert!(good.status.success());
    let mut parts = Session::of(40).parts();
    parts.each_list(|list| list[23] = list[23].replacen("DENY", "ALLOW", 1));
    let forged = write(&project, &[parts.bytes()], |path| python("verify_bundle.py", path));
    assert!(forged.stdout.starts_with(b"entry 23: "));
    assert_eq!(forged.status.code(), Some(1));
}

#[test]
fn slow_aud_6_a_bundle_of_archived_entries_is_accepted_by_the_independent_verifier() {
    let session = Session::of(151);
    session.archive();
    let bundles = [session.bundle(), Session::of(151).bundle()];
    assert_eq!(agree(&bundles), 2);
    let size = session.segment().size();
    assert_eq!(says(&bundles), [format!("ok {size} entries"), "ok 151 entries".to_owned()]);
}

#[test]
fn slow_both_verifiers_agree_on_bundles_of_every_small_size() {
    let mut bundles = Vec::new();
    at_every_size(40, |_, session| bundles.push(session.bundle()));
    assert_eq!(agree(&bundles), bundles.len());
}

#[test]
fn slow_both_verifiers_agree_on_changed_bundles_of_ours() {
    let (whole, dice) = (Session::of(9).parts(), Dice::new(11));
    let mut bundles = Vec::new();
    for round in 0..240 {
        let mut parts = whole.clone();
        let mut bytes = match round % 6 {
            0 => parts.bytes(),
            1..=4 => {
                change(&mut parts, &dice);
                parts.bytes()
            }
            _ => {
                (0..1 + dice.below(3)).for_each(|_| change(&mut parts, &dice));
                parts.seal(&OURS);
                parts.bytes()
            }
        };
        if round % 6 == 0 && round > 0 {
            let at = dice.below(bytes.len());
            bytes[at] ^= 1 << dice.below(8);
        }
        bundles.push(bytes);
    }
    let good = agree(&bundles);
    assert!((1..60).contains(&good), "{good}");
}

/// A change as somebody would make it who knows the format.
fn change(parts: &mut Parts, dice: &Dice) {
    const NAMES: [&str; 7] = [
        "version",
        "kernel_id",
        "variant",
        "exported_at_ms",
        "root_hash",
        "public_key",
        "checkpoint",
    ];
    let (at, with) = (dice.below(9), dice.below(9));
    match dice.below(9) {
        0 => parts.each_list(|list| list.swap(at, with)),
        1 => drop(parts.repeated.pop()),
        2 => parts.details.as_mut().unwrap().swap(at, with),
        3 => parts.set(NAMES[dice.below(7)], &json("forged")),
        4 => parts.set("exported_at_ms", &at.to_string()),
        5 => parts.set("variant", "\"str\\u0069ct\""),
        6 => parts.strip(["seal", "version", "checkpoint", "public_key"][dice.below(4)]),
        7 => parts.chained[at].push(' '),
        _ => parts.each_list(|list| {
            let at = at % list.len();
            list[at] = list[at].replacen("IDLE", "HALTED", 1);
        }),
    }
}

#[test]
fn slow_both_verifiers_agree_on_changed_bundles_of_the_peer() {
    let (text, dice) = (peer::recorded().to_string(), Dice::new(12));
    let mut bundles = vec![text.clone().into_bytes()];
    for round in 0..240 {
        let mut bytes = text.clone().into_bytes();
        let at = dice.below(bytes.len());
        match round % 5 {
            0 => bytes[at] ^= 1 << dice.below(8),
            1 => bytes.insert(at, b" ,0\"-\n"[dice.below(6)]),
            2 => drop(bytes.remove(at)),
            3 => {
                let commas = bytes.windows(2).enumerate().filter(|(_, pair)| *pair == b",\"");
                let (comma, _) = commas.take(1 + dice.below(150)).last().unwrap();
                bytes.insert(comma + 1, b" \n\r\tx"[dice.below(5)]);
            }
            _ => {
                let from = ["\"ts_ms\":", "null", "\"kernel_id\":\"", ":", "[", "\"ledger_seq\":"]
                    [dice.below(6)];
                let to = [
                    "\"ts_ms\":-0",
                    "null ",
                    "\"kernel_id\":\"x",
                    " : ",
                    "[\t",
                    "\"ledger_seq\":0",
                ];
                let to = to[dice.below(to.len())];
                bytes = text.replacen(from, to, 1 + dice.below(3)).into_bytes();
            }
        }
        bundles.push(bytes);
    }
    let good = agree(&bundles);
    assert!((10..200).contains(&good), "{good}");
}
