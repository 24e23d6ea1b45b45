//! Where the socket lies.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use fluffy_kernel::{ListenError, listen};
use tempfile::TempDir;

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn refusal(path: &Path) -> String {
    listen(path).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn the_directory_must_be_private_and_no_link() {
    let dir = TempDir::new().unwrap();
    let (open, link, file) =
        (dir.path().join("open"), dir.path().join("link"), dir.path().join("file"));
    std::fs::create_dir(&open).unwrap();
    for mode in [0o755, 0o770, 0o701] {
        set_mode(&open, mode);
        assert!(refusal(&open.join("s")).ends_with("others may enter it"));
    }
    set_mode(&open, 0o700);
    symlink(&open, &link).unwrap();
    assert!(refusal(&link.join("s")).ends_with("it is a link or no directory"));
    UnixListener::bind(&file).unwrap();
    assert!(refusal(&file.join("s")).ends_with("it is a link or no directory"));
    assert!(refusal(Path::new("s")).contains("does not name a socket"));
    assert!(refusal(&dir.path().join("no/such/s")).contains("make directory"));
    assert!(listen(&open.join("s")).is_ok());
}

#[test]
fn a_stale_socket_is_replaced_and_nothing_else_is() {
    let dir = TempDir::new().unwrap();
    set_mode(dir.path(), 0o700);
    let path = dir.path().join("s");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let first = listen(&path).unwrap();
    assert!(matches!(listen(&path), Err(ListenError::AlreadyRunning(_))));
    drop(first);
    assert!(!path.exists());
    for occupied in ["directory", "link"] {
        let path = dir.path().join(occupied);
        match occupied {
            "link" => symlink("/etc/passwd", &path).unwrap(),
            _ => std::fs::create_dir(&path).unwrap(),
        }
        assert!(matches!(listen(&path), Err(ListenError::Occupied(_))));
        assert!(std::fs::symlink_metadata(&path).is_ok(), "it stays");
    }
}

#[test]
fn a_directory_may_have_a_longer_name_than_an_address_has_room_for() {
    let dir = TempDir::new().unwrap();
    let deep = dir.path().join("d".repeat(200));
    assert!(listen(&deep.join("kernel.sock")).is_ok());
}
