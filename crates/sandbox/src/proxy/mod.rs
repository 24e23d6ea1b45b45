//! The way out: a forward proxy that passes on requests to listed hosts only.
//!
//! A sandbox reaches nothing but its own loopback, where its first process opened the sockets that the
//! proxy listens on. A request goes this way:
//!
//! 1. its head is read and must mean one thing only (`head`);
//! 2. its host and port must be on the [`AllowList`] (`gate`);
//! 3. the name is looked up once, and every address must be public or listed itself (`gate`);
//! 4. it is recorded, and only then one of these addresses is connected to (`dial`);
//! 5. CONNECT carries bytes both ways, whose first must be a greeting of TLS for the same host if the port
//!    is 443 (`greeting`); anything else is passed on as the only request of its connection (`body`);
//! 6. its end is recorded (`record`).
//!
//! Where the person has a proxy of their own to go through ([`Upstream`]), the name is looked up by that one, and
//! step 3 is made of addresses only that are asked for as such.
//!
//! TLS is not opened: what is said in it is between the sandbox and the host, as is everything in a tunnel to
//! another port. A host that answers for many names can so be asked for one that is not listed.
//!
//! **Invariant.** No byte leaves for a host that is not listed, and no request goes unrecorded.

mod address;
mod allow;
mod answer;
mod body;
mod connection;
mod dial;
mod flow;
mod gate;
mod greeting;
mod head;
mod host;
mod record;
mod relay;
mod resolve;
mod server;
mod upstream;

pub use allow::{AllowError, AllowList};
pub use host::HostError;
pub use record::{Decision, Ending, Failure, Record, Refusal, Sink};
pub use resolve::{Resolver, SystemResolver};
pub use server::{Listener, Options, Proxy, Times};
pub use upstream::{Upstream, UpstreamError};
