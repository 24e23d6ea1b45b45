//! Makes a commit.
//!
//! Four sandboxes, in which git runs and nothing of the repository's does: what is configured; which of the files
//! git would not take; the tree and the commit; and the index that the user has afterwards. The commit holds the last
//! one and the given files, whatever else the user has staged, and the index is the user's with those files alone
//! changed.

use std::collections::BTreeSet;

use fluffy_base::{Excerpt, ProjectPath};
use fluffy_sandbox::Volume;
use fluffy_sandbox::harvest::{Change, Harvest, HarvestLimits, Kind, harvest};

use super::hooks::listed;
use super::identity::{Identities, resolve};
use super::object::{Objects, is_sealed, needed};
use super::repository::{Head, MAX_INDEX, Repository};
use super::run::{Call, Command};
use super::settings::Settings;
use super::store::{Publication, Published, Store};
use super::{
    Git, GitError, GitPath, HookPolicy, Identity, IdentityOverrides, Message, ObjectId, Trailer,
};

/// The files that git ignores and does not know, a NUL, and each file's filter. The one command that takes names for
/// patterns and cannot be told otherwise does not do so where they begin with `./`.
const SURVEY: &str = r#"
cat >/tmp/paths
unset GIT_LITERAL_PATHSPECS
git check-ignore -z --stdin </tmp/paths >/tmp/ignored || [ $? -eq 1 ]
git check-attr -z --stdin filter </tmp/paths >/tmp/filters
cat /tmp/ignored
printf '\0'
cat /tmp/filters
"#;

/// The tree and the commit, made from the parent and the files, and how they differ.
const MAKE: &str = r#"
cat >/tmp/paths
printf '%s' "$FLUFFY_MESSAGE" >/tmp/message
export GIT_INDEX_FILE=/tmp/index
if [ -n "$1" ]; then git read-tree --no-sparse-checkout "$1"; base=$1
else git read-tree --empty; base=$(git hash-object -t tree /dev/null); fi
git update-index --add --remove --replace -z --stdin </tmp/paths
tree=$(git write-tree)
if [ -n "$1" ]; then commit=$(git commit-tree "$tree" -p "$1" -F /tmp/message)
else commit=$(git commit-tree "$tree" -F /tmp/message); fi
printf '%s\0%s\0' "$tree" "$commit"
exec git diff-tree -r -z --raw --no-renames --no-ext-diff --no-abbrev "$base" "$tree"
"#;

/// What is to be committed.
#[derive(Debug, Clone)]
pub struct Commit<'a> {
    /// The files, as they are in the project now; those that are gone are deleted.
    pub paths: &'a [ProjectPath],
    /// What it says.
    pub message: &'a Message,
    /// The line that ties it to the ledger.
    pub trailer: &'a Trailer,
    /// Whom it is by, if not by whom is configured.
    pub author: Option<&'a Identity>,
    /// What the user's environment says about that.
    pub overrides: &'a IdentityOverrides,
    /// When, in milliseconds since 1970. The commit says it in universal time.
    pub at_ms: u64,
    /// What is done about hooks; running them was the caller's part, before.
    pub hooks: HookPolicy,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// A commit.
    Commit(Committed),
    /// The files are as the last commit has them, or ignored.
    Nothing {
        /// Files that git ignores.
        ignored: Vec<ProjectPath>,
    },
}

/// A commit that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Its name.
    pub id: ObjectId,
    /// The branch that it is on; nothing if `HEAD` is a commit.
    pub branch: Option<String>,
    /// Files that it changes.
    pub changed: Vec<ProjectPath>,
    /// Files that were left out because git ignores them.
    pub ignored: Vec<ProjectPath>,
    /// Whom it is by.
    pub author: Identity,
    /// Whether nobody is configured, and somebody was made up.
    pub identity_invented: bool,
    /// Whether the index has the files, too. If not, `git reset` puts it right.
    pub index_updated: bool,
}

/// What the sandbox made.
struct Made {
    tree: ObjectId,
    commit: ObjectId,
    changes: Vec<Entry>,
    objects: Objects,
}

/// How one file differs from the parent.
struct Entry {
    /// Zeros where the file is gone.
    mode: String,
    id: ObjectId,
    path: ProjectPath,
}

impl Git {
    /// Commits these files, and only them.
    pub fn commit(&self, wanted: &Commit<'_>) -> Result<Recorded, GitError> {
        let repository = Repository::open(self.workshop.project())?;
        repository.check_kind()?;
        repository.check_idle()?;
        let settings = self.settings()?;
        self.check_hooks(wanted.hooks, &settings)?;
        let head = repository.head()?;
        let parent = repository.tip(&head)?;
        let index_before = repository.index()?;
        let (paths, ignored) = self.survey(wanted.paths, &settings)?;
        let who = resolve(&settings, wanted.overrides, wanted.author);
        let made = self.make(wanted, &paths, &who, parent.as_ref(), &settings)?;
        if made.changes.is_empty() {
            return Ok(Recorded::Nothing { ignored });
        }
        let contents = contents(wanted, &who, parent.as_ref(), &made.tree);
        let objects = needed(made.objects, &made.commit, contents.as_bytes(), &made.tree)?;
        let index = self.index(&made.changes, &settings)?;
        let published = Store::new(&repository, &|_| Ok(())).publish(&Publication {
            objects: &objects,
            commit: &made.commit,
            head: &head,
            parent: parent.as_ref(),
            index_before,
            index: &index,
            entry: &entry(wanted, &who, parent.is_none()),
            begins_logs: begins_logs(&settings),
        })?;
        Ok(Recorded::Commit(Committed {
            id: made.commit,
            branch: match head {
                Head::Branch(branch) => Some(branch.short().to_owned()),
                Head::Detached(_) => None,
            },
            changed: made.changes.into_iter().map(|entry| entry.path).collect(),
            ignored,
            author: who.author,
            identity_invented: who.invented,
            index_updated: published == Published::Whole,
        }))
    }

    /// The files that git would take, and those that it ignores.
    fn survey(
        &self,
        paths: &[ProjectPath],
        settings: &Settings,
    ) -> Result<(Vec<ProjectPath>, Vec<ProjectPath>), GitError> {
        // However it is spelt, and wherever it lies.
        let own = |path: &&ProjectPath| path.folded().split('/').any(|name| name == ".git");
        if let Some(path) = paths.iter().find(own) {
            return Err(GitError::OwnFile(path.clone()));
        }
        let filters = settings.filters();
        let mut call = Call::new("look at the files", Command::Script(SURVEY), &[]);
        call.input = listed(HERE, paths)?;
        (call.shown, call.filters) = (self.shared()?, &filters);
        let out = self.must(call)?.out;
        let known = |name: &[u8]| known(name.strip_prefix(HERE.as_bytes())?);
        let wrong = || GitError::Answer("what it says about the files");
        let bytes = out.bytes.strip_suffix(&[0]).filter(|_| !out.cut);
        let mut fields = bytes.ok_or_else(wrong)?.split(|byte| *byte == 0);
        let mut left_out = BTreeSet::new();
        for path in fields.by_ref().take_while(|field| !field.is_empty()) {
            left_out.insert(known(path).ok_or_else(wrong)?);
        }
        while let Some(path) = fields.next().filter(|field| !field.is_empty()) {
            let path = known(path).ok_or_else(wrong)?;
            let (Some(b"filter"), Some(value)) = (fields.next(), fields.next()) else {
                return Err(wrong());
            };
            let driver = String::from_utf8_lossy(value);
            let named = !matches!(&*driver, "unspecified" | "unset" | "set");
            // Also where no such filter is configured: without it, the commit would hold other bytes than the
            // project's rules say.
            if named && !left_out.contains(&path) {
                let driver = Excerpt::new(&driver, 80).to_string();
                return Err(GitError::Filtered { path, driver });
            }
        }
        let (ignored, taken) =
            paths.iter().cloned().partition(|path: &ProjectPath| left_out.contains(path));
        Ok((taken, ignored))
    }

    /// Makes the tree and the commit, in a sandbox.
    fn make(
        &self,
        wanted: &Commit<'_>,
        paths: &[ProjectPath],
        who: &Identities,
        parent: Option<&ObjectId>,
        settings: &Settings,
    ) -> Result<Made, GitError> {
        let filters = settings.filters();
        let date = format!("@{} +0000", wanted.at_ms / 1000);
        let mut call = Call::new("make the commit", Command::Script(MAKE), &[]);
        call.input = listed("", paths)?;
        call.store = Some(fluffy_sandbox::Store::Memory);
        (call.shown, call.filters) = (self.shared()?, &filters);
        let call = call
            .args([parent.map_or("", ObjectId::as_str)])
            .env("FLUFFY_MESSAGE", wanted.message.with(wanted.trailer))
            .env("GIT_AUTHOR_NAME", who.author.name())
            .env("GIT_AUTHOR_EMAIL", who.author.email())
            .env("GIT_AUTHOR_DATE", &date)
            .env("GIT_COMMITTER_NAME", who.committer.name())
            .env("GIT_COMMITTER_EMAIL", who.committer.email())
            .env("GIT_COMMITTER_DATE", &date);
        let done = self.must(call)?;
        if done.out.cut {
            return Err(GitError::TooMany("files in one commit"));
        }
        let (tree, commit, changes) = parse(&done.out.bytes, paths)?;
        let objects = done.volume.as_ref().map(objects).transpose()?.unwrap_or_default();
        Ok(Made { tree, commit, changes, objects })
    }

    /// The user's index with these files changed, made in a sandbox.
    fn index(&self, changes: &[Entry], settings: &Settings) -> Result<Vec<u8>, GitError> {
        let filters = settings.filters();
        let mut call = Call::new("make the index", Command::Script(INDEX), &[]);
        for Entry { mode, id, path } in changes {
            call.input.extend_from_slice(format!("{mode} {id}\t{path}\0").as_bytes());
        }
        call.store = Some(fluffy_sandbox::Store::Memory);
        (call.shown, call.filters) = (self.shared()?, &filters);
        let done = self.must(call)?;
        let wrong = || GitError::Answer("the index");
        let volume = done.volume.ok_or_else(wrong)?;
        let found = left(&volume, &|path| matches!(path, ".git" | NEW_INDEX))?;
        let bytes = found.changes().iter().find_map(|change| match change {
            Change::Write(written) if written.path().as_str() == NEW_INDEX => {
                Some(found.read(written))
            }
            _other => None,
        });
        let bytes = bytes.ok_or_else(wrong)??;
        let like = changes.first().map(|entry| &entry.id);
        let whole = bytes.starts_with(b"DIRC") && like.is_some_and(|like| is_sealed(&bytes, like));
        whole.then_some(bytes).ok_or_else(wrong)
    }
}

/// Before a name, where git might take it for more.
const HERE: &str = "./";

/// Where the new index lies in the sandbox; whoever holds the lock of the old one is not in the way.
const NEW_INDEX: &str = ".git/fluffy-index";

/// The copy keeps its time, by which git knows files that changed right after they were added.
const INDEX: &str = r#"
export GIT_INDEX_FILE="$GIT_DIR/fluffy-index"
rm -f "$GIT_INDEX_FILE"
if [ -f "$GIT_DIR/index" ]; then cp -p "$GIT_DIR/index" "$GIT_INDEX_FILE"; fi
exec git update-index -z --index-info
"#;

/// Exactly what the commit must be.
fn contents(
    wanted: &Commit<'_>,
    who: &Identities,
    parent: Option<&ObjectId>,
    tree: &ObjectId,
) -> String {
    let seconds = wanted.at_ms / 1000;
    let parent = parent.map_or_else(String::new, |parent| format!("parent {parent}\n"));
    format!(
        "tree {tree}\n{parent}author {} {seconds} +0000\ncommitter {} {seconds} +0000\n\n{}",
        who.author,
        who.committer,
        wanted.message.with(wanted.trailer)
    )
}

/// What the reflog says behind the two names.
fn entry(wanted: &Commit<'_>, who: &Identities, is_first: bool) -> String {
    let kind = if is_first { "commit (initial)" } else { "commit" };
    let subject = wanted.message.subject().replace('\t', " ");
    format!("{} {} +0000\t{kind}: {subject}", who.committer, wanted.at_ms / 1000)
}

/// Whether git would begin a reflog where there is none.
fn begins_logs(settings: &Settings) -> bool {
    let value = settings.get("core.logallrefupdates").map(str::to_ascii_lowercase);
    !matches!(value.as_deref(), Some("false" | "no" | "off" | "0"))
}

/// The tree, the commit and how the tree differs from the parent's: in the given files, and in nothing but them.
fn parse(
    bytes: &[u8],
    paths: &[ProjectPath],
) -> Result<(ObjectId, ObjectId, Vec<Entry>), GitError> {
    let wrong = || GitError::Answer("what it made");
    let mut fields = bytes.strip_suffix(&[0]).ok_or_else(wrong)?.split(|byte| *byte == 0);
    let mut id = || fields.next().and_then(object_id).ok_or_else(wrong);
    let (tree, commit) = (id()?, id()?);
    let mut changes = Vec::new();
    while let Some(head) = fields.next() {
        let mut parts = head.split(|byte| *byte == b' ');
        let (Some(_), Some(mode), Some(_), Some(id)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        let (mode, id) = (str::from_utf8(mode), object_id(id).ok_or_else(wrong)?);
        let name = fields.next().ok_or_else(wrong)?;
        let path = known(name).ok_or_else(|| GitError::Unexpected(super::escaped(name)))?;
        // A file in the place of a directory takes what was in it away, and the other way round.
        if !paths.iter().any(|asked| asked.starts_with(&path) || path.starts_with(asked)) {
            return Err(GitError::Unexpected(path.to_string()));
        }
        let mode = mode.map_err(|_| wrong())?.to_owned();
        changes.push(Entry { mode, id, path });
    }
    Ok((tree, commit, changes))
}

fn object_id(bytes: &[u8]) -> Option<ObjectId> {
    ObjectId::parse(str::from_utf8(bytes).ok()?)
}

fn known(bytes: &[u8]) -> Option<ProjectPath> {
    match GitPath::of(bytes) {
        GitPath::Known(path) => Some(path),
        GitPath::Odd(_) => None,
    }
}

/// What lies in a volume at paths that are wanted.
fn left(volume: &Volume, wanted: &dyn Fn(&str) -> bool) -> Result<Harvest, GitError> {
    let content = volume.content().ok_or(GitError::Answer("nothing was left"))?;
    let limits = HarvestLimits {
        file: fluffy_base::ByteSize::from_bytes(MAX_INDEX),
        ..HarvestLimits::default()
    };
    Ok(harvest(content, Kind::Overlay, &limits, &|path| !wanted(path.as_str()))?)
}

/// The new objects in a volume, packed. Whatever else is there is not looked at.
fn objects(volume: &Volume) -> Result<Objects, GitError> {
    let found = left(volume, &|path| match path.strip_prefix(".git/objects/") {
        Some(rest) => rest.len() == 2 || place(rest).is_some(),
        None => matches!(path, ".git" | ".git/objects"),
    })?;
    let mut objects = Objects::new();
    for change in found.changes() {
        if let Change::Write(written) = change
            && let Some(rest) = written.path().as_str().strip_prefix(".git/objects/")
            && let Some(id) = place(rest)
        {
            objects.insert(id, found.read(written)?);
        }
    }
    Ok(objects)
}

/// The object that lies in this place among objects.
fn place(path: &str) -> Option<ObjectId> {
    let (folder, name) = path.split_once('/')?;
    (folder.len() == 2).then(|| ObjectId::parse(&format!("{folder}{name}"))).flatten()
}
