//! Type-only changes of TypeScript: those that leave the same program once types are erased.
//!
//! Both texts are parsed, types are taken out of both trees, and what is left has to be the same tree.
//! Taken out are annotations, parameters and arguments of types, interfaces, aliases, `declare`d names,
//! overloads, `as`, `satisfies`, `!`, imports and exports of types, and the modifiers of members that
//! only the compiler reads. Whatever is not on that list stays in and has to be the same.
//!
//! Not on it, because they make code: `enum` (also a `declare`d one, whose values are put in place),
//! `namespace`, parameter properties, `declare` on a field, `import { type A }`, which may or may not
//! load the module. A file with decorators is refused, since a compiler can be told to hand them the
//! types as values.
//!
//! **Invariant.** A hostile text cannot end the process. The parser recurses, and tries again at brackets
//! and conditions, so these are bounded before it sees a text; it runs on a stack that is large enough
//! for whatever else a text of the allowed length can nest, and a panic of its is a refusal.

use std::thread;

use fluffy_base::ProjectPath;
use oxc_allocator::{Allocator, ReplaceWith as _};
use oxc_ast::ast::{
    AccessorProperty, ArrowFunctionExpression, CallExpression, CatchParameter, Class, ClassBody,
    ClassElement, ClassHeritage, Declaration, Decorator, ExportDefaultDeclarationKind, Expression,
    FormalParameter, FormalParameterRest, Function, ImportOrExportKind, MethodDefinition,
    NewExpression, Program, PropertyDefinition, Statement, TaggedTemplateExpression,
    VariableDeclarator,
};
use oxc_ast_visit::{VisitMut, walk_mut};
use oxc_parser::Parser;
use oxc_span::{ContentEq as _, SourceType};
use oxc_syntax::scope::ScopeFlags;

use super::{NotTypeOnly, TypeOnly, Version, check_size, has_ending};

/// How deep brackets may be nested.
const MAX_BRACKETS: usize = 64;

/// How many `<` may be open at once. The parser takes each for the start of type arguments and tries
/// again if it was none.
const MAX_ANGLES: usize = 12;

/// How many conditional expressions a file may have. Where one holds an arrow function the parser reads
/// the rest twice, so the time it takes grows with a power of their number.
const MAX_CONDITIONS: usize = 128;

/// The stack that the parser runs on. Only what is used of it is ever taken from the system.
const STACK_BYTES: usize = 256 << 20;

/// TypeScript, declaration files among it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TypeScript;

impl TypeOnly for TypeScript {
    fn judges(&self, path: &ProjectPath) -> bool {
        has_ending(path, &["ts", "mts", "cts"])
    }

    fn check(&self, _path: &ProjectPath, before: &str, after: &str) -> Result<(), NotTypeOnly> {
        check_size(before, after)?;
        if is_too_deep(before) || is_too_deep(after) {
            return Err(NotTypeOnly::TooDeep);
        }
        thread::scope(|scope| {
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            let started = builder.spawn_scoped(scope, || compare(before, after));
            let ended = started.map_err(|_no_thread| NotTypeOnly::TooDeep)?.join();
            ended.unwrap_or(Err(NotTypeOnly::Syntax(Version::After)))
        })
    }
}

/// Whether a text nests more than anybody would write. What stands in texts and comments is counted as
/// well: whoever writes so many has to write a test.
fn is_too_deep(text: &str) -> bool {
    let (mut brackets, mut angles) = (0_usize, 0_usize);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => brackets += 1,
            b')' | b']' | b'}' => brackets = brackets.saturating_sub(1),
            b'<' => angles += 1,
            b'>' => angles = angles.saturating_sub(1),
            b';' => angles = 0,
            _ => {}
        }
        if brackets > MAX_BRACKETS || angles > MAX_ANGLES {
            return true;
        }
    }
    conditions(text) > MAX_CONDITIONS
}

/// How many `?` may be of conditional expressions: all but `??`, `?.` and the mark of what is optional.
fn conditions(text: &str) -> usize {
    let mut count = 0;
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = match (first, after) {
            (b'?', [b'?', after @ ..]) => after,
            (b'?', [b'.', b'0'..=b'9', ..]) => {
                count += 1;
                after
            }
            (b'?', [b'.' | b':' | b',' | b')', ..]) => after,
            (b'?', _) => {
                count += 1;
                after
            }
            _other => after,
        };
    }
    count
}

fn compare(before: &str, after: &str) -> Result<(), NotTypeOnly> {
    let (first, second) = (Allocator::default(), Allocator::default());
    let before = erased(&first, before, Version::Before)?;
    let after = erased(&second, after, Version::After)?;
    // An import or export, even of a type, makes a script a module, which is read more strictly: the
    // parser's kind of source is compared with the rest. Where there is no code it means nothing.
    let same = before.content_eq(&after) || (is_empty(&before) && is_empty(&after));
    if same { Ok(()) } else { Err(NotTypeOnly::Code) }
}

/// A program without its types.
fn erased<'a>(
    allocator: &'a Allocator,
    text: &'a str,
    version: Version,
) -> Result<Program<'a>, NotTypeOnly> {
    let parsed = Parser::new(allocator, text, SourceType::ts()).parse();
    if parsed.panicked || parsed.diagnostics.errors().next().is_some() {
        return Err(NotTypeOnly::Syntax(version));
    }
    let mut program = parsed.program;
    let mut erasing = Erasing { has_decorators: false };
    erasing.visit_program(&mut program);
    match erasing.has_decorators {
        true => Err(NotTypeOnly::TypesAreValues("decorators")),
        false => Ok(program),
    }
}

fn is_empty(program: &Program<'_>) -> bool {
    program.body.is_empty() && program.directives.is_empty() && program.hashbang.is_none()
}

/// Takes types out of a tree.
struct Erasing {
    has_decorators: bool,
}

impl<'a> VisitMut<'a> for Erasing {
    fn visit_decorator(&mut self, it: &mut Decorator<'a>) {
        self.has_decorators = true;
        walk_mut::walk_decorator(self, it);
    }

    fn visit_statements(&mut self, it: &mut oxc_allocator::ArenaVec<'a, Statement<'a>>) {
        it.retain(|statement| !is_type_statement(statement));
        walk_mut::walk_statements(self, it);
    }

    fn visit_expression(&mut self, it: &mut Expression<'a>) {
        while is_type_expression(it) {
            it.replace_with(without_type);
        }
        walk_mut::walk_expression(self, it);
    }

    fn visit_function(&mut self, it: &mut Function<'a>, flags: ScopeFlags) {
        (it.type_parameters, it.this_param, it.return_type) = (None, None, None);
        walk_mut::walk_function(self, it, flags);
    }

    fn visit_arrow_function_expression(&mut self, it: &mut ArrowFunctionExpression<'a>) {
        (it.type_parameters, it.return_type) = (None, None);
        walk_mut::walk_arrow_function_expression(self, it);
    }

    fn visit_formal_parameter(&mut self, it: &mut FormalParameter<'a>) {
        (it.type_annotation, it.optional) = (None, false);
        walk_mut::walk_formal_parameter(self, it);
    }

    fn visit_formal_parameter_rest(&mut self, it: &mut FormalParameterRest<'a>) {
        it.type_annotation = None;
        walk_mut::walk_formal_parameter_rest(self, it);
    }

    fn visit_catch_parameter(&mut self, it: &mut CatchParameter<'a>) {
        it.type_annotation = None;
        walk_mut::walk_catch_parameter(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &mut VariableDeclarator<'a>) {
        (it.type_annotation, it.definite) = (None, false);
        walk_mut::walk_variable_declarator(self, it);
    }

    fn visit_class(&mut self, it: &mut Class<'a>) {
        it.type_parameters = None;
        it.implements.clear();
        walk_mut::walk_class(self, it);
    }

    fn visit_class_heritage(&mut self, it: &mut ClassHeritage<'a>) {
        it.type_arguments = None;
        walk_mut::walk_class_heritage(self, it);
    }

    fn visit_class_body(&mut self, it: &mut ClassBody<'a>) {
        // Decorators are looked for before anything that could bear one is taken out.
        walk_mut::walk_class_body(self, it);
        it.body.retain(|member| match member {
            ClassElement::TSIndexSignature(_) => false,
            ClassElement::MethodDefinition(method) => method.value.body.is_some(),
            ClassElement::StaticBlock(_)
            | ClassElement::PropertyDefinition(_)
            | ClassElement::AccessorProperty(_) => true,
        });
    }

    fn visit_method_definition(&mut self, it: &mut MethodDefinition<'a>) {
        (it.optional, it.r#override, it.accessibility) = (false, false, None);
        walk_mut::walk_method_definition(self, it);
    }

    fn visit_property_definition(&mut self, it: &mut PropertyDefinition<'a>) {
        (it.type_annotation, it.accessibility) = (None, None);
        (it.optional, it.definite, it.readonly, it.r#override) = (false, false, false, false);
        walk_mut::walk_property_definition(self, it);
    }

    fn visit_accessor_property(&mut self, it: &mut AccessorProperty<'a>) {
        it.type_annotation = None;
        walk_mut::walk_accessor_property(self, it);
    }

    fn visit_call_expression(&mut self, it: &mut CallExpression<'a>) {
        it.type_arguments = None;
        walk_mut::walk_call_expression(self, it);
    }

    fn visit_new_expression(&mut self, it: &mut NewExpression<'a>) {
        it.type_arguments = None;
        walk_mut::walk_new_expression(self, it);
    }

    fn visit_tagged_template_expression(&mut self, it: &mut TaggedTemplateExpression<'a>) {
        it.type_arguments = None;
        walk_mut::walk_tagged_template_expression(self, it);
    }
}

fn is_type_statement(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::ImportDeclaration(it) => it.import_kind == ImportOrExportKind::Type,
        Statement::ExportNamedDeclaration(it) => it.export_kind == ImportOrExportKind::Type,
        Statement::ExportFromDeclaration(it) => it.export_kind == ImportOrExportKind::Type,
        Statement::ExportAllDeclaration(it) => it.export_kind == ImportOrExportKind::Type,
        Statement::ExportDeclaration(it) => is_type_declaration(&it.declaration),
        Statement::ExportDefaultDeclaration(it) => {
            matches!(it.declaration, ExportDefaultDeclarationKind::TSInterfaceDeclaration(_))
        }
        other => other.as_declaration().is_some_and(is_type_declaration),
    }
}

fn is_type_declaration(declaration: &Declaration<'_>) -> bool {
    match declaration {
        Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_) => true,
        // A decorator is an error there, but not every compiler says so.
        Declaration::ClassDeclaration(it) => it.declare && it.decorators.is_empty(),
        Declaration::VariableDeclaration(it) => it.declare,
        Declaration::FunctionDeclaration(it) => it.declare || it.body.is_none(),
        Declaration::TSEnumDeclaration(_)
        | Declaration::TSExternalModuleDeclaration(_)
        | Declaration::TSNamespaceDeclaration(_)
        | Declaration::TSGlobalDeclaration(_)
        | Declaration::TSImportEqualsDeclaration(_) => false,
    }
}

/// Whether an expression is another with a type, with or without parentheses around both.
fn is_type_expression(expression: &Expression<'_>) -> bool {
    match expression {
        Expression::ParenthesizedExpression(it) => is_type_expression(&it.expression),
        Expression::TSAsExpression(_)
        | Expression::TSSatisfiesExpression(_)
        | Expression::TSNonNullExpression(_)
        | Expression::TSTypeAssertion(_)
        | Expression::TSInstantiationExpression(_) => true,
        _value => false,
    }
}

fn without_type(expression: Expression<'_>) -> Expression<'_> {
    match expression {
        Expression::ParenthesizedExpression(it) => it.unbox().expression,
        Expression::TSAsExpression(it) => it.unbox().expression,
        Expression::TSSatisfiesExpression(it) => it.unbox().expression,
        Expression::TSNonNullExpression(it) => it.unbox().expression,
        Expression::TSTypeAssertion(it) => it.unbox().expression,
        Expression::TSInstantiationExpression(it) => it.unbox().expression,
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(before: &str, after: &str) -> Result<(), NotTypeOnly> {
        TypeScript.check(&ProjectPath::parse("src/a.ts").unwrap(), before, after)
    }

    #[test]
    fn types_may_change() {
        for (before, after) in [
            ("let a = 1", "let a: number = 1;"),
            ("let a: number = 1", "let a = 1 as const satisfies number"),
            ("f(a)", "f<string>(a!)"),
            ("f((a as B).c)", "f(a.c)"),
            (
                "function f(a, ...b) {}",
                "function f<T>(this: X, a?: T, ...b: T[]): asserts a is T {}",
            ),
            ("function f(a) {}", "function f(a: 1): 1; function f(a: 2): 2; function f(a) {}"),
            ("const f = (a) => a", "const f = <T,>(a: T): T => a // why"),
            (
                "export const a = 1",
                "import type { B } from './b'\nexport const a = 1; export type C = B",
            ),
            (
                "class A { b = 1; m() {} }",
                "class A<T> implements I { private readonly b: T = 1; m(): void; m() {} [k: string]: T }",
            ),
            ("try {} catch (e) {}", "try {} catch (e: unknown) {}"),
            ("", "export interface A { b: 1 }"),
            ("", "declare const c: A"),
            ("", "declare function d(): A"),
            ("", "export declare class E { f: G }"),
            ("interface A {}", ""),
            ("a?.b.c", "a?.b!.c"),
            ("new A(b)", "new A<T>(b)"),
        ] {
            assert_eq!(check(before, after), Ok(()), "{before} -> {after}");
        }
    }

    #[test]
    fn code_may_not() {
        for (before, after) in [
            ("let a = 1", "let a = 2"),
            ("let a: number = 1", "var a: number = 1"),
            ("", "f()"),
            ("", "enum A { B }"),
            ("declare const enum A { B = 1 }", "declare const enum A { B = 2 }"),
            ("", "import 'x'"),
            ("import type { A } from 'x'", "import { A } from 'x'"),
            ("import { A } from 'x'", "import { type A } from 'x'"),
            ("class A { constructor(b: B) {} }", "class A { constructor(private b: B) {} }"),
            ("class A { b: B }", "class A { declare b: B }"),
            ("class A { b: B }", "class A { }"),
            ("namespace N { export const a = 1 }", "namespace N { export const a = 2 }"),
            ("f(a as B)", "f(b as B)"),
            ("(a?.b).c", "a?.b.c"),
            ("f()", "export type A = 1; f()"),
            ("f(`a`)", "f(`b`)"),
            ("f(/a/)", "f(/a/g)"),
            ("f(1n)", "f(1)"),
            ("a = b\nc()", "a = b as\nc; ()=>1"),
            ("'use strict'; f()", "type A = 1; f()"),
            ("#!/bin/a\nf()", "#!/bin/b\nf()"),
        ] {
            assert_eq!(check(before, after), Err(NotTypeOnly::Code), "{before} -> {after}");
        }
    }

    #[test]
    fn decorators_are_refused_wherever_they_stand() {
        for code in ["@d class A {}", "class A { @d b: B }", "class A { m(@d b: B) {} }"] {
            let told = check(code, code);
            assert_eq!(told, Err(NotTypeOnly::TypesAreValues("decorators")), "{code}");
        }
    }

    #[test]
    fn what_is_no_typescript_is_not_type_only() {
        assert_eq!(check("let", ""), Err(NotTypeOnly::Syntax(Version::Before)));
        assert_eq!(check("", "let a: = 1"), Err(NotTypeOnly::Syntax(Version::After)));
    }

    #[test]
    fn a_hostile_text_has_an_answer() {
        for part in [
            "(",
            "[",
            "{",
            "!",
            "a=>",
            "a?",
            "a?b:",
            "1+",
            "a.b.",
            "new ",
            "typeof ",
            "if(1)",
            "a<",
            "a<b>(",
            "if(1);else ",
            "async a=>",
            "`${",
            "a=",
            "a\n",
            "x:",
            "-",
            "(a)=>",
            "a??",
            "a as ",
            "a!",
            "<a>",
            "a,",
            "class extends ",
            "type A=A[",
            "keyof ",
            "let a:()=>",
            "a extends b?",
            "{}+",
            "()=>{}\n",
            "a?(b):c=>",
            "a?(b)=>c:",
            "a?(b):c=>d?",
            "a?.5:c=>",
            "<T>(a)=>",
            "async<T>(a)=>",
            "a?.b<c>(d)",
        ] {
            for ending in ["", "1"] {
                let text = part.repeat(65_000 / part.len()) + ending;
                let _either = check(&text, "");
                let text = part.repeat(1_000) + ending;
                let _either = check(&text, "");
                let text = part.repeat(12) + ending;
                let _either = check(&text, "");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_text_has_an_answer(before in "\\PC{0,60}", after in "[ -~\n]{0,60}") {
            let _either = check(&before, &after);
        }

        #[test]
        fn code_like_text_never_passes_for_other_code(words in proptest::collection::vec(
            prop_oneof!["a", "b", "<", ">", "\\(", "\\)", "=>", ":", "as ", "!", "\\?", "\n", ";", "=", "type ", "\\{", "\\}"], 0..16,
        )) {
            let text = words.concat();
            if check(&text, &text).is_ok() {
                prop_assert_eq!(check(&text, &format!("{text};added()")).is_ok(), false);
            }
        }
    }
}
