//! Reads the section `skills`: what a project forbids its skills beyond what is always forbidden.
//!
//! **Invariant.** The section only takes away: it has no word that allows a skill anything.

use regex::RegexBuilder;

use crate::yaml::{Field, Problem};

/// The largest pattern, compiled.
const MAX_COMPILED: usize = 1 << 20;
/// The most patterns.
const MAX_PATTERNS: usize = 64;

/// What a project forbids its skills.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillRules {
    /// Modules and packages that no skill imports.
    pub forbidden_imports: Vec<String>,
    /// Whole names that no skill uses; a `*` at the end stands for any rest.
    pub forbidden_calls: Vec<String>,
    /// Patterns that no line of a skill matches.
    pub patterns: Vec<SkillPattern>,
}

/// A pattern that no line of a skill matches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SkillPattern {
    /// What findings call it.
    pub name: String,
    /// The regular expression, which is one.
    pub pattern: String,
    /// Why it is there.
    pub why: String,
}

pub(super) fn read(field: &Field<'_>) -> Result<SkillRules, Problem> {
    let [imports, calls, patterns] =
        field.fields(["forbidden_imports", "forbidden_calls", "patterns"])?;
    let names = |list: Option<Field<'_>>| -> Result<Vec<String>, Problem> {
        let Some(list) = list else { return Ok(Vec::new()) };
        list.texts()?.iter().map(|(item, text)| read_name(item, text)).collect()
    };
    let (forbidden_imports, forbidden_calls) = (names(imports)?, names(calls)?);
    let patterns = match patterns {
        None => Vec::new(),
        Some(list) => {
            let items = list.items("a list of `{ name, pattern, why }`")?;
            if items.len() > MAX_PATTERNS {
                return Err(list.invalid(&format!("there are at most {MAX_PATTERNS} patterns")));
            }
            items.iter().map(read_pattern).collect::<Result<_, _>>()?
        }
    };
    Ok(SkillRules { forbidden_imports, forbidden_calls, patterns })
}

fn read_name(item: &Field<'_>, text: &str) -> Result<String, Problem> {
    let dotted = text.strip_suffix('*').unwrap_or(text);
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    if dotted.is_empty() || dotted.len() > 200 || !dotted.chars().all(part) {
        let why = "it is a dotted name such as `hashlib.md5`, in calls perhaps with `*` at its end";
        return Err(item.invalid(&why));
    }
    Ok(text.to_owned())
}

fn read_pattern(field: &Field<'_>) -> Result<SkillPattern, Problem> {
    let [name, pattern, why] = field.fields(["name", "pattern", "why"])?;
    let name = name.ok_or_else(|| field.missing("name", "what findings call the pattern"))?;
    let pattern = pattern.ok_or_else(|| field.missing("pattern", "a regular expression"))?;
    let why = why.ok_or_else(|| field.missing("why", "what the author of a skill is told"))?;
    let text = pattern.text()?;
    let built = RegexBuilder::new(text).size_limit(MAX_COMPILED).build();
    built.map_err(|error| pattern.invalid(&error))?;
    Ok(SkillPattern {
        name: name.text()?.to_owned(),
        pattern: text.to_owned(),
        why: why.text()?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use crate::PolicyFile;

    fn refusal(text: &str) -> String {
        PolicyFile::parse("p", text).unwrap_err().to_string()
    }

    #[test]
    fn for_6_a_policy_says_what_skills_may_not_use() {
        let text = "skills:\n  forbidden_imports: [decimal]\n  forbidden_calls: [\"hashlib.md*\"]\n  patterns:\n  \
                    - { name: internal, pattern: \"intranet\\\\.\", why: our hosts are our own }\n";
        let policy = PolicyFile::parse("p", text).unwrap();
        let rules = policy.skills();
        assert_eq!(rules.forbidden_imports, ["decimal"]);
        assert_eq!(rules.forbidden_calls, ["hashlib.md*"]);
        assert_eq!(rules.patterns[0].pattern, "intranet\\.");
        let plain = PolicyFile::parse("p", "{}").unwrap();
        assert_ne!(policy.digest(), plain.digest());
    }

    #[test]
    fn for_6_what_is_misspelt_or_no_pattern_is_refused_with_its_place() {
        for (text, words) in [
            ("skills: { forbidden_import: [x] }", "forbidden_import"),
            ("skills: { patterns: [{ name: a, pattern: \"(\", why: b }] }", "patterns[0].pattern"),
            ("skills: { patterns: [{ name: a, pattern: b }] }", "why"),
            ("skills: { forbidden_calls: [\"a b\"] }", "dotted name"),
            ("skills: { forbidden_imports: x }", "a list of texts"),
        ] {
            assert!(refusal(text).contains(words), "{}", refusal(text));
        }
    }
}
