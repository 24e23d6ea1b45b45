//! Trusted skills as tools of the kernel's, under the same policy as all others.

use fluffy_base::{Decision, Json, KernelRequest, ReceiptStatus};
use fluffy_forge::{RunError, SkillName, TrustError};
use fluffy_kernel::{Effect, Tool as _};
use serde_json::json;

use crate::scene::{Scene, Stage, skill};

fn ask(stage: &Stage, actor: &str, tool: &str) -> fluffy_base::KernelReceipt {
    let params = Json::new(json!({"text": "x"})).unwrap();
    stage.kernel.submit(KernelRequest::call("r", actor, "try it", tool, params))
}

#[test]
fn for_13_a_trusted_skill_is_a_tool_that_the_model_can_call() {
    let stage = Scene::probe("READ_ONLY", "return {\"text\": input[\"text\"]}").start();
    let receipt = ask(&stage, "model", "skill.probe");
    assert_eq!(receipt.status, ReceiptStatus::Accepted, "{:?}", receipt.error);
    assert_eq!(*receipt.tool_result.unwrap().value(), json!({"text": "x"}));
    let [run] = stage.shelf.log(None, 10).unwrap().try_into().unwrap();
    assert_eq!(run.record["request"], "r");
    let receipt = ask(&stage, "model", "skill.other");
    assert_eq!(receipt.decision, Decision::Deny);
}

#[test]
fn for_13_what_no_rule_allows_is_denied_for_skills_as_for_all_tools() {
    let jurisdiction =
        "version: 1\njurisdiction: { allowed_actors: ['*'], allowed_tools: ['*'] }\n";
    for (rules, class, decision, asked) in [
        ("", "READ_ONLY", Decision::Deny, 0),
        (
            "{ syscall: skill.*, side_effect: READ_ONLY }, action: allow",
            "READ_ONLY",
            Decision::Allow,
            0,
        ),
        (
            "{ syscall: skill.*, side_effect: READ_ONLY }, action: allow",
            "FILE_WRITE",
            Decision::Deny,
            0,
        ),
        ("{ syscall: skill.probe }, action: allow", "FILE_WRITE", Decision::Allow, 0),
        (
            "{ syscall: skill.probe, path_glob: ['notes/**', notes] }, action: allow",
            "FILE_WRITE",
            Decision::Allow,
            0,
        ),
        (
            "{ syscall: skill.probe, path_glob: ['src/**'] }, action: allow",
            "FILE_WRITE",
            Decision::Deny,
            0,
        ),
        ("{ syscall: skill.probe }, action: require_review", "FILE_WRITE", Decision::Allow, 1),
    ] {
        let mut scene = Scene::probe(class, "return {}");
        // What a run reads and writes is asked of the rules for files.
        let files = "  - { name: files, match: { syscall: fs.* }, action: allow }\n";
        let rules = match rules {
            "" => String::new(),
            rules => format!("  - {{ name: skills, match: {rules} }}\n"),
        };
        scene.policy = format!("{jurisdiction}capabilities:\n{files}{rules}");
        let stage = scene.start();
        let receipt = ask(&stage, "model", "skill.probe");
        assert_eq!(receipt.decision, decision, "{rules}{class}: {:?}", receipt.error);
        assert_eq!(stage.asked().len(), asked, "{rules}");
    }
}

#[test]
fn for_13_a_tool_says_what_was_promoted_and_its_parameters_are_its_input() {
    let mut scene = Scene::new();
    let properties = json!({"file": {"type": "string"}, "path": {}});
    let input = json!({"type": "object", "properties": properties, "additionalProperties": true});
    let proposal = json!({"name": "probe", "side_effect": "FILE_WRITE", "input": input});
    scene.add(proposal, &skill("probe", "FILE_WRITE", "return input"));
    let stage = scene.start();
    let tool = stage.runs.tool(&SkillName::parse("probe").unwrap()).unwrap();
    let spec = tool.spec();
    assert_eq!((&*spec.name, spec.effect), ("skill.probe", Effect::Some));
    assert_eq!(spec.schema["additionalProperties"], json!(false));
    assert_eq!(spec.shape.side_effect, Some("FILE_WRITE"));
    assert!(spec.shape.changes);
    let touched: Vec<_> = tool.confined_to().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(touched, ["notes"]);
    let given = stage.gives(json!({"file": "../../etc/passwd", "path": "/x"}));
    assert_eq!(given, json!({"file": "../../etc/passwd", "path": "/x"}));
    let (tools, left_out) = stage.runs.tools().unwrap();
    assert_eq!((tools.len(), left_out.len()), (1, 0));
}

#[test]
fn a_call_that_was_judged_for_another_promotion_does_not_run() {
    let mut scene = Scene::probe("READ_ONLY", "return {}");
    let stage = scene.start();
    let name = SkillName::parse("probe").unwrap();
    stage.shelf.revoke(&stage.kernel, &name, "ada", "again").unwrap();
    // The same name, promoted with more rights, while this kernel still knows the tool of before.
    let body = "(self.folder(\"notes\") / \"x\").write_text(\"x\")\nreturn {}";
    let source = skill("probe", "FILE_WRITE", body);
    scene.again(json!({"name": "probe", "side_effect": "FILE_WRITE"}), &source, &stage);
    let error = stage.run("probe", json!({})).unwrap_err();
    assert!(matches!(error, RunError::Trust(TrustError::Promoted(_))), "{error}");
    assert!(!scene.file("notes/x").exists());
}
