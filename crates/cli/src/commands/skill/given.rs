//! What a command is given on its line, in a file, or on the standard input.

use std::io::Read as _;
use std::path::Path;

use fluffy_forge::{Chain, SkillName};
use serde_json::Value;

use crate::commands::read_bounded;
use crate::explain::{CliError, Explained, USAGE};

/// The most that is read.
const MAX_BYTES: u64 = 4 << 20;

/// The input of a skill or a plugin's tool: JSON, `@FILE` or `-`.
pub(crate) fn input(given: &str) -> Result<Value, CliError> {
    let text = match given.strip_prefix('@') {
        _ if given == "-" => stdin()?,
        Some(path) => file(Path::new(path))?,
        None => given.to_owned(),
    };
    json(&text, "the input", "give it as JSON, as `@FILE`, or `-` for the standard input")
}

/// A chain from a file, and the skills in it.
pub(super) fn chain(path: &Path) -> Result<(Value, Vec<SkillName>), CliError> {
    let chain: Chain = structured(&file(path)?, &path.display().to_string())?;
    let names = chain.steps.iter().map(|step| step.skill.clone()).collect();
    let value = serde_json::to_value(&chain).map_err(std::io::Error::from)?;
    Ok((value, names))
}

/// Something from YAML, or from JSON, which is said to be at `place`.
pub(super) fn structured<T: serde::de::DeserializeOwned>(
    text: &str,
    place: &str,
) -> Result<T, CliError> {
    let wrong = |problem: String| CliError::Settings { file: place.to_owned(), problem };
    match text.trim_start().starts_with('{') {
        true => serde_json::from_str(text).map_err(|error| wrong(error.to_string())),
        false => serde_saphyr::from_str(text).map_err(|error| wrong(error.to_string())),
    }
}

/// A schema: JSON on the line, or a file with YAML or JSON.
pub(super) fn schema(given: &str) -> Result<Value, CliError> {
    if given.trim_start().starts_with('{') {
        return json(given, "the schema", "give it as JSON, or name a file");
    }
    structured(&file(Path::new(given))?, given)
}

/// A file, or the standard input.
pub(super) fn text_of(path: &Path) -> Result<String, CliError> {
    if path == Path::new("-") { stdin() } else { file(path) }
}

fn file(path: &Path) -> Result<String, CliError> {
    let bytes = read_bounded(path, MAX_BYTES + 1)?;
    text(bytes, &path.display().to_string())
}

fn stdin() -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let path = || "-".into();
    let failed = |source| CliError::File { action: "read", path: path(), source };
    std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    text(bytes, "the standard input")
}

fn text(bytes: Vec<u8>, place: &str) -> Result<String, CliError> {
    let wrong = |problem: String| CliError::Settings { file: place.to_owned(), problem };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(wrong(format!("it has more than {} MiB", MAX_BYTES >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned()))
}

fn json(text: &str, what: &str, fix: &str) -> Result<Value, CliError> {
    // What two readers could understand differently, such as a name that is there twice, is refused.
    let parsed = fluffy_base::Json::parse(text.as_bytes());
    parsed.map(|json| json.value().clone()).map_err(|error| {
        CliError::Told(Explained {
            what: format!("{what} is not JSON"),
            why: error.to_string(),
            fix: fix.to_owned(),
            code: USAGE,
        })
    })
}
