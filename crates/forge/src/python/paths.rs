//! Files: what may be opened how, and paths that stand in the file.
//!
//! A skill's files are below `self.folder(…)`, wherever that is. So a path in the text that begins at the root, at a
//! home, or goes up, is never right; and whoever writes nothing opens nothing for writing.

use ruff_python_ast::{Expr, ExprBinOp, ExprCall, ExprFString, Operator};

use super::imports::Role;
use super::report::shown;
use super::scan::{Scan, literal};

/// Attributes by which `pathlib` changes the disk.
const WRITING: &[&str] = &[
    "chmod",
    "lchmod",
    "mkdir",
    "rename",
    "rmdir",
    "touch",
    "unlink",
    "write_bytes",
    "write_text",
];

/// Calls whose arguments are paths.
const TAKING_PATHS: &[&str] = &[
    "glob.glob",
    "glob.iglob",
    "os.listdir",
    "os.path.abspath",
    "os.path.exists",
    "os.path.isdir",
    "os.path.isfile",
    "os.path.join",
    "os.scandir",
    "os.stat",
    "os.walk",
    "pathlib.Path",
    "pathlib.PosixPath",
    "pathlib.PurePath",
    "pathlib.PurePosixPath",
    "shutil.copy",
    "shutil.copy2",
    "shutil.copyfile",
    "shutil.move",
    "shutil.rmtree",
    "zipfile.ZipFile",
];

/// Methods whose arguments are paths.
const TAKING_PARTS: &[&str] =
    &["glob", "joinpath", "rename", "rglob", "with_name", "relative_to", "with_segments"];

/// Beginnings of texts that name the machine's own files.
const OF_THE_MACHINE: &[&str] =
    &["/dev/", "/etc/", "/proc/", "/run/", "/sys/", "/var/", "file:", "~/"];

/// An attribute, whatever it is asked of.
pub(super) fn attribute(scan: &mut Scan<'_, '_>, line: u32, name: &str) {
    let may = scan.role == Role::Test || scan.rules.may_write();
    if !may && WRITING.contains(&name) {
        let message = format!("`.{name}` writes, and the skill's side effects do not write files");
        scan.add(line, "write_not_declared", message);
    }
}

/// A text that stands in the code.
pub(super) fn text(scan: &mut Scan<'_, '_>, line: u32, text: &str) {
    let start = OF_THE_MACHINE.iter().any(|start| text.starts_with(start));
    if start || text.contains("/.ssh") {
        let message = format!("`{}` is a file of the machine, not of the skill", shown(text));
        scan.add(line, "system_path", message);
    }
}

/// `open(…)`: how, and what.
pub(super) fn open(scan: &mut Scan<'_, '_>, line: u32, call: &ExprCall) {
    let arguments = &call.arguments;
    let spread = arguments.args.iter().any(Expr::is_starred_expr)
        || arguments.keywords.iter().any(|keyword| keyword.arg.is_none());
    if spread || arguments.find_keyword("opener").is_some() {
        scan.add(line, "computed_mode", "how a file is opened does not stand in the file");
        return;
    }
    let writes = mode(scan, line, arguments.find_argument_value("mode", 1));
    let Some(path) = arguments.find_argument_value("file", 0) else { return };
    if path.is_number_literal_expr() {
        scan.add(line, "write_path", "a descriptor by its number is not the skill's");
    }
    if writes && beginning(path).is_some() {
        scan.add(line, "write_path", "a file to write is below `self.folder(…)`");
    }
    piece(scan, line, path);
}

/// Whether a mode writes; one that cannot be read is held against the file.
fn mode(scan: &mut Scan<'_, '_>, line: u32, mode: Option<&Expr>) -> bool {
    let Some(mode) = mode else { return false };
    let Some(mode) = literal(mode) else {
        scan.add(line, "computed_mode", "how a file is opened does not stand in the file");
        return true;
    };
    let writes = mode.contains(['w', 'a', 'x', '+']);
    if writes && scan.role != Role::Test && !scan.rules.may_write() {
        let message = format!(
            "a file is opened with `{}`, and the skill's side effects do not write files",
            shown(mode)
        );
        scan.add(line, "write_not_declared", message);
    }
    writes
}

/// Any other call: methods that open, functions that take paths.
pub(super) fn call(scan: &mut Scan<'_, '_>, line: u32, call: &ExprCall, dotted: Option<&str>) {
    let method = call.func.as_attribute_expr().map(|attribute| attribute.attr.as_str());
    if method == Some("open") {
        open_method(scan, line, call);
    }
    let takes = dotted.is_some_and(|dotted| TAKING_PATHS.contains(&dotted))
        || method.is_some_and(|method| TAKING_PARTS.contains(&method));
    if takes {
        call.arguments.args.iter().for_each(|argument| piece(scan, line, argument));
    }
}

/// `path.open(mode)`. What else is opened (an archive's member, an address) is not called with a mode.
fn open_method(scan: &mut Scan<'_, '_>, line: u32, call: &ExprCall) {
    let first = call.arguments.find_argument_value("mode", 0);
    let is_mode = |text: &str| text.len() <= 4 && text.chars().all(|c| "rwxabt+".contains(c));
    match first {
        Some(Expr::StringLiteral(text)) if !is_mode(text.value.to_str()) => {}
        Some(Expr::StringLiteral(_)) | None => {
            mode(scan, line, first);
        }
        Some(_) if scan.rules.may_reach_network() || scan.rules.may_write() => {}
        Some(_) => {
            mode(scan, line, first);
        }
    }
}

/// `folder / "name"`.
pub(super) fn operation(scan: &mut Scan<'_, '_>, operation: &ExprBinOp) {
    if operation.op == Operator::Div {
        let line = scan.module.line(operation);
        piece(scan, line, &operation.left);
        piece(scan, line, &operation.right);
    }
}

/// A piece of a path.
fn piece(scan: &mut Scan<'_, '_>, line: u32, expr: &Expr) {
    let Some(text) = beginning(expr) else { return };
    let leaves = text.starts_with(['/', '~'])
        || text.split(['/', '\\']).any(|part| part == "..")
        || text.contains(":\\");
    if leaves {
        let message = format!("`{}` does not stay below a folder of the skill", shown(&text));
        scan.add(line, "write_path", message);
    }
}

/// The text with which an expression begins, where it stands there.
fn beginning(expr: &Expr) -> Option<String> {
    let mut expr = expr;
    loop {
        match expr {
            Expr::StringLiteral(text) => return Some(text.value.to_str().to_owned()),
            Expr::BytesLiteral(bytes) => {
                let bytes: Vec<u8> = bytes.value.bytes().collect();
                return Some(String::from_utf8_lossy(&bytes).into_owned());
            }
            Expr::FString(text) => {
                return Some(constant_parts(text)).filter(|text| !text.is_empty());
            }
            Expr::BinOp(operation) if operation.op != Operator::Div => expr = &operation.left,
            _ => return None,
        }
    }
}

/// What stands in a text with holes in it, the holes as a character that no path begins with.
pub(super) fn constant_parts(text: &ExprFString) -> String {
    let mut parts = String::new();
    for part in &text.value {
        match part {
            ruff_python_ast::FStringPart::Literal(literal) => parts.push_str(&literal.value),
            ruff_python_ast::FStringPart::FString(inner) => {
                for element in &inner.elements {
                    match element {
                        ruff_python_ast::InterpolatedStringElement::Literal(literal) => {
                            parts.push_str(&literal.value);
                        }
                        ruff_python_ast::InterpolatedStringElement::Interpolation(_) => {
                            parts.push('\u{fffc}')
                        }
                    }
                }
            }
        }
    }
    parts
}
