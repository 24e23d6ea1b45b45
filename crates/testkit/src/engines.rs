//! The engines that `scripts/engines` starts for tests.
#![expect(
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests ask their surroundings, and stop where these lack what they must have"
)]

use std::path::{Path, PathBuf};

use fluffy_sandbox::EngineKind;

/// Where `scripts/engines` keeps what it starts.
const PLACE: &str = "/tmp/fluffy-engines";

/// Where an engine listens that was started for tests.
pub fn socket(kind: EngineKind) -> PathBuf {
    Path::new(PLACE).join(format!("{kind}.sock"))
}

/// Whether it is there. Where tests must not be left out (`CI`, `FLUFFY_ENGINES=required`), it has to be.
///
/// # Panics
///
/// When it has to be there and is not.
pub fn is_there(kind: EngineKind) -> bool {
    let there = std::os::unix::net::UnixStream::connect(socket(kind)).is_ok();
    let said =
        |name: &str| std::env::var(name).is_ok_and(|value| !value.is_empty() && value != "0");
    if !there && (said("CI") || said("FLUFFY_ENGINES")) {
        panic!("no {kind} listens at {}: run ./scripts/engines", socket(kind).display());
    }
    if !there {
        eprintln!("skipped: no engine ({kind}); ./scripts/engines starts one");
    }
    there
}
