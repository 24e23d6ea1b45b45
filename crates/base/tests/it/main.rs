//! What the crate promises to all others, seen from outside.

mod frame;
mod path;
