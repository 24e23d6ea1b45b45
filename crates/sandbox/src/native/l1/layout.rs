//! Decides what the kernel sees of the machine: what is covered, and what of that is put back.
//!
//! **Invariant.** What is put back was named without a link in it, holds nothing that must be hidden, and lies in what
//! is covered. A project or directory of the kernel's that would uncover something is refused.

use std::io;
use std::path::{Path, PathBuf};

use super::{L1Error, L1Options};

/// Places with what belongs to people and services: homes, sockets, other disks, temporary files, engines that make
/// containers. A socket can be used wherever it is seen, read-only or not.
const HIDDEN: [&str; 18] = [
    "/home",
    "/media",
    "/mnt",
    "/root",
    "/run",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/docker",
    "/var/lib/incus",
    "/var/lib/kubelet",
    "/var/lib/libvirt",
    "/var/lib/lxc",
    "/var/lib/lxd",
    "/var/lib/machines",
    "/var/lib/rancher",
    "/var/lib/sss",
    "/var/run",
    "/var/snap",
];

/// Temporary files: the kernel has its own.
const SCRATCH: &str = "/tmp";
/// Devices: the kernel has a few.
const DEVICES: &str = "/dev";

/// What must be there, and is nobody's project.
const SYSTEM: [&str; 13] = [
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/proc",
    "/sbin",
    "/sys",
    "/usr",
    "/var",
    "/nix/store",
    "/gnu/store",
];

/// Where files are not files.
const UNREAL: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Names below a home that hold what nobody else is to have: keys, passwords, tokens, histories, browsers.
pub(super) const SECRETS: [&str; 52] = [
    ".Xauthority",
    ".aws",
    ".azure",
    ".bash_history",
    ".boto",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/1Password",
    ".config/BraveSoftware",
    ".config/Bitwarden",
    ".config/chromium",
    ".config/containers/auth.json",
    ".config/doctl",
    ".config/fish/fish_history",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/glab-cli",
    ".config/google-chrome",
    ".config/heroku",
    ".config/hub",
    ".config/microsoft-edge",
    ".config/op",
    ".config/pip",
    ".config/rclone",
    ".config/sops",
    ".docker",
    ".gem/credentials",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/fish/fish_history",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".m2/settings.xml",
    ".mozilla",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pki",
    ".psql_history",
    ".pypirc",
    ".python_history",
    ".ssh",
    ".terraform.d/credentials.tfrc.json",
    ".thunderbird",
    ".vault-token",
    ".yarnrc.yml",
    ".zsh_history",
    "snap",
];

/// What covers a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum With {
    /// An empty read-only directory.
    Nothing,
    /// An empty directory that can be written.
    Scratch,
    /// The few devices that every program needs.
    Devices,
}

/// A place that is covered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cover {
    pub(super) at: PathBuf,
    pub(super) with: With,
}

/// What may be done with something that is put into place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    /// As whoever owns it.
    Write,
    /// As the kernel's own user, to whom it is given.
    Own,
}

/// Something of the machine at its own path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) access: Access,
    pub(super) is_dir: bool,
}

/// What the kernel sees.
#[derive(Debug)]
pub(super) struct Layout {
    /// None of them in another.
    pub(super) covers: Vec<Cover>,
    /// What holds others comes before them.
    pub(super) places: Vec<Place>,
    /// The home, without links.
    pub(super) home: Option<PathBuf>,
    pub(super) passed_over: Vec<(PathBuf, &'static str)>,
}

impl Layout {
    /// Decides. Looks at the machine and changes nothing.
    pub(super) fn of(options: &L1Options) -> Result<Self, L1Error> {
        let home = real_home(options.home.as_deref())?;
        let covers = covers(home.as_deref());
        let mut layout = Self { covers, places: Vec::new(), home, passed_over: Vec::new() };
        let project = real("the project", &options.project)?;
        layout.must_uncover_nothing("the project", &project)?;
        layout.add(project, Access::Write, true);
        for path in &options.writable {
            let what = "a directory of the kernel's";
            let path = real(what, path)?;
            layout.must_uncover_nothing(what, &path)?;
            if let Some(holds) = layout.secrets().find(|secret| secret.starts_with(&path)) {
                return Err(L1Error::Holds { what, path, holds });
            }
            layout.add(path, Access::Write, true);
        }
        for path in &options.volumes {
            let path = real("a directory of sandboxes' volumes", path)?;
            // It is given away: only what is the kernel's already.
            if !layout.is_written(&path) {
                return Err(L1Error::Volumes(path));
            }
            layout.add(path, Access::Own, true);
        }
        for path in &options.shown {
            layout.show(path);
        }
        let program = options.program.canonicalize();
        let program = program.map_err(|source| {
            let (what, path) = ("the kernel's program", options.program.clone());
            L1Error::Path { what, path, source }
        })?;
        layout.add(program, Access::Read, false);
        // Names are looked up by the proxy, and this link often leads to a place with sockets.
        if let Ok(names) = Path::new("/etc/resolv.conf").canonicalize() {
            layout.add(names, Access::Read, false);
        }
        layout.places.sort_by_key(|place| place.path.components().count());
        layout.drop_what_is_there();
        Ok(layout)
    }

    /// Whether a path is covered.
    fn is_covered(&self, path: &Path) -> bool {
        self.covers.iter().any(|cover| path.starts_with(&cover.at))
    }

    /// Refuses what would show everything that a cover hides, or is part of the operating system.
    fn must_uncover_nothing(&self, what: &'static str, path: &Path) -> Result<(), L1Error> {
        let covered = self.covers.iter().map(|cover| &cover.at).chain(&self.home);
        for holds in covered {
            if holds.starts_with(path) {
                let (path, holds) = (path.to_owned(), holds.clone());
                return Err(L1Error::Holds { what, path, holds });
            }
        }
        // Other programs have their sockets beside the kernel's directory there.
        let runtime = path.parent() == Some(Path::new("/run/user"));
        let system = SYSTEM.iter().any(|part| Path::new(part).starts_with(path));
        let unreal = UNREAL.iter().any(|part| path.starts_with(part));
        if system || unreal || runtime {
            return Err(L1Error::System { what, path: path.to_owned() });
        }
        Ok(())
    }

    /// The secrets of the home that are there.
    fn secrets(&self) -> impl Iterator<Item = PathBuf> {
        let home = self.home.iter();
        let all = home.flat_map(|home| SECRETS.iter().map(|name| home.join(name)));
        all.filter(|secret| secret.symlink_metadata().is_ok())
    }

    /// Whether a path lies in a directory that the kernel writes to and that is not the project.
    fn is_written(&self, path: &Path) -> bool {
        let mut own = self.places.iter().skip(1).filter(|place| place.access == Access::Write);
        own.any(|place| path.starts_with(&place.path) && path != place.path)
    }

    fn show(&mut self, path: &Path) {
        let why = match path.canonicalize() {
            _ if !path.is_absolute() => "it is not an absolute path",
            Err(_) => "it is not there",
            // It is seen as it is.
            Ok(real) if !self.is_covered(&real) && !self.is_covered(path) => return,
            Ok(real) if real != path && !self.is_below_home_alone(path, &real) => {
                "a link could lead anywhere"
            }
            Ok(real) if self.must_uncover_nothing("", &real).is_err() => {
                "it holds what must be hidden"
            }
            Ok(real) if self.secrets().any(|it| it.starts_with(&real) || real.starts_with(&it)) => {
                "it holds or is a secret"
            }
            Ok(real) => {
                let is_dir = real.is_dir();
                if !is_dir && !real.is_file() {
                    "it is neither file nor directory"
                } else {
                    self.add(real, Access::Read, is_dir);
                    return;
                }
            }
        };
        self.passed_over.push((path.to_owned(), why));
    }

    /// Whether the only links in a path are those that lead to the home itself.
    fn is_below_home_alone(&self, path: &Path, real: &Path) -> bool {
        let Some(home) = self.home.as_deref() else { return false };
        let Ok(below) = real.strip_prefix(home) else { return false };
        let mut above = path.ancestors();
        let named = above.find(|above| path.strip_prefix(above).is_ok_and(|rest| rest == below));
        named.is_some_and(|named| named.canonicalize().is_ok_and(|named| named == home))
    }

    fn add(&mut self, path: PathBuf, access: Access, is_dir: bool) {
        // What is read and not covered is there anyway.
        if access != Access::Read || self.is_covered(&path) {
            self.places.push(Place { path, access, is_dir });
        }
    }

    /// Drops what a place before it gives already.
    fn drop_what_is_there(&mut self) {
        let mut kept: Vec<Place> = Vec::new();
        for place in std::mem::take(&mut self.places) {
            // The innermost that holds it decides, as it will when all are in place.
            let around = kept.iter().rev().find(|other| place.path.starts_with(&other.path));
            let given = match (around.map(|other| other.access), place.access) {
                (Some(Access::Write | Access::Own), Access::Read | Access::Write)
                | (Some(Access::Own), Access::Own)
                | (Some(Access::Read), Access::Read) => true,
                (Some(Access::Write), Access::Own)
                | (Some(Access::Read), Access::Write | Access::Own)
                | (None, _) => false,
            };
            if !given {
                kept.push(place);
            }
        }
        self.places = kept;
    }
}

/// A directory without links.
fn real(what: &'static str, path: &Path) -> Result<PathBuf, L1Error> {
    let wrong = |source| L1Error::Path { what, path: path.to_owned(), source };
    let real = path.canonicalize().map_err(wrong)?;
    if !real.is_dir() {
        return Err(wrong(io::ErrorKind::NotADirectory.into()));
    }
    Ok(real)
}

/// The home without links, if there is one.
fn real_home(home: Option<&Path>) -> Result<Option<PathBuf>, L1Error> {
    let what = "the home directory";
    let Some(path) = home else { return Ok(None) };
    let home = match path.canonicalize() {
        // Users of services have homes that do not exist.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|source| L1Error::Path { what, path: path.to_owned(), source })?,
    };
    if SYSTEM.iter().any(|part| Path::new(part).starts_with(&home)) {
        return Err(L1Error::System { what, path: home });
    }
    Ok(Some(home))
}

/// What is covered here, none of it in another.
fn covers(home: Option<&Path>) -> Vec<Cover> {
    let hidden = HIDDEN.iter().map(Path::new).chain(home).map(|at| (at, With::Nothing));
    let own = [(Path::new(SCRATCH), With::Scratch), (Path::new(DEVICES), With::Devices)];
    let mut all: Vec<Cover> = Vec::new();
    for (at, with) in hidden.chain(own) {
        // What cannot be found from here cannot be found from inside either.
        if let Ok(at) = at.canonicalize()
            && at.is_dir()
        {
            all.push(Cover { at, with });
        }
    }
    all.sort_by_key(|cover| cover.at.components().count());
    let mut kept: Vec<Cover> = Vec::new();
    for cover in all {
        if !kept.iter().any(|other| cover.at.starts_with(&other.at)) {
            kept.push(cover);
        }
    }
    kept
}

#[cfg(test)]
mod tests;
