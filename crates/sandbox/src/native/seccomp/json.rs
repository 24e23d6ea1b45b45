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

/// The filter that an engine puts around the kernel: the same, and the device of number 0, which is none: in a layer of an
/// overlay it says that a file is gone, and the kernel says so.
pub(crate) fn around_the_kernel() -> Value {
    let mut profile = around_a_job();
    let rules = profile.get_mut("syscalls").and_then(Value::as_array_mut);
    let gone = |name: &str, mode: u32| {
        json!({
            "names": [name], "action": "SCMP_ACT_ALLOW",
            "args": [
                {
                    "index": mode, "op": "SCMP_CMP_MASKED_EQ",
                    "value": libc::S_IFMT, "valueTwo": libc::S_IFCHR,
                },
                { "index": mode + 1, "op": "SCMP_CMP_EQ", "value": 0 },
            ],
        })
    };
    if let Some(rules) = rules {
        rules.push(gone("mknodat", 2));
        if cfg!(target_arch = "x86_64") {
            rules.push(gone("mknod", 1));
        }
    }
    profile
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
    fn around_the_kernel_there_is_what_is_around_a_job_and_the_mark_of_a_file_that_is_gone() {
        let (job, kernel) = (around_a_job(), around_the_kernel());
        let rules = |profile: &Value| profile["syscalls"].as_array().unwrap().clone();
        let more: Vec<Value> = rules(&kernel).into_iter().skip(rules(&job).len()).collect();
        assert!(rules(&kernel).starts_with(&rules(&job)));
        assert!(!more.is_empty());
        for rule in more {
            assert!(rule["names"][0].as_str().unwrap().starts_with("mknod"), "{rule}");
            assert_eq!(rule["args"][0]["valueTwo"], libc::S_IFCHR, "{rule}");
            assert_eq!(rule["args"][1]["value"], 0, "{rule}");
        }
    }

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
