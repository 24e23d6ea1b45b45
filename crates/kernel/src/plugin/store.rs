//! Where the files of installed plugins lie, each under the hash of all of them.
//!
//! **Invariant.** A file is read once, beneath its directory's handle and through no link; the bytes that are given are the
//! bytes that were hashed. What is not as it was installed is not given at all.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use fluffy_base::Digest;

use super::files::{self, Lasting, OwnDir};
use super::{Installed, Package, PluginError, Unpacked};
use crate::Tree;

/// The files of installed plugins.
#[derive(Debug, Clone)]
pub(super) struct Store {
    dir: PathBuf,
}

impl Store {
    pub(super) fn of(dir: &Path) -> Self {
        Self { dir: dir.join("store") }
    }

    /// Keeps the files of a plugin.
    pub(super) fn put(&self, package: &Package) -> Result<(), PluginError> {
        let at = self.at(package.digest());
        let failed = |source| PluginError::Io { path: at.clone(), source };
        let made = OwnDir::new(&self.dir, "new").map_err(failed)?;
        made.fill(package.files(), Lasting::Synced).map_err(failed)?;
        made.named(&at).map_err(failed)
    }

    /// Removes the files of a plugin that is not installed any more.
    pub(super) fn remove(&self, package: Digest) {
        files::remove(&self.at(package));
    }

    /// The files of a plugin, as they were installed.
    pub(super) fn get(&self, plugin: &Installed) -> Result<Package, PluginError> {
        let at = self.at(plugin.package);
        let tree = Tree::open(&at).map_err(|source| PluginError::Io { path: at, source })?;
        let mut found = Vec::new();
        for sealed in &plugin.files {
            let (name, file) = (plugin.name.clone(), sealed.path.clone());
            let broken = |source| PluginError::Unreadable { name, file, source };
            let opened = tree.file(&sealed.path);
            let read = opened.and_then(|opened| {
                let mut bytes = Vec::new();
                let limit = Package::MAX_BYTES as u64 + 1;
                let read = opened.take(limit).read_to_end(&mut bytes);
                let path = sealed.path.to_string();
                read.map(|_| bytes).map_err(|source| crate::TreeError::Io { path, source })
            });
            let bytes = read.map_err(broken)?;
            let hash = Digest::of(&bytes);
            if hash != sealed.sha256 {
                let (name, file) = (plugin.name.clone(), sealed.path.clone());
                return Err(PluginError::Changed {
                    name,
                    file,
                    sealed: sealed.sha256,
                    found: hash,
                });
            }
            let (path, executable) = (sealed.path.clone(), sealed.executable);
            found.push(Unpacked { path, bytes, executable });
        }
        let package = Package::new(found)?;
        if package.digest() == plugin.package && package.manifest().name == plugin.name {
            Ok(package)
        } else {
            Err(PluginError::List(plugin.name.clone()))
        }
    }

    fn at(&self, package: Digest) -> PathBuf {
        self.dir.join(package.to_string())
    }
}
