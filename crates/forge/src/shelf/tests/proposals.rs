//! What may be proposed.

use super::*;

fn with(change: impl FnOnce(&mut Proposal)) -> Result<Proposal, ProposalError> {
    let mut proposal = spec("a_skill");
    change(&mut proposal);
    proposal.checked()
}

#[track_caller]
fn refused(change: impl FnOnce(&mut Proposal), told: &str) {
    let error = with(change).unwrap_err().to_string();
    assert!(error.contains(told), "`{error}` does not say `{told}`");
}

#[test]
fn for_2_objects_are_closed_to_what_they_do_not_list() {
    let checked = with(|_| {}).unwrap();
    assert_eq!(checked.input["additionalProperties"], json!(false));
    assert_eq!(checked.clone().checked().unwrap(), checked, "checking again changes nothing");
}

#[test]
fn for_2_a_schema_is_a_closed_object_that_refers_to_nothing_else() {
    for (schema, told) in [
        (json!("object"), "is no object"),
        (json!({"type": "string"}), "does not describe an object"),
        (json!({"type": ["object", "null"]}), "does not describe an object"),
        (json!({"type": "object", "additionalProperties": true}), "must be false"),
        (json!({"type": "object", "additionalProperties": {}}), "must be false"),
        (json!({"type": "object", "properties": {"a": {"type": "nothing"}}}), "no JSON Schema"),
        (json!({"type": "object", "properties": {"a": {"$ref": "https://x.org/s"}}}), "refers"),
        (json!({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}), "refers"),
        (json!({"type": "object", "$id": "https://x.org/s"}), "refers"),
        (json!({"type": "object", "$schema": "https://x.org/s"}), "refers"),
        (json!({"type": "object", "title": "x".repeat(70_000)}), "too large"),
        (json!({"type": "object", "properties": {"a": {"pattern": "(a)\\1"}}}), "no JSON Schema"),
    ] {
        refused(|proposal| proposal.input = schema.clone(), told);
        refused(|proposal| proposal.output = schema.clone(), told);
    }
    let mut deep = json!({"type": "object"});
    for _ in 0..40 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    refused(|proposal| proposal.input = deep, "too deep");
    let own = json!({"type": "object", "$defs": {"t": {"type": "string"}},
        "properties": {"a": {"$ref": "#/$defs/t"}}});
    with(|proposal| proposal.input = own).unwrap();
}

#[test]
fn for_2_a_description_is_plain_text_that_people_see() {
    for (text, told) in [
        ("", "is empty"),
        (" \t ", "is empty"),
        ("a\nb", "control"),
        ("a\u{1b}[31mb", "control"),
        ("a\u{202e}b", "nobody sees"),
        ("a\u{200b}b", "nobody sees"),
        ("a\u{e0041}b", "nobody sees"),
        (&"x".repeat(1001), "too long"),
    ] {
        refused(|proposal| proposal.description = text.to_owned(), told);
    }
    with(|proposal| proposal.description = "Schreibt eine Notiz — 日本語".to_owned()).unwrap();
}

#[test]
fn for_2_hosts_are_public_names_with_a_port() {
    for host in [
        "127.0.0.1",
        "127.0.0.1:80",
        "[::1]:443",
        "::1",
        "localhost",
        "localhost:8080",
        "a.localhost",
        "169.254.169.254",
        "metadata.google.internal",
        "printer.local",
        "10.0.0.1",
        "127.1",
        "0x7f.1",
        "2130706433",
        "1.2.3.4",
        "example.org:0",
        "example.org:65536",
        "example.org:+80",
        "example.org:080",
        "example.org:",
        "example.org:80:80",
        "https://example.org",
        "example.org/path",
        "user@example.org",
        "*",
        "*.org",
        "*.",
        "a.*.org",
        "*.*.example.org",
        "exa mple.org",
        "example.org.",
        ".example.org",
        "EXAMPLE.org",
        "ex\u{e4}mple.org",
        "-a.org",
        "",
        "example.org\n",
    ] {
        refused(|proposal| proposal.hosts = vec![host.to_owned()], "host `");
    }
    for host in ["example.org", "api.example.org:8443", "*.example.org", "xn--exmple-cua.org:1"] {
        with(|proposal| proposal.hosts = vec![host.to_owned()]).unwrap();
    }
    refused(|proposal| proposal.hosts = vec!["a.org".to_owned(); 2], "listed twice");
    let many = (0..33).map(|n| format!("h{n}.org")).collect();
    refused(|proposal| proposal.hosts = many, "more than 32 hosts");
}

#[test]
fn for_2_secrets_have_names_that_no_program_obeys() {
    for secret in ["", "token", "1A", "_A", "A-B", "A B", "A=B", "A\0", "Ä", "LD_PRELOAD", "PATH"]
    {
        refused(|proposal| proposal.secrets = vec![secret.to_owned()], "secret `");
    }
    refused(|proposal| proposal.secrets = vec!["PYTHONPATH".to_owned()], "programs obey");
    with(|proposal| proposal.secrets = vec!["A1_B".to_owned()]).unwrap();
}

#[test]
fn for_2_no_folder_is_fluffys_or_gits_own() {
    for folder in [".git", ".git/hooks", "a/.GIT/b", ".fluffy", ".fluffy/skills", ".FLUFFY/x"] {
        refused(|proposal| proposal.reads = vec![path(folder)], "no skill touches it");
    }
    refused(|proposal| proposal.reads = vec![path("a"); 2], "listed twice");
    with(|proposal| proposal.reads = vec![path("a"), path("a/b"), path(".gitea")]).unwrap();
}

#[test]
fn for_2_class_and_lists_agree() {
    use SideEffect::{FileWrite, Messaging, Money, Network, ReadOnly, SecretRead};
    let allowed = |class| match class {
        ReadOnly => [[false; 2], [false; 2], [false; 2]],
        FileWrite => [[true, true], [false; 2], [false; 2]],
        Network => [[false; 2], [true, true], [false; 2]],
        // May, must.
        SecretRead => [[false; 2], [true, false], [true, true]],
        Money | Messaging => [[false; 2], [true, true], [true, false]],
    };
    for class in SideEffect::ALL {
        for lists in 0..8_u8 {
            let has = [lists & 1 != 0, lists & 2 != 0, lists & 4 != 0];
            let fits = allowed(class).iter().zip(has).all(
                |([may, must], has)| {
                    if has { *may } else { !*must }
                },
            );
            let checked = with(|proposal| {
                proposal.side_effect = class;
                proposal.writes = if has[0] { vec![path("out")] } else { vec![] };
                proposal.hosts = if has[1] { vec!["a.org".to_owned()] } else { vec![] };
                proposal.secrets = if has[2] { vec!["A".to_owned()] } else { vec![] };
            });
            assert_eq!(checked.is_ok(), fits, "{class} with {has:?}: {checked:?}");
        }
    }
}
