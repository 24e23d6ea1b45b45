//! Whether a change of a file touches nothing but types.
//!
//! [`TypeOnly`] is the seam; [`Languages`] answers for the languages that are known here. The answer
//! is about what a program does: a change is type-only if the program before and after it cannot
//! behave differently, which a parser has to find out and a file's name cannot tell.
//!
//! **Invariant.** What cannot be parsed, is too large or is in another language is not type-only.

mod rust;
mod typescript;

use fluffy_base::ProjectPath;

pub use rust::Rust;
pub use typescript::TypeScript;

/// The largest file that is looked at, in bytes.
pub const MAX_TYPED_BYTES: usize = 64 << 10;

/// Something that tells a change of types from a change of code. Every implementation keeps these
/// promises:
///
/// 1. it answers `Ok` only if the change cannot alter what the program does;
/// 2. a file that is not there is an empty text, before the change or after it;
/// 3. it is a pure function of its arguments and ends on any text, in time that is bounded by the
///    texts' length, without a panic.
pub trait TypeOnly: Send + Sync {
    /// Whether files of this name can be judged at all.
    fn judges(&self, path: &ProjectPath) -> bool;

    /// Nothing if the change touches nothing but types.
    fn check(&self, path: &ProjectPath, before: &str, after: &str) -> Result<(), NotTypeOnly>;
}

/// Why a change is not known to touch nothing but types.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotTypeOnly {
    /// No language that is known here.
    #[error("types of `{0}` cannot be told from its code")]
    Language(ProjectPath),
    /// A large file.
    #[error("the file has more than {MAX_TYPED_BYTES} bytes")]
    TooLarge,
    /// More brackets or conditions within each other than anybody would write.
    #[error("the file has too many brackets or conditions within each other")]
    TooDeep,
    /// Text that is not of the language.
    #[error("the file cannot be parsed {0} the change")]
    Syntax(Version),
    /// A language's way of turning types into values.
    #[error("the file has {0}, which can turn types into values")]
    TypesAreValues(&'static str),
    /// More than types is changed.
    #[error("the change touches more than types")]
    Code,
}

/// One of the two texts of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The old one.
    Before,
    /// The new one.
    After,
}

/// Every language that is known here, by the ending of a file's name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Languages;

impl Languages {
    const ALL: [&'static dyn TypeOnly; 2] = [&Rust, &TypeScript];

    fn of(path: &ProjectPath) -> Option<&'static dyn TypeOnly> {
        Self::ALL.into_iter().find(|language| language.judges(path))
    }
}

impl TypeOnly for Languages {
    fn judges(&self, path: &ProjectPath) -> bool {
        Self::of(path).is_some()
    }

    fn check(&self, path: &ProjectPath, before: &str, after: &str) -> Result<(), NotTypeOnly> {
        match Self::of(path) {
            Some(language) => language.check(path, before, after),
            None => Err(NotTypeOnly::Language(path.clone())),
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Before => "before",
            Self::After => "after",
        })
    }
}

/// Whether a file's name ends with a dot and one of these.
fn has_ending(path: &ProjectPath, endings: &[&str]) -> bool {
    path.file_name().rsplit_once('.').is_some_and(|(_, ending)| endings.contains(&ending))
}

fn check_size(before: &str, after: &str) -> Result<(), NotTypeOnly> {
    let large = before.len().max(after.len()) > MAX_TYPED_BYTES;
    if large { Err(NotTypeOnly::TooLarge) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_another_language_is_not_type_only() {
        let path = ProjectPath::parse("a.py").unwrap();
        assert!(!Languages.judges(&path));
        assert_eq!(Languages.check(&path, "", ""), Err(NotTypeOnly::Language(path.clone())));
    }

    #[test]
    fn a_large_file_is_not_type_only() {
        for name in ["a.rs", "a.ts"] {
            let path = ProjectPath::parse(name).unwrap();
            let large = " ".repeat(MAX_TYPED_BYTES + 1);
            assert_eq!(Languages.check(&path, "", &large), Err(NotTypeOnly::TooLarge));
        }
    }
}
