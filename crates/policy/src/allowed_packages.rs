//! Adds packages to `dependencies.allow` in the text of a policy and leaves every other byte as it is.
//!
//! **Invariant.** A text that says anything else than before, but for these packages, is never given out.

use serde_json::{Value, json};

use crate::exception::{ExceptionError, insert, line_until};
use crate::file::PackagePattern;
use crate::yaml::{self, Field, Node};

/// The most packages that are written down at once.
const MAX_PACKAGES: usize = 500;

/// The text with these packages in `dependencies.allow`, each as `ecosystem:name`.
pub fn allow_packages(text: &str, packages: &[String]) -> Result<String, ExceptionError> {
    let bad = |name: &String| PackagePattern::parse(name).is_none() || name.contains('*');
    if let Some(name) = packages.iter().find(|name| bad(name)) {
        return Err(ExceptionError::Name(fluffy_base::Excerpt::new(name, 100).to_string()));
    }
    let unfit = || ExceptionError::Form("dependencies".to_owned());
    if packages.is_empty() || packages.len() > MAX_PACKAGES {
        return Err(unfit());
    }
    let unreadable = |problem: yaml::Problem| ExceptionError::Unreadable(problem.what.to_string());
    let node = yaml::parse(text).map_err(unreadable)?;
    let fresh = put(text, &node, packages).ok_or_else(unfit)?;
    let expected = expected(&node, packages).ok_or_else(unfit)?;
    match yaml::parse(&fresh) {
        Ok(node) if node.said() == expected => Ok(fresh),
        Ok(_) | Err(_) => Err(unfit()),
    }
}

fn put(text: &str, node: &Node, packages: &[String]) -> Option<String> {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let quoted: Vec<String> = packages.iter().map(|name| format!("\"{name}\"")).collect();
    let flow = quoted.join(", ");
    let Some(section) = node.root().member("dependencies") else {
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { end };
        return Some(format!("{text}{gap}{end}dependencies:{end}  allow: [{flow}]{end}"));
    };
    let members = section.placed_members()?;
    let Some(allow) = members.iter().find(|member| member.key == "allow") else {
        let (line, before) = line_until(text, members.first()?.place)?;
        return before
            .chars()
            .all(|c| c == ' ')
            .then(|| insert(text, line, &format!("{before}allow: [{flow}]{end}")));
    };
    put_into_list(text, &allow.value, (&quoted, &flow), end)
}

/// Puts the packages before whatever else stands in the list.
fn put_into_list(
    text: &str,
    list: &Field<'_>,
    (quoted, flow): (&[String], &str),
    end: &str,
) -> Option<String> {
    let items = list.items("").ok()?;
    let Some(first) = items.first() else {
        let (line, before) = line_until(text, list.place())?;
        let at = line + before.len();
        return text.get(at..)?.starts_with('[').then(|| insert(text, at + 1, flow));
    };
    let (line, before) = line_until(text, first.place())?;
    Some(match before.trim_start_matches(' ') {
        "- " => {
            let lines: String = quoted.iter().map(|name| format!("{before}{name}{end}")).collect();
            insert(text, line, &lines)
        }
        _flow => insert(text, line + before.len(), &format!("{flow}, ")),
    })
}

/// What the text has to say then.
fn expected(node: &Node, packages: &[String]) -> Option<Value> {
    let key = |name: &str| json!(format!("text {name}")).to_string();
    let mut expected = node.said();
    let section = expected.as_object_mut()?.entry(key("dependencies")).or_insert_with(|| json!({}));
    let allow = section.as_object_mut()?.entry(key("allow")).or_insert_with(|| json!([]));
    let said = packages.iter().map(|name| json!(format!("text {name}")));
    let all: Vec<Value> = said.chain(allow.as_array()?.iter().cloned()).collect();
    *allow = Value::Array(all);
    Some(expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DEFAULT_POLICY, PolicyFile};

    fn allow(text: &str, packages: &[&str]) -> Result<String, ExceptionError> {
        let packages: Vec<String> = packages.iter().map(|name| (*name).to_owned()).collect();
        allow_packages(text, &packages)
    }

    #[test]
    fn packages_are_added_and_every_other_byte_stays() {
        let fresh = allow(DEFAULT_POLICY, &["npm:express", "npm:@s/b"]).unwrap();
        let line = "  allow: [\"npm:express\", \"npm:@s/b\"]\n";
        assert_eq!(fresh, DEFAULT_POLICY.replace("  allow: []\n", line));
        let policy = PolicyFile::parse("p", &fresh).unwrap();
        assert!(policy.dependencies().allow.iter().any(|it| it.matches("npm", "express")));
        let again = allow(&fresh, &["pypi:flask"]).unwrap();
        assert!(again.contains("allow: [\"pypi:flask\", \"npm:express\""), "{again}");
    }

    #[test]
    fn lists_in_lines_and_missing_sections_are_written_to() {
        let text = "dependencies:\n  allow:\n    - left-pad\n";
        let expected = "dependencies:\n  allow:\n    - \"npm:a\"\n    - left-pad\n";
        assert_eq!(allow(text, &["npm:a"]).as_deref(), Ok(expected));
        let text = "dependencies:\n  ask: new\n";
        let expected = "dependencies:\n  allow: [\"npm:a\"]\n  ask: new\n";
        assert_eq!(allow(text, &["npm:a"]).as_deref(), Ok(expected));
        let expected = "version: 1\n\ndependencies:\n  allow: [\"npm:a\"]\n";
        assert_eq!(allow("version: 1\n", &["npm:a"]).as_deref(), Ok(expected));
    }

    #[test]
    fn what_cannot_be_written_safely_is_not() {
        for packages in [&["npm:*"][..], &["a b"], &["maven:x"], &["a\"b"], &[]] {
            assert!(allow("version: 1\n", packages).is_err(), "{packages:?}");
        }
        assert!(matches!(allow("a: [", &["npm:a"]), Err(ExceptionError::Unreadable(_))));
        assert!(allow("dependencies: { ask: new }\n", &["npm:a"]).is_err());
        assert!(allow("dependencies: x\n", &["npm:a"]).is_err());
    }
}
