//! The programs that look at skills: a Python environment of its own with pinned versions, made once and kept.
//!
//! ```text
//! <cache>/tools/python-<digest of what is pinned>/
//!     venv/    the environment: ruff, mypy, pytest
//!     warm/    what mypy knows of the standard library, laid under the files that it looks at
//! ```
//!
//! **Invariant.** Whatever is there under its name is whole: each part is made beside it and renamed when it is done. No
//! sandbox can write to it, so that no skill leaves anything for the next one.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use fluffy_base::{Digest, Excerpt};

/// What is installed, every version and every hash.
const REQUIREMENTS: &str = include_str!("../profiles/python-requirements.txt");

/// What mypy reads beforehand, and how it is told to.
const WARM: &str = include_str!("../profiles/warm.py");
pub(crate) const MYPY: &str = include_str!("../profiles/mypy.ini");

/// The directory of mypy's knowledge among the files that it looks at.
pub(crate) const CACHE: &str = "cache";

/// The oldest Python that the pinned tools run with.
const OLDEST: (u32, u32) = (3, 10);

/// The tools, found and whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    /// The interpreter of their environment.
    pub python: PathBuf,
    /// The linter.
    pub ruff: PathBuf,
    /// A directory that is laid under what mypy looks at.
    pub warm: PathBuf,
    /// The version of Python.
    pub version: (u32, u32),
    /// What a sandbox has to see for them to run.
    pub shown: Vec<PathBuf>,
    /// Hash of what is pinned.
    pub pinned: Digest,
}

/// A command of the installer's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallStep {
    /// What it is for, in words.
    pub what: &'static str,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where it starts.
    pub dir: PathBuf,
}

/// Runs a step of the installer's to its end: what it printed, or why it failed.
pub type Runner<'a> = &'a mut dyn FnMut(&InstallStep) -> Result<String, String>;

/// Why there are no tools.
#[derive(Debug, thiserror::Error)]
pub enum ToolsError {
    /// They were never installed, or another version of this program installed others.
    #[error("the tools that check skills are not installed in `{}`", .0.display())]
    Missing(PathBuf),
    /// They were made with a Python that is gone.
    #[error("the tools that check skills were made with `{}`, which is gone", .0.display())]
    NoInterpreter(PathBuf),
    /// The environment is not one.
    #[error("the tools that check skills in `{}` cannot be used: {why}", path.display())]
    Damaged {
        /// Where.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The Python that was to be used is too old.
    #[error(
        "`{}` is Python {}.{}, and the tools need {}.{} or later",
        python.display(), found.0, found.1, OLDEST.0, OLDEST.1
    )]
    Old {
        /// The interpreter.
        python: PathBuf,
        /// Its version.
        found: (u32, u32),
    },
    /// A step of the installation failed.
    #[error("{what} failed: {why}")]
    Step {
        /// What it was for.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// A file or directory could not be made.
    #[error("`{}` cannot be made", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl ToolsError {
    /// What to do about it.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Missing(_) | Self::NoInterpreter(_) => "run `fluffy skill doctor --install`",
            Self::Damaged { .. } => "remove that directory and run `fluffy skill doctor --install`",
            Self::Old { .. } => "install a newer Python, or name one",
            Self::Step { .. } => "see what it printed; it needs `python3` with `venv`, and PyPI",
            Self::Io { .. } => "see whether the directory can be written and the disk has room",
        }
    }
}

/// Finds the tools in the user's cache of this program, an absolute path.
pub fn locate(cache: &Path) -> Result<Tools, ToolsError> {
    let place = place(cache);
    let (venv, warm) = (place.join("venv"), place.join("warm"));
    let settings = std::fs::read_to_string(venv.join("pyvenv.cfg"));
    let settings = settings.map_err(|_| ToolsError::Missing(place.clone()))?;
    let damaged = |why: &str| ToolsError::Damaged { path: place.clone(), why: why.to_owned() };
    let setting = |name: &str| setting(&settings, name);
    let home = setting("home").ok_or_else(|| damaged("`pyvenv.cfg` names no interpreter"))?;
    let version = setting("version").and_then(version_of);
    let version = version.ok_or_else(|| damaged("`pyvenv.cfg` names no version"))?;
    let home = PathBuf::from(home);
    if !home.is_dir() {
        return Err(ToolsError::NoInterpreter(home));
    }
    let (python, ruff) = (venv.join("bin/python"), venv.join("bin/ruff"));
    for (path, why) in [(&python, "there is no interpreter"), (&ruff, "there is no ruff")] {
        path.exists().then_some(()).ok_or_else(|| damaged(why))?;
    }
    if !warm.is_dir() {
        return Err(ToolsError::Missing(place));
    }
    let shown = shown(&place, &home);
    Ok(Tools { python, ruff, warm, version, shown, pinned: pinned() })
}

/// Makes the tools with an interpreter of the person's, where they are not there yet. `run` starts the commands, as the
/// person: nothing of a project is looked at, and wheels are unpacked, not run.
pub fn install(cache: &Path, python: &Path, run: Runner<'_>) -> Result<Tools, ToolsError> {
    match locate(cache) {
        Ok(tools) => return Ok(tools),
        Err(ToolsError::Missing(_)) => {}
        Err(other) => return Err(other),
    }
    let place = place(cache);
    make_directory(&place)?;
    let real = interpreter(python, &place, run)?;
    if !place.join("venv").exists() {
        environment(&place, &real, run)?;
    }
    if !place.join("warm").exists() {
        warm(&place, run)?;
    }
    locate(cache)
}

fn place(cache: &Path) -> PathBuf {
    let digest = pinned().to_string();
    cache.join("tools").join(format!("python-{}", digest.get(..16).unwrap_or_default()))
}

fn pinned() -> Digest {
    Digest::of_parts(&[REQUIREMENTS.as_bytes(), &[0], WARM.as_bytes(), &[0], MYPY.as_bytes()])
}

/// What a sandbox has to see. The interpreter's own directory is the one above `bin`, unless the system shows it anyway.
fn shown(place: &Path, home: &Path) -> Vec<PathBuf> {
    let mut shown = vec![place.to_owned()];
    let prefix = home.parent().filter(|prefix| *prefix != Path::new("/"));
    shown.extend(prefix.filter(|prefix| !prefix.starts_with("/usr")).map(Path::to_owned));
    shown
}

fn setting<'a>(settings: &'a str, name: &str) -> Option<&'a str> {
    let pairs = settings.lines().filter_map(|line| line.split_once('='));
    let found = pairs.map(|(key, value)| (key.trim(), value.trim()));
    found.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

fn version_of(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.trim().split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// The interpreter itself, not a shim that chooses one.
fn interpreter(python: &Path, dir: &Path, run: Runner<'_>) -> Result<PathBuf, ToolsError> {
    let what = "asking Python where it is";
    let ask = "import sys; print(sys.executable); print('%d.%d' % sys.version_info[:2])";
    let step = step(what, python, &["-I", "-c", ask], dir);
    let said = run(&step).map_err(|why| failed(what, &why))?;
    let mut lines = said.lines();
    let (real, version) = (lines.next(), lines.next().and_then(version_of));
    let (Some(real), Some(found)) = (real.filter(|it| it.starts_with('/')), version) else {
        return Err(failed(what, &said));
    };
    if found < OLDEST {
        return Err(ToolsError::Old { python: real.into(), found });
    }
    Ok(real.into())
}

fn environment(place: &Path, python: &Path, run: Runner<'_>) -> Result<(), ToolsError> {
    let making = Making::new(place, "venv")?;
    let dir = making.path.as_os_str().to_string_lossy().into_owned();
    let venv = step("making an environment", python, &["-I", "-m", "venv", &dir], place);
    run(&venv).map_err(|why| failed(venv.what, &why))?;
    let asked = making.path.join("requirements.txt");
    write(&asked, REQUIREMENTS.as_bytes())?;
    let asked = asked.to_string_lossy().into_owned();
    let pip = step(
        "installing ruff, mypy and pytest",
        &making.path.join("bin/python"),
        &[
            "-I",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-input",
            "--disable-pip-version-check",
            "--require-hashes",
            "--only-binary",
            ":all:",
            "--no-deps",
            "--requirement",
            &asked,
        ],
        place,
    );
    run(&pip).map_err(|why| failed(pip.what, &why))?;
    making.done()
}

/// Has mypy read the types of the standard library, so that it need not for every skill.
fn warm(place: &Path, run: Runner<'_>) -> Result<(), ToolsError> {
    let making = Making::new(place, "warm")?;
    let dir = &making.path;
    for (name, text) in [("gate/mypy.ini", MYPY), ("gate/warm.py", WARM)] {
        make_directory(&dir.join("gate"))?;
        write(&dir.join(name), text.as_bytes())?;
    }
    let cache = format!("--cache-dir={CACHE}");
    let args = ["-I", "-B", "-m", "mypy", "--config-file=gate/mypy.ini", &cache, "gate/warm.py"];
    let mypy = step("reading types", &place.join("venv/bin/python"), &args, dir);
    run(&mypy).map_err(|why| failed(mypy.what, &why))?;
    making.done()
}

fn step(what: &'static str, program: &Path, args: &[&str], dir: &Path) -> InstallStep {
    let args = args.iter().map(OsString::from).collect();
    InstallStep { what, program: program.to_owned(), args, dir: dir.to_owned() }
}

fn failed(what: &'static str, why: &str) -> ToolsError {
    ToolsError::Step { what, why: Excerpt::new(why.trim(), 2_000).to_string() }
}

/// A directory on its way to its name. What is not done is removed.
struct Making {
    path: PathBuf,
    to: PathBuf,
}

impl Making {
    fn new(place: &Path, name: &str) -> Result<Self, ToolsError> {
        let path = place.join(format!("{name}.{}", std::process::id()));
        remove(&path);
        make_directory(&path)?;
        Ok(Self { path, to: place.join(name) })
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that names finished tools")]
    fn done(self) -> Result<(), ToolsError> {
        match std::fs::rename(&self.path, &self.to) {
            // Somebody else was quicker, and theirs is as whole as ours.
            Err(_) if self.to.is_dir() => Ok(()),
            Err(source) => Err(ToolsError::Io { path: self.to.clone(), source }),
            Ok(()) => Ok(()),
        }
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that removes unfinished tools")]
fn remove(path: &Path) {
    // It is gone already where it was finished, and otherwise the next installation says what is wrong.
    let _gone = std::fs::remove_dir_all(path);
}

/// Anybody may read it, as they may the system's own programs: the user of root's sandboxes is somebody else.
fn make_directory(path: &Path) -> Result<(), ToolsError> {
    let made = DirBuilder::new().recursive(true).mode(0o755).create(path);
    made.map_err(|source| ToolsError::Io { path: path.to_owned(), source })
}

#[expect(clippy::disallowed_methods, reason = "the one place that writes what installers read")]
fn write(path: &Path, bytes: &[u8]) -> Result<(), ToolsError> {
    std::fs::write(path, bytes).map_err(|source| ToolsError::Io { path: path.to_owned(), source })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests stand in for venv, pip and mypy")]
mod tests {
    use super::*;
    use std::fs;

    /// What the commands of an installation would have done.
    fn pretend(step: &InstallStep) -> Result<String, String> {
        let args: Vec<_> = step.args.iter().map(|arg| arg.to_string_lossy()).collect();
        if args.iter().any(|arg| arg == "-c") {
            return Ok("/opt/python/bin/python3.12\n3.12\n".to_owned());
        }
        if args.iter().any(|arg| arg == "venv") {
            let venv = Path::new(args.last().unwrap().as_ref()).to_owned();
            fs::create_dir_all(venv.join("bin")).unwrap();
            fs::write(venv.join("bin/python"), "").unwrap();
            fs::write(venv.join("pyvenv.cfg"), "home = /usr/bin\nversion = 3.12.1\n").unwrap();
        }
        if args.iter().any(|arg| arg == "pip") {
            assert!(args.iter().any(|arg| arg == "--require-hashes"));
            fs::write(step.program.parent().unwrap().join("ruff"), "").unwrap();
        }
        Ok(String::new())
    }

    #[test]
    fn tools_that_are_not_there_are_named_with_what_installs_them() {
        let dir = tempfile::tempdir().unwrap();
        let error = locate(dir.path()).unwrap_err();
        assert!(matches!(error, ToolsError::Missing(_)));
        assert_eq!(error.fix(), "run `fluffy skill doctor --install`");
    }

    #[test]
    fn an_installation_is_whole_and_is_not_made_twice() {
        let dir = tempfile::tempdir().unwrap();
        let tools = install(dir.path(), Path::new("python3"), &mut pretend).unwrap();
        assert_eq!(tools.version, (3, 12));
        assert_eq!(tools.shown, [place(dir.path())]);
        assert_eq!(locate(dir.path()).unwrap(), tools);
        let mut never = |step: &InstallStep| -> Result<String, String> { panic!("{step:?}") };
        assert_eq!(install(dir.path(), Path::new("python3"), &mut never).unwrap(), tools);
        let mut names: Vec<_> = fs::read_dir(place(dir.path())).unwrap().flatten().collect();
        names.sort_by_key(fs::DirEntry::file_name);
        let names: Vec<_> = names.iter().map(|it| it.file_name().into_string().unwrap()).collect();
        assert_eq!(names, ["venv", "warm"]);
    }

    #[test]
    fn an_installation_that_fails_anywhere_leaves_nothing_that_passes_for_one() {
        for fails in ["asking", "making", "installing", "reading"] {
            let dir = tempfile::tempdir().unwrap();
            let mut run = |step: &InstallStep| match step.what.starts_with(fails) {
                true => Err("no".to_owned()),
                false => pretend(step),
            };
            let error = install(dir.path(), Path::new("python3"), &mut run).unwrap_err();
            assert!(matches!(error, ToolsError::Step { .. }), "{error}");
            assert!(matches!(locate(dir.path()), Err(ToolsError::Missing(_))), "{fails}");
            install(dir.path(), Path::new("python3"), &mut pretend).unwrap();
        }
    }

    #[test]
    fn an_old_python_a_gone_one_and_a_damaged_environment_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let mut old = |_: &InstallStep| Ok("/usr/bin/python3\n3.8\n".to_owned());
        let error = install(dir.path(), Path::new("python3"), &mut old).unwrap_err();
        assert!(matches!(error, ToolsError::Old { found: (3, 8), .. }));
        let mut strange = |_: &InstallStep| Ok("python3\nnone\n".to_owned());
        let error = install(dir.path(), Path::new("python3"), &mut strange).unwrap_err();
        assert!(matches!(error, ToolsError::Step { .. }));
        install(dir.path(), Path::new("python3"), &mut pretend).unwrap();
        let venv = place(dir.path()).join("venv");
        fs::remove_file(venv.join("bin/ruff")).unwrap();
        assert!(matches!(locate(dir.path()), Err(ToolsError::Damaged { .. })));
        fs::write(venv.join("pyvenv.cfg"), "home = /nowhere/bin\nversion = 3.12.1\n").unwrap();
        assert!(matches!(locate(dir.path()), Err(ToolsError::NoInterpreter(_))));
        fs::write(venv.join("pyvenv.cfg"), "").unwrap();
        assert!(matches!(locate(dir.path()), Err(ToolsError::Damaged { .. })));
    }

    #[test]
    fn every_requirement_is_pinned_with_hashes() {
        let lines = REQUIREMENTS.lines().filter(|line| !line.starts_with(' '));
        for line in lines {
            assert!(line.contains("==") && line.ends_with('\\'), "{line}");
        }
        for tool in ["ruff==", "mypy==", "pytest=="] {
            assert!(REQUIREMENTS.contains(tool), "{tool}");
        }
    }

    #[test]
    fn what_a_sandbox_sees_is_the_tools_and_their_interpreter() {
        let place = Path::new("/c");
        assert_eq!(shown(place, Path::new("/usr/bin")), [PathBuf::from("/c")]);
        let theirs = shown(place, Path::new("/home/a/.pyenv/versions/3.12.1/bin"));
        assert_eq!(theirs.last().unwrap(), Path::new("/home/a/.pyenv/versions/3.12.1"));
        assert_eq!(shown(place, Path::new("/bin")), [PathBuf::from("/c")]);
    }
}
