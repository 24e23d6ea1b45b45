//! `fluffy pipeline-host`: runs the programs of a command line, inside their sandbox.
//!
//! It reads the line's programs as JSON from its standard input, runs them one pipeline after the other, and ends with the code that bash
//! would end with. What the programs print goes where its own output goes.
//!
//! **Invariant.** It decides nothing: the programs were judged before, and the sandbox is what bounds them.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};

use super::{
    CommandScript, FileTarget, ProgramCall, RedirectTarget, RunWhen, ScriptStep, ScriptWord,
    pattern,
};

/// The largest order: every character of the longest line as an escape, and what is around it.
const MAX_ORDER_BYTES: u64 = 1 << 20;

/// The codes of a shell for a program that cannot be started.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// What the host is to run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PipelineOrder {
    /// The project's root, as the sandbox shows it.
    pub(crate) root: PathBuf,
    /// What to run there.
    pub(crate) script: CommandScript,
}

/// Where a stream of a program leads.
#[derive(Debug)]
enum StreamEnd {
    /// The host's own standard output.
    Out,
    /// The host's own standard error.
    Err,
    /// Nothing.
    Null,
    /// A file or a pipe.
    Open(OwnedFd),
}

/// Runs what stands on the standard input; gives the exit code.
pub fn pipeline_host(input: impl Read) -> u8 {
    let mut text = Vec::new();
    let read = input.take(MAX_ORDER_BYTES + 1).read_to_end(&mut text);
    if read.is_err() || text.len() as u64 > MAX_ORDER_BYTES {
        complain("the order cannot be read");
        return NOT_EXECUTABLE;
    }
    let Ok(order) = serde_json::from_slice::<PipelineOrder>(&text) else {
        complain("the order is not what was agreed on");
        return NOT_EXECUTABLE;
    };
    let cwd = order.script.cwd.as_ref();
    let host = Host {
        cwd: cwd.map_or(order.root.clone(), |cwd| order.root.join(cwd.as_str())),
        root: order.root,
    };
    order.script.steps.iter().fold(0, |code, step| match (step.when, code) {
        (RunWhen::Success, 1..) | (RunWhen::Failure, 0) => code,
        (RunWhen::Always | RunWhen::Success | RunWhen::Failure, _) => host.run(step),
    })
}

struct Host {
    root: PathBuf,
    cwd: PathBuf,
}

impl Host {
    /// Runs one pipeline to its end.
    fn run(&self, step: &ScriptStep) -> u8 {
        let mut running = Vec::new();
        let mut before: Option<OwnedFd> = None;
        for (at, program) in step.programs.iter().enumerate() {
            let stdin = before.take().map_or(StreamEnd::Null, StreamEnd::Open);
            let stdout = if at + 1 == step.programs.len() {
                StreamEnd::Out
            } else {
                match io::pipe() {
                    Ok((reader, writer)) => {
                        before = Some(reader.into());
                        StreamEnd::Open(writer.into())
                    }
                    Err(error) => {
                        complain(&format!("no pipe can be made: {error}"));
                        StreamEnd::Null
                    }
                }
            };
            running.push(self.start(program, [stdin, stdout, StreamEnd::Err]));
        }
        let mut code = 0;
        for started in running {
            code = match started {
                Ok(mut child) => child.wait().map_or(NOT_EXECUTABLE, code_of),
                Err(code) => code,
            };
        }
        if step.negated { u8::from(code == 0) } else { code }
    }

    /// Starts one program; gives the code of a shell where it cannot be started.
    fn start(&self, call: &ProgramCall, mut streams: [StreamEnd; 3]) -> Result<Child, u8> {
        for redirection in &call.redirections {
            let target = self.open(&redirection.target, &streams).map_err(|error| {
                complain(&format!("`{}`: a stream cannot be redirected: {error}", call.program));
                1_u8
            })?;
            if let Some(stream) = streams.get_mut(usize::from(redirection.stream)) {
                *stream = target;
            }
        }
        let args = self.args(call).map_err(|why| {
            complain(&why);
            NOT_EXECUTABLE
        })?;
        let [stdin, stdout, stderr] = streams;
        let stdio = |end: StreamEnd| end.stdio().map_err(|_| NOT_EXECUTABLE);
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that starts the programs of a line"
        )]
        let mut command = Command::new(&call.program);
        command.args(args).envs(call.variables.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.cwd);
        command.stdin(stdio(stdin)?).stdout(stdio(stdout)?).stderr(stdio(stderr)?);
        command.spawn().map_err(|error| {
            let name = &call.program;
            if error.kind() == io::ErrorKind::NotFound {
                complain(&format!("`{name}`: command not found"));
                return NOT_FOUND;
            }
            complain(&format!("`{name}` cannot be started: {error}"));
            NOT_EXECUTABLE
        })
    }

    fn args(&self, call: &ProgramCall) -> Result<Vec<String>, String> {
        let mut args = Vec::new();
        for word in &call.args {
            match word {
                ScriptWord::Text(text) => args.push(text.clone()),
                ScriptWord::Files(parts) => args.extend(pattern::expand(parts, &self.cwd)?),
            }
        }
        Ok(args)
    }

    fn open(&self, target: &RedirectTarget, streams: &[StreamEnd; 3]) -> io::Result<StreamEnd> {
        let open = |file: &FileTarget, options: &OpenOptions| -> io::Result<StreamEnd> {
            Ok(StreamEnd::Open(options.open(self.path(file))?.into()))
        };
        match target {
            RedirectTarget::Read(file) => open(file, File::options().read(true)),
            RedirectTarget::Write(file) => {
                open(file, File::options().write(true).create(true).truncate(true))
            }
            RedirectTarget::Append(file) => open(file, File::options().append(true).create(true)),
            RedirectTarget::Text(text) => Ok(StreamEnd::Open(reading(text.clone())?)),
            RedirectTarget::Same(stream) => match streams.get(usize::from(*stream)) {
                Some(end) => end.try_clone(),
                None => Err(io::ErrorKind::InvalidInput.into()),
            },
        }
    }

    fn path(&self, file: &FileTarget) -> PathBuf {
        match file {
            FileTarget::Null => PathBuf::from("/dev/null"),
            FileTarget::Temporary(path) => Path::new("/tmp").join(path.as_str()),
            FileTarget::Project(path) => self.root.join(path.as_str()),
        }
    }
}

impl StreamEnd {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Out => Self::Out,
            Self::Err => Self::Err,
            Self::Null => Self::Null,
            Self::Open(fd) => Self::Open(fd.try_clone()?),
        })
    }

    fn stdio(self) -> io::Result<Stdio> {
        Ok(match self {
            Self::Out => io::stdout().as_fd().try_clone_to_owned()?.into(),
            Self::Err => io::stderr().as_fd().try_clone_to_owned()?.into(),
            Self::Null => Stdio::null(),
            Self::Open(fd) => fd.into(),
        })
    }
}

/// A pipe out of which a text comes.
fn reading(text: String) -> io::Result<OwnedFd> {
    let (reader, mut writer) = io::pipe()?;
    // A program that does not read it must not keep the others from starting.
    std::thread::Builder::new().spawn(move || writer.write_all(text.as_bytes()))?;
    Ok(reader.into())
}

fn code_of(status: std::process::ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_EXECUTABLE)
}

/// Says on the standard error why something does not run; should nobody read it, the code tells as well.
fn complain(text: &str) {
    let _told = writeln!(io::stderr(), "fluffy: {text}");
}
