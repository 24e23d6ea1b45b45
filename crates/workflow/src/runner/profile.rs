//! Test runners that are data: how each is called, where its report lies, and how it reports code that cannot be built.
//!
//! A new runner is a row of [`PROFILES`], and a rule in `runner::customs` that says which project has it.
//!
//! **Invariant.** A report lies in the run's own directory, or in a directory of built files that is hidden from the
//! run, so that every report was written by this run.

use super::{Pattern, Support};

/// Stands in an argument for the directory of reports.
const REPORTS: &str = "{reports}";

/// A runner of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// `unittest` of Python.
    Unittest,
    /// The tests of a Django project.
    Django,
    /// Maven with Surefire.
    Maven,
    /// Gradle.
    Gradle,
    /// CMake with CTest.
    Ctest,
    /// RSpec.
    Rspec,
    /// minitest.
    Minitest,
    /// PHPUnit.
    PhpUnit,
    /// `dotnet test`.
    Dotnet,
}

/// The form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportFormat {
    Junit,
    Rspec,
    /// The results of Visual Studio's test platform.
    Trx,
}

/// Where reports lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportPlace {
    /// One file in the directory of reports.
    File(&'static str),
    /// Any number of files, by the directories above them and the ends of their names.
    Scattered { directory: &'static str, endings: &'static [&'static str] },
}

/// How the tests to run are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternOption {
    /// Not at all: all tests run.
    None,
    /// An option before a regular expression.
    Expression(&'static str),
    /// An option before a part of a name between two stars, once for each alternative.
    Stars(&'static str),
    /// The filter language of `dotnet test`.
    DotnetFilter,
}

/// One runner.
pub(crate) struct RunnerProfile {
    pub(crate) profile: Profile,
    /// What people call it.
    pub(crate) name: &'static str,
    argv: &'static [&'static str],
    pub(crate) format: ReportFormat,
    pub(crate) place: ReportPlace,
    pattern: PatternOption,
    support: Option<Support>,
    /// A regular expression for a line of a failed build; its group `file` is the cause.
    pub(crate) build_error: Option<&'static str>,
    /// Directories of built files, by name, that the run must not see: whoever plants one would replace the tests.
    pub(crate) built: &'static [&'static str],
    /// What to do where it is not installed.
    pub(crate) install: &'static str,
}

const PYTHON_RUNNER: Support =
    Support { name: "python_runner.py", text: include_str!("support/python_runner.py") };
const MINITEST_RUNNER: Support =
    Support { name: "minitest_runner.rb", text: include_str!("support/minitest_runner.rb") };
const CTEST_RUNNER: Support =
    Support { name: "ctest_runner.cmake", text: include_str!("support/ctest_runner.cmake") };

const JUNIT_FILE: ReportPlace = ReportPlace::File("report.xml");

const PROFILES: &[RunnerProfile] = &[
    RunnerProfile {
        profile: Profile::Unittest,
        name: "unittest",
        argv: &["python3", "{reports}/python_runner.py", "unittest", "{reports}/report.xml"],
        format: ReportFormat::Junit,
        place: JUNIT_FILE,
        pattern: PatternOption::Expression("--pattern="),
        support: Some(PYTHON_RUNNER),
        build_error: None,
        built: &[],
        install: "a person has to install Python 3.8 or later",
    },
    RunnerProfile {
        profile: Profile::Django,
        name: "Django",
        argv: &["python3", "{reports}/python_runner.py", "django", "{reports}/report.xml"],
        format: ReportFormat::Junit,
        place: JUNIT_FILE,
        pattern: PatternOption::Expression("--pattern="),
        support: Some(PYTHON_RUNNER),
        build_error: None,
        built: &[],
        install: "install the package `django` with `deps.install`",
    },
    RunnerProfile {
        profile: Profile::Maven,
        name: "Maven",
        argv: &["mvn", "-o", "-B", "-q", "--fail-at-end", "-DtrimStackTrace=false", "test"],
        format: ReportFormat::Junit,
        place: ReportPlace::Scattered { directory: "target/surefire-reports", endings: &[".xml"] },
        pattern: PatternOption::None,
        support: None,
        build_error: Some(r"\[ERROR\] (?<file>/[^:\s]+\.(?:java|kt|scala|groovy)):\[\d+,\d+\]"),
        built: &["target"],
        install: "a person has to install a JDK and Maven; install packages with `deps.install`",
    },
    RunnerProfile {
        profile: Profile::Gradle,
        name: "Gradle",
        argv: &[
            "gradle",
            "--offline",
            "--no-daemon",
            "--continue",
            "--quiet",
            "--gradle-user-home={reports}/gradle",
            "--project-cache-dir={reports}/cache",
            "test",
        ],
        format: ReportFormat::Junit,
        place: ReportPlace::Scattered { directory: "build/test-results/test", endings: &[".xml"] },
        pattern: PatternOption::Stars("--tests="),
        support: None,
        build_error: Some(
            r"(?m)^(?:e: )?(?:file://)?(?<file>/[^:\s]+\.(?:java|kt|kts|groovy|scala)):(?: \(?)?\d+.*",
        ),
        built: &["build"],
        install: "a person has to install a JDK and Gradle; install packages with `deps.install`",
    },
    RunnerProfile {
        profile: Profile::Ctest,
        name: "CTest",
        argv: &["cmake", "-DREPORTS={reports}", "-P", "{reports}/ctest_runner.cmake"],
        format: ReportFormat::Junit,
        place: JUNIT_FILE,
        pattern: PatternOption::Expression("-DPATTERN="),
        support: Some(CTEST_RUNNER),
        build_error: Some(C_ERRORS),
        built: &[],
        install: "a person has to install CMake and a compiler",
    },
    RunnerProfile {
        profile: Profile::Rspec,
        name: "RSpec",
        argv: &["rspec", "--no-color", "--format=json", "--out={reports}/report.json"],
        format: ReportFormat::Rspec,
        place: ReportPlace::File("report.json"),
        pattern: PatternOption::Expression("--example-matches="),
        support: None,
        build_error: None,
        built: &[],
        install: "install the package `rspec` with `deps.install`",
    },
    RunnerProfile {
        profile: Profile::Minitest,
        name: "minitest",
        argv: &["ruby", "{reports}/minitest_runner.rb", "{reports}/report.xml"],
        format: ReportFormat::Junit,
        place: JUNIT_FILE,
        pattern: PatternOption::Expression("--pattern="),
        support: Some(MINITEST_RUNNER),
        build_error: None,
        built: &[],
        install: "install the package `minitest` with `deps.install`",
    },
    RunnerProfile {
        profile: Profile::PhpUnit,
        name: "PHPUnit",
        argv: &["phpunit", "--colors=never", "--log-junit={reports}/report.xml"],
        format: ReportFormat::Junit,
        place: JUNIT_FILE,
        pattern: PatternOption::Expression("--filter="),
        support: None,
        build_error: Some(r"(?: in |#\d+ )(?<file>/[^\s:()]+\.php)(?::\d+|\(\d+\)| on line \d+)"),
        built: &[],
        install: "install the package `phpunit/phpunit` with `deps.install`",
    },
    RunnerProfile {
        profile: Profile::Dotnet,
        name: "dotnet test",
        argv: &[
            "dotnet",
            "test",
            "--nologo",
            "--logger=trx",
            "--results-directory={reports}/results",
        ],
        format: ReportFormat::Trx,
        place: ReportPlace::Scattered { directory: "results", endings: &[".trx"] },
        pattern: PatternOption::DotnetFilter,
        support: None,
        build_error: Some(r"(?m)^\s*(?<file>/[^(\n]+\.(?:cs|fs|vb))\(\d+,\d+\): error"),
        built: &["bin", "obj"],
        install: "a person has to install the .NET SDK; install packages with `deps.install`",
    },
];

/// Errors of compilers for C and C++, and of linkers, which name the object of a file.
const C_ERRORS: &str = r"(?m)(?:^(?<file>/?[^:\s]+\.(?:c|cc|cpp|cxx|h|hpp)):\d+(?::\d+)?: (?:fatal )?error|CMakeFiles/[^/\s]+\.dir/(?<object>[^:\s]+)\.o:(?:.*undefined reference| in function))";

impl Profile {
    pub(crate) fn data(self) -> Option<&'static RunnerProfile> {
        PROFILES.iter().find(|row| row.profile == self)
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        self.data().map_or("test runner", |row| row.name)
    }

    /// What to do where it is not installed.
    pub fn install_hint(self) -> &'static str {
        self.data().map_or("", |row| row.install)
    }
}

impl RunnerProfile {
    /// The command for all tests, or for those that match.
    pub(super) fn argv(
        &self,
        extra: &[String],
        pattern: Option<&Pattern>,
        reports: &str,
    ) -> Vec<String> {
        let words = self.argv.iter().map(|word| word.replace(REPORTS, reports));
        let mut argv: Vec<String> = words.collect();
        if let Some(pattern) = pattern {
            let chosen = self.chosen(pattern);
            // What comes after `-P` belongs to the script.
            let at = argv.iter().position(|word| word == "-P").unwrap_or(argv.len());
            argv.splice(at..at, chosen);
        }
        argv.extend(extra.iter().cloned());
        argv
    }

    fn chosen(&self, pattern: &Pattern) -> Vec<String> {
        let parts = || pattern.as_str().split('|').filter(|part| !part.is_empty());
        let plain = |part: &str| -> String {
            let is_name = |char: &char| char.is_alphanumeric() || "._".contains(*char);
            part.chars().filter(is_name).collect()
        };
        match self.pattern {
            PatternOption::None => Vec::new(),
            PatternOption::Expression(option) => vec![format!("{option}{}", pattern.expression())],
            PatternOption::Stars(option) => {
                parts().map(|part| format!("{option}*{}*", plain(part))).collect()
            }
            PatternOption::DotnetFilter => {
                let names = parts().map(|part| format!("FullyQualifiedName~{}", plain(part)));
                vec![format!("--filter={}", names.collect::<Vec<_>>().join("|"))]
            }
        }
    }

    pub(super) fn support(&self) -> Option<Support> {
        self.support
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Profile; 9] = [
        Profile::Unittest,
        Profile::Django,
        Profile::Maven,
        Profile::Gradle,
        Profile::Ctest,
        Profile::Rspec,
        Profile::Minitest,
        Profile::PhpUnit,
        Profile::Dotnet,
    ];

    #[test]
    fn every_profile_has_one_complete_row() {
        assert_eq!(PROFILES.len(), ALL.len());
        for profile in ALL {
            let row = profile.data().unwrap();
            assert!(!row.install.is_empty() && !row.name.is_empty());
            if let Some(text) = row.build_error {
                assert!(regex::Regex::new(text).unwrap().capture_names().flatten().count() > 0);
            }
        }
    }

    #[test]
    fn pattern_is_one_argument_of_every_profile() {
        let pattern = Pattern::parse("a' ; rm -rf /|$(b)").unwrap();
        for profile in ALL {
            let row = profile.data().unwrap();
            let (all, some) = (row.argv(&[], None, "/r"), row.argv(&[], Some(&pattern), "/r"));
            let added: Vec<_> = some.iter().filter(|word| !all.contains(word)).collect();
            assert!(added.iter().all(|word| word.starts_with('-')), "{added:?}");
            assert_eq!(some.len(), all.len() + added.len());
        }
    }
}
