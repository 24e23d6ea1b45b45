//! What a model may read, and what it never does.

use proptest::prelude::*;

use super::*;

const KEY: &str = "sk-abcdefghijklmnop1234";

/// The shortest limit, in bytes.
const LEAST: usize = MIN_RESULT_TOKENS as usize * BYTES_PER_TOKEN;

fn pattern(regex: &str) -> SecretPattern {
    SecretPattern { name: "mine".to_owned(), regex: regex.to_owned() }
}

fn with_patterns(patterns: &[&str]) -> Sanitiser {
    let patterns: Vec<_> = patterns.iter().map(|regex| pattern(regex)).collect();
    Sanitiser::new(&patterns, ResultLimits::default()).unwrap()
}

/// Every tool has the shortest limit and keeps this.
fn short(keep: Keep, patterns: &[&str]) -> Sanitiser {
    let others = ResultLimit { tokens: MIN_RESULT_TOKENS, keep };
    let limits = ResultLimits { tools: BTreeMap::new(), others };
    let patterns: Vec<_> = patterns.iter().map(|regex| pattern(regex)).collect();
    Sanitiser::new(&patterns, limits).unwrap()
}

fn masked(patterns: &[&str], text: &str) -> String {
    with_patterns(patterns).masked(text).0.into_owned()
}

fn refused(regex: &str) -> String {
    let error = Sanitiser::new(&[pattern(regex)], ResultLimits::default()).unwrap_err();
    error.to_string()
}

#[test]
fn a_clean_text_is_handed_on_as_it_is() {
    let text = "plain\ttext\r\nwith \u{1b}[32mcolour\u{1b}[0m and é\u{202e}\0";
    let clean = with_patterns(&["hunter[0-9]"]).text("fs.read", text);
    assert!(matches!(clean.text, Cow::Borrowed(same) if same == text));
    assert_eq!((clean.masked, clean.left_out), (0, None));
}

#[test]
fn known_keys_and_the_users_own_secrets_are_masked_and_counted() {
    let text = format!("key={KEY}\npassword: hunter2\nemail a@corp.example");
    let clean = with_patterns(&["hunter[0-9]", r"\w+@corp\.example"]).text("shell.run", &text);
    assert_eq!(clean.text, "key=sk-***\npassword: ***\nemail ***");
    assert_eq!(clean.masked, 3);
}

#[test]
fn no_pattern_hides_a_secret_from_another() {
    // Either alone would leave the other's half.
    assert_eq!(masked(&["one two", "two three"], "one two three"), "***");
    assert_eq!(masked(&["key=sk-abc"], &format!("key={KEY}.")), "***.");
    assert_eq!(masked(&["1234 tail"], &format!("{KEY} tail")), "sk-***");
    assert_eq!(masked(&["a", "abc"], "xabcx"), "x***x");
}

#[test]
fn a_pattern_spans_lines_only_if_it_says_so() {
    assert_eq!(masked(&["BEGIN.*END"], "BEGIN\nx\nEND"), "BEGIN\nx\nEND");
    assert_eq!(masked(&["(?s)BEGIN.*?END"], "BEGIN\nx\nEND\ny"), "***\ny");
    assert_eq!(masked(&[r"BEGIN\s+END"], "BEGIN\n\nEND"), "***");
    assert_eq!(masked(&["^pin"], "pin\npin"), "***\npin");
    assert_eq!(masked(&["(?m)^pin$"], "pin\npin"), "***\n***");
}

#[test]
fn a_pattern_that_is_no_use_is_an_error() {
    let nothing = "secret pattern `mine` matches the empty text";
    for regex in ["", "a*", "a|", r"\b", "(?m)^", "$", "(?:a?b?)"] {
        assert_eq!(refused(regex), nothing, "{regex}");
    }
    assert_eq!(refused(r"[a&&b]"), "secret pattern `mine` can never match");
    assert_eq!(
        refused("ab(c"),
        "secret pattern `mine` is no regular expression: unclosed group (character 3)"
    );
    assert_eq!(
        refused(r"a\1"),
        "secret pattern `mine` is no regular expression: backreferences are not supported \
         (character 2)"
    );
    assert_eq!(refused(&"x".repeat(1_001)), "secret pattern `mine` has more than 1000 bytes");
    assert_eq!(refused(r"(\w{100}){100}{100}"), "secret pattern `mine` is too large once compiled");
}

#[test]
fn an_error_repeats_a_name_only_so_that_it_can_be_shown() {
    let name = format!("\u{1b}[2J{}", "x".repeat(500));
    let patterns = [SecretPattern { name, regex: "(".to_owned() }];
    let error = Sanitiser::new(&patterns, ResultLimits::default()).unwrap_err().to_string();
    assert!(!error.contains('\u{1b}') && error.len() < 200, "{error}");
}

#[test]
fn there_may_be_sixty_four_patterns_and_no_more() {
    let patterns = vec![pattern("hunter2"); 65];
    assert!(Sanitiser::new(&patterns[..64], ResultLimits::default()).is_ok());
    assert_eq!(
        Sanitiser::new(&patterns, ResultLimits::default()).unwrap_err(),
        SanitiseError::TooManyPatterns(65)
    );
}

#[test]
fn a_limit_leaves_room_for_the_notice() {
    for tokens in [0, MIN_RESULT_TOKENS - 1, MAX_RESULT_TOKENS + 1, u32::MAX] {
        let mut limits = ResultLimits::default();
        limits.tools.insert("fs.read".to_owned(), ResultLimit { tokens, keep: Keep::Head });
        let error = SanitiseError::Limit { tool: "fs.read".to_owned(), tokens };
        assert_eq!(Sanitiser::new(&[], limits).unwrap_err(), error);
    }
}

#[test]
fn a_tool_has_the_limit_of_the_longest_name_that_fits() {
    let mut limits = ResultLimits::default();
    let own = ResultLimit { tokens: 500, keep: Keep::Ends };
    limits.tools.insert("test.run".to_owned(), own);
    assert_eq!(limits.of("test.run"), own);
    assert_eq!(limits.of("test.run.again"), own);
    assert_eq!(limits.of("test.list").keep, Keep::Tail);
    assert_eq!(limits.of("fs.read").keep, Keep::Head);
    assert_eq!(limits.of("search.grep").keep, Keep::Head);
    assert_eq!(limits.of("git.diff").keep, Keep::Head);
    assert_eq!(limits.of("shell.run").keep, Keep::Tail);
    for tool in ["", ".", "fsx.read", "FS.read", "skill"] {
        assert_eq!(limits.of(tool), ResultLimit { tokens: 4_000, keep: Keep::Ends }, "{tool}");
    }
}

#[test]
fn a_strategy_is_called_by_the_name_of_the_policy_file() {
    assert_eq!(
        ["head", "tail", "middle", "Head", ""].map(Keep::parse),
        [Some(Keep::Head), Some(Keep::Tail), Some(Keep::Ends), None, None]
    );
}

#[test]
fn what_fits_is_not_cut_and_one_byte_more_is() {
    let sanitiser = short(Keep::Head, &[]);
    assert_eq!(sanitiser.text("t", &"x".repeat(LEAST)).left_out, None);
    assert!(sanitiser.text("t", &"x".repeat(LEAST + 1)).left_out.is_some());
}

#[test]
fn the_notice_stands_where_something_is_missing_and_says_how_much() {
    let text = format!("{}{}", "a".repeat(1_500), "b".repeat(1_500));
    let head = short(Keep::Head, &[]).text("t", &text);
    assert_eq!(head.text, format!("{}\n… 913 of 1000 tokens left out …", "a".repeat(262)));
    assert_eq!(head.left_out, Some(LeftOut { bytes: 262..3_000, tokens: 913, of_tokens: 1_000 }));
    let tail = short(Keep::Tail, &[]).text("t", &text);
    assert_eq!(tail.text, format!("… 913 of 1000 tokens left out …\n{}", "b".repeat(262)));
    assert_eq!(tail.left_out.unwrap().bytes, 0..2_738);
    let ends = short(Keep::Ends, &[]).text("t", &text);
    let (a, b) = ("a".repeat(131), "b".repeat(131));
    assert_eq!(ends.text, format!("{a}\n… 913 of 1000 tokens left out …\n{b}"));
    assert_eq!(ends.left_out.unwrap().bytes, 131..2_869);
}

#[test]
fn a_cut_never_makes_a_key_of_a_word() {
    // Cut behind `ta`, the rest would be `sk-…` at the beginning of a line.
    let word = "task-force-with-a-long-name";
    let mut made = 0;
    for shift in 0..=word.len() {
        let text = format!("{}{word} {}", "x ".repeat(400), "y".repeat(262 - shift));
        let clean = short(Keep::Tail, &[]).text("t", &text);
        assert_eq!(fluffy_base::masked(&clean.text), clean.text);
        assert!(clean.text.len() <= LEAST);
        made += usize::from(clean.text.contains("\nsk-***"));
    }
    assert_eq!(made, 1);
}

#[test]
fn a_key_at_any_place_near_the_cut_does_not_show() {
    let pieces: Vec<&str> = (3..KEY.len() - 4).map(|at| &KEY[at..at + 4]).collect();
    for (keep, at) in [Keep::Head, Keep::Tail, Keep::Ends]
        .into_iter()
        .flat_map(|keep| (0..800).map(move |at| (keep, at)))
    {
        let text = format!("{}{KEY}{}", ".".repeat(at), ".".repeat(800 - at));
        let clean = short(keep, &[]).text("t", &text);
        assert!(!pieces.iter().any(|piece| clean.text.contains(piece)), "{keep:?} {at}");
        assert_eq!(clean.masked, 1);
    }
}

#[test]
fn what_becomes_a_secret_only_by_the_cut_is_masked_too() {
    // A line that ends in a hundred digits is secret; here none does until it is cut.
    let text = format!("{}x", "1".repeat(5_000));
    let sanitiser = short(Keep::Head, &["(?m)[0-9]{100}$"]);
    assert_eq!(sanitiser.masked(&text).1, 0);
    let clean = sanitiser.text("t", &text);
    assert_eq!(clean.text, format!("{}***\n… 1580 of 1667 tokens left out …", "1".repeat(162)));
}

#[test]
fn a_pattern_may_span_what_was_left_out() {
    let sanitiser = short(Keep::Ends, &["(?s)ab.{0,50}yz"]);
    let text = format!("{}ab{}yz{}", "x".repeat(130), ".".repeat(2_000), "x".repeat(130));
    let clean = sanitiser.text("t", &text);
    assert_eq!(clean.text, format!("{0}***{0}", "x".repeat(130)));
}

#[test]
fn where_the_masks_do_not_fit_nothing_but_the_notice_is_left() {
    let sanitiser = short(Keep::Head, &["[aeiou0-9t]"]);
    let text = "x".repeat(4_000);
    let clean = sanitiser.text("t", &text);
    assert_eq!(clean.text, "\n… *** ***f *** ***k***ns l***f*** *** …");
    assert_eq!(clean.left_out.unwrap().bytes, 0..4_000);
}

#[test]
fn patterns_that_match_their_own_masks_come_to_an_end() {
    let text = "aaaaaaaaaaaa* b *** c";
    for regex in [r"\*", r"\*+", r"a\*", r".\*", r"\*.", r"[^x]", r"\w+", r"\W", r"(?s).", "..."] {
        let sanitiser = with_patterns(&[regex]);
        let once = sanitiser.masked(text).0;
        assert_eq!(sanitiser.masked(&once).0, once, "{regex}");
        assert!(!once.contains("****"), "{regex}: {once}");
    }
    assert_eq!(masked(&[r"a\*"], text), "***", "withheld");
}

#[test]
fn a_long_row_of_stars_is_walked_once() {
    let text = "*".repeat(200_000);
    assert_eq!(masked(&[r"\*"], &text), "***");
    assert_eq!(masked(&[r"x"], &format!("{text}x{text}")), "***");
}

fn keeps() -> impl Strategy<Value = Keep> {
    prop::sample::select(vec![Keep::Head, Keep::Tail, Keep::Ends])
}

/// Secrets with the part that must not be seen.
fn planted() -> impl Strategy<Value = (String, String)> {
    let known = (
        prop::sample::select(vec!["sk-", "ghp_", "gho_", "glpat-", "npm_", "xoxb-", "xoxp-"]),
        "[a-z0-9]{16,40}",
    );
    let known = known.prop_map(|(prefix, rest)| (format!("{prefix}{rest}"), rest));
    let amazon = "[A-Z0-9]{16}".prop_map(|rest| (format!("AKIA{rest}"), rest));
    let own = "PIN<[0-9]{12,30}>".prop_map(|text| (text.clone(), text));
    prop_oneof![3 => known, 1 => amazon, 1 => own]
}

const OWN: &str = "PIN<[0-9]+>";

proptest! {
    #[test]
    fn no_planted_secret_is_read_wherever_it_stands(
        (secret, hidden) in planted(),
        before in 0..700_usize,
        after in 0..700_usize,
        filler in prop::sample::select(vec![" ", "é ", "\n", "\u{1b}[1m", "-", "=\u{1f600}", "\\n"]),
        keep in keeps(),
    ) {
        let sanitiser = short(keep, &[OWN]);
        let fill = |bytes: usize| filler.repeat(bytes / filler.len());
        // Behind the secret a byte of a token would be part of it.
        let text = format!("{}{secret}.{}", fill(before), fill(after));
        let clean = sanitiser.text("t", &text);
        // Half of a secret that a cut made is a leak as well.
        for piece in hidden.as_bytes().windows(8) {
            prop_assert!(!clean.text.contains(std::str::from_utf8(piece).unwrap()));
        }
        prop_assert!(clean.masked >= 1);
        prop_assert!(clean.text.len() <= LEAST);
        prop_assert_eq!(sanitiser.text("t", &clean.text).text, clean.text.as_ref());
    }

    #[test]
    fn any_text_is_cleaned_once_and_stays_within_its_limit(
        text in "(\\PC|[\n\t*]|sk-[a-z0-9]{10,20}|[0-9]{1,12}){0,60}",
        keep in keeps(),
        regex in prop::sample::select(vec![
            OWN, "(?m)^[0-9]{4}", "[0-9]+$", r"\*.", "[a-m]", r"(?s)s.*?k", r"\W[0-9]", r"\w{3}\s",
        ]),
    ) {
        let sanitiser = short(keep, &[regex]);
        let once = sanitiser.text("t", &text);
        prop_assert!(once.text.len() <= LEAST);
        prop_assert_eq!(fluffy_base::masked(&once.text), once.text.as_ref());
        let twice = sanitiser.text("t", &once.text);
        prop_assert_eq!(twice.text, once.text.as_ref());
        prop_assert_eq!((twice.masked, twice.left_out), (0, None));
    }
}
