//! Asks the operating system which Landlock it has. The one system call here that has no safe wrapper.
#![expect(unsafe_code, reason = "one system call without a safe wrapper")]

/// Landlock's version, if the kernel has it.
pub(crate) fn abi() -> Option<u32> {
    const VERSION: libc::c_uint = 1;
    let none: *const libc::c_void = std::ptr::null();
    // SAFETY: with a null attribute, size 0 and the flag VERSION, landlock_create_ruleset(2) only
    // returns a number: it reads no memory of ours and makes no descriptor.
    let answer =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) };
    u32::try_from(answer).ok().filter(|version| *version > 0)
}
