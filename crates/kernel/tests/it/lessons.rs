//! What worked against the systems before this one, tried here. L08, L09 and L11 stand where their
//! subjects do: in `sessions`, `jurisdiction` and `threads`.

use std::sync::{Arc, Mutex};

use fluffy_base::{Digest, KernelRequest, KernelState, VirtualClock};
use fluffy_kernel::{Kernel, ToolError};
use fluffy_ledger::input_of;
use serde_json::json;

use crate::lab::{
    ALLOWED, DENIED, FAILED, Lab, POLICY, Probe, Runs, UNFIT, call, detail, echo, ends, error,
    json as read,
};

#[test]
fn lesson_l01_what_is_checked_hashed_run_and_recorded_is_the_tool_calls_params() {
    let lab = Lab::new();
    let ran = Arc::new(Mutex::new(Vec::new()));
    let noted = ran.clone();
    let tool = Probe::pure("look", move |params| {
        noted.lock().unwrap().push(params.canonical().to_owned());
        Ok(json!(null))
    });
    let kernel = lab.boot(vec![tool]);
    let (inner, outer) = (r#"{"text":"inner"}"#, r#"{"text":"outer"}"#);
    let request = KernelRequest { params: Some(read(outer)), ..call("r", "look", inner) };
    let receipt = kernel.submit(request.clone());
    assert_eq!(ends(&receipt), ALLOWED);
    assert_eq!(*ran.lock().unwrap(), [inner]);
    let last = lab.last();
    assert_eq!(last.entry.params_hash, Some(Digest::of(inner.as_bytes())));
    assert_eq!(detail(&last).input_summary.as_deref(), Some(inner));
    let kept = input_of(&lab.database(), receipt.entry.unwrap()).unwrap().unwrap().input().to_vec();
    assert_eq!(KernelRequest::parse(&kept), Ok(request));
}

#[test]
fn lesson_l01_the_schema_and_the_limit_hold_for_what_is_run() {
    let lab = Lab::new();
    let runs = Runs::default();
    let policy = format!("{POLICY}  max_param_bytes: 30\n");
    let kernel = Kernel::boot(lab.config_with(&policy, vec![runs.pure("look")])).unwrap();
    let (small, large) = (r#"{"n":1}"#, r#"{"text":"0123456789012345678901234"}"#);
    let both = |inner: &str, outer: &str| KernelRequest {
        params: Some(read(outer)),
        ..call("r", "look", inner)
    };
    assert_eq!(ends(&kernel.submit(both(small, small))), ALLOWED);
    assert_eq!(ends(&kernel.submit(both(large, small))), DENIED);
    assert_eq!(ends(&kernel.submit(both(small, large))), DENIED);
    assert_eq!(ends(&kernel.submit(both(r#"{"n":"text"}"#, small))), UNFIT);
    assert_eq!(runs.count(), 1);
}

#[test]
fn lesson_l02_permission_for_one_tool_runs_no_other() {
    let lab = Lab::new();
    let (first, second) = (Runs::default(), Runs::default());
    let policy = "version: 1\njurisdiction:\n  allowed_actors: [alice]\n  allowed_tools: [look]\n";
    let tools = vec![first.pure("look"), second.effect("look.twice")];
    let kernel = Kernel::boot(lab.config_with(policy, tools)).unwrap();
    for other in ["look.twice", "LOOK", "look ", " look", "look\u{200b}", "look\0", "lооk"] {
        let receipt = kernel.submit(call("r", other, "{}"));
        assert_eq!(ends(&receipt), DENIED, "{other:?}");
        // Nor does saying the permitted name elsewhere help.
        let mut request = call("r", other, "{}");
        request.params = Some(read(r#"{"name":"look","tool_call":{"name":"look"}}"#));
        request.intent = "look".to_owned();
        assert_eq!(ends(&kernel.submit(request)), DENIED, "{other:?}");
    }
    assert_eq!(ends(&kernel.submit(call("r", "look", "{}"))), ALLOWED);
    assert_eq!((first.count(), second.count()), (1, 0));
}

#[test]
fn lesson_l05_a_request_id_is_no_key_to_anothers_result() {
    let lab = Lab::new();
    let runs = Runs::default();
    let kernel = lab.boot(vec![runs.effect("touch")]);
    let by = |actor: &str| KernelRequest { actor: actor.to_owned(), ..call("same", "touch", "{}") };
    let results: Vec<_> = ["alice", "béa", "alice"]
        .map(|actor| kernel.submit(by(actor)))
        .iter()
        .map(|receipt| receipt.tool_result.as_ref().unwrap().canonical().to_owned())
        .collect();
    assert_eq!(results, ["1", "2", "3"], "nothing comes from a cache");
    assert_eq!(ends(&kernel.submit(by("mallory"))), DENIED);
    let entries = lab.entries();
    let count = |event: &str| entries.iter().filter(|r| detail(r).event == event).count();
    assert_eq!((count("tool_execute"), count("tool_result")), (3, 3));
    assert_eq!(runs.count(), 3);
    lab.verify();
}

#[test]
fn lesson_l06_a_tool_that_cannot_answer_leaves_an_entry_and_an_idle_kernel() {
    let lab = Lab::new();
    let mut deep = json!(1);
    for _ in 0..70 {
        deep = json!([deep]);
    }
    let kernel = lab.boot(vec![
        Probe::pure("inexact", |_| Ok(json!(u64::MAX))),
        Probe::pure("deep", move |_| Ok(deep.clone())),
        Probe::pure("huge", |_| Ok(json!("x".repeat((8 << 20) + 1)))),
        Probe::pure("crash", |_| panic!("on purpose")),
        Probe::pure("error", |_| Err(ToolError("not today".to_owned()))),
        Probe::effect("crash.effect", |_| panic!("on purpose")),
        Probe::effect("inexact.effect", |_| Ok(json!(i64::MIN + 1))),
    ]);
    for (tool, says, entries) in [
        ("inexact", "the result is unusable: number 18446744073709551615", 1),
        ("deep", "the result is unusable: nested deeper than 64 levels", 1),
        ("huge", "the result has 8388611 bytes, more than 8388608", 1),
        ("crash", "the tool crashed", 1),
        ("error", "not today", 1),
        ("crash.effect", "the tool crashed", 2),
        ("inexact.effect", "the result is unusable", 2),
    ] {
        let before = lab.entries().len();
        let receipt = kernel.submit(call("r", tool, "{}"));
        assert_eq!(ends(&receipt), FAILED, "{tool}");
        let expected = format!("Tool execution failed: {says}");
        assert!(error(&receipt).starts_with(&expected), "{receipt:?}");
        assert_eq!(lab.entries().len(), before + entries, "{tool}");
        assert_eq!(Some(lab.last().entry.entry_hash), receipt.evidence_hash);
        assert_eq!(lab.last().entry.error, receipt.error);
        assert_eq!(kernel.state(), KernelState::Idle);
        assert_eq!(ends(&kernel.submit(echo("next"))), ALLOWED);
    }
    lab.verify();
}

#[test]
fn lesson_l06_a_result_that_is_too_large_is_recorded_by_its_hash() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![Probe::pure("huge", |_| Ok(json!("x".repeat(8 << 20))))]);
    kernel.submit(call("r", "huge", "{}"));
    let text = format!("\"{}\"", "x".repeat(8 << 20));
    assert_eq!(detail(&lab.last()).result_hash, Some(Digest::of(text.as_bytes())));
}

#[test]
fn lesson_l07_a_denial_carries_tool_and_parameters_and_a_result_its_hash() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![Runs::default().effect("touch")]);
    let params = r#"{"text":"hi"}"#;
    let hash = Some(Digest::of(params.as_bytes()));
    let stranger = KernelRequest { actor: "mallory".to_owned(), ..call("r", "echo", params) };
    let blank = KernelRequest { intent: " ".to_owned(), ..call("r", "echo", params) };
    let unfit = call("r", "add", params);
    for (request, tool) in
        [(stranger, "echo"), (blank, "echo"), (call("r", "nope", params), "nope"), (unfit, "add")]
    {
        let receipt = kernel.submit(request);
        assert_eq!(receipt.decision.name(), "DENY");
        let entry = lab.last().entry;
        assert_eq!((entry.tool_name.as_deref(), entry.params_hash), (Some(tool), hash));
        assert_eq!(entry.error, receipt.error);
    }
    kernel.submit(call("r", "echo", params));
    assert_eq!(detail(&lab.last()).result_hash, Some(Digest::of(br#""hi""#)));
    kernel.submit(call("r", "touch", params));
    assert_eq!(detail(&lab.last()).result_hash, Some(Digest::of(b"1")));
    assert_eq!(lab.last().entry.params_hash, hash);
    kernel.submit(call("r", "touch", "{}"));
    assert_eq!(lab.last().entry.params_hash, None);
}

#[test]
fn lesson_l10_two_spellings_of_an_actor_are_one_actor() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    for actor in ["b\u{e9}a", "be\u{301}a"] {
        let receipt = kernel.submit(KernelRequest { actor: actor.to_owned(), ..echo("r") });
        assert_eq!(ends(&receipt), ALLOWED, "{actor:?}");
        assert_eq!(lab.last().entry.actor, "b\u{e9}a");
    }
    for actor in ["bea", "b\u{e9}a\u{200b}", "B\u{e9}a", " b\u{e9}a"] {
        let receipt = kernel.submit(KernelRequest { actor: actor.to_owned(), ..echo("r") });
        assert_eq!(ends(&receipt), DENIED, "{actor:?}");
    }
}

#[test]
fn a_request_id_comes_back_as_it_was_sent() {
    let (lab, id) = (Lab::new(), "re\u{301}1");
    let kernel = lab.boot(vec![]);
    assert_eq!(kernel.submit(echo(id)).request_id, id);
    assert_eq!(lab.last().entry.request_id, id);
    let refused = kernel.submit_json(format!(r#"{{"request_id":"{id}","x":1}}"#).as_bytes());
    assert_eq!(refused.request_id, id);
}

#[test]
fn lesson_l10_an_intent_that_nobody_sees_is_none() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    for intent in ["\u{200b}", "\u{feff}\u{2060}", "\u{3164}", "\0"] {
        let receipt = kernel.submit(KernelRequest { intent: intent.to_owned(), ..echo("r") });
        assert_eq!(error(&receipt), "Ambiguity detected: Empty intent is ambiguous", "{intent:?}");
    }
}

#[test]
fn lesson_l10_numbers_and_keys_have_one_meaning() {
    let lab = Lab::new();
    let kernel = lab.boot(vec![]);
    let submit = |params: &str| {
        let text = format!(
            r#"{{"request_id":"r","ts_ms":1,"actor":"alice","intent":"i","tool_call":{{"name":"add","params":{params}}}}}"#
        );
        kernel.submit_json(text.as_bytes())
    };
    assert_eq!(submit(r#"{"a":1,"b":2.0}"#).tool_result, Some(read("3")));
    let hash = lab.last().entry.params_hash;
    assert_eq!(submit(r#"{"b":2,"a":1.0}"#).tool_result, Some(read("3")));
    assert_eq!(lab.last().entry.params_hash, hash, "one value, one hash");
    assert_eq!(ends(&submit(r#"{"a":true,"b":2}"#)), UNFIT, "true is not 1");
    assert_ne!(lab.last().entry.params_hash, hash);
    assert_eq!(ends(&submit(r#"{"a":"1","b":2}"#)), UNFIT, "a text is not a number");
    assert_eq!(ends(&submit(r#"{"a":NaN,"b":2}"#)), DENIED);
    assert_eq!(ends(&submit(r#"{"a":1,"a":2,"b":2}"#)), DENIED);
}

#[test]
fn lesson_l20_fields_cannot_run_into_each_other() {
    let hash = |actor: &str, intent: &str| {
        let lab = Lab::new();
        let kernel = lab.boot(vec![]);
        let request =
            KernelRequest { actor: actor.to_owned(), intent: intent.to_owned(), ..echo("r") };
        kernel.submit(request).evidence_hash.unwrap()
    };
    assert_eq!(hash("a", "b|c"), hash("a", "b|c"));
    assert_ne!(hash("a|b", "c"), hash("a", "b|c"));
    assert_ne!(hash("a\",\"intent\":\"b", "c"), hash("a", "b\",\"intent\":\"c"));
}

#[test]
fn lesson_l20_a_bad_request_takes_no_good_one_with_it_and_times_are_those_of_the_answer() {
    let lab = Lab::new();
    let clock = Arc::new(VirtualClock::new(1_000, 0));
    let mut config = lab.config(vec![]);
    config.clock = clock.clone();
    let kernel = Kernel::boot(config).unwrap();
    let before = lab.entries().len();
    let mut receipts = Vec::new();
    for n in 0..20_u64 {
        clock.advance(10);
        receipts.push(match n % 3 {
            0 => kernel.submit_json(b"\xff\x00 bad"),
            _ => kernel.submit(echo(&format!("r{n}"))),
        });
    }
    clock.advance(1_000_000);
    kernel.close().unwrap();
    let entries = lab.entries();
    for (n, (receipt, record)) in receipts.iter().zip(&entries[before..]).enumerate() {
        let time = 1_010 + 10 * n as u64;
        assert_eq!((receipt.ts_ms, record.entry.ts_ms), (time, time));
        assert_eq!(receipt.evidence_hash, Some(record.entry.entry_hash));
    }
    lab.verify();
}
