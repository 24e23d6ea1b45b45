//! JSON text written by hand: the two canonical forms of the ledger.
//!
//! Entries are encoded as the independent verifier does it (ASCII, everything else as `\uXXXX`);
//! details as RFC 8785 says (UTF-8). Both are proved equal to a general encoder in the tests.

use fluffy_base::Digest;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Which characters of a string are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Every character outside printable ASCII.
    Ascii,
    /// Only what JSON demands.
    Utf8,
}

/// Appends a JSON string.
pub(crate) fn string(out: &mut Vec<u8>, text: &str, form: Form) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    // Most texts need no escape, and asking all bytes without stopping is what processors are good at.
    if !rest.iter().fold(false, |found, byte| found | needs_escape(*byte, form)) {
        out.extend_from_slice(rest);
        out.push(b'"');
        return;
    }
    while let Some(plain) = rest.iter().position(|byte| needs_escape(*byte, form)) {
        let (before, from) = rest.split_at(plain);
        out.extend_from_slice(before);
        rest = escape(out, from, form);
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Appends a string or `null`.
pub(crate) fn optional(out: &mut Vec<u8>, text: Option<&str>, form: Form) {
    match text {
        Some(text) => string(out, text, form),
        None => out.extend_from_slice(b"null"),
    }
}

/// Appends a digest or `null`.
pub(crate) fn digest(out: &mut Vec<u8>, digest: Option<&Digest>) {
    match digest {
        Some(digest) => {
            out.push(b'"');
            out.extend_from_slice(&digest.hex());
            out.push(b'"');
        }
        None => out.extend_from_slice(b"null"),
    }
}

/// Appends an integer.
pub(crate) fn integer(out: &mut Vec<u8>, n: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = n;
    loop {
        at -= 1;
        if let Some(slot) = digits.get_mut(at) {
            // A digit is below ten, so the cast keeps it.
            *slot = b'0' + (rest % 10) as u8;
        }
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(at..).unwrap_or_default());
}

fn needs_escape(byte: u8, form: Form) -> bool {
    match form {
        Form::Ascii => !matches!(byte, b' '..=b'~') || byte == b'"' || byte == b'\\',
        Form::Utf8 => byte < b' ' || byte == b'"' || byte == b'\\',
    }
}

/// Escapes the first character of `from` and gives back what follows it.
fn escape<'a>(out: &mut Vec<u8>, from: &'a [u8], form: Form) -> &'a [u8] {
    let Some((first, rest)) = from.split_first() else { return from };
    let short = match first {
        b'"' => b'"',
        b'\\' => b'\\',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        0..=0x7f => {
            unit(out, u16::from(*first));
            return rest;
        }
        _ => return escape_wide(out, from, form),
    };
    out.extend_from_slice(&[b'\\', short]);
    rest
}

fn escape_wide<'a>(out: &mut Vec<u8>, from: &'a [u8], form: Form) -> &'a [u8] {
    debug_assert_eq!(form, Form::Ascii);
    // `from` starts at a character boundary of a valid string: a lead byte tells the length.
    let length = match from.first() {
        Some(0xf0..) => 4,
        Some(0xe0..) => 3,
        _ => 2,
    };
    let (character, rest) = from.split_at_checked(length).unwrap_or((from, &[]));
    if let Ok(text) = std::str::from_utf8(character) {
        for code in text.encode_utf16() {
            unit(out, code);
        }
    }
    rest
}

fn unit(out: &mut Vec<u8>, code: u16) {
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        let nibble = usize::from(code >> shift & 15);
        out.push(HEX.get(nibble).copied().unwrap_or(b'0'));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(value: &str, form: Form) -> String {
        let mut out = Vec::new();
        string(&mut out, value, form);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn strings_of_entries_are_ascii_with_surrogate_pairs() {
        let value = "é\u{1f600}\u{2028}\u{7f}/\"\\\n\u{1}";
        let expected = r#""\u00e9\ud83d\ude00\u2028\u007f/\"\\\n\u0001""#;
        assert_eq!(text(value, Form::Ascii), expected);
    }

    proptest! {
        #[test]
        fn utf8_strings_equal_the_general_canonical_encoder(value in any::<String>()) {
            let expected = serde_json_canonicalizer::to_string(&value).unwrap();
            prop_assert_eq!(text(&value, Form::Utf8), expected);
        }

        #[test]
        fn ascii_strings_are_read_back(value in any::<String>()) {
            let encoded = text(&value, Form::Ascii);
            prop_assert!(encoded.is_ascii());
            prop_assert_eq!(serde_json::from_str::<String>(&encoded).unwrap(), value);
        }

        #[test]
        fn integers_are_decimal(n in any::<u64>()) {
            let mut out = Vec::new();
            integer(&mut out, n);
            prop_assert_eq!(String::from_utf8(out).unwrap(), n.to_string());
        }
    }
}
