//! Where a model is asked, and how. Nothing in it is secret: keys travel beside it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Adapter;

/// Where a model is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// What it is called in configuration.
    pub provider: String,
    /// What is spoken there.
    pub protocol: Protocol,
    /// Where.
    pub url: BaseUrl,
    /// The protocol's version, where it has one and the usual is not wanted: Anthropic's header, or the first
    /// part of Gemini's paths.
    pub version: Option<String>,
    /// How long the model is to think, where that can be said.
    pub effort: Option<Effort>,
    /// Certificates (PEM) that are trusted beside the usual ones.
    pub certificates: Option<String>,
    /// How long to wait for what.
    pub patience: Patience,
}

/// What is spoken at an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// OpenAI's responses.
    OpenaiResponses,
    /// OpenAI's chat completions, as OpenAI itself wants them.
    OpenaiChat,
    /// Chat completions as other servers want them: Ollama, llama.cpp, vLLM, gateways.
    OpenaiCompatible,
    /// Anthropic's messages.
    Anthropic,
    /// Google's `streamGenerateContent`.
    Gemini,
}

/// How long a model is to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effort {
    /// Not at all, where that can be had.
    None,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

/// How long to wait, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patience {
    /// For a connection.
    pub connect_ms: u64,
    /// For the first byte of an answer.
    pub first_byte_ms: u64,
    /// For any further byte.
    pub idle_ms: u64,
}

/// An address that paths are put behind: `https://api.example.org/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BaseUrl {
    https: bool,
    host: String,
    port: u16,
    path: String,
}

/// Why a text is no address of a provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It begins with neither.
    #[error("it begins with neither `https://` nor `http://`")]
    Scheme,
    /// It names no host.
    #[error("it names no host")]
    Host,
    /// The port is no number from 1 to 65535.
    #[error("`{0}` is no port")]
    Port(String),
    /// It carries a user or a password.
    #[error("it carries a user or password; keys are set with `fluffy auth set`")]
    User,
    /// It has a part that no base address has.
    #[error("it has a `{0}`, which a base address has not")]
    Part(char),
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::OpenaiResponses,
        Self::OpenaiChat,
        Self::OpenaiCompatible,
        Self::Anthropic,
        Self::Gemini,
    ];

    /// The name in configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenaiResponses => "openai-responses",
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiCompatible => "openai-compatible",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// What speaks it.
    pub fn adapter(self) -> &'static dyn Adapter {
        match self {
            Self::OpenaiResponses => &crate::adapters::openai_responses::OpenaiResponses,
            Self::OpenaiChat => &crate::adapters::openai_chat::OpenaiChat { compatible: false },
            Self::OpenaiCompatible => {
                &crate::adapters::openai_chat::OpenaiChat { compatible: true }
            }
            Self::Anthropic => &crate::adapters::anthropic::Anthropic,
            Self::Gemini => &crate::adapters::gemini::Gemini,
        }
    }
}

impl Endpoint {
    /// Whose reasoning blocks these are: another provider's or model's mean nothing here.
    pub fn origin(&self, model: &str) -> String {
        format!("{}/{}/{model}", self.protocol.name(), self.provider)
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self { connect_ms: 10_000, first_byte_ms: 120_000, idle_ms: 120_000 }
    }
}

impl BaseUrl {
    /// Whether what is said there is sealed.
    pub const fn is_https(&self) -> bool {
        self.https
    }

    /// The host: a name in lower case, or an address, one of version 6 in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// What paths are put behind; empty, or beginning with `/` and not ending with it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Host and port, as the `host` header and an allow list name them.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl FromStr for BaseUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let (https, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err(UrlError::Scheme),
        };
        let odd = |c: char| matches!(c, '?' | '#' | '\\' | '%') || !c.is_ascii_graphic();
        if let Some(part) = rest.chars().find(|c| odd(*c)) {
            return Err(UrlError::Part(part));
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(UrlError::User);
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (authority, None),
        };
        let in_brackets = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        let is_host = match in_brackets {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.chars().all(named),
        };
        if !is_host {
            return Err(UrlError::Host);
        }
        let port = match port {
            None => {
                if https {
                    443
                } else {
                    80
                }
            }
            Some(port) => {
                let number = port.parse().ok().filter(|_| port.bytes().all(|b| b.is_ascii_digit()));
                number
                    .filter(|number| *number > 0)
                    .ok_or_else(|| UrlError::Port(port.to_owned()))?
            }
        };
        let path = path.trim_end_matches('/').to_owned();
        Ok(Self { https, host: host.to_ascii_lowercase(), port, path })
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, usual) = if self.https { ("https", 443) } else { ("http", 80) };
        write!(f, "{scheme}://{}", self.host)?;
        if self.port != usual {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(&self.path)
    }
}

impl TryFrom<String> for BaseUrl {
    type Error = UrlError;

    fn try_from(text: String) -> Result<Self, UrlError> {
        text.parse()
    }
}

impl From<BaseUrl> for String {
    fn from(url: BaseUrl) -> Self {
        url.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_written_in_one_spelling() {
        for (text, plain) in [
            ("https://API.openai.com/v1/", "https://api.openai.com/v1"),
            ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("http://[::1]", "http://[::1]"),
            ("https://host:443", "https://host"),
        ] {
            let url: BaseUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), plain);
            assert_eq!(plain.parse::<BaseUrl>().unwrap(), url);
        }
    }

    #[test]
    fn what_is_no_plain_address_is_refused() {
        for (text, problem) in [
            ("api.openai.com", UrlError::Scheme),
            ("ftp://host", UrlError::Scheme),
            ("https://", UrlError::Host),
            ("https:///v1", UrlError::Host),
            ("https://[::1", UrlError::Host),
            ("https://ho_st", UrlError::Host),
            ("https://a:b@host", UrlError::User),
            ("https://good.org@evil.org", UrlError::User),
            ("https://host:0", UrlError::Port("0".to_owned())),
            ("https://host:+80", UrlError::Port("+80".to_owned())),
            ("https://host:99999", UrlError::Port("99999".to_owned())),
            ("https://host/v1?key=x", UrlError::Part('?')),
            ("https://host/#a", UrlError::Part('#')),
            ("https://host\\@evil", UrlError::Part('\\')),
            ("https://host /", UrlError::Part(' ')),
            ("https://hóst", UrlError::Part('ó')),
        ] {
            assert_eq!(text.parse::<BaseUrl>(), Err(problem), "{text}");
        }
    }

    #[test]
    fn every_protocol_has_one_name() {
        for protocol in Protocol::ALL {
            let text = serde_json::to_string(protocol.name()).unwrap();
            assert_eq!(serde_json::from_str::<Protocol>(&text).unwrap(), protocol);
        }
    }
}
