//! What a template gives can be narrowed and not widened.

use std::path::Path;
use std::sync::Arc;

use fluffy_base::{ByteSize, Span};
use fluffy_sandbox::proxy::AllowList;
use fluffy_sandbox::{Config, ConfigError, Limits, Network, Profile, Template, Workspace};
use proptest::prelude::*;

fn any_limits() -> impl Strategy<Value = Limits> {
    let (size, number) = (any::<u64>(), any::<u32>());
    let numbers = (size, number, number, any::<Option<u64>>(), size, size, size, size);
    numbers.prop_map(|(memory, cpu, processes, duration, captured, disk, files, open_files)| {
        Limits {
            memory: ByteSize::from_bytes(memory),
            cpu,
            processes,
            duration: duration.map(Span::from_ms),
            captured: ByteSize::from_bytes(captured),
            disk: ByteSize::from_bytes(disk),
            files,
            open_files,
        }
    })
}

/// Whether one is no more than the other in everything.
fn within(one: &Limits, other: &Limits) -> bool {
    one.memory <= other.memory
        && one.cpu <= other.cpu
        && one.processes <= other.processes
        && one.duration.is_some_and(|span| other.duration.is_some_and(|most| span <= most))
        && one.captured <= other.captured
        && one.disk <= other.disk
        && one.files <= other.files
        && one.open_files <= other.open_files
}

proptest! {
    #[test]
    fn lesson_l21_no_limits_that_are_asked_for_widen_a_template(asked in proptest::collection::vec(any_limits(), 1..4)) {
        for template in Template::ALL {
            let mut config = Config::of(template);
            for limits in &asked {
                let before = *config.limits();
                config = config.narrowed_to(*limits);
                prop_assert!(within(config.limits(), &before));
                prop_assert!(within(config.limits(), &template.limits()));
            }
            prop_assert_eq!(config.profile(), template.profile());
        }
    }
}

#[test]
fn lesson_l21_a_template_without_network_gets_none_and_one_without_project_sees_none() {
    let list = Arc::new(AllowList::parse(["example.org"]).unwrap());
    let project = Path::new("/srv/project");
    for template in Template::ALL {
        let networked = Config::of(template).with_network(Network::Restricted(Arc::clone(&list)));
        let shows = Config::of(template).with_workspace(Workspace::read_only(project));
        match template {
            Template::AiProvider => assert!(networked.is_ok() && shows.is_err()),
            Template::IntegrationTest => assert!(networked.is_ok() && shows.is_ok()),
            Template::CodeExecutor => assert!(networked.is_err() && shows.is_ok()),
            Template::PolicySandbox => assert!(networked.is_err() && shows.is_err()),
        }
    }
}

#[test]
fn lesson_l21_neither_the_whole_host_nor_a_runtimes_socket_is_shown() {
    let paths = [
        "/",
        "/proc",
        "/proc/1/root",
        "/sys/fs/cgroup",
        "/dev/kvm",
        "/run/docker.sock",
        "/var/run/docker.sock",
        "/etc",
        "/etc/shadow",
        "/srv/../etc/shadow",
        "relative",
        "",
    ];
    for path in paths.map(Path::new) {
        for template in Template::ALL {
            let refused = |answer: Result<Config, ConfigError>| {
                assert!(matches!(answer, Err(ConfigError::Path { .. })), "{}", path.display());
            };
            refused(Config::of(template).showing(path));
            refused(Config::of(template).with_home(path));
        }
        let space = Workspace::read_only(path);
        assert!(
            Config::of(Template::CodeExecutor).with_workspace(space).is_err(),
            "{}",
            path.display()
        );
    }
}

#[test]
fn a_guest_that_stays_keeps_every_limit_but_its_deadline() {
    for template in Template::ALL {
        let staying = Config::of(template).staying();
        let given = template.limits();
        assert_eq!(staying.limits(), &Limits { duration: None, ..given });
        assert_eq!(staying.profile(), template.profile());
    }
}

#[test]
fn the_templates_give_exactly_this() {
    let row = |template: Template| {
        let limits = template.limits();
        let seconds = limits.duration.map(|span| span.ms());
        (template.profile(), limits.memory.bytes() >> 20, limits.cpu, limits.processes, seconds)
    };
    assert_eq!(row(Template::AiProvider), (Profile::Strict, 256, 500, 10, Some(120_000)));
    assert_eq!(row(Template::CodeExecutor), (Profile::Standard, 1024, 1000, 100, Some(300_000)));
    assert_eq!(row(Template::PolicySandbox), (Profile::Strict, 128, 250, 5, Some(100)));
    assert_eq!(
        row(Template::IntegrationTest),
        (Profile::StandardNet, 1024, 1000, 100, Some(300_000))
    );
}
