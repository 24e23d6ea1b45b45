//! Who may answer what.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use fluffy_base::Json;
use fluffy_policy::{Layer, Reason, Reasons};
use serde_json::json;

use super::*;

/// A person who types this, or nobody.
struct Scripted {
    typed: Option<Mutex<VecDeque<String>>>,
    seen: Arc<Mutex<String>>,
}

impl Person for Scripted {
    fn show(&self, text: &str) -> io::Result<()> {
        self.seen.lock().unwrap().push_str(text);
        Ok(())
    }

    fn answer(&self, prompt: &str) -> io::Result<Option<String>> {
        let Some(typed) = &self.typed else { return Ok(None) };
        self.show(prompt)?;
        Ok(Some(typed.lock().unwrap().pop_front().unwrap_or_default()))
    }
}

/// What came of a question.
struct Answered {
    review: Review,
    seen: String,
    event: Event,
}

/// A question.
struct Case {
    layer: Layer,
    rule: &'static str,
    params: Value,
    notes: Vec<String>,
    phrase: Option<&'static str>,
    scopes: Vec<Scope>,
}

impl Default for Case {
    fn default() -> Self {
        let params = json!({ "path": "Cargo.toml", "content": "[package]\nname = \"x\"\n" });
        let (layer, rule) = (Layer::Yaml, "review-build-and-delivery");
        Self { layer, rule, params, notes: Vec::new(), phrase: None, scopes: vec![Scope::Once] }
    }
}

fn ask(said: Said, typed: Option<&[&str]>, case: &Case) -> Answered {
    let seen = Arc::<Mutex<String>>::default();
    let typed = typed.map(|typed| Mutex::new(typed.iter().map(|t| (*t).to_owned()).collect()));
    let person = Scripted { typed, seen: Arc::clone(&seen) };
    let look = Look { colour: false, screen: None };
    let reviewer = TaskReviewer::new(said, Box::new(person), look);
    let params = Json::new(case.params.clone()).unwrap();
    let request = KernelRequest::call("r", "model", "add a dependency", "fs.write", params);
    let reasons = Reasons::from(Reason::new(case.layer, case.rule, "a person looks at this first"));
    let question = Question {
        request: &request,
        reasons: &reasons,
        notes: &case.notes,
        phrase: case.phrase,
        scopes: &case.scopes,
        exception: None,
    };
    let asked = Asked::of(&question);
    let review = judged(&asked, reviewer.answer(&asked), true);
    let seen = seen.lock().unwrap().clone();
    Answered { review, seen, event: asked.event("review-1") }
}

#[track_caller]
fn check(said: Said, typed: Option<&[&str]>, case: &Case, approved: bool) {
    let asked = ask(said, typed, case);
    assert_eq!(matches!(asked.review, Review::Approved { .. }), approved, "{:?}", asked.review);
    assert!(matches!(asked.event, Event::ReviewRequested { .. }));
}

#[test]
fn a_person_sees_request_reasons_notes_and_change_before_they_are_asked() {
    let case = Case { notes: vec!["it was asked for twice".to_owned()], ..Case::default() };
    let asked = ask(Said::Nothing, Some(&["y"]), &case);
    insta::assert_snapshot!(asked.seen, @r#"

      review  fs.write Cargo.toml: add a dependency
        a person looks at this first (rule `review-build-and-delivery`)
        it was asked for twice
        --- Cargo.toml
        +++ Cargo.toml
        +[package]
        +name = "x"
      Agree? [y/N, m: no, and say why]
    "#);
    let by = "the user, at the terminal".to_owned();
    assert_eq!(asked.review, Review::Approved { by, phrase: None, scope: Scope::Once });
}

#[test]
fn only_a_clear_yes_is_one() {
    for typed in ["y", "Y", "yes", "Yes"] {
        check(Said::Nothing, Some(&[typed]), &Case::default(), true);
    }
    for typed in ["", "n", "no", "maybe", "yes please", "d", "ｙ"] {
        check(Said::Nothing, Some(&[typed]), &Case::default(), false);
    }
    check(Said::Nothing, None, &Case::default(), false);
}

#[test]
fn yes_answers_for_the_projects_rules_and_no_for_all() {
    for layer in [Layer::Yaml, Layer::Extension] {
        check(Said::Yes, None, &Case { layer, ..Case::default() }, true);
        check(Said::No, Some(&["y"]), &Case { layer, ..Case::default() }, false);
    }
    let merge = Case { layer: Layer::Workflow, rule: "workflow.merge", ..Case::default() };
    check(Said::Yes, None, &merge, true);
}

#[test]
fn what_the_system_asks_a_person_is_not_answered_by_an_option() {
    for layer in Layer::ALL {
        if matches!(layer, Layer::Yaml | Layer::Extension | Layer::Workflow) {
            continue;
        }
        let case = Case { layer, rule: "policy.update", ..Case::default() };
        check(Said::Yes, None, &case, false);
        check(Said::Yes, Some(&["n"]), &case, false);
        check(Said::Yes, Some(&["y"]), &case, true);
    }
    for rule in ["workflow.mode", "workflow.container"] {
        let case = Case { layer: Layer::Workflow, rule, ..Case::default() };
        check(Said::Yes, None, &case, false);
    }
    let asked = ask(Said::Yes, None, &Case { layer: Layer::BuiltIn, ..Case::default() });
    assert!(asked.seen.contains("--yes does not answer this"), "{}", asked.seen);
}

#[test]
fn no_option_stands_for_a_phrase() {
    let case = Case { phrase: Some("accept 6 changes"), ..Case::default() };
    check(Said::Yes, None, &case, false);
    check(Said::Nothing, Some(&[""]), &case, false);
    let asked = ask(Said::Yes, Some(&["accept 6 changes"]), &case);
    let phrase = Some("accept 6 changes".to_owned());
    assert_eq!(
        asked.review,
        Review::Approved { by: "the user, at the terminal".to_owned(), phrase, scope: Scope::Once }
    );
}

#[test]
fn a_long_change_is_shown_whole_to_whoever_wants_it() {
    let content: String = (0..200).map(|n| format!("line {n}\n")).collect();
    let case = Case { params: json!({ "path": "x", "content": content }), ..Case::default() };
    let asked = ask(Said::Nothing, Some(&["y"]), &case);
    assert!(asked.seen.contains("and 122 more lines") && !asked.seen.contains("line 199"));
    let asked = ask(Said::Nothing, Some(&["d", "y"]), &case);
    assert!(asked.seen.contains("+line 199"), "{}", asked.seen);
    assert!(matches!(asked.review, Review::Approved { .. }));
}

#[test]
fn a_note_that_is_a_diff_is_the_change() {
    let note = "--- a/src/x.rs\n+++ b/src/x.rs\n@@ -1 +1 @@\n-old\n+new\n".to_owned();
    let asked = ask(Said::No, None, &Case { notes: vec![note.clone()], ..Case::default() });
    let Event::ReviewRequested { diff, reasons, .. } = &asked.event else { panic!() };
    assert_eq!((diff.as_ref(), reasons.len()), (Some(&note), 1));
}

#[test]
fn a_change_without_end_is_bounded_and_obeys_nothing() {
    let content = "\u{1b}[2J\u{202e}\r\n".repeat(100_000);
    let case = Case {
        params: json!({ "path": "\u{1b}]0;x\u{7}", "content": content }),
        notes: vec!["\u{1b}[8m hidden".to_owned()],
        ..Case::default()
    };
    let asked = ask(Said::Nothing, Some(&["d", "n"]), &case);
    assert!(!asked.seen.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'));
    let Event::ReviewRequested { diff: Some(diff), .. } = &asked.event else { panic!() };
    assert!(diff.len() < MAX_DIFF + 100 && diff.contains("more bytes are not shown"));
}

#[test]
fn a_person_sees_every_parameter_of_a_call() {
    let params = json!({ "command": "rm", "args": ["-rf", "\n  Agree? [y/N] y"], "cwd": "src" });
    let asked = ask(Said::Nothing, Some(&["n"]), &Case { params, ..Case::default() });
    for line in
        [r#"    args ["-rf","\n  Agree? [y/N] y"]"#, r#"    command "rm""#, r#"    cwd "src""#]
    {
        assert!(asked.seen.lines().any(|seen| seen == line), "{line}: {}", asked.seen);
    }
}

#[test]
fn what_only_looks_like_a_change_is_shown_as_it_is() {
    // `content` that is no text would not be in the change, so the change must not hide it.
    let params = json!({ "path": "x", "content": ["evil"], "new": "harmless" });
    let asked = ask(Said::Nothing, Some(&["n"]), &Case { params, ..Case::default() });
    assert!(asked.seen.contains("evil"), "{}", asked.seen);
    let params = json!({ "path": "x", "content": "one", "new": "two" });
    let asked = ask(Said::Nothing, Some(&["n"]), &Case { params, ..Case::default() });
    assert!(asked.seen.contains("one") && asked.seen.contains("two"), "{}", asked.seen);
}

/// A question to which a yes may reach further.
fn offering(scopes: &[Scope]) -> Case {
    Case { scopes: scopes.to_vec(), ..Case::default() }
}

#[track_caller]
fn check_reach(typed: &[&str], scopes: &[Scope], expected: Option<Scope>) {
    let asked = ask(Said::Nothing, Some(typed), &offering(scopes));
    let reach = match asked.review {
        Review::Approved { scope, .. } => Some(scope),
        Review::Refused { .. } => None,
    };
    assert_eq!(reach, expected, "{typed:?} {scopes:?}");
}

#[test]
fn cli_1_a_yes_reaches_as_far_as_it_is_typed_and_never_further_than_offered() {
    let all = [Scope::Once, Scope::Session, Scope::Rule];
    check_reach(&["y"], &all, Some(Scope::Once));
    check_reach(&["s"], &all, Some(Scope::Session));
    check_reach(&["r"], &all, Some(Scope::Rule));
    check_reach(&["n"], &all, None);
    for typed in ["s", "r", "S", "R"] {
        check_reach(&[typed], &[Scope::Once], None);
    }
    let seen = ask(Said::Nothing, Some(&["y"]), &offering(&all)).seen;
    assert!(seen.contains("s: for this session, r: as a rule, m: no, and say why"), "{seen}");
    let seen = ask(Said::Nothing, Some(&["y"]), &Case::default()).seen;
    assert!(!seen.contains("for this session") && !seen.contains("as a rule"), "{seen}");
}

#[test]
fn cli_1_what_was_said_with_the_command_reaches_no_further_than_one_call() {
    let asked = ask(Said::Yes, None, &offering(&[Scope::Once, Scope::Session]));
    assert!(matches!(asked.review, Review::Approved { scope: Scope::Once, .. }));
}

#[test]
fn lesson_l12_a_scope_that_was_not_offered_or_a_yes_without_a_terminal_is_a_refusal() {
    let (params, reasons) = (Json::empty_object(), Reason::new(Layer::Yaml, "r", "look").into());
    let request = KernelRequest::call("r", "model", "x", "fs.write", params);
    for scopes in [vec![Scope::Once], vec![Scope::Once, Scope::Session]] {
        let question = Question {
            request: &request,
            reasons: &reasons,
            notes: &[],
            phrase: None,
            scopes: &scopes,
            exception: None,
        };
        let asked = Asked::of(&question);
        for scope in [Scope::Once, Scope::Session, Scope::Rule] {
            let review = judged(&asked, Reply::yes(scope), true);
            assert_eq!(matches!(review, Review::Approved { .. }), scopes.contains(&scope));
            let review = judged(&asked, Reply::yes(scope), false);
            assert!(matches!(review, Review::Refused { .. }), "{scope:?}");
        }
    }
}

#[test]
fn cli_1_a_no_may_have_words_for_the_model() {
    let asked = ask(Said::Nothing, Some(&["m", "use the other file"]), &Case::default());
    let words = Some("use the other file".to_owned());
    assert_eq!(asked.review, Review::Refused { by: "the user".to_owned(), words });
    let asked = ask(Said::Nothing, Some(&["m", ""]), &Case::default());
    assert_eq!(asked.review, Review::Refused { by: "the user".to_owned(), words: None });
}
