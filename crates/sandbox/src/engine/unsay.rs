//! What the driver asked an engine for, read back out of the engine's words.
//!
//! It need not be complete: whoever reads something back says it again and compares.

use std::path::PathBuf;

use fluffy_base::ByteSize;
use serde_json::Value;

use crate::limits::Limits;
use crate::template::Template;

use super::api::LABEL;
use super::plan::{Access, Mount, What};
use super::words::User;

/// A container that is asked for.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) name: String,
    pub(super) instance: String,
    pub(super) image: String,
    pub(super) user: User,
    pub(super) limits: Limits,
    pub(super) mounts: Vec<Mount>,
    pub(super) entry: Vec<String>,
    /// The file of its seccomp profile, where the engine takes one.
    pub(super) profile: PathBuf,
    pub(super) selinux: bool,
}

/// A container in Docker's words.
pub(super) fn docker(name: &str, body: &Value) -> Option<Asked> {
    let host = body.get("HostConfig")?;
    let mut mounts = Vec::new();
    for mount in host.get("Mounts")?.as_array()? {
        let read_only = mount.get("ReadOnly")?.as_bool()?;
        let what = match text(mount, "Type")? {
            "bind" => {
                let access = if read_only { Access::Read } else { Access::Write };
                What::Shown { from: text(mount, "Source")?.into(), access }
            }
            // What it is made of was said when it was made.
            "volume" => {
                let changes = (!read_only).then(|| (PathBuf::from("/"), PathBuf::from("/")));
                What::Overlay { layers: Vec::new(), changes }
            }
            _ => return None,
        };
        mounts.push(Mount { at: text(mount, "Target")?.into(), what });
    }
    for (at, options) in host.get("Tmpfs")?.as_object()? {
        let options: Vec<&str> = options.as_str()?.split(',').collect();
        let what = What::Memory {
            bytes: value(&options, "size=")?.parse().ok()?,
            files: value(&options, "nr_inodes=")?.parse().ok()?,
            mode: u32::from_str_radix(value(&options, "mode=")?, 8).ok()?,
        };
        mounts.push(Mount { at: at.into(), what });
    }
    let files = host.get("Ulimits")?.as_array()?.first()?;
    let (uid, gid) = text(body, "User")?.split_once(':')?;
    let user = match (uid.parse().ok()?, gid.parse().ok()?) {
        (0, 0) => User::Owner,
        (uid, gid) => User::Same(uid, gid),
    };
    let labelled = host.get("SecurityOpt")?.as_array()?;
    Some(Asked {
        name: name.to_owned(),
        instance: text(body.get("Labels")?, LABEL)?.to_owned(),
        image: text(body, "Image")?.to_owned(),
        user,
        limits: limits(
            number(host, "Memory")?,
            number(host, "NanoCpus")? / 1_000_000,
            number(host, "PidsLimit")?,
            number(host, "ShmSize")?,
            number(files, "Soft")?,
        )?,
        mounts,
        entry: texts(body.get("Entrypoint")?)?,
        profile: PathBuf::new(),
        selinux: labelled.iter().any(|option| option == "label=disable"),
    })
}

/// A container in Podman's words.
pub(super) fn podman(body: &Value) -> Option<Asked> {
    let mut mounts = Vec::new();
    for mount in body.get("mounts")?.as_array()? {
        let options = texts(mount.get("options")?)?;
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let what = match text(mount, "type")? {
            "bind" => {
                let access = if options.contains(&"ro") { Access::Read } else { Access::Write };
                What::Shown { from: text(mount, "source")?.into(), access }
            }
            "overlay" => overlay(&options)?,
            "tmpfs" => What::Memory {
                bytes: value(&options, "size=")?.parse().ok()?,
                files: 0,
                mode: u32::from_str_radix(value(&options, "mode=")?, 8).ok()?,
            },
            _ => return None,
        };
        mounts.push(Mount { at: text(mount, "destination")?.into(), what });
    }
    let resources = body.get("resource_limits")?;
    let files = body.get("r_limits")?.as_array()?.first()?;
    let (uid, gid) = text(body, "user")?.split_once(':')?;
    let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
    let user =
        if body.get("userns").is_some() { User::Kept(uid, gid) } else { User::Same(uid, gid) };
    Some(Asked {
        name: text(body, "name")?.to_owned(),
        instance: text(body.get("labels")?, LABEL)?.to_owned(),
        image: text(body, "image")?.to_owned(),
        user,
        limits: limits(
            number(resources.get("memory")?, "limit")?,
            number(resources.get("cpu")?, "quota")? / 100,
            number(resources.get("pids")?, "limit")?,
            number(body, "shm_size")?,
            number(files, "soft")?,
        )?,
        mounts,
        entry: texts(body.get("entrypoint")?)?,
        profile: text(body, "seccomp_profile_path")?.into(),
        selinux: body.get("selinux_opts").is_some(),
    })
}

/// A volume in Docker's words: its name, its instance and what it is.
pub(super) fn volume(body: &Value) -> Option<(String, String, What)> {
    let options: Vec<&str> = text(body.get("DriverOpts")?, "o")?.split(',').collect();
    let instance = text(body.get("Labels")?, LABEL)?;
    Some((text(body, "Name")?.to_owned(), instance.to_owned(), overlay(&options)?))
}

fn overlay(options: &[&str]) -> Option<What> {
    let layers = value(options, "lowerdir=")?.split(':').rev().map(PathBuf::from).collect();
    let changes = match (value(options, "upperdir="), value(options, "workdir=")) {
        (Some(upper), Some(work)) => Some((upper.into(), work.into())),
        (None, None) => None,
        _ => return None,
    };
    Some(What::Overlay { layers, changes })
}

fn limits(memory: u64, cpu: u64, processes: u64, disk: u64, open_files: u64) -> Option<Limits> {
    Some(Limits {
        memory: ByteSize::from_bytes(memory),
        cpu: u32::try_from(cpu).ok()?,
        processes: u32::try_from(processes.checked_sub(1)?).ok()?,
        disk: ByteSize::from_bytes(disk),
        open_files,
        // Of these an engine is told nothing.
        ..Template::CodeExecutor.limits()
    })
}

fn value<'a>(options: &[&'a str], name: &str) -> Option<&'a str> {
    options.iter().find_map(|option| option.strip_prefix(name))
}

fn text<'a>(of: &'a Value, name: &str) -> Option<&'a str> {
    of.get(name)?.as_str()
}

fn number(of: &Value, name: &str) -> Option<u64> {
    of.get(name)?.as_u64()
}

fn texts(of: &Value) -> Option<Vec<String>> {
    of.as_array()?.iter().map(|one| one.as_str().map(str::to_owned)).collect()
}
