//! Control groups on a made-up tree, and on this machine's own where that is allowed.
#![expect(unsafe_code, reason = "a child enters its group between fork and exec")]
#![expect(clippy::disallowed_methods, reason = "tests start processes in groups and make trees up")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};

use fluffy_base::ByteSize;
use tempfile::TempDir;

use super::group::Used;
use super::*;
use crate::template::Template;

fn limits() -> Limits {
    Limits {
        memory: ByteSize::from_bytes(64 << 20),
        cpu: 500,
        processes: 20,
        ..Template::CodeExecutor.limits()
    }
}

/// A machine with version 2 alone, mounted in a directory, with this process in `/a/b`.
struct Made(TempDir);

impl Made {
    fn new() -> Self {
        let made = Self(TempDir::new().unwrap());
        for path in ["", "a", "a/b"] {
            fs::create_dir_all(made.path(path)).unwrap();
            made.put(path, "cgroup.procs", "");
            made.put(path, "cgroup.controllers", "cpuset cpu io memory pids\n");
            made.put(path, "cgroup.subtree_control", "");
        }
        made
    }

    fn path(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.0.path().to_owned() } else { self.0.path().join(path) }
    }

    fn put(&self, path: &str, name: &str, text: &str) {
        fs::write(self.path(path).join(name), text).unwrap();
    }

    /// Lets nobody write a file, root neither.
    fn block(&self, path: &str, name: &str) {
        let file = self.path(path).join(name);
        fs::remove_file(&file).unwrap();
        fs::create_dir(file).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    fn find(&self) -> Groups {
        let mounts = format!("30 23 0:26 / {} rw - cgroup2 cgroup2 rw\n", self.0.path().display());
        Groups::find("0::/a/b\n", &mounts)
    }
}

#[test]
fn version_2_gives_everything_below_a_group_that_hands_its_controllers_down() {
    let made = Made::new();
    let groups = made.find();
    assert_eq!(groups.missing(), []);
    assert_eq!(made.read("a/b/cgroup.subtree_control"), "+memory +pids +cpu");
    groups.create("fluffy-1", &limits()).unwrap();
    assert_eq!(made.read("a/b/fluffy-1/memory.max"), "67108864");
    assert_eq!(made.read("a/b/fluffy-1/memory.oom.group"), "1");
    assert_eq!(made.read("a/b/fluffy-1/pids.max"), "20");
    assert_eq!(made.read("a/b/fluffy-1/cpu.max"), "50000 100000");
}

#[test]
fn a_group_with_members_sends_us_to_the_top_and_then_to_what_is_delegated() {
    let made = Made::new();
    made.block("a/b", "cgroup.subtree_control");
    assert_eq!(made.find().hierarchies[0].parent, made.path(""));
    made.block("", "cgroup.procs");
    assert_eq!(made.find().hierarchies[0].parent, made.path("a"));
    assert_eq!(made.read("a/cgroup.subtree_control"), "+memory +pids +cpu");
}

#[test]
fn what_nobody_hands_down_is_missing_and_said_to_be() {
    let made = Made::new();
    for path in ["", "a", "a/b"] {
        made.block(path, "cgroup.subtree_control");
    }
    let groups = made.find();
    let missing: Vec<Part> = groups.missing().iter().map(|missing| missing.part).collect();
    assert_eq!(missing, [Part::Memory, Part::Processes, Part::Cpu]);
    assert!(groups.missing()[0].to_string().starts_with("no memory limit: `"));
    assert!(groups.has(Part::Freezer));
}

#[test]
fn swap_is_none_where_it_is_counted() {
    let made = Made::new();
    made.put("a", "memory.swap.max", "max");
    let mut group = Group::default();
    group.add(made.path("a"), Version::Two, vec![Part::Memory]);
    group.limit(&limits()).unwrap();
    assert_eq!(made.read("a/memory.swap.max"), "0");
}

#[test]
fn usage_of_version_2_is_read_as_far_as_it_is_there() {
    let made = Made::new();
    let mut group = Group::default();
    group.add(made.path("a"), Version::Two, Part::ALL.to_vec());
    assert_eq!(group.usage(), Used::default());
    made.put("a", "memory.current", "5\n");
    made.put("a", "memory.peak", "9\n");
    made.put("a", "memory.events", "low 0\noom 4\noom_kill 3\noom_group_kill 1\n");
    made.put("a", "pids.current", "2\n");
    made.put("a", "pids.events", "max 7\n");
    made.put("a", "cpu.stat", "usage_usec 1500\nuser_usec 1000\n");
    let expected = Used {
        cpu: Some(std::time::Duration::from_micros(1500)),
        memory: Some(5),
        memory_peak: Some(9),
        processes: Some(2),
        oom_kills: Some(3),
        processes_refused: Some(7),
    };
    assert_eq!(group.usage(), expected);
}

#[test]
fn a_halt_is_over_when_the_events_say_so() {
    let made = Made::new();
    let mut group = Group::default();
    group.add(made.path("a"), Version::Two, vec![Part::Freezer]);
    made.put("a", "cgroup.events", "populated 1\nfrozen 1\n");
    group.freeze().unwrap();
    assert_eq!(made.read("a/cgroup.freeze"), "1");
    made.put("a", "cgroup.events", "populated 1\nfrozen 0\n");
    group.thaw().unwrap();
    assert_eq!(made.read("a/cgroup.freeze"), "0");
}

#[test]
fn a_name_leads_nowhere_else() {
    let groups = Made::new().find();
    for name in ["", ".", "..", "a/b", "/a", "a b", "cgroup.procs", "a\0", &"a".repeat(201)] {
        assert!(matches!(groups.create(name, &limits()), Err(GroupError::Name(_))), "{name:?}");
    }
    assert_eq!(groups.remove_stale(""), Stale::default());
    assert_eq!(groups.remove_stale("../"), Stale::default());
}

#[test]
fn a_group_that_is_there_already_is_not_ours() {
    let made = Made::new();
    let groups = made.find();
    fs::create_dir(made.path("a/b/taken")).unwrap();
    assert!(matches!(groups.create("taken", &limits()), Err(GroupError::Refused { .. })));
    assert!(made.path("a/b/taken").exists());
}

#[test]
fn mounts_are_read_as_containers_and_old_machines_have_them() {
    let own =
        "5:cpu,cpuacct:/docker/x/y\n4:memory:/docker/x\n3:pids:/docker/xx\n1:name=systemd:/\n";
    let info = "1 0 0:1 /docker/x /a\\040b rw - cgroup cgroup rw,memory\n\
                2 0 0:1 /docker/x /c rw shared:3 - cgroup cgroup rw,cpu,cpuacct\n\
                3 0 0:1 /docker/x /d rw - cgroup cgroup rw,pids\n\
                4 0 0:1 / /e rw - cgroup cgroup rw,name=systemd\n\
                5 0 0:1 / /f rw - ext4 /dev/x rw\n\
                6 0 0:1 / /g rw - cgroup2 cgroup2 rw\n\
                nonsense\n - cgroup2\n";
    let mounts: Vec<_> =
        find::mounts(own, info).into_iter().map(|mount| (mount.at, mount.own)).collect();
    let path = |path: &str| PathBuf::from(path);
    let expected =
        [(path("/a b"), Some(path("/a b"))), (path("/c"), Some(path("/c/y"))), (path("/d"), None)];
    assert_eq!(mounts, expected);
    let outside = find::mounts("0::/../x\n", "6 0 0:1 / /g rw - cgroup2 cgroup2 rw\n");
    assert_eq!(outside[0].own, None);
    let groups = Groups::find("", "");
    assert_eq!(groups.missing().len(), Part::ALL.len());
    assert_eq!(groups.remove_stale("fluffy-"), Stale::default());
}

/// This machine's hierarchies, if all parts can be had; twice if version 1 can do without version 2.
fn real() -> Vec<Groups> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let old: Vec<&str> = mounts.lines().filter(|line| !line.contains(" - cgroup2 ")).collect();
    let mut all = vec![Groups::find(&own, &mounts), Groups::find(&own, &old.join("\n"))];
    all.retain(|groups| groups.missing().is_empty());
    all
}

/// A group of the machine that is gone at the end of the test.
struct Real(Group);

impl Real {
    fn new(groups: &Groups, limits: &Limits) -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static MADE: AtomicU32 = AtomicU32::new(0);
        let count = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("fluffytest-{}-{count}", std::process::id());
        Self(groups.create(&name, limits).unwrap())
    }

    fn spawn(&self, program: &str, args: &[&str]) -> Child {
        let open = |path| fs::OpenOptions::new().write(true).open(path).unwrap();
        let entrances: Vec<_> = self.0.join_paths().into_iter().map(open).collect();
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // SAFETY: one write for each hierarchy is all that happens between fork and exec.
        unsafe {
            command.pre_exec(move || {
                for entrance in &entrances {
                    if libc::write(entrance.as_raw_fd(), b"0".as_ptr().cast(), 1) != 1 {
                        return Err(io::Error::last_os_error());
                    }
                }
                Ok(())
            });
        }
        command.spawn().unwrap()
    }

    fn end(self) {
        let paths = self.0.join_paths();
        assert!(paths.len() >= 3);
        self.0.remove().unwrap();
        self.0.remove().unwrap();
        assert!(paths.iter().all(|path| !path.parent().unwrap().exists()));
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        drop(self.0.remove());
    }
}

#[test]
fn a_process_that_takes_too_much_memory_is_killed_and_counted() {
    for groups in real() {
        let group = Real::new(&groups, &limits());
        let greedy = ["if=/dev/zero", "of=/dev/null", "bs=256M", "count=1"];
        let status = group.spawn("dd", &greedy).wait().unwrap();
        let used = group.0.usage();
        assert_eq!(status.signal(), Some(libc::SIGKILL), "{used:?}");
        assert!(used.oom_kills >= Some(1), "{used:?}");
        assert!(used.memory_peak <= Some(64 << 20), "{used:?}");
        assert!(used.memory_peak >= Some(32 << 20), "{used:?}");
        group.end();
    }
}

#[test]
fn a_process_too_many_is_refused_and_counted() {
    for groups in real() {
        let group = Real::new(&groups, &Limits { processes: 3, ..limits() });
        let mut shell = group.spawn("sh", &["-c", "cat & cat & cat & cat & cat & wait"]);
        assert!(!shell.wait().unwrap().success());
        let used = group.0.usage();
        assert!(used.processes_refused >= Some(1), "{used:?}");
        group.end();
    }
}

#[test]
fn the_share_of_the_processor_is_set_and_time_is_counted() {
    for groups in real() {
        let group = Real::new(&groups, &limits());
        let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        assert!(group.spawn("sh", &["-c", script]).wait().unwrap().success());
        let used = group.0.usage();
        assert!(used.cpu > Some(std::time::Duration::from_millis(1)), "{used:?}");
        let quota = |name: &str| {
            let files = group.0.join_paths().into_iter().map(|path| path.with_file_name(name));
            files.filter_map(|path| fs::read_to_string(path).ok()).next()
        };
        let (one, two) = (quota("cpu.cfs_quota_us"), quota("cpu.max"));
        assert!(one == Some("50000\n".into()) || two == Some("50000 100000\n".into()));
        group.end();
    }
}

#[test]
fn a_halted_process_goes_on_where_it_was() {
    for groups in real() {
        let group = Real::new(&groups, &limits());
        let mut cat = group.spawn("cat", &[]);
        let (mut to, mut from) = (cat.stdin.take().unwrap(), cat.stdout.take().unwrap());
        let mut echo = |text: &[u8]| {
            let mut back = vec![0; text.len()];
            to.write_all(text).unwrap();
            from.read_exact(&mut back).unwrap();
            back == text
        };
        assert!(echo(b"before"));
        group.0.freeze().unwrap();
        assert_eq!(group.0.usage().processes, Some(1));
        group.0.freeze().unwrap();
        group.0.thaw().unwrap();
        assert!(echo(b"after"));
        group.0.thaw().unwrap();
        drop(to);
        assert!(cat.wait().unwrap().success());
        group.end();
    }
}

/// Starts a shell with children that ignore whatever can be ignored, one of them in a session of its own
/// and one that starts others all the time.
fn stubborn(group: &Real) -> Child {
    let script = "trap '' TERM INT HUP; cat & setsid cat & (while :; do /bin/true; done) &
        echo started; cat";
    let mut shell = group.spawn("sh", &["-c", script]);
    let mut line = [0; 8];
    shell.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    assert_eq!(&line, b"started\n");
    shell
}

#[test]
fn a_kill_spares_nobody_halted_or_not() {
    for groups in real() {
        for halted in [false, true] {
            let group = Real::new(&groups, &limits());
            let mut shell = stubborn(&group);
            if halted {
                group.0.freeze().unwrap();
            }
            group.0.kill().unwrap();
            assert_eq!(group.0.members().len(), 0);
            assert_eq!(shell.wait().unwrap().signal(), Some(libc::SIGKILL));
            group.0.kill().unwrap();
            group.end();
        }
    }
}

#[test]
fn whoever_is_in_a_group_that_is_removed_is_killed() {
    for groups in real() {
        let group = Real::new(&groups, &limits());
        let mut shell = stubborn(&group);
        group.end();
        assert_eq!(shell.wait().unwrap().signal(), Some(libc::SIGKILL));
    }
}

#[test]
fn a_sweep_takes_what_begins_with_its_name_and_nothing_else() {
    for groups in real() {
        let (one, two) = (Real::new(&groups, &limits()), Real::new(&groups, &limits()));
        let (mut dying, mut living) = (stubborn(&one), stubborn(&two));
        let name = |group: &Real| {
            let path = group.0.join_paths().remove(0);
            path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
        };
        let stale = groups.remove_stale(&name(&one));
        assert_eq!((stale.groups, stale.left), (1, 0));
        assert!(stale.processes >= 1);
        assert_eq!(dying.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert!(living.try_wait().unwrap().is_none());
        assert_eq!(groups.remove_stale(&name(&one)), Stale::default());
        two.end();
        living.wait().unwrap();
    }
}

/// What an ordinary user finds. Run as one by the test below.
#[test]
#[ignore = "runs as the user that another test becomes"]
fn a_user_finds_nothing() {
    let groups = Groups::here().unwrap();
    assert_eq!(groups.missing().len(), Part::ALL.len(), "{:?}", groups.missing());
    for missing in groups.missing() {
        assert!(!missing.why.is_empty(), "{missing}");
    }
    let group = groups.create("fluffytest-user", &limits()).unwrap();
    assert_eq!(group.usage(), Used::default());
    assert!(matches!(group.freeze(), Err(GroupError::Missing(Part::Freezer))));
    let entrances = group.entrances().unwrap();
    assert!(entrances.tasks.is_empty() && entrances.unified.is_none());
    group.kill().unwrap();
    group.remove().unwrap();
    assert_eq!(groups.remove_stale("fluffytest-user"), Stale::default());
}

#[test]
fn an_ordinary_user_is_told_what_is_missing() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // By its place in `/proc`, for the way to the binary itself may be closed to that user.
    let output = Command::new("/proc/self/exe")
        .args(["native::cgroup::tests::a_user_finds_nothing", "--exact", "--ignored"])
        .current_dir("/")
        .gid(65534)
        .uid(65534)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
}
