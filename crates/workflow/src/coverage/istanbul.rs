//! JSON of istanbul: statements by place (`coverage-final.json`), or sums (`coverage-summary.json`).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{CoverageError, Found, Hits, Lines};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    statement_map: BTreeMap<String, Place>,
    s: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Place {
    start: Point,
}

#[derive(Deserialize)]
struct Point {
    line: u64,
}

/// Lines as istanbul itself counts them: those on which a statement begins, covered if one of these ran.
pub(super) fn read_final(text: &str) -> Result<Found, CoverageError> {
    let files: BTreeMap<String, File> =
        serde_json::from_str(text).map_err(CoverageError::malformed)?;
    let mut found = Found::new();
    for (name, file) in files {
        if file.s.len() != file.statement_map.len() {
            return Err(CoverageError::contradiction(&name));
        }
        let mut hits = Hits::default();
        for (key, place) in &file.statement_map {
            let count = file.s.get(key).ok_or_else(|| CoverageError::contradiction(&name))?;
            hits.add(place.start.line, *count > 0);
        }
        found.insert(name, hits.lines());
    }
    Ok(found)
}

#[derive(Deserialize)]
struct Sums {
    lines: Sum,
}

#[derive(Deserialize)]
struct Sum {
    total: u64,
    covered: u64,
}

pub(super) fn read_summary(text: &str) -> Result<Found, CoverageError> {
    let mut files: BTreeMap<String, Sums> =
        serde_json::from_str(text).map_err(CoverageError::malformed)?;
    let total = files.remove("total").map(|sums| (sums.lines.covered, sums.lines.total));
    let mut found = Found::new();
    let (mut covered, mut lines) = (0_u64, 0_u64);
    for (name, sums) in files {
        covered = covered.saturating_add(sums.lines.covered);
        lines = lines.saturating_add(sums.lines.total);
        found.insert(name, Lines { covered: sums.lines.covered, total: sums.lines.total });
    }
    if total.is_some_and(|total| total != (covered, lines)) {
        return Err(CoverageError::contradiction("total"));
    }
    Ok(found)
}
