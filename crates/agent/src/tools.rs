//! The tools as the model sees them, in the room there is for them.

use fluffy_base::{Excerpt, Json};
use fluffy_provider::ToolDefinition;
use serde_json::json;

/// How many bytes all definitions together may have: 3,000 tokens.
pub const MAX_TOOLS_BYTES: usize = 9_000;

/// How long a summary may be where there is no room.
const SHORT_SUMMARY_CHARS: usize = 80;

/// The definitions within the budget. What costs most loses its schema first and keeps its name and
/// summary; no tool disappears. The arguments are still checked against the whole schema when it is called.
pub(crate) fn fitted(mut tools: Vec<ToolDefinition>) -> Vec<ToolDefinition> {
    let mut total: usize = tools.iter().map(ToolDefinition::bytes).sum();
    let mut by_cost: Vec<usize> = (0..tools.len()).collect();
    by_cost.sort_by_key(|at| std::cmp::Reverse(tools.get(*at).map_or(0, ToolDefinition::bytes)));
    for at in by_cost {
        if total <= MAX_TOOLS_BYTES {
            break;
        }
        if let Some(tool) = tools.get_mut(at) {
            let before = tool.bytes();
            trim(tool);
            total = total.saturating_sub(before.saturating_sub(tool.bytes()));
        }
    }
    tools
}

fn trim(tool: &mut ToolDefinition) {
    let bare = Json::new(json!({ "type": "object" }));
    if let Ok(bare) = bare
        && bare.canonical().len() < tool.schema.canonical().len()
    {
        tool.schema = bare;
    }
    if tool.summary.len() > SHORT_SUMMARY_CHARS {
        tool.summary = Excerpt::new(&tool.summary, SHORT_SUMMARY_CHARS).to_string();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, bytes: usize) -> ToolDefinition {
        let schema = json!({ "type": "object", "description": "x".repeat(bytes) });
        ToolDefinition {
            name: name.to_owned(),
            summary: "Does it".to_owned(),
            schema: Json::new(schema).unwrap(),
        }
    }

    #[test]
    fn within_the_budget_nothing_changes() {
        let tools = vec![tool("a", 10), tool("b", 4_000), tool("c", 4_000)];
        assert_eq!(fitted(tools.clone()), tools);
    }

    #[test]
    fn over_the_budget_the_dearest_keep_name_and_summary_alone() {
        let tools = fitted(vec![tool("a", 10), tool("b", 8_000), tool("c", 4_000)]);
        let sizes: Vec<_> = tools.iter().map(|t| t.schema.canonical().len()).collect();
        assert_eq!(tools[1].schema.canonical(), "{\"type\":\"object\"}");
        assert!(sizes[2] > 4_000 && sizes[0] > 17, "{sizes:?}");
        assert_eq!((tools[1].name.as_str(), tools[1].summary.as_str()), ("b", "Does it"));
    }

    #[test]
    fn fifty_tools_with_large_schemas_fit() {
        let tools = fitted((0..50).map(|n| tool(&format!("tool.{n}"), 2_000)).collect());
        assert_eq!(tools.len(), 50);
        assert!(tools.iter().map(ToolDefinition::bytes).sum::<usize>() <= MAX_TOOLS_BYTES);
    }
}
