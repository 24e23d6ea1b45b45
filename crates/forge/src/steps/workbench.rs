//! Where our own loop builds a skill: the copy, what the model wrote over it, and the tools that it is offered.
//!
//! **Invariant.** The copy is read and never changed. What is written lies beside it, by hash, until it is handed over as what
//! a builder left; it is run in the gates' sandboxes alone.
//!
//! **Invariant.** The tools have the names that they have in a task, so the same rules judge them. Of the project they change
//! nothing, and so they declare no change of it.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fluffy_base::{Json, ProjectPath, Span};
use fluffy_kernel::{
    Blobs, Clerk, Effect, Isolation, Left, LeftFile, Shape, Staged, Stored, Tool, ToolError,
    ToolSpec, Tree, View, Views, reading_tools,
};
use serde_json::{Value, json};

use super::verify::Told;
use super::{StepError, Steps};
use crate::build::Allowed;
use crate::{GateResult, Inspected, Proposal, SkillName, SourceFile, check, inspect, locate, scan};

/// The largest file that is written.
const MAX_FILE: usize = 1 << 20;

/// How many findings of one gate the model is told.
const FINDINGS: usize = 20;

/// A tool that sees the project's files changes none of them here: it writes beside the copy.
const WRITES: Shape = Shape {
    paths: &["path"],
    content: Some("content"),
    isolation: Isolation::Sandbox,
    ..Shape::PLAIN
};

/// What a model works with while it builds one skill.
pub struct Workbench {
    steps: Arc<Steps>,
    name: SkillName,
    allowed: Allowed,
    /// What is seen before anything is laid out.
    nothing: View,
    laid: Mutex<Option<Laid>>,
}

/// A copy that is worked on.
struct Laid {
    tree: Arc<Tree>,
    blobs: Arc<Blobs>,
    written: BTreeMap<ProjectPath, Stored>,
    /// When the work has to be over.
    until_ms: u64,
    /// What the model said when it was done.
    done: Option<String>,
}

/// What the tools are that only a workbench has.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Write,
    Test,
    Complete,
}

struct BenchTool {
    bench: Arc<Workbench>,
    kind: Kind,
}

impl Workbench {
    /// A workbench for a skill, on which nothing is laid out.
    pub fn new(steps: &Arc<Steps>, name: SkillName) -> Result<Arc<Self>, StepError> {
        let dir = steps.options.dir.join("nothing");
        let blobs = Arc::new(Blobs::open(&dir).map_err(unusable)?);
        let tree = Arc::new(Tree::open(&dir).map_err(StepError::Project)?);
        let nothing = View::new(tree, blobs, std::iter::empty().collect());
        let allowed = Allowed::of(&name).map_err(crate::build::BuildError::from)?;
        let (steps, laid) = (Arc::clone(steps), Mutex::default());
        Ok(Arc::new(Self { steps, name, allowed, nothing, laid }))
    }

    /// The tools that the model is offered, for the registry of the kernel that judges their calls.
    pub fn tools(self: &Arc<Self>) -> Vec<Box<dyn Tool>> {
        let views: Arc<dyn Views> = Arc::<Self>::clone(self);
        let mut tools = reading_tools(&views);
        for kind in [Kind::Write, Kind::Test, Kind::Complete] {
            tools.push(Box::new(BenchTool { bench: Arc::clone(self), kind }));
        }
        tools
    }

    /// The skill that is built.
    pub(super) fn name(&self) -> &SkillName {
        &self.name
    }

    /// Milliseconds since 1970.
    pub(super) fn now_ms(&self) -> u64 {
        self.steps.options.clock.now_ms()
    }

    /// An id that no other request has.
    pub(super) fn fresh(&self) -> Result<String, StepError> {
        self.steps.fresh()
    }

    /// Lays a copy out, to be worked on until then.
    pub(super) fn lay(&self, copy: &Path, until_ms: u64) -> Result<(), StepError> {
        let tree = Arc::new(Tree::open(copy).map_err(StepError::Project)?);
        // Beside the copy, where everything goes with the build.
        let blobs = Arc::new(Blobs::open(&copy.with_file_name("written")).map_err(unusable)?);
        let written = BTreeMap::new();
        *self.laid() = Some(Laid { tree, blobs, written, until_ms, done: None });
        Ok(())
    }

    /// Takes everything away, and gives what was written.
    pub(super) fn clear(&self) -> Result<Left, StepError> {
        let Some(laid) = self.laid().take() else { return Ok(Left::default()) };
        let files = laid.written.into_iter().map(|(path, stored)| {
            let bytes = laid.blobs.get(&stored).map_err(unusable)?;
            Ok(LeftFile { path, bytes, executable: false })
        });
        Ok(Left { files: files.collect::<Result<_, StepError>>()?, ..Left::default() })
    }

    /// What the model said when it was done, if it is.
    pub(super) fn done(&self) -> Option<String> {
        self.laid().as_ref().and_then(|laid| laid.done.clone())
    }

    /// Ends the work, unless something is missing, which is told.
    pub(super) fn finish(&self, summary: &str) -> Result<(), String> {
        let view = self.view();
        let missing = |path: &&ProjectPath| !matches!(view.look(path), Ok(Some(_)));
        let missing: Vec<_> = self.allowed.required().iter().filter(missing).collect();
        if let Some(path) = missing.first() {
            return Err(format!("`{path}` is not written"));
        }
        if let Some(laid) = self.laid().as_mut() {
            laid.done = Some(summary.to_owned());
        }
        Ok(())
    }

    fn write(&self, params: &Json) -> Result<Value, ToolError> {
        let text = |name: &str| params.value().get(name).and_then(Value::as_str);
        let (Some(path), Some(content)) = (text("path"), text("content")) else {
            return Err(ToolError("`path` and `content` are texts".to_owned()));
        };
        let path = ProjectPath::parse(path).map_err(|error| ToolError(error.to_string()))?;
        let allowed = self.allowed.all();
        if !allowed.contains(&path) {
            let names: Vec<_> = allowed.iter().map(|path| format!("`{path}`")).collect();
            let names = names.join(", ");
            return Err(ToolError(format!("`{path}` is no file of the skill; these are: {names}")));
        }
        if content.len() > MAX_FILE {
            return Err(ToolError(format!("a file of a skill has at most {MAX_FILE} bytes")));
        }
        let mut laid = self.laid();
        let laid = laid.as_mut().ok_or_else(|| ToolError("nothing is laid out".to_owned()))?;
        let stored = laid.blobs.put(content.as_bytes(), false);
        let stored = stored.map_err(|error| ToolError(fluffy_kernel::causes(&error)))?;
        laid.written.insert(path.clone(), stored);
        Ok(json!({ "written": path, "bytes": content.len() }))
    }

    /// What the five gates say of the skill as it is now.
    fn test(&self, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        let failed = |error: &dyn std::error::Error| ToolError(fluffy_kernel::causes(error));
        let options = &self.steps.options;
        let tools = locate(&options.cache).map_err(|error| failed(&error))?;
        let skill = options.shelf.skill(&self.name).map_err(|error| failed(&error))?;
        let proposal: &Proposal = &skill.proposal.spec;
        let (files, changed) = self.files()?;
        let judgement = inspect(&Inspected {
            proposal,
            files: &files,
            policy: &|files| scan(files, &options.rules.for_proposal(proposal)),
            invariants: &|files| check(files, proposal, &changed),
            lab: &options.lab,
            tools: &tools,
            scratch: &options.dir.join("gates"),
            ids: &*options.ids,
            journal: &Told(clerk),
            most: Some(self.left()),
        });
        let judgement = judgement.map_err(|error| failed(&error))?;
        let gates: Vec<_> = judgement.gates.iter().map(told).collect();
        Ok(json!({ "passed": judgement.passed(), "gates": gates }))
    }

    /// The files of the skill as they are now, and which of them were written.
    fn files(&self) -> Result<(Vec<SourceFile>, Vec<ProjectPath>), ToolError> {
        let view = self.view();
        let mut files = Vec::new();
        for path in self.allowed.all() {
            let Ok(file) = view.open(&path) else { continue };
            let mut bytes = Vec::new();
            let read = file.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes);
            read.map_err(|error| ToolError(format!("`{path}` cannot be read: {error}")))?;
            files.push(SourceFile { path, bytes });
        }
        let laid = self.laid();
        let written = laid.as_ref().map(|laid| laid.written.keys().cloned().collect());
        Ok((files, written.unwrap_or_default()))
    }

    /// How much of the work's time is left; a look that is begun at its very end has a moment and finds itself late.
    fn left(&self) -> Span {
        let until_ms = self.laid().as_ref().map_or(0, |laid| laid.until_ms);
        Span::from_ms(until_ms.saturating_sub(self.now_ms()).max(1))
    }

    fn laid(&self) -> MutexGuard<'_, Option<Laid>> {
        self.laid.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Views for Workbench {
    fn view(&self) -> View {
        let laid = self.laid();
        let Some(laid) = laid.as_ref() else { return self.nothing.clone() };
        let written = laid.written.iter().map(|(path, it)| (path.clone(), Staged::File(*it)));
        View::new(Arc::clone(&laid.tree), Arc::clone(&laid.blobs), written.collect())
    }

    /// What may not be read was not copied.
    fn may_read(&self, _: &ProjectPath) -> bool {
        true
    }
}

impl Tool for BenchTool {
    fn spec(&self) -> ToolSpec {
        let text = json!({ "type": "string" });
        let runs = Shape { isolation: Isolation::Sandbox, ..Shape::PLAIN };
        let (name, summary, properties, required, shape): (_, _, _, &[&str], _) = match self.kind {
            Kind::Write => (
                "fs.write",
                "Writes a file of the skill: all of its text",
                json!({ "path": text, "content": text }),
                &["path", "content"],
                WRITES,
            ),
            Kind::Test => (
                "test.run",
                "Asks the five gates about the skill as it is: lint, types, tests, policy, invariants",
                json!({}),
                &[],
                runs,
            ),
            Kind::Complete => (
                "task.complete",
                "Says that skill and tests are written",
                json!({ "summary": text }),
                &["summary"],
                Shape::PLAIN,
            ),
        };
        ToolSpec {
            name: name.into(),
            summary: summary.into(),
            schema: super::tool::closed(properties, required),
            effect: Effect::Some,
            shape,
        }
    }

    fn run(&self, params: &Json, clerk: &dyn Clerk) -> Result<Value, ToolError> {
        match self.kind {
            Kind::Write => self.bench.write(params),
            Kind::Test => self.bench.test(clerk),
            Kind::Complete => {
                let summary = params.value().get("summary").and_then(Value::as_str);
                let done = self.bench.finish(summary.unwrap_or_default());
                done.map(|()| json!({ "done": true })).map_err(ToolError)
            }
        }
    }
}

/// What a gate said, as far as a model is told.
fn told(result: &GateResult) -> Value {
    let findings = result.findings.iter().take(FINDINGS);
    json!({
        "gate": result.gate, "passed": result.passed, "summary": result.summary,
        "findings": findings.collect::<Vec<_>>(),
    })
}

fn unusable(error: fluffy_kernel::BlobError) -> StepError {
    StepError::NotTaken(fluffy_kernel::causes(&error))
}
