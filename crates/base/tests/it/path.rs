//! No spelling of a path gets past the check, and none makes a second value of one file.

use std::path::{Component, Path, PathBuf};

use fluffy_base::{PathError, ProjectPath};
use proptest::prelude::*;
use proptest::sample::select;
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

const NAMES: [&str; 12] = [
    "a", "b.rs", ".env", ".fluffy", "tests", "...", "..a", "dot.", "space ", " ", "\u{e9}",
    "\u{1e69}",
];

/// Ways to say "here" in the middle of a path.
const DETOURS: [&str; 7] = ["", "./", "/", ".//./", "x/../", "x/y/../../", "x/./..//"];

/// Components that attackers and accidents write.
fn nasty() -> impl Strategy<Value = String> {
    let texts = [
        "..",
        "..",
        ".",
        "",
        "...",
        "a",
        "b",
        ".env",
        ".fluffy",
        "\u{e9}",
        "e\u{301}",
        "\u{301}",
        "~",
        "~root",
        "a~",
        "C:",
        "c:x",
        "\\",
        "a\\b",
        "..\\",
        "\0",
        "a\0",
        "\n",
        "\u{1b}[2J",
        "\u{85}",
        "\u{200b}",
        ".\u{200b}.",
        "\u{202e}",
        "\u{2066}",
        "\u{feff}",
        "dot.",
        "space ",
        " ",
        "\u{ff0f}",
        "\u{2024}\u{2024}",
        "\u{212a}",
        "\u{958}",
    ];
    let long = [250, 255, 256, 300].map(|length| "x".repeat(length));
    select(texts.map(str::to_owned).into_iter().chain(long).collect::<Vec<_>>())
}

fn hostile() -> impl Strategy<Value = String> {
    let separator = select(vec!["/", "/", "/", "//", "/./"]);
    let parts = prop::collection::vec((nasty(), separator), 0..24);
    (parts, prop::bool::ANY).prop_map(|(parts, open)| {
        let mut text: String = parts.iter().flat_map(|(name, slash)| [name, *slash]).collect();
        if !open {
            text.pop();
        }
        text
    })
}

/// Mostly harmless, so that most are accepted.
fn mixed() -> impl Strategy<Value = String> {
    let component = prop_oneof![
        6 => select(NAMES.to_vec()).prop_map(str::to_owned),
        2 => select(vec![".", "..", ""]).prop_map(str::to_owned),
        1 => nasty(),
    ];
    prop::collection::vec(component, 1..8).prop_map(|components| components.join("/"))
}

fn lexically_normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                normal.push(component);
            }
        }
    }
    normal
}

/// What every accepted path must be, written down a second time.
fn broken_invariant(path: &ProjectPath) -> Option<&'static str> {
    let text = path.as_str();
    let hidden = |c: char| {
        let ranges = [
            0x200b..=0x200f_u32,
            0x202a..=0x202e,
            0x2060..=0x2064,
            0x2066..=0x2069,
            0xfeff..=0xfeff,
        ];
        c.is_control() || c == '\\' || ranges.iter().any(|range| range.contains(&c.into()))
    };
    let bad_name = |name: &str| {
        let drive = name.as_bytes().get(1) == Some(&b':') && name.starts_with(char::is_alphabetic);
        matches!(name, "" | "." | "..") || name.len() > 255 || name.starts_with('~') || drive
    };
    if text.is_empty() || text.len() > 4096 || text.starts_with('/') {
        Some("is empty, too long or absolute")
    } else if text.contains(hidden) {
        Some("has a character that must not be there")
    } else if text.split('/').any(bad_name) {
        Some("has a component that must not be there")
    } else if !is_nfc(text) {
        Some("is not composed")
    } else {
        None
    }
}

fn parse(text: &str) -> Result<String, PathError> {
    ProjectPath::parse(text).map(|path| path.as_str().to_owned())
}

#[test]
fn lesson_l14_no_spelling_of_a_path_makes_another_value() {
    for spelling in ["./.env", "a/../.env", ".env/", "././/.env", "a/b/../../.env/."] {
        assert_eq!(parse(spelling), Ok(".env".to_owned()), "{spelling}");
    }
    for spelling in
        [".fluffy//policy.yaml", "src/../.fluffy/policy.yaml", "./.fluffy/./policy.yaml"]
    {
        assert_eq!(parse(spelling), Ok(".fluffy/policy.yaml".to_owned()), "{spelling}");
    }
    for refused in [
        "/.env",
        "//.env",
        "/home/me/project/.env",
        "../project/.env",
        "~/project/.env",
        "C:/project/.env",
        "C:.env",
        ".\\.env",
        ".env\0",
        ".env\0.txt",
        ".env\n",
        "\u{200b}.env",
        ".en\u{ad}v",
    ] {
        assert!(parse(refused).is_err(), "{refused:?}");
    }
    for not_a_text in ["1", "null", "[\".env\"]", "{\"path\":\".env\"}"] {
        assert!(serde_json::from_str::<ProjectPath>(not_a_text).is_err(), "{not_a_text}");
    }
}

#[test]
fn lesson_l14_names_that_differ_in_case_stay_two_values_for_the_rules_to_fold() {
    assert_ne!(parse(".Fluffy/policy.yaml"), parse(".fluffy/policy.yaml"));
}

#[test]
fn lesson_l15_every_spelling_of_a_test_file_lies_beneath_tests() {
    let tests = ProjectPath::parse("tests").unwrap();
    for spelling in ["tests/x", "./tests/x", "src/../tests/x", "tests//x", "tests/./x/"] {
        assert!(ProjectPath::parse(spelling).unwrap().starts_with(&tests), "{spelling}");
    }
    assert!(parse("/home/me/project/tests/x").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn an_accepted_path_keeps_every_promise(text in prop_oneof![hostile(), mixed(), any::<String>()]) {
        if let Ok(path) = ProjectPath::parse(&text) {
            prop_assert_eq!(broken_invariant(&path), None, "{:?}", path);
            let json = serde_json::to_string(&path).unwrap();
            prop_assert_eq!(serde_json::from_str::<ProjectPath>(&json).unwrap(), path.clone());
            let again: ProjectPath = path.as_str().parse().unwrap();
            prop_assert_eq!(again, path);
        }
    }

    #[test]
    fn an_accepted_path_stays_beneath_any_root_it_is_joined_to(text in prop_oneof![hostile(), mixed()]) {
        if let Ok(path) = ProjectPath::parse(&text) {
            let root = Path::new("/home/me/project");
            let joined = root.join(path.as_str());
            prop_assert_eq!(&lexically_normal(&joined), &joined);
            prop_assert_eq!(joined.strip_prefix(root), Ok(Path::new(path.as_str())));
            prop_assert_eq!(joined.components().count(), 4 + path.components().count());
        }
    }

    #[test]
    fn a_path_is_refused_for_leading_out_exactly_when_it_does(
        components in prop::collection::vec(select(vec!["a", "b", "..", "..", ".", ""]), 1..10),
    ) {
        let text = format!("./{}", components.join("/"));
        let mut depth = 0_i32;
        let lowest = components.iter().map(|component| {
            depth += match *component { "" | "." => 0, ".." => -1, _ => 1 };
            depth
        }).min();
        let expected = match (lowest < Some(0), depth) {
            (true, _) => Some(PathError::Escapes(text.clone())),
            (false, 0) => Some(PathError::Root),
            (false, _) => None,
        };
        prop_assert_eq!(ProjectPath::parse(&text).err(), expected);
    }

    #[test]
    fn every_spelling_of_one_path_is_one_value(
        parts in prop::collection::vec((select(DETOURS.to_vec()), select(NAMES.to_vec())), 1..8),
        end in select(vec!["", "/", "//", "/.", "/x/..", "/./"]),
        decomposed in any::<bool>(),
    ) {
        let plain = parts.iter().map(|(_, name)| *name).collect::<Vec<_>>().join("/");
        let spelt: Vec<_> = parts.iter().map(|(detour, name)| format!("{detour}{name}")).collect();
        let mut spelling = format!("./{}{end}", spelt.join("/"));
        if decomposed {
            spelling = spelling.nfd().collect();
        }
        prop_assert_eq!(parse(&spelling), Ok(plain));
    }

    #[test]
    fn any_run_of_an_accepted_paths_components_is_accepted_as_it_stands(text in mixed()) {
        if let Ok(path) = ProjectPath::parse(&text) {
            let components: Vec<_> = path.components().collect();
            for start in 0..components.len() {
                let run = components[start..].join("/");
                prop_assert_eq!(parse(&run), Ok(run));
            }
            if let Some(parent) = path.parent() {
                prop_assert_eq!(parent.as_str().parse(), Ok(parent.clone()));
                prop_assert_eq!(parent.join(path.file_name()), Ok(path.clone()));
                prop_assert!(path.starts_with(&parent));
            }
        }
    }
}
