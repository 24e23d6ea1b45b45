//! The first words: which version is spoken, and who is there.

use std::fmt;

use fluffy_base::{
    API_VERSION, ClientId, Excerpt, Fault, FaultCode, IdSource, OLDEST_API_VERSION, Secret,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The longest name of a client.
const MAX_NAME_CHARS: usize = 64;

/// What brings a client back as the same one: 128 random bits, of use to one process only.
pub struct Token(Secret);

impl Token {
    /// A token as it was received: 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digit = |c: char| matches!(c, '0'..='9' | 'a'..='f');
        (text.len() == 32 && text.chars().all(digit)).then(|| Self(Secret::new(text.to_owned())))
    }

    /// The value itself. Whoever calls this answers for where it goes.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    pub(super) fn fresh(ids: &dyn IdSource) -> Option<Self> {
        let bytes = ids.fresh()?;
        Some(Self(Secret::new(format!("{:032x}", u128::from_be_bytes(bytes)))))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// What a client says first.
pub(super) struct Hello {
    pub(super) api: (u32, u32),
    pub(super) name: String,
    pub(super) token: Option<Token>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenHello {
    api: (u32, u32),
    name: String,
    #[serde(default)]
    token: Option<Secret>,
}

impl Hello {
    pub(super) fn from_params(params: Value) -> Result<Self, Fault> {
        // The words of the parser may repeat what was sent, a token included.
        let written = WrittenHello::deserialize(params).map_err(|_| {
            bad("`hello` has `api` (oldest and newest version), `name` and perhaps `token`")
        })?;
        let token = written.token.map(|token| {
            Token::parse(token.expose()).ok_or_else(|| bad("`token` is 32 hexadecimal digits"))
        });
        let token = token.transpose()?;
        let name = written.name;
        let fits = (1..=MAX_NAME_CHARS).contains(&name.chars().count());
        if !fits || fluffy_base::sanitised(&name) != name {
            return Err(bad("`name` is a short text without control characters"));
        }
        if written.api.0 > written.api.1 || written.api.0 == 0 {
            return Err(bad("`api` is the oldest and the newest version, from 1"));
        }
        Ok(Self { api: written.api, name, token })
    }

    pub(super) fn to_params(&self) -> Value {
        let token = self.token.as_ref().map(Token::expose);
        match token {
            Some(token) => json!({ "api": self.api, "name": self.name, "token": token }),
            None => json!({ "api": self.api, "name": self.name }),
        }
    }

    /// The newest version that both speak.
    pub(super) fn agreed(&self) -> Result<u32, Fault> {
        let (oldest, newest) = self.api;
        if newest < OLDEST_API_VERSION {
            return Err(no_version(self.api, "update the client"));
        }
        if oldest > API_VERSION {
            return Err(no_version(self.api, "stop the kernel, so that a newer one is started"));
        }
        Ok(newest.min(API_VERSION))
    }
}

/// The kernel's answer to a client that may come in.
#[derive(Debug)]
pub struct Welcome {
    /// The version that both speak.
    pub api: u32,
    /// Names this kernel process: another one has another name.
    pub kernel: String,
    /// Brings this process back as the same client, as long as the kernel runs.
    pub token: Token,
    /// What the kernel calls this client.
    pub client: ClientId,
}

#[derive(Deserialize)]
struct WrittenWelcome {
    api: u32,
    kernel: String,
    token: Secret,
    client: String,
}

impl Welcome {
    pub(super) fn to_result(&self) -> Value {
        json!({
            "api": self.api,
            "kernel": self.kernel,
            "token": self.token.expose(),
            "client": self.client.as_str(),
        })
    }

    /// Nothing where it is none.
    pub(super) fn from_result(result: Value) -> Option<Self> {
        let written = WrittenWelcome::deserialize(result).ok()?;
        let token = Token::parse(written.token.expose())?;
        let client = ClientId::named(&written.client)?;
        let kernel = Excerpt::new(&written.kernel, 100).to_string();
        let served = (OLDEST_API_VERSION..=API_VERSION).contains(&written.api);
        served.then_some(Self { api: written.api, kernel, token, client })
    }
}

fn bad(problem: &str) -> Fault {
    Fault::new(FaultCode::BadParams, problem)
}

fn no_version((oldest, newest): (u32, u32), fix: &str) -> Fault {
    let text = format!(
        "the client speaks versions {oldest} to {newest}, the kernel {OLDEST_API_VERSION} to {API_VERSION}: {fix}"
    );
    Fault::new(FaultCode::Version, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(params: Value) -> Fault {
        Hello::from_params(params).and_then(|hello| hello.agreed()).unwrap_err()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let token = || Token::parse("0123456789abcdef0123456789abcdef");
        let hello = Hello { api: (1, 7), name: "cli".to_owned(), token: token() };
        let read = Hello::from_params(hello.to_params()).unwrap();
        assert_eq!((read.api, read.name.as_str(), read.agreed()), ((1, 7), "cli", Ok(1)));
        assert_eq!(read.token.unwrap().expose(), token().unwrap().expose());
        let client = ClientId::named("client-1").unwrap();
        let welcome = Welcome { api: 1, kernel: "k".into(), token: token().unwrap(), client };
        let read = Welcome::from_result(welcome.to_result()).unwrap();
        assert_eq!((read.api, read.kernel.as_str(), read.client), (1, "k", welcome.client));
        assert_eq!(format!("{:?}", read.token), "***");
    }

    #[test]
    fn a_hello_of_another_form_is_refused_without_repeating_it() {
        let hello = |api: Value, name: &str, token: Value| json!({ "api": api, "name": name, "token": token });
        let secret = "0123456789abcdef0123456789abcdeX";
        for params in [
            Value::Null,
            json!([]),
            json!({}),
            hello(json!([1, 1]), "", Value::Null),
            hello(json!([1, 1]), "a\u{1b}b", Value::Null),
            hello(json!([1, 1]), &"x".repeat(65), Value::Null),
            hello(json!([0, 1]), "a", Value::Null),
            hello(json!([2, 1]), "a", Value::Null),
            hello(json!([1]), "a", Value::Null),
            hello(json!("1"), "a", Value::Null),
            hello(json!([-1, 1]), "a", Value::Null),
            hello(json!([1, 1]), "a", json!(4711)),
            hello(json!([1, 1]), "a", json!(secret)),
            json!({ "api": [1, 1], "name": "a", "debug": true }),
        ] {
            let fault = refusal(params.clone());
            assert_eq!(fault.code, FaultCode::BadParams, "{params}");
            assert!(!fault.message.contains("4711") && !fault.message.contains(secret), "{fault}");
        }
    }

    #[test]
    fn without_a_common_version_both_are_named_and_what_to_do() {
        let fault = refusal(json!({ "api": [7, 9], "name": "a" }));
        assert_eq!(fault.code, FaultCode::Version);
        assert_eq!(
            fault.message,
            "the client speaks versions 7 to 9, the kernel 1 to 1: stop the kernel, so that a newer one is started"
        );
    }
}
