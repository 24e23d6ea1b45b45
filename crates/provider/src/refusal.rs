//! What an answer means that is no success: what all vendors share.

use crate::{Answer, ProviderError};

/// What the status alone says; `said` are the provider's own words. Whatever a vendor says more precisely in its
/// body is looked at before this.
pub(crate) fn by_status(answer: &Answer, said: String) -> ProviderError {
    let retry_after_ms = retry_after_ms(answer);
    match answer.status {
        401 | 403 => ProviderError::BadKey(said),
        402 => ProviderError::QuotaExhausted(said),
        404 => ProviderError::NoSuchModel(said),
        413 => ProviderError::ContextTooLong(said),
        429 => ProviderError::RateLimited { message: said, retry_after_ms },
        408 | 409 | 500.. => ProviderError::Overloaded { message: said, retry_after_ms },
        _ => ProviderError::Refused(said),
    }
}

/// When to ask again, if the headers say so: in milliseconds, in seconds, or at a date, which is measured against
/// the answer's own.
pub(crate) fn retry_after_ms(answer: &Answer) -> Option<u64> {
    let number = |name: &str| answer.header(name)?.trim().parse::<f64>().ok();
    if let Some(ms) = number("retry-after-ms").and_then(whole_ms) {
        return Some(ms);
    }
    if let Some(ms) = number("retry-after").and_then(|seconds| whole_ms(seconds * 1_000.0)) {
        return Some(ms);
    }
    let date = |name: &str| httpdate::parse_http_date(answer.header(name)?.trim()).ok();
    let wait = date("retry-after")?.duration_since(date("date")?);
    Some(wait.map_or(0, |wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)))
}

/// What an answer means once its word on asking again is heeded, where it has one.
pub(crate) fn heeding(error: ProviderError, answer: &Answer) -> ProviderError {
    let word = answer.header("x-should-retry").map(str::trim);
    match (word, error) {
        (Some("false"), ProviderError::RateLimited { message, .. }) => {
            ProviderError::RateLimited { message, retry_after_ms: Some(NEVER_MS) }
        }
        (Some("false"), ProviderError::Overloaded { message, .. }) => {
            ProviderError::Overloaded { message, retry_after_ms: Some(NEVER_MS) }
        }
        (Some("true"), ProviderError::Refused(message)) => {
            ProviderError::Overloaded { message, retry_after_ms: retry_after_ms(answer) }
        }
        (_, error) => error,
    }
}

/// No pause is as long: the same request is not tried again.
const NEVER_MS: u64 = u64::MAX;

/// A pause of so many milliseconds, if that is one.
fn whole_ms(ms: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be no less than nothing; larger ones become the largest"
    )]
    let whole = ms.ceil() as u64;
    (ms >= 0.0).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, headers: &[(&str, &str)]) -> Answer {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Answer { status, headers: headers.iter().map(owned).collect(), body: Vec::new() }
    }

    #[test]
    fn when_to_ask_again_is_told_in_four_ways() {
        let date = ("date", "Wed, 21 Oct 2026 07:28:00 GMT");
        for (headers, wait) in [
            (vec![("retry-after", "7")], Some(7_000)),
            (vec![("retry-after", " 0.25 ")], Some(250)),
            (vec![("retry-after-ms", "12.5"), ("retry-after", "9")], Some(13)),
            (vec![("retry-after-ms", "soon"), ("retry-after", "9")], Some(9_000)),
            (vec![("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT"), date], Some(30_000)),
            (vec![("retry-after", "Wed, 21 Oct 2026 07:27:30 GMT"), date], Some(0)),
            (vec![("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")], None),
            (vec![("retry-after", "-1")], None),
            (vec![("retry-after", "NaN")], None),
            (vec![("retry-after", "1e300")], Some(u64::MAX)),
            (vec![("retry-after", "soon"), date], None),
            (vec![], None),
        ] {
            assert_eq!(retry_after_ms(&answer(429, &headers)), wait, "{headers:?}");
        }
    }

    #[test]
    fn a_server_may_say_whether_to_ask_again() {
        let heed = |status, word: &str| {
            let answer = answer(status, &[("x-should-retry", word)]);
            let error = heeding(by_status(&answer, "m".to_owned()), &answer);
            (error.is_retryable(), error.retry_after_ms())
        };
        assert_eq!(heed(429, "true"), (true, None));
        assert_eq!(heed(429, "false"), (true, Some(NEVER_MS)));
        assert_eq!(heed(529, "false"), (true, Some(NEVER_MS)));
        assert_eq!(heed(400, "true"), (true, None));
        assert_eq!(heed(400, "false"), (false, None));
        assert_eq!(heed(401, "true"), (false, None), "a key that is wrong stays wrong");
        assert_eq!(heed(500, "perhaps"), (true, None));
    }
}
