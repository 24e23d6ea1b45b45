//! Bytes to a syntax tree, or a finding that says why not.
//!
//! **Invariant.** The parser sees only text that Python reads the same way, and never a nesting that its stack, ours or
//! Python's own could not bear: depth is counted on the tokens, which takes no recursion.

use ruff_python_ast::token::TokenKind;
use ruff_python_ast::{Expr, ModModule, Stmt};
use ruff_python_parser::{Mode, Parsed, lexer, parse_expression, parse_module};
use ruff_text_size::{Ranged, TextSize};

use super::report::shown;
use super::text::{self, Lines};
use crate::{Finding, SourceFile};

/// The most brackets in each other. Python's own limit is 200.
const MAX_BRACKETS: usize = 60;
/// The deepest indentation. Python's own limit is 100.
const MAX_INDENT: usize = 30;
/// The most operators and keywords on the way to one value.
const MAX_OPERATORS: usize = 200;

/// A file that could be read.
#[derive(Debug)]
pub(super) struct Module<'a> {
    /// The file.
    pub(super) file: &'a SourceFile,
    /// Its text, without a byte order mark.
    pub(super) text: &'a str,
    lines: Lines,
    parsed: Parsed<ModModule>,
}

impl<'a> Module<'a> {
    /// Reads a file.
    pub(super) fn parse(file: &'a SourceFile) -> Result<Self, Finding> {
        let refuse = |line, rule: &str, message| Finding {
            file: file.path.clone(),
            line,
            rule: rule.to_owned(),
            message,
        };
        let text = text::decode(&file.bytes)
            .map_err(|odd| refuse(odd.line, "unreadable", odd.why.to_owned()))?;
        let lines = Lines::of(text);
        if let Some((rule, why)) = unfit(text) {
            return Err(refuse(None, rule, why.to_owned()));
        }
        let parsed = parse_module(text).map_err(|error| {
            let line = lines.line(error.location.start());
            refuse(Some(line), "syntax", shown(&error.error.to_string()))
        })?;
        Ok(Self { file, text, lines, parsed })
    }

    /// Its statements.
    pub(super) fn body(&self) -> &[Stmt] {
        &self.parsed.syntax().body
    }

    /// The line of something in it, from one.
    pub(super) fn line(&self, of: &impl Ranged) -> u32 {
        self.line_at(of.start())
    }

    /// The line of a place in it, from one.
    pub(super) fn line_at(&self, place: TextSize) -> u32 {
        self.lines.line(place)
    }

    /// Its comments, with their lines.
    pub(super) fn comments(&self) -> impl Iterator<Item = (u32, &str)> {
        self.tokens(TokenKind::Comment)
    }

    /// Its names, with their lines, as they are written.
    pub(super) fn names(&self) -> impl Iterator<Item = (u32, &str)> {
        self.tokens(TokenKind::Name)
    }

    fn tokens(&self, kind: TokenKind) -> impl Iterator<Item = (u32, &str)> {
        let tokens = self.parsed.tokens().iter().filter(move |token| token.kind() == kind);
        tokens.filter_map(|token| {
            let range = token.range();
            let text = self.text.get(range.start().to_usize()..range.end().to_usize())?;
            Some((self.line_at(range.start()), text))
        })
    }
}

/// The expression that a string holds, if Python would read one.
pub(super) fn expression(text: &str) -> Option<Expr> {
    if text::odd(text).is_some() || unfit(text).is_some() {
        return None;
    }
    parse_expression(text).ok().map(Parsed::into_expr)
}

/// Why a text is nothing for the parser: nested too deeply, or no sequence of tokens at all. What the parser would make
/// of the latter cannot be counted beforehand.
fn unfit(text: &str) -> Option<(&'static str, &'static str)> {
    let mut lexer = lexer::lex(text, Mode::Module);
    let mut depth = Depth::default();
    loop {
        match lexer.next_token() {
            TokenKind::EndOfFile => return None,
            TokenKind::Unknown => {
                return Some((
                    "syntax",
                    "its brackets, texts or blocks do not end, or it has a sign that Python does not know",
                ));
            }
            token => depth.take(token),
        }
        if let Some(why) = depth.exceeded() {
            return Some(("too_deep", why));
        }
    }
}

/// How deep the tree can be at most, judged by the tokens so far.
///
/// A comma ends what stands on the way to a value, in all but one place: the parameters of a `lambda`, so these are
/// counted by themselves until their bracket closes.
#[derive(Debug, Default)]
struct Depth {
    indent: usize,
    levels: Vec<(usize, usize)>,
    lambdas: usize,
    operators: usize,
    below: usize,
}

impl Depth {
    fn take(&mut self, token: TokenKind) {
        match token {
            TokenKind::Indent => self.indent += 1,
            TokenKind::Dedent => self.indent = self.indent.saturating_sub(1),
            TokenKind::Newline | TokenKind::Semi if self.levels.is_empty() => self.restart(),
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => self.open(),
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => self.close(),
            TokenKind::Comma => self.operators = 0,
            TokenKind::Lambda => self.lambdas += 1,
            TokenKind::Name
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Complex
            | TokenKind::String
            | TokenKind::Comment
            | TokenKind::FStringMiddle
            | TokenKind::FStringEnd
            | TokenKind::Newline
            | TokenKind::NonLogicalNewline => {}
            _ => self.operators += 1,
        }
    }

    fn restart(&mut self) {
        self.lambdas = 0;
        self.operators = 0;
    }

    fn open(&mut self) {
        self.below += self.lambdas + self.operators;
        self.levels.push((self.lambdas, self.operators));
        self.restart();
    }

    /// What is behind a closed bracket goes on where the bracket was opened, one call or index deeper.
    fn close(&mut self) {
        if let Some((lambdas, operators)) = self.levels.pop() {
            self.below = self.below.saturating_sub(lambdas + operators);
            self.lambdas = lambdas;
            self.operators = operators + 1;
        }
    }

    fn exceeded(&self) -> Option<&'static str> {
        if self.levels.len() > MAX_BRACKETS {
            return Some("its brackets are nested too deeply");
        }
        if self.indent > MAX_INDENT {
            return Some("its blocks are nested too deeply");
        }
        (self.below + self.lambdas + self.operators > MAX_OPERATORS)
            .then_some("an expression in it is too long to be read safely")
    }
}
