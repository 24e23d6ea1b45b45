//! Someone swaps what is harvested for links to the outside while it is harvested. In earnest all
//! processes are dead by then; the harvest holds without.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use fluffy_sandbox::harvest::{Change, Kind};
use rustix::fs::{CWD, RenameFlags};

use crate::harvest::{gather, volume};

const CANARY: &str = "canary from outside";
const ROUNDS: usize = 2_000;

/// Ends the swapping, also when a round fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What was seen in all rounds.
#[derive(Debug, Default)]
struct Seen {
    taken: usize,
    refused: usize,
}

/// Harvests while `first` and `second` change places again and again, and reads all that is taken.
fn harvest_while_swapping(volume: &Path, first: &str, second: &str) -> Seen {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (first, second) = (volume.join(first), volume.join(second));
            while !stop.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &first, CWD, &second, RenameFlags::EXCHANGE)
                    .unwrap();
            }
        });
        let _stop = Stop(&stop);
        let mut seen = Seen::default();
        for _ in 0..ROUNDS {
            look(volume, &mut seen);
        }
        seen
    })
}

fn look(volume: &Path, seen: &mut Seen) {
    let harvest = gather(volume, Kind::Output).unwrap();
    seen.refused += harvest.refused().len();
    for change in harvest.changes() {
        let Change::Write(file) = change else { panic!("{change:?}") };
        assert_eq!(file.size(), 6);
        if let Ok(content) = harvest.read(file) {
            assert_eq!(String::from_utf8(content).unwrap(), "inside");
            seen.taken += 1;
        }
    }
}

#[test]
fn a_directory_that_becomes_a_link_never_leads_outside() {
    let (volume, outside) = (volume(), volume());
    fs::create_dir_all(volume.path().join("dir/sub")).unwrap();
    fs::create_dir_all(outside.path().join("sub")).unwrap();
    for name in ["file", "sub/file"] {
        fs::write(volume.path().join("dir").join(name), "inside").unwrap();
        fs::write(outside.path().join(name), CANARY).unwrap();
    }
    symlink(outside.path(), volume.path().join("link")).unwrap();
    let seen = harvest_while_swapping(volume.path(), "dir", "link");
    assert!(seen.taken > 0 && seen.refused > 0, "the race was not run: {seen:?}");
}

#[test]
fn a_file_that_becomes_a_link_never_leads_outside() {
    let (volume, outside) = (volume(), volume());
    fs::write(volume.path().join("file"), "inside").unwrap();
    fs::write(outside.path().join("canary"), CANARY).unwrap();
    symlink(outside.path().join("canary"), volume.path().join("link")).unwrap();
    let seen = harvest_while_swapping(volume.path(), "file", "link");
    assert!(seen.taken > 0 && seen.refused > 0, "the race was not run: {seen:?}");
}

#[test]
fn a_file_that_becomes_a_pipe_never_makes_the_harvest_wait() {
    let volume = volume();
    fs::write(volume.path().join("file"), "inside").unwrap();
    let pipe = volume.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let seen = harvest_while_swapping(volume.path(), "file", "pipe");
    assert!(seen.taken > 0 && seen.refused > 0, "the race was not run: {seen:?}");
}
