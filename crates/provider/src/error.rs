//! Why a provider did not give a turn.

use fluffy_base::Excerpt;
use serde::{Deserialize, Serialize};

/// How much of a provider's own words is shown.
const SAID_CHARS: usize = 300;

/// Why there is no turn. What the provider itself said is kept as it came and shown as an excerpt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ProviderError {
    /// The key is missing, wrong, or may not be used for this.
    #[error("the provider refused the key: {}", said(.0))]
    BadKey(String),
    /// The provider does not have this model.
    #[error("there is no model called `{}`", said(.0))]
    NoSuchModel(String),
    /// Too many requests or tokens in a short time.
    #[error("the provider asks to slow down: {}", said(.message))]
    RateLimited {
        /// What it said.
        message: String,
        /// When to ask again, if it said so.
        retry_after_ms: Option<u64>,
    },
    /// The account has no credit left, or a limit on spending was reached.
    #[error("the account's quota is used up: {}", said(.0))]
    QuotaExhausted(String),
    /// The conversation does not fit into the model's window.
    #[error("the conversation is too long for the model: {}", said(.0))]
    ContextTooLong(String),
    /// The provider has too much to do, or failed for the moment.
    #[error("the provider is overloaded: {}", said(.message))]
    Overloaded {
        /// What it said.
        message: String,
        /// When to ask again, if it said so.
        retry_after_ms: Option<u64>,
    },
    /// The provider could not be reached, or the connection broke.
    #[error("the provider could not be reached: {}", said(.0))]
    Network(String),
    /// A rule does not let the request out: the proxy's list of hosts.
    #[error("the way to the provider is closed: {}", said(.0))]
    Blocked(String),
    /// The server did not prove who it is.
    #[error("the provider's server cannot be trusted: {}", said(.0))]
    Untrusted(String),
    /// Nothing came for too long.
    #[error("the provider said nothing for {waited_ms} ms")]
    TimedOut {
        /// How long was waited.
        waited_ms: u64,
    },
    /// A filter, or the model itself, declined.
    #[error("the model declined to answer: {}", said(.0))]
    Filtered(String),
    /// The provider did not take the request.
    #[error("the provider did not take the request: {}", said(.0))]
    Refused(String),
    /// What came is not what the protocol says.
    #[error("the provider's answer makes no sense: {}", said(.0))]
    Malformed(String),
    /// The process in which the provider is spoken with failed.
    #[error("the provider's process failed: {}", said(.0))]
    Guest(String),
    /// The transcript has no more turns.
    #[error("the transcript ended after {turns} turns")]
    TranscriptEnded {
        /// How many turns it has.
        turns: usize,
    },
    /// A turn of the transcript expected other results than there were.
    #[error("{0}")]
    Expectation(String),
    /// The caller broke off.
    #[error("the answer was broken off")]
    Cancelled,
}

impl ProviderError {
    /// Whether the same request may succeed a little later.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Network(_)
            | Self::TimedOut { .. }
            | Self::Guest(_) => true,
            Self::BadKey(_)
            | Self::NoSuchModel(_)
            | Self::QuotaExhausted(_)
            | Self::ContextTooLong(_)
            | Self::Blocked(_)
            | Self::Untrusted(_)
            | Self::Filtered(_)
            | Self::Refused(_)
            | Self::Malformed(_)
            | Self::TranscriptEnded { .. }
            | Self::Expectation(_)
            | Self::Cancelled => false,
        }
    }

    /// When to ask again, if the provider said so.
    pub const fn retry_after_ms(&self) -> Option<u64> {
        match self {
            Self::RateLimited { retry_after_ms, .. } | Self::Overloaded { retry_after_ms, .. } => {
                *retry_after_ms
            }
            _ => None,
        }
    }

    /// Why it happened, for a person.
    pub const fn why(&self) -> &'static str {
        match self {
            Self::BadKey(_) => {
                "the key is missing, mistyped, revoked or not allowed for this model"
            }
            Self::NoSuchModel(_) => "the name is wrong, or the account may not use this model",
            Self::RateLimited { .. } => "more was asked for than the account may ask in this time",
            Self::QuotaExhausted(_) => "the account has no credit left or reached its own limit",
            Self::ContextTooLong(_) => "the task's own words and the last results alone fill it",
            Self::Overloaded { .. } => "the provider has too much to do at the moment",
            Self::Network(_) => "the network or the provider is in the way",
            Self::Blocked(_) => {
                "a provider's sandbox reaches the configured host and port alone, and a name that \
                 leads to a private address only by that address"
            }
            Self::Untrusted(_) => {
                "somebody may be in between, or the server has a certificate of its own"
            }
            Self::TimedOut { .. } => "the connection is open, but nothing comes",
            Self::Filtered(_) => "the provider's filter or the model itself objects to the request",
            Self::Refused(_) => "this provider does not understand something in the request",
            Self::Malformed(_) => "the server does not keep to the protocol, or is another one",
            Self::Guest(_) => "it died, hung or could not be started in its sandbox",
            Self::TranscriptEnded { .. } => "the recorded conversation has no answer to this turn",
            Self::Expectation(_) => {
                "the transcript says what was to happen, and something else did"
            }
            Self::Cancelled => "the task was cancelled",
        }
    }

    /// What to do about it.
    pub const fn fix(&self) -> &'static str {
        match self {
            Self::BadKey(_) => {
                "set the provider's key again and make sure that it is the right one"
            }
            Self::NoSuchModel(_) => "name another model with `-m`, or in the configuration",
            Self::RateLimited { .. } | Self::Overloaded { .. } => "wait a little and run it again",
            Self::QuotaExhausted(_) => "add credit or raise the limit at the provider",
            Self::ContextTooLong(_) => "shorten the task, or choose a model with a larger window",
            Self::Network(_) => "check the connection and the provider's address",
            Self::Blocked(_) => {
                "write the server's own address in the provider's `url`, or correct it"
            }
            Self::Untrusted(_) => {
                "check the address; for a server of your own name the certificate of its authority \
                 under `certificates` of the provider"
            }
            Self::TimedOut { .. } => "run it again; if it stays so, choose another model",
            Self::Filtered(_) => "say the task in other words",
            Self::Refused(_) => "check the provider's kind and address in the configuration",
            Self::Malformed(_) => "check the provider's address and kind in the configuration",
            Self::Guest(_) => "run it again; `fluffy doctor` tells whether sandboxes work here",
            Self::TranscriptEnded { .. } => "record the conversation to its end",
            Self::Expectation(_) => "look at what differs; correct the transcript or the project",
            Self::Cancelled => "run it again",
        }
    }
}

fn said(text: &str) -> Excerpt<'_> {
    Excerpt::new(text, SAID_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_provider_says_is_shown_as_an_excerpt_that_no_terminal_obeys() {
        let error = ProviderError::Network(format!("\u{1b}[2J{}", "x".repeat(10_000)));
        let text = error.to_string();
        assert!(text.starts_with("the provider could not be reached: \\u{1b}[2Jxxx"), "{text}");
        assert!(text.chars().count() < 400);
    }

    #[test]
    fn a_key_in_an_error_does_not_show() {
        let error = ProviderError::BadKey("no such key: sk-abcdefghijklmnop1234".to_owned());
        assert_eq!(error.to_string(), "the provider refused the key: no such key: sk-***");
    }

    #[test]
    fn only_what_may_pass_by_itself_is_retried() {
        let message = || "m".to_owned();
        assert!(ProviderError::Network(message()).is_retryable());
        assert!(
            ProviderError::Overloaded { message: message(), retry_after_ms: None }.is_retryable()
        );
        let limited = ProviderError::RateLimited { message: message(), retry_after_ms: Some(7) };
        assert_eq!((limited.is_retryable(), limited.retry_after_ms()), (true, Some(7)));
        for error in [
            ProviderError::BadKey(message()),
            ProviderError::QuotaExhausted(message()),
            ProviderError::TranscriptEnded { turns: 1 },
            ProviderError::Malformed(message()),
        ] {
            assert!(!error.is_retryable(), "{error}");
            assert!(!error.why().is_empty() && !error.fix().is_empty());
        }
    }
}
