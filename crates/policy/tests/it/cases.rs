//! The 26 normative cases of the policy engine, each under its number, and our own from 27 on.

use std::num::{NonZeroU32, NonZeroU64};

use fluffy_base::{Digest, ProjectPath, SeededIds, Span};
use fluffy_policy::{
    BuiltIn, Checked, ContainerId, DEFAULT_TOKEN_TTL, Glob, Grant, Layer, Part, Peer, Rule,
    TokenBook, TokenCall, TokenId, TokenRefusal, TokenScope, Verdict, decide,
};

use crate::judging::{
    Says, allows, call, check, decided, denies, explained, named, panics, policy, rules, word,
};

const WRITE: &str = "fs.write";

// --- basic semantics -------------------------------------------------------------------------------

#[test]
fn case_01_no_rules_match_is_a_denial() {
    let decided =
        decided(&rules(&["allow: { syscall: fs.read }"]), &[], &call(WRITE, &["src/a.rs"]));
    assert_eq!(
        decided.verdict.to_string(),
        "deny: no rule allows actor 'model' to run tool 'fs.write' on `src/a.rs`"
    );
    assert_eq!(decided.verdict.source().unwrap().layer(), Layer::Silence);
}

#[test]
fn case_02_only_pass_rules_is_a_denial() {
    let passes = ["pass: { syscall: fs.write }", "pass: { syscall: '*' }"];
    check(&passes, &call(WRITE, &["a"]), "deny");
}

#[test]
fn case_03_deny_beats_allow() {
    let lines = ["allow: { syscall: fs.write }", "deny: { syscall: fs.write }"];
    check(&lines, &call(WRITE, &["a"]), "deny");
    check(&[lines[1], lines[0]], &call(WRITE, &["a"]), "deny");
}

#[test]
fn case_04_review_beats_allow() {
    let lines = ["allow: { syscall: fs.write }", "require_review: { syscall: fs.write }"];
    check(&lines, &call(WRITE, &["a"]), "review");
    check(&[lines[1], lines[0]], &call(WRITE, &["a"]), "review");
}

#[test]
fn case_05_a_denial_of_an_extension_beats_an_allow_of_a_built_in_rule() {
    let (built_in, extension) =
        (Says::new(Layer::BuiltIn, allows), Says::new(Layer::Extension, denies));
    let verdict = decided(&rules(&[]), &[&built_in, &extension], &call(WRITE, &["a"])).verdict;
    assert_eq!(verdict.to_string(), "deny: it says no");
    assert_eq!((built_in.times(), extension.times()), (1, 1), "an allow does not end the asking");
}

#[test]
fn case_06_a_review_that_excepts_the_call_passes() {
    let review = "require_review: { syscall: fs.write, path_glob: ['**'] };\
                  except: [{ path_glob: ['tests/**'] }]";
    // Passing is silence, so an allow beside it shows that the review was lifted.
    check(&[review], &call(WRITE, &["tests/a.rs"]), "deny");
    check(&[review, "allow: { syscall: fs.write }"], &call(WRITE, &["tests/a.rs"]), "allow");
}

// --- tokens ------------------------------------------------------------------------------------------

const NOW: u64 = 1_794_780_160_000;

fn peer(container: &str) -> Peer {
    Peer { container: ContainerId::parse(container).unwrap(), pid: NonZeroU32::new(7).unwrap() }
}

/// A book with a token for two writes below `src`, under the policy `digest`.
fn book(digest: Digest) -> (TokenBook, TokenId) {
    let id = TokenId::fresh(&SeededIds::new(1)).unwrap();
    let scope = TokenScope {
        syscall: WRITE.to_owned(),
        paths: vec![Glob::parse("{src,.fluffy}/**").unwrap()],
        max_ops: NonZeroU32::new(2).unwrap(),
        ttl: DEFAULT_TOKEN_TTL,
        max_file_size: None,
    };
    let mut book = TokenBook::default();
    book.issue(NOW, Grant { policy: digest, peer: peer("box"), scope, id }).unwrap();
    (book, id)
}

struct Presents<'a> {
    book: &'a mut TokenBook,
    token: TokenId,
    digest: Digest,
}

impl Presents<'_> {
    /// Presents the token for a write to `src/a.rs`.
    fn at(&mut self, now: u64, container: &str, nonce: u64) -> Result<Checked, TokenRefusal> {
        let paths = [ProjectPath::parse("src/a.rs").unwrap()];
        let call = TokenCall {
            token: self.token,
            nonce: NonZeroU64::new(nonce).unwrap(),
            syscall: WRITE,
            paths: &paths,
            file_size: None,
        };
        self.book.check(now, &self.digest, &peer(container), &call)
    }
}

/// What a policy that denies all writes decides on a write whose token was checked so: the kernel
/// puts a valid token into the facts and a refused one not.
fn decided_after(checked: &Result<Checked, TokenRefusal>) -> &'static str {
    let denying = rules(&["deny: { syscall: fs.write }"]);
    let plain = call(WRITE, &["src/a.rs"]);
    let call = if checked.is_ok() { plain.with_token() } else { plain };
    word(&denying, &call)
}

#[test]
fn case_07_a_token_does_not_lift_a_built_in_denial() {
    for path in [".fluffy/policy.yaml", ".git/config", ".Fluffy/policy.yaml"] {
        let verdict = decided(&rules(&[]), &[], &call(WRITE, &[path]).with_token()).verdict;
        assert_eq!(verdict.strength().name(), "deny", "{path}");
        assert_eq!(verdict.source().unwrap().layer(), Layer::BuiltIn);
    }
}

#[test]
fn case_08_a_token_spares_the_rules_of_file_and_extensions() {
    let denying = rules(&["deny: { syscall: fs.write }"]);
    let extension = Says::new(Layer::Extension, denies);
    let call = call(WRITE, &["src/a.rs"]).with_token();
    let verdict = decided(&denying, &[&extension], &call).verdict;
    assert_eq!(verdict.source().unwrap().layer(), Layer::Token);
    assert_eq!(verdict.strength().name(), "allow");
    assert_eq!(extension.times(), 0);
}

#[test]
fn case_09_an_expired_token_falls_through_to_the_rules() {
    let digest = Digest::of(b"p");
    let (mut book, token) = book(digest);
    let mut presents = Presents { book: &mut book, token, digest };
    let late = presents.at(NOW + DEFAULT_TOKEN_TTL.ms() + 1, "box", 1);
    assert_eq!(late, Err(TokenRefusal::Expired));
    assert_eq!(decided_after(&late), "deny");
}

// --- joining -----------------------------------------------------------------------------------------

#[test]
fn case_10_the_reasons_of_all_reviews_are_told() {
    let lines = [
        "require_review: { syscall: fs.write };reason: first",
        "require_review: { syscall: fs.* };reason: second",
        "require_review: { syscall: fs.read };reason: not this one",
    ];
    let verdict = decided(&rules(&lines), &[], &call(WRITE, &["a"])).verdict;
    assert_eq!(verdict.strength().name(), "review");
    assert_eq!(named(&verdict), ["r0", "r1"]);
    assert!(verdict.to_string().starts_with("review: first (rule `r0`, policy.yaml:"), "{verdict}");
}

#[test]
fn case_11_an_extension_is_not_asked_after_a_denial() {
    let extension = Says::new(Layer::Extension, allows);
    let denying = rules(&["deny: { syscall: fs.write }"]);
    let verdict = decided(&denying, &[&extension], &call(WRITE, &["a"])).verdict;
    assert_eq!(named(&verdict), ["r0"]);
    assert_eq!(extension.times(), 0);
}

#[test]
fn case_12_a_rule_whose_glob_does_not_match_does_not_apply() {
    let lines = ["allow: { syscall: fs.write, path_glob: ['src/**'] }"];
    check(&lines, &call(WRITE, &["docs/a.md"]), "deny");
    check(&lines, &call(WRITE, &["src/a.rs"]), "allow");
}

#[test]
fn case_13_a_review_whose_exception_does_not_match_stays() {
    let review = "require_review: { syscall: fs.write };except: [{ path_glob: ['tests/**'] }]";
    check(&[review], &call(WRITE, &["src/a.rs"]), "review");
    check(&[review, "allow: { syscall: '*' }"], &call(WRITE, &["src/a.rs"]), "review");
}

const TWO_EXCEPTIONS: [&str; 2] = [
    "require_review: { syscall: fs.write };\
     except: [{ path_glob: ['tests/**'] }, { caller_tag: core_plugin, path_glob: ['docs/**'] }]",
    "allow: { syscall: fs.write }",
];

#[test]
fn case_14_one_of_several_exceptions_is_enough() {
    check(&TWO_EXCEPTIONS, &call(WRITE, &["tests/a.rs"]), "allow");
    check(&TWO_EXCEPTIONS, &call(WRITE, &["docs/a.md"]).tagged("core_plugin"), "allow");
}

#[test]
fn case_15_without_a_matching_exception_the_review_stays() {
    check(&TWO_EXCEPTIONS, &call(WRITE, &["src/a.rs"]), "review");
    check(&TWO_EXCEPTIONS, &call(WRITE, &["docs/a.md"]), "review");
    check(&TWO_EXCEPTIONS, &call(WRITE, &["src/a.rs"]).tagged("core_plugin"), "review");
}

#[test]
fn case_16_several_allows_are_an_allow() {
    let lines = ["allow: { syscall: fs.write }", "allow: { syscall: '*', path_glob: ['**'] }"];
    let verdict = decided(&rules(&lines), &[], &call(WRITE, &["a"])).verdict;
    assert_eq!((verdict.strength().name(), named(&verdict)), ("allow", vec!["r0".to_owned()]));
}

#[test]
fn case_17_allows_of_two_layers_are_an_allow() {
    let extension = Says::new(Layer::Extension, allows);
    let yaml = rules(&["allow: { syscall: fs.write }"]);
    let verdict = decided(&yaml, &[&extension], &call(WRITE, &["a"])).verdict;
    assert_eq!((verdict.strength().name(), extension.times()), ("allow", 1));
}

// --- defensive boundaries ----------------------------------------------------------------------------

#[test]
fn case_18_without_built_in_rules_the_others_still_decide() {
    let own = rules(&["allow: { syscall: fs.write, path_glob: ['src/**'] }"]).rules();
    let decide =
        |path: &str| decide(own.iter().map(|rule| &**rule), &call(WRITE, &[path]).facts()).verdict;
    assert_eq!(decide("src/a.rs").strength().name(), "allow");
    assert_eq!(decide("docs/a.md").strength().name(), "deny");
}

#[test]
fn case_19_without_rules_in_the_file_everything_is_denied() {
    for tool in ["fs.read", WRITE, "echo", "git.status"] {
        check(&[], &call(tool, &["a"]), "deny");
    }
    let update = decided(&rules(&[]), &[], &call("policy.update", &[])).verdict;
    assert_eq!(named(&update), ["builtin.policy-update"], "built-in rules are active");
}

/// The crash of the process that runs extensions is tried where that process is; here it is what the
/// judge makes of a rule that gives no answer.
#[test]
fn case_20_an_extension_that_crashes_denies() {
    let extension = Says::new(Layer::Extension, panics);
    let yaml = rules(&["allow: { syscall: fs.write }"]);
    let verdict = decided(&yaml, &[&extension], &call(WRITE, &["a"])).verdict;
    assert_eq!(verdict.to_string(), "deny: rule `says` failed to evaluate");
}

#[test]
fn case_54_a_call_of_two_names_is_one_call_to_rules_and_requests() {
    for ruled in ["shell.run", "shell.exec"] {
        let deny = format!("deny: {{ syscall: {ruled}, command: rm }}");
        for asked in ["shell.run", "shell.exec"] {
            check(
                &[&deny, "allow: { syscall: '*' }"],
                &call(asked, &["."]).command(&["rm"]),
                "deny",
            );
        }
    }
}

#[test]
fn lesson_l22_an_extension_without_an_answer_does_not_abstain() {
    let allowing = Says::new(Layer::Extension, allows);
    let crashing = Says::new(Layer::Extension, panics);
    let verdict = decided(&rules(&[]), &[&allowing, &crashing], &call(WRITE, &["a"])).verdict;
    assert_eq!(verdict.strength().name(), "deny");
}

#[test]
fn case_21_a_token_without_operations_left_falls_through() {
    let digest = Digest::of(b"p");
    let (mut book, token) = book(digest);
    for nonce in [1, 2] {
        let checked = Presents { book: &mut book, token, digest }.at(NOW, "box", nonce).unwrap();
        book.spend(checked).unwrap();
    }
    let third = Presents { book: &mut book, token, digest }.at(NOW, "box", 3);
    assert_eq!(third, Err(TokenRefusal::UsedUp));
    assert_eq!(decided_after(&third), "deny");
}

#[test]
fn case_22_the_time_of_the_check_holds_for_the_whole_evaluation() {
    let digest = Digest::of(b"p");
    let (mut book, token) = book(digest);
    let last = NOW + DEFAULT_TOKEN_TTL.ms() - 1;
    let checked = Presents { book: &mut book, token, digest }.at(last, "box", 1);
    assert_eq!(decided_after(&checked), "allow");
    // While the rules were asked the time ran out; what was checked is spent all the same.
    book.spend(checked.unwrap()).unwrap();
    let at_the_end = Presents { book: &mut book, token, digest }.at(last + 1, "box", 2);
    assert_eq!(at_the_end, Err(TokenRefusal::Expired));
}

#[test]
fn case_23_a_token_of_another_container_is_invalid() {
    let digest = Digest::of(b"p");
    let (mut book, token) = book(digest);
    let other = Presents { book: &mut book, token, digest }.at(NOW, "other", 1);
    assert_eq!(other, Err(TokenRefusal::OtherContainer));
    assert_eq!(decided_after(&other), "deny");
}

#[test]
fn case_24_a_call_that_no_rule_knows_is_denied() {
    let lines = ["allow: { syscall: [fs.*, search.grep] }"];
    for tool in ["net.open", "fs", "fsx.read", "search", "", "FS.read"] {
        check(&lines, &call(tool, &["a"]), "deny");
    }
    check(&["allow: { syscall: fs.read }"], &call("fs.read\u{200b}", &["a"]), "deny");
}

#[test]
fn case_25_an_empty_path_glob_matches_nothing_and_is_warned_of() {
    let lines = ["allow: { syscall: fs.write, path_glob: [] }"];
    for paths in [&["a"][..], &["."], &[]] {
        check(&lines, &call(WRITE, paths), "deny");
    }
    let told = rules(&lines).warnings().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        told,
        [
            "policy.yaml:3:5: rule `r0`: an empty `path_glob` matches no path: the rule never applies"
        ]
    );
}

#[test]
fn case_26_a_rule_that_excepts_what_it_matches_never_applies_and_is_warned_of() {
    let line = "deny: { syscall: fs.write, path_glob: ['src/**'] };\
                except: [{ syscall: fs.write, path_glob: ['src/**'] }]";
    check(&[line, "allow: { syscall: fs.write }"], &call(WRITE, &["src/a.rs"]), "allow");
    let told = rules(&[line]).warnings().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        told,
        ["policy.yaml:3:5: rule `r0`: `except` covers all of `match`: the rule never applies"]
    );
}

// --- our own -----------------------------------------------------------------------------------------

#[test]
fn case_27_a_token_of_another_policy_is_invalid() {
    let (mut book, token) = book(rules(&["allow: { syscall: fs.write }"]).digest());
    let digest = rules(&["deny: { syscall: fs.write }"]).digest();
    let other = Presents { book: &mut book, token, digest }.at(NOW, "box", 1);
    assert_eq!(other, Err(TokenRefusal::OtherPolicy));
    assert_eq!(decided_after(&other), "deny");
}

#[test]
fn case_28_a_replayed_nonce_falls_through() {
    let digest = Digest::of(b"p");
    let (mut book, token) = book(digest);
    let checked = Presents { book: &mut book, token, digest }.at(NOW, "box", 5).unwrap();
    book.spend(checked).unwrap();
    let again = Presents { book: &mut book, token, digest }.at(NOW, "box", 5);
    assert!(matches!(again, Err(TokenRefusal::Replayed(_))));
    assert_eq!(decided_after(&again), "deny");
}

#[test]
fn case_29_a_rule_that_fails_denies_beside_an_allow_in_every_layer() {
    for layer in Layer::ALL {
        let failing = Says::new(layer, panics);
        let yaml = rules(&["allow: { syscall: fs.write }"]);
        let verdict = decided(&yaml, &[&failing], &call(WRITE, &["a"])).verdict;
        assert_eq!(verdict.to_string(), "deny: rule `says` failed to evaluate", "{layer}");
    }
}

struct FailsToAdvise;

impl Rule for FailsToAdvise {
    fn name(&self) -> &str {
        "fails-to-advise"
    }

    fn layer(&self) -> Layer {
        Layer::Workflow
    }

    fn judge(&self, _facts: &fluffy_policy::Facts<'_>) -> Verdict {
        Verdict::Pass
    }

    fn alternative(&self, _facts: &fluffy_policy::Facts<'_>) -> Option<std::sync::Arc<str>> {
        panic!("on purpose")
    }
}

#[test]
fn case_30_a_rule_that_fails_to_advise_leaves_the_denial_as_it_is() {
    let decided = decided(&rules(&[]), &[&FailsToAdvise], &call(WRITE, &["a"]));
    assert_eq!(decided.verdict.strength().name(), "deny");
}

#[test]
fn case_31_dotfiles_are_matched_by_stars() {
    let deep = ["deny: { syscall: fs.read, path_glob: ['config/**'] }", "allow: { syscall: '*' }"];
    check(&deep, &call("fs.read", &["config/.env"]), "deny");
    check(&deep, &call("fs.read", &["config/a/.ssh/id"]), "deny");
    let flat = ["deny: { syscall: fs.read, path_glob: ['/*'] }", "allow: { syscall: '*' }"];
    check(&flat, &call("fs.read", &[".env"]), "deny");
    check(&flat, &call("fs.read", &["a/.env"]), "allow");
}

#[test]
fn case_32_of_two_paths_the_denied_one_decides() {
    let lines = [
        "allow: { syscall: fs.read, path_glob: ['**'] }",
        "deny: { syscall: fs.read, path_glob: [.env] }",
    ];
    check(&lines, &call("fs.read", &["a", ".env"]), "deny");
    check(&lines, &call("fs.read", &[".env", "a"]), "deny");
    check(&lines, &call("fs.read", &["a", "b"]), "allow");
}

#[test]
fn case_33_a_path_that_nobody_allows_is_not_carried_by_another() {
    let lines = [
        "allow: { syscall: fs.read, path_glob: ['src/**'] }",
        "require_review: { syscall: fs.read, path_glob: ['docs/**'] }",
    ];
    check(&lines, &call("fs.read", &["src/a", "other/b"]), "deny");
    check(&lines, &call("fs.read", &["docs/a", "other/b"]), "deny");
    check(&lines, &call("fs.read", &["src/a", "docs/b"]), "review");
    check(&lines, &call("fs.read", &["src/a", "."]), "deny");
}

#[test]
fn case_34_the_root_is_matched_by_two_stars_alone() {
    for (glob, expected) in [
        ("'**'", "allow"),
        ("/**", "allow"),
        ("'*'", "deny"),
        ("'src/**'", "deny"),
        ("'**/*'", "deny"),
    ] {
        let line = format!("allow: {{ syscall: search.grep, path_glob: [{glob}] }}");
        check(&[&line], &call("search.grep", &["."]), expected);
    }
    check(&["allow: { syscall: search.grep }"], &call("search.grep", &["."]), "allow");
}

#[test]
fn case_35_a_rule_with_globs_does_not_apply_to_a_call_without_paths() {
    let lines = ["allow: { syscall: git.status, path_glob: ['**'] }"];
    check(&lines, &call("git.status", &[]), "deny");
    check(&["allow: { syscall: git.status }"], &call("git.status", &[]), "allow");
}

#[test]
fn case_36_a_denied_command_is_known_by_its_name_in_any_folder() {
    let lines =
        ["deny: { syscall: shell.run, command: [rm, git push] }", "allow: { syscall: '*' }"];
    let run = |words: &[&str]| call("shell.run", &["."]).command(words);
    for words in [
        &["rm"][..],
        &["/usr/bin/rm", "-r"],
        &["./rm"],
        &["git", "push"],
        &["/x/git", "push", "-f"],
    ] {
        check(&lines, &run(words), "deny");
    }
    for words in [&["rmdir"][..], &["git", "pull"], &["git"], &["echo", "rm"]] {
        check(&lines, &run(words), "allow");
    }
}

#[test]
fn case_37_an_allowed_command_is_allowed_as_written_alone() {
    let lines = ["allow: { syscall: shell.run, command: [cargo test] }"];
    let run = |words: &[&str]| call("shell.run", &["."]).command(words);
    check(&lines, &run(&["cargo", "test", "--all"]), "allow");
    for words in
        [&["./cargo", "test"][..], &["/tmp/cargo", "test"], &["cargo"], &["cargo", "install"], &[]]
    {
        check(&lines, &run(words), "deny");
    }
    check(&lines, &call("shell.run", &["."]), "deny");
}

#[test]
fn case_38_a_program_of_the_same_name_elsewhere_does_not_meet_an_exception() {
    let lines =
        ["deny: { syscall: shell.run };except: [{ command: cargo }]", "allow: { syscall: '*' }"];
    let run = |words: &[&str]| call("shell.run", &["."]).command(words);
    check(&lines, &run(&["cargo", "test"]), "allow");
    check(&lines, &run(&["./evil/cargo", "test"]), "deny");
    let lines = ["allow: { syscall: shell.run };except: [{ command: rm }]"];
    check(&lines, &run(&["ls"]), "allow");
    check(&lines, &run(&["/bin/rm"]), "deny");
}

#[test]
fn case_39_a_sandbox_that_is_demanded_has_to_be_there() {
    let lines = ["allow: { syscall: '*' };constraints: { require_sandbox: L2 }"];
    check(&lines, &call(WRITE, &["a"]), "allow");
    let decided = decided(&rules(&lines), &[], &call("fs.read", &["a"]));
    assert_eq!(
        decided.verdict.to_string(),
        "deny: it would not run in a sandbox, which `require_sandbox` demands (rule `r0`, \
         policy.yaml:3)"
    );
    assert_eq!(decided.instead.as_deref(), Some("call a tool that runs in a sandbox"));
    check(&[lines[0], "allow: { syscall: fs.read }"], &call("fs.read", &["a"]), "deny");
}

#[test]
fn case_40_a_token_that_is_demanded_has_to_be_shown() {
    let lines = ["allow: { syscall: fs.write };constraints: { require_capability_token: true }"];
    check(&lines, &call(WRITE, &["a"]), "deny");
    check(&lines, &call(WRITE, &["a"]).with_token(), "allow");
    let mut asking = call(WRITE, &["a"]);
    asking.caller.wants_token = true;
    check(&lines, &asking, "allow");
}

#[test]
fn case_41_a_file_may_be_as_large_as_is_said() {
    let lines = ["allow: { syscall: fs.write };constraints: { max_file_size: 1KiB }"];
    check(&lines, &call(WRITE, &["a"]).bytes(1024), "allow");
    let decided = decided(&rules(&lines), &[], &call(WRITE, &["a"]).bytes(1025));
    assert_eq!(
        decided.verdict.to_string(),
        "deny: it would write 1025 bytes, `max_file_size` is 1KiB (rule `r0`, policy.yaml:3)"
    );
    assert_eq!(decided.instead.as_deref(), Some("up to 1KiB a file"));
    let review = ["require_review: { syscall: fs.write };constraints: { max_file_size: 1KB }"];
    check(&review, &call(WRITE, &["a"]).bytes(1000), "review");
    check(&review, &call(WRITE, &["a"]).bytes(1001), "deny");
}

#[test]
fn case_42_groups_and_stars_name_calls() {
    check(&["allow: { syscall: fs.* }"], &call("fs.read", &["a"]), "allow");
    check(&["allow: { syscall: fs.* }"], &call("fs.deep.read", &["a"]), "allow");
    check(&["allow: { syscall: fs.* }"], &call("git.diff", &["a"]), "deny");
    check(&["allow: { syscall: '*' }"], &call("anything", &["a"]), "allow");
    let lines = ["allow: { syscall: fs.read }", "deny: { syscall: fs.* }"];
    check(&lines, &call("fs.read", &["a"]), "deny");
    let lines = ["allow: { syscall: fs.deep.* }", "deny: { syscall: fs.*, path_glob: [a] }"];
    check(&lines, &call("fs.deep.read", &["a"]), "deny");
    check(&lines, &call("fs.deep.read", &["b"]), "allow");
    let lines = ["allow: { syscall: fs.read }", "deny: { syscall: '*', path_glob: [a] }"];
    check(&lines, &call("fs.read", &["a"]), "deny");
    check(&lines, &call("unheard.of", &["a"]), "deny");
}

#[test]
fn case_43_tags_actors_modes_and_states_must_all_hold() {
    let lines =
        ["allow: { syscall: fs.write, caller_tag: [core_plugin, trusted_write], actor: model, \
         session_mode: strict, workflow_state: code_writing }"];
    let mut full = call(WRITE, &["a"]).tagged("trusted_write");
    full.caller.mode = Some("strict".to_owned());
    full.caller.workflow_state = Some("code_writing".to_owned());
    check(&lines, &full, "allow");
    check(&lines, &full.clone().tagged("third_party"), "deny");
    check(&lines, &full.clone().by("user"), "deny");
    let mut other = full.clone();
    other.caller.mode = None;
    check(&lines, &other, "deny");
    let mut other = full.clone();
    other.caller.workflow_state = Some("planning".to_owned());
    check(&lines, &other, "deny");
    check(&lines, &call(WRITE, &["a"]), "deny");
}

#[test]
fn case_44_a_request_without_a_tool_is_for_the_jurisdiction() {
    let mut asks = call("echo", &[]);
    asks.request.tool_call = None;
    assert_eq!(word(&rules(&["deny: { syscall: '*' }"]), &asks), "allow");
    assert!(explained(&rules(&["deny: { syscall: '*' }"]), &[], &asks).looks.is_empty());
}

#[test]
fn case_45_the_policy_is_never_updated_without_a_person() {
    let lines = ["allow: { syscall: '*' }"];
    check(&lines, &call("policy.update", &[]), "review");
    check(&lines, &call("policy.update", &[]).with_token(), "review");
    check(&["deny: { syscall: policy.update }"], &call("policy.update", &[]), "deny");
}

#[test]
fn case_46_what_holds_a_kept_place_is_not_changed_either() {
    let kept = [(ProjectPath::parse("var/state/ledger.db").unwrap(), Part::Ledger)];
    let built_in = BuiltIn::new(kept);
    let yaml = rules(&["allow: { syscall: '*' }"]).rules();
    let every = || std::iter::once(&built_in as &dyn Rule).chain(yaml.iter().map(|rule| &**rule));
    let strength = |tool: &str, path: &str| {
        decide(every(), &call(tool, &[path]).facts()).verdict.strength().name()
    };
    for path in ["var", "var/state", "VAR/State", ".", "var/state/ledger.db-wal", "sub/.git/config"]
    {
        assert_eq!(strength("fs.delete", path), "deny", "{path}");
    }
    assert_eq!(strength("fs.list", "var"), "allow");
    assert_eq!(strength("fs.read", "sub/.git/config"), "allow");
    assert_eq!(strength("fs.delete", "vari"), "allow");
}

#[test]
fn case_47_a_rule_that_objects_knows_a_path_by_every_reading() {
    let lines = [
        "deny: { syscall: fs.read, path_glob: [.env, 'Private/**'] };\
         except: [{ path_glob: [Private/README.md] }]",
        "allow: { syscall: fs.read, path_glob: ['**'] }",
    ];
    for path in
        [".ENV", ".env ", "a/.Env.", "private/x", "PRIVATE/x", ".env:stream", "Private/～/X"]
    {
        check(&lines, &call("fs.read", &[path]), "deny");
    }
    check(&lines, &call("fs.read", &["Private/README.md"]), "allow");
    check(&lines, &call("fs.read", &["src/Main.rs"]), "allow");
    check(&["allow: { syscall: fs.read, path_glob: [a] }"], &call("fs.read", &["A"]), "deny");
    let holes = ["allow: { syscall: fs.read };except: [{ path_glob: [.env, Key] }]"];
    for path in [".env", ".ENV", ".env ", "key", "KEY", "Key"] {
        check(&holes, &call("fs.read", &[path]), "deny");
    }
    check(&holes, &call("fs.read", &["README"]), "allow");
    let all =
        ["deny: { syscall: '*' };except: [{ path_glob: ['src/*.md'] }]", "allow: { syscall: '*' }"];
    check(&all, &call("fs.read", &["src/a.md"]), "allow");
    check(&all, &call("fs.read", &["src/key:a.md"]), "deny");
}

#[test]
fn case_48_unknown_keys_actions_and_units_are_errors() {
    for rule in [
        "{ name: a, match: { syscall: fs.read, path_globs: [x] }, action: allow }",
        "{ name: a, match: { syscall: fs.read }, action: permit }",
        "{ name: a, match: { syscall: fs.read }, action: Allow }",
        "{ name: a, match: { syscall: fs.read }, action: allow, when: now }",
        "{ name: a, match: { syscall: fs.read }, action: allow, constraints: { max_file_size: 1kb } }",
        "{ name: a, match: { syscall: fs.read }, action: allow, constraints: { sandbox: L2 } }",
        "{ name: a, match: { path_glob: ['**'] }, action: allow }",
    ] {
        let text = format!("capabilities:\n  - {rule}\n");
        let error = fluffy_policy::PolicyFile::parse("p", &text).unwrap_err();
        assert_eq!(error.line, 2, "{error}");
    }
}

#[test]
fn case_49_without_capabilities_the_jurisdiction_is_the_policy() {
    let text = "jurisdiction: { allowed_actors: [model], allowed_tools: [fs.read] }";
    let policy = fluffy_policy::PolicyFile::parse("p", text).unwrap();
    assert_eq!(word(&policy, &call("fs.read", &["a"])), "allow");
    assert_eq!(word(&policy, &call(WRITE, &["a"])), "deny");
    assert_eq!(word(&policy, &call("fs.read", &["a"]).by("mallory")), "deny");
}

#[test]
fn case_50_what_the_jurisdiction_refuses_no_rule_and_no_token_allows() {
    let text = "jurisdiction: { allowed_actors: [user], allowed_tools: ['*'] }\n\
                capabilities: [{ name: a, match: { syscall: '*' }, action: allow }]";
    let policy = fluffy_policy::PolicyFile::parse("p", text).unwrap();
    assert_eq!(word(&policy, &call(WRITE, &["a"]).by("user")), "allow");
    assert_eq!(word(&policy, &call(WRITE, &["a"])), "deny");
    assert_eq!(word(&policy, &call(WRITE, &["a"]).with_token()), "deny");
}

#[test]
fn case_51_every_denial_says_which_rule_why_and_what_instead() {
    let lines = [
        "allow: { syscall: fs.write, path_glob: ['src/**', 'src/gen/**'] }",
        "allow: { syscall: fs.*, path_glob: ['docs/**'] }",
        "deny: { syscall: fs.write, path_glob: ['src/gen/**'] };reason: It is generated",
    ];
    let told = |paths: &[&str], tool: &str| {
        let decided = decided(&rules(&lines), &[], &call(tool, paths));
        format!("{} / {}", decided.verdict, decided.instead.unwrap())
    };
    assert_eq!(
        told(&["src/gen/a.rs"], WRITE),
        "deny: It is generated (rule `r2`, policy.yaml:9) / `fs.write` on `src/**` (rule `r0`, \
         policy.yaml:3), `src/gen/**` (rule `r0`, policy.yaml:3)"
    );
    assert_eq!(
        told(&["etc/a"], "fs.chmod"),
        "deny: no rule allows actor 'model' to run tool 'fs.chmod' on `etc/a` / `fs.*` on \
         `docs/**` (rule `r1`, policy.yaml:6)"
    );
}

#[test]
fn case_52_a_longest_token_is_an_hour() {
    let (mut book, _) = book(Digest::of(b"p"));
    let scope = TokenScope {
        syscall: WRITE.to_owned(),
        paths: Vec::new(),
        max_ops: NonZeroU32::MIN,
        ttl: Span::from_ms(3_600_001),
        max_file_size: None,
    };
    let id = TokenId::fresh(&SeededIds::new(2)).unwrap();
    let grant = Grant { policy: Digest::of(b"p"), peer: peer("box"), scope, id };
    assert!(book.issue(NOW, grant).is_err());
}

#[test]
fn case_53_examples_of_a_rule_are_about_those_whom_the_rule_is_about() {
    policy(
        "
  - name: tagged
    match: { syscall: fs.write, path_glob: ['gen/**'], caller_tag: core_plugin, actor: user, session_mode: explore, workflow_state: exploring }
    action: allow
    constraints: { require_capability_token: true }
    allows: [gen/a.rs]
    denies: [src/a.rs]
  - name: commands
    match: { syscall: shell.run, command: [cargo test] }
    action: allow
    allows: [{ syscall: shell.run }, { syscall: shell.run, path: '.' }]
  - name: search
    match: { syscall: search.grep, path_glob: ['**'] }
    action: allow
    allows: [{ syscall: search.grep }]
",
    );
}
