//! A provider that can be asked: its process in a sandbox, and what is known of its model.

use std::ops::ControlFlow;
use std::sync::Arc;

use fluffy_kernel::{Destination, ProviderHost};
use fluffy_provider::{
    MAX_HOST_FRAME_BYTES, ModelInfo, ModelRequest, Prices, Provider, ProviderError, Remote,
    StreamEvent,
};
use fluffy_sandbox::Runtime;
use fluffy_sandbox::proxy::Upstream;

use crate::environment::Environment;
use crate::explain::CliError;
use crate::place::Place;
use crate::provider_guest::ProviderGuests;
use crate::providers::{Model, Setup, SetupError, Via};

/// A model at its provider.
#[derive(Debug)]
pub(crate) struct Connected {
    remote: Remote,
    max_output_tokens: Option<u64>,
}

impl Connected {
    /// A provider whose process is started with the first question.
    pub(crate) fn new(
        setup: Setup,
        model: Model,
        place: &Place,
        environment: &Environment,
    ) -> Result<Self, CliError> {
        let runtime: Arc<dyn Runtime> = Arc::new(place.sandboxes(environment)?);
        let url = &setup.endpoint.url;
        let destination = Destination {
            host: url.host().to_owned(),
            port: url.port(),
            upstream: setup.proxy.as_ref().map(upstream).transpose()?.map(Arc::new),
        };
        let guests = ProviderGuests(ProviderHost {
            runtime,
            program: place.executable()?,
            destination,
            frame_bytes: MAX_HOST_FRAME_BYTES,
            // It prints nothing.
            watcher: Arc::new(()),
        });
        let Model { name, prices, context_window, max_output_tokens } = model;
        let known = fluffy_provider::Model { name, context_window, prices };
        let remote = Remote::new(Box::new(guests), setup.endpoint, setup.headers, known);
        Ok(Self { remote, max_output_tokens })
    }

    /// The models that the provider lists.
    pub(crate) fn models(&self) -> Result<Vec<ModelInfo>, ProviderError> {
        self.remote.models(&mut || ControlFlow::Continue(()))
    }
}

fn upstream(via: &Via) -> Result<Upstream, SetupError> {
    let Via { host, port, login } = via;
    let parts = login.as_ref().map(|login| match login.expose().split_once(':') {
        Some((user, password)) => (user.to_owned(), password.to_owned()),
        None => (login.expose().to_owned(), String::new()),
    });
    let parts = parts.map(|(user, password)| (user, fluffy_base::Secret::new(password)));
    let credentials = parts.as_ref().map(|(user, password)| (user.as_str(), password));
    Upstream::new(&format!("{host}:{port}"), credentials)
        .map_err(|error| SetupError::Proxy(error.to_string()))
}

impl Provider for Connected {
    fn name(&self) -> &str {
        self.remote.name()
    }

    fn model(&self) -> &str {
        self.remote.model()
    }

    fn prices(&self) -> Option<Prices> {
        self.remote.prices()
    }

    fn context_window(&self) -> u64 {
        self.remote.context_window()
    }

    fn max_output_tokens(&self) -> Option<u64> {
        self.max_output_tokens
    }

    fn count(
        &self,
        request: &ModelRequest,
        is_wanted: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Option<u64> {
        // Who cannot count is not asked to: the guess stands.
        self.remote.count(request, is_wanted).ok().flatten()
    }

    fn turn(
        &self,
        request: &ModelRequest,
        sink: &mut dyn FnMut(StreamEvent) -> ControlFlow<()>,
    ) -> Result<(), ProviderError> {
        self.remote.turn(request, sink)
    }
}
