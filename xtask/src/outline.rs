//! The modules and tests of one source file.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::vec::IntoIter;

use crate::tokens::{Token, tokens};

/// What a test run does with a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run {
    /// Runs it.
    Always,
    /// Leaves it out unless asked, because it is marked `#[ignore]`.
    OnlyWhenAsked,
}

/// The modules and tests of a file, or of a module inside it.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// Functions marked as tests, those inside `proptest!` included.
    pub(crate) tests: BTreeMap<String, Run>,
    /// Modules with their body here.
    pub(crate) inline: BTreeMap<String, Outline>,
    /// Modules whose body is another file.
    pub(crate) files: BTreeSet<String>,
}

impl Outline {
    /// Reads a source text.
    pub(crate) fn of(text: &str) -> Self {
        let mut outline = Self::default();
        outline.read_items(&mut tokens(text).into_iter().peekable());
        outline
    }

    /// The names of all modules, at any depth.
    pub(crate) fn modules(&self) -> Vec<&str> {
        let inner = self.inline.values().flat_map(Self::modules);
        self.files.iter().chain(self.inline.keys()).map(String::as_str).chain(inner).collect()
    }

    /// Reads items up to the end of the text or of the group they stand in.
    fn read_items(&mut self, tokens: &mut Tokens<'_>) {
        let mut marks = Marks::default();
        while let Some(token) = tokens.next() {
            match token {
                Token::Mark('#') => marks.read(tokens),
                Token::Mark('}' | ')') => return,
                Token::Mark(';') => marks = Marks::default(),
                Token::Mark('(' | '[') => skip_group(tokens),
                Token::Mark('{') => {
                    skip_group(tokens);
                    marks = Marks::default();
                }
                Token::Word("mod") => self.read_module(tokens),
                Token::Word("fn") => self.read_function(tokens, marks),
                Token::Word("proptest") => self.read_properties(tokens),
                Token::Word(_) | Token::Mark(_) | Token::Literal => {}
            }
        }
    }

    fn read_module(&mut self, tokens: &mut Tokens<'_>) {
        let Some(Token::Word(name)) = tokens.next() else {
            return;
        };
        match tokens.next() {
            Some(Token::Mark('{')) => {
                self.inline.entry(name.to_owned()).or_default().read_items(tokens);
            }
            Some(Token::Mark(';')) => {
                self.files.insert(name.to_owned());
            }
            _ => {}
        }
    }

    fn read_function(&mut self, tokens: &mut Tokens<'_>, marks: Marks) {
        if let (Some(Token::Word(name)), true) = (tokens.next(), marks.test) {
            let run = if marks.ignore { Run::OnlyWhenAsked } else { Run::Always };
            self.tests.insert(name.to_owned(), run);
        }
    }

    /// `proptest! { … }` holds functions that stand in the module around it.
    fn read_properties(&mut self, tokens: &mut Tokens<'_>) {
        let group = |token: &Token<'_>| matches!(token, Token::Mark('{' | '('));
        if tokens.next_if_eq(&Token::Mark('!')).is_some() && tokens.next_if(group).is_some() {
            self.read_items(tokens);
        }
    }
}

type Tokens<'a> = Peekable<IntoIter<Token<'a>>>;

/// What the attributes before an item say.
#[derive(Debug, Default, Clone, Copy)]
struct Marks {
    test: bool,
    ignore: bool,
}

impl Marks {
    /// Reads what follows `#`: `[test]`, `[tokio::test(…)]`, `[ignore = "…"]`, `![…]`.
    fn read(&mut self, tokens: &mut Tokens<'_>) {
        tokens.next_if_eq(&Token::Mark('!'));
        if tokens.next_if_eq(&Token::Mark('[')).is_none() {
            return;
        }
        let mut last = "";
        while let Some(token) = tokens.next_if(|token| *token != Token::Mark(']')) {
            match token {
                Token::Word(word) => last = word,
                Token::Mark(':') => {}
                Token::Mark('(' | '[' | '{') => skip_group(tokens),
                Token::Mark('=') => {
                    tokens.next();
                }
                Token::Mark(_) | Token::Literal => {}
            }
        }
        tokens.next();
        self.test |= last == "test";
        self.ignore |= last == "ignore";
    }
}

/// Skips to the end of a group whose opening mark is already taken.
fn skip_group(tokens: &mut Tokens<'_>) {
    let mut depth = 1_usize;
    for token in tokens {
        match token {
            Token::Mark('(' | '[' | '{') => depth += 1,
            Token::Mark(')' | ']' | '}') => depth -= 1,
            Token::Mark(_) | Token::Word(_) | Token::Literal => {}
        }
        if depth == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_where_they_stand() {
        let outline = Outline::of(
            r#"
            //! mod commented;
            mod beside;
            pub(crate) fn plain() { let mod_ = "fn"; }
            #[derive(Debug)] struct S { f: fn(u8) -> u8 }
            #[cfg(test)]
            pub(crate) mod tests {
                use super::*;
                #[test]
                #[expect(clippy::panic, reason = "shows it")]
                fn one() { #[test] fn inner() {} if true { panic!("}") } }
                fn not_a_test() {}
                #[tokio::test(flavor = "current_thread")]
                async fn two() {}
                #[test] #[ignore = "needs an engine"] fn three() {}
                mod deeper { #[test] fn four() {} }
            }
            "#,
        );
        assert!(outline.tests.is_empty());
        assert_eq!(outline.files.iter().collect::<Vec<_>>(), ["beside"]);
        let tests = &outline.inline["tests"];
        let names: Vec<_> = tests.tests.iter().map(|(name, run)| (name.as_str(), *run)).collect();
        let expected = [("one", Run::Always), ("three", Run::OnlyWhenAsked), ("two", Run::Always)];
        assert_eq!(names, expected);
        assert!(tests.inline["deeper"].tests.contains_key("four"));
        assert_eq!(outline.modules(), ["beside", "tests", "deeper"]);
    }

    #[test]
    fn properties_stand_in_the_module_around_them() {
        let outline = Outline::of(
            "use proptest::prelude::*;
            proptest! {
                #![proptest_config(ProptestConfig::with_cases(9))]
                /// Says so.
                #[test]
                fn holds(x in any::<u8>().prop_map(|x| { x }), y in 0..9) { prop_assert!(x == x); }
                fn no_attribute(x in any::<u8>()) {}
            }
            proptest::proptest!(#[test] fn too(x in 0..1) {});
            #[test] fn after() {}",
        );
        assert_eq!(outline.tests.keys().collect::<Vec<_>>(), ["after", "holds", "too"]);
    }

    #[test]
    fn an_attribute_marks_the_next_item_only() {
        let outline = Outline::of("#[test] const X: u8 = 1; fn a() {} #[cfg(test)] fn b() {}");
        assert!(outline.tests.is_empty());
    }
}
