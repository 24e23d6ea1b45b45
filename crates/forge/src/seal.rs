//! Reads a file of the project that was sealed.
//!
//! **Invariant.** It is read once, beneath the project's handle and through no link: the bytes that are given are the bytes
//! that were hashed.

use std::io::{self, Read as _};

use fluffy_base::Digest;
use fluffy_kernel::{Tree, TreeError};

use crate::Pinned;

/// The largest file of a skill.
pub(crate) const MAX_FILE: u64 = 4 << 20;

/// Why a file is not what was sealed.
pub(crate) enum Broken {
    /// It cannot be opened, or is none.
    File(TreeError),
    /// It cannot be read.
    Read(io::Error),
    /// It is too large to have been sealed.
    Large,
    /// It has other bytes, of this hash.
    Changed(Digest),
}

/// The bytes of a file, if they are those that were sealed.
pub(crate) fn read(tree: &Tree, pinned: &Pinned) -> Result<Vec<u8>, Broken> {
    let file = tree.file(&pinned.path).map_err(Broken::File)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(Broken::Read)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(Broken::Large);
    }
    let found = Digest::of(&bytes);
    if found == pinned.sha256 { Ok(bytes) } else { Err(Broken::Changed(found)) }
}
