//! A project, its ledger, and everything that a skill meets on its way.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use fluffy_base::{Json, ProjectPath, Secret, Span, SystemClock, SystemIds};
use fluffy_forge::build::{
    BuildError, BuildOrder, Builder, Built, CopyLimits, ProgramBuilder, Shelved, Shelving,
    Transcript, build,
};
use fluffy_forge::{
    Finished, Gateway, Inquire, Inquiry, Proposal, RunError, RunOptions, RunOrder, Runs, ScanRules,
    Secrets, Shelf, ShelfOptions, SkillName, Standing, Tools, VerificationError, Verified,
    VerifyOrder, base, check, findings, locate, research, scan, verify,
};
use fluffy_kernel::{
    Appended, EventType, Journal, Kernel, KernelConfig, KeyName, Lab, Layout, Note, PolicyFile,
    Question, Registry, Review, Reviewer, Scope, SigningKey, ToolError, Tree, Upstream,
    WorkshopOptions,
};
use serde_json::{Value, json};
use tempfile::TempDir;

const POLICY: &str = include_str!("../../../policy/src/default_policy.yaml");

/// A project in a directory, with all that its skills need to be forged and run.
pub(crate) struct Scene {
    dir: PathBuf,
    /// Where the scene is, unless it belongs to somebody else.
    _owned: Option<TempDir>,
    pub(crate) shelf: Arc<Shelf>,
    lab: Arc<Lab>,
    tools: Tools,
    pub(crate) kernel: Option<Kernel>,
    runs: Option<Arc<Runs>>,
    pub(crate) gateway: Arc<dyn Gateway>,
    pub(crate) secrets: BTreeMap<String, String>,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    /// Called before and after everything that is remembered.
    pub(crate) at_every_note: fn(EventType),
}

/// A person who agrees, and remembers to what.
struct Person(Arc<Mutex<Vec<String>>>);

impl Reviewer for Person {
    fn review(&self, question: &Question<'_>) -> Review {
        self.0.lock().unwrap().push(question.notes.join("; "));
        Review::Approved { by: "ada".to_owned(), phrase: None, scope: Scope::Once }
    }
}

struct Vault(BTreeMap<String, String>);

impl Secrets for Vault {
    fn secret(&self, name: &str) -> Option<Secret> {
        self.0.get(name).cloned().map(Secret::new)
    }
}

/// A new, empty place for scenes, where sandboxes can be made.
pub(crate) fn place() -> TempDir {
    tempfile::Builder::new().prefix("fluffy-canon-").tempdir_in("/var/tmp").unwrap()
}

impl Journal for Scene {
    fn record(&self, note: Note) -> Result<Appended, ToolError> {
        let event = note.event;
        (self.at_every_note)(event);
        let recorded = self.kernel().record(note);
        (self.at_every_note)(event);
        recorded
    }
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::through(None)
    }

    /// A scene whose network is reached through a proxy of the person's.
    pub(crate) fn through(upstream: Option<Arc<Upstream>>) -> Self {
        let owned = place();
        let mut scene = Self::at(owned.path(), upstream);
        scene._owned = Some(owned);
        scene
    }

    /// A scene in a directory, with whatever is there already.
    pub(crate) fn at(dir: &Path, upstream: Option<Arc<Upstream>>) -> Self {
        for name in ["project/src", "home", "state"] {
            fs::create_dir_all(dir.join(name)).unwrap();
        }
        fs::write(dir.join("project/src/main.py"), "private = 1\n").unwrap();
        fs::write(dir.join("project/.env"), "TOKEN=hunter2\n").unwrap();
        let program = PathBuf::from(env!("CARGO_BIN_EXE_forge-tester"));
        let runtime = fluffy_testkit::native(&program, &dir.join("sandboxes")).unwrap();
        let (project, home) = (dir.join("project"), Some(dir.join("home")));
        let options = WorkshopOptions { runtime, project, home, shown: Vec::new(), program };
        let tools = locate(&fluffy_testkit::skill_tools());
        let tools = tools.expect("run scripts/test once, which makes target/tools/skills");
        // The kernel makes the ledger that the shelf reads.
        let asked = Arc::default();
        let kernel = Kernel::boot(config(dir, Registry::with_builtins().unwrap(), &asked)).unwrap();
        Self {
            dir: dir.to_owned(),
            _owned: None,
            shelf: Arc::new(shelf(dir)),
            lab: Arc::new(Lab::new(options).through(upstream)),
            tools,
            kernel: Some(kernel),
            runs: None,
            gateway: Arc::new(()),
            secrets: BTreeMap::new(),
            asked,
            at_every_note: |_| {},
        }
    }

    pub(crate) fn project(&self, path: &str) -> PathBuf {
        self.dir.join("project").join(path)
    }

    /// A directory of the state of this scene.
    pub(crate) fn state(&self, name: &str) -> PathBuf {
        self.dir.join("state").join(name)
    }

    /// Processes of this machine that see a directory of this scene: those in its sandboxes.
    pub(crate) fn left_running(&self) -> Vec<String> {
        let word = self.dir.file_name().unwrap().to_str().unwrap();
        let seen = |path: &Path| fs::read_to_string(path.join("mountinfo")).unwrap_or_default();
        let entries = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let inside = entries.filter(|path| seen(path).contains(word));
        inside.map(|path| fs::read_to_string(path.join("cmdline")).unwrap_or_default()).collect()
    }

    pub(crate) fn kernel(&self) -> &Kernel {
        self.kernel.as_ref().unwrap()
    }

    pub(crate) fn standing(&self, name: &SkillName) -> Standing {
        self.shelf.skill(name).unwrap().standing
    }

    pub(crate) fn propose(&self, proposal: Proposal) -> SkillName {
        let name = proposal.name.clone();
        self.shelf.propose(self, proposal).unwrap();
        name
    }

    pub(crate) fn tree(&self) -> Arc<Tree> {
        Arc::new(Tree::open(&self.dir.join("project")).unwrap())
    }

    /// One attempt, told what is known of the one before.
    pub(crate) fn build(
        &self,
        name: &SkillName,
        builder: &Builder<'_>,
    ) -> Result<Built, BuildError> {
        self.build_on(name, builder, &Shelved { shelf: &self.shelf, journal: self })
    }

    pub(crate) fn build_on(
        &self,
        name: &SkillName,
        builder: &Builder<'_>,
        shelving: &dyn Shelving,
    ) -> Result<Built, BuildError> {
        let findings = findings(name, &self.shelf).unwrap();
        let order = BuildOrder {
            name,
            builder,
            findings: findings.as_ref(),
            rules: &[],
            keys: &[],
            path: &["/usr/bin", "/bin"].map(PathBuf::from),
            tree: &self.tree(),
            hidden: &|_: &ProjectPath| false,
            limits: CopyLimits::default(),
            scratch: &self.state("builds"),
            lab: &self.lab,
            journal: self,
            ids: &SystemIds,
        };
        build(&order, shelving)
    }

    /// One attempt of a builder whose work was written down.
    pub(crate) fn play(
        &self,
        name: &SkillName,
        transcript: &Transcript,
    ) -> Result<Built, BuildError> {
        let attempt = self.shelf.skill(name).unwrap().next_attempt();
        let coder = transcript.coder(attempt);
        self.build(name, &Builder::Coder { name: "transcript".to_owned(), coder: &coder })
    }

    pub(crate) fn verify(&self, name: &SkillName) -> Result<Verified, VerificationError> {
        verify(&VerifyOrder {
            name,
            shelf: &self.shelf,
            journal: self,
            policy: &|files, proposal, _| scan(files, &ScanRules::default().for_proposal(proposal)),
            invariants: &check,
            lab: &self.lab,
            tools: &self.tools,
            scratch: &self.state("gates"),
            bringing: &self.state("bringing"),
            tree: &self.tree(),
            ids: &SystemIds,
        })
    }

    pub(crate) fn research(&self, name: &SkillName) -> Inquiry {
        let order = Inquire { name, build: None, hint: None, advisor: None };
        research(&order, &self.shelf, self).unwrap()
    }

    pub(crate) fn promote(&self, name: &SkillName) {
        self.shelf.promote(self, name, "ada").unwrap();
        assert_eq!(self.standing(name), Standing::Trusted);
    }

    /// Starts a kernel that knows every trusted skill as a tool.
    pub(crate) fn start(&mut self) {
        self.kernel.take().unwrap().close().unwrap();
        let runs = Runs::new(RunOptions {
            shelf: Arc::clone(&self.shelf),
            lab: Arc::clone(&self.lab),
            gateway: Arc::clone(&self.gateway),
            secrets: Arc::new(Vault(self.secrets.clone())),
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
            python: "/usr/bin/python3".into(),
        });
        let mut registry = Registry::with_builtins().unwrap();
        let (tools, left_out) = runs.tools().unwrap();
        assert!(left_out.is_empty(), "{left_out:?}");
        for tool in tools {
            registry.register(Box::new(tool)).unwrap();
        }
        self.kernel = Some(Kernel::boot(config(&self.dir, registry, &self.asked)).unwrap());
        self.runs = Some(runs);
    }

    /// Runs a skill for the model, whom a person has to allow what changes something.
    pub(crate) fn run(&self, name: &str, input: Value) -> Result<Finished, RunError> {
        let (name, input) = (SkillName::parse(name).unwrap(), Json::new(input).unwrap());
        let order = RunOrder { actor: "model".to_owned(), ..RunOrder::new(name, input) };
        self.runs.as_ref().unwrap().run(self.kernel(), order)
    }

    /// Runs a skill that does what it should; what it gives.
    #[track_caller]
    pub(crate) fn gives(&self, name: &str, input: Value) -> Value {
        let finished = self.run(name, input).unwrap();
        let why = finished.record.error.as_ref().map(ToString::to_string);
        assert_eq!(why, None, "{name}: {}", finished.record.printed);
        finished.output.unwrap().value().clone()
    }

    /// Runs a skill that fails; why.
    #[track_caller]
    pub(crate) fn fails(&self, name: &str, input: Value) -> String {
        let finished = self.run(name, input).unwrap();
        assert_eq!(finished.output, None, "{name}");
        finished.record.error.unwrap().to_string()
    }
}

/// The forge's memory of the project in a directory.
pub(crate) fn shelf(dir: &Path) -> Shelf {
    Shelf::open(ShelfOptions {
        layout: layout(dir),
        key: key().verifying_key().clone(),
        dir: dir.join("state/forge"),
        project: dir.join("project"),
        base: base().digest(),
    })
    .unwrap()
}

fn layout(dir: &Path) -> Layout {
    Layout::new(dir.join("state/ledger"), dir.join("state/checkpoint"))
}

fn key() -> SigningKey {
    SigningKey::from_seed(KeyName::LEDGER, &[7; 32])
}

fn config(dir: &Path, registry: Registry, asked: &Arc<Mutex<Vec<String>>>) -> KernelConfig {
    let policy = PolicyFile::parse("policy.yaml", POLICY).unwrap();
    let mut config = KernelConfig::new(policy, registry, layout(dir), key());
    config.reviewer = Some(Box::new(Person(Arc::clone(asked))));
    config
}

/// A transcript in which each attempt writes these files.
pub(crate) fn transcript(attempts: &[&[(String, String)]]) -> Transcript {
    let mut lines = vec![json!({"v": 1, "kind": "builder"}).to_string()];
    for (number, files) in (1..).zip(attempts) {
        lines.push(json!({ "attempt": number }).to_string());
        let write = |(path, content): &(String, String)| {
            json!({ "write": { "path": path, "content": content } }).to_string()
        };
        lines.extend(files.iter().map(write));
    }
    Transcript::parse(&lines.join("\n")).unwrap()
}

/// A program of the shell as a builder.
pub(crate) fn program(script: &str, time: Span) -> Builder<'static> {
    let argv = ["sh", "-c", script].map(str::to_owned);
    let mut program = ProgramBuilder::command(&argv).unwrap();
    program.time = time;
    Builder::Program(program)
}
