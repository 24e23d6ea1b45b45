//! Where the forge's local model is, as the user's own settings say.

use std::sync::Arc;

use fluffy_base::SystemClock;
use fluffy_provider::{Endpoint, Model, Patience, Prices, Protocol};
use fluffy_sandbox::Runtime;
use serde::{Deserialize, Serialize};

use super::{Address, Catalogue, LOCAL_WINDOW, Setup, SetupError, connect};
use crate::explain::CliError;
use crate::gateway::LocalGateway;
use crate::place::Place;
use crate::settings::Layer;

/// What it is called where a provider has a name.
const NAME: &str = "gateway";

/// How long a connection may take at most, however patient one is.
const CONNECT_MS: u64 = 5_000;

/// Everything that is needed to ask the gateway.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GatewaySetup {
    setup: Setup,
    model: Model,
    timeout_ms: u64,
}

impl Catalogue {
    /// The gateway for conversation: only where the user's own words name one, since nobody is asked by default.
    pub(crate) fn gateway_for_talk(&self) -> Result<Option<GatewaySetup>, CliError> {
        let said = self.settings.effective("forge.gateway.url");
        let is_named = said.is_some_and(|found| found.origin.layer() > Layer::Default);
        is_named.then(|| self.gateway()).transpose()
    }

    /// The gateway, as the user's settings have it. It is sent no key.
    pub(crate) fn gateway(&self) -> Result<GatewaySetup, CliError> {
        let missing = |what| SetupError::Incomplete { provider: NAME.to_owned(), what };
        let url = self.settings.text("forge.gateway.url");
        let address: Address =
            url.and_then(|url| url.parse().ok()).ok_or_else(|| missing("url"))?;
        let name = self.settings.text("forge.gateway.model").ok_or_else(|| missing("model"))?;
        let timeout_ms = self.settings.number("forge.gateway.timeout_ms");
        let timeout_ms = timeout_ms.ok_or_else(|| missing("timeout_ms"))?;
        let patience = Patience {
            connect_ms: timeout_ms.min(CONNECT_MS),
            first_byte_ms: timeout_ms,
            idle_ms: timeout_ms,
        };
        let endpoint = Endpoint {
            provider: NAME.to_owned(),
            protocol: Protocol::OpenaiCompatible,
            url: address.url().clone(),
            version: None,
            effort: None,
            certificates: None,
            patience,
        };
        let proxy = self.via(endpoint.url.host());
        let model = Model {
            name: name.to_owned(),
            context_window: LOCAL_WINDOW,
            prices: Some(Prices::FREE),
            max_output_tokens: None,
        };
        Ok(GatewaySetup {
            setup: Setup { endpoint, headers: Vec::new(), proxy },
            model,
            timeout_ms,
        })
    }
}

impl GatewaySetup {
    /// The same as a provider of words, with the model's name.
    pub(crate) fn speaker(
        self,
        place: &Place,
        runtime: &Arc<dyn Runtime>,
    ) -> Result<fluffy_provider::Remote, CliError> {
        connect(self.setup, self.model, place, runtime)
    }

    /// The gateway; its process is started with the first question.
    pub(crate) fn open(
        self,
        place: &Place,
        runtime: &Arc<dyn Runtime>,
    ) -> Result<LocalGateway, CliError> {
        let remote = connect(self.setup, self.model, place, runtime)?;
        Ok(LocalGateway::new(remote, self.timeout_ms, Box::new(SystemClock)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;

    fn settings(pairs: &[(&str, &str)]) -> Result<GatewaySetup, CliError> {
        let named = |(name, value): &(&str, &str)| (format!("FLUFFY_{name}"), (*value).into());
        let settings = pairs.iter().map(named).collect();
        Catalogue::of(&Environment { settings, ..Environment::default() })?.gateway()
    }

    #[test]
    fn for_8_without_any_settings_the_gateway_is_on_this_machine_and_is_sent_no_key() {
        let GatewaySetup { setup, model, timeout_ms } = settings(&[]).unwrap();
        assert_eq!(setup.endpoint.url.to_string(), "http://localhost:8000/v1");
        assert_eq!(setup.endpoint.protocol, Protocol::OpenaiCompatible);
        assert_eq!((model.name.as_str(), timeout_ms), ("gpt-oss-20b", 30_000));
        assert!(setup.headers.is_empty() && setup.proxy.is_none());
    }

    #[test]
    fn for_8_the_users_own_words_choose_another_one() {
        let GatewaySetup { setup, model, timeout_ms } = settings(&[
            ("FORGE_GATEWAY_URL", "http://192.168.1.2:8080/v1"),
            ("FORGE_GATEWAY_MODEL", "small"),
            ("FORGE_GATEWAY_TIMEOUT_MS", "700"),
        ])
        .unwrap();
        assert_eq!(setup.endpoint.url.to_string(), "http://192.168.1.2:8080/v1");
        assert_eq!((model.name.as_str(), timeout_ms), ("small", 700));
        assert_eq!(setup.endpoint.patience.connect_ms, 700);
        for url in ["http://example.org/v1", "ftp://localhost", "http://me:pw@localhost", "x"] {
            let error = settings(&[("FORGE_GATEWAY_URL", url)]).err().unwrap().explained();
            assert_eq!(error.code, 2, "{url}: {error:?}");
        }
    }
}
