//! What OpenAI and the servers like it say when they do not answer.

use serde_json::Value;

use crate::adapters::openai::{at, text};
use crate::refusal::{by_status, retry_after_ms};
use crate::{Answer, ProviderError};

/// The status of an error in the middle of a stream, where it names none: the server's own fault.
const IN_STREAM: u16 = 500;

/// How much of a page that is no error of the protocol is kept.
const PAGE_CHARS: usize = 2_000;

/// The stream ended and the turn did not.
pub(crate) fn truncated() -> ProviderError {
    ProviderError::Network("the answer was cut off before its end".to_owned())
}

/// The error that came instead of a piece of the answer, if this is one.
pub(crate) fn error_in(value: &Value) -> Option<ProviderError> {
    let is_error = !at(value, "/error").is_null()
        || text(value, "/type") == "error"
        || text(value, "/object") == "error";
    let answer = || Answer { body: value.to_string().into_bytes(), ..Answer::default() };
    is_error.then(|| refusal(&answer()))
}

/// What an answer says that is no success.
pub(crate) fn refusal(answer: &Answer) -> ProviderError {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    // Some servers put it into a list.
    let body = body.get(0).unwrap_or(&body);
    let error = if at(body, "/error").is_null() { body } else { at(body, "/error") };
    let status = match answer.status {
        0 => at(error, "/code").as_u64().and_then(|code| u16::try_from(code).ok()),
        status => Some(status),
    };
    let status = status.filter(|status| *status >= 300).unwrap_or(IN_STREAM);
    let answer = Answer { status, ..answer.clone() };
    let said = words(&answer, body, error);
    let kind = text(error, "/type").to_ascii_lowercase();
    by_code(&text(error, "/code").to_ascii_lowercase(), &answer, &said)
        .or_else(|| by_code(&kind, &answer, &said))
        .or_else(|| by_words(&answer, &said))
        .unwrap_or_else(|| match kind.as_str() {
            // Whatever the status is, the same request will fare no better.
            "invalid_request_error" | "not_supported_error" if !matches!(status, 401..=429) => {
                ProviderError::Refused(said)
            }
            _ => by_status(&answer, said),
        })
}

/// What the error's own name says.
fn by_code(code: &str, answer: &Answer, said: &str) -> Option<ProviderError> {
    let retry_after_ms = retry_after_ms(answer).or_else(|| wait_in(said));
    let message = said.to_owned();
    Some(match code {
        "invalid_api_key" | "authentication_error" | "account_deactivated" => {
            ProviderError::BadKey(message)
        }
        "model_not_found" | "deploymentnotfound" => ProviderError::NoSuchModel(model_in(said)),
        "insufficient_quota" | "billing_hard_limit_reached" | "billing_not_active" => {
            ProviderError::QuotaExhausted(message)
        }
        "context_length_exceeded" | "exceed_context_size_error" => {
            ProviderError::ContextTooLong(message)
        }
        "content_filter" | "content_policy_violation" | "invalid_prompt" => {
            ProviderError::Filtered(message)
        }
        "rate_limit_exceeded" | "rate_limit_error" if !is_too_large(said) => {
            ProviderError::RateLimited { message, retry_after_ms }
        }
        "overloaded_error" | "slow_down" | "unavailable_error" => {
            ProviderError::Overloaded { message, retry_after_ms }
        }
        _ => return None,
    })
}

/// What the words say, of servers that have no names for it.
fn by_words(answer: &Answer, said: &str) -> Option<ProviderError> {
    let words = said.to_ascii_lowercase();
    let has = |any: &[&str]| any.iter().any(|part| words.contains(part));
    let long = ["context length", "context size", "context window", "prompt is too long"];
    let unknown = ["not found", "not exist", "not a valid model", "unknown model", "no such model"];
    match answer.status {
        _ if is_too_large(said) => Some(ProviderError::ContextTooLong(said.to_owned())),
        400 | 422 | 500 if has(&long) => Some(ProviderError::ContextTooLong(said.to_owned())),
        400 | 404 if has(&unknown) && has(&["model"]) => {
            Some(ProviderError::NoSuchModel(model_in(said)))
        }
        400 if has(&["api key"]) => Some(ProviderError::BadKey(said.to_owned())),
        403 if has(&["moderation", "flagged"]) => Some(ProviderError::Filtered(said.to_owned())),
        // No such page: the address is wrong, and not the model.
        404 => Some(ProviderError::Refused(said.to_owned())),
        _ => None,
    }
}

/// Whether one request alone is more than may be asked in a minute: waiting does not help.
fn is_too_large(said: &str) -> bool {
    said.to_ascii_lowercase().starts_with("request too large")
}

/// The server's own words: its message, or what else it sent.
fn words(answer: &Answer, body: &Value, error: &Value) -> String {
    let told = [at(error, "/message"), error, at(body, "/message"), at(body, "/detail")];
    let mut told = told.into_iter().filter_map(Value::as_str);
    let page = String::from_utf8_lossy(&answer.body);
    let titled = page.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    let page = titled.map_or(page.as_ref(), |(title, _)| title).trim();
    // What the server behind a gateway said.
    let behind = text(error, "/metadata/raw");
    let said = match told.find(|told| !told.trim().is_empty()) {
        Some(told) if !behind.is_empty() => format!("{told}: {behind}"),
        Some(told) => told.to_owned(),
        None if page.is_empty() => format!("status {} without a word", answer.status),
        None => {
            let page: String = page.chars().take(PAGE_CHARS).collect();
            format!("status {}: {page}", answer.status)
        }
    };
    match answer.header("x-request-id") {
        Some(id) => format!("{said} (request {id})"),
        None => said,
    }
}

/// The model that the words name; all of them where they name none.
fn model_in(said: &str) -> String {
    let quoted = said.split_whitespace().find_map(|word| {
        let quote = word.chars().next().filter(|c| matches!(c, '\'' | '`' | '"'))?;
        word.split(quote).nth(1).filter(|name| !name.is_empty())
    });
    let before = || said.split_once(" is not a valid model").map(|(name, _)| name);
    let behind = || said.split_once(" not found: ").map(|(_, name)| name);
    let named = quoted.or_else(before).or_else(behind);
    named.filter(|name| !name.contains(' ')).unwrap_or(said).to_owned()
}

/// How many milliseconds to wait, of words such as `try again in 1m2.5s`.
fn wait_in(said: &str) -> Option<u64> {
    let (_, mut rest) = said.split_once("try again in ")?;
    let mut waited = 0_u64;
    while rest.starts_with(|c: char| c.is_ascii_digit()) {
        let (number, behind) = rest.split_at(rest.find(|c: char| c.is_ascii_alphabetic())?);
        let end = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let unit = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let part: String = format!("{part}000").chars().take(3).collect();
        let thousandths: u64 = format!("{whole}{part}").parse().ok()?;
        waited = waited.checked_add(thousandths.checked_mul(unit)?.div_ceil(1_000))?;
        rest = behind;
    }
    (waited > 0).then_some(waited)
}
