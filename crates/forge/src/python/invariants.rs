//! Whether a skill is what was proposed, and nothing else: the invariants gate.
//!
//! **Invariant.** What a reader sees as the skill's name, description and side effects is what its class has at run time:
//! one class, three plain texts, and nothing in the file that could set them again.

use fluffy_base::{PathError, ProjectPath};
use ruff_python_ast::visitor::{
    Visitor, walk_arguments, walk_decorator, walk_except_handler, walk_expr, walk_parameters,
    walk_pattern, walk_stmt,
};
use ruff_python_ast::{
    ExceptHandler, Expr, ExprContext, Pattern, Stmt, StmtClassDef, StmtFunctionDef,
};

use super::imports::{Imported, Imports, Origin, Own, Role, flatten};
use super::modules::{self, Who};
use super::parse::Module;
use super::report::{self, Report, shown};
use super::scan::literal;
use super::{attributes, modules as library};
use crate::{Finding, Gate, GateResult, Proposal, SUPPORT, SourceFile};

/// The class that every skill extends.
const BASE: &str = "fluffy_skill.BaseSkill";
/// The attributes that say what a skill is.
const ATTRIBUTES: [&str; 3] = ["name", "description", "side_effect_class"];
/// What the base does for a skill, and a skill does not do itself.
const OF_THE_BASE: [&str; 4] = ["__init__", "folder", "model", "secret"];
/// The attribute that nothing else in a file may be called.
const CLASS_OF_EFFECTS: &str = "side_effect_class";

/// Asks whether files are the skill that was proposed: its class, its attributes, the files that were changed for it and
/// what it stands on.
pub fn check(files: &[SourceFile], proposal: &Proposal, changed: &[ProjectPath]) -> GateResult {
    let findings = match Scope::of(proposal) {
        Ok(scope) => scope.check(files, proposal, changed),
        // A name gives paths or was refused when it was parsed.
        Err(error) => files.iter().map(|file| unnamed(file, &error)).collect(),
    };
    report::result(Gate::Invariants, files.len(), findings)
}

fn unnamed(file: &SourceFile, error: &PathError) -> Finding {
    let (file, rule) = (file.path.clone(), "scope".to_owned());
    Finding { file, line: None, rule, message: error.to_string() }
}

/// The files that belong to a proposal.
struct Scope {
    skill: ProjectPath,
    test: ProjectPath,
}

impl Scope {
    fn of(proposal: &Proposal) -> Result<Self, PathError> {
        Ok(Self { skill: proposal.name.skill_path()?, test: proposal.name.test_path()? })
    }

    fn holds(&self, path: &ProjectPath) -> bool {
        *path == self.skill || *path == self.test || SUPPORT.contains(&path.as_str())
    }

    fn check(
        &self,
        files: &[SourceFile],
        proposal: &Proposal,
        changed: &[ProjectPath],
    ) -> Vec<Finding> {
        let mut findings = self.files(files, changed);
        let own = Own::of(files);
        for file in files.iter().filter(|file| self.holds(&file.path)) {
            match Module::parse(file) {
                Ok(module) => findings.extend(check_module(&module, self, proposal, &own)),
                Err(finding) => findings.push(finding),
            }
        }
        findings
    }

    /// Which files were changed and which are there.
    fn files(&self, files: &[SourceFile], changed: &[ProjectPath]) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut add = |path: &ProjectPath, message: &str| {
            let mut report = Report::of(path);
            report.add(None, "scope", message);
            findings.extend(report.finish());
        };
        for path in changed.iter().chain(files.iter().map(|file| &file.path)) {
            if !self.holds(path) {
                add(path, "it is not one of the files of this skill");
            }
        }
        for path in [&self.skill, &self.test] {
            if !changed.contains(path) {
                add(path, "it has to be written, and was not");
            }
            match files.iter().filter(|file| file.path == *path).count() {
                0 => add(path, "it is missing"),
                1 => {}
                _ => add(path, "it is there more than once"),
            }
        }
        findings
    }
}

fn check_module(
    module: &Module<'_>,
    scope: &Scope,
    proposal: &Proposal,
    own: &Own,
) -> Vec<Finding> {
    let imports = Imports::of(module, own);
    let report = Report::of(&module.file.path);
    let mut check = Check { module, imports: &imports, proposal, report };
    let role = Role::of(module.file);
    for imported in &imports.all {
        check.boundary(role, imported);
    }
    let mut safety = Safety { check: &mut check };
    module.body().iter().for_each(|stmt| safety.visit_stmt(stmt));
    if module.file.path == scope.skill {
        check.skill();
    }
    if module.file.path == scope.test {
        check.test();
    }
    check.report.finish()
}

struct Check<'c, 'a> {
    module: &'c Module<'a>,
    imports: &'c Imports,
    proposal: &'c Proposal,
    report: Report,
}

impl<'c> Check<'c, '_> {
    fn add(&mut self, line: u32, rule: &str, message: impl Into<String>) {
        self.report.add(Some(line), rule, message);
    }

    /// What a file stands on: the allowed part of the library, the base, the shared modules; tests also on the skill.
    fn boundary(&mut self, role: Role, imported: &Imported) {
        let bound = imported.bound.as_str();
        let taken = bound == self.proposal.name.class_name() && role != Role::Test;
        let twice = self.imports.origins(bound).len() > 1 && names_base(self.imports, bound);
        if taken || twice || bound == CLASS_OF_EFFECTS {
            let message = format!("`{}` is given to something else as well", shown(bound));
            self.add(imported.line, "structure", message);
        }
        let module = imported.module.as_str();
        let name = imported.name.as_deref();
        let whole = name.map_or(module.to_owned(), |name| format!("{module}.{name}"));
        let support = ["support.gateway", "support.settings"];
        let shared =
            support.contains(&module) || (module == "support" && support.contains(&whole.as_str()));
        let base = module == "fluffy_skill" && role != Role::Support;
        let skill = role == Role::Test && module == self.proposal.name.as_str();
        let allowed = library::allowed(module)
            .is_some_and(|module| module.who != Who::Tests || role == Role::Test);
        if imported.relative || !(allowed || shared || base || skill) {
            let message = format!("`{}` is not what a skill stands on", shown(&whole));
            self.add(imported.line, "runtime_boundary", message);
        }
    }

    fn skill(&mut self) {
        let name = self.proposal.name.as_str();
        if modules::allowed(name).is_some() || modules::forbidden(name).is_some() {
            let message = format!("a skill called `{name}` hides a module of Python");
            self.report.add(None, "structure", message);
        }
        let wanted = self.proposal.name.class_name();
        let mut classes =
            Classes { imports: self.imports, wanted: &wanted, found: Vec::new(), used: Vec::new() };
        let module = self.module;
        module.body().iter().for_each(|stmt| classes.visit_stmt(stmt));
        let Classes { found, used, .. } = classes;
        for expr in used {
            let line = module.line(expr);
            self.add(
                line,
                "structure",
                "`BaseSkill` is extended by the skill and used for nothing else",
            );
        }
        let top: Vec<&StmtClassDef> =
            module.body().iter().filter_map(Stmt::as_class_def_stmt).collect();
        match found.as_slice() {
            [class] if top.iter().any(|one| std::ptr::eq(*one, *class)) => {
                self.class(class, &wanted)
            }
            [class] => {
                let line = module.line(*class);
                self.add(line, "structure", "the skill's class is not at the top of the file");
            }
            [] => self.report.add(None, "structure", "no class extends `BaseSkill`"),
            [_, others @ ..] => {
                for class in others {
                    let line = module.line(*class);
                    self.add(line, "structure", "a second class extends `BaseSkill` or the skill");
                }
            }
        }
    }

    fn class(&mut self, class: &'c StmtClassDef, wanted: &str) {
        let line = self.module.line(&class.name);
        if class.name.as_str() != wanted {
            let message =
                format!("the class is called `{}` and not `{wanted}`", shown(&class.name));
            self.add(line, "structure", message);
        }
        let plain = class.decorator_list.is_empty()
            && class.type_params.is_none()
            && class.arguments.as_ref().is_some_and(|arguments| {
                arguments.args.len() == 1 && arguments.keywords.is_empty()
            });
        if !plain {
            self.add(
                line,
                "structure",
                "the skill's class has a decorator, a keyword, a second base or a type parameter",
            );
        }
        for stmt in &class.body {
            self.class_statement(stmt);
        }
        self.attributes(class);
        self.execute(class);
        let mut again = Again { check: self, class, inside: false };
        let module = again.check.module;
        module.body().iter().for_each(|stmt| again.visit_stmt(stmt));
    }

    /// What may stand in the class itself: nothing that is decided while it is made.
    fn class_statement(&mut self, stmt: &Stmt) {
        let plain = match stmt {
            Stmt::FunctionDef(function) => attributes::may_define(&function.name),
            Stmt::Assign(_) | Stmt::AnnAssign(_) | Stmt::Pass(_) => true,
            Stmt::Expr(text) => {
                text.value.is_string_literal_expr() || text.value.is_ellipsis_literal_expr()
            }
            _ => false,
        };
        if !plain {
            let line = self.module.line(stmt);
            self.add(
                line,
                "structure",
                "the skill's class holds attributes and functions, and nothing else",
            );
        }
    }

    /// The three attributes: each once, each a plain text, each as proposed.
    fn attributes(&mut self, class: &'c StmtClassDef) {
        let mut bound = Bound::default();
        class.body.iter().for_each(|stmt| bound.visit_stmt(stmt));
        let line = self.module.line(&class.name);
        for name in OF_THE_BASE.iter().filter(|name| bound.names.iter().any(|bound| bound == *name))
        {
            self.add(line, "structure", format!("`{name}` is the base's own"));
        }
        if bound.names.iter().filter(|name| name.as_str() == "execute").count() > 1 {
            self.add(line, "structure", "`execute` is given to something else as well");
        }
        for attribute in ATTRIBUTES {
            let wanted = match attribute {
                "name" => self.proposal.name.as_str(),
                "description" => self.proposal.description.as_str(),
                _ => self.proposal.side_effect.name(),
            };
            let times = bound.names.iter().filter(|name| name.as_str() == attribute).count();
            let values: Vec<&Expr> =
                class.body.iter().filter_map(|stmt| assigned(stmt, attribute)).collect();
            match (times, values.as_slice()) {
                (0, _) => self.add(line, "structure", format!("`{attribute}` is missing")),
                (1, [value]) => match literal(value) {
                    Some(text) if text == wanted => {}
                    Some(_) => {
                        let line = self.module.line(*value);
                        let message =
                            format!("`{attribute}` is not what was proposed: `{}`", shown(wanted));
                        self.add(line, "proposal", message);
                    }
                    None => {
                        let line = self.module.line(*value);
                        self.add(
                            line,
                            "structure",
                            format!("`{attribute}` is computed and not a plain text"),
                        );
                    }
                },
                _ => self.add(
                    line,
                    "structure",
                    format!("`{attribute}` is set in another way, or more than once"),
                ),
            }
        }
    }

    fn execute(&mut self, class: &'c StmtClassDef) {
        let mut functions = class.body.iter().filter_map(Stmt::as_function_def_stmt);
        let found: Vec<&StmtFunctionDef> =
            functions.by_ref().filter(|function| function.name.as_str() == "execute").collect();
        let [execute] = found.as_slice() else {
            let line = self.module.line(&class.name);
            self.add(line, "structure", "the skill has exactly one `execute`");
            return;
        };
        let line = self.module.line(&execute.name);
        let parameters = &execute.parameters;
        let names: Vec<&str> =
            parameters.args.iter().map(|one| one.parameter.name.as_str()).collect();
        let signature = names == ["self", "input"]
            && parameters.posonlyargs.is_empty()
            && parameters.kwonlyargs.is_empty()
            && parameters.vararg.is_none()
            && parameters.kwarg.is_none()
            && parameters.args.iter().all(|one| one.default.is_none());
        if !signature || execute.is_async || !execute.decorator_list.is_empty() {
            self.add(
                line,
                "structure",
                "`execute` is `def execute(self, input)`, without a decorator",
            );
        }
        let mut yields = Yields { found: false };
        execute.body.iter().for_each(|stmt| yields.visit_stmt(stmt));
        if yields.found {
            self.add(line, "structure", "`execute` answers once and yields nothing");
        }
    }

    /// A test file tests: it imports the skill and claims something about it.
    fn test(&mut self) {
        let name = self.proposal.name.as_str();
        if !self.imports.all.iter().any(|imported| imported.module == name) {
            self.report.add(None, "tests", format!("the tests do not import `{name}`"));
        }
        let mut tests = Tests { found: false, inside: false };
        self.module.body().iter().for_each(|stmt| tests.visit_stmt(stmt));
        if !tests.found {
            self.report.add(None, "tests", "no function `test_…` claims anything");
        }
    }
}

/// Whether a name is imported as the base, or as the module that it is in.
fn names_base(imports: &Imports, name: &str) -> bool {
    imports.origins(name).iter().any(|origin| match origin {
        Origin::Module(module) => module == "fluffy_skill",
        Origin::Name(name) => name == BASE,
    })
}

/// What a statement assigns to a name, if it does that plainly.
fn assigned<'s>(stmt: &'s Stmt, name: &str) -> Option<&'s Expr> {
    let is_name =
        |expr: &Expr| expr.as_name_expr().is_some_and(|target| target.id.as_str() == name);
    match stmt {
        Stmt::Assign(assign) => match assign.targets.as_slice() {
            [target] if is_name(target) => Some(&assign.value),
            _ => None,
        },
        Stmt::AnnAssign(assign) if is_name(&assign.target) => assign.value.as_deref(),
        _ => None,
    }
}

/// Classes that extend the base or the skill, and other uses of the base.
struct Classes<'c, 'v> {
    imports: &'c Imports,
    wanted: &'c str,
    found: Vec<&'v StmtClassDef>,
    used: Vec<&'v Expr>,
}

impl Classes<'_, '_> {
    fn is_base(&self, expr: &Expr) -> bool {
        self.imports.dotted(expr).as_deref() == Some(BASE)
    }

    fn extends(&self, expr: &Expr) -> bool {
        let is_skill = expr.as_name_expr().is_some_and(|name| name.id.as_str() == self.wanted);
        is_skill || self.is_base(expr)
    }
}

impl<'v> Visitor<'v> for Classes<'_, 'v> {
    fn visit_stmt(&mut self, stmt: &'v Stmt) {
        let Stmt::ClassDef(class) = stmt else {
            walk_stmt(self, stmt);
            return;
        };
        let bases = class.arguments.as_ref().map_or(&[][..], |arguments| &arguments.args);
        if bases.iter().any(|base| self.extends(base)) {
            self.found.push(class);
        }
        class.decorator_list.iter().for_each(|decorator| walk_decorator(self, decorator));
        for base in bases {
            if !self.is_base(base) {
                self.used_in(base);
            }
        }
        let keywords = class.arguments.iter().flat_map(|arguments| &arguments.keywords);
        keywords.for_each(|keyword| self.used_in(&keyword.value));
        self.visit_body(&class.body);
    }

    fn visit_expr(&mut self, expr: &'v Expr) {
        self.used_in(expr);
    }
}

impl<'v> Classes<'_, 'v> {
    fn used_in(&mut self, expr: &'v Expr) {
        if self.is_base(expr) {
            self.used.push(expr);
        } else {
            walk_expr(self, expr);
        }
    }
}

/// Names that are bound while a class is made: also by what its functions have as defaults and decorators.
#[derive(Default)]
struct Bound {
    names: Vec<String>,
}

impl<'v> Visitor<'v> for Bound {
    fn visit_stmt(&mut self, stmt: &'v Stmt) {
        match stmt {
            Stmt::FunctionDef(function) => {
                self.names.push(function.name.to_string());
                function
                    .decorator_list
                    .iter()
                    .for_each(|decorator| walk_decorator(self, decorator));
                walk_parameters(self, &function.parameters);
                function.returns.iter().for_each(|returns| self.visit_annotation(returns));
            }
            Stmt::ClassDef(class) => {
                self.names.push(class.name.to_string());
                class.decorator_list.iter().for_each(|decorator| walk_decorator(self, decorator));
                class.arguments.iter().for_each(|arguments| walk_arguments(self, arguments));
            }
            // An annotation without a value binds nothing.
            Stmt::AnnAssign(assign) if assign.value.is_none() => {
                self.visit_annotation(&assign.annotation)
            }
            _ => walk_stmt(self, stmt),
        }
    }

    fn visit_expr(&mut self, expr: &'v Expr) {
        if let Expr::Name(name) = expr
            && name.ctx != ExprContext::Load
        {
            self.names.push(name.id.to_string());
        }
        walk_expr(self, expr);
    }
}

/// Whatever sets again what the class says of itself, or the class's name.
struct Again<'k, 'c, 'a> {
    check: &'k mut Check<'c, 'a>,
    class: &'c StmtClassDef,
    inside: bool,
}

impl Again<'_, '_, '_> {
    fn bound(&mut self, line: u32, name: &str) {
        let is_base = names_base(self.check.imports, name);
        let twice = is_base
            || name == self.class.name.as_str()
            || (name == CLASS_OF_EFFECTS && !self.inside);
        if twice {
            let message = format!("`{name}` is given to something else as well");
            self.check.add(line, "structure", message);
        }
    }

    fn set(&mut self, line: u32, expr: &Expr) {
        let (root, names) = flatten(expr);
        let root = root.as_name_expr().map(|name| name.id.as_str());
        let last = names.last().map(|name| name.as_str()).unwrap_or_default();
        let of_skill = (self.inside && matches!(root, Some("self" | "cls")))
            || root == Some(self.class.name.as_str());
        let outside_self = !matches!(root, Some("self" | "cls")) && root.is_none();
        let what_it_is = ATTRIBUTES.contains(&last) || last == "execute";
        if last == CLASS_OF_EFFECTS || (what_it_is && (of_skill || outside_self)) {
            self.check.add(line, "structure", format!("`{last}` is set again"));
        }
    }

    fn called(&mut self, line: u32, expr: &Expr) {
        let Expr::Call(call) = expr else { return };
        let setter = match &*call.func {
            Expr::Name(name) => ["setattr", "delattr"].contains(&name.id.as_str()),
            Expr::Attribute(name) => {
                ["__setattr__", "__delattr__", "setattr"].contains(&name.attr.as_str())
            }
            _ => false,
        };
        let mut names = call.arguments.args.iter().filter_map(literal);
        let named = names.any(|name| ATTRIBUTES.contains(&name) || name == "execute");
        if setter && named {
            self.check.add(line, "structure", "an attribute of the skill is set again");
        }
    }
}

impl<'v> Visitor<'v> for Again<'_, '_, '_> {
    fn visit_stmt(&mut self, stmt: &'v Stmt) {
        let line = self.check.module.line(stmt);
        match stmt {
            Stmt::ClassDef(class) if std::ptr::eq(class, self.class) => {
                self.inside = true;
                self.visit_body(&class.body);
                self.inside = false;
                return;
            }
            Stmt::ClassDef(class) => self.bound(line, &class.name),
            Stmt::FunctionDef(function) => self.bound(line, &function.name),
            Stmt::Import(_) | Stmt::ImportFrom(_) => return,
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    fn visit_except_handler(&mut self, handler: &'v ExceptHandler) {
        let ExceptHandler::ExceptHandler(inner) = handler;
        let line = self.check.module.line(handler);
        inner.name.iter().for_each(|name| self.bound(line, name));
        walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'v Pattern) {
        let line = self.check.module.line(pattern);
        let name = match pattern {
            Pattern::MatchAs(pattern) => pattern.name.as_ref(),
            Pattern::MatchStar(pattern) => pattern.name.as_ref(),
            Pattern::MatchMapping(pattern) => pattern.rest.as_ref(),
            _ => None,
        };
        name.into_iter().for_each(|name| self.bound(line, name));
        walk_pattern(self, pattern);
    }

    fn visit_expr(&mut self, expr: &'v Expr) {
        let line = self.check.module.line(expr);
        match expr {
            Expr::Name(name) if name.ctx != ExprContext::Load => self.bound(line, &name.id),
            Expr::Attribute(attribute) if attribute.ctx != ExprContext::Load => {
                self.set(line, expr)
            }
            Expr::Call(_) => self.called(line, expr),
            _ => {}
        }
        walk_expr(self, expr);
    }
}

/// Importing by name, in any spelling.
struct Safety<'k, 'c, 'a> {
    check: &'k mut Check<'c, 'a>,
}

impl Safety<'_, '_, '_> {
    fn word(&mut self, line: u32, word: &str) {
        const IMPORTING: [&str; 4] = ["__import__", "importlib", "import_module", "__loader__"];
        if IMPORTING.iter().any(|name| word.contains(name)) {
            let message = format!("`{}` imports what no reader of the file sees", shown(word));
            self.check.add(line, "dynamic_import", message);
        }
    }
}

impl<'v> Visitor<'v> for Safety<'_, '_, '_> {
    fn visit_stmt(&mut self, stmt: &'v Stmt) {
        let line = self.check.module.line(stmt);
        match stmt {
            Stmt::Expr(text) if text.value.is_string_literal_expr() => return,
            Stmt::Import(import) => {
                import.names.iter().for_each(|alias| self.word(line, &alias.name))
            }
            Stmt::ImportFrom(import) => {
                import.module.iter().for_each(|module| self.word(line, module));
                import.names.iter().for_each(|alias| self.word(line, &alias.name));
            }
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'v Expr) {
        let line = self.check.module.line(expr);
        match expr {
            Expr::Name(name) => self.word(line, &name.id),
            Expr::Attribute(attribute) => self.word(line, &attribute.attr),
            Expr::StringLiteral(text) => self.word(line, text.value.to_str()),
            _ => {}
        }
        walk_expr(self, expr);
    }
}

/// Whether a function yields itself, and not only one inside it.
struct Yields {
    found: bool,
}

impl<'v> Visitor<'v> for Yields {
    fn visit_stmt(&mut self, stmt: &'v Stmt) {
        if !matches!(stmt, Stmt::FunctionDef(_) | Stmt::ClassDef(_)) {
            walk_stmt(self, stmt);
        }
    }

    fn visit_expr(&mut self, expr: &'v Expr) {
        match expr {
            Expr::Yield(_) | Expr::YieldFrom(_) => self.found = true,
            Expr::Lambda(_) => {}
            _ => walk_expr(self, expr),
        }
    }
}

/// Whether some test claims something.
struct Tests {
    found: bool,
    inside: bool,
}

impl<'v> Visitor<'v> for Tests {
    fn visit_stmt(&mut self, stmt: &'v Stmt) {
        match stmt {
            Stmt::FunctionDef(function) => {
                let outside = self.inside;
                self.inside |= function.name.starts_with("test");
                walk_stmt(self, stmt);
                self.inside = outside;
            }
            Stmt::Assert(_) => self.found |= self.inside,
            _ => walk_stmt(self, stmt),
        }
    }

    fn visit_expr(&mut self, expr: &'v Expr) {
        if let Expr::Attribute(attribute) = expr {
            let claims =
                attribute.attr.as_str() == "raises" || attribute.attr.starts_with("assert");
            self.found |= self.inside && claims;
        }
        walk_expr(self, expr);
    }
}
