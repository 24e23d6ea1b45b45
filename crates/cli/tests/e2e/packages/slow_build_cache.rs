//! Compiled dependencies of Cargo projects are kept between runs of tests, and nothing that a run wrote is.
//!
//! The projects depend on a crate that this program was built with, so that no registry is needed.

use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::task::lab::{Lab, Language, run_tests, say, write};

const MANIFEST: &str = "[package]\nname = \"cached\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[lib]\ndoctest = false\n\n[dependencies]\nitoa = \"1\"\n";

const CODE: &str = "pub fn text() -> String {\n    itoa::Buffer::new().format(42).to_owned()\n}\n";

/// Fails always, and tells when the dependency was compiled and whether another run left something.
const TEST: &str = r#"use std::path::Path;

#[test]
fn tells() {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/debug");
    let libraries: Vec<_> = std::fs::read_dir(target.join("deps"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("libitoa"))
        .filter(|path| path.extension().is_some_and(|it| it == "rlib"))
        .collect();
    assert_eq!(libraries.len(), 1);
    let built = std::fs::metadata(&libraries[0]).unwrap().modified().unwrap();
    let built = built.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let planted = target.join("planted").exists();
    // A hostile run: fingerprints and artefacts as another run would believe them.
    std::fs::write(target.join("planted"), "x").unwrap();
    std::fs::write(&libraries[0], "no library").unwrap();
    for entry in std::fs::read_dir(target.join(".fingerprint")).unwrap() {
        let stamp = entry.unwrap().path().join("invoked.timestamp");
        let _made = std::fs::write(stamp, "This file has an mtime of when this was started.");
    }
    assert_eq!(cached::text(), "41", "built at {built}, planted {planted}.");
}
"#;

fn lab(files: &[(&str, &str)]) -> Lab {
    let lab = Lab::empty(Language::Rust);
    for (name, text) in files {
        let path = lab.user.write(name, text);
        if text.starts_with("#!") {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(path, mode).unwrap();
        }
    }
    let locked = Command::new("cargo")
        .args(["generate-lockfile", "--offline", "--quiet"])
        .current_dir(lab.root())
        .output()
        .unwrap();
    assert!(locked.status.success(), "{}", String::from_utf8_lossy(&locked.stderr));
    lab
}

/// What the model hears of these calls, one a turn.
fn heard(lab: &Lab, calls: &[Value]) -> String {
    let turns: Vec<Value> = calls.iter().map(|call| say("", std::slice::from_ref(call))).collect();
    let run = lab.run(&["--yes"], &turns);
    lab.heard(&run)
}

/// What the runs told of when the dependency was compiled.
fn times(heard: &str) -> Vec<&str> {
    let parts = heard.split("built at ").skip(1);
    parts.filter_map(|part| part.split_once(',').map(|(time, _)| time)).collect()
}

/// The environments of a lab, each with its folder.
fn environments(lab: &Lab) -> Vec<Value> {
    lab.user.run(&["env", "list", "--json"]).json_lines()
}

#[test]
fn dep_3_dependencies_are_compiled_once_and_a_hostile_run_leaves_nothing() {
    let files = [("Cargo.toml", MANIFEST), ("src/lib.rs", CODE), ("tests/tells.rs", TEST)];
    let lab = lab(&files);
    let first = heard(&lab, &[run_tests(), run_tests()]);
    let second = heard(&lab, &[run_tests()]);
    let (first_times, second_times) = (times(&first), times(&second));
    assert!(first_times.len() >= 2 && !second_times.is_empty(), "{first}\n{second}");
    let all = first_times.iter().chain(&second_times);
    assert!(all.clone().all(|time| *time == first_times[0]), "{first}\n{second}");
    for text in [&first, &second] {
        assert!(text.contains("planted false") && !text.contains("planted true"), "{text}");
        assert!(text.contains("\"failed\":1"), "{text}");
        assert!(!text.contains("build_cache"), "{text}");
    }
    let kept = environments(&lab);
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!((&kept[0]["folder"], &kept[0]["manager"]), (&json!("target"), &json!("cargo")));
    assert!(!lab.root().join("target").exists(), "the project was written to");
}

#[test]
fn dep_3_changed_settings_and_lock_make_another_cache() {
    let files = [("Cargo.toml", MANIFEST), ("src/lib.rs", CODE), ("tests/tells.rs", TEST)];
    let lab = lab(&files);
    let before = heard(&lab, &[run_tests()]);
    lab.user.write(".cargo/config.toml", "[profile.dev]\nopt-level = 1\n");
    let settings = heard(&lab, &[run_tests()]);
    assert_ne!(times(&before).first(), times(&settings).first(), "{settings}");
    assert_eq!(environments(&lab).len(), 2);
    lab.user.write("Cargo.lock", &format!("{}\n", lab.user.read("Cargo.lock")));
    heard(&lab, &[run_tests()]);
    assert_eq!(environments(&lab).len(), 3);
    // Code is no part of the key.
    lab.user.write("src/lib.rs", &CODE.replace("42", "43"));
    let code = heard(&lab, &[run_tests()]);
    assert_eq!(environments(&lab).len(), 3, "{code}");
}

#[test]
fn dep_3_no_stub_passes_for_the_code_of_the_project() {
    let manifest = "[workspace]\nmembers = [\"crates/*\"]\nresolver = \"2\"\n\n[package]\nname = \"cached\"\nversion = \"0.1.0\"\nedition = \"2021\"\nbuild = \"make.rs\"\n\n[dependencies]\nitoa = \"1\"\nmember = { path = \"crates/member\" }\n\n[dev-dependencies]\nnames = { path = \"crates/names\" }\n\n[[bin]]\nname = \"tool\"\npath = \"tool.rs\"\n";
    let member = "[package]\nname = \"member\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[lib]\npath = \"member.rs\"\n\n[features]\ndefault = [\"more\"]\nmore = [\"dep:itoa\"]\n\n[dependencies]\nitoa = { version = \"1\", optional = true }\n";
    let names = "[package]\nname = \"names\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[lib]\nproc-macro = true\n";
    let macros = "#[proc_macro]\npub fn answer(_: proc_macro::TokenStream) -> proc_macro::TokenStream {\n    \"42\".parse().unwrap()\n}\n";
    let build = "fn main() {\n    println!(\"cargo:rustc-env=MADE=yes\");\n}\n";
    let code = "pub fn text() -> String {\n    assert_eq!(env!(\"MADE\"), \"yes\");\n    member::text()\n}\n";
    let test = "#[test]\nfn answers() {\n    assert_eq!(cached::text(), names::answer!().to_string());\n}\n";
    let files = [
        ("Cargo.toml", manifest),
        ("make.rs", build),
        ("tool.rs", "fn main() {}\n"),
        ("src/lib.rs", code),
        ("tests/answers.rs", test),
        ("crates/member/Cargo.toml", member),
        ("crates/member/member.rs", CODE),
        ("crates/names/Cargo.toml", names),
        ("crates/names/src/lib.rs", macros),
    ];
    let lab = lab(&files);
    // Older than anything that was built.
    let old = |name: &str| {
        let file = std::fs::File::options().write(true).open(lab.root().join(name)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(978_307_200)).unwrap();
    };
    files.iter().for_each(|(name, _)| old(name));
    let right = heard(&lab, &[run_tests()]);
    assert!(right.contains("\"failed\":0") && right.contains("\"passed\":1"), "{right}");
    assert!(!right.contains("build_cache"), "{right}");
    assert_eq!(environments(&lab).len(), 1);
    for (name, text) in [("crates/member/member.rs", CODE), ("make.rs", build), ("tool.rs", "x")] {
        let broken = format!("{text}\ncompile_error!(\"broken in {name}\");\n");
        lab.user.write(name, &broken);
        old(name);
        let red = heard(&lab, &[run_tests()]);
        assert!(red.contains(&format!("broken in {name}")), "{red}");
        let sound = files.iter().find(|(known, _)| *known == name).unwrap().1;
        lab.user.write(name, sound);
        old(name);
    }
    assert_eq!(environments(&lab).len(), 1);
}

#[test]
fn dep_3_build_that_fails_is_told_once_and_costs_no_test() {
    let wrapper = "#!/bin/sh\nexec \"$@\"\n";
    let files = [
        ("Cargo.toml", MANIFEST),
        ("src/lib.rs", CODE),
        ("tests/tells.rs", "#[test]\nfn passes() {\n    assert_eq!(cached::text(), \"42\");\n}\n"),
        (".cargo/config.toml", "[build]\nrustc-wrapper = \"tools/wrap\"\n"),
        ("tools/wrap", wrapper),
    ];
    let lab = lab(&files);
    let heard = heard(&lab, &[run_tests(), write("notes.md", "one\n"), run_tests()]);
    assert_eq!(heard.matches("cannot be compiled apart").count(), 1, "{heard}");
    assert_eq!(heard.matches("\"passed\":1").count(), 2, "{heard}");
    assert!(environments(&lab).is_empty());
}

#[test]
fn dep_3_build_of_the_person_is_reused() {
    let files = [("Cargo.toml", MANIFEST), ("src/lib.rs", CODE), ("tests/tells.rs", TEST)];
    let lab = lab(&files);
    let built = Command::new("cargo")
        .args(["test", "--no-run", "--offline", "--quiet"])
        .current_dir(lab.root())
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let library = std::fs::read_dir(lab.root().join("target/debug/deps"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .find(|entry| {
            let name = entry.file_name().into_string().unwrap();
            name.starts_with("libitoa") && name.ends_with(".rlib")
        })
        .unwrap();
    let time = library.metadata().unwrap().modified().unwrap();
    let time = time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos().to_string();
    // In a repository, so that `target` is ignored as it usually is.
    lab.user.write(".gitignore", "/target\n");
    lab.git(&["init", "-q", "-b", "main"]);
    let heard = heard(&lab, &[run_tests()]);
    assert!(times(&heard).contains(&time.as_str()), "{time}: {heard}");
    assert!(environments(&lab).is_empty());
}
