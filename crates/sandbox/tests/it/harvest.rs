//! What is taken from a plain output directory, and what is refused.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use fluffy_base::{ByteSize, ProjectPath};
use fluffy_sandbox::harvest::{
    Change, Harvest, HarvestError, HarvestLimits, Kind, ReadError, Written, harvest,
};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use tempfile::TempDir;

/// Names the file for the child that gives it capabilities; a run without it is not a child.
const CAPABLE: &str = "FLUFFY_TEST_CAPABLE_FILE";

pub(crate) fn volume() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Only small volumes pass, so that nothing in a test can be large unseen.
pub(crate) fn limits() -> HarvestLimits {
    HarvestLimits {
        entries: 1_000,
        names: ByteSize::from_bytes(64 << 10),
        depth: 40,
        file: ByteSize::from_bytes(4 << 10),
        total: ByteSize::from_bytes(16 << 10),
    }
}

pub(crate) fn gather(volume: &Path, kind: Kind) -> Result<Harvest, HarvestError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(volume, flags, Mode::empty()).unwrap();
    harvest(root.as_fd(), kind, &limits(), &|_| false)
}

/// The whole harvest as lines: changes with what they hold, then refusals with their reasons.
pub(crate) fn lines(harvest: &Harvest) -> Vec<String> {
    let changes = harvest.changes().iter().map(|change| match change {
        Change::Write(file) => {
            let sign = if file.executable() { "x" } else { "w" };
            let content = harvest.read(file).unwrap();
            assert_eq!(content.len() as u64, file.size());
            format!("{sign} {} {:?}", file.path(), String::from_utf8_lossy(&content))
        }
        Change::Delete(path) => format!("d {path}"),
        Change::Replace(path) => format!("r {path}"),
    });
    let skipped = harvest.skipped().iter().map(|path| format!("s {path}"));
    changes.chain(skipped).chain(harvest.refused().iter().map(ToString::to_string)).collect()
}

fn output(volume: &TempDir) -> Vec<String> {
    lines(&gather(volume.path(), Kind::Output).unwrap())
}

fn only_file(harvest: &Harvest) -> &Written {
    match harvest.changes() {
        [Change::Write(file)] => file,
        other => panic!("{other:?}"),
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn regular_files_are_taken_in_the_order_of_their_paths() {
    let volume = volume();
    let at = |name: &str| volume.path().join(name);
    fs::create_dir_all(at("a/b/c")).unwrap();
    fs::create_dir_all(at("empty/too")).unwrap();
    fs::write(at("z"), "last").unwrap();
    fs::write(at("a/b/c/deep"), "").unwrap();
    fs::write(at("a-"), "run\n").unwrap();
    set_mode(&at("a-"), 0o755);
    set_mode(&at("z"), 0o655);
    assert_eq!(output(&volume), ["x a- \"run\\n\"", "w a/b/c/deep \"\"", "w z \"last\""]);
}

#[test]
fn links_are_refused_wherever_they_point() {
    let volume = volume();
    let at = |name: &str| volume.path().join(name);
    fs::write(at("file"), "x").unwrap();
    for (name, target) in [
        ("inside", "file"),
        ("outside", "/etc/passwd"),
        ("above", "../../etc"),
        ("loop", "loop"),
        ("root", "/"),
        ("self", "."),
        ("broken", "nothing"),
        ("magic", "/proc/self/root"),
    ] {
        symlink(target, at(name)).unwrap();
    }
    let lines = output(&volume);
    assert_eq!(lines[0], "w file \"x\"");
    let why = "is not taken: it is a symbolic link, and links are not taken";
    let names = ["above", "broken", "inside", "loop", "magic", "outside", "root", "self"];
    assert_eq!(lines[1..], names.map(|name| format!("`{name}` {why}")));
}

#[test]
fn pipes_sockets_and_devices_are_refused() {
    let volume = volume();
    let at = |name: &str| volume.path().join(name);
    rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let _listener = UnixListener::bind(at("socket")).unwrap();
    // Anyone may make the device 0:0, which is a deletion in an overlay and nothing elsewhere.
    rustix::fs::mknodat(CWD, at("none"), FileType::CharacterDevice, Mode::RUSR, 0).unwrap();
    let mut expected = vec![
        "`none` is not taken: it is a device",
        "`pipe` is not taken: it is a named pipe",
        "`socket` is not taken: it is a socket",
    ];
    if rustix::process::geteuid().is_root() {
        let null = rustix::fs::makedev(1, 3);
        rustix::fs::mknodat(CWD, at("null"), FileType::CharacterDevice, Mode::RUSR, null).unwrap();
        rustix::fs::mknodat(CWD, at("disk"), FileType::BlockDevice, Mode::RUSR, null).unwrap();
        expected.insert(0, "`disk` is not taken: it is a device");
        expected.insert(2, "`null` is not taken: it is a device");
    } else {
        eprintln!("only root can make devices other than 0:0: this run saw that one alone");
    }
    assert_eq!(output(&volume), expected);
}

#[test]
fn in_an_overlay_devices_other_than_the_mark_of_deletion_are_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("only root can make devices other than 0:0: this run saw none");
        return;
    }
    let volume = volume();
    let make = |name: &str, kind, major, minor| {
        let device = rustix::fs::makedev(major, minor);
        rustix::fs::mknodat(CWD, volume.path().join(name), kind, Mode::RUSR, device).unwrap();
    };
    make("a", FileType::CharacterDevice, 0, 1);
    make("b", FileType::CharacterDevice, 1, 0);
    make("c", FileType::BlockDevice, 0, 0);
    let refused = ["a", "b", "c"].map(|name| format!("`{name}` is not taken: it is a device"));
    assert_eq!(lines(&gather(volume.path(), Kind::Overlay).unwrap()), refused);
}

#[test]
fn special_bits_are_refused_on_files_and_mean_nothing_on_directories() {
    let volume = volume();
    let at = |name: &str| volume.path().join(name);
    for (name, mode) in [("a", 0o4755), ("b", 0o2755), ("c", 0o1644)] {
        fs::write(at(name), "x").unwrap();
        set_mode(&at(name), mode);
    }
    fs::create_dir(at("shared")).unwrap();
    fs::write(at("shared/d"), "x").unwrap();
    set_mode(&at("shared/d"), 0o644);
    set_mode(&at("shared"), 0o3755);
    let bits = |name, mode| {
        format!("`{name}` is not taken: its mode {mode} has a setuid, setgid or sticky bit")
    };
    let expected =
        ["w shared/d \"x\"".to_owned(), bits("a", "4755"), bits("b", "2755"), bits("c", "1644")];
    assert_eq!(output(&volume), expected);
}

#[test]
fn hard_links_are_refused_under_all_their_names() {
    let volume = volume();
    let outside = self::volume();
    let at = |name: &str| volume.path().join(name);
    fs::write(at("a"), "x").unwrap();
    fs::hard_link(at("a"), at("b")).unwrap();
    fs::write(outside.path().join("secret"), "x").unwrap();
    fs::hard_link(outside.path().join("secret"), at("c")).unwrap();
    let refused =
        ["a", "b", "c"].map(|name| format!("`{name}` is not taken: it has 2 names (hard links)"));
    assert_eq!(output(&volume), refused);
}

/// The child: root in a user namespace, where capabilities of a file can be set by anyone.
#[test]
fn child_gives_a_file_capabilities() {
    let Some(file) = std::env::var_os(CAPABLE) else { return };
    // Version 2, effective, CAP_NET_RAW permitted; the system adds the namespace's root.
    let mut value = Vec::new();
    for word in [0x0200_0001_u32, 1 << 13, 0, 0, 0] {
        value.extend(word.to_le_bytes());
    }
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(Path::new(&file), "security.capability", &value, flags).unwrap();
}

#[test]
fn file_capabilities_are_refused() {
    let volume = volume();
    let file = volume.path().join("ping");
    fs::write(&file, "x").unwrap();
    let status = Command::new("unshare")
        .arg("-Ur")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "harvest::child_gives_a_file_capabilities"])
        .env(CAPABLE, &file)
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(output(&volume), ["`ping` is not taken: it has file capabilities"]);
}

#[test]
fn other_attributes_are_ignored_and_overlay_marks_mean_nothing_in_an_output() {
    let volume = volume();
    let (file, directory) = (volume.path().join("f"), volume.path().join("d"));
    fs::write(&file, "x").unwrap();
    fs::create_dir(&directory).unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    for name in
        ["user.any", "user.overlay.opaque", "user.overlay.metacopy", "user.overlay.whiteout"]
    {
        rustix::fs::setxattr(&file, name, b"y", flags).unwrap();
        rustix::fs::setxattr(&directory, name, b"y", flags).unwrap();
    }
    assert_eq!(output(&volume), ["w f \"x\""]);
}

#[test]
fn marks_that_a_job_cannot_make_through_an_overlay_are_refused() {
    let flags = rustix::fs::XattrFlags::empty();
    let marks: [(&str, &[u8]); 5] = [
        ("user.overlay.opaque", b"x"),
        ("user.overlay.opaque", b"yes"),
        ("user.overlay.redirect", b"/elsewhere"),
        ("user.overlay.metacopy", b""),
        ("user.overlay.future", b"1"),
    ];
    for (name, value) in marks {
        let volume = volume();
        let (file, directory) = (volume.path().join("f"), volume.path().join("g"));
        fs::write(&file, "x").unwrap();
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("h"), "x").unwrap();
        rustix::fs::setxattr(&file, name, value, flags).unwrap();
        rustix::fs::setxattr(&directory, name, value, flags).unwrap();
        let why = "is not taken: it carries a mark of overlayfs that is not understood";
        let harvest = gather(volume.path(), Kind::Overlay).unwrap();
        assert_eq!(lines(&harvest), ["f", "g"].map(|entry| format!("`{entry}` {why}")), "{name}");
        rustix::fs::setxattr(volume.path(), name, value, flags).unwrap();
        assert!(matches!(
            gather(volume.path(), Kind::Overlay),
            Err(HarvestError::Volume(fluffy_sandbox::harvest::Why::Mark))
        ));
    }
}

#[test]
fn names_that_are_no_project_paths_are_refused_and_shown_harmlessly() {
    let volume = volume();
    let names: [&[u8]; 9] = [
        b"\xff\xfe",
        b"a\\b",
        b"line\nbreak",
        b"\x1b[2J",
        b"~root",
        b"c:d",
        "e\u{301}".as_bytes(),
        "\u{202e}txt".as_bytes(),
        b" ",
    ];
    for name in names {
        fs::write(volume.path().join(OsStr::from_bytes(name)), "x").unwrap();
    }
    let long = "n".repeat(255);
    fs::write(volume.path().join(&long), "x").unwrap();
    let lines = output(&volume);
    let expected = [
        r#"w   "x""#.to_owned(),
        format!("w {long} \"x\""),
        r"`\u{1b}[2J` is not taken: path `\u{1b}[2J` has the invisible character U+001B".to_owned(),
        r"`\u{202e}txt` is not taken: path `\u{202e}txt` has the invisible character U+202E"
            .to_owned(),
        r"`\xff\xfe` is not taken: its name is not UTF-8".to_owned(),
        r"`a\b` is not taken: path `a\b` has a back slash; components are separated by `/`"
            .to_owned(),
        "`c:d` is not taken: path `c:d` has a component that starts with a drive letter".to_owned(),
        "`e\u{301}` is not taken: its name is not in Unicode's composed form".to_owned(),
        r"`line\nbreak` is not taken: path `line\nbreak` has the invisible character U+000A"
            .to_owned(),
        "`~root` is not taken: path `~root` has a component that starts with `~`, a home directory to a shell"
            .to_owned(),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn what_lies_beneath_a_refused_name_is_not_looked_at() {
    let volume = volume();
    let refused = volume.path().join(OsStr::from_bytes(b"d\xff"));
    fs::create_dir(&refused).unwrap();
    fs::write(refused.join("file"), "x").unwrap();
    assert_eq!(output(&volume), [r"`d\xff` is not taken: its name is not UTF-8"]);
}

#[test]
fn names_that_differ_only_in_case_are_all_refused() {
    let volume = volume();
    let at = |name: &str| volume.path().join(name);
    for name in ["README", "readme", "ReadMe.", "other", "GIT~1", "sub"] {
        fs::write(at(name), "x").unwrap();
    }
    for name in [".git", "Sub"] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(name).join("f"), "x").unwrap();
    }
    let why = "is not taken: another name in its directory differs only in case or spelling";
    let refused = [".git", "GIT~1", "README", "ReadMe.", "Sub", "readme", "sub"];
    let mut expected = vec!["w other \"x\"".to_owned()];
    expected.extend(refused.map(|name| format!("`{name}` {why}")));
    assert_eq!(output(&volume), expected);
}

#[test]
fn a_file_that_is_too_large_is_refused_by_its_apparent_size() {
    let volume = volume();
    let sparse = fs::File::create(volume.path().join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    fs::write(volume.path().join("fits"), vec![b'x'; 4 << 10]).unwrap();
    let lines = output(&volume);
    assert!(lines[0].starts_with("w fits"));
    assert_eq!(lines[1], "`sparse` is not taken: it has 1099511627776 bytes, and 4KiB are allowed");
}

#[test]
fn what_cannot_be_read_is_refused() {
    let volume = volume();
    let at = |name: &str| volume.path().join(name);
    fs::create_dir(at("closed")).unwrap();
    fs::write(at("closed/in"), "x").unwrap();
    fs::create_dir(at("listed")).unwrap();
    fs::write(at("listed/in"), "x").unwrap();
    fs::write(at("file"), "x").unwrap();
    set_mode(&at("closed"), 0o000);
    set_mode(&at("listed"), 0o444);
    set_mode(&at("file"), 0o000);
    let lines = output(&volume);
    set_mode(&at("closed"), 0o700);
    set_mode(&at("listed"), 0o700);
    if rustix::process::geteuid().is_root() {
        eprintln!("root reads everything: this run saw that nothing is refused to root");
        assert_eq!(lines, ["w closed/in \"x\"", "w file \"x\"", "w listed/in \"x\""]);
    } else {
        let refused = ["closed", "file", "listed/in"];
        assert_eq!(lines, refused.map(|name| format!("`{name}` is not taken: it cannot be read")));
    }
}

#[test]
fn a_caller_leaves_out_what_it_does_not_want() {
    let volume = volume();
    let at = |name: &str| volume.path().join(name);
    fs::create_dir_all(at("target/debug")).unwrap();
    for n in 0..2_000 {
        // More than the limit of entries: the directory is not even listed.
        fs::write(at(&format!("target/debug/{n}")), "x").unwrap();
    }
    fs::write(at("a.log"), "x").unwrap();
    fs::write(at("b"), "x").unwrap();
    let root = fs::File::open(volume.path()).unwrap();
    let skip = |path: &ProjectPath| matches!(path.as_str(), "target" | "a.log");
    let harvest = harvest(root.as_fd(), Kind::Output, &limits(), &skip).unwrap();
    assert_eq!(lines(&harvest), ["w b \"x\"", "s a.log", "s target"]);
}

#[test]
fn every_limit_ends_the_whole_harvest() {
    let error = |volume: &TempDir| gather(volume.path(), Kind::Output).unwrap_err().to_string();

    let many = volume();
    for n in 0..1_001 {
        fs::write(many.path().join(n.to_string()), "").unwrap();
    }
    assert_eq!(error(&many), "the sandbox left more than 1000 files and directories");

    let long = volume();
    for n in 0..300 {
        fs::write(long.path().join(format!("{n:0>250}")), "").unwrap();
    }
    assert_eq!(error(&long), "the names of what the sandbox left take more than 64KiB");

    let large = volume();
    for n in 0..5 {
        fs::write(large.path().join(n.to_string()), vec![b'x'; 4_000]).unwrap();
    }
    assert_eq!(error(&large), "the files that the sandbox left take more than 16KiB");
}

#[test]
fn escapes_of_refused_names_count_towards_the_limit_of_names() {
    let volume = volume();
    for n in 0..60 {
        fs::write(volume.path().join(format!("{}{n}", "\u{1b}".repeat(200))), "").unwrap();
    }
    let error = gather(volume.path(), Kind::Output).unwrap_err();
    assert!(matches!(error, HarvestError::Names(_)), "{error}");
}

/// A chain of directories with one letter each, made from the inside since no path could name it.
fn chain(volume: &Path, depth: usize) {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut directory = rustix::fs::open(volume, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        rustix::fs::mkdirat(&directory, "d", Mode::RWXU).unwrap();
        directory = rustix::fs::openat(&directory, "d", flags, Mode::empty()).unwrap();
    }
}

#[test]
fn a_volume_that_is_too_deep_ends_the_harvest_by_name() {
    let volume = volume();
    chain(volume.path(), 4_000);
    let error = gather(volume.path(), Kind::Output).unwrap_err();
    let path = vec!["d"; 41].join("/");
    assert_eq!(error.to_string(), format!("`{path}` lies more than 40 directories deep"));
}

#[test]
fn without_a_limit_of_depth_a_path_that_no_call_could_name_is_refused() {
    let volume = volume();
    chain(volume.path(), 4_000);
    let root = fs::File::open(volume.path()).unwrap();
    let limits = HarvestLimits { depth: usize::MAX, ..HarvestLimits::default() };
    let harvest = harvest(root.as_fd(), Kind::Output, &limits, &|_| false).unwrap();
    let [refusal] = harvest.refused() else { panic!("{:?}", harvest.refused()) };
    assert!(refusal.why.to_string().ends_with("has more than 4096 bytes"), "{refusal}");
    assert!(harvest.changes().is_empty());
}

type ChangeFile = fn(&Path);

#[test]
fn a_file_that_changes_after_the_check_is_not_read() {
    let changes: [(&str, ChangeFile); 7] = [
        ("longer", |file| fs::write(file, "longer than before").unwrap()),
        ("shorter", |file| fs::write(file, "").unwrap()),
        ("another file", |file| {
            fs::rename(file, file.with_extension("old")).unwrap();
            fs::write(file, "before").unwrap();
        }),
        ("a link", |file| {
            fs::rename(file, file.with_extension("old")).unwrap();
            symlink(file.with_extension("old"), file).unwrap();
        }),
        ("a second name", |file| fs::hard_link(file, file.with_extension("link")).unwrap()),
        ("setuid", |file| set_mode(file, 0o4755)),
        ("gone", |file| fs::remove_file(file).unwrap()),
    ];
    for (what, change) in changes {
        let volume = volume();
        let file = volume.path().join("f");
        fs::write(&file, "before").unwrap();
        let harvest = gather(volume.path(), Kind::Output).unwrap();
        let written = only_file(&harvest).clone();
        assert_eq!(harvest.read(&written).unwrap(), b"before");
        change(&file);
        let error = harvest.read(&written).unwrap_err();
        assert!(matches!(error, ReadError::Changed(_)), "{what}: {error}");
    }
}

#[test]
fn whoever_takes_a_file_may_fail_without_harm() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("full"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let volume = volume();
    fs::write(volume.path().join("f"), "x").unwrap();
    let harvest = gather(volume.path(), Kind::Output).unwrap();
    let error = harvest.copy(only_file(&harvest), &mut Full).unwrap_err();
    assert_eq!(error.to_string(), "`f` cannot be passed on");
}

#[test]
fn a_volume_that_is_no_directory_cannot_be_harvested() {
    let volume = volume();
    fs::write(volume.path().join("f"), "x").unwrap();
    let file = fs::File::open(volume.path().join("f")).unwrap();
    let error = harvest(file.as_fd(), Kind::Output, &limits(), &|_| false).unwrap_err();
    assert_eq!(error.to_string(), "`.` in the sandbox's volume cannot be looked at");
}
