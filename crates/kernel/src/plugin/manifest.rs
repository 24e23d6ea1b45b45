//! What a plugin says of itself: `plugin.yaml`.
//!
//! **Invariant.** Nothing in it is skipped: a key that means nothing is an error with its line. What it says is a request;
//! [`super::check`] and the rules decide.

use std::collections::BTreeSet;
use std::fmt;

use fluffy_base::{ProjectPath, sanitised};
use fluffy_policy::yaml::{self, Field, Problem};
use fluffy_policy::{CORE_PLUGIN, PolicyError, TRUSTED_WRITE};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the file.
pub const MANIFEST: &str = "plugin.yaml";

/// The largest manifest.
const MAX_BYTES: usize = 256 << 10;
/// The most tools of one plugin.
const MAX_TOOLS: usize = 64;
/// The most folders, hosts and tags.
const MAX_LISTED: usize = 32;
/// How long a call may take where the manifest does not say.
const DEFAULT_TIMEOUT_MS: u64 = 30_000;
/// The longest that a call may take.
const MAX_TIMEOUT_MS: u64 = 300_000;

/// The name of a plugin: 1 to 40 lower-case letters, digits, `-` and `_`, the first a letter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PluginName(String);

impl PluginName {
    /// Reads a name.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let plain =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
        let fits = (1..=40).contains(&text.len()) && text.chars().all(plain);
        if fits && text.starts_with(|c: char| c.is_ascii_lowercase()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(
                "a plugin's name is 1 to 40 lower-case letters, digits, `-` and `_`, the first a letter",
            )
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for PluginName {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<PluginName> for String {
    fn from(name: PluginName) -> Self {
        name.0
    }
}

/// What runs a plugin's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PluginRuntime {
    /// The entry is a program.
    Native,
    /// Node.js.
    Node,
    /// Deno.
    Deno,
    /// Python 3.
    Python,
}

impl PluginRuntime {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Native, Self::Node, Self::Deno, Self::Python];

    /// The name in manifests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Node => "node",
            Self::Deno => "deno",
            Self::Python => "python",
        }
    }
}

/// The kind of sandbox that a plugin runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PluginTemplate {
    /// No network.
    CodeExecutor,
    /// The hosts that are listed, through the proxy.
    IntegrationTest,
}

impl PluginTemplate {
    /// The name in manifests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CodeExecutor => "code-executor",
            Self::IntegrationTest => "integration-test",
        }
    }
}

/// A tool that a plugin offers.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// Its name, such as `todo.find`.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its parameters: an object that refuses unknown members.
    pub parameters: Value,
    /// JSON Schema of what it gives, if it says so.
    pub result: Option<Value>,
    /// How long a call may take.
    pub timeout_ms: u64,
}

/// What a plugin says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Its name.
    pub name: PluginName,
    /// Its version, in its author's words.
    pub version: String,
    /// What it is for.
    pub description: String,
    /// Who wrote it, by its own word.
    pub author: Option<String>,
    /// What runs its entry.
    pub runtime: PluginRuntime,
    /// The file that is run.
    pub entry: ProjectPath,
    /// The kind of its sandbox.
    pub template: PluginTemplate,
    /// The calls whose rights it needs, such as `fs.read`.
    pub required_capabilities: Vec<String>,
    /// Folders of the project that it wants to see.
    pub reads: Vec<ProjectPath>,
    /// Hosts that it wants to reach.
    pub hosts: Vec<String>,
    /// Words to find it by. No rule goes by them.
    pub tags: Vec<String>,
    /// Its tools.
    pub tools: Vec<ToolDefinition>,
    /// The oldest version of the interface that it can speak.
    pub min_api_version: u32,
}

/// The keys of a manifest.
const KEYS: [&str; 14] = [
    "name",
    "version",
    "description",
    "author",
    "runtime",
    "entry",
    "sandbox_template",
    "required_capabilities",
    "reads",
    "hosts",
    "tags",
    "tools",
    "min_api_version",
    "homepage",
];

impl Manifest {
    /// Reads a manifest; the error names file, line and column.
    pub fn parse(file: &str, text: &str) -> Result<Self, PolicyError> {
        let placed = |problem: Problem| PolicyError {
            file: file.to_owned(),
            line: problem.line,
            column: problem.column,
            problem: problem.what,
        };
        if text.len() > MAX_BYTES {
            let what = format!("the manifest has more than {} KiB", MAX_BYTES >> 10);
            let problem = fluffy_policy::PolicyProblem::Syntax(what);
            return Err(placed(Problem { line: 1, column: 1, what: problem }));
        }
        let node = yaml::parse(text).map_err(placed)?;
        read(&node.root()).map_err(placed)
    }

    /// Whether it reaches anybody outside.
    pub fn has_network(&self) -> bool {
        !self.hosts.is_empty()
    }
}

fn read(root: &Field<'_>) -> Result<Manifest, Problem> {
    let [
        name,
        version,
        description,
        author,
        runtime,
        entry,
        template,
        capabilities,
        reads,
        hosts,
        tags,
        tools,
        api,
        homepage,
    ] = root.fields(KEYS)?;
    let wanted = |field: Option<Field<'_>>, key: &str, why: &str| match field {
        Some(field) => line(&field, 300),
        None => Err(root.missing(key, why)),
    };
    let plugin = name.ok_or_else(|| root.missing("name", "a plugin is known by it"))?;
    let name = PluginName::parse(plugin.text()?).map_err(|why| plugin.invalid(&why))?;
    homepage.map(|field| line(&field, 300)).transpose()?;
    let runtime = runtime.ok_or_else(|| root.missing("runtime", "it says what runs the entry"))?;
    let entry = entry.ok_or_else(|| root.missing("entry", "it is the file that is run"))?;
    let tools =
        tools.ok_or_else(|| root.missing("tools", "a plugin without tools does nothing"))?;
    let api = api.ok_or_else(|| root.missing("min_api_version", "such as 1"))?;
    let manifest = Manifest {
        name,
        version: wanted(version, "version", "such as \"1.0.0\"")?,
        description: wanted(description, "description", "people are shown it")?,
        author: author.map(|field| line(&field, 300)).transpose()?,
        runtime: read_runtime(&runtime)?,
        entry: path(&entry)?,
        template: template.map_or(Ok(PluginTemplate::CodeExecutor), |it| read_template(&it))?,
        required_capabilities: list(capabilities)?.into_iter().map(|(_, text)| text).collect(),
        reads: paths(reads)?,
        hosts: list(hosts)?.into_iter().map(|(_, text)| text).collect(),
        tags: read_tags(tags)?,
        tools: read_tools(&tools)?,
        min_api_version: u32::try_from(api.integer("a version, such as 1")?)
            .map_err(|_| api.invalid(&"versions count from 1"))?,
    };
    agree(root, &manifest)?;
    Ok(manifest)
}

/// What is asked for in one place must be asked for in the other.
fn agree(root: &Field<'_>, manifest: &Manifest) -> Result<(), Problem> {
    let needs = |call: &str| manifest.required_capabilities.iter().any(|it| it == call);
    if needs("fs.read") == manifest.reads.is_empty() {
        let why = "`fs.read` in `required_capabilities` and the folders of `reads` go together";
        return Err(root.missing("reads", why));
    }
    if (manifest.template == PluginTemplate::IntegrationTest) == manifest.hosts.is_empty() {
        let why = "`sandbox_template: integration-test` and the hosts of `hosts` go together";
        return Err(root.missing("hosts", why));
    }
    Ok(())
}

fn read_runtime(field: &Field<'_>) -> Result<PluginRuntime, Problem> {
    let text = field.text()?;
    let known = PluginRuntime::ALL.into_iter().find(|runtime| runtime.name() == text);
    known.ok_or_else(|| field.invalid(&"a runtime is native, node, deno or python"))
}

fn read_template(field: &Field<'_>) -> Result<PluginTemplate, Problem> {
    let all = [PluginTemplate::CodeExecutor, PluginTemplate::IntegrationTest];
    let text = field.text()?;
    let known = all.into_iter().find(|template| template.name() == text);
    known.ok_or_else(|| field.invalid(&"a plugin's sandbox is code-executor or integration-test"))
}

fn read_tags(field: Option<Field<'_>>) -> Result<Vec<String>, Problem> {
    let tags = list(field)?;
    for (field, tag) in &tags {
        if [CORE_PLUGIN, TRUSTED_WRITE].contains(&tag.as_str()) {
            return Err(field
                .invalid(&"that tag is the kernel's to give, and never to an installed plugin"));
        }
    }
    Ok(tags.into_iter().map(|(_, tag)| tag).collect())
}

fn read_tools(field: &Field<'_>) -> Result<Vec<ToolDefinition>, Problem> {
    let items = field.items("a list of tools")?;
    if items.is_empty() || items.len() > MAX_TOOLS {
        return Err(field.invalid(&format_args!("a plugin has 1 to {MAX_TOOLS} tools")));
    }
    let mut names = BTreeSet::new();
    let tool = |item: &Field<'_>| {
        let tool = read_tool(item)?;
        if !names.insert(tool.name.clone()) {
            return Err(item.invalid(&format_args!("there are two tools called `{}`", tool.name)));
        }
        Ok(tool)
    };
    items.iter().map(tool).collect()
}

fn read_tool(item: &Field<'_>) -> Result<ToolDefinition, Problem> {
    let keys = ["name", "description", "parameters", "result", "timeout_ms"];
    let [name, description, parameters, result, timeout] = item.fields(keys)?;
    let name = name.ok_or_else(|| item.missing("name", "such as `todo.find`"))?;
    let text = name.text()?;
    if !crate::registry::is_tool_name(text) || !text.contains('.') {
        let why = "a tool is called GROUP.NAME, in lower-case letters, digits and `_`";
        return Err(name.invalid(&why));
    }
    let description =
        description.ok_or_else(|| item.missing("description", "the model reads it"))?;
    let description = line(&description, 1_000)?;
    let parameters = match &parameters {
        Some(field) => closed(field)?,
        None => serde_json::json!({ "type": "object", "additionalProperties": false }),
    };
    let result = result.map(|field| checked(&field)).transpose()?;
    let timeout_ms = match timeout {
        None => DEFAULT_TIMEOUT_MS,
        Some(field) => {
            let ms = u64::try_from(field.integer("a number of milliseconds")?).ok();
            let fits = ms.filter(|ms| (1..=MAX_TIMEOUT_MS).contains(ms));
            let why = format_args!("a call takes 1 to {MAX_TIMEOUT_MS} ms");
            fits.ok_or_else(|| field.invalid(&why))?
        }
    };
    Ok(ToolDefinition { name: text.to_owned(), description, parameters, result, timeout_ms })
}

/// The schema of parameters: an object without members that nobody named.
fn closed(field: &Field<'_>) -> Result<Value, Problem> {
    let mut schema = checked(field)?;
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(field.invalid(&"the type of parameters is `object`"));
    }
    if let Some(members) = schema.as_object_mut() {
        members.insert("additionalProperties".to_owned(), false.into());
    }
    Ok(schema)
}

/// A schema that can be used, and that fetches nothing.
fn checked(field: &Field<'_>) -> Result<Value, Problem> {
    let schema = field.json()?;
    jsonschema::validator_for(&schema).map_err(|error| {
        let why =
            format!("it is no JSON Schema: {}", fluffy_base::Excerpt::new(&error.to_string(), 200));
        field.invalid(&why)
    })?;
    Ok(schema)
}

/// One line of words that a terminal may show.
fn line(field: &Field<'_>, most: usize) -> Result<String, Problem> {
    let text = field.text()?.trim();
    if text.is_empty() || text.chars().count() > most {
        return Err(field.invalid(&format_args!("it has 1 to {most} characters")));
    }
    if text.contains('\n') || sanitised(text) != text {
        return Err(field.invalid(&"it is one line without control characters"));
    }
    Ok(text.to_owned())
}

fn list<'a>(field: Option<Field<'a>>) -> Result<Vec<(Field<'a>, String)>, Problem> {
    let Some(field) = field else { return Ok(Vec::new()) };
    let items = field.texts()?;
    if items.len() > MAX_LISTED {
        return Err(field.invalid(&format_args!("it has at most {MAX_LISTED} items")));
    }
    items.into_iter().map(|(item, _)| line(&item, 300).map(|text| (item, text))).collect()
}

fn path(field: &Field<'_>) -> Result<ProjectPath, Problem> {
    ProjectPath::parse(field.text()?).map_err(|error| field.invalid(&error))
}

fn paths(field: Option<Field<'_>>) -> Result<Vec<ProjectPath>, Problem> {
    list(field)?.iter().map(|(item, _)| path(item)).collect()
}
