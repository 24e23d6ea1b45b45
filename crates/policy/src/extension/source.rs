//! From the TypeScript of a rule file to JavaScript that stands at the same places.
//!
//! Types are erased by writing blanks over them, so a line and column in the JavaScript is the same
//! line and column in the author's file, and no code is generated. What is left is parsed again as
//! plain JavaScript: whatever was not erased is refused there.
//!
//! A rule file is one module. It has one `export default function`, neither `async` nor a generator,
//! and imports nothing but types. TypeScript that is more than types (`enum`, `namespace`, parameter
//! properties, decorators, `<T>value`, member modifiers) is refused.
//!
//! **Invariant.** The text given back has the same number of characters on each line as the text
//! that came in.

use oxc_allocator::Allocator;
use oxc_ast::AstKind;
use oxc_ast::ast::{
    ArrowFunctionExpression, ClassElement, Declaration, ExportDefaultDeclarationKind,
    FormalParameter, Function, FunctionType, ImportOrExportKind, MethodDefinitionType, Program,
    PropertyDefinitionType, Statement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::Parser;
use oxc_span::{GetSpan, SourceType, Span};
use serde::{Deserialize, Serialize};

use fluffy_base::Excerpt;

/// The largest rule file in bytes. A rule is a page of code; this is two thousand lines.
pub const MAX_RULE_BYTES: usize = 64 << 10;

/// How much of the parser's words a problem repeats.
const PROBLEM_CHARS: usize = 300;

/// What is wrong with a rule file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[error("{line}:{column}: {problem}")]
pub struct RuleProblem {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub fix: String,
}

/// The JavaScript of a rule file.
pub(crate) fn javascript(text: &str) -> Result<String, RuleProblem> {
    if text.len() > MAX_RULE_BYTES {
        let problem = format!("the rule has {} bytes, more than {MAX_RULE_BYTES}", text.len());
        return Err(RuleProblem::at(text, 0, &problem, "split it into rules of one concern each"));
    }
    let allocator = Allocator::default();
    let program = parse(&allocator, text, SourceType::ts(), "write valid TypeScript")?;
    let mut erasing = Erasing::new(text);
    erasing.visit_program(&program);
    if let Some(problem) = erasing.problem {
        return Err(problem);
    }
    has_default_function(text, &program)?;
    let plain = blanked(text, erasing.blanks, &erasing.ends);
    let allocator = Allocator::default();
    let fix = "use only types that can be erased: no modifiers, optional members or overloads";
    parse(&allocator, &plain, SourceType::mjs(), fix)?;
    Ok(plain)
}

impl RuleProblem {
    /// A problem at a byte of the text.
    pub(crate) fn at(text: &str, byte: usize, problem: &str, fix: &str) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
        let line = before.matches('\n').count() + 1;
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self::new(number(line), number(column), problem, fix)
    }

    /// A problem at a place that is known already.
    pub(crate) fn new(line: u32, column: u32, problem: &str, fix: &str) -> Self {
        let problem = Excerpt::new(problem, PROBLEM_CHARS).to_string();
        Self { line, column, problem, fix: fix.to_owned() }
    }
}

fn parse<'a>(
    allocator: &'a Allocator,
    text: &'a str,
    kind: SourceType,
    fix: &str,
) -> Result<Program<'a>, RuleProblem> {
    let parsed = Parser::new(allocator, text, kind).parse();
    let Some(error) = parsed.diagnostics.errors().next() else {
        if parsed.panicked {
            return Err(RuleProblem::at(text, 0, "the file cannot be parsed", fix));
        }
        return Ok(parsed.program);
    };
    let at = error.labels.iter().map(|label| label.span().start).min().unwrap_or(0);
    let help = error.help.as_deref().unwrap_or(fix);
    Err(RuleProblem::at(text, offset(at), &error.message, help))
}

fn has_default_function(text: &str, program: &Program<'_>) -> Result<(), RuleProblem> {
    let fix = "write `export default function (request: PolicyRequest): PolicyAnswer { … }`";
    let found = program.body.iter().find_map(|statement| match statement {
        Statement::ExportDefaultDeclaration(export) => Some(export),
        _ => None,
    });
    let Some(export) = found else {
        return Err(RuleProblem::at(text, 0, "the rule has no default export", fix));
    };
    match &export.declaration {
        ExportDefaultDeclarationKind::FunctionDeclaration(function)
            if !function.r#async && !function.generator && function.body.is_some() =>
        {
            Ok(())
        }
        _other => {
            let problem = "the default export is not a plain function";
            Err(RuleProblem::at(text, offset(export.span.start), problem, fix))
        }
    }
}

/// A part of the text to write blanks over.
#[derive(Clone, Copy)]
struct Blank {
    start: usize,
    end: usize,
    /// What stands in the first place.
    first: char,
    /// What stands in the last place.
    last: char,
}

/// Finds what must go.
struct Erasing<'t> {
    text: &'t str,
    blanks: Vec<Blank>,
    /// Where statements and class fields end that have no semicolon of their own. A type erased at
    /// such an end leaves a semicolon, or the next line could be read as going on.
    ends: Vec<usize>,
    problem: Option<RuleProblem>,
}

impl<'t> Erasing<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, blanks: Vec::new(), ends: Vec::new(), problem: None }
    }

    fn blank(&mut self, start: u32, end: u32) {
        let (start, end) = (offset(start), offset(end));
        self.blanks.push(Blank { start, end, first: ' ', last: ' ' });
    }

    fn statement(&mut self, span: Span) {
        let (start, end) = (offset(span.start), offset(span.end));
        self.blanks.push(Blank { start, end, first: ';', last: ' ' });
    }

    fn refuse(&mut self, span: Span, what: &str, fix: &str) {
        if self.problem.is_none() {
            let problem = format!("{what} cannot be used in a rule");
            self.problem = Some(RuleProblem::at(self.text, offset(span.start), &problem, fix));
        }
    }

    fn part(&self, start: u32, end: u32) -> &'t str {
        self.text.get(offset(start)..offset(end)).unwrap_or_default()
    }

    fn arrow(&mut self, arrow: &ArrowFunctionExpression<'_>) {
        // `return <T⏎>(a) => b` would end at the line break once the type is gone.
        if arrow.type_parameters.is_some()
            && self.part(arrow.span.start, arrow.params.span.start).contains('\n')
        {
            let fix = "write them on the line of the opening parenthesis";
            self.refuse(arrow.span, "type parameters over several lines", fix);
        }
        let Some(returns) = &arrow.return_type else { return };
        let close = arrow.params.span.end;
        if self.part(close, returns.span.end).contains('\n') {
            // No line break may stand before `=>`, so the parenthesis moves to the type's end.
            let (start, end) = (offset(close).saturating_sub(1), offset(returns.span.end));
            self.blanks.push(Blank { start, end, first: ' ', last: ')' });
        }
    }

    fn parameter(&mut self, parameter: &FormalParameter<'_>) {
        if parameter.accessibility.is_some() || parameter.readonly || parameter.r#override {
            let fix = "declare the field and set it in the constructor";
            self.refuse(parameter.span, "a parameter property", fix);
        }
        if parameter.optional {
            let after = parameter.pattern.span().end;
            let rest = self.text.get(offset(after)..).unwrap_or_default();
            let mark = rest.find('?').map_or(0, |at| at + 1);
            let end = u32::try_from(offset(after) + mark).unwrap_or(after);
            self.blank(after, end);
        }
    }

    fn function(&mut self, function: &Function<'_>) {
        if function.declare || function.r#type == FunctionType::TSDeclareFunction {
            self.statement(function.span);
        }
    }

    fn member(&mut self, member: &ClassElement<'_>) {
        let fix = "leave the modifier out; use `#name` for a private member";
        match member {
            ClassElement::MethodDefinition(method) => {
                if method.accessibility.is_some()
                    || method.r#override
                    || method.optional
                    || method.r#type == MethodDefinitionType::TSAbstractMethodDefinition
                    || method.value.body.is_none()
                {
                    self.refuse(method.span, "a modifier or overload of a method", fix);
                }
            }
            ClassElement::PropertyDefinition(field) => {
                if field.accessibility.is_some()
                    || field.r#override
                    || field.optional
                    || field.definite
                    || field.readonly
                    || field.declare
                    || field.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition
                {
                    self.refuse(field.span, "a modifier of a field", fix);
                }
                self.ends.push(offset(field.span.end));
            }
            ClassElement::AccessorProperty(accessor) => {
                self.refuse(accessor.span, "an accessor field", fix);
            }
            ClassElement::TSIndexSignature(signature) => self.statement(signature.span),
            ClassElement::StaticBlock(_) => {}
        }
    }

    fn expression(&mut self, kind: AstKind<'_>) {
        match kind {
            AstKind::TSAsExpression(it) => self.blank(it.expression.span().end, it.span.end),
            AstKind::TSSatisfiesExpression(it) => self.blank(it.expression.span().end, it.span.end),
            AstKind::TSNonNullExpression(it) => self.blank(it.expression.span().end, it.span.end),
            AstKind::TSTypeAssertion(it) => {
                self.refuse(it.span, "a type before its value", "write `value as Type`");
            }
            AstKind::ImportExpression(it) => self.refuse(it.span, "`import`", NO_IMPORTS),
            AstKind::ImportMeta(it) => self.refuse(it.span, "`import.meta`", NO_IMPORTS),
            AstKind::ArrowFunctionExpression(it) => self.arrow(it),
            _ => {}
        }
    }

    fn declaration(&mut self, kind: AstKind<'_>) {
        match kind {
            AstKind::TSInterfaceDeclaration(it) => self.statement(it.span),
            AstKind::TSTypeAliasDeclaration(it) => self.statement(it.span),
            AstKind::TSTypeAnnotation(it) => self.blank(it.span.start, it.span.end),
            AstKind::TSTypeParameterDeclaration(it) => self.blank(it.span.start, it.span.end),
            AstKind::TSTypeParameterInstantiation(it) => self.blank(it.span.start, it.span.end),
            AstKind::Function(it) => self.function(it),
            AstKind::FormalParameter(it) => self.parameter(it),
            AstKind::VariableDeclaration(it) if it.declare => self.statement(it.span),
            AstKind::VariableDeclarator(it) if it.definite => {
                let end = it.type_annotation.as_ref().map_or(it.span.end, |of| of.span.start);
                self.blank(it.id.span().end, end);
            }
            AstKind::Class(it) if it.declare || it.r#abstract || !it.implements.is_empty() => {
                let fix = "write a plain class or none";
                self.refuse(it.span, "`declare`, `abstract` or `implements` of a class", fix);
            }
            AstKind::TSThisParameter(it) => {
                self.refuse(it.span, "a `this` parameter", "pass it as an argument");
            }
            AstKind::TSEnumDeclaration(it) => {
                self.refuse(it.span, "`enum`", "write a union of texts: `\"a\" | \"b\"`");
            }
            AstKind::TSNamespaceDeclaration(it) => self.refuse(it.span, "`namespace`", ONE_FILE),
            AstKind::TSExternalModuleDeclaration(it) => self.refuse(it.span, "`module`", ONE_FILE),
            AstKind::TSGlobalDeclaration(it) => self.refuse(it.span, "`global`", ONE_FILE),
            AstKind::Decorator(it) => self.refuse(it.span, "a decorator", "call the function"),
            _ => {}
        }
    }

    fn module_item(&mut self, kind: AstKind<'_>) {
        let type_only = |kind: ImportOrExportKind| kind == ImportOrExportKind::Type;
        match kind {
            AstKind::ImportDeclaration(it) if type_only(it.import_kind) => self.statement(it.span),
            AstKind::ExportNamedDeclaration(it) if type_only(it.export_kind) => {
                self.statement(it.span);
            }
            AstKind::ExportDeclaration(it) => match &it.declaration {
                Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_) => {
                    self.statement(it.span);
                }
                other if other.declare() => {
                    self.refuse(it.span, "`export declare`", "leave `export` out");
                }
                _values => {}
            },
            AstKind::ImportDeclaration(it) => self.refuse(it.span, "`import`", NO_IMPORTS),
            AstKind::TSImportEqualsDeclaration(it) => self.refuse(it.span, "`import`", NO_IMPORTS),
            AstKind::ExportFromDeclaration(it) => {
                self.refuse(it.span, "`export … from`", NO_IMPORTS);
            }
            AstKind::ExportAllDeclaration(it) => self.refuse(it.span, "`export *`", NO_IMPORTS),
            AstKind::TSExportAssignment(it) => {
                self.refuse(it.span, "`export =`", "write `export default function`");
            }
            _ => {}
        }
    }
}

const NO_IMPORTS: &str = "a rule is one file: put what it needs into it";
const ONE_FILE: &str = "declare it at the top of the file";

impl<'a> Visit<'a> for Erasing<'_> {
    fn enter_node(&mut self, kind: AstKind<'a>) {
        self.expression(kind);
        self.declaration(kind);
        self.module_item(kind);
    }

    fn visit_statement(&mut self, it: &Statement<'a>) {
        self.ends.push(offset(it.span().end));
        walk::walk_statement(self, it);
    }

    fn visit_class_element(&mut self, it: &ClassElement<'a>) {
        self.member(it);
        walk::walk_class_element(self, it);
    }
}

/// The text with blanks where types stood. Line ends stay; every other character becomes one blank.
fn blanked(text: &str, mut blanks: Vec<Blank>, ends: &[usize]) -> String {
    // The outermost of several that begin at one place comes first; what lies inside it is skipped.
    blanks.sort_by_key(|blank| (blank.start, std::cmp::Reverse(blank.end)));
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for blank in blanks {
        if blank.start < done {
            continue;
        }
        out.push_str(text.get(done..blank.start).unwrap_or_default());
        let erased = text.get(blank.start..blank.end).unwrap_or_default();
        let first = if ends.contains(&blank.end) { ';' } else { blank.first };
        let last_at = erased.char_indices().next_back().map(|(at, _)| at);
        for (at, c) in erased.char_indices() {
            out.push(match c {
                '\n' | '\r' | '\u{2028}' | '\u{2029}' => c,
                _ if at == 0 => first,
                _ if Some(at) == last_at => blank.last,
                _ => ' ',
            });
        }
        done = blank.end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

fn offset(at: u32) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "export default function (r: PolicyRequest): PolicyAnswer { return r }";

    fn erased(code: &str) -> String {
        let text = format!("{RULE}\n{code}");
        let out = javascript(&text).unwrap_or_else(|error| panic!("{code}: {error}"));
        let lengths = |text: &str| text.lines().map(|l| l.chars().count()).collect::<Vec<_>>();
        assert_eq!(lengths(&out), lengths(&text), "{out}");
        out.lines().skip(1).collect::<Vec<_>>().join("\n")
    }

    fn squeezed(code: &str) -> String {
        erased(code).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn refusal(text: &str) -> String {
        javascript(text).expect_err(text).to_string()
    }

    #[test]
    fn types_become_blanks_and_places_stay() {
        assert_eq!(erased("let a: number = 1, b!: string;"), "let a         = 1, b         ;");
        assert_eq!(
            squeezed("const f = <T,>(a?: T, ...b: T[]): T => a as T;"),
            "const f = (a , ...b ) => a ;"
        );
        assert_eq!(
            squeezed("new Map<string, Set<number>>([]); let é: \"ü\" = x!;"),
            "new Map ([]); let é = x ;"
        );
        assert_eq!(squeezed("type A = { b: 1 };\ninterface C<T> { d?: T }\nlet e"), "; ; let e");
        assert_eq!(squeezed("import type { X } from './policy';\nexport type Y = X;"), "; ;");
        assert_eq!(
            squeezed("declare const q: number\nfunction o(a: string): void\nfunction o(a) {}"),
            "; ; function o(a) {}"
        );
        assert_eq!(
            squeezed("class A<T> extends B<T> { #x: number = 1 as T\n['y'] = 2; m(): void {} }"),
            "class A extends B { #x = 1; ['y'] = 2; m() {} }"
        );
        assert_eq!(
            squeezed("const g = (\n a: string,\n): {\n b: 1\n} => 1"),
            "const g = ( a , ) => 1"
        );
        assert_eq!(
            squeezed("try {} catch (e: unknown) {} for (const x of y as z[]) {}"),
            "try {} catch (e ) {} for (const x of y ) {}"
        );
    }

    #[test]
    fn an_erased_type_does_not_join_two_lines() {
        assert_eq!(squeezed("let a = b as string\n(f)(1)"), "let a = b; (f)(1)");
        assert_eq!(squeezed("let a = b satisfies c\n[1].map(f)"), "let a = b; [1].map(f)");
        assert_eq!(squeezed("f(() => a as T, b)"), "f(() => a , b)");
        assert_eq!(squeezed("a = b!\n(c)"), "a = b (c)");
        assert_eq!(squeezed("a\ntype T = 1\n[1].map(f)"), "a ; [1].map(f)");
    }

    #[test]
    fn a_syntax_error_has_its_line_and_column() {
        assert!(refusal(&format!("{RULE}\nlet x = ;")).starts_with("2:9: "));
        assert!(refusal("\n\n  let é = 'a").starts_with("3:11: "));
    }

    #[test]
    fn a_rule_imports_nothing() {
        for code in [
            "import fs from 'fs'",
            "import 'os'",
            "import { type X } from 'x'",
            "export * from 'x'",
            "export { a } from 'x'",
            "await import('fs')",
            "let m = import.meta",
            "import x = require('x')",
        ] {
            let told = refusal(&format!("{RULE}\n{code}"));
            assert!(told.starts_with("2:") && told.contains("cannot be used in a rule"), "{told}");
        }
    }

    #[test]
    fn more_than_types_is_refused() {
        for code in [
            "enum A { B }",
            "namespace N { export let a = 1 }",
            "let a = <string>b",
            "class A { constructor(private b) {} }",
            "class A { private b = 1 }",
            "class A { readonly b = 1 }",
            "abstract class A {}",
            "class A implements B {}",
            "@d class A {}",
            "export = 1",
            "declare global {}",
            "function f(this: A) {}",
            "class A { b?: number }",
            "export declare const a: 1",
            "function f() { return <\nT>(a: T) => a }",
        ] {
            let told = refusal(&format!("{RULE}\n{code}"));
            assert!(told.starts_with("2:") || told.starts_with("3:"), "{code}: {told}");
        }
    }

    #[test]
    fn a_rule_file_has_one_plain_default_function() {
        assert_eq!(refusal("let a = 1"), "1:1: the rule has no default export");
        for code in [
            "export default 1",
            "export default async function () {}",
            "export default function* () {}",
            "export default class {}",
            "export default interface A {}",
        ] {
            assert!(refusal(code).contains("the default export is not a plain function"), "{code}");
        }
        let large = format!("{RULE}\n//{}", "x".repeat(MAX_RULE_BYTES));
        assert!(refusal(&large).contains("more than 65536"));
    }

    #[test]
    fn any_cut_of_a_rule_is_an_answer_and_no_panic() {
        let text = "export default function f<T>(r: Ä[], b?: T): {\n a: 1 } { return (r as T)!; }";
        for (at, _) in text.char_indices() {
            let _either = javascript(&text[..at]);
        }
    }
}
