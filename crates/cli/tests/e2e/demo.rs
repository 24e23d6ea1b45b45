//! The README's first command.

use crate::program::{User, steady};

#[test]
fn the_demo_shows_a_denial_with_its_reason_exports_verifies_and_finds_a_forgery() {
    let user = User::new();
    let answer = user.run(&["demo"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    insta::assert_snapshot!(steady(&answer.out, &user), @r##"

    1. Requests go to the kernel; each gets a receipt
      An allowed request runs its tool
        ACCEPTED by rule `jurisdiction`: result "hello"
        entry 2, hash <hash>
      The model may add numbers, too
        ACCEPTED by rule `jurisdiction`: result 42
        entry 3, hash <hash>
      A stranger is refused, and told why
        REJECTED by rule `jurisdiction.allowed_actors`: Jurisdiction denied: Actor 'mallory' is not in allowed actors. Allowed instead: the actors alice, model
        entry 4, hash <hash>
      A tool that nobody allowed is refused
        REJECTED by rule `jurisdiction.allowed_tools`: Jurisdiction denied: Tool 'shell.run' is not in allowed tools; Tool 'shell.run' is not registered. Allowed instead: the tools add, echo
        entry 5, hash <hash>
      An intent that only looks like one is refused
        REJECTED by rule `ambiguity`: Ambiguity detected: Empty intent is ambiguous
        entry 6, hash <hash>

    2. The ledger is verified: every hash, the tree, the signed checkpoint
      verified: 8 entries

    3. Evidence is exported and verified with nothing but the file
      verified: <dir>/state/fluffy/demo/evidence.json

    4. In a copy of the evidence one name is changed: `mallory` becomes `alice`
      NOT VERIFIED: the forged copy
        entry 4: the entry's hash is <hash>, but its fields give <hash>
        the bundle was changed after it was sealed

    Look around:     <fluffy> audit verify --bundle <dir>/state/fluffy/demo/evidence.json
    Start yourself:  <fluffy> kernel submit --json < requests.jsonl
    "##);
}

#[test]
fn a_second_demo_goes_on_in_the_same_ledger() {
    let user = User::new();
    assert_eq!(user.run(&["demo"]).code, 0);
    let again = user.run(&["demo"]);
    assert_eq!(again.code, 0, "{}", again.err);
    assert!(again.out.contains("verified: 15 entries"), "{}", again.out);
}

#[test]
fn there_is_no_colour_where_nobody_looks() {
    let user = User::new();
    assert!(!user.run(&["demo"]).out.contains('\u{1b}'));
}
