//! Cleans what a tool gave back before a model reads it: secrets are masked, and what is too long is
//! cut.
//!
//! Secrets are the keys of well-known services (the list is in `fluffy_base`) and whatever the user's
//! [`SecretPattern`]s match. There is no guessing at long random words. A masked text is `***`; of a
//! well-known key the prefix stays. All patterns look at the same original text, so none hides a
//! secret from another by masking a part of it.
//!
//! A model is no terminal: line ends, tabs, colours and other control characters stay as they are.
//!
//! **Invariant.** Masking comes first and then cutting, so that no cut leaves half of a secret that
//! nothing recognises any more; and what was cut is looked at once more, so that no secret comes into
//! being where the pieces are joined.
//!
//! **Invariant.** A clean text stays as it is: cleaning twice is cleaning once.
//!
//! **Invariant.** No result is longer than its limit, the notice about what is missing included.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use fluffy_base::{Excerpt, MASK, known_secrets};
use regex::{Regex, RegexBuilder};

/// How many bytes count as one token.
///
/// There is no tokenizer here, as every model has its own. English prose has about four bytes to a
/// token and source text a little over three, so three is on the safe side of both: a result
/// counted this way is seldom longer for the model than it is here.
pub const BYTES_PER_TOKEN: usize = 3;

/// How long a result may be where nothing else is said.
pub const DEFAULT_RESULT_TOKENS: u32 = 4_000;

/// The shortest limit. It has room for the longest notice, of 70 bytes, also where a user's patterns
/// make it three times as long.
pub const MIN_RESULT_TOKENS: u32 = 100;

/// The longest limit, more than models read.
pub const MAX_RESULT_TOKENS: u32 = 10_000_000;

/// How many patterns a user may have.
pub const MAX_SECRET_PATTERNS: usize = 64;

/// How long a pattern may be, in bytes.
pub const MAX_PATTERN_BYTES: usize = 1_000;

/// How large a compiled pattern may be.
const COMPILED_BYTES: usize = 1 << 20;

/// How often a text is looked at until nothing is found in it any more.
const MAX_PASSES: usize = 4;

/// How many characters of a name an error repeats.
const SHOWN_CHARS: usize = 60;

/// A kind of secret that the user knows of.
///
/// The expression is one of the `regex` crate. One search takes linear time, but an expression that
/// reads far ahead and then settles for less (`x.*y|x`) makes many such searches.
///
/// It is matched against the whole text and not line by line: `.` stops at the end of a line and `^`
/// and `$` are the ends of the text, unless the expression says `(?s)` or `(?m)`; `\s` and `[^x]` do
/// match line ends.
/// The whole match is masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretPattern {
    /// What errors call it.
    pub name: String,
    /// The expression.
    pub regex: String,
}

/// Which part of a long result is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The beginning, as for a file that is read.
    Head,
    /// The end, as for a program that tells its failure last.
    Tail,
    /// Both; the middle is left out.
    Ends,
}

impl Keep {
    /// The word for it in a policy file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Tail => "tail",
            Self::Ends => "middle",
        }
    }

    /// The strategy by its name in a policy file: `head`, `tail` or `middle`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "head" => Some(Self::Head),
            "tail" => Some(Self::Tail),
            "middle" => Some(Self::Ends),
            _ => None,
        }
    }
}

/// How much of a result a model gets to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultLimit {
    /// How many tokens, of [`BYTES_PER_TOKEN`] bytes each.
    pub tokens: u32,
    /// Which part.
    pub keep: Keep,
}

impl ResultLimit {
    fn bytes(self) -> usize {
        usize::try_from(self.tokens).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN)
    }
}

/// The limits of all tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultLimits {
    /// By the tool's name (`fs.read`) or the beginning of it, whole words only (`fs`). The longest
    /// that fits holds.
    pub tools: BTreeMap<String, ResultLimit>,
    /// For every other tool.
    pub others: ResultLimit,
}

impl Default for ResultLimits {
    fn default() -> Self {
        let limit = |keep| ResultLimit { tokens: DEFAULT_RESULT_TOKENS, keep };
        let tools = [
            ("fs", Keep::Head),
            ("git", Keep::Head),
            ("search", Keep::Head),
            ("shell", Keep::Tail),
            ("test", Keep::Tail),
        ];
        Self {
            tools: tools.map(|(tool, keep)| (tool.to_owned(), limit(keep))).into(),
            others: limit(Keep::Ends),
        }
    }
}

impl ResultLimits {
    /// The limit that holds for a tool.
    pub fn of(&self, tool: &str) -> ResultLimit {
        let mut name = tool;
        loop {
            if let Some(limit) = self.tools.get(name) {
                return *limit;
            }
            match name.rsplit_once('.') {
                Some((shorter, _)) => name = shorter,
                None => return self.others,
            }
        }
    }
}

/// Why there is no such sanitiser.
///
/// The texts in it are shortened and escaped, so that a terminal may show them.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum SanitiseError {
    /// Too many patterns.
    #[error("there are {0} secret patterns; the most is {MAX_SECRET_PATTERNS}")]
    TooManyPatterns(usize),
    /// The pattern is too long.
    #[error("secret pattern `{0}` has more than {MAX_PATTERN_BYTES} bytes")]
    LongPattern(String),
    /// The pattern is no regular expression.
    #[error("secret pattern `{name}` is no regular expression: {problem}")]
    Malformed {
        /// Which pattern.
        name: String,
        /// What is wrong, and at which character.
        problem: String,
    },
    /// The pattern matches where there is nothing, which is everywhere.
    #[error("secret pattern `{0}` matches the empty text")]
    MatchesNothing(String),
    /// No text can match the pattern, so it protects from nothing.
    #[error("secret pattern `{0}` can never match")]
    NeverMatches(String),
    /// The pattern is short but stands for a huge machine.
    #[error("secret pattern `{0}` is too large once compiled")]
    LargePattern(String),
    /// A limit without sense.
    #[error(
        "the result limit of `{tool}` is {tokens} tokens; \
         it must be from {MIN_RESULT_TOKENS} to {MAX_RESULT_TOKENS}"
    )]
    Limit {
        /// Of which tool.
        tool: String,
        /// The limit.
        tokens: u32,
    },
}

/// What a model gets to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sanitised<'a> {
    /// The text; borrowed if there was nothing to clean.
    pub text: Cow<'a, str>,
    /// How many places were masked, also in what was then left out.
    pub masked: usize,
    /// What was left out, if anything.
    pub left_out: Option<LeftOut>,
}

/// The part of a result that was left out for its length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Where it stood in the masked text.
    pub bytes: Range<usize>,
    /// Its length in estimated tokens.
    pub tokens: usize,
    /// The length of the whole in estimated tokens.
    pub of_tokens: usize,
}

/// How many tokens a text of so many bytes has, roughly; see [`BYTES_PER_TOKEN`].
pub const fn estimated_tokens(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// The compiled patterns and the limits.
#[derive(Debug, Clone)]
pub struct Sanitiser {
    patterns: Vec<Regex>,
    limits: ResultLimits,
}

/// Masks the keys of well-known services, and cuts at the usual lengths.
impl Default for Sanitiser {
    fn default() -> Self {
        Self { patterns: Vec::new(), limits: ResultLimits::default() }
    }
}

impl Sanitiser {
    /// Compiles the patterns. One that is wrong is an error and is not left out.
    pub fn new(patterns: &[SecretPattern], limits: ResultLimits) -> Result<Self, SanitiseError> {
        if patterns.len() > MAX_SECRET_PATTERNS {
            return Err(SanitiseError::TooManyPatterns(patterns.len()));
        }
        let named = limits.tools.iter().map(|(tool, limit)| (tool.as_str(), limit));
        for (tool, limit) in named.chain([("every other tool", &limits.others)]) {
            if !(MIN_RESULT_TOKENS..=MAX_RESULT_TOKENS).contains(&limit.tokens) {
                return Err(SanitiseError::Limit { tool: shown(tool), tokens: limit.tokens });
            }
        }
        let patterns = patterns.iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Self { patterns, limits })
    }

    /// Masks the secrets of a tool's result, and cuts it to the tool's limit.
    pub fn text<'a>(&self, tool: &str, text: &'a str) -> Sanitised<'a> {
        let (text, masked) = self.masked(text);
        let limit = self.limits.of(tool);
        if text.len() <= limit.bytes() {
            return Sanitised { text, masked, left_out: None };
        }
        let (text, left_out) = self.cut(&text, limit);
        Sanitised { text: Cow::Owned(text), masked, left_out: Some(left_out) }
    }

    /// Masks the secrets of a text, whatever its length, and tells how many places that were.
    ///
    /// A mask can make a match of what stands beside it, so the text is looked at until nothing is
    /// found in it any more. Patterns that go on matching their own masks get the whole text
    /// withheld.
    pub fn masked<'a>(&self, text: &'a str) -> (Cow<'a, str>, usize) {
        let mut text = Cow::Borrowed(text);
        let mut count = 0;
        for _ in 0..MAX_PASSES {
            let secrets = self.secrets(&text);
            if secrets.is_empty() {
                return (text, count);
            }
            let next = masked_at(&text, &secrets);
            if next == *text {
                return (text, count);
            }
            count += secrets.len();
            text = Cow::Owned(next);
        }
        (Cow::Borrowed(MASK), count)
    }

    /// Where the secrets stand, in order, with at least a byte between each two.
    fn secrets(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<_> = known_secrets(text).collect();
        for pattern in &self.patterns {
            found.extend(pattern.find_iter(text).map(|found| found.range()));
        }
        found.sort_unstable_by_key(|range| range.start);
        // Joined before it is widened, so that a long row of stars is not walked once for each.
        let found = apart(found.into_iter());
        apart(found.into_iter().map(|range| with_stars(text, range)))
    }

    /// The text in the limit. Where joining the pieces made a secret whose mask no longer fits,
    /// nothing but the notice is left.
    fn cut(&self, text: &str, limit: ResultLimit) -> (String, LeftOut) {
        let (pieces, left_out) = joined(text, limit.keep, too_much(text, limit));
        let (clean, _) = self.masked(&pieces);
        if clean.len() <= limit.bytes() {
            return (clean.into_owned(), left_out);
        }
        let (notice, left_out) = joined(text, limit.keep, 0..text.len());
        (self.masked(&notice).0.into_owned(), left_out)
    }
}

/// The part of a text that must go so that the rest and a notice are in the limit.
fn too_much(text: &str, limit: ResultLimit) -> Range<usize> {
    let whole = estimated_tokens(text.len());
    let longest = notice(whole, whole).len() + "\n\n".len();
    let room = limit.bytes().saturating_sub(longest);
    let (head, tail) = match limit.keep {
        Keep::Head => (room, 0),
        Keep::Tail => (0, room),
        Keep::Ends => (room / 2, room / 2),
    };
    let end = text.ceil_char_boundary(text.len().saturating_sub(tail));
    text.floor_char_boundary(head)..end
}

/// The text with a notice instead of what is left out.
fn joined(text: &str, keep: Keep, bytes: Range<usize>) -> (String, LeftOut) {
    let (tokens, of_tokens) = (estimated_tokens(bytes.len()), estimated_tokens(text.len()));
    let head = text.get(..bytes.start).unwrap_or_default();
    let tail = text.get(bytes.end..).unwrap_or_default();
    let notice = notice(tokens, of_tokens);
    let joined = match keep {
        Keep::Head => format!("{head}\n{notice}"),
        Keep::Tail => format!("{notice}\n{tail}"),
        Keep::Ends => format!("{head}\n{notice}\n{tail}"),
    };
    (joined, LeftOut { bytes, tokens, of_tokens })
}

fn notice(tokens: usize, of_tokens: usize) -> String {
    format!("… {tokens} of {of_tokens} tokens left out …")
}

/// Ranges in the order of their beginnings, with those that touch joined.
fn apart(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut apart: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match apart.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            Some(_) | None => apart.push(range),
        }
    }
    apart
}

/// The range and the stars on both sides of it, so that masks never pile up.
fn with_stars(text: &str, range: Range<usize>) -> Range<usize> {
    let before = text.get(..range.start).unwrap_or_default();
    let after = text.get(range.end..).unwrap_or_default();
    let start = before.trim_end_matches('*').len();
    start..text.len() - after.trim_start_matches('*').len()
}

fn masked_at(text: &str, secrets: &[Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = 0;
    for Range { start, end } in secrets {
        out.push_str(text.get(rest..*start).unwrap_or_default());
        out.push_str(MASK);
        rest = *end;
    }
    out.push_str(text.get(rest..).unwrap_or_default());
    out
}

fn compile(pattern: &SecretPattern) -> Result<Regex, SanitiseError> {
    let name = shown(&pattern.name);
    if pattern.regex.len() > MAX_PATTERN_BYTES {
        return Err(SanitiseError::LongPattern(name));
    }
    let parsed = regex_syntax::parse(&pattern.regex);
    match parsed.map(|parsed| parsed.properties().minimum_len()) {
        Err(error) => return Err(SanitiseError::Malformed { name, problem: problem(&error) }),
        Ok(None) => return Err(SanitiseError::NeverMatches(name)),
        Ok(Some(0)) => return Err(SanitiseError::MatchesNothing(name)),
        Ok(Some(_)) => {}
    }
    let compiled = RegexBuilder::new(&pattern.regex).size_limit(COMPILED_BYTES).build();
    // The syntax was right a moment ago, so what is left is the size.
    compiled.map_err(|_| SanitiseError::LargePattern(name))
}

/// The problem on one line; the library draws a picture of several.
fn problem(error: &regex_syntax::Error) -> String {
    let (kind, at) = match error {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), error.span().start),
        regex_syntax::Error::Translate(error) => (error.kind().to_string(), error.span().start),
        other => return shown(&other.to_string()),
    };
    format!("{kind} (character {})", at.column)
}

fn shown(text: &str) -> String {
    Excerpt::new(text, SHOWN_CHARS).to_string()
}

#[cfg(test)]
mod tests;
