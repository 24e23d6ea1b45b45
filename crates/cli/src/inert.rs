//! Makes what a stranger prints harmless to a terminal.
//!
//! **Invariant.** What comes out moves no cursor, sets no title, writes no clipboard and asks the terminal for no
//! answer: no control characters but line ends and tabs, in one byte or in two, however the bytes were split.

use std::borrow::Cow;

/// A text made harmless. Control characters are shown as `^X`; characters that nobody sees, or that turn the direction of
/// writing around so that a line reads as something else than it says, by their number. What joins letters of a script or
/// parts of one picture, and marks beside letters that are written from the right, stay: they are part of the text.
pub(crate) fn inert(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| is_active(c) || is_unseen(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut letters = text.chars().peekable();
    let (mut before, mut from_right) = (None, false);
    while let Some(c) = letters.next() {
        match u8::try_from(c) {
            Ok(b'\r') => {}
            Ok(byte @ (0..=31 | 127)) if is_active(c) => shown.extend(['^', char::from(byte ^ 64)]),
            Ok(0x80..=0x9f) => shown.push('?'),
            _ if (is_active(c) || is_unseen(c))
                && !is_part(c, before, letters.peek().copied())
                && !(from_right && is_mark(c)) =>
            {
                shown.extend(c.escape_unicode());
            }
            _ => shown.push(c),
        }
        before = Some(c);
        if c.is_alphabetic() || c == '\n' {
            from_right = is_from_right(c);
        }
    }
    Cow::Owned(shown)
}

/// Whether a terminal, or the order of what it shows, would obey a character.
fn is_active(c: char) -> bool {
    let turns = matches!(c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && c != '\n' && c != '\t')
}

/// Whether nobody sees a character.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{2800}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character only says in which direction its neighbours are written.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}')
}

/// Whether a letter is written from the right.
fn is_from_right(c: char) -> bool {
    c != '\u{61c}'
        && matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// Whether a character that nobody sees is part of what stands around it.
fn is_part(c: char, before: Option<char>, after: Option<char>) -> bool {
    let foreign =
        |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !c.is_whitespace() && !c.is_control());
    // Of the scripts that need them, and of pictures: not of plain letters, where they hide.
    let is_tag = |c: char| matches!(c, '\u{e0020}'..='\u{e007f}');
    match c {
        '\u{200c}' | '\u{200d}' => {
            let joins = |c: Option<char>| foreign(c) && c.is_some_and(|c| u32::from(c) >= 0x590);
            joins(before)
                && joins(after)
                && !before.is_some_and(|c| matches!(c, '\u{200b}'..='\u{200f}'))
        }
        // The look of the character before: a picture, a digit on a key, an ideograph.
        '\u{fe00}'..='\u{fe0f}' => {
            let key = before.is_some_and(|c| matches!(c, '0'..='9' | '#' | '*' | '©' | '®'));
            (foreign(before) || key) && !before.is_some_and(is_unseen)
        }
        c if is_tag(c) => before.is_some_and(|c| c == '\u{1f3f4}' || is_tag(c)),
        // Behind such letters it is left, too.
        c if is_mark(c) => after.is_some_and(is_from_right),
        _ => false,
    }
}

/// Where a stream of UTF-8 stands between two pieces.
#[derive(Debug, Default)]
pub(crate) struct Inert {
    /// The first byte of a character that could be a control character of two bytes.
    held: bool,
    /// Bytes that the character begun still needs.
    needed: u8,
}

impl Inert {
    /// The next piece, made harmless. Control characters are shown as `^X`; what is no UTF-8 as `?`.
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            if self.held {
                self.held = false;
                match byte {
                    0x80..=0x9f => {
                        shown.push(b'?');
                        continue;
                    }
                    0xa0..=0xbf => {
                        shown.extend([0xc2, byte]);
                        continue;
                    }
                    _ => shown.push(b'?'),
                }
            }
            self.pass_byte(byte, &mut shown);
        }
        shown
    }

    fn pass_byte(&mut self, byte: u8, shown: &mut Vec<u8>) {
        if self.needed > 0 && !matches!(byte, 0x80..=0xbf) {
            self.needed = 0;
            shown.push(b'?');
        }
        match byte {
            b'\n' | b'\t' | b' '..=b'~' => shown.push(byte),
            b'\r' => {}
            0..=31 | 127 => shown.extend([b'^', byte ^ 64]),
            0x80..=0xbf if self.needed > 0 => {
                self.needed -= 1;
                shown.push(byte);
            }
            0xc2 => self.held = true,
            0xc3..=0xf4 => {
                self.needed = match byte {
                    0xc3..=0xdf => 1,
                    0xe0..=0xef => 2,
                    _ => 3,
                };
                shown.push(byte);
            }
            _ => shown.push(b'?'),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_never_given_what_it_would_obey() {
        let hostile = b"a\x1b]52;c;AAAA\x07b\rc\x08\x9b\xc2\x9b31m\n\tz\x7f";
        assert_eq!(Inert::default().pass(hostile), b"a^[]52;c;AAAA^Gbc^H??31m\n\tz^?");
    }

    #[test]
    fn a_text_is_shown_and_never_obeyed() {
        let hostile = "a\u{1b}]52;c;AAAA\u{7}b\rc\u{8}\u{9b}31m\n\tz\u{7f} \u{202e}txt";
        assert_eq!(inert(hostile), "a^[]52;c;AAAA^Gbc^H?31m\n\tz^? \\u{202e}txt");
        assert_eq!(inert("z\u{a0}ä 👩\u{200d}🚀\n"), "z\u{a0}ä 👩\u{200d}🚀\n");
        assert!(matches!(inert("z\u{a0}ä 日本\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_nobody_sees_is_shown_and_what_joins_is_left() {
        assert_eq!(inert("pass\u{200b}word"), "pass\\u{200b}word");
        assert_eq!(inert("a\u{200d}b x\u{ad}y\u{feff}"), "a\\u{200d}b x\\u{ad}y\\u{feff}");
        assert_eq!(inert("x\u{e0041}\u{fe0f}"), "x\\u{e0041}\\u{fe0f}");
        assert_eq!(inert("abc\u{200f}123"), "abc\\u{200f}123");
        for text in [
            "👩\u{200d}🚀 ❤\u{fe0f} 1\u{fe0f}\u{20e3}",
            "می\u{200c}خواهم क्\u{200d}ष",
            "שלום \u{200f}!עולם\u{200f}",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
        ] {
            assert!(!inert(text).contains("\\u"), "{}", inert(text));
        }
    }

    #[test]
    fn text_is_left_as_it_is_however_it_was_split() {
        let text = "z\u{a0}\u{e4}\u{20ac}\u{1f600}\u{5d0}\n";
        for size in 1..text.len() {
            let mut inert = Inert::default();
            let shown: Vec<u8> =
                text.as_bytes().chunks(size).flat_map(|part| inert.pass(part)).collect();
            assert_eq!(String::from_utf8(shown).unwrap(), text);
        }
    }
}
