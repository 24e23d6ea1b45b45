//! Many patterns asked at once, in a time that does not grow with their number.
//!
//! A tree over the literal segments with which patterns begin; a path walks down the tree as far as
//! it goes. At each node lie the patterns that begin with the node's path, filed under something
//! literal that every path they match must have: its name, its extension, or a segment of it. Of
//! several such keys a pattern is filed under the one that the fewest others share.
//!
//! What a lookup costs: for each node on the way one look for the name, one for the extension and,
//! where the node has patterns like `**/dir/**`, one for each segment below; then one comparison
//! for each pattern under those keys that says more than its key. Patterns without any key, such as
//! `src/*_old*`, are compared one by one: thousands of them at the nodes of one path cost in
//! proportion to their number.
//!
//! **Invariant.** The index answers what asking each pattern by itself would answer.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

use fluffy_base::ProjectPath;

use super::{Glob, Part, Pattern, Segment, spans_path};

/// Without a random seed, as nothing in this crate reads randomness. It needs none: what is filed comes
/// from the policy alone, and a path that a stranger chose is only looked up.
type Map<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

/// A set of patterns, each with an id that several may share.
///
/// ```
/// # use fluffy_base::ProjectPath;
/// # use fluffy_policy::{Glob, GlobIndex};
/// let rules = [(1, "src/**"), (2, "*.rs"), (3, "docs/**"), (1, "**/lib.rs")];
/// let rules = rules.map(|(id, text)| Glob::parse(text).map(|glob| (id, glob)));
/// let index = GlobIndex::new(rules.into_iter().collect::<Result<Vec<_>, _>>()?);
/// let mut ids = Vec::new();
/// index.matching(&ProjectPath::parse("src/lib.rs")?, &mut ids);
/// assert_eq!(ids, [1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct GlobIndex {
    root: Node,
    others: Vec<Node>,
}

/// The patterns that begin with one literal path.
#[derive(Debug, Clone, Default)]
struct Node {
    /// By the next literal segment: where in [`GlobIndex::others`].
    children: Map<Box<str>, usize>,
    /// Nothing follows: only the node's path itself.
    exact: Vec<u32>,
    /// `**` follows: the node's path and all beneath it.
    below: Vec<u32>,
    /// By the last segment of the path.
    names: Map<Box<str>, Bucket>,
    /// By what follows the last dot of the path.
    extensions: Map<Box<str>, Bucket>,
    /// By any segment of the path below the node.
    segments: Map<Box<str>, Bucket>,
    /// No key.
    others: Vec<Remainder>,
}

/// The patterns filed under one key.
#[derive(Debug, Clone, Default)]
struct Bucket {
    /// Those of which the key says all.
    sure: Vec<u32>,
    /// Those of which it does not.
    unsure: Vec<Remainder>,
}

/// What follows the literal beginning of a pattern.
#[derive(Debug, Clone)]
struct Remainder {
    id: u32,
    segments: Pattern,
}

/// Something that every path has that a remainder matches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Name(Box<str>),
    Extension(Box<str>),
    Segment(Box<str>),
}

impl GlobIndex {
    /// Files the patterns.
    pub fn new(globs: impl IntoIterator<Item = (u32, Glob)>) -> Self {
        let mut index = Self { root: Node::default(), others: Vec::new() };
        let mut keyed: Vec<(Option<usize>, Vec<Key>, Remainder)> = Vec::new();
        let mut shared: Map<(Option<usize>, Key), usize> = Map::default();
        for (id, glob) in globs {
            for pattern in glob.patterns {
                let (place, segments) = index.place(pattern);
                let keys = keys(&segments);
                for key in &keys {
                    *shared.entry((place, key.clone())).or_default() += 1;
                }
                keyed.push((place, keys, Remainder { id, segments }));
            }
        }
        for (place, keys, remainder) in keyed {
            let sharing = |key: &Key| shared.get(&(place, key.clone())).copied();
            let key = keys.into_iter().min_by_key(sharing);
            if let Some(node) = index.node_mut(place) {
                node.file(key, remainder);
            }
        }
        index
    }

    /// Puts into `out` the ids of all patterns that match the path, sorted, each once. What `out`
    /// held before is gone.
    pub fn matching(&self, path: &ProjectPath, out: &mut Vec<u32>) {
        out.clear();
        let name = path.file_name();
        let mut node = Some(&self.root);
        let mut rest = Some(path.as_str());
        while let Some(here) = node {
            out.extend_from_slice(&here.below);
            let Some(below) = rest else {
                out.extend_from_slice(&here.exact);
                break;
            };
            here.look(below, name, out);
            if here.children.is_empty() {
                break;
            }
            let (next, after) =
                below.split_once('/').map_or((below, None), |(next, after)| (next, Some(after)));
            node = here.children.get(next).and_then(|child| self.others.get(*child));
            rest = after;
        }
        out.sort_unstable();
        out.dedup();
    }

    /// The node of a pattern's literal beginning (nothing: the root), made where there is none, and
    /// what follows that beginning.
    fn place(&mut self, pattern: Pattern) -> (Option<usize>, Pattern) {
        let mut place = None;
        let mut segments = pattern.into_iter();
        while let Some(Segment::Name(name)) = segments.as_slice().first() {
            let next = self.others.len();
            if let Some(node) = self.node_mut(place) {
                let child = *node.children.entry(name.as_str().into()).or_insert(next);
                if child == next {
                    self.others.push(Node::default());
                }
                place = Some(child);
            }
            segments.next();
        }
        (place, segments.collect())
    }

    fn node_mut(&mut self, place: Option<usize>) -> Option<&mut Node> {
        match place {
            None => Some(&mut self.root),
            Some(other) => self.others.get_mut(other),
        }
    }
}

impl Node {
    fn file(&mut self, key: Option<Key>, remainder: Remainder) {
        let map_and_text = match key {
            Some(Key::Name(name)) => Some((&mut self.names, name)),
            Some(Key::Extension(extension)) => Some((&mut self.extensions, extension)),
            Some(Key::Segment(segment)) => Some((&mut self.segments, segment)),
            None => None,
        };
        if let Some((map, text)) = map_and_text {
            let bucket = map.entry(text).or_default();
            if is_said_by_key(&remainder.segments) {
                bucket.sure.push(remainder.id);
            } else {
                bucket.unsure.push(remainder);
            }
            return;
        }
        match remainder.segments.as_slice() {
            [] => self.exact.push(remainder.id),
            [Segment::Any] => self.below.push(remainder.id),
            _ => self.others.push(remainder),
        }
    }

    /// Finds the patterns that match, apart from `exact` and `below`.
    fn look(&self, below: &str, name: &str, out: &mut Vec<u32>) {
        if !self.names.is_empty() {
            collect(self.names.get(name), below, out);
        }
        if !self.extensions.is_empty()
            && let Some((_, extension)) = name.rsplit_once('.')
        {
            collect(self.extensions.get(extension), below, out);
        }
        if !self.segments.is_empty() {
            for (number, segment) in below.split('/').enumerate() {
                let bucket = self.segments.get(segment);
                // Only the first of equal segments counts: a path of a thousand of them must not
                // compare the same patterns a thousand times.
                let first = |_: &&Bucket| !below.split('/').take(number).any(|it| it == segment);
                collect(bucket.filter(first), below, out);
            }
        }
        compare(&self.others, below, out);
    }
}

fn collect(bucket: Option<&Bucket>, below: &str, out: &mut Vec<u32>) {
    if let Some(bucket) = bucket {
        out.extend_from_slice(&bucket.sure);
        compare(&bucket.unsure, below, out);
    }
}

fn compare(remainders: &[Remainder], below: &str, out: &mut Vec<u32>) {
    let matching = remainders.iter().filter(|one| spans_path(&one.segments, below));
    out.extend(matching.map(|one| one.id));
}

/// All keys under which a remainder could be filed; the first of two equal ones is the cheaper.
fn keys(segments: &[Segment]) -> Vec<Key> {
    let mut keys = Vec::new();
    match segments.last() {
        Some(Segment::Name(name)) => keys.push(Key::Name(name.as_str().into())),
        Some(Segment::Wild(parts)) => keys.extend(extension(parts).map(Key::Extension)),
        Some(Segment::Any) | None => {}
    }
    let inner = segments.split_last().map_or(segments, |(_, inner)| inner);
    keys.extend(inner.iter().filter_map(|segment| match segment {
        Segment::Name(name) => Some(Key::Segment(name.as_str().into())),
        Segment::Any | Segment::Wild(_) => None,
    }));
    keys
}

/// What follows the last dot of every name that the parts span, where that is certain.
fn extension(parts: &[Part]) -> Option<Box<str>> {
    let tail = parts.rsplit(|part| part.literal().is_none()).next()?;
    let tail: String = tail.iter().filter_map(Part::literal).collect();
    tail.rsplit_once('.').map(|(_, extension)| extension.into())
}

/// Whether a remainder that has a key says no more than the key: `**/name`, `**/*.ext`, `**/dir/**`.
fn is_said_by_key(segments: &[Segment]) -> bool {
    match segments {
        [Segment::Any, Segment::Name(_)] => true,
        [Segment::Any, Segment::Name(_), Segment::Any] => true,
        [Segment::Any, Segment::Wild(parts)] => match parts.as_slice() {
            [Part::Run, Part::Char('.'), rest @ ..] => {
                rest.iter().all(|part| part.literal().is_some_and(|c| c != '.'))
            }
            _ => false,
        },
        _ => false,
    }
}
