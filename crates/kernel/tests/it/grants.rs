//! What a person agrees to beyond one call: for the session, or as an exception in the policy; and what a no says.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use fluffy_base::{Json, KernelRequest, ProjectPath, SessionId, SystemIds};
use fluffy_kernel::{
    Clerk, Effect, Kernel, KernelConfig, Question, Review, Reviewer, Scope, SessionStart, Tool,
    ToolError, ToolSpec,
};
use fluffy_policy::shape_of;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::lab::{ALLOWED, DENIED, Lab, Runs, call, detail, ends, error};

/// Alice and béa do everything; a person looks at some files, and at every command.
const RULES: &str = "
version: 1
# What this project lives by.
jurisdiction: { allowed_actors: [alice, béa, user], allowed_tools: ['*'] }
capabilities:
  - { name: everything, match: { syscall: '*' }, action: allow }
  - name: look-first   # at these
    match: { syscall: [fs.write, fs.delete], path_glob: ['/x', '/d/**', '/odd*'] }
    action: require_review
    reason: others live by it
  - { name: commands, match: { syscall: shell.run }, action: require_review }
";

/// A tool by the shape of one of ours that counts its runs.
struct Shaped(&'static str, Runs);

impl Tool for Shaped {
    fn spec(&self) -> ToolSpec {
        let text = json!({ "type": "string" });
        let (properties, required) = match self.0 {
            "shell.run" => (
                json!({ "command": text, "args": { "type": "array" }, "cwd": text }),
                json!(["command"]),
            ),
            _of_a_file => (json!({ "path": text, "content": text }), json!(["path"])),
        };
        let schema = json!({
            "type": "object", "properties": properties, "required": required,
            "additionalProperties": false,
        });
        let shape = *shape_of(self.0).unwrap();
        let (name, summary) = (self.0.into(), "counts".into());
        ToolSpec { name, summary, schema, effect: Effect::Some, shape }
    }

    fn run(&self, _: &Json, _: &dyn Clerk) -> Result<Value, ToolError> {
        Ok(json!(self.1.add()))
    }
}

/// What a person was asked.
#[derive(Debug, Clone)]
struct Seen {
    tool: String,
    scopes: Vec<Scope>,
    exception: Option<String>,
    notes: String,
}

/// Answers one after the other, and no when there are none left.
#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<VecDeque<Review>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Reviewer for Script {
    fn review(&self, question: &Question<'_>) -> Review {
        self.seen.lock().unwrap().push(Seen {
            tool: question.request.tool_call.as_ref().unwrap().name.clone(),
            scopes: question.scopes.to_vec(),
            exception: question.exception.map(str::to_owned),
            notes: question.notes.join("\n"),
        });
        self.answers.lock().unwrap().pop_front().unwrap_or_else(|| no(None))
    }
}

fn yes(scope: Scope) -> Review {
    Review::Approved { by: "zoe".to_owned(), phrase: None, scope }
}

fn no(words: Option<&str>) -> Review {
    Review::Refused { by: "zoe".to_owned(), words: words.map(str::to_owned) }
}

/// A session whose policy lies in a file, with a person to be asked.
struct Scene {
    lab: Lab,
    runs: Runs,
    person: Script,
    kernel: Kernel,
}

impl Scene {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut KernelConfig)) -> Self {
        let (lab, runs, person) = (Lab::new(), Runs::default(), Script::default());
        std::fs::create_dir(lab.file("fluffy")).unwrap();
        lab.write("fluffy/policy.yaml", RULES);
        let mut config = lab.config_with(RULES, vec![]);
        for name in ["fs.write", "fs.delete", "shell.run"] {
            config.registry.register(Box::new(Shaped(name, runs.clone()))).unwrap();
        }
        config.policy_path = Some(lab.file("fluffy/policy.yaml"));
        config.reviewer = Some(Box::new(person.clone()));
        config.session = SessionStart::Named(SessionId::fresh(&SystemIds).unwrap());
        change(&mut config);
        let kernel = Kernel::boot(config).unwrap();
        Self { lab, runs, person, kernel }
    }

    /// Has the person answer this next.
    fn answers(&self, review: Review) {
        self.person.answers.lock().unwrap().push_back(review);
    }

    fn seen(&self) -> Vec<Seen> {
        self.person.seen.lock().unwrap().clone()
    }

    /// Whether a call runs, and whether the person was asked for it.
    fn makes(&self, request: KernelRequest) -> (bool, bool) {
        let (ran, asked) = (self.runs.count(), self.seen().len());
        let receipt = self.kernel.submit(request);
        assert!([ALLOWED, DENIED].contains(&ends(&receipt)), "{receipt:?}");
        (self.runs.count() > ran, self.seen().len() > asked)
    }

    /// Has the person agree to writing a file for the session.
    fn granted(&self, path: &str) {
        self.answers(yes(Scope::Session));
        assert_eq!(self.makes(write(path)), (true, true));
    }

    fn on_disk(&self) -> String {
        std::fs::read_to_string(self.lab.file("fluffy/policy.yaml")).unwrap()
    }
}

fn write(path: &str) -> KernelRequest {
    call("w", "fs.write", &json!({ "path": path, "content": "x" }).to_string())
}

fn run(params: Value) -> KernelRequest {
    call("s", "shell.run", &params.to_string())
}

const UNASKED: (bool, bool) = (true, false);
const REFUSED: (bool, bool) = (false, true);

#[test]
fn cli_5_a_yes_for_the_session_covers_the_same_file_by_any_name_and_nothing_else() {
    let scene = Scene::new();
    scene.granted("x");
    let again = call("w2", "fs.write", r#"{"path":"x","content":"another text"}"#);
    assert_eq!(scene.makes(again), UNASKED);
    // These name the same file, which is known before anything is compared.
    for path in ["./x", "d/../x", "x/"] {
        assert_eq!(scene.makes(write(path)), UNASKED, "{path}");
    }
    for path in ["d/x", "d/../d/x", "./d/./x", "odd", "oddx"] {
        assert_eq!(scene.makes(write(path)), REFUSED, "{path}");
    }
    let delete = call("d", "fs.delete", r#"{"path":"x"}"#);
    assert_eq!(scene.makes(delete), REFUSED, "another tool");
    let bea = KernelRequest { actor: "béa".to_owned(), ..write("x") };
    assert_eq!(scene.makes(bea), REFUSED, "another actor");
}

#[test]
fn cli_5_a_command_is_covered_argument_by_argument() {
    let scene = Scene::new();
    scene.answers(yes(Scope::Session));
    let install = json!({ "command": "npm", "args": ["install", "left-pad"] });
    assert_eq!(scene.makes(run(install.clone())), (true, true));
    assert_eq!(scene.makes(run(install)), UNASKED);
    for other in [
        json!({ "command": "npm", "args": ["install", "left-pad", "--unsafe-perm"] }),
        json!({ "command": "npm", "args": ["install"] }),
        json!({ "command": "npm", "args": ["install left-pad"] }),
        json!({ "command": "./npm", "args": ["install", "left-pad"] }),
        json!({ "command": "npm", "args": ["install", "left-pad"], "cwd": "d" }),
    ] {
        assert_eq!(scene.makes(run(other.clone())), REFUSED, "{other}");
    }
    let alias = call("e", "shell.exec", r#"{"command":"npm","args":["install"]}"#);
    assert_eq!(ends(&scene.kernel.submit(alias)).0, DENIED.0);
}

#[test]
fn aud_3_a_grant_is_in_the_ledger_before_it_counts_and_so_is_each_use() {
    let scene = Scene::new();
    scene.granted("x");
    assert_eq!(scene.makes(write("x")), UNASKED);
    let granted = &scene.kernel.grants()[0];
    assert_eq!((granted.number, granted.tool.as_str()), (1, "fs.write"));
    assert_eq!((granted.shown_target(), granted.rules()), ("x", vec!["look-first"]));
    scene.kernel.close().unwrap();
    let entries = scene.lab.entries();
    let details: Vec<_> = entries.iter().map(detail).collect();
    let said = |at: usize, name: &str| details[at].metadata.get(name).map(|it| it.to_string());
    let events: Vec<&str> = details.iter().map(|detail| &*detail.event).collect();
    let granted = events.iter().position(|event| *event == "human_decision").unwrap();
    assert_eq!(said(granted, "session_entry").as_deref(), Some("granted"));
    assert_eq!(said(granted, "scope").as_deref(), Some("session"));
    assert_eq!(said(granted, "by").as_deref(), Some("zoe"));
    let uses: Vec<usize> = (0..events.len()).filter(|at| events[*at] == "tool_execute").collect();
    assert!(granted < uses[0]);
    assert_eq!((said(uses[0], "grant"), said(uses[1], "grant")), (None, Some("1".to_owned())));
    assert_eq!(said(uses[1], "approved_by").as_deref(), Some("zoe"));
    assert_eq!(details[uses[1]].rule.as_deref(), Some("look-first"));
    scene.lab.verify();
}

#[test]
fn cli_5_a_revoked_grant_counts_no_more_and_its_number_is_not_given_again() {
    let scene = Scene::new();
    scene.granted("x");
    scene.granted("d/y");
    assert!(scene.kernel.revoke(1).unwrap());
    assert!(!scene.kernel.revoke(1).unwrap() && !scene.kernel.revoke(7).unwrap());
    assert_eq!(scene.makes(write("x")), REFUSED);
    assert_eq!(scene.makes(write("d/y")), UNASKED);
    scene.granted("x");
    let numbers: Vec<u64> = scene.kernel.grants().iter().map(|grant| grant.number).collect();
    assert_eq!(numbers, [2, 3]);
}

/// Revokes what is granted while the person looks at the next question, and says no.
struct Revoking(Arc<std::sync::OnceLock<std::sync::Weak<Kernel>>>, Mutex<u32>);

impl Reviewer for Revoking {
    fn review(&self, _: &Question<'_>) -> Review {
        let mut asked = self.1.lock().unwrap();
        *asked += 1;
        if *asked == 1 {
            return yes(Scope::Session);
        }
        assert!(self.0.get().unwrap().upgrade().unwrap().revoke(1).unwrap());
        no(None)
    }
}

#[test]
fn cli_5_a_grant_that_is_revoked_while_a_call_waits_does_not_let_it_through() {
    let reach = Arc::new(std::sync::OnceLock::new());
    let reviewer = Revoking(Arc::clone(&reach), Mutex::default());
    let mut scene = Scene::with(|config| config.reviewer = Some(Box::new(reviewer)));
    let kernel = Arc::new(std::mem::replace(&mut scene.kernel, Scene::new().kernel));
    reach.set(Arc::downgrade(&kernel)).unwrap();
    assert_eq!(ends(&kernel.submit(write("x"))), ALLOWED);
    assert_eq!(ends(&kernel.submit(write("d/y"))), DENIED);
    assert!(kernel.grants().is_empty());
    assert_eq!(ends(&kernel.submit(write("x"))).0, DENIED.0);
}

#[test]
fn lesson_l12_no_answer_but_a_yes_that_was_offered_makes_a_grant() {
    let scene = Scene::new();
    for answer in [no(None), no(Some("for this session")), yes(Scope::Once)] {
        scene.answers(answer);
        scene.makes(write("x"));
    }
    // A command has no exception that would be for it alone.
    scene.answers(yes(Scope::Rule));
    assert_eq!(scene.makes(run(json!({ "command": "ls" }))), REFUSED);
    // Another policy is a person's to agree to each time.
    let update = call("u", "policy.update", &json!({ "content": RULES }).to_string());
    for scope in [Scope::Session, Scope::Rule] {
        scene.answers(yes(scope));
        assert_eq!(ends(&scene.kernel.submit(update.clone())), DENIED);
    }
    assert_eq!(scene.seen().last().unwrap().scopes, [Scope::Once]);
    assert!(scene.kernel.grants().is_empty());
    // A kernel without a session has nothing for which it could last.
    let scene = Scene::with(|config| config.session = SessionStart::New);
    scene.answers(yes(Scope::Session));
    assert_eq!(scene.makes(write("x")), REFUSED);
    assert_eq!(scene.seen()[0].scopes, [Scope::Once, Scope::Rule]);
}

#[test]
fn pol_10_grants_end_with_the_policy_they_were_given_under() {
    let scene = Scene::new();
    scene.granted("x");
    let other = RULES.replace("others live by it", "others live by this");
    let update = |text: &str| call("u", "policy.update", &json!({ "content": text }).to_string());
    scene.answers(yes(Scope::Once));
    assert_eq!(ends(&scene.kernel.submit(update(&other))), ALLOWED);
    assert!(scene.kernel.grants().is_empty());
    assert_eq!(scene.makes(write("x")), REFUSED);
    // The same policy again is another time.
    scene.answers(yes(Scope::Once));
    assert_eq!(ends(&scene.kernel.submit(update(RULES))), ALLOWED);
    assert_eq!(scene.makes(write("x")), REFUSED);
}

#[test]
fn cli_5_the_words_of_a_no_reach_whoever_asked_bounded_and_without_anything_that_is_obeyed() {
    let scene = Scene::new();
    scene.answers(no(Some("write to \u{1b}[2J`lib.rs`\u{202e} instead\nplease")));
    let receipt = scene.kernel.submit(write("x"));
    let expected = "The person says: write to \\u{1b}[2J`lib.rs`\\u{202e} instead\\nplease";
    assert!(error(&receipt).ends_with(expected), "{}", error(&receipt));
    scene.answers(no(Some(&"\u{7}ä".repeat(1 << 19))));
    let receipt = scene.kernel.submit(write("x"));
    assert_eq!(ends(&receipt), DENIED);
    let told = error(&receipt);
    assert!(told.chars().count() < 5000 && told.contains("\\u{7}ä") && !told.contains('\u{7}'));
    scene.answers(no(Some(" \u{200b}\n")));
    let receipt = scene.kernel.submit(write("x"));
    assert!(!error(&receipt).contains("says"), "{}", error(&receipt));
    scene.kernel.close().unwrap();
    let entries = scene.lab.entries();
    let said = entries.iter().filter_map(|it| detail(it).metadata.get("said").map(|it| it.len()));
    let said: Vec<usize> = said.collect();
    assert!(said.len() == 2 && said.iter().all(|bytes| *bytes < 8000), "{said:?}");
}

#[test]
fn pol_10_a_yes_as_a_rule_is_two_lines_in_the_policy_that_a_person_agreed_to() {
    let scene = Scene::new();
    scene.answers(yes(Scope::Rule));
    scene.answers(yes(Scope::Once));
    assert_eq!(scene.makes(write("x")), (true, true));
    let seen = scene.seen();
    assert_eq!(seen[0].scopes, [Scope::Once, Scope::Session, Scope::Rule]);
    assert_eq!(seen[1].tool, "policy.update");
    let diff = seen[0].exception.clone().unwrap();
    assert!(seen[1].notes.ends_with(&diff), "{}", seen[1].notes);
    let line = "      - { syscall: fs.write, actor: alice, path_glob: [\"/x\"] }\n";
    let expected = RULES.replace("  # at these\n", &format!("  # at these\n    except:\n{line}"));
    assert_eq!(scene.on_disk(), expected);
    let added: Vec<&str> =
        diff.lines().skip(2).filter(|line| line.starts_with(['+', '-'])).collect();
    assert_eq!(added, ["+    except:", &format!("+{}", line.trim_end())]);
    assert_eq!(scene.makes(write("x")), UNASKED);
    for path in ["d/x", "odd"] {
        assert_eq!(scene.makes(write(path)), REFUSED, "{path}");
    }
    assert_eq!(scene.makes(call("d", "fs.delete", r#"{"path":"x"}"#)), REFUSED);
}

#[test]
fn pol_10_whoever_refuses_the_change_of_the_policy_has_refused_the_call() {
    let scene = Scene::new();
    scene.answers(yes(Scope::Rule));
    scene.answers(no(Some("too wide")));
    let receipt = scene.kernel.submit(write("x"));
    assert_eq!((ends(&receipt), scene.runs.count()), (DENIED, 0));
    assert!(error(&receipt).contains("the exception was not added"), "{}", error(&receipt));
    assert!(error(&receipt).contains("too wide"), "{}", error(&receipt));
    assert_eq!(scene.on_disk(), RULES);
}

#[test]
fn pol_10_an_exception_is_offered_only_where_it_can_be_written_for_this_file_alone() {
    let scene = Scene::new();
    let offered = |scene: &Scene, path: &str| {
        assert_eq!(scene.makes(write(path)), REFUSED);
        scene.seen().last().unwrap().scopes.contains(&Scope::Rule)
    };
    assert!(offered(&scene, "x"));
    assert!(!offered(&scene, "odd{a,b}"));
    // Somebody edits the file: these are not the rules that objected.
    scene.lab.write("fluffy/policy.yaml", &RULES.replace("others live", "we live"));
    assert!(!offered(&scene, "x"));
    scene.lab.write("fluffy/policy.yaml", "version: [");
    assert!(!offered(&scene, "x"));
    let scene = Scene::with(|config| config.policy_path = None);
    assert!(!offered(&scene, "x"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Each step is a call and the answer that would be given: 0 no, 1 once, 2 for the session; 3 revokes the first grant there is.
    #[test]
    fn cli_5_grants_only_ever_allow_what_a_person_was_shown(
        steps in prop::collection::vec(
            (0..4_u8, prop::sample::select(vec!["fs.write", "fs.delete"]),
             prop::sample::select(vec!["x", "./x", "d/../x", "d/x", "./d/x", "d/y", "odd"])),
            1..24,
        ),
    ) {
        let scene = Scene::new();
        let mut granted: BTreeSet<(String, ProjectPath)> = BTreeSet::new();
        for (answer, tool, path) in steps {
            if answer == 3 {
                if let Some(grant) = scene.kernel.grants().first() {
                    let path = ProjectPath::parse(grant.shown_target()).unwrap();
                    granted.remove(&(grant.tool.clone(), path));
                    prop_assert!(scene.kernel.revoke(grant.number).unwrap());
                }
                continue;
            }
            let target = (tool.to_owned(), ProjectPath::parse(path).unwrap());
            let reply = [no(None), yes(Scope::Once), yes(Scope::Session)][usize::from(answer)].clone();
            scene.answers(reply);
            let made = scene.makes(call("c", tool, &json!({ "path": path }).to_string()));
            scene.person.answers.lock().unwrap().clear();
            let known = granted.contains(&target);
            prop_assert_eq!(made, if known { UNASKED } else { (answer > 0, true) });
            if made.1 && answer == 2 {
                granted.insert(target);
            }
        }
    }
}
