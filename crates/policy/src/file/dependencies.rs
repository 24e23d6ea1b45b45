//! Reads the section `dependencies`: which packages a task may install, and which are asked about.
//!
//! **Invariant.** The section decides about packages by what they resolved to, never by what a request calls them.

use fluffy_base::Span;

use crate::yaml::{Field, Problem};

/// The most patterns of one list.
const MAX_PATTERNS: usize = 2_000;

/// The languages' package registries, as patterns name them.
pub const ECOSYSTEMS: [&str; 4] = ["npm", "pypi", "cargo", "go"];

/// Which packages a task may install.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DependencyRules {
    /// When a person is asked.
    pub ask: AskAbout,
    /// Packages that nobody is asked about.
    pub allow: Vec<PackagePattern>,
    /// Packages that are never installed.
    pub deny: Vec<PackagePattern>,
    /// Packages whose install scripts may run.
    pub scripts: Vec<PackagePattern>,
    /// A version has to be this old. One whose age is not known needs a person.
    pub min_age: Option<Span>,
    /// The only licences, by SPDX name. One whose licence is not known needs a person.
    pub licences: Vec<String>,
    /// The most packages that one call may add.
    pub max_new: Option<u64>,
}

/// When a person is asked about packages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AskAbout {
    /// About every package once in a session.
    #[default]
    New,
    /// At every call.
    Always,
    /// About no package: what no other key forbids is installed.
    Nothing,
}

impl AskAbout {
    const ALL: [Self; 3] = [Self::New, Self::Always, Self::Nothing];

    /// The word for it in a policy file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Always => "always",
            Self::Nothing => "never",
        }
    }
}

/// Packages by name, perhaps of one ecosystem: `left-pad`, `npm:@types/*`, `pypi:*`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PackagePattern {
    text: String,
}

impl PackagePattern {
    /// Reads a pattern; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let name = match text.split_once(':') {
            Some((ecosystem, name)) if ECOSYSTEMS.contains(&ecosystem) => name,
            Some(_) => return None,
            None => text,
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "@/._-~*".contains(c);
        let fits = !name.is_empty() && text.len() <= 300 && name.chars().all(plain);
        // Each star doubles the ways to match; three are more than a name needs.
        (fits && name.matches('*').count() <= 3).then(|| Self { text: text.to_owned() })
    }

    /// How it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it means this package. Case and, in PyPI's names, the kind of dash do not matter.
    pub fn matches(&self, ecosystem: &str, name: &str) -> bool {
        let (wanted, pattern) = match self.text.split_once(':') {
            Some((wanted, pattern)) => (Some(wanted), pattern),
            None => (None, self.text.as_str()),
        };
        wanted.is_none_or(|wanted| wanted == ecosystem)
            && matches_stars(&comparable(ecosystem, pattern), &comparable(ecosystem, name))
    }
}

/// A name as registries compare it.
fn comparable(ecosystem: &str, name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    match ecosystem {
        "pypi" => lower.replace(['_', '.'], "-"),
        "cargo" => lower.replace('_', "-"),
        _other => lower,
    }
}

/// Whether a name matches a pattern in which `*` stands for any characters.
fn matches_stars(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = left.get(at + part.len()..).unwrap_or_default();
    }
    left.ends_with(last)
}

pub(super) fn read(field: &Field<'_>) -> Result<DependencyRules, Problem> {
    let [ask, allow, deny, scripts, min_age, licences, max_new] =
        field.fields(["ask", "allow", "deny", "scripts", "min_age", "licences", "max_new"])?;
    let licences = match licences {
        Some(list) => list.texts()?.iter().map(read_licence).collect::<Result<_, _>>()?,
        None => Vec::new(),
    };
    let min_age = min_age.map(|field| {
        let text = field.quantity("a time such as `72h`")?;
        text.parse().map_err(|error| field.invalid(&error))
    });
    let max_new = max_new.map(|field| {
        let number = field.integer("a number of packages")?;
        u64::try_from(number).map_err(|error| field.invalid(&error))
    });
    Ok(DependencyRules {
        ask: ask.map(|field| read_ask(&field)).transpose()?.unwrap_or_default(),
        allow: read_patterns(allow)?,
        deny: read_patterns(deny)?,
        scripts: read_patterns(scripts)?,
        min_age: min_age.transpose()?,
        licences,
        max_new: max_new.transpose()?,
    })
}

fn read_ask(field: &Field<'_>) -> Result<AskAbout, Problem> {
    let text = field.text()?;
    let known = AskAbout::ALL.into_iter().find(|ask| ask.name() == text);
    known.ok_or_else(|| field.invalid(&"it is one of `new`, `always`, `never`"))
}

fn read_patterns(field: Option<Field<'_>>) -> Result<Vec<PackagePattern>, Problem> {
    let Some(field) = field else { return Ok(Vec::new()) };
    let items = field.texts()?;
    if items.len() > MAX_PATTERNS {
        return Err(field.invalid(&format!("there are at most {MAX_PATTERNS} patterns")));
    }
    let why = "it is a package name, perhaps with `*` and with `npm:`, `pypi:`, `cargo:` or `go:` before it";
    let pattern = |(item, text): &(Field<'_>, &str)| {
        PackagePattern::parse(text).ok_or_else(|| item.invalid(&why))
    };
    items.iter().map(pattern).collect()
}

fn read_licence((item, text): &(Field<'_>, &str)) -> Result<String, Problem> {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-+".contains(c);
    if text.is_empty() || text.len() > 100 || !text.chars().all(plain) {
        return Err(item.invalid(&"it is the SPDX name of a licence, such as `MIT`"));
    }
    Ok((*text).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PolicyFile;

    fn refusal(text: &str) -> String {
        PolicyFile::parse("p", text).unwrap_err().to_string()
    }

    #[test]
    fn section_is_read_and_part_of_the_digest() {
        let text = "dependencies:\n  ask: always\n  allow: [\"npm:@types/*\"]\n  deny: [event-stream]\n  \
                    scripts: [esbuild]\n  min_age: 72h\n  licences: [MIT, Apache-2.0]\n  max_new: 40\n";
        let policy = PolicyFile::parse("p", text).unwrap();
        let rules = policy.dependencies();
        assert_eq!(rules.ask, AskAbout::Always);
        assert_eq!(rules.min_age, Some(Span::from_ms(72 * 3_600_000)));
        assert_eq!(rules.licences, ["MIT", "Apache-2.0"]);
        assert_eq!(rules.max_new, Some(40));
        let plain = PolicyFile::parse("p", "{}").unwrap();
        assert_ne!(policy.digest(), plain.digest());
        assert_eq!(plain.dependencies(), &DependencyRules::default());
    }

    #[test]
    fn misspelt_keys_and_values_are_refused() {
        for (text, words) in [
            ("dependencies: { alow: [x] }", "alow"),
            ("dependencies: { ask: maybe }", "`new`, `always`, `never`"),
            ("dependencies: { allow: [\"maven:x\"] }", "package name"),
            ("dependencies: { allow: [\"a b\"] }", "package name"),
            ("dependencies: { deny: [\"****\"] }", "package name"),
            ("dependencies: { min_age: soon }", "min_age"),
            ("dependencies: { max_new: -1 }", "max_new"),
            ("dependencies: { licences: [\"a b\"] }", "SPDX"),
        ] {
            assert!(refusal(text).contains(words), "{}", refusal(text));
        }
    }

    #[test]
    fn patterns_match_as_registries_compare_names() {
        let matches = |pattern: &str, ecosystem, name| {
            PackagePattern::parse(pattern).unwrap().matches(ecosystem, name)
        };
        assert!(matches("npm:@types/*", "npm", "@types/node"));
        assert!(!matches("npm:@types/*", "pypi", "@types/node"));
        assert!(matches("zope.interface", "pypi", "Zope_Interface"));
        assert!(matches("serde_json", "cargo", "serde-json"));
        assert!(!matches("serde_json", "npm", "serde-json"));
        assert!(matches("*-utils", "npm", "a-b-utils"));
        assert!(matches("a*b*c", "npm", "axxbyyc"));
        assert!(!matches("a*b*c", "npm", "acb"));
        assert!(!matches("ab*ba", "npm", "aba"));
        assert!(matches("Express", "npm", "express"));
    }
}
