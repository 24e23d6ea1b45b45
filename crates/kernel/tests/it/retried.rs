//! Reads that fail for a reason that may pass are tried once more; what has an effect is not.
//!
//! The reason is a real one: another program holds a lease on the file, so opening it would have to wait.

#![expect(
    clippy::disallowed_methods,
    reason = "tests make files and start the program beside them"
)]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use fluffy_base::{Json, ProjectPath, Waiter};
use fluffy_kernel::{
    Blobs, Clerk, Effect, Failure, Kernel, StagedFiles, Tool, ToolError, ToolSpec, Tree, View,
    Views, reading_tools,
};
use fluffy_policy::Shape;
use serde_json::{Value, json};

use crate::lab::{ALLOWED, DENIED, FAILED, Lab, Runs, UNFIT, call, detail, ends, error};

/// Holds a lease on a file until its standard input ends.
const HOLDER: &str = "\
import fcntl, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = open(sys.argv[1], 'r+')
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('held', flush=True)
sys.stdin.read()
";

/// A program that holds a file.
struct Holder(Child);

impl Holder {
    fn of(lab: &Lab, name: &str) -> Self {
        let mut child = Command::new("python3")
            .args(["-c", HOLDER])
            .arg(lab.file(name))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        Self(child)
    }

    fn let_go(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
    }
}

/// Remembers how long it should have waited; whoever holds a file lets it go meanwhile.
#[derive(Default)]
struct Pauses {
    waited: Mutex<Vec<u64>>,
    holder: Mutex<Option<Holder>>,
}

impl Waiter for Pauses {
    fn wait(&self, ms: u64, _: &dyn Fn() -> bool) {
        self.waited.lock().unwrap().push(ms);
        if let Some(holder) = self.holder.lock().unwrap().take() {
            holder.let_go();
        }
    }
}

impl Pauses {
    fn waited(&self) -> Vec<u64> {
        self.waited.lock().unwrap().clone()
    }
}

/// The lab's directory as a project.
struct Files(View);

impl Views for Files {
    fn view(&self) -> View {
        self.0.clone()
    }

    fn may_read(&self, _: &ProjectPath) -> bool {
        true
    }
}

const POLICY: &str = "
version: 1
jurisdiction:
  allowed_actors: [alice]
  allowed_tools: ['*']
capabilities:
  - name: secrets
    match: { syscall: fs.read, path_glob: secret }
    action: deny
    reason: it is secret
  - name: reading
    match: { syscall: [fs.read, fs.list, fs.exists, search.grep, search.glob, busy] }
    action: allow
";

fn boot(lab: &Lab, pauses: &Arc<Pauses>, tools: Vec<Box<dyn Tool>>) -> Kernel {
    let tree = Arc::new(Tree::open(&lab.file("")).unwrap());
    let blobs = Arc::new(Blobs::open(&lab.file("blobs")).unwrap());
    let view = View::new(tree, blobs, StagedFiles::default());
    let views: Arc<dyn Views> = Arc::new(Files(view));
    let mut config = lab.config_with(POLICY, Vec::new());
    for tool in reading_tools(&views).into_iter().chain(tools) {
        config.registry.register(tool).unwrap();
    }
    config.waiter = Arc::<Pauses>::clone(pauses);
    Kernel::boot(config).unwrap()
}

/// A tool that is always busy.
struct Busy {
    effect: Effect,
    runs: Runs,
}

impl Tool for Busy {
    fn spec(&self) -> ToolSpec {
        let schema = json!({ "type": "object", "additionalProperties": false });
        ToolSpec {
            name: "busy".into(),
            summary: "".into(),
            schema,
            effect: self.effect,
            shape: Shape::PLAIN,
        }
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        self.attempt(params, clerk).map_err(ToolError::from)
    }

    fn attempt(&self, _: &Json, _: &dyn Clerk) -> Result<Value, Failure> {
        Err(Failure::Passing(ToolError(format!("busy for the {}. time", self.runs.add()))))
    }
}

#[test]
fn too_4_a_read_that_fails_for_a_moment_is_tried_once_more_and_answers() {
    let lab = Lab::new();
    lab.write("a", "text\n");
    let pauses = Arc::new(Pauses::default());
    let kernel = boot(&lab, &pauses, Vec::new());
    *pauses.holder.lock().unwrap() = Some(Holder::of(&lab, "a"));
    let before = lab.entries().len();
    let receipt = kernel.submit(call("1", "fs.read", r#"{"path":"a"}"#));
    assert_eq!(ends(&receipt), ALLOWED, "{receipt:?}");
    assert_eq!(receipt.tool_result.unwrap().value()["content"], "text\n");
    assert_eq!(pauses.waited(), [100]);
    assert_eq!(lab.entries().len(), before + 1, "one call, one entry");
    let last = lab.last();
    let why = detail(&last).metadata.get("failed_before").map(ToString::to_string).unwrap();
    assert!(why.starts_with("`a` cannot be opened: Resource temporarily"), "{why}");
    lab.verify();
}

#[test]
fn too_4_a_read_that_fails_twice_has_one_answer_and_one_entry() {
    let lab = Lab::new();
    lab.write("a", "text\n");
    let pauses = Arc::new(Pauses::default());
    let kernel = boot(&lab, &pauses, Vec::new());
    let holder = Holder::of(&lab, "a");
    let before = lab.entries().len();
    let receipt = kernel.submit(call("1", "fs.read", r#"{"path":"a"}"#));
    assert_eq!(ends(&receipt), FAILED);
    assert!(error(&receipt).contains("`a` cannot be opened"), "{receipt:?}");
    assert_eq!(pauses.waited(), [100], "tried twice, not for ever");
    assert_eq!(lab.entries().len(), before + 1);
    assert!(detail(&lab.last()).metadata.contains_key("failed_before"));
    holder.let_go();
    assert_eq!(ends(&kernel.submit(call("2", "fs.read", r#"{"path":"a"}"#))), ALLOWED);
    assert!(!detail(&lab.last()).metadata.contains_key("failed_before"));
    lab.verify();
}

#[test]
fn too_4_what_has_an_effect_is_tried_once_whatever_its_failure() {
    for (effect, tried) in [(Effect::Some, 1), (Effect::None, 2)] {
        let (lab, runs) = (Lab::new(), Runs::default());
        let pauses = Arc::new(Pauses::default());
        let kernel = boot(&lab, &pauses, vec![Box::new(Busy { effect, runs: runs.clone() })]);
        let receipt = kernel.submit(call("1", "busy", "{}"));
        assert_eq!(ends(&receipt), FAILED);
        assert_eq!((runs.count(), pauses.waited().len() as u64), (tried, tried - 1));
        lab.verify();
    }
}

#[test]
fn too_4_denials_missing_files_and_bad_arguments_are_not_tried_again() {
    let lab = Lab::new();
    lab.write("a", "text\n");
    lab.write("secret", "text\n");
    let pauses = Arc::new(Pauses::default());
    let kernel = boot(&lab, &pauses, Vec::new());
    for (tool, params, expected) in [
        ("fs.read", r#"{"path":"secret"}"#, DENIED),
        ("fs.read", r#"{"path":"gone"}"#, FAILED),
        ("fs.read", r#"{"path":"a","offset":9}"#, FAILED),
        ("fs.read", r#"{"path":"a","offset":"x"}"#, UNFIT),
        ("fs.list", r#"{"path":"a"}"#, FAILED),
        ("fs.list", r#"{"path":"gone"}"#, FAILED),
        ("search.grep", r#"{"pattern":"("}"#, FAILED),
        ("search.glob", r#"{"pattern":"*","path":"gone"}"#, FAILED),
    ] {
        let receipt = kernel.submit(call("1", tool, params));
        assert_eq!(ends(&receipt), expected, "{tool} {params}: {receipt:?}");
    }
    assert_eq!(pauses.waited(), Vec::<u64>::new());
}
