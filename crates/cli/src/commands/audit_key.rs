//! `fluffy audit rotate-key`: a new signing key, vouched for by the old one.

use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::output::Output;
use crate::place::{Place, fresh_seed};
use crate::settings::Settings;

pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    output: &mut Output,
) -> Result<u8, CliError> {
    let kernel =
        super::boot(super::kernel(place, &Settings::load(place, environment)?, None)?, output)?;
    let rotated = kernel.rotate_key(&place.key_file(), fresh_seed()?)?;
    kernel.close()?;
    output
        .line(format!("Rotated (entry {}); the old key vouches for the new one.", rotated.seq))?;
    if let Some(key) = place.existing_key()? {
        output.line(format!("Signing with {}", key.verifying_key()))?;
    }
    Ok(DONE)
}
