//! Any bytes give an answer.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::corpus::{Case, corpus};
use crate::skill::{file, judge, plain_tests, proposal};

use fluffy_forge::SideEffect;

/// Pieces of Python, in any order.
const PIECES: [&str; 34] = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    "\n",
    "    ",
    "\t",
    "\\\n",
    "'",
    "\"\"\"",
    "f'{",
    "}'",
    "#",
    "=",
    ":=",
    ".",
    "lambda",
    "def f",
    "class A",
    "if x",
    "import os",
    "from os import",
    "eval",
    "__class__",
    "match x:\n",
    "case ",
    "x",
    "1",
    "\r\n",
    "@",
];

fn answers(bytes: Vec<u8>) {
    let proposal = proposal("subject", SideEffect::FileWrite);
    let tests = plain_tests(&proposal);
    let as_test = file("tests/test_subject.py", bytes.clone());
    let files = [file("subject.py", bytes), tests];
    let first = judge(&files, &proposal);
    let again = judge(&files, &proposal);
    assert_eq!(first.policy, again.policy);
    assert_eq!(first.invariants, again.invariants);
    for result in [first.policy, first.invariants] {
        assert_eq!(result.passed, result.findings.is_empty());
    }
    judge(&[files[0].clone(), as_test], &proposal);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_bytes_give_the_same_answer_twice(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        answers(bytes);
    }

    #[test]
    fn any_pieces_of_python_give_an_answer(pieces in prop::collection::vec(select(&PIECES[..]), 0..300)) {
        answers(pieces.concat().into_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn files_of_the_corpus_give_an_answer_however_they_are_damaged(
        cuts in prop::collection::vec((any::<Index>(), any::<Index>(), select(&PIECES[..])), 1..4),
        which in any::<Index>(),
        kind in select(&["hostile", "honest"][..]),
    ) {
        let cases = corpus(kind);
        let case = which.get(&cases);
        let mut bytes = case.bytes.clone();
        for (from, length, piece) in cuts {
            let from = from.index(bytes.len());
            let to = (from + length.index(40)).min(bytes.len());
            bytes.splice(from..to, piece.bytes());
        }
        let damaged = Case::of(case.name.clone(), bytes);
        damaged.judge();
    }
}

#[test]
fn a_hostile_file_stays_refused_when_honest_lines_are_added() {
    for case in corpus("hostile") {
        let mut bytes = case.bytes.clone();
        bytes.extend_from_slice(b"\n\nHARMLESS = 1\n");
        let before = case.judge();
        let after = Case::of(case.name.clone(), bytes).judge();
        assert!(before.policy.passed || !after.policy.passed, "{}", case.name);
        assert!(before.invariants.passed || !after.invariants.passed, "{}", case.name);
    }
}
