//! The line format of lcov: `SF:` names a file, `DA:line,hits` its lines, `end_of_record` ends it.
//!
//! Nothing ends the whole: a report that was cut between two records looks complete. So it counts only
//! after a run that ended by itself.

use std::collections::BTreeMap;

use super::{CoverageError, Found, Hits, summed};

/// A file's record while it is read.
#[derive(Default)]
struct Record {
    name: String,
    hits: Hits,
    found: Option<u64>,
    hit: Option<u64>,
}

pub(super) fn read(text: &str) -> Result<Found, CoverageError> {
    let mut files: BTreeMap<String, Hits> = BTreeMap::new();
    let mut open: Option<Record> = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("SF:") {
            if open.is_some() {
                return Err(CoverageError::malformed("a record begins inside another"));
            }
            open = Some(Record { name: name.to_owned(), ..Record::default() });
        } else if line == "end_of_record" {
            let record =
                open.take().ok_or_else(|| CoverageError::malformed("a record ends unbegun"))?;
            close(record, &mut files)?;
        } else if let Some(record) = open.as_mut() {
            enter(record, line)?;
        }
    }
    if open.is_some() {
        return Err(CoverageError::malformed("the last record has no end"));
    }
    Ok(summed(files))
}

fn enter(record: &mut Record, line: &str) -> Result<(), CoverageError> {
    let Some((key, value)) = line.split_once(':') else { return Ok(()) };
    match key {
        "DA" => {
            let (line, rest) = value
                .split_once(',')
                .ok_or_else(|| CoverageError::malformed("a line has no hits"))?;
            // A checksum of the line may follow.
            let hits = rest.split(',').next().unwrap_or_default();
            record.hits.add(number(line)?, number(hits)? > 0);
        }
        "LF" => record.found = Some(number(value)?),
        "LH" => record.hit = Some(number(value)?),
        // Functions, branches and names of tests.
        _ => {}
    }
    Ok(())
}

fn close(record: Record, files: &mut BTreeMap<String, Hits>) -> Result<(), CoverageError> {
    let lines = record.hits.lines();
    let differs = |sum: Option<u64>, counted| sum.is_some_and(|sum| sum != counted);
    if differs(record.found, lines.total) || differs(record.hit, lines.covered) {
        return Err(CoverageError::contradiction(&record.name));
    }
    let kept = files.entry(record.name).or_default();
    for (line, hit) in record.hits.0 {
        kept.add(line, hit);
    }
    Ok(())
}

fn number(text: &str) -> Result<u64, CoverageError> {
    text.trim().parse().map_err(|_| CoverageError::malformed(format!("`{text}` is not a number")))
}
