//! One case: what is attacked, what must come of it inside, and what without the sandbox.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use fluffy_sandbox::EngineKind;
use fluffy_testkit::engines::{is_there, socket};

use crate::listen::Ear;
use crate::scene::{Scene, User};
use crate::spec::{Control, Drive, Report, Seen};

type Judge<T> = Box<dyn Fn(&T, &Seen)>;

/// An attack with everything that is known about it.
pub(crate) struct Case {
    attack: Vec<String>,
    rows: Vec<(&'static str, &'static str, &'static str)>,
    drive: Drive,
    control: Control,
    listening: Vec<&'static str>,
    touches: bool,
    steals: bool,
    silent: bool,
    prepare: Vec<fn(&Scene, User)>,
    /// What an engine's sandbox answers where that is another way to say no.
    on_engines: Vec<(&'static str, &'static str)>,
    /// How an engine's sandbox ends it, where it does not come to report there.
    ends_on_engines: Option<&'static str>,
    inside: Vec<Judge<Scene>>,
    outside: Vec<Judge<Scene>>,
}

/// A case for the attack of this name.
pub(crate) fn attack(name: &str) -> Case {
    Case {
        attack: vec![name.to_owned()],
        rows: Vec::new(),
        drive: Drive::default(),
        control: Control::default(),
        listening: Vec::new(),
        touches: false,
        steals: false,
        silent: false,
        prepare: Vec::new(),
        on_engines: Vec::new(),
        ends_on_engines: None,
        inside: Vec::new(),
        outside: Vec::new(),
    }
}

impl Case {
    /// With these arguments, in which `{home}` and the like stand for places of the scene.
    pub(crate) fn args<const N: usize>(mut self, args: [&str; N]) -> Self {
        self.attack.extend(args.map(str::to_owned));
        self
    }

    /// Something that is tried, the answer in the sandbox, and the answer in the control.
    pub(crate) fn row(
        mut self,
        what: &'static str,
        inside: &'static str,
        control: &'static str,
    ) -> Self {
        self.rows.push((what, inside, control));
        self
    }

    /// The answer where an engine makes the sandbox, if it is another one.
    pub(crate) fn on_engines(mut self, what: &'static str, answer: &'static str) -> Self {
        self.on_engines.push((what, answer));
        self
    }

    /// It ends like this where an engine makes the sandbox, before it comes to report.
    pub(crate) fn ends_on_engines(mut self, end: &'static str) -> Self {
        self.ends_on_engines = Some(end);
        self
    }

    /// Changes how it is run in the sandbox.
    pub(crate) fn sandbox(mut self, change: impl FnOnce(&mut Drive)) -> Self {
        change(&mut self.drive);
        self
    }

    /// Changes how it is run in the control.
    pub(crate) fn control(mut self, change: impl FnOnce(&mut Control)) -> Self {
        change(&mut self.control);
        self
    }

    /// The control changes the scene; the sandbox never may.
    pub(crate) fn touches(mut self) -> Self {
        self.touches = true;
        self
    }

    /// The control prints the secret; the sandbox never may.
    pub(crate) fn steals(mut self) -> Self {
        self.steals = true;
        self
    }

    /// Does not come to report, in the sandbox or at all.
    pub(crate) fn silent(mut self) -> Self {
        self.silent = true;
        self
    }

    /// Somebody listens here, on the host and in the control; the control speaks to all, the sandbox to none.
    pub(crate) fn listening(mut self, at: &'static str) -> Self {
        self.listening.push(at);
        self
    }

    /// Adds to the scene.
    pub(crate) fn prepared(mut self, prepare: fn(&Scene, User)) -> Self {
        self.prepare.push(prepare);
        self
    }

    /// There is somebody to kill, `{victim}`: a process of the host, and in the control one beside it.
    pub(crate) fn with_victim(mut self) -> Self {
        self.control.victim = true;
        self
    }

    /// What else must be seen of the sandbox.
    pub(crate) fn stopped(mut self, judge: impl Fn(&Scene, &Seen) + 'static) -> Self {
        self.inside.push(Box::new(judge));
        self
    }

    /// What else must be seen of the control.
    pub(crate) fn works(mut self, judge: impl Fn(&Scene, &Seen) + 'static) -> Self {
        self.outside.push(Box::new(judge));
        self
    }

    /// Runs it five times.
    pub(crate) fn check(self) {
        self.check_as(&User::all());
    }

    /// Runs the control, and then the sandbox as each of these, on the machine and inside the confined kernel.
    pub(crate) fn check_as(self, users: &[User]) {
        // First, since without it nothing else means anything.
        self.check_control();
        for user in users {
            self.check_sandbox(*user, Around::Machine);
            // A confined kernel has no terminal, and nothing open that it could leak.
            if self.drive.leaked.is_empty() && !self.drive.terminal {
                self.check_sandbox(*user, Around::Confined);
            }
        }
        self.check_engines();
    }

    /// The same in a sandbox that an engine makes, for somebody without any right.
    fn check_engines(&self) {
        for kind in EngineKind::ALL {
            if is_there(kind) {
                self.check_sandbox(User::ordinary(), Around::Engine(kind));
            }
        }
    }

    fn scene(&self, user: User) -> Scene {
        let scene = Scene::new(user);
        for prepare in &self.prepare {
            prepare(&scene, user);
        }
        scene
    }

    fn check_sandbox(&self, user: User, around: Around) {
        let scene = self.scene(user);
        let ears = self.ears(&scene);
        let (before, host, clock) = (scene.digest(), Host::now(&scene), started());
        let mut victim = Bystander::new(user);
        let mut drive = self.drive(&scene, &victim);
        if let Around::Engine(kind) = around {
            drive.engine = Some((kind.to_string(), socket(kind)));
        }
        let seen = drive_in(&scene, user, &drive, around);
        let context = format!("in the sandbox as {user:?} ({around:?}): {seen:?}");
        assert_eq!(host, Host::now(&scene), "breach: the host has changed, {context}");
        assert_eq!(seen.error, None, "the sandbox did not run, {context}");
        let ends = self.ends_on_engines.filter(|_| matches!(around, Around::Engine(_)));
        if let Some(end) = ends {
            assert_eq!(seen.end, end, "{context}");
        } else if !self.silent {
            let other = |what: &str| {
                let mut others =
                    self.on_engines.iter().filter(|_| matches!(around, Around::Engine(_)));
                others.find(|(known, _)| *known == what).map(|(_, answer)| *answer)
            };
            let expected = self
                .rows
                .iter()
                .map(|(what, inside, _)| (*what, other(what).unwrap_or(inside), ""));
            compare(&report(&seen, &context), expected, &context);
        }
        assert_eq!(before, scene.digest(), "breach: the scene has changed, {context}");
        assert!((clock - started()).abs() <= 1, "breach: the clock was set, {context}");
        let heard: Vec<_> = ears.iter().filter_map(Ear::heard).collect();
        assert!(heard.is_empty(), "breach: {heard:?} heard somebody, {context}");
        let printed = format!("{}{}{:?}", seen.stdout, seen.stderr, seen.changes);
        assert!(!printed.contains(&scene.secret()), "breach: the secret came out, {context}");
        assert_eq!(scene.processes(), [0_u32; 0], "breach: processes are left, {context}");
        assert!(victim.is_alive(), "breach: a process of the host was killed, {context}");
        for judge in &self.inside {
            judge(&scene, &seen);
        }
    }

    fn check_control(&self) {
        let user = User::ordinary();
        let scene = self.scene(user);
        let before = scene.digest();
        let seen = control(&scene, user, &self.placed_control(&scene));
        let context = format!("in the control: {seen:?}");
        if !self.rows.is_empty() {
            let expected =
                self.rows.iter().map(|(what, inside, control)| (*what, *control, *inside));
            compare(&report(&seen, &context), expected, &format!("dead probe: {context}"));
        }
        if self.touches {
            assert_ne!(before, scene.digest(), "dead probe: the scene is as it was, {context}");
        }
        if self.steals {
            assert!(seen.stdout.contains(&scene.secret()), "dead probe: no secret, {context}");
        }
        let spoken = self.placed_control(&scene).listening;
        assert_eq!(seen.heard, spoken, "dead probe: not everybody heard, {context}");
        for judge in &self.outside {
            judge(&scene, &seen);
        }
    }

    fn ears(&self, scene: &Scene) -> Vec<Ear> {
        let open =
            |at: &&str| Ear::open(&scene.place(at)).unwrap_or_else(|error| panic!("{at}: {error}"));
        self.listening.iter().map(open).collect()
    }

    fn placed_attack(&self, scene: &Scene) -> Vec<String> {
        let args = self.attack.iter().map(|arg| scene.place(arg));
        args.chain([scene.token()]).collect()
    }

    /// The same for the sandbox, with the scene's places put in.
    fn drive(&self, scene: &Scene, victim: &Bystander) -> Drive {
        let attack = self.placed_attack(scene).into_iter();
        let victim = victim.0.id().to_string();
        Drive {
            scene: scene.path().to_owned(),
            attack: attack.map(|arg| arg.replace("{victim}", &victim)).collect(),
            program: self.drive.program.as_ref().map(|path| placed(scene, path)),
            leaked: self.drive.leaked.iter().map(|path| placed(scene, path)).collect(),
            beside: self.drive.beside.clone().map(|beside| [beside, vec![scene.token()]].concat()),
            ..self.drive.clone()
        }
    }

    fn placed_control(&self, scene: &Scene) -> Control {
        let here = self.listening.iter().map(|at| scene.place(at));
        let there = self.control.listening.iter().map(|at| scene.place(at));
        let control = self.control.clone();
        Control {
            scene: scene.path().to_owned(),
            attack: self.placed_attack(scene),
            program: control.program.as_ref().map(|path| placed(scene, path)),
            leaked: control.leaked.iter().map(|path| placed(scene, path)).collect(),
            covered: control
                .covered
                .iter()
                .map(|(path, by)| (placed(scene, path), placed(scene, by)))
                .collect(),
            listening: here.chain(there).collect(),
            ..control
        }
    }
}

fn placed(scene: &Scene, path: &Path) -> PathBuf {
    scene.place(path.to_str().unwrap()).into()
}

/// What of the host an attack, or the making of the sandbox itself, would change.
#[derive(Debug, PartialEq, Eq)]
struct Host {
    settings: Vec<String>,
    mounts: usize,
    /// Directories of the scene's name where nobody made any: a link followed out of the new root.
    strays: Vec<PathBuf>,
}

impl Host {
    fn now(scene: &Scene) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap();
        let names = ["hostname", "domainname", "core_pattern", "shmmax", "randomize_va_space"];
        let settings = names.iter().map(|name| read(&format!("/proc/sys/kernel/{name}"))).collect();
        let name = scene.place("{name}");
        let mounts =
            read("/proc/self/mountinfo").lines().filter(|line| line.contains(&name)).count();
        let places = ["/", "/tmp", "/home", "/run", "/dev/shm", "/usr"].map(Path::new);
        let strays = places.map(|place| place.join(&name)).into_iter().filter(|path| path.exists());
        Self { settings, mounts, strays: strays.collect() }
    }
}

/// When the machine was started, by its clock, in seconds: moves when somebody sets the clock.
fn started() -> i64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let line = stat.lines().find_map(|line| line.strip_prefix("btime ")).unwrap();
    line.parse().unwrap()
}

/// The attack's report: the one line of its output that is one.
fn report(seen: &Seen, context: &str) -> Report {
    let lines = seen.stdout.lines();
    let reports: Vec<Report> = lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
    let [report] = reports.as_slice() else { panic!("not one report, {context}") };
    report.clone()
}

/// Compares every try with what is expected: what, the good answers, and answers that are not good.
fn compare<'a>(
    report: &Report,
    expected: impl Iterator<Item = (&'a str, &'a str, &'a str)>,
    context: &str,
) {
    let expected: Vec<_> = expected.collect();
    let tried: Vec<_> = report.tries.iter().map(|(what, _)| what.as_str()).collect();
    let known: Vec<_> = expected.iter().map(|(what, ..)| *what).collect();
    assert_eq!(tried, known, "other tries, {context}");
    for (what, answer) in &report.tries {
        let (_, good, bad) = expected.iter().find(|(known, ..)| known == what).unwrap();
        let is_good = match *good {
            "*" => bad.split('|').all(|bad| bad != answer),
            good => good.split('|').any(|good| good == answer),
        };
        assert!(is_good, "`{what}` was answered `{answer}`, not `{good}`, {context}");
    }
}

/// What a sandbox is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Around {
    /// Nothing.
    Machine,
    /// The kernel's own confinement.
    Confined,
    /// Nothing; an engine makes it.
    Engine(EngineKind),
}

/// Runs an attack in a sandbox that this user starts.
pub(crate) fn drive(scene: &Scene, user: User, drive: &Drive) -> Seen {
    drive_in(scene, user, drive, Around::Machine)
}

fn drive_in(scene: &Scene, user: User, drive: &Drive, around: Around) -> Seen {
    let mut child = match around {
        Around::Machine | Around::Engine(_) => start(scene, user, &["drive"]),
        Around::Confined => start(scene, user, &["confine", &confine(scene)]),
    };
    ask(&mut child, drive);
    finish(child)
}

/// What the tester is told to drive a sandbox as a confined kernel would.
fn confine(scene: &Scene) -> String {
    let spec = serde_json::json!({
        "project": scene.path().join("project"),
        "writable": [scene.path().join("state")],
        "home": scene.path().join("home"),
        "shown": [],
        "run": [scene.tester(), "drive"],
    });
    let file = scene.path().join("confine.json");
    std::fs::write(&file, spec.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Starts a driving process that is to be watched.
pub(crate) fn driven(scene: &Scene, user: User, drive: &Drive) -> Child {
    let mut child = start(scene, user, &["drive"]);
    ask(&mut child, drive);
    child
}

/// Runs an attack where nothing stops it.
pub(crate) fn control(scene: &Scene, user: User, control: &Control) -> Seen {
    let mut child = start(scene, user, &["control"]);
    let mut text = serde_json::to_vec(control).unwrap();
    text.push(b'\n');
    let mut input = child.stdin.take().unwrap();
    input.write_all(&text).unwrap();
    if control.second_user {
        map_two(&mut child, &mut input);
    }
    drop(input);
    finish(child)
}

/// Maps two users into the namespace of a process, which needs the rights of root.
fn map_two(child: &mut Child, input: &mut impl std::io::Write) {
    let mut line = String::new();
    let mut output = BufReader::with_capacity(1, child.stdout.as_mut().unwrap());
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "unshared\n");
    for map in ["uid_map", "gid_map"] {
        std::fs::write(format!("/proc/{}/{map}", child.id()), "0 65533 1\n1 65532 1\n").unwrap();
    }
    input.write_all(b"x").unwrap();
}

fn start(scene: &Scene, user: User, what: &[&str]) -> Child {
    user.command(&scene.tester())
        .args(what)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", scene.path().join("home"))
        .env("FAKE_API_KEY", scene.secret())
        .env("SSH_AUTH_SOCK", scene.path().join("run/agent.sock"))
        .env("DOCKER_HOST", "unix:///run/docker.sock")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn ask(child: &mut Child, drive: &Drive) {
    let mut input = child.stdin.take().unwrap();
    input.write_all(&serde_json::to_vec(drive).unwrap()).unwrap();
}

fn finish(mut child: Child) -> Seen {
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let status = child.wait().unwrap();
    assert!(status.success(), "the tester ended with {status}: {text}");
    serde_json::from_str(text.lines().last().unwrap_or_default())
        .unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A process of the host that does nothing until it is dropped.
struct Bystander(Child);

impl Bystander {
    fn new(user: User) -> Self {
        let mut cat = user.command(Path::new("/bin/cat"));
        Self(cat.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }

    fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        // Without input it ends.
        drop(self.0.stdin.take());
        let _status = self.0.wait();
    }
}
