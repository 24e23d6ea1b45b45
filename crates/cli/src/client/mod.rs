//! The client's side: finds the project's kernel or has it started, hands it work, and follows that to its end.
//!
//! **Invariant.** Nothing is decided here. A client says what a person wants, shows what it is told, and brings a person's
//! answers.
//!
//! **Invariant.** A lost connection loses nothing: what was told is not told again, what was missed is told then; and where the
//! kernel's process itself was lost, its session goes on from the ledger.

mod follow;
mod start;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fluffy_base::{Fault, FaultCode, SystemWaiter, Waiter as _};
use fluffy_kernel::{CallError, Client, ClientOptions, ConnectError, Token, Welcome};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) use self::follow::{Follower, Reach, Watched};
use crate::environment::Environment;
use crate::explain::{CliError, Explained, FAILED};
use crate::place::Place;
use crate::wire::{self, Joined, PART_BYTES, Submission};

/// How long a kernel may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a kernel is looked for before it is given up.
const ATTEMPTS: usize = 10;
const PAUSE_MS: u64 = 50;

/// The way to a project's kernel.
pub(crate) struct Link<'a> {
    place: &'a Place,
    environment: &'a Environment,
    token: Mutex<Option<Token>>,
}

/// An open connection to it.
#[derive(Clone)]
pub(crate) struct Line {
    client: Arc<Client>,
    /// Which process answers.
    pub(crate) kernel: String,
}

impl<'a> Link<'a> {
    /// The way to the kernel of a project.
    pub(crate) fn new(place: &'a Place, environment: &'a Environment) -> Self {
        Self { place, environment, token: Mutex::default() }
    }

    /// Connects to the kernel; has it started where it is not there.
    pub(crate) fn connect(&self) -> Result<Line, CliError> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match self.existing() {
                Ok(Some(line)) => return Ok(line),
                Ok(None) => start::kernel(self.place, self.environment)?,
                // One that is about to end: the next is started.
                Err(error) => {
                    last = Some(error);
                    SystemWaiter.wait(PAUSE_MS, &|| false);
                }
            }
        }
        Err(last.unwrap_or_else(|| unanswered("it is started and does not answer")))
    }

    /// Connects to the kernel if there is one.
    pub(crate) fn existing(&self) -> Result<Option<Line>, CliError> {
        self.found().map_err(unreached)
    }

    fn found(&self) -> Result<Option<Line>, ConnectError> {
        let socket = self.place.kernel_socket(self.environment);
        let mut token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let options =
            |token| ClientOptions { name: "fluffy".to_owned(), token, patience: PATIENCE };
        let own = token.as_ref().and_then(|token| Token::parse(token.expose()));
        let connected = match Client::connect(&socket, options(own)) {
            // The kernel that gave it is gone.
            Err(ConnectError::Refused(Fault { code: FaultCode::NotYours, .. })) => {
                Client::connect(&socket, options(None))
            }
            connected => connected,
        };
        match connected {
            Ok((client, Welcome { kernel, token: given, .. })) => {
                *token = Some(given);
                Ok(Some(Line { client: Arc::new(client), kernel }))
            }
            Err(ConnectError::NotRunning(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Ends the kernel; whether there was one. One that hangs up has come to its end by itself.
    pub(crate) fn stop(&self) -> Result<bool, CliError> {
        let line = match self.found() {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(false),
            Err(
                ConnectError::Lost(_)
                | ConnectError::Refused(Fault { code: FaultCode::Stopping, .. }),
            ) => return Ok(true),
            Err(error) => return Err(unreached(error)),
        };
        match line.call::<Value>(wire::STOP, &json!({})) {
            Ok(_) | Err(CallError::Gone(_)) => Ok(true),
            Err(error) => Err(told(error)),
        }
    }
}

impl Line {
    /// Asks something.
    pub(crate) fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T, CallError> {
        let wrong = |code| {
            move |error: serde_json::Error| CallError::Fault(Fault::new(code, &error.to_string()))
        };
        let params = serde_json::to_value(params).map_err(wrong(FaultCode::BadParams))?;
        let answer = self.client.call(method, params, PATIENCE)?;
        serde_json::from_value(answer).map_err(wrong(FaultCode::Malformed))
    }

    /// Hands work over.
    fn submit(&self, submission: &Submission) -> Result<Joined, CallError> {
        if let Some(text) = submission.sent_before() {
            let mut rest = text;
            while !rest.is_empty() {
                let end = rest.floor_char_boundary(PART_BYTES);
                let (part, more) = rest.split_at_checked(end).unwrap_or((rest, ""));
                let _taken: Value = self.call(wire::PART, &json!({ "text": part }))?;
                rest = more;
            }
        }
        self.call(wire::SUBMIT, submission)
    }
}

/// The kernel does not answer.
fn unanswered(why: &str) -> CliError {
    CliError::Told(Explained {
        what: "the kernel of this project does not answer".to_owned(),
        why: why.to_owned(),
        fix: "see what it last said: fluffy doctor; then try again".to_owned(),
        code: FAILED,
    })
}

/// Why there is no connection, for people.
fn unreached(error: ConnectError) -> CliError {
    match error {
        ConnectError::Refused(fault) => refused(fault),
        other => unanswered(&fluffy_kernel::causes(&other)),
    }
}

/// What a call failed with, for people.
pub(crate) fn told(error: CallError) -> CliError {
    match error {
        CallError::Fault(fault) => refused(fault),
        other => unanswered(&fluffy_kernel::causes(&other)),
    }
}

/// The kernel says no.
fn refused(fault: Fault) -> CliError {
    let fix = match fault.code {
        FaultCode::Busy => {
            "wait for it to end, watch it: fluffy session attach, or end it where it was started"
        }
        FaultCode::Version => {
            "end the kernel of the other version: fluffy kernel stop; then try again"
        }
        FaultCode::NotFound => "see which sessions there are: fluffy session list",
        FaultCode::Stopping => "try again",
        _ => "see `fluffy doctor`",
    };
    CliError::Told(Explained {
        what: "the kernel of this project refused".to_owned(),
        why: fault.message,
        fix: fix.to_owned(),
        code: FAILED,
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{DirBuilder, Permissions, set_permissions};
    use std::io::Write as _;
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    use std::os::unix::net::{UnixListener, UnixStream};

    use fluffy_base::{Message, encode_frame};

    use super::*;

    /// Stops a kernel that does this with whoever connects.
    fn stopped(hang_up: impl FnOnce(UnixStream) + Send + 'static) -> Result<bool, CliError> {
        let dir = tempfile::tempdir().unwrap();
        let environment = Environment {
            state_home: Some(dir.path().join("state")),
            runtime_dir: Some(dir.path().to_owned()),
            ..Environment::default()
        };
        let place = Place::of(Some(dir.path()), &environment).unwrap();
        let socket = place.kernel_socket(&environment);
        DirBuilder::new().mode(0o700).create(socket.parent().unwrap()).unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        set_permissions(&socket, Permissions::from_mode(0o600)).unwrap();
        let kernel = std::thread::spawn(move || hang_up(listener.accept().unwrap().0));
        let stopped = Link::new(&place, &environment).stop();
        kernel.join().unwrap();
        stopped
    }

    fn says(mut line: UnixStream, code: FaultCode) {
        let params = Fault::new(code, "it is over").to_value();
        let closed = Message::Event { method: "connection.closed".to_owned(), params };
        line.write_all(&encode_frame(&closed.to_bytes(), 1 << 16).unwrap()).unwrap();
    }

    #[test]
    fn a_kernel_that_ends_by_itself_while_it_is_to_stop_has_stopped() {
        assert!(stopped(drop).unwrap());
        assert!(stopped(|line| says(line, FaultCode::Stopping)).unwrap());
        let refused = stopped(|line| says(line, FaultCode::TooSlow)).unwrap_err();
        assert!(refused.explained().what.contains("refused"));
    }
}
