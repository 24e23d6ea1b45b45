//! What is exported verifies, with everything or with parts withheld.

use std::io::Write;

use fluffy_ledger::{ExportOptions, LedgerError, Problem, Signer, export, verify_bundle};
use serde_json::Value;

use crate::support::{Desk, OURS, Parts, Session, THEIRS, at_every_size, is_signed, key, lines};

fn redacting(globs: &[&str]) -> ExportOptions {
    let redact = globs.iter().map(|glob| (*glob).to_owned()).collect();
    ExportOptions { redact, exported_at_ms: 9, session: None }
}

/// The details that a bundle shows, and the number of those that it withholds.
fn shown(bundle: &[u8]) -> (Vec<Value>, usize) {
    let whole: Value = serde_json::from_slice(bundle).unwrap();
    let details: Vec<_> = whole["details"].as_object().unwrap().values().collect();
    let texts: Vec<_> = details.iter().filter_map(|detail| detail.as_str()).collect();
    let shown = texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    (shown, details.len() - texts.len())
}

#[test]
fn an_exported_bundle_verifies_and_names_its_signer() {
    let session = Session::of(40);
    let check = Desk::new().check(&session.bundle());
    assert_eq!(lines(&check.findings), "");
    assert!(is_signed(&check, &OURS));
    assert_eq!((check.entries, check.root_hash), (40, session.segment().head()));
    let protocol = check.protocol.unwrap();
    assert_eq!((protocol.sessions, protocol.withheld), (1, 0));
    assert_eq!(lines(&protocol.findings), "");
}

#[test]
fn bundles_of_every_small_size_verify() {
    at_every_size(70, |size, session| {
        let check = Desk::new().check(&session.bundle());
        assert!(is_signed(&check, &OURS), "{size}: {}", lines(&check.findings));
        assert_eq!(check.entries, size);
    });
}

#[test]
fn a_decision_without_its_result_is_open_and_not_a_finding() {
    let check = Desk::new().check(&Session::of(5).bundle());
    assert!(is_signed(&check, &OURS));
    assert_eq!(check.protocol.unwrap().open_intents, [4]);
}

#[test]
fn a_bundle_has_the_fields_of_the_peer_and_ours() {
    let session = Session::of(6);
    let whole: Value = serde_json::from_slice(&session.bundle()).unwrap();
    let mut names: Vec<_> = whole.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    let expected = "checkpoint details entries exported_at_ms kernel_id ledger_entries public_key \
                    root_hash seal variant version";
    assert_eq!(names.join(" "), expected);
    assert_eq!(whole["entries"], whole["ledger_entries"]);
    assert_eq!(whole["entries"][0].as_object().unwrap().len(), 22);
    assert_eq!(whole["exported_at_ms"], 1_700_000_009_000_u64);
    assert_eq!(
        (&whole["kernel_id"], &whole["variant"]),
        (&"kernel-of-tests".into(), &"strict".into())
    );
    assert_eq!(whole["root_hash"], session.segment().head().to_string());
}

#[test]
fn the_same_ledger_gives_the_same_bundle() {
    assert_eq!(Session::of(9).bundle(), Session::of(9).bundle());
}

#[test]
fn a_segment_is_exported_as_it_was_while_the_ledger_grows() {
    let session = Session::of(8);
    let ledger = session.open();
    let before = session.segment();
    (0..8).for_each(|_| session.step(&ledger));
    for (segment, size) in [(before, 8), (session.segment(), 16)] {
        let mut out = Vec::new();
        export(&segment, &key(&OURS), &ExportOptions::default(), &mut out).unwrap();
        let check = Desk::new().check(&out);
        assert!(is_signed(&check, &OURS), "{}", lines(&check.findings));
        assert_eq!(check.entries, size);
    }
}

#[test]
fn a_pinned_key_must_be_the_one_that_signed() {
    let (desk, bundle) = (Desk::new(), Session::of(5).bundle());
    assert!(is_signed(&desk.check_pinned(&bundle, key(&OURS).verifying_key()), &OURS));
    let check = desk.check_pinned(&bundle, key(&THEIRS).verifying_key());
    let found = lines(&check.findings);
    assert!(found.starts_with("the bundle is signed by `fluffy-ledger+"), "{found}");
    assert_eq!(check.findings.len(), 1);
}

#[test]
fn a_bundle_that_cannot_be_written_is_an_error() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let session = Session::of(3);
    let (segment, options) = (session.segment(), ExportOptions::default());
    let error = export(&segment, &key(&OURS), &options, &mut Full).unwrap_err();
    assert_eq!(error.to_string(), "cannot write `the bundle`");
}

#[test]
fn details_are_withheld_by_event_tool_actor_and_path() {
    let session = Session::of(22);
    let (all, none) = shown(&session.bundle());
    assert_eq!((all.len(), none), (22, 0));
    let cases: [(&str, usize); 6] = [
        ("tool_result", 5),
        ("fs.read", 5),
        ("m*llory", 5),
        ("secret/**", 10),
        ("nothing", 0),
        ("*", 22),
    ];
    for (glob, expected) in cases {
        let (bundle, exported) = session.export(&redacting(&[glob]));
        let (shown, withheld) = shown(&bundle);
        assert_eq!((shown.len(), withheld), (22 - expected, expected), "{glob}");
        assert_eq!((exported.entries, exported.withheld), (22, expected as u64), "{glob}");
        let check = Desk::new().check(&bundle);
        assert!(is_signed(&check, &OURS), "{glob}: {}", lines(&check.findings));
        assert_eq!(check.protocol.unwrap().withheld, expected as u64, "{glob}");
    }
    let (bundle, exported) = session.export(&redacting(&["tool_result", "fs.read"]));
    assert_eq!(exported.withheld, 10);
    assert!(!String::from_utf8(bundle).unwrap().contains("\\\"event\\\":\\\"tool_result\\\""));
}

#[test]
fn a_withheld_detail_cannot_be_replaced_by_another() {
    let (bundle, _) = Session::of(6).export(&redacting(&["fs.read"]));
    let mut parts = Parts::of(&bundle);
    let details = parts.details.as_mut().unwrap();
    assert!(details[2].ends_with(":null"), "{}", details[2]);
    details[2] = details[2].replace(":null", ":\"{}\"");
    parts.seal(&OURS);
    let found = Desk::new().refused(&parts.bytes());
    assert!(found.contains("entry 2: the entry's detail was changed\n"), "{found}");
}

#[test]
fn a_session_filter_keeps_the_details_of_that_session_and_the_whole_chain() {
    let session = Session::of(12);
    let other = fluffy_base::SessionId::named("session-of-somebody-else");
    for (wanted, visible) in [(Some(session.id.clone()), 12), (other, 1)] {
        let options = ExportOptions { session: wanted, ..Default::default() };
        let (bundle, exported) = session.export(&options);
        assert_eq!(shown(&bundle).0.len(), visible);
        assert_eq!((exported.entries, exported.withheld), (12, 12 - visible as u64));
        let check = Desk::new().check(&bundle);
        assert!(is_signed(&check, &OURS), "{}", lines(&check.findings));
    }
}

#[test]
fn a_bad_glob_is_a_clear_error_and_nothing_is_written() {
    let session = Session::of(3);
    let segment = session.segment();
    let mut out = Vec::new();
    let error =
        export(&segment, &key(&OURS), &redacting(&["ok", "src/[ab"]), &mut out).unwrap_err();
    assert!(matches!(&error, LedgerError::Pattern { pattern, .. } if pattern == "src/[ab"));
    assert!(error.to_string().starts_with("`src/[ab` is not a glob: "), "{error}");
    assert_eq!(out, b"");
}

#[test]
fn what_is_no_file_is_an_error_and_not_a_verdict() {
    let session = Session::of(2);
    let project = session.project();
    let (missing, directory, pipe) = (project.path("none"), project.root(), project.path("pipe"));
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
    for path in [missing, directory, pipe] {
        let error = verify_bundle(&path, None).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot read `{}`", path.display()));
    }
}

#[test]
fn an_empty_file_is_not_a_bundle() {
    let check = Desk::new().check(b"");
    assert!(matches!(check.findings[0].problem, Problem::Format(_)));
    assert_eq!((check.signer, check.entries), (Signer::Nobody, 0));
}
