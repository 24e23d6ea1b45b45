//! Many sandboxes, at once and one after the other.

use std::sync::{Arc, Barrier};

use fluffy_sandbox::{
    Config, End, Job, Native, Runtime as _, Store, Stream, Template, Watcher, Workspace,
};

use crate::counted::{Counted, Place, networks, wait_for_networks};
use crate::kernel::open;

fn instance(place: &Place) -> Vec<String> {
    place.files().iter().map(|file| file.rsplit('/').next().unwrap().to_owned()).collect()
}

fn config(native: &Native, place: &Place, store: Store) -> Config {
    let workspace = Workspace::overlay(&place.project(), native.volume(store).unwrap());
    Config::of(Template::CodeExecutor).with_workspace(workspace).unwrap()
}

#[test]
fn slow_five_thousand_in_sequence_leave_nothing_behind() {
    const COUNT: usize = 5_000;
    let place = Place::new();
    let native = open(&place.state());
    let run = |round: usize| {
        let store = if round.is_multiple_of(10) { Store::Disk } else { Store::Memory };
        let job = Job::new("/bin/true");
        let outcome = native.run(config(&native, &place, store), job, Arc::new(())).unwrap();
        assert_eq!(outcome.end, End::Exited(0), "round {round}");
    };
    run(0);
    let instances = instance(&place);
    let (before, memory) = (Counted::now(&instances), resident());
    let networks_before = networks();
    (1..COUNT).for_each(run);
    assert_eq!(Counted::now(&instances), before);
    wait_for_networks(networks_before);
    let grown = resident().saturating_sub(memory);
    assert!(grown < 16 << 20, "memory grew by {grown} bytes");
    assert_eq!(native.sweep(), fluffy_sandbox::Swept::default());
    drop(native);
    assert_eq!(place.files(), Vec::<String>::new());
}

#[test]
fn slow_two_hundred_at_once_all_run_and_leave_nothing_behind() {
    const COUNT: usize = 200;
    let place = Place::new();
    let native = open(&place.state());
    native.run(config(&native, &place, Store::Memory), Job::new("true"), Arc::new(())).unwrap();
    let instances = instance(&place);
    let before = Counted::now(&instances);
    let networks_before = networks();
    let all_run = Arc::new(Barrier::new(COUNT));
    std::thread::scope(|threads| {
        for number in 0..COUNT {
            let (native, place, all_run) = (&native, &place, Arc::clone(&all_run));
            threads.spawn(move || one_of_many(native, place, number, &all_run));
        }
    });
    // With the next order, the maker forgets those that have ended.
    native.run(config(&native, &place, Store::Memory), Job::new("true"), Arc::new(())).unwrap();
    assert_eq!(Counted::now(&instances), before);
    assert_eq!(place.processes(), Vec::<String>::new());
    wait_for_networks(networks_before);
    drop(native);
    assert_eq!(place.files(), Vec::<String>::new());
}

/// Runs a job that goes on until all the others run, too.
fn one_of_many(native: &Native, place: &Place, number: usize, all_run: &Arc<Barrier>) {
    let store = if number.is_multiple_of(4) { Store::Disk } else { Store::Memory };
    let (theirs, ours) = std::io::pipe().unwrap();
    let script = "echo $1 > mine; echo there; read line; test \"$(cat mine)\" = $1";
    let mut job = Job::new("sh").args(["-c", script, place.token(), &number.to_string()]);
    job.stdin = fluffy_sandbox::Input::From(theirs.into());
    let sandbox = native.create(config(native, place, store), job).unwrap();
    let meets = Meets { all_run: Arc::clone(all_run) };
    sandbox.start(Arc::new(meets)).unwrap();
    drop(ours);
    assert_eq!(sandbox.wait().unwrap().end, End::Exited(0), "{number}");
    sandbox.remove();
}

/// Holds a job at its first line until all have come that far.
struct Meets {
    all_run: Arc<Barrier>,
}

impl Watcher for Meets {
    fn printed(&self, _stream: Stream, _bytes: &[u8]) {
        self.all_run.wait();
    }
}

/// Memory that this process has, in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}
