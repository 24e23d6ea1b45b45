//! What is on the screen and under the fingers: editing, streamed Markdown, the live region, the pager.
//!
//! **Invariant.** Pure: no clock, no terminal, no file. Bytes to be written are handed out as a text.
//!
//! **Invariant.** No row is as wide as the screen, and no row holds a character that a terminal obeys but the
//! colours that [`style`] writes.

mod edit;
mod inline;
mod markdown;
mod pager;
mod screen;
mod stage;
mod style;
mod table;

pub(crate) use self::pager::{Page, Pager};
pub(crate) use self::screen::Screen;
pub(crate) use self::stage::{Menu, Stage};
pub(crate) use self::style::{Style, columns, cut, painted};
#[cfg(test)]
pub(crate) use self::table::bare;
