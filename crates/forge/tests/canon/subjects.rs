//! A small honest skill, for which defects can be made.

use fluffy_forge::Proposal;
use serde_json::json;

pub(crate) const SKILL: &str = r#""""Greets somebody."""

from fluffy_skill import BaseSkill


class GreetSkill(BaseSkill):
    """Greets."""

    name = "greet"
    description = "Greets somebody by name."
    side_effect_class = "READ_ONLY"

    def execute(self, input: dict[str, object]) -> dict[str, object]:
        """Gives the greeting."""
        who = str(input["who"]).strip()
        if not who:
            raise ValueError("there is nobody to greet")
        return {"text": f"Hello, {who}!"}
"#;

pub(crate) const TESTS: &str = r#""""Tests of greeting."""

import pytest
from greet import GreetSkill


def test_somebody_is_greeted_by_name() -> None:
    assert GreetSkill().execute({"who": " Ann "}) == {"text": "Hello, Ann!"}


def test_nobody_is_not_greeted() -> None:
    with pytest.raises(ValueError, match="nobody"):
        GreetSkill().execute({"who": " "})
"#;

pub(crate) fn proposal() -> Proposal {
    let text = json!({ "type": "string" });
    let object = |name: &str| {
        json!({
            "type": "object", "additionalProperties": false, "required": [name],
            "properties": { name: text },
        })
    };
    serde_json::from_value(json!({
        "name": "greet",
        "description": "Greets somebody by name.",
        "side_effect": "READ_ONLY",
        "input": object("who"),
        "output": object("text"),
    }))
    .unwrap()
}

/// The two files of the skill.
pub(crate) fn files(skill: &str, tests: &str) -> Vec<(String, String)> {
    vec![
        (".fluffy/skills/greet.py".to_owned(), skill.to_owned()),
        (".fluffy/skills/tests/test_greet.py".to_owned(), tests.to_owned()),
    ]
}

/// A shell script that writes files.
pub(crate) fn script(files: &[(String, String)]) -> String {
    let write = |(path, text): &(String, String)| format!("cat > {path} <<'END'\n{text}END\n");
    let writes: String = files.iter().map(write).collect();
    format!("mkdir -p .fluffy/skills/tests\n{writes}")
}
