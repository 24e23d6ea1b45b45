//! Which system calls the kernel itself goes without, and whatever runs in it.
//!
//! This one is a list of what is refused: what a sandbox allows must pass here, and so must what sets one up. It is
//! what no profile allows, less what the setting up needs, and a few more with some arguments.
//!
//! **Invariant.** No profile allows what is refused here: a filter under another only takes away.

use std::collections::BTreeSet;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use super::call::{Call, Test, call};
use super::{ARCHITECTURE, Rules, SeccompError, before, each, refused::REFUSED, rule};

/// What no profile allows and the setting up of a sandbox needs.
const NEEDED: [&str; 10] = [
    "fsconfig",
    "fsmount",
    "fsopen",
    "mount",
    "mount_setattr",
    "move_mount",
    "open_tree",
    "pivot_root",
    "sethostname",
    "umount2",
];

/// Refused when all tests of one of these hold.
struct With {
    call: Call,
    any: &'static [&'static [Test]],
}

/// Families of sockets that the kernel has a use for. Names are looked up with the help of the last.
const fn no_family_but_four(first: u8) -> [Test; 4] {
    [
        Test::not(first, libc::AF_UNIX as u32),
        Test::not(first, libc::AF_INET as u32),
        Test::not(first, libc::AF_INET6 as u32),
        Test::not(first, libc::AF_NETLINK as u32),
    ]
}

const OTHER_FAMILIES: &[Test] = &no_family_but_four(0);

const fn node(arg: u8, kind: u32) -> Test {
    Test::bits(arg, libc::S_IFMT as u64, kind as u64)
}

const WITH: &[With] = &[
    With { call: call!(SYS_socket), any: &[OTHER_FAMILIES] },
    With { call: call!(SYS_socketpair), any: &[OTHER_FAMILIES] },
    With {
        call: call!(SYS_ioctl),
        any: &[
            &[Test::int(1, 0x5412)], // TIOCSTI types into a terminal as its user
            &[Test::int(1, 0x541c)], // TIOCLINUX pastes into a console
            &[Test::int(1, 0x541d)], // TIOCCONS takes over the console's output
            &[Test::int(1, 0x5423)], // TIOCSETD loads drivers for other kinds of lines
        ],
    },
    // Limits of other processes are not the kernel's to change: Linux asks for no more than the same user.
    With { call: call!(SYS_prlimit64), any: &[&[Test::not(0, 0)]] },
    // The device of number 0 is none: in a layer of an overlay it says that a file is gone, and the kernel says so.
    With {
        call: call!(x86_64: SYS_mknod),
        any: &[&[node(1, libc::S_IFCHR), Test::not(2, 0)], &[node(1, libc::S_IFBLK)]],
    },
    With {
        call: call!(SYS_mknodat),
        any: &[&[node(2, libc::S_IFCHR), Test::not(3, 0)], &[node(2, libc::S_IFBLK)]],
    },
];

/// The kernel's own filter.
pub(crate) fn compile_kernel() -> Result<BpfProgram, SeccompError> {
    let mut rules = Rules::new();
    for with in WITH {
        let Some(number) = with.call.number else { continue };
        let any = with.any.iter().map(|all| rule(all)).collect::<Result<_, _>>();
        rules.insert(number, any.map_err(SeccompError::Kernel)?);
    }
    let refusal = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, ARCHITECTURE.0);
    let mut program = before(&[]);
    program.extend(each(&refused(), libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    let filter = filter.and_then(BpfProgram::try_from).map_err(SeccompError::Kernel)?;
    program.extend(filter);
    Ok(program)
}

/// The calls that are refused with any arguments, in order.
fn refused() -> BTreeSet<u32> {
    let calls = REFUSED.iter().flat_map(|refusal| refusal.calls);
    let calls = calls.filter(|call| !NEEDED.contains(&call.name));
    calls.filter_map(|call| call.number.and_then(|number| u32::try_from(number).ok())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::seccomp::{ALLOWED, guarded::GUARDED};

    #[test]
    fn what_is_needed_is_what_no_profile_allows() {
        let known: Vec<_> = REFUSED.iter().flat_map(|refusal| refusal.calls).collect();
        for name in NEEDED {
            assert!(known.iter().any(|call| call.name == name), "{name}");
        }
    }

    #[test]
    fn nothing_that_a_profile_allows_is_refused_to_the_kernel() {
        let refused = refused();
        let allowed = ALLOWED.iter().flat_map(|group| group.calls);
        for call in allowed.chain(GUARDED.iter().map(|guarded| &guarded.call)) {
            let number = call.number.and_then(|number| u32::try_from(number).ok());
            assert!(number.is_none_or(|number| !refused.contains(&number)), "{}", call.name);
        }
    }
}
