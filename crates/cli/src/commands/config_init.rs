//! `fluffy config init`: the shipped policy, written where it can be changed.

use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use fluffy_policy::DEFAULT_POLICY;

use crate::explain::{CliError, DONE};
use crate::output::Output;
use crate::place::{OWN_CASES, OWN_POLICY, Place};

pub(crate) fn run(place: &Place, force: bool, output: &mut Output) -> Result<u8, CliError> {
    let path = place.policy_file();
    let there = refuse_link(&path)?;
    if there && !force {
        return Err(CliError::PolicyExists);
    }
    let fresh = path.with_file_name(".policy.yaml.new");
    write(&path, &fresh, there).map_err(|source| CliError::File {
        action: "write",
        path: path.clone(),
        source,
    })?;
    output.line(format!("Wrote {OWN_POLICY}: the shipped policy, with comments."))?;
    output.line("")?;
    output.line("Change it, and then:")?;
    output.line("  fluffy policy check                       find mistakes")?;
    output.line("  fluffy policy explain fs.write README.md  see why something is decided")?;
    output.line(format!(
        "  fluffy policy test                        try the cases in {OWN_CASES}"
    ))?;
    output.line("  fluffy policy schema                      help for your editor")?;
    output.line("Once the kernel works by it, replace it with what you see before it holds:")?;
    output.line("  fluffy policy update FILE")?;
    Ok(DONE)
}

/// Whether the policy is there. A link is refused, be it the folder or the file: what is written
/// through it would lie where nobody protects it.
fn refuse_link(path: &Path) -> Result<bool, CliError> {
    let mut there = false;
    for place in path.parent().into_iter().chain([path]) {
        there = match std::fs::symlink_metadata(place) {
            Ok(found) if found.is_symlink() => return Err(CliError::Link(place.to_owned())),
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(source) => {
                return Err(CliError::File { action: "read", path: place.to_owned(), source });
            }
        };
    }
    Ok(there)
}

/// A new file is created where none is; one that is there is replaced whole.
#[expect(clippy::disallowed_methods, reason = "the one place that writes a first policy")]
fn write(path: &Path, fresh: &Path, there: bool) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    if !there {
        return write_new(path);
    }
    match std::fs::remove_file(fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    write_new(fresh)?;
    std::fs::rename(fresh, path)
}

fn write_new(path: &Path) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o644).open(path)?;
    file.write_all(DEFAULT_POLICY.as_bytes())?;
    file.sync_all()
}
