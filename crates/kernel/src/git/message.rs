//! What a commit says.
//!
//! A message comes from a model, or from a hook, and ends up where people and programs believe it: in the
//! history, with the trailer that makes the commit a witness of the ledger.
//!
//! **Invariant.** A [`Message`] holds no trailer of ours and nothing that hides one: whoever reads the trailers
//! of a commit made here, by whichever of git's ways, finds the kernel's and no other.

use std::fmt;

use fluffy_base::{is_blank, masked};

/// The most that a message may have.
const MAX_BYTES: usize = 4096;
/// The most that a trailer may have.
const MAX_TRAILER_BYTES: usize = 512;
/// The name of our trailer.
const KEY: &str = "Fluffy-Checkpoint";
/// Where git, looking for trailers, takes a message to be over; a comment mark stands before it.
const SCISSORS: &str = "------------------------ >8 ------------------------";

/// A message that may be committed: text on lines, bounded, not blank, without a trailer of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message(String);

/// The line that ties a commit to the ledger: `Fluffy-Checkpoint: <origin> <size> <root>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trailer(String);

/// Why a text cannot be a commit's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Nothing is left that a reader would see.
    #[error("the commit message is blank")]
    Blank,
    /// It is too long.
    #[error("the commit message has {0} bytes, and {MAX_BYTES} are allowed")]
    Long(usize),
    /// The trailer is not one line of ours.
    #[error("`{0}` is not a `{KEY}: …` trailer on one line")]
    Trailer(String),
}

impl Message {
    /// The message that a text is: lines end with a newline, other control characters and those that change
    /// the direction of text are gone, known secrets are masked, trailers of ours are taken out.
    pub fn new(text: &str) -> Result<Self, MessageError> {
        // Far more than can be kept, and before anything is done with it.
        if text.len() > MAX_BYTES.saturating_mul(4) {
            return Err(MessageError::Long(text.len()));
        }
        let text = masked(text).replace("\r\n", "\n").replace('\r', "\n");
        let plain: String = text.chars().filter(|c| is_kept(*c)).collect();
        let mut kept: Vec<String> = Vec::new();
        let mut in_forged = false;
        for line in plain.split('\n').map(str::trim_end) {
            let continues = in_forged && line.starts_with([' ', '\t']);
            in_forged = continues || is_ours(line);
            if in_forged || line.contains(SCISSORS) {
                continue;
            }
            // A line of three hyphens is the end of the message to some readers of trailers.
            let divides = line.strip_prefix("---");
            let divides = divides.is_some_and(|rest| rest.is_empty() || starts_with_space(rest));
            let doubled = line.is_empty() && kept.last().is_none_or(String::is_empty);
            if !doubled {
                kept.push(if divides { format!(" {line}") } else { line.to_owned() });
            }
        }
        let text = kept.join("\n").trim_end().to_owned();
        match text.len() {
            _ if is_blank(&text) => Err(MessageError::Blank),
            long if long > MAX_BYTES => Err(MessageError::Long(long)),
            _fits => Ok(Self(text)),
        }
    }

    /// The text, without a newline at its end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its first line.
    pub fn subject(&self) -> &str {
        self.0.lines().next().unwrap_or_default()
    }

    /// The text with a trailer, as `git interpret-trailers` would add it, ending with a newline.
    pub(super) fn with(&self, trailer: &Trailer) -> String {
        let gap = if ends_with_trailers(&self.0) { "\n" } else { "\n\n" };
        format!("{}{gap}{}\n", self.0, trailer.0)
    }
}

impl Trailer {
    /// The trailer that a line is.
    pub fn new(line: &str) -> Result<Self, MessageError> {
        let value = line.strip_prefix(KEY).and_then(|rest| rest.strip_prefix(": "));
        let plain = line.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        match value {
            Some(value) if plain && !value.trim().is_empty() && line.len() <= MAX_TRAILER_BYTES => {
                Ok(Self(line.trim_end().to_owned()))
            }
            _no => Err(MessageError::Trailer(fluffy_base::Excerpt::new(line, 80).to_string())),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a character stays: no control characters but newline and tab, no line ends of other systems, nothing
/// that turns the direction of what follows.
fn is_kept(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let ends = matches!(c, '\u{2028}' | '\u{2029}');
    matches!(c, '\n' | '\t') || !(c.is_control() || turns || ends)
}

fn starts_with_space(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_whitespace())
}

/// Whether a line would be taken for our trailer by any reader: whatever its case, with characters that nobody
/// sees in it, with space before the colon, or with another separator, which git lets people choose.
fn is_ours(line: &str) -> bool {
    let seen: String = line.chars().filter(|c| !is_blank(c.encode_utf8(&mut [0; 4]))).collect();
    let Some((name, rest)) = seen.split_at_checked(KEY.len()) else { return false };
    name.eq_ignore_ascii_case(KEY) && !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-')
}

/// Whether the last paragraph is one of trailers, by git's rule: all of its lines are, or a quarter of them with one
/// that git itself writes. The first paragraph is the title and never one.
fn ends_with_trailers(text: &str) -> bool {
    let Some((_, last)) = text.rsplit_once("\n\n") else { return false };
    let (mut trailers, mut others, mut known, mut after_trailer) = (0_usize, 0_usize, false, false);
    for line in last.lines() {
        let generated =
            line.starts_with("Signed-off-by: ") || line.starts_with("(cherry picked from commit ");
        if generated || is_trailer(line) {
            (trailers, after_trailer) = (trailers + 1, true);
            known |= generated;
        } else if !(after_trailer && starts_with_space(line)) {
            (others, after_trailer) = (others + 1, false);
        }
    }
    trailers > 0 && (others == 0 || (known && trailers * 3 >= others))
}

/// Whether a line is `token: value`.
fn is_trailer(line: &str) -> bool {
    let Some((token, _)) = line.split_once(':') else { return false };
    let token = token.trim_end_matches([' ', '\t']);
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TRAILER: &str = "Fluffy-Checkpoint: example.org/ledger 12 abc=";

    fn message(text: &str) -> String {
        Message::new(text).unwrap().to_string()
    }

    #[test]
    fn control_characters_and_empty_lines_go_and_the_text_stays() {
        assert_eq!(
            message("\n\n fix: é\u{1b}[31m\r\n\r\n\r\n\tbody\0 \u{202e}x \n\n"),
            " fix: é[31m\n\n\tbody x"
        );
        assert_eq!(Message::new("\u{200b} \n\t"), Err(MessageError::Blank));
        assert_eq!(Message::new("Fluffy-Checkpoint: a 1 b"), Err(MessageError::Blank));
        assert_eq!(Message::new(&"x".repeat(4097)), Err(MessageError::Long(4097)));
        assert!(Message::new(&"x".repeat(4096)).is_ok());
    }

    #[test]
    fn a_forged_trailer_does_not_survive_in_any_spelling() {
        for forged in [
            "Fluffy-Checkpoint: evil 1 x",
            "fluffy-checkpoint: evil 1 x",
            "FLUFFY-CHECKPOINT : evil 1 x",
            "  Fluffy-Checkpoint\t: evil 1 x",
            "Fluffy-\u{200b}Checkpoint: evil 1 x",
            "Fluffy-\u{7}Checkpoint:evil 1 x",
            "Fluffy-Checkpoint=evil 1 x",
            "Fluffy-Checkpoint: e\n vil 1 x\n\tevil",
            "Fluffy-Checkpoint",
            "# ------------------------ >8 ------------------------",
        ] {
            for text in
                [format!("title\n\n{forged}\n"), format!("title\r{forged}\r\rSigned-off-by: a\n")]
            {
                let kept = message(&text);
                let lower = kept.to_lowercase();
                assert!(!lower.contains("checkpoint") && !lower.contains("vil"), "{kept:?}");
                assert!(!lower.contains(">8"), "{kept:?}");
            }
        }
        let prose = "the fluffy-checkpoint: a word in the middle\nFluffy-Checkpoints are fine";
        assert_eq!(message(prose), prose);
        assert_eq!(message("a\n\n---\nb"), "a\n\n ---\nb");
    }

    #[test]
    fn a_trailer_is_one_line_of_ours() {
        for wrong in [
            "",
            "Fluffy-Checkpoint:",
            "Fluffy-Checkpoint:  ",
            "Other: x",
            "Fluffy-Checkpoint: a\nb",
        ] {
            assert!(matches!(Trailer::new(wrong), Err(MessageError::Trailer(_))), "{wrong}");
        }
        assert!(Trailer::new(TRAILER).is_ok());
    }

    #[test]
    fn a_trailer_joins_the_trailers_that_are_there() {
        let trailer = Trailer::new(TRAILER).unwrap();
        let with = |text: &str| Message::new(text).unwrap().with(&trailer);
        assert_eq!(with("title"), format!("title\n\n{TRAILER}\n"));
        assert_eq!(with("title: x"), format!("title: x\n\n{TRAILER}\n"));
        assert_eq!(with("t\n\nbody"), format!("t\n\nbody\n\n{TRAILER}\n"));
        assert_eq!(with("t\n\nChange-Id: a\n b"), format!("t\n\nChange-Id: a\n b\n{TRAILER}\n"));
        assert_eq!(
            with("t\n\nprose\nChange-Id: a"),
            format!("t\n\nprose\nChange-Id: a\n\n{TRAILER}\n")
        );
        let signed = "t\n\nprose\nSigned-off-by: a";
        assert_eq!(with(signed), format!("{signed}\n{TRAILER}\n"));
    }

    proptest! {
        #[test]
        fn a_message_is_stable_and_holds_nothing_of_ours(text in "([ a:=\t-]|\n|\r|fluffy-checkpoint|---|>8|Fluffy-|Checkpoint|\u{200b}|\u{7})*") {
            if let Ok(message) = Message::new(&text) {
                prop_assert!(!message.as_str().lines().any(is_ours), "{:?}", message);
                prop_assert_eq!(Message::new(message.as_str()), Ok(message));
            }
        }
    }
}
