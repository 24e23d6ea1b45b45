//! A project with trusted skills, a kernel that knows them as tools, and a person to ask.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use fluffy_base::{Digest, Json, ProjectPath, Secret, SystemClock, SystemIds};
use fluffy_forge::{
    Attempt, BuildEnd, Finished, Gate, GateResult, Gateway, GatewayError, Pinned, Proposal,
    RunError, RunOptions, RunOrder, Runs, Sealed, Secrets, Shelf, ShelfOptions, SkillEntry,
    SkillName, base,
};
use fluffy_kernel::{
    Kernel, KernelConfig, KeyName, Lab, Layout, PolicyFile, Question, Registry, Review, Reviewer,
    Scope, SigningKey, WorkshopOptions,
};
use serde_json::{Value, json};
use tempfile::TempDir;

const POLICY: &str = include_str!("../../../policy/src/default_policy.yaml");

/// A project in a directory of its own, with what its skills may have.
pub(crate) struct Scene {
    dir: Arc<TempDir>,
    pub(crate) secrets: BTreeMap<String, String>,
    pub(crate) policy: String,
    pub(crate) agrees: bool,
    promoted: Vec<(Proposal, Vec<(ProjectPath, String)>)>,
}

/// What runs the skills of a scene.
pub(crate) struct Stage {
    pub(crate) kernel: Kernel,
    pub(crate) runs: Arc<Runs>,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) person: Arc<Person>,
    _dir: Arc<TempDir>,
}

/// A person who always says the same.
pub(crate) struct Person {
    agrees: bool,
    pub(crate) asked: Mutex<Vec<String>>,
}

impl Reviewer for Person {
    fn review(&self, question: &Question<'_>) -> Review {
        let notes = question.notes.join("; ");
        self.asked.lock().unwrap().push(format!("{:?} {notes}", question.reasons));
        let by = "ada".to_owned();
        if self.agrees {
            Review::Approved { by, phrase: None, scope: Scope::Once }
        } else {
            Review::Refused { by, words: None }
        }
    }
}

struct Vault(BTreeMap<String, String>);

impl Secrets for Vault {
    fn secret(&self, name: &str) -> Option<Secret> {
        self.0.get(name).cloned().map(Secret::new)
    }
}

/// A model that turns what it is asked round.
struct Echo;

impl Gateway for Echo {
    fn generate(&self, prompt: &str) -> Result<String, GatewayError> {
        Ok(prompt.chars().rev().collect())
    }

    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, GatewayError> {
        Ok(texts.iter().map(|text| vec![text.len() as f32, 1.0]).collect())
    }
}

impl Scene {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("fluffy-run-").tempdir_in("/var/tmp").unwrap();
        for name in ["project/notes", "project/src", "state"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("project/notes/one.md"), "# One\n").unwrap();
        fs::write(dir.path().join("project/src/main.py"), "private = 1\n").unwrap();
        fs::write(dir.path().join("project/.env"), "TOKEN=hunter2\n").unwrap();
        fs::write(dir.path().join("outside"), "of somebody else\n").unwrap();
        Self {
            dir: Arc::new(dir),
            secrets: BTreeMap::new(),
            policy: POLICY.to_owned(),
            agrees: true,
            promoted: Vec::new(),
        }
    }

    /// A scene with one skill called `probe`: of this class, with `notes` in its folders and any output.
    pub(crate) fn probe(class: &str, body: &str) -> Self {
        let mut scene = Self::new();
        scene.add(json!({ "name": "probe", "side_effect": class }), &skill("probe", class, body));
        scene
    }

    /// Adds a skill; what the proposal does not say is usual.
    pub(crate) fn add(&mut self, proposal: Value, source: &str) {
        let mut whole = json!({
            "description": "Tries something.",
            "input": { "type": "object", "properties": { "text": { "type": "string" } } },
            "output": { "type": "object" },
            "reads": ["notes"],
        });
        if proposal["side_effect"] == "FILE_WRITE" {
            whole["writes"] = json!(["notes"]);
        }
        for (key, value) in proposal.as_object().unwrap() {
            whole[key] = value.clone();
        }
        let proposal: Proposal = serde_json::from_value(whole).unwrap();
        let files = vec![
            (proposal.name.skill_path().unwrap(), source.to_owned()),
            (proposal.name.test_path().unwrap(), "def test_it(): ...\n".to_owned()),
        ];
        self.promoted.push((proposal, files));
    }

    /// Promotes a skill anew under the name of one that was revoked.
    pub(crate) fn again(&mut self, proposal: Value, source: &str, stage: &Stage) {
        self.add(proposal, source);
        let (proposal, files) = self.promoted.pop().unwrap();
        self.promote(&stage.shelf, &stage.kernel, &proposal, &files, 2);
    }

    /// Adds a support module to the skill that was added last.
    pub(crate) fn support(&mut self, module: &str, source: &str) {
        let path = ProjectPath::parse(&format!(".fluffy/skills/support/{module}.py")).unwrap();
        self.promoted.last_mut().unwrap().1.push((path, source.to_owned()));
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.project().join(path)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn layout(&self) -> Layout {
        let state = self.dir.path().join("state");
        Layout::new(state.join("ledger"), state.join("checkpoint"))
    }

    fn key() -> SigningKey {
        SigningKey::from_seed(KeyName::LEDGER, &[7; 32])
    }

    fn config(&self, registry: Registry) -> KernelConfig {
        let policy = PolicyFile::parse("policy.yaml", &self.policy).unwrap();
        KernelConfig::new(policy, registry, self.layout(), Self::key())
    }

    pub(crate) fn shelf(&self) -> Shelf {
        Shelf::open(ShelfOptions {
            layout: self.layout(),
            key: Self::key().verifying_key().clone(),
            dir: self.dir.path().join("state/forge"),
            project: self.project(),
            base: base().digest(),
        })
        .unwrap()
    }

    /// Brings every skill to TRUSTED and starts a kernel that knows them.
    pub(crate) fn start(&self) -> Stage {
        let kernel = Kernel::boot(self.config(Registry::with_builtins().unwrap())).unwrap();
        let shelf = Arc::new(self.shelf());
        for (proposal, files) in &self.promoted {
            self.promote(&shelf, &kernel, proposal, files, 1);
        }
        kernel.close().unwrap();
        self.restart(shelf)
    }

    /// A kernel on what is promoted already.
    pub(crate) fn restart(&self, shelf: Arc<Shelf>) -> Stage {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_forge-tester"));
        let runtime = fluffy_testkit::native(&program, &self.dir.path().join("sandboxes")).unwrap();
        let (project, home, shown) = (self.project(), None, Vec::new());
        let lab = Lab::new(WorkshopOptions { runtime, project, home, shown, program });
        let runs = Runs::new(RunOptions {
            shelf: Arc::clone(&shelf),
            lab: Arc::new(lab),
            gateway: Arc::new(Echo),
            secrets: Arc::new(Vault(self.secrets.clone())),
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
            python: "/usr/bin/python3".into(),
        });
        let mut registry = Registry::with_builtins().unwrap();
        for (proposal, _) in &self.promoted {
            registry.register(Box::new(runs.tool(&proposal.name).unwrap())).unwrap();
        }
        let person = Arc::new(Person { agrees: self.agrees, asked: Mutex::default() });
        let mut config = self.config(registry);
        config.reviewer = Some(Box::new(Arc::clone(&person)));
        let _dir = Arc::clone(&self.dir);
        Stage { kernel: Kernel::boot(config).unwrap(), runs, shelf, person, _dir }
    }

    fn promote(
        &self,
        shelf: &Shelf,
        kernel: &Kernel,
        proposal: &Proposal,
        files: &[(ProjectPath, String)],
        number: u32,
    ) {
        let name = proposal.name.clone();
        // As it stands in a ledger: what `propose` refuses may have been accepted by another version.
        let (id, spec, artifact) =
            (format!("{name}-proposal-{number}"), proposal.clone(), Digest::of(b"spec"));
        let proposed = SkillEntry::Proposed { proposal: id, spec, artifact };
        shelf.record(kernel, &proposed).unwrap();
        let pinned = |(path, text): &(ProjectPath, String)| Pinned {
            path: path.clone(),
            sha256: Digest::of(text.as_bytes()),
        };
        let mut pinned: Vec<_> = files.iter().map(pinned).collect();
        pinned.sort_by(|a, b| a.path.cmp(&b.path));
        let build = format!("{name}-build-{number}");
        let parent = (number > 1).then(|| format!("{name}-build-{}", number - 1));
        let (packet, log, report) = (Digest::of(b"p"), Digest::of(b"l"), Digest::of(b"r"));
        let builder = "test".to_owned();
        let attempt = Attempt { build: build.clone(), number, parent, packet, builder };
        let passed = |gate| GateResult {
            gate,
            passed: true,
            summary: "passed".to_owned(),
            findings: Vec::new(),
        };
        for entry in [
            SkillEntry::BuildStarted { name: name.clone(), attempt },
            SkillEntry::BuildEnded {
                name: name.clone(),
                build: build.clone(),
                end: BuildEnd::Built { files: pinned.clone() },
                log,
            },
            SkillEntry::Verified {
                name: name.clone(),
                build,
                verification: format!("{name}-verification-{number}"),
                gates: Gate::ALL.into_iter().map(passed).collect(),
                sealed: Sealed { files: pinned, base: base().digest() },
                report,
            },
        ] {
            shelf.record(kernel, &entry).unwrap();
        }
        for (path, text) in files {
            let at = self.file(path.as_str());
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(at, text).unwrap();
        }
        shelf.promote(kernel, &name, "ada").unwrap();
    }
}

impl Stage {
    pub(crate) fn run(&self, name: &str, input: Value) -> Result<Finished, RunError> {
        self.run_for("user", name, input)
    }

    pub(crate) fn run_for(
        &self,
        actor: &str,
        name: &str,
        input: Value,
    ) -> Result<Finished, RunError> {
        let (name, input) = (SkillName::parse(name).unwrap(), Json::new(input).unwrap());
        let order = RunOrder { actor: actor.to_owned(), ..RunOrder::new(name, input) };
        self.runs.run(&self.kernel, order)
    }

    /// Runs `probe`, which must do what it should.
    #[track_caller]
    pub(crate) fn gives(&self, input: Value) -> Value {
        let finished = self.run("probe", input).unwrap();
        let why = finished.record.error.as_ref().map(ToString::to_string);
        assert_eq!(why, None, "{}", finished.record.printed);
        finished.output.unwrap().value().clone()
    }

    /// Runs `probe`, which must fail; why.
    #[track_caller]
    pub(crate) fn fails(&self) -> String {
        let finished = self.run("probe", json!({})).unwrap();
        assert!(!finished.record.success, "{:?}", finished.record.output);
        assert_eq!(finished.output, None);
        finished.record.error.unwrap().to_string()
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.person.asked.lock().unwrap().clone()
    }
}

/// The source of a skill whose `execute` has this body.
pub(crate) fn skill(name: &str, class: &str, body: &str) -> String {
    let kind = SkillName::parse(name).unwrap().class_name();
    let body = body.trim().replace('\n', "\n        ");
    format!(
        "from fluffy_skill import BaseSkill\n\n\nclass {kind}(BaseSkill):\n    name = \"{name}\"\n    \
         description = \"Tries something.\"\n    side_effect_class = \"{class}\"\n\n    \
         def execute(self, input: dict[str, object]) -> dict[str, object]:\n        {body}\n"
    )
}
