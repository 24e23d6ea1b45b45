//! From the text of a pattern to its segments: characters → tokens → alternatives → segments.
//!
//! **Invariant.** Every error knows the place in the text as it was given, also where composing
//! changed the text.
//!
//! **Invariant.** Nothing is expanded before it is known how large it will be.

use std::iter;

use fluffy_base::{PathError, ProjectPath, normalised};
use unicode_normalization::char::{canonical_combining_class, decompose_canonical};
use unicode_normalization::{IsNormalized, is_nfc_quick};

use super::{Class, Part, Pattern, Segment};

/// How many bytes a pattern may have, as many as a path.
const MAX_BYTES: usize = 4096;
/// For how many patterns braces may stand.
const MAX_ALTERNATIVES: usize = 1024;
/// How many characters those patterns may have together.
const MAX_EXPANDED: usize = 65_536;

/// Why a text is no pattern.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("{problem}")]
pub struct GlobError {
    /// Where in the text: the offset in bytes of the character to blame, or the text's length where
    /// something is missing at its end.
    pub at: usize,
    /// What is wrong there.
    pub problem: GlobProblem,
}

/// What is wrong with a pattern, and what to write instead.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum GlobProblem {
    /// There is no text.
    #[error("pattern is empty; write `**` for every path")]
    Empty,
    /// An empty alternative leaves nothing, such as `{,a}`.
    #[error("one of the alternatives leaves an empty pattern; take the empty alternative out")]
    EmptyAlternative,
    /// More than 4096 bytes.
    #[error("pattern has {0} bytes, of which {MAX_BYTES} are allowed; write several patterns")]
    Long(usize),
    /// Braces that multiply.
    #[error(
        "braces stand for more than {MAX_ALTERNATIVES} patterns; write `*` or several patterns"
    )]
    TooManyAlternatives,
    /// Braces that multiply long texts.
    #[error(
        "braces stand for patterns of more than {MAX_EXPANDED} characters together; write `*` or \
         several patterns"
    )]
    TooLarge,
    /// A control character or one that shows nothing.
    #[error("pattern has the invisible character U+{0:04X}, which no path has; take it out")]
    Invisible(u32),
    /// A combining mark that has no letter of its own to join.
    #[error(
        "the combining mark U+{0:04X} stands after a special character or in a class; write it \
         after the letter that it belongs to"
    )]
    LoneMark(u32),
    /// A separator to some, an escape to others.
    #[error(
        "pattern has a back slash; write `/` between segments, and a class such as `[*]` for a \
         character that is special"
    )]
    BackSlash,
    /// Starts with `!`.
    #[error(
        "pattern starts with `!`; write a rule with the opposite effect, or `**/!name` for a name \
         with that sign"
    )]
    Negated,
    /// `+(`, `@(`, `!(`, `*(` or `?(`.
    #[error(
        "`{0}(` starts an extended glob, which this dialect lacks; write `{{a,b}}` for a choice, or \
         `[(]` for the bracket itself"
    )]
    Extended(char),
    /// Ends with `/`.
    #[error("pattern ends with `/`; write `dir/**` for a directory and everything beneath it")]
    TrailingSlash,
    /// Two slashes in a row.
    #[error("pattern has an empty segment; write one `/` between two segments")]
    EmptySegment,
    /// `.` or `..`.
    #[error("no path has a segment `{0}`; write the path as it is seen from the project's root")]
    DotSegment(String),
    /// `a**`, or three stars.
    #[error("`**` is a segment of its own; write `*` inside a segment, `**/` or `/**` between")]
    InnerDoubleStar,
    /// A class that does not end before its segment does.
    #[error("`[` is not closed in its segment; write `]`, or `[[]` for the bracket itself")]
    UnclosedClass,
    /// A `]` outside of any class.
    #[error("`]` closes nothing; write `[]]` for the bracket itself")]
    StrayBracket,
    /// `[z-a]`.
    #[error("the range `{0}-{1}` is reversed; write `{1}-{0}`")]
    ReversedRange(char, char),
    /// A dash that is neither between two characters nor at an end of its class.
    #[error("`-` stands after a range; write it first or last in its class")]
    StrayDash,
    /// `[^a]`.
    #[error(
        "`[^` means different things to different tools; write `[!` for all but these, or put `^` last"
    )]
    Caret,
    /// `[[:alpha:]]`.
    #[error("`[:` starts a named class, which this dialect lacks; write ranges such as `[a-z]`")]
    NamedClass,
    /// A brace that is never closed.
    #[error("`{{` is not closed; write `}}`, or `[{{]` for the brace itself")]
    UnclosedBrace,
    /// A `}` outside of any braces.
    #[error("`}}` closes nothing; write `[}}]` for the brace itself")]
    StrayBrace,
    /// `{a}`, `{}` or `{1..9}`.
    #[error(
        "these braces offer no choice; write `{{a,b}}`, or `[{{]` and `[}}]` for the braces \
         themselves"
    )]
    NoChoice,
    /// A segment that no path can have.
    #[error("no path can have this segment: {0}; take it out")]
    NeverMatches(PathError),
}

impl GlobProblem {
    fn at(self, at: usize) -> GlobError {
        GlobError { at, problem: self }
    }
}

/// The composed text, and the patterns without braces that it stands for.
pub(super) fn parse(text: &str) -> Result<(String, Vec<Pattern>), GlobError> {
    if text.is_empty() {
        return Err(GlobProblem::Empty.at(0));
    }
    if text.len() > MAX_BYTES {
        return Err(GlobProblem::Long(text.len()).at(MAX_BYTES));
    }
    let chars = composed(text);
    let tokens = tokens(&chars)?;
    measure(&tokens)?;
    let patterns =
        expand(&tokens).iter().map(|tokens| pattern(tokens)).collect::<Result<_, _>>()?;
    Ok((chars.into_iter().map(|(_, c)| c).collect(), patterns))
}

/// The characters of the composed text, each with its place in the text as given.
///
/// Composing goes cluster by cluster: no character ever joins one before its cluster.
fn composed(text: &str) -> Vec<(usize, char)> {
    let starts = text.char_indices().filter(|(_, c)| !joins(*c)).map(|(at, _)| at);
    let ends = starts.clone().filter(|at| *at > 0).chain([text.len()]);
    let clusters = iter::once(0).chain(starts.filter(|at| *at > 0)).zip(ends);
    let mut chars = Vec::with_capacity(text.len());
    for (start, end) in clusters {
        let cluster = normalised(text.get(start..end).unwrap_or_default());
        chars.extend(cluster.chars().map(|c| (start, c)));
    }
    chars
}

/// Whether a character may join the one before it when a text is composed, or change places with it.
fn joins(c: char) -> bool {
    if c.is_ascii() {
        return false;
    }
    let mut first = None;
    decompose_canonical(c, |part| {
        first.get_or_insert(part);
    });
    first.is_some_and(|part| {
        canonical_combining_class(part) != 0 || is_nfc_quick(iter::once(part)) != IsNormalized::Yes
    })
}

/// A sign of the dialect and its place in the text.
#[derive(Debug)]
struct Token {
    at: usize,
    sign: Sign,
}

#[derive(Debug, PartialEq)]
enum Sign {
    Char(char),
    Class(Class),
    One,
    Star,
    DoubleStar,
    Slash,
    Open,
    Comma,
    Close,
}

fn tokens(chars: Chars<'_>) -> Result<Vec<Token>, GlobError> {
    let mut tokens = Vec::new();
    let mut open = Braces::default();
    let mut rest = chars;
    while let Some((&(at, c), after)) = rest.split_first() {
        rest = after;
        check_visible(at, c)?;
        let sign = match c {
            '\\' => return Err(GlobProblem::BackSlash.at(at)),
            ']' => return Err(GlobProblem::StrayBracket.at(at)),
            '[' => {
                let (class, after) = class(at, rest)?;
                rest = after;
                Sign::Class(class)
            }
            '*' => match rest.split_first() {
                Some(((_, '*'), after)) => {
                    rest = after;
                    Sign::DoubleStar
                }
                _ => Sign::Star,
            },
            '?' => Sign::One,
            '/' => Sign::Slash,
            '{' | ',' | '}' => open.sign(at, c)?,
            _ => Sign::Char(c),
        };
        if !matches!(sign, Sign::Char(_) | Sign::Slash) {
            check_no_mark(rest)?;
        }
        tokens.push(Token { at, sign });
    }
    open.end()?;
    Ok(tokens)
}

/// The braces that are open: where, and whether they have a comma yet.
#[derive(Default)]
struct Braces(Vec<(usize, bool)>);

impl Braces {
    /// What a brace or a comma means here.
    fn sign(&mut self, at: usize, c: char) -> Result<Sign, GlobError> {
        match (c, self.0.last_mut()) {
            ('{', _) => {
                self.0.push((at, false));
                Ok(Sign::Open)
            }
            (',', Some((_, comma))) => {
                *comma = true;
                Ok(Sign::Comma)
            }
            ('}', None) => Err(GlobProblem::StrayBrace.at(at)),
            ('}', Some((open, false))) => Err(GlobProblem::NoChoice.at(*open)),
            ('}', Some((_, true))) => {
                self.0.pop();
                Ok(Sign::Close)
            }
            _ => Ok(Sign::Char(c)),
        }
    }

    fn end(self) -> Result<(), GlobError> {
        self.0.last().map_or(Ok(()), |(at, _)| Err(GlobProblem::UnclosedBrace.at(*at)))
    }
}

/// Paths say which characters nobody sees, so that no pattern waits for one that never comes.
fn check_visible(at: usize, c: char) -> Result<(), GlobError> {
    if matches!(c, ' '..='~') {
        return Ok(());
    }
    match ProjectPath::parse(&format!("x{c}")) {
        Err(PathError::Invisible { code, .. }) => Err(GlobProblem::Invisible(code).at(at)),
        _ => Ok(()),
    }
}

/// A mark after a special sign would join whatever the sign stands for, and never match.
fn check_no_mark(rest: Chars<'_>) -> Result<(), GlobError> {
    match rest.first() {
        Some((at, c)) if joins(*c) => Err(GlobProblem::LoneMark((*c).into()).at(*at)),
        _ => Ok(()),
    }
}

type Chars<'a> = &'a [(usize, char)];

/// Reads a class whose `[` at `open` is already taken off; what follows it is the second value.
fn class(open: usize, chars: Chars<'_>) -> Result<(Class, Chars<'_>), GlobError> {
    let (negated, mut rest) = match chars.split_first() {
        Some(((_, '!'), after)) => (true, after),
        Some(((at, '^'), _)) => return Err(GlobProblem::Caret.at(*at)),
        _ => (false, chars),
    };
    let mut ranges = Vec::new();
    let mut after_range = false;
    loop {
        let (&(at, c), after) =
            rest.split_first().ok_or_else(|| GlobProblem::UnclosedClass.at(open))?;
        if c == ']' && !ranges.is_empty() {
            return Ok((Class::new(negated, ranges), after));
        }
        check_member(open, at, c)?;
        let next: Vec<char> = after.iter().take(2).map(|(_, c)| *c).collect();
        if c == '[' && next.first() == Some(&':') {
            return Err(GlobProblem::NamedClass.at(at));
        }
        if c == '-' && after_range && next.first() != Some(&']') {
            return Err(GlobProblem::StrayDash.at(at));
        }
        (after_range, rest) = match (next.as_slice(), after) {
            (['-', last], [_, (at_last, _), end @ ..]) if *last != ']' => {
                check_member(open, *at_last, *last)?;
                if c > *last {
                    return Err(GlobProblem::ReversedRange(c, *last).at(at));
                }
                ranges.push((c, *last));
                (true, end)
            }
            _ => {
                ranges.push((c, c));
                (false, after)
            }
        };
    }
}

fn check_member(open: usize, at: usize, c: char) -> Result<(), GlobError> {
    match c {
        '/' => Err(GlobProblem::UnclosedClass.at(open)),
        '\\' => Err(GlobProblem::BackSlash.at(at)),
        c if joins(c) => Err(GlobProblem::LoneMark(c.into()).at(at)),
        c => check_visible(at, c),
    }
}

/// How many patterns a stretch of text stands for, and how many tokens they have together.
#[derive(Clone, Copy)]
struct Extent {
    patterns: usize,
    tokens: usize,
}

impl Extent {
    /// No pattern.
    const NONE: Self = Self { patterns: 0, tokens: 0 };
    /// The empty pattern.
    const EMPTY: Self = Self { patterns: 1, tokens: 0 };
    /// A pattern of one token.
    const ONE: Self = Self { patterns: 1, tokens: 1 };

    fn or(self, other: Self) -> Self {
        Self { patterns: self.patterns + other.patterns, tokens: self.tokens + other.tokens }
    }

    /// Cannot overflow: both have passed [`Extent::check`].
    fn then(self, other: Self) -> Self {
        let tokens = self.tokens * other.patterns + other.tokens * self.patterns;
        Self { patterns: self.patterns * other.patterns, tokens }
    }

    fn check(self, at: usize) -> Result<Self, GlobError> {
        if self.patterns > MAX_ALTERNATIVES {
            Err(GlobProblem::TooManyAlternatives.at(at))
        } else if self.tokens > MAX_EXPANDED {
            Err(GlobProblem::TooLarge.at(at))
        } else {
            Ok(self)
        }
    }
}

/// Refuses what would expand to too much, without expanding it. As everything is there at least once
/// in the end, whatever is too large on the way is too large in the end.
fn measure(tokens: &[Token]) -> Result<(), GlobError> {
    // Of the innermost open braces: the alternatives before this one, and this one so far.
    let (mut before, mut here) = (Extent::NONE, Extent::EMPTY);
    let mut outer = Vec::new();
    for token in tokens {
        match token.sign {
            Sign::Open => {
                outer.push((before, here));
                (before, here) = (Extent::NONE, Extent::EMPTY);
            }
            Sign::Comma => (before, here) = (before.or(here).check(token.at)?, Extent::EMPTY),
            Sign::Close => {
                let inside = before.or(here).check(token.at)?;
                (before, here) = outer.pop().unwrap_or((Extent::NONE, Extent::EMPTY));
                here = here.then(inside).check(token.at)?;
            }
            _ => here = here.then(Extent::ONE).check(token.at)?,
        }
    }
    Ok(())
}

type Alternatives<'a> = Vec<Vec<&'a Token>>;

/// The alternatives that braces stand for, in the order of the text.
fn expand(tokens: &[Token]) -> Alternatives<'_> {
    let (mut before, mut here): (Alternatives<'_>, _) = (Vec::new(), vec![Vec::new()]);
    let mut outer = Vec::new();
    for token in tokens {
        match token.sign {
            Sign::Open => {
                outer.push((before, here));
                (before, here) = (Vec::new(), vec![Vec::new()]);
            }
            Sign::Comma => {
                before.append(&mut here);
                here.push(Vec::new());
            }
            Sign::Close => {
                before.append(&mut here);
                let inside = before;
                (before, here) = outer.pop().unwrap_or_default();
                let join = |head: &Vec<_>, tail: &Vec<_>| [head.as_slice(), tail].concat();
                here = here
                    .iter()
                    .flat_map(|head| inside.iter().map(|tail| join(head, tail)))
                    .collect();
            }
            _ => here.iter_mut().for_each(|alternative| alternative.push(token)),
        }
    }
    here
}

/// Reads an alternative from its first token to its last.
fn pattern(tokens: &[&Token]) -> Result<Pattern, GlobError> {
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
        return Err(GlobProblem::EmptyAlternative.at(0));
    };
    if first.sign == Sign::Char('!') {
        return Err(GlobProblem::Negated.at(first.at));
    }
    if last.sign == Sign::Slash {
        return Err(GlobProblem::TrailingSlash.at(last.at));
    }
    for pair in tokens.windows(2) {
        check_pair(pair)?;
    }
    let anchored = tokens.iter().any(|token| token.sign == Sign::Slash);
    let from_root = match tokens {
        [first, rest @ ..] if first.sign == Sign::Slash => rest,
        _ => tokens,
    };
    let mut segments = if anchored { Vec::new() } else { vec![Segment::Any] };
    for tokens in from_root.split(|token| token.sign == Sign::Slash) {
        segments.push(segment(tokens)?);
    }
    segments.dedup_by(|next, kept| *next == Segment::Any && *kept == Segment::Any);
    Ok(if matches_everything(&segments) { vec![Segment::Any] } else { segments })
}

/// Refuses what may not stand side by side.
fn check_pair(pair: &[&Token]) -> Result<(), GlobError> {
    let [left, right] = pair else { return Ok(()) };
    let extended = |sign| Err(GlobProblem::Extended(sign).at(left.at));
    match (&left.sign, &right.sign) {
        (Sign::Char(sign @ ('+' | '@' | '!')), Sign::Char('(')) => extended(*sign),
        (Sign::Star, Sign::Char('(')) => extended('*'),
        (Sign::One, Sign::Char('(')) => extended('?'),
        (Sign::Slash, Sign::Slash) => Err(GlobProblem::EmptySegment.at(right.at)),
        (Sign::Star, Sign::Star) => Err(GlobProblem::InnerDoubleStar.at(left.at)),
        (Sign::DoubleStar, right) if *right != Sign::Slash => {
            Err(GlobProblem::InnerDoubleStar.at(left.at))
        }
        (left, Sign::DoubleStar) if *left != Sign::Slash => {
            Err(GlobProblem::InnerDoubleStar.at(right.at))
        }
        _ => Ok(()),
    }
}

/// `**`, `*/**` and `**/*` are the same: no path is without segments.
fn matches_everything(segments: &[Segment]) -> bool {
    let star = Segment::Wild(vec![Part::Run]);
    match segments {
        [Segment::Any] => true,
        [Segment::Any, one] | [one, Segment::Any] => *one == star,
        [Segment::Any, one, Segment::Any] => *one == star,
        _ => false,
    }
}

/// Reads what stands between two slashes.
fn segment(tokens: &[&Token]) -> Result<Segment, GlobError> {
    let parts: Vec<Part> = tokens.iter().filter_map(|token| part(&token.sign)).collect();
    if parts.is_empty() {
        // Empty segments were refused as pairs of slashes, so this is `**` alone.
        return Ok(Segment::Any);
    }
    let at = tokens.first().map_or(0, |token| token.at);
    let literal: String = parts.iter().map_while(Part::literal).collect();
    check_possible(&literal).map_err(|why| GlobProblem::NeverMatches(why).at(at))?;
    if parts.iter().any(|part| part.literal().is_none()) {
        return Ok(Segment::Wild(parts));
    }
    if matches!(literal.as_str(), "." | "..") {
        return Err(GlobProblem::DotSegment(literal).at(at));
    }
    Ok(Segment::Name(literal))
}

fn part(sign: &Sign) -> Option<Part> {
    match sign {
        Sign::Char(c) => Some(Part::Char(*c)),
        Sign::Class(class) => {
            Some(class.only().map_or_else(|| Part::Class(class.clone()), Part::Char))
        }
        Sign::One => Some(Part::One),
        Sign::Star => Some(Part::Run),
        Sign::DoubleStar | Sign::Slash | Sign::Open | Sign::Comma | Sign::Close => None,
    }
}

/// Refuses the beginning of a segment with which no path has one, whatever follows.
fn check_possible(beginning: &str) -> Result<(), PathError> {
    match ProjectPath::parse(beginning) {
        Err(why @ (PathError::Home(_) | PathError::Drive(_) | PathError::LongComponent(_))) => {
            Err(why)
        }
        _ => Ok(()),
    }
}
