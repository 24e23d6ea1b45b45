//! One small package for each client, and a host that offers them as their registries do.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::Command;

use crate::scene::Host;

/// What stands for the host in what its registries answer.
const BASE: &str = "http://pkg.test";

/// Writes a wheel, a package of npm and a crate, and the answers of their registries, each to a file named
/// after the path it is asked for, with `_` for `/`.
const MAKE: &str = r#"
import hashlib, io, json, sys, tarfile, zipfile
out, base = sys.argv[1], sys.argv[2]

def put(path, data):
    with open(out + "/" + path.replace("/", "_"), "wb") as file:
        file.write(data)

def tar(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()

wheel = io.BytesIO()
with zipfile.ZipFile(wheel, "w") as archive:
    archive.writestr("tinypkg.py", "word = 'from pip'\n")
    info = "tinypkg-1.0.dist-info/"
    archive.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: tinypkg\nVersion: 1.0\n")
    archive.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    archive.writestr(info + "RECORD", "tinypkg.py,,\n" + "".join(info + name + ",,\n" for name in ["METADATA", "WHEEL", "RECORD"]))
name = "tinypkg-1.0-py3-none-any.whl"
put("/simple/tinypkg/", f'<!DOCTYPE html><html><body><a href="/wheels/{name}">{name}</a></body></html>'.encode())
put("/wheels/" + name, wheel.getvalue())

package = {"name": "tinypkg", "version": "1.0.0", "main": "index.js"}
tarball = tar({"package/package.json": json.dumps(package), "package/index.js": "module.exports = 'from npm'\n"})
put("/tinypkg/-/tinypkg-1.0.0.tgz", tarball)
package["dist"] = {"tarball": base + "/tinypkg/-/tinypkg-1.0.0.tgz", "shasum": hashlib.sha1(tarball).hexdigest()}
put("/tinypkg", json.dumps({"name": "tinypkg", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": package}}).encode())

crate = tar({
    "tinypkg-1.0.0/Cargo.toml": '[package]\nname = "tinypkg"\nversion = "1.0.0"\nedition = "2021"\n',
    "tinypkg-1.0.0/src/lib.rs": 'pub const WORD: &str = "from cargo";\n',
})
put("/crates/tinypkg/1.0.0.crate", crate)
put("/index/config.json", json.dumps({"dl": base + "/crates/{crate}/{version}.crate"}).encode())
put("/index/ti/ny/tinypkg", json.dumps({
    "name": "tinypkg", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
    "cksum": hashlib.sha256(crate).hexdigest(),
}).encode())
"#;

/// A host that offers the packages, under whichever name it is asked for them.
pub(crate) fn host() -> Host {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("make");
    std::fs::write(&script, MAKE).unwrap();
    let out = dir.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let made = Command::new("python3").arg(&script).arg(&out).arg(BASE).status().unwrap();
    assert!(made.success());
    let files = read(&out);
    Host::new(move |head, stream| offer(&files, head, stream))
}

fn read(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read(path).unwrap())
    };
    std::fs::read_dir(dir).unwrap().map(entry).collect()
}

fn offer(files: &BTreeMap<String, Vec<u8>>, head: &str, mut stream: TcpStream) {
    let path = head.split(' ').nth(1).unwrap_or_default().replace('/', "_");
    let host = head.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default();
    let (status, body) = match files.get(&path) {
        Some(body) => ("200 OK", at(body, host)),
        None => ("404 Not Found", Vec::new()),
    };
    let kind = if path.starts_with("_simple") { "text/html" } else { "application/json" };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    let _gone = stream.write_all(&[answer.as_bytes(), &body].concat());
    let _gone = stream.shutdown(Shutdown::Write);
}

/// A text with the address by which its host was asked; what is no text as it is.
fn at(body: &[u8], host: &str) -> Vec<u8> {
    match str::from_utf8(body) {
        Ok(text) => text.replace(BASE, &format!("http://{host}")).into_bytes(),
        Err(_) => body.to_vec(),
    }
}
