//! What is appended comes back, byte for byte, and the same in every run.

use fluffy_base::{Decision, Digest, KernelId};
use fluffy_ledger::{
    Blob, DetailView, EventType, Ledger, LedgerError, Page, Query, Segment, find_entry, input_of,
};

use crate::fixture::{ALL, Place, event, numbered, records, refused, start};

#[test]
fn what_was_appended_is_there_after_reopening() {
    let place = Place::new();
    let ledger = place.started(1);
    let appended: Vec<_> = (2..100).map(|n| ledger.append(numbered(&ledger, n)).unwrap()).collect();
    let (size, head) = (ledger.size(), ledger.head());
    drop(ledger);

    let reopened = place.open();
    assert_eq!((reopened.size(), reopened.head()), (size, head));
    assert_eq!(reopened.report().entries, 100);
    assert_eq!((reopened.report().segment, &reopened.report().broken), (1, &None));
    let found = records(reopened.path());
    for place in appended {
        let entry = &found[place.seq as usize].entry;
        assert_eq!((entry.seq, entry.entry_hash), (place.seq, place.entry_hash));
        assert_eq!(entry.request_id, format!("request-{}", place.seq));
        assert_eq!(find_entry(reopened.path(), &place.entry_hash).unwrap(), Some(place.seq));
    }
    assert!(found.windows(2).all(|pair| pair[1].entry.prev_hash == pair[0].entry.entry_hash));
    drop(reopened);
    assert_eq!(place.findings(), []);
}

#[test]
fn a_new_ledger_begins_with_an_entry_that_names_its_key() {
    let place = Place::new();
    let ledger = place.open();
    let first = &records(ledger.path())[0];
    assert_eq!(first.entry.prev_hash, Digest::GENESIS);
    let detail = DetailView::parse(&first.detail).unwrap();
    assert_eq!(detail.event, "state_transition");
    assert_eq!(detail.metadata["public_key"], place.public().to_string());
    assert_eq!(detail.metadata["segment"], "1");
}

#[test]
fn a_ledger_keeps_its_kernel_id_whoever_opens_it() {
    let place = Place::new();
    drop(place.open());
    let mut config = place.config(2);
    config.origin.kernel_id = KernelId::named("another").unwrap();
    let ledger = Ledger::open(config).unwrap();
    assert_eq!(ledger.origin().kernel_id.as_str(), "kernel-test");
    assert_eq!(ledger.report().broken, None);
    let segment = Segment::active(&place.layout()).unwrap().unwrap();
    assert_eq!(segment.kernel_id().as_str(), "kernel-test");
}

#[test]
fn ker_10_the_same_records_give_the_same_bytes() {
    let write = || {
        let place = Place::new();
        let mut ledger = place.started(1);
        for event_type in EventType::ALL.iter().filter(|e| **e != EventType::KeyRotation) {
            ledger.append(event(&ledger, 5_000, *event_type)).unwrap();
        }
        for n in ledger.size()..1_100 {
            let record = if n % 7 == 0 { refused(&ledger, n) } else { numbered(&ledger, n) };
            ledger.append(record).unwrap();
        }
        let note = ledger.checkpoint().unwrap();
        ledger.close().unwrap();
        let remembered = std::fs::read_to_string(place.layout().remembered()).unwrap();
        (records(&place.db()), crate::fixture::dump(&place.db()).unwrap(), note, remembered)
    };
    assert_eq!(write(), write());
}

#[test]
fn every_kind_of_event_is_recorded_under_its_name() {
    let place = Place::new();
    let ledger = place.started(1);
    for event_type in EventType::ALL {
        ledger.append(event(&ledger, 5_000, *event_type)).unwrap();
    }
    for event_type in EventType::ALL {
        let query = Query { event: Some(*event_type), from_seq: 2, ..Query::default() };
        let found = query.collect(ledger.path(), ALL).unwrap();
        assert_eq!(found.len(), 1, "{event_type}");
        let detail = DetailView::parse(&found[0].detail).unwrap();
        assert_eq!((&*detail.event, detail.seq), (event_type.name(), found[0].entry.seq));
        assert_eq!(found[0].entry.request_id, event_type.name().to_uppercase());
    }
}

#[test]
fn inputs_are_kept_beside_their_entries() {
    let place = Place::new();
    let ledger = place.started(1);
    let inputs = [vec![], vec![0; 3], vec![0xff; 70_000], (0..=255).collect()];
    for bytes in inputs {
        let blob = Blob::new([bytes.len() as u8; 16], &bytes);
        let mut record = numbered(&ledger, 1);
        record.input = Some(blob.clone());
        let seq = ledger.append(record).unwrap().seq;
        assert_eq!(input_of(ledger.path(), seq).unwrap(), Some(blob.clone()));
        let found =
            Query { from_seq: seq, ..Query::default() }.collect(ledger.path(), ALL).unwrap();
        let detail = DetailView::parse(&found[0].detail).unwrap();
        assert_eq!(detail.input_blob, Some(blob.hash()));
    }
    assert_eq!(input_of(ledger.path(), 0).unwrap(), None);
    assert_eq!(place.findings(), []);
}

#[test]
fn any_text_comes_back_as_it_was() {
    let place = Place::new();
    let ledger = place.started(1);
    let texts = [
        String::new(),
        "\0".to_owned(),
        "a\0b\0".to_owned(),
        "e\u{301} \u{e9} \u{feff} \u{202e}".to_owned(),
        "\u{10ffff}\u{1f9f6}".to_owned(),
        "'; DROP TABLE entries; --\r\n\t\u{7f}\"\\".to_owned(),
        "x".repeat(3 << 20),
        "\u{1}".repeat(100_000),
    ];
    for text in &texts {
        let mut record = refused(&ledger, 1);
        record.request_id = text.clone();
        record.actor = text.clone();
        record.intent = text.clone();
        record.tool_name = Some(text.clone());
        record.error = Some(text.clone());
        record.detail.input_summary = Some(text.clone());
        record.detail.metadata.insert("text", text.clone());
        ledger.append(record).unwrap();
    }
    drop(ledger);
    assert_eq!(place.findings(), []);
    let ledger = place.open();
    assert_eq!(ledger.report().broken, None);
    for (text, found) in texts.iter().zip(&records(ledger.path())[2..]) {
        let entry = &found.entry;
        assert_eq!((&entry.request_id, &entry.actor, &entry.intent), (text, text, text));
        assert_eq!((entry.tool_name.as_ref(), entry.error.as_ref()), (Some(text), Some(text)));
        let detail = DetailView::parse(&found.detail).unwrap();
        assert_eq!(detail.input_summary.as_deref(), Some(text.as_str()));
        assert_eq!(detail.metadata["text"], *text);
    }
}

#[test]
fn numbers_beyond_what_json_can_tell_are_recorded_as_the_largest_it_can() {
    const LARGEST: u64 = (1 << 53) - 1;
    let place = Place::new();
    let ledger = place.started(1);
    for ts_ms in [LARGEST - 1, LARGEST, LARGEST + 1, 1 << 63, u64::MAX] {
        let mut record = event(&ledger, ts_ms, EventType::AiTurn);
        record.detail.duration_ms = Some(ts_ms);
        let seq = ledger.append(record).unwrap().seq;
        let found = &records(ledger.path())[seq as usize];
        assert_eq!(found.entry.ts_ms, ts_ms.min(LARGEST));
        let detail = DetailView::parse(&found.detail).unwrap();
        assert_eq!(detail.duration_ms, Some(ts_ms.min(LARGEST)));
    }
    drop(ledger);
    assert_eq!(place.findings(), []);
    assert_eq!(place.open().report().broken, None);
}

#[test]
fn lesson_l20_a_record_that_is_too_large_is_refused_alone() {
    let place = Place::new();
    let ledger = place.started(1);
    let mut record = numbered(&ledger, 1);
    record.input = Some(Blob::new([0; 16], &vec![0; (64 << 20) + 1]));
    let before = ledger.size();
    assert!(matches!(ledger.append(record), Err(LedgerError::TooLarge { .. })));
    assert_eq!(ledger.size(), before);
    assert_eq!(ledger.append(numbered(&ledger, 2)).unwrap().seq, before);
}

#[test]
fn nothing_is_appended_after_closing() {
    let place = Place::new();
    let mut ledger = place.started(1);
    ledger.close().unwrap();
    let late = ledger.append(numbered(&ledger, 2));
    assert!(matches!(late, Err(LedgerError::Stopped(_))), "{late:?}");
    ledger.close().unwrap();
    drop(ledger);
    assert_eq!(place.findings(), []);
    assert_eq!(place.open().report().entries, 2);
}

#[test]
fn queries_filter_page_and_order() {
    let place = Place::new();
    let ledger = place.started(1);
    for n in 2..50 {
        let record = if n % 10 == 0 { refused(&ledger, n) } else { numbered(&ledger, n) };
        ledger.append(record).unwrap();
    }
    drop(ledger);
    let ledger = place.started(2);
    let seqs = |query: Query, page: Page| -> Vec<u64> {
        let found = query.collect(ledger.path(), page).unwrap();
        found.iter().map(|record| record.entry.seq).collect()
    };
    let denied = || Query { decision: Some(Decision::Deny), ..Query::default() };
    assert_eq!(seqs(denied(), ALL), [10, 20, 30, 40]);
    let newest = Page { limit: 2, offset: 1, newest_first: true };
    assert_eq!(seqs(denied(), newest), [30, 20]);
    let builder =
        Query { actor: Some("builder".into()), since_ms: Some(1_047), ..Query::default() };
    assert_eq!(seqs(builder, ALL), [47, 48, 49]);
    let until = Query { until_ms: Some(1_003), from_seq: 3, ..Query::default() };
    assert_eq!(seqs(until, ALL), [3, 50]);
    let session = ledger.origin().session_id.to_string();
    assert_eq!(seqs(Query { session: Some(session), ..Query::default() }, ALL), [50]);
    let nobody = Query { actor: Some("nobody' OR 1=1".into()), ..Query::default() };
    assert!(seqs(nobody, ALL).is_empty());
    start(&ledger);
}
