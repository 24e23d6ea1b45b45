//! The page of events is what the source says: `docs/events.md` from the comments of the events.

use std::fmt::Write as _;

use crate::repo::{Finding, Repo};

const PAGE: &str = "docs/events.md";
const SOURCE: &str = "crates/base/src/event.rs";

/// What stands before the events.
const BEFORE: &str = "\
# Events

<!-- Written by `cargo xtask write`; change the comments in `crates/base/src/event.rs` and write it again. -->

With `--json`, `fluffy run`, `fluffy session resume`, `fluffy session say` and `fluffy session attach` write one object a line to the
standard output. Every event has `v` (the version of this format), `seq` (counts from 0), `ts_ms` (milliseconds since 1970) and `type`;
what else it has stands below. Fields marked *optional* are left out where there is nothing to say. New fields and new events may
come with any release; `v` changes when something that is here is taken away or means something else.

";

/// Whether the page is as the source says.
pub(crate) fn check(repo: &Repo) -> Vec<Finding> {
    let Some(source) = repo.text(SOURCE) else {
        return vec![Finding::file(SOURCE, "is missing")];
    };
    match repo.text(PAGE) {
        Some(text) if text == page(source) => Vec::new(),
        _other => vec![Finding::file(PAGE, "is not what the source says: run `cargo xtask write`")],
    }
}

/// The page, with where it belongs.
pub(crate) fn written(repo: &Repo) -> Option<(&'static str, String)> {
    repo.text(SOURCE).map(|source| (PAGE, page(source)))
}

/// An event or a type that events have, as the source has it.
#[derive(Debug, Default)]
struct Item {
    name: String,
    about: String,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    name: String,
    kind: String,
    about: String,
}

fn page(source: &str) -> String {
    let mut page = BEFORE.to_owned();
    let items = items(source);
    for item in &items {
        let name = &item.name;
        // Writing to a string does not fail.
        let _ok = write!(page, "## `{name}`\n\n{}\n\n", item.about);
        if item.fields.is_empty() {
            continue;
        }
        page += "| field | value | |\n|---|---|---|\n";
        for Field { name, kind, about } in &item.fields {
            let _ok = writeln!(page, "| `{name}` | {} | {about} |", value(kind));
        }
        page.push('\n');
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// The variants of `Event` by their names on the wire, then the types that they have.
fn items(source: &str) -> Vec<Item> {
    let (mut items, mut open, mut about, mut name) =
        (Vec::new(), None::<Item>, String::new(), None);
    let text = source.split("#[cfg(test)]").next().unwrap_or(source);
    for line in text.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("/// ") {
            about = format!("{about} {words}").trim().to_owned();
        } else if let Some(renamed) = between(line, "#[serde(rename = \"", "\")]") {
            name = Some(renamed.to_owned());
        } else if let Some(kind) = between(line, "pub struct ", " {") {
            let (name, about) = (kind.to_owned(), std::mem::take(&mut about));
            open = Some(Item { name, about, fields: Vec::new() });
        } else if let Some(name) = name.take_if(|_| line.ends_with('{')) {
            open = Some(Item { name, about: std::mem::take(&mut about), fields: Vec::new() });
        } else if line.starts_with('}') {
            items.extend(open.take());
        } else if let (Some(item), Some((name, kind))) = (&mut open, field(line)) {
            item.fields.push(Field { name, kind, about: std::mem::take(&mut about) });
        } else if !line.starts_with("#[") {
            about.clear();
        }
    }
    items
}

fn field(line: &str) -> Option<(String, String)> {
    let (name, kind) = line.strip_suffix(',')?.split_once(": ")?;
    Some((name.trim_start_matches("pub ").to_owned(), kind.to_owned()))
}

fn between<'a>(line: &'a str, before: &str, after: &str) -> Option<&'a str> {
    line.strip_prefix(before)?.strip_suffix(after)
}

/// What a Rust type is in JSON.
fn value(kind: &str) -> String {
    if let Some(inner) = between(kind, "Option<", ">") {
        return format!("{}, *optional*", value(inner));
    }
    if let Some(inner) = between(kind, "Vec<", ">") {
        return format!("list of {}", value(inner));
    }
    match kind {
        "String" => "text".to_owned(),
        "bool" => "true or false".to_owned(),
        "u8" | "u16" | "u32" | "u64" | "usize" => "number".to_owned(),
        "Usd" => "number, in US dollars".to_owned(),
        other => format!("[`{other}`](#{})", other.to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: &str = "\
/// Something.
pub enum Event {
    /// A thing
    /// happened.
    #[serde(rename = \"thing.happened\")]
    Thing {
        /// Which.
        id: String,
        /// How often.
        #[serde(skip_serializing_if = \"Option::is_none\")]
        times: Option<u64>,
        /// What.
        files: Vec<File>,
    },
}

/// A file.
pub struct File {
    /// Its path.
    pub path: String,
}
";

    #[test]
    fn events_are_told_with_their_fields_and_comments() {
        let page = page(EVENTS);
        assert!(page.contains("## `thing.happened`\n\nA thing happened.\n"), "{page}");
        assert!(page.contains("| `id` | text | Which. |\n"), "{page}");
        assert!(page.contains("| `times` | number, *optional* | How often. |\n"), "{page}");
        assert!(page.contains("| `files` | list of [`File`](#file) | What. |\n"), "{page}");
        assert!(page.ends_with("## `File`\n\nA file.\n\n| field | value | |\n|---|---|---|\n| `path` | text | Its path. |\n"), "{page}");
    }

    #[test]
    fn a_page_that_is_not_what_the_source_says_is_found() {
        let right = Repo::of(&[(SOURCE, EVENTS), (PAGE, &page(EVENTS))]);
        assert!(check(&right).is_empty());
        let stale = Repo::of(&[(SOURCE, EVENTS), (PAGE, "# Events\n")]);
        assert_eq!(check(&stale).len(), 1);
        assert_eq!(check(&Repo::of(&[(SOURCE, EVENTS)])).len(), 1);
    }
}
