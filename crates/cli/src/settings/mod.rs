//! Settings in layers: arguments, then the environment, the project, the user's own file, defaults.
//!
//! [`table`] names every setting and who may say it; [`Settings::load`] reads all layers by it, and
//! [`Settings::effective`] tells which word holds.
//!
//! **Invariant.** A setting that a file or a variable says wrongly, twice or under a misspelt name is an error: what
//! was meant to be a limit is never silently none.
//!
//! **Invariant.** No setting switches a rule off. What may happen is the kernel's business; a setting says what is asked of it.

pub(crate) mod edit;
mod error;
pub(crate) mod file;
pub(crate) mod page;
pub(crate) mod table;
mod value;

use std::collections::BTreeMap;
use std::fmt;

use fluffy_base::{ByteSize, ProjectPath, Span};
use fluffy_kernel::{HookPolicy, Identity, JobLimits};
use fluffy_policy::Glob;
use fluffy_policy::yaml::nearest;
use fluffy_sandbox::{Template, UserLimits};
use fluffy_workflow::Mode;

pub(crate) use self::error::SettingError;
pub(crate) use self::table::{Layer, SETTINGS, Setting};
pub(crate) use self::value::{Kind, Value, written};

use self::file::OWN_CONFIG;
use self::table::Meeting;
use self::value::identity;
use crate::environment::Environment;
use crate::explain::CliError;
use crate::place::Place;
use crate::providers::{Entry, Name, ProviderSpec, ProxyUrl, entries};

/// Everything that was said, by whom.
pub(crate) struct Settings {
    said: BTreeMap<String, BTreeMap<Layer, Found>>,
    providers: BTreeMap<Name, Entry>,
}

/// A value, and where it comes from.
#[derive(Debug)]
pub(crate) struct Found {
    /// The setting.
    pub(crate) setting: &'static Setting,
    /// What is said of it.
    pub(crate) value: Value,
    /// Where.
    pub(crate) origin: Origin,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody said anything.
    Default,
    /// The variable that every program on the machine goes by.
    Machine(&'static str),
    /// A line of a file.
    File {
        /// Whose file.
        layer: Layer,
        /// Its name.
        file: String,
        /// The line, from 1.
        line: u64,
    },
    /// A variable.
    Variable(String),
    /// An argument.
    Argument(&'static str),
}

impl Settings {
    /// What holds in a project.
    pub(crate) fn load(place: &Place, environment: &Environment) -> Result<Self, CliError> {
        let mut settings = Self::of_person(environment)?;
        if let Some(text) = file::of_project(place.project())? {
            settings.take_file(OWN_CONFIG, Layer::Project, &text)?;
        }
        settings.belong_together()?;
        Ok(settings)
    }

    /// What holds whatever the project: nothing that lies in one is read.
    pub(crate) fn of_person(environment: &Environment) -> Result<Self, CliError> {
        let mut settings = Self { said: BTreeMap::new(), providers: BTreeMap::new() };
        settings.take_defaults(environment)?;
        if let Some(path) = user_file(environment)
            && let Some(text) = file::of_user(&path)?
        {
            settings.take_user(&path.display().to_string(), &text)?;
        }
        settings.take_variables(environment)?;
        Ok(settings)
    }

    /// The same with what was typed for a setting, if it was.
    pub(crate) fn typed(mut self, name: &str, text: Option<&str>) -> Result<Self, CliError> {
        let Some((text, (setting, _))) = text.zip(Setting::named(name)) else { return Ok(self) };
        let value = setting.kind.of_typed(text).map_err(|_| CliError::Value {
            given: fluffy_base::Excerpt::new(text, 80).to_string(),
            wanted: setting.kind.wanted(),
        })?;
        let argument = setting.argument.unwrap_or_default();
        self.put(
            name,
            Layer::Argument,
            Found { setting, value, origin: Origin::Argument(argument) },
        );
        Ok(self)
    }

    /// The value that holds, if there is one.
    pub(crate) fn effective(&self, name: &str) -> Option<&Found> {
        let said = self.said.get(name)?;
        let own = |layer| said.get(&layer);
        if let Some(typed) = own(Layer::Argument).or(own(Layer::Environment)) {
            return Some(typed);
        }
        let (user, default) = (own(Layer::User), own(Layer::Default));
        let Some(project) = own(Layer::Project) else { return user.or(default) };
        let bound = match project.setting.project {
            Meeting::Never(_) => return user.or(default),
            Meeting::Replaces => None,
            Meeting::NotLooserThanUser => user,
            Meeting::NotLooserThanDefault => user.or(default),
        };
        let kind = project.setting.kind;
        bound.filter(|bound| !kind.is_stricter(&project.value, &bound.value)).or(Some(project))
    }

    /// What a project says and is not heard with, since it is looser than what holds.
    pub(crate) fn overruled(&self, name: &str) -> Option<&Found> {
        let project = self.said.get(name)?.get(&Layer::Project)?;
        let held = self.effective(name)?.origin.layer();
        matches!(held, Layer::User | Layer::Default).then_some(project)
    }

    /// The full names of everything that has a value, in the table's order.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.said.keys().map(String::as_str).collect();
        let rank = |name: &str| {
            let setting = self.said.get(name).and_then(|said| said.values().next());
            let at = setting.map(|found| found.setting.name);
            SETTINGS.iter().position(|setting| Some(setting.name) == at)
        };
        names.sort_by_key(|name| (rank(name), *name));
        names
    }

    /// A number that holds.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        match self.effective(name)?.value {
            Value::Number(amount) | Value::Dollars(amount) => Some(amount),
            Value::Text(_) | Value::List(_) | Value::Proxy(_) | Value::Hidden => None,
        }
    }

    /// A text that holds.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match &self.effective(name)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A list that holds.
    pub(crate) fn list(&self, name: &str) -> Option<&[String]> {
        match &self.effective(name)?.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// How strictly a new task works. What a project loosens is not agreed to by an answer that was given before
    /// anybody saw it.
    pub(crate) fn mode(&self, answered_yes: bool) -> Result<Mode, CliError> {
        let Some(found) = self.effective("mode") else { return Ok(Mode::Strict) };
        let mode = self.text("mode").and_then(Mode::from_name).unwrap_or(Mode::Strict);
        let foreign = matches!(found.origin, Origin::File { layer: Layer::Project, .. });
        if foreign && answered_yes && !mode.is_test_first() {
            return Err(SettingError::Loosened(mode).into());
        }
        Ok(mode)
    }

    /// Who provides the model, as the environment or the user's file says.
    pub(crate) fn provider(&self) -> Option<ProviderSpec> {
        ProviderSpec::parse(self.text("provider")?).ok()
    }

    /// Which model goes with it, and who says so. A model belongs to its provider: where a stronger layer names
    /// another provider, a weaker one's model means nothing.
    pub(crate) fn model(&self) -> Option<(&str, &Origin)> {
        let (provider, model) = (self.effective("provider")?, self.effective("model")?);
        let fits = model.origin.layer() >= provider.origin.layer();
        self.text("model").filter(|_| fits).map(|text| (text, &model.origin))
    }

    /// The proxy on the way to providers, and what is reached without it.
    pub(crate) fn proxy(&self) -> Option<(&ProxyUrl, bool)> {
        match self.effective("proxy")? {
            Found { value: Value::Proxy(proxy), origin, .. } => {
                Some((proxy, matches!(origin, Origin::Machine(_))))
            }
            _ => None,
        }
    }

    /// What is said of each provider.
    pub(crate) fn providers(&self) -> &BTreeMap<Name, Entry> {
        &self.providers
    }

    /// Where the tests' command leaves its coverage, if it does.
    pub(crate) fn test_coverage(&self) -> Option<ProjectPath> {
        ProjectPath::parse(self.text("test.coverage")?).ok()
    }

    /// Files that are tests beside the usual ones.
    pub(crate) fn test_files(&self) -> Result<Vec<Glob>, CliError> {
        let globs =
            self.list("test.files").unwrap_or_default().iter().map(|text| Glob::parse(text));
        // They were checked when they were read; what is no pattern after all protects nothing.
        globs.collect::<Result<_, _>>().map_err(|error: fluffy_policy::GlobError| {
            let (name, problem) = ("test.files".to_owned(), error.to_string());
            SettingError::Wrong { name, problem }.into()
        })
    }

    /// What becomes of the repository's hooks.
    pub(crate) fn hooks(&self) -> HookPolicy {
        match self.text("commit.hooks") {
            Some("skip") => HookPolicy::Skip,
            Some("run") | None => HookPolicy::Run,
            Some(_) => HookPolicy::Refuse,
        }
    }

    /// How much commands and runs of tests may use. Docker and Podman never get more than the template gives: what stands before them
    /// holds every container against it.
    pub(crate) fn job_limits(&self) -> JobLimits {
        let native = self.text("sandbox.runtime") == Some("native");
        let limits = |job: &str| {
            let number = |name: &str| self.number(&format!("limits.{job}.{name}"));
            let small = |name: &str| number(name).and_then(|value| u32::try_from(value).ok());
            let user = UserLimits {
                time: Span::from_ms(number("time_seconds")?.saturating_mul(1_000)),
                memory: ByteSize::from_bytes(number("memory_mib")?.saturating_mul(1 << 20)),
                cpu: small("processors")?.saturating_mul(1_000),
                processes: small("processes")?,
            };
            let most = Template::CodeExecutor.limits();
            Some(if native { user } else { user.within(most) })
        };
        JobLimits { command: limits("command"), test: limits("test") }
    }

    /// Whom commits are by, if not by whoever git says.
    pub(crate) fn author(&self) -> Option<Identity> {
        identity(self.text("commit.author")?)
    }

    fn put(&mut self, name: &str, layer: Layer, found: Found) {
        self.said.entry(name.to_owned()).or_default().insert(layer, found);
    }

    fn take_defaults(&mut self, environment: &Environment) -> Result<(), CliError> {
        for setting in SETTINGS {
            let Some(text) = setting.default else { continue };
            let value = setting.kind.of_text(text);
            let value = value.map_err(|problem| SettingError::Wrong {
                name: setting.name.to_owned(),
                problem,
            })?;
            let found = Found { setting, value, origin: Origin::Default };
            self.put(setting.name, Layer::Default, found);
        }
        if let (Some(text), Some((setting, _))) = (&environment.proxy, Setting::named("proxy")) {
            // What other programs go by may be nothing that we can use; it matters once a provider is asked.
            if let Ok(value) = setting.kind.of_text(text.expose()) {
                let origin = Origin::Machine("HTTPS_PROXY");
                self.put("proxy", Layer::Default, Found { setting, value, origin });
            }
        }
        Ok(())
    }

    fn take_user(&mut self, shown: &str, text: &str) -> Result<(), CliError> {
        self.take_file(shown, Layer::User, text)?;
        self.providers = entries(shown, text)?;
        Ok(())
    }

    /// Refuses what means nothing without something else.
    fn belong_together(&self) -> Result<(), CliError> {
        let Some(coverage) = self.effective("test.coverage") else { return Ok(()) };
        if self.effective("test.command").is_some() {
            return Ok(());
        }
        let problem = "`test.coverage` is what `test.command` leaves, and there is no command";
        Err(match &coverage.origin {
            Origin::File { file, line, .. } => {
                let problem = format!("line {line}: {problem}");
                CliError::Settings { file: file.clone(), problem }
            }
            _ => {
                let (name, problem) = ("test.coverage".to_owned(), problem.to_owned());
                SettingError::Wrong { name, problem }.into()
            }
        })
    }

    fn take_file(&mut self, shown: &str, layer: Layer, text: &str) -> Result<(), CliError> {
        for said in file::read(shown, layer, text)? {
            let origin = Origin::File { layer, file: shown.to_owned(), line: said.line };
            let found = Found { setting: said.setting, value: said.value, origin };
            self.put(&said.name, layer, found);
        }
        Ok(())
    }

    fn take_variables(&mut self, environment: &Environment) -> Result<(), CliError> {
        let known: Vec<(String, &'static Setting)> =
            SETTINGS.iter().filter_map(|it| Some((it.variable()?, it))).collect();
        for (name, text) in environment.settings.iter().filter(|(_, text)| !text.is_empty()) {
            let Some((_, setting)) = known.iter().find(|(known, _)| known == name) else {
                misspelt(name, &known)?;
                continue;
            };
            let wrong = |problem: String| SettingError::Variable {
                name: name.clone(),
                problem,
                wanted: setting.kind.wanted(),
            };
            let text = text.to_str().ok_or_else(|| wrong("it is not UTF-8".to_owned()))?;
            let value = setting.kind.of_typed(text).map_err(wrong)?;
            let origin = Origin::Variable(name.clone());
            self.put(setting.name, Layer::Environment, Found { setting, value, origin });
        }
        Ok(())
    }
}

/// Refuses a variable that was meant to be a setting; others with the same beginning are somebody else's business.
fn misspelt(name: &str, known: &[(String, &'static Setting)]) -> Result<(), SettingError> {
    let own = |name: &str| name.strip_prefix("FLUFFY_").unwrap_or_default().to_ascii_lowercase();
    let candidates: Vec<String> = known.iter().map(|(known, _)| own(known)).collect();
    let candidates: Vec<&str> = candidates.iter().map(String::as_str).collect();
    match nearest(&own(name), &candidates) {
        Some(near) if near.len().abs_diff(own(name).len()) <= 2 => {
            let near = format!("FLUFFY_{}", near.to_ascii_uppercase());
            Err(SettingError::UnknownVariable { name: name.to_owned(), near })
        }
        Some(_) | None => Ok(()),
    }
}

/// Where the user's own settings lie; nowhere where there is no home.
pub(crate) fn user_file(environment: &Environment) -> Option<std::path::PathBuf> {
    Some(environment.config_dir()?.join("config.yaml"))
}

impl Origin {
    /// The layer that it belongs to.
    pub(crate) fn layer(&self) -> Layer {
        match self {
            Self::Default | Self::Machine(_) => Layer::Default,
            Self::File { layer, .. } => *layer,
            Self::Variable(_) => Layer::Environment,
            Self::Argument(_) => Layer::Argument,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Machine(name) => write!(f, "default ({name})"),
            Self::File { layer, file, line } => write!(f, "{} {file}:{line}", layer.name()),
            Self::Variable(name) => write!(f, "environment {name}"),
            Self::Argument(name) => write!(f, "argument {name}"),
        }
    }
}

#[cfg(test)]
mod tests;
