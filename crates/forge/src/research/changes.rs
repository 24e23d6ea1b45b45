//! Which lines of a packet are new and which are gone.

/// More lines than this are not compared: everything counts as changed.
const MOST_LINES: usize = 2_000;

/// What differs between two packets, line by line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Changes<'a> {
    /// Lines that the new one has, in its order.
    pub(crate) added: Vec<&'a str>,
    /// Lines that the old one had, in its order.
    pub(crate) removed: Vec<&'a str>,
    /// How many lines the old one has.
    lines: usize,
}

impl<'a> Changes<'a> {
    /// What differs. White space at the ends of lines does not.
    pub(crate) fn between(old: &'a str, new: &'a str) -> Self {
        let old: Vec<&str> = old.lines().map(str::trim_end).collect();
        let new: Vec<&str> = new.lines().map(str::trim_end).collect();
        let lines = old.len();
        if old.len() > MOST_LINES || new.len() > MOST_LINES {
            return Self { added: new, removed: old, lines };
        }
        let kept = kept(&old, &new);
        let (mut gone, mut come) = (vec![true; old.len()], vec![true; new.len()]);
        for (from, to) in kept {
            if let (Some(gone), Some(come)) = (gone.get_mut(from), come.get_mut(to)) {
                (*gone, *come) = (false, false);
            }
        }
        Self { added: only(&new, &come), removed: only(&old, &gone), lines }
    }

    /// How much of the old packet is changed, in per cent; more than all of it where much was added.
    pub(crate) fn percent(&self) -> usize {
        let changed = self.added.len().max(self.removed.len());
        changed.saturating_mul(100).div_ceil(self.lines.max(1))
    }
}

fn only<'a>(lines: &[&'a str], wanted: &[bool]) -> Vec<&'a str> {
    let lines = lines.iter().zip(wanted).filter(|(_, wanted)| **wanted);
    lines.map(|(line, _)| *line).collect()
}

/// The longest common subsequence, as pairs of positions.
fn kept(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let width = new.len() + 1;
    // `lengths[from * width + to]` is how much is common behind both positions.
    let mut lengths = vec![0_u32; (old.len() + 1).saturating_mul(width)];
    let read = |lengths: &[u32], from: usize, to: usize| {
        lengths.get(from * width + to).copied().unwrap_or(0)
    };
    for (from, one) in old.iter().enumerate().rev() {
        for (to, other) in new.iter().enumerate().rev() {
            let length = if one == other {
                read(&lengths, from + 1, to + 1) + 1
            } else {
                read(&lengths, from + 1, to).max(read(&lengths, from, to + 1))
            };
            if let Some(place) = lengths.get_mut(from * width + to) {
                *place = length;
            }
        }
    }
    let (mut from, mut to, mut pairs) = (0, 0, Vec::new());
    while let (Some(one), Some(other)) = (old.get(from), new.get(to)) {
        if one == other {
            pairs.push((from, to));
            (from, to) = (from + 1, to + 1);
        } else if read(&lengths, from + 1, to) >= read(&lengths, from, to + 1) {
            from += 1;
        } else {
            to += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_new_and_what_is_gone_is_told_in_its_order() {
        let changes = Changes::between("a\nb\nc\nd\n", "a  \nx\nc\nd\ny\n");
        assert_eq!(changes.added, ["x", "y"]);
        assert_eq!(changes.removed, ["b"]);
        assert_eq!(changes.percent(), 50);
    }

    #[test]
    fn more_than_half_is_more_than_fifty_per_cent() {
        assert_eq!(Changes::between("a\nb\nc\nd", "a\nb\nx\ny").percent(), 50);
        assert_eq!(Changes::between("a\nb\nc", "a\nx\ny").percent(), 67);
        let hundred: Vec<String> = (0..101).map(|number| number.to_string()).collect();
        let changed = hundred.join("\n").replace('0', "x").replace('1', "y");
        assert!(Changes::between(&hundred.join("\n"), &changed).percent() <= 100);
        assert_eq!(Changes::between("a", "a\nb\nc").percent(), 200);
        assert_eq!(Changes::between("", "").percent(), 0);
    }

    #[test]
    fn a_packet_of_too_many_lines_is_changed_all_over() {
        let long = "x\n".repeat(MOST_LINES + 1);
        assert!(Changes::between(&long, &long).percent() >= 100);
    }

    proptest! {
        #[test]
        fn what_stays_and_what_is_new_is_the_new_packet(old in "([ab]\n){0,8}", new in "([abc]\n){0,8}") {
            let changes = Changes::between(&old, &new);
            let kept = old.lines().count() - changes.removed.len();
            prop_assert_eq!(kept + changes.added.len(), new.lines().count());
            prop_assert_eq!(old == new, changes.added.is_empty() && changes.removed.is_empty());
        }
    }
}
