//! Statements about the board, each with the few tasks that show it.

use fluffy_sandbox::Template::{self, AiProvider, CodeExecutor, IntegrationTest, PolicySandbox};

use super::Priority::{Background, Idle, Normal, System, Urgent};
use super::*;

pub(super) fn task(id: u64, priority: Priority, template: Template) -> Task {
    let after = Vec::new();
    Task { id: TaskId(id), name: String::new(), priority, template, after, lasts_ms: None }
}

fn after(id: u64, on: &[u64]) -> Task {
    let after = on.iter().map(|on| TaskId(*on)).collect();
    Task { after, ..task(id, Normal, CodeExecutor) }
}

/// A board under test, with what it ordered since somebody looked.
struct Scene {
    board: Board,
    now: u64,
    orders: Vec<String>,
}

impl Scene {
    fn new(limits: Limits) -> Self {
        Self { board: Board::new(limits), now: 0, orders: Vec::new() }
    }

    fn submit(&mut self, tasks: impl IntoIterator<Item = Task>) {
        let tasks = tasks.into_iter().collect();
        let orders = self.board.submit(tasks, self.now).unwrap();
        self.note(orders);
    }

    fn hear(&mut self, event: Event) {
        let orders = self.board.hear(event, self.now);
        self.note(orders);
    }

    fn ends(&mut self, id: u64) {
        self.hear(Event::Ended(TaskId(id), Ended::Completed));
    }

    fn note(&mut self, orders: Vec<Order>) {
        self.orders.extend(orders.into_iter().map(|order| match order {
            Order::Start(id) => format!("start {id}"),
            Order::Pause(id) => format!("pause {id}"),
            Order::Resume(id) => format!("resume {id}"),
            Order::Destroy(id, Ended::Failed(why)) => format!("destroy {id}: {why}"),
            Order::GiveUp(id, Ended::Failed(why)) => format!("give up {id}: {why}"),
            Order::Destroy(id, ended) => format!("destroy {id}: {ended:?}"),
            Order::GiveUp(id, ended) => format!("give up {id}: {ended:?}"),
            Order::DropCaches => "drop caches".to_owned(),
        }));
    }

    #[track_caller]
    fn ordered(&mut self, expected: &[&str]) {
        assert_eq!(std::mem::take(&mut self.orders), expected);
    }
}

fn one_seat() -> Limits {
    Limits { global: 1, ..Limits::default() }
}

#[test]
fn sch_1_the_most_urgent_goes_first_and_inside_a_priority_the_first_that_came() {
    let mut scene = Scene::new(one_seat());
    scene.submit([task(1, System, CodeExecutor)]);
    let rest = [Idle, Normal, Background, Normal, Urgent, System];
    scene.submit((2..).zip(rest).map(|(id, priority)| task(id, priority, CodeExecutor)));
    scene.ordered(&["start 1"]);
    for id in [1, 7, 6, 3, 5, 4, 2] {
        scene.ends(id);
    }
    scene.ordered(&["start 7", "start 6", "start 3", "start 5", "start 4", "start 2"]);
    assert!(scene.board.is_idle());
}

#[test]
fn sch_1_who_waits_long_goes_before_younger_ones_of_priority_two_but_not_before_the_systems() {
    let mut scene = Scene::new(Limits { age_ms: 100, ..one_seat() });
    scene.submit([task(1, System, CodeExecutor), task(2, Idle, CodeExecutor)]);
    scene.now = 300;
    scene.submit([task(3, Urgent, CodeExecutor), task(4, System, CodeExecutor)]);
    scene.ends(1);
    scene.ends(4);
    scene.ends(2);
    scene.ordered(&["start 1", "start 4", "start 2", "start 3"]);
}

#[test]
fn sch_2_a_task_starts_when_everything_it_depends_on_is_completed() {
    let mut scene = Scene::new(Limits::default());
    scene.submit([after(1, &[]), after(2, &[]), after(3, &[1, 2, 2])]);
    scene.ends(1);
    assert_eq!(scene.board.waits(TaskId(3)), Some(Waits::Dependencies(vec![TaskId(2)])));
    scene.ends(2);
    scene.submit([after(4, &[1, 2])]);
    scene.ordered(&["start 1", "start 2", "start 3", "start 4"]);
}

#[test]
fn sch_2_a_failure_is_passed_on_with_its_reason() {
    let mut scene = Scene::new(one_seat());
    scene.submit([after(1, &[]), after(2, &[1]), after(3, &[2]), after(4, &[1, 3]), after(5, &[])]);
    let why = Why::Itself("exited with code 1".to_owned());
    scene.hear(Event::Ended(TaskId(1), Ended::Failed(why)));
    scene.submit([after(6, &[3])]);
    scene.ordered(&[
        "start 1",
        "give up 2: dependency failed: 1",
        "give up 4: dependency failed: 1",
        "give up 3: dependency failed: 2",
        "start 5",
        "give up 6: dependency failed: 3",
    ]);
}

#[test]
fn sch_2_who_depends_on_what_was_cancelled_is_told_so() {
    let mut scene = Scene::new(one_seat());
    scene.submit([after(1, &[]), after(2, &[]), after(3, &[2]), after(4, &[1])]);
    scene.hear(Event::Cancelled(TaskId(2)));
    scene.hear(Event::Cancelled(TaskId(1)));
    scene.hear(Event::Cancelled(TaskId(1)));
    scene.hear(Event::Ended(TaskId(1), Ended::Failed(Why::Itself("killed".to_owned()))));
    scene.ordered(&[
        "start 1",
        "give up 2: Cancelled",
        "give up 3: dependency cancelled: 2",
        "destroy 1: Cancelled",
        "give up 4: dependency cancelled: 1",
    ]);
    assert_eq!(scene.board.outcome(TaskId(1)), Some(&Ended::Cancelled));
}

#[test]
fn sch_2_tasks_that_wait_for_each_other_are_refused_and_none_of_them_is_taken() {
    let mut board = Board::new(Limits::default());
    let ids = |ids: &[u64]| ids.iter().map(|id| TaskId(*id)).collect::<Vec<_>>();
    let knot = vec![after(1, &[]), after(2, &[1, 4]), after(3, &[2]), after(4, &[3])];
    assert_eq!(board.submit(knot, 0), Err(Refused::Cycle(ids(&[2, 3, 4]))));
    assert_eq!(board.submit(vec![after(1, &[1])], 0), Err(Refused::Cycle(ids(&[1]))));
    let unknown = Refused::Unknown { task: TaskId(2), on: TaskId(9) };
    assert_eq!(board.submit(vec![after(1, &[]), after(2, &[9])], 0), Err(unknown));
    assert!(board.is_idle());
    board.submit(vec![after(5, &[])], 0).unwrap();
    assert_eq!(board.submit(vec![after(5, &[])], 0), Err(Refused::Twice(TaskId(5))));
}

#[test]
fn sch_3_no_kind_and_not_all_together_have_more_seats_than_their_limit() {
    let mut scene = Scene::new(Limits::default());
    let kinds = [CodeExecutor, CodeExecutor, CodeExecutor, PolicySandbox, PolicySandbox];
    let kinds = kinds.into_iter().chain([AiProvider, AiProvider, IntegrationTest]);
    scene.submit((1..).zip(kinds).map(|(id, kind)| task(id, Normal, kind)));
    scene.ordered(&["start 1", "start 2", "start 4", "start 6"]);
    let waits = |id| scene.board.waits(TaskId(id)).unwrap().to_string();
    assert_eq!(waits(3), "for a seat: 2 of code-executor work");
    assert_eq!(waits(7), "for a seat: 4 sandboxes work");
    scene.ends(4);
    scene.ends(1);
    scene.ordered(&["start 5", "start 3"]);
}

#[test]
fn sch_4_what_is_less_urgent_is_paused_and_goes_on_afterwards() {
    let mut scene = Scene::new(one_seat());
    scene.submit([task(1, Normal, CodeExecutor)]);
    scene.submit([task(2, Urgent, AiProvider), task(3, Normal, AiProvider)]);
    scene.ordered(&["start 1", "pause 1"]);
    assert_eq!(scene.board.at_work(CodeExecutor), (1, 1));
    scene.hear(Event::Paused(TaskId(1)));
    scene.ordered(&["start 2"]);
    scene.ends(2);
    scene.ends(1);
    scene.ordered(&["resume 1", "start 3"]);
}

#[test]
fn sch_4_nobody_is_paused_for_what_is_as_urgent_or_would_not_fit_in_its_place() {
    let mut scene = Scene::new(Limits { code_executor: 1, ..Limits::default() });
    scene.submit([task(1, Urgent, CodeExecutor), task(2, Idle, AiProvider)]);
    scene.submit([task(3, Urgent, CodeExecutor)]);
    scene.ordered(&["start 1", "start 2"]);
}

#[test]
fn sch_4_what_has_worked_for_more_than_four_fifths_of_its_time_is_waited_for() {
    let lasting = |id, lasts| Task { lasts_ms: Some(lasts), ..task(id, Normal, CodeExecutor) };
    for (now, paused) in [(800, true), (801, false)] {
        let mut scene = Scene::new(one_seat());
        scene.submit([lasting(1, 1000)]);
        scene.now = now;
        scene.submit([task(2, System, PolicySandbox)]);
        scene.ordered(if paused { &["start 1", "pause 1"] } else { &["start 1"] });
    }
}

#[test]
fn sch_4_above_eighty_hundredths_of_memory_it_is_destroyed_instead() {
    for (used, destroyed) in [(80, false), (81, true)] {
        let mut scene = Scene::new(one_seat());
        scene.submit([task(1, Normal, CodeExecutor)]);
        scene.hear(Event::Memory(Share(used)));
        scene.orders.clear();
        scene.submit([task(2, System, PolicySandbox)]);
        let end = "destroy 1: ended for task 2, which is more urgent, as memory is at 81 %";
        scene.ordered(&[if destroyed { end } else { "pause 1" }]);
    }
}

#[test]
fn sch_4_what_ends_while_it_is_being_paused_gives_its_seat_back_once() {
    let mut scene = Scene::new(one_seat());
    scene.submit([task(1, Normal, CodeExecutor), task(2, Urgent, AiProvider)]);
    scene.ends(2);
    scene.submit([task(3, Urgent, AiProvider)]);
    scene.ends(1);
    scene.hear(Event::Paused(TaskId(1)));
    scene.ordered(&["start 2", "start 1", "pause 1", "start 3"]);
    assert_eq!(scene.board.at_work(AiProvider), (1, 1));
}

#[test]
fn sch_5_at_eighty_hundredths_nothing_new_starts_and_caches_are_dropped_once() {
    let mut scene = Scene::new(Limits::default());
    scene.submit([task(1, Normal, CodeExecutor)]);
    scene.hear(Event::Memory(Share(80)));
    scene.hear(Event::Memory(Share(85)));
    scene.submit([task(2, Urgent, CodeExecutor), task(3, System, PolicySandbox)]);
    scene.ordered(&["start 1", "drop caches", "start 3"]);
    assert_eq!(scene.board.waits(TaskId(2)), Some(Waits::Memory(Share(85))));
    scene.hear(Event::Memory(Share(79)));
    scene.ordered(&["start 2"]);
}

#[test]
fn sch_5_where_nothing_of_ours_could_give_memory_back_one_is_let_through_at_a_time() {
    let mut scene = Scene::new(Limits::default());
    scene.hear(Event::Memory(Share(89)));
    scene.submit([task(1, Normal, CodeExecutor), task(2, Normal, CodeExecutor)]);
    scene.ordered(&["drop caches", "start 1"]);
    scene.ends(1);
    scene.ordered(&["start 2"]);
}

#[test]
fn sch_5_at_ninety_hundredths_what_is_not_critical_is_destroyed_and_the_rest_stays() {
    let limits = Limits { global: 4, code_executor: 4, ..Limits::default() };
    let mut scene = Scene::new(limits);
    let all = [Idle, Background, Normal, Urgent];
    scene.submit((1..).zip(all).map(|(id, priority)| task(id, priority, CodeExecutor)));
    scene.submit([task(5, System, PolicySandbox)]);
    scene.hear(Event::Paused(TaskId(1)));
    scene.orders.clear();
    scene.hear(Event::Memory(Share(90)));
    scene.hear(Event::Memory(Share(91)));
    scene.ordered(&[
        "drop caches",
        "destroy 2: ended as memory is at 90 %",
        "destroy 3: ended as memory is at 90 %",
        "destroy 1: ended as memory is at 90 %",
    ]);
}

#[test]
fn sch_5_what_waits_for_memory_that_stays_spent_is_told_so() {
    let mut scene = Scene::new(Limits::default());
    scene.hear(Event::Memory(Share(95)));
    scene.submit([task(1, Urgent, AiProvider)]);
    scene.now = 29_999;
    scene.hear(Event::Memory(Share(95)));
    scene.ordered(&["drop caches"]);
    scene.now = 30_000;
    scene.hear(Event::Memory(Share(96)));
    scene.ordered(&["give up 1: not started: memory stays at 96 %"]);
}

#[test]
fn what_is_said_of_tasks_that_are_not_there_changes_nothing() {
    let mut scene = Scene::new(Limits::default());
    let nobody = TaskId(7);
    for event in [
        Event::Ended(nobody, Ended::Completed),
        Event::Cancelled(nobody),
        Event::Paused(nobody),
        Event::Unpaused(nobody),
    ] {
        scene.hear(event);
    }
    scene.ordered(&[]);
    assert_eq!(scene.board.at_work(CodeExecutor), (0, 0));
}
