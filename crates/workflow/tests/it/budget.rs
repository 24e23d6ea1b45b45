//! The budget of untested code.

use fluffy_workflow::{
    Baseline, BaselineError, Budget, Commit, Coverage, CoverageFormat, Lines, Shortfall, Thresholds,
};

use crate::fixtures::ROOT;

/// So many of a hundred lines.
fn covered(lines: u32) -> Lines {
    of(lines, 100)
}

fn of(covered: u32, total: u32) -> Lines {
    let text = format!(r#"{{"a.js":{{"lines":{{"total":{total},"covered":{covered}}}}}}}"#);
    let read = Coverage::parse(CoverageFormat::IstanbulSummary, text.as_bytes(), ROOT, None);
    read.unwrap().total().unwrap()
}

fn budget(lines: u32) -> Budget {
    Budget::new(Some(Baseline::of(covered(lines)).unwrap()), false)
}

fn shortfall(from: u32, to: u32) -> Shortfall {
    budget(from).shortfall(covered(to), Thresholds::default()).unwrap()
}

fn after(budget: Budget, commit: Commit, lines: u32) -> Budget {
    budget.after(commit, covered(lines), Thresholds::default()).unwrap().0
}

#[test]
fn a_drop_over_two_points_warns_and_one_over_five_locks() {
    assert_eq!(shortfall(80, 80), Shortfall::None);
    assert_eq!(shortfall(80, 90), Shortfall::None);
    assert_eq!(shortfall(80, 78), Shortfall::Small(200));
    assert_eq!(shortfall(80, 77), Shortfall::Warned(300));
    assert_eq!(shortfall(80, 75), Shortfall::Warned(500));
    assert_eq!(shortfall(80, 74), Shortfall::Locking(600));
    let slightly_more = budget(80).shortfall(of(7799, 10_000), Thresholds::default()).unwrap();
    assert_eq!(slightly_more, Shortfall::Warned(201));
}

#[test]
fn exploring_locks_itself_and_only_strict_commits_that_restore_coverage_unlock() {
    let locked = after(budget(80), Commit::Explore, 70);
    assert!(locked.is_locked());
    assert!(after(locked, Commit::Explore, 90).is_locked());
    assert!(after(locked, Commit::Strict, 79).is_locked());
    let open = after(locked, Commit::Strict, 80);
    assert!(!open.is_locked());
}

#[test]
fn the_baseline_rises_with_strict_commits_and_never_falls() {
    let points = |budget: Budget| budget.baseline().unwrap().basis_points();
    assert_eq!(points(after(budget(80), Commit::Strict, 85)), 8500);
    assert_eq!(points(after(budget(80), Commit::Explore, 85)), 8000);
    let mut eroded = budget(80);
    for lines in (60..80).rev() {
        eroded = after(eroded, Commit::Strict, lines);
        assert_eq!(points(eroded), 8000);
    }
    assert!(eroded.is_locked());
}

#[test]
fn the_first_strict_commit_makes_the_baseline() {
    let none = Budget::new(None, false);
    assert!(after(none, Commit::Explore, 10).baseline().is_none());
    assert_eq!(after(none, Commit::Strict, 10).baseline().unwrap().basis_points(), 1000);
}

#[test]
fn a_baseline_file_reads_back_and_nothing_else_is_read() {
    let baseline = Baseline::of(covered(80)).unwrap();
    assert_eq!(Baseline::parse(baseline.text().as_bytes()).unwrap(), baseline);
    let malformed = |text: &str| {
        let found = Baseline::parse(text.as_bytes());
        assert!(matches!(found, Err(BaselineError::Malformed(_))), "{text}");
    };
    malformed(r#"{"version":1,"covered":1,"total":2,"locked":false}"#);
    malformed(r#"{"version":1,"covered":0.5,"total":2}"#);
    malformed(r#"{"version":1,"covered":-1,"total":2}"#);
    malformed("");
    let parse = |text: &str| Baseline::parse(text.as_bytes());
    let version = parse(r#"{"version":2,"covered":1,"total":2}"#);
    assert!(matches!(version, Err(BaselineError::Version(2))));
    for text in [r#"{"version":1,"covered":3,"total":2}"#, r#"{"version":1,"covered":0,"total":0}"#]
    {
        assert!(matches!(parse(text), Err(BaselineError::Impossible { .. })), "{text}");
    }
}
