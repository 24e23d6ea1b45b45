//! On which processors a job runs.
//!
//! Programs start as many workers and threads as they see processors, and the limit of processes counts each of
//! them: on a machine with many, runners of tests would reach it at once, for a share of time that is one
//! processor's. So a job sees as many as its share is worth, and one more for what waits.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// How many processors a job sees for its share of time, which is in thousandths of one.
pub(super) fn worth(share: u32) -> usize {
    usize::try_from(share.div_ceil(1_000)).unwrap_or(usize::MAX).saturating_add(1)
}

/// Stays on so many processors, beginning with this one, which the system has just found idle. It is no limit:
/// a job may undo it, and a machine that does not tell its processors shows all of them.
pub(super) fn stay_on(count: usize) {
    let Ok(all) = sched_getaffinity(None) else { return };
    let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|it| all.is_set(*it)).collect();
    let mut chosen = CpuSet::new();
    for processor in choose(&all, sched_getcpu(), count) {
        chosen.set(processor);
    }
    // The processors may have changed just now; then it stays where it was.
    let _as_before = sched_setaffinity(None, &chosen);
}

fn choose(all: &[usize], here: usize, count: usize) -> Vec<usize> {
    let first = all.iter().position(|it| *it == here).unwrap_or(0);
    all.iter().cycle().skip(first).take(count.min(all.len())).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_worth_its_processors_and_one_more() {
        assert_eq!([0, 1, 250, 1_000, 1_001, 4_000].map(worth), [1, 2, 2, 2, 3, 5]);
    }

    #[test]
    fn processors_are_taken_from_this_one_on_and_each_once() {
        assert_eq!(choose(&[0, 1, 2, 3], 1, 2), [1, 2]);
        assert_eq!(choose(&[0, 1, 4, 7], 7, 3), [7, 0, 1]);
        assert_eq!(choose(&[5, 6], 6, 100), [6, 5]);
        // It was moved since.
        assert_eq!(choose(&[5, 6], 9, 1), [5]);
        assert_eq!(choose(&[], 0, 2), [0_usize; 0]);
    }
}
