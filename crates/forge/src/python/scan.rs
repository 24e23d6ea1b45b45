//! Whether a skill uses what is forbidden: the policy gate.

use ruff_python_ast::visitor::{
    Visitor, walk_arguments, walk_except_handler, walk_expr, walk_parameter, walk_pattern,
    walk_pattern_keyword, walk_stmt, walk_type_param,
};
use ruff_python_ast::{
    ExceptHandler, Expr, ExprAttribute, ExprCall, ExprContext, ExprName, Identifier, Operator,
    Parameter, Pattern, PatternKeyword, Stmt, StmtClassDef, TypeParam,
};

use super::imports::{Imported, Imports, Origin, Own, Role, flatten};
use super::modules::{self, Who};
use super::parse::{self, Module};
use super::report::{self, Report, shown};
use super::rules::ScanRules;
use super::{attributes, leaks, paths, tests_only};
use crate::{Finding, Gate, GateResult, SourceFile};

/// Asks whether the files of a skill use what is forbidden.
///
/// The rules have to be made for the skill's proposal ([`ScanRules::for_proposal`]); rules that were not let it write
/// nothing and reach nothing. All files that run together belong into one call, tests included.
pub fn scan(files: &[SourceFile], rules: &ScanRules) -> GateResult {
    let mut own = Own::of(files);
    let modules: Vec<_> = files.iter().map(Module::parse).collect();
    for module in modules.iter().flatten() {
        own.learn(module);
    }
    let mut findings = Vec::new();
    for module in modules {
        match module {
            Ok(module) => findings.extend(scan_module(&module, &own, rules)),
            Err(finding) => findings.push(finding),
        }
    }
    report::result(Gate::Policy, files.len(), findings)
}

fn scan_module(module: &Module<'_>, own: &Own, rules: &ScanRules) -> Vec<Finding> {
    let imports = Imports::of(module, own);
    let role = Role::of(module.file);
    let report = Report::of(&module.file.path);
    let mut scan = Scan { module, imports: &imports, own, rules, role, report };
    scan.text();
    for imported in &imports.all {
        scan.import(imported);
    }
    for stmt in module.body() {
        scan.visit_stmt(stmt);
    }
    leaks::find(module, rules, &mut scan.report);
    scan.report.finish()
}

/// The walk over one file.
pub(super) struct Scan<'s, 'a> {
    pub(super) module: &'s Module<'a>,
    pub(super) imports: &'s Imports,
    pub(super) own: &'s Own,
    pub(super) rules: &'s ScanRules,
    pub(super) role: Role,
    pub(super) report: Report,
}

/// Comments that make another gate look away.
const SILENCERS: [&str; 5] =
    ["ruff: noqa", "flake8: noqa", "mypy: ", "pylint: skip-file", "pyright: "];

impl Scan<'_, '_> {
    pub(super) fn add(&mut self, line: u32, rule: &str, message: impl Into<String>) {
        self.report.add(Some(line), rule, message);
    }

    /// What can be said without the tree: comments, names, the project's patterns.
    fn text(&mut self) {
        let module = self.module;
        for (line, comment) in module.comments() {
            let words = comment.trim_start_matches(['#', ' ']);
            let whole_file = SILENCERS.iter().any(|start| words.starts_with(start));
            let bare = words == "noqa" || words == "type: ignore";
            if whole_file || bare {
                let message = format!("`# {}` makes another gate look away", shown(words));
                self.add(line, "gate_silenced", message);
            }
        }
        for (line, name) in module.names().filter(|(_, name)| !name.is_ascii()) {
            let message = format!("`{}` is not written in ASCII", shown(name));
            self.add(line, "odd_identifier", message);
        }
        let rules = self.rules;
        for (number, line) in (1..).zip(module.text.lines()) {
            for pattern in rules.patterns.iter().filter(|pattern| pattern.is_match(line)) {
                self.add(number, pattern.name(), pattern.why());
            }
        }
    }

    fn import(&mut self, imported: &Imported) {
        let Imported { line, module, name, relative, bound } = imported;
        self.define(*line, bound);
        if self.imports.origins(bound).len() > 1 {
            let message = format!("`{}` is imported as two different things", shown(bound));
            self.add(*line, "two_meanings", message);
        }
        let whole = match name {
            Some(name) => format!("{module}.{name}"),
            None => module.clone(),
        };
        if *relative {
            self.add(
                *line,
                "forbidden_import",
                "a skill is in no package that it could import from",
            );
            return;
        }
        if self.rules.forbids_import(module) || self.rules.forbids_import(&whole) {
            let message = format!("`{}` is forbidden by the project", shown(&whole));
            self.add(*line, "forbidden_import", message);
        }
        let forbidden = modules::forbidden(module).or_else(|| modules::forbidden(&whole));
        if let Some((name, why)) = forbidden {
            self.add(*line, "forbidden_import", format!("`{name}`: {why}"));
            return;
        }
        if name.as_deref() == Some("*") {
            let message = format!("`from {} import *` hides what is used", shown(module));
            self.add(*line, "forbidden_import", message);
            return;
        }
        self.who(*line, module);
        if let Some(name) = name {
            self.of_import(*line, &Origin::Module(module.clone()), &[name.as_str()]);
        }
    }

    /// Whether this file may use the module at all.
    fn who(&mut self, line: u32, module: &str) {
        let Some(allowed) = modules::allowed(module) else { return };
        let is_test = self.role == Role::Test;
        let (may, why) = match allowed.who {
            Who::Everybody => (true, ""),
            Who::Network => (
                is_test || self.rules.may_reach_network(),
                "the skill's side effects do not reach the network",
            ),
            Who::Writers => {
                (is_test || self.rules.may_write(), "the skill's side effects do not write files")
            }
            Who::Tests => (is_test, "it is for tests"),
        };
        if !may {
            self.add(line, "forbidden_import", format!("`{}`: {why}", shown(module)));
        }
    }

    /// Names asked of an import, one after the other.
    fn of_import(&mut self, line: u32, origin: &Origin, names: &[&str]) {
        let (mut dotted, mut inside) = match origin {
            Origin::Module(module) => (module.clone(), Some(module.clone())),
            Origin::Name(name) => (name.clone(), None),
        };
        self.denied(line, &dotted);
        for name in names {
            dotted = format!("{dotted}.{name}");
            self.denied(line, &dotted);
            match inside.take() {
                Some(module) => inside = self.of_module(line, &module, name),
                None if modules::hides_module(name) => {
                    let message = format!("`{}` may be another module", shown(&dotted));
                    self.add(line, "forbidden_attribute", message);
                }
                None => {}
            }
        }
    }

    fn denied(&mut self, line: u32, dotted: &str) {
        if let Some(why) = modules::denied(dotted) {
            self.add(line, "forbidden_call", format!("`{}`: {why}", shown(dotted)));
        }
        if self.rules.forbids_call(dotted) {
            let message = format!("`{}` is forbidden by the project", shown(dotted));
            self.add(line, "forbidden_call", message);
        }
    }

    /// One name of a module; gives the module that it is, if it is one.
    fn of_module(&mut self, line: u32, module: &str, name: &str) -> Option<String> {
        let dotted = format!("{module}.{name}");
        if let Some((_, why)) = modules::forbidden(&dotted) {
            self.add(line, "forbidden_import", format!("`{}`: {why}", shown(&dotted)));
            return None;
        }
        if modules::allowed(&dotted).is_some() || self.own.is_module(&dotted) {
            self.who(line, &dotted);
            return Some(dotted);
        }
        let refuse = |scan: &mut Self, why: &str| {
            scan.add(line, "forbidden_attribute", format!("`{}`: {why}", shown(&dotted)));
            None
        };
        if self.own.is_module(module) {
            let foreign = modules::hides_module(name) || self.own.is_alias(name);
            return if foreign {
                refuse(self, "a module is not taken from another file")
            } else {
                None
            };
        }
        let allowed = modules::allowed(module)?;
        let last = module.rsplit('.').next().unwrap_or_default();
        match allowed.only {
            Some(only) if !only.contains(&name) => refuse(self, "it is not for skills"),
            Some(_) => None,
            None if name.starts_with('_') && !attributes::is_dunder(name) => {
                refuse(self, "it is not meant for others")
            }
            None if name != last && modules::hides_module(name) => {
                refuse(self, "it is another module, which has to be imported to be used")
            }
            None => (name != last && modules::allowed(name).is_some()).then(|| name.to_owned()),
        }
    }

    /// A name that the file gives to something.
    fn define(&mut self, line: u32, name: &str) {
        if !attributes::may_define(name) {
            let message = format!("`{}` changes how Python treats objects or modules", shown(name));
            self.add(line, "forbidden_definition", message);
        }
        tests_only::defined(self, line, name);
    }

    fn define_identifier(&mut self, name: &Identifier) {
        let line = self.module.line(name);
        self.define(line, name);
    }

    /// A name that stands by itself.
    fn name(&mut self, name: &ExprName) {
        let line = self.module.line(name);
        if name.ctx != ExprContext::Load {
            self.define(line, &name.id);
            return;
        }
        self.loaded(line, &name.id);
        let imports = self.imports;
        for origin in imports.origins(&name.id) {
            match origin {
                Origin::Module(module) if self.role == Role::Test && self.own.is_module(module) => {
                }
                Origin::Module(module) => {
                    let text = format!("module `{}` is used as a value", shown(module));
                    self.add(line, "module_as_value", text);
                }
                Origin::Name(dotted) => {
                    self.of_import(line, origin, &[]);
                    self.handed_on(line, dotted);
                }
            }
        }
    }

    /// Something that takes names of others, and is not called where it is named.
    fn handed_on(&mut self, line: u32, dotted: &str) {
        if modules::is_called_only(dotted) {
            let message =
                format!("`{dotted}` is handed on, so that what it is given cannot be read");
            self.add(line, "computed_name", message);
        }
    }

    /// A name that is read, whatever is done with it.
    fn loaded(&mut self, line: u32, name: &str) {
        let known = ["__name__", "__doc__", "__debug__"];
        if attributes::is_guarded(name) && self.imports.origins(name).is_empty() {
            let message = format!("builtin `{name}` turns text into code or names into objects");
            self.add(line, "forbidden_builtin", message);
        }
        if attributes::is_dunder(name) && !known.contains(&name) {
            let message = format!("`{}` leads to the interpreter", shown(name));
            self.add(line, "interpreter_access", message);
        }
        if self.imports.origins(name).is_empty() && self.rules.forbids_call(name) {
            let message = format!("`{}` is forbidden by the project", shown(name));
            self.add(line, "forbidden_call", message);
        }
    }

    /// Attributes, from the object they are first asked of.
    fn attribute(&mut self, expr: &Expr, whole: &ExprAttribute) {
        let (root, names) = flatten(expr);
        let root_name = match root {
            Expr::Name(name) => Some(name.id.as_str()),
            _ => None,
        };
        let line = self.module.line(&whole.attr);
        let imports = self.imports;
        let origins = root_name.map_or(&[][..], |name| imports.origins(name));
        let words: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        for origin in origins {
            self.of_import(line, origin, &words);
        }
        if let Some(dotted) = imports.dotted(expr) {
            self.handed_on(line, &dotted);
        }
        let is_self = matches!(root_name, Some("self" | "cls"));
        for (place, word) in words.iter().enumerate() {
            let named = *word == "__class__" && words.get(place + 1) == Some(&"__name__");
            if !named {
                self.asked(line, word, is_self && place == 0);
            }
        }
        if whole.ctx != ExprContext::Load {
            self.replaced(line, origins);
        }
        match root_name {
            Some(name) => self.loaded(line, name),
            None => self.visit_expr(root),
        }
        tests_only::attribute(self, line, root_name, &words);
    }

    /// One attribute of whatever object.
    pub(super) fn asked(&mut self, line: u32, name: &str, of_self: bool) {
        let own = self.own.defines(name) && !attributes::is_nobodys(name);
        if attributes::leads_out(name) {
            let message = format!(
                "`.{}` leads to the interpreter or out of the skill's folders",
                shown(name)
            );
            self.add(line, "interpreter_access", message);
        } else if attributes::is_private(name) && !own && (!of_self || attributes::is_nobodys(name))
        {
            let message = format!("`.{}` is not meant for others", shown(name));
            self.add(line, "private_attribute", message);
        } else if modules::is_telling(name) && !of_self {
            self.add(line, "forbidden_attribute", format!("`.{name}` is a module"));
        }
        paths::attribute(self, line, name);
    }

    /// An attribute of an import that is set or deleted.
    pub(super) fn replaced(&mut self, line: u32, origins: &[Origin]) {
        let foreign = origins.iter().find_map(|origin| match origin {
            Origin::Module(name) | Origin::Name(name) => {
                let ours = self.role == Role::Test
                    && self.own.holds(name)
                    && !name.starts_with("fluffy_skill");
                (!ours).then_some(name)
            }
        });
        if let Some(name) = foreign {
            let message = format!("`{}` is changed for everybody who uses it", shown(name));
            self.add(line, "patched_import", message);
        }
    }

    fn call(&mut self, call: &ExprCall) {
        let line = self.module.line(call);
        let builtin = match &*call.func {
            Expr::Name(name) if self.imports.origins(&name.id).is_empty() => name.id.as_str(),
            _ => "",
        };
        let dotted = self.imports.dotted(&call.func);
        match (builtin, dotted.as_deref()) {
            ("open", _) => paths::open(self, line, call),
            ("type", _) if !is_question(call) => {
                let message = "`type` makes a class that no reader of the file sees";
                self.add(line, "dynamic_class", message);
            }
            ("type", _) => {}
            (name, _) if attributes::takes_name(name) => self.by_name(line, name, call),
            (_, Some("operator.attrgetter" | "operator.methodcaller")) => self.getter(line, call),
            (_, Some("functools.wraps")) if call.arguments.len() != 1 => {
                let message = "`functools.wraps` with names of its own";
                self.add(line, "computed_name", message);
            }
            (_, Some(dotted)) if modules::is_called_only(dotted) => {}
            _ => self.callee(&call.func),
        }
        paths::call(self, line, call, dotted.as_deref());
        tests_only::call(self, line, call, dotted.as_deref());
        walk_arguments(self, &call.arguments);
    }

    /// What is called. A method that replaces something is looked at with what it is given.
    fn callee(&mut self, func: &Expr) {
        match func {
            Expr::Attribute(method) if tests_only::replaces(&method.attr) => {
                self.visit_expr(&method.value);
            }
            _ => self.visit_expr(func),
        }
    }

    /// `getattr` and its like: allowed with a name that stands there, which then counts as an attribute.
    fn by_name(&mut self, line: u32, builtin: &str, call: &ExprCall) {
        let arguments = &call.arguments.args;
        let plain =
            call.arguments.keywords.is_empty() && !arguments.iter().any(Expr::is_starred_expr);
        match arguments.get(1).and_then(literal) {
            Some(name) if plain => {
                for part in name.split('.') {
                    self.asked(line, part, false);
                }
                if let (Some(object), "setattr" | "delattr") = (arguments.first(), builtin) {
                    let (root, _) = flatten(object);
                    let name = root.as_name_expr().map(|name| name.id.as_str());
                    let imports = self.imports;
                    self.replaced(line, name.map_or(&[][..], |name| imports.origins(name)));
                }
            }
            _ => {
                let message = format!("`{builtin}` with a name that does not stand in the file");
                self.add(line, "computed_name", message);
            }
        }
    }

    /// `operator.attrgetter` and its like.
    fn getter(&mut self, line: u32, call: &ExprCall) {
        for (place, argument) in call.arguments.args.iter().enumerate() {
            match literal(argument) {
                Some(names) if place == 0 || !names.is_empty() => {
                    for part in names.split('.') {
                        self.asked(line, part, false);
                    }
                }
                _ if place == 0 => {
                    self.add(
                        line,
                        "computed_name",
                        "an attribute whose name does not stand in the file",
                    );
                }
                _ => {}
            }
        }
    }

    fn class(&mut self, class: &StmtClassDef) {
        self.define_identifier(&class.name);
        let Some(arguments) = &class.arguments else { return };
        for keyword in &arguments.keywords {
            let line = self.module.line(keyword);
            let is_meta = keyword.arg.as_deref().is_none_or(|name| name == "metaclass");
            let dotted = self.imports.dotted(&keyword.value);
            if is_meta && dotted.as_deref() != Some("abc.ABCMeta") {
                self.add(line, "dynamic_class", "a metaclass changes what the class is");
            }
        }
        for base in &arguments.args {
            if base.as_name_expr().is_some_and(|name| name.id.as_str() == "type") {
                let line = self.module.line(base);
                self.add(line, "dynamic_class", "a metaclass changes what a class is");
            }
        }
    }

    /// A text that stands in the code.
    fn string(&mut self, line: u32, text: &str) {
        if let Some(word) = attributes::hidden_word(text) {
            self.add(line, "hidden_name", format!("`{word}` stands in a text"));
        }
        paths::text(self, line, text);
    }

    /// An annotation: Python and its library read texts in it as code.
    fn annotation(&mut self, expr: &Expr) {
        match expr {
            Expr::StringLiteral(text) => {
                let line = self.module.line(text);
                let parsed = parse::expression(text.value.to_str().trim());
                if parsed.is_none_or(|expr| Calls::in_expression(&expr)) {
                    let message = "a text in an annotation has to be the name of a type";
                    self.add(line, "hidden_code", message);
                }
            }
            Expr::Subscript(subscript) => {
                let dotted = self.imports.dotted(&subscript.value).unwrap_or_default();
                self.visit_expr(&subscript.value);
                if dotted.ends_with(".Literal") || dotted.ends_with(".Annotated") {
                    self.visit_expr(&subscript.slice);
                } else {
                    self.annotation(&subscript.slice);
                }
            }
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|part| self.annotation(part)),
            Expr::List(list) => list.elts.iter().for_each(|part| self.annotation(part)),
            Expr::BinOp(either) if either.op == Operator::BitOr => {
                self.annotation(&either.left);
                self.annotation(&either.right);
            }
            Expr::BinOp(_) | Expr::FString(_) | Expr::TString(_) => {
                let line = self.module.line(expr);
                self.add(line, "hidden_code", "an annotation is put together out of texts");
                self.visit_expr(expr);
            }
            _ => self.visit_expr(expr),
        }
    }

    fn raised(&mut self, line: u32, expr: &Expr) {
        let what = match expr {
            Expr::Call(call) => &call.func,
            _ => expr,
        };
        let ends =
            |name: &ExprName| ["SystemExit", "KeyboardInterrupt"].contains(&name.id.as_str());
        if what.as_name_expr().is_some_and(ends) {
            self.add(line, "ends_process", "a skill answers; it does not end the process");
        }
    }
}

impl<'v> Visitor<'v> for Scan<'_, '_> {
    fn visit_stmt(&mut self, stmt: &'v Stmt) {
        match stmt {
            // A text by itself is a docstring or nothing.
            Stmt::Expr(text) if text.value.is_string_literal_expr() => return,
            Stmt::FunctionDef(function) => self.define_identifier(&function.name),
            Stmt::ClassDef(class) => self.class(class),
            Stmt::Global(global) => {
                global.names.iter().for_each(|name| self.define_identifier(name))
            }
            Stmt::Nonlocal(outer) => {
                outer.names.iter().for_each(|name| self.define_identifier(name))
            }
            Stmt::Raise(raise) => {
                if let Some(what) = &raise.exc {
                    let line = self.module.line(raise);
                    self.raised(line, what);
                }
            }
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'v Expr) {
        match expr {
            Expr::Name(name) => self.name(name),
            Expr::Attribute(attribute) => self.attribute(expr, attribute),
            Expr::Call(call) => self.call(call),
            Expr::StringLiteral(text) => {
                let line = self.module.line(text);
                self.string(line, text.value.to_str());
            }
            Expr::FString(text) => {
                let line = self.module.line(text);
                self.string(line, &paths::constant_parts(text));
                walk_expr(self, expr);
            }
            Expr::BinOp(operation) => {
                paths::operation(self, operation);
                walk_expr(self, expr);
            }
            _ => walk_expr(self, expr),
        }
    }

    fn visit_annotation(&mut self, expr: &'v Expr) {
        self.annotation(expr);
    }

    fn visit_parameter(&mut self, parameter: &'v Parameter) {
        self.define_identifier(&parameter.name);
        let line = self.module.line(&parameter.name);
        tests_only::parameter(self, line, &parameter.name);
        walk_parameter(self, parameter);
    }

    fn visit_except_handler(&mut self, handler: &'v ExceptHandler) {
        let ExceptHandler::ExceptHandler(inner) = handler;
        inner.name.iter().for_each(|name| self.define_identifier(name));
        walk_except_handler(self, handler);
    }

    fn visit_type_param(&mut self, parameter: &'v TypeParam) {
        self.define_identifier(parameter.name());
        walk_type_param(self, parameter);
    }

    fn visit_pattern(&mut self, pattern: &'v Pattern) {
        let name = match pattern {
            Pattern::MatchAs(pattern) => pattern.name.as_ref(),
            Pattern::MatchStar(pattern) => pattern.name.as_ref(),
            Pattern::MatchMapping(pattern) => pattern.rest.as_ref(),
            _ => None,
        };
        name.into_iter().for_each(|name| self.define_identifier(name));
        walk_pattern(self, pattern);
    }

    fn visit_pattern_keyword(&mut self, keyword: &'v PatternKeyword) {
        let line = self.module.line(keyword);
        self.asked(line, &keyword.attr, false);
        walk_pattern_keyword(self, keyword);
    }
}

/// Whether a call of `type` asks what something is.
fn is_question(call: &ExprCall) -> bool {
    matches!(&*call.arguments.args, [one] if !one.is_starred_expr())
        && call.arguments.keywords.is_empty()
}

/// A text that stands there whole.
pub(super) fn literal(expr: &Expr) -> Option<&str> {
    expr.as_string_literal_expr().map(|text| text.value.to_str())
}

/// Whether an expression does more than name something.
struct Calls {
    found: bool,
}

impl Calls {
    fn in_expression(expr: &Expr) -> bool {
        let mut calls = Self { found: false };
        calls.visit_expr(expr);
        calls.found
    }
}

impl<'v> Visitor<'v> for Calls {
    fn visit_expr(&mut self, expr: &'v Expr) {
        match expr {
            Expr::Name(name) => {
                self.found |= attributes::is_dunder(&name.id) || attributes::is_guarded(&name.id);
            }
            Expr::Attribute(attribute) => {
                self.found |= attributes::leads_out(&attribute.attr);
                walk_expr(self, expr);
            }
            Expr::Subscript(_)
            | Expr::Tuple(_)
            | Expr::List(_)
            | Expr::BinOp(_)
            | Expr::StringLiteral(_)
            | Expr::NumberLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::NoneLiteral(_)
            | Expr::EllipsisLiteral(_)
            | Expr::UnaryOp(_)
            | Expr::Starred(_) => walk_expr(self, expr),
            _ => self.found = true,
        }
    }
}
