//! How clients talk to the kernel's process: frames of JSON over a Unix socket.
//!
//! ```text
//! client ── connect ──► listener   another user is hung up on
//!        ── hello ────► handshake  version, name, token; nothing else is heard before
//!        ◄─ welcome ──             client id and token, bound to this very process
//!        ── request ──► Service    called on the server's thread, answers whenever it likes
//!        ◄─ response, event ──     a bounded queue for each peer
//! ```
//!
//! [`Server`] is one thread with one `epoll`; large frames are parsed on a second one. [`Client`] has no thread: whoever
//! waits reads for all.
//!
//! **Invariant.** No peer costs another more than a bounded piece of one turn, nor more memory than its share. A peer
//! that breaks the rules is told why and hung up on; nothing it sends is skipped, repaired or guessed.
//!
//! **Invariant.** Who a peer is, the system says: user, process and terminal are looked up, never taken from what is
//! sent.

mod client;
mod handshake;
mod inbox;
mod line;
mod link;
mod parser;
mod peer;
mod process;
mod server;
mod socket;
mod switchboard;
mod sys;
mod tokens;

pub use client::{CallError, Client, ClientOptions, ConnectError, ReceiveError};
pub use handshake::{Token, Welcome};
pub use line::Gone;
pub use peer::Peer;
pub use server::{Server, ServerOptions, Service};
pub use socket::{ListenError, Listener, listen};

/// The event that is a connection's last: why the kernel hangs up, as a fault.
const CLOSED: &str = "connection.closed";

/// Asks whether the kernel is there; answered to everyone, by the server itself.
const PING: &str = "health.ping";

/// The request that opens a connection.
const HELLO: &str = "hello";
