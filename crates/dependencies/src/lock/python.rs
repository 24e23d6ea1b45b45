//! What pip reports, `uv.lock` and `poetry.lock`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::origin;
use crate::package::{PackageOrigin, ResolvedPackage};
use crate::time::parse_utc;

type Read = Result<Vec<ResolvedPackage>, String>;

#[derive(Deserialize)]
struct Report {
    install: Vec<Installed>,
}

#[derive(Deserialize)]
struct Installed {
    metadata: Metadata,
    download_info: Download,
    #[serde(default)]
    requested: bool,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    version: String,
    license: Option<String>,
    license_expression: Option<String>,
    #[serde(default)]
    classifier: Vec<String>,
}

#[derive(Deserialize)]
struct Download {
    url: String,
    archive_info: Option<Archive>,
}

#[derive(Deserialize)]
struct Archive {
    #[serde(default)]
    hashes: BTreeMap<String, String>,
}

/// Reads the report of `pip install --report`.
pub(super) fn read_report(text: &str) -> Read {
    let report: Report = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let packages =
        report.install.into_iter().map(|Installed { metadata, download_info, requested }| {
            let hash = download_info.archive_info.and_then(|it| it.hashes.get("sha256").cloned());
            let mut package = ResolvedPackage::new(
                &metadata.name,
                &metadata.version,
                origin(Some(&download_info.url)),
            );
            // What is built from source runs its own code to do so.
            package.scripts =
                !download_info.url.split(['#', '?']).next().unwrap_or_default().ends_with(".whl");
            package.integrity = hash.map(|hash| format!("sha256:{hash}"));
            package.direct = requested;
            package.licence = licence(&metadata);
            package
        });
    Ok(packages.collect())
}

fn licence(metadata: &Metadata) -> Option<String> {
    let classifier = || {
        let mut named =
            metadata.classifier.iter().rev().filter_map(|it| it.strip_prefix("License :: "));
        named.next().map(|text| text.rsplit(" :: ").next().unwrap_or(text).to_owned())
    };
    let short = metadata.license.as_ref().filter(|text| !text.is_empty() && text.len() <= 60);
    metadata.license_expression.clone().or_else(|| short.cloned()).or_else(classifier)
}

#[derive(Deserialize)]
struct UvLock {
    #[serde(default)]
    package: Vec<UvPackage>,
}

#[derive(Deserialize)]
struct UvPackage {
    name: String,
    #[serde(default)]
    version: String,
    source: BTreeMap<String, toml::Value>,
    #[serde(default)]
    dependencies: Vec<Named>,
    #[serde(default, rename = "dev-dependencies")]
    dev: BTreeMap<String, Vec<Named>>,
    #[serde(default)]
    wheels: Vec<UvFile>,
    sdist: Option<UvFile>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct UvFile {
    hash: Option<String>,
    #[serde(rename = "upload-time")]
    uploaded: Option<toml::Value>,
}

pub(super) fn read_uv(text: &str) -> Read {
    let lock: UvLock = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let is_own = |package: &&UvPackage| {
        ["virtual", "editable", "directory"].iter().any(|kind| package.source.contains_key(*kind))
    };
    let own = lock.package.iter().filter(is_own);
    let asked =
        own.flat_map(|package| package.dependencies.iter().chain(package.dev.values().flatten()));
    let direct: BTreeSet<&str> = asked.map(|named| named.name.as_str()).collect();
    let foreign = lock.package.iter().filter(|package| !is_own(package));
    Ok(foreign
        .map(|package| {
            let place = package.source.get("registry").and_then(toml::Value::as_str);
            let other =
                || package.source.values().next().map(ToString::to_string).unwrap_or_default();
            let origin =
                place.map_or_else(|| PackageOrigin::Elsewhere(other()), PackageOrigin::of_url);
            let mut found = ResolvedPackage::new(&package.name, &package.version, origin);
            let files = || package.wheels.iter().chain(&package.sdist);
            found.integrity = files().find_map(|file| file.hash.clone());
            let uploaded = files().find_map(|file| Some(file.uploaded.as_ref()?.to_string()));
            found.published_ms = uploaded.and_then(|text| parse_utc(text.trim_matches('"')));
            found.scripts = package.wheels.is_empty();
            found.direct = direct.contains(package.name.as_str());
            found
        })
        .collect())
}

#[derive(Deserialize)]
struct PoetryLock {
    #[serde(default)]
    package: Vec<PoetryPackage>,
}

#[derive(Deserialize)]
struct PoetryPackage {
    name: String,
    version: String,
    #[serde(default)]
    files: Vec<PoetryFile>,
    source: Option<PoetrySource>,
}

#[derive(Deserialize)]
struct PoetryFile {
    file: String,
    hash: String,
}

#[derive(Deserialize)]
struct PoetrySource {
    #[serde(rename = "type")]
    kind: String,
    url: String,
}

pub(super) fn read_poetry(text: &str, manifest: &str) -> Read {
    let lock: PoetryLock = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let direct = poetry_direct(manifest);
    let packages = lock.package.into_iter().map(|package| {
        let origin = match &package.source {
            None => PackageOrigin::Registry,
            Some(source) if source.kind == "legacy" => PackageOrigin::of_url(&source.url),
            Some(source) => PackageOrigin::Elsewhere(source.url.clone()),
        };
        let mut found = ResolvedPackage::new(&package.name, &package.version, origin);
        found.scripts = !package.files.iter().any(|file| file.file.ends_with(".whl"));
        found.integrity = package.files.first().map(|file| file.hash.clone());
        found.direct = direct.contains(&package.name.to_ascii_lowercase());
        found
    });
    Ok(packages.collect())
}

/// The names that a manifest asks for, in lower case.
fn poetry_direct(manifest: &str) -> BTreeSet<String> {
    let Ok(manifest) = manifest.parse::<toml::Table>() else { return BTreeSet::new() };
    let mut names = BTreeSet::new();
    let project = manifest.get("project").and_then(|it| it.get("dependencies"));
    for text in project.and_then(toml::Value::as_array).into_iter().flatten() {
        let text = text.as_str().unwrap_or_default();
        let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
        names
            .insert(text.get(..end.unwrap_or(text.len())).unwrap_or_default().to_ascii_lowercase());
    }
    let poetry = manifest.get("tool").and_then(|it| it.get("poetry"));
    let groups = poetry.and_then(|it| it.get("group")).and_then(toml::Value::as_table);
    let tables = groups.into_iter().flat_map(toml::Table::values).chain(poetry);
    for table in tables.filter_map(|it| it.get("dependencies")?.as_table()) {
        names.extend(table.keys().map(|name| name.to_ascii_lowercase()));
    }
    names
}
