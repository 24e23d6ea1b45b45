//! Cuts Rust source into words and marks, and drops comments and the inside of literals.
//!
//! It knows just enough of the language that a brace in a string, or a test in a comment, is not taken
//! for one.

/// A piece of source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// A name or a keyword; `r#name` is `name`.
    Word(&'a str),
    /// Any other character.
    Mark(char),
    /// A string, a character, a number or a lifetime.
    Literal,
}

/// The tokens of a source text, in order.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut scanner = Scanner { rest: text };
    std::iter::from_fn(|| scanner.next()).collect()
}

struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blank();
        let first = self.rest.chars().next()?;
        if first == '_' || first.is_alphanumeric() {
            return Some(self.word());
        }
        self.advance(first.len_utf8());
        match first {
            '"' => self.quoted('"'),
            '\'' => self.character_or_lifetime(),
            mark => return Some(Token::Mark(mark)),
        }
        Some(Token::Literal)
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn skip_blank(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            if self.rest.starts_with("//") {
                self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                self.skip_block_comment();
            } else {
                return;
            }
        }
    }

    /// Block comments nest.
    fn skip_block_comment(&mut self) {
        let mut depth = 0_usize;
        loop {
            if self.rest.starts_with("/*") {
                depth += 1;
                self.advance(2);
            } else if self.rest.starts_with("*/") {
                depth -= 1;
                self.advance(2);
            } else {
                self.advance(self.rest.chars().next().map_or(0, char::len_utf8));
            }
            if depth == 0 || self.rest.is_empty() {
                return;
            }
        }
    }

    /// A name, a number, or a literal with a prefix such as `b"…"` or `r#"…"#`.
    fn word(&mut self) -> Token<'a> {
        let word = self.name();
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return Token::Literal;
        }
        if matches!(word, "r" | "br" | "cr") {
            let after_hashes = self.rest.trim_start_matches('#');
            let hashes = self.rest.len() - after_hashes.len();
            if after_hashes.starts_with('"') {
                self.advance(hashes + 1);
                self.raw(hashes);
                return Token::Literal;
            }
            if word == "r" && hashes == 1 {
                self.advance(1);
                return Token::Word(self.name());
            }
        }
        if matches!(word, "b" | "c") && self.rest.starts_with(['"', '\'']) {
            let quote = if self.rest.starts_with('"') { '"' } else { '\'' };
            self.advance(1);
            self.quoted(quote);
            return Token::Literal;
        }
        Token::Word(word)
    }

    fn name(&mut self) -> &'a str {
        let rest = self.rest;
        let end = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
        self.advance(end);
        rest.get(..end).unwrap_or_default()
    }

    /// The rest of a literal that ends at `quote` and has escapes.
    fn quoted(&mut self, quote: char) {
        while let Some(at) = self.rest.find([quote, '\\']) {
            let escape = self.rest.get(at..).is_some_and(|rest| rest.starts_with('\\'));
            self.advance(at + 1);
            if !escape {
                return;
            }
            self.advance(self.rest.chars().next().map_or(0, char::len_utf8));
        }
        self.rest = "";
    }

    /// The rest of a raw string that began with this many hashes.
    fn raw(&mut self, hashes: usize) {
        let end = format!("\"{}", "#".repeat(hashes));
        let at = self.rest.find(&end).map_or(self.rest.len(), |at| at + end.len());
        self.advance(at);
    }

    fn character_or_lifetime(&mut self) {
        let mut following = self.rest.chars();
        if following.next() == Some('\\') || following.next() == Some('\'') {
            self.quoted('\'');
        } else {
            self.name();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let shown = tokens(text).into_iter().map(|token| match token {
            Token::Word(word) => word.to_owned(),
            Token::Mark(mark) => mark.to_string(),
            Token::Literal => "_".to_owned(),
        });
        assert_eq!(shown.collect::<Vec<_>>().join(" "), expected, "{text}");
    }

    #[test]
    fn comments_are_dropped_even_when_nested() {
        check("a // b\nc /* d /* e */ f */ g", "a c g");
        check("/// #[test]\nfn", "fn");
        check("/* never closed", "");
    }

    #[test]
    fn literals_hide_what_is_in_them() {
        check(r#"x("{ \" }") y"#, "x ( _ ) y");
        check(r##"r#"} "quoted" {"# b"{" br"\" c"{" z"##, "_ _ _ _ z");
        check(r"'{' '\'' '\u{7d}' b'{' 1_000.5f64 q", "_ _ _ _ _ . _ q");
        check("\"never closed", "_");
    }

    #[test]
    fn lifetimes_are_not_characters_and_raw_names_are_names() {
        check("fn f<'a>(x: &'a str, r#mod: 'static)", "fn f < _ > ( x : & _ str , mod : _ )");
        check("'a: loop { 'x' }", "_ : loop { _ }");
    }
}
