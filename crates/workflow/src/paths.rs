//! Which files are tests: the conventions of languages, as data.
//!
//! What decides how tests run, or what they compare with (a runner's configuration, snapshots, files
//! beneath a directory of tests), is a test as well: it would otherwise be a way to make a frozen test
//! say something else.
//!
//! Code that is hidden beneath `tests/` gains nothing: it is a test file, written before code may be
//! and frozen while code is, and whether the work is done is decided by which tests were red and pass.
//!
//! **Invariant.** The exact name makes a file a test. A name that only a careless disk would take for a
//! test's is [`PathKind::Lookalike`], and is written neither with the tests nor with the code.

use fluffy_base::ProjectPath;
use fluffy_policy::Glob;
use serde::{Deserialize, Serialize};

/// What a file is to the workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathKind {
    /// A test, or what tests depend on.
    Test,
    /// Named as a test but for its case or its spelling.
    Lookalike,
    /// Code. Whatever is not known to be something else.
    Source,
    /// A document, a setting or an asset.
    Other,
    /// What a package manager puts there, runners of tests among it, or what stands in for a runner.
    Installed,
}

/// Which files are tests, in any language, and in this project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conventions {
    added: Vec<Glob>,
}

/// How a language tells its tests.
struct Convention {
    /// Endings of its files.
    endings: &'static [&'static str],
    /// Beginning and end of a test's name, before the ending.
    stems: &'static [(&'static str, &'static str)],
    /// Whole names, before the ending.
    names: &'static [&'static str],
    /// Directories of tests, by one component or several.
    directories: &'static [&'static str],
    /// Directories in which names and those above mean nothing.
    sources: &'static [&'static str],
}

/// Directories of tests in any language, for files that are of none.
const DIRECTORIES: &[&str] =
    &["tests", "test", "__tests__", "__mocks__", "__snapshots__", "spec", "testdata", "src/test"];

const LANGUAGES: &[Convention] = &[
    // A module of unit tests below `src` is compiled with the code around it.
    Convention {
        endings: &["rs"],
        stems: &[],
        names: &[],
        directories: &["tests"],
        sources: &["src"],
    },
    Convention {
        endings: &["py", "pyi"],
        stems: &[("test_", ""), ("", "_test")],
        // The second is Django's.
        names: &["test", "tests"],
        directories: &["tests", "test"],
        sources: &[],
    },
    Convention {
        endings: &["js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"],
        // The first are jest's and vitest's, the others node's own.
        stems: &[
            ("", ".test"),
            ("", ".spec"),
            ("", ".test.d"),
            ("", ".spec.d"),
            ("", "-test"),
            ("", "_test"),
            ("test-", ""),
        ],
        names: &["test"],
        directories: &["tests", "test", "__tests__", "__mocks__"],
        sources: &[],
    },
    Convention {
        endings: &["go"],
        stems: &[("", "_test")],
        names: &[],
        directories: &["testdata"],
        sources: &[],
    },
    Convention {
        endings: &["java", "kt", "kts", "scala", "groovy"],
        stems: &[("", "Test"), ("", "Tests"), ("", "TestCase"), ("", "IT"), ("", "Spec")],
        names: &[],
        directories: &["src/test", "src/androidTest", "src/integrationTest", "src/testFixtures"],
        sources: &["main"],
    },
    Convention {
        endings: &["cs", "fs", "vb", "swift"],
        stems: &[("", "Tests"), ("", "Test")],
        names: &[],
        directories: &["Tests", "tests", "test"],
        sources: &[],
    },
    Convention {
        endings: &["php", "phpt"],
        stems: &[("", "Test"), ("", "TestCase")],
        names: &[],
        directories: &["tests", "test", "Tests"],
        sources: &[],
    },
    Convention {
        endings: &["c", "cc", "cpp", "cxx", "h", "hh", "hpp"],
        stems: &[("test_", ""), ("", "_test"), ("", "_tests")],
        names: &[],
        directories: &["tests", "test"],
        sources: &[],
    },
    Convention {
        endings: &["rb"],
        stems: &[("test_", ""), ("", "_test"), ("", "_spec")],
        names: &[],
        directories: &["spec", "test"],
        sources: &[],
    },
    // What snapshot tests compare with, wherever it lies.
    Convention {
        endings: &["snap", "ambr"],
        stems: &[("", "")],
        names: &[],
        directories: &[],
        sources: &[],
    },
];

/// Directories of what is installed, runners of tests among it.
const INSTALLED: &[&str] = &[
    "node_modules",
    "site-packages",
    ".venv",
    "venv",
    "__pycache__",
    ".tox",
    ".nox",
    ".bundle",
    ".gradle",
    "cmakefiles",
    "vendor/autoload.php",
    "vendor/bin",
    "vendor/bundle",
    "vendor/composer",
    "vendor/phpunit",
    "target/classes",
    "target/test-classes",
    "target/surefire-reports",
    "build/classes",
    "build/test-results",
];

/// Endings of what tells Python what is installed; pytest loads every plugin that one of them names.
const DISTRIBUTIONS: &[&str] = &[".dist-info", ".egg-info", ".egg-link", ".pth"];

/// Python modules that stand in for the runner, or come before it: Python looks beside the tests before it
/// looks among what is installed.
const STAND_INS: &[&str] = &["pytest", "_pytest", "pluggy", "sitecustomize", "usercustomize"];

/// The same for Ruby, which looks into `lib`, `test` and `spec` first: whole modules, and what lies below those that end
/// in a slash.
const RUBY_STAND_INS: &[&str] = &[
    "minitest",
    "minitest/assertions",
    "minitest/autorun",
    "minitest/mock",
    "minitest/spec",
    "minitest/test",
    "rspec",
    "rspec/core",
    "rspec/core/",
    "rspec/expectations",
    "rspec/expectations/",
    "rspec/mocks",
    "rspec/mocks/",
    "rspec/support",
    "rspec/support/",
];

/// Files that decide how tests run. A `*` at the end stands for any rest.
const RUNNERS: &[&str] = &[
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "setup.cfg",
    "tox.ini",
    "jest.config.*",
    "jest.setup.*",
    "vite.config.*",
    "vitest.config.*",
    "vitest.workspace.*",
    "vitest.setup.*",
    ".mocharc*",
    "babel.config.*",
    ".babelrc*",
    ".coveragerc",
    "playwright.config.*",
    "cypress.config.*",
    "nextest.toml",
    ".cargo/config",
    ".cargo/config.toml",
    "phpunit.xml",
    "phpunit.xml.dist",
    "phpunit.dist.xml",
    ".rspec",
    "CTestConfig.cmake",
    "CTestCustom.cmake",
    ".runsettings",
    "junit-platform.properties",
    ".mvn/jvm.config",
    ".mvn/maven.config",
    ".mvn/extensions.xml",
];

/// Endings, or whole names, of files that are not code.
const OTHERS: &[&str] = &[
    "md",
    "txt",
    "rst",
    "adoc",
    "license",
    "changelog",
    "json",
    "jsonc",
    "yaml",
    "yml",
    "toml",
    "ini",
    "cfg",
    "conf",
    "env",
    "lock",
    "png",
    "jpg",
    "jpeg",
    "gif",
    "webp",
    "ico",
    "svg",
    "css",
    "scss",
    "less",
    "woff",
    "woff2",
    "gitignore",
    "gitattributes",
    "editorconfig",
    "dockerignore",
];

impl Conventions {
    /// The conventions of languages, and these files as well.
    pub fn with(added: impl IntoIterator<Item = Glob>) -> Self {
        Self { added: added.into_iter().collect() }
    }

    /// What a file is.
    pub fn kind(&self, path: &ProjectPath) -> PathKind {
        if is_installed(&path.folded()) {
            return PathKind::Installed;
        }
        if is_test(path.as_str()) || self.added.iter().any(|glob| glob.matches(path)) {
            return PathKind::Test;
        }
        if self.is_lookalike(path) {
            return PathKind::Lookalike;
        }
        let name = path.file_name().to_lowercase();
        let ending = name.rsplit_once('.').map_or(name.as_str(), |(_, ending)| ending);
        if OTHERS.contains(&ending) { PathKind::Other } else { PathKind::Source }
    }

    fn is_lookalike(&self, path: &ProjectPath) -> bool {
        let folded = path.folded();
        let small = |glob: &Glob| Glob::parse(&glob.text().to_lowercase()).ok();
        let by_added = || {
            let Ok(folded) = ProjectPath::parse(&folded) else { return !self.added.is_empty() };
            self.added.iter().filter_map(small).any(|glob| glob.matches(&folded))
        };
        is_test(&folded) || by_added()
    }
}

impl PathKind {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Lookalike => "lookalike",
            Self::Source => "source",
            Self::Other => "other",
            Self::Installed => "installed",
        }
    }

    /// Whether it stands with the tests when code is written.
    pub const fn is_frozen_with_tests(self) -> bool {
        match self {
            Self::Test | Self::Lookalike | Self::Installed => true,
            Self::Source | Self::Other => false,
        }
    }
}

fn is_test(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let name = parts.last().copied().unwrap_or_default();
    if RUNNERS.iter().any(|runner| is_runner(path, name, runner)) {
        return true;
    }
    let split = name.rsplit_once('.');
    let language = split.and_then(|(stem, ending)| {
        LANGUAGES.iter().find(|it| it.endings.contains(&ending)).map(|it| (stem, it))
    });
    match language {
        Some((stem, language)) => {
            let named = |(start, end): &(&str, &str)| {
                stem.strip_prefix(start).is_some_and(|rest| rest.ends_with(end))
            };
            let is_source = parts.iter().any(|part| language.sources.contains(part));
            (!is_source && language.stems.iter().any(named))
                || language.names.contains(&stem)
                || lies_in(&parts, language.directories, language.sources)
        }
        None => lies_in(&parts, DIRECTORIES, &[]),
    }
}

fn is_installed(path: &str) -> bool {
    let module = path.strip_suffix(".py");
    let stands_in = |module: &str| module.split('/').any(|part| STAND_INS.contains(&part));
    let parts: Vec<&str> = path.split('/').collect();
    let distribution = |part: &&str| DISTRIBUTIONS.iter().any(|end| part.ends_with(end));
    let ruby = path.strip_suffix(".rb").and_then(|module| {
        let from = ["lib/", "test/", "spec/"];
        from.iter().find_map(|start| module.strip_prefix(start))
    });
    let stands_in_for_ruby = ruby.is_some_and(|module| {
        let is_below = |start: &&str| start.ends_with('/') && module.starts_with(*start);
        RUBY_STAND_INS.contains(&module) || RUBY_STAND_INS.iter().any(is_below)
    });
    lies_in(&parts, INSTALLED, &[])
        || parts.iter().any(distribution)
        || module.is_some_and(stands_in)
        || stands_in_for_ruby
}

/// Whether a path begins with a directory of tests, after directories that are not of sources.
fn lies_in(parts: &[&str], directories: &[&str], sources: &[&str]) -> bool {
    let mut rest = parts;
    while let Some((first, after)) = rest.split_first() {
        let begins = |directory: &&str| {
            let mut at = rest.iter();
            directory.split('/').all(|name| at.next() == Some(&name))
        };
        if directories.iter().any(begins) {
            return true;
        }
        if sources.contains(first) {
            return false;
        }
        rest = after;
    }
    false
}

fn is_runner(path: &str, name: &str, runner: &str) -> bool {
    if let Some(start) = runner.strip_suffix('*') {
        return name.starts_with(start);
    }
    let before = path.strip_suffix(runner);
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(kind: PathKind, paths: &[&str]) {
        for path in paths {
            let parsed = ProjectPath::parse(path).unwrap();
            assert_eq!(Conventions::default().kind(&parsed), kind, "{path}");
        }
    }

    #[test]
    fn dep_7_customs_of_runners_are_known() {
        let tests = [
            "spec/sum_spec.rb",
            "test/test_sum.rb",
            "test_sum.rb",
            "shop/tests.py",
            "src/test/java/a/SumTest.java",
            "app/SumTest.java",
            "tests/SumTest.php",
            "src/SumTest.php",
            "App.Tests/SumTests.cs",
            "SumTest.cs",
            "tests/sum.c",
            "src/test_sum.cpp",
            "sum_test.cc",
            "phpunit.xml.dist",
            ".rspec",
        ];
        check(PathKind::Test, &tests);
        let sources = [
            "src/main/java/a/ATest.java",
            "lib/sum.rb",
            "lib/rspec/sugar.rb",
            "src/Sum.php",
            "Sum.cs",
            "sum.c",
            "contest.c",
        ];
        check(PathKind::Source, &sources);
        let installed = [
            "lib/minitest.rb",
            "lib/rspec/core/runner.rb",
            "vendor/bin/phpunit",
            "vendor/autoload.php",
            "app/target/classes/A.class",
            "target/surefire-reports/TEST-A.xml",
            "build/test-results/test/TEST-A.xml",
        ];
        check(PathKind::Installed, &installed);
    }

    #[test]
    fn every_language_has_its_tests() {
        let tests = [
            "tests/a.rs",
            "crates/x/tests/it/main.rs",
            "tests/support/src/lib.rs",
            "test_a.py",
            "pkg/a_test.py",
            "tests/a.py",
            "src/pkg/tests/a.py",
            "conftest.py",
            "src/a.test.ts",
            "src/a.spec.tsx",
            "src/__tests__/a.ts",
            "test/a.mjs",
            "a-test.js",
            "lib/a_test.mjs",
            "test-a.cjs",
            "test.js",
            "pkg/x_test.go",
            "pkg/testdata/in.go",
            "src/test/java/A.java",
            "app/src/test/resources/a.json",
            "Tests/A.swift",
            "spec/a_spec.rb",
        ];
        check(PathKind::Test, &tests);
        let sources = [
            "src/lib.rs",
            "src/tests/mod.rs",
            "src/tests.rs",
            "a.py",
            "testing.py",
            "src/a.ts",
            "src/contest.ts",
            "testing.js",
            "src/latest.js",
            "x.go",
            "src/main/java/ATest.java",
            "Makefile",
            "build.rs",
            "latest/a.ts",
        ];
        check(PathKind::Source, &sources);
        check(PathKind::Other, &["README.md", "Cargo.toml", "a/b.json", "LICENSE", "a.css"]);
    }

    #[test]
    fn what_tests_depend_on_is_a_test() {
        let tests = [
            "tests/fixtures/a.json",
            "src/snapshots/a.snap",
            "pytest.ini",
            "web/jest.config.js",
            ".config/nextest.toml",
            ".cargo/config.toml",
            "vitest.config.ts",
            "setup.cfg",
            ".pytest.ini",
            "tests",
            ".mocharc.json",
        ];
        check(PathKind::Test, &tests);
    }

    #[test]
    fn a_runner_and_what_stands_in_for_it_is_neither_test_nor_code() {
        let installed = [
            "node_modules/jest/bin/jest.js",
            "web/Node_Modules/a.js",
            "web/.venv/bin/python3",
            "pytest.py",
            "src/_pytest/runner.py",
            "tests/sitecustomize.py",
            "forge-1.0.dist-info/entry_points.txt",
        ];
        check(PathKind::Installed, &installed);
        check(PathKind::Source, &["src/my_pytest.py", "plugins/pytest_x.py", "venv.py"]);
    }

    #[test]
    fn another_spelling_of_a_path_is_the_same_file() {
        check(PathKind::Test, &["./tests/x.rs", "src/../tests/x.rs", "tests//x.rs"]);
    }

    #[test]
    fn a_name_that_only_looks_like_a_tests_is_neither() {
        let alike = ["TESTS/a.rs", "Tests/a.py", "src/a.TEST.ts", "x_TEST.go", "ConfTest.py"];
        check(PathKind::Lookalike, &alike);
    }

    #[test]
    fn a_project_may_add_and_not_take_away() {
        let conventions = Conventions::with([Glob::parse("checks/**").unwrap()]);
        let kind = |path: &str| conventions.kind(&ProjectPath::parse(path).unwrap());
        assert_eq!(kind("checks/a.rs"), PathKind::Test);
        assert_eq!(kind("Checks/a.rs"), PathKind::Lookalike);
        assert_eq!(kind("tests/a.rs"), PathKind::Test);
        assert_eq!(kind("src/a.rs"), PathKind::Source);
    }

    proptest! {
        #[test]
        fn every_path_has_a_kind(text in "\\PC{0,60}") {
            if let Ok(path) = ProjectPath::parse(&text) {
                let _any = Conventions::with([Glob::parse("ÄÖ*/**").unwrap()]).kind(&path);
            }
        }

        #[test]
        fn nothing_beneath_tests_is_code(rest in "[a-z]{1,6}(/[a-z]{1,6}){0,3}\\.(rs|py|ts|js|json)") {
            let path = ProjectPath::parse(&format!("tests/{rest}")).unwrap();
            prop_assert_eq!(Conventions::default().kind(&path), PathKind::Test);
        }
    }
}
