//! What every [`Runtime`](fluffy_sandbox::Runtime) is held to, whatever it isolates with.
//!
//! Each function here is one promise and stops the test at the first surprise. The judge is on the host:
//! files are compared before and after, processes are looked for by a word that only the job's carry, and
//! connections are counted where they would arrive. What a job says about itself only helps to find the
//! cause.
//!
//! Jobs need `sh`, `bash` and the usual small programs, so that an image holds enough for all of them.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "these are tests in the shape of a library: they make files and stop at the first surprise"
)]

mod confinement;
mod lifetime;
mod limits;
mod network;
mod scene;
mod states;
mod streams;

pub use confinement::*;
pub use lifetime::*;
pub use limits::*;
pub use network::*;
pub use states::*;
pub use streams::*;
