//! The reading tools on real files, through the same interface as the kernel.

#![expect(clippy::disallowed_methods, reason = "tests make the files they read")]

use std::os::unix::fs::symlink;
use std::sync::Arc;

use fluffy_base::{Json, ProjectPath, VirtualClock};
use fluffy_policy::{Glob, estimated_tokens};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::files::scene::Scene;
use crate::{Registry, ToolError};

/// A view, and a pattern of what may not be read.
struct Fixed {
    view: View,
    denied: Option<Glob>,
}

impl Views for Fixed {
    fn view(&self) -> View {
        self.view.clone()
    }

    fn may_read(&self, path: &ProjectPath) -> bool {
        !self.denied.as_ref().is_some_and(|glob| glob.matches(path))
    }
}

fn views(view: View, denied: &str) -> Arc<dyn Views> {
    let denied = (!denied.is_empty()).then(|| Glob::parse(denied).unwrap());
    Arc::new(Fixed { view, denied })
}

/// Runs a tool as the kernel does: by name, with arguments that its schema accepts.
fn call(views: &Arc<dyn Views>, name: &str, params: Value) -> Result<Value, String> {
    let mut registry = Registry::default();
    for tool in reading_tools(views) {
        registry.register(tool).unwrap();
    }
    let params = Json::new(params).unwrap();
    let tool = registry.find(name).unwrap();
    assert_eq!(tool.objections(&params), None);
    tool.tool.run(&params, &()).map_err(|ToolError(text)| text)
}

fn plain(scene: &Scene) -> Arc<dyn Views> {
    views(scene.view(&[]), "")
}

#[test]
fn the_schemas_of_the_reading_tools_are_small() {
    let scene = Scene::new();
    let tools = reading_tools(&plain(&scene));
    let tokens: usize = tools
        .iter()
        .map(|tool| {
            let spec = tool.spec();
            let text = format!("{} {} {}", spec.name, spec.summary, spec.schema);
            estimated_tokens(text.len())
        })
        .sum();
    assert!(tokens <= 500, "{tokens}");
}

#[test]
fn a_file_is_read_with_its_lines_and_line_ends_as_they_are() {
    let scene = Scene::new().has("a", "one\r\ntwo\nthree").has("empty", "");
    let views = plain(&scene);
    let read = |params| call(&views, "fs.read", params).unwrap();
    let expected = json!({"path": "a", "content": "one\r\ntwo\nthree", "first_line": 1,
        "last_line": 3, "total_lines": 3, "bytes": 14, "truncated": false});
    assert_eq!(read(json!({"path": "./a"})), expected);
    let window = read(json!({"path": "a", "offset": 2, "limit": 1}));
    assert_eq!((&window["content"], &window["last_line"]), (&json!("two\n"), &json!(2)));
    assert_eq!(window["truncated"], false);
    let rest = read(json!({"path": "a", "offset": 2}));
    assert_eq!((&rest["content"], &rest["last_line"]), (&json!("two\nthree"), &json!(3)));
    let empty = read(json!({"path": "empty"}));
    assert_eq!((&empty["content"], &empty["total_lines"]), (&json!(""), &json!(0)));
    let error = call(&views, "fs.read", json!({"path": "a", "offset": 4})).unwrap_err();
    assert_eq!(error, "`a` has 3 lines; there is no line 4");
    let error = call(&views, "fs.read", json!({"path": "a", "offset": 0})).unwrap_err();
    assert_eq!(error, "`offset` must be a number from 1");
}

#[test]
fn a_large_file_is_read_in_windows_that_join_to_the_whole() {
    let text: String = (0..200_000).map(|n| format!("line {n} of a file ä\n")).collect();
    let scene = Scene::new().has("big", &text);
    let views = plain(&scene);
    let (mut offset, mut joined) = (1, String::new());
    for _ in 0..20 {
        let answer = call(&views, "fs.read", json!({"path": "big", "offset": offset})).unwrap();
        assert_eq!(answer["total_lines"], 200_000);
        let content = answer["content"].as_str().unwrap();
        assert!(content.len() <= 50 * 1024);
        let last = answer["last_line"].as_u64().unwrap();
        let mark = format!(
            "[truncated: lines {offset} to {last} of 200000; go on with offset {}]",
            last + 1
        );
        joined.push_str(content.strip_suffix(&mark).unwrap());
        offset = last + 1;
    }
    assert!(text.starts_with(&joined));
}

#[test]
fn a_line_longer_than_the_limit_is_cut_between_characters() {
    for lead in 0..3 {
        let text = format!("{}{}\nnext", "x".repeat(lead), "ä€𝄞".repeat(20_000));
        let scene = Scene::new().has("long", &text);
        let answer = call(&plain(&scene), "fs.read", json!({"path": "long"})).unwrap();
        let content = answer["content"].as_str().unwrap();
        assert!(content.len() <= 50 * 1024);
        let (shown, mark) = content.rsplit_once('\n').unwrap();
        assert!(text.starts_with(shown));
        assert_eq!(mark, "[truncated: line 1 of 2 is cut; go on with offset 2]");
    }
}

#[test]
fn what_is_not_text_is_told_by_its_hash() {
    let scene = Scene::new();
    let late = [vec![b'a'; 70_000], vec![0]].concat();
    let half = [vec![b'a'; 65_535], "ä".as_bytes()[..1].to_vec()].concat();
    for bytes in [b"a\0b".to_vec(), b"\xff\xfe".to_vec(), late, half] {
        std::fs::write(scene.project().join("x"), &bytes).unwrap();
        let answer = call(&plain(&scene), "fs.read", json!({"path": "x"})).unwrap();
        let sha256 = fluffy_base::Digest::of(&bytes).to_string();
        let expected = json!({"path": "x", "binary": true, "bytes": bytes.len(), "sha256": sha256});
        assert_eq!(answer, expected);
    }
    // A character across two blocks is one character.
    let text = format!("{}ä", "a".repeat(65_535));
    std::fs::write(scene.project().join("x"), text).unwrap();
    let answer = call(&plain(&scene), "fs.read", json!({"path": "x"})).unwrap();
    assert_eq!((&answer["binary"], &answer["bytes"]), (&Value::Null, &json!(65_537)));
}

#[test]
fn a_refusal_to_read_says_what_to_do_instead() {
    let scene = Scene::new().has("src/main.rs", "").has("src/.env", "KEY=1").has("secret", "x");
    symlink("/etc/passwd", scene.project().join("out")).unwrap();
    symlink("src", scene.project().join("folder")).unwrap();
    let views = views(scene.view(&[]), "{.env,secret}");
    let error = |path: &str| call(&views, "fs.read", json!({"path": path})).unwrap_err();
    assert_eq!(error("src/mian.rs"), "`src/mian.rs` does not exist; in src there is `main.rs`");
    assert_eq!(error("src/.env1"), "`src/.env1` does not exist");
    assert_eq!(error("secre"), "`secre` does not exist");
    assert_eq!(error("gone/x"), "`gone/x` does not exist, nor does `gone`");
    assert_eq!(error("src"), "`src` is a directory; fs.list lists it");
    assert_eq!(error("."), "the root is a directory; fs.list lists it");
    let link = error("out");
    assert!(link.contains("leads to `/etc/passwd`") && link.ends_with("by its own path"), "{link}");
    let link = error("folder/main.rs");
    assert!(link.contains("(`folder` leads to `src`)"), "{link}");
    assert!(error("../x").contains("leads out of the project"));
}

#[test]
fn a_listing_tells_names_kinds_and_sizes() {
    let scene = Scene::new().has("a", "12345").has("d/x", "").has("d/e/y", "1").has("t/z", "");
    let scene = scene.has(".gitignore", "t/\n");
    symlink("a", scene.project().join("l")).unwrap();
    let views = views(scene.view(&[("new", Some("1")), ("a", Some("1234"))]), "");
    let list = |params| call(&views, "fs.list", params).unwrap();
    let entries = json!([{"name": ".gitignore", "bytes": 3}, {"name": "a", "bytes": 4},
        {"name": "d/"}, {"name": "l", "kind": "link"}, {"name": "new", "bytes": 1}, {"name": "t/"}]);
    assert_eq!(list(json!({})), json!({"path": ".", "entries": entries}));
    let entries = json!([{"name": "e/y", "bytes": 1}, {"name": "x", "bytes": 0}]);
    let expected = json!({"path": "d", "entries": entries});
    assert_eq!(list(json!({"path": "d/.", "recursive": true})), expected);
    let all = list(json!({"path": ".", "recursive": true}));
    assert_eq!(all["entries"].as_array().unwrap().len(), 5);
    let error = call(&views, "fs.list", json!({"path": "a"})).unwrap_err();
    assert_eq!(error, "`a` is not a directory; fs.read reads files");
}

#[test]
fn a_long_listing_says_how_much_more_there_is() {
    let scene = Scene::new();
    for number in 0..1003 {
        crate::files::scene::write(&scene.project(), &format!("d/{number:04}"), b"");
    }
    let views = plain(&scene);
    for params in [json!({"path": "d"}), json!({"recursive": true})] {
        let answer = call(&views, "fs.list", params).unwrap();
        assert_eq!(answer["entries"].as_array().unwrap().len(), 1000);
        assert_eq!(answer["more"], 3);
    }
    let answer = call(&views, "search.glob", json!({"pattern": "d/**"})).unwrap();
    assert_eq!((answer["files"].as_array().unwrap().len(), &answer["more"]), (1000, &json!(3)));
    assert_eq!(answer["files"][999], "d/0999");
}

#[test]
fn what_exists_is_told_with_its_kind() {
    let scene = Scene::new().has("d/a", "");
    symlink("d", scene.project().join("l")).unwrap();
    let views = views(scene.view(&[("d/b", Some("")), ("d/a", None)]), "");
    let exists = |path: &str| call(&views, "fs.exists", json!({"path": path}));
    for (path, kind) in [("d/b", "file"), ("d", "directory"), ("l", "link"), (".", "directory")] {
        assert_eq!(exists(path).unwrap(), json!({"exists": true, "kind": kind}), "{path}");
    }
    assert_eq!(exists("d/a").unwrap(), json!({"exists": false, "kind": null}));
    assert!(exists("l/a").unwrap_err().contains("links are not followed"));
}

#[test]
fn lesson_l16_a_denied_file_is_found_by_no_search() {
    let scene = Scene::new().has(".env", "KEY=secret").has("a/.env", "KEY=secret").has("b", "KEY");
    let views = views(scene.view(&[("c/.env", Some("KEY=secret"))]), ".env");
    for (tool, params) in [
        ("search.grep", json!({"pattern": "."})),
        ("search.grep", json!({"pattern": "KEY", "glob": ".e*"})),
        ("search.grep", json!({"pattern": "", "path": "a"})),
        ("search.grep", json!({"pattern": "secret", "path": "a/.env"})),
        ("search.glob", json!({"pattern": "**"})),
        ("search.glob", json!({"pattern": ".env"})),
        ("fs.list", json!({"recursive": true})),
        ("fs.list", json!({"path": "a"})),
        ("fs.list", json!({})),
    ] {
        let answer = call(&views, tool, params.clone()).unwrap();
        let text = answer.to_string();
        assert!(!text.contains("secret") && !text.contains(".env"), "{tool} {params}: {text}");
        assert!(answer["denied"].as_u64().unwrap() > 0, "{tool} {params}: {text}");
    }
}

#[test]
fn the_number_of_denied_files_does_not_depend_on_the_pattern() {
    let scene = Scene::new().has(".env", "KEY").has("b", "KEY").has("deploy.key", "x");
    let views = views(scene.view(&[]), "{.env,*.key}");
    for pattern in ["*", ".env", "d*", "nothing"] {
        let glob = call(&views, "search.glob", json!({"pattern": pattern})).unwrap();
        let grep = call(&views, "search.grep", json!({"pattern": "K", "glob": pattern})).unwrap();
        assert_eq!((&glob["denied"], &grep["denied"]), (&json!(2), &json!(2)), "{pattern}");
    }
}

#[test]
fn a_search_sees_the_session_and_not_the_project_beneath_it() {
    let scene = Scene::new().has("a", "old word\r\nlast").has("b", "word").has("bin", "word\0");
    let scene = scene.has(".gitignore", "ignored\n").has("ignored", "word");
    let views = views(scene.view(&[("a", Some("one\nnew word\r\n")), ("b", None)]), "");
    let grep = |params| call(&views, "search.grep", params).unwrap();
    let matches = json!([{"path": "a", "lines": ["2: new word"]}]);
    let expected = json!({"shown": 1, "total": 1, "matches": matches});
    assert_eq!(grep(json!({"pattern": "word$"})), expected);
    assert_eq!(grep(json!({"pattern": "WORD", "ignore_case": true})), expected);
    assert_eq!(grep(json!({"pattern": "(?i)WORD"})), expected);
    assert_eq!(grep(json!({"pattern": "WORD"}))["total"], 0);
    assert_eq!(grep(json!({"pattern": "old"}))["total"], 0);
    // What is asked for by its own name is searched, ignored or not.
    assert_eq!(grep(json!({"pattern": "word", "path": "ignored"}))["total"], 1);
}

#[test]
fn a_pattern_for_paths_is_read_from_the_root_or_from_where_the_search_begins() {
    let scene = Scene::new().has("src/api/a.rs", "x").has("src/b.rs", "x").has("c.rs", "x");
    let views = plain(&scene);
    for (params, expected) in [
        (json!({"pattern": "*.rs"}), json!(["c.rs", "src/api/a.rs", "src/b.rs"])),
        (json!({"pattern": "src/*.rs"}), json!(["src/b.rs"])),
        (json!({"pattern": "api/*.rs", "path": "src"}), json!(["src/api/a.rs"])),
        (json!({"pattern": "src/**", "path": "src"}), json!(["src/api/a.rs", "src/b.rs"])),
    ] {
        let answer = call(&views, "search.glob", params.clone()).unwrap();
        assert_eq!(answer["files"], expected, "{params}");
    }
    let error = call(&views, "search.glob", json!({"pattern": "!a"})).unwrap_err();
    assert!(error.contains('!'), "{error}");
    let error = call(&views, "search.glob", json!({"pattern": "*", "path": "c.rs"})).unwrap_err();
    assert_eq!(error, "`c.rs` is not a directory");
}

#[test]
fn a_search_that_finds_too_much_stops_at_the_same_place_every_time() {
    let scene = Scene::new();
    for number in 0..600 {
        let text = "match\n".repeat(7);
        crate::files::scene::write(&scene.project(), &format!("d/{number:04}"), text.as_bytes());
    }
    let views = views(scene.view(&[]), "*9");
    let first = call(&views, "search.grep", json!({"pattern": "match"})).unwrap();
    assert_eq!(
        (&first["shown"], &first["total"], &first["stopped"]),
        (&json!(200), &json!(2000), &json!(true))
    );
    for _ in 0..20 {
        assert_eq!(call(&views, "search.grep", json!({"pattern": "match"})).unwrap(), first);
    }
    let one = call(&views, "search.grep", json!({"pattern": "match", "path": "d/0001"})).unwrap();
    assert_eq!(
        (&one["shown"], &one["total"], &one["stopped"]),
        (&json!(7), &json!(7), &Value::Null)
    );
}

#[test]
fn a_long_line_is_shown_around_its_match() {
    let lead = "ä".repeat(5000);
    let scene = Scene::new().has("a", &format!("{lead}needle{lead}")).has("b", "short needle");
    let answer = call(&plain(&scene), "search.grep", json!({"pattern": "needle"})).unwrap();
    let line = answer["matches"][0]["lines"][0].as_str().unwrap();
    let text = line.strip_prefix("1: ").unwrap();
    assert_eq!(text.chars().count(), 300);
    assert!(text.contains("needle") && text.starts_with('…') && text.ends_with('…'), "{text}");
    assert!(!text.contains('\u{fffd}'), "{text}");
    assert_eq!(answer["matches"][1]["lines"][0], "1: short needle");
}

#[test]
fn a_large_file_is_searched_as_a_small_one() {
    let text: String = (1..=100_000).map(|n| format!("line {n}\r\n")).collect();
    let scene = Scene::new().has("big", &text).has("nul", &format!("{text}\0"));
    let views = plain(&scene);
    let answer = call(&views, "search.grep", json!({"pattern": "^line (1|99999)$"})).unwrap();
    let matches = json!([{"path": "big", "lines": ["1: line 1", "99999: line 99999"]}]);
    assert_eq!(answer["matches"], matches);
    let long = "x".repeat(17 << 20);
    let scene = Scene::new().has("long", &long);
    let answer = call(&plain(&scene), "search.grep", json!({"pattern": "y"})).unwrap();
    assert_eq!((&answer["total"], &answer["unreadable"]), (&json!(0), &json!(1)));
}

#[test]
fn a_pattern_that_is_wrong_or_too_large_is_refused_with_its_place() {
    let scene = Scene::new().has("a", "aaaa");
    let views = plain(&scene);
    let error =
        |pattern: &str| call(&views, "search.grep", json!({"pattern": pattern})).unwrap_err();
    let wrong = error("a(b");
    assert!(
        wrong.contains("a(b\n") && wrong.contains('^') && wrong.contains("unclosed"),
        "{wrong}"
    );
    assert!(error("a)|(b").contains("unopened group"));
    for pattern in ["(?:a{999}){999}", "((a{99}){99}){99}", r"\pL{9999}", r"(\w{200}){200}"] {
        let large = error(pattern);
        assert!(large.contains("size limit"), "{pattern}: {large}");
    }
    assert!(error(&"(".repeat(500)).contains("not valid"));
    assert!(error(&"a".repeat(5000)).contains("more than 4096 bytes"));
    assert!(error("a\nb").contains("not allowed"));
}

#[test]
fn a_search_ends_when_its_time_is_up() {
    let scene = Scene::new().has("a", "x").has("big", &"x\n".repeat(100_000));
    let views = plain(&scene);
    for params in [json!({"pattern": "x"}), json!({"pattern": "y", "path": "big"})] {
        let clock = Arc::new(VirtualClock::new(0, 15_000));
        let grep = SearchGrep::with_clock(Arc::clone(&views), clock);
        let ToolError(error) = grep.run(&Json::new(params).unwrap(), &()).unwrap_err();
        assert!(error.starts_with("the search took more than 20 s"), "{error}");
    }
}

#[test]
fn a_file_that_may_not_be_opened_is_counted_and_the_rest_searched() {
    use std::os::unix::fs::PermissionsExt as _;
    if rustix::process::geteuid().is_root() {
        // Root reads everything; the tests are also run as an ordinary user.
        return;
    }
    let scene = Scene::new().has("shut", "word").has("open", "word");
    let shut = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(scene.project().join("shut"), shut).unwrap();
    let views = plain(&scene);
    let answer = call(&views, "search.grep", json!({"pattern": "word"})).unwrap();
    assert_eq!((&answer["total"], &answer["unreadable"]), (&json!(1), &json!(1)));
    let error = call(&views, "fs.read", json!({"path": "shut"})).unwrap_err();
    assert!(error.contains("Permission denied"), "{error}");
}

#[test]
fn pipes_are_not_waited_for() {
    let scene = Scene::new().has("a", "word");
    let pipe = scene.project().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let views = plain(&scene);
    let answer = call(&views, "search.grep", json!({"pattern": "word"})).unwrap();
    assert_eq!(answer["total"], 1);
    let error = call(&views, "fs.read", json!({"path": "pipe"})).unwrap_err();
    assert_eq!(error, "`pipe` is not a regular file");
    assert!(call(&views, "search.grep", json!({"pattern": "word", "path": "pipe"})).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn no_pattern_makes_a_search_panic(
        pattern in prop_oneof![
            "\\PC{0,20}",
            r"[a-c()\[\]{}*+?|^$.\\,0-9:<>!=&~#-]{0,24}",
            any::<String>(),
        ],
        glob in prop::option::of(r"[a-c()\[\]{}*?!/,.-]{0,8}"),
        ignore_case in any::<bool>(),
    ) {
        thread_local! {
            static VIEWS: (Scene, Arc<dyn Views>) = {
                let scene = Scene::new().has("a", "abc\nä€\r\n\n").has("b/c", "a(b").has("d", "");
                let views = plain(&scene);
                (scene, views)
            };
        }
        VIEWS.with(|(_, views)| {
            let mut params = json!({"pattern": pattern, "ignore_case": ignore_case});
            if let Some(glob) = glob {
                params["glob"] = glob.into();
            }
            if let Ok(params) = Json::new(params) {
                let _ = SearchGrep::new(Arc::clone(views)).run(&params, &());
                let _ = SearchGlob::new(Arc::clone(views)).run(&params, &());
            }
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_window_is_the_lines_that_were_asked_for(
        lines in prop::collection::vec("[aä\r]{0,3}", 0..12),
        ends in any::<bool>(),
        offset in 1_u64..14,
        limit in 1_u64..14,
    ) {
        let text = lines.join("\n") + if ends { "\n" } else { "" };
        let scene = Scene::new().has("a", &text);
        let all: Vec<_> = text.split_inclusive('\n').collect();
        let params = json!({"path": "a", "offset": offset, "limit": limit});
        let answer = call(&plain(&scene), "fs.read", params);
        let skipped = usize::try_from(offset - 1).unwrap();
        if skipped >= all.len().max(1) {
            prop_assert!(answer.is_err());
        } else {
            let answer = answer.unwrap();
            let wanted = all.iter().skip(skipped).take(usize::try_from(limit).unwrap());
            prop_assert_eq!(answer["content"].as_str().unwrap(), wanted.copied().collect::<String>());
            prop_assert_eq!(&answer["total_lines"], &json!(all.len()));
        }
    }
}
