//! A kernel that is killed takes its sandboxes with it, and the next one takes away what it left.

use std::io::Read as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fluffy_sandbox::{Config, End, Input, Job, Runtime as _, Swept, Template};

use crate::counted::{Counted, Place, networks, wait_for_networks};
use crate::kernel::{Kernel, open};

/// Waits until nothing of a sandbox is there any more; it has a second.
fn wait_for_quiet(place: &Place) {
    let begin = Instant::now();
    while !place.processes().is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", place.processes());
        std::thread::yield_now();
    }
}

#[test]
fn case_56_a_sandbox_is_dead_within_a_second_of_its_kernel() {
    let place = Place::new();
    for _ in 0..5 {
        let mut kernel = Kernel::start(&place, "one");
        kernel.says("there");
        assert!(place.processes().len() >= 2, "{:?}", place.processes());
        kernel.kill();
        wait_for_quiet(&place);
    }
    let native = open(&place.state());
    assert_eq!(native.sweep().left, 0);
    drop(native);
    assert_eq!(place.files(), Vec::<String>::new());
}

#[test]
fn case_56_a_paused_sandbox_is_dead_within_a_second_of_its_kernel() {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    if !mounts.contains(" - cgroup2 ") {
        // The freezer of version 1 lets nobody die; what is left is swept up.
        return;
    }
    let place = Place::new();
    let mut kernel = Kernel::start(&place, "paused");
    kernel.says("held");
    assert!(!place.processes().is_empty());
    kernel.kill();
    wait_for_quiet(&place);
    drop(open(&place.state()));
    assert_eq!(place.files(), Vec::<String>::new());
}

#[test]
fn case_56_a_paused_sandbox_that_nobody_could_end_is_swept_up() {
    let place = Place::new();
    let mut kernel = Kernel::start(&place, "paused");
    kernel.says("held");
    assert!(!place.processes().is_empty());
    kernel.kill_its_maker();
    kernel.kill();
    drop(open(&place.state()));
    wait_for_quiet(&place);
    assert_eq!(place.files(), Vec::<String>::new());
}

#[test]
fn case_56_a_sandbox_outlives_the_thread_that_started_it() {
    let place = Place::new();
    let native = open(&place.state());
    let (theirs, ours) = std::io::pipe().unwrap();
    let sandbox = std::thread::scope(|threads| {
        let starting = threads.spawn(|| {
            let mut job = Job::new("sh").args(["-c", "read line; exit 7", place.token()]);
            job.stdin = Input::From(theirs.into());
            let sandbox = native.create(Config::of(Template::CodeExecutor), job).unwrap();
            sandbox.start(Arc::new(())).unwrap();
            sandbox
        });
        starting.join().unwrap()
    });
    // Another comes and goes while it waits.
    native.run(Config::of(Template::CodeExecutor), Job::new("true"), Arc::new(())).unwrap();
    drop(ours);
    assert_eq!(sandbox.wait().unwrap().end, End::Exited(7));
}

#[test]
fn kernels_that_open_at_the_same_time_leave_each_other_alone() {
    let place = Place::new();
    let opened: Vec<_> = (0..8)
        .map(|_| {
            let state = place.state();
            std::thread::spawn(move || {
                for _ in 0..10 {
                    let native = open(&state);
                    let config = Config::of(Template::CodeExecutor);
                    let outcome = native.run(config, Job::new("true"), Arc::new(())).unwrap();
                    assert!(outcome.is_success());
                }
            })
        })
        .collect();
    for thread in opened {
        thread.join().unwrap();
    }
    assert_eq!(place.files(), Vec::<String>::new());
}

#[test]
fn slow_a_hundred_killed_kernels_leave_nothing_behind() {
    const KERNELS: u32 = 100;
    let place = Place::new();
    let seed = seed();
    println!("seed {seed}");
    let mut random = Random(seed);
    let before = Counted::now(&[]);
    let networks_before = networks();
    let mut instances = Vec::new();
    for _ in 0..KERNELS {
        let mut kernel = Kernel::start(&place, "loop");
        if random.below(4) > 0 {
            kernel.says("runs");
        }
        wait_for(Duration::from_micros(random.below(120_000)));
        kernel.kill();
        for file in place.files() {
            let name = file.rsplit('/').next().unwrap().to_owned();
            if !instances.contains(&name) {
                instances.push(name);
            }
        }
        // The next kernel's start takes away what this one left.
    }
    let native = open(&place.state());
    assert_eq!(native.sweep(), Swept::default(), "opening sweeps already");
    drop(native);
    wait_for_quiet(&place);
    assert!(instances.len() > 10, "{instances:?}");
    assert_eq!(place.files(), Vec::<String>::new());
    assert_eq!(Counted::now(&instances), before);
    wait_for_networks(networks_before);
    assert_eq!(std::fs::read_to_string(place.project().join("file")).unwrap(), "file\n");
}

/// Lets time pass, waiting on something that never comes.
fn wait_for(time: Duration) {
    let (theirs, _ours) = std::io::pipe().unwrap();
    let mut fds = [rustix::event::PollFd::new(&theirs, rustix::event::PollFlags::IN)];
    let time = rustix::event::Timespec::try_from(time).unwrap();
    rustix::event::poll(&mut fds, Some(&time)).unwrap();
}

fn seed() -> u64 {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    u64::from_ne_bytes(bytes)
}

/// Numbers that look random and follow from a seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 |= 1;
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
