//! Which files of a project no builder is shown: secrets, what version control and tools keep for themselves, and what
//! other programs would obey.
//!
//! **Invariant.** Names are compared as careless disks read them: `.ENV` and `.env.` are `.env`.

use fluffy_base::ProjectPath;

/// Why a file or a directory is not copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Unwanted {
    /// It belongs to a version control system.
    #[error("it belongs to version control")]
    VersionControl,
    /// It is made by tools and can be made again.
    #[error("tools make it, and can make it again")]
    Made,
    /// It is a database.
    #[error("it is a database")]
    Database,
    /// It is called as secrets are.
    #[error("it is called as secrets are")]
    Secret,
    /// A builder would obey it, and the packet alone is to be obeyed.
    #[error("it would tell the builder what to do")]
    Instructions,
    /// The project's rules hide it from models.
    #[error("the policy hides it from models")]
    Hidden,
    /// It is a link.
    #[error("it is a symbolic link")]
    Link,
    /// It has more names than one, and the others may lie anywhere.
    #[error("it has more than one name (hard links)")]
    HardLink,
    /// It is a pipe, a socket or a device.
    #[error("it is neither a file nor a directory")]
    Special,
    /// It is too large.
    #[error("it is larger than one file may be")]
    Large,
    /// It cannot be read.
    #[error("it cannot be read")]
    Unreadable,
}

const VERSION_CONTROL: [&str; 9] =
    [".git", ".hg", ".svn", ".bzr", ".jj", ".pijul", ".sl", "_darcs", "cvs"];

const MADE: [&str; 25] = [
    ".cache",
    ".eggs",
    ".gradle",
    ".hypothesis",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".parcel-cache",
    ".pnpm-store",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".svelte-kit",
    ".tox",
    ".turbo",
    ".venv",
    "__pycache__",
    "bower_components",
    "node_modules",
    "site-packages",
    "target",
    "venv",
    "virtualenv",
];

/// What claude, codex and their like read without being asked: hooks and servers that it names would run with the
/// builder's key in reach.
const INSTRUCTIONS: [&str; 8] = [
    ".aider.conf.yml",
    ".claude",
    ".claude.json",
    ".codex",
    ".cursor",
    ".gemini",
    ".mcp.json",
    ".opencode",
];

/// Files and directories with these names are secrets.
const SECRETS: [&str; 37] = [
    ".authinfo",
    ".aws",
    ".azure",
    ".bash_history",
    ".boto",
    ".docker",
    ".dockercfg",
    ".gcloud",
    ".git-credentials",
    ".gnupg",
    ".htpasswd",
    ".kube",
    ".my.cnf",
    ".netrc",
    ".node_repl_history",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".python_history",
    ".s3cfg",
    ".secrets",
    ".ssh",
    ".sops.yaml",
    ".terraform",
    ".terraformrc",
    ".vault-token",
    ".yarnrc",
    ".yarnrc.yml",
    ".zsh_history",
    "_netrc",
    "kubeconfig",
    "pip.conf",
    "secret",
    "secrets",
    "terraform.tfstate",
    "wallet.dat",
];

const SECRET_BEGINNINGS: [&str; 12] = [
    ".env",
    "credential",
    "htpasswd",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
    "secret.",
    "secrets.",
    "service-account",
    "service_account",
    "terraform.tfstate",
];

const SECRET_ENDINGS: [&str; 23] = [
    ".age",
    ".asc",
    ".env",
    ".gpg",
    ".jks",
    ".kdb",
    ".kdbx",
    ".key",
    ".keystore",
    ".ovpn",
    ".p12",
    ".p8",
    ".pem",
    ".pfx",
    ".pgp",
    ".pkcs12",
    ".ppk",
    ".secret",
    ".secrets",
    ".tfvars",
    ".token",
    "credentials.json",
    "secrets.json",
];

const DATABASE_ENDINGS: [&str; 9] =
    [".db", ".db3", ".duckdb", ".mdb", ".rdb", ".sdb", ".sqlite", ".sqlite2", ".sqlite3"];

/// Files beside a database that hold its pages.
const BESIDE_DATABASES: [&str; 3] = ["-journal", "-shm", "-wal"];

/// Why a file or directory with this path is not copied, if its name says so.
pub(super) fn by_name(path: &ProjectPath) -> Option<Unwanted> {
    let folded = path.folded();
    let name = folded.rsplit('/').next().unwrap_or_default();
    let begins = |with: &[&str]| with.iter().any(|beginning| name.starts_with(beginning));
    let ends = |name: &str, with: &[&str]| with.iter().any(|ending| name.ends_with(ending));
    if VERSION_CONTROL.contains(&name) {
        return Some(Unwanted::VersionControl);
    }
    if SECRETS.contains(&name) || begins(&SECRET_BEGINNINGS) || ends(name, &SECRET_ENDINGS) {
        return Some(Unwanted::Secret);
    }
    let page = BESIDE_DATABASES.iter().find_map(|ending| name.strip_suffix(ending));
    if ends(page.unwrap_or(name), &DATABASE_ENDINGS) || name.contains(".sqlite") {
        return Some(Unwanted::Database);
    }
    if MADE.contains(&name) || ends(name, &[".pyc", ".pyo"]) {
        return Some(Unwanted::Made);
    }
    INSTRUCTIONS.contains(&name).then_some(Unwanted::Instructions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str) -> Option<Unwanted> {
        by_name(&ProjectPath::parse(name).unwrap())
    }

    #[test]
    fn lesson_l29_secrets_are_known_by_name_in_any_case() {
        for name in [
            ".env",
            ".ENV",
            ".Env.local",
            ".envrc",
            "prod.env",
            "a/b/server.PEM",
            "tls.key",
            "id_rsa",
            "ID_RSA.old",
            "id_ed25519.pub",
            "credentials",
            "Credentials.json",
            "aws-credentials.json",
            "secrets.yaml",
            "config/Secrets.YML",
            "secrets",
            ".npmrc",
            ".NPMRC",
            ".pypirc",
            ".netrc",
            ".aws",
            ".ssh",
            ".gnupg",
            ".docker",
            "x.p12",
            "x.pfx",
            "x.kdbx",
            "\u{ff0e}env",
        ] {
            assert_eq!(check(name), Some(Unwanted::Secret), "{name}");
        }
    }

    #[test]
    fn what_tools_make_and_databases_stay_behind() {
        for (name, why) in [
            (".git", Unwanted::VersionControl),
            ("sub/.GIT", Unwanted::VersionControl),
            (".hg", Unwanted::VersionControl),
            ("node_modules", Unwanted::Made),
            ("a/__pycache__", Unwanted::Made),
            ("a/x.pyc", Unwanted::Made),
            ("target", Unwanted::Made),
            ("data.db", Unwanted::Database),
            ("data.db-wal", Unwanted::Database),
            ("x.SQLITE3", Unwanted::Database),
            ("x.sqlite3.bak", Unwanted::Database),
            (".claude", Unwanted::Instructions),
            (".mcp.json", Unwanted::Instructions),
        ] {
            assert_eq!(check(name), Some(why), "{name}");
        }
    }

    #[test]
    fn ordinary_files_are_wanted() {
        for name in [
            "src/main.py",
            "README.md",
            "environment.py",
            "monkey.py",
            "keys.py",
            "secretary.txt",
            "db.py",
            ".gitignore",
            ".fluffy/policy.yaml",
            ".fluffy/skills/support/settings.py",
            "CLAUDE.md",
            "targets.py",
        ] {
            assert_eq!(check(name), None, "{name}");
        }
    }
}
