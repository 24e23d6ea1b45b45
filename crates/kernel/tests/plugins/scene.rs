//! A project with plugins, a kernel that knows them, and a person to ask.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use fluffy_base::{Decision, Json, KernelReceipt, KernelRequest, ProjectPath, SystemIds};
use fluffy_kernel::schedule::{Limits, MachineMemory, Scheduler};
use fluffy_kernel::{
    EventType, Interpreters, Kernel, KernelConfig, KeyName, Lab, Layout, Package, PackageError,
    PluginChange, PluginDone, PluginError, PluginName, PluginOptions, Plugins, PolicyFile,
    Question, Registry, Review, Reviewer, Scope, SigningKey, Surveyed, Unpacked, WorkshopOptions,
};
use fluffy_ledger::{DetailView, Page, Query};
use fluffy_sandbox::Runtime;
use serde_json::Value;
use tempfile::TempDir;

const POLICY: &str = include_str!("../../../policy/src/default_policy.yaml");
const SDK: &str = include_str!("../../../../sdk/python/fluffy_plugin.py");

/// A project in a directory of its own.
pub(crate) struct Scene {
    pub(crate) dir: TempDir,
    pub(crate) policy: String,
    pub(crate) agrees: bool,
}

/// A kernel that knows the plugins of a scene.
pub(crate) struct Stage {
    pub(crate) kernel: Kernel,
    pub(crate) plugins: Arc<Plugins>,
    pub(crate) surveyed: Vec<Surveyed>,
    pub(crate) person: Arc<Person>,
    pub(crate) lab: Arc<Lab>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) scheduler: Arc<Scheduler>,
}

/// A person who always says the same.
pub(crate) struct Person {
    agrees: bool,
    pub(crate) asked: Mutex<Vec<String>>,
}

impl Reviewer for Person {
    fn review(&self, question: &Question<'_>) -> Review {
        self.asked.lock().unwrap().push(question.notes.join("\n"));
        let by = "ada".to_owned();
        if self.agrees {
            Review::Approved { by, phrase: None, scope: Scope::Once }
        } else {
            Review::Refused { by, words: None }
        }
    }
}

/// A manifest for a plugin in Python with one tool, `NAME.try`, and these lines more.
pub(crate) fn manifest(name: &str, more: &str) -> String {
    format!(
        "name: {name}\nversion: \"1.0.0\"\ndescription: Tries something\nruntime: python\nentry: main.py\n\
         min_api_version: 1\ntools:\n  - name: {name}.try\n    description: Tries it\n    timeout_ms: 10000\n    \
         parameters: {{ type: object, properties: {{ text: {{ type: string }} }} }}\n{more}"
    )
}

/// A handler with this body for the tool `NAME.try`, by way of the kit.
pub(crate) fn handler(name: &str, body: &str) -> String {
    let body = body.trim().replace('\n', "\n    ");
    format!(
        "import os, sys, time, json, struct, socket\nfrom fluffy_plugin import Plugin, ToolError\n\n\
         plugin = Plugin(\"{name}\", \"1.0.0\")\n\n\n@plugin.tool(\"{name}.try\")\n\
         def handle(arguments, context):\n    {body}\n\n\nplugin.run()\n"
    )
}

/// A plugin that speaks for itself, without the kit: this is what it does after the handshake.
pub(crate) fn raw(name: &str, body: &str) -> String {
    format!(
        "import os, sys, time, json, struct\n\n\ndef send(message):\n    data = json.dumps(message).encode()\n    \
         os.write(1, struct.pack('>I', len(data)) + data)\n\n\ndef hear():\n    size = os.read(0, 4)\n    \
         if len(size) < 4:\n        sys.exit(0)\n    return json.loads(os.read(0, struct.unpack('>I', size)[0]))\n\n\n\
         def hello(version=1, name='{name}', release='1.0.0'):\n    send({{'type': 'request', 'id': 1, 'method': 'handshake', \
         'params': {{'plugin_name': name, 'plugin_version': release, 'syscall_api_version': version}}}})\n    \
         return hear()\n\n\n{body}\n"
    )
}

pub(crate) fn package(files: &[(&str, &str)]) -> Result<Package, PackageError> {
    let file = |(path, text): &(&str, &str)| Unpacked {
        path: ProjectPath::parse(path).unwrap(),
        bytes: text.as_bytes().to_vec(),
        executable: false,
    };
    Package::new(files.iter().map(file).collect())
}

/// A plugin in Python with the kit beside it.
pub(crate) fn python(name: &str, more: &str, code: &str) -> Package {
    let manifest = manifest(name, more);
    package(&[("plugin.yaml", &manifest), ("main.py", code), ("fluffy_plugin.py", SDK)]).unwrap()
}

pub(crate) fn named(name: &str) -> PluginName {
    PluginName::parse(name).unwrap()
}

impl Scene {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("fluffy-plugin-").tempdir_in("/var/tmp").unwrap();
        for name in ["project/src", "project/private", "state"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        for (path, text) in [
            ("project/src/main.py", "# says hello\nprint('hi')\n"),
            ("project/src/.env", "TOKEN=hunter2\n"),
            ("project/private/notes.md", "private\n"),
        ] {
            fs::write(dir.path().join(path), text).unwrap();
        }
        Self { dir, policy: POLICY.to_owned(), agrees: true }
    }

    /// A scene in which this plugin is installed.
    pub(crate) fn with(package: Package) -> Self {
        let scene = Self::new();
        scene.start().change(PluginChange::Install(Box::new(package))).unwrap();
        scene
    }

    pub(crate) fn layout(&self) -> Layout {
        let state = self.dir.path().join("state");
        Layout::new(state.join("ledger"), state.join("checkpoint"))
    }

    fn key() -> SigningKey {
        SigningKey::from_seed(KeyName::LEDGER, &[7; 32])
    }

    pub(crate) fn plugin_dir(&self) -> PathBuf {
        self.dir.path().join("state/plugins")
    }

    pub(crate) fn start(&self) -> Stage {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_kernel-tester"));
        let runtime = fluffy_testkit::native(&program, &self.dir.path().join("sandboxes")).unwrap();
        let limits = Limits { global: 1, ..Limits::default() };
        let scheduler = Scheduler::new(limits, Box::new(MachineMemory::open()));
        let runtime = scheduler.over(runtime);
        let seats = Arc::clone(&runtime);
        let project = self.dir.path().join("project");
        let (home, shown) = (None, Vec::new());
        let lab = Arc::new(Lab::new(WorkshopOptions { runtime, project, home, shown, program }));
        let policy = || PolicyFile::parse("policy.yaml", &self.policy).unwrap();
        let plugins = Plugins::new(PluginOptions {
            layout: self.layout(),
            key: Self::key().verifying_key().clone(),
            dir: self.plugin_dir(),
            lab: Arc::clone(&lab),
            interpreters: Interpreters {
                python: Some("/usr/bin/python3".into()),
                ..Interpreters::default()
            },
            policy: policy(),
            kept: Vec::new(),
            person: "ada".to_owned(),
            ids: Arc::new(SystemIds),
        });
        let mut registry = Registry::with_builtins().unwrap();
        let surveyed = plugins.register(&mut registry).unwrap();
        for step in plugins.steps() {
            registry.register(Box::new(step)).unwrap();
        }
        let mut config = KernelConfig::new(policy(), registry, self.layout(), Self::key());
        let person = Arc::new(Person { agrees: self.agrees, asked: Mutex::default() });
        config.reviewer = Some(Box::new(Arc::clone(&person)));
        let kernel = Kernel::boot(config).unwrap();
        plugins.announce(&kernel).unwrap();
        Stage { kernel, plugins, surveyed, person, lab, runtime: seats, scheduler }
    }

    /// The tags that were recorded with the last call of a tool.
    pub(crate) fn tags_of(&self, tool: &str) -> Option<String> {
        let layout = self.layout();
        let database = layout.segment(layout.active().unwrap().unwrap());
        let query = Query { tool: Some(tool.to_owned()), ..Query::default() };
        let page = Page { limit: 1, offset: 0, newest_first: true };
        let record = query.collect(&database, page).unwrap().pop().unwrap();
        let detail = DetailView::parse(&record.detail).unwrap();
        detail.metadata.get("caller_tags").map(ToString::to_string)
    }

    /// What the ledger has of plugins, in order: the event, and what it tells.
    pub(crate) fn recorded(&self) -> Vec<String> {
        let mut found = Vec::new();
        let layout = self.layout();
        let database = layout.segment(layout.active().unwrap().unwrap());
        let page = Page { limit: u64::MAX, offset: 0, newest_first: false };
        Query::default()
            .run(&database, page, |record| {
                let detail = DetailView::parse(&record.detail).unwrap();
                let told = |name: &str| detail.metadata.get(name).map(|text| text.to_string());
                if detail.event == EventType::PluginLifecycle.name() {
                    found.push(told("stage").unwrap());
                } else if detail.event == EventType::Plugin.name() {
                    found.push(told("change").unwrap());
                }
                true
            })
            .unwrap();
        found
    }
}

impl Stage {
    pub(crate) fn change(&self, change: PluginChange) -> Result<PluginDone, PluginError> {
        self.plugins.change(&self.kernel, change)
    }

    pub(crate) fn install(&self, package: Package) -> Result<PluginDone, PluginError> {
        self.change(PluginChange::Install(Box::new(package)))
    }

    pub(crate) fn submit(&self, tool: &str, params: Value) -> KernelReceipt {
        let params = Json::new(params).unwrap();
        self.kernel.submit(KernelRequest::call("r", "model", "try it", tool, params))
    }

    /// Calls a tool, which must be allowed; what it gives, or why it gives nothing.
    #[track_caller]
    pub(crate) fn call(&self, tool: &str, params: Value) -> Result<Value, String> {
        let receipt = self.submit(tool, params);
        assert_eq!(receipt.decision, Decision::Allow, "{:?}", receipt.error);
        match receipt.tool_result {
            Some(result) if receipt.error.is_none() => Ok(result.value().clone()),
            _ => Err(receipt.error.unwrap()),
        }
    }

    /// Calls a tool, which must fail; why.
    #[track_caller]
    pub(crate) fn fails(&self, tool: &str) -> String {
        self.call(tool, serde_json::json!({})).unwrap_err()
    }

    pub(crate) fn close(self) {
        self.plugins.unload(&self.kernel);
        self.kernel.close().unwrap();
    }
}
