//! What reading and searching through the tools costs, beside ripgrep on the same files.
//!
//! `cargo bench --package fluffy-kernel --bench files`; the row of `rg` is missing where `rg` is.

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]
#![expect(clippy::disallowed_methods, reason = "the bench makes files and starts `rg`")]
#![expect(clippy::print_stderr, reason = "whoever runs the bench must know what is missing")]

use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock};

use divan::Bencher;
use fluffy_base::{Json, ProjectPath};
use fluffy_kernel::{Blobs, FsRead, SearchGlob, SearchGrep, StagedFiles, Tool, Tree, View, Views};
use serde_json::{Value, json};
use tempfile::TempDir;

const DIRECTORIES: usize = 1000;
const FILES: usize = 100;
const PATTERN: &str = "needle_[0-9]+";

fn main() {
    divan::main();
    TREE.close();
}

/// A project of 100,000 small files; made once, removed at the end.
struct Project {
    dir: TempDir,
    view: View,
}

static TREE: LazyLock<Project> = LazyLock::new(|| {
    let project = Project::new();
    for directory in 0..DIRECTORIES {
        let at = project.dir.path().join(format!("project/d{:02}/e{directory:03}", directory % 37));
        std::fs::create_dir_all(&at).unwrap();
        for file in 0..FILES {
            let mut text = format!("// file {file} of {directory}\nfn work() {{\n").repeat(12);
            if (directory * FILES + file).is_multiple_of(1999) {
                text.push_str(&format!("let needle_{file} = 1;\n"));
            }
            std::fs::write(at.join(format!("f{file:02}.rs")), text).unwrap();
        }
    }
    project
});

impl Project {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let root = dir.path().join("project");
        // The same ignore files for both: ripgrep obeys them in a repository only.
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::write(root.join(".gitignore"), "target/\n*.log\n").unwrap();
        let blobs = Blobs::open(&dir.path().join("blobs")).unwrap();
        let tree = Tree::open(&root).unwrap();
        let view = View::new(Arc::new(tree), Arc::new(blobs), StagedFiles::default());
        Self { dir, view }
    }

    /// Statics are never dropped.
    fn close(&self) {
        let _ = std::fs::remove_dir_all(self.dir.path());
    }
}

struct Open(View);

impl Views for Open {
    fn view(&self) -> View {
        self.0.clone()
    }

    fn may_read(&self, _: &ProjectPath) -> bool {
        true
    }
}

fn views(view: &View) -> Arc<dyn Views> {
    Arc::new(Open(view.clone()))
}

fn params(value: Value) -> Json {
    Json::new(value).unwrap()
}

#[divan::bench(sample_count = 50, sample_size = 200)]
fn read_4_kb(bencher: Bencher<'_, '_>) {
    let project = Project::new();
    let text = "let line = \"of a file\";\n".repeat(170);
    std::fs::write(project.dir.path().join("project/file"), text).unwrap();
    let tool = FsRead::new(views(&project.view));
    let params = params(json!({"path": "file"}));
    bencher.bench_local(|| tool.run(&params, &()).unwrap());
}

#[divan::bench(sample_count = 11, sample_size = 1)]
fn all_files_of_100_000(bencher: Bencher<'_, '_>) {
    // Made before the first measurement.
    let view = &TREE.view;
    bencher.bench_local(|| view.all_files().unwrap().files.len());
}

/// An ignore file that is made to be slow, and names that nearly match it.
#[divan::bench(sample_count = 11, sample_size = 1)]
fn walk_1_000_files_under_a_hostile_ignore_file(bencher: Bencher<'_, '_>) {
    let project = Project::new();
    let root = project.dir.path().join("project");
    let lines: String =
        (0..1300).map(|n| format!("*a*b*{n}*a*b*a*b*a*b*a*b*a*b*a*b*a*b*x\n")).collect();
    std::fs::write(root.join(".gitignore"), lines).unwrap();
    for file in 0..1000 {
        std::fs::write(root.join(format!("{}{file}", "ab".repeat(60))), "").unwrap();
    }
    bencher.bench_local(|| project.view.walk(None).unwrap().files.len());
}

#[divan::bench(sample_count = 11, sample_size = 1)]
fn glob_100_000_files(bencher: Bencher<'_, '_>) {
    let tool = SearchGlob::new(views(&TREE.view));
    let params = params(json!({"pattern": "e17*/*.rs"}));
    bencher.bench_local(|| tool.run(&params, &()).unwrap());
}

#[divan::bench(sample_count = 11, sample_size = 1)]
fn grep_100_000_files(bencher: Bencher<'_, '_>) {
    let tool = SearchGrep::new(views(&TREE.view));
    let params = params(json!({"pattern": PATTERN}));
    bencher.bench_local(|| tool.run(&params, &()).unwrap());
}

#[divan::bench(sample_count = 11, sample_size = 1)]
fn grep_100_000_files_by_rg(bencher: Bencher<'_, '_>) {
    if Command::new("rg").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("`rg` is not installed: nothing to compare with");
        return;
    }
    let root = TREE.dir.path().join("project");
    bencher.bench_local(|| {
        let mut command = Command::new("rg");
        command.args(["--no-config", "--line-number", "--hidden", "--glob", "!.git", PATTERN]);
        command.arg(&root).stdout(Stdio::null()).status().unwrap()
    });
}
