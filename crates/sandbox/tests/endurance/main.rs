//! Many sandboxes, at once and one after the other, and kernels that die at any moment: nothing is left.
//!
//! What is counted is what a machine runs out of: processes, mounts, network namespaces, control groups, files
//! and descriptors. A test whose name begins with `slow_` is left out of quick runs.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests start and kill processes of their own, print seeds, and stop at the first surprise"
)]

mod alone;
mod counted;
mod faults;
mod kernel;
mod killed;
mod many;
