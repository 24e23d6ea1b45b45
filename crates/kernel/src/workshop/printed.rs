//! What a job printed, as people and models are shown it.
//!
//! **Invariant.** Bounded, whatever was printed; no secret of a known kind, and no character that a terminal
//! obeys, but line ends and tabs.

use fluffy_base::sanitised;
use fluffy_sandbox::Captured;

/// How much of each end is looked at: more than is ever shown, so that no secret is cut where it shows.
const LOOKED_AT: usize = 64 << 10;

/// The beginning and the end of what a job printed to one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Printed {
    /// The text; where something is left out in the middle, a line says how much.
    pub text: String,
    /// Whether anything is left out, here or because the job printed more than was kept.
    pub cut: bool,
}

/// At most `keep` bytes of text and a line for what is left out.
pub(super) fn printed(captured: &Captured, keep: usize) -> Printed {
    let bytes = captured.bytes.as_slice();
    let short = bytes.len() <= 2 * LOOKED_AT;
    let (head, tail) = if short { (bytes, bytes) } else { ends(bytes) };
    let (head, tail) = (readable(head), readable(tail));
    if short && head.len() <= keep {
        return Printed { text: head, cut: captured.cut };
    }
    let first = head.get(..head.floor_char_boundary(keep / 2)).unwrap_or_default();
    let from = tail.ceil_char_boundary(tail.len().saturating_sub(keep / 2));
    let last = tail.get(from..).unwrap_or_default();
    let left_out = bytes.len().saturating_sub(keep);
    let more = if captured.cut { ", and more that was not kept" } else { "" };
    let text = format!("{first}\n[… about {left_out} bytes left out{more} …]\n{last}");
    Printed { text, cut: true }
}

/// The last `keep` bytes of text.
pub(super) fn tail(bytes: &[u8], keep: usize) -> String {
    let text = readable(bytes.get(bytes.len().saturating_sub(LOOKED_AT)..).unwrap_or_default());
    let from = text.ceil_char_boundary(text.len().saturating_sub(keep));
    text.get(from..).unwrap_or_default().trim().to_owned()
}

fn ends(bytes: &[u8]) -> (&[u8], &[u8]) {
    let tail = bytes.len().saturating_sub(LOOKED_AT);
    (bytes.get(..LOOKED_AT).unwrap_or_default(), bytes.get(tail..).unwrap_or_default())
}

fn readable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = |line: &str| {
        let parts: Vec<_> = line.trim_end_matches('\r').split('\t').map(sanitised).collect();
        parts.join("\t")
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str, keep: usize) -> Printed {
        printed(&Captured { bytes: text.as_bytes().to_vec(), cut: false }, keep)
    }

    #[test]
    fn a_short_output_is_shown_whole_and_harmless() {
        let shown = show("a\tb\r\n\u{1b}[31mred ghp_abcdefghijklmnopqrstuvwxyz0123456789\n", 1000);
        assert!(shown.text.starts_with("a\tb\n\\u{1b}[31mred ghp_"), "{}", shown.text);
        assert!(!shown.text.contains("xyz") && !shown.cut);
    }

    #[test]
    fn of_a_long_output_both_ends_are_shown_and_what_is_missing_is_said() {
        for length in [2_000_usize, 100_000, 1_000_000] {
            let text = format!("begin{}{}end", "ä".repeat(length), "\0".repeat(length));
            let shown = show(&text, 1000);
            assert!(shown.cut && shown.text.len() < 1100, "{}", shown.text.len());
            assert!(shown.text.starts_with("begin") && shown.text.ends_with("end"));
            assert!(shown.text.contains(&format!("about {} bytes left out", text.len() - 1000)));
        }
    }

    #[test]
    fn a_tail_is_bounded() {
        assert_eq!(tail("ä".repeat(100).as_bytes(), 11), "ä".repeat(5));
        assert_eq!(tail(b"all of it\n", 100), "all of it");
    }
}
