//! The guest that stands ready for the next edit: it serves, it sees the project as it is by then, and its death costs
//! nothing.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use fluffy_base::Json;
use fluffy_kernel::{CallAnswer, ModelCall, Session};
use fluffy_sandbox::{
    Captured, Config, Health, Inspection, Job, MadeOf, Outcome, Runtime, RuntimeError, Sandbox,
    Store, Swept, Volume, Watcher,
};
use fluffy_workflow::{Access, Mode};
use serde_json::{Value, json};

use super::lab::{Lab, Language};
use super::pins;

/// A runtime that knows its sandboxes.
struct Known {
    inner: Arc<dyn Runtime>,
    made: Mutex<Vec<Arc<One>>>,
    started: Condvar,
}

/// A sandbox, and whether its job was started.
struct One {
    inner: Box<dyn Sandbox>,
    started: Mutex<bool>,
}

/// The runtime's own hold on a sandbox.
struct Held(Arc<One>, Arc<Known>);

impl Known {
    /// Waits until so many sandboxes were made, and the jobs of all of them started.
    fn wait_for(&self, count: usize) {
        let all = |made: &mut Vec<Arc<One>>| {
            made.len() < count || !made.iter().all(|one| *one.started.lock().unwrap())
        };
        let made = self.made.lock().unwrap();
        let (made, late) =
            self.started.wait_timeout_while(made, Duration::from_secs(60), all).unwrap();
        assert!(!late.timed_out(), "{} sandboxes were made", made.len());
    }

    fn count(&self) -> usize {
        self.made.lock().unwrap().len()
    }
}

/// What the session gets: a handle on [`Known`].
struct Runs(Arc<Known>);

impl Runtime for Runs {
    fn name(&self) -> &'static str {
        self.0.inner.name()
    }

    fn ping(&self) -> Result<Health, RuntimeError> {
        self.0.inner.ping()
    }

    fn volume(&self, store: Store) -> Result<Volume, RuntimeError> {
        self.0.inner.volume(store)
    }

    fn create(&self, config: Config, job: Job) -> Result<Box<dyn Sandbox>, RuntimeError> {
        let inner = self.0.inner.create(config, job)?;
        let one = Arc::new(One { inner, started: Mutex::new(false) });
        self.0.made.lock().unwrap().push(Arc::clone(&one));
        Ok(Box::new(Held(one, Arc::clone(&self.0))))
    }

    fn made_of(&self) -> Result<Option<MadeOf>, RuntimeError> {
        self.0.inner.made_of()
    }

    fn sweep(&self) -> Swept {
        self.0.inner.sweep()
    }
}

impl Sandbox for Held {
    fn id(&self) -> &str {
        self.0.inner.id()
    }

    fn start(&self, watcher: Arc<dyn Watcher>) -> Result<(), RuntimeError> {
        let started = self.0.inner.start(watcher);
        let _made = self.1.made.lock().unwrap();
        *self.0.started.lock().unwrap() = true;
        self.1.started.notify_all();
        started
    }

    fn wait(&self) -> Result<Outcome, RuntimeError> {
        self.0.inner.wait()
    }

    fn stop(&self, grace: Duration) {
        self.0.inner.stop(grace);
    }

    fn kill(&self) {
        self.0.inner.kill();
    }

    fn pause(&self) -> Result<(), RuntimeError> {
        self.0.inner.pause()
    }

    fn resume(&self) -> Result<(), RuntimeError> {
        self.0.inner.resume()
    }

    fn inspect(&self) -> Inspection {
        self.0.inner.inspect()
    }

    fn logs(&self) -> (Captured, Captured) {
        self.0.inner.logs()
    }

    fn remove(&self) {
        self.0.inner.remove();
    }
}

struct Scene {
    lab: Lab,
    session: Session,
    known: Arc<Known>,
}

impl Scene {
    /// A session that wrote one file, and has a guest ready for the next.
    fn new() -> Self {
        let lab = Lab::new(Language::Python);
        lab.user.write("tests/test_sums.py", "before\n");
        let mut config = pins::config(&lab);
        let inner = Arc::clone(&config.workshop.runtime);
        let known = Arc::new(Known { inner, made: Mutex::default(), started: Condvar::new() });
        config.workshop.runtime = Arc::new(Runs(Arc::clone(&known)));
        let session = Session::begin(config, "a task", Mode::Strict, Access::Write).unwrap();
        session.start().unwrap();
        let scene = Self { lab, session, known };
        scene.write("tests/test_first.py", "first\n");
        scene.known.wait_for(2);
        scene
    }

    fn call(&self, tool: &str, arguments: Value) -> CallAnswer {
        let arguments = Json::new(arguments).unwrap();
        let call = ModelCall { id: "call".to_owned(), tool: tool.to_owned(), arguments };
        self.session.call(&[call]).remove(0)
    }

    fn write(&self, path: &str, content: &str) {
        let answer = self.call("fs.write", json!({ "path": path, "content": content }));
        assert!(answer.success, "{}", answer.content);
    }

    fn read(&self, path: &str) -> String {
        let answer = self.call("fs.read", json!({ "path": path }));
        answer.content["content"].as_str().unwrap_or_default().to_owned()
    }
}

#[test]
fn an_edit_is_made_by_the_guest_that_stood_ready_for_it() {
    let scene = Scene::new();
    for number in 0..3 {
        scene.write("tests/test_next.py", &format!("{number}\n"));
        // One more for the next: none was made for this one.
        scene.known.wait_for(3 + number);
        assert_eq!(scene.known.count(), 3 + number);
    }
    assert!(scene.read("tests/test_next.py").contains('2'));
}

#[test]
fn a_guest_that_stood_ready_sees_what_the_person_changed_meanwhile() {
    let scene = Scene::new();
    scene.lab.user.write("tests/test_sums.py", "after\n");
    scene.lab.user.write("tests/new/test_new.py", "new\n");
    let edit = |path: &str, old: &str| {
        scene.call("fs.edit", json!({ "path": path, "old": old, "new": "edited" }))
    };
    assert!(!edit("tests/test_sums.py", "before").success);
    scene.known.wait_for(2);
    let answer = edit("tests/test_sums.py", "after");
    assert!(answer.success, "{}", answer.content);
    let answer = edit("tests/new/test_new.py", "new");
    assert!(answer.success, "{}", answer.content);
    assert!(scene.read("tests/test_sums.py").contains("edited"));
}

#[test]
fn an_edit_whose_guest_died_while_it_stood_ready_is_made_by_another() {
    let scene = Scene::new();
    let ready = scene.known.made.lock().unwrap().last().cloned().unwrap();
    ready.inner.kill();
    scene.write("tests/test_next.py", "next\n");
    assert!(scene.read("tests/test_next.py").contains("next"));
}

#[test]
fn nothing_stands_ready_once_the_session_is_gone() {
    let Scene { lab: _lab, session, known } = Scene::new();
    drop(session);
    let ready = known.made.lock().unwrap().last().cloned().unwrap();
    // It ends, and not because it stood for too long.
    let reached = ready.inner.wait().map(|outcome| outcome.reached);
    assert!(!matches!(reached, Ok(limits) if !limits.is_empty()));
}
