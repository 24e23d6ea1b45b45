//! The scheduler itself: what happens goes in with the time, what is to be done comes out.
//!
//! It knows no clock, no thread and no sandbox. Whoever drives it carries the orders out, and says what came of them.

use std::collections::{BTreeMap, BTreeSet};

use fluffy_sandbox::Template;

use super::choice::{Candidate, Lines};
use super::limits::{Limits, Share, place};
use super::task::{Ended, Refused, Stage, Task, TaskId, Waits, Why};

/// Of so many tasks that ended it is remembered how.
const REMEMBERED: usize = 4096;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A task that had been started came to its end, or could not be started after all.
    Ended(TaskId, Ended),
    /// Nobody wants this task any more.
    Cancelled(TaskId),
    /// A task that was to be paused stands still.
    Paused(TaskId),
    /// A task that was to be paused cannot be: it works as before, or has just ended.
    Unpaused(TaskId),
    /// So much of the memory is used.
    Memory(Share),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// It may work.
    Start(TaskId),
    /// It is to stand still; [`Event::Paused`] is awaited.
    Pause(TaskId),
    /// It may go on.
    Resume(TaskId),
    /// It is to be ended; [`Event::Ended`] is awaited.
    Destroy(TaskId, Ended),
    /// It will never start, and has ended.
    GiveUp(TaskId, Ended),
    /// Whatever is kept to save time is to be let go.
    DropCaches,
}

/// Which tasks there are, and where each stands.
#[derive(Debug)]
pub struct Board {
    pub(super) limits: Limits,
    last: Option<TaskId>,
    pub(super) tasks: BTreeMap<TaskId, Slot>,
    ended: BTreeMap<TaskId, Ended>,
    /// Those that never worked and could now.
    pub(super) fresh: Lines,
    /// Those that stand still.
    pub(super) halted: BTreeSet<TaskId>,
    /// Those that have a seat.
    pub(super) seated: BTreeSet<TaskId>,
    pub(super) seats: Seats,
    pub(super) memory: Share,
    /// Since when memory is spent.
    spent_since: Option<u64>,
}

/// A task that has not ended.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) task: Task,
    pub(super) stage: Stage,
    /// Since when it stands where it stands: works, or waits.
    since_ms: u64,
    worked_ms: u64,
    waited_ms: u64,
    missing: BTreeSet<TaskId>,
    dependents: Vec<TaskId>,
    /// What it will have been, once it is ended.
    verdict: Option<Ended>,
    /// It could not be paused, and is not told to once more.
    pub(super) steadfast: bool,
}

/// Seats that are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seats {
    pub(super) all: usize,
    pub(super) of: [usize; 4],
}

impl Board {
    /// A board with nothing on it.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            last: None,
            tasks: BTreeMap::new(),
            ended: BTreeMap::new(),
            fresh: Lines::default(),
            halted: BTreeSet::new(),
            seated: BTreeSet::new(),
            seats: Seats::default(),
            memory: Share(0),
            spent_since: None,
        }
    }

    /// Takes tasks that may depend on each other and on earlier ones; all of them, or none.
    pub fn submit(&mut self, tasks: Vec<Task>, now_ms: u64) -> Result<Vec<Order>, Refused> {
        self.check(&tasks)?;
        let ids: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
        self.last = ids.last().copied().or(self.last);
        for task in tasks {
            self.tasks.insert(task.id, Slot::new(task, now_ms));
        }
        let mut orders = Vec::new();
        for id in ids {
            self.place(id, &mut orders);
        }
        self.dispatch(now_ms, &mut orders);
        Ok(orders)
    }

    /// Hears what happened; says what is to be done.
    pub fn hear(&mut self, event: Event, now_ms: u64) -> Vec<Order> {
        let mut orders = Vec::new();
        match event {
            Event::Ended(id, ended) => self.end(id, ended, &mut orders),
            Event::Cancelled(id) => self.cancel(id, &mut orders),
            Event::Paused(id) => self.stand_still(id, now_ms),
            Event::Unpaused(id) => self.go_on(id),
            Event::Memory(used) => self.measure(used, now_ms, &mut orders),
        }
        self.dispatch(now_ms, &mut orders);
        orders
    }

    /// Where a task stands; nowhere once it has ended.
    pub fn stage(&self, id: TaskId) -> Option<Stage> {
        self.tasks.get(&id).map(|slot| slot.stage)
    }

    /// How a task ended, if that was not too long ago.
    pub fn outcome(&self, id: TaskId) -> Option<&Ended> {
        self.ended.get(&id)
    }

    /// How much of the memory is used.
    pub fn memory(&self) -> Share {
        self.memory
    }

    /// Whether memory is too short for anything new.
    pub fn is_held(&self) -> bool {
        self.memory >= self.limits.memory_held
    }

    /// Whether every task has ended.
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// How many work, and how many of one kind do.
    pub fn at_work(&self, template: Template) -> (usize, usize) {
        (self.seats.all, self.seats.taken(template))
    }

    /// Every task that has not ended, the oldest first, with how long it has worked.
    pub fn tasks(&self, now_ms: u64) -> impl Iterator<Item = (&Task, Stage, u64)> {
        self.tasks.values().map(move |slot| (&slot.task, slot.stage, slot.worked(now_ms)))
    }

    /// What a task waits for, if it waits.
    pub fn waits(&self, id: TaskId) -> Option<Waits> {
        let slot = self.tasks.get(&id)?;
        let kind = slot.task.template;
        match slot.stage {
            Stage::Running | Stage::Pausing | Stage::Ending => return None,
            Stage::WaitingDependency => {
                return Some(Waits::Dependencies(slot.missing.iter().copied().collect()));
            }
            Stage::Queued if !self.may_start(&slot.task) => {
                return Some(Waits::Memory(self.memory));
            }
            Stage::Queued | Stage::Paused => {}
        }
        if self.seats.taken(kind) >= self.limits.of(kind) {
            return Some(Waits::Kind(kind, self.seats.taken(kind)));
        }
        let is_full = self.seats.all >= self.limits.in_all();
        Some(if is_full { Waits::Global(self.seats.all) } else { Waits::Turn })
    }

    /// Whether tasks can be taken.
    fn check(&self, tasks: &[Task]) -> Result<(), Refused> {
        let mut last = self.last;
        for task in tasks {
            if last.is_some_and(|last| task.id <= last) {
                return Err(Refused::Twice(task.id));
            }
            last = Some(task.id);
        }
        let new: BTreeSet<TaskId> = tasks.iter().map(|task| task.id).collect();
        let known = |id: &TaskId| {
            new.contains(id) || self.tasks.contains_key(id) || self.ended.contains_key(id)
        };
        for task in tasks {
            if let Some(&on) = task.after.iter().find(|id| !known(id)) {
                return Err(Refused::Unknown { task: task.id, on });
            }
        }
        let cycle = knot(tasks, &new);
        if cycle.is_empty() { Ok(()) } else { Err(Refused::Cycle(cycle)) }
    }

    /// Puts a task that was just taken where it belongs.
    fn place(&mut self, id: TaskId, orders: &mut Vec<Order>) {
        // It may have failed already, with one that was taken before it.
        let Some(slot) = self.tasks.get(&id) else { return };
        let after: BTreeSet<TaskId> = slot.task.after.iter().copied().collect();
        let mut missing = BTreeSet::new();
        for on in after {
            match (self.ended.get(&on), self.tasks.get_mut(&on)) {
                (Some(Ended::Completed), _) => {}
                (Some(Ended::Failed(_)), _) => {
                    return self.fail(id, Why::Dependency(on), orders);
                }
                (Some(Ended::Cancelled), _) => {
                    return self.fail(id, Why::Withdrawn(on), orders);
                }
                (None, Some(other)) => {
                    other.dependents.push(id);
                    missing.insert(on);
                }
                // What was checked is there.
                (None, None) => return self.fail(id, Why::Dependency(on), orders),
            }
        }
        let Some(slot) = self.tasks.get_mut(&id) else { return };
        slot.missing = missing;
        if slot.missing.is_empty() {
            self.queue(id);
        }
    }

    fn queue(&mut self, id: TaskId) {
        let Some(slot) = self.tasks.get_mut(&id) else { return };
        slot.stage = Stage::Queued;
        self.fresh.join(slot.task.template, slot.task.priority, id, slot.since_ms);
    }

    fn end(&mut self, id: TaskId, ended: Ended, orders: &mut Vec<Order>) {
        let Some(slot) = self.tasks.get_mut(&id) else { return };
        // What ended well before it could be ended has ended well.
        let ended = match (ended, slot.verdict.take()) {
            (Ended::Completed, _) => Ended::Completed,
            (_, Some(verdict)) => verdict,
            (ended, None) => ended,
        };
        self.settle(id, ended, orders);
    }

    fn fail(&mut self, id: TaskId, why: Why, orders: &mut Vec<Order>) {
        let ended = Ended::Failed(why);
        orders.push(Order::GiveUp(id, ended.clone()));
        self.settle(id, ended, orders);
    }

    /// Takes a task off the board, and with it, if it did not end well, everything that depends on it.
    fn settle(&mut self, id: TaskId, ended: Ended, orders: &mut Vec<Order>) {
        let mut left = vec![(id, ended)];
        while let Some((id, ended)) = left.pop() {
            let Some(slot) = self.tasks.remove(&id) else { continue };
            self.vacate(&slot);
            for other in slot.dependents {
                let why = match &ended {
                    Ended::Completed => {
                        self.met(other, id);
                        continue;
                    }
                    Ended::Failed(_) => Why::Dependency(id),
                    Ended::Cancelled => Why::Withdrawn(id),
                };
                if self.tasks.contains_key(&other) && !left.iter().any(|(it, _)| *it == other) {
                    orders.push(Order::GiveUp(other, Ended::Failed(why.clone())));
                    left.push((other, Ended::Failed(why)));
                }
            }
            self.ended.insert(id, ended);
            if self.ended.len() > REMEMBERED {
                self.ended.pop_first();
            }
        }
    }

    /// Something that a task depends on was completed.
    fn met(&mut self, id: TaskId, on: TaskId) {
        let Some(slot) = self.tasks.get_mut(&id) else { return };
        slot.missing.remove(&on);
        if slot.missing.is_empty() && slot.stage == Stage::WaitingDependency {
            self.queue(id);
        }
    }

    /// Gives back what a task has: its seat, or its place in a line.
    fn vacate(&mut self, slot: &Slot) {
        let Task { id, priority, template, .. } = slot.task;
        match slot.stage {
            Stage::WaitingDependency => {}
            Stage::Queued => self.fresh.leave(template, priority, id),
            Stage::Running | Stage::Pausing | Stage::Paused | Stage::Ending => {
                self.halted.remove(&id);
                if self.seated.remove(&id) {
                    self.seats.give_back(template);
                }
            }
        }
    }

    fn cancel(&mut self, id: TaskId, orders: &mut Vec<Order>) {
        match self.stage(id) {
            None => {}
            Some(Stage::Queued | Stage::WaitingDependency) => {
                orders.push(Order::GiveUp(id, Ended::Cancelled));
                self.settle(id, Ended::Cancelled, orders);
            }
            Some(Stage::Running | Stage::Pausing | Stage::Paused | Stage::Ending) => {
                self.destroy(id, Ended::Cancelled, orders);
            }
        }
    }

    /// Has something that works or stands still be ended; once.
    pub(super) fn destroy(&mut self, id: TaskId, ended: Ended, orders: &mut Vec<Order>) {
        let Some(slot) = self.tasks.get_mut(&id) else { return };
        match slot.stage {
            Stage::Running | Stage::Pausing | Stage::Paused => {}
            Stage::Queued | Stage::WaitingDependency | Stage::Ending => return,
        }
        slot.stage = Stage::Ending;
        slot.verdict = Some(ended.clone());
        orders.push(Order::Destroy(id, ended));
    }

    fn stand_still(&mut self, id: TaskId, now_ms: u64) {
        let Some(slot) = self.tasks.get_mut(&id) else { return };
        if slot.stage != Stage::Pausing {
            return;
        }
        slot.turn_to(Stage::Paused, now_ms);
        self.seats.give_back(slot.task.template);
        self.seated.remove(&id);
        self.halted.insert(id);
    }

    fn go_on(&mut self, id: TaskId) {
        if let Some(slot) = self.tasks.get_mut(&id)
            && slot.stage == Stage::Pausing
        {
            slot.stage = Stage::Running;
            slot.steadfast = true;
        }
    }

    fn measure(&mut self, used: Share, now_ms: u64, orders: &mut Vec<Order>) {
        let was_held = self.is_held();
        self.memory = used;
        if self.is_held() && !was_held {
            orders.push(Order::DropCaches);
        }
        if used < self.limits.memory_spent {
            self.spent_since = None;
            return;
        }
        let since = *self.spent_since.get_or_insert(now_ms);
        let there: Vec<TaskId> = self.seated.iter().chain(&self.halted).copied().collect();
        for id in there {
            if self.tasks.get(&id).is_some_and(|slot| !slot.task.priority.is_critical()) {
                self.destroy(id, Ended::Failed(Why::Memory(used)), orders);
            }
        }
        if now_ms.saturating_sub(since) >= self.limits.patience_ms {
            for id in self.fresh.ids() {
                if self.tasks.get(&id).is_some_and(|slot| !self.may_start(&slot.task)) {
                    self.fail(id, Why::NoMemory(used), orders);
                }
            }
        }
    }

    /// Whether there is memory for something new. Where nothing of ours has any that its end would give back, waiting
    /// would help nobody: one is let through until memory is spent.
    fn may_start(&self, task: &Task) -> bool {
        task.priority == super::Priority::System
            || !self.is_held()
            || (self.memory < self.limits.memory_spent
                && self.seated.is_empty()
                && self.halted.is_empty())
    }

    fn dispatch(&mut self, now_ms: u64, orders: &mut Vec<Order>) {
        while let Some(next) = self.next(now_ms) {
            let Some(slot) = self.tasks.get_mut(&next.id) else { return };
            slot.turn_to(Stage::Running, now_ms);
            if self.halted.remove(&next.id) {
                orders.push(Order::Resume(next.id));
            } else {
                self.fresh.leave(next.template, next.priority, next.id);
                orders.push(Order::Start(next.id));
            }
            self.seats.take(next.template);
            self.seated.insert(next.id);
        }
        self.make_room(now_ms, orders);
    }

    /// Who gets the next seat.
    fn next(&self, now_ms: u64) -> Option<Candidate> {
        if self.seats.all >= self.limits.in_all() {
            return None;
        }
        let has_seat = |kind| self.seats.taken(kind) < self.limits.of(kind);
        // What is frozen when memory is spent is on its way out.
        let halted = self.halted.iter().filter(|_| self.memory < self.limits.memory_spent);
        let halted = halted.filter_map(|id| Some(self.candidate(self.tasks.get(id)?, now_ms)));
        let halted =
            halted.filter(|it| has_seat(it.template) && self.stage(it.id) == Some(Stage::Paused));
        let fresh = self.fresh.heads(&self.limits, now_ms, has_seat);
        let may_start =
            |it: &Candidate| self.tasks.get(&it.id).is_some_and(|slot| self.may_start(&slot.task));
        halted.chain(fresh.filter(may_start)).min()
    }

    pub(super) fn candidate(&self, slot: &Slot, now_ms: u64) -> Candidate {
        let Task { id, priority, template, .. } = slot.task;
        let level = priority.aged(slot.waited(now_ms), self.limits.age_ms);
        Candidate { level, id, priority, template }
    }
}

impl Slot {
    fn new(task: Task, now_ms: u64) -> Self {
        Self {
            task,
            stage: Stage::WaitingDependency,
            since_ms: now_ms,
            worked_ms: 0,
            waited_ms: 0,
            missing: BTreeSet::new(),
            dependents: Vec::new(),
            verdict: None,
            steadfast: false,
        }
    }

    /// Has it work, or wait, from now on.
    fn turn_to(&mut self, stage: Stage, now_ms: u64) {
        (self.worked_ms, self.waited_ms) = (self.worked(now_ms), self.waited(now_ms));
        (self.stage, self.since_ms) = (stage, now_ms);
    }

    /// How long it has worked.
    pub(super) fn worked(&self, now_ms: u64) -> u64 {
        let since = now_ms.saturating_sub(self.since_ms);
        match self.stage {
            Stage::Running | Stage::Pausing | Stage::Ending => self.worked_ms.saturating_add(since),
            Stage::Queued | Stage::WaitingDependency | Stage::Paused => self.worked_ms,
        }
    }

    /// How long it has waited, for others and for seats.
    pub(super) fn waited(&self, now_ms: u64) -> u64 {
        let since = now_ms.saturating_sub(self.since_ms);
        match self.stage {
            Stage::Running | Stage::Pausing | Stage::Ending => self.waited_ms,
            Stage::Queued | Stage::WaitingDependency | Stage::Paused => {
                self.waited_ms.saturating_add(since)
            }
        }
    }
}

impl Seats {
    pub(super) fn taken(&self, template: Template) -> usize {
        self.of.get(place(template)).copied().unwrap_or_default()
    }

    pub(super) fn take(&mut self, template: Template) {
        self.all += 1;
        if let Some(of) = self.of.get_mut(place(template)) {
            *of += 1;
        }
    }

    pub(super) fn give_back(&mut self, template: Template) {
        self.all = self.all.saturating_sub(1);
        if let Some(of) = self.of.get_mut(place(template)) {
            *of = of.saturating_sub(1);
        }
    }
}

/// Those of some new tasks that wait for each other, or for such.
fn knot(tasks: &[Task], new: &BTreeSet<TaskId>) -> Vec<TaskId> {
    let mut after: BTreeMap<TaskId, BTreeSet<TaskId>> = BTreeMap::new();
    for task in tasks {
        let on = task.after.iter().copied().filter(|on| new.contains(on));
        after.insert(task.id, on.collect());
    }
    let mut before: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
    for (&id, on) in &after {
        for &on in on {
            before.entry(on).or_default().push(id);
        }
    }
    let mut free: Vec<TaskId> = Vec::new();
    free.extend(after.iter().filter(|(_, on)| on.is_empty()).map(|(&id, _)| id));
    while let Some(id) = free.pop() {
        after.remove(&id);
        for other in before.remove(&id).unwrap_or_default() {
            if let Some(on) = after.get_mut(&other) {
                on.remove(&id);
                if on.is_empty() {
                    free.push(other);
                }
            }
        }
    }
    after.into_keys().collect()
}
