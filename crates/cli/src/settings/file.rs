//! A file of settings: how it is opened, and what it says by the table.
//!
//! **Invariant.** No link is followed to a project's settings: what lies behind one, nobody protects from the model.
//!
//! **Invariant.** The user's settings were written by the user: who writes them chooses where keys go.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use fluffy_policy::yaml::{self, Field, Member, nearest};

use crate::explain::CliError;
use crate::settings::table::{Layer, Meeting, SETTINGS, Setting};
use crate::settings::value::Value;

/// The project's file, as people call it.
pub(crate) const OWN_CONFIG: &str = ".fluffy/config.yaml";
/// The largest file of a project, and of the user: a larger one is no settings.
const MAX_PROJECT: u64 = 64 << 10;
const MAX_USER: u64 = 256 << 10;

/// One thing that a file says.
#[derive(Debug)]
pub(crate) struct Said {
    /// The setting's full name.
    pub(crate) name: String,
    /// Which it is.
    pub(crate) setting: &'static Setting,
    /// What is said of it.
    pub(crate) value: Value,
    /// The line in which it stands.
    pub(crate) line: u64,
}

/// The text of a project's settings, if it has any.
pub(crate) fn of_project(root: &Path) -> Result<Option<String>, CliError> {
    let path = root.join(OWN_CONFIG);
    let linked =
        |place: &Path| std::fs::symlink_metadata(place).is_ok_and(|found| found.is_symlink());
    if let Some(place) = path.parent().into_iter().chain([&*path]).find(|place| linked(place)) {
        return Err(CliError::Link(place.to_owned()));
    }
    let mut options = OpenOptions::new();
    // A pipe in its place is not waited for.
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    match options.open(&path) {
        Ok(file) => text(OWN_CONFIG, &file, MAX_PROJECT).map(Some),
        Err(error) => absent(OWN_CONFIG, &error),
    }
}

/// The text of the user's own settings, if there are any.
pub(crate) fn of_user(path: &Path) -> Result<Option<String>, CliError> {
    let shown = path.display().to_string();
    let mut options = OpenOptions::new();
    let file = match options.read(true).custom_flags(libc::O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(error) => return absent(&shown, &error),
    };
    let found = file.metadata().map_err(|error| unreadable(&shown, &error))?;
    let user = rustix::process::geteuid().as_raw();
    if found.uid() != user && found.uid() != 0 {
        let problem = "who could send your keys anywhere";
        return Err(wrong(&shown, format!("it belongs to user {}, {problem}", found.uid())));
    }
    if found.is_file() && found.mode() & 0o002 != 0 {
        let problem = "everybody may write it, and send your keys anywhere; run `chmod o-w` on it";
        return Err(wrong(&shown, problem.to_owned()));
    }
    text(&shown, &file, MAX_USER).map(Some)
}

fn text(shown: &str, file: &File, limit: u64) -> Result<String, CliError> {
    let found = file.metadata().map_err(|error| unreadable(shown, &error))?;
    if !found.is_file() {
        return Err(wrong(shown, "it is no file".to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| unreadable(shown, &error))?;
    if bytes.len() as u64 > limit {
        return Err(wrong(shown, format!("it has more than {limit} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| wrong(shown, "it is not UTF-8".to_owned()))
}

fn absent(shown: &str, error: &io::Error) -> Result<Option<String>, CliError> {
    if error.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(unreadable(shown, error)) }
}

fn unreadable(shown: &str, error: &io::Error) -> CliError {
    wrong(shown, format!("it cannot be read: {error}"))
}

fn wrong(shown: &str, problem: String) -> CliError {
    CliError::Settings { file: shown.to_owned(), problem }
}

/// What a file says, in the order in which it says it.
pub(crate) fn read(shown: &str, layer: Layer, text: &str) -> Result<Vec<Said>, CliError> {
    let mut reader = Reader { shown, layer, said: Vec::new() };
    if text.trim().is_empty() {
        return Ok(reader.said);
    }
    let node = yaml::parse(text).map_err(|problem| {
        reader.wrong((problem.line, problem.column), &problem.what.to_string())
    })?;
    reader.section(&node.root(), &[])?;
    Ok(reader.said)
}

struct Reader<'a> {
    shown: &'a str,
    layer: Layer,
    said: Vec<Said>,
}

impl Reader<'_> {
    fn wrong(&self, (line, column): (u64, u64), problem: &str) -> CliError {
        wrong(self.shown, format!("line {line}, column {column}: {problem}"))
    }

    /// Reads a mapping; nothing in its place is an empty one.
    fn section(&mut self, field: &Field<'_>, parts: &[String]) -> Result<(), CliError> {
        if field.is_empty() {
            return Ok(());
        }
        // What stands there is not repeated: it may be a secret in the wrong place.
        let members = field.placed_members().ok_or_else(|| {
            let name = if parts.is_empty() { "the file".to_owned() } else { quoted(parts) };
            let known = listed(&self.known(parts));
            self.wrong(field.place(), &format!("{name} must be a mapping, with {known}"))
        })?;
        for member in members {
            let mut below = parts.to_vec();
            below.push(member.key.to_owned());
            self.member(&member, &below)?;
        }
        Ok(())
    }

    fn member(&mut self, member: &Member<'_>, parts: &[String]) -> Result<(), CliError> {
        if let Some(setting) = SETTINGS.iter().find(|setting| setting.is_at(parts)) {
            self.permitted(&[setting], member, parts)?;
            // As if it were not there.
            if member.value.is_empty() {
                return Ok(());
            }
            let value = setting.kind.of_field(&member.value).map_err(|problem| {
                self.wrong(member.value.place(), &format!("{}: {problem}", quoted(parts)))
            })?;
            let (line, _) = member.place;
            self.said.push(Said { name: parts.join("."), setting, value, line });
            return Ok(());
        }
        let below: Vec<_> = SETTINGS.iter().filter(|setting| setting.is_below(parts)).collect();
        if below.is_empty() {
            return Err(self.unknown(member, parts));
        }
        self.permitted(&below, member, parts)?;
        self.section(&member.value, parts)
    }

    /// Whether this layer has a word for one of these at all.
    fn permitted(
        &self,
        settings: &[&Setting],
        member: &Member<'_>,
        parts: &[String],
    ) -> Result<(), CliError> {
        if settings.iter().any(|setting| setting.is_said_by(self.layer)) {
            return Ok(());
        }
        let reason = settings.first().map(|setting| misplaced(setting, self.layer));
        let problem = format!("{} {}", quoted(parts), reason.unwrap_or_default());
        Err(self.wrong(member.place, &problem))
    }

    fn unknown(&self, member: &Member<'_>, parts: &[String]) -> CliError {
        let above = parts.split_last().map(|(_, above)| above).unwrap_or_default();
        let known = self.known(above);
        let advice = match (nearest(member.key, &known), Setting::named(member.key)) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, Some((_, parts))) => format!("write it as {}", nested(&parts, "…")),
            (None, None) => format!("expected {}", listed(&known)),
        };
        self.wrong(member.place, &format!("unknown key {}: {advice}", quoted(parts)))
    }

    /// What can follow after a section, as far as this layer has words for it.
    fn known(&self, section: &[String]) -> Vec<&'static str> {
        let below = SETTINGS.iter().filter(|it| it.is_below(section) && it.is_said_by(self.layer));
        let mut known: Vec<_> = below.filter_map(|setting| setting.part(section.len())).collect();
        known.retain(|part| *part != "*");
        known.dedup();
        known
    }
}

/// Why a layer has no word for a setting, as it follows after the setting's name.
pub(crate) fn misplaced(setting: &Setting, layer: Layer) -> String {
    match (layer, setting.project) {
        (Layer::Project, Meeting::Never(why)) => format!(
            "is said in your own settings, `~/.config/fluffy/config.yaml`, never by a project: {why}"
        ),
        _ => format!("is said by a project, in `{OWN_CONFIG}`"),
    }
}

/// A name in quotes, of bounded length.
fn quoted(parts: &[String]) -> String {
    format!("`{}`", fluffy_base::Excerpt::new(&parts.join("."), 100))
}

fn listed(known: &[&str]) -> String {
    let quoted: Vec<_> = known.iter().map(|key| format!("`{key}`")).collect();
    quoted.join(", ")
}

/// A setting in one line, as it can be written into a file.
pub(crate) fn nested(parts: &[String], value: &str) -> String {
    let key = |part: &String| crate::settings::value::written(part);
    let Some((last, above)) = parts.split_last() else { return String::new() };
    let inner = format!("{}: {value}", key(last));
    let whole = above.iter().rev().fold(inner, |inner, part| format!("{}: {{{inner}}}", key(part)));
    format!("`{whole}`")
}
