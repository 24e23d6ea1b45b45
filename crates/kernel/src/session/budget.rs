//! What untested work has cost so far: coverage against the project's baseline, and the baseline itself.
//!
//! **Invariant.** Coverage that is not known pays for nothing: where the project has a baseline and coverage
//! cannot be measured, untested work is locked.
//!
//! **Invariant.** The baseline rises with work that was done tests first and measured as it is merged. It is a part of
//! that merge, asked for and recorded like all of it; nothing here lowers it.

use std::io::Read as _;

use fluffy_base::{Event as Told, Json, ProjectPath};
use fluffy_workflow::{Baseline, Budget, Commit, Debt, Event, Lines, Shortfall, Thresholds};
use serde_json::{Value, json};

use super::{Desk, KEEP_COVERAGE, Session, SessionError, failed};
use crate::files::{Found, Staged, StagedFiles};
use crate::workshop::Produced;
use crate::{Clerk, ToolError};

/// Where the project keeps its baseline.
pub(crate) const BASELINE: &str = ".fluffy/coverage-baseline.json";
/// A larger file is no baseline.
const MAX_BYTES: u64 = 1 << 20;

/// How coverage stands against the baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    /// In words.
    pub(crate) text: String,
    /// Nothing where it cannot be known.
    shortfall: Option<Shortfall>,
}

/// A run that measured coverage.
#[derive(Debug, Clone)]
pub(crate) struct Measurement {
    /// The changes that it ran with.
    files: StagedFiles,
    lines: Lines,
}

impl Account {
    fn unknown(why: &str) -> Self {
        Self { text: format!("coverage cannot be measured: {why}"), shortfall: None }
    }

    fn of(budget: &Budget, now: Lines) -> Self {
        let Some(points) = now.basis_points() else { return Self::unknown("no line counts") };
        let Ok(shortfall) = budget.shortfall(now, Thresholds::default()) else {
            return Self::unknown("no line counts");
        };
        let against = budget.baseline().map_or_else(String::new, |baseline| {
            format!(", the project's baseline {}", percent(baseline.basis_points()))
        });
        let means = match shortfall {
            Shortfall::None | Shortfall::Small(_) => "",
            Shortfall::Warned(_) => ": it has fallen by more than two points",
            Shortfall::Locking(_) => {
                ": it has fallen by more than five points, and untested work is locked until strict work \
                 has won it back"
            }
        };
        let text = format!("coverage is {}{against}{means}", percent(points));
        Self { text, shortfall: Some(shortfall) }
    }

    /// Whether more untested work can be afforded.
    fn debt(&self) -> Debt {
        match self.shortfall {
            Some(Shortfall::None | Shortfall::Small(_) | Shortfall::Warned(_)) => Debt::Within,
            Some(Shortfall::Locking(_)) | None => Debt::Exhausted,
        }
    }

    /// What is to be said wherever the work is spoken of.
    pub(crate) fn warning(&self) -> Option<&str> {
        match self.shortfall {
            Some(Shortfall::Warned(_) | Shortfall::Locking(_)) => Some(&self.text),
            Some(Shortfall::None | Shortfall::Small(_)) | None => None,
        }
    }

    fn level(&self) -> &'static str {
        match self.shortfall {
            Some(Shortfall::None) => "kept",
            Some(Shortfall::Small(_)) => "lower",
            Some(Shortfall::Warned(_)) => "warned",
            Some(Shortfall::Locking(_)) | None => "locked",
        }
    }
}

impl Measurement {
    /// Whether it is one of this very work. The baseline itself changes nothing that could be measured.
    fn is_of(&self, files: &StagedFiles) -> bool {
        fn work(files: &StagedFiles) -> impl Iterator<Item = (&ProjectPath, Staged)> {
            files.iter().filter(|(path, _)| path.as_str() != BASELINE)
        }
        work(&self.files).eq(work(files))
    }
}

impl Session {
    /// Measures what untested work has cost, where the project keeps account of it.
    pub(super) fn measure_debt(&self) -> Result<(), SessionError> {
        let budget = self.desk.budget().map_err(SessionError::Mode)?;
        if budget.baseline().is_none() {
            return Ok(());
        }
        let account = self.account_now(&budget);
        let debt = account.debt();
        self.desk.change().set(|inside| inside.progress.debt = Some(account));
        self.desk.happened(&*self.kernel, Event::DebtMeasured(debt))?;
        Ok(())
    }

    /// How the coverage of this work stands against the project's baseline, measured now.
    pub fn budget(&self) -> Result<String, SessionError> {
        let budget = self.desk.budget().map_err(SessionError::Mode)?;
        let account = self.account_now(&budget);
        Ok(match budget.baseline() {
            Some(_) => account.text,
            None => format!("{}; the project keeps no baseline (`{BASELINE}`)", account.text),
        })
    }

    fn account_now(&self, budget: &Budget) -> Account {
        match self.desk.coverage() {
            Ok(now) => self.desk.account(budget, now),
            Err(why) => Account::unknown(&why),
        }
    }

    /// What is known of the debt, in words.
    pub(super) fn debt(&self) -> Option<String> {
        self.desk.look().progress.debt.as_ref().map(|account| account.text.clone())
    }

    /// Sees to it that the merge holds the baseline that belongs to it: a higher one where this very work was measured
    /// and done tests first, and otherwise the project's own.
    pub(super) fn settle_baseline(&self) -> Result<(), String> {
        let due = self.due_baseline();
        if self.desk.stages(due.as_ref()) {
            return Ok(());
        }
        let mut params = json!({ "path": BASELINE });
        if let (Some((_, Lines { covered, total })), Value::Object(members)) = (due, &mut params) {
            members.insert("covered".to_owned(), covered.into());
            members.insert("total".to_owned(), total.into());
        }
        let params = Json::new(params).map_err(|error| error.to_string())?;
        self.expected.set(Some(params.clone()));
        let receipt = self.submit(&self.own_id(), KEEP_COVERAGE, params);
        self.expected.set(None);
        // The work is merged without it where a rule has something against it, but never with another one.
        if self.desk.stages(due.as_ref()) || self.desk.stages(None) {
            return Ok(());
        }
        let why = receipt.error.unwrap_or_else(|| "it was refused".to_owned());
        Err(format!("`{BASELINE}` cannot be left as it is: {why}"))
    }

    /// The higher baseline that this work makes, if it makes one.
    fn due_baseline(&self) -> Option<(Baseline, Lines)> {
        let lines = {
            let inside = self.desk.look();
            let measured = inside.progress.measured.as_ref();
            let measured = measured.filter(|it| it.is_of(&inside.staging.files()))?;
            let tested = inside.workflow.mode().is_test_first();
            (tested && !inside.workflow.is_unverified()).then_some(measured.lines)?
        };
        let budget = self.desk.budget().ok()?;
        let (after, _) = budget.after(Commit::Strict, lines, Thresholds::default()).ok()?;
        let points = |budget: &Budget| budget.baseline().map(Baseline::basis_points);
        let raised = after.baseline().filter(|_| points(&after) > points(&budget));
        raised.map(|baseline| (*baseline, lines))
    }

    /// What of this work's coverage a person who looks at it should know.
    pub(super) fn coverage_warning(&self) -> Option<String> {
        let lines = {
            let inside = self.desk.look();
            let measured = inside.progress.measured.as_ref();
            measured.filter(|it| it.is_of(&inside.staging.files()))?.lines
        };
        let account = Account::of(&self.desk.budget().ok()?, lines);
        account.warning().map(str::to_owned)
    }
}

impl Desk {
    /// What coverage is held against, as the project has it.
    pub(crate) fn budget(&self) -> Result<Budget, String> {
        let unusable =
            |error: &dyn std::fmt::Display| format!("`{BASELINE}` cannot be used: {error}");
        let path = ProjectPath::parse(BASELINE).map_err(|error| unusable(&error))?;
        let file = match self.tree.look(&path) {
            Ok(None) => return Ok(Budget::new(None, false)),
            Ok(Some(_)) => self.tree.file(&path).map_err(|error| unusable(&error))?,
            Err(error) => return Err(unusable(&error)),
        };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|error| unusable(&error))?;
        let baseline = Baseline::parse(&bytes).map_err(|error| unusable(&error))?;
        Ok(Budget::new(Some(baseline), false))
    }

    /// Takes note of what a run with these changes measured; what is to be said of it.
    pub(crate) fn measured(&self, files: StagedFiles, now: Result<Lines, String>) -> String {
        let (lines, account) = match (now, self.budget()) {
            (Ok(lines), Ok(budget)) => (Some(lines), self.account(&budget, lines)),
            (Err(why), _) | (Ok(_), Err(why)) => (None, Account::unknown(&why)),
        };
        let text = account.text.clone();
        self.change().set(|inside| {
            inside.progress.measured = lines.map(|lines| Measurement { files, lines });
            inside.progress.debt = Some(account);
        });
        text
    }

    /// How coverage stands, told to whoever watches.
    fn account(&self, budget: &Budget, lines: Lines) -> Account {
        let account = Account::of(budget, lines);
        self.observer.notice(Told::CoverageMeasured {
            covered: lines.covered,
            total: lines.total,
            baseline: budget.baseline().map(Baseline::basis_points),
            level: account.level().to_owned(),
            text: account.text.clone(),
        });
        account
    }

    /// Whether this baseline is what would be merged; none stands for the project's own.
    fn stages(&self, baseline: Option<&(Baseline, Lines)>) -> bool {
        let inside = self.look();
        let Ok(path) = ProjectPath::parse(BASELINE) else { return false };
        match (inside.staging.files().get(&path), baseline) {
            (None, None) => true,
            (Some(Staged::File(stored)), Some((baseline, _))) => {
                stored.digest == fluffy_base::Digest::of(baseline.text().as_bytes())
            }
            (Some(_), None) | (None | Some(Staged::Deleted), Some(_)) => false,
        }
    }

    /// Stages the baseline that these lines make, or what the project has.
    pub(crate) fn keep_coverage(
        &self,
        clerk: &dyn Clerk,
        lines: Option<Lines>,
    ) -> Result<(), ToolError> {
        let changing = self.change();
        let path = ProjectPath::parse(BASELINE).map_err(|error| failed(&error))?;
        let (content, executable) = match lines {
            Some(lines) => {
                let baseline = Baseline::of(lines).map_err(|error| failed(&error))?;
                (Some(baseline.text().into_bytes()), false)
            }
            None => self.own_baseline(&path)?,
        };
        let produced = match content {
            None => Produced::Nothing(path),
            Some(bytes) => {
                let blobs = self.look().staging.view().blobs;
                let stored = blobs.put(&bytes, executable).map_err(|error| failed(&error))?;
                Produced::File(path, stored)
            }
        };
        let prepared = self.look().staging.prepare(clerk.request_id(), &[produced]);
        if let Some(step) = prepared.map_err(|error| failed(&error))? {
            changing.apply(clerk, Event::CoverageKept(lines), Some(step))?;
        }
        Ok(())
    }

    /// The file as the project has it, with whether it can be executed.
    fn own_baseline(&self, path: &ProjectPath) -> Result<(Option<Vec<u8>>, bool), ToolError> {
        let executable = match self.tree.look(path).map_err(|error| failed(&error))? {
            None => return Ok((None, false)),
            Some(Found::File { executable, .. }) => executable,
            Some(Found::Directory | Found::Link | Found::Special) => false,
        };
        let file = self.tree.file(path).map_err(|error| failed(&error))?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
        Ok((Some(bytes), executable))
    }
}

fn percent(points: u32) -> String {
    format!("{}.{:02} %", points / 100, points % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(covered: u64, total: u64) -> Account {
        let baseline = Baseline::parse(br#"{"version":1,"covered":90,"total":100}"#).unwrap();
        Account::of(&Budget::new(Some(baseline), false), Lines { covered, total })
    }

    #[test]
    fn a_drop_of_more_than_five_points_locks_and_a_smaller_one_does_not() {
        let of = |covered| account(covered, 100).debt();
        assert_eq!((of(90), of(85), of(84)), (Debt::Within, Debt::Within, Debt::Exhausted));
        assert_eq!(account(0, 0).debt(), Debt::Exhausted);
        assert_eq!(Account::unknown("").debt(), Debt::Exhausted);
    }

    #[test]
    fn a_drop_of_more_than_two_points_is_warned_of_in_words() {
        assert_eq!(account(95, 100).warning(), None);
        assert_eq!(account(88, 100).warning(), None);
        let warned = account(87, 100);
        assert_eq!((warned.level(), warned.debt()), ("warned", Debt::Within));
        let text = "coverage is 87.00 %, the project's baseline 90.00 %: it has fallen by more than two points";
        assert_eq!(warned.warning(), Some(text));
        assert!(account(84, 100).warning().unwrap().contains("locked"));
        let first = Account::of(&Budget::new(None, false), Lines { covered: 1, total: 3 });
        assert_eq!((first.text.as_str(), first.warning()), ("coverage is 33.33 %", None));
    }

    #[test]
    fn a_measurement_is_of_the_files_it_was_made_with_and_of_no_others() {
        let path = |text: &str| ProjectPath::parse(text).unwrap();
        let files = |paths: &[&str]| {
            let staged = paths.iter().map(|text| (path(text), Staged::Deleted));
            StagedFiles(std::sync::Arc::new(staged.collect()))
        };
        let measurement =
            Measurement { files: files(&["a"]), lines: Lines { covered: 1, total: 1 } };
        assert!(measurement.is_of(&files(&["a"])));
        assert!(measurement.is_of(&files(&["a", BASELINE])));
        assert!(!measurement.is_of(&files(&["a", "b"])));
        assert!(!measurement.is_of(&files(&[])));
    }
}
