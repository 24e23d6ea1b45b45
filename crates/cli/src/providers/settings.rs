//! What the user's own settings, `$XDG_CONFIG_HOME/fluffy/config.yaml`, say of providers.
//!
//! **Invariant.** Endpoints, headers, certificates, proxies and keys are named here or nowhere: a project's files
//! have no word for them, since a hostile project would have the key sent to itself.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fluffy_base::{Secret, Span};
use fluffy_provider::{Effort, Patience, Prices, Protocol};
use serde::{Deserialize, Deserializer, de};
use serde_saphyr::options::DuplicateKeyPolicy;

use crate::explain::CliError;
use crate::providers::address::Address;

/// The largest price that is believed, in dollars for a million tokens.
const MAX_PRICE: f64 = 100_000.0;
/// Headers that are made of the request itself, or carry the key.
const OWN_HEADERS: [&str; 9] = [
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "proxy-authorization",
    "transfer-encoding",
    "upgrade",
];

/// As much of the user's file as is read here; the rest of it was read by the table of settings.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entries {
    /// Providers beside those that are built in, or in their place.
    providers: BTreeMap<Name, Entry>,
}

/// What is said of one provider.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Entry {
    pub(crate) protocol: Option<Protocol>,
    pub(crate) url: Option<Address>,
    pub(crate) model: Option<String>,
    pub(crate) key: Option<KeyFrom>,
    pub(crate) headers: BTreeMap<HeaderName, HeaderValue>,
    /// A file with certificates that are trusted beside the usual ones, from the configuration's own directory.
    pub(crate) certificates: Option<PathBuf>,
    #[serde(deserialize_with = "plain_word")]
    pub(crate) version: Option<String>,
    pub(crate) effort: Option<Effort>,
    #[serde(deserialize_with = "above_zero")]
    pub(crate) context_window: Option<u64>,
    #[serde(deserialize_with = "above_zero")]
    pub(crate) max_output_tokens: Option<u64>,
    pub(crate) prices: Option<PriceList>,
    pub(crate) timeouts: Timeouts,
}

/// What a provider is called: small letters, digits, `-`, `_` and `.`, beginning with a letter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Name(String);

/// Why a text is no name of a provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no name of a provider: write small letters, digits, `-`, `_` and `.`, at most 64"
)]
pub(crate) struct NameError(String);

/// Where a provider's key comes from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum KeyFrom {
    /// The keyring or the private file, as `fluffy auth set` keeps it.
    Stored,
    /// A variable of the environment.
    Variable(String),
    /// It needs none.
    None,
}

/// The name of a header.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct HeaderName(String);

/// What is sent in a header: a text, or `env:NAME` for what a variable holds.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Secret")]
pub(crate) struct HeaderValue(Secret);

/// What a million tokens cost, in dollars.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceList {
    #[serde(deserialize_with = "dollars")]
    input: u64,
    #[serde(deserialize_with = "dollars")]
    output: u64,
    #[serde(default, deserialize_with = "maybe_dollars")]
    cached: Option<u64>,
    #[serde(default, deserialize_with = "maybe_dollars")]
    cache_written: Option<u64>,
}

/// How long to wait for what.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Timeouts {
    connect: Option<Span>,
    first_byte: Option<Span>,
    idle: Option<Span>,
}

/// What the user's file says of each provider.
pub(crate) fn entries(shown: &str, text: &str) -> Result<BTreeMap<Name, Entry>, CliError> {
    if text.trim().is_empty() {
        return Ok(BTreeMap::new());
    }
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::Error,
        with_snippet: false,
    };
    // A file of comments alone says nothing.
    let read: Result<Option<Entries>, _> = serde_saphyr::from_str_with_options(text, options);
    match read {
        Ok(entries) => Ok(entries.unwrap_or_default().providers),
        Err(error) => {
            let problem = error.to_string();
            Err(CliError::Settings { file: shown.to_owned(), problem })
        }
    }
}

impl Name {
    /// The name, if the text is one.
    pub(crate) fn parse(text: &str) -> Result<Self, NameError> {
        let fits =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
        let begins = text.starts_with(|c: char| c.is_ascii_lowercase());
        if begins && text.len() <= 64 && text.chars().all(fits) {
            return Ok(Self(text.to_owned()));
        }
        Err(NameError(fluffy_base::Excerpt::new(text, 80).to_string()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl TryFrom<String> for KeyFrom {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "stored" => Ok(Self::Stored),
            "none" => Ok(Self::None),
            _ => match text.strip_prefix("env:") {
                Some(name) if is_variable(name) => Ok(Self::Variable(name.to_owned())),
                // Not repeated: it may be the key itself.
                _ => Err("`key` is `stored`, `env:NAME` or `none`; the key itself is set with `fluffy auth set`"
                    .to_owned()),
            },
        }
    }
}

impl HeaderName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for HeaderName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        let name = text.to_ascii_lowercase();
        if text.is_empty() || text.len() > 128 || !text.chars().all(fits) {
            let shown = fluffy_base::Excerpt::new(&text, 80);
            return Err(format!("`{shown}` is no name of a header"));
        }
        if OWN_HEADERS.contains(&name.as_str()) {
            return Err(format!("the header `{name}` is made of the request and cannot be set"));
        }
        Ok(Self(name))
    }
}

impl TryFrom<Secret> for HeaderValue {
    type Error = String;

    fn try_from(text: Secret) -> Result<Self, String> {
        let is_text = text.expose().chars().all(|c| c == ' ' || c.is_ascii_graphic());
        if is_text && text.expose().len() <= 8192 {
            return Ok(Self(text));
        }
        Err("a header holds one line of ASCII".to_owned())
    }
}

impl HeaderValue {
    /// What is sent; what a variable holds is asked of `variable`. Without it there is no value.
    pub(crate) fn value(
        &self,
        variable: &dyn Fn(&str) -> Option<Secret>,
    ) -> Result<Secret, String> {
        let text = self.0.expose();
        match text.strip_prefix("env:") {
            None => Ok(Secret::new(text.to_owned())),
            Some(name) => {
                let value =
                    variable(name).ok_or_else(|| format!("the variable `{name}` is not set"))?;
                Self::try_from(value).map(|value| value.0)
            }
        }
    }
}

impl PriceList {
    /// The prices; what goes through a cache costs what all input does, where nothing is said of it.
    pub(crate) fn prices(&self) -> Prices {
        Prices {
            input: self.input,
            cached: self.cached.unwrap_or(self.input),
            cache_written: self.cache_written.unwrap_or(self.input),
            output: self.output,
        }
    }
}

impl Timeouts {
    /// How long to wait, where nothing is said as long as usual.
    pub(crate) fn patience(&self) -> Patience {
        let usual = Patience::default();
        let or = |span: Option<Span>, usual| span.map_or(usual, Span::ms);
        Patience {
            connect_ms: or(self.connect, usual.connect_ms),
            first_byte_ms: or(self.first_byte, usual.first_byte_ms),
            idle_ms: or(self.idle, usual.idle_ms),
        }
    }
}

/// Whether a text can be the name of a variable.
fn is_variable(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(fits)
}

/// Millionths of a dollar.
fn dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let amount = f64::deserialize(deserializer)?;
    if !(0.0..=MAX_PRICE).contains(&amount) {
        return Err(de::Error::custom("a price is dollars for a million tokens, from 0 to 100000"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
    Ok((amount * 1_000_000.0).round() as u64)
}

fn maybe_dollars<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    dollars(deserializer).map(Some)
}

fn above_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    match u64::deserialize(deserializer)? {
        0 => Err(de::Error::custom("a number above 0 is needed")),
        number => Ok(Some(number)),
    }
}

/// A word that can stand in a header or a path.
fn plain_word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if text.is_empty() || text.len() > 64 || !text.chars().all(fits) {
        return Err(de::Error::custom("a version is letters, digits, `-`, `.` and `_`"));
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<BTreeMap<Name, Entry>, CliError> {
        crate::settings::file::read("config.yaml", crate::settings::Layer::User, text)?;
        entries("config.yaml", text)
    }

    #[test]
    fn every_setting_is_read() {
        let text = "\
provider: work
model: big
proxy: http://ada:secret@proxy:3128
no_proxy: [internal.example.org]
providers:
  work:
    protocol: openai-compatible
    url: https://gateway.example.org/v1
    model: small
    key: env:WORK_KEY
    headers: {X-Team: tools, x-token: 'env:TOKEN'}
    certificates: ca.pem
    version: v1
    effort: high
    context_window: 32000
    max_output_tokens: 4000
    prices: {input: 3, cached: 0.3, output: 15}
    timeouts: {connect: 5s, first_byte: 10m}
";
        let config = config(text).unwrap();
        let entry = &config[&Name::parse("work").unwrap()];
        assert_eq!(entry.key, Some(KeyFrom::Variable("WORK_KEY".to_owned())));
        let prices = entry.prices.unwrap().prices();
        assert_eq!(
            (prices.input, prices.cached, prices.cache_written),
            (3_000_000, 300_000, 3_000_000)
        );
        let patience = entry.timeouts.patience();
        assert_eq!((patience.connect_ms, patience.first_byte_ms), (5_000, 600_000));
        assert_eq!(patience.idle_ms, Patience::default().idle_ms);
        let headers: Vec<_> = entry.headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(headers, ["x-team", "x-token"]);
        let held = |name: &str| Some(Secret::new(format!("held by {name}")));
        let token = entry.headers.values().nth(1).unwrap();
        assert_eq!(token.value(&held).unwrap().expose(), "held by TOKEN");
        assert_eq!(token.value(&|_| None).unwrap_err(), "the variable `TOKEN` is not set");
    }

    #[track_caller]
    fn check_wrong(text: &str, parts: &[&str]) {
        let error = config(text).unwrap_err().explained();
        for part in parts {
            assert!(error.why.contains(part), "{text}: {part}: {}", error.why);
        }
        assert_eq!((error.what.as_str(), error.code), ("`config.yaml` cannot be used", 2));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        check_wrong("provder: x\n", &["provder", "line 1"]);
        check_wrong("provider: x\nproviders:\n  a: {ulr: https://a}\n", &["ulr", "line 3"]);
        check_wrong(
            "providers:\n  a:\n    url: http://api.openai.com/v1\n",
            &["in the clear", "line 3"],
        );
        check_wrong(
            "providers:\n  a:\n    url: https://me:pw@host\n",
            &["fluffy auth set", "line 3"],
        );
        check_wrong("providers:\n  A/..: {}\n", &["no name of a provider", "line 2"]);
        check_wrong("providers:\n  a: {protocol: smoke}\n", &["smoke", "line 2"]);
        check_wrong("providers:\n  a: {headers: {Host: evil}}\n", &["`host`", "line 2"]);
        check_wrong("providers:\n  a: {headers: {x: \"a\\r\\nb: c\"}}\n", &["one line", "line 2"]);
        check_wrong("providers:\n  a: {headers: {'x y': a}}\n", &["no name of a header", "line 2"]);
        check_wrong(
            "providers:\n  a: {prices: {input: -1, output: 1}}\n",
            &["a price is", "line 2"],
        );
        check_wrong("providers:\n  a: {prices: {input: 1}}\n", &["output", "line 2"]);
        check_wrong("providers:\n  a: {context_window: 0}\n", &["above 0", "line 2"]);
        check_wrong("providers:\n  a: {version: \"1\\r\\nx: y\"}\n", &["a version is", "line 2"]);
        check_wrong("provider: a\nprovider: b\n", &["stands twice", "line 2"]);
    }

    #[test]
    fn a_key_or_password_in_the_wrong_place_is_not_repeated() {
        for text in [
            "providers:\n  a: {key: sk-live-4711}\n",
            "proxy: https://me:sk-live-4711@proxy:1\n",
            "providers:\n  a: {headers: {x: \"sk-live-4711\\n\"}}\n",
            "providers:\n  a: {headers: {x: [sk-live-4711]}}\n",
        ] {
            let error = config(text).unwrap_err().explained();
            assert!(!format!("{error:?}").contains("4711"), "{}", error.why);
        }
    }
}
