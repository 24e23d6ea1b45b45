//! Makes what a stranger prints harmless to a terminal.
//!
//! **Invariant.** What comes out moves no cursor, sets no title, writes no clipboard and asks the terminal for no
//! answer: no control characters but line ends and tabs, in one byte or in two, however the bytes were split.

use std::borrow::Cow;

/// A text made harmless. Control characters are shown as `^X`; those that turn the direction of writing
/// around, so that a line reads as something else than it says, by their number.
pub(crate) fn inert(text: &str) -> Cow<'_, str> {
    if !text.contains(is_active) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match u8::try_from(c) {
            Ok(b'\r') => {}
            Ok(byte @ (0..=31 | 127)) if is_active(c) => shown.extend(['^', char::from(byte ^ 64)]),
            Ok(0x80..=0x9f) => shown.push('?'),
            _ if is_active(c) => shown.extend(c.escape_unicode()),
            _ => shown.push(c),
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
        assert!(matches!(inert("z\u{a0}ä 👩\u{200d}🚀\n"), Cow::Borrowed(_)));
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
