//! Which client a token stands for.
//!
//! **Invariant.** A token is worth something only to the process it was given to. Tokens are the kernel's to give,
//! never a peer's to choose, and they die with the kernel's process.

use std::collections::HashMap;
use std::sync::Arc;

use fluffy_base::{ClientId, Digest, Fault, FaultCode, IdSource};

use super::handshake::Token;
use super::process::Process;

/// How many clients are remembered; twice as many as can be connected.
const MAX_REMEMBERED: usize = 2_048;

/// The tokens that were given. Looked up by their hash, so that the time of a look-up tells nothing of a token.
pub(super) struct Tokens {
    ids: Arc<dyn IdSource>,
    given: HashMap<Digest, Given>,
    count: u64,
}

/// To whom a token was given.
struct Given {
    client: ClientId,
    process: Process,
    /// Where the client is connected.
    connection: Option<u64>,
    number: u64,
}

/// A client that may come in.
pub(super) struct Admitted {
    pub(super) client: ClientId,
    pub(super) token: Token,
    pub(super) digest: Digest,
    /// Its earlier connection, which is over.
    pub(super) earlier: Option<u64>,
}

impl Tokens {
    pub(super) fn new(ids: Arc<dyn IdSource>) -> Self {
        Self { ids, given: HashMap::new(), count: 0 }
    }

    /// The client of a token, or a new one where none is shown.
    pub(super) fn admit(
        &mut self,
        shown: Option<Token>,
        process: Process,
        connection: u64,
    ) -> Result<Admitted, Fault> {
        let Some(token) = shown else {
            return self.give(process, connection);
        };
        let digest = Digest::of(token.expose().as_bytes());
        // One answer for a token that never was, that was forgotten and that is another's: none of it is the asker's
        // to learn.
        let given = self.given.get_mut(&digest).filter(|given| given.process.is(&process));
        let given = given.ok_or_else(not_yours)?;
        let earlier = given.connection.replace(connection);
        Ok(Admitted { client: given.client.clone(), token, digest, earlier })
    }

    /// The connection is over; the token is kept for the next one.
    pub(super) fn left(&mut self, digest: &Digest, connection: u64) {
        if let Some(given) = self.given.get_mut(digest) {
            given.connection = given.connection.filter(|current| *current != connection);
        }
    }

    fn give(&mut self, process: Process, connection: u64) -> Result<Admitted, Fault> {
        let no_chance = || Fault::new(FaultCode::Internal, "the system gives no random bytes");
        let client = ClientId::fresh(&*self.ids).ok_or_else(no_chance)?;
        let token = Token::fresh(&*self.ids).ok_or_else(no_chance)?;
        let digest = Digest::of(token.expose().as_bytes());
        self.forget_one();
        self.count += 1;
        let given = Given {
            client: client.clone(),
            process,
            connection: Some(connection),
            number: self.count,
        };
        self.given.insert(digest, given);
        Ok(Admitted { client, token, digest, earlier: None })
    }

    /// Forgets the oldest client that is not connected, once there are too many.
    fn forget_one(&mut self) {
        if self.given.len() < MAX_REMEMBERED {
            return;
        }
        let away = self.given.iter().filter(|(_, given)| given.connection.is_none());
        let oldest = away.min_by_key(|(_, given)| given.number).map(|(digest, _)| *digest);
        if let Some(oldest) = oldest {
            self.given.remove(&oldest);
        }
    }
}

fn not_yours() -> Fault {
    Fault::new(FaultCode::NotYours, "this token is not yours: connect without one")
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use fluffy_base::SeededIds;

    use super::*;

    fn this_process() -> Process {
        Process::behind(UnixStream::pair().unwrap().0).unwrap()
    }

    fn again(token: &Token) -> Option<Token> {
        Token::parse(token.expose())
    }

    #[test]
    fn a_token_brings_its_process_back_as_the_same_client() {
        let mut tokens = Tokens::new(Arc::new(SeededIds::new(1)));
        let first = tokens.admit(None, this_process(), 1).unwrap();
        let second = tokens.admit(again(&first.token), this_process(), 2).unwrap();
        assert_eq!((second.client, second.earlier), (first.client, Some(1)));
        tokens.left(&first.digest, 1);
        let third = tokens.admit(again(&first.token), this_process(), 3).unwrap();
        assert_eq!(third.earlier, Some(2), "an earlier connection's end is not the present one's");
    }

    #[test]
    fn lesson_l12_a_token_of_another_process_or_of_ones_own_making_is_refused() {
        let mut tokens = Tokens::new(Arc::new(SeededIds::new(1)));
        let given = tokens.admit(None, this_process(), 1).unwrap();
        let mut other = this_process();
        other.pid = 1;
        let own = Token::parse("00000000000000000000000000000000");
        let mut refused = |shown, process| tokens.admit(shown, process, 2).map(|_| ()).unwrap_err();
        assert_eq!(refused(again(&given.token), other).code, FaultCode::NotYours);
        assert_eq!(refused(own, this_process()), not_yours());
    }

    #[test]
    fn a_client_that_is_connected_is_never_forgotten_for_a_new_one() {
        let mut tokens = Tokens::new(Arc::new(SeededIds::new(1)));
        let first = tokens.admit(None, this_process(), 0).unwrap();
        let mut away = Vec::new();
        let process = this_process();
        for connection in 1..=MAX_REMEMBERED as u64 + 50 {
            let client = tokens.admit(None, process, connection).unwrap();
            tokens.left(&client.digest, connection);
            away.push(client.token);
        }
        assert_eq!(tokens.given.len(), MAX_REMEMBERED);
        assert!(tokens.admit(again(&first.token), this_process(), 9).is_ok());
        assert!(tokens.admit(away.last().and_then(again), this_process(), 9).is_ok());
        assert!(tokens.admit(away.first().and_then(again), this_process(), 9).is_err());
    }
}
