//! Characters that a server cut in two.
//!
//! JSON writes a character beyond the first 65,536 as two escapes. Servers that count in such halves cut a text
//! between them and send one at the end of an event and the other at the beginning of the next; alone, neither is
//! a character, and the event is no JSON for those who take that strictly.
//!
//! **Invariant.** What is whole stays as it came. Two halves make their character where the second one came; a half
//! that finds no other is none.

/// What stands for a half without the other.
const NONE: &str = "\\ufffd";

/// The events of one stream, with their characters made whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Halves {
    /// The first half of a character whose second has not come.
    first: Option<String>,
}

impl Halves {
    /// The data of the next event.
    pub(crate) fn mended(&mut self, data: String) -> String {
        if !data.contains("\\u") {
            return data;
        }
        let mut mended = String::with_capacity(data.len());
        let mut rest = data.as_str();
        while let Some(at) = rest.find('\\') {
            let (before, escape) = rest.split_at(at);
            mended.push_str(before);
            rest = self.escape(escape, &mut mended);
        }
        mended.push_str(rest);
        mended
    }

    /// Takes the escape at the beginning of a text; what is behind it.
    fn escape<'t>(&mut self, text: &'t str, mended: &mut String) -> &'t str {
        let (escape, rest) = match unit(text) {
            Some(_) => text.split_at_checked(6),
            None => text.char_indices().nth(2).and_then(|(end, _)| text.split_at_checked(end)),
        }
        .unwrap_or((text, ""));
        match unit(escape) {
            Some(0xD800..=0xDBFF) => match (unit(rest), rest.split_at_checked(6)) {
                (Some(0xDC00..=0xDFFF), Some((second, rest))) => {
                    mended.extend([escape, second]);
                    return rest;
                }
                _ if rest.starts_with('"') => self.first = Some(escape.to_owned()),
                _ => mended.push_str(NONE),
            },
            Some(0xDC00..=0xDFFF) => {
                let begins = mended.ends_with('"') && !mended.ends_with("\\\"");
                match self.first.take().filter(|_| begins) {
                    Some(first) => mended.extend([first.as_str(), escape]),
                    None => mended.push_str(NONE),
                }
            }
            _ => mended.push_str(escape),
        }
        rest
    }
}

/// The number of the half, or the character, that a text begins with an escape of.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn read(events: &[&str]) -> String {
        let mut halves = Halves::default();
        let texts = events.iter().map(|event| {
            let value: Value = serde_json::from_str(&halves.mended((*event).to_owned())).unwrap();
            value["t"].as_str().unwrap().to_owned()
        });
        texts.collect()
    }

    #[test]
    fn halves_of_two_events_are_one_character() {
        assert_eq!(read(&[r#"{"t":"a\ud83e"}"#, r#"{"t":"\uddeeb"}"#]), "a🧮b");
        assert_eq!(read(&[r#"{"t":"a\ud83e"}"#, r#"{"t":""}"#, r#"{"t":"\uddee"}"#]), "a🧮");
        assert_eq!(read(&[r#"{"t":"\ud83e\uddee\ud83d"}"#, r#"{"t":"\udc11"}"#]), "🧮🐑");
    }

    #[test]
    fn a_half_alone_is_no_character_and_no_mistake() {
        assert_eq!(read(&[r#"{"t":"a\uddee"}"#]), "a\u{fffd}");
        assert_eq!(read(&[r#"{"t":"\ud83ea"}"#, r#"{"t":"\uddee"}"#]), "\u{fffd}a\u{fffd}");
        assert_eq!(read(&[r#"{"t":"a\ud83e"}"#, r#"{"t":"b\uddee"}"#]), "ab\u{fffd}");
        assert_eq!(read(&[r#"{"t":"a\ud83e"}"#, r#"{"t":"\"\uddee"}"#]), "a\"\u{fffd}");
        assert_eq!(read(&[r#"{"t":"\ud83e\ud83e\uddee"}"#]), "\u{fffd}🧮");
    }

    #[test]
    fn what_is_whole_or_no_escape_stays_as_it_came() {
        for data in [
            r#"{"t":"\\ud83e"}"#,
            r#"{"t":"\\\\ud83e \u00e9 \ud83e\uddee \n \" "}"#,
            r#"{"t":"\u12"#,
            r"\",
            r"\u",
            r"\é",
            r"\ud83",
            "",
        ] {
            assert_eq!(Halves::default().mended(data.to_owned()), data);
        }
    }

    proptest! {
        #[test]
        fn a_text_cut_between_any_halves_is_the_text(text in "[a🐑\"\\\\é🧮\n]{0,12}", cuts in prop::collection::vec(0_usize..24, 0..6)) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(units.len())).collect();
            cuts.sort_unstable();
            let mut halves = Halves::default();
            let (mut from, mut read) = (0, String::new());
            for to in cuts.into_iter().chain([units.len()]) {
                let escaped = units.get(from..to).unwrap_or_default().iter();
                let escaped: String = escaped.map(|unit| format!("\\u{unit:04x}")).collect();
                let data = halves.mended(format!("{{\"t\":\"{escaped}\"}}"));
                let value: Value = serde_json::from_str(&data).unwrap();
                read.push_str(value["t"].as_str().unwrap());
                from = to;
            }
            prop_assert_eq!(read, text);
        }

        #[test]
        fn no_data_breaks_it(data in "(\\\\u[dD][89cfCF][0-9a-f]{2}|\\PC|\\\\){0,20}") {
            let mut halves = Halves::default();
            halves.mended(data.clone());
            halves.mended(data);
        }
    }
}
