//! The kernel in a container of its own, whose sandboxes are its siblings.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::worker::{Worker, eventually};
use crate::program::Answer;
use crate::task::lab::Run;

fn each() -> impl Iterator<Item = Worker> {
    Worker::each().map(|worker| {
        let secret = worker.lab.user.project.path("home/.ssh");
        std::fs::create_dir(&secret).unwrap();
        std::fs::write(secret.join("id"), "secret").unwrap();
        Worker { contained: true, ..worker }
    })
}

/// A kernel that is at work in a container.
fn kernel(worker: &Worker) -> i32 {
    let found = || worker.processes("--inside");
    eventually("a kernel is in a container", || !found().is_empty());
    found()[0]
}

#[test]
fn engine_sbx_9_slow_a_task_is_done_by_a_kernel_in_a_container_whose_sandboxes_are_its_siblings() {
    for worker in each() {
        let run = worker.work(&worker.lab.good_turns());
        run.assert_done();
        assert_eq!(worker.lab.user.read("sums.js"), worker.lab.language.solution());
        assert_eq!(worker.lab.git(&["status", "--porcelain"]), "");
        let verified = worker.run(&["audit", "verify"]);
        assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
        worker.leaves_nothing();
    }
}

#[test]
fn engine_sbx_9_slow_a_kernel_in_a_container_has_no_privilege_no_secret_and_no_way_to_the_engine() {
    if !rustix::process::geteuid().is_root() {
        // Nobody else can look into it.
        return;
    }
    for worker in each() {
        let mut child = worker.task(&worker.lab.good_turns());
        let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let pid = kernel(&worker);
        let socket = &worker.lab.user.project.state().join("fluffy/run");
        let listens = |end: &str| {
            let entries = std::fs::read_dir(socket).into_iter().flatten().flatten();
            entries.into_iter().any(|entry| entry.file_name().to_string_lossy().ends_with(end))
        };
        eventually("it listens", || listens(".sock"));
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let wanted = [
            "CapEff:\t0000000000000000",
            "CapBnd:\t0000000000000000",
            "Seccomp:\t2",
            "NoNewPrivs:\t1",
        ];
        for line in wanted {
            assert!(status.contains(line), "{line}: {status}");
        }
        assert!(!status.contains("Uid:\t0"), "{status}");
        let root = PathBuf::from(format!("/proc/{pid}/root"));
        let seen =
            |path: &Path| root.join(path.strip_prefix("/").unwrap()).symlink_metadata().is_ok();
        assert!(seen(&worker.lab.root().join("sums.js")), "the project is there");
        let home = worker.lab.user.project.path("home");
        for hidden in [home.join(".ssh"), worker.socket.clone(), "/root".into(), "/var/lib".into()]
        {
            let empty = || {
                std::fs::read_dir(root.join(hidden.strip_prefix("/").unwrap()))
                    .unwrap()
                    .next()
                    .is_none()
            };
            assert!(
                !seen(&hidden) || (hidden != home.join(".ssh") && empty()),
                "{}",
                hidden.display()
            );
        }
        let run = Run::of(Answer::of(child.wait_with_output().unwrap()));
        run.assert_done();
        worker.leaves_nothing();
    }
}

#[test]
fn engine_sbx_9_slow_a_container_with_a_kernel_ends_with_its_maker_and_the_task_goes_on_in_another()
{
    for worker in each() {
        let mut child = worker.task(&worker.lab.good_turns());
        let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let inside = kernel(&worker);
        eventually("there is a sandbox beside it", || worker.containers().len() > 1);
        assert!(
            worker.kill("kernel serve --idle", &["--inside", "\0boot\0"]),
            "its maker is there"
        );
        eventually("its kernel is gone", || !worker.processes("--inside").contains(&inside));
        let run = Run::of(Answer::of(child.wait_with_output().unwrap()));
        run.assert_done();
        assert_eq!(worker.lab.user.read("sums.js"), worker.lab.language.solution());
        worker.leaves_nothing();
    }
}
