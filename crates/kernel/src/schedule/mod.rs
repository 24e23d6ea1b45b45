//! Decides which sandboxes work when: priorities, dependencies, limits, pauses, and what gives way when memory is short.
//!
//! ```text
//! Scheduled (a Runtime) ── Scheduler ── Board          events in, orders out; no clock, no thread, no lock
//!   sandboxes as before     threads,      ▲ │
//!                           the clock ────┘ ▼ start, pause, resume, destroy, fail, drop caches
//!                           Memory: the machine, or what a test says
//! ```
//!
//! **Invariant.** Nothing in a sandbox works without its seat: there are never more at work than a limit allows, and what is
//! being paused or ended has its seat until it is.
//!
//! **Invariant.** A task starts after everything that it depends on was completed, and ends whatever becomes of it.

mod board;
mod choice;
mod door;
mod guard;
mod limits;
mod memory;
mod preempt;
mod scheduled;
mod scheduler;
mod task;

pub use board::{Board, Event, Order};
pub use limits::{Limits, Share};
pub use memory::{MachineMemory, Memory};
pub use scheduler::{Scheduler, Shown};
pub use task::{Ended, Priority, Refused, Stage, Task, TaskId, Waits, Why};

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
