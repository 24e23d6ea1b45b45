//! Turns a configuration and a job into what `sandbox-init` is told. Pure but for asking who owns the project.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use fluffy_base::ProjectPath;

use crate::config::{Changes, Config, Workspace};
use crate::job::{Job, Start};
use crate::profile::Profile;
use crate::volume::Volume;

use super::first::{PROXY_PORT, PROXY_SOCKET};
use super::processors;
use super::spec::{
    Bind, Bytes, Command, Furniture, Inner, Kind, Owner, Rlimits, Scratch, Space, SpaceChanges,
    Spec, Upper,
};
use super::system::{System, bind, inside, invented};

/// Where programs are looked for when the kernel was not told.
const PATH: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Files that a sandbox's own furniture takes, beyond what the job may make.
const OWN_FILES: u64 = 256;

/// What the plan needs to know beside the configuration.
pub(crate) struct Surroundings<'a> {
    pub(crate) system: &'a System,
    /// Where programs are looked for; what is not shown is passed over.
    pub(crate) path: &'a [PathBuf],
    /// Variables that tell programs where their toolchains are.
    pub(crate) env: &'a [(OsString, OsString)],
    /// Whether memory has to be limited for each process, because no control group limits it for all.
    pub(crate) limits_memory: bool,
    /// Whether processes have to be limited by the sandbox's user, because no control group does it.
    pub(crate) limits_processes: bool,
    /// Whether it has a control group of version 2.
    pub(crate) unified: bool,
    /// Whether the host's root can be shown as the sandbox's user.
    pub(crate) shows_owners: bool,
}

/// The specification of a sandbox.
pub(crate) fn plan(config: &Config, job: &Job, around: &Surroundings<'_>) -> Spec {
    let workspace = config.workspace();
    let project = workspace.and_then(|space| space.layers.first()).map(PathBuf::as_path);
    let owner = around.system.owner(project);
    let home = home(config);
    let guest = config.profile() == Profile::Strict;
    Spec {
        owner,
        scratch: scratch(config),
        furniture: furniture(config, around.system, home, guest),
        spaces: spaces(config, owner, around.shows_owners),
        unified: around.unified,
        inner: inner(config, job, around),
    }
}

/// What the job of a sandbox is confined by once that stands.
pub(crate) fn inner(config: &Config, job: &Job, around: &Surroundings<'_>) -> Inner {
    let limits = config.limits();
    let home = home(config);
    Inner {
        proxy: config.network().allowed().is_some(),
        profile: config.profile(),
        landlock: around.system.landlock,
        outside: around.system.outside.clone(),
        writable: writable(config, home),
        rlimits: Rlimits {
            open_files: limits.open_files,
            file_bytes: limits.disk.bytes(),
            // The first process counts, too.
            processes: around.limits_processes.then(|| u64::from(limits.processes) + 1),
            data: around.limits_memory.then(|| limits.memory.bytes()),
            processors: processors::worth(limits.cpu),
        },
        command: command(config, job, around, home),
    }
}

/// The home directory of a sandbox.
pub(crate) fn home(config: &Config) -> &Path {
    config.home().unwrap_or(Path::new("/home/fluffy"))
}

/// How much of the scratch space there is.
pub(crate) fn scratch(config: &Config) -> Scratch {
    let limits = config.limits();
    Scratch {
        bytes: limits.disk.bytes().min(limits.memory.bytes()),
        files: limits.files.saturating_add(OWN_FILES),
    }
}

fn furniture(config: &Config, system: &System, home: &Path, guest: bool) -> Vec<Furniture> {
    let mut pieces = system.shown.clone();
    pieces.extend(invented(home));
    for (path, mode) in [("tmp", 0o1777), ("dev/shm", 0o1777)] {
        pieces.push(Furniture::Private(Bytes::from(path), mode));
    }
    pieces.push(Furniture::Private(Bytes::from(inside(home)), 0o755));
    pieces.push(Furniture::Directory(Bytes::from("run/fluffy")));
    let links = [
        ("/proc/self/fd", "dev/fd"),
        ("fd/0", "dev/stdin"),
        ("fd/1", "dev/stdout"),
        ("fd/2", "dev/stderr"),
    ];
    for (to, at) in links {
        pieces.push(Furniture::Link(Bytes::from(to), Bytes::from(at)));
    }
    if !guest {
        pieces.push(Furniture::Terminals(Bytes::from("dev/pts")));
        pieces.push(Furniture::Link(Bytes::from("pts/ptmx"), Bytes::from("dev/ptmx")));
    }
    if let (Some(space), Some(_)) = (config.workspace(), config.parts()) {
        pieces.push(Furniture::Directory(Bytes::from(inside(&space.at))));
    }
    for shown in config.shown() {
        let kind = if shown.path().is_dir() { Kind::Directory } else { Kind::File };
        pieces.push(Furniture::Shown(bind(shown.path(), kind)));
    }
    // What holds others comes before them; the processes' directory last, since it is covered in parts by
    // a device.
    pieces.sort_by_key(|piece| match piece {
        Furniture::Proc(..) => usize::MAX,
        Furniture::Directory(at)
        | Furniture::File(at, _)
        | Furniture::Link(_, at)
        | Furniture::Private(at, _)
        | Furniture::Terminals(at) => at.as_path().components().count(),
        Furniture::Shown(bind) => bind.to.as_path().components().count(),
    });
    pieces
}

/// The workspace, or what is seen of it.
fn spaces(config: &Config, owner: Owner, shows_owners: bool) -> Vec<Space> {
    let Some(workspace) = config.workspace() else { return Vec::new() };
    let whole = lay_out(workspace, owner, shows_owners);
    let Some(parts) = config.parts() else { return vec![whole] };
    let part = |path: &ProjectPath, changes: &SpaceChanges| Space {
        at: Bytes::from(inside(&workspace.at.join(path.as_str()))),
        within: Bytes::from(path.as_str()),
        layers: whole.layers.clone(),
        changes: changes.clone(),
    };
    let seen = parts.seen.iter().map(|path| part(path, &SpaceChanges::Refused));
    let changed = parts.changed.iter().map(|path| part(path, &whole.changes));
    let mut spaces: Vec<Space> = seen.chain(changed).collect();
    spaces.sort_by_key(|space| space.at.as_path().components().count());
    spaces
}

fn lay_out(space: &Workspace, owner: Owner, shows_owners: bool) -> Space {
    let layer = |path: &PathBuf| Bind {
        from: Bytes::from(path),
        to: Bytes::from(""),
        kind: Kind::Directory,
        deep: false,
        owners: shows_owners && owner.privileged && owner.uid == super::system::reserved().uid,
    };
    let upper = |volume: &Volume| match volume.directory() {
        Some(directory) => Upper::Disk(Bytes::from(directory)),
        None => Upper::Memory,
    };
    Space {
        at: Bytes::from(inside(&space.at)),
        within: Bytes::from(""),
        layers: space.layers.iter().map(layer).collect(),
        changes: match &space.changes {
            Changes::Refused => SpaceChanges::Refused,
            Changes::Output(volume) => SpaceChanges::Output(upper(volume)),
            Changes::Overlay(volume) => SpaceChanges::Overlay(upper(volume)),
        },
    }
}

fn writable(config: &Config, home: &Path) -> Vec<Bytes> {
    let mut paths: Vec<Bytes> = ["/tmp", "/dev"].map(Bytes::from).into();
    paths.push(Bytes::from(home));
    match config.workspace().map(|space| (&space.changes, space)) {
        Some((Changes::Overlay(_), space)) => match config.parts() {
            None => paths.push(Bytes::from(&space.at)),
            Some(parts) => {
                let changed = parts.changed.iter().map(|path| space.at.join(path.as_str()));
                paths.extend(changed.map(|path| Bytes::from(&path)));
            }
        },
        Some((Changes::Output(_), _)) => paths.push(Bytes::from("/output")),
        Some((Changes::Refused, _)) | None => {}
    }
    paths
}

fn command(config: &Config, job: &Job, around: &Surroundings<'_>, home: &Path) -> Command {
    let path: Vec<PathBuf> = match around.path {
        [] => PATH.map(PathBuf::from).into(),
        chosen => {
            chosen.iter().filter(|path| is_shown(path, config, around.system)).cloned().collect()
        }
    };
    let path: Vec<PathBuf> = path.into_iter().chain(job.path_last.iter().cloned()).collect();
    let joined = path.iter().map(|path| path.as_os_str()).collect::<Vec<_>>().join(":".as_ref());
    let mut env: Vec<(OsString, OsString)> = vec![
        ("HOME".into(), home.into()),
        ("PATH".into(), joined),
        ("USER".into(), "fluffy".into()),
        ("LOGNAME".into(), "fluffy".into()),
        ("LANG".into(), "C.UTF-8".into()),
        ("TERM".into(), "dumb".into()),
        ("TMPDIR".into(), "/tmp".into()),
        ("FLUFFY_SANDBOX".into(), config.template().name().into()),
    ];
    if config.network().allowed().is_some() {
        let address = format!("http://127.0.0.1:{PROXY_PORT}");
        for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"] {
            env.push((name.into(), address.clone().into()));
        }
        env.push(("FLUFFY_PROXY".into(), format!("/{PROXY_SOCKET}").into()));
    }
    for (name, value) in around.env.iter().chain(&job.env) {
        env.retain(|(known, _)| known != name);
        env.push((name.clone(), value.clone()));
    }
    let cwd = job.cwd.as_deref().or_else(|| config.workspace().map(|space| space.at.as_path()));
    Command {
        program: Bytes::from(&job.program),
        args: job.args.iter().map(Bytes::from).collect(),
        guest: job.start == Start::Guest,
        env: env
            .iter()
            .map(|(name, value)| Bytes([name.as_os_str(), value].join("=".as_ref())))
            .collect(),
        path: path.iter().map(Bytes::from).collect(),
        cwd: Bytes::from(cwd.unwrap_or(Path::new("/tmp"))),
    }
}

/// Whether a directory of the host is seen inside.
fn is_shown(path: &Path, config: &Config, system: &System) -> bool {
    let by_system = system.shown.iter().any(|piece| match piece {
        Furniture::Shown(bind) => path.starts_with(bind.from.as_path()),
        Furniture::Link(_, at) => inside(path).starts_with(at.as_path()),
        _ => false,
    });
    let by_workspace = config.workspace().is_some_and(|space| path.starts_with(&space.at));
    let safe = !path.as_os_str().as_bytes().contains(&b':');
    safe && (by_system
        || by_workspace
        || config.shown().iter().any(|shown| path.starts_with(shown.path())))
}
