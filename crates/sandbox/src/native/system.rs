//! What this machine is: found once, when the driver is opened.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::spec::{Bind, Bytes, Furniture, Kind, Masked, Owner};

/// The user and group that stand behind a sandbox where the kernel is root and so is the project's owner:
/// beyond every range that is handed out to people, services and containers.
const RESERVED: u32 = 0x7fff_0000;

/// Directories with programs and libraries.
const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// Of the host's settings, what programs cannot do without. No names, no keys, no hosts.
const SETTINGS: [&str; 8] = [
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/maven/logging",
    "/etc/maven/m2.conf",
    "/etc/pki/tls/certs",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
];

/// The same for languages whose settings lie below a version: where, how the version's directory begins, and what of it.
/// Files in which a person may keep a password (`php.ini`, `settings.xml` of Maven, `management` of Java) are none of it.
const VERSIONED: [(&str, &str, &[&str]); 2] = [
    (
        "/etc",
        "java-",
        &["jvm-aarch64.cfg", "jvm-amd64.cfg", "logging.properties", "net.properties", "security"],
    ),
    ("/etc/php", "", &["cli/conf.d", "mods-available"]),
];

/// Of the processes' directory, what tells about the host or could reach it. It is covered where it exists; the
/// rest is read-only.
const MASKED: [&str; 12] = [
    "acpi",
    "asound",
    "interrupts",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "latency_stats",
    "sched_debug",
    "scsi",
    "timer_list",
    "timer_stats",
];

/// The devices of every sandbox. There is no terminal among them.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Settings that are made up.
const INVENTED: [(&str, &str); 5] = [
    ("etc/passwd", "fluffy:x:1000:1000::HOME:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"),
    ("etc/group", "fluffy:x:1000:\nnogroup:x:65534:\n"),
    ("etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
    ("etc/resolv.conf", ""),
];

/// The namespaces that a job must have left.
const NAMESPACES: [&str; 7] = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"];

/// The settings of [`VERSIONED`] that are there. A version that is a link could lead anywhere and is left out.
fn versioned_settings() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (folder, start, parts) in VERSIONED {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let is_version = |entry: &fs::DirEntry| {
            let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(start));
            is_named && entry.file_type().is_ok_and(|kind| kind.is_dir())
        };
        for version in entries.filter(is_version).map(|entry| entry.path()) {
            found.extend(parts.iter().map(|part| version.join(part)));
        }
    }
    found.retain(|path| path.exists());
    found.sort();
    found
}

/// What this machine is.
#[derive(Debug)]
pub(crate) struct System {
    /// The parts of the host that every sandbox shows.
    pub(crate) shown: Vec<Furniture>,
    pub(crate) landlock: bool,
    pub(crate) outside: Vec<(String, Bytes)>,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Whether this process is the machine's root, who may stand in for anybody.
    pub(crate) is_root: bool,
    /// Whether it is root's user with nobody else to stand in for: in a namespace that maps root alone.
    pub(crate) is_root_alone: bool,
}

impl System {
    /// Looks around.
    pub(crate) fn find() -> io::Result<Self> {
        let mut shown = Vec::new();
        for path in SYSTEM.into_iter().map(Path::new) {
            shown.extend(system_part(path));
        }
        let settings = SETTINGS.into_iter().map(PathBuf::from).chain(versioned_settings());
        for path in settings {
            if let Ok(found) = fs::metadata(&path) {
                let kind = if found.is_dir() { Kind::Directory } else { Kind::File };
                shown.push(Furniture::Shown(bind(&path, kind)));
            }
        }
        for path in DEVICES.into_iter().map(Path::new) {
            shown.push(Furniture::Shown(bind(path, Kind::Device)));
        }
        shown.push(Furniture::Proc(Bytes::from("proc"), masked()));
        let outside = NAMESPACES.into_iter().map(|name| {
            let link = fs::read_link(format!("/proc/self/ns/{name}"))?;
            Ok((name.to_owned(), Bytes(link.into_os_string())))
        });
        let uid = rustix::process::geteuid().as_raw();
        let users = fs::read_to_string("/proc/self/uid_map")?;
        // In the machine's own namespace, and in those that are as good as it, everybody is mapped.
        let whole = outside_id(&users, RESERVED) == Some(RESERVED);
        Ok(Self {
            shown,
            landlock: landlock_is_there(),
            outside: outside.collect::<io::Result<_>>()?,
            uid,
            gid: rustix::process::getegid().as_raw(),
            is_root: uid == 0 && whole,
            is_root_alone: !whole && outside_id(&users, uid) == Some(0),
        })
    }

    /// Who stands behind a sandbox that works on this directory: the kernel's own user; where that is root,
    /// the owner of the directory; where that is root, too, nobody who exists.
    pub(crate) fn owner(&self, directory: Option<&Path>) -> Owner {
        if !self.is_root {
            return Owner { uid: self.uid, gid: self.gid, privileged: false };
        }
        let found = directory.and_then(|directory| fs::metadata(directory).ok());
        let (uid, gid) = found.map_or((0, 0), |found| (found.uid(), found.gid()));
        match (uid, gid) {
            (0, _) | (_, 0) => Owner { uid: RESERVED, gid: RESERVED, privileged: true },
            (uid, gid) => Owner { uid, gid, privileged: true },
        }
    }
}

/// Who stands behind a user of this namespace in the one outside.
pub(crate) fn outside_id(map: &str, id: u32) -> Option<u32> {
    map.lines().find_map(|line| {
        let mut numbers = line.split_ascii_whitespace().map_while(|word| word.parse::<u32>().ok());
        let (inside, outside, count) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let offset = id.checked_sub(inside).filter(|offset| *offset < count)?;
        outside.checked_add(offset)
    })
}

/// The owner whose files are shown as the reserved user's.
pub(crate) fn reserved() -> Owner {
    Owner { uid: RESERVED, gid: RESERVED, privileged: true }
}

/// The made-up settings.
pub(crate) fn invented(home: &Path) -> impl Iterator<Item = Furniture> {
    let home = home.display().to_string();
    INVENTED.into_iter().map(move |(path, text)| {
        Furniture::File(Bytes::from(path), Bytes::from(&text.replace("HOME", &home)))
    })
}

/// A bind at the same place.
pub(crate) fn bind(path: &Path, kind: Kind) -> Bind {
    let deep = kind == Kind::Directory;
    Bind { from: Bytes::from(path), to: Bytes::from(inside(path)), kind, deep, owners: false }
}

/// A path of the sandbox, relative to its root.
pub(crate) fn inside(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// What is to be covered here. The kernel offers the same names in every mount of this kind.
fn masked() -> Vec<Masked> {
    let found = MASKED.into_iter().filter_map(|name| {
        let found = fs::symlink_metadata(Path::new("/proc").join(name)).ok()?;
        Some(Masked { name: Bytes::from(name), directory: found.is_dir() })
    });
    found.collect()
}

/// A directory of the system, or the link that stands for it.
fn system_part(path: &Path) -> Option<Furniture> {
    let found = fs::symlink_metadata(path).ok()?;
    if found.is_symlink() {
        let target: PathBuf = fs::read_link(path).ok()?;
        return Some(Furniture::Link(Bytes::from(&target), Bytes::from(inside(path))));
    }
    found.is_dir().then(|| Furniture::Shown(bind(path, Kind::Directory)))
}

fn landlock_is_there() -> bool {
    use landlock::{
        ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    };
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    rules.handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stands_behind_a_user_is_read_from_the_map() {
        let whole = "         0          0 4294967295\n";
        assert_eq!(outside_id(whole, 0), Some(0));
        assert_eq!(outside_id(whole, RESERVED), Some(RESERVED));
        let container = "0 1000 1\n1 100000 65536\n";
        assert_eq!(outside_id(container, 0), Some(1000));
        assert_eq!(outside_id(container, 10), Some(100_009));
        assert_eq!(outside_id(container, RESERVED), None);
        for odd in ["", "x y z", "0", "4294967295 4294967295 1"] {
            assert_eq!(outside_id(odd, 0), None);
        }
    }
}
