//! Reads a bundle piece by piece: one reader for its entries, one for its details.

use std::fmt;
use std::io::Read;
use std::sync::mpsc::SyncSender;

use fluffy_base::{Digest, Excerpt};
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::Problem;
use crate::bundle::BundleDetail;

/// What a bundle says of itself beside its lists.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub(crate) version: Option<u64>,
    pub(crate) kernel_id: Option<String>,
    pub(crate) variant: Option<String>,
    pub(crate) root_hash: Option<String>,
    pub(crate) public_key: Option<String>,
    pub(crate) checkpoint: Option<String>,
    pub(crate) seal: Option<String>,
    /// The first place where the two lists of entries differ.
    pub(crate) lists_differ_at: Option<u64>,
}

/// Reads everything but the details; hands on every entry.
pub(crate) struct Entries {
    pub(crate) out: SyncSender<Map<String, Value>>,
}

/// Reads the details only.
pub(crate) struct Details {
    pub(crate) out: SyncSender<BundleDetail>,
}

impl Entries {
    pub(crate) fn read(self, from: impl Read) -> Result<Head, Problem> {
        whole(from, HeadSeed { out: self.out })
    }
}

impl Details {
    pub(crate) fn read(self, from: impl Read) -> Result<(), Problem> {
        whole(from, DetailSeed { out: self.out })
    }
}

fn whole<T>(
    from: impl Read,
    seed: impl for<'de> DeserializeSeed<'de, Value = T>,
) -> Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_reader(from);
    let format =
        |error: serde_json::Error| Problem::Format(format!("the bundle cannot be read: {error}"));
    let value = seed.deserialize(&mut reader).map_err(format)?;
    reader.end().map_err(format)?;
    Ok(value)
}

struct HeadSeed {
    out: SyncSender<Map<String, Value>>,
}

impl<'de> DeserializeSeed<'de> for HeadSeed {
    type Value = Head;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Head, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for HeadSeed {
    type Value = Head;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an evidence bundle")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Head, A::Error> {
        let mut head = Head::default();
        let mut seen = Vec::new();
        let (mut chained, mut repeated) = (None, None);
        while let Some(key) = map.next_key::<String>()? {
            if seen.contains(&key) {
                let key = Excerpt::new(&key, 100);
                return Err(de::Error::custom(format!("`{key}` stands twice")));
            }
            match key.as_str() {
                "ledger_entries" => {
                    chained = Some(map.next_value_seed(List { out: Some(&self.out) })?);
                }
                "entries" => repeated = Some(map.next_value_seed(List { out: None })?),
                "details" => drop(map.next_value::<IgnoredAny>()?),
                "exported_at_ms" => drop(map.next_value::<u64>()?),
                "version" => head.version = Some(map.next_value()?),
                "kernel_id" => head.kernel_id = Some(map.next_value()?),
                "variant" => head.variant = Some(map.next_value()?),
                "root_hash" => head.root_hash = Some(map.next_value()?),
                "public_key" => head.public_key = Some(map.next_value()?),
                "checkpoint" => head.checkpoint = Some(map.next_value()?),
                "seal" => head.seal = Some(map.next_value()?),
                _ => {
                    let key = Excerpt::new(&key, 100);
                    return Err(de::Error::custom(format!("`{key}` is not a field of a bundle")));
                }
            }
            seen.push(key);
        }
        let Some(chained) = chained else {
            return Err(de::Error::custom("the bundle has no `ledger_entries`"));
        };
        head.lists_differ_at = repeated.and_then(|repeated| chained.differs_at(&repeated));
        Ok(head)
    }
}

/// A list of entries: hands them on, or only remembers what it needs for a comparison.
struct List<'a> {
    out: Option<&'a SyncSender<Map<String, Value>>>,
}

/// A running hash at every power of two and at the end is enough to say that two lists differ and
/// roughly where; the exact place is the first entry whose own check fails.
struct Seen {
    count: u64,
    running: Digest,
    marks: Vec<(u64, Digest)>,
}

impl Seen {
    fn differs_at(&self, other: &Self) -> Option<u64> {
        if self.count == other.count && self.running == other.running {
            return None;
        }
        let same = self.marks.iter().zip(&other.marks).take_while(|(a, b)| a == b).last();
        Some(same.map_or(0, |((count, _), _)| *count))
    }
}

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = Seen;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Seen, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = Seen;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Seen, A::Error> {
        let mut seen = Seen { count: 0, running: Digest::GENESIS, marks: Vec::new() };
        while let Some(StrictEntry(entry)) = seq.next_element()? {
            let text = serde_json::to_vec(&entry).map_err(de::Error::custom)?;
            seen.running = Digest::of_parts(&[seen.running.as_bytes(), &text]);
            seen.count += 1;
            if seen.count.is_power_of_two() {
                seen.marks.push((seen.count, seen.running));
            }
            if self.out.is_some_and(|out| out.send(entry).is_err()) {
                return Err(de::Error::custom("too many problems to go on"));
            }
        }
        Ok(seen)
    }
}

/// An entry in which no key stands twice.
struct StrictEntry(Map<String, Value>);

impl<'de> Deserialize<'de> for StrictEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = StrictEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an entry")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StrictEntry, A::Error> {
                let mut members = Map::new();
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    if members.contains_key(&key) {
                        let key = Excerpt::new(&key, 100);
                        return Err(de::Error::custom(format!("`{key}` stands twice in an entry")));
                    }
                    members.insert(key, value);
                }
                Ok(StrictEntry(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

struct DetailSeed {
    out: SyncSender<BundleDetail>,
}

impl<'de> DeserializeSeed<'de> for DetailSeed {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for DetailSeed {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an evidence bundle")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "details" {
                map.next_value_seed(DetailMap { out: &self.out })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct DetailMap<'a> {
    out: &'a SyncSender<BundleDetail>,
}

impl<'de> DeserializeSeed<'de> for DetailMap<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for DetailMap<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("details by evidence hash")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(detail) = map.next_entry::<String, Option<String>>()? {
            if self.out.send(detail).is_err() {
                return Err(de::Error::custom("too many problems to go on"));
            }
        }
        Ok(())
    }
}
