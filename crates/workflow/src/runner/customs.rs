//! Which projects have a runner of the table: by the customs of their languages.
//!
//! A manifest that a suite above already runs gives no suite of its own.

use super::detect::{Place, is_above};
use super::profile::Profile;
use super::{Runner, Suite, words};

/// Files that say what a Python project needs.
const PYTHON_MANIFESTS: &[&str] = &[
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "Pipfile",
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-test.txt",
    "dev-requirements.txt",
    "test-requirements.txt",
];

const MAKEFILES: &[&str] = &["GNUmakefile", "makefile", "Makefile"];

/// Targets that run tests, the more usual first.
const TARGETS: &[&str] = &["check", "test", "tests"];

/// The suites of one directory, beside those of `detect`.
pub(super) fn customs(place: &Place<'_>, found: &[Suite]) -> Vec<Suite> {
    let jvm = jvm(place, found);
    let others = [dotnet(place, found), ctest(place, found), ruby(place), php(place)];
    jvm.into_iter().chain(others.into_iter().flatten()).collect()
}

fn profiled(place: &Place<'_>, profile: Profile, reason: &str) -> Suite {
    place.suite(Runner::Profiled(profile), reason)
}

/// Whether a suite of this runner runs what lies here.
fn is_covered(place: &Place<'_>, found: &[Suite], profile: Profile) -> bool {
    found.iter().any(|suite| {
        suite.runner == Runner::Profiled(profile)
            && place.root.is_some_and(|root| is_above(suite.root.as_ref(), root))
    })
}

fn jvm(place: &Place<'_>, found: &[Suite]) -> Option<Suite> {
    let gradle = ["settings.gradle", "settings.gradle.kts", "build.gradle", "build.gradle.kts"];
    let (profile, reason) = if place.has("pom.xml") {
        (Profile::Maven, "pom.xml")
    } else if let Some(name) = gradle.into_iter().find(|name| place.has(name)) {
        (Profile::Gradle, name)
    } else {
        return None;
    };
    (!is_covered(place, found, profile)).then(|| profiled(place, profile, reason))
}

fn dotnet(place: &Place<'_>, found: &[Suite]) -> Option<Suite> {
    let endings = [".sln", ".slnx", ".csproj", ".fsproj", ".vbproj"];
    let of = |ending: &str| place.names.iter().find(|name| name.ends_with(ending));
    let manifest = endings.into_iter().find_map(of)?;
    let is_covered = is_covered(place, found, Profile::Dotnet);
    (!is_covered).then(|| profiled(place, Profile::Dotnet, manifest))
}

/// A project of CMake that says it has tests.
fn ctest(place: &Place<'_>, found: &[Suite]) -> Option<Suite> {
    let text = place.text("CMakeLists.txt")?.to_lowercase();
    let text: String = text.split_whitespace().collect();
    let has_tests = ["enable_testing(", "include(ctest)"].iter().any(|it| text.contains(it));
    let is_own = has_tests && !is_covered(place, found, Profile::Ctest);
    is_own.then(|| profiled(place, Profile::Ctest, "CMakeLists.txt with tests"))
}

fn ruby(place: &Place<'_>) -> Option<Suite> {
    if place.tests().any(|file| file.starts_with("spec/") && file.ends_with("_spec.rb")) {
        return Some(bundled(place, profiled(place, Profile::Rspec, "files of RSpec")));
    }
    // Rails loads itself before its tests.
    if place.has("config.ru") && place.has("Rakefile") {
        return None;
    }
    let tests = place.tests().filter(|file| is_minitest(file));
    let extra: Vec<String> = tests.map(|file| format!("./{file}")).collect();
    let suite = profiled(place, Profile::Minitest, "files of minitest");
    (!extra.is_empty()).then(|| bundled(place, Suite { extra, ..suite }))
}

/// Where Bundler locked the packages, the runner is called with those.
fn bundled(place: &Place<'_>, suite: Suite) -> Suite {
    let prefix: &[&str] = if place.has("Gemfile.lock") { &["bundle", "exec"] } else { &[] };
    Suite { prefix, ..suite }
}

fn is_minitest(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    let stem = name.strip_suffix(".rb");
    file.starts_with("test/")
        && stem.is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
}

fn php(place: &Place<'_>) -> Option<Suite> {
    let configured = ["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"];
    if let Some(name) = configured.into_iter().find(|name| place.has(name)) {
        return Some(profiled(place, Profile::PhpUnit, name));
    }
    let is_test = |file: &str| file.starts_with("tests/") && file.ends_with("Test.php");
    let has_tests = place.tests().any(is_test);
    let suite = profiled(place, Profile::PhpUnit, "files of tests for PHPUnit");
    has_tests.then(|| Suite { extra: words(&["tests"]), ..suite })
}

/// Files of tests that the runners here look for, seen from the project's root or below.
pub(super) fn may_be_test(file: &str) -> bool {
    file.ends_with("_spec.rb") || file.ends_with("Test.php") || {
        let name = file.rsplit('/').next().unwrap_or(file);
        let stem = name.strip_suffix(".rb");
        stem.is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
    }
}

/// A Django project, which is run by its own settings.
pub(super) fn django(place: &Place<'_>) -> Option<Suite> {
    let is_django = place.text("manage.py")?.contains("DJANGO_SETTINGS_MODULE");
    is_django.then(|| profiled(place, Profile::Django, "manage.py of Django"))
}

/// Whether tests are written for unittest, and the project does not ask for pytest.
pub(super) fn is_unittest<'a>(
    place: &Place<'_>,
    mut tests: impl Iterator<Item = Option<&'a str>>,
) -> bool {
    let asks = |name: &&str| place.text(name).is_some_and(|text| text.contains("pytest"));
    if place.has("conftest.py") || PYTHON_MANIFESTS.iter().any(asks) {
        return false;
    }
    tests.all(|text| {
        text.is_some_and(|text| {
            let is_function =
                |line: &str| line.starts_with("def test_") || line.starts_with("async def test_");
            text.contains("unittest") && !text.contains("pytest") && !text.lines().any(is_function)
        })
    })
}

/// `make check` or `make test`, where nothing else is known to run the tests.
pub(super) fn make(place: &Place<'_>) -> Option<Suite> {
    let (target, name) = make_target(|name| place.text(name))?;
    let runner = Runner::Command { argv: words(&["make", target]) };
    Some(place.suite(runner, &format!("{name} has a target `{target}`")))
}

/// The target of a makefile that runs tests, and the makefile's name.
pub(super) fn make_target<'a>(
    text: impl Fn(&str) -> Option<&'a str>,
) -> Option<(&'static str, &'static str)> {
    MAKEFILES.iter().find_map(|name| {
        let text = text(name)?;
        let has = |target: &&&str| {
            let is_rule = |line: &str| {
                let rest = line.strip_prefix(**target).map(str::trim_start);
                rest.is_some_and(|rest| rest.starts_with(':') && !rest.starts_with(":="))
            };
            text.lines().any(is_rule)
        };
        TARGETS.iter().find(has).map(|target| (*target, *name))
    })
}
