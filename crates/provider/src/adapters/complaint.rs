//! What vendors complain of, as far as their bodies say it better than the status does.

use serde_json::Value;

use crate::adapters::wire::text;
use crate::refusal::by_status;
use crate::{Answer, ProviderError};

/// No money is left, or a limit that does not pass within minutes was reached: asking again is no use.
const SPENT: [&str; 6] = [
    "enforced_spend_limit_reached",
    "billing_error",
    "credit balance is too low",
    "credits are depleted",
    "spending cap",
    "perday",
];

/// The conversation does not fit.
const TOO_LONG: [&str; 7] = [
    "prompt is too long",
    "context length",
    "context size",
    "context window",
    "exceed context limit",
    "exceeds the maximum number of tokens",
    "request_too_large",
];

/// The key is none, though the status says that the request is wrong.
const BAD_KEY: [&str; 3] = ["api_key_invalid", "api key not valid", "api key expired"];

/// The statuses that go with the kinds of errors of an answer that had begun well.
const STATUSES: [(&str, u16); 9] = [
    ("invalid_request_error", 400),
    ("authentication_error", 401),
    ("billing_error", 402),
    ("permission_error", 403),
    ("not_found_error", 404),
    ("request_too_large", 413),
    ("rate_limit_error", 429),
    ("timeout_error", 504),
    ("overloaded_error", 529),
];

/// What an answer means that is no success.
pub(crate) fn complaint(answer: &Answer) -> ProviderError {
    let whole = String::from_utf8_lossy(&answer.body);
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let body = body.get(0).unwrap_or(&body);
    let error = body.get("error").unwrap_or(body);
    let message = text(error, "/message").or_else(|| error.as_str());
    let message = message.or_else(|| text(body, "/detail")).unwrap_or(whole.trim());
    let id = answer.header("request-id").or_else(|| text(body, "/request_id"));
    let said = id.map_or_else(|| message.to_owned(), |id| format!("{message} ({id})"));
    let words = whole.to_lowercase();
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    let mut found = match answer.status {
        ..500 if has(&SPENT) => ProviderError::QuotaExhausted(said),
        400 | 413 if has(&TOO_LONG) => ProviderError::ContextTooLong(said),
        400 if has(&BAD_KEY) => ProviderError::BadKey(said),
        404 => match model_in(message) {
            Some(model) => ProviderError::NoSuchModel(model.to_owned()),
            // Nothing at all is there: the address is wrong.
            None => ProviderError::Refused(said),
        },
        _ => by_status(answer, said),
    };
    if let ProviderError::RateLimited { retry_after_ms, .. }
    | ProviderError::Overloaded { retry_after_ms, .. } = &mut found
    {
        *retry_after_ms = retry_after_ms.or_else(|| delay(error));
    }
    found
}

/// What an error means that comes in the midst of an answer.
pub(crate) fn complaint_in_stream(data: &str) -> ProviderError {
    let body: Value = serde_json::from_str(data).unwrap_or_default();
    let body = body.get(0).unwrap_or(&body);
    let code = body.pointer("/error/code").and_then(Value::as_u64);
    let kind = text(body, "/error/type");
    let named = STATUSES.iter().find(|(name, _)| kind == Some(name)).map(|(_, status)| *status);
    let status = code.and_then(|code| u16::try_from(code).ok()).or(named).unwrap_or(500);
    complaint(&Answer { status, headers: Vec::new(), body: data.as_bytes().to_vec() })
}

/// The model that is said not to be there.
fn model_in(message: &str) -> Option<&str> {
    let model = message.strip_prefix("model: ").or_else(|| message.strip_prefix("models/"))?;
    model.split_whitespace().next()
}

/// When to ask again: `"retryDelay": "48.5s"` among the details, or words that say so.
fn delay(error: &Value) -> Option<u64> {
    let details = error.get("details").and_then(Value::as_array);
    let listed = details.into_iter().flatten().find_map(|detail| text(detail, "/retryDelay"));
    let told = || text(error, "/message")?.split_once("retry in ")?.1.split_whitespace().next();
    let seconds = listed.or_else(told)?.trim_end_matches('.').strip_suffix('s')?;
    let (whole, part) = seconds.split_once('.').unwrap_or((seconds, ""));
    let plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    let part: String = part.chars().chain("000".chars()).take(3).collect();
    if !plain(whole) || !plain(&part) {
        return None;
    }
    whole.parse::<u64>().ok()?.checked_mul(1_000)?.checked_add(part.parse().ok()?)
}
