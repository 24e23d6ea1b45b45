//! Who was named as the provider of a model, and who is meant by that.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use fluffy_provider::{Model, Provider, Replay};
use fluffy_sandbox::Runtime;
use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::explain::CliError;
use crate::keys::Keys;
use crate::place::Place;
use crate::providers::connect::connect;
use crate::providers::{Catalogue, Name, Setup, SetupError};

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

    /// Whoever is meant, with all that is needed to ask them: looked up where the person is.
    pub(crate) fn settle(&self, environment: &Environment) -> Result<ModelSource, CliError> {
        if let Some(ProviderSpec::Replay(path)) = &self.provider {
            return replayed(path);
        }
        let catalogue = Catalogue::of(environment)?;
        let named = self.provider.clone().or_else(|| catalogue.usual());
        let name = match named.ok_or(CliError::NoProvider)? {
            ProviderSpec::Replay(path) => return replayed(&path),
            ProviderSpec::Named(name) => name,
        };
        let found = catalogue.find(name.as_str())?;
        let model = catalogue.model(&found, self.model.as_deref())?;
        let setup = catalogue.setup(&found, &Keys::of(environment)?)?;
        let name = name.as_str().to_owned();
        Ok(ModelSource::Remote { name, setup: Box::new(setup), model })
    }
}

/// Who drives a task, with all that is needed to ask them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ModelSource {
    /// A recorded transcript.
    Replay {
        /// Where it was found.
        file: PathBuf,
        /// What it says; sent before, as it may be long.
        #[serde(skip)]
        text: String,
    },
    /// A model at a provider.
    Remote {
        /// The provider, as a person would name it.
        name: String,
        /// Where and how.
        setup: Box<Setup>,
        /// Which model.
        model: Model,
    },
}

impl ModelSource {
    /// Whoever is meant, ready to be asked. A transcript begins behind the turns that were played already.
    pub(crate) fn open(
        self,
        place: &Place,
        runtime: &Arc<dyn Runtime>,
        played: usize,
    ) -> Result<Chosen, CliError> {
        match self {
            Self::Replay { file, text } => {
                let failed = |source| CliError::Transcript { path: file.clone(), source };
                let replay = Replay::parse(&text).map_err(failed)?.skip(played);
                Ok(Chosen { provider: Box::new(replay), spec: ProviderSpec::Replay(file) })
            }
            Self::Remote { name, setup, model } => {
                let provider = Box::new(connect(*setup, model, place, runtime)?);
                Ok(Chosen { provider, spec: ProviderSpec::parse(&name)? })
            }
        }
    }
}

/// A transcript, understood once before anything is begun.
fn replayed(path: &std::path::Path) -> Result<ModelSource, CliError> {
    let failed = |source| CliError::Transcript { path: path.to_owned(), source };
    let text = Replay::read(path).map_err(failed)?;
    Replay::parse(&text).map_err(failed)?;
    // A session may go on elsewhere.
    let file = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    Ok(ModelSource::Replay { file, text })
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
