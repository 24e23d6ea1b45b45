//! `fluffy audit sbom`: the packages that a commit was made with, from the ledger's proved entries.

use std::collections::BTreeMap;

use fluffy_base::{Clock as _, Excerpt, SystemClock};
use fluffy_dependencies::{Manager, ResolvedPackage, bill_of_materials};
use fluffy_kernel::{EventType, KeptNote, notes};
use serde::Deserialize;

use crate::args::SbomArgs;
use crate::explain::{CliError, DONE, Explained, USAGE};
use crate::output::Output;
use crate::place::Place;
use crate::time;

/// What was installed, as its entry has it.
#[derive(Deserialize)]
struct Installation {
    manager: Manager,
    root: Option<String>,
    packages: Vec<ResolvedPackage>,
}

/// The packages of each manager in each folder.
type Installed = BTreeMap<(Manager, Option<String>), Vec<ResolvedPackage>>;

/// What is gathered while entries are read.
#[derive(Default)]
struct Materials {
    /// By session, what is not committed yet.
    pending: BTreeMap<String, Installed>,
    committed: Installed,
    /// The last commit, or the one that was wanted.
    commit: Option<String>,
    found: bool,
}

pub(crate) fn run(place: &Place, args: &SbomArgs, output: &mut Output) -> Result<u8, CliError> {
    let key = place.existing_key()?.ok_or(CliError::NoLedger)?;
    let wanted = args.commit.as_deref();
    let mut materials = Materials::default();
    let read =
        notes(&place.layout(), key.verifying_key(), EventType::DependencyInstalled, 0, |note| {
            materials.add(note, wanted);
        });
    let read = read.map_err(|error| {
        CliError::Told(Explained {
            what: "the ledger gives no bill of materials".to_owned(),
            why: fluffy_kernel::causes(&error),
            fix: "see what is wrong with it: fluffy audit verify".to_owned(),
            code: crate::explain::FAILED,
        })
    })?;
    if read.is_none() || materials.commit.is_none() || (wanted.is_some() && !materials.found) {
        return Err(no_commit(wanted));
    }
    let packages: Vec<_> =
        materials.committed.into_iter().map(|((manager, _), list)| (manager, list)).collect();
    let name = place.project().file_name().map(|name| name.to_string_lossy().into_owned());
    let timestamp = time::show(SystemClock.now_ms()).replace(' ', "T") + "Z";
    let commit = materials.commit.unwrap_or_default();
    let bill = bill_of_materials((&name.unwrap_or_default(), &commit), &timestamp, &packages);
    match &args.out {
        None => output.line(bill)?,
        Some(path) => {
            super::write(path, format!("{bill}\n").as_bytes())?;
            output.line(format!("Wrote {}.", path.display()))?;
        }
    }
    Ok(DONE)
}

impl Materials {
    fn add(&mut self, note: &KeptNote<'_>, wanted: Option<&str>) {
        if self.found {
            return;
        }
        let content =
            note.content.and_then(|content| serde_json::from_slice::<Installation>(content).ok());
        if let (Some(EventType::DependencyInstalled), Some(content)) = (note.event, content) {
            let Installation { manager, root, packages } = content;
            let pending = self.pending.entry(note.session().to_owned()).or_default();
            pending.insert((manager, root), packages);
        }
        if let Some(commit) = note.metadata("commit") {
            let installed = self.pending.remove(note.session()).unwrap_or_default();
            self.committed.extend(installed);
            self.commit = Some(commit.to_owned());
            self.found =
                wanted.is_some_and(|wanted| wanted.len() >= 7 && commit.starts_with(wanted));
        }
    }
}

fn no_commit(wanted: Option<&str>) -> CliError {
    let what = match wanted {
        Some(wanted) => {
            format!("`{}` is no commit that a task made here", Excerpt::new(wanted, 80))
        }
        None => "no task has made a commit here yet".to_owned(),
    };
    CliError::Told(Explained {
        what,
        why: "a bill of materials is made from what the ledger recorded until a commit".to_owned(),
        fix: "name a commit of a task by at least 7 characters: fluffy session list, git log"
            .to_owned(),
        code: USAGE,
    })
}
