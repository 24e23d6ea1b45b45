//! Providers that are there without any configuration.

use fluffy_provider::Protocol;

/// A provider that is built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BuiltIn {
    /// What it is called.
    pub(crate) name: &'static str,
    /// What people call it.
    pub(crate) title: &'static str,
    /// What is spoken there.
    pub(crate) protocol: Protocol,
    /// Where it is.
    pub(crate) url: &'static str,
    /// The environment's variables that may hold its key, the first that is set counts; none where it wants no
    /// key.
    pub(crate) variables: &'static [&'static str],
    /// Whose prices and windows its models have.
    pub(crate) is_local: bool,
}

/// All of them.
pub(crate) const BUILT_IN: [BuiltIn; 7] = [
    vendor(
        "anthropic",
        "Anthropic",
        Protocol::Anthropic,
        "https://api.anthropic.com",
        &["ANTHROPIC_API_KEY"],
    ),
    vendor("openai", "OpenAI", Protocol::OpenaiResponses, OPENAI, &["OPENAI_API_KEY"]),
    vendor(
        "openai-chat",
        "OpenAI, chat completions",
        Protocol::OpenaiChat,
        OPENAI,
        &["OPENAI_API_KEY"],
    ),
    vendor(
        "gemini",
        "Google Gemini",
        Protocol::Gemini,
        "https://generativelanguage.googleapis.com",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    ),
    local("ollama", "Ollama", "http://127.0.0.1:11434/v1"),
    local("llamacpp", "llama.cpp", "http://127.0.0.1:8080/v1"),
    local("vllm", "vLLM", "http://127.0.0.1:8000/v1"),
];

const OPENAI: &str = "https://api.openai.com/v1";

impl BuiltIn {
    /// The one of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        BUILT_IN.iter().find(|built_in| built_in.name == name)
    }
}

const fn vendor(
    name: &'static str,
    title: &'static str,
    protocol: Protocol,
    url: &'static str,
    variables: &'static [&'static str],
) -> BuiltIn {
    BuiltIn { name, title, protocol, url, variables, is_local: false }
}

const fn local(name: &'static str, title: &'static str, url: &'static str) -> BuiltIn {
    let protocol = Protocol::OpenaiCompatible;
    BuiltIn { name, title, protocol, url, variables: &[], is_local: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::address::Address;

    #[test]
    fn every_built_in_provider_has_an_address_that_may_be_used() {
        for built_in in BUILT_IN {
            let address: Address = built_in.url.parse().unwrap();
            assert_eq!(address.is_local(), built_in.is_local, "{}", built_in.name);
            assert_eq!(built_in.variables.is_empty(), built_in.is_local);
            assert_eq!(BuiltIn::named(built_in.name).unwrap().url, built_in.url);
        }
    }
}
