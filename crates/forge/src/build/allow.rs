//! What a builder may change: the skill, its tests and the shared support modules, and nothing else.
//!
//! **Invariant.** A change is allowed by its exact path. Whatever is removed, executable, refused or elsewhere fails the
//! build, by name.

use fluffy_base::{PathError, ProjectPath};

use super::compare::{Change, ChangeKind, Patch};
use crate::{SUPPORT, SkillName};

/// The most violations that are told; the patch has them all.
const MAX_TOLD: usize = 20;

/// The files that the build of one skill may leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// The skill, then its tests.
    required: [ProjectPath; 2],
    /// Modules that skills share.
    support: Vec<ProjectPath>,
}

/// Something that a builder may not do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A file that is none of the skill's.
    #[error("`{0}` was written, and is no file of the skill")]
    Elsewhere(ProjectPath),
    /// A file is gone.
    #[error("`{0}` was removed")]
    Removed(ProjectPath),
    /// A file is a program.
    #[error("`{0}` was made executable, or is so no longer")]
    Mode(ProjectPath),
    /// It is no file that could be taken.
    #[error("`{name}` is not taken: {why}")]
    Refused {
        /// Which.
        name: String,
        /// Why not.
        why: String,
    },
    /// It is missing.
    #[error("`{0}` was not written")]
    Missing(ProjectPath),
    /// Neither skill nor tests were touched.
    #[error("neither the skill nor its tests were changed")]
    Nothing,
    /// A key of the builder's is in it.
    #[error("`{0}` holds a key that the builder was given")]
    Key(ProjectPath),
    /// It is too large for a skill.
    #[error("`{0}` is larger than a file of a skill may be")]
    Large(ProjectPath),
    /// There are more.
    #[error("and {0} more")]
    More(usize),
}

impl Allowed {
    /// What the build of this skill may leave.
    pub fn of(name: &SkillName) -> Result<Self, PathError> {
        let support = SUPPORT.iter().map(|path| ProjectPath::parse(path));
        Ok(Self {
            required: [name.skill_path()?, name.test_path()?],
            support: support.collect::<Result<_, _>>()?,
        })
    }

    /// The skill and its tests.
    pub fn required(&self) -> &[ProjectPath] {
        &self.required
    }

    /// The support modules and their tests.
    pub fn support(&self) -> &[ProjectPath] {
        &self.support
    }

    /// All of them.
    pub fn all(&self) -> Vec<ProjectPath> {
        self.required.iter().chain(&self.support).cloned().collect()
    }

    /// Everything in a patch that is not allowed; nothing, and all of it is. `was_there` says what the builder was given.
    pub fn violations(
        &self,
        patch: &Patch,
        was_there: &dyn Fn(&ProjectPath) -> bool,
    ) -> Vec<Violation> {
        let mut found: Vec<_> =
            patch.changes.iter().filter_map(|change| self.violation(change)).collect();
        let refused = patch.refused.iter();
        found.extend(
            refused.map(|it| Violation::Refused { name: it.name.clone(), why: it.why.clone() }),
        );
        let written = |path: &ProjectPath| {
            patch.changes.iter().any(|change| change.path == *path && change.after.is_some())
        };
        for path in &self.required {
            if !written(path) && !was_there(path) {
                found.push(Violation::Missing(path.clone()));
            }
        }
        if found.is_empty() && patch.unlisted == 0 && !self.required.iter().any(written) {
            found.push(Violation::Nothing);
        }
        if patch.unlisted > 0 {
            found.push(Violation::More(patch.unlisted));
        }
        found
    }

    fn violation(&self, change: &Change) -> Option<Violation> {
        let path = change.path.clone();
        match change.kind() {
            ChangeKind::Removed => Some(Violation::Removed(path)),
            _ if !self.required.contains(&path) && !self.support.contains(&path) => {
                Some(Violation::Elsewhere(path))
            }
            ChangeKind::Mode => Some(Violation::Mode(path)),
            ChangeKind::Same => None,
            ChangeKind::Added | ChangeKind::Changed => {
                let executable =
                    |was: Option<super::copy::Was>| was.is_some_and(|was| was.executable);
                (executable(change.after) != executable(change.before))
                    .then_some(Violation::Mode(path))
            }
        }
    }
}

/// Violations in words, the first so many.
pub(super) fn told(violations: &[Violation]) -> String {
    let more = violations.len().saturating_sub(MAX_TOLD);
    let mut words: Vec<_> = violations.iter().take(MAX_TOLD).map(ToString::to_string).collect();
    words.extend((more > 0).then(|| Violation::More(more).to_string()));
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fluffy_base::Digest;
    use fluffy_kernel::{Left, LeftFile, NotTaken};
    use proptest::prelude::*;

    use super::super::compare::compare;
    use super::super::copy::Was;
    use super::*;

    const SKILL: &str = ".fluffy/skills/write_note.py";
    const TEST: &str = ".fluffy/skills/tests/test_write_note.py";

    fn path(text: &str) -> ProjectPath {
        ProjectPath::parse(text).unwrap()
    }

    fn file(name: &str) -> LeftFile {
        LeftFile { path: path(name), bytes: b"new".to_vec(), executable: false }
    }

    fn judge(left: &Left) -> Vec<Violation> {
        let old = Was { sha256: Digest::of(b"old"), executable: false };
        let baseline: BTreeMap<_, _> =
            [".fluffy/policy.yaml", "src/main.py", SUPPORT[1]].map(|it| (path(it), old)).into();
        let allowed = Allowed::of(&SkillName::parse("write_note").unwrap()).unwrap();
        let patch = compare(&baseline, left);
        allowed.violations(&patch, &|path| baseline.contains_key(path))
    }

    fn left(files: &[&str]) -> Left {
        Left { files: files.iter().map(|name| file(name)).collect(), ..Left::default() }
    }

    #[test]
    fn for_4_skill_and_tests_are_required_and_support_is_optional() {
        assert_eq!(judge(&left(&[SKILL, TEST])), []);
        assert_eq!(judge(&left(&[SKILL, TEST, SUPPORT[0], SUPPORT[1], SUPPORT[2]])), []);
        assert_eq!(judge(&left(&[SKILL])), [Violation::Missing(path(TEST))]);
        assert_eq!(
            judge(&left(&[])),
            [Violation::Missing(path(SKILL)), Violation::Missing(path(TEST))]
        );
    }

    #[test]
    fn for_4_every_other_change_is_a_violation_by_name() {
        for other in [
            ".fluffy/policy.yaml",
            ".fluffy/skills/registry.yaml",
            ".fluffy/skills/other.py",
            ".fluffy/skills/tests/conftest.py",
            ".fluffy/skills/tests/test_other.py",
            ".fluffy/skills/support/more.py",
            ".fluffy/skills/fluffy_skill.py",
            ".fluffy/skills/Write_Note.py",
            "write_note.py",
            "src/main.py",
            ".gitignore",
        ] {
            let found = judge(&left(&[SKILL, TEST, other]));
            assert_eq!(found, [Violation::Elsewhere(path(other))]);
        }
        let mut gone = left(&[SKILL, TEST]);
        gone.removed = vec![path("src"), path(SUPPORT[1])];
        assert_eq!(
            judge(&gone),
            [Violation::Removed(path(SUPPORT[1])), Violation::Removed(path("src/main.py"))]
        );
        let mut odd = left(&[SKILL, TEST]);
        odd.refused = vec![NotTaken { name: SKILL.to_owned(), why: "it is a link".to_owned() }];
        assert!(matches!(&judge(&odd)[..], [Violation::Refused { .. }]));
        let mut program = left(&[SKILL, TEST]);
        program.files[0].executable = true;
        assert_eq!(judge(&program), [Violation::Mode(path(SKILL))]);
    }

    #[test]
    fn a_builder_that_touches_nothing_has_built_nothing() {
        let allowed = Allowed::of(&SkillName::parse("write_note").unwrap()).unwrap();
        let patch = compare(&BTreeMap::new(), &Left::default());
        assert_eq!(allowed.violations(&patch, &|_| true), [Violation::Nothing]);
    }

    #[test]
    fn files_of_the_skill_that_are_written_again_as_they_were_are_written_and_others_are_not_looked_at()
     {
        let was = Was { sha256: Digest::of(b"new"), executable: false };
        let baseline: BTreeMap<_, _> =
            [SKILL, TEST, "src/main.py"].map(|it| (path(it), was)).into();
        let allowed = Allowed::of(&SkillName::parse("write_note").unwrap()).unwrap();
        let left = left(&[SKILL, TEST, "src/main.py"]);
        let patch = compare(&baseline, &left).with_same(allowed.required(), &baseline, &left);
        let changed: Vec<_> =
            patch.changes.iter().map(|it| (it.path.as_str(), it.kind())).collect();
        assert_eq!(changed, [(TEST, ChangeKind::Same), (SKILL, ChangeKind::Same)]);
        assert_eq!(allowed.violations(&patch, &|path| baseline.contains_key(path)), []);
    }

    #[test]
    fn what_is_told_is_bounded() {
        let many: Vec<_> = (0..100).map(|n| Violation::Elsewhere(path(&format!("f{n}")))).collect();
        assert!(told(&many).ends_with("; and 80 more"));
    }

    proptest! {
        #[test]
        fn no_name_but_the_five_is_ever_allowed(name in "[\\PC./]{1,60}") {
            if let Ok(path) = ProjectPath::parse(&name)
                && !path.as_str().starts_with(".git/") && path.as_str() != ".git"
                && ![SKILL, TEST, SUPPORT[0], SUPPORT[1], SUPPORT[2]].contains(&path.as_str())
            {
                let mut left = left(&[SKILL, TEST]);
                left.files.push(LeftFile { path, bytes: b"x".to_vec(), executable: false });
                prop_assert!(!judge(&left).is_empty());
            }
        }
    }
}
