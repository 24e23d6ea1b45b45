//! The tables in the words of Docker and Podman.
//!
//! An engine puts its filter on the first process of a container, which is ours and starts the job: so every container
//! gets what `standard` allows, and the first process puts the job's own filter over it, which is exact. Of one call
//! an engine's words cannot say what ours do: `ioctl` passes here, and the filter over it refuses what is refused.

use serde_json::{Value, json};

use super::allowed::ALLOWED;
use super::call::{Call, Test, When};
use super::guarded::GUARDED;
use super::refused::ABSENT;
use crate::profile::Profile;

/// The architecture as the engines name it.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: &str = "SCMP_ARCH_X86_64";
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: &str = "SCMP_ARCH_AARCH64";

/// The filter that an engine puts around a job's own.
pub(crate) fn around_a_job() -> Value {
    let names = |calls: &[Call]| -> Vec<&'static str> {
        calls.iter().filter(|call| call.number.is_some()).map(|call| call.name).collect()
    };
    let allowed: Vec<&str> = ALLOWED.iter().flat_map(|group| names(group.calls)).collect();
    let absent: Vec<&str> = ABSENT.iter().flat_map(|refusal| names(refusal.calls)).collect();
    let mut rules = vec![
        json!({ "names": allowed, "action": "SCMP_ACT_ALLOW" }),
        json!({ "names": absent, "action": "SCMP_ACT_ERRNO", "errnoRet": libc::ENOSYS }),
    ];
    for guarded in GUARDED.iter().filter(|guarded| guarded.call.number.is_some()) {
        let alternatives = match guarded.guard(Profile::Standard).when {
            When::Never => continue,
            When::Any(alternatives) => alternatives,
        };
        for tests in alternatives {
            // Several tests of one argument would be taken for alternatives: none is said then.
            let args: Option<Vec<Value>> = tests.iter().map(test).collect();
            let args = args.unwrap_or_default();
            rules.push(json!({
                "names": [guarded.call.name], "action": "SCMP_ACT_ALLOW", "args": args,
            }));
        }
    }
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": libc::EPERM,
        "architectures": [ARCHITECTURE],
        "syscalls": rules,
    })
}

/// A test in an engine's words, where it has some.
fn test(test: &Test) -> Option<Value> {
    match *test {
        Test::Bits { arg, mask, value } => Some(json!({
            "index": arg, "op": "SCMP_CMP_MASKED_EQ", "value": mask, "valueTwo": value,
        })),
        Test::Not { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_told_what_standard_allows_and_nothing_else() {
        let profile = around_a_job();
        assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
        let rules = profile["syscalls"].as_array().unwrap();
        let allows = |call: &str| {
            let of = |rule: &&Value| {
                rule["action"] == "SCMP_ACT_ALLOW"
                    && rule["names"].as_array().unwrap().iter().any(|name| name == call)
            };
            rules.iter().filter(of).count()
        };
        for refused in super::super::refused(Profile::Standard) {
            let some = refused.unless.is_some();
            assert_eq!(allows(refused.name) > 0, some, "{}", refused.name);
        }
        for call in ["execve", "clone", "seccomp", "landlock_restrict_self", "capset", "prctl"] {
            assert!(allows(call) > 0, "{call}");
        }
        // A family, a type and a protocol each.
        assert_eq!(allows("socket"), 11);
        let sockets = rules.iter().filter(|rule| rule["names"][0] == "socket");
        assert!(sockets.into_iter().all(|rule| !rule["args"].as_array().unwrap().is_empty()));
    }
}
