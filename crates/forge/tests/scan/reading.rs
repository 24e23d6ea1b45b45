//! Files are read as Python reads them, or not at all.

use fluffy_forge::{ScanRules, SideEffect, scan};

use crate::skill::{file, judge, plain_tests, proposal, rules, subject};

fn refused(bytes: &[u8]) -> Vec<String> {
    rules(&scan(&[file("subject.py", bytes)], &ScanRules::default()))
}

#[test]
fn what_python_could_read_otherwise_is_refused() {
    for bytes in [
        &b"x = 1\0\n"[..],
        b"x = 1\x0c\n",
        b"\x0c    x = 1\n",
        b"x = 1\x1a\n",
        b"# a\rimport os\n",
        b"x = 1\r\r\n",
        b"# coding: latin-1\nx = 1\n",
        b"#!/usr/bin/env python\n# -*- coding: utf-7 -*-\nx = 1\n",
        b"x = 1 # vim: set fileencoding=cp1252 :\n",
        b"# coding=utf-8 coding=latin-1\n",
        b"x = '\xff'\n",
        b"x = '\xed\xa0\x80'\n",
        "x = 'a\u{feff}b'\n".as_bytes(),
        "x = 1  # \u{202e}\n".as_bytes(),
        b"if x:\n    \\\n  y = 1\n",
    ] {
        assert_eq!(refused(bytes), ["unreadable"], "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn what_python_reads_the_same_way_is_read() {
    for bytes in [
        &b""[..],
        b"\n",
        b"x = 1",
        b"\xef\xbb\xbfx = 1\n",
        b"x = 1\r\ny = 2\r\n",
        b"# coding: utf-8\nx = 1\n",
        b"# -*- coding: UTF8 -*-\nx = 1\n",
        b"# this coding is fine\nx = 1\n",
        b"if 1:\n\tx = 1\n",
        "x = 'd\u{e9}j\u{e0} \u{1f469}\u{200d}\u{1f467}'\n".as_bytes(),
        b"x = 1 + \\\n    2\n",
    ] {
        assert_eq!(refused(bytes), Vec::<String>::new(), "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn a_file_that_is_no_python_is_refused_with_its_line() {
    let result = scan(&[file("subject.py", "x = 1\ny = 1 +\n")], &ScanRules::default());
    assert_eq!(rules(&result), ["syntax"]);
    assert_eq!(result.findings[0].line, Some(2));
    for text in ["def f(:\n", "x = $\n", "if 1:\nx = 1\n", "x = 'a\n", "%timeit 1\n", "!ls\n"] {
        assert!(!refused(text.as_bytes()).is_empty(), "{text}");
    }
}

#[test]
fn a_file_that_is_too_large_is_refused_unread() {
    let text = "x = 1\n".repeat(60_000);
    assert_eq!(refused(text.as_bytes()), ["unreadable"]);
}

#[test]
fn findings_are_bounded_and_in_order() {
    let body = "eval('1')\n".repeat(3_000);
    let proposal = proposal("subject", SideEffect::ReadOnly);
    let files = [subject(SideEffect::ReadOnly, "", &body), plain_tests(&proposal)];
    let answers = judge(&files, &proposal);
    assert_eq!(answers.policy.findings.len(), 100);
    assert!(answers.policy.findings.is_sorted_by_key(|finding| finding.line));
    let name = "a".repeat(100_000);
    let files =
        [subject(SideEffect::ReadOnly, "", &format!("x.__{name}__")), plain_tests(&proposal)];
    let longest =
        judge(&files, &proposal).policy.findings.iter().map(|one| one.message.len()).max();
    assert!(longest < Some(400), "{longest:?}");
}
