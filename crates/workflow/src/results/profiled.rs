//! The reports of runners that are rows of a table (see `runner::profile`).
//!
//! What could not be built is looked for in the output, since most of these runners report nothing then. A line that
//! names a file counts only if the run failed.

use std::collections::BTreeSet;

use regex::Regex;

use super::{
    Places, Report, ResultsError, Run, file, junit, missing, refuse_missing_tool, rspec, trx,
};
use crate::runner::profile::{Profile, ReportFormat, ReportPlace, RunnerProfile};

/// How many lines of a failed build are looked at.
const MAX_ERRORS: usize = 200;

/// How much of the output around an error is its message, in bytes.
const MESSAGE_BYTES: usize = 1_000;

pub(super) fn read(
    run: &Run<'_>,
    exit: i32,
    profile: Profile,
    places: &Places<'_>,
) -> Result<Report, ResultsError> {
    let row = profile.data().ok_or_else(|| ResultsError::malformed("the runner is unknown"))?;
    let mut report = Report::default();
    let texts = texts(run, row)?;
    for text in &texts {
        match row.format {
            ReportFormat::Junit => junit::read_into(text, places, &mut report)?,
            ReportFormat::Rspec => rspec::read_into(text, places, &mut report)?,
            ReportFormat::Trx => trx::read_into(text, places, &mut report)?,
        }
    }
    // PHPUnit prints failures of tests as it prints errors of PHP; with a report they are told there.
    let is_told = profile == Profile::PhpUnit && !texts.is_empty();
    if exit != 0 && !is_told {
        read_build_errors(run, row, places, &mut report);
    }
    if texts.is_empty() && report.build().is_none() && exit != 0 {
        refuse_missing_tool(run, exit)?;
        file(run, exit)?;
    }
    if texts.is_empty() && exit == 0 && matches!(row.place, ReportPlace::File(_)) {
        file(run, exit)?;
    }
    Ok(report)
}

fn texts<'a>(run: &Run<'a>, row: &RunnerProfile) -> Result<Vec<&'a str>, ResultsError> {
    let files: Vec<&[u8]> = match row.place {
        ReportPlace::File(_) => run.report.into_iter().collect(),
        ReportPlace::Scattered { .. } => run.reports.iter().map(Vec::as_slice).collect(),
    };
    let text = |bytes: &'a [u8]| {
        let text = std::str::from_utf8(bytes);
        text.map_err(|_| ResultsError::malformed("a report is not UTF-8"))
    };
    // .NET begins its files with a mark of the byte order.
    files.into_iter().map(|bytes| text(bytes).map(|it| it.trim_start_matches('\u{feff}'))).collect()
}

fn read_build_errors(run: &Run<'_>, row: &RunnerProfile, places: &Places<'_>, report: &mut Report) {
    let Some(form) = row.build_error.and_then(|text| Regex::new(text).ok()) else { return };
    let mut without_library = BTreeSet::new();
    for bytes in [run.stderr, run.stdout] {
        let text = String::from_utf8_lossy(bytes);
        for found in form.captures_iter(&text).take(MAX_ERRORS) {
            let named = found.name("file").or_else(|| found.name("object"));
            let named = named.and_then(|named| places.file(named.as_str()));
            let Some(named) = named else { continue };
            let start = found.get(0).map_or(0, |all| all.start());
            let end = text.floor_char_boundary(start.saturating_add(MESSAGE_BYTES));
            let message = text.get(start..end).unwrap_or_default();
            // The next error is another message.
            let line = message.find("error:").map_or(0, |at| at + 1);
            let next = form.find_at(message, line).map_or(message.len(), |next| next.start());
            let message = message.get(..next).unwrap_or(message);
            let cause = missing::cause_of_import(message, Some(named.clone()), places);
            if cause.is_none() {
                without_library.insert(named.clone());
            }
            // What else is wrong in a file without its library follows from that.
            let cause = cause.filter(|_| !without_library.contains(&named));
            report.add_build(cause, message);
        }
    }
}
