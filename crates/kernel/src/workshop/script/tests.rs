//! Lines that are understood, lines that are refused, and lines that are meant to do harm.

use std::path::Path;

use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Result<CommandScript, LineError> {
    parse_line(text, None, Path::new("/home/ada/project"))
}

/// The programs of a line with how they are joined, as one text.
#[track_caller]
fn shown(text: &str) -> String {
    let script = parse(text).unwrap();
    let step = |step: &ScriptStep| {
        let when = match step.when {
            RunWhen::Always => ";",
            RunWhen::Success => "&&",
            RunWhen::Failure => "||",
        };
        let not = if step.negated { "!" } else { "" };
        let programs: Vec<String> = step.programs.iter().map(|it| it.words().join(",")).collect();
        format!("{when}{not} {}", programs.join(" | "))
    };
    script.steps.iter().map(step).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn refused(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

fn path(text: &str) -> ProjectPath {
    ProjectPath::parse(text).unwrap()
}

#[test]
fn programs_are_joined_as_they_stand() {
    assert_eq!(shown("npm ci && npm test 2>&1 | tail -n 3"), "; npm,ci && npm,test | tail,-n,3");
    assert_eq!(shown("a || b; c\nd && ! e"), "; a || b ; c ; d &&! e");
    assert_eq!(shown("make CC=gcc"), "; make,CC=gcc");
}

#[test]
fn words_are_what_their_quotes_say() {
    assert_eq!(shown(r#"a 'b  $x' "c d" e\ f "g\"h\n" '' "#), "; a,b  $x,c d,e f,g\"h\\n,");
    assert_eq!(shown("a x\\\ny # a remark"), "; a,xy");
    assert_eq!(shown("A='one two'; B=2; p \"$A\" ${B}x $TZ"), "; p,one two,2x,UTC0");
    assert_eq!(shown("EMPTY=; p $EMPTY \"$EMPTY\""), "; p,");
    assert_eq!(shown("find . -exec cat {} +"), "; find,.,-exec,cat,{},+");
}

#[test]
fn variables_before_a_program_are_its_own() {
    let script = parse("FOO=1 BAR='x y' p; q").unwrap();
    let programs: Vec<_> = script.programs().collect();
    let own = [("FOO".to_owned(), "1".to_owned()), ("BAR".to_owned(), "x y".to_owned())];
    assert_eq!(programs[0].variables, own);
    assert!(programs[1].variables.is_empty());
}

#[test]
fn folder_at_the_beginning_is_where_it_starts() {
    let cwd = |text: &str| parse(text).unwrap().cwd;
    assert_eq!(cwd("cd a/b && p"), Some(path("a/b")));
    assert_eq!(cwd("cd /home/ada/project/a; p"), Some(path("a")));
    assert_eq!(cwd("cd a; cd ..; p"), None);
    for text in ["cd /etc && p", "cd ../x; p", "cd a || p", "p && cd a", "cd; p", "cd a b; p"] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn streams_lead_into_the_project() {
    let streams = |text: &str| parse(text).unwrap().steps[0].programs[0].redirections.clone();
    let file = |text: &str| FileTarget::Project(path(text));
    let one = |stream, target| vec![Redirection { stream, target }];
    assert_eq!(streams("p > a.txt"), one(1, RedirectTarget::Write(file("a.txt"))));
    assert_eq!(streams("cd d && p 2>> ../a"), one(2, RedirectTarget::Append(file("a"))));
    assert_eq!(streams("p < a"), one(0, RedirectTarget::Read(file("a"))));
    assert_eq!(streams("p 2>/dev/null"), one(2, RedirectTarget::Write(FileTarget::Null)));
    assert_eq!(streams("p 2>&1"), one(2, RedirectTarget::Same(1)));
    assert_eq!(streams("p &> a").len(), 2);
    assert_eq!(streams("p <<< 'a $b'"), one(0, RedirectTarget::Text("a $b\n".to_owned())));
    let document = streams("p <<'EOF'\n$(x)\nEOF\n");
    assert_eq!(document, one(0, RedirectTarget::Text("$(x)\n".to_owned())));
    let temporary = FileTarget::Temporary(path("x"));
    assert_eq!(streams("p > /tmp/x"), one(1, RedirectTarget::Write(temporary)));
}

#[test]
fn streams_out_of_the_project_are_refused() {
    for text in ["p > /etc/passwd", "p > ../x", "p > /tmp/../etc/x", "p > /dev/sda", "p < ~/x"] {
        assert!(parse(text).is_err(), "{text}");
    }
    assert!(refused("p > ../x").contains("a stream cannot lead to `../x`"));
    let script = parse("p > .git/hooks/pre-commit").unwrap();
    assert_eq!(script.written().collect::<Vec<_>>(), [&path(".git/hooks/pre-commit")]);
}

#[test]
fn what_needs_a_shell_is_refused_with_what_works() {
    for (text, what, instead) in [
        ("p $(q)", "the output of a command", "run that command first"),
        ("p `q`", "the output of a command", "run that command first"),
        ("p \"a $(q)\"", "the output of a command", "run that command first"),
        ("for x in a; do p; done", "a loop", "one call for each step"),
        ("if p; then q; fi", "a condition", "one call for each step"),
        ("(p; q)", "a subshell", "one call for each step"),
        ("{ p; }", "a group", "one call for each step"),
        ("f() { p; }", "a function", "one call for each step"),
        ("[[ a ]]", "a condition", "one call"),
        ("p &", "in the background", "leave the `&` out"),
        ("diff <(p) <(q)", "bracket", "one call"),
        ("p $((1+1))", "arithmetic", "the number itself"),
        ("p ~/x", "`~`", "from the project's root"),
        ("p ${X:-y}", "an expansion of a variable", "the value itself"),
        ("p $?", "an expansion of a variable", "the value itself"),
        ("p {a,b}", "the expansion", "write the words out"),
        ("p [ab]", "the pattern", "single quotes"),
        ("p <<E\n$X\nE", "here-document", "<<'EOF'"),
        ("export A=1; p", "`export`", "NAME=value"),
        ("set -e; p", "`set`", "&&"),
        ("source x", "`source`", "write a program"),
        ("p; A=1", "setting a variable", "at the beginning"),
        ("time p", "`time`", "leave it out"),
        ("p > /etc/x*", "a pattern", "without `*`"),
        ("p /etc/*", "a pattern of files outside", "name the files"),
        ("p 9> x", "a stream above 2", "0, 1 and 2"),
        ("A=\"a b\"; p $A", "a variable with spaces", "double quotes"),
    ] {
        let error = refused(text);
        assert!(error.contains(what) && error.contains(instead), "{text}: {error}");
    }
    assert!(refused("p $SECRET").contains("`$SECRET` has no value"));
    for text in ["p 'x", "p | | q", "&& p", "p &&", "p \"x"] {
        assert!(parse(text).is_err(), "{text}");
    }
    for text in ["", " ", "# only a remark", "A=1", "cd a"] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn no_word_becomes_another_program_later() {
    for text in ["PATH=. p", "LD_PRELOAD=x p", "PATH=.; p", "p*", "A=*; $A", "A=; $A x"] {
        assert!(parse(text).is_err(), "{text}");
    }
    let line = |text: &str| crate::CommandLine::from_script(parse(text).unwrap(), None);
    for text in [
        "X=sh; $X -c 'touch a'",
        "A=b; ba\"s\"h -c x",
        "p | env sh -c x",
        "p && /bin/ba\\sh x",
        "S='sh -c x'; q; env -S \"$S\"",
        "q; xargs ./*",
        "q | nice -n 5 zsh",
    ] {
        assert!(line(text).is_err(), "{text}");
    }
    line("p | xargs grep use").unwrap();
}

#[test]
fn large_lines_are_refused_before_they_are_read() {
    assert_eq!(parse(&"a | ".repeat(10_000)), Err(LineError::Long));
    assert_eq!(parse(&("a | ".repeat(1_000) + "b")), Err(LineError::Programs));
    assert_eq!(parse(&("a; ".repeat(1_000))), Err(LineError::Programs));
    assert_eq!(parse("a \0 b"), Err(LineError::Nul));
    for open in ["(", "{ ", "$(", "`", "${a:-", "if ", "! ", "((", "[[ ( ", "\"$(", "case x in a) "]
    {
        let text: String = open.repeat(16_000 / open.len());
        assert_eq!(parse(&text), Err(LineError::Nested), "{open}");
        // As many as are let through end the process nowhere.
        assert!(parse(&open.repeat(120)).is_err(), "{open}");
    }
    assert!(parse(&"<<a ".repeat(4_000)).is_err());
    assert!(parse(&format!("cat <<'E'\n{}", "x\n".repeat(8_000))).is_err());
}

#[test]
fn orders_are_read_strictly() {
    for text in ["", "{}", "[]", r#"{"root":"/","script":{"cwd":"../x","steps":[]}}"#] {
        assert_eq!(pipeline_host(text.as_bytes()), 126, "{text}");
    }
    let more = r#"{"root":"/","script":{"cwd":null,"steps":[]},"more":1}"#;
    assert_eq!(pipeline_host(more.as_bytes()), 126);
    assert_eq!(pipeline_host(&br#"{"root":"/","script":{"cwd":null,"steps":[]}}"#[..]), 0);
}

proptest! {
    /// Whatever a line is, it is understood or refused; what is understood has no word that is worked out later.
    #[test]
    fn any_line_is_understood_or_refused(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "a", "b=c", " ", "|", "||", "&&", "&", ";", "\n", "'", "\"", "\\", "$", "$x", "${", "}",
                "(", ")", "{", "`", "<", ">", ">>", "<<", "<<<", "2>&1", "&>", "*", "?", "[", "]", "!",
                "#", "~", "if", "then", "fi", "for", "in", "do", "done", "case", "esac", "EOF", "\t",
                "é", "\u{202e}", "cd", "sh", "/dev/null", "..", "/", "$((", "))", "function", "[[", "]]",
            ]),
            0..60,
        )
    ) {
        let text: String = parts.concat();
        if let Ok(script) = parse(&text) {
            prop_assert!(!script.steps.is_empty());
            for program in script.programs() {
                prop_assert!(!program.program.trim().is_empty());
                prop_assert!(!program.program.contains(['*', '?', '$', '`']) || text.contains(['\'', '"', '\\']) || !program.program.contains(['*', '?', '`']));
            }
        }
    }

    #[test]
    fn any_text_is_understood_or_refused(text in "\\PC{0,200}") {
        let _either = parse(&text);
    }

    /// A word in single quotes is that word.
    #[test]
    fn quoted_words_stay_what_they_are(word in "[^'\u{0}]{0,60}") {
        let script = parse(&format!("p '{word}'")).unwrap();
        let words = script.programs().next().unwrap().words();
        prop_assert_eq!(words, ["p".to_owned(), word]);
    }
}
