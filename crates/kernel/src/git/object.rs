//! Objects of git: read from a sandbox, and checked against their names.
//!
//! **Invariant.** Nothing is taken whose name is not the hash of its contents; unpacking is bounded whatever the
//! bytes say about themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use fluffy_base::{Digest, Hasher};
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZFlush, MZStatus};
use sha1::{Digest as _, Sha1};

/// The most that one object may have, unpacked.
const MAX_OBJECT: u64 = 256 << 20;
/// The most that a commit or a directory may have, unpacked.
const MAX_KEPT: u64 = 16 << 20;
/// The most that all may have together, unpacked.
const MAX_TOTAL: u64 = 1 << 30;
/// A kind, a space, a length and a NUL.
const MAX_HEAD: usize = 32;
const PIECE: usize = 32 << 10;

/// The name of an object: 40 or 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(String);

/// Why an object is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// It does not unpack.
    #[error("the object `{0}` is damaged")]
    Damaged(ObjectId),
    /// It is another than its name says.
    #[error("the object `{0}` is not what its name says")]
    Misnamed(ObjectId),
    /// It is too large.
    #[error("the object `{0}` is too large to be committed here")]
    Large(ObjectId),
    /// A new object is needed that is not there.
    #[error("the object `{0}` is missing")]
    Missing(ObjectId),
}

/// What kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Blob,
    Tree,
    Commit,
}

/// An object that is what its name says.
struct Checked {
    kind: Kind,
    /// Its contents; of a file nothing is kept.
    body: Vec<u8>,
}

/// New objects, packed as they lie on disk, by name.
pub(super) type Objects = BTreeMap<ObjectId, Vec<u8>>;

impl ObjectId {
    /// The name that a text is.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (hex && matches!(text.len(), 40 | 64)).then(|| Self(text.to_owned()))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name that stands for nothing, of the same kind.
    pub(super) fn nothing(&self) -> Self {
        Self("0".repeat(self.0.len()))
    }

    /// Its directory and its file in a repository.
    pub(super) fn place(&self) -> (&str, &str) {
        self.0.split_at_checked(2).unwrap_or_default()
    }

    fn of(raw: &[u8]) -> Self {
        use fmt::Write as _;
        let mut text = String::with_capacity(raw.len() * 2);
        for byte in raw {
            // Writing to a text does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Of all new objects, those that a commit needs, each checked. The commit must have exactly these contents.
pub(super) fn needed(
    mut new: Objects,
    commit: &ObjectId,
    contents: &[u8],
    tree: &ObjectId,
) -> Result<Objects, ObjectError> {
    let mut budget = MAX_TOTAL;
    let packed = new.get(commit).ok_or_else(|| ObjectError::Missing(commit.clone()))?;
    let checked = check(commit, packed, &mut budget)?;
    if checked.kind != Kind::Commit || checked.body != contents {
        return Err(ObjectError::Misnamed(commit.clone()));
    }
    let mut keep = BTreeSet::from([commit.clone()]);
    let mut pending = vec![(tree.clone(), Kind::Tree)];
    while let Some((id, kind)) = pending.pop() {
        // What is not new is in the repository already: git does not write an object twice.
        let Some(packed) = new.get(&id) else { continue };
        if !keep.insert(id.clone()) {
            continue;
        }
        let checked = check(&id, packed, &mut budget)?;
        if checked.kind != kind {
            return Err(ObjectError::Misnamed(id));
        }
        if kind == Kind::Tree {
            let entries = entries(&checked.body, id.0.len() / 2);
            pending.extend(entries.ok_or(ObjectError::Damaged(id))?);
        }
    }
    new.retain(|id, _| keep.contains(id));
    Ok(new)
}

/// Whether a file ends with the hash of what stands before, made as this name was.
pub(super) fn is_sealed(bytes: &[u8], like: &ObjectId) -> bool {
    let width = like.0.len() / 2;
    let at = bytes.len().checked_sub(width).and_then(|at| bytes.split_at_checked(at));
    let Some((body, seal)) = at else { return false };
    let mut hash = Hash::new(like);
    hash.update(body);
    hash.finish() == ObjectId::of(seal)
}

/// The objects that a directory names. Other repositories in it are not objects of this one.
fn entries(mut body: &[u8], width: usize) -> Option<Vec<(ObjectId, Kind)>> {
    let mut found = Vec::new();
    while !body.is_empty() {
        let end = body.iter().position(|byte| *byte == 0)?;
        let (head, rest) = body.split_at_checked(end)?;
        let (raw, rest) = rest.get(1..)?.split_at_checked(width)?;
        let mode = head.split(|byte| *byte == b' ').next()?;
        match mode {
            b"40000" => found.push((ObjectId::of(raw), Kind::Tree)),
            b"100644" | b"100755" | b"100664" | b"120000" => {
                found.push((ObjectId::of(raw), Kind::Blob));
            }
            b"160000" => {}
            _unknown => return None,
        }
        body = rest;
    }
    Some(found)
}

/// Unpacks an object and compares it with its name.
fn check(id: &ObjectId, packed: &[u8], budget: &mut u64) -> Result<Checked, ObjectError> {
    let damaged = || ObjectError::Damaged(id.clone());
    let mut reader =
        Reader { state: InflateState::new_boxed(DataFormat::Zlib), packed, done: false };
    let mut piece = vec![0; PIECE];
    let mut hash = Hash::new(id);
    let mut start = Vec::new();
    while !start.contains(&0) {
        let bytes = reader.next(&mut piece).filter(|bytes| !bytes.is_empty());
        start.extend_from_slice(bytes.ok_or_else(damaged)?);
    }
    hash.update(&start);
    let (kind, size, body) = head(&start).ok_or_else(damaged)?;
    let most = if kind == Kind::Blob { MAX_OBJECT } else { MAX_KEPT };
    if size > most || size > *budget {
        return Err(ObjectError::Large(id.clone()));
    }
    *budget -= size;
    let mut kept = if kind == Kind::Blob { Vec::new() } else { body.to_vec() };
    let mut count = body.len() as u64;
    while !reader.done {
        let bytes = reader.next(&mut piece).ok_or_else(damaged)?;
        hash.update(bytes);
        count = count.saturating_add(bytes.len() as u64);
        if count > size {
            return Err(damaged());
        }
        if kind != Kind::Blob {
            kept.extend_from_slice(bytes);
        }
    }
    if count != size || !reader.packed.is_empty() {
        return Err(damaged());
    }
    if hash.finish() == *id {
        Ok(Checked { kind, body: kept })
    } else {
        Err(ObjectError::Misnamed(id.clone()))
    }
}

/// The kind and length of an object, and what follows.
fn head(start: &[u8]) -> Option<(Kind, u64, &[u8])> {
    let end = start.iter().take(MAX_HEAD).position(|byte| *byte == 0)?;
    let (kind, size) = str::from_utf8(start.get(..end)?).ok()?.split_once(' ')?;
    let kind = match kind {
        "blob" => Kind::Blob,
        "tree" => Kind::Tree,
        "commit" => Kind::Commit,
        _other => return None,
    };
    Some((kind, size.parse().ok()?, start.get(end + 1..)?))
}

/// Unpacks piece by piece.
struct Reader<'a> {
    state: Box<InflateState>,
    packed: &'a [u8],
    done: bool,
}

impl Reader<'_> {
    /// The next piece; nothing when the bytes are damaged or do not go on.
    fn next<'b>(&mut self, piece: &'b mut [u8]) -> Option<&'b [u8]> {
        let result = inflate(&mut self.state, self.packed, piece, MZFlush::None);
        self.packed = self.packed.get(result.bytes_consumed..)?;
        match result.status {
            Ok(MZStatus::StreamEnd) => self.done = true,
            Ok(MZStatus::Ok) if result.bytes_consumed + result.bytes_written > 0 => {}
            _stuck => return None,
        }
        piece.get(..result.bytes_written)
    }
}

/// The hash that a name is made with.
enum Hash {
    Short(Sha1),
    Long(Hasher),
}

impl Hash {
    fn new(id: &ObjectId) -> Self {
        if id.0.len() == 40 { Self::Short(Sha1::new()) } else { Self::Long(Hasher::default()) }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Short(hash) => hash.update(bytes),
            Self::Long(hash) => hash.update(bytes),
        }
    }

    fn finish(self) -> ObjectId {
        match self {
            Self::Short(hash) => ObjectId::of(&hash.finalize()),
            Self::Long(hash) => ObjectId::of(Digest::as_bytes(&hash.finish())),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packed(text: &[u8]) -> (ObjectId, Vec<u8>) {
        let mut hash = Sha1::new();
        hash.update(text);
        (ObjectId::of(&hash.finalize()), miniz_oxide::deflate::compress_to_vec_zlib(text, 6))
    }

    fn checked(id: &ObjectId, bytes: &[u8]) -> Result<(), ObjectError> {
        check(id, bytes, &mut MAX_TOTAL.clone()).map(|_| ())
    }

    #[test]
    fn an_object_is_what_its_name_says_or_is_refused() {
        let (id, bytes) = packed(b"blob 5\0hello");
        assert_eq!(id.as_str(), "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0");
        assert_eq!(checked(&id, &bytes), Ok(()));
        let other = packed(b"blob 5\0hellO");
        assert_eq!(checked(&id, &other.1), Err(ObjectError::Misnamed(id.clone())));
        assert_eq!(checked(&id, &bytes[..bytes.len() - 1]), Err(ObjectError::Damaged(id.clone())));
        let trailing = [&bytes[..], b"x"].concat();
        assert_eq!(checked(&id, &trailing), Err(ObjectError::Damaged(id.clone())));
        for wrong in
            [&b"blob 4\0hello"[..], b"blob 6\0hello", b"tag 5\0hello", b"blob -1\0", b"blob"]
        {
            let (id, bytes) = packed(wrong);
            assert_eq!(checked(&id, &bytes), Err(ObjectError::Damaged(id.clone())));
        }
    }

    #[test]
    fn an_object_that_unpacks_to_more_than_is_allowed_is_not_unpacked() {
        let (id, bytes) = packed(b"blob 268435457\0");
        assert_eq!(checked(&id, &bytes), Err(ObjectError::Large(id.clone())));
        let bomb = [&b"blob 3\0"[..], &vec![0; 8 << 20]].concat();
        let (id, bytes) = packed(&bomb);
        assert_eq!(checked(&id, &bytes), Err(ObjectError::Damaged(id.clone())));
    }

    #[test]
    fn only_what_the_commit_needs_is_taken() {
        let (file, file_bytes) = packed(b"blob 5\0hello");
        let raw = Sha1::digest(b"blob 5\0hello");
        let entry = [&b"100644 a\0"[..], &raw].concat();
        let (tree, tree_bytes) =
            packed(&[format!("tree {}\0", entry.len()).as_bytes(), &entry].concat());
        let contents = format!("tree {tree}\n\nhi\n");
        let (commit, commit_bytes) =
            packed(format!("commit {}\0{contents}", contents.len()).as_bytes());
        let (stray, stray_bytes) = packed(b"blob 5\0stray");
        let all = Objects::from([
            (file.clone(), file_bytes),
            (tree.clone(), tree_bytes),
            (commit.clone(), commit_bytes),
            (stray.clone(), stray_bytes),
        ]);
        let kept = needed(all.clone(), &commit, contents.as_bytes(), &tree).unwrap();
        assert_eq!(kept.keys().collect::<BTreeSet<_>>(), BTreeSet::from([&file, &tree, &commit]));
        let other = needed(all.clone(), &commit, b"tree x\n\nhi\n", &tree);
        assert_eq!(other, Err(ObjectError::Misnamed(commit.clone())));
        let mut swapped = all;
        let stray = swapped[&stray].clone();
        swapped.insert(file.clone(), stray);
        let refused = needed(swapped, &commit, contents.as_bytes(), &tree);
        assert_eq!(refused, Err(ObjectError::Misnamed(file)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_check_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let id = ObjectId("0".repeat(40));
            let refused = checked(&id, &bytes).is_err();
            prop_assert!(refused);
            let packed = miniz_oxide::deflate::compress_to_vec_zlib(&bytes, 1);
            let refused = checked(&id, &packed).is_err();
            prop_assert!(refused);
            let _any = entries(&bytes, 20);
        }
    }
}
