//! What the proxy itself says to a client.

use super::head::Asked;
use super::record::{Failure, Refusal};

/// A tunnel stands.
pub(super) const TUNNEL: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// The alert `access_denied` of TLS, for whoever greeted the wrong host.
pub(super) const ACCESS_DENIED: &[u8] = &[21, 3, 3, 0, 2, 2, 49];

/// The answer to a request that is refused: what, why, and what to do about it.
pub(super) fn refused(asked: &Asked, refusal: Refusal) -> Vec<u8> {
    let target = target(asked);
    let text = match fix(asked, refusal) {
        Some(fix) => format!("fluffy refused {target}: {refusal}\n{fix}\n"),
        None => format!("fluffy refused {target}: {refusal}\n"),
    };
    answer(asked, status(refusal), &format!("fluffy refused it: {refusal}"), &text)
}

/// The answer to a request whose host could not be reached.
pub(super) fn failed(asked: &Asked, failure: Failure) -> Vec<u8> {
    let status = match failure {
        Failure::Timeout => 504,
        // A rule of another proxy is a rule: asking again changes nothing.
        Failure::Upstream(400..=499) => 403,
        Failure::Lookup | Failure::Connect | Failure::Upstream(_) | Failure::Silent => 502,
    };
    let text = format!("fluffy let {} through, but {failure}\n", target(asked));
    answer(asked, status, &failure.to_string(), &text)
}

/// The reason stands in the first line, too: it is all that most programs show of a tunnel that they were refused.
fn answer(asked: &Asked, status: u16, reason: &str, text: &str) -> Vec<u8> {
    let body = if asked.method == "HEAD" { "" } else { text };
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    answer.into_bytes()
}

fn target(asked: &Asked) -> String {
    match (asked.host.as_str(), asked.port) {
        ("", _) => "a request".to_owned(),
        (host, Some(port)) => format!("`{host}:{port}`"),
        (host, None) => format!("`{host}`"),
    }
}

fn status(refusal: Refusal) -> u16 {
    match refusal {
        Refusal::Malformed(_)
        | Refusal::Host(_)
        | Refusal::Scheme
        | Refusal::Incomplete
        | Refusal::Second => 400,
        Refusal::TooLarge => 431,
        Refusal::Slow => 408,
        Refusal::Busy => 503,
        Refusal::Unlisted
        | Refusal::Port
        | Refusal::Metadata
        | Refusal::Private
        | Refusal::Names
        | Refusal::NotTls
        | Refusal::ServerName => 403,
    }
}

fn fix(asked: &Asked, refusal: Refusal) -> Option<String> {
    let host = &asked.host;
    let fix = match refusal {
        Refusal::Unlisted => {
            format!("to allow it, list `{host}` under `network_whitelist` in `.fluffy/policy.yaml`")
        }
        Refusal::Port => {
            "an entry of `network_whitelist` in `.fluffy/policy.yaml` opens the ports 80 and 443"
                .to_owned()
        }
        Refusal::Private => {
            "if that is meant, list the address itself under `network_whitelist` in \
             `.fluffy/policy.yaml`"
                .to_owned()
        }
        Refusal::Names => "list the names that are needed one by one under `network_whitelist` in \
             `.fluffy/policy.yaml`"
            .to_owned(),
        Refusal::Metadata => "nothing allows that from a sandbox".to_owned(),
        Refusal::Busy => "try again when others have ended".to_owned(),
        Refusal::Malformed(_)
        | Refusal::Host(_)
        | Refusal::Scheme
        | Refusal::Incomplete
        | Refusal::Second
        | Refusal::TooLarge
        | Refusal::Slow
        | Refusal::NotTls
        | Refusal::ServerName => return None,
    };
    Some(fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_why_and_how_to_allow_it() {
        let asked =
            Asked { method: "CONNECT".to_owned(), host: "a.example".to_owned(), port: Some(443) };
        let answer = String::from_utf8(refused(&asked, Refusal::Unlisted)).unwrap();
        let first = answer.lines().next().unwrap();
        assert_eq!(first, "HTTP/1.1 403 fluffy refused it: the host is not listed");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!(
            body,
            "fluffy refused `a.example:443`: the host is not listed\n\
             to allow it, list `a.example` under `network_whitelist` in `.fluffy/policy.yaml`\n"
        );
        assert!(answer.contains(&format!("Content-Length: {}\r\n", body.len())), "{answer}");
    }

    #[test]
    fn an_answer_to_head_has_no_body() {
        let asked = Asked { method: "HEAD".to_owned(), host: "a.b".to_owned(), port: Some(80) };
        let answer = String::from_utf8(failed(&asked, Failure::Timeout)).unwrap();
        assert!(answer.starts_with("HTTP/1.1 504 ") && answer.ends_with("\r\n\r\n"), "{answer}");
    }
}
