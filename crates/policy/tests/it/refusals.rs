//! What a policy file may not be: every error has its file, line, column, cause and remedy.

use fluffy_policy::{MAX_POLICY_BYTES, PolicyFile};

fn refusal(text: &str) -> String {
    match PolicyFile::parse("policy.yaml", text) {
        Ok(_) => panic!("this was understood:\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// The refusal of a file whose only rule is this, with the rule on line 2 from column 5.
#[track_caller]
fn check_rule(rule: &str, expected: &str) {
    assert_eq!(refusal(&format!("capabilities:\n  - {rule}\n")), expected, "{rule}");
}

const NOT_HERE: &str = "anchors and aliases have no place here: write the value out";

#[test]
fn lesson_l17_a_misspelt_key_is_an_error_at_every_level() {
    check_rule(
        "{ name: a, match: { syscall: fs.read, path_globs: [src] }, action: allow }",
        "policy.yaml:2:43: unknown key `capabilities[0].match.path_globs`: did you mean \
         `path_glob`?",
    );
    check_rule(
        "{ name: a, match: { syscall: fs.read }, action: allow, reasons: x }",
        "policy.yaml:2:60: unknown key `capabilities[0].reasons`: did you mean `reason`?",
    );
    check_rule(
        "{ name: a, match: { syscall: fs.read }, action: deny, except: [{ path_globs: [x] }] }",
        "policy.yaml:2:70: unknown key `capabilities[0].except[0].path_globs`: did you mean \
         `path_glob`?",
    );
    check_rule(
        "{ name: a, match: { syscall: fs.read }, action: allow, constraints: { max_size: 1 } }",
        "policy.yaml:2:75: unknown key `capabilities[0].constraints.max_size`: did you mean \
         `max_file_size`?",
    );
    check_rule(
        "{ name: a, match: { syscall: fs.read }, action: allow, allows: [{ file: x }] }",
        "policy.yaml:2:71: unknown key `capabilities[0].allows[0].file`: expected `syscall`, `path`",
    );
    assert_eq!(
        refusal("capability: []"),
        "policy.yaml:1:1: unknown key `capability`: did you mean `capabilities`?"
    );
    assert_eq!(
        refusal("tdd_exemptions:\n  docs: { path_glob: [x] }\n"),
        "policy.yaml:2:3: unknown key `tdd_exemptions.docs`: expected `config_change`, \
         `type_refactor`, `documentation`, `asset_update`"
    );
    assert_eq!(
        refusal("tdd_exemptions:\n  documentation: { path_globs: [x] }\n"),
        "policy.yaml:2:20: unknown key `tdd_exemptions.documentation.path_globs`: did you mean \
         `path_glob`?"
    );
}

#[test]
fn an_unknown_action_is_an_error() {
    let told = "an action is allow, deny, require_review or pass";
    for (written, shown) in [
        ("permit", "`permit`"),
        ("Allow", "`Allow`"),
        ("yes", "`yes`"),
        ("on", "`on`"),
        ("'allow '", "`allow `"),
        ("''", "``"),
        ("require-review", "`require-review`"),
    ] {
        check_rule(
            &format!("{{ name: a, match: {{ syscall: fs.read }}, action: {written} }}"),
            &format!("policy.yaml:2:53: `capabilities[0].action` cannot be {shown}: {told}"),
        );
    }
    check_rule(
        "{ name: a, match: { syscall: fs.read }, action: true }",
        "policy.yaml:2:53: `capabilities[0].action` must be a text (quote it if it is a name), not \
         the boolean true",
    );
    check_rule(
        "{ name: a, match: { syscall: fs.read } }",
        "policy.yaml:2:5: `capabilities[0].action` is missing: allow, deny, require_review or pass",
    );
}

#[test]
fn a_wrong_unit_is_an_error() {
    for written in
        ["100kib", "10 KB", "-1", "1K", "1mb", "KiB", "1.5MiB", "'1_000'", "1e3KB", "１KB"]
    {
        let rule = format!(
            "{{ name: a, match: {{ syscall: fs.write }}, action: allow, constraints: {{ max_file_size: {written} }} }}"
        );
        let told = refusal(&format!("capabilities:\n  - {rule}\n"));
        assert!(
            told.starts_with("policy.yaml:2:91: `capabilities[0].constraints.max_file_size` "),
            "{written}: {told}"
        );
    }
    check_rule(
        "{ name: a, match: { syscall: fs.write }, action: allow, constraints: { max_file_size: 100kib } }",
        "policy.yaml:2:91: `capabilities[0].constraints.max_file_size` cannot be `100kib`: `100kib` \
         has an unknown unit (units, case-sensitive: KiB, MiB, GiB, KB, MB, GB, or none for bytes)",
    );
}

#[test]
fn a_rule_without_a_name_of_its_own_is_an_error() {
    let why = "a rule's name has 1 to 100 letters, digits, `-`, `_` or `.`";
    check_rule(
        "{ name: '', match: { syscall: fs.read }, action: allow }",
        &format!("policy.yaml:2:13: `capabilities[0].name` cannot be ``: {why}"),
    );
    check_rule(
        "{ name: 'a b', match: { syscall: fs.read }, action: allow }",
        &format!("policy.yaml:2:13: `capabilities[0].name` cannot be `a b`: {why}"),
    );
    check_rule(
        "{ name: builtin.ledger, match: { syscall: fs.read }, action: allow }",
        "policy.yaml:2:13: `capabilities[0].name` cannot be `builtin.ledger`: names that begin with \
         `builtin.` are the kernel's own",
    );
    check_rule(
        "{ match: { syscall: fs.read }, action: allow }",
        "policy.yaml:2:5: `capabilities[0].name` is missing: every rule has a name",
    );
    let rule = "  - { name: twice, match: { syscall: fs.read }, action: allow }\n";
    assert_eq!(
        refusal(&format!("capabilities:\n{rule}{rule}")),
        "policy.yaml:3:13: `capabilities[1].name` cannot be `twice`: the rule of line 2 has this \
         name; names tell rules apart"
    );
}

#[test]
fn a_constraint_on_what_lets_nothing_through_is_an_error() {
    for action in ["deny", "pass"] {
        let told = refusal(&format!(
            "capabilities:\n  - {{ name: a, match: {{ syscall: x }}, action: {action}, constraints: {{ max_file_size: 1 }} }}\n"
        ));
        assert!(
            told.ends_with("only a rule that lets something through can constrain it"),
            "{told}"
        );
    }
    check_rule(
        "{ name: a, match: { syscall: x }, action: allow, constraints: { require_sandbox: L1 } }",
        "policy.yaml:2:86: `capabilities[0].constraints.require_sandbox` cannot be `L1`: the only \
         sandbox that can be demanded is `L2`",
    );
    check_rule(
        "{ name: a, match: { syscall: x }, action: allow, constraints: { require_capability_token: yes } }",
        "policy.yaml:2:95: `capabilities[0].constraints.require_capability_token` must be `true` or \
         `false`, not `yes`",
    );
}

#[test]
fn a_condition_without_a_meaning_is_an_error() {
    check_rule(
        "{ name: a, match: { path_glob: ['**'] }, action: allow }",
        "policy.yaml:2:23: `capabilities[0].match.syscall` is missing: the calls it applies to; \
         `\"*\"` means every call",
    );
    check_rule(
        "{ name: a, match: { syscall: fs* }, action: allow }",
        "policy.yaml:2:34: `capabilities[0].match.syscall` cannot be `fs*`: a call is a name such \
         as `fs.write`, a group `fs.*`, or `*`",
    );
    check_rule(
        "{ name: a, match: { syscall: [] }, action: allow }",
        "policy.yaml:2:34: `capabilities[0].match.syscall` cannot be a list: a rule for no call \
         never applies",
    );
    for key in ["caller_tag", "actor", "session_mode", "workflow_state", "command"] {
        let rule = format!("{{ name: a, match: {{ syscall: x, {key}: [] }}, action: deny }}");
        let told = refusal(&format!("capabilities:\n  - {rule}\n"));
        assert!(
            told.ends_with("a condition that nothing meets makes the rule pointless"),
            "{told}"
        );
    }
    check_rule(
        "{ name: a, match: { syscall: x }, action: deny, except: [{}] }",
        "policy.yaml:2:62: `capabilities[0].except[0]` cannot be a mapping: an empty exception would \
         lift the rule altogether",
    );
    check_rule(
        "{ name: a, match: { syscall: x, actor: 'm*' }, action: deny }",
        "policy.yaml:2:44: `capabilities[0].match.actor` cannot be `m*`: names are compared exactly, \
         without `*` and white space around",
    );
    check_rule(
        "{ name: a, match: { syscall: x, session_mode: [strict, explor] }, action: deny }",
        "policy.yaml:2:60: `capabilities[0].match.session_mode[1]` cannot be `explor`: expected one of \
         strict, explore, debug",
    );
    check_rule(
        "{ name: a, match: { syscall: x, workflow_state: coding }, action: deny }",
        "policy.yaml:2:53: `capabilities[0].match.workflow_state` cannot be `coding`: expected one of \
         idle, planning, test_writing, code_writing, validating, reviewing, committing, exploring, \
         retroactive_testing",
    );
    check_rule(
        "{ name: a, match: { syscall: x, command: 'rm; ls' }, action: deny }",
        "policy.yaml:2:46: `capabilities[0].match.command` cannot be `rm; ls`: a command is its \
         first words, such as `cargo test`, without quotes or patterns",
    );
}

#[test]
fn a_glob_that_is_none_is_an_error_with_its_remedy() {
    for glob in ["'!src'", "'a\\\\b'", "'../x'", "'a//b'", "''", "'[a'", "'{a'", "'a**b'", "'+(a)'"]
    {
        let rule = format!(
            "{{ name: a, match: {{ syscall: x, path_glob: [ok, {glob}] }}, action: allow }}"
        );
        let told = refusal(&format!("capabilities:\n  - {rule}\n"));
        assert!(
            told.starts_with("policy.yaml:2:53: `capabilities[0].match.path_glob[1]` cannot be `"),
            "{glob}: {told}"
        );
    }
}

#[test]
fn yaml_beyond_the_subset_is_an_error() {
    let bomb = "a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\n";
    assert_eq!(refusal(bomb), format!("policy.yaml:1:7: {NOT_HERE}"));
    assert_eq!(
        refusal(
            "capabilities:\n  - &r { name: a, match: { syscall: x }, action: allow }\n  - *r\n"
        ),
        format!("policy.yaml:2:8: {NOT_HERE}")
    );
    assert_eq!(
        refusal("capabilities:\n  - name: a\n    name: b\n"),
        "policy.yaml:3:5: key `name` stands twice"
    );
    assert_eq!(
        refusal("capabilities: []\ncapabilities: []\n"),
        "policy.yaml:2:1: key `capabilities` stands twice"
    );
    for text in [
        "capabilities:\n\t- name: a\n",
        "capabilities:\n  - name: a\n\tmatch: x\n",
        "capabilities: [",
        "capabilities: ]",
        "capabilities: 'a",
        "- a\nb: c\n",
        "capabilities: !!python/object:os.system x\n",
    ] {
        let told = refusal(text);
        assert!(told.starts_with("policy.yaml:"), "{text:?}: {told}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_key() {
    let policy = PolicyFile::parse("p", "\u{feff}version: 1\n").unwrap();
    assert_eq!(policy.digest(), PolicyFile::parse("p", "version: 1\n").unwrap().digest());
}

#[test]
fn bytes_that_are_no_text_are_an_error_at_their_place() {
    let told =
        |bytes: &[u8]| PolicyFile::parse_bytes("policy.yaml", bytes).unwrap_err().to_string();
    assert_eq!(
        told(b"version: 1\n# \xc3\xa9\xff\n"),
        "policy.yaml:2:4: the file is not UTF-8 here"
    );
    assert_eq!(told(b"\xff\xfev\0"), "policy.yaml:1:1: the file is not UTF-8 here");
    assert_eq!(
        told(&vec![b'#'; 50_000_000]),
        format!(
            "policy.yaml:1:1: the file has 50000000 bytes, a policy has at most {MAX_POLICY_BYTES}"
        )
    );
    assert!(PolicyFile::parse_bytes("p", b"version: 1\n").is_ok());
    assert!(PolicyFile::parse_bytes("p", b"version: 1\0\n").is_err());
}

#[test]
fn an_example_that_does_not_hold_is_an_error_at_its_place() {
    check_rule(
        "{ name: a, match: { syscall: fs.read, path_glob: [src] }, action: allow, allows: [docs/a] }",
        "policy.yaml:2:87: the example says that `fs.read` on `docs/a` is allowed, but the rules say \
         deny: no rule allows actor 'example' to run tool 'fs.read' on `docs/a`",
    );
    check_rule(
        "{ name: a, match: { syscall: fs.read, path_glob: [src] }, action: allow, denies: [src] }",
        "policy.yaml:2:87: the example says that `fs.read` on `src` is denied, but the rules say \
         allow",
    );
    check_rule(
        "{ name: a, match: { syscall: fs.read }, action: allow, allows: ['../x'] }",
        "policy.yaml:2:69: path `../x` leads out of the project",
    );
    check_rule(
        "{ name: a, match: { syscall: 'fs.*' }, action: allow, allows: [x] }",
        "policy.yaml:2:68: `capabilities[0].allows[0].syscall` is missing: the rule names no single \
         call that the example could be of",
    );
}

#[test]
fn the_smaller_sections_are_read_as_strictly() {
    for (text, expected) in [
        (
            "extensions: [rules/a.ts]",
            "policy.yaml:1:14: `extensions[0]` cannot be `rules/a.ts`: an extension is a file such as \
             `.fluffy/rules/name.ts`: only what lies in `.fluffy/` is protected",
        ),
        (
            "network_whitelist: { a: [https://x.org] }",
            "policy.yaml:1:26: `network_whitelist.a[0]` cannot be `https://x.org`: a host is a name \
             in lower case such as `pypi.org`, or `*.` before one, without scheme, port and path",
        ),
        (
            "network_whitelist: { a: ['*.com'] }",
            "policy.yaml:1:26: `network_whitelist.a[0]` cannot be `*.com`: a host is a name \
             in lower case such as `pypi.org`, or `*.` before one, without scheme, port and path",
        ),
        (
            "tdd_exemptions: { documentation: { path_glob: [a], condition: always } }",
            "policy.yaml:1:63: `tdd_exemptions.documentation.condition` cannot be `always`: the only \
             condition is `type_only_change`",
        ),
    ] {
        assert_eq!(refusal(text), expected);
    }
}

/// A proposed policy is read before a person looks at it, so that its author may be the model.
#[test]
fn what_would_take_long_to_read_is_an_error() {
    let told = |rules: String| {
        let told = refusal(&format!("capabilities:\n{rules}"));
        told.split(": ").last().unwrap().to_owned()
    };
    let rule = |n: usize, call: &str, rest: &str| {
        format!("  - {{ name: r{n}, match: {{ syscall: {call}{rest} }}, action: allow }}\n")
    };
    assert_eq!(told("  - 0\n".repeat(10_001)), "a policy has at most 10000 rules");
    let names = |count: usize| {
        let names: Vec<_> = (0..count).map(|n| format!("x{n}")).collect();
        format!("[{}]", names.join(", "))
    };
    let calls = rule(0, &names(1_001), "");
    assert_eq!(told(calls), "rules name at most 1000 different calls");
    let repeated = rule(0, &format!("[{}]", vec!["x"; 100_001].join(",")), "");
    assert_eq!(told(repeated), "the calls that the file names are too many by now");
    let braces = format!(", path_glob: ['{}*']", "{a,b}".repeat(10));
    let globs = (0..100).map(|n| rule(n, "x", &braces)).collect();
    assert_eq!(told(globs), "the globs of the file are too many by now");
    let glob = format!(", path_glob: ['{}']", "a*".repeat(40));
    let wide = (1..100).map(|n| rule(n, "'*'", &glob)).collect::<String>();
    assert_eq!(
        told(rule(0, &names(900), "") + &wide),
        "too many globs in rules for many calls; name fewer calls, or use fewer globs"
    );
    let examples = vec!["a"; 10_001].join(", ");
    assert_eq!(
        told(format!(
            "  - {{ name: r, match: {{ syscall: x }}, action: allow, allows: [{examples}] }}\n"
        )),
        "a policy has at most 10000 examples"
    );
}
