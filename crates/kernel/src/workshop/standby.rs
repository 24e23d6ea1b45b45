//! A guest that stands ready for the next edit, so that the edit does not wait for its sandbox.
//!
//! It is the same guest in the same sandbox as any edit has: made while the model thinks, and waiting for its order. Until
//! the order comes it has looked at nothing; it takes one order, and ends.
//!
//! **Invariant.** A guest serves an edit over the very layers that it was made with. It holds them, so that they are not
//! changed meanwhile; whatever else the session has become by then, it is let go and another one made.

use std::io::{PipeWriter, Write as _, pipe};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fluffy_base::Span;
use fluffy_sandbox::{Input, Limits, Sandbox, Volume};

use super::edit::LIMITS;
use super::{Ran, Told, Workshop, WorkshopError};
use crate::staging::Layer;

/// How long one stands ready.
const PATIENCE: Span = Span::from_ms(300_000);

/// How long it is waited for its turn at a time.
const TURN: Duration = Duration::from_secs(60);

/// Where the guest for the next edit comes from.
#[derive(Default)]
pub(super) struct Standby {
    slot: Mutex<Slot>,
    changed: Condvar,
}

#[derive(Default)]
enum Slot {
    #[default]
    Empty,
    /// One is being made over these layers.
    Making(Vec<PathBuf>),
    Ready(Waiting),
}

/// A guest that waits for its order.
struct Waiting {
    layers: Vec<PathBuf>,
    sandbox: Arc<dyn Sandbox>,
    volume: Volume,
    order: PipeWriter,
    /// What the guest sees stays as it is.
    _held: Arc<Layer>,
}

impl Slot {
    /// Whether it has, or will have, a guest over these layers.
    fn is_over(&self, wanted: &[PathBuf]) -> bool {
        match self {
            Self::Empty => false,
            Self::Making(layers) | Self::Ready(Waiting { layers, .. }) => layers == wanted,
        }
    }
}

impl Standby {
    /// Puts something into the slot and takes out what was there.
    fn put(&self, slot: Slot) -> Slot {
        let last = std::mem::replace(&mut *self.slot(), slot);
        self.changed.notify_all();
        last
    }

    /// The guest over these layers, once it stands, if there is one or will be.
    fn take(&self, layers: &[PathBuf]) -> Option<Waiting> {
        let slot = self.slot();
        let ours = |slot: &mut Slot| matches!(slot, Slot::Making(it) if it == layers);
        let mut slot = self.changed.wait_while(slot, ours).unwrap_or_else(PoisonError::into_inner);
        if matches!(&*slot, Slot::Making(_)) {
            return None;
        }
        match std::mem::take(&mut *slot) {
            Slot::Ready(waiting) if waiting.layers == layers => Some(waiting),
            // It would never serve any more: the session has gone on.
            Slot::Ready(_) | Slot::Making(_) | Slot::Empty => None,
        }
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workshop {
    /// Has a guest stand ready for an edit of the project with this layer over it, without waiting for it.
    pub(crate) fn stand_by(self: &Arc<Self>, layer: Arc<Layer>) {
        let layers = vec![layer.path().to_owned()];
        let mut slot = self.standby.slot();
        if slot.is_over(&layers) || matches!(&*slot, Slot::Making(_)) {
            return;
        }
        let last = std::mem::replace(&mut *slot, Slot::Making(layers.clone()));
        drop(slot);
        let shop = Arc::clone(self);
        let make = move || {
            drop(last);
            // Where none can be made, the edit makes its own, and tells why it cannot. Whoever waits is not left waiting, not
            // even by a panic; nothing that one could leave half done is used again.
            let make = || shop.guest_over(layers, layer).map_or(Slot::Empty, Slot::Ready);
            let made = catch_unwind(AssertUnwindSafe(make));
            drop(shop.standby.put(made.unwrap_or_default()));
            if shop.closed.load(Ordering::SeqCst) {
                shop.let_go();
            }
        };
        if std::thread::Builder::new().name("standby".to_owned()).spawn(make).is_err() {
            self.let_go();
        }
    }

    /// Nothing stands ready any more.
    pub(super) fn let_go(&self) {
        drop(self.standby.put(Slot::Empty));
    }

    /// Has the guest that stands ready over these layers, if there is one, carry an order out. What it leaves counts only
    /// if it answers; it may have ended long ago.
    pub(super) fn order_ready(&self, layers: &[PathBuf], order: &[u8]) -> Option<Ran> {
        let Waiting { sandbox, volume, order: mut pipe, .. } = self.standby.take(layers)?;
        let name = self.program().to_string_lossy().into_owned();
        let tell: Told<'_> = &|life| self.tell(life);
        let ran = self.attend(&sandbox, Some(volume), (&name, tell), || {
            while !sandbox.engage(TURN)? {}
            pipe.write_all(order).map_err(|error| WorkshopError::Untold(error.to_string()))?;
            drop(pipe);
            Ok(sandbox.wait()?)
        });
        ran.ok().filter(|ran| ran.outcome.is_success())
    }

    fn guest_over(&self, layers: Vec<PathBuf>, held: Arc<Layer>) -> Result<Waiting, WorkshopError> {
        let untold = |error: std::io::Error| WorkshopError::Untold(error.to_string());
        let (theirs, order) = pipe().map_err(untold)?;
        let limits = Limits { duration: Some(PATIENCE), ..LIMITS };
        let (config, volume, job) = self.guest(&layers, Input::From(theirs.into()), limits)?;
        let sandbox: Arc<dyn Sandbox> = self.options.runtime.create(config, job)?.into();
        sandbox.start(Arc::new(()))?;
        Ok(Waiting { layers, sandbox, volume, order, _held: held })
    }
}
