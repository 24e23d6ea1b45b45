//! What a job can change and see, and that it does not run where that cannot be held.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fluffy_base::ProjectPath;
use fluffy_sandbox::harvest::Kind;
use fluffy_sandbox::{
    Changes, Job, Network, Parts, Runtime, RuntimeError, Store, Template, Volume, Workspace,
};

use super::scene::{
    Scene, Seen, beside, chain, content, executor, narrowed, over, refused, run, succeeds,
};

/// Tries to write everywhere that it should not be able to. What it is told to try may be writable where
/// the sandbox has files of its own in its place; the host tells.
const WRITE_ELSEWHERE: &str = r#"
for path in "$@" /var/tmp /tmp; do
    echo breach > "$path/fluffy-breach"; mkdir "$path/fluffy-breach-dir"
done 2>/dev/null
for path in / /etc /usr /usr/bin /bin /lib /root /home /var /proc /proc/sys/kernel /sys /opt /srv /boot; do
    echo breach > "$path/fluffy-breach" && echo "wrote to $path"
    mkdir "$path/fluffy-breach-dir" && echo "made a directory in $path"
done 2>/dev/null
echo breach >> /etc/passwd && echo "wrote to /etc/passwd"
chmod 777 / /etc /usr 2>/dev/null && echo "changed the mode of a directory"
exit 0
"#;

/// Promise 1: in an overlay, changes and deletions are in the volume and nowhere else.
pub fn p1_changes_of_an_overlay_are_in_its_volume_and_nowhere_else(runtime: &dyn Runtime) {
    for store in [Store::Memory, Store::Disk] {
        let scene = Scene::new();
        let before = scene.tree();
        let volume = runtime.volume(store).unwrap();
        assert_eq!(volume.store(), store);
        let script = "set -e
            echo after > changed; echo new > created; rm deleted; rm -r folder
            mkdir -p deep/er; echo deep > deep/er/file; mv kept moved
            cat changed created";
        let out = succeeds(runtime, over(&scene, &volume), scene.script(script));
        assert_eq!(out, "after\nnew\n", "{store:?}");
        let expected = [
            "+changed after",
            "+created new",
            "-deleted",
            "-folder",
            "-kept",
            "+deep/er/file deep",
            "+moved kept",
        ];
        let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        let mut found = content(&volume, Kind::Overlay);
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{store:?}");
        assert_eq!(scene.tree(), before, "{store:?}");
    }
}

/// Promise 1: a workspace that cannot be changed is not, and `/output` goes to the volume.
pub fn p1_a_read_only_workspace_is_not_changed_and_output_is_in_the_volume(runtime: &dyn Runtime) {
    for store in [Store::Memory, Store::Disk] {
        let scene = Scene::new();
        let before = scene.tree();
        let volume = runtime.volume(store).unwrap();
        let script = "set -e
            ! echo x > changed; ! rm deleted; ! mkdir new; ! mv kept moved
            mkdir /output/sub; cp changed /output/sub/copy; echo mine > /output/file";
        succeeds(runtime, beside(&scene, &volume), scene.script(script));
        let mut found = content(&volume, Kind::Output);
        found.sort();
        assert_eq!(found, ["+file mine", "+sub/copy before"], "{store:?}");
        assert_eq!(scene.tree(), before, "{store:?}");
    }
    let scene = Scene::new();
    let before = scene.tree();
    let config = executor().with_workspace(Workspace::read_only(&scene.project())).unwrap();
    let script = "! echo x > changed; ! rm -r folder; ! touch new; ! mkdir /output; cat changed";
    assert_eq!(succeeds(runtime, config, scene.script(script)), "before\n");
    assert_eq!(scene.tree(), before);
}

/// Promise 1: nothing else of the host can be written to, whatever the workspace is.
pub fn p1_nothing_but_the_volume_can_be_written_to(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let before = scene.tree();
    let others = ["sibling", "home", "home/.ssh", ""].map(|name| scene.path(name));
    let project = scene.project();
    let memory = runtime.volume(Store::Memory).unwrap();
    let disk = runtime.volume(Store::Disk).unwrap();
    let configs = [
        (executor(), true),
        (executor().with_workspace(Workspace::read_only(&project)).unwrap(), true),
        (beside(&scene, &memory), true),
        (over(&scene, &disk), false),
    ];
    for (config, with_project) in configs {
        let mut job = scene.script(WRITE_ELSEWHERE).args(&others);
        if with_project {
            job = job.args([&project]);
        }
        let outcome = run(runtime, config, job);
        assert_eq!(String::from_utf8_lossy(&outcome.stdout.bytes), "");
        assert_eq!(scene.tree(), before);
    }
    for path in ["/", "/etc", "/usr", "/var/tmp", "/tmp", "/dev", "/home"] {
        assert!(!Path::new(path).join("fluffy-breach").exists(), "{path}");
    }
}

/// Promise 1: later layers hide earlier ones, and none of them is changed.
pub fn p1_layers_hide_each_other_and_stay_as_they_are(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let before = scene.tree();
    let layers = vec![scene.project(), scene.path("sibling")];
    let volume = runtime.volume(Store::Memory).unwrap();
    for changes in [Changes::Refused, Changes::Overlay(volume.clone())] {
        let layers = layers.clone();
        let workspace = Workspace { at: scene.project(), layers, changes };
        let config = executor().with_workspace(workspace).unwrap();
        let out = succeeds(runtime, config, scene.script("cat kept file; echo x > file; true"));
        assert_eq!(out, "kept\nof somebody else\n");
        assert_eq!(scene.tree(), before);
    }
    assert_eq!(content(&volume, Kind::Overlay), ["+file x"]);
}

/// Promise 2: of the host's files a job sees the system's programs, what is shown, and the workspace.
pub fn p2_only_what_is_shown_is_seen(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let secret = scene.path("home/.ssh/id_ed25519");
    let script = r#"ls -A "$(dirname "$PWD")"; cat "$@" 2>/dev/null
        for link in /proc/[0-9]*/root /proc/[0-9]*/cwd /dev/fd/[0-9]*; do cat "$link$1" 2>/dev/null; done
        grep -rlsF secret-of-token /etc /home /tmp /var /run /srv /opt 2>/dev/null; true"#;
    let files = [secret.clone(), "/etc/shadow".into(), scene.path("sibling/file")];
    let config = executor().with_workspace(Workspace::read_only(&scene.project())).unwrap();
    let out = succeeds(runtime, config, scene.script(script).args(&files));
    assert_eq!(out, "project\n");
    // And what is shown can be read, so that the above says something.
    let config = executor().showing(&secret).unwrap().showing(&scene.path("sibling")).unwrap();
    let job = Job::new("cat").args([&secret, &scene.path("sibling/file")]);
    let expected = format!("{}of somebody else\n", scene.secret());
    assert_eq!(succeeds(runtime, config, job), expected);
    let config = executor().showing(&scene.path("sibling")).unwrap();
    let job = scene.script("! echo x >> \"$1\"").args([scene.path("sibling/file")]);
    succeeds(runtime, config, job);
}

/// Promise 1: a link in what is shown leads nowhere outside, also while the sandbox is set up.
pub fn p1_links_in_what_is_shown_lead_nowhere_outside(runtime: &dyn Runtime) {
    use std::os::unix::fs::symlink;
    let scene = Scene::new();
    let (shown, trap) = (scene.path("sibling"), scene.path("trap"));
    std::fs::create_dir(&trap).unwrap();
    symlink(&trap, shown.join("absolute")).unwrap();
    symlink("../trap", shown.join("relative")).unwrap();
    symlink("../../../../../../../../..", shown.join("up")).unwrap();
    let before = scene.tree();
    let below_up = shown.join("up").join(trap.strip_prefix("/").unwrap());
    for link in [shown.join("absolute"), shown.join("relative"), below_up] {
        let at = link.join("made/below");
        let volume = runtime.volume(Store::Memory).unwrap();
        let workspace =
            Workspace { at: at.clone(), ..Workspace::overlay(&scene.project(), volume) };
        let configs = [
            executor().with_home(&at),
            executor().with_workspace(workspace),
            executor().showing(&link),
        ];
        for config in configs {
            let config = config.unwrap().showing(&shown).unwrap();
            // Whether it can be set up at all does not matter.
            drop(runtime.run(config, scene.script("true"), Arc::new(())));
            assert_eq!(scene.tree(), before, "{}", link.display());
        }
    }
}

/// Promise 2: a home is empty, private and writable.
pub fn p2_a_home_is_empty_private_and_writable(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let (before, home) = (scene.tree(), scene.path("home"));
    let config = executor().with_home(&home).unwrap();
    let script = "set -e; cd; pwd; ls -A; echo mine > .profile; cat .profile";
    let out = succeeds(runtime, config, scene.script(script));
    assert_eq!(out, format!("{}\nmine\n", home.display()));
    assert_eq!(scene.tree(), before);
}

/// Promise 2: nothing of the caller's environment is passed on, and what the job is given arrives.
pub fn p2_the_environment_is_the_jobs_own(runtime: &dyn Runtime) {
    let known = ["HOME", "PATH", "USER", "LOGNAME", "LANG", "TERM", "TMPDIR", "PWD", "_", "SHLVL"];
    let ours: Vec<String> =
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    assert!(ours.iter().any(|name| name.starts_with("CARGO")), "nothing to keep back: {ours:?}");
    let job = Job::new("env").env("GIVEN", "a = b\nc");
    let out = succeeds(runtime, executor(), job);
    assert!(out.contains("GIVEN=a = b\nc\n"), "{out}");
    for name in ours.iter().filter(|name| !known.contains(&name.as_str())) {
        assert!(!out.lines().any(|line| line.starts_with(&format!("{name}="))), "{name}: {out}");
    }
}

/// Promise 2: a job sees its own processes and nobody else's, and its own host name.
pub fn p2_only_its_own_processes_are_seen(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let script = r"cat /proc/[0-9]*/cmdline | tr '\0' ' '; echo; ls -d /proc/[0-9]* | wc -l; cat /proc/sys/kernel/hostname";
    let out = succeeds(runtime, executor(), scene.script(script));
    let program = std::env::current_exe().unwrap();
    assert!(!out.contains(program.to_str().unwrap()), "{out}");
    let mut lines = out.lines().rev();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert_ne!(lines.next().unwrap(), host.trim());
    let count: usize = lines.next().unwrap().trim().parse().unwrap();
    assert!(count < 10, "{out}");
}

/// Promise 5: without its layer, its working directory or what it is to be shown, a job does not run.
pub fn p5_a_job_whose_surroundings_are_lacking_does_not_run(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let lacking = scene.path("lacking");
    let workspace = |layers: Vec<PathBuf>, volume: &Volume| {
        let changes = Changes::Overlay(volume.clone());
        executor().with_workspace(Workspace { at: scene.project(), layers, changes }).unwrap()
    };
    let volume = || runtime.volume(Store::Memory).unwrap();
    let plain = || scene.script("echo ran; echo ran > ran");
    let mut elsewhere = plain();
    elsewhere.cwd = Some(lacking.clone());
    let mut file = plain();
    file.cwd = Some(scene.path("project/kept"));
    let volumes = [volume(), volume(), volume(), volume(), volume(), volume()];
    let [one, two, three, four, five, six] = &volumes;
    let cases = [
        (workspace(vec![lacking.clone()], one), plain(), one),
        (workspace(vec![scene.project(), lacking.clone()], two), plain(), two),
        (workspace(vec![scene.path("project/kept")], three), plain(), three),
        (over(&scene, four).showing(&lacking).unwrap(), plain(), four),
        (over(&scene, five), elsewhere, five),
        (over(&scene, six), file, six),
    ];
    for (number, (config, job, volume)) in cases.into_iter().enumerate() {
        let error = did_not_run(runtime, config, job, volume);
        let kind = matches!(error, RuntimeError::Setup(_) | RuntimeError::Config(_));
        assert!(kind, "case {number}: {error:?}");
    }
    scene.is_quiet();
}

/// Promise 5: a program that is not there or cannot be run is named.
pub fn p5_a_program_that_cannot_be_run_is_named(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let path = |name: &str| scene.path(&format!("project/{name}")).into_os_string();
    let plain = scene.path("project/kept");
    std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o644)).unwrap();
    let programs = [
        "no-such-program".into(),
        path("lacking"),
        path("kept"),
        path("folder"),
        path("kept/below"),
    ];
    for program in programs {
        let volume = runtime.volume(Store::Memory).unwrap();
        let error = did_not_run(runtime, over(&scene, &volume), Job::new(&program), &volume);
        match error {
            RuntimeError::Program { program: named, .. } => {
                assert_eq!(named, program.to_str().unwrap());
            }
            other => panic!("{program:?}: {}", chain(&other)),
        }
    }
    let odd = Job::new("sh").args(["a\0b"]);
    let volume = runtime.volume(Store::Memory).unwrap();
    did_not_run(runtime, over(&scene, &volume), odd, &volume);
}

/// Promise 5: a volume serves one sandbox, and a second job with it does not run.
pub fn p5_a_volume_serves_once(runtime: &dyn Runtime) {
    for store in [Store::Memory, Store::Disk] {
        let scene = Scene::new();
        let volume = runtime.volume(store).unwrap();
        succeeds(runtime, over(&scene, &volume), scene.script("echo first > created"));
        let (seen, printed) = Seen::new();
        let second = scene.script("echo ran; echo second > created");
        refused(runtime.run(over(&scene, &volume), second, Arc::new(seen)));
        assert!(printed.recv().is_err(), "{store:?}: it ran");
        assert_eq!(content(&volume, Kind::Overlay), ["+created first"], "{store:?}");
    }
}

/// Lesson L21: whatever a caller asks for, a job gets what its template gives.
pub fn lesson_l21_no_caller_gets_more_than_the_template_gives(runtime: &dyn Runtime) {
    let config = narrowed(|limits| {
        limits.open_files = u64::MAX;
        limits.processes = u32::MAX;
        limits.memory = fluffy_base::ByteSize::from_bytes(u64::MAX);
        limits.duration = None;
    });
    assert_eq!(config.limits(), &Template::CodeExecutor.limits());
    let script =
        "ulimit -n; ulimit -c; grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status";
    let out = succeeds(runtime, config, Job::new("sh").args(["-c", script]));
    let words: Vec<&str> = out.split_whitespace().collect();
    let expected = [
        "4096",
        "0",
        "CapEff:",
        "0000000000000000",
        "CapBnd:",
        "0000000000000000",
        "NoNewPrivs:",
        "1",
        "Seccomp:",
        "2",
    ];
    assert_eq!(words, expected);
    for template in [Template::CodeExecutor, Template::PolicySandbox] {
        let list = Arc::new(fluffy_sandbox::proxy::AllowList::parse(["example.org"]).unwrap());
        assert!(
            fluffy_sandbox::Config::of(template).with_network(Network::Restricted(list)).is_err()
        );
    }
}

/// Runs a job that must be refused: it says nothing and writes nothing.
#[track_caller]
fn did_not_run(
    runtime: &dyn Runtime,
    config: fluffy_sandbox::Config,
    job: Job,
    volume: &Volume,
) -> RuntimeError {
    let (seen, printed) = Seen::new();
    let error = refused(runtime.run(config, job, Arc::new(seen)));
    assert!(printed.recv().is_err(), "it ran");
    if volume.content().is_some() {
        assert_eq!(content(volume, Kind::Overlay), Vec::<String>::new());
    }
    error
}

/// Promises 1 and 2: of a workspace in parts, only those are seen, and what changes in some of them is in the volume
/// under the names that it has in the workspace. A part that is a link is none.
pub fn p1_of_a_workspace_in_parts_nothing_else_is_seen_or_changed(runtime: &dyn Runtime) {
    let part = |text: &str| ProjectPath::parse(text).unwrap();
    for store in [Store::Memory, Store::Disk] {
        let scene = Scene::new();
        for name in ["project/one/sub", "project/two/deep"] {
            std::fs::create_dir_all(scene.path(name)).unwrap();
        }
        std::os::unix::fs::symlink("../sibling", scene.path("project/linked")).unwrap();
        let before = scene.tree();
        let parts =
            Parts { seen: vec![part("folder")], changed: vec![part("one"), part("two/deep")] };
        let volume = runtime.volume(store).unwrap();
        let script = "set -e
            ! cat kept 2>/dev/null; ! cat ../sibling/file 2>/dev/null; cat folder/inner; ls
            ! echo x > folder/inner 2>/dev/null; ! echo x > new 2>/dev/null
            ! echo x > two/new 2>/dev/null; echo a > one/sub/a; echo b > two/deep/b";
        let config = over(&scene, &volume).with_parts(parts.clone());
        let out = succeeds(runtime, config, scene.script(script));
        assert_eq!(out, "inner\nfolder\none\ntwo\n", "{store:?}");
        let mut found = content(&volume, Kind::Overlay);
        found.sort();
        assert_eq!(found, ["+one/sub/a a", "+two/deep/b b"], "{store:?}");
        assert_eq!(scene.tree(), before, "{store:?}");
        let volume = runtime.volume(store).unwrap();
        let linked = Parts { seen: vec![part("linked")], ..Parts::default() };
        let config = over(&scene, &volume).with_parts(linked);
        let refused = runtime.run(config, scene.script("cat linked/file"), Arc::new(()));
        assert!(matches!(refused, Err(RuntimeError::Setup(_))), "{refused:?}");
    }
}
