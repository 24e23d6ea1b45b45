//! Who gives way to something more urgent, and how.
//!
//! Only a priority as it was submitted takes a seat from another; what has risen by waiting goes first in line, and no more.

use fluffy_sandbox::Template;

use super::board::{Board, Order, Seats, Slot};
use super::choice::Candidate;
use super::limits::place;
use super::task::{Ended, Stage, TaskId, Why};

impl Board {
    /// Has less urgent tasks give way to those that are more urgent and find no seat.
    pub(super) fn make_room(&mut self, now_ms: u64, orders: &mut Vec<Order>) {
        if !self.is_anybody_pressed() {
            return;
        }
        let waiting = self.fresh.fronts(&self.limits).chain(self.halted.iter().copied());
        let waiting = waiting.filter_map(|id| self.tasks.get(&id));
        let waiting = waiting.filter(|slot| slot.stage != Stage::Ending);
        let mut waiting: Vec<_> =
            waiting.map(|slot| self.candidate(slot, now_ms)).map(as_submitted).collect();
        waiting.sort_unstable();
        let mut seats = self.seats_to_come();
        for next in waiting {
            if !self.fits(&seats, next.template) {
                let Some(victim) = self.victim(&seats, &next, now_ms) else { continue };
                if let Some(slot) = self.tasks.get(&victim) {
                    seats.give_back(slot.task.template);
                }
                self.displace(victim, next.id, orders);
            }
            seats.take(next.template);
        }
    }

    /// Whether something waits that is more urgent than something that works.
    fn is_anybody_pressed(&self) -> bool {
        let priority = |id: &TaskId| self.tasks.get(id).map(|slot| slot.task.priority);
        let halted = self.halted.iter().filter_map(priority);
        let waits = halted.chain(self.fresh.most_urgent()).min();
        waits.is_some_and(|waits| self.seated.iter().filter_map(priority).any(|it| it > waits))
    }

    /// The seats that are taken, without those that are being given back.
    fn seats_to_come(&self) -> Seats {
        let mut seats = self.seats;
        for slot in self.seated.iter().filter_map(|id| self.tasks.get(id)) {
            if matches!(slot.stage, Stage::Pausing | Stage::Ending) {
                seats.give_back(slot.task.template);
            }
        }
        seats
    }

    fn fits(&self, seats: &Seats, template: Template) -> bool {
        seats.all < self.limits.in_all() && seats.taken(template) < self.limits.of(template)
    }

    /// Who gives way: of those that are less urgent, would make room and have not almost done, the least urgent, and the
    /// youngest of these. What has risen by waiting does not fall back behind what it has waited with.
    fn victim(&self, seats: &Seats, next: &Candidate, now_ms: u64) -> Option<TaskId> {
        let is_full = seats.taken(next.template) >= self.limits.of(next.template);
        let gives_way = |slot: &&Slot| {
            slot.stage == Stage::Running
                && !slot.steadfast
                && self.candidate(slot, now_ms).level > next.level
                && (!is_full || place(slot.task.template) == place(next.template))
                && !slot.has_almost_done(now_ms)
        };
        let seated = self.seated.iter().filter_map(|id| self.tasks.get(id));
        let victims = seated.filter(gives_way);
        victims.max_by_key(|slot| (slot.task.priority, slot.task.id)).map(|slot| slot.task.id)
    }

    fn displace(&mut self, id: TaskId, by: TaskId, orders: &mut Vec<Order>) {
        if self.memory > self.limits.memory_held {
            let why = Why::Displaced { by, at: self.memory };
            return self.destroy(id, Ended::Failed(why), orders);
        }
        if let Some(slot) = self.tasks.get_mut(&id) {
            slot.stage = Stage::Pausing;
            orders.push(Order::Pause(id));
        }
    }
}

impl Slot {
    /// Whether more than four fifths of its time are over: it is waited for.
    fn has_almost_done(&self, now_ms: u64) -> bool {
        let over = |lasts: u64| u128::from(self.worked(now_ms)) * 100 > u128::from(lasts) * 80;
        self.task.lasts_ms.is_some_and(over)
    }
}

/// A candidate with the level that it was submitted with.
fn as_submitted(next: Candidate) -> Candidate {
    Candidate { level: next.priority.level(), ..next }
}
