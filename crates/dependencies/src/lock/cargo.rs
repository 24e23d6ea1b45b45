//! `Cargo.lock`.

use serde::Deserialize;

use crate::package::{PackageOrigin, ResolvedPackage};

#[derive(Deserialize)]
struct Lock {
    #[serde(default)]
    package: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    source: Option<String>,
    checksum: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
}

pub(super) fn read(text: &str) -> Result<Vec<ResolvedPackage>, String> {
    let lock: Lock = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    // What has no source is the project's own, and what it depends on is asked for by the project.
    let own = lock.package.iter().filter(|package| package.source.is_none());
    let direct: Vec<&str> =
        own.flat_map(|package| &package.dependencies).map(String::as_str).collect();
    let is_direct = |name: &str, version: &str| {
        direct.iter().any(|text| {
            let mut words = text.split(' ');
            words.next() == Some(name) && words.next().is_none_or(|wanted| wanted == version)
        })
    };
    let foreign =
        lock.package.iter().filter_map(|package| Some((package, package.source.as_deref()?)));
    Ok(foreign
        .map(|(Package { name, version, checksum, .. }, source)| {
            let registry =
                source.strip_prefix("registry+").or_else(|| source.strip_prefix("sparse+"));
            let origin = match registry {
                // The lock file names crates.io by its old address, whatever stands in for it.
                Some("https://github.com/rust-lang/crates.io-index") => PackageOrigin::Registry,
                Some(url) => PackageOrigin::of_url(url),
                None => PackageOrigin::Elsewhere(source.to_owned()),
            };
            let mut package = ResolvedPackage::new(name, version, origin);
            package.integrity = checksum.as_ref().map(|hash| format!("sha256:{hash}"));
            package.direct = is_direct(name, version);
            package
        })
        .collect())
}
