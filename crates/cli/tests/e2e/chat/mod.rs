//! Conversations with the real binary, real skills and real sandboxes.

mod clients;
mod table;
mod turns;
mod words;
