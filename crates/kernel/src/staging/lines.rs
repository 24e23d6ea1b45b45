//! Which lines differ between two texts.
//!
//! Myers' greedy algorithm on interned lines: the fewest lines that can be called changed. What a model
//! writes is compared here, so both memory and time are bounded: texts that differ in more than [`MOST`]
//! lines are called different as a whole between their common beginning and end. That is correct, only
//! not the shortest, and counts too many lines rather than too few.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Changed lines beyond which no shortest answer is looked for.
const MOST: usize = 3_000;

/// Steps beyond which it is not looked for either: long texts that agree in few places.
const LONGEST: usize = 100_000_000;

/// Lines of the old text that others of the new text stand for. At least one of the two is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
}

/// The lines of a text, each with its end.
pub(crate) fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// What differs, in order. Between two edits there is at least one line that both texts have.
pub(crate) fn edits<'a>(old: &[&'a [u8]], new: &[&'a [u8]]) -> Vec<Edit> {
    let mut known = HashMap::new();
    let (old, new) = (numbered(old, &mut known), numbered(new, &mut known));
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (old.get(start..).unwrap_or_default(), new.get(start..).unwrap_or_default());
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let old = old.get(..old.len() - end).unwrap_or_default();
    let new = new.get(..new.len() - end).unwrap_or_default();
    let marks = marked(old, new);
    let shifted = |range: Range<usize>| range.start + start..range.end + start;
    let found = marks.edits().into_iter();
    found.map(|edit| Edit { old: shifted(edit.old), new: shifted(edit.new) }).collect()
}

/// The same number for the same line.
fn numbered<'a>(lines: &[&'a [u8]], known: &mut HashMap<&'a [u8], usize>) -> Vec<usize> {
    let mut numbers = Vec::with_capacity(lines.len());
    for line in lines {
        let next = known.len();
        numbers.push(*known.entry(line).or_insert(next));
    }
    numbers
}

/// Lines of the old text that are gone, and lines of the new one that were not there.
struct Marks {
    gone: Vec<bool>,
    come: Vec<bool>,
}

impl Marks {
    fn all(old: usize, new: usize) -> Self {
        Self { gone: vec![true; old], come: vec![true; new] }
    }

    fn edits(&self) -> Vec<Edit> {
        let run = |marks: &[bool], from: usize| {
            marks.get(from..).unwrap_or_default().iter().take_while(|mark| **mark).count()
        };
        let (mut old, mut new) = (0, 0);
        let mut edits = Vec::new();
        while old < self.gone.len() || new < self.come.len() {
            let (gone, come) = (run(&self.gone, old), run(&self.come, new));
            if gone + come > 0 {
                edits.push(Edit { old: old..old + gone, new: new..new + come });
            }
            // One line that both have follows, or the end of both.
            old += gone + 1;
            new += come + 1;
        }
        edits
    }
}

/// The fewest marks, or all. Lines that one text alone has are changed in any case, and are left out of the
/// search.
fn marked(old: &[usize], new: &[usize]) -> Marks {
    let (in_old, in_new): (HashSet<_>, HashSet<_>) = (old.iter().collect(), new.iter().collect());
    let shared = |lines: &[usize], other: &HashSet<&usize>| -> Vec<(usize, usize)> {
        let numbered = lines.iter().copied().enumerate();
        numbered.filter(|(_, line)| other.contains(line)).collect()
    };
    let (shared_old, shared_new) = (shared(old, &in_new), shared(new, &in_old));
    let only = |lines: &[(usize, usize)]| lines.iter().map(|(_, line)| *line).collect::<Vec<_>>();
    let mut marks = Marks::all(old.len(), new.len());
    if let Some(found) = search(&only(&shared_old), &only(&shared_new)) {
        unmark(&mut marks.gone, &shared_old, &found.gone);
        unmark(&mut marks.come, &shared_new, &found.come);
    }
    marks
}

/// Takes the mark off every shared line that was found to stay.
fn unmark(marks: &mut [bool], shared: &[(usize, usize)], found: &[bool]) {
    for ((at, _), changed) in shared.iter().zip(found) {
        if let Some(mark) = marks.get_mut(*at) {
            *mark = *changed;
        }
    }
}

/// The fewest marks; nothing if that would take too long.
fn search(old: &[usize], new: &[usize]) -> Option<Marks> {
    // `rounds[d][i]` is how far into the old text one gets with `d` changed lines, of which `d - i` come
    // from the new one.
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    let mut walked = 0_usize;
    for changed in 0..=MOST {
        let above = rounds.last().map(Vec::as_slice).unwrap_or_default();
        let mut round = Vec::with_capacity(changed + 1);
        for index in 0..=changed {
            let mut at = step(above, index).map_or(0, |step| step.to);
            let mut other = (at + changed).saturating_sub(2 * index);
            while old.get(at).is_some_and(|line| new.get(other) == Some(line)) {
                (at, other, walked) = (at + 1, other + 1, walked + 1);
            }
            walked += 1;
            if walked > LONGEST {
                return None;
            }
            round.push(at);
            if at >= old.len() && other >= new.len() {
                rounds.push(round);
                return Some(retrace(&rounds, index, old.len(), new.len()));
            }
        }
        rounds.push(round);
    }
    None
}

/// How one comes to a place from the round before.
struct Move {
    /// Where in the old text one was, and in which place of the round.
    from: usize,
    index: usize,
    to: usize,
}

/// The better of two ways: a line of the new text comes, or a line of the old text goes.
fn step(above: &[usize], index: usize) -> Option<Move> {
    let comes = above.get(index).map(|from| Move { from: *from, index, to: *from });
    let goes = index
        .checked_sub(1)
        .and_then(|index| above.get(index).map(|from| Move { from: *from, index, to: *from + 1 }));
    match (comes, goes) {
        (Some(comes), Some(goes)) => Some(if goes.from < comes.from { comes } else { goes }),
        (comes, goes) => comes.or(goes),
    }
}

fn retrace(rounds: &[Vec<usize>], index: usize, old: usize, new: usize) -> Marks {
    let mut marks = Marks { gone: vec![false; old], come: vec![false; new] };
    let mut index = index;
    for (changed, above) in rounds.iter().enumerate().take(rounds.len().saturating_sub(1)).rev() {
        let Some(step) = step(above, index) else { break };
        let mark = if step.to > step.from {
            marks.gone.get_mut(step.from)
        } else {
            marks.come.get_mut((step.from + changed).saturating_sub(2 * step.index))
        };
        if let Some(mark) = mark {
            *mark = true;
        }
        index = step.index;
    }
    marks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(old: &str, new: &str, changed: usize) {
        let (old, new) = (lines(old.as_bytes()), lines(new.as_bytes()));
        let edits = edits(&old, &new);
        assert_eq!(applied(&old, &new, &edits), new, "{edits:?}");
        let count: usize = edits.iter().map(|edit| edit.old.len() + edit.new.len()).sum();
        assert_eq!(count, changed, "{edits:?}");
    }

    /// The old lines with the edits done, where every line outside of them must be in both.
    fn applied<'a>(old: &[&'a [u8]], new: &[&'a [u8]], edits: &[Edit]) -> Vec<&'a [u8]> {
        let (mut out, mut at) = (Vec::new(), 0);
        for edit in edits {
            out.extend(&old[at..edit.old.start]);
            assert_eq!(out.len(), edit.new.start);
            out.extend(&new[edit.new.clone()]);
            at = edit.old.end;
        }
        out.extend(&old[at..]);
        out
    }

    #[test]
    fn as_few_lines_as_possible_are_changed() {
        check("", "", 0);
        check("a\n", "a\n", 0);
        check("", "a\nb\n", 2);
        check("a\nb\n", "", 2);
        check("a\nb\nc\n", "a\nx\nc\n", 2);
        check("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n", 5);
        check("a\n", "a", 2);
        check("a\r\n", "a\n", 2);
    }

    #[test]
    fn texts_with_nothing_in_common_are_answered_at_once() {
        let old: String = (0..200_000).map(|n| format!("{n}\n")).collect();
        let new: String = (200_000..400_000).map(|n| format!("{n}\n")).collect();
        check(&old, &new, 400_000);
        let other = format!("first\n0\n{new}199999\nlast\n");
        check(&format!("first\n{old}last\n"), &other, 399_996 + 2);
    }

    #[test]
    fn texts_in_another_order_are_answered_in_bounded_time() {
        let old: String = (0..100_000).map(|n| format!("{n}\n")).collect();
        let new: String = (0..100_000).rev().map(|n| format!("{n}\n")).collect();
        check(&old, &new, 200_000);
    }

    proptest! {
        #[test]
        fn edits_lead_from_one_text_to_the_other(old in "([abc]\n){0,40}[ab]?", new in "([abc]\n){0,40}[ab]?") {
            let (old, new) = (lines(old.as_bytes()), lines(new.as_bytes()));
            let edits = edits(&old, &new);
            prop_assert_eq!(applied(&old, &new, &edits), new.clone());
            let count: usize = edits.iter().map(|edit| edit.old.len() + edit.new.len()).sum();
            prop_assert_eq!(count, shortest(&old, &new));
            for pair in edits.windows(2) {
                prop_assert!(pair[0].old.end < pair[1].old.start);
            }
        }
    }

    /// The textbook's table.
    fn shortest(old: &[&[u8]], new: &[&[u8]]) -> usize {
        let mut row: Vec<usize> = (0..=new.len()).collect();
        for (above, line) in old.iter().enumerate() {
            let mut next = vec![above + 1];
            for (at, other) in new.iter().enumerate() {
                next.push(if line == other { row[at] } else { 1 + row[at + 1].min(next[at]) });
            }
            row = next;
        }
        row[new.len()]
    }
}
