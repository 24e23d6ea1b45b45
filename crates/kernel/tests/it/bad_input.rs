//! Whatever bytes come, there is a receipt, an entry and a kernel that answers the next request.

use fluffy_base::KernelState;
use fluffy_kernel::Kernel;
use fluffy_ledger::input_of;
use proptest::prelude::*;

use crate::lab::{ALLOWED, DENIED, Lab, detail, echo, ends, error};

/// Submits bytes that must be refused, recorded and survived.
fn check(kernel: &Kernel, lab: &Lab, text: &[u8], says: &str) {
    let before = lab.entries().len();
    let receipt = kernel.submit_json(text);
    assert_eq!(ends(&receipt), DENIED, "{says}");
    assert!(error(&receipt).contains(says), "`{}` should say `{says}`", error(&receipt));
    let entries = lab.entries();
    assert_eq!(entries.len(), before + 1, "{says}");
    let last = entries.last().unwrap();
    assert_eq!(Some(last.entry.entry_hash), receipt.evidence_hash);
    assert_eq!(last.entry.error, receipt.error);
    assert_eq!(kernel.state(), KernelState::Idle);
    assert_eq!(ends(&kernel.submit(echo("next"))), ALLOWED);
}

fn with(field: &str) -> Vec<u8> {
    format!(r#"{{"request_id":"r","ts_ms":1,"actor":"alice","intent":"i",{field}}}"#).into_bytes()
}

#[test]
fn what_is_no_request_is_refused_with_the_reason_and_recorded() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"".to_vec(), "not valid JSON"),
        (b"\n".to_vec(), "not valid JSON"),
        (b"null".to_vec(), "not a JSON object"),
        (b"[]".to_vec(), "not a JSON object"),
        (b"7".to_vec(), "not a JSON object"),
        (b"{}".to_vec(), "`ts_ms` must be an integer"),
        (b"{".to_vec(), "not valid JSON"),
        (b"{} {}".to_vec(), "not valid JSON"),
        (b"\xff\xfe{}".to_vec(), "not UTF-8"),
        (with(r#""params":{"a":NaN}"#), "not valid JSON"),
        (with(r#""params":{"a":Infinity}"#), "not valid JSON"),
        (with(r#""params":{"a":1e999}"#), "not valid JSON"),
        (with(r#""params":{"a":1,"a":2}"#), "key `a` stands twice"),
        (with(r#""actor":"mallory""#), "key `actor` stands twice"),
        (with(r#""params":{"a":9007199254740993}"#), "cannot be kept exactly"),
        (with(r#""params":{"a":-9007199254740993}"#), "cannot be kept exactly"),
        (with(r#""params":{"a":123456789012345678901234567890}"#), ""),
        (with(r#""colour":"red""#), "unknown field `colour`"),
        (with(r#""tool_call":{"name":"echo","args":{}}"#), "unknown field `tool_call.args`"),
        (with(r#""tool_call":"echo""#), "`tool_call` must be an object"),
        (with(r#""tool_call":{"name":7}"#), "`tool_call.name` must be a string"),
        (with(r#""evidence":7"#), "`evidence` must be a string"),
        (with(r#""params":"\ud800""#), "not valid JSON"),
        (br#"{"request_id":"r","ts_ms":-1,"actor":"alice","intent":"i"}"#.to_vec(), "non-negative"),
        (br#"{"request_id":"r","ts_ms":1.5,"actor":"a","intent":"i"}"#.to_vec(), "an integer"),
        (br#"{"request_id":7,"ts_ms":1}"#.to_vec(), "`request_id` must be a string"),
    ];
    for (text, says) in cases {
        check(&kernel, &lab, &text, says);
    }
    drop(kernel);
    lab.verify();
}

#[test]
fn ten_thousand_levels_are_refused() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    check(&kernel, &lab, deep.as_bytes(), "nested deeper than 64 levels");
    let objects = r#"{"a":"#.repeat(10_000) + "1" + &"}".repeat(10_000);
    check(&kernel, &lab, &with(&format!(r#""params":{objects}"#)), "nested deeper than 64 levels");
    check(&kernel, &lab, "[".repeat(10_000).as_bytes(), "nested deeper than 64 levels");
}

#[test]
fn the_input_is_kept_as_it_came_and_shown_only_in_excerpt() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    let text = format!("nonsense \u{1b}[2J {}", "x".repeat(10_000));
    let receipt = kernel.submit_json(text.as_bytes());
    let blob = input_of(&lab.database(), receipt.entry.unwrap()).unwrap().unwrap();
    assert_eq!(blob.input(), text.as_bytes());
    let last = lab.last();
    assert_eq!(detail(&last).input_blob, Some(blob.hash()));
    let summary = detail(&last).input_summary.unwrap().into_owned();
    assert_eq!(summary.chars().count(), 500);
    assert!(summary.starts_with("nonsense \\u{1b}[2J x"), "{summary}");
}

#[test]
fn the_id_of_a_refused_request_is_repeated_where_it_could_be_read() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    assert_eq!(kernel.submit_json(&with(r#""colour":"red""#)).request_id, "r");
    assert_eq!(kernel.submit_json(b"nonsense").request_id, "");
    let long = format!(r#"{{"request_id":"{}","nope":1}}"#, "x".repeat(1_000));
    assert_eq!(kernel.submit_json(long.as_bytes()).request_id.chars().count(), 256);
}

#[test]
fn a_request_that_was_not_read_is_refused_and_recorded() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    let receipt = kernel.refuse_unread("a line has more than 8 MiB\u{7}");
    assert_eq!(ends(&receipt), DENIED);
    assert_eq!(error(&receipt), "Malformed request: a line has more than 8 MiB\\u{7}");
    assert_eq!(Some(lab.last().entry.entry_hash), receipt.evidence_hash);
    assert_eq!(detail(&lab.last()).input_blob, None);
}

#[test]
fn slow_a_parameter_of_100_mb_is_refused_and_not_kept() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    let head = br#"{"request_id":"r","ts_ms":1,"actor":"alice","intent":"i","tool_call":{"name":"echo","params":{"text":""#;
    let mut text = Vec::with_capacity(100_000_200);
    text.extend_from_slice(head);
    text.resize(head.len() + 100_000_000, b'x');
    text.extend_from_slice(br#""}}}"#);
    let receipt = kernel.submit_json(&text);
    drop(text);
    assert_eq!(ends(&receipt), DENIED);
    assert!(error(&receipt).contains("Tool params take 100000011 bytes"), "{receipt:?}");
    let last = lab.last();
    assert_eq!(detail(&last).input_blob, None);
    assert!(detail(&last).metadata["input_bytes"].parse::<u64>().unwrap() > 100_000_000);
    assert!(last.entry.params_hash.is_some());
    assert_eq!(ends(&kernel.submit(echo("next"))), ALLOWED);
}

/// Bytes that are more and more like a request.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let request = r#"{"request_id":"r","ts_ms":1,"actor":"alice","intent":"i","tool_call":{"name":"echo","params":{"text":"hi"}}}"#;
    let bitten = (any::<prop::sample::Index>(), any::<u8>()).prop_map(move |(at, byte)| {
        let mut bytes = request.as_bytes().to_vec();
        *at.get_mut(&mut bytes) = byte;
        bytes
    });
    let cut = any::<prop::sample::Index>()
        .prop_map(move |at| request.bytes().take(at.index(request.len())).collect());
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        "[\\[\\]{}\",:0-9a-z\\\\. -]{0,80}".prop_map(String::into_bytes),
        bitten,
        cut,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn no_bytes_can_stop_the_kernel(inputs in prop::collection::vec(hostile(), 1..40)) {
        let lab = Lab::new();
        let kernel = lab.boot(vec![]);
        let before = lab.entries().len();
        for input in &inputs {
            let receipt = kernel.submit_json(input);
            prop_assert!(receipt.evidence_hash.is_some());
            prop_assert_eq!(kernel.state(), KernelState::Idle);
        }
        prop_assert_eq!(lab.entries().len(), before + inputs.len());
        prop_assert_eq!(ends(&kernel.submit(echo("next"))), ALLOWED);
        lab.verify();
    }
}
