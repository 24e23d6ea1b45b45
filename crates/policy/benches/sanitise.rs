//! What cleaning a tool's result costs on a megabyte of plain text, beside a bare search for the same
//! prefixes in the same run.
//!
//! `cargo bench --package fluffy-policy --bench sanitise`

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use fluffy_policy::{ResultLimits, Sanitiser, SecretPattern};
use regex::{Regex, RegexSet};

const MEGABYTE: usize = 1 << 20;

const PREFIXES: [&str; 7] =
    [r"\bsk-", r"\bghp_", r"\bgho_", r"\bAKIA", r"\bxox[a-z]-", r"\bglpat-", r"\bnpm_"];

fn main() {
    divan::main();
}

/// What the text is made of.
#[derive(Debug, Clone, Copy)]
enum Sort {
    Prose,
    Code,
}

fn text(sort: Sort) -> String {
    let line = match sort {
        Sort::Prose => "The quick brown fox asks a risk-averse dog to jump over the lazy desk.\n",
        Sort::Code => {
            "        let max_key_bytes = self.max_key_bytes(known_key - 1); // snake_case\n"
        }
    };
    line.repeat(MEGABYTE / line.len())
}

fn sanitiser(patterns: &[&str]) -> Sanitiser {
    let named = |regex: &&str| SecretPattern { name: "own".to_owned(), regex: (*regex).to_owned() };
    let patterns: Vec<_> = patterns.iter().map(named).collect();
    Sanitiser::new(&patterns, ResultLimits::default()).unwrap()
}

fn run<T>(bencher: Bencher<'_, '_>, sort: Sort, search: impl Fn(&str) -> T) {
    let text = text(sort);
    let bencher = bencher.counter(BytesCount::new(text.len()));
    bencher.bench_local(|| {
        black_box(search(black_box(&text)));
    });
}

#[divan::bench(args = [Sort::Prose, Sort::Code])]
fn known_secrets(bencher: Bencher<'_, '_>, sort: Sort) {
    let sanitiser = sanitiser(&[]);
    run(bencher, sort, |text| sanitiser.text("fs.read", text).masked);
}

#[divan::bench(args = [Sort::Prose, Sort::Code])]
fn known_secrets_and_four_patterns(bencher: Bencher<'_, '_>, sort: Sort) {
    let sanitiser = sanitiser(&[
        r"(?i)password\s*[:=]\s*\S+",
        "-----BEGIN [A-Z ]*PRIVATE KEY-----",
        r"ACME-[0-9]{12}",
        r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+",
    ]);
    run(bencher, sort, |text| sanitiser.text("fs.read", text).masked);
}

#[divan::bench(args = [Sort::Prose, Sort::Code])]
fn bare_regex(bencher: Bencher<'_, '_>, sort: Sort) {
    let regex = Regex::new(&PREFIXES.join("|")).unwrap();
    run(bencher, sort, |text| regex.find_iter(text).count());
}

#[divan::bench(args = [Sort::Prose, Sort::Code])]
fn bare_regex_set(bencher: Bencher<'_, '_>, sort: Sort) {
    let set = RegexSet::new(PREFIXES).unwrap();
    run(bencher, sort, |text| set.matches(text));
}
