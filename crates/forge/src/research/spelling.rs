//! Text as it reads, whatever it is written with.

/// Small ASCII letters and digits with one blank in between, also where names are written in humps or with lines
/// below.
pub(crate) fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    for c in plain(text) {
        let hump = c.is_ascii_uppercase() && before.is_ascii_lowercase();
        if hump || !c.is_ascii_alphanumeric() && !out.ends_with(' ') && !out.is_empty() {
            out.push(' ');
        }
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    out.truncate(out.trim_end().len());
    out
}

/// Small ASCII letters and digits alone.
pub(crate) fn squeezed(text: &str) -> String {
    plain(text).filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Digits that stand for letters, as the letters.
pub(crate) fn unleeted(text: &str) -> String {
    let letter = |c: char| match c {
        '0' => 'o',
        '1' => 'i',
        '3' => 'e',
        '4' => 'a',
        '5' => 's',
        '7' => 't',
        c => c,
    };
    text.chars().map(letter).collect()
}

/// Whether a letter is of another script, in which letters look like ours. Those of Western names are not.
pub(crate) fn is_odd(c: char) -> bool {
    let western = matches!(c, '\u{c0}'..='\u{17f}');
    let punctuation = !c.is_alphanumeric();
    let wide = matches!(c, '\u{ff01}'..='\u{ff5e}');
    !c.is_ascii() && !western && (wide || !punctuation || is_joining(c))
}

/// Characters that nobody sees, and marks that are put on letters.
fn is_joining(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

/// ASCII in wide clothes as itself, letters with accents without them, and nothing that nobody sees.
fn plain(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| !is_joining(*c)).map(|c| match c {
        '\u{ff01}'..='\u{ff5e}' => {
            u32::from(c).checked_sub(0xfee0).and_then(char::from_u32).unwrap_or(c)
        }
        'à'..='å' | 'À'..='Å' => 'a',
        'è'..='ë' | 'È'..='Ë' | 'ē' | 'ė' | 'ę' => 'e',
        'ì'..='ï' | 'Ì'..='Ï' | 'ı' => 'i',
        'ò'..='ö' | 'Ò'..='Ö' | 'ø' | 'Ø' => 'o',
        'ù'..='ü' | 'Ù'..='Ü' => 'u',
        'ñ' | 'ń' | 'Ñ' => 'n',
        'ç' | 'ć' | 'Ç' => 'c',
        '@' => 'a',
        '$' => 's',
        c => c,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_words_however_they_are_joined() {
        for text in [
            "file write",
            "FILE_WRITE",
            "fileWrite",
            "File-Write:",
            " file…write ",
            "ｆｉｌｅ write",
        ] {
            assert_eq!(folded(text), "file write", "{text}");
        }
        assert_eq!(squeezed("n-e-t\nw o r\u{200b}k"), "network");
        assert_eq!(unleeted(&squeezed("N3tw0rk")), "network");
        assert_eq!(squeezed("nëtwörk"), "network");
        assert_eq!(folded("P@$$word"), "password");
    }

    #[test]
    fn letters_of_other_scripts_are_odd_and_dashes_and_umlauts_are_not() {
        for c in ['е', 'ο', 'ⅽ', '𝐧', 'ｎ', '\u{200b}', '\u{301}', '中'] {
            assert!(is_odd(c), "{c:?}");
        }
        for c in ['a', '-', '–', '’', '…', 'ü', 'é', '\u{2011}', '→', '✓', ' '] {
            assert!(!is_odd(c), "{c:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "\\PC{0,100}") {
            let text = folded(&text);
            prop_assert!(!text.contains("  ") && text.trim() == text, "{text:?}");
        }
    }
}
