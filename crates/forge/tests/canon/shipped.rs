//! The shipped skills, each forged on the way that every skill goes, and used.

use std::fs;
use std::sync::Arc;

use fluffy_forge::build::Transcript;
use fluffy_forge::{
    BuildEnd, Gateway, GatewayError, Proposal, RunError, Shipped, SkillName, Standing, shipped,
};
use serde_json::{Value, json};

use crate::scene::Scene;
use crate::server::{Server, response};

/// A model for which a text is how much it speaks of boats, and how much of anything else.
struct Model;

impl Gateway for Model {
    fn generate(&self, prompt: &str) -> Result<String, GatewayError> {
        assert!(prompt.contains("harbour"), "it is asked about the note");
        Ok("It is about a harbour.".to_owned())
    }

    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, GatewayError> {
        let boats = |text: &String| ["boat", "ship", "harbour"].iter().any(|it| text.contains(it));
        Ok(texts
            .iter()
            .map(|text| if boats(text) { vec![1.0, 0.0] } else { vec![0.0, 1.0] })
            .collect())
    }
}

/// Forges a skill from its transcript: proposed, built, verified by the real tools, promoted.
#[track_caller]
fn forge(scene: &Scene, proposal: Proposal, transcript: &Transcript) -> SkillName {
    let name = scene.propose(proposal);
    let built = scene.play(&name, transcript).unwrap();
    assert!(matches!(built.end, BuildEnd::Built { .. }), "{name}: {built:?}");
    assert!(!scene.project(&format!(".fluffy/skills/{name}.py")).exists());
    let verified = scene.verify(&name).unwrap();
    assert!(verified.passed, "{name}: {:#?}", verified.gates);
    assert_eq!(scene.standing(&name), Standing::Verified);
    scene.promote(&name);
    name
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn file_names(scene: &Scene) -> Vec<String> {
    let entries = fs::read_dir(scene.project("notes")).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn for_14_the_six_shipped_skills_are_forged_by_the_pipeline_and_work_together() {
    let mut scene = Scene::new();
    for skill in shipped() {
        forge(&scene, skill.proposal().unwrap(), &skill.transcript().unwrap());
    }
    let trusted = scene.shelf.skills().unwrap();
    assert_eq!(trusted.iter().filter(|skill| skill.standing == Standing::Trusted).count(), 6);
    scene.start();

    // There is no vault yet.
    assert_eq!(
        scene.gives("read_notes_by_tag", json!({"tag": "sea"})),
        json!({"found": 0, "notes": []})
    );
    let harbour = "The harbour is old. Many a ship came to the harbour. Bread is sold there.";
    let note = json!({"title": "The Old Harbour", "text": harbour, "tags": ["sea"], "created": "2026-05-01"});
    let written = scene.gives("write_note", note.clone());
    assert_eq!(written, json!({"note": "the-old-harbour.md", "replaced": false}));
    let bread = json!({"title": "Bread", "text": "Flour and water.", "tags": ["food"]});
    scene.gives("write_note", bread);
    // What is there stays, and a title that would lead elsewhere does not.
    assert!(scene.fails("write_note", note).contains("already"));
    let out = json!({"title": "../../outside", "text": "x"});
    assert_eq!(scene.gives("write_note", out)["note"], "outside.md");
    assert_eq!(file_names(&scene), ["bread.md", "outside.md", "the-old-harbour.md"]);

    let found = scene.gives("read_notes_by_tag", json!({"tag": "sea"}));
    assert_eq!(
        (&found["found"], &found["notes"][0]["title"]),
        (&json!(1), &json!("The Old Harbour"))
    );
    assert_eq!(text(&found["notes"][0]["text"]), harbour);
    let found = scene.gives("search_notes", json!({"query": "old ship"}));
    assert_eq!(
        (&found["method"], &found["results"][0]["note"]),
        (&json!("lexical"), &json!("the-old-harbour.md"))
    );
    let summary =
        scene.gives("summarize_note", json!({"note": "the-old-harbour.md", "sentences": 1}));
    assert_eq!(
        (&summary["method"], &summary["summary"]),
        (&json!("extractive"), &json!("Many a ship came to the harbour."))
    );

    let day = json!({"date": "2026-05-02", "line": "Went to the harbour."});
    assert_eq!(scene.gives("create_daily_note", day.clone())["added"], true);
    let before = fs::read(scene.project("notes/2026-05-02.md")).unwrap();
    let again = scene.gives("create_daily_note", day);
    assert_eq!(again, json!({"note": "2026-05-02.md", "created": false, "added": false}));
    assert_eq!(fs::read(scene.project("notes/2026-05-02.md")).unwrap(), before);
    assert_eq!(scene.gives("read_notes_by_tag", json!({"tag": "daily"}))["found"], 1);
    assert!(scene.fails("create_daily_note", json!({"date": "2026-02-30"})).contains("ValueError"));

    with_a_model(&mut scene);
    hostile_inputs(&scene);
}

/// With a model, meaning decides: nowhere in the vault stands the word.
fn with_a_model(scene: &mut Scene) {
    scene.gateway = Arc::new(Model);
    scene.start();
    let found = scene.gives("search_notes", json!({"query": "boat", "limit": 2}));
    let names: Vec<_> =
        found["results"].as_array().unwrap().iter().map(|it| text(&it["note"])).collect();
    assert_eq!(
        (text(&found["method"]), names),
        ("embedding", vec!["2026-05-02.md", "the-old-harbour.md"])
    );
    let summary = scene.gives("summarize_note", json!({"note": "the-old-harbour.md"}));
    assert_eq!(
        (&summary["method"], &summary["summary"]),
        (&json!("model"), &json!("It is about a harbour."))
    );
}

/// What a hostile model would give them.
fn hostile_inputs(scene: &Scene) {
    for (name, input) in [
        ("summarize_note", json!({"note": "../src/main.py"})),
        ("summarize_note", json!({"note": "../.env"})),
        ("summarize_note", json!({"note": "a/b.md"})),
        ("create_daily_note", json!({"date": "../../x"})),
        ("create_daily_note", json!({"date": "2026-05-02", "folder": "src"})),
        ("write_note", json!({"title": "x", "text": "x", "tags": ["a\nb"]})),
        ("write_note", json!({"title": "x", "text": "x", "path": "src/main.py"})),
        ("read_notes_by_tag", json!({"tag": "*"})),
        ("read_notes_by_tag", json!({"tag": "sea", "limit": 1_000_000})),
        ("search_notes", json!({"query": "x", "hosts": ["evil.example"]})),
        ("http_get_json", json!({"resource": "//evil.example/x"})),
        ("http_get_json", json!({"resource": "/a?b", "hosts": ["evil.example"]})),
    ] {
        let refused = scene.run(name, input).unwrap_err();
        assert!(matches!(refused, RunError::Input(_)), "{name}: {refused}");
    }
    let title = json!({"title": "x\ntags: [\"sea\"]", "text": "x"});
    assert!(scene.fails("write_note", title).contains("one line"));
    // Links in the vault lead nowhere, neither for reading nor for writing.
    for (name, target) in [
        ("link.md", "../.env"),
        ("2026-05-03.md", "../src/main.py"),
        ("linked.md", "../src/main.py"),
    ] {
        std::os::unix::fs::symlink(target, scene.project("notes").join(name)).unwrap();
    }
    let found = scene.gives("search_notes", json!({"query": "TOKEN hunter2 private", "limit": 50}));
    assert!(!found.to_string().contains("hunter2"), "{found}");
    scene.fails("summarize_note", json!({"note": "link.md"}));
    scene.fails("create_daily_note", json!({"date": "2026-05-03", "line": "x"}));
    scene.fails("write_note", json!({"title": "Linked", "text": "x", "overwrite": true}));
    assert_eq!(fs::read_to_string(scene.project("src/main.py")).unwrap(), "private = 1\n");
}

/// The shipped skill for a service that is spoken to without TLS, so that a test can be the service.
fn for_service(service: &str) -> (Proposal, Transcript) {
    let skill = Shipped::find("http_get_json").unwrap();
    let mut proposal = skill.proposal().unwrap();
    proposal.hosts = vec![format!("{service}:80")];
    let url = format!("http://{service}");
    let text = skill.transcript.replace("https://api.github.com", &url);
    let text = text.replace("http://api.github.com", "https://api.github.com");
    assert!(text.contains(&format!("SERVICE = \\\"{url}\\\"")));
    (proposal, Transcript::parse(&text.replace("api.github.com", service)).unwrap())
}

#[test]
fn lesson_l32_http_get_json_speaks_to_its_service_alone_and_carries_its_token_nowhere_else() {
    let server = Server::new();
    let mut scene = Scene::through(Some(server.upstream()));
    let (proposal, transcript) = for_service("api.example.org");
    forge(&scene, proposal, &transcript);
    scene.secrets.insert("GITHUB_TOKEN".to_owned(), "hunter2-of-the-api".to_owned());
    scene.start();
    let asks =
        |query: Value| scene.gives("http_get_json", json!({"resource": "/v1/x", "query": query}));

    server.answers(&[response("200 OK", "", "{\"a\": [1, 2.5, \"é\"]}")]);
    let given = asks(json!({"q": "a b", "host": "evil.example"}));
    assert_eq!(given, json!({"status": 200, "json": {"a": [1, 2.5, "é"]}}));
    let [(host, head)] = &server.heard()[..] else { panic!("{:?}", server.heard()) };
    assert_eq!(host, "api.example.org:80");
    assert!(head.starts_with("GET /v1/x?host=evil.example&q=a+b HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("Authorization: Bearer hunter2-of-the-api\r\n"), "{head}");
    assert!(scene.asked.lock().unwrap().iter().any(|it| it.contains("secrets: GITHUB_TOKEN")));

    // Within the service a redirect is followed, and the token stays behind.
    let away = |to: &str| response("302 Found", &format!("Location: {to}\r\n"), "");
    server.answers(&[away("/v2/x"), response("200 OK", "", "{}")]);
    assert_eq!(asks(json!({})), json!({"status": 200, "json": {}}));
    let heard = server.heard();
    assert_eq!(heard.len(), 2);
    assert!(heard[1].1.starts_with("GET /v2/x ") && !heard[1].1.contains("hunter2"), "{heard:?}");

    // To another place it is not, not even where the proxy would let it through.
    let elsewhere = [
        "http://evil.example/x",
        "//evil.example/x",
        "https://api.example.org/x",
        "http://api.example.org:8080/",
        "http://u@api.example.org/",
    ];
    for place in elsewhere {
        server.answers(&[away(place), response("200 OK", "", "{}")]);
        let why = scene.fails("http_get_json", json!({"resource": "/v1/x"}));
        assert!(why.contains("Refused"), "{place}: {why}");
        assert_eq!(server.heard().len(), 1, "{place}");
    }
    refused_answers(&scene, &server);
}

fn refused_answers(scene: &Scene, server: &Server) {
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    for (body, why) in [
        ("<html>", "no JSON"),
        ("{\"a\": NaN}", "no JSON"),
        ("{\"a\": 1, \"a\": 2}", "twice"),
        (&large, "more than 1048576 bytes"),
    ] {
        server.answers(&[response("200 OK", "", body)]);
        let told = scene.fails("http_get_json", json!({"resource": "/v1/x"}));
        assert!(told.contains(why), "{told}");
    }
    // An answer that gives the token back does not give it on.
    server.answers(&[response("404 Not Found", "", "{\"you\": \"hunter2-of-the-api\"}")]);
    let given = scene.gives("http_get_json", json!({"resource": "/v1/x"}));
    assert_eq!(given, json!({"status": 404, "json": {"you": "***"}}));
}
