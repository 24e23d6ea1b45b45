//! Words of a command line: quotes, escapes, variables and patterns of files.
//!
//! **Invariant.** A word is worked out to the last character, or refused: a rule never sees a text that becomes another one later.

use brush_parser::ParserOptions;
use brush_parser::ast::Word;
use brush_parser::word::{Parameter, ParameterExpr, WordPiece, parse};

use super::parse::LineError;
use super::pattern::PatternPart;
use super::{LineVariables, ScriptWord};

/// A word while it is worked out.
#[derive(Default)]
struct Expansion {
    parts: Vec<PatternPart>,
    /// Whether there is a word even where its text is empty.
    quoted: bool,
}

/// Works a word out; nothing where it is a variable without a value that stands unquoted.
pub(super) fn expand_word(
    word: &Word,
    variables: &LineVariables<'_>,
) -> Result<Option<ScriptWord>, LineError> {
    check_word(&word.value)?;
    let pieces = parse(&word.value, &ParserOptions::default());
    let pieces = pieces.map_err(|_| LineError::Unreadable)?;
    let mut expansion = Expansion::default();
    for piece in &pieces {
        expansion.add(&piece.piece, variables, &word.value)?;
    }
    Ok(expansion.word())
}

/// Works out a word that is one text: a name, a value, a file.
pub(super) fn expand_text(
    word: &Word,
    variables: &LineVariables<'_>,
    what: &'static str,
) -> Result<String, LineError> {
    match expand_word(word, variables)? {
        Some(ScriptWord::Text(text)) => Ok(text),
        None => Ok(String::new()),
        Some(ScriptWord::Files(_)) => {
            Err(LineError::unsupported(what, "write the name without `*` and `?`"))
        }
    }
}

/// The most `$(` and `${` of one word, also where they stand in quotes.
const MAX_EXPANSIONS: usize = 12;

/// Refuses what the parser of words would take exponential time for: anything in `$(` or `${` but a name.
fn check_word(word: &str) -> Result<(), LineError> {
    if word.matches("$(").count() + word.matches("${").count() > MAX_EXPANSIONS {
        return Err(LineError::Nested);
    }
    let mut rest = word;
    let (mut single, mut double) = (false, false);
    while let Some(character) = rest.chars().next() {
        let mut taken = character.len_utf8();
        match character {
            '\'' if !double => single = !single,
            _ if single => {}
            '"' => double = !double,
            '\\' => taken += rest.chars().nth(1).map_or(0, char::len_utf8),
            '`' => return Err(refused(&WordPiece::CommandSubstitution(String::new()))),
            '$' if rest.starts_with("$((") => {
                let what = "arithmetic `$((…))`";
                return Err(LineError::unsupported(what, "write the number itself"));
            }
            '$' if rest.starts_with("$(") => {
                return Err(refused(&WordPiece::CommandSubstitution(String::new())));
            }
            '$' if rest.starts_with("${") => {
                let name = rest.strip_prefix("${").and_then(|rest| rest.split_once('}'));
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                if !name.is_some_and(|(name, _)| name.chars().all(is_name)) {
                    return Err(other_expansion());
                }
            }
            _plain => {}
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    Ok(())
}

fn other_expansion() -> LineError {
    let what = "an expansion of a variable other than `$NAME` and `${NAME}`";
    LineError::unsupported(what, "write the value itself")
}

impl Expansion {
    fn add(
        &mut self,
        piece: &WordPiece,
        variables: &LineVariables<'_>,
        whole: &str,
    ) -> Result<(), LineError> {
        match piece {
            WordPiece::Text(text) => self.add_unquoted(text, whole),
            WordPiece::SingleQuotedText(text) => {
                self.add_quoted(text);
                Ok(())
            }
            WordPiece::DoubleQuotedSequence(pieces) => {
                self.quoted = true;
                pieces.iter().try_for_each(|piece| self.add_in_quotes(&piece.piece, variables))
            }
            WordPiece::EscapeSequence(text) => {
                let escaped = text.strip_prefix('\\').unwrap_or(text);
                if escaped != "\n" {
                    self.add_quoted(escaped);
                }
                Ok(())
            }
            WordPiece::ParameterExpansion(parameter) => {
                let value = variable(parameter, variables)?;
                let splits = |c: char| c.is_whitespace() || matches!(c, '*' | '?' | '[' | '\\');
                if value.contains(splits) {
                    let what = "a variable with spaces or patterns that stands unquoted";
                    return Err(LineError::unsupported(
                        what,
                        "put it into double quotes: `\"$NAME\"`",
                    ));
                }
                self.add_text(value);
                Ok(())
            }
            other => Err(refused(other)),
        }
    }

    fn add_in_quotes(
        &mut self,
        piece: &WordPiece,
        variables: &LineVariables<'_>,
    ) -> Result<(), LineError> {
        match piece {
            WordPiece::Text(text) => self.add_quoted(text),
            WordPiece::EscapeSequence(text) => match text.strip_prefix('\\') {
                Some("\n") => {}
                Some(escaped @ ("\"" | "$" | "`" | "\\")) => self.add_quoted(escaped),
                // Before any other character the back slash stands for itself.
                Some(_) | None => self.add_quoted(text),
            },
            WordPiece::ParameterExpansion(parameter) => {
                let value = variable(parameter, variables)?.to_owned();
                self.add_quoted(&value);
            }
            other => return Err(refused(other)),
        }
        Ok(())
    }

    fn add_unquoted(&mut self, text: &str, whole: &str) -> Result<(), LineError> {
        let opens = |open: char, closes: char| {
            let inside = text.split_once(open).and_then(|(_, rest)| rest.split_once(closes));
            inside.is_some_and(|(inside, _)| !inside.is_empty())
        };
        if opens('[', ']') {
            let what = "the pattern `[…]`";
            return Err(LineError::unsupported(
                what,
                "put the word into single quotes, or name the files",
            ));
        }
        let braces = whole.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        if text.contains('{') && braces.is_some_and(|(in_it, _)| in_it.contains([',', '.'])) {
            let what = "the expansion `{…,…}`";
            return Err(LineError::unsupported(
                what,
                "write the words out, or put them into single quotes",
            ));
        }
        let mut plain = String::new();
        for character in text.chars() {
            let mark = match character {
                '*' => PatternPart::AnyText,
                '?' => PatternPart::AnyCharacter,
                other => {
                    plain.push(other);
                    continue;
                }
            };
            self.add_text(&std::mem::take(&mut plain));
            self.parts.push(mark);
        }
        self.add_text(&plain);
        Ok(())
    }

    fn add_quoted(&mut self, text: &str) {
        self.quoted = true;
        self.add_text(text);
    }

    fn add_text(&mut self, text: &str) {
        match self.parts.last_mut() {
            _ if text.is_empty() => {}
            Some(PatternPart::Text(last)) => last.push_str(text),
            Some(PatternPart::AnyText | PatternPart::AnyCharacter) | None => {
                self.parts.push(PatternPart::Text(text.to_owned()));
            }
        }
    }

    fn word(self) -> Option<ScriptWord> {
        match self.parts.as_slice() {
            [] if self.quoted => Some(ScriptWord::Text(String::new())),
            [] => None,
            [PatternPart::Text(text)] => Some(ScriptWord::Text(text.clone())),
            _pattern => Some(ScriptWord::Files(self.parts)),
        }
    }
}

/// The value of a variable: of the line's own, or of those that every command is given.
fn variable<'a>(
    parameter: &ParameterExpr,
    variables: &'a LineVariables<'_>,
) -> Result<&'a str, LineError> {
    let ParameterExpr::Parameter { parameter: Parameter::Named(name), indirect: false } = parameter
    else {
        return Err(other_expansion());
    };
    let value = variables.get(name);
    value.ok_or_else(|| LineError::Variable(fluffy_base::Excerpt::new(name, 40).to_string()))
}

fn refused(piece: &WordPiece) -> LineError {
    let (what, instead) = match piece {
        WordPiece::CommandSubstitution(_) | WordPiece::BackquotedCommandSubstitution(_) => (
            "the output of a command as a word (`$(…)`, backquotes)",
            "run that command first and use what it printed, or join both with a pipe and `xargs`",
        ),
        WordPiece::ArithmeticExpression(_) => ("arithmetic `$((…))`", "write the number itself"),
        WordPiece::TildeExpansion(_) => {
            ("`~`", "name files from the project's root; the home of a sandbox is empty")
        }
        WordPiece::AnsiCQuotedText(_) => {
            ("`$'…'`", "use single quotes; line breaks may stand in them")
        }
        WordPiece::GettextDoubleQuotedSequence(_) => ("`$\"…\"`", "use double quotes"),
        WordPiece::Text(_)
        | WordPiece::SingleQuotedText(_)
        | WordPiece::DoubleQuotedSequence(_)
        | WordPiece::ParameterExpansion(_)
        | WordPiece::EscapeSequence(_) => ("this place for quotes", "use single quotes"),
    };
    LineError::unsupported(what, instead)
}
