//! XML of reports, read strictly.
//!
//! **Invariant.** Nothing outside the text is opened and no entity is expanded: a document type that
//! declares any is refused. Size and number of nodes are limited.

use roxmltree::{Document, Node, ParsingOptions};

/// More than any report has, less than memory.
const MAX_NODES: u32 = 2_000_000;
const MAX_BYTES: usize = 16 << 20;

/// Attributes of one element, and name spaces of the whole. The reader looks for doubles among them in
/// quadratic time, so few are allowed; what looks like one in a text counts as well.
const MAX_ATTRIBUTES: usize = 1000;

/// Whether a document may name its type (`<!DOCTYPE …>`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doctype {
    Refused,
    /// Only a name and an address, which is not looked at.
    Ignored,
}

/// The tree of `text`, or why there is none.
pub(crate) fn parse(text: &str, doctype: Doctype) -> Result<Document<'_>, String> {
    let allow_dtd = match doctype {
        Doctype::Refused => false,
        Doctype::Ignored => {
            if text.contains("<!ENTITY") {
                return Err("declares entities".to_owned());
            }
            true
        }
    };
    if text.len() > MAX_BYTES {
        return Err(format!("has more than {MAX_BYTES} bytes"));
    }
    // A tag begins with `<` and holds no other, so every tag lies within one of these parts.
    let crowded = text.split('<').any(|part| attributes(part) > MAX_ATTRIBUTES);
    if crowded || text.matches("xmlns").count() > MAX_ATTRIBUTES {
        return Err(format!("has an element of more than {MAX_ATTRIBUTES} attributes"));
    }
    let options = ParsingOptions { allow_dtd, nodes_limit: MAX_NODES, ..Default::default() };
    Document::parse_with_options(text, options).map_err(|error| error.to_string())
}

fn attributes(part: &str) -> usize {
    let values = part.split('=').skip(1).map(str::trim_start);
    values.filter(|value| value.starts_with(['"', '\''])).count()
}

/// A number in an attribute; an absent one is none, an odd one is an error.
pub(crate) fn number(node: Node<'_, '_>, name: &str) -> Result<Option<u64>, String> {
    let Some(text) = node.attribute(name) else { return Ok(None) };
    let parsed = text.parse().map_err(|_| format!("attribute `{name}` is not a number"))?;
    Ok(Some(parsed))
}
