//! Exemptions from test-first work: asked for, granted by path, never taken.
//!
//! **Invariant.** A grant covers the files that it names and no others, and every one of them matches
//! the policy's patterns for the category that was asked for. One file that does not match refuses all.
//!
//! **Invariant.** No test is ever exempt. A test needs no exemption where tests are written, and must
//! not have one where they are frozen.

use std::collections::BTreeSet;

use fluffy_base::{Excerpt, ProjectPath, is_blank};
use fluffy_policy::{EXEMPTIONS, Exemption, Exemptions};
use serde::{Deserialize, Serialize};

use crate::paths::Conventions;
use crate::type_only::TypeOnly;

/// The most files that one request may name.
pub const MAX_EXEMPT_PATHS: usize = 256;

/// The longest reason in bytes.
pub const MAX_EXEMPTION_REASON_BYTES: usize = 2000;

/// How much of a stranger's word an error repeats.
const SHOWN: usize = 60;

/// What a participant asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExemptionRequest {
    /// One of the policy's categories.
    pub category: String,
    /// The files to be changed.
    pub paths: BTreeSet<ProjectPath>,
    /// Why these changes need no test, for whoever reads the record.
    pub reason: String,
}

/// Files that may be changed without a test, in the state the session is in and for this task alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExemptionGrant {
    /// What was asked for.
    pub request: ExemptionRequest,
    /// Whether each change must be found to touch nothing but types.
    pub type_only: bool,
}

/// Whether a file is exempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exempt {
    /// It is not.
    No,
    /// If the change touches nothing but types.
    IfTypeOnly,
    /// It is.
    Yes,
}

/// Why an exemption is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExemptionError {
    /// No category of that name.
    #[error("category `{0}` is not one of {names}", names = EXEMPTIONS.join(", "))]
    UnknownCategory(String),
    /// The policy has nothing in that category.
    #[error("the policy exempts nothing as `{0}`")]
    NotInPolicy(&'static str),
    /// No file.
    #[error("the request names no file")]
    NoPath,
    /// Too many files.
    #[error("the request names more than {MAX_EXEMPT_PATHS} files")]
    TooManyPaths,
    /// No reason.
    #[error("the request gives no reason")]
    NoReason,
    /// A reason that nobody would read.
    #[error("the reason has more than {MAX_EXEMPTION_REASON_BYTES} bytes")]
    LongReason,
    /// A file that the category does not cover.
    #[error("`{path}` is not covered by the policy's patterns for `{category}`")]
    NotCovered {
        /// The file.
        path: ProjectPath,
        /// The category.
        category: &'static str,
    },
    /// A test.
    #[error("`{0}` is a test or decides how tests run, which is never exempt")]
    IsTest(ProjectPath),
    /// A file in a language whose types cannot be told from its code here.
    #[error("whether a change of `{0}` touches nothing but types cannot be found out")]
    NoProof(ProjectPath),
}

impl ExemptionRequest {
    /// What the policy grants, which is everything that is asked for or nothing.
    pub fn judge(
        self,
        policy: &Exemptions,
        conventions: &Conventions,
        types: &dyn TypeOnly,
    ) -> Result<ExemptionGrant, ExemptionError> {
        let named = EXEMPTIONS.into_iter().find(|category| *category == self.category);
        let unknown = || Excerpt::new(&self.category, SHOWN).to_string();
        let category = named.ok_or_else(|| ExemptionError::UnknownCategory(unknown()))?;
        let exemption = policy.get(category).ok_or(ExemptionError::NotInPolicy(category))?;
        self.check_form()?;
        for path in &self.paths {
            check_path(path, category, exemption, conventions, types)?;
        }
        Ok(ExemptionGrant { request: self, type_only: exemption.type_only })
    }

    pub(crate) fn check_form(&self) -> Result<(), ExemptionError> {
        match () {
            () if self.paths.is_empty() => Err(ExemptionError::NoPath),
            () if self.paths.len() > MAX_EXEMPT_PATHS => Err(ExemptionError::TooManyPaths),
            () if is_blank(&self.reason) => Err(ExemptionError::NoReason),
            () if self.reason.len() > MAX_EXEMPTION_REASON_BYTES => Err(ExemptionError::LongReason),
            () => Ok(()),
        }
    }
}

fn check_path(
    path: &ProjectPath,
    category: &'static str,
    exemption: &Exemption,
    conventions: &Conventions,
    types: &dyn TypeOnly,
) -> Result<(), ExemptionError> {
    if conventions.kind(path).is_frozen_with_tests() {
        return Err(ExemptionError::IsTest(path.clone()));
    }
    if !exemption.paths.iter().any(|glob| glob.matches(path)) {
        return Err(ExemptionError::NotCovered { path: path.clone(), category });
    }
    if exemption.type_only && !types.judges(path) {
        return Err(ExemptionError::NoProof(path.clone()));
    }
    Ok(())
}

impl ExemptionGrant {
    /// What the grant says of a file.
    pub fn exempts(&self, path: &ProjectPath) -> Exempt {
        match (self.request.paths.contains(path), self.type_only) {
            (false, _) => Exempt::No,
            (true, true) => Exempt::IfTypeOnly,
            (true, false) => Exempt::Yes,
        }
    }
}

#[cfg(test)]
mod tests {
    use fluffy_policy::{DEFAULT_POLICY, PolicyFile};

    use super::*;
    use crate::type_only::Languages;

    fn ask(category: &str, paths: &[&str], reason: &str) -> Result<ExemptionGrant, ExemptionError> {
        let policy = PolicyFile::parse("policy.yaml", DEFAULT_POLICY).unwrap();
        let paths = paths.iter().map(|path| ProjectPath::parse(path).unwrap()).collect();
        let request =
            ExemptionRequest { category: category.to_owned(), paths, reason: reason.to_owned() };
        request.judge(policy.exemptions(), &Conventions::default(), &Languages)
    }

    fn refusal(category: &str, paths: &[&str]) -> String {
        ask(category, paths, "why").unwrap_err().to_string()
    }

    #[test]
    fn a_grant_covers_the_files_it_names() {
        let grant = ask("documentation", &["README.md", "docs/a.md"], "a word was wrong").unwrap();
        let exempts = |path: &str| grant.exempts(&ProjectPath::parse(path).unwrap());
        assert_eq!(exempts("README.md"), Exempt::Yes);
        assert_eq!(exempts("./docs//a.md"), Exempt::Yes);
        assert_eq!(exempts("docs/b.md"), Exempt::No);
        let types = ask("type_refactor", &["src/a.ts"], "a type").unwrap();
        assert_eq!(types.exempts(&ProjectPath::parse("src/a.ts").unwrap()), Exempt::IfTypeOnly);
    }

    #[test]
    fn one_file_that_does_not_match_refuses_all() {
        assert_eq!(
            refusal("documentation", &["README.md", "src/lib.rs"]),
            "`src/lib.rs` is not covered by the policy's patterns for `documentation`"
        );
        assert!(refusal("documentation", &["readme.MD"]).contains("not covered"));
    }

    #[test]
    fn no_test_is_exempt() {
        for path in ["tests/fixtures/a.json", "Tests/b.json", ".cargo/config.toml", "src/a.test.ts"]
        {
            let category = if path.ends_with("ts") { "type_refactor" } else { "config_change" };
            assert!(refusal(category, &[path]).contains("never exempt"), "{path}");
        }
    }

    #[test]
    fn a_request_without_category_files_or_reason_is_refused() {
        assert!(refusal("anything", &["a.md"]).starts_with("category `anything` is not one of"));
        assert_eq!(refusal("documentation", &[]), "the request names no file");
        assert_eq!(ask("documentation", &["a.md"], "\u{200b} "), Err(ExemptionError::NoReason));
        let nothing = ExemptionRequest {
            category: "documentation".to_owned(),
            paths: BTreeSet::new(),
            reason: String::new(),
        };
        let answer = nothing.judge(&Exemptions::new(), &Conventions::default(), &Languages);
        assert_eq!(answer, Err(ExemptionError::NotInPolicy("documentation")));
    }
}
