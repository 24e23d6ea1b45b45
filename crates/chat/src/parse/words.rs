//! Words that say nothing, and shapes of words.

/// What people say before they say what they want.
const BEFORE: [&str; 18] = [
    "please ",
    "hey ",
    "hi ",
    "ok ",
    "okay ",
    "now ",
    "just ",
    "then ",
    "can you ",
    "could you ",
    "would you ",
    "will you ",
    "kindly ",
    "i want you to ",
    "i'd like you to ",
    "i would like you to ",
    "let's ",
    "go and ",
];

/// The message without courtesies and without the point at its end.
pub(super) fn plain(message: &str) -> String {
    let mut text = message.trim();
    loop {
        let cut = BEFORE.iter().find_map(|word| strip(text, word));
        let cut = cut.map(|rest| rest.trim_start_matches([',', ' ']));
        match cut.filter(|rest| !rest.is_empty()) {
            Some(rest) => text = rest,
            None => break,
        }
    }
    let mut text = text.trim_end();
    for word in [", please", " please", " for me", " thanks"] {
        let bare = text.trim_end_matches(['.', '!', '?']);
        if let Some(rest) = strip_end(bare, word) {
            text = rest.trim_end();
        }
    }
    text.trim_end_matches(['.', '!']).trim().to_owned()
}

/// The rest behind a beginning, whatever its case.
pub(super) fn strip<'a>(text: &'a str, beginning: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(beginning.len())?;
    head.eq_ignore_ascii_case(beginning).then_some(rest)
}

/// What stands before an end, whatever its case.
pub(super) fn strip_end<'a>(text: &'a str, end: &str) -> Option<&'a str> {
    let (head, tail) = text.split_at_checked(text.len().checked_sub(end.len())?)?;
    tail.eq_ignore_ascii_case(end).then_some(head)
}

/// The rest behind the first of these beginnings that fits; a beginning ends with a blank or the text does.
pub(super) fn after<'a>(text: &'a str, beginnings: &[&str]) -> Option<&'a str> {
    beginnings.iter().find_map(|beginning| strip(text, beginning)).map(str::trim)
}

/// Where a part begins, whatever its case, and what stands around it.
pub(super) fn around<'a>(text: &'a str, part: &str) -> Option<(&'a str, &'a str)> {
    let at = text.to_ascii_lowercase().find(part)?;
    Some((text.get(..at)?.trim(), text.get(at + part.len()..)?.trim()))
}

/// A text without the quotes around it.
pub(super) fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let quoted = ['"', '\'', '`'].into_iter().find_map(|quote| {
        text.strip_prefix(quote)?.strip_suffix(quote).filter(|inner| !inner.contains(quote))
    });
    quoted.unwrap_or(text)
}
