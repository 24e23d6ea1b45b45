//! Ten thousand random graphs of tasks in virtual time, held against what must always be true.
//!
//! What is expected is computed here from the words of the requirements, not by the board's own functions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use fluffy_sandbox::Template;

use super::*;

const GRAPHS: u64 = 10_000;

/// Numbers that look random and are the same on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn is_one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        let at = usize::try_from(self.below(all.len() as u64)).unwrap();
        all[at]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Waiting,
    Working,
    Standing,
    Done,
}

/// A task as the simulation knows it.
struct Known {
    task: Task,
    at: At,
    /// It was told to end.
    ending: bool,
    pausing: bool,
    began: bool,
    since: u64,
    waited: u64,
    worked: u64,
    needs: u64,
    succeeds: bool,
    completed: bool,
    /// Which of its ends is the one that counts: a pause puts it off.
    generation: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Submit(usize),
    Finish(TaskId, u64),
    Still(TaskId),
    Killed(TaskId),
    Cancel(TaskId),
    Measure,
}

struct World {
    seed: u64,
    dice: Dice,
    limits: Limits,
    board: Board,
    now: u64,
    to_come: BinaryHeap<Reverse<(u64, u64, Happens)>>,
    counter: u64,
    batches: Vec<Vec<Task>>,
    known: BTreeMap<TaskId, Known>,
    memory: u8,
    has_memory_trouble: bool,
    seen: Seen,
}

/// How often what is to be shown came about: a simulation in which it never does shows nothing.
#[derive(Debug, Default)]
struct Seen {
    starts: u64,
    pauses: u64,
    resumes: u64,
    destroyed: u64,
    passed_on: u64,
    cycles: u64,
    risen: u64,
    caches: u64,
}

#[test]
fn slow_sch_1_to_5_hold_in_ten_thousand_random_graphs() {
    let mut all = Seen::default();
    for seed in 0..GRAPHS {
        let seen = World::new(seed).run();
        all.starts += seen.starts;
        all.pauses += seen.pauses;
        all.resumes += seen.resumes;
        all.destroyed += seen.destroyed;
        all.passed_on += seen.passed_on;
        all.cycles += seen.cycles;
        all.risen += seen.risen;
        all.caches += seen.caches;
    }
    println!("{all:?}");
    let each = [all.pauses, all.resumes, all.destroyed, all.passed_on, all.cycles, all.risen];
    assert!(each.into_iter().all(|count| count > 1_000), "{all:?}");
    assert!(all.starts > 50_000 && all.caches > 500, "{all:?}");
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let mut limits = Limits { age_ms: 500 + dice.below(3_000), ..Limits::default() };
        if dice.is_one_in(2) {
            limits.global = 1 + usize::try_from(dice.below(5)).unwrap();
            limits.code_executor = 1 + usize::try_from(dice.below(4)).unwrap();
            limits.ai_provider = 1 + usize::try_from(dice.below(3)).unwrap();
        }
        let has_memory_trouble = dice.is_one_in(4);
        let mut world = Self {
            seed,
            board: Board::new(limits),
            limits,
            now: 0,
            to_come: BinaryHeap::new(),
            counter: 0,
            batches: Vec::new(),
            known: BTreeMap::new(),
            memory: 40,
            has_memory_trouble,
            seen: Seen::default(),
            dice,
        };
        world.make_batches();
        world
    }

    fn make_batches(&mut self) {
        let (mut next, mut at) = (1, 0);
        for batch in 0..=self.dice.below(5) {
            let count = 1 + self.dice.below(6);
            let tasks = (next..next + count).map(|id| self.make_task(id, next + count)).collect();
            self.batches.push(tasks);
            at += self.dice.below(1_500);
            self.later(at, Happens::Submit(usize::try_from(batch).unwrap()));
            next += count;
        }
        if self.has_memory_trouble {
            self.later(100, Happens::Measure);
        }
    }

    /// A task that depends on earlier ones and now and then on a later one of its batch, which may make a knot.
    fn make_task(&mut self, id: u64, end: u64) -> Task {
        let mut after = Vec::new();
        while id > 1 && self.dice.is_one_in(3) {
            after.push(TaskId(1 + self.dice.below(id - 1)));
        }
        if self.dice.is_one_in(40) {
            after.push(TaskId(id + self.dice.below(end - id)));
        }
        let kinds = [Template::CodeExecutor, Template::CodeExecutor, Template::AiProvider];
        let kinds = [&kinds[..], &Template::ALL].concat();
        let lasts_ms = (!self.dice.is_one_in(3)).then(|| 1 + self.dice.below(4_000));
        Task {
            id: TaskId(id),
            name: String::new(),
            priority: self.dice.of(&Priority::ALL),
            template: self.dice.of(&kinds),
            after,
            lasts_ms,
        }
    }

    fn later(&mut self, after: u64, what: Happens) {
        self.counter += 1;
        self.to_come.push(Reverse((self.now + after, self.counter, what)));
    }

    fn run(mut self) -> Seen {
        while let Some(Reverse((at, _, what))) = self.to_come.pop() {
            self.now = at;
            self.happens(what);
            self.check_limits();
            assert!(self.now < 3_600_000, "{}: it never ends", self.seed);
        }
        let open: Vec<_> = self.known.values().filter(|it| it.at != At::Done).collect();
        assert!(open.is_empty() && self.board.is_idle(), "{}: not all ended", self.seed);
        self.seen
    }

    fn happens(&mut self, what: Happens) {
        match what {
            Happens::Submit(batch) => self.submit(batch),
            Happens::Finish(id, generation) => {
                let it = &self.known[&id];
                if it.at == At::Working && it.generation == generation {
                    let ended = if it.succeeds {
                        Ended::Completed
                    } else {
                        Ended::Failed(Why::Itself("it failed".to_owned()))
                    };
                    self.ended(id, it.succeeds, ended);
                }
            }
            Happens::Killed(id) => {
                if self.known[&id].at != At::Done {
                    self.ended(id, false, Ended::Failed(Why::Itself("killed".to_owned())));
                }
            }
            Happens::Still(id) => self.still(id),
            Happens::Cancel(id) => self.hear(Event::Cancelled(id)),
            Happens::Measure => self.measure(),
        }
    }

    fn submit(&mut self, batch: usize) {
        let tasks = std::mem::take(&mut self.batches[batch]);
        // What a refused batch would have held is not there to depend on.
        let last = tasks.last().unwrap().id;
        let first = tasks.first().unwrap().id;
        let known = |on: &TaskId| self.known.contains_key(on) || (*on >= first && *on <= last);
        let tasks: Vec<Task> = tasks
            .into_iter()
            .map(|mut task| {
                task.after.retain(known);
                task
            })
            .collect();
        let expected_cycle = has_cycle(&tasks);
        match self.board.submit(tasks.clone(), self.now) {
            Err(Refused::Cycle(_)) => {
                assert!(expected_cycle, "{}: no cycle is there", self.seed);
                self.seen.cycles += 1;
            }
            Err(other) => panic!("{}: {other}", self.seed),
            Ok(orders) => {
                assert!(!expected_cycle, "{}: a cycle was taken", self.seed);
                for task in tasks {
                    self.learn(task);
                }
                self.carry_out(orders);
            }
        }
    }

    fn learn(&mut self, task: Task) {
        let id = task.id;
        if self.dice.is_one_in(15) {
            let after = self.dice.below(3_000);
            self.later(after, Happens::Cancel(id));
        }
        let needs = self.dice.below(2_000);
        let known = Known {
            needs,
            task,
            at: At::Waiting,
            ending: false,
            pausing: false,
            began: false,
            since: self.now,
            waited: 0,
            worked: 0,
            succeeds: !self.dice.is_one_in(12),
            completed: false,
            generation: 0,
        };
        self.known.insert(id, known);
    }

    fn ended(&mut self, id: TaskId, completed: bool, ended: Ended) {
        let it = self.known.get_mut(&id).unwrap();
        (it.at, it.completed) = (At::Done, completed);
        self.hear(Event::Ended(id, ended));
    }

    fn still(&mut self, id: TaskId) {
        let unwilling = self.dice.is_one_in(30);
        let it = self.known.get_mut(&id).unwrap();
        if it.at != At::Working || it.ending {
            // It was too late; whoever drives says so all the same.
            return self.hear(Event::Paused(id));
        }
        it.pausing = false;
        if unwilling {
            return self.hear(Event::Unpaused(id));
        }
        it.at = At::Standing;
        it.worked += self.now - it.since;
        it.since = self.now;
        it.generation += 1;
        self.hear(Event::Paused(id));
    }

    /// Memory goes up and down, and now and then stays where it is.
    fn measure(&mut self) {
        let step = self.dice.below(31);
        self.memory = (u64::from(self.memory) + step).saturating_sub(15).clamp(30, 97) as u8;
        self.hear(Event::Memory(Share(self.memory)));
        if !self.to_come.is_empty() || !self.board.is_idle() {
            self.later(250, Happens::Measure);
        }
    }

    fn hear(&mut self, event: Event) {
        let orders = self.board.hear(event, self.now);
        self.carry_out(orders);
    }

    fn carry_out(&mut self, orders: Vec<Order>) {
        for order in orders {
            match order {
                Order::Start(id) => {
                    self.check_start(id);
                    self.seen.starts += 1;
                    self.sits_down(id);
                }
                Order::Resume(id) => {
                    assert_eq!(self.known[&id].at, At::Standing, "{}", self.seed);
                    self.check_order(id);
                    self.seen.resumes += 1;
                    self.sits_down(id);
                }
                Order::Pause(id) => self.is_to_pause(id),
                Order::Destroy(id, ended) => self.is_to_end(id, &ended),
                Order::GiveUp(id, ended) => self.is_given_up(id, &ended),
                Order::DropCaches => {
                    assert!(self.memory >= 80, "{}", self.seed);
                    self.seen.caches += 1;
                }
            }
        }
    }

    fn sits_down(&mut self, id: TaskId) {
        let now = self.now;
        let it = self.known.get_mut(&id).unwrap();
        it.waited += now - it.since;
        (it.at, it.began, it.since) = (At::Working, true, now);
        it.generation += 1;
        let (left, generation) = (it.needs.saturating_sub(it.worked), it.generation);
        self.later(left, Happens::Finish(id, generation));
    }

    fn is_to_pause(&mut self, id: TaskId) {
        self.seen.pauses += 1;
        assert!(self.memory <= 80, "{}: paused where memory is short", self.seed);
        let it = self.known.get_mut(&id).unwrap();
        assert!(it.at == At::Working && !it.pausing && !it.ending, "{}", self.seed);
        it.pausing = true;
        let worked = it.worked + (self.now - it.since);
        assert!(it.task.lasts_ms.is_none_or(|lasts| worked * 5 <= lasts * 4), "{}", self.seed);
        let priority = it.task.priority;
        let waits = |it: &&Known| matches!(it.at, At::Waiting | At::Standing);
        let more_urgent = |it: &Known| it.task.priority < priority;
        assert!(self.known.values().filter(waits).any(more_urgent), "{}", self.seed);
        let grace = self.dice.below(1_001);
        self.later(grace, Happens::Still(id));
    }

    fn is_to_end(&mut self, id: TaskId, ended: &Ended) {
        self.seen.destroyed += 1;
        let it = self.known.get_mut(&id).unwrap();
        assert!(matches!(it.at, At::Working | At::Standing) && !it.ending, "{}", self.seed);
        it.ending = true;
        let is_critical = matches!(it.task.priority, Priority::System | Priority::Urgent);
        match ended {
            Ended::Failed(Why::Memory(_)) => {
                assert!(self.memory >= 90 && !is_critical, "{}", self.seed);
            }
            Ended::Failed(Why::Displaced { by, .. }) => {
                assert!(self.memory > 80, "{}", self.seed);
                let by = self.known[by].task.priority;
                assert!(by < self.known[&id].task.priority, "{}", self.seed);
            }
            Ended::Cancelled => {}
            other => panic!("{}: {other:?}", self.seed),
        }
        let soon = self.dice.below(50);
        self.later(soon, Happens::Killed(id));
    }

    fn is_given_up(&mut self, id: TaskId, ended: &Ended) {
        if let Ended::Failed(Why::Dependency(on) | Why::Withdrawn(on)) = ended {
            self.seen.passed_on += 1;
            let it = &self.known[&id];
            assert!(it.task.after.contains(on), "{}: no dependency of it", self.seed);
            assert!(self.known[on].at == At::Done && !self.known[on].completed, "{}", self.seed);
        }
        let it = self.known.get_mut(&id).unwrap();
        assert!(it.at == At::Waiting, "{}: it had begun", self.seed);
        it.at = At::Done;
    }

    fn check_start(&mut self, id: TaskId) {
        let it = &self.known[&id];
        assert!(it.at == At::Waiting && !it.began, "{}: started twice", self.seed);
        assert!(self.is_ready(it), "{}: started before a dependency", self.seed);
        let others = self.known.values().filter(|it| it.at == At::Working || it.at == At::Standing);
        let is_alone = others.count() == 0;
        let has_memory = self.memory < 80 || (self.memory < 90 && is_alone);
        let is_system = it.task.priority == Priority::System;
        assert!(has_memory || is_system, "{}: started where memory is short", self.seed);
        self.check_order(id);
    }

    /// Nobody who could have had this seat was before this one.
    fn check_order(&mut self, id: TaskId) {
        let it = &self.known[&id];
        let mine = (self.level(it), id);
        let mut has_risen = false;
        for other in self.known.values().filter(|other| other.task.id != id) {
            let could = match other.at {
                At::Waiting => self.is_ready(other) && self.has_memory_for(other),
                At::Standing => !other.ending && self.memory < 90,
                At::Working | At::Done => false,
            };
            let kind = other.task.template;
            let has_seat =
                kind == it.task.template || self.working(Some(kind)) < self.limits.of(kind);
            if !could || !has_seat {
                continue;
            }
            let theirs = (self.level(other), other.task.id);
            assert!(mine < theirs, "{}: {mine:?} went before {theirs:?}", self.seed);
            let is_alike = other.task.priority == it.task.priority
                && kind == it.task.template
                && !it.began
                && !other.began;
            assert!(!is_alike || id < other.task.id, "{}: not first in, first out", self.seed);
            has_risen |= other.task.priority < it.task.priority;
        }
        self.seen.risen += u64::from(has_risen);
    }

    fn has_memory_for(&self, it: &Known) -> bool {
        self.memory < 80 || it.task.priority == Priority::System
    }

    fn is_ready(&self, it: &Known) -> bool {
        it.task.after.iter().all(|on| self.known[on].completed)
    }

    /// One better for each age threshold of waiting, never better than 2; 1 stays 1.
    fn level(&self, it: &Known) -> u64 {
        let waits = matches!(it.at, At::Waiting | At::Standing);
        let waited = it.waited + if waits { self.now - it.since } else { 0 };
        match it.task.priority.level() {
            1 => 1,
            level => u64::from(level).saturating_sub(waited / self.limits.age_ms).max(2),
        }
    }

    fn working(&self, kind: Option<Template>) -> usize {
        let is_of = |it: &&Known| kind.is_none_or(|kind| kind == it.task.template);
        self.known.values().filter(|it| it.at == At::Working).filter(is_of).count()
    }

    fn check_limits(&self) {
        assert!(self.working(None) <= self.limits.global, "{}: too many", self.seed);
        for kind in Template::ALL {
            assert!(self.working(Some(kind)) <= self.limits.of(kind), "{}: {kind}", self.seed);
        }
        for kind in Template::ALL {
            let expected = (self.working(None), self.working(Some(kind)));
            assert_eq!(self.board.at_work(kind), expected, "{}", self.seed);
        }
    }
}

/// Whether some of these wait for each other: found by walking from each as far as it goes.
fn has_cycle(tasks: &[Task]) -> bool {
    let find = |id: TaskId| tasks.iter().find(|task| task.id == id);
    tasks.iter().any(|start| {
        let mut seen = vec![];
        let mut left = start.after.clone();
        while let Some(id) = left.pop() {
            if id == start.id {
                return true;
            }
            if !seen.contains(&id) {
                seen.push(id);
                left.extend(find(id).into_iter().flat_map(|task| task.after.clone()));
            }
        }
        false
    })
}
