//! What a governed change of a file costs, beside the sandbox that it is made in.
//!
//! `cargo bench --package fluffy-cli --bench workshop`
//!
//! All contenders take turns in one run, so that a busy machine is busy for all of them.

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]
#![expect(clippy::indexing_slicing, reason = "every index is below its length")]
#![expect(clippy::print_stdout, reason = "figures are what a bench is for")]
#![expect(clippy::disallowed_methods, reason = "time is what is measured")]

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fluffy_base::ProjectPath;
use fluffy_kernel::{Blobs, CommandLine, Edit, Sight, Taking, Workshop, WorkshopOptions};
use fluffy_sandbox::{Config, Job, Native, NativeOptions, Runtime, Store, Template, Workspace};

const ROUNDS: usize = 300;

fn main() {
    // `cargo test --benches` asks for a list of tests; there are none.
    if std::env::args().any(|arg| arg == "--list" || arg == "--test") {
        return;
    }
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let project = dir.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("file.txt"), "text").unwrap();
    let program = PathBuf::from(env!("CARGO_BIN_EXE_fluffy"));
    let state = dir.path().join("state");
    let options = NativeOptions { program: program.clone(), state, path: vec![], env: vec![] };
    let runtime: Arc<dyn Runtime> = Arc::new(Native::open(options).unwrap());
    let workshop = Workshop::new(WorkshopOptions {
        runtime: Arc::clone(&runtime),
        project: project.clone(),
        home: None,
        shown: vec![],
        program: program.clone(),
    });
    let blobs = Blobs::open(&dir.path().join("blobs")).unwrap();
    let files = |path: &ProjectPath| vec![path.clone()];
    let taking = Taking { blobs: &blobs, files: &files, skip: &|_| false };
    let path = ProjectPath::parse("src/file.txt").unwrap();
    let count = Cell::new(0_u64);
    let write = |bytes: usize| {
        // Another content each time: one that is known is not kept again.
        count.set(count.get() + 1);
        let content = format!("{}{}", count.get(), "x".repeat(bytes));
        workshop.edit(&[], &Edit::Write { path: path.clone(), content }, &taking).unwrap();
    };
    let bare = |store| {
        let overlay = Workspace::overlay(&project, runtime.volume(store).unwrap());
        let config = Config::of(Template::CodeExecutor).with_workspace(overlay).unwrap();
        runtime.run(config, Job::new("true"), Arc::new(())).unwrap();
    };
    let keep = || {
        count.set(count.get() + 1);
        blobs.put(format!("bare {}", count.get()).as_bytes(), false).unwrap();
    };
    let contenders: [(&str, &dyn Fn()); 6] = [
        ("bare: sandbox with `true`, in memory", &|| bare(Store::Memory)),
        ("bare: a content kept, synced", &keep),
        ("fs.write, 10 bytes", &|| write(10)),
        ("fs.write, 1 MB", &|| write(1 << 20)),
        ("bare: sandbox with `true`, on disk", &|| bare(Store::Disk)),
        ("shell.run `true`", &|| run_true(&workshop, dir.path(), &taking)),
    ];
    let mut walls = vec![Vec::new(); contenders.len()];
    for round in 0..ROUNDS {
        for place in 0..contenders.len() {
            // Another neighbour in each round.
            let place = (place * (1 + 4 * (round % 2)) + round) % contenders.len();
            let begin = Instant::now();
            contenders[place].1();
            walls[place].push(begin.elapsed());
        }
    }
    println!("{:<40} {:>9} {:>9}", "", "p50 ms", "p99 ms");
    for ((name, _), walls) in contenders.iter().zip(&mut walls) {
        walls.sort();
        let at = |share: usize| ms(walls[(walls.len() * share / 100).min(walls.len() - 1)]);
        println!("{name:<40} {:>9} {:>9}", at(50), at(99));
    }
}

fn run_true(workshop: &Workshop, dir: &Path, taking: &Taking<'_>) {
    let scratch = dir.join("scratch");
    let sight = Sight { layers: &[], hidden: &[], scratch: &scratch };
    let line = CommandLine::new("true", &[], None, None).unwrap();
    workshop.command(&sight, &line, taking, Arc::new(())).unwrap();
}

fn ms(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1000.0)
}
