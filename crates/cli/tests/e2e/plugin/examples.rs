//! The examples of the kits do what they say, with the kits as they are.

use serde_json::json;

use super::lab::{Lab, sdk};

#[test]
fn the_copies_of_the_kits_beside_the_examples_are_the_kits() {
    for (kit, copy) in [
        ("python/fluffy_plugin.py", "python/examples/todo/fluffy_plugin.py"),
        ("typescript/fluffy_plugin.js", "typescript/examples/json-tools/fluffy_plugin.js"),
        ("typescript/fluffy_plugin.d.ts", "typescript/examples/json-tools/fluffy_plugin.d.ts"),
        ("rust/src/fluffy_plugin.rs", "rust/examples/lines/src/fluffy_plugin.rs"),
    ] {
        let read = |path: &str| std::fs::read_to_string(sdk().join(path)).unwrap();
        assert!(read(kit) == read(copy), "{copy} is not {kit}");
    }
}

#[test]
fn the_example_in_typescript_finds_what_is_wrong_with_json_and_sorts_it() {
    let lab = Lab::new();
    lab.install(&sdk().join("typescript/examples/json-tools"));
    let text = "{\n  \"b\": [1, 2],\n  \"a\": tru\n}";
    let found = lab.call("json_tools.check", &json!({ "text": text }));
    assert_eq!((&found["valid"], &found["line"]), (&json!(false), &json!(3)), "{found}");
    assert_eq!(lab.call("json_tools.check", &json!({ "text": "[]" })), json!({ "valid": true }));
    let sorted =
        lab.call("json_tools.format", &json!({ "text": "{\"b\":1,\"a\":{\"d\":1,\"c\":2}}" }));
    let expected = "{\n  \"a\": {\n    \"c\": 2,\n    \"d\": 1\n  },\n  \"b\": 1\n}\n";
    assert_eq!(sorted, json!({ "text": expected }));
    let wrong = lab.plugin(&["call", "json_tools.format", "--input", "{\"text\":\"{\"}"]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.out.contains("plugin json-tools: "), "{}", wrong.out);
}
