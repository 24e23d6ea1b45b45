//! Finds the keys of well-known services in text, and masks them.
//!
//! A key is recognised by how it begins and by how much follows; there is no guessing at long random
//! words. It must begin where a word begins: `risk-…` holds no key. What a program writes directly
//! before a word without meaning a letter counts as no part of the word: colours of a terminal, and
//! escapes such as `\n`, `\u000a` and `%3D`.
//!
//! **Invariant.** The time is linear in the text, whatever the text.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr3_iter;

/// What stands where a secret was.
pub const MASK: &str = "***";

/// How far before a key one looks for what stands before it. The longest colour is shorter.
const LOOK_BACK: usize = 32;

/// How the keys of one service look.
struct Kind {
    /// How they begin; `?` stands for any small letter.
    prefix: &'static [u8],
    /// Where in the prefix its rarest byte stands: a `-`, a `_` or an `I`.
    rare: usize,
    /// How many more bytes make a key.
    least: usize,
    /// Which bytes those are. The key ends where neither these nor other bytes of tokens follow.
    fits: fn(u8) -> bool,
}

const fn kind(prefix: &'static [u8], rare: usize, least: usize, fits: fn(u8) -> bool) -> Kind {
    Kind { prefix, rare, least, fits }
}

/// The one list of them.
const KINDS: [Kind; 8] = [
    kind(b"sk-", 2, 16, is_token),
    kind(b"ghp_", 3, 16, is_token),
    kind(b"gho_", 3, 16, is_token),
    kind(b"AKIA", 2, 16, |b| b.is_ascii_uppercase() || b.is_ascii_digit()),
    kind(b"AIza", 1, 35, is_token),
    kind(b"glpat-", 5, 16, is_token),
    // No `_` inside: `npm_config_user_agent` is a variable that npm sets.
    kind(b"npm_", 3, 16, |b| b.is_ascii_alphanumeric()),
    kind(b"xox?-", 4, 10, is_token),
];

/// The text with known secrets masked; line ends and everything else stay as they are. The prefix,
/// which is no secret, stays too, so that a reader sees what kind of key it was.
pub fn masked(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = 0;
    for Range { start, end } in known_secrets(text) {
        out.push_str(text.get(rest..start).unwrap_or_default());
        out.push_str(MASK);
        rest = end;
    }
    if rest == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(rest..).unwrap_or_default());
    Cow::Owned(out)
}

/// Where the known secrets of a text stand, without their public prefixes, in order.
pub fn known_secrets(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut searched = 0;
    memchr3_iter(b'-', b'_', b'I', bytes).filter_map(move |at| {
        let before = bytes.get(at.checked_sub(1)?).copied()?;
        if !is_likely(before, bytes.get(at).copied()?) {
            return None;
        }
        let secret = KINDS.iter().find_map(|kind| kind.key_around(bytes, at, searched))?;
        searched = secret.end;
        Some(secret)
    })
}

/// Whether a prefix may have these two bytes, the second being its rarest. Source text is full of `_`
/// and most of it is sorted out here.
fn is_likely(before: u8, rare: u8) -> bool {
    match rare {
        b'_' => matches!(before, b'm' | b'o' | b'p'),
        b'-' => before.is_ascii_lowercase(),
        _ => matches!(before, b'A' | b'K'),
    }
}

impl Kind {
    /// What is secret of the key whose prefix has its rarest byte at `at` and begins at `from` or
    /// later. How far it reaches is asked last, once it is sure: else a long word with many
    /// prefixes in it would be read once for each.
    fn key_around(&self, bytes: &[u8], at: usize, from: usize) -> Option<Range<usize>> {
        let start = at.checked_sub(self.rare).filter(|start| *start >= from)?;
        let rest = self.after_prefix(bytes.get(start..)?)?;
        let enough = rest.get(..self.least)?.iter().all(|b| (self.fits)(*b));
        if !enough || !begins_word(bytes, start) {
            return None;
        }
        let length = rest.iter().take_while(|b| is_token(**b)).count();
        let secret = start + self.prefix.len();
        Some(secret..secret + length)
    }

    fn after_prefix<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (begin, rest) = bytes.split_at_checked(self.prefix.len())?;
        let fits = |(byte, wanted): (&u8, &u8)| match wanted {
            b'?' => byte.is_ascii_lowercase(),
            wanted => byte == wanted,
        };
        begin.iter().zip(self.prefix).all(fits).then_some(rest)
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

fn begins_word(bytes: &[u8], at: usize) -> bool {
    let before = bytes.get(at.saturating_sub(LOOK_BACK)..at).unwrap_or_default();
    let (rest, word) = split_word(before);
    word.is_empty() || is_escape(rest, word) || ends_colour(before)
}

/// What stands before the last word, and that word.
fn split_word(bytes: &[u8]) -> (&[u8], &[u8]) {
    let length = bytes.iter().rev().take_while(|b| b.is_ascii_alphanumeric()).count();
    bytes.split_at_checked(bytes.len() - length).unwrap_or_default()
}

/// Whether the word after `rest` is the whole of an escape, as in JSON, in source text or in a URL.
fn is_escape(rest: &[u8], word: &[u8]) -> bool {
    let hex =
        |digits: &[u8], count| digits.len() == count && digits.iter().all(u8::is_ascii_hexdigit);
    match (rest.last(), word) {
        (Some(b'\\'), [b'x', digits @ ..]) if hex(digits, 2) => true,
        (Some(b'\\'), [b'u', digits @ ..]) if hex(digits, 4) => true,
        (Some(b'\\'), [b'0'..=b'7', b'0'..=b'7', b'0'..=b'7'] | [_]) => true,
        (Some(b'%'), digits) => hex(digits, 2),
        (Some(_) | None, _) => false,
    }
}

/// Whether the text ends with a command to a terminal such as `ESC [ 1 ; 32 m`, sent or written out.
fn ends_colour(bytes: &[u8]) -> bool {
    let Some((last, rest)) = bytes.split_last() else { return false };
    let numbers = rest.iter().rev().take_while(|b| matches!(b, b'0'..=b'9' | b';' | b'?')).count();
    let (rest, _) = rest.split_at_checked(rest.len() - numbers).unwrap_or_default();
    let Some(rest) = rest.strip_suffix(b"[").filter(|_| last.is_ascii_alphabetic()) else {
        return false;
    };
    let (before, word) = split_word(rest);
    rest.last() == Some(&0x1b) || rest.ends_with(br"\u{1b}") || is_escape(before, word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEYS: [&str; 13] = [
        "sk-abcdefghijklmnop1234",
        "sk-proj-abcdefghijklmnop_1234",
        "sk-ant-api03-abcdefghijklmnop",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "gho_abcdefghijklmnopqrstuvwxyz0123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaabcdefghij-KLMNOPQRST_0123456789abc",
        "glpat-abcdefghij1234567890",
        "npm_abcdefghijklmnopqrstuvwxyz0123456789",
        "xoxb-123456789012-1234567890123-abcdef",
        "xoxp-123456789012-abcdef",
        "xoxe-1-abcdefghijklmnop",
        "xoxs-1234567890",
    ];

    fn prefix(key: &str) -> &str {
        let rest = KINDS.iter().find_map(|kind| kind.after_prefix(key.as_bytes())).unwrap();
        &key[..key.len() - rest.len()]
    }

    #[test]
    fn every_known_key_is_masked_but_for_its_prefix() {
        for key in KEYS {
            assert_eq!(masked(key), format!("{}***", prefix(key)));
            let text = format!("use {key}, please\n\"{key}\" KEY={key}");
            assert_eq!(known_secrets(&text).count(), 3, "{key}");
            assert!(!masked(&text).contains(&key[prefix(key).len()..]));
        }
    }

    #[test]
    fn known_secrets_are_masked_and_ordinary_words_are_not() {
        let key = "sk-abcdefghijklmnop1234";
        assert_eq!(masked(&format!("use {key}, please")), "use sk-***, please");
        assert_eq!(masked(&format!("{key}\n{key}")), "sk-***\nsk-***");
        assert_eq!(masked("AKIAIOSFODNN7EXAMPLE"), "AKIA***");
        assert_eq!(
            masked("a risk-averse-and-very-careful person"),
            "a risk-averse-and-very-careful person"
        );
        assert_eq!(masked("sk-short"), "sk-short");
        assert_eq!(masked(&format!("a\\n{key}")), "a\\nsk-***");
    }

    #[test]
    fn the_rarest_byte_of_every_prefix_is_searched_for() {
        for kind in KINDS {
            let rare = kind.prefix[kind.rare];
            assert!(matches!(rare, b'-' | b'_' | b'I'));
            let before = kind.prefix[kind.rare - 1];
            let befores = if before == b'?' { b'a'..=b'z' } else { before..=before };
            assert!(befores.into_iter().all(|before| is_likely(before, rare)));
        }
    }

    #[test]
    fn near_misses_of_every_prefix_are_left_alone() {
        for text in [
            "a risk-averse-and-very-careful person",
            "the task-force-on-long-words desk-based-research disk-usage-of-everything",
            "sk-short",
            "SK-ABCDEFGHIJKLMNOP1234",
            "sk_abcdefghijklmnop1234",
            "highp_abcdefghijklmnop1234",
            "ghp_",
            "ghp_tooshort",
            "ghp-abcdefghijklmnop1234",
            "xgho_abcdefghijklmnop1234",
            "gho_tooshort",
            "SLOVAKIA1234567890123456",
            "AKIArticlesAboutMountainsAndLakes",
            "AKIASHORT",
            "akiaiosfodnn7example",
            "AIzaabcdefghij-KLMNOPQRST_0123456789ab",
            "aizaabcdefghij-KLMNOPQRST_0123456789abc",
            "MAIzaabcdefghij-KLMNOPQRST_0123456789abc",
            "xglpat-abcdefghij1234567890",
            "glpat-short",
            "glpat_abcdefghij1234567890",
            "npm_config_user_agent npm_package_dependencies_left_pad npm_lifecycle_event",
            "pnpm_abcdefghijklmnop1234",
            "npm_short",
            "foxoxb-123456789012-abcdef",
            "xoxb-short",
            "xox-123456789012-abcdef",
            "xoxB-123456789012-abcdef",
            "xoxb_123456789012",
        ] {
            assert_eq!(masked(text), text);
            assert!(matches!(masked(text), Cow::Borrowed(_)));
        }
    }

    #[test]
    fn what_is_no_letter_to_a_reader_hides_no_key() {
        let before = [
            "\u{1b}[32m",
            "\u{1b}[1;38;5;208m",
            "\u{1b}[m",
            "\u{1b}[?25h",
            "\u{1b}[2K",
            "\\n",
            "\\t",
            "\\u000a",
            "\\u001b[32m",
            "\\u{1b}[32m",
            "\\x1b[0m",
            "\\x0a",
            "\\033[1;31m",
            "\\e[1m",
            "%3D",
            "%20",
            "é",
            "_",
            "-",
            "/",
            "=",
            "\0",
            "\u{200b}",
        ];
        for (before, key) in before.iter().flat_map(|b| KEYS.iter().map(move |key| (b, key))) {
            let expected = format!("a{before}{}***", prefix(key));
            assert_eq!(masked(&format!("a{before}{key}")), expected);
        }
    }

    #[test]
    fn a_word_that_only_resembles_an_escape_is_a_word() {
        for text in [
            "[ask-the-community-for-more",
            ";ask-the-community-for-more",
            "\\task-abcdefghijklmnop",
            "%tisk-abcdefghijklmnopq",
            "\\xyzsk-abcdefghijklmnop",
            "[32msk-abcdefghijklmnop",
        ] {
            assert_eq!(masked(text), text);
        }
    }

    #[test]
    fn a_key_directly_behind_another_is_part_of_it_or_found_by_itself() {
        let key = KEYS[0];
        assert_eq!(masked(&format!("{key}{key}")), "sk-***");
        assert_eq!(masked(&format!("{key}-AKIAIOSFODNN7EXAMPLE")), "sk-***");
        assert_eq!(masked(&format!("{key}\n{key}")), "sk-***\nsk-***");
        assert_eq!(masked(&format!("{key}.AKIAIOSFODNN7EXAMPLE")), "sk-***.AKIA***");
    }

    /// With a look at the whole word for each prefix in it, this would take hours.
    #[test]
    fn a_long_word_full_of_prefixes_is_read_once() {
        let one = "sk-abcdefghijklmnop-".repeat(200_000);
        assert_eq!(masked(&one), "sk-***");
        let none = "xsk-abcdefghijklmnop_".repeat(200_000);
        assert_eq!(known_secrets(&none).count(), 0);
    }

    proptest! {
        #[test]
        fn masking_is_stable_and_leaves_no_key(
            before in "(\\PC{0,20}[^a-zA-Z0-9])?",
            key in prop::sample::select(KEYS.as_slice()),
            after in "([^a-zA-Z0-9_-]\\PC{0,20})?",
        ) {
            let text = format!("{before}{key}{after}");
            let once = masked(&text).into_owned();
            prop_assert!(!once.contains(&key[prefix(key).len()..]));
            prop_assert_eq!(masked(&once), once.as_str());
            prop_assert!(once.ends_with(after.as_str()) || masked(&after) != after);
        }

        #[test]
        fn any_text_is_masked_the_same_twice(text in "[sk\\-ghopAKIAnm_xblt0-9\\\\%\\[;\u{1b}]{0,80}") {
            let once = masked(&text).into_owned();
            prop_assert_eq!(masked(&once), once.as_str());
        }
    }
}
