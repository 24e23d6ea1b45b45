//! Joins two changes of one text.
//!
//! **Invariant.** Nothing is guessed: where both sides changed lines that touch each other, and not to the
//! same text, it is a conflict.

use std::iter::Peekable;
use std::ops::Range;
use std::vec::IntoIter;

use crate::staging::{Edit, edits, is_binary, lines};

/// Texts over this size are not joined.
const LARGEST: usize = 4 << 20;

/// What two changes of one text are together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Joined {
    /// This text.
    Clean(Vec<u8>),
    /// Not one text: both sides with marks around where they differ.
    Conflict(Vec<u8>),
    /// Nothing that could be compared line by line.
    NoText,
}

/// Joins what `theirs` and `ours` made of `base`.
pub(super) fn join(base: &[u8], theirs: &[u8], ours: &[u8]) -> Joined {
    if [base, theirs, ours].iter().any(|text| text.len() > LARGEST || is_binary(text)) {
        return Joined::NoText;
    }
    let (base, theirs, ours) = (lines(base), lines(theirs), lines(ours));
    let mut joining = Joining {
        theirs: Side::new(&base, theirs),
        ours: Side::new(&base, ours),
        base,
        out: Vec::new(),
        conflict: false,
    };
    joining.run();
    let Joining { out, conflict, .. } = joining;
    if conflict { Joined::Conflict(out) } else { Joined::Clean(out) }
}

struct Side<'a> {
    lines: Vec<&'a [u8]>,
    /// What it changed and was not passed yet; `old` is the base.
    parts: Peekable<IntoIter<Edit>>,
    /// Where in this side's text the line of the base stands that comes next.
    at: usize,
}

impl<'a> Side<'a> {
    fn new(base: &[&'a [u8]], lines: Vec<&'a [u8]>) -> Self {
        Self { parts: edits(base, &lines).into_iter().peekable(), lines, at: 0 }
    }

    fn next_start(&mut self) -> Option<usize> {
        self.parts.peek().map(|part| part.old.start)
    }

    fn text(&self, range: Range<usize>) -> Vec<u8> {
        self.lines.get(range).unwrap_or_default().concat()
    }
}

struct Joining<'a> {
    base: Vec<&'a [u8]>,
    theirs: Side<'a>,
    ours: Side<'a>,
    out: Vec<u8>,
    conflict: bool,
}

impl Joining<'_> {
    fn run(&mut self) {
        let mut at = 0;
        loop {
            let start = match (self.theirs.next_start(), self.ours.next_start()) {
                (None, None) => break,
                (Some(one), None) | (None, Some(one)) => one,
                (Some(theirs), Some(ours)) => theirs.min(ours),
            };
            self.keep(at..start);
            at = self.region(start);
        }
        self.keep(at..self.base.len());
    }

    /// Lines that nobody changed.
    fn keep(&mut self, lines: Range<usize>) {
        self.theirs.at += lines.len();
        self.ours.at += lines.len();
        for line in self.base.get(lines).unwrap_or_default() {
            self.out.extend_from_slice(line);
        }
    }

    /// Lines that somebody changed, as far as changes touch each other. Gives their end in the base.
    fn region(&mut self, start: usize) -> usize {
        let mut end = start;
        let (mut theirs, mut ours) = (Taken::new(&self.theirs), Taken::new(&self.ours));
        while let Some(to) =
            theirs.touching(&mut self.theirs, end).or_else(|| ours.touching(&mut self.ours, end))
        {
            end = to;
        }
        let base = self.base.get(start..end).unwrap_or_default().concat();
        let (their_text, our_text) =
            (theirs.text(&mut self.theirs, start..end), ours.text(&mut self.ours, start..end));
        if !ours.changed || our_text == their_text {
            self.out.extend_from_slice(&their_text);
        } else if !theirs.changed {
            self.out.extend_from_slice(&our_text);
        } else {
            self.conflict = true;
            for (mark, text) in [
                ("<<<<<<< the project", &*their_text),
                ("||||||| before", &*base),
                ("=======", &*our_text),
                (">>>>>>> the session", b"".as_slice()),
            ] {
                self.mark(mark);
                self.out.extend_from_slice(text);
            }
        }
        end
    }

    fn mark(&mut self, mark: &str) {
        if self.out.last().is_some_and(|byte| *byte != b'\n') {
            self.out.push(b'\n');
        }
        self.out.extend_from_slice(mark.as_bytes());
        self.out.push(b'\n');
    }
}

/// What one side made of a region.
struct Taken {
    from: usize,
    /// Lines more than the base has, and lines fewer.
    more: usize,
    fewer: usize,
    changed: bool,
}

impl Taken {
    fn new(side: &Side<'_>) -> Self {
        Self { from: side.at, more: 0, fewer: 0, changed: false }
    }

    /// Takes the next change if it touches what was taken so far; gives how far that reaches now.
    fn touching(&mut self, side: &mut Side<'_>, end: usize) -> Option<usize> {
        let part = side.parts.next_if(|part| part.old.start <= end)?;
        self.more += part.new.len();
        self.fewer += part.old.len();
        self.changed = true;
        Some(part.old.end.max(end))
    }

    /// This side's lines for a region of the base.
    fn text(&self, side: &mut Side<'_>, region: Range<usize>) -> Vec<u8> {
        let length = (region.len() + self.more).saturating_sub(self.fewer);
        side.at = self.from + length;
        side.text(self.from..side.at)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests ask the real git")]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn check(base: &str, theirs: &str, ours: &str, clean: Option<&str>) {
        let expected = clean.map(|text| Joined::Clean(text.as_bytes().to_vec()));
        for (one, other) in [(theirs, ours), (ours, theirs)] {
            let joined = join(base.as_bytes(), one.as_bytes(), other.as_bytes());
            match &expected {
                Some(expected) => assert_eq!(&joined, expected),
                None => assert!(matches!(joined, Joined::Conflict(_)), "{joined:?}"),
            }
        }
    }

    #[test]
    fn changes_in_different_places_are_joined() {
        let base = "1\n2\n3\n4\n5\n";
        check(base, "one\n2\n3\n4\n5\n", "1\n2\n3\n4\nfive\n", Some("one\n2\n3\n4\nfive\n"));
        check(base, "0\n1\n2\n3\n4\n5\n", "1\n2\n4\n5\n", Some("0\n1\n2\n4\n5\n"));
        check(base, base, "1\n", Some("1\n"));
        check(base, "1\nX\n3\n4\n5\n", "1\nX\n3\n4\n5\n", Some("1\nX\n3\n4\n5\n"));
        check("", "", "new\n", Some("new\n"));
    }

    #[test]
    fn changes_that_touch_each_other_are_a_conflict() {
        let base = "1\n2\n3\n";
        check(base, "1\nX\n3\n", "1\nY\n3\n", None);
        check(base, "1\nX\n3\n", "1\n2\nY\n", None);
        check(base, "1\n2\n3\nX\n", "1\n2\n3\nY\n", None);
        check(base, "1\n3\n", "1\nY\n3\n", None);
        check("", "X\n", "Y\n", None);
        check("1", "1\n2", "1\n3", None);
    }

    #[test]
    fn a_conflict_shows_both_sides() {
        let joined = join(b"1\n2\n3\n", b"1\nX\n3\n", b"1\nY");
        let expected =
            "1\n<<<<<<< the project\nX\n3\n||||||| before\n2\n3\n=======\nY\n>>>>>>> the session\n";
        assert_eq!(joined, Joined::Conflict(expected.into()));
        assert_eq!(join(b"\0", b"a", b"b"), Joined::NoText);
    }

    /// What git makes of it; nothing if that is a conflict.
    fn git(base: &[u8], theirs: &[u8], ours: &[u8]) -> Option<Vec<u8>> {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("base", base), ("theirs", theirs), ("ours", ours)] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let run = Command::new("git")
            .args(["merge-file", "-p", "-q", "--diff3", "ours", "base", "theirs"])
            .current_dir(dir.path())
            .output()
            .unwrap();
        run.status.success().then_some(run.stdout)
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(0..12_u8, 0..14).prop_map(|lines| {
            lines.iter().flat_map(|line| format!("line {line}\n").into_bytes()).collect()
        })
    }

    fn edited(base: &[u8], cuts: &[(u8, bool)]) -> Vec<u8> {
        let mut lines: Vec<Vec<u8>> = lines(base).into_iter().map(<[u8]>::to_vec).collect();
        for (number, (at, insert)) in cuts.iter().enumerate() {
            let at = usize::from(*at) % (lines.len() + 1);
            if *insert {
                lines.insert(at, format!("new {number}\n").into_bytes());
            } else if at < lines.len() {
                lines.remove(at);
            }
        }
        lines.concat()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_joined_is_what_git_joins(
            base in text(),
            theirs in proptest::collection::vec((any::<u8>(), any::<bool>()), 0..3),
            ours in proptest::collection::vec((any::<u8>(), any::<bool>()), 0..3),
        ) {
            let (theirs, ours) = (edited(&base, &theirs), edited(&base, &ours));
            // Where lines repeat, several shortest differences are right: git may find another.
            let mut unique = lines(&base);
            unique.sort();
            unique.dedup();
            prop_assume!(unique.len() == lines(&base).len());
            match join(&base, &theirs, &ours) {
                Joined::Clean(text) => prop_assert_eq!(Some(text), git(&base, &theirs, &ours)),
                Joined::Conflict(_) => {}
                Joined::NoText => prop_assert!(false),
            }
        }

        #[test]
        fn one_side_alone_is_taken_whole(base in text(), other in text()) {
            prop_assert_eq!(join(&base, &base, &other), Joined::Clean(other.clone()));
            prop_assert_eq!(join(&base, &other, &base), Joined::Clean(other.clone()));
            prop_assert_eq!(join(&base, &other, &other), Joined::Clean(other));
        }
    }
}
