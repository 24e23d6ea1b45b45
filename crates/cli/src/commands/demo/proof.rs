//! Evidence of a demo: exported, verified, forged and found out.

use std::path::{Path, PathBuf};

use fluffy_base::{Clock as _, SystemClock};
use fluffy_ledger::{BundleCheck, ExportOptions, Segment, export, verify_bundle};

use crate::commands::{read_bounded, write};
use crate::explain::CliError;
use crate::output::{Output, Tone};
use crate::place::Place;

/// More than any demo leaves.
const BUNDLE_LIMIT: u64 = 1 << 30;

/// A forgery that is shown.
pub(crate) struct Forgery<'a> {
    /// Where the evidence is written.
    pub(crate) bundle: &'a Path,
    /// What is changed in a copy, and into what.
    pub(crate) change: (&'a str, &'a str),
    /// What people are told of it.
    pub(crate) told: &'a str,
    /// The numbers of the two parts that are shown.
    pub(crate) numbers: (u8, u8),
}

impl Forgery<'_> {
    /// Exports and verifies the evidence, forges a copy and verifies that: whether the first holds and the
    /// second does not.
    pub(crate) fn show(&self, place: &Place, output: &mut Output) -> Result<bool, CliError> {
        let (first, second) = self.numbers;
        heading(
            output,
            &format!("{first}. Evidence is exported and verified with nothing but the file"),
        )?;
        write_bundle(place, self.bundle)?;
        let genuine = verify_bundle(self.bundle, None)?;
        verdict(output, genuine.findings.is_empty(), &self.bundle.display().to_string())?;
        heading(output, &format!("{second}. {}", self.told))?;
        let found = verify_bundle(&self.forge()?, None)?;
        show_findings(&found, output)?;
        Ok(genuine.findings.is_empty() && !found.findings.is_empty())
    }

    /// A copy of the bundle with the change.
    fn forge(&self) -> Result<PathBuf, CliError> {
        let text = read_bounded(self.bundle, BUNDLE_LIMIT)?;
        let text = String::from_utf8(text);
        let text = text.map_err(|_| CliError::NotText(self.bundle.to_owned()))?;
        let forged = self.bundle.with_file_name("forged.json");
        let (from, to) = self.change;
        write(&forged, text.replacen(from, to, 1).as_bytes())?;
        Ok(forged)
    }
}

/// The heading of a part.
pub(crate) fn heading(output: &mut Output, text: &str) -> Result<(), CliError> {
    output.line("")?;
    output.line(output.paint(Tone::Strong, text))
}

/// Whether something holds.
pub(crate) fn verdict(output: &mut Output, ok: bool, text: &str) -> Result<(), CliError> {
    let (tone, word) = if ok { (Tone::Good, "verified") } else { (Tone::Bad, "NOT VERIFIED") };
    output.line(format!("  {}: {text}", output.paint(tone, word)))
}

fn show_findings(check: &BundleCheck, output: &mut Output) -> Result<(), CliError> {
    verdict(output, check.findings.is_empty(), "the forged copy")?;
    for finding in check.findings.iter().take(3) {
        output.line(format!("    {finding}"))?;
    }
    Ok(())
}

fn write_bundle(place: &Place, path: &Path) -> Result<(), CliError> {
    let segment = Segment::active(&place.layout())?.ok_or(CliError::NoLedger)?;
    let options = ExportOptions { exported_at_ms: SystemClock.now_ms(), ..Default::default() };
    let mut text = Vec::new();
    export(&segment, &place.key()?, &options, &mut text)?;
    write(path, &text)
}
