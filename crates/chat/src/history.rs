//! What was said, as far as it is remembered.

use std::collections::VecDeque;

use fluffy_base::masked;

/// How many messages are remembered, of both sides.
pub const MAX_KEPT: usize = 20;

/// The longest message that is remembered, in characters.
const LONGEST: usize = 2_000;

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// The person.
    Person,
    /// The program, or a model for it.
    Program,
}

/// The last messages, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History(VecDeque<(Voice, String)>);

impl History {
    /// Remembers a message, and forgets the oldest if there are too many.
    pub fn add(&mut self, voice: Voice, text: &str) {
        let text: String = masked(text).chars().take(LONGEST).collect();
        self.0.push_back((voice, text));
        while self.0.len() > MAX_KEPT {
            self.0.pop_front();
        }
    }

    /// What is remembered.
    pub fn messages(&self) -> impl Iterator<Item = (Voice, &str)> {
        self.0.iter().map(|(voice, text)| (*voice, text.as_str()))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first_and_long_messages_are_cut() {
        let mut history = History::default();
        for number in 0..MAX_KEPT + 3 {
            history.add(Voice::Person, &format!("message {number}"));
        }
        assert_eq!(history.messages().count(), MAX_KEPT);
        assert_eq!(history.messages().next(), Some((Voice::Person, "message 3")));
        history.add(Voice::Program, &"é".repeat(LONGEST + 1));
        let (_, last) = history.messages().last().unwrap();
        assert_eq!(last.chars().count(), LONGEST);
    }
}
