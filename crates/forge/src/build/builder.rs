//! Who writes the code: a program in a sandbox, or our own loop.
//!
//! **Invariant.** A builder's program gets the packet on its standard input, the copy as its directory, an empty home, the
//! keys that it was configured with, and a way to its own endpoint. It gets nothing else of the host, and no shell stands
//! between the configuration and the program.

use std::io::Write;
use std::path::{Path, PathBuf};

use fluffy_base::{ProjectPath, Secret, Span};
use fluffy_kernel::{Asked, Captured, End, Errand, Journal, Keeps, Lab, LabError, Left, Limit};

use super::log::Log;

/// Where a builder sees the copy. The project's own path would tell it whose machine this is.
const AT: &str = "/fluffy-build";

/// How long a builder may take if nothing else is said.
pub const TIME: Span = Span::from_ms(10 * 60 * 1000);

/// The longest argument list.
const MAX_ARGS: usize = 256;

/// What keeps tools that a builder runs from leaving caches among the files, which would count as changes.
const NO_CACHES: [(&str, &str); 4] = [
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("PYTEST_ADDOPTS", "-p no:cacheprovider"),
    ("RUFF_NO_CACHE", "true"),
    ("MYPY_CACHE_DIR", "/tmp/mypy"),
];

/// Who builds.
pub enum Builder<'a> {
    /// A program in a sandbox.
    Program(ProgramBuilder),
    /// Something that works for itself on the copy.
    Coder {
        /// What it is called.
        name: String,
        /// It.
        coder: &'a dyn Coder,
    },
}

/// A program that builds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramBuilder {
    /// What it is called, as the person named it.
    pub name: String,
    /// The program: a name that is looked for, or an absolute path.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Hosts that it may reach: its own endpoint.
    pub hosts: Vec<String>,
    /// Names of the variables with its keys.
    pub keys: Vec<String>,
    /// Variables with nothing secret in them.
    pub env: Vec<(String, String)>,
    /// More of the host that it sees, read-only.
    pub shown: Vec<PathBuf>,
    /// How long it may take.
    pub time: Span,
}

/// Something that writes code for a packet, without a program of its own.
pub trait Coder {
    /// Works on `copy`, which it does not change, and says what it would leave there. What it has to tell goes to `log`.
    fn code(&self, packet: &str, copy: &Path, log: &mut dyn Write) -> Result<Left, CoderError>;
}

/// Why a coder has nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum CoderError {
    /// It took too long.
    #[error("it took longer than it may")]
    Timeout,
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

/// Why a builder cannot be what it is configured to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuilderError {
    /// There is no program.
    #[error("a builder's command names a program and its arguments, each by itself")]
    Empty,
    /// Too many words, or one that no program can be given.
    #[error("a builder's command has at most {MAX_ARGS} words without NUL")]
    Words,
    /// The program is named by a path that is not absolute.
    #[error("`{0}` is neither a name nor an absolute path of a program")]
    Relative(String),
    /// It is nowhere.
    #[error("the builder's program `{0}` is not installed, or not in the search path")]
    Missing(String),
    /// A key is not set.
    #[error("the builder `{builder}` needs one of the variables {}, and none is set", names.join(", "))]
    NoKey {
        /// Which builder.
        builder: String,
        /// The variables.
        names: Vec<String>,
    },
}

/// What became of a builder's work.
#[derive(Debug)]
pub(super) struct Worked {
    /// What it left.
    pub(super) left: Left,
    /// How it failed, if it did: the failure kind and why.
    pub(super) failed: Option<(&'static str, String)>,
}

/// What a builder is given.
pub(super) struct Given<'a> {
    pub(super) lab: &'a Lab,
    pub(super) journal: &'a dyn Journal,
    /// Where programs are looked for.
    pub(super) path: &'a [PathBuf],
    /// The values of its keys, by name.
    pub(super) keys: &'a [(String, Secret)],
    pub(super) copy: &'a Path,
    pub(super) packet: &'a str,
}

impl ProgramBuilder {
    /// Claude Code, which may edit files and nothing else.
    pub fn claude() -> Self {
        let tools = "Edit,Write,Glob,Grep,Read";
        let quietly = ["--strict-mcp-config", "--no-session-persistence"];
        let args = ["-p", "--output-format", "text", "--tools", tools, "--allowedTools", tools];
        let args = args.into_iter().chain(quietly).map(str::to_owned);
        let quiet = [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_AUTOUPDATER",
            "DISABLE_TELEMETRY",
        ];
        Self {
            name: "claude".to_owned(),
            program: "claude".to_owned(),
            args: args.collect(),
            hosts: vec!["api.anthropic.com".to_owned()],
            keys: vec!["ANTHROPIC_API_KEY".to_owned()],
            env: quiet.map(|name| (name.to_owned(), "1".to_owned())).to_vec(),
            shown: Vec::new(),
            time: TIME,
        }
    }

    /// Codex. Its own sandbox needs namespaces, which no job of ours can make: ours is the wall.
    pub fn codex() -> Self {
        let own = ["--sandbox", "danger-full-access", "--skip-git-repo-check", "--ephemeral"];
        let args = std::iter::once("exec").chain(own).chain(["-"]).map(str::to_owned);
        Self {
            name: "codex".to_owned(),
            program: "codex".to_owned(),
            args: args.collect(),
            hosts: vec!["api.openai.com".to_owned()],
            keys: ["CODEX_API_KEY", "OPENAI_API_KEY"].map(str::to_owned).to_vec(),
            env: Vec::new(),
            shown: Vec::new(),
            time: TIME,
        }
    }

    /// Any program with its arguments, without network and keys unless they are given.
    pub fn command(argv: &[String]) -> Result<Self, BuilderError> {
        let (program, args) = argv.split_first().ok_or(BuilderError::Empty)?;
        if program.trim().is_empty() {
            return Err(BuilderError::Empty);
        }
        if argv.len() > MAX_ARGS || argv.iter().any(|word| word.contains('\0')) {
            return Err(BuilderError::Words);
        }
        if program.contains('/') && !program.starts_with('/') {
            return Err(BuilderError::Relative(program.clone()));
        }
        Ok(Self {
            name: "command".to_owned(),
            program: program.clone(),
            args: args.to_vec(),
            hosts: Vec::new(),
            keys: Vec::new(),
            env: Vec::new(),
            shown: Vec::new(),
            time: TIME,
        })
    }

    /// Where the program is on this machine, links resolved, and what of the host it needs to be seen for it to run.
    pub fn locate(&self, path: &[PathBuf]) -> Result<(PathBuf, Option<PathBuf>), BuilderError> {
        let missing = || BuilderError::Missing(self.program.clone());
        let candidates: Vec<PathBuf> = match self.program.starts_with('/') {
            true => vec![PathBuf::from(&self.program)],
            false => path.iter().map(|directory| directory.join(&self.program)).collect(),
        };
        let found = candidates.iter().find_map(|at| {
            let real = at.canonicalize().ok()?;
            let is_file = std::fs::metadata(&real).is_ok_and(|found| found.is_file());
            is_file.then(|| (at.clone(), real))
        });
        let (named, real) = found.ok_or_else(missing)?;
        if real.starts_with("/usr") {
            // Programs that are several by the name they are called with are called by it.
            let visible = ["/usr", "/bin", "/sbin"].iter().any(|part| named.starts_with(part));
            return Ok((if visible { named } else { real }, None));
        }
        let shown = package(&real).unwrap_or_else(|| real.clone());
        Ok((real, Some(shown)))
    }

    /// Does the work.
    fn work(&self, given: &Given<'_>, log: &mut Log<'_>) -> Result<Worked, String> {
        let (program, shown) = self.locate(given.path).map_err(|error| error.to_string())?;
        let keys = given.keys.iter().filter(|(name, _)| self.keys.contains(name));
        let keys = keys.map(|(name, value)| (name.clone(), value.expose().to_owned()));
        let keys: Vec<_> = keys.collect();
        if !self.keys.is_empty() && keys.is_empty() {
            let (builder, names) = (self.name.clone(), self.keys.clone());
            return Err(BuilderError::NoKey { builder, names }.to_string());
        }
        let git = ProjectPath::parse(".git").map_err(|error| error.to_string())?;
        let mut errand = Errand::new(program, AT, vec![given.copy.to_owned()]).args(&self.args);
        errand.keeps = Keeps::Overlay;
        errand.stdin = given.packet.as_bytes().to_vec();
        errand.hosts.clone_from(&self.hosts);
        errand.shown = self.shown.iter().cloned().chain(shown).collect();
        errand.time = Some(self.time);
        errand.unseen = vec![git];
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        errand.env = NO_CACHES.into_iter().map(owned).chain(self.env.iter().cloned()).collect();
        errand.env.extend(keys);
        let done = given.lab.run(errand, given.journal).map_err(|error| causes(&error))?;
        log.line("sandbox", &done.sandbox);
        log.line("end", &done.end.to_string());
        log.line("wall_ms", &done.wall.as_millis().to_string());
        log.section("Asked of the network", done.asked.iter().map(asked));
        log.output("Standard output", &captured(&done.stdout));
        log.output("Standard error", &captured(&done.stderr));
        Ok(Worked { left: done.left.unwrap_or_default(), failed: failed(&done.end, self.time) })
    }
}

impl Builder<'_> {
    /// What it is called, as the ledger has it.
    pub fn name(&self) -> &str {
        match self {
            Self::Program(program) => &program.name,
            Self::Coder { name, .. } => name,
        }
    }

    /// Does the work. An error is a failed build like any other, in words.
    pub(super) fn work(&self, given: &Given<'_>, log: &mut Log<'_>) -> Result<Worked, String> {
        match self {
            Self::Program(program) => program.work(given, log),
            Self::Coder { coder, .. } => {
                let mut told = Vec::new();
                let mut bounded = Bounded { into: &mut told };
                let done = coder.code(given.packet, given.copy, &mut bounded);
                log.output("What the builder told", &told);
                match done {
                    Ok(left) => Ok(Worked { left, failed: None }),
                    Err(CoderError::Timeout) => {
                        let failed = Some(("TIMEOUT", CoderError::Timeout.to_string()));
                        Ok(Worked { left: Left::default(), failed })
                    }
                    Err(CoderError::Failed(why)) => Err(why),
                }
            }
        }
    }
}

/// Takes as much as a log keeps, and swallows the rest.
struct Bounded<'a> {
    into: &'a mut Vec<u8>,
}

impl Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = super::log::MAX_OUTPUT.saturating_add(1).saturating_sub(self.into.len());
        self.into.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The package of Node that a program belongs to: it needs the files beside it. Of a vendor's scope all packages are that
/// vendor's, and those for one machine lie beside the one that is called.
fn package(program: &Path) -> Option<PathBuf> {
    let is_in_modules =
        |path: &Path| path.components().any(|part| part.as_os_str() == "node_modules");
    let mut above = program.ancestors().skip(1).take_while(|path| is_in_modules(path));
    let package = above.find(|path| path.join("package.json").is_file())?;
    let is_scope =
        |path: &&Path| path.file_name().is_some_and(|it| it.as_encoded_bytes().starts_with(b"@"));
    Some(package.parent().filter(is_scope).unwrap_or(package).to_owned())
}

fn failed(end: &End, time: Span) -> Option<(&'static str, String)> {
    match end {
        End::Exited(0) => None,
        End::Limit(Limit::Duration) => {
            Some(("TIMEOUT", format!("the builder was ended after {time}")))
        }
        End::Exited(_) | End::Signalled(_) | End::Limit(_) | End::Stopped => {
            Some(("BUILD_ERROR", format!("the builder {end}")))
        }
    }
}

fn asked(asked: &Asked) -> String {
    let port = asked.port.map(|port| format!(":{port}")).unwrap_or_default();
    let what =
        asked.refused.as_ref().map_or_else(|| "passed".to_owned(), |why| format!("refused, {why}"));
    format!("{}{port}: {what}", asked.host)
}

fn captured(captured: &Captured) -> Vec<u8> {
    let mut bytes = captured.bytes.clone();
    if captured.cut {
        bytes.extend_from_slice(b"\n[more was printed and not kept]\n");
    }
    bytes
}

fn causes(error: &LabError) -> String {
    fluffy_kernel::causes(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_command_is_an_array_of_words() {
        let command = ProgramBuilder::command(&words(&["tool", "--x", "a b"])).unwrap();
        assert_eq!((&*command.program, command.args.len(), command.hosts.len()), ("tool", 2, 0));
        for (argv, why) in [
            (words(&[]), BuilderError::Empty),
            (words(&[" "]), BuilderError::Empty),
            (words(&["a", "b\0"]), BuilderError::Words),
            (words(&["a"; 300]), BuilderError::Words),
            (words(&["./build.sh"]), BuilderError::Relative("./build.sh".to_owned())),
        ] {
            assert_eq!(ProgramBuilder::command(&argv).unwrap_err(), why);
        }
    }

    #[test]
    fn a_program_that_is_nowhere_is_said_by_name() {
        let error = ProgramBuilder::claude().locate(&["/var/empty".into()]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the builder's program `claude` is not installed, or not in the search path"
        );
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test makes the program that it looks for")]
    fn of_a_program_in_the_home_directory_nothing_is_shown_but_itself_or_its_vendors_packages() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let package = root.join("lib/node_modules/@a/tool");
        std::fs::create_dir_all(package.join("bin")).unwrap();
        std::fs::create_dir(root.join("bin")).unwrap();
        std::fs::write(package.join("bin/tool.js"), "").unwrap();
        std::fs::write(package.join("package.json"), "{}").unwrap();
        std::fs::write(root.join("package.json"), "{}").unwrap();
        std::fs::write(root.join("bin/plain"), "").unwrap();
        std::os::unix::fs::symlink(package.join("bin/tool.js"), root.join("bin/tool")).unwrap();
        let locate = |name: &str| {
            let command = ProgramBuilder::command(&words(&[name])).unwrap();
            command.locate(&[root.join("bin")]).unwrap()
        };
        let scope = package.parent().map(Path::to_owned);
        assert_eq!(locate("tool"), (package.join("bin/tool.js"), scope));
        assert_eq!(locate("plain"), (root.join("bin/plain"), Some(root.join("bin/plain"))));
    }
}
