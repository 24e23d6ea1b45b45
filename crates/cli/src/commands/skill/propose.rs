//! `fluffy skill propose`: what a skill is to do, and all that it may ever touch.

use serde_json::{Value, json};

use super::{Desk, given, known, manner};
use crate::args::ProposeArgs;
use crate::explain::CliError;
use crate::output::Output;
use crate::wire::{Handed, SkillWork};

pub(super) fn run(
    desk: &Desk<'_>,
    args: &ProposeArgs,
    output: &mut Output,
) -> Result<u8, CliError> {
    let spec = match &args.file {
        Some(path) => {
            let text = given::text_of(path)?;
            let proposal: fluffy_forge::Proposal =
                given::structured(&text, &path.display().to_string())?;
            serde_json::to_value(&proposal).map_err(std::io::Error::from)?
        }
        None => typed(args)?,
    };
    desk.answer(SkillWork::Propose { spec }, Handed::default(), manner(args.json), output)
}

/// What was typed as a proposal; clap sees to it that what must be there is.
fn typed(args: &ProposeArgs) -> Result<Value, CliError> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let name = known(&text(&args.name))?;
    let path = |text: &String| match fluffy_base::ProjectPath::parse(text) {
        Ok(path) => Ok(path.to_string()),
        Err(error) => Err(CliError::Value {
            given: fluffy_base::Excerpt::new(text, 80).to_string(),
            wanted: format!("a folder of the project: {error}"),
        }),
    };
    let paths = |list: &[String]| list.iter().map(path).collect::<Result<Vec<_>, _>>();
    Ok(json!({
        "name": name,
        "description": text(&args.description),
        "input": given::schema(&text(&args.input_schema))?,
        "output": given::schema(&text(&args.output_schema))?,
        "side_effect": text(&args.side_effect).to_ascii_uppercase(),
        "reads": paths(&args.reads)?,
        "writes": paths(&args.writes)?,
        "hosts": args.hosts,
        "secrets": args.secrets,
        "model": args.model,
    }))
}
