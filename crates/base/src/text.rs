//! Text that comes from outside: normalised for comparing, made safe for showing and recording.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::masked;

/// The text in Unicode's composed form, so that two spellings of one name are one name.
pub fn normalised(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfc().collect())
    }
}

/// Whether a reader would see nothing: white space, control characters and characters of no width.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || c.is_control() || is_invisible(c))
}

/// The text on one line that no terminal obeys: secrets masked, control and invisible characters
/// written as escapes.
pub fn sanitised(text: &str) -> Cow<'_, str> {
    let text = masked(text);
    let unsafe_char = |c: char| c.is_control() || is_invisible(c);
    if !text.contains(unsafe_char) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if unsafe_char(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// The first characters of a text, made safe for showing; says how much is missing.
#[derive(Debug, Clone, Copy)]
pub struct Excerpt<'a> {
    text: &'a str,
    max_chars: usize,
}

impl<'a> Excerpt<'a> {
    /// At most `max_chars` characters of `text`, the mark for what is left out included.
    pub fn new(text: &'a str, max_chars: usize) -> Self {
        Self { text, max_chars }
    }
}

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Masking looks a little beyond the cut, so that a secret is not cut into innocence; what
        // lies further behind is not read at all, which keeps a huge text cheap.
        let window = self.max_chars.saturating_mul(2).saturating_add(256);
        let end = self.text.char_indices().nth(window).map_or(self.text.len(), |(at, _)| at);
        let safe = sanitised(self.text.get(..end).unwrap_or_default());
        if end == self.text.len() && safe.chars().nth(self.max_chars).is_none() {
            return f.write_str(&safe);
        }
        for c in safe.chars().take(self.max_chars.saturating_sub(1)) {
            f.write_char(c)?;
        }
        f.write_char('…')
    }
}

/// Characters that nobody sees: format characters, line and paragraph separators, fillers, selectors,
/// tags.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lesson_l10_two_spellings_of_one_name_are_one_name() {
        assert_eq!(normalised("be\u{301}a"), normalised("b\u{e9}a"));
        assert!(matches!(normalised("plain"), Cow::Borrowed("plain")));
    }

    #[test]
    fn lesson_l10_a_zero_width_space_is_not_an_intent() {
        for text in
            ["", "  ", "\u{200b}", "\n\t\u{feff}\u{2060}", "\u{3164}", "\0\u{1b}", "\u{2800}"]
        {
            assert!(is_blank(text), "{text:?}");
        }
        assert!(!is_blank("\u{200b}x"));
    }

    #[test]
    fn a_terminal_obeys_nothing_in_a_sanitised_text() {
        assert_eq!(sanitised("a\u{1b}[2Jb\nc\u{202e}"), "a\\u{1b}[2Jb\\nc\\u{202e}");
        assert_eq!(sanitised("plain é"), "plain é");
    }

    #[test]
    fn an_excerpt_is_never_longer_than_it_says() {
        assert_eq!(Excerpt::new("abcdef", 6).to_string(), "abcdef");
        assert_eq!(Excerpt::new("abcdefg", 6).to_string(), "abcde…");
    }

    #[test]
    fn a_secret_at_the_cut_of_an_excerpt_does_not_show() {
        let text = format!("{} sk-abcdefghijklmnop1234", "x".repeat(490));
        assert!(!Excerpt::new(&text, 500).to_string().contains("abc"));
    }

    proptest! {
        #[test]
        fn sanitising_never_panics_and_is_stable(text in any::<String>()) {
            let once = sanitised(&text).into_owned();
            prop_assert!(!once.chars().any(char::is_control));
            prop_assert_eq!(sanitised(&once), once.as_str());
            prop_assert!(Excerpt::new(&text, 20).to_string().chars().count() <= 20);
        }
    }
}
