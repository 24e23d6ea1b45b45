//! One test for each check, named after its promise.

use std::io;

use xtask::{CHECKS, Repo};

fn check(name: &str) -> io::Result<()> {
    let repo = Repo::here()?;
    let checks: Vec<_> = CHECKS.iter().filter(|check| check.name == name).collect();
    assert_eq!(checks.len(), 1, "there should be one check called `{name}`");
    for check in checks {
        let findings: Vec<String> = (check.run)(&repo).iter().map(ToString::to_string).collect();
        assert!(findings.is_empty(), "not true that {}:\n{}", check.promise, findings.join("\n"));
    }
    Ok(())
}

#[test]
fn crates_know_only_what_the_design_lets_them_know() -> io::Result<()> {
    check("edges")
}

#[test]
fn source_files_say_what_they_are_for_and_manifests_share_the_lints() -> io::Result<()> {
    check("headers")
}

#[test]
fn nothing_unfinished_no_path_of_one_machine_and_no_empty_name_is_left() -> io::Result<()> {
    check("words")
}

#[test]
fn documents_exist_their_links_resolve_and_dependencies_have_reasons() -> io::Result<()> {
    check("docs")
}

#[test]
fn the_page_of_events_is_what_the_source_says() -> io::Result<()> {
    check("events")
}

#[test]
fn every_requirement_has_its_row_and_every_test_named_there_exists() -> io::Result<()> {
    check("conformance")
}

#[test]
fn every_package_has_a_licence_that_is_allowed() -> io::Result<()> {
    check("licences")
}

#[test]
fn every_check_has_a_test_here() {
    let source = include_str!("repository.rs");
    for check in CHECKS {
        assert!(source.contains(&format!("check(\"{}\")", check.name)), "{}", check.name);
    }
}
