//! The scripts that managers are run by, in three sandboxes with three sets of rights.
//!
//! *Resolve* has the network to registries and sees manifests and lock files alone; it runs no script of a package. It leaves
//! the changed files, and archives in [`WORK`]. *Unpack* has no network; the manager itself holds every archive against the
//! lock file's hash. *Rebuild* runs the install scripts of packages that were allowed to, without network.
//!
//! **Invariant.** Every word that is not ours is quoted for the shell.

use fluffy_base::Secret;

use crate::package::ResolvedPackage;
use crate::profile::Manager;
use crate::registry::RegistrySettings;
use crate::request::{InstallRequest, PackageSpec};

/// The folder, beside the manifest, in which resolving leaves archives; it is in no layer and no project.
pub const WORK: &str = ".fluffy-deps";

/// What pip tells of its choice, in [`WORK`].
pub const REPORT: &str = "report.json";

/// What pip is to install, with hashes, in [`WORK`].
pub const LOCKED: &str = "locked.txt";

/// Finds out what registries tell of packages: ages, licences.
const NODE_FACTS: &str = include_str!("scripts/facts.cjs");
const NODE_RESOLVED: &str = include_str!("scripts/resolved.cjs");
const PYTHON_FACTS: &str = include_str!("scripts/facts.py");
const PYTHON_REQUIREMENTS: &str = include_str!("scripts/requirements.py");
const PYTHON_LOCKED: &str = include_str!("scripts/locked.py");
const POETRY_LOCKED: &str = include_str!("scripts/poetry.py");
const CARGO_FACTS: &str = include_str!("scripts/facts-cargo.py");

/// A script for a sandbox.
#[derive(Debug)]
pub struct Script {
    /// For `sh -c`.
    pub text: String,
    /// Variables beside those that every sandbox sets.
    pub env: Vec<(String, Secret)>,
    /// Files that are put into [`WORK`] before.
    pub files: Vec<(&'static str, String)>,
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Words for the shell, each quoted.
pub(crate) fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// What every script begins with.
fn head(manager: Manager) -> String {
    let of_manager = match manager {
        // The interpreter itself: what stands in for it may do more than run it.
        Manager::Pip | Manager::Poetry => {
            "python=\"$(python3 -c 'import sys; print(sys.executable)')\"\n"
        }
        // Cargo demands a target; a new project has none yet.
        Manager::Cargo => {
            "target() { [ ! -f Cargo.toml ] || [ -e src/lib.rs ] || [ -e src/main.rs ] || { mkdir -p src; : > src/lib.rs; }; }\ntarget\n"
        }
        _others => "",
    };
    format!("set -eu\nwork=\"$PWD/{WORK}\"\nmkdir -p \"$work\"\n{of_manager}")
}

/// Prints the versions of a manager and of what its packages run on.
pub fn version_script(manager: Manager) -> Script {
    let text = match manager {
        Manager::Npm => "npm --version; node --version",
        Manager::Pnpm => "pnpm --version; node --version",
        Manager::Yarn => "yarn --version; node --version",
        Manager::Pip => "python3 -m pip --version; python3 -VV",
        Manager::Uv => "uv --version; python3 -VV",
        Manager::Poetry => "poetry --version; python3 -VV",
        Manager::Cargo => "cargo --version",
        Manager::Go => "go version",
    };
    Script {
        text: format!("set -eu\n{text}\n"),
        env: fixed_environment(manager),
        files: Vec::new(),
    }
}

/// Variables that make a manager quiet and alike on every machine.
fn fixed_environment(manager: Manager) -> Vec<(String, Secret)> {
    let set: &[(&str, &str)] = match manager.ecosystem() {
        "npm" => &[
            ("npm_config_audit", "false"),
            ("npm_config_fund", "false"),
            ("npm_config_ignore_scripts", "true"),
            ("npm_config_update_notifier", "false"),
            ("YARN_IGNORE_SCRIPTS", "true"),
            ("COREPACK_ENABLE_DOWNLOAD_PROMPT", "0"),
        ],
        "pypi" => &[
            ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
            ("PIP_NO_INPUT", "1"),
            // What is built from source runs its own code to do so.
            ("PIP_ONLY_BINARY", ":all:"),
            ("POETRY_INSTALLER_ONLY_BINARY", ":all:"),
            ("UV_NO_BUILD", "1"),
            ("PIP_REQUIRE_VIRTUALENV", "0"),
            ("UV_NO_PROGRESS", "1"),
            ("POETRY_NO_INTERACTION", "1"),
            ("POETRY_VIRTUALENVS_IN_PROJECT", "true"),
        ],
        "cargo" => &[("CARGO_TERM_COLOR", "never")],
        _go => &[("GOTOOLCHAIN", "local"), ("GOFLAGS", "-mod=mod")],
    };
    set.iter().map(|(name, value)| ((*name).to_owned(), Secret::new((*value).to_owned()))).collect()
}

/// Resolves a request: changes manifest and lock file, and fetches archives. `settings` is where the sandbox finds the user's
/// files; `ages` says whether registries are asked for the age of every package, and not only of those that are asked for.
pub fn resolve_script(
    request: &InstallRequest,
    settings: &RegistrySettings,
    settings_at: &str,
    ages: bool,
) -> Script {
    let manager = request.manager;
    let mut env = fixed_environment(manager);
    let own = |name: &str| env.iter().any(|(known, _)| known == name);
    let users = settings.env.iter().filter(|(name, _)| !own(name));
    let users: Vec<_> =
        users.map(|(name, value)| (name.clone(), Secret::new(value.expose().to_owned()))).collect();
    env.extend(users);
    let mut set = |name: &str, value: String| env.push((name.to_owned(), Secret::new(value)));
    set("NPM_CONFIG_USERCONFIG", format!("{settings_at}/npmrc"));
    set("PIP_CONFIG_FILE", format!("{settings_at}/pip.conf"));
    set("UV_CONFIG_FILE", format!("{settings_at}/uv.toml"));
    set("POETRY_CONFIG_DIR", format!("{settings_at}/poetry"));
    set("GOENV", format!("{settings_at}/go.env"));
    let named: Vec<&str> = request.add.iter().map(|spec| spec.name.as_str()).collect();
    let scope = if ages { "--all".to_owned() } else { words(named) };
    let body = match manager {
        Manager::Npm => resolve_npm(request),
        Manager::Pnpm => resolve_pnpm(request),
        Manager::Yarn => resolve_yarn(request),
        Manager::Pip => resolve_pip(request),
        Manager::Uv => resolve_uv(request),
        Manager::Poetry => resolve_poetry(request),
        Manager::Cargo => resolve_cargo(request, settings_at),
        Manager::Go => resolve_go(request),
    };
    let (facts, file) = match manager.ecosystem() {
        "npm" => (format!("node \"$work/facts.cjs\" {scope} > \"$work/facts.json\" 2>/dev/null || true\n"), ("facts.cjs", NODE_FACTS)),
        "pypi" if manager == Manager::Pip => (
            format!("python3 \"$work/facts.py\" {scope} > \"$work/facts.json\" 2>/dev/null || true\n"),
            ("facts.py", PYTHON_FACTS),
        ),
        "cargo" => (
            "cargo metadata --format-version 1 --locked --offline > \"$work/metadata.json\"\n\
             python3 \"$work/facts.py\" \"$work/metadata.json\" > \"$work/facts.json\" 2>/dev/null || true\n"
                .to_owned(),
            ("facts.py", CARGO_FACTS),
        ),
        _none => (String::new(), ("facts.py", "")),
    };
    let mut files = vec![(file.0, file.1.to_owned())];
    let helpers: &[(&str, &str)] = match manager {
        Manager::Pip => &[("requirements.py", PYTHON_REQUIREMENTS), ("locked.py", PYTHON_LOCKED)],
        Manager::Poetry => &[("poetry.py", POETRY_LOCKED)],
        _none => &[],
    };
    files.extend(helpers.iter().map(|(name, text)| (*name, (*text).to_owned())));
    Script { text: head(manager) + &body + &facts, env, files }
}

fn resolve_npm(request: &InstallRequest) -> String {
    let mut text =
        "export npm_config_cache=\"$work/npm\"\n[ -f package.json ] || npm init -y >/dev/null\n"
            .to_owned();
    if !request.remove.is_empty() {
        text += &format!("npm uninstall {}\n", words(request.remove.iter().map(String::as_str)));
    }
    if !request.add.is_empty() {
        let dev = if request.dev { "--save-dev " } else { "" };
        text += &format!("npm install {dev}{}\n", spec_words(request));
    } else if request.remove.is_empty() {
        text += "npm install\n";
    }
    text + "cp package-lock.json \"$work/lock\"\n"
}

fn spec_words(request: &InstallRequest) -> String {
    let specs: Vec<String> = request.add.iter().map(|spec| spec.word(request.manager)).collect();
    words(specs.iter().map(String::as_str))
}

fn resolve_pnpm(request: &InstallRequest) -> String {
    let store = "--store-dir \"$work/pnpm\" --ignore-scripts";
    let mut text = "[ -f package.json ] || npm init -y >/dev/null\n".to_owned();
    if !request.remove.is_empty() {
        text += &format!(
            "pnpm remove --store-dir \"$work/pnpm\" {}\n",
            words(request.remove.iter().map(String::as_str))
        );
    }
    if !request.add.is_empty() {
        let dev = if request.dev { "--save-dev" } else { "" };
        text += &format!("pnpm add {store} {dev} {}\n", spec_words(request));
    } else if request.remove.is_empty() {
        text += &format!("pnpm install {store} --no-frozen-lockfile\n");
    }
    text
}

fn resolve_yarn(request: &InstallRequest) -> String {
    let options = "--ignore-scripts --non-interactive --no-progress --cache-folder \"$work/yarn\"";
    let mut text = "[ -f package.json ] || npm init -y >/dev/null\n\
                    yarn() { command yarn --no-default-rc --use-yarnrc \"${NPM_CONFIG_USERCONFIG%/*}/yarnrc\" \"$@\"; }\n"
        .to_owned();
    if !request.remove.is_empty() {
        text += &format!(
            "yarn remove {options} {}\n",
            words(request.remove.iter().map(String::as_str))
        );
    }
    if !request.add.is_empty() {
        let dev = if request.dev { "--dev" } else { "" };
        text += &format!("yarn add {options} {dev} {}\n", spec_words(request));
    } else if request.remove.is_empty() {
        text += &format!("yarn install {options}\n");
    }
    text
}

/// The manifests were changed before: pip changes none.
fn resolve_pip(_: &InstallRequest) -> String {
    format!(
        "export PIP_CACHE_DIR=\"$work/pip\"\n\
         set --\n\
         for file in requirements.txt requirements-dev.txt; do [ ! -f \"$file\" ] || set -- \"$@\" -r \"$file\"; done\n\
         if [ $# = 0 ] && [ -f pyproject.toml ]; then\n  python3 \"$work/requirements.py\" > \"$work/wanted.txt\"\n  set -- -r \"$work/wanted.txt\"\nfi\n\
         if ! grep -qsE '^[[:space:]]*[^#[:space:]]' \"${{2:-/dev/null}}\" \"${{4:-/dev/null}}\"; then\n  printf '{{\"install\":[]}}' > \"$work/{REPORT}\"\n  : > \"$work/{LOCKED}\"\n  mkdir -p \"$work/wheels\"\n  exit 0\nfi\n\
         \"$python\" -m pip install --quiet --dry-run --ignore-installed --report \"$work/{REPORT}\" \"$@\"\n\
         python3 \"$work/locked.py\" \"$work/{REPORT}\" > \"$work/{LOCKED}\"\n\
         \"$python\" -m pip download --quiet --no-deps --require-hashes --dest \"$work/wheels\" -r \"$work/{LOCKED}\"\n"
    )
}

fn resolve_uv(request: &InstallRequest) -> String {
    let mut text = "export UV_CACHE_DIR=\"$work/uv\" UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=/tmp/environment\n\
                    [ -f pyproject.toml ] || uv init --bare\n"
        .to_owned();
    let dev = if request.dev { "--dev" } else { "" };
    if !request.remove.is_empty() {
        text += &format!(
            "uv remove --no-sync {dev} {}\n",
            words(request.remove.iter().map(String::as_str))
        );
    }
    if !request.add.is_empty() {
        text += &format!("uv add --no-sync {dev} {}\n", spec_words(request));
    }
    text + "uv lock\nuv sync --frozen --no-install-project --no-build\n"
}

fn resolve_poetry(request: &InstallRequest) -> String {
    let mut text = "export POETRY_CACHE_DIR=\"$work/poetry\" PIP_CACHE_DIR=\"$work/pip\"\n\
                    [ -f pyproject.toml ] || poetry init --no-interaction\n"
        .to_owned();
    let group = if request.dev { "--group dev" } else { "" };
    if !request.remove.is_empty() {
        text += &format!(
            "poetry remove --lock {group} {}\n",
            words(request.remove.iter().map(String::as_str))
        );
    }
    if !request.add.is_empty() {
        let specs = request.add.iter().map(|spec| match &spec.version {
            Some(version) => format!("{}@{version}", spec.name),
            None => spec.name.clone(),
        });
        let specs: Vec<String> = specs.collect();
        text += &format!("poetry add --lock {group} {}\n", words(specs.iter().map(String::as_str)));
    }
    text + &format!(
        "poetry lock\npython3 \"$work/poetry.py\" poetry.lock > \"$work/{LOCKED}\"\n\
         \"$python\" -m pip download --quiet --no-deps --require-hashes --only-binary=:all: --dest \"$work/wheels\" -r \"$work/{LOCKED}\"\n"
    )
}

fn resolve_cargo(request: &InstallRequest, settings_at: &str) -> String {
    let mut text = format!(
        "export CARGO_HOME=\"$work/home\"\nmkdir -p \"$CARGO_HOME\"\n\
         for file in config.toml credentials.toml; do [ ! -f {settings_at}/cargo/$file ] || cp {settings_at}/cargo/$file \"$CARGO_HOME/\"; done\n\
         unset CARGO_NET_OFFLINE\n[ -f Cargo.toml ] || cargo init --quiet --vcs none\n"
    );
    if !request.remove.is_empty() {
        text +=
            &format!("cargo remove --quiet {}\n", words(request.remove.iter().map(String::as_str)));
    }
    let dev = if request.dev { "--dev " } else { "" };
    for spec in &request.add {
        let PackageSpec { extras, .. } = spec;
        let features = extras.iter().map(|extra| format!("--features {} ", quoted(extra)));
        let features: String = features.collect();
        text +=
            &format!("cargo add --quiet {dev}{features}{}\n", quoted(&spec.word(request.manager)));
    }
    text + "[ -f Cargo.lock ] || cargo generate-lockfile --quiet\ncargo fetch --quiet\n\
            rm -f \"$CARGO_HOME/credentials.toml\"\n"
}

fn resolve_go(request: &InstallRequest) -> String {
    let mut text = "export GOMODCACHE=\"$work/go\" GOCACHE=/tmp/go-build\nunset GOPROXY || true\n\
                    [ -f go.mod ] || go mod init \"$(basename \"$PWD\")\"\n"
        .to_owned();
    for name in &request.remove {
        text += &format!("go get {}\n", quoted(&format!("{name}@none")));
    }
    if !request.add.is_empty() {
        text += &format!("go get {}\n", spec_words(request));
    }
    text + "go mod download all\n"
}

/// Unpacks what was resolved. `settings` gives the registries without credentials, by whose names archives are found.
pub fn unpack_script(manager: Manager, settings: &RegistrySettings) -> Script {
    let mut env = fixed_environment(manager);
    let mut files = Vec::new();
    let body = match manager {
        Manager::Npm => {
            files.push(("npmrc", settings.public_npmrc()));
            files.push(("resolved.cjs", NODE_RESOLVED.to_owned()));
            "export npm_config_cache=\"$work/npm\" NPM_CONFIG_USERCONFIG=\"$work/npmrc\"\n\
             node \"$work/resolved.cjs\"\nnpm ci --offline --ignore-scripts\nmkdir -p node_modules\n"
                .to_owned()
        }
        Manager::Pnpm => "pnpm install --offline --frozen-lockfile --ignore-scripts --store-dir \"$work/pnpm\" \
                          --config.package-import-method=copy\nmkdir -p node_modules\n"
            .to_owned(),
        Manager::Yarn => "yarn install --offline --frozen-lockfile --ignore-scripts --non-interactive --no-progress \
                          --no-default-rc --cache-folder \"$work/yarn\"\nmkdir -p node_modules\n"
            .to_owned(),
        Manager::Pip | Manager::Poetry => format!(
            "\"$python\" -m venv .venv\n[ ! -s \"$work/{LOCKED}\" ] || .venv/bin/python -m pip install --quiet --no-index \
             --no-deps --only-binary=:all: --require-hashes --find-links \"$work/wheels\" -r \"$work/{LOCKED}\"\n"
        ),
        Manager::Uv => "export UV_CACHE_DIR=\"$work/uv\" UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never\n\
                        uv sync --offline --frozen --no-install-project --no-build\n"
            .to_owned(),
        Manager::Cargo => "export CARGO_HOME=\"$work/home\"\nmkdir -p .fluffy-env/cargo\n\
                           cargo vendor --locked --offline --versioned-dirs \"$PWD/.fluffy-env/cargo/vendor\" \
                           > .fluffy-env/cargo/config.toml\n\
                           sed -i 's/registry-auth.*//' .fluffy-env/cargo/config.toml\n"
            .to_owned(),
        Manager::Go => {
            env.push(("GOFLAGS".to_owned(), Secret::new("-mod=mod -modcacherw".to_owned())));
            "export GOMODCACHE=\"$PWD/.fluffy-env/go\" GOCACHE=/tmp/go-build GONOSUMDB='*' GONOSUMCHECK=1 \
             GOPROXY=\"file://$work/go/cache/download\"\nmkdir -p .fluffy-env/go\ngo mod download all\n"
                .to_owned()
        }
    };
    Script { text: head(manager) + &body, env, files }
}

/// Runs the install scripts of these packages on what was unpacked; `None` where a manager has none that run then.
pub fn rebuild_script(manager: Manager, packages: &[&ResolvedPackage]) -> Option<Script> {
    if packages.is_empty() {
        return None;
    }
    let names = words(packages.iter().map(|package| package.name.as_str()));
    let text = match manager {
        Manager::Npm | Manager::Yarn => {
            format!("npm rebuild --offline --ignore-scripts=false {names}\n")
        }
        Manager::Pnpm => format!("pnpm rebuild --config.ignore-scripts=false {names}\n"),
        Manager::Pip | Manager::Uv | Manager::Poetry | Manager::Cargo | Manager::Go => return None,
    };
    let env = fixed_environment(manager)
        .into_iter()
        .filter(|(name, _)| !name.to_ascii_lowercase().contains("ignore_scripts"));
    Some(Script { text: format!("set -eu\n{text}"), env: env.collect(), files: Vec::new() })
}

/// The requirements that a report of pip's names, each with its hash: what is unpacked, and nothing else.
pub fn locked_requirements(packages: &[ResolvedPackage]) -> Option<String> {
    let line = |package: &ResolvedPackage| {
        let hash = package.integrity.as_deref()?;
        Some(format!("{}=={} --hash={hash}\n", package.name, package.version))
    };
    packages.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(manager: Manager, add: &[&str], remove: &[&str], dev: bool) -> InstallRequest {
        let texts =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        InstallRequest::new(manager, &texts(add), &texts(remove), dev).unwrap()
    }

    fn resolve(request: &InstallRequest) -> String {
        resolve_script(request, &RegistrySettings::default(), "/settings", false).text
    }

    #[test]
    fn words_of_a_request_are_quoted() {
        assert_eq!(quoted("it's"), "'it'\\''s'");
        let text = resolve(&request(Manager::Npm, &["express@^5", "@s/x"], &["old"], true));
        assert!(
            text.contains("npm uninstall 'old'\nnpm install --save-dev 'express@^5' '@s/x'\n"),
            "{text}"
        );
        let text = resolve(&request(Manager::Cargo, &["tokio[full,macros]@1"], &[], false));
        assert!(
            text.contains("cargo add --quiet --features 'full' --features 'macros' 'tokio@1'\n"),
            "{text}"
        );
    }

    #[test]
    fn scripts_of_packages_run_nowhere_but_in_the_rebuild() {
        for manager in Manager::ALL.into_iter().filter(|it| it.ecosystem() == "npm") {
            let request = request(manager, &["x"], &[], false);
            let script = resolve_script(&request, &RegistrySettings::default(), "/s", false);
            let ignored = |script: &Script| {
                script.text.replace("--ignore-scripts=false", "").contains("--ignore-scripts")
                    || script.env.iter().any(|(name, value)| {
                        name == "npm_config_ignore_scripts" && value.expose() == "true"
                    })
            };
            assert!(ignored(&script), "{manager}");
            assert!(ignored(&unpack_script(manager, &RegistrySettings::default())), "{manager}");
            let package = ResolvedPackage::new("x", "1", crate::PackageOrigin::Registry);
            let rebuild = rebuild_script(manager, &[&package]).unwrap();
            assert!(!ignored(&rebuild), "{manager}");
            assert!(rebuild_script(manager, &[]).is_none());
        }
    }

    #[test]
    fn no_credentials_reach_the_unpacking_sandbox() {
        let settings = RegistrySettings {
            files: vec![(
                crate::RegistryFile::Npmrc,
                Secret::new(
                    "registry=https://u:pw123456@h.example/\n//h.example/:_authToken=tok123456\n"
                        .to_owned(),
                ),
            )],
            env: vec![("NPM_CONFIG__AUTH".to_owned(), Secret::new("env123456".to_owned()))],
        };
        let script = unpack_script(Manager::Npm, &settings);
        let npmrc = script.files.iter().filter(|(name, _)| *name == "npmrc");
        let files: String = npmrc.map(|(_, text)| text.as_str()).collect();
        let env: String = script.env.iter().map(|(_, value)| value.expose()).collect();
        for secret in ["pw123456", "tok123456", "env123456"] {
            assert!(
                !files.contains(secret) && !env.contains(secret) && !script.text.contains(secret)
            );
        }
        assert_eq!(files, "registry=https://h.example/\n");
    }

    #[test]
    fn a_package_without_a_hash_is_not_locked() {
        let mut package = ResolvedPackage::new("a", "1", crate::PackageOrigin::Registry);
        assert_eq!(locked_requirements(&[package.clone()]), None);
        package.integrity = Some("sha256:ab".to_owned());
        assert_eq!(locked_requirements(&[package]).as_deref(), Some("a==1 --hash=sha256:ab\n"));
    }
}
