//! Lessons L14 and L16: no spelling of a protected path is let through, by no tool.

use fluffy_base::{Json, KernelRequest, KernelState, ProjectPath};
use fluffy_policy::{
    BuiltIn, Caller, DEFAULT_POLICY, Facts, Part, PolicyFile, Rule, decide, shape_of,
};
use serde_json::{Value, json};

use crate::judging::lets_through;

/// The shipped policy, for a project in which the ledger and the kernel's state lie as well.
struct Judge {
    built_in: BuiltIn,
    own: Vec<Box<dyn Rule>>,
}

impl Judge {
    fn new() -> Self {
        let kept = [
            ("var/ledger.db", Part::Ledger),
            ("var/sessions.sqlite", Part::State),
            ("bin/fluffy", Part::Kernel),
        ];
        let kept = kept.map(|(path, part)| (ProjectPath::parse(path).unwrap(), part));
        let policy = PolicyFile::parse("policy.yaml", DEFAULT_POLICY).unwrap();
        Self { built_in: BuiltIn::new(kept), own: policy.rules() }
    }

    /// What is decided on a call as a model would send it; nothing where its paths are refused.
    fn decide(&self, tool: &str, params: &Value) -> Option<fluffy_policy::Decided> {
        let params = Json::new(params.clone()).unwrap();
        let subject = shape_of(tool).unwrap().subject(&params).ok()?;
        let request = KernelRequest::call("r", "model", "work", tool, params);
        let caller = Caller::default();
        let facts = Facts::new(&request, KernelState::Idle).about(&subject).by(&caller);
        let rules =
            std::iter::once(&self.built_in as &dyn Rule).chain(self.own.iter().map(|rule| &**rule));
        Some(decide(rules, &facts))
    }

    fn lets(&self, tool: &str, params: &Value) -> bool {
        self.decide(tool, params).is_some_and(|decided| lets_through(&decided.verdict))
    }
}

/// Spellings of a file that is kept from every call.
const SECRET: &[&str] = &[
    ".env",
    "./.env",
    ".//.env",
    "././.env",
    ".env/",
    ".env/.",
    ".env//",
    "x/../.env",
    "x/./../.env",
    "a/b/../../.env",
    "config/../.env",
    "config//.env",
    "config/.env",
    "a/b/c/.env",
    ".ENV",
    ".Env",
    ".eNv",
    ".env.",
    ".env..",
    ".env ",
    ".env. .",
    ".ENV ",
    ".env.local",
    ".env.LOCAL",
    ".ENV.production",
    "prod.env",
    "Prod.ENV",
    "\u{ff0e}env",
    "\u{ff0e}\u{ff45}\u{ff4e}\u{ff56}",
    ".\u{ff45}nv",
    ".e\u{ff4e}v",
    ".env\u{200b}",
    ".e\u{200d}nv",
    "\u{feff}.env",
    ".env\u{0}",
    ".env\u{0}.txt",
    ".env\n",
    "\u{202e}.env",
    ".env:$DATA",
    ".env::$DATA",
    ".env:stream",
    "config/.env:a",
    "x:y/../.env",
    "/.env",
    "//.env",
    "/project/.env",
    "../project/.env",
    "..//.env",
    "~/.env",
    "~user/.env",
    ".\\.env",
    "config\\.env",
    "C:.env",
    "C:/.env",
    "c:\\.env",
    "\\\\server\\share\\.env",
    "\\\\?\\C:\\.env",
    "env~1",
    "ENV~1",
    "deploy/id_ed25519",
    "deploy/ID_ed25519",
    "server.pem",
    "server.PEM",
    "server.pem ",
    "a/secrets/x",
    "a/Secrets/x",
    "SECRETS/deep/x.txt",
    "secrets./x",
    ".ssh/config",
    ".SSH/config",
    "home/.aws/credentials",
    ".npmrc",
    ".NPMRC",
    "x\u{ff0f}..\u{ff0f}.env",
    "Secrets/\u{ff5e}/key",
];

/// Spellings of places that are kept from every change.
const KEPT_FROM_CHANGE: &[&str] = &[
    ".fluffy/policy.yaml",
    "./.fluffy/policy.yaml",
    ".fluffy//policy.yaml",
    ".fluffy/./policy.yaml",
    ".fluffy/x/../policy.yaml",
    "src/../.fluffy/policy.yaml",
    ".Fluffy/policy.yaml",
    ".FLUFFY/POLICY.YAML",
    ".fluffy./policy.yaml",
    ".fluffy /policy.yaml",
    ".\u{fb02}uffy/policy.yaml",
    ".\u{fb02}u\u{fb00}y/policy.yaml",
    "\u{ff0e}fluffy/policy.yaml",
    ".fluffy\u{200b}/policy.yaml",
    "fluffy~1/policy.yaml",
    "FLUFFY~1/policy.yaml",
    ".fluffy:x/policy.yaml",
    ".fluffy::$INDEX_ALLOCATION/policy.yaml",
    ".fluffy",
    ".fluffy/",
    ".fluffy/rules/new.ts",
    ".fluffy/\u{ff5e}",
    ".FLUFFY/\u{ff5e}/x",
    "x\u{ff0f}..\u{ff0f}.fluffy\u{ff0f}policy.yaml",
    "/.fluffy/policy.yaml",
    ".\\.fluffy\\policy.yaml",
    ".git/config",
    ".git/hooks/pre-commit",
    ".GIT/config",
    ".Git/hooks/pre-commit",
    ".git./config",
    ".git /config",
    "git~1/config",
    "GIT~1/config",
    ".git::$INDEX_ALLOCATION/config",
    ".g\u{200c}it/config",
    ".\u{ff47}it/config",
    ".git",
    "sub/.git/config",
    "sub/.GIT/hooks/post-checkout",
    "a/b/.git",
    "bin/fluffy",
    "BIN/Fluffy",
    "bin",
    ".",
    "./",
    "x/..",
];

/// Spellings of files that are kept from reading as well.
const KEPT_FROM_READING: &[&str] = &[
    "var/ledger.db",
    "./var//ledger.db",
    "var/x/../ledger.db",
    "VAR/Ledger.DB",
    "var/ledger.db-wal",
    "var/ledger.db-shm",
    "var/ledger.db-journal",
    "var/ledger.db-mj1234",
    "var/LEDGER.DB-WAL",
    "var/ledger.db ",
    "var/ledger.db.",
    "var/ledger.db:x",
    "var./ledger.db",
    "var/sessions.sqlite",
    "var/sessions.sqlite-wal",
    "var/sessions.sqlite-shm",
    "var/Sessions.sqlite-journal",
    "var/\u{ff4c}edger.db",
];

const READS: [&str; 6] =
    ["fs.read", "fs.exists", "fs.list", "search.grep", "search.glob", "git.diff"];
const CHANGES: [&str; 3] = ["fs.write", "fs.edit", "fs.delete"];

fn params(tool: &str, path: &Value) -> Value {
    match tool {
        "fs.write" => json!({"path": path, "content": "x"}),
        "fs.edit" => json!({"path": path, "old": "x", "new": "y"}),
        _ => json!({"path": path}),
    }
}

#[track_caller]
fn check_kept(spellings: &[&str], tools: &[&str]) {
    let judge = Judge::new();
    for spelling in spellings {
        for tool in tools {
            let told = judge.decide(tool, &params(tool, &json!(spelling)));
            let passed = told.as_ref().is_some_and(|told| lets_through(&told.verdict));
            assert!(!passed, "{tool} {spelling:?}: {told:?}");
        }
    }
}

#[test]
fn lesson_l14_the_corpus_is_large_enough() {
    assert!(SECRET.len() + KEPT_FROM_CHANGE.len() + KEPT_FROM_READING.len() >= 120);
    let all = [SECRET, KEPT_FROM_CHANGE, KEPT_FROM_READING].concat();
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
}

#[test]
fn lesson_l14_no_spelling_of_a_secret_is_read_or_changed() {
    check_kept(SECRET, &[&READS[..], &CHANGES[..]].concat());
}

#[test]
fn lesson_l14_no_spelling_of_a_kept_place_is_changed() {
    check_kept(KEPT_FROM_CHANGE, &CHANGES);
}

#[test]
fn lesson_l14_no_spelling_of_the_ledger_is_read_or_changed() {
    check_kept(KEPT_FROM_READING, &[&READS[..], &CHANGES[..]].concat());
}

#[test]
fn lesson_l14_a_decomposed_spelling_is_the_composed_one() {
    let policy = "capabilities:\n  - name: d\n    match: { syscall: '*', path_glob: ['caf\u{e9}'] }\n    \
                  action: deny\n  - { name: a, match: { syscall: '*' }, action: allow }\n\
                  jurisdiction: { allowed_actors: ['*'], allowed_tools: ['*'] }\n";
    let own = PolicyFile::parse("p", policy).unwrap().rules();
    let judge = Judge { built_in: BuiltIn::new([]), own };
    for spelling in ["caf\u{e9}", "cafe\u{301}", "CAFE\u{301}", "Caf\u{c9}", "./caf\u{e9}/"] {
        assert!(!judge.lets("fs.read", &json!({"path": spelling})), "{spelling}");
    }
    assert!(judge.lets("fs.read", &json!({"path": "cafe"})));
}

#[test]
fn lesson_l14_what_is_no_text_is_no_path() {
    let judge = Judge::new();
    for path in [
        json!(null),
        json!(1),
        json!(1.5),
        json!(true),
        json!({}),
        json!({"path": ".env"}),
        json!([[".env"]]),
        json!([".env"]),
        json!(["src/a.rs", ".env"]),
        json!([".env", "src/a.rs"]),
        json!(["src/a.rs", ["x", ".env"]]),
        json!(["src/a.rs", null]),
        json!(["src/a.rs", 7]),
        json!([{"path": ".env"}]),
        json!([46, 101, 110, 118]),
        json!(""),
        json!(" "),
    ] {
        for tool in CHANGES {
            let lets = judge.lets(tool, &params(tool, &path));
            // A name that is one space is a strange file, and nobody's secret.
            assert_eq!(lets, path == json!(" "), "{tool} {path}");
        }
    }
}

#[test]
fn lesson_l14_a_path_under_another_name_is_no_path_and_so_not_allowed() {
    let judge = Judge::new();
    for key in ["file", "Path", "paths", "filename", "path ", "file_path", "target"] {
        for tool in ["fs.read", "fs.exists", "fs.write", "fs.edit", "fs.delete"] {
            assert!(!judge.lets(tool, &json!({key: ".env", "content": "x", "new": "x"})), "{key}");
        }
    }
    for params in [json!([]), json!([".env"]), json!(".env"), json!(null), json!(7)] {
        assert!(!judge.lets("fs.read", &params), "{params}");
    }
}

#[test]
fn lesson_l14_the_directory_of_a_command_is_a_path_too() {
    let judge = Judge::new();
    for cwd in [json!("/"), json!(".."), json!(1), json!("a\\b"), json!("~"), json!("C:/")] {
        let params = json!({"command": "ls", "args": [], "cwd": cwd});
        assert!(!judge.lets("shell.run", &params), "{cwd}");
    }
    assert!(judge.lets("shell.run", &json!({"command": "ls", "args": [], "cwd": "src"})));
}

#[test]
fn lesson_l16_reads_and_searches_are_judged_like_writes() {
    let judge = Judge::new();
    for tool in [&READS[..], &CHANGES[..]].concat() {
        let decided = judge.decide(tool, &params(tool, &json!(".env"))).unwrap();
        assert_eq!(
            decided.verdict.to_string().split(" (").next(),
            Some("deny: The file is likely to hold a secret"),
            "{tool}"
        );
        assert!(judge.lets(tool, &params(tool, &json!("src/main.rs"))), "{tool}");
    }
    for tool in READS {
        assert!(!judge.lets(tool, &params(tool, &json!("var/ledger.db"))), "{tool}");
    }
}

#[test]
fn what_may_be_read_of_the_system_is_read() {
    let judge = Judge::new();
    for path in [".fluffy/policy.yaml", ".git/HEAD", ".gitignore", ".env.example", "bin/fluffy"] {
        assert!(judge.lets("fs.read", &json!({"path": path})), "{path}");
    }
    for path in [".gitignore", ".gitattributes", "fluffy/x", "git/x", "a/fluffy", "var/ledger.rs"] {
        assert!(judge.lets("fs.write", &json!({"path": path, "content": ""})), "{path}");
    }
}
