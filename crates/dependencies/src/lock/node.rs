//! The lock files of npm, pnpm and Yarn.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::origin;
use crate::package::{PackageOrigin, ResolvedPackage};

type Read = Result<Vec<ResolvedPackage>, String>;

/// The sections of a manifest that name packages.
const SECTIONS: [&str; 4] =
    ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"];

pub(super) fn read_npm(text: &str) -> Read {
    let lock: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let version = lock.get("lockfileVersion").and_then(Value::as_u64).unwrap_or(1);
    let Some(entries) = lock.get("packages").and_then(Value::as_object) else {
        return Err(format!(
            "version {version} of the format has no `packages`; npm 7 and later write it"
        ));
    };
    // Workspaces ask for packages as the root does.
    let is_installed =
        |path: &str| path.starts_with("node_modules/") || path.contains("/node_modules/");
    let asking = entries.iter().filter(|(path, _)| !is_installed(path)).map(|(_, entry)| entry);
    let direct: BTreeSet<&str> = asking.flat_map(names_of).collect();
    let mut packages = Vec::new();
    for (path, entry) in entries.iter().filter(|(path, _)| is_installed(path)) {
        if entry.get("link").and_then(Value::as_bool) == Some(true) {
            continue;
        }
        packages.push(npm_package(path, entry, &direct)?);
    }
    Ok(packages)
}

fn npm_package(
    path: &str,
    entry: &Value,
    direct: &BTreeSet<&str>,
) -> Result<ResolvedPackage, String> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let place = path.rsplit("node_modules/").next().unwrap_or(path);
    // An alias stands under one name and is another package.
    let name = text("name").unwrap_or(place);
    let version = text("version").ok_or_else(|| format!("`{path}` has no version"))?;
    let bundled = entry.get("inBundle").and_then(Value::as_bool) == Some(true);
    let mut package = ResolvedPackage::new(name, version, origin(text("resolved")));
    if package.origin == PackageOrigin::Registry && text("integrity").is_none() && !bundled {
        package.origin = PackageOrigin::Elsewhere("no hash and no address".to_owned());
    }
    package.integrity = text("integrity").map(str::to_owned);
    package.direct = path == format!("node_modules/{place}") && direct.contains(place);
    package.scripts = entry.get("hasInstallScript").and_then(Value::as_bool) == Some(true);
    package.licence = text("license").map(str::to_owned);
    Ok(package)
}

fn names_of(entry: &Value) -> impl Iterator<Item = &str> {
    let sections = SECTIONS.iter().filter_map(|section| entry.get(section)?.as_object());
    sections.flat_map(Map::keys).map(String::as_str)
}

pub(super) fn read_pnpm(text: &str) -> Read {
    let lock: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let importers = lock.get("importers").and_then(Value::as_object);
    let asking = importers.into_iter().flat_map(Map::values).chain([&lock]);
    let direct: BTreeSet<&str> = asking.flat_map(names_of).collect();
    let entries = lock.get("packages").and_then(Value::as_object);
    let mut packages = Vec::new();
    for (key, entry) in entries.into_iter().flatten() {
        let bare = key.strip_prefix('/').unwrap_or(key);
        let bare = bare.split('(').next().unwrap_or(bare);
        let from = usize::from(bare.starts_with('@'));
        let at = bare.get(from..).and_then(|rest| rest.find('@')).map(|at| at + from);
        let at = at.ok_or_else(|| format!("`{key}` names no version"))?;
        let (name, version) =
            (bare.get(..at).unwrap_or_default(), bare.get(at + 1..).unwrap_or_default());
        let resolution = entry.get("resolution");
        let of = |name: &str| resolution.and_then(|it| it.get(name)).and_then(Value::as_str);
        let mut package = ResolvedPackage::new(name, version, origin(of("tarball")));
        if let Some(repository) = of("repo").or_else(|| of("directory")) {
            package.origin = PackageOrigin::Elsewhere(repository.to_owned());
        }
        package.integrity = of("integrity").map(str::to_owned);
        package.direct = direct.contains(name);
        package.scripts = entry.get("requiresBuild").and_then(Value::as_bool) == Some(true);
        packages.push(package);
    }
    Ok(packages)
}

pub(super) fn read_yarn(text: &str, manifest: &str) -> Read {
    if text.contains("__metadata:") {
        return Err("it is of Yarn 2 or later; Yarn 1 is known here".to_owned());
    }
    let manifest: Value = serde_json::from_str(manifest).unwrap_or(Value::Null);
    let direct: BTreeSet<&str> = names_of(&manifest).collect();
    let mut packages: Vec<ResolvedPackage> = Vec::new();
    let mut name = None;
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let value = |key: &str| {
            let rest = line.strip_prefix("  ")?.strip_prefix(key)?.strip_prefix(' ')?;
            Some(rest.trim().trim_matches('"'))
        };
        if !line.starts_with(' ') {
            name = Some(yarn_name(line)?);
        } else if let (Some(version), Some(name)) = (value("version"), name.take()) {
            let mut package = ResolvedPackage::new(name, version, PackageOrigin::Registry);
            package.direct = direct.contains(name);
            packages.push(package);
        } else if let (Some(url), Some(package)) = (value("resolved"), packages.last_mut()) {
            package.origin = origin(url.split('#').next());
        } else if let (Some(hash), Some(package)) = (value("integrity"), packages.last_mut()) {
            package.integrity = Some(hash.to_owned());
        }
    }
    Ok(packages)
}

/// The package of a block's first line: `"@scope/name@^1", name@2:`.
fn yarn_name(line: &str) -> Result<&str, String> {
    let first =
        line.split(',').next().unwrap_or(line).trim().trim_end_matches(':').trim_matches('"');
    let from = usize::from(first.starts_with('@'));
    let at = first.get(from..).and_then(|rest| rest.find('@')).map(|at| at + from);
    let name = at.and_then(|at| first.get(..at));
    let wanted = at.and_then(|at| first.get(at + 1..)).unwrap_or_default();
    // An alias stands under one name and is another package.
    let real = wanted.strip_prefix("npm:").map(|real| {
        let from = usize::from(real.starts_with('@'));
        let at = real.get(from..).and_then(|rest| rest.find('@')).map(|at| at + from);
        at.and_then(|at| real.get(..at)).unwrap_or(real)
    });
    real.or(name).ok_or_else(|| format!("`{line}` names no package"))
}
