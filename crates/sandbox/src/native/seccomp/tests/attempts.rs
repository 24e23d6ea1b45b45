//! Calls that are really made, by a child under a filter.
//!
//! The child is the first process of namespaces of its own before it tries anything, so that a call that
//! a broken filter lets through meets nothing. Refusals carry a mark that no call gives by itself.
#![expect(unsafe_code, reason = "a child between fork and exit makes bare system calls")]

use std::ptr;

use super::*;

/// A call and its arguments.
type Attempt = (i64, [u64; 6]);

/// What each attempt was answered with: 0 or the error.
fn attempt(profile: Profile, attempts: &[Attempt]) -> Vec<i32> {
    let filter = marked(profile);
    let size = attempts.len() * size_of::<i32>();
    // SAFETY: a fresh mapping of whole pages, which the child writes and this process reads after it
    // has ended.
    let answers = unsafe {
        libc::mmap(
            ptr::null_mut(),
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(answers, libc::MAP_FAILED);
    let answers = answers.cast::<i32>();
    let status = in_namespaces(|| {
        if install(&filter).is_err() {
            return 3;
        }
        for (at, (number, [a, b, c, d, e, f])) in attempts.iter().enumerate() {
            // SAFETY: the arguments are no addresses of this process but 0, which no call accepts.
            let result = unsafe { libc::syscall(*number, *a, *b, *c, *d, *e, *f) };
            // SAFETY: the mapping holds one answer for each attempt; errno is the thread's own.
            unsafe { *answers.add(at) = if result == -1 { *libc::__errno_location() } else { 0 } };
        }
        0
    });
    assert_eq!(status, 0, "the child did not come to its end");
    // SAFETY: the child has ended, and the mapping has this length.
    let got = unsafe { std::slice::from_raw_parts(answers, attempts.len()) }.to_vec();
    // SAFETY: nobody refers to the mapping any more.
    unsafe { libc::munmap(answers.cast(), size) };
    got
}

/// Runs this in the first process of its own user, mount, process, network, host name and message
/// namespaces, and gives its wait status.
fn in_namespaces(run: impl Fn() -> i32) -> i32 {
    const ALL: i32 = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC;
    wait_for(|| {
        // SAFETY: takes flags alone.
        if unsafe { libc::unshare(ALL) } != 0 {
            return 2;
        }
        let status = wait_for(&run);
        match libc::WIFSIGNALED(status) {
            true => 64 + libc::WTERMSIG(status),
            false => libc::WEXITSTATUS(status),
        }
    }) >> 8
}

/// Runs this in a child and gives its wait status.
fn wait_for(run: impl Fn() -> i32) -> i32 {
    // SAFETY: the child makes system calls alone, takes no lock and allocates nothing.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let code = run();
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above, with a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

#[test]
fn every_refused_call_is_refused_by_the_kernel() {
    let absent: Vec<&str> =
        ABSENT.iter().flat_map(|refusal| refusal.calls).map(|call| call.name).collect();
    let calls = every_call();
    for profile in Profile::ALL {
        let tried: Vec<(&str, i64)> = refused(profile)
            .iter()
            .filter(|row| row.unless.is_none())
            .filter_map(|row| {
                let call = calls.iter().find(|call| call.name == row.name).unwrap();
                Some((row.name, call.number?))
            })
            .collect();
        let attempts: Vec<Attempt> = tried.iter().map(|(_, number)| (*number, [0; 6])).collect();
        for ((name, _), got) in tried.iter().zip(attempt(profile, &attempts)) {
            let expected = if absent.contains(name) { libc::ENOSYS } else { MARK };
            assert_eq!(got, expected, "{name} under {profile}");
        }
        assert!(tried.len() > 80, "the table is not empty");
    }
}

#[test]
fn a_call_that_the_tables_do_not_know_is_not_there() {
    let unknown = [NEWEST + 1, NEWEST + 100, 512, 0x4000_0000, 0x4000_0027, u32::MAX];
    let attempts = unknown.map(|number| (i64::from(number), [0; 6]));
    for profile in Profile::ALL {
        assert_eq!(attempt(profile, &attempts), [libc::ENOSYS; 6], "{profile}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_call_by_the_numbers_of_i386_ends_the_process() {
    for profile in Profile::ALL {
        let filter = compile(profile).unwrap();
        let status = in_namespaces(|| {
            if install(&filter).is_err() {
                return 3;
            }
            // SAFETY: asks for the process id by the numbers of i386; registers are restored.
            unsafe { std::arch::asm!("int 0x80", inlateout("rax") 20_u64 => _) };
            0
        });
        // A kernel that does not know i386 at all ends it with a fault.
        assert!([64 + libc::SIGSYS, 64 + libc::SIGSEGV].contains(&status), "{profile}: {status}");
    }
}

/// Tries one guarded call and says whether it came through to the kernel.
fn passes(profile: Profile, number: i64, args: &[u64]) -> bool {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    attempt(profile, &[(number, all)]) != [MARK]
}

#[track_caller]
fn check(number: i64, args: &[u64], strict: bool, standard: bool) {
    assert_eq!(passes(Profile::Strict, number, args), strict, "strict");
    assert_eq!(passes(Profile::Standard, number, args), standard, "standard");
}

const NOWHERE: u64 = u64::MAX;

#[test]
fn sockets_are_unix_and_for_standard_tcp_and_udp() {
    let filters = [Profile::Strict, Profile::Standard].map(marked);
    let number = libc::SYS_socket as u32;
    for family in 0..64 {
        for kind in 0..16 {
            for protocol in [0, 1, 6, 17, 132, 136, 255, 256, 262] {
                let unix = family == 1 && [1, 2, 5].contains(&kind);
                let inet = [2, 10].contains(&family)
                    && [(1, 0), (1, 6), (2, 0), (2, 17)].contains(&(kind, protocol));
                let args = [family, kind | 0o2_000_000 | 0o4_000, protocol, 0, 0, 0];
                let judged = filters
                    .each_ref()
                    .map(|filter| answer(filter, ARCHITECTURE.1, number, args) == Answer::Allow);
                assert_eq!(judged, [unix, unix || inet], "{args:?}");
            }
        }
    }
    let everything: Vec<Attempt> = (0..64)
        .flat_map(|family| (0..16).map(move |kind| (libc::SYS_socket, [family, kind, 0, 0, 0, 0])))
        .collect();
    let opened = |profile| {
        let answers = attempt(profile, &everything);
        answers.iter().filter(|answer| **answer != MARK).count()
    };
    assert_eq!(opened(Profile::Strict), 3);
    assert_eq!(opened(Profile::Standard), 7);
}

#[test]
fn the_upper_half_of_an_int_hides_nothing() {
    let high = 1 << 32;
    check(libc::SYS_socket, &[high | 40, 1, 0], false, false);
    check(libc::SYS_socket, &[high | 1, high | 1, 0], true, true);
    check(libc::SYS_ioctl, &[NOWHERE, high | 0x5412], false, false);
    check(libc::SYS_personality, &[high | 0x0040_0000], false, false);
}

#[test]
fn a_pair_of_sockets_is_unix() {
    check(libc::SYS_socketpair, &[1, 1, 0, 0], true, true);
    check(libc::SYS_socketpair, &[2, 1, 0, 0], false, false);
    check(libc::SYS_socketpair, &[16, 3, 0, 0], false, false);
}

#[test]
fn a_process_is_no_thread_and_has_no_namespace() {
    let (sighand, thread) = (libc::CLONE_SIGHAND as u64, libc::CLONE_THREAD as u64);
    // The kernel takes neither as it stands, so that nothing is started where the filter lets it pass.
    check(libc::SYS_clone, &[sighand], false, true);
    check(libc::SYS_clone, &[thread], true, true);
    for namespace in [17, 25, 26, 27, 28, 29, 30].map(|bit| 1 << bit) {
        check(libc::SYS_clone, &[sighand | namespace], false, false);
        check(libc::SYS_clone, &[thread | namespace], false, false);
        check(libc::SYS_unshare, &[namespace], false, false);
    }
    check(libc::SYS_unshare, &[0x80], false, false);
    check(libc::SYS_unshare, &[1 << 40], false, false);
    check(libc::SYS_unshare, &[libc::CLONE_FS as u64], false, true);
}

#[test]
fn nobody_types_into_a_terminal_or_marks_files() {
    for request in [0x5412, 0x541c, 0x541d, 0x5423, 0x4008_6602, 0x401c_5820, 0x4080_6685] {
        check(libc::SYS_ioctl, &[NOWHERE, request], false, false);
    }
    for asking in [0x5401, 0x5413, 0x541b, 0x5421, 0x5451] {
        check(libc::SYS_ioctl, &[NOWHERE, asking], true, true);
    }
    // Becoming the first process of a terminal is what every pty starts with.
    check(libc::SYS_ioctl, &[NOWHERE, 0x540e], false, true);
}

#[test]
fn pipes_are_made_and_devices_are_not() {
    for (kind, made) in
        [(libc::S_IFIFO, true), (libc::S_IFSOCK, true), (libc::S_IFREG, true), (0, true)]
            .into_iter()
            .chain([(libc::S_IFCHR, false), (libc::S_IFBLK, false), (libc::S_IFDIR, false)])
    {
        let mode = u64::from(kind) | 0o600;
        check(libc::SYS_mknodat, &[NOWHERE, 0, mode], false, made);
        #[cfg(target_arch = "x86_64")]
        check(libc::SYS_mknod, &[0, mode], false, made);
    }
}

#[test]
fn a_personality_is_asked_for_and_memory_stays_protected() {
    check(libc::SYS_personality, &[0xffff_ffff], false, true);
    check(libc::SYS_personality, &[0x0004_0000], false, true);
    check(libc::SYS_personality, &[0x0040_0000], false, false);
    check(libc::SYS_personality, &[0x0010_0000], false, false);
}

#[test]
fn an_identity_is_kept() {
    let (keep, root) = (0xffff_ffff, 0);
    for number in [libc::SYS_setresuid, libc::SYS_setresgid] {
        check(number, &[keep, root, keep], false, true);
        check(number, &[root, root, keep], false, false);
        check(number, &[keep, root, root], false, false);
        check(number, &[root, root, root], false, false);
    }
}

#[test]
fn limits_are_the_callers_own() {
    check(libc::SYS_prlimit64, &[0, 7], true, true);
    check(libc::SYS_prlimit64, &[1, 7], false, false);
}

#[test]
fn a_further_filter_may_be_added_and_has_no_listener() {
    check(libc::SYS_seccomp, &[1, 0, 0], false, true);
    check(libc::SYS_seccomp, &[1, 8, 0], false, false);
    check(libc::SYS_seccomp, &[1, 1 << 5, 0], false, false);
}
