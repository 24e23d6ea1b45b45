//! Identifiers, and where their randomness comes from.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Digest;

/// A source of bytes that nobody can guess (in production) or that everybody can (in a replay).
pub trait IdSource: Send + Sync {
    /// Sixteen fresh bytes, or nothing when the machine cannot give any.
    fn fresh(&self) -> Option<[u8; 16]>;
}

/// The operating system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

impl IdSource for SystemIds {
    fn fresh(&self) -> Option<[u8; 16]> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// The same bytes in every run with the same seed.
#[derive(Debug)]
pub struct SeededIds {
    seed: u64,
    count: AtomicU64,
}

impl SeededIds {
    /// A source for replays and tests.
    pub fn new(seed: u64) -> Self {
        Self { seed, count: AtomicU64::new(0) }
    }
}

impl IdSource for SeededIds {
    fn fresh(&self) -> Option<[u8; 16]> {
        let count = self.count.fetch_add(1, Ordering::SeqCst);
        let digest = Digest::of_parts(&[&self.seed.to_be_bytes(), &count.to_be_bytes()]);
        digest.as_bytes().first_chunk().copied()
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// A fresh id, or nothing when the source has no bytes to give.
            pub fn fresh(source: &dyn IdSource) -> Option<Self> {
                let bytes = source.fresh()?;
                Some(Self(format!(concat!($prefix, "-{:032x}"), u128::from_be_bytes(bytes))))
            }

            /// An id that was chosen elsewhere: letters, digits, `-`, `_` and `.` (not first), at most 64.
            pub fn named(text: &str) -> Option<Self> {
                let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
                let named = (1..=64).contains(&text.len()) && !text.starts_with('.');
                let ok = named && text.chars().all(fits);
                ok.then(|| Self(text.to_owned()))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

id! {
    /// One kernel: it stays the same from boot to boot of one project's ledger.
    KernelId, "kernel"
}
id! {
    /// One client of a kernel: it stays the same when the client connects again with its token.
    ClientId, "client"
}
id! {
    /// One session: from a boot to its halt or its orderly end.
    SessionId, "session"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeded_ids_repeat_and_differ_among_themselves() {
        let (a, b) = (SeededIds::new(7), SeededIds::new(7));
        let first = SessionId::fresh(&a).unwrap();
        assert_eq!(Some(&first), SessionId::fresh(&b).as_ref());
        assert_ne!(Some(first), SessionId::fresh(&a));
        assert_ne!(SeededIds::new(7).fresh(), SeededIds::new(8).fresh());
    }

    #[test]
    fn an_id_cannot_be_a_path_or_a_sentence() {
        for text in ["", "..", "..//x", "a b", "é", &"x".repeat(65)] {
            assert_eq!(KernelId::named(text), None, "{text}");
        }
        assert!(KernelId::named("golden").is_some());
    }
}
