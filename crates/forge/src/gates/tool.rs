//! Runs the programs of a profile, each in a sandbox of its own, and reads what they say.
//!
//! **Invariant.** Sources are read-only for whatever runs, there is no network, and what a program leaves is gone.

use std::collections::BTreeMap;
use std::thread;

use fluffy_base::{ByteSize, Excerpt, ProjectPath, Span};
use fluffy_kernel::{End, Errand, Errands, Keeps, Limit, Limits};

use super::bench::{AT, Bench};
use super::reading::{MAX_FINDINGS, NoReport, about, mypy, ruff};
use super::results::{Key, judge};
use super::silencing::silencing;
use super::{Inspected, VerifyError};
use crate::{Check, Finding, Gate, GateResult, Profile, Report, SKILLS, SourceFile, Words, tools};

/// How much of what a program prints is kept in the report.
const MAX_PRINTED: usize = 4_000;

const MIB: u64 = 1 << 20;

/// What the gates look with and at.
pub(super) struct Outlook<'a> {
    pub(super) subject: &'a Inspected<'a>,
    pub(super) profile: &'a Profile,
    pub(super) bench: &'a Bench,
    pub(super) files: &'a [SourceFile],
}

/// What a gate said, and how its program ended.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) result: GateResult,
    pub(super) run: Option<Run>,
}

/// A program's run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) sandbox: String,
    pub(super) ended: String,
    pub(super) ms: u64,
    /// The end of what it printed to standard error.
    pub(super) printed: String,
}

/// Reads what a program printed.
type Parse = fn(&[u8], &[SourceFile]) -> Result<Vec<Finding>, NoReport>;

impl Outlook<'_> {
    /// Lint, types and tests, at the same time; the tests only if `may_run`.
    pub(super) fn all(&self, may_run: bool) -> Result<[Looked; 3], VerifyError> {
        let key = || Some(Key::new(self.subject.ids.fresh()?, self.subject.ids.fresh()?));
        let key = key().ok_or(VerifyError::NoRandomness)?;
        thread::scope(|scope| {
            let tests = scope.spawn(|| match may_run {
                true => self.look(Gate::Tests, &self.profile.tests, &key),
                false => Ok(not_run(Gate::Tests)),
            });
            let lint = scope.spawn(|| self.look(Gate::Lint, &self.profile.lint, &key));
            let types = self.look(Gate::Types, &self.profile.types, &key);
            let over = |gate| VerifyError::Lab { gate, source: cancelled() };
            let lint = lint.join().map_err(|_| over(Gate::Lint))?;
            let tests = tests.join().map_err(|_| over(Gate::Tests))?;
            Ok([lint?, types?, tests?])
        })
    }

    fn look(&self, gate: Gate, check: &Check, key: &Key) -> Result<Looked, VerifyError> {
        let mut findings = silencing(self.files, &check.forbids);
        let errand = self.errand(check, key)?;
        let ran = self.subject.lab.run(errand, self.subject.journal);
        let ran = ran.map_err(|source| VerifyError::Lab { gate, source })?;
        let mut passed = None;
        match check.report {
            Report::Ruff => findings.extend(self.read(&ran, ruff)),
            Report::Mypy => findings.extend(self.read(&ran, mypy)),
            Report::Tagged => {
                let tested = judge(&ran.stdout.bytes, key, self.files);
                findings.extend(tested.findings);
                findings.extend(self.ended(&ran, findings.is_empty()));
                passed = Some(tested.passed);
            }
        }
        let result = settled(gate, findings, passed);
        Ok(Looked { result, run: Some(run(&ran)) })
    }

    /// What a program reports: nothing with 0, something with any other code. Whatever else it does is a finding, too.
    fn read(&self, ran: &Errands, parse: Parse) -> Vec<Finding> {
        let parsed = parse(&ran.stdout.bytes, self.files);
        let fits = match (&ran.end, &parsed) {
            (End::Exited(0), Ok(found)) => found.is_empty(),
            (End::Exited(_), Ok(found)) => !found.is_empty(),
            (End::Exited(_), Err(_))
            | (End::Signalled(_) | End::Limit(_) | End::Stopped, Ok(_) | Err(_)) => false,
        };
        let odd = (!fits || ran.stdout.cut).then(|| self.odd(ran)).flatten();
        parsed.unwrap_or_default().into_iter().chain(odd).collect()
    }

    /// What is held against tests that did not end by themselves with 0.
    fn ended(&self, ran: &Errands, is_clean: bool) -> Option<Finding> {
        match ran.end {
            End::Exited(0) if !ran.stdout.cut => None,
            End::Exited(_) if !is_clean => None,
            _ => self.odd(ran),
        }
    }

    fn odd(&self, ran: &Errands) -> Option<Finding> {
        let rule = match ran.end {
            End::Limit(Limit::Duration) => "time",
            End::Limit(_) => "limit",
            End::Exited(_) | End::Signalled(_) | End::Stopped => "tool",
        };
        let why = match ran.stdout.cut {
            true => "it printed too much".to_owned(),
            false => format!("it {}: {}", ran.end, tail(&ran.stderr.bytes, 300)),
        };
        self.files.first().map(|file| about(&file.path, rule, &why))
    }

    fn errand(&self, check: &Check, key: &Key) -> Result<Errand, VerifyError> {
        let (program, args) = check.command(&self.words())?;
        let mut errand = Errand::new(program, AT, vec![self.bench.dir().to_owned()]).args(args);
        errand.env = check.env.clone().into_iter().collect();
        errand.shown.clone_from(&self.subject.tools.shown);
        match check.report {
            Report::Ruff => {}
            Report::Mypy => {
                // It cannot do without writing to what it knows; nobody sees what it wrote.
                errand.layers.insert(0, self.subject.tools.warm.clone());
                errand.keeps = Keeps::Briefly;
            }
            Report::Tagged => errand.stdin = key.bytes().to_vec(),
        }
        let time = Span::from_ms(check.seconds.saturating_mul(1_000));
        errand.limits = Limits {
            duration: Some(self.subject.most.map_or(time, |most| most.min(time))),
            processes: 32,
            captured: ByteSize::from_bytes(4 * MIB),
            disk: ByteSize::from_bytes(256 * MIB),
            files: 20_000,
            ..errand.limits
        };
        Ok(errand)
    }

    fn words(&self) -> Words {
        let tools = self.subject.tools;
        let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
        let (major, minor) = tools.version;
        let files: Vec<_> = self.files.iter().map(|file| file.path.as_str().to_owned()).collect();
        let is_test = |path: &&String| path.contains("/tests/");
        let tests: Vec<_> = files.iter().filter(is_test).cloned().collect();
        let words = BTreeMap::from([
            ("python", text(&tools.python)),
            ("ruff", text(&tools.ruff)),
            ("target", format!("py{major}{minor}")),
            ("gate", format!("{AT}/gate")),
            ("base", format!("{AT}/base")),
            ("skills", format!("{AT}/{SKILLS}")),
            ("cache", format!("{AT}/{}", tools::CACHE)),
            ("tests", tests.join(":")),
        ]);
        Words { words, files }
    }
}

fn cancelled() -> fluffy_kernel::LabError {
    fluffy_kernel::WorkshopError::Cancelled.into()
}

fn not_run(gate: Gate) -> Looked {
    let (summary, findings) = ("not run: policy".to_owned(), Vec::new());
    Looked { result: GateResult { gate, passed: false, summary, findings }, run: None }
}

/// A gate's result, with no more findings than are kept, in the order of the files.
fn settled(gate: Gate, mut findings: Vec<Finding>, passed: Option<usize>) -> GateResult {
    let place = |it: &Finding| -> (ProjectPath, Option<u32>) { (it.file.clone(), it.line) };
    findings.sort_by_key(place);
    let count = findings.len();
    findings.truncate(MAX_FINDINGS);
    let summary = match (count, passed) {
        (0, Some(1)) => "1 test passed".to_owned(),
        (0, Some(passed)) => format!("{passed} tests passed"),
        (0, None) => "nothing found".to_owned(),
        (1, _) => "1 finding".to_owned(),
        (count, _) => format!("{count} findings"),
    };
    GateResult { gate, passed: count == 0, summary, findings }
}

fn run(ran: &Errands) -> Run {
    Run {
        sandbox: ran.sandbox.clone(),
        ended: ran.end.to_string(),
        ms: u64::try_from(ran.wall.as_millis()).unwrap_or(u64::MAX),
        printed: tail(&ran.stderr.bytes, MAX_PRINTED),
    }
}

/// The end of what was printed, in words that a terminal may show.
fn tail(bytes: &[u8], most: usize) -> String {
    let from = bytes.len().saturating_sub(most);
    let text = String::from_utf8_lossy(bytes.get(from..).unwrap_or_default()).into_owned();
    Excerpt::new(text.trim(), most).to_string()
}
