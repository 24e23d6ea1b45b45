//! What untested work has cost so far: coverage against the project's baseline.
//!
//! **Invariant.** Coverage that is not known pays for nothing: where the project has a baseline and coverage
//! cannot be measured, untested work is locked.

use std::io::Read as _;

use fluffy_base::ProjectPath;
use fluffy_workflow::{Baseline, Debt, Event, Lines, Thresholds};

use super::{Session, SessionError};

/// Where the project keeps its baseline.
const BASELINE: &str = ".fluffy/coverage-baseline.json";
/// A larger file is no baseline.
const MAX_BYTES: u64 = 1 << 20;

impl Session {
    /// Measures what untested work has cost, where the project keeps account of it.
    pub(super) fn measure_debt(&self) -> Result<(), SessionError> {
        let Some(baseline) = self.baseline()? else { return Ok(()) };
        let (debt, told) = match self.desk.coverage() {
            Ok(now) => judged(&baseline, now),
            Err(why) => (Debt::Exhausted, format!("coverage cannot be measured: {why}")),
        };
        self.desk.change().set(|inside| inside.progress.debt = Some(told));
        self.desk.happened(&*self.kernel, Event::DebtMeasured(debt))?;
        Ok(())
    }

    /// What is known of the debt, in words.
    pub(super) fn debt(&self) -> Option<String> {
        self.desk.look().progress.debt.clone()
    }

    fn baseline(&self) -> Result<Option<Baseline>, SessionError> {
        let unusable = |error: &dyn std::fmt::Display| {
            SessionError::Mode(format!("`{BASELINE}` cannot be used: {error}"))
        };
        let path = ProjectPath::parse(BASELINE).map_err(|error| unusable(&error))?;
        let file = match self.desk.tree.look(&path) {
            Ok(None) => return Ok(None),
            Ok(Some(_)) => self.desk.tree.file(&path).map_err(|error| unusable(&error))?,
            Err(error) => return Err(unusable(&error)),
        };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|error| unusable(&error))?;
        Baseline::parse(&bytes).map(Some).map_err(|error| unusable(&error))
    }
}

fn judged(baseline: &Baseline, now: Lines) -> (Debt, String) {
    let before = baseline.basis_points();
    let Some(now) = now.basis_points() else {
        return (Debt::Exhausted, "coverage cannot be measured: no line counts".to_owned());
    };
    let drop = before.saturating_sub(now);
    let percent = |points: u32| format!("{}.{:02} %", points / 100, points % 100);
    let told = format!("coverage is {}, the baseline {}", percent(now), percent(before));
    let locked = drop > Thresholds::default().lock;
    (if locked { Debt::Exhausted } else { Debt::Within }, told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drop_of_more_than_five_points_locks_and_a_smaller_one_does_not() {
        let baseline = Baseline::parse(br#"{"version":1,"covered":90,"total":100}"#).unwrap();
        let of = |covered| judged(&baseline, Lines { covered, total: 100 }).0;
        assert_eq!((of(90), of(85), of(84)), (Debt::Within, Debt::Within, Debt::Exhausted));
        assert_eq!(judged(&baseline, Lines { covered: 0, total: 0 }).0, Debt::Exhausted);
    }
}
