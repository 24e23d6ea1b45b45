//! The cases that are shipped hold for the policy that is shipped.

use fluffy_policy::{BuiltIn, DEFAULT_POLICY, PolicyFile, Rule, read_cases};

#[test]
fn every_shipped_case_holds_for_the_shipped_policy() {
    let text = include_str!("../../../../examples/policy/policy-tests.yaml");
    let cases = read_cases("policy-tests.yaml", text).unwrap();
    let policy = PolicyFile::parse("policy.yaml", DEFAULT_POLICY).unwrap();
    let mut rules: Vec<Box<dyn Rule>> = policy.rules();
    rules.push(Box::new(BuiltIn::new([])));
    assert!(cases.len() >= 15);
    for case in cases {
        assert_eq!(case.failure(rules.iter().map(|rule| &**rule)), None, "{}", case.name);
    }
}
