//! A container in each engine's own words.
//!
//! **Invariant.** Whatever is asked for, these hold: a read-only root, no capability, no new privileges, our seccomp profile,
//! a network of its own with nothing but loopback, a user that is not the host's root, no device, no swap.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::limits::Limits;

use super::api::LABEL;
use super::error::ApiError;
use super::kind::EngineKind;
use super::plan::{Access, Mount, What};

/// A container.
#[derive(Debug)]
pub(super) struct Container<'a> {
    pub(super) name: &'a str,
    pub(super) instance: &'a str,
    /// The image's digest.
    pub(super) image: &'a str,
    pub(super) user: User,
    pub(super) limits: &'a Limits,
    pub(super) mounts: &'a [Mount],
    pub(super) entry: &'a [String],
    /// The profile, and the file that it lies in.
    pub(super) seccomp: (&'a Value, &'a Path),
    /// Whether labels of SELinux would keep the container from what it is shown.
    pub(super) selinux: bool,
}

/// Who runs in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    /// This user and group of the host.
    Same(u32, u32),
    /// The same in a user namespace in which everybody else is a stranger.
    Kept(u32, u32),
    /// Whoever runs an engine without rights: its containers' root, who is nobody else outside.
    Owner,
}

/// Parts of the processes' directory that concern the machine. `/sys` is covered as a whole.
const MASKED: [&str; 14] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/key-users",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/kallsyms",
    "/sys",
];

const READ_ONLY: [&str; 5] =
    ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// The slice of time of which a container gets its share, in microseconds.
const PERIOD: u64 = 100_000;

/// A container in an engine's words, and the volumes that it needs.
pub(super) fn say(
    engine: EngineKind,
    container: &Container<'_>,
) -> Result<(Vec<Value>, Value), ApiError> {
    match engine {
        EngineKind::Docker => docker(container),
        EngineKind::Podman => Ok((Vec::new(), podman(container)?)),
    }
}

/// The first process counts, too.
fn processes(limits: &Limits) -> u64 {
    u64::from(limits.processes).saturating_add(1)
}

fn docker(container: &Container<'_>) -> Result<(Vec<Value>, Value), ApiError> {
    let (mut volumes, mut mounts, mut memory) = (Vec::new(), Vec::new(), Map::new());
    for mount in container.mounts {
        let at = text(&mount.at)?;
        match &mount.what {
            What::Shown { from, access } => mounts.push(json!({
                "Type": "bind", "Source": text(from)?, "Target": at,
                "ReadOnly": *access == Access::Read,
                "BindOptions": { "Propagation": "private", "NonRecursive": true },
            })),
            What::Overlay { changes, .. } => {
                let name = format!("{}-{}", container.name, volumes.len());
                volumes.push(volume(&name, container.instance, &mount.what)?);
                mounts.push(json!({
                    "Type": "volume", "Source": name, "Target": at, "ReadOnly": changes.is_none(),
                    "VolumeOptions": { "NoCopy": true },
                }));
            }
            What::Memory { bytes, files, mode } => {
                let options =
                    format!("rw,exec,nosuid,nodev,size={bytes},nr_inodes={files},mode={mode:o}");
                memory.insert(at.to_owned(), Value::from(options));
            }
        }
    }
    let mut security =
        vec!["no-new-privileges".to_owned(), format!("seccomp={}", container.seccomp.0)];
    security.extend(container.selinux.then(|| "label=disable".to_owned()));
    let limits = container.limits;
    let user = match container.user {
        User::Same(uid, gid) | User::Kept(uid, gid) => format!("{uid}:{gid}"),
        User::Owner => "0:0".to_owned(),
    };
    let host = json!({
        "NetworkMode": "none", "IpcMode": "private", "CgroupnsMode": "private", "PidMode": "",
        "Privileged": false, "ReadonlyRootfs": true, "CapDrop": ["ALL"], "SecurityOpt": security,
        "Mounts": mounts, "Tmpfs": memory, "MaskedPaths": MASKED, "ReadonlyPaths": READ_ONLY,
        "Memory": limits.memory.bytes(), "MemorySwap": limits.memory.bytes(),
        "PidsLimit": processes(limits), "NanoCpus": u64::from(limits.cpu).max(10) * 1_000_000,
        "Ulimits": [
            { "Name": "nofile", "Soft": limits.open_files, "Hard": limits.open_files },
            { "Name": "core", "Soft": 0, "Hard": 0 },
        ],
        "ShmSize": shared_memory(limits), "LogConfig": { "Type": "none" }, "OomScoreAdj": 500,
        "RestartPolicy": { "Name": "no" }, "Init": false,
    });
    let body = json!({
        "Image": container.image, "Entrypoint": container.entry, "Cmd": [], "User": user,
        "WorkingDir": "/", "Hostname": "sandbox", "NetworkDisabled": true,
        "Labels": { LABEL: container.instance }, "HostConfig": host,
    });
    Ok((volumes, body))
}

/// A volume in Docker's words: an overlay that its daemon mounts.
pub(super) fn volume(name: &str, instance: &str, what: &What) -> Result<Value, ApiError> {
    let options = match what {
        What::Overlay { layers, changes } => overlay(layers, changes.as_ref())?,
        What::Shown { .. } | What::Memory { .. } => Vec::new(),
    };
    Ok(json!({
        "Name": name, "Driver": "local", "Labels": { LABEL: instance },
        "DriverOpts": { "type": "overlay", "device": "overlay", "o": options.join(",") },
    }))
}

fn podman(container: &Container<'_>) -> Result<Value, ApiError> {
    let mounts = podman_mounts(container.mounts)?;
    let limits = container.limits;
    let quota = (u64::from(limits.cpu) * (PERIOD / 1000)).max(1000);
    let of_users = processes_of_a_user();
    let mut body = json!({
        "name": container.name, "image": container.image, "labels": { LABEL: container.instance },
        "entrypoint": container.entry, "command": [], "work_dir": "/", "hostname": "sandbox",
        "env_host": false, "httpproxy": false, "image_volume_mode": "ignore", "systemd": "false",
        "netns": { "nsmode": "none" }, "ipcns": { "nsmode": "private" },
        "cgroupns": { "nsmode": "private" }, "pidns": { "nsmode": "private" },
        "utsns": { "nsmode": "private" }, "use_image_hosts": true, "use_image_resolve_conf": true,
        "privileged": false, "read_only_filesystem": true, "cap_drop": ["ALL"], "cap_add": [],
        "no_new_privileges": true, "seccomp_profile_path": text(container.seccomp.1)?,
        "mask": MASKED, "mounts": mounts, "shm_size": shared_memory(limits),
        "resource_limits": {
            "memory": { "limit": limits.memory.bytes(), "swap": limits.memory.bytes() },
            "pids": { "limit": processes(limits) }, "cpu": { "quota": quota, "period": PERIOD },
        },
        "r_limits": [
            { "type": "nofile", "soft": limits.open_files, "hard": limits.open_files },
            { "type": "core", "soft": 0, "hard": 0 },
            { "type": "nproc", "soft": of_users, "hard": of_users },
        ],
        "log_configuration": { "driver": "none" }, "oom_score_adj": 500, "init": false,
    });
    let (user, namespace) = match container.user {
        User::Same(uid, gid) => (format!("{uid}:{gid}"), None),
        User::Kept(uid, gid) => (format!("{uid}:{gid}"), Some("keep-id")),
        User::Owner => ("0:0".to_owned(), None),
    };
    let said = body.as_object_mut().map(|body| {
        body.insert("user".to_owned(), user.into());
        if let Some(namespace) = namespace {
            body.insert("userns".to_owned(), json!({ "nsmode": namespace }));
        }
        if container.selinux {
            body.insert("selinux_opts".to_owned(), json!(["disable"]));
        }
    });
    debug_assert!(said.is_some());
    Ok(body)
}

fn podman_mounts(of: &[Mount]) -> Result<Vec<Value>, ApiError> {
    let mut mounts = Vec::new();
    for mount in of {
        let (kind, source, options) = match &mount.what {
            What::Shown { from, access } => {
                let access = if *access == Access::Read { "ro" } else { "rw" };
                let options = ["bind", access, "nosuid", "nodev", "private"].map(str::to_owned);
                ("bind", text(from)?, options.to_vec())
            }
            What::Overlay { layers, changes } => {
                ("overlay", "overlay", overlay(layers, changes.as_ref())?)
            }
            What::Memory { bytes, mode, .. } => {
                let options = [format!("size={bytes}"), format!("mode={mode:o}")];
                let plain = ["nosuid", "nodev", "notmpcopyup"].map(str::to_owned);
                ("tmpfs", "tmpfs", plain.into_iter().chain(options).collect())
            }
        };
        mounts.push(json!({
            "destination": text(&mount.at)?, "type": kind, "source": source, "options": options,
        }));
    }
    Ok(mounts)
}

/// What one user may start at most. Podman would ask for more than it may have itself on some machines; the limit that
/// counts is that of the container.
fn processes_of_a_user() -> u64 {
    let ours = rustix::process::getrlimit(rustix::process::Resource::Nproc).maximum;
    let numbers = std::fs::read_to_string("/proc/sys/kernel/pid_max");
    let numbers = numbers.ok().and_then(|text| text.trim().parse().ok());
    ours.unwrap_or(u64::MAX).min(numbers.unwrap_or(32_768))
}

/// Shared memory counts as memory of the container; this is what it may be at most.
fn shared_memory(limits: &Limits) -> u64 {
    limits.disk.bytes().min(limits.memory.bytes())
}

/// The options of an overlay. A path that means something there cannot be said.
fn overlay(
    layers: &[PathBuf],
    changes: Option<&(PathBuf, PathBuf)>,
) -> Result<Vec<String>, ApiError> {
    let plain = |path: &Path| -> Result<String, ApiError> {
        let said = text(path)?;
        if said.contains([',', ':', '\\', '"']) {
            let why = "it holds a comma, a colon, a quote or a back slash";
            return Err(ApiError::Path { path: path.to_owned(), why });
        }
        Ok(said.to_owned())
    };
    // The highest comes first.
    let lower = layers.iter().rev().map(|layer| plain(layer)).collect::<Result<Vec<_>, _>>()?;
    let mut options = vec!["nosuid".to_owned(), "nodev".to_owned()];
    options.push(format!("lowerdir={}", lower.join(":")));
    match changes {
        Some((upper, work)) => {
            options.push(format!("upperdir={}", plain(upper)?));
            options.push(format!("workdir={}", plain(work)?));
        }
        None => options.push("ro".to_owned()),
    }
    // Marks that whoever reads the changes can read, too.
    options.push("userxattr".to_owned());
    Ok(options)
}

fn text(path: &Path) -> Result<&str, ApiError> {
    let why = "it is not UTF-8";
    path.to_str().ok_or_else(|| ApiError::Path { path: path.to_owned(), why })
}
