//! The policy in force, and the tokens issued under it.
//!
//! **Invariant.** Rules and digest change together, and with them every token ends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use fluffy_base::{Digest, ProjectPath};
use fluffy_policy::{Capabilities, PolicyFile, Rule, Sanitiser, TokenBook};

/// Makes rules of the extension files that a policy names.
pub trait Extensions: Send + Sync {
    /// The rules in these files and a digest of their texts, or what is wrong with them.
    fn load(&self, files: &[ProjectPath]) -> Result<LoadedExtensions, String>;
}

/// Rules in another language, ready to be asked.
#[derive(Default)]
pub struct LoadedExtensions {
    /// The rules.
    pub rules: Vec<Box<dyn Rule>>,
    /// The names and texts of their files; empty without any.
    pub digest: Option<Digest>,
}

/// A kernel without extension rules: a policy that names any is refused.
#[derive(Debug, Clone, Copy)]
pub struct NoExtensions;

impl Extensions for NoExtensions {
    fn load(&self, files: &[ProjectPath]) -> Result<LoadedExtensions, String> {
        match files.first() {
            None => Ok(LoadedExtensions::default()),
            Some(file) => Err(format!("`{file}`: this kernel runs no extension rules")),
        }
    }
}

/// A policy with all its rules.
pub(crate) struct InForce {
    pub(crate) rules: Vec<Box<dyn Rule>>,
    pub(crate) capabilities: Option<Arc<Capabilities>>,
    pub(crate) sanitiser: Arc<Sanitiser>,
    pub(crate) digest: Digest,
    /// The digest of its file alone, without the extensions that it names.
    pub(crate) file: Digest,
    /// The hosts of its `network_whitelist`.
    pub(crate) hosts: Arc<[String]>,
}

impl InForce {
    pub(crate) fn new(policy: &PolicyFile, extensions: &dyn Extensions) -> Result<Self, String> {
        let loaded = extensions.load(policy.extensions())?;
        let mut rules = policy.rules();
        rules.extend(loaded.rules);
        let digest = match loaded.digest {
            None => policy.digest(),
            Some(texts) => Digest::of_parts(&[policy.digest().as_bytes(), texts.as_bytes()]),
        };
        let capabilities = policy.capabilities().cloned();
        let (sanitiser, file) = (Arc::clone(policy.sanitiser()), policy.digest());
        let hosts = policy.network().values().flatten().cloned().collect();
        Ok(Self { rules, capabilities, sanitiser, digest, file, hosts })
    }
}

/// What is in force.
pub(crate) struct PolicyStore {
    in_force: RwLock<Arc<InForce>>,
    tokens: Mutex<TokenBook>,
}

impl PolicyStore {
    pub(crate) fn new(policy: InForce) -> Self {
        let tokens = Mutex::new(TokenBook::default());
        Self { in_force: RwLock::new(Arc::new(policy)), tokens }
    }

    /// Lets the rules go, with whatever runs them: every request is denied from here on.
    pub(crate) fn retire(&self) {
        let mut in_force = self.in_force.write().unwrap_or_else(PoisonError::into_inner);
        let InForce { sanitiser, digest, file, .. } = &**in_force;
        let (sanitiser, digest, file) = (Arc::clone(sanitiser), *digest, *file);
        let none = InForce {
            rules: Vec::new(),
            capabilities: None,
            sanitiser,
            digest,
            file,
            hosts: Arc::default(),
        };
        let last = std::mem::replace(&mut *in_force, Arc::new(none));
        drop(in_force);
        drop(last);
    }

    pub(crate) fn in_force(&self) -> Arc<InForce> {
        Arc::clone(&self.in_force.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn tokens(&self) -> MutexGuard<'_, TokenBook> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a policy in force and ends every token.
    pub(crate) fn replace(&self, policy: InForce) {
        let mut in_force = self.in_force.write().unwrap_or_else(PoisonError::into_inner);
        *in_force = Arc::new(policy);
        self.tokens().end_all();
    }
}
