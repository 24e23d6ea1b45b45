//! Opens one entry of a volume and judges it.
//!
//! **Invariant.** What is judged is an open descriptor, never a name: between the two, a name can come to
//! mean something else.

use std::os::fd::{AsFd, OwnedFd};

use fluffy_base::ByteSize;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags};
use rustix::io::Errno;

use super::{Kind, Why};

/// Never out of the volume, never through a link, never onto another mount.
const CONFINED: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// The most that the system lists of one file's attributes (`XATTR_LIST_MAX`).
const ATTRIBUTES: usize = 64 << 10;
const SPECIAL_BITS: u16 = 0o7000;
const OWNER_EXECUTES: u16 = 0o100;
const CAPABILITIES: &[u8] = b"security.capability";
const OPAQUE: &[u8] = b"opaque";
/// Marks of overlayfs that change nothing about what a file holds: where a copy came from, that a
/// directory holds such copies, the count of links below, the identity of the layer, and flags.
const HARMLESS: [&[u8]; 5] = [b"origin", b"impure", b"nlink", b"uuid", b"protattr"];

/// The file system that a file lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Device(u32, u32);

/// What was seen of a regular file. While it stays equal, nobody has touched the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    inode: u64,
    changed: (i64, u32),
    pub(super) size: u64,
    pub(super) executable: bool,
}

/// What a directory means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directory {
    /// It is laid over what the lower layers have.
    Merged,
    /// It hides what the lower layers have.
    Opaque,
}

/// What the attributes of a file say.
enum Attributes {
    Nothing,
    Opaque,
}

/// Judges open files by what they are, not by where they lie.
pub(super) struct Inspector {
    device: Device,
    kind: Kind,
    buffer: Vec<u8>,
}

impl Inspector {
    pub(super) fn new(device: Device, kind: Kind) -> Self {
        Self { device, kind, buffer: vec![0; ATTRIBUTES] }
    }

    /// Whether an open file may be taken.
    pub(super) fn file(
        &mut self,
        file: &OwnedFd,
        stat: &Statx,
    ) -> Result<Result<Identity, Why>, Errno> {
        if kind_of(stat) != FileType::RegularFile {
            return Ok(Err(Why::Changed));
        }
        if let Err(why) = self.plain(stat) {
            return Ok(Err(why));
        }
        let identity = Identity {
            inode: stat.stx_ino,
            changed: (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
            size: stat.stx_size,
            executable: stat.stx_mode & OWNER_EXECUTES != 0,
        };
        Ok(match self.attributes(file)? {
            Ok(Attributes::Nothing) => Ok(identity),
            // Only a directory can hide another.
            Ok(Attributes::Opaque) => Err(Why::Mark),
            Err(why) => Err(why),
        })
    }

    /// What an open directory means. Its mode is of no interest, since it is never taken; special bits
    /// are common where a group shares a project.
    pub(super) fn directory(
        &mut self,
        directory: &OwnedFd,
        stat: &Statx,
    ) -> Result<Result<Directory, Why>, Errno> {
        if Device::of(stat) != self.device {
            return Ok(Err(Why::OtherDevice));
        }
        Ok(match self.attributes(directory)? {
            Ok(Attributes::Nothing) => Ok(Directory::Merged),
            Ok(Attributes::Opaque) => Ok(Directory::Opaque),
            Err(why) => Err(why),
        })
    }

    fn plain(&self, stat: &Statx) -> Result<(), Why> {
        if Device::of(stat) != self.device {
            return Err(Why::OtherDevice);
        }
        if stat.stx_mode & SPECIAL_BITS != 0 {
            return Err(Why::SpecialBits(stat.stx_mode & 0o7777));
        }
        if stat.stx_nlink > 1 {
            return Err(Why::HardLink(stat.stx_nlink));
        }
        Ok(())
    }

    fn attributes(&mut self, file: &OwnedFd) -> Result<Result<Attributes, Why>, Errno> {
        let count = match rustix::fs::flistxattr(file, self.buffer.as_mut_slice()) {
            Ok(count) => count,
            Err(Errno::NOTSUP) => 0,
            Err(Errno::RANGE | Errno::TOOBIG) => return Ok(Err(Why::Attributes)),
            Err(errno) => return Err(errno),
        };
        let names = self.buffer.get(..count).unwrap_or_default();
        let mut found = Attributes::Nothing;
        for name in names.split(|byte| *byte == 0) {
            if name == CAPABILITIES {
                return Ok(Err(Why::Capabilities));
            }
            if self.kind == Kind::Output {
                continue;
            }
            match mark(name) {
                Mark::None => {}
                Mark::Opaque if is_opaque(file)? => found = Attributes::Opaque,
                Mark::Opaque | Mark::Unknown => return Ok(Err(Why::Mark)),
            }
        }
        Ok(Ok(found))
    }
}

/// What the name of an attribute is to overlayfs.
enum Mark {
    None,
    Opaque,
    Unknown,
}

fn mark(name: &[u8]) -> Mark {
    if name.starts_with(b"trusted.overlay.") {
        return Mark::Unknown;
    }
    match name.strip_prefix(b"user.overlay.") {
        None => Mark::None,
        Some(OPAQUE) => Mark::Opaque,
        // What a job sets through the overlay is escaped, and therefore no mark.
        Some(escaped) if escaped.starts_with(b"overlay.") => Mark::None,
        Some(harmless) if HARMLESS.contains(&harmless) => Mark::None,
        Some(_) => Mark::Unknown,
    }
}

fn is_opaque(file: &OwnedFd) -> Result<bool, Errno> {
    let mut value = [0; 2];
    match rustix::fs::fgetxattr(file, c"user.overlay.opaque", value.as_mut_slice()) {
        Ok(count) => Ok(value.get(..count) == Some(b"y")),
        Err(Errno::RANGE | Errno::NODATA) => Ok(false),
        Err(errno) => Err(errno),
    }
}

impl Device {
    pub(super) fn of(stat: &Statx) -> Self {
        Self(stat.stx_dev_major, stat.stx_dev_minor)
    }
}

/// The top directory, opened anew so that it can be read and outlives the caller's descriptor.
pub(super) fn open_root(content: impl AsFd) -> Result<OwnedFd, Errno> {
    open_directory(content, ".")
}

/// A directory beneath another.
pub(super) fn open_directory(root: impl AsFd, path: &str) -> Result<OwnedFd, Errno> {
    open(root, path, OFlags::DIRECTORY)
}

/// A file beneath a directory, to be read. It never waits, whatever the name stands for by now.
pub(super) fn open_file<P: rustix::path::Arg>(root: impl AsFd, path: P) -> Result<OwnedFd, Errno> {
    open(root, path, OFlags::NONBLOCK | OFlags::NOCTTY)
}

fn open<P: rustix::path::Arg>(root: impl AsFd, path: P, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat2(root, path, flags, Mode::empty(), CONFINED)
}

/// What is known about an open file.
pub(super) fn look(file: impl AsFd) -> Result<Statx, Errno> {
    rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)
}

/// What is known about a name in a directory, links not followed.
pub(super) fn look_at<P: rustix::path::Arg>(directory: impl AsFd, name: P) -> Result<Statx, Errno> {
    rustix::fs::statx(directory, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS)
}

/// What kind of thing it is.
pub(super) fn kind_of(stat: &Statx) -> FileType {
    FileType::from_raw_mode(stat.stx_mode.into())
}

/// Whether it is overlayfs's sign for a deletion. The system itself gives it many names.
pub(super) fn is_whiteout(stat: &Statx) -> bool {
    kind_of(stat) == FileType::CharacterDevice
        && (stat.stx_rdev_major, stat.stx_rdev_minor) == (0, 0)
}

/// Whether a file is too large, by its apparent size and before it is opened.
pub(super) fn too_large(stat: &Statx, limit: ByteSize) -> Option<Why> {
    let size = ByteSize::from_bytes(stat.stx_size);
    (size > limit).then_some(Why::TooLarge { size, limit })
}

/// The reason that an error of the system is, if it is about this one entry.
pub(super) fn why(errno: Errno) -> Option<Why> {
    match errno {
        Errno::ACCESS | Errno::PERM | Errno::NXIO | Errno::NODEV => Some(Why::Unreadable),
        Errno::LOOP | Errno::NOENT | Errno::NOTDIR | Errno::AGAIN | Errno::STALE => {
            Some(Why::Changed)
        }
        Errno::XDEV => Some(Why::OtherDevice),
        _ => None,
    }
}
