//! A process that forges a skill and is killed, at every moment at which something is remembered and right after it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;

use fluffy_base::Span;
use fluffy_forge::build::settle;
use fluffy_forge::{BuildEnd, ShelfError, SkillName, Standing};
use fluffy_kernel::EventType;
use serde_json::json;

use crate::scene::{Scene, place, program};
use crate::subjects::{SKILL, TESTS, files, proposal, script};

/// Names the directory for the child that is killed; a run without it is not a child.
const DIRECTORY: &str = "FLUFFY_TEST_KILLED_FORGE";

/// What a child says at a moment, and at one at which a step of the skill is remembered.
const MOMENT: &str = "moment";
const STEP: &str = "moment of a step";

/// So many children are killed at other moments.
const OTHERS: usize = 5;

/// Stops until somebody says go.
fn stop(event: EventType) {
    let moment = if event == EventType::Skill { STEP } else { MOMENT };
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap();
    // Past whoever captures what tests print.
    let mut out = std::io::stdout();
    out.write_all(format!("\n{moment}\n").as_bytes()).unwrap();
    out.flush().unwrap();
    std::io::stdin().lock().read_line(&mut String::new()).unwrap();
}

/// Takes a skill from wherever it stands to where it is trusted.
fn forge(scene: &Scene) {
    let name = SkillName::parse("greet").unwrap();
    let standing = || match scene.shelf.skill(&name) {
        Ok(skill) => Some(skill.standing),
        Err(ShelfError::Unknown(_)) => None,
        Err(error) => panic!("{error}"),
    };
    if standing().is_none() {
        scene.propose(proposal());
    }
    if standing() == Some(Standing::Proposed) {
        let builder = program(&script(&files(SKILL, TESTS)), Span::from_ms(120_000));
        let built = scene.build(&name, &builder).unwrap();
        assert!(matches!(built.end, BuildEnd::Built { .. }), "{built:?}");
    }
    if matches!(standing(), Some(Standing::Built | Standing::Verified)) {
        let verified = scene.verify(&name).unwrap();
        assert!(verified.passed, "{:#?}", verified.gates);
        scene.promote(&name);
    }
    assert_eq!(standing(), Some(Standing::Trusted));
}

#[test]
fn child_forges_until_it_is_killed() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let mut scene = Scene::at(Path::new(&dir), None);
    scene.at_every_note = stop;
    forge(&scene);
}

struct Forging {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Forging {
    fn start(dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::child_forges_until_it_is_killed", "--nocapture"])
            .env(DIRECTORY, dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    /// Waits for the next moment, if there is one; whether a step is remembered.
    fn moment(&mut self) -> Option<bool> {
        let mut line = String::new();
        while self.out.read_line(&mut line).unwrap() > 0 {
            match line.trim() {
                MOMENT => return Some(false),
                STEP => return Some(true),
                _other => line.clear(),
            }
        }
        None
    }

    fn go(&mut self) {
        // One that is done does not listen any more.
        let _ = self.child.stdin.as_mut().unwrap().write_all(b"go\n");
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Every moment; whether a step is remembered then.
fn moments() -> Vec<bool> {
    let dir = place();
    let mut forging = Forging::start(dir.path());
    let mut moments = Vec::new();
    while let Some(is_step) = forging.moment() {
        moments.push(is_step);
        forging.go();
    }
    assert!(forging.child.wait().unwrap().success());
    moments
}

/// When children are killed, and whether they go on a little: before every step, after it, in what follows it at once; and
/// at some of the other moments.
fn kills(moments: &[bool]) -> Vec<(usize, bool)> {
    let at = |wanted: bool| {
        let all = moments.iter().enumerate();
        all.filter(move |(_, is_step)| **is_step == wanted).map(|(at, _)| at).collect::<Vec<_>>()
    };
    let (steps, others) = (at(true), at(false));
    let around = steps.chunks(2).flat_map(|pair| match pair {
        [before, after] => vec![(*before, false), (*after, false), (*after, true)],
        _other => panic!("a step is remembered before and after"),
    });
    let some = (0..OTHERS).map(|number| (others[number * others.len() / OTHERS], number % 2 == 0));
    around.chain(some).collect()
}

/// Whether the project has the skill's files: all of them or none.
fn has_files(scene: &Scene) -> bool {
    let built = files(SKILL, TESTS);
    let there: Vec<_> =
        built.iter().map(|(path, _)| fs::read_to_string(scene.project(path)).ok()).collect();
    assert!(
        there.iter().all(Option::is_none)
            || there.iter().zip(&built).all(|(there, (_, text))| there.as_ref() == Some(text)),
        "half of it: {there:?}"
    );
    there.iter().all(Option::is_some)
}

/// After a death: what is remembered is the old or the new state, and from it the way goes on to its end.
fn check(dir: &Path) -> Option<Standing> {
    let mut scene = Scene::at(dir, None);
    settle(&scene.tree(), &scene.state("bringing")).unwrap();
    let listed = scene.shelf.skills().unwrap();
    let name = SkillName::parse("greet").unwrap();
    let standing = listed.first().map(|skill| skill.standing);
    if let Some(standing) = standing {
        assert_eq!(scene.standing(&name), standing, "tables and ledger agree");
    }
    let there = has_files(&scene);
    match standing {
        None | Some(Standing::Proposed | Standing::Built) => assert!(!there, "{standing:?}"),
        // Its files come with the entry, or with the next call.
        Some(Standing::Verified) => {}
        Some(Standing::Trusted) => assert!(there),
        Some(Standing::Revoked) => panic!("nobody revoked it"),
    }
    let trusted = scene.shelf.trusted(&name);
    assert_eq!(trusted.is_ok(), standing == Some(Standing::Trusted), "{trusted:?}");
    forge(&scene);
    assert!(has_files(&scene));
    scene.shelf.trusted(&name).unwrap();
    scene.start();
    assert_eq!(scene.gives("greet", json!({"who": "Ann"})), json!({"text": "Hello, Ann!"}));
    let left: Vec<_> = fs::read_dir(scene.state("gates")).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(scene.left_running().is_empty(), "{:?}", scene.left_running());
    standing
}

#[test]
fn slow_for_9_a_forge_that_is_killed_at_any_moment_is_in_the_old_or_the_new_state() {
    let moments = moments();
    let steps = moments.iter().filter(|is_step| **is_step).count();
    assert_eq!(steps, 2 * 5, "proposed, build started and ended, verified, promoted");
    let mut seen = Vec::new();
    for (moment, goes_on) in kills(&moments) {
        let dir = place();
        let mut forging = Forging::start(dir.path());
        for _ in 0..moment {
            assert!(forging.moment().is_some());
            forging.go();
        }
        assert!(forging.moment().is_some());
        if goes_on {
            forging.go();
        }
        forging.kill();
        seen.push(check(dir.path()));
    }
    for standing in [
        None,
        Some(Standing::Proposed),
        Some(Standing::Built),
        Some(Standing::Verified),
        Some(Standing::Trusted),
    ] {
        assert!(seen.contains(&standing), "nobody died at {standing:?}: {seen:?}");
    }
}
