//! Looks at the memory while anything works or waits.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::scheduler::{LOOK, Shared};

/// After so many looks at nothing it sleeps until it is woken.
const IDLE_LOOKS: u32 = 4;

/// The thread that looks, or will.
#[derive(Default)]
pub(super) struct Guard {
    watch: Mutex<Watch>,
    changed: Condvar,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Watch {
    /// There is no thread yet.
    #[default]
    Absent,
    Asleep,
    Awake,
    /// Nobody is left to look for.
    Dismissed,
}

impl Guard {
    /// Makes sure that somebody looks. Where no thread can be had, each new task looks itself.
    pub(super) fn wake(&self, shared: &Arc<Shared>) {
        let mut watch = self.watch();
        match *watch {
            Watch::Awake | Watch::Dismissed => {}
            Watch::Asleep => {
                *watch = Watch::Awake;
                self.changed.notify_all();
            }
            Watch::Absent => {
                let shared = Arc::clone(shared);
                let look = move || shared.guard.look_after(&shared);
                let thread = std::thread::Builder::new().name("memory".to_owned());
                if thread.spawn(look).is_ok() {
                    *watch = Watch::Awake;
                }
            }
        }
    }

    pub(super) fn dismiss(&self) {
        *self.watch() = Watch::Dismissed;
        self.changed.notify_all();
    }

    fn look_after(&self, shared: &Arc<Shared>) {
        let mut idle = 0;
        loop {
            let watch = self.watch();
            let is_on = |watch: &mut Watch| *watch != Watch::Dismissed;
            let waited = self.changed.wait_timeout_while(watch, LOOK, is_on);
            let (mut watch, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if idle >= IDLE_LOOKS && *watch == Watch::Awake {
                *watch = Watch::Asleep;
                let sleeps = |watch: &mut Watch| *watch == Watch::Asleep;
                let woken = self.changed.wait_while(watch, sleeps);
                watch = woken.unwrap_or_else(PoisonError::into_inner);
                idle = 0;
            }
            if *watch == Watch::Dismissed {
                return;
            }
            drop(watch);
            idle = if shared.look() { 0 } else { idle + 1 };
        }
    }

    fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
