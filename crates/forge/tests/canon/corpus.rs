//! The corpus of hostile and of honest files on the whole way: none of the first is trusted, or gets what it tries for.

use std::fs;
use std::path::{Path, PathBuf};

use fluffy_base::{Digest, ProjectPath, Span};
use fluffy_forge::build::Built;
use fluffy_forge::{
    ArtifactKind, Attempt, BuildEnd, Gate, GateResult, Pinned, Proposal, SKILLS, Sealed,
    SideEffect, SkillEntry, SkillName, Standing, base,
};
use serde_json::{Value, json};

use crate::scene::{Scene, program, transcript};
use crate::server::Server;

const DESCRIPTION: &str = "A skill of the corpus.";

/// One file of the corpus, with the skill that it is or belongs to.
struct Case {
    file: String,
    proposal: Proposal,
    files: Vec<(String, Vec<u8>)>,
    seen_by: String,
}

impl Case {
    fn read(path: &Path, number: usize) -> Self {
        let file = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let bytes = fs::read(path).unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut lines = text.split('\n');
        let first = lines.next().unwrap_or_default();
        let seen = first.split_once("; seen by: ").map_or("", |(_, seen)| seen);
        let seen_by = seen.split(';').next().unwrap_or_default().trim().to_owned();
        let effect = lines.next().and_then(|line| line.strip_prefix("# side effects: "));
        let effect = effect.and_then(|word| SideEffect::from_name(word.trim()));
        let effect = effect.unwrap_or(SideEffect::ReadOnly);
        // Tests and shared modules are those of a skill of ours, each of a name of its own.
        let inside = file.starts_with("test_") || file.starts_with("support_");
        let name = if inside { format!("subject{number}") } else { file.clone() };
        let proposal = proposal(&name, effect);
        let own = (format!("{SKILLS}/{name}.py"), bytes.clone());
        let tests = (format!("{SKILLS}/tests/test_{name}.py"), plain_tests(&proposal));
        let renamed = || rename(&bytes, &proposal);
        let files = if file.starts_with("test_") {
            let skill = (own.0, subject(&proposal, "LIMIT = 2\n", "pass"));
            vec![skill, (tests.0, renamed())]
        } else if file.starts_with("support_") {
            let skill = subject(&proposal, "from support import settings\n", "str(settings.LIMIT)");
            vec![(own.0, skill), tests, (format!("{SKILLS}/support/settings.py"), renamed())]
        } else {
            vec![own, tests]
        };
        Self { file, proposal, files, seen_by }
    }

    fn name(&self) -> &SkillName {
        &self.proposal.name
    }

    /// Has it built: by a transcript, or by a program where it is no text.
    fn build(&self, scene: &Scene) -> Built {
        let text = |(path, bytes): &(String, Vec<u8>)| {
            Some((path.clone(), String::from_utf8(bytes.clone()).ok()?))
        };
        match self.files.iter().map(text).collect::<Option<Vec<_>>>() {
            Some(files) => scene.play(self.name(), &transcript(&[&files])).unwrap(),
            None => {
                let writes: String = self.files.iter().map(written).collect();
                let script = format!("mkdir -p {SKILLS}/tests\n{writes}");
                scene.build(self.name(), &program(&script, Span::from_ms(60_000))).unwrap()
            }
        }
    }
}

/// A line of the shell that writes any bytes.
fn written((path, bytes): &(String, Vec<u8>)) -> String {
    let octal: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
    format!("printf '{octal}' > {path}\n")
}

/// The same tests for a skill of another name.
fn rename(bytes: &[u8], proposal: &Proposal) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.replace("SubjectSkill", &proposal.name.class_name());
    text.replace("subject", proposal.name.as_str()).into_bytes()
}

fn subject(proposal: &Proposal, top: &str, body: &str) -> Vec<u8> {
    let (class, name, effect) = (proposal.name.class_name(), &proposal.name, proposal.side_effect);
    format!(
        "from fluffy_skill import BaseSkill\n{top}\n\nclass {class}(BaseSkill):\n    name = \"{name}\"\n    \
         description = \"{DESCRIPTION}\"\n    side_effect_class = \"{effect}\"\n\n    \
         def execute(self, input: dict[str, object]) -> dict[str, object]:\n        {body}\n        return {{}}\n"
    )
    .into_bytes()
}

fn plain_tests(proposal: &Proposal) -> Vec<u8> {
    let (name, class) = (proposal.name.as_str(), proposal.name.class_name());
    let test = format!("def test_name() -> None:\n    assert {class}.name == \"{name}\"\n");
    format!("from {name} import {class}\n\n\n{test}").into_bytes()
}

/// What the corpus was written for, as far as a class may have it.
fn proposal(name: &str, side_effect: SideEffect) -> Proposal {
    let path = |text: &str| ProjectPath::parse(text).unwrap();
    let reaches = !matches!(side_effect, SideEffect::ReadOnly | SideEffect::FileWrite);
    let knows = reaches && side_effect != SideEffect::Network;
    let only = |wanted: bool, text: &str| wanted.then(|| text.to_owned()).into_iter().collect();
    let any = |names: &[&str]| {
        let properties: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    };
    Proposal {
        name: SkillName::parse(name).unwrap(),
        description: DESCRIPTION.to_owned(),
        input: any(&["name", "url", "q"]),
        output: any(&["text", "names", "digits", "found", "key", "in"]),
        side_effect,
        reads: vec![path("notes")],
        writes: (side_effect == SideEffect::FileWrite).then(|| path("notes")).into_iter().collect(),
        hosts: only(reaches, "api.example.org"),
        secrets: only(knows, "API_KEY"),
        model: true,
    }
}

fn corpus(kind: &str) -> Vec<Case> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(kind);
    let entries = fs::read_dir(directory).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().enumerate().map(|(number, path)| Case::read(path, number)).collect()
}

/// Of how many files one goes the whole way.
fn stride() -> usize {
    if std::env::var_os("FLUFFY_TEST_CORPUS").is_some() { 1 } else { 8 }
}

/// Files of the corpus that a reading refuses go the whole way; with the real tools, and each alone. Every one of them is
/// held against the gates that read by the tests of the scanner; here it is one of eight, and all of them with
/// `FLUFFY_TEST_CORPUS=all`.
fn none_is_trusted(part: usize, parts: usize) {
    let (scene, mut trusted) = (Scene::new(), Vec::new());
    let cases = corpus("hostile");
    let seen = cases.iter().filter(|case| case.seen_by != "run").step_by(stride());
    for case in seen.enumerate().filter(|(number, _)| number % parts == part).map(|(_, case)| case)
    {
        let name = scene.propose(case.proposal.clone());
        let built = case.build(&scene);
        assert!(matches!(built.end, BuildEnd::Built { .. }), "{}: {built:?}", case.file);
        let verified = scene.verify(&name).unwrap();
        let gate = |gate: Gate| verified.gates.iter().find(|it| it.gate == gate).unwrap().passed;
        let seen = match case.seen_by.as_str() {
            "policy" => !gate(Gate::Policy),
            "invariants" => !gate(Gate::Invariants),
            other => panic!("{}: nobody is called {other}", case.file),
        };
        let promoted = scene.shelf.promote(&scene, &name, "ada").is_ok();
        let in_project = scene.project(SKILLS).join(format!("{name}.py")).exists();
        if !seen
            || verified.passed
            || promoted
            || in_project
            || scene.standing(&name) != Standing::Built
        {
            trusted.push(case.file.clone());
        }
    }
    assert!(trusted.is_empty(), "{trusted:?}");
}

#[test]
fn slow_for_5_no_hostile_file_becomes_trusted_first_part() {
    none_is_trusted(0, 2);
}

#[test]
fn slow_for_5_no_hostile_file_becomes_trusted_second_part() {
    none_is_trusted(1, 2);
}

/// What cannot be seen before it runs: promoted as if every gate had been fooled.
fn trusted_by_mistake(scene: &Scene, case: &Case) {
    let (name, artifacts) = (case.name().clone(), scene.shelf.artifacts());
    let mut pinned: Vec<_> = case
        .files
        .iter()
        .map(|(path, bytes)| {
            let at = scene.project(path);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(at, bytes).unwrap();
            Pinned { path: ProjectPath::parse(path).unwrap(), sha256: Digest::of(bytes) }
        })
        .collect();
    pinned.sort_by(|one, two| one.path.cmp(&two.path));
    scene.propose(case.proposal.clone());
    let nothing = artifacts.put(ArtifactKind::Note, b"made up").unwrap();
    let build = format!("build-of-{name}");
    let builder = "nobody".to_owned();
    let attempt =
        Attempt { build: build.clone(), number: 1, parent: None, packet: nothing, builder };
    let passed =
        |gate| GateResult { gate, passed: true, summary: "fooled".to_owned(), findings: vec![] };
    for entry in [
        SkillEntry::BuildStarted { name: name.clone(), attempt },
        SkillEntry::BuildEnded {
            name: name.clone(),
            build: build.clone(),
            end: BuildEnd::Built { files: pinned.clone() },
            log: nothing,
        },
        SkillEntry::Verified {
            name: name.clone(),
            build,
            verification: format!("verification-of-{name}"),
            gates: Gate::ALL.into_iter().map(passed).collect(),
            sealed: Sealed { files: pinned, base: base().digest() },
            report: nothing,
        },
    ] {
        scene.shelf.record(scene, &entry).unwrap();
    }
    scene.promote(&name);
}

/// Every file of the project with its bytes, links as what they point to.
fn world(scene: &Scene) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut found, mut pending) = (Vec::new(), vec![scene.project("")]);
    while let Some(at) = pending.pop() {
        for entry in fs::read_dir(&at).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                pending.push(entry.path());
            } else if kind.is_symlink() {
                let to = fs::read_link(entry.path()).unwrap();
                found.push((entry.path(), to.into_os_string().into_encoded_bytes()));
            } else {
                found.push((entry.path(), fs::read(entry.path()).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn slow_for_11_what_only_a_run_shows_gets_nothing_when_it_runs() {
    let server = Server::new();
    let mut scene = Scene::through(Some(server.upstream()));
    scene.secrets.insert("API_KEY".to_owned(), "hunter2-of-the-api".to_owned());
    let cases: Vec<_> = corpus("hostile").into_iter().filter(|it| it.seen_by == "run").collect();
    assert_eq!(cases.len(), ENDS.len());
    fs::create_dir_all(scene.project("notes")).unwrap();
    fs::write(scene.project("notes/one.md"), "# One\n").unwrap();
    std::os::unix::fs::symlink("../src/main.py", scene.project("notes/link")).unwrap();
    cases.iter().for_each(|case| trusted_by_mistake(&scene, case));
    scene.start();
    let before = world(&scene);
    let mut wrong = Vec::new();
    for case in &cases {
        server.answers(&[]);
        let input = json!({"name": "link", "url": "http://evil.example/"});
        let ran = scene.run(case.name().as_str(), input);
        let told = match &ran {
            Ok(finished) => match (&finished.output, &finished.record.error) {
                (Some(output), _) => Ok(output.value().clone()),
                (None, error) => Err(error.as_ref().map(ToString::to_string).unwrap_or_default()),
            },
            Err(error) => Err(error.to_string()),
        };
        if !harmless(&case.file, &told) {
            wrong.push(format!("{}: {told:?}", case.file));
        }
        if world(&scene) != before || scene.project("../x.py").exists() {
            wrong.push(format!("{}: the project is changed", case.file));
        }
        if !server.heard().is_empty() {
            wrong.push(format!("{}: reached {:?}", case.file, server.heard()));
        }
    }
    let asked = scene.asked.lock().unwrap().join("\n");
    assert!(asked.contains("secrets: API_KEY"), "a person was asked first: {asked}");
    assert!(scene.left_running().is_empty(), "{:?}", scene.left_running());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What becomes of each: most fail in these words, and what a few may say says nothing.
const ENDS: [(&str, &str); 19] = [
    ("run_address_of_caller", "HTTP Error 403"),
    ("run_bytecode", ""),
    ("run_deep_answer", "RecursionError"),
    ("run_endless", "no result within its time"),
    ("run_fills_disk", "No space left"),
    ("run_large_number", "no result within its time"),
    ("run_megabytes", "limit of output"),
    ("run_memory", "without a result"),
    ("run_other_host", "HTTP Error 403"),
    ("run_other_project", ""),
    ("run_passwd", ""),
    ("run_raises", "RecursionError"),
    ("run_read_only_buffer", "Read-only file system"),
    ("run_secret_encoded", ""),
    ("run_slow_pattern", "no result within its time"),
    ("run_thread_bomb", "can't start new thread"),
    ("run_writes_through_link", "No such file"),
    ("run_writes_up", "Read-only file system"),
    ("run_wrong_answer", "not of the proposed form"),
];

/// Whether a run ended as it should, and told nothing.
fn harmless(file: &str, told: &Result<Value, String>) -> bool {
    let (_, words) = ENDS.iter().find(|(name, _)| *name == file).unwrap();
    match (file, told) {
        // Where memory ends, one of several ends comes first.
        ("run_memory", Err(why)) => {
            ["without a result", "MemoryError", "memory"].iter().any(|it| why.contains(it))
        }
        // It sees the one person of the sandbox, and nobody of the machine.
        ("run_passwd", Ok(given)) => {
            let text = given["text"].as_str().unwrap();
            text.lines().all(|line| line.starts_with("fluffy:") || line.starts_with("nobody:"))
        }
        // It sees its folder, and of all that lies above nothing.
        ("run_other_project", Ok(given)) => {
            let names = given["names"].as_array().unwrap();
            names.len() == 2 && names.iter().all(|name| name.as_str().unwrap().contains("/notes:"))
        }
        ("run_secret_encoded", Ok(given)) => *given == json!({"key": "***"}),
        // It wrote to a directory of the sandbox that is gone.
        ("run_bytecode", Ok(given)) => *given == json!({}),
        (_, Ok(_)) => false,
        (_, Err(why)) => !words.is_empty() && why.contains(words),
    }
}

#[test]
fn slow_for_6_no_honest_file_is_refused_by_a_gate_that_reads() {
    let scene = Scene::new();
    let mut refused = Vec::new();
    for case in corpus("honest").into_iter().step_by(stride().min(4)) {
        // One directory of shared modules: a skill that brings its own would change that of the others.
        if case.file.starts_with("support_") {
            continue;
        }
        let name = scene.propose(case.proposal.clone());
        let built = case.build(&scene);
        assert!(matches!(built.end, BuildEnd::Built { .. }), "{}: {built:?}", case.file);
        let verified = scene.verify(&name).unwrap();
        for gate in &verified.gates {
            let reads = matches!(gate.gate, Gate::Policy | Gate::Invariants);
            if reads && !gate.passed {
                refused.push(format!("{}: {:?}", case.file, gate.findings));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
