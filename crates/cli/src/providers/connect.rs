//! A provider that can be asked: its process in a sandbox.

use std::sync::Arc;

use fluffy_kernel::{Destination, ProviderHost};
use fluffy_provider::{MAX_HOST_FRAME_BYTES, Model, Remote};
use fluffy_sandbox::Runtime;
use fluffy_sandbox::proxy::Upstream;

use crate::explain::CliError;
use crate::place::Place;
use crate::provider_guest::ProviderGuests;
use crate::providers::{Setup, SetupError, Via};

/// A provider whose process is started with the first question.
pub(crate) fn connect(
    setup: Setup,
    model: Model,
    place: &Place,
    runtime: &Arc<dyn Runtime>,
) -> Result<Remote, CliError> {
    let url = &setup.endpoint.url;
    let destination = Destination {
        host: url.host().to_owned(),
        port: url.port(),
        upstream: setup.proxy.as_ref().map(upstream).transpose()?.map(Arc::new),
    };
    let guests = ProviderGuests(ProviderHost {
        runtime: Arc::clone(runtime),
        program: place.executable()?,
        destination,
        frame_bytes: MAX_HOST_FRAME_BYTES,
        witness: Arc::clone(place.witness()),
    });
    Ok(Remote::new(Box::new(guests), setup.endpoint, setup.headers, model))
}

/// The proxy as sandboxes are given it.
pub(crate) fn upstream(via: &Via) -> Result<Upstream, SetupError> {
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
