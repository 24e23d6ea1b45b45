//! `fluffy session say`: something more to a session, which goes on with it.

use std::io;

use super::Further;
use super::list::meant;
use crate::args::SayArgs;
use crate::environment::Environment;
use crate::explain::CliError;
use crate::place::Place;
use crate::task_text;
use crate::wire::Work;

pub(super) fn run(
    place: &Place,
    environment: &Environment,
    args: &SayArgs,
) -> Result<u8, CliError> {
    let (id, text) = match (args.words.as_slice(), args.last) {
        ([text], true) => (None, text),
        ([id, text], false) => (Some(id.as_str()), text),
        _other => return Err(CliError::SayWhat),
    };
    let id = meant(place, id)?;
    let text = task_text::read(Some(text), &mut io::stdin().lock())?;
    let work = Work::say(&id, &text)?;
    Further { id, work, args: &args.further, joins: false }.carry_out(place, environment)
}
