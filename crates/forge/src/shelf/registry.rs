//! `registry.yaml`: what is trusted, for people and for git. Derived, and never believed.
//!
//! **Invariant.** The same skills give the same bytes. What the file says of a skill must be what the ledger gives, byte by
//! byte, or the skill does not run: an entry or a hash that was taken out refuses as much as one that was changed.
//!
//! **Invariant.** It is written whole beside its place and renamed. Only what this wrote itself is replaced without being
//! asked: a registry that somebody edited stays, and is told.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use fluffy_base::Digest;
use fluffy_kernel::Appended;
use rusqlite::Connection;
use serde::Serialize;

use super::fold::Skill;
use super::{Shelf, ShelfError, begin, files, tables};
use crate::SkillName;

/// Where it lies in the project.
const FOLDER: [&str; 2] = [".fluffy", "skills"];
const NAME: &str = "registry.yaml";
/// Where it is written before.
const BESIDE: &str = ".registry.yaml.new";
/// The most that is read of it.
const MAX_BYTES: u64 = 64 << 20;

const HEAD: &str = "# Written by fluffy from its ledger, which alone says what may run.\n\
                    # If this differs from it, `fluffy skill doctor --rebuild` writes it again.\n\
                    version: 1\nskills:";

/// Why a skill does not run on account of the registry.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// It is not there.
    #[error(
        "`.fluffy/skills/registry.yaml` is missing, and the ledger has trusted skills: `fluffy skill doctor --rebuild` writes it again"
    )]
    Missing,
    /// It does not have the skill as the ledger has it.
    #[error(
        "`.fluffy/skills/registry.yaml` does not say of skill `{0}` what the ledger says: look at what changed it, then `fluffy skill doctor --rebuild` writes it again"
    )]
    Skill(SkillName),
    /// It has something else than the ledger.
    #[error(
        "`.fluffy/skills/registry.yaml` is not what the ledger gives: look at what changed it, then `fluffy skill doctor --rebuild` writes it again"
    )]
    Whole,
    /// It cannot be read.
    #[error("`.fluffy/skills/registry.yaml` cannot be read")]
    Read(#[source] io::Error),
    /// It cannot be written.
    #[error("`.fluffy/skills/registry.yaml` cannot be written")]
    Write(#[source] io::Error),
}

impl Shelf {
    /// Whether the registry is what the ledger gives, byte by byte.
    pub fn registry_agrees(&self) -> Result<(), ShelfError> {
        let mut tables = self.tables();
        let transaction = begin(&mut tables)?;
        self.catch_up(&transaction)?;
        self.vouch(&transaction)?;
        let derived = self.derived(&transaction)?;
        transaction.commit()?;
        let none = tables::trusted(&tables)?.is_empty();
        match read(&self.options.project)? {
            Some(found) if found == derived.as_bytes() => Ok(()),
            Some(_) => Err(RegistryError::Whole.into()),
            None if none => Ok(()),
            None => Err(RegistryError::Missing.into()),
        }
    }

    /// Writes the registry again from the ledger, whatever is there.
    pub fn rebuild_registry(&self) -> Result<(), ShelfError> {
        let mut tables = self.tables();
        let transaction = begin(&mut tables)?;
        tables::clear(&transaction)?;
        self.catch_up(&transaction)?;
        let derived = self.derived(&transaction)?;
        write(&self.options.project, &derived)?;
        tables::set_registry(&transaction, &Digest::of(derived.as_bytes()))?;
        Ok(transaction.commit()?)
    }

    /// Writes the registry where a promotion or a revocation changed what it should be.
    pub(super) fn settle_registry(&self, tables: &mut Connection) -> Result<(), ShelfError> {
        if !tables::registry(tables)?.1 {
            return Ok(());
        }
        let transaction = begin(tables)?;
        let (written, pending) = tables::registry(&transaction)?;
        if !pending {
            return Ok(());
        }
        let derived = self.derived(&transaction)?;
        let found = read(&self.options.project)?.map(|found| Digest::of(&found));
        let now = Digest::of(derived.as_bytes());
        // What was written last, or nothing: nobody edited it.
        if found == written && found != Some(now) {
            write(&self.options.project, &derived)?;
        }
        tables::set_registry(&transaction, &now)?;
        Ok(transaction.commit()?)
    }

    fn derived(&self, tables: &Connection) -> Result<String, ShelfError> {
        let mut text = HEAD.to_owned();
        let skills = tables::trusted(tables)?;
        text.push_str(if skills.is_empty() { " {}\n" } else { "\n" });
        for skill in &skills {
            let Some(promotion) = skill.promotion() else { continue };
            let seq = promotion.seq;
            let entry_hash = tables::hash_of(tables, seq)?.ok_or(ShelfError::Strange(seq))?;
            text.push_str(&block(skill, &Appended { seq, entry_hash }));
        }
        Ok(text)
    }
}

/// Whether the registry of a project says of a skill what its entries say.
pub(super) fn agrees_on(
    project: &Path,
    skill: &Skill,
    entry: &Appended,
) -> Result<(), RegistryError> {
    let found = read(project)?.ok_or(RegistryError::Missing)?;
    let differs = || RegistryError::Skill(skill.name.clone());
    let text = std::str::from_utf8(&found).map_err(|_| differs())?;
    let body = text.strip_prefix(HEAD).and_then(|rest| rest.strip_prefix('\n'));
    let body = body.ok_or_else(differs)?;
    let head = format!("  {}:\n", skill.name);
    let mut blocks = blocks(body).filter(|block| block.starts_with(&head));
    let same = blocks.next() == Some(&block(skill, entry));
    if same && blocks.next().is_none() { Ok(()) } else { Err(differs()) }
}

/// The text cut before every line that names a skill.
fn blocks(body: &str) -> impl Iterator<Item = &str> {
    let mut rest = body;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let starts = rest
            .match_indices("\n  ")
            .map(|(at, _)| at + 1)
            .find(|at| rest.get(at + 2..).is_some_and(|line| !line.starts_with([' ', '\n'])));
        let (block, after) = rest.split_at_checked(starts.unwrap_or(rest.len()))?;
        rest = after;
        Some(block)
    })
}

/// What the registry says of one skill.
fn block(skill: &Skill, entry: &Appended) -> String {
    let spec = &skill.proposal.spec;
    let mut text = format!("  {}:\n", skill.name);
    let mut line = |key: &str, value: String| {
        // Writing to a string does not fail.
        let _written = writeln!(text, "    {key}: {value}");
    };
    line("description", quoted(&spec.description));
    line("side_effect", spec.side_effect.name().to_owned());
    line("input", quoted(&spec.input));
    line("output", quoted(&spec.output));
    line("reads", quoted(&spec.reads));
    line("writes", quoted(&spec.writes));
    line("hosts", quoted(&spec.hosts));
    line("required_secrets", quoted(&spec.secrets));
    line("model", spec.model.to_string());
    if let Some(promotion) = skill.promotions.last() {
        line("verification", quoted(&promotion.verification));
        line("approved_by", quoted(&promotion.by));
        line("entry", entry.seq.to_string());
        line("entry_hash", quoted(&entry.entry_hash));
        line("base", quoted(&promotion.sealed.base));
        line("files", String::new());
        for file in &promotion.sealed.files {
            let (path, hash) = (quoted(&file.path), quoted(&file.sha256));
            let _written = writeln!(text, "      {path}: {hash}");
        }
    }
    text.replace("files: \n", "files:\n")
}

/// A value as JSON, which is YAML on one line; nothing invisible, and nothing that YAML reads otherwise.
fn quoted(value: &(impl Serialize + ?Sized)) -> String {
    let json = serde_json::to_string(value).unwrap_or_default();
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            ' '..='~' => text.push(c),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    let _written = write!(text, "\\u{unit:04x}");
                }
            }
        }
    }
    text
}

fn read(project: &Path) -> Result<Option<Vec<u8>>, RegistryError> {
    let path = FOLDER.iter().fold(project.to_owned(), |at, name| at.join(name));
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        _there => {}
    }
    let read =
        files::project_dir(project, &FOLDER).and_then(|dir| files::read_at(&dir, NAME, MAX_BYTES));
    read.map_err(RegistryError::Read)
}

fn write(project: &Path, text: &str) -> Result<(), RegistryError> {
    files::project_dir(project, &FOLDER)
        .and_then(|dir| files::replace(&dir, BESIDE, NAME, text.as_bytes()))
        .map_err(RegistryError::Write)
}
