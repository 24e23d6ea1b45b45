//! `fluffy audit prove`: a proof that travels alone.

use std::path::Path;

use fluffy_base::Digest;
use fluffy_ledger::{Segment, find_entry};

use crate::args::ProveArgs;
use crate::explain::{CliError, DONE};
use crate::output::Output;
use crate::place::Place;

pub(crate) fn run(place: &Place, args: &ProveArgs, output: &mut Output) -> Result<u8, CliError> {
    let segment = Segment::active(&place.layout())?.ok_or(CliError::NoLedger)?;
    let key = place.key()?;
    let proof = match (&args.what.entry, args.what.since) {
        (Some(entry), _) => {
            let seq = number_of(entry, segment.path())?;
            serde_json::to_value(segment.prove(seq, &key)?)
        }
        (None, since) => serde_json::to_value(segment.prove_since(since.unwrap_or(0), &key)?),
    };
    let proof = proof.map_err(std::io::Error::from)?;
    match &args.out {
        None => output.line(proof)?,
        Some(path) => {
            super::write(path, format!("{proof}\n").as_bytes())?;
            output.line(format!("Wrote {}.", path.display()))?;
            output.line(format!("Verify with: fluffy audit verify --proof {}", path.display()))?;
        }
    }
    Ok(DONE)
}

/// The entry that was named by its number or its hash.
fn number_of(text: &str, path: &Path) -> Result<u64, CliError> {
    let unknown =
        |wanted: &str| CliError::Value { given: text.to_owned(), wanted: wanted.to_owned() };
    if let Ok(seq) = text.parse() {
        return Ok(seq);
    }
    let hash: Digest = text.parse().map_err(|_| unknown("a number or the hash of an entry"))?;
    find_entry(path, &hash)?.ok_or_else(|| unknown("the hash of an entry in this ledger"))
}
