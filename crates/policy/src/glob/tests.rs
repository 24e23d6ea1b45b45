//! Properties of patterns: against an oracle, against each other, and under attack.

use std::cell::RefCell;
use std::collections::BTreeSet;

use fluffy_base::normalised;
use globset::GlobBuilder;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

fn glob(text: &str) -> Glob {
    Glob::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn path(text: &str) -> ProjectPath {
    ProjectPath::parse(text).unwrap()
}

fn matching(index: &GlobIndex, path: &ProjectPath) -> Vec<u32> {
    // Old content must not shine through.
    let mut ids = vec![99];
    index.matching(path, &mut ids);
    ids
}

/// The dialect as one would write it down without a thought for time.
mod oracle {
    pub(super) fn matches(pattern: &str, path: &str) -> bool {
        if let Some((before, (inside, after))) =
            pattern.split_once('}').and_then(|(left, after)| {
                left.rsplit_once('{').map(|(before, inside)| (before, (inside, after)))
            })
        {
            return inside
                .split(',')
                .any(|choice| matches(&format!("{before}{choice}{after}"), path));
        }
        let rooted = pattern.strip_prefix('/').map_or(pattern.to_owned(), str::to_owned);
        let rooted = if pattern.contains('/') { rooted } else { format!("**/{pattern}") };
        let pattern: Vec<_> = rooted.split('/').collect();
        segments(&pattern, &path.split('/').collect::<Vec<_>>())
    }

    fn segments(pattern: &[&str], path: &[&str]) -> bool {
        match (pattern, path) {
            ([], []) => true,
            (["**", rest @ ..], _) => (0..=path.len()).any(|n| segments(rest, &path[n..])),
            ([first, rest @ ..], [name, names @ ..]) => {
                characters(&chars(first), &chars(name)) && segments(rest, names)
            }
            _ => false,
        }
    }

    fn characters(pattern: &[char], name: &[char]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            (['*', rest @ ..], _) => (0..=name.len()).any(|n| characters(rest, &name[n..])),
            (['?', rest @ ..], [_, name @ ..]) => characters(rest, name),
            (['[', '!', 'a', ']', rest @ ..], [c, name @ ..]) => {
                *c != 'a' && characters(rest, name)
            }
            (['[', 'a', '-', 'c', ']', rest @ ..], [c, name @ ..]) => {
                ('a'..='c').contains(c) && characters(rest, name)
            }
            (['[', 'b', '.', ']', rest @ ..], [c, name @ ..]) => {
                "b.".contains(*c) && characters(rest, name)
            }
            ([p, rest @ ..], [c, name @ ..]) => p == c && characters(rest, name),
            _ => false,
        }
    }

    fn chars(text: &str) -> Vec<char> {
        text.chars().collect()
    }
}

/// Patterns over a small alphabet, so that they often match and often nearly match.
fn any_pattern() -> impl Strategy<Value = String> {
    let atom = select(vec![
        "a",
        "b",
        ".",
        "é",
        "*",
        "?",
        "[!a]",
        "[a-c]",
        "[b.]",
        "{a,b}",
        "{,a}",
        "{a,{b,.}*}",
        "{a/b,*}",
        "{**/,}",
    ]);
    let segment = prop_oneof![
        2 => Just("**".to_owned()),
        1 => select(vec!["a", "b", "*", "*.b", "a.b", "*a"]).prop_map(str::to_owned),
        3 => prop::collection::vec(atom, 1..5).prop_map(|atoms| atoms.concat()),
    ];
    (any::<bool>(), prop::collection::vec(segment, 1..5)).prop_map(|(slash, segments)| {
        ["", "/"][usize::from(slash)].to_owned() + &segments.join("/")
    })
}

fn any_glob() -> impl Strategy<Value = Glob> {
    any_pattern().prop_filter_map("no pattern", |text| Glob::parse(&text).ok())
}

/// Negated classes match slashes there, `dir/**` leaves out `dir`, alternatives are not patterns of
/// their own (so that the slash of `{,a}/b` is one of the path), and a pattern without a slash is not
/// looked for at every depth.
fn is_also_globset(glob: &Glob) -> bool {
    let text = glob.text();
    let differs = ["[!", "{a/", "{**"].iter().any(|part| text.contains(part));
    let empty = ["{,", ",,", ",}"].iter().any(|part| text.contains(part));
    let begins_empty = text.starts_with('{') && empty;
    text.contains('/') && !text.ends_with("**") && !differs && !begins_empty
}

/// A part that notes what it meets, and fails when it meets it again. Nothing is a run.
#[derive(Debug)]
struct Counting<'a> {
    at: usize,
    part: Option<u8>,
    met: &'a RefCell<BTreeSet<(usize, usize)>>,
}

impl Span for Counting<'_> {
    fn is_run(&self) -> bool {
        self.part.is_none()
    }
}

impl Takes<(usize, u8)> for Counting<'_> {
    fn takes(&self, (at, item): (usize, u8)) -> bool {
        assert!(self.met.borrow_mut().insert((self.at, at)), "{self:?} meets item {at} again");
        self.part == Some(item)
    }
}

fn any_path() -> impl Strategy<Value = ProjectPath> {
    let name = prop_oneof![
        select(vec!["a", "b", "a.b", ".b", ".a"]).prop_map(str::to_owned),
        prop::collection::vec(select(vec!["a", "b", "c", ".", "é"]), 1..4).prop_map(|c| c.concat()),
    ];
    prop::collection::vec(name, 1..6)
        .prop_filter_map("no path", |names| ProjectPath::parse(&names.join("/")).ok())
}

/// All paths of up to three segments over a few names that the patterns above speak of.
fn small_paths() -> impl Iterator<Item = ProjectPath> {
    const NAMES: [&str; 6] = ["a", "b", "ab", ".b", "a.b", "é"];
    let one = NAMES.into_iter().map(str::to_owned);
    let two = one.clone().flat_map(|a| NAMES.map(|b| format!("{a}/{b}")));
    let three = two.clone().flat_map(|a| NAMES.map(|b| format!("{a}/{b}")));
    one.chain(two).chain(three).map(|text| path(&text))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_pattern_matches_what_the_oracle_says(glob in any_glob(), path in any_path()) {
        prop_assert_eq!(glob.matches(&path), oracle::matches(glob.text(), path.as_str()));
    }

    #[test]
    fn the_index_answers_what_each_pattern_answers(
        globs in prop::collection::vec((0..6_u32, any_glob()), 0..8),
        paths in prop::collection::vec(any_path(), 1..4),
    ) {
        let index = GlobIndex::new(globs.clone());
        for path in paths {
            let mut expected: Vec<u32> =
                globs.iter().filter(|(_, glob)| glob.matches(&path)).map(|(id, _)| *id).collect();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(matching(&index, &path), expected);
        }
    }

    #[test]
    fn what_a_pattern_covers_it_matches(a in any_glob(), b in any_glob()) {
        prop_assert!(a.covers(&a));
        for (wide, narrow) in [(&a, &b), (&b, &a)] {
            if wide.covers(narrow) {
                for path in small_paths() {
                    prop_assert!(wide.matches(&path) || !narrow.matches(&path), "{}", path);
                }
            }
        }
    }

    #[test]
    fn where_the_dialects_agree_globset_agrees(
        glob in any_glob().prop_filter("the dialects differ", is_also_globset),
        // `?` is a byte there.
        path in any_path().prop_filter("not ASCII", |path| path.as_str().is_ascii()),
    ) {
        let theirs = GlobBuilder::new(glob.text().trim_start_matches('/'))
            .literal_separator(true)
            .empty_alternates(true)
            .build()
            .unwrap()
            .compile_matcher();
        prop_assert_eq!(glob.matches(&path), theirs.is_match(path.as_str()));
    }

    #[test]
    fn each_part_of_a_pattern_meets_each_item_at_most_once(
        parts in prop::collection::vec(prop::option::of(0..3_u8), 0..12),
        items in prop::collection::vec(0..3_u8, 0..24),
    ) {
        let met = RefCell::new(BTreeSet::new());
        let parts: Vec<_> = (0..).zip(parts).map(|(at, part)| Counting { at, part, met: &met }).collect();
        spans(&parts, (0..).zip(items.iter().copied()));
    }

    #[test]
    fn no_text_makes_parsing_panic_and_every_error_points_into_it(
        text in prop_oneof![
            any::<String>(),
            "[]\\[{}!*?,/^a:.\u{301}\u{e9}\u{f73}-]{0,40}",
        ],
    ) {
        match Glob::parse(&text) {
            Ok(glob) => {
                prop_assert_eq!(glob.text(), &normalised(&text));
                prop_assert_eq!(&Glob::parse(glob.text()), &Ok(glob.clone()));
            }
            Err(error) => prop_assert!(text.is_char_boundary(error.at)),
        }
    }

    #[test]
    fn the_spelling_of_a_name_never_decides(
        name in "[a-e\u{e9}\u{300}-\u{34e}\u{ac00}-\u{ac20}\u{1100}-\u{1112}\u{1161}-\u{1175}\u{11a8}-\u{11b0}\u{f71}-\u{f75}\u{f80}\u{f81}\u{9be}\u{9c7}\u{212b}\u{1d15e}]{1,12}",
    ) {
        let glob = glob(&name);
        prop_assert_eq!(glob.text(), &normalised(&name));
        prop_assert!(glob.matches(&path(&name)));
        prop_assert!(glob.matches(&path(&normalised(&name))));
    }
}

#[test]
fn lesson_l18_no_pattern_takes_more_than_its_length_times_the_paths() {
    let name = "a".repeat(255);
    let long = vec![name.as_str(); 16].join("/");
    let deep = vec!["a"; 2048].join("/");
    let stars = format!("{}b", "*a".repeat(120));
    let patterns = [
        // Within a segment, then in as many segments as fit, then between segments.
        stars.clone(),
        vec![stars.as_str(); 16].join("/**/"),
        format!("{}b", "**/a/".repeat(800)),
        format!("{}b", "**/*a*/".repeat(580)),
        format!("{}b", "*/**/".repeat(800)),
        format!("**/{}b", "?/".repeat(2000)),
        format!("{}b", "**/".repeat(1300)),
        format!("{}b", "{a*,ab*}".repeat(7)),
    ];
    for pattern in patterns {
        let glob = glob(&pattern);
        let index = GlobIndex::new([(1, glob.clone())]);
        for path in [&long, &deep].map(|text| path(text)) {
            assert!(!glob.matches(&path));
            assert_eq!(matching(&index, &path), [0_u32; 0]);
        }
    }
}

#[test]
fn a_path_that_repeats_a_segment_gives_each_id_once() {
    let globs = ["**/a/**", "**/a/*x*/**", "**/a/b"].map(glob);
    let index = GlobIndex::new((1..).zip(globs));
    assert_eq!(matching(&index, &path(&vec!["a"; 2048].join("/"))), [1]);
}

#[test]
fn the_longest_pattern_has_4096_bytes() {
    let longest = format!("a/{}", "**/".repeat(1364));
    let longest = format!("{longest}bb");
    assert_eq!(longest.len(), 4096);
    assert!(glob(&longest).matches(&path("a/x/bb")));
    let error = Glob::parse(&format!("{longest}b")).unwrap_err();
    assert_eq!(error, GlobError { at: 4096, problem: GlobProblem::Long(4097) });
}

#[test]
fn braces_are_measured_before_they_are_expanded() {
    let problem = |text: &str| Glob::parse(text).unwrap_err().problem;
    assert!(Glob::parse(&"{a,b}".repeat(10)).is_ok());
    assert_eq!(problem(&"{a,b}".repeat(11)), GlobProblem::TooManyAlternatives);
    assert_eq!(problem(&"{a,b}".repeat(819)), GlobProblem::TooManyAlternatives);
    assert_eq!(problem(&format!("{{{}a}}", "a,".repeat(1024))), GlobProblem::TooManyAlternatives);
    let wide = format!("{}{}", "{a,b}".repeat(10), "a".repeat(54));
    assert!(Glob::parse(&wide).is_ok());
    assert_eq!(problem(&format!("{wide}a")), GlobProblem::TooLarge);
    let deep = format!("{}a,b{}", "{a,".repeat(1000), "}".repeat(1000));
    assert!(Glob::parse(&deep).unwrap().matches(&path("b")));
    assert_eq!(problem(&"{".repeat(4096)), GlobProblem::UnclosedBrace);
}

#[test]
fn a_name_longer_than_any_is_an_error() {
    assert!(Glob::parse(&"a".repeat(255)).is_ok());
    let error = Glob::parse(&format!("x/{}*", "a".repeat(256))).unwrap_err();
    assert!(matches!(error, GlobError { at: 2, problem: GlobProblem::NeverMatches(_) }));
}

#[test]
fn a_pattern_covers_what_it_plainly_includes() {
    let table = [
        ("**", "a/*/b"),
        ("**", "a"),
        ("*", "a/**"),
        ("**/*", "**"),
        ("src/**", "/src"),
        ("src/**", "src/a/**/*.rs"),
        ("src/**", "/src/*"),
        ("*.x", "dir/**/*.x"),
        ("*.x", "**/a*.x"),
        ("*.x", "b.x"),
        ("**/a/**", "x/a/*.rs"),
        ("a*b", "a?*[xy]b"),
        ("[a-z]x", "{b,[c-e]}x"),
        ("[!a]x", "[b-d]x"),
        ("[!a]x", "[!a-c]x"),
        ("{a,b}/**", "{b,a/c}/x"),
        ("caf\u{e9}", "cafe\u{301}"),
    ];
    for (wide, narrow) in table {
        assert!(glob(wide).covers(&glob(narrow)), "{wide} covers {narrow}");
    }
    let table = [
        ("*.x", "dir/**"),
        ("src/**", "**"),
        ("src/*", "/src"),
        ("src/*", "src/**"),
        ("/a", "a"),
        ("a", "b"),
        ("[a-c]x", "[!d]x"),
        ("[!a]x", "[a-c]x"),
        ("[a-c]x", "?x"),
        ("?", "*"),
    ];
    for (wide, narrow) in table {
        assert!(!glob(wide).covers(&glob(narrow)), "{wide} does not cover {narrow}");
    }
}

#[test]
fn each_kind_of_pattern_is_found_among_the_others() {
    let texts = [
        "**",
        "src/**",
        "src/lib.rs",
        "src/*.rs",
        "src/**/*.rs",
        "src/**/lib.rs",
        "*.rs",
        "lib.rs",
        "**/src/**",
        "**/src/*.rs",
        "s*/**",
        "*.tar.gz",
        "*_test.go",
        "**/a/*/c",
        "/lib.rs",
    ];
    let index = GlobIndex::new((0..).zip(texts.map(glob)));
    let found = |text: &str| -> Vec<&str> {
        matching(&index, &path(text)).iter().map(|id| texts[*id as usize]).collect()
    };
    assert_eq!(
        found("src/lib.rs"),
        [
            "**",
            "src/**",
            "src/lib.rs",
            "src/*.rs",
            "src/**/*.rs",
            "src/**/lib.rs",
            "*.rs",
            "lib.rs",
            "**/src/**",
            "**/src/*.rs",
            "s*/**",
        ]
    );
    assert_eq!(found("src"), ["**", "src/**", "**/src/**", "s*/**"]);
    assert_eq!(found("x/src/a"), ["**", "**/src/**"]);
    assert_eq!(found("x/a.tar.gz"), ["**", "*.tar.gz"]);
    assert_eq!(found("x/a.gz"), ["**"]);
    assert_eq!(found("a_test.go"), ["**", "*_test.go"]);
    assert_eq!(found("x/a/b/c"), ["**", "**/a/*/c"]);
    assert_eq!(found("lib.rs"), ["**", "*.rs", "lib.rs", "/lib.rs"]);
    assert_eq!(matching(&GlobIndex::new([]), &path("a")), [0_u32; 0]);
}
