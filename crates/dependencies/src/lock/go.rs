//! `go.sum`, with `go.mod`.

use std::collections::BTreeSet;

use crate::package::{PackageOrigin, ResolvedPackage};

pub(super) fn read(sums: &str, manifest: &str) -> Result<Vec<ResolvedPackage>, String> {
    let direct = direct(manifest);
    let mut packages = Vec::new();
    for (number, line) in sums.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let mut words = line.split_whitespace();
        let (Some(name), Some(version), Some(hash)) = (words.next(), words.next(), words.next())
        else {
            return Err(format!("line {} is no module, version and hash", number + 1));
        };
        // The module's own `go.mod` alone: what it says was read, and none of its code is used.
        if version.ends_with("/go.mod") {
            continue;
        }
        let mut package = ResolvedPackage::new(name, version, PackageOrigin::Registry);
        package.integrity = Some(hash.to_owned());
        package.direct = direct.contains(name);
        packages.push(package);
    }
    Ok(packages)
}

/// The modules that a manifest requires itself.
fn direct(manifest: &str) -> BTreeSet<&str> {
    let lines = manifest.lines().map(str::trim).filter(|line| !line.ends_with("// indirect"));
    let lines = lines.map(|line| line.strip_prefix("require").map_or(line, str::trim_start));
    let pairs = lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        let (name, version) = (words.next()?, words.next()?);
        version.starts_with('v').then_some(name)
    });
    pairs.collect()
}
