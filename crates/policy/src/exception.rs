//! Adds an exception to a rule in the text of a policy and leaves every other byte as it is.
//!
//! **Invariant.** A text that says anything else than before, but for the one exception, is never given out: what cannot be done
//! safely is not done.
//!
//! **Invariant.** An exception is for one actor, one call and one file, written without a wildcard.

use fluffy_base::ProjectPath;
use serde_json::{Value, json};

use crate::glob::Glob;
use crate::yaml::{self, Field, Node};

/// What a rule should not apply to any more.
#[derive(Debug, Clone, Copy)]
pub struct Exception<'a> {
    /// Who asks.
    pub actor: &'a str,
    /// For which call.
    pub syscall: &'a str,
    /// For which file.
    pub path: &'a ProjectPath,
}

/// Why an exception cannot be written.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum ExceptionError {
    /// The path has characters that mean something in a pattern.
    #[error("no pattern names `{0}` and nothing else")]
    NotLiteral(String),
    /// The actor or the call has a name that no policy writes.
    #[error("`{0}` cannot be written in a policy")]
    Name(String),
    /// The text has no such rule.
    #[error("there is no rule `{0}`")]
    NoRule(String),
    /// The text cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The rule is written in a way that lines cannot be put into.
    #[error("rule `{0}` is written in a way that an exception cannot be put into")]
    Form(String),
}

impl Exception<'_> {
    /// The text with this exception in a rule.
    pub fn put_into(&self, text: &str, rule: &str) -> Result<String, ExceptionError> {
        let written = self.written()?;
        let unreadable =
            |problem: yaml::Problem| ExceptionError::Unreadable(problem.what.to_string());
        let node = yaml::parse(text).map_err(unreadable)?;
        let unfit = || ExceptionError::Form(rule.to_owned());
        let (index, found) =
            find(&node, rule).ok_or_else(|| ExceptionError::NoRule(rule.to_owned()))?;
        let fresh = put(text, &found, &written).ok_or_else(unfit)?;
        let expected = self.expected(&node, index).ok_or_else(unfit)?;
        match yaml::parse(&fresh) {
            Ok(node) if node.said() == expected => Ok(fresh),
            Ok(_) | Err(_) => Err(unfit()),
        }
    }

    /// The exception as YAML in one line.
    fn written(&self) -> Result<String, ExceptionError> {
        let plain = |text: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
            !text.is_empty() && text.chars().all(fits) && text.starts_with(char::is_alphabetic)
        };
        if let Some(name) = [self.actor, self.syscall].into_iter().find(|name| !plain(name)) {
            return Err(ExceptionError::Name(fluffy_base::Excerpt::new(name, 100).to_string()));
        }
        let pattern = self.pattern();
        let glob = Glob::parse(&pattern).ok().filter(Glob::is_literal);
        // A path has no control character and no back slash, which is what else a quoted text would obey.
        if !glob.is_some_and(|glob| glob.matches(self.path)) || pattern.contains('"') {
            return Err(ExceptionError::NotLiteral(self.path.to_string()));
        }
        let Self { actor, syscall, .. } = self;
        Ok(format!("{{ syscall: {syscall}, actor: {actor}, path_glob: [\"{pattern}\"] }}"))
    }

    fn pattern(&self) -> String {
        format!("/{}", self.path)
    }

    /// What the text has to say then.
    fn expected(&self, node: &Node, index: usize) -> Option<Value> {
        let key = |name: &str| json!(format!("text {name}")).to_string();
        let said = |name: &str| json!(format!("text {name}"));
        let mut expected = node.said();
        let rules = expected.get_mut(key("capabilities"))?.as_array_mut()?;
        let rule = rules.get_mut(index)?.as_object_mut()?;
        let except = rule.entry(key("except")).or_insert_with(|| json!([]));
        let mut own = serde_json::Map::new();
        own.insert(key("syscall"), said(self.syscall));
        own.insert(key("actor"), said(self.actor));
        own.insert(key("path_glob"), json!([said(&self.pattern())]));
        except.as_array_mut()?.insert(0, Value::Object(own));
        Some(expected)
    }
}

/// A rule with its place in the list.
fn find<'a>(node: &'a Node, rule: &str) -> Option<(usize, Field<'a>)> {
    let rules = node.root().member("capabilities")?.items("").ok()?;
    let is_it = |field: &Field<'_>| {
        field.member("name").is_some_and(|name| name.text().is_ok_and(|name| name == rule))
    };
    rules.into_iter().enumerate().find(|(_, field)| is_it(field))
}

/// The text with an exception in a rule, before whatever else stands in the list or in the rule.
fn put(text: &str, rule: &Field<'_>, written: &str) -> Option<String> {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    if let Some(except) = rule.member("except") {
        let first = except.items("").ok()?.into_iter().next()?.place();
        let (line, before) = line_until(text, first)?;
        return Some(match before.trim_start_matches(' ') {
            "- " => insert(text, line, &format!("{before}{written}{end}")),
            _flow => insert(text, line + before.len(), &format!("{written}, ")),
        });
    }
    // A rule begins with one of its members, mostly its name; the exception goes before the second.
    let second = rule.placed_members()?.into_iter().nth(1)?.place;
    let (line, before) = line_until(text, second)?;
    Some(if before.chars().all(|c| c == ' ') {
        insert(text, line, &format!("{before}except:{end}{before}  - {written}{end}"))
    } else {
        insert(text, line + before.len(), &format!("except: [{written}], "))
    })
}

/// Where a line begins, and what stands in it before a column.
pub(crate) fn line_until(text: &str, (line, column): (u64, u64)) -> Option<(usize, &str)> {
    let mut lines = text.split_inclusive('\n');
    let skipped = usize::try_from(line).ok()?.checked_sub(1)?;
    let start: usize = lines.by_ref().take(skipped).map(str::len).sum();
    let whole = lines.next()?;
    let at = usize::try_from(column).ok()?.checked_sub(1)?;
    let end = whole.char_indices().nth(at)?.0;
    Some((start, whole.get(..end)?))
}

pub(crate) fn insert(text: &str, at: usize, put: &str) -> String {
    let (before, after) = (text.get(..at), text.get(at..));
    format!("{}{put}{}", before.unwrap_or_default(), after.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DEFAULT_POLICY, PolicyFile};

    fn put_into(text: &str, rule: &str, path: &str) -> Result<String, ExceptionError> {
        let path = ProjectPath::parse(path).unwrap();
        Exception { actor: "model", syscall: "fs.edit", path: &path }.put_into(text, rule)
    }

    /// The lines that the second text has beyond the first.
    fn added<'a>(before: &str, after: &'a str) -> Vec<&'a str> {
        let mut old = before.lines().peekable();
        let mut added = Vec::new();
        for line in after.lines() {
            if old.peek() == Some(&line) {
                old.next();
            } else {
                added.push(line);
            }
        }
        assert_eq!(old.next(), None);
        added
    }

    #[test]
    fn pol_10_an_exception_is_two_lines_more_and_every_other_byte_stays() {
        let fresh = put_into(DEFAULT_POLICY, "review-build-and-delivery", "Cargo.toml").unwrap();
        let line = "      - { syscall: fs.edit, actor: model, path_glob: [\"/Cargo.toml\"] }";
        assert_eq!(added(DEFAULT_POLICY, &fresh), ["    except:", line]);
        assert!(PolicyFile::parse("policy.yaml", &fresh).is_ok());
        let again = put_into(&fresh, "review-build-and-delivery", "sub/Cargo.toml").unwrap();
        let line = "      - { syscall: fs.edit, actor: model, path_glob: [\"/sub/Cargo.toml\"] }";
        assert_eq!(added(&fresh, &again), [line]);
    }

    #[test]
    fn pol_10_rules_in_one_line_and_lists_in_one_line_get_theirs_there() {
        let text = "capabilities:\r\n  - { name: a, match: { syscall: fs.edit }, action: require_review } # why\r\n";
        let fresh = put_into(text, "a", "x").unwrap();
        assert_eq!(
            fresh,
            "capabilities:\r\n  - { name: a, except: [{ syscall: fs.edit, actor: model, path_glob: [\"/x\"] }], \
             match: { syscall: fs.edit }, action: require_review } # why\r\n"
        );
        let again = put_into(&fresh, "a", "ü y").unwrap();
        assert!(
            again.contains("except: [{ syscall: fs.edit, actor: model, path_glob: [\"/ü y\"] }, {"),
            "{again}"
        );
    }

    #[test]
    fn pol_10_what_cannot_be_named_exactly_or_put_in_safely_gets_no_exception() {
        let text = "capabilities:\n  - name: a\n    match: { syscall: fs.edit }\n    action: require_review\n";
        for path in ["a*", "[x]", "{a,b}", "a?", "a\"b", "dir/**"] {
            let refused = put_into(text, "a", path);
            assert!(matches!(refused, Err(ExceptionError::NotLiteral(_))), "{path}: {refused:?}");
        }
        assert!(matches!(put_into(text, "b", "x"), Err(ExceptionError::NoRule(_))));
        let empty = text.to_owned() + "    except: []\n";
        assert!(matches!(put_into(&empty, "a", "x"), Err(ExceptionError::Form(_))));
        assert!(matches!(put_into("a: [", "a", "x"), Err(ExceptionError::Unreadable(_))));
        let path = ProjectPath::parse("x").unwrap();
        for (actor, syscall) in [("a b", "fs.edit"), ("model", "*"), ("model", "fs.*"), ("", "x")] {
            let exception = Exception { actor, syscall, path: &path };
            assert!(matches!(exception.put_into(text, "a"), Err(ExceptionError::Name(_))));
        }
    }

    proptest::proptest! {
        #[test]
        fn pol_10_no_text_makes_an_exception_panic(
            text in "(capabilities:|  - |name: a|except:|match: x|\\[|\\]|\\{|\\}|, |: |#|é|\n|\r\n| ){0,24}",
        ) {
            let _whatever = put_into(&text, "a", "x");
        }
    }
}
