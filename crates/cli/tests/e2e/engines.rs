//! Docker and Podman as a person uses them. `scripts/engines` starts them.

mod contained;
mod failures;
mod full;
mod images;
mod registry;
mod sessions;
mod worker;

use std::os::unix::fs::chown;
use std::process::Command;

use fluffy_sandbox::EngineKind;
use fluffy_testkit::engines::{is_there, socket};

use crate::program::{Answer, User};

/// Somebody without any right, to whom the project belongs.
const NOBODY: u32 = 65_533;

/// Somebody who chose an engine, and whose project has one file.
struct Chooser {
    user: User,
    engine: EngineKind,
    /// Where it is said to listen.
    host: String,
}

impl Chooser {
    /// For each engine that is there.
    fn each() -> impl Iterator<Item = Self> {
        EngineKind::ALL.into_iter().filter(|engine| is_there(*engine)).map(|engine| {
            let chooser = Self {
                user: User::new(),
                engine,
                host: format!("unix://{}", socket(engine).display()),
            };
            chooser.user.write("kept.txt", "as it was");
            let root = chooser.user.project.root();
            for path in [root.join("kept.txt"), root] {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
            chooser
        })
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.user.command(args);
        command.env("FLUFFY_SANDBOX_RUNTIME", self.engine.name());
        command.env("DOCKER_HOST", &self.host).env("CONTAINER_HOST", &self.host);
        command
    }

    fn run(&self, args: &[&str]) -> Answer {
        Answer::of(self.command(args).output().unwrap())
    }
}

#[test]
fn engine_sbx_1_a_command_runs_where_one_word_chose_it_to_and_changes_are_listed() {
    for chooser in Chooser::each() {
        let script = "cat kept.txt; rm kept.txt; echo new > made; cat /proc/1/cmdline 2>&1; exit 7";
        let answer = chooser.run(&["sandbox", "run", "--", "sh", "-c", script]);
        assert_eq!(answer.code, 7, "{}", answer.err);
        assert!(answer.out.starts_with("as it was"), "{}", answer.out);
        for line in ["  - kept.txt", "  + made (4 bytes)"] {
            assert!(answer.err.lines().any(|found| found == line), "{line}: {}", answer.err);
        }
        let kept = chooser.user.project.root().join("kept.txt");
        assert_eq!(std::fs::read_to_string(kept).unwrap(), "as it was");
    }
}

#[test]
fn engine_sbx_1_a_project_that_is_somebodys_home_directory_is_seen() {
    for chooser in Chooser::each() {
        let script = "cat kept.txt; echo new > \"$HOME/made\"";
        let mut command = chooser.command(&["sandbox", "run", "--", "sh", "-c", script]);
        command.env("HOME", chooser.user.project.root());
        let answer = Answer::of(command.output().unwrap());
        assert_eq!(answer.code, 0, "{}: {}", chooser.engine, answer.err);
        assert_eq!(answer.out, "as it was");
        let made = "  + made (4 bytes)";
        assert!(answer.err.lines().any(|found| found == made), "{}", answer.err);
    }
}

#[test]
fn engine_sbx_10_an_image_is_made_and_its_digest_is_told() {
    for chooser in Chooser::each() {
        let name = chooser.engine.name();
        let answer = chooser.run(&["image", "build", "--engine", name]);
        assert_eq!(answer.code, 0, "{}", answer.err);
        let digest = answer.out.trim();
        assert!(digest.starts_with("sha256:") && digest.len() == 71, "{}", answer.out);
        assert_eq!(chooser.run(&["image", "build"]).out.trim(), digest, "it is the same again");
    }
    let answer = User::new().run(&["image", "build"]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("--engine docker"), "{}", answer.err);
}

#[test]
fn engine_an_image_that_a_project_names_and_that_is_not_there_is_not_fetched() {
    for chooser in Chooser::each() {
        chooser.user.write(".fluffy/config.yaml", "sandbox:\n  image: example.invalid/no/such:1\n");
        let answer = chooser.run(&["sandbox", "run", "--", "true"]);
        assert_eq!(answer.code, 4, "{}", answer.err);
        assert!(answer.err.contains("No such image"), "{}", answer.err);
        assert!(answer.err.contains("pull"), "{}", answer.err);
    }
}

#[test]
fn engine_the_doctor_compares_the_drivers_and_says_which_is_used_and_why() {
    for chooser in Chooser::each() {
        let answer = chooser.run(&["doctor"]);
        let line = |name: &str| {
            let mut lines = answer.out.lines();
            let found = lines.find(|line| line.split_whitespace().nth(1) == Some(name));
            found.unwrap_or_else(|| panic!("no {name}: {}", answer.out)).to_owned()
        };
        let used = format!("{} (environment FLUFFY_SANDBOX_RUNTIME says so", chooser.engine);
        let root = rustix::process::geteuid().is_root();
        assert_eq!(answer.out.contains("not for tasks"), root, "{}", answer.out);
        assert!(answer.out.contains(&used), "{}", answer.out);
        assert!(line("native").contains("taken away in"), "{}", answer.out);
        let engine = line(chooser.engine.name());
        assert!(engine.starts_with("ok"), "{engine}");
        assert!(engine.contains("rootful") && engine.contains("taken away in"), "{engine}");
    }
}

#[test]
fn engine_a_task_of_roots_is_not_begun_with_an_engine_and_that_is_said() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for chooser in Chooser::each() {
        let path = chooser.user.project.path("transcript.jsonl");
        let text = "{\"v\":1,\"kind\":\"transcript\"}\n{\"text\":\"Hi.\",\"tool_calls\":[]}\n";
        std::fs::write(&path, text).unwrap();
        let provider = format!("replay:{}", path.display());
        let answer = chooser.run(&["run", "--provider", &provider, "a task"]);
        assert_eq!(answer.code, 4, "{} {}", answer.out, answer.err);
        let said = format!("{}{}", answer.out, answer.err);
        assert!(said.contains("a task that root begins") && said.contains("native"), "{said}");
    }
}

#[test]
fn engine_one_that_does_not_answer_or_is_another_is_named_with_what_helps() {
    let user = User::new();
    let tried = |engine: &str, host: &str| {
        let mut command = user.command(&["sandbox", "run", "--", "true"]);
        command.env("FLUFFY_SANDBOX_RUNTIME", engine);
        command.env("DOCKER_HOST", host).env("CONTAINER_HOST", host);
        Answer::of(command.output().unwrap())
    };
    // A socket at which nobody listens any more.
    let dead = user.project.path("dead.sock");
    drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
    let answer = tried("docker", &format!("unix://{}", dead.display()));
    assert_eq!(answer.code, 4, "{}", answer.err);
    assert!(answer.err.contains("Docker cannot be used"), "{}", answer.err);
    assert!(answer.err.contains("sandbox.runtime native"), "{}", answer.err);
    for (one, other) in [("docker", EngineKind::Podman), ("podman", EngineKind::Docker)] {
        if is_there(other) {
            let answer = tried(one, &format!("unix://{}", socket(other).display()));
            assert_eq!(answer.code, 4, "{}", answer.err);
            assert!(answer.err.contains("that listens there"), "{}", answer.err);
        }
    }
}

#[test]
fn engine_a_project_of_roots_is_not_changed_by_a_container_and_that_is_said() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for chooser in Chooser::each() {
        chown(chooser.user.project.root(), Some(0), Some(0)).unwrap();
        let answer = chooser.run(&["sandbox", "run", "--", "true"]);
        assert_eq!(answer.code, 4, "{}", answer.err);
        assert!(answer.err.contains("chown"), "{}", answer.err);
        // What changes nothing runs all the same, as nobody at all.
        let answer = chooser.run(&["sandbox", "run", "--read-only", "--", "cat", "kept.txt"]);
        assert_eq!((&*answer.out, answer.code), ("as it was", 0), "{}", answer.err);
    }
}
