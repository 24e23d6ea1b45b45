//! Who provides a model: what is built in, what the user's settings say of it, and what follows for a session.
//!
//! **Invariant.** A provider is chosen by the user's arguments, environment and own settings alone. Nothing that
//! lies in a project is read here.
//!
//! **Invariant.** Nobody is asked by default, and no server is used because it happens to answer.

mod address;
mod builtin;
mod connect;
mod error;
mod exposed;
mod gateway;
mod known_models;
mod local;
mod settings;
mod spec;

use std::path::PathBuf;

use fluffy_base::Secret;
use fluffy_provider::{Endpoint, Model, Prices};
use serde::{Deserialize, Serialize};

pub(crate) use self::address::{Address, ProxyUrl};
pub(crate) use self::builtin::{BUILT_IN, BuiltIn};
pub(crate) use self::connect::{connect, upstream};
pub(crate) use self::error::SetupError;
pub(crate) use self::exposed::headers as exposed_pairs;
pub(crate) use self::gateway::GatewaySetup;
pub(crate) use self::local::{listening, offer};
pub(crate) use self::settings::{Entry, Name, entries};
pub(crate) use self::spec::{Choice, Chosen, ModelSource, ProviderSpec};

use self::address::is_direct;
use self::settings::KeyFrom;
use crate::commands::read_bounded;
use crate::environment::{Environment, variable};
use crate::explain::CliError;
use crate::keys::{Keys, Sources};
use crate::settings::{Layer, Settings};

/// The largest file of certificates.
const MAX_CERTIFICATES: u64 = 1 << 20;
/// What a model is assumed to see of which nothing is known, at a vendor and on the user's own machine.
const USUAL_WINDOW: u64 = 128_000;
const LOCAL_WINDOW: u64 = 16_384;

/// All providers that this user can name.
pub(crate) struct Catalogue {
    settings: Settings,
    /// What a path in the settings begins at.
    dir: Option<PathBuf>,
    /// What is reached without the proxy for everything.
    no_proxy: Vec<String>,
}

/// A provider, without its key.
pub(crate) struct Provider<'a> {
    /// What it is called.
    pub(crate) name: String,
    /// Where it is asked.
    pub(crate) address: Address,
    /// Where its key is looked for.
    pub(crate) sources: Sources,
    protocol: fluffy_provider::Protocol,
    entry: Option<&'a Entry>,
    built_in: Option<&'static BuiltIn>,
}

/// Everything that is needed to ask a model.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Setup {
    /// Where, and how.
    pub(crate) endpoint: Endpoint,
    /// Headers of every request, the key among them.
    #[serde(serialize_with = "exposed::headers")]
    pub(crate) headers: Vec<(String, Secret)>,
    /// Through whom, if not directly.
    pub(crate) proxy: Option<Via>,
}

/// A proxy in between.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Via {
    /// Its host.
    pub(crate) host: String,
    /// Its port.
    pub(crate) port: u16,
    /// `user:password`, if it wants that.
    #[serde(serialize_with = "exposed::login")]
    pub(crate) login: Option<Secret>,
}

/// The names of those that are built in.
pub(crate) fn built_in_names() -> String {
    BUILT_IN.map(|built_in| built_in.name).join(", ")
}

impl Catalogue {
    /// The providers of this user.
    pub(crate) fn of(environment: &Environment) -> Result<Self, CliError> {
        let settings = Settings::of_person(environment)?;
        if let (None, Some(text)) = (settings.proxy(), &environment.proxy) {
            ProxyUrl::parse(text.expose()).map_err(|error| SetupError::Proxy(error.to_string()))?;
        }
        let no_proxy = environment.no_proxy.clone();
        Ok(Self { settings, dir: environment.config_dir(), no_proxy })
    }

    /// Who the user named for everything, if they did.
    pub(crate) fn usual(&self) -> Option<ProviderSpec> {
        self.settings.provider()
    }

    /// What they are called, those that are built in first.
    pub(crate) fn names(&self) -> Vec<&str> {
        let built_in = BUILT_IN.iter().map(|built_in| built_in.name);
        let own = self.settings.providers().keys().map(Name::as_str);
        let own = own.filter(|name| BuiltIn::named(name).is_none());
        built_in.chain(own).collect()
    }

    /// The provider of this name.
    pub(crate) fn find(&self, name: &str) -> Result<Provider<'_>, SetupError> {
        let built_in = BuiltIn::named(name);
        let own = Name::parse(name).ok().and_then(|name| self.settings.providers().get(&name));
        if built_in.is_none() && own.is_none() {
            let name = fluffy_base::Excerpt::new(name, 80).to_string();
            return Err(SetupError::Unknown { name, known: self.names().join(", ") });
        }
        let missing = |what| SetupError::Incomplete { provider: name.to_owned(), what };
        let protocol = own.and_then(|own| own.protocol).or(built_in.map(|it| it.protocol));
        let address = match (own.and_then(|own| own.url.clone()), built_in) {
            (Some(address), _) => Some(address),
            (None, Some(built_in)) => built_in.url.parse().ok(),
            (None, None) => None,
        };
        let address = address.ok_or_else(|| missing("url"))?;
        let sources = sources(own.and_then(|own| own.key.as_ref()), built_in, &address);
        Ok(Provider {
            name: name.to_owned(),
            protocol: protocol.ok_or_else(|| missing("protocol"))?,
            address,
            sources,
            entry: own,
            built_in,
        })
    }

    /// The model to be asked at a provider: the one that was named, or the one of the settings.
    pub(crate) fn model(
        &self,
        of: &Provider<'_>,
        named: Option<&str>,
    ) -> Result<Model, SetupError> {
        let is_usual =
            matches!(self.usual(), Some(ProviderSpec::Named(name)) if name.as_str() == of.name);
        let said = self.settings.model().filter(|_| is_usual);
        // What a variable says goes before every file, also before what a file says of this provider.
        let (strong, usual): (Option<_>, Option<_>) = match said {
            Some((model, origin)) if origin.layer() > Layer::User => (Some(model), None),
            Some((model, _)) => (None, Some(model)),
            None => (None, None),
        };
        let own = of.entry.and_then(|entry| entry.model.as_deref());
        let name = named.or(strong).or(own).or(usual);
        let name = name.map(str::trim).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| SetupError::NoModel(of.name.clone()))?;
        let known = known_models::find(name).filter(|_| !of.address.is_local());
        let entry = of.entry;
        let prices = match entry.and_then(|entry| entry.prices) {
            Some(list) => Some(list.prices()),
            None if of.address.is_local() => Some(Prices::FREE),
            None => known.filter(|_| of.is_vendors_own()).map(|known| known.prices),
        };
        let window = entry.and_then(|entry| entry.context_window);
        let usual = if of.address.is_local() { LOCAL_WINDOW } else { USUAL_WINDOW };
        let longest = entry.and_then(|entry| entry.max_output_tokens);
        Ok(Model {
            name: name.to_owned(),
            prices,
            context_window: window.or(known.map(|it| it.context_window)).unwrap_or(usual),
            max_output_tokens: longest.or(known.map(|it| it.max_output_tokens)),
        })
    }

    /// What is needed to ask a provider, its key included.
    pub(crate) fn setup(&self, of: &Provider<'_>, keys: &Keys<'_>) -> Result<Setup, CliError> {
        let endpoint = Endpoint {
            provider: of.name.clone(),
            protocol: of.protocol,
            url: of.address.url().clone(),
            version: of.entry.and_then(|entry| entry.version.clone()),
            effort: of.entry.and_then(|entry| entry.effort),
            certificates: self.certificates(of)?,
            patience: of.entry.map(|entry| entry.timeouts.patience()).unwrap_or_default(),
        };
        let headers = of.headers(keys)?;
        let proxy = self.via(endpoint.url.host());
        Ok(Setup { endpoint, headers, proxy })
    }

    fn certificates(&self, of: &Provider<'_>) -> Result<Option<String>, CliError> {
        let Some(path) = of.entry.and_then(|entry| entry.certificates.as_ref()) else {
            return Ok(None);
        };
        let path = self.dir.as_ref().map_or_else(|| path.clone(), |dir| dir.join(path));
        let bytes = read_bounded(&path, MAX_CERTIFICATES + 1)?;
        let fits = bytes.len() as u64 <= MAX_CERTIFICATES;
        let text = String::from_utf8(bytes)
            .ok()
            .filter(|text| fits && text.contains("-----BEGIN CERTIFICATE-----"));
        text.map(Some).ok_or_else(|| SetupError::Certificates(path).into())
    }

    /// The proxy on the way to a host, if there is one.
    /// The proxy on the way to a host, if there is one.
    pub(crate) fn via(&self, host: &str) -> Option<Via> {
        let (proxy, is_machines) = self.settings.proxy()?;
        let own = self.settings.list("no_proxy").unwrap_or_default();
        if is_direct(host, own) || is_machines && is_direct(host, &self.no_proxy) {
            return None;
        }
        let login = proxy.login.as_ref().map(|login| Secret::new(login.expose().to_owned()));
        Some(Via { host: proxy.host.clone(), port: proxy.port, login })
    }
}

impl Provider<'_> {
    /// Whether it is where the vendor itself is: then it has the vendor's prices.
    fn is_vendors_own(&self) -> bool {
        let host = self.address.url().host();
        let vendors = BUILT_IN.iter().filter(|built_in| !built_in.is_local);
        let mut hosts = vendors.filter_map(|built_in| built_in.url.parse::<Address>().ok());
        hosts.any(|address| address.url().host() == host)
    }

    /// Whether it needs a key.
    pub(crate) fn wants_key(&self) -> bool {
        self.sources.stored || !self.sources.variables.is_empty()
    }

    /// What people call it.
    pub(crate) fn title(&self) -> &str {
        self.built_in.map_or(&self.name, |built_in| built_in.title)
    }

    fn headers(&self, keys: &Keys<'_>) -> Result<Vec<(String, Secret)>, SetupError> {
        let mut headers = Vec::new();
        for (name, value) in self.entry.into_iter().flat_map(|entry| &entry.headers) {
            let value = value.value(&variable).map_err(|problem| SetupError::Header {
                provider: self.name.clone(),
                header: name.as_str().to_owned(),
                problem,
            })?;
            headers.push((name.as_str().to_owned(), value));
        }
        if !self.wants_key() {
            return Ok(headers);
        }
        let (name, before) = self.protocol.adapter().key_header();
        if headers.iter().any(|(own, _)| own == name) {
            let (provider, header) = (self.name.clone(), name.to_owned());
            let problem = "it carries the key; write `key: none` to set it yourself".to_owned();
            return Err(SetupError::Header { provider, header, problem });
        }
        let found = keys.find(&self.name, &self.sources)?;
        let (key, _origin) = found.ok_or_else(|| SetupError::NoKey {
            provider: self.name.clone(),
            variables: self.sources.variables.clone(),
            stored: self.sources.stored,
        })?;
        headers.push((name.to_owned(), Secret::new(format!("{before}{}", key.expose()))));
        Ok(headers)
    }
}

/// Where a key is looked for: where the settings say, or where it usually is.
fn sources(said: Option<&KeyFrom>, built_in: Option<&BuiltIn>, address: &Address) -> Sources {
    let (variables, stored) = match said {
        Some(KeyFrom::Stored) => (Vec::new(), true),
        Some(KeyFrom::Variable(name)) => (vec![name.clone()], false),
        Some(KeyFrom::None) => (Vec::new(), false),
        None => {
            let usual = built_in.map_or(&[][..], |it| it.variables);
            // A server on the user's own machine wants a key only if they say so.
            let wanted =
                !usual.is_empty() || !address.is_local() && built_in.is_none_or(|it| !it.is_local);
            (usual.iter().map(|&name| name.to_owned()).collect(), wanted)
        }
    };
    Sources { variables, stored }
}

#[cfg(test)]
mod tests;
