//! What the forge's memory costs with a thousand skills, beside a bare `SELECT` of the same rows.
//!
//! `cargo bench --package fluffy-forge --bench shelf`

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]
#![expect(clippy::disallowed_methods, reason = "the bench makes the files of a skill")]

use std::sync::{LazyLock, Mutex, MutexGuard};

use divan::Bencher;
use fluffy_base::{Digest, SystemIds};
use fluffy_forge::{
    Attempt, BuildEnd, Gate, GateResult, Pinned, Proposal, Sealed, Shelf, ShelfOptions, SideEffect,
    SkillEntry, SkillName,
};
use fluffy_kernel::{Kernel, KernelConfig, KeyName, Layout, PolicyFile, Registry, SigningKey};
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

/// How many skills there are.
const SKILLS: usize = 1000;

fn main() {
    divan::main();
    drop(LAB.lock().unwrap().take());
}

/// A project with a thousand skills, one of them trusted.
struct Lab {
    dir: TempDir,
    kernel: Kernel,
    shelf: Shelf,
    trusted: SkillName,
}

static LAB: LazyLock<Mutex<Option<Lab>>> = LazyLock::new(|| {
    let dir = TempDir::new().unwrap();
    let policy = "jurisdiction:\n  allowed_actors: [alice]\n  allowed_tools: [echo]\n";
    let policy = PolicyFile::parse("bench", policy).unwrap();
    let registry = Registry::with_builtins().unwrap();
    let mut config = KernelConfig::new(policy, registry, layout(&dir), key());
    config.ids = std::sync::Arc::new(SystemIds);
    let kernel = Kernel::boot(config).unwrap();
    std::fs::create_dir(dir.path().join("project")).unwrap();
    let shelf = Shelf::open(options(&dir)).unwrap();
    for number in 1..SKILLS {
        shelf.propose(&kernel, proposal(&format!("skill{number}"))).unwrap();
    }
    let trusted = trust(&dir, &kernel, &shelf);
    Mutex::new(Some(Lab { dir, kernel, shelf, trusted }))
});

fn lab() -> MutexGuard<'static, Option<Lab>> {
    LAB.lock().unwrap()
}

fn layout(dir: &TempDir) -> Layout {
    Layout::new(dir.path().join("state"), dir.path().join("remembered"))
}

fn key() -> SigningKey {
    SigningKey::from_seed(KeyName::LEDGER, &[1; 32])
}

fn options(dir: &TempDir) -> ShelfOptions {
    ShelfOptions {
        layout: layout(dir),
        key: key().verifying_key().clone(),
        dir: dir.path().join("forge"),
        project: dir.path().join("project"),
        base: Digest::GENESIS,
    }
}

fn proposal(name: &str) -> Proposal {
    Proposal {
        name: SkillName::parse(name).unwrap(),
        description: "Writes a note with a title, a body and tags into the folder of notes"
            .to_owned(),
        input: json!({"type": "object", "properties": {"title": {"type": "string"}}}),
        output: json!({"type": "object"}),
        side_effect: SideEffect::ReadOnly,
        reads: vec![],
        writes: vec![],
        hosts: vec![],
        secrets: vec![],
        model: false,
    }
}

fn trust(dir: &TempDir, kernel: &Kernel, shelf: &Shelf) -> SkillName {
    let name = SkillName::parse("trusted").unwrap();
    shelf.propose(kernel, proposal("trusted")).unwrap();
    let root = dir.path().join("project");
    std::fs::create_dir_all(root.join(".fluffy/skills/tests")).unwrap();
    let mut files = Vec::new();
    for path in [name.skill_path().unwrap(), name.test_path().unwrap()] {
        std::fs::write(root.join(path.as_str()), "x").unwrap();
        files.push(Pinned { path, sha256: Digest::of(b"x") });
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let (build, digest) = ("build-1".to_owned(), Digest::of(b"artifact"));
    let attempt = Attempt {
        build: build.clone(),
        number: 1,
        parent: None,
        packet: digest,
        builder: "bench".to_owned(),
    };
    let gate = |gate| GateResult { gate, passed: true, summary: String::new(), findings: vec![] };
    let end = BuildEnd::Built { files: files.clone() };
    for entry in [
        SkillEntry::BuildStarted { name: name.clone(), attempt },
        SkillEntry::BuildEnded { name: name.clone(), build: build.clone(), end, log: digest },
        SkillEntry::Verified {
            name: name.clone(),
            build,
            verification: "verification-1".to_owned(),
            gates: Gate::ALL.into_iter().map(gate).collect(),
            sealed: Sealed { files, base: Digest::GENESIS },
            report: digest,
        },
    ] {
        shelf.record(kernel, &entry).unwrap();
    }
    shelf.promote(kernel, &name, "ada").unwrap();
    name
}

#[divan::bench(sample_count = 50)]
fn list(bencher: Bencher<'_, '_>) {
    let lab = lab();
    let lab = lab.as_ref().unwrap();
    bencher.bench_local(|| assert_eq!(lab.shelf.skills().unwrap().len(), SKILLS));
}

#[divan::bench(sample_count = 50)]
fn list_peer_bare_select(bencher: Bencher<'_, '_>) {
    let lab = lab();
    let tables =
        Connection::open(lab.as_ref().unwrap().dir.path().join("forge/tables.db")).unwrap();
    bencher.bench_local(|| {
        let mut statement = tables
            .prepare_cached(
                "SELECT name, standing, description, side_effect FROM skills ORDER BY name",
            )
            .unwrap();
        let rows = statement.query_map([], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
        });
        assert_eq!(rows.unwrap().count(), SKILLS);
    });
}

#[divan::bench(sample_count = 50)]
fn open_and_list(bencher: Bencher<'_, '_>) {
    let lab = lab();
    let lab = lab.as_ref().unwrap();
    bencher.bench_local(|| {
        let shelf = Shelf::open(options(&lab.dir)).unwrap();
        assert_eq!(shelf.skills().unwrap().len(), SKILLS);
    });
}

#[divan::bench(sample_count = 50)]
fn trusted(bencher: Bencher<'_, '_>) {
    let lab = lab();
    let lab = lab.as_ref().unwrap();
    bencher.bench_local(|| lab.shelf.trusted(&lab.trusted).unwrap());
}

#[divan::bench(sample_count = 10)]
fn rebuild(bencher: Bencher<'_, '_>) {
    let lab = lab();
    let lab = lab.as_ref().unwrap();
    bencher.bench_local(|| lab.shelf.rebuild_tables().unwrap());
}

#[divan::bench(sample_count = 20)]
fn record_a_run(bencher: Bencher<'_, '_>) {
    let lab = lab();
    let lab = lab.as_ref().unwrap();
    let mut number = lab.shelf.log(None, 1).unwrap().first().map_or(0, |run| run.seq);
    bencher.bench_local(|| {
        number += 1;
        let name = lab.trusted.clone();
        let (execution, parent, record) = (format!("run-{number}"), None, json!({"ok": true}));
        let entry = SkillEntry::Ran { name, execution, parent, record };
        lab.shelf.record(&lab.kernel, &entry).unwrap()
    });
}
