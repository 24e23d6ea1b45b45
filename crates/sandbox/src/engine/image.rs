//! The image that containers are made of.
//!
//! The base image is a skeleton, made of nothing but what this machine has: mount points, links and made-up settings, a
//! few kilobytes. The programs are the machine's own, shown read-only as the native driver shows them. Who names an
//! image of their own sees the programs of that one instead.
//!
//! **Invariant.** A container is made of a digest, never of a name: what was looked at is what runs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use fluffy_base::Digest;

use crate::native::lock;
use crate::native::spec::Furniture;
use crate::native::system::{System, invented};
use crate::runtime::{Health, RuntimeError};

use super::api::Api;
use super::error::{ApiError, EngineError};

/// The name of base images; each has the hash of what it is made of as its tag.
pub(super) const REPOSITORY: &str = "localhost/fluffy-base";

/// Where things are mounted in every sandbox.
const DIRECTORIES: [(&str, u32); 14] = [
    ("dev", 0o755),
    ("etc", 0o755),
    ("etc/ssl", 0o755),
    ("home", 0o755),
    ("output", 0o755),
    ("proc", 0o555),
    ("root", 0o700),
    ("run", 0o755),
    ("run/fluffy", 0o755),
    ("run/fluffy/lib", 0o755),
    ("sys", 0o555),
    ("tmp", 0o1777),
    ("var", 0o755),
    ("var/tmp", 0o755),
];

/// Which image containers are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageChoice {
    /// The skeleton, in which the machine's own programs are shown.
    Base,
    /// This one, with its own programs.
    Named(ImageName, Fetch),
}

/// Whether an image that is not there is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetch {
    /// The engine asks whom the name says.
    Allowed,
    /// It has to be there.
    Never,
}

/// The name of an image, with a tag or a digest or without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageName(String);

/// A text that names no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no name of an image (such as `docker.io/library/debian:12` or `team/tools@sha256:…`)"
)]
pub struct BadImageName(String);

impl std::str::FromStr for ImageName {
    type Err = BadImageName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let letter = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
        let plain = text.chars().all(letter) && text.len() <= 400;
        let parts = text.split(['/', ':', '@']).all(|part| {
            part.starts_with(|c: char| c.is_ascii_alphanumeric()) && !part.contains("..")
        });
        if plain && parts { Ok(Self(text.to_owned())) } else { Err(BadImageName(text.to_owned())) }
    }
}

impl std::fmt::Display for ImageName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// An image that is there, or on its way.
#[derive(Debug)]
pub(super) struct Image {
    choice: ImageChoice,
    name: String,
    found: Arc<(Mutex<Found>, Condvar)>,
}

#[derive(Debug)]
enum Found {
    /// It is being made or fetched; how far it is, in hundredths, where the engine says so.
    Pending(Option<u8>),
    /// Its digest.
    Ready(String),
    Failed(Arc<EngineError>),
}

impl Image {
    /// Looks for the image; if it is not there, has it made or fetched, which goes on meanwhile.
    pub(super) fn prepare(
        api: &Arc<Api>,
        choice: ImageChoice,
        system: &System,
    ) -> Result<Self, EngineError> {
        let (name, archive) = match &choice {
            ImageChoice::Base => {
                let archive = skeleton(system);
                let tag: String = Digest::of(&archive).to_string().chars().take(16).collect();
                (format!("{REPOSITORY}:{tag}"), Some((archive, tag)))
            }
            ImageChoice::Named(name, _) => (name.to_string(), None),
        };
        let there = api.image(&name).map_err(api.cannot("look for an image"))?;
        if there.is_none() && matches!(choice, ImageChoice::Named(_, Fetch::Never)) {
            let absent =
                ApiError::Refused { status: 404, message: format!("No such image: {name}") };
            return Err(api.cannot("find the image that the project names")(absent));
        }
        let known = there.map_or(Found::Pending(None), Found::Ready);
        let (pending, kept) = (matches!(known, Found::Pending(_)), name.clone());
        let found = Arc::new((Mutex::new(known), Condvar::new()));
        if pending {
            let (engine, api, shared) = (api.kind(), Arc::clone(api), Arc::clone(&found));
            let work = move || {
                let told = |hundredths| {
                    *lock(&shared.0) = Found::Pending(Some(hundredths));
                    shared.1.notify_all();
                };
                let made = fetch(&api, &name, archive, told);
                *lock(&shared.0) = match made {
                    Ok(digest) => Found::Ready(digest),
                    Err(error) => Found::Failed(Arc::new(error)),
                };
                shared.1.notify_all();
            };
            let thread = std::thread::Builder::new().name("image".to_owned()).spawn(work);
            if thread.is_err() {
                let refused = "no thread can be started".to_owned();
                *lock(&found.0) = Found::Failed(Arc::new(EngineError {
                    engine,
                    doing: "fetch an image",
                    source: Box::new(ApiError::Refused { status: 0, message: refused }),
                }));
            }
        }
        Ok(Self { choice, name: kept, found })
    }

    pub(super) fn choice(&self) -> &ImageChoice {
        &self.choice
    }

    /// Its name, as the engine is asked for it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Its digest, once it is there.
    pub(super) fn digest(&self) -> Result<String, RuntimeError> {
        let mut found = lock(&self.found.0);
        loop {
            match &*found {
                Found::Ready(digest) => return Ok(digest.clone()),
                Found::Failed(error) => return Err(RuntimeError::Engine(again(error))),
                Found::Pending(_) => {
                    found =
                        self.found.1.wait(found).unwrap_or_else(std::sync::PoisonError::into_inner);
                }
            }
        }
    }

    /// Its digest, if it is there already.
    pub(super) fn known(&self) -> Option<String> {
        match &*lock(&self.found.0) {
            Found::Ready(digest) => Some(digest.clone()),
            Found::Pending(_) | Found::Failed(_) => None,
        }
    }

    /// Waits until it has got further, so long at most.
    pub(super) fn wait_for_progress(&self, patience: Duration) {
        let found = lock(&self.found.0);
        if let Found::Pending(before) = *found {
            let same = |found: &mut Found| matches!(found, Found::Pending(now) if *now == before);
            drop(self.found.1.wait_timeout_while(found, patience, same));
        }
    }

    /// What is still to be waited for.
    pub(super) fn pending(&self) -> Result<Option<Health>, RuntimeError> {
        match &*lock(&self.found.0) {
            Found::Ready(_) => Ok(None),
            Found::Failed(error) => Err(RuntimeError::Engine(again(error))),
            Found::Pending(progress) => {
                let reason = match &self.choice {
                    ImageChoice::Base => "the base image is being made".to_owned(),
                    ImageChoice::Named(name, _) => format!("the image `{name}` is being fetched"),
                };
                Ok(Some(Health::Pending { reason, progress: *progress }))
            }
        }
    }
}

/// The same error for one more who asks.
fn again(error: &EngineError) -> EngineError {
    let message = match &*error.source {
        ApiError::Refused { message, .. } => message.clone(),
        other => other.to_string(),
    };
    let source = Box::new(ApiError::Refused { status: 404, message });
    EngineError { engine: error.engine, doing: error.doing, source }
}

fn fetch(
    api: &Api,
    name: &str,
    archive: Option<(Vec<u8>, String)>,
    told: impl FnMut(u8),
) -> Result<String, EngineError> {
    match archive {
        Some((archive, tag)) => {
            api.import(&archive, REPOSITORY, &tag).map_err(api.cannot("make the base image"))?
        }
        None => api.pull(name, told).map_err(api.cannot("fetch the image that is named"))?,
    }
    let found = api.image(name).map_err(api.cannot("look for an image"))?;
    let absent = || ApiError::Refused { status: 404, message: format!("No such image: {name}") };
    found.ok_or_else(absent).map_err(api.cannot("find the image that was just fetched"))
}

/// The archive of the base image. The same on the same machine.
fn skeleton(system: &System) -> Vec<u8> {
    let mut archive = Archive::default();
    for (path, mode) in DIRECTORIES {
        archive.directory(Path::new(path), mode);
    }
    for piece in &system.shown {
        match piece {
            Furniture::Link(to, at) => archive.link(at.as_path(), to.as_path()),
            Furniture::Shown(bind) if bind.kind == crate::native::spec::Kind::Directory => {
                archive.directory(bind.to.as_path(), 0o755);
            }
            _ => {}
        }
    }
    for piece in invented(Path::new("/home/fluffy")) {
        if let Furniture::File(at, bytes) = piece {
            archive.file(at.as_path(), bytes.as_bytes());
        }
    }
    archive.finish()
}

/// An archive in the oldest form that everybody reads.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    made: Vec<PathBuf>,
}

impl Archive {
    fn directory(&mut self, at: &Path, mode: u32) {
        self.above(at);
        if !self.made.iter().any(|made| made == at) {
            self.made.push(at.to_owned());
            self.head(at, b'5', mode, 0, Path::new(""));
        }
    }

    fn file(&mut self, at: &Path, content: &[u8]) {
        self.above(at);
        self.head(at, b'0', 0o644, content.len(), Path::new(""));
        self.bytes.extend_from_slice(content);
        let padding = content.len().next_multiple_of(512) - content.len();
        self.bytes.extend(std::iter::repeat_n(0, padding));
    }

    fn link(&mut self, at: &Path, to: &Path) {
        self.above(at);
        self.head(at, b'2', 0o777, 0, to);
    }

    fn above(&mut self, at: &Path) {
        if let Some(above) = at.parent().filter(|above| !above.as_os_str().is_empty()) {
            self.directory(above, 0o755);
        }
    }

    /// Names here are ours or the system's, and short; one that is too long is left out.
    fn head(&mut self, at: &Path, kind: u8, mode: u32, size: usize, to: &Path) {
        let (name, link) = (at.as_os_str().as_encoded_bytes(), to.as_os_str().as_encoded_bytes());
        if name.len() > 99 || link.len() > 99 {
            return;
        }
        let mut head = Vec::with_capacity(512);
        let field = |head: &mut Vec<u8>, text: &[u8], width: usize| {
            head.extend_from_slice(text);
            head.extend(std::iter::repeat_n(0, width.saturating_sub(text.len())));
        };
        field(&mut head, name, 100);
        field(&mut head, format!("{mode:07o}").as_bytes(), 8);
        field(&mut head, b"0000000", 8);
        field(&mut head, b"0000000", 8);
        field(&mut head, format!("{size:011o}").as_bytes(), 12);
        field(&mut head, b"00000000000", 12);
        let (before, after) = (head, {
            let mut after = vec![kind];
            field(&mut after, link, 100);
            field(&mut after, b"ustar\x0000", 8);
            field(&mut after, b"root", 32);
            field(&mut after, b"root", 32);
            after
        });
        // The sum is over the head with blanks where the sum will be.
        let sum: u32 =
            before.iter().chain(&after).map(|byte| u32::from(*byte)).sum::<u32>() + 8 * 32;
        let start = self.bytes.len();
        self.bytes.extend(before);
        self.bytes.extend(format!("{sum:06o}\0 ").bytes());
        self.bytes.extend(after);
        self.bytes.resize(start + 512, 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 1024, 0);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_images_name_is_one_and_leads_nowhere_else() {
        for name in
            ["debian", "docker.io/library/debian:12", "a/b@sha256:0123", "localhost:5000/x-y_z:1.2"]
        {
            assert_eq!(name.parse::<ImageName>().unwrap().to_string(), name);
        }
        for name in [
            "",
            "..",
            "../containers/json",
            "a/../b",
            "a b",
            "a?x=y",
            "-x",
            "a//b",
            "/a",
            "a:",
            "ü",
        ] {
            assert!(name.parse::<ImageName>().is_err(), "{name}");
        }
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "the archive is read by a program that nobody here wrote"
    )]
    fn the_skeleton_is_an_archive_that_others_read() {
        let system = System::find().unwrap();
        let archive = skeleton(&system);
        assert_eq!(archive, skeleton(&system), "the same each time");
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.tar"), archive).unwrap();
        let unpacked = std::process::Command::new("tar")
            .args(["-xpf", "a.tar"])
            .current_dir(dir.path())
            .status()
            .unwrap();
        assert!(unpacked.success());
        assert!(dir.path().join("run/fluffy/lib").is_dir());
        assert!(dir.path().join("usr").is_dir());
        let hosts = std::fs::read_to_string(dir.path().join("etc/hosts")).unwrap();
        assert!(hosts.starts_with("127.0.0.1 localhost"));
    }
}
