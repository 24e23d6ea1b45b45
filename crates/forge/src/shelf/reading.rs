//! Reads entries back: all that are new, those of one skill, one run.
//!
//! **Invariant.** An entry that cannot be read ends the reading: half of a history is another one.

use std::ops::Range;

use fluffy_base::Digest;
use fluffy_kernel::{
    EventType, KeptNote, NotesError, newest_note, notes, proved_copy, proved_note,
};
use rusqlite::Connection;
use serde::Deserialize;

use super::copies::Copies;
use super::fold::{Skill, apply};
use super::tables::{self, Folded, Kept};
use super::{CHAIN, Execution, KIND, Shelf, ShelfError, VERSION};
use crate::{SkillEntry, SkillName};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Versioned {
    v: u64,
    entry: SkillEntry,
}

/// What is gathered while entries are read.
struct Reading<'a> {
    shelf: &'a Shelf,
    copies: &'a Copies,
    tables: &'a Connection,
    /// Where reading goes on; none at the beginning.
    from: Option<Folded>,
    /// Whether the ledger has that entry, and everything after it.
    agrees: bool,
    next: Option<u64>,
    last: Option<(u64, Digest)>,
    base: Digest,
    chain: Digest,
    /// Whether entries were missing just before.
    gap: bool,
    failed: Option<ShelfError>,
}

impl Shelf {
    /// Takes in what the ledger has and the tables do not; tables that are of another ledger are made again.
    pub(super) fn catch_up(&self, tables: &Connection) -> Result<(), ShelfError> {
        let active = self.options.layout.active()?;
        let folded = tables::folded(tables)?;
        if let Some(folded) = folded.filter(|folded| Some(folded.segment) == active)
            && self.read_on(tables, Some(folded))?
        {
            return Ok(());
        }
        tables::clear(tables)?;
        self.read_on(tables, None).map(drop)
    }

    /// Reads on; `false` where what was read before is not what the ledger has.
    fn read_on(&self, tables: &Connection, from: Option<Folded>) -> Result<bool, ShelfError> {
        let first = from.as_ref().map_or(0, |from| from.seq);
        let chain = from.as_ref().map_or(Digest::GENESIS, |from| from.chain);
        let base = from.as_ref().map_or(Digest::GENESIS, |from| from.base);
        let agrees = from.is_none();
        let Some(segment) = self.options.layout.active()? else { return Ok(false) };
        let copies = &self.copies_of(segment);
        let (shelf, next, last, gap, failed) = (self, None, None, false, None);
        let mut reading =
            Reading { shelf, copies, tables, from, agrees, next, last, base, chain, gap, failed };
        let (layout, key) = (&self.options.layout, &self.options.key);
        let span = notes(layout, key, EventType::Skill, first, |note| reading.add(note))?;
        if let Some(error) = reading.failed {
            return Err(error);
        }
        match (span, reading.last) {
            (Some(span), Some((seq, entry_hash))) if reading.agrees => {
                let Reading { base, chain, .. } = reading;
                let folded = Folded { segment: span.segment, seq, entry_hash, base, chain };
                if reading.from.as_ref() != Some(&folded) {
                    tables::set_folded(tables, &folded)?;
                }
                Ok(true)
            }
            _nothing_or_another => Ok(false),
        }
    }

    /// Makes sure that the index of the tables has every entry that says where skills stand, and gives the digest of them:
    /// the newest entry of any skill names it, and is looked for in the ledger.
    pub(super) fn vouch(&self, tables: &Connection) -> Result<Digest, ShelfError> {
        let mut newest = None;
        let (layout, key) = (&self.options.layout, &self.options.key);
        let span = newest_note(layout, key, EventType::Skill, |note| {
            newest = Some((Found::of(note), note.metadata(CHAIN).and_then(|it| it.parse().ok())));
        })?;
        let base = tables::folded(tables)?.map_or(Digest::GENESIS, |folded| folded.base);
        let whole = tables::chain_before(tables, base, u64::MAX)?;
        let Some((found, chain)) = newest else {
            // Nothing happened for as long as the ledger keeps entries: the tables stand on the copies alone.
            let alone = span.is_some_and(|span| span.gone_to > 0);
            return if alone || whole == base { Ok(whole) } else { Err(ShelfError::Strange(0)) };
        };
        let kept = found?;
        let (seq, entry) = (kept.seq, &kept.entry);
        let before: Digest = tables::chain_before(tables, base, seq)?;
        let expected = match entry.is_step() {
            true => {
                tables::extended(&before, &kept.entry_hash, entry.name().as_str(), entry.kind())
            }
            false => before,
        };
        match chain == Some(before) && whole == expected {
            true => Ok(whole),
            false => Err(ShelfError::Strange(seq)),
        }
    }

    /// A skill as the ledger's entries give it, each proved, and the hash of its last promotion.
    pub(super) fn proved(
        &self,
        tables: &Connection,
        name: &SkillName,
    ) -> Result<Option<(Skill, Digest)>, ShelfError> {
        let (mut skill, mut promotion) = (None, Digest::GENESIS);
        for indexed in tables::index_of(tables, name)? {
            let seq = indexed.seq;
            let held = match self.proved_entry(seq)? {
                Some(kept) => Some(kept),
                None => self.proved_copy(seq, &indexed.entry_hash)?,
            };
            let kept = held.ok_or_else(|| ShelfError::Gone { name: name.clone(), seq })?;
            if kept.entry_hash != indexed.entry_hash || kept.entry.name() != name {
                return Err(ShelfError::Strange(seq));
            }
            // What was not legal had no effect.
            let legal = apply(&mut skill, seq, &kept.entry).is_ok();
            if legal && matches!(kept.entry, SkillEntry::Promoted { .. }) {
                promotion = kept.entry_hash;
            }
        }
        Ok(skill.map(|skill| (skill, promotion)))
    }

    /// A run as the ledger has it.
    pub(super) fn proved_run(
        &self,
        tables: &Connection,
        id: &str,
    ) -> Result<Option<Execution>, ShelfError> {
        let Some(seq) = tables::execution_seq(tables, id)? else { return Ok(None) };
        let Some(kept) = self.proved_entry(seq)? else { return Ok(None) };
        match kept.entry {
            SkillEntry::Ran { name, execution, parent, record } if execution == id => {
                let ts_ms = kept.ts_ms;
                Ok(Some(Execution { id: execution, seq, ts_ms, name, parent, record }))
            }
            _another => Err(ShelfError::Strange(seq)),
        }
    }

    fn copies_of(&self, segment: u32) -> Copies {
        Copies::of(&self.options.dir.join("entries"), segment)
    }

    /// An entry that the ledger does not hold any more, from the copy that was kept of it.
    fn proved_copy(&self, seq: u64, hash: &Digest) -> Result<Option<Kept>, ShelfError> {
        let Some(segment) = self.options.layout.active()? else { return Ok(None) };
        let Some(copy) = self.copies_of(segment).get(seq, hash)? else { return Ok(None) };
        let mut found = None;
        let (layout, key) = (&self.options.layout, &self.options.key);
        proved_copy(layout, key, EventType::Skill, &copy, |note| found = Some(Found::of(note)))?;
        found.transpose().map(|kept| kept.filter(|kept| kept.seq == seq))
    }

    fn proved_entry(&self, seq: u64) -> Result<Option<Kept>, ShelfError> {
        let mut found = None;
        let (layout, key) = (&self.options.layout, &self.options.key);
        let span = proved_note(layout, key, EventType::Skill, seq, |note| {
            found = Some(Found::of(note));
        })?;
        match (span, found) {
            (None, _) => Ok(None),
            (Some(_), Some(found)) => found.map(Some),
            (Some(_), None) => Err(ShelfError::Strange(seq)),
        }
    }
}

impl Reading<'_> {
    fn add(&mut self, note: &KeptNote<'_>) {
        if self.failed.is_some() {
            return;
        }
        if let (None, Some(from)) = (self.next, &self.from) {
            self.agrees = note.seq == from.seq && note.entry_hash == from.entry_hash;
        } else if self.agrees {
            // What retention deleted while nobody looked: the tables begin again with what is held and kept.
            let missing = self.next.filter(|next| *next != note.seq);
            self.agrees = missing.is_none() || self.from.is_none();
            if let Some(missing) = missing.filter(|_| self.agrees) {
                self.failed = self.take_copies(missing..note.seq).err();
                self.gap = true;
            }
            let skill = note.event == Some(EventType::Skill);
            if self.agrees && skill && self.failed.is_none() {
                self.failed = self.take(note).err();
            }
        }
        self.next = Some(note.seq.saturating_add(1));
        self.last = Some((note.seq, note.entry_hash));
    }

    /// Takes in the copies of entries that are not held any more.
    fn take_copies(&mut self, range: Range<u64>) -> Result<(), ShelfError> {
        let options = &self.shelf.options;
        for (seq, hash) in self.copies.within(range)? {
            let Some(copy) = self.copies.get(seq, &hash)? else { continue };
            let mut taken = Ok(());
            // The first that is held may stand on one of which there is no copy.
            self.gap = true;
            let (layout, key) = (&options.layout, &options.key);
            let proved = proved_copy(layout, key, EventType::Skill, &copy, |note| {
                if note.seq == seq {
                    taken = self.take(note);
                }
            });
            match proved {
                Ok(_) => taken?,
                // It is none, and what it would stand for is missing.
                Err(NotesError::Forged(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn take(&mut self, note: &KeptNote<'_>) -> Result<(), ShelfError> {
        let kept = Found::of(note)?;
        let chain = note.metadata(CHAIN).and_then(|chain| chain.parse::<Digest>().ok());
        let chain = chain.ok_or(ShelfError::Strange(note.seq))?;
        if chain != self.chain {
            if !self.gap {
                return Err(ShelfError::Strange(note.seq));
            }
            // Something before it is neither held nor kept: what is known begins here.
            tables::clear(self.tables)?;
            (self.base, self.chain) = (chain, chain);
        }
        self.gap = false;
        // What is not legal is in the index all the same, and has no effect.
        let _legal = tables::take(self.tables, &kept)?;
        if kept.entry.is_step() {
            self.copies.put(note)?;
            let (name, kind) = (kept.entry.name().as_str(), kept.entry.kind());
            self.chain = tables::extended(&self.chain, &kept.entry_hash, name, kind);
        }
        Ok(())
    }
}

/// An entry of the ledger that is one of a skill.
struct Found;

impl Found {
    fn of(note: &KeptNote<'_>) -> Result<Kept, ShelfError> {
        use serde::de::Error as _;
        let seq = note.seq;
        let unreadable = |source| ShelfError::Entry { seq, source };
        let content = note.content.filter(|_| note.metadata(KIND).is_some());
        let content = content.ok_or(ShelfError::Strange(seq))?;
        let Versioned { v, entry } = serde_json::from_slice(content).map_err(unreadable)?;
        if v != VERSION {
            let text = format!("version {v}, and {VERSION} is the only one known");
            return Err(unreadable(serde_json::Error::custom(text)));
        }
        Ok(Kept { seq, entry_hash: note.entry_hash, ts_ms: note.ts_ms, entry })
    }
}
