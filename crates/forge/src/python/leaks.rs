//! Secrets: asked for by name, never shown, never written into the file.
//!
//! What follows a secret is a variable that is assigned from it, step by step, as long as no call stands between. A call
//! is where a secret is used; what it does with it cannot be seen here.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;
use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, ExprCall, Stmt};

use super::parse::Module;
use super::report::{Report, shown};
use super::rules::ScanRules;
use super::scan::literal;

/// How often assignments are followed.
const ROUNDS: usize = 4;

/// Calls that show what they are given.
const SHOWING: &[&str] = &[
    "critical",
    "debug",
    "error",
    "exception",
    "info",
    "log",
    "print",
    "warn",
    "warning",
    "write",
    "write_bytes",
    "write_text",
    "writelines",
];

/// Calls that give back what they are given, in another shape.
const RESHAPING: &[&str] = &[
    "b64encode",
    "bytes",
    "decode",
    "dict",
    "dumps",
    "encode",
    "format",
    "hex",
    "join",
    "list",
    "lower",
    "quote",
    "repr",
    "replace",
    "str",
    "strip",
    "tuple",
    "upper",
    "urlencode",
];

/// Texts that look like keys of well-known services.
static KEYS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let kinds = [
        r"AKIA[0-9A-Z]{16}",
        r"gh[pousr]_[0-9A-Za-z]{36}",
        r"github_pat_[0-9A-Za-z_]{22}",
        r"sk-[0-9A-Za-z_-]{20}",
        r"xox[abprs]-[0-9A-Za-z-]{10}",
        r"AIza[0-9A-Za-z_-]{35}",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    ];
    Regex::new(&kinds.join("|")).ok()
});

/// Looks for secrets in a file.
pub(super) fn find(module: &Module<'_>, rules: &ScanRules, report: &mut Report) {
    for (number, line) in (1..).zip(module.text.lines()) {
        if looks_like_key(line) {
            report.add(Some(number), "secret_literal", "a text that looks like a key");
        }
    }
    let mut tainted = Tainted::default();
    for _ in 0..ROUNDS {
        let before = tainted.names.len();
        module.body().iter().for_each(|stmt| tainted.visit_stmt(stmt));
        if tainted.names.len() == before {
            break;
        }
    }
    let mut leaks = Leaks { module, rules, tainted: &tainted, answers: false, report };
    module.body().iter().for_each(|stmt| leaks.visit_stmt(stmt));
}

/// Without its patterns, nothing can be said to be no key.
fn looks_like_key(text: &str) -> bool {
    KEYS.as_ref().is_none_or(|keys| keys.is_match(text))
}

/// Names of variables and attributes that hold a secret.
#[derive(Default)]
struct Tainted {
    names: HashSet<String>,
}

impl Tainted {
    /// Whether an expression is a secret, or made of one without a call.
    fn holds(&self, expr: &Expr) -> bool {
        let mut held = Held { tainted: self, found: false };
        held.visit_expr(expr);
        held.found
    }

    fn assign(&mut self, target: &Expr) {
        match target {
            Expr::Name(name) => self.names.insert(name.id.to_string()),
            Expr::Attribute(attribute) => self.names.insert(format!(".{}", attribute.attr)),
            _ => false,
        };
    }
}

impl<'v> Visitor<'v> for Tainted {
    fn visit_stmt(&mut self, stmt: &'v Stmt) {
        match stmt {
            Stmt::Assign(assign) if self.holds(&assign.value) => {
                assign.targets.iter().for_each(|target| self.assign(target));
            }
            Stmt::AnnAssign(assign)
                if assign.value.as_ref().is_some_and(|value| self.holds(value)) =>
            {
                self.assign(&assign.target);
            }
            Stmt::AugAssign(assign) if self.holds(&assign.value) => {
                self.assign(&assign.target);
            }
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'v Expr) {
        if let Expr::Named(named) = expr
            && self.holds(&named.value)
        {
            self.assign(&named.target);
        }
        walk_expr(self, expr);
    }
}

/// Looks for a secret in an expression.
struct Held<'t> {
    tainted: &'t Tainted,
    found: bool,
}

impl<'v> Visitor<'v> for Held<'_> {
    fn visit_expr(&mut self, expr: &'v Expr) {
        match expr {
            Expr::Name(name) => self.found |= self.tainted.names.contains(name.id.as_str()),
            Expr::Attribute(attribute) => {
                let name = format!(".{}", attribute.attr);
                self.found |= self.tainted.names.contains(&name);
                walk_expr(self, expr);
            }
            Expr::Call(call) if is_secret(call) => self.found = true,
            Expr::Call(call) => {
                if callee(call).is_some_and(|name| RESHAPING.contains(&name)) {
                    walk_expr(self, expr);
                }
            }
            // Whether there is one says nothing about it.
            Expr::Compare(_) | Expr::UnaryOp(_) => {}
            Expr::If(either) => {
                self.visit_expr(&either.body);
                self.visit_expr(&either.orelse);
            }
            _ => walk_expr(self, expr),
        }
    }
}

/// Whether a call is `….secret(…)`.
fn is_secret(call: &ExprCall) -> bool {
    call.func.as_attribute_expr().is_some_and(|attribute| attribute.attr.as_str() == "secret")
}

/// The last word of what is called.
fn callee(call: &ExprCall) -> Option<&str> {
    match &*call.func {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        _ => None,
    }
}

struct Leaks<'l, 'a> {
    module: &'l Module<'a>,
    rules: &'l ScanRules,
    tainted: &'l Tainted,
    /// Whether what is returned is the skill's answer.
    answers: bool,
    report: &'l mut Report,
}

impl Leaks<'_, '_> {
    fn held(&self, expr: Option<&Expr>) -> bool {
        expr.is_some_and(|expr| self.tainted.holds(expr))
    }

    /// Whether an error is raised that holds a secret.
    fn raised(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Call(call) => self.given(call),
            _ => self.tainted.holds(expr),
        }
    }

    /// Whether a call is given a secret.
    fn given(&self, call: &ExprCall) -> bool {
        let named = call.arguments.keywords.iter().map(|keyword| &keyword.value);
        call.arguments.args.iter().chain(named).any(|value| self.tainted.holds(value))
    }

    fn leak(&mut self, line: u32, how: &str) {
        self.report.add(Some(line), "secret_leak", format!("a secret is {how}"));
    }

    /// A secret is asked for by a name that stands there and was proposed.
    fn asked(&mut self, call: &ExprCall) {
        let line = self.module.line(call);
        match call.arguments.args.first().and_then(literal) {
            Some(name) if self.rules.may_have_secret(name) => {}
            Some(name) => {
                let message = format!("secret `{}` was not proposed", shown(name));
                self.report.add(Some(line), "secret_not_declared", message);
            }
            None => {
                let message = "a secret whose name does not stand in the file";
                self.report.add(Some(line), "secret_not_declared", message);
            }
        }
    }
}

impl<'v> Visitor<'v> for Leaks<'_, '_> {
    fn visit_stmt(&mut self, stmt: &'v Stmt) {
        match stmt {
            Stmt::Raise(raise) if raise.exc.as_ref().is_some_and(|exc| self.raised(exc)) => {
                let line = self.module.line(raise);
                self.leak(line, "raised");
            }
            Stmt::FunctionDef(function) => {
                let outside = self.answers;
                self.answers |= function.name.as_str() == "execute";
                walk_stmt(self, stmt);
                self.answers = outside;
                return;
            }
            Stmt::Return(answer) if self.answers && self.held(answer.value.as_deref()) => {
                let line = self.module.line(answer);
                self.leak(line, "returned");
            }
            Stmt::Assert(claim) if self.held(claim.msg.as_deref()) => {
                let line = self.module.line(claim);
                self.leak(line, "shown");
            }
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'v Expr) {
        match expr {
            Expr::Call(call) => {
                if is_secret(call) {
                    self.asked(call);
                }
                let shows = callee(call).is_some_and(|name| SHOWING.contains(&name));
                if shows && self.given(call) {
                    let line = self.module.line(call);
                    self.leak(line, "shown");
                }
            }
            Expr::StringLiteral(text)
                if text.value.is_implicit_concatenated() && looks_like_key(text.value.to_str()) =>
            {
                let line = self.module.line(text);
                self.report.add(Some(line), "secret_literal", "a text that looks like a key");
            }
            _ => {}
        }
        walk_expr(self, expr);
    }
}
