//! Notes are read back as they were made, or not at all.

use fluffy_kernel::{
    EventType, Journal as _, Kernel, Note, NotesError, newest_note, notes, proved_copy, proved_note,
};
use rusqlite::Connection;
use serde_json::json;

use crate::lab::{Lab, echo, key};

fn tell(kernel: &Kernel, number: u64) -> u64 {
    let note = Note {
        event: EventType::Skill,
        intent: format!("note {number}"),
        request_id: None,
        workflow_state: None,
        metadata: vec![("number", number.to_string())],
        content: Some(json!({ "number": number })),
    };
    kernel.record(note).unwrap().seq
}

#[test]
fn notes_are_given_in_order_each_proved_and_none_is_left_out() {
    let lab = Lab::new();
    let (layout, key) = (lab.layout(), key().verifying_key().clone());
    assert_eq!(notes(&layout, &key, EventType::Skill, 0, |_| ()).unwrap(), None);
    let kernel = lab.boot(vec![]);
    let numbers: Vec<_> = (0..3)
        .map(|number| {
            kernel.submit(echo("between"));
            tell(&kernel, number)
        })
        .collect();
    let (mut all, mut told) = (Vec::new(), Vec::new());
    let span = notes(&layout, &key, EventType::Skill, numbers[1], |note| {
        all.push(note.seq);
        if let Some(content) = note.content {
            told.push((
                note.seq,
                note.actor.to_owned(),
                String::from_utf8(content.to_vec()).unwrap(),
            ));
            assert_eq!(note.event, Some(EventType::Skill));
            assert!(note.metadata("number").is_some());
        }
    });
    assert_eq!(span.unwrap().unwrap().size, numbers[2] + 1);
    assert_eq!(all, (numbers[1]..=numbers[2]).collect::<Vec<_>>(), "every entry is shown");
    let expected = [1, 2].map(|number| {
        let seq = numbers[usize::try_from(number).unwrap()];
        (seq, "SYSTEM".to_owned(), json!({ "number": number }).to_string())
    });
    assert_eq!(told, expected);
    let mut newest = Vec::new();
    newest_note(&layout, &key, EventType::Skill, |note| newest.push(note.seq)).unwrap();
    assert_eq!(newest, [numbers[2]]);
    // One by itself, signed or not yet.
    for seq in numbers {
        let mut copy = None;
        let visit =
            |note: &fluffy_kernel::KeptNote<'_>| copy = Some((note.seq, note.copy().unwrap()));
        proved_note(&layout, &key, EventType::Skill, seq, visit).unwrap().unwrap();
        let (read, copy) = copy.unwrap();
        assert_eq!(read, seq);
        kernel.checkpoint().unwrap();
        let mut again = None;
        proved_copy(&layout, &key, EventType::Skill, &copy, |note| again = Some(note.seq)).unwrap();
        assert_eq!(again, Some(seq));
        let forged = String::from_utf8(copy).unwrap().replace("SYSTEM", "system");
        let refused = proved_copy(&layout, &key, EventType::Skill, forged.as_bytes(), |_| panic!());
        assert!(matches!(refused, Err(NotesError::Forged(_))));
    }
    assert_eq!(proved_note(&layout, &key, EventType::Skill, 999, |_| panic!()).unwrap(), None);
}

#[test]
fn a_note_that_was_changed_or_hidden_ends_the_reading() {
    let lab = Lab::new();
    let (layout, key) = (lab.layout(), key().verifying_key().clone());
    let kernel = lab.boot(vec![]);
    let first = tell(&kernel, 1);
    let last = tell(&kernel, 2);
    kernel.close().unwrap();
    let change = |sql: &str| {
        let ledger = Connection::open(lab.database()).unwrap();
        ledger.execute_batch(sql).unwrap();
    };
    change(&format!("UPDATE entries SET input = CAST(input || x'20' AS BLOB) WHERE seq = {first}"));
    let refused = |result: Result<_, NotesError>| matches!(result, Err(NotesError::Forged(_)));
    assert!(refused(notes(&layout, &key, EventType::Skill, 0, |_| ())));
    assert!(refused(proved_note(&layout, &key, EventType::Skill, first, |_| panic!())));
    // Made to look like something else, it is no note any more, and is found all the same.
    change(&format!(
        "UPDATE entries SET detail = CAST(replace(CAST(detail AS TEXT), '\"skill\"', '\"other\"') AS BLOB) \
         WHERE seq = {last}"
    ));
    assert!(refused(newest_note(&layout, &key, EventType::Skill, |_| ())));
    change(&format!("DELETE FROM entries WHERE seq >= {last}"));
    assert!(refused(newest_note(&layout, &key, EventType::Skill, |_| ())));
}
