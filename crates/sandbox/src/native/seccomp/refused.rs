//! What no profile allows, and why.
//!
//! A filter needs no such list, for it refuses whatever is not allowed. People do: a call that is in
//! neither table is one that nobody has thought about, and a test finds it.

use super::call::{Call, calls};

/// Calls that are refused for the same reason.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The reason.
    pub(super) why: &'static str,
    /// The calls.
    pub(super) calls: &'static [Call],
}

const fn refuse(why: &'static str, calls: &'static [Call]) -> Refusal {
    Refusal { why, calls }
}

/// Calls that are answered as if the kernel did not have them, so that programs fall back on those that
/// it can judge.
pub(super) const ABSENT: &[Refusal] = &[
    refuse(
        "its flags lie in memory, where no filter sees them; `clone` does the same",
        calls! { SYS_clone3 },
    ),
    refuse(
        "the older ways to ask about mounts show the same",
        &[
            Call::numbered("statmount", Some(457), Some(457)),
            Call::numbered("listmount", Some(458), Some(458)),
        ],
    ),
];

/// Calls that are refused whatever their arguments.
pub(super) const REFUSED: &[Refusal] = &[
    refuse(
        "what is mounted where is the sandbox's wall",
        calls! {
            SYS_mount SYS_umount2 SYS_pivot_root SYS_chroot SYS_setns SYS_open_tree SYS_move_mount
            SYS_fsopen SYS_fsconfig SYS_fsmount SYS_fspick SYS_mount_setattr
        },
    ),
    refuse(
        "what is mounted where is the sandbox's wall",
        &[Call::numbered("open_tree_attr", Some(467), Some(467))],
    ),
    refuse(
        "it changes the running kernel or looks into it",
        calls! {
            SYS_reboot SYS_kexec_load SYS_init_module SYS_finit_module SYS_delete_module SYS_bpf
            SYS_perf_event_open SYS_syslog SYS_lookup_dcookie;
            x86_64: SYS_iopl SYS_ioperm SYS_modify_ldt
        },
    ),
    refuse(
        "it changes the running kernel or looks into it",
        &[Call::numbered("kexec_file_load", Some(320), Some(294))],
    ),
    refuse(
        "it concerns the whole machine",
        calls! {
            SYS_clock_settime SYS_settimeofday SYS_adjtimex SYS_clock_adjtime SYS_sethostname
            SYS_setdomainname SYS_swapon SYS_swapoff SYS_acct SYS_quotactl SYS_quotactl_fd
            SYS_vhangup SYS_sync
        },
    ),
    refuse(
        "it reaches into another process",
        calls! {
            SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_process_madvise
            SYS_process_mrelease SYS_pidfd_getfd SYS_kcmp SYS_userfaultfd
        },
    ),
    refuse(
        "a job has one identity and keeps it",
        calls! {
            SYS_setuid SYS_setgid SYS_setreuid SYS_setregid SYS_setfsuid
            SYS_setfsgid SYS_setgroups
        },
    ),
    refuse(
        "keys are not kept apart by namespaces",
        calls! { SYS_add_key SYS_request_key SYS_keyctl },
    ),
    refuse(
        "a file opened by its handle is opened past the mounts",
        calls! { SYS_open_by_handle_at SYS_name_to_handle_at SYS_fanotify_init SYS_fanotify_mark },
    ),
    refuse(
        "what it does is asked for in memory, where no filter sees it",
        calls! { SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register },
    ),
    refuse(
        "few programs need it and many attacks on the kernel did",
        calls! {
            SYS_mbind SYS_set_mempolicy SYS_get_mempolicy SYS_set_mempolicy_home_node
            SYS_migrate_pages SYS_move_pages SYS_remap_file_pages SYS_memfd_secret SYS_vmsplice
        },
    ),
    refuse(
        "attributes of files outlast the sandbox and get in the way of whoever reads or removes them",
        &[Call::numbered("file_setattr", Some(469), Some(469))],
    ),
    refuse(
        "the machine's security modules are not the job's to ask or change",
        &[
            Call::numbered("lsm_get_self_attr", Some(459), Some(459)),
            Call::numbered("lsm_set_self_attr", Some(460), Some(460)),
            Call::numbered("lsm_list_modules", Some(461), Some(461)),
        ],
    ),
    refuse(
        "kernels of today do without it",
        calls! {
            SYS_nfsservctl;
            x86_64: SYS__sysctl SYS_afs_syscall SYS_epoll_ctl_old SYS_epoll_wait_old
            SYS_get_thread_area SYS_getpmsg SYS_putpmsg SYS_security SYS_set_thread_area SYS_sysfs
            SYS_tuxcall SYS_uselib SYS_ustat SYS_vserver
        },
    ),
    refuse(
        "kernels of today do without it",
        &[
            Call::numbered("create_module", Some(174), None),
            Call::numbered("get_kernel_syms", Some(177), None),
            Call::numbered("query_module", Some(178), None),
        ],
    ),
];
