//! What went wrong, in words for a person and as one line of JSON.

/// What went wrong, why, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The exit code that goes with it.
    pub code: u8,
    /// What is not possible.
    pub what: String,
    /// Why it is not.
    pub why: String,
    /// What a person can do about it.
    pub fix: String,
}

impl Trouble {
    pub(crate) fn new(code: u8, what: &str, why: &str, fix: &str) -> Self {
        Self { code, what: what.to_owned(), why: why.to_owned(), fix: fix.to_owned() }
    }

    /// `{"what":…,"why":…,"fix":…,"code":n}`: one line, in which nothing can steer a terminal.
    pub fn to_line(&self) -> String {
        let [what, why, fix] = [&self.what, &self.why, &self.fix].map(|text| quoted(text));
        format!(r#"{{"what":{what},"why":{why},"fix":{fix},"code":{}}}"#, self.code)
    }

    /// Reads what [`Trouble::to_line`] writes; any other line is none.
    pub fn from_line(line: &str) -> Option<Self> {
        let (what, rest) = unquoted(line.strip_prefix(r#"{"what":"#)?)?;
        let (why, rest) = unquoted(rest.strip_prefix(r#","why":"#)?)?;
        let (fix, rest) = unquoted(rest.strip_prefix(r#","fix":"#)?)?;
        let code = rest.strip_prefix(r#","code":"#)?.strip_suffix('}')?.parse().ok()?;
        Some(Self { code, what, why, fix })
    }
}

/// As a string of JSON. Control characters, and what hides or turns text, are escaped.
fn quoted(text: &str) -> String {
    let escaped = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        '\u{200b}'..='\u{206f}' => format!("\\u{:04x}", u32::from(c)),
        c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

/// The string that `text` begins with, of those that [`quoted`] writes, and what comes after it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let (mut chars, mut value) = (text.strip_prefix('"')?.chars(), String::new());
    loop {
        value.push(match chars.next()? {
            '"' => return Some((value, chars.as_str())),
            '\\' if chars.as_str().starts_with('u') => {
                let (digits, after) = chars.as_str().split_at_checked(5)?;
                chars = after.chars();
                char::from_u32(u32::from_str_radix(digits.get(1..)?, 16).ok()?)?
            }
            '\\' => chars.next()?,
            c => c,
        });
    }
}
