//! `fluffy config set` and `unset`: one setting in one file, everything else in it as it was.
//!
//! **Invariant.** What is written was read back and says what was asked for; it takes the old file's place whole or not at all.
//! A file of a project is never written through a link.

use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use fluffy_base::{IdSource as _, SystemIds};

use crate::args::{SetArgs, UnsetArgs, Whose};
use crate::commands::config_get::{known, plain};
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::output::Output;
use crate::place::Place;
use crate::settings::file::{self, OWN_CONFIG, misplaced, nested};
use crate::settings::{Kind, Layer, Origin, Setting, SettingError, Settings, Value, edit};
use crate::settings::{user_file, written};

/// The file that is to be changed.
struct Target {
    layer: Layer,
    path: PathBuf,
    /// What people call it.
    shown: String,
    /// What it holds; nothing where it is not there.
    text: String,
}

pub(crate) fn set(
    place: &Place,
    environment: &Environment,
    args: &SetArgs,
    output: &mut Output,
) -> Result<u8, CliError> {
    let (setting, parts) = known(&args.key)?;
    let target = Target::of(setting, &args.key, &args.whose, place, environment)?;
    let value = yaml(setting, &args.key, &args.value, &target)?;
    let fresh = edit::set(&target.text, &parts, &value).map_err(|problem| {
        let line = nested(&parts, &value);
        let remedy = format!("write it by hand: {line}, or the same in lines of its own");
        SettingError::ByHand { file: target.shown.clone(), problem, remedy }
    })?;
    target.replace(&fresh)?;
    tell(place, environment, &args.key, &target, output)
}

pub(crate) fn unset(
    place: &Place,
    environment: &Environment,
    args: &UnsetArgs,
    output: &mut Output,
) -> Result<u8, CliError> {
    let (setting, parts) = known(&args.key)?;
    let target = Target::of(setting, &args.key, &args.whose, place, environment)?;
    let fresh = edit::unset(&target.text, &parts).map_err(|problem| SettingError::ByHand {
        file: target.shown.clone(),
        problem,
        remedy: format!("take `{}` out by hand", args.key),
    })?;
    match fresh {
        Some(fresh) => target.replace(&fresh)?,
        None => output.notice(format!("`{}` does not say it.", target.shown)),
    }
    tell(place, environment, &args.key, &target, output)
}

/// What holds now, which may be what somebody else says.
fn tell(
    place: &Place,
    environment: &Environment,
    key: &str,
    target: &Target,
    output: &mut Output,
) -> Result<u8, CliError> {
    let settings = Settings::load(place, environment)?;
    let Some(found) = settings.effective(key) else {
        output.line(format!("{key} has no value now"))?;
        return Ok(DONE);
    };
    output.line(format!(
        "{key} = {}  ({})",
        plain(found),
        crate::inert::inert(&found.origin.to_string())
    ))?;
    let elsewhere = !matches!(&found.origin, Origin::File { file, .. } if *file == target.shown);
    if elsewhere && found.origin.layer() != Layer::Default {
        output.notice(format!("What holds is not what `{}` says.", target.shown));
    }
    Ok(DONE)
}

/// A value as it stands in a file, if it means something.
fn yaml(setting: &Setting, key: &str, text: &str, target: &Target) -> Result<String, CliError> {
    let is_open = match setting.kind {
        Kind::Proxy => !text.contains('@'),
        Kind::Header => text.starts_with("env:"),
        _ => true,
    };
    if setting.kind.is_secret() && !is_open {
        let (name, file) = (key.to_owned(), target.shown.clone());
        return Err(SettingError::Secret { name, file }.into());
    }
    let wrong = |problem| SettingError::Wrong { name: key.to_owned(), problem };
    let value = setting.kind.of_typed(text).map_err(wrong)?;
    Ok(match value {
        Value::List(_) | Value::Number(_) | Value::Dollars(_) => value.to_string(),
        // A number of a provider's is no text.
        Value::Text(text) if is_number(&text) && matches!(setting.kind, Kind::Provided(_)) => text,
        Value::Text(text) => written(&text),
        Value::Proxy(_) | Value::Hidden => written(text),
    })
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(f64::is_finite) && !text.starts_with('+')
}

impl Target {
    fn of(
        setting: &Setting,
        key: &str,
        whose: &Whose,
        place: &Place,
        environment: &Environment,
    ) -> Result<Self, CliError> {
        let layer = match (whose.user, whose.in_project) {
            (true, _) => Layer::User,
            (false, true) => Layer::Project,
            (false, false) if setting.is_said_by(Layer::User) => Layer::User,
            (false, false) => Layer::Project,
        };
        if !setting.is_said_by(layer) {
            let (name, why) = (key.to_owned(), misplaced(setting, layer));
            return Err(SettingError::Misplaced { name, why }.into());
        }
        let (path, shown, text) = if layer == Layer::Project {
            let text = file::of_project(place.project())?;
            (place.project().join(OWN_CONFIG), OWN_CONFIG.to_owned(), text)
        } else {
            let path = user_file(environment).ok_or(SettingError::NoHome)?;
            let (shown, text) = (path.display().to_string(), file::of_user(&path)?);
            // A link stays a link: what it leads to is what is replaced.
            (std::fs::canonicalize(&path).unwrap_or(path), shown, text)
        };
        let target = Self { layer, path, shown, text: text.unwrap_or_default() };
        // What is wrong already is told before anything is changed.
        target.check(&target.text)?;
        Ok(target)
    }

    /// Whether a text can be the file's.
    fn check(&self, text: &str) -> Result<(), CliError> {
        file::read(&self.shown, self.layer, text)?;
        if self.layer == Layer::User {
            crate::providers::entries(&self.shown, text)?;
        }
        Ok(())
    }

    /// Puts a text in the file's place.
    fn replace(&self, text: &str) -> Result<(), CliError> {
        self.check(text)?;
        let failed = |source| CliError::File { action: "write", path: self.path.clone(), source };
        let private = self.layer == Layer::User;
        let usual = if private { 0o600 } else { 0o644 };
        let mode = std::fs::metadata(&self.path).map_or(usual, |found| found.mode() & 0o777);
        if let Some(folder) = self.path.parent() {
            let mut builder = std::fs::DirBuilder::new();
            let mode = if private { 0o700 } else { 0o755 };
            builder.recursive(true).mode(mode).create(folder).map_err(failed)?;
        }
        write(&self.path, text.as_bytes(), mode).map_err(failed)
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that replaces a file of settings")]
fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let fresh = SystemIds.fresh().ok_or(io::ErrorKind::Other)?;
    let mark: String = fresh.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let beside = path.with_file_name(format!(".config.yaml.{mark}"));
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(&beside)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        // The first error is the one to tell.
        let _left = std::fs::remove_file(&beside);
    }
    written
}
