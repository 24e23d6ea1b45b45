//! Names that somebody may have meant.

/// Longer names are not compared.
const MAX_CHARS: usize = 100;

/// More are not compared either: whoever has that many files in a directory gets no advice.
const MAX_NAMES: usize = 2000;

/// The nearest of these names, at most three, the nearest first.
pub(super) fn near<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted: Vec<char> = wanted.to_lowercase().chars().take(MAX_CHARS).collect();
    let most = (wanted.len() / 3).max(2);
    let mut found: Vec<_> = names
        .take(MAX_NAMES)
        .filter_map(|name| {
            let chars: Vec<char> = name.to_lowercase().chars().take(MAX_CHARS).collect();
            let distance = distance(&wanted, &chars);
            (distance <= most).then_some((distance, name))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().take(3).map(|(_, name)| name).collect()
}

/// How many characters must be put in, taken out or replaced.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut before = i + 1;
        let mut next = vec![before];
        for (right, above) in b.iter().zip(row.iter().skip(1)) {
            let replaced = diagonal + usize::from(left != right);
            before = replaced.min(above + 1).min(before + 1);
            diagonal = *above;
            next.push(before);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_is_the_least_number_of_edits() {
        let of = |a: &str, b: &str| {
            distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>())
        };
        for (a, b, edits) in
            [("", "", 0), ("", "ab", 2), ("kitten", "sitting", 3), ("a", "a", 0), ("ab", "ba", 2)]
        {
            assert_eq!((of(a, b), of(b, a)), (edits, edits), "{a} {b}");
        }
    }

    #[test]
    fn the_nearest_names_come_first() {
        let names = ["main.rs", "mian.rs", "lib.rs", "Main.rs", "something_else.rs"];
        assert_eq!(near("main.rss", names.into_iter()), ["Main.rs", "main.rs"]);
        assert_eq!(near("mian.rs", names.into_iter()), ["mian.rs", "Main.rs", "main.rs"]);
        assert!(near("x", ["long_name"].into_iter()).is_empty());
    }
}
