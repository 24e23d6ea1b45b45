//! What it costs to have a task wait for its turn, beside a bare heap with a semaphore.
//!
//! `cargo bench --package fluffy-kernel --bench schedule`

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use divan::Bencher;
use fluffy_kernel::schedule::{
    Board, Ended, Event, Limits, MachineMemory, Memory as _, Order, Priority, Scheduler, Task,
    TaskId,
};
use fluffy_sandbox::{
    Captured, Config, End, Health, Inspection, Job, MadeOf, Outcome, Runtime, RuntimeError,
    Sandbox, State, Store, Swept, Template, Usage, Volume, Watcher,
};

fn main() {
    divan::main();
}

/// So many tasks, each depending on the one ten before it.
const TASKS: u64 = 1_000;

fn task(id: u64) -> Task {
    let at = usize::try_from(id % 5).unwrap();
    let after = if id > 10 { vec![TaskId(id - 10)] } else { Vec::new() };
    let (priority, template) = (*Priority::ALL.get(at).unwrap(), Template::CodeExecutor);
    Task { id: TaskId(id), name: String::new(), priority, template, after, lasts_ms: Some(1_000) }
}

/// A thousand tasks that are all submitted before the first ends: the figure is for all of them.
#[divan::bench(sample_count = 50)]
fn board_a_thousand_tasks_with_dependencies(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| {
        let mut board = Board::new(Limits::default());
        let mut open: Vec<Order> = board.submit((1..=TASKS).map(task).collect(), 0).unwrap();
        let mut ended = 0;
        let mut now = 0;
        while let Some(order) = open.pop() {
            now += 1;
            let event = match order {
                Order::Start(id) => {
                    ended += 1;
                    Event::Ended(id, Ended::Completed)
                }
                Order::Pause(id) => Event::Paused(id),
                _ => continue,
            };
            open.extend(board.hear(event, now));
        }
        assert!(ended >= TASKS && board.is_idle());
    });
}

/// The peer: the same thousand in a heap by priority and age, without dependencies, ageing, kinds, pauses and memory.
#[divan::bench(sample_count = 50)]
fn peer_a_thousand_tasks_in_a_binary_heap(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| {
        let mut heap: BinaryHeap<Reverse<(Priority, u64)>> = BinaryHeap::new();
        let mut tasks = BTreeMap::new();
        for id in 1..=TASKS {
            let task = task(id);
            heap.push(Reverse((task.priority, id)));
            tasks.insert(id, task);
        }
        let mut ended = 0;
        while let Some(Reverse((_, id))) = heap.pop() {
            divan::black_box(tasks.remove(&id));
            ended += 1;
        }
        assert_eq!(ended, TASKS);
    });
}

/// A sandbox that has ended when it is started.
struct Nothing;

impl Runtime for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }

    fn ping(&self) -> Result<Health, RuntimeError> {
        Ok(Health::Ready { notes: Vec::new() })
    }

    fn volume(&self, _store: Store) -> Result<Volume, RuntimeError> {
        Err(RuntimeError::State(State::Failed))
    }

    fn create(&self, _config: Config, _job: Job) -> Result<Box<dyn Sandbox>, RuntimeError> {
        Ok(Box::new(Self))
    }

    fn made_of(&self) -> Result<Option<MadeOf>, RuntimeError> {
        Ok(None)
    }

    fn sweep(&self) -> Swept {
        Swept::default()
    }
}

impl Sandbox for Nothing {
    fn id(&self) -> &'static str {
        "nothing"
    }

    fn start(&self, _watcher: Arc<dyn Watcher>) -> Result<(), RuntimeError> {
        Ok(())
    }

    fn wait(&self) -> Result<Outcome, RuntimeError> {
        let (stdout, stderr) = <(Captured, Captured)>::default();
        let (end, reached, usage) = (End::Exited(0), Vec::new(), Usage::default());
        Ok(Outcome { end, reached, stdout, stderr, usage })
    }

    fn stop(&self, _grace: Duration) {}

    fn kill(&self) {}

    fn pause(&self) -> Result<(), RuntimeError> {
        Ok(())
    }

    fn resume(&self) -> Result<(), RuntimeError> {
        Ok(())
    }

    fn inspect(&self) -> Inspection {
        let (state, paused) = (State::Running, false);
        Inspection { state, paused, pid: None, processes: None, memory: None }
    }

    fn logs(&self) -> (Captured, Captured) {
        Default::default()
    }

    fn remove(&self) {}
}

fn run(runtime: &dyn Runtime) {
    let config = Config::of(Template::CodeExecutor);
    let outcome = runtime.run(config, Job::new("true"), Arc::new(())).unwrap();
    divan::black_box(outcome);
}

/// One sandbox that does nothing, from its making to its end.
#[divan::bench(sample_count = 100, sample_size = 1_000)]
fn lone_sandbox_without_scheduler(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| run(&Nothing));
}

/// The same in its turn.
#[divan::bench(sample_count = 100, sample_size = 1_000)]
fn lone_sandbox_scheduled(bencher: Bencher<'_, '_>) {
    let scheduler = Scheduler::new(Limits::default(), Box::new(MachineMemory::open()));
    let runtime = scheduler.over(Arc::new(Nothing));
    bencher.bench_local(|| run(&*runtime));
}

/// The peer: the same with a semaphore of four.
#[divan::bench(sample_count = 100, sample_size = 1_000)]
fn peer_lone_sandbox_with_a_semaphore(bencher: Bencher<'_, '_>) {
    let (free, freed) = (Mutex::new(4_usize), Condvar::new());
    bencher.bench_local(|| {
        let mut seats = freed.wait_while(free.lock().unwrap(), |free| *free == 0).unwrap();
        *seats -= 1;
        drop(seats);
        run(&Nothing);
        *free.lock().unwrap() += 1;
        freed.notify_one();
    });
}

/// What a look at the memory costs; there is one every quarter of a second at most.
#[divan::bench]
fn look_at_the_memory(bencher: Bencher<'_, '_>) {
    let memory = MachineMemory::open();
    bencher.bench_local(|| memory.used());
}
