//! JSON of `llvm-cov export`: a summary of lines for each file.

use serde::Deserialize;

use super::{CoverageError, Found, Lines};

#[derive(Deserialize)]
struct Export {
    #[serde(rename = "type")]
    kind: String,
    data: Vec<Data>,
}

#[derive(Deserialize)]
struct Data {
    files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    filename: String,
    summary: Summary,
}

#[derive(Deserialize)]
struct Summary {
    lines: Sum,
}

#[derive(Deserialize)]
struct Sum {
    count: u64,
    covered: u64,
}

pub(super) fn read(text: &str) -> Result<Found, CoverageError> {
    let export: Export = serde_json::from_str(text).map_err(CoverageError::malformed)?;
    if export.kind != "llvm.coverage.json.export" {
        return Err(CoverageError::malformed("it is no export of llvm-cov"));
    }
    let mut found = Found::new();
    for file in export.data.into_iter().flat_map(|data| data.files) {
        let sums = file.summary.lines;
        let lines = Lines { covered: sums.covered, total: sums.count };
        if found.insert(file.filename.clone(), lines).is_some() {
            return Err(CoverageError::contradiction(&file.filename));
        }
    }
    Ok(found)
}
