//! Tells that a command line installs packages: what a person would type, as a request.
//!
//! **Invariant.** What is recognised does what was typed. An option that is not known here is not guessed at: the command
//! stays a command.

use crate::profile::Manager;
use crate::request::InstallRequest;

/// Options without a value that change nothing about which packages are installed, or about how here.
const QUIET: [&str; 28] = [
    "-q",
    "--quiet",
    "--silent",
    "-y",
    "--yes",
    "--no-audit",
    "--no-fund",
    "--no-progress",
    "--ignore-scripts",
    "--save",
    "-S",
    "--save-prod",
    "-P",
    "--prefer-offline",
    "--no-cache-dir",
    "--disable-pip-version-check",
    "--no-input",
    "-U",
    "--upgrade",
    "--no-interaction",
    "-n",
    "--frozen-lockfile",
    "--locked",
    "--frozen",
    "--loglevel=error",
    "--no-root",
    "--prefer-binary",
    "-u",
];

/// Options for development.
const DEVELOPMENT: [&str; 4] = ["-D", "--save-dev", "--dev", "-d"];

/// What a command asks for.
struct Command<'a> {
    manager: Manager,
    verb: &'a str,
    words: &'a [String],
}

/// The request that a command line is, if it is one and nothing more.
pub fn recognise(program: &str, args: &[String]) -> Option<InstallRequest> {
    let name = program.rsplit('/').next().unwrap_or(program);
    if is_virtual_environment(name, args) {
        return plain(Manager::Pip);
    }
    let Command { manager, verb, words } = command(name, args)?;
    let (packages, dev) = packages(manager, verb, words)?;
    let (add, remove): (&[String], &[String]) = match verb {
        "remove" => (&[], &packages),
        _adds => (&packages, &[]),
    };
    if verb == "remove" && packages.is_empty() {
        return None;
    }
    InstallRequest::new(manager, add, remove, dev).ok()
}

fn plain(manager: Manager) -> Option<InstallRequest> {
    InstallRequest::new(manager, &[], &[], false).ok()
}

/// `python3 -m venv .venv`, `virtualenv venv`, `uv venv`.
fn is_virtual_environment(name: &str, args: &[String]) -> bool {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let places = [".venv", "./.venv", "venv", "./venv"];
    match (name, words.as_slice()) {
        (python, ["-m", "venv" | "virtualenv", place]) if is_python(python) => {
            places.contains(place)
        }
        ("virtualenv", [place]) => places.contains(place),
        ("uv", ["venv"]) => true,
        ("uv", ["venv", place]) => places.contains(place),
        _other => false,
    }
}

fn is_python(name: &str) -> bool {
    name.strip_prefix("python")
        .is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// Manager and verb of a command; the verb is one of `add`, `install` and `remove`.
fn command<'a>(name: &str, args: &'a [String]) -> Option<Command<'a>> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let rest = |count: usize| args.get(count..).unwrap_or_default();
    let found = |manager, verb, count| Some(Command { manager, verb, words: rest(count) });
    match (name, words.as_slice()) {
        ("npm", ["init" | "create", "-y" | "--yes"]) => found(Manager::Npm, "install", 2),
        ("npm", ["install" | "i" | "add" | "in", ..]) => found(Manager::Npm, "add", 1),
        ("npm", ["ci" | "clean-install"]) => found(Manager::Npm, "install", 1),
        ("npm", ["uninstall" | "remove" | "rm" | "un" | "r", ..]) => {
            found(Manager::Npm, "remove", 1)
        }
        ("pnpm", ["init"]) => found(Manager::Pnpm, "install", 1),
        ("pnpm", ["install" | "i" | "add", ..]) => found(Manager::Pnpm, "add", 1),
        ("pnpm", ["remove" | "rm" | "uninstall" | "un", ..]) => found(Manager::Pnpm, "remove", 1),
        ("yarn", []) => found(Manager::Yarn, "install", 0),
        ("yarn", ["install", ..]) => found(Manager::Yarn, "install", 1),
        ("yarn", ["init", "-y" | "--yes"]) => found(Manager::Yarn, "install", 2),
        ("yarn", ["add", ..]) => found(Manager::Yarn, "add", 1),
        ("yarn", ["remove", ..]) => found(Manager::Yarn, "remove", 1),
        ("pip" | "pip3", ["install", ..]) => found(Manager::Pip, "add", 1),
        ("pip" | "pip3", ["uninstall", ..]) => found(Manager::Pip, "remove", 1),
        (python, ["-m", "pip", "install", ..]) if is_python(python) => {
            found(Manager::Pip, "add", 3)
        }
        (python, ["-m", "pip", "uninstall", ..]) if is_python(python) => {
            found(Manager::Pip, "remove", 3)
        }
        ("uv", ["add", ..]) => found(Manager::Uv, "add", 1),
        ("uv", ["remove", ..]) => found(Manager::Uv, "remove", 1),
        ("uv", ["sync" | "lock", ..]) => found(Manager::Uv, "install", 1),
        ("uv", ["pip", "install", ..]) => found(Manager::Pip, "add", 2),
        ("poetry", ["add", ..]) => found(Manager::Poetry, "add", 1),
        ("poetry", ["remove", ..]) => found(Manager::Poetry, "remove", 1),
        ("poetry", ["install" | "sync" | "lock", ..]) => found(Manager::Poetry, "install", 1),
        ("cargo", ["add", ..]) => found(Manager::Cargo, "add", 1),
        ("cargo", ["remove" | "rm", ..]) => found(Manager::Cargo, "remove", 1),
        ("cargo", ["fetch" | "generate-lockfile", ..]) => found(Manager::Cargo, "install", 1),
        ("go", ["get", ..]) => found(Manager::Go, "add", 1),
        ("go", ["mod", "download", ..]) => found(Manager::Go, "install", 2),
        _other => None,
    }
}

/// The packages among the words of a command, and whether they are for development.
fn packages(manager: Manager, verb: &str, words: &[String]) -> Option<(Vec<String>, bool)> {
    let (mut packages, mut features, mut dev) = (Vec::new(), Vec::new(), false);
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            quiet if QUIET.contains(&quiet) => {}
            development if DEVELOPMENT.contains(&development) => dev = true,
            "--group" | "-G" if manager == Manager::Poetry => match words.next()? {
                "dev" => dev = true,
                _other => return None,
            },
            "-r" | "--requirement" if manager == Manager::Pip => {
                // The files that are read anyway.
                let file = words.next()?;
                if !["requirements.txt", "requirements-dev.txt"]
                    .contains(&file.trim_start_matches("./"))
                {
                    return None;
                }
            }
            "--features" | "-F" if manager == Manager::Cargo => {
                features.push(words.next()?.to_owned())
            }
            "./..." | "." if manager == Manager::Go => {}
            option if option.starts_with('-') => return None,
            package => packages.push(package.to_owned()),
        }
    }
    if verb == "install" && !packages.is_empty() {
        return None;
    }
    // pip and its like are what installs: nothing is to be done about them.
    if manager == Manager::Pip {
        packages.retain(|package| !["pip", "setuptools", "wheel"].contains(&package.as_str()));
    }
    if let (false, [package]) = (features.is_empty(), packages.as_mut_slice()) {
        let (name, version) = match package.split_once('@') {
            Some((name, version)) => (name.to_owned(), format!("@{version}")),
            None => (package.clone(), String::new()),
        };
        *package = format!("{name}[{}]{version}", features.join(",").replace(' ', ","));
    } else if !features.is_empty() {
        return None;
    }
    Some((packages, dev))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<String> {
        let mut words = line.split(' ').map(str::to_owned);
        let program = words.next().unwrap();
        let request = recognise(&program, &words.collect::<Vec<_>>())?;
        let add: Vec<String> = request.add.iter().map(|spec| spec.word(request.manager)).collect();
        let dev = if request.dev { " dev" } else { "" };
        Some(format!("{} +{} -{}{dev}", request.manager, add.join(","), request.remove.join(",")))
    }

    #[test]
    fn what_people_type_is_recognised() {
        for (line, expected) in [
            ("npm install", "npm + -"),
            ("npm ci", "npm + -"),
            ("npm init -y", "npm + -"),
            ("npm i express cors@2", "npm +express,cors@2 -"),
            ("npm install --save-dev vitest", "npm +vitest - dev"),
            ("npm install -D typescript --no-audit", "npm +typescript - dev"),
            ("npm uninstall left-pad", "npm + -left-pad"),
            ("pnpm add zod", "pnpm +zod -"),
            ("yarn", "yarn + -"),
            ("yarn add --dev jest", "yarn +jest - dev"),
            ("pip install flask", "pip +flask -"),
            (".venv/bin/pip install -q flask==3.0.0", "pip +flask==3.0.0 -"),
            ("python3 -m pip install -r requirements.txt", "pip + -"),
            ("python -m pip install --upgrade pip", "pip + -"),
            ("python3 -m venv .venv", "pip + -"),
            ("uv add httpx", "uv +httpx -"),
            ("uv sync", "uv + -"),
            ("poetry add --group dev pytest", "poetry +pytest - dev"),
            ("cargo add serde --features derive", "cargo +serde -"),
            ("cargo fetch", "cargo + -"),
            ("go get github.com/gorilla/mux@v1.8.1", "go +github.com/gorilla/mux@v1.8.1 -"),
            ("go mod download", "go + -"),
        ] {
            assert_eq!(read(line).as_deref(), Some(expected), "{line}");
        }
        let request =
            recognise("cargo", &["add", "serde@1", "-F", "derive"].map(str::to_owned)).unwrap();
        assert_eq!(request.add[0].extras, ["derive"]);
    }

    #[test]
    fn what_is_more_than_an_installation_stays_a_command() {
        for line in [
            "npm run build",
            "npm test",
            "npm install -g typescript",
            "npm install ./local",
            "npm install user/repo",
            "npm install --registry=https://x",
            "npm publish",
            "npm uninstall",
            "pip install -e .",
            "pip install .",
            "pip install -r other.txt",
            "pip install --index-url https://x flask",
            "pip install git+https://x",
            "python3 -m venv /tmp/x",
            "python3 -m venv --system-site-packages .venv",
            "cargo build",
            "cargo add --git https://x y",
            "go build ./...",
            "go get -u=patch x",
            "uv pip install --target /x y",
            "make install",
            "yarn run x",
            "poetry add --group docs mkdocs",
            "npm ci --prefix sub",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
