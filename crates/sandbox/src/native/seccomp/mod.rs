//! Which system calls a sandbox may make.
//!
//! The tables are data: [`allowed`] has what passes with any arguments, [`guarded`] what passes with
//! some, [`refused`] what never does and why. [`compile`] makes a filter of them for the kernel, and
//! [`install`] puts it on the calling thread, from where it goes to whatever that becomes or starts.
//!
//! **Invariant.** What is not allowed is refused with `EPERM`. A call that is newer than these tables,
//! or made by the numbers of x32, is answered with `ENOSYS`, as an older kernel would, so that libraries
//! fall back; one made by the numbers of another architecture ends the process.
//!
//! `standard-net` allows what `standard` does: both have sockets, and what these lead to is a matter of
//! the network namespace. It keeps its own name because configurations and records tell them apart.

mod allowed;
mod call;
mod guarded;
pub(crate) mod json;
mod kernel;
mod refused;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use self::allowed::ALLOWED;
use self::call::{Test, When};
use self::guarded::{Guard, Guarded};
pub(crate) use self::kernel::compile_kernel;
use self::refused::{ABSENT, REFUSED};
use crate::profile::Profile;

/// The newest call in the tables, of Linux 6.17.
const NEWEST: u32 = 469;

/// Instructions that the kernel takes in one filter.
const MOST_INSTRUCTIONS: usize = 4096;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: (TargetArch, u32) = (TargetArch::x86_64, 0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: (TargetArch, u32) = (TargetArch::aarch64, 0xc000_00b7);

/// Why there is no filter.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SeccompError {
    /// The tables make no filter.
    #[error("seccomp profile `{profile}` cannot be compiled")]
    Compile {
        /// Which.
        profile: Profile,
        /// Why not.
        source: seccompiler::BackendError,
    },
    /// The tables make too large a filter.
    #[error("seccomp profile `{0}` is too large for the kernel")]
    TooLarge(Profile),
    /// The kernel's own filter cannot be made.
    #[error("the kernel's own seccomp filter cannot be compiled")]
    Kernel(#[source] seccompiler::BackendError),
    /// The kernel did not take it.
    #[error("the seccomp filter cannot be installed")]
    Install(#[from] seccompiler::Error),
}

/// A call that a profile refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// Its name in the kernel's headers.
    pub name: &'static str,
    /// What passes nevertheless.
    pub unless: Option<&'static str>,
    /// Why the rest does not.
    pub why: &'static str,
}

/// The filter of a profile.
pub(crate) fn compile(profile: Profile) -> Result<BpfProgram, SeccompError> {
    answering(profile, libc::EPERM as u32)
}

/// Puts a filter on the calling thread, for good. It allocates nothing, so that it may be called between
/// fork and exec.
pub(crate) fn install(filter: &BpfProgram) -> Result<(), SeccompError> {
    Ok(seccompiler::apply_filter(filter)?)
}

/// What a profile refuses, by name.
pub fn refused(profile: Profile) -> Vec<Refused> {
    let mut all = Vec::new();
    let mut add = |name, unless, why| all.push(Refused { name, unless, why });
    for refusal in REFUSED.iter().chain(ABSENT) {
        refusal.calls.iter().for_each(|call| add(call.name, None, refusal.why));
    }
    for guarded in guarded::GUARDED {
        add(guarded.call.name, guarded.guard(profile).unless, guarded.why);
    }
    for group in ALLOWED {
        if let (Profile::Strict, Some(why)) = (profile, group.not_strict) {
            group.calls.iter().for_each(|call| add(call.name, None, why));
        }
    }
    all.sort_unstable_by_key(|refused| refused.name);
    all
}

/// The filter of a profile that refuses with this error.
fn answering(profile: Profile, errno: u32) -> Result<BpfProgram, SeccompError> {
    let failed = |source| SeccompError::Compile { profile, source };
    let filter = SeccompFilter::new(
        rules(profile).map_err(failed)?,
        SeccompAction::Errno(errno),
        SeccompAction::Allow,
        ARCHITECTURE.0,
    )
    .map_err(failed)?;
    let mut program = absences();
    program.extend(each(&unguarded(profile), libc::SECCOMP_RET_ALLOW));
    program.extend(BpfProgram::try_from(filter).map_err(failed)?);
    if program.len() > MOST_INSTRUCTIONS {
        return Err(SeccompError::TooLarge(profile));
    }
    Ok(program)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The calls that pass with any arguments, in order.
fn unguarded(profile: Profile) -> BTreeSet<u32> {
    let open = |group: &&allowed::Group| profile != Profile::Strict || group.not_strict.is_none();
    let calls = ALLOWED.iter().filter(open).flat_map(|group| group.calls);
    calls.filter_map(|call| call.number.and_then(|number| u32::try_from(number).ok())).collect()
}

/// Answers these calls in one way, whole ranges of numbers at a time. A filter that compared them one by one would be
/// ten times as long, and the kernel tries a new filter on every number there is.
fn each(numbers: &BTreeSet<u32>, answer: u32) -> BpfProgram {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers.iter().copied() {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let answer = instruction(libc::BPF_RET, 0, 0, answer);
    let range = |(first, last)| {
        [jump(libc::BPF_JGT, last, 2, 0), jump(libc::BPF_JGE, first, 0, 1), answer.clone()]
    };
    ranges.into_iter().flat_map(range).collect()
}

/// What a profile allows with some arguments.
fn rules(profile: Profile) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = Rules::new();
    for guarded in guarded::GUARDED {
        let alternatives = match guarded.guard(profile).when {
            When::Never => continue,
            When::Any(any) => any.iter().map(|all| rule(all)).collect::<Result<_, _>>()?,
        };
        rules.extend(guarded.call.number.map(|number| (number, alternatives)));
    }
    Ok(rules)
}

fn rule(tests: &[Test]) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(tests.iter().map(condition).collect::<Result<_, _>>()?)
}

fn condition(test: &Test) -> Result<SeccompCondition, seccompiler::BackendError> {
    use SeccompCmpArgLen::{Dword, Qword};
    match *test {
        Test::Bits { arg, mask, value } => {
            let width = if u32::try_from(mask).is_ok() { Dword } else { Qword };
            SeccompCondition::new(arg, width, SeccompCmpOp::MaskedEq(mask), value)
        }
        Test::Not { arg, value } => {
            SeccompCondition::new(arg, Dword, SeccompCmpOp::Ne, u64::from(value))
        }
    }
}

impl Guarded {
    fn guard(&self, profile: Profile) -> Guard {
        match profile {
            Profile::Strict => self.strict,
            Profile::Standard | Profile::StandardNet => self.standard,
        }
    }
}

/// What comes before the rules: `ENOSYS` for what the tables do not know and for what they call absent.
/// A call of another architecture ends the process.
fn absences() -> BpfProgram {
    let absent: Vec<u32> = ABSENT
        .iter()
        .flat_map(|refusal| refusal.calls)
        .filter_map(|call| call.number.and_then(|number| u32::try_from(number).ok()))
        .collect();
    before(&absent)
}

/// What comes before every filter's own rules, with these calls taken for absent.
fn before(absent: &[u32]) -> BpfProgram {
    const NUMBER: u32 = 0;
    const MACHINE: u32 = 4;
    // A handful, so that no jump is further than its 255.
    let count = u8::try_from(absent.len()).unwrap_or(u8::MAX);
    let mut program = vec![
        load(MACHINE),
        jump(libc::BPF_JEQ, ARCHITECTURE.1, 1, 0),
        instruction(libc::BPF_RET, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
        // The numbers of x32 are far above, and so is what a kernel takes for a negative number.
        jump(libc::BPF_JGT, NEWEST, count.saturating_add(1), 0),
    ];
    for (left, number) in (0..count).rev().zip(absent.iter().copied()) {
        program.push(jump(libc::BPF_JEQ, number, left.saturating_add(1), 0));
    }
    program.push(instruction(libc::BPF_JMP | libc::BPF_JA, 0, 0, 1));
    program.push(instruction(libc::BPF_RET, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32));
    program
}

/// Loads a word of what the kernel tells a filter about a call.
fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

/// Compares what was loaded, and skips as many instructions.
fn jump(comparison: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    instruction(libc::BPF_JMP | comparison | libc::BPF_K, jt, jf, k)
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}
