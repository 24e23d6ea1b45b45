//! Using up the machine, and outliving the sandbox.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::case::{Case, attack, control, driven};
use crate::scene::{Scene, User, is_root};
use crate::spec::{Control, Drive};

const MIB: u64 = 1 << 20;

#[test]
fn attack_83_a_fork_bomb_fizzles_out() {
    attack("fork")
        .args(["60"])
        .row("as many processes", "EAGAIN", "ok")
        .sandbox(|drive| drive.limits.processes = Some(20))
        .check();
}

#[test]
fn attack_84_so_does_one_of_threads() {
    attack("threads")
        .args(["60"])
        .row("as many threads", "EAGAIN", "ok")
        .sandbox(|drive| drive.limits.processes = Some(20))
        .check();
}

#[test]
fn attack_85_memory_ends_at_the_limit() {
    attack("memory")
        .args(["192"])
        .row("as much memory", "ENOMEM", "ok")
        .silent()
        .sandbox(|drive| drive.limits.memory = Some(64 * MIB))
        .stopped(|_, seen| {
            // Either the group's limit ended it, or, without groups, its own refused it more.
            let ended = seen.end == "ended: the memory limit was reached";
            let refused = seen.stdout.contains("ENOMEM");
            assert!(ended || refused, "breach: {seen:?}");
        })
        .check();
}

/// Without control groups, memory is limited for each process and not for all: an ordinary user to whom none
/// were delegated has only that.
fn together(case: Case) {
    let case = case
        .row("as much together", "", "ok")
        .silent()
        .sandbox(|drive| drive.limits.memory = Some(64 * MIB))
        .stopped(|_, seen| {
            // Where the machine ended one process of many, the others went on.
            let reached = "the memory limit was reached".to_owned();
            assert!(seen.reached.contains(&reached), "breach: {seen:?}");
            assert!(!seen.stdout.contains("\"ok\""), "breach: {seen:?}");
        });
    case.check_as(if is_root() { &[User::Same] } else { &[] });
}

#[test]
fn attack_86_memory_of_many_processes_ends_at_the_limit() {
    together(attack("memory-of-many").args(["6", "32"]));
}

#[test]
fn attack_87_memory_in_files_without_a_name_ends_at_the_limit() {
    together(attack("memory-files").args(["6", "32"]));
}

#[test]
fn attack_88_files_end_at_the_limit() {
    attack("fill")
        .args(["12", "temporary=/tmp", "shared=/dev/shm", "project={project}"])
        .row("temporary", "ENOSPC", "ok")
        .row("shared", "ENOSPC", "ok")
        .row("project", "ENOSPC|EDQUOT", "ok")
        .sandbox(|drive| drive.limits.disk = Some(4 * MIB))
        // Every volume of theirs is on disk, where it is watched.
        .ends_on_engines("ended: the limit of disk space was reached")
        .check();
}

/// Writes to a volume on disk in some way, more than it may, and stays.
fn on_disk(name: &'static str) {
    attack(name)
        .args(["24", "{project}"])
        .row("as much together", "", "ok")
        .row("the attacker", "", "is still there")
        .silent()
        .sandbox(|drive| {
            drive.on_disk = true;
            drive.limits.disk = Some(8 * MIB);
            drive.limits.duration = Some(60_000);
        })
        .control(|control| control.poked = true)
        .stopped(|_, seen| assert_eq!(seen.end, "ended: the limit of disk space was reached"))
        .check();
}

#[test]
fn attack_89_a_volume_on_disk_ends_at_the_limit() {
    on_disk("fill-and-stay");
}

#[test]
fn attack_89_a_directory_that_nobody_may_enter_ends_at_the_limit() {
    on_disk("fill-closed");
}

#[test]
fn attack_89_a_directory_that_is_very_deep_ends_at_the_limit() {
    on_disk("fill-deep");
}

#[test]
fn attack_90_a_large_file_ends_at_the_limit() {
    attack("one-large-file")
        .args(["temporary=/tmp", "project={project}"])
        .row("temporary", "ENOSPC|EFBIG", "ok")
        .row("project", "ENOSPC|EFBIG", "ok")
        .sandbox(|drive| drive.limits.disk = Some(4 * MIB))
        .check();
}

#[test]
fn attack_91_the_number_of_files_ends_at_the_limit() {
    attack("many-files")
        .args(["600", "temporary=/tmp", "shared=/dev/shm", "project={project}"])
        .row("temporary", "ENOSPC", "ok")
        .row("shared", "ENOSPC", "ok")
        .row("project", "ENOSPC", "ok")
        .sandbox(|drive| drive.limits.files = Some(200))
        .ends_on_engines("ended: the limit of disk space was reached")
        .check();
}

#[test]
fn attack_92_open_files_end_at_the_limit() {
    attack("open-files")
        .args(["300"])
        .row("as many open files", "EMFILE", "ok")
        .sandbox(|drive| drive.limits.open_files = Some(64))
        .check();
}

#[test]
fn attack_93_a_flood_of_output_is_cut() {
    attack("flood")
        .args(["4"])
        .row("printed", "all", "all")
        .silent()
        .sandbox(|drive| drive.limits.captured = Some(MIB))
        .stopped(|_, seen| {
            assert!(seen.cut, "{}", seen.end);
            assert!(seen.stdout.len() as u64 <= MIB, "{} bytes", seen.stdout.len());
            assert!(seen.stderr.len() as u64 <= MIB, "{} bytes", seen.stderr.len());
        })
        .works(|_, seen| assert!(seen.stdout.len() as u64 > 4 * MIB, "dead probe"))
        .check();
}

#[test]
fn attack_94_a_job_that_ignores_signals_ends_at_its_deadline() {
    attack("stay")
        .row("the attacker", "", "is still there")
        .silent()
        .sandbox(|drive| drive.limits.duration = Some(300))
        .control(|control| control.poked = true)
        .stopped(|_, seen| assert_eq!(seen.end, "ended: the time limit was reached"))
        .check();
}

#[test]
fn attack_95_a_job_that_stops_itself_ends_at_its_deadline() {
    attack("stop-itself")
        .silent()
        .sandbox(|drive| drive.limits.duration = Some(300))
        .stopped(|_, seen| assert_eq!(seen.end, "ended: the time limit was reached"))
        .works(|_, seen| assert_eq!(seen.end, "stopped", "dead probe"))
        .check();
}

#[test]
fn attack_96_a_daemon_does_not_outlive_its_job() {
    attack("daemon")
        .row("leave a process", "ok", "ok")
        .works(|_, seen| assert!(seen.survivors, "dead probe"))
        .check();
}

#[test]
fn attack_97_nothing_outlives_a_kernel_that_is_killed() {
    let user = User::ordinary();
    let scene = Scene::new(user);
    // The control: a process whose parent is killed goes on.
    let alone = Control {
        scene: scene.path().to_owned(),
        attack: vec!["kill-parent".into()],
        mortal_parent: true,
        ..Control::default()
    };
    let seen = control(&scene, user, &alone);
    assert!(seen.stdout.contains("is still there"), "dead probe: {seen:?}");
    for user in User::all() {
        let scene = Scene::new(user);
        let drive = Drive {
            scene: scene.path().to_owned(),
            attack: vec!["wait".into(), scene.token()],
            announced: true,
            ..Drive::default()
        };
        let mut kernel = driven(&scene, user, &drive);
        let mut line = String::new();
        BufReader::new(kernel.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "announced\n");
        let inside = scene.processes();
        assert!(!inside.is_empty(), "the attack is seen from outside while it runs");
        let pids = inside.iter().map(|pid| Pid::from_raw(pid.cast_signed()).unwrap());
        let held: Vec<_> = pids.map(|pid| pidfd_open(pid, PidfdFlags::empty()).unwrap()).collect();
        let groups = groups_of(inside[0]);
        kernel.kill().unwrap();
        kernel.wait().unwrap();
        for process in &held {
            let mut waiting = [PollFd::new(process, PollFlags::IN)];
            let limit = Timespec { tv_sec: 20, tv_nsec: 0 };
            assert_eq!(poll(&mut waiting, Some(&limit)), Ok(1), "breach: it lives on");
        }
        assert_eq!(scene.processes(), [0_u32; 0], "breach");
        // The next kernel takes away what is left.
        let next = Drive { attack: vec!["rights".into()], announced: false, ..drive };
        assert_eq!(crate::case::drive(&scene, user, &next).error, None);
        let left: Vec<_> = groups.iter().filter(|group| group.exists()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// The control groups that were made for a process, where they are mounted in the usual place.
fn groups_of(pid: u32) -> Vec<PathBuf> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let lines = groups.lines().filter(|line| line.contains("fluffy"));
    let parts = lines.map(|line| line.splitn(3, ':').skip(1).collect::<Vec<_>>());
    parts
        .map(|parts| {
            let hierarchy = if parts[0].is_empty() { "unified" } else { parts[0] };
            Path::new("/sys/fs/cgroup").join(hierarchy).join(parts[1].trim_start_matches('/'))
        })
        .filter(|path| path.exists())
        .collect()
}
