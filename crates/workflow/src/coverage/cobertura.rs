//! XML of cobertura: `class` elements with a file name and lines. Rates are not read: they are floats
//! made of what the lines say.

use std::collections::BTreeMap;

use super::{CoverageError, Found, Hits, summed};
use crate::xml::{self, Doctype};

pub(super) fn read(text: &str) -> Result<Found, CoverageError> {
    let document = xml::parse(text, Doctype::Ignored).map_err(CoverageError::malformed)?;
    let root = document.root_element();
    if !root.has_tag_name("coverage") {
        return Err(CoverageError::malformed("it is no cobertura report"));
    }
    let mut files: BTreeMap<String, Hits> = BTreeMap::new();
    for class in root.descendants().filter(|node| node.has_tag_name("class")) {
        let name = class
            .attribute("filename")
            .ok_or_else(|| CoverageError::malformed("a class has no file name"))?;
        let hits = files.entry(name.to_owned()).or_default();
        // Lines stand in the class, and some tools repeat them in its methods.
        for line in class.descendants().filter(|node| node.has_tag_name("line")) {
            let value = |name: &str| match xml::number(line, name) {
                Ok(Some(number)) => Ok(number),
                Ok(None) => Err(CoverageError::malformed(format!("a line has no `{name}`"))),
                Err(why) => Err(CoverageError::malformed(why)),
            };
            hits.add(value("number")?, value("hits")? > 0);
        }
    }
    Ok(summed(files))
}
