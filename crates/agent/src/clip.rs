//! Texts cut to what there is room for.

/// Which part of a text stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Its beginning.
    Head,
    /// Two thirds of the room for its beginning, one for its end.
    Ends,
}

/// The text in at most `room` bytes, with a mark where something was left out. Where not even the mark has
/// room, nothing stays.
pub(crate) fn clipped(text: &str, room: usize, keep: Keep) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    // The mark is longest when everything is left out.
    let longest = mark(text.len()).len();
    let Some(rest) = room.checked_sub(longest) else { return String::new() };
    let (head, tail) = match keep {
        Keep::Head => (rest, 0),
        Keep::Ends => (rest - rest / 3, rest / 3),
    };
    let head = text.get(..text.floor_char_boundary(head)).unwrap_or_default();
    let tail_at = text.ceil_char_boundary(text.len().saturating_sub(tail));
    let tail = text.get(tail_at..).unwrap_or_default();
    let left_out = text.len().saturating_sub(head.len() + tail.len());
    format!("{head}{}{tail}", mark(left_out))
}

/// The largest size that all texts may have so that together they fit: short ones stay whole, and only the
/// longest are cut.
pub(crate) fn level(sizes: impl Iterator<Item = usize>, room: usize) -> usize {
    let mut sizes: Vec<usize> = sizes.collect();
    sizes.sort_unstable();
    let mut room = room;
    for (index, size) in sizes.iter().enumerate() {
        let share = room / sizes.len().saturating_sub(index).max(1);
        if *size > share {
            return share;
        }
        room -= size;
    }
    usize::MAX
}

fn mark(bytes: usize) -> String {
    format!("\n[… {bytes} bytes left out …]\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_ends_stay_and_the_mark_says_how_much_is_gone() {
        let text = format!("{}{}", "a".repeat(500), "z".repeat(500));
        let clipped = clipped(&text, 100, Keep::Ends);
        assert!(clipped.starts_with("aaa") && clipped.ends_with("zzz"), "{clipped}");
        let kept = clipped.matches(['a', 'z']).count() - "bytes".matches('z').count();
        assert!(clipped.contains(&format!("[… {} bytes left out …]", 1000 - kept)), "{clipped}");
    }

    #[test]
    fn only_the_largest_are_cut() {
        assert_eq!(level([10, 20, 1000, 2000].into_iter(), 530), 250);
        assert_eq!(level([10, 20].into_iter(), 30), usize::MAX);
        assert_eq!(level(std::iter::empty(), 0), usize::MAX);
        assert_eq!(level([5, 5].into_iter(), 0), 0);
    }

    proptest! {
        #[test]
        fn a_clipped_text_fits(text in "\\PC{0,300}", room in 0..300_usize) {
            for keep in [Keep::Head, Keep::Ends] {
                let clipped = clipped(&text, room, keep);
                prop_assert!(clipped.len() <= room);
                prop_assert!(text.len() > room || clipped == text);
            }
        }

        #[test]
        fn levelled_texts_fit_together(
            sizes in prop::collection::vec(0..5_000_usize, 0..40),
            room in 0..50_000_usize,
        ) {
            let level = level(sizes.iter().copied(), room);
            let total: usize = sizes.iter().map(|size| (*size).min(level)).sum();
            prop_assert!(total <= room);
            prop_assert!(level == usize::MAX || total + sizes.len() > room);
        }
    }
}
