//! What a bootstrap is told to do.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::trouble::Trouble;

/// Which kernel to start, and where it is heard of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// The kernel's program.
    pub program: PathBuf,
    /// What it is started with.
    pub arguments: Vec<OsString>,
    /// Where it answers.
    pub socket: PathBuf,
    /// Where its output goes; that of the life before is kept beside it, with `.1` at the end.
    pub log: PathBuf,
    /// How long it may take until it answers.
    pub patience: Duration,
    /// What it is to run in.
    pub runtime: Runtime,
}

/// What runs sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    /// The kernel's own, which needs nothing but Linux.
    Native,
    /// Docker.
    Docker,
    /// Podman.
    Podman,
}

/// Understands `--socket PATH --log PATH [--runtime native|docker|podman] -- PROGRAM [ARGUMENT…]`.
///
/// Paths are absolute, so that nothing depends on where the bootstrap happens to stand.
pub fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Boot, Trouble> {
    let (mut socket, mut log, mut runtime) = (None, None, None);
    loop {
        let option = arguments.next().ok_or_else(|| usage("`-- PROGRAM` is missing"))?;
        let slot = match option.to_str() {
            Some("--") => break,
            Some("--socket") => &mut socket,
            Some("--log") => &mut log,
            Some("--runtime") => &mut runtime,
            _ => return Err(usage(&format!("`{}` is not an option", option.display()))),
        };
        if slot.is_some() {
            return Err(usage(&format!("`{}` is given twice", option.display())));
        }
        // Where nothing comes any more, `--` is missing too.
        *slot = arguments.next();
    }
    Ok(Boot {
        program: absolute("PROGRAM", arguments.next())?,
        arguments: arguments.collect(),
        socket: absolute("--socket", socket)?,
        log: absolute("--log", log)?,
        patience: Duration::from_secs(30),
        runtime: match runtime.as_ref().map(|name| name.to_str()) {
            None | Some(Some("native")) => Runtime::Native,
            Some(Some("docker")) => Runtime::Docker,
            Some(Some("podman")) => Runtime::Podman,
            Some(_) => return Err(usage("there is no such `--runtime`")),
        },
    })
}

fn absolute(name: &str, value: Option<OsString>) -> Result<PathBuf, Trouble> {
    let path = value.map(PathBuf::from).filter(|path| path.is_absolute());
    path.ok_or_else(|| usage(&format!("`{name}` needs an absolute path")))
}

fn usage(why: &str) -> Trouble {
    let form = "give `--socket PATH --log PATH [--runtime native|docker|podman] -- PROGRAM …`";
    Trouble::new(2, "the bootstrap does not know what to start", why, form)
}
