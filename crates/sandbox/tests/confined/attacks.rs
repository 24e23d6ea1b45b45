//! Ways out, tried by a program that is confined as the kernel is; and the same where nothing stops them.

use std::process::{Child, Stdio};

use crate::listen::Ear;
use crate::scene::{Scene, User, answer, is_root};
use crate::spec::{Control, Drive, Report};

/// How many ways are tried to look beneath a cover.
const UNCOVERING: usize = 6;

fn uncover(scene: &Scene, place: &str) -> Vec<String> {
    vec!["uncover".into(), scene.text("home"), ".ssh/id_ed25519".into(), place.into()]
}

fn attack(scene: &Scene, args: &[String]) -> Report {
    scene.attack(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Every try was answered with one of these.
#[track_caller]
fn all_are(report: &Report, answers: &[&str], user: User) {
    assert!(!report.tries.is_empty());
    for (what, answer) in &report.tries {
        assert!(answers.contains(&answer.as_str()), "{user:?}: {what}: {answer}");
    }
}

#[test]
fn sbx_9_what_is_covered_stays_covered_also_for_root_of_a_nested_namespace() {
    for user in User::all() {
        let scene = Scene::new(user);
        let report = attack(&scene, &uncover(&scene, "/tmp"));
        all_are(&report, &["EPERM"], user);
        let nested = [vec!["as-root-of-its-own".to_owned()], uncover(&scene, "/tmp")].concat();
        let report = attack(&scene, &nested);
        all_are(&report, &["EINVAL", "EPERM"], user);
        assert_eq!(report.tries.len(), UNCOVERING);
        assert!(report.found.is_empty(), "{:?}", report.found);
    }
    // In a namespace whose mounts are its own, every one of these shows the secret.
    let scene = Scene::new(User::ordinary());
    let (report, _) = scene.uncontained(Control {
        attack: uncover(&scene, "/tmp"),
        blank: vec![scene.path("home")],
        ..Control::default()
    });
    all_are(&report, &["ok"], User::ordinary());
    assert_eq!(report.found, ["secret key"; UNCOVERING]);
}

#[test]
fn sbx_9_what_is_read_only_stays_so_also_for_root_of_a_nested_namespace() {
    for user in User::all() {
        let scene = Scene::new(user);
        let places = [
            "root=/".to_owned(),
            format!("home={}", scene.text("home")),
            format!("shown={}", scene.text("home/.cargo/bin")),
            "devices=/dev".to_owned(),
            "system=/sys".to_owned(),
        ];
        let plain = [vec!["make-writable".to_owned()], places.to_vec()].concat();
        all_are(&attack(&scene, &plain), &["EPERM"], user);
        let nested = [vec!["as-root-of-its-own".to_owned()], plain].concat();
        all_are(&attack(&scene, &nested), &["EPERM"], user);
    }
    let scene = Scene::new(User::ordinary());
    let attack = ["make-writable".to_owned(), format!("home={}", scene.text("home"))];
    let (report, _) = scene.uncontained(Control {
        attack: attack.into(),
        blank: vec![scene.path("home")],
        ..Control::default()
    });
    all_are(&report, &["ok"], User::ordinary());
}

#[test]
fn sbx_9_no_other_process_of_the_user_is_read_traced_or_limited() {
    for user in User::all() {
        let scene = Scene::new(user);
        let mut bystander = Bystander::new(user);
        let pid = bystander.0.id().to_string();
        let outsider = ["outsider".to_owned(), pid.clone()];
        all_are(&attack(&scene, &outsider), &["EPERM", "EACCES"], user);
        let nested = [vec!["as-root-of-its-own".to_owned()], outsider.to_vec()].concat();
        all_are(&attack(&scene, &nested), &["EPERM", "EACCES"], user);
        assert!(bystander.is_alive());
        // Whoever is not confined sees all of it.
        assert!(
            scene.control(&format!("kill -0 {pid} && cat /proc/{pid}/environ")).status.success()
        );
    }
    let scene = Scene::new(User::ordinary());
    let (report, _) = scene.uncontained(Control {
        attack: vec!["outsider".into(), "{victim}".into()],
        victim: true,
        ..Control::default()
    });
    all_are(&report, &["ok"], User::ordinary());
}

#[test]
fn sbx_9_a_kernel_that_root_started_signals_nobody_and_any_other_only_its_own_user() {
    for user in User::all() {
        let scene = Scene::new(user);
        let mut bystander = Bystander::new(user);
        let pid = bystander.0.id().to_string();
        // An ordinary user's kernel can, so it only asks whether it could.
        let (number, expected) = if user.id() == 0 { ("9", "EPERM") } else { ("0", "ok") };
        for nested in [None, Some("as-root-of-its-own")] {
            let args: Vec<&str> =
                nested.into_iter().chain(["signal", pid.as_str(), number]).collect();
            all_are(&scene.attack(&args), &[expected], user);
        }
        if is_root() {
            let somebody_elses = std::process::id().to_string();
            all_are(&scene.attack(&["signal", &somebody_elses, "0"]), &["EPERM"], user);
        }
        // Its jobs see no process but their own.
        let seen = scene.drive(Drive {
            attack: vec!["signal".into(), pid.clone(), "9".into()],
            ..Drive::default()
        });
        let report: Report = serde_json::from_str(&seen.stdout).unwrap();
        all_are(&report, &["ESRCH"], user);
        assert!(bystander.is_alive());
    }
    let scene = Scene::new(User::ordinary());
    let (report, seen) = scene.uncontained(Control {
        attack: vec!["signal".into(), "{victim}".into(), "9".into()],
        victim: true,
        ..Control::default()
    });
    all_are(&report, &["ok"], User::ordinary());
    assert_eq!(seen.victim, "ended by signal 9");
}

#[test]
fn sbx_9_namespaces_of_the_machine_are_not_entered_and_no_right_comes_back() {
    for user in User::all() {
        let scene = Scene::new(user);
        all_are(&scene.attack(&["setns"]), &["EPERM", "EACCES"], user);
        all_are(&scene.attack(&["as-root-of-its-own", "setns"]), &["EPERM", "EACCES"], user);
        all_are(&scene.attack(&["capset"]), &["EPERM"], user);
        let users = scene.attack(&["other-users"]);
        assert!(users.tries.iter().all(|(_, answer)| answer == "EPERM" || answer == "EINVAL"));
        let rights = scene.attack(&["rights"]);
        for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(answer(&rights, name), "none");
        }
        assert_eq!((answer(&rights, "NoNewPrivs"), answer(&rights, "Seccomp")), ("1", "2"));
    }
}

#[test]
fn sbx_9_system_calls_that_no_kernel_of_ours_needs_are_refused() {
    let names = [
        "io-uring",
        "bpf",
        "perf",
        "userfaultfd",
        "fanotify",
        "keys",
        "kexec",
        "modules",
        "reboot",
        "swap",
        "clock",
        "accounting",
        "kernel-log",
        "ports",
        "placement",
        "ptrace",
        "handles",
        "raw",
    ];
    for user in User::all() {
        let scene = Scene::new(user);
        for name in names {
            let report = match name {
                "handles" => scene.attack(&[
                    name,
                    &scene.text("home/state"),
                    &scene.text("home/state/ledger"),
                ]),
                _ => scene.attack(&[name]),
            };
            all_are(&report, &["EPERM"], user);
        }
        let families = scene.attack(&["families"]);
        assert_eq!(answer(&families, "vsock"), "EPERM");
        assert_eq!(answer(&families, "packet"), "EPERM");
    }
}

#[test]
fn sbx_9_devices_cannot_be_made_and_marks_of_removed_files_can() {
    for user in User::all() {
        let scene = Scene::new(user);
        all_are(&scene.attack(&["device-nodes", &scene.text("project")]), &["EPERM"], user);
        let marks = scene.attack(&["whiteouts", &scene.text("project")]);
        assert_eq!((answer(&marks, "whiteout"), answer(&marks, "pipe")), ("ok", "ok"));
    }
}

#[test]
fn sbx_9_sockets_that_other_programs_have_among_files_are_not_reached() {
    for user in User::all() {
        let scene = Scene::new(user);
        let agent = Ear::open(&format!("unix:{}", scene.text("home/agent.sock"))).unwrap();
        let args = [
            "unix".to_owned(),
            format!("agent={}", scene.text("home/agent.sock")),
            "docker=/run/docker.sock".to_owned(),
            "docker by its old name=/var/run/docker.sock".to_owned(),
        ];
        let report = attack(&scene, &args);
        all_are(&report, &["ENOENT"], user);
        assert_eq!(agent.heard(), None);
    }
    let scene = Scene::new(User::ordinary());
    let at = format!("unix:{}", scene.text("outside/agent.sock"));
    let (report, seen) = scene.uncontained(Control {
        attack: vec!["unix".into(), format!("agent={}", scene.text("outside/agent.sock"))],
        listening: vec![at],
        ..Control::default()
    });
    all_are(&report, &["ok"], User::ordinary());
    assert_eq!(seen.heard.len(), 1);
}

#[test]
fn sbx_9_abstract_sockets_of_the_machine_are_reached_by_the_kernel_and_not_by_its_jobs() {
    for user in User::all() {
        let scene = Scene::new(user);
        let name = scene.path("").file_name().unwrap().to_str().unwrap().to_owned();
        let listener = Ear::open(&format!("abstract:{name}")).unwrap();
        let connects = ["unix".to_owned(), format!("abstract=@{name}")];
        let seen = scene.drive(Drive { attack: connects.to_vec(), ..Drive::default() });
        let report: Report = serde_json::from_str(&seen.stdout).unwrap();
        all_are(&report, &["ECONNREFUSED"], user);
        assert_eq!(listener.heard(), None);
        // The kernel's network is the machine's, and these names belong to a network.
        all_are(&attack(&scene, &connects), &["ok"], user);
        assert!(listener.heard().is_some());
    }
}

#[test]
fn sbx_9_a_job_reaches_neither_the_kernels_state_nor_its_sockets_nor_what_is_hidden() {
    for user in User::all() {
        let scene = Scene::new(user);
        let session = Ear::open(&format!("unix:{}", scene.text("state/session.sock"))).unwrap();
        let reads = [
            "read".to_owned(),
            format!("state={}", scene.text("state")),
            format!("ledger={}", scene.text("home/state/ledger")),
            format!("key={}", scene.text("home/.ssh/id_ed25519")),
            format!("sibling={}", scene.text("home/sibling/.env")),
        ];
        let connects = ["unix".to_owned(), format!("session={}", scene.text("state/session.sock"))];
        for attack in [reads.to_vec(), connects.to_vec(), uncover(&scene, "/tmp")] {
            let seen = scene.drive(Drive { attack, ..Drive::default() });
            let report: Report =
                serde_json::from_str(&seen.stdout).unwrap_or_else(|_| panic!("{seen:?}"));
            all_are(&report, &["ENOENT", "EPERM"], user);
        }
        assert_eq!(session.heard(), None);
        // The confined kernel itself has both.
        let own = [reads[0].clone(), reads[1].clone(), reads[2].clone()];
        all_are(&attack(&scene, &own), &["ok"], user);
        all_are(
            &attack(&scene, &connects),
            if user == User::Same { &["ok"] } else { &["EACCES"] },
            user,
        );
    }
}

/// A process of the user that does nothing until it is dropped.
struct Bystander(Child);

impl Bystander {
    fn new(user: User) -> Self {
        let mut cat = user.command("/bin/cat");
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
