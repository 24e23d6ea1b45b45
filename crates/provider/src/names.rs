//! The names of tools as vendors accept them, and back.
//!
//! Inside a tool is called `fs.read`; some vendors take letters, digits, `_` and `-` only, and 64 of them. One
//! alphabet that all of them take is used for all.
//!
//! **Invariant.** What a model calls is looked up in the table of the tools it was shown, never derived from
//! its spelling: no two tools share a name, and a name that was not given out stays as the model wrote it.

use std::collections::BTreeMap;

use fluffy_base::Digest;

use crate::{ProviderError, ToolDefinition};

/// How long a name may be.
const LONGEST: usize = 64;

/// How much of the digest makes a shortened name unlike others.
const DIGEST_CHARS: usize = 8;

/// The tools of one request: what each is called inside and outside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    inside: BTreeMap<String, String>,
}

impl Names {
    /// The names of these tools; an error if two of them would be called the same.
    pub fn of(tools: &[ToolDefinition]) -> Result<Self, ProviderError> {
        let mut inside: BTreeMap<String, String> = BTreeMap::new();
        for tool in tools {
            if let Some(other) = inside.insert(Self::outside(&tool.name), tool.name.clone()) {
                return Err(ProviderError::Refused(format!(
                    "the tools `{other}` and `{}` have the same name for a provider",
                    tool.name
                )));
            }
        }
        Ok(Self { inside })
    }

    /// What a vendor is told, for tools of the conversation's past as well.
    pub fn outside(name: &str) -> String {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let plain: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
        let begins_well = plain.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let plain = if begins_well { plain } else { format!("_{plain}") };
        if plain.len() <= LONGEST {
            return plain;
        }
        let digest = Digest::of(name.as_bytes()).to_string();
        let kept = LONGEST - DIGEST_CHARS - 1;
        let kept: String = plain.chars().take(kept).collect();
        let digest: String = digest.chars().take(DIGEST_CHARS).collect();
        format!("{kept}_{digest}")
    }

    /// The tool that a model meant; what it was not told of stays as it wrote it.
    pub fn inside(&self, name: &str) -> String {
        self.inside.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use fluffy_base::Json;
    use proptest::prelude::*;

    use super::*;

    fn tools(names: &[&str]) -> Vec<ToolDefinition> {
        let tool = |name: &&str| ToolDefinition {
            name: (*name).to_owned(),
            summary: String::new(),
            schema: Json::empty_object(),
        };
        names.iter().map(tool).collect()
    }

    #[test]
    fn a_tool_keeps_its_name_there_and_back() {
        let names = Names::of(&tools(&["fs.read", "workflow.request_exemption"])).unwrap();
        assert_eq!(Names::outside("fs.read"), "fs_read");
        assert_eq!(names.inside("fs_read"), "fs.read");
        assert_eq!(names.inside("fs.read"), "fs.read", "the name inside is understood as well");
        assert_eq!(names.inside("multi_tool_use.parallel"), "multi_tool_use.parallel");
        assert_eq!(
            names.inside("git_log"),
            "git_log",
            "a tool that was not shown is not guessed at"
        );
    }

    #[test]
    fn two_tools_of_one_name_are_refused() {
        assert!(Names::of(&tools(&["fs.read", "fs_read"])).is_err());
        assert!(Names::of(&tools(&["fs.read", "fs.read"])).is_err());
    }

    proptest! {
        #[test]
        fn every_name_is_one_that_every_vendor_takes(name in "\\PC{0,200}") {
            let outside = Names::outside(&name);
            prop_assert!(!outside.is_empty() && outside.len() <= LONGEST);
            prop_assert!(outside.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
            prop_assert!(!outside.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
            prop_assert_eq!(Names::outside(&outside), outside, "a second time changes nothing");
        }
    }
}
