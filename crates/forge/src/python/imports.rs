//! What the names of a file stand for, as far as imports say it.
//!
//! Scopes are not told apart: a name that is imported anywhere in a file counts as that import everywhere in it. That
//! refuses a little too much where a file uses one name for two things, and never too little.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::visitor::{Visitor, walk_stmt};
use ruff_python_ast::{Expr, ExprContext, Identifier, Stmt, StmtImport, StmtImportFrom};

use super::modules;
use super::parse::Module;
use crate::{SKILLS, SourceFile};

/// What kind of file it is: which rules hold in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The skill itself, or something that is in the wrong place.
    Skill,
    /// A module that skills share.
    Support,
    /// Tests.
    Test,
}

impl Role {
    pub(super) fn of(file: &SourceFile) -> Self {
        let path = file.path.as_str();
        match path.strip_prefix(SKILLS).and_then(|rest| rest.strip_prefix('/')) {
            Some(rest) if rest.starts_with("tests/") => Self::Test,
            Some(rest) if rest.starts_with("support/") => Self::Support,
            Some(_) | None => Self::Skill,
        }
    }
}

/// What an imported name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// A module, by its whole name.
    Module(String),
    /// Something in a module, by its whole name.
    Name(String),
}

/// One name of one import.
#[derive(Debug)]
pub(super) struct Imported {
    pub(super) line: u32,
    /// The module that is imported, or imported from; empty for `from . import`.
    pub(super) module: String,
    /// What is taken from it.
    pub(super) name: Option<String>,
    /// Whether it begins at the file's own package.
    pub(super) relative: bool,
    /// The name that the file uses.
    pub(super) bound: String,
}

/// The imports of a file.
#[derive(Debug, Default)]
pub(super) struct Imports {
    pub(super) all: Vec<Imported>,
    bound: HashMap<String, Vec<Origin>>,
}

impl Imports {
    pub(super) fn of(module: &Module<'_>, own: &Own) -> Self {
        let mut collect = Collect { module, own, imports: Self::default() };
        for stmt in module.body() {
            collect.visit_stmt(stmt);
        }
        collect.imports
    }

    /// What a name stands for: nothing if it is not imported, more than one thing if it is imported twice.
    pub(super) fn origins(&self, name: &str) -> &[Origin] {
        self.bound.get(name).map_or(&[], Vec::as_slice)
    }

    /// The whole name of an expression that is an import or an attribute of one.
    pub(super) fn dotted(&self, expr: &Expr) -> Option<String> {
        let (root, attributes) = flatten(expr);
        let Expr::Name(root) = root else { return None };
        let (Origin::Module(start) | Origin::Name(start)) = self.origins(&root.id).first()?;
        let mut dotted = start.clone();
        for attribute in attributes {
            dotted.push('.');
            dotted.push_str(attribute);
        }
        Some(dotted)
    }
}

/// An expression without the attributes that are asked of it, and these in the order in which they are asked.
pub(super) fn flatten(expr: &Expr) -> (&Expr, Vec<&Identifier>) {
    let mut attributes = Vec::new();
    let mut root = expr;
    while let Expr::Attribute(attribute) = root {
        attributes.push(&attribute.attr);
        root = &attribute.value;
    }
    attributes.reverse();
    (root, attributes)
}

struct Collect<'m, 'a> {
    module: &'m Module<'a>,
    own: &'m Own,
    imports: Imports,
}

impl Collect<'_, '_> {
    fn import(&mut self, stmt: &StmtImport) {
        for alias in &stmt.names {
            let module = alias.name.to_string();
            let first = module.split('.').next().unwrap_or_default().to_owned();
            let (bound, origin) = match &alias.asname {
                Some(name) => (name.to_string(), module.clone()),
                None => (first.clone(), first),
            };
            self.bind(&bound, Origin::Module(origin));
            let line = self.module.line_at(alias.range.start());
            self.imports.all.push(Imported { line, module, name: None, relative: false, bound });
        }
    }

    fn import_from(&mut self, stmt: &StmtImportFrom) {
        let module = stmt.module.as_ref().map(ToString::to_string).unwrap_or_default();
        for alias in &stmt.names {
            let name = alias.name.to_string();
            let bound = alias.asname.as_ref().unwrap_or(&alias.name).to_string();
            let dotted = format!("{module}.{name}");
            let is_module = modules::allowed(&dotted).is_some() || self.own.is_module(&dotted);
            let origin = if is_module { Origin::Module(dotted) } else { Origin::Name(dotted) };
            self.bind(&bound, origin);
            let line = self.module.line_at(alias.range.start());
            let relative = stmt.level > 0;
            let (module, name) = (module.clone(), Some(name));
            self.imports.all.push(Imported { line, module, name, relative, bound });
        }
    }

    fn bind(&mut self, name: &str, origin: Origin) {
        let origins = self.imports.bound.entry(name.to_owned()).or_default();
        if !origins.contains(&origin) {
            origins.push(origin);
        }
    }
}

impl<'v> Visitor<'v> for Collect<'_, '_> {
    fn visit_stmt(&mut self, stmt: &'v Stmt) {
        match stmt {
            Stmt::Import(import) => self.import(import),
            Stmt::ImportFrom(import) => self.import_from(import),
            _ => walk_stmt(self, stmt),
        }
    }

    fn visit_expr(&mut self, _expr: &'v Expr) {}
}

/// What belongs to the skill: its modules, and what its files define.
#[derive(Debug, Default)]
pub(super) struct Own {
    modules: HashSet<String>,
    private: HashSet<String>,
    aliases: HashSet<String>,
}

impl Own {
    /// The modules that the files are, and the base that every skill stands on.
    pub(super) fn of(files: &[SourceFile]) -> Self {
        let mut own = Self::default();
        own.modules.extend(["fluffy_skill".to_owned(), "support".to_owned()]);
        for file in files {
            let path = file.path.as_str();
            let below = path.strip_prefix(SKILLS).and_then(|rest| rest.strip_prefix('/'));
            let name = below.and_then(|rest| rest.strip_suffix(".py"));
            own.modules.extend(name.map(|name| name.replace('/', ".")));
        }
        own.modules.extend(["support.gateway".to_owned(), "support.settings".to_owned()]);
        own
    }

    /// Adds what a file defines.
    pub(super) fn learn(&mut self, module: &Module<'_>) {
        let imports = Imports::of(module, self);
        let is_module = |imported: &&Imported| {
            let origins = imports.origins(&imported.bound);
            origins.iter().any(|origin| matches!(origin, Origin::Module(_)))
        };
        self.aliases.extend(imports.all.iter().filter(is_module).map(|one| one.bound.clone()));
        let mut names = Defined { names: &mut self.private };
        for stmt in module.body() {
            names.visit_stmt(stmt);
        }
    }

    /// Whether a module belongs to the skill.
    pub(super) fn is_module(&self, dotted: &str) -> bool {
        self.modules.contains(dotted)
    }

    /// Whether a whole name is one of the skill's, or of the base.
    pub(super) fn holds(&self, dotted: &str) -> bool {
        self.modules.contains(dotted.split('.').next().unwrap_or_default())
    }

    /// Whether one of the files defines the private name.
    pub(super) fn defines(&self, private: &str) -> bool {
        self.private.contains(private)
    }

    /// Whether one of the files has imported a module under that name.
    pub(super) fn is_alias(&self, name: &str) -> bool {
        self.aliases.contains(name)
    }
}

/// Collects private names that a file defines.
struct Defined<'n> {
    names: &'n mut HashSet<String>,
}

impl Defined<'_> {
    fn add(&mut self, name: &str) {
        if name.starts_with('_') {
            self.names.insert(name.to_owned());
        }
    }
}

impl<'v> Visitor<'v> for Defined<'_> {
    fn visit_stmt(&mut self, stmt: &'v Stmt) {
        match stmt {
            Stmt::FunctionDef(function) => self.add(&function.name),
            Stmt::ClassDef(class) => self.add(&class.name),
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'v Expr) {
        match expr {
            Expr::Name(name) if name.ctx == ExprContext::Store => self.add(&name.id),
            Expr::Attribute(attribute) if attribute.ctx == ExprContext::Store => {
                self.add(&attribute.attr);
            }
            _ => {}
        }
        ruff_python_ast::visitor::walk_expr(self, expr);
    }
}
