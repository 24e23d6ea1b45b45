//! Arguments, and trouble as a line of JSON.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use fluffy_boot::{Runtime, Trouble, parse};

/// One line of printable characters, in which strings are those of JSON.
#[track_caller]
pub(crate) fn check_inert(line: &str) {
    let steers = |c: char| c.is_control() || matches!(c, '\u{200b}'..='\u{206f}');
    assert!(!line.contains(steers), "{line:?}");
    let mut chars = line.chars();
    let mut inside = false;
    while let Some(c) = chars.next() {
        match c {
            '"' => inside = !inside,
            '\\' => match chars.next().unwrap() {
                'u' => assert!((0..4).all(|_| chars.next().unwrap().is_ascii_hexdigit())),
                c => assert!(matches!(c, '"' | '\\'), "{c}"),
            },
            c => assert!(inside || "{}:,".contains(c) || c.is_ascii_digit(), "{c}"),
        }
    }
    assert!(!inside);
}

fn trouble(text: &str) -> Trouble {
    let [what, why, fix] = ["what: ", "why: ", "fix: "].map(|word| format!("{word}{text}"));
    Trouble { code: 4, what, why, fix }
}

#[test]
fn boo_1_trouble_is_one_line_of_json() {
    let line = trouble("a\n\"b\"").to_line();
    let expected = r#"{"what":"what: a\u000a\"b\"","why":"why: a\u000a\"b\"","fix":"fix: a\u000a\"b\"","code":4}"#;
    assert_eq!(line, expected);
}

#[test]
fn trouble_in_hostile_words_is_read_as_it_was_written() {
    let every: String = (0..0x3000).filter_map(char::from_u32).collect();
    let texts = [
        "",
        "\\",
        "\\\"",
        "\",\"why\":\"",
        "\\u0041",
        "\0\u{1b}[2J",
        "}\n{",
        "\u{10ffff}😀",
        &every,
    ];
    for text in texts {
        let trouble = trouble(text);
        let line = trouble.to_line();
        check_inert(&line);
        assert_eq!(Trouble::from_line(&line), Some(trouble));
    }
}

#[test]
fn a_line_that_is_not_exactly_trouble_is_none() {
    let line = trouble("x").to_line();
    for end in (0..line.len()).filter(|end| line.is_char_boundary(*end)) {
        assert_eq!(Trouble::from_line(&line[..end]), None);
    }
    for other in [
        "null",
        "{}",
        r#"{"what":1,"why":"","fix":"","code":1}"#,
        r#"{"what":"","why":"","fix":"","code":256}"#,
        r#"{"what":"","why":"","fix":"","code":-1}"#,
        r#"{"what":"","why":"","fix":"","code":1} "#,
        r#"{"what":"","fix":"","why":"","code":1}"#,
        r#"{"what":"\ud800","why":"","fix":"","code":1}"#,
        r#"{"what":"\u12é","why":"","fix":"","code":1}"#,
        r#"{"what":"\u1","why":"","fix":"","code":1}"#,
    ] {
        assert_eq!(Trouble::from_line(other), None, "{other}");
    }
}

#[test]
fn no_line_is_too_odd_to_be_read() {
    // Pieces of lines in every order that a small generator comes across.
    let pieces = [
        "{\"what\":",
        "\"",
        "\\",
        "u",
        "00e9",
        ",\"why\":",
        ",\"fix\":",
        ",\"code\":",
        "7",
        "}",
        "é",
        "\0",
    ];
    let mut state: u64 = 7;
    for _ in 0..200_000 {
        let mut line = String::new();
        for _ in 0..12 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            line.push_str(pieces[usize::try_from(state >> 40).unwrap() % pieces.len()]);
        }
        if let Some(read) = Trouble::from_line(&line) {
            assert_eq!(Trouble::from_line(&read.to_line()), Some(read));
        }
    }
}

fn words(line: &str) -> impl Iterator<Item = OsString> {
    line.split(' ').filter(|word| !word.is_empty()).map(OsString::from)
}

#[test]
fn boo_1_arguments_say_what_to_start() {
    let boot = parse(words("--log /l --socket /s -- /p --socket -- x")).unwrap();
    assert_eq!((boot.socket, boot.log, boot.program), ("/s".into(), "/l".into(), "/p".into()));
    assert_eq!(boot.arguments, ["--socket", "--", "x"]);
    assert_eq!((boot.runtime, boot.patience.as_secs()), (Runtime::Native, 30));
    let boot = parse(words("--runtime podman --socket /s --log /l -- /p")).unwrap();
    assert_eq!(boot.runtime, Runtime::Podman);
}

#[test]
fn arguments_that_are_not_understood_are_refused() {
    for (line, why) in [
        ("", "`-- PROGRAM` is missing"),
        ("--socket", "`-- PROGRAM` is missing"),
        ("--socket /s --log /l", "`-- PROGRAM` is missing"),
        ("--socket /s --log /l --", "`PROGRAM` needs an absolute path"),
        ("--socket /s --log /l -- p", "`PROGRAM` needs an absolute path"),
        ("--socket s --log /l -- /p", "`--socket` needs an absolute path"),
        ("--socket /s -- /p", "`--log` needs an absolute path"),
        ("--socket /s --socket /t --log /l -- /p", "`--socket` is given twice"),
        ("--socket /s --log /l --runtime lxc -- /p", "there is no such `--runtime`"),
        ("--socket /s --log /l --unsafe -- /p", "`--unsafe` is not an option"),
        ("/p", "`/p` is not an option"),
    ] {
        let trouble = parse(words(line)).unwrap_err();
        assert_eq!((trouble.code, trouble.why.as_str()), (2, why), "{line}");
        check_inert(&trouble.to_line());
    }
    let bytes = OsString::from_vec(b"\xff\x1b".to_vec());
    check_inert(&parse([bytes].into_iter()).unwrap_err().to_line());
}
