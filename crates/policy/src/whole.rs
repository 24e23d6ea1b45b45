//! Whether rules allow everything that a glob names, which a token for it presupposes.
//!
//! **Invariant.** Says no where it cannot tell.

use crate::capabilities::Capabilities;
use crate::capability::{Action, Capability};
use crate::condition::Condition;
use crate::glob::Glob;

impl Capabilities {
    /// Whether some rule allows this call on every path that the glob names, and no rule objects to it
    /// on any of them, whoever asks.
    pub fn allow_all(&self, syscall: &str, glob: &Glob) -> bool {
        let named: Vec<_> = self.rules().iter().filter(|rule| names(rule, syscall)).collect();
        named.iter().any(|rule| allows(rule, glob)) && !named.iter().any(|rule| touches(rule, glob))
    }
}

fn names(rule: &Capability, syscall: &str) -> bool {
    rule.condition.syscalls.iter().flatten().any(|syscalls| syscalls.contains(syscall))
}

/// Whether the rule allows all of it, to everybody and without an exception.
fn allows(rule: &Capability, glob: &Glob) -> bool {
    let Condition {
        syscalls: _,
        paths,
        caller_tags,
        actors,
        modes,
        workflow_states,
        commands,
        side_effects,
        ..
    } = &rule.condition;
    let everybody = caller_tags.is_none()
        && actors.is_none()
        && modes.is_none()
        && workflow_states.is_none()
        && commands.is_none()
        && side_effects.is_none();
    let covered = |globs: &Vec<Glob>| globs.iter().any(|wide| wide.covers(glob));
    rule.action == Action::Allow
        && everybody
        && rule.except.is_empty()
        && paths.as_ref().is_none_or(covered)
}

/// Whether the rule may object to some of it.
fn touches(rule: &Capability, glob: &Glob) -> bool {
    match rule.action {
        Action::Allow | Action::Pass => false,
        Action::Deny | Action::RequireReview => match &rule.condition.paths {
            None => true,
            Some(globs) => globs.iter().any(|other| !are_apart(other, glob)),
        },
    }
}

/// Whether two globs are anchored in folders of different names.
fn are_apart(a: &Glob, b: &Glob) -> bool {
    match (folder(a), folder(b)) {
        (Some(a), Some(b)) => a != b,
        (Some(_) | None, Some(_) | None) => false,
    }
}

/// The folder at the root that a glob is anchored in, as careless disks would read it.
fn folder(glob: &Glob) -> Option<String> {
    let (first, _) = glob.text().trim_start_matches('/').split_once('/')?;
    let plain = !first.contains(['*', '?', '[', '{', '}']);
    let path = fluffy_base::ProjectPath::parse(first).ok().filter(|_| plain)?;
    Some(path.folded().into_owned())
}

#[cfg(test)]
mod tests {
    use crate::{Glob, PolicyFile};

    fn allow_all(rules: &str, glob: &str) -> bool {
        let text = format!("capabilities:\n{rules}");
        let policy = PolicyFile::parse("p", &text).unwrap();
        policy.capabilities().unwrap().allow_all("fs.write", &Glob::parse(glob).unwrap())
    }

    const ALLOW: &str =
        "  - { name: a, match: { syscall: fs.write, path_glob: [src/**] }, action: allow }\n";

    #[test]
    fn what_one_rule_allows_and_none_objects_to_is_allowed_as_a_whole() {
        assert!(allow_all(ALLOW, "src/**"));
        assert!(allow_all(ALLOW, "src/deep/**/*.rs"));
        for wider in ["**", "docs/**", "*.rs", "{src,docs}/**"] {
            assert!(!allow_all(ALLOW, wider), "{wider}");
        }
    }

    #[test]
    fn an_objection_that_cannot_be_ruled_out_stands_against_it() {
        let with = |more: &str| allow_all(&format!("{ALLOW}{more}"), "src/**");
        assert!(with(
            "  - { name: d, match: { syscall: fs.*, path_glob: [docs/**] }, action: deny }\n"
        ));
        for more in [
            "  - { name: d, match: { syscall: fs.*, path_glob: [src/x/**] }, action: deny }\n",
            "  - { name: d, match: { syscall: fs.*, path_glob: [SRC/x/**] }, action: deny }\n",
            "  - { name: d, match: { syscall: '*', path_glob: ['*.env'] }, action: require_review }\n",
            "  - { name: d, match: { syscall: fs.write, actor: model }, action: deny }\n",
        ] {
            assert!(!with(more), "{more}");
        }
        let limited = ALLOW.replace("action", "except: [{ path_glob: [src/x] }], action");
        assert!(!allow_all(&limited, "src/**"));
        assert!(!allow_all(&ALLOW.replace("path_glob", "actor: user, path_glob"), "src/**"));
    }
}
