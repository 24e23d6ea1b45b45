//! Servers of models on this machine, on the ports that they usually have.
//!
//! **Invariant.** Nothing is sent: a port is tried, and what listens there is offered. Nobody but the user chooses
//! it.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::providers::{Address, BUILT_IN, BuiltIn};

/// How long this machine takes at most to say whether anybody listens.
const PATIENCE: Duration = Duration::from_millis(300);

/// The servers that are built in and seem to be there.
pub(crate) fn listening() -> Vec<&'static BuiltIn> {
    BUILT_IN.iter().filter(|built_in| built_in.is_local && answers(built_in)).collect()
}

/// How one is offered.
pub(crate) fn offer(built_in: &BuiltIn) -> String {
    let BuiltIn { name, title, url, .. } = built_in;
    let place = url.parse::<Address>().map(|address| address.url().authority()).unwrap_or_default();
    format!(
        "something listens where {title} usually does ({place}): use it with --provider {name} -m MODEL"
    )
}

fn answers(built_in: &BuiltIn) -> bool {
    let address = built_in.url.parse::<Address>().ok();
    let socket = address.and_then(|address| address.url().authority().parse::<SocketAddr>().ok());
    socket.is_some_and(|socket| TcpStream::connect_timeout(&socket, PATIENCE).is_ok())
}
