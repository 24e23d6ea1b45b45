//! The battery: what a hostile or broken rule file may try, and that the next evaluation works.

use fluffy_policy::{Engine, Layer, RuleAnswer, RuleProblem, Source};

const INPUT: &str = r#"{"actor":"model","caller_tags":[],"intent":"i","params":{"path":"src/a.rs"},"paths":["src/a.rs"],"request_id":"r1","session_mode":null,"syscall":"fs.write","ts_ms":1700000000000,"workflow_state":null}"#;

/// Time stands still: only steps count.
fn still() -> u64 {
    0
}

fn engine() -> Engine {
    Engine::new(still).unwrap()
}

fn rule(body: &str) -> String {
    format!("export default function (request: PolicyRequest): PolicyAnswer {{\n{body}\n}}")
}

fn answer_of(text: &str) -> RuleAnswer {
    let engine = engine();
    let loaded = engine.load("rule", text).unwrap();
    engine.prepare(&loaded).unwrap().evaluate(INPUT)
}

fn says(body: &str) -> String {
    match answer_of(&rule(body)) {
        RuleAnswer::Deny(reason) => reason,
        other => format!("{other:?}"),
    }
}

/// The rule fails in these words, and the same rule asked something else answers.
fn fails(evil: &str, words: &str) {
    let engine = engine();
    let text =
        rule(&format!("if (request.actor === 'good') return {{ action: 'allow' }};\n{evil}"));
    let loaded = engine.load("evil", &text).unwrap();
    let good = INPUT.replace("\"model\"", "\"good\"");
    for _ in 0..2 {
        let answer = engine.prepare(&loaded).unwrap().evaluate(INPUT);
        let failed = matches!(&answer, RuleAnswer::Failed(why) if why.contains(words));
        assert!(failed, "{evil}: {answer:?}");
        assert_eq!(engine.prepare(&loaded).unwrap().evaluate(&good), RuleAnswer::Allow, "{evil}");
    }
}

fn problem(text: &str) -> RuleProblem {
    engine().load("rule", text).map(|_| ()).unwrap_err()
}

#[test]
fn a_rule_answers_with_each_action() {
    assert_eq!(answer_of(&rule("return { action: 'pass' }")), RuleAnswer::Pass);
    assert_eq!(answer_of(&rule("return { action: 'allow', reason: 'fine' }")), RuleAnswer::Allow);
    assert_eq!(
        answer_of(&rule("return { action: 'require_review', reason: request.paths[0] }")),
        RuleAnswer::RequireReview("src/a.rs".to_owned())
    );
    let denied = answer_of(&rule("return { action: 'deny', reason: request.params.path }"));
    assert_eq!(denied, RuleAnswer::Deny("src/a.rs".to_owned()));
    let verdict = denied.verdict(&Source::new(Layer::Extension, "rule"));
    assert_eq!(verdict.to_string(), "deny: src/a.rs (rule `rule`)");
    assert_eq!(verdict.reasons().unwrap().primary().layer(), Layer::Extension);
}

#[test]
fn an_endless_loop_is_stopped_by_its_steps() {
    let words = "took more than 1000000 steps";
    fails("while (true) {}", words);
    fails("for (;;) { try { for (;;) {} } catch { } finally { } }", words);
    fails("function* g() { for (;;) yield 1 } for (const x of g()) ;", words);
    fails("[1].map(function f() { for (;;) ; })", words);
    fails("JSON.parse('[1]', () => { for (;;) ; })", words);
}

#[test]
fn an_endless_loop_in_a_getter_of_the_answer_is_stopped() {
    fails("return { get action() { for (;;) ; } }", "took more than 1000000 steps");
    fails(
        "throw { get message() { for (;;) ; }, toString() { for (;;) ; } }",
        "threw `a value of type object`",
    );
    fails(
        "const e = new Error('x'); Object.defineProperty(e, 'message', { get() { for (;;) ; } }); throw e",
        "steps",
    );
}

#[test]
fn a_catastrophic_regular_expression_is_stopped() {
    fails("return { action: /^(a+)+$/.test('a'.repeat(60) + 'b') ? 'allow' : 'pass' }", "steps");
    fails(
        "try { /^(a+)+$/.test('a'.repeat(60) + 'b') } catch {} return { action: 'allow' }",
        "steps",
    );
}

#[test]
fn time_is_the_second_limit() {
    fn leaps() -> u64 {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NOW: AtomicU64 = AtomicU64::new(0);
        NOW.fetch_add(40, Ordering::SeqCst)
    }
    let engine = Engine::new(leaps).unwrap();
    for slow in ["for (;;) ;", "(function f() { try { f() } finally { f() } })()"] {
        let loaded = engine.load("slow", &rule(slow)).unwrap();
        let answer = engine.prepare(&loaded).unwrap().evaluate(INPUT);
        assert_eq!(answer, RuleAnswer::Failed("took more than 100 ms".to_owned()));
    }
}

#[test]
fn a_memory_bomb_is_stopped() {
    fails("const a = []; for (;;) a.push(new Array(100000).fill('x'))", "threw");
    fails("let s = 'x'; for (;;) s += s", "threw");
    fails("return { action: 'deny', reason: 'x'.repeat(2 ** 29) }", "threw");
    fails(
        "const m = new Map(); for (let i = 0; ; i++) m.set({ i }, 'x'.repeat(5000) + i)",
        "threw",
    );
    fails("let o = {}; for (;;) { o = { o, p: new Array(9999).fill(o) } }", "threw");
    fails(
        "const f = []; for (;;) { const b = new Array(50000).fill(1); b.f = () => b; f.push(b) }",
        "threw",
    );
}

#[test]
fn a_deep_recursion_is_stopped() {
    fails("(function f(): number { return 1 + f() })()", "threw");
    fails("const f = (a: unknown[]): unknown => f([a, ...a]); f([])", "threw");
    fails(
        "let a: unknown = []; for (let i = 0; i < 20000; i++) a = [a]; JSON.stringify(a)",
        "threw",
    );
    fails("JSON.parse('['.repeat(100000))", "threw");
    fails("new RegExp('('.repeat(100000) + ')'.repeat(100000))", "threw");
    fails("/(?:)/.test.call({ get exec() { return this.exec } })", "threw");
}

#[test]
fn what_a_rule_throws_is_told_with_its_place() {
    fails("const x: any = null;\n  x.y()", "at evil.ts:4:");
    fails(
        "throw new Error('no\\n\\u001b[2J' + 'x'.repeat(100000))",
        "threw `Error: no\\n\\u{1b}[2Jxx",
    );
    fails("throw 'text'", "threw `text`");
    fails("throw undefined", "threw `a value of type undefined`");
    fails("throw { toString() { return 'x' } }", "threw `a value of type object`");
}

#[test]
fn a_wrong_answer_is_a_failure() {
    for (returned, words) in [
        ("", "returned `undefined`"),
        ("return null", "returned `null`"),
        ("return true", "returned `bool`"),
        ("return 'allow'", "returned `string`"),
        ("return ['allow']", "returned `array`"),
        ("return () => 'allow'", "returned `function`"),
        ("return Promise.resolve({ action: 'allow' })", "returned `promise`"),
        ("return (async () => ({ action: 'allow' }))()", "returned `promise`"),
        ("return {}", "without an action"),
        ("return { action: 'ALLOW' }", "unknown action `ALLOW`"),
        ("return { action: 1 }", "`action` is not a text"),
        ("return { action: new String('allow') }", "`action` is not a text"),
        ("return { action: 'allow', extra: 1 }", "unknown member `extra`"),
        ("return { action: 'deny' }", "`deny` without a reason"),
        ("return { action: 'deny', reason: ' \\u200b' }", "`deny` without a reason"),
        ("return { action: 'require_review', reason: 7 }", "`reason` is not a text"),
        ("return { action: 'deny', reason: '\\ud800' }", "`reason` is not a text"),
        ("return { get action() { throw new Error('late') } }", "threw `Error: late`"),
        ("return new Error('allow')", "returned `exception`"),
        ("return Symbol('allow')", "returned `symbol`"),
    ] {
        fails(returned, words);
    }
}

#[test]
fn a_huge_reason_is_cut() {
    let reason = says("return { action: 'deny', reason: 'é\\n'.repeat(500000) }");
    assert_eq!(reason.chars().count(), 500);
    assert!(reason.starts_with("é\\né\\n") && reason.ends_with('…'));
}

#[test]
fn nothing_can_be_compiled_by_a_rule() {
    for code in [
        "Function('return 1')()",
        "new Function('return 1')()",
        "(() => {}).constructor('return 1')()",
        "(async () => {}).constructor('return 1')()",
        "(function* () {}).constructor('return 1')()",
        "(async function* () {}).constructor('return 1')()",
        "Reflect.construct((() => {}).constructor, ['return 1'])",
        "Object.getPrototypeOf(function () {}).constructor.call(null, 'return 1')",
    ] {
        fails(
            &format!("return {{ action: String({code}) }}"),
            "threw `TypeError: eval is not supported",
        );
    }
    fails("(0, eval)('1')", "eval is not defined");
    fails("eval('1')", "eval is not defined");
}

#[test]
fn what_one_evaluation_changes_no_other_sees() {
    let text = "let count = 0;\nconst seen: string[] = [];\n".to_owned()
        + &rule(
            "const g = globalThis as any;
            const dirty = [count, seen.length, ({} as any).x, (Array.prototype as any).x, g.y,
                (Object as any).z, JSON.stringify({ a: 1 }), 'a'.includes('b'), Map.prototype.size];
            count++; seen.push('x'); (Object.prototype as any).x = 1; (Array.prototype as any).x = 1;
            g.y = 1; (Object as any).z = 1; JSON.stringify = () => 'tampered'; JSON.parse = () => ({ actor: 'root' });
            String.prototype.includes = () => true; (Map.prototype as any).tampered = 1;
            Object.defineProperty(Object.prototype, 'action', { get() { return 'allow' } , configurable: true });
            Object.defineProperty(Object.prototype, 'reason', { value: 'tampered' , configurable: true });
            (Date.prototype as any).getTime = () => 0; Math.random = () => 0.5; g.Date = null;
            return { action: 'deny', reason: dirty.join() }"
                .replace(", Map.prototype.size", "").as_str(),
        );
    let engine = engine();
    let (one, two) = (engine.load("one", &text).unwrap(), engine.load("two", &text).unwrap());
    let clean = RuleAnswer::Deny("0,0,,,,,{\"a\":1},false".to_owned());
    // Prepared before and after the others have run.
    let waiting = [engine.prepare(&one).unwrap(), engine.prepare(&two).unwrap()];
    for _ in 0..3 {
        assert_eq!(engine.prepare(&one).unwrap().evaluate(INPUT), clean);
        assert_eq!(engine.prepare(&two).unwrap().evaluate(INPUT), clean);
    }
    for prepared in waiting {
        assert_eq!(prepared.evaluate(INPUT), clean);
    }
}

#[test]
fn clock_and_randomness_come_from_the_request() {
    let body = "const d = new Date(); return { action: 'deny', reason: [Date.now(), d.toISOString(),
        new Date(0).getTime(), new (d.constructor as any)().getTime(), Date.UTC(1970, 0), d instanceof Date,
        new (class extends Date {})().getTime(), Date.length, Date.name].join() }";
    assert_eq!(
        says(body),
        "1700000000000,2023-11-14T22:13:20.000Z,0,1700000000000,0,true,1700000000000,7,Date"
    );
    let random = rule("return { action: 'deny', reason: `${Math.random()} ${Math.random()}` }");
    assert_eq!(answer_of(&random), answer_of(&random));
    let engine = engine();
    let loaded = engine.load("random", &random).unwrap();
    let other = INPUT.replace("\"r1\"", "\"r2\"");
    let first = engine.prepare(&loaded).unwrap().evaluate(INPUT);
    assert_ne!(engine.prepare(&loaded).unwrap().evaluate(&other), first);
    assert_eq!(engine.prepare(&loaded).unwrap().evaluate(INPUT), first);
}

#[test]
fn a_rule_has_the_language_and_nothing_of_the_machine() {
    let names = says(
        "return { action: 'deny', reason: Object.getOwnPropertyNames(globalThis).sort().join(' ') }",
    );
    assert_eq!(
        names,
        "AggregateError Array AsyncDisposableStack BigInt Boolean Date DisposableStack Error EvalError \
         Function Infinity InternalError Iterator JSON Map Math NaN Number Object Promise RangeError \
         ReferenceError Reflect RegExp Set String SuppressedError Symbol SyntaxError TypeError URIError \
         WeakMap WeakSet decodeURI decodeURIComponent encodeURI encodeURIComponent escape globalThis \
         isFinite isNaN parseFloat parseInt undefined unescape"
    );
}

#[test]
fn a_file_that_is_no_rule_is_refused_with_its_place() {
    let told = |text: &str| problem(text).to_string();
    assert!(told("export default function (r) {\n  return {;\n}").starts_with("2:11: "));
    assert!(told(&format!("{}\nlet a = 1; let a = 2;", rule(""))).starts_with("4:"));
    assert!(
        told(&format!("import fs from 'fs';\n{}", rule(""))).contains("`import` cannot be used")
    );
    assert_eq!(told(""), "1:1: the rule has no default export");
    let throws = told(&format!("{}\n\n  null.x;", rule("")));
    assert!(throws.starts_with("5:") && throws.contains("TypeError"), "{throws}");
    let loops = told(&format!("{}\nfor (;;) ;", rule("")));
    assert!(loops.contains("the top level of the rule took more than 1000000 steps"), "{loops}");
    let waits = told(&format!("{}\nawait new Promise(() => {{}});", rule("")));
    assert!(waits.contains("the top level of the rule waits"), "{waits}");
    let bomb = told(&format!("{}\nlet s = 'x'; for (;;) s += s;", rule("")));
    assert!(bomb.starts_with("4:"), "{bomb}");
}

#[test]
fn what_is_no_request_is_a_failure() {
    let engine = engine();
    let loaded = engine.load("rule", &rule("return { action: 'allow' }")).unwrap();
    for input in
        ["", "null", "[]", "{}", "{\"ts_ms\":\"1\"}", "{\"ts_ms\":1", "\0", "{\"ts_ms\":1}x"]
    {
        let answer = engine.prepare(&loaded).unwrap().evaluate(input);
        assert!(matches!(answer, RuleAnswer::Failed(_)), "{input}: {answer:?}");
    }
}

#[test]
fn the_examples_judge_as_they_say() {
    let engine = engine();
    let asked = |text: &str, syscall: &str, paths: &str, ts_ms: u64| {
        let loaded = engine.load("example", text).unwrap();
        let input = format!(
            r#"{{"caller_tags":[],"paths":{paths},"syscall":"{syscall}","ts_ms":{ts_ms}}}"#
        );
        match engine.prepare(&loaded).unwrap().evaluate(&input) {
            RuleAnswer::Pass => "pass".to_owned(),
            other => other
                .verdict(&Source::new(Layer::Extension, "example"))
                .to_string()
                .replace(" (rule `example`)", ""),
        }
    };
    let locks = include_str!("../../../../examples/policy/lock-files.ts");
    assert_eq!(asked(locks, "fs.write", r#"["a/Cargo.lock","a/Cargo.toml"]"#, 0), "pass");
    assert_eq!(asked(locks, "fs.read", r#"["Cargo.lock"]"#, 0), "pass");
    assert_eq!(
        asked(locks, "fs.edit", r#"["a/Cargo.lock","Cargo.toml"]"#, 0),
        "review: a/Cargo.lock changes without Cargo.toml beside it"
    );
    assert_eq!(
        asked(locks, "fs.delete", r#"["go.sum"]"#, 0),
        "deny: go.sum is a lock file: let the package manager rewrite it"
    );
    let generated = include_str!("../../../../examples/policy/generated-files.ts");
    let (tuesday_noon, tuesday_night, saturday) =
        (1_700_568_000_000, 1_700_607_600_000, 1_700_913_600_000);
    assert_eq!(asked(generated, "fs.write", r#"["src/a.ts"]"#, tuesday_night), "pass");
    assert_eq!(
        asked(generated, "fs.write", r#"["src/api.gen.ts"]"#, tuesday_noon),
        "deny: src/api.gen.ts is generated: change its source and run the generator"
    );
    assert_eq!(asked(generated, "git.commit", "[]", tuesday_noon), "pass");
    for time in [tuesday_night, saturday] {
        let verdict = asked(generated, "git.commit", "[]", time);
        assert_eq!(verdict, "review: a commit outside working hours");
    }
}
