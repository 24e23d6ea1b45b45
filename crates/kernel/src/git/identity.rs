//! Who a commit is by.

use serde::{Deserialize, Serialize};

use super::settings::Settings;

/// Who stands in a commit where nobody is configured.
const INVENTED: (&str, &str) = ("fluffy", "fluffy@localhost");
const MAX_BYTES: usize = 256;

/// A name and an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    name: String,
    email: String,
}

/// What the user's environment says, which stands above all settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdentityOverrides {
    /// `GIT_AUTHOR_NAME`.
    pub author_name: Option<String>,
    /// `GIT_AUTHOR_EMAIL`.
    pub author_email: Option<String>,
    /// `GIT_COMMITTER_NAME`.
    pub committer_name: Option<String>,
    /// `GIT_COMMITTER_EMAIL`.
    pub committer_email: Option<String>,
    /// `EMAIL`, for whoever has no other address.
    pub email: Option<String>,
}

/// Who a commit is by, and who made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identities {
    pub(super) author: Identity,
    pub(super) committer: Identity,
    /// Whether one of them had to be made up.
    pub(super) invented: bool,
}

impl Identity {
    /// An identity; nothing where name or address is empty once what git does not allow in them is gone.
    pub fn new(name: &str, email: &str) -> Option<Self> {
        let (name, email) = (tidy(name), tidy(email));
        (!name.is_empty() && !email.is_empty()).then_some(Self { name, email })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address.
    pub fn email(&self) -> &str {
        &self.email
    }

    fn invented() -> Self {
        Self { name: INVENTED.0.to_owned(), email: INVENTED.1.to_owned() }
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} <{}>", self.name, self.email)
    }
}

/// Who a commit is by: whom the caller names, then the environment, then the settings.
pub(super) fn resolve(
    settings: &Settings,
    overrides: &IdentityOverrides,
    author: Option<&Identity>,
) -> Identities {
    let find = |role: &str, name: &Option<String>, email: &Option<String>| {
        let set = |part: &str| {
            let own = settings.get(&format!("{role}.{part}"));
            own.or_else(|| settings.get(&format!("user.{part}")))
        };
        let name = name.as_deref().or_else(|| set("name"))?;
        let email = email.as_deref().or_else(|| set("email")).or(overrides.email.as_deref())?;
        Identity::new(name, email)
    };
    let found = find("author", &overrides.author_name, &overrides.author_email);
    let author = author.cloned().or(found);
    let committer = find("committer", &overrides.committer_name, &overrides.committer_email);
    let committer = committer.or_else(|| author.clone());
    let invented = author.is_none() || committer.is_none();
    Identities {
        author: author.unwrap_or_else(Identity::invented),
        committer: committer.unwrap_or_else(Identity::invented),
        invented,
    }
}

/// The text without what git takes out of names, so that git changes nothing more.
fn tidy(text: &str) -> String {
    let kept: String =
        text.chars().filter(|c| !c.is_control() && !matches!(c, '<' | '>')).collect();
    let crud = |c: char| c <= ' ' || matches!(c, '.' | ',' | ':' | ';' | '"' | '\\' | '\'');
    let kept = kept.trim_matches(crud);
    let end = (0..=MAX_BYTES.min(kept.len())).rev().find(|end| kept.is_char_boundary(*end));
    kept.get(..end.unwrap_or_default()).unwrap_or_default().trim_matches(crud).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_cannot_break_out_of_its_line() {
        let identity = Identity::new(" Eve\n<x@y> 0 +0000\ncommitter \0", "<e@\nx>").unwrap();
        assert_eq!(identity.to_string(), "Evex@y 0 +0000committer <e@x>");
        assert_eq!(Identity::new("<>", "a@b"), None);
        assert_eq!(Identity::new("a", " . "), None);
        assert!(Identity::new(&"é".repeat(400), "a@b").unwrap().name().len() <= MAX_BYTES);
    }
}
