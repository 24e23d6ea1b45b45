//! What a durable entry costs, beside one `fdatasync`; and what 32 threads that wait for theirs reach,
//! beside batches of one thread and beside the plainest thing that could be written for it.
//!
//! `cargo bench --package fluffy-ledger --bench durable`
//!
//! The disk is another one from second to second, so all take turns, and a ratio is the median over the
//! rounds of the two times within one round.

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]
#![expect(clippy::print_stdout, reason = "figures are what a bench is for")]
#![expect(clippy::disallowed_methods, reason = "time is what is measured")]

mod fixture;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Condvar, Mutex};
use std::time::Instant;

use fixture::{BODY, bare, filled, insert, record};
use fluffy_base::Decision;
use fluffy_ledger::Ledger;
use rusqlite::Connection;
use tempfile::TempDir;

/// Threads that wait, and entries of a batch.
const WAITERS: u64 = 32;

/// One way to make entries durable; a turn is so many of them.
struct Contender<'a> {
    name: &'static str,
    entries: u64,
    turn: Box<dyn FnMut() + 'a>,
    /// Seconds of its turns.
    took: Vec<f64>,
}

fn contender<'a>(name: &'static str, entries: u64, turn: impl FnMut() + 'a) -> Contender<'a> {
    Contender { name, entries, turn: Box::new(turn), took: Vec::new() }
}

fn main() {
    // `cargo test --benches` asks for a list of tests; there are none.
    if std::env::args().any(|arg| arg == "--list" || arg == "--test") {
        return;
    }
    one_waiter();
    many_waiters();
}

fn one_waiter() {
    const TURN: u64 = 20;
    let dir = TempDir::new().unwrap();
    let (file, full) = (scratch(dir.path()), bare(dir.path(), "FULL"));
    let (_dir, ledger) = settled();
    let (mut at, mut seq) = (0, 0);
    let mut contenders = [
        contender("bare: three pages written over, fdatasync", TURN, || {
            for _ in 0..TURN {
                at = (at + 3 * 4120) % (4 << 20);
                file.write_all_at(&[1; 3 * 4120], at).unwrap();
                rustix::fs::fdatasync(&file).unwrap();
            }
        }),
        contender("bare: SQLite commit, synchronous = FULL", TURN, || {
            for _ in 0..TURN {
                seq += 1;
                insert(&full, seq, &BODY);
            }
        }),
        contender("ledger, one waiter", TURN, || {
            for _ in 0..TURN {
                ledger.append(record(Decision::Deny)).unwrap();
            }
        }),
    ];
    compete(&mut contenders, 150);
    report(&contenders);
}

fn many_waiters() {
    const TURN: u64 = 400 * WAITERS;
    let dir = TempDir::new().unwrap();
    let full = bare(dir.path(), "FULL");
    let plain_dir = TempDir::new().unwrap();
    let plain = Plain::new(bare(plain_dir.path(), "FULL"));
    let (_dirs, ledgers): (Vec<_>, Vec<_>) = [settled(), settled()].into_iter().unzip();
    let [in_batches, by_waiters] = ledgers.as_slice() else { return };
    let mut seq = 0;
    let (crowd, plain_crowd) = (Crowd::default(), Crowd::default());
    std::thread::scope(|scope| {
        for _ in 0..WAITERS {
            scope.spawn(|| {
                crowd.wait_for_turns(|| {
                    by_waiters.append(record(Decision::Deny)).unwrap();
                });
            });
            scope.spawn(|| plain_crowd.wait_for_turns(|| plain.append()));
        }
        let mut contenders = [
            contender("ledger, one thread, 32 entries a sync", TURN, || batches(in_batches, TURN)),
            contender("ledger, 32 threads, each waiting for its own", TURN, || crowd.turn(TURN)),
            contender("bare: SQLite, 32 inserts a FULL commit", TURN, || {
                bare_batches(&full, TURN, &mut seq);
            }),
            contender("bare: SQLite, 32 threads, one commits for all", TURN, || {
                plain_crowd.turn(TURN);
            }),
        ];
        compete(&mut contenders, 15);
        report(&contenders);
        crowd.leave();
        plain_crowd.leave();
    });
}

/// Group commit as one would write it first: a lock, a condition, and whoever finds nobody at work
/// inserts for all.
struct Plain {
    line: Mutex<Line>,
    ended: Condvar,
    connection: Mutex<Connection>,
}

#[derive(Default)]
struct Line {
    entered: u64,
    durable: u64,
    is_busy: bool,
}

impl Plain {
    fn new(connection: Connection) -> Self {
        let (line, ended) = (Mutex::default(), Condvar::default());
        Self { line, ended, connection: Mutex::new(connection) }
    }

    fn append(&self) {
        let mut line = self.line.lock().unwrap();
        line.entered += 1;
        let own = line.entered;
        while line.durable < own {
            if line.is_busy {
                line = self.ended.wait(line).unwrap();
                continue;
            }
            line.is_busy = true;
            let (first, last) = (line.durable + 1, line.entered);
            drop(line);
            self.commit(first, last);
            line = self.line.lock().unwrap();
            (line.durable, line.is_busy) = (last, false);
            self.ended.notify_all();
        }
    }

    fn commit(&self, first: u64, last: u64) {
        let connection = self.connection.lock().unwrap();
        connection.execute_batch("BEGIN").unwrap();
        (first..=last).for_each(|seq| insert(&connection, seq, &BODY));
        connection.execute_batch("COMMIT").unwrap();
    }
}

/// Threads that are there all the time: making them is not what is measured.
struct Crowd {
    begin: Barrier,
    end: Barrier,
    /// What the turn has left.
    left: AtomicU64,
    /// There are no more turns.
    is_over: AtomicBool,
}

impl Default for Crowd {
    fn default() -> Self {
        let all = WAITERS as usize + 1;
        let (begin, end) = (Barrier::new(all), Barrier::new(all));
        Self { begin, end, left: AtomicU64::new(0), is_over: AtomicBool::new(false) }
    }
}

impl Crowd {
    fn turn(&self, entries: u64) {
        self.left.store(entries, Ordering::SeqCst);
        self.begin.wait();
        self.end.wait();
    }

    fn leave(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.begin.wait();
    }

    fn wait_for_turns(&self, act: impl Fn()) {
        loop {
            self.begin.wait();
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            while self.left.fetch_sub(1, Ordering::Relaxed).cast_signed() > 0 {
                act();
            }
            self.end.wait();
        }
    }
}

/// A file that is long enough, as the write-ahead log is after its first round.
fn scratch(dir: &Path) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    let file = options.open(dir.join("scratch")).unwrap();
    file.write_all_at(&vec![0; 8 << 20], 0).unwrap();
    file.sync_all().unwrap();
    file
}

/// A ledger in its stride: its log has been moved before, and is written over instead of growing.
fn settled() -> (TempDir, Ledger) {
    let (dir, ledger) = filled(2_000);
    for _ in 0..3_000 {
        ledger.append(record(Decision::Allow)).unwrap();
    }
    (dir, ledger)
}

fn batches(ledger: &Ledger, entries: u64) {
    for _ in 0..entries / WAITERS {
        for _ in 1..WAITERS {
            let _ = ledger.enter(record(Decision::Deny));
        }
        ledger.append(record(Decision::Deny)).unwrap();
    }
}

fn bare_batches(connection: &Connection, entries: u64, seq: &mut u64) {
    for _ in 0..entries / WAITERS {
        connection.execute_batch("BEGIN").unwrap();
        for _ in 0..WAITERS {
            *seq += 1;
            insert(connection, *seq, &BODY);
        }
        connection.execute_batch("COMMIT").unwrap();
    }
}

/// Everybody has a turn in every round, and another one begins each time. The first rounds warm up.
fn compete(contenders: &mut [Contender<'_>], rounds: usize) {
    const WARM: usize = 3;
    for round in 0..rounds + WARM {
        contenders.rotate_left(1);
        for contender in contenders.iter_mut() {
            let begin = Instant::now();
            (contender.turn)();
            let took = begin.elapsed().as_secs_f64();
            if round >= WARM {
                contender.took.push(took);
            }
        }
    }
    // The one that the others are held against stands first again.
    contenders.rotate_right((rounds + WARM) % contenders.len());
}

/// Prints the times, each beside the first contender's.
fn report(contenders: &[Contender<'_>]) {
    let Some(base) = contenders.first() else { return };
    println!("{:<48} {:>10} {:>12} {:>7}", "", "each", "a second", "ratio");
    for contender in contenders {
        let each = median(contender.took.iter().copied()) / contender.entries as f64;
        let ratio = median(contender.took.iter().zip(&base.took).map(|(own, base)| own / base));
        let (name, micros, rate) = (contender.name, each * 1e6, each.recip());
        println!("{name:<48} {micros:>7.1} µs {rate:>10.0}/s {ratio:>7.2}");
    }
    println!();
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
