//! `fluffy kernel submit`: JSON lines in, receipts out.

use std::io::{self, BufRead};
use std::sync::Arc;

use fluffy_kernel::{Kernel, KernelConfig, SessionStart};

use crate::args::SubmitArgs;
use crate::control;
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::lines::{Line, read_line};
use crate::output::Output;
use crate::place::Place;
use crate::settings::Settings;

/// The longest request that is read.
const MAX_REQUEST_BYTES: usize = 16 << 20;

pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    args: &SubmitArgs,
    output: &mut Output,
) -> Result<u8, CliError> {
    let kernel = Arc::new(super::boot(config(place, environment, args)?, output)?);
    let socket = place.control_socket();
    if let Err(error) = control::listen(&socket, &kernel) {
        output.notice(format!("note: `fluffy kernel halt` cannot reach this kernel: {error}"));
    }
    let answered = answer_all(&kernel, &mut io::stdin().lock(), output);
    // The listener holds the kernel only for the moment of a halt.
    match Arc::try_unwrap(kernel) {
        Ok(kernel) => kernel.close()?,
        Err(shared) => drop(shared),
    }
    answered?;
    Ok(DONE)
}

/// The kernel that the arguments ask for.
fn config(
    place: &Place,
    environment: &Environment,
    args: &SubmitArgs,
) -> Result<KernelConfig, CliError> {
    let mut config =
        super::kernel(place, &Settings::load(place, environment)?, args.policy.as_deref())?;
    config.variant = args.variant.variant();
    config.session = if args.new_session { SessionStart::New } else { SessionStart::Continue };
    Ok(config)
}

fn answer_all(
    kernel: &Kernel,
    input: &mut impl BufRead,
    output: &mut Output,
) -> Result<(), CliError> {
    loop {
        let receipt = match read_line(input, MAX_REQUEST_BYTES).map_err(stdin_failed)? {
            Line::End => return Ok(()),
            Line::Text(text) if text.trim_ascii().is_empty() => continue,
            Line::Text(text) => kernel.submit_json(&text),
            Line::TooLong(length) => kernel.refuse_unread(&format!(
                "the request has {length} bytes, at most {MAX_REQUEST_BYTES} are read"
            )),
        };
        serde_json::to_writer(output.raw(), &receipt).map_err(io::Error::from)?;
        output.line("")?;
        output.flush()?;
    }
}

fn stdin_failed(source: io::Error) -> CliError {
    CliError::File { action: "read", path: "the standard input".into(), source }
}
