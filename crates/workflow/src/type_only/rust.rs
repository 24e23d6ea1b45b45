//! Type-only changes of Rust: those that leave every token as it is.
//!
//! Rust does not erase its types. They choose the code that runs: an alias of another type overflows
//! elsewhere and is dropped elsewhere, a bound decides whether `x.clone()` copies the value or the
//! reference, a lifetime tells one implementation of a trait from another, a new name hides one that
//! came from a glob import, and a doc comment is text to a derive macro and code to a doc test. None of
//! that can be ruled out by looking at one file. What can be is that nothing but blanks and plain
//! comments differ, so that is all that passes here; everything else takes a test.

use std::str::FromStr as _;

use fluffy_base::ProjectPath;
use proc_macro2::token_stream::IntoIter;
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use super::{NotTypeOnly, TypeOnly, Version, check_size, has_ending};

/// Rust.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rust;

impl TypeOnly for Rust {
    fn judges(&self, path: &ProjectPath) -> bool {
        has_ending(path, &["rs"])
    }

    fn check(&self, _path: &ProjectPath, before: &str, after: &str) -> Result<(), NotTypeOnly> {
        check_size(before, after)?;
        let tokens = |text: &str, version| {
            TokenStream::from_str(text).map(Flat::new).map_err(|_lex| NotTypeOnly::Syntax(version))
        };
        let (before, after) = (tokens(before, Version::Before)?, tokens(after, Version::After)?);
        if before.eq(after) { Ok(()) } else { Err(NotTypeOnly::Code) }
    }
}

/// A token, or one end of a group.
#[derive(PartialEq)]
enum Piece {
    Open(Delimiter),
    Close,
    /// A name or a literal, as it is written.
    Word(String),
    /// A sign, and whether the next one is read together with it.
    Sign(char, Spacing),
}

/// The tokens of a file one after the other. Groups are walked with a stack of their own, so that no
/// depth of brackets is too deep.
struct Flat {
    open: Vec<IntoIter>,
}

impl Flat {
    fn new(stream: TokenStream) -> Self {
        Self { open: vec![stream.into_iter()] }
    }
}

impl Iterator for Flat {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let innermost = self.open.last_mut()?;
        let Some(token) = innermost.next() else {
            self.open.pop();
            return if self.open.is_empty() { None } else { Some(Piece::Close) };
        };
        Some(match token {
            TokenTree::Group(group) => {
                self.open.push(group.stream().into_iter());
                Piece::Open(group.delimiter())
            }
            TokenTree::Ident(name) => Piece::Word(name.to_string()),
            TokenTree::Literal(literal) => Piece::Word(literal.to_string()),
            TokenTree::Punct(sign) => Piece::Sign(sign.as_char(), sign.spacing()),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(before: &str, after: &str) -> Result<(), NotTypeOnly> {
        Rust.check(&ProjectPath::parse("src/lib.rs").unwrap(), before, after)
    }

    #[test]
    fn blanks_and_plain_comments_are_no_code() {
        assert_eq!(
            check("fn f(a: u8)->u8{a}", "// Why.\nfn f(a: u8)->u8{ /* so */\n a }\n"),
            Ok(())
        );
        assert_eq!(check("", "// nothing\n"), Ok(()));
    }

    #[test]
    fn everything_else_is() {
        for (before, after) in [
            ("type A = u8;", "type A = u16;"),
            ("fn f() {}", "type A = u8; fn f() {}"),
            ("fn f<T>(t: &T) {}", "fn f<T: Clone>(t: &T) {}"),
            ("fn f(t: &u8) {}", "fn f<'a>(t: &'a u8) {}"),
            ("fn f() {}", "/// Says so.\nfn f() {}"),
            ("fn f() {}", "#[inline] fn f() {}"),
            ("const A: &str = \"a // b\";", "const A: &str = \"a // c\";"),
            ("const A: u8 = 1;", "const A: u8 = 1_0;"),
            ("fn f() { a & &b; }", "fn f() { a && b; }"),
            ("fn f() { (a) }", "fn f() { [a] }"),
            ("fn f() { (a) b }", "fn f() { (a b) }"),
            ("", "fn main() {}"),
        ] {
            assert_eq!(check(before, after), Err(NotTypeOnly::Code), "{before} -> {after}");
        }
    }

    #[test]
    fn what_is_no_rust_is_not_type_only() {
        assert_eq!(check("", "fn ("), Err(NotTypeOnly::Syntax(Version::After)));
        assert_eq!(check("/*", ""), Err(NotTypeOnly::Syntax(Version::Before)));
    }

    #[test]
    fn any_depth_of_brackets_is_walked() {
        let deep = format!("{}{}", "(".repeat(30_000), ")".repeat(30_000));
        assert_eq!(check(&deep, &format!("{deep} // end")), Ok(()));
    }

    const WORDS: &[&str] = &[
        "fn", "'a", "'", "r#\"", "\"#", "/*", "*/", "//", "\n", "(", "[", "{", ")", "]", "}",
        "b'x'", "c\"", "1e", "é", "///", "#!", "\\",
    ];

    proptest! {
        #[test]
        fn any_text_has_an_answer(before in "\\PC{0,80}", after in "[ -~\n]{0,80}") {
            let _either = check(&before, &after);
            let _either = check(&after, &before);
        }

        #[test]
        fn rust_like_text_has_an_answer(words in proptest::collection::vec(
            prop::sample::select(WORDS), 0..40,
        )) {
            let text = words.concat();
            let _either = check(&text, &text);
            let spaced = words.join(" ");
            let _either = check(&text, &spaced);
        }
    }
}
