//! What a provider's process has and sees.

use std::fs;
use std::io::{Read as _, Write as _};
use std::ops::ControlFlow;
use std::process::{Command, Stdio};

use fluffy_provider::{Provider as _, ProviderError, StreamEvent};
use fluffy_testkit::server::{Identity, Server, Then, begin_stream, chunk};

use super::{ENDS, KEY, PROGRAM, Scene, request, says, stream, turn};

/// Processes that run `provider-host`, as the machine lists them, the sandboxes' first ones included.
fn provider_hosts() -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_host = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"provider-host")
    };
    numbers.filter(is_host).collect()
}

/// Those that this test has started.
fn ours() -> Vec<u32> {
    let mine = std::process::id();
    let below = |pid: u32| {
        let mut pid = pid;
        while pid > 1 {
            if pid == mine {
                return true;
            }
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let rest = stat.rsplit(')').next().unwrap_or_default();
            pid = rest.split_whitespace().nth(1).and_then(|ppid| ppid.parse().ok()).unwrap_or(0);
        }
        false
    };
    provider_hosts().into_iter().filter(|pid| below(*pid)).collect()
}

#[test]
fn the_key_is_in_no_argument_and_no_environment_and_the_guest_sees_nothing() {
    let server = Server::start(Identity::Proper, |_, peer| {
        begin_stream(peer);
        chunk(peer, &says("a"));
        peer.wait_for_end();
        Then::Close
    });
    let scene = Scene::new(&server, "https://localhost:PORT/v1");
    let remote = scene.remote();
    let mut looked = 0;
    let end = remote.turn(&request(), &mut |piece| {
        if !matches!(piece, StreamEvent::Text(_)) {
            return ControlFlow::Continue(());
        }
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            if !entry.file_name().to_str().unwrap().bytes().all(|byte| byte.is_ascii_digit()) {
                continue;
            }
            for file in ["cmdline", "environ"] {
                let bytes = fs::read(entry.path().join(file)).unwrap_or_default();
                assert!(
                    !String::from_utf8_lossy(&bytes).contains(KEY),
                    "{:?}/{file}",
                    entry.path()
                );
            }
        }
        let guests = ours();
        assert_eq!(guests.len(), 1, "{guests:?}");
        look_at(guests[0]);
        looked += 1;
        ControlFlow::Break(())
    });
    assert_eq!((end, looked), (Err(ProviderError::Cancelled), 1));
    server.wait_for_ends(1);
    assert!(ours().is_empty(), "the guest is gone with its answer");
}

fn look_at(guest: u32) {
    let status = fs::read_to_string(format!("/proc/{guest}/status")).unwrap();
    for line in ["CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(status.contains(line), "{line}: {status}");
    }
    for space in ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"] {
        let inode = |process: &str| fs::read_link(format!("/proc/{process}/ns/{space}"));
        assert_ne!(inode(&guest.to_string()).unwrap(), inode("self").unwrap(), "{space}");
    }
    let limits = fs::read_to_string(format!("/proc/{guest}/limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"], "{core}");
    // Whoever may not be dumped belongs to root, and nobody of the same user gets at its memory.
    use std::os::unix::fs::MetadataExt as _;
    assert_eq!(fs::metadata(format!("/proc/{guest}/mem")).unwrap().uid(), 0);
    let environment = fs::read(format!("/proc/{guest}/environ")).unwrap();
    let environment = String::from_utf8(environment).unwrap();
    let names = environment.split_terminator('\0').filter_map(|one| one.split_once('='));
    let mut names: Vec<_> = names.map(|(name, _)| name).collect();
    names.sort_unstable();
    // What every sandbox sets, with its own values, and nothing of whoever runs this.
    assert_eq!(
        names.join(" "),
        "FLUFFY_PROXY FLUFFY_SANDBOX HOME HTTPS_PROXY HTTP_PROXY LANG LOGNAME PATH TERM TMPDIR USER http_proxy https_proxy"
    );
    assert!(environment.contains("HOME=/home/fluffy\0") && environment.contains("USER=fluffy\0"));
    let root = format!("/proc/{guest}/root");
    let project = env!("CARGO_MANIFEST_DIR");
    assert!(fs::metadata(format!("{root}{project}/Cargo.toml")).is_err());
    let homes = fs::read_dir(format!("{root}/home")).unwrap().flatten();
    assert!(homes.map(|entry| entry.file_name()).all(|name| name == "fluffy"));
    // Its own pipes, the socket to the proxy, and nothing that was left open.
    let open = fs::read_dir(format!("/proc/{guest}/fd")).unwrap().flatten();
    let open = open
        .filter_map(|entry| fs::read_link(entry.path()).ok()?.into_os_string().into_string().ok());
    for name in open {
        let fits = ["pipe:", "socket:", "/dev/null"].iter().any(|kind| name.starts_with(kind));
        assert!(fits, "{name}");
    }
}

#[test]
fn a_guest_that_is_killed_in_a_turn_is_an_error_and_the_next_turn_has_another() {
    let server = Server::start(Identity::Proper, |asked, peer| {
        begin_stream(peer);
        chunk(peer, &says("a"));
        if asked.connection == 0 {
            peer.wait_for_end();
            return Then::Close;
        }
        chunk(peer, ENDS);
        chunk(peer, "");
        Then::Keep
    });
    let remote = Scene::new(&server, "https://localhost:PORT/v1").remote();
    let end = remote.turn(&request(), &mut |piece| {
        if let StreamEvent::Text(_) = piece {
            let guest = ours()[0].to_string();
            assert!(Command::new("kill").args(["-9", &guest]).status().unwrap().success());
        }
        ControlFlow::Continue(())
    });
    assert_eq!(end, Err(ProviderError::Guest("it died".to_owned())));
    server.wait_for_ends(1);
    assert_eq!(turn(&remote).unwrap().text, "a");
}

#[test]
fn a_program_that_is_no_provider_host_is_an_error() {
    let server = Server::start(Identity::Proper, |_, peer| {
        stream(peer, &[ENDS]);
        Then::Keep
    });
    for (program, words) in [
        ("/usr/bin/false", "it died"),
        ("/usr/bin/yes", "does not speak as agreed"),
        ("/no/such/program", "cannot be started"),
    ] {
        let scene = Scene::new(&server, "https://localhost:PORT/v1");
        let host = fluffy_kernel::ProviderHost {
            runtime: super::sandboxes(),
            program: program.into(),
            destination: scene.destination.clone(),
            frame_bytes: fluffy_provider::MAX_HOST_FRAME_BYTES,
            witness: std::sync::Arc::default(),
        };
        let model = fluffy_provider::Model {
            name: "m".to_owned(),
            context_window: 1,
            ..Default::default()
        };
        let guests = Box::new(super::ProviderGuests(host));
        let remote = fluffy_provider::Remote::new(guests, scene.endpoint, vec![], model);
        let error = turn(&remote).unwrap_err().to_string();
        assert!(error.contains(words), "{program}: {error}");
    }
}

#[test]
fn garbage_ends_the_host_without_a_word() {
    let frame =
        |payload: &[u8]| [&u32::try_from(payload.len()).unwrap().to_be_bytes(), payload].concat();
    for (bytes, code) in [
        (frame(b"null"), 1),
        (frame(b"\"models\""), 1),
        (frame(format!("{{\"open\":{{\"headers\":[[\"k\",\"{KEY}\"]]}}}}").as_bytes()), 1),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), 1),
        (vec![0, 0, 0, 9, 1], 1),
        (vec![], 0),
    ] {
        let mut child = Command::new(PROGRAM)
            .arg("provider-host")
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let _closed = child.stdin.take().unwrap().write_all(&bytes);
        let mut out = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
        child.stderr.take().unwrap().read_to_end(&mut out).unwrap();
        assert!(out.is_empty(), "{bytes:?}: {out:?}");
        assert_eq!(child.wait().unwrap().code(), Some(code), "{bytes:?}");
    }
}
