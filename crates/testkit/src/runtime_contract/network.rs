//! What a job can reach.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;

use fluffy_sandbox::proxy::{AllowList, Decision, Refusal};
use fluffy_sandbox::{Config, Network, Runtime, Template};

use super::scene::{Scene, Seen, chain, executor, succeeds, text};

/// Asks the proxy for something: the first word is the method, the second what is asked for.
const ASK: &str = r#"
ask() {
    proxy=${HTTP_PROXY#http://}
    exec 3<>"/dev/tcp/${proxy%:*}/${proxy##*:}" || return 1
    printf '%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$1" "$2" "$3" >&3
    cat <&3
    exec 3>&-
}
"#;

/// Without a network there is loopback, and it is the job's own.
pub fn without_a_network_there_is_its_own_loopback_only(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "tail -n +3 /proc/net/dev | cut -d: -f1
         (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo reached
         (exec 3<>/dev/tcp/192.0.2.1/80) 2>/dev/null && echo reached
         env | grep -i _proxy; true"
    );
    let out = succeeds(runtime, executor(), scene.bash(&script));
    assert_eq!(out.split_whitespace().collect::<Vec<_>>(), ["lo"]);
    let waiting = listener.accept().map(drop).map_err(|error| error.kind());
    assert_eq!(waiting, Err(ErrorKind::WouldBlock));
}

/// With a list, what is listed is reached through the proxy and nothing else is; both are recorded.
pub fn a_listed_host_is_reached_through_the_proxy_and_no_other(runtime: &dyn Runtime) {
    let scene = Scene::new();
    let (listed, unlisted) = (listening(), listening());
    let ports = [&listed, &unlisted].map(|listener| listener.local_addr().unwrap().port());
    let list = AllowList::parse([format!("127.0.0.1:{}", ports[0])]).unwrap();
    let network = Network::Restricted(Arc::new(list));
    let config = Config::of(Template::IntegrationTest).with_network(network).unwrap();
    let [one, two] = ports;
    let script = format!(
        "{ASK}
         ask GET http://127.0.0.1:{one}/ 127.0.0.1:{one}
         ask GET http://127.0.0.1:{two}/ 127.0.0.1:{two} | head -n 1
         ask CONNECT example.org:443 example.org:443 | head -n 1
         (exec 3<>/dev/tcp/127.0.0.1/{one}) 2>/dev/null && echo direct; true"
    );
    let (seen, _printed) = Seen::new();
    let serving = std::thread::spawn(move || serve_once(&listed));
    let outcome = runtime.run(config, scene.bash(&script), Arc::new(seen.clone()));
    let outcome = outcome.unwrap_or_else(|error| panic!("it does not run: {}", chain(&error)));
    let out = text(&outcome.stdout.bytes);
    let asked = serving.join().unwrap();
    assert!(asked.starts_with("GET / HTTP/1.1\r\n"), "{asked}");
    assert!(out.starts_with("HTTP/1.1 200 ") && out.contains("hello from outside"), "{out}");
    assert_eq!(out.matches("HTTP/1.1 403 ").count(), 2, "{out}");
    assert!(!out.contains("direct"), "{out}");
    unlisted.set_nonblocking(true).unwrap();
    assert_eq!(unlisted.accept().map_err(|error| error.kind()).err(), Some(ErrorKind::WouldBlock));
    let records = seen.records();
    let of = |host: &str, port: u16| -> Vec<Decision> {
        let records =
            records.iter().filter(|record| record.host == host && record.port == Some(port));
        records.map(|record| record.decision).collect()
    };
    assert!(
        matches!(of("127.0.0.1", one)[..], [Decision::Passed, Decision::Closed(_)]),
        "{records:?}"
    );
    assert_eq!(of("127.0.0.1", two), [Decision::Refused(Refusal::Port)]);
    assert_eq!(of("example.org", 443), [Decision::Refused(Refusal::Unlisted)]);
}

fn listening() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// Answers one request, and gives back what it said.
fn serve_once(listener: &TcpListener) -> String {
    let (mut stream, _) = listener.accept().unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    let answer =
        "HTTP/1.1 200 OK\r\nContent-Length: 19\r\nConnection: close\r\n\r\nhello from outside\n";
    stream.write_all(answer.as_bytes()).unwrap();
    text(&head)
}
