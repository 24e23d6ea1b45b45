//! Limits, and the end.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use fluffy_sandbox::proxy::{
    AllowList, Decision, Ending, Failure, Listener, Options, Proxy, Refusal, Resolver, Times,
};

use crate::scene::{Host, Scene, Watched, get, hello, read_all};

const ALLOWED: &[&str] = &["pkg.test", "slow.test", "raw.test:7000"];

/// Descriptors and threads of this process, by what they are.
fn held() -> BTreeMap<String, usize> {
    let mut held = BTreeMap::new();
    for entry in std::fs::read_dir("/proc/self/task").unwrap() {
        let name = std::fs::read_to_string(entry.unwrap().path().join("comm")).unwrap_or_default();
        if name.starts_with("sandbox-") {
            *held.entry(name).or_insert(0) += 1;
        }
    }
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().count();
    held.insert("descriptors".to_owned(), descriptors);
    held
}

#[test]
fn case_46_stopping_closes_everything_at_once_and_leaves_nothing() {
    let before = held();
    let mut scene = Scene::with(ALLOWED, Host::new(|_, _| ()), |_| ());
    let mut open = scene.tunnel("raw.test:7000");
    let mut half = scene.connect();
    half.write_all(b"GET http://pkg").unwrap();
    let mut silent = scene.connect();
    // Both are taken in before a third is answered.
    let _refused = scene.ask("CONNECT evil.test:443 HTTP/1.1\r\n\r\n");
    scene.proxy.stop();
    assert_eq!(
        (read_all(&mut open), read_all(&mut half), read_all(&mut silent)),
        Default::default()
    );
    let stopped = Decision::Closed(Ending::Stopped);
    let decisions = scene.decisions(4);
    assert!(decisions.contains(&stopped), "{decisions:?}");
    assert!(decisions.contains(&Decision::Refused(Refusal::Incomplete)), "{decisions:?}");
    assert!(TcpStream::connect(scene.at).is_err());
    assert!(std::os::unix::net::UnixStream::connect(&scene.socket).is_err());
    scene.proxy.stop();
    let Scene { proxy, host: _host, .. } = scene;
    drop((proxy, open, half, silent));
    // A thread whose name was looked up is seen until the system has taken it away.
    let gone = |held: &BTreeMap<String, usize>| held.keys().eq(before.keys());
    let mut after = held();
    for _look in 0..100_000 {
        if gone(&after) {
            break;
        }
        std::thread::yield_now();
        after = held();
    }
    // The listener and the connection of the test's own host are left.
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    assert!(after["descriptors"] <= before["descriptors"] + 2, "{before:?} {after:?}");
}

#[test]
fn whoever_receives_the_records_may_stop_the_proxy() {
    let own: Arc<Watched<Option<Proxy>>> = Arc::default();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let shared = Arc::clone(&own);
    let sink = Arc::new(move |_: &_| drop(shared.change(Option::take)));
    let listeners = vec![Listener::new(listener.into()).unwrap()];
    let allow = Arc::new(AllowList::default());
    let proxy = Proxy::serve(listeners, allow, sink, Options::default()).unwrap();
    own.change(|own| *own = Some(proxy));
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n").unwrap();
    let _answer = read_all(&mut stream);
    own.wait(|own| own.is_none().then_some(()));
}

#[test]
fn a_socket_that_does_not_listen_is_refused() {
    let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    assert!(Listener::new(one.into()).is_err());
    assert!(Listener::new(std::fs::File::open("/dev/null").unwrap().into()).is_err());
}

#[test]
fn too_many_connections_are_turned_away_and_recorded() {
    let scene = Scene::with(ALLOWED, Host::new(hello), |options| options.connections = 2);
    let first = scene.tunnel("raw.test:7000");
    let _second = scene.tunnel("raw.test:7000");
    let answer = scene.ask(get("http://pkg.test/", "pkg.test"));
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert_eq!(scene.decisions(3)[2], Decision::Refused(Refusal::Busy));
    drop(first);
    assert_eq!(scene.decisions(4)[3], Decision::Closed(Ending::Complete));
    assert!(scene.ask(get("http://pkg.test/", "pkg.test")).ends_with("hello\n"));
}

#[test]
fn refused_clients_that_stay_do_not_pile_up() {
    let scene = Scene::with(ALLOWED, Host::new(hello), |options| options.connections = 1);
    let before = held()["descriptors"];
    let mut clients: Vec<TcpStream> = (0..150).map(|_| scene.connect()).collect();
    for client in &mut clients {
        client.write_all(b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n").unwrap();
    }
    // One place to be served, 64 to leave; each of the others waits until one of these is gone.
    scene.wait(65);
    assert!(held()["descriptors"] <= before + clients.len() + 65, "{:?}", held());
    for mut client in clients {
        let answer = read_all(&mut client);
        assert!(
            answer.starts_with("HTTP/1.1 403 ") || answer.starts_with("HTTP/1.1 503 "),
            "{answer}"
        );
    }
    assert_eq!(scene.wait(150).len(), 150);
}

#[test]
fn a_socket_that_somebody_shut_is_let_go_and_the_other_goes_on() {
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let unix = tempfile::tempdir().unwrap();
    let socket = unix.path().join("proxy.sock");
    let other = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let copy = tcp.try_clone().unwrap();
    let listeners = vec![Listener::new(tcp.into()).unwrap(), Listener::new(other.into()).unwrap()];
    let allow = Arc::default();
    let _proxy = Proxy::serve(listeners, allow, Arc::new(|_: &_| ()), Options::default()).unwrap();
    rustix::net::shutdown(&copy, rustix::net::Shutdown::Both).unwrap();
    for _ in 0..3 {
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        stream.write_all(b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n").unwrap();
        assert!(read_all(&mut stream).starts_with("HTTP/1.1 403 "));
    }
}

#[test]
fn a_tunnel_in_which_nothing_moves_is_closed() {
    let idle = Duration::from_millis(100);
    let scene = Scene::with(ALLOWED, Host::new(|_, _| ()), |options| {
        options.times = Times { idle, ..options.times };
    });
    let mut stream = scene.tunnel("raw.test:7000");
    assert_eq!(read_all(&mut stream), "");
    assert_eq!(scene.decisions(2), [Decision::Passed, Decision::Closed(Ending::Idle)]);
}

/// Answers for `slow.test` when it is told to.
struct Slow {
    host: SocketAddr,
    told: Watched<bool>,
}

impl Resolver for Slow {
    fn resolve(&self, name: &str, _port: u16) -> io::Result<Vec<SocketAddr>> {
        if name == "slow.test" {
            self.told.wait(|told| told.then_some(()));
        }
        Ok(vec![self.host])
    }
}

#[test]
fn a_slow_lookup_holds_up_nobody_else() {
    let host = Host::new(hello);
    let slow = Arc::new(Slow { host: host.address, told: Watched::default() });
    let resolver = Arc::clone(&slow);
    let scene = Scene::with(ALLOWED, host, |options| options.resolver = resolver);
    let mut waiting = scene.connect();
    waiting.write_all(get("http://slow.test/", "slow.test").as_bytes()).unwrap();
    for _ in 0..3 {
        assert!(scene.ask(get("http://pkg.test/", "pkg.test")).ends_with("hello\n"));
    }
    slow.told.change(|told| *told = true);
    assert!(read_all(&mut waiting).ends_with("hello\n"));
}

#[test]
fn a_lookup_that_takes_too_long_is_a_failure_and_few_run_at_a_time() {
    let host = Host::new(hello);
    let slow = Arc::new(Slow { host: host.address, told: Watched::default() });
    let resolver = Arc::clone(&slow);
    let scene = Scene::with(ALLOWED, host, |options| {
        options.resolver = resolver;
        options.lookups = 1;
        options.times = Times { connect: Duration::from_millis(100), ..options.times };
    });
    // The first holds the only place, so that the second is not even begun.
    for _ in 0..2 {
        let answer = scene.ask(get("http://slow.test/", "slow.test"));
        assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    }
    assert_eq!(scene.decisions(2), [Decision::Failed(Failure::Timeout); 2]);
    let lookups = held().get("sandbox-lookup\n").copied();
    assert_eq!(lookups, Some(1));
    slow.told.change(|told| *told = true);
}

#[test]
fn many_clients_at_a_time_are_all_served() {
    let scene = Scene::new(ALLOWED);
    let mut clients: Vec<TcpStream> = (0..50).map(|_| scene.connect()).collect();
    for client in &mut clients {
        client.write_all(get("http://pkg.test/", "pkg.test").as_bytes()).unwrap();
    }
    for mut client in clients {
        assert!(read_all(&mut client).ends_with("hello\n"));
    }
    assert_eq!(scene.wait(100).len(), 100);
}

#[test]
fn a_client_that_does_not_read_holds_up_nobody_else() {
    let flood = |head: &str, mut stream: TcpStream| {
        if head.contains("flood") {
            while stream.write_all(&[b'x'; 65_536]).is_ok() {}
        } else {
            hello(head, stream);
        }
    };
    let scene = Scene::with(ALLOWED, Host::new(flood), |_| ());
    let mut stuck = scene.connect();
    stuck.write_all(get("http://pkg.test/flood", "pkg.test").as_bytes()).unwrap();
    let mut first = [0; 1000];
    stuck.read_exact(&mut first).unwrap();
    for _ in 0..3 {
        assert!(scene.ask(get("http://pkg.test/", "pkg.test")).ends_with("hello\n"));
    }
}
