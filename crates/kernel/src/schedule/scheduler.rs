//! Drives a [`Board`]: gives it the time and the memory, and carries its orders out.
//!
//! Whoever wants a seat waits in its own thread. Orders are carried out by whoever brought them about, and never while the
//! board is held: a sandbox that is slow to pause delays nobody but who waits for its seat.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use fluffy_sandbox::{Runtime, Sandbox, Template};

use super::board::{Board, Event, Order};
use super::door::Door;
use super::guard::Guard;
use super::limits::{Limits, Share};
use super::memory::Memory;
use super::scheduled::Scheduled;
use super::task::{Ended, Priority, Task, TaskId, Why};
use crate::guest::now;

/// How old a look at the memory may be.
pub(super) const LOOK: Duration = Duration::from_millis(250);

/// Decides which sandboxes of a kernel's process work when. There is one for all of them.
pub struct Scheduler {
    shared: Arc<Shared>,
}

/// What the scheduler and those that wake it hold together.
pub(super) struct Shared {
    inside: Mutex<Inside>,
    memory: Box<dyn Memory>,
    begun: Instant,
    pub(super) guard: Guard,
}

struct Inside {
    board: Board,
    next: u64,
    doors: BTreeMap<TaskId, Arc<Door>>,
    /// When the memory was last looked at.
    looked_ms: Option<u64>,
    /// Guests that stand ready to save time, by name.
    ready: BTreeMap<String, Weak<dyn Sandbox>>,
}

/// What somebody wants a seat for.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) name: String,
    pub(super) priority: Priority,
    pub(super) template: Template,
    pub(super) lasts_ms: Option<u64>,
}

/// A task as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its number.
    pub id: TaskId,
    /// What it is called.
    pub name: String,
    /// How urgent it is.
    pub priority: Priority,
    /// Its kind of sandbox.
    pub template: Template,
    /// Where it stands.
    pub stage: super::Stage,
    /// What it waits for, if it waits.
    pub waits: Option<String>,
    /// How long it has worked.
    pub worked_ms: u64,
}

impl Scheduler {
    /// A scheduler with these limits.
    pub fn new(limits: Limits, memory: Box<dyn Memory>) -> Arc<Self> {
        let inside = Inside {
            board: Board::new(limits),
            next: 1,
            doors: BTreeMap::new(),
            looked_ms: None,
            ready: BTreeMap::new(),
        };
        let (inside, begun, guard) = (Mutex::new(inside), now(), Guard::default());
        Arc::new(Self { shared: Arc::new(Shared { inside, memory, begun, guard }) })
    }

    /// The same runtime, whose sandboxes work when it is their turn.
    pub fn over(self: &Arc<Self>, runtime: Arc<dyn Runtime>) -> Arc<dyn Runtime> {
        Arc::new(Scheduled::new(Arc::clone(self), runtime))
    }

    /// Every task that has not ended, the oldest first.
    pub fn tasks(&self) -> Vec<Shown> {
        let now_ms = self.shared.now_ms();
        let inside = self.shared.inside();
        let show = |(task, stage, worked_ms): (&Task, super::Stage, u64)| Shown {
            id: task.id,
            name: task.name.clone(),
            priority: task.priority,
            template: task.template,
            stage,
            waits: inside.board.waits(task.id).map(|waits| waits.to_string()),
            worked_ms,
        };
        inside.board.tasks(now_ms).map(show).collect()
    }

    /// How much of the memory was used when it was last looked at.
    pub fn memory(&self) -> Share {
        self.shared.inside().board.memory()
    }

    /// Has a sandbox wait for its seat, at the door.
    pub(super) fn submit(&self, work: &Work, sandbox: &Arc<dyn Sandbox>) -> Arc<Door> {
        let shared = &self.shared;
        shared.look_if_stale();
        shared.guard.wake(shared);
        let now_ms = shared.now_ms();
        let mut inside = shared.inside();
        let id = TaskId(inside.next);
        inside.next += 1;
        let door = Arc::new(Door::new(id, Arc::clone(sandbox)));
        let Work { name, priority, template, lasts_ms } = work.clone();
        let task = Task { id, name, priority, template, after: Vec::new(), lasts_ms };
        inside.doors.insert(id, Arc::clone(&door));
        let submitted = inside.board.submit(vec![task], now_ms);
        let (orders, to_do) = match submitted {
            Ok(orders) => inside.with_doors(orders),
            Err(refused) => {
                inside.doors.remove(&id);
                drop(inside);
                door.close(Ended::Failed(Why::Itself(refused.to_string())));
                return door;
            }
        };
        drop(inside);
        shared.carry_out(orders, to_do);
        door
    }

    /// What sat there has ended, or is not wanted any more.
    pub(super) fn leave(&self, door: &Door, ended: Ended) {
        door.leave();
        self.shared.change(|inside, now_ms| {
            inside.doors.remove(&door.id);
            inside.board.hear(Event::Ended(door.id, ended), now_ms)
        });
    }

    /// Who waits there waits no longer.
    pub(super) fn cancel(&self, door: &Door) {
        self.shared.hear(Event::Cancelled(door.id));
    }

    /// Keeps a guest that stands ready until memory is short; not if it is.
    pub(super) fn keep_ready(&self, sandbox: &Arc<dyn Sandbox>) -> Result<(), Share> {
        self.shared.look_if_stale();
        let mut inside = self.shared.inside();
        if inside.board.is_held() {
            return Err(inside.board.memory());
        }
        inside.ready.retain(|_, it| it.strong_count() > 0);
        inside.ready.insert(sandbox.id().to_owned(), Arc::downgrade(sandbox));
        Ok(())
    }

    /// A guest does not stand ready any more: it works, or is gone.
    pub(super) fn forget_ready(&self, id: &str) {
        self.shared.inside().ready.remove(id);
    }
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler").finish_non_exhaustive()
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.shared.guard.dismiss();
    }
}

/// What an order is carried out on.
type Found = Vec<Option<Arc<Door>>>;

impl Shared {
    /// Looks at the memory; whether there is anything left to watch over.
    pub(super) fn look(self: &Arc<Self>) -> bool {
        let used = self.memory.used();
        self.change(|inside, now_ms| {
            inside.looked_ms = Some(now_ms);
            inside.board.hear(Event::Memory(used), now_ms)
        });
        let inside = self.inside();
        !inside.board.is_idle() || inside.ready.values().any(|it| it.strong_count() > 0)
    }

    fn look_if_stale(self: &Arc<Self>) {
        let now_ms = self.now_ms();
        let fresh = u64::try_from(LOOK.as_millis()).unwrap_or(u64::MAX);
        let looked_ms = self.inside().looked_ms;
        if looked_ms.is_none_or(|then| now_ms.saturating_sub(then) > fresh) {
            self.look();
        }
    }

    fn hear(self: &Arc<Self>, event: Event) {
        self.change(|inside, now_ms| inside.board.hear(event, now_ms));
    }

    fn change(self: &Arc<Self>, change: impl FnOnce(&mut Inside, u64) -> Vec<Order>) {
        let now_ms = self.now_ms();
        let mut inside = self.inside();
        let orders = change(&mut inside, now_ms);
        let (orders, doors) = inside.with_doors(orders);
        drop(inside);
        self.carry_out(orders, doors);
    }

    fn carry_out(self: &Arc<Self>, orders: Vec<Order>, doors: Found) {
        for (order, door) in orders.into_iter().zip(doors) {
            match (order, door) {
                (Order::DropCaches, _) => self.drop_caches(),
                (Order::Start(_), Some(door)) => door.open(),
                (Order::GiveUp(_, ended), Some(door)) => door.close(ended),
                (Order::Pause(_), Some(door)) => self.pause(door),
                (Order::Resume(_), Some(door)) => door.resume(),
                (Order::Destroy(_, ended), Some(door)) => door.destroy(ended),
                // It left meanwhile.
                (_, None) => {}
            }
        }
    }

    /// Pauses what sits there, in a thread of its own: it may take its grace.
    fn pause(self: &Arc<Self>, door: Arc<Door>) {
        let (shared, id) = (Arc::clone(self), door.id);
        let pause = move || {
            let event = if door.pause() { Event::Paused(id) } else { Event::Unpaused(id) };
            shared.hear(event);
        };
        if std::thread::Builder::new().name("pause".to_owned()).spawn(pause).is_err() {
            self.hear(Event::Unpaused(id));
        }
    }

    fn drop_caches(&self) {
        let ready = std::mem::take(&mut self.inside().ready);
        for sandbox in ready.values().filter_map(Weak::upgrade) {
            sandbox.kill();
        }
    }

    fn now_ms(&self) -> u64 {
        let passed = now().saturating_duration_since(self.begun);
        u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    /// Orders, each with the door that it is about. Who has ended has none any more.
    fn with_doors(&mut self, orders: Vec<Order>) -> (Vec<Order>, Found) {
        let mut door = |order: &Order| match order {
            Order::Start(id) | Order::Pause(id) | Order::Resume(id) | Order::Destroy(id, _) => {
                self.doors.get(id).cloned()
            }
            Order::GiveUp(id, _) => self.doors.remove(id),
            Order::DropCaches => None,
        };
        let doors = orders.iter().map(&mut door).collect();
        (orders, doors)
    }
}
