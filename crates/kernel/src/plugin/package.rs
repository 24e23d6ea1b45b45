//! The files of a plugin, as they are handed over, hashed and kept.

use std::collections::BTreeSet;

use fluffy_base::{Digest, Excerpt, ProjectPath};
use fluffy_policy::PolicyError;
use serde::{Deserialize, Serialize};

use super::{MANIFEST, Manifest};

/// The most files of a plugin.
const MAX_FILES: usize = 2_000;
/// The most bytes of all of them.
const MAX_BYTES: usize = 40 << 20;

/// A file as it was hashed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedFile {
    /// Where it is in the plugin's directory.
    pub path: ProjectPath,
    /// Hash of its bytes.
    pub sha256: Digest,
    /// Whether it is a program.
    pub executable: bool,
}

/// A file with its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// Where it is in the plugin's directory.
    pub path: ProjectPath,
    /// All of it.
    pub bytes: Vec<u8>,
    /// Whether it is a program.
    pub executable: bool,
}

/// All files of a plugin, with the manifest among them.
#[derive(Debug, Clone, PartialEq)]
pub struct Package {
    files: Vec<Unpacked>,
    manifest: Manifest,
    digest: Digest,
}

/// Why files are no plugin.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// There is no manifest.
    #[error("there is no `{MANIFEST}`")]
    NoManifest,
    /// The manifest is not UTF-8.
    #[error("`{MANIFEST}` is not UTF-8")]
    NotText,
    /// The manifest says something that it cannot.
    #[error(transparent)]
    Manifest(#[from] PolicyError),
    /// The entry is not among the files.
    #[error("the entry `{0}` is not among its files")]
    NoEntry(ProjectPath),
    /// The entry cannot be started.
    #[error("the entry `{0}` is a program, and its file is not executable")]
    NotExecutable(ProjectPath),
    /// Two files of one name.
    #[error("`{0}` stands twice among its files")]
    Twice(ProjectPath),
    /// Too many files.
    #[error("it has more than {MAX_FILES} files")]
    Many,
    /// Too many bytes.
    #[error("its files have more than {} MiB", MAX_BYTES >> 20)]
    Large,
}

impl Package {
    /// The most files of a plugin.
    pub const MAX_FILES: usize = MAX_FILES;
    /// The most bytes of all of them.
    pub const MAX_BYTES: usize = MAX_BYTES;

    /// A plugin of these files.
    pub fn new(mut files: Vec<Unpacked>) -> Result<Self, PackageError> {
        if files.len() > MAX_FILES {
            return Err(PackageError::Many);
        }
        let bytes = files.iter().fold(0_usize, |sum, file| sum.saturating_add(file.bytes.len()));
        if bytes > MAX_BYTES {
            return Err(PackageError::Large);
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut seen = BTreeSet::new();
        if let Some(twice) = files.iter().find(|file| !seen.insert(file.path.folded())) {
            return Err(PackageError::Twice(twice.path.clone()));
        }
        let manifest = manifest_of(&files)?;
        let digest = digest_of(&packed(&files));
        Ok(Self { files, manifest, digest })
    }

    /// What it says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its files with their bytes, by path.
    pub fn files(&self) -> &[Unpacked] {
        &self.files
    }

    /// Its files with their hashes, by path.
    pub fn packed(&self) -> Vec<PackedFile> {
        packed(&self.files)
    }

    /// The hash over the names, kinds and hashes of all its files.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

fn packed(files: &[Unpacked]) -> Vec<PackedFile> {
    let one = |file: &Unpacked| PackedFile {
        path: file.path.clone(),
        sha256: Digest::of(&file.bytes),
        executable: file.executable,
    };
    files.iter().map(one).collect()
}

/// The hash over a list of files: of one text for one list.
pub(super) fn digest_of(files: &[PackedFile]) -> Digest {
    let mut text = String::from("fluffy plugin 1\n");
    for file in files {
        let kind = if file.executable { 'x' } else { '-' };
        // A path holds no line break that could be taken for the next file: its length stands before it.
        let path = file.path.as_str();
        text += &format!("{kind} {} {} {path}\n", file.sha256, path.len());
    }
    Digest::of(text.as_bytes())
}

fn manifest_of(files: &[Unpacked]) -> Result<Manifest, PackageError> {
    let file = files.iter().find(|file| file.path.as_str() == MANIFEST);
    let file = file.ok_or(PackageError::NoManifest)?;
    let text = std::str::from_utf8(&file.bytes).map_err(|_| PackageError::NotText)?;
    let manifest = Manifest::parse(MANIFEST, text)?;
    let entry = files.iter().find(|file| file.path == manifest.entry);
    let entry = entry.ok_or_else(|| PackageError::NoEntry(manifest.entry.clone()))?;
    if manifest.runtime == super::PluginRuntime::Native && !entry.executable {
        return Err(PackageError::NotExecutable(entry.path.clone()));
    }
    Ok(manifest)
}

impl PackageError {
    /// What to do about it.
    pub fn fix(&self) -> String {
        match self {
            Self::NoManifest => {
                "name the plugin's own directory, or begin one: fluffy plugin new NAME".to_owned()
            }
            Self::NotText => "write it as UTF-8".to_owned(),
            Self::Manifest(_) => {
                "mend that line; docs/plugins.md tells what each key means".to_owned()
            }
            Self::NoEntry(path) => {
                format!("put `{}` there, or name another `entry`", Excerpt::new(path.as_str(), 100))
            }
            Self::NotExecutable(path) => {
                format!("build it, then: chmod +x {}", Excerpt::new(path.as_str(), 100))
            }
            Self::Twice(_) => "rename one of them".to_owned(),
            Self::Many | Self::Large => "leave out what the plugin does not need to run".to_owned(),
        }
    }
}
