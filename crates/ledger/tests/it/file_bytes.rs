//! The database as a file: whatever byte of it is changed, either verification says so, or what the
//! database says is the same as before.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use fluffy_ledger::{Ledger, verify_bytes, verify_structure};
use proptest::prelude::*;

use crate::fixture::{Place, copy_dir, dump};

/// Bytes of a page.
const PAGE: u64 = 4096;

/// A closed ledger with entries on several pages, tiles on overflow pages, and inputs.
fn original() -> (Place, String) {
    let place = Place::filled(70);
    let said = dump(&place.db()).unwrap();
    (place, said)
}

/// Whether verification notices anything. It never passes by failing.
fn is_noticed(path: &Path) -> bool {
    match (verify_bytes(path), verify_structure(path)) {
        (Ok(check), Ok(structure)) => !check.findings.is_empty() || !structure.is_empty(),
        (Err(error), _) | (_, Err(error)) => {
            panic!("verification could not judge the file: {error:?}")
        }
    }
}

/// Changes a byte in place and judges; then puts it back.
fn check_byte(path: &Path, said: &str, offset: u64, how: u8) -> bool {
    let file: File = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ how], offset).unwrap();
    let noticed = is_noticed(path);
    if !noticed {
        let now = dump(path);
        assert!(now.as_deref() == Ok(said), "byte {offset} ^ {how:#x} went unnoticed");
    }
    file.write_all_at(&byte, offset).unwrap();
    noticed
}

#[test]
fn every_byte_of_the_header_is_noticed_or_means_nothing() {
    let (place, said) = original();
    let mut unnoticed = Vec::new();
    for offset in 0..200 {
        for how in [0x01, 0x80, 0xff] {
            if !check_byte(&place.db(), &said, offset, how) && !unnoticed.contains(&offset) {
                unnoticed.push(offset);
            }
        }
    }
    assert_eq!(place.findings(), [], "everything was put back");
    // The version needed for writing, counters, upper bytes of the schema's format and of the
    // encoding, what is reserved, the writer's version; beyond the header, space that is free.
    let known = |offset: &u64| matches!(offset, 18 | 24..=27 | 40..=46 | 56..=59 | 72..=99 | 112..);
    assert!(unnoticed.iter().all(known), "{unnoticed:?}");
}

#[test]
fn every_byte_of_whole_pages_is_noticed_or_means_nothing() {
    let (place, said) = original();
    let pages = std::fs::metadata(place.db()).unwrap().len() / PAGE;
    let mut unnoticed = 0;
    // A number of bytes that shares no factor with a page: over the pages, every kind of place.
    for offset in (0..pages * PAGE).step_by(97) {
        unnoticed += u64::from(!check_byte(&place.db(), &said, offset, 1 << (offset % 8)));
    }
    assert!(unnoticed < pages * PAGE / 97, "most bytes mean something");
    assert_eq!(place.findings(), [], "everything was put back");
}

#[test]
fn slow_each_single_byte_of_whole_pages_is_noticed_or_means_nothing() {
    let (place, said) = original();
    let pages = std::fs::metadata(place.db()).unwrap().len() / PAGE;
    // The schema, one of the first pages of the tables, and one from the middle.
    for page in [0, 3, pages / 2] {
        for offset in page * PAGE..(page + 1) * PAGE {
            check_byte(&place.db(), &said, offset, 1 << (offset % 8));
        }
    }
    assert_eq!(place.findings(), [], "everything was put back");
}

#[test]
fn a_file_cut_at_any_length_is_noticed() {
    let (place, _) = original();
    let whole = std::fs::read(place.db()).unwrap();
    let lengths = (0..whole.len()).step_by(509).chain([1, 16, 99, 100, 101, 512]);
    let near_pages = (1..whole.len() / 4096).flat_map(|page| [page * 4096 - 1, page * 4096]);
    for length in lengths.chain(near_pages).chain([whole.len() - 1]) {
        std::fs::write(place.db(), &whole[..length]).unwrap();
        assert!(is_noticed(&place.db()), "cut at {length}");
        assert!(!place.findings().is_empty(), "cut at {length}");
    }
    for more in [1, 4095, 4096, 8192] {
        let longer = [&whole[..], &vec![0; more]].concat();
        std::fs::write(place.db(), longer).unwrap();
        assert!(is_noticed(&place.db()), "{more} more");
    }
    std::fs::write(place.db(), whole).unwrap();
    assert_eq!(place.findings(), []);
}

#[test]
fn what_is_no_database_is_noticed() {
    let (place, _) = original();
    for content in [&b""[..], b"SQLite format 3\0", &[0; 4096], &[0xff; 10_000], b"text\n"] {
        std::fs::write(place.db(), content).unwrap();
        assert!(is_noticed(&place.db()), "{} bytes", content.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_byte_anywhere_is_noticed_or_means_nothing(place_in_file in 0.0..1.0, how in 1_u8..) {
        use std::sync::OnceLock;
        static ORIGINAL: OnceLock<(Place, String)> = OnceLock::new();
        let (place, said) = ORIGINAL.get_or_init(original);
        let length = std::fs::metadata(place.db()).unwrap().len();
        check_byte(&place.db(), said, (place_in_file * length as f64) as u64, how);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_byte_is_changed_the_ledger_opens_and_goes_on(
        place_in_file in 0.0..1.0, how in 1_u8.., run in 1_usize..6000, header in any::<bool>(),
    ) {
        use std::sync::OnceLock;
        static ORIGINAL: OnceLock<(Place, String)> = OnceLock::new();
        let (original, said) = ORIGINAL.get_or_init(original);
        let place = Place::new();
        copy_dir(&original.project.state(), &place.project.state());
        let mut bytes = std::fs::read(place.db()).unwrap();
        let length = if header { 120 } else { bytes.len() };
        let at = (place_in_file * length as f64) as usize;
        // One byte in the header, a run of them elsewhere.
        let end = if header { at + 1 } else { bytes.len().min(at + run) };
        bytes[at..end].iter_mut().for_each(|byte| *byte ^= how);
        std::fs::write(place.db(), &bytes).unwrap();

        let ledger = Ledger::open(place.config(2)).unwrap();
        let broken = ledger.report().broken.clone();
        match &broken {
            None => prop_assert_eq!(&dump(&place.db()).unwrap(), said),
            Some(broken) => {
                let kept = broken.kept.as_ref().unwrap();
                prop_assert!(std::fs::read(kept).unwrap() == bytes, "kept as it was");
            }
        }
        crate::fixture::start(&ledger);
        drop(ledger);
        if broken.is_some() {
            prop_assert_eq!(place.findings(), []);
        } else {
            // After an orderly end, opening does not look at space that is free; verifying does.
            prop_assert!(place.findings().iter().all(|finding| finding.seq.is_none()));
        }
        let again = Ledger::open(place.config(3)).unwrap();
        prop_assert_eq!(&again.report().broken, &None);
    }
}
