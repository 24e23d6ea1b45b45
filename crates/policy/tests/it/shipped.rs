//! The shipped policy lets ordinary work proceed, asks where it should, and denies the rest.

use fluffy_policy::{DEFAULT_POLICY, PolicyFile};

use crate::judging::{call, decided, word};

/// Call, path (`.` is the root, `-` none), and what the policy says.
const TABLE: &[(&str, &str, &str)] = &[
    ("echo", "-", "allow"),
    ("add", "-", "allow"),
    ("plan.complete", "-", "allow"),
    ("tests.complete", "-", "allow"),
    ("code.complete", "-", "allow"),
    ("task.complete", "-", "allow"),
    ("workflow.request_exemption", "docs/guide.md", "allow"),
    ("fs.read", "src/main.rs", "allow"),
    ("fs.read", "Cargo.toml", "allow"),
    ("fs.read", "README.md", "allow"),
    ("fs.read", ".github/workflows/ci.yml", "allow"),
    ("fs.read", ".fluffy/policy.yaml", "allow"),
    ("fs.read", ".env.example", "allow"),
    ("fs.read", ".env", "deny"),
    ("fs.read", "config/.env.production", "deny"),
    ("fs.read", "deploy/id_rsa", "deny"),
    ("fs.read", "certs/server.key", "deny"),
    ("fs.read", "secrets/db.txt", "deny"),
    ("fs.read", "src/secrets.rs", "allow"),
    ("fs.read", "src/environment.rs", "allow"),
    ("fs.list", ".", "allow"),
    ("fs.list", "src", "allow"),
    ("fs.list", "secrets", "deny"),
    ("fs.exists", "src/lib.rs", "allow"),
    ("fs.exists", ".env", "deny"),
    ("search.grep", ".", "allow"),
    ("search.grep", "src", "allow"),
    ("search.grep", ".env", "deny"),
    ("search.glob", ".", "allow"),
    ("git.status", "-", "allow"),
    ("git.log", "-", "allow"),
    ("git.diff", ".", "allow"),
    ("git.diff", "src/main.rs", "allow"),
    ("git.diff", ".env", "deny"),
    ("git.commit", "-", "allow"),
    ("fs.write", "src/main.rs", "allow"),
    ("fs.write", "tests/it/main.rs", "allow"),
    ("fs.write", "docs/guide.md", "allow"),
    ("fs.write", ".gitignore", "allow"),
    ("fs.write", "Cargo.toml", "review"),
    ("fs.write", "crates/a/Cargo.toml", "review"),
    ("fs.write", "package.json", "review"),
    ("fs.write", "Dockerfile", "review"),
    ("fs.write", "Dockerfile.dev", "review"),
    ("fs.write", ".github/workflows/ci.yml", "review"),
    ("fs.write", "build.rs", "review"),
    ("fs.write", "Makefile", "review"),
    ("fs.write", ".env", "deny"),
    ("fs.write", ".env.example", "allow"),
    ("fs.write", ".fluffy/policy.yaml", "deny"),
    ("fs.write", ".fluffy/rules/mine.ts", "deny"),
    ("fs.write", ".git/hooks/pre-commit", "deny"),
    ("fs.edit", "src/main.rs", "allow"),
    ("fs.edit", "go.mod", "review"),
    ("fs.edit", ".npmrc", "deny"),
    ("fs.delete", "src/old.rs", "allow"),
    ("fs.delete", "pyproject.toml", "review"),
    ("fs.delete", ".", "deny"),
    ("fs.delete", ".git", "deny"),
    ("test.run", "-", "allow"),
    ("shell.run", ".", "allow"),
    ("shell.run", "crates/policy", "allow"),
    ("policy.update", "-", "review"),
    ("net.fetch", "-", "deny"),
    ("fs.chmod", "src/main.rs", "deny"),
];

fn shipped() -> PolicyFile {
    PolicyFile::parse("policy.yaml", DEFAULT_POLICY).unwrap()
}

#[test]
fn ordinary_work_proceeds_and_the_rest_does_not() {
    let shipped = shipped();
    for (tool, path, expected) in TABLE {
        let paths = if *path == "-" { vec![] } else { vec![*path] };
        assert_eq!(word(&shipped, &call(tool, &paths)), *expected, "{tool} {path}");
    }
}

#[test]
fn a_user_and_a_model_are_heard_and_nobody_else() {
    let shipped = shipped();
    assert_eq!(word(&shipped, &call("fs.read", &["a"]).by("user")), "allow");
    assert_eq!(word(&shipped, &call("fs.read", &["a"]).by("plugin")), "deny");
    assert_eq!(word(&shipped, &call("fs.read", &["a"]).by("User")), "deny");
}

#[test]
fn a_file_over_a_mebibyte_is_not_written() {
    let shipped = shipped();
    assert_eq!(word(&shipped, &call("fs.write", &["a"]).bytes(1 << 20)), "allow");
    assert_eq!(word(&shipped, &call("fs.write", &["a"]).bytes((1 << 20) + 1)), "deny");
}

#[test]
fn every_denial_says_what_would_be_allowed() {
    let shipped = shipped();
    for (tool, path, expected) in TABLE {
        let paths = if *path == "-" { vec![] } else { vec![*path] };
        let decided = decided(&shipped, &[], &call(tool, &paths));
        assert_eq!(decided.instead.is_some(), *expected == "deny", "{tool} {path}: {decided:?}");
    }
}

#[test]
fn there_is_nothing_odd_about_it() {
    assert_eq!(shipped().warnings(), []);
}

#[test]
fn the_kernel_has_at_most_ten_rules_of_its_own() {
    let names: Vec<_> = fluffy_policy::BuiltIn::names().collect();
    assert!(names.len() <= 10 && names.iter().all(|name| name.starts_with("builtin.")));
}
