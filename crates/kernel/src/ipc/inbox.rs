//! What a client has received and nobody has taken yet.
//!
//! **Invariant.** Answers go to whoever waits for them; everything else is kept in order. What is kept is bounded:
//! a client that never takes its events loses the connection, not the memory of its machine.

use std::collections::{HashMap, VecDeque};

use fluffy_base::{Fault, FrameDecoder, Message};
use serde_json::Value;

use super::CLOSED;
use super::client::ReceiveError;

/// How many bytes of events are kept.
const MAX_KEPT: usize = 64 << 20;

/// What a kept message costs besides its bytes.
const MESSAGE_COST: usize = 256;

/// How much is read at a time.
const READ_AT_ONCE: usize = 64 << 10;

/// What reading from the socket takes.
pub(super) struct Reader {
    pub(super) decoder: FrameDecoder,
    pub(super) buffer: Vec<u8>,
}

/// Received and not taken.
pub(super) struct Inbox {
    /// Taken out by whoever reads from the socket; only one does.
    pub(super) reader: Option<Reader>,
    answers: HashMap<u64, Option<Result<Value, Fault>>>,
    kept: VecDeque<(Message, usize)>,
    cost: usize,
    end: Option<ReceiveError>,
}

impl Inbox {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            reader: Some(Reader {
                decoder: FrameDecoder::new(limit),
                buffer: vec![0; READ_AT_ONCE],
            }),
            answers: HashMap::new(),
            kept: VecDeque::new(),
            cost: 0,
            end: None,
        }
    }

    /// From now on the answer of that id is waited for.
    pub(super) fn expect(&mut self, id: u64) {
        self.answers.insert(id, None);
    }

    /// The answer, if it is there.
    pub(super) fn take_answer(&mut self, id: u64) -> Option<Result<Value, Fault>> {
        let answer = self.answers.get_mut(&id)?.take()?;
        self.answers.remove(&id);
        Some(answer)
    }

    /// Nobody waits for it any more; if it comes, it is kept like an event.
    pub(super) fn give_up(&mut self, id: u64) {
        self.answers.remove(&id);
    }

    /// The next event or foreign message.
    pub(super) fn take(&mut self) -> Option<Message> {
        let (message, cost) = self.kept.pop_front()?;
        self.cost = self.cost.saturating_sub(cost);
        Some(message)
    }

    /// Takes a message in that had so many bytes.
    pub(super) fn deliver(&mut self, message: Message, bytes: usize) {
        match message {
            Message::Response { id, outcome } if self.answers.contains_key(&id) => {
                self.answers.insert(id, Some(outcome));
            }
            Message::Event { method, params } if method == CLOSED => {
                let end = Fault::from_value(params);
                self.end(end.map_or_else(ReceiveError::Garbled, ReceiveError::HungUp));
            }
            message => {
                let cost = bytes + MESSAGE_COST;
                self.cost += cost;
                self.kept.push_back((message, cost));
                if self.cost > MAX_KEPT {
                    self.end(ReceiveError::Overrun);
                }
            }
        }
    }

    /// The connection is over; the first reason counts.
    pub(super) fn end(&mut self, why: ReceiveError) {
        self.end.get_or_insert(why);
    }

    pub(super) fn ended(&self) -> Option<ReceiveError> {
        self.end.clone()
    }
}

#[cfg(test)]
mod tests {
    use fluffy_base::FaultCode;
    use serde_json::json;

    use super::*;

    fn event(method: &str, params: Value) -> Message {
        Message::Event { method: method.to_owned(), params }
    }

    #[test]
    fn an_answer_goes_to_whoever_waits_and_anything_else_is_kept_in_order() {
        let mut inbox = Inbox::new(9);
        inbox.expect(1);
        inbox.expect(2);
        let answer = |id| Message::Response { id, outcome: Ok(json!(id)) };
        for id in [7, 2, 1, 8] {
            inbox.deliver(answer(id), 9);
        }
        assert_eq!(inbox.take_answer(1), Some(Ok(json!(1))));
        assert_eq!(inbox.take_answer(1), None);
        inbox.give_up(2);
        assert_eq!(inbox.take_answer(2), None);
        assert_eq!([inbox.take(), inbox.take()], [Some(answer(7)), Some(answer(8))]);
        assert_eq!((inbox.take(), inbox.cost), (None, 0));
    }

    #[test]
    fn a_client_that_takes_nothing_loses_the_connection_and_not_its_memory() {
        let mut inbox = Inbox::new(9);
        for _ in 0..MAX_KEPT >> 20 {
            assert_eq!(inbox.ended(), None);
            inbox.deliver(event("e", Value::Null), 1 << 20);
        }
        assert_eq!(inbox.ended(), Some(ReceiveError::Overrun));
    }

    #[test]
    fn the_kernels_last_words_are_the_reason_and_the_first_reason_counts() {
        let mut inbox = Inbox::new(9);
        let fault = Fault::new(FaultCode::Stopping, "over");
        inbox.deliver(event(CLOSED, fault.to_value()), 9);
        inbox.end(ReceiveError::Closed);
        assert_eq!(inbox.ended(), Some(ReceiveError::HungUp(fault)));
        let mut inbox = Inbox::new(9);
        inbox.deliver(event(CLOSED, json!("bye")), 9);
        assert!(matches!(inbox.ended(), Some(ReceiveError::Garbled(_))));
    }
}
