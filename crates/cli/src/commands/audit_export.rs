//! `fluffy audit export`: evidence for an outsider.

use std::io::{BufWriter, Write as _};

use fluffy_base::{Clock as _, SessionId, SystemClock};
use fluffy_ledger::{ExportOptions, Segment, export};

use crate::args::ExportArgs;
use crate::explain::{CliError, DONE};
use crate::output::Output;
use crate::place::Place;

pub(crate) fn run(place: &Place, args: &ExportArgs, output: &mut Output) -> Result<u8, CliError> {
    let segment = Segment::active(&place.layout())?.ok_or(CliError::NoLedger)?;
    let key = place.key()?;
    let session = args.session.as_deref().map(session).transpose()?;
    let redact = args.redact.clone();
    let options = ExportOptions { session, redact, exported_at_ms: SystemClock.now_ms() };
    if args.out.as_os_str() == "-" {
        export(&segment, &key, &options, output.raw())?;
        return Ok(DONE);
    }
    let failed = |source| CliError::File { action: "write", path: args.out.clone(), source };
    let mut file = BufWriter::new(super::create(&args.out)?);
    let exported = export(&segment, &key, &options, &mut file)?;
    file.flush().map_err(failed)?;
    let withheld = match exported.withheld {
        0 => String::new(),
        n => format!(", {n} details withheld"),
    };
    output.line(format!(
        "Exported {} entries to {}{withheld}.",
        exported.entries,
        args.out.display()
    ))?;
    output.line(format!("Signed by {}", key.verifying_key()))?;
    output.line(format!("Verify with: fluffy audit verify --bundle {}", args.out.display()))?;
    Ok(DONE)
}

fn session(text: &str) -> Result<SessionId, CliError> {
    let wanted = "a session id as `fluffy audit log --json` shows it".to_owned();
    SessionId::named(text).ok_or_else(|| CliError::Value { given: text.to_owned(), wanted })
}
