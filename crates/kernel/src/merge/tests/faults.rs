//! A merge that fails, or dies, at every one of its system calls.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{Gid, Uid};

use super::*;
use crate::merge::disk::{Disk, RealDisk, Seen};

/// What happens at the chosen call.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// It fails, and the next ones do not.
    Error,
    /// The program dies there: no call after it is made.
    Crash,
    /// The same, and if it was a write, half of it was made.
    Torn,
}

type Between<'a> = (&'static str, usize, &'a dyn Fn());

/// A disk on which one call goes wrong.
struct Faulty<'a> {
    fault: Option<(Fault, usize)>,
    count: Cell<usize>,
    /// Which calls were made.
    calls: RefCell<Vec<&'static str>>,
    /// Something that happens before the given call of a kind.
    between: Option<Between<'a>>,
}

impl<'a> Faulty<'a> {
    fn new(fault: Option<(Fault, usize)>) -> Self {
        Self { fault, count: Cell::new(0), calls: RefCell::default(), between: None }
    }

    fn with(kind: &'static str, number: usize, happens: &'a dyn Fn()) -> Self {
        Self { between: Some((kind, number, happens)), ..Self::new(None) }
    }

    fn gate(&self, call: &'static str) -> io::Result<()> {
        self.calls.borrow_mut().push(call);
        if let Some((kind, number, happens)) = self.between
            && kind == call
            && self.calls.borrow().iter().filter(|made| **made == kind).count() == number
        {
            happens();
        }
        let number = self.count.replace(self.count.get() + 1);
        match self.fault {
            Some((Fault::Error, at)) if number == at => Err(io::Error::from_raw_os_error(28)),
            Some((Fault::Crash | Fault::Torn, at)) if number >= at => Err(io::Error::other("dead")),
            _ => Ok(()),
        }
    }
}

impl Disk for Faulty<'_> {
    fn directory(&self, at: BorrowedFd<'_>, path: &str) -> io::Result<OwnedFd> {
        self.gate("directory").and_then(|()| RealDisk.directory(at, path))
    }

    fn look(&self, at: BorrowedFd<'_>, name: &str) -> io::Result<Option<Seen>> {
        self.gate("look").and_then(|()| RealDisk.look(at, name))
    }

    fn read(&self, at: BorrowedFd<'_>, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        self.gate("read").and_then(|()| RealDisk.read(at, name, limit))
    }

    fn create(&self, at: BorrowedFd<'_>, name: &str, mode: u32) -> io::Result<File> {
        self.gate("create").and_then(|()| RealDisk.create(at, name, mode))
    }

    fn append_to(&self, at: BorrowedFd<'_>, name: &str) -> io::Result<File> {
        self.gate("append_to").and_then(|()| RealDisk.append_to(at, name))
    }

    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<()> {
        let torn = matches!(self.fault, Some((Fault::Torn, at)) if at == self.count.get());
        let gate = self.gate("write");
        if torn {
            RealDisk.write(file, &bytes[..bytes.len() / 2])?;
        }
        gate.and_then(|()| RealDisk.write(file, bytes))
    }

    fn cut(&self, file: &File, length: u64) -> io::Result<()> {
        self.gate("cut").and_then(|()| RealDisk.cut(file, length))
    }

    fn set_mode(&self, file: &File, mode: u32) -> io::Result<()> {
        self.gate("set_mode").and_then(|()| RealDisk.set_mode(file, mode))
    }

    fn give(&self, file: &File, owner: (Uid, Gid)) -> io::Result<()> {
        self.gate("give").and_then(|()| RealDisk.give(file, owner))
    }

    /// No machine loses its power here, and a thousand merges need not wait for the disk.
    fn sync(&self, _file: BorrowedFd<'_>) -> io::Result<()> {
        self.gate("sync")
    }

    fn make_directory(&self, at: BorrowedFd<'_>, name: &str) -> io::Result<()> {
        self.gate("make_directory").and_then(|()| RealDisk.make_directory(at, name))
    }

    fn may_change(&self, at: BorrowedFd<'_>) -> io::Result<()> {
        self.gate("may_change").and_then(|()| RealDisk.may_change(at))
    }

    fn replace(&self, from: (BorrowedFd<'_>, &str), to: (BorrowedFd<'_>, &str)) -> io::Result<()> {
        self.gate("replace").and_then(|()| RealDisk.replace(from, to))
    }

    fn place(&self, from: (BorrowedFd<'_>, &str), to: (BorrowedFd<'_>, &str)) -> io::Result<()> {
        self.gate("place").and_then(|()| RealDisk.place(from, to))
    }

    fn remove(&self, at: BorrowedFd<'_>, name: &str) -> io::Result<()> {
        self.gate("remove").and_then(|()| RealDisk.remove(at, name))
    }

    fn remove_directory(&self, at: BorrowedFd<'_>, name: &str) -> io::Result<()> {
        self.gate("remove_directory").and_then(|()| RealDisk.remove_directory(at, name))
    }
}

/// Names, modes and contents; no times.
type Listing = Vec<(PathBuf, u32, Vec<u8>)>;

/// A project that is merged into again and again.
struct Trial {
    scene: Scene,
    before: &'static [(&'static str, &'static str)],
    staging: Staging,
    plan: Plan,
    old: Listing,
    new: Listing,
}

impl Trial {
    fn new(before: &'static [(&'static str, &'static str)], words: &[&str]) -> Self {
        let scene = Scene::new(before);
        let mut staging = scene.staging();
        stage(&mut staging, words);
        let plan = Plan::of(&staging).unwrap();
        let mut trial = Self { scene, before, staging, plan, old: Vec::new(), new: Vec::new() };
        trial.old = trial.tree();
        let log = trial.scene.session().join("merge.log");
        carry_out(&trial.plan, trial.staging.tree(), &trial.scene.session()).unwrap();
        trial.new = trial.tree();
        assert_ne!(trial.old, trial.new);
        fs::remove_file(log).unwrap();
        trial
    }

    fn tree(&self) -> Listing {
        let all = snapshot(&self.scene.project()).into_iter();
        all.map(|(path, (mode, _, _, text))| (path, mode, text)).collect()
    }

    /// Puts the project back as it was.
    fn reset(&self) {
        for entry in fs::read_dir(self.scene.project()).unwrap() {
            let at = entry.unwrap().path();
            if at.is_dir() { fs::remove_dir_all(at).unwrap() } else { fs::remove_file(at).unwrap() }
        }
        for (path, text) in self.before {
            self.scene.user_writes(path, text);
        }
        assert_eq!(self.tree(), self.old);
    }

    fn carry_out(&self, disk: &dyn Disk) -> Result<Merged, MergeError> {
        crate::merge::carry::carry_out(disk, &self.plan, self.staging.tree(), &self.scene.session())
    }

    fn recover(&self, disk: &dyn Disk) -> Result<Recovered, MergeError> {
        crate::merge::carry::recover(disk, self.staging.tree(), &self.scene.session())
    }

    /// Which calls a merge makes.
    fn made(&self) -> Vec<&'static str> {
        self.reset();
        let disk = Faulty::new(None);
        self.carry_out(&disk).unwrap();
        disk.calls.into_inner()
    }

    /// How many that are.
    fn calls(&self) -> usize {
        self.made().len()
    }

    /// After a fault and a recovery the project is the old one or the new one, and nothing is left to do.
    fn settle(&self, what: &str) {
        let recovered = self.recover(&Faulty::new(None)).unwrap();
        let tree = self.tree();
        match recovered {
            Recovered::Nothing => assert!(tree == self.old || tree == self.new, "{what}: {tree:?}"),
            Recovered::Undone(_) => assert_eq!(tree, self.old, "{what}"),
            Recovered::Finished(merged) => {
                assert_eq!(tree, self.new, "{what}");
                assert_eq!(merged.files.len(), self.plan.operations().len());
                assert!(merged.files.iter().all(|file| file.outcome != Outcome::Left), "{what}");
            }
        }
        assert_eq!(self.recover(&Faulty::new(None)).unwrap(), Recovered::Nothing, "{what}");
    }
}

const PROJECT: &[(&str, &str)] = &[
    ("edit", "old"),
    ("gone", "g"),
    ("d/e/last", "l"),
    ("d/keep", "k"),
    ("run", "x:"),
    ("swap", "file"),
    ("dir/a", "a"),
    ("dir/b/c", "c"),
];

fn trials() -> [Trial; 4] {
    [
        Trial::new(&[], &["+a=1", "+b/c/d=2", "+b/c/e=3", "+b/f=x:4"]),
        Trial::new(PROJECT, &["+edit=new", "+run=no more", "+d/keep=x:kept"]),
        Trial::new(PROJECT, &["-gone", "-d/e/last", "-dir/b/c", "+d/e2/new=n", "+edit=new"]),
        Trial::new(PROJECT, &["+swap/in/side=s", "+dir=file", "-d/keep", "-run"]),
    ]
}

#[test]
fn a_merge_that_dies_at_any_call_ends_in_the_old_or_the_new_tree() {
    for trial in trials() {
        let made = trial.made();
        let (mut old, mut new) = (0, 0);
        for (at, call) in made.iter().enumerate() {
            let torn = (*call == "write").then_some(Fault::Torn);
            for fault in std::iter::once(Fault::Crash).chain(torn) {
                trial.reset();
                let died = trial.carry_out(&Faulty::new(Some((fault, at))));
                assert!(died.is_err(), "{call}, call {at} of {}", made.len());
                trial.settle(&format!("{fault:?} at {call}, {at} of {}", made.len()));
                if trial.tree() == trial.old { old += 1 } else { new += 1 }
            }
        }
        assert!(old > 0 && new > 0, "{old} {new}");
    }
}

#[test]
fn a_merge_with_an_error_at_any_call_is_as_if_it_had_not_begun_or_can_be_finished() {
    for trial in trials() {
        let calls = trial.calls();
        for at in 0..calls {
            trial.reset();
            let disk = Faulty::new(Some((Fault::Error, at)));
            match trial.carry_out(&disk) {
                // Nobody minds where it did not matter.
                Ok(_) => assert_eq!(trial.tree(), trial.new, "call {at}"),
                Err(MergeError::Unfinished { .. }) => {}
                Err(_) => assert_eq!(trial.tree(), trial.old, "call {at}: {:?}", disk.calls),
            }
            trial.settle(&format!("error at {at} of {calls}"));
        }
    }
}

#[test]
fn a_recovery_that_dies_at_any_call_can_be_repeated() {
    let trial = Trial::new(PROJECT, &["+swap/in/side=s", "+dir=file", "+edit=new", "+n/w=n"]);
    let calls = trial.calls();
    // Not every pair, but every fifth first and a third of the second, another third each time.
    for first in (0..calls).step_by(5) {
        for second in (first % 3..).step_by(3) {
            trial.reset();
            let died = trial.carry_out(&Faulty::new(Some((Fault::Crash, first))));
            assert!(died.is_err());
            let disk = Faulty::new(Some((Fault::Torn, second)));
            let again = trial.recover(&disk);
            trial.settle(&format!("died at {first}, then at {second}"));
            if again.is_ok() {
                break;
            }
        }
    }
}

#[test]
fn what_waits_is_made_again_if_somebody_took_it_away() {
    let trial = Trial::new(PROJECT, &["+edit=new", "+n/w=n", "-gone"]);
    let mut taken = false;
    for at in 0..trial.calls() {
        if taken {
            break;
        }
        trial.reset();
        let _died = trial.carry_out(&Faulty::new(Some((Fault::Crash, at))));
        // The first change of the project is the deletion.
        if trial.scene.project().join("gone").exists() {
            trial.settle("not begun");
            continue;
        }
        for (at, ..) in trial.tree() {
            if at.to_string_lossy().ends_with(".tmp") {
                fs::remove_file(at).unwrap();
                taken = true;
            }
        }
        trial.settle("taken away");
        assert_eq!(trial.tree(), trial.new);
    }
    assert!(taken);
}

#[test]
fn a_user_who_writes_before_the_decision_stops_the_merge() {
    let trial = Trial::new(PROJECT, &["+edit=new", "+n/w=n", "-gone"]);
    for name in ["edit", "n/w", "gone"] {
        trial.reset();
        let writes = || trial.scene.user_writes(name, "mine");
        // While the new contents are being written.
        let disk = Faulty::with("create", 2, &writes);
        let stopped = trial.carry_out(&disk);
        assert!(
            matches!(&stopped, Err(MergeError::Changed(at)) if at.as_str() == name),
            "{stopped:?}"
        );
        let text = fs::read_to_string(trial.scene.project().join(name)).unwrap();
        assert_eq!(text, "mine");
        for (at, ..) in trial.tree() {
            assert!(!at.to_string_lossy().ends_with(".tmp"), "{}", at.display());
        }
        let edited = fs::read_to_string(trial.scene.project().join("edit")).unwrap();
        assert_eq!(edited, if name == "edit" { "mine" } else { "old" });
    }
}

#[test]
fn what_a_user_writes_after_the_decision_stays_and_is_told() {
    let trial = Trial::new(PROJECT, &["+edit=new", "+n/w=n", "-gone", "+run=other"]);
    for name in ["edit", "n/w"] {
        trial.reset();
        let writes = || trial.scene.user_writes(name, "mine");
        // The deletion is the first change that the decision brings.
        let disk = Faulty::with("remove", 1, &writes);
        let merged = trial.carry_out(&disk).unwrap();
        for file in &merged.files {
            let left = file.path.as_str() == name;
            assert_eq!(file.outcome == Outcome::Left, left, "{file:?}");
        }
        let text = fs::read_to_string(trial.scene.project().join(name)).unwrap();
        assert_eq!(text, "mine");
        assert!(!trial.scene.project().join("gone").exists());
        assert_eq!(fs::read_to_string(trial.scene.project().join("run")).unwrap(), "other");
        for (at, ..) in trial.tree() {
            assert!(!at.to_string_lossy().ends_with(".tmp"), "{}", at.display());
        }
        assert_eq!(trial.recover(&RealDisk).unwrap(), Recovered::Nothing);
    }
}

#[test]
fn a_link_that_somebody_puts_in_the_way_after_the_decision_is_not_followed() {
    let trial = Trial::new(PROJECT, &["+d/keep=new", "+n/w=n", "-gone"]);
    trial.reset();
    let outside = trial.scene.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("keep"), "k").unwrap();
    let at = |name: &str| trial.scene.project().join(name);
    let swaps = || {
        fs::rename(at("d"), at("moved")).unwrap();
        symlink(&outside, at("d")).unwrap();
        fs::rename(at("n"), at("moved-n")).unwrap();
        symlink(&outside, at("n")).unwrap();
    };
    let disk = Faulty::with("remove", 1, &swaps);
    let merged = trial.carry_out(&disk).unwrap();
    let left: Vec<_> = merged
        .files
        .iter()
        .filter(|file| file.outcome == Outcome::Left)
        .map(|file| file.path.as_str())
        .collect();
    assert_eq!(left, ["d/keep", "n/w"]);
    assert_eq!(fs::read_to_string(outside.join("keep")).unwrap(), "k");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn an_interrupted_merge_is_recovered_before_the_next() {
    let trial = Trial::new(PROJECT, &["+edit=new", "-gone"]);
    let calls = trial.calls();
    trial.reset();
    let died = trial.carry_out(&Faulty::new(Some((Fault::Crash, calls - 4))));
    assert!(died.is_err());
    assert!(matches!(trial.carry_out(&RealDisk), Err(MergeError::Interrupted)));
    trial.settle("recovered");
}
