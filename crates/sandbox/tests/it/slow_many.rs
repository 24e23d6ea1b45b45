//! Very many files: the harvest's memory is bounded by its limits.

use std::fs;
use std::os::fd::AsFd as _;

use fluffy_sandbox::harvest::{Change, HarvestError, HarvestLimits, Kind, harvest};

use crate::harvest::volume;

const FILES: usize = 100_000;
const BOUND: u64 = 64 << 20;

/// The most memory that this process ever had, in bytes, and what it has now.
fn memory() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    };
    (field("VmHWM:"), field("VmRSS:"))
}

#[test]
fn a_hundred_thousand_files_are_harvested_in_bounded_memory() {
    let volume = volume();
    for n in 0..FILES {
        if n % 10_000 == 0 {
            fs::create_dir(volume.path().join(format!("directory-{}", n / 10_000))).unwrap();
        }
        let name = format!("directory-{}/a-file-with-a-name-of-usual-length-{n}", n / 10_000);
        fs::write(volume.path().join(name), n.to_string()).unwrap();
    }
    let root = fs::File::open(volume.path()).unwrap();
    let (_, before) = memory();
    let limits = HarvestLimits::default();
    let harvest = harvest(root.as_fd(), Kind::Output, &limits, &|_| false).unwrap();
    let (peak, _) = memory();
    assert!(peak.saturating_sub(before) < BOUND, "{} bytes", peak.saturating_sub(before));
    eprintln!("{} bytes for {FILES} files", peak.saturating_sub(before));
    assert_eq!(harvest.changes().len(), FILES);
    for change in harvest.changes() {
        let Change::Write(file) = change else { panic!("{change:?}") };
        let number = file.path().as_str().rsplit('-').next().unwrap();
        assert_eq!(harvest.read(file).unwrap(), number.as_bytes());
    }
}

/// The dearest names there are, in one directory: a quarter have foldings ten times as long as the
/// name, the others are refused and six times as long once they are escaped.
#[test]
fn costly_names_run_into_the_limit_and_not_into_memory() {
    let volume = volume();
    for n in 0..70_000 {
        let costly = if n % 4 == 0 { "\u{fdfa}".repeat(80) } else { "\u{1b}".repeat(240) };
        fs::write(volume.path().join(format!("{costly}{n}")), "").unwrap();
    }
    let root = fs::File::open(volume.path()).unwrap();
    let (_, before) = memory();
    let limits = HarvestLimits::default();
    let error = harvest(root.as_fd(), Kind::Output, &limits, &|_| false).unwrap_err();
    assert!(matches!(error, HarvestError::Names(_)), "{error}");
    let all = HarvestLimits { names: fluffy_base::ByteSize::from_bytes(20 << 20), ..limits };
    let error = harvest(root.as_fd(), Kind::Output, &all, &|_| false).unwrap_err();
    assert!(matches!(error, HarvestError::Names(_)), "{error}");
    let (peak, _) = memory();
    assert!(peak.saturating_sub(before) < BOUND, "{} bytes", peak.saturating_sub(before));
    eprintln!("{} bytes", peak.saturating_sub(before));
}
