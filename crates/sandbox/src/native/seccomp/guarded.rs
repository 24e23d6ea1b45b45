//! What may be called with some arguments only.

use super::call::{Call, Test, When, call};

/// A call whose arguments decide.
#[derive(Debug)]
pub(super) struct Guarded {
    /// The call.
    pub(super) call: Call,
    /// When `strict` allows it.
    pub(super) strict: Guard,
    /// When the others do. Never less than `strict`.
    pub(super) standard: Guard,
    /// Why the rest is refused.
    pub(super) why: &'static str,
}

/// A condition, and its words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Guard {
    /// The condition.
    pub(super) when: When,
    /// What passes, for people; nothing if nothing does.
    pub(super) unless: Option<&'static str>,
}

const fn only(unless: &'static str, any: &'static [&'static [Test]]) -> Guard {
    Guard { when: When::Any(any), unless: Some(unless) }
}

const NEVER: Guard = Guard { when: When::Never, unless: None };

/// Every flag of `clone` that makes a namespace. The one for time is missing: its bit is part of the
/// signal at the end there, and only `unshare` and `clone3` know it as a flag.
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;
/// What `unshare` may part with: nothing but what threads have in common.
const THREADLIKE: u64 = (libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SYSVSEM
    | libc::CLONE_VM
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD) as u64;
const THREAD: u64 = libc::CLONE_THREAD as u64;

/// A socket's type without the two flags that ride on it.
const TYPE: u64 = 0xffff_ffff & !((libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) as u64);

const fn family(family: i32) -> Test {
    Test::int(0, family as u32)
}

const fn kind(kind: i32) -> Test {
    Test::bits(1, TYPE, kind as u64)
}

const fn protocol(protocol: i32) -> Test {
    Test::int(2, protocol as u32)
}

const UNIX_STREAM: &[Test] = &[family(libc::AF_UNIX), kind(libc::SOCK_STREAM)];
const UNIX_DGRAM: &[Test] = &[family(libc::AF_UNIX), kind(libc::SOCK_DGRAM)];
const UNIX_SEQPACKET: &[Test] = &[family(libc::AF_UNIX), kind(libc::SOCK_SEQPACKET)];

const UNIX: Guard = only("of the Unix family", &[UNIX_STREAM, UNIX_DGRAM, UNIX_SEQPACKET]);

// The protocol is part of it: the same type of socket also leads to SCTP, MPTCP, SMC and ping.
const UNIX_TCP_UDP: Guard = only(
    "of the Unix family, or TCP or UDP",
    &[
        UNIX_STREAM,
        UNIX_DGRAM,
        UNIX_SEQPACKET,
        &[family(libc::AF_INET), kind(libc::SOCK_STREAM), protocol(0)],
        &[family(libc::AF_INET), kind(libc::SOCK_STREAM), protocol(libc::IPPROTO_TCP)],
        &[family(libc::AF_INET), kind(libc::SOCK_DGRAM), protocol(0)],
        &[family(libc::AF_INET), kind(libc::SOCK_DGRAM), protocol(libc::IPPROTO_UDP)],
        &[family(libc::AF_INET6), kind(libc::SOCK_STREAM), protocol(0)],
        &[family(libc::AF_INET6), kind(libc::SOCK_STREAM), protocol(libc::IPPROTO_TCP)],
        &[family(libc::AF_INET6), kind(libc::SOCK_DGRAM), protocol(0)],
        &[family(libc::AF_INET6), kind(libc::SOCK_DGRAM), protocol(libc::IPPROTO_UDP)],
    ],
);

// Requests that ask about a terminal or a pipe, and those that set the two flags of a descriptor.
const ASKING: Guard = only(
    "asking about a terminal or setting a descriptor's flags",
    &[
        &[Test::int(1, 0x5401)],      // TCGETS
        &[Test::int(1, 0x802c_542a)], // TCGETS2
        &[Test::int(1, 0x5413)],      // TIOCGWINSZ
        &[Test::int(1, 0x541b)],      // FIONREAD
        &[Test::int(1, 0x5421)],      // FIONBIO
        &[Test::int(1, 0x5450)],      // FIONCLEX
        &[Test::int(1, 0x5451)],      // FIOCLEX
    ],
);

const HARMLESS_REQUESTS: Guard = only(
    "other requests",
    &[&[
        Test::not(1, 0x5412),      // TIOCSTI types into a terminal as its user
        Test::not(1, 0x541c),      // TIOCLINUX pastes into a console
        Test::not(1, 0x541d),      // TIOCCONS takes over the console's output
        Test::not(1, 0x5423),      // TIOCSETD loads drivers for other kinds of lines
        Test::not(1, 0x4008_6602), // FS_IOC_SETFLAGS: immutable, case-folding, …
        Test::not(1, 0x401c_5820), // FS_IOC_FSSETXATTR, the same and more
        Test::not(1, 0x800c_6613), // FS_IOC_SET_ENCRYPTION_POLICY
        Test::not(1, 0xc050_6617), // FS_IOC_ADD_ENCRYPTION_KEY
        Test::not(1, 0x4080_6685), // FS_IOC_ENABLE_VERITY
    ]],
);

const fn node(arg: u8, kind: u32) -> Test {
    Test::bits(arg, libc::S_IFMT as u64, kind as u64)
}

const EFFECTIVE: Guard =
    only("for the effective id alone", &[&[Test::int(0, 0xffff_ffff), Test::int(2, 0xffff_ffff)]]);

/// All calls whose arguments decide.
pub(super) const GUARDED: &[Guarded] = &[
    Guarded {
        call: call!(SYS_clone),
        strict: only("for a thread", &[&[Test::bits(0, NAMESPACES | THREAD, THREAD)]]),
        standard: only("without a new namespace", &[&[Test::bits(0, NAMESPACES, 0)]]),
        why: "in a namespace of its own a process has every privilege, and the kernel's rarely used \
              parts to try them on",
    },
    Guarded {
        call: call!(SYS_unshare),
        strict: NEVER,
        standard: only("without a new namespace", &[&[Test::bits(0, !THREADLIKE, 0)]]),
        why: "in a namespace of its own a process has every privilege, and the kernel's rarely used \
              parts to try them on",
    },
    Guarded {
        call: call!(SYS_socket),
        strict: UNIX,
        standard: UNIX_TCP_UDP,
        why: "other families and protocols lead past the network namespace or into rarely used parts \
              of the kernel",
    },
    Guarded {
        call: call!(SYS_socketpair),
        strict: UNIX,
        standard: UNIX,
        why: "other families and protocols lead past the network namespace or into rarely used parts \
              of the kernel",
    },
    Guarded {
        call: call!(SYS_ioctl),
        strict: ASKING,
        standard: HARMLESS_REQUESTS,
        why: "typing into a terminal makes its user run commands; attributes of files outlast the \
              sandbox and get in the way of whoever reads or removes them",
    },
    Guarded {
        call: call!(x86_64: SYS_mknod),
        strict: NEVER,
        standard: only(
            "for pipes, sockets and plain files",
            &[
                &[node(1, 0)],
                &[node(1, libc::S_IFREG)],
                &[node(1, libc::S_IFIFO)],
                &[node(1, libc::S_IFSOCK)],
            ],
        ),
        why: "a device is a way to the hardware, and in an overlay one kind of it means a deleted file",
    },
    Guarded {
        call: call!(SYS_mknodat),
        strict: NEVER,
        standard: only(
            "for pipes, sockets and plain files",
            &[
                &[node(2, 0)],
                &[node(2, libc::S_IFREG)],
                &[node(2, libc::S_IFIFO)],
                &[node(2, libc::S_IFSOCK)],
            ],
        ),
        why: "a device is a way to the hardware, and in an overlay one kind of it means a deleted file",
    },
    Guarded {
        call: call!(SYS_personality),
        strict: NEVER,
        // Sanitizers and debuggers ask for addresses that do not change; that weakens only themselves.
        standard: only(
            "to ask, or for fixed addresses",
            &[
                &[Test::int(0, 0)],
                &[Test::int(0, 0xffff_ffff)],
                &[Test::int(0, libc::ADDR_NO_RANDOMIZE as u32)],
            ],
        ),
        why: "other personalities switch protections of memory off",
    },
    // `make` starts every command with its effective ids set back to its real ones. A job has the same
    // id three times over and no privilege, so that for the kernel, too, that one is all there is.
    Guarded {
        call: call!(SYS_setresuid),
        strict: NEVER,
        standard: EFFECTIVE,
        why: "a job has one identity and keeps it",
    },
    Guarded {
        call: call!(SYS_setresgid),
        strict: NEVER,
        standard: EFFECTIVE,
        why: "a job has one identity and keeps it",
    },
    Guarded {
        call: call!(SYS_prlimit64),
        strict: only("for the caller itself", &[&[Test::int(0, 0)]]),
        standard: only("for the caller itself", &[&[Test::int(0, 0)]]),
        why: "limits of the sandbox's first process are not the job's to change",
    },
    Guarded {
        call: call!(SYS_seccomp),
        strict: NEVER,
        // Every flag but the one for a listener, which would let one process answer for another.
        standard: only("without a listener", &[&[Test::bits(1, 0xffff_ffff & !0b1_0111, 0)]]),
        why: "a listener answers the calls of other processes in the kernel's place",
    },
];
