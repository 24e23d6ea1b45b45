//! Reaching anybody without a network.

use crate::case::attack;

/// The answer of a loopback on which nobody listens.
const CLOSED: &str = "ECONNREFUSED";

#[test]
fn attack_72_a_listener_of_the_host_s_loopback_hears_nobody() {
    attack("connect")
        .args(["four=127.0.0.1:{port}", "six=[::1]:{port}", "mapped=[::ffff:127.0.0.1]:{port}"])
        .row("four", CLOSED, "ok")
        .row("six", "ECONNREFUSED|EADDRNOTAVAIL", "ok")
        .row("mapped", CLOSED, "ok")
        .listening("tcp:127.0.0.1:{port}")
        .listening("tcp:[::1]:{port}")
        .check();
}

#[test]
fn attack_73_datagrams_reach_nobody() {
    attack("datagram")
        .args(["four=127.0.0.1:{port}", "six=[::1]:{port}"])
        .row("four", CLOSED, "EAGAIN")
        .row("six", "ECONNREFUSED|EADDRNOTAVAIL", "EAGAIN")
        .listening("udp:127.0.0.1:{port}")
        .listening("udp:[::1]:{port}")
        .check();
}

#[test]
fn attack_74_public_addresses_are_unreachable() {
    attack("connect")
        .args(["web=192.0.2.7:443", "six=[2001:db8::7]:443"])
        .row("web", "ENETUNREACH", "ok")
        .row("six", "ENETUNREACH", "ok")
        .control(|control| {
            control.addresses = vec!["192.0.2.7".into(), "2001:db8::7".into()];
            control.listening = vec!["tcp:192.0.2.7:443".into(), "tcp:[2001:db8::7]:443".into()];
        })
        .check();
}

#[test]
fn attack_75_the_cloud_s_metadata_is_unreachable() {
    attack("connect")
        .args(["four=169.254.169.254:80", "six=[fd00:ec2::254]:80"])
        .row("four", "ENETUNREACH", "ok")
        .row("six", "ENETUNREACH", "ok")
        .control(|control| {
            control.addresses = vec!["169.254.169.254".into(), "fd00:ec2::254".into()];
            control.listening =
                vec!["tcp:169.254.169.254:80".into(), "tcp:[fd00:ec2::254]:80".into()];
        })
        .check();
}

#[test]
fn attack_76_questions_for_names_go_nowhere() {
    attack("datagram")
        .args(["local=127.0.0.53:53", "public=192.0.2.53:53"])
        .row("local", CLOSED, "EAGAIN")
        .row("public", "ENETUNREACH", "EAGAIN")
        .control(|control| {
            control.addresses = vec!["192.0.2.53".into()];
            control.listening = vec!["udp:127.0.0.53:53".into(), "udp:192.0.2.53:53".into()];
        })
        .check();
}

#[test]
fn attack_77_the_resolver_knows_no_name() {
    attack("lookup")
        .args(["leak=stolen.example.com", "host=canary-of-the-host"])
        // In the control the question arrives, though nobody answers it.
        .row("leak", "not found", "not found")
        .row("host", "not found", "found")
        .prepared(|scene, _| {
            let write = |name: &str, text: &str| std::fs::write(scene.path().join(name), text).unwrap();
            write("run/hosts", "127.0.0.1 canary-of-the-host\n");
            write("run/resolver", "nameserver 127.0.0.53\noptions timeout:1 attempts:1\n");
        })
        .control(|control| {
            control.covered = vec![
                ("/etc/hosts".into(), "{run}/hosts".into()),
                ("/etc/resolv.conf".into(), "{run}/resolver".into()),
            ];
            control.listening = vec!["udp:127.0.0.53:53".into()];
        })
        .check();
}

#[test]
fn attack_78_packets_cannot_be_made_by_hand() {
    attack("raw")
        .row("icmp", "EPERM", "ok")
        .row("any", "EPERM", "ok")
        .row("icmp 6", "EPERM", "ok")
        .row("hidden in flags", "EPERM", "ok")
        .check();
}

#[test]
fn attack_79_there_is_no_other_family_of_sockets() {
    attack("families")
        .row("other families", "none", "*")
        .row("answers", "EPERM", "*")
        .row("netlink", "EPERM", "ok")
        .row("packet", "EPERM", "ok")
        .row("vsock", "EPERM", "*")
        .row("a pair of another family", "EPERM", "*")
        .check();
}

#[test]
fn attack_80_named_sockets_of_the_host_cannot_be_reached() {
    attack("unix")
        .args(["name=@{name}", "agent={run}/agent.sock", "link={project}/../run/agent.sock"])
        .row("name", "ECONNREFUSED", "ok")
        .row("agent", "ENOENT", "ok")
        .row("link", "ENOENT", "ok")
        .listening("abstract:{name}")
        .listening("unix:{run}/agent.sock")
        .check();
}

#[test]
fn attack_81_sockets_of_container_runtimes_are_not_there() {
    let paths = [
        "docker=/run/docker.sock",
        "docker of old=/var/run/docker.sock",
        "podman=/run/podman/podman.sock",
        "containerd=/run/containerd/containerd.sock",
        "bus=/run/dbus/system_bus_socket",
        "manager=/run/systemd/private",
        "names=/run/nscd/socket",
        "display=/tmp/.X11-unix/X0",
    ];
    let mut case = attack("unix").args(paths);
    for (what, _) in paths.map(|path| path.split_once('=').unwrap()) {
        case = case.row(what, "ENOENT", "ok");
    }
    case.control(|control| {
        control.blank = ["/run", "/tmp"].map(Into::into).into();
        let at = paths.map(|path| path.split_once('=').unwrap().1);
        control.planted = at.map(|at| format!("{at}.note").into()).into();
        // `/var/run` is a link to `/run`: one socket, two names.
        control.listening =
            at.iter().filter(|at| !at.starts_with("/var")).map(|at| format!("unix:{at}")).collect();
    })
    .check();
}

#[test]
fn attack_82_two_sandboxes_do_not_meet() {
    let mut case = attack("visit").row("port", CLOSED, "ok").row("name", CLOSED, "ok");
    for what in ["shared memory file", "temporary file", "shared memory", "message queue"] {
        case = case.row(what, "ENOENT", "ok");
    }
    case.sandbox(|drive| drive.beside = Some(vec!["serve".into()]))
        .control(|control| control.beside = Some(vec!["serve".into()]))
        .check();
}
