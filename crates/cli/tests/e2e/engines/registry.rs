//! A server of images on this machine, which has one and takes its time.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use fluffy_base::Digest;
use serde_json::{Value, json};

/// Bytes that no compression makes fewer, so that fetching takes a while.
const BALLAST: usize = 3 << 20;
/// Sent at a time, with a pause after each.
const PIECE: usize = 64 << 10;
const PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Registry {
    pub(super) at: SocketAddr,
}

/// What it has, by path.
struct Stock(Vec<(String, &'static str, Vec<u8>)>);

impl Registry {
    /// Begins to serve an image with this machine's `true`.
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let stock = Arc::new(Stock::new());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let stock = Arc::clone(&stock);
                // An engine that was ended turns away in the middle.
                std::thread::spawn(move || drop(stock.serve(stream)));
            }
        });
        Self { at }
    }

    /// The image's name.
    pub(super) fn image(&self) -> String {
        format!("{}/team/tools:1", self.at)
    }
}

impl Stock {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (root, tar) = (dir.path().join("root"), dir.path().join("layer.tar"));
        furnish(&root);
        done(Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&tar).arg("."));
        let diff = format!("sha256:{}", Digest::of(&std::fs::read(&tar).unwrap()));
        done(Command::new("gzip").arg("-1").arg(&tar));
        let layer = std::fs::read(dir.path().join("layer.tar.gz")).unwrap();
        let config = json!({
            "architecture": "amd64", "os": "linux", "config": {},
            "rootfs": { "type": "layers", "diff_ids": [diff] },
        });
        let config = config.to_string().into_bytes();
        let kind = |what: &str| format!("application/vnd.docker.{what}");
        let named = |what: &str, bytes: &[u8]| -> Value {
            let digest = format!("sha256:{}", Digest::of(bytes));
            json!({ "mediaType": kind(what), "size": bytes.len(), "digest": digest })
        };
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": kind("distribution.manifest.v2+json"),
            "config": named("container.image.v1+json", &config),
            "layers": [named("image.rootfs.diff.tar.gzip", &layer)],
        });
        let manifest = manifest.to_string().into_bytes();
        let by_digest = |what: &str, bytes: &[u8]| {
            format!("/v2/team/tools/{what}/sha256:{}", Digest::of(bytes))
        };
        let (json, v2) =
            ("application/json", "application/vnd.docker.distribution.manifest.v2+json");
        Self(vec![
            ("/v2/".to_owned(), json, b"{}".to_vec()),
            ("/v2/team/tools/manifests/1".to_owned(), v2, manifest.clone()),
            (by_digest("manifests", &manifest), v2, manifest),
            (by_digest("blobs", &config), json, config),
            (by_digest("blobs", &layer), "application/octet-stream", layer),
        ])
    }

    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let asked = lines.next().transpose()?.unwrap_or_default();
        // What else it says does not matter here.
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        let mut words = asked.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let found = self.0.iter().find(|(at, ..)| at == path);
        let Some((_, kind, bytes)) = found else {
            return stream
                .write_all(b"HTTP/1.1 404 None\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        };
        let digest = Digest::of(bytes);
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
             Docker-Distribution-Api-Version: registry/2.0\r\nDocker-Content-Digest: sha256:{digest}\r\n\r\n",
            bytes.len()
        )?;
        if method == "HEAD" {
            return Ok(());
        }
        for piece in bytes.chunks(PIECE) {
            stream.write_all(piece)?;
            if bytes.len() > PIECE {
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    }
}

/// `true` with what it is linked with, the directories that containers want, and ballast.
fn furnish(root: &Path) {
    for directory in ["bin", "proc", "sys", "dev", "etc", "tmp"] {
        std::fs::create_dir_all(root.join(directory)).unwrap();
    }
    std::fs::copy("/usr/bin/true", root.join("bin/true")).unwrap();
    let linked = Command::new("ldd").arg("/usr/bin/true").output().unwrap();
    let linked = String::from_utf8(linked.stdout).unwrap();
    for library in linked.split_whitespace().filter(|word| word.starts_with('/')) {
        let to = root.join(library.trim_start_matches('/'));
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(library, to).unwrap();
    }
    let mut ballast = Vec::with_capacity(BALLAST);
    let mut last = Digest::of(b"ballast");
    while ballast.len() < BALLAST {
        last = Digest::of(last.as_bytes());
        ballast.extend_from_slice(last.as_bytes());
    }
    std::fs::write(root.join("ballast"), ballast).unwrap();
}

fn done(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}
