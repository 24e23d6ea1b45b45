//! `fluffy image build`: the image that sandboxes of an engine are made of.

use fluffy_sandbox::{Engine, Health, Runtime as _};

use crate::args::ImageCommand;
use crate::driver::{self, Driver, DriverError};
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::output::Output;
use crate::pending::{LOOK, Shown, far};
use crate::place::Place;
use crate::settings::Settings;

pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    ImageCommand::Build(args): &ImageCommand,
    output: &mut Output,
) -> Result<u8, CliError> {
    let image = driver::image(&Settings::load(place, environment)?)?;
    let engine = match args.engine {
        Some(engine) => Some(driver::listening(engine, environment)),
        None => place.engine().cloned(),
    };
    let Driver::Engine(options) = place.driver(environment, engine, image)? else {
        return Err(DriverError::NoEngine.into());
    };
    let engine = Engine::open(options)?;
    let mut shown = Shown::default();
    while let Health::Pending { reason, progress } = engine.ping()? {
        if shown.is_news(&reason, progress) {
            output.notice(format!("{reason}{} …", far(progress)));
        }
        engine.wait_for_progress(LOOK);
    }
    output.line(engine.image_prepared()?)?;
    Ok(DONE)
}
