//! The repository's hooks, in sandboxes of their own.
//!
//! A hook is a program of the repository's: it sees the project with the session's changes, as any command does, and
//! the user's `.git` beneath an overlay. It is asked for a verdict.
//!
//! **Invariant.** Whatever a hook changes is thrown away; only the text of a message is taken, as a text.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fluffy_base::ProjectPath;
use fluffy_sandbox::harvest::{Change, HarvestLimits, Kind, harvest};
use fluffy_sandbox::{End, Store, Volume};

use super::run::{Call, Command, Done};
use super::settings::Settings;
use super::{Git, GitError, MAX_PATHS, Message, MessageError, words};

/// The hooks that git runs around a commit.
const AROUND_A_COMMIT: [&str; 4] =
    ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"];
/// How much of a hook's words is kept.
const WORDS: usize = 8 << 10;
const MESSAGE_FILE: &str = ".git/COMMIT_EDITMSG";

/// Which hooks there are: those that git would run, then those that husky would have installed.
const LIST: &str = r#"
dir=$1; shift
for name; do
    if [ -n "$dir" ] && [ -f "$dir/$name" ]; then
        if [ -x "$dir/$name" ]; then printf '%s\0%s\0' "$name" "$dir/$name"; fi
    elif [ -f ".husky/$name" ]; then
        printf '%s\0%s\0' "$name" ".husky/$name"
    fi
done
if [ -n "$dir" ] && [ ! -d "$dir" ]; then printf 'missing\0%s\0' "$dir"; fi
"#;

/// Leaves the settings that keep git quiet: a hook's own git is as the repository configures it.
const OWN_GIT: &str = r#"
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
unset GIT_DIR GIT_WORK_TREE GIT_LITERAL_PATHSPECS GIT_OPTIONAL_LOCKS GIT_NO_REPLACE_OBJECTS GIT_TRACE2
if [ -x "$hook" ]; then exec "$hook" "$@"; else exec sh -e "$hook" "$@"; fi
"#;

/// The index is what will be committed: the last commit and the files that change.
const PRE_COMMIT: &str = r#"
hook=$1; shift
export GIT_INDEX_FILE="$GIT_DIR/fluffy-index"
cat >/tmp/fluffy-paths
if [ -f "$GIT_DIR/index" ]; then cp -p "$GIT_DIR/index" "$GIT_INDEX_FILE"; fi
if head=$(git rev-parse -q --verify 'HEAD^{commit}'); then git read-tree --reset "$head"
else git read-tree --empty; fi
git update-index --add --remove --replace -z --stdin </tmp/fluffy-paths
rm /tmp/fluffy-paths
"#;

const COMMIT_MSG: &str = r#"
hook=$1; shift
rm -f "$GIT_DIR/COMMIT_EDITMSG"
cat >"$GIT_DIR/COMMIT_EDITMSG"
"#;

/// What is done about a repository's hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookPolicy {
    /// They run, in sandboxes, and their refusal counts.
    Run,
    /// They are passed over.
    Skip,
    /// A repository that has some is not committed to.
    Refuse,
}

/// One hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// Its name, such as `pre-commit`.
    pub name: String,
    /// Where it lies, as a sandbox sees it.
    pub path: PathBuf,
}

/// What a hook said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookAnswer {
    /// There is none.
    None,
    /// The policy passes over hooks.
    Skipped,
    /// It has nothing against the commit.
    Passed {
        /// What it printed, shortened and safe to show.
        output: String,
    },
    /// It is against the commit.
    Refused {
        /// How it ended.
        ended: String,
        /// What it printed, shortened and safe to show.
        output: String,
    },
}

impl Git {
    /// The hooks that git would run around a commit of the project with these layers.
    pub fn hooks(&self, layers: &[PathBuf]) -> Result<Vec<Hook>, GitError> {
        let settings = self.settings()?;
        self.hooks_by(&settings, layers)
    }

    /// Asks the `pre-commit` hook about a commit of these files, before they are in the project.
    pub fn pre_commit(
        &self,
        policy: HookPolicy,
        layers: &[PathBuf],
        paths: &[ProjectPath],
    ) -> Result<HookAnswer, GitError> {
        let Some(hook) = self.hook("pre-commit", policy, layers)? else {
            return Ok(none_by(policy));
        };
        let script = format!("{PRE_COMMIT}{OWN_GIT}");
        let mut call = Call::new("run the pre-commit hook", Command::Hook(&script), layers);
        call.input = listed("", paths)?;
        call.store = Some(Store::Disk);
        let call = call.args([hook.path]).env("GIT_EDITOR", ":");
        Ok(answer(&self.run(call)?))
    }

    /// Asks the `commit-msg` hook about a message. It may change it, within what a message may be.
    pub fn commit_msg(
        &self,
        policy: HookPolicy,
        layers: &[PathBuf],
        message: Message,
    ) -> Result<(HookAnswer, Message), GitError> {
        let Some(hook) = self.hook("commit-msg", policy, layers)? else {
            return Ok((none_by(policy), message));
        };
        let script = format!("{COMMIT_MSG}set -- .git/COMMIT_EDITMSG\n{OWN_GIT}");
        let mut call = Call::new("run the commit-msg hook", Command::Hook(&script), layers);
        call.input = format!("{message}\n").into_bytes();
        call.store = Some(Store::Disk);
        let done = self.run(call.args([hook.path]))?;
        let answer = answer(&done);
        match (&answer, &done.volume) {
            (HookAnswer::Passed { .. }, Some(volume)) => {
                let message = Message::new(&left_message(volume)?)?;
                Ok((answer, message))
            }
            _refused => Ok((answer, message)),
        }
    }

    /// Whether the policy lets this repository be committed to.
    pub(super) fn check_hooks(
        &self,
        policy: HookPolicy,
        settings: &Settings,
    ) -> Result<(), GitError> {
        match policy {
            HookPolicy::Run | HookPolicy::Skip => Ok(()),
            HookPolicy::Refuse => none_allowed(&self.hooks_by(settings, &[])?),
        }
    }

    fn hook(
        &self,
        name: &str,
        policy: HookPolicy,
        layers: &[PathBuf],
    ) -> Result<Option<Hook>, GitError> {
        if policy == HookPolicy::Skip {
            return Ok(None);
        }
        let hooks = self.hooks(layers)?;
        match policy {
            HookPolicy::Run => Ok(hooks.into_iter().find(|hook| hook.name == name)),
            HookPolicy::Refuse => none_allowed(&hooks).map(|()| None),
            HookPolicy::Skip => Ok(None),
        }
    }

    fn hooks_by(&self, settings: &Settings, layers: &[PathBuf]) -> Result<Vec<Hook>, GitError> {
        let _shared = self.shared()?;
        let project = self.workshop.project();
        let place = match settings.get("core.hookspath") {
            None => project.join(".git/hooks"),
            // The usual ways to say that there are none.
            Some("" | "/dev/null") => PathBuf::new(),
            Some(path) => self.at_home(path).unwrap_or_else(|| project.join(path)),
        };
        let mut call = Call::new("look for hooks", Command::Script(LIST), layers);
        call = call.args([place.as_os_str()]).args(AROUND_A_COMMIT);
        let out = self.must(call)?.out;
        let mut fields = out.bytes.split(|byte| *byte == 0);
        let mut hooks = Vec::new();
        while let (Some(name), Some(path)) = (fields.next(), fields.next()) {
            use std::os::unix::ffi::OsStringExt as _;
            let path = PathBuf::from(OsString::from_vec(path.to_vec()));
            match str::from_utf8(name) {
                // It is there for the user's git, and for no sandbox.
                Ok("missing") if path.is_dir() => {
                    return Err(GitError::HooksElsewhere(path.display().to_string()));
                }
                Ok("missing") => {}
                Ok(name) => hooks.push(Hook { name: name.to_owned(), path }),
                Err(_) => return Err(GitError::Answer("a hook")),
            }
        }
        Ok(hooks)
    }

    /// A path that begins with the user's home.
    fn at_home(&self, path: &str) -> Option<PathBuf> {
        let rest = path.strip_prefix("~/")?;
        Some(self.options.home.as_deref().unwrap_or(Path::new("/")).join(rest))
    }
}

/// These paths as git reads them, each with something before it.
pub(super) fn listed(before: &str, paths: &[ProjectPath]) -> Result<Vec<u8>, GitError> {
    if paths.len() > MAX_PATHS {
        return Err(GitError::TooMany("files in one commit"));
    }
    Ok(paths.iter().flat_map(|path| format!("{before}{path}\0").into_bytes()).collect())
}

fn none_by(policy: HookPolicy) -> HookAnswer {
    match policy {
        HookPolicy::Skip => HookAnswer::Skipped,
        HookPolicy::Run | HookPolicy::Refuse => HookAnswer::None,
    }
}

fn none_allowed(hooks: &[Hook]) -> Result<(), GitError> {
    if hooks.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = hooks.iter().map(|hook| hook.name.as_str()).collect();
    Err(GitError::Hooks(names.join(", ")))
}

fn answer(done: &Done) -> HookAnswer {
    let both = [&done.out.bytes[..], &done.err.bytes[..]].concat();
    let output = words(&both, WORDS);
    match &done.end {
        End::Exited(0) => HookAnswer::Passed { output },
        end => HookAnswer::Refused { ended: end.to_string(), output },
    }
}

/// The message that a hook left.
fn left_message(volume: &Volume) -> Result<String, GitError> {
    let content = volume.content().ok_or(GitError::Answer("no message was left"))?;
    let skip = |path: &ProjectPath| !matches!(path.as_str(), ".git" | MESSAGE_FILE);
    let found = harvest(content, Kind::Overlay, &HarvestLimits::default(), &skip)?;
    let written = found.changes().iter().find_map(|change| match change {
        Change::Write(written) if written.path().as_str() == MESSAGE_FILE => Some(written),
        _other => None,
    });
    // A hook that takes the message away, or puts a link in its place, leaves none.
    let written = written.ok_or(MessageError::Blank)?;
    if written.size() > 64 << 10 {
        return Err(
            MessageError::Long(usize::try_from(written.size()).unwrap_or(usize::MAX)).into()
        );
    }
    Ok(String::from_utf8_lossy(&found.read(written)?).into_owned())
}
