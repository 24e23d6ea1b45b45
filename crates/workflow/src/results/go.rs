//! The stream of `go test -json`.
//!
//! Since Go 1.20 the test binary marks its own lines, so that what a test prints cannot pass for a result.
//! Before that it can; so a result needs its test to have been started, no test has two, and every package
//! has exactly one. The print of `--- PASS: TestX` is then a contradiction and not a pass.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Places, Report, ResultsError, Run, TestResult, failed, tail};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    #[serde(default)]
    package: String,
    test: Option<String>,
    #[serde(default)]
    output: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Pass,
    Fail,
    Skip,
}

#[derive(Default)]
struct Package {
    tests: BTreeMap<String, Test>,
    output: String,
    end: Option<End>,
}

#[derive(Default)]
struct Test {
    output: String,
    end: Option<End>,
}

/// More of a test's output than this is never shown.
const KEPT_OUTPUT: usize = 8192;

pub(super) fn read(
    run: &Run<'_>,
    module: &str,
    places: &Places<'_>,
) -> Result<Report, ResultsError> {
    let stdout = String::from_utf8_lossy(run.stdout);
    let mut packages: BTreeMap<String, Package> = BTreeMap::new();
    let mut report = Report::default();
    let mut build_output = String::new();
    let mut build_failed = false;
    for line in stdout.lines() {
        if !line.starts_with('{') {
            build_failed |= is_not_built(line);
            continue;
        }
        let event: Event = serde_json::from_str(line).map_err(ResultsError::malformed)?;
        match event.action.as_str() {
            "build-output" => build_output.push_str(&event.output),
            "build-fail" => build_failed = true,
            _ => enter(packages.entry(event.package.clone()).or_default(), event)?,
        }
    }
    build_failed |= packages.is_empty() && run.exit != Some(0);
    if build_failed {
        let errors = String::from_utf8_lossy(run.stderr);
        read_errors(&format!("{build_output}{errors}"), module, places, &mut report);
    }
    for (name, package) in packages {
        settle(&directory(&name, module, places), package, &mut report)?;
    }
    Ok(report)
}

fn enter(package: &mut Package, event: Event) -> Result<(), ResultsError> {
    let end = match event.action.as_str() {
        "pass" => End::Pass,
        "fail" => End::Fail,
        "skip" => End::Skip,
        "run" => {
            let name = event.test.ok_or_else(|| ResultsError::malformed("a test has no name"))?;
            if package.tests.insert(name, Test::default()).is_some() {
                return Err(ResultsError::contradiction("a test was started twice"));
            }
            return Ok(());
        }
        "output" => {
            let test = event.test.and_then(|name| package.tests.get_mut(&name));
            let output = test.map_or(&mut package.output, |test| &mut test.output);
            if output.len() < KEPT_OUTPUT {
                output.push_str(&event.output);
            }
            return Ok(());
        }
        // Starting, pausing, and whatever later versions tell: no result.
        _ => return Ok(()),
    };
    let slot = match &event.test {
        None => &mut package.end,
        Some(name) => match package.tests.get_mut(name) {
            Some(test) => &mut test.end,
            None => {
                let why = format!("test `{name}` has a result and was never started");
                return Err(ResultsError::contradiction(why));
            }
        },
    };
    if slot.replace(end).is_some() {
        return Err(ResultsError::contradiction("a test or package has two results"));
    }
    Ok(())
}

fn settle(place: &str, package: Package, report: &mut Report) -> Result<(), ResultsError> {
    let mut outcomes = Vec::new();
    let fine = matches!(package.end, Some(End::Pass | End::Skip));
    for (name, test) in &package.tests {
        let outcome = match test.end {
            Some(End::Pass) => TestResult::Passed,
            Some(End::Skip) => TestResult::Skipped,
            Some(End::Fail) => failed(&test.output),
            None => failed(&format!("did not finish: {}", test.output)),
        };
        outcomes.push(outcome.clone());
        report.add(place, name, outcome)?;
    }
    let any_failed = outcomes.iter().any(|it| matches!(it, TestResult::Failed { .. }));
    if fine && any_failed {
        return Err(ResultsError::contradiction(unfinished(&package)));
    }
    // Before Go 1.24 such a package has no event at all.
    let not_built = package.tests.is_empty() && package.output.lines().any(is_not_built);
    if !fine && !any_failed && !not_built {
        report.add(place, "(package)", failed(&package.output))?;
    } else if fine {
        report.add_end(place, "(package)", outcomes.iter());
    }
    Ok(())
}

/// `FAIL`, a tab, `example.com/project/sub [build failed]`
fn is_not_built(line: &str) -> bool {
    let failed = line.ends_with("[build failed]") || line.ends_with("[setup failed]");
    failed && line.starts_with("FAIL\t")
}

/// Why a package that passed is not believed.
fn unfinished(package: &Package) -> String {
    let silent = package.tests.iter().find(|(_, test)| test.end.is_none());
    match silent {
        Some((name, _)) => format!(
            "a package passed and its test `{name}` has no result (before Go 1.20, a print without a line end hides it)"
        ),
        None => "a package passed and a test in it did not".to_owned(),
    }
}

/// `example.com/project/sub` of the module `example.com/project` is the directory `sub`.
fn directory(package: &str, module: &str, places: &Places<'_>) -> String {
    match package.strip_prefix(module) {
        Some("") => places.directory(""),
        Some(rest) if rest.starts_with('/') => places.directory(rest.trim_start_matches('/')),
        _ => package.to_owned(),
    }
}

/// Whether a line tells of a module that is not installed, and is not the project's own.
fn is_missing_module(line: &str, module: &str) -> bool {
    let told = [
        "no required module provides package",
        "cannot find module providing package",
        "missing go.sum entry",
        "disabled by GOPROXY=off",
    ];
    let own = format!("package {module}/");
    told.iter().any(|words| line.contains(words)) && !line.contains(&own)
}

/// Lines such as `sub/sub_test.go:3:32: undefined: missing`.
fn read_errors(text: &str, module: &str, places: &Places<'_>, report: &mut Report) {
    report.add_build(None, &tail(text.as_bytes()));
    for line in text.lines().filter(|line| !is_missing_module(line, module)) {
        let mut parts = line.split(':');
        let (file, number) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if file.ends_with(".go") && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
        {
            report.add_build(places.file(file), "");
        }
    }
}
