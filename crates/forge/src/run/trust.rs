//! From what a person promoted to the bytes that run.
//!
//! **Invariant.** Each file is read once, beneath the project's handle and through no link; the bytes that were hashed are
//! the bytes that run. Whatever is not as it was sealed does not run at all.

use std::collections::BTreeMap;

use fluffy_base::{Digest, ProjectPath};
use fluffy_kernel::{Tree, TreeError};

use crate::seal::{self, Broken, MAX_FILE};
use crate::{Base, Pinned, SKILLS, Sealed, SkillName, base};

/// Why a skill is not what a person trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A file has other bytes.
    #[error("`{file}` is not what was trusted: its hash is {found}, and {sealed} was promoted")]
    Changed {
        /// The file.
        file: ProjectPath,
        /// What was promoted.
        sealed: Digest,
        /// What is there.
        found: Digest,
    },
    /// A file is not there, or no file.
    #[error("`{file}`, which was trusted, cannot be read")]
    Unreadable {
        /// The file.
        file: ProjectPath,
        /// Why not.
        source: TreeError,
    },
    /// A file is too large to have been verified.
    #[error("`{0}` has more than {mib} MiB", mib = MAX_FILE >> 20)]
    Large(ProjectPath),
    /// It is no text.
    #[error("`{0}` is not UTF-8")]
    NotText(ProjectPath),
    /// The base is another than the one it was verified on.
    #[error(
        "it was verified on another base than this program's: {sealed}, and this one is {found}"
    )]
    Base {
        /// What was promoted.
        sealed: Digest,
        /// What this program ships.
        found: Digest,
    },
    /// The promotion does not name the skill's own file.
    #[error("what was promoted does not hold `{0}`")]
    Incomplete(ProjectPath),
    /// Its name leads nowhere.
    #[error(transparent)]
    Path(#[from] fluffy_base::PathError),
    /// The call was judged for another skill than the one that is trusted now.
    #[error("`{0}` was promoted anew since its call was judged")]
    Promoted(SkillName),
}

impl TrustError {
    /// What to do about it.
    pub const fn fix(&self) -> &'static str {
        match self {
            Self::Changed { .. } | Self::Unreadable { .. } | Self::Large(_) | Self::NotText(_) => {
                "put the file back as it was promoted, or revoke the skill, build and verify it again and promote it"
            }
            Self::Base { .. } => "revoke the skill, then build, verify and promote it again",
            Self::Incomplete(_) | Self::Path(_) => "revoke the skill and build it again",
            Self::Promoted(_) => "run it again",
        }
    }
}

/// The modules of a skill by the names that Python gives them, each as it was sealed.
pub(super) fn modules(
    tree: &Tree,
    name: &SkillName,
    sealed: &Sealed,
) -> Result<BTreeMap<String, String>, TrustError> {
    let shipped = base();
    let found = shipped.digest();
    if found != sealed.base {
        return Err(TrustError::Base { sealed: sealed.base, found });
    }
    let own = name.skill_path()?;
    let mut modules = BTreeMap::new();
    for pinned in &sealed.files {
        let bytes = as_sealed(tree, pinned)?;
        if let Some(module) = module_of(&pinned.path) {
            let text = String::from_utf8(bytes);
            let text = text.map_err(|_| TrustError::NotText(pinned.path.clone()))?;
            modules.insert(module, text);
        }
    }
    if !modules.contains_key(name.as_str()) {
        return Err(TrustError::Incomplete(own));
    }
    if modules.keys().any(|module| module.starts_with("support.")) {
        modules.insert("support".to_owned(), String::new());
    }
    let skill = String::from_utf8_lossy(shipped.skill).into_owned();
    modules.insert(Base::MODULE.to_owned(), skill);
    Ok(modules)
}

/// The bytes of a file, if they are those that were sealed.
fn as_sealed(tree: &Tree, pinned: &Pinned) -> Result<Vec<u8>, TrustError> {
    let file = pinned.path.clone();
    seal::read(tree, pinned).map_err(|broken| match broken {
        Broken::File(source) => TrustError::Unreadable { file, source },
        Broken::Read(source) => {
            let source = TreeError::Io { path: file.to_string(), source };
            TrustError::Unreadable { file, source }
        }
        Broken::Large => TrustError::Large(file),
        Broken::Changed(found) => TrustError::Changed { file, sealed: pinned.sha256, found },
    })
}

/// The module that a file is; tests are none.
fn module_of(path: &ProjectPath) -> Option<String> {
    let inside = path.as_str().strip_prefix(SKILLS)?.strip_prefix('/')?.strip_suffix(".py")?;
    match inside.split_once('/') {
        None => Some(inside.to_owned()),
        Some(("support", module)) if !module.contains('/') => Some(format!("support.{module}")),
        Some(_) => None,
    }
}
