//! One system call, and when it may be made.
//!
//! A name is all that other runtimes need of it; the number is what this machine's kernel knows it by.

use libc::c_long;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the system calls of this architecture are not in the table");

/// A system call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// Its name in the kernel's headers.
    pub(super) name: &'static str,
    /// Its number here; nothing where this architecture does without.
    pub(super) number: Option<c_long>,
}

impl Call {
    /// A call by the name of its constant.
    pub(super) const fn named(constant: &'static str, number: Option<c_long>) -> Self {
        let (_, name) = constant.split_at("SYS_".len());
        Self { name, number }
    }

    /// A call that `libc` does not have everywhere, with its number on x86_64 and on aarch64.
    pub(super) const fn numbered(
        name: &'static str,
        x86_64: Option<c_long>,
        aarch64: Option<c_long>,
    ) -> Self {
        Self { name, number: if cfg!(target_arch = "x86_64") { x86_64 } else { aarch64 } }
    }
}

/// A call by the name of its constant; behind `x86_64:` one that only that architecture still has.
macro_rules! call {
    (x86_64: $name:ident) => {
        $crate::native::seccomp::call::Call::named(stringify!($name), {
            #[cfg(target_arch = "x86_64")]
            {
                Some(libc::$name)
            }
            #[cfg(not(target_arch = "x86_64"))]
            {
                None
            }
        })
    };
    ($name:ident) => {
        $crate::native::seccomp::call::Call::named(stringify!($name), Some(libc::$name))
    };
}
pub(super) use call;

/// Calls by the names of their constants, in the same way.
macro_rules! calls {
    ($($name:ident)* $(; x86_64: $($old:ident)*)?) => {
        &[
            $($crate::native::seccomp::call::call!($name),)*
            $($($crate::native::seccomp::call::call!(x86_64: $old),)*)?
        ]
    };
}
pub(super) use calls;

/// When a call whose arguments decide may be made.
#[derive(Debug, Clone, Copy)]
pub(super) enum When {
    /// Not at all.
    Never,
    /// When all tests of one of these hold.
    Any(&'static [&'static [Test]]),
}

/// A test of one argument. What an argument points to cannot be tested: a filter sees only registers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Test {
    /// These bits of it have this value.
    Bits {
        /// Which argument, from 0.
        arg: u8,
        /// Which bits.
        mask: u64,
        /// Their value.
        value: u64,
    },
    /// Its lower half has any value but this. Docker's and Podman's profiles cannot say this of several
    /// values: there, tests of the same argument are alternatives.
    Not {
        /// Which argument, from 0.
        arg: u8,
        /// The value.
        value: u32,
    },
}

impl Test {
    /// An argument of the C type `int`, of which the kernel reads the lower half.
    pub(super) const fn int(arg: u8, value: u32) -> Self {
        Self::bits(arg, 0xffff_ffff, value as u64)
    }

    /// Some bits of an argument.
    pub(super) const fn bits(arg: u8, mask: u64, value: u64) -> Self {
        Self::Bits { arg, mask, value }
    }

    /// An argument of the C type `int` that is not this.
    pub(super) const fn not(arg: u8, value: u32) -> Self {
        Self::Not { arg, value }
    }
}
