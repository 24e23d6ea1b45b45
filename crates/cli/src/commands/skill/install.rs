//! `fluffy skill install`: skills that come with the program, brought to trust one by one.

use fluffy_forge::{Shipped, shipped};

use super::{Desk, Order, known, manner};
use crate::args::InstallArgs;
use crate::explain::{CANCELLED, CliError, DONE};
use crate::interrupt::Stop;
use crate::output::Output;
use crate::wire::{Handed, SkillWork};

pub(super) fn run(
    desk: &Desk<'_>,
    args: &InstallArgs,
    output: &mut Output,
) -> Result<u8, CliError> {
    let all = shipped().iter().map(|skill: &Shipped| skill.name.to_owned());
    let names = if args.all { all.collect() } else { args.names.clone() };
    for name in &names {
        known(name)?;
    }
    let stop = Stop::listen()?;
    let mut worst = DONE;
    for name in names {
        let (work, handed) = (SkillWork::Install { name }, Handed::default());
        let order = Order { work, driver: None, handed };
        let code = desk.answer_until(&stop, order, manner(args.json), output)?;
        if code == CANCELLED {
            return Ok(code);
        }
        // The first that did not go well is what is told.
        worst = if worst == DONE { code } else { worst };
    }
    Ok(worst)
}
