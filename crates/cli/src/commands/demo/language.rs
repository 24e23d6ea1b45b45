//! The languages of the demo: a project, a transcript, and how to see that its tests can run here.

use fluffy_sandbox::{Config, Job, Template, Workspace};

use crate::args::LanguageName;
use crate::environment::Environment;
use crate::explain::CliError;
use crate::place::Place;
use crate::toolchains;

/// The oldest version of node whose own test runner finds tests by itself.
const NODE: u32 = 20;

/// A language in which the demo can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    JavaScript,
    Python,
    Rust,
}

/// A file of a project: where it lies and what it holds.
pub(crate) type File = (&'static str, &'static str);

const JAVASCRIPT: [File; 4] = [
    ("README.md", include_str!("../../../demo/javascript/project/README.md")),
    ("package.json", include_str!("../../../demo/javascript/project/package.json")),
    ("src/slug.js", include_str!("../../../demo/javascript/project/src/slug.js")),
    ("tests/slug.test.js", include_str!("../../../demo/javascript/project/tests/slug.test.js")),
];
const PYTHON: [File; 4] = [
    ("README.md", include_str!("../../../demo/python/project/README.md")),
    ("pyproject.toml", include_str!("../../../demo/python/project/pyproject.toml")),
    ("src/slugs.py", include_str!("../../../demo/python/project/src/slugs.py")),
    ("tests/test_slug.py", include_str!("../../../demo/python/project/tests/test_slug.py")),
];
const RUST: [File; 5] = [
    ("README.md", include_str!("../../../demo/rust/project/README.md")),
    ("Cargo.toml", include_str!("../../../demo/rust/project/Cargo.toml")),
    ("Cargo.lock", include_str!("../../../demo/rust/project/Cargo.lock")),
    ("src/lib.rs", include_str!("../../../demo/rust/project/src/lib.rs")),
    ("tests/slug.rs", include_str!("../../../demo/rust/project/tests/slug.rs")),
];

impl Language {
    /// Every language, the quickest to show first.
    pub(crate) const ALL: [Self; 3] = [Self::JavaScript, Self::Python, Self::Rust];

    /// The language that was named, or the first, of those whose tests can run here.
    pub(crate) fn find(
        named: Option<LanguageName>,
        place: &Place,
        environment: &Environment,
    ) -> Result<Self, CliError> {
        let wanted = named.map(Self::of);
        for language in Self::ALL {
            let is_wanted = wanted.is_none_or(|wanted| wanted == language);
            if is_wanted && language.is_here(place, environment)? {
                return Ok(language);
            }
        }
        let missing = Self::ALL.into_iter().filter(|one| wanted.is_none_or(|it| it == *one));
        let missing: Vec<_> = missing.map(Self::needs).collect();
        Err(CliError::NoLanguage(missing.join(", or ")))
    }

    fn of(name: LanguageName) -> Self {
        match name {
            LanguageName::Javascript => Self::JavaScript,
            LanguageName::Python => Self::Python,
            LanguageName::Rust => Self::Rust,
        }
    }

    /// What people call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::JavaScript => "JavaScript",
            Self::Python => "Python",
            Self::Rust => "Rust",
        }
    }

    /// The project before the task.
    pub(crate) fn files(self) -> &'static [File] {
        match self {
            Self::JavaScript => &JAVASCRIPT,
            Self::Python => &PYTHON,
            Self::Rust => &RUST,
        }
    }

    /// What the recorded model says.
    pub(crate) fn transcript(self) -> &'static str {
        match self {
            Self::JavaScript => include_str!("../../../demo/javascript/transcript.jsonl"),
            Self::Python => include_str!("../../../demo/python/transcript.jsonl"),
            Self::Rust => include_str!("../../../demo/rust/transcript.jsonl"),
        }
    }

    fn needs(self) -> &'static str {
        match self {
            Self::JavaScript => "node 20 or newer",
            Self::Python => "python3 with pytest",
            Self::Rust => "cargo",
        }
    }

    /// Whether its tests can run: asked where they will, in a sandbox.
    fn is_here(self, place: &Place, environment: &Environment) -> Result<bool, CliError> {
        let job = match self {
            Self::JavaScript => Job::new("node").args(["--version"]),
            Self::Python => Job::new("python3").args(["-m", "pytest", "--version"]),
            Self::Rust => Job::new("cargo").args(["--version"]),
        };
        let native = place.sandboxes(environment)?;
        let config = config(environment)?.with_workspace(Workspace::read_only(place.project()))?;
        let sandbox = native.create(config, job)?;
        // A program that is not there is an answer, not a failure of the sandbox.
        let outcome = sandbox.start(std::sync::Arc::new(())).and_then(|()| sandbox.wait());
        sandbox.remove();
        let Ok(outcome) = outcome else { return Ok(false) };
        let printed = String::from_utf8_lossy(&outcome.stdout.bytes);
        Ok(outcome.is_success() && (self != Self::JavaScript || is_recent_node(&printed)))
    }
}

/// A sandbox that sees the user's toolchains.
pub(super) fn config(environment: &Environment) -> Result<Config, CliError> {
    let mut config = Config::of(Template::CodeExecutor);
    if let Some(home) = &environment.home {
        config = config.with_home(home)?;
        for path in toolchains::of(environment) {
            config = config.showing(&path)?;
        }
    }
    Ok(config)
}

/// Whether this is the version of a node that is recent enough.
fn is_recent_node(printed: &str) -> bool {
    let version = printed.trim().strip_prefix('v').and_then(|version| version.split('.').next());
    version.and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| major >= NODE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_recent_from_version_20_on() {
        for (printed, recent) in [
            ("v20.0.0\n", true),
            ("v22.1.3", true),
            ("v18.20.4\n", false),
            ("", false),
            ("vx", false),
        ] {
            assert_eq!(is_recent_node(printed), recent, "{printed}");
        }
    }
}
