//! Replaces a text in a file's text, or says why it cannot. Pure.

use super::file_host::{Like, Refused};

/// The text with `old` replaced by `new`: its one place, or all of them.
///
/// In a text whose lines all end in CRLF, line ends of `old` and `new` that are given as LF mean CRLF: a text
/// that is read line by line does not show them, and the file keeps the ends that it has.
pub(super) fn replaced(text: &str, old: &str, new: &str, all: bool) -> Result<String, Refused> {
    if old.is_empty() {
        return Err(Refused::Empty);
    }
    let (old, new) = match is_crlf(text) && !old.contains('\r') && !new.contains('\r') {
        true => (old.replace('\n', "\r\n"), new.replace('\n', "\r\n")),
        false => (old.to_owned(), new.to_owned()),
    };
    if old == new {
        return Err(Refused::Same);
    }
    let Some(first) = text.find(&old) else {
        return Err(Refused::Absent { like: like(text, &old) });
    };
    if all {
        return Ok(text.replace(&old, &new));
    }
    // Places may overlap, as `aa` does in `aaa`: then, too, it is not known which is meant.
    let next = text.ceil_char_boundary(first + 1);
    if text.get(next..).is_some_and(|rest| rest.contains(&old)) {
        let count = text.matches(&old).count().max(2);
        return Err(Refused::Ambiguous { count: count as u64 });
    }
    Ok(text.replacen(&old, &new, 1))
}

/// Whether every line ends in CRLF, and there is a line.
fn is_crlf(text: &str) -> bool {
    let ends = text.matches('\n').count();
    ends > 0 && text.matches("\r\n").count() == ends
}

/// What would have to be read differently for `old` to occur.
fn like(text: &str, old: &str) -> Like {
    let ends = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
    let (text, old) = (ends(text), ends(old));
    if text.contains(&old) {
        return Like::LineEnds;
    }
    let spaces = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let old = spaces(&old);
    if !old.is_empty() && spaces(&text).contains(&old) { Like::WhiteSpace } else { Like::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, old: &str, new: &str, expected: Result<&str, Refused>) {
        assert_eq!(replaced(text, old, new, false), expected.map(str::to_owned));
    }

    #[test]
    fn one_place_is_replaced_and_two_are_not_guessed_at() {
        check("a b c", "b", "x", Ok("a x c"));
        check("ä ö ä", "ö", "", Ok("ä  ä"));
        check("a b a", "a", "x", Err(Refused::Ambiguous { count: 2 }));
        check("aaa", "aa", "x", Err(Refused::Ambiguous { count: 2 }));
        check("äää", "ää", "x", Err(Refused::Ambiguous { count: 2 }));
        check("a", "", "x", Err(Refused::Empty));
        check("a", "a", "a", Err(Refused::Same));
        assert_eq!(replaced("a b a", "a", "x", true).unwrap(), "x b x");
    }

    #[test]
    fn what_does_not_occur_is_told_from_what_nearly_does() {
        let absent = |like| Err(Refused::Absent { like });
        check("a\nb", "a\r\nb", "x", absent(Like::LineEnds));
        check("a\r\nb\nc", "a\nb", "x", absent(Like::LineEnds));
        check("if x {\n\ty\n}", "if x {\n    y\n}", "z", absent(Like::WhiteSpace));
        check("abc", "abd", "x", absent(Like::Nothing));
        check("abc", "  ", "x", absent(Like::Nothing));
    }

    #[test]
    fn a_file_keeps_its_line_ends() {
        check("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", Ok("x\r\ny\r\nc\r\n"));
        check("a\r\nb\r\n", "a\r\nb", "x", Ok("x\r\n"));
        check("a\nb\r\n", "a\n", "x\n", Ok("x\nb\r\n"));
    }
}
