//! Greets people.

mod fluffy_plugin;

use fluffy_plugin::{Context, Plugin, ToolError};
use serde_json::{json, Value};

fn greet(arguments: &Value, _context: &Context) -> Result<Value, ToolError> {
    let name = arguments["name"].as_str().ok_or_else(|| ToolError::new("`name` is a text"))?;
    Ok(json!({ "greeting": format!("Hello, {name}!") }))
}

fn main() -> std::io::Result<()> {
    Plugin::new("NAME_OF_PLUGIN", "0.1.0").tool("GROUP_OF_TOOLS.greet", greet).run()
}
