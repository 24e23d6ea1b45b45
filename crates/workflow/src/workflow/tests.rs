//! Every state, event and mode as a table; what a model would try; restarts.

use proptest::prelude::*;

use super::*;
use crate::exemption::ExemptionRequest;
use crate::run::{Extent, Outcome, TestCase};

fn path(text: &str) -> ProjectPath {
    ProjectPath::parse(text).unwrap()
}

fn run(tests: &[(&str, Outcome)]) -> TestRun {
    let case = |(id, outcome): &(&str, Outcome)| {
        ((*id).to_owned(), TestCase { outcome: *outcome, place: Some(path("tests/new.py")) })
    };
    TestRun::new(Extent::Whole, tests.iter().map(case)).unwrap()
}

fn ran_red() -> Event {
    Event::TestsRan(run(&[("old", Outcome::Passed), ("new", Outcome::Failed)]))
}

fn ran_green() -> Event {
    Event::TestsRan(run(&[("old", Outcome::Passed), ("new", Outcome::Passed)]))
}

fn changed(text: &str, kind: PathKind) -> Event {
    Event::FilesChanged(vec![Change { path: path(text), kind, type_only: false }])
}

fn wrote_test() -> Event {
    changed("tests/new.py", PathKind::Test)
}

fn wrote_code() -> Event {
    changed("src/a.py", PathKind::Source)
}

fn wrote_docs() -> Event {
    changed("README.md", PathKind::Other)
}

fn granted(file: &str, type_only: bool) -> Event {
    let request = ExemptionRequest {
        category: "documentation".to_owned(),
        paths: BTreeSet::from([path(file)]),
        reason: "words".to_owned(),
    };
    Event::ExemptionGranted(ExemptionGrant { request, type_only })
}

fn set(mode: Mode, consent: Consent) -> Event {
    Event::ModeSet { mode, consent }
}

fn after(mode: Mode, events: &[Event]) -> Workflow {
    Workflow::restore(mode, Access::Write, events.iter().cloned()).unwrap()
}

fn approved() -> Event {
    Event::ReviewAnswered(Answer::Approved)
}

/// The ordinary way to a state, with something written wherever something can be.
fn way_to(mode: Mode, state: State) -> Option<Vec<Event>> {
    use State::{
        CodeWriting, Committing, Exploring, Idle, Planning, RetroactiveTesting, Reviewing,
        TestWriting, Validating,
    };
    let strict = mode.is_test_first();
    let (before, last) = match (state, strict) {
        (Idle, _) => return Some(Vec::new()),
        (Planning, _) => (Idle, vec![Event::TaskStarted]),
        (TestWriting, true) => (Planning, vec![Event::PlanCompleted, wrote_test()]),
        (CodeWriting, true) => (TestWriting, vec![ran_red(), wrote_code()]),
        (Validating, true) => (CodeWriting, vec![Event::CodeCompleted]),
        (Exploring, false) => (Planning, vec![Event::PlanCompleted, wrote_code()]),
        (Validating, false) => (Exploring, vec![Event::CodeCompleted]),
        (Reviewing, _) => (Validating, vec![ran_green()]),
        (Committing, _) => (Reviewing, vec![approved()]),
        (RetroactiveTesting, false) => {
            (Reviewing, vec![Event::ReviewAnswered(Answer::TestsFirst), wrote_test()])
        }
        // Exempt work only, on its way back from a failed validation.
        (Exploring, true) => {
            let work = [granted("README.md", false), wrote_docs(), Event::PlanCompleted];
            (Planning, work.into_iter().chain([Event::CodeCompleted, ran_red()]).collect())
        }
        (TestWriting | CodeWriting, false) | (RetroactiveTesting, true) => return None,
    };
    let mut way = way_to(mode, before)?;
    way.extend(last);
    Some(way)
}

fn every_event() -> Vec<(&'static str, Event)> {
    vec![
        ("task started", Event::TaskStarted),
        ("baseline ran", Event::BaselineRan(run(&[("old", Outcome::Passed)]))),
        ("plan completed", Event::PlanCompleted),
        ("test written", wrote_test()),
        ("code written", wrote_code()),
        ("README exempted", granted("README.md", false)),
        ("README written", wrote_docs()),
        ("tests completed", Event::TestsCompleted),
        ("tests ran: red", ran_red()),
        ("tests ran: green", ran_green()),
        ("code completed", Event::CodeCompleted),
        ("merge approved", approved()),
        ("merge rejected", Event::ReviewAnswered(Answer::Rejected)),
        ("tests wanted", Event::ReviewAnswered(Answer::TestsFirst)),
        ("committed", Event::Committed),
        ("task completed", Event::TaskCompleted),
        ("strict set", set(Mode::Strict, Consent::Policy)),
        ("explore set", set(Mode::Explore, Consent::Policy)),
        ("explore agreed", set(Mode::Explore, Consent::Person)),
        ("debug set", set(Mode::Debug, Consent::Policy)),
        ("debug agreed", set(Mode::Debug, Consent::Person)),
        ("debt exhausted", Event::DebtMeasured(Debt::Exhausted)),
        ("coverage raised", Event::CoverageKept(Some(Lines { covered: 1, total: 2 }))),
        ("coverage left", Event::CoverageKept(None)),
        ("cancelled", Event::Cancelled),
    ]
}

fn short(state: State) -> &'static str {
    match state {
        State::Idle => "idle",
        State::Planning => "plan",
        State::TestWriting => "test",
        State::CodeWriting => "code",
        State::Validating => "valid",
        State::Reviewing => "review",
        State::Committing => "commit",
        State::Exploring => "explore",
        State::RetroactiveTesting => "retro",
    }
}

/// One row an event, one column a state: where it leads, `.` where it stays, `x` where it is refused.
fn table(mode: Mode) -> String {
    let reachable = |state: &State| way_to(mode, *state).is_some();
    let states: Vec<_> = State::ALL.into_iter().filter(reachable).collect();
    let mut text = format!("{:<18}", format!("{mode}:"));
    states.iter().for_each(|state| text += &format!("{:<14}", short(*state)));
    for (name, event) in every_event() {
        text += &format!("\n{name:<18}");
        for state in &states {
            let mut workflow = after(mode, &way_to(mode, *state).unwrap());
            assert_eq!(workflow.state(), *state);
            let cell = match workflow.apply(event.clone()) {
                Err(_) => "x".to_owned(),
                Ok(Transition { from, via: None, to, .. }) if from == to => ".".to_owned(),
                Ok(Transition { via: None, to, .. }) => short(to).to_owned(),
                Ok(Transition { via: Some(via), to, .. }) => {
                    format!("{}>{}", short(via), short(to))
                }
            };
            text += &format!("{cell:<14}");
        }
    }
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[test]
fn strict_work_goes_exactly_these_ways() {
    insta::assert_snapshot!(table(Mode::Strict), @r"
    strict:           idle          plan          test          code          valid         review        commit        explore
    task started      plan          x             x             x             x             x             x             x
    baseline ran      x             .             .             x             x             x             x             .
    plan completed    x             test          x             x             x             x             x             test
    test written      x             x             .             x             x             x             x             x
    code written      x             x             x             .             x             x             x             x
    README exempted   x             .             .             .             x             x             x             .
    README written    x             x             x             .             x             x             x             .
    tests completed   x             x             x             x             x             x             x             x
    tests ran: red    .             .             code          .             code          .             .             .
    tests ran: green  .             .             .             valid>review  review        .             .             .
    code completed    x             x             x             valid         x             x             x             valid
    merge approved    x             x             x             x             x             commit        x             x
    merge rejected    x             x             x             x             x             code          x             x
    tests wanted      x             x             x             x             x             x             x             x
    committed         x             x             x             x             x             x             idle          x
    task completed    x             idle          x             x             x             x             x             x
    strict set        .             .             .             .             .             .             .             .
    explore set       .             .             x             x             x             x             x             x
    explore agreed    .             .             explore       explore       x             x             x             .
    debug set         x             x             x             x             x             x             x             x
    debug agreed      .             .             explore       explore       x             x             x             .
    debt exhausted    .             .             .             .             .             .             .             .
    coverage raised   x             x             x             x             x             .             x             x
    coverage left     x             x             x             x             x             .             x             x
    cancelled         .             idle          idle          idle          idle          idle          idle          idle
    ");
}

#[test]
fn explore_work_goes_exactly_these_ways() {
    insta::assert_snapshot!(table(Mode::Explore), @r"
    explore:          idle          plan          valid         review        commit        explore       retro
    task started      plan          x             x             x             x             x             x
    baseline ran      x             .             x             x             x             .             x
    plan completed    x             explore       x             x             x             x             x
    test written      x             x             x             x             x             .             .
    code written      x             x             x             x             x             .             x
    README exempted   x             .             x             x             x             .             .
    README written    x             x             x             x             x             .             x
    tests completed   x             x             x             x             x             x             valid
    tests ran: red    .             .             explore       .             .             .             .
    tests ran: green  .             .             review        .             .             .             .
    code completed    x             x             x             x             x             valid         x
    merge approved    x             x             x             commit        x             x             x
    merge rejected    x             x             x             explore       x             x             x
    tests wanted      x             x             x             retro         x             x             x
    committed         x             x             x             x             idle          x             x
    task completed    x             idle          x             x             x             x             x
    strict set        .             .             x             x             x             x             x
    explore set       .             .             .             .             .             .             .
    explore agreed    .             .             .             .             .             .             .
    debug set         x             x             x             x             x             x             x
    debug agreed      .             .             x             x             x             .             x
    debt exhausted    .             .             .             .             .             .             .
    coverage raised   x             x             x             x             x             x             x
    coverage left     x             x             x             .             x             x             x
    cancelled         .             idle          idle          idle          idle          idle          idle
    ");
}

#[test]
fn debug_work_goes_the_ways_of_explore_but_for_changes_of_mode() {
    let of = |mode| {
        let rows = table(mode);
        let kept =
            rows.lines().skip(1).filter(|row| !row.contains(" set") && !row.contains("agreed"));
        kept.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of(Mode::Debug), of(Mode::Explore));
}

#[test]
fn every_refusal_says_what_why_and_how_to_go_on() {
    let mut told = BTreeSet::new();
    for mode in Mode::ALL {
        for state in State::ALL {
            let Some(way) = way_to(mode, state) else { continue };
            for (_, event) in every_event() {
                let mut workflow = after(mode, &way);
                let unchanged = workflow.clone();
                let Err(error) = workflow.apply(event) else { continue };
                assert_eq!(workflow, unchanged, "a refused event changes nothing");
                assert!(!error.fix.is_empty() && !error.why.is_empty());
                told.insert(error.to_string());
            }
        }
    }
    let sample = "`code completed` is not possible in `test_writing` (strict mode): tests must exist, \
                  have been run, and at least one must fail";
    assert!(told.contains(sample), "{told:#?}");
}

#[test]
fn a_model_that_only_writes_and_tests_gets_to_the_end() {
    let mut workflow = after(Mode::Strict, &[Event::TaskStarted, Event::PlanCompleted]);
    workflow.apply(wrote_test()).unwrap();
    assert_eq!(workflow.apply(ran_red()).unwrap().to, State::CodeWriting);
    workflow.apply(wrote_code()).unwrap();
    let step = workflow.apply(ran_green()).unwrap();
    assert_eq!((step.via, step.to), (Some(State::Validating), State::Reviewing));
    workflow.apply(approved()).unwrap();
    assert!(!workflow.is_unverified());
    assert_eq!(workflow.apply(Event::Committed).unwrap().to, State::Idle);
    assert_eq!(workflow, Workflow::new(Mode::Strict, Access::Write));
}

#[test]
fn a_green_run_without_code_leads_nowhere() {
    let mut workflow = after(Mode::Strict, &way_to(Mode::Strict, State::TestWriting).unwrap());
    workflow.apply(ran_red()).unwrap();
    let step = workflow.apply(ran_green()).unwrap();
    assert_eq!((step.to, step.hindrance), (State::CodeWriting, Some(Hindrance::NoCode)));
    assert!(workflow.apply(Event::CodeCompleted).is_err());
}

#[test]
fn three_failures_offer_debug_and_unlock_nothing() {
    let mut workflow = after(Mode::Strict, &way_to(Mode::Strict, State::CodeWriting).unwrap());
    let offers: Vec<_> = (0..4).map(|_| workflow.apply(ran_red()).unwrap().offers_debug).collect();
    assert_eq!(offers, [false, false, true, true]);
    assert_eq!((workflow.state(), workflow.mode()), (State::CodeWriting, Mode::Strict));
    assert!(workflow.apply(wrote_test()).is_err());
    assert!(workflow.apply(set(Mode::Debug, Consent::Policy)).is_err());
    assert!(workflow.apply(set(Mode::Explore, Consent::Policy)).is_err());
    let step = workflow.apply(set(Mode::Debug, Consent::Person)).unwrap();
    assert_eq!((step.to, step.offers_debug), (State::Exploring, false));
    assert!(workflow.is_unverified(), "what was begun with tests is not finished without");
}

#[test]
fn a_task_of_exempt_files_goes_through_exploring_without_debt() {
    let events =
        [Event::TaskStarted, Event::PlanCompleted, granted("README.md", false), wrote_docs()];
    let mut workflow = after(Mode::Strict, &events);
    assert!(workflow.apply(wrote_code()).is_err(), "the grant names one file");
    let step = workflow.apply(Event::CodeCompleted).unwrap();
    assert_eq!((step.via, step.to), (Some(State::Exploring), State::Validating));
    assert!(workflow.apply(wrote_docs()).is_err(), "nothing is written while validating");
    assert_eq!(workflow.apply(ran_green()).unwrap().to, State::Reviewing);
    assert!(!workflow.is_unverified());
    workflow.apply(approved()).unwrap();
    workflow.apply(Event::Committed).unwrap();
    assert_eq!(workflow.exempts(&path("README.md")), Exempt::No, "a grant ends with its task");
}

#[test]
fn an_exempt_file_beside_a_test_does_not_skip_the_failing_test() {
    let events = [
        Event::TaskStarted,
        Event::PlanCompleted,
        granted("README.md", false),
        wrote_docs(),
        wrote_test(),
    ];
    assert!(after(Mode::Strict, &events).apply(Event::CodeCompleted).is_err());
}

#[test]
fn an_exemption_for_types_covers_only_changes_that_are_found_to_be_of_types() {
    let events = [Event::TaskStarted, Event::PlanCompleted, granted("src/a.ts", true)];
    let mut workflow = after(Mode::Strict, &events);
    assert!(workflow.apply(changed("src/a.ts", PathKind::Source)).is_err());
    let change = Change { path: path("src/a.ts"), kind: PathKind::Source, type_only: true };
    workflow.apply(Event::FilesChanged(vec![change])).unwrap();
    assert!(!workflow.is_unverified());
    assert!(workflow.apply(Event::CodeCompleted).is_ok());
}

#[test]
fn a_grant_for_a_test_does_not_unfreeze_it() {
    let mut workflow = after(Mode::Strict, &way_to(Mode::Strict, State::CodeWriting).unwrap());
    workflow.apply(granted("tests/new.py", false)).unwrap();
    assert!(workflow.apply(wrote_test()).is_err());
}

#[test]
fn explored_work_is_unverified_and_locked_when_the_debt_is_exhausted() {
    let mut workflow = after(Mode::Explore, &way_to(Mode::Explore, State::Reviewing).unwrap());
    assert!(workflow.is_unverified());
    workflow.apply(Event::DebtMeasured(Debt::Exhausted)).unwrap();
    assert!(workflow.apply(approved()).is_err());
    assert!(workflow.apply(Event::ReviewAnswered(Answer::TestsFirst)).is_ok());
    let mut idle = after(Mode::Strict, &[Event::DebtMeasured(Debt::Exhausted)]);
    assert!(idle.apply(set(Mode::Explore, Consent::Person)).is_err());
    assert!(idle.apply(set(Mode::Debug, Consent::Person)).is_err());
}

#[test]
fn exploring_may_take_tests_out_of_files_it_changes_and_no_others() {
    let before = |place: &str| {
        let case = TestCase { outcome: Outcome::Passed, place: Some(path(place)) };
        Event::BaselineRan(TestRun::new(Extent::Whole, [("gone".to_owned(), case)]).unwrap())
    };
    let end = |place: &str| {
        let events = [Event::TaskStarted, before(place), Event::PlanCompleted];
        let mut workflow = after(Mode::Explore, &events);
        [wrote_test(), wrote_code(), Event::CodeCompleted, ran_green()]
            .into_iter()
            .map(|event| workflow.apply(event).unwrap().to)
            .last()
    };
    assert_eq!(end("tests/new.py"), Some(State::Reviewing));
    assert_eq!(end("tests/other.py"), Some(State::Exploring));
}

#[test]
fn a_read_only_session_changes_nothing_in_any_mode() {
    for mode in Mode::ALL {
        let events = [Event::TaskStarted, Event::PlanCompleted];
        let mut workflow = Workflow::restore(mode, Access::ReadOnly, events).unwrap();
        for event in [wrote_test(), wrote_code(), granted("README.md", false)] {
            assert!(workflow.apply(event).is_err(), "{mode}");
        }
        workflow.apply(set(Mode::Debug, Consent::Person)).unwrap();
        assert!(workflow.apply(wrote_code()).is_err());
        assert_eq!(workflow.apply(Event::TaskCompleted).unwrap().to, State::Idle);
    }
}

#[test]
fn a_task_with_changes_is_not_completed_by_saying_so() {
    for mode in Mode::ALL {
        for state in [State::TestWriting, State::CodeWriting, State::Exploring, State::Reviewing] {
            let Some(way) = way_to(mode, state) else { continue };
            assert!(after(mode, &way).apply(Event::TaskCompleted).is_err(), "{mode} {state}");
        }
    }
}

#[test]
fn any_state_is_idle_once_cancelled() {
    for mode in Mode::ALL {
        for way in State::ALL.into_iter().filter_map(|state| way_to(mode, state)) {
            let mut workflow = after(mode, &way);
            workflow.apply(Event::Cancelled).unwrap();
            assert_eq!(workflow, Workflow::new(mode, Access::Write));
        }
    }
}

#[test]
fn a_record_that_contradicts_itself_is_refused() {
    let workflow = after(Mode::Strict, &way_to(Mode::Strict, State::CodeWriting).unwrap());
    let record = workflow.to_record().unwrap();
    let with = |key: &str, value: serde_json::Value| {
        let mut changed = record.value().clone();
        changed[key] = value;
        Workflow::from_record(&fluffy_base::Json::new(changed).unwrap())
    };
    assert_eq!(Workflow::from_record(&record).unwrap(), workflow);
    assert!(with("state", "idle".into()).is_err());
    assert!(with("state", "test_writing".into()).is_err());
    assert!(with("state", "anything".into()).is_err());
    assert!(with("mode", "explore".into()).is_err());
    assert!(with("access", "read_only".into()).is_err());
    assert!(with("v", 2.into()).is_err());
    assert!(with("trusted", true.into()).is_err());
    let mut calm = record.value().clone();
    calm["task"]["red"]["failing"] = serde_json::json!(["old"]);
    assert!(Workflow::from_record(&fluffy_base::Json::new(calm).unwrap()).is_err());
    let mut without = record.value().clone();
    without["task"]["red"] = serde_json::Value::Null;
    assert!(Workflow::from_record(&fluffy_base::Json::new(without).unwrap()).is_err());
}

fn any_event() -> impl Strategy<Value = Event> {
    let events: Vec<Event> = every_event().into_iter().map(|(_, event)| event).collect();
    let more = [
        granted("src/a.py", true),
        Event::DebtMeasured(Debt::Within),
        Event::TestsRan(run(&[])),
        Event::TestsRan(run(&[]).broken_by([path("tests/new.py")])),
        Event::FilesChanged(Vec::new()),
    ];
    // The steps of ordinary work more often, so that it gets somewhere.
    let often = [Event::TaskStarted, Event::PlanCompleted, wrote_test(), ran_red(), wrote_code()];
    let all = events.into_iter().chain(more).chain(often.iter().cloned()).chain(often.clone());
    prop::sample::select(all.collect::<Vec<_>>())
}

fn any_start() -> impl Strategy<Value = (Mode, Access)> {
    let access = prop_oneof![4 => Just(Access::Write), 1 => Just(Access::ReadOnly)];
    (prop::sample::select(Mode::ALL.to_vec()), access)
}

proptest! {
    /// Any sequence of events, cut anywhere and restored from its record or from its events, goes on
    /// as if nothing had happened.
    #[test]
    fn a_restart_changes_nothing(
        (mode, access) in any_start(),
        events in prop::collection::vec(any_event(), 0..40),
        cut in 0_usize..40,
    ) {
        let mut whole = Workflow::new(mode, access);
        let mut resumed = Workflow::new(mode, access);
        let mut happened = Vec::new();
        for (at, event) in events.into_iter().enumerate() {
            if at == cut {
                let text = resumed.to_record().unwrap().canonical().to_owned();
                let read = fluffy_base::Json::parse(text.as_bytes()).unwrap();
                resumed = Workflow::from_record(&read).unwrap();
            }
            let text = serde_json::to_string(&event).unwrap();
            let read: Event = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&read, &event);
            let answer = whole.apply(event.clone());
            prop_assert_eq!(&answer, &resumed.apply(read));
            if answer.is_ok() {
                happened.push(event);
            }
        }
        prop_assert_eq!(&whole, &resumed);
        prop_assert_eq!(whole, Workflow::restore(mode, access, happened).unwrap());
    }

    /// Whatever happens in strict mode, code that is not exempt is changed only while something is
    /// red, and no test is changed then.
    #[test]
    fn strict_code_is_written_only_while_a_test_is_red(
        events in prop::collection::vec(any_event(), 0..60),
    ) {
        let mut workflow = Workflow::new(Mode::Strict, Access::Write);
        for event in events {
            let earlier = workflow.clone();
            if workflow.apply(event.clone()).is_err() || !earlier.mode().is_test_first() {
                continue;
            }
            if event == wrote_code() {
                prop_assert!(earlier.red().is_some());
            }
            if event == wrote_test() {
                prop_assert!(earlier.red().is_none());
            }
            if workflow.state() == State::Committing && workflow.mode().is_test_first() {
                prop_assert!(workflow.red().is_some() || workflow.is_all_exempt());
            }
        }
    }

    /// A read-only session never has a change.
    #[test]
    fn nothing_is_changed_read_only(
        mode in prop::sample::select(Mode::ALL.to_vec()),
        events in prop::collection::vec(any_event(), 0..40),
    ) {
        let mut workflow = Workflow::new(mode, Access::ReadOnly);
        for event in events {
            let _either = workflow.apply(event);
            prop_assert!(workflow.task.changes.is_empty());
        }
    }

    /// Hostile bytes are no record and no event, and nothing panics.
    #[test]
    fn any_text_as_a_record_has_an_answer(text in "\\PC{0,120}") {
        if let Ok(json) = fluffy_base::Json::parse(text.as_bytes()) {
            prop_assert!(Workflow::from_record(&json).is_err());
        }
        let _either = serde_json::from_str::<Event>(&text);
    }
}
