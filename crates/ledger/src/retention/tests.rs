//! Retention over days of a virtual clock, watched at every operation on a file.
#![expect(clippy::disallowed_methods, reason = "tests change, move and remove files of a ledger")]

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use fluffy_base::{Decision, KernelId, SeededIds, SessionId, VirtualClock};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::{
    Blob, Break, ExportOptions, KeyName, Layout, LedgerConfig, Located, Origin, Page, Problem,
    Pruned, Query, Segment, SegmentCheck, SigningKey, StoredRecord, VerifyingKey, export,
    find_entry, input_of, verify_bundle, verify_segments,
};

const FORWARDS: Page = Page { limit: u64::MAX, offset: 0, newest_first: false };
const BACKWARDS: Page = Page { newest_first: true, ..FORWARDS };
const NOON: u64 = DAY_MS * 20_000 + DAY_MS / 2;

/// A ledger in a directory of its own, and the time.
struct Lab {
    dir: TempDir,
    options: RetentionOptions,
    clock: Arc<VirtualClock>,
    sessions: Cell<u64>,
}

impl Lab {
    fn new(retention_days: u64, keep_days: u64) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            options: RetentionOptions { retention_days, keep_days, ..RetentionOptions::default() },
            clock: Arc::new(VirtualClock::new(NOON, 0)),
            sessions: Cell::new(0),
        }
    }

    /// The same moment in a copy of its directory: what a killed process leaves.
    fn copy(&self, dir: TempDir) -> Self {
        let clock = Arc::new(VirtualClock::new(self.now(), 0));
        Self { dir, options: self.options, clock, sessions: Cell::new(1000) }
    }

    fn now(&self) -> u64 {
        fluffy_base::Clock::now_ms(&*self.clock)
    }

    fn layout(&self) -> Layout {
        Layout::new(self.dir.path().join("project"), self.dir.path().join("remembered"))
    }

    fn key(&self) -> SigningKey {
        SigningKey::from_seed(KeyName::LEDGER, &[7; 32])
    }

    fn public(&self) -> VerifyingKey {
        self.key().verifying_key().clone()
    }

    fn open(&self) -> Ledger {
        self.sessions.set(self.sessions.get() + 1);
        let session_id = SessionId::fresh(&SeededIds::new(self.sessions.get())).unwrap();
        let origin = Origin {
            kernel_id: KernelId::named("kernel-test").unwrap(),
            session_id,
            variant: "strict",
            mode: None,
            policy_digest: None,
            engine: "0.0.0",
        };
        Ledger::open(LedgerConfig {
            layout: self.layout(),
            key: self.key(),
            origin,
            clock: Arc::clone(&self.clock) as _,
            retention: self.options,
        })
        .unwrap()
    }

    /// A session of `count` entries, every fifth with an input, on the present day.
    fn session(&self, count: u64) -> Retained {
        let mut ledger = self.open();
        self.fill(&ledger, count);
        ledger.close().unwrap();
        ledger.report().retained.clone()
    }

    fn fill(&self, ledger: &Ledger, count: u64) {
        let event = |event: EventType| {
            let detail = Detail::new(ledger.origin().clone(), event);
            Record::event(
                self.now(),
                "a \"test\" — ü",
                (KernelState::Idle, KernelState::Idle),
                detail,
            )
        };
        let mut start = event(EventType::KernelStart);
        start.state_from = KernelState::Booting;
        ledger.append(start).unwrap();
        for number in 1..count {
            let mut record = event(EventType::Syscall);
            record.request_id = format!("request-{number}");
            record.tool_name = Some("read_file".to_owned());
            if number.is_multiple_of(5) {
                record.input = Some(Blob::new([number as u8; 16], &[b'x'; 40]));
                record.decision = Decision::Deny;
                record.error = Some("no rule allows it".to_owned());
            }
            ledger.append(record).unwrap();
        }
    }

    fn next_day(&self) {
        self.clock.advance(DAY_MS);
    }

    /// A session a day.
    fn days(days: u64, entries: u64, retention_days: u64, keep_days: u64) -> Self {
        let lab = Self::new(retention_days, keep_days);
        for _ in 0..days {
            lab.session(entries);
            lab.next_day();
        }
        lab
    }

    fn db(&self) -> std::path::PathBuf {
        self.layout().segment(1)
    }

    fn verify(&self) -> Vec<SegmentCheck> {
        verify_segments(&self.layout(), Some(&self.public())).unwrap()
    }

    fn findings(&self) -> Vec<Located> {
        self.verify().iter().flat_map(|c| c.findings().cloned().collect::<Vec<_>>()).collect()
    }

    fn archives(&self) -> Vec<ArchiveFile> {
        archive::list(&self.layout().archive(), 1).unwrap()
    }

    fn records(&self) -> Vec<StoredRecord> {
        Query::default().collect(&self.db(), FORWARDS).unwrap()
    }

    fn rows(&self) -> Vec<u64> {
        let connection = store::open_reader(&self.db()).unwrap();
        let mut statement = connection.prepare("SELECT seq FROM entries ORDER BY seq").unwrap();
        let rows = statement.query_map([], |row| row.get::<_, i64>(0)).unwrap();
        rows.map(|seq| seq.unwrap().unsigned_abs()).collect()
    }

    fn events(&self, event: EventType) -> Vec<StoredRecord> {
        Query { event: Some(event), ..Query::default() }.collect(&self.db(), FORWARDS).unwrap()
    }

    fn sql(&self, sql: &str) {
        let connection = Connection::open(self.db()).unwrap();
        connection.execute_batch(sql).unwrap();
        connection.close().unwrap();
    }

    fn segment(&self) -> Segment {
        Segment::active(&self.layout()).unwrap().unwrap()
    }
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else if let Err(error) = fs::copy(entry.path(), target) {
            // The housekeeper may be replacing the remembered checkpoint.
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        }
    }
}

/// Runs `work` and gives the directory as it was at every step: what a death there would leave.
fn every_moment<T>(lab: &Lab, work: impl FnOnce() -> T) -> (T, Vec<TempDir>) {
    let moments = Rc::new(RefCell::new(Vec::new()));
    let (seen, from) = (Rc::clone(&moments), lab.dir.path().to_owned());
    let watcher = move || {
        let copy = tempfile::tempdir().unwrap();
        copy_dir(&from, copy.path());
        seen.borrow_mut().push(copy);
    };
    let done = files::watched::during(watcher, work);
    (done, moments.take())
}

/// Everything that must hold of a ledger whose entries are `before`, and more since.
#[track_caller]
fn check(lab: &Lab, before: &[StoredRecord]) {
    assert_eq!(lab.findings(), []);
    let records = lab.records();
    let held: Vec<_> = records.iter().map(|record| record.entry.seq).collect();
    let mut sorted = held.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(held, sorted, "each once, in order");
    for (n, pair) in records.windows(2).enumerate() {
        let follows = pair[1].entry.seq == pair[0].entry.seq + 1;
        assert!(follows || n == 0, "after the first, there is no gap");
        assert!(!follows || pair[1].entry.prev_hash == pair[0].entry.entry_hash);
    }
    let mut backwards = Query::default().collect(&lab.db(), BACKWARDS).unwrap();
    backwards.reverse();
    assert_eq!(records, backwards);
    let last = |records: &[StoredRecord]| records.last().map(|record| record.entry.seq);
    assert!(last(&records) >= last(before), "nothing is lost at the end");
    let from = records.get(1).map_or(0, |record| record.entry.seq);
    for old in before.iter().filter(|old| old.entry.seq >= from) {
        let at = held.binary_search(&old.entry.seq).unwrap();
        assert_eq!(records[at], *old);
    }
    let segment = lab.segment();
    let key = lab.key();
    for seq in held.iter().step_by(7) {
        segment.prove(*seq, &key).unwrap().verify(&lab.public()).unwrap();
        segment.prove_since(*seq, &key).unwrap().verify(&lab.public()).unwrap();
    }
}

fn bundle(lab: &Lab) -> Result<std::path::PathBuf, LedgerError> {
    let path = lab.dir.path().join("bundle.json");
    let mut file = fs::File::create(&path).unwrap();
    export(&lab.segment(), &lab.key(), &ExportOptions::default(), &mut file)?;
    Ok(path)
}

#[test]
fn aud_6_entries_of_completed_days_are_archived_once_and_recorded() {
    let lab = Lab::days(2, 40, 90, 30);
    let before = lab.records();
    assert_eq!(lab.archives().len(), 1, "the second day's opening archived the first");
    let first = lab.session(3);
    assert_eq!(first.problem, None);
    let names: Vec<_> = first.archived.iter().map(|archived| archived.name.to_string()).collect();
    assert_eq!(names, ["0001-0000000000000041-0000000000000081.jsonl"]);
    assert_eq!(lab.session(3).archived, [], "once a day");
    let told = lab.events(EventType::AuditArchived);
    assert_eq!(told.len(), 2);
    assert_eq!(told[1].entry.seq, first.archived[0].entry);
    let detail = crate::DetailView::parse(&told[1].detail).unwrap();
    let digest = archive::digest_of(&lab.archives()[1].path).unwrap();
    assert_eq!(detail.metadata["sha256"], digest.to_string());
    assert_eq!(lab.rows(), (0..before.len() as u64 + 7).collect::<Vec<_>>(), "all still there");
    check(&lab, &before);
}

#[test]
fn aud_6_each_day_has_an_archive_of_its_own_and_the_present_one_has_none() {
    let lab = Lab::new(90, 30);
    let ledger = lab.open();
    for _ in 0..3 {
        lab.fill(&ledger, 10);
        lab.next_day();
    }
    lab.fill(&ledger, 10);
    drop(ledger);
    let ranges = |archived: Vec<Archived>| -> Vec<_> {
        archived.iter().map(|archived| (archived.name.first, archived.name.last)).collect()
    };
    assert_eq!(ranges(lab.session(1).archived), [(1, 10), (11, 20), (21, 30)]);
    check(&lab, &[]);
}

#[test]
fn aud_6_entries_that_left_the_database_are_found_proved_and_exported() {
    let lab = Lab::new(90, 3);
    let mut before = Vec::new();
    let mut checkpoints = Vec::new();
    for _ in 0..4 {
        lab.session(40);
        before = lab.records();
        checkpoints.push(lab.segment().checkpoint(&lab.key()).unwrap());
        lab.next_day();
    }
    let inputs: Vec<_> = before.iter().map(|r| input_of(&lab.db(), r.entry.seq).unwrap()).collect();
    lab.clock.advance(DAY_MS * 2);
    let retained = lab.session(5);
    assert_eq!((retained.problem, retained.deleted), (None, vec![]));
    assert!(retained.trimmed > 80, "{}", retained.trimmed);
    assert_eq!(lab.rows()[..2], [0, retained.trimmed + 1]);
    assert!(!lab.layout().trimming().exists());
    check(&lab, &before);
    for (old, input) in before.iter().zip(&inputs) {
        assert_eq!(input_of(&lab.db(), old.entry.seq).unwrap(), *input);
    }
    for old in before.iter().step_by(11) {
        assert_eq!(find_entry(&lab.db(), &old.entry.entry_hash).unwrap(), Some(old.entry.seq));
    }
    assert_eq!(find_entry(&lab.db(), &Digest::of(b"nothing")).unwrap(), None);
    let check = verify_bundle(&bundle(&lab).unwrap(), Some(&lab.public())).unwrap();
    assert_eq!((check.findings, check.entries), (vec![], lab.records().len() as u64));
    let evidence = lab.open().evidence(1).unwrap();
    assert_eq!(evidence.verify(), []);
    // Checkpoints that were handed out before anything left are continued.
    for text in checkpoints {
        let old = crate::SignedCheckpoint::parse(&text).unwrap().verify(&lab.public()).unwrap();
        let proof = lab.segment().prove_since(old.size, &lab.key()).unwrap();
        proof.verify(&lab.public()).unwrap();
        assert_eq!(proof.old_root, old.root);
    }
}

#[test]
fn aud_6_queries_filter_archived_entries_like_those_in_the_database() {
    let queries = |before: &[StoredRecord]| {
        let middle = before[before.len() / 3].entry.ts_ms;
        [
            Query { decision: Some(Decision::Deny), ..Query::default() },
            Query { event: Some(EventType::KernelStart), ..Query::default() },
            Query { actor: Some("SYSTEM".to_owned()), from_seq: 17, ..Query::default() },
            Query { since_ms: Some(middle), ..Query::default() },
            Query {
                until_ms: Some(middle),
                tool: Some("read_file".to_owned()),
                ..Query::default()
            },
            Query { session: Some("nobody".to_owned()), ..Query::default() },
        ]
    };
    let lab = Lab::days(4, 30, 90, 30);
    let before = lab.records();
    let last = before.last().unwrap().entry.seq;
    let answers = |lab: &Lab| -> Vec<Vec<StoredRecord>> {
        let pages = [FORWARDS, BACKWARDS].map(|page| Page { offset: 3, limit: 50, ..page });
        let queries = queries(&before).into_iter();
        let answers = queries.flat_map(|q| pages.map(|page| q.collect(&lab.db(), page).unwrap()));
        // What was entered since is not what is compared.
        let old = |list: Vec<StoredRecord>| -> Vec<_> {
            list.into_iter().filter(|r| r.entry.seq <= last).collect()
        };
        answers.map(old).collect()
    };
    let whole = Lab { options: RetentionOptions { keep_days: 90, ..lab.options }, ..lab };
    whole.session(1);
    let expected = answers(&whole);
    let trimmed = Lab { options: RetentionOptions { keep_days: 0, ..whole.options }, ..whole };
    assert!(trimmed.session(40).trimmed + trimmed.session(1).trimmed > 60);
    // The newest pages reach further into new entries: only what both tell of old ones is compared.
    for (list, expected) in answers(&trimmed).iter().zip(&expected) {
        assert!(list.iter().all(|record| before.contains(record)));
        let shared = list.iter().filter(|record| expected.contains(record)).count();
        assert!(shared + 45 >= expected.len(), "{shared} of {}", expected.len());
    }
    let all = |q: &Query| q.collect(&trimmed.db(), FORWARDS).unwrap();
    for query in queries(&before) {
        let by_hand: Vec<_> = trimmed
            .records()
            .into_iter()
            .filter(|record| {
                let stored = crate::DetailView::parse(&record.detail).unwrap();
                query.decision.is_none_or(|d| record.entry.decision == d)
                    && query.event.is_none_or(|e| stored.event == e.name())
                    && query.actor.as_ref().is_none_or(|a| record.entry.actor == *a)
                    && query.since_ms.is_none_or(|s| record.entry.ts_ms >= s)
                    && query.until_ms.is_none_or(|u| record.entry.ts_ms <= u)
                    && query
                        .tool
                        .as_ref()
                        .is_none_or(|t| record.entry.tool_name.as_ref() == Some(t))
                    && query.session.as_ref().is_none_or(|s| stored.session_id == **s)
                    && record.entry.seq >= query.from_seq
            })
            .collect();
        assert_eq!(all(&query), by_hand);
    }
}

#[test]
fn aud_6_archives_past_the_retention_are_deleted_told_and_no_finding() {
    let lab = Lab::days(6, 40, 3, 1);
    let before = lab.records();
    let retained = lab.session(5);
    assert_eq!(retained.problem, None);
    let told = lab.events(EventType::AuditArchiveDeleted);
    assert!(!told.is_empty() && retained.deleted.iter().all(|deleted| deleted.reason == "age"));
    check(&lab, &before);
    let archives = lab.verify().remove(0).archives;
    let oldest = archives.held[0].first;
    let by = told.last().unwrap().entry.seq;
    assert_eq!(archives.pruned, Some(Pruned { first: 1, last: oldest - 1, by }));
    assert!(archives.left > oldest);
    // What is gone is said to be; what is left is proved by the same tree.
    let gone = lab.segment().prove(oldest - 1, &lab.key()).unwrap_err();
    assert!(matches!(gone, LedgerError::Gone { .. }), "{gone}");
    assert!(matches!(bundle(&lab).unwrap_err(), LedgerError::Gone { first: 1, .. }));
    lab.segment().prove(oldest, &lab.key()).unwrap().verify(&lab.public()).unwrap();
    // Long after, when the first records of deletions are themselves deleted.
    for _ in 0..8 {
        lab.next_day();
        assert_eq!(lab.session(40).problem, None);
        assert_eq!(lab.findings(), []);
    }
}

#[test]
fn aud_6_the_newest_archive_is_never_deleted() {
    let lab = Lab::days(3, 40, 5, 2);
    lab.clock.advance(DAY_MS * 1000);
    for _ in 0..3 {
        assert_eq!(lab.session(40).problem, None);
        assert_eq!(lab.findings(), []);
        assert!(!lab.archives().is_empty());
        lab.next_day();
    }
}

#[test]
fn aud_6_filling_storage_is_recorded_once_each_time_and_the_oldest_archive_makes_room() {
    let mut lab = Lab::days(4, 200, 90, 30);
    let at = |lab: &mut Lab, percent: u64| {
        let bytes = Storage::of(&lab.layout(), &lab.options).unwrap().bytes;
        lab.options.max_bytes = bytes * 100 / percent;
        lab.session(1)
    };
    let count = |lab: &Lab| {
        let events = [
            EventType::AuditStorageWarning,
            EventType::AuditStorageCritical,
            EventType::AuditArchiveDeleted,
        ];
        events.map(|event| lab.events(event).len())
    };
    assert_eq!(at(&mut lab, 50).storage.level(), StorageLevel::Fine);
    assert_eq!(count(&lab), [0, 0, 0]);
    assert_eq!(at(&mut lab, 85).storage.level(), StorageLevel::Warning);
    assert_eq!(at(&mut lab, 86).storage.level(), StorageLevel::Warning);
    assert_eq!(count(&lab), [1, 0, 0], "once");
    assert_eq!(at(&mut lab, 97).storage.level(), StorageLevel::Critical);
    assert_eq!(at(&mut lab, 97).storage.level(), StorageLevel::Critical);
    assert_eq!(count(&lab), [1, 1, 0], "once");
    assert_eq!(at(&mut lab, 50).storage.level(), StorageLevel::Fine);
    assert_eq!(at(&mut lab, 85).storage.level(), StorageLevel::Warning);
    assert_eq!(count(&lab), [2, 1, 0], "again");
    let (before, archives) = (lab.records(), lab.archives());
    lab.next_day();
    lab.options.max_bytes = 1;
    let (first, second) = (lab.session(40), lab.session(1));
    assert_eq!((first.problem, second.problem), (None, None));
    let deleted = first.deleted.iter().chain(&second.deleted);
    let deleted: Vec<_> = deleted.map(|deleted| (deleted.name, deleted.reason)).collect();
    let expected: Vec<_> = archives.iter().map(|file| (file.name, "size")).collect();
    assert_eq!(deleted, expected, "the oldest first, all but the newest");
    assert_eq!(lab.archives().len(), 1);
    check(&lab, &before);
}

/// An archive that has left the database, to be changed.
struct Target {
    lab: Lab,
    file: ArchiveFile,
    intact: String,
}

impl Target {
    fn new() -> Self {
        let lab = Lab::days(3, 40, 90, 0);
        lab.session(40);
        lab.session(1);
        let file = lab.archives().remove(1);
        assert!(lab.rows()[1] > file.name.last, "it has left the database");
        let intact = fs::read_to_string(&file.path).unwrap();
        Self { lab, file, intact }
    }

    fn lines(&self) -> Vec<&str> {
        self.intact.split_inclusive('\n').collect()
    }

    /// The text with another line `n`, counted from 1.
    fn with(&self, n: usize, text: &str) -> String {
        let mut all = self.lines();
        all[n - 1] = text;
        all.concat()
    }

    /// The changed text is one finding, in this file and, where it is known, at this line.
    #[track_caller]
    fn expect(&self, what: &str, text: &str, line: Option<usize>) {
        assert_ne!(text, self.intact, "{what}");
        fs::write(&self.file.path, text).unwrap();
        let findings = self.lab.findings();
        fs::write(&self.file.path, &self.intact).unwrap();
        assert_eq!(findings.len(), 1, "{what}: {findings:?}");
        let Problem::Archive { file, line: at, .. } = &findings[0].problem else {
            panic!("{what}: {findings:?}")
        };
        assert_eq!(*file, self.file.name.to_string(), "{what}");
        let Some(line) = line.map(|line| line as u64) else { return };
        assert_eq!(line, *at, "{what}");
        let entry = (line > 1).then(|| self.file.name.first + line - 2);
        assert_eq!(findings[0].seq, entry, "{what}");
    }
}

#[test]
fn aud_6_an_altered_line_of_an_archive_is_a_finding_named_by_file_and_line() {
    let target = Target::new();
    let lines = target.lines();
    for n in [2, 7, lines.len()] {
        let line = lines[n - 1];
        let at = Some(n);
        let edit = |from: &str, to: &str| target.with(n, &line.replacen(from, to, 1));
        target.expect("another actor", &edit("SYSTEM", "nobody"), at);
        target.expect("another state", &edit("\"state_to\":\"", "\"state_to\":\"X"), at);
        target.expect("another detail", &edit("kernel-test", "kernel-tost"), at);
        target.expect("an unknown field", &edit("{\"ledger", "{\"x\":1,\"ledger"), at);
        target.expect("a permit", &edit("\"permit_nonce\":null", "\"permit_nonce\":1"), at);
        target.expect("another number", &edit("{\"ledger_seq\":", "{\"ledger_seq\":1"), at);
        target.expect("no line", &target.with(n, ""), None);
        target.expect("not JSON", &target.with(n, "{\n"), at);
        target.expect("not even text", &target.with(n, "\u{0}\n"), at);
        target.expect("a space", &edit("\n", " \n"), None);
    }
    let denied = lines.iter().position(|line| line.contains("\"input\":\"")).unwrap() + 1;
    let before = lines[denied - 1].split("\"input\":\"").next().unwrap();
    for input in ["null", "\"AAAA\"", "\"?\""] {
        let text = target.with(denied, &format!("{before}\"input\":{input}}}\n"));
        target.expect("another input", &text, Some(denied));
    }
}

#[test]
fn aud_6_an_archive_that_was_cut_extended_or_replaced_is_a_finding() {
    let target = Target::new();
    let lines = target.lines();
    let header = |from: &str, to: &str| target.with(1, &lines[0].replace(from, to));
    target.expect("the header's time", &header("\"last_ms\":1", "\"last_ms\":2"), None);
    target.expect("the header's range", &header("\"first\":", "\"first\":1"), Some(1));
    target.expect("no header", &target.with(1, ""), None);
    let intact = &target.intact;
    target.expect("a line twice", &format!("{intact}{}", lines[lines.len() - 1]), None);
    target.expect("cut off", &intact[..intact.len() - 30], None);
    target.expect("empty", "", Some(1));
    let other = fs::read_to_string(&target.lab.archives()[0].path).unwrap();
    target.expect("another archive", &other, Some(1));
    let mut swapped = lines.clone();
    swapped.swap(4, 5);
    target.expect("two lines in the wrong order", &swapped.concat(), Some(5));
    assert_eq!(target.lab.findings(), []);
}

#[test]
fn aud_6_a_line_that_is_right_in_itself_but_not_in_the_tree_is_refused_everywhere() {
    let lab = Lab::days(3, 40, 90, 0);
    lab.session(40);
    let forger = Lab::new(90, 0);
    forger.clock.advance(1);
    for _ in 0..3 {
        forger.session(40);
        forger.next_day();
    }
    // A ledger of the same form with other contents: its archive is chained and hashed like ours.
    let (ours, theirs) = (lab.archives(), forger.archives());
    assert_eq!(ours[0].name, theirs[0].name);
    fs::copy(&theirs[0].path, &ours[0].path).unwrap();
    let findings = lab.findings();
    assert!(matches!(&findings[0].problem, Problem::Archive { line: 1.., .. }), "{findings:?}");
    let refused =
        |error: LedgerError| assert!(matches!(error, LedgerError::Archive { .. }), "{error}");
    refused(Query::default().collect(&lab.db(), FORWARDS).map(drop).unwrap_err());
    refused(input_of(&lab.db(), 5).unwrap_err());
    refused(lab.segment().prove(5, &lab.key()).unwrap_err());
    refused(bundle(&lab).unwrap_err());
    // The entries in the database are what they were.
    let newest = Page { limit: 5, ..BACKWARDS };
    assert_eq!(Query::default().collect(&lab.db(), newest).unwrap().len(), 5);
    assert_eq!(lab.open().report().broken, None);
}

#[test]
fn aud_6_an_archive_that_is_gone_without_a_record_is_a_finding_and_so_is_what_is_no_file() {
    let lab = Lab::days(4, 40, 90, 1);
    lab.session(40);
    for file in lab.archives() {
        let away = lab.dir.path().join("away");
        fs::rename(&file.path, &away).unwrap();
        let findings = lab.findings();
        let missing = Problem::ArchiveMissing(file.name.to_string());
        assert!(findings.iter().any(|found| found.problem == missing), "{findings:?}");
        std::os::unix::fs::symlink(&away, &file.path).unwrap();
        assert!(verify_segments(&lab.layout(), Some(&lab.public())).is_err(), "a link is not read");
        fs::remove_file(&file.path).unwrap();
        fs::rename(&away, &file.path).unwrap();
    }
    assert_eq!(lab.findings(), []);
}

#[test]
fn aud_6_rows_that_leave_without_a_record_are_a_break() {
    for sql in [
        "DELETE FROM entries WHERE seq BETWEEN 1 AND 50",
        "DELETE FROM entries WHERE seq BETWEEN 1 AND (SELECT max(seq) - 40 FROM entries)",
        "DELETE FROM entries WHERE seq = 1",
    ] {
        let lab = Lab::days(3, 40, 90, 30);
        lab.sql(&format!("{sql}; VACUUM"));
        assert!(lab.findings().iter().any(|found| found.seq == Some(1)), "{sql}");
        let ledger = lab.open();
        let broken = ledger.report().broken.clone().unwrap();
        assert!(matches!(broken.found.problem, Problem::Missing { .. }), "{sql}");
        assert_eq!(broken.found.seq, Some(1), "{sql}");
    }
    // More than the record says.
    let lab = Lab::days(4, 40, 90, 1);
    lab.session(40);
    let kept = lab.rows()[1];
    lab.sql(&format!("DELETE FROM entries WHERE seq = {kept}; VACUUM"));
    assert!(!lab.findings().is_empty());
    assert!(lab.open().report().broken.is_some());
}

#[test]
fn aud_6_a_damaged_ledger_whose_entries_left_is_salvaged_with_its_tree() {
    let lab = Lab::days(4, 60, 90, 1);
    lab.session(60);
    let (before, first) = (lab.records(), lab.rows()[1]);
    let damaged = before.len() as u64 - 20;
    fs::remove_dir_all(lab.layout().dir().join("snapshots")).unwrap();
    lab.sql(&format!("UPDATE entries SET actor = 'nobody' WHERE seq = {damaged}"));
    let ledger = lab.open();
    let Break { salvaged, source, .. } = ledger.report().broken.clone().unwrap();
    assert_eq!((salvaged, source), (damaged, "file"));
    lab.fill(&ledger, 3);
    drop(ledger);
    assert_eq!(lab.findings(), []);
    assert_eq!(lab.rows()[..2], [0, first]);
    let records = lab.records();
    assert_eq!(records, before[..records.len()]);
    assert_eq!(records.len() as u64, damaged);
    // From a snapshot, everything is there again.
    let lab = Lab::days(4, 60, 90, 1);
    lab.session(60);
    let before = lab.records();
    lab.sql("UPDATE entries SET actor = 'nobody' WHERE seq = 0");
    let broken = lab.open().report().broken.clone().unwrap();
    assert_eq!((broken.salvaged, broken.source), (before.len() as u64, "snapshot"));
    assert_eq!((lab.findings(), lab.records()), (vec![], before));
}

#[test]
fn aud_6_damage_in_old_rows_is_not_archived_and_does_not_keep_the_ledger_from_opening() {
    let lab = Lab::new(90, 0);
    let mut ledger = lab.open();
    for _ in 0..60 {
        lab.fill(&ledger, 100);
    }
    ledger.close().unwrap();
    drop(ledger);
    lab.next_day();
    // Far from the tail that opening looks at.
    lab.sql("UPDATE entries SET actor = 'nobody' WHERE seq = 100");
    let ledger = lab.open();
    assert_eq!(ledger.report().broken, None);
    let retained = &ledger.report().retained;
    assert_eq!((&retained.archived, retained.trimmed), (&vec![], 0));
    assert!(retained.problem.as_ref().unwrap().contains("entry 100"), "{retained:?}");
    assert_eq!(lab.archives(), []);
}

#[test]
fn aud_6_a_process_that_dies_at_any_step_loses_and_doubles_nothing() {
    // Archiving, leaving, deletion by age, and a warning: all in one opening.
    let mut lab = Lab::days(3, 40, 90, 30);
    let before = lab.records();
    lab.clock.advance(DAY_MS * 10);
    (lab.options.retention_days, lab.options.keep_days) = (11, 2);
    let bytes = Storage::of(&lab.layout(), &lab.options).unwrap().bytes;
    lab.options.max_bytes = bytes * 100 / 85;
    let (retained, moments) = every_moment(&lab, || lab.session(3));
    assert!(!retained.archived.is_empty() && !retained.deleted.is_empty(), "{retained:?}");
    assert!(retained.trimmed > 0, "{retained:?}");
    assert!(moments.len() > 30, "{}", moments.len());
    check(&lab, &before);
    for (n, moment) in moments.into_iter().enumerate() {
        let copy = lab.copy(moment);
        assert_eq!(copy.findings(), [], "as it was left at step {n}");
        let retained = copy.session(3);
        assert_eq!(retained.problem, None, "step {n}");
        check(&copy, &before);
        let (mut ours, mut theirs) = (lab.archives(), copy.archives());
        ours.iter_mut().chain(&mut theirs).for_each(|file| file.path = Path::new("").into());
        assert_eq!(ours, theirs, "step {n}");
        let unfinished = files::names(&copy.layout().archive()).unwrap();
        assert_eq!(unfinished.len(), theirs.len(), "step {n}: {unfinished:?}");
        assert!(!copy.layout().trimming().exists(), "step {n}");
        for event in [EventType::AuditArchived, EventType::AuditArchiveDeleted] {
            assert_eq!(lab.events(event).len(), copy.events(event).len(), "step {n}: {event}");
        }
        assert!(copy.events(EventType::AuditTrimmed).len() <= 2, "step {n}");
    }
}

#[test]
fn aud_6_a_reader_sees_the_old_state_while_rows_leave() {
    let lab = Lab::days(3, 60, 90, 0);
    let before = lab.records();
    let segment = lab.segment();
    let mut seen = Vec::new();
    let mut retained = Retained::default();
    Query::default()
        .run(&lab.db(), FORWARDS, |record| {
            if seen.len() == 5 {
                retained = lab.session(40);
            }
            seen.push(record);
            true
        })
        .unwrap();
    assert!(retained.trimmed > 0, "{retained:?}");
    assert_eq!(seen, before);
    segment.prove(7, &lab.key()).unwrap().verify(&lab.public()).unwrap();
    drop(segment);
    lab.session(1);
    check(&lab, &before);
}

#[derive(Debug, Clone)]
enum Step {
    Session(u64),
    Days(u64),
    Squeeze(u64),
    Die(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u64..60).prop_map(Step::Session),
        4 => (1_u64..4).prop_map(Step::Days),
        1 => (40_u64..120).prop_map(Step::Squeeze),
        2 => any::<usize>().prop_map(Step::Die),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]
    #[test]
    fn aud_6_whatever_happens_in_any_order_every_invariant_holds(
        steps in proptest::collection::vec(step(), 1..14), keep in 0_u64..4, retention in 0_u64..8,
    ) {
        let mut lab = Lab::new(retention, keep);
        lab.session(40);
        let mut before = lab.records();
        for step in steps {
            match step {
                Step::Session(count) => prop_assert_eq!(lab.session(count).problem, None),
                Step::Days(days) => lab.clock.advance(DAY_MS * days),
                Step::Squeeze(percent) => {
                    let bytes = Storage::of(&lab.layout(), &lab.options).unwrap().bytes;
                    lab.options.max_bytes = bytes * 100 / percent;
                }
                Step::Die(at) => {
                    let (_, mut moments) = every_moment(&lab, || lab.session(5));
                    let moment = moments.swap_remove(at % moments.len());
                    lab = lab.copy(moment);
                }
            }
            check(&lab, &before);
            before = lab.records();
        }
    }
}

/// Everything that `prove` hands out from `first` on.
fn handed(lab: &Lab, first: u64) -> Result<(Vec<(u64, Digest)>, crate::Proved), Located> {
    let mut seen = Vec::new();
    let proved = crate::prove(&lab.layout(), &lab.public(), first, None, |read| {
        seen.push((read.seq, read.entry_hash));
        std::ops::ControlFlow::Continue(())
    });
    proved.unwrap().map(|proved| (seen, proved))
}

#[test]
fn aud_6_what_left_the_database_is_proved_from_its_archive() {
    let lab = Lab::days(5, 300, 90, 2);
    assert_eq!(lab.session(5).problem, None);
    let held: Vec<_> =
        lab.records().iter().map(|record| (record.entry.seq, record.entry.entry_hash)).collect();
    assert!(lab.rows()[1] > 300, "some have left");
    let (all, proved) = handed(&lab, 0).unwrap();
    assert_eq!((all, proved.gone_to), (held.clone(), 0));
    // From anywhere, and each by itself.
    for (seq, hash) in held.iter().step_by(37) {
        let (some, _) = handed(&lab, *seq).unwrap();
        assert_eq!(some, held[usize::try_from(*seq).unwrap()..]);
        let mut one = None;
        let found = |read: &crate::ReadEntry<'_>| one = Some((read.seq, read.entry_hash));
        crate::prove_one(&lab.layout(), &lab.public(), *seq, found).unwrap().unwrap().unwrap();
        assert_eq!(one, Some((*seq, *hash)));
    }
    let beyond = crate::prove_one(&lab.layout(), &lab.public(), 1 << 40, |_| panic!("none"));
    assert_eq!(beyond.unwrap(), Ok(None));
}

#[test]
fn aud_6_what_retention_deleted_is_told_and_what_others_deleted_is_found() {
    let lab = Lab::days(8, 300, 5, 1);
    assert_eq!(lab.session(5).problem, None);
    let archives = lab.archives();
    assert!(archives[0].name.first > 1 && archives.len() > 2, "some are gone");
    let (some, proved) = handed(&lab, 0).unwrap();
    assert_eq!(proved.gone_to, archives[0].name.first);
    assert_eq!(some[..2].iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [0, proved.gone_to]);
    let gone = crate::prove_one(&lab.layout(), &lab.public(), 5, |_| panic!("it is gone"));
    assert_eq!(gone.unwrap(), Ok(None));
    // An archive from the middle is nothing that retention would delete.
    let path = &archives[1].path;
    let text = fs::read_to_string(path).unwrap();
    fs::remove_file(path).unwrap();
    let found = handed(&lab, 0).unwrap_err();
    assert!(matches!(found.problem, Problem::ArchivesMissing { .. }), "{found:?}");
    // A line that was changed, with a hash that fits it or without.
    fs::write(path, text.replacen("read_file", "read_life", 1)).unwrap();
    let found = handed(&lab, 0).unwrap_err();
    assert!(matches!(found.problem, Problem::Archive { .. }), "{found:?}");
    let line = text.lines().skip(1).position(|line| line.contains("read_file")).unwrap();
    let seq = archives[1].name.first + line as u64;
    let forged = crate::prove_one(&lab.layout(), &lab.public(), seq, |_| panic!("it was changed"));
    assert!(!matches!(forged, Ok(Ok(_))), "{forged:?}");
    fs::write(path, text).unwrap();
    handed(&lab, 0).unwrap();
    // A tile that was changed with it.
    lab.sql(
        "UPDATE tiles SET hashes = zeroblob(length(hashes)) WHERE id = (SELECT min(id) FROM tiles)",
    );
    handed(&lab, 0).unwrap_err();
}
