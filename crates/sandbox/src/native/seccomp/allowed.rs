//! What may be called with any arguments.
//!
//! Everything here is one of two kinds: it concerns the caller alone, or it reaches only what the
//! sandbox's mounts, namespaces and groups give it.

use super::call::{Call, calls};

/// Calls that belong together.
#[derive(Debug)]
pub(super) struct Group {
    /// Why `strict` goes without them; nothing if it has them.
    pub(super) not_strict: Option<&'static str>,
    /// The calls.
    pub(super) calls: &'static [Call],
}

const fn every(calls: &'static [Call]) -> Group {
    Group { not_strict: None, calls }
}

const fn standard(not_strict: &'static str, calls: &'static [Call]) -> Group {
    Group { not_strict: Some(not_strict), calls }
}

/// All that every profile, or every profile but `strict`, allows without looking at arguments.
pub(super) const ALLOWED: &[Group] = &[
    // Memory. A mapping that can be executed is how the loader loads a program.
    every(calls! {
        SYS_brk SYS_mmap SYS_mprotect SYS_munmap SYS_mremap SYS_madvise SYS_msync SYS_membarrier
        SYS_mseal SYS_memfd_create
    }),
    every(&[
        // Without it a processor with shadow stacks cannot switch contexts.
        Call::numbered("map_shadow_stack", Some(453), Some(453)),
    ]),
    // What is open already. `ftruncate` gives a `memfd` its size.
    every(calls! {
        SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_preadv SYS_pwritev
        SYS_preadv2 SYS_pwritev2 SYS_lseek SYS_close SYS_close_range SYS_dup SYS_dup3 SYS_fcntl
        SYS_ftruncate SYS_fadvise64 SYS_pipe2;
        x86_64: SYS_dup2 SYS_pipe
    }),
    // Finding, opening and reading files. Opening takes any flags: what can be written is a matter of
    // mounts, and `strict` sees nothing that can be but its own `/tmp`.
    every(calls! {
        SYS_openat SYS_openat2 SYS_fstat SYS_newfstatat SYS_statx SYS_statfs SYS_fstatfs
        SYS_readlinkat SYS_getdents64 SYS_getcwd SYS_chdir SYS_fchdir SYS_faccessat SYS_faccessat2;
        x86_64: SYS_open SYS_stat SYS_lstat SYS_access SYS_readlink
    }),
    // Waiting for something to happen.
    every(calls! {
        SYS_ppoll SYS_pselect6 SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2
        SYS_eventfd2 SYS_signalfd4 SYS_timerfd_create SYS_timerfd_settime SYS_timerfd_gettime;
        x86_64: SYS_poll SYS_select SYS_epoll_create SYS_epoll_wait SYS_eventfd SYS_signalfd
    }),
    // Asking the time and waiting for one.
    every(calls! {
        SYS_clock_gettime SYS_clock_getres SYS_clock_nanosleep SYS_nanosleep SYS_gettimeofday
        SYS_times SYS_getitimer SYS_setitimer SYS_timer_create SYS_timer_settime SYS_timer_gettime
        SYS_timer_getoverrun SYS_timer_delete;
        x86_64: SYS_time SYS_alarm
    }),
    // Threads; `clone` makes them and is guarded.
    every(calls! {
        SYS_futex SYS_futex_waitv SYS_set_robust_list SYS_get_robust_list SYS_set_tid_address
        SYS_gettid SYS_rseq SYS_getcpu SYS_sched_yield SYS_sched_getaffinity SYS_sched_getparam
        SYS_sched_getscheduler SYS_sched_get_priority_max SYS_sched_get_priority_min SYS_exit
        SYS_exit_group
    }),
    every(&[
        Call::numbered("futex_wake", Some(454), Some(454)),
        Call::numbered("futex_wait", Some(455), Some(455)),
        Call::numbered("futex_requeue", Some(456), Some(456)),
    ]),
    // Signals. No handler returns without `rt_sigreturn`; `tgkill` and `tkill` are how a program aborts.
    every(calls! {
        SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_rt_sigsuspend SYS_rt_sigpending
        SYS_rt_sigtimedwait SYS_sigaltstack SYS_restart_syscall SYS_tgkill SYS_tkill;
        x86_64: SYS_pause
    }),
    every(&[
        // The kernel makes a traced program call these two; by itself it gets a signal for them.
        Call::numbered("uretprobe", Some(335), None),
        Call::numbered("uprobe", Some(336), None),
    ]),
    // Asking about itself. What `prctl` changes is the caller; without privileges it loosens nothing.
    every(calls! {
        SYS_getpid SYS_getppid SYS_getpgid SYS_getsid SYS_getuid SYS_geteuid SYS_getgid SYS_getegid
        SYS_getgroups SYS_getresuid SYS_getresgid SYS_getrusage SYS_uname SYS_sysinfo SYS_getrandom
        SYS_capget SYS_prctl;
        x86_64: SYS_getpgrp SYS_arch_prctl
    }),
    every(&[Call::numbered("getrlimit", Some(97), Some(163))]),
    // Becoming another program. The sandbox's first process becomes the job this way; without a
    // process beside it, that is all that `strict` can do with it, and the filter stays.
    every(calls! { SYS_execve SYS_execveat }),
    // Sockets; `socket` and `socketpair` say of which kind, and are guarded.
    every(calls! {
        SYS_connect SYS_bind SYS_listen SYS_accept SYS_accept4 SYS_shutdown SYS_sendto SYS_recvfrom
        SYS_sendmsg SYS_recvmsg SYS_sendmmsg SYS_recvmmsg SYS_getsockname SYS_getpeername
        SYS_setsockopt SYS_getsockopt
    }),
    // Other processes, which are the sandbox's own: it sees none beside them.
    standard(
        "a guest has threads and no process beside it",
        calls! {
            SYS_wait4 SYS_waitid SYS_kill SYS_pidfd_open SYS_pidfd_send_signal SYS_rt_sigqueueinfo
            SYS_rt_tgsigqueueinfo SYS_setsid SYS_setpgid;
            x86_64: SYS_fork SYS_vfork
        },
    ),
    // Changing files, as far as mounts let it.
    standard(
        "a guest answers and leaves no files",
        calls! {
            SYS_mkdirat SYS_unlinkat SYS_renameat2 SYS_linkat SYS_symlinkat SYS_fchmod SYS_fchmodat
            SYS_fchown SYS_fchownat SYS_truncate SYS_fallocate SYS_utimensat SYS_umask SYS_flock
            SYS_fsync SYS_fdatasync SYS_syncfs;
            x86_64: SYS_creat SYS_mkdir SYS_rmdir SYS_unlink SYS_rename SYS_link SYS_symlink SYS_chmod
            SYS_chown SYS_lchown SYS_utime SYS_utimes SYS_futimesat
        },
    ),
    standard(
        "a guest answers and leaves no files",
        &[
            Call::numbered("renameat", Some(264), Some(38)),
            Call::numbered("sync_file_range", Some(277), Some(84)),
            Call::numbered("fchmodat2", Some(452), Some(452)),
        ],
    ),
    // Extended attributes. Those that mean something to the kernel need privileges.
    standard(
        "a guest has no use for the attributes of files",
        calls! {
            SYS_getxattr SYS_lgetxattr SYS_fgetxattr SYS_listxattr SYS_llistxattr SYS_flistxattr
            SYS_setxattr SYS_lsetxattr SYS_fsetxattr SYS_removexattr SYS_lremovexattr
            SYS_fremovexattr
        },
    ),
    standard(
        "a guest has no use for the attributes of files",
        &[
            Call::numbered("setxattrat", Some(463), Some(463)),
            Call::numbered("getxattrat", Some(464), Some(464)),
            Call::numbered("listxattrat", Some(465), Some(465)),
            Call::numbered("removexattrat", Some(466), Some(466)),
            Call::numbered("file_getattr", Some(468), Some(468)),
        ],
    ),
    // Copying within the kernel, and older ways of listing and reading.
    standard(
        "every program does without when it is refused",
        calls! {
            SYS_copy_file_range SYS_sendfile SYS_splice SYS_tee SYS_readahead SYS_io_setup
            SYS_io_destroy SYS_io_submit SYS_io_cancel SYS_io_getevents;
            x86_64: SYS_getdents
        },
    ),
    standard(
        "every program does without when it is refused",
        &[
            Call::numbered("io_pgetevents", Some(333), Some(292)),
            Call::numbered("cachestat", Some(451), Some(451)),
        ],
    ),
    // Watching files.
    standard(
        "a guest watches no files",
        calls! {
            SYS_inotify_init1 SYS_inotify_add_watch SYS_inotify_rm_watch;
            x86_64: SYS_inotify_init
        },
    ),
    // Holding and tagging memory, within the limits of the group.
    standard(
        "a guest needs no say in where its memory is",
        calls! {
            SYS_mincore SYS_mlock SYS_mlock2 SYS_mlockall SYS_munlock SYS_munlockall SYS_pkey_alloc
            SYS_pkey_free SYS_pkey_mprotect
        },
    ),
    // Shared memory, semaphores and queues, in a namespace of the sandbox's own.
    standard(
        "a guest has nobody to share with",
        calls! {
            SYS_shmget SYS_shmat SYS_shmctl SYS_shmdt SYS_semget SYS_semop SYS_semctl SYS_semtimedop
            SYS_msgget SYS_msgsnd SYS_msgrcv SYS_msgctl SYS_mq_open SYS_mq_unlink SYS_mq_timedsend
            SYS_mq_timedreceive SYS_mq_notify SYS_mq_getsetattr
        },
    ),
    // Order among its own processes. More than its share of the machine needs privileges.
    standard(
        "a guest needs no say in when it runs",
        calls! {
            SYS_getpriority SYS_setpriority SYS_sched_setaffinity SYS_sched_setattr SYS_sched_getattr
            SYS_sched_setparam SYS_sched_setscheduler SYS_sched_rr_get_interval SYS_ioprio_get
            SYS_ioprio_set
        },
    ),
    // Taking rights away from itself.
    standard(
        "a guest has no rights left to give up",
        calls! {
            SYS_landlock_create_ruleset SYS_landlock_add_rule SYS_landlock_restrict_self SYS_capset
        },
    ),
    standard(
        "a guest has no rights left to give up",
        &[Call::numbered("setrlimit", Some(160), Some(164))],
    ),
];
