//! Writing outside, links, programs overwritten, devices.

use crate::case::attack;
use crate::scene::{self, Scene};

#[test]
fn attack_01_writing_into_the_root_is_refused() {
    attack("create-in")
        .args(["root=/", "home=/home", "run=/run", "dev=/dev"])
        .row("root", "EROFS|EACCES", "ok")
        .row("home", "EROFS|EACCES", "ok")
        .row("run", "EROFS|EACCES", "ok")
        .row("dev", "EROFS|EACCES", "ENOENT")
        .control(|control| control.confined_to_scene = true)
        .works(|scene, _| assert!(scene.path().join("fluffy-attack").exists(), "dead probe"))
        .check();
}

#[test]
fn attack_02_writing_into_the_system_is_refused() {
    let places = ["/etc", "/usr", "/usr/bin", "/var", "/opt", "/srv", "/proc", "/sys"];
    let mut case = attack("create-in");
    for place in places {
        case = case.args([&format!("{place}={place}")]).row(place, "EROFS|EACCES|ENOENT", "ok");
    }
    case.control(|control| {
        control.blank =
            ["/etc", "/usr", "/var", "/opt", "/srv", "/proc", "/sys"].map(Into::into).into();
        control.planted = vec!["/usr/bin/true".into()];
    })
    .check();
}

#[test]
fn attack_03_files_of_the_home_cannot_be_changed() {
    attack("append-to")
        .args(["keys={home}/.ssh/authorized_keys", "shell={home}/.bashrc", "new={home}/.profile"])
        .row("keys", "ENOENT|EACCES|EROFS", "ok")
        .row("shell", "ENOENT|EACCES|EROFS", "ok")
        .row("new", "ENOENT|EACCES|EROFS", "ok")
        .touches()
        .check();
}

#[test]
fn attack_04_a_sibling_project_cannot_be_changed() {
    attack("append-to")
        .args([
            "source={sibling}/src/lib.rs",
            "new={sibling}/planted",
            "up={project}/../sibling/.env",
        ])
        .row("source", "ENOENT|EACCES|EROFS", "ok")
        .row("new", "ENOENT|EACCES|EROFS", "ok")
        .row("up", "ENOENT|EACCES|EROFS", "ok")
        .touches()
        .check();
}

#[test]
fn attack_05_changes_to_the_project_stay_in_the_volume() {
    attack("edit-project")
        .args(["{project}"])
        .row("change", "ok", "ok")
        .row("remove", "ok", "ok")
        .row("move", "ok", "ok")
        .row("mode", "ok", "ok")
        .row("hook", "ok", "ok")
        .row("git configuration", "ok", "ok")
        .row("environment file", "ok", "ok")
        .touches()
        .stopped(|_, seen| {
            for change in
                ["file src/main.rs", "whiteout README.md", "file .git/hooks/post-checkout"]
            {
                assert!(
                    seen.changes.iter().any(|one| one == change),
                    "{change}: {:?}",
                    seen.changes
                );
            }
        })
        .check();
}

#[test]
fn attack_06_a_link_of_the_project_that_leads_out_leads_nowhere() {
    attack("append-to")
        .args(["file={project}/link", "folder={project}/folder-link/.bashrc"])
        .row("file", "ENOENT|EACCES|EROFS", "ok")
        .row("folder", "ENOENT|EACCES|EROFS", "ok")
        .touches()
        .check();
}

#[test]
fn attack_07_a_link_made_inside_leads_nowhere() {
    attack("own-links")
        .args(["{project}", "{home}/.ssh/authorized_keys"])
        .row("make a link", "ok", "ok")
        .row("write through it", "ENOENT|EACCES|EROFS", "ok")
        .row("make a link upwards", "ok", "ok")
        .row("write through that", "ENOENT|EACCES|EROFS", "ok")
        .row("link to a directory", "ok", "ok")
        .row("create through it", "ENOENT|EACCES|EROFS", "ok")
        .touches()
        .check();
}

#[test]
fn attack_08_a_hard_link_to_a_file_outside_cannot_be_made() {
    attack("hard-links")
        .args(["{project}", "sibling={sibling}/src/lib.rs", "shown={bin}/idle", "own={project}/README.md"])
        .row("sibling", "ENOENT", "ok")
        .row("shown", "EXDEV", "ok")
        // A file of the project is copied before it is linked.
        .row("own", "ok", "ok")
        .prepared(Scene::add_idle)
        .touches()
        .check();
}

#[test]
fn attack_09_a_program_that_is_held_open_cannot_be_overwritten() {
    attack("overwrite-self")
        .args(["{bin}/tester"])
        .row("write to the held program", "EROFS|EACCES", "ok")
        .prepared(Scene::add_idle)
        .sandbox(|drive| drive.program = Some("{bin}/idle".into()))
        .control(|control| control.program = Some("{bin}/idle".into()))
        .touches()
        .check();
}

#[test]
fn attack_10_the_first_process_s_program_cannot_be_reached() {
    attack("first-program")
        .row("where it lies", "EACCES|ENOENT|EPERM", "ok")
        .row("read it", "EACCES|ENOENT|EPERM", "ok")
        .row("hold it", "EACCES|ENOENT|EPERM", "ok")
        .check();
}

#[test]
fn attack_11_a_descriptor_to_read_cannot_become_one_to_write() {
    attack("reopen-writable")
        .args(["shown={bin}/idle"])
        .row("shown", "EROFS|EACCES", "ok")
        .row("cut shown", "EROFS|EACCES", "ok")
        .row("date shown", "EROFS|EACCES", "ok")
        .prepared(Scene::add_idle)
        .touches()
        .check();
}

#[test]
fn attack_12_devices_are_only_the_harmless_ones() {
    attack("device-list")
        .row("beyond the harmless", "nothing", "*")
        // Queues of messages in a namespace of the container's own.
        .on_engines("beyond the harmless", "mqueue")
        .check();
}

#[test]
fn attack_13_devices_of_the_machine_cannot_be_opened() {
    let names =
        ["mem", "kmsg", "vda", "kvm", "fuse", "vsock", "net/tun", "loop-control", "userfaultfd"];
    let mut case = attack("open-for-writing")
        .args(names.map(|name| format!("{name}=/dev/{name}")).each_ref().map(String::as_str));
    for name in names {
        case = case.row(name, "ENOENT", "ok");
    }
    case.control(|control| {
        control.blank = vec!["/dev".into()];
        control.planted = names.map(|name| format!("/dev/{name}").into()).into();
    })
    .check();
}

#[test]
fn attack_14_device_nodes_cannot_be_made() {
    attack("device-nodes")
        .args(["{project}"])
        .row("memory", "EPERM", "EHWPOISON")
        .row("null", "EPERM", "EHWPOISON")
        .row("disk", "EPERM", "EHWPOISON")
        .control(|control| control.watched = vec!["mknodat".into()])
        .stopped(|_, seen| assert_eq!(seen.changes, [""; 0]))
        .check();
}

#[test]
fn attack_15_removed_files_cannot_be_forged() {
    attack("whiteouts")
        .args(["{project}"])
        .row("whiteout", "EPERM", "ok")
        .row("pipe", "ok", "ok")
        .row("move leaving one", "EPERM|EINVAL", "ok")
        .stopped(|_, seen| {
            let forged = seen.changes.iter().any(|change| change.starts_with("whiteout"));
            assert!(!forged, "{:?}", seen.changes);
        })
        .check();
}

#[test]
fn attack_16_hiding_directories_cannot_be_forged() {
    attack("overlay-marks")
        .args(["{project}"])
        .row("make a directory", "ok", "ok")
        .row("user.overlay.opaque", "EPERM|EOPNOTSUPP|ok", "ok")
        .row("user.overlay.redirect", "EPERM|EOPNOTSUPP|ok", "ok")
        .stopped(|_, seen| assert_eq!(seen.changes, ["directory marked"]))
        .works(|scene, _| {
            let mut value = [0_u8; 8];
            let path = scene.path().join("project/marked");
            assert_eq!(rustix::fs::getxattr(path, "user.overlay.opaque", &mut value), Ok(1));
        })
        .check();
}

#[test]
fn attack_17_files_cannot_be_opened_by_number() {
    attack("handles")
        .args(["{project}/README.md"])
        .row("number of a file", "EPERM", "ok")
        .row("open by number", "EPERM", "EINVAL")
        .check();
}

#[test]
fn attack_18_a_program_that_asks_to_run_as_its_owner_does_not() {
    let case = attack("set-user-id")
        .args(["{bin}/privileged", "/tmp"])
        .row("copy", "ok", "ok")
        .row("mark", "ok", "ok")
        .row("run it", "same", "same")
        .row("run one of another user", "same", "another")
        .prepared(Scene::add_privileged)
        .control(|control| control.second_user = true);
    // Without root there is no second user to become, inside or outside.
    if scene::is_root() {
        case.check();
    }
}

#[test]
fn attack_19_a_program_cannot_be_given_rights() {
    attack("file-capabilities")
        .args(["{project}"])
        .row("make a program", "ok", "ok")
        .row("give it rights", "EPERM", "ok")
        .touches()
        .check();
}

#[test]
fn attack_20_settings_of_the_kernel_cannot_be_changed() {
    attack("rewrite")
        .args([
            "core=/proc/sys/kernel/core_pattern",
            "memory=/proc/sys/vm/overcommit_memory",
            "shared=/proc/sys/kernel/shmmax",
            "network=/proc/sys/net/ipv4/ip_forward",
            "namespaces=/proc/sys/user/max_user_namespaces",
        ])
        .row("core", "EROFS|EACCES", "ok")
        .row("memory", "EROFS|EACCES", "ok")
        .row("shared", "EROFS|EACCES", "ok")
        .row("network", "EROFS|EACCES", "ok")
        .row("namespaces", "EROFS|EACCES", "ok")
        .control(|control| {
            // These two belong to the machine and not to a namespace: files of the scene stand in.
            control.covered = vec![
                ("/proc/sys/kernel/core_pattern".into(), "{scene}/cover".into()),
                ("/proc/sys/vm/overcommit_memory".into(), "{scene}/cover".into()),
            ];
        })
        .check();
}

#[test]
fn attack_21_doors_that_end_the_machine_cannot_be_opened() {
    // Not every kernel has all of them.
    let there: Vec<&str> = ["/proc/sysrq-trigger", "/proc/irq/default_smp_affinity", "/proc/mtrr"]
        .into_iter()
        .filter(|path| std::path::Path::new(path).exists())
        .collect();
    assert!(!there.is_empty());
    let mut case = attack("open-for-writing");
    for path in &there {
        case = case.args([&format!("{path}={path}")]).row(path, "EROFS|EACCES|ENOENT", "ok");
    }
    let covered = there.iter().map(|path| (path.into(), "{scene}/cover".into())).collect();
    case.control(|control| control.covered = covered).check();
}

#[test]
fn attack_22_programs_that_the_kernel_starts_cannot_be_named() {
    let paths = [
        "uevent=/sys/kernel/uevent_helper",
        "agent=/sys/fs/cgroup/release_agent",
        "old agent=/sys/fs/cgroup/memory/release_agent",
        "group=/sys/fs/cgroup/cgroup.procs",
        "formats=/proc/sys/fs/binfmt_misc/register",
    ];
    let mut case = attack("open-for-writing").args(paths);
    for (what, _) in paths.map(|path| path.split_once('=').unwrap()) {
        case = case.row(what, "ENOENT|EROFS|EACCES", "ok");
    }
    case.control(|control| {
        control.blank = vec!["/sys".into(), "/proc/sys/fs/binfmt_misc".into()];
        control.planted = paths.map(|path| path.split_once('=').unwrap().1.into()).into();
    })
    .check();
}
