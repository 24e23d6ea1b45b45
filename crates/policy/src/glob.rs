//! The patterns with which policies name files: one dialect, and sets of patterns that are asked
//! together.
//!
//! The dialect is `docs/policy-globs.md`, a table that the tests read. [`Glob::parse`] turns a text
//! into patterns without braces, [`Glob::matches`] lays them over a path, [`GlobIndex`] asks
//! thousands of them at once.
//!
//! **Invariant.** Whatever is not part of the dialect is an error, never a literal: a pattern that
//! another tool would read differently must not silently mean something here.
//!
//! **Invariant.** Both sides are in Unicode's composed form, so that the spelling of a name, in a
//! pattern or on the disk, never decides.
//!
//! **Invariant.** There is one matching loop. It compares each part of a pattern with each
//! character of a path at most once, so that no pattern takes longer than its length (its braces
//! expanded: at most 65,536 characters) times the length of the path (at most 4,096 bytes).

mod index;
mod parse;

use fluffy_base::ProjectPath;

pub use index::GlobIndex;
pub use parse::{GlobError, GlobProblem};

/// A set of paths of the project, as it is written in a policy.
///
/// ```
/// # use fluffy_base::ProjectPath;
/// # use fluffy_policy::Glob;
/// let secrets = Glob::parse("{secrets/**,*.env}")?;
/// assert!(secrets.matches(&ProjectPath::parse("secrets/.env.local")?));
/// assert!(secrets.matches(&ProjectPath::parse("deploy/.env")?));
/// assert!(!secrets.matches(&ProjectPath::parse("src/secrets.rs")?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    text: String,
    patterns: Vec<Pattern>,
}

impl Glob {
    /// Reads a pattern, or says what is wrong with it and what to write instead.
    pub fn parse(text: &str) -> Result<Self, GlobError> {
        let (text, patterns) = parse::parse(text)?;
        Ok(Self { text, patterns })
    }

    /// The pattern as it was written, in Unicode's composed form.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many patterns its braces stand for, at most 1,024; who reads many patterns may want to
    /// bound the sum.
    pub fn alternatives(&self) -> usize {
        self.patterns.len()
    }

    /// How much there is to compare with, braces expanded.
    pub(crate) fn parts(&self) -> usize {
        let of = |segment: &Segment| match segment {
            Segment::Any => 1,
            Segment::Name(name) => 1 + name.len() / 8,
            Segment::Wild(parts) => 1 + parts.len(),
        };
        self.patterns.iter().flatten().map(of).sum()
    }

    /// Whether it is a name and nothing but that: no wildcard, no alternative.
    pub(crate) fn is_literal(&self) -> bool {
        let is_name = |segment: &Segment| matches!(segment, Segment::Name(_));
        matches!(self.patterns.as_slice(), [pattern] if pattern.iter().all(is_name))
    }

    /// Whether the pattern names this path. A directory's name does not name what lies beneath it:
    /// `dir` is the directory alone, `dir/**` the directory and all its contents.
    pub fn matches(&self, path: &ProjectPath) -> bool {
        self.patterns.iter().any(|pattern| spans_path(pattern, path.as_str()))
    }

    /// The pattern for folded paths. One with a class stays as it is: what `[A-Z]` means in small
    /// letters is anybody's guess.
    pub(crate) fn folded(&self) -> Self {
        let small = self.text.to_lowercase();
        let changed = small != self.text && !self.text.contains('[');
        changed.then(|| Self::parse(&small).ok()).flatten().unwrap_or_else(|| self.clone())
    }

    /// Whether every path that `other` matches is matched here as well. A `true` is certain; a
    /// `false` may only mean that it takes more than one of the alternatives here, or more thought,
    /// to cover one of the other's.
    pub fn covers(&self, other: &Self) -> bool {
        other.patterns.iter().all(|theirs| self.patterns.iter().any(|ours| spans(ours, theirs)))
    }
}

/// A pattern without braces, from the root. Never empty, never two [`Segment::Any`] in a row.
type Pattern = Vec<Segment>;

/// What stands between two slashes of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    /// `**`: any number of segments.
    Any,
    /// One segment of exactly this name.
    Name(String),
    /// One segment that these parts span.
    Wild(Vec<Part>),
}

/// What stands for characters inside a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// `*`: any number of characters.
    Run,
    /// `?`: one character.
    One,
    /// `[…]`: one character of a set.
    Class(Class),
    /// One character, itself.
    Char(char),
}

/// A set of characters. The ranges are sorted, apart from each other, and at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Class {
    negated: bool,
    ranges: Vec<(char, char)>,
}

/// A part of a pattern that stands for one item of what it is laid over, or for a run of them.
trait Span {
    fn is_run(&self) -> bool;
}

/// Whether a part that is no run stands for every character or name that the item stands for.
trait Takes<Item> {
    fn takes(&self, item: Item) -> bool;
}

/// Whether the pattern, its runs stretched as needed, can be laid over the items from end to end.
///
/// A run takes as little as it can and is only stretched while no later one was reached: since all
/// other parts take exactly one item, an earlier run never has to be tried again. So each part meets
/// each item at most once.
fn spans<P, I>(pattern: &[P], items: I) -> bool
where
    P: Span + Takes<I::Item>,
    I: IntoIterator<IntoIter: Clone>,
{
    let (mut parts, mut rest) = (pattern, items.into_iter());
    let mut run = None;
    loop {
        let fits = match parts.split_first() {
            Some((part, after)) if part.is_run() => {
                if after.is_empty() {
                    return true;
                }
                run = Some((after, rest.clone()));
                parts = after;
                true
            }
            Some((part, after)) => {
                parts = after;
                rest.next().is_some_and(|item| part.takes(item))
            }
            None if rest.next().is_none() => return true,
            None => false,
        };
        if !fits {
            let Some((after, from)) = &mut run else { return false };
            if from.next().is_none() {
                return false;
            }
            (parts, rest) = (after, from.clone());
        }
    }
}

/// Whether segments of a pattern span a path, or what is left of one.
fn spans_path(pattern: &[Segment], path: &str) -> bool {
    spans(pattern, path.split('/'))
}

impl Span for Segment {
    fn is_run(&self) -> bool {
        *self == Self::Any
    }
}

impl Takes<&str> for Segment {
    fn takes(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Name(own) => own == name,
            Self::Wild(parts) => spans(parts, name.chars()),
        }
    }
}

impl Takes<&Self> for Segment {
    fn takes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Name(_) | Self::Wild(_), Self::Any) | (Self::Name(_), Self::Wild(_)) => false,
            (_, Self::Name(name)) => self.takes(name.as_str()),
            (Self::Wild(parts), Self::Wild(theirs)) => spans(parts, theirs),
        }
    }
}

impl Part {
    /// The character that it stands for, where that is one alone.
    fn literal(&self) -> Option<char> {
        match self {
            Self::Char(c) => Some(*c),
            Self::Run | Self::One | Self::Class(_) => None,
        }
    }
}

impl Span for Part {
    fn is_run(&self) -> bool {
        *self == Self::Run
    }
}

impl Takes<char> for Part {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Run | Self::One => true,
            Self::Class(class) => class.contains(c),
            Self::Char(own) => *own == c,
        }
    }
}

impl Takes<&Self> for Part {
    fn takes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Run, _) => true,
            (Self::One | Self::Class(_) | Self::Char(_), Self::Run) => false,
            (Self::One, _) => true,
            (_, Self::Char(c)) => self.takes(*c),
            (Self::Class(class), Self::Class(theirs)) => class.includes(theirs),
            (Self::Class(_) | Self::Char(_), Self::One) | (Self::Char(_), Self::Class(_)) => false,
        }
    }
}

impl Class {
    /// Sorts the ranges and joins those that overlap.
    fn new(negated: bool, mut ranges: Vec<(char, char)>) -> Self {
        ranges.sort_unstable();
        ranges.dedup_by(|next, kept| {
            let overlap = next.0 <= kept.1;
            if overlap {
                kept.1 = kept.1.max(next.1);
            }
            overlap
        });
        Self { negated, ranges }
    }

    fn contains(&self, c: char) -> bool {
        self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&c)) != self.negated
    }

    /// The only character of the set, if it is written as such.
    fn only(&self) -> Option<char> {
        match self.ranges.as_slice() {
            [(first, last)] if first == last && !self.negated => Some(*first),
            _ => None,
        }
    }

    /// Whether every character of `other` is in this set.
    fn includes(&self, other: &Self) -> bool {
        let within = |inner: &Self, outer: &Self| {
            inner.ranges.iter().all(|(first, last)| {
                outer.ranges.iter().any(|range| range.0 <= *first && *last <= range.1)
            })
        };
        match (self.negated, other.negated) {
            (false, false) => within(other, self),
            (true, true) => within(self, other),
            (false, true) => false,
            (true, false) => other.ranges.iter().all(|(first, last)| {
                self.ranges.iter().all(|range| *last < range.0 || range.1 < *first)
            }),
        }
    }
}

#[cfg(test)]
mod tests;
