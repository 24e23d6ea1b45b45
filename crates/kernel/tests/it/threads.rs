//! Many threads, one chain.

use std::collections::HashSet;
use std::thread;

use crate::lab::{ALLOWED, DENIED, Lab, Runs, call, echo, ends};

/// Eight threads submit `each` requests: mostly reads, some effects, some refusals.
fn check(each: usize) {
    let lab = Lab::new();
    let runs = Runs::default();
    let kernel = lab.boot(vec![runs.effect("touch")]);
    let submit = &|thread: usize, n: usize| {
        let id = format!("{thread}-{n}");
        let (request, expected) = match n % 100 {
            0 => (call(&id, "touch", "{}"), ALLOWED),
            1 => (call(&id, "nope", "{}"), DENIED),
            _ => (echo(&id), ALLOWED),
        };
        let receipt = kernel.submit(request);
        assert_eq!(ends(&receipt), expected, "{receipt:?}");
        assert_eq!(receipt.request_id, id);
        receipt.entry.unwrap()
    };
    let entries: HashSet<u64> = thread::scope(|scope| {
        let run = |thread| scope.spawn(move || (0..each).map(|n| submit(thread, n)).collect());
        let threads: Vec<thread::ScopedJoinHandle<'_, Vec<u64>>> = (0..8).map(run).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(entries.len(), 8 * each, "every receipt has an entry of its own");
    let effects = 8 * each.div_ceil(100);
    assert_eq!(runs.count(), effects as u64);
    kernel.close().unwrap();
    // A decision for each effect; the segment's beginning, the kernel's start and its end.
    assert_eq!(lab.entries().len(), 8 * each + effects + 3);
    lab.verify();
}

#[test]
fn lesson_l11_eight_threads_are_all_answered_and_keep_one_chain() {
    check(500);
}

#[test]
fn slow_eight_threads_with_10_000_requests_each_keep_one_chain() {
    check(10_000);
}
