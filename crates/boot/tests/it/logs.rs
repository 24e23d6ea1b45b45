//! The kernel's log: whose it is, how it is kept, and what is told of it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use fluffy_boot::Trouble;

use crate::lines::check_inert;
use crate::scene::{Outcome, Scene};

/// A kernel that writes this to its log and ends with this code, in every life.
fn run_printing(scene: &Scene, words: &[u8], code: u8) -> Outcome {
    fs::write(scene.path("words"), words).unwrap();
    scene.run(&[&format!("print={},{code}", scene.path("words").display())], &[])
}

#[test]
fn boo_1_a_refusal_is_told_on_as_the_kernel_worded_it() {
    for code in [2, 4, 6] {
        let scene = Scene::new();
        let told = Trouble {
            code: 0,
            what: "no `sandbox`".to_owned(),
            why: "a \"quoted\\ reason\"\nof two lines, \u{1b}[31mred".to_owned(),
            fix: "fix it…".to_owned(),
        };
        let log = format!("{{\"what\":\n{}\nand then {{}}\n", told.to_line());
        let outcome = run_printing(&scene, log.as_bytes(), code);
        assert_eq!((outcome.code, scene.lives().len()), (code, 1));
        // The exit code is the kernel's own; the log does not change it.
        assert_eq!(outcome.trouble(), Trouble { code, ..told });
    }
}

#[test]
fn boo_1_a_refusal_without_words_is_told_with_the_logs_end() {
    let scene = Scene::new();
    let outcome = run_printing(&scene, b"the database is cut off\n", 6);
    assert_eq!((outcome.code, scene.lives().len()), (6, 1));
    assert_eq!(outcome.trouble().why, "the database is cut off");
}

#[test]
fn boo_1_a_refusal_for_want_of_a_sandbox_is_explained_by_the_machine() {
    let scene = Scene::new();
    scene.setting("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
    let outcome = run_printing(&scene, b"no luck\n", 4);
    assert_eq!(outcome.code, 4);
    assert!(outcome.trouble().why.contains("AppArmor"), "{:?}", outcome.lines);
    let outcome = run_printing(&scene, b"no luck\n", 6);
    assert_eq!(outcome.trouble().why, "no luck");
}

#[test]
fn boo_1_what_a_crashing_kernel_says_does_not_hide_that_it_crashes() {
    let told = r#"{"what":"all is well","why":"","fix":"","code":0}"#;
    let outcome = run_printing(&Scene::new(), told.as_bytes(), 1);
    let trouble = outcome.trouble();
    assert!(trouble.what.contains("does not stay up"), "{trouble:?}");
    assert_eq!((outcome.code, trouble.why.as_str()), (1, told));
}

#[test]
fn boo_1_the_last_twenty_lines_are_told_and_no_more() {
    let scene = Scene::new();
    let lines: Vec<String> = (0..100).map(|number| format!("line {number}")).collect();
    let outcome = run_printing(&scene, lines.join("\n").as_bytes(), 9);
    assert_eq!(outcome.trouble().why, lines[80..].join("\n"));
    let outcome = run_printing(&Scene::new(), lines[90..].join("\n").as_bytes(), 9);
    assert_eq!(outcome.trouble().why, lines[90..].join("\n"));
}

#[test]
fn a_hostile_log_is_told_in_one_short_line_that_steers_nothing() {
    let every_byte: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let logs: [Vec<u8>; 7] = [
        Vec::new(),
        every_byte,
        b"\x1b".repeat(1 << 20),
        "\u{202e}\u{2066}\u{9b}31m\r\n".repeat(1000).into(),
        "\u{1f600}".repeat(100_000).into(),
        b"{\"what\":\"\\u12".to_vec(),
        b"{\"what\":\"a\",\"why\":\"b\",\"fix\":\"c\",\"code\":4}}".to_vec(),
    ];
    for log in logs {
        let outcome = run_printing(&Scene::new(), &log, 6);
        assert_eq!((outcome.code, outcome.lines.len()), (6, 1));
        let line = &outcome.lines[0];
        check_inert(line);
        assert!(line.len() < 60_000, "{}", line.len());
        assert_eq!(outcome.trouble().what, "the kernel refuses");
    }
}

#[test]
fn boo_1_the_log_of_the_life_before_is_kept_once() {
    let scene = Scene::new();
    for words in ["first", "second", "third"] {
        run_printing(&scene, words.as_bytes(), 2);
    }
    let read = |name: &str| fs::read_to_string(scene.path(name)).unwrap();
    assert_eq!((read("log"), read("log.1")), ("third".to_owned(), "second".to_owned()));
    assert!(!scene.path("log.1.1").exists() && !scene.path("log.2").exists());
}

#[test]
fn the_log_is_its_owners_alone() {
    let scene = Scene::new();
    fs::write(scene.path("log"), "open to all").unwrap();
    run_printing(&scene, b"mine", 2);
    let mode = fs::metadata(scene.path("log")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_log_that_is_a_link_or_a_directory_is_refused() {
    for target in ["precious", "nothing"] {
        let scene = Scene::new();
        fs::write(scene.path("precious"), "precious").unwrap();
        symlink(scene.path(target), scene.path("log")).unwrap();
        let outcome = run_printing(&scene, b"words", 2);
        assert_eq!((outcome.code, scene.lives().len()), (2, 0));
        assert!(outcome.trouble().why.contains("log`: File exists"), "{:?}", outcome.lines);
        assert_eq!(fs::read_to_string(scene.path("precious")).unwrap(), "precious");
        assert!(!scene.path("nothing").exists());
    }
    let scene = Scene::new();
    fs::create_dir(scene.path("log")).unwrap();
    assert_eq!(run_printing(&scene, b"words", 2).code, 2);
    assert_eq!(scene.lives().len(), 0);
}

#[test]
fn a_link_in_the_place_of_the_log_before_is_replaced() {
    let scene = Scene::new();
    fs::write(scene.path("precious"), "precious").unwrap();
    fs::write(scene.path("log"), "before").unwrap();
    symlink(scene.path("precious"), scene.path("log.1")).unwrap();
    run_printing(&scene, b"now", 2);
    assert_eq!(fs::read_to_string(scene.path("precious")).unwrap(), "precious");
    assert_eq!(fs::read_to_string(scene.path("log.1")).unwrap(), "before");
}
