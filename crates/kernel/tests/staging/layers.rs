//! A job sees the project with everything that is staged, and nothing else: exactly what a merge would make.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use fluffy_kernel::{Plan, carry_out};
use fluffy_sandbox::harvest::{Change, HarvestLimits, Kind, harvest};
use fluffy_sandbox::{
    Changes, Config, Job, Native, NativeOptions, Runtime, Store, Template, Volume, Workspace,
};

use crate::scene::{Scene, stage};

/// Not 65534, which the kernel shows for every user that a namespace does not know.
const NOBODY: u32 = 65_533;

/// Where the second run finds the driver's program, and its own directory.
const PLACE: &str = "FLUFFY_STAGING_PLACE";

/// Runs a test as whoever we are, and once more as an ordinary user if we are root.
fn holds(name: &str, test: fn(&dyn Runtime, &Path)) {
    if let Some(place) = std::env::var_os(PLACE) {
        let place = PathBuf::from(place);
        return test(&open(&place.join("kernel-tester"), &place.join("state")), &place);
    }
    let place = tempfile::Builder::new().prefix("fluffy-staging-").tempdir_in("/var/tmp").unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_kernel-tester"));
    test(&open(program, &place.path().join("state")), &place.path().join("ours"));
    if rustix::process::geteuid().is_root() {
        as_somebody_else(place.path(), name);
    }
}

fn open(program: &Path, state: &Path) -> Native {
    let (program, state) = (program.to_owned(), state.to_owned());
    Native::open(NativeOptions { program, state, path: Vec::new(), env: Vec::new() }).unwrap()
}

fn as_somebody_else(place: &Path, name: &str) {
    // The build may lie where nobody else can look.
    let copies = [
        (std::env::current_exe().unwrap(), "tests"),
        (PathBuf::from(env!("CARGO_BIN_EXE_kernel-tester")), "kernel-tester"),
    ];
    let theirs = place.join("theirs");
    fs::create_dir(&theirs).unwrap();
    for (from, name) in &copies {
        let to = theirs.join(name);
        fs::hard_link(from, &to).or_else(|_| fs::copy(from, &to).map(drop)).unwrap();
    }
    fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
    chown(&theirs, Some(NOBODY), Some(NOBODY)).unwrap();
    let run = Command::new(theirs.join("tests"))
        .args(["--exact", name, "--nocapture"])
        .env(PLACE, &theirs)
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&run.stdout), text(&run.stderr));
    let passed = run.status.success() && out.contains("test result: ok. 1 passed");
    assert!(passed, "as an ordinary user: {}\n{out}\n{err}", run.status);
}

fn run(runtime: &dyn Runtime, layers: &[PathBuf], changes: Changes, script: &str) -> String {
    let workspace = Workspace { at: layers[0].clone(), layers: layers.to_vec(), changes };
    let config = Config::of(Template::CodeExecutor).with_workspace(workspace).unwrap();
    let job = Job::new("sh").args(["-c", script]);
    let outcome = runtime.run(config, job, Arc::new(())).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&outcome.stdout.bytes), text(&outcome.stderr.bytes));
    assert!(outcome.is_success(), "{}\n{out}\n{err}", outcome.end);
    out
}

/// What a job sees of a workspace, in the form of [`Scene::files`].
const LIST: &str = r#"find . -type f | while read -r f; do
    x=-; test -x "$f" && x=x
    printf '%s\t%s\t' "$x" "${f#./}"; cat "$f"; printf '\n'
done"#;

fn seen(listing: &str) -> BTreeMap<String, (bool, Vec<u8>)> {
    let mut files = BTreeMap::new();
    for line in listing.lines() {
        let mut words = line.splitn(3, '\t');
        let executable = words.next().unwrap() == "x";
        let name = words.next().unwrap().to_owned();
        files.insert(name, (executable, words.next().unwrap().as_bytes().to_vec()));
    }
    files
}

const PROJECT: [&str; 10] = [
    "a=1",
    "b=2",
    "run=x:3",
    "d/x=4",
    "d/y=5",
    "d/e/f/z=6",
    "deep/er/and/deeper=7",
    "file=8",
    "dir/one=9",
    "dir/two/three=10",
];

const CASES: [&[&[&str]]; 9] = [
    &[&["+a=new", "+new=file", "+n/e/w=x:w", "-b"]],
    &[&["+run=no longer", "+a=x:now"]],
    &[&["-d/x", "-d/e/f/z"], &["+d/e/f/z=back", "-d/y"]],
    &[&["-d/x", "-d/y", "-d/e/f/z", "-deep/er/and/deeper"]],
    &[&["+file/in/side=s", "+dir=a file"]],
    &[&["+dir=a file"], &["+dir/one=again", "+dir/four=4"]],
    &[&["+file/x=1"], &["+file=8"], &["+file/y/z=2"]],
    &[&["+d/e=file"], &["-d/e"], &["+d/e/g=h"]],
    &[&["-dir/one", "-dir/two/three"], &["+dir/two/new=n"], &["-a"], &["+a/b=c"]],
];

fn a_job_sees_what_a_merge_would_make(runtime: &dyn Runtime, place: &Path) {
    for (number, steps) in CASES.iter().enumerate() {
        let scene = Scene::new(&place.join(number.to_string()), &PROJECT);
        symlink("a", scene.project().join("d/link")).unwrap();
        let mut staging = scene.staging();
        let mut moments = Vec::new();
        for words in *steps {
            stage(&mut staging, words);
            let layer = staging.layer();
            let layers = [scene.project(), layer.path().to_owned()];
            let listing = run(runtime, &layers, Changes::Refused, LIST);
            let volume = runtime.volume(Store::Memory).unwrap();
            let again = run(runtime, &layers, Changes::Overlay(volume), LIST);
            assert_eq!(seen(&listing), seen(&again), "case {number}");
            moments.push((layer, listing));
        }
        for (layer, listing) in &moments {
            let layers = [scene.project(), layer.path().to_owned()];
            let later = run(runtime, &layers, Changes::Refused, LIST);
            assert_eq!(seen(&later), seen(listing), "case {number}: what was held did not change");
        }
        let plan = Plan::of(&staging).unwrap();
        carry_out(&plan, staging.tree(), &scene.session()).unwrap();
        assert_eq!(seen(&moments.last().unwrap().1), scene.files(), "case {number}");
    }
}

#[test]
fn a_job_sees_exactly_what_a_merge_would_make() {
    holds("layers::a_job_sees_exactly_what_a_merge_would_make", a_job_sees_what_a_merge_would_make);
}

fn changes(volume: &Volume) -> Vec<String> {
    let top = volume.content().unwrap();
    let harvest = harvest(top, Kind::Overlay, &HarvestLimits::default(), &|_| false).unwrap();
    assert!(harvest.refused().is_empty(), "{:?}", harvest.refused());
    let line = |change: &Change| match change {
        Change::Write(file) => {
            let text = String::from_utf8(harvest.read(file).unwrap()).unwrap();
            format!("+{}={}", file.path(), text.trim_end())
        }
        Change::Delete(path) => format!("-{path}"),
        Change::Replace(path) => format!("!{path}"),
    };
    harvest.changes().iter().map(line).collect()
}

fn a_job_changes_what_is_staged(runtime: &dyn Runtime, place: &Path) {
    let scene = Scene::new(place, &PROJECT);
    let mut staging = scene.staging();
    stage(&mut staging, &["+a=staged\n", "+n/w=new", "-b", "-d/x", "-d/y", "+file/in=x"]);
    let layers = [scene.project(), staging.layer().path().to_owned()];
    let volume = runtime.volume(Store::Memory).unwrap();
    let script =
        "set -e; echo more >> a; rm n/w; echo back > b; echo k > d/x; rm -r file; echo f > file
        test ! -e d/y; mv run d/y; chmod +x a";
    run(runtime, &layers, Changes::Overlay(volume.clone()), script);
    let expected = ["+a=staged\nmore", "+b=back", "+d/x=k", "+d/y=x:3", "+file=f", "-n/w", "-run"];
    assert_eq!(changes(&volume), expected);
    assert_eq!(fs::read(layers[1].join("a")).unwrap(), b"staged\n", "the layer is as it was");
    assert_eq!(fs::read(scene.project().join("a")).unwrap(), b"1", "and the project, too");
}

#[test]
fn a_job_can_change_and_delete_what_is_staged() {
    holds("layers::a_job_can_change_and_delete_what_is_staged", a_job_changes_what_is_staged);
}

#[test]
fn a_job_of_root_for_somebody_elses_project_can_change_what_is_staged() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = tempfile::Builder::new().prefix("fluffy-staging-").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_kernel-tester"));
    let runtime = open(program, &place.path().join("state"));
    let scene = Scene::new(&place.path().join("scene"), &["a=1", "d/x=2"]);
    for name in ["", "a", "d", "d/x"] {
        chown(scene.project().join(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let mut staging = scene.staging();
    stage(&mut staging, &["+a=staged\n", "+d/e/new=n\n"]);
    let layers = [scene.project(), staging.layer().path().to_owned()];
    let volume = runtime.volume(Store::Memory).unwrap();
    let script = "set -e; echo more >> a; echo more >> d/e/new; echo y > d/e/other";
    run(&runtime, &layers, Changes::Overlay(volume.clone()), script);
    assert_eq!(changes(&volume), ["+a=staged\nmore", "+d/e/new=n\nmore", "+d/e/other=y"]);
    let plan = Plan::of(&staging).unwrap();
    carry_out(&plan, staging.tree(), &scene.session()).unwrap();
    for name in ["a", "d/e", "d/e/new"] {
        use std::os::unix::fs::MetadataExt as _;
        let owner = fs::metadata(scene.project().join(name)).unwrap().uid();
        assert_eq!(owner, NOBODY, "{name} is its owner's");
    }
}
