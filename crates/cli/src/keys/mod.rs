//! Keys of providers: from the environment, the keyring of the desktop, or a file that only the user can read.
//!
//! **Invariant.** A key is a [`Secret`] from where it is read to where it is sent. It is no argument of any command,
//! and what is shown of one is its end.

mod bus;
mod keyring;
mod typed;
mod wire;

use std::cell::RefCell;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use fluffy_base::{MASK, Secret, SystemClock};
use fluffy_ledger::{KeyError, LedgerError, read_private, remove_private, write_private};
use rustix::process::{Resource, Rlimit, setrlimit};

pub(crate) use self::keyring::KeyringError;
pub(crate) use self::typed::read_key;

use self::keyring::Keyring;
use crate::environment::{Environment, variable};
use crate::explain::CliError;
use crate::place::state_dir;

/// The longest key, in bytes.
pub(crate) const MAX_KEY: usize = 8192;
/// How much of a key is shown, and how long one must be for that.
const SHOWN: usize = 4;
const LONG_ENOUGH: usize = 20;

/// Where the key of a provider is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sources {
    /// In these variables of the environment, the first that is set.
    pub(crate) variables: Vec<String>,
    /// Then where `fluffy auth set` keeps it.
    pub(crate) stored: bool,
}

/// Where a key was found, or is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A variable of the environment.
    Variable(String),
    /// The keyring.
    Keyring,
    /// A file of the user's.
    File(PathBuf),
}

/// Why a key cannot be had or kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    #[error("the key is empty")]
    Empty,
    #[error("the key has more than {MAX_KEY} bytes")]
    Long,
    #[error("the key has a character that no key has")]
    Character,
    #[error("the key cannot be read")]
    Input(#[source] std::io::Error),
    #[error("no key was typed")]
    Cancelled,
    #[error("the file of the key cannot be used")]
    File(#[from] KeyError),
    #[error("the file of the key cannot be written")]
    Keep(#[from] LedgerError),
    #[error(transparent)]
    Keyring(#[from] KeyringError),
}

/// The keys of the user.
pub(crate) struct Keys<'a> {
    environment: &'a Environment,
    dir: PathBuf,
    /// Why the keyring could not be opened: it is not waited for twice.
    closed: RefCell<Option<KeyringError>>,
}

/// A key that is kept now.
#[derive(Debug)]
pub(crate) struct Kept {
    /// Where.
    pub(crate) origin: Origin,
    /// Why not in the keyring, if there is one.
    pub(crate) instead: Option<KeyringError>,
}

impl<'a> Keys<'a> {
    /// The keys of this user. From now on a crash of this process leaves no picture of its memory.
    pub(crate) fn of(environment: &'a Environment) -> Result<Self, CliError> {
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        // Less is always allowed; where it is not, there is none already.
        let _less = setrlimit(Resource::Core, none);
        let dir = state_dir(environment)?.join("keys").join("providers");
        Ok(Self { environment, dir, closed: RefCell::default() })
    }

    /// The key of a provider, and where it comes from.
    pub(crate) fn find(
        &self,
        provider: &str,
        sources: &Sources,
    ) -> Result<Option<(Secret, Origin)>, KeysError> {
        for name in &sources.variables {
            if let Some(key) = variable(name) {
                return Ok(Some((checked(key)?, Origin::Variable(name.clone()))));
            }
        }
        if !sources.stored {
            return Ok(None);
        }
        let file = self.file(provider);
        if let Some(key) = in_file(&file)? {
            return Ok(Some((key, Origin::File(file))));
        }
        match self.keyring().and_then(|mut keyring| keyring.find(provider)) {
            Ok(Some(key)) => Ok(Some((checked(key)?, Origin::Keyring))),
            Ok(None) | Err(KeyringError::Absent) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Keeps the key of a provider: in the keyring if there is one that can be used, else in a file.
    pub(crate) fn keep(&self, provider: &str, key: &Secret) -> Result<Kept, KeysError> {
        let file = self.file(provider);
        match self.keyring().and_then(|mut keyring| keyring.store(provider, key)) {
            Ok(()) => {
                // It would be found before the keyring.
                remove_private(&file)?;
                Ok(Kept { origin: Origin::Keyring, instead: None })
            }
            Err(error) => {
                write_private(&file, format!("{}\n", key.expose()).as_bytes())?;
                let instead = Some(error).filter(|error| !matches!(error, KeyringError::Absent));
                Ok(Kept { origin: Origin::File(file), instead })
            }
        }
    }

    /// Forgets what is kept of a provider; says where it was.
    pub(crate) fn forget(&self, provider: &str) -> Result<Vec<Origin>, KeysError> {
        let mut from = Vec::new();
        let file = self.file(provider);
        if std::fs::symlink_metadata(&file).is_ok() {
            remove_private(&file)?;
            from.push(Origin::File(file));
        }
        match self.keyring().and_then(|mut keyring| keyring.remove(provider)) {
            Ok(true) => from.push(Origin::Keyring),
            Ok(false) | Err(KeyringError::Absent) => {}
            // What is certain was done; that the keyring was asked in vain must be known all the same.
            Err(error) => return Err(error.into()),
        }
        Ok(from)
    }

    fn keyring(&self) -> Result<Keyring, KeyringError> {
        if let Some(why) = self.closed.borrow().as_ref() {
            return Err(why.clone());
        }
        Keyring::open(self.environment, Arc::new(SystemClock)).inspect_err(|why| {
            *self.closed.borrow_mut() = Some(why.clone());
        })
    }

    fn file(&self, provider: &str) -> PathBuf {
        self.dir.join(format!("{provider}.key"))
    }
}

fn in_file(path: &std::path::Path) -> Result<Option<Secret>, KeysError> {
    let Some(mut bytes) = read_private(path, MAX_KEY as u64 + 1)? else { return Ok(None) };
    let text = String::from_utf8(std::mem::take(&mut *bytes)).map_err(|_| KeysError::Character)?;
    checked(Secret::new(text)).map(Some)
}

/// The key without white space around it, if it can be one: what is sent as a header is visible ASCII.
pub(crate) fn checked(key: Secret) -> Result<Secret, KeysError> {
    let text = key.expose().trim();
    if text.is_empty() {
        return Err(KeysError::Empty);
    }
    if text.len() > MAX_KEY {
        return Err(KeysError::Long);
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(KeysError::Character);
    }
    Ok(Secret::new(text.to_owned()))
}

/// What is shown of a key: how it ends, if that gives nothing away.
pub(crate) fn shown(key: &Secret) -> String {
    let text = key.expose();
    let end = text.len().checked_sub(SHOWN).filter(|_| text.len() >= LONG_ENOUGH);
    format!("{MASK}{}", end.and_then(|end| text.get(end..)).unwrap_or_default())
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "the variable `{name}`"),
            Self::Keyring => f.write_str("the keyring"),
            Self::File(path) => write!(f, "the file `{}`", path.display()),
        }
    }
}

impl KeysError {
    /// Why, where no cause says it.
    pub(crate) fn why(&self) -> &'static str {
        match self {
            Self::Empty => "there is nothing but white space",
            Self::Long => "it is no key, or more than one",
            Self::Character => {
                "keys are letters, digits and signs without white space; something else was copied along"
            }
            Self::Cancelled => "it was broken off",
            Self::Keyring(KeyringError::Locked) => {
                "it holds the key, or would, and nobody is asked for its password from here"
            }
            Self::Keyring(_) => "there is one, and it does not do its work",
            Self::Input(_) | Self::File(_) | Self::Keep(_) => "the operation failed",
        }
    }

    /// What to do about it.
    pub(crate) fn fix(&self) -> &'static str {
        match self {
            Self::Empty | Self::Long | Self::Character | Self::Cancelled | Self::Input(_) => {
                "copy the key again and run: fluffy auth set PROVIDER"
            }
            Self::File(_) => "do what the reason says, or remove the file and set the key again",
            Self::Keep(_) => "check the directory, its owner and the free space",
            Self::Keyring(_) => {
                "unlock the keyring, or set the key in the provider's environment variable"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn user() -> (tempfile::TempDir, Environment) {
        let dir = tempfile::tempdir().unwrap();
        let state_home = Some(dir.path().to_owned());
        (dir, Environment { state_home, ..Environment::default() })
    }

    const STORED: Sources = Sources { variables: Vec::new(), stored: true };

    #[test]
    fn plg_4_a_key_is_kept_in_a_file_of_the_users_alone_and_forgotten_again() {
        let (_dir, environment) = user();
        let keys = Keys::of(&environment).unwrap();
        assert!(keys.find("anthropic", &STORED).unwrap().is_none());
        let kept = keys.keep("anthropic", &Secret::new("sk-one".to_owned())).unwrap();
        assert!(kept.instead.is_none());
        let Origin::File(file) = &kept.origin else { panic!("{kept:?}") };
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(file.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        keys.keep("anthropic", &Secret::new("sk-two".to_owned())).unwrap();
        let (key, origin) = keys.find("anthropic", &STORED).unwrap().unwrap();
        assert_eq!((key.expose(), &origin), ("sk-two", &kept.origin));
        assert!(keys.find("openai", &STORED).unwrap().is_none());
        let unstored = Sources { stored: false, ..STORED };
        assert!(keys.find("anthropic", &unstored).unwrap().is_none());
        assert_eq!(keys.forget("anthropic").unwrap(), [kept.origin]);
        assert!(keys.find("anthropic", &STORED).unwrap().is_none());
        assert!(keys.forget("anthropic").unwrap().is_empty());
    }

    #[test]
    fn plg_4_a_file_that_others_can_read_is_refused() {
        let (_dir, environment) = user();
        let keys = Keys::of(&environment).unwrap();
        keys.keep("a", &Secret::new("sk-one".to_owned())).unwrap();
        let file = keys.file("a");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let error = keys.find("a", &STORED).unwrap_err();
        assert!(matches!(error, KeysError::File(KeyError::Exposed { .. })), "{error}");
        // Setting it again mends that.
        keys.keep("a", &Secret::new("sk-two".to_owned())).unwrap();
        assert_eq!(keys.find("a", &STORED).unwrap().unwrap().0.expose(), "sk-two");
    }

    #[test]
    fn a_key_is_trimmed_and_what_is_none_is_refused_without_being_repeated() {
        let check = |text: &str| checked(Secret::new(text.to_owned()));
        assert_eq!(check(" sk-4711\r\n").unwrap().expose(), "sk-4711");
        for text in [
            "",
            " \n",
            "sk 4711",
            "sk-4711\nsk-4712",
            "sk-\u{1b}[2J4711",
            "sk-4711\u{200b}",
            "clé4711",
        ] {
            let error = check(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("4711"), "{error}");
        }
        assert!(matches!(check(&"x".repeat(MAX_KEY + 1)), Err(KeysError::Long)));
        assert!(check(&"x".repeat(MAX_KEY)).is_ok());
    }

    #[test]
    fn of_a_key_at_most_its_end_is_shown() {
        let show = |text: &str| shown(&Secret::new(text.to_owned()));
        assert_eq!(show("sk-ant-0123456789abcdef"), "***cdef");
        assert_eq!(show("short"), "***");
        assert_eq!(show(""), "***");
    }
}
