//! `docs/policy.md`, held to what the crate does.

use fluffy_policy::{Action, BuiltIn, PolicyFile};

const DOCUMENT: &str = include_str!("../../../../docs/policy.md");

/// The blocks of code in a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    DOCUMENT.split(&opening).skip(1).map(|after| after.split("```").next().unwrap()).collect()
}

#[test]
fn every_policy_in_the_document_is_understood_without_warnings() {
    let policies = blocks("yaml");
    assert_eq!(policies.len(), 6);
    for text in policies {
        let policy = PolicyFile::parse("docs/policy.md", text).unwrap();
        assert_eq!(policy.warnings(), []);
    }
}

#[test]
fn the_document_names_every_built_in_rule_every_action_and_every_key() {
    let expected = "capabilities: [{ name: a, match: 1, action: allow }]";
    let told = PolicyFile::parse("p", expected).unwrap_err().to_string();
    let whole = PolicyFile::parse("p", "[]").unwrap_err().to_string();
    let keys = [&told, &whole].into_iter().flat_map(|text| text.split('`').skip(3).step_by(2));
    let keys = keys.map(str::to_owned);
    let names = BuiltIn::names().map(str::to_owned);
    let actions = Action::ALL.map(|action| action.name().to_owned());
    let all: Vec<_> = keys.chain(names).chain(actions).collect();
    assert!(all.len() >= 7 + 7 + 7 + 4, "{all:?}");
    for name in all {
        assert!(DOCUMENT.contains(&format!("`{name}`")), "{name}");
    }
}
