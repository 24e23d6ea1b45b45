//! A ledger whose process is killed at any moment: nothing that was acknowledged is lost, nothing is
//! half there, and nobody cries wolf.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fluffy_base::Digest;
use fluffy_ledger::{Ledger, LedgerError, verify_bytes};

use crate::fixture::{Place, numbered, refused, start};

/// Names the directory for the child; a run without it is not a child.
const DIRECTORY: &str = "FLUFFY_TEST_KILLED_CHILD";
const APPENDS: u64 = 10_000;
const ROUNDS: u64 = 200;
/// Rounds that go on in one ledger.
const IN_ONE: u64 = 2;

/// The child: appends, and tells of each entry once it is acknowledged.
#[test]
fn slow_child_appends_until_it_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let ledger = Ledger::open(child_config(Path::new(&directory))).unwrap();
    assert_eq!(ledger.report().broken, None);
    let mut out = std::io::stdout().lock();
    let first = start(&ledger);
    writeln!(out, "\nack {} {}", first.seq, first.entry_hash).unwrap();
    for n in 0..APPENDS {
        let record = if n % 20 == 19 { refused(&ledger, n) } else { numbered(&ledger, n) };
        let appended = ledger.append(record).unwrap();
        writeln!(out, "ack {} {}", appended.seq, appended.entry_hash).unwrap();
    }
}

fn child_config(state: &Path) -> fluffy_ledger::LedgerConfig {
    let layout = fluffy_ledger::Layout::new(state.join("project"), state.join("remembered"));
    fluffy_ledger::LedgerConfig { layout, ..Place::new().config(1) }
}

fn start_child(state: PathBuf) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "slow_kill::slow_child_appends_until_it_is_killed", "--nocapture"])
        .env(DIRECTORY, state)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Lets a child run until it has acknowledged `until` entries, kills it, and gives all it told.
fn run_and_kill(place: &Place, until: u64) -> Vec<(u64, Digest)> {
    let mut child = start_child(place.project.state());
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acknowledged = Vec::new();
    if until == 0 {
        child.kill().unwrap();
    }
    // After the kill, what is still in the pipe was acknowledged too; a last line may be cut off.
    for line in lines.map_while(Result::ok) {
        let mut words = line.split(' ');
        if words.next() != Some("ack") {
            continue;
        }
        let seq = words.next().and_then(|seq| seq.parse().ok());
        let hash = words.next().and_then(|hash| hash.parse().ok());
        acknowledged.extend(seq.zip(hash));
        if acknowledged.len() as u64 == until {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    acknowledged
}

/// After how many acknowledgements the child of a round is killed: sometimes at once or soon, else
/// anywhere in the whole run.
fn moment(round: u64) -> u64 {
    let digest = Digest::of(&round.to_be_bytes());
    let random = u64::from_be_bytes(*digest.as_bytes().first_chunk().unwrap());
    match round % 20 {
        0 => 0,
        1 | 8 => 1 + random % 20,
        _ => random % APPENDS,
    }
}

#[test]
fn slow_nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let mut place = Place::new();
    let mut told = Vec::new();
    for round in 0..ROUNDS {
        if round % IN_ONE == 0 {
            (place, told) = (Place::new(), Vec::new());
        }
        told.extend(run_and_kill(&place, moment(round)));
        if round % 2 == 1 {
            // As it was left, before anyone repairs anything.
            check_bytes(&place, &told, round);
        }
        let ledger = Ledger::open(place.config(1)).unwrap();
        assert_eq!(ledger.report().broken, None, "round {round}");
        assert!(told.last().is_none_or(|(seq, _)| ledger.size() > *seq), "round {round}");
        drop(ledger);
        check_bytes(&place, &told, round);
        if round % IN_ONE == IN_ONE - 1 {
            assert_eq!(place.findings(), [], "round {round}");
        }
    }
}

#[test]
fn slow_another_process_is_told_who_writes_and_may_read() {
    let place = Place::new();
    let mut child = start_child(place.project.state());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("ack")), "it has begun");
    match Ledger::open(place.config(2)) {
        Err(LedgerError::Locked { pid }) => assert_eq!(pid, child.id().to_string()),
        other => panic!("{:?}", other.map(|ledger| ledger.size())),
    }
    for _ in 0..5 {
        assert_eq!(place.findings(), []);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(Ledger::open(place.config(2)).unwrap().report().broken, None);
}

/// Every entry that was told is there with its hash; entries, inputs and tiles agree.
fn check_bytes(place: &Place, told: &[(u64, Digest)], round: u64) {
    if !place.db().exists() {
        assert!(told.is_empty(), "round {round}");
        return;
    }
    let bytes = verify_bytes(&place.db()).unwrap();
    if bytes.entries == 0 {
        assert!(told.is_empty(), "round {round}");
        return;
    }
    assert_eq!(bytes.findings, [], "round {round}");
    let connection = rusqlite::Connection::open(place.db()).unwrap();
    let mut statement = connection.prepare("SELECT entry_hash FROM entries ORDER BY seq").unwrap();
    let hashes = statement.query_map([], |row| row.get::<_, [u8; 32]>(0)).unwrap();
    let found: Vec<_> = hashes.map(|hash| Digest::from_bytes(hash.unwrap())).collect();
    for (seq, hash) in told {
        assert_eq!(found[*seq as usize], *hash, "round {round}, entry {seq}");
    }
}
