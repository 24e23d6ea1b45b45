//! Whether a message is a coding task: something is to be done, and it is code that it is done to.

/// What is done to code.
const VERBS: [&str; 38] = [
    "add",
    "fix",
    "implement",
    "refactor",
    "rename",
    "write",
    "remove",
    "delete",
    "change",
    "update",
    "make",
    "optimize",
    "optimise",
    "extract",
    "move",
    "port",
    "convert",
    "debug",
    "create",
    "build",
    "introduce",
    "replace",
    "handle",
    "support",
    "improve",
    "clean",
    "document",
    "bump",
    "upgrade",
    "split",
    "inline",
    "simplify",
    "migrate",
    "test",
    "cover",
    "speed",
    "use",
    "allow",
];
/// Verbs that are said of code and hardly of anything else.
const STRONG: [&str; 4] = ["refactor", "implement", "debug", "inline"];
/// What code consists of.
const OBJECTS: [&str; 62] = [
    "function",
    "functions",
    "method",
    "methods",
    "class",
    "classes",
    "test",
    "tests",
    "bug",
    "bugs",
    "module",
    "modules",
    "endpoint",
    "api",
    "parser",
    "compiler",
    "build",
    "lint",
    "warning",
    "warnings",
    "type",
    "types",
    "struct",
    "enum",
    "crate",
    "package",
    "dependency",
    "dependencies",
    "import",
    "imports",
    "code",
    "codebase",
    "handler",
    "script",
    "cli",
    "flag",
    "option",
    "argument",
    "config",
    "schema",
    "query",
    "migration",
    "database",
    "regex",
    "loop",
    "variable",
    "constant",
    "interface",
    "trait",
    "docstring",
    "readme",
    "panic",
    "exception",
    "crash",
    "logging",
    "error",
    "errors",
    "cache",
    "server",
    "feature",
    "ci",
    "timeout",
];
/// Endings of files with code.
const ENDINGS: [&str; 24] = [
    "rs", "py", "js", "ts", "tsx", "jsx", "go", "java", "kt", "c", "h", "cpp", "hpp", "rb", "php",
    "cs", "sh", "toml", "yaml", "yml", "json", "sql", "css", "html",
];

/// Whether it is one.
pub(super) fn is_task(text: &str) -> bool {
    if text.trim_end().ends_with('?') {
        return false;
    }
    let mut words = text.split_whitespace();
    let verb = words.next().unwrap_or_default().to_ascii_lowercase();
    if !VERBS.contains(&verb.as_str()) {
        return false;
    }
    let mut rest = words.peekable();
    if rest.peek().is_none() {
        return false;
    }
    STRONG.contains(&verb.as_str()) || rest.any(is_code)
}

/// Whether a word is one of code: a name of something in it, a file, an identifier.
fn is_code(word: &str) -> bool {
    let bare = word.trim_matches([',', '.', ':', ';', '!', '(', ')', '"', '\'']);
    if word.contains('`') || word.contains("()") || word.contains("::") || word.contains("->") {
        return true;
    }
    if OBJECTS.contains(&bare.to_ascii_lowercase().as_str()) {
        return true;
    }
    let ending = bare.rsplit_once('.').map(|(name, ending)| !name.is_empty() && is_ending(ending));
    let is_path = bare.contains('/') && !bare.contains("://") && bare.len() > 2;
    ending == Some(true) || is_path || is_identifier(bare)
}

fn is_ending(ending: &str) -> bool {
    ENDINGS.contains(&ending)
}

/// `parse_config`, `parseConfig`, `ParseConfig`.
fn is_identifier(word: &str) -> bool {
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let humps = word
        .as_bytes()
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()));
    plain && (word.trim_matches('_').contains('_') || humps)
}
