//! Reads the directory of a plugin, to be sent to the kernel: its process does not see it.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fluffy_base::ProjectPath;
use fluffy_kernel::{Package, PackageError, PluginError, Unpacked};

use crate::explain::{CliError, Explained, USAGE};
use crate::wire::{Bytes, PackedBytes};

/// What lies beside the files of a plugin and is none of them.
const LEFT_OUT: [&str; 3] = [".git", "target", "__pycache__"];

/// How deep directories may lie in each other.
const MAX_DEPTH: usize = 32;

/// The plugin in a directory, as the kernel takes it. What is no plugin is refused before anybody is asked.
pub(super) fn text(dir: &Path) -> Result<String, CliError> {
    let mut files = Vec::new();
    collect(dir, Path::new(""), 0, &mut files)?;
    let package = Package::new(files).map_err(PluginError::from)?;
    let sent = package.files().iter().map(|file| PackedBytes {
        path: file.path.to_string(),
        executable: file.executable,
        content: Bytes(file.bytes.clone()),
    });
    let sent: Vec<_> = sent.collect();
    Ok(serde_json::to_string(&sent).map_err(std::io::Error::from)?)
}

fn collect(
    root: &Path,
    inside: &Path,
    depth: usize,
    files: &mut Vec<Unpacked>,
) -> Result<(), CliError> {
    let dir = root.join(inside);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| CliError::File { action: "read", path, source }
    };
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(&dir).map_err(failed(&dir))? {
        entries.push(entry.map_err(failed(&dir))?);
    }
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (name, path) = (entry.file_name(), entry.path());
        if LEFT_OUT.iter().any(|left_out| name == *left_out) {
            continue;
        }
        let kind = entry.file_type().map_err(failed(&path))?;
        let inside = inside.join(&name);
        if kind.is_dir() && depth < MAX_DEPTH {
            collect(root, &inside, depth + 1, files)?;
        } else if kind.is_file() {
            files.push(file(&path, &inside)?);
        } else {
            return Err(refused(&path));
        }
        let bytes = files.iter().fold(0_usize, |sum, file| sum.saturating_add(file.bytes.len()));
        if files.len() > Package::MAX_FILES {
            return Err(PluginError::from(PackageError::Many).into());
        }
        if bytes > Package::MAX_BYTES {
            return Err(PluginError::from(PackageError::Large).into());
        }
    }
    Ok(())
}

fn file(path: &Path, inside: &Path) -> Result<Unpacked, CliError> {
    let failed = |source| CliError::File { action: "read", path: path.to_owned(), source };
    let opened = std::fs::File::open(path).map_err(failed)?;
    let executable = opened.metadata().map_err(failed)?.permissions().mode() & 0o100 != 0;
    let mut bytes = Vec::new();
    let limit = u64::try_from(Package::MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    opened.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    let named = inside.to_str().and_then(|name| ProjectPath::parse(name).ok());
    let path: PathBuf = path.to_owned();
    let path = named.ok_or_else(|| refused(&path))?;
    Ok(Unpacked { path, bytes, executable })
}

fn refused(path: &Path) -> CliError {
    CliError::Told(Explained {
        what: format!("`{}` cannot be a file of a plugin", path.display()),
        why:
            "a plugin is made of regular files with plain names, and nothing in it leads elsewhere"
                .to_owned(),
        fix: "put the file itself there, or leave it out".to_owned(),
        code: USAGE,
    })
}
