//! The schema for editors and the reader agree: on good files, on each kind of bad one, on the keys.

use std::collections::BTreeSet;

use fluffy_base::KernelState;
use fluffy_policy::{DEFAULT_POLICY, POLICY_SCHEMA, PolicyFile};
use serde_json::Value;

/// Every key that there is, once.
const COMPLETE: &str = "
version: 1
jurisdiction:
  allowed_actors: [user, model]
  allowed_tools: ['*']
  allowed_states: [IDLE]
  required_fields: [evidence, params.ticket]
  max_param_bytes: 64KiB
  max_intent_length: 200
capabilities:
  - name: write
    match: { syscall: fs.write, path_glob: 'src/**', caller_tag: core_plugin, actor: [model], session_mode: strict, workflow_state: [code_writing] }
    action: allow
    constraints: { require_sandbox: L2, require_capability_token: true, max_file_size: 1MiB }
    reason: because
    except: [{ path_glob: ['src/gen/**'] }]
  - name: run
    match: { syscall: [shell.run, 'test.*'], command: [cargo test] }
    action: require_review
  - name: read
    match: { syscall: fs.read, path_glob: ['docs/**'] }
    action: allow
    allows: [docs/a.md, { syscall: fs.read, path: docs/b.md }]
    denies: [src/a.rs]
extensions: [.fluffy/rules/own.ts]
tdd_exemptions:
  config_change: { path_glob: ['*.json'] }
  type_refactor: { path_glob: '*.ts', condition: type_only_change }
  documentation: { path_glob: ['*.md'] }
  asset_update: { path_glob: ['*.png'] }
network_whitelist: { crates: [index.crates.io, '*.pypi.org'] }
output:
  max_result_tokens: 4000
  secrets: [{ name: own, pattern: 'own-[0-9a-f]{32}' }]
  tools: { test: { keep: tail, max_result_tokens: 8000 } }
";

fn schema() -> Value {
    serde_json::from_str(POLICY_SCHEMA).unwrap()
}

fn objections(text: &str) -> Vec<String> {
    let value: Value = serde_saphyr::from_str(text).unwrap();
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    validator.iter_errors(&value).map(|error| error.to_string()).collect()
}

fn with_rule(rest: &str) -> String {
    format!("capabilities: [{{ {rest} }}]\n")
}

#[test]
fn the_schema_is_one() {
    assert!(jsonschema::draft202012::meta::is_valid(&schema()));
}

#[test]
fn what_the_reader_takes_the_schema_takes() {
    let small = [
        "{}\n",
        "version: 1\n",
        "capabilities: []\nextensions: []\nnetwork_whitelist: {}\ntdd_exemptions: {}\n",
        "jurisdiction: { allowed_actors: [], max_param_bytes: 100 }\n",
        "jurisdiction: { allowed_actors: ['*'] }\n",
        "capabilities: [{ name: a, match: { syscall: '*' }, action: deny, except: [{ actor: user }] }]\n",
        "capabilities: [{ name: a, match: { syscall: fs.*, path_glob: [] }, action: pass }]\n",
    ];
    for text in [DEFAULT_POLICY, COMPLETE].into_iter().chain(small) {
        PolicyFile::parse("policy.yaml", text).unwrap();
        assert_eq!(objections(text), Vec::<String>::new(), "{text}");
    }
}

/// Rules that are none.
const BAD_RULES: [&str; 32] = [
    "match: { syscall: a }, action: allow",
    "name: a, action: allow",
    "name: a, match: { syscall: a }",
    "name: a, match: {}, action: allow",
    "name: a, match: { path_glob: ['**'] }, action: allow",
    "name: a, match: { syscall: [] }, action: allow",
    "name: a, match: { syscall: Fs.Write }, action: allow",
    "name: a, match: { syscall: 'fs*' }, action: allow",
    "name: a, match: { syscall: 1 }, action: allow",
    "name: a, match: { syscall: a, colour: red }, action: allow",
    "name: a, match: { syscall: a, actor: [] }, action: allow",
    "name: a, match: { syscall: a, actor: 'u*' }, action: allow",
    "name: a, match: { syscall: a, session_mode: lenient }, action: allow",
    "name: a, match: { syscall: a, workflow_state: [idle, asleep] }, action: allow",
    "name: a, match: { syscall: a, command: 'rm; ls' }, action: deny",
    "name: a, match: { syscall: a, path_glob: '!x' }, action: deny",
    "name: a, match: { syscall: a, path_glob: '' }, action: deny",
    "name: a, match: { syscall: a, path_glob: 'a\\b' }, action: deny",
    "name: 'a b', match: { syscall: a }, action: allow",
    "name: builtin.a, match: { syscall: a }, action: allow",
    "name: a, match: { syscall: a }, action: permit",
    "name: a, match: { syscall: a }, action: allow, priority: 1",
    "name: a, match: { syscall: a }, action: allow, except: {}",
    "name: a, match: { syscall: a }, action: allow, except: [{}]",
    "name: a, match: { syscall: a }, action: allow, reason: ''",
    "name: a, match: { syscall: a }, action: allow, reason: [a]",
    "name: a, match: { syscall: a }, action: deny, constraints: { require_sandbox: L2 }",
    "name: a, match: { syscall: a }, action: allow, constraints: { require_sandbox: L1 }",
    "name: a, match: { syscall: a }, action: allow, constraints: { max_file_size: 1Mib }",
    "name: a, match: { syscall: a }, action: allow, constraints: { require_capability_token: 'yes' }",
    "name: a, match: { syscall: a }, action: allow, allows: x",
    "name: a, match: { syscall: a }, action: allow, allows: [{ paths: x }]",
];

/// Files that are no policy.
const BAD_FILES: [&str; 32] = [
    "version: 2\n",
    "version: '1'\n",
    "rules: []\n",
    "[]\n",
    "capabilities: {}\n",
    "capabilities: [a]\n",
    "jurisdiction: []\n",
    "jurisdiction: { allowed_actor: [a] }\n",
    "jurisdiction: { allowed_actors: a }\n",
    "jurisdiction: { allowed_actors: [1] }\n",
    "jurisdiction: { allowed_actors: ['*', a] }\n",
    "jurisdiction: { allowed_states: [SLEEPING] }\n",
    "jurisdiction: { required_fields: [colour] }\n",
    "jurisdiction: { max_param_bytes: -1 }\n",
    "jurisdiction: { max_param_bytes: 1.5 }\n",
    "jurisdiction: { max_intent_length: 0 }\n",
    "extensions: [rules/a.ts]\n",
    "extensions: [.fluffy/a.js]\n",
    "tdd_exemptions: { other: { path_glob: x } }\n",
    "tdd_exemptions: { documentation: {} }\n",
    "tdd_exemptions: { documentation: { path_glob: x, condition: any } }\n",
    "output: []\n",
    "output: { max_result_tokens: many }\n",
    "output: { max_result_tokens: 1 }\n",
    "output: { secrets: [{ name: a }] }\n",
    "output: { secrets: [{ name: a, regex: b }] }\n",
    "output: { tools: { test: { keep: all } } }\n",
    "output: { tools: { test: tail } }\n",
    "network_whitelist: [a.org]\n",
    "network_whitelist: { a: [https://a.org] }\n",
    "network_whitelist: { a: ['*.org'] }\n",
    "network_whitelist: { a: [A.org] }\n",
];

#[test]
fn what_the_reader_refuses_by_its_form_the_schema_refuses() {
    let all = BAD_RULES.map(with_rule).into_iter().chain(BAD_FILES.map(str::to_owned));
    for text in all {
        assert!(PolicyFile::parse("policy.yaml", &text).is_err(), "the reader takes {text}");
        assert!(!objections(&text).is_empty(), "the schema takes {text}");
    }
}

/// The keys that the reader names when it is given one that it does not know.
fn known_to_reader(text: &str) -> BTreeSet<String> {
    let told = PolicyFile::parse("policy.yaml", text).unwrap_err().to_string();
    let (_, list) = told.split_once("expected ").unwrap_or_else(|| panic!("{told}"));
    list.split(", ").map(|key| key.trim_matches('`').to_owned()).collect()
}

fn known_to_schema(pointer: &str) -> BTreeSet<String> {
    let schema = schema();
    let properties = schema.pointer(pointer).unwrap().as_object().unwrap();
    properties.keys().cloned().collect()
}

#[test]
fn reader_and_schema_know_the_same_keys() {
    let strange = "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq: 1";
    for (text, pointer) in [
        (format!("{strange}\n"), "/properties"),
        (format!("jurisdiction: {{ {strange} }}\n"), "/$defs/jurisdiction/properties"),
        (with_rule(strange), "/$defs/rule/properties"),
        (
            with_rule(&format!("name: a, action: allow, match: {{ {strange} }}")),
            "/$defs/condition/properties",
        ),
        (
            with_rule(&format!(
                "name: a, action: allow, match: {{ syscall: a }}, constraints: {{ {strange} }}"
            )),
            "/$defs/constraints/properties",
        ),
        (
            with_rule(&format!(
                "name: a, action: allow, match: {{ syscall: a }}, allows: [{{ {strange} }}]"
            )),
            "/$defs/examples/items/anyOf/1/properties",
        ),
        (format!("output: {{ {strange} }}\n"), "/properties/output/properties"),
        (
            format!("output: {{ secrets: [{{ {strange} }}] }}\n"),
            "/properties/output/properties/secrets/items/properties",
        ),
        (
            format!("output: {{ tools: {{ test: {{ {strange} }} }} }}\n"),
            "/properties/output/properties/tools/additionalProperties/properties",
        ),
        (format!("skills: {{ {strange} }}\n"), "/properties/skills/properties"),
        (
            format!("skills: {{ patterns: [{{ {strange} }}] }}\n"),
            "/properties/skills/properties/patterns/items/properties",
        ),
        (format!("tdd_exemptions: {{ {strange} }}\n"), "/properties/tdd_exemptions/properties"),
        (
            format!("tdd_exemptions: {{ documentation: {{ {strange} }} }}\n"),
            "/$defs/exemption/properties",
        ),
    ] {
        assert_eq!(known_to_reader(&text), known_to_schema(pointer), "{pointer}");
    }
    let states = schema();
    let states = states.pointer("/$defs/jurisdiction/properties/allowed_states/items/enum");
    let known: Vec<_> = KernelState::ALL.map(|state| Value::from(state.name())).into();
    assert_eq!(states, Some(&Value::Array(known)));
}
