//! Whose conversation is which.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fluffy_base::{ClientId, Clock as _, SystemClock, SystemIds};
use fluffy_chat::Conversation;

/// How long the conversation of a client is kept that is not connected: between two turns it may not be.
const AWAY_MS: u64 = 5 * 60 * 1_000;

/// The conversations of all clients.
#[derive(Default)]
pub(in crate::service) struct Talks {
    talks: HashMap<ClientId, Talk>,
    /// How often each client is connected.
    here: HashMap<ClientId, usize>,
}

struct Talk {
    seat: Arc<Mutex<Seat>>,
    /// Since when its client is away.
    left_ms: Option<u64>,
}

/// A conversation, and how much of a transcript was played in it.
pub(in crate::service) struct Seat {
    pub(super) conversation: Conversation,
    pub(super) played: usize,
}

/// A client at its conversation.
pub(in crate::service) struct Seated {
    seat: Arc<Mutex<Seat>>,
    /// Whether the system says that a terminal is behind it.
    pub(super) at_terminal: bool,
}

impl Seated {
    pub(super) fn seat(&self) -> MutexGuard<'_, Seat> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Talks {
    /// The conversation of a client; a new one where it has none.
    pub(in crate::service) fn seat(&mut self, client: &ClientId, at_terminal: bool) -> Seated {
        self.forget(SystemClock.now_ms());
        let talk = self.talks.entry(client.clone()).or_insert_with(|| {
            let conversation = Conversation::new(Box::new(SystemIds));
            let seat = Arc::new(Mutex::new(Seat { conversation, played: 0 }));
            Talk { seat, left_ms: None }
        });
        talk.left_ms = None;
        Seated { seat: Arc::clone(&talk.seat), at_terminal }
    }

    /// A client is here.
    pub(in crate::service) fn joined(&mut self, client: &ClientId) {
        *self.here.entry(client.clone()).or_default() += 1;
        if let Some(talk) = self.talks.get_mut(client) {
            talk.left_ms = None;
        }
        self.forget(SystemClock.now_ms());
    }

    /// One of its connections is over.
    pub(in crate::service) fn left(&mut self, client: &ClientId) {
        let count = self.here.get(client).copied().unwrap_or_default().saturating_sub(1);
        if count > 0 {
            self.here.insert(client.clone(), count);
            return;
        }
        self.here.remove(client);
        if let Some(talk) = self.talks.get_mut(client) {
            talk.left_ms = Some(SystemClock.now_ms());
        }
    }

    fn forget(&mut self, now_ms: u64) {
        let is_kept = |talk: &Talk| match talk.left_ms {
            None => true,
            Some(left_ms) => (left_ms..left_ms.saturating_add(AWAY_MS)).contains(&now_ms),
        };
        self.talks.retain(|_, talk| is_kept(talk));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> ClientId {
        ClientId::fresh(&SystemIds).unwrap()
    }

    #[test]
    fn cha_2_a_conversation_is_its_clients_alone_and_goes_with_it() {
        let (mut talks, ada, bob) = (Talks::default(), client(), client());
        talks.joined(&ada);
        let first = talks.seat(&ada, true);
        assert!(Arc::ptr_eq(&first.seat, &talks.seat(&ada, true).seat));
        assert!(!Arc::ptr_eq(&first.seat, &talks.seat(&bob, true).seat));
        // A second connection of the same client is there before the first is over.
        talks.joined(&ada);
        talks.left(&ada);
        talks.forget(u64::MAX);
        assert!(Arc::ptr_eq(&first.seat, &talks.seat(&ada, true).seat));
        talks.left(&ada);
        assert!(Arc::ptr_eq(&first.seat, &talks.seat(&ada, true).seat), "it comes back soon");
        talks.left(&ada);
        talks.forget(SystemClock.now_ms() + AWAY_MS);
        assert!(!Arc::ptr_eq(&first.seat, &talks.seat(&ada, true).seat));
    }
}
