//! Why a setting cannot be used, found or changed.

use fluffy_workflow::Mode;

use crate::explain::{DENIED, FAILED, USAGE};

/// Why a setting cannot be used, found or changed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum SettingError {
    #[error("the variable `{name}` cannot be used")]
    Variable { name: String, problem: String, wanted: String },
    #[error("the variable `{name}` means nothing")]
    UnknownVariable { name: String, near: String },
    #[error("there is no setting `{name}`")]
    Unknown { name: String, near: Option<&'static str> },
    #[error("`{name}` cannot be said there")]
    Misplaced { name: String, why: String },
    #[error("`{name}` cannot be set to that")]
    Wrong { name: String, problem: String },
    #[error("`{name}` may hold a secret")]
    Secret { name: String, file: String },
    #[error("`{file}` was left as it is")]
    ByHand { file: String, problem: String, remedy: String },
    #[error("`{0}` has no value")]
    NotSaid(String),
    #[error("there is no place for your own settings")]
    NoHome,
    #[error("the project wants its tasks done in {0} mode")]
    Loosened(Mode),
}

impl SettingError {
    /// Why.
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Variable { problem, .. }
            | Self::Wrong { problem, .. }
            | Self::ByHand { problem, .. } => problem.clone(),
            Self::UnknownVariable { near, .. } => format!("did you mean `{near}`?"),
            Self::Unknown { near: Some(near), .. } => format!("did you mean `{near}`?"),
            Self::Unknown { near: None, .. } => "no setting has a name like that".to_owned(),
            Self::Misplaced { name, why } => format!("`{name}` {why}"),
            Self::Secret { .. } => {
                "others could see an argument in the list of processes".to_owned()
            }
            Self::NotSaid(_) => "nobody says it, and it has no default".to_owned(),
            Self::NoHome => "neither HOME nor XDG_CONFIG_HOME names a directory".to_owned(),
            Self::Loosened(_) => "`--yes` was not said to that".to_owned(),
        }
    }

    /// What to do about it, and the exit code.
    pub(crate) fn remedy(&self) -> (String, u8) {
        let say = |text: &str, code| (text.to_owned(), code);
        match self {
            Self::Variable { wanted, .. } => (format!("set it to {wanted}, or unset it"), USAGE),
            Self::UnknownVariable { .. } => say("correct its name, or unset it", USAGE),
            Self::Unknown { .. } => say("see what there is: fluffy config list --all", USAGE),
            Self::Misplaced { .. } => {
                say("leave the choice of the file out, or see: fluffy config path", USAGE)
            }
            Self::Wrong { name, .. } => {
                (format!("see what is accepted: fluffy config reference, at `{name}`"), USAGE)
            }
            Self::Secret { file, .. } => {
                (format!("write it into `{file}` by hand, which only you should read"), USAGE)
            }
            Self::ByHand { remedy, .. } => (remedy.clone(), FAILED),
            Self::NotSaid(name) => (format!("say it: fluffy config set {name} VALUE"), FAILED),
            Self::NoHome => say("set HOME, or XDG_CONFIG_HOME to an absolute path", USAGE),
            Self::Loosened(mode) => {
                (format!("say it yourself: --mode {mode}, or --mode strict"), DENIED)
            }
        }
    }
}
