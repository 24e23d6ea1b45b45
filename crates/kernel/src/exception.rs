//! The exception that a person can add to the policy, for a call that rules of its file object to.
//!
//! **Invariant.** It is worked out here and for the one file that was shown. A person agrees to the change of the policy's file
//! like to any other, by `policy.update`, before it is written.

use std::io::{self, Read as _};
use std::path::Path;

use fluffy_base::{KernelState, ProjectPath};
use fluffy_policy::{
    Caller, DEFAULT_POLICY, Exception, Facts, Layer, MAX_POLICY_BYTES, PolicyFile, Verdict,
    allow_packages, decide,
};

use crate::Kernel;
use crate::grants::Asked;
use crate::policy_store::InForce;
use crate::policy_update::shown;
use crate::staging::unified;

/// The rule that judges packages by the section `dependencies`.
const DEPENDENCIES: &str = "dependencies";

/// The policy with an exception.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excepted {
    /// The whole text.
    pub(crate) content: String,
    /// What it changes, in the form of `git diff`.
    pub(crate) diff: String,
}

/// What the policy's file says.
pub(crate) struct PolicyText {
    /// What it is called in a change.
    name: String,
    text: String,
}

impl PolicyText {
    /// What lies there; what the program ships where nothing does.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let file = match std::fs::symlink_metadata(path) {
            Ok(found) if !found.is_file() => return Err(io::ErrorKind::InvalidInput.into()),
            Ok(_) => std::fs::File::open(path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let name = "/dev/null (the shipped policy holds)".to_owned();
                return Ok(Self { name, text: DEFAULT_POLICY.to_owned() });
            }
            Err(error) => return Err(error),
        };
        let mut text = String::new();
        file.take(MAX_POLICY_BYTES as u64 + 1).read_to_string(&mut text)?;
        Ok(Self { name: format!("a/{}", shown(path)), text })
    }

    /// What a person is shown of a new text.
    pub(crate) fn diff(&self, path: &Path, content: &str) -> String {
        unified((&self.name, &self.text), (&format!("b/{}", shown(path)), content))
    }
}

impl Kernel {
    /// The policy that would let this call through; nothing where no exception can be written that is for it alone.
    pub(crate) fn excepted(
        &self,
        asked: &Asked<'_>,
        policy: &InForce,
        caller: &Caller,
    ) -> Option<Excepted> {
        if !asked.reasons.iter().all(|reason| reason.layer() == Layer::Yaml) {
            return None;
        }
        let lies = self.policy_path.as_deref()?;
        let before = PolicyText::read(lies).ok()?;
        // A file that somebody edits is not the one whose rules objected.
        let known = PolicyFile::parse(&shown(lies), &before.text).ok()?;
        if known.digest() != policy.file {
            return None;
        }
        let content = match asked.file() {
            Some(file) => with_exception(asked, file, &before.text, caller, lies)?,
            None => self.with_packages(asked, &before.text)?,
        };
        let diff = before.diff(lies, &content);
        Some(Excepted { content, diff })
    }

    /// The policy in which the packages of a call are allowed; nothing where it is about none, or more is objected to.
    fn with_packages(&self, asked: &Asked<'_>, before: &str) -> Option<String> {
        let call = asked.request.tool_call.as_ref()?;
        let by_section = asked.reasons.iter().all(|reason| reason.rule() == DEPENDENCIES);
        let packages = self.registry.find(&call.name)?.tool.packages(&call.params);
        by_section.then(|| allow_packages(before, &packages).ok()).flatten()
    }

    /// What a person is shown of a policy that is to replace the one there; nothing where that cannot be read.
    pub(crate) fn policy_diff(&self, content: &str) -> Option<String> {
        let path = self.policy_path.as_deref()?;
        Some(PolicyText::read(path).ok()?.diff(path, content))
    }
}

/// The policy with an exception for one file, if it would let the call through.
fn with_exception(
    asked: &Asked<'_>,
    (syscall, path): (&str, &ProjectPath),
    before: &str,
    caller: &Caller,
    lies: &Path,
) -> Option<String> {
    let exception = Exception { actor: &asked.request.actor, syscall, path };
    let mut rules: Vec<&str> = asked.reasons.iter().map(|reason| reason.rule()).collect();
    rules.dedup();
    let put = |text: String, rule: &&str| exception.put_into(&text, rule).ok();
    let content = rules.iter().try_fold(before.to_owned(), put)?;
    let after = PolicyFile::parse(&shown(lies), &content).ok()?.rules();
    let facts = Facts::new(asked.request, KernelState::Idle).about(asked.subject).by(caller);
    let decided = decide(after.iter().map(|rule| &**rule), &facts);
    matches!(decided.verdict, Verdict::Allow(_)).then_some(content)
}
