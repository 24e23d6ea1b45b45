//! The attack battery: real programs that try to get out, each judged from outside.
//!
//! Every case runs five times. In the sandbox, started by root and by an ordinary user, each on the machine and inside the
//! kernel's own confinement: there the attack must be stopped, which is seen on the host (files, listeners, processes,
//! terminals), and must get the answer that is written down here. And once as a control, in namespaces of its own without the layer that
//! stops it: there the same attack must succeed, or the case fails as a dead probe.
//!
//! A row is *what is tried, the answer in the sandbox, the answer in the control*. `|` separates answers
//! that are as good; `*` in the control means any answer but those of the sandbox.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests start the tester, make scenes for it, and stop at the first surprise"
)]

mod case;
mod files;
mod identity;
mod kernel;
mod leaks;
#[path = "../tester/listen.rs"]
mod listen;
mod mounts;
mod network;
mod resources;
mod scene;
#[path = "../tester/spec.rs"]
mod spec;
mod terminal;
