//! The sandboxes in which managers run.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use fluffy_base::{ByteSize, ProjectPath, Span};
use fluffy_dependencies::{Manager, Script, WORK};
use fluffy_sandbox::{End, Limits, Template, Volume};
use rustix::fs::{CWD, Mode, OFlags};

use super::Dependencies;
use crate::session::failed;
use crate::workshop::Layer;
use crate::{Errand, Errands, Journal, Keeps, ToolError};

/// How long one of the steps of an installation may take.
pub(super) const TIME: Span = Span::from_ms(15 * 60 * 1000);

/// How much of what a manager printed is told.
const TAIL: usize = 2_000;

/// A step of an installation.
pub(super) struct SandboxStep<'a> {
    /// What it is, for errors.
    pub(super) what: &'a str,
    /// The script.
    pub(super) script: Script,
    /// Where the package lies.
    pub(super) root: Option<&'a ProjectPath>,
    /// The directories that it sees, the lowest first.
    pub(super) layers: Vec<PathBuf>,
    /// The hosts that it reaches.
    pub(super) hosts: Vec<String>,
    /// Whether what it leaves is kept.
    pub(super) keeps: bool,
    /// How long it may take.
    pub(super) time: Span,
}

/// A path below the folder of a package.
pub(super) fn below(root: Option<&ProjectPath>, name: &str) -> Result<ProjectPath, ToolError> {
    let path = match root {
        Some(root) => root.join(name),
        None => ProjectPath::parse(name),
    };
    path.map_err(|error| failed(&error))
}

/// The files that a script needs, put beside the manifests.
pub(super) fn add_files(
    layer: &Layer,
    root: Option<&ProjectPath>,
    files: &[(&str, String)],
) -> Result<(), ToolError> {
    for (name, text) in files {
        let path = below(root, &format!("{WORK}/{name}"))?;
        let above = path.parent().ok_or_else(|| ToolError("a file has no folder".to_owned()))?;
        layer.directory(&above, &[]).map_err(|error| failed(&error))?;
        layer.file(&path, text).map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// Reads a file that a manager left: a regular one, of bounded size, to which no link leads.
pub(super) fn read_left(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(CWD, path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large"));
    }
    Ok(bytes)
}

impl Dependencies {
    /// Runs a step to its end; a step that fails is an error with what it printed.
    pub(super) fn run_step(
        &self,
        step: SandboxStep<'_>,
        journal: &dyn Journal,
    ) -> Result<(Errands, Option<Volume>), ToolError> {
        let SandboxStep { what, script, root, layers, hosts, keeps, time } = step;
        let project = self.options.lab.project().to_owned();
        let mut errand = Errand::new("/bin/sh", project.clone(), layers);
        let folder = root.map_or_else(|| project.clone(), |root| project.join(root.as_str()));
        let text = format!("cd -- \"$0\"\n{}", script.text);
        errand = errand.args(["-c".into(), text.into(), folder.into_os_string()]);
        let env = script.env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
        errand.env = env.collect();
        errand.keeps = if keeps { Keeps::Overlay } else { Keeps::Briefly };
        errand.hosts = hosts;
        errand.private_hosts = true;
        errand.time = Some(time);
        errand.limits = Limits {
            memory: ByteSize::from_bytes(4 << 30),
            processes: 500,
            ..Template::IntegrationTest.limits()
        };
        let unseen = [WORK, "node_modules", ".venv", ".fluffy-env", "target"];
        errand.unseen = unseen.iter().filter_map(|name| below(root, name).ok()).collect();
        let (errands, volume) =
            self.options.lab.run_keeping(errand, journal).map_err(|error| failed(&error))?;
        if errands.end == End::Exited(0) {
            return Ok((errands, volume));
        }
        Err(self.failure(what, &errands))
    }

    fn failure(&self, what: &str, errands: &Errands) -> ToolError {
        let text = [&errands.stderr.bytes, &errands.stdout.bytes];
        let text = text.into_iter().find(|bytes| !bytes.trim_ascii().is_empty());
        let text =
            text.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
        let text = self.options.registries.masked(&text);
        let from = text.ceil_char_boundary(text.len().saturating_sub(TAIL));
        let told = text.get(from..).unwrap_or_default().trim();
        let refused: Vec<String> = errands
            .asked
            .iter()
            .filter_map(|asked| Some(format!("`{}` ({})", asked.host, asked.refused.as_ref()?)))
            .collect();
        let mut why = format!("{what} {}", errands.end);
        if !refused.is_empty() {
            let mut refused = refused;
            refused.sort();
            refused.dedup();
            refused.truncate(5);
            why += &format!(
                "; it asked for hosts that are no registry of yours: {}",
                refused.join(", ")
            );
        }
        ToolError(if told.is_empty() { why } else { format!("{why}: {told}") })
    }

    /// The version of a manager and of what its packages run on, found out once.
    pub(super) fn version(
        &self,
        manager: Manager,
        layer: &Layer,
        journal: &dyn Journal,
    ) -> Result<String, ToolError> {
        let mut known = self.versions.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(version) = known.get(&manager) {
            return Ok(version.clone());
        }
        let step = SandboxStep {
            what: "finding out the version of the package manager",
            script: fluffy_dependencies::version_script(manager),
            root: None,
            layers: vec![layer.dir().to_owned()],
            hosts: Vec::new(),
            keeps: false,
            time: TIME,
        };
        let (errands, _nothing) = self.run_step(step, journal).map_err(|error| {
            ToolError(format!(
                "`{manager}` cannot be run in the sandbox, so that nothing can be installed with it; \
                 it has to be on this machine: {}",
                error.0
            ))
        })?;
        let text = String::from_utf8_lossy(&errands.stdout.bytes);
        let version = text.split_whitespace().collect::<Vec<_>>().join(" ");
        known.insert(manager, version.clone());
        Ok(version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_manager_left_is_read_with_care() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::os::unix::fs::symlink("/etc/passwd", at("link")).unwrap();
        rustix::fs::mknodat(CWD, at("pipe"), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        let mut file =
            File::options().write(true).create(true).truncate(true).open(at("file")).unwrap();
        io::Write::write_all(&mut file, b"12345").unwrap();
        for (name, max) in [("link", 1 << 20), ("pipe", 1 << 20), ("file", 4), ("", 9), ("none", 9)]
        {
            assert!(read_left(&at(name), max).is_err(), "{name}");
        }
        assert_eq!(read_left(&at("file"), 5).unwrap(), b"12345");
    }
}
