//! A decision by this project's rules and by `cedar-policy`, on rule sets that say the same.
//!
//! `cargo bench --manifest-path benches/cedar/Cargo.toml`
//!
//! One iteration is one decision with the rule that made it; requests, facts and entities are made
//! beforehand on both sides, and both are built with the same flags. Every rule lets one call write below one directory. In Cedar that is
//! written twice: as a pattern over the path (`like`), and as membership in a folder (`in`), for which
//! whoever asks has to hand over the folders that a file lies in.

use std::collections::HashSet;

use cedar_policy::{
    Authorizer, Context, Decision, Entities, Entity, EntityUid, PolicySet, Request,
    RestrictedExpression,
};
use divan::{Bencher, black_box};
use fluffy_base::{Json, KernelRequest, KernelState, ProjectPath};
use fluffy_policy::{BuiltIn, Facts, Isolation, PolicyFile, Rule, Subject, decide};

const RULES: [usize; 3] = [10, 100, 1_000];

fn main() {
    divan::main();
}

/// Whether the file lies where a rule lets it.
#[derive(Debug, Clone, Copy)]
enum Asked {
    Allowed,
    DeniedBySilence,
}

fn asked() -> impl Iterator<Item = (usize, Asked)> {
    RULES.into_iter().flat_map(|rules| [(rules, Asked::Allowed), (rules, Asked::DeniedBySilence)])
}

/// The path that is asked about: in the middle of the rules, or in a directory of none.
fn path((rules, asked): (usize, Asked)) -> (String, String) {
    let folder = match asked {
        Asked::Allowed => format!("dir{}", rules / 2),
        Asked::DeniedBySilence => "elsewhere".to_owned(),
    };
    (format!("{folder}/src/main.rs"), folder)
}

#[divan::bench(args = asked(), sample_count = 100, sample_size = 32)]
fn fluffy(bencher: Bencher<'_, '_>, case: (usize, Asked)) {
    let mut text = "jurisdiction: { allowed_actors: [model], allowed_tools: ['*'] }\n".to_owned();
    text += "capabilities:\n";
    for n in 0..case.0 {
        text += &format!(
            "  - name: r{n}\n    match: {{ syscall: fs.write, path_glob: ['dir{n}/**'] }}\n"
        );
        text += "    action: allow\n";
    }
    let policy = PolicyFile::parse("policy.yaml", &text).unwrap();
    let (built_in, own) = (BuiltIn::new([]), policy.rules());
    let rules: Vec<&dyn Rule> =
        std::iter::once(&built_in as &dyn Rule).chain(own.iter().map(|rule| &**rule)).collect();
    let request = KernelRequest::call("r", "model", "write", "fs.write", Json::empty_object());
    let subject = Subject {
        paths: vec![ProjectPath::parse(&path(case).0).unwrap()],
        changes: true,
        isolation: Isolation::Sandbox,
        ..Subject::default()
    };
    let facts = Facts::new(&request, KernelState::Idle).about(&subject);
    bencher.bench_local(|| decide(rules.iter().copied(), black_box(&facts)));
}

#[divan::bench(args = asked(), sample_count = 100, sample_size = 32)]
fn cedar_like(bencher: Bencher<'_, '_>, case: (usize, Asked)) {
    let rule = |n: usize| {
        format!(
            "permit(principal == Actor::\"model\", action == Action::\"fs.write\", resource) \
             when {{ resource.path like \"dir{n}/*\" }};\n"
        )
    };
    cedar(bencher, case, &(0..case.0).map(rule).collect::<String>());
}

#[divan::bench(args = asked(), sample_count = 100, sample_size = 32)]
fn cedar_in(bencher: Bencher<'_, '_>, case: (usize, Asked)) {
    let rule = |n: usize| {
        format!(
            "permit(principal == Actor::\"model\", action == Action::\"fs.write\", \
             resource in Folder::\"dir{n}\");\n"
        )
    };
    cedar(bencher, case, &(0..case.0).map(rule).collect::<String>());
}

fn cedar(bencher: Bencher<'_, '_>, case: (usize, Asked), text: &str) {
    let policies: PolicySet = text.parse().unwrap();
    let id = |text: String| text.parse::<EntityUid>().unwrap();
    let (path, folder) = path(case);
    let folder = id(format!("Folder::\"{folder}\""));
    let file = id(format!("File::\"{path}\""));
    let attributes = [("path".to_owned(), RestrictedExpression::new_string(path))];
    let file_entity =
        Entity::new(file.clone(), attributes.into(), HashSet::from([folder.clone()])).unwrap();
    let entities =
        Entities::from_entities([file_entity, Entity::new_no_attrs(folder, HashSet::new())], None)
            .unwrap();
    let principal = id("Actor::\"model\"".to_owned());
    let action = id("Action::\"fs.write\"".to_owned());
    let request = Request::new(principal, action, file, Context::empty(), None).unwrap();
    let judge = Authorizer::new();
    let expected = match case.1 {
        Asked::Allowed => Decision::Allow,
        Asked::DeniedBySilence => Decision::Deny,
    };
    assert_eq!(judge.is_authorized(&request, &policies, &entities).decision(), expected);
    bencher.bench_local(|| judge.is_authorized(black_box(&request), &policies, &entities));
}
