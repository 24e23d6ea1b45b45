//! What only tests could do: change the harness that judges them, or not run.

use ruff_python_ast::{Expr, ExprCall};

use super::imports::{Role, flatten};
use super::modules;
use super::report::shown;
use super::scan::{Scan, literal};

/// Fixtures that hand out the harness.
const HARNESS_FIXTURES: &[&str] = &["pytestconfig", "pytester", "testdir"];

/// Attributes that change the harness, or where it looks for modules, or leave a test. Those that replace something are
/// called where they are named, or not at all.
const HARNESS: &[&str] =
    &["chdir", "delattr", "pluginmanager", "setattr", "skipTest", "syspath_prepend", "testsfailed"];

/// What of `request` hands out the harness.
const OF_REQUEST: &[&str] = &["config", "node", "session"];

/// A name that a file defines.
pub(super) fn defined(scan: &mut Scan<'_, '_>, line: u32, name: &str) {
    if name.starts_with("pytest_") || name.starts_with("collect_ignore") {
        let message = format!("`{}` is a hook into what runs the tests", shown(name));
        scan.add(line, "harness", message);
    }
}

/// A parameter of a function.
pub(super) fn parameter(scan: &mut Scan<'_, '_>, line: u32, name: &str) {
    if scan.role == Role::Test && HARNESS_FIXTURES.contains(&name) {
        scan.add(line, "harness", format!("`{name}` hands out what runs the tests"));
    }
}

/// Attributes in a row.
pub(super) fn attribute(scan: &mut Scan<'_, '_>, line: u32, root: Option<&str>, names: &[&str]) {
    if scan.role != Role::Test {
        return;
    }
    let of_request =
        root == Some("request") && names.first().is_some_and(|name| OF_REQUEST.contains(name));
    if of_request || names.iter().any(|name| HARNESS.contains(name)) {
        let message = format!("`.{}` reaches what runs the tests", shown(&names.join(".")));
        scan.add(line, "harness", message);
    }
}

/// A call that replaces something for the time of a test.
pub(super) fn call(scan: &mut Scan<'_, '_>, line: u32, call: &ExprCall, dotted: Option<&str>) {
    if scan.role != Role::Test {
        return;
    }
    let method = call.func.as_attribute_expr().map(|attribute| attribute.attr.as_str());
    let patches = dotted.is_some_and(|dotted| dotted.starts_with("unittest.mock.patch"));
    let replaces = method.is_some_and(replaces);
    if !patches && !replaces {
        return;
    }
    let arguments = &call.arguments.args;
    match arguments.first() {
        Some(Expr::StringLiteral(target)) => self::target(scan, line, target.value.to_str()),
        Some(object) => {
            let (root, _) = flatten(object);
            let name = root.as_name_expr().map(|name| name.id.as_str());
            let imports = scan.imports;
            let origins = name.map_or(&[][..], |name| imports.origins(name));
            scan.replaced(line, origins);
            if dotted == Some("unittest.mock.patch") && name.is_none() {
                scan.add(line, "computed_name", "what is replaced does not stand in the file");
            }
        }
        None => scan.add(line, "computed_name", "what is replaced does not stand in the file"),
    }
    let by_object = arguments.first().is_some_and(|first| !first.is_string_literal_expr());
    match arguments.get(1).map(literal) {
        Some(Some(name)) => scan.asked(line, name, false),
        Some(None) if by_object && dotted != Some("unittest.mock.patch.dict") => {
            scan.add(line, "computed_name", "what is replaced does not stand in the file");
        }
        Some(None) | None => {}
    }
}

/// Whether a method replaces something for the time of a test.
pub(super) fn replaces(method: &str) -> bool {
    matches!(method, "setattr" | "delattr")
}

/// What is replaced, by name: something of the skill's own modules.
fn target(scan: &mut Scan<'_, '_>, line: u32, target: &str) {
    let mut parts = target.split('.');
    let first = parts.next().unwrap_or_default();
    let ours = scan.own.is_module(first) && first != "fluffy_skill";
    if !ours || parts.any(modules::is_telling) {
        let message = format!("`{}` is not the skill's own to replace", shown(target));
        scan.add(line, "patched_import", message);
    }
}
