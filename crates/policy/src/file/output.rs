//! Reads the section `output`: what of a result is masked and how much of it is handed on.

use crate::sanitise::{Keep, ResultLimit, ResultLimits, Sanitiser, SecretPattern};
use crate::yaml::{Field, Problem};

/// What is written about results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OutputRules {
    pub(crate) secrets: Vec<SecretPattern>,
    pub(crate) limits: ResultLimits,
}

pub(super) fn read(field: &Field<'_>) -> Result<OutputRules, Problem> {
    let [tokens, secrets, tools] = field.fields(["max_result_tokens", "secrets", "tools"])?;
    let mut limits = ResultLimits::default();
    if let Some(tokens) = tokens {
        let tokens = read_tokens(&tokens)?;
        limits.others.tokens = tokens;
        limits.tools.values_mut().for_each(|limit| limit.tokens = tokens);
    }
    if let Some(tools) = tools {
        let expected = "tools, such as `test.run: { keep: tail, max_result_tokens: 8000 }`";
        for (name, section) in tools.members(expected)? {
            let limit = read_limit(&section, limits.of(name))?;
            limits.tools.insert(name.to_owned(), limit);
        }
    }
    let secrets = match secrets {
        None => Vec::new(),
        Some(list) => list
            .items("a list of `{ name, pattern }`")?
            .iter()
            .map(read_secret)
            .collect::<Result<_, _>>()?,
    };
    let rules = OutputRules { secrets, limits };
    // Each pattern was compiled at its own place; what is left concerns the section.
    rules.sanitiser().map_err(|error| field.invalid(&error))?;
    Ok(rules)
}

impl OutputRules {
    pub(crate) fn sanitiser(&self) -> Result<Sanitiser, crate::SanitiseError> {
        Sanitiser::new(&self.secrets, self.limits.clone())
    }
}

fn read_limit(field: &Field<'_>, otherwise: ResultLimit) -> Result<ResultLimit, Problem> {
    let [keep, tokens] = field.fields(["keep", "max_result_tokens"])?;
    let keep = match keep {
        None => otherwise.keep,
        Some(keep) => Keep::parse(keep.text()?)
            .ok_or_else(|| keep.invalid(&"what is kept is head, tail or middle"))?,
    };
    let tokens = tokens.map(|tokens| read_tokens(&tokens)).transpose()?;
    Ok(ResultLimit { keep, tokens: tokens.unwrap_or(otherwise.tokens) })
}

fn read_tokens(field: &Field<'_>) -> Result<u32, Problem> {
    let number = field.integer("a number of tokens")?;
    u32::try_from(number).map_err(|_| field.invalid(&"it is a number of tokens, from 100"))
}

fn read_secret(field: &Field<'_>) -> Result<SecretPattern, Problem> {
    let [name, pattern] = field.fields(["name", "pattern"])?;
    let name = name.ok_or_else(|| field.missing("name", "what messages call the pattern"))?;
    let pattern = pattern.ok_or_else(|| field.missing("pattern", "a regular expression"))?;
    let secret = SecretPattern { name: name.text()?.to_owned(), regex: pattern.text()?.to_owned() };
    let alone = Sanitiser::new(std::slice::from_ref(&secret), ResultLimits::default());
    alone.map_err(|error| pattern.invalid(&error))?;
    Ok(secret)
}
