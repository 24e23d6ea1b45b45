//! Rust, through rustup as most have it.

use crate::scene::{Scene, place};

const CRATE: [(&str, &str); 3] = [
    ("Cargo.toml", "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
    (
        "src/lib.rs",
        "//! Adds.\n\n/// Adds.\n///\n/// ```\n/// assert_eq!(small::add(1, 2), 3);\n/// ```\npub fn add(a: u32, b: u32) -> u32 {\n    a + b\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn one_and_one() {\n        assert_eq!(super::add(1, 1), 2);\n    }\n}\n",
    ),
    (
        "tests/served.rs",
        "use std::io::{Read as _, Write as _};\nuse std::net::{TcpListener, TcpStream};\n\n#[test]\nfn a_server_on_localhost_answers() {\n    let listener = TcpListener::bind(\"127.0.0.1:0\").unwrap();\n    let address = listener.local_addr().unwrap();\n    let server = std::thread::spawn(move || listener.accept().unwrap().0.write_all(b\"hello\").unwrap());\n    let mut text = String::new();\n    TcpStream::connect(address).unwrap().read_to_string(&mut text).unwrap();\n    server.join().unwrap();\n    assert_eq!(text, \"hello\");\n}\n",
    ),
];

/// The toolchain is shown, and may not be written to; what cargo writes goes to the empty home.
fn scene() -> Scene {
    let (cargo, rustup) = (place("CARGO_HOME", ".cargo"), place("RUSTUP_HOME", ".rustup"));
    Scene::with_path(&CRATE, vec![cargo.join("bin")])
        .showing(&rustup)
        .env("RUSTUP_HOME", rustup.to_str().unwrap())
        .env("CARGO_HOME", cargo.to_str().unwrap())
        .env("CARGO_NET_OFFLINE", "true")
}

#[test]
fn slow_cargo_builds_and_tests_a_crate() {
    for scene in [scene(), scene().on_disk()] {
        let done = scene.works("cargo build && cargo test 2>&1");
        assert_eq!(done.out.matches("test result: ok. 1 passed").count(), 3, "{}", done.out);
        let changes = done.changes();
        assert!(changes.iter().any(|name| name == "Cargo.lock"), "{changes:?}");
        let others: Vec<_> = changes.iter().filter(|name| !name.starts_with("target/")).collect();
        // Cargo makes the directory under another name and moves it there.
        assert_eq!(others, ["!target", "Cargo.lock"]);
        assert!(!scene.project().join("target").exists());
    }
}

#[test]
fn rustc_compiles_a_program_that_runs() {
    let scene = scene();
    let program = "fn main() { println!(\"{}\", std::thread::spawn(|| 6 * 7).join().unwrap()); }";
    let done = scene.works(&format!("echo '{program}' > main.rs; rustc -o main main.rs; ./main"));
    assert_eq!(done.out, "42\n");
    assert_eq!(done.changes(), ["main", "main.rs"]);
}

#[test]
fn the_toolchain_cannot_be_changed() {
    let scene = scene();
    let done = scene.works(
        r#"for path in "$RUSTUP_HOME" "$CARGO_HOME/bin"; do
            ! touch "$path/new" && ! mkdir "$path/folder" && ls "$path" > /dev/null
        done 2>/dev/null; touch "$CARGO_HOME/new""#,
    );
    assert!(done.changes().is_empty());
    assert!(!place("CARGO_HOME", ".cargo").join("new").exists());
}
