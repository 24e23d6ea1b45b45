//! What a person says to a session after its task: the same conversation goes on with it.
//!
//! **Invariant.** A message is recorded before anything comes of it, and one that is brought twice is said once: whoever lost the
//! answer brings it again.

use fluffy_base::SessionId;
use fluffy_workflow::State;

use super::open::check_words;
use super::{Entry, Message, Session, SessionConfig, SessionError, StoredSession};

/// The longest id of a message.
const MAX_ID: usize = 64;

impl Session {
    /// Goes on with a session because the person says something more; it may be done. `message` tells these words from the same
    /// words said again.
    pub fn say(
        config: SessionConfig,
        id: SessionId,
        message: &str,
        text: &str,
    ) -> Result<(Self, StoredSession), SessionError> {
        check_words(text)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if message.is_empty() || message.len() > MAX_ID || !message.chars().all(plain) {
            return Err(SessionError::MessageId);
        }
        let (session, mut stored) = Self::wake(config, id)?;
        if stored.messages.iter().all(|known| known.id != message) {
            let (id, text) = (message.to_owned(), text.to_owned());
            let said = Message { id, text, after: stored.turns.len() as u64 };
            session.record(&Entry::Said(said.clone()))?;
            session.desk.change().set(|inside| inside.progress.go_on(&said.text));
            stored.messages.push(said);
        }
        if session.state() == State::Idle && session.is_done().is_none() {
            session.start()?;
        }
        Ok((session, stored))
    }

    /// Takes a grant back.
    pub fn revoke(&self, number: u64) -> Result<(), SessionError> {
        match self.kernel.revoke(number)? {
            true => Ok(()),
            false => Err(SessionError::NoGrant(number)),
        }
    }
}
