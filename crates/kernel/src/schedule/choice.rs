//! Who is next: tasks in line, by kind and priority.

use std::collections::BTreeMap;

use fluffy_sandbox::Template;

use super::limits::{Limits, place};
use super::task::{Priority, TaskId};

/// Tasks that want a seat and never had one, each kind and priority in a line of its own, the oldest first.
///
/// Who is older has waited longer, so that nobody in a line is ever before its head.
#[derive(Debug, Default)]
pub(super) struct Lines([[BTreeMap<TaskId, u64>; 5]; 4]);

/// A task with what decides whether it is next; the smallest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    /// Its level, after its wait.
    pub(super) level: u8,
    /// Which.
    pub(super) id: TaskId,
    /// As it was submitted.
    pub(super) priority: Priority,
    /// Its kind.
    pub(super) template: Template,
}

impl Lines {
    pub(super) fn join(&mut self, template: Template, priority: Priority, id: TaskId, since: u64) {
        if let Some(line) = self.line_mut(template, priority) {
            line.insert(id, since);
        }
    }

    pub(super) fn leave(&mut self, template: Template, priority: Priority, id: TaskId) {
        if let Some(line) = self.line_mut(template, priority) {
            line.remove(&id);
        }
    }

    /// The heads of all lines of the kinds that are wanted.
    pub(super) fn heads(
        &self,
        limits: &Limits,
        now: u64,
        wanted: impl Fn(Template) -> bool,
    ) -> impl Iterator<Item = Candidate> {
        let all = Template::ALL.into_iter();
        let all = all.flat_map(|kind| Priority::ALL.map(|priority| (kind, priority)));
        let age_ms = limits.age_ms;
        all.filter(move |(kind, _)| wanted(*kind)).filter_map(move |place| {
            let (template, priority) = place;
            let (&id, &since) = self.line(template, priority)?.first_key_value()?;
            let level = priority.aged(now.saturating_sub(since), age_ms);
            Some(Candidate { level, id, priority, template })
        })
    }

    /// The first so many of each line.
    pub(super) fn fronts(&self, limits: &Limits) -> impl Iterator<Item = TaskId> {
        let all = Template::ALL.into_iter();
        let all = all.flat_map(|kind| Priority::ALL.map(|priority| (kind, priority)));
        let limits = *limits;
        all.flat_map(move |(kind, priority)| {
            let line = self.line(kind, priority).into_iter().flat_map(BTreeMap::keys);
            line.copied().take(limits.of(kind))
        })
    }

    /// The most urgent priority, as submitted, of which one is there.
    pub(super) fn most_urgent(&self) -> Option<Priority> {
        let there = |priority: &Priority| {
            let of = |kind| self.line(kind, *priority).is_some_and(|line| !line.is_empty());
            Template::ALL.into_iter().any(of)
        };
        Priority::ALL.into_iter().find(there)
    }

    /// All of them.
    pub(super) fn ids(&self) -> Vec<TaskId> {
        self.0.iter().flatten().flat_map(BTreeMap::keys).copied().collect()
    }

    fn line(&self, template: Template, priority: Priority) -> Option<&BTreeMap<TaskId, u64>> {
        self.0.get(place(template))?.get(usize::from(priority.level() - 1))
    }

    fn line_mut(
        &mut self,
        template: Template,
        priority: Priority,
    ) -> Option<&mut BTreeMap<TaskId, u64>> {
        self.0.get_mut(place(template))?.get_mut(usize::from(priority.level() - 1))
    }
}
