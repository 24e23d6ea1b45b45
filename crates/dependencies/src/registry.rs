//! The user's own settings of registries: which hosts they name, and what a sandbox is given of them.
//!
//! **Invariant.** Only the user's settings name registries. A file of the project with that power is not among what managers
//! are shown.

use std::collections::BTreeSet;

use fluffy_base::Secret;
use serde::{Deserialize, Serialize};

use crate::profile::Manager;

/// The user's settings of registries, credentials among them. They are handed to the sandbox that resolves, and to no other.
#[derive(Debug, Default)]
pub struct RegistrySettings {
    /// Files of the user's home, by the name under which the sandbox finds them.
    pub files: Vec<(RegistryFile, Secret)>,
    /// Variables that managers look at.
    pub env: Vec<(String, Secret)>,
}

/// A file of the user's with settings of registries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RegistryFile {
    /// npm's and pnpm's.
    Npmrc,
    /// Yarn's.
    Yarnrc,
    /// pip's.
    PipConf,
    /// uv's.
    UvToml,
    /// Poetry's settings.
    PoetryConfig,
    /// Poetry's credentials.
    PoetryAuth,
    /// Cargo's settings.
    CargoConfig,
    /// Cargo's credentials.
    CargoCredentials,
    /// Go's variables.
    GoEnv,
}

/// Beginnings of the variables that managers look at.
const VARIABLES: [&str; 11] = [
    "npm_config_",
    "NPM_CONFIG_",
    "YARN_",
    "PIP_",
    "UV_",
    "POETRY_",
    "CARGO_REGISTR",
    "CARGO_HTTP_",
    "CARGO_SOURCE_",
    "PNPM_CONFIG_",
    "pnpm_config_",
];

/// Whole names of such variables.
const NAMED_VARIABLES: [&str; 13] = [
    "GOPROXY",
    "GOPRIVATE",
    "GONOPROXY",
    "GONOSUMDB",
    "GONOSUMCHECK",
    "GOSUMDB",
    "GOINSECURE",
    "GOAUTH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
];

impl RegistryFile {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Npmrc,
        Self::Yarnrc,
        Self::PipConf,
        Self::UvToml,
        Self::PoetryConfig,
        Self::PoetryAuth,
        Self::CargoConfig,
        Self::CargoCredentials,
        Self::GoEnv,
    ];

    /// Where it may lie below the home directory; the first that is there counts.
    pub const fn in_home(self) -> &'static [&'static str] {
        match self {
            Self::Npmrc => &[".npmrc"],
            Self::Yarnrc => &[".yarnrc"],
            Self::PipConf => &[".config/pip/pip.conf", ".pip/pip.conf"],
            Self::UvToml => &[".config/uv/uv.toml"],
            Self::PoetryConfig => &[".config/pypoetry/config.toml"],
            Self::PoetryAuth => &[".config/pypoetry/auth.toml"],
            Self::CargoConfig => &[".cargo/config.toml", ".cargo/config"],
            Self::CargoCredentials => &[".cargo/credentials.toml", ".cargo/credentials"],
            Self::GoEnv => &[".config/go/env"],
        }
    }

    /// Where it may lie for all users of the machine.
    pub const fn in_system(self) -> Option<&'static str> {
        match self {
            Self::PipConf => Some("/etc/pip.conf"),
            Self::UvToml => Some("/etc/uv/uv.toml"),
            _users_own => None,
        }
    }

    /// What the sandbox calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Npmrc => "npmrc",
            Self::Yarnrc => "yarnrc",
            Self::PipConf => "pip.conf",
            Self::UvToml => "uv.toml",
            Self::PoetryConfig => "poetry/config.toml",
            Self::PoetryAuth => "poetry/auth.toml",
            Self::CargoConfig => "cargo/config.toml",
            Self::CargoCredentials => "cargo/credentials.toml",
            Self::GoEnv => "go.env",
        }
    }
}

impl RegistrySettings {
    /// Whether a variable of the user's is one that managers look at.
    pub fn is_variable(name: &str) -> bool {
        // What says where files go, or what runs, is the sandbox's to say.
        let ours = [
            "cache",
            "prefix",
            "store",
            "userconfig",
            "globalconfig",
            "script",
            "shell",
            "config_file",
            "python",
            "target",
            "find_links",
            "proxy",
        ];
        let lower = name.to_ascii_lowercase();
        let listed = VARIABLES.iter().any(|start| name.starts_with(start));
        (listed && !ours.iter().any(|word| lower.contains(word))) || NAMED_VARIABLES.contains(&name)
    }

    /// The variables that a text of settings refers to, as `${NAME}`.
    pub fn references(text: &str) -> BTreeSet<String> {
        let parts = text.split("${").skip(1);
        let names = parts.filter_map(|part| Some(part.split_once('}')?.0));
        let names = names.map(|name| name.trim_end_matches('?'));
        names.filter(|name| !name.is_empty() && name.len() <= 100).map(str::to_owned).collect()
    }

    fn file(&self, wanted: RegistryFile) -> &str {
        let found = self.files.iter().find(|(file, _)| *file == wanted);
        found.map_or("", |(_, text)| text.expose())
    }

    /// The user's files as the sandbox that resolves is given them: without what would lead around the sandbox's own proxy, or
    /// says where files go and what runs.
    pub fn files_for_sandbox(&self) -> Vec<(&'static str, String)> {
        const LEFT_OUT: [&str; 13] = [
            "find-links",
            "proxy",
            "https-proxy",
            "http-proxy",
            "noproxy",
            "prefix",
            "cache",
            "script-shell",
            "shell",
            "userconfig",
            "globalconfig",
            "store-dir",
            "cache-dir",
        ];
        let plain = |text: &str| -> String {
            let key = |line: &str| {
                line.split(['=', ':']).next().unwrap_or_default().trim().replace('_', "-")
            };
            let kept = text.lines().filter(|line| !LEFT_OUT.contains(&key(line).as_str()));
            kept.map(|line| format!("{line}\n")).collect()
        };
        // Some managers fail where a file that they are pointed to is not there.
        let files = RegistryFile::ALL.into_iter().map(|file| match file {
            RegistryFile::Npmrc | RegistryFile::Yarnrc | RegistryFile::PipConf => {
                (file.name(), plain(self.file(file)))
            }
            _other => (file.name(), self.file(file).to_owned()),
        });
        files.collect()
    }

    /// A text without the tokens and passwords among these settings.
    pub fn masked(&self, text: &str) -> String {
        let secrets = self.secrets();
        secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, fluffy_base::MASK))
    }

    fn variable(&self, names: &[&str]) -> Option<&str> {
        let found = self.env.iter().find(|(name, _)| names.contains(&name.as_str()));
        found.map(|(_, value)| value.expose())
    }

    /// The hosts that a manager may reach: those that the user's settings name, or else its registry's own. With a port where
    /// the address has one.
    pub fn hosts(&self, manager: Manager) -> Vec<String> {
        let (urls, replaced) = self.addresses(manager);
        let mut hosts: BTreeSet<String> =
            urls.iter().filter_map(|url| host_of(&self.expanded(url))).collect();
        if !replaced {
            hosts.extend(manager.default_registries().iter().map(|host| (*host).to_owned()));
        }
        hosts.into_iter().collect()
    }

    /// The addresses that the settings name, and whether one of them takes the place of the registry's own.
    fn addresses(&self, manager: Manager) -> (Vec<String>, bool) {
        match manager {
            Manager::Npm | Manager::Pnpm => self.node_addresses(),
            Manager::Yarn => {
                let (mut urls, mut replaced) = self.node_addresses();
                for line in self.file(RegistryFile::Yarnrc).lines() {
                    if let Some(url) = line.trim().strip_prefix("registry ") {
                        urls.push(url.trim().trim_matches('"').to_owned());
                        replaced = true;
                    }
                }
                (urls, replaced)
            }
            Manager::Pip => self.pip_addresses(),
            // Poetry itself asks PyPI; pip, which fetches for it, asks whom its own settings name.
            Manager::Poetry => (self.pip_addresses().0, false),
            Manager::Uv => {
                let set = self.variable(&["UV_INDEX_URL", "UV_DEFAULT_INDEX"]);
                let more = self.variable(&["UV_EXTRA_INDEX_URL", "UV_INDEX"]);
                let own = set.into_iter().chain(more).flat_map(str::split_whitespace);
                let own: Vec<String> = own
                    .map(|url| url.rsplit_once('=').map_or(url, |(_, url)| url).to_owned())
                    .collect();
                let (table, in_table) = uv_addresses(self.file(RegistryFile::UvToml));
                (own.into_iter().chain(table).collect(), set.is_some() || in_table)
            }
            Manager::Cargo => cargo_addresses(self.file(RegistryFile::CargoConfig)),
            Manager::Go => {
                let in_file = self.file(RegistryFile::GoEnv).lines().rev();
                let mut in_file = in_file.filter_map(|line| line.trim().strip_prefix("GOPROXY="));
                let set = self.variable(&["GOPROXY"]).or_else(|| in_file.next());
                let urls = set.unwrap_or_default().split([',', '|']);
                let urls = urls.map(str::trim).filter(|url| url.starts_with("http"));
                (urls.map(str::to_owned).collect(), set.is_some())
            }
        }
    }

    fn node_addresses(&self) -> (Vec<String>, bool) {
        let mut urls = Vec::new();
        let mut replaced = false;
        for (key, value) in npmrc_lines(self.file(RegistryFile::Npmrc)) {
            if key == "registry" || key.ends_with(":registry") {
                urls.push(value.to_owned());
                replaced |= key == "registry";
            }
        }
        if let Some(url) = self.variable(&["npm_config_registry", "NPM_CONFIG_REGISTRY"]) {
            urls.push(url.to_owned());
            replaced = true;
        }
        (urls, replaced)
    }

    fn pip_addresses(&self) -> (Vec<String>, bool) {
        let (mut urls, mut replaced, mut key) = (Vec::new(), false, String::new());
        for line in self.file(RegistryFile::PipConf).lines() {
            let is_more = line.starts_with([' ', '\t']);
            let value = match line.split_once(['=', ':']) {
                Some((name, value)) if !is_more => {
                    key = name.trim().to_ascii_lowercase().replace('_', "-");
                    value
                }
                _more => line,
            };
            if key == "index-url" || key == "extra-index-url" {
                let found = value.split_whitespace().filter(|word| word.contains("://"));
                let found: Vec<String> = found.map(str::to_owned).collect();
                replaced |= key == "index-url" && !found.is_empty();
                urls.extend(found);
            }
        }
        if let Some(url) = self.variable(&["PIP_INDEX_URL"]) {
            urls.push(url.to_owned());
            replaced = true;
        }
        let extra = self.variable(&["PIP_EXTRA_INDEX_URL"]).unwrap_or_default();
        urls.extend(extra.split_whitespace().map(str::to_owned));
        (urls, replaced)
    }

    /// A value with the variables that it refers to put in.
    fn expanded(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.env {
            text = text.replace(&format!("${{{name}}}"), value.expose());
        }
        text
    }

    /// The registries of npm's settings as a file without credentials, for a sandbox that unpacks what was fetched.
    pub fn public_npmrc(&self) -> String {
        let lines = npmrc_lines(self.file(RegistryFile::Npmrc));
        let named = lines.filter(|(key, _)| *key == "registry" || key.ends_with(":registry"));
        let named = named.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let set = self.variable(&["npm_config_registry", "NPM_CONFIG_REGISTRY"]);
        let set = set.map(|value| ("registry".to_owned(), value.to_owned()));
        let line = |(key, value): (String, String)| {
            format!("{key}={}\n", without_credentials(&self.expanded(&value)))
        };
        named.chain(set).map(line).collect()
    }

    /// The tokens and passwords among them, to be masked wherever a text repeats them.
    fn secrets(&self) -> Vec<String> {
        let mut found = BTreeSet::new();
        for (_, text) in &self.files {
            for line in text.expose().lines() {
                let value =
                    line.split_once('=').map_or("", |(_, value)| value).trim().trim_matches('"');
                let key = line.split('=').next().unwrap_or_default().to_ascii_lowercase();
                if ["token", "password", "_auth", "secret"].iter().any(|word| key.contains(word)) {
                    found.insert(self.expanded(value));
                }
                found.extend(credentials_of(line));
            }
        }
        for (name, value) in &self.env {
            let lower = name.to_ascii_lowercase();
            if ["token", "password", "auth", "secret"].iter().any(|word| lower.contains(word)) {
                found.insert(value.expose().to_owned());
            }
            found.extend(credentials_of(value.expose()));
        }
        // A short word would be masked wherever it stands.
        found.into_iter().filter(|secret| secret.len() >= 6).collect()
    }
}

/// The settings of a file in npm's form.
fn npmrc_lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    lines.filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        Some((key.trim(), value.trim().trim_matches('"')))
    })
}

fn uv_addresses(text: &str) -> (Vec<String>, bool) {
    let Ok(table) = text.parse::<toml::Table>() else { return (Vec::new(), false) };
    let one = |value: &toml::Value| value.as_str().map(str::to_owned);
    let mut urls: Vec<String> = table.get("index-url").and_then(one).into_iter().collect();
    let mut replaced = !urls.is_empty();
    let extra = table.get("extra-index-url").and_then(toml::Value::as_array);
    urls.extend(extra.into_iter().flatten().filter_map(one));
    for index in table.get("index").and_then(toml::Value::as_array).into_iter().flatten() {
        urls.extend(index.get("url").and_then(one));
        replaced |= index.get("default").and_then(toml::Value::as_bool) == Some(true);
    }
    (urls, replaced)
}

fn cargo_addresses(text: &str) -> (Vec<String>, bool) {
    let Ok(table) = text.parse::<toml::Table>() else { return (Vec::new(), false) };
    let entries = |name: &str| {
        let found = table.get(name).and_then(toml::Value::as_table);
        found.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone()))
    };
    let address = |value: &toml::Value, key: &str| {
        let url = value.get(key)?.as_str()?;
        Some(url.strip_prefix("sparse+").unwrap_or(url).to_owned())
    };
    let replaced = entries("source")
        .any(|(name, source)| name == "crates-io" && source.get("replace-with").is_some());
    let sources = entries("source").filter_map(|(_, source)| address(&source, "registry"));
    let registries = entries("registries").filter_map(|(_, registry)| address(&registry, "index"));
    (sources.chain(registries).collect(), replaced)
}

/// Host, and port where one is written, of an address of the web.
pub(crate) fn host_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.strip_prefix("sparse+").unwrap_or(scheme);
    if scheme != "https" && scheme != "http" {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_ascii_lowercase();
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
    (!host.is_empty() && host.len() <= 260 && host.chars().all(plain)).then_some(host)
}

/// User and password in addresses.
fn credentials_of(text: &str) -> Vec<String> {
    let after = text.split("://").skip(1);
    let users = after.filter_map(|rest| rest.split(['/', ' ', '"', '\'']).next()?.rsplit_once('@'));
    let parts = users.flat_map(|(user, _)| {
        let (name, password) = user.split_once(':').unwrap_or((user, ""));
        let token = if password.is_empty() { name } else { password };
        [user.to_owned(), token.to_owned()]
    });
    parts.filter(|part| !part.is_empty()).collect()
}

fn without_credentials(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find('/').unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(files: &[(RegistryFile, &str)], env: &[(&str, &str)]) -> RegistrySettings {
        let secret = |text: &str| Secret::new(text.to_owned());
        RegistrySettings {
            files: files.iter().map(|(file, text)| (*file, secret(text))).collect(),
            env: env.iter().map(|(name, text)| ((*name).to_owned(), secret(text))).collect(),
        }
    }

    #[test]
    fn without_settings_registries_own_hosts_are_reached() {
        let none = RegistrySettings::default();
        assert_eq!(none.hosts(Manager::Npm), ["registry.npmjs.org"]);
        assert_eq!(none.hosts(Manager::Pip), ["files.pythonhosted.org", "pypi.org"]);
        assert_eq!(none.hosts(Manager::Cargo), ["index.crates.io", "static.crates.io"]);
    }

    #[test]
    fn users_mirror_takes_the_registrys_place() {
        let npmrc = "registry=https://user:pass@npm.corp.example:8443/repo/\n@acme:registry=https://acme.example\n//npm.corp.example/:_authToken=abcdef123\n";
        let set = settings(&[(RegistryFile::Npmrc, npmrc)], &[]);
        assert_eq!(set.hosts(Manager::Npm), ["acme.example", "npm.corp.example:8443"]);
        assert_eq!(
            set.public_npmrc(),
            "registry=https://npm.corp.example:8443/repo/\n@acme:registry=https://acme.example\n"
        );
        assert_eq!(set.secrets(), ["abcdef123", "user:pass"]);
        let pip = "[global]\nindex-url = https://t0ken@pip.corp.example/simple\nextra-index-url =\n    https://more.example/simple\n";
        let set = settings(&[(RegistryFile::PipConf, pip)], &[]);
        assert_eq!(set.hosts(Manager::Pip), ["more.example", "pip.corp.example"]);
        let cargo = "[source.crates-io]\nreplace-with = \"corp\"\n[source.corp]\nregistry = \"sparse+https://crates.corp.example/index/\"\n[registries.own]\nindex = \"sparse+https://own.example/\"\n";
        let set = settings(&[(RegistryFile::CargoConfig, cargo)], &[]);
        assert_eq!(set.hosts(Manager::Cargo), ["crates.corp.example", "own.example"]);
        let set = settings(&[], &[("GOPROXY", "https://go.corp.example,direct")]);
        assert_eq!(set.hosts(Manager::Go), ["go.corp.example"]);
        let set = settings(
            &[(RegistryFile::Npmrc, "registry=https://${HOST}/x")],
            &[("HOST", "h.example")],
        );
        assert_eq!(set.hosts(Manager::Npm), ["h.example"]);
    }

    #[test]
    fn variables_that_say_what_runs_are_left_out() {
        for name in [
            "npm_config_registry",
            "PIP_INDEX_URL",
            "CARGO_REGISTRIES_CORP_TOKEN",
            "GOPROXY",
            "SSL_CERT_FILE",
        ] {
            assert!(RegistrySettings::is_variable(name), "{name}");
        }
        for name in [
            "npm_config_script_shell",
            "NPM_CONFIG_CACHE",
            "PIP_TARGET",
            "PATH",
            "AWS_SECRET",
            "npm_config_userconfig",
        ] {
            assert!(!RegistrySettings::is_variable(name), "{name}");
        }
        let names = RegistrySettings::references("//x/:_authToken=${NPM_TOKEN}\na=${B?}");
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["B", "NPM_TOKEN"]);
    }

    #[test]
    fn only_addresses_of_the_web_have_hosts() {
        assert_eq!(host_of("https://A.example:8443/x").as_deref(), Some("a.example:8443"));
        for url in
            ["git+ssh://git@github.com/x", "file:///etc", "a.example", "https://a b/", "https://"]
        {
            assert_eq!(host_of(url), None, "{url}");
        }
    }
}
