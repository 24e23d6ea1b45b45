//! The first request is small, whatever the project holds.

use fluffy_agent::{MAX_FIRST_REQUEST_BYTES, MAX_SYSTEM_BYTES, Rules};
use fluffy_base::Json;
use fluffy_provider::{ModelRequest, ToolDefinition};

use crate::scripted::{ScriptedBench, ScriptedProvider, run};

/// The tools of a session, with schemas as a kernel writes them.
const TOOLS: [(&str, &str, &str); 19] = [
    (
        "fs.read",
        "Reads a file of the project, at most 50 KB at a time",
        "path:string,offset:integer,limit:integer",
    ),
    ("fs.list", "Lists a directory", "path:string,recursive:boolean"),
    ("fs.exists", "Says whether a file or directory exists", "path:string"),
    (
        "search.grep",
        "Finds lines that match a regular expression",
        "pattern:string,path:string,glob:string,ignore_case:boolean",
    ),
    ("search.glob", "Finds files whose path matches a pattern", "pattern:string,path:string"),
    (
        "fs.write",
        "Writes a whole file, new or in place of an old one",
        "path:string,content:string",
    ),
    (
        "fs.edit",
        "Replaces a text in a file; the old text must be there exactly once, or all of them are replaced",
        "path:string,old:string,new:string,all:boolean",
    ),
    ("fs.delete", "Deletes a file", "path:string"),
    (
        "test.run",
        "Runs the project's tests and reports each of them",
        "pattern:string,timeout_ms:integer,coverage:boolean",
    ),
    (
        "shell.run",
        "Runs a program in a sandbox, without a shell",
        "command:string,args:array,cwd:string,timeout_ms:integer",
    ),
    ("git.status", "Says what has changed", ""),
    ("git.diff", "Shows what has changed", "path:string"),
    ("git.log", "Shows the latest commits", "limit:integer"),
    ("git.commit", "Commits the work of this session", "message:string"),
    ("plan.complete", "Ends planning: tests are written next", "summary:string"),
    ("tests.complete", "Ends the writing of tests: they are run and must fail", ""),
    ("code.complete", "Ends the writing of code: the tests are run and must pass", ""),
    (
        "workflow.request_exemption",
        "Asks to change files that need no test",
        "category:string,paths:array,reason:string",
    ),
    ("task.complete", "Says that everything is done", "summary:string"),
];

pub(crate) fn tool(name: &str, schema: &str) -> ToolDefinition {
    let schema = Json::parse(schema.as_bytes()).unwrap();
    ToolDefinition { name: name.to_owned(), summary: "Does it".to_owned(), schema }
}

fn tools(description: usize) -> Vec<ToolDefinition> {
    let definition = |(name, summary, properties): &(&str, &str, &str)| {
        let mut members = serde_json::Map::new();
        for property in properties.split(',').filter(|p| !p.is_empty()) {
            let (key, kind) = property.split_once(':').unwrap();
            let words = "Relative to the root of the project".repeat(description);
            members
                .insert(key.to_owned(), serde_json::json!({ "type": kind, "description": words }));
        }
        let schema = serde_json::json!({
            "type": "object", "properties": members, "additionalProperties": false, "required": []
        });
        ToolDefinition {
            name: (*name).to_owned(),
            summary: (*summary).to_owned(),
            schema: Json::new(schema).unwrap(),
        }
    };
    TOOLS.iter().map(definition).collect()
}

fn first(description: usize, notes: usize) -> ModelRequest {
    let text = "Write short functions and test each.\n".repeat(notes / 37);
    let bench = ScriptedBench {
        tools: tools(description),
        tree: (0..200).map(|n| format!("src/some/deep/place/file_{n}.rs")).collect(),
        rules: vec![Rules { path: "AGENTS.md".to_owned(), text }],
        ..ScriptedBench::default()
    };
    let provider = ScriptedProvider::new(vec![]);
    run(&bench, &provider);
    provider.asked().remove(0)
}

#[test]
fn nineteen_tools_a_full_tree_and_notes_fit_into_sixteen_kilobytes() {
    for description in [1, 3, 10, 100] {
        for notes in [0, 1_000, 4_000, 8_000, 100_000] {
            let request = first(description, notes);
            let bytes = request.bytes();
            assert!(bytes <= MAX_FIRST_REQUEST_BYTES, "{description} {notes}: {bytes}");
            assert!(request.system.len() < MAX_SYSTEM_BYTES);
            assert_eq!(request.tools.len(), 19);
            assert!(request.tools.iter().all(|tool| !tool.summary.is_empty()));
        }
    }
}

#[test]
fn the_dearest_tools_lose_their_schemas_first() {
    let whole = first(1, 0);
    assert!(whole.tools.iter().all(|tool| tool.schema.canonical().contains("properties")));
    let trimmed = first(5, 0);
    let bare = |tool: &ToolDefinition| tool.schema.canonical() == "{\"type\":\"object\"}";
    let lost = trimmed.tools.iter().filter(|tool| bare(tool)).count();
    assert!(lost > 0 && lost < 12, "{lost}");
    let costs: Vec<_> = tools(5).iter().map(ToolDefinition::bytes).collect();
    let of =
        |wanted| costs.iter().zip(&trimmed.tools).filter(move |(_, tool)| bare(tool) == wanted);
    let cheapest_lost = of(true).map(|(cost, _)| cost).min();
    assert!(of(false).all(|(cost, _)| Some(cost) <= cheapest_lost));
}

#[test]
fn notes_stand_in_the_prompt_or_before_the_conversation_and_are_quoted_in_both() {
    let short = first(1, 500);
    assert!(short.system.contains("\n| Write short functions"));
    assert_eq!(short.messages.len(), 1);
    let long = first(1, 6_000);
    assert!(!long.system.contains("Write short functions"));
    let fluffy_provider::Message::User { text } = &long.messages[0] else { panic!("no notes") };
    assert!(text.contains("untrusted") && text.contains("\n| Write short functions"), "{text}");
    assert!(text.len() > 3_000, "{}", text.len());
    let crowded = first(100, 6_000);
    assert!(crowded.system.contains("\n| Write short functions"), "cut, and not lost");
    assert!(crowded.system.contains("| [… "));
}
