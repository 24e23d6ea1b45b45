//! Evidence as an outsider gets it: bundles, proofs, and a verifier that shares no code with ours.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests write bundles to temporary files and start the verifier in Python"
)]

mod damage;
mod evidence;
mod exported;
mod hostile;
mod independent;
mod peer;
mod proofs;
mod signature;
mod support;
