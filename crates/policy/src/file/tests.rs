//! Tests of policy files: what is understood, and that nothing else is.

use fluffy_base::KernelRequest;
use proptest::prelude::*;

use super::*;
use crate::Facts;

fn policy(text: &str) -> PolicyFile {
    PolicyFile::parse("policy.yaml", text).unwrap()
}

fn refusal(text: &str) -> String {
    PolicyFile::parse("policy.yaml", text).unwrap_err().to_string()
}

/// The refusal of a jurisdiction with one line, without the place, which is always the same line.
#[track_caller]
fn check_line(line: &str, expected: &str) {
    let told = refusal(&format!("jurisdiction:\n  {line}\n"));
    let told = told.strip_prefix("policy.yaml:2:").unwrap_or_else(|| panic!("{told}"));
    assert_eq!(told, expected);
}

#[test]
fn the_shipped_policy_hears_user_and_model() {
    let shipped = policy(DEFAULT_POLICY);
    let expected = Jurisdiction {
        allowed_actors: Names::only(["model", "user"]).unwrap(),
        allowed_tools: Names::any(),
        ..Jurisdiction::default()
    };
    assert_eq!(shipped.jurisdiction(), &expected);
}

#[test]
fn every_key_is_read() {
    let text = "\
version: 1
jurisdiction:
  allowed_actors: ['*']
  allowed_tools: [fs.read]
  allowed_states: [IDLE, BOOTING]
  required_fields: [evidence, params.constraints]
  max_param_bytes: 64KiB
  max_intent_length: 100
";
    let expected = Jurisdiction {
        allowed_actors: Names::any(),
        allowed_tools: Names::only(["fs.read"]).unwrap(),
        allowed_states: vec![KernelState::Idle, KernelState::Booting],
        required_fields: [RequiredField::Evidence, RequiredField::Param("constraints".to_owned())]
            .into(),
        max_param_bytes: 65_536,
        max_intent_length: Some(100),
    };
    assert_eq!(policy(text).jurisdiction(), &expected);
}

#[test]
fn a_policy_that_says_nothing_allows_nothing() {
    for text in ["{}", "version: 1", "jurisdiction: {}"] {
        assert_eq!(policy(text).jurisdiction(), &Jurisdiction::default(), "{text}");
    }
    assert_eq!(
        refusal(""),
        "policy.yaml:1:1: `policy` must be a mapping with the keys `version`, `jurisdiction`, \
         `capabilities`, `extensions`, `tdd_exemptions`, `network_whitelist`, `output`, `skills`, `dependencies`, not empty"
    );
}

#[test]
fn a_size_has_a_unit_or_is_bytes() {
    for (written, bytes) in [("1MiB", 1 << 20), ("'2KB'", 2000), ("77", 77), ("'77'", 77), ("0", 0)]
    {
        let text = format!("jurisdiction: {{max_param_bytes: {written}}}");
        assert_eq!(policy(&text).jurisdiction().max_param_bytes, bytes, "{written}");
    }
}

#[test]
fn a_number_has_one_spelling() {
    for written in ["0x10", "1_000", "+5", "0o17", "0b11", "010", "1e3"] {
        for key in ["max_param_bytes", "max_intent_length"] {
            let told = refusal(&format!("jurisdiction: {{{key}: {written}}}"));
            assert!(told.starts_with("policy.yaml:1:"), "{told}");
        }
    }
    check_line("max_param_bytes: 0x10", "20: write 16 instead of `0x10`: numbers are decimal");
}

#[test]
fn a_name_cannot_hide_in_an_encoding() {
    let hidden = policy("jurisdiction: {allowed_tools: [!!binary ZWNobw==]}");
    assert!(!hidden.jurisdiction().allowed_tools.contains("echo"));
}

#[test]
fn lesson_l17_a_misspelt_key_is_an_error() {
    assert_eq!(
        refusal("jurisdiction:\n  allowed_actors: [a]\n  allowed_tool: [b]\n"),
        "policy.yaml:3:3: unknown key `jurisdiction.allowed_tool`: did you mean `allowed_tools`?"
    );
    assert_eq!(
        refusal("juristiction: {}"),
        "policy.yaml:1:1: unknown key `juristiction`: did you mean `jurisdiction`?"
    );
    assert_eq!(
        refusal("version: 1\nconstraints: {}\n"),
        "policy.yaml:2:1: unknown key `constraints`: expected `version`, `jurisdiction`, `capabilities`, `extensions`, `tdd_exemptions`, `network_whitelist`, `output`, `skills`, `dependencies`"
    );
}

#[test]
fn lesson_l17_a_key_that_is_no_word_is_an_error() {
    check_line("1: x", "3: `jurisdiction.?` must be a key in words, not the number 1");
    check_line("~: x", "3: `jurisdiction.?` must be a key in words, not empty");
    check_line("[a]: x", "3: `jurisdiction.?` must be a key in words, not a list");
}

#[test]
fn a_key_that_stands_twice_is_an_error() {
    assert_eq!(
        refusal("jurisdiction:\n  allowed_tools: [a]\n  allowed_tools: [b]\n"),
        "policy.yaml:3:3: key `allowed_tools` stands twice"
    );
}

#[test]
fn anchors_aliases_merges_tags_and_second_documents_are_errors() {
    let anchors = "anchors and aliases have no place here: write the value out";
    check_line("allowed_tools: &a [x]", &format!("21: {anchors}"));
    check_line("allowed_tools: *a", &format!("18: {anchors}"));
    check_line("<<: {allowed_tools: [x]}", "3: merge keys (`<<`) have no place here");
    let told = refusal("jurisdiction:\n  allowed_tools: !secret [x]\n");
    assert!(told.starts_with("policy.yaml:2:"), "{told}");
    let told = refusal("version: 1\n---\nversion: 1\n");
    assert!(told.starts_with("policy.yaml:2:1: a file is one document"), "{told}");
}

#[test]
fn words_of_yaml_1_1_are_texts_and_not_booleans() {
    let text = "jurisdiction: {allowed_actors: [yes, no, on, off, y, n]}";
    let names = Names::only(["yes", "no", "on", "off", "y", "n"]).unwrap();
    assert_eq!(policy(text).jurisdiction().allowed_actors, names);
}

#[test]
fn wrong_types_name_the_field_and_what_was_expected() {
    let list = "must be a list of texts, such as `[user, model]`, not";
    check_line(
        "allowed_actors: alice",
        &format!("19: `jurisdiction.allowed_actors` {list} `alice`"),
    );
    check_line("allowed_actors:", &format!("17: `jurisdiction.allowed_actors` {list} empty"));
    check_line(
        "allowed_tools: [echo, true]",
        "25: `jurisdiction.allowed_tools[1]` must be a text (quote it if it is a name), not the \
         boolean true",
    );
    check_line(
        "allowed_actors: [7]",
        "20: `jurisdiction.allowed_actors[0]` must be a text (quote it if it is a name), not the \
         number 7",
    );
    check_line(
        "max_intent_length: many",
        "22: `jurisdiction.max_intent_length` must be a number of characters, not `many`",
    );
    check_line(
        "max_param_bytes: 1.5",
        "20: `jurisdiction.max_param_bytes` must be a size, such as `64KiB` or a number of bytes, \
         not the number 1.5",
    );
    assert_eq!(
        refusal("version: '1'"),
        "policy.yaml:1:10: `version` must be the number 1, not `1`"
    );
    assert_eq!(
        refusal("version: 1\njurisdiction: []\n"),
        "policy.yaml:2:15: `jurisdiction` must be a mapping with the keys `allowed_actors`, \
         `allowed_tools`, `allowed_states`, `required_fields`, `max_param_bytes`, \
         `max_intent_length`, not a list"
    );
}

#[test]
fn values_without_a_meaning_are_errors_at_their_place() {
    assert_eq!(
        refusal("version: 2"),
        "policy.yaml:1:10: `version` cannot be the number 2: this program knows version 1 only"
    );
    check_line(
        "allowed_states: [IDLE, idle]",
        "26: `jurisdiction.allowed_states[1]` cannot be `idle`: a state is one of BOOTING, IDLE, \
         VALIDATING, ARBITRATING, EXECUTING, AUDITING, HALTED",
    );
    check_line(
        "required_fields: [params.]",
        "21: `jurisdiction.required_fields[0]` cannot be `params.`: not a field of a request: \
         expected request_id, ts_ms, actor, intent, tool_call, params, evidence or params.NAME",
    );
    check_line(
        "allowed_tools: [echo, fs.*]",
        "25: `jurisdiction.allowed_tools[1]` cannot be `fs.*`: names are compared exactly: `*` is \
         not a pattern, only a list of `*` alone means any",
    );
    check_line(
        "allowed_tools: ['*', echo]",
        "18: `jurisdiction.allowed_tools` cannot be a list: `*` means any name and stands alone in \
         its list",
    );
    for line in ["max_param_bytes: 10kb", "max_param_bytes: -1", "max_param_bytes: 1 MiB"] {
        let told = refusal(&format!("jurisdiction:\n  {line}\n"));
        assert!(
            told.starts_with("policy.yaml:2:20: `jurisdiction.max_param_bytes` cannot be"),
            "{told}"
        );
    }
    for line in ["max_intent_length: 0", "max_intent_length: -3"] {
        let told = refusal(&format!("jurisdiction:\n  {line}\n"));
        assert!(told.ends_with("it is a number of characters, from 1"), "{told}");
    }
}

#[test]
fn a_file_over_eight_mebibytes_is_refused_before_it_is_read() {
    let text = format!("version: 1\n#{}", "x".repeat(MAX_POLICY_BYTES));
    assert_eq!(
        refusal(&text),
        "policy.yaml:1:1: the file has 8388620 bytes, a policy has at most 8388608"
    );
    let many_comments = format!("{}version: 1\n", "# x\n".repeat(1000));
    assert!(PolicyFile::parse("p", &many_comments).is_ok());
}

#[test]
fn deep_nesting_is_refused_without_recursion() {
    for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", ""), ("[{a: ", "")] {
        for levels in [20, 100_000] {
            let text = open.repeat(levels) + &close.repeat(levels);
            assert!(PolicyFile::parse("p", &text).is_err(), "{open} {levels}");
        }
    }
    let text = "[".repeat(17) + &"]".repeat(17);
    assert_eq!(refusal(&text), "policy.yaml:1:17: nested deeper than 16 levels");
}

#[test]
fn a_hostile_file_cannot_forge_a_message() {
    let long = "x".repeat(500);
    let error =
        PolicyFile::parse("a\nb", &format!("? \"\\e[2J{long}\"\n: 1\n")).unwrap_err().to_string();
    assert!(error.starts_with("a\\nb:1:3: unknown key `\\u{1b}[2Jxxx"), "{error}");
    assert!(error.chars().count() < 270, "{error}");
}

#[test]
fn the_digest_is_of_the_meaning() {
    let a = policy("jurisdiction: {allowed_actors: [b, a, a], allowed_tools: ['*']}");
    let b = policy(
        "# the same\njurisdiction:\n  max_param_bytes: 1MiB\n  allowed_tools:\n    - \"*\"\n  \
         allowed_actors: [a, 'b']\n  allowed_states: [IDLE, IDLE]\nversion: 1\n",
    );
    assert_eq!(a.digest(), b.digest());
    let spelt = |actor: &str| policy(&format!("jurisdiction: {{allowed_actors: [{actor}]}}"));
    assert_eq!(spelt("be\u{301}a").digest(), spelt("b\u{e9}a").digest());
    let different = [
        "{}",
        "jurisdiction: {allowed_actors: [a]}",
        "jurisdiction: {allowed_actors: ['*']}",
        "jurisdiction: {allowed_tools: [a]}",
        "jurisdiction: {allowed_states: []}",
        "jurisdiction: {required_fields: [actor]}",
        "jurisdiction: {required_fields: [params.actor]}",
        "jurisdiction: {max_param_bytes: 1}",
        "jurisdiction: {max_param_bytes: 18446744073709551615}",
        "jurisdiction: {max_intent_length: 1}",
    ];
    let digests: BTreeSet<_> = different.iter().map(|text| policy(text).digest()).collect();
    assert_eq!(digests.len(), different.len());
}

#[test]
fn a_loaded_jurisdiction_judges() {
    let shipped = policy(DEFAULT_POLICY);
    let request = KernelRequest::call("r", "user", "say hi", "echo", Json::empty_object());
    let facts = Facts::new(&request, KernelState::Idle);
    assert_eq!(shipped.jurisdiction().judge(&facts).to_string(), "allow");
}

fn mutated() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        ":",
        "-",
        "? ",
        "[",
        "]",
        "{",
        "}",
        "&a ",
        "*a",
        "!!binary ",
        "!x ",
        "|\n",
        ">\n",
        "\"",
        "'",
        "#",
        "\t",
        "\n",
        "\n---\n",
        "%YAML 1.1\n",
        "<<: ",
        "~",
        "\u{feff}",
        "\u{85}",
        "\0",
        "999999999999999999999999999999",
        "0x10",
        ".nan",
        "é",
    ]);
    let edit = (any::<prop::sample::Index>(), 0usize..6, piece);
    prop::collection::vec(edit, 1..6).prop_map(|edits| {
        let mut text: Vec<char> = DEFAULT_POLICY.chars().collect();
        for (at, removed, piece) in edits {
            let at = at.index(text.len() + 1);
            let end = text.len().min(at + removed);
            text.splice(at..end, piece.chars());
        }
        text.into_iter().collect()
    })
}

proptest! {
    #[test]
    fn a_mutated_policy_never_panics_and_its_error_has_a_place(text in mutated()) {
        if let Err(error) = PolicyFile::parse("p", &text) {
            prop_assert!(error.line >= 1 && error.column >= 1, "{error}");
            prop_assert!(!error.to_string().chars().any(char::is_control), "{error}");
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[\\PC\\n\\t:\\-\\[\\]{}&*!|>'\"#%@`~? ]{0,80}") {
        let _ = PolicyFile::parse("p", &text);
    }

    #[test]
    fn a_misspelt_key_never_loads(
        key in prop::sample::select(vec!["allowed_actors", "allowed_tools", "required_fields"]),
        at in any::<prop::sample::Index>(),
        letter in "[a-z_]",
    ) {
        let mut misspelt = key.to_owned();
        misspelt.insert_str(at.index(key.len() + 1), &letter);
        let error = refusal(&format!("jurisdiction: {{{misspelt}: []}}"));
        prop_assert!(error.contains(&format!("did you mean `{key}`?")), "{error}");
    }
}
