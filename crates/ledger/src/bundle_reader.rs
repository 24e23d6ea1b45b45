//! Reads a bundle piece by piece: one reader for its entries, one for its details.
//!
//! **Invariant.** What is held in memory grows with the largest piece (an entry, a detail, a line of
//! the head), which is limited, and not with the bundle.
//!
//! **Invariant.** No key stands twice in any object, so no two readers see two different bundles.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufReader, Read};
use std::marker::PhantomData;
use std::sync::mpsc::SyncSender;

use fluffy_base::{Digest, Excerpt, Hasher};
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::export::seal_ending;
use crate::{Located, Problem};

/// How much is taken from the file at once. What one block holds is handed on together.
const BLOCK: usize = 256 << 10;
/// The longest entry, detail or line of the head that is read; shorter in unit tests, which reach it
/// many times.
const PIECE_LIMIT: u64 = if cfg!(test) { 1 << 20 } else { 16 << 20 };
/// Longer than any seal.
const SEAL_LIMIT: usize = 8 << 10;

/// What a bundle says of itself beside its lists.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub(crate) version: Option<u64>,
    pub(crate) kernel_id: Option<String>,
    pub(crate) variant: Option<String>,
    pub(crate) root_hash: Option<String>,
    pub(crate) exported_at_ms: Option<u64>,
    pub(crate) public_key: Option<String>,
    pub(crate) checkpoint: Option<String>,
    pub(crate) seal: Option<String>,
    pub(crate) has_entries: bool,
    pub(crate) has_details: bool,
    /// Hash of everything before the seal; `None` where the file does not end with one.
    pub(crate) sealed: Option<Digest>,
}

/// Which of the two lists an entry stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    /// `ledger_entries`, the one that counts.
    Chained,
    /// `entries`, the same once more.
    Repeated,
}

/// A detail as it stands in a bundle: its hash, and its text unless withheld.
pub(crate) type BundleDetail = (String, Option<String>);

/// Why a reader stopped before the end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The bundle is not readable from here on.
    Unreadable(Located),
    /// The file could not be read.
    Failed(io::Error),
    /// Nobody listens any more.
    Unwanted,
}

/// Reads everything but the details; hands on every entry.
pub(crate) fn read_entries(
    from: impl Read,
    out: SyncSender<Vec<(List, Value)>>,
) -> Result<Head, Stop> {
    let mut from = Hashed { from, hasher: Hasher::default(), tail: Vec::new() };
    let place = Place::default();
    let mut head = whole(&mut from, &place, HeadSeed { out: Batches::new(&place, out) })?;
    head.sealed = head.seal.as_deref().and_then(|seal| from.before(&seal_ending(seal)));
    Ok(head)
}

/// Reads the details only.
pub(crate) fn read_details(
    from: impl Read,
    out: SyncSender<Vec<BundleDetail>>,
) -> Result<(), Stop> {
    let place = Place::default();
    whole(from, &place, DetailSeed { out: Batches::new(&place, out) })
}

fn whole<T>(
    from: impl Read,
    place: &Place,
    seed: impl for<'de> DeserializeSeed<'de, Value = T>,
) -> Result<T, Stop> {
    let source = BufReader::with_capacity(BLOCK, Source { from, place });
    let mut reader = serde_json::Deserializer::from_reader(source);
    let value = seed.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| match error.io_error_kind() {
        _ if place.unwanted.get() => Stop::Unwanted,
        Some(kind) if kind != io::ErrorKind::FileTooLarge => Stop::Failed(error.into()),
        _ => {
            let problem = Problem::Format(format!("the bundle cannot be read: {error}"));
            Stop::Unreadable(Located { seq: place.entry.get(), problem })
        }
    })
}

/// Where a reader stands.
#[derive(Debug, Default)]
struct Place {
    /// The entry that is being read, if it is one.
    entry: Cell<Option<u64>>,
    /// Bytes taken from the file.
    taken: Cell<u64>,
    /// How many there were when the current piece began.
    began: Cell<u64>,
    /// Nobody listens any more.
    unwanted: Cell<bool>,
}

impl Place {
    fn begin(&self, entry: Option<u64>) {
        self.entry.set(entry);
        self.began.set(self.taken.get());
    }
}

/// The file, as long as no piece of it is too long.
struct Source<'a, R> {
    from: R,
    place: &'a Place,
}

impl<R: Read> Read for Source<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (taken, began) = (self.place.taken.get(), self.place.began.get());
        if taken.saturating_sub(began) > PIECE_LIMIT {
            let text = format!("a piece of it is longer than {} MiB", PIECE_LIMIT >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        let read = self.from.read(buffer)?;
        self.place.taken.set(taken.saturating_add(read as u64));
        Ok(read)
    }
}

/// Hashes what is read, all but the last of it, which may be the seal.
struct Hashed<R> {
    from: R,
    hasher: Hasher,
    tail: Vec<u8>,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.tail.extend_from_slice(buffer.get(..read).unwrap_or_default());
        let certain = self.tail.len().saturating_sub(SEAL_LIMIT);
        self.hasher.update(self.tail.get(..certain).unwrap_or_default());
        self.tail.drain(..certain);
        Ok(read)
    }
}

impl<R> Hashed<R> {
    /// The hash of everything before `ending`; `None` where the file does not end with it.
    fn before(mut self, ending: &[u8]) -> Option<Digest> {
        self.hasher.update(self.tail.strip_suffix(ending)?);
        Some(self.hasher.finish())
    }
}

/// Hands on together what one block of the file holds.
struct Batches<'a, T> {
    place: &'a Place,
    out: SyncSender<Vec<T>>,
    batch: Vec<T>,
    block: u64,
}

impl<'a, T> Batches<'a, T> {
    fn new(place: &'a Place, out: SyncSender<Vec<T>>) -> Self {
        Self { place, out, batch: Vec::new(), block: 0 }
    }

    fn push(&mut self, item: T) -> Result<(), Unwanted> {
        self.batch.push(item);
        let block = self.place.taken.get();
        if block == self.block {
            return Ok(());
        }
        self.block = block;
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Unwanted> {
        self.out.send(std::mem::take(&mut self.batch)).map_err(|_| {
            self.place.unwanted.set(true);
            Unwanted
        })
    }
}

/// Nobody listens any more.
#[derive(Debug, thiserror::Error)]
#[error("nobody listens any more")]
struct Unwanted;

struct HeadSeed<'a> {
    out: Batches<'a, (List, Value)>,
}

impl<'de> DeserializeSeed<'de> for HeadSeed<'_> {
    type Value = Head;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Head, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for HeadSeed<'_> {
    type Value = Head;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an evidence bundle")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Head, A::Error> {
        let place = self.out.place;
        let mut head = Head::default();
        let mut has_chain = false;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "ledger_entries" if !has_chain => {
                    has_chain = true;
                    map.next_value_seed(items(place, |Strict(entry)| {
                        self.out.push((List::Chained, entry))
                    }))?;
                }
                "entries" if !head.has_entries => {
                    head.has_entries = true;
                    map.next_value_seed(items(place, |Strict(entry)| {
                        self.out.push((List::Repeated, entry))
                    }))?;
                }
                "details" if !head.has_details => {
                    head.has_details = true;
                    map.next_value_seed(members(place, |(IgnoredAny, IgnoredAny)| Ok(())))?;
                }
                "exported_at_ms" => once(&mut head.exported_at_ms, &key, &mut map)?,
                "version" => once(&mut head.version, &key, &mut map)?,
                "kernel_id" => once(&mut head.kernel_id, &key, &mut map)?,
                "variant" => once(&mut head.variant, &key, &mut map)?,
                "root_hash" => once(&mut head.root_hash, &key, &mut map)?,
                "public_key" => once(&mut head.public_key, &key, &mut map)?,
                "checkpoint" => once(&mut head.checkpoint, &key, &mut map)?,
                "seal" => once(&mut head.seal, &key, &mut map)?,
                "ledger_entries" | "entries" | "details" => return Err(twice(&key)),
                _ => {
                    let key = Excerpt::new(&key, 100);
                    return Err(de::Error::custom(format!("`{key}` is not a field of a bundle")));
                }
            }
            place.begin(None);
        }
        self.out.flush().map_err(de::Error::custom)?;
        if has_chain {
            Ok(head)
        } else {
            Err(de::Error::custom("the bundle has no `ledger_entries`"))
        }
    }
}

/// Reads the value of a key that may stand once.
fn once<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    slot: &mut Option<T>,
    key: &str,
    map: &mut A,
) -> Result<(), A::Error> {
    if slot.is_some() {
        return Err(twice(key));
    }
    *slot = Some(map.next_value()?);
    Ok(())
}

fn twice<E: de::Error>(key: &str) -> E {
    E::custom(format!("`{}` stands twice", Excerpt::new(key, 100)))
}

struct DetailSeed<'a> {
    out: Batches<'a, BundleDetail>,
}

impl<'de> DeserializeSeed<'de> for DetailSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for DetailSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an evidence bundle")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let place = self.out.place;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "details" => map.next_value_seed(members(place, |detail| self.out.push(detail)))?,
                "ledger_entries" | "entries" => {
                    map.next_value_seed(items(place, |IgnoredAny| Ok(())))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
            place.begin(None);
        }
        self.out.flush().map_err(de::Error::custom)
    }
}

/// A list, read an item at a time.
struct Items<'a, T, F> {
    place: &'a Place,
    act: F,
    of: PhantomData<T>,
}

fn items<T, F: FnMut(T) -> Result<(), Unwanted>>(place: &Place, act: F) -> Items<'_, T, F> {
    Items { place, act, of: PhantomData }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T) -> Result<(), Unwanted>> DeserializeSeed<'de>
    for Items<'_, T, F>
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T) -> Result<(), Unwanted>> Visitor<'de>
    for Items<'_, T, F>
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        for number in 0.. {
            self.place.begin(Some(number));
            let Some(item) = seq.next_element()? else { break };
            (self.act)(item).map_err(de::Error::custom)?;
        }
        Ok(())
    }
}

/// An object, read a member at a time.
struct Members<'a, K, V, F> {
    place: &'a Place,
    act: F,
    of: PhantomData<(K, V)>,
}

fn members<K, V, F>(place: &Place, act: F) -> Members<'_, K, V, F>
where
    F: FnMut((K, V)) -> Result<(), Unwanted>,
{
    Members { place, act, of: PhantomData }
}

impl<'de, K, V, F> DeserializeSeed<'de> for Members<'_, K, V, F>
where
    K: Deserialize<'de>,
    V: Deserialize<'de>,
    F: FnMut((K, V)) -> Result<(), Unwanted>,
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, K, V, F> Visitor<'de> for Members<'_, K, V, F>
where
    K: Deserialize<'de>,
    V: Deserialize<'de>,
    F: FnMut((K, V)) -> Result<(), Unwanted>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("details by evidence hash")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        for number in 0.. {
            self.place.begin(Some(number));
            let Some(member) = map.next_entry()? else { break };
            (self.act)(member).map_err(de::Error::custom)?;
        }
        Ok(())
    }
}

/// A value in which no key stands twice.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Strict;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Strict, E> {
        Ok(Strict(Value::Null))
    }

    fn visit_bool<E: de::Error>(self, b: bool) -> Result<Strict, E> {
        Ok(Strict(Value::Bool(b)))
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<Strict, E> {
        Ok(Strict(Value::Number(n.into())))
    }

    fn visit_u64<E: de::Error>(self, n: u64) -> Result<Strict, E> {
        Ok(Strict(Value::Number(n.into())))
    }

    fn visit_f64<E: de::Error>(self, n: f64) -> Result<Strict, E> {
        let number = Number::from_f64(n).ok_or_else(|| E::custom("a number is not finite"))?;
        Ok(Strict(Value::Number(number)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Strict, E> {
        Ok(Strict(Value::String(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Strict, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = seq.next_element()? {
            items.push(item);
        }
        Ok(Strict(Value::Array(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Strict, A::Error> {
        let mut members = Map::new();
        while let Some((key, Strict(value))) = map.next_entry::<String, Strict>()? {
            if members.contains_key(&key) {
                return Err(twice(&key));
            }
            members.insert(key, value);
        }
        Ok(Strict(Value::Object(members)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;
    use std::thread;

    use super::*;

    /// What `start` says, and then `more` without end.
    fn endless<'a>(start: &'a str, more: &'a str) -> impl Read + 'a {
        struct Cycle<'a>(&'a [u8], usize);
        impl Read for Cycle<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                for byte in buffer.iter_mut() {
                    *byte = self.0[self.1 % self.0.len()];
                    self.1 += 1;
                }
                Ok(buffer.len())
            }
        }
        start.as_bytes().chain(Cycle(more.as_bytes(), 0))
    }

    fn unreadable<T>(read: Result<T, Stop>) -> Located {
        match read {
            Err(Stop::Unreadable(found)) => found,
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("an endless file was read to its end"),
        }
    }

    #[test]
    fn slow_no_file_is_so_long_that_reading_it_never_ends() {
        for (start, more, seq) in [
            ("", " ", None),
            ("[", "[", None),
            ("{\"a", "a", None),
            ("{\"kernel_id\":\"", "a", None),
            ("{\"kernel_id\":\"", "\\u0061", None),
            ("{\"version\":1", "0", None),
            ("{\"ledger_entries\":[", " ", Some(0)),
            ("{\"ledger_entries\":[{},\"", "x", Some(1)),
            ("{\"ledger_entries\":[{},{},{\"a\":[0", ",0", Some(2)),
            ("{\"details\":{\"a\":null,\"b\":", "[", Some(1)),
            ("{\"details\":{\"a\":null,\"b\":\"", "x", Some(1)),
            ("{\"details\":{\"", "x", Some(0)),
        ] {
            // Whichever reader takes a part for itself, it stands at the same place.
            let (out, taken) = sync_channel(1);
            let draining = thread::spawn(move || taken.into_iter().flatten().count());
            let found = unreadable(read_entries(endless(start, more), out));
            assert_eq!(found.seq, seq, "{start}: {found}");
            draining.join().unwrap();
            let (out, taken) = sync_channel(1);
            let draining = thread::spawn(move || taken.into_iter().flatten().count());
            let found = unreadable(read_details(endless(start, more), out));
            assert_eq!(found.seq, seq, "{start}: {found}");
            draining.join().unwrap();
        }
    }

    #[test]
    fn a_reader_that_nobody_listens_to_stops() {
        let (out, taken) = sync_channel(1);
        drop(taken);
        let stop = read_entries(endless("{\"ledger_entries\":[0", ",0"), out);
        assert!(matches!(stop, Err(Stop::Unwanted)), "{stop:?}");
        let (out, taken) = sync_channel(1);
        drop(taken);
        let stop = read_details(endless("{\"details\":{\"a\":null", ",\"a\":null"), out);
        assert!(matches!(stop, Err(Stop::Unwanted)), "{stop:?}");
    }

    #[test]
    fn what_waits_is_what_a_few_blocks_hold() {
        let (out, taken) = sync_channel(2);
        let reader =
            thread::spawn(move || read_entries(endless("{\"ledger_entries\":[0", ",0"), out));
        let largest = taken.iter().take(20).map(|batch| batch.len()).max();
        drop(taken);
        assert!(largest.is_some_and(|largest| largest <= BLOCK), "{largest:?}");
        assert!(matches!(reader.join().unwrap(), Err(Stop::Unwanted)));
    }

    #[test]
    fn a_file_that_fails_is_no_bundle_that_is_wrong() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::PermissionDenied.into())
            }
        }
        let (out, _taken) = sync_channel(1);
        let stop = read_entries("{\"version\":".as_bytes().chain(Failing), out);
        assert!(matches!(stop, Err(Stop::Failed(_))), "{stop:?}");
    }

    #[test]
    fn the_hash_before_the_ending_does_not_depend_on_how_it_is_read() {
        for length in [0, 1, SEAL_LIMIT - 3, SEAL_LIMIT, 3 * SEAL_LIMIT] {
            let start = vec![b'x'; length];
            let file = [&start[..], b"end"].concat();
            for step in [1, 1000, SEAL_LIMIT, file.len()] {
                let mut hashed =
                    Hashed { from: &file[..], hasher: Hasher::default(), tail: Vec::new() };
                while hashed.read(&mut vec![0; step]).unwrap() > 0 {}
                assert_eq!(hashed.before(b"end"), Some(Digest::of(&start)), "{length} {step}");
            }
        }
    }
}
