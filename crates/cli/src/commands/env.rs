//! `fluffy env`: what package managers installed for tasks.

use fluffy_base::{ByteSize, Clock as _, Span, SystemClock};
use fluffy_kernel::{EnvironmentError, EnvironmentRecord, EnvironmentStore};
use serde_json::json;

use crate::args::EnvCommand;
use crate::explain::{CliError, DONE, Explained, FAILED, USAGE};
use crate::output::Output;
use crate::place::Place;
use crate::time;

/// How much of a key tells one environment from another.
const SHORT: usize = 12;

pub(crate) fn run(
    place: &Place,
    command: &EnvCommand,
    output: &mut Output,
) -> Result<u8, CliError> {
    let store = EnvironmentStore::new(place.environments());
    match command {
        EnvCommand::List { json } => list(&store, *json, output),
        EnvCommand::Show { key, json } => show(&store, key, *json, output),
        EnvCommand::Rm { keys } => remove(&store, keys, output),
        EnvCommand::Gc { older_than } => collect(&store, *older_than, output),
    }
}

fn list(store: &EnvironmentStore, json: bool, output: &mut Output) -> Result<u8, CliError> {
    let records = store.list().map_err(told)?;
    for record in &records {
        let used = store.last_used_ms(&record.key).unwrap_or(record.created_ms);
        if json {
            output.line(document(record, used))?;
            continue;
        }
        output.line(format!(
            "{}  {:<7}  {:>5} packages  {:>9}  used {}  {}",
            short(&record.key),
            record.manager,
            record.packages.len(),
            size(record.bytes),
            time::show(used),
            record.folder,
        ))?;
    }
    if records.is_empty() && !json {
        output.line("No environments: no task has installed packages yet.")?;
    }
    Ok(DONE)
}

fn document(record: &EnvironmentRecord, used_ms: u64) -> serde_json::Value {
    json!({
        "key": record.key,
        "manager": record.manager,
        "tool": record.tool,
        "folder": record.folder,
        "packages": record.packages.len(),
        "files": record.files,
        "bytes": record.bytes,
        "created_ms": record.created_ms,
        "used_ms": used_ms,
    })
}

fn show(
    store: &EnvironmentStore,
    key: &str,
    json: bool,
    output: &mut Output,
) -> Result<u8, CliError> {
    let record = find(store, key)?;
    if json {
        output.line(serde_json::to_string(&record).map_err(std::io::Error::from)?)?;
        return Ok(DONE);
    }
    output.line(format!("key      {}", record.key))?;
    output.line(format!("manager  {} ({})", record.manager, record.tool))?;
    output.line(format!("folder   {}", record.folder))?;
    output.line(format!("made     {}", time::show(record.created_ms)))?;
    output.line(format!("size     {} in {} files", size(record.bytes), record.files))?;
    for package in &record.packages {
        let direct = if package.direct { "direct" } else { "" };
        let licence = package.licence.as_deref().unwrap_or_default();
        output.line(format!("  {:<40}  {direct:<6}  {licence}", package.id()).trim_end())?;
    }
    Ok(DONE)
}

fn remove(store: &EnvironmentStore, keys: &[String], output: &mut Output) -> Result<u8, CliError> {
    for key in keys {
        let record = find(store, key)?;
        let removed = store.remove(&record.key).map_err(told)?;
        output.line(format!("Removed {} ({}).", short(&removed.key), size(removed.bytes)))?;
    }
    Ok(DONE)
}

fn collect(
    store: &EnvironmentStore,
    older_than: Span,
    output: &mut Output,
) -> Result<u8, CliError> {
    let before = SystemClock.now_ms().saturating_sub(older_than.ms());
    let (mut count, mut bytes, mut in_use) = (0_u64, 0_u64, 0_u64);
    for record in store.list().map_err(told)? {
        if store.last_used_ms(&record.key).unwrap_or(record.created_ms) >= before {
            continue;
        }
        match store.remove(&record.key) {
            Ok(removed) => {
                count += 1;
                bytes += removed.bytes;
            }
            Err(EnvironmentError::InUse(_)) => in_use += 1,
            Err(error) => return Err(told(error)),
        }
    }
    store.sweep();
    output.line(format!("Removed {count} environments ({}).", size(bytes)))?;
    if in_use > 0 {
        output.line(format!("{in_use} more are in use by a session and stay."))?;
    }
    Ok(DONE)
}

/// The one environment whose key begins like this.
fn find(store: &EnvironmentStore, key: &str) -> Result<EnvironmentRecord, CliError> {
    let mut records = store.list().map_err(told)?;
    records.retain(|record| !key.is_empty() && record.key.starts_with(key));
    let wrong = |why: String| {
        CliError::Told(Explained {
            what: format!("`{}` names no environment", fluffy_base::Excerpt::new(key, 80)),
            why,
            fix: "see which there are: fluffy env list".to_owned(),
            code: USAGE,
        })
    };
    if records.len() > 1 {
        return Err(wrong(format!(
            "{} environments have keys that begin like this",
            records.len()
        )));
    }
    records.pop().ok_or_else(|| wrong("no environment has a key that begins like this".to_owned()))
}

fn short(key: &str) -> &str {
    key.get(..SHORT).unwrap_or(key)
}

fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let unit = UNITS.into_iter().find(|(_, unit)| bytes >= *unit);
    match unit {
        Some((name, unit)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => ByteSize::from_bytes(bytes).to_string(),
    }
}

fn told(error: EnvironmentError) -> CliError {
    let fix = match &error {
        EnvironmentError::InUse(_) => "try again when no session uses it: fluffy session list",
        EnvironmentError::Unknown(_) => "see which there are: fluffy env list",
        EnvironmentError::Store { .. } | EnvironmentError::Listing(_) => {
            "see whether the state directory can be written to: fluffy doctor"
        }
    };
    CliError::Told(Explained {
        what: error.to_string(),
        why: fluffy_kernel::causes(&error),
        fix: fix.to_owned(),
        code: FAILED,
    })
}
