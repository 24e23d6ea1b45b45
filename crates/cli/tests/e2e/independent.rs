//! A bundle of ours before a verifier that shares no code with us.

use std::process::Command;

use crate::program::{User, echo, request};

#[test]
fn the_independent_python_verifier_accepts_our_bundle_and_refuses_a_forged_one() {
    let user = User::new();
    let stranger = request("r2", "b\u{e9}a", "\u{1f600} \\u2028", r#"{"name":"nope"}"#);
    user.submit(&[], &[&echo("r1", "hello"), &stranger, "nonsense"]);
    let bundle = user.project.path("evidence.json");
    user.run(&["audit", "export", "--out", bundle.to_str().unwrap()]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/independent/verify_bundle.py");
    let verify = || Command::new("python3").arg(script).arg(&bundle).output().unwrap();
    let answer = verify();
    let text = String::from_utf8_lossy(&answer.stdout).into_owned();
    assert!(answer.status.success(), "{text}{}", String::from_utf8_lossy(&answer.stderr));
    assert!(text.contains("ok 6 entries"), "{text}");
    let genuine = std::fs::read_to_string(&bundle).unwrap();
    std::fs::write(&bundle, genuine.replacen("\"decision\":\"DENY\"", "\"decision\":\"ALLOW\"", 1))
        .unwrap();
    assert!(!verify().status.success());
}
