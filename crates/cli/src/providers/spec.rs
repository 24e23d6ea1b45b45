//! Who was named as the provider of a model, and who is meant by that.

use std::fmt;
use std::path::PathBuf;

use fluffy_provider::{Provider, Replay};

use crate::environment::Environment;
use crate::explain::CliError;
use crate::keys::Keys;
use crate::place::Place;
use crate::providers::connect::connect;
use crate::providers::{Catalogue, Name, SetupError};

/// Who provides the model, as it was typed, set or recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProviderSpec {
    /// A recorded transcript.
    Replay(PathBuf),
    /// A provider of the catalogue.
    Named(Name),
}

/// What was said of the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Who provides it, if anybody was named.
    pub(crate) provider: Option<ProviderSpec>,
    /// Which one, if one was named.
    pub(crate) model: Option<String>,
}

/// A provider, and how it is named to go on with it.
pub(crate) struct Chosen {
    /// Whom to ask.
    pub(crate) provider: Box<dyn Provider>,
    /// As a person would name it.
    pub(crate) spec: ProviderSpec,
}

impl ProviderSpec {
    /// The provider that was named.
    pub(crate) fn parse(text: &str) -> Result<Self, CliError> {
        match text.split_once(':') {
            Some(("replay", file)) if !file.is_empty() => return Ok(Self::Replay(file.into())),
            Some(_) | None => {}
        }
        Name::parse(text).map(Self::Named).map_err(|_| {
            let name = fluffy_base::Excerpt::new(text, 80).to_string();
            SetupError::Unknown { name, known: super::built_in_names() }.into()
        })
    }
}

impl fmt::Display for ProviderSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replay(path) => write!(f, "replay:{}", path.display()),
            Self::Named(name) => f.write_str(name.as_str()),
        }
    }
}

impl Choice {
    /// What was typed.
    pub(crate) fn typed(provider: Option<&str>, model: Option<&str>) -> Result<Self, CliError> {
        let provider = provider.map(ProviderSpec::parse).transpose()?;
        Ok(Self { provider, model: model.map(str::to_owned) })
    }

    /// The same with what was recorded of a session, where nothing else is said. A model belongs to its
    /// provider: where another is named, the recorded one means nothing.
    pub(crate) fn or_recorded(mut self, provider: &str, model: &str) -> Self {
        let Ok(recorded) = ProviderSpec::parse(provider) else { return self };
        let same = self.provider.as_ref().is_none_or(|named| *named == recorded);
        if same {
            self.provider = Some(recorded);
            self.model = self.model.or_else(|| Some(model.to_owned()));
        }
        self
    }

    /// Whoever is meant, ready to be asked. A transcript begins behind the turns that were played already.
    pub(crate) fn open(
        &self,
        place: &Place,
        environment: &Environment,
        played: usize,
    ) -> Result<Chosen, CliError> {
        let catalogue = match &self.provider {
            Some(ProviderSpec::Replay(path)) => return replayed(path, played),
            Some(ProviderSpec::Named(_)) | None => Catalogue::of(environment)?,
        };
        let name = match &self.provider {
            Some(ProviderSpec::Named(name)) => name.as_str(),
            _ => catalogue.usual().ok_or(CliError::NoProvider)?,
        };
        let found = catalogue.find(name)?;
        let model = catalogue.model(&found, self.model.as_deref())?;
        let setup = catalogue.setup(&found, &Keys::of(environment)?)?;
        let provider = Box::new(connect(setup, model, place, environment)?);
        Ok(Chosen { provider, spec: ProviderSpec::parse(name)? })
    }
}

fn replayed(path: &std::path::Path, played: usize) -> Result<Chosen, CliError> {
    let failed = |source| CliError::Transcript { path: path.to_owned(), source };
    let replay = Replay::open(path).map_err(failed)?.skip(played);
    // A session may go on elsewhere.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    Ok(Chosen { provider: Box::new(replay), spec: ProviderSpec::Replay(path) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> ProviderSpec {
        ProviderSpec::parse(text).unwrap()
    }

    #[test]
    fn what_is_named_is_a_transcript_or_a_provider() {
        assert_eq!(spec("replay:a:b.jsonl"), ProviderSpec::Replay("a:b.jsonl".into()));
        assert_eq!(spec("anthropic"), ProviderSpec::Named(Name::parse("anthropic").unwrap()));
        for text in ["replay:", "gtp:x", "", "A", "../x", "a b"] {
            assert!(ProviderSpec::parse(text).is_err(), "{text}");
        }
        for text in ["replay:/a", "ollama"] {
            assert_eq!(spec(text).to_string(), text);
        }
    }

    #[test]
    fn a_session_goes_on_with_its_own_provider_and_model_unless_told_otherwise() {
        let choice = |provider, model| Choice::typed(provider, model).unwrap();
        let recorded = |choice: Choice| choice.or_recorded("anthropic", "big");
        let names = |choice: Choice| {
            let provider = choice.provider.map(|spec| spec.to_string()).unwrap_or_default();
            (provider, choice.model.unwrap_or_default())
        };
        let expect = |provider: &str, model: &str| (provider.to_owned(), model.to_owned());
        assert_eq!(names(recorded(choice(None, None))), expect("anthropic", "big"));
        assert_eq!(names(recorded(choice(None, Some("small")))), expect("anthropic", "small"));
        assert_eq!(names(recorded(choice(Some("anthropic"), None))), expect("anthropic", "big"));
        assert_eq!(names(recorded(choice(Some("openai"), None))), expect("openai", ""));
    }
}
