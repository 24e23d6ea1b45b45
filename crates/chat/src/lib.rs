//! Chat: what a person says becomes words, an action that was planned, or a task.
//!
//! ```text
//! message ── parse ── resolve ── plan ── confirm ── execute ── log ── reply
//!              │         │         │         │          │         │
//!         words, or   anchors   trusted   a person   by whoever  in the ledger,
//!         a model     of this   skills    where it   called      before anything
//!         that only   talk                has an                 is shown
//!         parses                          effect
//! ```
//!
//! [`Conversation`] is all of that without doing anything: it is told what was said and what came of what it wanted done
//! ([`Next`]), and answers with the next thing to do. Whoever calls it owns the effects.
//!
//! **Invariant.** A model parses and talks. What is done is planned by [`plan`], a function of what is wanted and of the
//! skills that are trusted, and what has an effect waits for a person: no message of a model, no record of the ledger and no
//! wording is a yes.
//!
//! **Invariant.** What was agreed to is what is done: the plan that was shown, with the skills as they were then.
//!
//! **Invariant.** Nothing of a conversation is kept: anchors, what is asked and what was said die with it.

mod anchors;
mod confirm;
mod conversation;
mod day;
mod history;
mod intent;
mod model;
mod parse;
mod plan;
mod present;
mod record;
mod reply;
mod resolve;
mod skill;

pub use anchors::{Anchor, AnchorKind, Anchors, MAX_ANCHORS};
pub use confirm::{ConfirmError, Consent, Pending, TTL_MS, is_no, is_yes};
pub use conversation::{Conversation, Done, Next, Order, Said, Setting, Speech};
pub use day::day_of;
pub use history::{History, MAX_KEPT, Voice};
pub use intent::{Change, Command, Given, Intent, Part, Reference, Wanted};
pub use model::{Answer, Heard, MAX_ANSWER_BYTES, ask, heard};
pub use parse::{Parsed, parse};
pub use plan::{MAX_STEPS, Origin, Plan, PlanError, Slot, Step, plan};
pub use present::Coded;
pub use record::{TALK, TRANSFORM, TalkRecord};
pub use reply::{Kind, Record, Reply, Trace};
pub use resolve::{Action, Bound, Unresolved, resolve};
pub use skill::Known;
