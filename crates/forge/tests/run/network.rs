//! Skills that speak to somebody: to the hosts that were promoted, and to nobody else.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use fluffy_forge::RunError;
use serde_json::json;

use crate::scene::{Scene, skill};

/// A server on this machine that answers everything alike and remembers what it was asked.
struct Server {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(answer: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, heard) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let (answer, remembered) = (answer.to_owned(), Arc::clone(&heard));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut head = Vec::new();
                let mut buffer = [0; 4096];
                while !head.windows(4).any(|window| window == b"\r\n\r\n") {
                    match stream.read(&mut buffer) {
                        Ok(count) if count > 0 => head.extend_from_slice(&buffer[..count]),
                        _ => break,
                    }
                }
                remembered.lock().unwrap().push(String::from_utf8_lossy(&head).into_owned());
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { address, heard }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";

const GET: &str = r#"
import urllib.request
request = urllib.request.Request(input["text"], headers={"Authorization": "Bearer " + self.secret("TOKEN")})
try:
    with urllib.request.urlopen(request, timeout=5) as answer:
        return {"body": answer.read().decode(), "told": self.secret("TOKEN")}
except Exception as error:
    return {"refused": repr(error)}
"#;

fn scene(hosts: &[String]) -> Scene {
    let mut scene = Scene::new();
    scene.secrets.insert("TOKEN".to_owned(), "hunter2-of-the-api".to_owned());
    scene.secrets.insert("OTHER".to_owned(), "of-somebody-else".to_owned());
    let proposal = json!({
        "name": "probe", "side_effect": "SECRET_READ", "hosts": hosts, "secrets": ["TOKEN"],
    });
    scene.add(proposal, &skill("probe", "SECRET_READ", GET));
    scene
}

#[test]
fn lesson_l32_the_hosts_are_those_that_were_promoted_and_not_the_callers() {
    let (listed, other) = (Server::new(OK), Server::new(OK));
    let stage = scene(&[listed.address.to_string()]).start();
    let given = stage.gives(json!({"text": format!("http://{}/a", listed.address)}));
    assert_eq!(given["body"], "hi", "{given}");
    assert!(listed.heard()[0].contains("hunter2-of-the-api"), "{:?}", listed.heard());
    let given = stage.gives(json!({"text": format!("http://{}/a", other.address)}));
    assert!(given["refused"].is_string(), "{given}");
    assert_eq!(other.heard(), Vec::<String>::new());
    for more in [json!({"text": "x", "hosts": ["evil"]}), json!({"text": "x", "secret": "OTHER"})] {
        let refused = stage.run("probe", more).unwrap_err();
        assert!(matches!(refused, RunError::Input(_)), "{refused}");
    }
}

#[test]
fn lesson_l32_authorization_does_not_follow_a_redirect_to_another_host() {
    let elsewhere = Server::new(OK);
    let away = format!(
        "HTTP/1.1 302 Found\r\nLocation: http://{}/b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        elsewhere.address
    );
    let first = Server::new(&away);
    // Even where both are listed.
    let stage = scene(&[first.address.to_string(), elsewhere.address.to_string()]).start();
    let given = stage.gives(json!({"text": format!("http://{}/a", first.address)}));
    assert!(given["refused"].as_str().unwrap().contains("another host"), "{given}");
    assert_eq!(first.heard().len(), 1);
    assert_eq!(elsewhere.heard(), Vec::<String>::new());
}

#[test]
fn lesson_l32_a_secret_is_masked_in_what_is_told_and_kept_and_is_nowhere_else() {
    let server = Server::new(OK);
    let scene = scene(&[server.address.to_string()]);
    let stage = scene.start();
    let text = format!("http://{}/hunter2-of-the-api", server.address);
    let finished = stage.run("probe", json!({ "text": text })).unwrap();
    let output = finished.output.unwrap();
    assert_eq!(output.value()["told"], "***");
    assert!(finished.record.input.masked);
    let record = serde_json::to_string(&finished.record).unwrap();
    assert!(!record.contains("hunter2-of-the-api"), "{record}");
    let again = stage.runs.replay(&stage.kernel, &finished.record.execution).unwrap_err();
    assert!(matches!(again, RunError::Masked(_)), "{again}");
    // Neither its environment nor its arguments have it.
    let body = "import os\nall = repr(os.environ) + open(\"/proc/self/cmdline\").read()\nreturn {\"seen\": \"hunter2\" in all}";
    let mut scene = Scene::new();
    scene.secrets.insert("TOKEN".to_owned(), "hunter2-of-the-api".to_owned());
    let proposal = json!({"name": "probe", "side_effect": "SECRET_READ", "secrets": ["TOKEN"]});
    scene.add(proposal, &skill("probe", "SECRET_READ", body));
    assert_eq!(scene.start().gives(json!({})), json!({"seen": false}));
}

#[test]
fn a_secret_that_is_not_there_keeps_the_skill_from_running() {
    let mut scene = scene(&[]);
    scene.secrets.clear();
    let refused = scene.start().run("probe", json!({"text": "x"})).unwrap_err();
    assert!(matches!(refused, RunError::NoSecret(_)), "{refused}");
}
