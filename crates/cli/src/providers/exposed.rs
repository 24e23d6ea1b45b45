//! Secrets on their way from a client to the kernel's process: over a socket that belongs to the user, and nowhere else.

use fluffy_base::Secret;
use serde::{Serialize as _, Serializer};

/// Headers, or secrets by their names, with their values.
pub(crate) fn headers<S: Serializer>(
    headers: &[(String, Secret)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(headers.iter().map(|(name, value)| (name, value.expose())))
}

/// A login, if there is one.
pub(super) fn login<S: Serializer>(
    login: &Option<Secret>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    login.as_ref().map(Secret::expose).serialize(serializer)
}
