//! Why a provider cannot be used before anybody has asked it.

use std::path::PathBuf;

use crate::keys::KeysError;

/// Why a provider cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    #[error("there is no provider `{name}`")]
    Unknown { name: String, known: String },
    #[error("the provider `{provider}` has no `{what}`")]
    Incomplete { provider: String, what: &'static str },
    #[error("no model of `{0}` was named")]
    NoModel(String),
    #[error("there is no key for `{provider}`")]
    NoKey { provider: String, variables: Vec<String>, stored: bool },
    #[error("no key is kept for `{0}`")]
    NotStored(String),
    #[error("the header `{header}` of `{provider}` cannot be sent")]
    Header { provider: String, header: String, problem: String },
    #[error("`{}` holds no certificates", .0.display())]
    Certificates(PathBuf),
    #[error("the environment's proxy cannot be used")]
    Proxy(String),
    #[error(transparent)]
    Keys(#[from] KeysError),
}

impl SetupError {
    /// Why, where no cause says it.
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Unknown { .. } => "it is neither built in nor in your settings".to_owned(),
            Self::Incomplete { .. } => {
                "it is not built in, so your settings have to say it".to_owned()
            }
            Self::NoModel(_) => "a provider has many, and none is chosen for you".to_owned(),
            Self::NoKey { variables, stored, .. } => {
                let mut places: Vec<_> = variables
                    .iter()
                    .map(|name| format!("the variable `{name}` is not set"))
                    .collect();
                if *stored {
                    places.push("none is kept".to_owned());
                }
                places.join(", and ")
            }
            Self::NotStored(_) => {
                "it needs none, or your settings name another place for it".to_owned()
            }
            Self::Header { problem, .. } | Self::Proxy(problem) => problem.clone(),
            Self::Certificates(_) => {
                "certificates are text between lines of `-----BEGIN CERTIFICATE-----`".to_owned()
            }
            Self::Keys(error) => error.why().to_owned(),
        }
    }

    /// What to do about it.
    pub(crate) fn fix(&self) -> String {
        match self {
            Self::Unknown { known, .. } => format!(
                "name one of: {known}, replay:FILE; or add yours to `providers:` in ~/.config/fluffy/config.yaml"
            ),
            Self::Incomplete { what, .. } => {
                format!("add `{what}:` to it in ~/.config/fluffy/config.yaml")
            }
            Self::NoModel(provider) => {
                format!(
                    "name one with -m MODEL, or in your settings; see which there are: fluffy models {provider}"
                )
            }
            Self::NoKey { provider, stored: true, .. } => {
                format!("set it with: fluffy auth set {provider}")
            }
            Self::NoKey { .. } => "set the variable, or change `key:` in your settings".to_owned(),
            Self::NotStored(_) => "write `key: stored` in your settings if it should be".to_owned(),
            Self::Header { .. } | Self::Certificates(_) => {
                "correct ~/.config/fluffy/config.yaml".to_owned()
            }
            Self::Proxy(_) => "correct HTTPS_PROXY, or name a `proxy:` in your settings".to_owned(),
            Self::Keys(error) => error.fix().to_owned(),
        }
    }
}
