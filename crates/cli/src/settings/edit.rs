//! Changes one setting in the text of a file and leaves every other byte as it is.
//!
//! Lines are put in, replaced or taken out; what that gives is read again. **Invariant.** A text that says anything
//! else than before, but for the one setting, is never given out: what cannot be done safely is not done.

use std::collections::BTreeMap;
use std::ops::Range;

use fluffy_policy::yaml::{self, Field, Member, Node};

use crate::settings::value::written;

/// What a file says, by the parts of each name.
type Sayings = BTreeMap<Vec<String>, Saying>;

/// What stands under one name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Saying {
    One(String),
    Several(Vec<String>),
}

/// The text with this setting saying this, a value as YAML in one line; or why not.
pub(crate) fn set(text: &str, parts: &[String], value: &str) -> Result<String, String> {
    let node = parsed(text)?;
    let mut expected = sayings(node.as_ref())?;
    let said = parsed(value)?.as_ref().and_then(|node| saying(&node.root()));
    expected.insert(parts.to_vec(), said.ok_or("the value cannot be written in one line")?);
    let found = found(node.as_ref(), parts);
    let fresh = match found {
        Found::Value(member) => replaced(text, &member, value)?,
        Found::Section { header, indent, known } => {
            let rest = parts.get(known..).unwrap_or_default();
            inserted(text, header, &lines(rest, value, &indent, ending(text)))
        }
        Found::Nothing => {
            let end = ending(text);
            let gap = if text.is_empty() || text.ends_with('\n') { "" } else { end };
            format!("{text}{gap}{}", lines(parts, value, "", end))
        }
    };
    checked(fresh, &expected)
}

/// The text without this setting, or why not. Nothing if it does not say it.
pub(crate) fn unset(text: &str, parts: &[String]) -> Result<Option<String>, String> {
    let node = parsed(text)?;
    let mut expected = sayings(node.as_ref())?;
    let Found::Value(member) = found(node.as_ref(), parts) else { return Ok(None) };
    expected.remove(parts);
    let range =
        value_bytes(text, &member.value).unwrap_or_else(|| line_bytes(text, member.place.0));
    let line = line_bytes(text, member.place.0);
    let whole = text.get(line.clone()).unwrap_or_default();
    let alone = whole.trim_start().starts_with(&*written(member.key));
    if !alone || range.start < line.start || range.end > line.end {
        return Err(format!("it does not stand alone in line {}", member.place.0));
    }
    let (before, after) = (text.get(..line.start), text.get(line.end..));
    let fresh = format!("{}{}", before.unwrap_or_default(), after.unwrap_or_default());
    checked(fresh, &expected).map(Some)
}

/// Where a setting stands, or should.
enum Found<'a> {
    /// It is there.
    Value(Member<'a>),
    /// It is not, but a section above it is: the line of its name, how far what is below is set in, and how many of the
    /// parts are known by it.
    Section { header: u64, indent: String, known: usize },
    /// Nothing of it is there.
    Nothing,
}

fn found<'a>(node: Option<&'a Node>, parts: &[String]) -> Found<'a> {
    let mut found = Found::Nothing;
    let Some(mut field) = node.map(Node::root) else { return found };
    for (at, part) in parts.iter().enumerate() {
        let members = field.placed_members().unwrap_or_default();
        let Some(member) = members.into_iter().find(|member| member.key == part) else { break };
        if at + 1 == parts.len() {
            return Found::Value(member);
        }
        let (header, column) = member.place;
        let first = member.value.placed_members().and_then(|members| members.into_iter().next());
        let inner = first.map_or(column + 2, |first| first.place.1);
        let indent = " ".repeat(usize::try_from(inner).unwrap_or(1).saturating_sub(1));
        found = Found::Section { header, indent, known: at + 1 };
        field = member.value;
    }
    found
}

/// The text with another value in the place of this one.
fn replaced(text: &str, member: &Member<'_>, value: &str) -> Result<String, String> {
    let line = line_bytes(text, member.place.0);
    let range = if member.value.is_empty() {
        // Right behind the colon, before whatever else is in the line.
        let whole = text.get(line.clone()).unwrap_or_default();
        let colon = whole.find(':').map(|at| line.start + at + 1);
        let colon = colon.ok_or_else(|| format!("line {} is not understood", member.place.0))?;
        return Ok(splice(text, colon..colon, &format!(" {value}")));
    } else {
        value_bytes(text, &member.value)
    };
    let range = range.filter(|range| range.start >= line.start && range.end <= line.end);
    let several = || format!("its value does not stand alone in line {}", member.place.0);
    range.map(|range| splice(text, range, value)).ok_or_else(several)
}

/// The bytes of a value that ends in the line in which it begins.
fn value_bytes(text: &str, field: &Field<'_>) -> Option<Range<usize>> {
    let start = field.bytes()?;
    if field.scalar().is_some() {
        return text.get(start.clone()).filter(|text| !text.contains('\n')).map(|_| start);
    }
    let rest = text.get(start.start..)?;
    let mut quote = None;
    for (at, c) in rest.char_indices().take_while(|(_, c)| *c != '\n') {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, ']') => return Some(start.start..start.start + at + 1),
            _ => {}
        }
    }
    None
}

fn splice(text: &str, range: Range<usize>, put: &str) -> String {
    let (before, after) = (text.get(..range.start), text.get(range.end..));
    format!("{}{put}{}", before.unwrap_or_default(), after.unwrap_or_default())
}

/// The text with lines put in behind a line.
fn inserted(text: &str, behind: u64, lines: &str) -> String {
    let at = line_bytes(text, behind).end;
    let before = text.get(..at).unwrap_or_default();
    let gap = if before.ends_with('\n') { "" } else { ending(text) };
    splice(text, at..at, &format!("{gap}{lines}"))
}

/// The bytes of a line, its end included.
fn line_bytes(text: &str, number: u64) -> Range<usize> {
    let mut start = 0;
    for (line, at) in text.split_inclusive('\n').zip(1_u64..) {
        if at == number {
            return start..start + line.len();
        }
        start += line.len();
    }
    start..start
}

/// A setting in lines of its own.
fn lines(parts: &[String], value: &str, indent: &str, end: &str) -> String {
    let mut lines = String::new();
    for (at, part) in parts.iter().enumerate() {
        let key = written(part);
        let value = if at + 1 == parts.len() { format!(" {value}") } else { String::new() };
        lines += &format!("{indent}{}{key}:{value}{end}", "  ".repeat(at));
    }
    lines
}

/// How lines end here.
fn ending(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn parsed(text: &str) -> Result<Option<Node>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    yaml::parse(text).map(Some).map_err(|problem| problem.what.to_string())
}

/// The text, if it says what is expected and nothing else.
fn checked(text: String, expected: &Sayings) -> Result<String, String> {
    let unsafe_here = || "the file is not written line by line".to_owned();
    let node = parsed(&text).map_err(|_| unsafe_here())?;
    let now = sayings(node.as_ref()).map_err(|_| unsafe_here())?;
    if now == *expected { Ok(text) } else { Err(unsafe_here()) }
}

fn sayings(node: Option<&Node>) -> Result<Sayings, String> {
    let mut sayings = Sayings::new();
    if let Some(node) = node {
        gather(&node.root(), &[], &mut sayings)?;
    }
    Ok(sayings)
}

fn gather(field: &Field<'_>, parts: &[String], sayings: &mut Sayings) -> Result<(), String> {
    if field.is_empty() {
        return Ok(());
    }
    let Some(members) = field.placed_members() else {
        let one = saying(field).ok_or("it has lists of something else than texts")?;
        sayings.insert(parts.to_vec(), one);
        return Ok(());
    };
    members.iter().try_for_each(|member| {
        let mut below = parts.to_vec();
        below.push(member.key.to_owned());
        gather(&member.value, &below, sayings)
    })
}

fn saying(field: &Field<'_>) -> Option<Saying> {
    let several = || {
        let texts = field.texts().ok()?;
        Some(Saying::Several(texts.into_iter().map(|(_, text)| text.to_owned()).collect()))
    };
    field.scalar().map(Saying::One).or_else(several)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(name: &str) -> Vec<String> {
        name.split('.').map(str::to_owned).collect()
    }

    #[track_caller]
    fn check_set(before: &str, name: &str, value: &str, after: &str) {
        assert_eq!(set(before, &parts(name), value).as_deref(), Ok(after), "{before}");
    }

    #[test]
    fn cli_4_setting_one_thing_leaves_every_other_byte_as_it_is() {
        check_set("", "mode", "strict", "mode: strict\n");
        check_set("", "test.command", "[make, test]", "test:\n  command: [make, test]\n");
        check_set(
            "# mine\nmode: debug   # for now\n",
            "mode",
            "strict",
            "# mine\nmode: strict   # for now\n",
        );
        check_set("mode: 'a b'\nmodel: x", "mode", "strict", "mode: strict\nmodel: x");
        check_set("model: x", "mode", "strict", "model: x\nmode: strict\n");
        check_set("a: 1\r\nb: 2\r\n", "c.d", "3", "a: 1\r\nb: 2\r\nc:\r\n  d: 3\r\n");
        check_set("a: 1\r\nb: 2 # x\r\n", "a", "3", "a: 3\r\nb: 2 # x\r\n");
        check_set(
            "test:\n    # how\n    command: [x] # why\n\n# end\n",
            "test.coverage",
            "a.info",
            "test:\n    coverage: a.info\n    # how\n    command: [x] # why\n\n# end\n",
        );
        check_set(
            "test:\n  command: [\"a ] b\", 'c'] # why\n",
            "test.command",
            "[make]",
            "test:\n  command: [make] # why\n",
        );
        check_set("test:\nmode: x\n", "test.coverage", "a", "test:\n  coverage: a\nmode: x\n");
        check_set("mode:   # none yet\n", "mode", "strict", "mode: strict   # none yet\n");
        check_set(
            "p:\n  work:\n    url: https://a\n",
            "p.work.prices.input",
            "3",
            "p:\n  work:\n    prices:\n      input: 3\n    url: https://a\n",
        );
        check_set("été: é # ü\nmode: a\n", "mode", "b", "été: é # ü\nmode: b\n");
    }

    #[test]
    fn cli_4_what_cannot_be_set_safely_is_refused() {
        for (text, name) in [
            ("{mode: strict}\n", "model"),
            ("test: {command: [x]}\n", "test.coverage"),
            ("test: ~\n", "test.coverage"),
            ("no_proxy:\n  - a\n  - b\n", "no_proxy"),
            ("model: >\n  long\n  text\n", "model"),
            ("model: \"long\n  text\"\n", "model"),
            ("mode: strict\n...\n", "model"),
            ("a: [[1]]\n", "mode"),
            ("a: &x 1\nb: *x\n", "mode"),
            ("mode: [\n  strict\n]\n", "mode"),
            ("test: x\n", "test.command"),
            ("a: 1\na: 2\n", "mode"),
        ] {
            let refused = set(text, &parts(name), "x");
            assert!(refused.is_err(), "{text}: {refused:?}");
        }
    }

    #[test]
    fn cli_4_unsetting_takes_one_line_out_or_nothing() {
        let unset = |text: &str, name: &str| unset(text, &parts(name));
        let said = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(unset("a: 1\n# b\nb: 2 # c\nc: 3\n", "b"), said("a: 1\n# b\nc: 3\n"));
        assert_eq!(unset("t:\r\n  a: [x, y]\r\n  b: 2\r\n", "t.a"), said("t:\r\n  b: 2\r\n"));
        assert_eq!(unset("t:\n  a: 1", "t.a"), said("t:\n"));
        assert_eq!(unset("mode:\na: 1\n", "mode"), said("a: 1\n"));
        assert_eq!(unset("a: 1\n", "b"), Ok(None));
        assert_eq!(unset("", "b"), Ok(None));
        for (text, name) in [
            ("t: {a: 1, b: 2}\n", "t.a"),
            ("t: {a: 1}\n", "t.a"),
            ("a:\n  - x\n", "a"),
            ("{a: 1}", "a"),
            ("a: |\n  x\n", "a"),
        ] {
            assert!(unset(text, name).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn cli_4_no_text_makes_an_edit_panic_or_change_something_else(
            text in "(mode|test|a|  command|  - |\"|'|\\[|\\]|\\{|\\}|: |:|#|é|\n|\r\n| |x){0,24}",
            name in "mode|test\\.command|a",
            value in "x|\\[a, \"b\"\\]|3",
        ) {
            let parts = parts(&name);
            if let Ok(fresh) = set(&text, &parts, &value) {
                let mut before = sayings(parsed(&text).unwrap().as_ref()).unwrap();
                let mut after = sayings(parsed(&fresh).unwrap().as_ref()).unwrap();
                before.remove(&parts);
                proptest::prop_assert!(after.remove(&parts).is_some());
                proptest::prop_assert_eq!(before, after);
            }
            let _whatever = unset(&text, &parts);
        }
    }
}
