//! A job with which the kernel speaks while it runs, and which sees listed folders of the project.
//!
//! **Invariant.** It sees the folders that are listed, without what is hidden in them, and nothing else of the project, by
//! handle and through no link. What it changes in them is kept apart and handed back.
//!
//! **Invariant.** It has so much time to speak and no more. The time that the kernel takes for its own answers is the
//! kernel's, and bounded by whoever gives them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fluffy_base::{ProjectPath, encode_frame};
use fluffy_sandbox::{Changes, Config, ConfigError, Job, Limits, Parts, Store, Volume, Workspace};

use super::{Errands, Lab, LabError, left};
use crate::guest::{Ends, Guest, GuestFailure, now};
use crate::workshop::Layer;
use crate::{Journal, Sight, WorkshopError};

/// How long it is waited for a job's turn at a time.
const TURN: Duration = Duration::from_secs(60);

/// How often it is looked whether a job that says nothing stands still.
const TICK: Duration = Duration::from_millis(200);

/// Folders of the project that a job sees. A folder in another is listed once, in the wider right.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folders {
    /// Those that it cannot change.
    pub seen: Vec<ProjectPath>,
    /// Those that it can change; its changes are handed back.
    pub changed: Vec<ProjectPath>,
    /// Files and directories in them that it must not see.
    pub hidden: Vec<ProjectPath>,
}

/// One job that is spoken with.
#[derive(Debug)]
pub struct Talk {
    /// The program: a path as it is seen inside, or a name that is looked for there.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables beside the few that every sandbox sets.
    pub env: Vec<(String, String)>,
    /// What it sees of the project.
    pub folders: Folders,
    /// More of the host that it sees, read-only and at the same place.
    pub shown: Vec<PathBuf>,
    /// A directory of ours, in which what hides the rest is made.
    pub scratch: PathBuf,
    /// Hosts that it reaches through the proxy; none, and it has no network.
    pub hosts: Vec<String>,
    /// No more than this. The duration is how long it may take to speak, all together.
    pub limits: Limits,
    /// How many bytes a frame has at most, either way.
    pub frame_bytes: usize,
}

/// The conversation with a job, as long as it lasts.
pub struct Conversation {
    guest: Guest,
    frame_bytes: usize,
    left: Duration,
}

impl Conversation {
    /// Sends a message.
    pub fn say(&mut self, payload: &[u8]) -> Result<(), GuestFailure> {
        let frame = encode_frame(payload, self.frame_bytes).map_err(|_| GuestFailure::Garbled)?;
        seated(&mut self.guest, &mut self.left, |guest, left| say(guest, left, &frame))
    }

    /// The next message.
    pub fn hear(&mut self) -> Result<Vec<u8>, GuestFailure> {
        seated(&mut self.guest, &mut self.left, hear)
    }
}

/// Has a guest work while it is spoken with. What the kernel does in between is not the guest's: others may work then.
pub(super) fn seated<T>(
    guest: &mut Guest,
    left: &mut Duration,
    speak: impl FnOnce(&mut Guest, &mut Duration) -> Result<T, GuestFailure>,
) -> Result<T, GuestFailure> {
    while !guest.engage(TURN)? {}
    let spoken = speak(guest, left);
    guest.rest();
    spoken
}

/// Sends all of a frame within the guest's time.
pub(super) fn say(
    guest: &mut Guest,
    left: &mut Duration,
    frame: &[u8],
) -> Result<(), GuestFailure> {
    let mut rest = frame;
    while !rest.is_empty() {
        let count = patiently(guest, left, |guest, wait| match guest.send(rest, wait)? {
            0 => Ok(None),
            count => Ok(Some(count)),
        })?;
        rest = rest.get(count..).unwrap_or_default();
    }
    Ok(())
}

/// Its next message within the guest's time.
pub(super) fn hear(guest: &mut Guest, left: &mut Duration) -> Result<Vec<u8>, GuestFailure> {
    patiently(guest, left, Guest::receive)
}

fn patiently<T>(
    guest: &mut Guest,
    left: &mut Duration,
    mut act: impl FnMut(&mut Guest, Duration) -> Result<Option<T>, GuestFailure>,
) -> Result<T, GuestFailure> {
    loop {
        if left.is_zero() {
            return Err(GuestFailure::Late);
        }
        let began = now();
        let acted = act(guest, (*left).min(TICK)).transpose();
        let took = now().saturating_duration_since(began);
        // Who stands still is not waited for on its own time.
        if took < TICK || !guest.is_paused() {
            *left = left.saturating_sub(took);
        }
        if let Some(acted) = acted {
            return acted;
        }
    }
}

impl Lab {
    /// The root of the project, in which folders are listed.
    pub fn project(&self) -> &std::path::Path {
        &self.workshop.options().project
    }

    /// Starts a job, has somebody speak with it, and ends it with everything that it started. The journal is told of its
    /// sandbox before it starts; what cannot be told does not run.
    pub fn converse<T>(
        &self,
        talk: Talk,
        journal: &dyn Journal,
        speak: impl FnOnce(&mut Conversation) -> T,
    ) -> Result<(T, Errands), LabError> {
        let runtime = &self.workshop.options().runtime;
        let keeps = !talk.folders.changed.is_empty();
        let volume = keeps.then(|| runtime.volume(Store::Memory)).transpose();
        let volume = volume.map_err(WorkshopError::from)?;
        let mut job = talk.job();
        let ends = Ends::of(&mut job).map_err(LabError::Pipes)?;
        let (frame_bytes, patience) = (talk.frame_bytes, talk.patience());
        // It hides what must not be seen as long as it is held.
        let hiding = self.hiding(&talk)?;
        let over = hiding.as_ref().map(|layer| layer.dir().to_owned());
        let config = self.talking(talk, over, volume.clone())?;
        let heard = self.hearing();
        let mut said = None;
        let ran = self.carry_out(config, volume, job, journal, |sandbox| {
            sandbox.start(heard.of(sandbox))?;
            let guest = Guest::started(Arc::clone(sandbox), ends, frame_bytes);
            let mut conversation = Conversation { guest, frame_bytes, left: patience };
            said = Some(speak(&mut conversation));
            sandbox.kill();
            sandbox.wait()
        })?;
        let left = ran.volume.as_ref().map(|volume| left(volume, &[]));
        let errands = Errands::of(ran, left, &heard);
        let said = said.ok_or(LabError::Workshop(WorkshopError::Cancelled))?;
        Ok((said, errands))
    }

    /// A layer over the project that hides what must not be seen, if anything is hidden. It has every folder that is seen,
    /// since each is taken of every layer.
    pub(super) fn hiding(&self, talk: &Talk) -> Result<Option<Layer>, LabError> {
        let Folders { seen, changed, hidden } = &talk.folders;
        let sight = Sight { layers: &[], hidden, scratch: &talk.scratch };
        let Some(layer) = self.workshop.hidden(&sight).map_err(LabError::Sight)? else {
            return Ok(None);
        };
        let below = self.workshop.below(&sight);
        for folder in seen.iter().chain(changed) {
            layer.directory(folder, &below).map_err(|error| LabError::Sight(error.into()))?;
        }
        Ok(Some(layer))
    }

    pub(super) fn talking(
        &self,
        talk: Talk,
        over: Option<PathBuf>,
        volume: Option<Volume>,
    ) -> Result<Config, LabError> {
        let refused = |error: ConfigError| LabError::from(WorkshopError::from(error));
        let (template, network) = self.network(&talk.hosts, false)?;
        let mut config = Config::of(template).narrowed_to(talk.limits).staying();
        config = config.with_network(network).map_err(refused)?;
        let options = self.workshop.options();
        for path in options.shown.iter().chain(&talk.shown) {
            config = config.showing(path).map_err(refused)?;
        }
        let changes = volume.map_or(Changes::Refused, Changes::Overlay);
        let at = options.project.clone();
        let layers = std::iter::once(at.clone()).chain(over).collect();
        let config = config.with_workspace(Workspace { at, layers, changes }).map_err(refused)?;
        let Folders { seen, changed, .. } = talk.folders;
        Ok(config.with_parts(Parts { seen, changed }))
    }
}

impl Talk {
    pub(super) fn job(&self) -> Job {
        let mut job = Job::new(self.program.as_os_str()).args(self.args.iter().cloned());
        let env = self.env.iter();
        job.env = env.map(|(name, value)| (name.into(), value.into())).collect();
        job.cwd = Some("/tmp".into());
        job
    }

    /// How long it may take to speak. Nobody is waited for without an end.
    fn patience(&self) -> Duration {
        let ms = self.limits.duration.map_or(0, fluffy_base::Span::ms);
        Duration::from_millis(ms)
    }
}
