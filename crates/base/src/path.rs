//! Names of files in the project, checked once.
//!
//! [`ProjectPath::parse`] reads every harmless spelling of a path (`./a`, `a//b`, `a/x/../b`) as one
//! value and refuses whatever leads out of the project or hides what it names.
//!
//! A `..` is taken away lexically, without asking the disk: `link/../b` is `b`, also where `link`
//! points elsewhere. That is safe because the value, not the text, goes on from here: it is what
//! rules judge, what the ledger records and what is opened, beneath the root's directory handle with
//! `openat2(RESOLVE_BENEATH)`. No second reading of the text could come to another file, and a link
//! that leads out fails at the opening.
//!
//! **Invariant.** A component is judged by itself, wherever it stands. So any run of a path's
//! components is a path again, and a parent needs no second check.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use crate::text::is_invisible;
use crate::{Excerpt, normalised};

const MAX_BYTES: usize = 4096;
const MAX_COMPONENT_BYTES: usize = 255;
const SHOWN_CHARS: usize = 120;

/// A file or directory of the project, named relative to the project's root.
///
/// Always normalised: never empty or absolute, no `.` or `..`, no back slash, no character that
/// cannot be seen, composed Unicode (NFC). Whoever receives one may join it to a root without
/// checking again. Upper and lower case differ here, as they do on the disks we support.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ProjectPath(String);

/// Why a text does not name a file of the project.
///
/// The text in it is shortened and escaped, so that a terminal may show it.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum PathError {
    /// There is no text.
    #[error("path is empty")]
    Empty,
    /// The root itself, however spelt; some callers have a use for it.
    #[error("path names the project's root, not a file in it")]
    Root,
    /// Starts with a slash, or with two (a network share).
    #[error("path `{0}` is absolute; paths are relative to the project's root")]
    Absolute(String),
    /// Has more `..` than directories to leave.
    #[error("path `{0}` leads out of the project")]
    Escapes(String),
    /// Has a component that a shell would read as somebody's home.
    #[error("path `{0}` has a component that starts with `~`, a home directory to a shell")]
    Home(String),
    /// Has a component that Windows would read as a drive.
    #[error("path `{0}` has a component that starts with a drive letter")]
    Drive(String),
    /// Has a back slash, which separates components on some systems and not on others.
    #[error("path `{0}` has a back slash; components are separated by `/`")]
    BackSlash(String),
    /// Has a control character or one that shows nothing, so that it may look like another path.
    #[error("path `{path}` has the invisible character U+{code:04X}")]
    Invisible {
        /// The path as it was given.
        path: String,
        /// The first such character.
        code: u32,
    },
    /// Has a component over 255 bytes.
    #[error("path `{0}` has a component of more than {MAX_COMPONENT_BYTES} bytes")]
    LongComponent(String),
    /// Is over 4096 bytes once normalised.
    #[error("path `{0}` has more than {MAX_BYTES} bytes")]
    Long(String),
}

impl ProjectPath {
    /// The one value that `text` spells, or the reason why it spells none.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let composed = normalised(text);
        check_characters(&composed, text)?;
        if composed.is_empty() {
            return Err(PathError::Empty);
        }
        if composed.starts_with('/') {
            return Err(PathError::Absolute(shown(text)));
        }
        let mut kept = Vec::new();
        for component in composed.split('/') {
            match component {
                "" | "." => {}
                ".." => {
                    kept.pop().ok_or_else(|| PathError::Escapes(shown(text)))?;
                }
                name => {
                    check_component(name, text)?;
                    kept.push(name);
                }
            }
        }
        if kept.is_empty() {
            return Err(PathError::Root);
        }
        let path = kept.join("/");
        if path.len() > MAX_BYTES { Err(PathError::Long(shown(text))) } else { Ok(Self(path)) }
    }

    /// What `text` names when it is read from this directory. It may climb with `..`, as far as the
    /// project goes.
    pub fn join(&self, text: &str) -> Result<Self, PathError> {
        if text.is_empty() {
            return Err(PathError::Empty);
        }
        if text.starts_with('/') {
            return Err(PathError::Absolute(shown(text)));
        }
        Self::parse(&format!("{self}/{text}"))
    }

    /// The path as careless disks read it, for protecting places whatever their spelling: without
    /// regard to case and to look-alikes that Unicode calls compatible, without the dots and spaces
    /// that some drop from the end of a name, without streams (`name:stream`), and with short names
    /// (`git~1`) as the hidden ones they stand for.
    pub fn folded(&self) -> Cow<'_, str> {
        let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'/');
        // Most paths are written plainly: a dot is harmless unless it ends a name.
        let bytes = self.0.as_bytes();
        let harmless = |pair: &[u8]| match pair {
            [b'.', next] => plain(*next) && *next != b'/',
            [byte, _] => plain(*byte),
            _ => false,
        };
        if bytes.windows(2).all(harmless) && bytes.last().is_some_and(|byte| plain(*byte)) {
            return Cow::Borrowed(&self.0);
        }
        let folded: Vec<String> = self.components().map(folded_name).collect();
        Cow::Owned(folded.join("/"))
    }

    /// The components with `/` between them.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The components, outermost first; there is at least one.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// The last component.
    pub fn file_name(&self) -> &str {
        self.0.rsplit_once('/').map_or(self.as_str(), |(_, name)| name)
    }

    /// The directory that holds this file; nothing if that is the root.
    pub fn parent(&self) -> Option<Self> {
        self.0.rsplit_once('/').map(|(parent, _)| Self(parent.to_owned()))
    }

    /// Whether this is `other` or lies beneath it. Compares whole components: `ab` does not start
    /// with `a`.
    pub fn starts_with(&self, other: &Self) -> bool {
        let rest = self.0.strip_prefix(other.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

fn check_characters(composed: &str, text: &str) -> Result<(), PathError> {
    for c in composed.chars() {
        if c == '\\' {
            return Err(PathError::BackSlash(shown(text)));
        }
        if c.is_control() || is_hidden(c) {
            return Err(PathError::Invisible { path: shown(text), code: c.into() });
        }
    }
    Ok(())
}

/// Characters that nobody sees in a name. Variation selectors are let through, for the sake of emoji.
fn is_hidden(c: char) -> bool {
    is_invisible(c) && !matches!(c, '\u{fe00}'..='\u{fe0f}')
}

fn check_component(name: &str, text: &str) -> Result<(), PathError> {
    if name.starts_with('~') {
        return Err(PathError::Home(shown(text)));
    }
    if let [letter, b':', ..] = name.as_bytes()
        && letter.is_ascii_alphabetic()
    {
        return Err(PathError::Drive(shown(text)));
    }
    if name.len() > MAX_COMPONENT_BYTES {
        return Err(PathError::LongComponent(shown(text)));
    }
    Ok(())
}

fn shown(text: &str) -> String {
    Excerpt::new(text, SHOWN_CHARS).to_string()
}

impl FromStr for ProjectPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for ProjectPath {
    type Error = PathError;

    fn try_from(text: String) -> Result<Self, PathError> {
        Self::parse(&text)
    }
}

impl fmt::Display for ProjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

fn folded_name(name: &str) -> String {
    let folded: String = name.nfkc().flat_map(char::to_lowercase).nfkc().collect();
    let name = folded.split(':').next().unwrap_or_default();
    let name = name.trim_end_matches(['.', ' ']);
    match name.split_once('~') {
        Some((long, number))
            if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            format!(".{}", long.trim_start_matches('.'))
        }
        Some(_) | None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> ProjectPath {
        ProjectPath::parse(text).unwrap()
    }

    fn refusal(text: &str) -> String {
        ProjectPath::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_folded_path_is_what_careless_disks_make_of_it() {
        let folded = |text: &str| ProjectPath::parse(text).unwrap().folded().into_owned();
        for text in [
            ".fluffy/x",
            ".Fluffy/x",
            ".FLUFFY/X",
            ".fluffy./x",
            ".fluffy /x",
            ".fluffy.../x",
            ".\u{fb02}uffy/x",
            "\u{ff0e}fluffy/x",
            "fluffy~1/x",
            "FLUFFY~1/x",
            ".fluffy:s/x",
            ".fluffy::$INDEX_ALLOCATION/x",
        ] {
            assert_eq!(folded(text), ".fluffy/x", "{text}");
        }
        for text in ["src/main.rs", ".gitignore", "a.b.c", "a-b_c/1"] {
            assert_eq!(folded(text), text);
            assert!(matches!(ProjectPath::parse(text).unwrap().folded(), Cow::Borrowed(_)));
        }
        assert_eq!(folded("a~b"), "a~b");
    }

    #[test]
    fn a_refusal_names_the_path_and_the_reason() {
        let table = [
            ("", "path is empty"),
            (".", "path names the project's root, not a file in it"),
            ("a/..", "path names the project's root, not a file in it"),
            ("/etc", "path `/etc` is absolute; paths are relative to the project's root"),
            (
                "//server/x",
                "path `//server/x` is absolute; paths are relative to the project's root",
            ),
            ("..", "path `..` leads out of the project"),
            ("a/../../b", "path `a/../../b` leads out of the project"),
            (
                "./~/x",
                "path `./~/x` has a component that starts with `~`, a home directory to a shell",
            ),
            ("C:/x", "path `C:/x` has a component that starts with a drive letter"),
            (r"\\server\x", r"path `\\server\x` has a back slash; components are separated by `/`"),
            ("a\0b", r"path `a\u{0}b` has the invisible character U+0000"),
            ("\u{200b}.env", r"path `\u{200b}.env` has the invisible character U+200B"),
        ];
        for (text, expected) in table {
            assert_eq!(refusal(text), expected);
        }
    }

    #[test]
    fn what_a_later_dot_dot_takes_away_is_judged_all_the_same() {
        for text in ["~/../a", "C:/../a", "a\\b/../a", "\u{202e}/../a"] {
            assert!(ProjectPath::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_component_of_255_bytes_is_the_longest() {
        assert!(ProjectPath::parse(&"x".repeat(255)).is_ok());
        assert!(matches!(ProjectPath::parse(&"x".repeat(256)), Err(PathError::LongComponent(_))));
    }

    #[test]
    fn a_path_of_4096_bytes_is_the_longest_however_long_its_spelling() {
        let longest = format!("{}/x", vec!["y".repeat(99); 40].join("/").get(..3999).unwrap());
        let longest = format!("{longest}/{}", "z".repeat(4096 - longest.len() - 1));
        assert_eq!(path(&longest).as_str().len(), 4096);
        assert_eq!(path(&longest.replace('/', "/.//")).as_str(), longest);
        let longer = ProjectPath::parse(&format!("{longest}z")).unwrap_err();
        assert!(matches!(&longer, PathError::Long(text) if text.chars().count() <= SHOWN_CHARS));
    }

    #[test]
    fn names_that_only_look_special_are_names() {
        for text in ["...", "a..b", ".env", "x~", "ab:c", "a b", " ", "ä/ö.rs", "\u{2764}\u{fe0f}"]
        {
            assert_eq!(path(text).as_str(), text);
        }
    }

    #[test]
    fn a_path_knows_its_parts() {
        let file = path("src/base/path.rs");
        assert_eq!(file.components().collect::<Vec<_>>(), ["src", "base", "path.rs"]);
        assert_eq!(file.file_name(), "path.rs");
        assert_eq!(file.parent(), Some(path("src/base")));
        assert_eq!(path("src").parent(), None);
        assert_eq!(path("src").file_name(), "src");
    }

    #[test]
    fn a_path_starts_with_whole_components_only() {
        let src = path("src");
        assert!(src.starts_with(&src));
        assert!(path("src/a").starts_with(&src));
        assert!(!path("srcs/a").starts_with(&src));
        assert!(!src.starts_with(&path("src/a")));
    }

    #[test]
    fn joining_climbs_inside_the_project_and_never_out() {
        let dir = path("src/base");
        assert_eq!(dir.join("../lib.rs"), Ok(path("src/lib.rs")));
        assert_eq!(dir.join("."), Ok(dir.clone()));
        assert_eq!(dir.join(""), Err(PathError::Empty));
        assert_eq!(dir.join("../.."), Err(PathError::Root));
        assert_eq!(dir.join("/etc"), Err(PathError::Absolute("/etc".to_owned())));
        assert_eq!(
            dir.join("../../../x"),
            Err(PathError::Escapes("src/base/../../../x".to_owned()))
        );
        assert!(matches!(dir.join("~/x"), Err(PathError::Home(_))));
    }

    #[test]
    fn a_path_is_read_from_json_only_through_the_check() {
        let read = serde_json::from_str::<ProjectPath>;
        assert_eq!(read(r#""./a//b""#).unwrap(), path("a/b"));
        assert_eq!(serde_json::to_string(&path("a/b")).unwrap(), r#""a/b""#);
        let refused = read(r#""../a""#).unwrap_err().to_string();
        assert_eq!(refused, "path `../a` leads out of the project");
        for other in ["1", "null", "[\"a\"]", "{\"path\":\"a\"}", "true"] {
            assert!(read(other).is_err(), "{other}");
        }
    }
}
