//! Where groups can be made, and what for.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Part, below, files};

/// Which of the kernel's two kinds of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// A hierarchy for each controller, or for a few.
    One,
    /// One hierarchy for all.
    Two,
}

/// A mounted hierarchy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) version: Version,
    pub(super) at: PathBuf,
    /// The directory of this process in it; nothing if it lies outside of what is mounted.
    pub(super) own: Option<PathBuf>,
    /// The controllers of version 1.
    pub(super) controllers: Vec<String>,
}

/// A place where groups can be made.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) parent: PathBuf,
    pub(super) parts: Vec<Part>,
    /// What the place could offer and does not.
    pub(super) refused: Option<Refusal>,
}

/// Why some parts are not offered.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) parts: Vec<Part>,
    pub(super) why: String,
}

/// The mounted hierarchies. Lines that say something else are passed over: what is not found is missing.
pub(super) fn mounts(own: &str, mountinfo: &str) -> Vec<Mount> {
    let mut seen = BTreeSet::new();
    let mut mounts: Vec<Mount> = mountinfo.lines().filter_map(|line| mount(line, own)).collect();
    // The same hierarchy may be mounted several times, and show our own group only in one of them.
    mounts.sort_by_key(|mount| mount.own.is_none());
    mounts.retain(|mount| seen.insert(mount.controllers.clone()));
    mounts
}

/// One line of `/proc/self/mountinfo`, if it is of a hierarchy with controllers or of version 2.
fn mount(line: &str, own: &str) -> Option<Mount> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, at) = (unescaped(place.next()?), PathBuf::from(unescaped(place.next()?)));
    let mut kind = kind.split(' ');
    let (version, options) = match kind.next()? {
        "cgroup2" => (Version::Two, ""),
        "cgroup" => (Version::One, kind.nth(1)?),
        _ => return None,
    };
    let controllers: Vec<String> = options
        .split(',')
        .filter(|option| V1.iter().any(|(name, _)| name == option))
        .map(str::to_owned)
        .collect();
    if version == Version::One && controllers.is_empty() {
        return None;
    }
    let path = own.lines().find_map(|line| membership(line, &controllers))?;
    let own = Path::new(path).strip_prefix(&root).ok().and_then(|path| below(&at, path));
    Some(Mount { version, at, own, controllers })
}

/// The path in one line of `/proc/self/cgroup`, if the line is of this hierarchy.
fn membership<'a>(line: &'a str, controllers: &[String]) -> Option<&'a str> {
    let (id, rest) = line.split_once(':')?;
    let (names, path) = rest.split_once(':')?;
    let same = match controllers.first() {
        None => id == "0" && names.is_empty(),
        Some(first) => names.split(',').any(|name| name == first),
    };
    same.then_some(path)
}

/// Octal escapes stand for blanks and back slashes in paths.
fn unescaped(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// Controllers of version 1 by name.
const V1: [(&str, Part); 5] = [
    ("memory", Part::Memory),
    ("pids", Part::Processes),
    ("cpu", Part::Cpu),
    ("freezer", Part::Freezer),
    ("cpuacct", Part::Accounting),
];

/// Controllers of version 2 by name; it halts and counts without any.
const V2: [(&str, Part); 3] =
    [("memory", Part::Memory), ("pids", Part::Processes), ("cpu", Part::Cpu)];

/// What can be read of a group that is somebody else's.
pub(super) fn read_parts(mount: &Mount) -> Vec<Part> {
    let Some(own) = &mount.own else { return Vec::new() };
    let there = |(part, name): (Part, &str)| own.join(name).exists().then_some(part);
    let files = match mount.version {
        Version::One => [
            (Part::Memory, "memory.usage_in_bytes"),
            (Part::Processes, "pids.current"),
            (Part::Accounting, "cpuacct.usage"),
        ],
        Version::Two => [
            (Part::Memory, "memory.current"),
            (Part::Processes, "pids.current"),
            (Part::Accounting, "cpu.stat"),
        ],
    };
    files.into_iter().filter_map(there).collect()
}

/// What a hierarchy of version 1 offers: groups below our own, so that what holds for us holds for them.
pub(super) fn one(mount: &Mount) -> Result<Offer, Refusal> {
    let named = |name: &String| V1.iter().find(|(known, _)| known == name).map(|(_, part)| *part);
    let parts: Vec<Part> = mount.controllers.iter().filter_map(named).collect();
    let Some(own) = &mount.own else {
        return Err(Refusal { parts, why: "our own control group is not mounted".to_owned() });
    };
    match try_in(own) {
        Ok(()) => Ok(Offer { parent: own.clone(), parts, refused: None }),
        Err(source) => Err(Refusal { parts, why: cannot(own, &source) }),
    }
}

/// What version 2 offers. A group that has members gives its children no controllers, and ours has us; so
/// the top of the hierarchy is tried next, which root may use, and then every group on the way up, one of
/// which may have been delegated to us. The nearest that offers most is taken.
pub(super) fn two(mount: &Mount) -> Result<Offer, Refusal> {
    let mut best: Option<Offer> = None;
    let mut why = None;
    for place in places(mount) {
        match offer(&place) {
            Ok(offer) if best.as_ref().is_none_or(|best| best.parts.len() < offer.parts.len()) => {
                best = Some(offer);
            }
            Ok(_) => {}
            Err(source) => why = why.or_else(|| Some(cannot(&place, &source))),
        }
    }
    let parts = Part::ALL.to_vec();
    best.ok_or_else(|| Refusal {
        parts,
        why: why.unwrap_or_else(|| "our own control group is not mounted".to_owned()),
    })
}

fn places(mount: &Mount) -> Vec<PathBuf> {
    let mut places = Vec::new();
    if let Some(own) = &mount.own {
        places.push(own.clone());
        places.push(mount.at.clone());
        let up = own.ancestors().skip(1).take_while(|path| path.starts_with(&mount.at));
        places.extend(up.map(Path::to_owned));
    }
    let mut seen = BTreeSet::new();
    places.retain(|place| seen.insert(place.clone()));
    places
}

/// What groups below this one of version 2 would have. Controllers that it has and does not hand down are
/// switched on, all or none.
fn offer(place: &Path) -> io::Result<Offer> {
    try_in(place)?;
    // Whoever moves a process needs this right to the nearest group above both ends.
    fs::OpenOptions::new().write(true).open(place.join("cgroup.procs"))?;
    let has = words(&place.join("cgroup.controllers"));
    let switch = place.join("cgroup.subtree_control");
    let mut on = words(&switch);
    let wanted: Vec<&str> = V2
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| has.contains(*name) && !on.contains(*name))
        .collect();
    let mut why = None;
    if !wanted.is_empty() {
        let text: Vec<String> = wanted.iter().map(|name| format!("+{name}")).collect();
        match files::set(&switch, &text.join(" ")) {
            Ok(()) => on.extend(wanted.iter().map(|name| (*name).to_owned())),
            Err(source) => why = Some(cannot(&switch, &source)),
        }
    }
    let (offered, refused): (Vec<_>, Vec<_>) = V2.iter().partition(|(name, _)| on.contains(*name));
    let mut parts = vec![Part::Freezer, Part::Accounting];
    parts.extend(offered.iter().map(|(_, part)| *part));
    let why = why.unwrap_or_else(|| format!("`{}` does not have it", place.display()));
    let refused = Refusal { parts: refused.iter().map(|(_, part)| *part).collect(), why };
    Ok(Offer { parent: place.to_owned(), parts, refused: Some(refused) })
}

/// Makes a group and takes it away again.
fn try_in(place: &Path) -> io::Result<()> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let count = TRIED.fetch_add(1, Ordering::Relaxed);
    let path = place.join(format!("fluffy-try-{}-{count}", std::process::id()));
    fs::create_dir(&path)?;
    // Whoever sweeps may have been quicker.
    drop(fs::remove_dir(&path));
    Ok(())
}

fn cannot(path: &Path, source: &io::Error) -> String {
    format!("`{}` cannot be used: {source}", path.display())
}

fn words(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Directories below this one whose names begin like this, not looking into those found.
pub(super) fn groups_named(below: &Path, prefix: &str, depth: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(below) else {
        return found;
    };
    for entry in entries.flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
            found.push(entry.path());
        } else if let Some(depth) = depth.checked_sub(1) {
            found.extend(groups_named(&entry.path(), prefix, depth));
        }
    }
    found
}
