//! The keyring of the user's desktop: the Secret Service on the session bus.
//!
//! Secrets go over the user's own socket, as plain as in memory: whoever can listen there can ask for them, too.
//! A locked keyring is not unlocked from here: its question would be shown on a screen that nobody may see.

use std::sync::Arc;

use fluffy_base::{Clock, Secret};

use super::bus::{Bus, BusError, BusPlace};
use super::wire::{Call, Reader, WireError, Writer};
use crate::environment::Environment;

const SERVICE: &str = "org.freedesktop.secrets";
const ROOT: &str = "/org/freedesktop/secrets";
/// What stands for no object at all.
const NOTHING: &str = "/";
/// How long everything together may take, in milliseconds.
const PATIENCE_MS: u64 = 5_000;

/// Why the keyring did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyringError {
    /// There is none here.
    #[error("there is no keyring here")]
    Absent,
    /// It is locked.
    #[error("the keyring is locked")]
    Locked,
    /// It is there and does not work.
    #[error("the keyring does not answer: {0}")]
    Failed(String),
}

/// An open keyring.
pub(crate) struct Keyring {
    bus: Bus,
    /// The conversation with it, in which secrets are not sealed.
    session: String,
}

impl Keyring {
    /// The keyring of the user's session.
    pub(crate) fn open(
        environment: &Environment,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, KeyringError> {
        let place = match &environment.session_bus {
            Some(address) => BusPlace::of_address(address),
            None => environment.runtime_dir.as_deref().and_then(BusPlace::usual),
        };
        let place = place.ok_or(KeyringError::Absent)?;
        let bus = Bus::connect(&place, clock, PATIENCE_MS)?;
        let mut keyring = Self { bus, session: String::new() };
        let mut body = Writer::default();
        body.text("plain");
        body.signature("s");
        body.text("");
        let answer = keyring.service("OpenSession", "sv", &body)?;
        let mut reader = Reader::new(&answer);
        if reader.signature()? != "s" {
            return Err(WireError::Odd.into());
        }
        reader.text()?;
        reader.text()?.clone_into(&mut keyring.session);
        Ok(keyring)
    }

    /// The key of a provider.
    pub(crate) fn find(&mut self, provider: &str) -> Result<Option<Secret>, KeyringError> {
        let Some(item) = self.items(provider)?.into_iter().next() else { return Ok(None) };
        let mut body = Writer::default();
        body.text(&self.session);
        let interface = "org.freedesktop.Secret.Item";
        let answer = self.call(&item, interface, "GetSecret", "o", &body)?;
        let mut reader = Reader::new(&answer);
        reader.align(8);
        reader.text()?;
        reader.blob()?;
        let key = String::from_utf8(reader.blob()?.to_vec()).map_err(|_| WireError::Odd)?;
        Ok(Some(Secret::new(key)))
    }

    /// Keeps the key of a provider, in the place of an earlier one.
    pub(crate) fn store(&mut self, provider: &str, key: &Secret) -> Result<(), KeyringError> {
        let mut body = Writer::default();
        body.text("default");
        let answer = self.service("ReadAlias", "s", &body)?;
        let collection = Reader::new(&answer).text()?.to_owned();
        if collection == NOTHING {
            return Err(KeyringError::Failed("it has no default collection".to_owned()));
        }
        self.unlock(std::slice::from_ref(&collection))?;
        let body = item(provider, key, &self.session);
        let interface = "org.freedesktop.Secret.Collection";
        let answer = self.call(&collection, interface, "CreateItem", "a{sv}(oayays)b", &body)?;
        let mut reader = Reader::new(&answer);
        reader.text()?;
        asks_nothing(&mut reader)
    }

    /// Forgets the key of a provider; says whether there was one.
    pub(crate) fn remove(&mut self, provider: &str) -> Result<bool, KeyringError> {
        let items = self.items(provider)?;
        for item in &items {
            let interface = "org.freedesktop.Secret.Item";
            let answer = self.call(item, interface, "Delete", "", &Writer::default())?;
            asks_nothing(&mut Reader::new(&answer))?;
        }
        Ok(!items.is_empty())
    }

    /// The items of a provider, unlocked.
    fn items(&mut self, provider: &str) -> Result<Vec<String>, KeyringError> {
        let mut body = Writer::default();
        body.pairs(&attributes(provider));
        let answer = self.service("SearchItems", "a{ss}", &body)?;
        let mut reader = Reader::new(&answer);
        let (mut items, locked) = (reader.paths()?, reader.paths()?);
        if !locked.is_empty() {
            self.unlock(&locked)?;
            items.extend(locked);
        }
        Ok(items)
    }

    /// Unlocks what can be unlocked without a question.
    fn unlock(&mut self, objects: &[String]) -> Result<(), KeyringError> {
        let mut body = Writer::default();
        body.paths(objects);
        let answer = self.service("Unlock", "ao", &body)?;
        let mut reader = Reader::new(&answer);
        reader.paths()?;
        asks_nothing(&mut reader)
    }

    fn service(
        &mut self,
        member: &str,
        signature: &str,
        body: &Writer,
    ) -> Result<Vec<u8>, KeyringError> {
        self.call(ROOT, "org.freedesktop.Secret.Service", member, signature, body)
    }

    fn call(
        &mut self,
        path: &str,
        interface: &str,
        member: &str,
        signature: &str,
        body: &Writer,
    ) -> Result<Vec<u8>, KeyringError> {
        let body = body.bytes();
        let call = Call { destination: SERVICE, path, interface, member, signature, body };
        Ok(self.bus.call(&call)?)
    }
}

/// By what an item is found again.
fn attributes(provider: &str) -> [(&'static str, &str); 2] {
    [("application", "fluffy"), ("provider", provider)]
}

/// What an item is made of: its properties, its secret, and that it replaces another.
fn item(provider: &str, key: &Secret, session: &str) -> Writer {
    let mut body = Writer::default();
    body.list(8, |properties| {
        properties.align(8);
        properties.text("org.freedesktop.Secret.Item.Label");
        properties.signature("s");
        properties.text(&format!("fluffy: key for {provider}"));
        properties.align(8);
        properties.text("org.freedesktop.Secret.Item.Attributes");
        properties.signature("a{ss}");
        properties.pairs(&attributes(provider));
    });
    body.align(8);
    body.text(session);
    body.list(1, |_| {});
    body.list(1, |bytes| key.expose().bytes().for_each(|byte| bytes.byte(byte)));
    body.text("text/plain; charset=utf8");
    body.number(1);
    body
}

/// Whether the keyring did it without a question for the person.
fn asks_nothing(reader: &mut Reader<'_>) -> Result<(), KeyringError> {
    if reader.text()? == NOTHING { Ok(()) } else { Err(KeyringError::Locked) }
}

impl From<BusError> for KeyringError {
    fn from(error: BusError) -> Self {
        match error {
            BusError::Refused(name) => match name.as_str() {
                "org.freedesktop.DBus.Error.ServiceUnknown"
                | "org.freedesktop.DBus.Error.NameHasNoOwner" => Self::Absent,
                "org.freedesktop.Secret.Error.IsLocked" => Self::Locked,
                _ => Self::Failed(name),
            },
            BusError::Unreachable(source) => {
                Self::Failed(format!("the session bus cannot be reached: {source}"))
            }
            BusError::TimedOut | BusError::Unknown | BusError::Wire(_) => {
                Self::Failed(error.to_string())
            }
        }
    }
}

impl From<WireError> for KeyringError {
    fn from(error: WireError) -> Self {
        Self::Failed(error.to_string())
    }
}
